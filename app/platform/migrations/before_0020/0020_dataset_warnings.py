"""Datasets say what was done with values that could not be taken as they are, and what was asked for instead.

Revision: 0020
Before: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = '0020'
down_revision = '0019'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('datasets', sa.Column('warnings', sa.JSON(none_as_null=True), server_default='[]', nullable=False))
    op.add_column('datasets', sa.Column('numeric_columns', sa.JSON(none_as_null=True), nullable=True))
    op.add_column('datasets', sa.Column('strict', sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    with op.batch_alter_table('datasets') as batch_op:
        batch_op.drop_column('strict')
        batch_op.drop_column('numeric_columns')
        batch_op.drop_column('warnings')
