"""Stumps on categorical columns: every booster that takes them, from table to artifact."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from core import (
    AdaBoost,
    AdaBoostMH,
    AdaBoostMR,
    AUCBoost,
    CoordinateRankBoost,
    RankBoost,
    SmoothMarginRank,
)
from core.coding.categories import unpack
from core.errors import InvalidData
from tests.sentences import Sentences

COLOURS = ("blue", "green", "pink", "red", "white")

BINARY = {
    "adaboost": lambda **more: AdaBoost(n_rounds=12, **more),
    "rankboost": lambda **more: RankBoost(n_rounds=12, **more),
    "coordinate_rankboost": lambda **more: CoordinateRankBoost(n_rounds=12, **more),
    "smooth_margin_rank": lambda **more: SmoothMarginRank(n_rounds=12, **more),
    "aucboost": lambda **more: AUCBoost(n_rounds=12, **more),
}
ALL = BINARY | {
    "adaboost_mh": lambda **more: AdaBoostMH(n_rounds=12, **more),
    "adaboost_mr": lambda **more: AdaBoostMR(n_rounds=12, **more),
}
every_booster = pytest.mark.parametrize("name", ALL)
every_binary = pytest.mark.parametrize("name", BINARY)


def make_table(
    n: int = 400, seed: int = 0, missing: float = 0.1
) -> tuple[pd.DataFrame, np.ndarray]:
    """A number, colours that tell the label, shapes that do not, and an identifier."""
    rng = np.random.default_rng(seed)
    colour = rng.integers(0, 5, n)
    number = np.round(rng.normal(size=n), 1)
    tells = np.array([1.5, -1.0, 0.3, -1.5, 1.0])[colour]
    y = (tells + number + rng.normal(size=n) > 0).astype(int)
    gone = rng.random(n) < missing
    return (
        pd.DataFrame(
            {
                "number": number,
                "colour": np.where(gone, None, np.array(COLOURS)[colour]),
                "shape": np.array(["round", "square", "odd"])[rng.integers(0, 3, n)],
                "id": [f"id {k:04}" for k in rng.permutation(n)],
            }
        ),
        y,
    )


def labels_for(name: str, y: np.ndarray) -> np.ndarray:
    """Several labels if the booster needs them: the label, its reverse, and one that varies."""
    return y if name in BINARY else np.column_stack([y, 1 - y, np.arange(len(y)) % 3 == 0])


def fitted(name: str, table: pd.DataFrame, y: np.ndarray, **more: Any) -> Any:
    return ALL[name](**more).fit(table, labels_for(name, y))


@every_booster
def test_categories_are_used(name: str) -> None:
    table, y = make_table()
    ranker = fitted(name, table, y)
    assert 1 in ranker.rounds_["feature"]
    assert ranker.categories_[:3] == (None, COLOURS, ("odd", "round", "square"))


@every_booster
def test_an_identifier_is_never_chosen(name: str) -> None:
    table, y = make_table()
    assert 3 not in fitted(name, table, y).rounds_["feature"]
    alone = table[["shape", "id"]]
    assert set(fitted(name, alone, y, max_bins=1000).rounds_["feature"]) <= {-1, 0}
    cut_short = fitted(name, table, y, max_bins=40)  # 361 of the identifiers share a bin
    assert (cut_short.rounds_["feature"] == 3).sum() <= 1


@every_booster
def test_new_names_for_categories_change_no_score(name: str) -> None:
    table, y = make_table()
    names = dict(zip(COLOURS, ("v", "z", "u", "y", "x"), strict=True))
    renamed = table.assign(colour=table["colour"].map(names))
    scores = fitted(name, table, y).decision_function(table)
    assert fitted(name, renamed, y).decision_function(renamed) == pytest.approx(scores, abs=1e-9)


@every_booster
def test_more_categories_than_bins(name: str) -> None:
    table, y = make_table()
    ranker = fitted(name, table[["colour", "shape"]], y, max_bins=2)
    sets = ranker.ensemble_.sets
    for round_ in ranker.rounds_[ranker.rounds_["feature"] == 0]:
        assert unpack(sets, round_["set"], 5).sum() in (0, 1, 4, 5)  # the heaviest, and the rest


@every_booster
@pytest.mark.parametrize("value", ["one", None])
def test_a_column_of_one_category_or_none_is_no_hindrance(name: str, value: str | None) -> None:
    table, y = make_table()
    with_it = table[["number", "colour"]].assign(same=value)
    plain = fitted(name, table[["number", "colour"]], y)
    assert fitted(name, with_it, y).decision_function(with_it) == pytest.approx(
        plain.decision_function(table[["number", "colour"]])
    )


@every_binary
def test_the_missing_are_tried_on_both_sides(name: str) -> None:
    rng = np.random.default_rng(0)
    for label in (0, 1):
        y = rng.permutation(np.repeat([0, 1], 200))
        colour = np.where(y == label, None, np.array(["blue", "red"])[rng.integers(0, 2, 400)])
        table = pd.DataFrame({"colour": colour})
        ranker = fitted(name, table, y)
        a, b = ranker.decision_function(pd.DataFrame({"colour": [None, "red"]}))
        assert (a > b) == (label == 1)
        assert ranker.rounds_["feature"].tolist()[:1] == [0]


@every_binary
def test_rules_name_their_categories(name: str) -> None:
    table, y = make_table()
    rules = fitted(name, table, y).structure()["rules"]
    spoken = [rule["rule"] for rule in rules if rule["feature"] == "colour"]
    assert any("colour in {blue" in rule and "} " in rule and " adds " in rule for rule in spoken)
    features = {f["feature"]: f for f in fitted(name, table, y).structure()["features"]}
    assert features["colour"]["categories"] == list(COLOURS)
    assert len(features["colour"]["values"]) == 5
    assert "thresholds" in features["number"]


def test_what_has_no_use_for_categories_refuses_them_by_name(sentences: Sentences) -> None:
    table, y = make_table()
    for ranker in (
        RankBoost(weak_ranker="column"),
        AUCBoost(weak_ranker=LogisticRegression()),
    ):
        assert not ranker.takes_categories()
        with sentences.raises(InvalidData):
            ranker.fit(table, y)
    fitted_ranker = RankBoost(n_rounds=3).fit(table, y)
    with sentences.raises(InvalidData):
        fitted_ranker.decision_function(np.zeros((1, 4)))
    with sentences.raises(InvalidData):
        fitted_ranker.decision_function(table.assign(number="1"))
