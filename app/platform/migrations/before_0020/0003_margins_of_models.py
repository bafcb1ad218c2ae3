"""margins of models.

Revision: 0003
Before: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = '0003'
down_revision = '0002'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('model_margins',
    sa.Column('model_id', sa.Text(), nullable=False),
    sa.Column('l1_norm', sa.Float(precision=53), nullable=False),
    sa.Column('smooth_margin', sa.Float(precision=53), nullable=False),
    sa.Column('thetas', sa.LargeBinary(), nullable=False),
    sa.Column('fractions', sa.LargeBinary(), nullable=False),
    sa.Column('d_plus', sa.LargeBinary(), nullable=False),
    sa.Column('d_minus', sa.LargeBinary(), nullable=False),
    sa.Column('weak_rankers', sa.BigInteger(), nullable=False),
    sa.Column('depends_on_data', sa.Text(), nullable=True),
    sa.Column('best', sa.JSON(none_as_null=True), nullable=True),
    sa.ForeignKeyConstraint(['model_id'], ['models.id'], name=op.f('fk_model_margins_model_id'), ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('model_id', name=op.f('pk_model_margins'))
    )


def downgrade() -> None:
    op.drop_table('model_margins')
