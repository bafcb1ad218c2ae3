"""Calibrations of models: probabilities beside scores.

Revision: 0023
Before: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("models", sa.Column("calibration_version", sa.BigInteger(), nullable=True))
    op.create_table(
        "model_calibrations",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("parameters", sa.LargeBinary(), nullable=False),
        sa.Column("low", sa.LargeBinary(), nullable=False),
        sa.Column("high", sa.LargeBinary(), nullable=False),
        sa.Column("prevalence", sa.Float(precision=53), nullable=False),
        sa.Column("learnt_on", sa.Text(), nullable=False),
        sa.Column("dataset", sa.JSON(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("positives", sa.BigInteger(), nullable=False),
        sa.Column("log_losses", sa.JSON(), nullable=False),
        sa.Column("reliability", sa.JSON(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name="fk_model_calibrations_model_id_models",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("model_id", "version", name="pk_model_calibrations"),
    )


def downgrade() -> None:
    op.drop_table("model_calibrations")
    op.drop_column("models", "calibration_version")
