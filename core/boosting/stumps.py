"""Stumps as weak rankers: the search for the best split of one feature, and sums of stumps as step functions."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.columns import ColumnTable
from core.base.monotone import Directions, Verification, Violation
from core.base.ranker import Floats
from core.base.shards import Shards
from core.base.state import FINITE, SIGN, Array, Index, Records
from core.base.table import Categories
from core.base.training import TrainingData
from core.coding import (
    INFINITE_ESS,
    Bins,
    Codes,
    Split,
    change_histograms,
    fill_histograms,
    find_best_split,
    missing_code,
)
from core.coding.best_split import MIN_EDGE, categories_above
from core.coding.bins import learn_bins
from core.coding.categories import Bools, InverseESS, Words, unpack
from core.coding.rows import MakeCodedShard, divide_rows
from core.coding.stored import StoredCodes, store_codes
from core.errors import ArtifactError
from core.explain.conditions import ANY_NUMBER, Condition, any_category, in_words
from core.kernels import kernel
from core.trees.category_sets import NO_SET, Integers, Sets, check_sets, is_above, members_of

from .algorithms import CutMasses, Hypothesis, StumpAlgorithm
from .loop import BoostingHistory, Ensemble, WeakLearner, fields_of, rounds_of

# Cells of a table from which it pays to list the rows of the smaller side of a cut.
MIN_LISTED_CELLS = 1_000_000

# Steps after which changed histograms are filled anew, and the range that the total weight of a class may not leave
# without it. So their rounding errors, some 1e-16 of the totals of the last filling, stay below 1e-12 of the present
# totals.
FILL_EVERY = 16
TOTAL_RANGE = (1e-3, 1e3)

# Fraction of the weight of its class on a side of a cut, and edge of a cut, below which these errors could matter:
# histograms are then filled anew before the step.
MIN_SURE_MASS = 1e-4
MIN_SURE_EDGE = 1e-9


# A side of a cut is an interval of codes in the arithmetic of uint8, which wraps around: `first`, and `width` codes
# after it. For a set of bins, and for codes of uint16, marks replace the codes: 1 above, 0 below. One thread walks over
# the rows: that costs little beside the histograms of all features.
_CODE = numba.uint8


class CodeRange(NamedTuple):
    """An interval of bin codes on one side of a split: `first`, and the `width` codes after it."""

    first: int
    width: int


class CutSides(NamedTuple):
    """A column of codes, (n_rows,) uint8, and the code intervals above and below a split."""

    column: Codes
    above: CodeRange
    below: CodeRange

    @property
    def is_above(self) -> Bools:
        first, width = self.above
        is_above: Bools = self.column - self.column.dtype.type(first) <= width  # it wraps around
        return is_above


def sides_of(column: Codes, split: Split) -> CutSides:
    """Return the code intervals above and below a split; categorical and uint16 columns are recoded as 0/1."""
    missing = missing_code(column.dtype)
    if split.bins_above is not None:
        marks = np.zeros(missing + 1, dtype=np.uint8)
        marks[: len(split.bins_above)] = split.bins_above
        marks[missing] = split.missing_above
        return CutSides(marks[column], CodeRange(1, 0), CodeRange(2, 254))
    first = split.cut + 1
    width = missing - first - (0 if split.missing_above else 1)
    if column.dtype != np.uint8:
        inside = column - column.dtype.type(first) <= width
        return CutSides(inside.view(np.uint8), CodeRange(1, 0), CodeRange(2, 254))
    below = CodeRange((first + width + 1) % (missing + 1), missing - 1 - width)
    return CutSides(column, CodeRange(first, width), below)


_NO_BINS = np.empty(0, dtype=np.bool_)


@kernel(
    numba.types.UniTuple(numba.float64, 4)(
        numba.float64[:, ::1], numba.int64, numba.boolean[::1], numba.int64, numba.boolean
    )
)
def _sum_sides(histogram, n_bins, bins_above, cut, missing_above):  # type: ignore[no-untyped-def]
    """See `sum_sides`. bins_above is empty for a cut of a numeric feature."""
    above_p, below_p, above_n, below_n = 0.0, 0.0, 0.0, 0.0
    for code in range(n_bins):
        if bins_above[code] if len(bins_above) > 0 else code > cut:
            above_p += histogram[0, code]
            above_n += histogram[1, code]
        else:
            below_p += histogram[0, code]
            below_n += histogram[1, code]
    missing_p, missing_n = histogram[0, -1], histogram[1, -1]
    if missing_above:
        return above_p + missing_p, below_p, above_n + missing_n, below_n
    return above_p, below_p + missing_p, above_n, below_n + missing_n


def sum_sides(histograms: Floats, bins: Bins, split: Split) -> tuple[float, float, float, float]:
    """Return class weights above and below a split, each summed from its own bins; the last slot is the missing."""
    j, above = split.feature, split.bins_above
    sides = _NO_BINS if above is None else above
    sums: tuple[float, float, float, float] = _sum_sides(
        histograms[j], bins.n_bins[j], sides, split.cut, split.missing_above
    )
    return sums


@kernel(numba.void(_CODE[::1], _CODE, _CODE, numba.float64, numba.float64, numba.float64[::1]))
def rescale_sides(column, first, width, inside, outside, weights):  # type: ignore[no-untyped-def]
    """Multiply the weights of the rows with codes inside or outside an interval by a factor each, in place."""
    for i in range(len(column)):
        weights[i] *= inside if column.dtype.type(column[i] - first) <= width else outside


@kernel(
    numba.int64(
        _CODE[::1],
        _CODE,
        _CODE,
        numba.float64,
        numba.float64[::1],
        numba.int64,
        numba.uint32[::1],
        numba.float64[::1],
    )
)
def rescale_and_list(column, first, width, factor, weights, start, rows, changes):  # type: ignore[no-untyped-def]
    """Multiply the weights of rows with codes inside an interval; list these rows and changes; return their number.

    column: (n_rows,) uint8; weights: (n_rows,) float64; start: number of the first row; rows: uint32, changes: float64,
    with room for one more than is listed, since a row is written before it is known to count.
    """
    listed = np.uint64(0)  # unsigned, so that numba drops the test for negative indices
    for i in range(len(column)):
        weight = weights[np.uint64(i)]
        is_inside = column.dtype.type(column[np.uint64(i)] - first) <= width
        rescaled = weight * factor if is_inside else weight
        weights[np.uint64(i)] = rescaled
        rows[listed] = np.uint32(start + i)
        changes[listed] = rescaled - weight
        listed += np.uint64(1) if is_inside else np.uint64(0)
    return np.int64(listed)


ROUND = np.dtype(
    [
        ("feature", np.int64),
        ("threshold", np.float64),
        ("sign", np.int8),
        ("missing_above", np.bool_),
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
        ("high", np.float64),
        ("low", np.float64),
        ("coverage", np.float64),
        ("set", np.int64),
    ]
)
"""One round: h(x) = `high` where x > threshold and `low` elsewhere if sign is 1, the reverse if -1.

