"""Lemma 4: errors equal on both classes, and a quarter of the ranking's edge at least."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coding import two_sided, youden_threshold
from core.metrics import auc
from tests.long_form import LONG_FORM


def errors_with_a_coin(p_plus: float, p_minus: float) -> tuple[float, float]:
    """The paper's own words: which side is tossed for, and the expected errors of the classes."""
    if p_minus <= p_plus:  # below, 1 with probability zeta
        zeta = (p_plus - p_minus) / (1 + p_plus - p_minus)
        return p_plus * (1 - zeta), p_minus + (1 - p_minus) * zeta
    zeta = (p_minus - p_plus) / (1 + p_minus - p_plus)  # above, -1 with probability zeta
    return p_plus + (1 - p_plus) * zeta, p_minus * (1 - zeta)


@given(st.floats(0, 1), st.floats(0, 1))
def test_the_expected_value_errs_as_the_coin_does(p_plus: float, p_minus: float) -> None:
    above, below, error = two_sided(p_plus, p_minus)
    assert -1 <= below <= above <= 1
    assert above == 1 or below == -1
    error_plus = ((1 - above) * (1 - p_plus) + (1 - below) * p_plus) / 2
    error_minus = ((1 + above) * p_minus + (1 + below) * (1 - p_minus)) / 2
    assert (error_plus, error_minus) == pytest.approx((error, error), abs=1e-12)
    assert errors_with_a_coin(p_plus, p_minus) == pytest.approx((error, error), abs=1e-12)


@given(seed=st.integers(0, 2**32), n=st.integers(2, 60), levels=st.integers(2, 40))
@settings(max_examples=3000 if LONG_FORM else 100)
def test_a_quarter_of_the_edge_remains(seed: int, n: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.5
    positive[:2] = True, False
    scores = rng.integers(0, levels, n) + positive * rng.random()
    weight = rng.random(n) ** 3 + 1e-3
    gamma = auc(positive, scores, weight) - 0.5
    if gamma <= 1e-9:
        return
    cut = youden_threshold(scores, positive, weight)
    above = scores > cut.value
    assert cut.p_plus == pytest.approx(weight[positive & ~above].sum() / weight[positive].sum())
    assert cut.p_minus == pytest.approx(weight[~positive & above].sum() / weight[~positive].sum())
    assert 0.5 - two_sided(cut.p_plus, cut.p_minus).error >= gamma / 4 - 1e-12
