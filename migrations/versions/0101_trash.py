"""What is deleted goes into the trash; the rows that reasons compare with outlive their dataset.

Revision: 0101, after 0100.
"""

import sqlalchemy as sa
from alembic import op

revision = "0101"
down_revision = "0100"
branch_labels = None
depends_on = None

TABLES = ("datasets", "models", "evaluations", "comparisons")


def upgrade() -> None:
    for table in TABLES:
        op.add_column(table, sa.Column("deleted_at", sa.Float(precision=53), nullable=True))
        op.create_index(op.f(f"ix_{table}_owner_deleted_at"), table, ["owner", "deleted_at"])
    op.create_table(
        "model_reference_rows",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.LargeBinary(), nullable=False),
        sa.Column("weight", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_reference_rows")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_reference_rows_model_id"),
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    op.drop_table("model_reference_rows")
    for table in TABLES:
        op.drop_index(op.f(f"ix_{table}_owner_deleted_at"), table)
        op.drop_column(table, "deleted_at")
