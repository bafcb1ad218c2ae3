"""Boosting for the partial AUC by splines, after Komori & Eguchi 2010.

A column of many values has natural cubic splines, each of which bends at one knot: those that agree at the knots t with
max(x - t_l, 0); the first is the straight line. They are constant outside the training range. A column of few values
has a step at each gap, and missing values have a step of their own. All shapes are piecewise cubic between breaks, so
that one table of powers by piece, Σ g u^p, gives the slope of the objective along every shape of a column at once.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.base.checkpoint import Resumable, identify_fit, offered
from core.base.ranker import (
    Callback,
    ContributionRanker,
    FitCost,
    Floats,
    StopFit,
    warn_stopped,
)
from core.base.state import FINITE, Array, Index, Integers, Nested, Records, State, Value
from core.base.training import TrainingData
from core.coding import youden_threshold
from core.coding.bins import fit_edges
from core.errors import ArtifactError
from core.kernels import kernel
from core.linear.blas import one_blas_thread
from core.metrics.window import FprMax, FprMin, check_window

from .smooth_pauc import SmoothArea, Smoothed

# Absolute value of a part above which sums of parts would no longer be finite.
MAX_PART = 1e300

MISSING_CODE = 255  # of a missing value, as uint8

# Distance of two knots, as a fraction of the range of the column, up to which they count as one.
MIN_KNOT_GAP = 1e-6

# Variance of a shape over the rows, as a fraction of its greatest square, up to which it is dropped.
MIN_VARIANCE = 1e-12


class Pieces(NamedTuple):
    """The basis functions of one feature, each cubic between common breaks, and their roughness penalty."""

    breaks: Floats
    """Ascending. Piece c holds the x with breaks[c-1] < x <= breaks[c]. Shape (n_breaks,)."""
    coefficients: Floats
    """Of the powers of u, which runs from 0 to 1 over a piece; see `local_scale`. Shape (n_shapes, n_breaks + 1, 4)."""
    missing: Floats
    """Value of a missing x. Shape (n_shapes,)."""
    penalty: Floats
    """Roughness of Σ_l θ_l shape_l is θ' penalty θ. Shape (n_shapes, n_shapes)."""
    knots: Floats
    """Knot or step of each shape; NaN for the step of the missing. Shape (n_shapes,)."""


def local_scale(breaks: Floats) -> tuple[Floats, Floats]:
    """Return the left end and slope of each piece, so that u = (x - left) slope is in [0, 1]; 0 for the outer two."""
    left, slope = np.zeros((2, len(breaks) + 1))
    with np.errstate(over="ignore"):
        inner = 1.0 / np.diff(breaks)
    usable = (inner > 0.0) & np.isfinite(inner)  # else the piece counts as flat
    slope[1:-1] = np.where(usable, inner, 0.0)
    left[1:-1] = np.where(usable, breaks[:-1], 0.0)
    return left, slope


