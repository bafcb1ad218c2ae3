"""How good a ranker is on a table, in the figures that its kind of dataset has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from app.datasets.matrices import LEAST_PER_CLASS
from app.models.objectives import WHOLE, Window
from app.models.service import heights_of
from app.platform.errors import Invalid
from app.platform.tables import DatasetKind
from app.scoring.inputs import read_rows
from app.training.column_scores import score, score_labels
from app.training.multilabel import read_part
from app.training.preferences import read_items

if TYPE_CHECKING:
    from core.metrics import Interval, OperatingPoint, RocCurve
    from core.ranker import Floats, Ranker


Json = dict[str, Any]


class Measure(Protocol):
    """A ranker's scores of a table, to be measured in several ways."""

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """What an evaluation says: areas and counts, and what the model's threshold does here, if it has one."""

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """The areas alone, each named as `drift.remember` names those of the validation."""

    @property
    def notes(self) -> list[str]:
        """What is to be said of the table."""


class BipartiteMeasure:
    """Rows with one label: a ROC curve, and all that is read off it."""

    def __init__(self, ranker: Ranker, table: Mapping[str, Any], features: Sequence[str]) -> None:
        from core.metrics import summarise
        from core.metrics.groups import check_rows, effective_units

        rows = read_rows(table, features)
        self._y, self._weight, self._group = rows.y, rows.weight, rows.group
        self._scores = score(ranker, rows)
        self.notes: list[str] = []
        self._summary = summarise(self._y, self._scores, self._weight, ())
        checked = check_rows(self._y, {"scores": self._scores}, self._weight, self._group)
        self.effective = effective_units(checked)
        self._n_groups = None if checked.unit is None else len(np.unique(checked.unit))

    @property
    def curve(self) -> RocCurve:
        """A point per distinct score."""
        return self._summary.curve

    @property
    def rows(self) -> tuple[float, float]:
        """Effective number of rows of either class, positives first, as if each were drawn alone."""
        totals = self._summary.totals
        return totals.positive_effective, totals.negative_effective

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """The AUC, and the partial AUC of each window."""
        return _areas(self._y, self._scores, self._weight, self._group, windows, level)

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """What the metrics of a model are, and the number of groups."""
        from core.metrics import ClassTotals, empirical_area_of, operating_point_on_curve

        auc, *partial = self.areas(windows, level)
        totals = self._summary.totals
        totals = ClassTotals(totals.positive, totals.negative, *self.effective)
        point = None
        if threshold is not None:
            found = operating_point_on_curve(self.curve, totals, threshold=threshold, level=level)
            point = _cut(found)
        return {
            "auc": _figures(auc),
            "pauc": [
                _figures(area)
                | {"empirical": empirical_area_of(self.curve, totals.negative, *window)}
                for area, window in zip(partial, windows, strict=True)
            ],
            "tpr_at_fpr": heights_of(self.curve, totals, level),
            "operating_point": point,
            "positives": self._summary.positives,
            "negatives": self._summary.negatives,
            "totals": vars(totals),
            "groups": self._n_groups,
            "ties": self._summary.ties,
        }


class PreferenceMeasure:
    """Items that pairs compare: the weighted share of pairs in order."""

    def __init__(self, ranker: Ranker, table: Mapping[str, Any], features: Sequence[str]) -> None:
        items, self._pairs = read_items(table, features)
        self._scores = score(ranker, items)
        self.notes: list[str] = []

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """The share of pairs in order."""
        from core.metrics import summarise_pairs

        summary = summarise_pairs(self._scores, self._pairs.rows, self._pairs.weight, level)
        return [{"of": "pair_order", **summary.order._asdict()}]

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """The same with its counts."""
        from core.metrics import summarise_pairs

        summary = summarise_pairs(self._scores, self._pairs.rows, self._pairs.weight, level)
        return {
            "pair_order": summary.order._asdict(),
            "misrank_fraction": summary.misrank_fraction,
            "ties": summary.ties,
            "pairs": summary.pairs,
            "items": summary.items,
            "weight": summary.weight,
            "effective_pairs": summary.effective_pairs,
        }


