"""The partition-based splitting rule against every union there is, and the grid that it is used on."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from core.treerank.grid import GridSplitter, best_union
from core.treerank.growth import Cell, TreeRows
from core.treerank.tree import RankingTree
from tests.sentences import Sentences


def test_the_check_value() -> None:
    masses = np.array([(3, 1), (0, 2), (0, 0), (2, 0), (2, 3), (1, 4)], dtype=float)
    union = best_union(*masses.T)
    assert union.order.tolist() == [3, 0, 4, 5, 1, 2]
    assert union.n_top == 2
    assert union.gain == pytest.approx(0.525)


def gains_of_all_unions(positive: np.ndarray, negative: np.ndarray) -> Iterator[tuple[int, float]]:
    """The Youden index of each union of cells."""
    n = len(positive)
    for size in range(n + 1):
        for cells in combinations(range(n), size):
            some = list(cells)
            gain = positive[some].sum() / positive.sum() - negative[some].sum() / negative.sum()
            yield size, gain


@pytest.mark.parametrize("seed", range(30))
def test_no_union_is_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    positive, negative = rng.integers(0, 5, (2, 7)).astype(float)
    positive[0] += 1
    negative[1] += 1
    union = best_union(positive, negative)
    best = max(gain for _, gain in gains_of_all_unions(positive, negative))
    assert union.gain == pytest.approx(best, abs=1e-12)
    top = union.order[: union.n_top]
    reached = positive[top].sum() / positive.sum() - negative[top].sum() / negative.sum()
    assert reached == pytest.approx(best, abs=1e-12)


def sample_of(
    X: Any,
    positive: list[int] | np.ndarray,
    weight: np.ndarray | None = None,
    n_categories: list[int] | None = None,
) -> TreeRows:
    X = np.asarray(X, dtype=float)
    return TreeRows(
        X,
        np.asarray(positive, dtype=bool),
        np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float),
        np.zeros(X.shape[1], dtype=np.int64) if n_categories is None else np.array(n_categories),
    )


def whole(sample: TreeRows) -> Cell:
    return Cell(
        np.arange(len(sample.X)),
        sample.weight[sample.positive].sum(),
        sample.weight[~sample.positive].sum(),
    )


def checkerboard(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    X[0], X[1] = 0, 1  # so that the grid is that of the unit square
    return X, ((X > 0.5).sum(axis=1) == 1) ^ (rng.random(n) < 0.1)


def test_xor_is_one_split() -> None:
    X, positive = checkerboard()
    sample = sample_of(X, positive)
    split = GridSplitter(sample, 1).split(whole(sample))
    assert np.array_equal(split.top, (X >= 0.5).sum(axis=1) == 1)


def test_what_cannot_be_split_is_not() -> None:
    sample = sample_of(np.zeros((4, 2)), [0, 1, 0, 1])
    assert GridSplitter(sample, 4).split(whole(sample)) is None


def test_missing_values_and_categories_are_slices() -> None:
    X = [[0.0, 0], [0.0, 1], [0.0, 2], [np.nan, 0], [np.nan, 1], [np.nan, np.nan]]
    sample = sample_of(X, [0, 1, 0, 1, 0, 1], n_categories=[0, 3])
    split = GridSplitter(sample, 2).split(whole(sample))
    assert split.top.tolist() == [False, True, False, True, False, True]


def grown() -> tuple[RankingTree, np.ndarray, np.ndarray]:
    """A tree of two splits: the root's, and one of its bottom child."""
    X, positive = checkerboard()
    X = np.column_stack([X, np.random.default_rng(2).integers(0, 3, len(X))])
    X[5, 0], X[6, 2] = np.nan, np.nan
    sample = sample_of(X, positive, n_categories=[0, 0, 3])
    splitter = GridSplitter(sample, 2)
    root = splitter.split(whole(sample))
    rows = np.flatnonzero(~root.top)
    second = splitter.split(Cell(rows, positive[rows].sum(), (~positive[rows]).sum()))
    rules = splitter.collect([root.rule, second.rule])
    leaf = np.where(root.top, 0, 2)
    leaf[rows[second.top]] = 1
    masses = [np.bincount(leaf, weights=some.astype(float)) for some in (positive, ~positive)]
    return (
        RankingTree(np.array([False, True, False, True, True]), masses[0], masses[1], rules),
        X,
        leaf,
    )


def test_a_cube_without_training_rows_goes_to_the_bottom() -> None:
    sample = sample_of([[0.0], [0.1], [0.9], [1.0]], [0, 1, 1, 1])
    splitter = GridSplitter(sample, 2)
    rules = splitter.collect([splitter.split(whole(sample)).rule])
    assert rules.goes_top(0, np.array([[0.0], [0.4], [0.9], [np.nan]]), np.arange(4)).tolist() == [
        False,
        False,
        True,
        False,
    ]


def test_the_words_name_the_cubes(sentences: Sentences) -> None:
    sample = sample_of([[0.0, 0], [4.0, 1], [np.nan, 1]], [0, 1, 1], n_categories=[0, 2])
    splitter = GridSplitter(sample, 1)
    rules = splitter.collect([splitter.split(whole(sample)).rule])
    described = rules.describe(0, ["age", "colour"].__getitem__, [None, ["blue", "red"]])
    sentences(described["words"])
    assert (described["top_cubes"], described["known_cubes"]) == (2, 3)
    tree, _, _ = grown()
    many = tree.rules.describe(0, str, [None, None, ["a", "b", "c"]])
    assert many["words"].endswith("more cubes")
    assert many["words"].count(") or (") == 4
    assert "1 in [0.5, 0.75)" in many["words"]
