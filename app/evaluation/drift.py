"""The drift since a model's validation: metrics, probabilities, fraction of positives, features and scores.

Each is tested, with the size of the change and an interval. `changed` is True if a change is statistically significant,
adjusted for all tests of an evaluation (Holm), and of a relevant size, because with many rows every difference is
significant.
"""

from __future__ import annotations

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
from app.findings.finding import stored
from app.findings.probabilities import RIGHT, error_tests, is_large, probabilities, say_error
from app.findings.ranking import area_name, ranking_kept
from app.findings.shift import listed, odds_change, positives_kept, rates_kept, say_test, stable
from app.ingest.sampling import sampled_rows
from app.measures import percent
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
    Reliability,
    TableFile,
    TableProfile,
)
from app.platform.sql import Json, Session
from app.platform.tables import Model
from app.shift_tests import ALPHA, MODERATE, adjust, say_chance, with_ends
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
    n_rows: int | None,
    reliability: Reliability | None,
    table: TableFile,
    model: EvaluatedModel,
    known: Mapping[str, Sequence[str] | None],
    orders: Sequence[RowOrder],
    workdir: Path,
) -> tuple[Json, list[Json]]:
    """Measure the drift between the validation (`remember_validation`) and an evaluation at the same level, and make
    the findings (`findings.finding.stored`, without rows).

    `n_rows` is the number of rows or pairs that the metrics are of, None if unknown. `reliability` is that of the
    model's probabilities on the rows, `table` is their file, `known` are the categories that the model knows, and
    `orders` are those of the rows of the training table and of this one.

    The tests with outcomes have the level of the validation's intervals together, those of the scores of all rows and
    of the features that of `findings.shift`, and those of protected columns that are no features another of their own.
    """
    from app.ingest.profile import TableReader

    level, scored = before["level"], measure if isinstance(measure, BipartiteMeasure) else None
    windows = {(area["fpr_min"], area["fpr_max"]) for area in before["areas"] if "fpr_min" in area}
    after = {_key(area): area for area in measure.areas(sorted(windows), level)}
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
    errors = []
    if reliability is not None and scored is not None and "effective" in before:
        errors = error_tests(reliability, sum(scored.effective) / sum(before["effective"]))
    worth = 1.0 if scored is None else scored.worth
    weight = table["weight"]
    compared = table["path"], orders[-1], weight
    features = _moves(profile, before["importance"], compared, known, worth, level)
    with_outcomes = [*areas, *filter(None, [prevalence]), *errors, *by_class]
    adjust(with_outcomes, 1.0 - level)
    for test in with_outcomes:
        test["changed"] = test["changed"] and _matters(test)
        test["words"] = _words(test, level)
    with TableReader(Path(table["path"])) as opened:
        n_compared = opened.rows
    findings = [ranking_kept(areas, level, n_rows)]
    if errors and reliability is not None:
        findings.append(probabilities(reliability, [test for test in errors if test["changed"]]))
    if prevalence is not None:
        findings.append(positives_kept(prevalence))
    findings.append(stable(all_rows, features, n_compared))
    if by_class:
        findings.append(rates_kept(by_class))
    protected: list[Json] = []
    if (names := model["protected"]) and model["trained_on"] is not None:
        of_them = profile_table(model["trained_on"], names, orders[0], weight)
        nothing = dict.fromkeys(names, 0.0)  # the model cannot depend on them directly
        protected = _moves(of_them, nothing, compared, {}, worth, level)
        stable(None, protected, n_compared)
    return {
        "level": level,
        "alpha": ALPHA,
        "areas": areas,
        "prevalence": prevalence,
        "probabilities": errors,
        "features": listed([*features, *protected]),
        "scores": [*by_class, *filter(None, [all_rows])],
    }, [stored(each) for each in findings]


def _matters(test: Json) -> bool:
    """Compare with the relevant minimum; areas have none, and `adjust` knows that of a PSI."""
    if test["of"] == "prevalence":
        return abs(odds_change(test)) >= MODERATE
    return test["of"] not in RIGHT or is_large(test)


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
    end = say_chance(test, 1.0 - level)
    if test["of"] in RIGHT and test["changed"]:
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
        f"{area_name(test)} {test['before']['value']:.4f} at validation, {test['after']['value']:.4f} here: "
        f"{direction} by {abs(moved['value']):.4f} [{moved['low']:+.4f}, {moved['high']:+.4f}], {end}"
    )
