"""Figures within queries and of graded labels against brute force, scikit-learn and the areas of two classes."""

from __future__ import annotations

import math
from itertools import groupby, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import average_precision_score, ndcg_score

from benchmarks.coverage import measure_coverage_of_lists, measure_graded_coverage
from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    ListAuc,
    ListNdcg,
    ListPrecision,
    ListReciprocalRank,
    auc,
    auc_interval,
    compare_lists,
    list_metric_named,
    list_values,
    measure_graded,
    measure_lists,
    partial_auc,
)
from tests.long_form import LONG_FORM, long_form, one_in
from tests.raising import raises
from tests.sentences import Sentences

NAMES = ("auc", "pauc:0,0.3", "ndcg", "ndcg@3", "map", "mrr", "precision@2")


@st.composite
def graded_lists(draw: Any, max_rows: int = 6, top: int = 3) -> tuple[Any, ...]:
    """Grades, scores with ties, queries and weights (0 among them) of a few rows."""
    n = draw(st.integers(2, max_rows))
    column = lambda values: np.array(draw(st.lists(values, min_size=n, max_size=n)))  # noqa: E731
    grade, scores = column(st.integers(0, top)), column(st.integers(0, 3)).astype(float)
    query, weight = column(st.integers(0, 2)), column(st.sampled_from([0.0, 0.5, 1.0, 2.0]))
    return grade, scores, query, weight


def pair_fraction(grade: Any, scores: Any, weight: Any) -> float:
    right = pairs = 0.0
    for i, j in product(range(len(grade)), repeat=2):
        if grade[i] > grade[j]:
            pairs += weight[i] * weight[j]
            right += (
                weight[i] * weight[j] * ((scores[i] > scores[j]) + (scores[i] == scores[j]) / 2)
            )
    return right / pairs if pairs else math.nan


def over_orders(grade: Any, scores: Any, metric: str, size: int) -> float:
    """The mean of a figure over all orders of the ties of one list."""
    ranked = sorted(zip(scores.tolist(), grade.tolist(), strict=True), reverse=True)
    ties = [[g for _, g in tie] for _, tie in groupby(ranked, key=lambda row: row[0])]
    found = []
    for parts in product(*(permutations(tie) for tie in ties)):
        order = [g for part in parts for g in part]
        if metric == "mrr":
            found.append(1.0 / (1 + next(i for i, g in enumerate(order) if g > 0)))
        elif metric == "precision":
            found.append(sum(g > 0 for g in order[:size]) / min(size, len(order)))
        else:
            gains = [(2**g - 1) / math.log2(i + 2) for i, g in enumerate(order[:size])]
            best = sorted(grade.tolist(), reverse=True)[:size]
            found.append(
                sum(gains) / sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(best))
            )
    return float(np.mean(found))


def expected(name: str, grade: Any, scores: Any, weight: Any) -> float:
    """A figure of one list by its definition, NaN where it has none."""
    family, _, rest = name.replace(":", "@").partition("@")
    if family == "auc":
        return pair_fraction(grade, scores, weight)
    positive = grade > 0
    if family == "pauc":
        if positive.all() or not positive.any():
            return math.nan
        low, high = map(float, rest.split(","))
        return partial_auc(positive, scores, low, high, sample_weight=weight)
    if not positive.any():
        return math.nan
    if family == "map":
        return float(average_precision_score(positive, scores))
    return over_orders(grade, scores, family, int(rest or 99))


@given(graded_lists(), st.sampled_from(NAMES))
@settings(max_examples=1500 if LONG_FORM else 50)
def test_each_list_has_the_figure_of_its_definition(lists: tuple[Any, ...], name: str) -> None:
    grade, scores, query, weight = lists
    if name.startswith("pauc"):
        grade = np.minimum(grade, 1)
    present = weight > 0
    assume(present.any() and len(set(grade)) > 1)
    (values,) = list_values(
        grade, scores, query, [list_metric_named(name)], graded=True, sample_weight=weight
    )
    of_lists = [
        expected(name, *(each[present & (query == q)] for each in (grade, scores, weight)))
        for q in np.unique(query[present])
    ]
    np.testing.assert_allclose(values, of_lists, rtol=1e-12, atol=1e-12)


