"""Splines and steps of one feature, and sums of them: what a round of `komori_eguchi` may add, and what it ends with.

A column of many values has natural cubic splines, each of which bends at one knot: those that agree
at the knots t with max(x - t_l, 0); the first is the straight line. Outside of the training range
they are constant. A column of few values has a step at each gap. Missing values have a step of
their own; every other shape is 0 there, and 0 on average over the values that are known.

All are piecewise cubic between breaks, so that one table of powers by piece, Σ g u^p, gives the
slope of the objective along every shape of a column at once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.coding.bins import fit_edges
from core.errors import ArtifactError
from core.kernel import kernel
from core.ranker import Floats
from core.state import FINITE, Array, State

# Beyond it sums of parts would no longer be finite numbers.
GREATEST_VALUE = 1e300

MISSING_CODE = 255

# Knots closer than this share of a column's range count as one: a spline could not bend there.
LEAST_GAP = 1e-6

# A shape that hardly varies over the rows, beside its own greatest value, is none.
LEAST_SHARE = 1e-12


class Pieces(NamedTuple):
    """Functions of one feature, cubic between the same breaks.

    Attributes
    ----------
    breaks : ndarray of shape (n_breaks,), float64
        Ascending. Piece c holds the x with breaks[c-1] < x <= breaks[c].
    coefficients : ndarray of shape (n_shapes, n_breaks + 1, 4), float64
        Of the powers of u, which goes from 0 to 1 over a piece; see `local_scale`.
    missing : ndarray of shape (n_shapes,), float64
        Value of a missing x.
    penalty : ndarray of shape (n_shapes, n_shapes), float64
        Roughness of Σ_l θ_l shape_l is θ' penalty θ.
    knots : ndarray of shape (n_shapes,), float64
        Where each one bends or steps; NaN for the step of the missing.
    """

    breaks: Floats
    coefficients: Floats
    missing: Floats
    penalty: Floats
    knots: Floats


def local_scale(breaks: Floats) -> tuple[Floats, Floats]:
    """Give left end and slope of each piece, u = (x - left) slope; 0 and 0 for the two outer ones."""
    left, slope = np.zeros((2, len(breaks) + 1))
    with np.errstate(over="ignore"):
        inner = 1.0 / np.diff(breaks)
    usable = (inner > 0.0) & np.isfinite(inner)  # else the piece counts as flat
    slope[1:-1] = np.where(usable, inner, 0.0)
    left[1:-1] = np.where(usable, breaks[:-1], 0.0)
    return left, slope


class ColumnShapes:
    """The shapes of one column, and its training rows.

    Parameters
    ----------
    column : ndarray of shape (n_rows,), float64, C-contiguous
    weight : ndarray of shape (n_rows,), float64
        By which shapes are centred; sums to 1.
    pieces : Pieces
        Uncentred.

    Attributes
    ----------
    pieces : Pieces
        Centred, without the shapes that hardly vary.
    variance : ndarray of shape (n_shapes,), float64
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
        kept = variance > LEAST_SHARE * size
        self.pieces = Pieces(
            pieces.breaks,
            coefficients[kept],
            missing[kept],
            pieces.penalty[np.ix_(kept, kept)],
            pieces.knots[kept],
        )
        self.variance = variance[kept]

    def slopes(self, gradient: Floats) -> Floats:
        """Give Σ_rows gradient · shape(x) of each shape; O(n_rows)."""
        powers = self._powers(gradient, 4)
        along = np.tensordot(self.pieces.coefficients, powers[:-1], axes=2)
        return np.asarray(along + self.pieces.missing * powers[-1, 0])

    def values(self, shape: int) -> Floats:
        """Give one shape's value at each row."""
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
    """Lay out the shapes of every column.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        NaN is missing.
    weight : ndarray of shape (n_rows,), float64
        Above 0; sums to 1.
    n_knots : int
        Most inner knots, or steps, of a column: at weighted quantiles where it has more values.
    splines : bool
        Whether columns of more values than that get splines; else all get steps.

    Returns
    -------
    list of ColumnShapes
        One per feature; without any shape where a column is constant.

    Notes
    -----
    O(n_features · n_rows log n_rows).
    """
    return [
        ColumnShapes(column, weight, _shape(column, weight, n_knots, splines=splines))
        for column in np.ascontiguousarray(X.T)
    ]


def _shape(column: Floats, weight: Floats, n_knots: int, *, splines: bool) -> Pieces:
    known = column[~np.isnan(column)]
    edges = np.unique(fit_edges(column, weight, n_knots + 1))
    pieces = None
    if splines and len(edges) and not np.isin(known, np.append(edges, known.max())).all():
        pieces = _splines(_apart(edges, known.min(), known.max()), _spread(column, weight))
    if pieces is None:
        pieces = _steps(edges)
    return pieces if len(known) in (0, len(column)) else _with_missing(pieces)


def _spread(column: Floats, weight: Floats) -> float:
    """Standard deviation of the known values, as a share of their range."""
    known = ~np.isnan(column)
    x, w = column[known], weight[known]
    low, high = x.min(), x.max()
    z = (0.5 * x - 0.5 * low) / (0.5 * high - 0.5 * low)
    return float(np.sqrt(np.average((z - np.average(z, weights=w)) ** 2, weights=w)))


