"""A loss that is new to the project, in trees and stumps, in memory, out of core and over hosts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.base.columns import ColumnTable
from core.base.table import CodedTable
from core.coding import stored
from core.metrics import auc
from tests.core.boosting.row_losses import (
    ExactFocalBoost,
    FocalBoost,
    HingeBoost,
    InfiniteBoost,
    UndefinedBoost,
)
from tests.core.coding.test_stored import make_rows
from tests.core.column_sources import ArrayColumns, LocalHosts
from tests.raising import raises

STUMPS: dict[str, Any] = {"n_rounds": 12, "max_depth": 1, "max_leaves": None}
TREES: dict[str, Any] = {"n_rounds": 8, "max_leaves": 6, "subsample": 0.8}


@pytest.mark.parametrize("shape", [STUMPS, TREES])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_same_in_memory_by_columns_and_over_hosts(
    tmp_path: Path, shape: dict[str, Any], weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 40)
    X, y, names, categories = make_rows(3, 150)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    source = ArrayColumns(X, names, categories, b"rows")
    rows = CodedTable(X, names, categories)

    def fit(table: Any) -> HingeBoost:
        return HingeBoost(**shape, min_samples_leaf=2).fit(table, y, weight)

    in_memory = fit(rows)
    assert auc(y, in_memory.decision_function(rows)) > 0.8
    for placement in (None, LocalHosts(1, tmp_path), LocalHosts(3, tmp_path)):
        other = fit(ColumnTable(source, tmp_path, placement=placement))
        assert (other.decision_function(rows) == in_memory.decision_function(rows)).all()
        assert (other.loss_ == in_memory.loss_).all()


def test_the_first_stump_and_the_loss_are_those_by_definition() -> None:
    rng = np.random.default_rng(1)
    X, n = rng.normal(size=(400, 3)), 400
    y = X[:, 1] + rng.normal(size=n) > 0.7
    sign = np.where(y, 1.0, -1.0)
    ranker = HingeBoost(
        n_rounds=1,
        max_bins=500,
        max_depth=1,
        max_leaves=None,
        min_samples_leaf=20,
        smoothing=0,
        learning_rate=1,
    ).fit(X, y)
    c = sign.mean()
    gradient, hessian = 2 * sign * (1 - sign * c), np.full(n, 2.0)
    best = max(
        (sum(gradient[side].sum() ** 2 / hessian[side].sum() for side in sides), j, cut)
        for j in range(3)
        for cut in np.sort(X[:, j])[19:-20]
        for sides in [(X[:, j] > cut, X[:, j] <= cut)]
    )
    _, j, cut = best
    scores = np.full(n, c)
    for side in (X[:, j] > cut, X[:, j] <= cut):
        scores[side] += gradient[side].sum() / hessian[side].sum()
    np.testing.assert_allclose(ranker.decision_function(X), scores, rtol=1e-6)
    loss = (np.maximum(1 - sign * scores, 0) ** 2).sum()
    assert ranker.loss_[0] == pytest.approx(loss, rel=1e-9)


def noisy_table() -> tuple[Any, Any, Any]:
    """Two binary columns, and two labels that are wrong, of small weight: their margins fall below the inflection."""
    rows = np.arange(400)
    clean = rows % 2 == 0
    wrong = np.isin(rows, [0, 1])
    return np.column_stack([clean, rows % 4 > 1]), clean ^ wrong, np.where(wrong, 1e-3, 1.0)


FAST: dict[str, Any] = {"n_rounds": 40, "max_leaves": 4, "learning_rate": 1.0}


@pytest.mark.parametrize("subsample", [1.0, 0.5])
@pytest.mark.parametrize("hosts", [None, 0, 2])
def test_a_second_derivative_below_0_is_an_error_that_names_the_loss(
    tmp_path: Path, subsample: float, hosts: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 100)
    X, y, weight = noisy_table()
    table: Any = X
    if hosts is not None:
        source = ArrayColumns(X.astype(float), ("a", "b"), (None, None), b"rows")
        placement = LocalHosts(hosts, tmp_path) if hosts else None
        table = ColumnTable(source, tmp_path, placement=placement)
    with raises(ValueError, "ExactFocalLoss"):
        ExactFocalBoost(**FAST, subsample=subsample).fit(table, y, weight)


def test_a_loss_that_is_not_convex_is_learnt_with_the_absolute_second_derivative() -> None:
    X, y, weight = noisy_table()
    ranker = FocalBoost(**FAST).fit(X, y, weight)
    assert (np.diff(ranker.loss_) < 0).all()
    margin = np.where(y, 1.0, -1.0) * ranker.decision_function(X)
    assert margin[weight < 1].max() < -3.0  # there the second derivative is below 0
    p = 1 / (1 + np.exp(-margin))
    assert ranker.loss_[-1] == pytest.approx((weight * (1 - p) ** 2 * -np.log(p)).sum(), rel=1e-9)


@pytest.mark.parametrize("subsample", [1.0, 0.3])
@pytest.mark.parametrize("boost", [InfiniteBoost, UndefinedBoost])
def test_a_derivative_that_is_not_finite_is_an_error(
    boost: type[FocalBoost], subsample: float
) -> None:
    X, y, weight = noisy_table()
    with raises(ValueError, boost.loss_class.__name__):
        boost(**FAST, subsample=subsample).fit(X, y, weight)
