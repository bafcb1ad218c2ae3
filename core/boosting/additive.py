"""Bagged additive models (Lou et al. 2012, 2013): slow rounds over single columns, then over a few pairs of columns."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_doc import Doc
from annotated_types import Ge, Le
from scipy.special import chdtri

from core.base.checkpoint import Resumable, identify_fit, offered
from core.base.monotone import Directions, Monotone, Verification, Violation
from core.base.ranker import Callback, ContributionRanker, Floats, Groups, StopFit, warn_stopped
from core.base.splits import column_keys, split_rows
from core.base.state import (
    FINITE,
    Array,
    Index,
    Integers,
    Nested,
    State,
    Totals,
    Value,
    take_from,
)
from core.base.table import Categories
from core.coding.bins import MaxNarrowBins, code_columns, learn_bins, missing_code
from core.coding.threads import ThreadPool
from core.errors import ArtifactError, InvalidData
from core.kernels import INNER, kernel
from core.trees.sampling import uniform

from .options import LearningRate, RandomState
from .stumps import StepFunctions, describe_steps, look_up

HELD_OUT = 0.15  # fraction of the rows that each bag leaves out, to choose its number of rounds
PATIENCE = 50  # rounds without a lower loss of the rows left out before a bag ends
MIN_FALL = 1e-5  # fraction of a bag's loss: a smaller fall counts as none
UNJUDGED_ROUNDS = 100  # rounds of a bag with too few rows of a class to leave any out
LEVEL_SMOOTHING = 30.0  # smoothing of a category, in that of a side of a threshold
CANDIDATES = 3  # thresholds of a column that a round compares, on average, drawn at random
MAX_STEP = 30.0  # greatest Newton step, before the learning rate, in units of the score
ODDS = (1e-100, 1e100)  # range of the odds of a row: beyond, they would overflow
CELLS = (
    16  # cells of a column in a pair, the last one for the missing; 16 times 16 codes fit in a byte
)
MAX_SCREENED = 40  # columns, those of the largest effects, of which all pairs are compared
CHANCE = 0.05  # probability that chance alone would let any pair be chosen, about
CUTS = 25  # independent cuts of a pair, about: those of neighbouring thresholds are alike
PURE = 1e-12  # largest mean of a row or column of a pair's table, in units of the score
MAX_PURIFIED = 200  # sweeps over rows and columns of a pair's table at most

STUMP, LEVELS, PAIR = 0, 1, 2
"""What a round adds: a stump of a numeric column, a step for each category, or a step for each quadrant of a pair."""

StopReason = Literal["n_rounds", "no_edge", "validation", "stopped"]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_LINE = numba.float64[::1]
_TABLE = numba.float64[:, ::1]
_CUBE = numba.float64[:, :, ::1]


@numba.njit(error_model="numpy", **INNER)
def _newton(gradient, curvature):  # type: ignore[no-untyped-def]
    """Return the Newton step of a set of rows, cut off at ± `MAX_STEP`; 0 without curvature."""
    if curvature <= 0.0:
        return 0.0
    return min(max(gradient / curvature, -MAX_STEP), MAX_STEP)


@kernel(
    numba.boolean(
        _LINE,
        _LINE,
        _LINE,
        numba.int64,
        numba.int8,
        numba.float64,
        numba.float64,
        numba.uint64,
        numba.uint64,
        _LINE,
    ),
    inner=True,
    error_model="numpy",
)
def _cut(gradients, curvatures, masses, n_bins, direction, smoothing, least, key, start, steps):  # type: ignore[no-untyped-def]
    """Write the steps of the best of some random cuts of a column; return False if there is none.

    gradients, curvatures, masses, steps: (n_slots,) float64, one value per bin, and those of the missing last.
    """
    gradient = curvature = mass = 0.0
    for b in range(n_bins):
        gradient += gradients[b]
        curvature += curvatures[b]
        mass += masses[b]
    best, cut, below, above = 0.0, -1, 0.0, 0.0
    left_g = left_h = left_m = 0.0
    for b in range(n_bins - 1):
        left_g += gradients[b]
        left_h += curvatures[b]
        left_m += masses[b]
        if left_m < least or mass - left_m < least:
            continue
        if (n_bins - 1) * uniform(key, start + np.uint64(b)) >= CANDIDATES:
            continue
        right_g, right_h = gradient - left_g, curvature - left_h
        gain = left_g**2 / (left_h + smoothing) + right_g**2 / (right_h + smoothing)
        if gain <= best:
            continue
        left, right = _newton(left_g, left_h + smoothing), _newton(right_g, right_h + smoothing)
        if direction * (right - left) < 0.0:
            continue
        best, cut, below, above = gain, b, left, right
    for b in range(n_bins):
        steps[b] = below if b <= cut else above
    missing = len(steps) - 1
    steps[missing] = 0.0
    lightest = min(masses[missing], mass)
    if lightest >= least and lightest > 0.0:
        steps[missing] = _newton(gradients[missing], curvatures[missing] + smoothing)
    return cut >= 0 or steps[missing] != 0.0


@kernel(
    numba.boolean(_LINE, _LINE, _LINE, numba.float64, numba.float64, _LINE),
    inner=True,
    error_model="numpy",
)
def _cut_twice(gradients, curvatures, masses, smoothing, least, steps):  # type: ignore[no-untyped-def]
    """Write the steps of the best cut of both columns of a pair; return False if there is none.

    A side of both cuts with less than the least mass has no step. Arrays as in `_cut`, (CELLS · CELLS,).
    """
    sums = np.zeros((3, CELLS + 1, CELLS + 1))  # of the cells before a row and a column
    for a in range(CELLS):
        for b in range(CELLS):
            c = a * CELLS + b
            for k in range(3):
                value = gradients[c] if k == 0 else (curvatures[c] if k == 1 else masses[c])
                sums[k, a + 1, b + 1] = (
                    value + sums[k, a, b + 1] + sums[k, a + 1, b] - sums[k, a, b]
                )
    best, cut_a, cut_b = 0.0, -1, -1
    corner = np.empty((3, 4))
    for a in range(1, CELLS):
        for b in range(1, CELLS):
            for k in range(3):
                _quadrants(sums[k], a, b, corner[k])
            gain = 0.0
            for q in range(4):
                if corner[2, q] >= least and corner[2, q] > 0.0:
                    gain += corner[0, q] ** 2 / (corner[1, q] + smoothing)
            if gain > best:
                best, cut_a, cut_b = gain, a, b
    if cut_a < 0:
        return False
    for k in range(3):
        _quadrants(sums[k], cut_a, cut_b, corner[k])
    for q in range(4):
        is_heavy = corner[2, q] >= least and corner[2, q] > 0.0
        corner[0, q] = _newton(corner[0, q], corner[1, q] + smoothing) if is_heavy else 0.0
    for a in range(CELLS):
        for b in range(CELLS):
            steps[a * CELLS + b] = corner[0, 2 * (a >= cut_a) + (b >= cut_b)]
    return True


@numba.njit(**INNER)
def _quadrants(sums, a, b, corner):  # type: ignore[no-untyped-def]
    """Write the sums of the four sides of two cuts; sums: (CELLS + 1, CELLS + 1) float64, corner: (4,) float64."""
    n = CELLS
    corner[0] = sums[a, b]
    corner[1] = sums[a, n] - sums[a, b]
    corner[2] = sums[n, b] - sums[a, b]
    corner[3] = sums[n, n] - sums[a, n] - sums[n, b] + sums[a, b]


@kernel(
    numba.void(
        numba.int64,
        numba.int64,
        numba.int64,
        numba.uint8[:, ::1],
        numba.int64[::1],
        numba.int64[::1],
        numba.int8[::1],
        numba.boolean[::1],
        _LINE,
        numba.boolean[:, ::1],
        _CUBE,
        _LINE,
        numba.uint64[::1],
        numba.int64[::1],
        numba.uint64[::1],
        numba.types.UniTuple(numba.float64, 3),
        numba.int64,
        numba.boolean[::1],
        _TABLE,
        _CUBE,
        _LINE,
        numba.int64[::1],
    ),
    error_model="numpy",
)
def run_round(  # type: ignore[no-untyped-def]
    first,
    stride,
    n_bags,
    codes,
    kinds,
    n_bins,
    directions,
    positive,
    weight,
    held,
    masses,
    curvature,
    keys,
    order,
    column_keys,
    how,
    number,
    ended,
    odds,
    shapes,
    losses,
    n_steps,
):
    """Run one round of the bags first, first + stride, ...: a step along each column, in turn.

    codes: (n_columns, n_rows) uint8, below n_slots; kinds, n_bins, directions: (n_columns,); positive, weight:
    (n_rows,); held: (n_bags, n_rows) bool, the rows left out; masses: (n_bags, n_columns, n_slots) float64; curvature,
    keys: (n_bags,), the mean curvature of a row, and the stream of random numbers; order, column_keys: (n_columns,)
    int64 and uint64, the columns in turn and their part of that stream; how: learning rate, smoothing and least mass;
    number: of the round; ended: (n_bags,) bool. Changed: odds, (n_bags, n_rows) float64; shapes, (n_bags, n_columns,
    n_slots) float64; losses, (n_bags,) float64, of the rows left out; n_steps, (n_bags,) int64.
    """
    rate, smoothing, least = how
    n_rows = codes.shape[1]
    n_slots = shapes.shape[2]
    gradients, curvatures = np.empty(n_slots), np.empty(n_slots)
    steps, factors = np.empty(n_slots), np.empty(n_slots)
    for k in range(first, n_bags, stride):
        if ended[k]:
            continue
        own, out = odds[k], held[k]
        added = smoothing * curvature[k]
        n_steps[k] = 0
        for j in order:
            column = codes[j]
            steps[:] = 0.0
            gradients[:] = 0.0
            curvatures[:] = 0.0
            for i in range(n_rows):
                if not out[i]:
                    p = own[i] / (1.0 + own[i])
                    c = column[i]
                    gradients[c] += weight[i] * ((1.0 - p) if positive[i] else -p)
                    curvatures[c] += weight[i] * (p * (1.0 - p))
            has_step = False
            if kinds[j] == STUMP:
                key = keys[k] ^ column_keys[j]
                has_step = _cut(
                    gradients,
                    curvatures,
                    masses[k, j],
                    n_bins[j],
                    directions[j],
                    added,
                    least,
                    key,
                    np.uint64(number * n_slots),
                    steps,
                )
            elif kinds[j] == PAIR:
                has_step = _cut_twice(gradients, curvatures, masses[k, j], added, least, steps)
            elif (masses[k, j] > 0.0).sum() > 1:
                for c in range(n_slots):
                    if masses[k, j, c] > 0.0:
                        steps[c] = _newton(gradients[c], curvatures[c] + LEVEL_SMOOTHING * added)
                        has_step = has_step or steps[c] != 0.0
            if not has_step:
                continue
            n_steps[k] += 1
            for c in range(n_slots):
                steps[c] *= rate
                shapes[k, j, c] += steps[c]
                factors[c] = math.exp(steps[c])
            for i in range(n_rows):
                own[i] = min(max(own[i] * factors[column[i]], ODDS[0]), ODDS[1])
        loss = total = 0.0
        for i in range(n_rows):
            if out[i]:
                total += weight[i]
                loss += weight[i] * (
                    math.log1p(1.0 / own[i]) if positive[i] else math.log1p(own[i])
                )
        losses[k] = loss / total if total > 0.0 else np.nan


@kernel(
    numba.void(
        numba.int64, numba.int64, numba.int64, numba.uint8[:, ::1], numba.int64[:, ::1], _LINE, _LINE, _LINE,
        numba.float64, numba.float64, _LINE,
    ),
    error_model="numpy",
)  # fmt: skip
def screen_pairs(  # type: ignore[no-untyped-def]
    first,
    stride,
    n_pairs,
    cells,
    pairs,
    gradient,
    curvature,
    weight,
    smoothing,
    least,
    gains,
):
    """Write how much the quadrants of two cuts explain of the gradients beyond the sum of two stumps, at the best cuts.

    cells: (n_columns, n_rows) uint8, below CELLS; pairs: (n_pairs, 2) int64; gradient, curvature, weight: (n_rows,)
    float64; gains: (n_pairs,) float64. With values r = G/H of the quadrants and curvatures H a cut explains
    (r₁ - r₂ - r₃ + r₄)² / Σ 1/H.
    """
    sums, corner = np.empty((3, CELLS + 1, CELLS + 1)), np.empty((3, 4))
    for pair in range(first, n_pairs, stride):
        one, other = cells[pairs[pair, 0]], cells[pairs[pair, 1]]
        sums[:] = 0.0
        for i in range(len(gradient)):
            a, b = one[i] + 1, other[i] + 1
            sums[0, a, b] += gradient[i]
            sums[1, a, b] += curvature[i]
            sums[2, a, b] += weight[i]
        for k in range(3):
            for a in range(1, CELLS + 1):
                for b in range(1, CELLS + 1):
                    sums[k, a, b] += sums[k, a - 1, b] + sums[k, a, b - 1] - sums[k, a - 1, b - 1]
        best = 0.0
        for a in range(1, CELLS):
            for b in range(1, CELLS):
                for k in range(3):
                    _quadrants(sums[k], a, b, corner[k])
                contrast = inverse = 0.0
                heavy = True
                for q in range(4):
                    heavy = heavy and corner[2, q] >= least and corner[2, q] > 0.0
                    sign = 1.0 if q in (0, 3) else -1.0
                    contrast += sign * corner[0, q] / (corner[1, q] + smoothing)
                    inverse += 1.0 / (corner[1, q] + smoothing)
                if heavy and contrast**2 / inverse > best:
                    best = contrast**2 / inverse
        gains[pair] = best


_READ_ONLY_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_READ_ONLY_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)


@kernel(
    numba.void(
        numba.types.Array(numba.float64, 2, "C", readonly=True),
        _READ_ONLY_INTEGERS,
        _READ_ONLY_INTEGERS,
        _READ_ONLY_FLOATS,
        _READ_ONLY_FLOATS,
        numba.types.Array(numba.int64, 2, "C", readonly=True),
        numba.types.Array(numba.float64, 3, "C", readonly=True),
        _TABLE,
    )
)
def look_up_pairs(X, features, starts, thresholds, cells, pairs, tables, parts):  # type: ignore[no-untyped-def]
    """Add the value of each pair of columns to parts, (n_rows, n_features), half to each; or to (n_rows, 1), the sum.

    X: (n_rows, n_features) float64; features, starts, thresholds, cells: see `StepFunctions`; pairs: (n_pairs, 2)
    int64, indices of features; tables: (n_pairs, CELLS, CELLS) float64.
    """
    as_sum = parts.shape[1] == 1
    own = np.empty(len(features), dtype=np.int64)
    for i in range(X.shape[0]):
        for u in range(len(features)):
            x = X[i, features[u]]
            own[u] = np.int64(look_up(x, u, starts[u], starts[u + 1], thresholds, cells))
        for k in range(len(pairs)):
            one, other = pairs[k, 0], pairs[k, 1]
            value = tables[k, own[one], own[other]]
            if as_sum:
                parts[i, 0] += value
            else:
                parts[i, features[one]] += 0.5 * value
                parts[i, features[other]] += 0.5 * value


NOT_NEGATIVE = (Ge(0.0), Le(1e300))


@dataclass(frozen=True, eq=False)
class Shapes(State):
    """Σ_j g_j(x_j) + Σ g_jk(x_j, x_k): a step function for each column, and a table for each of some pairs.

    The mean of each over the training rows is 0, also of each row and each column of a table.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    features : ndarray of shape (n_used,), int64
        Ascending; those with a step function.
    n_thresholds : ndarray of shape (n_used,), int64
        Of each step function.
    thresholds : ndarray of shape (n_all_thresholds,), float64
        Ascending within a feature; for K categories 0, 1, ..., K - 2.
    shape_values, shape_deviations : ndarray of shape (n_all_thresholds + 2 · n_used,), float64
        The values between the thresholds of a feature, then that of a missing x; and their standard deviations over
        the bags.
    axis_features, n_axis_thresholds, axis_thresholds : ndarray of int64, int64 and float64
        The same of the step functions that give the cell of a value in tables; the features of at least one pair.
    axis_cells : ndarray of shape (n_all_axis_thresholds + 2 · n_axes,), int64
    pairs : ndarray of shape (n_pairs, 2), int64
        Indices of axes.
    tables, table_deviations : ndarray of shape (n_pairs, CELLS, CELLS), float64
    """

    n_categories: Integers
    features: Annotated[Integers, Array("n_used"), Index("n_features")]
    n_thresholds: Annotated[Integers, Array("n_used"), Totals("n_all_thresholds")]
    thresholds: Annotated[Floats, Array("n_all_thresholds"), FINITE]
    shape_values: Annotated[Floats, Array("n_all_thresholds + n_used + n_used"), FINITE]
    shape_deviations: Annotated[Floats, Array("n_all_thresholds + n_used + n_used"), *NOT_NEGATIVE]
    axis_features: Annotated[Integers, Array("n_axes"), Index("n_features")]
    n_axis_thresholds: Annotated[Integers, Array("n_axes"), Totals("n_all_axis_thresholds")]
    axis_thresholds: Annotated[Floats, Array("n_all_axis_thresholds"), FINITE]
    axis_cells: Annotated[
        Integers, Array("n_all_axis_thresholds + n_axes + n_axes"), Ge(0), Le(CELLS - 1)
    ]
    pairs: Annotated[Integers, Array("n_pairs", 2), Index("n_axes")]
    tables: Annotated[Floats, Array("n_pairs", CELLS, CELLS), FINITE]
    table_deviations: Annotated[Floats, Array("n_pairs", CELLS, CELLS), *NOT_NEGATIVE]

    def check(self) -> None:
        """Raise ArtifactError for step functions or pairs that no fit can produce."""
        for steps in (self.steps, self.axes):
            if (np.diff(steps.features) <= 0).any():
                raise ArtifactError("features must ascend")
            for feature, thresholds, *_ in steps.per_feature():
                n = int(self.n_categories[feature])
                if n and thresholds.tolist() != list(range(n - 1)):
                    raise ArtifactError("thresholds of a categorical feature must be 0, 1, ...")
                if (np.diff(thresholds) <= 0.0).any():
                    raise ArtifactError("thresholds must ascend within a feature")
        if len(self.pairs) and (self.pairs[:, 0] >= self.pairs[:, 1]).any():
            raise ArtifactError("pairs must be of two features, the first one first")

    @cached_property
    def steps(self) -> StepFunctions:
        """The step functions of single columns."""
        return _step_functions(self.features, self.n_thresholds, self.thresholds, self.shape_values)

    @cached_property
    def axes(self) -> StepFunctions:
        """The step functions that give the cell of a value."""
        return _step_functions(
            self.axis_features, self.n_axis_thresholds, self.axis_thresholds, self.axis_cells
        )

    def score(self, X: Floats, offset: float) -> Floats:
        """Return the score of each row, without checks; X is C-contiguous."""
        scores = self.steps.score(X, offset)
        self._add_pairs(X, scores[:, None])
        return scores

    def contributions(self, X: Floats) -> Floats:
        """Return the part of each row and feature: its step function, and half of each of its pairs."""
        parts = self.steps.contributions(X)
        if len(self.pairs):
            own = np.zeros((len(X), max(X.shape[1], 2)))
            self._add_pairs(X, own)
            parts += own
        return parts

    def _add_pairs(self, X: Floats, parts: Floats) -> None:
        if len(self.pairs):
            axes = self.axes
            look_up_pairs(
                X, axes.features, axes.starts, axes.thresholds, axes.values, self.pairs,
                self.tables, parts,
            )  # fmt: skip

    def walk_monotone(self, directions: Directions) -> Verification:
        """Compare the neighbouring steps of each constrained column, in the worst cells of its pairs' other columns."""
        compared, violations = 0, []
        shapes = {feature: (t, v) for feature, t, v, _ in self.steps.per_feature()}
        cells = {feature: (t, v.astype(np.int64)) for feature, t, v, _ in self.axes.per_feature()}
        no_steps = np.empty(0), np.zeros(1)
        for feature in np.flatnonzero(directions).tolist():
            own, axis = shapes.get(feature, no_steps), cells.get(feature, no_steps)
            thresholds = np.union1d(own[0], axis[0])
            below = np.searchsorted(own[0], thresholds), np.searchsorted(axis[0], thresholds)
            above = [np.searchsorted(of[0], thresholds, side="right") for of in (own, axis)]
            sign = int(directions[feature])
            rises = sign * (own[1][above[0]] - own[1][below[0]])
            worst: dict[int, npt.NDArray[np.intp]] = {}
            for pair, table in zip(self.pairs, self.tables, strict=True):
                ends = self.axes.features[pair].tolist()
                if feature not in ends:
                    continue
                turned = table if ends[0] == feature else table.T
                other = ends[1] if ends[0] == feature else ends[0]
                reached = self._reached(other)
                at = axis[1][above[1]].astype(np.intp), axis[1][below[1]].astype(np.intp)
                changes = sign * (turned[at[0]] - turned[at[1]])[:, reached]
                worst[other] = np.asarray(reached)[changes.argmin(axis=1)]
                rises = rises + changes.min(axis=1)
            compared += len(rises)
            for k in np.flatnonzero(rises < 0.0)[:1].tolist():
                threshold = float(thresholds[k])
                higher = float(np.nextafter(threshold, np.inf))
                rows = np.zeros((2, len(directions)))
                rows[:, feature] = threshold, higher
                for other, at_worst in worst.items():
                    rows[:, other] = self._value_in(other, int(at_worst[k]))
                violations.append(Violation(feature, threshold, higher, rows))
        return Verification(compared, violations)

    def _cells_of(self, feature: int) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Return values of a feature, the missing last, and the cell of each: one of each step."""
        u = int(np.searchsorted(self.axes.features, feature))
        start, stop = self.axes.starts[u], self.axes.starts[u + 1]
        thresholds = self.axis_thresholds[start:stop]
        last = np.nextafter(thresholds[-1], np.inf) if len(thresholds) else 0.0
        cells = self.axis_cells[start + 2 * u : stop + 2 * u + 2]
        values = np.concatenate([thresholds, [last, np.nan]])
        n = int(self.n_categories[feature])
        if n:
            values[:n] = np.arange(n)
        return values, cells

    def _reached(self, feature: int) -> list[int]:
        reached: list[int] = np.unique(self._cells_of(feature)[1]).tolist()
        return reached

    def _value_in(self, feature: int, cell: int) -> float:
        values, cells = self._cells_of(feature)
        return float(values[np.flatnonzero(cells == cell)[0]])

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe the step functions, with the deviation of each value over the bags, and the pairs."""
        features = describe_steps(self.steps, name, categories)
        deviations = _step_functions(
            self.features, self.n_thresholds, self.thresholds, self.shape_deviations
        )
        for described, (*_, values, missing) in zip(
            features, deviations.per_feature(), strict=True
        ):
            described |= {"deviations": values.tolist(), "missing_deviation": missing}
        pairs = []
        for pair, table, deviation in zip(
            self.pairs, self.tables, self.table_deviations, strict=True
        ):
            ends = self.axes.features[pair].tolist()
            axes = [self._describe_axis(feature, name, categories) for feature in ends]
            rows, columns = (axis.pop("cells") for axis in axes)
            pairs.append(
                {
                    "features": [name(feature) for feature in ends],
                    "axes": axes,
                    "values": table[np.ix_(rows, columns)].tolist(),
                    "deviations": deviation[np.ix_(rows, columns)].tolist(),
                }
            )
        return {"features": features, "pairs": pairs}

    def _describe_axis(
        self, feature: int, name: Callable[[int], str], categories: Categories
    ) -> dict[str, Any]:
        _, cells = self._cells_of(feature)
        names = categories[feature]
        if names:
            steps: dict[str, Any] = {"categories": list(names)}
        else:
            u = int(np.searchsorted(self.axes.features, feature))
            own = slice(self.axes.starts[u], self.axes.starts[u + 1])
            steps = {"thresholds": self.axis_thresholds[own].tolist()}
        return {"feature": name(feature), **steps, "cells": cells.tolist()}


