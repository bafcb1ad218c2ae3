"""Datasets that read the source of another again.

Revision: 0127, after 0126.
"""

import sqlalchemy as sa
from alembic import op

revision = "0127"
down_revision = "0126"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("datasets", sa.Column("refresh_of", sa.Text(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
