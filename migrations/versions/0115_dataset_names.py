"""Datasets are numbered by name, so that a name and a version identify one of an owner's datasets; and models have the
scores of their validation rows.

Datasets of a name that have one number keep it: models and jobs refer to it. New numbers are greater than all others.

Revision: 0115, after 0114.
"""

import sqlalchemy as sa
from alembic import op

revision = "0115"
down_revision = "0114"
branch_labels = None
depends_on = None

GREATEST = """
INSERT INTO dataset_names (owner, name, last_version)
SELECT owner, name, max(number) FROM (
    SELECT owner, name, version AS number FROM datasets
    UNION ALL
    SELECT datasets.owner, datasets.name, dataset_series.last_version
    FROM dataset_series JOIN datasets
    ON datasets.id = dataset_series.first_id OR datasets.first_id = dataset_series.first_id
) AS numbers GROUP BY owner, name
"""


def upgrade() -> None:
    op.create_table(
        "dataset_names",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("last_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", name=op.f("pk_dataset_names")),
    )
    op.execute(GREATEST)
    op.drop_table("dataset_series")
    op.create_table(
        "model_held_out",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("scores_key", sa.Text(), nullable=False),
        sa.Column("scores_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_held_out")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_model_held_out_dataset_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_held_out_model_id"),
            ondelete="CASCADE",
        ),
    )
    for column in ("dataset_id", "scores_key"):
        op.create_index(op.f(f"ix_model_held_out_{column}"), "model_held_out", [column])


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
