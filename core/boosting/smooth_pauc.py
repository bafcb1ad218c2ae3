"""The partial AUC of scores that carry normal noise: smooth in every score, ties or not.

To every score an independent normal error of variance ½ is added, so that the difference of two has
variance 1. With the weights of each class summing to 1, and k(x) = e^{-x²}/√π the errors' density,

    TPR(c) = Σ_i w_i Φ(√2 (f_i - c)),   p(c) = -TPR'(c) = Σ_i w_i k(f_i - c)   over positives,
    FPR(c) = Σ_k w_k Φ(√2 (f_k - c)),   q(c) = -FPR'(c) = Σ_k w_k k(f_k - c)   over negatives,

and the area over the window [α, β], divided by its width, is

    A = 1/(β - α) ∫ TPR(c) q(c) dc,   c from FPR⁻¹(β) to FPR⁻¹(α).

For all rates it is Σ_i Σ_k w_i w_k Φ(f_i - f_k), the AUC with Φ in place of the step. As f grows by ε h the
curve at the rate of the threshold c rises by ε (P_h(c) - N_h(c) p(c)/q(c)), where P_h = Σ_i w_i h_i k(f_i - c)
and N_h is the like over negatives; so

    dA/dε = 1/(β - α) ∫ P_h q - N_h p dc.

Every row counts by how likely its noisy score falls among the other class's within the window. A
second derivation gives the curvature; there the thresholds move, by dc/dε = N_h(c)/q(c).

**Sums over pairs in one pass.** A sum over pairs of rows, Σ_i Σ_k w_i w_k k(f_i - f_k), costs rows times rows. The
kernel k is smooth, so within a short cell of the score axis it is a polynomial as good as exactly: a row is to the sum
what its powers within its cell are. One pass over the rows gathers these, the rest is between cells. All integrals run
over Gauss-Legendre nodes. Both are exact but for some 1e-11.
"""

import math

import numba
import numpy as np
import numpy.typing as npt
from numpy.polynomial import chebyshev, legendre

from core.base.ranker import Floats
from core.kernels import kernel

# Cells on either side in which the kernel is above 0: 13 halves of the unit, e^{-6.5²} = 4e-19.
REACH = 13

# Width of a cell, in units of the noise; short, since the derivatives of the kernel grow with the degree.
WIDTH = 0.5
N_NODES = 10  # nodes of a cell

# The nodes of a cell, from -1 to 1, and the matrix that turns values at them into coefficients of powers.
_CELL_NODES = chebyshev.chebpts1(N_NODES)
_TO_POWERS = np.linalg.inv(np.vander(_CELL_NODES, increasing=True))
_GAUSS, _GAUSS_WEIGHTS = legendre.leggauss(N_NODES)

# Halvings of the score axis, until a threshold is known to nearly the last digit.
_HALVINGS = 60

# Density of scores below which a threshold lies in a gap: it may be anywhere there, and moves nothing.
MIN_DENSITY = 1e-200


class SmoothArea:
    """The smoothed partial AUC of rows of both classes, as a function of scores."""

    def __init__(
        self, positive: npt.NDArray[np.bool_], weight: Floats, fpr_min: float, fpr_max: float
    ) -> None:
        self.positive = positive
        self.window = fpr_min, fpr_max
        self.weights = np.zeros((2, len(positive)))
        for mass, rows in zip(self.weights, (positive, ~positive), strict=True):
            shares = weight[rows] / weight[rows].max()
            mass[rows] = shares / shares.sum()

    def at(self, scores: Floats) -> "Smoothed":
        """Return the smoothed partial AUC at these scores (in units of the noise); O(n_rows + range of scores)."""
        return Smoothed(self, scores)


