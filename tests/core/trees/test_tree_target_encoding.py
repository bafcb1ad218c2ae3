"""Features of many categories, asked by shares of positives and by numbers of rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import RankBoost, load, save
from core.base.splits import draw_folds
from core.base.training import TrainingData
from core.boosting import LogitBoost
from core.coding.folds import N_FOLDS, PRIOR_ROWS
from core.metrics import auc
from core.trees.target_encoding import encode
from tests.long_form import LONG_FORM

BOOSTERS = {
    "ranking": lambda **options: RankBoost(weak_ranker="tree", **options),
    "logistic": LogitBoost,
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)


def draw_names(n: int = 4000, n_names: int = 800, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A name tells something by its own level and by how common it is; some are missing."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(n_names, 0.5))
    level = rng.normal(size=n_names) - 0.5 * np.log(share * n_names + 0.1)
    name = rng.choice(n_names, n, p=share)
    x = rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(2.0 - level[name] - x))
    table = pd.DataFrame({"x": x, "name": [f"n{k:03}" for k in name]})
    table.loc[rng.random(n) < 0.05, "name"] = None
    return table, y


@settings(max_examples=500 if LONG_FORM else 16)
@given(st.integers(0, 2**32 - 1))
def test_numbers_of_rows_are_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_names = int(rng.integers(2, 40)), 6
    X = np.column_stack([rng.normal(size=n), rng.integers(0, n_names, n)])
    X[rng.random(n) < 0.2, 1] = np.nan
    positive, weight = rng.random(n) < 0.4, rng.integers(1, 4, n).astype(float)
    encoded = encode(TrainingData(X, positive, weight, np.array([0, n_names])), 5, seed)
    assert encoded.feature.tolist() == [0, 1, 1]
    assert encoded.n_categories.tolist() == [0, 0, 0]
    assert np.array_equal(encoded.X[:, 0], X[:, 0])
    mean = weight[positive].sum() / weight.sum()

    def share(rows: Any) -> Any:
        return (weight[rows & positive].sum() + PRIOR_ROWS * mean) / (
            weight[rows].sum() + PRIOR_ROWS
        )

    fold, known = draw_folds(positive, N_FOLDS, seed), ~np.isnan(X[:, 1])
    for i in range(n):
        if np.isnan(X[i, 1]):
            assert np.isnan(encoded.X[i, 1:]).all()
            continue
        alike = X[:, 1] == X[i, 1]
        assert encoded.X[i, 1] == pytest.approx(share(alike & (fold != fold[i])))
        rows, elsewhere = weight[alike].sum(), fold != fold[i]
        if weight.min() < weight.max():
            rows = weight[alike & elsewhere].sum()
            rows *= weight[known].sum() / max(weight[known & elsewhere].sum(), 1e-9)
        assert encoded.X[i, 2] == pytest.approx(rows)
    for k in range(n_names):
        alike = X[:, 1] == k
        if alike.any():
            assert encoded.numbers[1][k] == pytest.approx(share(alike))
            assert encoded.numbers[2][k] == pytest.approx(weight[alike].sum())
        else:
            assert np.isnan([encoded.numbers[1][k], encoded.numbers[2][k]]).all()
    assert encoded.numbers[1][-1] == pytest.approx(mean)
    assert encoded.numbers[2][-1] == 0.0
    small = encode(TrainingData(X, positive, weight / 1e6, np.array([0, n_names])), 5, seed)
    least = encode(
        TrainingData(X, positive, weight / weight.mean(), np.array([0, n_names])), 5, seed
    )
    np.testing.assert_allclose(small.X, least.X)


@boosters
def test_names_rank_new_rows_better_by_their_numbers_than_by_sets(
    make: Callable[..., Any] | type[Any],
) -> None:
    table, y = draw_names(n=8000, n_names=2000)
    train, test = slice(0, 5000), slice(5000, None)
    found = {}
    for more_than in (255, None):
        ranker = make(n_rounds=60, learning_rate=0.1, max_leaves=8, target_encoding=more_than)
        ranker.fit(table[train], y[train])
        found[more_than] = auc(y[test], ranker.decision_function(table[test]))
    assert found[255] > found[None] + 0.01


@boosters
def test_an_identifier_is_never_asked(make: Callable[..., Any] | type[Any]) -> None:
    table, y = draw_names()
    table["id"] = [f"r{k:04}" for k in range(len(table))]
    ranker = make(n_rounds=20).fit(table[["x", "id"]], y)
    assert set(ranker.get_state()[0]["split_feature"].tolist()) == {0}


@boosters
def test_an_unknown_name_is_ranked_as_a_missing_one_where_some_were_missing(
    make: Callable[..., Any] | type[Any],
) -> None:
    table, y = draw_names()
    ranker = make(n_rounds=20).fit(table, y)
    rows = pd.DataFrame({"x": 0.3, "name": pd.Series(["never seen", None], dtype=object)})
    known, unknown = ranker.decision_function(rows)
    assert known == unknown


@boosters
def test_an_unknown_name_counts_as_rare_where_none_was_missing(
    make: Callable[..., Any] | type[Any],
) -> None:
    rng = np.random.default_rng(0)
    # 300 names of one row each, seldom positive; 10 of 300 rows each, often so
    names = [f"a{k:03}" for k in range(300)] + [f"b{k % 10}" for k in range(3000)]
    y = rng.random(3300) < np.where(np.arange(3300) < 300, 0.05, 0.6)
    table = pd.DataFrame({"name": names})
    ranker = make(n_rounds=1, max_leaves=2).fit(table, y)
    rows = pd.DataFrame({"name": ["never seen", "a000", "b0"]})
    unknown, rare, common = ranker.decision_function(rows)
    assert unknown == rare < common


@boosters
def test_copies_do_not_tell_a_row_its_own_label(make: Any) -> None:
    rng = np.random.default_rng(0)
    n = 2000
    x, name = rng.normal(size=n), rng.integers(0, 700, n)
    y = rng.random(n) < 1 / (1 + np.exp(1 - x))  # the name says nothing
    table = pd.DataFrame({"x": x, "name": [f"n{k:03}" for k in name]})
    train, test = slice(0, 1000), slice(1000, None)
    once = make(n_rounds=60).fit(table[train], y[train])
    copies = np.tile(np.arange(1000), 4)
    four = make(n_rounds=60).fit(table.iloc[copies], y[copies])
    moved = table.iloc[copies].assign(x=x[copies] + 1e-6 * rng.normal(size=len(copies)))
    grouped = make(n_rounds=60).fit(moved, y[copies], groups=copies)
    leaking = make(n_rounds=60).fit(moved, y[copies])
    found = [auc(y[test], r.decision_function(table[test])) for r in (once, four, grouped, leaking)]
    assert min(found[1:3]) > found[0] - 0.03
    assert min(found[1:3]) > found[3] + 0.03


@boosters
def test_a_name_that_is_all_of_a_row_is_still_learnt_from(make: Any) -> None:
    rng = np.random.default_rng(0)
    level = rng.normal(size=300)
    name = rng.integers(0, 300, 4000)
    y = rng.random(4000) < 1 / (1 + np.exp(1 - 2 * level[name]))
    table = pd.DataFrame({"name": [f"n{k:03}" for k in name]})
    ranker = make(n_rounds=20).fit(table[:2000], y[:2000])
    assert auc(y[2000:], ranker.decision_function(table[2000:])) > 0.7
    together = make(n_rounds=20).fit(table[:2000], y[:2000], groups=np.zeros(2000))
    assert auc(y[2000:], together.decision_function(table[2000:])) > 0.7  # one group parts nothing


def test_the_losses_say_by_which_scores_they_are() -> None:
    table, y = draw_names(n=1500, n_names=600)
    for more_than, said in ((255, "not those of the ranker's own scores"), (None, "as new rows")):
        ranker = RankBoost(weak_ranker="tree", n_rounds=20, target_encoding=more_than)
        ranker.fit(table, y)
        scores = ranker.decision_function(table)
        own = np.exp(-scores[y]).sum() * np.exp(scores[~y]).sum()
        told = ranker.structure()
        assert said in told["losses_of"]
        is_own = told["losses"]["f_tilde"] == pytest.approx(own, rel=1e-9)
        assert is_own == (more_than is None)
        assert load(save(ranker)).structure()["losses_of"] == told["losses_of"]