class ColumnShapes:
    """The basis functions (shapes) of one column, evaluated on its training rows.

    weight: (n_rows,); sums to 1. The mean of each shape under it is 0.
    pieces: not centred; the attribute of this name is, without shapes of hardly any variance.
    """

    def __init__(self, column: Floats, weight: Floats, pieces: Pieces) -> None:
        self._codes = np.searchsorted(pieces.breaks, column).astype(np.uint8)
        self._codes[np.isnan(column)] = MISSING_CODE
        self._column = column
        self._left, self._slope = local_scale(pieces.breaks)
        powers = self._powers(weight, 7)
        first = np.tensordot(pieces.coefficients, powers[:-1, :4], axes=2)
        present = powers[:-1, 0].sum()
        centre = np.where(
            np.isnan(pieces.knots), first + pieces.missing * powers[-1, 0], first / present
        )
        coefficients = pieces.coefficients.copy()
        coefficients[:, :, 0] -= centre[:, None]
        missing = np.where(np.isnan(pieces.knots), pieces.missing - centre, 0.0)
        variance = np.tensordot(_squares(coefficients), powers[:-1], axes=2)
        variance += missing**2 * powers[-1, 0]
        size = np.abs(coefficients).max(axis=(1, 2)) ** 2
        kept = variance > MIN_VARIANCE * size
        self.pieces = Pieces(
            pieces.breaks,
            coefficients[kept],
            missing[kept],
            pieces.penalty[np.ix_(kept, kept)],
            pieces.knots[kept],
        )
        self.variance = variance[kept]

    def slopes(self, gradient: Floats) -> Floats:
        """Return Σ gradient · shape(x) over the rows for each basis function of the column; O(n_rows)."""
        powers = self._powers(gradient, 4)
        along = np.tensordot(self.pieces.coefficients, powers[:-1], axes=2)
        return np.asarray(along + self.pieces.missing * powers[-1, 0])

    def values(self, shape: int) -> Floats:
        cubics = self.pieces.coefficients[shape]
        known = self._codes < len(cubics)
        piece = np.where(known, self._codes, 0)
        with np.errstate(over="ignore", invalid="ignore"):
            u = (self._column - self._left[piece]) * self._slope[piece]
            a, b, c, d = cubics[piece].T
            values = a + u * (b + u * (c + u * d))
        return np.asarray(np.where(known, values, self.pieces.missing[shape]))

    def _powers(self, weight: Floats, n_powers: int) -> Floats:
        powers = np.zeros((len(self._slope) + 1, n_powers))
        sum_piece_powers(self._codes, self._column, self._left, self._slope, weight, powers)
        return powers


def lay_out(X: Floats, weight: Floats, n_knots: int, *, splines: bool) -> list[ColumnShapes]:
    """Return the basis functions of every column, none for a constant column; O(n_features · n_rows log n_rows).

    A column has at most n_knots inner knots, or steps; if it has more values they are weighted quantiles. With
    `splines` columns of more values than that have splines; all others have steps. The weights sum to 1.
    """
    return [
        ColumnShapes(column, weight, _shape(column, weight, n_knots, splines=splines))
        for column in np.ascontiguousarray(X.T)
    ]


def _shape(column: Floats, weight: Floats, n_knots: int, *, splines: bool) -> Pieces:
    """Return the basis of one column: splines if asked for and possible, else steps; plus a step of missing values."""
    known = column[~np.isnan(column)]
    edges = np.unique(fit_edges(column, weight, n_knots + 1))
    pieces = None
    if splines and len(edges) and not np.isin(known, np.append(edges, known.max())).all():
        pieces = _splines(
            _apart(edges, known.min(), known.max()), _relative_deviation(column, weight)
        )
    if pieces is None:
        pieces = _steps(edges)
    return pieces if len(known) in (0, len(column)) else _with_missing(pieces)


def _relative_deviation(column: Floats, weight: Floats) -> float:
    known = ~np.isnan(column)
    x, w = column[known], weight[known]
    low, high = x.min(), x.max()
    z = (0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low)
    return float(np.sqrt(np.average((z - np.average(z, weights=w)) ** 2, weights=w)))


def _apart(edges: Floats, low: float, high: float) -> Floats:
    knots = [low]
    for edge in edges:
        if min(edge - knots[-1], high - edge) > MIN_KNOT_GAP * (0.5 * high - 0.5 * low):
            knots.append(edge)
    return np.array([*knots, high])


