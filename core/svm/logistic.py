"""Logistic: logistic regression, which the rankers are compared with."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Gt, Le

from core.ranker import Arrays, Callback, Floats, StopFit, warn_stopped

from .design import TableRows, lay_out
from .fitting import Sample
from .linear import LinearRanker, check_count, check_figure
from .newton import MOST_STEPS, NO_GRADIENT, Line, Minimum, Regularised, Report, logistic_loss
from .options import Standardize

LogisticCost = Annotated[
    float, Gt(0), Le(1e6), Doc("Weight of the sum of losses beside ½‖w‖², as in scikit-learn.")
]


class Logistic(LinearRanker):
    """Rank by the log-odds of a logistic regression.

    Minimises ½‖w‖² + C Σ ln(1 + exp(-y (w·x + b))) over standardised features, y = ±1, each row times its weight; b is
    free. A control: no window, no pair, nothing that knows of ranking.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one.
    intercept_ : float
        The score is the log of the odds: above 0 where positive is the likelier class.
    objective_ : float
        As above.
    n_iter_ : int
        Newton steps.

    Notes
    -----
    Features are taken as by `AUCSVM`: standardised, the missing at the mean with a coordinate of their own, a
    coordinate per category, sparse matrices as they are. `scikit-learn`'s LogisticRegression has the same minimum
    on the same coordinates; docs/benchmarks.md has both side by side. Each of some ten Newton steps takes some twenty
    products with the table. A fit that is ended by StopFit keeps its last step; along a path of C it has no rankers
    of the values that it did not come to.

    References
    ----------
    C.-J. Lin, R. C. Weng and S. S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008.
    """

    C: float
    standardize: bool

    objective_: float
    n_iter_: int

    keeps_when_stopped = True

    def __init__(self, *, C: LogisticCost = 1.0, standardize: Standardize = True) -> None:
        self.C = C
        self.standardize = standardize

    def _fit(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        rows = lay_out(X, weight, self._n_categories(), standardize=self.standardize)
        sample = Sample(rows, np.flatnonzero(positive), np.flatnonzero(~positive), weight)
        line, values = Line(np.zeros(rows.size), 0.0), self._followed()
        costs = values or (float(self.C),)
        report = _count_steps(callback, len(costs))
        for k, C in enumerate(costs):
            found = self._solve(sample, positive, C, line, report)
            line = found.line
            if values:
                self._keep_on_path()
            if found.stopped:
                warn_stopped(k, len(costs), f"minima, at step {self.n_iter_} of the next")
                return
        n_steps = MOST_STEPS * len(costs)
        with suppress(StopFit):
            callback(n_steps, n_steps, {"loss": self.objective_})

    def _solve(
        self,
        sample: Sample,
        positive: npt.NDArray[np.bool_],
        C: float,
        start: Line,
        report: Report,
    ) -> Minimum:
        """Minimise with one C, from a start."""
        total = float(sample.weight.sum())
        scale = C * total  # the sum is minimised divided by this, which may be huge
        assert isinstance(sample.rows, TableRows)
        risk = Regularised(
            sample.rows,
            np.where(positive, 1.0, -1.0),
            sample.weight / total,
            1.0 / scale,
            logistic_loss,
        )
        found = risk.minimise(
            start,
            NO_GRADIENT,
            lambda step, objective, gradient: report(step, scale * objective, scale * gradient),
        )
        self.objective_, self.n_iter_ = scale * found.objective, found.n_iter
        self._take_line(sample, *found.line)
        return found

    def _figures(self) -> dict[str, Any]:
        return {"objective": self.objective_, "iterations": self.n_iter_}

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._get_state()
        return arrays, meta | self._figures()

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        super()._set_state(arrays, meta)
        check_figure("objective", meta["objective"])
        check_count("iterations", meta["iterations"], MOST_STEPS)
        self.objective_, self.n_iter_ = meta["objective"], meta["iterations"]


def _count_steps(callback: Callback, n_fits: int) -> Report:
    """Give what tells the callback of each Newton step; the last step is told of when all is done."""
    of = MOST_STEPS * n_fits
    steps = count(1)
    return lambda _, objective, gradient: callback(
        min(next(steps), of - 1), of, {"loss": objective, "gradient": gradient}
    )
