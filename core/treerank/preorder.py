"""Binary trees as a sequence of flags: which nodes, in preorder, are leaves.

Several trees may follow one another. A node's first child is the next node; these kernels find what
else there is to know.
"""

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

_FLAGS = numba.types.Array(numba.boolean, 1, "C", readonly=True)
_LINKS = numba.types.Array(numba.int64, 1, "C", readonly=True)


def are_trees(is_leaf: Booleans) -> bool:
    """Whether the flags are those of one or more whole trees."""
    # a tree's flags add up to -1, which they reach at its last node and not before
    total = np.cumsum(np.where(is_leaf, -1, 1))
    return len(total) > 0 and bool(total[-1] < total[:-1].min(initial=0))


@kernel(numba.void(_FLAGS, numba.int64[::1], numba.int64[::1]))
def link(is_leaf, parent, second):  # type: ignore[no-untyped-def]
    """Write each node's parent and its second child, -1 where there is none."""
    n = len(is_leaf)
    waiting = np.empty(n, dtype=np.int64)  # inside nodes that still lack their second child
    n_waiting = 0
    for node in range(n):
        parent[node] = second[node] = -1
        if node > 0 and not is_leaf[node - 1]:
            parent[node] = node - 1
        elif n_waiting > 0:
            n_waiting -= 1
            parent[node] = waiting[n_waiting]
            second[waiting[n_waiting]] = node
        if not is_leaf[node]:
            waiting[n_waiting] = node
            n_waiting += 1


@kernel(numba.void(_LINKS, _LINKS, numba.int64[::1], numba.int64[::1]))
def place(parent, second, depth, k):  # type: ignore[no-untyped-def]
    """Write each node's depth, and its place from the first among 2**depth of its level."""
    for node in range(len(parent)):
        depth[node] = k[node] = 0
        if parent[node] >= 0:
            depth[node] = depth[parent[node]] + 1
            k[node] = 2 * k[parent[node]] + (second[parent[node]] == node)


@kernel(numba.void(_LINKS, numba.float64[::1]))
def sum_up(second, mass):  # type: ignore[no-untyped-def]
    """Make the mass of each inside node the sum of its children's."""
    for node in range(len(second) - 1, -1, -1):  # children come after their parents
        if second[node] >= 0:
            mass[node] = mass[node + 1] + mass[second[node]]
