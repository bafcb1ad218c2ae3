"""The results of tests in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from app.feedback.group_tests import ComparedGroup, shown_groups
from app.feedback.periods import PLANNED, numbered_period
from app.feedback.scheduled_tests import (
    CALIBRATION,
    GROUP_CALIBRATION,
    GUARANTEE,
    RANKING,
    SELECTION,
    SHADOW,
    UNLABELLED,
)
from app.measures import MAX_ROWS_FACTOR, is_within_reach
from app.platform.documents import PeriodKind
from app.platform.sql import Json

_OFF = 0.005  # log odds: less is 0 in two digits
_KINDS: Mapping[int, PeriodKind] = {number: kind for kind, number in PLANNED.items()}
MANY_AMBIGUOUS = 0.1
"""Share of the known outcomes from which an alarm says how many depend on the rule of outcomes."""
_POINTWISE = 1.96  # standard errors of a 95 % interval
_RECURRING = 1.2  # of the variance: less is within the error of a few sketches


def say_test(family: str, found: Json) -> str:
    status, reason = found["status"], found["reason"]
    if status == "waiting":
        return f"Not tested yet: {reason}."
    if status == "not_tested":
        return f"Not tested: {reason}."
    if family == UNLABELLED:
        names = [
            f"{each['name'] or 'the score'} (PSI {each['psi']:.2f})"
            for each in found["details"]["shifted"]
        ]
        if status == "alarm":
            return f"Shifted: {', '.join(names[:5])}."
        if names:
            return f"Still shifted, as acknowledged: {', '.join(names[:5])}."
        return "No significant shift of the score or of a column that matters."
    details = found["details"]
    if family == SHADOW:
        return say_comparison(details["comparison"])
    if family in (SELECTION, GROUP_CALIBRATION):
        say = _say_selection if family == SELECTION else _say_group_calibration
        return " ".join(say(found, each) for each in shown_groups(found))
    if family == GUARANTEE:
        said = _say_guarantee(found)
    else:
        said = _say_auc(found) if family == RANKING else _say_calibration(found)
        said += _say_newest(family, found) + _say_missing(found) + _say_ambiguous(found)
    window = details.get("window")
    if window is None:  # a guarantee where each entity has one decision
        return said
    if window["inflation"] is None:
        return f"{said} Decisions have no entity ids, so rows are assumed to be independent."
    if window["inflation"] >= _RECURRING:
        times = window["inflation"]
        return f"{said} Entities come back in later periods: the variance is {times:.1f} times that of new ones."
    return said


def _say_selection(found: Json, one: ComparedGroup) -> str:
    from core.metrics.four_fifths import FOUR_FIFTHS

    said = (
        f"The selection rate of {one['column']} {one['group']} is {one['ratio']:.2f} times that of {one['reference']} "
        f"({one['low']:.2f} to {one['high']:.2f}) {_when(found, one)}: "
    )
    if one["status"] == "alarm":
        below = one["high"] is not None and one["high"] < 1.0
        return said + (f"below {FOUR_FIFTHS}." if below else f"above {1.0 / FOUR_FIFTHS}.")
    return f"{said}not significantly below {FOUR_FIFTHS} or above {1.0 / FOUR_FIFTHS}."


def _say_group_calibration(found: Json, one: ComparedGroup) -> str:
    said = (
        f"Relative to the predictions, the odds of a positive of {one['column']} {one['group']} are "
        f"{one['ratio']:.2f} times those of {one['reference']} ({one['low']:.2f} to {one['high']:.2f}) "
        f"{_when(found, one)}"
    )
    ends = (
        ": the calibration differs" if one["status"] == "alarm" else ", no significant difference"
    )
    return f"{said}{ends}."


def _when(found: Json, window: Mapping[str, Any]) -> str:
    """Name the days of the window, which has numbers of periods of the test's term."""
    first, last = (
        numbered_period(found["term_start"], _KINDS[found["planned"]], window[end])
        for end in ("first", "last")
    )
    begin, end = _day(first.start), _day(last.end - 1.0)
    return f"on {begin}" if begin == end else f"from {begin} to {end}"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _say_auc(found: Json) -> str:
    window = found["details"]["window"]
    said = f"AUC {window['value']:.3f} {_when(found, window)}, {found['expected']:.3f} in the reference: "
    if found["status"] == "alarm":
        return f"{said}it has fallen by at least {max(0.0, window['drop_low']):.3f}."
    return f"{said}no significant fall."


