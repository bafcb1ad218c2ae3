"""Stumps as weak rankers: cuts of one feature, found by the scan, summed up as one step function per feature."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numba
import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from core.coding import Bins, Split, count_rows, find_best_split
from core.coding.best_split import categories_above
from core.coding.bins import code_columns, learn_bins
from core.coding.categories import Bools, Words, unpack
from core.coding.rows import positives_first, take_weights
from core.errors import ArtifactError
from core.explain.conditions import ANY_NUMBER, Condition, any_category, in_words
from core.kernel import kernel
from core.ranker import Floats
from core.state import FINITE, SIGN, Array, Index, Records
from core.table import Categories
from core.trees.cuts import NO_SET, Integers, Sets, check_sets, is_above, members_of

from .data import Rows
from .rules import Hypothesis, StumpRule
from .weak_learner import (
    LEAST_EDGE,
    Ensemble,
    Path,
    WeakLearner,
    fields_of,
    rounds_of,
)
from .weights import Masses, PairWeights

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

The score grows by alpha h(x). A ranking rule's h is 1 or 0; a classifying one's is 1 or -1. A
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
        """Give offset + Σ_j g_j(x_j) of each row, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous
        offset : float

        Returns
        -------
        ndarray of shape (n_rows,), float64

        Notes
        -----
        O(n_rows · n_used · log n_thresholds). Where there are many rows and few thresholds, each row is compared
        with all of them: for several rows at once that is sooner done than to bisect.
        """
        scores: Floats = _score(X, offset, self.features, self.starts, self.thresholds, self.values)
        return scores

    def contributions(self, X: Floats) -> Floats:
        """Give g_j(x_j) of each row and feature, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
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
    """Fold stumps into step functions.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,)
        Fields as in `stumps.ROUND`. A stump adds alpha (high - low) on its side of the
        threshold; what it gives to every row alike, alpha low, is the caller's to add.
    n_categories : ndarray of shape (n_features,), int64
        A feature of K categories has the thresholds 0, 1, ..., K - 2, so that it has a value for
        each; 0 for a numeric one.
    sets : ndarray of shape (n_words,), uint64

    Returns
    -------
    StepFunctions

    Notes
    -----
    Time and memory are linear in the number of rounds, but for a sort, and in the size of the sets.
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
        edges, shares = self.bins.edges[split.feature], self._shares[split.feature]
        if split.bins_above is not None:
            threshold, above = math.nan, shares[: len(split.bins_above)][split.bins_above].sum()
        else:
            threshold = float(edges[split.cut]) if split.cut >= 0 else -math.inf
            above = self._above[split.feature, split.cut + 1]
        above += shares[-1] if split.missing_above else 0.0
        coverage = float(above if hypothesis.sign > 0 else 1.0 - above)
        return Stump(
            split.feature,
            threshold,
            split.missing_above,
            *hypothesis,
            coverage=min(max(coverage, 0.0), 1.0),
            members=categories_above(self.bins, split),
            split=split,
            masses=masses,
        )

    def collect(self, path: Path) -> StumpSum:
        """Sum up the stumps of a run of the loop."""
        rounds, sets = rounds_of(path, ROUND), Sets()
        rounds["set"] = [sets.add(stump.feature, stump.members) for stump in path.found]
        return StumpSum(self.n_categories, rounds, self.bins.has_missing, sets.words)


class StumpLearner(WeakLearner):
    """The training rows, their weights, and the scan for the best stump.

    Its rule is a `rules.StumpRule`.

    Notes
    -----
    A round is O(n_features · n_rows). Memory per row: its codes, and 14 bytes.
    """

    ensemble = StumpSum
    changing = ("_weights",)

    def __init__(self, parameters: Any, rule: StumpRule, data: Rows) -> None:
        rows, n_positives = positives_first(data.positive)
        max_bins, n_categories = parameters.max_bins, data.n_categories
        bins = learn_bins(data.X, np.sort(rows), data.weight, max_bins, n_categories)
        codes = code_columns(data.X, rows, bins)
        weight = take_weights(data.weight, rows)
        self._rule = rule
        self._bins, self._n_bins = bins, bins.n_bins
        self._is_categorical = bins.is_categorical
        counts = count_rows(weight) if self._is_categorical.any() else None
        self._weights = PairWeights(codes, weight, n_positives, bins.n_slots, counts)
        self._maker = StumpMaker(bins, n_categories, self._weights.bin_shares())

    @property
    def log_f(self) -> tuple[float, float]:
        """Logarithms of F₊ and F₋."""
        return self._weights.log_f_plus, self._weights.log_f_minus

    def scan(self) -> Stump | None:
        """Find the best stump under the present weights."""
        weights, rule = self._weights, self._rule
        split = find_best_split(
            weights.histograms,
            self._n_bins,
            self._bins.has_missing,
            rule.criterion,
            weights.share_p,
            self._is_categorical,
            weights.spread(),
        )
        best = None
        if split.feature >= 0:
            masses = weights.masses(split)
            best = self._maker.make(split, masses, rule.hypothesis(masses, weights.share_p))
        constant = rule.constant_hypothesis(weights.share_p)
        if constant is not None and (best is None or constant.d_plus > best.d_plus):
            best = Stump(-1, -math.inf, False, *constant, coverage=1.0)
        if best is None or best.d_plus - best.d_minus < LEAST_EDGE:
            return None
        return best

    def update(self, found: Stump, alpha: float) -> None:
        """Let f grow by alpha h."""
        above, below = found.above_below
        if found.masses is None:
            self._weights.shift(alpha * above)
        else:
            self._weights.update(found.split, found.masses, alpha * above, alpha * below)

    def collect(self, path: Path) -> StumpSum:
        """Sum up the stumps of a run of the loop."""
        return self._maker.collect(path)


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
    """Describe step functions for a reader, ready for JSON.

    Each has a name; thresholds and values (one more than thresholds), or categories and their values; and the value of
    a missing x. With the offset of all rows they make the score.
    """
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
