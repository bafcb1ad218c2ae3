"""A model stores the protected columns of its training dataset, and how well its features predict them.

Revision: 0111, after 0110.
"""

import sqlalchemy as sa
from alembic import op

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in ("protected", "proxies"):
        op.add_column("models", sa.Column(column, sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