The score grows by alpha h(x). For a ranking algorithm h is 1 or 0; for a classifying one 1 or -1. A missing x counts as
above the threshold if missing_above, else as below it. The threshold -inf separates the missing from all values. A
categorical feature has a set of the categories above instead: `set` is the index of its first word in the array of
sets, -1 for a numeric feature, and the threshold is NaN. Feature -1 stands for the constant h = high. d_plus and
d_minus are the masses that h gets right and wrong, of pairs or of rows, under the weights before the step. coverage is
the fraction of the training weight for which h is `high`.
"""

MIN_COUNTED_ROWS = (
    64  # rows from which all thresholds are compared, with fewer rows they are bisected
)
BLOCK_ROWS = 256  # rows that are scored together
MAX_COUNTED_THRESHOLDS = (
    64  # thresholds of a feature up to which all are compared; more are bisected
)


@dataclass(frozen=True)
class StepFunctions:
    """The sum Σ_j g_j(x_j) of one function per feature, each constant between its thresholds."""

    features: npt.NDArray[np.int64]
    """The features that have steps, ascending. Shape (n_used,)."""
    starts: npt.NDArray[np.int64]
    """The thresholds of the u-th of them are thresholds[starts[u]:starts[u+1]]. Shape (n_used + 1,)."""
    thresholds: Floats
    """Ascending within a feature; the test is x > threshold. Shape (n_thresholds,)."""
    values: Floats
    """From starts[u] + 2u on: the value below the first threshold, then above each threshold, and last the value of a
    missing x. Shape (n_thresholds + 2 * n_used,)."""

    def score(self, X: Floats, offset: float) -> Floats:
        """Return offset + Σ_j g_j(x_j), without checks, for C-contiguous X; O(n_rows · n_used · log n_thresholds)."""
        scores: Floats = _score(X, offset, self.features, self.starts, self.thresholds, self.values)
        return scores

    def contributions(self, X: Floats) -> Floats:
        parts = np.zeros(X.shape)
        _contribute(X, self.features, self.starts, self.thresholds, self.values, parts)
        return parts

    def per_feature(self) -> Iterator[tuple[int, Floats, Floats, float]]:
        """Yield for each feature: its index, thresholds, the values between them, and the value if missing."""
        for u, feature in enumerate(self.features.tolist()):
            start, stop = self.starts[u], self.starts[u + 1]
            values = self.values[start + 2 * u : stop + 2 * u + 2]
            yield feature, self.thresholds[start:stop], values[:-1], float(values[-1])


def fold(rounds: npt.NDArray[np.void], n_categories: Integers, sets: Words) -> StepFunctions:
    """Return the sum of stumps, given as rounds of type `ROUND`, as one step function per feature.

    A stump adds alpha (high - low) on its side of the threshold; alpha low, which all rows get, is not included. A
    feature of K categories has the thresholds 0, 1, ..., K - 2, so that each category has a value.
    """
    by_feature = rounds[np.argsort(rounds["feature"], kind="stable")]
    features, first = np.unique(by_feature["feature"], return_index=True)
    thresholds, values = [], []
    for stumps in np.split(by_feature, first[1:]) if len(features) else []:
        n = int(n_categories[stumps["feature"][0]])
        if n > 0:
            steps, sums = np.arange(n - 1, dtype=np.float64), _sum_sets(stumps, n, sets)
        else:
            steps, sums = _sum_thresholds(stumps)
        thresholds.append(steps)
        values.append(sums)
    return StepFunctions(
        _frozen(features.astype(np.int64)),
        _frozen(np.cumsum([0, *map(len, thresholds)], dtype=np.int64)),
        _frozen(np.concatenate([np.empty(0), *thresholds])),
        _frozen(np.concatenate([np.empty(0), *values])),
    )


def _sum_thresholds(stumps: npt.NDArray[np.void]) -> tuple[Floats, Floats]:
    """Return the sorted thresholds of stumps on one numeric feature, and the values between them, that of NaN last."""
    thresholds, step = np.unique(stumps["threshold"], return_inverse=True)
    rises, positive = _rises(stumps), stumps["sign"] > 0
    sums = np.zeros(len(thresholds) + 2)
    # Each side is summed from its own end, so that sums that should be 0 are 0.
    upwards = np.bincount(step[positive], rises[positive], len(thresholds))
    downwards = np.bincount(step[~positive], rises[~positive], len(thresholds))
    sums[1:-1] = np.cumsum(upwards)
    sums[:-2] += np.cumsum(downwards[::-1])[::-1]
    sums[-1] = rises[stumps["missing_above"] == positive].sum()
    return thresholds, sums


def _sum_sets(stumps: npt.NDArray[np.void], n_categories: int, sets: Words) -> Floats:
    distinct, which = np.unique(stumps[["set", "sign", "missing_above"]], return_inverse=True)
    rises = np.bincount(which, _rises(stumps))
    sums = np.zeros(n_categories + 1)
    for cut, rise in zip(distinct, rises, strict=True):
        above = np.append(unpack(sets, cut["set"], n_categories), cut["missing_above"])
        sums[above == (cut["sign"] > 0)] += rise
    return sums


def _rises(stumps: npt.NDArray[np.void]) -> Floats:
    return np.asarray(stumps["alpha"] * (stumps["high"] - stumps["low"]))


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Threads share a fitted ranker, and the kernels take read-only arrays."""
    array.flags.writeable = False
    return array


