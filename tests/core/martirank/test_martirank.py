"""MartiRank against enumerated coins, Lemmas 4 and 5, and the design's check values."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import MartiRank, load, save
from core.metrics import auc


def table(seed: int = 0, n: int = 200, d: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 8, (n, d)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + 6 * rng.normal(size=n) > 12).astype(int)
    return X, y, rng.integers(1, 4, n).astype(float)


def is_above(node: Any, x: np.ndarray) -> bool:
    value = x[node["feature"]]
    return bool(node["missing_above"]) if np.isnan(value) else value > node["threshold"]


def rise(node: Any, x: np.ndarray) -> float:
    if node["feature"] < 0 or not is_above(node, x):
        return node["rise_below"]
    return node["rise_above"]


def ends(
    nodes: np.ndarray, n_layers: int, x: np.ndarray, layer: int = 0, position: int = 0
) -> list[tuple[float, int]]:
    """Every run of coins: (probability, position after the last layer)."""
    if layer == n_layers:
        return [(1.0, position)]
    p = rise(nodes[layer * (layer + 1) // 2 + position], x)
    runs = []
    for step, chance in ((1, p), (0, 1.0 - p)):
        if chance:
            runs += [
                (chance * q, end) for q, end in ends(nodes, n_layers, x, layer + 1, position + step)
            ]
    return runs


def test_the_check_values() -> None:
    X = np.arange(8.0)[:, None]
    y = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    ranker = MartiRank(n_rounds=3).fit(X, y)
    expected = [0, 0, 0.65795207, 0.51309610, 0.51309610, 0.51309610, 0.81103848, 0.81103848]
    assert ranker.expected_position(X) == pytest.approx(expected, abs=1e-8)
    assert auc(y, ranker.decision_function(X)) == 0.9375


@pytest.mark.parametrize("n_layers", [1, 2, 5])
def test_scores_are_means_over_all_coins(n_layers: int) -> None:
    X, y, weight = table()
    position = MartiRank(n_rounds=n_layers).fit(X, y, weight)
    vote = MartiRank(n_rounds=n_layers, output="vote").fit(X, y, weight)
    for i in range(40):
        runs = ends(position.nodes_, n_layers, X[i])
        mean = sum(p * end for p, end in runs) / n_layers
        majority = sum(p for p, end in runs if 2 * end >= n_layers)
        assert position.expected_position(X[i : i + 1])[0] == pytest.approx(mean, abs=1e-12)
        assert vote.expected_position(X[i : i + 1])[0] == pytest.approx(majority, abs=1e-12)


def test_each_node_errs_alike_on_both_classes_of_the_rows_that_reach_it() -> None:
    X, y, weight = table()
    n_layers = 6
    ranker = MartiRank(n_rounds=n_layers).fit(X, y, weight)
    mass = np.zeros((n_layers + 1, len(y)))
    mass[0] = weight
    for t in range(n_layers):
        for position in range(t, -1, -1):
            node = ranker.nodes_[t * (t + 1) // 2 + position]
            rises = np.array([rise(node, x) for x in X])
            here = mass[position]
            shares = [here[y == b].sum() / weight[y == b].sum() for b in (1, 0)]
            assert [node["positive"], node["negative"]] == pytest.approx(shares, abs=1e-12)
            if node["feature"] >= 0:
                fallen = (here * (1 - rises))[y == 1].sum() / here[y == 1].sum()
                risen = (here * rises)[y == 0].sum() / here[y == 0].sum()
                assert node["error"] == pytest.approx(fallen, abs=1e-9)
                assert node["error"] == pytest.approx(risen, abs=1e-9)
            mass[position + 1] += here * rises
            mass[position] = here * (1 - rises)


def test_the_first_layer_is_the_best_stump_and_its_auc_keeps_lemma_5() -> None:
    X, y, weight = table()
    ranker = MartiRank(n_rounds=1).fit(X, y, weight)
    (node,) = ranker.nodes_
    best = 0.0
    for x in X.T:
        for cut in [-np.inf, *np.unique(x[~np.isnan(x)])]:
            for missing_above in (False, True):
                above = np.where(np.isnan(x), missing_above, x > cut)
                tpr, fpr = (np.average(above[y == b], weights=weight[y == b]) for b in (1, 0))
                best = max(best, abs(tpr - fpr))
    above = np.array([is_above(node, x) for x in X])
    tpr, fpr = (np.average(above[y == b], weights=weight[y == b]) for b in (1, 0))
    assert abs(tpr - fpr) == pytest.approx(best, abs=1e-12)
    assert auc(y, ranker.decision_function(X), weight) >= 1 - node["error"] - 1e-12
    assert node["error"] <= 0.5 - best / 4 + 1e-12


def test_a_node_of_one_class_sends_all_its_way() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    ranker = MartiRank(n_rounds=4).fit(X, [0, 0, 1, 1])
    assert ranker.expected_position(X).tolist() == [0.0, 0.0, 1.0, 1.0]
    alone = ranker.nodes_[ranker.nodes_["feature"] < 0]
    assert set(alone["rise_below"]) <= {0.0, 1.0}


def test_categories_are_cut_as_sets() -> None:
    rng = np.random.default_rng(0)
    colours = np.array(["blue", "green", "red", "violet"])
    colour = rng.integers(0, 4, 800)
    y = (rng.random(800) < np.array([0.1, 0.8, 0.2, 0.7])[colour]).astype(int)
    table = pd.DataFrame({"colour": colours[colour], "noise": rng.normal(size=800)})
    ranker = MartiRank(n_rounds=3).fit(table, y)
    root = ranker.structure()["programs"][0][0][0]
    assert root["condition"].removesuffix(" or missing") == "colour in {green, violet}"
    likely, unlikely = (
        ranker.decision_function(table[table["colour"].isin(names)])
        for names in (["green", "violet"], ["blue", "red"])
    )
    assert np.median(likely) > np.median(unlikely)
    again = load(save(ranker))
    assert (again.decision_function(table) == ranker.decision_function(table)).all()
    unseen = pd.DataFrame({"colour": ["black", None], "noise": [0.0, 0.0]})
    one, other = ranker.decision_function(unseen)
    assert one == other
