"""Webhooks, and the log of their deliveries.

Revision: 0126, after 0125.
"""

import sqlalchemy as sa
from alembic import op

revision = "0126"
down_revision = "0125"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("previous_secret", sa.Text(), nullable=True),
        sa.Column("previous_valid_until", sa.Float(53), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(53), nullable=False),
        sa.Column("disabled_at", sa.Float(53), nullable=True),
        sa.Column("disabled_reason", sa.Text(), nullable=True),
        sa.Column("failing_since", sa.Float(53), nullable=True),
    )
    op.create_index(
        op.f("ix_webhooks_owner_created_at_id"), "webhooks", ["owner", "created_at", "id"]
    )
    op.create_index(op.f("ix_webhooks_failing_since"), "webhooks", ["failing_since"])
    for name, type_ in (("earlier_attempts", sa.BigInteger()), ("created_at", sa.Float(53))):
        op.add_column("deliveries", sa.Column(name, type_, server_default="0", nullable=False))
    op.create_index(
        op.f("ix_deliveries_target_created_at_event_id"),
        "deliveries",
        ["target", "created_at", "event_id"],
    )
    op.create_table(
        "delivery_attempts",
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("response", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("event_id", "target", "attempt", name=op.f("pk_delivery_attempts")),
        sa.ForeignKeyConstraint(
            ["event_id", "target"],
            ["deliveries.event_id", "deliveries.target"],
            name=op.f("fk_delivery_attempts_event_id_target"),
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
