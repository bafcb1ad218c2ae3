"""Samples of rows from tables that alternate, as exports of orders do: a buyer, a seller, a buyer, a seller."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from core.base.splits import draw_spread
from core.base.target import Pairs
from core.base.training import TrainingData
from core.boosting.data import SAMPLE_ROWS, draw_sample
from core.boosting.pairs import ListedPairs
from core.linear.cutting_planes import find_axes
from core.linear.design import MAX_SAMPLED_ROWS, Coordinates, DenseRows, StoredRows, TableRows
from core.linear.newton import Affine, Preconditioner
from core.trees.sampling import THRESHOLD_ROWS, draw_rows, find_threshold


@pytest.mark.parametrize(("n", "n_drawn"), [(0, 0), (1, 1), (7, 7), (10, 3), (100_001, 5_000)])
def test_one_index_is_drawn_of_each_run(n: int, n_drawn: int) -> None:
    drawn = draw_spread(n, n_drawn, seed=1)
    ends = np.arange(n_drawn + 1) * n // max(n_drawn, 1)
    assert (drawn >= ends[:-1]).all()
    assert (drawn < ends[1:]).all()
    assert (drawn == draw_spread(n, n_drawn, seed=1)).all()
    assert n == n_drawn or (drawn != draw_spread(n, n_drawn, seed=2)).any()


@pytest.mark.parametrize("period", [2, 4, 7])
def test_every_phase_of_a_period_is_drawn_as_often(period: int) -> None:
    counts = np.bincount(draw_spread(period * 5_000, 5_000, seed=0) % period)
    assert counts == pytest.approx(np.full(period, 5_000 / period), rel=0.1)


def training_data(X: Any, positive: Any, query: Any = None) -> TrainingData:
    weight = np.ones(len(X))
    return TrainingData(X, positive, weight, np.zeros(X.shape[1], np.int64), query=query)


def test_the_sample_of_the_training_auc() -> None:
    """Each class is sampled at a quarter: every fourth positive would have the mark 1."""
    in_class = np.arange(8 * SAMPLE_ROWS) // 2
    sample = draw_sample(
        training_data((in_class % 4 == 0)[:, None] * 1.0, np.arange(8 * SAMPLE_ROWS) % 2 == 0)
    )
    for of_class in (sample.positive, ~sample.positive):
        assert np.average(sample.X[of_class, 0], weights=sample.weight[of_class]) == pytest.approx(
            0.25, abs=0.03
        )


@pytest.mark.parametrize("size", [4, 4 * SAMPLE_ROWS])
def test_the_sample_of_queries(size: int) -> None:
    """Whole queries that alternate, and the rows of a longer one."""
    n = 4 * SAMPLE_ROWS
    query = np.arange(n) // size
    mark = np.arange(n) // min(size, 2) // 2 % 4 == 0
    sample = draw_sample(
        training_data(mark[:, None] * 1.0, np.arange(n) % 2 == 0, query.astype(np.uint64))
    )
    assert len(sample.X) == SAMPLE_ROWS
    assert sample.X.mean() == pytest.approx(mark.mean(), abs=0.05)


def test_the_sample_of_pairs() -> None:
    """Each item is better than two others, of which it ranks only one below itself: the AUC is 1/2."""
    n = 2 * SAMPLE_ROWS
    better = np.repeat(np.arange(n), 2)
    X = np.r_[np.zeros(n), -1.0, 1.0][:, None]
    pairs = Pairs(better, n + np.arange(2 * n) % 2, np.ones(2 * n))
    sample = ListedPairs.of(X, pairs, np.zeros(1, np.int64)).sample()
    assert sample.size == SAMPLE_ROWS
    assert sample.metric(sample.X[:, 0]) == pytest.approx(0.5, abs=0.03)


N = 4 * MAX_SAMPLED_ROWS
POINTS = np.stack([np.arange(N) % 2, np.arange(N) % 4 == 1], axis=1) * 1.0
PLAIN = Coordinates(np.zeros(2, np.int64), np.zeros(2), np.ones(2), np.zeros(2, np.bool_))


@pytest.mark.parametrize(
    "rows", [DenseRows(POINTS, PLAIN), StoredRows(sparse.csr_array(POINTS), np.zeros(2), PLAIN)]
)
def test_second_moments_of_a_linear_score(rows: TableRows) -> None:
    """Every fourth row is 0 in both columns, but half of all are 1 in the first, and a quarter in the second."""
    weight = np.full(N, 0.5)
    assert rows.squares(weight) == pytest.approx([N / 4, N / 8], rel=0.05)
    assert len(rows.sampled.scores(np.zeros(2))) == MAX_SAMPLED_ROWS
    assert rows.sampled_weight(weight).sum() == pytest.approx(weight.sum())


def test_the_preconditioner_of_newton_steps() -> None:
    """A step from the origin along its own Hessian: the solution of H s = g, to the sample's two digits."""
    weight = np.full(N, 0.5)
    solver = Preconditioner(DenseRows(POINTS, PLAIN), weight, penalty=1.0)
    extended = np.c_[POINTS, np.ones(N)]
    hessian = extended.T @ (weight[:, None] * extended) + np.diag([1.0, 1.0, 0.0])
    score = Affine(np.array([1.0, -2.0]), 3.0)
    found = solver.solve(score)
    exact = np.linalg.solve(hessian, [1.0, -2.0, 3.0])
    assert [*found.w, found.b] == pytest.approx(exact, rel=0.1)


def test_the_axes_of_a_support_vector_machine() -> None:
    n = 400_000
    points = (np.arange(n)[:, None] // 2 % 8 == [[0, 4]]) * 1.0
    positive = np.arange(n) % 2 * 1.0
    axes = find_axes(DenseRows(points, PLAIN), positive, 1.0 - positive, turn=False)
    assert axes is not None
    assert axes.variance == pytest.approx([2 * 7 / 64] * 2, rel=0.3)


def test_the_weight_above_which_a_row_is_kept() -> None:
    weight = np.where(np.arange(8 * THRESHOLD_ROWS) % 2 == 0, 1.0, 9.0)
    threshold = find_threshold(weight[draw_rows(len(weight), key=5)], 0.3)
    assert np.minimum(1.0, weight / threshold).mean() == pytest.approx(0.3, rel=0.03)
