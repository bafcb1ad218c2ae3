"""Versions of datasets, and the data that a model, an evaluation or a comparison was made with.

Revision: 0013
Before: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = '0013'
down_revision = '0012'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'dataset_series',
        sa.Column('owner', sa.Text(), nullable=False),
        sa.Column('first_id', sa.Text(), nullable=False),
        sa.Column('last_version', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('owner', 'first_id', name=op.f('pk_dataset_series')),
    )
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.add_column(sa.Column('first_id', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('version', sa.BigInteger(), nullable=False, server_default='1'))
        batch_op.add_column(sa.Column('parent_id', sa.Text(), nullable=True))
        batch_op.add_column(sa.Column('base_id', sa.Text(), nullable=True))
        batch_op.create_unique_constraint(batch_op.f('uq_datasets_first_id_version'), ['first_id', 'version'])
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.add_column(sa.Column('dataset', sa.JSON(none_as_null=True), nullable=True))
        batch_op.add_column(sa.Column('validation_dataset', sa.JSON(none_as_null=True), nullable=True))
    for table in ('evaluations', 'comparisons'):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.add_column(sa.Column('dataset_version', sa.BigInteger(), nullable=True))
            batch_op.add_column(sa.Column('dataset_sha256', sa.Text(), nullable=True))
        op.execute(
            f'UPDATE {table} SET dataset_version = 1,'
            f' dataset_sha256 = (SELECT sha256 FROM datasets WHERE datasets.id = {table}.dataset_id)'
            f' WHERE EXISTS (SELECT 1 FROM datasets WHERE datasets.id = {table}.dataset_id)'
        )
    _name_the_data_of_models()


def _name_the_data_of_models() -> None:
    """Models whose datasets are still there learn how these are called."""
    datasets = sa.table('datasets', *map(sa.column, ('id', 'owner', 'name', 'sha256')))
    models = sa.table(
        'models',
        *map(sa.column, ('id', 'owner', 'dataset_id')),
        *(sa.column(name, sa.JSON(none_as_null=True)) for name in ('validation', 'dataset', 'validation_dataset')),
    )
    connection = op.get_bind()
    known = {
        (row.owner, row.id): {
            'id': row.id, 'name': row.name, 'version': 1, 'sha256': row.sha256, 'rows_from': row.id
        }
        for row in connection.execute(sa.select(datasets))
    }
    for model in connection.execute(sa.select(models)).all():
        judged = (model.validation or {}).get('dataset_id')
        connection.execute(
            models.update()
            .where(models.c.id == model.id)
            .values(
                dataset=known.get((model.owner, model.dataset_id)),
                validation_dataset=known.get((model.owner, judged)),
            )
        )


def downgrade() -> None:
    for table in ('evaluations', 'comparisons'):
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_column('dataset_sha256')
            batch_op.drop_column('dataset_version')
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.drop_column('validation_dataset')
        batch_op.drop_column('dataset')
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.drop_constraint(batch_op.f('uq_datasets_first_id_version'), type_='unique')
        batch_op.drop_column('base_id')
        batch_op.drop_column('parent_id')
        batch_op.drop_column('version')
        batch_op.drop_column('first_id')
    op.drop_table('dataset_series')
