"""Sessions of persons: the chosen owner, the groups, and what refreshes them.

Null in the rows of before, which are sessions of keys.

Revision: 0122, after 0121.
"""

import sqlalchemy as sa
from alembic import op

revision = "0122"
down_revision = "0121"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, kind in (
        ("owner", sa.Text()),
        ("groups", sa.JSON(none_as_null=True)),
        ("provider_session", sa.Text()),
        ("refresh_token", sa.Text()),
        ("refresh_at", sa.Float(precision=53)),
    ):
        op.add_column("browser_sessions", sa.Column(name, kind, nullable=True))
    op.create_index("ix_browser_sessions_refresh_at", "browser_sessions", ["refresh_at"])


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
