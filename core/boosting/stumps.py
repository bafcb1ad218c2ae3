"""A sum of stumps, folded into one step function per feature: what a fitted booster scores with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepFunctions:
    """Σ_j g_j(x_j), each g_j constant between its thresholds.

    Attributes
    ----------
    features : ndarray of shape (n_used,), int64
        The features that have steps, ascending.
    starts : ndarray of shape (n_used + 1,), int64
        The thresholds of the u-th of them are thresholds[starts[u]:starts[u+1]].
    thresholds : ndarray of shape (n_thresholds,), float64
        Ascending within a feature; the test is x > threshold.
    values : ndarray of shape (n_thresholds + 2 * n_used,), float64
        From starts[u] + 2u on: the value below the first threshold, then after each threshold,
        and last the value of a missing x.
    """

    features: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    thresholds: Floats
    values: Floats

    def score(self, X: Floats, offset: float) -> Floats:
        """Give offset + Σ_j g_j(x_j) of each row, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
        offset : float

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Notes
        -----
        O(n_rows · n_used · log n_thresholds).
        """
        scores: Floats = _score(X, offset, self.features, self.starts, self.thresholds, self.values)
        return scores

    def contributions(self, X: Floats) -> Floats:
        """Give g_j(x_j) of each row and feature, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
        parts = np.zeros(X.shape)
        _contribute(X, self.features, self.starts, self.thresholds, self.values, parts)
        return parts

    def per_feature(self) -> Iterator[tuple[int, Floats, Floats, float]]:
        """Yield feature, thresholds, values between them (one more), and the value of missing."""
        for u, feature in enumerate(self.features.tolist()):
            start, stop = self.starts[u], self.starts[u + 1]
            values = self.values[start + 2 * u : stop + 2 * u + 2]
            yield feature, self.thresholds[start:stop], values[:-1], float(values[-1])


def fold(rounds: npt.NDArray[np.void]) -> StepFunctions:
    """Fold stumps into step functions.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,)
        Fields as in `stump_sum.ROUND`. A stump adds alpha (high - low) on its side of the
        threshold; what it gives to every row alike, alpha low, is the caller's to add.

    Returns
    -------
    StepFunctions

    Notes
    -----
    Memory is linear in the number of rounds. Each value is the sum of its stumps in the order of
    the rounds.
    """
    by_feature = rounds[np.argsort(rounds["feature"], kind="stable")]
    features, first = np.unique(by_feature["feature"], return_index=True)
    thresholds, values = [], []
    for stumps in np.split(by_feature, first[1:]) if len(features) else []:
        steps = np.unique(stumps["threshold"])
        sums = np.zeros(len(steps) + 2)
        _add_stumps(
            np.searchsorted(steps, stumps["threshold"]),
            stumps["sign"] > 0,
            stumps["missing_above"].copy(),
            stumps["alpha"] * (stumps["high"] - stumps["low"]),
            sums,
        )
        thresholds.append(steps)
        values.append(sums)
    return StepFunctions(
        _frozen(features.astype(np.int64)),
        _frozen(np.cumsum([0, *map(len, thresholds)], dtype=np.int64)),
        _frozen(np.concatenate([np.empty(0), *thresholds])),
        _frozen(np.concatenate([np.empty(0), *values])),
    )


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Forbid writing: a fitted ranker is shared by threads, and the kernels take it so."""
    array.flags.writeable = False
    return array


@numba.njit(
    numba.void(
        numba.int64[::1],
        numba.boolean[::1],
        numba.boolean[::1],
        numba.float64[::1],
        numba.float64[::1],
    ),
    nogil=True,
    cache=True,
)
def _add_stumps(steps, positive, missing_above, alphas, values):  # type: ignore[no-untyped-def]
    """Add the stumps of one feature to the values of its intervals, and last of a missing x.

    steps: the position of each stump's threshold; interval k lies above the first k thresholds.
    """
    missing = len(values) - 1
    for r in range(len(steps)):
        for k in range(missing):
            if (k > steps[r]) == positive[r]:
                values[k] += alphas[r]
        if missing_above[r] == positive[r]:
            values[missing] += alphas[r]


_MATRIX = numba.float64[:, ::1]
_READ_ONLY_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_STEPS = (_INTEGERS, _INTEGERS, _FLOATS, _FLOATS)


@numba.njit(
    numba.float64(numba.float64, numba.int64, numba.int64, numba.int64, _FLOATS, _FLOATS),
    nogil=True,
    cache=True,
)
def _look_up(x, u, start, stop, thresholds, values):  # type: ignore[no-untyped-def]
    """Give the u-th step function's value at x."""
    if np.isnan(x):
        return values[stop + 2 * u + 1]
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if x > thresholds[middle]:
            low = middle + 1
        else:
            high = middle
    return values[low + 2 * u]


@numba.njit(
    [
        numba.float64[::1](_MATRIX, numba.float64, *_STEPS),
        numba.float64[::1](_READ_ONLY_MATRIX, numba.float64, *_STEPS),
    ],
    nogil=True,
    cache=True,
)
def _score(X, offset, features, starts, thresholds, values):  # type: ignore[no-untyped-def]
    scores = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        score = offset
        for u in range(len(features)):
            x = X[i, features[u]]
            score += _look_up(x, u, starts[u], starts[u + 1], thresholds, values)
        scores[i] = score
    return scores


@numba.njit(numba.void(_READ_ONLY_MATRIX, *_STEPS, _MATRIX), nogil=True, cache=True)
def _contribute(X, features, starts, thresholds, values, parts):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for u in range(len(features)):
            j = features[u]
            parts[i, j] = _look_up(X[i, j], u, starts[u], starts[u + 1], thresholds, values)
