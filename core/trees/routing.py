"""Sending rows of codes through a tree, a block of them at a time."""

import numba
import numpy as np

from core.kernel import kernel

_LEAVES = numba.uint16[::1]

MOST_MET = 255  # splits, so that a leaf's number fits a byte


@kernel(
    numba.void(
        numba.uint8[:, ::1], numba.int64[:, ::1], numba.uint8[::1], numba.uint8[::1], _LEAVES
    ),
    numba.void(
        numba.uint16[:, ::1], numba.int64[:, ::1], numba.uint8[::1], numba.uint8[::1], _LEAVES
    ),
    inner=True,
)
def find_leaves(columns, splits, sides, room, found):  # type: ignore[no-untyped-def]
    """Find the leaf of each row of a block.

    columns: (n_asked, n_rows or more), codes of the columns asked for; room: (n_rows,).
    splits: (n_splits, 5), the leaf, the column, the first code above the cut, how many codes follow it above the cut,
    round the greatest code, and where the codes above are told in `sides`: -1 if the interval tells.

    All rows, in leaf 0 at first, meet each split once: those in its leaf and below its cut move on. That takes a
    handful of vector instructions, whatever the depth. Of more splits than a byte can number each row meets
    those on its own way alone.
    """
    code = columns.dtype.type
    if len(splits) > MOST_MET:
        # The split that a leaf's rows meet next; of a leaf that is not divided again its number, inverted.
        n_splits = len(splits)
        following = np.empty(n_splits + 1, dtype=np.int64)
        ways = np.empty((n_splits, 2), dtype=np.int64)
        for number in range(n_splits + 1):
            following[number] = ~number
        for s in range(n_splits - 1, -1, -1):
            ways[s, 0], ways[s, 1] = following[s + 1], following[splits[s, 0]]
            following[splits[s, 0]] = s
        for i in range(len(found)):
            at = np.int64(0)
            while at >= 0:
                c, place = columns[splits[at, 1], i], splits[at, 4]
                above = code(c - code(splits[at, 2])) <= code(splits[at, 3])
                if place >= 0:
                    above = sides[place + c] != 0
                at = ways[at, 1 if above else 0]
            found[i] = ~at
        return
    leaves = room[: len(found)]
    for i in range(len(leaves)):
        leaves[i] = 0
    for s in range(len(splits)):
        leaf, new, codes = np.uint8(splits[s, 0]), np.uint8(s + 1), columns[splits[s, 1]]
        place = splits[s, 4]
        if place >= 0:
            above = sides[place:]
            for i in range(len(leaves)):
                below = above[codes[i]] == 0
                leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]
        else:
            first, width = code(splits[s, 2]), code(splits[s, 3])
            for i in range(len(leaves)):
                below = code(codes[i] - first) > width
                leaves[i] = new if below & (leaves[i] == leaf) else leaves[i]
    for i in range(len(leaves)):
        found[i] = leaves[i]
