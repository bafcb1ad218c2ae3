"""Columns and stored documents have the words of the API: baselines, guarantee, cutoff, metric, evaluated, trained on.

It renames, as no other revision does: processes of the version before stop before it runs.

Revision: 0104, after 0103.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None

BATCH = 500
"""Rows that are read and written at once."""
NAMED_NOT_NULL = (("model_list_metrics", "metrics"), ("model_calibrations", "trained_on"))
"""Columns whose NOT NULL is a constraint of PostgreSQL 18 with the column's name in its own."""
COLUMNS = (
    ("models", "beats_controls", "beats_baselines"),
    ("model_aliases", "promise", "guarantee"),
    ("model_aliases", "cut", "cutoff"),
    ("model_alias_history", "promise", "guarantee"),
    ("model_alias_history", "cut", "cutoff"),
    ("model_list_metrics", "figures", "metrics"),
    ("model_list_metrics", "order_figures", "order_metrics"),
    ("model_calibrations", "learnt_on", "trained_on"),
)
DOCUMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "jobs": (("id",), ("spec", "progress", "error", "result")),
    "job_events": (("job_id", "seq"), ("data",)),
    "idempotency": (("owner", "route", "key"), ("response",)),
    "audit_entries": (("id",), ("made",)),
    "model_list_metrics": (("model_id", "part"), ("metrics",)),
    "model_baselines": (("model_id",), ("baselines", "windows")),
    "evaluations": (("id",), ("metrics", "drift")),
    "comparisons": (("id",), ("result",)),
    "batch_scores": (("id",), ("terms", "summary")),
}
"""Of each table its key, and the documents that have old keys."""
KEYS = {
    "controls": "baselines",
    "beats_controls": "beats_baselines",
    "promise": "guarantee",
    "cut": "cutoff",
    "cuts": "cutoffs",
    "cut_reason": "cutoff_reason",
    "alias_cut": "alias_cutoff",
    "figure": "metric",
    "figures": "metrics",
    "judged": "evaluated",
    "judged_rows": "evaluated_rows",
    "learnt_on": "trained_on",
}
VALUES = {
    ("what", "control"): "baseline",
    ("reference", "cut"): "cutoff",
    ("kind", "cut"): "cutoff",
    ("code", "no_controls"): "no_baselines",
    ("code", "no_promise"): "no_guarantee",
}
"""What stands at a key, and what is to stand there."""
NAMED_BY_PEOPLE = {"tags", "algorithm", "parameters", "defaults", "space", "columns", "violation"}
"""Keys of documents whose own keys are names of columns, tags or parameters: they stay as they are."""


def upgrade() -> None:
    for table, old, new in COLUMNS:
        op.execute(f'ALTER TABLE {table} RENAME COLUMN "{old}" TO "{new}"')
    if op.get_bind().dialect.name == "postgresql":
        for table, column in NAMED_NOT_NULL:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL")
    rename_baselines()
    for table, (key, columns) in DOCUMENTS.items():
        for column in columns:
            rewrite(table, key, column)


def downgrade() -> None:
    raise NotImplementedError("there is no way back: restore a backup")


def rename_baselines() -> None:
    """Make the table anew: SQLite cannot rename constraints."""
    new = op.create_table(
        "model_baselines",
        sa.Column("model_id", sa.Text(), nullable=False),
        sa.Column("level", sa.Float(precision=53), nullable=False),
        sa.Column("baselines", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("windows", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("decided_on", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("skipped", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("model_id", name=op.f("pk_model_baselines")),
        sa.ForeignKeyConstraint(
            ["model_id"],
            ["models.id"],
            name=op.f("fk_model_baselines_model_id"),
            ondelete="CASCADE",
        ),
    )
    names = ("model_id", "level", "controls", "windows", "decided_on", "skipped")
    old = sa.table("model_controls", *(sa.column(name) for name in names))
    op.execute(new.insert().from_select([*new.c], sa.select(*old.c)))
    op.drop_table("model_controls")


def rewrite(table: str, key: tuple[str, ...], column: str) -> None:
    """Rename the keys of the documents of a column, a batch at a time."""
    rows = sa.table(table, *(sa.column(name) for name in key), sa.column(column, sa.JSON()))
    by = [rows.c[name] for name in key]
    document = rows.c[column]
    update = (
        sa.update(rows)
        .where(*(each == sa.bindparam(f"of_{each.name}") for each in by))
        .values({document: sa.bindparam("new", type_=sa.JSON(none_as_null=True))})
    )
    connection = op.get_bind()
    for batch in batches(rows, by, document):
        changed = [
            {"new": new} | {f"of_{name}": value for name, value in zip(key, row, strict=False)}
            for *row, old in batch
            if (new := renamed(old)) != old
        ]
        if changed:
            connection.execute(update, changed)


def batches(
    rows: sa.TableClause, by: Sequence[sa.ColumnElement[Any]], document: sa.ColumnElement[Any]
) -> Iterator[list[Any]]:
    """Yield the keys and the documents that may have an old key, in the order of the keys."""
    text = sa.cast(document, sa.Text())
    old = sa.or_(*(text.contains(f'"{key}"') for key in KEYS), text.contains('"no_promise"'))
    old = sa.or_(old, text.contains('"control"'), text.contains('"no_controls"'))
    query = sa.select(*by, document).where(old).order_by(*by).limit(BATCH)
    found: list[Any] = [*op.get_bind().execute(query)]
    while found:
        yield found
        last = [sa.literal(value) for value in found[-1][:-1]]
        after = sa.tuple_(*by) > sa.tuple_(*last) if len(by) > 1 else by[0] > last[0]
        found = [*op.get_bind().execute(query.where(after))]


def renamed(document: Any) -> Any:
    """Return a document with the new keys; what people have named stays."""
    if isinstance(document, list):
        return [renamed(each) for each in document]
    if not isinstance(document, dict):
        return document
    return {
        KEYS.get(key, key): value
        if key in NAMED_BY_PEOPLE
        else VALUES.get((key, value), value)
        if isinstance(value, str)
        else renamed(value)
        for key, value in document.items()
    }
