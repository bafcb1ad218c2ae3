"""Scores by group of an evaluation, from which cuts by group are promised.

Revision: 0027
Before: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("evaluation_curves", sa.Column("group_scores", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    op.drop_column("evaluation_curves", "group_scores")
