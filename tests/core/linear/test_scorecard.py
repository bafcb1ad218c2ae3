"""Scorecards: the bins, their order, and that a score is the sum of coefficient times WOE."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import Logistic, Scorecard, load, save
from core.base.monotone import check_monotone
from core.errors import InvalidParameter
from core.linear.woe_bins import merge_bins
from core.metrics import auc
from tests.sentences import Sentences


def loans(n: int = 1500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return loans with a U-shaped effect, a special value, gaps and a category with rare values."""
    rng = np.random.default_rng(seed)
    income, age = rng.normal(50, 15, n).round(1), rng.integers(18, 80, n).astype(float)
    purpose = rng.choice(["car", "house", "trip", "boat"], n, p=[0.5, 0.3, 0.18, 0.02])
    odds = -1.5 - 0.06 * (income - 50) + 0.002 * (age - 50) ** 2 + 1.2 * (purpose == "trip")
    y = (rng.logistic(size=n) < odds).astype(int)
    age[rng.random(n) < 0.1] = np.nan
    income[rng.random(n) < 0.1] = -9.0
    return pd.DataFrame({"income": income, "age": age, "purpose": purpose}), y


def feature(ranker: Scorecard, name: str) -> dict[str, Any]:
    """Return the description of a feature."""
    return next(each for each in ranker.structure()["features"] if each["feature"] == name)


def test_a_score_is_the_intercept_and_the_values_of_its_bins() -> None:
    table, y = loans()
    ranker = Scorecard(special_values={"income": [-9.0]}).fit(table, y)
    described = ranker.structure()
    bins = ranker.bins_of(table)
    for row, score in enumerate(ranker.decision_function(table)[:100]):
        parts = [each["bins"][bins[row, j]] for j, each in enumerate(described["features"])]
        total = described["intercept"] + sum(
            each["coefficient"] * part["woe"]
            for each, part in zip(described["features"], parts, strict=True)
        )
        assert total == pytest.approx(score, abs=1e-12)
    for j, each in enumerate(described["features"]):
        for k, one in enumerate(each["bins"]):
            rows = bins[:, j] == k
            assert (one["positives"], one["negatives"]) == (y[rows].sum(), (1 - y[rows]).sum())
    assert described["features"][0]["bins"][-2]["special"] == -9.0


def test_points_are_the_log_odds_on_the_scale_of_the_parameters() -> None:
    table, y = loans()
    plain = Scorecard().fit(table, y)
    ranker = Scorecard(pdo=40.0, base_score=500.0, base_odds=20.0).fit(table, y)
    scores = ranker.decision_function(table)
    assert (scores == plain.decision_function(table)).all()
    # 20 negatives to one positive are 500 points, twice as many 40 more (Siddiqi, chapter 6)
    odds = np.exp(-scores)
    assert ranker.points(table) == pytest.approx(500.0 + 40.0 * np.log2(odds / 20.0))
    assert plain.points(table) == pytest.approx(600.0 + 20.0 * np.log2(odds / 50.0))
    assert (load(save(ranker)).points(table) == ranker.points(table)).all()


def test_automatic_bins_obey_their_limits() -> None:
    table, y = loans()
    ranker = Scorecard(max_bins=4, min_bin_fraction=0.1).fit(table, y)
    for name in table.columns:
        bins = [each for each in feature(ranker, name)["bins"] if "missing" not in each]
        rows = [each["positives"] + each["negatives"] for each in bins]
        assert 2 <= len(bins) <= 4
        assert min(rows) >= 0.1 * sum(rows)
        assert all(each["positives"] and each["negatives"] for each in bins)
    (group,) = [
        each for each in feature(ranker, "purpose")["bins"] if "boat" in each.get("categories", ())
    ]
    assert len(group["categories"]) > 1  # too rare for a bin of its own


