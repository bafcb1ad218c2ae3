"""Thread pools and parallel regions for compiled kernels.

Kernels release the interpreter's lock. `ThreadPool` wakes ordinary threads for each computation, which takes about
fifty microseconds. In a parallel region (`Region`) threads stay in compiled code from one phase of a computation to
the next, so that even phases of tens of microseconds can be shared. One thread, the leader, publishes the number of
tasks of a phase, takes tasks as the others do, and waits until all are done. The others, its workers, may come and
go. A worker that comes late joins the present phase; one that finds no task sleeps, and ends after a while.

A worker begins on another core than its leader (`_leave_core`). Linux would often wake it on the leader's own, and
leave it there for a whole fit: in a virtual machine it takes an idle core that the hypervisor put to sleep for busy.
"""

import ctypes
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
import numpy.typing as npt
from numba.core import cgutils
from numba.extending import intrinsic

from core.kernels import INNER

# Cells of the table from which a second thread pays: waking it costs about fifty microseconds.
PARALLEL_CELLS = 500_000

# The same for a team, whose threads look for tasks from one phase to the next: they are not woken for each.
TEAM_CELLS = 100_000


class ThreadPool:
    """As many threads as numba is set to use; one for a small computation of `n_cells`, the table cells it reads."""

    def __init__(self, n_cells: int) -> None:
        self._n_threads = numba.get_num_threads() if n_cells >= PARALLEL_CELLS else 1
        self._others = ThreadPoolExecutor(max(self._n_threads - 1, 1))

    @property
    def n_threads(self) -> int:
        return self._n_threads

    def run(self, kernel: Callable[..., None], n_tasks: int, *arguments: object) -> None:
        """Call kernel(first, step, n_tasks, *arguments) in each thread, with the tasks distributed in fixed strides.

        Thread k does the tasks k, k + step, ...: neighbours are alike in size. No two tasks may write to the same
        memory.
        """
        step = min(self._n_threads, n_tasks)
        shares = [
            self._others.submit(kernel, first, step, n_tasks, *arguments)
            for first in range(1, step)
        ]
        kernel(0, max(step, 1), n_tasks, *arguments)
        for share in shares:
            share.result()

    def deal(self, kernel: Callable[..., None], n_tasks: int, *arguments: object) -> None:
        """Call kernel(queue, n_tasks, *arguments) in each thread, with the tasks taken from a shared queue.

        A thread takes the next task from the queue when it is ready (`take`): if tasks differ in size, or a thread
        wakes late, the others do more. No two tasks may write to the same memory.
        """
        queue = np.zeros(1, dtype=np.int64)
        shares = [
            self._others.submit(kernel, queue, n_tasks, *arguments)
            for _ in range(1, min(self._n_threads, n_tasks))
        ]
        kernel(queue, n_tasks, *arguments)
        for share in shares:
            if not share.cancel():  # one that has not begun is not waited for
                share.result()


def shared_pool(n_cells: int) -> ThreadPool:
    """Return a pool whose threads persist, for frequent short computations."""
    return _pool(os.getpid(), numba.get_num_threads() if n_cells >= PARALLEL_CELLS else 1)


@cache
def _pool(
    _process: int, n_threads: int
) -> ThreadPool:  # a forked process has none of its parent's threads
    return ThreadPool(PARALLEL_CELLS if n_threads > 1 else 0)


class Region(NamedTuple):
    """The shared state of a parallel region: arrays of one number, each on a cache line of its own."""

    ticket: Any
    """Number of tasks of the present phase in the high 32 bits, the next task in the low 32 bits. Shape (1,), int64."""
    done: Any
    """Tasks of the present phase that are done. Shape (1,), int64."""
    failed: Any
    """Tasks that failed for lack of memory. Shape (1,), int64."""
    ended: Any
    """1 once there is no leader any more. Shape (1,), int64."""


REGION_TYPE = numba.types.NamedUniTuple(numba.int64[::1], len(Region._fields), Region)
_LINE = 64 // 8  # numbers of a cache line
_HALF, _LOW_HALF = 32, (1 << 32) - 1

# How often a thread without a task looks for one before it gives up its core between looks: some fifty microseconds.
SPINS = 20_000
# How often a worker then sleeps and looks before it ends: some two milliseconds.
SLEEPS = 20
SLEEP_MICROSECONDS = 50