def _splines(knots: Floats, deviation: float) -> Pieces | None:
    """Return natural splines with penalty ∫ f''(x)² dx, x in standard deviations; None if knots are too close."""
    from scipy.interpolate import CubicSpline

    _, slope = local_scale(knots)
    if len(knots) < 3 or not slope[1:-1].all() or deviation == 0.0:
        return None
    z = (0.5 * knots - 0.5 * knots[0]) / (0.5 * knots[-1] - 0.5 * knots[0])
    hinges = np.maximum(z[:, None] - z[:-1], 0.0)
    h = np.diff(z)
    cubic = CubicSpline(z, hinges, bc_type="natural").c[::-1]  # by power, interval, shape
    cubic = np.moveaxis(cubic, 2, 0).swapaxes(1, 2) * h[:, None] ** np.arange(4)
    coefficients = np.zeros((len(z) - 1, len(z) + 1, 4))
    coefficients[:, 1:-1] = cubic
    coefficients[:, -1, 0] = hinges[-1]
    c2, c3 = cubic[:, :, 2], cubic[:, :, 3]
    scale = (deviation / h) ** 3
    mixed = (c2 * scale) @ c3.T
    penalty = 4.0 * (c2 * scale) @ c2.T + 6.0 * (mixed + mixed.T) + 12.0 * (c3 * scale) @ c3.T
    return Pieces(knots, coefficients, np.zeros(len(z) - 1), penalty, knots[:-1])


def _steps(edges: Floats) -> Pieces:
    """Return steps with a jump at each edge. The outer ones are 0: a single step of height a has the penalty 2 a²."""
    n = len(edges)
    coefficients = np.zeros((n, n + 1, 4))
    coefficients[:, :, 0] = np.tri(n + 1, n, -1).T
    penalty = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return Pieces(edges, coefficients, np.zeros(n), penalty, edges)


def _with_missing(pieces: Pieces) -> Pieces:
    """Return the pieces with a step function of missing values added first; its penalty is that of a single step."""
    n = len(pieces.knots)
    coefficients = np.zeros((n + 1, *pieces.coefficients.shape[1:]))
    coefficients[1:] = pieces.coefficients
    penalty = np.zeros((n + 1, n + 1))
    penalty[0, 0] = 2.0
    penalty[1:, 1:] = pieces.penalty
    missing = np.append(1.0, pieces.missing)
    return Pieces(pieces.breaks, coefficients, missing, penalty, np.append(np.nan, pieces.knots))


def _squares(coefficients: Floats) -> Floats:
    squares = np.zeros((*coefficients.shape[:-1], 7))
    for p in range(4):
        for r in range(4):
            squares[..., p + r] += coefficients[..., p] * coefficients[..., r]
    return squares


_FINITE = (Ge(-MAX_PART), Le(MAX_PART))


