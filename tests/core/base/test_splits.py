"""Parts and folds: by the values of rows, or at random."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from core import AUCSVM, RankAverage, RankBoost, TreeRank
from core.base.splits import (
    draw_folds,
    draw_part,
    even_parts,
    hold_out,
    join_units,
    number_inseparable,
    sort_keys,
    split_rows,
)
from core.errors import InvalidData
from tests.sentences import Sentences


def test_keys_are_sorted_by_their_first_bytes_and_rows_of_equal_keys_stay_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.base.splits.ROWS_AT_ONCE", 7)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 60, 600):
        for top in (1, 5, 2**64 - 1):
            keys = rng.integers(0, top, n, dtype=np.uint64, endpoint=True)
            order, starts = sort_keys(keys)
            assert (order == np.argsort(keys, kind="stable")).all()
            ascending = keys[order]
            assert ascending[starts].tolist() == np.unique(keys).tolist()
            assert all(ascending[i] > ascending[i - 1] for i in starts[1:].tolist())


@pytest.mark.parametrize("n_values", [2, 3, 5, 40])
def test_equal_rows_stay_together_whatever_their_class(n_values: int) -> None:
    rng = np.random.default_rng(n_values)
    for seed in range(60):
        x = rng.integers(0, n_values, 60)
        positive = rng.random(60) < rng.uniform(0.2, 0.8, n_values)[x]
        weight = rng.integers(1, 4, 60).astype(float)
        X = np.column_stack([x, x % 2]).astype(float)
        held = hold_out(X, positive, weight, 0.25, seed)
        classes = [positive, ~positive]
        if min(len(set(x[own])) for own in classes) < 2:
            assert held is None
            continue
        assert not set(x[held]) & set(x[~held])
        for own in classes:
            assert held[own].any()
            assert not held[own].all()


def test_as_much_of_each_class_is_held_out_as_was_asked_for() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 400, 4000)
    positive, X = rng.random(4000) < 0.2, x[:, None].astype(float)
    held = hold_out(X, positive, np.ones(4000), 0.25, 0)
    shares = [held[own].mean() for own in (positive, ~positive)]
    assert max(shares) <= 0.25
    assert min(shares) > 0.22


def test_folds_and_parts_at_random_are_drawn_from_each_class() -> None:
    positive = np.arange(23) < 7
    fold = draw_folds(positive, 3, 5)
    for own in (positive, ~positive):
        sizes = np.bincount(fold[own], minlength=3)
        assert sizes.max() - sizes.min() <= 1
    for fraction, expected in ((0.25, (2, 4)), (0.001, (1, 1)), (0.999, (6, 15))):
        part = draw_part(positive, fraction, 5)
        assert (int(part[positive].sum()), int(part[~positive].sum())) == expected
    assert (draw_part(positive, 0.25, 5) != draw_part(positive, 0.25, 6)).any()
    assert draw_part(np.arange(9) < 1, 0.5, 0) is None
    assert draw_part(np.zeros((8, 2), dtype=bool), 0.25, 0).sum() == 2


def copies(n_distinct: int = 40, times: int = 4, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    row = rng.permutation(np.repeat(np.arange(n_distinct), times))
    return rng.normal(size=(n_distinct, 3))[row], row, rng.random(len(row)) < 0.4


@pytest.mark.parametrize("labels", [1, 3])
def test_copies_of_a_row_and_rows_of_a_group_stay_together(labels: int) -> None:
    X, row, positive = copies()
    group = (row % 20).astype(np.uint64)
    if labels > 1:
        positive = np.random.default_rng(1).random((len(row), labels)) < 0.4
    for given, known in ((None, row), (group, group)):
        unit = number_inseparable(X, positive, np.ones(len(X)), given)
        assert len(np.unique(np.stack([unit, known]), axis=1).T) == len(np.unique(known))
        assert np.unique(unit, return_index=True)[1].tolist() == sorted(
            np.unique(known, return_index=True)[1].tolist()
        )  # numbered as they come
        for seed in range(20):
            part = draw_part(positive, 0.25, seed, unit)
            assert not set(known[part]) & set(known[~part])
            assert 0.1 < part.mean() < 0.4
            if labels == 1:
                fold = draw_folds(positive, 5, seed, unit)
                assert len(np.unique(np.stack([fold, unit]), axis=1).T) == unit.max() + 1


def test_no_part_is_empty_where_there_are_units_for_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        n_parts = int(rng.integers(1, 9))
        mass = np.exp(4 * rng.normal(size=rng.integers(n_parts, 30))).astype(np.int64) + 1
        parts = even_parts(mass, n_parts)
        assert parts[0] == 0
        assert parts[-1] == n_parts - 1
        assert set(np.diff(parts)) <= {0, 1}
    assert even_parts(np.array([5]), 3).tolist() == [1]  # fewer than parts: by their middles
    assert even_parts(np.array([], dtype=np.int64), 3).tolist() == []
    group = np.repeat(np.arange(5, dtype=np.uint64), 100)
    positive = np.tile(np.arange(100), 5) < np.repeat([2, 26, 50, 74, 98], 100)
    for seed in range(20):
        folds = split_rows(np.zeros((500, 1)), positive, np.ones(500), 5, group=group, seed=seed)
        assert [int(fold.sum()) for fold in folds] == [100] * 5


def test_rows_that_may_all_go_their_own_ways_are_drawn_as_ever() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    positive, weight = rng.random(200) < 0.3, np.ones(200)
    assert number_inseparable(X, positive, weight) is None
    assert number_inseparable(X, positive, weight, np.arange(200, dtype=np.uint64)) is None
    kinds = rng.integers(0, 2, (200, 3)).astype(float)  # 8 kinds are no copies
    assert number_inseparable(kinds, positive, weight) is None
    assert number_inseparable(kinds, positive, weight, kinds[:, 0].astype(np.uint64)) is not None
    few, _, has = copies(20, 4)  # copies of few rows are
    assert number_inseparable(few, has, np.ones(80)).max() == 19
    alone = np.arange(200)
    for seed in range(20):
        assert (draw_part(positive, 0.2, seed) == draw_part(positive, 0.2, seed, alone)).all()
        assert (draw_folds(positive, 5, seed) == draw_folds(positive, 5, seed, alone)).all()


def test_a_part_that_no_units_make_is_none() -> None:
    positive = np.arange(12) < 6
    assert draw_part(positive, 0.5, 0, np.zeros(12, dtype=int)) is None
    assert draw_part(positive, 0.5, 0, positive.astype(int)) is None
    part = draw_part(positive, 0.5, 0, np.arange(12) % 2)  # each has both classes
    assert part.sum() == 6


def test_rows_of_a_few_kinds_are_parted_whatever_their_order(sentences: Sentences) -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 2)).astype(float)
    positive, weight = rng.random(300) < 0.3 + 0.2 * X[:, 0], rng.integers(1, 3, 300).astype(float)
    order = rng.permutation(300)
    for n_splits in (1, 5):
        splits = split_rows(X, positive, weight, n_splits, seed=3)
        moved = split_rows(X[order], positive[order], weight[order], n_splits, seed=3)
        for held, again in zip(splits, moved, strict=True):
            assert held.mean() == pytest.approx(0.25 if n_splits == 1 else 0.2, abs=0.05)
            one, other = (
                np.column_stack([X, positive, weight])[held],
                np.column_stack([X[order], positive[order], weight[order]])[again],
            )
            assert (one[np.lexsort(one.T)] == other[np.lexsort(other.T)]).all()
    with sentences.raises(InvalidData):
        split_rows(X, positive, weight, 5, group=X[:, 0].astype(np.uint64))


@pytest.mark.parametrize(
    "ranker",
    [
        TreeRank(pruning="cv", n_folds=4),
        TreeRank(pruning="holdout"),
        AUCSVM(C="auto"),
        RankAverage(members=[RankBoost(n_rounds=40, early_stopping_rounds=5)]),
    ],
    ids=["folds", "held out", "svm", "members"],
)
def test_groups_reach_whatever_holds_rows_out(ranker: Any) -> None:
    """Noise with three slightly moved copies of each row: with the groups, another ranker is kept."""
    X, row, _ = copies(150, 3)
    X = X + 1e-3 * np.random.default_rng(2).normal(size=X.shape)
    y = (np.random.default_rng(1).random(150) < 0.5)[row]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        alone = clone(ranker).fit(X, y).decision_function(X)
        grouped = clone(ranker).fit(X, y, groups=row).decision_function(X)
    assert not np.array_equal(alone, grouped)


def test_joined_units_part_neither_groups_nor_queries() -> None:
    assert join_units(None, None) is None
    rng = np.random.default_rng(0)
    for _ in range(30):
        group, query = (rng.integers(0, 12, 15).astype(np.uint64) for _ in range(2))
        assert join_units(group, None) is group
        assert join_units(None, query) is query
        joined = join_units(group, query)
        expected = np.arange(15)
        for _ in range(15):  # the least row that can be reached
            for labels in (group, query):
                for value in labels:
                    expected[labels == value] = expected[labels == value].min()
        np.testing.assert_array_equal(joined[:, None] == joined, expected[:, None] == expected)
