"""The challenger in shadow: it scores the recorded features of a period, and is compared with the model that decided.

The comparison is a confidence sequence over all periods in which the same two models were compared. Outcomes result
from the decisions of the alias: if they come from reviews of flagged rows, outcomes of rows that only the challenger
would flag are known only if unflagged rows are explored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from app.feedback.period_rows import UNKNOWN, PeriodRows
from app.feedback.periods import Period
from app.feedback.scheduled_tests import Series, StoredTest, begin, restored, select, stored
from app.platform.sql import Json

if TYPE_CHECKING:
    from core.base.ranker import Floats

ALPHA = 0.05
"""Probability that the limits of a comparison are wrong at any test."""
DEFAULT_TOLERANCE = 0.01
"""Difference of the AUC that does not matter, unless the settings of the monitor declare one."""
_SAME = ("champion_id", "challenger_id", "tolerance")


def begin_comparison(
    period: Period,
    champion_id: str,
    challenger_id: str,
    tolerance: float,
    before: Sequence[StoredTest],
) -> tuple[StoredTest, list[StoredTest]]:
    """Return a test in which nothing was compared yet, and the earlier tests of the same comparison."""
    pair = {"champion_id": champion_id, "challenger_id": challenger_id, "tolerance": tolerance}
    series: list[StoredTest] = []
    for test in reversed(before):
        if test["model_id"] is not None and any(
            test["details"][name] != pair[name] for name in _SAME
        ):
            break
        series.insert(0, test)
    start = series[0]["term_start"] if series else period.start
    number = series[-1]["number"] + 1 if series else 1
    found = begin(period, Series(series, start, number, 0), champion_id, "auc")
    found["details"] = {**pair, "swap": None, "comparison": None, "left_out": 0}
    return found, series


def without_comparison(period: Period, before: Sequence[StoredTest], reason: str) -> StoredTest:
    """The comparison, if any, continues."""
    start, number = (
        (before[-1]["term_start"], before[-1]["number"] + 1) if before else (period.start, 1)
    )
    return {**begin(period, Series([], start, number, 0), None, "auc"), "reason": reason}


def waiting_from(series: Sequence[StoredTest]) -> float | None:
    """Return the start of the first period that waits for more rows."""
    start = None
    for test in reversed(series):
        if test["status"] != "waiting" or test["model_id"] is None:
            break
        start = test["details"]["period_start"]
    return start


def compare(
    found: StoredTest,
    series: Sequence[StoredTest],
    rows: PeriodRows,
    scores: Floats,
    swap: Json | None,
) -> StoredTest:
    """Compare both models on the rows of all waiting periods; scores: the challenger's; swap: of the last period."""
    from core.monitoring import PairedMeasurement, compare_measurements, measure_pair
    from core.monitoring.measuring import MIN_POSITIVES

    details = found["details"] = {**found["details"], "swap": swap}
    found["rows"] = rows.size
    found["known"] = int(np.count_nonzero(rows.label != UNKNOWN))
    found["positives"] = int(np.count_nonzero(rows.label == 1))
    if rows.size == 0 and details["left_out"]:
        reason = f"the entities of all {details['left_out']:,} decisions may be in the challenger's training data"
        return {**found, "reason": reason}
    if rows.size == 0:
        return {**found, "reason": "there are no decisions"}
    selected, _ = select(rows)
    found["population"] = selected["population"]
    earlier = [
        restored(PairedMeasurement, test["state"]["measurement"])
        for test in series
        if test["state"].get("measurement")
    ]
    if selected["population"] not in ("all", "none"):
        reason = (
            f"outcomes are known for {selected['population']} decisions only, which the champion has selected. Explore "
            "the other side"
        )
        return {**found, "reason": reason}
    used = selected["rows"]
    y, weight = rows.label[used] == 1, selected["weight"][used]
    # Rows of the same entity are no further rows: without ids, each row is an entity of its own.
    positives, negatives = (np.unique(rows.entity[used][of]).size for of in (y, ~y))
    if min(positives, negatives) < MIN_POSITIVES:
        reason = (
            f"{positives} entities with positive and {negatives} with negative rows; a comparison needs "
            f"{MIN_POSITIVES} of each"
        )
        return {**found, "status": "waiting", "reason": reason}
    entities = rows.entities
    own = measure_pair(
        y,
        rows.score[used],
        scores[used],
        last=found["number"],
        sample_weight=None if np.ptp(weight) == 0.0 else weight,
        entity=None if entities is None else entities[used],
    )
    test = compare_measurements([*earlier, own], tolerance=details["tolerance"], alpha=ALPHA)[-1]
    details["comparison"] = asdict(test)
    return {
        **found,
        "status": "passed",
        "value": own.difference,
        "variance": own.variance,
        "state": {"measurement": stored(own)},
    }


def swap_of(rows: PeriodRows, scores: Floats) -> Json | None:
    """Return the swap set of a period, with as many flagged by the challenger as by the champion; None without a
    threshold.

    A decision that was recorded by chance stands for those that were not.
    """
    from core.monitoring import swap_set

    if rows.size == 0 or (rows.flag == UNKNOWN).all():
        return None
    flagged, decisions = rows.flag == 1, 1.0 / rows.keep
    # Of equal scores the first decisions are flagged.
    order = np.lexsort((np.arange(rows.size), -scores))
    before = np.cumsum(decisions[order]) - decisions[order] / 2.0
    by_challenger = np.zeros(rows.size, np.bool_)
    by_challenger[order[before < decisions[flagged].sum()]] = True
    known = rows.label != UNKNOWN
    found = swap_set(flagged, by_challenger, rows.label == 1, known, sample_weight=decisions)
    return {
        cell: {name: round(count) for name, count in counts.items()}
        for cell, counts in asdict(found).items()
    }


def total_swap(tests: Sequence[StoredTest]) -> Json | None:
    """Return the sums of the swap sets."""
    total: Json | None = None
    for test in tests:
        swap = test["details"].get("swap")
        if swap is None:
            continue
        if total is None:
            total = {cell: dict.fromkeys(counts, 0) for cell, counts in swap.items()}
        for cell, counts in swap.items():
            for name, count in counts.items():
                total[cell][name] += count
    return total
