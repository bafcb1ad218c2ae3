"""Drift: what an evaluation says otherwise than the model's validation did, beyond chance.

Validation rows and evaluation rows are two independent samples. Each area that the model keeps with an interval is
compared with the same area here, at the model's own level; for models with a curve the scores of either class are
compared, too, by Kolmogorov and Smirnov's distance: scores may move while the order stays as good, and then
thresholds are to be set anew. Over all these tests the p-values are adjusted by Holm's method; the theory is in
`core.metrics.comparison`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy.orm import Session

from app.models import repository as model_rows
from app.models.service import VALIDATION, curve_of
from app.platform.tables import DatasetKind, Model, ModelPairMetrics, ModelPartialAuc

if TYPE_CHECKING:
    from core.metrics import RocCurve


Json = dict[str, Any]

_CURVE_FILE = "validation.curve"


def remember(session: Session, model: Model, workdir: Path) -> tuple[Json | None, list[str]]:
    """What the model's validation has said, for the fit process; its curve goes into the folder.

    Returns it, or None where there is nothing to compare with, and what is to be said of what cannot be compared.
    """
    level, areas = _areas_of(session, model)
    if not areas:
        method = model.validation.get("method")
        why = f"the model was trained with validation.method {method!r}"
        if method != "none":
            why = "the model's validation had too few rows"
        return None, [f"drift is not known: {why}"]
    remembered: Json = {"level": level, "areas": areas}
    found = model_rows.find_metrics(session, model.id, VALIDATION)
    row = model_rows.find_curve(session, model.id, VALIDATION)
    if found is None or row is None:
        return remembered, []
    if model.validation.get("method") == "cross_validation":
        return remembered, [
            "scores were not compared: those of the validation came from the rankers of the folds, "
            "not from this one"
        ]
    curve = curve_of(row)
    np.stack((curve.fpr, curve.tpr, curve.thresholds)).tofile(workdir / _CURVE_FILE)
    effective = [found[0].positive_effective, found[0].negative_effective]
    return remembered | {"curve": _CURVE_FILE, "effective": effective}, []


def _areas_of(session: Session, model: Model) -> tuple[float | None, list[Json]]:
    """The areas of the model's validation, and the level of their intervals."""
    if model.kind == DatasetKind.PREFERENCES:
        pairs = model_rows.find_pair_metrics(session, model.id, VALIDATION)
        if pairs is None:
            return None, []
        return pairs.level, [{"of": "pair_order", **_interval(pairs)}]
    if model.kind == DatasetKind.MULTILABEL:
        labels = model_rows.find_label_metrics(session, model.id, VALIDATION)
        areas = [{"of": "auc", "label": one.label, **one.auc} for one in labels if one.auc]
        return (labels[0].level if labels else None), areas
    found = model_rows.find_metrics(session, model.id, VALIDATION)
    if found is None:
        return None, []
    row, windows = found
    auc = {"of": "auc", "value": row.auc, "low": row.auc_low, "high": row.auc_high}
    return row.level, [
        auc,
        *(
            {"of": "pauc", "fpr_min": one.fpr_min, "fpr_max": one.fpr_max, **_interval(one)}
            for one in windows
        ),
    ]


def _interval(row: ModelPairMetrics | ModelPartialAuc) -> Json:
    return {"value": row.value, "low": row.low, "high": row.high}


class Scored(NamedTuple):
    """An evaluation's scores: their curve, and of either class, positives first, how many independent observations
    they are worth, and how many rows: more, where rows come in groups.
    """

    curve: RocCurve
    effective: tuple[float, float]
    rows: tuple[float, float]


