"""P-values against a null distribution that needs no formula: ranks swapped between two scorers, row by row."""

import numpy as np
import pytest
from scipy.stats import rankdata

from core.metrics import compare_partial_auc, partial_auc


def permuted_differences(y, one, other, window, n_permutations, rng):
    """Differences of areas when either scorer may have given either rank to a row (Bandos, Rockette & Gur 2005)."""
    ranks = np.array([rankdata(one), rankdata(other)])
    areas = np.empty((n_permutations, 2))
    for permutation in areas:
        swapped = rng.random(y.size) < 0.5
        mixed = np.where(swapped, ranks[::-1], ranks)
        permutation[:] = [partial_auc(y, column, *window) for column in mixed]
    return areas[:, 0] - areas[:, 1]


@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.3), (0.2, 0.6)])
@pytest.mark.parametrize("gain", [0.0, 0.25])
def test_a_p_value_is_the_share_of_permutations_that_differ_as_much(window, gain):
    rng = np.random.default_rng(3)
    y = np.repeat([1, 0], [150, 250])
    shared = y + rng.normal(size=y.size)
    one = np.round(shared + rng.normal(size=y.size) + gain * y, 2)
    other = np.round(shared + rng.normal(size=y.size), 2)
    found = compare_partial_auc(y, [one, other], *window).windows[0].differences[0]
    null = permuted_differences(y, one, other, window, 600, rng)
    error = (found.high - found.low) / (2 * 1.959964)
    assert null.std() == pytest.approx(error, rel=0.15)
    share = np.mean(np.abs(null) >= abs(found.value))
    assert share == pytest.approx(found.p_value, abs=0.08)
