"""One ranking by groups: figures against their definitions and against one group at a time, tests by simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import chi2_contingency, norm, ttest_ind
from scipy.stats import t as student

from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    auc_interval,
    compare_groups,
    operating_point,
    partial_auc_interval,
    wilson_interval,
)
from core.metrics.estimates import group_degrees, proportion_interval
from core.metrics.fairness import cross_moments, number_groups, welch_p_value
from core.metrics.groups import check_rows, effective_units
from core.metrics.window import MAX_GROUPS
from tests.core.metrics.naive import pair_auc, rankings
from tests.long_form import LONG_FORM, long_form
from tests.raising import raises
from tests.sentences import Sentences


@st.composite
def grouped(draw: Any) -> Any:
    """A ranking with ties and weights, some of them 0, in one to three groups, of which some lack a class."""
    y, scores, weights = draw(rankings(weighted=True))
    n_rows = len(y)
    codes = np.array(draw(st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows)))
    off = np.array(draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)))
    off[[np.argmax(y), np.argmin(y)]] = False
    units = draw(st.none() | st.lists(st.integers(0, 4), min_size=n_rows, max_size=n_rows))
    return y, scores, np.where(off, 0.0, weights), codes, units


@settings(max_examples=400 if LONG_FORM else 13)
@given(table=grouped())
def test_every_pair_of_groups_is_an_auc_of_its_own_rows(table: Any) -> None:
    y, scores, weights, codes, units = table
    order = np.argsort(scores)
    y, scores, weights, codes = y[order], scores[order], weights[order], codes[order]
    units = None if units is None else np.array(units)[order]
    rows = check_rows(y, {"scores": scores}, weights, units)
    present = codes[weights > 0]
    effective = np.array(
        [effective_units(rows.take(np.flatnonzero(present == a))) for a in range(3)]
    )
    values, variances, fourths = cross_moments(rows, present, effective)
    for a in range(3):
        for b in range(3):
            chosen = (weights > 0) & (((y == 1) & (codes == a)) | ((y == 0) & (codes == b)))
            own = y[chosen]
            if not own.any() or own.all():
                assert math.isnan(values[a, b])
                continue
            assert values[a, b] == pytest.approx(
                pair_auc(own, scores[chosen], weights[chosen]), abs=1e-12
            )
            expected = auc_interval(
                own,
                scores[chosen],
                sample_weight=weights[chosen],
                group=None if units is None else units[chosen],
            )
            spare = min(effective[a, 0], effective[b, 1]) - 1.0
            if 0.001 < expected.value < 0.999 and spare > 1e-9 and variances[a, b] > 1e-20:
                variance, degrees = variances[a, b], math.inf
                if units is not None:
                    degrees = min(spare, group_degrees(variance, fourths[a, b]))
                    variance *= 1.0 + 1.0 / degrees
                classes = effective[a, 0], effective[b, 1]
                found = proportion_interval(
                    values[a, b], variance, spare + 1.0, 0.95, degrees, classes
                )
                assert found == pytest.approx(expected, abs=1e-9)


def draw_groups(
    rng: np.random.Generator, sizes: list[tuple[int, int]], distance: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and codes of groups of (positives, negatives), all served equally well."""
    y = np.concatenate([np.repeat([1, 0], size) for size in sizes])
    codes = np.repeat(np.arange(len(sizes)), [sum(size) for size in sizes])
    return y, rng.normal(size=y.size) + distance * y, codes


