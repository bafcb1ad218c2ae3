"""Principals have a name, and the principal that created them. Calibrations and saved views refer to a principal.

Null in the rows of before: who created an existing key is not known here, so each counts as created on the server.

Revision: 0121, after 0120.
"""

import sqlalchemy as sa
from alembic import op

revision = "0121"
down_revision = "0120"
branch_labels = None
depends_on = None

NAME_OF_KEY = """
SELECT name FROM api_keys WHERE api_keys.principal_id = principals.id ORDER BY created_at DESC LIMIT 1
"""


def upgrade() -> None:
    op.add_column("principals", sa.Column("name", sa.Text(), nullable=True))
    op.add_column("principals", sa.Column("root_id", sa.Text(), nullable=True))
    op.execute(f"UPDATE principals SET name = ({NAME_OF_KEY})")  # noqa: S608 - a constant
    for table in ("model_calibrations", "saved_views"):
        op.add_column(table, sa.Column("principal_id", sa.Text(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