CONSTANT = Split(-1, -1, False, 0.0)


@dataclass(frozen=True, slots=True)
class Stump:
    """A stump h with the fields of `ROUND`; `split` and `masses` are those of its split of codes, None if restored."""

    feature: int
    threshold: float
    missing_above: bool
    sign: int
    high: float
    low: float
    d_plus: float
    d_minus: float
    coverage: float
    members: Bools | None = None  # for a categorical feature the categories above
    split: Split = CONSTANT
    masses: CutMasses | None = None

    @property
    def above_below(self) -> tuple[float, float]:
        return (self.high, self.low) if self.sign > 0 else (self.low, self.high)

    def values(self, X: Floats) -> Floats:
        above = is_above(X, self.feature, self.threshold, self.missing_above, self.members)
        return np.where(above, *self.above_below)


_MASS = (Ge(0.0), Le(1.0 + 1e-9))


@dataclass(frozen=True, eq=False)
class StumpSum(Ensemble):
    """A sum of stumps, folded into one step function per feature for scoring."""

    type: ClassVar[str] = "stumps"

    n_categories: Integers
    rounds: Annotated[
        npt.NDArray[np.void],
        Records(
            ROUND,
            "n_rounds",
            feature=Index("n_features", least=-1),
            sign=SIGN,
            alpha=FINITE,
            d_plus=_MASS,
            d_minus=_MASS,
            high=Le(1.0),
            low=Ge(-1.0),
            coverage=_MASS,
        ),
    ]
    """Shape (n_rounds,), `ROUND`."""
    has_missing: Annotated[Bools, Array("n_features")]
    """Which columns held missing values in training."""
    sets: Annotated[Words, Array("n_words")]
    """Sets of categories; see `core.coding.categories`."""

    def check(self) -> None:
        check_cuts(self.rounds, self.sets, self.n_categories)

    @cached_property
    def steps(self) -> StepFunctions:
        """The sum without its constant, as step functions."""
        return fold(self.rounds[self.rounds["feature"] >= 0], self.n_categories, self.sets)

    @cached_property
    def constant(self) -> float:
        return float((self.rounds["alpha"] * self.rounds["low"]).sum())

    @cached_property
    def means(self) -> Floats:
        rounds, means = self.rounds, np.zeros(len(self.has_missing))
        added = rounds["alpha"] * (rounds["high"] - rounds["low"]) * rounds["coverage"]
        np.add.at(means, rounds["feature"], added)  # 0 where the feature is -1
        return means

    @property
    def mean(self) -> float:
        """Weighted mean of the sum over the training rows."""
        return self.constant + float(self.means.sum())

    def score(self, X: Floats, intercept: float) -> Floats:
        """Return the score of each row; O(n_rows · n_used · log n_thresholds)."""
        return self.steps.score(X, intercept + self.constant)

    def contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution: its step function minus its training mean, in the shape of X."""
        return self.steps.contributions(X) - self.means

    def walk_monotone(self, directions: Directions) -> Verification:
        compared, violations = 0, []
        for feature, thresholds, values, _ in self.steps.per_feature():
            sign = int(directions[feature])
            if sign == 0:
                continue
            first = int(np.isneginf(thresholds[0]))  # no value lies below it
            rises = sign * np.diff(values[first:])
            compared += len(rises)
            for k in np.flatnonzero(rises < 0.0)[:1].tolist():
                threshold = float(thresholds[first + k])
                violations.append(
                    Violation(feature, threshold, float(np.nextafter(threshold, np.inf)))
                )
        return Verification(compared, violations)

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        return {
            "features": describe_steps(self.steps, name, categories),
            "rules": describe_rules(self.rounds, self.sets, self.has_missing, name, categories),
        }

    def weak_rankers(self) -> list[Stump]:
        names = tuple(name for name in ROUND.names or () if name not in ("alpha", "set"))
        return [
            Stump(**fields_of(row, names), members=members_of(self.sets, row, self.n_categories))
            for row in self.rounds
        ]

    def binary_weights(self) -> Floats:
        rises = self.rounds["high"] - self.rounds["low"]
        return np.asarray(self.rounds["alpha"] * np.where(self.rounds["feature"] >= 0, rises, 0.0))


class StumpMaker:
    """Builds stumps from splits of bin codes. shares: fraction of the weight by bin, missing last."""

    def __init__(self, bins: Bins, n_categories: Integers, shares: Floats) -> None:
        self.bins = bins
        self.n_categories = n_categories
        self._shares = shares
        # Summed from the top: [j, c + 1] is the fraction above cut c, without the missing.
        self._above = np.cumsum(shares[:, -2::-1], axis=1)[:, ::-1]

    def make(self, split: Split, masses: CutMasses | None, hypothesis: Hypothesis) -> Stump:
        shares = self._shares[split.feature]
        if split.bins_above is not None:
            above = shares[: len(split.bins_above)][split.bins_above].sum()
        else:
            above = self._above[split.feature, split.cut + 1]
        above += shares[-1] if split.missing_above else 0.0
        coverage = float(above if hypothesis.sign > 0 else 1.0 - above)
        return Stump(
            split.feature,
            threshold_of(self.bins, split),
            split.missing_above,
            *hypothesis,
            coverage=min(max(coverage, 0.0), 1.0),
            members=categories_above(self.bins, split),
            split=split,
            masses=masses,
        )

    def collect(self, history: BoostingHistory) -> StumpSum:
        rounds, sets = rounds_of_cuts(history, ROUND)
        return StumpSum(self.n_categories, rounds, self.bins.has_missing, sets)


class WeightChange(NamedTuple):
    """One round's update of the row weights: a factor per class on each side of a split."""

    split: Split
    is_above: bool
    """Whether `inside` is the side above the cut."""
    inside: tuple[float, float]
    outside: tuple[float, float]
    """What the weights of positives, and of negatives, of each side are multiplied by."""
    is_change: bool
    """The weights inside alone change, and histograms with them; else histograms are filled anew."""

    def numbers(self) -> list[float]:
        """Return the update as a flat list of numbers, starting with their count, to send or store it."""
        split = self.split
        bins = [] if split.bins_above is None else np.flatnonzero(split.bins_above).tolist()
        n_bins = -1 if split.bins_above is None else len(split.bins_above)
        flags = [self.is_above, self.is_change, split.missing_above]
        own = [split.feature, split.cut, *flags, *self.inside, *self.outside, n_bins, *bins]
        return [float(len(own) + 1), *map(float, own)]

    @classmethod
    def read(cls, numbers: list[float]) -> "list[WeightChange]":
        steps, start = [], 0
        try:
            while start < len(numbers):
                n, feature, cut, is_above, is_change, missing_above = map(
                    int, numbers[start : start + 6]
                )
                a, b, c, d, n_bins = numbers[start + 6 : start + 11]
                above = None
                if n_bins >= 0:
                    above = np.zeros(int(n_bins), dtype=np.bool_)
                    above[np.array(numbers[start + 11 : start + n], dtype=np.int64)] = True
                split = Split(feature, cut, bool(missing_above), 0.0, above)
                steps.append(cls(split, bool(is_above), (a, b), (c, d), bool(is_change)))
                start += max(n, 11)
        except (ValueError, IndexError, OverflowError) as error:
            raise ArtifactError(
                f"a checkpoint must contain the steps of stumps: {error}"
            ) from error
        return steps


