"""Theorem 9 with constants: by hand, against its own premise, and against a population that is known."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from core.bounds import bound_partial_auc, step_risk
from core.bounds.partial_auc import dkw_deviation, vc_deviation
from core.errors import InvalidParameter
from core.metrics import roc_curve
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences


def test_values_by_hand() -> None:
    assert dkw_deviation(1000, 0.025) == pytest.approx(math.sqrt(math.log(80) / 2000))
    log_growth = 3 * math.log(2 * math.e * 10_000 / 3)
    assert vc_deviation(10_000, 3, 0.025) == pytest.approx(
        math.sqrt(8 * (log_growth + math.log(160)) / 10_000)
    )
    bound = bound_partial_auc(0.2, 1000, 10_000, 0.0, 0.1)
    assert bound.epsilon == pytest.approx(
        dkw_deviation(1000, 0.025) + 10 * dkw_deviation(10_000, 0.025)
    )
    assert bound.value == pytest.approx(0.2 + bound.epsilon)
    assert not bound.vacuous
    assert bound_partial_auc(0.2, 100, 100, 0.0, 0.1).vacuous


def test_it_shrinks_with_rows_and_grows_with_narrow_windows_and_dimensions() -> None:
    def epsilon(
        m: Any = 1000, n: Any = 1000, low: Any = 0.0, high: Any = 0.5, d: Any = 5, delta: Any = 0.05
    ) -> Any:
        return bound_partial_auc(0.0, m, n, low, high, delta=delta, vc_dimension=d).epsilon

    assert epsilon(m=2000) < epsilon() > epsilon(n=2000)
    assert epsilon(high=0.2) > epsilon()
    assert epsilon(low=0.3) == pytest.approx(epsilon(high=0.2))
    assert epsilon(d=6) > epsilon() > epsilon(delta=0.1)


def risk_by_definition(
    positive: np.ndarray, negative: np.ndarray, low: float, high: float
) -> float:
    """1 - pAUC of the step curve, by its definition: the share of positives above the cut at each rate."""
    n = len(negative)
    edges = np.unique(np.concatenate([[low, high], np.arange(1, n) / n]))
    edges = edges[(edges >= low) & (edges <= high)]
    top = np.sort(negative)[::-1]
    risk = 0.0
    for left, right in pairwise(edges):
        allowed = int(np.floor(n * (left + right) / 2))
        risk += (right - left) * (positive <= top[allowed]).mean()
    return risk / (high - low)


@pytest.mark.parametrize("seed", range(20 if LONG_FORM else 5))
@pytest.mark.parametrize("window", [(0.0, 0.1), (0.05, 0.2), (0.3, 1.0)])
def test_two_samples_obey_the_inequality_that_the_proof_rests_on(
    seed: int, window: tuple[float, float]
) -> None:
    """The sample's cuts are off by ε₊ and ε₋ from a population's, here another sample."""
    rng = np.random.default_rng(seed)
    positive, negative = np.round(rng.normal(1, 1, 150), 1), np.round(rng.normal(0, 1, 200), 1)
    p, q = np.round(rng.normal(0.9, 1, 40), 1), np.round(rng.normal(0.1, 1, 50), 1)
    cuts = np.concatenate([positive, negative, p, q])
    cuts = np.concatenate([cuts, cuts + 0.05, cuts - 0.05])

    def greatest(one: Any, other: Any) -> Any:
        return max(abs((one > t).mean() - (other > t).mean()) for t in cuts)

    epsilon = greatest(positive, p) + greatest(negative, q) / (window[1] - window[0])
    truth = risk_by_definition(positive, negative, *window)
    assert truth <= risk_by_definition(p, q, *window) + epsilon + 1e-12


@pytest.mark.parametrize("window", [(0.0, 0.1), (0.013, 0.2), (0.3, 1.0)])
def test_the_risk_of_a_curve_is_that_of_its_rows(
    window: tuple[float, float], sentences: Sentences
) -> None:
    rng = np.random.default_rng(0)
    for digits in (9, 1, 0):  # ties between the classes, and within
        positive = np.round(rng.normal(1, 1, 150), digits)
        negative = np.round(rng.normal(0, 1, 200), digits)
        y = np.repeat([1, 0], [150, 200])
        curve = roc_curve(y, np.concatenate([positive, negative]))
        assert step_risk(curve, *window) == pytest.approx(
            risk_by_definition(positive, negative, *window)
        )
        assert step_risk(curve.thin(20), *window) >= step_risk(curve, *window)
    with sentences.raises(InvalidParameter):
        step_risk(curve, 0.2, 0.1)


@pytest.mark.parametrize("vc_dimension", [None, 31])
def test_the_least_delta_has_a_bound(vc_dimension: int | None) -> None:
    found = bound_partial_auc(0.1, 50, 50, 0.0, 0.1, delta=5e-324, vc_dimension=vc_dimension)
    assert math.isfinite(found.value)
    assert found.vacuous


def test_a_known_population_breaks_it_no_more_often_than_it_may() -> None:
    """Scores uniform for negatives, of density 2s for positives: ROC(u) = 1 - (1 - u)²."""
    rng = np.random.default_rng(0)
    low, high = 0.1, 0.5
    truth = ((1 - low) ** 3 - (1 - high) ** 3) / 3 / (high - low)
    broken = 0
    for _ in range(100):
        risk = risk_by_definition(np.sqrt(rng.random(60)), rng.random(80), low, high)
        broken += truth > bound_partial_auc(risk, 60, 80, low, high, delta=0.3).value
    assert broken <= 0.3 * 100


@pytest.mark.parametrize(
    "change",
    [
        {"risk": 1.1},
        {"risk": math.nan},
        {"n_positive": 0},
        {"n_negative": -1},
        {"fpr_max": 0.0},
        {"delta": 1.0},
        {"vc_dimension": 0},
    ],
)
def test_bad_values(change: dict[str, Any]) -> None:
    good = {"risk": 0.1, "n_positive": 10, "n_negative": 10, "fpr_min": 0.0, "fpr_max": 0.1}
    with raises(InvalidParameter, *change, *change.values()):
        bound_partial_auc(**good | change)
