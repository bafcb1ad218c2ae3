"""Are these scorers' areas different? Two or more scorers, one or several windows, on the same rows.

Each pair of scorers over each window has a difference with an interval and a p-value, adjusted over all of them, and
there is a joint test for each window and for all; `differences` says which tests they are and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidParameter
from core.metrics.bootstrap import bootstrap_areas, check_draws
from core.metrics.differences import holm, joint_p_value, judge
from core.metrics.groups import check_rows
from core.metrics.influence import Areas, estimate_areas
from core.metrics.intervals import METHODS, Interval, Method, area_interval
from core.metrics.window import Window, check_level, check_window

Adjustment = Literal["holm", "none"]
ADJUSTMENTS = ("holm", "none")


@dataclass(frozen=True)
class Difference:
    """How much greater the area of `first` is than that of `second`.

    Attributes
    ----------
    first, second : str
        Names of the scorers.
    value : float in [-1, 1]
        Area of `first` less area of `second`, each divided by the window's width.
    low, high : float in [-1, 1]
        Ends of its confidence interval.
    p_value : float in [0, 1]
        Two-sided, of H₀: the areas are equal.
    adjusted_p_value : float in [0, 1]
        Adjusted over all differences of the comparison.
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class WindowComparison:
    """The scorers over one window of false positive rates.

    Attributes
    ----------
    fpr_min, fpr_max : float in [0, 1]
    values : tuple of Interval
        The area of each scorer, divided by the window's width, in the order of the scorers.
    differences : tuple of Difference
        Every pair of scorers, in their order: (1, 2), (1, 3), …, (2, 3), …
    joint_p_value : float in [0, 1]
        Of H₀: all areas over this window are equal.
    """

    fpr_min: float
    fpr_max: float
    values: tuple[Interval, ...]
    differences: tuple[Difference, ...]
    joint_p_value: float


@dataclass(frozen=True)
class Comparison:
    """Scorers on the same rows, window by window.

    Attributes
    ----------
    names : tuple of str
        The scorers.
    windows : tuple of WindowComparison
    joint_p_value : float in [0, 1]
        Of H₀: all areas are equal in every window.
    n_tests : int
        Pairs of scorers times windows: what the adjusted p-values are adjusted for.
    level : float in (0, 1)
        Level of each interval by itself.
    """

    names: tuple[str, ...]
    windows: tuple[WindowComparison, ...]
    joint_p_value: float
    n_tests: int
    level: float


def compare(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    windows: Sequence[Window] = ((0.0, 1.0),),
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    method: Method = "analytic",
    n_bootstrap: int = 1000,
    random_state: int = 0,
    adjust: Adjustment = "holm",
) -> Comparison:
    """Compare the areas of two or more scorers on the same rows, over one or several windows.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Exactly two distinct values; the greater one is positive.
    scores : sequence of array_like of float, each of shape (n_samples,)
        Two or more scorers. Finite; higher means more likely positive. Each may have a scale of its own.
    windows : sequence of (fpr_min, fpr_max)
        Windows of false positive rates; (0, 1) is the AUC.
    level : float in (0, 1)
        Level of each interval by itself.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative. Weights are shares, not counts: doubling all of them changes nothing.
    group : array_like, shape (n_samples,), optional
        Rows of one value are drawn together: several rows of a patient.
    names : sequence of str, optional
        Names of the scorers, all different; "scores[0]", … by default.
    method : {"analytic", "bootstrap"}
        Where variances and covariances come from: influences, or replicates of all areas on the same draws.
    n_bootstrap : int
        Number of samples, at least 2.
    random_state : int
        Seed of the samples, not negative.
    adjust : {"holm", "none"}
        How p-values are adjusted, over all pairs and windows.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidData
        If lengths differ, a value is not finite, or a class is empty or without weight.
    InvalidParameter
        If there are fewer than two scorers or no window, or a parameter is out of range.

    Notes
    -----
    O(k n log n + k² n m) time and O(k n m) memory for k scorers and m windows; the bootstrap adds O(k n m) for each
    sample.

    Examples
    --------
    >>> y = [1, 1, 1, 1, 0, 0, 0, 0]
    >>> found = compare(y, [[8, 7, 6, 4, 5, 3, 2, 1], [4, 8, 2, 6, 7, 1, 5, 3]], names=["new", "old"])
    >>> found.windows[0].differences[0].value
    0.3125
    """
    checked = check_windows(windows)
    level = check_level(level)
    named = check_names(names, len(scores))
    if adjust not in ADJUSTMENTS:
        raise InvalidParameter(f"adjust must be one of {ADJUSTMENTS}, got {adjust!r}")
    if method not in METHODS:
        raise InvalidParameter(f"method must be one of {METHODS}, got {method!r}")
    check_draws(n_bootstrap, random_state)
    columns = {f"scores[{k}]": column for k, column in enumerate(scores)}
    rows = check_rows(y, columns, sample_weight, group)
    if method == "bootstrap":
        areas = bootstrap_areas(rows, checked, n_bootstrap, random_state)
    else:
        areas = estimate_areas(rows, checked)
    return compare_areas(areas, named, checked, level, adjust)