class Listing:
    """A reusable buffer for a list of rows and their weight changes, shared in turn by the shards of a process."""

    def __init__(self) -> None:
        self.rows, self.changes = np.empty(0, dtype=np.uint32), np.empty(0)

    def reserve(self, n_rows: int) -> None:
        if len(self.rows) < n_rows:
            self.rows, self.changes = np.empty(n_rows, dtype=np.uint32), np.empty(n_rows)


class StumpShard:
    """One shard of the training rows, positives first: bin codes, weights, and weight histograms per feature.

    `listing` is for the rows of the side of a split that changes; it has no room if the table is small, and histograms
    are then filled anew. If there are categories, squared weights are summed, too.
    """

    def __init__(
        self,
        codes: Codes,
        weight: Floats,
        n_positives: int,
        bins: Bins,
        listing: Listing,
    ) -> None:
        self._codes, self._weights, self._n_positives = codes, weight, n_positives
        self._per_row: Floats | None = None  # one over the number of rows that each row stands for
        shape = len(codes), 2, bins.n_slots
        n = math.prod(shape)
        self._sums = np.empty(n + 2 if bins.is_categorical.any() else n)
        self._histograms, self._squares = self._sums[:n].reshape(shape), self._sums[n:]
        self._listing = listing

    def totals(self) -> Floats:
        m, weights = self._n_positives, self._weights
        return np.array([weights[:m].sum(), weights[m:].sum(), weights.sum()])

    def start(self, total_p: float, total_n: float, scale: float | None) -> Floats:
        """Normalise the weights of each class, and return the shard's histogram sums.

        They are the histograms as one row, (n_features · 2 · n_slots,), followed, if there are categories, by the sums
        of squared weights of positives and negatives. Weights divided by `scale` are numbers of rows; None: no squares.
        """
        m, weights = self._n_positives, self._weights
        self._per_row = None if scale is None else np.asarray(scale / weights)
        self._weights = weights = weights.copy()
        weights[:m] /= total_p
        weights[m:] /= total_n
        return self._fill()

    def take(self, step: WeightChange) -> Floats:
        if not step.is_change:
            self._rescale(step)
            return self._fill()
        column, side = self._side(step)
        m, weights = self._n_positives, self._weights
        rows, changes = self._listing.rows, self._listing.changes
        factor_p, factor_n = step.inside
        n_p = rescale_and_list(column[:m], *side, factor_p, weights[:m], 0, rows, changes)
        n_n = rescale_and_list(
            column[m:], *side, factor_n, weights[m:], m, rows[n_p:], changes[n_p:]
        )
        n = n_p + n_n
        change_histograms(self._codes, rows[:n], changes[:n], n_p, self._histograms)
        return self._sum_up()

    def repeat(self, steps: list[WeightChange]) -> Floats:
        """Replay a list of weight updates from the start, and return the shard's histogram sums."""
        filled = max((k for k, step in enumerate(steps) if not step.is_change), default=-1)
        for step in steps[: filled + 1]:
            self._rescale(step)
        if filled >= 0:
            self._fill()
        for step in steps[filled + 1 :]:
            self.take(step)
        return self._sums

    def _side(self, step: WeightChange) -> tuple[Codes, CodeRange]:
        column, above, below = sides_of(self._codes[step.split.feature], step.split)
        return column, above if step.is_above else below

    def _rescale(self, step: WeightChange) -> None:
        m, weights = self._n_positives, self._weights
        column, side = self._side(step)
        for k, rows in enumerate((slice(m), slice(m, None))):
            rescale_sides(column[rows], *side, step.inside[k], step.outside[k], weights[rows])

    def _fill(self) -> Floats:
        fill_histograms(self._codes, self._weights, self._n_positives, self._histograms)
        return self._sum_up()

    def _sum_up(self) -> Floats:
        if len(self._squares):
            own, rows = self._weights, self._per_row
            for k, side in enumerate((slice(self._n_positives), slice(self._n_positives, None))):
                # einsum: without BLAS, whose last bits depend on the number of its threads.
                if rows is None:
                    self._squares[k] = np.einsum("i,i->", own[side], own[side])
                else:
                    self._squares[k] = np.einsum("i,i,i->", own[side], own[side], rows[side])
        return self._sums