_ODDS = {
    "flagged": "Among flagged decisions, the odds",
    "unflagged": "Among unflagged decisions, the odds",
}
"""What is compared where only one side of the cutoff has outcomes."""


def _say_calibration(found: Json) -> str:
    """Name what has moved most, the level or the slope, with its interval."""
    window, is_slope = found["details"]["window"], found["details"]["tested"] == "slope"
    when = _when(found, window)
    ends = "" if found["status"] == "alarm" else ", no significant difference"
    if is_slope:
        change = f"{-window['drop_high']:+.2f} to {-window['drop_low']:+.2f}"
        said = f"The slope of the calibration is {window['value']:.2f} {when}, a change of {change}{ends}"
        if not ends:
            said += (
                ": the probabilities are too far apart"
                if window["drop"] > 0.0
                else ": the probabilities are too close together"
            )
        return f"{said}."
    odds = _ODDS.get(found["population"], "The odds")
    low, value, high = (math.exp(-window[each]) for each in ("drop_high", "drop", "drop_low"))
    level = found["state"]["reference"]["level"]["value"]
    if (
        abs(level) >= _OFF
    ):  # the held-out rows, or the periods accepted as the new normal, were off, too
        return (
            f"{odds} of a positive {when} are {value * math.exp(level):.2f} times those that the calibration "
            f"predicts, and {value:.2f} times ({low:.2f} to {high:.2f}) those of the reference{ends}."
        )
    said = (
        f"{odds} of a positive {when} are {value:.2f} times those that the calibration predicts "
        f"({low:.2f} to {high:.2f}){ends}"
    )
    if not ends:
        said += ": the probabilities are too " + ("high" if value < 1.0 else "low")
    return f"{said}."


def _say_newest(family: str, found: Json) -> str:
    """Say of an alarm over several periods whether the newest of them still differ; empty for others."""
    window, state = found["details"]["window"], found["state"]
    of_level = family == CALIBRATION
    own, reference = (
        (state["level"], state["reference"]["level"])
        if of_level
        else (state["measurement"], state["reference"])
    )
    if found["status"] != "alarm" or own["first"] <= window["first"]:
        return ""
    if of_level and found["details"]["tested"] == "slope":
        return ""
    half = _POINTWISE * math.sqrt(own["variance"] + reference["variance"])
    change = own["value"] - reference["value"]
    when = _when(found, own)
    if of_level:
        low, value, high = (math.exp(change + end) for end in (-half, 0.0, half))
        size = f"the odds are {value:.2f} times ({low:.2f} to {high:.2f}) those of the reference"
    else:
        low, high = own["value"] - half, own["value"] + half
        size = f"the AUC is {own['value']:.3f} ({low:.3f} to {high:.3f})"
    lasts = abs(change) > half if of_level else change < -half
    ends = (
        "the change lasts" if lasts else "no significant difference any more, so it may have ended"
    )
    return f" {when[:1].upper()}{when[1:]} alone {size}: {ends}."


def _say_guarantee(found: Json) -> str:
    observed, expected = found["details"]["observed_since"], found["details"]["expected_since"]
    if observed is None or expected is None:
        return "No rows yet."
    begin = numbered_period(found["term_start"], _KINDS[found["planned"]], found["from_period"])
    said = f"The {found['metric']} has been {observed:.4f} since {_day(begin.start)}, {expected:.4f} allowed"
    if found["status"] == "alarm":
        return f"{said}: the guarantee is broken."
    return f"{said}: no significant excess."


_OF_SIDE = {"all": "", "flagged": " of flagged decisions", "unflagged": " of the other decisions"}


