"""Weak segments: levels of columns in which a ranker ranks worse than in the others.

A segment is a category, the rows without a value, a fifth of a number's values, or a pair of such levels of two
columns. Each is compared in two ways, because each alone misleads:

* with B, the mean AUC within the other levels of the same column, weighted by their pairs. Rows are only compared with
  rows of their own level: comparing a segment with all other rows would report every segment whose prevalence differs;
* with E, the AUC that the segment's own scores would give, if the rate of positives at each score were that of the
  other levels. Where scores hardly differ, little can be ranked, and an AUC near .5 is no fault.

The standard errors are from the influences of rows (see `intervals`), summed by unit. A segment's AUC A is tested as a
proportion: T = (A − a) / √(a (1 − a) / n + V) for the value a, which is B or E, V the variance of B or E, and
n = A (1 − A) / Var A, at most the trials of scores without ties at A = ½, 3 e₊ e₋ / (e₊ + e₋ + 1) (Mann & Whitney
1947). Without this limit, heavy ties give false findings. T is compared with Student's t with min(e₊, e₋) − 1 degrees
of freedom.

A segment is weak if A < B over all segments together (Bonferroni over twice their number), A < B − `MARGIN` by itself,
and the same two hold for E; or, unless it is a range of a number, if A < `CHANCE` over all segments together, and B is
clearly greater. A segment must remain weak without the rows of those that are already reported.

References
----------
Mann & Whitney, "On a test of whether one of two random variables is stochastically larger than the other", Annals of
Mathematical Statistics 18 (1947).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import number_units
from core.metrics.groups import (
    MIN_CLASS_ROWS,
    EvaluatedRows,
    FloatArray,
    check_rows,
    effective_units,
    has_enough,
)

Codes = NDArray[np.intp]
Bools = NDArray[np.bool_]
Verdict = Literal["worse", "random", "wrong_way_round"]

LEVEL = 0.95
MARGIN = 0.05
"""By how much a segment's AUC must be less than that of the others."""
CHANCE = 0.55
"""An AUC below which a segment is as good as ranked at random."""
MAX_SHARE = 0.5
"""Greatest share of the weight that a segment has."""
MIN_TABLE_ROWS = 20
"""Effective rows of each class below which no segment is looked at."""
MIN_LEVEL_ROWS = 5
"""Effective rows of each class that a level needs to be part of what a segment is compared with."""
N_RANGES = 5
"""Ranges of equally many rows that a number is cut into."""
MAX_VALUES = N_RANGES + 3
"""Most distinct values of a number that are levels of their own."""
MAX_LEVELS = 30
"""Most categories of a column that are levels of their own: the commonest."""
MAX_CROSSED = 5
"""Columns whose pairs of levels are segments: those that explain most of the order of the scores."""
_MIN_BINS, _MAX_BINS, _POSITIVES_PER_BIN = 5, 30, 10


class SegmentLevel(NamedTuple):
    """What rows of a level have in common: a range of a number, a category (its code twice), or no value."""

    kind: Literal["range", "category", "missing", "others"]
    low: float = math.nan
    high: float = math.nan


class SegmentColumn(NamedTuple):
    """A column cut into levels: the level of each row, (n_rows,), and what each level is."""

    codes: Codes
    levels: tuple[SegmentLevel, ...]


@dataclass(frozen=True)
class WeakSegment:
    """A segment in which the ranker ranks worse than in the other levels of its columns.

    Attributes
    ----------
    columns : tuple of str
        One column, or two.
    rows, positives : int
        Rows of positive weight in the segment, and positives among them.
    """

    columns: tuple[str, ...]
    levels: tuple[SegmentLevel, ...]
    """One per column."""
    verdict: Verdict
    """Whether the AUC is below that of the others, surely below .55, or surely below .5."""
    auc: float
    auc_of_others: float
    """Mean AUC within the other levels."""
    drop_low: float
    """Lower limit of `auc_of_others` − `auc`, at 95 % over all segments that were looked at."""
    rows: int
    positives: int
    share: float
    """The segment's share of the weight."""


