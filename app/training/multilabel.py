"""Rows with several labels: their splits, and their metrics by label, with the means over the labels.

The metrics of a label need rows of both its classes. If a part has too few rows of one class, the label has no metrics
there: the model has a warning, and the means are over the other labels. Rows are split by the hash of their group or,
without groups, of their features; with several labels there is no single class for stratification.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import MIN_PER_CLASS, Columns, Table, read_table
from app.models.objectives import value_of
from app.platform.documents import (
    LabelMetrics,
    MultilabelMetrics,
    Objective,
    TableFile,
    interval_of,
)
from app.platform.errors import Invalid, counted
from app.training.bipartite import LEVEL, partial_aucs_of, windows_of
from app.training.interpretation import score
from app.training.records import TrainPayload
from app.training.splits import (
    InnerSplits,
    SplitData,
    check_one_split,
    divide,
    hold_out_units,
    no_such_validation,
)
from core import metrics as core_metrics
from core import selection

if TYPE_CHECKING:
    from core.base.ranker import Callback, Floats, Ranker


@dataclass(frozen=True)
class LabelledRows:
    """Rows and their labels; `has` is int8 of shape (rows, labels), 1 where the row has the label."""

    table: Table
    has: npt.NDArray[np.int8]

    def measurable(self) -> npt.NDArray[np.bool_]:
        """Return for each label whether it has enough rows of both classes for metrics."""
        weight = self.table.weight
        has = self.has if weight is None else self.has[weight > 0]
        positives = has.sum(axis=0, dtype=np.int64)
        enough: npt.NDArray[np.bool_] = np.minimum(positives, len(has) - positives) >= MIN_PER_CLASS
        return enough

    def check(self, labels: Sequence[str], what: str) -> None:
        """Raise Invalid if no label can have metrics; `what` names these rows."""
        if not self.measurable().any():
            raise Invalid(
                f"{what} must have a label with at least {MIN_PER_CLASS} rows of each class, "
                f"got none among {len(labels)} labels and {len(self.has)} rows",
                code="too_few_rows",
            )

    def notes(self, labels: Sequence[str], where: str) -> list[str]:
        """Warn of labels without metrics; `where` names these rows, and the consequence."""
        has_auc = zip(labels, self.measurable().tolist(), strict=True)
        without = [label for label, enough in has_auc if not enough]
        if not without:
            return []
        shown = ", ".join(repr(label) for label in without[:10])
        labels_have = counted(len(without), "label has", "labels have")
        return [f"{labels_have} fewer than {MIN_PER_CLASS} rows of a class in {where}: {shown}"]


class MultilabelSplitData(SplitData):
    """Training and validation rows with several labels."""

    def __init__(self, payload: TrainPayload, names: list[str]) -> None:
        self._labels = [label["name"] for label in payload["labels"] or ()]
        self.train, self.validation = self._parts(payload, names)
        self._check_parts()

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        table, has = self.train.table, self.train.has
        ranker.fit(table.coded, has, table.weight, groups=table.group, callback=callback)

    def thinned(self, fraction: float, seed: int) -> MultilabelSplitData:
        part = self.train
        rows = selection.draw_rows(np.zeros(len(part.has)), fraction, seed)
        thin = copy(self)
        thin.train = LabelledRows(part.table.take(rows).known_to(), part.has[rows])
        return thin

    def inner(self, inner: InnerSplits, split: int, seed: int) -> MultilabelSplitData:
        check_one_split(inner, "several labels")
        divided = copy(self)
        divided.train, divided.validation = self._divide(self.train, inner.fraction, seed)
        divided._check_parts()
        return divided

    def table(self, part: str) -> Table | None:
        rows = self.train if part == "train" else self.validation
        return None if rows is None else rows.table

    def value(self, scores: Floats, objective: Objective) -> float:
        """Return the mean AUC (or partial AUC in the objective's window) over the labels that have metrics."""
        validation = self.validation
        assert validation is not None
        values = [
            value_of(validation.has[:, k], scores[:, k], validation.table.weight, objective)
            for k in np.flatnonzero(validation.measurable()).tolist()
        ]
        return sum(values) / len(values)

    def evaluate(
        self, ranker: Ranker, objective: Objective, workdir: Path
    ) -> dict[str, MultilabelMetrics]:
        parts: dict[str, MultilabelMetrics] = {}
        for name, part in (("train", self.train), ("validation", self.validation)):
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

    def _parts(
        self, payload: TrainPayload, names: list[str]
    ) -> tuple[LabelledRows, LabelledRows | None]:
        spec = payload["spec"]
        validation = spec["validation"]
        whole = read_part(payload["table"], names, self._labels)
        match validation["method"]:
            case "none":
                return whole, None
            case "holdout":
                return self._divide(whole, validation["fraction"], spec["seed"])
            case "dataset":
                assert payload["validation_table"] is not None
                other = read_part(payload["validation_table"], names, self._labels)
                return whole, LabelledRows(other.table.coded_as(whole.table), other.has)
        raise no_such_validation("several labels", validation["method"])

    def _divide(
        self, part: LabelledRows, fraction: float, seed: int
    ) -> tuple[LabelledRows, LabelledRows]:
        rows = hold_out_units(part.table, fraction, seed)
        train, validation = divide(part.table, *rows)
        return LabelledRows(train, part.has[rows[0]]), LabelledRows(validation, part.has[rows[1]])

    def _check_parts(self) -> None:
        """Raise Invalid if no label of a part can have metrics, and note those without metrics in validation."""
        self.train.check(self._labels, "the training part")
        if self.validation is not None:
            self.validation.check(self._labels, "the validation part")
            self.notes = self.validation.notes(
                self._labels, "the validation part and so no AUC there"
            )

    def _metrics(
        self, part: LabelledRows, scores: Floats, k: int, objective: Objective | None
    ) -> LabelMetrics:
        """Without an objective, return only counts."""
        positives = int(part.has[:, k].sum())
        metrics: LabelMetrics = {
            "label": self._labels[k],
            "auc": None,
            "pauc": [],
            "level": LEVEL,
            "positives": positives,
            "negatives": len(part.has) - positives,
            "ties": None,
        }
        if objective is None:
            return metrics
        summary = core_metrics.summarise(
            part.has[:, k], scores[:, k], part.table.weight, windows_of(objective), LEVEL
        )
        return {
            **metrics,
            "auc": interval_of(summary.auc),
            "pauc": partial_aucs_of(summary),
            "positives": summary.positives,
            "negatives": summary.negatives,
            "ties": summary.ties,
        }


def read_part(table: TableFile, names: Sequence[str], labels: Sequence[str]) -> LabelledRows:
    import pyarrow.parquet as pq

    path = Path(table["path"])
    rows = read_table(path, Columns(names, None, table["weight"], table["group"]))
    kept = pq.read_table(path, columns=list(labels))
    has = np.stack([kept.column(label).to_numpy() for label in labels], axis=1)
    return LabelledRows(rows, has)
