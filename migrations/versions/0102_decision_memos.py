"""Each revision of an alias keeps who moved it, and the memo of the decision.

Revision: 0102, after 0101.
"""

import sqlalchemy as sa
from alembic import op

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

TABLES = ("model_aliases", "model_alias_history")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("memo", sa.JSON(none_as_null=True), nullable=True))
        op.add_column(table, sa.Column("author", sa.Text(), nullable=True))


def downgrade() -> None:
    for table in TABLES:
        op.drop_column(table, "author")
        op.drop_column(table, "memo")
