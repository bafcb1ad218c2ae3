"""Stumps as weak rankers: cuts of one feature, found by the scan, summed up as one step function per feature."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.base.ranker import Floats
from core.base.state import FINITE, SIGN, Array, Index, Records
from core.base.table import Categories
from core.coding import (
    INFINITE_ESS,
    Bins,
    Codes,
    Split,
    change_histograms,
    effective_counts,
    fill_histograms,
    find_best_split,
    measure_inverse_ess,
    missing_code,
)
from core.coding.best_split import categories_above
from core.coding.bins import code_columns, learn_bins
from core.coding.categories import Bools, Words, unpack
from core.coding.rows import positives_first, take_weights
from core.errors import ArtifactError
from core.explain.conditions import ANY_NUMBER, Condition, any_category, in_words
from core.kernels import kernel
from core.trees.category_sets import NO_SET, Integers, Sets, check_sets, is_above, members_of

from .algorithms import Hypothesis, Masses, StumpAlgorithm
from .data import Rows
from .loop import MIN_EDGE, BoostingHistory, Ensemble, WeakLearner, fields_of, rounds_of

# From this many cells on, listing the rows of the smaller side of a cut pays.
LISTED_CELLS = 1_000_000

# Changed histograms are filled anew after so many steps, or when a class's total has left this
# range: their rounding errors, some 1e-16 of the totals of the last filling, then stay below 1e-12
# of the present ones. Only the choice of a cut sees them; steps and losses come from the rows.
FILL_EVERY = 16
TOTALS = (1e-3, 1e3)


# A side of a cut is an interval of codes in the arithmetic of their type, which wraps around: `first`, and `width`
# codes after it. For a set of bins, and for wide codes, marks take their place: 1 above, 0 below. One thread walks over
# the rows: beside the histograms of all features that is little.
_CODE = numba.uint8


class Interval(NamedTuple):
    """The codes of one side of a cut."""

    first: int
    width: int


class Sides(NamedTuple):
    """A column of codes, and which of them are above a cut and below it."""

    column: Codes
    above: Interval
    below: Interval

    @property
    def is_above(self) -> Bools:
        """Whether each code is above the cut."""
        first, width = self.above
        is_above: Bools = self.column - self.column.dtype.type(first) <= width  # it wraps around
        return is_above


def divide(column: Codes, split: Split) -> Sides:
    """Give the sides of a cut; of a categorical feature and of wide codes by marks in their place."""
    missing = missing_code(column.dtype)
    if split.bins_above is not None:
        marks = np.zeros(missing + 1, dtype=np.uint8)
        marks[: len(split.bins_above)] = split.bins_above
        marks[missing] = split.missing_above
        return Sides(marks[column], Interval(1, 0), Interval(2, 254))
    first = split.cut + 1
    width = missing - first - (0 if split.missing_above else 1)
    if column.dtype != np.uint8:
        inside = column - column.dtype.type(first) <= width
        return Sides(inside.view(np.uint8), Interval(1, 0), Interval(2, 254))
    below = Interval((first + width + 1) % (missing + 1), missing - 1 - width)
    return Sides(column, Interval(first, width), below)


@kernel(
    numba.types.Tuple((numba.float64, numba.float64, numba.int64))(
        _CODE[::1], _CODE, _CODE, numba.float64[::1]
    ),
    fastmath={"reassoc", "nsz", "nnan", "ninf"},
)
def sum_sides(column, first, width, weights):  # type: ignore[no-untyped-def]
    """Sum the weights inside and outside an interval, and count the rows inside."""
    inside = 0.0
    outside = 0.0
    n_inside = 0
    for i in range(len(column)):
        if column.dtype.type(column[i] - first) <= width:
            inside += weights[i]
            n_inside += 1
        else:
            outside += weights[i]
    return inside, outside, n_inside


@kernel(numba.void(_CODE[::1], _CODE, _CODE, numba.float64, numba.float64, numba.float64[::1]))
def rescale_sides(column, first, width, inside, outside, weights):  # type: ignore[no-untyped-def]
    """Multiply the weights inside an interval by one factor and those outside by another."""
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
    """Multiply the weights inside an interval, list those rows, from number `start` on, with the change of each.

    `rows` and `changes` need room for one more than is listed, since each row is written before it is known to count.
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

