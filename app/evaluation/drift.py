"""The drift since a model's validation: of its metrics, its probabilities, the fraction of positives, its features and
its scores.

Each is tested, with the size of the change and an interval. `changed` is True if a change is statistically significant,
adjusted for all tests of an evaluation (Holm), and of a relevant size, because with many rows every difference is
significant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired

import numpy as np
from typing_extensions import TypedDict

from app.evaluation.metrics import (
    BipartiteMeasure,
    EvaluatedModel,
    Measure,
    list_areas,
    order_areas,
)
from app.evaluation.row_order import (
    NO_TIME,
    TOO_SHORT,
    RowOrder,
    Sampled,
    ScoreSeries,
    depend,
    scores_alike,
)
from app.models import repository as model_rows
from app.models.curves import curve_of, read_curve, write_curve
from app.models.metrics import lists_of
from app.models.service import VALIDATION
from app.platform.documents import CalibrationShape, Reliability, ReliabilityPoint
from app.platform.sql import Json, Session
from app.platform.tables import DatasetKind, Model, ModelPairMetrics, ModelPartialAuc
from core import metrics

if TYPE_CHECKING:
    import pyarrow as pa

    from core.metrics import RocCurve


MODERATE = 0.1
"""The population stability index from which a shift is no longer small (Siddiqi's rule of thumb), the change of log
odds from which probabilities and prevalences have changed, and that of the slope of calibration."""
MATTERS = 0.01
"""Of all importance: the share from which a feature alone makes a model one that has changed."""
_NAMED = 5  # features in a summary
_LISTED = 100  # features of an evaluation
_WITH_BINS = 20  # of these, with their bins
_COMMON = 9  # categories that have a bin of their own


class Remembered(TypedDict):
    """The results of a model's validation. `curve` is a file, and `effective` is the effective number of rows of each
    class.

    `prevalence` is the fraction of positives with its interval, and `importance` has each feature's fraction of the
    importance.
    """

    level: float
    areas: list[Json]
    curve: NotRequired[str]
    effective: NotRequired[list[float]]
    prevalence: NotRequired[Json]
    importance: NotRequired[dict[str, float]]


_CURVE_FILE = "validation.curve"


def remember_validation(
    session: Session, model: Model, workdir: Path
) -> tuple[Remembered | None, list[str]]:
    """Return the results of the model's validation for the fit process; its curve is written into the folder.

    They are None if there is nothing to compare with. The second value has warnings about what cannot be compared.
    """
    level, areas = validation_areas(session, model)
    if level is None or not areas:
        method = model.validation.get("method")
        why = f"the model was trained with validation.method {method!r}"
        if method != "none":
            why = "the validation of the model had too few rows"
        return None, [f"drift was not tested: {why}"]
    remembered: Remembered = {
        "level": level,
        "areas": areas,
        "importance": _shares_of_importance(session, model),
    }
    found = model_rows.find_metrics(session, model.id, VALIDATION)
    row = model_rows.find_curve(session, model.id, VALIDATION)
    if found is None or row is None:
        return remembered, []
    effective = [found[0].positive_effective, found[0].negative_effective]
    totals = (found[0].positive_weight, found[0].negative_weight)
    remembered["effective"] = effective
    remembered["prevalence"] = _prevalence(totals, effective, level)
    if model.validation.get("method") == "cross_validation":
        return remembered, [
            "scores were not compared, because the cross-validation scores come from the rankers of the folds, not "
            "from this ranker"
        ]
    write_curve(workdir / _CURVE_FILE, curve_of(row))
    return remembered | {"curve": _CURVE_FILE}, []


def _shares_of_importance(session: Session, model: Model) -> dict[str, float]:
    """Return each feature's fraction of the total importance; empty if importance was not measured."""
    row = model_rows.find_importance(session, model.id)
    if row is None:
        return {}
    sizes = {
        each["name"]: float(np.maximum(np.nan_to_num(each["importance"]), 0.0).mean())
        for each in row.features
    }
    whole = sum(sizes.values())
    return {name: size / whole for name, size in sizes.items()} if whole > 0.0 else {}


def _prevalence(totals: Sequence[float], effective: Sequence[float], level: float) -> Json:
    """Return the fraction of positives with its Wilson interval."""
    value = totals[0] / sum(totals)
    return metrics.wilson_interval(value, sum(effective), level)._asdict()


def validation_areas(session: Session, model: Model) -> tuple[float | None, list[Json]]:
    """Return the level of the intervals, and the areas, of the model's validation."""
    if model.kind == DatasetKind.PREFERENCES:
        pairs = model_rows.find_pair_metrics(session, model.id, VALIDATION)
        if pairs is None:
            return None, []
        return pairs.level, [{"of": "pair_order", **_interval(pairs)}]
    if model.kind == DatasetKind.MULTILABEL:
        labels = model_rows.find_label_metrics(session, model.id, VALIDATION)
        areas = [{"of": "auc", "label": one.label, **one.auc} for one in labels if one.auc]
        return (labels[0].level if labels else None), areas
    within = model_rows.find_list_metrics(session, model.id, VALIDATION)
    of_lists = list_areas(lists_of(within))
    if model.kind == DatasetKind.GRADED:
        level = None if within is None else within.level
        return level, [*of_lists, *order_areas(None if within is None else within.order)]
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
        *of_lists,
    ]


