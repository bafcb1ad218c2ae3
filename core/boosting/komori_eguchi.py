"""Boosting for the partial AUC by splines, after Komori & Eguchi 2010."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.checkpoint import Resumable, identify_fit, offered
from core.coding import youden_threshold
from core.errors import ArtifactError
from core.metrics.window import FprMax, FprMin, check_window
from core.ranker import Callback, Floats, Ranker, StopFit, warn_stopped
from core.state import FINITE, Array, Arrays, Index, Nested, Records, State, Value

from .smooth_pauc import SmoothArea, Smoothed
from .splines import GREATEST_VALUE, AdditiveFunction, ColumnShapes, lay_out

SplineOrStump = Annotated[
    Literal["spline", "stump"],
    Doc(
        "What a round adds: a natural cubic spline of one feature, a step where a feature has few "
        "values; or steps only."
    ),
]
Rounds = Annotated[
    int, Ge(1), Le(10_000), Doc("Number of rounds, each of which adds one spline or step.")
]
Penalty = Annotated[
    float,
    Ge(0),
    Le(1e6),
    Doc("Price of roughness: of a spline's bends, of the differences of successive steps."),
]
NKnots = Annotated[
    int,
    Ge(1),
    Le(100),
    Doc("Knots, or steps, per feature; where it has more values, at quantiles of them."),
]

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "stopped"]

ROUND = np.dtype([("feature", np.int64), ("knot", np.float64), ("alpha", np.float64)])
"""One round: the score grows by alpha times the shape of a feature that bends at the knot; NaN: the
step of the missing."""

# For the window of all rates no direction of unit variance bends the area by more: 4 φ(1).
STEEPEST = 4.0 * math.exp(-0.5) / math.sqrt(2.0 * math.pi)

# No round moves two rows further apart, in units of the noise; nor may all scores spread further.
GREATEST_MOVE = 8.0
GREATEST_SPREAD = 10_000.0

# A step must bring this share of what its slope promises (Armijo), and more than rounding.
LEAST_SHARE = 1e-4
LEAST_RISE = 1e-12
HALVINGS = 20

# From here on all rows of the window are in order, further apart than the noise.
PERFECT = 1.0 - 1e-6


class _Found(NamedTuple):
    """The shape that a round adds: of which column, which one, and the objective's slope along it."""

    column: int
    shape: int
    slope: float


class _Tried(NamedTuple):
    """A step along a shape: the scores then, the area, what the penalty grows by, and the objective."""

    alpha: float
    scores: Floats
    reached: Smoothed
    price: float
    rise: float