def open_region() -> Region:
    room = np.zeros((len(Region._fields) + 1) * _LINE, dtype=np.int64)
    return Region(*(room[(k + 1) * _LINE :][:1] for k in range(len(Region._fields))))


class WorkerTeam:
    """The worker threads of a leader in a parallel region.

    n_cells: size of the computation: see `ThreadPool`. From `TEAM_CELLS` on there are workers.
    work: does tasks until the region has ended, or there has been no task for a while.
    n_threads: int; including the leader.
    """

    def __init__(self, n_cells: int, work: Callable[..., None], *arguments: object) -> None:
        n_threads = numba.get_num_threads() if n_cells >= TEAM_CELLS else 1
        self.n_threads = n_threads
        self.region = open_region()
        self._call: tuple[Any, ...] = (work, self.region, *arguments)
        self._threads = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None
        self._present: list[Future[None]] = [Future() for _ in range(n_threads - 1)]
        for absent in self._present:
            absent.set_result(None)
        # Workers that still look for tasks hold the arrays: let them end with the last reference to the team.
        weakref.finalize(self, _end, self.region)

    def __enter__(self) -> Region:
        """Start the workers that have ended; wait for none."""
        if self._threads is not None:
            for k, last in enumerate(self._present):
                if last.done():
                    last.result()
                    self._present[k] = self._threads.submit(_work_apart, _core(), *self._call)
        return self.region

    def __exit__(self, *_: object) -> None:
        """Raise MemoryError if a task of another thread failed."""
        if self.region.failed[0]:
            raise MemoryError("a thread had no memory for its task")


def _core() -> int:
    """Return the number of the core that this thread runs on; -1 where the system does not say."""
    return -1 if _sched_getcpu is None else int(_sched_getcpu())


_sched_getcpu = None
if hasattr(os, "sched_setaffinity"):  # Linux
    _sched_getcpu = getattr(ctypes.CDLL(None), "sched_getcpu", None)


def _leave_core(core: int) -> None:
    """Move this thread to another core than `core` if it may use one; it may come back."""
    if core < 0:
        return
    with suppress(OSError):  # a sandbox may forbid it
        allowed = os.sched_getaffinity(0)
        if len(allowed) > 1:
            os.sched_setaffinity(0, allowed - {core})
            os.sched_setaffinity(0, allowed)


def _work_apart(core: int, work: Callable[..., None], *arguments: object) -> None:
    _leave_core(core)
    work(*arguments)


def _end(region: Region) -> None:
    region.ended[0] = 1


def _atomic(operate: Callable[..., Any]) -> Callable[..., Any]:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return operate(context, builder, data, *arguments[1:])

    return generate


@intrinsic
def atomic_load(typing_context, array):  # type: ignore[no-untyped-def]
    """Return array[0], atomically, as last written by any thread."""

    def load(context, builder, data):  # type: ignore[no-untyped-def]
        return builder.load_atomic(data, "seq_cst", 8)

    return numba.int64(array), _atomic(load)


@intrinsic
def atomic_store(typing_context, array, value):  # type: ignore[no-untyped-def]
    """Write array[0] atomically, after all earlier writes of this thread."""

    def store(context, builder, data, value):  # type: ignore[no-untyped-def]
        builder.store_atomic(value, data, "seq_cst", 8)
        return context.get_dummy_value()

    return numba.types.void(array, numba.int64), _atomic(store)


@intrinsic
def atomic_add(typing_context, array, value):  # type: ignore[no-untyped-def]
    """Add to array[0] atomically, and return its old value."""

    def add(context, builder, data, value):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", data, value, "seq_cst")

    return numba.int64(array, numba.int64), _atomic(add)


@numba.njit(inline="always")
def take(queue):  # type: ignore[no-untyped-def]
    """Return queue[0] and increment it, atomically; queue is (1,) int64."""
    return atomic_add(queue, 1)


# POSIX's functions: one gives this core to another thread, the other sleeps for some microseconds.
yield_core = numba.types.ExternalFunction("sched_yield", numba.int32())
sleep = numba.types.ExternalFunction("usleep", numba.int32(numba.uint32))


def lay_out(kind: numba.types.Type, arrays: Any) -> npt.NDArray[np.int64]:
    """Return a tuple's memory layout for `tuple_at`; its arrays must outlive the readers. TypeError: other types."""
    if numba.typeof(arrays) != kind:
        raise TypeError(f"the arrays must be of the type {kind}, got {numba.typeof(arrays)}")
    return np.array(list(_words_of(arrays)), dtype=np.int64)