class Smoothed:
    """The smoothed partial AUC at given scores; `value` is the area, from 0 to 1."""

    def __init__(self, area: SmoothArea, scores: Floats) -> None:
        self._area = area
        self._scores = scores
        # Rows keep 2 REACH cells from the ends, thresholds REACH.
        first = np.floor(scores.min() / WIDTH) - 2 * REACH
        n_cells = int(np.floor(scores.max() / WIDTH) - first) + 2 * REACH + 1
        self._origin = float(first * WIDTH)
        self._middles = self._origin + (np.arange(n_cells) + 0.5) * WIDTH
        self._nodes = self._middles[:, None] + 0.5 * WIDTH * _CELL_NODES
        self._masses = self._at_nodes(area.weights)
        self._used = (self._masses != 0.0).any(axis=(0, 2))
        self._above = np.zeros((2, n_cells + 1))  # of the cells from each one on
        self._above[:, :-1] = self._masses.sum(axis=2)[:, ::-1].cumsum(axis=1)[:, ::-1]
        self._lay_nodes()
        densities = _sums(self._targets, self._cells, self._nodes, self._masses, self._used)[0]
        self._p, self._q = densities
        self._tpr = self._tail(0, self._targets, self._cells)
        self.value = float(self._step @ (self._tpr * self._q))

    def gradient(self) -> Floats:
        """Return dA/df of each row, shape (n_rows,): >= 0 for positives, <= 0 for negatives."""
        near = np.zeros(len(self._middles), dtype=np.bool_)
        near[self._cells] = True
        densities = np.zeros((2, self._gauss.size))
        densities[:, self._inside] = self._step * self._q, -self._step * self._p
        densities = densities.reshape(2, *self._gauss.shape)
        reached = np.convolve(near, np.ones(2 * REACH + 1), "same") > 0.5
        cells = np.flatnonzero(reached & self._used)
        targets = self._nodes[cells].ravel()
        sums = _sums(targets, np.repeat(cells, N_NODES), self._gauss, densities, near)[0]
        slopes = np.empty((2, len(self._scores)))
        for values, slope in zip(sums, slopes, strict=True):
            coefficients = np.zeros(self._nodes.shape)
            coefficients[cells] = values.reshape(-1, N_NODES) @ _TO_POWERS.T
            evaluate(self._scores, self._origin, WIDTH, coefficients, slope)
        return np.asarray((self._area.weights * slopes).sum(axis=0))

    def curvature(self, h: Floats) -> float:
        """Return d²A/dε² as f grows by ε h; h is (n_rows,)."""
        weights = self._area.weights
        sources = self._at_nodes(np.concatenate([weights * h, weights * h**2]))
        sums = _sums(self._targets, self._cells, self._nodes, sources, self._used)
        (P_h, N_h, _, _), (dp, dq, dP_h, dN_h) = sums
        hessian = float(self._step @ (dP_h * self._q + P_h * dq - dN_h * self._p - N_h * dp))
        low, high = self._area.window
        for threshold, sign in zip(self._ends, (1.0, -1.0), strict=True):
            if threshold is None:
                continue
            at = np.array([threshold])
            every = np.concatenate([self._masses, sources[:2]])
            p, q, P_h, N_h = _sums(at, self._cell_of(at), self._nodes, every, self._used)[0, :, 0]
            if q > MIN_DENSITY:
                hessian += sign * (P_h * q - N_h * p) * (N_h / q) / (high - low)
        return hessian

    def _at_nodes(self, factors: Floats) -> Floats:
        """Return kernel-smoothed sums of factors, (n_factors, n_rows), at nodes: (n_factors, n_cells, N_NODES)."""
        powers = np.zeros((len(factors), *self._nodes.shape))
        sum_powers(self._scores, factors, self._origin, WIDTH, powers)
        return np.asarray(powers @ _TO_POWERS)

    def _lay_nodes(self) -> None:
        low, high = self._area.window
        # The thresholds at fpr_min and fpr_max; none where the whole tail belongs to the window.
        self._ends = (
            None if low == 0.0 else self._threshold(low),
            None if high == 1.0 else self._threshold(high),
        )
        edges = self._middles[REACH] - 0.5 * WIDTH, self._middles[-REACH - 1] + 0.5 * WIDTH
        top = edges[1] if self._ends[0] is None else self._ends[0]
        bottom = edges[0] if self._ends[1] is None else self._ends[1]
        starts = np.clip(self._middles - 0.5 * WIDTH, bottom, top)[:, None]
        halves = 0.5 * (np.clip(self._middles + 0.5 * WIDTH, bottom, top)[:, None] - starts)
        self._gauss = starts + halves * (1.0 + _GAUSS)
        steps = (halves * _GAUSS_WEIGHTS).ravel() / (high - low)
        self._inside = np.flatnonzero(steps > 0.0)
        self._step = steps[self._inside]
        self._targets = self._gauss.ravel()[self._inside]
        self._cells = self._inside // N_NODES

    def _threshold(self, rate: float) -> float:
        """Return the threshold c whose noisy false positive rate FPR(c) is `rate`."""
        low, high = self._middles[REACH], self._middles[-REACH - 1]
        for _ in range(_HALVINGS):
            middle = np.array([0.5 * (low + high)])
            if self._tail(1, middle, self._cell_of(middle))[0] > rate:
                low = middle[0]
            else:
                high = middle[0]
        return float(0.5 * (low + high))

    def _tail(self, side: int, thresholds: Floats, cells: npt.NDArray[np.int64]) -> Floats:
        """Return the noisy TPR (side 0) or FPR (side 1) at thresholds, which lie in the given cells."""
        tails = np.empty(len(thresholds))
        smooth_tail(thresholds, cells, self._nodes, self._masses[side], self._above[side], tails)
        return tails

    def _cell_of(self, thresholds: Floats) -> npt.NDArray[np.int64]:
        return np.floor((thresholds - self._origin) / WIDTH).astype(np.int64)


