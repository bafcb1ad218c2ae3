"""Logistic regression on crosses of categorical features."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import core.coding.crosses as crosses_module
from core import Logistic, load, save
from core.artifact import ArtifactError
from core.base.monotone import check_monotone
from core.base.ranker import StopFit
from core.metrics import auc
from tests.core.artifact_bytes import put_together, take_apart
from tests.core.trees.test_tree_crosses import draw_towns
from tests.raising import mentions, raises, warns
from tests.sentences import Sentences


@cache
def make_artifact() -> bytes:
    table, y = draw_towns(600)
    return save(Logistic(crosses=3).fit(table, y))


def test_crosses_rank_new_rows_better() -> None:
    table, y = draw_towns()
    new, is_positive = draw_towns(seed=1)
    areas = [
        auc(is_positive, Logistic(crosses=k).fit(table, y).decision_function(new)) for k in (0, 3)
    ]
    assert areas[1] > areas[0] + 0.15


def test_it_tells_of_its_crosses_and_its_parts_add_up(sentences: Sentences) -> None:
    table, y = draw_towns()
    ranker = Logistic(crosses=3).fit(table, y, 1.0 + np.arange(len(y)) % 3)
    structure = ranker.structure()
    assert [cross["name"] for cross in structure["crosses"]] == ["town × month"]
    features = [term["feature"] for term in structure["terms"]]
    of_cross = sorted(feature for feature in features if "town × month" in feature)
    assert (len(of_cross), features[0]) == (2, of_cross[0])
    for feature in of_cross:
        sentences(feature)
    assert ranker.coef_.shape == (4,)
    new = pd.concat([table[:40], pd.DataFrame([{"x": 0.0, "town": "new", "month": "m1"}])])
    scores = ranker.decision_function(new)
    parts = ranker.contributions(new)
    assert np.array_equal(ranker.shapley_values(new), parts)
    np.testing.assert_allclose(ranker.offset_ + parts.sum(axis=1), scores, atol=1e-12)
    plain = Logistic().fit(table, y).contributions(new)
    assert (abs(parts[:, [1, 2]]) > abs(plain[:, [1, 2]])).mean() > 0.8  # halves of the cross
    one_by_one = [ranker.decision_function(new[i : i + 1])[0] for i in range(len(new))]
    assert np.array_equal(one_by_one, scores)
    many = ranker.decision_function(pd.concat([new] * 300))
    assert np.array_equal(many[: len(new)], scores)
    again = load(save(ranker))
    assert np.array_equal(again.decision_function(new), scores)
    assert again.structure() == structure


@pytest.mark.parametrize("weight_of_positives", [1.0, 10.0])
def test_a_row_does_not_tell_its_own_label(
    weight_of_positives: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs that tell nothing beyond both: a cross has hardly any weight, though labels could be read from few rows."""
    monkeypatch.setattr(crosses_module, "MIN_GAIN", -np.inf)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 20, (2, 2000))
    y = rng.random(2000) < 1.0 / (1.0 + np.exp(1.0 - rng.normal(size=20)[a]))
    table = pd.DataFrame({"a": a.astype(str), "b": b.astype(str)})
    ranker = Logistic(crosses=1).fit(table, y, np.where(y, weight_of_positives, 1.0))
    terms = ranker.structure()["terms"]
    of_cross = {t["feature"]: abs(t["standardized"]) for t in terms if "is" not in t}
    assert len(of_cross) == 2
    assert all("a × b" in feature for feature in of_cross)
    assert max(of_cross.values()) < 0.3


