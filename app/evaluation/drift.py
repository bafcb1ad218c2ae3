"""The drift since a model's validation: metrics, probabilities, fraction of positives, features and scores.

Each is tested, with the size of the change and an interval. `changed` is True if a change is statistically significant,
adjusted for all tests of an evaluation (Holm), and of a relevant size, because with many rows every difference is
significant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
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
from app.models import repository as model_rows
from app.models.column_drift import (
    MODERATE,
    bin_column,
    by_weight,
    compare_column,
    importance_shares,
    matters_to_model,
    name_columns,
    outside_range,
    percent,
    profile_table,
    say_column,
    say_scores,
    say_untested,
    say_whose,
    thinned,
    with_ends,
)
from app.models.curves import curve_of, read_curve, write_curve
from app.models.row_order import RowOrder, SampledRows, ScoreSeries
from app.models.score_drift import (
    all_scores,
    compare_scores,
    is_cross_validated,
    untested_scores,
)
from app.models.service import VALIDATION
from app.platform.documents import (
    CalibrationShape,
    Reliability,
    ReliabilityPoint,
    TableFile,
    TableProfile,
)
from app.platform.sql import Json, Session
from app.platform.tables import Model
from core import metrics

if TYPE_CHECKING:
    from core.metrics import RocCurve


_LISTED = 100  # features of an evaluation
_WITH_BINS = 20  # of these, with their bins
_NAMED = 5  # columns without a test in a summary


class Remembered(TypedDict):
    """A model's validation. `curve` is a file, and `effective` is the effective number of rows of each class.

    `prevalence` is the fraction of positives with its interval, `importance` has each feature's fraction of the
    importance, and `profile` the distributions of the features. `of_folds`: the curve is of out-of-fold scores.
    """

    level: float
    areas: list[Json]
    curve: NotRequired[str]
    of_folds: NotRequired[bool]
    effective: NotRequired[list[float]]
    prevalence: NotRequired[Json]
    importance: dict[str, float]
    profile: TableProfile


_CURVE_FILE = "validation.curve"


def remember_validation(
    session: Session, model: Model, workdir: Path
) -> tuple[Remembered | None, list[str]]:
    """Return the validation (None: nothing to compare with) for the fit process, and warnings; writes the curve."""
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
        "importance": importance_shares(session, model),
        "profile": model_rows.find_profile(session, model.id),
    }
    row = model_rows.find_curve(session, model.id, VALIDATION)
    if row is None:
        return remembered, []
    effective = [row.metrics["positive_effective"], row.metrics["negative_effective"]]
    totals = (row.metrics["positive_weight"], row.metrics["negative_weight"])
    remembered["effective"] = effective
    remembered["prevalence"] = _prevalence(totals, effective, level)
    if (untested := untested_scores(session, model)) is not None:
        return remembered, [f"scores were not compared: {untested}"]
    write_curve(workdir / _CURVE_FILE, curve_of(row))
    return remembered | {"curve": _CURVE_FILE, "of_folds": is_cross_validated(model)}, []


def _prevalence(totals: Sequence[float], effective: Sequence[float], level: float) -> Json:
    """The interval is Wilson's."""
    value = totals[0] / sum(totals)
    return metrics.wilson_interval(value, sum(effective), level)._asdict()


def validation_areas(session: Session, model: Model) -> tuple[float | None, list[Json]]:
    """Return the level of intervals, and the areas."""
    found = model_rows.find_metrics(session, model.id, VALIDATION)
    if found is None:
        return None, []
    if "labels" in found:
        labels = found["labels"]
        areas = [{"of": "auc", "label": one["label"], **one["auc"]} for one in labels if one["auc"]]
        return labels[0]["level"], areas
    if "pairs" in found:
        interval = {"value": found["value"], "low": found["low"], "high": found["high"]}
        return found["level"], [{"of": "pair_order", **interval}]
    of_lists = list_areas(found.get("lists"))
    if "grades" in found:
        return found["level"], [*of_lists, *order_areas(found["order"])]
    windows: list[Json] = [{"of": "pauc", **one} for one in found["pauc"]]
    return found["level"], [{"of": "auc", **found["auc"]}, *windows, *of_lists]


