"""The distributions of a model's training columns, and the drift of a batch score against them.

Revision: 0113, after 0112.
"""

import sqlalchemy as sa
from alembic import op

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "model_profiles",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("profile", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_profiles_model_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_profiles")),
    )
    op.add_column("batch_scores", sa.Column("drift", sa.JSON(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
