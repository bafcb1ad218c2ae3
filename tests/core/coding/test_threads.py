"""Tasks that threads share: each is done once, by any thread."""

import os
from typing import Any

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
    atomic_add,
    atomic_load,
    publish,
    take,
    take_task,
    wait_for_all,
)
from core.kernels import kernel
from tests.sentences import Sentences

pytestmark = pytest.mark.usefixtures("all_threads")


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
