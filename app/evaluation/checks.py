"""Five checks whether a model is ready for use, from stored results; no row of a dataset is read.

Each check has passed, has failed, or is unknown, with a sentence that has its values. `ranks` and `beats_baselines`
pass if the data show it significantly, and fail otherwise. The other three test for a deviation: they fail if it is
statistically significant, pass if intervals exclude every deviation beyond a margin, and are unknown otherwise, with
the number of rows that would decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from app.evaluation import repository
from app.evaluation.drift import (
    after_recalibration,
    find_errors,
    is_recalibrated,
    say_error,
    validation_areas,
    without_probabilities,
)
from app.evaluation.groups import groups_of
from app.evaluation.service import seen_of
from app.http.schemas import ALL_MEMBERS, Resource, Timestamp, Words
from app.models import calibrations, threshold_groups
from app.models import repository as model_rows
from app.models import service as models
from app.models.column_drift import matters_to_model
from app.models.simple import is_additive, is_baseline, linear_model
from app.models.threshold_groups import GroupsInput
from app.platform.sql import Json, Session
from app.platform.tables import Evaluation, Model, ModelBaselines, ModelCalibration
from core.metrics.four_fifths import Side

CheckName = Literal["ranks", "beats_baselines", "probabilities", "stable", "groups"]
EvidenceKind = Literal["validation", "cross_fitted", "later_rows", "evaluation"]
LAST = 10
"""The newest evaluations of a model among which a check seeks its own."""
_OF_CHANCE = {"auc": "AUC", "pair_order": "ordered pairs", "grades": "C-index"}
"""The metrics of a validation that are one half for a random order, with their names."""
_SHOWN = 3
"""Groups without a value that a sentence lists."""
# Differences within these margins count as none. docs/statistics-evidence.md has how often that is wrong.
AREA_MARGIN = 0.05
"""`stable`: drop of the AUC, the C-index or the fraction of ordered pairs, unless `EXCESS_FRACTION` is less."""
EXCESS_FRACTION = 0.25
"""`stable`: drop as a fraction of the excess over one half that the validation has."""
LOG_ODDS_MARGIN = 0.25
"""`probabilities`: calibration in the large, distance of the slope from 1, and root mean square of the shape. `groups`:
difference of the calibration in the large.
"""
GROUP_MARGIN = 0.1
"""`groups`: difference between the AUC, TPR or FPR of any two groups."""


class Acknowledgement(Resource):
    """A person has seen that an evaluation found a change. It holds until a new evaluation."""

    reason: str = Field(description="The reason for taking no further action.")
    author: str | None = Field(description="Name of the key that acknowledged it.")
    at: Timestamp = Field(description="Time of the acknowledgement.")


@dataclass(frozen=True, config=ALL_MEMBERS)
class ModelCheck:
    """One check of a model, based on stored results."""

    name: CheckName = Field(
        description="`ranks`: the model ranks better than chance on its validation rows. `beats_baselines`: it ranks "
        "significantly better than each baseline. `probabilities`: its probabilities match the outcomes on the newest "
        "rows evaluated with this calibration, or on held-out rows of the calibration if there are none. `stable`: its "
        "newest evaluation on new rows found no change of the ranking, of the scores or of features that matter, and "
        "excludes a drop of the ranking larger than `margin`. `groups`: its newest "
        "evaluation by groups, or its validation, found no difference and excludes differences larger than `margin`, "
        "and each group passes the four-fifths rule at the threshold of the alias moved last, or of the objective."
    )
    passed: bool | None = Field(
        description="True or false. Null if no stored result answers the question, or if there are too few rows to "
        "decide; `words` says what is missing."
    )
    words: Words = Field()
    evaluation_id: str | None = Field(
        default=None, description="The evaluation that the result is based on. Null without one."
    )
    evidence: EvidenceKind | None = Field(
        default=None,
        description="Rows that the result is based on. `validation`: the validation rows of the training. "
        "`cross_fitted`: the calibration's rows, each predicted by a calibration of other rows; this does not test "
        "later rows. `later_rows`: the last time window of the validation, with a calibration of the windows before. "
        "`evaluation`: the rows of `evaluation_id`. Null without evidence.",
    )
    margin: float | None = Field(
        default=None,
        description="Largest difference that is considered negligible. `stable`: drop of the AUC, the C-index or the "
        f"fraction of ordered pairs: {AREA_MARGIN:g}, or less for weak models. `probabilities`: {LOG_ODDS_MARGIN:g} "
        f"in level, slope and shape. `groups`: {GROUP_MARGIN:g} between the AUC, TPR or FPR of two groups, "
        f"and {LOG_ODDS_MARGIN:g} for the log odds of their calibration in the large. Null for other checks.",
    )
    more_rows: int | None = Field(
        default=None,
        description="If there are too few rows: the number of additional rows that would decide with probability 0.8, "
        "if nothing changes and their variance stays the same (pairs, for a model of pairs). Null if no number of rows "
        "would decide, or if it is unknown.",
    )
    acknowledgement: Acknowledgement | None = Field(
        default=None,
        description="The acknowledgement of `evaluation_id`, if the check has failed by it. Null if there is none.",
    )
    applies: bool = Field(
        default=True,
        description="False if the question does not apply to the model: a logistic regression is not compared with "
        "simple models, because it is one. Then `passed` is null, and the check does not count.",
    )


def area_margin(value: float) -> float:
    """Return the largest irrelevant difference of an area whose value by chance is 0.5; 0 if it is not better."""
    return max(0.0, min(AREA_MARGIN, EXCESS_FRACTION * (value - 0.5)))


def check_model(
    session: Session, owner: str, ref: str, favourable: Side = "not_flagged"
) -> tuple[Model, list[ModelCheck]]:
    """Return the checks. `favourable` is the side of the threshold that the four-fifths rule is about."""
    model = models.find(session, owner, ref)
    evaluated = repository.list_of_model(session, owner, model.id, LAST)
    new = [each for each in evaluated if each.drift is not None and seen_of(each) == "new"]
    fits = model_rows.calibration_fits(session, [model.id]).get(model.id, {})
    served = calibrations.find_served(session, model)
    checks = [
        _ranks(session, model),
        _beats_baselines(session, model),
        _probabilities(model, served, new, fits),
        check_stable(new[0] if new else None, served, fits),
        _groups(session, model, evaluated, favourable),
    ]
    return model, [_with_acknowledgement(each, evaluated) for each in checks]


def _with_acknowledgement(check: ModelCheck, evaluated: Sequence[Evaluation]) -> ModelCheck:
    """Add the acknowledgement of the evaluation that a failed check is based on."""
    if check.passed is not False:
        return check
    found = (each.acknowledgement for each in evaluated if each.id == check.evaluation_id)
    if (row := next(found, None)) is None:
        return check
    return replace(check, acknowledgement=Acknowledgement.model_validate(row))


def _ranks(session: Session, model: Model) -> ModelCheck:
    """Check that the model ranks better than chance at its validation."""
    _, areas = validation_areas(session, model)
    comparable = [area for area in areas if area["of"] in _OF_CHANCE]
    if not comparable:
        return ModelCheck("ranks", None, "The model has no validation metrics.")
    least = min(comparable, key=lambda area: area["low"])
    label = f" of {least['label']}" if "label" in least else ""
    value, low, high = (f"{least[end]:.3f}" for end in ("value", "low", "high"))
    metric = f"{_OF_CHANCE[least['of']]}{label} {value} ({low} to {high})"
    if least["low"] > 0.5:
        return ModelCheck(
            "ranks",
            True,
            f"{metric}, significantly better than random (0.5).",
            evidence="validation",
        )
    words = f"{metric}, not significantly better than random (0.5)."
    return ModelCheck("ranks", False, words, evidence="validation")


def _beats_baselines(session: Session, model: Model) -> ModelCheck:
    """Check that the model is significantly better than its baselines.

    This does not apply to a model of the same kind as a baseline, nor to another linear model that is not better.
    """
    what = linear_model(model)
    if is_baseline(model) or (what is not None and not model.beats_baselines):
        words = f"The model is itself a simple model: {what}."
        return ModelCheck("beats_baselines", None, words, applies=False)
    found = model.beats_baselines
    if found is None:
        return ModelCheck("beats_baselines", None, "The model was not compared with baselines.")
    compared = session.get(ModelBaselines, model.id)
    rivals = _baselines_in_words(compared)
    if found:
        words = f"The model ranks significantly better than {rivals}."
    else:
        fitted = [] if compared is None else [x for x in compared.baselines if not x["failed"]]
        some = "at least one of " if len(fitted) > 1 else ""
        words = f"No significant improvement over {some}{rivals}."
        if not is_additive(model):
            words += " A baseline is easier to explain."
    return ModelCheck("beats_baselines", found, words, evidence="validation")


def _baselines_in_words(compared: ModelBaselines | None) -> str:
    """Say which baselines were compared, and which of them had fewer rows or failed."""
    if compared is None:
        return "the baselines"
    fitted = [each for each in compared.baselines if not each["failed"]]
    names = []
    for each in fitted:
        rows, of_rows = each.get("rows"), each.get("of_rows")
        is_sample = rows is not None and of_rows is not None and rows < of_rows
        names.append(
            each["algorithm"] + (f" (on {rows:,} of {of_rows:,} rows)" if is_sample else "")
        )
    failed = [each["algorithm"] for each in compared.baselines if each["failed"]]
    listed = f"the baseline{'s' if len(names) > 1 else ''} {' and '.join(names)}"
    return listed + (f"; {' and '.join(failed)} could not be trained" if failed else "")


def _probabilities(
    model: Model,
    served: ModelCalibration | None,
    new: Sequence[Evaluation],
    fits: Mapping[int, int],
) -> ModelCheck:
    """Check the served probabilities, on the newest evaluation that tested them, else at their own fit.

    `fits` has the version in which each version of the calibration was fitted.
    """
    if served is None:
        return ModelCheck(
            "probabilities",
            None,
            f"The model has no probabilities: {calibrations.why_none(model)}.",
        )
    # Evaluations before a recalibration tested other probabilities, unless it was undone.
    for evaluation in new:
        found = (evaluation.metrics or {}).get("calibration") or {}
        tests = (evaluation.drift or {}).get("probabilities")
        if tests and fits.get(found.get("version", 0)) == fits.get(served.version):
            errors = [test for test in tests if test["changed"]]
            where = f"On {_named(evaluation)}"
            return check_reliability(found, errors, where, "evaluation", evaluation.id)
    if served.reliability is None:
        few = "One class has too few rows to test the probabilities."
        return ModelCheck("probabilities", None, few)
    errors = find_errors(served.reliability)
    if served.reliability.get("later"):
        where = "On the last time window, with a calibration fitted on the earlier windows"
        return check_reliability(served.reliability, errors, where, "later_rows")
    where = "By cross-fitting on the calibration rows (later rows were not tested)"
    return check_reliability(served.reliability, errors, where, "cross_fitted")


def check_reliability(
    found: Mapping[str, Any],
    errors: Sequence[Json],
    where: str,
    evidence: EvidenceKind,
    evaluation_id: str | None = None,
) -> ModelCheck:
    """Check the reliability `found`, given its significant `errors`. `where` names the rows."""
    margin = LOG_ODDS_MARGIN
    if errors:
        words = f"{where}: {'; '.join(map(say_error, errors))}."
        return ModelCheck("probabilities", False, words, evaluation_id, evidence, margin)
    if found["slope"] is not None and "shape" not in found:
        words = f"{where}: this evaluation was made by an earlier version without the shape test. Evaluate again."
        return ModelCheck("probabilities", None, words, evaluation_id, evidence, margin)
    intervals = [
        found[of] for of in ("in_the_large", "slope", "shape") if found.get(of) is not None
    ]
    if any(interval[end] is None for interval in intervals for end in ("value", "low", "high")):
        words = f"{where}: a calibration metric has no confidence interval."
        return ModelCheck("probabilities", None, words, evaluation_id, evidence, margin)
    bounds = [
        max(abs(interval["low"] - right), abs(interval["high"] - right))
        for interval, right in ((found["in_the_large"], 0.0), (found["slope"], 1.0))
        if interval is not None
    ]
    if found["slope"] is not None:
        bounds.append(math.inf if found["shape"] is None else found["shape"]["high"])
    if bounds and max(bounds) < margin:
        words = f"{where}: the probabilities match the outcomes within {margin:g} in log odds."
        return ModelCheck("probabilities", True, words, evaluation_id, evidence, margin)
    more = _more_rows(found["n"], _factors_of_reliability(found))
    words = (
        f"{where}: insufficient data. No error is statistically significant, but an error above {margin:g} in log odds "
        f"cannot be ruled out.{_say_more(more)}"
    )
    return ModelCheck("probabilities", None, words, evaluation_id, evidence, margin, more)


def _factors_of_reliability(found: Mapping[str, Any]) -> Iterator[float | None]:
    """Yield factors for the rows until the calibration metrics' intervals fit the margin; None if none suffices."""
    from core.metrics.equivalence import rows_factor
    from core.metrics.estimates import normal_quantile
    from core.probability.shape import DEGREES, information_needed

    large, slope, shape = (found[of] for of in ("in_the_large", "slope", "shape"))
    for interval, right in ((large, 0.0), (slope, 1.0)):
        if interval is not None:
            half, off = (interval["high"] - interval["low"]) / 2.0, abs(interval["value"] - right)
            yield rows_factor(half, LOG_ODDS_MARGIN, found["level"], change=off)
    if slope is None or large is None:
        return
    if shape is not None:
        information, degrees = shape["information"], shape["degrees"]
        half, off = shape["high"] - shape["value"], shape["value"]
        yield rows_factor(half, LOG_ODDS_MARGIN, found["level"], change=off)
    else:  # as the interval of the level has it
        half = (large["high"] - large["low"]) / 2.0
        if half == 0.0:
            yield None
            return
        information, degrees = (normal_quantile(found["level"]) / half) ** 2, DEGREES
    yield information_needed(LOG_ODDS_MARGIN, found["level"], degrees) / information


