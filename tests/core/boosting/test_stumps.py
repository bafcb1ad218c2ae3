"""Scoring, contributions and the readable structure of a sum of stumps."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import RankBoost
from tests.sentences import Sentences


@pytest.fixture
def ranker() -> RankBoost:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    y = (X[:, 0] - X[:, 2] + rng.normal(size=300) > 0).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    return RankBoost(n_rounds=60).fit(X, y)


def score_by_rounds(ranker: RankBoost, X: np.ndarray) -> np.ndarray:
    scores = np.full(len(X), ranker.intercept_)
    for feature, threshold, sign, missing_above, alpha, *_ in ranker.rounds_.tolist():
        x = X[:, feature]
        above = np.where(np.isnan(x), missing_above, x > threshold)
        scores += alpha * (above == (sign > 0))
    return scores


def test_scores_are_the_sum_of_the_rounds(ranker: RankBoost) -> None:
    thresholds = ranker.rounds_["threshold"]
    values = np.concatenate(
        [
            thresholds,
            np.nextafter(thresholds, np.inf),
            np.nextafter(thresholds, -np.inf),
            [np.nan, 0.0, -0.0, 1e308, -1e308, 5e-324],
        ]
    )
    values = values[~np.isinf(values)]
    X = np.random.default_rng(1).choice(values, size=(2000, 4))
    assert ranker.decision_function(X) == pytest.approx(score_by_rounds(ranker, X), abs=1e-12)
    assert (ranker.score_rows(X) == ranker.decision_function(X)).all()


def test_structure_is_json_and_gives_the_scores(ranker: RankBoost) -> None:
    X = np.round(np.random.default_rng(6).normal(size=(200, 4)), 1)
    X[::5, 2] = np.nan
    structure = json.loads(json.dumps(ranker.structure(), allow_nan=False))
    names = [f"x{j}" for j in range(4)]
    scores = np.full(200, structure["intercept"])
    for feature in structure["features"]:
        x = X[:, names.index(feature["feature"])]
        values = np.array(feature["values"])
        step = np.searchsorted(feature["thresholds"], x, side="left")
        scores += np.where(
            np.isnan(x), feature["missing"], values[np.minimum(step, len(values) - 1)]
        )
    assert scores == pytest.approx(ranker.decision_function(X), abs=1e-12)
    adds = [rule["adds"] for rule in structure["rules"]]
    assert adds == sorted(adds, reverse=True)
    assert sum(adds) == pytest.approx(ranker.rounds_["alpha"].sum())


def test_rules_are_sentences(sentences: Sentences) -> None:
    table = pd.DataFrame({"worst area": [100.5, 200, 300, 400], "age": [1.0, 1, 2, 2]})
    ranker = RankBoost(n_rounds=1, smoothing=0.01).fit(table, [0, 0, 1, 1])
    alpha = 0.5 * math.log(1.01 / 0.01)
    (rule,) = ranker.structure()["rules"]
    assert (rule["feature"], rule["adds"]) == ("worst area", pytest.approx(alpha))
    sentences(rule["rule"])
    ranker.fit(-table.to_numpy(), [0, 0, 1, 1])
    assert ranker.structure()["rules"][0]["rule"].startswith("x0 <= -300 adds ")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ([1, 2, 3, 4, np.nan, np.nan], "x0 > 2 or missing adds"),
        ([np.nan, np.nan, 3, 4, 5, 6], "x0 > 4 adds"),
        ([4, 3, np.nan, 2, 1, 0], "x0 <= 2 adds"),
        ([4, 3, np.nan, np.nan, 1, 0], "x0 <= 1 or missing adds"),
        ([1, 2, 1, np.nan, np.nan, np.nan], "x0 is missing adds"),
        ([np.nan, np.nan, np.nan, 1, 2, 1], "x0 is known adds"),
    ],
)
def test_rules_speak_of_the_missing(column: list[Any], words: str) -> None:
    y = [0, 0, 0, 1, 1, 1] if "x0 > 4" not in words else [0, 0, 0, 0, 1, 1]
    if words in ("x0 > 2 or missing adds", "x0 <= 1 or missing adds"):
        y = [0, 0, 1, 1, 1, 1]
    X = np.array(column, dtype=float)[:, None]
    ranker = RankBoost(n_rounds=1).fit(X, y)
    assert ranker.structure()["rules"][0]["rule"].startswith(words)
    assert (ranker.predict(X) == y).all()


def test_missing_later_goes_with_the_greater_mass() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [3.0], [3.0]])
    ranker = RankBoost(n_rounds=1).fit(X, [0, 0, 1, 1, 1, 1])
    assert ranker.rounds_["threshold"][0] == 1.0
    assert not ranker.rounds_["missing_above"][0]  # P + N = 1, not more
    ranker = RankBoost(n_rounds=1).fit(X, [0, 1, 1, 1, 1, 1])
    assert ranker.rounds_["threshold"][0] == 0.0
    ranker = RankBoost(n_rounds=1).fit(X, [0, 0, 0, 1, 1, 0])
    assert ranker.rounds_["threshold"][0] == 2.0
    assert ranker.rounds_["missing_above"][0]  # all of P and a quarter of N
