"""Categories as numbers: the share of positives among a category's rows, and how many rows it has.

Where a feature has thousands of categories, a set of them that parts the training rows well says little about
others. Their share of positives, each row's found without the row itself, and their number say more (Micci-
Barreca 2001). A cut of such a number is a set of categories again: scoring knows nothing of this.

References
----------
D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and
prediction problems", SIGKDD Explorations 3(1), 2001.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats, Groups
from core.base.splits import draw_folds, number_inseparable

from .coding import Integers

N_FOLDS = 5

# Rows that a category is taken to have beside its own, with the share of positives of all rows.
PRIOR_ROWS = 10.0

# Equal rows are copies of one, and stay in one fold, where a category has so many distinct rows on average, or where of
# two equal rows, one of them positive, in so many cases both are. Elsewhere a category is all that rows consist of, and
# its rows tell of each other.
MIN_DISTINCT = 2
COPIES_AGREE = 0.9


class Encoded(NamedTuple):
    """A table whose features of many categories are two numeric ones.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns), float64
        In place of such a feature its shares of positives; the numbers of rows follow the last feature.
    n_categories : ndarray of shape (n_columns,), int64
        0 for a numeric column.
    feature : ndarray of shape (n_columns,), int64
        Which feature a column tells of.
    numbers : list of ndarray of shape (n_categories + 1,), float64, or None
        The number by which a new row of each category is asked, then that of an unknown one. NaN where no
        training row is of the category. None where the column is the feature as it is.
    """

    X: Floats
    n_categories: Integers
    feature: Integers
    numbers: list[Floats | None]

    def above(
        self, column: int, threshold: float, missing_above: bool | None
    ) -> tuple[npt.NDArray[np.bool_], bool]:
        """Say which categories lie above a cut of an encoded column, and whether the missing do.

        missing_above: None where no training row has none.
        """
        numbers = self.numbers[column]
        assert numbers is not None
        if missing_above is None:
            missing_above = bool(numbers[-1] > threshold)
        known = numbers[:-1]
        return np.where(np.isnan(known), missing_above, known > threshold), missing_above


def encode(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Integers,
    more_than: int | None,
    seed: int,
    group: Groups | None = None,
) -> Encoded:
    """Encode the features of more categories than a number; None: no feature.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    n_categories : ndarray of shape (n_features,), int64
    more_than : int or None
    seed : int
        Of the folds: a row's share of positives is found on the other folds' rows.
    group : ndarray of shape (n_rows,), uint64, optional
        Rows of a group are in one fold. Without groups equal rows are, where they are taken for copies: see
        `MIN_DISTINCT` and `COPIES_AGREE`.

    Returns
    -------
    Encoded
        With X itself where there is nothing to encode.
    """
    n_features = X.shape[1]
    limit = math.inf if more_than is None else more_than
    many = np.flatnonzero(n_categories > limit)
    numbers: list[Floats | None] = [None] * (n_features + len(many))
    feature = np.concatenate([np.arange(n_features), many])
    if not len(many):
        return Encoded(X, n_categories, feature, numbers)
    weight = weight / min(float(weight.mean()), 1.0)  # a weight of 2 is two rows
    apart = draw_folds(positive, N_FOLDS, seed)
    unit = number_inseparable(X, positive, weight, group)
    together = None if unit is None else draw_folds(positive, N_FOLDS, seed, unit)
    are_copies = unit is not None and _agree(unit, positive) >= COPIES_AGREE
    encoded = np.empty((len(X), n_features + len(many)), order="F")
    encoded[:, :n_features] = X
    mean = float(weight[positive].sum() / weight.sum())
    for k, j in enumerate(many.tolist()):
        known = ~np.isnan(X[:, j])
        category = X[known, j].astype(np.int64)
        shape = N_FOLDS, int(n_categories[j])
        fold = apart
        if unit is not None and together is not None and group is None:
            n_distinct = np.count_nonzero(np.bincount(unit[known]))
            n_present = np.count_nonzero(np.bincount(category))
            fold = together if are_copies or n_distinct >= MIN_DISTINCT * n_present else apart
        elif together is not None:
            fold = together if together.any() else apart  # one group says nothing of others
        place = fold[known] * shape[1] + category
        own = weight[known]
        mass = np.bincount(place, own, math.prod(shape)).reshape(shape)
        hits = np.bincount(place, own * positive[known], math.prod(shape)).reshape(shape)
        others = _share(hits.sum(axis=0) - hits, mass.sum(axis=0) - mass, mean)
        encoded[known, j] = others.ravel()[place]
        total = mass.sum(axis=0)
        encoded[:, n_features + k] = np.nan
        encoded[known, n_features + k] = total[category]
        present = total > 0
        share = np.where(present, _share(hits.sum(axis=0), total, mean), np.nan)
        numbers[j] = np.append(share, mean)
        numbers[n_features + k] = np.append(np.where(present, total, np.nan), 0.0)
    kinds = np.where(n_categories > limit, 0, n_categories)
    return Encoded(encoded, np.append(kinds, np.zeros_like(many)), feature, numbers)


def _agree(unit: Integers, positive: npt.NDArray[np.bool_]) -> float:
    """Say of how many pairs of rows of one unit, one of them positive, both are."""
    rows = np.bincount(unit).astype(np.float64)
    positives = np.bincount(unit, positive)
    negatives = rows - positives
    both = (positives * (positives - 1)).sum()
    either = (rows * (rows - 1) - negatives * (negatives - 1)).sum()
    return float(both / either) if either else 0.0


def _share(hits: Floats, mass: Floats, mean: float) -> Floats:
    share: Floats = (hits + PRIOR_ROWS * mean) / (mass + PRIOR_ROWS)
    return share
