"""The score of a ranker as a sum of trees and lines, which the writers of all formats read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from core.base.ranker import Floats, Ranker
from core.boosting.additive import Additive
from core.boosting.additive_shapes import Shapes
from core.boosting.booster import Booster
from core.boosting.stumps import StepFunctions, StumpSum
from core.boosting.tree_sum import CrossedTreeSum, TreeSum
from core.coding.categories import Words, unpack
from core.forest.random_forest import RandomForest
from core.importing.ranker import ImportedTrees
from core.linear.crossed import CrossedCoordinates
from core.linear.design import Coordinates, FeatureMap, find_clip_limits
from core.linear.ranker import LinearRanker
from core.linear.scorecard import Scorecard
from core.treerank.cuts import CutRules
from core.treerank.forest import TreeRankForest, rank_leaves
from core.treerank.tree import RankingTree
from core.treerank.treerank import TreeRank

from .formats import CROSSED, ColumnReading, Kind

MAX_LEAVES = 100_000
"""Maximum number of leaves. As ONNX, so many take 1.5 s of CPU and 200 MB in the process of the API."""


WHOLE = "-?(0|[1-9][0-9]*)"
"""A word that is a whole number, which databases and programs may spell with a decimal point."""


class Split(NamedTuple):
    """x goes to `above` if x > threshold, or if it is one of `members`; a missing x if missing_above."""

    feature: int
    """From the number of columns on: the value of a rule."""
    threshold: float
    members: tuple[int, ...] | None
    """Category codes, ascending; None for a threshold."""
    missing_above: bool
    above: int
    below: int
    """A child is the index of a split, or ~i for leaf i. Each split and each leaf has one parent."""


class Tree(NamedTuple):
    """The value of the leaf that the row reaches from split 0; without splits that of leaf 0."""

    splits: list[Split]
    values: list[float]


class Line(NamedTuple):
    """slope · (x - center), with x - center clipped to ± limit; `missing` for a missing x."""

    feature: int
    center: float
    slope: float
    limit: float
    missing: float


class Column(NamedTuple):
    """A column of the rows."""

    name: str
    words: tuple[str, ...] | None
    """The categories by code; None for a column of numbers. Others count as missing."""
    missing: tuple[tuple[float, float], ...] = ()
    """Numbers from the first to the second of a pair, both included, count as missing."""
    kind: Kind = "numeric"
    missing_texts: tuple[str, ...] = ("",)
    """See `ColumnReading`."""


@dataclass(frozen=True)
class Program:
    """start + the terms, added in their order, / divisor + end."""

    columns: list[Column]
    terms: list[Tree | Line]
    start: float = 0.0
    divisor: float = 1.0
    end: float = 0.0
    is_float32: bool = False
    """Whether the sum is rounded to float32 after each term."""
    rules: list[Tree] = field(default_factory=list)
    """Trees whose values, 0 or 1, further trees are split on."""

    @property
    def trees(self) -> list[Tree]:
        return [term for term in self.terms if isinstance(term, Tree)]

    @property
    def lines(self) -> list[Line]:
        return [term for term in self.terms if isinstance(term, Line)]

    def count_leaves(self) -> int:
        return sum(len(tree.values) for tree in [*self.trees, *self.rules])


class Unsupported(Exception):
    """Why a ranker cannot be exported in a format; `export_model` adds the names of both."""


def program_of(ranker: Ranker, reading: Sequence[ColumnReading] | None = None) -> Program:
    """Return the program of a fitted ranker of which `why_not` says nothing; Unsupported says why it has none."""
    names = [ranker._feature_name(j) for j in range(ranker.n_features_in_)]
    columns = [Column(*each) for each in zip(names, ranker.categories_, strict=True)]
    if reading is not None:
        columns = [_as_read(*each) for each in zip(columns, reading, strict=True)]
    if isinstance(ranker, ImportedTrees):
        ends = zip(ranker.missing_low_.tolist(), ranker.missing_high_.tolist(), strict=True)
        columns = [
            column._replace(missing=(*column.missing, own)) if own[0] <= own[1] else column
            for column, own in zip(columns, ends, strict=True)
        ]
        program = _of_trees(ranker.ensemble_, 0.0, columns)
        return replace(program, is_float32=ranker.is_float32_)
    if isinstance(ranker, RandomForest):
        return _of_trees(ranker.ensemble_, 0.0, columns)
    if isinstance(ranker, Booster):
        ensemble, intercept = ranker.ensemble_, ranker._algorithm_intercept
        if isinstance(ensemble, CrossedTreeSum):
            if ensemble.crosses.n_columns:
                raise Unsupported(CROSSED)
            ensemble = ensemble.trees
        if isinstance(ensemble, TreeSum):
            return _of_trees(ensemble, intercept, columns)
        assert isinstance(ensemble, StumpSum)  # by the rules of `why_not`
        terms = _of_steps(ensemble.steps, columns)
        return Program(columns, terms, intercept + ensemble.constant)
    if isinstance(ranker, Additive):
        return Program(columns, _of_shapes(ranker._shapes, columns), ranker.offset_)
    if isinstance(ranker, Scorecard):
        return Program(columns, _of_scorecard(ranker, columns), ranker.intercept_)
    if isinstance(ranker, LinearRanker):
        terms = _of_line(ranker.map_, ranker._w, columns)
        return Program(columns, terms, end=ranker.intercept_)
    if isinstance(ranker, TreeRank):
        return _of_ranking_trees([ranker.tree_], [ranker._leaf_scores], columns)
    assert isinstance(ranker, TreeRankForest)
    ranks = [rank_leaves(tree, ranker.order) for tree in ranker.trees_]
    program = _of_ranking_trees(ranker.trees_, ranks, columns)
    return replace(program, divisor=float(len(ranks)), end=ranker.intercept_)


def _as_read(column: Column, reading: ColumnReading) -> Column:
    return column._replace(
        missing=tuple((number, number) for number in reading.missing_numbers),
        kind=reading.kind,
        missing_texts=reading.missing_texts,
    )


def _check_size(n_leaves: int) -> None:
    if n_leaves > MAX_LEAVES:
        raise Unsupported(f"it can have at most {MAX_LEAVES:,} leaves, got {n_leaves:,}")


def _of_trees(ensemble: TreeSum, intercept: float, columns: list[Column]) -> Program:
    """A tree's inside nodes come first, then its leaves; see `core.trees.predictor`."""
    _check_size(int(ensemble.rounds["n_leaves"].sum()))
    nodes = ensemble.nodes
    feature, threshold = nodes.feature.tolist(), nodes.threshold.tolist()
    first, missing_above = nodes.set.tolist(), nodes.missing_above.tolist()
    child, value = nodes.child.tolist(), nodes.mean.tolist()
    find_members = _member_reader(ensemble.sets, columns)
    terms: list[Tree | Line] = []
    for root, n_leaves in zip(
        nodes.root.tolist(), ensemble.rounds["n_leaves"].tolist(), strict=True
    ):
        leaf = root + n_leaves - 1

        def place(node: int, root: int = root, leaf: int = leaf) -> int:
            return node - root if node < leaf else ~(node - leaf)

        splits = [
            Split(
                feature[node],
                threshold[node],
                find_members(feature[node], first[node]),
                missing_above[node],
                place(child[2 * node + 1]),
                place(child[2 * node]),
            )
            for node in range(root, leaf)
        ]
        terms.append(Tree(splits, value[leaf : leaf + n_leaves]))
    return Program(columns, terms, intercept + ensemble.constant)


