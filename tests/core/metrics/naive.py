"""The oracles of the metrics' tests: definitions over all pairs, draws one by one, and the tables that tests draw.

Slow and obviously right; each one names the equation that it writes out.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy.stats import norm

from core.metrics import ClassTotals, RocCurve, summarise


@st.composite
def rankings(draw: Any, weighted: Any = False, max_rows: Any = 12) -> Any:
    """(y, scores, weights or None) with both classes and many ties; weights are small whole numbers."""
    n_positive = draw(st.integers(1, max_rows // 2))
    n_negative = draw(st.integers(1, max_rows // 2))
    n_rows = n_positive + n_negative
    y = draw(st.permutations([1] * n_positive + [0] * n_negative))
    scores = draw(st.lists(st.integers(-3, 3), min_size=n_rows, max_size=n_rows))
    weights = None
    if weighted:
        weights = np.array(
            draw(st.lists(st.integers(1, 4), min_size=n_rows, max_size=n_rows)), float
        )
    return np.array(y), np.array(scores, dtype=float), weights


windows = (
    st.tuples(st.integers(0, 20), st.integers(0, 20))
    .filter(lambda w: w[0] < w[1])
    .map(lambda w: (w[0] / 20, w[1] / 20))
)


def repeat_rows(
    y: np.ndarray, scores: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The unweighted table that whole weights stand for."""
    copies = weights.astype(int)
    return np.repeat(y, copies), np.repeat(scores, copies)


def pair_auc(
    y: np.ndarray, scores: np.ndarray, weights: np.ndarray = None, tie: float = 0.5
) -> float:
    weights = np.ones(len(y)) if weights is None else weights
    value = total = 0.0
    for i in np.flatnonzero(y == 1):
        for k in np.flatnonzero(y == 0):
            pair = weights[i] * weights[k]
            total += pair
            value += pair * ((scores[i] > scores[k]) + tie * (scores[i] == scores[k]))
    return value / total


def empirical_pauc(y: np.ndarray, scores: np.ndarray, fpr_min: float, fpr_max: float) -> float:
    """Narasimhan & Agarwal, eq. 2, literally."""
    positives = scores[y == 1]
    negatives = sorted(scores[y == 0], reverse=True)
    n = len(negatives)
    first = math.floor(n * Decimal(str(fpr_min)))
    last = math.ceil(n * Decimal(str(fpr_max)))
    hits = sum(p > negatives[j - 1] for p in positives for j in range(first + 1, last + 1))
    return hits / (len(positives) * (last - first))


