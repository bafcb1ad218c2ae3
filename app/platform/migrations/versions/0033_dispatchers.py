"""Dispatchers are heard from, as workers are.

Revision: 0033
Before: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "workers", sa.Column("role", sa.Text(), nullable=False, server_default="worker")
    )


def downgrade() -> None:
    op.drop_column("workers", "role")