@dataclass
class MakeStumpShard(MakeCodedShard):
    is_listed: bool
    """Whether the table is so large that changes of rows are listed."""

    def __post_init__(self) -> None:
        self._listing = Listing()

    def shard(
        self, codes: Codes, weight: Floats, n_positives: int, folder: Path | None = None
    ) -> StumpShard:
        self._listing.reserve(len(weight) + 1 if self.is_listed else 0)
        return StumpShard(codes, weight, n_positives, self.bins, self._listing)


class StumpLearner(WeakLearner):
    """Weak learner that finds the best stump; the weights of all pairs are kept as one weight per row.

    With v_i ∝ w_i e^{-f(x_i)} on positives and v_k ∝ w_k e^{r f(x_k)} on negatives, each class summing to 1, the pair
    (i, k) weighs v_i v_k: no pair is ever listed. r is the push of the algorithm, 1 without one. A step multiplies each
    side of a cut by a factor of its own. As only ratios within a class matter, one side may stay as it is: for large
    tables the rows of the smaller side are changed and listed, and only they are added to the histograms. Totals are
    brought back to 1 before they leave their range, so that no class underflows, however large the scores are.

    Rows are in shards of `SHARD_ROWS`, which may be on other machines (`core.base.shards`); this learner adds up their
    sums, and asks once a round: for the sums after a step. The next cut and its masses are found in these. Changed
    histograms have rounding errors: where these could matter to a step, histograms are filled anew first. A checkpoint
    has the steps that were taken, and nothing of the rows: the shards take the steps again.

    Its algorithm is a `algorithms.StumpAlgorithm`.

    A round is O(n_features · n_rows). Memory per row: its codes, and 20 bytes; 8 of a shard beyond the first.
    """

    ensemble = StumpSum
    reads_columns = True
    changing = ("_steps", "_changed_since_fill", "_log_f_plus", "_log_f_minus")

    def __init__(self, parameters: Any, algorithm: StumpAlgorithm, data: TrainingData) -> None:
        self._algorithm = algorithm
        self._directions: Directions | None = parameters.find_directions()
        self._shards = self._divide(data, parameters.max_bins)
        bins, n_rows = self._bins, len(data.positive)
        n_positives = int(np.count_nonzero(data.positive))
        self._n_rows = n_positives, n_rows - n_positives  # of each class
        total_p, total_n, total = self._shards.add_up("totals").tolist()
        self._log_f_plus, self._log_f_minus = math.log(total_p), math.log(total_n)
        is_counted = bool(bins.is_categorical.any() and (data.weight != 1.0).any())
        scale = min(total / n_rows, 1.0) if is_counted else None  # as `effective_counts`
        self._read(self._shards.add_up("start", total_p, total_n, scale))
        self._first = first = self._histograms.copy()
        self._steps: list[float] = []
        self._changed_since_fill = 0
        shares = self._share_p * first[:, 0] + (1.0 - self._share_p) * first[:, 1]
        self._maker = StumpMaker(bins, data.n_categories, shares)

    def _divide(self, data: TrainingData, max_bins: int) -> Shards:
        n_rows, n_categories = len(data.positive), data.n_categories
        self._is_listed = n_rows * len(n_categories) >= MIN_LISTED_CELLS
        read: Floats | StoredCodes = data.X
        if isinstance(data.X, ColumnTable):
            read = self._stored = store_codes(data.X, data.weight, max_bins, n_categories)
            self._bins = self._stored.bins
        else:
            rows = np.arange(n_rows, dtype=np.uint32)
            self._bins = learn_bins(data.X, rows, data.weight, max_bins, n_categories)
        make = MakeStumpShard(self._bins, self._is_listed)
        return divide_rows(read, data.positive, data.weight, make)

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ and Σ_k w_k e^{r f(x_k)}, which is F₋ without a push."""
        return self._log_f_plus, self._log_f_minus

    @property
    def _share_p(self) -> float:
        return 1.0 / (1.0 + math.exp(min(self._log_f_minus - self._log_f_plus, 700.0)))

    def scan(self) -> Stump | None:
        algorithm, share_p = self._algorithm, self._share_p
        best = self._find()
        if best is not None and not self._is_sure(best):
            assert best.masses is not None
            to_one = 1.0 / best.masses.total_p, 1.0 / best.masses.total_n
            self._take(WeightChange(best.split, True, to_one, to_one, is_change=False))
            best = self._find()
        if best is not None and breaks(best, self._directions):  # by rounding alone: it has no edge
            best = None
        constant = algorithm.constant_hypothesis(share_p)
        if constant is not None and (best is None or constant.d_plus > best.d_plus):
            best = Stump(-1, -math.inf, False, *constant, coverage=1.0)
        if best is None or best.d_plus - best.d_minus < MIN_EDGE:
            return None
        return best

    def _find(self) -> Stump | None:
        algorithm, histograms = self._algorithm, self._histograms
        inverse_ess = INFINITE_ESS
        if len(self._squares):
            above_p, below_p, above_n, below_n = sum_sides(
                histograms, self._bins, Split(0, -1, False, 0.0)
            )
            squares_p, squares_n = self._squares.tolist()
            inverse_ess = InverseESS(
                squares_p / (above_p + below_p) ** 2, squares_n / (above_n + below_n) ** 2
            )
        split = find_best_split(
            histograms,
            self._bins.n_bins,
            self._bins.has_missing,
            algorithm.criterion,
            self._share_p,
            self._bins.is_categorical,
            inverse_ess,
            self._directions,
            algorithm.push,
        )
        if split.feature < 0:
            return None
        above_p, below_p, above_n, below_n = sum_sides(histograms, self._bins, split)
        total_p, total_n = above_p + below_p, above_n + below_n
        masses = CutMasses(
            above_p / total_p,
            below_p / total_p,
            above_n / total_n,
            below_n / total_n,
            total_p,
            total_n,
        )
        return self._maker.make(split, masses, algorithm.hypothesis(masses, self._share_p))

    def _is_sure(self, stump: Stump) -> bool:
        """Return whether accumulated rounding errors of histograms are negligible next to a stump's weights."""
        if not self._changed_since_fill:
            return True
        assert stump.masses is not None
        if stump.d_plus - stump.d_minus < MIN_SURE_EDGE:
            return False
        at_first = sum_sides(self._first, self._bins, stump.split)
        return all(
            mass >= MIN_SURE_MASS or first == 0.0
            for mass, first in zip(stump.masses[:4], at_first, strict=True)
        )

    def update(self, weak_ranker: Stump, alpha: float) -> None:
        rise_above, rise_below = (alpha * value for value in weak_ranker.above_below)
        masses, push = weak_ranker.masses, self._algorithm.push
        if masses is None:  # a constant changes no ratio within a class
            self._log_f_plus -= rise_above
            self._log_f_minus += push * rise_above
            return
        shrink_p = masses.above_p * math.exp(-rise_above) + masses.below_p * math.exp(-rise_below)
        shrink_n = masses.above_n * math.exp(push * rise_above)
        shrink_n += masses.below_n * math.exp(push * rise_below)
        self._log_f_plus += math.log(shrink_p)
        self._log_f_minus += math.log(shrink_n)
        # f rises by `common` for all rows, which changes no ratio, and by `rise` on the side of fewer rows, as far as
        # the weights at the start tell.
        above_p, below_p, above_n, below_n = sum_sides(self._first, self._bins, weak_ranker.split)
        n_p, n_n = self._n_rows
        is_above = n_p * (above_p - below_p) + n_n * (above_n - below_n) <= 0.0
        if is_above:
            rise, common = rise_above - rise_below, rise_below
        else:
            rise, common = rise_below - rise_above, rise_above
        total_p = masses.total_p * shrink_p * math.exp(common)
        total_n = masses.total_n * shrink_n * math.exp(-push * common)
        low, high = TOTAL_RANGE
        in_range = low < total_p < high and low < total_n < high
        is_change = self._is_listed and self._changed_since_fill < FILL_EVERY and in_range
        inside, outside = (math.exp(-rise), math.exp(push * rise)), (1.0, 1.0)
        if not is_change:
            inside = (inside[0] / total_p, inside[1] / total_n)
            outside = (1 / total_p, 1 / total_n)
        self._take(WeightChange(weak_ranker.split, is_above, inside, outside, is_change))

    def _take(self, step: WeightChange) -> None:
        self._read(self._shards.add_up("take", step))
        self._steps += step.numbers()
        self._changed_since_fill = self._changed_since_fill + 1 if step.is_change else 0

    def _read(self, sums: Floats) -> None:
        shape = len(self._bins.n_bins), 2, self._bins.n_slots
        n = math.prod(shape)
        self._histograms, self._squares = sums[:n].reshape(shape), sums[n:]

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a checkpointed run: the shards replay its weight updates."""
        super().set_state(state)
        self._read(self._shards.add_up("repeat", WeightChange.read(self._steps)))

    def collect(self, history: BoostingHistory) -> StumpSum:
        return self._maker.collect(history)


def breaks(stump: Stump, directions: Directions | None) -> bool:
    """Return True if a stump violates a monotone constraint; one that only separates missing values never does."""
    if directions is None or stump.feature < 0 or stump.threshold == -math.inf:
        return False
    return bool(stump.sign * directions[stump.feature] < 0)


def threshold_of(bins: Bins, split: Split) -> float:
    """Return the feature threshold of a split of codes: -inf if it separates missing values, NaN for categories."""
    if split.bins_above is not None:
        return math.nan
    return float(bins.edges[split.feature][split.cut]) if split.cut >= 0 else -math.inf


def rounds_of_cuts(
    history: BoostingHistory, dtype: np.dtype[Any]
) -> tuple[npt.NDArray[np.void], Words]:
    """Return a run's rounds as a structured array, and the bit sets of categories of their splits."""
    rounds, sets = rounds_of(history, dtype), Sets()
    rounds["set"] = [sets.add(stump.feature, stump.members) for stump in history.weak_rankers]
    return rounds, sets.words