def roc_points(
    y: np.ndarray, scores: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """FPR and TPR of every cut, from (0, 0), by counting the rows again for each."""
    weights = np.ones(len(y)) if weights is None else weights
    cutoffs = [math.inf, *sorted(set(scores.tolist()), reverse=True)]
    positive, negative = weights * (y == 1), weights * (y == 0)
    fpr = [negative[scores >= cutoff].sum() / negative.sum() for cutoff in cutoffs]
    tpr = [positive[scores >= cutoff].sum() / positive.sum() for cutoff in cutoffs]
    return np.array(fpr), np.array(tpr), np.array(cutoffs)


def interpolated_pauc(
    y: np.ndarray, scores: np.ndarray, fpr_min: float, fpr_max: float, weights: np.ndarray = None
) -> float:
    """Area of the piecewise-linear curve, one segment at a time."""
    fpr, tpr, _ = roc_points(y, scores, weights)
    area = 0.0
    for x0, x1, y0, y1 in zip(fpr[:-1], fpr[1:], tpr[:-1], tpr[1:], strict=True):
        left, right = max(x0, fpr_min), min(x1, fpr_max)
        if right > left:
            middle = y0 + (y1 - y0) * ((left + right) / 2 - x0) / (x1 - x0)
            area += (right - left) * middle
    return area / (fpr_max - fpr_min)


def structural_components(y: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """DeLong, DeLong & Clarke-Pearson (1988), eq. 4: of each positive and of each negative, over all pairs."""
    positives, negatives = scores[y == 1], scores[y == 0]
    psi = (positives[:, None] > negatives) + 0.5 * (positives[:, None] == negatives)
    return psi.mean(axis=1), psi.mean(axis=0)


def delong_covariance(y: np.ndarray, scores: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Areas and covariance of DeLong, DeLong & Clarke-Pearson (1988), eqs. 3 to 6, over all pairs."""
    parts = [structural_components(y, column) for column in scores]
    areas = np.array([of_positives.mean() for of_positives, _ in parts])
    covariance = np.zeros((len(scores), len(scores)))
    for of_class in zip(*parts, strict=True):
        covariance = covariance + np.atleast_2d(np.cov(np.array(of_class))) / len(of_class[0])
    return areas, covariance


def delong_variance(y: np.ndarray, scores: np.ndarray) -> float:
    """The variance of one area, from the same equations."""
    return float(delong_covariance(y, [scores])[1][0, 0])


def area_interval(
    value: float, variance: float, n: float, classes: tuple[float, float] | None = None
) -> tuple[float, float]:
    """The 95 % interval of an area of single rows: where (A - a)² = z² a (1 - a) / n*, or one row may be all."""
    near = min(value, 1.0 - value)
    rows = 1.0 / (variance / near**2 + 1.0 / n)
    enough, bound = 25.0, 1.0 / n
    if classes is not None:  # Hanley & McNeil's, as they write it: Q1 and Q2
        enough, area, (m, k) = 64.0, 1.0 - near, sorted(classes)
        q1, q2 = area / (2.0 - area), 2.0 * area**2 / (1.0 + area)
        model = area * (1.0 - area) + (m - 1.0) * (q1 - area**2) + (k - 1.0) * (q2 - area**2)
        bound = min(bound, model / (m * k * area * (1.0 - area)))
    share = enough / (enough + rows**2)
    shown = variance / (value * (1.0 - value))
    inverse = max(share * bound + (1.0 - share) * shown, shown)
    z = norm.ppf(0.975)
    low, high = np.sort(
        np.roots([1 + z**2 * inverse, -2 * value - z**2 * inverse, value**2]).real
    ).tolist()
    if near / inverse <= 1.5:
        low = 0.0 if value < 0.5 + 1e-12 else low
        high = 1.0 if value > 0.5 - 1e-12 else high
    return low, high


def pair_margins(
    y: np.ndarray, scores: np.ndarray, weights: np.ndarray, l1_norm: float
) -> tuple[np.ndarray, np.ndarray]:
    """Margin and weight of every pair, as a list."""
    weights = np.ones(len(y)) if weights is None else weights
    pairs = [(i, k) for i in np.flatnonzero(y == 1) for k in np.flatnonzero(y == 0)]
    margins = np.array([(scores[i] - scores[k]) / l1_norm for i, k in pairs])
    return margins, np.array([weights[i] * weights[k] for i, k in pairs])


def curve_and_totals(
    y: Any, scores: Any, sample_weight: Any = None
) -> tuple[RocCurve, ClassTotals]:
    """Return what functions need that start from a stored curve."""
    found = summarise(y, scores, sample_weight)
    return found.curve, found.totals


def binormal_area(shift: float, window: tuple[float, float], digits: int | None = None) -> float:
    """Population value of the interpolated partial AUC of N(shift, 1) against N(0, 1), rounded scores or not."""
    step = 1e-3 if digits is None else 10.0**-digits
    edges = (np.arange(round(10 / step), round(-8 / step), -1) - 0.5) * step
    fpr = np.concatenate(([0], norm.sf(edges), [1]))
    tpr = np.concatenate(([0], norm.sf(edges - shift), [1]))
    grid = np.unique(np.concatenate((fpr[(fpr > window[0]) & (fpr < window[1])], window)))
    return np.trapezoid(np.interp(grid, fpr, tpr), grid) / (window[1] - window[0])
