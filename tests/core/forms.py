"""The forms in which rankers come, and tables to fit them to: one list for all tests that go through every form.

A form is an algorithm with parameters that change what is fitted or stored: its weak rankers, its splits, its map, what
it learns from. `tests/core/test_forms.py` holds each of them to what every ranker keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from core import Logistic, RankAverage, RankBoost, TreeRank
from core.registry import ALGORITHMS
from tests.long_form import long_form

COLOURS = ("blue", "green", "grey", "pink", "red")
TREES = {"weak_ranker": "tree", "max_leaves": 5, "min_samples_leaf": 3.0}
SAMPLED = {"subsample": 0.6, "max_features": 0.5, "random_state": 4}
STOPS = {"early_stopping_rounds": 4, "validation_fraction": 0.3}
COLUMNS = {"weak_ranker": "column"}
FEW = {
    "n_rounds": 8,
    "max_rounds": 8,
    "n_trees": 4,
    "n_bags": 2,
    "n_components": 9,
    "coarseness": 7,
}


class Form(NamedTuple):
    """An algorithm, its parameters, and what it learns from: "classes", "labels" or "pairs"."""

    algorithm: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    learns: str = "classes"

    def make(self, **others: Any) -> Any:
        """Make an unfitted ranker of few rounds, trees or components, or of others."""
        algorithm = RankAverage if self.algorithm == "rank_average" else ALGORITHMS[self.algorithm]
        known = algorithm().get_params(deep=False)
        few = {name: value for name, value in FEW.items() if name in known}
        own = {name: value for name, value in others.items() if name in known}
        return algorithm(**few | own | dict(self.parameters))

    def fit(self, rows: Rows, weight: Any = None, callback: Any = None, **others: Any) -> Any:
        """Fit to rows, or to the pairs among them, with a weight for each."""
        ranker = self.make(**others)
        table = rows.table if ranker.takes_categories() else numbers_of(rows.table)
        if self.learns == "pairs":
            return ranker.fit_pairs(table, rows.pairs, weight, callback=callback)
        y = rows.labels if self.learns == "labels" else rows.y
        return ranker.fit(table, y, weight, callback=callback)


@dataclass(frozen=True)
class Rows:
    """A table, and what is learnt from it."""

    table: pd.DataFrame
    y: np.ndarray
    labels: np.ndarray
    pairs: np.ndarray

    def take(self, places: np.ndarray) -> Rows:
        """Return the rows of these indices, without pairs."""
        rows = self.table.iloc[places].reset_index(drop=True)
        return Rows(rows, self.y[places], self.labels[places], self.pairs[:0])


def draw_rows(n: int = 240, seed: int = 3) -> Rows:
    """Ties, gaps, a constant, and two columns of words, one of more than 64; two classes, three labels, noisy pairs."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 70, n)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n).round(1),
            "size": rng.normal(size=n),
            "same": np.full(n, 7.0),
            "colour": rng.choice(COLOURS, n),
            "town": [f"t{k:02}" for k in town],
        }
    )
    worth = table["age"] + 1.5 * table["colour"].isin(["red", "grey"]) - 0.5 * (town % 2)
    worth = worth.to_numpy() + 0.7 * rng.normal(size=n)
    table.loc[rng.random(n) < 0.1, "age"] = np.nan
    table.loc[rng.random(n) < 0.1, "colour"] = None
    y = (worth > 0.5).astype(int)
    labels = np.column_stack([y, table["size"] > 0.2, worth < -0.5]).astype(int)
    ends = rng.integers(0, n, (3 * n, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    pairs = np.where((worth[ends[:, 0]] > worth[ends[:, 1]])[:, None], ends, ends[:, ::-1])
    return Rows(table, y, labels, pairs)


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of numbers, for rankers that take no words."""
    return table[["age", "size", "same"]]


# What each of these adds to the algorithm, another form has, too: the short form of the tests goes without.
COMBINED = {
    "rankboost, stops early",
    "rankboost of Newton's trees",
    "rankboost, pushed",
    "rankboost of pushed columns",
    "rankboost of columns and pairs",
    "coordinate rankboost of columns",
    "smooth margin of columns",
    "smooth margin of pairs",
    "additive to its end",
    "lambdamart of a few first rows",
    "martirank of forests",
    "sampled martirank of lines",
    "treerank by lines",
    "treerank by forests",
    "treerank, pruned by folds",
    "several labels, ranked",
}


def each(names: Iterable[str]) -> list[Any]:
    """Return the names of forms as the values of a parameter."""
    return [pytest.param(name, marks=long_form if name in COMBINED else ()) for name in names]


FORMS: dict[str, Form] = {
    "rankboost": Form("rankboost"),
    "rankboost, stops early": Form("rankboost", STOPS),
    "rankboost of columns": Form("rankboost", COLUMNS),
    "rankboost of trees": Form("rankboost", TREES),
    "rankboost of Newton's trees": Form("rankboost", TREES | {"leaf": "newton"}),
    "rankboost, pushed": Form("rankboost", {"push": 8.0}),
    "rankboost of pushed columns": Form("rankboost", COLUMNS | {"push": 4.0}),
    "rankboost of pushed trees": Form("rankboost", TREES | {"push": 2.0}),
    "rankboost of sampled trees": Form("rankboost", TREES | SAMPLED | STOPS),
    "rankboost of pairs": Form("rankboost", {}, "pairs"),
    "rankboost of columns and pairs": Form("rankboost", COLUMNS, "pairs"),
    "rankboost of trees and pairs": Form("rankboost", TREES, "pairs"),
    "coordinate rankboost": Form("coordinate_rankboost"),
    "coordinate rankboost of columns": Form("coordinate_rankboost", COLUMNS),
    "coordinate rankboost of pairs": Form("coordinate_rankboost", STOPS, "pairs"),
    "smooth margin": Form("smooth_margin_rank"),
    "smooth margin of columns": Form("smooth_margin_rank", COLUMNS),
    "smooth margin of pairs": Form("smooth_margin_rank", {}, "pairs"),
    "smooth margin of columns and pairs": Form("smooth_margin_rank", COLUMNS, "pairs"),
    "adaboost": Form("adaboost"),
    "adaboost without a constant": Form("adaboost", STOPS | {"include_constant": False}),
    "aucboost": Form("aucboost"),
    "aucboost of lines": Form("aucboost", {"weak_ranker": "logistic", "n_rounds": 3}),
    "aucboost of forests": Form("aucboost", {"weak_ranker": "random_forest", "n_rounds": 1}),
    "logitboost": Form("logitboost", TREES),
    "logitboost of numbers for words": Form("logitboost", TREES | {"target_encoding": 3}),
    "additive": Form("additive"),
    "additive to its end": Form(
        "additive", {"max_rounds": 150, "learning_rate": 0.3, "n_pairs": 3}
    ),
    "lambdamart": Form("lambdamart", TREES),
    "lambdamart of a few first rows": Form("lambdamart", TREES | STOPS | {"truncation": 5}),
    "splines": Form("komori_eguchi_boost", {"fpr_max": 0.5}),
    "steps": Form("komori_eguchi_boost", {"weak_ranker": "stump"}),
    "greedy pairs": Form("greedy_pairs"),
    "martirank": Form("martirank"),
    "martirank of lines": Form("martirank", {"weak_ranker": "logistic", "n_rounds": 3}),
    "martirank of forests": Form("martirank", {"weak_ranker": "random_forest", "n_rounds": 1}),
    "sampled martirank": Form("sampled_martirank", {"noise_rate": 0.0}),
    "sampled martirank of lines": Form(
        "sampled_martirank", {"weak_ranker": "linear_svm", "n_rounds": 2, "noise_rate": 0.0}
    ),
    "svm": Form("auc_svm", {"C": 1.0}),
    "svm of a window": Form("pauc_svm", {"C": 1.0, "fpr_max": 0.5}),
    "svm of a window, not convex": Form("pauc_svm_dc", {"C": 1.0, "fpr_max": 0.5}),
    "sigmoid svm": Form("pauc_svm", {"C": 1.0, "fpr_max": 0.5, "surrogate": "sigmoid"}),
    "top push": Form("top_push", {"C": 1.0}),
    "push of a linear score": Form("p_norm_push", {"C": 1.0}),
    "svm on waves": Form("auc_svm", {"C": 1.0, "feature_map": "fourier"}),
    "svm on landmarks": Form("auc_svm", {"C": 1.0, "feature_map": "nystroem"}),
    "svm on bins": Form("pauc_svm", {"C": 1.0, "feature_map": "bins", "fpr_max": 0.5}),
    "asymmetric svm": Form("asymmetric_svm", {"C": 1.0, "asymmetry": 4.0}),
    "logistic": Form("logistic"),
    "scorecard": Form("scorecard"),
    "treerank": Form("treerank", {"max_depth": 4}),
    "treerank by cuts": Form("treerank", {"splitter": "axis", "max_depth": 4, "order": "concave"}),
    "treerank by cubes": Form("treerank", {"splitter": "grid", "max_depth": 3}),
    "treerank by lines": Form("treerank", {"splitter": "linear_svm", "max_depth": 2}),
    "treerank by logistic lines": Form("treerank", {"splitter": "logistic", "max_depth": 2}),
    "treerank by forests": Form("treerank", {"splitter": "random_forest", "max_depth": 1}),
    "treerank, pruned by folds": Form("treerank", {"pruning": "cv", "n_folds": 2, "max_depth": 4}),
    "treerank, pruned by its structure": Form("treerank", {"pruning": "structural"}),
    "treerank forest": Form("treerank_forest"),
    "random forest": Form("random_forest"),
    "extra trees": Form("random_forest", {"splitter": "random", "criterion": "log_loss"}),
    "several labels": Form("adaboost_mh", STOPS, "labels"),
    "several labels, ranked": Form("adaboost_mr", {}, "labels"),
    "several labels, ranked in each row": Form("adaboost_mr", {"pairs": "example"}, "labels"),
    "average of ranks": Form(
        "rank_average",
        {"members": [RankBoost(n_rounds=4), Logistic(), TreeRank(max_depth=3)]},
    ),
}
