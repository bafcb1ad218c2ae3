"""Erasures that cover tables, legal holds, and days of retention by owner.

Revision: 0125, after 0124.
"""

import sqlalchemy as sa
from alembic import op

revision = "0125"
down_revision = "0124"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "erasures", sa.Column("key_columns", sa.JSON(), server_default="[]", nullable=False)
    )
    op.add_column(
        "erasures",
        sa.Column("retire_models", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column("erasures", sa.Column("job_id", sa.Text(), nullable=True))
    op.add_column("erasures", sa.Column("report", sa.JSON(), nullable=True))
    op.add_column("erasures", sa.Column("old_keys", sa.JSON(), nullable=True))
    op.create_index(op.f("ix_erasures_job_id"), "erasures", ["job_id"])
    op.create_table(
        "legal_holds",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=True),
        sa.Column("placed_at", sa.Float(53), nullable=False),
        sa.Column("released_at", sa.Float(53), nullable=True),
        sa.Column("release_reason", sa.Text(), nullable=True),
        sa.Column("released_by", sa.Text(), nullable=True),
        sa.Column("releasing_principal_id", sa.Text(), nullable=True),
    )
    op.create_index(
        op.f("ix_legal_holds_owner_placed_at_id"), "legal_holds", ["owner", "placed_at", "id"]
    )
    op.create_index(
        op.f("ix_legal_holds_owner_released_at"), "legal_holds", ["owner", "released_at"]
    )
    op.create_table(
        "retention_rules",
        sa.Column("owner", sa.Text(), primary_key=True),
        *(
            sa.Column(name, sa.Float(53), nullable=True)
            for name in ("datasets", "models", "batch_scores", "evaluations", "decisions", "jobs")
        ),
        sa.Column("updated_at", sa.Float(53), nullable=False),
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
