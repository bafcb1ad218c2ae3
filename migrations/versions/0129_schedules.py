"""Schedules of refreshes.

Revision: 0129, after 0128.
"""

import sqlalchemy as sa
from alembic import op

revision = "0129"
down_revision = "0128"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Float(53), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("principal_groups", sa.JSON(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("paused_at", sa.Float(53), nullable=True),
        sa.Column("paused_reason", sa.Text(), nullable=True),
        sa.Column("last_run_at", sa.Float(53), nullable=True),
        sa.Column("last_job_id", sa.Text(), nullable=True),
        sa.Column("last_dataset_id", sa.Text(), nullable=True),
        sa.Column("last_error", sa.JSON(), nullable=True),
    )
    op.create_index(
        op.f("ix_schedules_owner_created_at_id"), "schedules", ["owner", "created_at", "id"]
    )
    op.create_index(op.f("ix_schedules_due_at"), "schedules", ["due_at"])


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