def _step_functions(
    features: Integers, n_thresholds: Integers, thresholds: Floats, values: npt.NDArray[Any]
) -> StepFunctions:
    starts = np.cumsum([0, *n_thresholds], dtype=np.int64)
    return StepFunctions(features, starts, thresholds, values.astype(np.float64))


class _Stage(Resumable):
    """The rounds of all bags over some columns: their present functions, and the best so far.

    Attributes
    ----------
    best : ndarray of shape (n_bags, n_columns, n_slots), float64
        The functions of the columns after the round of the lowest loss of the rows left out.
    best_loss, best_round : ndarray of shape (n_bags,), float64 and int64
    ended : ndarray of shape (n_bags,), bool
    """

    changing = ("odds", "shapes", "best", "best_loss", "best_round", "ended")

    def __init__(
        self,
        bags: "Bags",
        codes: Bytes,
        kinds: Integers,
        n_bins: Integers,
        directions: Directions,
        n_slots: int,
        log_odds: Floats,
        column_keys: Groups,
        first: int = 0,
        best_loss: Floats | None = None,
    ) -> None:
        n_bags, n_columns = len(bags.held), len(codes)
        self._bags, self._codes, self._kinds, self._n_bins = bags, codes, kinds, n_bins
        self._directions = directions
        self._column_keys = column_keys
        self.order = np.argsort(column_keys, kind="stable")
        self.odds = np.clip(np.exp(np.clip(log_odds, -500.0, 500.0)), *ODDS)
        self.shapes = np.zeros((n_bags, n_columns, n_slots))
        self.best = self.shapes.copy()
        self.best_loss = np.full(n_bags, np.inf) if best_loss is None else best_loss.copy()
        self.best_round = np.full(n_bags, first)
        self._first = first
        self.ended = np.zeros(n_bags, dtype=np.bool_)
        self._masses = np.empty((n_bags, n_columns, n_slots))
        for k, held in enumerate(bags.held):
            weight = np.where(held, 0.0, bags.weight)
            for j, column in enumerate(codes):
                self._masses[k, j] = np.bincount(column, weight, n_slots)
        # About what a round takes, so that it is worth the while of a thread.
        self._pool = ThreadPool(codes.size * n_bags)

    def advance(self, number: int) -> float:
        """Run a round, of a number that no other round has; return the mean loss of the rows left out."""
        bags, n_bags = self._bags, len(self.ended)
        losses, n_steps = self.best_loss.copy(), np.zeros(n_bags, dtype=np.int64)
        self._pool.run(
            run_round, n_bags, self._codes, self._kinds, self._n_bins, self._directions, bags.positive,
            bags.weight, bags.held, self._masses, bags.curvature, bags.keys, self.order,
            self._column_keys, bags.how, number,
            self.ended, self.odds, self.shapes, losses, n_steps,
        )  # fmt: skip
        for k in np.flatnonzero(~self.ended).tolist():
            if n_steps[k] == 0:
                self.ended[k] = True
            elif not bags.held[k].any():  # the last of a fixed number
                self.best[k], self.best_round[k] = self.shapes[k], self.best_round[k] + 1
                self.ended[k] = self.best_round[k] - self._first == UNJUDGED_ROUNDS
            elif losses[k] < self.best_loss[k] * (1.0 - MIN_FALL):
                self.best[k], self.best_round[k] = self.shapes[k], number + 1
                self.best_loss[k] = losses[k]
            else:
                self.ended[k] = number + 1 - self.best_round[k] >= PATIENCE
        judged = bags.held.any(axis=1)
        return float(losses[judged].mean()) if judged.any() else math.nan