The score grows by alpha h(x). A ranking algorithm's h is 1 or 0; a classifying one's is 1 or -1. A
missing x counts as above the threshold where missing_above, else as below it. The threshold -inf
sets the missing apart from all values. A categorical feature has a set instead, which holds the
categories that are above: `set` is the place of its first word in the sets' array (`cuts`), -1 for
a numeric feature, and the threshold NaN. Feature -1 stands for the constant h = high. d_plus and
d_minus are the masses that h gets right and wrong, of pairs or of rows, under the weights before
the step. coverage is the share of the training weight where h is `high`.
"""

FEW_ROWS = 64  # that are sooner bisected than compared with all thresholds
BLOCK_ROWS = 256
FEW_THRESHOLDS = 64  # of a feature, that are counted through sooner than bisected


@dataclass(frozen=True)
class StepFunctions:
    """Σ_j g_j(x_j), each g_j constant between its thresholds.

    Attributes
    ----------
    features : ndarray of shape (n_used,), int64
        The features that have steps, ascending.
    starts : ndarray of shape (n_used + 1,), int64
        The thresholds of the u-th of them are thresholds[starts[u]:starts[u+1]].
    thresholds : ndarray of shape (n_thresholds,), float64
        Ascending within a feature; the test is x > threshold.
    values : ndarray of shape (n_thresholds + 2 * n_used,), float64
        From starts[u] + 2u on: the value below the first threshold, then after each threshold,
        and last the value of a missing x.
    """

    features: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    thresholds: Floats
    values: Floats

    def score(self, X: Floats, offset: float) -> Floats:
        """Give offset + Σ_j g_j(x_j) of each row, unchecked; X is C-contiguous.

        O(n_rows · n_used · log n_thresholds); many rows are compared with all of few thresholds, which is faster.
        """
        scores: Floats = _score(X, offset, self.features, self.starts, self.thresholds, self.values)
        return scores

    def contributions(self, X: Floats) -> Floats:
        """Give g_j(x_j) of each row and feature, shape as X, unchecked; X is C-contiguous."""
        parts = np.zeros(X.shape)
        _contribute(X, self.features, self.starts, self.thresholds, self.values, parts)
        return parts

    def per_feature(self) -> Iterator[tuple[int, Floats, Floats, float]]:
        """Yield feature, thresholds, values between them (one more), and the value of missing."""
        for u, feature in enumerate(self.features.tolist()):
            start, stop = self.starts[u], self.starts[u + 1]
            values = self.values[start + 2 * u : stop + 2 * u + 2]
            yield feature, self.thresholds[start:stop], values[:-1], float(values[-1])


def fold(rounds: npt.NDArray[np.void], n_categories: Integers, sets: Words) -> StepFunctions:
    """Fold stumps, rounds of type `ROUND`, into step functions; linear in rounds and sets, but for a sort.

    A stump adds alpha (high - low) on its side of the threshold; what it gives to every row alike, alpha low, is the
    caller's to add. A feature of K categories has the thresholds 0, 1, ..., K - 2, so that it has a value for each.
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
    """Give the thresholds, and the values below, between and above them, last of a missing x."""
    thresholds, step = np.unique(stumps["threshold"], return_inverse=True)
    rises, positive = _rises(stumps), stumps["sign"] > 0
    sums = np.zeros(len(thresholds) + 2)
    # Each side is summed from its own end, so that what adds up to 0 is 0.
    upwards = np.bincount(step[positive], rises[positive], len(thresholds))
    downwards = np.bincount(step[~positive], rises[~positive], len(thresholds))
    sums[1:-1] = np.cumsum(upwards)
    sums[:-2] += np.cumsum(downwards[::-1])[::-1]
    sums[-1] = rises[stumps["missing_above"] == positive].sum()
    return thresholds, sums


def _sum_sets(stumps: npt.NDArray[np.void], n_categories: int, sets: Words) -> Floats:
    """Give the value of each category, and last of a missing one."""
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
    """Forbid writing: a fitted ranker is shared by threads, and the kernels take it so."""
    array.flags.writeable = False
    return array


CONSTANT = Split(-1, -1, False, 0.0)