@pytest.mark.parametrize("elsewhere", [0.0, 0.1])
def test_a_feature_that_settles_another_is_not_crossed_with_it(elsewhere: float) -> None:
    """The cross of a town and its region divides rows as the town does, and tells the labels of a fold."""
    rng = np.random.default_rng(0)
    town = rng.integers(0, 600, 6000)
    y = rng.random(6000) < 1.0 / (1.0 + np.exp(1.5 - 2.0 * rng.normal(size=600)[town]))
    region = np.where(rng.random(6000) < elsewhere, rng.integers(0, 30, 6000), town // 20)
    table = pd.DataFrame({"town": town.astype(str), "region": region.astype(str)})
    crossed = Logistic(crosses=3, C=100.0).fit(table, y)
    assert crossed.structure()["crosses"] == []


def test_nothing_to_cross_is_as_without_crosses() -> None:
    table, y = draw_towns(300)
    flat = table.assign(town="one", month=None, shop=["a", "b"] * 150)
    thin = sparse.csr_array(np.where(table[["x"]] > 0.5, table[["x"]], 0.0))
    for rows in (flat.astype({"month": "string"}), table[["x"]], table[["x", "shop"]], thin):
        crossed, plain = Logistic(crosses=5).fit(rows, y), Logistic().fit(rows, y)
        assert crossed.structure()["crosses"] == []
        assert np.array_equal(crossed.decision_function(rows), plain.decision_function(rows))
        assert np.array_equal(crossed.coef_, plain.coef_)
        assert np.array_equal(
            load(save(crossed)).decision_function(rows),
            plain.score_rows(rows if rows is thin else plain.checked_rows(rows)),
        )


def test_a_path_of_costs_has_the_rankers_of_single_fits() -> None:
    table, y = draw_towns(400)
    path = Logistic(crosses=2).fit_path(table, y, values=[0.01, 1.0]).path_rankers()
    for ranker, C in zip(path, (0.01, 1.0), strict=True):
        alone = Logistic(crosses=2, C=C).fit(table, y)
        assert ranker.structure()["crosses"] == alone.structure()["crosses"] != []
        np.testing.assert_allclose(
            ranker.decision_function(table), alone.decision_function(table), atol=1e-4
        )


def draw_hours(n: int = 1000) -> tuple[pd.DataFrame, np.ndarray]:
    """Towns and hours that tell nothing alone, and all of it together."""
    rng = np.random.default_rng(0)
    town, hour = rng.integers(0, 9, n), rng.integers(0, 8, n)
    y = rng.random(n) < np.where((town * 3 + hour * 5) % 4 < 2, 0.9, 0.1)
    return pd.DataFrame({"town": town.astype(str), "hour": hour.astype(float)}), y


def test_a_constraint_is_kept_out_of_crosses_and_never_proven_of_one() -> None:
    table, y = draw_hours()
    ranker = Logistic(crosses=3).fit(table, y)
    assert ranker.structure()["crosses"]
    for direction in ("increasing", "decreasing"):
        found = check_monotone(ranker, {"hour": direction})
        assert found.verdict == "violated"
        rows = pd.DataFrame(found.violation["rows"], columns=["town", "hour"])
        rows["town"] = [ranker.categories_[0][int(code)] for code in rows["town"]]
        scores = ranker.decision_function(rows)
        assert (scores[0] > scores[1]) == (direction == "increasing")
    constrained = Logistic(crosses=3, monotone={"hour": "increasing"}).fit(table, y)
    assert constrained.structure()["crosses"] == []
    assert check_monotone(constrained).verdict == "proven"


def test_a_clock_ends_the_search_for_crosses(sentences: Sentences) -> None:
    table, y = draw_towns(600)
    table["again"] = np.where(np.arange(600) % 9 < 4, table["town"], table["month"])
    whole = Logistic(crosses=5).fit(table, y)
    seen: list[int] = []
    Logistic(crosses=5).fit(table, y, callback=lambda step, of, info: seen.append(step))
    n_before = seen.count(0)
    n_whole = len(whole.structure()["crosses"])
    assert n_whole > 1

    for n_calls, kept in (
        (1, 0),
        (n_before - n_whole, 0),
        (n_before - n_whole + 1, 1),
        (n_before, n_whole),
    ):
        calls = 0

        def stop(step: int, of: int, info: Any, last: int = n_calls) -> None:
            nonlocal calls
            calls += 1
            if calls >= last:
                raise StopFit

        with warns(UserWarning) as warned:
            ranker = Logistic(crosses=5).fit(table, y, callback=stop)
        told = [str(each.message) for each in warned]
        sentences(told[-1])
        assert [mentions(each, kept) for each in told[:-1]] == [True] * (kept < n_whole)
        crosses = ranker.structure()["crosses"]
        assert crosses == whole.structure()["crosses"][:kept]
        rows = load(save(ranker)).decision_function(table)
        assert np.array_equal(rows, ranker.decision_function(table))


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("cross_feature", lambda a: a[:, ::-1], "cross_feature"),
        ("cross_n_pairs", lambda a: a - 1, "cross_keys"),
        ("cross_keys", lambda a: a[::-1], "cross_keys"),
        ("cross_share", lambda a: a + 1, "cross_share"),
        ("cross_effect", lambda a: a[1:], "cross_effect"),
        ("unit", lambda a: a[:4], "unit"),
        ("unit", lambda a: a - np.inf, "unit"),
        ("w", lambda a: a[1:], "w"),
        ("means", lambda a: np.append(a, 0.0), "means"),
    ],
)
def test_an_artifact_with_other_crosses_is_refused(name: str, change: Any, named: str) -> None:
    header, arrays = take_apart(make_artifact())
    changed = np.ascontiguousarray(change(arrays[name])).astype(arrays[name].dtype)
    with raises(ArtifactError, named):
        load(put_together(header, arrays | {name: changed}))
