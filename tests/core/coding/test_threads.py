"""Pieces dealt out to threads: each is done once, whoever comes first."""

from typing import Any

import numba
import numpy as np
import pytest

from core.coding import ThreadPool
from core.coding.threads import (
    PARALLEL_CELLS,
    REGION_TYPE,
    Helpers,
    atomic_add,
    atomic_load,
    publish,
    take,
    take_piece,
    wait_for_all,
)


@numba.njit(numba.void(numba.int64[::1], numba.int64, numba.int64[::1]), nogil=True)
def count(queue: Any, n: Any, done: Any) -> None:
    t = take(queue)
    while t < n:
        done[t] += 1
        t = take(queue)


@pytest.mark.parametrize("n_pieces", [0, 1, 2, 3000])
def test_each_piece_is_done_once(n_pieces: int) -> None:
    pool = ThreadPool(PARALLEL_CELLS)
    assert pool.n_threads == numba.get_num_threads()
    for _ in range(20):  # threads wake sooner or later
        done = np.zeros(n_pieces + 1, dtype=np.int64)
        pool.deal(count, n_pieces, done)
        assert done.tolist() == [1] * n_pieces + [0]


ROWS = numba.int64[:, ::1]


@numba.njit(numba.void(REGION_TYPE, ROWS), nogil=True)
def help_out(region: Any, done: Any) -> None:
    """Count the pieces of the present phase, and note who does, until the region has ended."""
    while atomic_load(region.ended) == 0:
        t = take_piece(region)
        if t >= 0:
            done[0, t] += 1
            done[1, t] += 1
            atomic_add(region.done, 1)


@numba.njit(numba.void(REGION_TYPE, ROWS, numba.int64, numba.int64), nogil=True)
def lead(region: Any, done: Any, n_phases: Any, n_pieces: Any) -> None:
    for phase in range(n_phases):
        publish(region, n_pieces)
        t = take_piece(region)
        while t >= 0:
            done[0, t] += 1
            if phase == 0:  # until others have come
                while atomic_load(region.done) < n_pieces - 1:
                    pass
            atomic_add(region.done, 1)
            t = take_piece(region)
        wait_for_all(region, n_pieces)
        for t in range(n_pieces):
            done[2, t] += 1 if done[0, t] == phase + 1 else 0


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread has no helpers")
def test_each_piece_of_each_phase_is_done_once_before_the_next_begins() -> None:
    done = np.zeros((3, 50), dtype=np.int64)
    helpers = Helpers(PARALLEL_CELLS, help_out, done)
    assert helpers.n_threads == numba.get_num_threads()
    with helpers as region:
        lead(region, done, 200, 40)
    assert (done[[0, 2], :40] == 200).all()
    assert (done[:, 40:] == 0).all()
    assert done[1].sum() >= 39  # of the first phase the leader did one
    del helpers
    assert region.ended[0] == 1  # so that nobody goes on looking


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread has no helpers")
def test_a_leader_hears_of_a_piece_that_could_not_be_done() -> None:
    done = np.zeros((3, 3), dtype=np.int64)
    helpers = Helpers(PARALLEL_CELLS, help_out, done)
    with pytest.raises(MemoryError, match="no memory for its piece"), helpers as region:
        region.failed[0] = 1


def test_few_cells_are_not_worth_a_thread() -> None:
    done = np.zeros((3, 5), dtype=np.int64)
    helpers = Helpers(PARALLEL_CELLS - 1, help_out, done)
    assert helpers.n_threads == 1
    with helpers as region:
        lead(region, done, 1, 0)