@dataclass(kw_only=True, eq=False, repr=False)
class KomoriEguchiBoost(Ranker):
    """Boost sums of splines of single features by Newton steps on a smoothed partial AUC.

    The objective is A(f) - penalty · Σ_j roughness(f_j), where f = Σ_j f_j(x_j) and A is the partial
    AUC from fpr_min to fpr_max of scores that carry normal noise; see `smooth_pauc`. Each round
    takes the shape of one feature that promises the greatest rise, and makes one Newton step
    along it, halved until the objective rises; where that is convex, so that Newton's step would
    descend, the step is doubled from a short one on for as long as the objective rises.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        feature, knot, alpha: see `ROUND`.
    smooth_pauc_ : ndarray of shape (n_taken,), float64
        A after each round, over the training rows.
    loss_ : ndarray of shape (n_taken,), float64
        1 - A + penalty · roughness after each round; it falls in every round.
    offset_ : float
        The training rows' weighted mean score; `predict` cuts at their Youden point, score 0.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "stopped"}
        Why there are no more rounds; "no_edge": no shape raises the objective any more.

    Notes
    -----
    Written from the published abstract (natural cubic splines for continuous markers, decision stumps
    for discrete ones, combined componentwise to maximise the partial AUC) and from a public
    implementation of the first author's method for the full AUC, whose objective this is for the window of
    all rates: Φ in place of the step, on differences of scores in a unit that the penalty sets, and the
    stumps' penalty. What is our own: the window enters through noise on every score, not on
    differences, so that thresholds are smooth and ties do no harm; which splines span a feature's
    space; the shape of a round is the one of the greatest assured rise slope²/(2 L), with
    L a bound of the curvature, rather than the best after a trial of each; a step for
    the missing; splines stay constant outside of the training range.

    The unit of scores is the noise: with penalty 0 they grow without end, and A tends to the
    empirical partial AUC.

    O(n_rounds · n_features · n_samples), after a sort of each column. One thread.

    References
    ----------
    O. Komori and S. Eguchi, "A boosting method for maximizing the partial area under the ROC curve",
    BMC Bioinformatics 11:314, 2010.
    O. Komori, "A boosting method for maximization of the area under the ROC curve", Annals of the
    Institute of Statistical Mathematics 63, 2011.
    """

    keeps_when_stopped = True

    n_rounds: Rounds = 100
    fpr_min: FprMin = 0.0
    fpr_max: FprMax = 0.1
    weak_ranker: SplineOrStump = "spline"
    penalty: Penalty = 1e-3
    n_knots: NKnots = 10

    rounds_: Annotated[
        npt.NDArray[np.void], Records(ROUND, "n_rounds", feature=Index("n_features"))
    ] = field(init=False)
    smooth_pauc_: Annotated[Floats, Array("n_rounds"), FINITE] = field(init=False)
    loss_: Annotated[Floats, Array("n_rounds"), FINITE] = field(init=False)
    offset_: Annotated[float, Value(), Ge(-GREATEST_VALUE), Le(GREATEST_VALUE)] = field(init=False)
    stop_reason_: Annotated[StopReason, Value()] = field(init=False)
    _function: Annotated[AdditiveFunction, Nested()] = field(init=False)

    def score_rows(self, X: Floats) -> Floats:
        """Score rows without any check; see `Ranker.score_rows`."""
        return np.asarray(self._function.contributions(X).sum(axis=1) + self.offset_)

    def contributions(self, X: Any) -> Floats:
        """Say how each row differs from the average training row, feature by feature.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            decision_function(X) is offset_, the mean training score, plus the sum of each row.
        """
        return self._function.contributions(self._checked_rows(X))

    def structure(self) -> dict[str, Any]:
        """Describe the sum: each feature's function at its breaks, as the papers' score plots."""
        return {
            "type": "splines",
            "offset": self.offset_,
            "rounds": len(self.rounds_),
            "stop_reason": self.stop_reason_,
            "smooth_pauc": float(self.smooth_pauc_[-1]) if len(self.smooth_pauc_) else None,
            "features": list(self._function.describe(self._feature_name)),
        }

    def _check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _fit(
        self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        area = SmoothArea(positive, weight, self.fpr_min, self.fpr_max)
        balanced = area.weights.mean(axis=0)
        columns = lay_out(X, balanced, self.n_knots, splines=self.weak_ranker == "spline")
        climb = _Climb(area, columns, self.penalty)
        with offered(climb, lambda: identify_fit(self, X, positive, weight)):
            self.stop_reason_ = climb.finish(self.n_rounds, callback)
        self.rounds_ = np.array(climb.rounds, dtype=ROUND)
        self.smooth_pauc_, self.loss_ = np.array(climb.areas), np.array(climb.losses)
        function = AdditiveFunction.combine([c.pieces for c in columns], climb.theta)
        self._centre(function, X, positive, weight, balanced)

    def _centre(
        self,
        function: AdditiveFunction,
        X: Floats,
        positive: npt.NDArray[np.bool_],
        weight: Floats,
        balanced: Floats,
    ) -> None:
        """Let each feature's function be 0 on average, and the score 0 at the Youden point."""
        rows = np.ascontiguousarray(X)
        parts = function.contributions(rows)
        means = np.average(parts, axis=0, weights=weight / weight.max())
        self._function = function.shifted(-means)
        cut = youden_threshold(self._function.contributions(rows).sum(axis=1), positive, balanced)
        self.offset_ = 0.0 if cut is None else -cut.value

    def _restore(self) -> None:
        if len(self.loss_) > self.n_rounds:
            raise ArtifactError(
                f"loss must hold at most {self.n_rounds} values, got {len(self.loss_)}"
            )


@dataclass(frozen=True)
class _Rounds(State):
    """The rounds of an ascent, in a checkpoint."""

    rounds: Annotated[npt.NDArray[np.void], Records(ROUND, "n_rounds", prefix="rounds.")]


class _Climb(Resumable):
    """The ascent: what has been reached, and the next round from there.

    Attributes
    ----------
    rounds : list of (feature, knot, alpha)
    areas, losses : list of float
        After each round.
    theta : list of ndarray
        Weights of each column's shapes.
    reached : Smoothed
        The area at the present scores.
    price : float
        The penalty times the roughness so far.
    """

    changing = ("areas", "losses", "theta", "price", "_scores")

    def __init__(self, area: SmoothArea, columns: list[ColumnShapes], penalty: float) -> None:
        self._area = area
        self._columns = columns
        self._penalty = penalty
        self._scores = np.zeros(len(area.positive))
        self.rounds: list[tuple[int, float, float]] = []
        self.areas: list[float] = []
        self.losses: list[float] = []
        self.theta = [np.zeros(len(column.variance)) for column in columns]
        self.reached: Smoothed = area.at(self._scores)
        self.price = 0.0

    def finish(self, n_rounds: int, callback: Callback) -> StopReason:
        """Take the rounds that are left; say why there are no more."""
        while not (self.areas and self.areas[-1] >= PERFECT):
            if len(self.rounds) == n_rounds:
                return "n_rounds"
            added = self.advance()
            if added is None:
                return "no_edge"
            self.rounds.append(added)
            self.areas.append(self.reached.value)
            self.losses.append(1.0 - self.reached.value + self.price)
            info = {"loss": self.losses[-1], "smooth_pauc": self.areas[-1]}
            try:
                callback(len(self.rounds), n_rounds, info)
            except StopFit:
                if len(self.rounds) < n_rounds:
                    warn_stopped(len(self.rounds), n_rounds, "rounds")
                    return "stopped"
        return "perfect_ranker"

    def get_state(self) -> Arrays:
        """Give what the rounds have changed; see `Resumable`."""
        return super().get_state() | _Rounds(np.array(self.rounds, dtype=ROUND)).arrays()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where another ascent was."""
        rounds = _Rounds.from_arrays(state, {"n_rounds": len(state["areas"])}).rounds
        super().set_state(state)
        self.rounds = rounds.tolist()
        self.reached = self._area.at(self._scores)

    def advance(self) -> tuple[int, float, float] | None:
        """Take a round; give feature, knot and step, or None where nothing rises any more."""
        found = self._find()
        if found is None:
            return None
        column = self._columns[found.column]
        h = column.values(found.shape)
        curve = 2.0 * self._penalty * column.pieces.penalty[found.shape, found.shape]
        bend = self.reached.curvature(h) - curve
        convex = bend >= 0.0  # no maximum in sight: first as far as is sure to rise, then further
        if convex:
            bend = -(STEEPEST * column.variance[found.shape] + curve)
        farthest = GREATEST_MOVE / float(np.ptp(h))
        alpha = min(max(-found.slope / bend, -farthest), farthest)
        tried = self._try(found, h, alpha)
        for _ in range(HALVINGS):
            if tried.rise > max(LEAST_SHARE * tried.alpha * found.slope, LEAST_RISE):
                break
            tried = self._try(found, h, 0.5 * tried.alpha)
        else:
            return None
        while convex and 2.0 * abs(tried.alpha) <= farthest:
            further = self._try(found, h, 2.0 * tried.alpha)
            if further.rise <= tried.rise:
                break
            tried = further
        if np.ptp(tried.scores) > GREATEST_SPREAD:
            return None
        self._scores, self.reached = tried.scores, tried.reached
        self.price += tried.price
        self.theta[found.column][found.shape] += tried.alpha
        return found.column, float(column.pieces.knots[found.shape]), tried.alpha

    def _try(self, found: _Found, h: Floats, alpha: float) -> _Tried:
        """Step along a shape, and see what it brings."""
        roughness = self._columns[found.column].pieces.penalty[found.shape]
        theta = self.theta[found.column]
        price = (
            self._penalty * alpha * float(2.0 * roughness @ theta + alpha * roughness[found.shape])
        )
        scores = self._scores + alpha * h
        reached = self._area.at(scores)
        return _Tried(alpha, scores, reached, price, reached.value - self.reached.value - price)

    def _find(self) -> _Found | None:
        """Find the shape with the greatest assured rise: slope² over a bound of the curvature."""
        gradient = self.reached.gradient()
        best, found = LEAST_RISE, None
        for j, (column, theta) in enumerate(zip(self._columns, self.theta, strict=True)):
            if not len(theta):
                continue
            roughness = column.pieces.penalty
            slopes = column.slopes(gradient) - 2.0 * self._penalty * roughness @ theta
            bound = STEEPEST * column.variance + 2.0 * self._penalty * roughness.diagonal()
            rises = slopes**2 / (2.0 * bound)
            shape = int(rises.argmax())
            if rises[shape] > best * (1.0 + LEAST_RISE):  # equal but for rounding: the lower column
                best, found = rises[shape], _Found(j, shape, float(slopes[shape]))
        return found
