"""Splits by dyadic cubes: each node takes the best union of the cells of one fixed grid of the feature space."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base import state
from core.base.ranker import Floats
from core.base.state import FINITE, Array, Index, Nested, State
from core.errors import ArtifactError
from core.explain.conditions import spell_number

from .growth import Cell, CellDivision, Splitter, TreeRows
from .tree import Booleans, Integers, RankingTree, Rules

MAX_RESOLUTION = 16

MISSING_SLICE = np.iinfo(np.uint32).max

# Cubes that a description names: a reader wants a few, and there may be a million.
CUBES_NAMED = 5

Cubes = state.Indices


@dataclass(frozen=True, eq=False)
class Grid(State):
    """A grid of the feature space: 2**resolution equal slices per numeric feature between its minimum and maximum.

    A slice holds its lower end, not its upper one, but the last one holds both. Values beyond the
    ends belong to the first and last slice. Each category is a slice, and so is missing.
    """

    level: Annotated[Integers, Array(1, name="grid_resolution"), Ge(1), Le(MAX_RESOLUTION)]
    """J of the paper: cubes have sides of 2**-J of the rescaled features."""
    low: Annotated[Floats, Array("n_features", name="grid_low"), FINITE]
    high: Annotated[Floats, Array("n_features", name="grid_high"), FINITE]
    """Ends of the range that is sliced; 0 for a categorical feature."""
    n_categories: Integers

    @property
    def resolution(self) -> int:
        """The paper's J: a numeric feature has 2**J slices."""
        return int(self.level[0])

    def check(self) -> None:
        if (self.low > self.high).any():
            raise ArtifactError("grid_low must not exceed grid_high")

    @classmethod
    def of(cls, sample: TreeRows, resolution: int) -> "Grid":
        """Return the grid on the ranges of the features; a feature without any value has the range from 0 to 0."""
        low, high = np.zeros((2, sample.X.shape[1]))
        for j, column in enumerate(sample.X.T):
            present = column[~np.isnan(column)]
            if len(present) and not sample.n_categories[j]:
                low[j], high[j] = present.min(), present.max()
        return cls(np.array([resolution]), low, high, sample.n_categories)

    @property
    def n_slices(self) -> Integers:
        """Number of slices per feature, without that of missing values."""
        return np.where(self.n_categories > 0, self.n_categories, 1 << self.resolution)

    def edges(self, feature: int) -> Floats:
        """Return the upper ends of a numeric feature's slices, without the last one's."""
        # Halves, so that the width of the widest range there is does not overflow.
        low, high = self.low[feature] / 2, self.high[feature] / 2
        steps = np.arange(1, 1 << self.resolution) / (1 << self.resolution)
        return np.asarray(2 * (low + (high - low) * steps))

    def locate(self, X: Floats) -> Cubes:
        """Return the cube of each row, as its slice in each feature.

        Result: (n_rows, n_features), uint32.
        """
        slices = np.empty(X.shape, dtype=np.uint32)
        for j, column in enumerate(X.T):
            missing = np.isnan(column)
            if self.n_categories[j]:  # a value that is no category counts as missing
                missing = ~((column >= 0.0) & (column < self.n_categories[j]))
                slices[:, j] = np.where(missing, 0, column)
            else:
                slices[:, j] = np.searchsorted(self.edges(j), column, side="right")
            slices[missing, j] = MISSING_SLICE
        return slices


def _keys(cubes: Cubes) -> npt.NDArray[np.bytes_]:
    """Return each cube as bytes that sort lexicographically by feature."""
    big_endian = np.ascontiguousarray(cubes, dtype=">u4")
    keys: npt.NDArray[np.bytes_] = big_endian.view(f"S{4 * cubes.shape[1]}").ravel()
    return keys


def _look_up(wanted: npt.NDArray[Any], known: npt.NDArray[Any]) -> tuple[Integers, Booleans]:
    """Return each value's index in a sorted, nonempty array, and whether it occurs there."""
    index = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return index, np.asarray(known[index] == wanted)