@dataclass(frozen=True, eq=False)
class AdditiveFunction(State):
    """The fitted sum Σ_j f_j(x_j) of one piecewise cubic function per feature."""

    starts: Annotated[Integers, Array("n_features + 1")]
    """Feature j has the breaks from starts[j] to starts[j + 1]."""
    breaks: Annotated[Floats, Array("n_breaks"), FINITE]
    """Ascending within a feature."""
    pieces: Annotated[Floats, Array("n_breaks + n_features", 4), *_FINITE]
    """Coefficients of the powers of u, see `Pieces`; a feature has one piece more than breaks."""
    missing: Annotated[Floats, Array("n_features"), *_FINITE]
    """Value of a missing x."""

    @classmethod
    def combine(cls, columns: Sequence[Pieces], theta: Sequence[Floats]) -> "AdditiveFunction":
        """Return the function with f_j the sum of column j's basis functions, weighted by theta[j]."""
        sizes = [len(column.breaks) for column in columns]
        return cls(
            np.cumsum([0, *sizes], dtype=np.int64),
            np.concatenate([column.breaks for column in columns]),
            np.concatenate(
                [
                    np.tensordot(t, c.coefficients, axes=1)
                    for c, t in zip(columns, theta, strict=True)
                ]
            ),
            np.array([t @ c.missing for c, t in zip(columns, theta, strict=True)]),
        )

    def check(self) -> None:
        starts, n_breaks = self.starts, len(self.breaks)
        if starts[0] != 0 or starts[-1] != n_breaks or (np.diff(starts) < 0).any():
            raise ArtifactError(f"starts must ascend from 0 to {n_breaks}, the number of breaks")
        within = np.ones(n_breaks, dtype=np.bool_)
        within[starts[:-1][starts[:-1] < n_breaks]] = False
        rises = np.diff(self.breaks, prepend=-np.inf) > 0.0
        if not rises[within].all():
            raise ArtifactError("breaks must ascend within a feature")

    def contributions(self, X: Floats) -> Floats:
        """Return f_j(x_j) of each row and feature, in the shape of X, without checks; X is C-contiguous."""
        parts = np.empty(X.shape)
        contribute(X, self.starts, self.breaks, *self._scale(), self.pieces, self.missing, parts)
        return parts

    def shifted(self, by: Floats) -> "AdditiveFunction":
        pieces = self.pieces.copy()
        pieces[:, 0] += np.repeat(by, np.diff(self.starts) + 1)
        return replace(self, pieces=pieces, missing=self.missing + by)

    def describe(self, name: Callable[[int], str]) -> Iterator[dict[str, Any]]:
        for j, (start, stop) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            pieces = self.pieces[start + j : stop + j + 1]
            if not pieces.any() and self.missing[j] == 0.0:
                continue
            yield {
                "feature": name(j),
                "breaks": self.breaks[start:stop].tolist(),
                "at_breaks": pieces[:-1].sum(axis=1).tolist(),
                "after_breaks": pieces[1:, 0].tolist(),
                "missing": float(self.missing[j]),
            }

    def _scale(self) -> tuple[Floats, Floats]:
        """The left end and slope of every piece of every feature; see `local_scale`."""
        scales = [
            local_scale(self.breaks[start:stop])
            for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        left, slope = (np.concatenate(side) for side in zip(*scales, strict=True))
        return left, slope


_LINE = numba.float64[::1]
_TABLE = numba.float64[:, ::1]
_CODES = numba.uint8[::1]


@kernel(numba.void(_CODES, _LINE, _LINE, _LINE, _LINE, _TABLE))
def sum_piece_powers(codes, column, left, slope, weight, sums):  # type: ignore[no-untyped-def]
    """Add Σ weight · u^p, u = (x - left) slope, over the rows of each piece to sums, the missing last."""
    missing = sums.shape[0] - 1
    for i in range(len(codes)):
        value = weight[i]
        if value == 0.0:
            continue
        piece = codes[i]
        if piece >= missing:
            sums[missing, 0] += value
            continue
        u = (column[i] - left[piece]) * slope[piece]
        for p in range(sums.shape[1]):
            sums[piece, p] += value
            value *= u


_READ_ONLY_LINE = numba.types.Array(numba.float64, 1, "C", readonly=True)
_READ_ONLY_TABLE = numba.types.Array(numba.float64, 2, "C", readonly=True)
_READ_ONLY_CELLS = numba.types.Array(numba.int64, 1, "C", readonly=True)


@kernel(
    numba.void(
        _READ_ONLY_TABLE,
        _READ_ONLY_CELLS,
        _READ_ONLY_LINE,
        _READ_ONLY_LINE,
        _READ_ONLY_LINE,
        _READ_ONLY_TABLE,
        _READ_ONLY_LINE,
        _TABLE,
    )
)
def contribute(X, starts, breaks, left, slope, pieces, missing, parts):  # type: ignore[no-untyped-def]
    """Write the value of the piecewise cubic of each feature at each row to `parts`; arrays as in
    `AdditiveFunction`."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if np.isnan(x):
                parts[i, j] = missing[j]
                continue
            low, high = starts[j], starts[j + 1]
            while low < high:
                middle = (low + high) >> 1
                if x > breaks[middle]:
                    low = middle + 1
                else:
                    high = middle
            c = low + j
            u = (x - left[c]) * slope[c]
            parts[i, j] = pieces[c, 0] + u * (pieces[c, 1] + u * (pieces[c, 2] + u * pieces[c, 3]))


SplineOrStump = Annotated[
    Literal["spline", "stump"],
    Doc(
        'The weak ranker of each round. "spline": a natural cubic spline of one feature, or a step if the feature '
        'has few values. "stump": only steps.'
    ),
]
Rounds = Annotated[
    int, Ge(1), Le(10_000), Doc("Number of rounds. Each round adds one spline or step.")
]
Penalty = Annotated[
    float,
    Ge(0),
    Le(1e6),
    Doc(
        "Penalty on roughness: on the curvature of a spline, or on the differences of successive steps."
    ),
]
NKnots = Annotated[
    int,
    Ge(1),
    Le(100),
    Doc(
        "Number of knots or steps per feature. They are at quantiles if the feature has more values."
    ),
]

StopReason = Literal["n_rounds", "no_edge", "perfect_ranker", "stopped"]

ROUND = np.dtype([("feature", np.int64), ("knot", np.float64), ("alpha", np.float64)])
"""One round: the score grows by alpha times the shape of a feature with that knot; NaN: the step of the missing."""

# Greatest second derivative of the area along a direction of unit variance, for the window of all rates: 4 φ(1).
MAX_HESSIAN = 4.0 * math.exp(-0.5) / math.sqrt(2.0 * math.pi)

# Greatest change of the difference of two scores in a round, in units of the noise.
MAX_MOVE = 8.0
# Greatest difference of two scores, in units of the noise: memory grows with it.
MAX_SCORE_RANGE = 10_000.0

# Fraction of the rise that its slope promises which a step must bring (Armijo).
ARMIJO = 1e-4
# Rise of the objective below which it is rounding; as a fraction, of two rises.
MIN_OBJECTIVE_RISE = 1e-12
# How often a step is halved until it rises enough.
MAX_HALVINGS = 20

# Area from which all rows of the window are in order, further apart than the noise.
PERFECT = 1.0 - 1e-6


class _Direction(NamedTuple):
    """The basis function that a round adds to, and the derivative of the objective along it."""

    column: int
    shape: int
    slope: float


class _Tried(NamedTuple):
    alpha: float
    scores: Floats
    reached: Smoothed
    price: float
    rise: float


@dataclass(kw_only=True, eq=False, repr=False)
class KomoriEguchiBoost(ContributionRanker):
    """Boosted splines of single features that maximise a smoothed partial AUC.

    Use it if only a narrow window of false positive rates matters, and compare it with `RankBoost` first. It takes
    numeric columns only.

    The objective is A(f) - penalty · Σ_j roughness(f_j), where f = Σ_j f_j(x_j). A is the partial AUC from fpr_min to
    fpr_max of scores with normal noise; see `smooth_pauc`. Each round picks the shape of one feature that promises the
    greatest increase and takes one Newton step along it, halved until the objective increases. If the objective is
    convex there, Newton's step would decrease it. The step then starts short and is doubled as long as the objective
    increases.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        feature, knot, alpha.
    smooth_pauc_ : ndarray of shape (n_taken,), float64
        A after each round, on the training rows.
    loss_ : ndarray of shape (n_taken,), float64
        1 - A + penalty · roughness after each round. It decreases in every round.
    offset_ : float
        Weighted mean score of the training rows. `predict` has its threshold, score 0, at the greatest TPR - FPR of the
        training rows.
    stop_reason_ : {"n_rounds", "no_edge", "perfect_ranker", "stopped"}
        Why boosting ended; "no_edge": no shape increases the objective any more.

    Notes
    -----
    The implementation follows the published abstract (natural cubic splines for continuous markers, decision stumps for
    discrete ones, combined componentwise to maximise the partial AUC). It also follows a public implementation of the
    first author's method for the full AUC. For the window of all rates the objective is the same: Φ instead of the step
    function, on differences of scores in a unit set by the penalty, and the same penalty on stumps.

    Differences: the window enters through noise on every score, not on differences, so thresholds are smooth and ties
    do no harm. The choice of the splines that span a feature's space is ours. A round takes the shape with the greatest
    guaranteed increase slope²/(2 L), where L bounds the curvature, instead of trying each. Missing values have a step.
    Splines are constant outside the training range.

    Scores are in units of the noise. With penalty 0 they grow without limit, and A tends to the empirical partial AUC.

    Time: O(n_rounds · n_features · n_samples) after one sort of each column, in one thread.

    References
    ----------
    O. Komori and S. Eguchi, "A boosting method for maximizing the partial area under the ROC curve",
    BMC Bioinformatics 11:314, 2010.
    O. Komori, "A boosting method for maximization of the area under the ROC curve", Annals of the
    Institute of Statistical Mathematics 63, 2011.

    Examples
    --------
    >>> from core import KomoriEguchiBoost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = KomoriEguchiBoost(n_rounds=5, fpr_max=1.0).fit(X, y)
    >>> ranker.loss_.round(2).tolist()
    [0.29, 0.22, 0.2, 0.12, 0.1]
    """

    keeps_when_stopped = True
    fit_cost = FitCost(28e-9, times="n_rounds")

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
    offset_: Annotated[float, Value(), Ge(-MAX_PART), Le(MAX_PART)] = field(init=False)
    stop_reason_: Annotated[StopReason, Value()] = field(init=False)
    _function: Annotated[AdditiveFunction, Nested()] = field(init=False)

    def keep_length(self) -> bool:
        self.n_rounds, self.stop_reason_ = len(self.rounds_), "n_rounds"
        return True

    def score_rows(self, X: Floats) -> Floats:
        return np.asarray(self._function.contributions(X).sum(axis=1) + self.offset_)

    def _contributions(self, X: Floats) -> Floats:
        return self._function.contributions(X)

    def structure(self) -> dict[str, Any]:
        """Describe the sum: each feature's function at its breaks, as in the papers' score plots."""
        return {
            "type": "splines",
            "offset": self.offset_,
            "rounds": len(self.rounds_),
            "stop_reason": self.stop_reason_,
            "smooth_pauc": float(self.smooth_pauc_[-1]) if len(self.smooth_pauc_) else None,
            "features": list(self._function.describe(self._feature_name)),
        }

    def check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        X, positive, weight = data.X, data.positive, data.weight
        with one_blas_thread():
            area = SmoothArea(positive, weight, self.fpr_min, self.fpr_max)
            balanced = area.weights.mean(axis=0)
            columns = lay_out(X, balanced, self.n_knots, splines=self.weak_ranker == "spline")
            climb = _Climb(area, columns, self.penalty)
            with offered(climb, lambda: identify_fit(self, X, positive, weight)):
                self.stop_reason_ = climb.finish(self.n_rounds, callback)
        rounds = zip(climb.features, climb.knots, climb.alphas, strict=True)
        self.rounds_ = np.array([*rounds], dtype=ROUND)
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
        rows = np.ascontiguousarray(X)
        parts = function.contributions(rows)
        means = np.average(parts, axis=0, weights=weight / weight.max())
        self._function = function.shifted(-means)
        cut = youden_threshold(self._function.contributions(rows).sum(axis=1), positive, balanced)
        self.offset_ = 0.0 if cut is None else -cut.value

    def _restore(self) -> None:
        if len(self.loss_) > self.n_rounds:
            raise ArtifactError(
                f"loss must contain at most {self.n_rounds} values, got {len(self.loss_)}"
            )


class _Climb(Resumable):
    """The coordinate ascent: current coefficients and scores, and the next round.

    `features`, `knots`, `alphas`, `areas` and `losses` have one value per round. `theta` has the weights of the shapes
    of each column, `reached` the area at the present scores, `price` the penalty times the roughness so far.
    """

    changing = ("features", "knots", "alphas", "areas", "losses", "theta", "price", "_scores")

    def __init__(self, area: SmoothArea, columns: list[ColumnShapes], penalty: float) -> None:
        self._area = area
        self._columns = columns
        self._penalty = penalty
        self._scores = np.zeros(len(area.positive))
        self.features: list[float] = []
        self.knots: list[float] = []
        self.alphas: list[float] = []
        self.areas: list[float] = []
        self.losses: list[float] = []
        self.theta = [np.zeros(len(column.variance)) for column in columns]
        self.reached: Smoothed = area.at(self._scores)
        self.price = 0.0

    def finish(self, n_rounds: int, callback: Callback) -> StopReason:
        while not (self.areas and self.areas[-1] >= PERFECT):
            if len(self.areas) == n_rounds:
                return "n_rounds"
            if not self.advance():
                return "no_edge"
            self.areas.append(self.reached.value)
            self.losses.append(1.0 - self.reached.value + self.price)
            info = {"loss": self.losses[-1], "smooth_pauc": self.areas[-1]}
            try:
                callback(len(self.areas), n_rounds, info)
            except StopFit:
                if len(self.areas) < n_rounds:
                    warn_stopped(len(self.areas), n_rounds, "rounds")
                    return "stopped"
        return "perfect_ranker"

    def set_state(self, state: Mapping[str, Any]) -> None:
        super().set_state(state)
        self.reached = self._area.at(self._scores)

    def advance(self) -> bool:
        """Return False if no basis function increases the objective."""
        direction = self._best_direction()
        if direction is None:
            return False
        column = self._columns[direction.column]
        h = column.values(direction.shape)
        curve = 2.0 * self._penalty * column.pieces.penalty[direction.shape, direction.shape]
        hessian = self.reached.curvature(h) - curve
        convex = (
            hessian >= 0.0
        )  # no maximum near: first a step that surely increases the objective, then longer ones
        if convex:
            hessian = -(MAX_HESSIAN * column.variance[direction.shape] + curve)
        farthest = MAX_MOVE / float(np.ptp(h))
        alpha = min(max(-direction.slope / hessian, -farthest), farthest)
        tried = self._try(direction, h, alpha)
        for _ in range(MAX_HALVINGS):
            if tried.rise > max(ARMIJO * tried.alpha * direction.slope, MIN_OBJECTIVE_RISE):
                break
            tried = self._try(direction, h, 0.5 * tried.alpha)
        else:
            return False
        while convex and 2.0 * abs(tried.alpha) <= farthest:
            further = self._try(direction, h, 2.0 * tried.alpha)
            if further.rise <= tried.rise:
                break
            tried = further
        if np.ptp(tried.scores) > MAX_SCORE_RANGE:
            return False
        self._scores, self.reached = tried.scores, tried.reached
        self.price += tried.price
        self.theta[direction.column][direction.shape] += tried.alpha
        self.features.append(direction.column)
        self.knots.append(float(column.pieces.knots[direction.shape]))
        self.alphas.append(tried.alpha)
        return True

    def _try(self, direction: _Direction, h: Floats, alpha: float) -> _Tried:
        roughness = self._columns[direction.column].pieces.penalty[direction.shape]
        theta = self.theta[direction.column]
        price = (
            self._penalty
            * alpha
            * float(2.0 * roughness @ theta + alpha * roughness[direction.shape])
        )
        scores = self._scores + alpha * h
        reached = self._area.at(scores)
        return _Tried(alpha, scores, reached, price, reached.value - self.reached.value - price)

    def _best_direction(self) -> _Direction | None:
        """Return the basis function with the greatest guaranteed increase: slope² over a curvature bound."""
        gradient = self.reached.gradient()
        best, direction = MIN_OBJECTIVE_RISE, None
        for j, (column, theta) in enumerate(zip(self._columns, self.theta, strict=True)):
            if not len(theta):
                continue
            roughness = column.pieces.penalty
            slopes = column.slopes(gradient) - 2.0 * self._penalty * roughness @ theta
            bound = MAX_HESSIAN * column.variance + 2.0 * self._penalty * roughness.diagonal()
            rises = slopes**2 / (2.0 * bound)
            shape = int(rises.argmax())
            if rises[shape] > best * (
                1.0 + MIN_OBJECTIVE_RISE
            ):  # equal but for rounding: the lower column
                best, direction = rises[shape], _Direction(j, shape, float(slopes[shape]))
        return direction
