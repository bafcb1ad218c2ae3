"""Aliases that keep a promise, each revision with the cut of its version.

Revision: 0025
Before: 0024
"""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TABLES = ("model_aliases", "model_alias_history")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("promise", sa.JSON(), nullable=True))
        op.add_column(table, sa.Column("cut", sa.JSON(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "cut")
        op.drop_column(table, "promise")