def measure_drift(
    before: Remembered,
    measure: Measure,
    reliability: Reliability | None,
    table: TableFile,
    model: EvaluatedModel,
    known: Mapping[str, Sequence[str] | None],
    orders: Sequence[RowOrder],
    workdir: Path,
) -> Json:
    """Measure the drift between the validation (`remember_validation`) and an evaluation at the same level.

    `reliability` is that of the model's probabilities on the rows, `table` is their file, `known` are the categories
    that the model knows, and `orders` are those of the rows of the training table and of this one.
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
        series = scored.series(table["path"], orders[-1])
        positives = before["prevalence"]["value"], scored.totals[0] / sum(scored.totals)
        shifts = _shifts(
            curve,
            positives,
            before["effective"],
            scored,
            series,
            level,
            of_folds=before.get("of_folds", False),
        )
    if scored is not None and "prevalence" in before:
        here = _prevalence(scored.totals, scored.effective, level)
        prevalence = _change({"of": "prevalence", **before["prevalence"]}, here, level)
    probabilities = []
    if reliability is not None and scored is not None and "effective" in before:
        rows = sum(scored.effective) / sum(before["effective"])
        probabilities = _errors_of(reliability, rows)
    worth = 1.0 if scored is None else scored.worth
    weight = table["weight"]
    compared = table["path"], orders[-1], weight
    features = _moves(before["profile"], before["importance"], compared, known, worth, level)
    if (protected := model["protected"]) and model["trained_on"] is not None:
        of_them = profile_table(model["trained_on"], protected, orders[0], weight)
        nothing = dict.fromkeys(protected, 0.0)  # the model cannot depend on them directly
        features += _moves(of_them, nothing, compared, {}, worth, level)
    tests = [*areas, *filter(None, [prevalence]), *probabilities, *features, *shifts]
    made = [test for test in tests if test["p_value"] is not None]
    adjusted = holm(np.array([test["p_value"] for test in made])).tolist()
    for test in tests:
        test["adjusted_p_value"] = test["changed"] = None
    for test, p_value in zip(made, adjusted, strict=True):
        test["adjusted_p_value"] = p_value
        test["changed"] = p_value < 1.0 - level and _matters(test)
    for test in tests:
        test["words"] = _words(test, level)
    features.sort(key=by_weight)
    for each in features[_WITH_BINS:]:
        each["bins"] = None
    tested: Json = {
        "areas": areas,
        "prevalence": prevalence,
        "probabilities": probabilities,
        "features": features,
        "scores": shifts,
    }
    return {"level": level, **_verdict(tested), **tested, "features": features[:_LISTED]}


def _verdict(drift: Json) -> Json:
    """Add whether the tests report a change, the conclusion, and the findings, most important first."""
    areas, probabilities, shifts = drift["areas"], drift.get("probabilities", []), drift["scores"]
    prevalence, features = drift.get("prevalence"), drift["features"]
    moved = [each for each in features if each["changed"]]
    others = [*areas, *filter(None, [prevalence]), *probabilities, *shifts]
    summary, *findings = _sum_up(areas, prevalence, probabilities, moved, shifts)
    return {
        "changed": any(map(matters_to_model, moved)) or any(test["changed"] for test in others),
        "summary": summary,
        "findings": [*findings, *_untested(features, shifts)],
    }


def say_drift(drift: Mapping[str, Any]) -> str:
    """Return the conclusion and the findings as a paragraph."""
    return " ".join([drift["summary"], *drift.get("findings", ())])


def is_recalibrated(metrics: Json | None, version: int | None, fits: Mapping[int, int]) -> bool:
    """Return True if an evaluation is of an earlier calibration than the present `version`, and probabilities differ.

    `fits` has the version in which each version was fitted, so an undone recalibration does not count.
    """
    tested = ((metrics or {}).get("calibration") or {}).get("version")
    if tested is None or version is None or tested >= version:
        return False
    return fits.get(tested) != fits.get(version)


def without_probabilities(drift: Json) -> Json:
    """Leave out the errors of the probabilities; keep the verdict of the other tests."""
    return _without(drift, {"probabilities": []})


def after_recalibration(drift: Json) -> Json:
    """Leave out what a later recalibration has replaced: errors of probabilities, and the change of prevalence."""
    return _without(drift, {"probabilities": [], "prevalence": None})


def _without(drift: Json, left_out: Json) -> Json:
    """State the verdict again if a test that is left out reports a change."""
    tests = [*drift.get("probabilities", []), *filter(None, [drift.get("prevalence")])]
    kept = {**drift, **left_out}
    remaining = [*kept["probabilities"], *filter(None, [kept.get("prevalence")])]
    if not any(test["changed"] for test in tests if test not in remaining):
        return kept
    return kept | _verdict(kept)


def _matters(test: Json) -> bool:
    """Compare with the relevant minimum; areas have none."""
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
    """Test the change between two independent samples."""
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
    """Test probabilities against outcomes. `rows` is their number divided by that of the calibration's fit.

    The tests allow for the fit's own error.
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
    """Return ranges where the observed fraction leaves its consistency band."""
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
    """Return metrics that are significantly and relevantly wrong."""
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
    profile: TableProfile,
    importance: Mapping[str, float],
    table: tuple[str, RowOrder, str | None],
    known: Mapping[str, Sequence[str] | None],
    worth: float,
    level: float,
) -> list[Json]:
    """Test the features of the evaluated `table` (path, order, weight column). `known` are the model's categories."""
    import pyarrow as pa

    from app.ingest.profile import TableReader

    found, (path, order, weight) = [], table
    with TableReader(Path(path)) as opened:
        rows = SampledRows.of_table(opened, path, order, weight)
        for column in profile["columns"]:
            values = thinned(opened.sample(column["name"]))
            numbers = column["common"] is None
            if pa.types.is_floating(values.type) is not numbers:
                continue
            words = None
            if not numbers and column["name"] in known:
                words = frozenset(known[column["name"]] or ())
            bins, outside = bin_column(column, values, words), None
            if numbers:
                outside = outside_range(column, values.to_numpy(zero_copy_only=False))
            what = {"name": column["name"], "importance": importance.get(column["name"])}
            test = compare_column(column, profile, bins, rows, level, worth=worth, outside=outside)
            found.append(what | test)
    return found


