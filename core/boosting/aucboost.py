"""AUCBoost (Long & Servedio 2007, Section 3): AdaBoost over any weak ranker, thresholded into a classifier."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le
from sklearn.base import BaseEstimator

from core.base.monotone import Monotone
from core.base.ranker import Floats
from core.base.state import FINITE, Arrays, Declared, Field, Meta, Nested, Records
from core.base.table import Categories
from core.base.training import TrainingData
from core.classifiers import (
    STACKS,
    ClassifierName,
    Stack,
    count_columns,
    fit_classifier,
    fit_estimator,
)
from core.coding import Criterion, effective_counts, two_sided, youden_threshold
from core.coding.best_split import MIN_EDGE
from core.errors import ArtifactError, InvalidParameter

from .algorithms import CutMasses, Hypothesis, StumpAlgorithm
from .booster import WEAK_LEARNERS, ExponentialBooster
from .loop import BoostingHistory, Ensemble, WeakLearner, fields_of, rounds_of
from .options import LearningRate, NRounds

ROUND = np.dtype(
    [
        ("threshold", np.float64),
        ("above", np.float64),
        ("below", np.float64),
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
    ]
)
"""One round: the score grows by alpha `above` where the estimator's score exceeds the threshold, by
alpha `below` elsewhere."""


MAX_STEP = 1e150  # of alpha, `above` and `below`: no sum of their products is infinite


@dataclass(frozen=True, slots=True)
class CutEstimator:
    """A fitted estimator cut into two values, with the fields of `ROUND`; d_plus and d_minus sum to 1."""

    estimator: Any
    threshold: float
    above: float
    below: float
    d_plus: float
    d_minus: float

    def values(self, X: Floats) -> Floats:
        above = scores_of(self.estimator, X) > self.threshold
        return np.where(above, self.above, self.below)


def scores_of(estimator: Any, X: Floats) -> Floats:
    """Return the decision_function of rows, or else their probability of the positive class, (n_rows,)."""
    if isinstance(estimator, Stack):  # of one classifier, made by `fit_classifier`
        return estimator.score(0, X)
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
    else:
        scores = estimator.predict_proba(X)[:, 1]
    return np.asarray(scores, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class CutSum(Ensemble):
    """A weighted sum of estimators, each thresholded into a two-valued classifier."""

    constant = 0.0
    mean = 0.0

    name: str
    rounds: Annotated[
        npt.NDArray[np.void],
        Records(
            ROUND,
            "n_rounds",
            threshold=FINITE,
            above=(Ge(-MAX_STEP), Le(MAX_STEP)),
            below=(Ge(-MAX_STEP), Le(MAX_STEP)),
            alpha=(Ge(-MAX_STEP), Le(MAX_STEP)),
            d_plus=FINITE,
            d_minus=FINITE,
        ),
    ]

    @abstractmethod
    def weak_rankers(self) -> list[CutEstimator]:
        """Return the thresholded estimators, one per round."""

    def score(self, X: Floats, intercept: float) -> Floats:
        scores = np.full(len(X), intercept)
        for estimator, alpha in zip(self.weak_rankers(), self.rounds["alpha"], strict=True):
            scores += alpha * estimator.values(X)
        return scores

    def contributions(self, X: Floats) -> Floats:
        """Raise InvalidParameter: the score of an estimator has no known parts per feature."""
        raise InvalidParameter(
            f"contributions require weak_ranker 'stump'; the weak rankers are {self.name}"
        )

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        names = ROUND.names or ()
        return {"estimator": self.name, "cuts": [fields_of(row, names) for row in self.rounds]}


class Foreign(Field):
    """The class name of foreign estimators; they cannot be saved, since no artifact holds foreign code."""

    def write(self, name: str, value: Any, arrays: Arrays, meta: Meta) -> None:
        raise ArtifactError(
            f"only built-in weak rankers can be saved, got estimators of class {value}"
        )

    def read(self, declared: Declared, reader: Any) -> Any:
        raise ArtifactError("an artifact cannot contain estimators")


@dataclass(frozen=True, eq=False)
class EstimatorSum(CutSum):
    """A weighted sum of user-supplied scikit-learn estimators; it cannot be saved."""

    type: ClassVar[str] = "estimators"

    name: Annotated[str, Foreign()]
    cut_estimators: list[CutEstimator]

    def weak_rankers(self) -> list[CutEstimator]:
        return self.cut_estimators


@dataclass(frozen=True, eq=False)
class ClassifierSum(CutSum):
    """A weighted sum of built-in classifiers of one kind, stored together as one stack of arrays."""

    type: ClassVar[str] = "classifiers"

    stack: Annotated[Stack, Nested(n_classifiers="n_rounds")]

    @cached_property
    def _found(self) -> list[CutEstimator]:
        names = ("threshold", "above", "below", "d_plus", "d_minus")
        return [
            CutEstimator(self.stack.take(np.array([k])), **fields_of(row, names))
            for k, row in enumerate(self.rounds)
        ]

    def weak_rankers(self) -> list[CutEstimator]:
        return self._found


class EstimatorLearner(WeakLearner):
    """Weak learner that fits a clone of a scikit-learn estimator to the reweighted training rows in each round."""

    ensemble: type[Ensemble] = EstimatorSum
    takes_categories = False
    changing: ClassVar[tuple[str, ...]] = ("_log_weights",)

    def __init__(self, parameters: Any, algorithm: Any, data: TrainingData) -> None:
        self._weak_ranker = template = parameters.weak_ranker
        scores = hasattr(template, "decision_function") or hasattr(template, "predict_proba")
        if not (scores or isinstance(template, str)):
            raise InvalidParameter(
                f"weak_ranker must have decision_function or predict_proba; {type(template).__name__} has "
                "neither"
            )
        self._data = data
        self._sign = np.where(data.positive, -1.0, 1.0)
        self._n_rows = float(effective_counts(data.weight).sum())
        self._log_weights = np.log(data.weight)  # weights of the rows, as f grows: none underflows
        self._h = np.empty(len(data.positive))

    @property
    def log_f(self) -> tuple[float, float]:
        positive = self._data.positive
        return (
            float(np.logaddexp.reduce(self._log_weights[positive])),
            float(np.logaddexp.reduce(self._log_weights[~positive])),
        )

    def scan(self) -> CutEstimator | None:
        """Fit the estimator to the current weights (½ on each class), and return it with its threshold."""
        positive = self._data.positive
        d = 0.5 * np.exp(self._log_weights - np.where(positive, *self.log_f))
        fitted = self._fit(d * self._n_rows)
        scores = scores_of(fitted, self._data.X)
        cut = youden_threshold(scores, positive, d)
        if cut is None or 1.0 - cut.p_plus - cut.p_minus < MIN_EDGE:
            return None
        h = two_sided(cut.p_plus, cut.p_minus)
        self._h = np.where(scores > cut.value, h.above, h.below)
        return CutEstimator(fitted, cut.value, h.above, h.below, 1.0 - h.error, h.error)

    def _fit(self, weight: Floats) -> Any:
        data = self._data
        return fit_estimator(self._weak_ranker, data.X, data.positive, weight, "weak ranker")

    def update(self, weak_ranker: CutEstimator, alpha: float) -> None:
        self._log_weights += self._sign * alpha * self._h

    def collect(self, history: BoostingHistory) -> CutSum:
        return EstimatorSum(
            type(self._weak_ranker).__name__, rounds_of(history, ROUND), history.weak_rankers
        )


class ClassifierLearner(EstimatorLearner):
    """Fits a built-in classifier to the reweighted rows each round, seeded by random_state and the round's number."""

    ensemble = ClassifierSum
    takes_categories = True
    changing = ("_log_weights", "_round")

    def __init__(self, parameters: Any, algorithm: Any, data: TrainingData) -> None:
        super().__init__(parameters, algorithm, data)
        self._seed = parameters.random_state
        self._round = 0

    def _fit(self, weight: Floats) -> Stack:
        draw = np.random.SeedSequence([self._seed, self._round]).generate_state(1)
        self._round += 1
        data, name = self._data, cast(ClassifierName, self._weak_ranker)
        return fit_classifier(name, data.X, data.positive, weight, data.n_categories, int(draw[0]))

    def collect(self, history: BoostingHistory) -> CutSum:
        name: ClassifierName = self._weak_ranker
        fitted = [weak_ranker.estimator for weak_ranker in history.weak_rankers]
        stack = STACKS[name].join(fitted, self._data.n_categories)
        return ClassifierSum(name, rounds_of(history, ROUND), stack)


