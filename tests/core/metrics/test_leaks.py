"""Columns that state the label are found, and graded predictors, pure rules on few rows and ids are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metrics.leaks import (
    clopper_pearson,
    halves,
    may_number_rows,
    order_area,
    pure_pattern,
    spike_codes,
)

N = 4_000
RNG = np.random.Generator(np.random.Philox(7))
Y = RNG.random(N) < 0.05
HALF = halves(N, 0)


def test_the_limits_are_those_of_the_tails_of_the_binomial() -> None:
    from scipy.stats import binom

    for hits, n in ((0, 9), (3, 9), (9, 9), (152, 3000)):
        low, high = clopper_pearson(hits, n, 0.02)
        assert hits == 0 or binom.sf(hits - 1, n, low) == pytest.approx(0.02)
        assert hits == n or binom.cdf(hits, n, high) == pytest.approx(0.02)
    assert clopper_pearson(0, 9, 0.02)[0] == 0.0
    assert clopper_pearson(9, 9, 0.02)[1] == 1.0


def found(
    values: np.ndarray, y: np.ndarray = Y
) -> tuple[bool, list[tuple[str, float]], int, int] | None:
    codes, places = spike_codes(values)
    pattern = pure_pattern(codes, y, HALF, 20)
    if pattern is None:
        return None
    has = np.isin(codes, pattern.levels)
    own = y if pattern.positive else ~y
    assert (pattern.rows, pattern.others) == ((has & own).sum(), (has & ~own).sum())
    assert (pattern.of_rows, pattern.of_others) == (own.sum(), (~own).sum())
    return (
        pattern.positive,
        [places[level] for level in pattern.levels],
        pattern.rows,
        pattern.others,
    )


def test_what_is_filled_in_afterwards() -> None:
    paid = Y & (RNG.random(N) < 0.93)
    amount = RNG.exponential(50.0, N) + 1.0
    fee = found(np.where(paid, amount, 0.0))
    assert fee is not None
    assert fee[:2] == (True, [("above", 0.0)])
    assert fee[2:] == (int(paid.sum()), 0)
    known = found(np.where(paid, amount, np.nan))
    assert known is not None
    assert known[1][0][0] == "known"
    gone = found(np.where(Y & (RNG.random(N) < 0.5), np.nan, amount))
    assert gone is not None
    assert gone[1][0][0] == "missing"
    flag = found(np.where(paid, 1.0, 0.0))
    assert flag is not None
    assert flag[:2] == (True, [("at", 1.0)])


def test_what_is_known_before() -> None:
    score = RNG.normal(size=N) + 3.0 * Y  # AUC .98
    assert found(score) is None
    assert found(np.round(score)) is None
    assert found(np.where(RNG.random(N) < 0.4, np.nan, score)) is None
    few = Y & (RNG.random(N) < 0.1)  # a rule about a tenth of the positives
    assert found(few.astype(float)) is None
    minors = ~Y & (RNG.random(N) < 0.3)  # who may not take part at all
    assert found(minors.astype(float)) is None
    assert found(np.arange(N, dtype=float)) is None


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=40))
def test_few_rows_state_nothing(rows: list[tuple[int, bool, bool]]) -> None:
    """One class, one level, an empty half, no rows: no pattern, and no error."""
    codes, y, half = (
        np.array([row[i] for row in rows], dtype=t) for i, t in enumerate((np.intp, bool, bool))
    )
    assert pure_pattern(codes, y, half) is None


@given(st.lists(st.sampled_from([np.nan, -1.0, 0.0, 2.5, 7.0]), min_size=1, max_size=30))
def test_each_row_has_the_place_of_its_value(values: list[float]) -> None:
    codes, places = spike_codes(np.array(values))
    for value, code in zip(values, codes, strict=True):
        place, at = places[code]
        expected = {"missing": np.isnan(value), "known": not np.isnan(value)}
        expected |= {"below": value < at, "at": value == at, "above": value > at}
        assert expected[place]


def test_an_order_by_outcome() -> None:
    numbers = np.arange(N, dtype=float) + 1_000.0
    sorted_labels = np.sort(Y)
    assert may_number_rows(numbers)
    area = order_area(numbers, sorted_labels, HALF, 10)
    assert area is not None
    assert area.low > 0.9
    assert order_area(numbers, Y, HALF, 10) is None
    drifting = RNG.random(N) < 0.02 + 0.1 * np.arange(N) / N  # a prevalence that changes is no leak
    assert order_area(numbers, drifting, HALF, 10) is None
    assert order_area(numbers, np.zeros(N, dtype=bool), HALF, 10) is None
    for other in (
        np.round(numbers / 10),
        numbers + 0.5,
        numbers * 100,
        np.where(Y, np.nan, numbers),
    ):
        assert not may_number_rows(other)
    assert not may_number_rows(np.empty(0))
