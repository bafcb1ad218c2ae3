"""Reasons, evidence and protection of aliases; comments on models; acknowledged changes; words in the audit log.

Revision: 0110, after 0109.
"""

import sqlalchemy as sa
from alembic import op

revision = "0110"
down_revision = "0109"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evaluation_acknowledgements",
        sa.Column("evaluation_id", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=True),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_evaluation_acknowledgements_evaluation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", name=op.f("pk_evaluation_acknowledgements")),
    )
    op.create_table(
        "model_comments",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("principal_id", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_comments_model_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_comments")),
    )
    op.create_index(
        op.f("ix_model_comments_model_id_created_at_id"),
        "model_comments",
        ["model_id", "created_at", "id"],
    )
    op.add_column("audit_entries", sa.Column("summary", sa.Text(), nullable=True))
    for table in ("model_aliases", "model_alias_history"):
        op.add_column(
            table,
            sa.Column("protected", sa.Boolean(), server_default=sa.false(), nullable=False),
        )
    for name, kind in (
        ("model_version", sa.BigInteger()),
        ("change", sa.Text()),
        ("restores", sa.BigInteger()),
        ("calibration_version", sa.BigInteger()),
        ("evidence", sa.JSON()),
        ("evidence_key", sa.Text()),
        ("evidence_bytes", sa.BigInteger()),
    ):
        op.add_column("model_alias_history", sa.Column(name, kind, nullable=True))
    op.create_index(
        op.f("ix_model_alias_history_evidence_key"), "model_alias_history", ["evidence_key"]
    )
    for name, kind in (
        ("restores", sa.BigInteger()),
        ("reason", sa.Text()),
        ("author", sa.Text()),
    ):
        op.add_column("model_calibrations", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
