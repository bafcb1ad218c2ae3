"""Random forests: their splits against a slow search, their scores, and how well they rank."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from core import RandomForest, load, save
from core.errors import ArtifactError
from core.forest.growth import MISSING, ForestShape, grow_tree
from core.metrics import auc
from core.trees.sampling import uniform
from tests.raising import raises


def make_table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    y = X[:, 0] - 0.5 * X[:, 1] * X[:, 2] + rng.normal(size=n) > 0.5
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, y


def gini(positive: float, negative: float) -> float:
    return 2.0 * positive * negative / (positive + negative)


def entropy(positive: float, negative: float) -> float:
    masses = np.array([positive, negative])
    masses = masses[masses > 0.0]
    return float(-(masses * np.log(masses / (positive + negative))).sum())


def draw_masses(mass: np.ndarray, n_positives: int, key: int) -> np.ndarray:
    """The masses of rows that a tree draws with replacement, as many of each class as there are."""
    drawn = np.zeros(len(mass))
    for i in range(len(mass)):
        low, high = (0, n_positives) if i < n_positives else (n_positives, len(mass))
        row = low + int(uniform(key, i + 1) * (high - low))
        drawn[row] += mass[row]
    return drawn


@pytest.mark.parametrize("n_rows", [40, 160])  # few rows are sorted, many are summed by code
@pytest.mark.parametrize("impurity", [gini, entropy])
def test_a_split_has_the_least_impurity_of_all(
    n_rows: int, impurity: Callable[[float, float], float]
) -> None:
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, 9, (3, n_rows)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.1] = MISSING
    n_positives, values = n_rows // 3, np.tile(np.arange(256.0), (3, 1))
    mass = rng.integers(1, 4, n_rows).astype(float)
    shape = ForestShape(n_positives, 3, 1.0, 2, is_random=False, is_entropy=impurity is entropy)
    for key in range(4):
        tree = grow_tree(codes, values, mass, shape, key)
        drawn = draw_masses(mass, n_positives, key)
        least = np.inf
        for own, cut, missing_above in product(codes, range(-1, 8), (False, True)):
            above = np.where(own == MISSING, missing_above, own.astype(int) > cut)
            sides = [drawn * above, drawn * ~above]
            if all(side.any() for side in sides):
                parts = [(side[:n_positives].sum(), side[n_positives:].sum()) for side in sides]
                least = min(least, sum(impurity(*part) for part in parts))
        found = [impurity(p, w - p) for p, w in zip(tree.positive, tree.weight, strict=True)]
        assert sum(found) == pytest.approx(least)
        assert tree.weight.sum() == drawn.sum()


@pytest.mark.parametrize(
    ("splitter", "peer"), [("best", RandomForestClassifier), ("random", ExtraTreesClassifier)]
)
def test_ranks_as_well_as_the_forests_of_scikit_learn(splitter: str, peer: type) -> None:
    (X, y), (X_new, y_new) = make_table(3000), make_table(6000, seed=1)
    found = auc(
        y_new, RandomForest(n_trees=60, splitter=splitter).fit(X, y).decision_function(X_new)
    )
    other = peer(60, random_state=0).fit(np.nan_to_num(X), y).predict_proba(np.nan_to_num(X_new))
    assert found > auc(y_new, other[:, 1]) - 0.01
    one_tree = RandomForest(n_trees=1, splitter=splitter).fit(X, y)
    assert found > auc(y_new, one_tree.decision_function(X_new)) + 0.05


def test_trees_grow_to_the_end() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.random(300) < 0.3
    extra = RandomForest(n_trees=5, splitter="random", min_samples_leaf=1).fit(X, y)
    assert ((extra.decision_function(X) > 0.0) == y).all()  # each tree has all rows, in pure leaves
    small = RandomForest(n_trees=5, min_samples_leaf=20).fit(X, y)
    assert small.ensemble_.leaf_weight.min() >= 20.0
    few = RandomForest(n_trees=5, max_leaves=7).fit(X, y)
    assert few.ensemble_.rounds["n_leaves"].tolist() == [7] * 5


def test_a_tree_may_have_more_leaves_than_those_of_boosting() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9000, 4)), rng.random(9000) < 0.5
    forest = RandomForest(n_trees=4, splitter="random", min_samples_leaf=1).fit(X, y)
    assert forest.ensemble_.rounds["n_leaves"].min() > 1024
    expected = np.where(y, 1.0, -1.0)
    assert (np.sign(forest.decision_function(X)) == expected).all()  # many rows, by bin codes
    assert (np.sign(forest.decision_function(X[:50])) == expected[:50]).all()  # few, by nodes
    restored = load(save(forest))
    assert (restored.decision_function(X) == forest.decision_function(X)).all()


def test_a_longer_forest_begins_as_a_shorter_one() -> None:
    X, y = make_table(400)
    short, long = (RandomForest(n_trees=n).fit(X, y).ensemble_ for n in (3, 6))
    n_leaves = len(short.leaf_value)
    assert long.rounds["n_leaves"][:3].tolist() == short.rounds["n_leaves"].tolist()
    assert long.leaf_value[:n_leaves] * 2.0 == pytest.approx(short.leaf_value)
    other = RandomForest(n_trees=3, random_state=1).fit(X, y).ensemble_
    assert other.rounds["n_leaves"].tolist() != short.rounds["n_leaves"].tolist()


def test_weights_are_numbers_of_rows() -> None:
    X, y = make_table(300)
    weight = np.where(np.arange(300) % 3, 1.0, 4.0)
    forest = RandomForest(n_trees=10, splitter="random", random_state=2)
    scores = forest.fit(X, y, weight).decision_function(X)
    assert forest.fit(X, y, 8.0 * weight).decision_function(X) != pytest.approx(scores)
    forest.set_params(min_samples_leaf=30)
    weighted = forest.fit(X, y, weight).ensemble_
    assert weighted.leaf_weight.reshape(-1).sum() == pytest.approx(10 * weight.sum())
    assert weighted.leaf_weight.min() >= 30.0


def test_contributions_and_shapley_values_sum_to_the_score() -> None:
    X, y = make_table(200)
    forest = RandomForest(n_trees=10).fit(X, y)
    rest = forest.decision_function(X) - forest.offset_
    assert forest.contributions(X).sum(axis=1) == pytest.approx(rest)
    assert forest.shapley_values(X).sum(axis=1) == pytest.approx(rest)


@pytest.mark.parametrize("n_words", [6, 600])  # by their order, and by numbers in place of them
def test_categories_are_ordered_by_their_share_of_positives(n_words: int) -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(0, n_words, 6000)
    y = rng.random(6000) < np.where(words % 2, 0.8, 0.2)
    X = pd.DataFrame({"word": [f"w{w}" for w in words], "noise": rng.normal(size=6000)})
    X.loc[::50, "word"] = None
    forest = RandomForest(n_trees=20, min_samples_leaf=20).fit(X, y)
    known = pd.DataFrame({"word": [f"w{w}" for w in range(6)], "noise": np.zeros(6)})
    scores = forest.decision_function(known)
    assert scores[1::2].min() > scores[::2].max() + 0.1
    unseen = forest.decision_function(pd.DataFrame({"word": ["other", None], "noise": [0.0, 0.0]}))
    assert unseen[0] == unseen[1]
    assert scores[::2].max() < unseen[0] < scores[1::2].min()


@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("n_rows", [40, 160])  # few rows are sorted, many are summed by code
def test_a_value_that_was_never_missing_goes_with_most_rows(splitter: str, n_rows: int) -> None:
    y = np.arange(n_rows) < n_rows // 4
    for X in (y[:, None] * 1.0, ~y[:, None] * 1.0):  # the greater side is below, and above
        forest = RandomForest(n_trees=3, splitter=splitter, min_samples_leaf=1).fit(X, y)
        negative, positive, missing = forest.decision_function(
            np.array([X[-1], X[0], [np.nan]])
        ).tolist()
        assert missing == negative < positive


def test_rows_that_cannot_be_divided_have_a_constant_score() -> None:
    y = np.arange(50) < 20
    forest = RandomForest(n_trees=5).fit(np.zeros((50, 3)), y)
    assert forest.decision_function(np.zeros((2, 3))) == pytest.approx([-0.1, -0.1])
    assert forest.structure()["trees"] == []
    assert (load(save(forest)).decision_function(np.ones((1, 3))) == forest.intercept_).all()


def test_a_state_with_too_many_trees_is_refused() -> None:
    X, y = make_table(100)
    forest = RandomForest(n_trees=3).fit(X, y)
    arrays, meta = forest.get_state()
    with raises(ArtifactError, "n_leaves", 2, 3):
        RandomForest.from_state({**forest.get_parameters(), "n_trees": 2}, arrays, meta)
