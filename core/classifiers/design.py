"""Columns as a classifier takes them: numbers as they are, a categorical one as a column per category."""

import numpy as np
import numpy.typing as npt

from core.ranker import Floats

Integers = npt.NDArray[np.int64]


LEAST_SCALE = float(np.finfo(np.float64).tiny)
"""What varies by less counts as constant: half of it would be rounded."""


def expand(X: Floats, n_categories: Integers) -> Floats:
    """Turn each categorical column into columns of 0 and 1, one per category; missing is 0 in all.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        NaN is missing, and stays so in numeric columns; a category is its position.
    n_categories : ndarray of shape (n_features,), int64
        0 where the feature is numeric.

    Returns
    -------
    ndarray of shape (n_rows, n_columns), float64
        X itself where no feature is categorical.
    """
    if not n_categories.any():
        return X
    columns = []
    for column, count in zip(X.T, n_categories.tolist(), strict=True):
        if count:
            columns.append(column[:, np.newaxis] == np.arange(count))
        else:
            columns.append(column[:, np.newaxis])
    return np.concatenate(columns, axis=1, dtype=np.float64)


def standardise(columns: Floats, center: Floats, scale: Floats) -> Floats:
    """Give (x - center) / scale of each column; by halves, as x - center may overflow where they do not."""
    return np.asarray((columns / 2 - center / 2) / (scale / 2))


def count_columns(n_categories: Integers) -> int:
    """Give the number of columns that `expand` makes."""
    return int(np.maximum(n_categories, 1).sum())
