"""When a backup and a round of housekeeping last succeeded.

Revision: 0118, after 0117.
"""

import sqlalchemy as sa
from alembic import op

revision = "0118"
down_revision = "0117"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "last_successes",
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("what"),
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