def _member_reader(
    words: Words, columns: list[Column]
) -> Callable[[int, int], tuple[int, ...] | None]:
    """Return a function of a feature and the first word of its set; splits often share a set."""
    known: dict[tuple[int, int], tuple[int, ...]] = {}

    def read(feature: int, first: int) -> tuple[int, ...] | None:
        if first < 0:
            return None
        key = feature, first
        if key not in known:
            mask = unpack(words, first, len(columns[feature].words or ()))
            known[key] = tuple(np.flatnonzero(mask).tolist())
        return known[key]

    return read


def _of_ranking_trees(
    trees: Sequence[RankingTree], values: Sequence[Floats], columns: list[Column]
) -> Program:
    rules: list[Tree] = []
    terms: list[Tree | Line] = []
    for tree, of_leaves in zip(trees, values, strict=True):
        assert isinstance(tree.rules, CutRules)
        number = tree.leaf_number.tolist()
        inside = np.cumsum(~tree.is_leaf) - 1
        place = np.where(tree.is_leaf, ~tree.leaf_number, inside).tolist()
        rule, top, bottom = tree.rule.tolist(), tree.top.tolist(), tree.bottom.tolist()
        splits = [
            Split(
                len(columns) + len(rules) + rule[node],
                0.5,
                None,
                False,
                place[top[node]],
                place[bottom[node]],
            )
            for node in range(len(number))
            if rule[node] >= 0
        ]
        terms.append(Tree(splits, of_leaves.tolist()))
        rules += _of_cuts(tree.rules, columns)
    _check_size(sum(len(tree.values) for tree in rules))
    return Program(columns, terms, rules=rules)


def _of_cuts(cuts: CutRules, columns: list[Column]) -> list[Tree]:
    """The cut trees of a ranking tree's rules: 1 for rows that go to the top child."""
    find_members = _member_reader(cuts.words, columns)
    feature, threshold = cuts.feature.tolist(), cuts.threshold.tolist()
    missing_above, first = cuts.missing_above.tolist(), cuts.word.tolist()
    below, to_top = cuts.below.tolist(), cuts.to_top.tolist()
    starts = cuts.start.tolist()
    trees = []
    for start, stop in pairwise(starts):
        place: dict[int, int] = {}
        n_splits = n_leaves = 0
        for node in range(start, stop):
            if feature[node] < 0:
                place[node], n_leaves = ~n_leaves, n_leaves + 1
            else:
                place[node], n_splits = n_splits, n_splits + 1
        splits = [
            Split(
                feature[node],
                threshold[node],
                find_members(feature[node], first[node]),
                missing_above[node],
                place[node + 1],
                place[below[node]],
            )
            for node in range(start, stop)
            if feature[node] >= 0
        ]
        leaves = [float(to_top[node]) for node in range(start, stop) if feature[node] < 0]
        trees.append(Tree(splits, leaves))
    return trees