class Union(NamedTuple):
    """The best union of cubes for a node, and its gain."""

    order: Integers
    """The cells by β/α, the greatest first: cells without negatives come first, empty ones last; equal ones keep their
    order. Shape (n_cells,)."""
    n_top: int
    """k*: the union is the first k* of them; 0 if no union gains anything."""
    gain: float
    """Λ = β(L) - α(L) within the cell, from 0 to 1."""


def best_union(positive: Floats, negative: Floats) -> Union:
    """Return the union L of cells with the greatest Λ = β(L) - α(L): those with more positives than negatives.

    Along the order each cell adds β - α, which falls: the union is all cells with β > α, compared by products of
    masses, which are exact for whole numbers (Clémençon, Depecker & Vayatis 2011, Fig. 4, Proposition 4). O(n_cells log
    n_cells). positive, negative: (n_cells,), both sums above 0.
    """
    mass = positive + negative
    fraction = np.divide(positive, mass, out=np.full(len(mass), -1.0), where=mass > 0)
    order = np.argsort(-fraction, kind="stable")
    all_positive, all_negative = positive.sum(), negative.sum()
    n_top = int(np.count_nonzero(positive * all_negative > negative * all_positive))
    top = order[:n_top]
    gain = positive[top].sum() / all_positive - negative[top].sum() / all_negative
    return Union(order, n_top, float(gain))


class GridSplitter(Splitter):
    """Splits nodes by unions of the cubes of a dyadic grid.

    resolution: J, 1 to 16. Only cubes with rows cost anything, but with q features their number grows as 2**(J q) as
        long as there are rows to fill them: use it for few features. The bound of Theorem 2 is smallest near J =
        log₂(n) / (2 (q + 1)).

    O(n q) to find the cubes of the rows and O(n log n) to sort them, once; then O(n_rows log n_rows) a cell.
    Remark 6 prints the bias as 2**(-J q); for a boundary of finite perimeter it is of order 2**-J.

    Clémençon, Depecker & Vayatis 2011, §3.2: Fig. 4, Theorem 2, Remarks 6 and 8.
    """

    def __init__(self, sample: TreeRows, resolution: int) -> None:
        super().__init__(sample)
        self._grid = Grid.of(sample, resolution)
        cubes = self._grid.locate(sample.X)
        _, first, self._cube = np.unique(_keys(cubes), return_index=True, return_inverse=True)
        self._cubes = cubes[first]
        self._positive = np.where(sample.positive, sample.weight, 0.0)
        self._negative = np.where(sample.positive, 0.0, sample.weight)

    def split(self, cell: Cell) -> CellDivision | None:
        """Return the split by the best union of the cubes with rows in the node; its rule is their numbers."""
        cubes, index = np.unique(self._cube[cell.rows], return_inverse=True)
        positive, negative = (
            np.bincount(index, weights=mass[cell.rows]).astype(np.float64)
            for mass in (self._positive, self._negative)
        )
        union = best_union(positive, negative)
        if union.n_top == 0:
            return None
        in_top = np.zeros(len(cubes), dtype=np.bool_)
        in_top[union.order[: union.n_top]] = True
        return CellDivision(in_top[index], cubes[in_top])

    def collect(self, rules: Sequence[Any]) -> "GridRules":
        start = np.cumsum([0, *map(len, rules)])
        top = np.concatenate([np.empty(0, dtype=np.int64), *rules])
        return GridRules(self._grid, self._cubes, start, top)