@pytest.mark.parametrize("options", ["plain", "weighted", "units"])
def test_figures_of_a_group_are_those_of_its_rows_alone(options: str) -> None:
    rng = np.random.default_rng(3)
    y, scores, codes = draw_groups(rng, [(60, 90), (40, 200), (30, 50)])
    scores = scores.round(1)
    by = np.array(["a", "b", None], dtype=object)[codes]
    more: dict[str, Any] = {}
    if options == "weighted":
        more["sample_weight"] = rng.integers(0, 4, y.size).astype(float)
    if options == "units":
        more["group"] = np.arange(y.size) // 2
    window = (0.1, 0.4)
    found = compare_groups(y, scores, by, windows=[window], threshold=0.7, level=0.9, **more)
    assert [one.value for one in found.groups] == ["a", "b", None]
    for code, one in enumerate(found.groups):
        rows = codes == code
        own = {name: values[rows] for name, values in more.items()}
        present = own.get("sample_weight", np.ones(rows.sum())) > 0
        assert one.rows == present.sum()
        assert one.positives == (y[rows] * present).sum()
        assert one.positives + one.negatives == one.rows
        expected = auc_interval(y[rows], scores[rows], 0.9, **own)
        assert one.auc.interval == pytest.approx(expected)
        expected = partial_auc_interval(y[rows], scores[rows], *window, level=0.9, **own)
        assert one.partial_aucs[0].interval == pytest.approx(expected)
        point = operating_point(y[rows], scores[rows], threshold=0.7, level=0.9, **own)
        for metric, same in ((one.tpr, point.tpr), (one.fpr, point.fpr)):
            assert metric is not None
            assert metric.interval is not None
            if options == "units":  # which know how alike the rows of a unit are
                assert metric.interval.value == pytest.approx(same.value)
                assert metric.interval.high - metric.interval.low < same.high - same.low
            else:
                assert metric.interval == pytest.approx(same)
    diagonal = [one for one in found.cross_areas if one.positives_of == one.negatives_of]
    for one, cross in zip(found.groups, diagonal, strict=True):
        assert cross.metric.interval == pytest.approx(one.auc.interval)
    assert len(found.cross_areas) == 9


