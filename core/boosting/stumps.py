"""A sum of stumps, folded into one step function per feature: what a fitted booster scores with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from core.coding.category_sets import Words, unpack
from core.kernel import kernel
from core.trees.cuts import Integers

Floats = npt.NDArray[np.float64]

FEW_ROWS = 64  # that are sooner bisected than compared with all thresholds
BLOCK_ROWS = 256
FEW_THRESHOLDS = 64  # of a feature, that are counted through sooner than bisected


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
        O(n_rows · n_used · log n_thresholds). Where there are many rows and few thresholds, each row is compared
        with all of them: for several rows at once that is sooner done than to bisect.
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


def fold(rounds: npt.NDArray[np.void], n_categories: Integers, sets: Words) -> StepFunctions:
    """Fold stumps into step functions.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,)
        Fields as in `stump_sum.ROUND`. A stump adds alpha (high - low) on its side of the
        threshold; what it gives to every row alike, alpha low, is the caller's to add.
    n_categories : ndarray of shape (n_features,), int64
        A feature of K categories has the thresholds 0, 1, ..., K - 2, so that it has a value for
        each; 0 for a numeric one.
    sets : ndarray of shape (n_words,), uint64

    Returns
    -------
    StepFunctions

    Notes
    -----
    Time and memory are linear in the number of rounds, but for a sort, and in the size of the sets.
    """
    by_feature = rounds[np.argsort(rounds["feature"], kind="stable")]
    features, first = np.unique(by_feature["feature"], return_index=True)
    thresholds, values = [], []
    for stumps in np.split(by_feature, first[1:]) if len(features) else []:
        n = int(n_categories[stumps["feature"][0]])
        if n > 0:
            steps, sums = np.arange(n - 1, dtype=np.float64), _sum_sets(stumps, n, sets)
        else:
            steps, sums = _sum_thresholds(stumps)
        thresholds.append(steps)
        values.append(sums)
    return StepFunctions(
        _frozen(features.astype(np.int64)),
        _frozen(np.cumsum([0, *map(len, thresholds)], dtype=np.int64)),
        _frozen(np.concatenate([np.empty(0), *thresholds])),
        _frozen(np.concatenate([np.empty(0), *values])),
    )


def _sum_thresholds(stumps: npt.NDArray[np.void]) -> tuple[Floats, Floats]:
    """Give the thresholds, and the values below, between and above them, last of a missing x."""
    thresholds, step = np.unique(stumps["threshold"], return_inverse=True)
    rises, positive = _rises(stumps), stumps["sign"] > 0
    sums = np.zeros(len(thresholds) + 2)
    # Each side is summed from its own end, so that what adds up to 0 is 0.
    upwards = np.bincount(step[positive], rises[positive], len(thresholds))
    downwards = np.bincount(step[~positive], rises[~positive], len(thresholds))
    sums[1:-1] = np.cumsum(upwards)
    sums[:-2] += np.cumsum(downwards[::-1])[::-1]
    sums[-1] = rises[stumps["missing_above"] == positive].sum()
    return thresholds, sums


def _sum_sets(stumps: npt.NDArray[np.void], n_categories: int, sets: Words) -> Floats:
    """Give the value of each category, and last of a missing one."""
    kinds, which = np.unique(stumps[["set", "sign", "missing_above"]], return_inverse=True)
    rises = np.bincount(which, _rises(stumps))
    sums = np.zeros(n_categories + 1)
    for kind, rise in zip(kinds, rises, strict=True):
        above = np.append(unpack(sets, kind["set"], n_categories), kind["missing_above"])
        sums[above == (kind["sign"] > 0)] += rise
    return sums


def _rises(stumps: npt.NDArray[np.void]) -> Floats:
    return np.asarray(stumps["alpha"] * (stumps["high"] - stumps["low"]))


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Forbid writing: a fitted ranker is shared by threads, and the kernels take it so."""
    array.flags.writeable = False
    return array


_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_STEPS = (_INTEGERS, _INTEGERS, _FLOATS, _FLOATS)


@kernel(
    numba.float64(numba.float64, numba.int64, numba.int64, numba.int64, _FLOATS, _FLOATS),
    inner=True,
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


@kernel(numba.float64[::1](_MATRIX, numba.float64, *_STEPS))
def _score(X, offset, features, starts, thresholds, values):  # type: ignore[no-untyped-def]
    """Score rows, a block at a time and feature by feature."""
    n_rows = X.shape[0]
    scores, column = np.empty(n_rows), np.empty(BLOCK_ROWS)
    steps = np.empty(BLOCK_ROWS, dtype=np.int32)
    for i in range(n_rows):
        scores[i] = offset
    for i in range(BLOCK_ROWS):
        column[i] = 0.0
    for first in range(0, n_rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, n_rows - first)
        for u in range(len(features)):
            start, stop = starts[u], starts[u + 1]
            for i in range(size):
                column[i] = X[first + i, features[u]]
            if stop - start > FEW_THRESHOLDS or n_rows < FEW_ROWS:
                for i in range(size):
                    scores[first + i] += _look_up(column[i], u, start, stop, thresholds, values)
                continue
            for i in range(BLOCK_ROWS):
                steps[i] = 0
            for step in range(start, stop):
                threshold = thresholds[step]
                for i in range(BLOCK_ROWS):  # a number that the compiler knows
                    steps[i] += np.int32(column[i] > threshold)
            begin, missing = start + 2 * u, values[stop + 2 * u + 1]
            for i in range(size):
                x = column[i]
                scores[first + i] += missing if np.isnan(x) else values[begin + steps[i]]
    return scores


@kernel(numba.void(_MATRIX, *_STEPS, numba.float64[:, ::1]))
def _contribute(X, features, starts, thresholds, values, parts):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for u in range(len(features)):
            j = features[u]
            parts[i, j] = _look_up(X[i, j], u, starts[u], starts[u + 1], thresholds, values)
