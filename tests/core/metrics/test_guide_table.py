"""Scores placed on a curve: the guided search finds what the plain one finds, wherever points and values lie."""

from __future__ import annotations

import numpy as np
import pytest

from core.metrics.curve import GuideTable

INF = np.inf
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "points",
    [
        np.array([-INF]),
        np.array([-INF, 0.0]),
        np.array([-INF, 1.0, np.nextafter(1.0, 2.0)]),
        np.array([-INF, -1e308, 0.0, 1e308]),
        np.array([-INF, 5e-324, 1e-323]),
        np.array([-INF, 3.0, INF]),
        np.r_[-INF, np.unique(RNG.normal(size=2_000))],
        np.r_[-INF, np.unique(np.exp(8 * RNG.normal(size=2_000)))],
        np.r_[-INF, np.unique(RNG.integers(0, 50, 500) / 7)],
        np.r_[-INF, 1e9 + np.arange(300.0), 1e15],
    ],
)
def test_the_guided_search_finds_what_the_plain_one_finds(points: np.ndarray) -> None:
    finite = points[np.isfinite(points)]
    near = np.concatenate([np.nextafter(finite, -INF), finite, np.nextafter(finite, INF)])
    drawn = RNG.choice(finite, 500) * RNG.normal(1, 1e-3, 500) if len(finite) else []
    values = np.concatenate([near, drawn, [-INF, INF, 0.0, -0.0, 1e308, -1e308, 5e-324]])
    with np.errstate(over="ignore"):
        found = GuideTable.of(points).find(values)
    assert np.array_equal(found, np.searchsorted(points, values, side="right"))
