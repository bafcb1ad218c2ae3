"""Splits by classifiers: the node's own cost, any estimator, and rules that are arrays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from core.classifiers import STACKS
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.metrics import auc
from core.treerank.classifiers import (
    ClassifierSplitter,
    EstimatorSplitter,
    cost_weights,
)
from core.treerank.growth import Cell, CellDivision, TreeRows
from core.treerank.tree import RankingTree
from tests.raising import raises
from tests.sentences import Sentences


def oblique(n: int = 500, seed: int = 0, share: float = 0.2) -> TreeRows:
    """Few positives, most of them beyond a slanted line."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + X[:, 1] + 0.4 * rng.normal(size=n)
    positive = score > np.quantile(score, 1 - share)
    return TreeRows(X, positive, rng.integers(1, 4, n).astype(float), np.zeros(3, dtype=np.int64))


def cell_of(sample: TreeRows, rows: np.ndarray | None = None) -> Cell:
    rows = np.arange(len(sample.X)) if rows is None else rows
    mass = sample.weight[rows]
    positive = sample.positive[rows]
    return Cell(rows, mass[positive].sum(), mass[~positive].sum())


def gain(sample: TreeRows, split: CellDivision) -> float:
    weight = sample.weight
    tops = (
        weight[split.top & some].sum() / weight[some].sum()
        for some in (sample.positive, ~sample.positive)
    )
    beta, alpha = tops
    return beta - alpha


def test_the_least_weighted_error_is_the_greatest_auc() -> None:
    """Eq. 9 on all splits of a few rows."""
    rng = np.random.default_rng(1)
    sample = TreeRows(
        np.zeros((7, 1)), np.arange(7) < 3, rng.integers(1, 5, 7).astype(float), np.zeros(1)
    )
    cell = cell_of(sample)
    cost = cost_weights(sample, cell)
    p = cell.positive / (cell.positive + cell.negative)
    for number in range(2**7):
        top = (number >> np.arange(7)) % 2 == 1
        error = 2 * cost[top != sample.positive].sum() / sample.weight.sum()
        area = auc(sample.positive, top.astype(float), sample.weight)
        assert error == pytest.approx(4 * p * (1 - p) * (1 - area))


@pytest.mark.parametrize("name", STACKS)
def test_a_slanted_line_is_one_split(name: str) -> None:
    sample = oblique()
    splitter = ClassifierSplitter(name, sample, 0)
    split = splitter.split(cell_of(sample))
    assert gain(sample, split) > 0.65
    rules = splitter.collect([split.rule])
    rows = np.arange(0, 500, 3)
    assert np.array_equal(rules.goes_top(0, sample.X, rows), split.top[rows])


def two_levels(
    splitter: ClassifierSplitter | EstimatorSplitter, sample: TreeRows
) -> tuple[RankingTree, np.ndarray]:
    """A tree of two splits: the root's, and one of its bottom child."""
    root = splitter.split(cell_of(sample))
    rows = np.flatnonzero(~root.top)
    second = splitter.split(cell_of(sample, rows))
    leaf = np.where(root.top, 0, 2)
    leaf[rows[second.top]] = 1
    masses = [
        np.bincount(leaf, weights=np.where(some, sample.weight, 0), minlength=3)
        for some in (sample.positive, ~sample.positive)
    ]
    rules = splitter.collect([root.rule, second.rule])
    return RankingTree(
        np.array([False, True, False, True, True]), masses[0], masses[1], rules
    ), leaf


def test_categories_are_named() -> None:
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 3, 200).astype(float)
    sample = TreeRows(
        np.column_stack([rng.normal(size=200), colour]), colour == 1, np.ones(200), np.array([0, 3])
    )
    splitter = ClassifierSplitter("logistic", sample, 0)
    rules = splitter.collect([splitter.split(cell_of(sample)).rule])
    words = rules.describe(0, ["age", "colour"].__getitem__, [None, ["blue", "red", "white"]])
    assert "·colour=red" in words["words"]


@pytest.mark.parametrize("template", [DecisionTreeClassifier(max_depth=3), LogisticRegression()])
def test_any_estimator_splits(template: Any) -> None:
    sample = oblique()
    splitter = EstimatorSplitter(template, sample)
    tree, leaf = two_levels(splitter, sample)
    assert np.array_equal(tree.find_leaves(sample.X), leaf)
    assert tree.auc > 0.8
    assert tree.find_leaves(sample.X[:1]).shape == (1,)
    described = tree.rules.describe(0, str, [None] * 3)
    assert described["words"] == f"{type(template).__name__} says so"
    assert len(tree.collapse(np.array([False, False, True, False, False])).rules) == 1


def test_an_estimator_is_fitted_to_the_weighted_error() -> None:
    sample = oblique()
    cell = cell_of(sample)
    split = EstimatorSplitter(LogisticRegression(), sample).split(cell)
    weight = cost_weights(sample, cell)
    expected = LogisticRegression().fit(
        sample.X, sample.positive, sample_weight=weight * sample.weight.sum() / weight.sum()
    )
    assert np.array_equal(split.top, expected.predict(sample.X))


def test_foreign_estimators_cannot_be_saved() -> None:
    sample = oblique()
    tree, _ = two_levels(EstimatorSplitter(LogisticRegression(), sample), sample)
    with raises(ArtifactError, "LogisticRegression"):
        tree.arrays()
    with pytest.raises(ArtifactError):
        type(tree.rules).from_arrays({}, {"n_rules": 2, "n_categories": sample.n_categories})


def test_what_cannot_split_is_refused(sentences: Sentences) -> None:
    sample = oblique()
    with raises(InvalidParameter, "KNeighborsClassifier"):
        EstimatorSplitter(KNeighborsClassifier(), sample)
    with raises(InvalidParameter, "LinearDiscriminantAnalysis"):
        EstimatorSplitter(LinearDiscriminantAnalysis(), sample)
    coded = replace(sample, n_categories=np.array([0, 0, 2]))
    with sentences.raises(InvalidData):
        EstimatorSplitter(LogisticRegression(), coded)
    holed = replace(sample, X=np.where(sample.X > 1, np.nan, sample.X))
    with sentences.raises(InvalidData):
        EstimatorSplitter(LogisticRegression(), holed).split(cell_of(holed))
