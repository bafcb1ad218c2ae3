"""The data that a model comes from."""

from __future__ import annotations

from collections.abc import Iterator

from app.reports import document
from app.reports.document import Block, Paragraph, Table
from app.reports.service import Facts

MOST_FEATURES = 100


def data(facts: Facts) -> list[Block]:
    """The dataset, its label and its features."""
    blocks: list[Block] = [Table((), list(_dataset(facts))), Table(*_features(facts))]
    if (more := len(facts.model.features) - MOST_FEATURES) > 0:
        blocks.append(Paragraph(f"… and {more:,} features more."))
    return blocks


def _dataset(facts: Facts) -> Iterator[list[str]]:
    model, dataset = facts.model, facts.dataset
    if model.dataset is None:
        yield ["dataset", model.dataset_id]
    else:
        yield ["dataset", document.version(model.dataset)]
        yield ["SHA-256 of its content", model.dataset["sha256"]]
    if dataset is None:
        yield ["dataset is there", "no, it was deleted since"]
    else:
        yield ["uploaded", f"{document.moment(dataset.created_at)}, {document.size(dataset.bytes)}"]
        yield ["SHA-256 of the upload", dataset.upload_sha256]
        yield ["rows", document.count(dataset.rows)]
        if dataset.positives is not None:
            yield [
                "positives, negatives",
                f"{document.count(dataset.positives)}, {document.count(dataset.negatives)}",
            ]
        if dataset.pairs is not None:
            yield [
                "pairs",
                f"{document.count(dataset.pairs.pairs)} (SHA-256 {dataset.pairs.sha256})",
            ]
        for name, column in (
            ("row weights", dataset.weight),
            ("groups that stay together", dataset.group),
        ):
            if column is not None:
                yield [name, column]
    if model.validation_dataset is not None:
        yield ["validation dataset", document.version(model.validation_dataset)]
        yield ["SHA-256 of its content", model.validation_dataset["sha256"]]
    if model.label is not None:
        yield [
            "label",
            f"{model.label}: positive is {model.positive}, negative is {model.negative}",
        ]
    for label in model.labels or ():
        yield [
            "label",
            f"{label['name']}: positive is {label['positive']}, negative is {label['negative']}",
        ]
    yield ["features", document.count(len(model.features))]


def _features(facts: Facts) -> tuple[list[str], list[list[str]]]:
    """A row per feature; how it ranks alone where that was measured."""
    alone = {column["name"]: column for column in facts.profile.columns} if facts.profile else {}
    measured = any(column.get("auc") for column in alone.values())
    head = [
        "feature",
        "type",
        "missing in training",
        "categories",
        *(["AUC alone"] if measured else []),
    ]
    rows = []
    for feature in facts.model.features[:MOST_FEATURES]:
        row = [
            feature["name"],
            feature["type"],
            "yes" if feature["missing"] else "no",
            _categories(feature.get("categories"), feature.get("n_categories")),
        ]
        if measured:
            row.append(document.interval(alone.get(feature["name"], {}).get("auc"), 3))
        rows.append(row)
    return head, rows


def _categories(names: list[str] | None, number: int | None) -> str:
    if names is None or number is None:
        return "—"
    shown = ", ".join(names[:5])
    return f"{number:,}: {shown}{', …' if number > 5 else ''}"
