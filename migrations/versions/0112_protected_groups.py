"""Models and evaluations store what each threshold flags in each group of protected columns.

Revision: 0112, after 0111.
"""

import sqlalchemy as sa
from alembic import op

revision = "0112"
down_revision = "0111"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_groups",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("steps", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_groups_model_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_groups")),
    )
    op.add_column("evaluation_curves", sa.Column("group_steps", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
