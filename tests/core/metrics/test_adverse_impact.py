"""Selection rates and adverse impact ratios of groups: naive values, verdicts, and coverage where it is hardest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidParameter
from core.metrics import compare_at_threshold, compare_groups, group_steps
from core.metrics.adverse_impact import MAX_STEPS, SIDES
from tests.long_form import LONG_FORM, rest


def tied(seed: int, n: int = 400) -> tuple[Any, ...]:
    """Labels, tied scores, groups, weights and units."""
    rng = np.random.default_rng(seed)
    by = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = rng.integers(0, 2, n)
    scores = np.round(rng.normal(size=n) + y + (by == "b"), 1)
    return y, scores, by, rng.choice([0.0, 1.0, 2.5], n), rng.integers(0, 80, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_and_ratios_are_the_naive_ones(weighted: bool) -> None:
    y, scores, by, weight, _ = tied(0)
    w = weight if weighted else np.ones(len(y))
    steps = group_steps(y, scores, by, sample_weight=weight if weighted else None)
    for threshold in (-math.inf, -0.3, 0.5, 0.55, 2.0, math.inf):
        (found,) = compare_at_threshold([steps], threshold)
        flagged = scores >= threshold
        naive = [np.average(flagged[by == value], weights=w[by == value]) for value in "abc"]
        for side, rates in zip(SIDES, ([1.0 - rate for rate in naive], naive), strict=True):
            groups = found.sides[side].groups
            assert [one.rate.interval.value for one in groups] == pytest.approx(rates)
            if max(rates) > 0.0:
                ratios = [rate / max(rates) for rate in rates]
                assert [one.ratio.interval.value for one in groups] == pytest.approx(ratios)
                assert found.sides[side].reference == int(np.argmax(rates))
            else:
                assert {one.ratio.interval for one in groups} == {None}
            for one in groups:
                for interval in filter(None, (one.rate.interval, one.ratio.interval)):
                    assert 0.0 <= interval.low <= interval.value + 1e-12
                    assert interval.value <= interval.high + 1e-12
                    assert interval.high <= 1.0


@pytest.mark.parametrize("units", [False, True])
def test_tpr_and_fpr_are_those_of_the_comparison_of_groups(units: bool) -> None:
    y, scores, by, weight, unit = tied(1)
    terms = {"sample_weight": weight, "group": unit if units else None}
    (found,) = compare_at_threshold([group_steps(y, scores, by, **terms)], 0.7)
    for index, group in enumerate(compare_groups(y, scores, by, threshold=0.7, **terms).groups):
        assert (group.positives, group.negatives) == found.counts[index]
        for own, other in ((found.tpr[index], group.tpr), (found.fpr[index], group.fpr)):
            assert other is not None
            assert own.interval == pytest.approx(other.interval)


def test_a_unit_of_equal_rows_counts_once() -> None:
    rng = np.random.default_rng(2)
    by, y = np.repeat(["a", "b"], 60), rng.integers(0, 2, 120)
    scores = rng.normal(size=120)
    once = group_steps(y, scores, by, group=np.arange(120))
    three = group_steps(
        *(np.tile(each, 3) for each in (y, scores, by)), group=np.tile(range(120), 3)
    )
    for side in SIDES:
        first, other = (
            compare_at_threshold([each], 0.3)[0].sides[side].groups for each in (once, three)
        )
        for one, same in zip(first, other, strict=True):
            assert same.ratio.interval == pytest.approx(one.ratio.interval)


def test_verdicts_need_data() -> None:
    def found(n: int, rates: tuple[float, ...]) -> Any:
        by = np.repeat(np.arange(len(rates)), n)
        chosen = np.concatenate([np.arange(n) < round(rate * n) for rate in rates])
        return compare_at_threshold([group_steps(np.arange(len(by)) % 2, chosen, by)], 1.0)[0]

    of = found(2000, (0.5, 0.3, 0.48)).sides["flagged"]
    assert [one.passes for one in of.groups] == [True, False, True]
    assert of.passes is False
    assert found(2000, (0.5, 0.3, 0.48)).sides["not_flagged"].passes is False
    assert found(2000, (0.5, 0.48)).sides["flagged"].passes is True
    assert found(20, (0.5, 0.48)).sides["flagged"].passes is None
    assert found(9, (0.5, 0.48)).sides["flagged"].groups[0].ratio.reason
    assert found(50, (0.0, 0.0)).sides["flagged"].passes is None
    assert found(50, (1.0, 1.0)).sides["flagged"].groups[0].ratio.interval.value == 1.0


def test_a_tiny_group_is_not_the_reference() -> None:
    by = np.repeat(["big", "mid", "tiny"], [2000, 900, 20])
    chosen = np.r_[np.arange(2000) < 1000, np.arange(900) < 450, np.ones(20, dtype=bool)]
    (found,) = compare_at_threshold([group_steps(np.arange(2920) % 2, chosen, by)], 1.0)
    of = found.sides["flagged"]
    assert found.values[of.reference or 0] == "big"
    assert of.passes is True
    assert of.groups[2].ratio.interval.value == 1.0


def test_p_values_are_adjusted_over_all_columns() -> None:
    y, scores, by, _, _ = tied(3)
    alone = compare_at_threshold([group_steps(y, scores, by)], 0.5)[0].sides["flagged"]
    several = compare_at_threshold([group_steps(y, scores, by)] * 5, 0.5)[0].sides["flagged"]
    for one, other in zip(alone.groups, several.groups, strict=True):
        assert one.p_value == other.p_value
        assert one.adjusted_p_value <= other.adjusted_p_value
    least = min(one.p_value for one in alone.groups)
    assert least < 0.01
    assert min(one.adjusted_p_value for one in several.groups) == pytest.approx(15 * least)


def test_of_many_scores_the_next_higher_threshold_counts() -> None:
    n = 3 * MAX_STEPS
    rng = np.random.default_rng(4)
    y, by, scores = rng.integers(0, 2, n), rng.choice(["a", "b"], n), np.arange(n) / n
    steps = group_steps(y, scores, by)
    assert len(steps.thresholds) == MAX_STEPS
    (found,) = compare_at_threshold([steps], 0.4)
    for index, value in enumerate("ab"):
        share = np.mean(scores[by == value] >= 0.4)
        assert found.sides["flagged"].groups[index].rate.interval.value == pytest.approx(
            share, abs=1e-3
        )


@pytest.mark.parametrize("threshold", [math.nan, "0.5", None, True])
def test_bad_thresholds(threshold: Any) -> None:
    y, scores, by, _, _ = tied(6)
    with pytest.raises(InvalidParameter):
        compare_at_threshold([group_steps(y, scores, by)], threshold)
    with pytest.raises(InvalidParameter):
        group_steps(y, scores, by, max_steps=1)


def draw(kind: str, n: tuple[int, ...], rates: np.ndarray, rng: np.random.Generator) -> Any:
    """Rows of groups with these rates; the heavy rows are the flagged ones, or rows are drawn in units of five."""
    by = np.repeat(np.arange(len(n)), n)
    p = rates[by]
    weight = unit = None
    if kind == "heavy":
        flagged = rng.random(by.size) < p / 10 / (p / 10 + 1.0 - p)
        weight = np.where(flagged, 10.0, 1.0)
    elif kind == "units":
        unit = np.concatenate([np.arange(size) // 5 + 10_000 * code for code, size in enumerate(n)])
        own, first, number = np.unique(unit, return_index=True, return_inverse=True)
        spread = 0.7 / 0.3  # an intraclass correlation of .3
        flagged = rng.random(by.size) < rng.beta(p[first] * spread, (1 - p[first]) * spread)[number]
        assert own.size < by.size
    else:
        flagged = rng.random(by.size) < p
        if kind == "lognormal":
            weight = rng.lognormal(0.0, 1.0, by.size)
    y = np.arange(by.size) % 2
    return group_steps(y, flagged, by, sample_weight=weight, group=unit)


@pytest.mark.parametrize(
    ("kind", "n", "top", "least"),
    [
        ("rows", (20, 1000), 0.0125, 0.95),
        ("heavy", (200, 800), 0.1, 0.93),
        ("units", (150, 600), 0.95, 0.92),
        *rest(
            ("rows", (20, 1000), 0.5, 0.93),
            ("rows", (20, 1000), 0.99, 0.94),
            ("rows", (60, 60, 60, 60, 60), 0.02, 0.95),
            ("rows", (60, 60, 60, 60, 60), 0.98, 0.95),
            ("lognormal", (100, 400), 0.1, 0.93),
            ("units", (150, 600), 0.1, 0.92),
        ),
    ],
)
def test_intervals_cover_and_verdicts_seldom_err(
    kind: str, n: tuple[int, ...], top: float, least: float
) -> None:
    """The first group has exactly four fifths of the rate of the others: neither verdict on it would be right."""
    n_samples = 1500 if LONG_FORM else 40
    rng = np.random.default_rng(7)
    rates = np.array([0.8 * top] + [top] * (len(n) - 1))
    truth = rates / top
    covered, fails, passes, known = 0, 0, 0, 0
    for _ in range(n_samples):
        (found,) = compare_at_threshold([draw(kind, n, rates, rng)], 1.0)
        groups = found.sides["flagged"].groups
        interval = groups[0].ratio.interval
        if interval is None:
            continue
        known += 1
        covered += interval.low <= truth[0] <= interval.high
        fails += False in [one.passes for one in groups]
        passes += groups[0].passes is True
    noise = 2.5 * math.sqrt(0.05 * 0.95 / known)
    assert known > 0.8 * n_samples
    assert covered / known >= least - noise
    assert fails / known <= 0.05 + noise
    assert passes / known <= 0.035 + noise
