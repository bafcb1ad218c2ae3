"""The linear classifiers that rankers are compared with: logistic regression, and the asymmetric SVM.

Each is a loss of margins with a ridge penalty, minimised by `core.linear.newton`.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.ranker import Callback, Groups, StopFit, warn_stopped
from core.base.splits import hold_out
from core.base.state import Value
from core.linear.design import Sample
from core.linear.newton import (
    CLOSE_ENOUGH,
    MAX_STEPS,
    NO_GRADIENT,
    Affine,
    Minimum,
    Report,
    logistic_loss,
    minimise,
    squared_hinge_loss,
)
from core.linear.ranker import Figure, LinearRanker
from core.metrics.window import FprMax, FprMin, check_window

from .estimators import Cost, HeldFraction, RandomState, Standardize
from .selection import DEFAULT_COST, MIN_RISE

LogisticCost = Annotated[
    float, Gt(0), Le(1e6), Doc("Weight of the sum of losses beside ½‖w‖², as in scikit-learn.")
]

COSTS = tuple(10.0**power for power in range(-4, 3))

# The first of equals is taken.
ASYMMETRIES = (1.0, 0.25, 4.0, 1 / 16, 16.0)

Asymmetry = Annotated[
    Annotated[float, Ge(1e-4), Le(1e4)] | Literal["auto"],
    Doc(
        "How much the mean loss of the negatives weighs beside that of the positives. auto: the best of "
        "1/16, 1/4, 1, 4 and 16 by the partial AUC asked for, on rows held out, together with C."
    ),
]


class LinearClassifier(LinearRanker):
    """A linear classifier that ranks by its score."""

    keeps_when_stopped = True

    objective_: Figure
    n_iter_: Annotated[int, Value("iterations"), Ge(0), Le(MAX_STEPS)]


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticParameters:
    """The parameters of `Logistic`."""

    C: LogisticCost = 1.0
    standardize: Standardize = True


class Logistic(LogisticParameters, LinearClassifier):
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

    def _fit_sample(
        self,
        X: Any,
        sample: Sample,
        positive: npt.NDArray[np.bool_],
        group: Groups | None,
        callback: Callback,
    ) -> None:
        score, values = None, self._followed()
        costs = values or (float(self.C),)
        report = _count_steps(callback, len(costs))
        for k, C in enumerate(costs):
            found = minimise(
                sample.rows, positive, sample.weight, logistic_loss, C=C, start=score, report=report
            )
            score = found.score
            self.objective_, self.n_iter_ = found.objective, found.n_iter
            self._take_fit(sample, *score)
            if values:
                self._keep_on_path()
            if found.stopped:
                warn_stopped(k, len(costs), f"minima, at step {self.n_iter_} of the next")
                return
        n_steps = MAX_STEPS * len(costs)
        with suppress(StopFit):
            callback(n_steps, n_steps, {"loss": self.objective_})


@dataclass(kw_only=True, eq=False, repr=False)
class AsymmetricParameters:
    """The parameters of `AsymmetricSVM`."""

    fpr_min: FprMin = 0.0
    fpr_max: FprMax = 0.1
    C: Cost = "auto"
    asymmetry: Asymmetry = "auto"
    standardize: Standardize = True
    validation_fraction: HeldFraction = 0.25
    random_state: RandomState = 0


class AsymmetricSVM(AsymmetricParameters, LinearClassifier):
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

    path_parameter = None  # C and the asymmetry are chosen together

    C_: Figure
    asymmetry_: Figure

    def _check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _fit_sample(
        self,
        X: Any,
        sample: Sample,
        positive: npt.NDArray[np.bool_],
        group: Groups | None,
        callback: Callback,
    ) -> None:
        asymmetries = ASYMMETRIES if self.asymmetry == "auto" else (float(self.asymmetry),)
        costs = COSTS if self.C == "auto" else (float(self.C),)
        pairs = [(skew, C) for skew in asymmetries for C in costs]
        chosen, start = (asymmetries[0], DEFAULT_COST if self.C == "auto" else float(self.C)), None
        n_tried = len(pairs)
        if len(pairs) > 1:
            held = hold_out(
                X, positive, sample.weight, self.validation_fraction, self.random_state, group
            )
            if held is not None:
                report = _count_fits(callback, len(pairs) + 1)
                chosen, start, n_tried = self._choose(sample, held, pairs, report)
        self.asymmetry_, self.C_ = chosen
        found = _fit_pair(sample, chosen, start, NO_GRADIENT)
        self.objective_, self.n_iter_ = found.objective, found.n_iter
        self._take_fit(sample, found.score.w)
        if n_tried < len(pairs):
            warn_stopped(
                n_tried, len(pairs), "pairs of asymmetry and C, the best of which is taken"
            )
            return
        with suppress(StopFit):
            callback(len(pairs) + 1, len(pairs) + 1, {"loss": self.objective_})

    def _choose(
        self,
        sample: Sample,
        held: npt.NDArray[np.bool_],
        pairs: list[tuple[float, float]],
        report: Callable[[float], None],
    ) -> tuple[tuple[float, float], Affine | None, int]:
        """Take the pair of asymmetry and C with the greatest partial AUC on the rows held out, and its score; say how
        many were tried, which are all unless the report raises StopFit.
        """
        pauc = sample.validation_pauc(held, (self.fpr_min, self.fpr_max))
        part = sample.without(held)
        score, best = None, -math.inf
        chosen: tuple[tuple[float, float], Affine | None] = pairs[0], None
        for n_tried, pair in enumerate(pairs, 1):
            found = _fit_pair(part, pair, score, CLOSE_ENOUGH)
            score = found.score
            value = pauc(score.w)
            if value > best + MIN_RISE:
                best, chosen = value, (pair, score)
            try:
                report(found.objective)
            except StopFit:
                return *chosen, n_tried
        return *chosen, len(pairs)


def _count_steps(callback: Callback, n_fits: int) -> Report:
    """Return what tells the callback of each Newton step; the last step is told of when all is done."""
    of = MAX_STEPS * n_fits
    steps = count(1)
    return lambda _, objective, gradient: callback(
        min(next(steps), of - 1), of, {"loss": objective, "gradient": gradient}
    )


def _fit_pair(
    sample: Sample, pair: tuple[float, float], start: Affine | None, tol: float
) -> Minimum:
    """Minimise the objective for an asymmetry and a C, each class's costs summing to its share."""
    skew, C = pair
    n_rows = sample.rows.n_rows
    cost, positive = np.zeros(n_rows), np.zeros(n_rows, dtype=np.bool_)
    positive[sample.positives] = True
    for rows, share in ((sample.positives, 1.0), (sample.negatives, skew)):
        own = sample.weight[rows]
        cost[rows] = share / (1.0 + skew) * (own / own.sum())
    return minimise(sample.rows, positive, cost, squared_hinge_loss, C=C, start=start, tol=tol)


def _count_fits(callback: Callback, n_fits: int) -> Callable[[float], None]:
    """Return what tells the callback of each fit's objective."""
    steps = count(1)
    return lambda objective: callback(next(steps), n_fits, {"loss": objective})
