"""Amounts of rows: value curves and cuts of least cost against definitions, all cuts, and simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import t as student

from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    AmountCosts,
    Costs,
    Price,
    auc,
    auc_interval,
    compare_costs,
    cost_report,
    costs_at_thresholds,
    gains_table,
    operating_point,
    roc_curve,
    value_caught,
)
from core.metrics.amounts import (
    OVERS,
    Over,
    WeightedRows,
    choose_threshold,
    losses_of,
    random_parts,
    rows_with,
)
from tests.core.metrics.naive import curve_and_totals, rankings
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

COSTS = AmountCosts(
    false_positive=Price(0.25, 0.125), false_negative=Price(0.0, 1.0), benefit=0.5, review=0.25
)


@st.composite
def tables(draw: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """(y, scores, amounts, weights or None): many ties, amounts of 0 but for one row of each class, weights of 0."""
    y, scores, _ = draw(rankings())
    amounts = np.array(draw(st.lists(st.integers(0, 5), min_size=len(y), max_size=len(y))), float)
    weights = None
    for label in (0, 1):
        amounts[np.flatnonzero(y == label)[0]] += 1.0
    if draw(st.booleans()):
        weights = np.array(
            draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))), float
        )
        for label in (0, 1):
            weights[np.flatnonzero(y == label)[0]] += 1.0
    return y, scores, amounts, weights


def masses(over: Over, y: np.ndarray, amounts: np.ndarray, weights: Any) -> Any:
    """The mass of each row on both axes, by the definition."""
    w = np.ones(len(y)) if weights is None else weights
    along = {"rows": w, "negatives": w * (y == 0), "amount_of_negatives": w * amounts * (y == 0)}
    return along[over], w * amounts * (y == 1)


@given(tables(), st.sampled_from(OVERS), st.integers(1, 8))
def test_the_value_caught_is_that_of_its_definition(table: Any, over: Over, eighths: int) -> None:
    y, scores, amounts, weights = table
    x, v = masses(over, y, amounts, weights)
    found = value_caught(y, scores, amounts, over=over, at=[eighths / 8], sample_weight=weights)
    pairs = sum(
        v[i] * x[k] * ((scores[i] > scores[k]) + 0.5 * (scores[i] == scores[k]))
        for i in range(len(y))
        for k in range(len(y))
    )
    assert found.area.value == pytest.approx(pairs / (v.sum() * x.sum()))
    assert found.amount == pytest.approx(v.sum())
    assert found.effective == pytest.approx(v.sum() ** 2 / (v**2).sum())
    # by hand: take tie after tie, of the last one a part
    room, caught = eighths / 8 * x.sum(), 0.0
    for cutoff in sorted(
        set(scores[(weights if weights is not None else x + 1) > 0]), reverse=True
    ):
        tie = scores == cutoff
        if x[tie].sum() > room:
            caught += v[tie].sum() * room / x[tie].sum()
            break
        room -= x[tie].sum()
        caught += v[tie].sum()
    (one,) = found.recalls
    assert one.recall.value == pytest.approx(caught / v.sum(), abs=1e-9)
    assert 0.0 <= one.recall.low <= one.recall.value <= one.recall.high <= 1.0
    for share, value, cutoff in zip(*found.curve, strict=True):
        assert share == pytest.approx(x[scores >= cutoff].sum() / x.sum())
        assert value == pytest.approx(v[scores >= cutoff].sum() / v.sum())


def test_equal_amounts_are_the_ordinary_curves() -> None:
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 2, 300), np.round(rng.normal(size=300), 1)
    found = value_caught(y, scores, np.full(300, 7.0), over="negatives", at=[0.2])
    curve = roc_curve(y, scores)
    assert found.area.value == pytest.approx(auc(y, scores))
    assert found.recalls[0].recall.value == pytest.approx(float(np.interp(0.2, *curve_axes(curve))))
    by_rows = value_caught(y, scores, np.full(300, 7.0), at=[0.1])
    (gain,) = gains_table(*curve_and_totals(y, scores), shares=[0.1])
    assert by_rows.recalls[0].recall.value == pytest.approx(gain.recall.value)
    assert by_rows.recalls[0].threshold == gain.threshold
    amount = 1.0 + np.abs(scores)
    weighted = value_caught(y, scores, amount, over="amount_of_negatives").curve
    other = roc_curve(y, scores, 1.0 + np.abs(scores))
    np.testing.assert_allclose(weighted.values, other.tpr)
    np.testing.assert_allclose(weighted.shares, other.fpr)


def curve_axes(curve: Any) -> tuple[np.ndarray, np.ndarray]:
    return curve.fpr, curve.tpr


@pytest.mark.parametrize("over", OVERS)
@pytest.mark.parametrize("units", [False, True])
def test_intervals_come_from_the_derivatives_in_the_weights(over: Over, units: bool) -> None:
    """Row i changes a figure by w_i · ∂figure/∂w_i to first order: here by differences, all figures at once."""
    rng = np.random.default_rng(3)
    n = 40
    y, weights = np.arange(n) % 2, rng.uniform(0.5, 2.0, n)
    amounts = rng.lognormal(size=n)
    scores = np.round(rng.normal(size=n) + 0.7 * y, 1)
    unit = np.arange(n) // 3 if units else None

    def area(w: np.ndarray) -> float:
        return value_caught(y, scores, amounts, over=over, at=(), sample_weight=w).area.value

    step = 1e-6
    influence = np.array(
        [
            (
                area(weights * (1 + step * (np.arange(n) == i)))
                - area(weights * (1 - step * (np.arange(n) == i)))
            )
            / (2 * step)
            for i in range(n)
        ]
    )
    found = value_caught(y, scores, amounts, over=over, at=(), sample_weight=weights, group=unit)
    x, v = masses(over, y, amounts, weights)
    worth = []
    for mass in (v, v if over == "rows" else x):
        sums = mass if unit is None else np.bincount(unit, mass)
        worth.append(sums.sum() ** 2 / (sums**2).sum())
    assert found.effective == pytest.approx(worth[0])
    scaled = influence * np.where(y == 1, *(math.sqrt(e / (e - 1.0)) for e in worth))
    parts = scaled if unit is None else np.bincount(unit, scaled)
    error, e = math.sqrt(float((parts**2).sum())), min(worth)
    logit = math.log(found.area.value / (1.0 - found.area.value))
    half = student.ppf(0.975, e - 1.0) * error / (found.area.value * (1.0 - found.area.value))
    for end, sign in ((found.area.low, -1), (found.area.high, 1)):
        assert math.log(end / (1.0 - end)) == pytest.approx(logit + sign * half, rel=1e-5)


NEGATIVES = {
    "one": (np.r_[np.ones(300), 0], None),
    "two": (np.r_[np.ones(300), 0, 0], None),
    "one group": (np.repeat([1, 0], 300), np.r_[np.arange(300), np.full(300, 300)]),
    "three clusters": (np.repeat([1, 0], 300), np.r_[np.arange(300), 300 + np.arange(300) // 100]),
}


@pytest.mark.parametrize("over", ["negatives", "amount_of_negatives"])
@pytest.mark.parametrize("negatives", NEGATIVES)
def test_few_negatives_say_little_about_the_area(negatives: str, over: Over) -> None:
    y, group = NEGATIVES[negatives]
    scores = np.random.default_rng(2).normal(size=y.size) + y
    found = value_caught(y, scores, np.full(y.size, 7.0), over=over, at=[0.5], group=group)
    known = auc_interval(y, scores, group=group)
    if negatives == "two":  # there the interval of the AUC is of single rows
        assert found.area.value == pytest.approx(known.value)
        assert found.area.high - found.area.low > 0.85
        assert known.high - known.low > 0.6
    elif negatives == "three clusters":  # where that of the AUC asks how alike the clusters are
        assert found.area.value == pytest.approx(known.value)
        assert known.low < found.area.low < found.area.high < known.high
    else:
        np.testing.assert_allclose(found.area, known, rtol=1e-9)
    (half,) = found.recalls
    assert half.recall.high - half.recall.low > 0.2


@pytest.mark.parametrize("over", ["negatives", "amount_of_negatives"])
def test_a_vertical_step_is_caught_whole(over: Over) -> None:
    y, scores = [1, 1, 0, 1, 0, 1], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    found = value_caught(y, scores, np.ones(6), over=over, at=[0.5, 1.0])
    assert [each.recall.value for each in found.recalls] == [0.75, 1.0]
    assert [each.threshold for each in found.recalls] == [3.0, 1.0]
    for each in found.recalls:
        assert each.recall.value == operating_point(y, scores, fpr=each.share).tpr.value
    # 0.1 and 0.3 of ten negatives are not exact
    y, scores = np.tile([0, 1], 10), -np.arange(20.0)
    steps = value_caught(y, scores, np.ones(20), over=over, at=[0.1, 0.3, 0.7])
    assert [each.recall.value for each in steps.recalls] == pytest.approx([0.1, 0.3, 0.7])
    assert [each.threshold for each in steps.recalls] == [-1.0, -5.0, -13.0]


def losses_by_hand(y: np.ndarray, amounts: np.ndarray, flagged: np.ndarray) -> np.ndarray:
    """The prices of `COSTS`, row by row."""
    lost = []
    for label, amount, flag in zip(y, amounts, flagged, strict=True):
        if flag:
            lost.append(0.25 - 0.5 if label else 0.25 + 0.25 + 0.125 * amount)
        else:
            lost.append(amount if label else 0.0)
    return np.array(lost)


@given(tables())
def test_the_least_cost_is_that_of_all_cuts(table: Any) -> None:
    y, scores, amounts, weights = table
    w = np.ones(len(y)) if weights is None else weights
    found = cost_report(y, scores, COSTS, amounts, sample_weight=weights, threshold=0.5)
    cutoffs = [math.inf, *sorted(set(scores[w > 0]), reverse=True)]
    costs = [
        float((w * losses_by_hand(y, amounts, scores >= cutoff)).sum() / w.sum())
        for cutoff in cutoffs
    ]
    best = int(np.argmax(np.array(costs) <= min(costs) + 1e-12))  # the one that flags fewest
    assert found.least.in_sample == pytest.approx(min(costs))
    assert found.least.threshold == cutoffs[best]
    assert found.least.flagged == pytest.approx(w[scores >= cutoffs[best]].sum() / w.sum())
    assert found.flag_none.value == pytest.approx(costs[0])
    assert found.flag_all.value == pytest.approx(costs[-1])
    assert found.at is not None
    assert found.rows == w.sum()
    lost = losses_by_hand(y, amounts, scores >= 0.5)
    assert found.at.cost.value == pytest.approx(float((w * lost).sum() / w.sum()))
    assert found.at.saved_to_none.value == pytest.approx(costs[0] - found.at.cost.value)
    assert found.at.saved_to_all.value == pytest.approx(costs[-1] - found.at.cost.value)


@given(tables(), st.booleans())
def test_held_out_rows_are_judged_by_the_cut_of_the_other_parts(table: Any, units: bool) -> None:
    y, scores, amounts, weights = table
    unit = np.arange(len(y)) // 2 if units else None
    found = cost_report(y, scores, COSTS, amounts, sample_weight=weights, group=unit)
    rows, (kept,) = rows_with(y, {"scores": scores}, {"amount": amounts}, weights, unit)
    parts = random_parts(rows, 0)
    if parts is None:
        assert found.least.held_out is None
        assert found.least.parts == 1
        return
    if rows.unit is not None:
        assert all(len(set(parts[rows.unit == one])) == 1 for one in set(rows.unit))
    labels, (ranked,) = rows.positive.astype(int), rows.scores
    w = np.ones(len(labels)) if rows.weight is None else rows.weight
    flagged, chosen = np.zeros(len(labels), dtype=bool), []
    for part in range(int(parts.max()) + 1):
        others = parts != part
        cutoffs = [math.inf, *sorted(set(ranked), reverse=True)]
        costs = np.array(
            [
                (w * losses_by_hand(labels, kept, ranked >= cutoff))[others].sum()
                for cutoff in cutoffs
            ]
        )
        chosen.append(cutoffs[int(np.argmax(costs <= costs.min() + 1e-9))])
        flagged[~others] = ranked[~others] >= chosen[-1]
    held_out = found.least.held_out
    assert held_out is not None
    expected = (w * losses_by_hand(labels, kept, flagged)).sum() / w.sum()
    assert held_out.cost.value == pytest.approx(expected)
    assert held_out.flagged == pytest.approx(w[flagged].sum() / w.sum())
    assert (found.least.threshold_low, found.least.threshold_high) == (min(chosen), max(chosen))
    assert held_out.cost.value >= found.least.in_sample - 1e-9


def test_costs_without_amounts_are_those_of_an_operating_point() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 500)
    scores = np.round(rng.normal(size=500) + 1.5 * y, 1)
    found = cost_report(y, scores, AmountCosts(false_positive=1, false_negative=3))
    point = operating_point(y, scores, costs=Costs(1, 3))
    assert found.least.threshold == point.threshold
    assert point.cost is not None
    assert found.least.in_sample == pytest.approx(point.cost.a_row.value)


def test_a_row_is_flagged_by_its_own_probability_and_amount() -> None:
    rng = np.random.default_rng(4)
    y, amounts, p = rng.integers(0, 2, 200), rng.lognormal(size=200), rng.random(200)
    found = cost_report(y, p, COSTS, amounts, probability=p)
    flagged = np.zeros(200, dtype=bool)
    for i in range(200):
        if_flagged = p[i] * (0.25 - 0.5) + (1 - p[i]) * (0.25 + 0.25 + 0.125 * amounts[i])
        flagged[i] = if_flagged < p[i] * amounts[i]
    assert found.by_probability is not None
    assert found.probability_saves is not None
    assert found.by_probability.flagged == pytest.approx(flagged.mean())
    cost = losses_by_hand(y, amounts, flagged).mean()
    assert found.by_probability.cost.value == pytest.approx(cost)
    assert found.least.held_out is not None
    saved = found.least.held_out.cost.value - cost
    assert found.probability_saves.value == pytest.approx(saved)
    plain = cost_report(y, p, AmountCosts(1.0, Price(rate=1.0)), amounts, probability=p)
    assert plain.by_probability is not None
    assert plain.by_probability.flagged == pytest.approx((p > 1.0 / (1.0 + amounts)).mean())


def test_the_interval_of_a_cost_is_halls() -> None:
    amounts = np.array([1.0, 2.0, 0.5, 3.0, 9.0, 1.5, 2.5, 1.0])
    y, n = np.array([1, 1, 1, 1, 1, 1, 0, 0]), 8
    costs = AmountCosts(false_positive=1, false_negative=Price(rate=1))
    found = cost_report(y, amounts, costs, amounts).flag_none
    apart = y * amounts - (y * amounts).mean()
    k = (apart**3).sum() / (apart**2).sum() ** 1.5

    def end(z: float) -> float:
        t = brentq(lambda t: t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6 - z, -100, 100)
        return (y * amounts).mean() - t * apart.std(ddof=1) / math.sqrt(n)

    z = student.ppf(0.975, n - 1)
    assert found.high == pytest.approx(end(-z))
    assert end(z) > 0.0
    assert found.low == pytest.approx(end(z))


def test_a_difference_is_significant_exactly_if_its_interval_excludes_0() -> None:
    rng = np.random.default_rng(5)
    outcomes = set()
    for trial in range(60):
        y, amounts = rng.integers(0, 2, 120), rng.lognormal(size=120)
        first = rng.normal(size=120) + 1.3 * y
        second = first + (0.2 + trial / 40) * rng.normal(size=120)
        found = compare_costs(y, [first, second], COSTS, amounts, names=["one", "two"])
        (pair,) = found.differences
        assert (pair.first, pair.second, pair.adjusted_p_value) == ("one", "two", pair.p_value)
        costs = [each.held_out.cost.value for each in found.reports if each.held_out is not None]
        assert pair.value == pytest.approx(costs[0] - costs[1])
        assert (pair.p_value < 0.05) == (not pair.low <= 0.0 <= pair.high)
        outcomes.add(pair.p_value < 0.05)
        back = compare_costs(y, [second, first], COSTS, amounts).differences[0]
        np.testing.assert_allclose([-back.high, -back.low], [pair.low, pair.high], atol=1e-12)
    assert outcomes == {True, False}
    same = compare_costs(y, [first, first, second], COSTS, amounts).differences
    assert (same[0].value, same[0].p_value) == (0.0, 1.0)
    assert same[0].low < 0.0 < same[0].high
    assert same[1].adjusted_p_value >= same[1].p_value


def test_a_difference_has_the_corrected_variance() -> None:
    rng = np.random.default_rng(8)
    y, amounts = rng.integers(0, 2, 300), rng.lognormal(size=300)
    scores, p = rng.normal(size=300) + y, rng.random(300)
    found = cost_report(y, scores, COSTS, amounts, probability=p)
    rows, _ = rows_with(y, {"scores": scores}, {}, None, None)
    losses, sample = losses_of(rows.positive, COSTS, amounts), WeightedRows.of(rows)
    choice = choose_threshold(scores, losses, sample, random_parts(rows, 0))
    by_row = p * (amounts + 0.5) > (1 - p) * (0.25 + 0.125 * amounts) + 0.25
    assert choice.held_out is not None
    values = losses.of(choice.held_out) - losses.of(by_row)
    error = values.std(ddof=1) / math.sqrt(300) * math.sqrt(1 + 10 / 9)
    degrees = np.abs(values).sum() ** 2 / (values**2).sum() - 1
    half = student.ppf(0.975, degrees) * error
    assert found.probability_saves is not None
    assert found.probability_saves.low == pytest.approx(values.mean() - half)
    assert found.probability_saves.high == pytest.approx(values.mean() + half)


def test_samples_without_variance_have_intervals_of_the_greatest_variance() -> None:
    y, scores = np.repeat([1, 0], 30), np.repeat([1.0, 0.0], 30)
    found = cost_report(y, scores, AmountCosts(Price(rate=1), Price(rate=1)), np.full(60, 8.0))
    held_out = found.least.held_out
    assert held_out is not None
    assert found.least.in_sample == 0.0
    assert held_out.cost.low == 0.0
    assert 0.3 < held_out.cost.high < 1.0
    # what flagging no row costs is certain if a missed positive costs nothing
    sure = cost_report(y, scores, AmountCosts(false_positive=1, benefit=2))
    assert sure.flag_none == (0.0, 0.0, 0.0)
    assert value_caught(y, scores, np.full(60, 8.0), over="negatives").area.low < 0.95


@pytest.mark.parametrize("weight", [1.0, 10.0, 100.0, 1000.0, 1e9])
def test_few_effective_rows_have_an_interval_within_the_possible_costs(weight: float) -> None:
    prices = AmountCosts(false_negative=3, review=1)
    found = cost_report([1, 0], [2.0, 1.0], prices, sample_weight=[weight, 1], threshold=1.5)
    assert found.at is not None
    check_costs(found.flag_none, 0.0, 3.0)
    check_costs(found.flag_all, 1.0, 1.0)
    check_costs(found.at.cost, 0.0, 3.0)
    check_costs(found.at.saved_to_none, -3.0, 3.0)
    check_costs(found.at.saved_to_all, -3.0, 3.0)
    # with a rate a greater amount than those seen may cost more: these are the bounds of these rows
    rated = AmountCosts(false_negative=Price(rate=1), review=1)
    open_ended = cost_report([1, 0], [2.0, 1.0], rated, [3, 3], sample_weight=[weight, 1])
    assert 3.0 <= open_ended.flag_none.high < 1e3


def check_costs(found: Any, least: float, greatest: float) -> None:
    value, low, high = found
    assert least <= low <= value <= high <= greatest


@pytest.mark.filterwarnings("error::RuntimeWarning", "error::UserWarning")
def test_the_extremes_of_amounts_weights_and_prices_have_finite_figures() -> None:
    rng = np.random.default_rng(9)
    high, low = Price(1e100, 1e100), Price(1e-100, 1e-100)
    prices = [AmountCosts(high, high, high, 1e100), AmountCosts(low, low, low, 1e-100)]
    prices += [AmountCosts(low, high), AmountCosts(benefit=Price(rate=1.0), review=1.0)]
    for trial in range(40):
        n = (2, 3, 20)[trial % 3]
        y = np.r_[1, 0, rng.integers(0, 2, n - 2)]
        scores = rng.integers(-3, 4, n) * 10.0 ** rng.integers(-300, 300)
        amounts = np.r_[1e100, 5e-324, rng.choice([0, 1e-100, 1, 1e100], n - 2)]
        weights = np.r_[1e-100, 1e100, rng.choice([0, 1e-100, 1, 1e100], n - 2)][:: (-1) ** trial]
        weights[:2] = np.maximum(weights[:2], 1e-100)
        unit = None if trial % 4 else np.arange(n) // 2
        rows: Any = {"sample_weight": weights, "group": unit}
        for over in OVERS:
            assert np.isfinite(value_caught(y, scores, amounts, over=over, **rows).area).all()
        for costs in prices:
            found = cost_report(y, scores, costs, amounts, threshold=0.0, **rows)
            assert found.at is not None
            for interval in (found.flag_none, found.flag_all, found.at.cost, found.at.saved_to_all):
                assert np.isfinite(interval).all()
                assert interval.low <= interval.value <= interval.high


def test_one_unit_has_no_held_out_cost(sentences: Sentences) -> None:
    y, scores = np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 1.0])
    found = cost_report(y, scores, COSTS, np.ones(4), group=np.zeros(4), probability=scores / 4)
    assert found.least.held_out is None
    assert found.probability_saves is None
    with sentences.raises(InvalidData):
        compare_costs(y, [scores, scores], COSTS, np.ones(4), group=np.zeros(4))


ROWS = ([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("amounts", "named"),
    [
        ([1, 2, -1, 0], (-1, 2)),
        ([1, 2, 1e101, 0], ("1e+101", 2)),
        ([1, math.nan, 1, 1], ("nan", 1)),
        ([1, math.inf, 1, 1], ("inf", 1)),
        ([1, 2], (4, 2)),
        (["a", "b", "c", "d"], ("<U1",)),
        ([0, 1, 0, 1], (0,)),
    ],
)
def test_bad_amounts_are_refused(amounts: Any, named: tuple[object, ...]) -> None:
    with raises(InvalidData, "amount", *named):
        value_caught(*ROWS, amounts)
    if amounts != [0, 1, 0, 1]:
        with raises(InvalidData, "amount", *named):
            cost_report(*ROWS, COSTS, amounts)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (AmountCosts, ("false_positive", "review")),
        (lambda: AmountCosts(false_positive=1), ("false_negative", "benefit")),
        (lambda: AmountCosts(benefit=1), ("false_positive", "review")),
        (lambda: AmountCosts(-1, 1), ("false_positive", -1)),
        (lambda: AmountCosts(1, Price(rate=math.nan)), ("false_negative.rate", "nan")),
        (lambda: AmountCosts(1, math.inf), ("false_negative", "inf")),
        (lambda: AmountCosts(True, 1), ("false_positive", True)),
        (lambda: AmountCosts("1", 1), ("false_positive", "'1'")),
        (lambda: cost_report(*ROWS, COSTS), ("amount",)),
        (lambda: cost_report(*ROWS, COSTS, [1] * 4, level=1), ("level", 1)),
        (lambda: cost_report(*ROWS, COSTS, [1] * 4, random_state=-1), ("random_state", -1)),
        (lambda: cost_report(*ROWS, COSTS, [1] * 4, threshold=math.nan), ("threshold", "nan")),
        (
            lambda: cost_report(*ROWS, COSTS, [1] * 4, probability=[0, 1, 2, 0]),
            ("probability", 2.0),
        ),
        (lambda: value_caught(*ROWS, [1] * 4, at=[0]), ("at", 0)),
        (lambda: value_caught(*ROWS, [1] * 4, at=[1.1]), ("at", 1.1)),
        (lambda: value_caught(*ROWS, [1] * 4, over="columns"), ("over", "'columns'")),
        (lambda: value_caught(*ROWS, [1, 0, 1, 0], over="amount_of_negatives"), ("amount",)),
        (lambda: compare_costs(ROWS[0], [ROWS[1]], COSTS, [1] * 4), ("scores", 1)),
    ],
)
def test_bad_parameters_are_refused(call: Any, named: tuple[object, ...]) -> None:
    with raises((InvalidParameter, InvalidData), *named):
        call()


def test_intervals_cover() -> None:
    """Short form of `benchmarks.coverage --tables amounts`: samples of 1,000 rows, amounts of a factor e."""
    from benchmarks.coverage import AmountKind, cover_amounts

    found = cover_amounts(
        AmountKind(1_000, 1.0), 300 if LONG_FORM else 50, 250_000 if LONG_FORM else 50_000
    )
    for name, share in found.covered.items():
        assert (0.88 if LONG_FORM else 0.84) <= share, name
    assert found.in_sample < -0.04
    assert abs(found.held_out) < 0.04
    assert found.called_different <= 0.06


@pytest.mark.parametrize("weight", [150.0, 500.0, 1e9])
def test_one_row_with_most_of_the_weight_says_little(weight: float) -> None:
    """Its own loss would look certain: intervals of 0.95 must contain the population's means in most samples."""
    costs = AmountCosts(false_negative=5, false_positive=1)
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[Any, Any]:
        y = rng.random(n) < 0.2
        return y, rng.normal(size=n) + 1.5 * y

    truth = cost_report(*draw(100_000), costs, threshold=1.0)
    assert truth.at is not None
    missed = 0
    weights = np.append(weight, np.ones(50))
    for _ in range(60):
        y, scores = draw(51)
        if y[1:].all() or not y[1:].any():
            continue
        found = cost_report(y, scores, costs, threshold=1.0, sample_weight=weights)
        assert found.at is not None
        missed += not found.at.cost.low <= truth.at.cost.value <= found.at.cost.high
        saved, true = found.at.saved_to_none, truth.at.saved_to_none.value
        missed += not saved.low <= true <= saved.high
        value = value_caught(y, scores, np.ones(51), sample_weight=weights).area
        missed += not value.low <= 0.74 <= value.high
    assert missed <= 18  # of 180


