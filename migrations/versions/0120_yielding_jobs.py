"""Jobs that give way to a waiting job of another owner.

Revision: 0120, after 0119.
"""

import sqlalchemy as sa
from alembic import op

revision = "0120"
down_revision = "0119"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("yield_requested_at", sa.Float(53), nullable=True))
    op.add_column("jobs", sa.Column("yielded_at", sa.Float(53), nullable=True))
    op.add_column("jobs", sa.Column("yielded_seconds", sa.Float(53), nullable=True))
    op.create_index(op.f("ix_jobs_yielded_at"), "jobs", ["yielded_at"])


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
