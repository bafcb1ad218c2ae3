"""Models of the algorithm scorecard have the counts of held-out rows in their bins.

Revision: 0114, after 0113.
"""

import sqlalchemy as sa
from alembic import op

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("held_out_bins", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
