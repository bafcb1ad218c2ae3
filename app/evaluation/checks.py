"""Six checks whether a model is ready for use, from stored results; no row of a dataset is read.

Each check has passed, has failed, or is unknown, with a sentence that has its values. `ranks` and `beats_baselines`
pass if the data show it significantly, and fail otherwise. The others test for a deviation: they fail if it is
statistically significant, pass if intervals exclude every deviation beyond a margin, and are unknown otherwise, with
the number of rows that would decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

from app.evaluation import repository
from app.evaluation.drift import find_errors, say_areas, say_error, validation_areas
from app.evaluation.groups import RATES, groups_of
from app.evaluation.service import seen_of
from app.feedback.monitor_repository import open_alarms
from app.feedback.scheduled_tests import (
    CALIBRATION,
    GROUP_CALIBRATION,
    RANKING,
    SELECTION,
    UNLABELLED,
)
from app.feedback.wording import say_test
from app.findings.shift import ENOUGH, LARGE, SHIFTED, STABLE, matters
from app.http.schemas import ALL_MEMBERS, Resource, Timestamp, Words
from app.measures import (
    MAX_ROWS_FACTOR,
    TIME_ALPHA,
    baseline,
    beaten_baselines,
    better_baselines,
    no_improvement,
    time_effect,
)
from app.models import calibrations, threshold_groups
from app.models import repository as model_rows
from app.models import service as models
from app.models.simple import is_additive, is_baseline, linear_model
from app.models.threshold_groups import GroupsInput
from app.platform.sql import Json, Session
from app.platform.tables import (
    Alarm,
    Evaluation,
    Model,
    ModelAlias,
    ModelBaselines,
    ModelCalibration,
)
from core.metrics.four_fifths import Side

CheckName = Literal["ranks", "beats_baselines", "probabilities", "ranking_kept", "stable", "groups"]
EvidenceKind = Literal["validation", "cross_fitted", "later_rows", "evaluation", "monitor"]
LAST = 10
"""The newest evaluations of a model among which a check seeks its own."""
_OF_CHANCE = {"auc": "AUC", "pair_order": "ordered pairs", "grades": "C-index"}
"""The metrics of a validation that are one half for a random order, with their names."""
_OF_RELIABILITY = ("in_the_large", "slope", "shape")
_OF_GROUPS = ("auc", "tpr", "fpr", "calibration", "four_fifths")
_GROUP_NAMES = {
    "auc": "AUC",
    "pauc": "partial AUC",
    "tpr": "TPR",
    "fpr": "FPR",
    "calibration": "calibration",
    "four_fifths": "the four-fifths rule",
}
_OF_FAMILY: Mapping[str, CheckName] = {
    RANKING: "ranking_kept",
    UNLABELLED: "stable",
    CALIBRATION: "probabilities",
    SELECTION: "groups",
    GROUP_CALIBRATION: "groups",
}
"""The check that an alarm of the monitor contradicts, by its family."""
_SHOWN = 3
"""Groups without a value that a sentence lists."""
# Differences within these margins count as none. docs/statistics-evidence.md has how often that is wrong.
AREA_MARGIN = 0.05
"""`ranking_kept`: drop of the AUC, the C-index or the fraction of ordered pairs, unless `EXCESS_FRACTION` is less."""
EXCESS_FRACTION = 0.25
"""`ranking_kept`: drop as a fraction of the excess over one half that the validation has."""
LOG_ODDS_MARGIN = 0.25
"""`probabilities`: calibration in the large, distance of the slope from 1, and root mean square of the shape. `groups`:
difference of the calibration in the large.
"""
GROUP_MARGIN = 0.1
"""`groups`: difference between the AUC, TPR or FPR of any two groups."""


class Acknowledgement(Resource):
    """A person has seen that an evaluation found a change. It holds until a new evaluation."""

    reason: str
    """The reason for taking no further action."""
    author: str | None
    """Name of the key that acknowledged it."""
    at: Timestamp
    """Time of the acknowledgement."""


@dataclass(frozen=True, config=ALL_MEMBERS)
class ModelCheck:
    """One check of a model, based on stored results."""

    name: CheckName = Field(
        description="`ranks`: the model ranks better than chance on its validation rows. `beats_baselines`: it ranks "
        "significantly better than each baseline. `probabilities`: its probabilities match the outcomes on the newest "
        "rows evaluated with this calibration, or on held-out rows of the calibration if there are none. "
        "`ranking_kept`: on the newest rows, it ranks as well as at its validation; a drop larger than `margin` is "
        "excluded. `stable`: on the newest rows, the scores and the features that matter are as at validation and "
        "training; a PSI of `margin` is excluded for the scores and for features with at least "
        f"{ENOUGH:.0%} of the importance. "
        "`groups`: its newest "
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
        "`evaluation`: the rows of `evaluation_id`. `monitor`: recorded decisions, which raised an alarm that nobody "
        "has acknowledged. Null without evidence.",
    )
    margin: float | None = Field(
        default=None,
        description="Largest difference that is considered negligible. `ranking_kept`: drop of the AUC, the C-index or "
        f"the fraction of ordered pairs: {AREA_MARGIN:g}, or less for weak models. `stable`: the PSI of a large shift. "
        f"`probabilities`: {LOG_ODDS_MARGIN:g} "
        f"in level, slope and shape. `groups`: {GROUP_MARGIN:g} between the AUC, TPR or FPR of two groups, "
        f"and {LOG_ODDS_MARGIN:g} for the log odds of their calibration in the large. Null for other checks.",
    )
    more_rows: int | None = Field(
        default=None,
        description="If there are too few rows: the number of additional rows that would decide with probability 0.8, "
        "if nothing changes and their variance stays the same (pairs, for a model of pairs). Null if not even "
        "ten times the rows would decide, or if it is unknown.",
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
    used: Sequence[str] = Field(
        default=(),
        description="The measurements that the answer is based on. `ranks`: metrics of the validation, and "
        "`random_splits` if they show a significant effect of time. "
        "`beats_baselines`: the baselines. `probabilities`: `in_the_large`, `slope`, `shape`. `ranking_kept`: metrics "
        "of the ranking. `stable`: `scores`, `features`. `groups`: `auc`, `tpr`, `fpr`, `calibration`, "
        "`four_fifths`. With the evidence "
        "`monitor`: the families of the alarms.",
    )
    missing: Sequence[str] = Field(
        default=(),
        description="Those that were not taken or have no value. Then `words` does not speak of them, except to say "
        "why they are missing.",
    )
    details: Sequence[str] = Field(
        default=(),
        description="The values behind `words`, one sentence each. `groups`: each significant difference, and the "
        "ratios of the four-fifths rule. `monitor`: further alarms, and what the check says without them.",
    )


def area_margin(value: float) -> float:
    """Return the largest irrelevant difference of an area whose value by chance is 0.5; 0 if it is not better."""
    return max(0.0, min(AREA_MARGIN, EXCESS_FRACTION * (value - 0.5)))


def check_model(
    session: Session,
    owner: str,
    ref: str,
    favourable: Side = "not_flagged",
    proposed: ModelAlias | None = None,
) -> tuple[Model, list[ModelCheck]]:
    """Return the model and its checks. `favourable` is the side of the threshold to which the four-fifths rule is
    applied, and `proposed` an alias whose cutoff is to be used, in place of the present ones.
    """
    model = models.find(session, owner, ref)
    evaluated = repository.list_of_model(session, owner, model.id, LAST)
    new = [
        each
        for each in evaluated
        if each.drift is not None and seen_of(each) == "new" and not each.job.spec.get("older")
    ]
    newest = new[0] if new else None
    fits = model_rows.calibration_fits(session, [model.id]).get(model.id, {})
    served = calibrations.find_served(session, model)
    checks = [
        _ranks(session, model),
        _beats_baselines(session, model),
        _probabilities(model, served, new, fits),
        check_ranking_kept(newest),
        check_stable(newest),
        _groups(session, model, evaluated, favourable, proposed),
    ]
    checks = [_with_acknowledgement(each, evaluated) for each in checks]
    open_ = [
        alarm
        for alarm in open_alarms(session, owner, model.name)
        if alarm.found["model_id"] == model.id
    ]
    return model, [_with_alarms(each, open_) for each in checks]


def _with_alarms(check: ModelCheck, alarms: Sequence[Alarm]) -> ModelCheck:
    """Fail a check that open alarms of the monitor contradict. The AUC comes before drift of scores and columns."""
    found = [alarm for alarm in alarms if _OF_FAMILY.get(alarm.family) == check.name]
    if not found:
        return check
    found.sort(key=lambda alarm: list(_OF_FAMILY).index(alarm.family))
    first, *more = (
        f"An alarm of {alarm.name}@{alarm.alias} is open: {say_test(alarm.family, alarm.found)}"
        for alarm in found
    )
    used = list(dict.fromkeys(alarm.family for alarm in found))
    details = [*more, check.words, *check.details]
    return ModelCheck(check.name, False, first, evidence="monitor", used=used, details=details)


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
        return ModelCheck("ranks", None, "The model has no validation metrics.", missing=["auc"])
    used = list(dict.fromkeys(area["of"] for area in comparable))
    least = min(comparable, key=lambda area: area["low"])
    label = f" of {least['label']}" if "label" in least else ""
    value, low, high = (f"{least[end]:.3f}" for end in ("value", "low", "high"))
    metric = f"{_OF_CHANCE[least['of']]}{label} {value} ({low} to {high})"
    effect = _effect_of_time(session, model)
    if effect:
        used.append("random_splits")
    if least["low"] > 0.5:
        return ModelCheck(
            "ranks",
            True,
            f"{metric}, significantly better than random (0.5).{effect}",
            evidence="validation",
            used=used,
        )
    words = f"{metric}, not significantly better than random (0.5).{effect}"
    return ModelCheck("ranks", False, words, evidence="validation", used=used)


def _effect_of_time(session: Session, model: Model) -> str:
    """Return a sentence if a baseline ranks significantly differently on the newest rows; empty otherwise."""
    compared = session.get(ModelBaselines, model.id)
    for each in () if compared is None else compared.baselines:
        found = each.get("random_split")
        if found is not None and found.get("p_value", 1.0) <= TIME_ALPHA:
            return f" {time_effect(each['algorithm'], dict(found))}"
    return ""


def _beats_baselines(session: Session, model: Model) -> ModelCheck:
    """Check that the model is significantly better than its baselines.

    This does not apply to a model of the same kind as a baseline, nor to another linear model that is not better.
    """
    what = linear_model(model)
    if is_baseline(model) or (what is not None and not model.beats_baselines):
        words = f"The model is itself a simple model: {what}."
        return ModelCheck("beats_baselines", None, words, applies=False)
    found, compared = model.beats_baselines, session.get(ModelBaselines, model.id)
    every = () if compared is None else compared.baselines
    if found is None or compared is None:
        words = "The model was not compared with baselines."
        if compared is not None and compared.windows:
            words = f"No verdict: {compared.skipped}."
    elif found:
        words = f"The model ranks significantly better than {_baselines_in_words(compared)}."
    else:
        tests = compared.windows, compared.decided_on, compared.level
        fitted = [each["algorithm"] for each in every if not each["failed"]]
        words = no_improvement(fitted, better_baselines(*tests), beaten_baselines(*tests))
        if not is_additive(model):
            words += " A baseline is easier to explain."
    return ModelCheck(
        "beats_baselines",
        found,
        words,
        evidence=None if compared is None else "validation",
        used=[each["algorithm"] for each in every if not each["failed"]],
        missing=[each["algorithm"] for each in every if each["failed"]],
    )


def _baseline_in_words(each: Mapping[str, Any]) -> str:
    rows, of_rows = each.get("rows"), each.get("of_rows")
    is_sample = rows is not None and of_rows is not None and rows < of_rows
    return baseline(each["algorithm"]) + (
        f" (on {rows:,} of {of_rows:,} rows)" if is_sample else ""
    )


def _baselines_in_words(compared: ModelBaselines) -> str:
    """Say which baselines were compared, and which of them had fewer rows or failed."""
    names = [_baseline_in_words(each) for each in compared.baselines if not each["failed"]]
    failed = [baseline(each["algorithm"]) for each in compared.baselines if each["failed"]]
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
    used = [of for of in _OF_RELIABILITY if found.get(of) is not None]
    missing = [of for of in _OF_RELIABILITY if of not in used]

    def check(passed: bool | None, words: str, more: int | None = None) -> ModelCheck:
        return ModelCheck(
            "probabilities",
            passed,
            f"{where}: {words}",
            evaluation_id,
            evidence,
            margin,
            more,
            used=used,
            missing=missing,
        )

    if errors:
        return check(False, f"{'; '.join(map(say_error, errors))}.")
    if any(found[of][end] is None for of in used for end in ("value", "low", "high")):
        return check(None, "a calibration metric has no confidence interval.")
    bounds = [
        max(abs(interval["low"] - right), abs(interval["high"] - right))
        for interval, right in ((found["in_the_large"], 0.0), (found["slope"], 1.0))
        if interval is not None
    ]
    if found["slope"] is not None:
        bounds.append(math.inf if found["shape"] is None else found["shape"]["high"])
    if bounds and max(bounds) < margin:
        if "slope" in missing:
            words = (
                f"the mean probability matches the outcomes within {margin:g} in log odds. All probabilities are "
                "equal, so there is no slope or shape to test."
            )
        else:
            words = f"the probabilities match the outcomes within {margin:g} in log odds."
        return check(True, words)
    more = _more_rows(found["n"], _factors_of_reliability(found))
    words = (
        f"insufficient data. No error is statistically significant, but an error above {margin:g} in log odds cannot "
        f"be ruled out.{_say_more(more)}"
    )
    return check(None, words, more)


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


def check_stable(newest: Evaluation | None) -> ModelCheck:
    """Check that the scores of all rows and the columns that matter are as at validation and training, as a batch of
    the same rows would be checked.
    """
    if newest is None:
        words = "The model was not evaluated on newer rows."
        return ModelCheck("stable", None, words, missing=["scores", "features"])
    drift: Json = newest.drift or {}
    whole = [each for each in drift["scores"] if each["of"] == "all"]
    tests = {"scores": whole, "features": list(filter(matters, drift["features"]))}
    used = [of for of, made in tests.items() if not all(map(_is_untested, made))]
    missing = [of for of, made in tests.items() if not made or any(map(_is_untested, made))]
    verdict = drift["verdict"]
    passed = {SHIFTED: False, STABLE: True}.get(verdict or "")
    said = drift["shift"] or "Neither scores nor columns can be compared."
    words = f"On {_named(newest)}: {said}"
    return ModelCheck(
        "stable", passed, words, newest.id, "evaluation", LARGE, used=used, missing=missing
    )


def check_ranking_kept(newest: Evaluation | None) -> ModelCheck:
    """Check that the model ranks as well as at its validation, by the evaluation on the newest rows."""
    if newest is None:
        words = "The model was not evaluated on newer rows."
        return ModelCheck("ranking_kept", None, words, missing=["auc"])
    drift: Json = newest.drift or {}
    areas = [area for area in drift["areas"] if area["of"] in _OF_CHANCE] or drift["areas"]
    unknown = [area for area in areas if not _is_complete(area)]
    known = [area for area in areas if _is_complete(area)]
    allowed = [_margin_of(area) for area in known]
    margin = min(allowed, default=None)
    used = list(dict.fromkeys(area["of"] for area in known))
    missing = list(dict.fromkeys(area["of"] for area in unknown)) or ([] if known else ["auc"])

    def check(passed: bool | None, words: str, more: int | None = None) -> ModelCheck:
        return ModelCheck(
            "ranking_kept",
            passed,
            f"On {_named(newest)}: {words}",
            newest.id,
            "evaluation",
            margin,
            more,
            used=used,
            missing=missing,
        )

    changed, said = say_areas(drift["areas"])
    if changed and any(area["changed"] and area["change"]["value"] < 0 for area in drift["areas"]):
        return check(False, said)
    if unknown:
        return check(None, f"the change of the {_name_of(unknown[0])} has no confidence interval.")
    if not known:
        return check(None, "no metric can be compared with the validation of the model.")
    pairs = list(zip(known, allowed, strict=True))
    undecided = [(area, most) for area, most in pairs if area["change"]["low"] <= -most]
    area, most = max(undecided or pairs, key=lambda each: -each[0]["change"]["low"] - each[1])
    size = (
        f"The change of the {_name_of(area)} is {area['change']['value']:+.3f} ({area['change']['low']:+.3f} to "
        f"{area['change']['high']:+.3f})"
    )
    if not undecided:
        return check(True, f"{size}: a drop of more than {margin:.3g} is ruled out.")
    if most <= 0.0:
        return check(
            None,
            f"{size}. No drop is negligible, because the ranking was not better than random at validation.",
        )
    words = f"{size}: insufficient data to rule out a drop of more than {most:.3g}."
    rows = _rows_of(newest)
    factors = [_factor_of_area(each, margin, drift["level"]) for each, margin in undecided]
    more = _more_rows(rows, factors)
    if rows is not None and None in factors:
        words += " More new rows do not help, because the validation has too few rows."
    return check(None, words + _say_more(more), more)


def _is_complete(area: Json) -> bool:
    """The metric needs a value and an interval before, after, and for its change."""
    found = (area[sample] for sample in ("before", "after", "change"))
    return not any(each[end] is None for each in found for end in ("value", "low", "high"))


def _name_of(area: Json) -> str:
    label = f" of {area['label']}" if "label" in area else ""
    return f"{_OF_CHANCE.get(area['of'], 'metric')}{label}"


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
    """Return how many more rows decide, by the largest factor; None if unknown, impossible or out of reach."""
    known = list(factors)
    if n is None or None in known or not known:
        return None
    factor = max(each for each in known if each is not None)
    return max(1, math.ceil((factor - 1.0) * n)) if factor <= MAX_ROWS_FACTOR else None


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
    session: Session,
    model: Model,
    evaluated: Sequence[Evaluation],
    favourable: Side,
    proposed: ModelAlias | None,
) -> ModelCheck:
    """Check equal metrics and the four-fifths rule, by the newest evaluation with groups on held-out rows, else the
    validation.
    """
    used = threshold_groups.threshold_in_use(session, model, proposed)
    for evaluation in evaluated:
        found = groups_of(evaluation)
        if not _tested(found) or seen_of(evaluation) in (None, "trained"):
            continue
        where = f"On {_named(evaluation)}, by {_listed([of['column'] for of in found])}"
        compared = compared_groups(evaluation, used)
        return check_groups(compared, where, _rows_of(evaluation), evaluation, favourable)
    stored = model_rows.find_groups(session, model.id)
    if stored is not None:
        where = f"On the validation rows, by {_listed([of['column'] for of in stored.columns])}"
        rows = sum(group["rows"] for group in stored.columns[0]["groups"])
        compared = ComparedGroups(stored.columns, stored.level, used, stored.steps)
        return check_groups(compared, where, rows, None, favourable)
    words = "No column is protected, and the model was not evaluated by groups."
    return ModelCheck("groups", None, words, missing=_OF_GROUPS)


def _own_threshold(evaluation: Evaluation) -> tuple[float, str] | None:
    """Return the threshold that an evaluation was made at; None if it was made at none."""
    point = (evaluation.metrics or {}).get("operating_point")
    if point is None:
        return None
    own = point["threshold"]
    return (math.inf if own is None else own), "the evaluation"


def _tested(found: Sequence[Json]) -> list[tuple[str, Json]]:
    """Leave out tests without a result."""
    return [
        (of["column"], each) for of in found for each in of["tests"] if each["differs"] is not None
    ]


class ComparedGroups(NamedTuple):
    """The stored metrics of groups, by one or several columns. With `steps` their rates are known at each threshold."""

    columns: Sequence[Json]
    level: float
    threshold: tuple[float, str] | None
    """The threshold in use, and where it comes from; None if there is none."""
    steps: bytes | None

    def at_threshold(self) -> GroupsInput | None:
        """Return the groups at the threshold in use; None if their rates there are unknown."""
        if self.threshold is None or self.steps is None:
            return None
        return GroupsInput(self.level, self.columns, self.steps, (), self.threshold[0], "request")


def compared_groups(evaluation: Evaluation, used: tuple[float, str] | None) -> ComparedGroups:
    """Return the groups of an evaluation, at the threshold in use, else at its own."""
    steps = None if evaluation.measured is None else evaluation.measured.group_steps
    threshold = used or _own_threshold(evaluation)
    return ComparedGroups(groups_of(evaluation), evaluation.level, threshold, steps)


class _Difference(NamedTuple):
    """A metric that differs significantly between groups of a column."""

    of: str
    column: str
    words: str


class _GroupMetric(NamedTuple):
    """A metric that should be equal in all groups of a column: the margin, and each group's value."""

    of: str
    column: str
    margin: float
    values: Sequence[tuple[str | None, Json]]