def check_cuts(rounds: npt.NDArray[np.void], sets: Words, n_categories: Integers) -> None:
    check_sets(rounds["feature"], rounds["set"], sets, n_categories)
    is_threshold = rounds["set"] == NO_SET
    if not (rounds["threshold"][is_threshold] < np.inf).all():
        raise ArtifactError("threshold must be a number below infinity")
    if not np.isnan(rounds["threshold"][~is_threshold]).all():
        raise ArtifactError("threshold must be NaN where a feature is categorical")
    if not (rounds["low"] <= rounds["high"]).all():
        raise ArtifactError("low must be at most high")
    if not (rounds["low"] == rounds["high"])[rounds["feature"] < 0].all():
        raise ArtifactError("low must be equal to high where feature is -1")


def describe_steps(
    steps: StepFunctions, name: Callable[[int], str], categories: Categories
) -> list[dict[str, Any]]:
    """Return a JSON description of step functions: thresholds or categories, and the values between or of them."""
    features = []
    for feature, thresholds, values, missing in steps.per_feature():
        names = categories[feature]
        described: dict[str, Any] = {"feature": name(feature)}
        if names:
            described |= {"categories": list(names), "values": values.tolist()}
        else:
            first = int(
                np.isneginf(thresholds[:1]).sum()
            )  # no value lies below it: JSON knows no -inf
            described |= {
                "thresholds": thresholds[first:].tolist(),
                "values": values[first:].tolist(),
            }
        features.append(described | {"missing": missing})
    return features


