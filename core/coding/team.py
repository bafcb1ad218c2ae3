"""Threads that share out the pieces of a piece of work.

Plain threads, waiting without spinning, and kernels that leave the interpreter's lock: a fit slows
down no more than its share when other processes want the same cores, and two fits may run at once.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.extending import intrinsic

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

    def deal(self, kernel: Callable[..., None], n_pieces: int, *arguments: object) -> None:
        """Call kernel(queue, n_pieces, *arguments) so that each piece is done once.

        A thread takes the next piece from the queue when it is ready for one (`take`): where pieces differ
        in size, or a thread wakes late, the others do more. They must not write to the same place.
        """
        queue = np.zeros(1, dtype=np.int64)
        shares = [
            self._others.submit(kernel, queue, n_pieces, *arguments)
            for _ in range(1, min(self._n_threads, n_pieces))
        ]
        kernel(queue, n_pieces, *arguments)
        for share in shares:
            if not share.cancel():  # one that has not begun is not waited for
                share.result()


def shared_team(n_cells: int) -> Team:
    """Give a team whose threads live on, for what is shared out often: waking threads costs less than starting them."""
    return _team(os.getpid(), numba.get_num_threads() if n_cells >= PARALLEL_CELLS else 1)


@cache
def _team(
    _process: int, n_threads: int
) -> Team:  # a forked process has none of its parent's threads
    return Team(PARALLEL_CELLS if n_threads > 1 else 0)


@intrinsic
def take(typing_context, queue):  # type: ignore[no-untyped-def]
    """Take the next number from queue[0], in one step for all threads."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        one = llvmlite.ir.Constant(llvmlite.ir.IntType(64), 1)
        return builder.atomic_rmw("add", data, one, "monotonic")

    return numba.int64(queue), generate
