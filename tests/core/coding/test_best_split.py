"""The split reader against every cut tried one by one."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coding import MISSING, Criterion, find_best_split
from tests.core.oracles import PUSH, cuts_of_codes, gain_of
from tests.long_form import LONG_FORM

SHARE_P = 0.3


def every_cut(
    histograms: np.ndarray, n_bins: np.ndarray, has_missing: np.ndarray, criterion: Criterion
) -> Iterator[tuple[float, int, int, bool]]:
    for j, histogram in enumerate(histograms):
        masses = histogram / histogram.sum(axis=1, keepdims=True)
        for cut, missing_above, above in cuts_of_codes(n_bins[j], has_missing[j]):
            # each side from its own bins: 1 - P would leave a hair where there is nothing
            sides = tuple(masses[:, above].sum(axis=1)), tuple(masses[:, ~above].sum(axis=1))
            yield gain_of(criterion, *sides, SHARE_P), j, cut, missing_above


def random_histograms(
    rng: np.random.Generator, n_features: int, n_bins: np.ndarray, levels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Masses that are small integers, so that exact ties are common."""
    histograms = np.zeros((n_features, 2, 256))
    has_missing = rng.random(n_features) < 0.5
    for j in range(n_features):
        histograms[j, :, : n_bins[j]] = rng.integers(0, levels, (2, n_bins[j]))
        histograms[j, :, 0] += 1
        if has_missing[j]:
            histograms[j, :, MISSING] = rng.integers(0, levels, 2)
        histograms[j] /= histograms[j].sum(axis=1, keepdims=True)
    return histograms, has_missing


@pytest.mark.parametrize("criterion", list(Criterion))
@given(seed=st.integers(0, 2**32), levels=st.integers(1, 5), width=st.integers(1, 12))
@settings(max_examples=2000 if LONG_FORM else 25)
def test_best_cut_with_ties_in_the_agreed_order(
    criterion: Criterion, seed: int, levels: int, width: int
) -> None:
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(1, width + 1, 4)
    histograms, has_missing = random_histograms(rng, 4, n_bins, levels)
    options = list(every_cut(histograms, n_bins, has_missing, criterion))
    best = max((option[0] for option in options), default=0.0)
    split = find_best_split(histograms, n_bins, has_missing, criterion, SHARE_P, push=PUSH)
    if best < 1e-12:
        assert split.gain < 1e-12
        return
    _, feature, cut, missing_above = next(o for o in options if o[0] >= best - 1e-12)
    assert (split.feature, split.cut) == (feature, cut)
    assert split.gain == pytest.approx(best, abs=1e-12)
    if has_missing[feature]:
        assert split.missing_above == missing_above


@pytest.mark.parametrize("criterion", list(Criterion))
def test_full_width(criterion: Criterion) -> None:
    rng = np.random.default_rng(0)
    n_bins = np.array([255, 255, 254])
    histograms = np.zeros((3, 2, 256))
    histograms[:, :, :255] = rng.random((3, 2, 255))
    histograms[2, :, 254] = 0
    histograms[1, :, MISSING] = 5, 1
    has_missing = np.array([False, True, False])
    split = find_best_split(histograms, n_bins, has_missing, criterion, SHARE_P, push=PUSH)
    best, feature, cut, missing_above = max(
        every_cut(histograms, n_bins, has_missing, criterion), key=lambda option: option[0]
    )
    assert (split.feature, split.cut, split.missing_above) == (feature, cut, missing_above)
    assert split.gain == pytest.approx(best, abs=1e-12)


def test_a_perfect_cut_gains_one() -> None:
    histograms = np.zeros((1, 2, 256))
    histograms[0, 0, 1] = 1.0
    histograms[0, 1, 0] = 1.0
    for criterion in Criterion:
        split = find_best_split(histograms, np.array([2]), np.array([False]), criterion)
        assert split[:4] == (0, 0, False, 1.0)


def test_no_cut_gains_nothing() -> None:
    histograms = np.zeros((2, 2, 256))
    histograms[:, :, 0] = 1.0
    for criterion in Criterion:
        split = find_best_split(histograms, np.array([1, 1]), np.array([False, True]), criterion)
        assert split.feature == -1
        assert split.gain == 0.0


def test_a_hair_below_zero_is_nothing() -> None:
    # What a running update of a histogram may leave where there is no mass.
    histograms = np.zeros((1, 2, 256))
    histograms[0, 0, :3] = 0.5, -1e-17, 0.5
    histograms[0, 1, :3] = 1.0, 0.0, -1e-18
    split = find_best_split(histograms, np.array([3]), np.array([False]), Criterion.LOSS)
    assert split.cut == 0
    assert math.isfinite(split.gain)


@pytest.mark.parametrize("criterion", list(Criterion))
def test_features_equal_but_for_rounding_are_tied(criterion: Criterion) -> None:
    # The reverse of a feature offers the same cuts, and adds up the same masses in another order.
    for seed in range(50):
        forward = np.random.default_rng(seed).random((2, 200))
        histograms = np.zeros((3, 2, 256))
        histograms[0, :, :200] = forward[:, ::-1]
        histograms[1, :, :200] = forward
        histograms[2, :, :200] = forward[:, ::-1]
        split = find_best_split(histograms, np.full(3, 200), np.zeros(3, dtype=bool), criterion)
        mirrored = find_best_split(
            histograms[1:], np.full(2, 200), np.zeros(2, dtype=bool), criterion
        )
        assert split.feature == 0
        assert mirrored.feature == 0
        assert split.cut == 200 - 2 - mirrored.cut
