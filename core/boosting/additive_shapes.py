"""The functions of an additive model, over single columns and over pairs of columns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.monotone import Directions, Verification, Violation
from core.base.ranker import Floats
from core.base.state import FINITE, Array, Index, Integers, State, Totals
from core.base.table import Categories
from core.errors import ArtifactError
from core.kernels import kernel

from .stumps import StepFunctions, describe_steps, look_up

# Cells of a column in a pair, the last one for the missing; 16 times 16 codes fit in a byte.
CELLS = 16
_READ_ONLY_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_READ_ONLY_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
NOT_NEGATIVE = (Ge(0.0), Le(1e300))

PURE = 1e-12  # largest mean of a row or column of a pair's table, in units of the score
MAX_PURIFIED = 200  # sweeps over rows and columns of a pair's table at most


@kernel(
    numba.void(
        numba.types.Array(numba.float64, 2, "C", readonly=True),
        _READ_ONLY_INTEGERS,
        _READ_ONLY_INTEGERS,
        _READ_ONLY_FLOATS,
        _READ_ONLY_FLOATS,
        numba.types.Array(numba.int64, 2, "C", readonly=True),
        numba.types.Array(numba.float64, 3, "C", readonly=True),
        numba.float64[:, ::1],
    )
)
def look_up_pairs(X, features, starts, thresholds, cells, pairs, tables, parts):  # type: ignore[no-untyped-def]
    """Add each row's value in each pair's table to `parts`, half of it to each column; see `StepFunctions`."""
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


@dataclass(frozen=True, eq=False)
class Shapes(State):
    """The fitted functions of an additive model, Σ_j g_j(x_j) + Σ g_jk(x_j, x_k): one per column, one table per pair.

    The mean of each over the training rows is 0, also of each row and each column of a table.

    axis_features, n_axis_thresholds, axis_thresholds: the same of the step functions that give the cell of a value in
        tables; the features of at least one pair.
    """

    n_categories: Integers
    features: Annotated[Integers, Array("n_used"), Index("n_features")]
    """Ascending; those with a step function."""
    n_thresholds: Annotated[Integers, Array("n_used"), Totals("n_all_thresholds")]
    """Of each step function."""
    thresholds: Annotated[Floats, Array("n_all_thresholds"), FINITE]
    """Ascending within a feature; for K categories 0, 1, ..., K - 2."""
    shape_values: Annotated[Floats, Array("n_all_thresholds + n_used + n_used"), FINITE]
    shape_deviations: Annotated[Floats, Array("n_all_thresholds + n_used + n_used"), *NOT_NEGATIVE]
    """The values between the thresholds of a feature, then that of a missing x; and their standard deviations over the
    bags."""
    axis_features: Annotated[Integers, Array("n_axes"), Index("n_features")]
    n_axis_thresholds: Annotated[Integers, Array("n_axes"), Totals("n_all_axis_thresholds")]
    axis_thresholds: Annotated[Floats, Array("n_all_axis_thresholds"), FINITE]
    axis_cells: Annotated[
        Integers, Array("n_all_axis_thresholds + n_axes + n_axes"), Ge(0), Le(CELLS - 1)
    ]
    pairs: Annotated[Integers, Array("n_pairs", 2), Index("n_axes")]
    """Indices of axes."""
    tables: Annotated[Floats, Array("n_pairs", CELLS, CELLS), FINITE]
    table_deviations: Annotated[Floats, Array("n_pairs", CELLS, CELLS), *NOT_NEGATIVE]

    def check(self) -> None:
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
        return step_functions(self.features, self.n_thresholds, self.thresholds, self.shape_values)

    @cached_property
    def axes(self) -> StepFunctions:
        """The step functions that map a feature value to its cell in the pair tables."""
        return step_functions(
            self.axis_features, self.n_axis_thresholds, self.axis_thresholds, self.axis_cells
        )

    def score(self, X: Floats, offset: float) -> Floats:
        scores = self.steps.score(X, offset)
        self._add_pairs(X, scores[:, None])
        return scores

    def contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution to each row's score: its step function plus half of each of its pairs."""
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
        """Verify monotone constraints: compare neighbouring steps of each constrained column, pairs at their worst."""
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
        """Return one value from each step of a feature, NaN last, and the pair-table cell that each falls into."""
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
        features = describe_steps(self.steps, name, categories)
        deviations = step_functions(
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


def step_functions(
    features: Integers, n_thresholds: Integers, thresholds: Floats, values: npt.NDArray[Any]
) -> StepFunctions:
    """Return `StepFunctions` from concatenated thresholds and values and the number of thresholds of each feature."""
    starts = np.cumsum([0, *n_thresholds], dtype=np.int64)
    return StepFunctions(features, starts, thresholds, values.astype(np.float64))


def purify(tables: Floats, mass: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Centre pair tables in place, moving row and column means to functions of single columns; return these.

    tables: (n_bags, CELLS, CELLS). Both functions are (n_bags, CELLS). mass: (CELLS, CELLS), of the training rows.

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