@dataclass(kw_only=True, eq=False, repr=False)
class AUCBoost(ExponentialBooster):
    """AdaBoost over any weak ranker, each turned into a classifier that errs equally on both classes.

    Use it if you want to boost a classifier of your own (`weak_ranker` takes any scikit-learn estimator). With stumps,
    `RankBoost` reaches a better ranking in the same number of rounds.

    AdaBoost starts with half of the weight on each class (½D₊ + ½D₋). Each round sets a threshold on the weak ranker
    where TPR - FPR is greatest. A coin toss on one side of the threshold makes its error rates on both classes equal
    (Lemma 4). Any edge over a random ranking, γ = AUC - ½, then becomes an advantage of at least γ/4 over a random
    classifier, which AdaBoost can boost.

    Attributes
    ----------
    rounds_ : structured ndarray of shape (n_taken,)
        One record per round. d_minus is the error of the two-sided classifier.
    loss_ : ndarray of shape (n_taken,), float64
        ∏ Z_s up to each round: the mean of e^{-y f} with half of the weight on each class. Its square bounds 1 - AUC on
        the training rows.
    z_ : ndarray of shape (n_taken,), float64
        Z_t, the factor by which each round multiplies that loss.
    intercept_ : float
        The part of the score that is the same for all rows; `predict` has its threshold at 0.

    Notes
    -----
    Differences from the paper: the expected value of the coin, in [-1, 1], replaces the coin. So scores are the same in
    every run and finer, with the same edge. The bound ∏ Z_t² holds for the AUC of the scores f; Theorem 2 states it for
    sign(f). Among equally good thresholds on an estimator's scores, the one with the smallest difference between the
    error rates is taken; for stumps, the first in scan order.

    The coin makes any weak ranker usable, but it slows boosting.

    Time: O(n_rounds · n_features · n_samples) after one sort of each column for stumps; otherwise n_rounds fits of the
    estimator. Only sums of stumps and of the named classifiers can be saved.

    References
    ----------
    P. M. Long and R. A. Servedio, "Boosting the area under the ROC curve", NIPS 2007: Theorem 2,
    Lemma 4.

    Examples
    --------
    >>> from core import AUCBoost
    >>> X, y = [[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]], [0, 0, 1, 0, 1, 1]
    >>> ranker = AUCBoost(weak_ranker="logistic", n_rounds=3).fit(X, y)
    >>> ranker.predict(X).tolist()
    [0, 0, 1, 1, 1, 1]
    """

    n_rounds: NRounds = 100
    weak_ranker: Annotated[
        Literal["stump"] | ClassifierName | BaseEstimator,
        Doc(
            'The weak ranker of each round: "stump", a threshold on one feature, or a classifier, "logistic", '
            '"linear_svm" or "random_forest". In Python it can also be any scikit-learn estimator that takes '
            "sample weights and has decision_function or predict_proba."
        ),
    ] = "stump"
    learning_rate: LearningRate = 1.0
    monotone: Monotone = None

    @property
    def z_(self) -> Floats:
        """Normaliser Z_t of each round: the factor by which it changes AdaBoost's loss."""
        loss = np.concatenate([[1.0], self.loss_])
        return np.asarray(loss[1:] / loss[:-1])

    def check_parameters(self) -> None:
        if self.monotone and self.weak_ranker != "stump":
            raise InvalidParameter(
                f"monotone requires weak_ranker 'stump', got {self.weak_ranker!r}: a sum of other classifiers "
                "cannot be proven monotone"
            )

    def _weak_learner(self) -> type[WeakLearner]:
        if self.weak_ranker == "stump":
            return WEAK_LEARNERS["stump"]
        return ClassifierLearner if isinstance(self.weak_ranker, str) else EstimatorLearner

    def _known_sizes(self) -> dict[str, Any]:
        if self._weak_learner() is not ClassifierLearner:
            return super()._known_sizes()
        name: Any = self.weak_ranker
        n_columns = count_columns(self._n_categories())
        return super()._known_sizes() | {
            "name": name,
            "stack": STACKS[name],
            "n_columns": n_columns,
        }

    def _algorithm(self) -> "BalancedAlgorithm":
        return BalancedAlgorithm(learning_rate=self.learning_rate)


class BalancedAlgorithm(StumpAlgorithm):
    """AUCBoost's rules: splits made two-sided by Lemma 4, half of the weight on each class, step ½ ln((1 - ε)/ε)."""

    criterion = Criterion.YOUDEN

    def hypothesis(self, masses: CutMasses, share_p: float) -> Hypothesis:
        """Return the classifier of a split, with outputs such that it errs equally on both classes (Lemma 4)."""
        if masses.above_p >= masses.above_n:
            sign, h = 1, two_sided(masses.below_p, masses.above_n)
        else:
            sign, h = -1, two_sided(masses.above_p, masses.below_n)
        return Hypothesis(sign, h.above, h.below, 1.0 - h.error, h.error)

    def loss(self, log_f: Floats, start: Floats) -> float:
        """Return the loss ½ F₊/W₊ + ½ F₋/W₋, where W is the weight of each class at the start."""
        return 0.5 * (math.exp(log_f[0] - start[0]) + math.exp(log_f[1] - start[1]))
