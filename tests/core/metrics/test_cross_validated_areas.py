"""Folds judged each by itself: LeDell's influence curves over all pairs, repeats, groups, coverage, and bad input."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.coverage import REPEATED, Repeated, measure_repeated
from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    compare,
    cross_validated_areas,
    partial_auc,
    partial_auc_interval,
)
from core.metrics.comparison import Folds, estimate
from core.metrics.estimates import Interval
from core.metrics.intervals import row_influences
from tests.core.metrics.naive import area_interval, structural_components
from tests.long_form import LONG_FORM, rest
from tests.raising import raises
from tests.sentences import Sentences

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


def scored_in_folds(
    rng: np.random.Generator, n: int = 300, n_folds: int = 5, gain: float = 1.2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores whose scale is each fold's own."""
    y = (rng.random(n) < 0.3).astype(int)
    fold = rng.integers(0, n_folds, n)
    shift, scale = 5.0 * rng.normal(size=n_folds), rng.uniform(0.5, 2.0, n_folds)
    return y, (rng.normal(size=n) + gain * y) * scale[fold] + shift[fold], fold


def logit_width(interval: Interval) -> float:
    """Distance of the ends on the logit scale."""
    low, high = (math.log(end / (1 - end)) for end in interval[1:])
    return high - low


def test_one_fold_is_the_interval_of_its_rows() -> None:
    y, scores, _ = scored_in_folds(np.random.default_rng(0), n_folds=1)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, y.size) // 0.5
    found = cross_validated_areas(y, scores, np.zeros(y.size), WINDOWS, sample_weight=weight)
    for window, interval in zip(WINDOWS, found, strict=True):
        alone = partial_auc_interval(y, scores, *window, sample_weight=weight)
        np.testing.assert_allclose(interval, alone)
    compared = compare(y, [scores, -scores], WINDOWS, fold=np.zeros(y.size))
    alone = compare(y, [scores, -scores], WINDOWS)
    assert compared.joint_p_value == pytest.approx(alone.joint_p_value)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_value_is_the_mean_of_the_folds(window: tuple[float, float]) -> None:
    y, scores, fold = scored_in_folds(np.random.default_rng(2))
    (found,) = cross_validated_areas(y, scores, fold, [window])
    areas = [partial_auc(y[fold == f], scores[fold == f], *window) for f in range(5)]
    assert found.value == pytest.approx(np.mean(areas))


def test_the_variance_is_ledells_over_all_pairs() -> None:
    y, scores, fold = scored_in_folds(np.random.default_rng(3))
    (found,) = cross_validated_areas(y, scores, fold)
    sums, spare = [], []
    for of_fold in zip(
        *(structural_components(y[fold == f], scores[fold == f]) for f in range(5)), strict=True
    ):
        sums.append(sum(((v - v.mean()) ** 2).sum() / v.size**2 for v in of_fold) / 25)
        size = sum(v.size for v in of_fold)
        spare.append(size / (size - 5))
    variance = sums[0] * spare[0] + sums[1] * spare[1]
    assert found[1:] == pytest.approx(
        area_interval(found.value, variance, min(y.sum(), (1 - y).sum()))
    )


def test_repeating_the_same_folds_teaches_nothing() -> None:
    y, scores, fold = scored_in_folds(np.random.default_rng(4))
    once = cross_validated_areas(y, scores, fold, WINDOWS)
    repeat, row = np.repeat([0, 1, 2], y.size), np.tile(np.arange(y.size), 3)
    mixed = np.random.default_rng(5).permutation(row.size)
    thrice = cross_validated_areas(
        np.tile(y, 3)[mixed],
        np.tile(scores, 3)[mixed],
        np.tile(fold, 3)[mixed],
        WINDOWS,
        repeat=repeat[mixed],
        row=row[mixed],
    )
    np.testing.assert_allclose(thrice[1:], once[1:])
    # Repeats that agree show that the rankers do not depend on the rows: the AUC has its narrower bound.
    assert thrice[0].value == pytest.approx(once[0].value)
    assert thrice[0].high - thrice[0].low <= once[0].high - once[0].low


