"""Reasons: the average rows of models that they start from, and the dictionaries that phrase them.

Revision: 0028
Before: 0027
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_references",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("negatives", sa.BigInteger(), nullable=False),
        sa.Column("positives", sa.BigInteger(), nullable=False),
        sa.Column("negative_score", sa.Float(precision=53), nullable=False),
        sa.Column("positive_score", sa.Float(precision=53), nullable=False),
        sa.Column("negative_parts", sa.LargeBinary(), nullable=False),
        sa.Column("positive_parts", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name="fk_model_references_model_id_models",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", name="pk_model_references"),
    )
    op.create_table(
        "reason_codes",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.JSON(), nullable=False),
        sa.Column("at", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", "revision", name="pk_reason_codes"),
    )


def downgrade() -> None:
    op.drop_table("reason_codes")
    op.drop_table("model_references")
