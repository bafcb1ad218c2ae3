"""Models whose importance is measured by a job of its own.

Revision: 0030
Before: 0029
"""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("importance_job_id", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("models", "importance_job_id")
