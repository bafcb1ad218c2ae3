"""Kernels are compiled for their declared types, at their first call."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import numba
import numpy as np
import pytest

from core.kernels import kernel, when_compiling
from tests.raising import raises


def _scaled(x: Any, by: Any) -> Any:
    return x[0] * by


def _double(x: Any) -> Any:
    return _callee(x, 2)


_WIDE = numba.float64(numba.float64[::1], numba.int64)
_NARROW = numba.float64(numba.float32[::1], numba.int64)
_callee = kernel(_WIDE, _NARROW)(_scaled)


def test_it_is_loaded_for_all_its_types_by_the_first_call_and_for_no_others() -> None:
    scaled = kernel(_WIDE, _NARROW)(_scaled)
    assert scaled.signatures == []
    assert scaled(np.full(1, 3.0), 2) == 6.0
    assert len(scaled.signatures) == 2
    assert (
        scaled(np.full(1, 3.0, dtype=np.float32), np.int32(2)) == 6.0
    )  # as numba converts scalars
    for wrong in (np.full(1, 3), np.full(4, 3.0)[::2], np.full((1, 1), 3.0)):
        with raises(TypeError, "int64"):
            scaled(wrong, 2)
    assert len(scaled.signatures) == 2


def test_a_kernel_may_call_another_that_was_not_loaded_yet() -> None:
    double = kernel(numba.float64(numba.float64[::1]))(_double)
    assert double(np.full(1, 3.0)) == 6.0


def test_threads_may_call_it_first_at_once() -> None:
    scaled = kernel(_WIDE, _NARROW)(_scaled)
    ready = Barrier(4)

    def call(i: int) -> float:
        ready.wait()
        return float(scaled(np.full(1, float(i), dtype=[np.float64, np.float32][i % 2]), 2))

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(call, range(4))) == [0.0, 2.0, 4.0, 6.0]


def test_listeners_are_told_of_compilations_and_of_their_end_once() -> None:
    told: list[str | None] = []
    factor = float(time.time_ns() % 10**9)  # nothing of it is in the cache
    callee = kernel(numba.float64(numba.float64))(lambda x: factor * x)
    caller = kernel(numba.float64(numba.float64))(lambda x: callee(x) + 1.0)
    with when_compiling(told.append):
        assert caller(2.0) == 2.0 * factor + 1.0
        assert caller(2.0) == 2.0 * factor + 1.0
    *names, end = told
    assert end is None
    assert set(names) <= {
        f"{__name__}.test_listeners_are_told_of_compilations_and_of_their_end_once.<lambda>"
    }


@pytest.mark.parametrize("package", ["core", "app"])
def test_no_function_of_the_house_has_a_cache_of_numbas(package: str) -> None:
    root = Path(__file__).parents[3]
    texts = {path: path.read_text() for path in (root / package).rglob("*.py")}
    assert [path for path, text in texts.items() if "cache=True" in text] == []
