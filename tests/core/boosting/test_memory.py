"""A fit's memory beside its input, counted by the allocator: at most twice the binned table."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from core import RankBoost
from tests.long_form import one_in

N_ROWS, N_FEATURES = 200_000, 32
FEW_LEAVES = {"weak_ranker": "tree", "max_leaves": 4}  # so that rows count, not histograms


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    return X, (X[:, 0] + rng.normal(size=N_ROWS) > 1.5).astype(np.int8)


@pytest.mark.parametrize("options", one_in(2, [{}, FEW_LEAVES, FEW_LEAVES | {"subsample": 0.2}]))
def test_a_fit_adds_at_most_twice_the_binned_table(
    rows: tuple[np.ndarray, np.ndarray], options: dict[str, Any]
) -> None:
    X, y = rows
    ranker = RankBoost(n_rounds=2, **options)
    ranker.fit(X, y)  # what is imported or loaded late is not the fit's
    tracemalloc.start()
    try:
        ranker.fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert X.size < peak <= 2 * X.size
