"""Trees for people: what the words say is what the tree does, whoever reads them."""

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core.metrics import auc
from core.treerank import TreeRank, description
from core.treerank.description import subtree_curves
from tests.sentences import Sentences


def people(n: int = 800, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "since": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 30, n)),
            "region": rng.choice(["north", "south", "east"], n),
            "income": rng.integers(1, 100, n),
        }
    )
    worth = table.age / 20 + (table.region == "north") - table["since"].fillna(25) / 10
    return table, (worth + rng.logistic(size=n) > 1).to_numpy()


def named(ranker: Any) -> description.NamedTree:
    """The tree of a ranker; the figures do not depend on names."""
    names = [str(j) for j in range(ranker.n_features_in_)]
    return description.NamedTree(ranker.tree_, ranker.order_, names.__getitem__, ranker.categories_)


def holds(condition: str, table: pd.DataFrame) -> np.ndarray:
    """Return True if a condition in words holds, row by row."""
    missing = condition.endswith("?")
    condition = condition.rstrip("?")
    if match := re.fullmatch(r"(\S+) < (\w+) <= (\S+)", condition):
        low, name, high = match.groups()
        column = table[name].to_numpy(dtype=float)
        within = (column > float(low)) & (column <= float(high))
        return within | (np.isnan(column) if missing else False)
    if match := re.fullmatch(r"(\w+) (>|<=) (.*)", condition):
        name, sign, value = match.groups()
        column = table[name].to_numpy(dtype=float)
        known = column > float(value) if sign == ">" else column <= float(value)
        return known | (np.isnan(column) if missing else False)
    if match := re.fullmatch(r"(\w+) in \{(.*)\}", condition):
        column = table[match[1]]
        return (column.isin(match[2].split(", ")) | (column.isna() & missing)).to_numpy()
    name, state = re.fullmatch(r"(\w+) is (known|missing)", condition).groups()
    return (table[name].isna() == (state == "missing")).to_numpy()


def obeys(words: str, table: pd.DataFrame) -> np.ndarray:
    """Read "a or (b and c)" as a person does."""
    ways = words.replace(" (or missing)", "?").split(" or ")
    return np.logical_or.reduce(
        [
            np.logical_and.reduce([holds(one, table) for one in way.strip("()").split(" and ")])
            for way in ways
        ]
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_words_say_what_the_tree_does(depth: int) -> None:
    table, y = people()
    ranker = TreeRank(max_depth=4, leafrank_depth=depth, min_samples_leaf=10).fit(table, y)
    other, _ = people(500, seed=1)
    scores = ranker.decision_function(other)
    found = np.full(500, -1)
    for rule in ranker.list_rules():
        rows = np.logical_and.reduce([obeys(words, other) for words in rule["conditions"]])
        assert (found[rows] == -1).all()  # each row is in one leaf
        found[rows] = rule["rank"]
    assert (found > 0).all()
    assert np.array_equal(
        np.unique(found, return_inverse=True)[1], np.unique(-scores, return_inverse=True)[1]
    )


@pytest.mark.parametrize("order", ["tree", "concave"])
def test_rules_per_leaf_have_the_counts_and_rates_of_the_training_rows(order: str) -> None:
    table, y = people()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    ranker = TreeRank(max_depth=4, order=order).fit(table, y, weight)
    rules = ranker.list_rules()
    scores = ranker.decision_function(table)
    levels = np.unique(scores)[::-1]
    assert [rule["rank"] for rule in rules] == list(range(1, len(levels) + 1))
    for rule, level in zip(rules, levels, strict=True):
        rows = scores == level
        assert rule["positive"] == weight[rows & y].sum()
        assert rule["negative"] == weight[rows & ~y].sum()
        assert rule["share"] == pytest.approx(np.average(y[rows], weights=weight[rows]))
        above = scores >= level
        assert rule["tpr"] == pytest.approx(weight[above & y].sum() / weight[y].sum())
        assert rule["fpr"] == pytest.approx(weight[above & ~y].sum() / weight[~y].sum())
    if order == "concave":
        shares = [rule["share"] for rule in rules]
        assert shares == sorted(shares, reverse=True)
    assert named(ranker).auc == pytest.approx(auc(y, scores, weight))


def test_what_a_cut_below_has_said_is_not_said_again(sentences: Sentences) -> None:
    X = np.arange(200.0).reshape(-1, 1)
    y = (X[:, 0] > 80) & (X[:, 0] <= 140)
    ranker = TreeRank(max_depth=1, leafrank_depth=3).fit(X, y)
    rule = ranker.structure()["nodes"][0]["to_top"]
    sentences(rule["words"])
    assert set(rule["otherwise"].split(" or ")) == {"x0 > 140", "x0 <= 80"}


def test_the_text_has_a_line_per_node() -> None:
    table, y = people()
    ranker = TreeRank(max_depth=3, splitter="axis").fit(table, y)
    lines = ranker.to_text().splitlines()
    tree = ranker.tree_
    metrics = (
        f"{tree.n_leaves} leaves",
        f"{tree.auc:.4f}",
        f"{y.sum()} of 800",
        f"{100.0 * y.mean():.1f} %",
    )
    assert all(metric in lines[0] for metric in metrics)
    assert len(lines) == tree.n_nodes  # the first is that of the root
    assert [line.split("rank ")[1].split(":")[0] for line in lines if "rank " in line[5:]] == [
        str(k) for k in range(1, tree.n_leaves + 1)
    ]
    words = [node["to_top"]["words"] for node in ranker.structure()["nodes"] if "to_top" in node]
    assert all(any(f"├─ {text}: " in line for line in lines) for text in words)


def test_a_tree_of_one_leaf_can_be_read(sentences: Sentences) -> None:
    ranker = TreeRank().fit(np.zeros((10, 2)), np.arange(10) % 2)
    sentences(ranker.to_text())
    assert ranker.list_rules()[0]["conditions"] == []
    assert len(subtree_curves(ranker.tree_)) == 1


def test_the_curve_of_a_deeper_tree_is_above_and_keeps_the_knots() -> None:
    table, y = people()
    curves = subtree_curves(TreeRank(max_depth=4).fit(table, y).tree_)
    assert len(curves) == 5
    assert curves[0][0].tolist() == [0.0, 1.0]
    areas = [np.trapezoid(tpr, fpr) for fpr, tpr in curves]
    assert areas == sorted(areas)
    for before, after in pairwise(curves):
        assert set(zip(*map(np.ndarray.tolist, before), strict=True)) <= set(
            zip(*map(np.ndarray.tolist, after), strict=True)
        )
