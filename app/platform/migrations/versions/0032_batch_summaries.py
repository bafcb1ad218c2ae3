"""The summary of a batch score, its file and alias; indexes for failures that nothing has made good.

Revision: 0032
Before: 0031
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("batch_scores", sa.Column("file_name", sa.Text(), nullable=True))
    op.add_column("batch_scores", sa.Column("alias", sa.Text(), nullable=True))
    op.add_column("batch_scores", sa.Column("summary", sa.JSON(), nullable=True))
    op.create_index(
        "ix_jobs_name_owner_kind_state_created_at",
        "jobs",
        ["name", "owner", "kind", "state", "created_at"],
    )
    op.create_index("ix_jobs_retry_of", "jobs", ["retry_of"])


def downgrade() -> None:
    op.drop_index("ix_jobs_retry_of", "jobs")
    op.drop_index("ix_jobs_name_owner_kind_state_created_at", "jobs")
    op.drop_column("batch_scores", "summary")
    op.drop_column("batch_scores", "alias")
    op.drop_column("batch_scores", "file_name")