def check_groups(
    compared: ComparedGroups,
    where: str,
    rows: int | None,
    evaluation: Evaluation | None,
    favourable: Side = "not_flagged",
) -> ModelCheck:
    """Return the check that groups have equal metrics and pass the four-fifths rule. It fails if a difference is
    significant; it passes if every metric was compared and the differences of all pairs of groups are within the
    margins. `where` names the rows; without an evaluation they are those of the validation.
    """
    at = compared.at_threshold()
    rates = None if at is None else at.compute(favourable)
    columns = compared.columns if rates is None else threshold_groups.members_of(rates)["columns"]
    metrics = list(_metrics_by_group(columns))
    used = [of for of in _OF_GROUPS if any(metric.of == of for metric in metrics)]
    if rates is not None:
        used.append("four_fifths")
    missing = [of for of in _OF_GROUPS if of not in used]
    differing = [
        _Difference(each["of"], column, each["words"])
        for column, each in _tested(compared.columns)
        if each["differs"] and (at is None or each["of"] not in RATES)
    ]
    if at is not None:
        differing += _differing_rates(at, favourable, len(_tested(compared.columns)))
    passed: bool | None = False
    more = None
    details = [f"{each.column}: {each.words}" for each in differing]
    if differing:
        by: dict[str, dict[str, None]] = {}
        for each in differing:
            by.setdefault(each.column, {})[_GROUP_NAMES[each.of]] = None
        shown = _listed([f"{column} ({', '.join(names)})" for column, names in by.items()])
        words = f"{where}: significant differences between groups of {shown}."
    else:
        passed, said, more = _alike(metrics, rows, compared.level)
        words = f"{where}: {said}"
    if rates is not None and compared.threshold is not None:
        value, source = compared.threshold
        details.append(
            f"TPR, FPR and the four-fifths rule are those at the threshold {value:.6g} ({source})"
        )
        details += [each["words"] for each in columns]
        words += _say_four_fifths(columns)
        passed = _all_of(passed, rates.passes)
    elif "four_fifths" in missing:
        why = "no alias that points to the model has a cutoff, and its objective has none"
        lacking = [_GROUP_NAMES[of] for of in missing if of in (*RATES, "four_fifths")]
        words += f" Not compared: {_listed(lacking)}, because {why}."
        passed = _all_of(passed, None)
    evidence: EvidenceKind = "validation" if evaluation is None else "evaluation"
    return ModelCheck(
        "groups",
        passed,
        words,
        None if evaluation is None else evaluation.id,
        evidence,
        GROUP_MARGIN,
        more,
        used=used,
        missing=missing,
        details=[f"{each}." for each in details],
    )


