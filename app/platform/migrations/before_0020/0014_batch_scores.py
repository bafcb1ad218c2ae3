"""Tables scored by a job, and how a model's tables spell missing values and decimals.

Revision: 0014
Before: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = '0014'
down_revision = '0013'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'batch_scores',
        sa.Column('id', sa.Text(), nullable=False),
        sa.Column('owner', sa.Text(), nullable=False),
        sa.Column('job_id', sa.Text(), nullable=False),
        sa.Column('model_id', sa.Text(), nullable=False),
        sa.Column('model_name', sa.Text(), nullable=False),
        sa.Column('model_version', sa.BigInteger(), nullable=False),
        sa.Column('dataset_id', sa.Text(), nullable=True),
        sa.Column('dataset_name', sa.Text(), nullable=True),
        sa.Column('content_type', sa.Text(), nullable=True),
        sa.Column('content_encoding', sa.Text(), nullable=True),
        sa.Column('upload_key', sa.Text(), nullable=True),
        sa.Column('upload_bytes', sa.BigInteger(), nullable=True),
        sa.Column('terms', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('rows', sa.BigInteger(), nullable=True),
        sa.Column('columns', sa.JSON(none_as_null=True), nullable=True),
        sa.Column('result_key', sa.Text(), nullable=True),
        sa.Column('result_bytes', sa.BigInteger(), nullable=True),
        sa.Column('created_at', sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint('id', name=op.f('pk_batch_scores')),
    )
    with op.batch_alter_table('batch_scores', schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f('ix_batch_scores_owner_created_at_id'), ['owner', 'created_at', 'id'], unique=False
        )
        for column in ('job_id', 'model_id', 'dataset_id', 'upload_key', 'result_key'):
            batch_op.create_index(batch_op.f(f'ix_batch_scores_{column}'), [column], unique=False)
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.add_column(sa.Column('spelling', sa.JSON(none_as_null=True), nullable=True))
    _spell_as_the_datasets_do()


def _spell_as_the_datasets_do() -> None:
    """Models whose datasets are still there learn what these say of their values."""
    json = sa.JSON(none_as_null=True)
    datasets = sa.table('datasets', sa.column('id'), *(sa.column(name, json) for name in ('missing', 'dialect')))
    models = sa.table('models', sa.column('dataset_id'), sa.column('spelling', json))
    connection = op.get_bind()
    for dataset in connection.execute(sa.select(datasets)).all():
        decimal = (dataset.dialect or {}).get('decimal')
        if dataset.missing is not None or decimal is not None:
            connection.execute(
                models.update()
                .where(models.c.dataset_id == dataset.id)
                .values(spelling={'missing': dataset.missing, 'decimal': decimal})
            )


def downgrade() -> None:
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.drop_column('spelling')
    op.drop_table('batch_scores')
