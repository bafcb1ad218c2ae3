"""RankBoost's family on pairs within queries and on grades: against the list of these pairs, and against one table."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import (
    CoordinateRankBoost,
    LambdaMART,
    RankAverage,
    RankBoost,
    SmoothMarginRank,
    load,
    save,
)
from core.base.checkpoint import Checkpoints
from core.base.ranker import StopFit
from core.base.training import TrainingData
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.metrics import ListAuc, ListNdcg, list_values, measure_lists
from core.registry import ALGORITHMS
from tests.core.threads import on_one_thread_and_on_all
from tests.raising import raises, warns
from tests.sentences import Sentences

STUMPS = [RankBoost, CoordinateRankBoost, SmoothMarginRank]


class Table:
    """Rows of queries in any order, with ties, missing values, weights (0 among them) and two classes or grades."""

    def __init__(self, seed: int, top: int, n: int = 60, n_queries: int = 8) -> None:
        rng = np.random.default_rng(seed)
        self.query = rng.integers(0, n_queries, n)
        self.y = rng.integers(0, top + 1, n)
        self.X = np.round(rng.normal(size=(n, 3)) + np.array([1.0, 0.3, 0.0]) * self.y[:, None], 1)
        self.X[rng.random((n, 3)) < 0.2] = np.nan
        self.weight: np.ndarray = rng.choice([0.0, 0.5, 1.0, 2.0], n)
        self.graded = top > 1

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        same = self.query[:, None] == self.query
        better, worse = np.nonzero(same & (self.y[:, None] > self.y))
        return np.stack([better, worse], axis=1), self.weight[better] * self.weight[worse]

    def fit(self, ranker: Any, X: Any = None) -> Any:
        return ranker.fit(
            self.X if X is None else X,
            self.y,
            self.weight,
            query=self.query,
            graded=self.graded,
        )


def without_constant(ranker: Any, X: Any) -> np.ndarray:
    return ranker.decision_function(X) - ranker.intercept_


@pytest.mark.parametrize("top", [1, 3])
@pytest.mark.parametrize("algorithm", STUMPS)
def test_stumps_are_those_of_the_listed_pairs(algorithm: type[Any], top: int) -> None:
    for seed in range(4):
        table = Table(seed, top)
        ours = table.fit(algorithm(n_rounds=20))
        theirs = algorithm(n_rounds=20).fit_pairs(table.X, *table.pairs())
        np.testing.assert_array_equal(
            ours.rounds_[["feature", "threshold", "sign"]],
            theirs.rounds_[["feature", "threshold", "sign"]],
        )
        np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=1e-9)
        np.testing.assert_allclose(ours.rounds_["d_plus"], theirs.rounds_["d_plus"], atol=1e-12)
        np.testing.assert_allclose(ours.rounds_["coverage"], theirs.rounds_["coverage"])
        np.testing.assert_allclose(
            without_constant(ours, table.X), without_constant(theirs, table.X), atol=1e-9
        )
        if algorithm is SmoothMarginRank:
            np.testing.assert_allclose(ours.margin_, theirs.margin_, atol=1e-12)
            np.testing.assert_allclose(ours.smooth_margin_, theirs.smooth_margin_, rtol=1e-9)


@pytest.mark.parametrize("algorithm", STUMPS)
def test_sets_of_categories_are_those_of_the_listed_pairs(algorithm: type[Any]) -> None:
    table = Table(0, 3, n=200, n_queries=20)
    rng = np.random.default_rng(1)
    town = np.array(list("abcdefg"), dtype=object)[rng.integers(0, 7, 200) // (1 + table.y % 2)]
    X = pd.DataFrame({"x": table.X[:, 0], "town": town})
    ours = table.fit(algorithm(n_rounds=10), X)
    theirs = algorithm(n_rounds=10).fit_pairs(X, *table.pairs())
    assert ours.structure()["rules"][0]["rule"] == theirs.structure()["rules"][0]["rule"]
    np.testing.assert_allclose(without_constant(ours, X), without_constant(theirs, X), atol=1e-9)


@pytest.mark.parametrize("top", [1, 3])
def test_trees_are_those_of_the_listed_pairs(top: int) -> None:
    table = Table(2, top, n=120)
    table.weight = np.ones(120)
    tree = RankBoost(weak_ranker="tree", n_rounds=10, min_samples_leaf=3)
    ours, theirs = table.fit(tree), RankBoost(**tree.get_params())
    theirs.fit_pairs(table.X, *table.pairs())
    np.testing.assert_allclose(ours.loss_, theirs.loss_, rtol=1e-9)
    assert (np.diff(ours.loss_) < 0).all()
    np.testing.assert_allclose(
        without_constant(ours, table.X), without_constant(theirs, table.X), atol=1e-9
    )


@pytest.mark.parametrize(
    "ranker", [RankBoost(n_rounds=20), RankBoost(weak_ranker="tree", n_rounds=5)]
)
@pytest.mark.parametrize("top", [1, 3])
def test_a_row_of_weight_k_counts_as_k_rows(ranker: Any, top: int) -> None:
    table = Table(3, top, n=150)
    weight = np.random.default_rng(0).integers(0, 4, 150)
    rows = np.repeat(np.arange(150), weight)
    options = {"graded": table.graded}
    weighted = ranker.fit(table.X, table.y, weight, query=table.query, **options)
    scores = weighted.decision_function(table.X)
    repeated = ranker.fit(table.X[rows], table.y[rows], query=table.query[rows], **options)
    np.testing.assert_allclose(scores, repeated.decision_function(table.X), atol=1e-9)


@pytest.mark.parametrize("weak_ranker", ["stump", "tree"])
def test_one_query_of_two_classes_is_a_table_without_queries(
    weak_ranker: str, sentences: Sentences
) -> None:
    table = Table(4, 1, n=300)
    ranker = RankBoost(weak_ranker=weak_ranker, n_rounds=20)
    plain = save(ranker.fit(table.X, table.y, table.weight))
    of_query = ranker.fit(table.X, table.y, table.weight, query=["a"] * 300)
    assert save(of_query) == plain
    with sentences.raises(InvalidData):
        RankBoost(early_stopping_rounds=5).fit(table.X, table.y, query=np.zeros(300))
    large = Table(5, 1, n=800)
    with sentences.warns(UserWarning):
        chosen = RankBoost(weak_ranker="tree").fit(large.X, large.y, query=np.zeros(800))
    assert len(chosen.rounds_) == 100


def test_queries_of_one_class_count_as_absent_and_names_and_order_say_nothing() -> None:
    table = Table(6, 1, n=200)
    ranker = RankBoost(n_rounds=30)
    scores = table.fit(ranker).decision_function(table.X)
    rng = np.random.default_rng(0)
    lone = rng.normal(size=(50, 3)) * 100
    order = rng.permutation(250)
    X = np.vstack([table.X, lone])[order]
    y = np.append(table.y, np.ones(50, dtype=np.int64))[order]
    query = np.append([f"q{9 - q}" for q in table.query], [f"z{i}" for i in range(50)])[order]
    other = ranker.fit(X, y, np.append(table.weight, np.ones(50))[order], query=query)
    np.testing.assert_allclose(other.decision_function(table.X), scores, atol=1e-9)


def test_levels_of_queries_do_not_mislead() -> None:
    """A column that is high in queries with many positives orders nothing within them."""
    rng = np.random.default_rng(7)
    query = np.repeat(np.arange(100), 20)
    base = rng.normal(size=100)[query]
    real = rng.normal(size=2000)
    y = (2 * base + real + rng.normal(size=2000) > 0).astype(int)
    X = np.column_stack([base, real])
    ranker = RankBoost(n_rounds=40).fit(X, y, query=query)
    assert set(ranker.rounds_["feature"]) == {1}
    pooled = RankBoost(n_rounds=40).fit(X, y)
    ours, theirs = (
        measure_lists(y, r.decision_function(X), query, [ListAuc()])[0].interval.value
        for r in (ranker, pooled)
    )
    assert ours > theirs


@pytest.mark.parametrize("top", [1, 4])
def test_scores_far_beyond_the_range_of_exp_do_not_underflow(top: int) -> None:
    y = np.tile(np.arange(top + 1), 30)
    X = np.column_stack([y + 0.0, np.random.default_rng(0).normal(size=len(y))])
    ranker = RankBoost(n_rounds=2000, smoothing=1e-6)
    ranker.fit(X, y, query=np.arange(len(y)) // (top + 1), graded=top > 1)
    assert np.isfinite(ranker.log_f_tilde_).all()
    assert (np.diff(ranker.log_f_tilde_) < 0).all()
    assert np.isfinite(ranker.decision_function(X)).all()


@pytest.mark.parametrize("weak_ranker", ["stump", "tree"])
@pytest.mark.parametrize("top", [1, 4])
def test_one_thread_or_two_same_bits(weak_ranker: str, top: int) -> None:
    table = Table(8, top, n=40_000, n_queries=3_000)
    ranker = RankBoost(weak_ranker=weak_ranker, n_rounds=4)
    one, two = on_one_thread_and_on_all(lambda: save(table.fit(ranker)))
    assert one == two


@pytest.mark.parametrize("top", [1, 3])
@pytest.mark.parametrize(
    "ranker",
    [RankBoost(), RankBoost(weak_ranker="tree"), LambdaMART()],
    ids=["stump", "tree", "lambda"],
)
def test_a_stopped_fit_goes_on_to_the_same_bits(ranker: Any, top: int) -> None:
    table = Table(9, top, n=300, n_queries=30)
    ranker.set_params(n_rounds=12, early_stopping_rounds=10, random_state=1)
    whole = save(table.fit(ranker))
    taken: list[bytes] = []

    def stop(step: int, of: int, info: object) -> None:
        if step == 5:
            taken.append(checkpoints.take())
            raise StopFit

    options = {"query": table.query, "graded": table.graded}
    with Checkpoints() as checkpoints, warns(UserWarning, 5, 12):
        ranker.fit(table.X, table.y, table.weight, callback=stop, **options)
    with Checkpoints(taken[0]):
        assert save(table.fit(ranker)) == whole
    with Checkpoints(taken[0]):  # other queries are another fit
        other = ranker.fit(
            table.X, table.y, table.weight, query=table.query % 29, graded=table.graded
        )
    assert save(other) != whole


def test_a_validation_part_never_parts_a_query_nor_a_group() -> None:
    rng = np.random.default_rng(0)
    for seed in range(30):
        query = rng.integers(0, 12, 80)
        group = query // 3 if seed % 2 else np.arange(80)
        X, grade = rng.normal(size=(80, 2)), rng.integers(0, 3, 80)
        data = TrainingData(
            X,
            grade > 0,
            np.ones(80),
            np.zeros(2, dtype=np.int64),
            None if seed % 2 == 0 else group.astype(np.uint64),
            query,
            grade,
        ).within_queries()
        parts = data.split_off(0.3, seed)
        values = [np.isin(data.X[:, 0], part.X[:, 0]) for part in parts]
        assert not (values[0] & values[1]).any()
        of_part = [set(data.group[mask]) for mask in values]
        assert not of_part[0] & of_part[1]
        assert of_part[0] | of_part[1] == set(data.group)


def test_early_stopping_judges_by_the_mean_of_the_queries() -> None:
    table = Table(10, 3, n=900, n_queries=60)
    ranker = RankBoost(n_rounds=60, early_stopping_rounds=15)
    seen: list[dict[str, float]] = []
    ranker.fit(
        table.X,
        table.y,
        query=table.query,
        graded=True,
        callback=lambda step, of, info: seen.append(dict(info)),
    )
    assert ranker.stop_reason_ in ("validation", "n_rounds")
    assert [round_["validation_auc"] for round_ in seen] == ranker.validation_auc_.tolist()
    assert len(ranker.rounds_) == int(np.argmax(ranker.validation_auc_)) + 1
    assert 0.5 < ranker.validation_auc_.max() < 1.0
    progress: list[float] = []
    RankBoost(n_rounds=10).fit(
        table.X,
        table.y,
        query=table.query,
        graded=True,
        callback=lambda step, of, info: progress.append(info["training_auc"]),
    )
    assert progress[-1] > progress[0]


def test_trees_choose_their_rounds_by_whole_queries() -> None:
    table = Table(11, 1, n=1_500, n_queries=100)
    ranker = RankBoost(weak_ranker="tree", max_leaves=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.weight = np.ones(1_500)
        table.fit(ranker)
    assert 0 < len(ranker.rounds_) < 2000
    assert np.nanmax(ranker.validation_auc_) > 0.6


def test_grades_are_kept_and_have_no_zero(sentences: Sentences) -> None:
    table = Table(12, 3, n=200)
    ranker = table.fit(RankBoost(n_rounds=10))
    assert ranker.grades_.tolist() == [0, 1, 2, 3]
    assert not hasattr(ranker, "classes_")
    with sentences.raises(InvalidData):
        ranker.predict(table.X)
    again = load(save(ranker))
    assert again.grades_.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(
        again.decision_function(table.X), ranker.decision_function(table.X)
    )
    arrays, meta = ranker.get_state()
    for grades in ([3, 1], [0], [-1, 2], [0, 99], "ab", [[0, 1]], [0.5, 1], None, [0, 10**30]):
        with pytest.raises(ArtifactError):
            RankBoost.from_state(ranker.get_parameters(), arrays, meta | {"grades": grades})
    with pytest.raises(ArtifactError):
        RankBoost.from_state(
            ranker.get_parameters(),
            arrays,
            meta | {"classes": {"dtype": "int64", "values": [0, 1]}},
        )
    ranker.fit(table.X, table.y > 1)
    assert not hasattr(ranker, "grades_")
    assert set(ranker.predict(table.X)) <= {False, True}
    binary = Table(13, 1)
    names = np.where(binary.y == 1, "yes", "no")
    of_names = RankBoost(n_rounds=5).fit(binary.X, names, query=binary.query)
    assert of_names.classes_.tolist() == ["no", "yes"]
    assert set(load(save(of_names)).predict(binary.X)) <= {"no", "yes"}


def test_grades_without_queries_are_one_list() -> None:
    table = Table(14, 3, n=100)
    ranker = RankBoost(n_rounds=10)
    one = ranker.fit(table.X, table.y, graded=True).decision_function(table.X)
    two = ranker.fit(table.X, table.y, graded=True, query=np.zeros(100)).decision_function(table.X)
    np.testing.assert_array_equal(one, two)
    stopped = RankBoost(n_rounds=30, early_stopping_rounds=5).fit(table.X, table.y, graded=True)
    assert len(stopped.validation_auc_)
    floats = ranker.fit(table.X, table.y.astype(float), graded=True).decision_function(table.X)
    np.testing.assert_array_equal(one, floats)


def test_two_classes_with_queries_cut_where_errors_of_all_rows_cost_least() -> None:
    table = Table(15, 1, n=400, n_queries=40)
    table.weight = np.ones(400)
    ranker = table.fit(RankBoost(n_rounds=15))
    counted = np.isin(
        table.query, [q for q in range(40) if len(set(table.y[table.query == q])) == 2]
    )
    scores = ranker.decision_function(table.X)[counted]
    positive = table.y[counted] == 1
    assert np.exp(-scores[positive]).sum() == pytest.approx(np.exp(scores[~positive]).sum())


def test_only_rankboosts_family_and_lambdamart_take_queries_and_grades() -> None:
    table = Table(16, 1)
    for name in ALGORITHMS:
        ranker = ALGORITHMS[name]()
        if ranker.takes_query:
            assert ranker.takes_grades
            ranker.check_lists(query=True, graded=True)
            continue
        y = np.stack([table.y, 1 - table.y], axis=1) if ranker.target == "multilabel" else table.y
        with raises(InvalidParameter, "query"):
            ranker.fit(table.X, y, query=table.query)
        with raises(InvalidParameter, "grades"):
            ranker.fit(table.X, y, graded=True)
    with raises(InvalidParameter, "query"):
        RankAverage(members=[RankBoost()]).fit(table.X, table.y, query=table.query)
    for options, name in (
        ({"weak_ranker": "column"}, "weak_ranker"),
        ({"weak_ranker": "tree", "push": 2.0}, "push"),
    ):
        ranker = RankBoost(**options)
        ranker.check_lists(query=False, graded=False)
        for asked in ({"query": table.query}, {"graded": True}):
            with raises(InvalidParameter, name):
                ranker.fit(table.X, table.y, **asked)


def test_bad_input_is_named(sentences: Sentences) -> None:
    table = Table(17, 3)
    ranker = RankBoost(n_rounds=2)
    for query in (
        table.query[:-1],
        np.where(table.query == 0, np.nan, table.query),
        [None, *table.query[1:]],
        table.X,
        np.arange(60),
    ):
        with raises(InvalidData, "query"):
            ranker.fit(table.X, table.y, query=query, graded=True)
    for y, got in (
        (table.y + 0.5, table.y[0] + 0.5),
        (table.y + 40, table.y[0] + 40),
        (table.y - 1, -1),
        (np.zeros(60), 0),
        (table.y[:-1], 59),
        (np.where(table.y == 1, np.nan, table.y), "NaN"),
        (None, None),
    ):
        with raises(InvalidData, "y", got):
            ranker.fit(table.X, y, query=table.query, graded=True)
    with raises(InvalidData, "multiclass"):
        ranker.fit(table.X, table.y, query=table.query)
    for graded in (1, "yes", None):
        with raises(InvalidParameter, "graded", repr(graded)):
            ranker.fit(table.X, table.y, query=table.query, graded=graded)
    with sentences.raises(InvalidData):
        ranker.fit(table.X, table.y, (table.y == 2).astype(float), query=table.query, graded=True)
    with sentences.raises(InvalidData):
        ranker.fit(table.X, table.y > 1, query=table.y)
    with sentences.raises(InvalidData):
        RankBoost(early_stopping_rounds=3).fit(
            table.X, table.y, query=table.query, graded=True, groups=np.zeros(60)
        )


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_weights_at_both_ends_of_their_range_are_fitted(size: float) -> None:
    table = Table(18, 3)
    table.weight = np.where(table.query == 0, size, 1.0)
    for ranker in (RankBoost(n_rounds=3), RankBoost(weak_ranker="tree", n_rounds=3)):
        assert np.isfinite(table.fit(ranker).decision_function(table.X)).all()


def test_memory_is_linear_in_the_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 2)), rng.integers(0, 2, 20_000)
    RankBoost(n_rounds=1).fit(X[:100], y[:100], query=np.arange(100) % 2)
    tracemalloc.start()
    RankBoost(n_rounds=2).fit(X, y, query=np.arange(20_000) % 2)  # 50 million pairs
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40_000_000


# --- LambdaMART -----------------------------------------------------------------------------------


def lambdas(grade: Any, scores: Any, truncation: int, normalize: bool) -> tuple[Any, Any, float]:
    """Gradient and Hessian of each row of one list by definition, and 1 - NDCG.

    Rows of one score and one grade are put in every place that they share, by their means.
    """
    n = len(grade)
    order = sorted(range(n), key=lambda i: (-scores[i], grade[i]))
    own = np.array([1.0 / np.log2(r + 2) if r < truncation else 0.0 for r in range(n)])
    discount = np.empty(n)
    for i in range(n):
        places = [
            r for r in range(n) if (scores[order[r]], grade[order[r]]) == (scores[i], grade[i])
        ]
        discount[i] = np.mean(own[places])
    gain = 2.0**grade - 1.0
    best = (np.sort(gain)[::-1] * own).sum()
    gradient, hessian, total = np.zeros(n), np.zeros(n), 0.0
    for i in range(n):
        for k in range(n):
            if grade[i] > grade[k]:
                swap = (gain[i] - gain[k]) * abs(discount[i] - discount[k]) / best
                if normalize and scores.min() < scores.max():
                    swap /= 0.01 + abs(scores[i] - scores[k])
                p = 1.0 / (1.0 + np.exp(scores[i] - scores[k]))
                gradient[i] += swap * p
                gradient[k] -= swap * p
                hessian[i] += swap * p * (1 - p)
                hessian[k] += swap * p * (1 - p)
                total += 2 * swap * p
    if normalize and total > 0:
        gradient, hessian = (each * np.log2(1 + total) / total for each in (gradient, hessian))
    return gradient, hessian, 1.0 - (gain * discount).sum() / best


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("truncation", [1, 4, 100])
def test_the_first_two_trees_step_by_the_lambdas(truncation: int, normalize: bool) -> None:
    """With one leaf for each value of the only column, the steps are the sums of lambdas over those of Hessians."""
    rng = np.random.default_rng(0)
    query, x = np.repeat(np.arange(6), 12), rng.integers(0, 5, 72)
    grade = np.clip(x + rng.integers(-2, 3, 72), 0, 4)
    ranker = LambdaMART(
        n_rounds=3,
        learning_rate=0.5,
        smoothing=0.0,
        min_samples_leaf=0,
        max_leaves=32,
        truncation=truncation,
        normalize=normalize,
    )
    order = rng.permutation(72)
    ranker.fit(x[order, None].astype(float), grade[order], query=query[order], graded=True)
    scores = np.zeros(72)
    for stage, loss in zip(
        ranker.staged_decision_function(x[:, None].astype(float)), ranker.loss_, strict=True
    ):
        gradient, hessian = np.zeros(72), np.zeros(72)
        for q in range(6):
            own = query == q
            gradient[own], hessian[own], _ = lambdas(grade[own], scores[own], truncation, normalize)
        sums = [np.bincount(x, each) for each in (gradient, hessian)]
        scores = scores + 0.5 * (sums[0] / sums[1])[x]
        np.testing.assert_allclose(stage, scores, atol=1e-9)
        scores = stage
        losses = [
            lambdas(grade[query == q], scores[query == q], truncation, normalize)[2]
            for q in range(6)
        ]
        assert loss == pytest.approx(np.mean(losses))


def test_lambdamart_learns_the_top_of_each_list() -> None:
    rng = np.random.default_rng(1)
    query = np.repeat(np.arange(200), 15)
    X = rng.normal(size=(3_000, 5))
    worth = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=3_000)
    grade = np.digitize(worth, [0.0, 1.0, 2.0])
    train, test = query < 100, query >= 100
    ranker = LambdaMART(n_rounds=60, max_leaves=8)
    ranker.fit(X[train], grade[train], query=query[train], graded=True)
    found = measure_lists(
        grade[test], ranker.decision_function(X[test]), query[test], [ListNdcg(5)], graded=True
    )[0]
    chance = list_values(grade[test], X[test][:, 3], query[test], [ListNdcg(5)], graded=True).mean()
    assert found.interval.low > chance + 0.2
    values = list_values(
        grade[train], ranker.decision_function(X[train]), query[train], [ListNdcg(30)], graded=True
    )
    assert ranker.loss_[-1] == pytest.approx(1.0 - values.mean(), abs=1e-9)
    stopped = LambdaMART(n_rounds=40, early_stopping_rounds=10, max_leaves=8, truncation=5)
    seen: list[dict[str, float]] = []
    stopped.fit(
        X[train],
        grade[train],
        query=query[train],
        graded=True,
        callback=lambda step, of, info: seen.append(dict(info)),
    )
    assert [each["validation_ndcg"] for each in seen] == stopped.validation_ndcg_.tolist()
    assert not hasattr(stopped, "validation_auc_")
    assert len(stopped.rounds_) == int(np.argmax(stopped.validation_ndcg_)) + 1


def test_lambdamart_on_order_threads_queries_and_one_list() -> None:
    table = Table(20, 4, n=40_000, n_queries=3_000)
    ranker = LambdaMART(n_rounds=4)
    one, two = on_one_thread_and_on_all(lambda: save(table.fit(ranker)))
    assert one == two
    small = Table(21, 3, n=300, n_queries=20)
    scores = small.fit(LambdaMART(n_rounds=5)).decision_function(small.X)
    order = np.random.default_rng(0).permutation(300)
    other = LambdaMART(n_rounds=5).fit(
        small.X[order],
        small.y[order],
        small.weight[order],
        query=[f"q{q:02}" for q in small.query[order]],
        graded=True,
    )
    np.testing.assert_allclose(other.decision_function(small.X), scores, atol=1e-9)
    binary = Table(22, 1, n=300)
    plain = LambdaMART(n_rounds=5).fit(binary.X, binary.y, binary.weight)
    of_query = LambdaMART(n_rounds=5).fit(binary.X, binary.y, binary.weight, query=np.zeros(300))
    assert save(plain) == save(of_query)
    assert set(plain.predict(binary.X)) == {0, 1}


def test_a_query_weighs_as_much_as_its_rows() -> None:
    table = Table(23, 3, n=200, n_queries=10)
    weight = np.where(table.query < 5, 1.0, 2.0)
    ranker = LambdaMART(n_rounds=5, min_samples_leaf=0, smoothing=0.0)
    weighted = ranker.fit(table.X, table.y, weight, query=table.query, graded=True)
    scores = weighted.decision_function(table.X)
    twice = np.concatenate([np.arange(200), np.flatnonzero(table.query >= 5)])
    query = np.append(table.query, table.query[table.query >= 5] + 10)
    repeated = ranker.fit(table.X[twice], table.y[twice], query=query, graded=True)
    np.testing.assert_allclose(repeated.decision_function(table.X), scores, atol=1e-6)


def test_the_greatest_grades_and_scores_stay_finite() -> None:
    rng = np.random.default_rng(2)
    grade = rng.choice([0, 31], 200)
    X = np.column_stack([grade + 0.0, rng.normal(size=200)])
    for query in (None, np.arange(200) // 2, np.zeros(200)):
        for normalize in (True, False):
            ranker = LambdaMART(
                n_rounds=200,
                smoothing=0.0,
                min_samples_leaf=0,
                learning_rate=1.0,
                normalize=normalize,
            )
            ranker.fit(X, grade, query=query, graded=True)
            assert np.isfinite(ranker.decision_function(X)).all()
            assert np.isfinite(ranker.loss_).all()
            assert load(save(ranker)).grades_.tolist() == [0, 31]