def _words_of(value: Any) -> Iterator[int]:
    """Yield the machine words of numba's record of an array or tuple, with null reference counter and parent."""
    if isinstance(value, tuple):
        for each in value:
            yield from _words_of(each)
    else:
        yield from (0, 0, value.size, value.itemsize, value.ctypes.data)
        yield from value.shape
        yield from value.strides


@intrinsic
def address_of(typing_context, value):  # type: ignore[no-untyped-def]
    """Return the address of a copy on the caller's stack; it and the arrays must outlive readers (`keep_alive`)."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        copy = cgutils.alloca_once_value(builder, arguments[0])
        return builder.ptrtoint(copy, llvmlite.ir.IntType(64))

    return numba.int64(value), generate


@intrinsic
def keep_alive(typing_context, value):  # type: ignore[no-untyped-def]
    """Keep the object whose address was taken alive until this point of a kernel."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.get_dummy_value()

    return numba.types.void(value), generate


def tuple_at(kind: numba.types.Type) -> Callable[[int], Any]:
    """Return a function for kernels that reads a tuple of arrays of this type from its address.

    The address is that of `lay_out` or `address_of`. Only what the caller uses is loaded, where a tuple as an argument
    would be copied by each call. The arrays are not counted as in use.
    """

    @intrinsic
    def read(typing_context, address):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            place = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
            return _without_counters(context, builder, kind, builder.load(place), ())

        return kind(numba.int64), generate

    function: Callable[[int], Any] = read
    return function


def _without_counters(context: Any, builder: Any, kind: Any, value: Any, path: Any) -> Any:
    """Return the tuple with each array's reference counter and parent set to null."""
    if isinstance(kind, numba.types.BaseTuple):
        for k, each in enumerate(kind.types):
            value = _without_counters(context, builder, each, value, (*path, k))
        return value
    model = context.data_model_manager[kind]
    for name in ("meminfo", "parent"):
        nothing = llvmlite.ir.Constant(context.get_value_type(model.get_member_fe_type(name)), None)
        place = (*path, model.get_field_position(name))
        value = builder.insert_value(value, nothing, place)
    return value


def caller_of(kinds: Sequence[numba.types.Type]) -> Callable[..., bool]:
    """Return a function for kernels that calls a kernel without a result by its address.

    Its arguments are the address (`core.kernels.address_of_kernel`) and those of the kernel, of these types. It returns
    True if the kernel raised. Numba would compile a kernel again with each function that calls it by its name.
    """

    @intrinsic
    def call(typing_context, address, *arguments):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
            place, given = values[0], enumerate(zip(signature.args[1], kinds, strict=True))
            taken = [
                context.cast(builder, builder.extract_value(values[1], k), *both)
                for k, both in given
            ]
            function = context.call_conv.get_function_type(numba.types.none, kinds)
            callee = builder.inttoptr(place, function.as_pointer())
            status, _ = context.call_conv.call_function(
                builder, callee, numba.types.none, kinds, taken
            )
            return status.is_error

        return numba.boolean(numba.int64, numba.types.StarArgTuple(arguments)), generate

    function: Callable[..., bool] = call
    return function


call_at = caller_of([numba.int64] * 3)


@numba.njit(**INNER)
def publish(region, n_tasks):  # type: ignore[no-untyped-def]
    """Start a phase of `n_tasks` tasks in a region; all tasks of the last phase must be done."""
    region.done[0] = 0
    atomic_store(region.ticket, n_tasks << _HALF)


@numba.njit(**INNER)
def take_task(region):  # type: ignore[no-untyped-def]
    """Return the next task of a region's current phase; -1 if none is left."""
    ticket = atomic_load(region.ticket)
    if ticket & _LOW_HALF >= ticket >> _HALF:
        return -1
    ticket = atomic_add(region.ticket, 1)
    task = ticket & _LOW_HALF
    return task if task < ticket >> _HALF else -1


@numba.njit(**INNER)
def wait_for_all(region, n_tasks):  # type: ignore[no-untyped-def]
    looks = 0
    while atomic_load(region.done) < n_tasks:
        looks += 1
        if looks > SPINS:
            yield_core()