@dataclass(frozen=True)
class SegmentSearch:
    """The weak segments of a ranker, the greatest drop first, and how many segments were looked at."""

    found: tuple[WeakSegment, ...]
    n_segments: int


def number_levels(values: FloatArray) -> SegmentColumn:
    """Cut a number (NaN: missing) into its values if they are few, else into ranges of equally many rows."""
    missing = np.isnan(values)
    known = values[~missing]
    distinct = np.unique(known)
    edges = distinct
    if distinct.size > MAX_VALUES:
        shares = np.arange(1, N_RANGES) / N_RANGES
        edges = np.unique(np.quantile(known, shares, method="higher"))
        edges = edges if edges[-1] == distinct[-1] else np.append(edges, distinct[-1])
    codes: Codes = np.searchsorted(edges, np.where(missing, -np.inf, values)).astype(np.intp)
    # An edge is the greatest value of its range.
    firsts = np.searchsorted(distinct, edges[:-1], side="right")
    lows = np.r_[distinct[:1], distinct[firsts]]
    levels = [
        SegmentLevel("range", float(low), float(high))
        for low, high in zip(lows, edges, strict=True)
    ]
    codes[missing] = len(levels)
    return SegmentColumn(codes, (*levels, SegmentLevel("missing")))


def category_levels(values: FloatArray) -> SegmentColumn:
    """Return the commonest categories, by their codes (NaN: missing), as levels; the rest have one in common."""
    missing = np.isnan(values)
    distinct, inverse, counts = np.unique(values[~missing], return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    level = np.empty(distinct.size, dtype=np.intp)
    level[order] = np.minimum(np.arange(distinct.size), MAX_LEVELS)
    levels = [SegmentLevel("category", float(code), float(code)) for code in distinct[order]]
    if len(levels) > MAX_LEVELS:
        levels = [*levels[:MAX_LEVELS], SegmentLevel("others")]
    codes = np.full(values.size, len(levels), dtype=np.intp)
    codes[~missing] = level[inverse]
    return SegmentColumn(codes, (*levels, SegmentLevel("missing")))


def weak_segments(
    y: ArrayLike,
    scores: ArrayLike,
    columns: Mapping[str, SegmentColumn],
    *,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
    fold: ArrayLike | None = None,
) -> SegmentSearch:
    """Return the segments in which held-out scores rank worse than in the others.

    y, scores, sample_weight, group: as for `core.metrics.auc_interval`.
    columns: by name; levels of all rows.
    fold: (n_samples,); the fold whose ranker scored the row. Scores become ranks within their fold.

    No segment is looked at if a class has fewer than `MIN_TABLE_ROWS` effective rows. A ranking that separates the
    classes (`core.metrics.separation`) has no weak segments that matter.

    O(n_columns · n log n).
    """
    rows = check_rows(y, {"scores": scores}, sample_weight, group)
    size = np.size(y)
    kept = np.ones(size, dtype=bool) if sample_weight is None else np.asarray(sample_weight) > 0.0
    if not all(has_enough(each, MIN_TABLE_ROWS) for each in effective_units(rows)):
        return SegmentSearch((), 0)
    values = rows.scores[0]
    if fold is not None:
        values = _ranks_within(values, number_units("fold", fold, size)[kept])
    ranked = _Ranked(rows, values)
    parts = list(_partitions(ranked, {name: _kept(each, kept) for name, each in columns.items()}))
    measured = [(part, _measure(ranked, part)) for part in parts]
    n_segments = sum(int(each.tested.sum()) for _, each in measured)
    if not n_segments:
        return SegmentSearch((), 0)
    candidates = [
        found
        for part, each in measured
        for found in _weak(ranked, part, each, (1.0 - LEVEL) / (2.0 * n_segments))
    ]
    candidates.sort(key=lambda found: -found.segment.drop_low)
    return SegmentSearch(tuple(_remaining(rows, values, ranked, candidates)), n_segments)


def _kept(column: SegmentColumn, kept: Bools) -> SegmentColumn:
    return SegmentColumn(column.codes[kept], column.levels)


def _ranks_within(values: FloatArray, fold: Codes) -> FloatArray:
    """Return the mean rank of each score within its fold, as a fraction of the fold's rows."""
    ranks = np.empty(values.size)
    for each in range(int(fold.max()) + 1):
        own = np.flatnonzero(fold == each)
        _, inverse, counts = np.unique(values[own], return_inverse=True, return_counts=True)
        ranks[own] = (np.cumsum(counts) - counts / 2.0)[inverse] / own.size
    return ranks


class _Ranked:
    """The rows in ascending order of their scores, with score bins of about equally many positives."""

    def __init__(self, rows: EvaluatedRows, values: FloatArray) -> None:
        self.order = np.argsort(values, kind="stable")
        ordered = values[self.order]
        self.positive = rows.positive[self.order]
        weight = np.ones(values.size) if rows.weight is None else rows.weight
        self.weight = weight[self.order] / weight.mean()
        self.rank = np.cumsum(np.r_[False, ordered[1:] != ordered[:-1]])
        self.unit = None if rows.unit is None else rows.unit[self.order]
        of_positives = np.flatnonzero(self.positive)
        mass = np.cumsum(self.weight[of_positives])
        n_bins = min(max(of_positives.size // _POSITIVES_PER_BIN, _MIN_BINS), _MAX_BINS)
        ends = np.searchsorted(mass, mass[-1] * np.arange(1, n_bins) / n_bins)
        cuts = np.unique(self.rank[of_positives[ends]])
        self.bin = np.searchsorted(cuts, self.rank)
        self.n_bins = int(self.bin.max()) + 1

    def squares(self, codes: Codes, n_levels: int, values: FloatArray) -> FloatArray:
        """Return the sums of squares by level of values that are summed by unit first."""
        if self.unit is None:
            return _sums(codes, values**2, n_levels)
        return _sums_of_cells(codes, self.unit, n_levels, values)[1]

    def effective(self, codes: Codes, n_levels: int, of_class: Bools) -> FloatArray:
        """Return the effective number of units of a class in each level."""
        own, weight = codes[of_class], self.weight[of_class]
        if self.unit is None:
            sums, squares = (
                _sums(own, weight, n_levels),
                _sums(own, weight**2, n_levels),
            )
        else:
            sums, squares = _sums_of_cells(own, self.unit[of_class], n_levels, weight)
        return np.divide(sums**2, squares, out=np.zeros(n_levels), where=squares > 0.0)


def _sums(codes: Codes, values: FloatArray, n_levels: int) -> FloatArray:
    """Return the sums by level, (n_levels,)."""
    return np.bincount(codes, values, n_levels).astype(np.float64, copy=False)


def _sums_of_cells(
    codes: Codes, unit: Codes, n_levels: int, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the sums by level, and the sums by level of the squared sums by unit."""
    n_units = int(unit.max(initial=0)) + 1
    cells, inverse = np.unique(codes * n_units + unit, return_inverse=True)
    sums, level = _sums(inverse, values, cells.size), cells // n_units
    return _sums(level, sums, n_levels), _sums(level, sums**2, n_levels)


class _Partition(NamedTuple):
    """All rows (by score) parted by the levels of one column or of two."""

    columns: tuple[str, ...]
    codes: Codes
    levels: tuple[tuple[SegmentLevel, ...], ...]

    @property
    def is_range(self) -> Bools:
        """Which segments are ranges of numbers and nothing else."""
        return np.array(
            [
                all(level.kind == "range" and level.low < level.high for level in levels)
                for levels in self.levels
            ]
        )


def _partitions(ranked: _Ranked, columns: Mapping[str, SegmentColumn]) -> Iterator[_Partition]:
    """Yield the columns, then the pairs of those that explain most of the order of the scores."""
    explained: dict[str, float] = {}
    own: dict[str, _Partition] = {}
    mean = np.average(ranked.rank, weights=ranked.weight)
    for name, column in columns.items():
        codes, n_levels = column.codes[ranked.order], len(column.levels)
        mass = _sums(codes, ranked.weight, n_levels)
        if np.count_nonzero(mass) < 2:
            continue
        sums = np.bincount(codes, ranked.weight * (ranked.rank - mean), n_levels)
        explained[name] = float((sums**2 / np.where(mass > 0.0, mass, 1.0)).sum())
        own[name] = _Partition((name,), codes, tuple((level,) for level in column.levels))
        yield own[name]
    crossed = sorted(explained, key=lambda name: -explained[name])[:MAX_CROSSED]
    for first, second in combinations(crossed, 2):
        left, right = own[first], own[second]
        n_right = len(right.levels)
        used, codes = np.unique(left.codes * n_right + right.codes, return_inverse=True)
        levels = [left.levels[k // n_right] + right.levels[k % n_right] for k in used.tolist()]
        yield _Partition((first, second), codes.astype(np.intp), tuple(levels))


class _Areas(NamedTuple):
    """The AUC within each level, the influence of each row, and each class's weight and effective units by level."""

    area: FloatArray
    influence: FloatArray
    positive: FloatArray
    negative: FloatArray
    effective: tuple[FloatArray, FloatArray]


def _areas(ranked: _Ranked, codes: Codes, n_levels: int) -> _Areas:
    order = np.argsort(codes, kind="stable")
    code, rank, positive = codes[order], ranked.rank[order], ranked.positive[order]
    own = np.where(positive, ranked.weight[order], 0.0)
    other = np.where(positive, 0.0, ranked.weight[order])
    first = np.r_[True, (code[1:] != code[:-1]) | (rank[1:] != rank[:-1])]
    tie, starts = np.cumsum(first) - 1, np.flatnonzero(first)
    of_tie = code[starts]
    at = np.add.reduceat(own, starts), np.add.reduceat(other, starts)
    totals = _sums(code, own, n_levels), _sums(code, other, n_levels)
    # The weight of each class below each tie, within its level.
    below = [
        np.cumsum(mass) - mass - np.r_[0.0, np.cumsum(total)][of_tie]
        for mass, total in zip(at, totals, strict=True)
    ]
    n_positive, n_negative = (np.where(total > 0.0, total, 1.0) for total in totals)
    placement = ((below[1] + at[1] / 2.0) / n_negative[of_tie])[tie]
    height = ((totals[0][of_tie] - below[0] - at[0] / 2.0) / n_positive[of_tie])[tie]
    area = np.clip(_sums(code, own * placement, n_levels) / n_positive, 0.0, 1.0)
    classes = ranked.positive, ~ranked.positive
    effective = tuple(ranked.effective(codes, n_levels, each) for each in classes)
    root = [np.sqrt(np.where(e > 1.0, e / np.maximum(e - 1.0, 1e-9), 1.0)) for e in effective]
    influence = np.empty(codes.size)
    influence[order] = np.where(
        positive,
        root[0][code] * own * (placement - area[code]) / n_positive[code],
        root[1][code] * other * (height - area[code]) / n_negative[code],
    )
    return _Areas(area, influence, *totals, (effective[0], effective[1]))


class _Measured(NamedTuple):
    """Of each level of a partition: its AUC A, those it is compared with, and their variances."""

    areas: _Areas
    tested: Bools
    """Whether the level is a segment that is looked at."""
    variance: FloatArray
    others: FloatArray
    """B, and the variance of A − B beyond that of A."""
    variance_of_others: FloatArray
    expected: FloatArray
    """E, and the variance of A − E beyond that of A."""
    variance_of_expected: FloatArray
    share: FloatArray


def _measure(ranked: _Ranked, part: _Partition) -> _Measured:
    codes, n_levels = part.codes, len(part.levels)
    areas = _areas(ranked, codes, n_levels)
    of_positives, of_negatives = areas.effective
    variance = ranked.squares(codes, n_levels, areas.influence)
    used = np.minimum(of_positives, of_negatives) >= MIN_LEVEL_ROWS
    pairs = np.where(used, areas.positive * areas.negative, 0.0)
    share = (areas.positive + areas.negative) / ranked.weight.sum()
    is_segment = np.array([all(level.kind != "others" for level in each) for each in part.levels])
    enough = np.minimum(of_positives, of_negatives) >= MIN_CLASS_ROWS * (1.0 - 1e-9)
    tested = is_segment & enough & (share <= MAX_SHARE)
    for effective in areas.effective:
        rest = np.where(used, effective, 0.0).sum() - effective
        tested &= rest >= MIN_CLASS_ROWS * (1.0 - 1e-9)
    left = np.maximum(pairs.sum() - pairs, 1e-100)
    others = np.clip(((pairs * areas.area).sum() - pairs * areas.area) / left, 0.0, 1.0)
    squares = pairs**2 * variance
    variance_of_others = (squares.sum() - squares) / left**2
    if ranked.unit is not None:
        for level in np.flatnonzero(tested).tolist():
            # Units with rows in several levels tie A and B.
            contrast = -pairs / left[level]
            contrast[level] = 1.0
            sums = np.bincount(ranked.unit, contrast[codes] * areas.influence)
            variance_of_others[level] = max(float((sums**2).sum()) - variance[level], 0.0)
    expected, of_difference = _expected(ranked, part, areas)
    return _Measured(
        areas,
        tested,
        variance,
        others,
        variance_of_others,
        expected,
        np.maximum(of_difference - variance, 0.0),
        share,
    )


def _expected(ranked: _Ranked, part: _Partition, areas: _Areas) -> tuple[FloatArray, FloatArray]:
    """Return the AUC of each level if its rows had the other levels' rate of positives at their scores, E, and the
    variance of A − E.
    """
    n_levels, n_bins = len(part.levels), ranked.n_bins
    cells = part.codes * n_bins + ranked.bin

    def by_bin(values: FloatArray) -> FloatArray:
        return _sums(cells, values, n_levels * n_bins).reshape(n_levels, n_bins)

    weight = ranked.weight
    positive, mass = by_bin(np.where(ranked.positive, weight, 0.0)), by_bin(weight)
    squares = by_bin(weight**2)
    others, of_others = positive.sum(0) - positive, mass.sum(0) - mass
    average = others.sum(1, keepdims=True) / np.maximum(of_others.sum(1, keepdims=True), 1e-300)
    row = weight.mean()  # one row of the average kind keeps the rate of an empty bin defined
    rate = (others + row * average) / (of_others + row)
    high, low = rate * mass, (1.0 - rate) * mass
    n_high, n_low = high.sum(1, keepdims=True), low.sum(1, keepdims=True)
    n_high, n_low = (np.where(each > 0.0, each, 1.0) for each in (n_high, n_low))
    below = np.cumsum(low, 1) - low / 2.0
    above = n_high - np.cumsum(high, 1) + high / 2.0
    expected = (high * below).sum(1, keepdims=True) / (n_high * n_low)
    # The derivatives of E by the weight of positives and of negatives in a bin.
    by_high, by_low = (below / n_low - expected) / n_high, (above / n_high - expected) / n_low
    by_mass, by_rate = rate * by_high + (1.0 - rate) * by_low, mass * (by_high - by_low)
    own = areas.influence - weight * by_mass[part.codes, ranked.bin]
    inside = ranked.squares(part.codes, n_levels, own)
    rates = by_rate**2 * rate * (1.0 - rate) * (squares.sum(0) - squares)
    outside = (rates / np.maximum(of_others, row) ** 2).sum(1)
    if (
        ranked.unit is not None
    ):  # the design effect of the segment's own rows is taken for the others', too
        single = _sums(part.codes, own**2, n_levels)
        outside *= np.maximum(1.0, inside / np.maximum(single, 1e-300))
    return expected[:, 0], inside + outside


class _Candidate(NamedTuple):
    """A segment that is weak by itself: the partition and the level that it is of."""

    segment: WeakSegment
    part: _Partition
    level: int


def _weak(
    ranked: _Ranked, part: _Partition, measured: _Measured, risk: float
) -> Iterator[_Candidate]:
    """Yield the segments of a partition that are weak by themselves; risk: of one test."""
    from scipy.special import stdtrit

    areas, chosen = measured.areas, np.flatnonzero(measured.tested)
    area = areas.area[chosen]
    of_positives, of_negatives = (each[chosen] for each in areas.effective)
    trials = _trials(area, measured.variance[chosen], of_positives, of_negatives)
    degrees = np.maximum(np.minimum(of_positives, of_negatives) - 1.0, 1.0)
    joint, single = stdtrit(degrees, 1.0 - risk), stdtrit(degrees, LEVEL)
    others, extra = measured.others[chosen], measured.variance_of_others[chosen]
    expected, of_expected = measured.expected[chosen], measured.variance_of_expected[chosen]

    def below(value: FloatArray | float, extra: FloatArray | float, t: FloatArray) -> Bools:
        null = np.clip(value, 0.02, 0.98)
        return np.asarray(area - null < -t * np.sqrt(null * (1.0 - null) / trials + extra))

    less = below(others, extra, joint) & below(others - MARGIN, extra, single)
    less_than_expected = below(expected, of_expected, joint)
    less_than_expected &= below(expected - MARGIN, of_expected, single)
    random = below(CHANCE, 0.0, joint) & (others > CHANCE + MARGIN)
    inverted = below(0.5, 0.0, joint)
    weak = less & (less_than_expected | (random & ~part.is_range[chosen]))
    drop = others - _upper_limit(area, trials, joint, extra)
    for j in np.flatnonzero(weak).tolist():
        level = int(chosen[j])
        inside = part.codes == level
        verdict: Verdict = "wrong_way_round" if inverted[j] else "random" if random[j] else "worse"
        found = WeakSegment(
            part.columns,
            part.levels[level],
            verdict,
            float(area[j]),
            float(others[j]),
            float(drop[j]),
            int(np.count_nonzero(inside)),
            int(np.count_nonzero(inside & ranked.positive)),
            float(measured.share[level]),
        )
        yield _Candidate(found, part, level)


def _trials(
    area: FloatArray, variance: FloatArray, positives: FloatArray, negatives: FloatArray
) -> FloatArray:
    """Return the trials of a proportion with the variance of an AUC, at most those of scores without ties at ½."""
    inner = np.clip(area, 0.02, 0.98)
    shown = inner * (1.0 - inner) / np.maximum(variance, 1e-18)
    most: FloatArray = 3.0 * positives * negatives / (positives + negatives + 1.0)
    return np.minimum(shown, most)


def _upper_limit(
    area: FloatArray, trials: FloatArray, t: FloatArray, extra: FloatArray
) -> FloatArray:
    """Return the greatest a ≥ A with a − A ≤ t √(a (1 − a) / n + V): the greater root of a quadratic."""
    scale = t**2 / trials
    middle = area + scale / 2.0
    root = np.sqrt(np.maximum(middle**2 - (1.0 + scale) * (area**2 - t**2 * extra), 0.0))
    return np.asarray(np.minimum((middle + root) / (1.0 + scale), 1.0))


def _remaining(
    rows: EvaluatedRows, values: FloatArray, ranked: _Ranked, candidates: Sequence[_Candidate]
) -> Iterator[WeakSegment]:
    """Yield those that are still weak without the rows of those before."""
    left = np.ones(values.size, dtype=bool)
    for each in candidates:
        codes = np.empty(values.size, dtype=np.intp)
        codes[ranked.order] = each.part.codes
        inside = codes == each.level
        if left[inside].all() or _still_weak(rows.take(left), values[left], codes[left], each):
            yield each.segment
            left &= ~inside


def _still_weak(rows: EvaluatedRows, values: FloatArray, codes: Codes, found: _Candidate) -> bool:
    """Return whether a segment is weak by itself among these rows."""
    if rows.positive.all() or not rows.positive.any():
        return False
    ranked = _Ranked(rows, values)
    part = found.part._replace(codes=codes[ranked.order])
    again = _weak(ranked, part, _measure(ranked, part), 1.0 - LEVEL)
    return any(each.level == found.level for each in again)