class Options(TypedDict, total=False):
    """The options of `compare` but for its windows."""

    level: float
    sample_weight: ArrayLike | None
    group: ArrayLike | None
    names: Sequence[str] | None
    method: Method
    n_bootstrap: int
    random_state: int
    adjust: Adjustment


def compare_auc(
    y: ArrayLike, scores: Sequence[ArrayLike], **options: Unpack[Options]
) -> Comparison:
    """`compare` the AUCs."""
    return compare(y, scores, ((0.0, 1.0),), **options)


def compare_partial_auc(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    **options: Unpack[Options],
) -> Comparison:
    """`compare` the partial AUCs over one window."""
    return compare(y, scores, ((fpr_min, fpr_max),), **options)


def check_windows(windows: Sequence[Window]) -> list[Window]:
    """The windows as `check_window` gives them; at least one."""
    checked = []
    for window in windows:
        try:
            low, high = window
        except (TypeError, ValueError) as error:
            raise InvalidParameter(
                f"a window must be a pair (fpr_min, fpr_max), got {window!r}"
            ) from error
        checked.append(check_window(low, high))
    if not checked:
        raise InvalidParameter("windows must name at least one window, got none")
    return checked


def check_names(names: Sequence[str] | None, n_scorers: int) -> tuple[str, ...]:
    """A name for each of two or more scorers, no two alike."""
    if n_scorers < 2:
        raise InvalidParameter(f"scores must hold at least two scorers, got {n_scorers}")
    if names is None:
        return tuple(f"scores[{k}]" for k in range(n_scorers))
    if len(names) != n_scorers:
        raise InvalidParameter(
            f"names must name each of the {n_scorers} scorers, got {len(names)} names"
        )
    if len(set(names)) < n_scorers:
        raise InvalidParameter(f"names must differ from one another, got {list(names)}")
    return tuple(names)


def compare_areas(
    areas: Areas,
    names: tuple[str, ...],
    windows: Sequence[Window],
    level: float,
    adjust: Adjustment,
) -> Comparison:
    """`compare` of areas that have been estimated on the same units."""
    pairs = list(combinations(range(len(names)), 2))
    found = [
        [judge(areas, pair, j, window, level) for pair in pairs] for j, window in enumerate(windows)
    ]
    p_values = np.array([[p_value for _, p_value in of_window] for of_window in found])
    adjusted = p_values if adjust == "none" else holm(p_values)
    compared = tuple(
        WindowComparison(
            *window,
            tuple(area_interval(areas, k, j, window, level) for k in range(len(names))),
            tuple(
                Difference(names[a], names[b], *interval, float(p), float(adjusted[j, i]))
                for i, ((a, b), (interval, p)) in enumerate(zip(pairs, found[j], strict=True))
            ),
            joint_p_value(areas, [j], p_values[j]),
        )
        for j, window in enumerate(windows)
    )
    every = joint_p_value(areas, list(range(len(windows))), p_values)
    return Comparison(names, compared, every, p_values.size, level)
