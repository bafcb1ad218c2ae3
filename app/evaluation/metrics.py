"""The metrics of a ranker on a table, for each kind of dataset; and the overlap of the table with the training rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, cast

import numpy as np
import numpy.typing as npt
from typing_extensions import TypedDict

from app.datasets import repository as dataset_rows
from app.datasets.matrices import Columns, Table, check_classes, read_table
from app.datasets.protected import PROTECTED, protected_columns
from app.ingest.rows import Hashes
from app.measures import percent
from app.models import artifacts, calibrations
from app.models.calibrations import CalibrationRecord, ServedCalibration
from app.models.groups import RowGroups, scores_by_group
from app.models.metrics import gini_of, heights_of
from app.models.objectives import Window
from app.models.row_order import RowOrder, ScoreSeries, score_series
from app.models.weak_segments import find_weak_segments
from app.platform.blobs import BlobKey
from app.platform.documents import (
    GradedOrder,
    ListMetrics,
    Reliability,
    TableFile,
    WeakSegments,
    document_of,
)
from app.platform.sql import Json, Session
from app.platform.tables import Dataset, DatasetKind, Model
from app.training import lists
from app.training.interpretation import score
from app.training.multilabel import read_part
from app.training.preferences import pair_counts, read_items
from core import metrics
from core import probability as core_probability
from core.metrics.window import WHOLE

if TYPE_CHECKING:
    from core.base.ranker import Floats, Ranker
    from core.metrics import Interval, RocCurve
    from core.metrics.separation import Separation


class EvaluatedModel(TypedDict):
    """A model's artifact (path, SHA-256), ordered features, training table (None: deleted, or the evaluated one)."""

    name: str
    trained_on: str | None
    path: str
    sha256: str
    features: list[str]
    protected: NotRequired[list[str]]
    """Protected columns of both tables that are not features; they are monitored, too."""
    types: NotRequired[dict[str, str]]
    """Of the features."""


class Measure(Protocol):
    """A ranker's scores of a table, from which metrics are computed. `notes` are warnings for its owner."""

    notes: list[str]

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """Return the metrics of an evaluation: areas and counts, and the rates at the threshold, if given."""

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """Return only the areas, with the names that `remember_validation` uses for those of the validation."""