def test_ndcg_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for top in (1, 4, 31):
        grade = rng.integers(0, top + 1, 5_000)
        scores = np.round(rng.normal(size=5_000) + 0.2 * grade, 1)
        query = np.repeat(np.arange(100), 50)
        for k in (1, 10, None):
            values = list_values(grade, scores, query, [ListNdcg(k)], graded=True)[0]
            theirs = [
                ndcg_score([2.0 ** grade[query == q] - 1], [scores[query == q]], k=k)
                for q in range(100)
            ]
            np.testing.assert_allclose(values, theirs, rtol=1e-12)


def test_the_mean_and_its_interval_are_those_of_the_lists_that_have_a_value() -> None:
    y = [1, 0, 0, 1, 1, 1, 0, 0]
    query = ["a", "a", "b", "b", "c", "c", "d", "d"]
    scores = [2.0, 1.0, 1.0, 1.0, 5.0, 4.0, 0.0, 1.0]
    found = measure_lists(y, scores, query, [ListAuc(), ListReciprocalRank()])
    assert [(each.interval.value, each.queries, each.skipped) for each in found] == [
        (0.75, 2, 2),
        ((1.0 + 0.75 + 1.0) / 3, 3, 1),
    ]
    weight = np.array([3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    weighted = measure_lists(y, scores, query, [ListAuc()], sample_weight=weight)[0]
    assert weighted.interval.value == (3 * 1.0 + 0.5) / 4
    assert weighted.effective_queries == pytest.approx(16 / 10)


def test_a_scorer_compared_with_itself_and_with_a_better_one() -> None:
    rng = np.random.default_rng(2)
    grade, query = rng.integers(0, 3, 600), np.repeat(np.arange(60), 10)
    scores = grade + rng.normal(size=600)
    noise = rng.normal(size=600)
    for found in compare_lists(
        grade, [scores, scores, noise], query, [ListAuc(), ListNdcg(5)], graded=True
    ):
        same, better, _ = found.differences
        assert (same.value, same.p_value) == (0.0, 1.0)
        assert better.low > 0.0
        assert better.adjusted_p_value < 1e-6
        assert found.joint_p_value < 1e-6
        assert (
            found.values[0]
            == measure_lists(grade, scores, query, [found.metric], graded=True)[0].interval
        )


@pytest.mark.parametrize("n_queries", one_in(2, [10, 100]))
def test_intervals_of_lists_cover(n_queries: int) -> None:
    """The short form of `python -m benchmarks.coverage --tables lists`."""
    row = measure_coverage_of_lists(n_queries, 150, 20_000)
    covered, called = ([float(c) for c in cell.split("/")] for cell in row.split("|")[2:4])
    assert min(covered) > 89.0
    assert max(called) < 11.0


@long_form
def test_intervals_of_grades_cover_with_few_rows_of_the_top_grade() -> None:
    """By plain standard errors 90 % for the mean area: three rows of a grade have most of its variance. If what they
    hide is allowed for twice, all samples are covered."""
    row = measure_graded_coverage(60, 1, 600, 100_000)
    covered = [float(c) for c in row.split("|")[2].split("/")]
    assert min(covered) > 100.0 * binom.ppf(0.05, 600, 0.93) / 600
    assert max(covered) < 100.0 * binom.ppf(0.999, 600, 0.98) / 600


def test_intervals_of_grades_cover() -> None:
    row = measure_graded_coverage(300, 5, 200, 100_000)
    assert min(float(share) for share in row.split("|")[2].split("/")) > 89.0


@given(graded_lists(max_rows=8))
@settings(max_examples=1000 if LONG_FORM else 33)
def test_figures_of_grades_are_those_of_their_definition(lists: tuple[Any, ...]) -> None:
    grade, scores, _, weight = lists
    present = weight > 0
    kept = grade[present], scores[present], weight[present]
    assume(len(set(kept[0])) > 1)
    found = measure_graded(grade, scores, sample_weight=weight)
    assert found.c_index.value == pytest.approx(pair_fraction(*kept), abs=1e-12)
    grades = np.unique(kept[0])
    assert found.grades == tuple(grades)
    rows = [np.flatnonzero(kept[0] == g) for g in grades]
    areas = []
    for a, b in product(range(len(grades)), repeat=2):
        area = found.pairwise[a][b]
        assert (area is None) == (a >= b)
        if a < b:
            both = np.concatenate([rows[a], rows[b]])
            assert area == pytest.approx(auc(*(each[both] for each in kept)))
            areas.append(area)
    assert found.mean_auc.value == pytest.approx(np.mean(areas))
    volume = 0.0
    for chain in product(*rows):
        of_chain = kept[1][list(chain)]
        if (np.diff(of_chain) >= 0).all():
            ties = np.unique(of_chain, return_counts=True)[1]
            volume += kept[2][list(chain)].prod() / math.prod(map(math.factorial, ties))
    volume /= math.prod(kept[2][own].sum() for own in rows)
    assert found.volume is not None
    assert found.volume.value == pytest.approx(volume, abs=1e-12)


def test_of_two_grades_all_figures_are_the_auc() -> None:
    rng = np.random.default_rng(3)
    y, weight = rng.integers(0, 2, 80), rng.exponential(size=80)
    scores, group = np.round(y + rng.normal(size=80), 1), rng.integers(0, 20, 80)
    for options in ({}, {"sample_weight": weight}, {"sample_weight": weight, "group": group}):
        ours = measure_graded(3 * y, scores, **options)
        theirs = auc_interval(y, scores, **options)
        for interval in (ours.c_index, ours.mean_auc, ours.volume):
            np.testing.assert_allclose(interval, theirs, rtol=1e-12)


def test_weights_of_any_size_are_taken() -> None:
    rng = np.random.default_rng(4)
    grade, scores = rng.integers(0, 4, 60), rng.normal(size=60)
    plain = measure_graded(grade, scores)
    for size in (1e-100, 1e100):
        scaled = measure_graded(grade, scores, sample_weight=np.full(60, size))
        np.testing.assert_allclose(scaled.c_index, plain.c_index, rtol=1e-9)
        np.testing.assert_allclose(scaled.volume, plain.volume, rtol=1e-9)
    mixed = np.where(grade == 2, 1e100, 1e-100)
    found = measure_graded(grade, scores, sample_weight=mixed)
    lists = measure_lists(
        grade, scores, grade % 2, [ListAuc(), ListNdcg()], graded=True, sample_weight=mixed
    )
    for interval in (found.c_index, found.mean_auc, found.volume, *(m.interval for m in lists)):
        assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0


def test_many_grades_have_no_volume_and_a_grade_of_one_row_is_allowed() -> None:
    grade = np.arange(32)
    found = measure_graded(grade, grade.astype(float))
    assert found.volume is None
    assert found.c_index.value == 1.0
    assert 0.0 < found.c_index.low < 1.0
    one = measure_graded([0, 0, 0, 1, 1, 2], [1.0, 2.0, 3.0, 2.5, 4.0, 3.5])
    assert 0.0 <= one.c_index.low < one.c_index.value < one.c_index.high <= 1.0


@pytest.mark.parametrize(
    ("y", "named"),
    [
        ([0, 1, 2.5, 1], (2.5, 2)),
        ([0, 1, -1, 1], (-1, 2)),
        ([0, 1, 32, 1], (32, 2)),
        ([0, 1, 10**400, 1], ("object",)),
        ([0, 1, 2**63, 1], (2,)),
        ([0, 1, math.nan, 1], ("NaN", 2)),
        ([0, 1, math.inf, 1], ("inf", 2)),
        ([0, 1, None, 1], ("object",)),
        (["0", "1", "2", "1"], ("<U1",)),
        ([1, 1, 1, 1], (1,)),
        ([[0, 1], [1, 0]], ((2, 2),)),
    ],
)
def test_labels_that_are_no_grades_are_refused(y: Any, named: tuple[object, ...]) -> None:
    with raises(InvalidData, "y", *named):
        measure_graded(y, [1.0, 2.0, 3.0, 4.0])
    with raises(InvalidData, "y", *named):
        measure_lists(y, [1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], [ListAuc()], graded=True)


def test_input_that_breaks_a_rule_is_refused(sentences: Sentences) -> None:
    y, scores = [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0]
    for query, *named in (
        ([1, 1, 2], "query", 4, 3),
        ([1, 1, 2, math.nan], "query", "NaN", 3),
        ([1, 1, 2, None], "query"),
        ([[1, 1], [2, 2]], "query", (2, 2)),
        ([1, 2, 3, 4], "auc", 4),
    ):
        with raises(InvalidData, *named):
            measure_lists(y, scores, query, [ListAuc()])
    with raises(InvalidData, "y", 3):
        measure_lists([0, 1, 2, 1], scores, [1, 1, 1, 1], [ListAuc()])
    with sentences.raises(InvalidData):
        measure_lists([0, 1, 2, 1], scores, [1] * 4, [ListAuc(0.0, 0.1)], graded=True)
    with raises(InvalidData, "scores", "nan", 3):
        measure_lists(y, [1.0, 2.0, 3.0, math.nan], [1, 1, 2, 2], [ListAuc()])
    with sentences.raises(InvalidData):
        measure_lists(y, scores, [1, 1, 2, 2], [ListAuc()], sample_weight=[0, 0, 0, 0])
    for relevant, graded in ((2, False), (0, True), (32, True), (True, True), (1.0, True)):
        with raises(InvalidParameter, "relevant"):
            measure_lists(y, scores, [1] * 4, [ListAuc()], graded=graded, relevant=relevant)
    with raises(InvalidParameter, "metrics"):
        measure_lists(y, scores, [1] * 4, [])
    with raises(InvalidData, "sample_weight", 1):
        measure_graded([0, 1, 1, 1], scores, sample_weight=[0, 1, 1, 1])
    for bad in ("ndcg@0", "ndcg@1.5", "precision", "auc@3", "pauc:0.5,0.1", "map@3", "x" * 500, ""):
        with pytest.raises(InvalidParameter):
            list_metric_named(bad)
    for make in (ListNdcg, ListPrecision):
        for count in (0, True, 1.5, 10**10):
            with raises(InvalidParameter, "count"):
                make(count)
    assert [list_metric_named(name).name for name in NAMES] == list(NAMES)
    assert ListPrecision(10**9).name == "precision@1000000000"


def test_one_list_and_lists_that_agree_have_honest_intervals() -> None:
    alone = measure_lists([1, 0, 1], [3.0, 2.0, 1.0], [1, 1, 1], [ListAuc()])[0].interval
    assert alone.value == 0.5
    assert alone.high - alone.low > 0.7
    perfect = measure_lists([1, 0] * 20, [2.0, 1.0] * 20, np.repeat(np.arange(20), 2), [ListAuc()])
    assert perfect[0].interval.high == 1.0
    assert 0.8 < perfect[0].interval.low < 0.9


def test_relevant_is_the_least_grade_that_counts() -> None:
    """For metrics of two classes, grades from `relevant` on are positives."""
    rng = np.random.default_rng(5)
    query = np.repeat(np.arange(40), 6)
    grade, noise = rng.integers(0, 4, 240), rng.normal(size=(2, 240))
    scores = list(grade + noise)
    metrics = [list_metric_named(name) for name in ("map", "mrr", "precision@2")]
    for relevant in (1, 2, 3):
        y = (grade >= relevant).astype(int)
        found = list_values(grade, scores[0], query, metrics, graded=True, relevant=relevant)
        np.testing.assert_array_equal(found, list_values(y, scores[0], query, metrics))
        graded = compare_lists(grade, scores, query, metrics, graded=True, relevant=relevant)
        assert [each.differences for each in graded] == [
            each.differences for each in compare_lists(y, scores, query, metrics)
        ]


def test_p_values_of_lists_are_adjusted_unless_one_asks_not_to() -> None:
    rng = np.random.default_rng(6)
    query, y = np.repeat(np.arange(60), 5), rng.integers(0, 2, 300)
    scores = [y * strength + rng.normal(size=300) for strength in (0.5, 0.8, 1.0)]
    metrics = [ListAuc(), ListReciprocalRank()]
    plain = compare_lists(y, scores, query, metrics, adjust="none")
    holm = compare_lists(y, scores, query, metrics)
    raw = [each.p_value for found in plain for each in found.differences]
    assert [each.p_value for found in holm for each in found.differences] == raw
    assert [each.adjusted_p_value for found in plain for each in found.differences] == raw
    order, expected, most = np.argsort(raw), np.empty(len(raw)), 0.0
    for place, k in enumerate(order):
        most = max(most, min(1.0, raw[k] * (len(raw) - place)))
        expected[k] = most
    adjusted = [each.adjusted_p_value for found in holm for each in found.differences]
    np.testing.assert_allclose(adjusted, expected)
