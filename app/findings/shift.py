"""Have scores, columns or the fraction of positives shifted? One rule for batches, evaluations and periods.

Scores and columns have shifted if the scores, or a column that matters to the model, have a significant and at least
moderate population stability index (PSI). All tests of one set of rows have the significance level `ALPHA` together
(Holm), because rows to compare recur. They are stable if the interval of the PSI of the scores excludes a large shift,
and so do those of columns with at least `ENOUGH` of the importance. Otherwise, the rows are inconclusive.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.findings.finding import Answer, Finding, FindingSize, Reason
from app.measures import percent
from app.shift_tests import ALPHA, LARGE, Test, adjust, say_chance, with_ends
from core import metrics

MATTERS = 0.01
"""Of all importance: the share from which a column alone makes the rows shifted."""
ENOUGH = 0.9
"""Of the importance: the share whose columns must be tested well enough for the answer `yes`."""
POSITIVES_MARGIN = 0.25
"""The largest irrelevant change of the log odds of a positive."""

NO_FOLD_VARIANCE = (
    "the cross-validation scores come from the rankers of the folds, and without repeats they do not show how much "
    "scores differ from one ranker to another"
)
TIED_FOLDS = (
    "many rows have equal scores, and equal scores of the cross-validation's rankers lie at other values, so the "
    "distributions differ without drift"
)
ABOUT_VALIDATION = (NO_FOLD_VARIANCE, TIED_FOLDS)
"""Reasons for untested scores that are not about the compared rows: the verdict is then that of the columns alone."""

_LISTED, _WITH_BINS = 100, 20  # columns of a result, and of these with bins
_NAMED = 5  # columns in a sentence


def stable(
    scores: Test | None, columns: Sequence[Test], n_rows: int, alpha: float = ALPHA
) -> Finding:
    """Say whether the scores and columns of `n_rows` rows are as at validation and training. The tests get their
    adjusted p-value, whether they report a change, and words. `scores` is None if the model has no validation scores.
    """
    tests = [*columns, *([] if scores is None else [scores])]
    adjust(tests, alpha)
    for test in tests:
        test["words"] = say_test(test, alpha)
    parts = {
        "scores": [] if scores is None else [scores],
        "features": list(filter(matters, columns)),
    }
    used = [
        of
        for of, part in parts.items()
        if part and any(test["p_value"] is not None for test in part)
    ]
    missing = [
        of
        for of, part in parts.items()
        if not part or any(test["p_value"] is None for test in part)
    ]
    if not tests:
        words = "Neither scores nor columns can be compared."
        return Finding("stable", "unknown", words, reason="not_measured", missing=missing)
    answer = _judge(scores, columns)
    reason: Reason | None = None
    if answer == "unknown":
        reason = "untested" if _say_untested(columns, scores) else "too_few_rows"
    psi = None if scores is None else scores["psi"]
    return Finding(
        "stable",
        answer,
        " ".join(_sum_up(answer, scores, columns, n_rows)),
        size=None if psi is None else FindingSize("psi", psi["value"], psi["low"], psi["high"]),
        margin=LARGE,
        reason=reason,
        used=used,
        missing=missing,
    )


def rates_kept(of_classes: Sequence[Test]) -> Finding:
    """Say whether the scores of the positives, and those of the negatives, are as at validation. The tests of both are
    tested (`adjust`).
    """
    about: dict[str, Any] = {
        "margin": LARGE,
        "used": [each["of"] for each in of_classes if each["psi"] is not None],
        "missing": [each["of"] for each in of_classes if each["psi"] is None],
    }
    if changed := [each for each in of_classes if each["changed"]]:
        psi, names = changed[0]["psi"], " and ".join(each["of"] for each in changed)
        about["size"] = FindingSize("psi", psi["value"], psi["low"], psi["high"])
        words = (
            f"The scores of the {names} have changed, so the rates at a cutoff have changed too."
        )
        return Finding("rates_kept", "no", words, **about)
    if about["missing"]:
        words = " ".join(_say_untested([], None, of_classes))
        return Finding("rates_kept", "unknown", words, reason="untested", **about)
    if all(map(_excludes_large, of_classes)):
        words = "The scores of each class have not shifted much since validation, so the rates at a cutoff hold."
        return Finding("rates_kept", "yes", words, **about)
    words = f"The rows are too few to exclude a large shift (PSI {LARGE:g} or more) of the scores of each class."
    return Finding("rates_kept", "unknown", words, reason="too_few_rows", **about)


def positives_kept(test: Test) -> Finding:
    """Say whether the fraction of positives is as at validation. The test of its change is tested (`adjust`)."""
    before, here = (percent(test[side]["value"]) for side in ("before", "after"))
    change = test["change"]
    about: dict[str, Any] = {
        "margin": POSITIVES_MARGIN,
        "size": FindingSize("prevalence", change["value"], change["low"], change["high"]),
        "used": ["prevalence"],
    }
    if test["changed"]:
        more = "More" if change["value"] > 0 else "Fewer"
        words = f"{more} rows are positive: {here} here, {before} at validation."
        return Finding("positives_kept", "no", words, **about)
    said = f"{here} of the rows are positive, {before} at validation."
    if _farthest(test) < POSITIVES_MARGIN:
        words = f"{said} A change of more than {POSITIVES_MARGIN:g} in log odds is ruled out."
        return Finding("positives_kept", "yes", words, **about)
    words = f"{said} The rows are too few to rule out a change of more than {POSITIVES_MARGIN:g} in log odds."
    return Finding("positives_kept", "unknown", words, reason="too_few_rows", **about)


def odds_change(test: Test) -> float:
    """Return the change of a fraction since validation, in log odds."""
    return _log_odds(test["after"]["value"]) - _log_odds(test["before"]["value"])


def _farthest(test: Test) -> float:
    """Return the greatest change in log odds that the intervals of both fractions do not exclude."""
    from core.metrics.comparison import change

    ends = ("value", "low", "high")
    before, after = (
        metrics.Interval(*(_log_odds(test[side][end]) for end in ends))
        for side in ("before", "after")
    )
    if not np.isfinite([*before, *after]).all():
        return math.inf
    found = change(before, after)
    return max(abs(found.low), abs(found.high))


def _log_odds(share: float) -> float:
    if share <= 0.0 or share >= 1.0:
        return math.inf if share >= 1.0 else -math.inf
    return math.log(share / (1.0 - share))


def listed(columns: Sequence[Test]) -> list[Test]:
    """Return the first columns of a result: changed ones, then by importance and size. Only some keep their bins."""
    found = sorted(columns, key=_by_weight)
    for each in found[_WITH_BINS:]:
        each["bins"] = None
    return found[:_LISTED]


def matters(column: Mapping[str, Any]) -> bool:
    """Return True if a change of this column alone makes the rows shifted."""
    return column["importance"] is None or column["importance"] >= MATTERS


def _by_weight(column: Test) -> tuple[bool, float, float]:
    size = column["distance"] if column["psi"] is None else column["psi"]["value"]
    return not column["changed"], -size * (column["importance"] or 0.0), -size


def _judge(scores: Test | None, columns: Sequence[Test]) -> Answer:
    weighty = [*filter(matters, columns), *([] if scores is None else [scores])]
    if any(each["changed"] for each in weighty):
        return "no"
    is_tested = scores is not None and scores["reason"] not in ABOUT_VALIDATION
    if is_tested and not _excludes_large(scores):
        return "unknown"
    weights = [1.0 if each["importance"] is None else each["importance"] for each in columns]
    excluded = sum(
        weight for weight, each in zip(weights, columns, strict=True) if _excludes_large(each)
    )
    return "unknown" if excluded < ENOUGH * sum(weights) else "yes"


def _excludes_large(test: Test | None) -> bool:
    """Return True if a test was made, and the interval of its PSI excludes a large shift."""
    return test is not None and test["psi"] is not None and bool(test["psi"]["high"] < LARGE)


def _sum_up(answer: Answer, scores: Test | None, columns: Sequence[Test], n_rows: int) -> list[str]:
    """Return the answer in sentences, with the columns that explain it, and what was not tested."""
    moved = sorted((each for each in columns if each["changed"]), key=_by_weight)
    weighty = [each for each in moved if matters(each)]
    psi = None if scores is None or scores["psi"] is None else scores["psi"]["value"]
    of_scores = "" if psi is None else f" (PSI of the score {psi:.2f})"
    untested = _say_untested(columns, scores)
    if answer == "no":
        if scores is not None and scores["changed"]:
            said = [f"The scores have shifted since validation: {_size(psi)}, PSI {psi:.2f}."]
            said.append(
                f"Columns that explain it: {name_columns(weighty)}."
                if weighty
                else (
                    f"No {'column that could be tested' if untested else 'single column that matters to the model'} "
                    "has shifted."
                )
            )
        else:
            said = [f"Columns have shifted: {name_columns(weighty)}."]
            if psi is not None:
                said.append(f"The scores have not shifted significantly (PSI {psi:.2f}).")
    elif answer == "yes":
        said = [f"No shift that matters since validation{of_scores}."]
        if moved:
            said.append(f"Columns of little importance have shifted: {name_columns(moved)}.")
    elif untested:
        said = [
            f"No verdict on a shift{of_scores}: columns or scores that matter could not be tested."
        ]
    else:
        said = [
            f"{n_rows:,} rows are too few for a verdict: a large shift (PSI {LARGE:g} or more) cannot be "
            f"excluded{of_scores}."
        ]
    return [*said, *untested]


def _size(psi: float | None) -> str:
    return "large" if psi is not None and psi >= LARGE else "moderate"


def _say_untested(
    columns: Sequence[Test], scores: Test | None, of_classes: Sequence[Test] = ()
) -> list[str]:
    """Return a sentence for each reason why columns that matter, or the scores, have no test."""
    tests = [*filter(matters, columns), *([] if scores is None else [scores]), *of_classes]
    sentences = []
    for reason in dict.fromkeys(each["reason"] for each in tests):
        if reason is None:
            continue
        names = [_name(each) for each in tests if each["reason"] == reason]
        more = [f"{len(names) - _NAMED} more columns"] if len(names) > _NAMED else []
        sentences.append(f"Not tested: {', '.join([*names[:_NAMED], *more])} ({reason}).")
    return sentences


def _name(test: Test) -> str:
    if "name" in test:
        return str(test["name"])
    return "all scores" if test["of"] == "all" else f"the scores of the {test['of']}"


def say_test(test: Test, alpha: float) -> str:
    """Return name, size and significance of one test."""
    if test["adjusted_p_value"] is None:
        return f"{_name(test)}: distance {test['distance']:.3f}, no test: {test['reason']}"
    said = _say_column(test) if "name" in test else _say_scores(test)
    return f"{said}, {say_chance(test, alpha)}"


def _say_column(test: Test) -> str:
    weight = "" if test["importance"] is None else f", importance {percent(test['importance'])}"
    return f"{test['name']}: PSI {with_ends(test['psi'])}, distance {test['distance']:.3f}{weight}"


def _say_scores(test: Test) -> str:
    direction = "higher" if test["higher"] > 0.5 else "lower" if test["higher"] < 0.5 else "spread"
    of = "all scores" if test["of"] == "all" else f"{test['of']} score"
    return (
        f"{of} {direction}: a score here exceeds one at validation with probability {test['higher']:.3f}; "
        f"distance {test['distance']:.3f}, PSI {with_ends(test['psi'])}"
    )


def name_columns(moved: Sequence[Test]) -> str:
    """Name the first columns that have moved, with PSI and importance."""
    named = ", ".join(
        f"{each['name']} (PSI {each['psi']['value']:.2f}"
        + ("" if each["importance"] is None else f", importance {percent(each['importance'])}")
        + ")"
        for each in moved[:_NAMED]
    )
    return f"{named} and {len(moved) - _NAMED} more" if len(moved) > _NAMED else named