class BipartiteMeasure:
    """The scores of rows with one label: their ROC curve, and metrics computed from it."""

    def __init__(self, ranker: Ranker, table: TableFile, features: Sequence[str]) -> None:
        from core.metrics.groups import check_rows, effective_units

        self.table = rows = read_rows(table, features)
        self.scores = score(ranker, rows)
        self.notes: list[str] = []
        self._summary = metrics.summarise(rows.y, self.scores, rows.weight, ())
        checked = check_rows(rows.y, {"scores": self.scores}, rows.weight, rows.group)
        self.effective = effective_units(checked)
        self._n_groups = None if checked.unit is None else len(np.unique(checked.unit))

    @property
    def curve(self) -> RocCurve:
        """It has a point for each distinct score."""
        return self._summary.curve

    @property
    def rows(self) -> tuple[float, float]:
        """The effective numbers of positives and negatives: as independent rows of equal weight."""
        totals = self._summary.totals
        return totals.positive_effective, totals.negative_effective

    @property
    def totals(self) -> tuple[float, float]:
        """The total weights of positives and negatives."""
        return self._summary.totals.positive, self._summary.totals.negative

    @property
    def worth(self) -> float:
        """The number of independent observations that one row counts as, at most 1."""
        return min(1.0, sum(self.effective) / sum(self.rows))

    def decision_curve(self, calibration: ServedCalibration, level: float) -> list[Json]:
        curve = metrics.decision_curve(
            self.table.y,
            calibration.calibration.probability(self.scores),
            level=level,
            sample_weight=self.table.weight,
            group=self.table.group,
        )
        return [document_of(each) for each in curve]

    def series(self, path: str, order: RowOrder) -> ScoreSeries:
        return score_series(self.table.y, self.scores, path, order)

    def calibrate(self, workdir: Path, seed: int) -> CalibrationRecord:
        """The files are in `workdir`."""
        return calibrations.learn(
            workdir,
            calibrations.LEARNT_ON_DATASET,
            self.table.y,
            self.scores,
            self.table.weight,
            self.table.group,
            seed,
        )

    def reliability(self, calibration: ServedCalibration, level: float) -> Reliability:
        """Compare a calibration's probabilities with these rows' outcomes."""
        found = core_probability.reliability(
            self.table.y,
            calibration.calibration.probability(self.scores),
            sample_weight=self.table.weight,
            group=self.table.group,
            level=level,
        )
        return calibrations.reliability_record(found)

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        areas = _areas(
            self.table.y, self.scores, self.table.weight, self.table.group, windows, level
        )
        return [*areas, *list_areas(self._lists(level))]

    def weak_segments(self, types: Mapping[str, str]) -> WeakSegments | None:
        """None with queries, within which rows are ranked, and if the classes are separated."""
        if self.table.query is not None or self._separation.is_separated:
            return None
        return find_weak_segments(self.table, None, self.scores, types=types, seed=0)

    @cached_property
    def _separation(self) -> Separation:
        from core.metrics.separation import separation

        table = self.table
        return separation(table.y, self.scores, sample_weight=table.weight, group=table.group)

    def _lists(self, level: float) -> ListMetrics | None:
        return lists.measure(
            self.table.y,
            self.scores,
            self.table.query,
            self.table.weight,
            graded=False,
            level=level,
        )

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """Add the number of groups."""
        from core.metrics.separation import separation_warning

        auc, *partial = _areas(
            self.table.y, self.scores, self.table.weight, self.table.group, windows, level
        )
        rows = self._summary.positives, self._summary.negatives
        if (words := separation_warning(self._separation)) is not None:
            self.notes.append(words)
        else:
            self.notes += warnings_of_areas([auc, *partial], rows, self.effective)
        totals = self._summary.totals
        totals = metrics.ClassTotals(totals.positive, totals.negative, *self.effective)
        point = None
        if threshold is not None:
            found = metrics.operating_point_on_curve(
                self.curve, totals, threshold=threshold, level=level
            )
            shown = ("threshold", "fpr", "tpr", "precision", "lift")
            point = {name: document_of(getattr(found, name)) for name in shown}
        return {
            "auc": _metrics(auc),
            "gini": gini_of(auc["value"], auc["low"], auc["high"]),
            "ks": self.curve.ks,
            "ks_interval": metrics.ks_interval(
                self.table.y,
                self.scores,
                level=level,
                sample_weight=self.table.weight,
                group=self.table.group,
            )._asdict(),
            "pauc": [
                _metrics(area)
                | {"empirical": metrics.empirical_area_of(self.curve, totals.negative, *window)}
                for area, window in zip(partial, windows, strict=True)
            ],
            "tpr_at_fpr": heights_of(self.curve, totals, level),
            "operating_point": point,
            "positives": self._summary.positives,
            "negatives": self._summary.negatives,
            "totals": vars(totals),
            "groups": self._n_groups,
            "ties": self._summary.ties,
            "lists": self._lists(level),
        }

    def group_scores(self, groups: RowGroups) -> Floats | None:
        """Return each group's scores of positives, then of negatives, ascending, for guarantees.

        None unless the rows of a class were drawn independently with equal weight.
        """
        from core.metrics.guarantees import counts_alike

        counts = (self._summary.positives, self._summary.negatives)
        if not any(map(counts_alike, self.effective, counts)):
            return None
        return scores_by_group(self.table, self.scores, groups)


class PreferenceMeasure:
    """The scores of items that pairs compare: the weighted fraction of correctly ordered pairs."""

    def __init__(self, ranker: Ranker, table: TableFile, features: Sequence[str]) -> None:
        items, self._pairs = read_items(table, features)
        self._scores = score(ranker, items)
        self.notes: list[str] = []

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        summary = metrics.summarise_pairs(self._scores, self._pairs.rows, self._pairs.weight, level)
        return [{"of": "pair_order", **summary.order._asdict()}]

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        summary = metrics.summarise_pairs(self._scores, self._pairs.rows, self._pairs.weight, level)
        return {"pair_order": summary.order._asdict(), **pair_counts(summary)}


class GradedMeasure:
    """The scores of rows with grades: metrics within queries, or over one list."""

    def __init__(self, ranker: Ranker, table: TableFile, features: Sequence[str]) -> None:
        self._rows = lists.read_graded(table, features)
        lists.check_grades(self._rows, "the dataset")
        lists.check_queries(self._rows, "the dataset", lists.MIN_QUERIES)
        self._scores = score(ranker, self._rows)
        self.notes: list[str] = []

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """They are within queries, or those of one list."""
        found = lists.measure_graded_rows(self._rows, self._scores, level)
        return [*list_areas(found["lists"]), *order_areas(found["order"])]

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        """Add counts of grades."""
        found = lists.measure_graded_rows(self._rows, self._scores, level)
        return {name: found[name] for name in ("grades", "lists", "order")}


