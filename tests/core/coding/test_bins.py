"""Codes, edges, and that a code above a cut is a value above its threshold."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.coding import MISSING, fit_bins
from core.coding.bins import MIN_ROWS_FOR_BUCKETS, fit_edges, learn_bins
from tests.core.threads import on_one_thread_and_on_all
from tests.long_form import LONG_FORM


def bin_column(
    values: Any, max_bins: int = 255, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, bool]:
    column = np.asarray(values, dtype=np.float64)[:, None]
    weight = np.ones(len(column)) if weight is None else np.asarray(weight, dtype=np.float64)
    bins, codes = fit_bins(column, np.arange(len(column)), weight, max_bins)
    return bins.edges[0], codes[0], bool(bins.has_missing[0])


def neighbours(values: np.ndarray) -> np.ndarray:
    """Values with their nearest float64 and float32 neighbours."""
    values = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
        around = [values, single, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]
        around += [np.nextafter(single, np.float32(s)) for s in (np.inf, -np.inf)]
    everything = np.concatenate([np.asarray(a, dtype=np.float64) for a in around])
    return everything[np.isfinite(everything)]


anything = st.floats(allow_nan=True, allow_infinity=False, allow_subnormal=True)
few = st.sampled_from([0.0, -0.0, 1.0, math.nan, 5e-324, -5e-324, 1e308, -1e308, 0.1, 0.1 + 2**-55])


@given(
    values=st.lists(st.one_of(anything, few), min_size=1, max_size=60), max_bins=st.integers(2, 255)
)
@settings(max_examples=3000 if LONG_FORM else 100)
def test_code_above_cut_is_value_above_threshold(values: list[float], max_bins: int) -> None:
    values = np.array(values)
    column = np.concatenate([values, neighbours(values[~np.isnan(values)])])
    edges, codes, has_missing = bin_column(column, max_bins)
    known = ~np.isnan(column)
    assert has_missing == (not known.all())
    assert (codes[~known] == MISSING).all()
    assert len(edges) < max_bins
    assert (np.diff(edges) > 0).all()
    for cut, threshold in enumerate(edges):
        assert ((codes[known] > cut) == (column[known] > threshold)).all()
    n_distinct = len(np.unique(column[known]))
    if 0 < n_distinct <= max_bins:
        assert len(edges) == n_distinct - 1
        assert set(edges) <= set(column[known])
    # no bin is empty, and an edge is a value of the data
    assert set(codes[known]) == (set(range(len(edges) + 1)) if known.any() else set())
    assert all(edge in column for edge in edges)


def test_255_values_keep_codes_of_their_own_and_missing_another() -> None:
    edges, codes, has_missing = bin_column([*range(255), np.nan])
    assert codes.tolist() == [*range(255), MISSING]
    assert len(edges) == 254
    assert has_missing
    edges, codes, _ = bin_column(range(256))
    assert len(edges) == 254
    assert codes.max() == 254


def test_quantile_bins_hold_equal_shares() -> None:
    rng = np.random.default_rng(0)
    _, codes, _ = bin_column(rng.permutation(100_000), max_bins=100)
    counts = np.bincount(codes)
    assert len(counts) == 100
    assert counts.min() >= 999
    assert counts.max() <= 1001


@pytest.mark.parametrize("heavy_first", [True, False])
def test_weights_of_any_span_give_edges_that_rise(heavy_first: bool) -> None:
    """Beside a weight of 1 one of 1e-290 adds nothing to a sum, and is still a row of its own."""
    values, weight = np.arange(40.0), np.full(40, 1e-290)
    weight[:5] = 1.0
    edges = fit_edges(values if heavy_first else -values, weight, 12)
    assert len(edges) > 0
    assert (np.diff(edges) > 0).all()


@given(
    table=st.lists(
        st.tuples(st.one_of(st.floats(-9, 9), st.just(math.nan)), st.integers(1, 4)),
        min_size=1,
        max_size=80,
    ),
    max_bins=st.integers(2, 12),
)
@settings(max_examples=2000 if LONG_FORM else 66)
def test_integer_weights_bin_as_repeated_rows(
    table: list[tuple[float, int]], max_bins: int
) -> None:
    values, weight = np.array([v for v, _ in table]), np.array([w for _, w in table])
    weighted, codes, _ = bin_column(values, max_bins, weight)
    repeated, codes_repeated, _ = bin_column(np.repeat(values, weight), max_bins)
    assert weighted.tolist() == repeated.tolist()
    assert np.repeat(codes, weight).tolist() == codes_repeated.tolist()


@pytest.mark.parametrize("order", ["C", "F"])
def test_layout_rows_and_threads_do_not_matter(order: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30_000, 11))
    X[rng.random(X.shape) < 0.05] = np.nan
    rows = rng.permutation(30_000)[:29_000]
    weight = np.ones(len(rows))
    expected = [bin_column(X[rows, j]) for j in range(11)]
    for bins, codes in on_one_thread_and_on_all(
        lambda: fit_bins(np.array(X, order=order), rows, weight, 255)
    ):
        for j, (edges, column, has_missing) in enumerate(expected):
            assert bins.edges[j].tolist() == edges.tolist()
            assert codes[j].tolist() == column.tolist()
            assert bins.has_missing[j] == has_missing


@pytest.mark.parametrize("max_bins", [2, 255, 5000])
def test_edges_of_many_rows_are_those_of_sorted_ones(max_bins: int) -> None:
    n = MIN_ROWS_FOR_BUCKETS + 1000
    rng = np.random.default_rng(0)
    normal = rng.normal(size=n)
    columns = {
        "normal": normal,
        "skewed": rng.lognormal(sigma=3.0, size=n),
        "heavy tails": rng.standard_cauchy(n),
        "with ties": rng.integers(0, 3 * max_bins, n) * 0.1,
        "missing": np.where(rng.random(n) < 0.3, np.nan, normal),
        "zeros of both signs": np.where(rng.random(n) < 0.2, rng.choice([0.0, -0.0], n), normal),
        "subnormal": normal * 1e-310,
        "of any size": normal * 1e307,
        "few, far away": np.where(rng.random(n) < 1e-3, 1e9, normal),
        "nothing": np.full(n, np.nan),
    }
    bins = learn_bins(np.column_stack([*columns.values()]), np.arange(n), np.ones(n), max_bins)
    for (name, column), edges in zip(columns.items(), bins.edges, strict=True):
        assert edges.tolist() == fit_edges(column, None, max_bins).tolist(), name