@dataclass(frozen=True, eq=False)
class GridRules(Rules):
    """Split rules that list the cubes whose rows go to the top child."""

    kind: ClassVar[str] = "grid"

    grid: Annotated[Grid, Nested()]
    cubes: Annotated[Cubes, Array("n_cubes", "n_features", name="grid_cubes")]
    """The cubes with training rows, in the order of `_keys`. Shape (n_cubes, n_features), uint32."""
    start: Annotated[Integers, Array("n_rules + 1", name="grid_start")]
    top: Annotated[Integers, Array("n_top", name="grid_top"), Index("n_cubes")]
    """Numbers of the top cubes of rule r, increasing: top[start[r] : start[r + 1]]."""

    def __len__(self) -> int:
        return len(self.start) - 1

    def goes_top(self, rule: int, X: Floats, rows: Integers) -> Booleans:
        """Return which of X[rows] lie in a cube that goes to the top child: shape (len(rows),), bool."""
        return self._is_top(rule, self._find_cubes(X[rows]))

    def find_leaves(self, tree: RankingTree, X: Floats) -> Integers:
        """Return the leaf of each row, routing each distinct cube once; see `RankingTree.find_leaves`."""
        cubes, cube_of_row = np.unique(self._find_cubes(X), return_inverse=True)
        leaf = tree.send_down(len(cubes), lambda rule, some: self._is_top(rule, cubes[some]))
        return np.asarray(leaf[cube_of_row])

    def _top_cubes(self, rule: int) -> Integers:
        return self.top[self.start[rule] : self.start[rule + 1]]

    def _is_top(self, rule: int, cubes: Integers) -> Booleans:
        return _look_up(cubes, self._top_cubes(rule))[1]

    @cached_property
    def _sorted_keys(self) -> npt.NDArray[np.bytes_]:
        return _keys(self.cubes)

    def _find_cubes(self, X: Floats) -> Integers:
        """Return the number of each row's cube; n_cubes if it has no training rows."""
        found, known = _look_up(_keys(self.grid.locate(X)), self._sorted_keys)
        return np.where(known, found, len(self.cubes))

    def take(self, rules: Integers) -> Self:
        kept = [self._top_cubes(rule) for rule in rules.tolist()]
        start = np.cumsum([0, *map(len, kept)])
        top = np.concatenate([np.empty(0, dtype=np.int64), *kept])
        return type(self)(self.grid, self.cubes, start, top)

    def describe(
        self, rule: int, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> dict[str, Any]:
        top = self._top_cubes(rule)
        shown = [self._say(cube, name, categories) for cube in self.cubes[top[:CUBES_NAMED]]]
        more = f" or in {len(top) - CUBES_NAMED:,} more cubes" if len(top) > CUBES_NAMED else ""
        return {
            "kind": self.kind,
            "words": " or ".join(f"({words})" for words in shown) + more,
            "resolution": self.grid.resolution,
            "top_cubes": len(top),
            "known_cubes": len(self.cubes),
        }

    def _say(
        self, cube: Cubes, name: Callable[[int], str], categories: Sequence[Sequence[str] | None]
    ) -> str:
        return " and ".join(
            f"{name(j)} {self._say_slice(j, number, name(j), categories[j])}"
            for j, number in enumerate(cube.tolist())
        )

    def _say_slice(
        self, feature: int, number: int, name: str, categories: Sequence[str] | None
    ) -> str:
        if number == MISSING_SLICE:
            return "is missing"
        if categories is not None:
            return f"is {categories[number]}"
        ends = [spell_number(name, end, 6) for end in self.grid.edges(feature).tolist()]
        if number == 0:
            return f"< {ends[0]}"
        if number == len(ends):
            return f">= {ends[-1]}"
        return f"in [{ends[number - 1]}, {ends[number]})"

    def check(self) -> None:
        if not ((self.cubes < self.grid.n_slices) | (self.cubes == MISSING_SLICE)).all():
            raise ArtifactError("grid_cubes must contain slices of the grid")
        keys = self._sorted_keys
        if not len(keys) or not (keys[1:] > keys[:-1]).all():
            raise ArtifactError(
                "grid_cubes must contain at least one cube, in order, without repeats"
            )
        start, top = self.start, self.top
        if start[0] != 0 or start[-1] != len(top) or (np.diff(start) < 1).any():
            raise ArtifactError(
                f"grid_start must rise from 0 to {len(top)}, the length of grid_top"
            )
        rises = np.diff(top) > 0
        rises[start[1:-1] - 1] = True  # from one rule to the next it may fall
        if not rises.all():
            raise ArtifactError("grid_top must rise within each rule")
