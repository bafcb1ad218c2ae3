"""Fits at once: the results of one after the other, one callback, and an end that reaches all."""

import threading

import numba
import pytest

from core.ensemble import count_at_once, fit_together


def make_fit(k, steps=5):
    def fit(callback):
        for step in range(1, steps + 1):
            callback(step, steps, {"loss": float(k)})
        return k, numba.get_num_threads()

    return fit


@pytest.mark.parametrize("at_once", [1, 2])
def test_results_come_in_order_and_each_step_is_told(at_once):
    seen = []
    results = fit_together(
        [make_fit(k) for k in range(5)], lambda *told: seen.append(told), at_once
    )
    assert [k for k, _ in results] == [0, 1, 2, 3, 4]
    for k in range(5):
        assert [told[1:3] for told in seen if told[0] == k] == [(s, 5) for s in range(1, 6)]
    assert {threads for _, threads in results} == {max(numba.get_num_threads() // at_once, 1)}


class Stop(Exception):
    pass


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_the_callback_raises_stops_all(at_once):
    both = threading.Barrier(at_once)

    def fit(callback):
        both.wait(timeout=30)
        for step in range(1, 100_000):
            callback(step, 100_000, {})
        raise AssertionError("nobody stopped it")

    def tell(number, step, of, info):
        if step >= 3:
            raise Stop

    with pytest.raises(Stop):
        fit_together([fit] * at_once, tell, at_once)


def test_what_a_fit_raises_reaches_the_caller():
    def fail(callback):
        raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows"):
        fit_together([make_fit(0), fail], lambda *told: None, 2)


def test_great_tables_are_fitted_one_at_a_time():
    assert count_at_once(1_000, 30) == numba.get_num_threads()
    assert count_at_once(10_000_000, 30) == 1