def check_stable(
    newest: Evaluation | None,
    served: ModelCalibration | None = None,
    fits: Mapping[int, int] = MappingProxyType({}),
) -> ModelCheck:
    """Check that neither ranking nor data have changed since the validation, by the newest evaluation on new rows.

    Whether the probabilities are right is another check. `served` is the model's calibration, and `fits` has the
    version in which each version was fitted.
    """
    if newest is None:
        return ModelCheck("stable", None, "The model was not evaluated on newer rows.")
    drift: Json = without_probabilities(newest.drift or {})
    note = ""
    if served is not None and is_recalibrated(newest.metrics, served.version, fits):
        drift = after_recalibration(drift)
        when = datetime.fromtimestamp(served.created_at, UTC).strftime("%Y-%m-%d")
        note = f" (The probabilities were recalibrated after this evaluation, on {when}.)"
    words = f"On {_named(newest)}: {drift['summary']}{note}"
    areas = [area for area in drift["areas"] if area["of"] in _OF_CHANCE] or drift["areas"]
    unknown = [area for area in areas if not _is_complete(area)]
    areas = [area for area in areas if _is_complete(area)]
    allowed = [_margin_of(area) for area in areas]
    margin = min(allowed, default=None)
    if drift["changed"]:
        return ModelCheck("stable", False, words, newest.id, "evaluation", margin)
    if unknown:
        words += f" The change of the {_name_of(unknown[0])} has no confidence interval."
        return ModelCheck("stable", None, words, newest.id, "evaluation", margin)
    if not areas:
        words += " No metric can be compared with the validation of the model."
        return ModelCheck("stable", None, words, newest.id, "evaluation")
    undecided = [
        (area, most)
        for area, most in zip(areas, allowed, strict=True)
        if area["change"]["low"] <= -most
    ]
    if not undecided:
        words += f" A drop of more than {margin:.3g} is ruled out."
        # The summary says which features and scores had no test, and why.
        passed = None if any(map(_is_untested, _distributions_of(drift))) else True
        return ModelCheck("stable", passed, words, newest.id, "evaluation", margin)
    more = _more_rows(
        _rows_of(newest), (_factor_of_area(area, most, drift["level"]) for area, most in undecided)
    )
    area, most = max(undecided, key=lambda each: -each[0]["change"]["low"] - each[1])
    words += (
        f" Insufficient data to rule out that the {_name_of(area)} has dropped by more than {most:.3g}. The "
        f"change is {area['change']['value']:+.3f} ({area['change']['low']:+.3f} to {area['change']['high']:+.3f})."
    )
    words += (
        _say_more(more)
        if more
        else " More new rows do not help, because the validation has too few rows."
    )
    return ModelCheck("stable", None, words, newest.id, "evaluation", margin, more)


