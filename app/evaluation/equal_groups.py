"""Do groups have equal metrics, and does each pass the four-fifths rule at the cutoff in use?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from app.evaluation.groups import RATES, groups_of
from app.findings.finding import (
    Answer,
    Finding,
    FindingCutoff,
    Reason,
    all_of,
    rows_needed,
    say_needed,
)
from app.findings.probabilities import LOG_ODDS_MARGIN
from app.models import threshold_groups
from app.models.threshold_groups import GroupsInput
from app.platform.sql import Json
from app.platform.tables import Evaluation
from core.metrics.four_fifths import Side

GROUP_MARGIN = 0.1
"""The largest irrelevant difference between the AUC, TPR or FPR of any two groups. docs/statistics-evidence.md has how
often that is wrong.
"""
_OF_GROUPS = ("auc", "tpr", "fpr", "calibration", "four_fifths")
_GROUP_NAMES = {
    "auc": "AUC",
    "pauc": "partial AUC",
    "tpr": "TPR",
    "fpr": "FPR",
    "calibration": "calibration",
    "four_fifths": "the four-fifths rule",
}
_SHOWN = 3
"""Groups without a value that a sentence lists."""
NO_GROUPS = Finding(
    "groups",
    "unknown",
    "No column is protected, and the model was not evaluated by groups.",
    reason="not_measured",
    missing=_OF_GROUPS,
)


def listed(names: Sequence[str]) -> str:
    """Return a list in a sentence: `age, race and sex`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _own_threshold(evaluation: Evaluation) -> tuple[float, str] | None:
    """Return the threshold that an evaluation was made at; None if it was made at none."""
    point = (evaluation.metrics or {}).get("operating_point")
    if point is None:
        return None
    own = point["threshold"]
    return (math.inf if own is None else own), "the evaluation"


def tested(found: Sequence[Json]) -> list[tuple[str, Json]]:
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


def equal_groups(
    compared: ComparedGroups, n_rows: int | None, favourable: Side = "not_flagged"
) -> Finding:
    """Say whether groups have equal metrics and pass the four-fifths rule: no, if a difference is significant or a
    group fails the rule; yes, if every metric was compared and the differences of all pairs of groups are within the
    margins. `n_rows` is the number of rows of the groups, None if unknown.
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
        for column, each in tested(compared.columns)
        if each["differs"] and (at is None or each["of"] not in RATES)
    ]
    if at is not None:
        differing += _differing_rates(at, favourable, len(tested(compared.columns)))
    if differing:
        by: dict[str, dict[str, None]] = {}
        for each in differing:
            by.setdefault(each.column, {})[_GROUP_NAMES[each.of]] = None
        shown = listed([f"{column} ({', '.join(names)})" for column, names in by.items()])
        alike = _Alike("no", f"Significant differences between groups of {shown}.")
    else:
        alike = _alike(metrics, n_rows, compared.level)
    answer, words, reason = alike.answer, alike.words, alike.reason
    details = [f"{each.column}: {each.words}" for each in differing]
    cutoff = None
    if rates is not None and compared.threshold is not None:
        value, source = compared.threshold
        cutoff = FindingCutoff(value if math.isfinite(value) else None, source)
        details.append(
            f"TPR, FPR and the four-fifths rule are those at the threshold {value:.6g} ({source})"
        )
        details += [each["words"] for each in columns]
        words += _say_four_fifths(columns)
        rule: Answer = {True: "yes", False: "no", None: "unknown"}[rates.passes]  # type: ignore[assignment]
        answer = all_of([answer, rule])
        reason = (reason or "too_few_rows") if answer == "unknown" else None
    elif "four_fifths" in missing:
        lacking = listed([_GROUP_NAMES[of] for of in missing if of in (*RATES, "four_fifths")])
        words += (
            f" Not compared: {lacking}, because no alias that points to the model has a cutoff, and its objective has "
            "none."
        )
        answer = all_of([answer, "unknown"])
        reason = (reason or "no_cutoff") if answer == "unknown" else None
    return Finding(
        "groups",
        answer,
        words,
        details=[f"{each}." for each in details],
        cutoff=cutoff,
        margin=GROUP_MARGIN,
        reason=reason,
        more_rows=alike.more_rows if answer == "unknown" else None,
        used=used,
        missing=missing,
    )


class _Alike(NamedTuple):
    """Whether the metrics of all groups are equal within the margins."""

    answer: Answer
    words: str
    reason: Reason | None = None
    more_rows: int | None = None


def _say_four_fifths(columns: Sequence[Json]) -> str:
    """Return the columns that fail, or else those that are undecided, or else that all pass."""
    for verdict, said in ((False, "fails"), (None, "is undecided")):
        if found := [each["column"] for each in columns if each["passes"] is verdict]:
            return f" The four-fifths rule {said} for {listed(found)}."
    return " Every group passes the four-fifths rule."


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


def _alike(metrics: Sequence[_GroupMetric], n_rows: int | None, level: float) -> _Alike:
    """Say whether the differences of all pairs of groups are within the margins when no test is significant."""
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
        return _Alike("unknown", "No metric of the groups can be compared.", "too_few_rows")
    columns = listed(list(dict.fromkeys(metric.column for metric in metrics)))
    if not lacking and not wide:
        within = []
        if rates := [_GROUP_NAMES[of] for of in named if of != "calibration"]:
            within.append(f"{GROUP_MARGIN:g} in {listed(rates)}")
        if "calibration" in named:
            within.append(f"{LOG_ODDS_MARGIN:g} in the log odds of calibration")
        words = f"The groups of {columns} differ by less than {', and by less than '.join(within)}."
        return _Alike("yes", words)
    metrics_named = listed([_GROUP_NAMES[of] for of in named])
    said = f"No difference in {metrics_named} between groups of {columns} is statistically significant, but "
    if lacking:
        shown = "; ".join(lacking[:_SHOWN]) + ("; …" if len(lacking) > _SHOWN else "")
        words = f"{said}some groups have too few rows: {shown}."
        return _Alike("unknown", words, "too_few_rows")
    more = rows_needed(n_rows, factors)
    wide_names = listed(list(dict.fromkeys(wide)))
    words = f"{said}relevant differences in {wide_names} cannot be ruled out.{say_needed(more)}"
    return _Alike("unknown", words, "too_few_rows", more)


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
