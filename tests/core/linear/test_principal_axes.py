"""The metric for programs on words: the iterations that the axes of the scores' variance save."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from core.linear import AUCSVM, PAUCSVM, cutting_planes


def words(n: int = 1500, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Columns of words that go together, common ones and rare ones, and a number."""
    rng = np.random.default_rng(seed)
    kind = (rng.exponential(size=n) * 8).astype(int)
    table = pd.DataFrame(
        {
            "kind": [f"k{k}" for k in kind],
            "group": [f"g{k}" for k in np.where(rng.random(n) < 0.9, kind % 7, 3)],
            "place": [f"p{k}" for k in rng.integers(0, 40, n)],
            "size": kind % 5 + rng.normal(size=n),
        }
    )
    effect = rng.normal(size=kind.max() + 1)[kind]
    return table, effect + 0.3 * table["size"] + rng.normal(size=n) > 1.0


@pytest.mark.parametrize(("ranker", "most"), [(AUCSVM(C=1e4), 25), (PAUCSVM(C=1e3), 120)])
def test_programs_on_words_take_few_iterations(
    ranker: AUCSVM | PAUCSVM, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few iterations are enough to reach the minimum that is found without the metric."""
    table, y = words()
    found = ranker.fit(table, y)
    n_iter, objective, gap = found.n_iter_, found.objective_, found.gap_
    monkeypatch.setattr(cutting_planes, "VARIANCE_METRIC_FROM", np.inf)
    plain = ranker.fit(table, y)
    assert n_iter < most < plain.n_iter_
    assert objective - gap <= plain.objective_
    assert plain.objective_ - plain.gap_ <= objective


def test_blas_has_one_thread() -> None:
    """Its sums depend on how many it has."""
    table, y = words(n=300)
    seen: set[Any] = set()

    def callback(*_: Any) -> None:
        seen.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

    with threadpool_limits(2, user_api="blas"):
        AUCSVM(C=10.0).fit(table, y, callback=callback)
    assert seen == {1}
