"""The drift since a model's validation: metrics, probabilities, fraction of positives, features and scores.

Each is tested, with the size of the change and an interval. `changed` is True if a change is statistically significant,
adjusted for all tests of an evaluation (Holm), and of a relevant size, because with many rows every difference is
significant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
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
from app.findings.shift import (
    ALPHA,
    MODERATE,
    SHIFTED,
    adjust,
    decide,
    listed,
    percent,
    say_test,
    shown_p,
    with_ends,
)
from app.ingest.sampling import sampled_rows
from app.models import repository as model_rows
from app.models.column_drift import (
    bin_column,
    compare_column,
    importance_shares,
    outside_range,
    profile_table,
)
from app.models.curves import curve_of, read_curve, write_curve
from app.models.row_order import RowOrder, SampledRows, ScoreSeries, most_sampled
from app.models.score_drift import (
    all_scores,
    compare_scores,
    is_cross_validated,
    sample_of,
    untested_scores,
)
from app.models.service import VALIDATION
from app.platform.documents import (
    CalibrationShape,
    Reliability,
    TableFile,
    TableProfile,
)
from app.platform.sql import Json, Session
from app.platform.tables import Model
from core import metrics

if TYPE_CHECKING:
    from core.metrics import RocCurve


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

    The tests with outcomes have the level of the validation's intervals together, those of the scores of all rows and
    of the features that of `findings.shift`, and those of protected columns that are no features another of their own.
    """
    from app.ingest.profile import TableReader

    level, scored = before["level"], measure if isinstance(measure, BipartiteMeasure) else None
    found = [(area["fpr_min"], area["fpr_max"]) for area in before["areas"] if "fpr_min" in area]
    after = {_key(area): area for area in measure.areas(sorted(set(found)), level)}
    areas = [
        _change(area, after[_key(area)], level) for area in before["areas"] if _key(area) in after
    ]
    profile = before["profile"]
    by_class, all_rows, prevalence = [], None, None
    if scored is not None and "curve" in before:
        curve = read_curve(workdir / before["curve"])
        series = scored.series(table["path"], orders[-1])
        of_folds = before.get("of_folds", False)
        tests = _Shifts(curve, before["effective"], scored, series, level, of_folds=of_folds)
        by_class = tests.by_class()
        all_rows = tests.of_all(before["prevalence"]["value"], len(profile["columns"]))
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
    features = _moves(profile, before["importance"], compared, known, worth, level)
    with_outcomes = [*areas, *filter(None, [prevalence]), *probabilities, *by_class]
    adjust(with_outcomes, 1.0 - level)
    for test in with_outcomes:
        test["changed"] = test["changed"] and _matters(test)
        test["words"] = _words(test, level)
    with TableReader(Path(table["path"])) as opened:
        n_rows = opened.rows
    verdict, words = decide(all_rows, features, n_rows)
    protected: list[Json] = []
    if (names := model["protected"]) and model["trained_on"] is not None:
        of_them = profile_table(model["trained_on"], names, orders[0], weight)
        nothing = dict.fromkeys(names, 0.0)  # the model cannot depend on them directly
        protected = _moves(of_them, nothing, compared, {}, worth, level)
        decide(None, protected, n_rows)
    tested: Json = {
        "areas": areas,
        "prevalence": prevalence,
        "probabilities": probabilities,
        "features": listed([*features, *protected]),
        "scores": [*by_class, *filter(None, [all_rows])],
        "verdict": verdict,
        "shift": words,
    }
    return {"level": level, "alpha": ALPHA, **_sum_up(tested), **tested}


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


def after_recalibration(drift: Json) -> Json:
    """Leave out what a later recalibration has replaced: errors of probabilities, and the change of prevalence."""
    kept = {**drift, "probabilities": [], "prevalence": None}
    return kept | _sum_up(kept)


def _matters(test: Json) -> bool:
    """Compare with the relevant minimum; areas have none, and `adjust` knows that of a PSI."""
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
        tests.append({"of": of, **sizes, **interval, "p_value": tested.p_value})
    if (shape := found.get("shape")) is not None:
        ends = {end: shape[end] for end in ("value", "low", "high")}
        p_value = _p_value_of_shape(shape, rows)
        tests.append({"of": "shape", **sizes, **ends, "p_value": p_value})
    return tests


def _p_value_of_shape(shape: CalibrationShape, rows: float) -> float:
    from scipy.special import chdtrc, chdtri

    statistic = float(chdtri(shape["degrees"], max(shape["p_value"], 1e-300)))
    return float(chdtrc(shape["degrees"], statistic / (1.0 + rows)))


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
        rows = SampledRows.of_table(opened, path, order, weight, len(profile["columns"]))
        for column in profile["columns"]:
            values = rows.of(opened.sample(column["name"]))
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


