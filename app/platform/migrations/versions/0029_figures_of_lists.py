"""Models that were trained within queries, and their figures of lists.

Revision: 0029
Before: 0028
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("query_column", sa.Text(), nullable=True))
    op.create_table(
        "model_list_metrics",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("queries", sa.BigInteger(), nullable=True),
        sa.Column("figures", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("grades", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("order_figures", sa.JSON(none_as_null=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name="fk_model_list_metrics_model_id_models",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "part", name="pk_model_list_metrics"),
    )


def downgrade() -> None:
    op.drop_table("model_list_metrics")
    op.drop_column("models", "query_column")
