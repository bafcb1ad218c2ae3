"""Figures of the top of a list against brute force, scikit-learn, derivatives by differences, and simulation."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from itertools import groupby, permutations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import binom, mannwhitneyu, norm
from sklearn.metrics import average_precision_score, ndcg_score
from sklearn.metrics import precision_recall_curve as sklearn_curve

from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    AveragePrecision,
    EmpiricalArea,
    Lift,
    Ndcg,
    PrecisionAt,
    PrecisionAtRecall,
    TwoWayArea,
    WindowArea,
    auc_interval,
    compare,
    compare_metrics,
    gains_table,
    list_curve,
    measure,
    measure_on_curve,
    metric_named,
    partial_auc,
    partial_auc_interval,
    roc_curve,
    score_histogram,
    summarise,
)
from core.metrics.estimates import wilson_interval
from core.metrics.functionals.base import Masses
from core.metrics.groups import check_rows
from core.metrics.measuring import estimate_metrics
from core.metrics.window import window_counts
from tests.core.metrics.naive import curve_and_totals, rankings, repeat_rows
from tests.long_form import LONG_FORM, long_form
from tests.raising import raises
from tests.sentences import Sentences

Ranking = tuple[np.ndarray, np.ndarray, Any]
METRICS = [
    AveragePrecision(),
    PrecisionAt(share=0.1),
    PrecisionAt(count=12),
    Ndcg(),
    Ndcg(10),
    TwoWayArea(0.3, 0.4),
    WindowArea(0.0, 0.2),
    Lift(share=0.15),
    PrecisionAtRecall(0.6),
    EmpiricalArea(0.0, 0.2),
]

VARYING = [
    "average_precision", "precision@10%", "precision@50%", "lift@2%", "lift@10%", "lift@50%",
    "precision_at_recall:0.5",
]  # fmt: skip


def orders(y: np.ndarray, scores: np.ndarray) -> Iterator[list[int]]:
    """The labels from the top of the list down, for every order of the ties."""
    ranked = sorted(zip(scores.tolist(), y.tolist(), strict=True), reverse=True)
    ties = [[label for _, label in tie] for _, tie in groupby(ranked, key=lambda row: row[0])]
    for parts in product(*(permutations(tie) for tie in ties)):
        yield [label for part in parts for label in part]


def value(metric: Any, y: Any, scores: Any, weights: Any = None) -> float:
    return measure(y, scores, [metric], sample_weight=weights)[0].interval.value


@given(rankings(max_rows=6), st.integers(1, 6))
def test_ties_count_their_mean_over_all_orders(ranking: Ranking, size: int) -> None:
    y, scores, _ = ranking
    size = min(size, len(y))
    lists = list(orders(y, scores))
    assert value(PrecisionAt(count=size), y, scores) == pytest.approx(
        np.mean([sum(labels[:size]) / size for labels in lists])
    )
    gains = [1.0 / math.log2(rank + 2) for rank in range(len(y))]
    best = sum(gains[: min(size, int(y.sum()))])
    dcg = [sum(g * label for g, label in zip(gains[:size], each, strict=False)) for each in lists]
    assert value(Ndcg(size), y, scores) == pytest.approx(np.mean(dcg) / best)


@given(rankings(weighted=True), st.floats(0.01, 1.0))
def test_lift_and_the_precision_at_a_recall_are_those_of_their_definitions(
    ranking: Ranking, part: float
) -> None:
    y, scores, weights = ranking
    precision = value(PrecisionAt(share=part), y, scores, weights)
    prevalence = (weights * y).sum() / weights.sum()
    assert value(Lift(share=part), y, scores, weights) == pytest.approx(precision / prevalence)
    # of all lists that a threshold gives, the shortest one with enough positives
    wanted = part * (weights * y).sum() * (1 - 1e-12)
    lists = [weights * (scores >= cutoff) for cutoff in scores]
    shortest = min((each for each in lists if (each * y).sum() >= wanted), key=np.sum)
    found = value(PrecisionAtRecall(part), y, scores, weights)
    assert found == pytest.approx((shortest * y).sum() / shortest.sum())


@given(rankings(weighted=True))
def test_average_precision_is_that_of_its_definition_and_of_scikit_learn(ranking: Ranking) -> None:
    y, scores, weights = ranking
    found = value(AveragePrecision(), y, scores, weights)
    expected = average_precision_score(y, scores, sample_weight=weights)
    assert found == pytest.approx(expected, rel=0, abs=1e-12)
    assert found == pytest.approx(value(AveragePrecision(), *repeat_rows(y, scores, weights)))
    total = area = 0.0
    for cutoff in sorted(set(scores.tolist()), reverse=True):
        flagged = weights * (scores >= cutoff)
        new = (weights * (scores == cutoff) * (y == 1)).sum()
        area += new * (flagged * (y == 1)).sum() / flagged.sum()
        total += new
    assert found == pytest.approx(area / total)


@pytest.mark.parametrize("digits", [0, 1, 6])
def test_ndcg_and_the_points_of_the_curve_are_scikit_learns(digits: int) -> None:
    rng = np.random.default_rng(digits)
    y = (rng.random(300) < 0.2).astype(int)
    scores = np.round(rng.normal(size=300) + y, digits)
    for size in (None, 1, 7, 60, 300):
        expected = ndcg_score([y], [scores], k=size)
        assert value(Ndcg(size), y, scores) == pytest.approx(expected, rel=0, abs=1e-12)
    curve = list_curve("precision_recall", roc_curve(y, scores), float(y.mean()))
    precision, recall, thresholds = sklearn_curve(y, scores)
    np.testing.assert_allclose(curve.y, precision[-2::-1], atol=1e-12)
    np.testing.assert_allclose(curve.x, recall[-2::-1], atol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds[::-1])


def gain_of_ranks(first: float, end: float) -> float:
    """Σ 1 / log₂(rank + 1) over the ranks after `first` up to `end`, not rank by rank beyond a hundred thousand."""
    near = np.arange(min(first, 1e5) + 1.0, min(end, 1e5) + 1.0)
    edges = np.geomspace(max(first, 1e5), max(end, 1e5), 1025)
    at = 0.5 * np.multiply.outer([-(0.6**0.5), 0.0, 0.6**0.5], np.ones(1024)) * np.diff(edges)
    at += (
        0.5 * (edges[1:] + edges[:-1]) + 0.5
    )  # a rank counts from half a rank before to half a rank after
    far = np.array([5, 8, 5]) / 18 @ (1.0 / np.log2(at + 1.0)) * np.diff(edges)
    return float((1.0 / np.log2(near + 1.0)).sum() + far.sum())


@pytest.mark.parametrize("weight", [40_000.0, 1e12, 1e30])
@pytest.mark.parametrize("size", [None, 150, 3_000_000, 999_999_999])
def test_ndcg_of_many_ranks_needs_no_memory_for_each(weight: float, size: int | None) -> None:
    rng = np.random.default_rng(8)
    y = (rng.random(200) < 0.3).astype(int)
    scores = np.round(rng.normal(size=200) + y, 1)
    weights = np.full(200, weight)
    weights[:50] = 1.0
    tracemalloc.start()
    try:
        found = measure(y, scores, [Ndcg(size)], sample_weight=weights)[0]
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
    total, positive = weights.sum(), weights[y == 1].sum()
    length = total if size is None else min(total, size)
    above = gained = 0.0
    for score in sorted(set(scores.tolist()), reverse=True):
        tie = weights[scores == score].sum()
        of_tie = gain_of_ranks(min(above, length), min(above + tie, length)) / tie
        gained += (weights * y)[scores == score].sum() * of_tie
        above += tie
    best = gain_of_ranks(0.0, min(length, positive))
    assert found.interval.value == pytest.approx(gained / best, rel=1e-8)
    chance = positive / total * gain_of_ranks(0.0, length) / best
    assert found.chance == pytest.approx(chance, rel=1e-8)
    assert found.interval.low <= found.interval.value <= found.interval.high


@given(st.permutations(range(30)), st.integers(1, 10), st.integers(0, 9))
def test_the_two_way_area_is_a_fraction_of_pairs(order: list[int], most: int, least: int) -> None:
    y, scores = np.repeat([1, 0], [10, 20]), np.array(order, dtype=float)
    positives, negatives = np.sort(scores[:10])[::-1], np.sort(scores[10:])[::-1]
    pairs = positives[least:, None] > negatives[: 2 * most]
    found = value(TwoWayArea(most / 10, least / 10), y, scores)
    assert found == pytest.approx(pairs.mean(), abs=1e-9)


@given(rankings(weighted=True), st.floats(0.0, 0.9), st.floats(0.05, 1.0))
def test_the_strict_area_is_that_of_its_definition(
    ranking: Ranking, start: float, width: float
) -> None:
    y, scores, weights = ranking
    window = (start, min(1.0, start + width))
    options = {"definition": "empirical", "sample_weight": weights}
    expected = partial_auc(y, scores, *window, **options)
    assert value(EmpiricalArea(*window), y, scores, weights) == pytest.approx(expected)
    negatives = np.sort(scores[y == 0])[::-1]
    first, last = window_counts(len(negatives), *window)
    pairs = scores[y == 1][:, None] > negatives[first:last]
    assert value(EmpiricalArea(*window), y, scores) == pytest.approx(pairs.mean())


def test_without_ties_strict_pairs_vary_as_areas_do() -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0], [60, 200])
    scores = rng.normal(size=260) + y
    strict, area = measure(y, scores, [EmpiricalArea(0.05, 0.3), WindowArea(0.05, 0.3)])
    np.testing.assert_allclose(strict.interval, area.interval, atol=0.003)
    orders_of_chance = [
        value(EmpiricalArea(0.0, 0.02), y, rng.permutation(260)) for _ in range(100)
    ]
    (found,) = measure(y, scores, [EmpiricalArea(0.0, 0.02)])
    assert found.chance == pytest.approx(2.5 / 201)
    error = np.std(orders_of_chance) / 10.0
    assert abs(np.mean(orders_of_chance) - found.chance) < 4 * error


def test_the_intervals_of_areas_are_those_of_their_own_functions() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [60, 140])
    scores, group = rng.normal(size=200).round(1) + y, np.arange(200) // 4
    for options in ({}, {"group": group}, {"sample_weight": rng.random(200) + 0.1}):
        found = measure(y, scores, [WindowArea(), WindowArea(0.0, 0.2)], **options)
        np.testing.assert_allclose(found[0].interval, auc_interval(y, scores, **options))
        np.testing.assert_allclose(
            found[1].interval, partial_auc_interval(y, scores, 0.0, 0.2, **options)
        )
    other = rng.normal(size=200) + y
    mine, theirs = (
        compare_metrics(y, [scores, other], [WindowArea()])[0],
        compare(y, [scores, other]).windows[0],
    )
    assert mine.differences[0].p_value == pytest.approx(theirs.differences[0].p_value)
    assert mine.joint_p_value == pytest.approx(theirs.joint_p_value)


@pytest.mark.parametrize(
    "metric",
    [AveragePrecision(), WindowArea(0.05, 0.41), TwoWayArea(0.43, 0.37), EmpiricalArea(0.05, 0.41)],
)
def test_derivatives_are_those_by_differences(metric: Any) -> None:
    rng = np.random.default_rng(1)
    positive, negative = rng.random(40) + 0.1, rng.random(40) + 0.1
    step = 1e-6

    def moved(of_positives: bool, index: int, by: float) -> float:
        masses = [positive.copy(), negative.copy()]
        own = masses[0 if of_positives else 1]
        total = own.sum()
        own[index] += by * total
        own *= total / own.sum()
        return metric.of(Masses(masses[0], masses[1], (40.0, 40.0))).value

    _, up, down, slope = metric.of(Masses(positive, negative, (40.0, 40.0)))
    for of_positives, found, mass in ((True, up, positive), (False, down, negative)):
        expected = [
            (moved(of_positives, i, step) - moved(of_positives, i, -step)) / (2 * step)
            for i in range(40)
        ]
        centred = found - (mass * found).sum() / mass.sum()
        np.testing.assert_allclose(centred, expected, atol=1e-5)
    ends = [
        metric.of(Masses(positive, negative * math.exp(-by), (40.0, 40.0))).value
        for by in (-step, step)
    ]
    assert slope == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=1e-5)


def spread(compared: Any) -> np.ndarray:
    """The difference, the ends of its interval and its p-value."""
    (difference,) = compared.differences
    return np.array([difference.value, difference.low, difference.high, difference.p_value])


def test_figures_of_folds_are_means_with_the_error_of_means(sentences: Sentences) -> None:
    rng = np.random.default_rng(3)
    y, fold = np.repeat([1, 0], [80, 320]), np.arange(400) % 4
    one, other = (rng.normal(size=400).round(1) + y for _ in range(2))
    metrics = [WindowArea(), AveragePrecision(), Lift(share=0.1)]
    area, precision, lift = compare_metrics(y, [one, other], metrics, fold=fold)
    expected = compare(y, [one, other], fold=fold).windows[0]
    np.testing.assert_allclose(area.values, expected.values)
    np.testing.assert_allclose(spread(area), spread(expected))
    for compared, metric in ((precision, AveragePrecision()), (lift, Lift(share=0.1))):
        mean = [
            np.mean([value(metric, y[fold == k], each[fold == k]) for k in range(4)])
            for each in (one, other)
        ]
        np.testing.assert_allclose([interval.value for interval in compared.values], mean)
        assert compared.differences[0].value == pytest.approx(mean[0] - mean[1])
    base = compare_metrics(y, [one, other], [PrecisionAt(share=0.1)], fold=fold)[0]
    # the prevalence of each fold is .2: fixed, it makes the lift a multiple of the precision
    pair = [PrecisionAt(share=0.1), Lift(share=0.1)]
    known, multiple = compare_metrics(y, [one, other], pair, fold=fold, fixed_prevalence=True)
    np.testing.assert_allclose(multiple.values, 5.0 * np.array(known.values))
    np.testing.assert_allclose(spread(multiple)[:3], 5.0 * spread(known)[:3])
    assert spread(multiple)[3] == pytest.approx(spread(known)[3])
    for free, fixed in zip(base.values, known.values, strict=True):
        assert free.value == fixed.value
        assert free.high - free.low > fixed.high - fixed.low
    row = np.tile(np.arange(400), 2)
    twice = compare_metrics(
        y[row],
        [one[row], other[row]],
        metrics,
        fold=fold[row],
        repeat=np.repeat([0, 1], 400),
        row=row,
    )
    for single, repeated in zip((area, precision, lift), twice, strict=True):
        np.testing.assert_allclose(repeated.values, single.values)
    with sentences.raises(InvalidParameter):
        compare_metrics(y, [one, other], [PrecisionAt(count=5)], fold=fold)


def test_intervals_cover_and_tests_keep_their_level() -> None:
    """Short form of `benchmarks.coverage --tables top`: draws of two scorers that are equally good."""
    rng, draws = np.random.default_rng(11), 400 if LONG_FORM else 80
    y = np.repeat([1, 0], [150, 450])
    many = np.repeat([1, 0], [45_000, 135_000])
    truth = [value(metric, many, rng.normal(size=180_000) + 1.2 * many) for metric in METRICS]
    lists = np.zeros((draws, len(METRICS)))
    low, high, called = lists.copy(), lists.copy(), np.zeros(len(METRICS))
    for draw in range(draws):
        shared = rng.normal(size=600)
        scores = [math.sqrt(0.5) * (shared + rng.normal(size=600)) + 1.2 * y for _ in range(2)]
        compared = compare_metrics(y, scores, METRICS, fixed_prevalence=True)
        for j, found in enumerate(compared):
            lists[draw, j], low[draw, j], high[draw, j] = found.values[0]
            called[j] += found.differences[0].p_value < 0.05
    for j, metric in enumerate(METRICS):
        # a list of 600 rows is what these are about: the mean over lists is the figure of the population
        if metric.name in ("ndcg", "ndcg@10", "precision@12"):
            truth[j] = lists[:, j].mean()
        covered = int(((low[:, j] <= truth[j]) & (truth[j] <= high[:, j])).sum())
        assert covered >= binom.ppf(0.001, draws, 0.92), (metric.name, covered / draws)
        assert called[j] <= binom.ppf(0.999, draws, 0.065), (metric.name, called[j] / draws)


def test_intervals_cover_in_new_samples_whose_prevalence_varies() -> None:
    """Short form of `benchmarks.coverage --tables top`: rows are drawn one by one."""
    rng, draws, share = np.random.default_rng(2), 300 if LONG_FORM else 60, 0.2
    metrics = [metric_named(name) for name in VARYING]
    many = rng.random(200_000) < share
    truth = [value(metric, many, rng.normal(size=many.size) + 1.6 * many) for metric in metrics]
    covered, at_fixed, of_gains = np.zeros(len(metrics)), np.zeros(len(metrics)), np.zeros(3)
    for _ in range(draws):
        y = rng.random(400) < share
        scores = rng.normal(size=y.size) + 1.6 * y
        for j, metric in enumerate(measure(y, scores, metrics)):
            covered[j] += metric.interval.low <= truth[j] <= metric.interval.high
        for j, metric in enumerate(measure(y, scores, metrics, fixed_prevalence=True)):
            at_fixed[j] += metric.interval.low <= truth[j] <= metric.interval.high
        (gain,) = gains_table(*curve_and_totals(y, scores), shares=[0.5])
        precision = truth[VARYING.index("precision@50%")]
        targets = precision, precision * 0.5 / share, precision / share
        shown = gain.precision, gain.recall, gain.lift
        of_gains += [each.low <= t <= each.high for each, t in zip(shown, targets, strict=True)]
    least = binom.ppf(0.001, draws, 0.94)
    assert (covered >= least).all(), dict(zip(VARYING, covered / draws, strict=True))
    assert (of_gains >= least).all(), of_gains / draws
    # what it takes to see the difference: the prevalence fixed by name leaves its variance out
    assert at_fixed[VARYING.index("precision@50%")] < 0.75 * draws
    assert at_fixed[VARYING.index("lift@2%")] < 0.8 * draws


def test_the_first_rows_of_a_whole_list_have_the_prevalence_as_their_precision() -> None:
    y, scores = np.repeat([1, 0], [30, 70]), np.arange(100.0)
    precision, lift = measure(y, scores, [PrecisionAt(share=1.0), Lift(share=1.0)])
    # the prevalence is the fraction of 100 rows drawn one by one
    np.testing.assert_allclose(precision.interval, wilson_interval(0.3, 100), atol=0.01)
    assert lift.interval.value == lift.interval.high == pytest.approx(1.0)
    (fixed,) = measure(y, scores, [PrecisionAt(share=1.0)], fixed_prevalence=True)
    assert fixed.interval.high == pytest.approx(0.3)


def test_a_list_that_begins_with_positives_alone_has_a_lift_of_uncertain_prevalence() -> None:
    """Without a negative near the cut neither end may be nearer than that of the prevalence alone."""
    y, scores = np.repeat([1, 0], [100, 300]), -np.arange(400.0)
    found, few = measure(y, scores, [Lift(share=0.05), Lift(share=0.0075)])
    error = 1.96 * math.sqrt(0.75 / 100)
    assert found.interval.value == pytest.approx(4.0)
    assert found.interval.low < 4.0 * math.exp(-error)
    assert found.interval.high > 4.0 * math.exp(0.9 * error)
    assert few.interval.low < 4.0 * 3 / (3 + 1.96**2) * 1.2


@long_form
@pytest.mark.parametrize(
    ("n_rows", "share"), [(1050, 50 / 1050), pytest.param(150, 1 / 3, marks=long_form)]
)
def test_few_positives_do_not_call_equal_scorers_different(n_rows: int, share: float) -> None:
    """By plain standard errors 11 % for NDCG of 50 positives among 1,050 rows, and 8 % for average precision."""
    rng, draws = np.random.default_rng(1), 400
    metrics = [Ndcg(), Ndcg(20), AveragePrecision()]
    called = np.zeros(3)
    for _ in range(draws):
        y = rng.random(n_rows) < share
        shared = rng.normal(size=n_rows)
        scores = [math.sqrt(0.5) * (shared + rng.normal(size=n_rows)) + 1.2 * y for _ in range(2)]
        for j, found in enumerate(compare_metrics(y, scores, metrics)):
            (pair,) = found.differences
            called[j] += pair.p_value < 0.05
            assert found.joint_p_value == pair.p_value
            assert (pair.p_value < 0.05) == (not pair.low <= 0.0 <= pair.high)
    assert (called <= binom.ppf(0.99, draws, 0.06)).all(), called / draws


@long_form
def test_the_precision_at_a_high_recall_covers_with_twenty_positives() -> None:
    """On the logit scale 87 %: the second lowest positive decides it."""
    rng, draws, share, recall = np.random.default_rng(4), 400, 0.02, 0.9
    fpr = norm.sf(norm.isf(recall) + 2.9)
    truth = share * recall / (share * recall + (1.0 - share) * fpr)
    metric, covered, compared = PrecisionAtRecall(recall), 0, 0
    for _ in range(draws):
        y = rng.random(1000) < share
        scores = rng.normal(size=1000) + 2.9 * y
        found = measure(y, scores, [metric])[0].interval
        covered += found.low <= truth <= found.high
        if compared < 3:
            compared += 1
            both = compare_metrics(y, [scores, rng.normal(size=1000)], [metric])[0]
            np.testing.assert_allclose(both.values[0], found)
    assert covered >= binom.ppf(0.01, draws, 0.95), covered / draws


def test_ndcg_of_a_short_list_is_tested_by_all_its_orders() -> None:
    """And rejects 5 % where most of the list counts, which a normal approximation does not."""
    rng, (m, n), size = np.random.default_rng(3), (12, 18), 6
    gains = 1.0 / np.log2(np.arange(size) + 2.0)
    cases = list(product([0, 1], repeat=size))
    likely = np.array([comb(m + n - size, m - sum(case)) for case in cases]) / comb(m + n, m)
    sums = np.array(cases) @ gains
    y = np.repeat([1, 0], [m, n])
    for _ in range(20):
        scores = rng.normal(size=m + n) + 0.3 * y
        (found,) = measure(y, scores, [Ndcg(size)])
        reached = y[np.argsort(-scores)[:size]] @ gains
        assert found.p_value == pytest.approx(likely[sums >= reached - 1e-9].sum())
    y, rejected = np.repeat([1, 0], [500, 100]), 0
    for _ in range(300):
        (found,) = measure(y, rng.normal(size=600), [Ndcg()])
        rejected += found.p_value < 0.05
    assert rejected <= binom.ppf(0.99, 300, 0.05)


def test_a_few_heavy_rows_widen_the_interval() -> None:
    """Equal weights do not."""
    rng = np.random.default_rng(2)
    y = (rng.random(1_000) < 0.1).astype(int)
    scores = rng.normal(size=1_000) + 1.2 * y
    (plain,) = measure(y, scores, [AveragePrecision()])
    (equal,) = measure(y, scores, [AveragePrecision()], sample_weight=np.full(1_000, 2.5))
    np.testing.assert_allclose(equal.interval, plain.interval)
    heavy = np.ones(1_000)
    heavy[np.flatnonzero(y == 0)[::300]] = 100.0
    heavy[np.argmax(np.where(y == 0, scores, -9.0))] = 100.0
    (found,) = measure(y, scores, [AveragePrecision()], sample_weight=heavy)
    rows = check_rows(y, {"scores": scores}, heavy)
    error = math.sqrt(estimate_metrics(rows, [AveragePrecision()])[0].variance(0, 0))
    assert found.interval.high - found.interval.low > 2.5 * 1.96 * error


def test_scores_that_say_nothing_seldom_beat_chance() -> None:
    rng, draws = np.random.default_rng(5), 600 if LONG_FORM else 60
    y = np.repeat([1, 0], [100, 300])
    beyond, any_adjusted = np.zeros(len(METRICS)), 0
    for _ in range(draws):
        found = measure(y, rng.normal(size=400), METRICS)
        beyond += [each.p_value is not None and each.p_value < 0.05 for each in found]
        any_adjusted += any(
            each.adjusted_p_value is not None and each.adjusted_p_value < 0.05 for each in found
        )
    assert (beyond <= binom.ppf(0.999, draws, 0.075)).all(), dict(
        zip([metric.name for metric in METRICS], beyond / draws, strict=True)
    )
    assert any_adjusted <= binom.ppf(0.999, draws, 0.075)
    good = measure(y, rng.normal(size=400) + 1.5 * y, METRICS)
    assert all(each.p_value is None or each.p_value < 0.001 for each in good)
    assert good[METRICS.index(TwoWayArea(0.3, 0.4))].chance is None


ALL_TIED = (np.array([1, 1, 0, 0]), np.zeros(4), np.array([1.0, 1.0, 1.0, 2.0]))


@given(rankings(weighted=True), st.floats(0.05, 1.0))
@example(ALL_TIED, 0.9797706330220531)
def test_a_row_of_the_gains_table_is_precision_at_its_size(ranking: Ranking, share: float) -> None:
    y, scores, weights = ranking
    (gain,) = gains_table(*curve_and_totals(y, scores, weights), shares=[share])
    curve = summarise(y, scores, weights)
    (metric,) = measure_on_curve(curve.curve, curve.totals, [PrecisionAt(share=share)])
    np.testing.assert_allclose(gain.precision, metric.interval, atol=1e-9)
    prevalence = (weights * y).sum() / weights.sum()
    # the interval jumps where as many rows are taken as there are positives: on which side is up to the last digit
    assume(not math.isclose(share, prevalence))
    (lift,) = measure_on_curve(curve.curve, curve.totals, [Lift(share=share)])
    # Its ends have the root of a difference of nearly equal squares, which has half the digits.
    np.testing.assert_allclose(gain.lift, lift.interval, rtol=1e-6)
    np.testing.assert_allclose(gain.recall, np.array(gain.lift) * gain.share, atol=1e-9)
    (known,) = gains_table(
        *curve_and_totals(y, scores, weights), shares=[share], prevalence=prevalence
    )
    (metric,) = measure_on_curve(
        curve.curve, curve.totals, [PrecisionAt(share=share)], fixed_prevalence=True
    )
    np.testing.assert_allclose(known.precision, metric.interval, atol=1e-9)
    np.testing.assert_allclose(known.lift, np.array(known.precision) / prevalence)
    above = weights * (scores > gain.threshold)
    at = weights * (scores == gain.threshold)
    assert gain.tied == pytest.approx(at.sum())
    assert above.sum() + gain.taken == pytest.approx(gain.size)
    caught = (above * y).sum() + (at * y).sum() * gain.taken / gain.tied
    assert gain.positives == pytest.approx(caught)


def test_a_gains_table_of_another_population(sentences: Sentences) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [100, 100])
    scores = rng.normal(size=200) + y
    # negatives nine times as many
    weights = np.where(y == 1, 1.0, 9.0)
    expected = gains_table(
        *curve_and_totals(y, scores, weights), shares=[0.05, 0.5], prevalence=0.1
    )
    found = gains_table(*curve_and_totals(y, scores), shares=[0.05, 0.5], prevalence=0.1)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.precision, other.precision)
        np.testing.assert_allclose(one.recall, other.recall)
    whole = gains_table(*curve_and_totals(y, scores))
    assert [gain.share for gain in whole][:4] == [0.01, 0.02, 0.05, 0.1]
    assert (whole[-1].recall.value, whole[-1].lift.value, whole[-1].size) == (1.0, 1.0, 200.0)
    with sentences.raises(InvalidParameter):
        gains_table(*curve_and_totals(y, scores), counts=[5], prevalence=0.1)


@given(rankings(weighted=True), st.floats(1e-9, 1.0 - 1e-9))
def test_curves_of_a_list_have_the_points_of_their_definitions(
    ranking: Ranking, prevalence: float
) -> None:
    y, scores, weights = ranking
    curve = roc_curve(y, scores, weights)
    cutoffs = sorted(set(scores[weights > 0].tolist()), reverse=True)
    rates = [
        [(weights * own * (scores >= cutoff)).sum() / (weights * own).sum() for own in (y, 1 - y)]
        for cutoff in cutoffs
    ]
    tpr, fpr = np.array(rates).T
    share = prevalence * tpr + (1 - prevalence) * fpr
    found = list_curve("precision_recall", curve, prevalence)
    assert found.thresholds.tolist() == cutoffs
    np.testing.assert_allclose(found.x, tpr)
    np.testing.assert_allclose(found.y, prevalence * tpr / share)
    gains = list_curve("gains", curve, prevalence)
    np.testing.assert_allclose(gains.x, [0.0, *share])
    np.testing.assert_allclose(gains.y, [0.0, *tpr])
    costs = list_curve("cost", curve, prevalence)
    assert (costs.x[0], costs.x[-1]) == (0.0, 1.0)
    at = np.linspace(0.0, 1.0, 41)
    of_every_threshold = np.outer(at, 1 - curve.tpr) + np.outer(1 - at, curve.fpr)
    least = of_every_threshold.min(axis=1)
    np.testing.assert_allclose(np.interp(at, costs.x, costs.y), least, atol=1e-12)
    for weight, cost, cutoff in zip(*costs[:3], strict=True):
        place = int(np.flatnonzero(curve.thresholds == cutoff)[0])
        own = weight * (1 - curve.tpr[place]) + (1 - weight) * curve.fpr[place]
        assert cost == pytest.approx(own)
    for whole in (found, gains, costs):
        assert np.all(np.diff(whole.x) >= 0.0)
        for max_points in (2, 3, 5):
            thin = whole.thin(max_points)
            assert len(thin.x) <= max_points
            assert (thin.x[0], thin.x[-1]) == (whole.x[0], whole.x[-1])
            points = set(zip(*(column.tolist() for column in whole[:3]), strict=True))
            assert points.issuperset(zip(*(column.tolist() for column in thin[:3]), strict=True))


def test_a_thinned_curve_keeps_the_top_of_the_list(sentences: Sentences) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(100_000) < 0.02).astype(int)
    curve = roc_curve(y, rng.normal(size=y.size) + 1.5 * y)
    whole = list_curve("precision_recall", curve, float(y.mean()))
    thin = whole.thin(400)
    assert 300 < len(thin.x) <= 400
    assert np.diff(thin.x).max() < 2 / 199  # the recall moves by no more than two marks
    flagged = np.searchsorted(-whole.thresholds, -thin.thresholds)
    steps = np.diff(np.log(flagged + 1.0))
    assert steps[flagged[:-1] > 200].max() < 2 * math.log(y.size) / 199
    with sentences.raises(InvalidParameter):
        whole.thin(1)


def test_the_histogram_of_scores_is_that_of_the_rows(sentences: Sentences) -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([1, 0], [300, 700])
    scores = rng.normal(size=1000).round(2) + y
    scores[0] = 1e6  # one outlier takes no bin from the others
    edges, positives, negatives = score_histogram(roc_curve(y, scores), 20)
    assert edges.shape == (21,)
    assert edges[-1] < 10
    inside = np.clip(scores, edges[0], edges[-1])
    for value, found in ((1, positives), (0, negatives)):
        expected = np.histogram(inside[y == value], edges)[0] / np.count_nonzero(y == value)
        np.testing.assert_allclose(found, expected)
    one = score_histogram(roc_curve([1, 0, 0], [2.0, 2.0, 2.0]))
    assert (one.edges.tolist(), one.positives.tolist()) == ([1.5, 2.5], [1.0])
    far = [[1.7e308, -1.7e308, -1.7e308], [1e20, 1e20, 1e20], [-1.797e308] * 3]
    for values in far:  # as far apart, and as great, as numbers can be
        wide = score_histogram(roc_curve([1, 0, 0], values))
        assert np.isfinite(wide.edges).all()
        assert (np.diff(0.5 * wide.edges) > 0).all()
        assert wide.positives.sum() == pytest.approx(1.0)
    with sentences.raises(InvalidParameter):
        score_histogram(roc_curve(y, scores), 0)


def test_perfect_scores_have_wide_intervals_and_equal_scorers_no_difference() -> None:
    y = np.repeat([1, 0], [20, 30])
    for found in measure(y, y.astype(float), [AveragePrecision(), Ndcg(5), TwoWayArea(0.5, 0.5)]):
        assert found.interval.value == found.interval.high == 1.0
        assert 0.3 < found.interval.low < 0.9
    scores = np.random.default_rng(0).normal(size=50)
    for compared in compare_metrics(y, [scores, 2 * scores], METRICS):
        (difference,) = compared.differences
        assert (difference.value, difference.p_value) == (0.0, 1.0)
        assert difference.low < 0 < difference.high


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (PrecisionAt, ("count", "share")),
        (lambda: PrecisionAt(count=1, share=0.1), ("count", "share")),
        (lambda: PrecisionAt(count=0), ("count", 0)),
        (lambda: PrecisionAt(count=math.nan), ("count", "nan")),
        (lambda: PrecisionAt(count=math.inf), ("count", "inf")),
        (lambda: PrecisionAt(share=1.1), ("share", 1.1)),
        (lambda: PrecisionAt(share=9e-10), ("share", 9e-10)),
        (lambda: PrecisionAt(share=True), ("share", True)),
        (lambda: Lift(count=0), ("count", 0)),
        (lambda: PrecisionAtRecall(0.0), ("recall", 0.0)),
        (lambda: PrecisionAtRecall(1.1), ("recall", 1.1)),
        (lambda: PrecisionAtRecall(math.nan), ("recall", "nan")),
        (lambda: Ndcg(1, 0.5), ("count", "share")),
        (lambda: Ndcg(share=0.0), ("share", 0.0)),
        (lambda: Ndcg(0), ("count", 0)),
        (lambda: Ndcg(1.5), ("count", 1.5)),
        (lambda: TwoWayArea(0.0, 0.5), ("fpr_max", 0.0)),
        (lambda: TwoWayArea(0.1, 1.0), ("tpr_min", 1.0)),
        (lambda: WindowArea(0.5, 0.5), ("fpr_max", 0.5)),
    ],
)
def test_a_figure_that_is_none_is_refused(make: Any, named: tuple[object, ...]) -> None:
    with raises(InvalidParameter, *named):
        make()


@pytest.mark.parametrize(
    "metric",
    [
        *METRICS,
        WindowArea(),
        PrecisionAt(share=0.001),
        TwoWayArea(0.07, 0.0),
        Lift(count=9),
        Ndcg(share=0.05),
    ],
)
def test_a_name_makes_its_figure(metric: Any) -> None:
    assert metric_named(metric.name) == metric


@pytest.mark.parametrize(
    "name",
    ["", "AUC", "pauc", "pauc:0", "pauc:0.2,0.1", "two_way:0,0.5", "precision@0", "precision@1.5",
     "precision@101%", "precision@1,2", "ndcg@0", "ndcg@101%", "ndcg@1e3", "lift",
     "precision_at_recall:1.5", "auc:1,2", "x" * 1000, "precision@٣"],
)  # fmt: skip
def test_another_name_is_refused(name: str) -> None:
    with raises(InvalidParameter, "metric") as refusal:
        metric_named(name)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "weights", [[1e-3, 1, 1, 1e16], [0.5, 1, 1, 1], [1e-20, 1e-20, 1, 1], [1.5, 3, 1.5, 3]]
)
def test_ndcg_refuses_weights_of_which_some_are_fractions(
    weights: list[float], sentences: Sentences
) -> None:
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        with sentences.raises(InvalidParameter):
            measure([1, 1, 0, 0], np.arange(4.0), [Ndcg()], sample_weight=np.array(weights)[order])


@pytest.mark.parametrize("weight", [7.0, 2.0, 0.3])
def test_equal_weights_count_as_one_row_each_in_ndcg(weight: float) -> None:
    y, scores = [0, 1, 0, 1, 0, 0, 1], [7.0, 6.0, 5.0, 5.0, 3.0, 2.0, 1.0]
    metrics = [Ndcg(), Ndcg(2), Ndcg(share=0.5)]
    weighted = measure(y, scores, metrics, sample_weight=[weight] * 7)
    for found, expected in zip(weighted, measure(y, scores, metrics), strict=True):
        assert found.interval == pytest.approx(expected.interval)
        assert found.p_value == pytest.approx(expected.p_value)


def test_the_test_of_the_auc_against_chance_is_mann_and_whitneys() -> None:
    rng = np.random.default_rng(7)
    y = np.repeat([1, 0], [40, 60])
    scores = np.round(rng.normal(size=y.size) + 0.3 * y, 1)
    (found,) = measure(y, scores, [metric_named("auc")])
    theirs = mannwhitneyu(
        scores[y == 1], scores[y == 0], alternative="greater", use_continuity=False
    )
    assert found.p_value == pytest.approx(theirs.pvalue, rel=0.02)


def test_weights_of_any_size_have_intervals() -> None:
    rng = np.random.default_rng(7)
    for trial in range(30):
        n = int(rng.integers(4, 20))
        y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
        scores, other = rng.normal(size=(2, n)) + y
        powers = rng.integers(-100, 101, n)
        weights = 10.0 ** (powers if trial % 3 else np.where(y == 1, powers[0], powers[1]))
        metrics = [metric for metric in METRICS if not isinstance(metric, Ndcg)]
        metrics = [metric for metric in metrics if getattr(metric, "count", None) is None]
        for fixed in (False, True):
            known: Any = {"sample_weight": weights, "fixed_prevalence": fixed}
            curve = summarise(y, scores, weights)
            measured = measure(y, scores, metrics, **known)
            measured += measure_on_curve(curve.curve, curve.totals, metrics, fixed_prevalence=fixed)
            intervals = [each.interval for each in measured]
            for compared in compare_metrics(y, [scores, other], metrics, **known):
                intervals += compared.values
                assert compared.joint_p_value is None or 0.0 <= compared.joint_p_value <= 1.0
            assert all(low <= value <= high for value, low, high in intervals)


def test_bad_input_is_refused(sentences: Sentences) -> None:
    y, scores = np.array([1, 0, 1, 0]), np.arange(4.0)
    with sentences.raises(InvalidParameter):
        measure(y, scores, [PrecisionAt(count=5)])
    with raises(InvalidParameter, "metrics"):
        measure(y, scores, [])
    with raises(InvalidData, "y", [1.0]):
        measure(np.ones(4), scores, METRICS)
    with raises(InvalidParameter, "scores", 1):
        compare_metrics(y, [scores], METRICS)
    with raises(InvalidParameter, "level", 1.0):
        gains_table(*curve_and_totals(y, scores), level=1.0)


@pytest.mark.parametrize(
    ("positives", "negatives", "options", "tested"),
    [
        (9, 100, {}, False),
        (100, 9, {}, False),
        (10, 10, {}, True),
        (20, 100, {"sample_weight": np.r_[np.full(2, 100.0), np.ones(118)]}, False),
        (10, 100, {"sample_weight": np.full(110, 0.1)}, True),
        (20, 100, {"group": np.r_[np.arange(20) // 4, np.arange(20, 120)]}, False),
    ],
)
def test_a_test_against_chance_needs_ten_effective_rows_of_each_class(
    positives: int, negatives: int, options: dict[str, Any], tested: bool
) -> None:
    y = np.repeat([1, 0], [positives, negatives])
    scores = np.random.default_rng(0).normal(size=y.size) + y
    metrics = [AveragePrecision(), WindowArea(), PrecisionAt(share=0.1), TwoWayArea(0.1, 0.8)]
    for found in measure(y, scores, metrics, **options):
        assert (found.p_value is not None) == (tested and found.chance is not None), found
        assert (found.adjusted_p_value is None) == (found.p_value is None)
        assert found.interval.low <= found.interval.value <= found.interval.high


@pytest.mark.parametrize("terms", [{"shares": [1e-160]}, {"prevalence": 1e-200, "shares": [0.1]}])
def test_gains_of_a_share_or_prevalence_near_0_are_refused(terms: Any) -> None:
    y, scores = np.array([1, 0, 1, 0]), np.arange(4.0)
    with raises(InvalidParameter, "1e-09"):
        gains_table(*curve_and_totals(y, scores), **terms)
    for prevalence in (1e-9, 1.0 - 1e-9):
        for gain in gains_table(
            *curve_and_totals(y, scores), shares=[1e-9, 1.0], prevalence=prevalence
        ):
            for found in (gain.precision, gain.recall, gain.lift):
                assert found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("pauc:0,0.05", "60 negatives"),
        ("empirical:0,0.05", "60 negatives"),
        ("two_way:0.05,0.5", "60 negatives"),
        ("two_way:0.5,0.99", "300 positives"),
    ],
)
def test_a_comparison_by_a_figure_without_p_values_says_how_many_rows_it_needs(
    name: str, needed: str, sentences: Sentences
) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [200, 40])
    scores = [rng.normal(size=y.size) + y for _ in range(2)]
    narrow, whole = compare_metrics(y, scores, [metric_named(name), AveragePrecision()])
    assert narrow.joint_p_value is None
    assert narrow.warning is not None
    assert needed in narrow.warning
    sentences(narrow.warning)
    assert whole.warning is None
    assert whole.joint_p_value is not None
    fold = np.arange(y.size) % 2
    (split,) = compare_metrics(y, scores, [metric_named(name)], fold=fold)
    assert split.joint_p_value is None
    assert split.warning is not None
    assert "in each fold" in split.warning


@pytest.mark.parametrize(("fixed", "groups"), [(False, False), (True, False), (True, True)])
def test_average_precision_of_few_positives_is_covered(fixed: bool, groups: bool) -> None:
    """With 10 + 500 rows and an average precision of .155, the interval was above it in 9 to 11 % of samples."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [10, 500])
    large = rng.normal(size=510_000) + 1.4 * np.repeat(y, 1_000)
    truth = average_precision_score(np.repeat(y, 1_000), large)
    above, draws = 0, 300 if LONG_FORM else 60
    for _ in range(draws):
        scores = rng.normal(size=y.size) + 1.4 * y
        (found,) = measure(
            y,
            scores,
            [AveragePrecision()],
            fixed_prevalence=fixed,
            group=np.arange(y.size) if groups else None,
        )
        above += found.interval.low > truth
    assert above <= (18 if LONG_FORM else 8)
