"""The profile of a dataset as a document: what its columns hold, and what somebody should look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from app.datasets.constants import is_constant
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

MOST_COLUMNS = 500
"""Features that are shown; the JSON has all."""
_MOST_NAMED = 20
_MOST_TOP = 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Column = Mapping[str, Any]


def describe_columns(dataset: Dataset, profile: DatasetProfile) -> Document:
    """Write the profile of a ready dataset."""
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
        sections=[
            Section("Summary", [Tiles(list(_tiles(dataset, profile, len(features))))]),
            Section("To be looked at", [Items(notes) if notes else Paragraph("Nothing.")]),
            Section("Features", _features(dataset, profile, features)),
            Section("Other columns", [_others(dataset)]),
            Section("Where it comes from", [Table((), list(_origin(dataset)))]),
        ],
    )


def _tiles(dataset: Dataset, profile: DatasetProfile, features: int) -> Iterator[Tile]:
    yield Tile("rows", document.count(dataset.rows), "")
    if dataset.positives is not None:
        share = dataset.positives / (dataset.rows or 1)
        yield Tile("positives", document.count(dataset.positives), f"{share:.2%} of the rows")
    for label in dataset.labels or ():
        share = label["positives"] / (dataset.rows or 1)
        yield Tile(
            f"positives of {label['name']}", document.count(label["positives"]), f"{share:.2%}"
        )
    if dataset.kind == DatasetKind.PREFERENCES:
        pairs = None if dataset.pairs is None else dataset.pairs.pairs
        yield Tile("pairs", document.count(pairs), "")
    yield Tile("features", document.count(features), "")
    about = ", estimated" if profile.duplicates["estimated"] else ""
    repeated = profile.duplicates["repeated"]
    yield Tile(
        "repeated rows", document.count(repeated), f"equal to another in every feature{about}"
    )


def _notes(dataset: Dataset, profile: DatasetProfile, features: Sequence[Column]) -> Iterator[str]:
    leaks = [column["name"] for column in features if column.get("leak")]
    if leaks:
        yield f"These features rank so well alone that they may have seen the label: {_names(leaks)}."
    constant = [column["name"] for column in features if is_constant(column)]
    if constant:
        yield f"These features are the same in all rows, or missing in all: {_names(constant)}."
    for warning in dataset.warnings[:_MOST_NAMED]:
        yield f"{warning['column']}: {warning['detail']} ({warning['parameter']})."
    if (more := len(dataset.warnings) - _MOST_NAMED) > 0:
        yield f"{more} more warnings stand in the dataset."
    gaps = [c["name"] for c in features if 2 * c["missing"] > (dataset.rows or 0) > c["missing"]]
    if gaps:
        yield f"These features are missing in most rows: {_names(gaps)}."
    both = profile.duplicates.get("rows_of_both_classes")
    if both:
        yield f"{both:,} rows have an equal of the other class: no ranker can tell them apart."


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _features(dataset: Dataset, profile: DatasetProfile, features: Sequence[Column]) -> list[Block]:
    judged = any(column.get("auc") for column in features)
    head = ["feature", "type", "missing", "distinct", "distribution", "from, median, to"]
    rows: list[list[Cell]] = []
    for column in features[:MOST_COLUMNS]:
        row: list[Cell] = [
            column["name"],
            column["type"],
            _share(column["missing"], dataset.rows or 0),
            document.count(column["distinct"]),
            Bars(_counts(column)),
            _values(column, dataset.rows or 0),
        ]
        rows.append([*row, document.interval(column.get("auc"), 3)] if judged else row)
    blocks: list[Block] = [Table([*head, *(["AUC alone"] if judged else [])], rows)]
    if (more := len(features) - MOST_COLUMNS) > 0:
        blocks.append(Paragraph(f"… and {more:,} features more."))
    if profile.rows < (dataset.rows or 0):
        looked = f"{profile.rows:,} rows, drawn at random."
        blocks.append(Paragraph(f"Distributions and AUCs were looked at in {looked}"))
    if judged:
        blocks.append(
            Paragraph(
                "AUC alone: how well the feature ranks the label by itself, with its interval; below ½ it ranks the "
                "other way round, near 0 or 1 it has probably seen the label."
            )
        )
    return blocks


def _share(part: int, whole: int) -> str:
    return "—" if not part else f"{part:,} ({part / max(whole, 1):.1%})"


def _counts(column: Column) -> list[int]:
    """A histogram of numbers; of categories the most frequent, in their order."""
    histogram = column.get("histogram")
    if histogram is not None:
        return list(histogram["counts"])
    return [entry["count"] for entry in column.get("top") or ()]


def _values(column: Column, rows: int) -> str:
    """The least, the middle and the greatest value; of categories the most frequent with their shares."""
    if column["type"] == "categorical":
        top = column.get("top") or []
        shown = [f"{e['value']} {e['count'] / max(rows, 1):.0%}" for e in top[:_MOST_TOP]]
        return ", ".join(shown) + (", …" if column["distinct"] > len(shown) else "")
    if column["min"] is None:
        return "—"
    middle = [q["value"] for q in column.get("quantiles") or () if q["at"] == 0.5]
    ends = (column["min"], *middle, column["max"])
    if column["type"] == "datetime":
        return ", ".join(map(_date, ends))
    return ", ".join(f"{value:.6g}" for value in ends)


def _date(seconds: float) -> str:
    try:
        at = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # typed times reach beyond the calendar
        return f"{seconds:.6g} s"
    return at.strftime("%Y-%m-%d") if seconds % 86_400 == 0 else at.strftime("%Y-%m-%d %H:%M")


def _others(dataset: Dataset) -> Table:
    rows: list[list[Cell]] = []
    for column in dataset.columns:
        if column["role"] == "feature":
            continue
        distinct, missing = column.get("distinct"), column["missing"]
        top = ", ".join(
            f"{entry['value']} ({entry['count']:,})"
            for entry in (column.get("top") or ())[:_MOST_TOP]
        )
        rows.append(
            [
                column["name"],
                column["role"],
                column["type"] or "—",
                "—" if not missing else document.count(missing),
                document.count(distinct),
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
        ("declared categorical", dataset.categorical),
        ("left out", dataset.drop),
        ("taken for missing", dataset.missing),
    ):
        if given:
            yield [name, _names(given)]
