"""Tasks that threads share: each is done once, by any thread."""

import os
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from core.coding import ThreadPool
from core.coding.threads import (
    PARALLEL_CELLS,
    REGION_TYPE,
    TEAM_CELLS,
    WorkerTeam,
    _leave_core,
    address_of,
    atomic_add,
    atomic_load,
    call_at,
    keep_alive,
    lay_out,
    publish,
    take,
    take_task,
    tuple_at,
    wait_for_all,
)
from core.kernels import address_of_kernel, kernel
from tests.sentences import Sentences


@kernel(numba.void(numba.int64[::1], numba.int64, numba.int64[::1]))
def count(queue: Any, n: Any, done: Any) -> None:
    t = take(queue)
    while t < n:
        done[t] += 1
        t = take(queue)


@pytest.mark.parametrize("n_tasks", [0, 1, 2, 3000])
def test_each_task_is_done_once(n_tasks: int) -> None:
    pool = ThreadPool(PARALLEL_CELLS)
    assert pool.n_threads == numba.get_num_threads()
    for _ in range(20):  # threads wake sooner or later
        done = np.zeros(n_tasks + 1, dtype=np.int64)
        pool.deal(count, n_tasks, done)
        assert done.tolist() == [1] * n_tasks + [0]


ROWS = numba.int64[:, ::1]


@kernel(numba.void(REGION_TYPE, ROWS))
def work(region: Any, done: Any) -> None:
    """Count the tasks of the present phase, and those of the workers, until the region has ended."""
    while atomic_load(region.ended) == 0:
        t = take_task(region)
        if t >= 0:
            done[0, t] += 1
            done[1, t] += 1
            atomic_add(region.done, 1)


@kernel(numba.void(REGION_TYPE, ROWS, numba.int64, numba.int64))
def lead(region: Any, done: Any, n_phases: Any, n_tasks: Any) -> None:
    for phase in range(n_phases):
        publish(region, n_tasks)
        t = take_task(region)
        while t >= 0:
            done[0, t] += 1
            if phase == 0:  # until others have come
                while atomic_load(region.done) < n_tasks - 1:
                    pass
            atomic_add(region.done, 1)
            t = take_task(region)
        wait_for_all(region, n_tasks)
        for t in range(n_tasks):
            done[2, t] += 1 if done[0, t] == phase + 1 else 0


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread has no workers")
def test_each_task_of_each_phase_is_done_once_before_the_next_begins() -> None:
    done = np.zeros((3, 50), dtype=np.int64)
    workers = WorkerTeam(TEAM_CELLS, work, done)
    assert workers.n_threads == numba.get_num_threads()
    with workers as region:
        lead(region, done, 200, 40)
    assert (done[[0, 2], :40] == 200).all()
    assert (done[:, 40:] == 0).all()
    assert done[1].sum() >= 39  # of the first phase the leader did one
    del workers
    assert region.ended[0] == 1  # so that nobody goes on looking


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread has no workers")
def test_a_leader_hears_of_a_task_that_could_not_be_done(sentences: Sentences) -> None:
    done = np.zeros((3, 3), dtype=np.int64)
    workers = WorkerTeam(TEAM_CELLS, work, done)
    with sentences.raises(MemoryError), workers as region:
        region.failed[0] = 1


class Pair(NamedTuple):
    rows: Any
    cells: Any


PAIR = numba.types.NamedTuple((numba.int64[::1], numba.float64[:, ::1]), Pair)
NESTED = numba.types.Tuple((PAIR, numba.uint8[:, :, ::1]))
nested_at = tuple_at(NESTED)


@kernel(numba.void(numba.int64, numba.int64, numba.int64))
def add_up(place: Any, room: Any, t: Any) -> None:
    pair, bytes_ = nested_at(place)
    if t >= len(pair.rows):
        raise IndexError
    pair.cells[t, room] += pair.rows[t] + bytes_[-1, -1, t]


@numba.njit
def call_it(function: Any, place: Any, room: Any, t: Any) -> Any:
    return call_at(function, place, room, t)


@numba.njit
def read_own(rows: Any, cells: Any, bytes_: Any) -> Any:
    given = Pair(rows, cells), bytes_
    pair, others = nested_at(address_of(given))
    sums = pair.rows.sum(), pair.cells.shape, others[0].sum()
    keep_alive(given)
    return sums


def test_a_kernel_is_called_by_its_address_and_reads_arrays_at_theirs(sentences: Sentences) -> None:
    rows, cells = np.array([3, 5]), np.zeros((2, 4))
    bytes_ = np.arange(12, dtype=np.uint8).reshape(2, 3, 2)
    layout = lay_out(NESTED, (Pair(rows, cells), bytes_))
    place = layout.ctypes.data
    failed = [call_it(address_of_kernel(add_up), place, 3, t) for t in range(3)]
    assert failed == [False, False, True]
    assert cells[:, 3].tolist() == [3 + 10, 5 + 11]
    assert not cells[:, :3].any()
    assert read_own(rows, cells, bytes_) == (8, (2, 4), 15)
    with sentences.raises(TypeError):
        lay_out(NESTED, (Pair(rows, cells.T), bytes_))


def test_few_cells_are_not_worth_a_thread() -> None:
    done = np.zeros((3, 5), dtype=np.int64)
    workers = WorkerTeam(TEAM_CELLS - 1, work, done)
    assert workers.n_threads == 1
    with workers as region:
        lead(region, done, 1, 0)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_a_worker_may_use_all_cores_after_it_left_that_of_its_leader() -> None:
    allowed = os.sched_getaffinity(0)
    for core in (min(allowed), -1):
        _leave_core(core)
        assert os.sched_getaffinity(0) == allowed