def test_small_groups_are_named_and_say_what_they_lack(sentences: Sentences) -> None:
    rng = np.random.default_rng(0)
    y, scores, codes = draw_groups(rng, [(100, 200), (50, 60), (4, 30), (20, 0), (0, 5)])
    found = compare_groups(
        y, scores, codes, windows=[(0.0, 0.02)], threshold=0.5, cutoffs="equal_fpr", rate=0.1
    )
    assert [(one.positives, one.negatives) for one in found.groups] == [
        (100, 200),
        (50, 60),
        (4, 30),
        (20, 0),
        (0, 5),
    ]
    reasons = [one.auc.reason for one in found.groups]
    assert reasons[:2] == [None, None]
    for reason in reasons[2:]:
        sentences(reason)
    assert [one.cutoff_reason for one in found.groups] == reasons
    narrow = found.groups[1].partial_aucs[0]
    assert narrow.interval is None
    sentences(narrow.reason)
    rates = [(one.tpr, one.fpr) for one in found.groups]
    assert [(tpr.interval is None, fpr.interval is None) for tpr, fpr in rates if tpr and fpr] == [
        (False, False),
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    across = {(one.positives_of, one.negatives_of): one.metric for one in found.cross_areas}
    assert across[3, 2].interval is not None  # 20 positives beside 30 negatives
    assert across[2, 3].interval is None
    sentences(across[2, 3].reason)
    assert [(test.of, test.groups) for test in found.tests] == [
        ("auc", 2),
        ("pauc", 1),
        ("tpr", 3),
        ("fpr", 3),
    ]
    assert found.tests[1].p_value is None
    assert [one.of for one in found.worst] == ["auc", "tpr", "fpr"]


def test_joint_tests_are_those_of_the_textbooks() -> None:
    rng = np.random.default_rng(1)
    # With means of numbers in place of logits, two groups have Welch's t-test.
    one, two = rng.normal(0, 1, 12), rng.normal(1, 3, 30)
    variance = np.array([one.var(ddof=1) / 12, two.var(ddof=1) / 30])
    weight = 1.0 / variance
    means = np.array([one.mean(), two.mean()])
    statistic = float((weight * (means - (weight * means).sum() / weight.sum()) ** 2).sum())
    found = welch_p_value(statistic, weight, np.array([11.0, 29.0]))
    assert found == pytest.approx(ttest_ind(one, two, equal_var=False).pvalue)

    y, scores, codes = draw_groups(rng, [(40, 60), (20, 90), (30, 30)])
    result = compare_groups(y, scores, codes, threshold=0.3)
    for test, label in ((result.tests[1], 1), (result.tests[2], 0)):
        flagged = [(scores[(codes == g) & (y == label)] >= 0.3) for g in range(3)]
        table = [[each.sum(), (~each).sum()] for each in flagged]
        assert test.p_value == pytest.approx(chi2_contingency(table, correction=False).pvalue)
    p_values = sorted(test.p_value or 0.0 for test in result.tests)
    adjusted = sorted(test.adjusted_p_value or 0.0 for test in result.tests)
    assert adjusted[0] == pytest.approx(min(1.0, 3 * p_values[0]))


def test_units_in_several_groups_are_not_independent() -> None:
    rng = np.random.default_rng(5)
    y = np.tile([1, 0], 400)
    unit, codes = np.arange(800) // 4, np.arange(800) // 2 % 2
    scores = rng.normal(size=200)[unit] * 2.0 + 0.3 * rng.normal(size=800) + y
    apart = compare_groups(y, scores, codes).tests[0].p_value
    together = compare_groups(y, scores, codes, group=unit).tests[0].p_value
    assert apart is not None
    assert together is not None
    # Both groups have rows of the same units, so that their areas rise and fall together: a difference shows sooner.
    assert together < apart


@long_form
@pytest.mark.parametrize(
    ("n_groups", "positives", "negatives", "area"), [(3, 12, 1_000, 0.9), (4, 100, 1_000, 0.98)]
)
def test_equal_areas_near_1_are_seldom_called_different(
    n_groups: int, positives: int, negatives: int, area: float
) -> None:
    rng = np.random.default_rng(5)
    sizes, distance = [(positives, negatives)] * n_groups, math.sqrt(2.0) * norm.ppf(area)
    samples = [draw_groups(rng, sizes, distance) for _ in range(200)]
    called = [(compare_groups(*sample).tests[0].p_value or 0.0) < 0.05 for sample in samples]
    assert np.mean(called) <= 0.06


def test_levels_are_kept() -> None:
    """The short form of `python -m benchmarks.coverage --tables groups`."""
    rng, n_trials, truth = np.random.default_rng(7), 200 if LONG_FORM else 40, 0.7602499389
    covered, worst, rejected = [], [], []
    for _ in range(n_trials):
        y, scores, codes = draw_groups(rng, [(40, 80), (60, 60), (30, 150)])
        found = compare_groups(y, scores, codes, threshold=1.0)
        metrics = [one.metric.interval for one in found.cross_areas]
        covered += [each.low <= truth <= each.high for each in metrics if each is not None]
        low, high = found.worst[0].interval[1:]
        worst.append(low <= truth <= high)
        rejected.append([(test.p_value or 0.0) < 0.05 for test in found.tests])
    assert 0.93 <= np.mean(covered) <= 0.98
    assert np.mean(worst) >= 0.93
    assert np.all(np.mean(rejected, axis=0) <= 0.10)


def test_cuts_of_the_groups_own() -> None:
    rng = np.random.default_rng(2)
    y, scores, codes = draw_groups(rng, [(80, 200), (80, 200)])
    scores = scores + 1.5 * codes
    for cutoffs, rate in (("equal_fpr", "fpr"), ("equal_tpr", "tpr")):
        found = compare_groups(y, scores, codes, cutoffs=cutoffs, rate=0.3)
        assert (found.cutoffs, found.rate, found.threshold) == (cutoffs, 0.3, None)
        for code, one in enumerate(found.groups):
            rows = codes == code
            point = operating_point(y[rows], scores[rows], **{rate: 0.3})
            assert one.cutoff is not None
            assert one.cutoff.threshold == point.threshold
            assert (one.cutoff.fpr, one.cutoff.tpr) == (point.fpr, point.tpr)
            assert one.tpr is None
        low, high = (one.cutoff.threshold for one in found.groups if one.cutoff)
        assert high - low > 1.0
    # Without a rate: that of all rows at the common cut.
    found = compare_groups(y, scores, codes, cutoffs="equal_fpr", threshold=1.5)
    assert found.rate == pytest.approx((scores[y == 0] >= 1.5).mean())


def draw_probabilities(
    rng: np.random.Generator, sizes: list[int], shift: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, probabilities whose log odds are all off by `shift`, and codes of groups of other prevalences."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    odds = rng.normal(size=codes.size) * 1.5 - 0.7 * codes
    return (rng.random(codes.size) < expit(odds + shift)).astype(int), expit(odds), codes


@pytest.mark.parametrize("options", ["plain", "weighted", "units", "units of all groups"])
def test_the_calibration_of_a_group_is_that_of_its_rows(options: str) -> None:
    rng = np.random.default_rng(11)
    y, p, codes = draw_probabilities(rng, [150, 300, 200], 0.4)
    p = p.round(2)  # ties, and probabilities of 0
    more: dict[str, Any] = {}
    if options == "weighted":
        more["sample_weight"] = rng.integers(0, 4, y.size).astype(float)
    if "units" in options:
        more["group"] = np.arange(y.size) // 2 if options == "units" else np.arange(y.size) % 120
    weight = more.get("sample_weight", np.ones(y.size))
    found = compare_groups(y, p, codes, probability=p, level=0.9, **more)
    z, variances, degrees = [], [], []
    for code, one in enumerate(found.groups):
        rows = codes == code
        own, w, label = p[rows], weight[rows], y[rows]
        assert one.calibration is not None
        assert one.calibration.predicted == pytest.approx((w @ own) / w.sum())
        observed, large = one.calibration.observed.interval, one.calibration.in_the_large.interval
        assert observed is not None
        assert large is not None
        assert observed.value == pytest.approx((w @ label) / w.sum())
        if options == "plain":
            assert observed == pytest.approx(wilson_interval(observed.value, rows.sum(), 0.9))
        odds = np.clip(logit(own), -36, 36)
        moved = expit(odds + large.value)
        assert w @ moved == pytest.approx(w @ label)
        influence = w * (label - moved) / (w @ (moved * (1 - moved)))
        units = more["group"][rows] if "units" in options else np.arange(own.size)
        influence = np.array([influence[units == each].sum() for each in np.unique(units)])
        masses = [np.bincount(units[label == each], w[label == each]) for each in (0, 1)]
        kish = min(float(m.sum() ** 2 / (m**2).sum()) for m in masses)
        nu = kish - 1.0
        variance = float((influence**2).sum()) * kish / nu
        half = student.ppf(0.95, nu) * math.sqrt(variance)
        assert (large.low, large.high) == pytest.approx((large.value - half, large.value + half))
        z.append(large.value)
        variances.append(variance)
        degrees.append(nu)
    test = found.tests[-1]
    assert (test.of, test.groups) == ("calibration", 3)
    ratio = 1.0 / np.array(variances)
    q = float((ratio * (z - (ratio @ z) / ratio.sum()) ** 2).sum())
    expected = welch_p_value(q, ratio, np.array(degrees))
    if options == "units of all groups":  # the groups' estimates are correlated
        assert test.p_value != pytest.approx(expected)
    else:
        assert test.p_value == pytest.approx(expected)
    p_values = [each.p_value for each in found.tests]
    assert found.tests[0].adjusted_p_value == pytest.approx(
        min(1.0, max(2 * min(p_values), max(p_values) if p_values[0] > p_values[1] else 0.0))
    )


def test_small_groups_have_no_calibration_and_say_what_they_lack(sentences: Sentences) -> None:
    rng = np.random.default_rng(3)
    y, p, codes = draw_probabilities(rng, [200, 200, 60, 5, 40])
    y[codes == 2] = np.arange(60) < 4
    y[codes == 4] = np.arange(40) % 2
    p[codes == 4] = y[codes == 4]  # certain, and right
    weight = np.where(codes == 3, 0.0, 1.0)
    found = compare_groups(y, p, codes, probability=p, sample_weight=weight)
    calibrations = [one.calibration for one in found.groups]
    reasons = [one.in_the_large.reason for one in calibrations if one]
    assert reasons[:2] == [None, None]
    assert len(reasons) == 5
    for reason in reasons[2:]:
        sentences(reason)
    of_few, of_none = calibrations[2:4]
    assert of_few is not None
    assert of_few.observed.interval is not None
    assert of_few.observed.interval.value == pytest.approx(4 / 60)
    assert of_none is not None
    assert math.isnan(of_none.predicted)
    assert of_none.observed.interval is None
    sentences(of_none.observed.reason)
    assert found.tests[-1].groups == 2
    for wrong, got in ((np.full(y.size, 1.5), 1.5), (np.full(y.size, math.nan), "nan"), ([0.5], 1)):
        with raises(InvalidData, "probability", got):
            compare_groups(y, p, codes, probability=wrong)
    assert compare_groups(y, p, codes).groups[0].calibration is None


ALL_CERTAIN = "all probabilities are 0 or 1"
TOO_MANY_ONES = "too many probabilities are 1: at least as many rows as are positive"
TOO_MANY_ZEROS = "too many probabilities are 0: at least as many rows as are negative"


@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_of_0_and_1_have_no_finite_shift(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    y, scores, by = np.arange(400) % 2, rng.normal(size=400), np.arange(400) // 200
    weight = np.full(400, 0.3) if weighted else None

    def reason(p: Any) -> str | None:
        found = compare_groups(y, scores, by, probability=p, sample_weight=weight)
        (large,) = {one.calibration.in_the_large.reason for one in found.groups}
        return large

    for certain in (np.ones(400), np.zeros(400), rng.integers(0, 2, 400)):
        assert reason(certain) == ALL_CERTAIN
    half = np.arange(400) // 2 % 2 == 0
    assert reason(np.where(half, 1.0, 0.5)) == TOO_MANY_ONES
    assert reason(np.where(half, 0.0, 0.5)) == TOO_MANY_ZEROS
    assert reason(np.where(np.arange(400) % 20 < 2, 1.0, 0.5)) is None


def test_a_calibration_that_is_off_by_the_same_odds_everywhere_does_not_differ() -> None:
    """The short form of `python -m benchmarks.coverage --tables groups`."""
    rng, n_trials = np.random.default_rng(8), 150 if LONG_FORM else 25
    covered, rejected, seen = [], [], []
    for _ in range(n_trials):
        y, p, codes = draw_probabilities(rng, [150, 300, 300], -0.8)
        found = compare_groups(y, p, codes, probability=p)
        for one in found.groups:
            assert one.calibration is not None
            large = one.calibration.in_the_large.interval
            assert large is not None
            covered.append(large.low <= -0.8 <= large.high)
        rejected.append((found.tests[-1].p_value or 0.0) < 0.05)
        other = compare_groups(y, p, codes, probability=expit(logit(p) + (codes == 1)))
        seen.append((other.tests[-1].p_value or 0.0) < 0.05)
    assert 0.92 <= np.mean(covered) <= 0.99
    assert np.mean(rejected) <= 0.10
    assert np.mean(seen) > 0.9


def test_values_of_a_column_become_groups() -> None:
    def groups(by: Any) -> list[str | None]:
        codes, values = number_groups(by, len(by))
        return [values[code] for code in codes]

    assert groups([2.0, math.nan, 0.5, 10.0]) == ["2", None, "0.5", "10"]
    assert number_groups([10, 9, 2], 3)[1] == ["2", "9", "10"]
    assert groups([True, False]) == ["true", "false"]
    assert groups(np.array(["b", None, "a"], dtype=object)) == ["b", None, "a"]
    assert groups(np.array(["b", "a"])) == ["b", "a"]


@pytest.mark.parametrize(
    ("by", "named"),
    [
        (np.arange(MAX_GROUPS + 8), (32, 40)),
        (["a"], (40, 1)),
        (np.array(["x", 1] * 20, dtype=object), ()),
        (np.array([(1,), (2,)] * 20 + [None], dtype=object)[:40], ("tuple",)),
        (np.zeros(40, dtype="datetime64[s]"), ("datetime64[s]",)),
        (np.zeros((40, 2)), ((40, 2),)),
        ([], ()),
    ],
)
def test_columns_that_are_no_groups(by: Any, named: tuple[object, ...]) -> None:
    y, scores, _ = draw_groups(np.random.default_rng(0), [(20, 20)])
    with raises(InvalidData, "by", *named):
        compare_groups(y, scores, by)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"threshold": math.nan}, ("threshold", "nan")),
        ({"threshold": "high"}, ("threshold", "'high'")),
        ({"threshold": True}, ("threshold", True)),
        ({"cutoffs": "equal", "rate": 0.1}, ("cutoffs", "'equal'")),
        ({"cutoffs": "equal_fpr"}, ("cutoffs", "rate", "threshold")),
        ({"rate": 0.1}, ("cutoffs", "rate=0.1")),
        ({"cutoffs": "equal_fpr", "rate": 1.5}, ("rate", 1.5)),
        ({"windows": [(0.5, 0.5)]}, ("fpr_max",)),
        ({"level": 1.0}, ("level", 1.0)),
    ],
)
def test_parameters_out_of_range(options: dict[str, Any], named: tuple[object, ...]) -> None:
    y, scores, codes = draw_groups(np.random.default_rng(0), [(20, 20), (20, 20)])
    with raises(InvalidParameter, *named):
        compare_groups(y, scores, codes, **options)
