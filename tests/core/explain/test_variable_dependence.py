"""Variable dependence where it is known: sums, products, and rankers that were taught either."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import AdaBoostMH, RankBoost
from core.errors import InvalidData, InvalidParameter
from core.explain import variable_dependence
from tests.raising import raises
from tests.sentences import Sentences


def ranker_of(score: Callable[..., Any], n_features: int = 3) -> RankBoost:
    """A fitted ranker that scores by a formula."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, n_features))
    ranker = RankBoost(n_rounds=1).fit(X, X[:, 0] > 0)
    ranker.score_rows = score
    return ranker


def balanced() -> np.ndarray:
    """Every combination of signs as often as any other, so that products have mean 0."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return np.tile(signs, (5, 1))


def test_effects_that_add_up_have_no_joint_part() -> None:
    found = variable_dependence(ranker_of(lambda X: 2 * X[:, 0] + X[:, 1] ** 3), balanced())
    assert found.features == (0, 1, 2)
    assert found.main == pytest.approx([0.8, 0.2, 0.0])
    assert found.joint == pytest.approx(np.zeros((3, 3)))


def test_a_product_is_all_joint() -> None:
    found = variable_dependence(ranker_of(lambda X: X[:, 0] * X[:, 2]), balanced())
    assert found.main == pytest.approx(np.zeros(3))
    assert found.joint[0, 2] == found.joint[2, 0] == pytest.approx(1.0)
    assert found.joint[0, 1] == found.joint[1, 2] == 0.0


def test_some_of_both() -> None:
    score = ranker_of(lambda X: X[:, 0] + X[:, 1] + X[:, 0] * X[:, 1])
    found = variable_dependence(score, balanced(), [1, 0])
    assert found.features == (1, 0)
    assert found.main == pytest.approx([1 / 3, 1 / 3])
    assert found.joint[0, 1] == pytest.approx(1 / 3)


def test_a_constant_score_depends_on_nothing() -> None:
    found = variable_dependence(ranker_of(lambda X: np.full(len(X), 7.0)), balanced())
    assert not found.main.any()
    assert not found.joint.any()


def test_weights_count() -> None:
    X = balanced()
    ranker = ranker_of(lambda X: X[:, 0] * X[:, 1])
    weight = np.where(X[:, 1] > 0, 1.0, 0.0)
    found = variable_dependence(ranker, X, sample_weight=weight)
    assert found.main[0] == pytest.approx(1.0)  # the other stands still
    assert found.joint[0, 1] == pytest.approx(0.0)


def test_trees_join_what_stumps_only_add() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + 2 * X[:, 1] * (X[:, 2] > 0) + 0.3 * rng.normal(size=500) > 0
    stumps = RankBoost(n_rounds=50).fit(X, y)
    trees = RankBoost(n_rounds=50, weak_ranker="tree").fit(X, y)
    added, joined = (variable_dependence(ranker, X, n_rows=60) for ranker in (stumps, trees))
    assert added.joint == pytest.approx(np.zeros((3, 3)), abs=1e-9)
    assert joined.joint[1, 2] > 0.1
    again = variable_dependence(trees, X, n_rows=60)
    assert np.array_equal(again.joint, joined.joint)
    other = variable_dependence(trees, X, n_rows=60, random_state=1)
    assert not np.array_equal(other.joint, joined.joint)


def test_other_input_is_refused(sentences: Sentences) -> None:
    ranker = ranker_of(lambda X: X[:, 0])
    with sentences.raises(InvalidParameter):
        variable_dependence(ranker, balanced(), n_rows=1)
    with sentences.raises(InvalidParameter):
        variable_dependence(ranker, balanced(), [1, 0, 1])
    with sentences.raises(InvalidParameter):
        variable_dependence(ranker, balanced(), ["a"])
    with raises(InvalidData, "sample_weight"):
        variable_dependence(ranker, balanced(), sample_weight=np.zeros(40))
    X = np.random.default_rng(0).normal(size=(50, 2))
    many = AdaBoostMH(n_rounds=2).fit(X, (X > 0).astype(int))
    with sentences.raises(InvalidData):
        variable_dependence(many, X)
