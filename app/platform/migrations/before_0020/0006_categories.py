"""What the caller says about columns: which are categorical, which are left out, and what stands for a missing value.

Revision: 0006
Before: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = '0006'
down_revision = '0005'
branch_labels = None
depends_on = None

NEW = ('categorical', 'dropped', 'missing')


def upgrade() -> None:
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        for name in NEW:
            batch_op.add_column(sa.Column(name, sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table('datasets', schema=None) as batch_op:
        for name in reversed(NEW):
            batch_op.drop_column(name)
