"""Trees that cut categorical columns, and codes of 16 bits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import RankBoost
from core.boosting import LogitBoost
from core.boosting.tree_sum import SPLITS, describe_leaves
from tests.sentences import Sentences

BOOSTERS = {
    "closed": lambda **options: RankBoost(weak_ranker="tree", **options),
    "newton": lambda **options: RankBoost(weak_ranker="tree", leaf="newton", **options),
    "push": lambda **options: RankBoost(weak_ranker="tree", push=2.0, **options),
    "logistic": LogitBoost,
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)
COLOURS = ["blue", "green", "grey", "pink", "red"]


def make_table(n: int = 600, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Colours and a number matter, towns do not; some are missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "colour": rng.choice(COLOURS, n),
            "town": rng.choice([f"t{k:02}" for k in range(40)], n),
        }
    )
    score = table["age"] + 2.0 * table["colour"].isin(["red", "grey"]) + rng.normal(size=n)
    table.loc[rng.random(n) < 0.1, "colour"] = None
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    return table, (score > 1.5).to_numpy()


@boosters
def test_colours_are_found_and_names_are_not(make: Callable[..., Any] | type[Any]) -> None:
    table, y = make_table(1000)
    table["name"] = [f"n{k}" for k in range(1000)]
    ranker = make(n_rounds=10, max_bins=1000, category_penalty=1.0, target_encoding=None).fit(
        table, y
    )
    counts = np.bincount(ranker.get_state()[0]["split_feature"], minlength=4)
    assert counts[3] <= 1  # a category of one row is too light, but where rows come to weigh much
    assert counts[1] >= 10
    assert counts[2] < counts[0] / 4  # towns mean nothing; ages do
    first = ranker.structure()["trees"][0]["leaves"][0]["rule"]
    assert "colour in {grey, red}" in first


@boosters
def test_an_order_of_categories_that_mean_nothing_has_no_gain(
    make: Callable[..., Any] | type[Any],
) -> None:
    found = {1.0: 0, 0.0: 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        town = pd.DataFrame({"town": rng.choice([f"t{k:02}" for k in range(40)], 1000)})
        y = rng.random(1000) < 0.3
        for penalty in found:
            ranker = make(n_rounds=1, max_leaves=2, category_penalty=penalty).fit(town, y)
            found[penalty] += len(ranker.rounds_)
    assert found[1.0] <= 3  # two standard deviations leave one in forty
    assert found[0.0] == 20  # an order that is fitted to its rows always gains


@boosters
def test_more_words_than_bins_are_told_apart_where_they_have_rows(
    make: Callable[..., Any] | type[Any],
) -> None:
    rng = np.random.default_rng(0)
    share = np.where(rng.random(500) < 0.5, 0.1, 0.6)
    word = np.concatenate([np.repeat(np.arange(400), 20), np.arange(400, 500)])
    table = pd.DataFrame({"word": [f"w{k:03}" for k in word]})
    fresh = pd.DataFrame({"word": [f"w{k:03}" for k in range(500)]})
    y = rng.random(len(word)) < share[word]
    n_told = {}
    for most in (1000, 300, 255):
        ranker = make(n_rounds=20, max_categories=most, target_encoding=None).fit(table, y)
        scores = ranker.decision_function(fresh)
        assert len({*scores[400:]}) == 1  # of one row each: pooled
        pooled = scores[:400] == scores[400]
        n_told[most] = 400 - pooled.sum()
    assert n_told[1000] > n_told[300] > n_told[255]
    assert n_told[1000] > 300
    assert n_told[255] <= 254


def test_bins_of_16_bits_are_exact() -> None:
    rng = np.random.default_rng(0)
    X = rng.permutation(4000).astype(float)[:, None]
    y = (X[:, 0] > 1234) ^ (rng.random(4000) < 0.01)
    options = {"n_rounds": 1, "weak_ranker": "tree", "max_leaves": 2}
    ranker = RankBoost(**options, max_bins=65_535).fit(X, y)
    assert ranker.get_state()[0]["split_threshold"].tolist() == [1234.0]
    assert RankBoost(**options, max_bins=64).fit(X, y).get_state()[0]["split_threshold"] != 1234.0


def test_the_questions_about_a_categorical_feature_become_one(sentences: Sentences) -> None:
    sets = np.array([0b00011, 0b00001, 0b11111], dtype=np.uint64)
    splits = np.array(
        [
            (0, 0, np.nan, 0, True, True),
            (0, 0, np.nan, 1, False, True),
            (1, 0, np.nan, 2, False, True),
        ],
        dtype=SPLITS,
    )
    names = (("blue", "green", "grey", "pink", "red"),)
    for rule in describe_leaves(splits, sets, lambda feature: "c", names):
        sentences(rule)
