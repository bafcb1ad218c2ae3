"""Margins and bounds over HTTP."""

from __future__ import annotations

from typing import Annotated

from app.http.schemas import (
    FiniteOrNull,
    FprMax,
    FprMin,
    ModelId,
    Negatives,
    Positives,
    Resource,
    one_of,
)
from app.models.curve_schemas import DataPart, OnPart


class MarginShare(Resource):
    """Fraction of the training pairs with a margin of at most `theta`."""

    theta: float
    """Margin."""
    fraction: float
    """Weighted fraction of the training pairs with at most this margin."""


class MisrankBound(Resource):
    """Upper bound on the probability that the model misranks a future pair: a measured fraction plus `epsilon`."""

    name: str
    """Name of the bound."""
    source: str
    """Publication and theorem of the bound."""
    value: FiniteOrNull
    """`margin_fraction` + `epsilon`. Null if the bound cannot be computed."""
    margin_fraction: float
    """Fraction of the training pairs with a margin of at most theta. For the held-out bound: fraction of the held-out
    pairs that are misranked."""
    epsilon: FiniteOrNull
    """Sum of `terms`. Null if it cannot be computed."""
    terms: dict[str, FiniteOrNull]
    """The terms of `epsilon`. Null values cannot be computed."""
    applies: bool
    """False if a condition of the theorem is not met."""
    reasons: list[str]
    """Why the bound does not apply. Empty if it does."""
    vacuous: bool
    """True if `value` is 1 or more: the bound then has no content."""


class BestPossibleMargin(Resource):
    """The largest margin of any combination of the weak rankers, computed by linear programming."""

    rho: float
    """The largest possible margin, between `margin` and `edge`."""
    margin: float
    """Margin of the best combination found: a lower bound on `rho`."""
    edge: float
    """Largest edge under the pair weights found: an upper bound on `rho`."""
    short_by: float
    """`rho` minus the margin of the model."""


class MarginRound(Resource):
    """One round of boosting, under the pair weights of that round."""

    round: int
    """Number of the round, from 1."""
    edge: float
    """r = d+ − d−: weight of the pairs in order minus weight of the pairs out of order."""
    tied: float
    """d0: weight of the pairs that the weak ranker ties."""
    most_tied: float
    """Theorem 7 requires `tied` to be below this: 2/3 (1 − r)(1 − r²)."""
    holds: bool
    """True if `tied` is below `most_tied`."""


class MarginRounds(Resource):
    """The condition of Theorem 7 for each round, from the first."""

    total: int
    """Number of rounds."""
    holds: int
    """Number of rounds in which the condition holds."""
    data: list[MarginRound]
    """One entry for each round shown."""


class RoundLoss(Resource):
    """Losses on the training rows after one round. Values too large for a float64 are null."""

    round: int
    """Number of the round, from 1."""
    f: FiniteOrNull
    """F: the loss of AdaBoost, for scores with their intercept."""
    f_skew: FiniteOrNull
    """The part of F from the positives minus the part from the negatives."""
    f_tilde: FiniteOrNull
    """F̃: the loss of RankBoost."""
    smooth_margin: FiniteOrNull
    """−ln F̃ divided by the sum of the steps so far, with the smallest pair weight as 1. Null if the fit held out some
    of its rows."""


class RoundLosses(Resource):
    """The losses of each round, from the first."""

    total: int
    """Number of rounds."""
    data: list[RoundLoss]
    """One entry for each round shown."""


class Margins(Resource):
    """Margins of the training pairs (score differences divided by `l1_norm`) and the generalisation bounds based on
    them.
    """

    model_id: ModelId
    on: OnPart
    l1_norm: float
    """Sum of the steps of all rounds. Scores are divided by it."""
    margin: float
    """Smallest margin of a pair. Positive if all pairs are in order."""
    smooth_margin: float
    """−ln of the ranking loss, divided by `l1_norm`. It is below `margin` and approaches it with more rounds."""
    weak_rankers: int
    """Upper bound on the number of different weak rankers."""
    distribution: list[MarginShare]
    """Distribution of the margins, from the smallest to the largest."""
    theta: float
    """Margin at which the bounds are evaluated, as requested."""
    delta: float
    """Probability that a bound fails, as requested."""
    bounds: list[MisrankBound]
    """The bounds on the probability of misranking a future pair."""
    best: BestPossibleMargin | None
    """The best margin of any combination of the weak rankers. Null if the linear programme is too large."""
    rounds: MarginRounds
    """Condition of Theorem 7 in each round."""
    losses: RoundLosses
    """Training losses of each round."""


class WindowBound(Resource):
    """Upper bound on 1 − pAUC of future rows: the measured value plus `epsilon`."""

    name: Annotated[str, one_of(("theorem_9", "held_out"))]
    """`theorem_9` or `held_out`."""
    source: str
    """Publication and theorem of the bound."""
    on: DataPart
    """Part of the data that `risk` was measured on."""
    risk: float
    """1 − pAUC of these rows, with the curve as a step function: a pair of equal scores counts as an error. In the AUC
    among the metrics, it counts as half an error."""
    positives: Positives
    negatives: Negatives
    vc_dimension: int | None
    """VC dimension of the class of thresholds on all scores that the algorithm can produce from these rows. Null if it
    is unknown, or if the model was trained without these rows."""
    epsilon: float | None
    """Width of the bound. Null if it cannot be computed."""
    value: float | None
    """`risk` + `epsilon`. Null if the bound cannot be computed."""
    vacuous: bool
    """True if `value` is null, or 1 or more: the bound then has no content."""
    applies: bool
    """False if a condition of the bound is not met."""
    reasons: list[str]
    """Why the bound does not apply. Empty if it does."""


class WindowBounds(Resource):
    """Upper bounds on 1 − pAUC on future rows, over one window of false positive rates."""

    model_id: ModelId
    fpr_min: FprMin
    fpr_max: FprMax
    delta: float
    """Probability that a bound fails, as requested."""
    bounds: list[WindowBound]
    """The bounds."""
