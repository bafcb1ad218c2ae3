"""Quotas of single owners.

Revision: 0119, after 0118.
"""

import sqlalchemy as sa
from alembic import op

revision = "0119"
down_revision = "0118"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "quotas",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("dataset_rows", sa.BigInteger(), nullable=True),
        sa.Column("models", sa.BigInteger(), nullable=True),
        sa.Column("aliases", sa.BigInteger(), nullable=True),
        sa.Column("keys", sa.BigInteger(), nullable=True),
        sa.Column("queued_jobs", sa.BigInteger(), nullable=True),
        sa.Column("running_jobs", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("owner"),
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
