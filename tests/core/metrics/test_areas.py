"""AUC, misranks and both partial AUCs against their definitions over all pairs."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from core.errors import InvalidParameter
from core.metrics import (
    auc,
    empirical_area_of,
    misrank_fraction,
    partial_auc,
    roc_curve,
    summarise,
    tpr_at_fpr,
    window_counts,
)
from core.metrics.groups import group_by_score
from tests.core.metrics.naive import (
    empirical_pauc,
    interpolated_pauc,
    pair_auc,
    rankings,
    repeat_rows,
    windows,
)
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

LADDER = np.array([1, 0, 1, 0, 1, 0]), np.array([3.0, 3, 2, 2, 1, 1])


@given(rankings())
def test_rows_without_weights_are_grouped_as_rows_of_weight_1(
    ranking: tuple[np.ndarray, np.ndarray, None],
) -> None:
    y, scores, _ = ranking
    scores = np.where(scores == 0, -0.0, scores)
    merged, ordered = (group_by_score(y, scores, weight) for weight in (None, np.ones(len(y))))
    for name in ("scores", "positive", "negative", "flagged_positive", "flagged_negative"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(ordered, name))
    for one, other in zip(
        (merged.positives, merged.negatives), (ordered.positives, ordered.negatives), strict=True
    ):
        np.testing.assert_array_equal(one.group, other.group)


@given(rankings(weighted=True))
def test_auc_and_misranks_over_all_pairs(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    y, scores, weights = ranking
    assert auc(y, scores, weights) == pytest.approx(pair_auc(y, scores, weights), abs=1e-15)
    misranks = 1 - pair_auc(y, scores, weights, tie=0)
    assert misrank_fraction(y, scores, weights) == pytest.approx(misranks, abs=1e-15)


@given(
    rankings(weighted=True), windows, st.sampled_from(["interpolated", "empirical"]), st.booleans()
)
def test_a_weight_counts_as_so_many_rows(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
    window: tuple[float, float],
    definition: str,
    standardize: bool,
) -> None:
    y, scores, weights = ranking
    repeated = repeat_rows(y, scores, weights)
    assert auc(y, scores, weights) == auc(*repeated)
    assert misrank_fraction(y, scores, weights) == misrank_fraction(*repeated)
    options = {"definition": definition, "standardize": standardize}
    assert partial_auc(y, scores, *window, sample_weight=weights, **options) == pytest.approx(
        partial_auc(*repeated, *window, **options), abs=1e-15
    )
    assert tpr_at_fpr(y, scores, window[1], weights) == tpr_at_fpr(*repeated, window[1])


@given(rankings(weighted=True), windows)
def test_interpolated_partial_auc_segment_by_segment(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float]
) -> None:
    y, scores, weights = ranking
    value = partial_auc(y, scores, *window, sample_weight=weights)
    assert value == pytest.approx(interpolated_pauc(y, scores, *window, weights), abs=1e-13)


@given(rankings(), windows)
def test_empirical_partial_auc_is_equation_2(
    ranking: tuple[np.ndarray, np.ndarray, None], window: tuple[float, float]
) -> None:
    y, scores, _ = ranking
    value = partial_auc(y, scores, *window, definition="empirical")
    assert value == pytest.approx(empirical_pauc(y, scores, *window), abs=1e-15)


@given(rankings(weighted=True), windows, st.sampled_from([1.0, 1 / np.pi]))
def test_a_curve_knows_the_empirical_partial_auc(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float], unit: float
) -> None:
    y, scores, weights = ranking
    summary = summarise(y, scores, weights * unit)
    expected = partial_auc(y, scores, *window, definition="empirical", sample_weight=weights * unit)
    found = empirical_area_of(summary.curve, summary.totals.negative, *window)
    assert found == pytest.approx(expected, abs=1e-9)


@given(rankings(weighted=True), windows)
def test_fractional_weights_take_the_boundary_row_in_part(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float]
) -> None:
    # With fractions of rows the window's ends are masses: many small copies come to the same in the limit.
    y, scores, weights = ranking
    fine = 10_000
    many = partial_auc(y, scores, *window, definition="empirical", sample_weight=weights * fine)
    part = partial_auc(y, scores, *window, definition="empirical", sample_weight=weights / np.pi)
    assert part == pytest.approx(many, abs=1e-3)


def test_figure_2_of_narasimhan_and_agarwal() -> None:
    y = np.array([1] * 4 + [0] * 5)
    first = np.array([9.1, 6.8, 6.1, 5.7, 8.5, 8.1, 4.2, 3.6, 2.3])
    second = np.array([9.9, 8.7, 3.3, 2.1, 7.6, 5.3, 4.9, 4.4, 0.8])
    assert auc(y, first) == pytest.approx(14 / 20)
    assert auc(y, second) == pytest.approx(12 / 20)
    assert partial_auc(y, first, 0, 0.2, definition="empirical") == 0.25
    assert partial_auc(y, second, 0, 0.2, definition="empirical") == 0.5


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_scikit_learn(digits: int | None, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    y = (rng.random(700) < 0.2).astype(int)
    scores = rng.normal(size=700) + y
    scores = scores if digits is None else np.round(scores, digits)
    weights = rng.random(700) if weighted else None
    assert auc(y, scores, weights) == pytest.approx(roc_auc_score(y, scores, sample_weight=weights))
    for fpr_max in (0.01, 0.05, 0.5, 0.999):
        theirs = roc_auc_score(y, scores, sample_weight=weights, max_fpr=fpr_max)
        ours = partial_auc(y, scores, 0, fpr_max, standardize=True, sample_weight=weights)
        assert ours == pytest.approx(theirs)


@given(rankings(weighted=True), windows)
@example(
    (np.array([1, 1, 1, 0, 0]), np.array([0.0, 0, 0, 0, 1]), np.array([1, 1, 1, 1, 2])), (0, 1)
)
def test_the_curve_alone_gives_the_same_areas(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
    window: tuple[int, int] | tuple[float, float],
) -> None:
    y, scores, weights = ranking
    curve = roc_curve(y, scores, weights)
    assert curve.area() == pytest.approx(auc(y, scores, weights), abs=1e-14)
    # The whole area is counted in pairs, exactly, where rows are at hand; a curve has only rounded rates.
    rounding = 1e-14 if window == (0, 1) else 0.0
    for standardize in (False, True):
        area = partial_auc(y, scores, *window, standardize=standardize, sample_weight=weights)
        found = curve.partial_area(*window, standardize=standardize)
        assert found == pytest.approx(area, rel=0, abs=rounding)
    assert curve.tpr_at(window[0]) == tpr_at_fpr(y, scores, window[0], weights)


@pytest.mark.parametrize(
    ("n", "window", "expected"),
    [
        (100, (0.0, 0.07), (0, 7)),  # in floating point 7.000000000000001, so 8
        (100, (0.07, 0.14), (7, 14)),
        (100, (0.29, 0.57), (29, 57)),  # in floating point 28.999…
        (10, (0.05, 0.06), (0, 1)),
        (3, (0.34, 0.66), (1, 2)),
        (1, (0.0, 1.0), (0, 1)),
        (7, (1e-05, 1.0), (0, 7)),
    ],
)
def test_window_counts_are_exact_decimals(
    n: int, window: tuple[float, float], expected: tuple[int, int]
) -> None:
    assert window_counts(n, *window) == expected


def test_window_counts_are_exact_for_every_fraction() -> None:
    """Rates as a caller computes them: k / m, 1 - k / m, and the decimals that they print as."""
    most = 61 if LONG_FORM else 25
    for m in range(1, most):
        for k in range(m):
            exact = Fraction(k, m)
            for n in range(1, most):
                expected = math.floor(n * exact), math.ceil(n * (1 - exact))
                assert window_counts(n, k / m, 1.0)[0] == expected[0]
                assert window_counts(n, 0.0, 1.0 - k / m)[1] == expected[1]
                assert window_counts(n, 0.0, (m - k) / m)[1] == expected[1]
                if k > 0 and (n * k) % m:  # between two ranks
                    assert window_counts(n, 0.0, k / m) == (0, math.floor(n * exact) + 1)


def test_a_window_that_starts_at_a_third_starts_after_a_third_of_the_negatives() -> None:
    y = [0] * 3 + [1] * 3 + [0] * 6
    scores = np.arange(12.0)[::-1]
    assert partial_auc(y, scores, 1 / 3, 1.0, definition="empirical") == 1.0


@pytest.mark.parametrize(
    ("window", "named"),
    [
        ((0.1, 0.05), ("fpr_max", "fpr_min", 0.1, 0.05)),
        ((0.1, 0.1), ("fpr_max", "fpr_min", 0.1)),
        ((0.0, 1e-200), ("fpr_max", "fpr_min", 1e-200)),
        ((-0.1, 0.5), ("fpr_min", -0.1)),
        ((0.0, 1.5), ("fpr_max", 1.5)),
        ((0.0, float("nan")), ("fpr_max", "nan")),
        (("0", 0.5), ("fpr_min", "'0'")),
        ((False, 0.5), ("fpr_min", False)),
        ((0.0, None), ("fpr_max", None)),
    ],
)
def test_a_window_that_is_none_is_refused(window: Any, named: tuple[object, ...]) -> None:
    for call in (
        lambda: partial_auc(*LADDER, *window),
        lambda: roc_curve(*LADDER).partial_area(*window),
        lambda: summarise(*LADDER, windows=[window]),
    ):
        with raises(InvalidParameter, *named):
            call()


def test_an_unknown_definition_is_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        partial_auc(*LADDER, definition="mean")
