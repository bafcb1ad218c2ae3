"""How good the model is: at a glance, and in full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.platform.tables import DatasetKind
from app.reports import document
from app.reports.document import Block, Paragraph, Table, Tile, Tiles
from app.reports.plots import rows_of
from app.reports.service import Facts

Json = dict[str, Any]


def summary(facts: Facts) -> list[Block]:
    """What the model is for, and the figures that speak for it."""
    blocks: list[Block] = [Paragraph(" ".join(_purpose(facts)))]
    tiles = list(_tiles(facts))
    return [*blocks, Tiles(tiles)] if tiles else blocks


def _purpose(facts: Facts) -> Iterator[str]:
    model = facts.model
    if model.kind == DatasetKind.PREFERENCES:
        yield "The model puts items in order, the better ones first, as the pairs that it has learnt from say."
    elif model.labels is not None:
        names = ", ".join(label["name"] for label in model.labels)
        yield f"The model ranks rows by each of {len(model.labels)} labels: {names}."
    else:
        yield f"The model ranks rows: those that probably have {model.label} = {model.positive} come first."
    if facts.part is None:
        yield "It was not judged."
        return
    rows = rows_of(model.validation, facts.part)
    if rows == "out-of-fold":
        yield "Each row was judged by a ranker of its kind that had not learnt from it."
    elif facts.part == "validation":
        yield "It was judged on data that it had not learnt from."
    metrics = facts.metrics[facts.part]
    if facts.judged is not None:
        auc = metrics["auc"]
        yield (
            f"There a positive row has a higher score than a negative one with probability {auc['value']:.3f} "
            f"({auc['low']:.3f} to {auc['high']:.3f})."
        )
        point = next((cut.point for cut in facts.cuts if cut.point.fpr.value > 0.0), None)
        if point is not None:
            yield (
                f"Cut at {document.score(point.threshold)}, it flags {point.fpr.value:.1%} of the negatives and "
                f"catches {point.tpr.value:.1%} of the positives ({point.tpr.low:.1%} to {point.tpr.high:.1%})."
            )


def _tiles(facts: Facts) -> Iterator[Tile]:
    if facts.part is None:
        return
    metrics, kind = facts.metrics[facts.part], facts.model.kind
    rows = rows_of(facts.model.validation, facts.part)
    if kind == DatasetKind.PREFERENCES:
        yield _tile("Pairs in order", metrics["pair_order"])
        yield Tile(
            "Pairs judged",
            document.count(metrics["pairs"]),
            f"of {metrics['items']:,} items, {rows}",
        )
        return
    if kind == DatasetKind.MULTILABEL:
        note = f"over {metrics['judged']} of {len(metrics['labels'])} labels, {rows} rows"
        yield Tile("Mean AUC", document.figure(metrics["mean_auc"]), note)
        for found in metrics["mean_pauc"]:
            yield Tile(
                f"Mean partial AUC, {document.window(found)}", document.figure(found["value"]), note
            )
        return
    yield _tile("AUC", metrics["auc"])
    for found in metrics["pauc"]:
        yield _tile(f"Partial AUC, {document.window(found)}", found)
    total = metrics["positives"] + metrics["negatives"]
    note = f"{metrics['positives']:,} positive, {metrics['negatives']:,} negative"
    yield Tile(f"{rows.capitalize()} rows", document.count(total), note)


def _tile(name: str, found: Json) -> Tile:
    note = ""
    if found["low"] is not None and found["high"] is not None:
        note = f"{found['low']:.4f}–{found['high']:.4f}"
    return Tile(name, document.figure(found["value"]), note)


def judgement(facts: Facts) -> list[Block]:
    """Every figure, with its interval, on each part."""
    if not facts.metrics:
        return [Paragraph("There are none: the model was not judged.")]
    level = next(iter(facts.metrics.values()))["level"]
    head = ["", *(f"{rows_of(facts.model.validation, part)} rows" for part in facts.metrics)]
    notes = [f"Intervals hold at a level of {level:.0%}."]
    if facts.out_of_fold is not None:
        aucs = ", ".join(document.figure(fold["auc"]) for fold in facts.out_of_fold.fold_aucs)
        notes.append(f"AUC fold by fold: {aucs}.")
    return [Table(head, list(_rows(facts))), Paragraph(" ".join(notes))]


def _rows(facts: Facts) -> Iterator[list[str]]:
    parts = list(facts.metrics.values())
    kind = facts.model.kind
    if kind == DatasetKind.PREFERENCES:
        yield ["pairs in order", *(document.interval(part["pair_order"]) for part in parts)]
        yield [
            "misranked, ties counted whole",
            *(document.figure(p["misrank_fraction"]) for p in parts),
        ]
        yield ["tied pairs", *(document.figure(part["ties"]) for part in parts)]
        yield ["pairs", *(document.count(part["pairs"]) for part in parts)]
        yield ["items", *(document.count(part["items"]) for part in parts)]
        yield [
            "pairs that tell as much without a common item",
            *(document.count(round(p["effective_pairs"])) for p in parts),
        ]
        return
    if kind == DatasetKind.MULTILABEL:
        yield from _label_rows(parts)
        return
    yield ["AUC", *(document.interval(part["auc"]) for part in parts)]
    for k, found in enumerate(parts[0]["pauc"]):
        yield [
            f"partial AUC, {document.window(found)}",
            *(document.interval(p["pauc"][k]) for p in parts),
        ]
    for k, height in enumerate(parts[0]["tpr_at_fpr"]):
        shown = []
        for part in parts:
            heights = part["tpr_at_fpr"]
            found = heights[k] | {"value": heights[k]["tpr"]} if heights else None
            shown.append(document.interval(found))
        yield [f"TPR at FPR {height['fpr']:g}", *shown]
    yield ["positives", *(document.count(part["positives"]) for part in parts)]
    yield ["negatives", *(document.count(part["negatives"]) for part in parts)]
    if any(part["positive_weight"] != part["positives"] for part in parts):
        yield [
            "weight of the positives",
            *(document.count(part["positive_weight"]) for part in parts),
        ]
        yield [
            "weight of the negatives",
            *(document.count(part["negative_weight"]) for part in parts),
        ]
    yield ["tied pairs", *(document.figure(part["ties"]) for part in parts)]


def _label_rows(parts: list[Json]) -> Iterator[list[str]]:
    for k, label in enumerate(parts[0]["labels"]):
        yield [
            f"AUC, {label['label']}",
            *(document.interval(part["labels"][k]["auc"]) for part in parts),
        ]
        for j, found in enumerate(label["pauc"]):
            areas = (part["labels"][k]["pauc"] for part in parts)
            yield [
                f"partial AUC, {label['label']}, {document.window(found)}",
                *(document.interval(area[j]) if len(area) > j else "—" for area in areas),
            ]
        yield [
            f"positives, {label['label']}",
            *(document.count(part["labels"][k]["positives"]) for part in parts),
        ]
    yield ["mean AUC", *(document.figure(part["mean_auc"]) for part in parts)]
