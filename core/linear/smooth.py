"""Linear rankers fitted by Newton's method (`core.linear.newton`), with a ridge penalty.

`Logistic` (logistic regression) and `AsymmetricSVM` minimise losses of margins and serve as baselines; `PNormPush`
minimises the p-norm push of linear scores.
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

from core.base.monotone import Directions, Monotone
from core.base.parameters import Seed, Since
from core.base.ranker import Callback, FitCost, StopFit, warn_stopped
from core.base.state import FINITE, Value
from core.base.training import TrainingData
from core.coding.crosses import CROSSES_DOC, MAX_CROSSES, find_crosses
from core.metrics.window import MIN_RISE, FprMax, FprMin, check_window

from .crossed import CrossedCoordinates, fit_crossed
from .design import Coordinates, LinearRows, LinearSample
from .newton import (
    LOOSE_TOLERANCE,
    MAX_STEPS,
    TOLERANCE,
    Affine,
    Minimum,
    PushLoss,
    Report,
    logistic_loss,
    minimise,
    minimise_loss,
    squared_hinge_loss,
)
from .ranker import LinearRanker, NonNegative
from .svm import (
    Cost,
    EvaluatedFprMax,
    EvaluatedFprMin,
    HeldFraction,
    RandomState,
    Standardize,
)
from .svm_selection import DEFAULT_COST

LogisticCost = Annotated[
    float, Gt(0), Le(1e6), Doc("Weight of the sum of losses relative to ½‖w‖², as in scikit-learn.")
]

# Values of C to choose from.
COSTS = tuple(10.0**power for power in range(-4, 3))

# The same for the p-norm push, whose loss has a mean in place of a sum.
PUSH_COSTS = tuple(10.0**power for power in range(-3, 5))

# Asymmetries to choose from. Of pairs with equal partial AUC the first is taken.
ASYMMETRIES = (1.0, 0.25, 4.0, 1 / 16, 16.0)

Asymmetry = Annotated[
    Annotated[float, Ge(1e-4), Le(1e4)] | Literal["auto"],
    Doc(
        'Weight of the mean loss of the negatives, relative to the positives. "auto" takes the value among 1/16, '
        "1/4, 1, 4 and 16 with the best partial AUC in the window on held-out rows, together with C."
    ),
]

LinearPush = Annotated[
    float,
    Ge(1),
    Le(64),
    Doc(
        "p of the p-norm push. 1: all pairs count equally. The greater it is, the more weight the negatives with "
        "the highest scores have. Choose it by validation."
    ),
]

PushCost = Annotated[
    Annotated[float, Gt(0), Le(1e6)] | Literal["auto"],
    Doc(
        'Weight of the loss relative to ½‖w‖². "auto" takes the value from 1e-3 to 1e4 with the best partial AUC '
        "in the window on held-out training rows."
    ),
]


class LinearClassifier(LinearRanker):
    """A linear classifier that ranks by its score."""

    keeps_when_stopped = True

    objective_: NonNegative
    n_iter_: Annotated[int, Value("iterations"), Ge(0), Le(MAX_STEPS)]


MaxCrosses = Annotated[
    int,
    Ge(0),
    Le(MAX_CROSSES),
    Doc(f"{CROSSES_DOC[0].upper()}{CROSSES_DOC[1:]}."),
    Since("0.3.0"),
]
CrossSeed = Annotated[
    Seed,
    Doc("Seed of the folds in which crosses are computed, and of the rows that choose them."),
    Since("0.3.0", of="crosses"),
]


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticParameters:
    """The parameters of `Logistic`."""

    C: LogisticCost = 1.0
    crosses: MaxCrosses = 0
    standardize: Standardize = True
    monotone: Monotone = None
    random_state: CrossSeed = 0


class Logistic(LogisticParameters, LinearClassifier):
    """Logistic regression; the score is the log-odds.

    Use it as a baseline, or if the relation is linear. A model that does not rank better than `Logistic` is not worth
    its complexity.

    It minimises ½‖w‖² + C Σ ln(1 + exp(-y (w·x + b))) over standardised features, with y = ±1 and each row multiplied
    by its weight; b is not penalised. The loss contains neither pairs of rows nor a window.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one. Crosses are not included.
    intercept_ : float
        Intercept of the log-odds, which are above 0 where positive is the more likely class.
    offset_ : float
        Weighted mean score of the training rows, crosses included.
    objective_ : float
        The minimum of the objective.
    n_iter_ : int
        Number of Newton steps.

    Notes
    -----
    Features are coded as in `AUCSVM`: standardised, missing values at the mean with their own coordinate, one
    coordinate per category, sparse matrices not made dense. A cross (`crosses`) adds two numeric columns: the log-odds
    of a pair of categories beyond those of each, computed without the row itself, and the logarithm of 1 plus its
    number of rows. Features with a monotone constraint are in no cross.

    `sklearn.linear_model.LogisticRegression` has the same minimum on the same coordinates; docs/benchmarks.md compares
    both. A fit takes about ten Newton steps of about twenty products with the table. A fit that StopFit ends keeps its
    last step. Along a path of C there is no ranker for the values that it did not reach.

    References
    ----------
    C.-J. Lin, R. C. Weng and S. S. Keerthi, "Trust region Newton method for logistic regression", JMLR 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Logistic
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = Logistic().fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.coef_.round(1), ranker.predict([[2, 2], [-2, -2]])
    (array([4.2, 2. ]), array([ True, False]))
    """

    def _fit_design(self, data: TrainingData, callback: Callback) -> LinearRows:
        if not self.crosses:
            return super()._fit_design(data, callback)
        directions = self.find_directions()
        is_free = np.ones(len(data.n_categories), dtype=np.bool_)
        if directions is not None:
            is_free = directions == 0
        crossed = find_crosses(
            data,
            self.crosses,
            is_free,
            self.random_state,
            lambda: callback(0, MAX_STEPS, {}),
            logs=True,
        )
        self.map_, rows = fit_crossed(data.X, data.weight, crossed, standardize=self.standardize)
        return rows

    def _known_sizes(self) -> dict[str, Any]:
        return super()._known_sizes() | {
            "map_": CrossedCoordinates if self.crosses else Coordinates
        }

    def _fit_sample(self, data: TrainingData, sample: LinearSample, callback: Callback) -> None:
        score, values = None, self._start_path()
        costs = values or (float(self.C),)
        report, signs = count_steps(callback, len(costs)), self._signs(sample.rows)
        for k, C in enumerate(costs):
            minimum = minimise(
                sample.rows,
                data.positive,
                sample.weight,
                logistic_loss,
                C=C,
                start=score,
                report=report,
                signs=signs,
            )
            score = minimum.score
            self.objective_, self.n_iter_ = minimum.objective, minimum.n_iter
            self._take_fit(sample, *score)
            if values:
                self._add_to_path()
            if minimum.stopped:
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
    monotone: Monotone = None
    validation_fraction: HeldFraction = 0.25
    random_state: RandomState = 0


class AsymmetricSVM(AsymmetricParameters, LinearClassifier):
    """Linear SVM with one cost per class, both chosen by the partial AUC in a window.

    Use it as a baseline for `PAUCSVM`: its loss is that of a classifier, and the window only serves to choose C and the
    asymmetry.

    It minimises ½‖w‖² + C (L₊ + a L₋) / (1 + a) over standardised features. L₊ and L₋ are the mean squared hinge loss
    (1 - y (w·x + b))₊² of each class, and a is the asymmetry.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one.
    C_, asymmetry_ : float
        As given, or as chosen.
    objective_ : float
        The minimum of the objective.
    n_iter_ : int
        Number of Newton steps of the last fit.

    Notes
    -----
    This is not the method of Wu et al., with which the paper compares as ASVM. Theirs is a variant of the one-class SVM
    whose objective has two parameters, μ and τ, tuned for the window on a fine grid. This is what they compare with:
    unequal costs of the two classes, tuned on a grid in the same way. The hinge is squared, which makes it smooth, and
    the score is linear. Features are coded as in `AUCSVM`.

    References
    ----------
    S.-H. Wu, K.-P. Lin, C.-M. Chen and M.-S. Chen, "Asymmetric support vector machines: low false-positive learning
    under the user tolerance", KDD 2008.
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under the ROC curve",
    arXiv:1605.04337: appendix B.2.

    Examples
    --------
    >>> import numpy as np
    >>> from core import AsymmetricSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = AsymmetricSVM(fpr_max=0.1, C=1.0).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.asymmetry_ in (1 / 16, 1 / 4, 1, 4, 16), ranker.predict([[2, 2], [-2, -2]])
    (True, array([ True, False]))
    """

    fit_cost = FitCost(1.4e-6)

    path_parameter = None  # C and the asymmetry are chosen together

    C_: NonNegative
    asymmetry_: NonNegative

    def check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _fit_sample(self, data: TrainingData, sample: LinearSample, callback: Callback) -> None:
        asymmetries = ASYMMETRIES if self.asymmetry == "auto" else (float(self.asymmetry),)
        costs = COSTS if self.C == "auto" else (float(self.C),)
        pairs = [(asymmetry, C) for asymmetry in asymmetries for C in costs]
        chosen, start = (asymmetries[0], DEFAULT_COST if self.C == "auto" else float(self.C)), None
        n_tried = len(pairs)
        if len(pairs) > 1:
            validation_mask = data.hold_out(self.validation_fraction, self.random_state)
            if validation_mask is not None:
                report = _count_fits(callback, len(pairs) + 1)
                chosen, start, n_tried = self._choose(sample, validation_mask, pairs, report)
        self.asymmetry_, self.C_ = chosen
        minimum = _fit_pair(sample, chosen, start, TOLERANCE, self._signs(sample.rows))
        self.objective_, self.n_iter_ = minimum.objective, minimum.n_iter
        self._take_fit(sample, minimum.score.w)
        if n_tried < len(pairs):
            warn_stopped(n_tried, len(pairs), "pairs of asymmetry and C; the best of these is used")
            return
        with suppress(StopFit):
            callback(len(pairs) + 1, len(pairs) + 1, {"loss": self.objective_})

    def _choose(
        self,
        sample: LinearSample,
        validation_mask: npt.NDArray[np.bool_],
        pairs: list[tuple[float, float]],
        report: Callable[[float], None],
    ) -> tuple[tuple[float, float], Affine | None, int]:
        """Return the (asymmetry, C) of the greatest partial AUC on validation rows, and its score.

        The third value is the number of pairs tried: all of them, unless the report raised StopFit.
        """
        pauc = sample.pauc((self.fpr_min, self.fpr_max), validation_mask)
        part, signs = sample.without(validation_mask), self._signs(sample.rows)
        score, best = None, -math.inf
        chosen: tuple[tuple[float, float], Affine | None] = pairs[0], None
        for n_tried, pair in enumerate(pairs, 1):
            minimum = _fit_pair(part, pair, score, LOOSE_TOLERANCE, signs)
            score = minimum.score
            value = pauc(score.w)
            if value > best + MIN_RISE:
                best, chosen = value, (pair, score)
            try:
                report(minimum.objective)
            except StopFit:
                return *chosen, n_tried
        return *chosen, len(pairs)


@dataclass(kw_only=True, eq=False, repr=False)
class PushParameters:
    """The parameters of `PNormPush`."""

    push: LinearPush = 4.0
    C: PushCost = "auto"
    fpr_min: EvaluatedFprMin = 0.0
    fpr_max: EvaluatedFprMax = 0.05
    standardize: Standardize = True
    monotone: Monotone = None
    validation_fraction: HeldFraction = 0.25
    random_state: RandomState = 0


class PNormPush(PushParameters, LinearRanker):
    """Linear ranker with the p-norm push: negatives at the top of the list weigh most.

    Use it if the top of the list matters more than the rest. `push` sets how much, and 1 weighs all pairs equally. For
    trees or stumps with the same loss, use `RankBoost(push=...)`.

    It minimises ½‖w‖² + C L over standardised features, L = ln Σ_i p_i e^{-s_i} + (1/r) ln Σ_k q_k e^{r z_k}. The s_i
    are the scores of the positives, the z_k those of the negatives; the weights p and q each sum to 1; r is `push`. r L
    is the logarithm of Σ_k q_k (Σ_i p_i e^{-(s_i - z_k)})^r. r = 1 is RankBoost's loss over all pairs. As r grows, only
    the highest negative counts, as in `TopPush`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one.
    C_ : float
        As given, or as chosen.
    objective_ : float
        The minimum of the objective.
    n_iter_ : int
        Number of Newton steps of the last fit.

    Notes
    -----
    The paper minimises the sum itself, without a penalty, by coordinate descent; `RankBoost(push=...)` does that.
    Without a penalty the logarithm has the same minimum; it is convex and never overflows. Features are coded as in
    `AUCSVM`. A fit takes tens of Newton steps. A fit that StopFit ends keeps its last step, or the best C so far.

    References
    ----------
    C. Rudin, "The P-Norm Push: A simple convex ranking algorithm that concentrates at the top of the list", JMLR 10,
    2009.

    Examples
    --------
    >>> import numpy as np
    >>> from core import PNormPush
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = PNormPush(C=1.0, push=8.0).fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.predict([[2, 2], [-2, -2]])
    array([ True, False])
    """

    keeps_when_stopped = True

    C_: NonNegative
    objective_: Annotated[float, Value(), FINITE]
    n_iter_: Annotated[int, Value("iterations"), Ge(0), Le(MAX_STEPS)]

    def check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _fit_sample(self, data: TrainingData, sample: LinearSample, callback: Callback) -> None:
        values, start = self._start_path(), None
        costs = values or (DEFAULT_COST if self.C == "auto" else float(self.C),)
        stopped_at = None
        if self.C == "auto" and not values:
            validation_mask = data.hold_out(self.validation_fraction, self.random_state)
            if validation_mask is not None:
                report = _count_fits(callback, len(PUSH_COSTS) + 1)
                chosen, start, stopped_at = self._choose(sample, validation_mask, report)
                costs = (chosen,)
        report_step = None if start is not None else count_steps(callback, len(costs))
        signs, loss = self._signs(sample.rows), PushLoss(sample, self.push)
        for k, C in enumerate(costs):
            minimum = minimise_loss(
                sample.rows, loss, C=C, start=start, report=report_step, signs=signs
            )
            start = minimum.score
            self.C_, self.objective_, self.n_iter_ = C, minimum.objective, minimum.n_iter
            self._take_fit(sample, start.w)
            if values:
                self._add_to_path()
            if minimum.stopped:
                warn_stopped(k, len(costs), f"minima, at step {self.n_iter_} of the next")
                return
        if stopped_at is not None:
            warn_stopped(stopped_at, len(PUSH_COSTS), "minima; the best C of these is used")
            return
        of = MAX_STEPS * len(costs) if report_step else len(PUSH_COSTS) + 1
        with suppress(StopFit):
            callback(of, of, {"loss": self.objective_})

    def _choose(
        self,
        sample: LinearSample,
        validation_mask: npt.NDArray[np.bool_],
        report: Callable[[float], None],
    ) -> tuple[float, Affine, int | None]:
        """Return the C of the greatest partial AUC on validation rows, and its score.

        The third value is the number of C tried if the report raised StopFit; None if all were.
        """
        pauc = sample.pauc((self.fpr_min, self.fpr_max), validation_mask)
        part, signs = sample.without(validation_mask), self._signs(sample.rows)
        loss, score, best = PushLoss(part, self.push), None, -math.inf
        chosen = PUSH_COSTS[0], Affine(np.zeros(sample.rows.size), 0.0)
        for n_tried, C in enumerate(PUSH_COSTS, 1):
            minimum = minimise_loss(
                part.rows, loss, C=C, start=score, tol=LOOSE_TOLERANCE, signs=signs
            )
            score = minimum.score
            value = pauc(score.w)
            if value > best + MIN_RISE:
                best, chosen = value, (C, score)
            try:
                report(minimum.objective)
            except StopFit:
                return *chosen, n_tried
        return *chosen, None


def count_steps(callback: Callback, n_fits: int) -> Report:
    of = MAX_STEPS * n_fits
    steps = count(1)
    return lambda _, objective, gradient: callback(
        min(next(steps), of - 1), of, {"loss": objective, "gradient": gradient}
    )


def _fit_pair(
    sample: LinearSample,
    pair: tuple[float, float],
    start: Affine | None,
    tol: float,
    signs: Directions | None,
) -> Minimum:
    asymmetry, C = pair
    n_rows = sample.rows.n_rows
    cost, positive = np.zeros(n_rows), np.zeros(n_rows, dtype=np.bool_)
    positive[sample.positives] = True
    for rows, class_cost in ((sample.positives, 1.0), (sample.negatives, asymmetry)):
        weight = sample.weight[rows]
        cost[rows] = class_cost / (1.0 + asymmetry) * (weight / weight.sum())
    return minimise(
        sample.rows, positive, cost, squared_hinge_loss, C=C, start=start, tol=tol, signs=signs
    )


def _count_fits(callback: Callback, n_fits: int) -> Callable[[float], None]:
    steps = count(1)
    return lambda objective: callback(next(steps), n_fits, {"loss": objective})