class _Shifts:
    """The tests of the scores against those of the validation, whose rows are assumed to be grouped as these are."""

    def __init__(
        self,
        kept: RocCurve,
        rows: Sequence[float],
        scored: BipartiteMeasure,
        series: ScoreSeries,
        level: float,
        *,
        of_folds: bool,
    ) -> None:
        """`kept` is the curve of the validation, and `rows` are its effective rows of each class."""
        self._kept, self._scored, self._series = kept, scored, series
        pairs = list(zip(rows, scored.effective, scored.rows, strict=True))
        self._worths = [min(1.0, here / n) for _, here, n in pairs]
        self._effective = [n * worth for (n, _, _), worth in zip(pairs, self._worths, strict=True)]
        self._compare = partial(
            compare_scores,
            level=level,
            by_time=series.by_time,
            grouped=series.grouped,
            of_folds=of_folds,
        )

    def by_class(self) -> list[Json]:
        """Compare the scores of the positives, and those of the negatives."""
        from core.metrics.comparison import ScoreSample

        found = []
        for number, (of, shares) in enumerate((("positives", "tpr"), ("negatives", "fpr"))):
            curves = (self._kept, self._effective), (self._scored.curve, self._scored.effective)
            samples = [
                ScoreSample(curve.thresholds, getattr(curve, shares), rows[number])
                for curve, rows in curves
            ]
            scores = (self._series.positives, self._series.negatives)[number]
            found.append(self._compare(of, (samples[0], samples[1]), scores))
        return found

    def of_all(self, prevalence: float, n_columns: int) -> Json:
        """Compare the scores of the rows that a batch of these rows would compare, for as many columns."""
        old = all_scores(self._kept, prevalence, self._effective)
        every, stratum = self._series.every, None if self._series.by_time else self._series.y
        chosen = sampled_rows(len(every), most_sampled(n_columns))
        chosen = np.flatnonzero(np.isin(self._series.rows, chosen, assume_unique=True))
        scores = every[chosen]
        weight = self._scored.table.weight
        if weight is None:
            new = sample_of(scores, self._scored.worth)
        else:
            positives = self._scored.totals[0] / sum(self._scored.totals)
            new = all_scores(self._scored.curve, positives, self._scored.effective)
        stratum = None if stratum is None else stratum[chosen]
        return self._compare("all", (old, new), scores, stratum=stratum)


def _words(test: Json, level: float) -> str:
    """Return name, size and significance as text."""
    if "psi" in test:
        return say_test(test, 1.0 - level)
    p_value = f"adjusted p {shown_p(test['adjusted_p_value'])}"
    if test["changed"]:
        chance = "statistically significant"
    elif test["adjusted_p_value"] < 1.0 - level:
        chance = "statistically significant but small"
    else:
        chance = "not statistically significant"
    end = f"{chance} ({p_value})"
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
            f"the probabilities have a shape error of {with_ends(test)} in log odds (root mean square, without level "
            "and slope)"
        )
    if test["of"] == "slope":
        side = "extreme" if test["value"] < 1.0 else "moderate"
        return f"probabilities are too {side}: the calibration slope is {with_ends(test)}"
    side = "low" if test["value"] > 0.0 else "high"
    return (
        f"probabilities are too {side}: {percent(test['predicted'])} of the rows were expected to be positive, but "
        f"{percent(test['observed'])} are (error {with_ends(test)} in log odds)"
    )


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


def _sum_up(drift: Json) -> Json:
    """Return whether the tests report a change, the conclusion in one sentence, and the other answers, a sentence each:
    what has changed comes first.
    """
    prevalence = drift["prevalence"]
    answers = [say_areas(drift["areas"])]
    answers += [
        (True, _sentence(say_error(test))) for test in drift["probabilities"] if test["changed"]
    ]
    if prevalence is not None and prevalence["changed"]:
        before, after = (percent(prevalence[side]["value"]) for side in ("before", "after"))
        more = "More" if prevalence["change"]["value"] > 0 else "Fewer"
        answers.append((True, f"{more} rows are positive: {after} here, {before} at validation."))
    answers.append((drift["verdict"] == SHIFTED, drift["shift"]))
    classes = [each["of"] for each in drift["scores"] if each["of"] != "all" and each["changed"]]
    if classes:
        said = f"The scores of the {' and '.join(classes)} have changed, so the rates at a threshold have changed too."
        answers.append((True, said))
    found = [said for changed, said in answers if changed]
    others = [said for changed, said in answers if not changed and said]
    if not found:
        return {
            "changed": False,
            "summary": "No significant change since validation.",
            "findings": others,
        }
    return {"changed": True, "summary": found[0], "findings": [*found[1:], *others]}


def say_areas(areas: Sequence[Json]) -> tuple[bool, str]:
    """Return whether the model ranks better or worse than at its validation, and how; empty without an area."""
    worse = [area for area in areas if area["changed"] and area["change"]["value"] < 0]
    better = [area for area in areas if area["changed"] and area["change"]["value"] > 0]
    known = [
        area
        for area in areas
        if area["before"]["value"] is not None and area["after"]["value"] is not None
    ]
    named = ", ".join(
        f"{_name(each)} {each['after']['value']:.3f} here, {each['before']['value']:.3f} at validation"
        for each in (worse or better or known[:1])
    )
    if worse or better:
        return True, f"The model ranks significantly {'worse' if worse else 'better'}: {named}."
    return False, f"The ranking has not changed significantly ({named})." if named else ""


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