@dataclass(frozen=True, slots=True)
class Stump:
    """A stump, by the fields of `ROUND`; `split` and `masses` are the cut of codes it was made of, if it is at hand."""

    feature: int
    threshold: float
    missing_above: bool
    sign: int
    high: float
    low: float
    d_plus: float
    d_minus: float
    coverage: float
    members: Bools | None = None  # of a categorical feature the categories above
    split: Split = CONSTANT
    masses: Masses | None = None

    @property
    def above_below(self) -> tuple[float, float]:
        """What h is above the threshold, and below it."""
        return (self.high, self.low) if self.sign > 0 else (self.low, self.high)

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row."""
        above = is_above(X, self.feature, self.threshold, self.missing_above, self.members)
        return np.where(above, *self.above_below)


_MASS = (Ge(0.0), Le(1.0 + 1e-9))


@dataclass(frozen=True, eq=False)
class StumpSum(Ensemble):
    """A sum of stumps, folded into one step function per feature for scoring.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    rounds : structured ndarray of shape (n_rounds,), `ROUND`
    has_missing : ndarray of shape (n_features,), bool
        Which columns held missing values at fit.
    sets : ndarray of shape (n_words,), uint64
        Sets of categories; see `cuts`.
    """

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
    has_missing: Annotated[Bools, Array("n_features")]
    sets: Annotated[Words, Array("n_words")]

    def check(self) -> None:
        """Refuse rounds that no fit can leave."""
        check_cuts(self.rounds, self.sets, self.n_categories)

    @cached_property
    def steps(self) -> StepFunctions:
        """The sum but for its constant."""
        return fold(self.rounds[self.rounds["feature"] >= 0], self.n_categories, self.sets)

    @cached_property
    def constant(self) -> float:
        """What the sum gives to every row alike."""
        return float((self.rounds["alpha"] * self.rounds["low"]).sum())

    @cached_property
    def means(self) -> Floats:
        """The training mean of each step function, shape (n_features,)."""
        rounds, means = self.rounds, np.zeros(len(self.has_missing))
        added = rounds["alpha"] * (rounds["high"] - rounds["low"]) * rounds["coverage"]
        np.add.at(means, rounds["feature"], added)  # 0 where the feature is -1
        return means

    @property
    def mean(self) -> float:
        """The sum's weighted mean over the rows that it was fitted on."""
        return self.constant + float(self.means.sum())

    def score(self, X: Floats, intercept: float) -> Floats:
        """Score rows; O(n_rows · n_used · log n_thresholds)."""
        return self.steps.score(X, intercept + self.constant)

    def contributions(self, X: Floats) -> Floats:
        """Give how each feature's step function differs from its training mean."""
        return self.steps.contributions(X) - self.means

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe step functions and rules; see `describe_steps` and `describe_rules`."""
        return {
            "features": describe_steps(self.steps, name, categories),
            "rules": describe_rules(self.rounds, self.sets, self.has_missing, name, categories),
        }

    def weak_rankers(self) -> list[Stump]:
        """Give the stumps, without the cuts of codes that they were made of."""
        names = tuple(name for name in ROUND.names or () if name not in ("alpha", "set"))
        return [
            Stump(**fields_of(row, names), members=members_of(self.sets, row, self.n_categories))
            for row in self.rounds
        ]

    def binary_weights(self) -> Floats:
        """Give α(high - low), and 0 for a constant."""
        rises = self.rounds["high"] - self.rounds["low"]
        return np.asarray(self.rounds["alpha"] * np.where(self.rounds["feature"] >= 0, rises, 0.0))


class StumpMaker:
    """Makes stumps of cuts, and sums them up.

    Parameters
    ----------
    bins : Bins
    n_categories : ndarray of shape (n_features,), int64
    shares : ndarray of shape (n_features, n_slots), float64
        Share of the rows' weight in each bin, the missing last.
    """

    def __init__(self, bins: Bins, n_categories: Integers, shares: Floats) -> None:
        self.bins = bins
        self.n_categories = n_categories
        self._shares = shares
        # Summed from the top: [j, c + 1] is the share of rows above cut c, the missing left out.
        self._above = np.cumsum(shares[:, -2::-1], axis=1)[:, ::-1]

    def make(self, split: Split, masses: Masses | None, hypothesis: Hypothesis) -> Stump:
        """Make a stump of a cut."""
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
        """Sum up the stumps of a run of the loop."""
        rounds, sets = rounds_of_cuts(history, ROUND)
        return StumpSum(self.n_categories, rounds, self.bins.has_missing, sets)


class StumpLearner(WeakLearner):
    """The training rows with the weights of all crucial pairs, kept as one weight per row, and the scan for a stump.

    With v_i ∝ w_i e^{-f(x_i)} on positives and v_k ∝ w_k e^{f(x_k)} on negatives, each class
    summing to 1, the pair (i, k) weighs v_i v_k: no pair is ever listed. A step multiplies each
    side of a cut by a factor of its own. As only ratios within a class matter, one side may stay
    as it is: on large data the rows of the smaller side are changed and listed, and only they are
    added to the histograms. Totals are brought back to 1 before they leave their range, so that no
    class underflows, however far the scores have gone.

    Its algorithm is a `algorithms.StumpAlgorithm`.

    Notes
    -----
    A round is O(n_features · n_rows). Memory per row: its codes, and 14 bytes.
    """

    ensemble = StumpSum
    changing = ("_weights", "_histograms", "_changed_since_fill", "_log_f_plus", "_log_f_minus")

    def __init__(self, parameters: Any, algorithm: StumpAlgorithm, data: Rows) -> None:
        rows, m = positives_first(data.positive)
        max_bins, n_categories = parameters.max_bins, data.n_categories
        self._algorithm = algorithm
        self._bins = bins = learn_bins(data.X, np.sort(rows), data.weight, max_bins, n_categories)
        self._codes = code_columns(data.X, rows, bins)
        weight = take_weights(data.weight, rows)
        self._counts = effective_counts(weight) if bins.is_categorical.any() else None
        self._n_positives = m
        totals = float(weight[:m].sum()), float(weight[m:].sum())
        self._log_f_plus, self._log_f_minus = map(math.log, totals)
        self._weights = weight.copy()
        self._weights[:m] /= totals[0]
        self._weights[m:] /= totals[1]
        self._histograms = np.empty(
            (len(self._codes), 2, bins.n_slots)
        )  # a class's total may not be 1
        self._fill()
        share_p = self._share_p
        shares = share_p * self._histograms[:, 0] + (1.0 - share_p) * self._histograms[:, 1]
        self._maker = StumpMaker(bins, n_categories, shares)
        n_listed = len(weight) // 2 + 1 if self._codes.size >= LISTED_CELLS else 0
        self._rows = np.empty(n_listed, dtype=np.uint32)
        self._changes = np.empty(n_listed)

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ and F₋."""
        return self._log_f_plus, self._log_f_minus

    @property
    def _share_p(self) -> float:
        """The positives' share F₊/(F₊ + F₋) of all rows' weight."""
        return 1.0 / (1.0 + math.exp(min(self._log_f_minus - self._log_f_plus, 700.0)))

    def scan(self) -> Stump | None:
        """Find the best stump under the present weights."""
        algorithm, share_p = self._algorithm, self._share_p
        inverse_ess = INFINITE_ESS
        if self._counts is not None:
            inverse_ess = measure_inverse_ess(self._weights, self._counts, self._n_positives)
        split = find_best_split(
            self._histograms,
            self._bins.n_bins,
            self._bins.has_missing,
            algorithm.criterion,
            share_p,
            self._bins.is_categorical,
            inverse_ess,
        )
        best = None
        if split.feature >= 0:
            masses = self._sum_masses(split)
            best = self._maker.make(split, masses, algorithm.hypothesis(masses, share_p))
        constant = algorithm.constant_hypothesis(share_p)
        if constant is not None and (best is None or constant.d_plus > best.d_plus):
            best = Stump(-1, -math.inf, False, *constant, coverage=1.0)
        if best is None or best.d_plus - best.d_minus < MIN_EDGE:
            return None
        return best

    def update(self, weak_ranker: Stump, alpha: float) -> None:
        """Let f grow by alpha h."""
        rise_above, rise_below = (alpha * value for value in weak_ranker.above_below)
        masses = weak_ranker.masses
        if masses is None:  # a constant changes no ratio within a class
            self._log_f_plus -= rise_above
            self._log_f_minus += rise_above
            return
        shrink_p = masses.above_p * math.exp(-rise_above) + masses.below_p * math.exp(-rise_below)
        shrink_n = masses.above_n * math.exp(rise_above) + masses.below_n * math.exp(rise_below)
        self._log_f_plus += math.log(shrink_p)
        self._log_f_minus += math.log(shrink_n)
        # f rises by `common` everywhere, which changes no ratio, and by `rise` on the smaller side.
        column, above, below = divide(self._codes[weak_ranker.feature], weak_ranker.split)
        if 2 * masses.rows_above <= len(self._weights):
            smaller, rise, common = above, rise_above - rise_below, rise_below
        else:
            smaller, rise, common = below, rise_below - rise_above, rise_above
        total_p = masses.total_p * shrink_p * math.exp(common)
        total_n = masses.total_n * shrink_n * math.exp(-common)
        low, high = TOTALS
        in_range = low < total_p < high and low < total_n < high
        if self._rows.size and self._changed_since_fill < FILL_EVERY and in_range:
            self._change(column, smaller, rise)
            return
        m, weights = self._n_positives, self._weights
        rescale_sides(column[:m], *smaller, math.exp(-rise) / total_p, 1 / total_p, weights[:m])
        rescale_sides(column[m:], *smaller, math.exp(rise) / total_n, 1 / total_n, weights[m:])
        self._fill()

    def collect(self, history: BoostingHistory) -> StumpSum:
        """Sum up the stumps of a run of the loop."""
        return self._maker.collect(history)

    def _sum_masses(self, split: Split) -> Masses:
        """Add up both sides of a cut under the present weights."""
        m = self._n_positives
        column, above, _ = divide(self._codes[split.feature], split)
        above_p, below_p, rows_p = sum_sides(column[:m], *above, self._weights[:m])
        above_n, below_n, rows_n = sum_sides(column[m:], *above, self._weights[m:])
        total_p, total_n = above_p + below_p, above_n + below_n
        return Masses(
            above_p / total_p,
            below_p / total_p,
            above_n / total_n,
            below_n / total_n,
            total_p,
            total_n,
            rows_p + rows_n,
        )

    def _fill(self) -> None:
        fill_histograms(self._codes, self._weights, self._n_positives, self._histograms)
        self._changed_since_fill = 0

    def _change(self, column: Codes, side: Interval, rise: float) -> None:
        """Let f grow by `rise` on one side, the smaller, and carry it to the histograms."""
        m, weights, rows, changes = self._n_positives, self._weights, self._rows, self._changes
        n_p = rescale_and_list(column[:m], *side, math.exp(-rise), weights[:m], 0, rows, changes)
        n_n = rescale_and_list(
            column[m:], *side, math.exp(rise), weights[m:], m, rows[n_p:], changes[n_p:]
        )
        n = n_p + n_n
        change_histograms(self._codes, rows[:n], changes[:n], n_p, self._histograms)
        self._changed_since_fill += 1


