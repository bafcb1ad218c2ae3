"""Which features matter to a ranker, seen from outside."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numpy.random import Generator, Philox

from core.metrics import auc
from core.ranker import Floats


def mean_absolute(contributions: Floats, weight: Floats) -> Floats:
    """Average the size of each feature's part of the score.

    Parameters
    ----------
    contributions : ndarray of shape (n_rows, n_features) or (n_rows, n_features, n_labels), float64
        Parts that add up to each row's score, less the mean score.
    weight : ndarray of shape (n_rows,), float64
        Not all 0.

    Returns
    -------
    ndarray of shape (n_features,) or (n_features, n_labels), float64
        In units of the score; 0 for a feature that the ranker does not use.
    """
    sizes: Floats = np.average(np.abs(contributions), axis=0, weights=weight)
    return sizes


def permutation_importance(
    score: Callable[[Floats], Floats],
    X: Floats,
    y: npt.ArrayLike,
    sample_weight: Floats | None = None,
    *,
    n_repeats: int = 5,
    random_state: int = 0,
) -> Floats:
    """Measure how much AUC is lost when a feature's values are permuted among the rows.

    O(n_features · n_repeats · n_rows) scores.

    Parameters
    ----------
    score : callable (ndarray of shape (n, n_features)) -> ndarray of shape (n,)
        Scores each row for itself.
    X : ndarray of shape (n_rows, n_features), float64
        Best rows that the ranker was not fitted on.
    y : array-like of shape (n_rows,)
        1 for positive, 0 for negative.
    sample_weight : ndarray of shape (n_rows,), float64, optional
    n_repeats : int, default=5
        Permutations per feature, averaged.
    random_state : int, default=0
        Key of the permutations; with the feature's number and the repeat's it names each of them.

    Returns
    -------
    ndarray of shape (n_features,), float64
        AUC less the mean AUC with the feature permuted. Of two features that say the same each may
        have 0, since the ranker has the other left; below 0 is noise.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001, §10.
    """
    whole = auc(y, score(X), sample_weight)
    losses = np.empty(X.shape[1])
    n_rows = len(X)
    for feature in range(X.shape[1]):
        copies = np.tile(X, (n_repeats, 1))
        for repeat in range(n_repeats):
            generator = Generator(Philox(key=[random_state, feature * n_repeats + repeat]))
            part = slice(repeat * n_rows, (repeat + 1) * n_rows)
            copies[part, feature] = X[generator.permutation(n_rows), feature]
        permuted = score(copies).reshape(n_repeats, n_rows)
        losses[feature] = np.mean([whole - auc(y, scores, sample_weight) for scores in permuted])
    return losses