def describe_rules(
    rounds: npt.NDArray[np.void],
    sets: Words,
    has_missing: Bools,
    name: Callable[[int], str],
    categories: Categories,
) -> list[dict[str, Any]]:
    """Return one sentence per distinct stump with its total value, greatest first; missing only if `has_missing`."""
    rounds = rounds[rounds["feature"] >= 0]
    keys = rounds[["feature", "threshold", "set", "sign", "missing_above"]].copy()
    keys["threshold"][keys["set"] != NO_SET] = 0.0  # one NaN is not another
    stumps, which = np.unique(keys, return_inverse=True)
    steps_taken = rounds["alpha"] * (rounds["high"] - rounds["low"])
    adds = np.bincount(which, weights=steps_taken, minlength=len(stumps))
    rules = []
    for k in np.argsort(-adds, kind="stable"):
        stump, feature = stumps[k], int(stumps[k]["feature"])
        own_name, names = name(feature), categories[feature]
        missing_above = bool(stump["missing_above"])
        sides: tuple[Condition, Condition]
        if names:
            above = unpack(sets, stump["set"], len(names))
            sides = any_category(len(names)).divide(above, missing_above=missing_above)
        else:
            sides = ANY_NUMBER.divide(float(stump["threshold"]), missing_above=missing_above)
        high = sides[0] if stump["sign"] > 0 else sides[1]
        rows = in_words(own_name, high, names, mentions_missing=bool(has_missing[feature]))
        rule = f"{rows} adds {adds[k]:.3g}"
        rules.append({"feature": own_name, "rule": rule, "adds": float(adds[k])})
    return rules