def _say_four_fifths(columns: Sequence[Json]) -> str:
    """Return the columns that fail, or else those that are undecided, or else that all pass."""
    for verdict, said in ((False, "fails"), (None, "is undecided")):
        if found := [each["column"] for each in columns if each["passes"] is verdict]:
            return f" The four-fifths rule {said} for {_listed(found)}."
    return " Every group passes the four-fifths rule."


def _all_of(*passed: bool | None) -> bool | None:
    """Return False if one has failed, else None if one is unknown, else True."""
    return False if False in passed else None if None in passed else True


def _differing_rates(at: GroupsInput, favourable: Side, n_tests: int) -> Iterator[_Difference]:
    """Yield each rate that differs significantly between groups at the threshold: the interval of the
    difference of two groups, at a level that is adjusted for the number of pairs and of other tests, excludes 0.
    """

    def rates_of(level: float) -> list[_GroupMetric]:
        shown = threshold_groups.members_of(replace(at, level=level).compute(favourable))
        return [each for each in _metrics_by_group(shown["columns"]) if each.of in RATES]

    shown = rates_of(at.level)
    pairs = sum(math.comb(len(each.values), 2) for each in shown)
    if not pairs:
        return
    for plain, strict in zip(
        shown, rates_of(1.0 - (1.0 - at.level) / (pairs + n_tests)), strict=True
    ):
        found = [
            (abs(change.value), first, second)
            for first, second, change in _differences(strict)
            if not change.low <= 0.0 <= change.high
        ]
        if found:
            _, first, second = max(found)
            one, other = (
                f"{plain.values[index][1]['value']:.3f} of "
                f"{threshold_groups.say_value(plain.values[index][0])}"
                for index in (first, second)
            )
            words = f"{_GROUP_NAMES[plain.of]} differs significantly, {one} and {other}"
            yield _Difference(plain.of, plain.column, words)