def test_repeats_that_differ_widen_the_interval() -> None:
    """Of 5 folds and R repeats, the variance has 4 + 1/R times the variance of the repeats' means more."""
    rng = np.random.default_rng(12)
    y, n_repeats = np.repeat([1, 0], [200, 400]), 3
    fold = np.stack([rng.permutation(np.arange(y.size) % 5) for _ in range(n_repeats)])
    scores = np.stack([rng.normal(size=y.size) + (1.0 + 0.1 * r) * y for r in range(n_repeats)])
    repeat, row = np.indices(fold.shape)
    repeated = {"repeat": repeat.ravel(), "row": row.ravel()}
    folds = Folds(fold.ravel(), **repeated)
    window = (0.0, 0.3)
    found = estimate(
        np.tile(y, n_repeats),
        {"scores": scores.ravel()},
        partial(row_influences, windows=[window]),
        folds,
        None,
        None,
    )
    means = [
        cross_validated_areas(y, scores[r], fold[r], [window])[0].value for r in range(n_repeats)
    ]
    assert found.influence is not None
    assert found.influence.shape == (1, 1, y.size + n_repeats)
    given, splits = np.split(found.influence[0, 0], [y.size])
    assert (splits**2).sum() == pytest.approx((4 + 1 / n_repeats) * np.var(means, ddof=1))
    assert found.variance(0, 0) == pytest.approx((given**2).sum() + (splits**2).sum())


@pytest.mark.parametrize(
    "kind",
    [
        Repeated(15, 135, 0.6),
        Repeated(30, 270, 0.95),
        *rest(*((each,) for each in REPEATED if each.repeats == 4)),
    ],
    ids=lambda kind: kind.label,
)
def test_repeated_folds_cover_the_ranker_that_is_trained_on_all_rows(kind: Repeated) -> None:
    n_trials = 400 if LONG_FORM else 20
    covered, _ = measure_repeated(kind, n_trials, seed=2)
    low = 0.93 - 2.5 * math.sqrt(0.05 * 0.95 / n_trials)
    assert (covered[:, :2] >= low).all(), covered


def test_a_fold_of_one_class_is_left_out() -> None:
    y, scores, fold = scored_in_folds(np.random.default_rng(7))
    kept = (fold != 2) | (y == 0)
    found = cross_validated_areas(y[kept], scores[kept], fold[kept], WINDOWS)
    others = cross_validated_areas(y[fold != 2], scores[fold != 2], fold[fold != 2], WINDOWS)
    np.testing.assert_allclose(found, others)


@pytest.mark.parametrize("n_repeats", [1, 7])
def test_perfect_folds_have_an_area_of_exactly_1_however_many_they_are(n_repeats: int) -> None:
    for n_folds in (2, 3, 6, 10, 49):
        fold = np.tile(np.repeat(np.arange(n_folds), 4), n_repeats)
        y = np.tile([1, 1, 0, 0], n_folds * n_repeats)
        repeat = np.repeat(np.arange(n_repeats), 4 * n_folds)
        row = np.tile(np.arange(4 * n_folds), n_repeats)
        (found,) = cross_validated_areas(y, y + 0.0, fold, repeat=repeat, row=row)
        assert found == pytest.approx(partial_auc_interval(y[repeat == 0], y[repeat == 0] + 0.0))
        assert found.value == found.high == 1.0


def test_groups_across_folds_and_repeats_are_summed() -> None:
    # Whole copies of a table, a fold each, of the same units: no more is known than from one.
    y, scores, _ = scored_in_folds(np.random.default_rng(9), n=120, n_folds=1)
    unit = np.arange(120) // 2
    once = cross_validated_areas(y, scores, np.zeros(120), WINDOWS, group=unit)
    folds = np.repeat([0, 1, 2], 120)
    thrice = cross_validated_areas(
        np.tile(y, 3), np.tile(scores, 3), folds, WINDOWS, group=np.tile(unit, 3)
    )
    for one, three in zip(once, thrice, strict=True):
        assert three.value == pytest.approx(one.value)
        assert logit_width(three) == pytest.approx(logit_width(one), rel=1e-9)