def _interval(row: ModelPairMetrics | ModelPartialAuc) -> Json:
    return {"value": row.value, "low": row.low, "high": row.high}


def measure_drift(
    before: Remembered,
    measure: Measure,
    reliability: Reliability | None,
    table: str,
    model: EvaluatedModel,
    orders: Sequence[RowOrder],
    workdir: Path,
) -> Json:
    """Return the drift between the validation, as `remember_validation` returned it, and an evaluation at the same
    level.

    `reliability` is that of the model's probabilities on the rows, `table` is their file, and `orders` are those of the
    rows of the training table and of this one.
    """
    from core.metrics.estimates import holm

    level, scored = before["level"], measure if isinstance(measure, BipartiteMeasure) else None
    found = [(area["fpr_min"], area["fpr_max"]) for area in before["areas"] if "fpr_min" in area]
    after = {_key(area): area for area in measure.areas(sorted(set(found)), level)}
    areas = [
        _change(area, after[_key(area)], level) for area in before["areas"] if _key(area) in after
    ]
    shifts, prevalence = [], None
    if scored is not None and "curve" in before:
        curve = read_curve(workdir / before["curve"])
        series = scored.series(table, orders[-1])
        shifts = _shifts(curve, before["effective"], scored, series, level)
    if scored is not None and "prevalence" in before:
        here = _prevalence(scored.totals, scored.effective, level)
        prevalence = _change({"of": "prevalence", **before["prevalence"]}, here, level)
    probabilities = []
    if reliability is not None and scored is not None and "effective" in before:
        rows = sum(scored.effective) / sum(before["effective"])
        probabilities = _errors_of(reliability, rows)
    features = None
    if model["trained_on"] is not None:
        worth = 1.0 if scored is None else scored.worth
        paths = model["trained_on"], table
        importance = before.get("importance", {})
        features = _moves(model["features"], importance, paths, orders, worth, level)
    tests = [*areas, *filter(None, [prevalence]), *probabilities, *(features or ()), *shifts]
    made = [test for test in tests if test["p_value"] is not None]
    adjusted = holm(np.array([test["p_value"] for test in made])).tolist()
    for test in tests:
        test["adjusted_p_value"] = test["changed"] = None
    for test, p_value in zip(made, adjusted, strict=True):
        test["adjusted_p_value"] = p_value
        test["changed"] = p_value < 1.0 - level and _matters(test)
    for test in tests:
        test["words"] = _words(test, level)
    if features is not None:
        features.sort(key=_by_weight)
        for each in features[_WITH_BINS:]:
            each["bins"] = None
    tested: Json = {
        "areas": areas,
        "prevalence": prevalence,
        "probabilities": probabilities,
        "features": features,
        "scores": shifts,
    }
    listed = features and features[:_LISTED]
    return {"level": level, **_verdict(tested), **tested, "features": listed}


def _verdict(drift: Json) -> Json:
    """Return whether the tests of a drift report a change, and their summary."""
    areas, probabilities, shifts = drift["areas"], drift.get("probabilities", []), drift["scores"]
    prevalence, features = drift.get("prevalence"), drift["features"] or ()
    moved = [each for each in features if each["changed"]]
    others = [*areas, *filter(None, [prevalence]), *probabilities, *shifts]
    return {
        "changed": any(map(matters_to_model, moved)) or any(test["changed"] for test in others),
        "summary": _sum_up(areas, prevalence, probabilities, moved, shifts)
        + _untested(features, shifts),
    }


def is_recalibrated(metrics: Json | None, version: int | None) -> bool:
    """Return True if the metrics of an evaluation are of an earlier calibration than the one with this version, which
    the model has now.
    """
    tested = ((metrics or {}).get("calibration") or {}).get("version")
    return tested is not None and version is not None and tested < version