class MultilabelMeasure:
    """The scores of rows with several labels: the areas of each label, and their means."""

    def __init__(self, ranker: Ranker, table: TableFile, features: Sequence[str]) -> None:
        self._labels: list[str] = table["labels"]
        self._part = read_part(table, features, self._labels)
        self._scores = score(ranker, self._part.table, len(self._labels))
        self._measurable = self._part.measurable().tolist()
        self._part.check(self._labels, "the dataset")
        self.notes = self._part.notes(self._labels, "the dataset and so no AUC")

    def areas(self, windows: Sequence[Window], level: float) -> list[Json]:
        """Return the AUC and the partial AUCs of each label."""
        return [
            {**area, "label": label}
            for k, label in enumerate(self._labels)
            if self._measurable[k]
            for area in self._of_label(k, windows, level)
        ]

    def metrics(self, windows: Sequence[Window], level: float, threshold: float | None) -> Json:
        labels: list[Json] = []
        for k, label in enumerate(self._labels):
            found = self._of_label(k, windows, level) if self._measurable[k] else []
            areas = [_metrics(area) for area in found]
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
        measured = [label for label in labels if label["auc"]]
        return {
            "labels": labels,
            "evaluated": len(measured),
            "mean_auc": _mean([label["auc"]["value"] for label in measured]),
            "mean_pauc": [
                {
                    "fpr_min": fpr_min,
                    "fpr_max": fpr_max,
                    "value": _mean([label["pauc"][number]["value"] for label in measured]),
                }
                for number, (fpr_min, fpr_max) in enumerate(windows)
            ],
        }

    def _of_label(self, k: int, windows: Sequence[Window], level: float) -> list[Json]:
        rows = self._part.table
        has, scores = self._part.has[:, k], self._scores[:, k]
        return _areas(has, scores, rows.weight, rows.group, windows, level)


def load_ranker(model: EvaluatedModel) -> Ranker:
    """The SHA-256 is checked."""
    return artifacts.load_ranker(Path(model["path"]), model["sha256"])[0]


def read_rows(table: TableFile, features: Sequence[str]) -> Table:
    """Raises Invalid if a class has too few rows."""
    columns = Columns(
        features, table["label"], table["weight"], table["group"], query=table.get("query")
    )
    rows = read_table(Path(table["path"]), columns)
    present = rows.y if rows.weight is None else rows.y[rows.weight > 0]
    check_classes(present, "the dataset")
    return rows


MEASURES: Mapping[str, Callable[[Ranker, TableFile, Sequence[str]], Measure]] = {
    DatasetKind.BIPARTITE: BipartiteMeasure,
    DatasetKind.PREFERENCES: PreferenceMeasure,
    DatasetKind.MULTILABEL: MultilabelMeasure,
    DatasetKind.GRADED: GradedMeasure,
}

_COMPARED_METRICS = ("auc", "ndcg@10")
"""Metrics of lists by which an evaluation is compared with the validation."""


def list_areas(found: ListMetrics | None) -> list[Json]:
    """Convert the list metrics that drift compares."""
    return [
        {"of": "list", **{name: each[name] for name in ("metric", "value", "low", "high")}}
        for each in cast(list[Json], [] if found is None else found["metrics"])
        if each["metric"] in _COMPARED_METRICS
    ]


def order_areas(found: GradedOrder | None) -> list[Json]:
    """Convert the metrics of one graded list."""
    return [] if found is None else [{"of": "grades", "metric": "c_index", **found["c_index"]}]


def _areas(
    y: npt.NDArray[np.int8],
    scores: Floats,
    weight: Floats | None,
    group: npt.NDArray[np.uint64] | None,
    windows: Sequence[Window],
    level: float,
) -> list[Json]:
    """Rows of a group are resampled together."""

    from core.metrics.groups import check_rows
    from core.metrics.intervals import interval_of_rows

    rows = check_rows(y, {"scores": scores}, weight, group)

    def area(window: Window) -> Interval:
        return interval_of_rows(rows, window, level)

    found = [{"of": "auc", **area(WHOLE)._asdict()}]
    for window in windows:
        named = {"of": "pauc", "fpr_min": window[0], "fpr_max": window[1]}
        found.append(named | area(window)._asdict())
    return found


