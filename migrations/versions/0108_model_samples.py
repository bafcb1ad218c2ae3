"""The sampled rows of models are blobs; the few that reasons compare with are rows of their own from the start.

Housekeeping moves the bytes of `model_samples` into the store, because this process may have no access to it.

Revision: 0108, after 0107.
"""

import sqlalchemy as sa
from alembic import op

revision = "0108"
down_revision = "0107"
branch_labels = None
depends_on = None

REFERENCE_ROWS = 64


def upgrade() -> None:
    op.create_table(
        "model_sample_files",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("sample_key", sa.Text(), nullable=False),
        sa.Column("sample_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("model_id", "part", name=op.f("pk_model_sample_files")),
        sa.ForeignKeyConstraint(
            ["dataset_id"],
            ["datasets.id"],
            name=op.f("fk_model_sample_files_dataset_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_sample_files_model_id"),
            ondelete="CASCADE",
        ),
    )
    for column in ("dataset_id", "sample_key"):
        op.create_index(op.f(f"ix_model_sample_files_{column}"), "model_sample_files", [column])
    columns = ("model_id", "part", "rows", "values", "weight")
    samples = sa.table("model_samples", *map(sa.column, columns)).c
    kept = sa.table("model_reference_rows", *map(sa.column, columns))
    row_bytes = sa.func.length(samples["values"], type_=sa.Integer) // samples.rows
    few = sa.case((samples.rows < REFERENCE_ROWS, samples.rows), else_=REFERENCE_ROWS)
    first = sa.select(
        samples.model_id,
        samples.part,
        few,
        sa.func.substr(samples["values"], 1, sa.cast(row_bytes * few, sa.Integer)),
        sa.func.substr(samples.weight, 1, sa.cast(8 * few, sa.Integer)),
    ).where(
        samples.part != "validation",
        ~sa.exists().where(kept.c.model_id == samples.model_id, kept.c.part == samples.part),
    )
    op.execute(sa.insert(kept).from_select(columns, first))
    # what is left for housekeeping
    op.execute(
        "DELETE FROM model_samples WHERE part LIKE '%\\_negative' ESCAPE '\\' "
        "OR part LIKE '%\\_positive' ESCAPE '\\'"
    )


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")