def _is_complete(area: Json) -> bool:
    """The metric needs a value and an interval before, after, and for its change."""
    found = (area[sample] for sample in ("before", "after", "change"))
    return not any(each[end] is None for each in found for end in ("value", "low", "high"))


def _name_of(area: Json) -> str:
    label = f" of {area['label']}" if "label" in area else ""
    return f"{_OF_CHANCE.get(area['of'], 'metric')}{label}"


def _distributions_of(drift: Json) -> list[Json]:
    features = drift["features"]
    return [*drift["scores"], *filter(matters_to_model, features)]


def _is_untested(test: Json) -> bool:
    return test["changed"] is None


def _margin_of(area: Json) -> float:
    if area["of"] not in _OF_CHANCE:
        return AREA_MARGIN
    return area_margin(area["before"]["value"])


def _factor_of_area(area: Json, margin: float, level: float) -> float | None:
    """Return the factor for the rows until the interval of the change fits the margin; None if none suffices."""
    from core.metrics.equivalence import rows_factor

    before, after = area["before"], area["after"]
    if margin <= 0.0:
        return None
    varying, fixed = after["value"] - after["low"], before["high"] - before["value"]
    return rows_factor(varying, margin, level, change=-area["change"]["value"], fixed=fixed)


def _rows_of(evaluation: Evaluation) -> int | None:
    found = evaluation.metrics or {}
    if "labels" in found:
        found = found["labels"][0]
    if "positives" in found:
        return int(found["positives"] + found["negatives"])
    if "grades" in found:
        return int(sum(each["rows"] for each in found["grades"]))
    pairs = found.get("pairs")
    return int(pairs) if isinstance(pairs, int) else None