def _of_steps(steps: StepFunctions, columns: list[Column]) -> list[Tree | Line]:
    return [
        step_tree(columns, feature, thresholds.tolist(), values.tolist(), missing)
        for feature, thresholds, values, missing in steps.per_feature()
    ]


def _of_shapes(shapes: Shapes, columns: list[Column]) -> list[Tree | Line]:
    axes = [
        step_tree(columns, feature, thresholds.tolist(), values.tolist(), missing)
        for feature, thresholds, values, missing in shapes.axes.per_feature()
    ]
    terms = _of_steps(shapes.steps, columns)
    for (one, other), table in zip(shapes.pairs.tolist(), shapes.tables.tolist(), strict=True):
        splits, values = list(axes[one].splits), list[float]()
        roots = []
        for cell in axes[one].values:
            n, n_leaves = len(splits), len(values)
            moved = axes[other].splits
            splits += [
                split._replace(
                    above=_move(split.above, n, n_leaves), below=_move(split.below, n, n_leaves)
                )
                for split in moved
            ]
            values += [table[int(cell)][int(own)] for own in axes[other].values]
            roots.append(n if moved else ~n_leaves)
        for node, split in enumerate(axes[one].splits):
            ends = [child if child >= 0 else roots[~child] for child in (split.above, split.below)]
            splits[node] = split._replace(above=ends[0], below=ends[1])
        terms.append(Tree(splits, values))
    _check_size(sum(len(term.values) for term in terms if isinstance(term, Tree)))
    return terms


def _move(child: int, n_splits: int, n_leaves: int) -> int:
    return child + n_splits if child >= 0 else child - n_leaves


def _of_scorecard(ranker: Scorecard, columns: list[Column]) -> list[Tree | Line]:
    terms: list[Tree | Line] = []
    for j, (bins, values) in enumerate(zip(ranker._columns, ranker._values, strict=True)):
        if bins.groups is None:
            ends = [bins.edges, bins.special, np.nextafter(bins.special, -np.inf)]
            thresholds = np.unique(np.concatenate(ends))
            points = np.append(thresholds, np.inf)  # a bin contains its upper end
        else:
            thresholds, points = np.empty(0), np.arange(float(len(bins.groups)))
        of_points = values[bins.assign(points)].tolist()
        terms.append(step_tree(columns, j, thresholds.tolist(), of_points, float(values[-1])))
    return terms


def _of_line(feature_map: FeatureMap, w: Floats, columns: list[Column]) -> list[Tree | Line]:
    if isinstance(feature_map, CrossedCoordinates):
        if feature_map.crosses.n_columns:
            raise Unsupported(CROSSED)
        feature_map = feature_map.coordinates
    assert isinstance(feature_map, Coordinates)
    effects = feature_map.unfold(w)
    limits = find_clip_limits(effects, feature_map.n_categories).tolist()
    terms: list[Tree | Line] = []
    for j, column in enumerate(columns):
        missing, slope = float(effects.missing[j]), float(effects.slope[j])
        if column.words is None:
            center = float(feature_map.center[j]) if slope else 0.0
            terms.append(Line(j, center, slope, limits[j], missing))
        else:
            start = int(feature_map.first[j])
            own = effects.table[start : start + len(column.words)]
            terms.append(step_tree(columns, j, [], own.tolist(), missing))
    return terms


def step_tree(
    columns: Sequence[Column],
    feature: int,
    thresholds: list[float],
    values: list[float],
    missing: float,
) -> Tree:
    """Return a step function as a balanced tree.

    values: between the thresholds, or of the categories.

    The leaves are in a row, and each split divides a part of it. A missing value goes below everywhere, so the first
    leaf is its own.
    """
    if columns[feature].words is None:
        if thresholds[:1] == [-math.inf]:  # no number lies below it
            thresholds, values = thresholds[1:], values[1:]
        if missing != values[0]:
            thresholds, values = [-math.inf, *thresholds], [missing, *values]
        members: list[list[int]] = []
    else:
        groups: dict[float, list[int]] = {missing: []}
        for code, value in enumerate(values):
            groups.setdefault(value, []).append(code)
        values, members = list(groups), list(groups.values())
    splits: list[Split] = []

    def grow(first: int, stop: int) -> int:
        if stop - first == 1:
            return ~first
        middle, node = (first + stop) // 2, len(splits)
        cut = math.nan if members else thresholds[middle - 1]
        above = tuple(sorted(code for group in members[middle:stop] for code in group))
        splits.append(Split(feature, cut, above if members else None, False, 0, 0))
        above_end, below_end = grow(middle, stop), grow(first, middle)
        splits[node] = splits[node]._replace(above=above_end, below=below_end)
        return node

    grow(0, len(values))
    return Tree(splits, values)
