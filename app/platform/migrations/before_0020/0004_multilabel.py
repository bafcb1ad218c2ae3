"""Tables with several labels, and what models trained on them are worth.

Revision: 0004
Before: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = '0004'
down_revision = '0003'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('model_label_metrics',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('part', sa.Text(), nullable=False),
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('label', sa.Text(), nullable=False),
    sa.Column('auc', sa.JSON(none_as_null=True), nullable=True),
    sa.Column('partial_aucs', sa.JSON(none_as_null=True), nullable=False),
    sa.Column('level', sa.Float(precision=53), nullable=False),
    sa.Column('positives', sa.BigInteger(), nullable=False),
    sa.Column('negatives', sa.BigInteger(), nullable=False),
    sa.Column('ties', sa.Float(precision=53), nullable=True),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_label_metrics_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', 'part', 'position', name=op.f('pk_model_label_metrics'))
    )
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.add_column(sa.Column('labels', sa.JSON(none_as_null=True), nullable=True))

    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.add_column(sa.Column('labels', sa.JSON(none_as_null=True), nullable=True))



def downgrade() -> None:
    with op.batch_alter_table('models', schema=None) as batch_op:
        batch_op.drop_column('labels')

    with op.batch_alter_table('datasets', schema=None) as batch_op:
        batch_op.drop_column('labels')

    op.drop_table('model_label_metrics')
