"""The profile of a dataset as a report: its rows, its features, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.datasets.leaks import leak_in_words
from app.datasets.service import is_constant
from app.ingest.values import DATETIME, spell_date
from app.measures import percent
from app.platform.tables import Dataset, DatasetKind, DatasetProfile
from app.reports import document
from app.reports.document import (
    Bars,
    Block,
    Cell,
    Document,
    Items,
    Paragraph,
    Section,
    Table,
    Tile,
    Tiles,
)

MAX_COLUMNS = 500
"""Most features that are shown; the JSON report has all."""
_MAX_NAMED = 20
_MAX_TOP = 5

Column = Mapping[str, Any]


def describe_profile(dataset: Dataset, profile: DatasetProfile) -> Document:
    found = {column["name"]: column for column in profile.columns}
    features = [
        {**column, **found.get(column["name"], {})}
        for column in dataset.columns
        if column["role"] == "feature"
    ]
    notes = list(_notes(dataset, profile, features))
    return Document(
        title=f"Profile of {dataset.name}, version {dataset.version}",
        subtitle=f"{dataset.id}, uploaded {document.moment(dataset.created_at)}",
        footer=f"Profile of {dataset.name}, version {dataset.version} ({dataset.id})",
        sections=[
            Section("Summary", [Tiles(list(_column_tiles(dataset, profile, len(features))))]),
            Section(
                "Check before you train", [Items(notes) if notes else Paragraph("No remarks.")]
            ),
            Section("Features", _column_features(dataset, profile, features)),
            Section("Other columns", [_others(dataset)]),
            Section("Origin", [Table((), list(_origin(dataset)))]),
        ],
    )


def _column_tiles(dataset: Dataset, profile: DatasetProfile, features: int) -> Iterator[Tile]:
    yield Tile("rows", document.count(dataset.rows), "")
    if dataset.positives is not None:
        share = dataset.positives / (dataset.rows or 1)
        yield Tile(
            "positives", document.count(dataset.positives), f"{percent(share, 2)} of the rows"
        )
    for label in dataset.labels or ():
        share = label["positives"] / (dataset.rows or 1)
        yield Tile(
            f"positives of {label['name']}",
            document.count(label["positives"]),
            f"{percent(share, 2)}",
        )
    if dataset.kind == DatasetKind.PREFERENCES:
        pairs = None if dataset.pairs is None else dataset.pairs.pairs
        yield Tile("pairs", document.count(pairs), "")
    yield Tile("features", document.count(features), "")
    about = ", estimated" if profile.duplicates["estimated"] else ""
    repeated = profile.duplicates["repeated"]
    yield Tile(
        "duplicate rows", document.count(repeated), f"equal to another row in every feature{about}"
    )


def _notes(dataset: Dataset, profile: DatasetProfile, features: Sequence[Column]) -> Iterator[str]:
    """Say what needs attention."""
    leaks = [leak_in_words(column, dataset.rows or 0) for column in features]
    yield from list(filter(None, leaks))[:_MAX_NAMED]
    if profile.over_time is not None and profile.over_time["words"] is not None:
        yield profile.over_time["words"]
    constant = [column["name"] for column in features if is_constant(column)]
    if constant:
        yield f"These features have the same value in all rows, or no values: {_names(constant)}."
    for warning in dataset.warnings[:_MAX_NAMED]:
        yield f"{warning['column']}: {warning['detail']} ({warning['parameter']})."
    if (more := len(dataset.warnings) - _MAX_NAMED) > 0:
        yield f"The dataset has {more} more warnings."
    gaps = [c["name"] for c in features if 2 * c["missing"] > (dataset.rows or 0) > c["missing"]]
    if gaps:
        yield f"These features are missing in most rows: {_names(gaps)}."
    both = profile.duplicates.get("rows_of_both_classes")
    if both:
        yield f"{both:,} rows have the same features as a row of the other class, so no ranker can separate them."


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def _column_features(
    dataset: Dataset, profile: DatasetProfile, features: Sequence[Column]
) -> list[Block]:
    curve_part = any(column.get("auc") for column in features)
    head = ["feature", "type", "missing", "distinct", "distribution", "minimum, median, maximum"]
    rows: list[list[Cell]] = []
    for column in features[:MAX_COLUMNS]:
        row: list[Cell] = [
            column["name"],
            column["type"],
            _share(column["missing"], dataset.rows or 0),
            _distinct(column),
            Bars(_counts(column)),
            _values(column, dataset.rows or 0),
        ]
        rows.append([*row, document.interval(column.get("auc"), 3)] if curve_part else row)
    blocks: list[Block] = [
        Table([*head, *(["feature AUC"] if curve_part else [])], rows),
        *document.list_more(features, MAX_COLUMNS, " features"),
    ]
    if profile.rows < (dataset.rows or 0):
        looked = f"a random sample of {profile.rows:,} rows."
        blocks.append(Paragraph(f"Distributions and AUCs are from {looked}"))
    if curve_part:
        blocks.append(
            Paragraph(
                "The feature AUC shows how well the feature ranks the label without any other. 0.5 is random; below "
                "0.5 the order is reversed. Values near 0 or 1 suggest that the feature is derived from the label."
            )
        )
    return blocks


def _share(part: int, whole: int) -> str:
    return "—" if not part else f"{part:,} ({percent(part / max(whole, 1))})"


def _counts(column: Column) -> list[int]:
    """Count numbers, or the most frequent categories."""
    histogram = column.get("histogram")
    if histogram is not None:
        return list(histogram["counts"])
    return [entry["count"] for entry in column.get("top") or ()]


def _values(column: Column, rows: int) -> str:
    """Return minimum, median and maximum, or the most frequent categories with fractions."""
    if column["type"] == "categorical":
        top = column.get("top") or []
        shown = [f"{e['value']} {percent(e['count'] / max(rows, 1), 0)}" for e in top[:_MAX_TOP]]
        return ", ".join(shown) + (", …" if column["distinct"] > len(shown) else "")
    if column["min"] is None:
        return "—"
    middle = [q["value"] for q in column.get("quantiles") or () if q["at"] == 0.5]
    ends = (column["min"], *middle, column["max"])
    if column["type"] == DATETIME:
        return ", ".join(map(spell_date, ends))
    return ", ".join(f"{value:.6g}" for value in ends)


def _distinct(column: Column) -> str:
    more = " or more" if column.get("distinct_is_bound") else ""
    return f"{document.count(column.get('distinct'))}{more}"


def _others(dataset: Dataset) -> Table:
    rows: list[list[Cell]] = []
    for column in dataset.columns:
        if column["role"] == "feature":
            continue
        missing = column["missing"]
        top = ", ".join(
            f"{entry['value']} ({entry['count']:,})"
            for entry in (column.get("top") or ())[:_MAX_TOP]
        )
        rows.append(
            [
                column["name"],
                column["role"],
                column["type"] or "—",
                "—" if not missing else document.count(missing),
                _distinct(column),
                top or "—",
            ]
        )
    return Table(["column", "role", "type", "missing", "distinct", "most frequent"], rows)


def _origin(dataset: Dataset) -> Iterator[list[str]]:
    yield ["SHA-256 of its content", dataset.sha256]
    yield ["SHA-256 of the upload", dataset.upload_sha256]
    encoding = f", {dataset.content_encoding}" if dataset.content_encoding else ""
    yield ["upload", f"{document.size(dataset.bytes)} of {dataset.content_type}{encoding}"]
    yield ["version", f"{dataset.version} of series {dataset.series_id}"]
    if dataset.parent_id is not None:
        yield ["made from", f"{dataset.parent_id}, by {dataset.mode}"]
    for name, given in (
        ("declared categorical", dataset.reading["categorical"]),
        ("declared protected", dataset.reading.get("protected")),
        ("dropped", dataset.reading["drop"]),
        ("treated as missing", dataset.reading["missing"]),
    ):
        if given:
            yield [name, _names(given)]
