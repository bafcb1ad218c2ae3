"""A forest fitted in shares is the forest fitted at once, bit for bit; anything else is refused."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import TreeRankForest, load, save
from core.base.checkpoint import SharedRanker
from core.errors import ArtifactError, InvalidParameter
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
    for given, message in (
        ([], "must contain 5 pieces, got 0"),
        (shares[:1], "must contain 5 pieces, got 2"),
        (shares[1:], "each piece once, 0 is missing"),
        ([*shares, shares[0]], "each piece once, 0 is there twice"),
        (divide(forest, table, 0, 3) + shares[1:], "each piece once, 2 is there twice"),
    ):
        with pytest.raises(ArtifactError, match=message):
            forest.join_shares(given, *table)
    assert not hasattr(forest, "trees_")


def test_shares_of_another_fit_are_refused(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], shares: list[bytes]
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
        with pytest.raises(ArtifactError, match="belong to this fit"):
            ranker.join_shares(shares, *rows)


def test_damaged_shares_are_refused(
    table: tuple[pd.DataFrame, pd.Series, np.ndarray], shares: list[bytes]
) -> None:
    first, second = shares
    flipped = bytearray(first)
    flipped[-1] ^= 1
    for damaged in (b"", first[:40], first + b"\0", bytes(flipped)):
        with pytest.raises(ArtifactError, match="must be complete"):
            TreeRankForest(n_trees=5).join_shares([damaged, second], *table)