def _more_rows(n: int | None, factors: Iterable[float | None]) -> int | None:
    """Return how many more rows decide, by the largest factor; None if unknown or impossible."""
    known = list(factors)
    if n is None or None in known or not known:
        return None
    return max(1, math.ceil((max(each for each in known if each is not None) - 1.0) * n))


def _say_more(more: int | None) -> str:
    if more is None:
        return ""
    digits = 10 ** max(0, len(str(more)) - 2)
    rounded = math.ceil(more / digits) * digits
    return f" A conclusion needs about {rounded:,} more row{'' if rounded == 1 else 's'}."


def _listed(names: Sequence[str]) -> str:
    """Return a list in a sentence: `age, race and sex`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _groups(
    session: Session, model: Model, evaluated: Sequence[Evaluation], favourable: Side
) -> ModelCheck:
    """Check equal metrics and the four-fifths rule, by the newest evaluation with held-out groups, else validation."""
    for evaluation in evaluated:
        found = groups_of(evaluation)
        if not _tested(found) or seen_of(evaluation) in (None, "trained"):
            continue
        where = f"On {_named(evaluation)}, by {_listed([of['column'] for of in found])}"
        base = check_equal(found, where, evaluation.level, _rows_of(evaluation), evaluation)
        steps = None if evaluation.measured is None else evaluation.measured.group_steps
        return _with_impact(session, model, base, found, steps, evaluation.level, favourable)
    stored = model_rows.find_groups(session, model.id)
    if stored is not None:
        where = f"On the validation rows, by {_listed([of['column'] for of in stored.columns])}"
        rows = sum(group["rows"] for group in stored.columns[0]["groups"])
        base = check_equal(stored.columns, where, stored.level, rows, None)
        return _with_impact(
            session, model, base, stored.columns, stored.steps, stored.level, favourable
        )
    words = "No column is protected, and the model was not evaluated by groups."
    return ModelCheck("groups", None, words)


def _tested(found: Sequence[Json]) -> list[tuple[str, Json]]:
    """Leave out tests without a result."""
    return [
        (of["column"], each) for of in found for each in of["tests"] if each["differs"] is not None
    ]


def check_equal(
    found: Sequence[Json],
    where: str,
    level: float,
    rows: int | None,
    evaluation: Evaluation | None,
) -> ModelCheck:
    """Check equal metrics without the four-fifths rule. where: names the rows; without an evaluation, validation's."""
    several = len(found) > 1
    differing = [
        f"{column}: {each['words']}" if several else each["words"]
        for column, each in _tested(found)
        if each["differs"]
    ]
    if not differing:
        return check_alike(found, where, level, rows, evaluation)
    words = f"{where}: {'; '.join(differing)}."
    return _of_groups(False, words, evaluation)


