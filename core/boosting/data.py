"""Training data of a booster, rows of two classes or listed pairs; its validation part, and the metric of scores."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.base import state
from core.base.columns import ColumnTable, find_nth
from core.base.ranker import Floats, Groups
from core.base.splits import draw_fraction, draw_part, number_inseparable
from core.base.target import MAX_WEIGHT, Pairs
from core.errors import InvalidData
from core.metrics import auc, pair_order

Bools = state.Booleans
Integers = state.Integers

# Greatest number of rows, or pairs, of the sample whose training AUC is reported as progress.
SAMPLE_ROWS = 5_000

# Pairs that the training and the validation part need, each, if items are held out: fewer say little.
MIN_PAIRS = 30


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


class Rows(NamedTuple):
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

    def split_off(self, fraction: float, seed: int) -> tuple["Rows", "Rows"]:
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
                "early stopping needs rows of each class in at least 2 groups: some are held out, "
                "and no group is parted"
            )
        if validation_mask is None and unit is not None:
            validation_mask = draw_part(self.positive, fraction, seed)
            if validation_mask is not None:
                warnings.warn(
                    "early stopping has held out copies of rows that it learnt from: all rows of a class are equal",
                    UserWarning,
                    stacklevel=4,
                )
        if validation_mask is None:
            raise InvalidData(
                "early stopping needs at least 2 rows of positive weight in each class, got 1"
            )
        parts = self._take(~validation_mask), self._take(validation_mask)
        if any(part.positive.all() or not part.positive.any() for part in parts):
            raise InvalidData(
                "early stopping needs labels of 0 and 1 in the training and in the validation part: "
                "more rows, or another validation_fraction or random_state"
            )
        return parts

    def _strata(self) -> list[Bools]:
        """Return which rows have the label, or any of several, and which have none; no empty stratum."""
        has: Bools = self.positive if self.positive.ndim == 1 else np.any(self.positive, axis=1)
        return [mask for mask in (has, ~has) if mask.any()]

    def _take(self, rows: Bools) -> "Rows":
        group = None if self.group is None else self.group[rows]
        X = self.X.take(rows) if isinstance(self.X, ColumnTable) else self.X[rows]
        positive, weight = self.positive[rows], self.weight
        is_one_number = weight.strides == (0,)  # that takes no memory
        weight = np.broadcast_to(weight[0], len(positive)) if is_one_number else weight[rows]
        return Rows(X, positive, weight, self.n_categories, group)


class ListedPairs(NamedTuple):
    """Pairs (better, worse) of items.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        The whole table.
    rows : ndarray of shape (n_items,), int64
        The row of each item, ascending.
    better, worse : ndarray of shape (n_pairs,), uint32
        Items. No pair occurs twice; they ascend, so that the result does not depend on the order of the list.
    weight : ndarray of shape (n_pairs,), float64
        Sum of the weights of all pairs of these two items.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    group : ndarray of shape (n_rows,), uint64, or None
        For each row of the table; items with equal values are held out together; None: equal items are.
    """

    X: Floats
    rows: Integers
    better: npt.NDArray[np.uint32]
    worse: npt.NDArray[np.uint32]
    weight: Floats
    n_categories: Integers
    group: Groups | None = None

    @classmethod
    def of(
        cls, X: Floats, pairs: Pairs, n_categories: Integers, group: Groups | None = None
    ) -> "ListedPairs":
        """Return the pairs with numbered items, repeated pairs merged; O(n_pairs log n_pairs)."""
        occurs = np.zeros(len(X), dtype=np.bool_)
        occurs[pairs.better] = True
        occurs[pairs.worse] = True
        rows = np.flatnonzero(occurs)
        number = np.cumsum(occurs, dtype=np.int64) - 1
        key = number[pairs.better] * len(rows) + number[pairs.worse]
        # Sorted by weight, too: sums must not depend on the order of the list.
        order = np.lexsort((pairs.weight, key))
        key = key[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        better, worse = np.divmod(key[first], len(rows))
        weight = np.add.reduceat(pairs.weight[order], first)
        ends = better.astype(np.uint32), worse.astype(np.uint32)
        return cls(X, rows, *ends, weight, n_categories, group)

    @property
    def log_least_weight(self) -> float:
        """Logarithm of the minimum weight of a pair."""
        return math.log(self.weight.min())

    def least_difference(self, scores: Floats) -> float:
        """Return the minimum difference of the scores of a better item and its worse one."""
        return float((scores[self.rows[self.better]] - scores[self.rows[self.worse]]).min())

    def by_item(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return for each item the weight of the pairs in which it is the better one, and the worse one."""
        n = len(self.rows)
        better, worse = np.bincount(self.better, weight, n), np.bincount(self.worse, weight, n)
        return better.astype(np.float64, copy=False), worse.astype(np.float64, copy=False)

    def sample(self) -> Evaluation:
        """Return a sample of at most `SAMPLE_ROWS` evenly spaced pairs."""
        return self._evaluation(math.ceil(len(self.weight) / SAMPLE_ROWS))

    def evaluation(self) -> Evaluation:
        """Return the evaluation by the weighted fraction of pairs in order, for pairs of two classes the AUC."""
        return self._evaluation(1)

    def _evaluation(self, step: int) -> Evaluation:
        items, ends = np.unique(self._ends()[::step], return_inverse=True)
        order = partial(pair_order, pairs=ends.reshape(-1, 2), pair_weight=self.weight[::step])
        X = np.ascontiguousarray(self.X[self.rows[items]])
        return Evaluation(X, (len(items),), len(self.weight[::step]), order)

    def split_off(self, fraction: float, seed: int) -> tuple["ListedPairs", "ListedPairs"]:
        """Return training and validation pairs that share no item, if there are enough pairs.

        All pairs of an item, of its copies and of the other items of its group tell of it. So items are held out, equal
        ones and groups together: pairs of held-out items validate, pairs of the others train, pairs between the two are
        not used. Holding out rows does the same to the pairs of two classes. A fraction s of the items leaves about
        (1 - s)² of the pairs for training and s² for validation. If either part has fewer than `MIN_PAIRS`, pairs are
        held out instead, all pairs of the same two items together; the validation part then tells of new pairs of known
        items, and a UserWarning says so.

        The draw depends on the seed, on the items and on which of them are paired, not on the order of the list.

        Raises
        ------
        InvalidData
            All pairs are of the same two items.
        """
        rng = np.random.Generator(np.random.Philox(seed))
        X, ends, n_items = self.X[self.rows], self._ends(), len(self.rows)
        group = None if self.group is None else self.group[self.rows]
        unit = number_inseparable(X, np.zeros(n_items, np.bool_), np.ones(n_items), group)
        if unit is not None:
            ends, n_items = unit[ends], int(unit.max()) + 1
        if n_items < 2:
            raise InvalidData("early stopping needs items of at least 2 groups, got 1")
        better_mask, worse_mask = _draw_mask(n_items, fraction, rng)[ends].T
        training, validation = ~(better_mask | worse_mask), better_mask & worse_mask
        if min(training.sum(), validation.sum()) < MIN_PAIRS:
            units, number = np.unique(
                ends.min(axis=1) * n_items + ends.max(axis=1), return_inverse=True
            )
            if len(units) < 2:
                raise InvalidData("early stopping needs pairs of at least 3 items, got pairs of 2")
            warnings.warn(
                "early stopping has held out pairs, because there are too few items to hold some out: it "
                "estimates the order of new pairs of known items",
                UserWarning,
                stacklevel=4,
            )
            validation = _draw_mask(len(units), fraction, rng)[number]
            training = ~validation
        return self._take(training), self._take(validation)

    def _ends(self) -> Integers:
        return np.stack([self.better, self.worse], axis=1).astype(np.int64)

    def _take(self, which: Bools) -> "ListedPairs":
        better, worse = (self.rows[items[which]] for items in (self.better, self.worse))
        pairs = Pairs(better, worse, self.weight[which])
        return ListedPairs.of(self.X, pairs, self.n_categories, self.group)


def _draw_mask(n: int, fraction: float, rng: np.random.Generator) -> Bools:
    mask = np.zeros(n, dtype=np.bool_)
    mask[draw_fraction(np.arange(n), fraction, rng)] = True
    return mask