def _apart(edges: Floats, low: float, high: float) -> Floats:
    """Give the knots: the ends of the range, and of the edges those that stand apart."""
    knots = [low]
    for edge in edges:
        if min(edge - knots[-1], high - edge) > LEAST_GAP * (0.5 * high - 0.5 * low):
            knots.append(edge)
    return np.array([*knots, high])


def _splines(knots: Floats, spread: float) -> Pieces | None:
    """Give the natural splines of a column; None where knots are too few or too close for any.

    The penalty is ∫ f''(x)² dx with x in standard deviations.
    """
    from scipy.interpolate import CubicSpline

    _, slope = local_scale(knots)
    if len(knots) < 3 or not slope[1:-1].all() or spread == 0.0:
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
    scale = (spread / h) ** 3
    mixed = (c2 * scale) @ c3.T
    penalty = 4.0 * (c2 * scale) @ c2.T + 6.0 * (mixed + mixed.T) + 12.0 * (c3 * scale) @ c3.T
    return Pieces(knots, coefficients, np.zeros(len(z) - 1), penalty, knots[:-1])


def _steps(edges: Floats) -> Pieces:
    """Give the steps of a column. The penalty is the sum of the squared differences of successive steps.

    Before the first step and after the last there is none: a single step of height a counts 2 a².
    """
    n = len(edges)
    coefficients = np.zeros((n, n + 1, 4))
    coefficients[:, :, 0] = np.tri(n + 1, n, -1).T
    penalty = 2.0 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return Pieces(edges, coefficients, np.zeros(n), penalty, edges)


def _with_missing(pieces: Pieces) -> Pieces:
    """Put the step of the missing first; its penalty is that of a single step."""
    n = len(pieces.knots)
    coefficients = np.zeros((n + 1, *pieces.coefficients.shape[1:]))
    coefficients[1:] = pieces.coefficients
    penalty = np.zeros((n + 1, n + 1))
    penalty[0, 0] = 2.0
    penalty[1:, 1:] = pieces.penalty
    missing = np.append(1.0, pieces.missing)
    return Pieces(pieces.breaks, coefficients, missing, penalty, np.append(np.nan, pieces.knots))


def _squares(coefficients: Floats) -> Floats:
    """Give the coefficients of the squares of cubics, shape (..., 7)."""
    squares = np.zeros((*coefficients.shape[:-1], 7))
    for p in range(4):
        for r in range(4):
            squares[..., p + r] += coefficients[..., p] * coefficients[..., r]
    return squares


_FINITE = (Ge(-GREATEST_VALUE), Le(GREATEST_VALUE))


@dataclass(frozen=True, eq=False)
class AdditiveFunction(State):
    """Σ_j f_j(x_j), each f_j piecewise cubic.

    Attributes
    ----------
    starts : ndarray of shape (n_features + 1,), int64
        Feature j has the breaks from starts[j] to starts[j + 1].
    breaks : ndarray of shape (n_breaks,), float64
        Ascending within a feature.
    pieces : ndarray of shape (n_breaks + n_features, 4), float64
        Of each feature one more than breaks: coefficients of the powers of u; see `Pieces`.
    missing : ndarray of shape (n_features,), float64
        Value of a missing x.
    """

    starts: Annotated[npt.NDArray[np.int64], Array("n_features + 1")]
    breaks: Annotated[Floats, Array("n_breaks"), FINITE]
    pieces: Annotated[Floats, Array("n_breaks + n_features", 4), *_FINITE]
    missing: Annotated[Floats, Array("n_features"), *_FINITE]

    @classmethod
    def combine(cls, columns: Sequence[Pieces], theta: Sequence[Floats]) -> "AdditiveFunction":
        """Add up the shapes of each column, weighted by its theta."""
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
        """Refuse breaks that do not ascend within their features."""
        starts, n_breaks = self.starts, len(self.breaks)
        if starts[0] != 0 or starts[-1] != n_breaks or (np.diff(starts) < 0).any():
            raise ArtifactError(f"starts must ascend from 0 to {n_breaks}, the number of breaks")
        within = np.ones(n_breaks, dtype=np.bool_)
        within[starts[:-1][starts[:-1] < n_breaks]] = False
        rises = np.diff(self.breaks, prepend=-np.inf) > 0.0
        if not rises[within].all():
            raise ArtifactError("breaks must ascend within a feature")

    def contributions(self, X: Floats) -> Floats:
        """Give f_j(x_j) of each row and feature, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
        parts = np.empty(X.shape)
        contribute(X, self.starts, self.breaks, *self._scale(), self.pieces, self.missing, parts)
        return parts

    def shifted(self, by: Floats) -> "AdditiveFunction":
        """Add to each feature's function a constant."""
        pieces = self.pieces.copy()
        pieces[:, 0] += np.repeat(by, np.diff(self.starts) + 1)
        return replace(self, pieces=pieces, missing=self.missing + by)

    def describe(self, name: Callable[[int], str]) -> Iterator[dict[str, Any]]:
        """Give each feature that matters: its breaks, and its values there and right of there."""
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
        """Left end and slope of every piece; see `local_scale`."""
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
    """Sum weight · u^p by piece, u = (x - left) slope; the last row of sums is of the missing."""
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
    """Write the value of each feature's piecewise cubic at each row.

    Feature j has the breaks from starts[j] to starts[j + 1], and one piece more: piece c holds the
    x with breaks[c-1] < x <= breaks[c].
    """
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
