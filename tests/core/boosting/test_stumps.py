"""Scoring, contributions and the readable structure of a sum of stumps."""

import json
import math
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import CoordinateRankBoost, RankBoost
from core.boosting import stumps
from core.boosting.stumps import (
    BLOCK_ROWS,
    MAX_COUNTED_THRESHOLDS,
    MIN_COUNTED_ROWS,
    ROUND,
    StepFunctions,
    fold,
)
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


def test_blocks_of_rows_score_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    counts = np.array(
        [MAX_COUNTED_THRESHOLDS, MAX_COUNTED_THRESHOLDS + 6, 1]
    )  # counted through, bisected
    thresholds = [np.sort(rng.normal(size=n).round(2)) for n in counts]
    starts = np.r_[0, np.cumsum(counts)]
    values = rng.normal(size=starts[-1] + 2 * len(counts))
    parts = [np.array([0, 2, 3]), starts, np.concatenate(thresholds), values]
    for part in parts:
        part.flags.writeable = False
    steps = StepFunctions(*parts)
    X = rng.normal(size=(2 * BLOCK_ROWS + 3, 4)).round(2)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0], X[1] = np.inf, -np.inf
    for n in (MIN_COUNTED_ROWS, BLOCK_ROWS, len(X)):
        one_by_one = [steps.score(X[i : i + 1], 0.5)[0] for i in range(n)]
        assert steps.score(X[:n], 0.5).tolist() == one_by_one


def test_threads_share_a_ranker(ranker: RankBoost) -> None:
    X = np.random.default_rng(3).normal(size=(2000, 4))
    expected = ranker.score_rows(X)
    results = [None] * 4

    def score(k: Any) -> None:
        results[k] = ranker.score_rows(X)

    threads = [threading.Thread(target=score, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((result == expected).all() for result in results)


def test_coverage_is_the_share_of_the_training_weight(ranker: RankBoost) -> None:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 4)), 1)
    rng.normal(size=300)
    X[rng.random(X.shape) < 0.1] = np.nan
    for row in ranker.rounds_:
        x = X[:, row["feature"]]
        above = np.where(np.isnan(x), row["missing_above"], x > row["threshold"])
        share = (above == (row["sign"] > 0)).mean()
        assert row["coverage"] == pytest.approx(share, abs=1e-12)


def test_staged_scores_are_those_of_shorter_fits(ranker: RankBoost) -> None:
    X, y = np.random.default_rng(8).normal(size=(2, 200, 3))
    y = (X[:, 0] + y[:, 0] > 0).astype(int)
    whole = RankBoost(n_rounds=12).fit(X, y)
    stages = list(whole.staged_decision_function(X))
    assert len(stages) == 12
    for n_rounds, scores in enumerate(stages, start=1):
        shorter = RankBoost(n_rounds=n_rounds).fit(X, y)
        assert scores == pytest.approx(shorter.decision_function(X), abs=1e-10)


def test_as_many_thresholds_as_bins_of_16_bits_fold_quickly(ranker: RankBoost) -> None:
    arrays, meta = ranker.get_state()
    parameters = ranker.get_params() | {"n_rounds": 70_000}
    n = 65_536
    many = {name: np.resize(array, n) for name, array in arrays.items() if array.shape == (60,)}
    many |= {name: np.resize(arrays[name], n + 1) for name in ("log_f_plus", "log_f_minus")}
    many |= {"feature": np.zeros(n, np.int64), "threshold": np.arange(float(n))}
    loaded = RankBoost.from_state(parameters, arrays | many, meta)
    X = np.random.default_rng(0).uniform(0, n, (3, 4))
    assert loaded.score_rows(X) == pytest.approx(score_by_rounds(loaded, X))


@pytest.mark.parametrize("algorithm", [RankBoost, CoordinateRankBoost])
def test_changed_histograms_tell_what_histograms_of_all_rows_tell(
    algorithm: type[RankBoost], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of masses that have become next to nothing, on rows that can be parted without a fault."""
    for seed, noise in enumerate((0.0, 0.1, 1.0)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 6))
        X[:, 3:] = np.round(X[:, 3:])
        y = (X[:, 0] + X[:, 1] + X[:, 3] + noise * rng.normal(size=60) > 0.5).astype(int)
        X[rng.random(X.shape) < 0.05] = np.nan
        ranker = algorithm(n_rounds=200, smoothing=0.0)
        expected, loss = ranker.fit(X, y).rounds_, ranker.loss_
        with monkeypatch.context() as large:
            large.setattr(stumps, "MIN_LISTED_CELLS", 0)
            found = ranker.fit(X, y).rounds_
        for name in ("feature", "threshold", "sign", "missing_above"):
            assert (found[name] == expected[name]).all()
        assert ranker.loss_ == pytest.approx(loss, rel=1e-10)
        assert found["alpha"] == pytest.approx(expected["alpha"], rel=1e-6, abs=1e-9)


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


def test_no_rounds_fold_to_a_constant() -> None:
    steps = fold(np.empty(0, dtype=ROUND), np.zeros(2, np.int64), np.empty(0, np.uint64))
    assert steps.score(np.zeros((3, 2)), 0.25).tolist() == [0.25] * 3
    assert steps.contributions(np.zeros((3, 2))).tolist() == [[0.0, 0.0]] * 3
