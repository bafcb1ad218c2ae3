"""Fits of estimators of the caller's own."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from core.errors import InvalidData
from core.ranker import Floats


def fit_estimator(
    template: Any, X: Floats, positive: npt.NDArray[np.bool_], weight: Floats, role: str
) -> Any:
    """Fit a clone of an estimator to weighted rows.

    Parameters
    ----------
    template : estimator
        Its `fit` takes sample weights.
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        In rows, not all 0.
    role : str
        What it is used as, for the error's words.

    Returns
    -------
    estimator

    Raises
    ------
    InvalidData
        The estimator refused the rows.
    """
    estimator = clone(template)
    try:
        estimator.fit(X, positive.astype(np.int64), sample_weight=weight)
    except ValueError as error:
        raise InvalidData(
            f"the {role} {type(estimator).__name__} refused its rows: {error}"
        ) from error
    return estimator
