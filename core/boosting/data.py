"""Training data of a booster: rows of two classes, their validation part, and the metric of scores."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from core.base import state
from core.base.columns import ColumnTable, find_nth
from core.base.ranker import Floats, Groups
from core.base.splits import draw_part, number_inseparable
from core.base.target import MAX_WEIGHT
from core.base.warning import warn
from core.errors import InvalidData
from core.metrics import auc

Bools = state.Booleans
Integers = state.Integers

# Greatest number of rows, or pairs, of the sample whose training AUC is reported as progress.
SAMPLE_ROWS = 5_000


class Evaluation(NamedTuple):
    """Rows, and a metric of their ranking.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous; ColumnTable or StandIns
        For its scores, `WeakLearner.extend` makes stand-ins of a table that is read column by column.
    shape : tuple of int
        Shape of their scores: (n_rows,), or (n_rows, n_labels).
    size : int
        Number of rows, or of pairs: the cost of an evaluation.
    metric : callable scores -> float
        The AUC, or another number that is higher for a better ranking.
    name : str
        Name of the metric in the callback's figures.
    """

    X: Any
    shape: tuple[int, ...]
    size: int
    metric: Callable[[Floats], float]
    name: str = "validation_auc"


class ClassRows(NamedTuple):
    """Rows with classes, or labels, and weights.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64; or ColumnTable
    positive : ndarray of shape (n_rows,) or (n_rows, n_labels), bool
    weight : ndarray of shape (n_rows,), float64
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    group : ndarray of shape (n_rows,), uint64, or None
        Rows with equal values stay in one part; None: equal rows do.
    """

    X: Any
    positive: Bools
    weight: Floats
    n_categories: Integers
    group: Groups | None = None

    @property
    def log_least_weight(self) -> float:
        """Logarithm of the minimum weight of a pair of a positive and a negative."""
        classes = self.weight[self.positive], self.weight[~self.positive]
        return sum(math.log(weight.min()) for weight in classes)

    def least_difference(self, scores: Floats) -> float:
        """Return the minimum difference of the scores of a positive and a negative."""
        return float(scores[self.positive].min() - scores[~self.positive].max())

    def sample(self) -> Evaluation:
        """Return a sample of at most `SAMPLE_ROWS` rows, equally many of each stratum.

        If a stratum has fewer, all of it is taken, and more of the others. Sampled rows are evenly spaced, and each has
        the weight of the rows of its stratum that it stands for.
        """
        if len(self.positive) <= SAMPLE_ROWS:
            return self.evaluation()
        strata = self._strata()
        sizes = [int(np.count_nonzero(mask)) for mask in strata]
        taken, scale = np.zeros(len(self.positive), dtype=np.bool_), np.empty(0)
        chosen = np.empty(0, dtype=np.int64)
        for mask, size in zip(strata, sizes, strict=True):
            most = min(max(SAMPLE_ROWS // len(strata), SAMPLE_ROWS - min(sizes)), size)
            some = find_nth(mask, np.arange(most) * size // most)
            taken[some] = True
            chosen, scale = np.append(chosen, some), np.append(scale, np.full(most, size / most))
        sample = self._take(taken)
        scale = scale[np.argsort(chosen)]
        return sample._replace(weight=np.minimum(sample.weight * scale, MAX_WEIGHT)).evaluation()

    def evaluation(self) -> Evaluation:
        """Return the evaluation by the AUC; for several labels over all (row, label) pairs."""
        n_rows, n_labels = len(self.positive), self.positive.size // len(self.positive)
        positive, weight = self.positive.ravel(), np.repeat(self.weight, n_labels)
        X = self.X if isinstance(self.X, ColumnTable) else np.ascontiguousarray(self.X)
        return Evaluation(
            X, self.positive.shape, n_rows, lambda scores: auc(positive, scores.ravel(), weight)
        )

    def split_off(self, fraction: float, seed: int) -> tuple["ClassRows", "ClassRows"]:
        """Draw a validation part, a share of each class's rows; return the training and the validation rows, in order.

        Rows of a group stay on one side, or without groups equal rows: see `core.base.splits.number_inseparable`. If
        equal rows leave a part without a class, they are parted, and a UserWarning says so.

        Raises
        ------
        InvalidData
            A class has only one row, or group, or a part would have no row of a class.
        """
        unit = number_inseparable(self.X, self.positive, self.weight, self.group)
        validation_mask = draw_part(self.positive, fraction, seed, unit)
        if validation_mask is None and self.group is not None:
            raise InvalidData(
                "early stopping requires rows of each class in at least 2 groups: some are held out, and the "
                "rows of a group stay together"
            )
        if validation_mask is None and unit is not None:
            validation_mask = draw_part(self.positive, fraction, seed)
            if validation_mask is not None:
                warn(
                    "early stopping holds out duplicates of training rows, because all rows of a class are equal: the "
                    "number of rounds may be too high"
                )
        if validation_mask is None:
            raise InvalidData(
                "early stopping requires at least 2 rows of positive weight in each class, got 1"
            )
        parts = self._take(~validation_mask), self._take(validation_mask)
        if any(part.positive.all() or not part.positive.any() for part in parts):
            raise InvalidData(
                "early stopping requires labels of 0 and 1 in the training and in the validation part: use "
                "more rows, or another validation_fraction or random_state"
            )
        return parts

    def _strata(self) -> list[Bools]:
        """Return which rows have the label, or any of several, and which have none; no empty stratum."""
        has: Bools = self.positive if self.positive.ndim == 1 else np.any(self.positive, axis=1)
        return [mask for mask in (has, ~has) if mask.any()]

    def _take(self, rows: Bools) -> "ClassRows":
        group = None if self.group is None else self.group[rows]
        X = self.X.take(rows) if isinstance(self.X, ColumnTable) else self.X[rows]
        positive, weight = self.positive[rows], self.weight
        is_one_number = weight.strides == (0,)  # that takes no memory
        weight = np.broadcast_to(weight[0], len(positive)) if is_one_number else weight[rows]
        return ClassRows(X, positive, weight, self.n_categories, group)
