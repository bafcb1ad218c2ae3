"""What a booster learns from, rows of two classes or listed pairs; what is held out, and how scores are evaluated."""

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.base import state
from core.base.ranker import Floats, Groups
from core.base.splits import draw_fraction, draw_part, number_inseparable
from core.base.target import MAX_WEIGHT, Pairs
from core.errors import InvalidData
from core.metrics import auc, pair_order

Bools = state.Booleans
Integers = state.Integers

# The training AUC of the progress is that of so many rows or pairs at most.
SAMPLE_ROWS = 5_000

# Pairs that each part needs if items are held out: fewer say little.
MIN_PAIRS = 30


class Evaluation(NamedTuple):
    """Rows, and how good a ranking of them is.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64, C-contiguous
    shape : tuple of int
        Of their scores: (n_rows,), or (n_rows, n_labels).
    size : int
        What an evaluation costs: the number of rows, or of pairs.
    metric : callable scores -> float
        The AUC, or another number that is higher for a better ranking.
    name : str
        What the callback hears it called.
    """

    X: Floats
    shape: tuple[int, ...]
    size: int
    metric: Callable[[Floats], float]
    name: str = "validation_auc"


class Rows(NamedTuple):
    """Rows with their classes, or labels, and weights.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,) or (n_rows, n_labels), bool
    weight : ndarray of shape (n_rows,), float64
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    group : ndarray of shape (n_rows,), uint64, or None
        Rows with equal values are never parted; None: equal rows are not.
    """

    X: Floats
    positive: Bools
    weight: Floats
    n_categories: Integers
    group: Groups | None = None

    @property
    def log_least_weight(self) -> float:
        """Logarithm of the least weight of a pair of a positive and a negative."""
        classes = self.weight[self.positive], self.weight[~self.positive]
        return sum(math.log(weight.min()) for weight in classes)

    def least_difference(self, scores: Floats) -> float:
        """Return the least difference of a positive's score and a negative's."""
        return float(scores[self.positive].min() - scores[~self.positive].max())

    def sample(self) -> Evaluation:
        """Take so few rows that an AUC after a round is cheap: as many of each stratum.

        Where a stratum has fewer, all of it is taken, and more of the others.

        They are evenly spaced, and each weighs for those of its stratum that it stands for.
        """
        if len(self.positive) <= SAMPLE_ROWS:
            return self.evaluation()
        strata = self._strata()
        rarest = min(map(len, strata))
        taken, weight = np.zeros(len(self.positive), dtype=np.bool_), self.weight.copy()
        for rows in strata:
            most = min(max(SAMPLE_ROWS // len(strata), SAMPLE_ROWS - rarest), len(rows))
            some = rows[np.arange(most) * len(rows) // most]
            taken[some] = True
            weight[some] = np.minimum(weight[some] * (len(rows) / len(some)), MAX_WEIGHT)
        return self._replace(weight=weight)._take(taken).evaluation()

    def evaluation(self) -> Evaluation:
        """Judge by the AUC; of several labels, over all (row, label) pairs."""
        n_rows, n_labels = len(self.positive), self.positive.size // len(self.positive)
        positive, weight = self.positive.ravel(), np.repeat(self.weight, n_labels)
        X = np.ascontiguousarray(self.X)
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
            A class has one row, or group, only, or a part would have no row of one.
        """
        unit = number_inseparable(self.X, self.positive, self.weight, self.group)
        held = draw_part(self.positive, fraction, seed, unit)
        if held is None and self.group is not None:
            raise InvalidData(
                "early stopping needs rows of each class in at least 2 groups: some are held out, "
                "and no group is parted"
            )
        if held is None and unit is not None:
            held = draw_part(self.positive, fraction, seed)
            if held is not None:
                warnings.warn(
                    "early stopping has held out copies of rows that it learnt from: all rows of a class are equal",
                    UserWarning,
                    stacklevel=4,
                )
        if held is None:
            raise InvalidData(
                "early stopping needs at least 2 rows of positive weight in each class, got 1"
            )
        parts = self._take(~held), self._take(held)
        if any(part.positive.all() or not part.positive.any() for part in parts):
            raise InvalidData(
                "early stopping needs labels of 0 and 1 in the training and in the validation part: "
                "more rows, or another validation_fraction or random_state"
            )
        return parts

    def _strata(self) -> list[Integers]:
        """Return the rows that have the label, or one of several, and those that have none; neither list is empty."""
        has = self.positive if self.positive.ndim == 1 else self.positive.any(axis=1)
        return [rows for rows in (np.flatnonzero(has), np.flatnonzero(~has)) if len(rows)]

    def _take(self, rows: Bools) -> "Rows":
        group = None if self.group is None else self.group[rows]
        return Rows(self.X[rows], self.positive[rows], self.weight[rows], self.n_categories, group)


class ListedPairs(NamedTuple):
    """Pairs (better, worse) between the items that occur in them.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        The whole table.
    rows : ndarray of shape (n_items,), int64
        The row of each item, ascending.
    better, worse : ndarray of shape (n_pairs,), uint32
        Items. No pair comes twice; ascending, so that the order of the list does not matter.
    weight : ndarray of shape (n_pairs,), float64
        The sum over all pairs of these two.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    group : ndarray of shape (n_rows,), uint64, or None
        Of each row of the table: items with equal values are held out together; None: equal items are.
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
        """Number the items that occur, and merge the pairs that come more than once; O(n_pairs log n_pairs)."""
        occurs = np.zeros(len(X), dtype=np.bool_)
        occurs[pairs.better] = True
        occurs[pairs.worse] = True
        rows = np.flatnonzero(occurs)
        number = np.cumsum(occurs, dtype=np.int64) - 1
        key = number[pairs.better] * len(rows) + number[pairs.worse]
        # By weight too: sums must not depend on the list's order.
        order = np.lexsort((pairs.weight, key))
        key = key[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        better, worse = np.divmod(key[first], len(rows))
        weight = np.add.reduceat(pairs.weight[order], first)
        ends = better.astype(np.uint32), worse.astype(np.uint32)
        return cls(X, rows, *ends, weight, n_categories, group)

    @property
    def log_least_weight(self) -> float:
        """Logarithm of the least weight of a pair."""
        return math.log(self.weight.min())

    def least_difference(self, scores: Floats) -> float:
        """Return the least difference of a better item's score and its worse one's."""
        return float((scores[self.rows[self.better]] - scores[self.rows[self.worse]]).min())

    def by_item(self, weight: Floats) -> tuple[Floats, Floats]:
        """Add up weights of pairs by item: of those in which it is the better one, and the worse."""
        n = len(self.rows)
        better, worse = np.bincount(self.better, weight, n), np.bincount(self.worse, weight, n)
        return better.astype(np.float64, copy=False), worse.astype(np.float64, copy=False)

    def sample(self) -> Evaluation:
        """Take evenly spaced pairs, so few that their share in order is cheap."""
        return self._evaluation(math.ceil(len(self.weight) / SAMPLE_ROWS))

    def evaluation(self) -> Evaluation:
        """Judge by the weighted share of pairs in order: the AUC, if they are those of two classes."""
        return self._evaluation(1)

    def _evaluation(self, step: int) -> Evaluation:
        items, ends = np.unique(self._ends()[::step], return_inverse=True)
        order = partial(pair_order, pairs=ends.reshape(-1, 2), pair_weight=self.weight[::step])
        X = np.ascontiguousarray(self.X[self.rows[items]])
        return Evaluation(X, (len(items),), len(self.weight[::step]), order)

    def split_off(self, fraction: float, seed: int) -> tuple["ListedPairs", "ListedPairs"]:
        """Draw training and validation parts that share no item, where there are enough pairs.

        A pair tells of both its items, and all pairs of an item tell of it; so do those of its copies, or of the other
        items of its group. So items are held out, what belongs together on one side:
        pairs within them validate, pairs within the others teach, and those between the two do
        neither. This is what holding out rows does to the pairs of two classes. Of a share s it leaves
        about (1 - s)² of the pairs to learn from and s² to validate by. If that is fewer than `MIN_PAIRS` in
        either part, pairs are held out instead, those of the same two items together, in whichever
        direction; the validation part then speaks of new pairs of known items, and a UserWarning says so.

        The draw depends on the seed, the items and which of them are paired, not on the order of the list.

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
        better_held, worse_held = _hold(n_items, fraction, rng)[ends].T
        training, held = ~(better_held | worse_held), better_held & worse_held
        if min(training.sum(), held.sum()) < MIN_PAIRS:
            units, number = np.unique(
                ends.min(axis=1) * n_items + ends.max(axis=1), return_inverse=True
            )
            if len(units) < 2:
                raise InvalidData("early stopping needs pairs of at least 3 items, got pairs of 2")
            warnings.warn(
                "early stopping has held out pairs, for the items are too few to hold some out: it "
                "speaks of new pairs of items that training has seen",
                UserWarning,
                stacklevel=4,
            )
            held = _hold(len(units), fraction, rng)[number]
            training = ~held
        return self._take(training), self._take(held)

    def _ends(self) -> Integers:
        return np.stack([self.better, self.worse], axis=1).astype(np.int64)

    def _take(self, which: Bools) -> "ListedPairs":
        better, worse = (self.rows[items[which]] for items in (self.better, self.worse))
        pairs = Pairs(better, worse, self.weight[which])
        return ListedPairs.of(self.X, pairs, self.n_categories, self.group)


def _hold(n: int, fraction: float, rng: np.random.Generator) -> Bools:
    held = np.zeros(n, dtype=np.bool_)
    held[draw_fraction(np.arange(n), fraction, rng)] = True
    return held
