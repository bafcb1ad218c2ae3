"""Threads that share out the pieces of a piece of work.

Kernels leave the interpreter's lock. `ThreadPool` wakes plain threads for each piece of work, which takes some fifty
microseconds. In a parallel region (`Region`) threads stay in compiled code from one phase of the work to the next,
and phases of tens of microseconds can be shared: one thread, the leader, publishes how many pieces a phase has, takes
pieces as the others do, and waits until all are done. The others come and go as they like. One that comes late joins
the present phase; one that finds nothing to do gives its core to whoever wants it, and after a while ends.
"""

import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.core import cgutils
from numba.extending import intrinsic

from core.kernels import INNER

# Waking a thread costs some fifty microseconds; this many cells of the table repay it.
PARALLEL_CELLS = 500_000


class ThreadPool:
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


def shared_pool(n_cells: int) -> ThreadPool:
    """Give a pool whose threads live on, for what is shared out often: waking threads costs less than starting them."""
    return _pool(os.getpid(), numba.get_num_threads() if n_cells >= PARALLEL_CELLS else 1)


@cache
def _pool(
    _process: int, n_threads: int
) -> ThreadPool:  # a forked process has none of its parent's threads
    return ThreadPool(PARALLEL_CELLS if n_threads > 1 else 0)


@intrinsic
def take(typing_context, queue):  # type: ignore[no-untyped-def]
    """Take the next number from queue[0], in one step for all threads."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        one = llvmlite.ir.Constant(llvmlite.ir.IntType(64), 1)
        return builder.atomic_rmw("add", data, one, "monotonic")

    return numba.int64(queue), generate


class Region(NamedTuple):
    """What the threads of a parallel region have in common; arrays of one number, each on a cache line of its own.

    Attributes
    ----------
    ticket : ndarray of shape (1,), int64
        Of the present phase: its number of pieces in the high half, the next piece in the low half.
    done : ndarray of shape (1,), int64
        Pieces of the present phase that are done.
    failed : ndarray of shape (1,), int64
        How many pieces could not be done, for want of memory.
    ended : ndarray of shape (1,), int64
        1 once nobody can lead any more.
    """

    ticket: Any
    done: Any
    failed: Any
    ended: Any


REGION_TYPE = numba.types.NamedUniTuple(numba.int64[::1], len(Region._fields), Region)
_LINE = 64 // 8  # numbers of a cache line
_HALF, _LOW_HALF = 32, (1 << 32) - 1

# A thread without work looks so many times for some, then yields its core between looks, so many times.
SPINS = 20_000
YIELDS = 5_000


def open_region() -> Region:
    """Give a region without work."""
    room = np.zeros((len(Region._fields) + 1) * _LINE, dtype=np.int64)
    return Region(*(room[(k + 1) * _LINE :][:1] for k in range(len(Region._fields))))


class Helpers:
    """The threads that help a leader in a parallel region.

    Parameters
    ----------
    n_cells : int
        Size of the work: see `ThreadPool`.
    help_out : kernel (region, *arguments)
        Does pieces until the region has ended or there has been nothing to do for a while.
    *arguments : object

    Attributes
    ----------
    region : Region
    n_threads : int
        The leader among them.
    """

    def __init__(self, n_cells: int, help_out: Callable[..., None], *arguments: object) -> None:
        n_threads = numba.get_num_threads() if n_cells >= PARALLEL_CELLS else 1
        self.n_threads = n_threads
        self.region = open_region()
        self._call: tuple[Any, ...] = (help_out, self.region, *arguments)
        self._threads = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None
        self._present: list[Future[None]] = [Future() for _ in range(n_threads - 1)]
        for absent in self._present:
            absent.set_result(None)
        # Threads that still look for work hold its memory: let them go with the last who could give them any.
        weakref.finalize(self, _end, self.region)

    def __enter__(self) -> Region:
        """Have those come back who have left; nobody is waited for."""
        if self._threads is not None:
            for k, last in enumerate(self._present):
                if last.done():
                    last.result()
                    self._present[k] = self._threads.submit(*self._call)
        return self.region

    def __exit__(self, *_: object) -> None:
        """Say what went wrong in another thread."""
        if self.region.failed[0]:
            raise MemoryError("a thread had no memory for its piece of work")


def _end(region: Region) -> None:
    region.ended[0] = 1


def _atomic(operate: Callable[..., Any]) -> Callable[..., Any]:
    """Make an intrinsic of the first number of an array from what is done to its address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return operate(context, builder, data, *arguments[1:])

    return generate


@intrinsic
def atomic_load(typing_context, array):  # type: ignore[no-untyped-def]
    """Read array[0] as other threads have left it."""

    def load(context, builder, data):  # type: ignore[no-untyped-def]
        return builder.load_atomic(data, "seq_cst", 8)

    return numba.int64(array), _atomic(load)


@intrinsic
def atomic_store(typing_context, array, value):  # type: ignore[no-untyped-def]
    """Write array[0], after all that was written before."""

    def store(context, builder, data, value):  # type: ignore[no-untyped-def]
        builder.store_atomic(value, data, "seq_cst", 8)
        return context.get_dummy_value()

    return numba.types.void(array, numba.int64), _atomic(store)


@intrinsic
def atomic_add(typing_context, array, value):  # type: ignore[no-untyped-def]
    """Add to array[0] in one step for all threads, and give what it was."""

    def add(context, builder, data, value):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", data, value, "seq_cst")

    return numba.int64(array, numba.int64), _atomic(add)


@intrinsic
def yield_core(typing_context):  # type: ignore[no-untyped-def]
    """Let another thread or process run on this core: POSIX's sched_yield."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = llvmlite.ir.FunctionType(llvmlite.ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return numba.types.void(), generate


@numba.njit(**INNER)
def publish(region, n_pieces):  # type: ignore[no-untyped-def]
    """Begin a phase of so many pieces, all of the last one being done."""
    region.done[0] = 0
    atomic_store(region.ticket, n_pieces << _HALF)


@numba.njit(**INNER)
def take_piece(region):  # type: ignore[no-untyped-def]
    """Take the next piece of the present phase; -1 where none is left."""
    ticket = atomic_load(region.ticket)
    if ticket & _LOW_HALF >= ticket >> _HALF:
        return -1
    ticket = atomic_add(region.ticket, 1)
    piece = ticket & _LOW_HALF
    return piece if piece < ticket >> _HALF else -1


@numba.njit(**INNER)
def wait_for_all(region, n_pieces):  # type: ignore[no-untyped-def]
    """Wait until all pieces of the present phase are done."""
    looks = 0
    while atomic_load(region.done) < n_pieces:
        looks += 1
        if looks > SPINS:
            yield_core()