@given(table=tables(), data=st.data())
def test_costs_at_thresholds_by_definition(table: Any, data: Any) -> None:
    """Every row is decided, and what is random is the mean over all ways to flag as much of the weight."""
    y, scores, amounts, weights = table
    weight = np.ones(len(y)) if weights is None else weights
    rule = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))), float)
    costs = AmountCosts(
        false_positive=Price(0.5, 0.25), false_negative=Price(1.0, 2.0), review=0.125
    )
    missed, wrong, _ = costs.of(amounts)
    unflagged = np.where(y == 1, missed, 0.0)
    flagged = 0.125 + np.where(y == 1, 0.0, wrong)
    thresholds = [math.inf, *np.unique(scores).tolist()]

    def mean(values: np.ndarray) -> float:
        return float((weight * values).sum() / weight.sum())

    for decides in (True, False):
        found = costs_at_thresholds(
            y, scores, costs, amounts, thresholds=thresholds, rule=rule, rule_decides=decides,
            sample_weight=weights,
        )  # fmt: skip
        assert found.flag_none.value == pytest.approx(mean(unflagged))
        assert found.flag_all.value == pytest.approx(mean(flagged))
        least = {at: mean(np.where(scores >= at, flagged, unflagged)) for at in thresholds}
        assert least[found.least] == pytest.approx(min(least.values()))
        for threshold, point in zip(thresholds, found.points, strict=True):
            own = scores >= threshold
            share = mean(own.astype(float))
            assert point.flagged == pytest.approx(share)
            assert point.cost.value == pytest.approx(least[threshold])
            at_random = share * mean(flagged) + (1 - share) * mean(unflagged)
            saved = pytest.approx(at_random - least[threshold], abs=1e-9)
            assert point.saved_to_random.value == saved
            its = (rule != 0).astype(float)
            if not decides:  # the highest scores, of the last one a part
                its, left = np.zeros(len(y)), share * weight.sum()
                for each in np.unique(rule)[::-1]:
                    held = weight[rule == each].sum()
                    its[rule == each] = min(1.0, max(0.0, left / held)) if held else 0.0
                    left -= held
            other = mean(its * flagged + (1 - its) * unflagged)
            assert point.saved_to_rule is not None
            assert point.saved_to_rule.value == pytest.approx(other - least[threshold], abs=1e-9)
            for each in (point.cost, point.saved_to_random, point.saved_to_rule):
                assert each.low <= each.value <= each.high