def threshold_of(bins: Bins, split: Split) -> float:
    """Give the threshold of a cut: -inf where it sets the missing apart, NaN for a set of categories."""
    if split.bins_above is not None:
        return math.nan
    return float(bins.edges[split.feature][split.cut]) if split.cut >= 0 else -math.inf


def rounds_of_cuts(
    history: BoostingHistory, dtype: np.dtype[Any]
) -> tuple[npt.NDArray[np.void], Words]:
    """Write rounds of cuts as a structured array, and their sets of categories."""
    rounds, sets = rounds_of(history, dtype), Sets()
    rounds["set"] = [sets.add(stump.feature, stump.members) for stump in history.weak_rankers]
    return rounds, sets.words


def check_cuts(rounds: npt.NDArray[np.void], sets: Words, n_categories: Integers) -> None:
    """Refuse with ArtifactError cuts whose threshold, set and values do not go together."""
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
    """Describe step functions, ready for JSON: thresholds and values (one more), or categories and their values."""
    features = []
    for feature, thresholds, values, missing in steps.per_feature():
        names = categories[feature]
        described: dict[str, Any] = {"feature": name(feature)}
        if names:
            described |= {"categories": list(names), "values": values.tolist()}
        else:
            first = int(np.isneginf(thresholds[0]))  # no value lies below it: JSON knows no -inf
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
    """Give one sentence per distinct stump with what it adds in all, greatest first, ready for JSON.

    Sentences speak of the missing only where `has_missing`: where a feature had some at fit.
    """
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
def _look_up(x, u, start, stop, thresholds, values):  # type: ignore[no-untyped-def]
    """Give the u-th step function's value at x."""
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
    """Score rows, a block at a time and feature by feature."""
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
            if stop - start > FEW_THRESHOLDS or n_rows < FEW_ROWS:
                for i in range(size):
                    scores[first + i] += _look_up(column[i], u, start, stop, thresholds, values)
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
    for i in range(X.shape[0]):
        for u in range(len(features)):
            j = features[u]
            parts[i, j] = _look_up(X[i, j], u, starts[u], starts[u + 1], thresholds, values)
