"""What the monitor of an alias, and the comparison with its shadow model, have found."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from app.feedback import monitor_repository as repository
from app.feedback.monitor_repository import MonitoredAlias
from app.feedback.monitor_schemas import (
    AliasMonitor,
    AliasShadow,
    DetectableDrop,
    FamilyBudget,
    MonitoredPeriod,
    SwapSet,
    alarm_of,
    scheduled_test_of,
    shadow_comparison_of,
    shadow_test_of,
)
from app.feedback.monitoring import calibrations_of, training_of
from app.feedback.periods import PLANNED
from app.feedback.scheduled_tests import (
    CALIBRATION,
    RANKING,
    SHADOW,
    UNLABELLED,
    CalibrationReference,
    MonitorPlan,
    StoredTest,
    alpha_of,
    measurements,
    reference_of,
    tested_families,
)
from app.feedback.shadow import total_swap
from app.feedback.wording import say_detectable
from app.models import aliases, curves
from app.models import repository as model_repository
from app.models import service as models
from app.models.service import VALIDATION
from app.platform.documents import StoredFeedback
from app.platform.errors import check_name
from app.platform.sql import Session, read_clock
from app.platform.tables import MonitorTest
from core.errors import InvalidParameter

MAX_SHOWN = 100
"""Maximum number of periods, and of alarms, in a response."""
POWER = 0.8
"""Probability with which the smallest detectable fall is found."""
_UNLIMITED = 1e9


def read(
    session: Session, owner: str, name: str, alias: str, as_of: float | None
) -> Callable[[], AliasMonitor]:
    """Read results as of a time; the returned function computes the rest without the database. Raises NotFound."""
    check_name("alias", alias)
    of = MonitoredAlias(owner, name, alias)
    at = read_clock(session) if as_of is None else as_of
    current = model_repository.find_alias(session, owner, name, alias)
    row = repository.settings_of(session, *of, at=at)
    if current is None and row is None:
        aliases.get_alias(session, owner, name, alias)  # raises NotFound
    settings = None if row is None else row.settings
    plan = MonitorPlan.of(settings)
    tests = repository.scheduled_tests_of(session, *of, at=at)
    counts = repository.count_decisions(session, *of)
    alarms = repository.alarms_of(session, *of, at=at)[:MAX_SHOWN]
    for alarm in alarms:
        # A later acknowledgement was not known then.
        if alarm.acknowledged_at is not None and alarm.acknowledged_at > at:
            session.expunge(alarm)
            alarm.acknowledged_at = alarm.reason = alarm.reference = alarm.author = None
    compute = None if current is None else find_detectable(session, of, settings, tests)
    return lambda: AliasMonitor(
        name=name,
        alias=alias,
        as_of=at,
        revision=None if row is None else row.revision,
        settings=None if plan is None else plan.monitor,
        outcome=None if settings is None else settings["outcome"],
        budget=[] if plan is None else _budget(plan, tests),
        detectable=None if compute is None else compute(),
        recorded=counts[0],
        lost=counts[1],
        alarms=[alarm_of(row) for row in alarms],
        periods=_periods(tests),
    )


def _budget(plan: MonitorPlan, tests: Sequence[MonitorTest]) -> list[FamilyBudget]:
    """Return the α used in each family's newest term. A test has its series'; earlier series of the term add theirs."""
    found = []
    for family in tested_families(plan):
        own = [test.found for test in tests if test.family == family]
        term = own[-1]["term_start"] if own else None
        by_series = {
            each["since"]: each["alpha_spent"] for each in own if each["term_start"] == term
        }
        alpha = alpha_of(family, plan)
        spent = min(alpha, sum(by_series.values()))
        # A share of 0.2 of 0.05 is 0.01, not 0.010000000000000002.
        numbers = {"alpha": alpha, "spent": spent, "left": alpha - spent}
        found.append(
            FamilyBudget(family=family, **{name: round(each, 12) for name, each in numbers.items()})
        )
    return found


def _periods(tests: Sequence[MonitorTest]) -> list[MonitoredPeriod]:
    by_period: dict[float, list[MonitorTest]] = {}
    for test in tests:
        if test.family == SHADOW:
            continue
        by_period.setdefault(test.period_start, []).append(test)
    found = []
    for start in sorted(by_period, reverse=True)[:MAX_SHOWN]:
        own = by_period[start]
        details = {test.family: test.found["details"] for test in own}
        early, mature = details.get(UNLABELLED, {}), details.get(RANKING)
        versions = (early if mature is None else mature).get("versions") or early.get("versions")
        first = own[0]
        found.append(
            MonitoredPeriod(
                start=start,
                end=first.period_end,
                decisions=early.get("decisions", 0),
                lost=early.get("lost", 0),
                corrections=None if mature is None else mature.get("corrections", 0),
                ambiguous=None if mature is None else mature.get("ambiguous", 0),
                versions=versions or [],
                tests=[scheduled_test_of(test) for test in own],
            )
        )
    return found


def find_detectable(
    session: Session,
    of: MonitoredAlias,
    settings: StoredFeedback | None,
    tests: Sequence[MonitorTest] | None = None,
) -> Callable[[], DetectableDrop | None] | None:
    """Read what the smallest detectable fall of the AUC is computed from, by the returned function.

    None if the monitor is off, or the model has no validation curve.
    """
    plan = MonitorPlan.of(settings)
    if plan is None:
        return None
    model = models.find(session, of.owner, of.reference)
    measured = curves.find_curve_on(session, model, VALIDATION)
    if measured is None:
        return None
    if tests is None:
        tests = repository.scheduled_tests_of(session, *of)
    own = [
        cast(StoredTest, test.found)
        for test in tests
        if test.family == RANKING and test.found["model_id"] == model.id and test.found["known"]
    ]
    calibrations = calibrations_of(session, model)
    return partial(_detectable, measured, plan, own, calibrations[-1] if calibrations else None)


def _detectable(
    measured: curves.PartCurve,
    plan: MonitorPlan,
    tests: Sequence[StoredTest],
    calibration: CalibrationReference | None,
) -> DetectableDrop:
    """`tests` compare the ranking with outcomes."""
    from core.monitoring import (
        measure_on_stored_curve,
        recurrence_of,
        smallest_detectable_drop,
        smallest_detectable_shift,
    )

    validation = measure_on_stored_curve(measured.curve, measured.totals)
    known = tests[-1] if tests else None
    sketches = [each.by_entity for each in measurements(tests)]
    rows = prevalence = None
    if known is not None and 0 < known["positives"] < known["known"]:
        rows, prevalence = float(known["known"]), known["positives"] / known["known"]
    if prevalence is None:
        positive, negative = measured.totals.positive, measured.totals.negative
        prevalence = positive / (positive + negative)
    # Of days the time would be half a minute: seven are taken together, with nearly the same result.
    days = 7 if plan.monitor["period"] == "day" else 1
    planned = PLANNED[plan.monitor["period"]] // days
    try:
        found = smallest_detectable_drop(
            validation,
            rows=_UNLIMITED if rows is None else rows * days,
            prevalence=prevalence,
            planned=planned,
            alpha=alpha_of(RANKING, plan),
            tolerance=plan.tolerance("auc"),
            power=POWER,
            recurrence=recurrence_of(sketches) if any(sketches) else None,
        )
    except InvalidParameter:  # too few rows for a single test within a plan
        found = None
    drop = None if found is None or rows is None or found.drop > 1.0 else found.drop
    floor = None if found is None or found.floor > 1.0 else found.floor
    odds = None
    if calibration is not None and (held_out := reference_of(calibration)) is not None:
        shift = smallest_detectable_shift(
            held_out.level,
            planned=planned,
            alpha=alpha_of(CALIBRATION, plan) / 2.0,
            tolerance=plan.tolerance("calibration"),
            power=POWER,
        )
        odds = math.exp(shift)
    numbers: dict[str, Any] = {
        "drop": drop,
        "floor": floor,
        "odds": odds,
        "power": POWER,
        "rows": rows,
        "periods_per_test": None
        if found is None or rows is None
        else found.periods_per_test * days,
        "validation_positives": validation.positives,
        "validation_negatives": validation.negatives,
    }
    return DetectableDrop(**numbers, words=say_detectable(plan.monitor["period"], numbers))


def read_shadow(session: Session, owner: str, name: str, alias: str) -> AliasShadow:
    """Raises NotFound."""
    check_name("alias", alias)
    of = MonitoredAlias(owner, name, alias)
    aliases.get_alias(session, owner, name, alias)
    row = repository.settings_of(session, *of)
    shadow = None if row is None or row.settings is None else row.settings["shadow"]
    tests = [test for test in repository.scheduled_tests_of(session, *of) if test.family == SHADOW]
    tests = [test for test in tests if test.found["model_id"] is not None]
    start = tests[-1].found["term_start"] if tests else None
    own = [test for test in tests if test.found["term_start"] == start]
    details = own[-1].found["details"] if own else {}
    swap = total_swap([cast(StoredTest, test.found) for test in own])
    compared = [each for each in own if each.found["details"]["comparison"] is not None]
    training = training_of(session, owner, shadow)
    return AliasShadow(
        name=name,
        alias=alias,
        shadow=shadow,
        unseen_from=None if training is None else training.until,
        compared_before=training is not None and training.group is not None,
        champion_id=details.get("champion_id"),
        challenger_id=details.get("challenger_id"),
        tolerance=details.get("tolerance"),
        comparison=shadow_comparison_of(
            compared[-1].found["details"]["comparison"] if compared else None
        ),
        swap=None if swap is None else SwapSet.model_validate(swap),
        tests=[shadow_test_of(test) for test in own[: -MAX_SHOWN - 1 : -1]],
    )