def warnings_of_areas(
    areas: Sequence[Json], rows: tuple[int, int], effective: tuple[float, float]
) -> list[str]:
    """Warn of unreliable intervals: see `core.metrics.intervals.area_warnings`."""
    from core.metrics.intervals import area_warnings

    windows = [(area.get("fpr_min", 0.0), area.get("fpr_max", 1.0)) for area in areas]
    intervals = [metrics.Interval(area["value"], area["low"], area["high"]) for area in areas]
    return area_warnings(windows, intervals, rows, effective)


def _metrics(area: Mapping[str, Any]) -> Json:
    return {name: value for name, value in area.items() if name != "of"}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def model_of(session: Session, model: Model, dataset: Dataset) -> EvaluatedModel:
    """Return what the fit process needs."""
    trained = dataset_rows.find(session, model.owner, model.dataset_id)
    is_other = trained is not None and trained.sha256 != dataset.sha256 and model.imported is None
    return {
        "name": f"{model.name}:{model.version}",
        "trained_on": BlobKey(trained.table_key or "") if trained and is_other else None,
        "path": BlobKey(model.artifact_key),
        "sha256": model.artifact_sha256,
        "features": [feature["name"] for feature in model.features],
        "protected": [] if trained is None else _monitored(model, trained, dataset),
        "types": {feature["name"]: feature["type"] for feature in model.features},
    }


def _monitored(model: Model, trained: Dataset, dataset: Dataset) -> list[str]:
    """Return protected columns of both tables that are no features."""
    features = {feature["name"] for feature in model.features}
    roles = {column["name"]: column["role"] for column in dataset.columns}
    return [
        name
        for name in protected_columns(trained)
        if name not in features and roles.get(name) in ("feature", PROTECTED)
    ]


# Rows of the table that were in training, too: a copy under another name, an extract, a table that has grown.

OVERLAPS = "overlaps"
"""Of the stored metrics: whether too many rows equal training rows; null where the training table is gone."""
EQUAL_ROWS = "of these rows equal a row of the table that"
MIN_SHARE = 0.01
"""Fraction of the rows: fewer do not change a metric."""
BEYOND_CHANCE = 2.0
"""Times the fraction by which rows of the training table equal each other anyway: where features are few or coarse, new
rows often equal old ones, and no row has been seen."""

Features = tuple[str, ...]


class Overlap:
    """Measures how many rows of a table are in training tables; reads each of these once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: dict[tuple[str, Features], Hashes] = {}
        self._shares: dict[tuple[str, Features], tuple[float, float]] = {}

    def describe(self, model: EvaluatedModel) -> tuple[bool | None, list[str]]:
        """Return whether too many rows are training rows (None: the table was deleted), and a warning."""
        if model["trained_on"] is None:
            return None, []
        here, anyway = self._measure(model["trained_on"], tuple(model["features"]))
        if here <= max(MIN_SHARE, BEYOND_CHANCE * anyway):
            return False, []
        return True, [
            f"{percent(here, 0)} {EQUAL_ROWS} {model['name']} was trained on, "
            f"where {percent(anyway, 0)} equal each other: its metrics may be too optimistic"
        ]

    def _measure(self, trained_on: str, features: Features) -> tuple[float, float]:
        """Return the fraction of rows that are training rows, and what duplicates alone would explain."""
        which = (trained_on, features)
        if which not in self._shares:
            known, counts = np.unique(self._hashes(trained_on, features), return_counts=True)
            here = np.isin(self._hashes(self._path, features), known)
            twins = counts[counts > 1].sum() / counts.sum()
            self._shares[which] = float(here.mean()), float(twins)
        return self._shares[which]

    def _hashes(self, path: str, features: Features) -> Hashes:
        from app.ingest.profile import hash_rows

        if (path, features) not in self._rows:
            self._rows[path, features] = hash_rows(Path(path), features)
        return self._rows[path, features]


def rows_of(metrics: Json) -> int | None:
    """Return the number of rows or pairs that the metrics of an evaluation are of; None if it is unknown."""
    found = metrics
    if "labels" in found:
        found = found["labels"][0]
    if "positives" in found:
        return int(found["positives"] + found["negatives"])
    if "grades" in found:
        return int(sum(each["rows"] for each in found["grades"]))
    pairs = found.get("pairs")
    return int(pairs) if isinstance(pairs, int) else None
