"""A forest fitted in shares is the forest fitted at once, bit for bit; anything else is refused."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import TreeRankForest, load, save
from core.base.checkpoint import SharedRanker
from core.errors import ArtifactError, InvalidParameter
from tests.raising import raises
from tests.sentences import Sentences


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    X.loc[rng.random(300) < 0.1, "b"] = np.nan
    X["colour"] = rng.choice(["red", "green", "blue"], 300)
    y = X["a"] + (X["colour"] == "red") + rng.normal(size=300) > 0.5
    return X, y, rng.integers(0, 3, 300).astype(float)


def divide(
    forest: TreeRankForest, table: tuple[pd.DataFrame, pd.Series, np.ndarray], *bounds: Any
) -> list[bytes]:
    return [forest.fit_share(*table, first=first, last=last) for first, last in pairwise(bounds)]


@pytest.fixture(scope="module")
def shares(table: tuple[pd.DataFrame, pd.Series, np.ndarray]) -> list[bytes]:
    return divide(TreeRankForest(n_trees=5), table, 0, 2, 5)


@pytest.mark.parametrize("bounds", [(0, 5), (0, 1, 4, 5), (0, 1, 2, 3, 4, 5)])
@pytest.mark.parametrize("order", ["tree", "concave"])
def test_any_division_gives_the_bits_of_one_fit(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], bounds: Any, order: str
) -> None:
    forest = TreeRankForest(n_trees=5, order=order, random_state=3)
    shares = divide(forest, table, *bounds)
    assert not hasattr(forest, "classes_")  # a share leaves the ranker as it was
    joined = TreeRankForest(n_trees=5, order=order, random_state=3)
    assert joined.join_shares(shares[::-1], *table) is joined
    whole = forest.fit(*table)
    assert save(joined) == save(whole)
    assert joined.oob_auc_ == whole.oob_auc_
    assert (joined.feature_importances_ == whole.feature_importances_).all()
    assert (
        load(save(joined)).decision_function(table[0]) == whole.decision_function(table[0])
    ).all()


def test_it_offers_the_protocol(table: tuple[pd.DataFrame, pd.Series, np.ndarray]) -> None:
    forest = TreeRankForest(n_trees=7)
    assert isinstance(forest, SharedRanker)
    assert forest.n_pieces == 7
    steps = []
    forest.fit_share(*table, first=4, last=7, callback=lambda *told: steps.append(told))
    assert steps == [(1, 3, {}), (2, 3, {}), (3, 3, {})]


@pytest.mark.parametrize(("first", "last"), [(-1, 2), (2, 2), (3, 2), (0, 6)])
def test_a_range_that_is_none_is_refused(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], first: int, last: int, sentences: Sentences
) -> None:
    with sentences.raises(InvalidParameter):
        TreeRankForest(n_trees=5).fit_share(*table, first=first, last=last)


def test_the_shares_must_be_all_pieces_once(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], shares: list[bytes]
) -> None:
    forest = TreeRankForest(n_trees=5)
    for given, *named in (
        ([], 5, 0),
        (shares[:1], 5, 2),
        (shares[1:], 0),
        ([*shares, shares[0]], 0),
        (divide(forest, table, 0, 3) + shares[1:], 2),
    ):
        with raises(ArtifactError, "shares", *named):
            forest.join_shares(given, *table)
    assert not hasattr(forest, "trees_")


def test_shares_of_another_fit_are_refused(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], shares: list[bytes], sentences: Sentences
) -> None:
    X, y, weight = table
    forest = TreeRankForest(n_trees=5)
    other = X.assign(a=np.where(X["a"] == X["a"].max(), 0.0, X["a"]))
    for ranker, rows in (
        (forest, (other, y, weight)),
        (forest, (X, ~y, weight)),
        (forest, (X, y, weight + 1.0)),
        (TreeRankForest(n_trees=5, random_state=1), table),
        (TreeRankForest(n_trees=5, max_depth=3), table),
    ):
        with sentences.raises(ArtifactError):
            ranker.join_shares(shares, *rows)


def test_damaged_shares_are_refused(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], shares: list[bytes], sentences: Sentences
) -> None:
    first, second = shares
    flipped = bytearray(first)
    flipped[-1] ^= 1
    for damaged in (b"", first[:40], first + b"\0", bytes(flipped)):
        with sentences.raises(ArtifactError):
            TreeRankForest(n_trees=5).join_shares([damaged, second], *table)
