"""One fit holds the ranker of every lesser number of rounds; the best of them is chosen."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from core.errors import InvalidParameter
from core.metrics import auc
from core.registry import ALGORITHMS
from core.selection import path_parameter, walk_path
from tests.raising import raises
from tests.sentences import Sentences

ROUNDS = [1, 4, 9, 25]
ON_A_PATH = {name: it for name, it in ALGORITHMS.items() if path_parameter(it) == "n_rounds"}
COSTS = [0.01, 1.0, 30.0]
FOLLOWING = {name: it for name, it in ALGORITHMS.items() if path_parameter(it) == "C"}


def noisy_table(target: str, n: int = 160, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, :2]) + rng.normal(size=(n, 2))
    return X, (signal > 0).astype(int) if target == "multilabel" else (signal.sum(1) > 0) * 1


def test_all_that_has_a_path_is_tested() -> None:
    with_one = {name for name, it in ALGORITHMS.items() if path_parameter(it)}
    assert with_one == {*ON_A_PATH, *FOLLOWING, "treerank"}
    assert set(FOLLOWING) == {
        "auc_svm",
        "pauc_svm",
        "pauc_svm_dc",
        "top_push",
        "p_norm_push",
        "logistic",
    }


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("spread", [1.0, 6.0], ids=["signal", "collapse"])
@pytest.mark.filterwarnings("ignore::core.linear.SupportWarning")
def test_what_a_fit_makes_on_its_way_is_what_each_C_fits(name: str, spread: float) -> None:
    """Negatives that lie on all sides of the positives make a window of the highest collapse."""
    algorithm = ALGORITHMS[name]
    X, y = noisy_table("binary")
    X[y == 0] *= spread
    learnt, held = slice(0, 100), slice(100, None)

    def judge(scores: Any) -> Any:
        return auc(y[held], scores)

    ranker = algorithm(C=max(COSTS))
    ranker.fit_path(X[learnt], y[learnt], values=sorted(COSTS))
    found = walk_path(ranker, X[held], COSTS[::-1], judge)
    on_path = ranker.path_rankers()
    for C, value, one in zip(COSTS, found, on_path, strict=True):
        alone = algorithm(C=C).fit(X[learnt], y[learnt])
        scores = alone.decision_function(X[held])
        assert one.decision_function(X[held]) == pytest.approx(scores, abs=0.1 * np.ptp(scores))
        assert value == pytest.approx(judge(scores), abs=0.02)
        if hasattr(one, "collapsed_"):
            assert (one.collapsed_, one.C_) == (alone.collapsed_, alone.C_)
    if name == "pauc_svm":
        assert on_path[0].collapsed_ == (spread > 1.0)
    last = ranker.decision_function(X[held])
    assert (last == on_path[-1].decision_function(X[held])).all()
    assert ranker.fit(X[learnt], y[learnt]).path_rankers() == []


@pytest.mark.parametrize("splitter", ["leafrank", "axis"])
def test_a_tree_pruned_by_every_penalty_is_grown_once(splitter: str) -> None:
    X, y = noisy_table("binary", n=600)
    learnt, held = slice(0, 400), slice(400, None)

    def judge(scores: Any) -> Any:
        return auc(y[held], scores)

    def fit(fit: Any, **values: Any) -> Any:
        steps = []
        fit(
            X[learnt],
            y[learnt],
            callback=lambda step, of, info: steps.append((step, of)),
            **values,
        )
        return steps

    plain = ALGORITHMS["treerank"](splitter=splitter, min_samples_leaf=5.0)
    ranker = clone(plain).set_params(leaf_penalty=0.02)
    penalties = [0.0, 0.002, 0.02]
    grown = fit(ranker.fit_path, values=penalties)
    found = walk_path(ranker, X[held], [0.02, 0.0, 0.002], judge)
    sizes = [one.tree_.n_leaves for one in ranker.path_rankers()]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3
    for penalty, value, one in zip(penalties, found, ranker.path_rankers(), strict=True):
        alone = clone(plain).set_params(leaf_penalty=penalty)
        assert fit(alone.fit) == grown  # so many splits, whatever the number of penalties
        assert (one.decision_function(X) == alone.decision_function(X)).all()
        assert value == judge(alone.decision_function(X[held]))
    assert ranker.fit(X[learnt], y[learnt]).path_rankers() == []


def test_two_ways_to_prune_are_refused(sentences: Sentences) -> None:
    X, y = noisy_table("binary")
    with sentences.raises(InvalidParameter):
        ALGORITHMS["treerank"](pruning="cv", leaf_penalty=0.1).fit(X, y)
    with sentences.raises(InvalidParameter):
        ALGORITHMS["treerank"](pruning="cv").check_path_parameters()


@pytest.mark.parametrize("name", ON_A_PATH)
def test_what_lies_on_the_path_is_what_so_many_rounds_fit(name: str) -> None:
    algorithm = ALGORITHMS[name]
    X, y = noisy_table(algorithm.target)
    learnt, held = slice(0, 100), slice(100, None)

    def judge(scores: Any) -> Any:
        return auc(y[held].ravel(), scores.ravel())

    longest = algorithm(n_rounds=max(ROUNDS)).fit(X[learnt], y[learnt])
    found = walk_path(longest, X[held], ROUNDS[::-1], judge)
    for k, value in zip(ROUNDS, found, strict=True):
        alone = algorithm(n_rounds=k).fit(X[learnt], y[learnt])
        assert value == pytest.approx(judge(alone.decision_function(X[held])), abs=1e-9)


def test_a_fit_that_ends_early_is_worth_what_it_ended_with() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    perfect = ALGORITHMS["smooth_margin_rank"](n_rounds=50).fit(X, y)
    assert len(perfect.rounds_) < 20
    found = walk_path(perfect, X, [1, 20, 50], lambda scores: auc(y, scores))
    assert found == [1.0, 1.0, 1.0]
    nothing = ALGORITHMS["rankboost"](n_rounds=5).fit(np.zeros((4, 1)), y)
    assert nothing.stop_reason_ == "no_edge"
    assert walk_path(nothing, X, [2, 5], lambda f: auc(y, f)) == [0.5, 0.5]


def test_values_on_a_path_are_distinct_numbers_of_steps() -> None:
    X, y = noisy_table("binary")
    ranker = ALGORITHMS["rankboost"](n_rounds=5).fit(X, y)
    for values, got in (([2, 5, 2], [2, 5, 2]), ([0, 2], 0)):
        with raises(InvalidParameter, "values", got):
            walk_path(ranker, X, values, lambda scores: auc(y, scores))


def test_early_stopping_leaves_no_path(sentences: Sentences) -> None:
    ranker = ALGORITHMS["rankboost"](early_stopping_rounds=5)
    with sentences.raises(InvalidParameter):
        ranker.check_path_parameters()
    ALGORITHMS["rankboost"]().check_path_parameters()
