"""The metric for programs on words: the axes of the scores' variance, and the iterations that they save."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from core.base.training import TrainingData
from core.linear import AUCSVM, PAUCSVM, cutting_planes
from core.linear.cutting_planes import CuttingPlanes, draw_by_mass, find_axes
from core.linear.design import fit_design
from core.linear.surrogates import Problem, Surrogate, window_of
from core.linear.svm import SupportVectorParameters, fit_map
from tests.core.linear.mapped_tables import NAMES, mixed_table


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


def all_rows() -> Iterator[Any]:
    """Rows of every class that there is, with their weights."""
    X, positive, weight = mixed_table(n=80)
    of_words = np.array([0, 3, 0, 2])
    numbers, none = np.nan_to_num(X), np.zeros(4, np.int64)
    yield "words", fit_design(X, weight, of_words, standardize=True)
    yield "numbers", fit_design(numbers, weight, none, standardize=True)
    yield "sparse", fit_design(sparse.csr_array(numbers), weight, none, standardize=True)
    for name in NAMES:
        settings = SupportVectorParameters(
            feature_map=name, n_components=12, bandwidth=1.0, max_bins=8
        )
        yield name, fit_map(settings, TrainingData(X, positive, weight, of_words))[1]


def test_rows_taken_are_those_rows() -> None:
    some = np.array([2, 3, 17, 60])
    for name, rows in all_rows():
        w = np.random.default_rng(1).normal(size=rows.size)
        assert rows.take(some).scores(w) == pytest.approx(rows.scores(w)[some]), name


@pytest.mark.parametrize("most", [30, 5000])
def test_a_row_of_weight_k_is_drawn_as_k_rows(most: int) -> None:
    weight = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    row = np.repeat(np.arange(400), weight.astype(int))
    taken, times = draw_by_mass(weight, most)
    again, of_each = draw_by_mass(np.ones(len(row)), most)
    assert (np.bincount(taken, times, 400) == np.bincount(row[again], of_each, 400)).all()
    assert times.sum() == min(most, len(row))


def test_axes_are_those_of_the_covariance() -> None:
    _, positive, weight = mixed_table(n=80)
    for name, rows in all_rows():
        each = np.stack([rows.scores(axis) for axis in np.eye(rows.size)], axis=1)
        classes = [np.where(positive == of, weight, 0.0) for of in (True, False)]
        expected = sum(np.cov(each.T, aweights=share, ddof=0) for share in classes)
        found = find_axes(rows, *classes)
        w = np.random.default_rng(2).normal(size=rows.size)
        turned = found.rotated(w)
        assert (turned**2 * found.variance).sum() == pytest.approx(w @ expected @ w), name
        assert found.rotated_back(turned) == pytest.approx(w), name
        assert found.rotated(np.stack([w, w]))[1] == pytest.approx(turned), name


def test_no_axes_where_products_are_beyond_numbers() -> None:
    rows = fit_design(
        np.array([[1e160], [-1e160], [3e160]]), np.ones(3), np.zeros(1, np.int64), standardize=False
    )
    assert find_axes(rows, np.array([1.0, 0, 0]), np.array([0, 1.0, 1.0])) is None


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


def test_a_point_is_stretched_only_downhill() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + np.repeat([[1.0], [0.0]], 30, axis=0)
    rows = fit_design(X, np.ones(60), np.zeros(3, np.int64), standardize=False)
    surrogate = Surrogate(np.ones(30), np.ones(30), window_of(np.ones(30), 0.0, 0.5))
    planes = CuttingPlanes(Problem(rows, np.arange(30), np.arange(30, 60), surrogate))
    start = planes.point(np.array([1e-3, 1e-3, 1e-3]))
    further = planes.stretch(start, 10.0, 1.0)
    assert further.w == pytest.approx(10.0 * start.w)
    assert further.risk == pytest.approx(planes.point(10.0 * start.w).risk)
    assert planes.stretch(start, 1e6, 1.0) is start
