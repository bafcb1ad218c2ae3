"""Datasets of items and pairs, and what models trained on them are worth.

Revision: 0002
Before: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = '0002'
down_revision = '0001'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('dataset_pairs',
    sa.Column('dataset_id', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('content_type', sa.Text(), nullable=False),
    sa.Column('content_encoding', sa.Text(), nullable=True),
    sa.Column('upload_key', sa.Text(), nullable=False),
    sa.Column('table_key', sa.Text(), nullable=True),
    sa.Column('bytes', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('pairs', sa.BigInteger(), nullable=True),
    sa.Column('items', sa.BigInteger(), nullable=True),
    sa.Column('weighted', sa.Boolean(), nullable=True),
    sa.Column('errors', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('created_at', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['dataset_id'], ['datasets.id'], name=op.f('fk_dataset_pairs_dataset_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('dataset_id', name=op.f('pk_dataset_pairs'))
    )
    op.create_table('model_pair_metrics',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('value', sa.Float(precision=53), nullable=False),
    sa.Column('low', sa.Float(precision=53), nullable=False),
    sa.Column('high', sa.Float(precision=53), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('misrank_fraction', sa.Float(precision=53), nullable=False),
    sa.Column('ties', sa.Float(precision=53), nullable=False),
    sa.Column('pairs', sa.BigInteger(), nullable=False),
    sa.Column('items', sa.BigInteger(), nullable=False),
    sa.Column('weight', sa.Float(precision=53), nullable=False),
    sa.Column('effective_pairs', sa.Float(precision=53), nullable=False),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_pair_metrics_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', name=op.f('pk_model_pair_metrics'))
    )
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.add_column(sa.Column('item', sa.Text(), nullable=True))

    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.add_column(sa.Column('kind', sa.Text(), server_default='bipartite', nullable=False))
        batch_op.alter_column('label',
               existing_type=sa.TEXT(),
               nullable=True)
        batch_op.alter_column('positive',
               existing_type=sa.TEXT(),
               nullable=True)
        batch_op.alter_column('negative',
               existing_type=sa.TEXT(),
               nullable=True)



def downgrade() -> None:
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.alter_column('negative',
               existing_type=sa.TEXT(),
               nullable=False)
        batch_op.alter_column('positive',
               existing_type=sa.TEXT(),
               nullable=False)
        batch_op.alter_column('label',
               existing_type=sa.TEXT(),
               nullable=False)
        batch_op.drop_column('kind')

    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.drop_column('item')

    op.drop_table('model_pair_metrics')
    op.drop_table('dataset_pairs')
