"""Target encoding: a category becomes its fraction of positive rows and its number of rows.

If a feature has thousands of categories, a set of them that separates the training rows says little about other rows.
The fraction of positives of a category, computed for each row without the row itself, and its number of rows say more
(Micci-Barreca 2001). A cut of such a number is again a set of categories, so that scoring needs nothing new.

References
----------
D. Micci-Barreca, "A preprocessing scheme for high-cardinality categorical attributes in classification and
prediction problems", SIGKDD Explorations 3(1), 2001.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.base.state import Integers
from core.base.training import TrainingData
from core.coding.folds import N_FOLDS, PRIOR_ROWS, Folds, scale_to_all


class Encoded(NamedTuple):
    """A table in which two numeric columns (positive fraction, count) replace each feature of many categories.

    numbers: list of shape (n_categories + 1,), float64, or None; the number of a new row of each category, then of an
        unknown category; NaN for a category without training rows. None if the column is the feature itself.
    """

    X: Floats
    """Fractions of positives replace such a feature; its numbers of rows follow the last feature. Shape (n_rows,
    n_columns)."""
    n_categories: Integers
    """0 for a numeric column. Shape (n_columns,)."""
    feature: Integers
    """The feature that each column comes from. Shape (n_columns,)."""
    numbers: list[Floats | None]

    def above(
        self, column: int, threshold: float, missing_above: bool | None
    ) -> tuple[npt.NDArray[np.bool_], bool]:
        """Return which categories lie above a split of an encoded column, and whether missing values do.

        missing_above: None if no training row is missing.
        """
        numbers = self.numbers[column]
        assert numbers is not None
        if missing_above is None:
            missing_above = bool(numbers[-1] > threshold)
        known = numbers[:-1]
        return np.where(np.isnan(known), missing_above, known > threshold), missing_above

    def append(self, X: Floats, feature: Integers) -> "Encoded":
        """Return the table with numeric columns appended, each a feature of its own."""
        if not len(feature):
            return self
        return Encoded(
            np.concatenate([self.X, X], axis=1),
            np.append(self.n_categories, np.zeros_like(feature)),
            np.append(self.feature, feature),
            [*self.numbers, *[None] * len(feature)],
        )


def encode(data: TrainingData, more_than: int | None, seed: int) -> Encoded:
    """Target-encode the features with more than `more_than` categories.

    data: rows of a group are in one fold. Without groups equal rows are, if they are taken for copies: see
        `core.coding.folds`.
    more_than: None: encode no feature.
    seed: of the folds: the fraction of positives of a row is computed from the rows of the other folds.

    Result: with X itself if there is nothing to encode.
    """
    X, positive, n_categories = data.X, data.positive, data.n_categories
    n_features = X.shape[1]
    limit = math.inf if more_than is None else more_than
    many = np.flatnonzero(n_categories > limit)
    numbers: list[Floats | None] = [None] * (n_features + len(many))
    feature = np.concatenate([np.arange(n_features), many])
    if not len(many):
        return Encoded(X, n_categories, feature, numbers)
    weight = data.weight / min(float(data.weight.mean()), 1.0)  # a weight of 2 is two rows
    folds = Folds.of(replace(data, weight=weight), seed)
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


def _fraction(hits: Floats, mass: Floats, mean: float) -> Floats:
    fraction: Floats = (hits + PRIOR_ROWS * mean) / (mass + PRIOR_ROWS)
    return fraction
