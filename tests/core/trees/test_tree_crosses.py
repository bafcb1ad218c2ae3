"""Crosses of categorical features: pairs of them as one number each."""

import itertools
import math
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import core.coding.crosses as crosses_module
from core import LambdaMART, RankBoost, load, save
from core.artifact import ArtifactError
from core.base.checkpoint import Checkpoints
from core.base.monotone import check_monotone
from core.base.ranker import StopFit
from core.base.training import TrainingData
from core.boosting import LogitBoost
from core.boosting.booster import LOSSES_ENCODED
from core.boosting.tree_sum import CrossedTreeSum
from core.coding.crosses import (
    MAX_CROSSES,
    MAX_LOG_ODDS,
    MIN_PAIR_ROWS,
    Crosses,
    find_crosses,
)
from core.coding.folds import PRIOR_ROWS, Folds
from core.metrics import auc
from tests.core.artifact_bytes import put_together, take_apart
from tests.long_form import LONG_FORM
from tests.raising import raises, warns
from tests.sentences import Sentences

FEW: dict[str, Any] = {"n_rounds": 8, "max_leaves": 4, "min_samples_leaf": 1, "crosses": 3}
BOOSTERS = {
    "ranking": lambda **options: RankBoost(weak_ranker="tree", **FEW | options),
    "logistic": lambda **options: LogitBoost(**FEW | options),
    "lists": lambda **options: LambdaMART(**FEW | options),
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)