def without_probabilities(drift: Json) -> Json:
    """Return a stored drift without the errors of the probabilities, with the verdict of its other tests."""
    return _without(drift, {"probabilities": []})


def after_recalibration(drift: Json) -> Json:
    """Return a stored drift without what a later recalibration has replaced: the errors of the probabilities, and the
    change of the fraction of positives, which the new calibration follows.
    """
    return _without(drift, {"probabilities": [], "prevalence": None})


def _without(drift: Json, left_out: Json) -> Json:
    """Return a drift without some tests; its verdict is stated again if one of them reports a change."""
    tests = [*drift.get("probabilities", []), *filter(None, [drift.get("prevalence")])]
    kept = {**drift, **left_out}
    remaining = [*kept["probabilities"], *filter(None, [kept.get("prevalence")])]
    if not any(test["changed"] for test in tests if test not in remaining):
        return kept
    return kept | _verdict(kept)


def matters_to_model(feature: Json) -> bool:
    """Return True if a change of this feature is enough to call the model changed."""
    return feature["importance"] is None or feature["importance"] >= MATTERS


def _by_weight(feature: Json) -> tuple[bool, float, float]:
    """Return the sort key of a feature: changed ones first, then by importance and size of the change."""
    size = feature["distance"] if feature["psi"] is None else feature["psi"]["value"]
    return not feature["changed"], -size * (feature["importance"] or 0.0), -size


def _matters(test: Json) -> bool:
    """Return True if the size of a change exceeds the relevant minimum; areas have no minimum."""
    if "psi" in test:
        return bool(test["psi"]["value"] >= MODERATE)
    if test["of"] == "prevalence":
        before, after = (_log_odds(test[side]["value"]) for side in ("before", "after"))
        return abs(after - before) >= MODERATE
    if test["of"] in _RIGHT:
        return bool(abs(test["value"] - _RIGHT[test["of"]]) >= MODERATE)
    return True


def _log_odds(share: float) -> float:
    return math.log(share / (1.0 - share))


