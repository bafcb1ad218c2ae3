"""Contributions of features to a tree's scores: they add up, and are what the cuts on the way change."""

import numpy as np
import pandas as pd
import pytest

from core.errors import InvalidParameter
from core.treerank import TreeRank
from tests.sentences import Sentences


def table(n: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["colour"] = rng.choice(["red", "blue", "green"], n)
    y = frame.a + frame.b * (frame.colour == "red") + 0.5 * rng.normal(size=n) > 0
    frame.loc[::7, "b"] = np.nan
    return frame, y.to_numpy(), rng.integers(1, 4, n).astype(float)


def test_each_cut_gives_its_feature_what_it_changes() -> None:
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10, dtype=float)
    y = np.array([0, 0, 0, 1] * 10)
    ranker = TreeRank(splitter="axis", max_depth=2, min_samples_leaf=1).fit(X, y)
    top, middle, low = ranker.decision_function([[1, 1], [1, 0], [0, 0]])
    mean = (top + middle + 2 * low) / 4
    assert ranker.offset_ == pytest.approx(mean)
    half = (top + middle) / 2
    assert ranker.contributions([[1.0, 1], [1, 0], [0, 1]]) == pytest.approx(
        np.array([[half - mean, top - half], [half - mean, middle - half], [low - mean, 0]])
    )


def test_cuts_in_a_node_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((800, 3))
    X[:, 1] = 7.0
    y = (X[:, 0] > 0.5) ^ (X[:, 2] > 0.5)
    ranker = TreeRank(max_depth=1, leafrank_depth=2).fit(X, y)
    parts = ranker.contributions(X)
    assert (parts[:, 1] == 0).all()
    assert len(np.unique(parts.round(9), axis=0)) > 2  # both features, not the node as a whole


def test_what_makes_no_cuts_has_none(sentences: Sentences) -> None:
    X, y, _ = table(200)
    ranker = TreeRank(splitter="grid", max_depth=2).fit(X[["a", "b"]], y)
    with sentences.raises(InvalidParameter):
        ranker.contributions(X[["a", "b"]])
