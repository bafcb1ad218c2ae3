"""The greedy pairwise heuristic: a linear combination of columns, added one by one by partial AUC."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le

from core.base.monotone import Directions, Monotone, Verification, walk_slopes
from core.base.ranker import Callback, ContributionRanker, FitCost, Floats
from core.base.state import FINITE, Array, Value
from core.base.target import MIN_WEIGHT
from core.base.training import TrainingData
from core.coding import youden_threshold
from core.metrics import partial_auc
from core.metrics.window import FprMax, FprMin, check_window

from .design import column_scales, standardise

Coarseness = Annotated[
    int,
    Ge(2),
    Le(10_000),
    Doc("Number of angles θ to try for each column, on a grid over the half circle."),
]

# Increase of a partial AUC, in [0, 1], that is more than rounding.
MIN_RISE = 1e-12

# Decimals that scores, in standard deviations, are rounded to: rows with the same sum tie, in any order of addition.
DECIMALS = 12


@dataclass(kw_only=True, eq=False, repr=False)
class GreedyPairsParameters:
    """The parameters of `GreedyPairs`."""

    fpr_min: FprMin = 0.0
    fpr_max: FprMax = 0.1
    coarseness: Coarseness = 100
    monotone: Monotone = None


class GreedyPairs(GreedyPairsParameters, ContributionRanker):
    """Linear combination of columns, built greedily to maximise the partial AUC.

    Use it as a baseline: it optimises the metric itself, without a margin or a loss. It takes numeric columns only.

    Columns are standardised and sorted by their own partial AUC, increasing or decreasing. The combination s starts as
    the best column. Each next column z joins it as cos(θ) s + sin(θ) z, with the best θ of a grid over the half circle,
    if that increases the partial AUC.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Weights of the standardised columns; 0 for those that did not increase the partial AUC.
    mean_, scale_ : ndarray of shape (n_features_in_,), float64
        Mean and standard deviation of each column. A missing value counts as the mean.
    pauc_ : ndarray of shape (n_tried,), float64
        Interpolated partial AUC of the training rows after each column tried.
    loss_ : ndarray of shape (n_tried,), float64
        1 - pauc_, which never increases.
    offset_ : float
        Part of every score, so that `predict` has the threshold with the greatest TPR - FPR on the training rows.

    Notes
    -----
    The publication combines the outputs of classifiers. Narasimhan & Agarwal use columns, in any window, with a
    coarseness of 100. The publication first joins the best of all pairs, which costs the square of the number of
    columns; here the order is by each column's own partial AUC. Ties count as diagonals of the curve: counted strictly,
    a column with few values would have a partial AUC of 0.

    Time: O(n_features · coarseness · n_samples).

    References
    ----------
    M. T. Ricamato and F. Tortorella, "Partial AUC maximization in a linear combination of
    dichotomizers", Pattern Recognition 44, 2011.
    H. Narasimhan and S. Agarwal, "Support vector algorithms for optimizing the partial area under
    the ROC curve": appendix B.2.

    Examples
    --------
    >>> import numpy as np
    >>> from core import GreedyPairs
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> ranker = GreedyPairs().fit(X, X[:, 0] + 0.5 * X[:, 1] > 0.5)
    >>> ranker.coef_.round(2), ranker.predict([[2, 2], [-2, -2]])
    (array([0.89, 0.42]), array([ True, False]))
    """

    fit_cost = FitCost(12e-6)

    coef_: Annotated[Floats, Array("n_features"), Ge(-1e100), Le(1e100)]
    mean_: Annotated[Floats, Array("n_features"), FINITE]
    scale_: Annotated[Floats, Array("n_features"), Gt(0.0), FINITE]
    pauc_: Annotated[Floats, Array("n_features"), Ge(0.0), Le(1.0)]
    loss_: Floats
    offset_: Annotated[float, Value(), Ge(-1e200), Le(1e200)]

    def score_rows(self, X: Floats) -> Floats:
        return self._combine(X) + self.offset_

    def structure(self) -> dict[str, Any]:
        """Describe the combination as JSON: the weight per unit of each column, largest first."""
        order = np.argsort(-np.abs(self.coef_), kind="stable")
        return {
            "type": "linear",
            "offset": self.offset_,
            "pauc": float(self.pauc_[-1]),
            "features": [
                {
                    "feature": self._feature_name(j),
                    "weight": self.coef_[j] / self.scale_[j],
                    "standardised_weight": float(self.coef_[j]),
                    "mean": float(self.mean_[j]),
                }
                for j in order.tolist()
                if self.coef_[j] != 0.0
            ],
        }

    def walk_monotone(self, directions: Directions) -> Verification:
        return walk_slopes(directions, self.coef_, self.mean_, self.scale_)

    def check_parameters(self) -> None:
        check_window(self.fpr_min, self.fpr_max)

    def _contributions(self, X: Floats) -> Floats:
        return self.coef_ * _standard(X, self.mean_, self.scale_)

    def _combine(self, X: Floats) -> Floats:
        return np.asarray(np.round(self._contributions(X).sum(axis=1), DECIMALS))

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        X, positive, weight = data.X, data.positive, data.weight
        self.mean_, self.scale_ = column_scales(X, weight)
        Z = np.ascontiguousarray(_standard(X, self.mean_, self.scale_).T)
        pauc = PartialAuc(positive, weight, self.fpr_min, self.fpr_max)
        own = np.array([[pauc.area(z), pauc.area(-z)] for z in Z])
        directions = self.find_directions()
        if directions is None:
            directions = np.zeros(len(Z), dtype=np.int8)
        own[directions < 0, 0] = own[directions > 0, 1] = -1.0  # the other sign is not allowed
        order = np.argsort(-np.round(own.max(axis=1), 12), kind="stable")
        first = order[0]
        self.coef_ = np.zeros(len(Z))
        self.coef_[first] = 1.0 if own[first, 0] >= own[first, 1] else -1.0
        score, best = self.coef_[first] * Z[first], own[first].max()
        areas = []
        for step, j in enumerate(order, start=1):
            if step > 1 and Z[j].any():
                kept, joins = self._join(pauc, score, Z[j], best, int(directions[j]))
                joined = kept * score + joins * Z[j]
                # as a column, so that the angles mean the same at every step
                size = math.sqrt(np.average(joined**2, weights=weight)) or 1.0
                joined /= size
                area = pauc.area(joined)
                if area > best + MIN_RISE:
                    score, best = joined, area
                    self.coef_ *= kept / size
                    self.coef_[j] = joins / size
            areas.append(best)
            callback(step, len(Z), {"loss": 1.0 - best, "pauc": best})
        self.pauc_ = np.array(areas)
        self._restore()
        self._cut(X, positive, weight)

    def _join(
        self, pauc: "PartialAuc", score: Floats, z: Floats, best: float, direction: int
    ) -> tuple[float, float]:
        """Return the best weights of `score` and the column `z`, of the sign `direction` unless 0; (1, 0) if z is no
        better.
        """
        chosen = 1.0, 0.0
        angles = np.linspace(-0.5 * math.pi, 0.5 * math.pi, self.coarseness + 1)
        kept = np.cos(angles)
        kept[[0, -1]] = 0.0  # not 6e-17, which would break ties
        for pair in zip(kept.tolist(), np.sin(angles).tolist(), strict=True):
            if pair[1] * direction < 0.0:
                continue
            area = pauc.area(pair[0] * score + pair[1] * z)
            if area > best + MIN_RISE:
                chosen, best = pair, area
        return chosen

    def _cut(self, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> None:
        cut = youden_threshold(self._combine(X), positive, weight)
        self.offset_ = 0.0 if cut is None else -cut.value

    def _restore(self) -> None:
        self.loss_ = 1.0 - self.pauc_


def _standard(X: Floats, mean: Floats, scale: Floats) -> Floats:
    return np.nan_to_num(standardise(X, mean, scale), copy=False, nan=0.0)


class PartialAuc:
    """The partial AUC of the training rows, computed from only the rows that can lie in the window."""

    def __init__(
        self, positive: npt.NDArray[np.bool_], weight: Floats, fpr_min: float, fpr_max: float
    ) -> None:
        self._positive = positive
        self._negative = ~positive
        # Divided by the class's greatest weight, which changes no area: the sums must be valid weights, too.
        greatest = np.where(positive, weight[positive].max(), weight[~positive].max())
        self._weight = np.where(weight < MIN_WEIGHT * greatest, 0.0, weight / greatest)
        self._totals = self._mass(np.ones(len(positive), dtype=np.bool_))
        self._window = fpr_min, fpr_max

    def area(self, scores: Floats) -> float:
        """Return the interpolated partial AUC of `scores`; all rows below the window count as one."""
        scores = np.round(scores, DECIMALS)
        kept = self._in_window(scores)
        if kept.all():
            return partial_auc(self._positive, scores, *self._window, sample_weight=self._weight)
        rest = np.maximum(self._totals - self._mass(kept), 0.0)
        below = np.full(2, scores[~kept].max())
        return partial_auc(
            np.append(self._positive[kept], [True, False]),
            np.append(scores[kept], below),
            *self._window,
            sample_weight=np.append(self._weight[kept], rest),
        )

    def _in_window(self, scores: Floats) -> npt.NDArray[np.bool_]:
        negatives = scores[self._negative]
        n_kept = math.ceil(self._window[1] * len(negatives))
        while n_kept < len(negatives):
            lowest = len(negatives) - n_kept
            kept = scores >= np.partition(negatives, lowest)[lowest]
            if self._mass(kept)[1] >= self._window[1] * self._totals[1]:
                return np.asarray(kept)
            n_kept *= 2
        return np.ones(len(scores), dtype=np.bool_)

    def _mass(self, rows: npt.NDArray[np.bool_]) -> Floats:
        sides = self._positive, self._negative
        return np.array([self._weight[rows & side].sum() for side in sides])
