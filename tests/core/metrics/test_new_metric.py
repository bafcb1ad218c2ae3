"""A new metric is one class: interval, test, comparison, weights, groups and its simulation follow."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import coverage
from core.errors import InvalidParameter
from core.metrics import Gini, auc, auc_interval, compare_metrics, measure, metric_named
from core.metrics import compare as compare_areas
from tests.core.metrics.square_area import WITH_SQUARE_AREA, SquareArea
from tests.raising import raises


@pytest.fixture
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.metrics.measuring.METRICS", WITH_SQUARE_AREA)


def sample(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    return y, rng.normal(size=n) + y, rng.normal(size=n) + 0.5 * y


@pytest.mark.usefixtures("_declared")
def test_its_name_is_enough() -> None:
    y, first, second = sample()
    (metric,) = [metric_named("square_area:0.5")]
    assert metric == SquareArea(0.5)
    area = measure(y, first, [metric_named("pauc:0,0.5")])[0]
    found = measure(y, first, [metric])[0]
    assert found.interval.value == pytest.approx(area.interval.value**2)
    # Of so many rows the interval is nearly the square of the area's.
    assert found.interval[1:] == pytest.approx(np.square(area.interval[1:]), abs=0.01)
    assert found.p_value is not None
    assert found.p_value < 1e-6
    weights, groups = np.repeat([1.0, 2.0], len(y) // 2), np.arange(len(y)) // 4
    for options in ({"sample_weight": weights}, {"group": groups}):
        (compared,) = compare_metrics(y, [first, second], [metric], **options)
        (difference,) = compared.differences
        assert difference.low < difference.value < difference.high
        assert difference.p_value < 0.05


@pytest.mark.usefixtures("_declared")
def test_its_interval_is_simulated_by_name() -> None:
    row = coverage.measure_metrics(coverage.LISTS[4], ["square_area:0.5", "gini"], 60, 20_000)
    covered = [float(share) for share in row.split("|")[2].split("/")]
    assert min(covered) > 85


def test_a_number_out_of_range_is_refused_with_the_name() -> None:
    for name in ("precision@0", "precision@1.5", "pauc:0.5,0.1"):
        with raises(InvalidParameter, name):
            metric_named(name)
    with raises(InvalidParameter, "'square_area:0.5'"):
        metric_named("square_area:0.5")


def test_gini_is_the_area_in_another_unit() -> None:
    y, first, second = sample()
    (found,) = measure(y, first, [Gini()])
    assert found.interval == pytest.approx([2 * end - 1 for end in auc_interval(y, first)])
    assert found.chance == 0.0
    (compared,) = compare_metrics(y, [first, second], [Gini()])
    areas = compare_areas(y, [first, second]).windows[0]
    assert compared.values[1].value == pytest.approx(2 * auc(y, second) - 1)
    (gini,), (area,) = compared.differences, areas.differences
    assert (gini.low, gini.high) == pytest.approx((2 * area.low, 2 * area.high))
    assert gini.p_value == pytest.approx(area.p_value)
    # Worse than chance: below 0.
    assert measure(y, -first, [Gini()])[0].interval.high < 0
