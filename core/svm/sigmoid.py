"""The sigmoid surrogate: 1 - pAUC itself with its steps smoothed, lowered by L-BFGS.

    R(w) = (2/m) Σ_i (1/B) Σ_b σ(θ_b - s_i),    σ(t) = 1 / (1 + e^-t)

The negatives between the ranks j_α and j_β are cut, in the order of their scores, into B blocks of equal mass, and θ_b
is the mean score of block b: the thresholds against which positives are held. With no more than MOST_BLOCKS negatives
in the window a block is one of them, and R the mean of 2σ(z_j - s_i) over the pairs of eq. 9, where the hinge loss
stands in the paper.

2σ(t) >= 1[t >= 0], so R is above 1 - pAUC of the thresholds, and R(0) = 1, as with the convex surrogates. Unlike theirs
its loss levels off: a positive that is far behind pulls no more than others, and the mean of the positives does not
decide whether w = 0 is the optimum. The price is that R is not convex, and the minimum a local one. How steep the steps
are is up to ‖w‖, and so to C: there is no scale beside it.

References
----------
L. Yan, R. Dodier, M. Mozer and R. Wolniewicz, "Optimizing classifier performance via an approximation to the
Wilcoxon-Mann-Whitney statistic", ICML 2003: smooth steps in the place of the AUC's.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numba
import numpy as np

from core.kernel import kernel
from core.ranker import Floats

from .cutting_planes import Solution
from .fitting import Progress, Sample, Trainer
from .line import Point
from .problem import Problem
from .surrogate import Surrogate, Violations, window_of

MOST_BLOCKS = 100

# Of the tolerance, the fall of the objective in a step, over C, that is the last.
LAST_FALL = 0.1

_OUT = numba.float64[::1]
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)


class SigmoidSurrogate(Surrogate):
    """R(w) of the rows' scores, and its gradient; takes the place of a convex one.

    Negatives that are tied share their blocks alike, so that nothing depends on the order of rows. Weighted rows stand
    for their mass: blocks may cut through them.
    """

    def at(self, s: Floats, z: Floats) -> Violations:
        """Evaluate R.

        Parameters
        ----------
        s : ndarray of shape (m,), float64
            Scores of the positives.
        z : ndarray of shape (n,), float64
            Scores of the negatives.

        Returns
        -------
        Violations
            With the tangent in the place of a plane below R.

        Notes
        -----
        O(m B + n + j_β log j_β).
        """
        low, high, _ = self.window
        rows = self._highest(z)
        first = np.flatnonzero(np.append(True, np.diff(z[rows]) != 0.0))  # of each run of ties
        mass = np.add.reduceat(self._q[rows], first)
        ends = np.cumsum(mass)
        ends[-1] = max(ends[-1], high)
        whole = bool((self._q == np.floor(self._q)).all())
        n_blocks = int(min(MOST_BLOCKS, self._unit)) if whole else MOST_BLOCKS
        cuts = low + self._unit * (np.arange(n_blocks + 1) / n_blocks)
        inside = ends[(ends > low) & (ends < high)]
        edges = np.unique(np.concatenate([cuts, inside]))
        # pieces: of one run of ties and one block
        piece = np.diff(edges) * (n_blocks / self._unit)
        run = np.searchsorted(ends, edges[:-1], side="right")
        block = np.minimum(np.searchsorted(cuts, edges[:-1], side="right") - 1, n_blocks - 1)
        thresholds = np.bincount(block, piece * z[rows][first][run], n_blocks)
        pushed, pulled = np.empty(len(s)), np.zeros(n_blocks)
        value = sum_sigmoids(s, self._p, thresholds, pushed, pulled)
        of_run = np.bincount(run, piece * pulled[block], len(first)) / mass
        lengths = np.diff(np.append(first, len(rows)))
        crossed = np.repeat(of_run, lengths) * self._q[rows]
        slope = float((pushed * s).sum()) + float((crossed * z[rows]).sum())
        return Violations(value, value - slope, rows, crossed, pushed)


@kernel(numba.float64(_FLOATS, _FLOATS, _FLOATS, _OUT, _OUT))
def sum_sigmoids(s, p, thresholds, pushed, pulled):  # type: ignore[no-untyped-def]
    """Give Σ_i p_i (2/B) Σ_b σ(θ_b - s_i), its slopes in the s_i written to `pushed` and in the θ_b to `pulled`."""
    scale = 2.0 / len(thresholds)
    value = 0.0
    for i in range(len(s)):
        own = slope = 0.0
        for b in range(len(thresholds)):
            small = math.exp(-abs(thresholds[b] - s[i]))
            share = 1.0 / (1.0 + small)
            step = small * share * share
            own += share if thresholds[b] >= s[i] else small * share
            slope += step
            pulled[b] += scale * p[i] * step
        value += scale * p[i] * own
        pushed[i] = -scale * p[i] * slope
    return value


class SigmoidTrainer:
    """Lowers ½‖w - center‖² + C R(w) for one window; used as `Trainer` is.

    Parameters
    ----------
    sample : Sample
    window : (float, float)
        Of false positive rates.
    tol : float
    max_iter : int
    progress : Progress
        Is told the last step's fall of the objective for the gap, of which nothing is known.

    Attributes
    ----------
    collapsed : bool
        Whether the machine for the whole AUC, which is where it starts, has collapsed.
    """

    convex = False

    def __init__(
        self,
        sample: Sample,
        window: tuple[float, float],
        *,
        tol: float,
        max_iter: int,
        progress: Progress,
    ) -> None:
        self.sample = sample
        self._tol, self._max_iter, self._progress = tol, max_iter, progress
        p, q = sample.weights(sample.positives), sample.weights(sample.negatives)
        masses = window_of(q, *window)
        surrogate = SigmoidSurrogate(p, q, masses)
        self.problem = Problem(sample.rows, sample.positives, sample.negatives, surrogate)
        self._auc = Trainer(
            sample, (0.0, 1.0), naive=False, tol=tol, max_iter=max_iter, progress=progress
        )
        self.collapsed = self._auc.collapsed

    def free(self, costs: Iterable[float], start: Floats | None = None) -> Iterator[Solution]:
        """Lower ½‖w‖² + C R(w) for each C, from a start or else from the machine for the whole AUC with that C."""
        of_auc: Floats | None = None
        for C in costs:
            begin = start
            if begin is None:
                begin = of_auc = next(self._auc.free((C,), of_auc)).point.w
            yield self.descend(C, np.zeros(len(begin)), begin)

    def anchored(self, costs: Iterable[float], center: Floats) -> Iterator[Solution]:
        """Lower ½‖w - center‖² + C R(w) for each C, from the center on; ends where w = 0 would do as well."""
        w = center
        for C in costs:
            solution = self.descend(C, center, w)
            at_origin = 0.5 * float((center * center).sum()) + C
            if at_origin - solution.objective <= solution.gap:
                return
            w = solution.point.w
            yield solution

    def critical_fpr(self) -> float | None:
        """None: R is not convex, so no window is proven to collapse."""
        return None

    def descend(self, C: float, center: Floats, start: Floats) -> Solution:
        """Lower ½‖w - center‖² + C R(w) by L-BFGS.

        Parameters
        ----------
        C : float
        center, start : ndarray of shape (size,), float64

        Returns
        -------
        Solution
            The best point seen, the start among them. Its `gap` is tol · C: to gain less is to gain nothing.
        """
        from scipy.optimize import minimize
        from threadpoolctl import threadpool_limits

        problem = self.problem
        best: tuple[float, Point] | None = None

        def objective(w: Floats) -> tuple[float, Floats]:
            nonlocal best
            scores = problem.scores(w)
            violations = problem.at(scores)
            step = w - center
            value = 0.5 * float((step * step).sum()) + C * violations.value
            gradient = problem.plane(violations).gradient
            if best is None or value < best[0]:
                best = value, Point(w.copy(), scores, violations.value, gradient)
            return value / C, step / C + gradient

        goal = LAST_FALL * self._tol
        report = self._progress.start(goal * C)
        lowest, n_iter = objective(start)[0], 0

        def tell(intermediate_result: Any) -> None:
            nonlocal lowest, n_iter
            n_iter += 1
            value = float(intermediate_result.fun)
            report(n_iter, C * value, C * max(lowest - value, 0.0))
            lowest = min(lowest, value)

        with threadpool_limits(limits=1, user_api="blas"):  # whose sums depend on its threads
            result = minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                callback=tell,
                options={"maxiter": self._max_iter, "ftol": goal, "gtol": 1e-2 * goal},
            )
        self._progress.end()
        assert best is not None
        value, point = best
        return Solution(point, value, self._tol * C, n_iter, result.nit < self._max_iter)