def _shifts(
    kept: RocCurve,
    prevalence: tuple[float, float],
    rows: Sequence[float],
    scored: BipartiteMeasure,
    series: ScoreSeries,
    level: float,
    *,
    of_folds: bool,
) -> list[Json]:
    """Test the scores of each class, and all. Validation rows are assumed to be grouped as these are."""
    from core.metrics.comparison import ScoreSample

    compare = partial(
        compare_scores,
        level=level,
        by_time=series.by_time,
        grouped=series.grouped,
        of_folds=of_folds,
    )
    curves, found, worths = (kept, scored.curve), [], []
    for number, (of, shares) in enumerate((("positives", "tpr"), ("negatives", "fpr"))):
        worths.append(min(1.0, scored.effective[number] / scored.rows[number]))
        old, new = (
            ScoreSample(curve.thresholds, getattr(curve, shares), n)
            for curve, n in zip(
                curves, (rows[number] * worths[number], scored.effective[number]), strict=True
            )
        )
        scores = (series.positives, series.negatives)[number]
        found.append(compare(of, (old, new), scores))
    effective = [n * worth for n, worth in zip(rows, worths, strict=True)], scored.effective
    old, new = (all_scores(*each) for each in zip(curves, prevalence, effective, strict=True))
    stratum = None if series.by_time else series.y
    found.append(compare("all", (old, new), series.every, stratum=stratum))
    return found