def measure(
    before: Mapping[str, Any], areas: Sequence[Json], workdir: Path, scored: Scored | None
) -> Json:
    """Compare an evaluation with what `remember` gave.

    `areas` are the evaluation's, at the same level and over the same windows.
    """
    from core.metrics import RocCurve
    from core.metrics.comparison import holm

    after = {_key(area): area for area in areas}
    tested = [
        _change(area, after[_key(area)], before["level"])
        for area in before["areas"]
        if _key(area) in after
    ]
    shifts = []
    if scored is not None and "curve" in before:
        kept = RocCurve(*np.fromfile(workdir / before["curve"]).reshape(3, -1))
        shifts = _shifts(kept, before["effective"], scored)
    tests = [*tested, *shifts]
    adjusted = holm(np.array([test["p_value"] for test in tests])).tolist()
    for test, p_value in zip(tests, adjusted, strict=True):
        test["adjusted_p_value"] = p_value
        test["changed"] = p_value < 1.0 - before["level"]
        test["words"] = _words(test)
    return {
        "level": before["level"],
        "changed": any(test["changed"] for test in tests),
        "summary": _sum_up(tested, shifts),
        "areas": tested,
        "scores": shifts,
    }


def _key(area: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(area.get(name) for name in ("of", "label", "fpr_min", "fpr_max"))


def _change(before: Json, after: Json, level: float) -> Json:
    from core.metrics import Interval
    from core.metrics.comparison import change

    ends = ("value", "low", "high")
    old, new = (Interval(*(area[end] for end in ends)) for area in (before, after))
    found = change(old, new, level)
    what = {name: before[name] for name in before.keys() - set(ends)}
    return what | {
        "before": old._asdict(),
        "after": new._asdict(),
        "change": {"value": found.value, "low": found.low, "high": found.high},
        "p_value": found.p_value,
    }


def _shifts(kept: RocCurve, rows: Sequence[float], scored: Scored) -> list[Json]:
    """How the scores of either class have moved. Nobody kept whether rows of the validation came in groups: they are
    taken to have come in such as these do.
    """
    from core.metrics.comparison import ScoreSample, score_shift

    found = []
    for number, (of, shares) in enumerate((("positives", "tpr"), ("negatives", "fpr"))):
        worth = min(1.0, scored.effective[number] / scored.rows[number])
        old, new = (
            ScoreSample(curve.thresholds, getattr(curve, shares), n)
            for curve, n in ((kept, rows[number] * worth), (scored.curve, scored.effective[number]))
        )
        found.append({"of": of, **score_shift(old, new)._asdict()})
    return found


def _words(test: Json) -> str:
    chance = "more than chance" if test["changed"] else "no more than chance may do"
    p_value = f"adjusted p {_shown(test['adjusted_p_value'])}"
    if "distance" in test:
        direction = (
            "higher" if test["higher"] > 0.5 else "lower" if test["higher"] < 0.5 else "spread"
        )
        return (
            f"{test['of']} score {direction}: one of these is above one of the validation with "
            f"probability {test['higher']:.3f}; distance {test['distance']:.3f}, {chance} ({p_value})"
        )
    moved = test["change"]
    direction = "higher" if moved["value"] > 0 else "lower" if moved["value"] < 0 else "the same"
    return (
        f"{_name(test)} {test['before']['value']:.4f} at validation, {test['after']['value']:.4f} here: "
        f"{direction} by {abs(moved['value']):.4f} [{moved['low']:+.4f}, {moved['high']:+.4f}], "
        f"{chance} ({p_value})"
    )


def _name(area: Json) -> str:
    match area["of"]:
        case "pair_order":
            return "share of pairs in order"
        case "pauc":
            return f"pAUC on FPR [{area['fpr_min']:g}, {area['fpr_max']:g}]"
    return f"AUC of {area['label']}" if "label" in area else "AUC"


def _shown(p_value: float) -> str:
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def _sum_up(areas: Sequence[Json], shifts: Sequence[Json]) -> str:
    worse = [area for area in areas if area["changed"] and area["change"]["value"] < 0]
    better = [area for area in areas if area["changed"] and area["change"]["value"] > 0]
    moved = " and ".join(shift["of"] for shift in shifts if shift["changed"])
    if worse:
        said = f"The model ranks worse than at validation: {', '.join(map(_name, worse))}."
    elif better:
        said = f"The model ranks better than at validation: {', '.join(map(_name, better))}."
    else:
        said = "The model ranks as at validation, as far as these rows can tell."
    if moved:
        said += f" The scores of the {moved} have moved: rates at a threshold are others than they were."
    return said
