"""Threads that share out the pieces of a piece of work.

Plain threads, waiting without spinning, and kernels that leave the interpreter's lock: a fit slows
down no more than its share when other processes want the same cores, and two fits may run at once.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numba

# Waking a thread costs some fifty microseconds; this many cells of the table repay it.
PARALLEL_CELLS = 500_000


class Team:
    """As many threads as numba is set to use, or one where the work is small.

    Parameters
    ----------
    n_cells : int
        Size of the work: what a pass over the whole table touches.
    """

    def __init__(self, n_cells: int) -> None:
        self._n_threads = numba.get_num_threads() if n_cells >= PARALLEL_CELLS else 1
        self._others = ThreadPoolExecutor(max(self._n_threads - 1, 1))

    @property
    def n_threads(self) -> int:
        """How many threads share a piece of work."""
        return self._n_threads

    def run(self, kernel: Callable[..., None], n_pieces: int, *arguments: object) -> None:
        """Call kernel(first, step, n_pieces, *arguments) so that each piece is done once.

        Pieces are dealt out in turn, as neighbours are alike in size. They must not write to the
        same place.
        """
        step = min(self._n_threads, n_pieces)
        shares = [
            self._others.submit(kernel, first, step, n_pieces, *arguments)
            for first in range(1, step)
        ]
        kernel(0, max(step, 1), n_pieces, *arguments)
        for share in shares:
            share.result()