def _alike(
    metrics: Sequence[_GroupMetric], rows: int | None, level: float
) -> tuple[bool | None, str, int | None]:
    """Return whether the differences of all pairs of groups are within the margins when no test is significant, in
    words, and how many more rows would decide.
    """
    from core.metrics.equivalence import rows_factor

    lacking, wide = [], []
    factors: list[float | None] = []
    for metric in metrics:
        lacking += [
            f"{_GROUP_NAMES[metric.of]} of {metric.column} {threshold_groups.say_value(value)} ({each['reason']})"
            for value, each in metric.values
            if each["value"] is None
        ]
        for _, _, change in _differences(metric):
            bound, off = max(-change.low, change.high), abs(change.value)
            if bound >= metric.margin:
                wide.append(_GROUP_NAMES[metric.of])
                factors.append(rows_factor(bound - off, metric.margin, level, change=off))
    named = dict.fromkeys(metric.of for metric in metrics)
    if not named:
        return None, "no metric of the groups can be compared.", None
    listed = _listed([_GROUP_NAMES[of] for of in named])
    if not lacking and not wide:
        within = (
            [
                f"{GROUP_MARGIN:g} in {_listed([_GROUP_NAMES[of] for of in named if of != 'calibration'])}"
            ]
            if set(named) - {"calibration"}
            else []
        )
        if "calibration" in named:
            within.append(f"{LOG_ODDS_MARGIN:g} in the log odds of calibration")
        return True, f"the groups differ by less than {', and by less than '.join(within)}.", None
    if lacking:
        shown = "; ".join(lacking[:_SHOWN]) + ("; …" if len(lacking) > _SHOWN else "")
        words = (
            f"insufficient data. No difference in {listed} is statistically significant, but some groups have too few "
            f"rows: {shown}."
        )
        return None, words, None
    more = _more_rows(rows, factors)
    words = (
        f"insufficient data. No difference in {listed} is statistically significant, but relevant differences in "
        f"{_listed(list(dict.fromkeys(wide)))} cannot be ruled out.{_say_more(more)}"
    )
    return None, words, more


