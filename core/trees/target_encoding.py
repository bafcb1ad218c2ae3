"""Categories as numbers: the fraction of positives among the rows of a category, and its number of rows.

If a feature has thousands of categories, a set of them that separates the training rows says little about other rows.
The fraction of positives of a category, computed for each row without the row itself, and its number of rows say more
(Micci-Barreca 2001). A cut of such a number is again a set of categories, so that scoring needs nothing new.

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

# Rows that are added to those of a category, with the fraction of positives of all rows.
PRIOR_ROWS = 10.0

# Equal rows are taken for copies of one, and stay in one fold, in two cases: a category has at least this many distinct
# rows on average,
MIN_DISTINCT_ROWS = 2
# or of two equal rows, one of them positive, both are positive in at least this fraction of cases. Otherwise rows
# consist of their category alone, and equal rows tell of each other.
MIN_AGREEMENT = 0.9


class Encoded(NamedTuple):
    """A table in which two numeric columns replace each feature of many categories.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns), float64
        Fractions of positives replace such a feature; its numbers of rows follow the last feature.
    n_categories : ndarray of shape (n_columns,), int64
        0 for a numeric column.
    feature : ndarray of shape (n_columns,), int64
        The feature that each column comes from.
    numbers : list of ndarray of shape (n_categories + 1,), float64, or None
        The number of a new row of each category, then of an unknown category; NaN for a category without training rows.
        None if the column is the feature itself.
    """

    X: Floats
    n_categories: Integers
    feature: Integers
    numbers: list[Floats | None]

    def above(
        self, column: int, threshold: float, missing_above: bool | None
    ) -> tuple[npt.NDArray[np.bool_], bool]:
        """Return which categories lie above a cut of an encoded column, and whether the missing do.

        missing_above: None if no training row is missing.
        """
        numbers = self.numbers[column]
        assert numbers is not None
        if missing_above is None:
            missing_above = bool(numbers[-1] > threshold)
        known = numbers[:-1]
        return np.where(np.isnan(known), missing_above, known > threshold), missing_above

    def append(self, X: Floats, feature: Integers) -> "Encoded":
        """Return the table with numeric columns behind the others, each a feature of its own."""
        if not len(feature):
            return self
        return Encoded(
            np.concatenate([self.X, X], axis=1),
            np.append(self.n_categories, np.zeros_like(feature)),
            np.append(self.feature, feature),
            [*self.numbers, *[None] * len(feature)],
        )


def encode(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_categories: Integers,
    more_than: int | None,
    seed: int,
    group: Groups | None = None,
) -> Encoded:
    """Encode the features of more than `more_than` categories.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    n_categories : ndarray of shape (n_features,), int64
    more_than : int or None
        None: encode no feature.
    seed : int
        Of the folds: the fraction of positives of a row is computed from the rows of the other folds.
    group : ndarray of shape (n_rows,), uint64, optional
        Rows of a group are in one fold. Without groups equal rows are, if they are taken for copies: see
        `MIN_DISTINCT_ROWS` and `MIN_AGREEMENT`.

    Returns
    -------
    Encoded
        With X itself if there is nothing to encode.
    """
    n_features = X.shape[1]
    limit = math.inf if more_than is None else more_than
    many = np.flatnonzero(n_categories > limit)
    numbers: list[Floats | None] = [None] * (n_features + len(many))
    feature = np.concatenate([np.arange(n_features), many])
    if not len(many):
        return Encoded(X, n_categories, feature, numbers)
    weight = weight / min(float(weight.mean()), 1.0)  # a weight of 2 is two rows
    folds = Folds.of(X, positive, weight, seed, group)
    encoded = np.empty((len(X), n_features + len(many)), order="F")
    encoded[:, :n_features] = X
    mean = float(weight[positive].sum() / weight.sum())
    for k, j in enumerate(many.tolist()):
        known = ~np.isnan(X[:, j])
        category = X[known, j].astype(np.int64)
        shape = N_FOLDS, int(n_categories[j])
        fold = folds.choose(known, category)
        index = fold[known] * shape[1] + category
        own = weight[known]
        mass = np.bincount(index, own, math.prod(shape)).reshape(shape).astype(np.float64)
        hits = np.bincount(index, own * positive[known], math.prod(shape)).reshape(shape)
        others = _fraction(hits.sum(axis=0) - hits, mass.sum(axis=0) - mass, mean)
        encoded[known, j] = others.ravel()[index]
        total = mass.sum(axis=0)
        encoded[:, n_features + k] = np.nan
        rows = np.broadcast_to(total, shape)
        if weight.min() < weight.max():  # a row's own weight might tell its class
            rows = scale_to_all(mass)
        encoded[known, n_features + k] = rows.ravel()[index]
        present = total > 0
        share = np.where(present, _fraction(hits.sum(axis=0), total, mean), np.nan)
        numbers[j] = np.append(share, mean)
        numbers[n_features + k] = np.append(np.where(present, total, np.nan), 0.0)
    kinds = np.where(n_categories > limit, 0, n_categories)
    return Encoded(encoded, np.append(kinds, np.zeros_like(many)), feature, numbers)


class Folds(NamedTuple):
    """Folds of the training rows: the number of a row is found from the rows of the other folds.

    Attributes
    ----------
    apart : ndarray of shape (n_rows,), int64
        Folds that separate copies of a row.
    together : ndarray of shape (n_rows,), int64, or None
        Folds that separate no group or, without groups, no equal rows; None if every row stands for itself.
    unit : ndarray of shape (n_rows,), int64, or None
        What `together` does not separate, numbered.
    is_group : bool
        Whether units are groups.
    are_copies : bool
        Whether the labels of equal rows agree; see `MIN_AGREEMENT`.
    """

    apart: Integers
    together: Integers | None
    unit: Integers | None
    is_group: bool
    are_copies: bool

    @classmethod
    def of(
        cls,
        X: Floats,
        positive: npt.NDArray[np.bool_],
        weight: Floats,
        seed: int,
        group: Groups | None,
    ) -> "Folds":
        """Draw folds; for the parameters see `encode`."""
        apart = draw_folds(positive, N_FOLDS, seed)
        unit = number_inseparable(X, positive, weight, group)
        together = None if unit is None else draw_folds(positive, N_FOLDS, seed, unit)
        are_copies = unit is not None and _agree(unit, positive) >= MIN_AGREEMENT
        return cls(apart, together, unit, group is not None, are_copies)

    def choose(self, known: npt.NDArray[np.bool_], category: Integers) -> Integers:
        """Return the folds for a feature, given which rows have a category, and the category of each of these."""
        if self.together is None or self.unit is None:
            return self.apart
        if self.is_group:
            return (
                self.together if self.together.any() else self.apart
            )  # one group says nothing about others
        n_distinct = np.count_nonzero(np.bincount(self.unit[known]))
        n_present = np.count_nonzero(np.bincount(category))
        is_apart = not self.are_copies and n_distinct < MIN_DISTINCT_ROWS * n_present
        return self.apart if is_apart else self.together

    def take(self, rows: Integers) -> "Folds":
        """Return the folds of some rows."""
        together = None if self.together is None else self.together[rows]
        unit = None if self.unit is None else self.unit[rows]
        return self._replace(apart=self.apart[rows], together=together, unit=unit)


def _agree(unit: Integers, positive: npt.NDArray[np.bool_]) -> float:
    """Return the fraction of pairs of rows of one unit, at least one of them positive, in which both are positive."""
    rows = np.bincount(unit).astype(np.float64)
    positives = np.bincount(unit, positive)
    negatives = rows - positives
    both = (positives * (positives - 1)).sum()
    either = (rows * (rows - 1) - negatives * (negatives - 1)).sum()
    return float(both / either) if either else 0.0


def scale_to_all(mass: Floats) -> Floats:
    """Return for each fold the mass of categories in the other folds, times what makes it one of all folds.

    mass : ndarray of shape (n_folds, n_categories), float64
    """
    of_fold = mass.sum(axis=1)
    others = of_fold.sum() - of_fold
    scale = of_fold.sum() / np.where(others > 0.0, others, 1.0)
    scaled: Floats = np.maximum(mass.sum(axis=0) - mass, 0.0) * scale[:, None]
    return scaled


def _fraction(hits: Floats, mass: Floats, mean: float) -> Floats:
    fraction: Floats = (hits + PRIOR_ROWS * mean) / (mass + PRIOR_ROWS)
    return fraction
