"""Events and their deliveries, written in the transaction that causes them.

Revision: 0106, after 0105.
"""

import sqlalchemy as sa
from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_owner_at_id"), "events", ["owner", "at", "id"])
    op.create_table(
        "deliveries",
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.Float(precision=53), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued','delivered','failed')", name=op.f("ck_deliveries_state")
        ),
        sa.ForeignKeyConstraint(
            ["event_id"],
            ["events.id"],
            name=op.f("fk_deliveries_event_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("event_id", "target", name=op.f("pk_deliveries")),
    )
    op.create_index(op.f("ix_deliveries_state_due_at"), "deliveries", ["state", "due_at"])


def downgrade() -> None:
    op.drop_table("deliveries")
    op.drop_table("events")
