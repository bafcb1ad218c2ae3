"""An index to find the deliveries of one webhook that are due.

Revision: 0128, after 0127.
"""

from alembic import op

revision = "0128"
down_revision = "0127"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_deliveries_target_state_due_at", "deliveries", ["target", "state", "due_at"]
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
