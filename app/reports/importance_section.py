"""Which features a model goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.platform.tables import ModelImportance
from app.reports.document import Bar, Block, Cell, Paragraph, Table
from app.training.importance import METHODS

MOST_FEATURES = 25


def importance(found: ModelImportance, labels: Sequence[str]) -> list[Block]:
    """The features that matter most; with several labels a column for each."""
    features = sorted(found.features, key=_greatest, reverse=True)
    scale = max(map(_greatest, features), default=0.0)
    rows: list[list[Cell]] = []
    for feature in features[:MOST_FEATURES]:
        value = feature["importance"]
        if labels:
            rows.append([feature["name"], *(f"{each:.4g}" for each in value)])
        else:
            bar = Bar(max(0.0, value) / scale if scale > 0.0 else 0.0)
            rows.append([feature["name"], f"{value:.4g}", bar])
    part = "training" if found.part == "train" else "held-out"
    blocks: list[Block] = [
        Paragraph(f"{METHODS[found.method]} Measured on {part} rows."),
        Table(["feature", *(labels or ("importance", ""))], rows),
    ]
    if (more := len(features) - MOST_FEATURES) > 0:
        blocks.append(Paragraph(f"… and {more:,} more."))
    return blocks


def _greatest(feature: Mapping[str, Any]) -> float:
    value = feature["importance"]
    return float(max(value) if isinstance(value, list) else value)
