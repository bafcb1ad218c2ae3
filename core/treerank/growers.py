"""A parameter's name -> what grows trees by it, on any part of the rows."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from core.coding.categories import count_rows
from core.coding.team import Team
from core.ranker import Callback

from .classifiers import (
    CLASSIFIER_RULES,
    ClassifierSplitter,
    EstimatorRules,
    EstimatorSplitter,
)
from .coding import code
from .cuts import CutRules
from .grid import GridRules, GridSplitter
from .growth import Limits, grow
from .leafrank import LeafRank, Shape
from .preorder import Integers
from .splitting import RowDivision, Sample, Splitter
from .tree import Rules, Tree


class Grower(Protocol):
    """Grows trees on parts of one sample."""

    def grow(self, rows: Integers, limits: Limits, callback: Callback) -> Tree:
        """Grow a tree on some rows of the sample, ascending."""


class CutGrower:
    """Grows trees by cuts along the axes, on one coded table."""

    def __init__(self, sample: Sample, max_bins: int, shape: Shape) -> None:
        self._table = code(sample, max_bins)
        self._weight = sample.weight[self._table.order]
        self._count = count_rows(self._weight)
        self._place = np.empty_like(self._table.order)
        self._place[self._table.order] = np.arange(len(self._place))
        self._shape = shape

    def with_leaves(self, most: int) -> "CutGrower":
        """Give a grower on the same table whose cut trees have no more leaves."""
        other = copy(self)
        other._shape = self._shape._replace(max_leaves=most)
        return other

    def sizes(self) -> list[int]:
        """List numbers of leaves worth trying, each about half as many again."""
        most = self._shape.max_leaves
        return sorted(
            {most, *(n for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128) if n < most)}
        )

    def grow(self, rows: Integers, limits: Limits, callback: Callback) -> Tree:
        """Grow a tree; see `Grower`."""
        team = Team(len(rows) * self._table.n_features)
        places = np.sort(self._place[rows])
        division = LeafRank(self._table, places, self._weight, self._count, self._shape, team)
        return grow(division, limits, callback)


class SplitterGrower:
    """Grows trees by a `Splitter`, made anew for each part of the rows."""

    def __init__(self, sample: Sample, make: Callable[[Sample], Splitter]) -> None:
        self._sample = sample
        self._make = make

    def grow(self, rows: Integers, limits: Limits, callback: Callback) -> Tree:
        """Grow a tree; see `Grower`."""
        X, positive, weight, n_categories = self._sample
        part = Sample(X[rows], positive[rows], weight[rows], n_categories)
        return grow(RowDivision(part, self._make(part)), limits, callback)


class GrowthOptions(NamedTuple):
    """What the choice of a grower depends on; see `options`."""

    splitter: Any
    leafrank_depth: int
    leafrank_max_leaves: int | None
    least_mass: float
    max_bins: int
    grid_resolution: int
    random_state: int

    def shape(self) -> Shape:
        """How large the cut tree in a node may be."""
        depth = 1 if self.splitter == "axis" else self.leafrank_depth
        most = 2**depth
        return Shape(depth, min(self.leafrank_max_leaves or most, most), self.least_mass)


def make_grower(sample: Sample, options: GrowthOptions) -> Grower:
    """Choose what grows trees on a sample."""
    splitter = options.splitter
    if splitter in ("axis", "leafrank"):
        return CutGrower(sample, options.max_bins, options.shape())
    if splitter == "grid":
        return SplitterGrower(sample, partial(GridSplitter, resolution=options.grid_resolution))
    if splitter in CLASSIFIER_RULES:
        return SplitterGrower(
            sample, lambda part: ClassifierSplitter(splitter, part, options.random_state)
        )
    return SplitterGrower(sample, partial(EstimatorSplitter, splitter))


def rules_class(splitter: Any) -> type[Rules]:
    """Give the class that keeps a splitter's rules."""
    if splitter in ("axis", "leafrank"):
        return CutRules
    if splitter == "grid":
        return GridRules
    return CLASSIFIER_RULES.get(splitter, EstimatorRules)