@pytest.mark.parametrize("window", [(0.0, 1.0), (0.0, 0.3)])
def test_intervals_and_tests_hold_their_level_whatever_the_folds_scales(
    window: tuple[float, float],
) -> None:
    rng = np.random.default_rng(10)
    rates = np.linspace(1e-9, window[1], 3001)
    truth = np.trapezoid(norm.sf(norm.isf(rates) - 1.2), rates) / window[1]
    covered = different = pooled = 0
    n_trials = 250 if LONG_FORM else 40
    for _ in range(n_trials):
        y, scores, fold = scored_in_folds(rng, n=500)
        (found,) = cross_validated_areas(y, scores, fold, [window])
        covered += found.low <= truth <= found.high
        pooled += partial_auc(y, scores, *window) < truth
        other = rng.normal(size=y.size) + 1.2 * y
        compared = compare(y, [scores, other], [window], fold=fold)
        different += compared.joint_p_value < 0.05
    allowed = 3 * math.sqrt(0.05 * 0.95 / n_trials) + 0.012
    assert covered / n_trials == pytest.approx(0.95, abs=allowed)
    assert different / n_trials == pytest.approx(0.05, abs=allowed)
    assert pooled / n_trials > 0.9  # what this is for: the pooled curve is another, and lower


def test_small_tables_of_any_kind_get_an_answer_and_never_nan() -> None:
    rng = np.random.default_rng(11)
    answered = 0
    for _ in range(90):
        n = rng.integers(2, 14)
        y, fold, repeat = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
        scores = [rng.integers(-2, 3, n).astype(float) for _ in range(3)]
        weight = rng.choice([0.0, 1e-100, 1e100, 0.3, 1.0, 2.0], n)
        windows = [(0.0, 1.0), tuple(np.sort(rng.choice(21, 2, replace=False) / 20)), (0.0, 1e-9)]
        options = {"sample_weight": None if rng.random() < 0.5 else weight}
        options["group"] = None if rng.random() < 0.5 else rng.integers(0, 4, n)
        try:
            found = compare(
                y, scores, windows, fold=fold, repeat=repeat, row=np.arange(n), **options
            )
        except InvalidData:  # a class without weight, or no fold with both
            continue
        answered += 1
        p_values = [found.joint_p_value]
        for window in found.windows:
            p_values.append(window.joint_p_value)
            assert all(0 <= i.low <= i.value <= i.high <= 1 for i in window.values)
            assert all(-1 <= d.low <= d.value <= d.high <= 1 for d in window.differences)
            p_values += [d.p_value for d in window.differences]
            p_values += [d.adjusted_p_value for d in window.differences]
        assert all(0 <= p <= 1 for p in p_values if p is not None)
    assert answered > 30


Y, SCORES, FOLD = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("fold", "options", "error", "named"),
    [
        (FOLD[:3], {}, InvalidData, ("fold", 3)),
        ([0, 1, 0, 1], {}, InvalidData, ("fold",)),
        ([0, 0, 1, np.nan], {}, InvalidData, ("fold", "NaN")),
        (FOLD, {"repeat": FOLD}, InvalidParameter, ("row",)),
        (FOLD, {"row": [1, 2]}, InvalidData, ("row", 2)),
        (FOLD, {"group": [1, 2]}, InvalidData, ("group", 2)),
        (FOLD, {"level": 0}, InvalidParameter, ("level", 0)),
        (FOLD, {"windows": [(0.5, 0.2)]}, InvalidParameter, ("fpr_max", 0.2)),
        (FOLD, {"windows": []}, InvalidParameter, ("windows",)),
    ],
)
def test_bad_input_is_refused_by_name(
    fold: list[int] | list[Any], options: Any, error: type[Any], named: tuple[object, ...]
) -> None:
    with raises(error, *named):
        cross_validated_areas(Y, SCORES, fold, **options)
    with raises(error, *named):
        compare(Y, [SCORES, SCORES], fold=fold, **options)


def test_comparing_needs_two_scorers(sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        compare(Y, [SCORES], fold=FOLD)
    with sentences.raises(InvalidParameter):
        compare(Y, [SCORES, SCORES], fold=FOLD, adjust="fdr")
    with sentences.raises(InvalidParameter):
        compare(Y, [SCORES, SCORES], repeat=FOLD)
