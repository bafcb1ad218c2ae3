"""Datasets with a column of queries, and with grades as labels.

Revision: 0026
Before: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("query_column", sa.Text(), nullable=True))
    for column in ("queries", "grades"):
        op.add_column("datasets", sa.Column(column, sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    for column in ("grades", "queries", "query_column"):
        op.drop_column("datasets", column)
