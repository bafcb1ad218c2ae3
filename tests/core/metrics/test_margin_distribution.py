"""The margins of all pairs, against the pairs themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidData, InvalidParameter
from core.metrics import misrank_fraction, roc_curve
from core.metrics.groups import group_by_score
from core.metrics.margins import (
    listed_margin_distribution,
    log_listed_loss,
    log_pair_loss,
    margin_distribution,
    smooth_margin,
)
from tests.core.metrics.naive import pair_margins, rankings, repeat_rows
from tests.sentences import Sentences


@given(rankings(weighted=True), st.sampled_from([0.5, 1.0, 4.0]), st.integers(2, 40))
def test_shares_of_pairs_within_a_margin(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], l1_norm: float, n_thetas: int
) -> None:
    # Small whole scores and powers of two: every margin is exact, ties of margins too.
    y, scores, weights = case
    margins, pair_weights = pair_margins(y, scores, weights, l1_norm)
    spread = margin_distribution(roc_curve(y, scores, weights), l1_norm, n_thetas)
    assert (spread.least, spread.greatest) == (margins.min(), margins.max())
    for theta, fraction in zip(spread.thetas, spread.fractions, strict=True):
        within = pair_weights[margins <= theta].sum() / pair_weights.sum()
        assert fraction == pytest.approx(within, abs=1e-12)
    assert (np.diff(spread.fractions) >= 0).all()
    assert spread.fractions[-1] == 1.0
    if spread.least < 0 < spread.greatest:
        assert spread.fraction_within(0.0) == pytest.approx(misrank_fraction(y, scores, weights))


@given(
    rankings(weighted=True), st.integers(2, 6), st.floats(-8, 8).map(lambda theta: round(theta, 3))
)
def test_between_two_margins_the_share_is_never_too_small(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], n_thetas: int, theta: float
) -> None:
    y, scores, weights = case
    margins, pair_weights = pair_margins(y, scores, weights, 1.0)
    spread = margin_distribution(roc_curve(y, scores, weights), 1.0, n_thetas)
    within = pair_weights[margins <= theta].sum() / pair_weights.sum()
    assert spread.fraction_within(theta) >= within - 1e-12
    if theta < margins.min():
        assert spread.fraction_within(theta) == 0.0
    if theta >= margins.max():
        assert spread.fraction_within(theta) == 1.0


@given(rankings(weighted=True))
def test_a_weight_stands_for_so_many_rows(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    y, scores, weights = case
    weighted = margin_distribution(roc_curve(y, scores, weights), 2.0)
    repeated = margin_distribution(roc_curve(*repeat_rows(y, scores, weights)), 2.0)
    assert np.array_equal(weighted.thetas, repeated.thetas)
    assert weighted.fractions == pytest.approx(repeated.fractions, abs=1e-12)


@given(rankings(weighted=True), st.sampled_from([0.5, 1.0, 4.0]), st.integers(2, 40))
def test_a_list_of_all_pairs_says_the_same(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], l1_norm: float, n_thetas: int
) -> None:
    y, scores, weights = case
    margins, pair_weights = pair_margins(y, scores, weights, l1_norm)
    listed = listed_margin_distribution(margins, pair_weights, n_thetas)
    spread = margin_distribution(roc_curve(y, scores, weights), l1_norm, n_thetas)
    assert np.array_equal(listed.thetas, spread.thetas)
    assert listed.fractions == pytest.approx(spread.fractions, abs=1e-12)
    log_loss = log_listed_loss(margins * l1_norm, pair_weights)
    assert log_loss == pytest.approx(log_pair_loss(group_by_score(y, scores, weights)), abs=1e-12)


def test_a_list_without_weights_counts_each_pair_once() -> None:
    spread = listed_margin_distribution([0.5, -0.5, 0.5, 1.0], n_thetas=2)
    assert spread.thetas.tolist() == [-0.5, 0.0, 1.0]
    assert spread.fractions.tolist() == [0.25, 0.25, 1.0]
    assert log_listed_loss([0.0, 0.0]) == pytest.approx(math.log(2))


@pytest.mark.parametrize("margins", [[], [math.nan], [math.inf, 0.0]])
def test_margins_that_are_none_are_refused(
    margins: list[Any] | list[float], sentences: Sentences
) -> None:
    with sentences.raises(InvalidData):
        listed_margin_distribution(margins)


@given(rankings(weighted=True))
def test_the_log_of_the_loss_is_a_sum_over_pairs(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = case
    margins, pair_weights = pair_margins(y, scores, weights, 1.0)
    total = (pair_weights / pair_weights.min() * np.exp(-margins)).sum()
    assert log_pair_loss(group_by_score(y, scores, weights)) == pytest.approx(
        math.log(total), abs=1e-12
    )


@given(rankings(weighted=True), st.sampled_from([0.5, 1.0, 4.0]))
def test_the_smooth_margin_is_below_the_margin(
    case: tuple[np.ndarray, np.ndarray, np.ndarray], l1_norm: float
) -> None:
    # Eq. 6; where one pair is all there is they meet.
    y, scores, weights = case
    smooth = smooth_margin(log_pair_loss(group_by_score(y, scores, weights)), l1_norm)
    least = margin_distribution(roc_curve(y, scores, weights), l1_norm).least
    n_pairs = (y == 1).sum() * (y == 0).sum()
    assert smooth <= least + 1e-12
    assert least - smooth <= math.log(16 * n_pairs) / l1_norm + 1e-12  # weights are at most 4


def test_by_hand() -> None:
    # Positives at 3, 2 and negatives at 1, 0: margins 3, 2, 2, 1, with ‖λ‖₁ = 4.
    curve = roc_curve([1, 1, 0, 0], [3.0, 2.0, 1.0, 0.0])
    spread = margin_distribution(curve, 4.0, n_thetas=3)
    assert spread.thetas.tolist() == [0.25, 0.5, 0.75]
    assert spread.fractions.tolist() == [0.25, 0.75, 1.0]
    log_loss = log_pair_loss(group_by_score([1, 1, 0, 0], [3.0, 2.0, 1.0, 0.0]))
    assert log_loss == pytest.approx(math.log(math.exp(-3) + 2 * math.exp(-2) + math.exp(-1)))
    assert smooth_margin(log_loss, 4.0) == pytest.approx(-log_loss / 4)


def test_scores_far_from_zero_neither_overflow_nor_vanish() -> None:
    assert log_pair_loss(group_by_score([1, 0], [1e6, 0.0])) == -1e6
    assert log_pair_loss(group_by_score([1, 0], [-1e6, 0.0])) == 1e6
    # A row so light that it does not change a running sum: its pair has the greatest term.
    light = log_pair_loss(group_by_score([1, 1, 0], [0.0, -720.0, 0.0], [1.0, 1e-17, 1.0]))
    assert light == pytest.approx(720.0)
    assert math.isfinite(
        log_pair_loss(group_by_score([1, 0, 0], [400.0, -400.0, 0.0], [1.0, 1e-30, 1.0]))
    )
    assert math.isfinite(
        log_pair_loss(group_by_score([1, 1, 0], [0.0, -720.0, 720.0], [1e100, 1e-100, 1.0]))
    )
    spread = margin_distribution(roc_curve([1, 0], [1e300, 1e300 - 1e290]), 1e-5)
    assert np.isfinite(spread.thetas).all()


@pytest.mark.parametrize("l1_norm", [0.0, -1.0, math.inf, math.nan])
def test_a_norm_that_is_none_is_refused(l1_norm: float, sentences: Sentences) -> None:
    curve = roc_curve([1, 0], [1.0, 0.0])
    with sentences.raises(InvalidParameter):
        margin_distribution(curve, l1_norm)
    with sentences.raises(InvalidParameter):
        smooth_margin(0.0, l1_norm)


def test_other_bad_input_is_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        margin_distribution(roc_curve([1, 0], [1.0, 0.0]), 1.0, n_thetas=1)
    with sentences.raises(InvalidData):
        log_pair_loss(group_by_score([1, 0], [1.0, math.nan]))