class _Axis(NamedTuple):
    """The cells of a column in pairs."""

    column: int
    cells: Integers
    """The cell of each slot, shape (n_slots,)."""


class Bags(Resumable):
    """The bags of a fit: draws of the rows, and their rounds over single columns and then over pairs.

    Attributes
    ----------
    losses : list of float
        Mean loss of the rows left out after each round; NaN if no bag could leave any out.
    columns, pairs : _Stage
        `pairs` is None until all bags have ended their rounds over single columns.
    """

    changing = ("losses", "columns", "pairs")

    def __init__(
        self,
        parameters: "Additive",
        X: Floats,
        positive: Bools,
        weight: Floats,
        group: Groups | None,
    ) -> None:
        n_bags, n_categories = parameters.n_bags, parameters._n_categories()
        rows = np.arange(len(X))
        self.bins = learn_bins(X, rows, weight, parameters.max_bins, n_categories)
        self.codes = code_columns(X, rows, self.bins)
        self.n_slots = int(self.bins.n_bins.max()) + 1
        self.codes[self.codes == missing_code(self.codes.dtype)] = self.n_slots - 1
        self.positive = positive
        self.weight = np.asarray(weight / min(1.0, float(weight.mean())))
        self.held = np.array(
            [
                leave_out(X, positive, weight, group, parameters.random_state + (k << 32))
                for k in range(n_bags)
            ]
        )
        masses = [
            [float(self.weight[~held & own].sum()) for own in (positive, ~positive)]
            for held in self.held
        ]
        # Bounded as the odds are.
        log_odds = [math.log(p / n) if p > 0.0 < n else 0.0 for p, n in masses]
        self.log_odds = np.clip(np.array(log_odds), *np.log(ODDS))
        self.curvature = np.array([p / (p + n) * (n / (p + n)) for p, n in masses])
        self.keys = np.random.Generator(np.random.Philox(parameters.random_state)).integers(
            0, 2**64, n_bags, dtype=np.uint64
        )
        least = float(parameters.min_samples_leaf)
        self.how = parameters.learning_rate, float(parameters.smoothing), least
        directions = parameters.find_directions()
        self.directions = np.zeros(len(self.codes), np.int8) if directions is None else directions
        kinds = np.where(self.bins.is_categorical, LEVELS, STUMP)
        self._n_pairs = parameters.n_pairs
        # Steps are taken in the order of these keys, so that no result depends on the order of the columns.
        self._column_keys = column_keys(X, positive, weight)
        self.losses: list[float] = []
        self.columns = _Stage(
            self, self.codes, kinds, self.bins.n_bins, self.directions, self.n_slots,
            np.repeat(self.log_odds[:, None], len(X), axis=1), self._column_keys,
        )  # fmt: skip
        self.pairs: _Stage | None = None
        self.chosen: list[tuple[_Axis, _Axis]] = []

    def finish(self, n_rounds: int, callback: Callback) -> StopReason:
        """Run the remaining rounds; return why there are no more."""
        while True:
            stage = self.columns if self.pairs is None else self.pairs
            if stage.ended.all():
                if not self.columns.best_round.any():
                    return "no_edge"
                if self.pairs is None and len(self.losses) < n_rounds and self._start_pairs():
                    continue
                return "validation"
            if len(self.losses) >= n_rounds:
                return "n_rounds"
            loss = stage.advance(len(self.losses))
            if not self.columns.best_round.any() and stage.ended.all():
                continue
            self.losses.append(loss)
            try:
                callback(len(self.losses), n_rounds, {} if math.isnan(loss) else {"loss": loss})
            except StopFit:
                if len(self.losses) < n_rounds:
                    warn_stopped(len(self.losses), n_rounds, "rounds")
                    return "stopped"

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of another fit."""
        with_pairs = any(name.startswith("pairs.") for name in state)
        if with_pairs and self.pairs is None:
            self.columns.set_state(take_from("columns.", state))
            self._start_pairs()
        super().set_state(state)

    def _start_pairs(self) -> bool:
        """Choose the pairs on what the single columns leave unexplained; return False if there is none."""
        shapes = self.columns.best.mean(axis=0)
        weight = self.weight / self.weight.max()
        shares = np.array([np.bincount(c, weight, self.n_slots) for c in self.codes])
        shares /= weight.sum()
        effects = ((shapes - (shapes * shares).sum(axis=1)[:, None]) ** 2 * shares).sum(axis=1)
        effects[self.directions != 0] = 0.0
        screened = np.argsort(-effects, kind="stable")[:MAX_SCREENED]
        screened = np.sort(screened[effects[screened] > 0.0])
        if self._n_pairs == 0 or len(screened) < 2:
            return False
        axes = [_Axis(j, self._cells(j, shapes[j], shares[j])) for j in screened.tolist()]
        cells = np.array([axis.cells[self.codes[axis.column]] for axis in axes], dtype=np.uint8)
        pairs = np.array([(a, b) for b in range(len(axes)) for a in range(b)])
        odds = np.exp(self._sum(shapes, float(self.log_odds.mean())))
        p = odds / (1.0 + odds)
        gains = np.zeros(len(pairs))
        curvature = self.weight * p * (1.0 - p)
        _, smoothing, least = self.how
        ThreadPool(cells.size * len(axes)).run(
            screen_pairs, len(pairs), cells, pairs, self.weight * (self.positive - p), curvature, self.weight,
            smoothing * float(curvature.mean()), least, gains,
        )  # fmt: skip
        best = np.argsort(-gains, kind="stable")[: self._n_pairs]
        # Without an effect the gain at a cut has the distribution of χ² with one degree of freedom.
        best = np.sort(best[gains[best] > chdtri(1.0, CHANCE / (len(pairs) * CUTS))])
        if not len(best):
            return False
        self.chosen = [(axes[a], axes[b]) for a, b in pairs[best].tolist()]
        codes = np.array([cells[a] * CELLS + cells[b] for a, b in pairs[best]], dtype=np.uint8)
        log_odds = np.array(
            [
                self._sum(shape, start)
                for shape, start in zip(self.columns.best, self.log_odds.tolist(), strict=True)
            ]
        )
        keys = np.array([[self._column_keys[axis.column] for axis in pair] for pair in self.chosen])
        n = len(codes)
        numbers = np.full(n, PAIR), np.full(n, CELLS * CELLS), np.zeros(n, np.int8)
        self.pairs = _Stage(
            self, codes, *numbers, CELLS * CELLS, log_odds, keys[:, 0] ^ keys[:, 1], len(self.losses),
            self.columns.best_loss,
        )  # fmt: skip
        return True

    def _sum(self, shapes: Floats, start: float) -> Floats:
        """Return the scores of all rows; shapes: (n_columns, n_slots)."""
        scores = np.full(len(self.positive), start)
        for shape, codes in zip(shapes, self.codes, strict=True):
            if shape.any():
                scores += shape[codes]
        bound: Floats = np.clip(scores, *np.log(ODDS))
        return bound

    def _cells(self, column: int, shape: Floats, shares: Floats) -> Integers:
        """Return the cell of each slot: bins of about equal mass, categories in the order of their values."""
        n = int(self.bins.n_bins[column])
        order = np.arange(n)
        if self.bins.is_categorical[column]:
            order = np.argsort(shape[:n], kind="stable")
        cells = np.full(self.n_slots, CELLS - 1, dtype=np.int64)
        if n < CELLS:
            cells[order] = np.arange(n)
            return cells
        mass = np.cumsum(shares[order]) - 0.5 * shares[order]
        cells[order] = np.minimum(mass / shares[:n].sum() * (CELLS - 1), CELLS - 2).astype(np.int64)
        return cells

    def collect(self) -> tuple[float, Shapes]:
        """Return the mean score of the training rows, and the mean functions of the bags with their deviations."""
        shapes, n_bags = self.columns.best.copy(), len(self.held)
        weight = self.weight / self.weight.max()
        tables = np.zeros((n_bags, 0, CELLS, CELLS))
        if self.pairs is not None:
            tables = self.pairs.best.reshape(n_bags, -1, CELLS, CELLS).copy()
        for k, (one, other) in enumerate(self.chosen):
            own = [axis.cells[self.codes[axis.column]] for axis in (one, other)]
            mass = np.bincount(own[0] * CELLS + own[1], weight, CELLS * CELLS).reshape(CELLS, CELLS)
            for moved, axis in zip(purify(tables[:, k], mass), (one, other), strict=True):
                shapes[:, axis.column] += moved[:, axis.cells]
        shares = np.array([np.bincount(c, weight, self.n_slots) for c in self.codes])
        shares /= weight.sum()
        means = (shapes * shares).sum(axis=2)
        shapes -= means[:, :, None]
        shapes[:, ~self.bins.has_missing, -1] = 0.0
        offset = float((self.log_odds + means.sum(axis=1)).mean())
        return offset, self._store(shapes, tables)

    def _store(self, shapes: Floats, tables: Floats) -> Shapes:
        values, deviations = shapes.mean(axis=0), shapes.std(axis=0)
        used = np.flatnonzero(values.any(axis=1) | deviations.any(axis=1)).tolist()
        steps = [self._steps(j, values[j], deviations[j]) for j in used]
        axes = {axis.column: axis for pair in self.chosen for axis in pair}
        ends = sorted(axes)
        cells = [self._steps(j, axes[j].cells) for j in ends]
        pairs = [[ends.index(axis.column) for axis in pair] for pair in self.chosen]
        none = np.empty(0)
        return Shapes(
            n_categories=np.array([0 if b is None else len(b) for b in self.bins.category_bins]),
            features=np.array(used, dtype=np.int64),
            n_thresholds=np.array([len(own) for own, _ in steps], dtype=np.int64),
            thresholds=np.concatenate([none, *(own for own, _ in steps)]),
            shape_values=np.concatenate([none, *(own[0] for _, own in steps)]),
            shape_deviations=np.concatenate([none, *(own[1] for _, own in steps)]),
            axis_features=np.array(ends, dtype=np.int64),
            n_axis_thresholds=np.array([len(own) for own, _ in cells], dtype=np.int64),
            axis_thresholds=np.concatenate([none, *(own for own, _ in cells)]),
            axis_cells=np.concatenate([none, *(own[0] for _, own in cells)]).astype(np.int64),
            pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
            tables=tables.mean(axis=0),
            table_deviations=tables.std(axis=0),
        )

    def _steps(self, column: int, *of_slots: npt.NDArray[Any]) -> tuple[Floats, list[Floats]]:
        """Return the thresholds of a column where a value changes, and the values between them; last that of NaN."""
        own = self.bins.category_bins[column]
        values = np.stack(of_slots)
        missing = values[:, -1:]
        if own is not None:
            steps = np.where(own >= 0, values[:, own], missing)
            return np.arange(len(own) - 1.0), [*np.concatenate([steps, missing], axis=1)]
        values = values[:, : int(self.bins.n_bins[column])]
        changes = np.flatnonzero((np.diff(values, axis=1) != 0.0).any(axis=0))
        kept = values[:, np.append(changes, values.shape[1] - 1)]
        return self.bins.edges[column][changes], [*np.concatenate([kept, missing], axis=1)]


def leave_out(X: Floats, positive: Bools, weight: Floats, group: Groups | None, seed: int) -> Bools:
    """Return which rows a bag leaves out; none where a class has too few rows, or groups."""
    try:
        return split_rows(X, positive, weight, 1, fraction=HELD_OUT, group=group, seed=seed)[0]
    except InvalidData:
        return np.zeros(len(X), dtype=np.bool_)


def purify(tables: Floats, mass: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Move the mean of each row and column of tables, (n_bags, CELLS, CELLS), to functions of one column; in place.

    Returns both functions, (n_bags, CELLS) each. mass: (CELLS, CELLS), of the training rows.

    References
    ----------
    B. Lengerich et al., "Purifying interaction effects with the functional ANOVA", AISTATS 2020.
    """
    moved = np.zeros((2, *tables.shape[:2]))
    for _ in range(MAX_PURIFIED):
        largest = 0.0
        for axis in (0, 1):
            total = mass.sum(axis=1 - axis)
            share = np.divide(
                mass, np.expand_dims(total, 1 - axis), out=np.zeros_like(mass), where=mass > 0.0
            )
            means = (tables * share).sum(axis=2 - axis)
            tables -= np.expand_dims(means, 2 - axis)
            moved[axis] += means
            largest = max(largest, float(np.abs(means).max()))
        if largest < PURE:
            break
    return moved[0], moved[1]


