"""Trials on a table whose rows have a label of two values: judged by the ROC curve and its areas."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.db.base import Base
from app.db.model_tables import ModelCurve, ModelMetrics, ModelPartialAuc
from app.errors import Invalid
from app.services import margins
from app.services.objectives import value_of, window_of
from app.services.samples import draw, draw_classes
from app.services.tables import Columns, Table, check_classes, divide, read_table, split
from app.services.trials.scores import score
from core.metrics import Summary, summarise
from core.ranker import Callback, Floats, Ranker

DEFAULT_WINDOW = (0.0, 0.05)
Json = dict[str, Any]


class BipartiteTrial:
    """The rows to learn from, and those to judge by."""

    def __init__(self, payload: Mapping[str, Any], names: list[str]) -> None:
        self._train, self._validation = _parts(payload, names)
        self._features = payload["table"]["features"]

    def fit(self, ranker: Ranker, callback: Callback) -> None:
        """Learn from the training part."""
        train = self._train
        ranker.fit(train.coded, train.y, train.weight, callback=callback)

    def inner(self, fraction: float, seed: int) -> BipartiteTrial:
        """A trial on the training part alone, of which it holds out a share."""
        inner = copy(self)
        rows = split(self._train, fraction, seed)
        inner._train, inner._validation = divide(self._train, *rows)
        return inner

    @property
    def held_out(self) -> Any:
        """What a ranker scores of the validation part."""
        assert self._validation is not None
        return self._validation.coded

    def value(self, scores: Floats, objective: Mapping[str, Any]) -> float:
        """What scores of the validation part are worth by the objective."""
        held = self._validation
        assert held is not None
        return value_of(held.y, scores, held.weight, objective)

    def judge(self, ranker: Ranker, objective: Mapping[str, Any], workdir: Path) -> Json:
        """Measure the ranker on each part, and write its curves beside."""
        parts: Json = {}
        for part, table in (("train", self._train), ("validation", self._validation)):
            if table is None:
                continue
            scores = score(ranker, table)
            summary = summarise(table.y, scores, table.weight, windows_of(objective))
            measured = None
            if part == "train":
                measured = margins.measure(
                    ranker, self._features, table, scores, summary.curve, workdir
                )
            curve = None
            if self._validation is not None:  # without a validation part the model has no curve
                curve = f"{part}.curve"
                _write_curve(workdir / curve, summary)
            parts[part] = _metrics(summary) | {"curve": curve, "margins": measured}
        return parts

    def sample(self, part: str, seed: int) -> Table | None:
        """A few rows of a part."""
        table = self._train if part == "train" else self._validation
        return None if table is None else draw(table, seed)

    def judges(self, seed: int) -> tuple[str, Table]:
        """Rows of both classes to judge by."""
        if self._validation is None:
            return "train", draw_classes(self._train, seed)
        return "validation", draw_classes(self._validation, seed)

    def training_values(self, feature: int) -> npt.NDArray[np.float64]:
        """The values of a feature in the training part."""
        return self._train.X[:, feature]

    @property
    def notes(self) -> list[str]:
        """What the model's owner should know about the parts."""
        return []


def _parts(payload: Mapping[str, Any], names: list[str]) -> tuple[Table, Table | None]:
    """Return the training part and, unless there is none, the validation part."""
    spec = payload["spec"]
    validation = spec["validation"]
    table = read_table(Path(payload["table"]["path"]), _columns(payload["table"], names))
    check_classes(table.y, "the table")
    match validation["method"]:
        case "none":
            return table, None
        case "holdout":
            return divide(table, *split(table, validation["fraction"], spec["seed"]))
        case "dataset":
            other = payload["validation_table"]
            judge = read_table(Path(other["path"]), _columns(other, names))
            check_classes(judge.y, "the validation dataset")
            return table, judge.coded_as(table)
    raise Invalid(
        f"validation.method must be holdout, dataset or none in this version, got {validation['method']!r}",
        code="unsupported",
    )


def _columns(table: Mapping[str, Any], names: list[str]) -> Columns:
    return Columns(names, table["label"], table["weight"], table["group"])


def windows_of(objective: Mapping[str, Any]) -> list[tuple[float, float]]:
    """The windows of false positive rates that are reported: the usual one, and that of the objective."""
    windows = [DEFAULT_WINDOW]
    if objective["metric"] in ("pauc", "tpr") and (own := window_of(objective)) not in windows:
        windows.append(own)
    return windows


def _metrics(summary: Summary) -> Json:
    return {
        "auc": summary.auc._asdict(),
        "level": summary.level,
        "positives": summary.positives,
        "negatives": summary.negatives,
        "positive_weight": summary.totals.positive,
        "negative_weight": summary.totals.negative,
        "positive_effective": summary.totals.positive_effective,
        "negative_effective": summary.totals.negative_effective,
        "ties": summary.ties,
        "partial_aucs": [
            {"fpr_min": area.fpr_min, "fpr_max": area.fpr_max, **area.interval._asdict()}
            for area in summary.partial_aucs
        ],
    }


def _write_curve(path: Path, summary: Summary) -> None:
    """Write fpr, tpr and thresholds one after the other, float64 little-endian, as they will lie in SQL."""
    curve = summary.curve
    np.stack((curve.fpr, curve.tpr, curve.thresholds)).astype("<f8").tofile(path)


def rows_of(model_id: str, part: str, metrics: Mapping[str, Any], workdir: Path) -> list[Base]:
    """What is kept in SQL of a part's metrics, curve and all."""
    auc = metrics["auc"]
    same = metrics.keys() - {"auc", "partial_aucs", "curve", "margins"}
    rows: list[Base] = [
        ModelMetrics(
            model_id=model_id,
            part=part,
            auc=auc["value"],
            auc_low=auc["low"],
            auc_high=auc["high"],
            **{name: metrics[name] for name in same},
        )
    ]
    rows += [
        ModelPartialAuc(model_id=model_id, part=part, **area) for area in metrics["partial_aucs"]
    ]
    if metrics["curve"]:
        rows.append(_curve_row(model_id, part, workdir / metrics["curve"]))
    if metrics["margins"]:
        rows.append(margins.row_of(model_id, metrics["margins"], workdir))
    return rows


def _curve_row(model_id: str, part: str, path: Path) -> ModelCurve:
    fpr, tpr, thresholds = np.fromfile(path, dtype="<f8").reshape(3, -1)
    return ModelCurve(
        model_id=model_id,
        part=part,
        points=len(fpr),
        fpr=fpr.tobytes(),
        tpr=tpr.tobytes(),
        thresholds=thresholds.tobytes(),
    )
