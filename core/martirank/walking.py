"""The walk of rows through a program, in expectation over its coins."""

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

Floats = npt.NDArray[np.float64]

ROWS = 64  # walk together: their masses at all positions stay in the first-level cache


class Nodes(NamedTuple):
    """The columns of `node.NODE` that a walk needs, each contiguous; and the words of sets."""

    feature: npt.NDArray[np.int64]
    threshold: Floats
    missing_above: npt.NDArray[np.bool_]
    word: npt.NDArray[np.int64]
    rise_above: Floats
    rise_below: Floats
    frozen: npt.NDArray[np.bool_]
    words: npt.NDArray[np.uint64]


def _array(dtype: Any, n_dimensions: int = 1) -> Any:
    return numba.types.Array(dtype, n_dimensions, "C", readonly=True)


_NODES = numba.types.NamedTuple(
    (
        _array(numba.int64),
        _array(numba.float64),
        _array(numba.boolean),
        _array(numba.int64),
        _array(numba.float64),
        _array(numba.float64),
        _array(numba.boolean),
        _array(numba.uint64),
    ),
    Nodes,
)


@kernel(
    numba.void(
        numba.float64[::1],
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64[::1],
    ),
    inner=True,
)
def _compare(x, threshold, above, below, missing, rises):  # type: ignore[no-untyped-def]
    """Write each row's probability of rising at a cut of numbers."""
    for r in range(len(rises)):  # selections, not branches: the compiler takes rows by vectors
        known = above if x[r] > threshold else below
        rises[r] = known if x[r] == x[r] else missing


@kernel(
    numba.void(
        numba.float64[::1],
        _array(numba.uint64),
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64,
        numba.float64[::1],
    ),
    inner=True,
)
def _look_up(x, words, n_categories, above, below, missing, rises):  # type: ignore[no-untyped-def]
    """Write each row's probability of rising at a set of categories; what is none of them counts as missing."""
    for r in range(len(rises)):
        rises[r] = missing
        if 0.0 <= x[r] < n_categories:
            category = np.uint64(x[r])
            word = words[np.int64(category >> np.uint64(6))]
            above_it = (word >> (category & np.uint64(63))) & np.uint64(1) == np.uint64(1)
            rises[r] = above if above_it else below


@kernel(numba.void(numba.float64[::1], numba.float64[::1], numba.float64[::1]), inner=True)
def _move(here, up, rises):  # type: ignore[no-untyped-def]
    """Move each row's share of its mass one position up."""
    for r in range(len(rises)):
        moved = here[r] * rises[r]
        up[r] += moved
        here[r] -= moved


@numba.njit(inline="always")
def _walk_block(nodes, n_layers, by_vote, columns, mass, rises, ends):  # type: ignore[no-untyped-def]
    """Write each row's expected end.

    columns: (n_features, n_rows). mass: (n_layers + 1, n_rows), by position. The mass of a layer is
    moved to the next in place, from the highest position down: what rises joins mass that has been
    moved already.
    """
    mass[:] = 0.0
    mass[0] = 1.0
    ends[:] = 0.0
    for t in range(n_layers):
        first = t * (t + 1) // 2
        for position in range(t, -1, -1):
            node = first + position
            here, up = mass[position], mass[position + 1]
            if nodes.frozen[node]:
                label = nodes.rise_below[node]
                end = label if by_vote else (position + (n_layers - t) * label) / n_layers
                for r in range(len(ends)):
                    ends[r] += here[r] * end
                    here[r] = 0.0
                continue
            if nodes.feature[node] < 0:
                rises[:] = nodes.rise_below[node]
            else:
                x = columns[nodes.feature[node]]
                above, below = nodes.rise_above[node], nodes.rise_below[node]
                missing = above if nodes.missing_above[node] else below
                threshold, word = nodes.threshold[node], nodes.word[node]
                if word < 0:
                    _compare(x, threshold, above, below, missing, rises)
                else:
                    _look_up(x, nodes.words[word:], threshold, above, below, missing, rises)
            _move(here, up, rises)
    for position in range(1, n_layers + 1):
        end = position / n_layers
        if by_vote:
            end = 1.0 if 2 * position >= n_layers else 0.0
        for r in range(len(ends)):
            ends[r] += mass[position, r] * end


@kernel(
    numba.void(_array(numba.float64, 2), _NODES, numba.int64, numba.boolean, numba.float64[::1])
)
def walk(X, nodes, n_layers, by_vote, scores):  # type: ignore[no-untyped-def]
    """Write each row's expected position over T, or its expected vote."""
    n_rows, n_features = X.shape
    size = min(ROWS, n_rows)
    columns = np.empty((n_features, size))
    mass = np.empty((n_layers + 1, size))
    rises, ends = np.empty(size), np.empty(size)
    for start in range(0, n_rows, size):
        n = min(size, n_rows - start)
        for r in range(n):  # the last block walks with rows of the one before it to fill it up
            for j in range(n_features):
                columns[j, r] = X[start + r, j]
        _walk_block(nodes, n_layers, by_vote, columns, mass, rises, ends)
        for r in range(n):
            scores[start + r] = ends[r]