def _key(area: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(area.get(name) for name in ("of", "label", "metric", "fpr_min", "fpr_max"))


def _change(before: Json, after: Json, level: float) -> Json:
    """Return the test of the change of a metric between two independent samples."""
    from core.metrics.comparison import change

    ends = ("value", "low", "high")
    old, new = (metrics.Interval(*(area[end] for end in ends)) for area in (before, after))
    found = change(old, new, level)
    what = {name: before[name] for name in before.keys() - set(ends)}
    return what | {
        "before": old._asdict(),
        "after": new._asdict(),
        "change": {"value": found.value, "low": found.low, "high": found.high},
        "p_value": found.p_value,
    }


_RIGHT = {"in_the_large": 0.0, "slope": 1.0, "shape": 0.0, "periods": 0.0}
"""What the metrics of calibration are where probabilities are right."""


def _errors_of(found: Reliability, rows: float) -> list[Json]:
    """Return the tests of the probabilities against the outcomes. `rows` is the number of rows here divided by that of
    the calibration's fit: the tests allow for the fit's own error.
    """
    from core.metrics.comparison import change

    sizes = {"predicted": found["predicted"], "observed": found["observed"]}
    tests: list[Json] = []
    for of in ("in_the_large", "slope"):
        interval = found[of]
        if interval is None:
            continue
        here = metrics.Interval(interval["value"], interval["low"], interval["high"])
        right, times = _RIGHT[of], math.sqrt(rows)
        below, above = times * (here.value - here.low), times * (here.high - here.value)
        tested = change(metrics.Interval(right, right - below, right + above), here, found["level"])
        tests.append({"of": of, **sizes, **interval, "ranges": None, "p_value": tested.p_value})
    if (shape := found.get("shape")) is not None:
        ends = {end: shape[end] for end in ("value", "low", "high")}
        outside = _outside(found["points"])
        p_value = _p_value_of_shape(shape, rows)
        tests.append({"of": "shape", **sizes, **ends, "ranges": outside, "p_value": p_value})
    return tests


def _p_value_of_shape(shape: CalibrationShape, rows: float) -> float:
    from scipy.special import chdtrc, chdtri

    statistic = float(chdtri(shape["degrees"], max(shape["p_value"], 1e-300)))
    return float(chdtrc(shape["degrees"], statistic / (1.0 + rows)))


def _outside(points: Sequence[ReliabilityPoint]) -> list[Json]:
    """Return the ranges of probabilities in which the observed fraction leaves its consistency band."""
    sides = [
        "more"
        if point["observed"] > point["consistent_high"]
        else "fewer"
        if point["observed"] < point["consistent_low"]
        else None
        for point in points
    ]
    ranges = []
    for side, run in groupby(zip(sides, points, strict=True), key=itemgetter(0)):
        if side is not None:
            ends = [point["probability"] for _, point in run]
            ranges.append({"low": ends[0], "high": ends[-1], "observed": side})
    return ranges


def find_errors(found: Reliability) -> list[Json]:
    """Return the metrics of a calibration's own reliability that are wrong significantly and by a relevant size."""
    from core.metrics.estimates import holm

    tests = _errors_of(found, 1.0)  # each row was predicted by a calibration of about as many rows
    if (periods := found.get("periods")) is not None:
        values = [each["value"] for each in periods["levels"]]
        moved = {"value": max(values) - min(values), "levels": values}
        tests.append({"of": "periods", **moved, "p_value": periods["p_value"]})
    adjusted = holm(np.array([test["p_value"] for test in tests]))
    wrong = adjusted < 1.0 - found["level"]
    return [test for test, beyond in zip(tests, wrong, strict=True) if beyond and _matters(test)]


def _moves(
    features: Sequence[str],
    importance: Mapping[str, float],
    paths: tuple[str, str],
    orders: Sequence[RowOrder],
    worth: float,
    level: float,
) -> list[Json]:
    """Return the tests of the features between the training table and the evaluated table (`paths` in this order)."""
    from app.ingest.profile import TableReader

    found = []
    with TableReader(Path(paths[0])) as old, TableReader(Path(paths[1])) as new:
        samples = [
            Sampled(table, path, order)
            for table, path, order in zip((old, new), paths, orders, strict=True)
        ]
        for name in features:
            columns = old.sample(name), new.sample(name)
            if columns[0].type == columns[1].type:
                what = {"name": name, "importance": importance.get(name)}
                found.append(what | _move(*columns, samples, worth, level))
    return found


def _move(
    before: pa.ChunkedArray,
    after: pa.ChunkedArray,
    samples: Sequence[Sampled],
    worth: float,
    level: float,
) -> Json:
    """Return the test of how far a column's values have moved (PSI), and its bins: tenths of its numbers, or its most
    frequent texts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from core.metrics.drift import bin_edges, population_stability

    if numbers := pa.types.is_floating(before.type):
        old, new = before.to_numpy(zero_copy_only=False), after.to_numpy(zero_copy_only=False)
        edges = bin_edges(old[~np.isnan(old)])
        bins_of = [
            np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x)) for x in (old, new)
        ]
        ends = [None, *edges.tolist(), None]
        names = [_bin("values", low, high) for low, high in pairwise(ends)]
    else:
        words = pc.value_counts(before.drop_null())
        order = np.argsort(-words.field(1).to_numpy(), kind="stable")
        known = words.field(0).take(pa.array(order))  # the first have a bin each, the others one
        n_bins = min(len(known), _COMMON) + 2  # and words that training did not know have one, too
        bins_of = []
        for column in (before, after):
            at = pc.index_in(column, known).to_numpy(zero_copy_only=False)
            at = np.where(np.isnan(at), n_bins - 1, np.minimum(at, n_bins - 2))
            missing = pc.is_null(column).to_numpy(zero_copy_only=False)
            bins_of.append(np.where(missing, n_bins, at).astype(np.intp))
        names = [_bin("category", category=word) for word in known.slice(0, n_bins - 2).to_pylist()]
        names += [_bin("rare")] * (n_bins - 1 - len(names)) + [_bin("new")]
    names.append(_bin("missing"))
    masses = [np.bincount(each, minlength=len(names)).astype(np.float64) for each in bins_of]
    shares = [mass / mass.sum() for mass in masses]
    dependence, reason = depend(samples, bins_of, len(names), ordered=numbers, worth=worth)
    bins = [
        name | {"before": old_share, "after": new_share}
        for name, old_share, new_share in zip(
            names, *(each.tolist() for each in shares), strict=True
        )
        if old_share or new_share
    ]
    if reason is not None:
        distance = float(np.abs(shares[1] - shares[0]).sum()) / 2.0
        return _no_test(distance, reason) | {"bins": bins}
    rows = [len(each) * (worth if dependence is None else 1.0) for each in bins_of]
    moved = population_stability(masses[0], masses[1], (rows[0], rows[1]), level, dependence)
    return moved._asdict() | {"psi": moved.psi._asdict(), "reason": None, "bins": bins}


def _no_test(distance: float, reason: str) -> Json:
    return {"psi": None, "distance": distance, "p_value": None, "reason": reason}


def _bin(
    of: str, low: float | None = None, high: float | None = None, category: str | None = None
) -> Json:
    return {"of": of, "low": low, "high": high, "category": category}


def _shifts(
    kept: RocCurve,
    rows: Sequence[float],
    scored: BipartiteMeasure,
    series: ScoreSeries,
    level: float,
) -> list[Json]:
    """Return the tests of the scores of each class. Whether the validation rows were grouped is not stored: they are
    assumed to be grouped as these are.
    """
    from core.metrics.comparison import ScoreSample, score_shift

    found = []
    for number, (of, shares) in enumerate((("positives", "tpr"), ("negatives", "fpr"))):
        worth = min(1.0, scored.effective[number] / scored.rows[number])
        old, new = (
            ScoreSample(curve.thresholds, getattr(curve, shares), n)
            for curve, n in ((kept, rows[number] * worth), (scored.curve, scored.effective[number]))
        )
        scores = (series.positives, series.negatives)[number]
        shift = score_shift(old, new, level, series=scores if series.by_time else None)
        measured: Json = {"of": of, **shift._asdict(), "reason": None}
        if shift.psi is None:
            measured |= _no_test(shift.distance, TOO_SHORT)
        elif not series.by_time and not series.grouped and scores_alike(scores):
            measured |= _no_test(shift.distance, NO_TIME)
        else:
            measured["psi"] = shift.psi._asdict()
        found.append(measured)
    return found


def _words(test: Json, level: float) -> str:
    """Return a test as text: its name, the size of the change, and whether it is significant."""
    if test["p_value"] is None:
        name = test["name"] if "name" in test else f"scores of the {test['of']}"
        return f"{name}: distance {test['distance']:.3f}, no test: {test['reason']}"
    p_value = f"adjusted p {_shown(test['adjusted_p_value'])}"
    if test["changed"]:
        chance = "statistically significant"
    elif test["adjusted_p_value"] < 1.0 - level:
        chance = "statistically significant but small"
    else:
        chance = "not statistically significant"
    end = f"{chance} ({p_value})"
    if "name" in test:
        weight = (
            "" if test["importance"] is None else f", importance {_percent(test['importance'])}"
        )
        return f"{test['name']}: PSI {_with_ends(test['psi'])}, distance {test['distance']:.3f}{weight}, {end}"
    if "psi" in test:
        direction = (
            "higher" if test["higher"] > 0.5 else "lower" if test["higher"] < 0.5 else "spread"
        )
        return (
            f"{test['of']} score {direction}: a score here exceeds one at validation with probability "
            f"{test['higher']:.3f}; distance {test['distance']:.3f}, PSI {_with_ends(test['psi'])}, {end}"
        )
    if test["of"] in _RIGHT and test["changed"]:
        return f"{say_error(test)}, {end}"
    if test["of"] == "slope":
        return f"calibration slope {_with_ends(test)}, {end}"
    if test["of"] == "shape":
        return f"calibration shape error {_with_ends(test)}, {end}"
    if test["of"] == "in_the_large":
        shares = f"{_percent(test['predicted'])}, observed {_percent(test['observed'])}"
        return f"mean probability {shares}, error {_with_ends(test)} in log odds, {end}"
    moved = test["change"]
    direction = "higher" if moved["value"] > 0 else "lower" if moved["value"] < 0 else "the same"
    return (
        f"{_name(test)} {test['before']['value']:.4f} at validation, {test['after']['value']:.4f} here: "
        f"{direction} by {abs(moved['value']):.4f} [{moved['low']:+.4f}, {moved['high']:+.4f}], {end}"
    )


def say_error(test: Json) -> str:
    """Return a phrase on how the probabilities are wrong, from a significant test."""
    if test["of"] == "periods":
        levels = ", ".join(f"{level:+.2f}" for level in test["levels"])
        return (
            f"the level changes from time window to time window ({levels} in log odds relative to the calibration, "
            "which follows the latest windows); recalibrate on newer rows"
        )
    if test["of"] == "shape":
        return (
            f"the probabilities have a shape error of {_with_ends(test)} in log odds (root mean square)"
            f"{_say_ranges(test['ranges'])}"
        )
    if test["of"] == "slope":
        side = "extreme" if test["value"] < 1.0 else "moderate"
        return f"probabilities are too {side}: the calibration slope is {_with_ends(test)}"
    side = "low" if test["value"] > 0.0 else "high"
    return (
        f"probabilities are too {side}: {_percent(test['predicted'])} of the rows were expected to be positive, but "
        f"{_percent(test['observed'])} are (error {_with_ends(test)} in log odds)"
    )


def _say_ranges(ranges: Sequence[Json]) -> str:
    """Return the ranges of probabilities with too many or too few positives, as text."""
    sentences = []
    for side in ("more", "fewer"):
        where = [
            f"{each['low']:.2g} to {each['high']:.2g}"
            for each in ranges
            if each["observed"] == side
        ]
        if where:
            sentences.append(
                f"{side} positives than expected at probabilities of {', '.join(where)}"
            )
    return f": {'; '.join(sentences)}" if sentences else ""


def _with_ends(interval: Mapping[str, float]) -> str:
    return f"{interval['value']:.3f} ({interval['low']:.3f} to {interval['high']:.3f})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _name(area: Json) -> str:
    """Return the name of a metric in a sentence."""
    match area["of"]:
        case "prevalence":
            return "fraction of positives"
        case "pair_order":
            return "fraction of pairs in order"
        case "list":
            return f"mean {area['metric']} per query"
        case "grades":
            return f"{area['metric']} of the grades"
        case "pauc":
            return f"partial AUC (FPR {area['fpr_min']:g} to {area['fpr_max']:g})"
    return f"AUC of {area['label']}" if "label" in area else "AUC"


def _shown(p_value: float) -> str:
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def _sum_up(
    areas: Sequence[Json],
    prevalence: Json | None,
    probabilities: Sequence[Json],
    moved: Sequence[Json],
    shifts: Sequence[Json],
) -> str:
    """Return sentences on what has changed, and whether the model ranks as before."""
    worse = [area for area in areas if area["changed"] and area["change"]["value"] < 0]
    better = [area for area in areas if area["changed"] and area["change"]["value"] > 0]
    sentences = []
    if found := worse or better:
        how = "worse" if worse else "better"
        named = ", ".join(
            f"{_name(each)} {each['after']['value']:.3f} here, {each['before']['value']:.3f} at validation"
            for each in found
        )
        sentences.append(f"The model ranks significantly {how}: {named}.")
    sentences += [_sentence(say_error(test)) for test in probabilities if test["changed"]]
    if prevalence is not None and prevalence["changed"]:
        before, after = (_percent(prevalence[side]["value"]) for side in ("before", "after"))
        more = "More" if prevalence["change"]["value"] > 0 else "Fewer"
        sentences.append(f"{more} rows are positive: {after} here, {before} at validation.")
    if moved:
        named = ", ".join(
            f"{each['name']} (PSI {each['psi']['value']:.2f}"
            + ("" if each["importance"] is None else f", importance {_percent(each['importance'])}")
            + ")"
            for each in moved[:_NAMED]
        )
        rest = f" and {len(moved) - _NAMED} more" if len(moved) > _NAMED else ""
        sentences.append(f"Features with changed values: {named}{rest}.")
    if classes := " and ".join(shift["of"] for shift in shifts if shift["changed"]):
        sentences.append(
            f"The scores of the {classes} have changed, so the rates at a threshold have changed too."
        )
    if not worse and not better:
        if not sentences:
            return "No significant change since validation."
        values = ", ".join(
            f"{_name(each)} {each['after']['value']:.3f} here, {each['before']['value']:.3f} at validation"
            for each in areas[:1]
            if each["before"]["value"] is not None and each["after"]["value"] is not None
        )
        same = "The ranking has not changed significantly" + (f" ({values})" if values else "")
        return f"{same}. Other changes: {' '.join(sentences)}"
    return " ".join(sentences)


def _untested(features: Sequence[Json], shifts: Sequence[Json]) -> str:
    """Return a sentence on what could not be tested, and why; empty if there is nothing."""
    reasons = [each["reason"] for each in (*features, *shifts) if each["reason"] is not None]
    if not reasons:
        return ""
    n_features = sum(each["reason"] is not None for each in features)
    classes = [f"the scores of the {each['of']}" for each in shifts if each["reason"] is not None]
    columns = [f"{n_features} feature{'s' if n_features > 1 else ''}"] if n_features else []
    what = ", ".join([*columns, *classes])
    return f" Not tested: {what} ({reasons[0]})."


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
