"""AsymmetricSVM: a classifier whose errors on the two classes cost differently, chosen for a window."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le

from core.holdout import hold_out
from core.metrics.window import FprMax, FprMin, check_window
from core.ranker import Arrays, Callback, Floats, StopFit, warn_stopped

from .design import TableRows, lay_out
from .fitting import LEAST_RISE, Sample
from .linear import LinearRanker, check_count, check_figure
from .newton import (
    MOST_STEPS,
    NO_GRADIENT,
    Line,
    Minimum,
    Regularised,
    squared_hinge_loss,
)
from .options import Cost, HeldFraction, Seed, Standardize
from .plan import PLAIN_COST

COSTS = tuple(10.0**power for power in range(-4, 3))

# The first of equals is taken.
ASYMMETRIES = (1.0, 0.25, 4.0, 1 / 16, 16.0)

# Of the gradient at 0, what is left where a fit is only to be compared with others.
CLOSE_ENOUGH = 1e-5

Asymmetry = Annotated[
    Annotated[float, Ge(1e-4), Le(1e4)] | Literal["auto"],
    Doc(
        "How much the mean loss of the negatives weighs beside that of the positives. auto: the best of "
        "1/16, 1/4, 1, 4 and 16 by the partial AUC asked for, on rows held out, together with C."
    ),
]


class AsymmetricSVM(LinearRanker):
    """Rank by a linear classifier with a cost per class, both costs chosen by the partial AUC in a window.

    Minimises ½‖w‖² + C (L₊ + a L₋) / (1 + a) over standardised features, L₊ and L₋ the mean squared hinge loss
    (1 - y (w·x + b))₊² of each class, a the asymmetry. A control: the loss is that of a classifier, and the window
    counts in the choice of C and a only.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one.
    intercept_ : float
        `predict` cuts at 0: at the Youden point of the training rows. The machine's own b answers to unequal costs.
    C_, asymmetry_ : float
        As given, or as chosen.
    objective_ : float
        As above.
    n_iter_ : int
        Newton steps of the last fit.

    Notes
    -----
    This is not the machine of Wu et al., which the paper compares with as ASVM. Theirs is a variant of the one-class
    machine with two parameters, μ and τ, in its objective, tuned on a fine grid for the window. Ours is what they set
    theirs against, other costs of the slacks, tuned on a grid in the same manner. It shares with theirs that two
    parameters say how unequal the classes are, and are all that is chosen for the window; the objective is another.
    The hinge is squared, which makes it smooth, and the score is linear. Features are taken as by `AUCSVM`.

    References
    ----------
    S.-H. Wu, K.-P. Lin, C.-M. Chen and M.-S. Chen, "Asymmetric support vector machines: low false-positive learning
    under the user tolerance", KDD 2008.
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: appendix B.2.
    """

    keeps_when_stopped = True

    path_parameter = None  # C and the asymmetry are chosen together

    C_: float
    asymmetry_: float
    objective_: float
    n_iter_: int

    def __init__(
        self,
        *,
        fpr_min: FprMin = 0.0,
        fpr_max: FprMax = 0.1,
        C: Cost = "auto",
        asymmetry: Asymmetry = "auto",
        standardize: Standardize = True,
        validation_fraction: HeldFraction = 0.25,
        random_state: Seed = 0,
    ) -> None:
        self.fpr_min = fpr_min
        self.fpr_max = fpr_max
        self.C = C
        self.asymmetry = asymmetry
        self.standardize = standardize
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _fit(
        self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats, callback: Callback
    ) -> None:
        rows = lay_out(X, weight, self._n_categories(), standardize=self.standardize)
        sample = Sample(rows, np.flatnonzero(positive), np.flatnonzero(~positive), weight)
        pairs = [(skew, C) for skew in self._asymmetries() for C in self._costs()]
        chosen, start = (self._asymmetries()[0], self._plain_cost()), None
        n_tried = len(pairs)
        if len(pairs) > 1:
            held = hold_out(X, positive, weight, self.validation_fraction, self.random_state)
            if held is not None:
                report = _count_fits(callback, len(pairs) + 1)
                chosen, start, n_tried = self._choose(sample, held, pairs, report)
        self.asymmetry_, self.C_ = chosen
        found = _fit_line(sample, chosen, start or _zero(rows.size), NO_GRADIENT)
        self.objective_, self.n_iter_ = found.objective, found.n_iter
        self._take_fit(sample, found.line.w)
        if n_tried < len(pairs):
            warn_stopped(
                n_tried, len(pairs), "pairs of asymmetry and C, the best of which is taken"
            )
            return
        with suppress(StopFit):
            callback(len(pairs) + 1, len(pairs) + 1, {"loss": self.objective_})

    def _costs(self) -> tuple[float, ...]:
        return COSTS if self.C == "auto" else (float(self.C),)

    def _asymmetries(self) -> tuple[float, ...]:
        return ASYMMETRIES if self.asymmetry == "auto" else (float(self.asymmetry),)

    def _plain_cost(self) -> float:
        return PLAIN_COST if self.C == "auto" else float(self.C)

    def _choose(
        self,
        sample: Sample,
        held: npt.NDArray[np.bool_],
        pairs: list[tuple[float, float]],
        report: Callable[[float], None],
    ) -> tuple[tuple[float, float], Line, int]:
        """Take the pair of asymmetry and C with the greatest partial AUC on the rows held out, and its line; say how
        many were tried, which are all unless the report raises StopFit.
        """
        pauc = sample.judge(held, (self.fpr_min, self.fpr_max))
        part = sample.without(held)
        line = _zero(sample.rows.size)
        best, chosen = -math.inf, (pairs[0], line)
        for n_tried, pair in enumerate(pairs, 1):
            found = _fit_line(part, pair, line, CLOSE_ENOUGH)
            line = found.line
            value = pauc(line.w)
            if value > best + LEAST_RISE:
                best, chosen = value, (pair, line)
            try:
                report(found.objective)
            except StopFit:
                return *chosen, n_tried
        return *chosen, len(pairs)

    def _figures(self) -> dict[str, Any]:
        return {
            "C": self.C_,
            "asymmetry": self.asymmetry_,
            "objective": self.objective_,
            "iterations": self.n_iter_,
        }

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        arrays, meta = super()._get_state()
        return arrays, meta | self._figures()

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        super()._set_state(arrays, meta)
        for name in ("C", "asymmetry", "objective"):
            check_figure(name, meta[name])
        check_count("iterations", meta["iterations"], MOST_STEPS)
        self.C_, self.asymmetry_ = meta["C"], meta["asymmetry"]
        self.objective_, self.n_iter_ = meta["objective"], meta["iterations"]


def _zero(size: int) -> Line:
    return Line(np.zeros(size), 0.0)


def _fit_line(sample: Sample, pair: tuple[float, float], start: Line, tol: float) -> Minimum:
    """Minimise the objective for an asymmetry and a C, each class's costs summing to its share."""
    assert isinstance(sample.rows, TableRows)
    skew, C = pair
    cost, sign = np.zeros(sample.rows.n_rows), np.ones(sample.rows.n_rows)
    sign[sample.negatives] = -1.0
    for rows, share in ((sample.positives, 1.0), (sample.negatives, skew)):
        own = sample.weight[rows]
        cost[rows] = share / (1.0 + skew) * (own / own.sum())
    risk = Regularised(sample.rows, sign, cost, 1.0 / C, squared_hinge_loss)
    found = risk.minimise(start, tol)
    return found._replace(objective=C * found.objective)


def _count_fits(callback: Callback, n_fits: int) -> Callable[[float], None]:
    """Give what tells the callback of each fit's objective."""
    steps = count(1)
    return lambda objective: callback(next(steps), n_fits, {"loss": objective})
