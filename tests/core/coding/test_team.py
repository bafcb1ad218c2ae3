"""Pieces dealt out to threads: each is done once, whoever comes first."""

import numba
import numpy as np
import pytest

from core.coding import Team
from core.coding.team import PARALLEL_CELLS, take


@numba.njit(numba.void(numba.int64[::1], numba.int64, numba.int64[::1]), nogil=True)
def count(queue, n, done):
    t = take(queue)
    while t < n:
        done[t] += 1
        t = take(queue)


@pytest.mark.parametrize("n_pieces", [0, 1, 2, 3000])
def test_each_piece_is_done_once(n_pieces):
    team = Team(PARALLEL_CELLS)
    assert team.n_threads == numba.get_num_threads()
    for _ in range(20):  # threads wake sooner or later
        done = np.zeros(n_pieces + 1, dtype=np.int64)
        team.deal(count, n_pieces, done)
        assert done.tolist() == [1] * n_pieces + [0]