def _sums(
    targets: Floats,
    cells: npt.NDArray[np.int64],
    nodes: Floats,
    weights: Floats,
    used: npt.NDArray[np.bool_],
) -> Floats:
    """Return Σ weight · k and Σ weight · k' at each target (kernel k), (2, n_weights, n_targets); see `smooth`."""
    sums = np.zeros((2, len(weights), len(targets)))
    smooth(targets, cells, nodes, weights, used, sums)
    return sums


_ROOT_PI = math.sqrt(math.pi)
_LINE = numba.float64[::1]
_TABLE = numba.float64[:, ::1]
_BLOCK = numba.float64[:, :, ::1]
_CELLS = numba.int64[::1]
_FLAGS = numba.boolean[::1]


@kernel(numba.void(_LINE, _TABLE, numba.float64, numba.float64, _BLOCK))
def sum_powers(scores, factors, origin, width, sums):  # type: ignore[no-untyped-def]
    """Add Σ factor · u^p by cell to sums, (n_factors, n_cells, n_powers); u in [-1, 1) is the position in the cell."""
    for i in range(len(scores)):
        position = (scores[i] - origin) / width
        cell = int(position)
        u = 2.0 * (position - cell) - 1.0
        for s in range(factors.shape[0]):
            value = factors[s, i]
            if value != 0.0:
                for p in range(sums.shape[2]):
                    sums[s, cell, p] += value
                    value *= u


@kernel(numba.void(_LINE, numba.float64, numba.float64, _TABLE, _LINE))
def evaluate(scores, origin, width, coefficients, values):  # type: ignore[no-untyped-def]
    """Write the polynomial of each score's cell to values. coefficients: (n_cells, n_powers)."""
    degree = coefficients.shape[1] - 1
    for i in range(len(scores)):
        position = (scores[i] - origin) / width
        cell = int(position)
        u = 2.0 * (position - cell) - 1.0
        value = coefficients[cell, degree]
        for p in range(degree - 1, -1, -1):
            value = value * u + coefficients[cell, p]
        values[i] = value


@kernel(numba.void(_LINE, _CELLS, _TABLE, _BLOCK, _FLAGS, _BLOCK))
def smooth(targets, cells, nodes, weights, used, sums):  # type: ignore[no-untyped-def]
    """Add Σ weight · k(node - target) and Σ weight · k'(node - target) to sums, k(x) = e^{-x²}/√π.

    targets: (n_targets,) float64; cells: (n_targets,) int64, their cells; nodes: (n_cells, N_NODES) float64; weights:
    (n_weights, n_cells, N_NODES) float64; used: (n_cells,) bool; sums: (2, n_weights, n_targets) float64. Nodes of
    cells farther than REACH, or not used, add nothing.
    """
    for t in range(len(targets)):
        for b in range(cells[t] - REACH, cells[t] + REACH + 1):
            if not used[b]:
                continue
            for j in range(nodes.shape[1]):
                x = nodes[b, j] - targets[t]
                k = math.exp(-x * x) / _ROOT_PI
                for s in range(weights.shape[0]):
                    term = weights[s, b, j] * k
                    sums[0, s, t] += term
                    sums[1, s, t] -= 2.0 * x * term


@kernel(numba.void(_LINE, _CELLS, _TABLE, _TABLE, _LINE, _LINE))
def smooth_tail(targets, cells, nodes, weights, above, tails):  # type: ignore[no-untyped-def]
    """Write Σ weight · Φ(√2 (node - target)) to tails; above: the weight of all cells from each on. See `smooth`."""
    for t in range(len(targets)):
        tail = above[cells[t] + REACH + 1]
        for b in range(cells[t] - REACH, cells[t] + REACH + 1):
            for j in range(nodes.shape[1]):
                if weights[b, j] != 0.0:
                    tail += weights[b, j] * 0.5 * math.erfc(targets[t] - nodes[b, j])
        tails[t] = tail
