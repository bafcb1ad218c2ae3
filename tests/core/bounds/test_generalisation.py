"""The bounds of §3, against the paper's formulas worked out by hand and against one another."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bounds import (
    WeakRankers,
    bound_held_out,
    bound_misranking,
    column_rankers,
    stump_rankers,
    two_classes,
)
from core.bounds.generalisation import (
    Sample,
    corollary_4_epsilon,
    corollary_5_epsilon,
    equation_2_epsilon,
    equation_2_least_rows,
    log_sloppy_cover,
    log_uniform_cover,
)
from core.errors import InvalidParameter
from core.metrics import roc_curve
from core.metrics.margins import margin_distribution
from tests.raising import raises
from tests.sentences import Sentences

sizes = st.integers(1, 10**6)
thetas = st.floats(0.01, 1)
deltas = st.floats(1e-6, 0.5)
rows = st.integers(10, 10**9)
shares = st.floats(0.01, 0.5)


SPREAD = margin_distribution(roc_curve([1, 1, 0, 0], [3.0, 2.0, 1.0, 0.0]), 4.0)


def test_the_covers_by_hand() -> None:
    # ln 10 · ln(2/.1)/(2 · .2²) = 2.302585 · 2.995732/.08
    assert log_sloppy_cover(10, 0.2, 0.1) == pytest.approx(86.2241, abs=1e-4)
    assert log_sloppy_cover(1, 0.2, 0.1) == 0.0
    # |H| = 2, θ = ¼: N = 3 and the weights (0,3), (1,2), (2,1), (3,0)
    assert log_uniform_cover(2, 0.25) == pytest.approx(math.log(4))
    assert log_uniform_cover(1, 0.1) == pytest.approx(0.0, abs=1e-12)


def test_equation_2_by_hand() -> None:
    # mE² = 62,500 · .0625 = 3906.25; 8 ln 2/.25 = 22.18071; ln(4 · 3906.25 · .25/ln 2) = 8.636847
    # 4/3906.25 · (22.18071 · 8.636847 + 2 ln 40) = .001024 · 198.9492 = .2037239
    assert equation_2_epsilon(2, 0.5, 0.05, 62_500, 0.25) == pytest.approx(0.451358, abs=1e-6)
    # 64 ln 2/(.25 · .5)²
    assert equation_2_least_rows(2, 0.5, 0.25) == pytest.approx(2839.13, abs=1e-2)


def test_corollary_5_by_hand() -> None:
    # √(8/(10,000 · .0625) · (ln 8 + ln 20)) with |F| = 4: √(.0128 · 5.075174)
    assert corollary_5_epsilon(math.log(4), 0.05, 10_000, 0.25) == pytest.approx(0.254877, abs=1e-6)


@given(sizes, thetas, deltas, rows, shares)
def test_epsilon_of_corollary_4_is_the_least_that_holds(
    size: int, theta: float, delta: float, m: int, E: float
) -> None:
    epsilon = corollary_4_epsilon(size, theta, delta, m, E)
    if math.isinf(epsilon):
        return

    def log_failure(epsilon: float) -> float:
        cover = log_sloppy_cover(size, theta / 4, epsilon / 8)
        return math.log(2) + cover - m * (epsilon * E) ** 2 / 8

    assert log_failure(epsilon) <= math.log(delta) + 1e-6
    assert log_failure(epsilon * (1 - 1e-6)) > math.log(delta) - 1e-5


@given(sizes, thetas, deltas, shares, st.floats(1, 1e4))
def test_equation_2_lies_above_corollary_4_where_its_condition_holds(
    size: int, theta: float, delta: float, E: float, times: float
) -> None:
    least = equation_2_least_rows(size, theta, E)
    m = max(10, math.ceil(least * times))
    closed = equation_2_epsilon(size, theta, delta, m, E)
    assert closed >= corollary_4_epsilon(size, theta, delta, m, E) * (1 - 1e-6)


@given(sizes, thetas, deltas, rows, shares)
def test_bounds_shrink_with_rows_and_grow_with_what_is_asked(
    size: int, theta: float, delta: float, m: int, E: float
) -> None:
    for epsilon in (
        corollary_4_epsilon,
        lambda size, theta, *rest: corollary_5_epsilon(log_uniform_cover(size, theta / 4), *rest),
    ):
        here = epsilon(size, theta, delta, m, E)
        slack = 1 + 1e-6
        assert epsilon(size, theta, delta, 2 * m, E) <= here * slack
        assert epsilon(size, theta, delta / 2, m, E) >= here / slack
        assert epsilon(2 * size, theta, delta, m, E) >= here / slack
        assert epsilon(size, theta / 2, delta, m, E) >= here / slack
        assert epsilon(size, theta, delta, m, E / 2) >= here / slack


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.05, 1))
def test_the_uniform_cover_covers(weights: list[float], theta: float) -> None:
    """Rounding to multiples of 1/N by largest remainders moves no combination by theta or more."""
    if sum(weights) == 0:
        weights = [1.0] * len(weights)
    exact = np.array(weights) / sum(weights)
    parts = math.floor(len(exact) / (4 * theta)) + 1
    rounded = np.floor(exact * parts)
    order = np.argsort(rounded - exact * parts, kind="stable")
    rounded[order[: round(parts - rounded.sum())]] += 1
    assert rounded.sum() == parts
    outputs = np.array(list(itertools.product([0, 1], repeat=len(exact))))
    assert abs(outputs @ (exact - rounded / parts)).max() < theta
    grid = math.comb(parts + len(exact) - 1, parts)
    assert log_uniform_cover(len(exact), theta) == pytest.approx(math.log(grid), abs=1e-9)


def test_the_report() -> None:
    sample = two_classes(positives=60_000, negatives=40_000)
    assert sample.crucial_share == pytest.approx(0.24, abs=1e-5)
    bounds = bound_misranking(SPREAD, sample, column_rankers(5), theta=0.5, delta=0.05)
    assert [b.name for b in bounds] == ["theorem_2", "corollary_4", "equation_2", "corollary_5"]
    assert all(b.applies for b in bounds)
    assert {b.margin_fraction for b in bounds} == {SPREAD.fraction_within(0.5)} == {0.75}
    theorem_2, corollary_4, equation_2, corollary_5 = (b.epsilon for b in bounds)
    assert theorem_2 == min(corollary_4, corollary_5)
    assert corollary_4 <= equation_2
    assert corollary_5 < corollary_4  # five weak rankers
    assert [b.value for b in bounds] == [0.75 + b.epsilon for b in bounds]
    assert [b.vacuous for b in bounds] == [b.value >= 1 for b in bounds]
    assert not bounds[3].vacuous


@pytest.mark.parametrize(
    ("sample", "rankers", "reason"),
    [
        (two_classes(50_000, 50_000, weighted=True), column_rankers(5), "unequal weights"),
        (
            two_classes(50_000, 50_000),
            stump_rankers(254, 30),
            "bin edges, chosen from the training rows",
        ),
    ],
)
def test_where_the_theorem_does_not_apply_it_says_why(
    sample: Sample, rankers: WeakRankers, reason: str
) -> None:
    for bound in bound_misranking(SPREAD, sample, rankers, theta=0.5, delta=0.05):
        assert not bound.applies
        assert any(reason in told for told in bound.reasons)


def test_equation_2_says_when_there_are_too_few_rows(sentences: Sentences) -> None:
    bounds = bound_misranking(SPREAD, two_classes(50, 50), column_rankers(5), theta=0.1, delta=0.05)
    by_name = {bound.name: bound for bound in bounds}
    (reason,) = by_name["equation_2"].reasons
    sentences(reason)
    assert by_name["corollary_4"].applies
    assert all(bound.vacuous for bound in bounds)


def test_a_bound_without_a_number_is_vacuous() -> None:
    # So few rows that eq. 2's logarithm is negative: its root has no value.
    bounds = bound_misranking(
        SPREAD, two_classes(1, 99), WeakRankers(10**6), theta=0.01, delta=0.05
    )
    equation_2 = bounds[2]
    assert math.isnan(equation_2.epsilon)
    assert equation_2.vacuous
    assert not equation_2.applies


def test_boolean_features_have_all_their_stumps_beforehand() -> None:
    assert stump_rankers(254, 3, boolean=True) == WeakRankers(18)
    assert stump_rankers(2, 3).size == 30


def test_every_set_of_categories_counts(sentences: Sentences) -> None:
    alone = stump_rankers(254, 0, n_categories=[2])
    assert alone.size == 6  # of 8 functions of two categories and missing 2 are constant
    sentences(alone.depends_on_data)
    both = stump_rankers(2, 3, n_categories=[2, 3])
    assert both.size == 30 + 6 + 14
    sentences(both.depends_on_data)
    assert stump_rankers(254, 1, boolean=True, n_categories=[1]).size == 6 + 2


@pytest.mark.parametrize("n_categories", [[62], [65_535], [61, 61, 61]])
def test_a_number_of_sets_beyond_counting_makes_no_bound_fail(n_categories: list[int]) -> None:
    rankers = stump_rankers(254, 3, n_categories=n_categories)
    assert 2**62 - 2 <= rankers.size <= 2**62
    bounds = bound_misranking(SPREAD, two_classes(50, 50), rankers, theta=0.1, delta=0.05)
    assert not any(bound.applies for bound in bounds)


def test_the_held_out_bound() -> None:
    bound = bound_held_out(0.1, two_classes(50_000, 50_000), delta=0.05)
    assert bound.epsilon == pytest.approx(math.sqrt(8 / (1e5 * 0.0625) * math.log(40)), rel=1e-4)
    assert bound.applies
    assert not bound.vacuous
    assert not bound_held_out(0.1, two_classes(9, 9, weighted=True), delta=0.05).applies


@pytest.mark.parametrize(
    "given_",
    [{"theta": 0.0}, {"theta": 1.5}, {"theta": math.nan}, {"delta": 0.0}, {"delta": 1.0}],
)
def test_parameters_out_of_range_are_refused(given_: dict[str, float]) -> None:
    asked = {"theta": 0.5, "delta": 0.05} | given_
    with raises(InvalidParameter, *given_, *given_.values()):
        bound_misranking(SPREAD, two_classes(5, 5), column_rankers(2), **asked)


def test_other_bad_input_is_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        log_uniform_cover(0, 0.1)
    with sentences.raises(InvalidParameter):
        log_sloppy_cover(2, 0.1, 0)
    with sentences.raises(InvalidParameter):
        corollary_5_epsilon(0.0, 0.05, 1, 0.25)
    with sentences.raises(InvalidParameter):
        corollary_5_epsilon(0.0, 0.05, 10, 0.6)
    with sentences.raises(InvalidParameter):
        bound_held_out(1.5, two_classes(5, 5), delta=0.05)


@pytest.mark.parametrize("theta", [1e-300, 1e-160, 1e-9])
@pytest.mark.parametrize("size", [1, 2, 10**6])
def test_extreme_margins_neither_overflow_nor_deceive(theta: float, size: int) -> None:
    m, E, delta = 10**6, 0.25, 1e-300
    least = corollary_5_epsilon(0.0, delta, m, E)
    epsilons = [
        corollary_4_epsilon(size, theta, delta, m, E),
        corollary_5_epsilon(log_uniform_cover(size, theta / 4), delta, m, E),
    ]
    for epsilon in epsilons:
        assert epsilon >= least * (1 - 1e-9)
        assert size == 1 or epsilon > least
    closed = equation_2_epsilon(size, theta, delta, m, E)
    assert math.isnan(closed) or closed >= least * (1 - 1e-9)
    assert equation_2_least_rows(size, theta, E) >= 0