class MultilabelMeasure:
    """Rows with several labels: areas label by label, and their means."""

    def __init__(self, ranker: Ranker, table: Mapping[str, Any], features: Sequence[str]) -> None:
        self._labels: list[str] = table["labels"]
        self._part = read_part(table, features, self._labels)
        self._scores = score_labels(ranker, self._part.table, len(self._labels))
        self._judged = self._part.judged().tolist()
        if not any(self._judged):
            raise Invalid(
                f"the dataset must have a label with at least {LEAST_PER_CLASS} rows of each class, "
                f"got none among {len(self._labels)} labels",
                code="too_few_rows",
            )

    @property
    def notes(self) -> list[str]:
        """Which labels cannot be judged here."""
        named = zip(self._labels, self._judged, strict=True)
        without = [label for label, judged in named if not judged]
        if not without:
            return []
        shown = ", ".join(map(repr, without[:10]))
        return [
            f"{len(without)} labels have fewer than {LEAST_PER_CLASS} rows of a class in the dataset, "
            f"and so no AUC: {shown}"
        ]

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """The AUC of each label, and its partial AUCs."""
        return [
            {**area, "label": label}
            for k, label in enumerate(self._labels)
            if self._judged[k]
            for area in self._of_label(k, windows, level)
        ]

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """The figures of each label, and the means over those that can be judged."""
        labels: list[Json] = []
        for k, label in enumerate(self._labels):
            found = self._of_label(k, windows, level) if self._judged[k] else []
            areas = [_figures(area) for area in found]
            positives = int(self._part.has[:, k].sum())
            labels.append(
                {
                    "label": label,
                    "auc": areas[0] if areas else None,
                    "pauc": areas[1:],
                    "positives": positives,
                    "negatives": len(self._part.has) - positives,
                }
            )
        judged = [label for label in labels if label["auc"]]
        return {
            "labels": labels,
            "judged": len(judged),
            "mean_auc": _mean([label["auc"]["value"] for label in judged]),
            "mean_pauc": [
                {
                    "fpr_min": fpr_min,
                    "fpr_max": fpr_max,
                    "value": _mean([label["pauc"][number]["value"] for label in judged]),
                }
                for number, (fpr_min, fpr_max) in enumerate(windows)
            ],
        }

    def _of_label(self, k: int, windows: Sequence[Window], level: float) -> list[Json]:
        rows = self._part.table
        has, scores = self._part.has[:, k], self._scores[:, k]
        return _areas(has, scores, rows.weight, rows.group, windows, level)


MEASURES: Mapping[str, Callable[[Ranker, Json, Sequence[str]], Measure]] = {
    DatasetKind.BIPARTITE: BipartiteMeasure,
    DatasetKind.PREFERENCES: PreferenceMeasure,
    DatasetKind.MULTILABEL: MultilabelMeasure,
}


def _areas(
    y: npt.NDArray[np.int8],
    scores: Floats,
    weight: Floats | None,
    group: npt.NDArray[np.uint64] | None,
    windows: Sequence[Window],
    level: float,
) -> list[Json]:
    """The AUC and the partial AUCs; rows of a group are drawn together."""

    from core.metrics import partial_auc_interval

    def area(window: Window) -> Interval:
        return partial_auc_interval(
            y, scores, *window, level=level, sample_weight=weight, group=group
        )

    found = [{"of": "auc", **area(WHOLE)._asdict()}]
    for window in windows:
        named = {"of": "pauc", "fpr_min": window[0], "fpr_max": window[1]}
        found.append(named | area(window)._asdict())
    return found


def _figures(area: Mapping[str, Any]) -> Json:
    return {name: value for name, value in area.items() if name != "of"}


def _cut(point: OperatingPoint) -> Json:
    """A cut for JSON, which knows neither NaN nor infinity."""
    shown: Json = {"threshold": _finite(point.threshold)}
    for name in ("fpr", "tpr", "precision", "lift"):
        interval: Interval = getattr(point, name)
        shown[name] = {end: _finite(value) for end, value in interval._asdict().items()}
    return shown


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