def test_it_ranks_better_than_a_line_where_the_effect_is_not_one() -> None:
    table, y = loans(3000)
    X, y_new = loans(3000, seed=1)
    card, line = Scorecard().fit(table, y), Logistic().fit(table, y)
    assert auc(y_new, card.decision_function(X)) > auc(y_new, line.decision_function(X)) + 0.02


def test_most_columns_without_information_have_one_bin() -> None:
    rng = np.random.default_rng(5)
    n_single = 0
    for _ in range(10):
        X, y = rng.normal(size=(800, 4)), rng.random(800) < 0.2
        found = Scorecard().fit(X, y).structure()["features"]
        n_single += sum(len(each["bins"]) == 2 for each in found)
    assert n_single >= 28  # of 40; 34 are expected


@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
@pytest.mark.parametrize("bins", [None, {"age": [25.0, 35.0, 45.0, 55.0, 65.0]}])
def test_monotone_constraints_merge_bins(direction: Any, bins: Any) -> None:
    table, y = loans()
    ranker = Scorecard(monotone={"age": direction}, bins=bins).fit(table, y)
    sign = 1 if direction == "increasing" else -1
    found = feature(ranker, "age")["bins"][:-1]
    assert (sign * np.diff([each["woe"] for each in found]) >= 0).all()
    assert check_monotone(ranker).verdict == "proven"
    free = Scorecard(bins=bins).fit(table, y)
    assert check_monotone(free, {"age": direction}).verdict == "violated"  # U-shaped


def test_a_column_that_separates_the_classes_is_used() -> None:
    """Bins without a class are kept: of numbers, of categories, and with exceptions."""
    rng = np.random.default_rng(0)
    y = (rng.random(600) < 0.3).astype(int)
    noise = rng.normal(size=600)
    exceptions = np.where(np.isin(np.arange(600), np.flatnonzero(y == 0)[:2]), 1, y)
    for x in (y, exceptions, 20.0 * y + noise, np.where(y, "arrears", "paid")):
        table = pd.DataFrame({"x": x, "other": noise[::-1]})
        model = Scorecard().fit(table, y)
        assert auc(y, model.decision_function(table)) > 0.99
        assert model.coef_[0] > 0.0


def test_neighbours_that_lack_the_same_class_are_merged() -> None:
    counts = np.array([[0.0, 0.0, 50.0, 50.0], [50.0, 50.0, 0.0, 0.0]])
    assert merge_bins(counts, 0, 8, 10.0).tolist() == [0, 2]


def test_merging_a_bin_without_a_class_keeps_the_order() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        counts = rng.poisson(1.5, (2, 12)).astype(float)
        for direction in (1, -1):
            for least in (None, 4.0):
                starts = merge_bins(counts, direction, 12, least)
                merged = np.add.reduceat(counts, starts, axis=1)
                filled = np.where((merged == 0).any(axis=0), merged + 0.5, merged)
                assert (direction * np.diff(filled[0] / filled[1]) >= -1e-12).all()


def test_given_bins_are_used_as_they_are() -> None:
    table, y = loans()
    ranker = Scorecard(bins={"income": [30, 60], "purpose": [["trip", "car"]], "age": []}).fit(
        table, y
    )
    income = feature(ranker, "income")["bins"]
    assert [(each.get("low"), each.get("high")) for each in income] == [
        (None, 30.0),
        (30.0, 60.0),
        (60.0, None),
        (None, None),
    ]
    purpose = [each.get("categories") for each in feature(ranker, "purpose")["bins"]]
    assert purpose == [["car", "trip"], ["boat", "house"], None]
    assert feature(ranker, "age")["coefficient"] > 0.0  # of the missing values alone
    at_edge = pd.DataFrame({"income": [30.0, 30.1], "age": [20.0, 20.0], "purpose": ["car"] * 2})
    assert ranker.bins_of(at_edge)[:, 0].tolist() == [0, 1]


