"""The proof that a model keeps its monotone constraints.

Revision: 0024
Before: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("monotone", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("models", "monotone")