def _of_groups(
    passed: bool | None, words: str, evaluation: Evaluation | None, more: int | None = None
) -> ModelCheck:
    evidence: EvidenceKind = "validation" if evaluation is None else "evaluation"
    evaluation_id = None if evaluation is None else evaluation.id
    return ModelCheck("groups", passed, words, evaluation_id, evidence, GROUP_MARGIN, more)


def _with_impact(
    session: Session,
    model: Model,
    check: ModelCheck,
    columns: Sequence[Json],
    steps: bytes | None,
    level: float,
    favourable: Side,
) -> ModelCheck:
    """Add the four-fifths rule at the threshold in use."""
    used = threshold_groups.threshold_in_use(session, model)
    if steps is None or used is None:
        return check
    found = GroupsInput(level, columns, steps, (), used[0], "request").compute(favourable)
    verdicts = (check.passed, found.passes)
    passed = False if False in verdicts else None if None in verdicts else True
    sentences = "; ".join(
        threshold_groups.say_column(stored["column"], each, favourable)
        for stored, each in zip(found.columns, found.found, strict=True)
    )
    words = f"{check.words} At the threshold {used[0]:.6g} ({used[1]}): {sentences}."
    return replace(check, passed=passed, words=words)


def check_alike(
    found: Sequence[Json],
    where: str,
    level: float,
    rows: int | None,
    evaluation: Evaluation | None,
) -> ModelCheck:
    """Pass if all differences of groups are within the margins, when no test is significant; else unknown."""
    from core.metrics.equivalence import rows_factor

    margin = GROUP_MARGIN
    lacking, wide = [], []
    factors: list[float | None] = []
    for grouping in found:
        for name, allowed, metrics in _metrics_by_group(grouping):
            for value, metric in metrics:
                if metric["value"] is None:
                    lacking.append(f"{name} of {grouping['column']} {value} ({metric['reason']})")
            known = [metric for _, metric in metrics if metric["value"] is not None]
            for first, second in combinations(known, 2):
                bound, off = _difference(first, second)
                if bound >= allowed:
                    wide.append(name)
                    half = bound - off
                    factors.append(rows_factor(half, allowed, level, change=off))
    if not lacking and not wide:
        words = (
            f"{where}: the groups differ by less than {margin:g} in AUC, TPR and FPR, and by less than "
            f"{LOG_ODDS_MARGIN:g} in the log odds of calibration."
        )
        return _of_groups(True, words, evaluation)
    if lacking:
        shown = "; ".join(lacking[:_SHOWN]) + ("; …" if len(lacking) > _SHOWN else "")
        words = (
            f"{where}: insufficient data. No difference in AUC, TPR, FPR or calibration is statistically "
            f"significant, but some groups have too few rows: {shown}."
        )
        return _of_groups(None, words, evaluation)
    more = _more_rows(rows, factors)
    words = (
        f"{where}: insufficient data. No difference in AUC, TPR, FPR or calibration is statistically significant, but "
        f"relevant differences in {', '.join(dict.fromkeys(wide))} cannot be ruled out.{_say_more(more)}"
    )
    return _of_groups(None, words, evaluation, more)


def _metrics_by_group(grouping: Json) -> Iterator[tuple[str, float, list[tuple[Any, Json]]]]:
    """Yield name, margin, and each group's value."""
    groups = grouping["groups"]
    for of, name in (("auc", "AUC"), ("tpr", "TPR"), ("fpr", "FPR")):
        if all(group[of] is not None for group in groups):
            metrics = [(group["value"], group[of]) for group in groups]
            yield name, GROUP_MARGIN, metrics
    if all(group["calibration"] is not None for group in groups):
        metrics = [(group["value"], group["calibration"]["in_the_large"]) for group in groups]
        yield "calibration", LOG_ODDS_MARGIN, metrics


def _difference(first: Json, second: Json) -> tuple[float, float]:
    """Return the largest difference that the intervals of two groups allow, and the observed one."""
    from core.metrics.comparison import change
    from core.metrics.estimates import Interval

    before, after = (Interval(each["value"], each["low"], each["high"]) for each in (first, second))
    found = change(before, after)
    return max(-found.low, found.high), abs(found.value)


def _named(evaluation: Evaluation) -> str:
    version = evaluation.dataset_version
    return evaluation.dataset_name + ("" if version is None else f":{version}")
