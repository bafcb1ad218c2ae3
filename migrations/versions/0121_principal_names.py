"""Principals have a name, and the principal that created them.

Who created an existing key is not known here: each counts as created on the server.

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
    op.execute(f"UPDATE principals SET root_id = id, name = coalesce(({NAME_OF_KEY}), subject)")  # noqa: S608 - a constant
    with op.batch_alter_table("principals") as batch:
        batch.alter_column("name", existing_type=sa.Text(), nullable=False)
        batch.alter_column("root_id", existing_type=sa.Text(), nullable=False)


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
