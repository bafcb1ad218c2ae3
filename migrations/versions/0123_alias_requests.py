"""Requests to change protected aliases, their approvals, and emergencies in which the protection is suspended.

Revision: 0123, after 0122.
"""

import sqlalchemy as sa
from alembic import op

revision = "0123"
down_revision = "0122"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "alias_requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("change", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("before", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("alias_revision", sa.BigInteger(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("model_version", sa.BigInteger(), nullable=False),
        sa.Column("artifact_sha256", sa.Text(), nullable=False),
        sa.Column("calibration_version", sa.BigInteger(), nullable=True),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("evidence_key", sa.Text(), nullable=True),
        sa.Column("evidence_bytes", sa.BigInteger(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=True),
        sa.Column("root_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("expires_at", sa.Float(precision=53), nullable=False),
        sa.Column("decided_at", sa.Float(precision=53), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_by_id", sa.Text(), nullable=True),
        sa.Column("decision_reason", sa.Text(), nullable=True),
        sa.Column("applied_revision", sa.BigInteger(), nullable=True),
        sa.Column("applied_calibration", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alias_requests")),
    )
    for columns in (
        ["owner", "created_at", "id"],
        ["owner", "name", "alias", "state"],
        ["owner", "model_id"],
        ["evidence_key"],
    ):
        op.create_index(op.f(f"ix_alias_requests_{'_'.join(columns)}"), "alias_requests", columns)
    op.create_table(
        "break_glass",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("until", sa.Float(precision=53), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=True),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", "alias", name=op.f("pk_break_glass")),
    )
    op.create_index(op.f("ix_break_glass_until"), "break_glass", ["until"])
    for name in ("alias_request_id", "approved_by_id"):
        op.add_column("model_alias_history", sa.Column(name, sa.Text(), nullable=True))
    for name in ("alias_request_id", "approved_by", "approved_by_id"):
        op.add_column("model_calibrations", sa.Column(name, sa.Text(), nullable=True))
    for table in ("model_alias_history", "model_calibrations"):
        op.add_column(
            table,
            sa.Column("break_glass", sa.Boolean(), server_default=sa.false(), nullable=False),
        )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
