"""Weight of evidence and information value: by hand, with weights and empty cells, and the coverage of intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.metrics import BinEvidence, evidence_of
from tests.long_form import LONG_FORM, rest
from tests.sentences import Sentences

FIVE = np.array([0.3, 0.25, 0.2, 0.15, 0.1])


def of_counts(positives: Any, negatives: Any, **options: Any) -> BinEvidence:
    """Return the evidence of unweighted counts."""
    counts = np.array([positives, negatives], dtype=np.float64)
    return evidence_of(counts, counts, **options)


def of_rows(bins: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> BinEvidence:
    """Return the evidence of the bins of weighted rows."""
    mass, squares = (
        np.array([np.bincount(bins[of], weight[of] ** power) for of in (positive, ~positive)])
        for power in (1, 2)
    )
    return evidence_of(mass, squares)


def tilt(by: float, n: int = 5) -> np.ndarray:
    """Return shares of the positives that grow away from those of the negatives."""
    base = FIVE if n == 5 else np.full(n, 1.0 / n)
    shares = base * np.exp(by * np.linspace(-1, 1, n))
    return shares / shares.sum()


def test_by_hand() -> None:
    found = of_counts([20, 30, 50], [500, 300, 200])
    expected = [math.log(p / q) for p, q in ((0.2, 0.5), (0.3, 0.3), (0.5, 0.2))]
    assert found.woe == pytest.approx(expected)
    assert found.iv == pytest.approx(-0.3 * expected[0] + 0.3 * expected[2])
    assert found.iv_bias == pytest.approx(2 * (1 / 100 + 1 / 1000))
    assert found.iv_adjusted == pytest.approx(found.iv - found.iv_bias)
    assert (found.woe_low < found.woe).all()
    assert (found.woe < found.woe_high).all()
    assert found.iv_low < found.iv_adjusted < found.iv_high
    assert not found.is_sparse


def test_cells_without_rows() -> None:
    found = of_counts([0, 20, 0], [30, 40, 0])
    # half a row more of each class in the first bin; no row in the last
    assert found.woe[0] == pytest.approx(math.log(0.5 / 20) - math.log(30.5 / 70))
    assert found.woe[2] == 0.0
    assert found.woe_low[0] == -np.inf
    assert np.isfinite(found.woe_high[0])
    assert np.isnan([found.woe_low[2], found.woe_high[2]]).all()
    assert found.iv_bias == pytest.approx(1 / 20 + 1 / 70)  # of two bins
    assert found.is_sparse
    assert math.isfinite(found.iv)
    other = of_counts([5, 20], [0, 70])
    assert other.woe_high[0] == np.inf
    assert np.isfinite(other.woe_low[0])


def test_one_bin_says_nothing() -> None:
    found = of_counts([10], [90])
    assert (found.woe[0], found.iv, found.iv_low, found.iv_high) == (0.0, 0.0, 0.0, 0.0)


def test_equal_weights_change_nothing() -> None:
    rng = np.random.default_rng(0)
    bins, positive = rng.integers(0, 4, 300), rng.random(300) < 0.3
    plain = of_rows(bins, positive, np.ones(300))
    heavy = of_rows(bins, positive, np.full(300, 2.5))
    assert heavy.woe == pytest.approx(plain.woe)
    assert heavy.woe_low == pytest.approx(plain.woe_low)
    assert (heavy.iv, heavy.iv_low, heavy.iv_high) == pytest.approx(
        (plain.iv, plain.iv_low, plain.iv_high)
    )
    assert heavy.positives == pytest.approx(2.5 * plain.positives)


def test_unequal_weights_widen_the_intervals() -> None:
    rng = np.random.default_rng(0)
    bins, positive = rng.integers(0, 3, 2000), rng.random(2000) < 0.3
    plain = of_rows(bins, positive, np.ones(2000))
    uneven = of_rows(bins, positive, rng.choice([0.2, 4.0], 2000))
    wider = (uneven.woe_high - uneven.woe_low) / (plain.woe_high - plain.woe_low)
    assert (wider > 1.1).all()
    assert uneven.iv_bias > 1.2 * plain.iv_bias


def test_bad_input_is_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        of_counts([2, 3], [0, 0])
    with sentences.raises(InvalidParameter):
        of_counts([2, 3], [1, 4], level=1.0)


def draw(rng: np.random.Generator, n: int, shares: np.ndarray, weights: Any) -> np.ndarray:
    """Return the sums of weights, and of squared weights, of the bins of n rows: shape (2, n_bins)."""
    bins = rng.choice(len(shares), n, p=shares)
    weight = np.ones(n) if weights is None else rng.choice(weights, n)
    return np.array([np.bincount(bins, weight**k, minlength=len(shares)) for k in (1, 2)])


@pytest.mark.parametrize(
    ("n_positives", "n_negatives", "by", "n_bins", "weights"),
    [
        (100, 1000, 0.0, 10, None),  # no information: the interval must contain 0
        (100, 1000, 1.0, 5, (0.5, 2.0)),
        *rest((100, 1000, 0.5, 5, None), (50, 50, 1.0, 5, None), (1000, 3000, 2.0, 5, None)),
    ],
)
def test_the_intervals_cover(
    n_positives: int, n_negatives: int, by: float, n_bins: int, weights: Any
) -> None:
    rng = np.random.default_rng(7)
    p, q = tilt(by, n_bins), tilt(0.0, n_bins)
    woe, iv = np.log(p / q), float(((p - q) * np.log(p / q)).sum())
    n = 3000 if LONG_FORM else 120
    of_iv, of_woe, biased, adjusted = 0, np.zeros(n_bins), 0.0, 0.0
    for _ in range(n):
        drawn = np.stack(
            [draw(rng, n_positives, p, weights), draw(rng, n_negatives, q, weights)], axis=1
        )
        found = evidence_of(drawn[0], drawn[1])
        of_iv += found.iv_low <= iv <= found.iv_high
        of_woe += (found.woe_low <= woe) & (woe <= found.woe_high)
        biased += found.iv / n
        adjusted += (found.iv - found.iv_bias) / n
    assert of_iv / n >= (0.92 if LONG_FORM else 0.88)
    assert (of_woe / n >= (0.92 if LONG_FORM else 0.86)).all()
    assert biased > iv
    assert abs(adjusted - iv) < 0.5 * (biased - iv) + 0.02