def _words(test: Json, level: float) -> str:
    """Return name, size and significance as text."""
    if test["p_value"] is None:
        return say_untested(test)
    p_value = f"adjusted p {_shown(test['adjusted_p_value'])}"
    if test["changed"]:
        chance = "statistically significant"
    elif test["adjusted_p_value"] < 1.0 - level:
        chance = "statistically significant but small"
    else:
        chance = "not statistically significant"
    end = f"{chance} ({p_value})"
    if "name" in test:
        return f"{say_column(test)}, {end}"
    if "psi" in test:
        return f"{say_scores(test)}, {end}"
    if test["of"] in _RIGHT and test["changed"]:
        return f"{say_error(test)}, {end}"
    if test["of"] == "slope":
        return f"calibration slope {with_ends(test)}, {end}"
    if test["of"] == "shape":
        return f"calibration shape error {with_ends(test)}, {end}"
    if test["of"] == "in_the_large":
        shares = f"{percent(test['predicted'])}, observed {percent(test['observed'])}"
        return f"mean probability {shares}, error {with_ends(test)} in log odds, {end}"
    moved = test["change"]
    direction = "higher" if moved["value"] > 0 else "lower" if moved["value"] < 0 else "the same"
    return (
        f"{_name(test)} {test['before']['value']:.4f} at validation, {test['after']['value']:.4f} here: "
        f"{direction} by {abs(moved['value']):.4f} [{moved['low']:+.4f}, {moved['high']:+.4f}], {end}"
    )


def say_error(test: Json) -> str:
    """Say how the probabilities are wrong, from a significant test."""
    if test["of"] == "periods":
        levels = ", ".join(f"{level:+.2f}" for level in test["levels"])
        return (
            f"the level changes from time window to time window ({levels} in log odds relative to the calibration, "
            "which follows the latest windows); recalibrate on newer rows"
        )
    if test["of"] == "shape":
        return (
            f"the probabilities have a shape error of {with_ends(test)} in log odds (root mean square)"
            f"{_say_ranges(test['ranges'])}"
        )
    if test["of"] == "slope":
        side = "extreme" if test["value"] < 1.0 else "moderate"
        return f"probabilities are too {side}: the calibration slope is {with_ends(test)}"
    side = "low" if test["value"] > 0.0 else "high"
    return (
        f"probabilities are too {side}: {percent(test['predicted'])} of the rows were expected to be positive, but "
        f"{percent(test['observed'])} are (error {with_ends(test)} in log odds)"
    )


def _say_ranges(ranges: Sequence[Json]) -> str:
    """Return the ranges with too many or too few positives."""
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


def _name(area: Json) -> str:
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
) -> list[str]:
    """Say whether the model ranks as before, and then what else has changed."""
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
        before, after = (percent(prevalence[side]["value"]) for side in ("before", "after"))
        more = "More" if prevalence["change"]["value"] > 0 else "Fewer"
        sentences.append(f"{more} rows are positive: {after} here, {before} at validation.")
    if moved:
        sentences.append(f"Features with changed values: {name_columns(moved)}.")
    changed = [shift["of"] for shift in shifts if shift["changed"]]
    if classes := " and ".join(of for of in changed if of != "all"):
        sentences.append(
            f"The scores of the {classes} have changed, so the rates at a threshold have changed too."
        )
    elif changed:
        sentences.append("The distribution of all scores has changed.")
    if not worse and not better:
        if not sentences:
            return ["No significant change since validation."]
        values = ", ".join(
            f"{_name(each)} {each['after']['value']:.3f} here, {each['before']['value']:.3f} at validation"
            for each in areas[:1]
            if each["before"]["value"] is not None and each["after"]["value"] is not None
        )
        same = "The ranking has not changed significantly" + (f" ({values})" if values else "")
        return [f"{same}.", *sentences]
    return sentences


def _untested(features: Sequence[Json], shifts: Sequence[Json]) -> list[str]:
    """Say what could not be tested, by the reason."""
    sentences = []
    for reason in dict.fromkeys(each["reason"] for each in (*features, *shifts)):
        if reason is None:
            continue
        names = [each["name"] for each in features if each["reason"] == reason]
        classes = [
            f"{'' if each['of'] == 'all' else 'the '}{say_whose(each['of'])}"
            for each in shifts
            if each["reason"] == reason
        ]
        more = [f"{len(names) - _NAMED} more columns"] if len(names) > _NAMED else []
        sentences.append(f"Not tested: {', '.join([*names[:_NAMED], *more, *classes])} ({reason}).")
    return sentences


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