@dataclass(kw_only=True, eq=False, repr=False)
class Additive(ContributionRanker):
    """Average additive models of several draws of the rows, each boosted slowly over one column at a time.

    The score is Σ_j g_j(x_j) + Σ g_jk(x_j, x_k): a step function for each column, and a table for each of a few pairs
    of columns. It estimates the log odds. With some hundreds of rows it is often more accurate than trees, and
    all of it can be drawn.

    Each bag leaves out 15 % of the rows, groups and equal rows together, and in each round takes a short Newton step
    along each column in turn: a stump at the best of a few random thresholds, or a step for each category. It keeps the
    rounds up to the lowest logistic loss of the rows left out. Then the pairs that explain most of what is left are
    fitted in the same way, by the quadrants of two thresholds. The bags are averaged.

    Attributes
    ----------
    offset_ : float
        Mean score of the training rows. Parts are differences from it.
    n_rounds_ : int
        Rounds that were run.
    validation_loss_ : ndarray of shape (n_rounds_,), float64
        Mean logistic loss of the rows left out after each round; NaN if no bag could leave any out.
    bag_rounds_ : ndarray of shape (n_bags,), int64
        Rounds that each bag has kept.
    stop_reason_ : {"n_rounds", "no_edge", "validation", "stopped"}
        Why there are no more rounds.

    Notes
    -----
    What is our own: thresholds are the best of three at random; a pair is chosen by what it explains beyond the sum of
    two stumps; missing values have a step of their own; the means of the rows and columns of a pair's table are moved
    to the functions of its columns, so that a pair holds nothing that a column does.

    O(n_bags · max_rounds · n_features · n_samples). Bags are divided among threads.

    References
    ----------
    Y. Lou, R. Caruana and J. Gehrke, "Intelligible models for classification and regression", KDD 2012.
    Y. Lou, R. Caruana, J. Gehrke and G. Hooker, "Accurate intelligible models with pairwise interactions", KDD 2013.
    H. Nori, S. Jenkins, P. Koch and R. Caruana, "InterpretML: a unified framework for machine learning
    interpretability", arXiv 1909.09223, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from core import Additive
    >>> X = np.arange(60.0)[:, None]
    >>> y = (X[:, 0] > 30) ^ (X[:, 0] % 7 == 0)
    >>> ranker = Additive(n_bags=4).fit(X, y)
    >>> ranker.decision_function([[5.0], [55.0]]).round(1).tolist()
    [-0.4, 0.4]
    """

    keeps_when_stopped = True

    n_bags: Annotated[
        int,
        Ge(1),
        Le(100),
        Doc("Number of bags: draws of 85 % of the rows, whose models are averaged."),
    ] = 8
    max_rounds: Annotated[
        int,
        Ge(1),
        Le(100_000),
        Doc(
            "Maximum number of rounds. Each round adds a step along every column, and later along every pair of "
            "columns. A bag ends earlier if the rows that it leaves out say so."
        ),
    ] = 5000
    learning_rate: LearningRate = 0.02
    n_pairs: Annotated[
        int,
        Ge(0),
        Le(1000),
        Doc(
            "Maximum number of pairs of columns that have a table of their own; fewer where chance explains the rest. "
            "0: none."
        ),
    ] = 10
    max_bins: MaxNarrowBins = 64
    min_samples_leaf: Annotated[
        float,
        Ge(0),
        Doc(
            "Minimum weight on either side of a threshold, in rows of mean weight. A sample weight of k counts as k "
            "rows; if the mean weight is below 1, all weights are first divided by it."
        ),
    ] = 4.0
    smoothing: Annotated[
        float,
        Ge(0),
        Le(1000),
        Doc(
            "Amount added to the curvature of each side of a threshold, in rows of mean curvature; thirty times as "
            "much for a category. 0: the plain Newton step."
        ),
    ] = 1.0
    monotone: Monotone = None
    random_state: RandomState = 0

    offset_: Annotated[float, Value(), FINITE] = field(init=False)
    n_rounds_: Annotated[int, Value(), Ge(0), Le(100_000)] = field(init=False)
    validation_loss_: Annotated[Floats, Array("n_run")] = field(init=False)
    bag_rounds_: Annotated[Integers, Array("n_bags"), Ge(0), Le(100_000)] = field(init=False)
    stop_reason_: Annotated[StopReason, Value()] = field(init=False)
    _shapes: Annotated[Shapes, Nested()] = field(init=False)

    def takes_categories(self) -> bool:
        """Return True."""
        return True

    def score_rows(self, X: Floats) -> Floats:
        """Score rows without any check; see `Ranker.score_rows`."""
        return self._shapes.score(X, self.offset_)

    def _contributions(self, X: Floats) -> Floats:
        """Return the contributions of checked rows; the value of a pair is divided equally between its columns."""
        return self._shapes.contributions(X)

    def shapley_values(self, X: Any) -> Floats:
        """Return the contributions: in a pair, the mean of each row and column is 0; see `Ranker.shapley_values`."""
        return self.contributions(X)

    def walk_monotone(self, directions: Directions) -> Verification:
        """Walk the step functions and tables; see `Ranker.walk_monotone`."""
        return self._shapes.walk_monotone(directions)

    def structure(self) -> dict[str, Any]:
        """Describe the sum: each step function and each pair's table, with their deviations over the bags."""
        return {
            "type": "additive",
            "offset": self.offset_,
            "bag_rounds": self.bag_rounds_.tolist(),
            "rounds": self.n_rounds_,
            "stop_reason": self.stop_reason_,
            **self._shapes.describe(self._feature_name, self.categories_),
        }

    def _restore(self) -> None:
        sizes = {
            "validation_loss": (len(self.validation_loss_), self.n_rounds_),
            "bag_rounds": (len(self.bag_rounds_), self.n_bags),
        }
        for name, (found, wanted) in sizes.items():
            if found != wanted:
                raise ArtifactError(f"{name} must hold {wanted} values, got {found}")

    def _fit(
        self,
        X: Floats,
        positive: Bools,
        weight: Floats,
        group: Groups | None,
        callback: Callback,
    ) -> None:
        bags = Bags(self, X, positive, weight, group)
        columns = (positive, weight, np.empty(0) if group is None else group)
        with offered(bags, lambda: identify_fit(self, X, *columns)):
            self.stop_reason_ = bags.finish(self.max_rounds, callback)
        self.n_rounds_, self.validation_loss_ = len(bags.losses), np.array(bags.losses)
        self.bag_rounds_ = bags.columns.best_round.copy()
        if bags.pairs is not None:
            self.bag_rounds_ = np.maximum(self.bag_rounds_, bags.pairs.best_round)
        self.offset_, self._shapes = bags.collect()
