"""The oracle held to the definitions: all subsets, all orderings, all runs; its planes, weights and ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.linear.surrogates import (
    MassWindow,
    Surrogate,
    Violations,
    find_pair_violations,
    find_violations,
    window_of,
)
from tests.core.linear.surrogate_oracle import by_runs, hinge, naive, tight
from tests.long_form import LONG_FORM


def evaluate(
    s: np.ndarray, z: np.ndarray, low: int, high: int, *, is_naive: bool = False
) -> Violations:
    ones = np.ones(len(s)), np.ones(len(z))
    return Surrogate(*ones, MassWindow(low, high, len(z)), naive=is_naive).at(s, z)


def draw_scores(
    rng: np.random.Generator, m: int, n: int, *, ties: bool
) -> tuple[np.ndarray, np.ndarray]:
    if ties:
        return rng.integers(-4, 5, m) / 2.0, rng.integers(-4, 5, n) / 2.0
    return rng.normal(size=m), rng.normal(size=n)


@pytest.mark.parametrize("seed", range(60))
def test_equal_to_all_subsets_and_orderings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 3), rng.integers(1, 5)
    low = int(rng.integers(0, n))
    high = int(rng.integers(low + 1, n + 1))
    s, z = draw_scores(rng, m, n, ties=seed % 3 > 0)
    assert evaluate(s, z, low, high).value == pytest.approx(tight(s, z, low, high), abs=1e-12)
    loose = evaluate(s, z, low, high, is_naive=True).value
    assert loose == pytest.approx(naive(s, z, low, high), abs=1e-12)


halves = st.integers(-6, 6).map(lambda k: k / 2)
scores = st.lists(halves | st.floats(-3, 3), min_size=1, max_size=8)


@settings(max_examples=3000 if LONG_FORM else 100)
@given(scores, scores, st.data())
def test_equal_to_all_runs_and_bounding(
    s: list[float], z: list[float], data: st.DataObject
) -> None:
    s, z = np.array(s), np.array(z)
    low = data.draw(st.integers(0, len(z) - 1))
    high = data.draw(st.integers(low + 1, len(z)))
    strict, loose = evaluate(s, z, low, high), evaluate(s, z, low, high, is_naive=True)
    assert strict.value == pytest.approx(by_runs(s, z, low, high, high), abs=1e-9)
    assert loose.value == pytest.approx(by_runs(s, z, low, high, len(z)), abs=1e-9)
    # Fig. 3: naive bounds tight bounds the risk; and on [0, β] tight is the hinge (Theorem 5)
    inside = np.sort(z)[::-1][low:high]
    risk = (s[:, None] <= inside[None, :]).mean()
    assert loose.value >= strict.value - 1e-9
    assert strict.value >= risk - 1e-9
    if low == 0:
        assert strict.value == pytest.approx(hinge(s, z, low, high), abs=1e-9)
    for found in (strict, loose):  # the plane touches R here, and pairs weigh alike
        assert found.loss + found.slope(s, z) == pytest.approx(found.value, abs=1e-9)
        assert found.of_negatives.sum() == pytest.approx(-found.of_positives.sum(), abs=1e-9)


@settings(max_examples=2000 if LONG_FORM else 66)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_planes_lie_below(seed: int, is_naive: bool, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 6), rng.integers(1, 9)
    low = int(rng.integers(0, n))
    high = int(rng.integers(low + 1, n + 1))
    s, z = draw_scores(rng, m, n, ties=ties)
    other_s, other_z = draw_scores(rng, m, n, ties=ties)
    plane = evaluate(s, z, low, high, is_naive=is_naive)
    other = evaluate(other_s, other_z, low, high, is_naive=is_naive)
    assert other.value >= plane.loss + plane.slope(other_s, other_z) - 1e-9


def test_the_papers_third_inequality_fails() -> None:
    """Fig. 3(c) says hinge <= tight on [α, β]."""
    s, z = np.array([0.5]), np.array([0.0, 0.0, -5.0])
    assert hinge(s, z, 1, 3) == 0.25
    assert evaluate(s, z, 1, 3).value == 0.0


def test_nothing_is_lost_at_zero() -> None:
    for low, high, is_naive in [(0, 1, False), (2, 5, True), (6, 7, False), (0, 7, True)]:
        found = evaluate(np.zeros(3), np.zeros(7), low, high, is_naive=is_naive)
        assert (found.value, found.loss) == pytest.approx((1.0, 1.0))
        assert found.of_negatives == pytest.approx(high / (high - low) / 7, abs=1e-12) or is_naive


@settings(max_examples=3000 if LONG_FORM else 100)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_weight_k_is_k_rows(seed: int, is_naive: bool) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 5), rng.integers(1, 7)
    s, z = draw_scores(rng, m, n, ties=bool(seed % 2))
    p, q = rng.integers(1, 4, m), rng.integers(1, 4, n)
    rates = sorted(rng.choice(np.arange(21) / 20, 2, replace=False))
    masses = window_of(q.astype(float), *rates)
    assert masses == window_of(np.ones(q.sum()), *rates)
    weighted = Surrogate(p.astype(float), q.astype(float), masses, naive=is_naive).at(s, z)
    repeated = Surrogate(np.ones(p.sum()), np.ones(q.sum()), masses, naive=is_naive).at(
        np.repeat(s, p), np.repeat(z, q)
    )
    assert weighted.value == pytest.approx(repeated.value, abs=1e-12)
    assert weighted.loss == pytest.approx(repeated.loss, abs=1e-12)
    crossed, of_copies = np.zeros(n), np.zeros(q.sum())
    crossed[weighted.rows], of_copies[repeated.rows] = weighted.of_negatives, repeated.of_negatives
    owners = np.repeat(np.arange(n), q)
    assert crossed == pytest.approx(np.bincount(owners, of_copies, n), abs=1e-12)
    owners = np.repeat(np.arange(m), p)
    assert weighted.of_positives == pytest.approx(
        np.bincount(owners, repeated.of_positives, m), abs=1e-12
    )


def test_fractions_of_rows_are_taken_as_they_are() -> None:
    """With weights that are not whole numbers, the window's ends are masses, and may lie within a row."""
    q = np.array([0.5, 0.5, 0.5])
    assert window_of(q, 0.0, 0.5) == (0.0, 0.75, 1.5)
    s, z = np.array([0.0]), np.array([2.0, 1.0, 0.0])
    found = Surrogate(np.ones(1), q, window_of(q, 0.0, 0.5)).at(s, z)
    assert found.value == pytest.approx((0.5 * 3.0 + 0.25 * 2.0) / 0.75)
    # to halve all rows is to double each, but for the rounding to ranks
    doubled = Surrogate(np.ones(1), 2 * q, MassWindow(0.0, 1.5, 3.0)).at(s, z)
    assert doubled.value == pytest.approx(found.value)


