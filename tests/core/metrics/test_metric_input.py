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
    ("y", "scores", "weights", "message"),
    [
        ([], [], None, "y must not be empty"),
        ([[0, 1]], [0.1], None, r"y must be one-dimensional, got shape \(1, 2\)"),
        ([[0], [0, 1]], [0.1], None, "y must be a one-dimensional array, got ragged rows"),
        ([0, 0, 0], [1, 2, 3], None, r"y must have two classes, got 1 class: \[0\]"),
        ([True, True], [1, 2], None, r"got 1 class: \[True\]"),
        (["a", "a"], [1, 2], None, r"got 1 class: \['a'\]"),
        ([0, 1, 2], [1, 2, 3], None, r"y must contain two values, got 3 \(0, 1, 2, ...\)"),
        (
            [0.0, np.nan, 1.0],
            [1, 2, 3],
            None,
            "y must not contain missing values, got NaN at row 1",
        ),
        (np.array([0, np.nan, 1], object), [1, 2, 3], None, "y must not contain missing values"),
        (np.array(["no", 1, "no"], object), [1, 2, 3], None, "two values that can be ordered"),
        (np.array([[1], {}, 2], object), [1, 2, 3], None, "two values that can be ordered"),
        ([1j, 0, 0], [1, 2, 3], None, "y must contain numbers, booleans or strings"),
        (Y, [0.1, 0.2], None, "scores must have one value for each of the 4 rows of y, got 2"),
        (Y, [0.1, np.nan, 0.2, 0.3], None, "scores must be finite, got nan at index 1"),
        (Y, [0.1, 0.2, np.inf, 0.3], None, "scores must be finite, got inf at index 2"),
        (Y, ["a", "b", "c", "d"], None, "scores must contain real numbers"),
        (Y, [[1], [2], [3], [4]], None, "scores must be one-dimensional"),
        (Y, SCORES, [1, 1], "sample_weight must have one value for each of the 4 rows"),
        (Y, SCORES, [1, 1, -1, 1], "sample_weight must be 0 or between .*, got -1 at index 2"),
        (Y, SCORES, [1, 1, 1e-200, 1], "sample_weight must be 0 or between .* at index 2"),
        (Y, SCORES, [1, 1, 1e200, 1], "sample_weight must be 0 or between .* at index 2"),
        (Y, SCORES, [1, np.inf, 1, 1], "sample_weight must be finite, got inf at index 1"),
        (Y, SCORES, [0, 0, 0, 0], "got 0 for every row"),
        (Y, SCORES, [1, 0, 1, 0], "got 0 for every positive row"),
        (Y, SCORES, [0, 1, 0, 1], "got 0 for every negative row"),
    ],
)
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_bad_input_is_refused_by_name(
    metric: Callable[..., Any],
    y: Any,
    scores: Any,
    weights: list[int] | list[Any] | None,
    message: str,
) -> None:
    with pytest.raises(InvalidData, match=message):
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
