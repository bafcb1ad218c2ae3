"""The forest: what it draws, how it ranks, what it says of itself."""

from typing import Any

import numba
import numpy as np
import pytest

from core import TreeRank, TreeRankForest, load, save
from core.metrics import auc
from core.treerank import forest as forests
from core.treerank.tree import RankingTree


def make_table(n: int, seed: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - 0.5 * X[:, 1] * X[:, 2] + rng.normal(size=n) > 0.5
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, y


def test_beats_its_trees_and_knows_how_good_it_is() -> None:
    (X, y), (X_new, y_new) = make_table(2000, 0), make_table(4000, 1)
    forest = TreeRankForest(n_trees=30).fit(X, y)
    found = auc(y_new, forest.decision_function(X_new))
    alone = [
        auc(y_new, -np.argsort(tree.concave_order)[tree.find_leaves(X_new)].astype(float))
        for tree in forest.trees_
    ]
    assert found > max(alone) + 0.01
    assert found > auc(y_new, TreeRank().fit(X, y).decision_function(X_new)) + 0.01
    assert abs(forest.oob_auc_ - found) < 0.03
    assert (forest.predict(X_new) == y_new).mean() > 0.7


@pytest.mark.parametrize("order", ["tree", "concave"])
def test_scores_are_mean_ranks_of_the_leaves(order: str) -> None:
    X, y = make_table(500, 0)
    forest = TreeRankForest(n_trees=7, min_samples_leaf=20.0, order=order).fit(X, y)
    expected = np.zeros(len(X))
    for tree in forest.trees_:
        mass = tree.leaf_positive + tree.leaf_negative
        assert mass.sum() == 500  # as many rows as there are, drawn with replacement
        assert tree.leaf_positive.sum() == y.sum()
        place = np.arange(tree.n_leaves)
        if order == "concave":
            place[tree.concave_order] = np.arange(tree.n_leaves)
        rank = [mass[place > place[k]].sum() + mass[k] / 2 for k in range(tree.n_leaves)]
        expected += np.array(rank)[tree.find_leaves(X)] / 500 / 7
    assert forest.decision_function(X) == pytest.approx(expected + forest.intercept_, abs=1e-12)


def test_a_longer_forest_begins_as_a_shorter_one() -> None:
    X, y = make_table(400, 0)
    short, long = (TreeRankForest(n_trees=n).fit(X, y) for n in (3, 6))
    for one, other in zip(short.trees_, long.trees_, strict=False):
        assert (one.rule == other.rule).all()
        assert one.leaf_positive.tolist() == other.leaf_positive.tolist()
    other = TreeRankForest(n_trees=3, random_state=1).fit(X, y)
    assert (other.decision_function(X) != short.decision_function(X)).any()


def test_one_feature_at_a_time_still_finds_the_one_that_tells() -> None:
    X, y = make_table(1000, 0)
    forest = TreeRankForest(n_trees=20, max_features=0.01).fit(X, y)  # at least one
    for tree in forest.trees_:
        for rule in range(len(tree.rules)):
            asked = tree.rules.feature[tree.rules.start[rule] : tree.rules.start[rule + 1]]
            assert len(set(asked[asked >= 0])) == 1
    assert auc(y, forest.decision_function(X)) > 0.75


def test_few_rows_and_no_cut() -> None:
    X, y = np.ones((6, 2)), np.arange(6) < 2
    forest = TreeRankForest(n_trees=3).fit(X, y)
    assert [tree.n_leaves for tree in forest.trees_] == [1, 1, 1]
    assert not forest.predict(X).any()
    assert TreeRankForest(n_trees=3).fit(X, ~y).predict(X).all()
    single = TreeRankForest(n_trees=1).fit(
        X[:2], y[1:3]
    )  # the one row of each class is always seen
    assert np.isnan(single.oob_auc_)
    assert np.isnan(load(save(single)).oob_auc_)
    assert single.structure()["oob_auc"] is None


def test_a_callback_stops_the_fit_and_the_threads() -> None:
    X, y = make_table(9000, 0)

    class Cancelled(Exception):
        pass

    def cancel(step: Any, of: Any, info: Any) -> None:
        assert (of, set(info)) == (50, {"oob_auc"})
        if step == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        TreeRankForest().fit(X, y, callback=cancel)


@pytest.mark.parametrize("most", [1, 2])
def test_threads_that_grow_trees_share_those_of_the_fit(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """A thread of numba's default would start as many again in each tree, also where a caller allows one alone."""
    most = min(most, numba.config.NUMBA_NUM_THREADS)
    monkeypatch.setattr(forests, "PARALLEL_CELLS", 0)
    seen = []
    find_leaves = RankingTree.find_leaves

    def watched(tree: Any, X: Any) -> Any:
        seen.append((numba.get_num_threads(), len(X)))
        return find_leaves(tree, X)

    monkeypatch.setattr(RankingTree, "find_leaves", watched)
    X, y = make_table(60_000, 0, d=3)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(most)
        TreeRankForest(n_trees=2, max_depth=2).fit(X, y)
    finally:
        numba.set_num_threads(before)
    threads, lengths = zip(*seen, strict=True)
    assert set(threads) == {1}
    assert sum(lengths) > 0.7 * len(X)  # two trees leave 37 % of the rows out, each
    assert max(lengths) <= 1 << 14  # of which no copy is made at once
