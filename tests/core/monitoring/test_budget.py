"""The budget of false alarms: its division among tests, and what is left of it after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from core.errors import InvalidParameter
from core.monitoring import (
    Measurement,
    allot,
    monitor_rate,
    monitor_windows,
)
from tests.sentences import Sentences


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize(
    "tests", [None, {"ranking": 1}, {"ranking": 2, "guarantee": 3, "unlabelled": 40}]
)
def test_the_parts_sum_to_alpha(alpha: float, tests: Any) -> None:
    parts = allot(alpha, tests)
    assert sum(
        part * (tests or {}).get(family, 1) for family, part in parts.items()
    ) == pytest.approx(alpha)


def test_shares_of_the_default_budget() -> None:
    assert allot(0.05) == pytest.approx(
        {"ranking": 0.02, "calibration": 0.01, "guarantee": 0.01, "unlabelled": 0.01}
    )
    assert allot(0.1, {"ranking": 1, "calibration": 0, "unlabelled": 1}) == pytest.approx(
        {"ranking": 0.1 * 2 / 3, "unlabelled": 0.1 / 3}
    )


@pytest.mark.parametrize(
    ("alpha", "tests", "message"),
    [
        (0.0, None, "alpha must be"),
        (0.05, {}, "at least one test"),
        (0.05, {"ranking": 0}, "at least one test"),
        (0.05, {"speed": 1}, "of the families"),
        (0.05, {"ranking": 1.5}, "an integer"),
        (0.05, {"ranking": -1}, "at least 0"),
    ],
)
def test_bad_budgets(alpha: float, tests: Any, message: str, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter) as caught:
        allot(alpha, tests)
    assert message in str(caught.value)


def test_a_monitor_that_begins_later_spends_the_part_of_alpha_that_is_left() -> None:
    weeks = [Measurement(0.8, 3e-4, 200, 1800, i, i) for i in range(1, 53)]
    tests = monitor_windows(
        Measurement(0.8, 6e-5, 1000, 9000), weeks, planned=52, alpha=0.02, since=30
    ).tests
    assert tests[0].period == 31
    assert tests[-1].alpha_spent == pytest.approx(0.02 * 22 / 52)
    assert np.all(np.diff([test.alpha_spent for test in tests]) > 0.0)


RATE, ROWS = 0.2, 40


def alarms_by_rate(counts: Sequence[int], plan: dict[str, Any]) -> bool:
    """Whether so many events in each period after an acknowledgement raise an alarm of a guaranteed rate."""
    events = [0] * plan["since"] + list(counts)
    return monitor_rate(events, [ROWS] * len(events), RATE, **plan).alarm is not None


@pytest.mark.parametrize("left", [1, 2])
def test_a_restarted_monitor_raises_no_more_false_alarms_than_are_left_of_the_budget(
    left: int,
) -> None:
    """The exact probability, by all numbers of events that the rest of the term can have."""
    plan = {"planned": 52, "alpha": 0.2, "since": 52 - left}
    mass = binom.pmf(np.arange(ROWS + 1), ROWS, RATE)
    probability = sum(
        mass[list(counts)].prod()
        for counts in product(range(ROWS + 1), repeat=left)
        if alarms_by_rate(counts, plan)
    )
    assert 0.0 < probability <= 0.2 * left / 52