@settings(max_examples=2000 if LONG_FORM else 66)
@given(scores, scores, st.sampled_from([1.0, 1e-250, 1e200]), st.integers(0, 2**32 - 1))
def test_the_whole_curve_by_the_order_of_the_positives(
    s: list[float], z: list[float], scale: float, seed: int
) -> None:
    """The same pairs, whichever class is sorted: with ties, weights, and scores that hardly differ or are huge."""
    s, z = np.sort(scale * np.array(s)), -np.sort(-scale * np.array(z))
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.5, 2.0, len(s)), rng.integers(1, 4, len(z)).astype(float)
    top = q.sum()
    runs, crossed = np.empty(len(s)), np.empty(len(z))
    expected = find_violations(s, p, z, q, 0.0, top, top, runs, crossed)
    of_order, of_negative = np.empty(len(s)), np.empty(len(z))
    order = rng.permutation(len(z))  # the negatives may come as they like
    found = find_pair_violations(s, p, z[order], q[order], of_order, of_negative)
    # Pair by pair: the sums of `find_violations` cancel where scores are huge and alike.
    crosses = z >= s[:, None] - 1.0
    value = np.sum(np.outer(p, q) * (1.0 + (z - s[:, None])), where=crosses)
    assert found == pytest.approx((value, expected[1]), rel=1e-12, abs=1e-9)
    if scale <= 1.0:
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-9)
    assert of_order == pytest.approx(runs, abs=1e-9)
    assert of_negative == pytest.approx(crossed[order], abs=1e-9)