def _say_missing(found: Json) -> str:
    """Say what missing outcomes could change; empty for nothing."""
    missing = found["details"].get("missing")
    if missing is None:
        return ""
    count, is_alarm = f"{missing['outcomes']:,} missing outcomes", found["status"] == "alarm"
    within = {side: each for side, each in missing["unchanged"].items() if each is not None}
    if is_alarm and not missing["unchanged"]:
        return f" What the {count} could change is not known."
    if is_alarm and not within:
        if found["metric"] == "auc":
            return f" The {count} alone cannot explain it, if their odds depend on the score like the known ones."
        return f" The {count} alone cannot explain it."
    for side, (low, high) in within.items():
        if low <= 0.0 and high >= 1.0:
            continue
        share = f"from {100.0 * low:.0f} % to {100.0 * high:.0f} %"
        known = missing["known_share"]
        beside = "" if known is None else f" ({100.0 * known:.1f} % of the known ones are)"
        if is_alarm:
            return f" The {count} alone could explain it, if {share} of those{_OF_SIDE[side]} are positive{beside}."
        return f" This holds if {share} of the {count}{_OF_SIDE[side]} are positive{beside}."
    return ""


def _say_ambiguous(found: Json) -> str:
    """Say that another rule of outcomes may change an alarm; empty where few outcomes depend on it."""
    count, known = found["details"]["ambiguous"], found["known"]
    if found["status"] != "alarm" or count < MANY_AMBIGUOUS * known:
        return ""
    return (
        f" {count:,} of the {known:,} outcomes could also belong to another decision of the same entity, so this may "
        "be an effect of the rule of outcomes: if the rule is changed, the periods are tested again."
    )


def say_detectable(period: PeriodKind, found: Mapping[str, Any]) -> str:
    """Say which fall of the AUC the monitor finds, and with which probability. `found` is a `DetectableDrop`."""
    likely = f"with {100.0 * found['power']:.0f} % probability"
    rows, drop, together = found["rows"], found["drop"], found["periods_per_test"]
    if rows is None:
        said = (
            "The smallest detectable drop of the AUC is known after the first period with outcomes."
        )
    else:
        of = "no drop" if drop is None else "a lasting drop"
        size = "" if drop is None else f" of {drop:.3f}"
        said = (
            f"With {rows:,.0f} decisions with outcomes per {period}, {of} of the AUC{size} raises an alarm within a "
            f"year {likely}."
        )
        if drop is not None and together > 1:
            said += f" There are few positives, so {together} periods are tested together."
    if found["floor"] is not None:
        said += (
            f" With unlimited decisions, a lasting drop of {found['floor']:.3f} raises an alarm {likely}, and a "
            f"smaller one with less: the validation counts as {found['validation_positives']:,.0f} independent "
            f"positives and {found['validation_negatives']:,.0f} negatives."
        )
    if found["odds"] is not None:
        said += (
            f" With unlimited decisions, a lasting change of the odds of a positive by a factor of {found['odds']:.2f} "
            f"or its inverse raises an alarm of the calibration {likely}."
        )
    return said


def say_comparison(found: Json) -> str:
    """Return the result of a comparison with the shadow model in words."""
    low, high = found["low"], found["high"]
    said = f"AUC of the challenger less that of the champion {found['difference']:+.4f}, from {low:+.4f} to {high:+.4f}"
    if found["winner"] is not None:
        return f"{said}: the {found['winner']} is better."
    if found["equivalent"]:
        return f"{said}: no difference that matters."
    further = found["further_rows"]
    if further is None or not is_within_reach(further, found["rows"]):
        return (
            f"{said}: not settled, and not within reach of {MAX_ROWS_FACTOR:g} times as many rows."
        )
    if further <= 0:
        return (
            f"{said}: not settled, although the difference is known to ± {(high - low) / 2.0:.4f}. Neither equality "
            "nor a difference beyond the tolerance is ruled out."
        )
    return (
        f"{said}: not settled. The difference is known to ± the tolerance after about {further:,} more rows with "
        "outcomes."
    )