def _metrics_by_group(columns: Sequence[Json]) -> Iterator[_GroupMetric]:
    """Yield the metrics that should be equal in all groups, of each column."""
    for column in columns:
        name, groups = column["column"], column["groups"]
        for of in ("auc", *RATES):
            if all(group[of] is not None for group in groups):
                values = [(group["value"], group[of]) for group in groups]
                yield _GroupMetric(of, name, GROUP_MARGIN, values)
        if all(group["calibration"] is not None for group in groups):
            values = [(group["value"], group["calibration"]["in_the_large"]) for group in groups]
            yield _GroupMetric("calibration", name, LOG_ODDS_MARGIN, values)


def _differences(metric: _GroupMetric) -> Iterator[tuple[int, int, Any]]:
    """Yield the positions of each pair of groups that have a value, and the change from one to the other."""
    from core.metrics.comparison import change
    from core.metrics.estimates import Interval

    known = [
        (index, Interval(each["value"], each["low"], each["high"]))
        for index, (_, each) in enumerate(metric.values)
        if each["value"] is not None
    ]
    for (first, one), (second, other) in combinations(known, 2):
        yield first, second, change(one, other)


def _named(evaluation: Evaluation) -> str:
    version = evaluation.dataset_version
    return evaluation.dataset_name + ("" if version is None else f":{version}")