COVERED_ROWS = (
    # rows, prevalence, spread of the log amounts, rounded scores, threshold, and the least share covered of
    # the cost and of the savings compared with random flagging, with decisions and with a score
    (300, 0.1, 1.0, False, 1.5, (0.92, 0.91, 0.93, 0.93)),
    (300, 0.1, 1.0, True, 1.0, (0.85, 0.88, 0.87, 0.93)),
    (1000, 0.02, 0.5, False, 1.5, (0.92, 0.93, 0.92, 0.93)),
    (2000, 0.05, 1.5, False, 2.0, (0.89, 0.88, 0.93, 0.89)),
    (2000, 0.3, 0.5, False, 1.0, (0.93, 0.93, 0.92, 0.93)),
)


@pytest.mark.parametrize("case", COVERED_ROWS if LONG_FORM else COVERED_ROWS[1:2])
def test_intervals_of_savings_cover(case: Any) -> None:
    """With 20 to 600 positives; worst are rounded scores that miss few positives, and heavy tails of the amounts."""
    n, prevalence, spread, rounded, threshold, least = case
    costs = AmountCosts(false_negative=Price(rate=1.0), false_positive=0.3)

    def draw(rng: Any, n: int) -> tuple[np.ndarray, ...]:
        y = (rng.random(n) < prevalence).astype(int)
        scores, other = rng.normal(size=n) + 1.2 * y, rng.normal(size=n) + 0.7 * y
        amounts = rng.lognormal(0.0, spread, n)
        return y, amounts, *((np.round(scores), np.round(other)) if rounded else (scores, other))

    y, amounts, scores, other = draw(np.random.default_rng(1), 2_000_000 if LONG_FORM else 400_000)
    saves = np.where(y == 1, amounts, -0.3)
    own = scores >= threshold
    share = own.mean()
    by_score = np.zeros(len(y))
    last = np.sort(other)[::-1][int(share * len(y))]
    tied = other == last
    by_score[other > last] = 1.0
    by_score[tied] = (share - (other > last).mean()) / tied.mean()
    truth = (
        np.where(y == 1, amounts * ~own, 0.3 * own).mean(),
        ((own - share) * (saves - saves.mean())).mean(),
        ((own * 1.0 - (other >= 1.3)) * saves).mean(),
        ((own - by_score) * saves).mean(),
    )
    samples = 1500 if LONG_FORM else 60
    covered = np.zeros(4)
    for seed in range(samples):
        y, amounts, scores, other = draw(np.random.default_rng(1000 + seed), n)
        decided, scored = (
            costs_at_thresholds(
                y, scores, costs, amounts, thresholds=[threshold], rule=rule, rule_decides=decides
            ).points[0]
            for rule, decides in ((other >= 1.3, True), (other, False))
        )
        found = (decided.cost, decided.saved_to_random, decided.saved_to_rule, scored.saved_to_rule)
        covered += [each.low <= true <= each.high for each, true in zip(found, truth, strict=True)]
    allowed = np.array(least) - (0.0 if LONG_FORM else 0.1)
    assert (covered / samples >= allowed).all(), covered / samples


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"thresholds": [math.nan]}, "thresholds must be a number"),
        ({"thresholds": [1.0], "prevalence": 1.0}, "prevalence must be strictly between 0 and 1"),
        ({"thresholds": [1.0], "level": 1.0}, "level"),
        ({"thresholds": [1.0], "rule": [1.0, math.nan, 0.0, 1.0]}, "rule"),
        ({"thresholds": [1.0], "rule": [1.0]}, "rule"),
    ],
)
def test_wrong_arguments_of_costs_at_thresholds(
    more: dict[str, Any], words: str, sentences: Sentences
) -> None:
    costs = AmountCosts(1.0, 5.0)
    with sentences.raises(InvalidData, InvalidParameter) as caught:
        costs_at_thresholds([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], costs, **more)
    assert words in str(caught.value)