def test_refitting_with_its_own_bins_gives_the_same_model() -> None:
    table, y = loans()
    first = Scorecard(special_values={"income": [-9.0]}).fit(table, y)
    bins: dict[str | int, Any] = {}
    for each in first.structure()["features"]:
        regular = [one for one in each["bins"] if "special" not in one and "missing" not in one]
        if "categories" in regular[0]:
            bins[each["feature"]] = [one["categories"] for one in regular]
        else:
            bins[each["feature"]] = [one["high"] for one in regular[:-1]]
    again = Scorecard(special_values={"income": [-9.0]}, bins=bins).fit(table, y)
    assert (again.decision_function(table) == first.decision_function(table)).all()


def test_bins_without_rows_and_unknown_categories_are_neutral() -> None:
    table, y = loans()
    ranker = Scorecard(bins={"income": [1000.0], "purpose": [["plane"], ["car"]]}).fit(table, y)
    assert feature(ranker, "income")["bins"][1]["woe"] == 0.0
    new = pd.DataFrame({"income": [50.0], "age": [40.0], "purpose": ["plane"]})
    purpose = feature(ranker, "purpose")["bins"]
    assert purpose[-1] == {"missing": True, "positives": 0, "negatives": 0, "woe": 0, "value": 0}
    assert ranker.bins_of(new)[0, 2] == len(purpose) - 1


def test_a_weight_counts_as_rows() -> None:
    table, y = loans(400)
    twice = pd.concat([table, table], ignore_index=True)
    # C doubles the loss, so that only the bins are compared
    heavy = Scorecard().fit(table, y, sample_weight=np.full(400, 2.0))
    doubled = Scorecard().fit(twice, np.tile(y, 2))
    assert heavy.decision_function(table) == pytest.approx(doubled.decision_function(table))


def test_coefficients_are_never_negative() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=2000)
    b = a + 0.3 * rng.normal(size=2000)
    y = a - 0.8 * b + rng.normal(size=2000) > 0
    assert (Scorecard().fit(np.column_stack([a, b]), y).coef_ >= 0).all()


def test_the_log_odds_are_calibrated() -> None:
    table, y = loans(4000)
    scores = Scorecard(C=1e4).fit(table, y).decision_function(table)
    assert (1 / (1 + np.exp(-scores))).mean() == pytest.approx(y.mean(), abs=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bins": {"nothing": [1.0]}},
        {"bins": {"income": [2.0, 1.0]}},
        {"bins": {"income": [1.0, 1.0]}},
        {"bins": {"income": [math.nan]}},
        {"bins": {"income": [float(k) for k in range(201)]}},
        {"bins": {"income": [["a"]]}},
        {"bins": {"income": ["1"]}},
        {"bins": {"income": 3}},
        {"bins": {"purpose": [1.0]}},
        {"bins": {"purpose": [["car"], []]}},
        {"bins": {"purpose": [["car"], ["trip", "car"]]}},
        {"bins": [1.0]},
        {"special_values": {"purpose": [1.0]}},
        {"special_values": {"income": [1.0, 1]}},
        {"special_values": {"income": [math.inf]}},
        {"special_values": {"income": [float(k) for k in range(21)]}},
        {"special_values": {"nothing": [1.0]}},
        {"special_values": {"income": [-9.0]}, "monotone": {"income": "decreasing"}},
        {"max_bins": 1},
        {"min_bin_fraction": 0.0},
    ],
)
def test_wrong_parameters_are_refused(sentences: Sentences, wrong: dict[str, Any]) -> None:
    table, y = loans(100)
    with sentences.raises(InvalidParameter):
        Scorecard(**wrong).fit(table, y)


def test_bins_of_columns_without_names() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = X[:, 0] > rng.normal(size=300)
    by_index = Scorecard(bins={0: [0.0]}).fit(X, y)
    by_text = Scorecard(bins={"0": [0.0]}).fit(X, y)
    assert (by_index.decision_function(X) == by_text.decision_function(X)).all()
    with pytest.raises(InvalidParameter):
        Scorecard(bins={0: [0.0], "0": [1.0]}).fit(X, y)
