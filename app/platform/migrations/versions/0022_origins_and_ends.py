"""Where a job and a change came from, and how many jobs ended that are no longer there.

Revision: 0022
Before: 0021
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("request_id", sa.Text(), nullable=True))
    op.add_column("audit_entries", sa.Column("client", sa.Text(), nullable=True))
    op.create_table(
        "pruned_jobs",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("jobs", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "state", name="pk_pruned_jobs"),
    )


def downgrade() -> None:
    op.drop_table("pruned_jobs")
    op.drop_column("audit_entries", "client")
    op.drop_column("jobs", "request_id")
