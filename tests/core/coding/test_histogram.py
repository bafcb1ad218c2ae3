"""Histograms against numpy's own counting."""

import numpy as np
import pytest

from core.coding import change_histograms, fill_histograms


@pytest.mark.parametrize("n_rows", [2, 3, 7, 1000, 60_000])
def test_mass_per_class_and_code(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    n_positives = max(1, n_rows // 10)
    codes = rng.integers(0, 256, (5, n_rows)).astype(np.uint8)
    codes[0] = 7
    weights = rng.random(n_rows)
    histograms = np.full((5, 2, 256), np.nan)
    fill_histograms(codes, weights, n_positives, histograms)
    for j in range(5):
        for channel, rows in enumerate([slice(n_positives), slice(n_positives, None)]):
            expected = np.bincount(codes[j, rows], weights[rows], minlength=256)
            assert histograms[j, channel] == pytest.approx(expected, rel=1e-12)
            assert ((histograms[j, channel] == 0) == (expected == 0)).all()


@pytest.mark.parametrize("n_rows", [2, 50, 60_000])
def test_changes_amount_to_filling_anew(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    n_positives = max(1, n_rows // 10)
    codes = rng.integers(0, 256, (5, n_rows)).astype(np.uint8)
    weights = rng.random(n_rows)
    changed, filled = np.empty((2, 5, 2, 256))
    fill_histograms(codes, weights, n_positives, changed)
    rows = np.flatnonzero(rng.random(n_rows) < 0.3).astype(np.uint32)
    changes = rng.random(len(rows))
    weights[rows] += changes
    change_histograms(codes, rows, changes, int((rows < n_positives).sum()), changed)
    fill_histograms(codes, weights, n_positives, filled)
    assert changed == pytest.approx(filled, abs=1e-11)
    assert ((changed == 0) == (filled == 0)).all()
