"""Metrics of a selection of outcomes: their values by hand, coverage, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from core.errors import InvalidData, InvalidParameter
from core.metrics import auc, auc_interval
from core.monitoring import WeightedMetrics, weighted_metrics
from tests.core.monitoring.simulator import gap
from tests.long_form import LONG_FORM, one_in
from tests.sentences import Sentences

TOP, PREVALENCE = 0.05, 0.05


def decisions(
    n: int,
    seed: int,
    *,
    area: float = 0.8,
    explored_side: str = "unflagged",
    rate: float = 0.02,
    in_grades: bool = False,
    keep: float = 1.0,
) -> tuple[dict[str, Any], dict[str, float]]:
    """Decisions of which those of one side are reviewed, and some of the other; and the metrics of the population.

    With `keep` below 1, half of the decisions are recorded with that probability, the others always.
    """
    rng, d = np.random.default_rng([n, seed]), gap(area)
    y = rng.random(n) < PREVALENCE
    score = rng.normal(size=n) + d * y

    def flagged(c: float) -> float:
        return float((1 - PREVALENCE) * norm.sf(c) + PREVALENCE * norm.sf(c - d))

    threshold = brentq(lambda c: flagged(c) - TOP, -5, 9)
    recall, value = float(norm.sf(threshold - d)), area
    if in_grades:
        score = np.round(2.0 * score) / 2.0
        grid = np.arange(-10.0, 14.0, 0.5)
        negative, positive = (
            norm.cdf(grid + 0.25 - shift) - norm.cdf(grid - 0.25 - shift) for shift in (0.0, d)
        )
        value = float(positive @ (np.cumsum(negative) - negative / 2.0))
        recall = float(positive[grid > threshold].sum())
        caught = PREVALENCE * recall
        share = caught + (1 - PREVALENCE) * float(negative[grid > threshold].sum())
    else:
        caught, share = PREVALENCE * recall, TOP
    truth = {
        "auc": value,
        "recall": recall,
        "precision": caught / share,
        "miss_rate": (PREVALENCE - caught) / (1.0 - share),
    }
    flag = score > threshold
    other = ~flag if explored_side == "unflagged" else flag
    explored = other & (rng.random(n) < rate)
    kept = np.where(np.arange(n) < n // 2, 1.0, keep)
    known = ~other | explored
    every = {
        "score": score,
        "positive": y & known,
        "known": known,
        "flag": flag,
        "explored": explored,
        "propensity": np.where(other, rate, 1.0),
        "keep": kept,
    }
    recorded = rng.random(n) < kept
    return {name: values[recorded] for name, values in every.items()}, truth


def metrics_of(every: dict[str, Any]) -> WeightedMetrics:
    rest = {name: values for name, values in every.items() if name != "score"}
    return weighted_metrics(every["score"], **rest)


SELECTIONS: dict[str, tuple[int, dict[str, Any]]] = {
    "26,000": (26_000, {}),
    "33,000": (33_000, {}),
    "100,000": (100_000, {}),
    "ties": (60_000, {"in_grades": True}),
    "keep": (60_000, {"keep": 0.3}),
    "near 1": (40_000, {"area": 0.95, "rate": 0.1}),
    "lender": (40_000, {"explored_side": "flagged", "rate": 0.1}),
}


@pytest.mark.parametrize("name", one_in(2, SELECTIONS))
def test_intervals_cover_from_twenty_explored_positives_on(name: str) -> None:
    n, options = SELECTIONS[name]
    runs = 400 if LONG_FORM else 20
    inside: dict[str, list[bool]] = {"auc": [], "recall": [], "precision": [], "miss_rate": []}
    naive = []
    for seed in range(runs):
        every, truth = decisions(n, seed, **options)
        found = metrics_of(every)
        assert found.population == "all"
        for metric, covered in inside.items():
            estimate = getattr(found, metric)
            if estimate.low is not None:
                covered.append(estimate.low <= truth[metric] <= estimate.high)
        known = every["known"]
        of_known = auc_interval(every["positive"][known], every["score"][known])
        naive.append(of_known.low <= truth["auc"] <= of_known.high)
    least = 0.91 if LONG_FORM else 0.8
    for metric, covered in inside.items():
        assert len(covered) >= runs / 5, metric
        assert np.mean(covered) >= least, metric
    if name not in {"near 1"}:
        assert np.mean(naive) < 0.1  # the AUC of the rows with outcomes is another one


def test_without_enough_explored_positives_there_is_the_number_that_is_needed() -> None:
    every, _ = decisions(8_000, 3)
    found = metrics_of(every)
    assert 0 < found.explored_positives < 20
    assert found.auc is not None
    assert found.recall is not None
    assert (found.auc.low, found.recall.high) == (None, None)
    rate = found.explored_positives / found.explored
    assert found.explored_needed == pytest.approx((20 - found.explored_positives) / rate, abs=1.0)
    assert found.miss_rate is not None
    assert found.miss_rate.low is not None


def test_no_more_is_needed_exactly_if_there_are_intervals() -> None:
    """Rows that are recorded with other probabilities weigh differently: positives then count by their weights."""
    explored = []
    for seed in range(6):
        every, _ = decisions(10_000 * (seed + 1), seed)
        rng = np.random.default_rng(seed)
        keep = np.where(rng.random(every["score"].size) < 0.5, 1.0, 0.05)
        found = metrics_of({**every, "keep": keep})
        assert found.auc is not None
        assert (found.explored_needed == 0) == (found.auc.low is not None)
        explored.append((found.explored_positives >= 20, found.explored_needed == 0))
    assert (True, False) in explored  # enough rows, of too unequal weights


def test_values_by_hand() -> None:
    """Two flagged rows, of which one is positive; four others, of which two are explored and one of these positive."""
    found = weighted_metrics(
        [9.0, 8.0, 3.0, 2.0, 1.0, 0.0],
        positive=[1, 0, 1, 0, 0, 0],
        known=[1, 1, 1, 1, 0, 1],
        flag=[1, 1, 0, 0, 0, 0],
        explored=[0, 0, 1, 1, 0, 0],
        propensity=[1, 1, 0.5, 0.5, 0.5, 0.5],
    )
    assert (found.population, found.decisions, found.reviewed) == ("all", 6, 4)
    assert (found.missing, found.unselected, found.explored) == (0, 1, 2)
    assert found.explored_needed == 38
    values = [found.auc, found.precision, found.miss_rate, found.recall]
    # weights 1, 1, 2, 2: positives 9.0 and 3.0 beside negatives 8.0 and 2.0
    expected = [(1 * 3 + 2 * 2) / 9, 1 / 2, 1 / 2, 1 / 3]
    assert [each.value for each in values if each] == pytest.approx(expected)


def test_with_every_outcome_known_the_metrics_are_the_usual_ones() -> None:
    rng = np.random.default_rng(4)
    y = rng.random(3000) < 0.2
    score = rng.normal(size=3000) + y
    flag, none = score > 1.0, np.zeros(3000, dtype=bool)
    found = weighted_metrics(
        score, positive=y, known=~none, flag=flag, explored=none, propensity=np.ones(3000)
    )
    usual = auc_interval(y, score)
    assert found.auc is not None
    assert (found.auc.value, found.auc.low, found.auc.high) == pytest.approx(usual)
    assert found.recall is not None
    assert found.recall.value == pytest.approx(flag[y].mean())
    assert found.recall.low is not None
    assert (found.explored, found.explored_needed) == (0, None)


def test_rows_without_outcome_are_like_the_others_of_their_side() -> None:
    every, _ = decisions(60_000, 1, rate=0.1)
    before = metrics_of(every)
    lost = every["flag"] & (np.arange(every["flag"].size) % 2 == 0)
    after = metrics_of({**every, "known": every["known"] & ~lost})
    assert after.missing == int(lost.sum())
    assert before.recall is not None
    assert after.recall is not None
    assert after.recall.value == pytest.approx(before.recall.value, abs=0.03)


@pytest.mark.parametrize("side", ["flagged", "unflagged"])
def test_without_exploration_the_population_is_one_side_and_there_is_no_recall(side: str) -> None:
    every, _ = decisions(5_000, 0)
    inside = every["flag"] if side == "flagged" else ~every["flag"]
    y = np.random.default_rng(0).random(inside.size) < 0.2
    found = metrics_of(
        {
            **every,
            "positive": y & inside,
            "known": inside,
            "explored": np.zeros(inside.size),
            "propensity": inside.astype(float),
        }
    )
    assert (found.population, found.recall, found.explored_needed) == (side, None, None)
    assert found.auc is not None
    assert found.auc.value == pytest.approx(auc(y[inside], every["score"][inside]))
    assert (found.precision is None) == (side == "unflagged")
    assert (found.miss_rate is None) == (side == "flagged")


def test_no_outcomes_and_no_threshold() -> None:
    none = np.zeros(4)
    scores = np.arange(4.0)
    found = weighted_metrics(
        scores, positive=none, known=none, flag=[0, 0, 1, 1], explored=none, propensity=np.ones(4)
    )
    assert (found.population, found.auc, found.precision, found.recall) == (
        "none",
        None,
        None,
        None,
    )
    assert found.missing == 4
    found = weighted_metrics(
        scores,
        positive=[0, 1, 0, 1],
        known=np.ones(4),
        flag=None,
        explored=none,
        propensity=np.ones(4),
    )
    assert found.population == "all"
    assert found.auc is not None
    assert (found.precision, found.miss_rate, found.recall) == (None, None, None)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"propensity": [0.5, 1.2]}, "propensity must be in"),
        ({"keep": [0.0, 1.0]}, "keep must be above 0"),
        ({"known": [1, 2]}, "known must be 0 or 1"),
        ({"flag": [1]}, "flag must have one value"),
        ({"score": [1.0, np.nan]}, "score must be finite"),
    ],
)
def test_bad_decisions(changed: dict[str, Any], message: str, sentences: Sentences) -> None:
    usual: dict[str, Any] = {
        "score": [1.0, 2.0],
        "positive": [0, 1],
        "known": [1, 1],
        "flag": [0, 1],
        "explored": [0, 0],
        "propensity": [1, 1],
    }
    with sentences.raises(InvalidData) as caught:
        metrics_of({**usual, **changed})
    assert message in str(caught.value)
    with sentences.raises(InvalidParameter):
        weighted_metrics(usual.pop("score"), **usual, level=1.0)


def draw_customers(rng: np.random.Generator, n: int, *, with_ids: bool) -> WeightedMetrics:
    """Metrics of n customers with ten decisions each, whose risk the score shows in part."""
    customer = np.repeat(np.arange(n), 10)
    shown, hidden = rng.normal(size=(2, n))
    y = rng.random(customer.size) < 1.0 / (1.0 + np.exp(2.0 - shown - 1.5 * hidden)[customer])
    return weighted_metrics(
        shown[customer],
        positive=y,
        known=np.ones(customer.size),
        flag=shown[customer] > 0.8,
        explored=np.zeros(customer.size),
        propensity=np.ones(customer.size),
        entity=customer if with_ids else None,
    )


def test_limits_of_customers_who_come_back() -> None:
    """Without the ids of 200 customers, limits at 95 % cover 61 to 73 %."""
    rng, trials = np.random.default_rng(4), 400 if LONG_FORM else 80
    truth = draw_customers(rng, 100_000, with_ids=False)
    found = [draw_customers(rng, 200, with_ids=True) for _ in range(trials)]
    for name in ("auc", "precision", "miss_rate", "recall"):
        value = getattr(truth, name).value
        of = [getattr(each, name) for each in found]
        covers = np.mean([each.low <= value <= each.high for each in of])
        assert covers >= (0.92 if LONG_FORM else 0.88), name
