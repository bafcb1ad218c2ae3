"""Any scikit-learn estimator as a weak ranker, and what it shares with `classifiers`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from core.checkpoint import Resumable
from core.classifiers import Stack, fit_estimator
from core.coding import TwoSided, count_rows, two_sided, youden_threshold
from core.errors import ArtifactError, InvalidParameter
from core.ranker import Arrays, Floats
from core.table import Categories

from .ensemble import Ensemble
from .kinds import Kind
from .loop import LEAST_EDGE, Path

if TYPE_CHECKING:
    from .booster import Booster
    from .rules import Rule

WeakEstimator = BaseEstimator

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


@dataclass(frozen=True, slots=True)
class CutEstimator:
    """A fitted estimator, cut into a two-sided classifier."""

    estimator: Any
    threshold: float
    two_sided: TwoSided

    @property
    def d_plus(self) -> float:
        """Weight that it classifies rightly, half of all on each class."""
        return 1.0 - self.two_sided.error

    @property
    def d_minus(self) -> float:
        """Weight that it classifies wrongly."""
        return self.two_sided.error

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row."""
        above = scores_of(self.estimator, X) > self.threshold
        return np.where(above, self.two_sided.above, self.two_sided.below)


def scores_of(estimator: Any, X: Floats) -> Floats:
    """Score rows by an estimator's decision_function, else by its probability of the positive class."""
    if isinstance(estimator, Stack):  # of one classifier, as `fit_classifier` gives it
        return estimator.score(0, X)
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
    else:
        scores = estimator.predict_proba(X)[:, 1]
    return np.asarray(scores, dtype=np.float64)


class EstimatorLearner(Resumable):
    """The training rows, their weights, and the fit of an estimator to them.

    Parameters
    ----------
    template : estimator
        Cloned and fitted anew each round.
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
    """

    changing: ClassVar[tuple[str, ...]] = ("_log_weights",)

    def __init__(
        self, template: Any, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats
    ) -> None:
        self._template = template
        self._X = X
        self._positive = positive
        self._sign = np.where(positive, -1.0, 1.0)
        self._n_rows = float(count_rows(weight).sum())
        self._log_weights = np.log(weight)  # of the rows, as f grows: none underflows
        self._h = np.empty(len(positive))

    @property
    def log_f_plus(self) -> float:
        """Logarithm of F₊."""
        return float(np.logaddexp.reduce(self._log_weights[self._positive]))

    @property
    def log_f_minus(self) -> float:
        """Logarithm of F₋."""
        return float(np.logaddexp.reduce(self._log_weights[~self._positive]))

    def scan(self) -> CutEstimator | None:
        """Fit the estimator to the present weights, half of all on each class, and cut it."""
        log_f = np.where(self._positive, self.log_f_plus, self.log_f_minus)
        d = 0.5 * np.exp(self._log_weights - log_f)
        fitted = self._fit(d * self._n_rows)
        scores = scores_of(fitted, self._X)
        cut = youden_threshold(scores, self._positive, d)
        if cut is None or 1.0 - cut.p_plus - cut.p_minus < LEAST_EDGE:
            return None
        h = two_sided(cut.p_plus, cut.p_minus)
        self._h = np.where(scores > cut.value, h.above, h.below)
        return CutEstimator(fitted, cut.value, h)

    def _fit(self, weight: Floats) -> Any:
        """Fit a weak ranker to rows of these weights, whose sum is the number of rows."""
        return fit_estimator(self._template, self._X, self._positive, weight, "weak ranker")

    def update(self, found: CutEstimator, alpha: float) -> None:
        """Let f grow by alpha h; `found` is what `scan` gave last."""
        self._log_weights += self._sign * alpha * self._h

    def collect(self, path: Path) -> "EstimatorSum":
        """Sum up the estimators of a run of the loop."""
        return EstimatorSum(rounds_of(path), path.found, type(self._template).__name__)


def rounds_of(path: Path) -> npt.NDArray[np.void]:
    """Say what each round of a run of the loop added."""
    return np.array(
        [
            (h.threshold, h.two_sided.above, h.two_sided.below, alpha, h.d_plus, h.d_minus)
            for h, alpha in zip(path.found, path.alpha, strict=True)
        ],
        dtype=ROUND,
    )


class EstimatorSum(Ensemble):
    """A weighted sum of estimators, each cut into a two-sided classifier."""

    type = "estimators"
    constant = 0.0
    mean = 0.0

    def __init__(
        self, rounds: npt.NDArray[np.void], estimators: list[CutEstimator], class_name: str
    ) -> None:
        self.rounds = rounds
        self._estimators = estimators
        self._class_name = class_name

    def score(self, X: Floats, intercept: float) -> Floats:
        """Score rows by every estimator."""
        scores = np.full(len(X), intercept)
        for estimator, alpha in zip(self._estimators, self.rounds["alpha"], strict=True):
            scores += alpha * estimator.values(X)
        return scores

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... estimators on each row."""
        scores = np.zeros(len(X))
        for estimator, alpha in zip(self._estimators, self.rounds["alpha"], strict=True):
            scores = scores + alpha * estimator.values(X)
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Refuse: an estimator's score has no parts per feature that we know of."""
        raise InvalidParameter(
            f"contributions need weak_ranker 'stump', the weak rankers are {self._class_name}"
        )

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Say what was fitted, and how the rounds cut it."""
        rounds = [dict(zip(ROUND.names or (), row.tolist(), strict=True)) for row in self.rounds]
        return {"estimator": self._class_name, "cuts": rounds}

    def weak_rankers(self) -> list[CutEstimator]:
        """Give the cut estimators."""
        return list(self._estimators)

    def arrays(self) -> Arrays:
        """Refuse: an artifact holds no foreign code."""
        raise ArtifactError(
            f"only weak rankers of our own can be saved, got estimators of class {self._class_name}"
        )


def _start(
    booster: "Booster", rule: "Rule", X: Floats, positive: npt.NDArray[np.bool_], weight: Floats
) -> EstimatorLearner:
    template = booster.weak_ranker
    if not (hasattr(template, "decision_function") or hasattr(template, "predict_proba")):
        raise InvalidParameter(
            "weak_ranker must have decision_function or predict_proba, "
            f"{type(template).__name__} has neither"
        )
    return EstimatorLearner(template, X, positive, weight)


def _read(
    arrays: Mapping[str, npt.NDArray[Any]], n_rounds: int, n_categories: npt.NDArray[np.int64]
) -> EstimatorSum:
    raise ArtifactError("an artifact cannot hold estimators")


ESTIMATORS = Kind(_start, _read, takes_categories=False)