_MATRIX = numba.types.Array(numba.float64, 2, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_STEPS = (_INTEGERS, _INTEGERS, _FLOATS, _FLOATS)


@kernel(
    numba.float64(numba.float64, numba.int64, numba.int64, numba.int64, _FLOATS, _FLOATS),
    inner=True,
)
def look_up(x, u, start, stop, thresholds, values):  # type: ignore[no-untyped-def]
    """Return the value of step function u at x; thresholds, values: 1-D float64, see `StepFunctions`."""
    if np.isnan(x):
        return values[stop + 2 * u + 1]
    low, high = start, stop
    while low < high:
        middle = (low + high) >> 1
        if x > thresholds[middle]:
            low = middle + 1
        else:
            high = middle
    return values[low + 2 * u]


@kernel(numba.float64[::1](_MATRIX, numba.float64, *_STEPS))
def _score(X, offset, features, starts, thresholds, values):  # type: ignore[no-untyped-def]
    """Return scores, a block of rows at a time and feature by feature; see `StepFunctions`."""
    n_rows = X.shape[0]
    scores, column = np.empty(n_rows), np.empty(BLOCK_ROWS)
    steps = np.empty(BLOCK_ROWS, dtype=np.int32)
    for i in range(n_rows):
        scores[i] = offset
    for i in range(BLOCK_ROWS):
        column[i] = 0.0
    for first in range(0, n_rows, BLOCK_ROWS):
        size = min(BLOCK_ROWS, n_rows - first)
        for u in range(len(features)):
            start, stop = starts[u], starts[u + 1]
            for i in range(size):
                column[i] = X[first + i, features[u]]
            if stop - start > MAX_COUNTED_THRESHOLDS or n_rows < MIN_COUNTED_ROWS:
                for i in range(size):
                    scores[first + i] += look_up(column[i], u, start, stop, thresholds, values)
                continue
            for i in range(BLOCK_ROWS):
                steps[i] = 0
            for step in range(start, stop):
                threshold = thresholds[step]
                for i in range(BLOCK_ROWS):  # a number that the compiler knows
                    steps[i] += np.int32(column[i] > threshold)
            begin, missing = start + 2 * u, values[stop + 2 * u + 1]
            for i in range(size):
                x = column[i]
                scores[first + i] += missing if np.isnan(x) else values[begin + steps[i]]
    return scores


@kernel(numba.void(_MATRIX, *_STEPS, numba.float64[:, ::1]))
def _contribute(X, features, starts, thresholds, values, parts):  # type: ignore[no-untyped-def]
    """Write each step function's value to parts, (n_rows, n_features); see `_score`."""
    for i in range(X.shape[0]):
        for u in range(len(features)):
            j = features[u]
            parts[i, j] = look_up(X[i, j], u, starts[u], starts[u + 1], thresholds, values)
