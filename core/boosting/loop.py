"""The loop that every booster walks: weights -> scan -> step -> update."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from core.ranker import Callback
from core.scan import Bins, Criterion, find_peak

from .weights import PairWeights

StopReason = Literal["n_rounds", "no_edge", "perfect_stump"]

ROUND = np.dtype(
    [
        ("feature", np.int64),
        ("threshold", np.float64),
        ("sign", np.int8),
        ("missing_above", np.bool_),
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
    ]
)
"""One round: h(x) = 1[x > threshold] if sign is 1, 1[x <= threshold] if it is -1.

A missing x counts as above the threshold where missing_above, else as below it. The threshold
-inf sets the missing apart from all values. d_plus and d_minus are the masses of the pairs that h
orders rightly and wrongly, under the weights before the step; alpha is the step.
"""

# An edge d+ - d- below this is rounding, not knowledge.
LEAST_EDGE = 1e-12


@dataclass(frozen=True)
class Rule:
    """What tells one booster from another.

    Attributes
    ----------
    criterion : Criterion
        What the scan looks for.
    step : callable (d_plus, d_minus) -> alpha
        How far to go along the stump found.
    """

    criterion: Criterion
    step: Callable[[float, float], float]


class Path(NamedTuple):
    """What a run of the loop leaves.

    Attributes
    ----------
    rounds : ndarray of shape (n_taken,), `ROUND`
    loss : ndarray of shape (n_taken,), float64
        F̃ after each round.
    intercept : float
        ½ ln(F₊/F₋) at the end.
    stop_reason : str
        "n_rounds"; "no_edge": no stump orders more weight rightly than wrongly; "perfect_stump":
        the last one orders every pair rightly, so that no weights could ask for another.
    """

    rounds: npt.NDArray[np.void]
    loss: npt.NDArray[np.float64]
    intercept: float
    stop_reason: StopReason


def boost(rule: Rule, bins: Bins, weights: PairWeights, n_rounds: int, callback: Callback) -> Path:
    """Add stumps one by one.

    Parameters
    ----------
    rule : Rule
    bins : Bins
    weights : PairWeights
        At f = 0; changed in place.
    n_rounds : int
    callback : callable (step, of, info) -> None
        Called after each round; info holds the loss. What it raises ends the loop.

    Returns
    -------
    Path

    Notes
    -----
    O(n_rounds · n_features · n_rows).
    """
    n_bins = bins.n_bins
    rounds = np.empty(n_rounds, dtype=ROUND)
    loss = np.empty(n_rounds)
    stop_reason: StopReason = "n_rounds"
    taken = 0
    while taken < n_rounds:
        peak = find_peak(weights.histograms, n_bins, bins.has_missing, rule.criterion)
        if peak.feature < 0:
            stop_reason = "no_edge"
            break
        masses = weights.masses(peak)
        right = masses.above_p * masses.below_n
        wrong = masses.above_n * masses.below_p
        if abs(right - wrong) < LEAST_EDGE:
            stop_reason = "no_edge"
            break
        # Eq. 5 cannot tell a stump from its reverse: the one with d+ >= d- keeps alpha positive.
        sign = 1 if right >= wrong else -1
        d_plus, d_minus = max(right, wrong), min(right, wrong)
        alpha = rule.step(d_plus, d_minus)
        weights.update(peak, masses, alpha * (sign > 0), alpha * (sign < 0))
        threshold = bins.edges[peak.feature][peak.cut] if peak.cut >= 0 else -math.inf
        rounds[taken] = (
            peak.feature,
            threshold,
            sign,
            peak.missing_above,
            alpha,
            d_plus,
            d_minus,
        )
        loss[taken] = weights.loss
        taken += 1
        callback(taken, n_rounds, {"loss": weights.loss})
        if d_minus == 0.0 and d_plus == 1.0:
            stop_reason = "perfect_stump"
            break
    intercept = 0.5 * (weights.log_f_plus - weights.log_f_minus)
    return Path(rounds[:taken].copy(), loss[:taken].copy(), intercept, stop_reason)
