"""When a job's owner asked it to end early and to keep the best so far.

Revision: 0019
Before: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = '0019'
down_revision = '0018'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column('jobs', sa.Column('keep_requested_at', sa.Float(precision=53), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table('jobs') as batch_op:
        batch_op.drop_column('keep_requested_at')
