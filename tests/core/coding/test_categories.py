"""The order of categories against every set of them, and how far the shares of small ones are shrunk."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coding import (
    MISSING,
    Criterion,
    InverseESS,
    effective_counts,
    find_best_label_split,
    find_best_split,
    fit_bins,
    measure_inverse_ess,
    missing_code,
    order_bins,
)
from core.coding import bins as bins_module
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


@given(
    seed=st.integers(0, 2**32), n_bins=st.integers(2, 6), criterion=st.sampled_from(list(Criterion))
)
@settings(max_examples=1000 if LONG_FORM else 33)
def test_the_cut_is_the_best_of_the_mixed_masses_too(
    seed: int, n_bins: int, criterion: Criterion
) -> None:
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.full(n_bins, 0.7), size=2)
    inverse_ess = InverseESS(*rng.uniform(0.0, 0.3, 2))
    order, mixed = np.empty(n_bins, dtype=np.int64), np.empty((2, n_bins))
    n = order_bins(masses, n_bins, *inverse_ess, order, mixed)
    assert sorted(order[:n]) == list(range(n_bins))
    shrunk = mixed[0] / mixed.sum(axis=0)
    assert (np.diff(shrunk) >= -1e-12).all()
    assert mixed.sum(axis=0) == pytest.approx(masses[:, order].sum(axis=0))
    histogram = np.zeros((2, 256))
    histogram[:, :n_bins] = masses
    split = find_best_split(
        histogram[None],
        np.array([n_bins]),
        np.array([False]),
        criterion,
        SHARE_P,
        np.array([True]),
        inverse_ess,
        push=PUSH,
    )
    as_mixed = np.zeros((2, 256))
    as_mixed[:, :n_bins] = mixed
    best = max(gain(criterion, *s) for s in every_set(as_mixed, n_bins, False))
    assert max(split.gain, no_cut(criterion)) == pytest.approx(best, abs=1e-9)


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


def test_shares_of_few_large_categories_are_not_shrunk() -> None:
    rng = np.random.default_rng(0)
    positive = np.sort(rng.random(4000) < 0.5)[::-1]
    column = np.where(rng.random(4000) < 0.6, positive * 2, rng.integers(0, 4, 4000))
    weights = np.where(positive, 1 / positive.sum(), 1 / (~positive).sum())
    inverse_ess = measure_inverse_ess(weights, None, int(positive.sum()))
    histogram = histogram_of(column, positive, weights, 4)
    one = (histogram, np.array([4]), np.array([False]), Criterion.YOUDEN, 0.5, np.array([True]))
    assert find_best_split(*one, inverse_ess).gain == pytest.approx(
        find_best_split(*one).gain, rel=0.02
    )


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


def test_each_category_has_a_bin_of_its_own() -> None:
    nan = math.nan
    bins, codes = fit_column([3, 0, nan, 1, 0], n_categories=5)
    assert bins.category_bins[0].tolist() == [0, 1, -1, 2, -1]
    assert codes.tolist() == [2, 0, MISSING, 1, 0]
    assert bins.has_missing.tolist() == [True]
    assert bins.n_bins.tolist() == [3]
    assert bins.is_categorical.tolist() == [True]
    assert len(bins.edges[0]) == 0


def test_beyond_max_bins_the_lightest_share_the_last() -> None:
    values = [0, 1, 1, 2, 2, 2, 3, 4, 4, 5]
    bins, codes = fit_column(values, max_bins=3)
    assert bins.category_bins[0].tolist() == [2, 0, 1, 2, 2, 2]  # 1 before 4: equal, but first
    assert codes.tolist() == [bins.category_bins[0][v] for v in values]
    bins, _ = fit_column(values, weight=[9, 1, 1, 1, 1, 1, 1, 1, 1, 8], max_bins=3)
    assert bins.category_bins[0].tolist() == [0, 2, 2, 2, 2, 1]
    assert fit_column(values, max_bins=6)[0].category_bins[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_codes_of_16_bits() -> None:
    rng = np.random.default_rng(0)
    column = rng.permutation(np.repeat(np.arange(1000.0), 2))
    column[::50] = np.nan
    _, narrow = fit_column(column)
    bins, wide = fit_column(column, max_bins=1000)
    assert narrow.dtype == np.uint8
    assert wide.dtype == np.uint16
    assert missing_code(wide.dtype) == 65_535
    assert bins.n_slots == bins.n_bins[0] + 1
    known = ~np.isnan(column)
    assert (wide[~known] == 65_535).all()
    assert (wide[known] == bins.category_bins[0][column[known].astype(int)]).all()
    numbers, codes = fit_bins(column[:, None], np.arange(2000), np.ones(2000), 1000)
    assert len(numbers.edges[0]) == numbers.n_bins[0] - 1 == bins.n_bins[0] - 1
    assert (codes[0] == wide).all()  # exact for numbers, too


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


@given(seed=st.integers(0, 2**32), n_labels=st.integers(2, 4))
@settings(max_examples=1000 if LONG_FORM else 33)
def test_several_labels_find_a_set_that_no_single_change_betters(seed: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    n_bins = 5
    codes = np.repeat(np.arange(n_bins), 4).astype(np.uint8)[None]
    signed = rng.normal(size=(20, n_labels))
    signed /= np.abs(signed).sum()
    split = find_best_label_split(
        codes, signed, np.array([n_bins]), np.array([False]), np.array([True])
    )
    if split.feature < 0:
        return

    def edge(above: Any) -> Any:
        rows = above[codes[0]]
        return signed[rows].sum(axis=0) - signed[~rows].sum(axis=0)

    votes = np.sign(edge(split.bins_above))
    assert split.gain == pytest.approx(votes @ edge(split.bins_above))
    for k in range(n_bins):
        changed = split.bins_above.copy()
        changed[k] = not changed[k]
        if changed.any() and not changed.all():
            assert votes @ edge(changed) <= split.gain + 1e-9


def test_an_identifier_gains_no_label_anything() -> None:
    rng = np.random.default_rng(0)
    codes = np.vstack([np.arange(200), rng.integers(0, 200, 200)]).astype(np.uint8)
    signed = rng.normal(size=(200, 3)) * np.exp(rng.normal(size=(200, 1)))
    signed /= np.abs(signed).sum()
    scanned = (codes, signed, np.array([200, 200]), np.zeros(2, dtype=bool))
    everywhere = np.abs(signed.sum(axis=0)).sum()
    alone = (codes[:1], signed, np.array([200]), np.zeros(1, dtype=bool))
    identifier = find_best_label_split(*alone, np.array([True]), np.ones(200))
    assert identifier.gain == pytest.approx(everywhere)
    assert find_best_label_split(*scanned, np.array([False, True])).gain > 3 * everywhere


def test_rows_of_categories_are_counted_in_runs_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    column = np.where(rng.random(500) < 0.1, np.nan, rng.integers(0, 40, 500))
    weight = rng.exponential(size=500)
    known = ~np.isnan(column)
    mass = np.bincount(column[known].astype(int), weight[known], 40)
    least = float(np.sort(mass)[20])  # a sum that was rounded otherwise would fall below it
    found = []
    for rows in (500, 7):
        monkeypatch.setattr(bins_module, "COUNTED_ROWS", rows)
        found.append(bins_module.fit_categories(column, weight, 40, 2, 100, least))
    assert (found[0] == found[1]).all()
    assert found[0].max() == 20
