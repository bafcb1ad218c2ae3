"""Keys name the principal that they are for; who made a request follows from its principal.

Revision: 0130, after 0129.
"""

import sqlalchemy as sa
from alembic import op

revision = "0130"
down_revision = "0129"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_keys", sa.Column("holder_id", sa.Text(), nullable=True))
    op.alter_column("principals", "root_id", new_column_name="created_by")
    op.drop_column("alias_requests", "root_id")


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
