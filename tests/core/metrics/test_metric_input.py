"""All metrics share one check of their input: what it accepts, and what it refuses by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidData
from core.metrics import (
    auc,
    auc_interval,
    misrank_fraction,
    operating_point,
    partial_auc,
    partial_auc_interval,
    roc_curve,
    summarise,
    tpr_at_fpr,
)
from tests.raising import raises

Y, SCORES = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]

METRICS = {
    "roc_curve": roc_curve,
    "auc": auc,
    "misrank_fraction": misrank_fraction,
    "partial_auc": lambda y, s, w=None: partial_auc(y, s, sample_weight=w),
    "tpr_at_fpr": lambda y, s, w=None: tpr_at_fpr(y, s, 0.1, w),
    "auc_interval": lambda y, s, w=None: auc_interval(y, s, sample_weight=w),
    "partial_auc_interval": lambda y, s, w=None: partial_auc_interval(y, s, sample_weight=w),
    "operating_point": lambda y, s, w=None: operating_point(y, s, fpr=0.1, sample_weight=w),
    "summarise": summarise,
}


@pytest.mark.parametrize(
    ("y", "scores", "weights", "named"),
    [
        ([], [], None, ("y",)),
        ([[0, 1]], [0.1], None, ("y", (1, 2))),
        ([[0], [0, 1]], [0.1], None, ("y",)),
        ([0, 0, 0], [1, 2, 3], None, ("y", [0])),
        ([True, True], [1, 2], None, ("y", [True])),
        (["a", "a"], [1, 2], None, ("y", ["a"])),
        ([0, 1, 2], [1, 2, 3], None, ("y", 3)),
        (
            [0.0, np.nan, 1.0],
            [1, 2, 3],
            None,
            ("y", "NaN", 1),
        ),
        (np.array([0, np.nan, 1], object), [1, 2, 3], None, ("y", "NaN", 1)),
        (np.array(["no", 1, "no"], object), [1, 2, 3], None, ("y", "'int'", "'str'")),
        (np.array([[1], {}, 2], object), [1, 2, 3], None, ("y", "'dict'", "'list'")),
        ([1j, 0, 0], [1, 2, 3], None, ("y", "complex128")),
        (Y, [0.1, 0.2], None, ("scores", 4, 2)),
        (Y, [0.1, np.nan, 0.2, 0.3], None, ("scores", "nan", 1)),
        (Y, [0.1, 0.2, np.inf, 0.3], None, ("scores", "inf", 2)),
        (Y, ["a", "b", "c", "d"], None, ("scores", "<U1")),
        (Y, [[1], [2], [3], [4]], None, ("scores", (4, 1))),
        (Y, SCORES, [1, 1], ("sample_weight", 4, 2)),
        (Y, SCORES, [1, 1, -1, 1], ("sample_weight", -1, 2)),
        (Y, SCORES, [1, 1, 1e-200, 1], ("sample_weight", "1e-200", 2)),
        (Y, SCORES, [1, 1, 1e200, 1], ("sample_weight", "1e+200", 2)),
        (Y, SCORES, [1, np.inf, 1, 1], ("sample_weight", "inf", 1)),
        (Y, SCORES, [0, 0, 0, 0], ("sample_weight", 0)),
        (Y, SCORES, [1, 0, 1, 0], ("sample_weight", "positive")),
        (Y, SCORES, [0, 1, 0, 1], ("sample_weight", "negative")),
    ],
)
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_bad_input_is_refused_by_name(
    metric: Callable[..., Any],
    y: Any,
    scores: Any,
    weights: list[int] | list[Any] | None,
    named: tuple[object, ...],
) -> None:
    with raises(InvalidData, *named):
        metric(y, scores, weights)


@pytest.mark.parametrize(
    "y",
    [
        [-1, 1, -1, 1],
        [False, True, False, True],
        [0.5, 2.5, 0.5, 2.5],
        ["no", "yes", "no", "yes"],
        np.array(["no", "yes", "no", "yes"], object),
        np.array([0, 1, 0, 1], np.uint8),
    ],
)
def test_any_two_ordered_labels_will_do_and_the_greater_is_positive(y: Any) -> None:
    assert auc(y, SCORES) == auc(Y, SCORES) == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_any_real_dtype_of_scores_will_do(dtype: str) -> None:
    scores = np.array([0, 1, 0, 1]).astype(dtype)
    assert auc(Y, scores) == 1.0


@pytest.mark.parametrize("scale", [1e-80, 1e80])
def test_the_scale_of_the_weights_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(0)
    y, scores, weights = rng.integers(0, 2, 60), rng.normal(size=60), rng.random(60) + 0.5
    small, large = (summarise(y, scores, w) for w in (weights, weights * scale))
    np.testing.assert_allclose(large.auc, small.auc, rtol=1e-12)
    np.testing.assert_allclose(large.partial_aucs[0].interval, small.partial_aucs[0].interval)


def test_input_is_left_as_it_was() -> None:
    y, scores, weights = np.array(Y), np.array(SCORES), np.array([1.0, 0.0, 2.0, 3.0])
    before = y.copy(), scores.copy(), weights.copy()
    summarise(y, scores, weights)
    for array, copy in zip((y, scores, weights), before, strict=True):
        np.testing.assert_array_equal(array, copy)
