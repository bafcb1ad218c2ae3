"""The order of categories against every set of them, and how far the shares of small ones are shrunk."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coding import (
    MISSING,
    Criterion,
    effective_counts,
    find_best_label_split,
    find_best_split,
    fit_bins,
    measure_inverse_ess,
    order_bins,
)
from core.coding.bins import Bins
from tests.core.oracles import PUSH, gain_of
from tests.long_form import LONG_FORM

SHARE_P = 0.3


def gain(criterion: Criterion, p: float, n: float) -> float:
    """The gain of a set with shares p and n of the classes."""
    return gain_of(criterion, (p, n), (1 - p, 1 - n), SHARE_P)


def no_cut(criterion: Criterion) -> float:
    """The gain of a set that holds all rows or none; only an edge can be had so."""
    return gain(criterion, 0.0, 0.0)


def every_set(histogram: np.ndarray, n_bins: int, has_missing: bool) -> Iterator[np.ndarray]:
    """The shares of the classes in every set of bins, with the missing and without."""
    totals = histogram.sum(axis=1)
    for chosen in range(2**n_bins):
        above = np.zeros(histogram.shape[1], dtype=bool)
        above[:n_bins] = [chosen >> k & 1 for k in range(n_bins)]
        for missing_above in (False, True) if has_missing else (False,):
            above[-1] = missing_above
            yield np.minimum(histogram[:, above].sum(axis=1) / totals, 1.0)


@given(
    seed=st.integers(0, 2**32),
    n_bins=st.integers(1, 6),
    has_missing=st.booleans(),
    criterion=st.sampled_from(list(Criterion)),
    levels=st.sampled_from([2, 4, 1000]),
)
@settings(max_examples=3000 if LONG_FORM else 100)
def test_no_set_of_categories_beats_the_cut_along_their_shares(
    seed: int, n_bins: int, has_missing: bool, criterion: Criterion, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    histogram = np.zeros((2, 256))
    histogram[:, :n_bins] = rng.integers(0, levels, (2, n_bins))  # zero mass and ties, too
    if has_missing:
        histogram[:, MISSING] = rng.integers(0, levels, 2)
    histogram[:, rng.integers(n_bins)] += 1.0  # each class has some mass
    split = find_best_split(
        histogram[None],
        np.array([n_bins]),
        np.array([has_missing]),
        criterion,
        SHARE_P,
        np.array([True]),
        push=PUSH,
    )
    best = max(gain(criterion, *s) for s in every_set(histogram, n_bins, has_missing))
    assert max(split.gain, no_cut(criterion)) == pytest.approx(best, abs=1e-9)
    if split.feature < 0:
        return
    above = np.zeros(256, dtype=bool)
    above[:n_bins], above[MISSING] = split.bins_above, split.missing_above
    shares = histogram[:, above].sum(axis=1) / histogram.sum(axis=1)
    assert gain(criterion, *np.minimum(shares, 1.0)) == pytest.approx(split.gain, abs=1e-9)
    massless = histogram[:, :n_bins].sum(axis=0) == 0
    assert (split.bins_above[massless] == split.missing_above).all()


def test_credibility_by_hand() -> None:
    # Shares 3/4 and 1/4 around 1/2; each class is 20 rows of 1/20.
    masses = np.array([[0.75, 0.25], [0.25, 0.75]])
    order, mixed = np.empty(2, dtype=np.int64), np.empty((2, 2))
    assert order_bins(masses, 2, 0.05, 0.05, order, mixed) == 2
    assert order.tolist() == [1, 0]
    scatter, chance = 2 * 0.25**2, 0.5 * 0.5 * 0.05  # Σ (P_k - s M_k)², and s(1 - s)(...)
    tau = (scatter - 2 * chance) / 2  # Σ M_k² = 2
    own = 1 / (1 + chance / tau)
    assert mixed[0] == pytest.approx([0.5 - 0.25 * own, 0.5 + 0.25 * own])
    assert mixed[1] == pytest.approx([0.5 + 0.25 * own, 0.5 - 0.25 * own])


def histogram_of(
    column: np.ndarray, positive: np.ndarray, weights: np.ndarray, n_bins: int
) -> np.ndarray:
    histogram = np.zeros((1, 2, max(n_bins + 1, 256)))
    for k, rows in enumerate((positive, ~positive)):
        histogram[0, k, :n_bins] = np.bincount(column[rows], weights[rows], n_bins)
    return histogram


@given(seed=st.integers(0, 2**32), skew=st.sampled_from([0.0, 1.0, 3.0]))
@settings(max_examples=500 if LONG_FORM else 16)
def test_one_row_a_category_gains_nothing_whatever_labels_and_weights(
    seed: int, skew: float
) -> None:
    rng = np.random.default_rng(seed)
    n = 200
    positive = np.arange(n) < rng.integers(1, n)
    weights = np.exp(skew * rng.normal(size=n))  # as after many rounds of boosting
    weights[positive] /= weights[positive].sum()
    weights[~positive] /= weights[~positive].sum()
    inverse_ess = measure_inverse_ess(weights, None, int(positive.sum()))
    histogram = histogram_of(rng.permutation(n), positive, weights, n)
    for criterion in (Criterion.YOUDEN, Criterion.LOSS):
        split = find_best_split(
            histogram,
            np.array([n]),
            np.array([False]),
            criterion,
            0.5,
            np.array([True]),
            inverse_ess,
        )
        assert split.feature == -1
        plain = find_best_split(
            histogram, np.array([n]), np.array([False]), criterion, 0.5, np.array([True])
        )
        assert plain.gain == pytest.approx(1.0)


def test_a_row_of_weight_k_is_spread_as_k_rows() -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 5, 30).astype(float)
    v = weight * rng.random(30)
    repeats = weight.astype(int)
    repeated = np.repeat(v / weight, repeats)
    m = 12
    one = measure_inverse_ess(v, effective_counts(weight), m)
    other = measure_inverse_ess(repeated, None, int(repeats[:m].sum()))
    assert one == pytest.approx(other)
    assert effective_counts(weight / 1e6).mean() == pytest.approx(
        1.0
    )  # too light to be numbers of rows


def fit_column(
    values: Any,
    weight: list[int] | None = None,
    max_bins: int = 255,
    n_categories: int | None = None,
) -> tuple[Bins, np.ndarray]:
    column = np.array(values, dtype=float)[:, None]
    weight = np.ones(len(column)) if weight is None else np.array(weight, dtype=float)
    n_categories = np.array([n_categories or int(np.nanmax(column)) + 1])
    bins, codes = fit_bins(column, np.arange(len(column)), weight, max_bins, n_categories)
    return bins, codes[0]


def test_beyond_max_bins_the_lightest_share_the_last() -> None:
    values = [0, 1, 1, 2, 2, 2, 3, 4, 4, 5]
    bins, codes = fit_column(values, max_bins=3)
    assert bins.category_bins[0].tolist() == [2, 0, 1, 2, 2, 2]  # 1 before 4: equal, but first
    assert codes.tolist() == [bins.category_bins[0][v] for v in values]
    bins, _ = fit_column(values, weight=[9, 1, 1, 1, 1, 1, 1, 1, 1, 8], max_bins=3)
    assert bins.category_bins[0].tolist() == [0, 2, 2, 2, 2, 1]
    assert fit_column(values, max_bins=6)[0].category_bins[0].tolist() == [0, 1, 2, 3, 4, 5]


@given(seed=st.integers(0, 2**32), n_bins=st.integers(1, 5), has_missing=st.booleans())
@settings(max_examples=1000 if LONG_FORM else 33)
def test_one_label_finds_the_best_set(seed: int, n_bins: int, has_missing: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_bins, (1, 12)).astype(np.uint8)
    if has_missing:
        codes[0, rng.random(12) < 0.3] = MISSING
        codes[0, 0] = MISSING
    signed = rng.integers(-3, 4, (12, 1)).astype(float)
    signed[0] = 1.0
    signed /= np.abs(signed).sum()
    split = find_best_label_split(
        codes, signed, np.array([n_bins]), np.array([has_missing]), np.array([True])
    )
    sums = np.array([signed[codes[0] == code].sum() for code in [*range(n_bins), MISSING]])
    assert split.gain == pytest.approx(
        np.abs(sums).sum() if has_missing else np.abs(sums[:-1]).sum()
    )
    if split.feature == 0:
        above = np.append(split.bins_above, np.zeros(255 - n_bins, bool))[np.minimum(codes[0], 254)]
        above[codes[0] == MISSING] = split.missing_above
        assert abs(signed[above].sum() - signed[~above].sum()) == pytest.approx(split.gain)