def draw_towns(n: int = 1500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Towns and months that tell nothing alone, and all of it together; some are missing."""
    rng = np.random.default_rng(seed)
    town, month = rng.integers(0, 9, n), rng.integers(0, 7, n)
    y = rng.random(n) < np.where((town * 3 + month * 5) % 4 < 2, 0.8, 0.2)
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "town": [f"t{k}" for k in town],
            "month": [f"m{k}" for k in month],
            "shop": [f"s{k}" for k in rng.integers(0, 3, n)],
        }
    )
    table.loc[rng.random(n) < 0.03, "town"] = None
    return table, y


def log_odds(share: float) -> float:
    return math.log(share / (1.0 - share))


@settings(max_examples=400 if LONG_FORM else 10)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_numbers_are_those_of_a_plain_loop(seed: int, grouped: bool) -> None:
    """Of two features of words and one of a few numbers."""
    rng = np.random.default_rng(seed)
    n, sizes = 2 * int(rng.integers(2, 20)), np.array([3, 0, 4])
    X = np.column_stack([rng.integers(0, 3, n), rng.integers(-2, 3, n) / 2, rng.integers(0, 4, n)])
    X[rng.random(n) < 0.2, 0] = np.nan
    X[rng.random(n) < 0.2, 1] = np.nan
    positive, weight = rng.random(n) < 0.4, rng.permutation(np.repeat([1.0, 3.0], n // 2))
    positive[:2] = True, False
    group = rng.integers(0, 6, n).astype(np.uint64) if grouped else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crosses_module, "MIN_GAIN", -math.inf)
        found, columns = find_crosses(
            TrainingData(X, positive, weight, sizes, group), 5, np.ones(3, dtype=bool), seed
        )
    values = np.unique(X[~np.isnan(X[:, 1]), 1])
    edges = (values[1:] + values[:-1]) / 2.0
    pairs = [[0, 2]] if len(values) < 3 else [[0, 1], [0, 2], [1, 2]]
    assert [pair for pair in pairs if pair in found.feature.tolist()] == sorted(
        found.feature.tolist()
    )
    assert len(found.feature)
    sizes = np.array([3, len(values), 4])
    weight /= weight.mean()
    mean = weight[positive].sum() / weight.sum()
    folds = Folds.of(TrainingData(X, positive, weight, sizes, group), seed)

    def code(x: Any) -> list[int]:
        """Words by their index, numbers by the midpoints that they reach; the missing last."""
        reached = [x[0], np.count_nonzero(edges <= x[1]), x[2]]
        return [
            int(size if np.isnan(v) else k) for v, k, size in zip(x, reached, sizes, strict=True)
        ]

    def share(rows: Any, prior: float) -> float:
        hits = weight[rows & positive].sum()
        return float((hits + PRIOR_ROWS * prior) / (weight[rows].sum() + PRIOR_ROWS))

    codes = np.array([code(x) for x in X])
    for k, pair in enumerate(found.feature.tolist()):
        of_pair = codes[:, pair]
        number = np.unique(of_pair, axis=0, return_inverse=True)[1].ravel()
        fold = folds.choose(np.ones(n, dtype=bool), number)

        def expected(x: Any, others: Any, pair: Any = pair) -> tuple[float, float]:
            wanted, odds = np.array(code(x))[pair], log_odds(mean)
            for j, own in zip(pair, wanted.tolist(), strict=True):
                odds += log_odds(share((codes[:, j] == own) & others, mean)) - log_odds(mean)
            alike = (codes[:, pair] == wanted).all(axis=1)
            scale = weight.sum() / weight[others].sum() if others.any() else 1.0
            prior = 1.0 / (1.0 + math.exp(-min(max(odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)))
            is_known = np.count_nonzero(alike & others) >= MIN_PAIR_ROWS
            rows = weight[alike & others].sum() * scale
            return share(alike & others & is_known, prior), rows * is_known

        for i in range(n):
            told = columns[i, 2 * k : 2 * k + 2]
            np.testing.assert_allclose(told, expected(X[i], fold != fold[i]), rtol=1e-6)
        everyone = np.ones(n, dtype=bool)
        for new in itertools.product(
            [0.0, 1.0, 2.0, np.nan], [-9.0, 0.2, 0.25, np.nan], [0.0, 3.0]
        ):
            told = found.extend(np.array([new]))[0, 3 + 2 * k : 5 + 2 * k]
            np.testing.assert_allclose(told, expected(new, everyone), rtol=1e-6)
    beyond = found.extend(np.array([[77.0, 0.5, -2.0], [np.nan, 0.5, np.nan]]))
    assert np.array_equal(beyond[0, 3:], beyond[1, 3:])  # no category counts as missing


def test_a_number_has_one_code_in_both_precisions_and_neighbours_have_two() -> None:
    """A value of a column of 32 bits, such as .1, is not the number that a request writes alike."""
    singles = np.array([0.1, 0.2, 0.3, 0.4, 0.7], dtype=np.float32)
    least, greatest = np.nextafter(0.0, 1.0), np.finfo(np.float64).max
    apart = [-greatest, -least, 0.0, least, 1.0, np.nextafter(1.0, 2.0), greatest]
    for values, like in ((singles, [0.1, 0.2, 0.1 + 0.2, 0.4, 0.7]), (apart, apart)):
        column = np.repeat(values, 40).astype(np.float64)
        X = np.column_stack([np.arange(len(column)) % 4, column])
        positive = (np.arange(len(column)) % 4 < 2) == (np.repeat(np.arange(len(values)), 40) % 2)
        sizes, free = np.array([4, 0]), np.ones(2, dtype=bool)
        crosses = find_crosses(
            TrainingData(X, positive, np.ones(len(X)), sizes), 1, free, 0
        ).crosses
        assert crosses.n_columns
        crosses.check()
        rows, written = (
            np.column_stack([np.zeros(len(values)), np.array(each, dtype=np.float64)])
            for each in (values, like)
        )
        assert np.array_equal(crosses.extend(rows)[:, 2:], crosses.extend(written)[:, 2:])
        assert crosses.keys[: len(values)].tolist() == list(range(len(values)))


def test_rows_of_a_group_and_copies_tell_nothing_of_each_other() -> None:
    """Where all rows of a pair of categories have one label, it is found from the rows of the pair alone."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 12, (600, 2)).astype(float)
    unit = (words[:, 0] * 12 + words[:, 1]).astype(np.uint64)
    positive = (rng.random(144) < 0.5)[unit.astype(int)]
    unlike = np.column_stack([words, rng.normal(size=600)])
    sizes, free = np.array([12, 12, 0]), np.ones(3, dtype=bool)

    def area(X: Any, group: Any) -> float:
        n = X.shape[1]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(crosses_module, "MIN_GAIN", -math.inf)
            columns = find_crosses(
                TrainingData(X, positive, np.ones(600), sizes[:n], group), 1, free[:n], 0
            ).X
        return auc(positive, columns[:, 0])

    assert area(unlike, None) > 0.9  # rows of their own
    assert area(unlike, unit) < 0.6  # groups
    assert area(words, None) < 0.6  # copies


def test_weights_that_differ_by_class_do_not_tell_the_labels() -> None:
    """A pair of categories of one row has the weight of this row: its number of rows must come from others."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 40, (800, 2)).astype(float)
    positive = rng.random(800) < 0.3
    weight = np.where(positive, 10.0, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crosses_module, "MIN_GAIN", -math.inf)
        columns = find_crosses(
            TrainingData(words, positive, weight, np.array([40, 40])), 1, np.ones(2, dtype=bool), 0
        ).X
    assert abs(auc(positive, columns[:, 1]) - 0.5) < 0.1


@pytest.mark.parametrize("logs", [False, True])
def test_which_pairs_have_a_number_does_not_depend_on_weights(
    logs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights by class a pair that is chosen by the weights of its rows tells their labels."""
    monkeypatch.setattr(crosses_module, "MIN_GAIN", -math.inf)
    monkeypatch.setattr(crosses_module, "MAX_PAIRS", 100)
    rng = np.random.default_rng(0)
    words = rng.integers(0, 20, (1200, 2)).astype(float)
    positive = rng.random(1200) < 0.3
    equal, by_class = (
        find_crosses(
            TrainingData(words, positive, np.where(positive, weight, 1.0), np.array([20, 20])),
            1,
            np.ones(2, dtype=bool),
            0,
            logs=logs,
        )
        for weight in (1.0, 10.0)
    )
    assert equal.crosses.n_pairs.tolist() == [100]
    assert np.array_equal(equal.crosses.keys, by_class.crosses.keys)
    assert np.array_equal(equal.X[:, 1] > 0, by_class.X[:, 1] > 0)
    assert np.array_equal(equal.X[:, 1], by_class.X[:, 1]) == logs
    assert np.array_equal(equal.crosses.mass, by_class.crosses.mass) == logs


@boosters
def test_a_cross_ranks_new_rows_better(make: Any) -> None:
    table, y = draw_towns()
    new, is_positive = draw_towns(seed=1)
    options = {"n_rounds": 15, "min_samples_leaf": 20}
    scores = {
        k: auc(is_positive, make(crosses=k, **options).fit(table, y).decision_function(new))
        for k in (0, 3)
    }
    assert scores[3] > scores[0] + 0.02


@boosters
def test_a_ranker_tells_of_its_crosses_and_its_parts_add_up(make: Any) -> None:
    table, y = draw_towns()
    ranker = make().fit(table, y, 1.0 + np.arange(len(y)) % 3)
    structure = ranker.structure()
    assert [cross["name"] for cross in structure["crosses"]] == ["town × month"]
    rules = [leaf["rule"] for tree in structure["trees"] for leaf in tree["leaves"]]
    assert any("town × month > " in rule for rule in rules)
    assert structure["losses_of"] == LOSSES_ENCODED
    new = pd.concat([table[:40], pd.DataFrame([{"x": 0.0, "town": "new", "month": "m1"}])])
    scores = ranker.decision_function(new)
    for parts in (ranker.contributions(new), ranker.shapley_values(new)):
        assert parts.shape == (41, 4)
        np.testing.assert_allclose(ranker.offset_ + parts.sum(axis=1), scores, atol=1e-9)
        assert (parts[:, [1, 2]] != 0).any(axis=0).all()  # both have a part of their cross
    np.testing.assert_allclose(list(ranker.staged_decision_function(new))[-1], scores)
    one_by_one = [ranker.decision_function(new[i : i + 1])[0] for i in range(len(new))]
    assert np.array_equal(one_by_one, scores)
    many = ranker.decision_function(pd.concat([new] * 300))
    assert np.array_equal(many[: len(new)], scores)
    assert np.array_equal(load(save(ranker)).decision_function(new), scores)


def test_rows_of_weight_zero_change_nothing_and_folds_of_one_class_are_fine() -> None:
    table, y = draw_towns(400)
    few = np.flatnonzero(y)[:3]  # so that most folds have no positive
    y = np.zeros(400, dtype=bool)
    y[few] = True
    weight = np.where(np.arange(400) % 4 == 3, 0.0, 2.0)
    weight[few] = 2.0
    whole = LogitBoost(**FEW).fit(table, y, weight)
    kept = weight > 0
    part = LogitBoost(**FEW).fit(table[kept], y[kept], weight[kept])
    assert np.array_equal(whole.decision_function(table), part.decision_function(table))


def test_a_constrained_feature_is_in_no_cross() -> None:
    rng = np.random.default_rng(0)
    table, y = draw_towns()
    table["x"] = rng.normal(size=len(y)) + y
    ranker = LogitBoost(**FEW, monotone={"x": "increasing"}).fit(table, y)
    assert [cross["features"] for cross in ranker.structure()["crosses"]] == [["town", "month"]]
    assert check_monotone(ranker).verdict == "proven"


def test_a_constraint_that_a_cross_may_break_is_not_proven() -> None:
    """A ranker fitted without constraints may be asked for any: its crosses change with the hour."""
    rng = np.random.default_rng(0)
    town, hour = rng.integers(0, 9, 1000), rng.integers(0, 8, 1000)
    y = rng.random(1000) < np.where((town * 3 + hour * 5) % 4 < 2, 0.9, 0.1)
    table = pd.DataFrame({"town": town.astype(str), "hour": hour.astype(float)})
    options = FEW | {"max_leaves": 2}  # a tree reads one column, and not the hour
    ranker = LogitBoost(**options).fit(table, y)
    for direction in ("increasing", "decreasing"):
        found = check_monotone(ranker, {"hour": direction})
        assert found.verdict == "violated"
        rows = pd.DataFrame(found.violation["rows"], columns=["town", "hour"])
        rows["town"] = [ranker.categories_[0][int(code)] for code in rows["town"]]
        scores = ranker.decision_function(rows)
        assert rows["hour"].is_monotonic_increasing
        assert (scores[0] > scores[1]) == (direction == "increasing")
    # Where other rows than those tried might fall, nothing is proven; where no tree reads the cross, all is.
    fitted = ranker.ensemble_
    assert isinstance(fitted, CrossedTreeSum)
    flat = replace(fitted.trees, leaf_value=fitted.trees.leaf_value * 0.0)
    ranker.ensemble_ = replace(fitted, trees=flat)
    assert check_monotone(ranker, {"hour": "increasing"}).verdict == "not_proven"
    table["x"] = y + rng.random(1000) / 2.0
    unread = LogitBoost(**options | {"n_rounds": 1}).fit(table, y)
    assert unread.structure()["crosses"]
    assert check_monotone(unread, {"hour": "increasing"}).verdict == "proven"


def test_lists_are_never_parted_and_grades_have_no_crosses() -> None:
    """The fraction of positives of a row is found without the rows of its query."""
    table, y = draw_towns(300)
    query = np.arange(300) // 30
    graded = BOOSTERS["lists"]().fit(table, y + query % 2, query=query, graded=True)
    assert graded.structure()["crosses"] == []
    ranker = BOOSTERS["lists"]().fit(table, y, query=query)
    assert ranker.structure()["crosses"]
    scores = ranker.decision_function(table)
    assert np.array_equal(load(save(ranker)).decision_function(table), scores)
    for learnt in (ranker, RankBoost(weak_ranker="tree", **FEW).fit(table, y, query=query)):
        grouped = clone(learnt).fit(table, y, query=query, groups=query)
        assert np.array_equal(grouped.decision_function(table), learnt.decision_function(table))


def test_a_clock_ends_the_search_for_crosses_and_no_checkpoint_mixes_two() -> None:
    table, y = draw_towns(600)
    table["again"] = np.where(np.arange(600) % 9 < 4, table["town"], table["month"])
    whole = LogitBoost(**FEW)
    steps: list[int] = []
    taken: list[bytes | None] = []
    with Checkpoints() as checkpoints:

        def watch(step: int, of: int, info: Any) -> None:
            steps.append(step)
            if step == 3:
                taken.append(checkpoints.take())

        whole.fit(table, y, callback=watch)
    n_whole = len(whole.structure()["crosses"])
    assert (n_whole > 1, steps[-1]) == (True, 8)
    n_calls = steps.count(0) - n_whole + 1  # the first cross is learnt

    def stop(step: int, of: int, info: Any) -> None:
        steps.append(step)
        if len(steps) >= n_calls:
            raise StopFit

    for resume in (None, taken[0]):
        steps.clear()
        with (
            Checkpoints(resume) as checkpoints,
            warns(UserWarning, 1, n_whole),
        ):
            cut = LogitBoost(**FEW).fit(table, y, callback=stop)
        assert cut.structure()["crosses"] == whole.structure()["crosses"][:1]
        assert (len(cut.rounds_), checkpoints.resumed) == (1, False)
        assert np.isfinite(load(save(cut)).decision_function(table)).all()
    with Checkpoints(taken[0]) as checkpoints:
        again = LogitBoost(**FEW).fit(table, y)
    assert checkpoints.resumed
    assert np.array_equal(again.decision_function(table), whole.decision_function(table))


def test_features_that_tell_the_same_twice_are_no_cross() -> None:
    """A code and coarser codes of it, whose log odds count it twice, keep no place from two that act together."""
    rng = np.random.default_rng(3)
    z, p, q = rng.integers(0, 40, 4000), rng.integers(0, 8, 4000), rng.integers(0, 8, 4000)
    together = np.where((p * 3 + q * 5) % 4 < 2, 0.8, -0.8)
    log_odds_of_rows = 1.5 * rng.normal(size=40)[z] - 1.0 + together
    positive = rng.random(4000) < 1.0 / (1.0 + np.exp(-log_odds_of_rows))
    X = np.column_stack([z, z // 2, z // 4, p, q]).astype(float)
    sizes, free = np.array([40, 20, 10, 8, 8]), np.ones(5, dtype=bool)
    found = find_crosses(TrainingData(X, positive, np.ones(4000), sizes), 5, free, 0).crosses
    assert found.feature[0].tolist() == [3, 4]
    assert len(found.feature) <= 2


def test_one_table_has_one_ranker_whatever_the_order_of_its_columns_name_them() -> None:
    """Codes beside their names divide rows alike: one cross is enough."""
    table, y = draw_towns()
    table["town again"] = table["town"].str.upper()
    ranker = LogitBoost(**FEW).fit(table, y)
    named = [cross["features"] for cross in ranker.structure()["crosses"]]
    assert named.count(["town", "month"]) + named.count(["month", "town again"]) == 1


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("cross_feature", lambda a: a[:, ::-1], "cross_feature"),
        ("cross_feature", lambda a: a * 0 + [0, 1], "cross_n_edges"),
        ("cross_n_edges", lambda a: a + 60, "cross_n_edges"),
        ("cross_edges", lambda a: np.append(a, 0.0), "cross_edges"),
        ("cross_feature", lambda a: a + 9, "cross_feature"),
        ("cross_feature", lambda a: np.repeat(a, 2, axis=0), "cross_n_pairs"),
        ("cross_n_pairs", lambda a: a - 1, "cross_keys"),
        ("cross_n_pairs", lambda a: a * -1, "cross_n_pairs"),
        ("cross_n_pairs", lambda a: a + 20_001, "cross_n_pairs"),
        ("cross_keys", lambda a: a[::-1], "cross_keys"),
        ("cross_keys", lambda a: np.append(a[:-1], 2**32 - 1), "cross_keys"),
        ("cross_keys", lambda a: a.astype(np.int64), "uint32"),
        ("cross_share", lambda a: a * np.nan, "cross_share"),
        ("cross_share", lambda a: a + 1, "cross_share"),
        ("cross_mass", lambda a: a + np.inf, "cross_mass"),
        ("cross_base", lambda a: a * np.nan, "cross_base"),
        ("cross_effect", lambda a: a[1:], "cross_effect"),
        ("cross_effect", lambda a: a - np.inf, "cross_effect"),
        ("split_feature", lambda a: a + 6, "split_feature"),
    ],
)
def test_an_artifact_with_other_crosses_is_refused(name: str, change: Any, named: str) -> None:
    header, arrays = take_apart(make_artifact())
    changed = np.ascontiguousarray(change(arrays[name])).astype(
        None if named == "uint32" else arrays[name].dtype
    )
    with raises(ArtifactError, named):
        load(put_together(header, arrays | {name: changed}))


def test_an_artifact_has_no_more_crosses_than_a_ranker(sentences: Sentences) -> None:
    """Pairs of features cost an artifact a few bytes each, and every row that it scores two numbers."""
    pairs = np.array(list(itertools.combinations(range(15), 2)))
    empty, none = np.empty(0), np.zeros(0, dtype=np.float32)
    for n in (MAX_CROSSES, MAX_CROSSES + 1):
        crosses = Crosses(
            np.ones(15, dtype=np.int64),
            pairs[:n],
            np.zeros(len(np.unique(pairs[:n])), dtype=np.int64),
            empty,
            np.zeros(n, dtype=np.int64),
            none.astype(np.uint32),
            none,
            none,
            np.zeros(1),
            np.zeros(2 * len(np.unique(pairs[:n]))),
        )
        refused = sentences.raises(ArtifactError)
        with refused if n > MAX_CROSSES else nullcontext():
            crosses.check()


@cache
def make_artifact() -> bytes:
    table, y = draw_towns(300)
    return save(LogitBoost(**FEW).fit(table, y))


def test_crosses_keep_the_heaviest_pairs_within_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crosses_module, "MAX_PAIRS", 10)
    table, y = draw_towns()
    ranker = LogitBoost(**FEW).fit(table, y)
    (cross,) = ranker.structure()["crosses"]
    assert cross["pairs"] == 10
    assert isinstance(ranker.ensemble_.crosses, Crosses)
