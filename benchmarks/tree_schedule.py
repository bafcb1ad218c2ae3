"""A model of boosted trees on more threads: `python -m benchmarks.tree_schedule`.

The tasks of a real fit are recorded on one thread with their durations; as many leaves are split at once as with the
modelled number of threads. Then the tasks of each phase are scheduled as by `core.trees.schedule`: an idle thread takes
the next task, and all threads wait for the last one. The time between phases is serial, and binning is not included.
This is a model, not a measurement: caches and memory bandwidth are those of one thread. `--barrier` sets how long a
barrier takes.
"""

from __future__ import annotations

import argparse
import time
from heapq import heapreplace
from pathlib import Path
from typing import Any

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.extending import intrinsic

import core
from benchmarks import at_least_one
from benchmarks.stumps import make_data
from benchmarks.trees import Data, read_real
from core.base.table import CodedTable
from core.coding.threads import call_at
from core.kernels import address_of_kernel
from core.trees import grower, records
from core.trees.records import arrays_at
from core.trees.tasks import run_task

MOST_TASKS = 4_000_000
PHASE, TASK, START, STOP = range(4)
TASKS = np.zeros((MOST_TASKS, 4), dtype=np.int64)
N_TASKS = np.zeros(1, dtype=np.int64)
_TASKS, _N_TASKS, _RUN_TASK = TASKS.ctypes.data, N_TASKS.ctypes.data, address_of_kernel(run_task)


@intrinsic
def _cycles(_context):  # type: ignore[no-untyped-def]
    """Return the time stamp of this core."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        kind = llvmlite.ir.FunctionType(llvmlite.ir.IntType(64), [])
        return builder.call(
            builder.module.declare_intrinsic("llvm.readcyclecounter", fnty=kind), []
        )

    return numba.int64(), generate


@intrinsic
def _at(_context, address):  # type: ignore[no-untyped-def]
    """Return an address as a pointer to int64."""
    kind = numba.types.CPointer(numba.int64)

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(numba.int64), generate


@numba.njit(numba.int64())
def now():  # type: ignore[no-untyped-def]
    """Return the time stamp of this core, to Python."""
    return _cycles()


@numba.njit(numba.void(numba.int64, numba.int64, numba.int64), nogil=True)
def _record(address, scratch_address, t):  # type: ignore[no-untyped-def]
    """Run a task of a tree, and record its phase, number, start and stop."""
    phase = arrays_at(address).progress[0].phase
    start = _cycles()
    failed = call_at(_RUN_TASK, address, scratch_address, t)
    stop = _cycles()
    count = numba.carray(_at(_N_TASKS), (1,))
    tasks = numba.carray(_at(_TASKS), (MOST_TASKS, 4))
    tasks[count[0], 0], tasks[count[0], 1] = phase, t
    tasks[count[0], 2], tasks[count[0], 3] = start, stop
    count[0] += 1
    if failed:
        raise MemoryError


def record_fit(data: Data, leaves: int, rounds: int, threads: int) -> tuple[Any, float, float]:
    """Fit on one thread with the batches of `threads`; return tasks, cycles of the rounds, cycles of a second."""
    n_before = numba.get_num_threads()
    numba.set_num_threads(1)
    compiled = _record.overloads[_record.signatures[0]]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    grow = grower.TreeGrower.grow
    most = max(min(grower.MAX_SPECULATIVE_SPLITS, leaves // 2 - 1), 1)

    def grow_recorded(self: grower.TreeGrower, *arguments: Any) -> Any:
        self.arrays.settings["run_task"] = address
        if threads > 1:
            self.arrays.settings["speculative_splits"] = min(
                grower.SPLITS_PER_THREAD * threads, most
            )
        return grow(self, *arguments)

    X: Any = data.X
    if data.n_categories.any():
        names = tuple(f"x{j}" for j in range(X.shape[1]))
        of_columns = data.n_categories.tolist()
        X = CodedTable(
            X, names, tuple(tuple(f"c{k:06}" for k in range(n)) if n else None for n in of_columns)
        )
    grower.TreeGrower.grow = grow_recorded  # type: ignore[method-assign, assignment]
    try:
        for n_rounds in (2, rounds):  # the first loads the kernels
            N_TASKS[0] = 0
            booster = core.LogitBoost(
                n_rounds=n_rounds,
                weak_ranker="tree",
                max_leaves=leaves,
                max_depth=60,
                learning_rate=0.1,
            )
            first, began = now(), time.perf_counter()
            booster.fit(X, data.y)
            cycles, seconds = now() - first, time.perf_counter() - began
    finally:
        numba.set_num_threads(n_before)
        grower.TreeGrower.grow = grow  # type: ignore[method-assign]
    tasks = TASKS[: N_TASKS[0]]
    return tasks, float(tasks[-1, STOP] - tasks[0, START]), cycles / seconds


def schedule(durations: list[float], threads: int) -> float:
    """Return when the last of these tasks ends, if each thread takes the next one as soon as it is free."""
    free = [0.0] * threads
    for duration in durations:
        heapreplace(free, free[0] + duration)
    return max(free)


def model(tasks: Any, cycles: float, threads: int, barrier: float) -> tuple[float, int, float]:
    """Return the modelled cycles of the rounds, the number of its phases, and the cycles outside of tasks."""
    phases: list[list[float]] = []
    before = -1, 0
    for phase, t, start, stop in tasks.tolist():
        if phase == records.MARK:
            continue  # by the leader, between phases
        if phase != before[0] or t <= before[1]:
            phases.append([])
        phases[-1].append(float(stop - start))
        before = phase, t
    serial = cycles - sum(map(sum, phases))
    waiting = barrier * len(phases) if threads > 1 else 0.0
    return serial + waiting + sum(schedule(each, threads) for each in phases), len(phases), serial


def main() -> None:
    """Print the modelled gain of each number of threads on each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, help="folder of real tables; else one is drawn")
    parser.add_argument("--only", nargs="+", default=[], help="names of the tables")
    parser.add_argument("--rows", type=at_least_one, default=100_000, help="of the drawn table")
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--rounds", type=at_least_one, default=50)
    parser.add_argument("--threads", type=at_least_one, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--barrier", type=float, default=2.0, help="microseconds per phase")
    given = parser.parse_args()
    print("| table | threads | modelled gain | tasks per phase | phases per tree | serial part |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in given.only or [f"drawn, {given.rows:,} × 30"]:
        if given.tables is None:
            X, y = make_data(given.rows, 30, 0)
            data = Data(X, y, X[:0], y[:0], np.zeros(30, dtype=np.int64))
        else:
            data = read_real(given.tables, name)
        _, one, _ = record_fit(data, given.leaves, given.rounds, 1)
        for threads in given.threads:
            tasks, cycles, per_second = record_fit(data, given.leaves, given.rounds, threads)
            barrier = given.barrier * 1e-6 * per_second
            modelled, n_phases, serial = model(tasks, cycles, threads, barrier)
            print(
                f"| {name} | {threads} | {one / modelled:.2f} | {len(tasks) / n_phases:.1f} "
                f"| {n_phases / given.rounds:.0f} | {serial / cycles:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
