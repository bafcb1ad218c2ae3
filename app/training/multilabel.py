"""Rows with several labels, split to learn from and to judge by: judged label by label, and by the means over them.

A label's figures need rows of both its classes. Where a part has too few of one, the label has no figure there: the
model says so in a warning, and the means go over the others. Rows are split by the hash of their group, else of their
features; with several labels there is no one class to stratify by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import MIN_PER_CLASS, Columns, Table, read_table
from app.models.objectives import value_of
from app.platform.errors import Invalid
from app.platform.sql import Json
from app.training.bipartite import LEVEL, partial_aucs_of, windows_of
from app.training.interpretation import score
from app.training.splits import (
    InnerSplits,
    SplitData,
    check_fraction,
    check_one_split,
    cut,
    divide,
    hash_units,
)

if TYPE_CHECKING:
    from core.base.ranker import Callback, Floats, Ranker


@dataclass(frozen=True)
class Part:
    """Rows, and which of the labels each has: `has` is of shape (rows, labels), with 1 for yes."""

    table: Table
    has: npt.NDArray[np.int8]

    def measurable(self) -> npt.NDArray[np.bool_]:
        """Which labels have enough rows of both classes to be judged by."""
        weight = self.table.weight
        has = self.has if weight is None else self.has[weight > 0]
        positives = has.sum(axis=0, dtype=np.int64)
        enough: npt.NDArray[np.bool_] = np.minimum(positives, len(has) - positives) >= MIN_PER_CLASS
        return enough

    def check(self, labels: Sequence[str], what: str) -> None:
        """Raise Invalid where no label can be judged; `what` names these rows."""
        if not self.measurable().any():
            raise Invalid(
                f"{what} must have a label with at least {MIN_PER_CLASS} rows of each class, "
                f"got none among {len(labels)} labels and {len(self.has)} rows",
                code="too_few_rows",
            )

    def notes(self, labels: Sequence[str], where: str) -> list[str]:
        """Which labels cannot be judged; `where` names these rows, and says what follows."""
        has_auc = zip(labels, self.measurable().tolist(), strict=True)
        without = [label for label, enough in has_auc if not enough]
        if not without:
            return []
        shown = ", ".join(repr(label) for label in without[:10])
        return [
            f"{len(without)} labels have fewer than {MIN_PER_CLASS} rows of a class in {where}: {shown}"
        ]


class MultilabelSplitData(SplitData):
    """The rows to learn from, and those to judge by."""

    def __init__(self, payload: Mapping[str, Any], names: list[str]) -> None:
        self._labels = [label["name"] for label in payload["labels"]]
        self._train, self._validation = self._parts(payload, names)
        self._check_parts()

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        table, has = self._train.table, self._train.has
        ranker.fit(table.coded, has, table.weight, groups=table.group, callback=callback)

    def thinned(self, share: float, seed: int) -> MultilabelSplitData:
        from core.selection import draw_rows

        part = self._train
        rows = draw_rows(np.zeros(len(part.has)), share, seed)
        thin = copy(self)
        thin._train = Part(part.table.take(rows).known_to(), part.has[rows])
        return thin

    def inner(self, inner: InnerSplits, split: int, seed: int) -> MultilabelSplitData:
        check_one_split(inner, "several labels")
        found = copy(self)
        found._train, found._validation = self._divide(self._train, inner.fraction, seed)
        found._check_parts()
        return found

    def table(self, part: str) -> Table | None:
        rows = self._train if part == "train" else self._validation
        return None if rows is None else rows.table

    def value(self, scores: Floats, objective: Mapping[str, Any]) -> float:
        """The mean over the labels that can be judged of their AUC, or partial AUC in the objective's window."""
        held = self._validation
        assert held is not None
        values = [
            value_of(held.has[:, k], scores[:, k], held.table.weight, objective)
            for k in np.flatnonzero(held.measurable()).tolist()
        ]
        return sum(values) / len(values)

    def evaluate(self, ranker: Ranker, objective: Mapping[str, Any], workdir: Path) -> Json:
        parts: Json = {}
        for name, part in (("train", self._train), ("validation", self._validation)):
            if part is not None:
                scores = score(ranker, part.table, len(self._labels))
                has_auc = part.measurable()
                parts[name] = {
                    "labels": [
                        self._metrics(part, scores, k, objective if has_auc[k] else None)
                        for k in range(len(self._labels))
                    ]
                }
        return parts

    def _parts(self, payload: Mapping[str, Any], names: list[str]) -> tuple[Part, Part | None]:
        spec = payload["spec"]
        validation = spec["validation"]
        whole = read_part(payload["table"], names, self._labels)
        match validation["method"]:
            case "none":
                return whole, None
            case "holdout":
                return self._divide(whole, validation["fraction"], spec["seed"])
            case "dataset":
                judge = read_part(payload["validation_table"], names, self._labels)
                return whole, Part(judge.table.coded_as(whole.table), judge.has)
        raise Invalid(
            "validation.method must be holdout, dataset or none with several labels, "
            f"got {validation['method']!r}",
            code="unsupported",
        )

    def _divide(self, part: Part, fraction: float, seed: int) -> tuple[Part, Part]:
        check_fraction(fraction)
        hashes = hash_units(part.table, seed)
        units, counts = np.unique(hashes, return_counts=True)  # a random order
        held = np.isin(hashes, units[: cut(counts, fraction)])
        rows = np.flatnonzero(~held), np.flatnonzero(held)
        train, validation = divide(part.table, *rows)
        return Part(train, part.has[rows[0]]), Part(validation, part.has[rows[1]])

    def _check_parts(self) -> None:
        """Refuse parts by which no label can be judged, and note which labels the validation part cannot judge."""
        self._train.check(self._labels, "the training part")
        if self._validation is not None:
            self._validation.check(self._labels, "the validation part")
            self.notes = self._validation.notes(
                self._labels, "the validation part, and so no AUC there"
            )

    def _metrics(
        self, part: Part, scores: Floats, k: int, objective: Mapping[str, Any] | None
    ) -> Json:
        from core.metrics import summarise

        positives = int(part.has[:, k].sum())
        found: Json = {
            "label": self._labels[k],
            "auc": None,
            "partial_aucs": [],
            "level": LEVEL,
            "positives": positives,
            "negatives": len(part.has) - positives,
            "ties": None,
        }
        if objective is None:
            return found
        summary = summarise(
            part.has[:, k], scores[:, k], part.table.weight, windows_of(objective), LEVEL
        )
        return found | {
            "auc": summary.auc._asdict(),
            "partial_aucs": partial_aucs_of(summary),
            "positives": summary.positives,
            "negatives": summary.negatives,
            "ties": summary.ties,
        }


def read_part(table: Mapping[str, Any], names: Sequence[str], labels: Sequence[str]) -> Part:
    """Read the rows with their features and labels."""
    import pyarrow.parquet as pq

    path = Path(table["path"])
    rows = read_table(path, Columns(names, None, table["weight"], table["group"]))
    kept = pq.read_table(path, columns=list(labels))
    has = np.stack([kept.column(label).to_numpy() for label in labels], axis=1)
    return Part(rows, has)
