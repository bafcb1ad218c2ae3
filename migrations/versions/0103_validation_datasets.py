"""The dataset that a job or a model validates on is a column, computed from its JSON; datasets are found by index.

The database computes it, so that rows that a process of the version before inserts have it too.

Revision: 0103, after 0102.
"""

import sqlalchemy as sa
from alembic import op

revision = "0103"
down_revision = "0102"
branch_labels = None
depends_on = None

SPEC = sa.column("spec", sa.JSON())
VALIDATION = sa.column("validation", sa.JSON())
COMPUTED = {
    "jobs": sa.func.coalesce(
        SPEC["validation", "dataset_id"].as_string(),
        SPEC["training", "validation", "dataset_id"].as_string(),
    ),
    "models": VALIDATION[("dataset_id",)].as_string(),
}
INDEXES = (
    ("jobs", "validation_dataset_id"),
    ("models", "dataset_id"),
    ("models", "validation_dataset_id"),
    ("datasets", "parent_id"),
    ("datasets", "base_id"),
    ("evaluations", "dataset_id"),
    ("comparisons", "dataset_id"),
)


def upgrade() -> None:
    for table, value in COMPUTED.items():
        computed = sa.Computed(value, persisted=True)
        with op.batch_alter_table(table) as batch:  # SQLite adds such a column only by a copy
            batch.add_column(sa.Column("validation_dataset_id", sa.Text(), computed, nullable=True))
    for table, column in INDEXES:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    for table, column in INDEXES:
        op.drop_index(op.f(f"ix_{table}_{column}"), table)
    for table in COMPUTED:
        op.drop_column(table, "validation_dataset_id")
