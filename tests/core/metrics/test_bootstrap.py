"""Analytic covariances and intervals of areas agree with those of the bootstrap."""

import numpy as np
import pytest

from core.metrics import partial_auc_interval
from core.metrics.groups import check_rows
from core.metrics.intervals import estimate_areas
from tests.core.metrics.bootstrap import bootstrap_areas, bootstrap_interval
from tests.long_form import one_in

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


def two_scorers(
    n: int = 600, size: int = 1, seed: int = 0
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n // size), size)
    y = (rng.random(n) < 0.3).astype(int)
    shared = y + rng.normal(size=n // size)[unit]
    return y, [np.round(shared + rng.normal(size=n), 1) for _ in range(2)], unit


@pytest.mark.parametrize(("size", "weighted"), one_in(3, [1, 4], [False, True]))
def test_the_covariance_is_that_of_the_bootstrap(size: int, weighted: bool) -> None:
    y, scores, unit = two_scorers(size=size)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, y.size) if weighted else None
    group = unit if size > 1 else None
    areas = bootstrap_areas(y, scores, WINDOWS, 2000, 0, sample_weight=weight, group=group)
    found = np.cov(areas.reshape(len(areas), -1), rowvar=False)
    rows = check_rows(y, {"a": scores[0], "b": scores[1]}, weight, group)
    influence = estimate_areas(rows, WINDOWS).influence
    assert influence is not None
    expected = influence.reshape(6, -1) @ influence.reshape(6, -1).T
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.1)


@pytest.mark.parametrize(("size", "window"), one_in(5, [1, 4], WINDOWS))
def test_intervals_agree_with_the_bootstraps(size: int, window: tuple[float, float]) -> None:
    y, (scores, _), unit = two_scorers(size=size)
    group = unit if size > 1 else None
    _, low, high = partial_auc_interval(y, scores, *window, group=group)
    drawn = bootstrap_interval(y, scores, window, 0.95, 2000, 0, group=group)
    assert drawn == pytest.approx((low, high), abs=0.1 * (high - low))
