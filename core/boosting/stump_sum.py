"""Stumps as weak rankers: cuts of one feature, found by the scan, summed up by feature."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.checkpoint import Resumable
from core.coding import Bins, Peak, count_rows, find_peak
from core.coding.bins import code_columns, learn_bins
from core.coding.category_sets import Bools, Words, categories_above
from core.coding.rows import positives_first, take_weights
from core.errors import ArtifactError
from core.ranker import Arrays, Floats
from core.table import Categories
from core.trees.cuts import NO_SET, Integers, Sets, check_sets, is_above, members_of

from .ensemble import Ensemble, join_fields, split_fields
from .loop import LEAST_EDGE, Path
from .rules import CutRule, Verdict
from .stump_words import describe_rules, describe_steps
from .stumps import fold
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

CONSTANT = Peak(-1, -1, False, 0.0)


@dataclass(frozen=True, slots=True)
class Stump:
    """A stump that the scan has found; `peak` and `masses` are the cut it was made of."""

    peak: Peak
    masses: Masses | None
    threshold: float
    coverage: float
    verdict: Verdict
    members: Bools | None = None  # of a categorical feature the categories above

    @property
    def d_plus(self) -> float:
        """Mass that it gets right."""
        return self.verdict.d_plus

    @property
    def d_minus(self) -> float:
        """Mass that it gets wrong."""
        return self.verdict.d_minus

    @property
    def above_below(self) -> tuple[float, float]:
        """What h is above the threshold, and below it."""
        sign, high, low, *_ = self.verdict
        return (high, low) if sign > 0 else (low, high)

    def values(self, X: Floats) -> Floats:
        """Give h(x) of each row."""
        peak = self.peak
        above = is_above(X, peak.feature, self.threshold, peak.missing_above, self.members)
        return np.where(above, *self.above_below)


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

    def make(self, peak: Peak, masses: Masses | None, verdict: Verdict) -> Stump:
        """Make a stump of a cut."""
        edges, shares = self.bins.edges[peak.feature], self._shares[peak.feature]
        members = categories_above(self.bins, peak)
        if peak.bins_above is not None:
            threshold, above = math.nan, shares[: len(peak.bins_above)][peak.bins_above].sum()
        else:
            threshold = float(edges[peak.cut]) if peak.cut >= 0 else -math.inf
            above = self._above[peak.feature, peak.cut + 1]
        above += shares[-1] if peak.missing_above else 0.0
        coverage = float(above if verdict.sign > 0 else 1.0 - above)
        return Stump(peak, masses, threshold, min(max(coverage, 0.0), 1.0), verdict, members)

    def collect(self, path: Path) -> "StumpSum":
        """Sum up the stumps of a run of the loop."""
        rounds = np.empty(len(path.found), dtype=ROUND)
        sets = Sets()
        for t, (stump, alpha) in enumerate(zip(path.found, path.alpha, strict=True)):
            peak, verdict = stump.peak, stump.verdict
            rounds[t] = (
                peak.feature,
                stump.threshold,
                verdict.sign,
                peak.missing_above,
                alpha,
                verdict.d_plus,
                verdict.d_minus,
                verdict.high,
                verdict.low,
                stump.coverage,
                sets.add(peak.feature, stump.members),
            )
        return StumpSum(rounds, self.bins.has_missing, self.n_categories, sets.words)


class StumpLearner(Resumable):
    """The training rows, their weights, and the scan for the best stump.

    Parameters
    ----------
    rule : CutRule
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
    max_bins : int
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.

    Notes
    -----
    A round is O(n_features · n_rows). Memory per row: its codes, and 14 bytes.
    """

    changing = ("_weights",)

    def __init__(
        self,
        rule: CutRule,
        X: Floats,
        positive: npt.NDArray[np.bool_],
        weight: Floats,
        max_bins: int,
        n_categories: Integers,
    ) -> None:
        rows, n_positives = positives_first(positive)
        bins = learn_bins(X, np.sort(rows), weight, max_bins, n_categories)
        codes = code_columns(X, rows, bins)
        weight = take_weights(weight, rows)
        self._rule = rule
        self._bins, self._n_bins = bins, bins.n_bins
        self._is_categorical = bins.is_categorical
        counts = count_rows(weight) if self._is_categorical.any() else None
        self._weights = PairWeights(codes, weight, n_positives, bins.n_slots, counts)
        self._maker = StumpMaker(bins, n_categories, self._weights.bin_shares())

    @property
    def log_f_plus(self) -> float:
        """Logarithm of F₊."""
        return self._weights.log_f_plus

    @property
    def log_f_minus(self) -> float:
        """Logarithm of F₋."""
        return self._weights.log_f_minus

    def scan(self) -> Stump | None:
        """Find the best stump under the present weights."""
        weights, rule = self._weights, self._rule
        peak = find_peak(
            weights.histograms,
            self._n_bins,
            self._bins.has_missing,
            rule.criterion,
            weights.share_p,
            self._is_categorical,
            weights.spread(),
        )
        best = None
        if peak.feature >= 0:
            masses = weights.masses(peak)
            best = self._maker.make(peak, masses, rule.judge(masses, weights.share_p))
        constant = rule.judge_constant(weights.share_p)
        if constant is not None and (best is None or constant.d_plus > best.d_plus):
            best = Stump(CONSTANT, None, -math.inf, 1.0, constant)
        if best is None or best.d_plus - best.d_minus < LEAST_EDGE:
            return None
        return best

    def update(self, found: Stump, alpha: float) -> None:
        """Let f grow by alpha h."""
        above, below = found.above_below
        if found.masses is None:
            self._weights.shift(alpha * above)
        else:
            self._weights.update(found.peak, found.masses, alpha * above, alpha * below)

    def collect(self, path: Path) -> "StumpSum":
        """Sum up the stumps of a run of the loop."""
        return self._maker.collect(path)


class StumpSum(Ensemble):
    """A sum of stumps, folded into one step function per feature for scoring.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,), `ROUND`
    has_missing : ndarray of shape (n_features,), bool
        Which columns held missing values at fit.
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    sets : ndarray of shape (n_words,), uint64
        Sets of categories; see `cuts`.

    Attributes
    ----------
    steps : StepFunctions
        The sum but for its constant.
    means : ndarray of shape (n_features,), float64
        The training mean of each step function.
    """

    type = "stumps"

    def __init__(
        self, rounds: npt.NDArray[np.void], has_missing: Bools, n_categories: Integers, sets: Words
    ) -> None:
        self.rounds = rounds
        self.has_missing = has_missing
        self.n_categories = n_categories
        self.sets = sets
        self.constant = float((rounds["alpha"] * rounds["low"]).sum())
        self.steps = fold(rounds[rounds["feature"] >= 0], n_categories, sets)
        self.means = np.zeros(len(has_missing))
        added = rounds["alpha"] * (rounds["high"] - rounds["low"]) * rounds["coverage"]
        np.add.at(self.means, rounds["feature"], added)  # 0 where the feature is -1
        self.mean = self.constant + float(self.means.sum())

    def score(self, X: Floats, intercept: float) -> Floats:
        """Score rows; O(n_rows · n_used · log n_thresholds)."""
        return self.steps.score(X, intercept + self.constant)

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... stumps on each row."""
        scores = np.zeros(len(X))
        for row in self.rounds:
            ends = (row["high"], row["low"]) if row["sign"] > 0 else (row["low"], row["high"])
            members = members_of(self.sets, row, self.n_categories)
            above = is_above(X, row["feature"], row["threshold"], row["missing_above"], members)
            scores = scores + row["alpha"] * np.where(above, *ends)
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Give how each feature's step function differs from its training mean."""
        return self.steps.contributions(X) - self.means

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe step functions and rules; see `stump_words.describe`."""
        return {
            "features": describe_steps(self.steps, name, categories),
            "rules": describe_rules(self.rounds, self.sets, self.has_missing, name, categories),
        }

    def weak_rankers(self) -> list[Stump]:
        """Give the stumps, without the cuts of bins that they were made of."""
        return [self._stump(row) for row in self.rounds]

    def _stump(self, row: np.void) -> Stump:
        verdict = Verdict(**{name: row[name].item() for name in Verdict._fields})
        peak = Peak(int(row["feature"]), -1, bool(row["missing_above"]), 0.0)
        members = members_of(self.sets, row, self.n_categories)
        return Stump(peak, None, float(row["threshold"]), float(row["coverage"]), verdict, members)

    def binary_weights(self) -> Floats:
        """Give α(high - low), and 0 for a constant."""
        rises = self.rounds["high"] - self.rounds["low"]
        return np.asarray(self.rounds["alpha"] * np.where(self.rounds["feature"] >= 0, rises, 0.0))

    def arrays(self) -> Arrays:
        """Give the fields of the rounds, the sets, and which columns held missing values."""
        return split_fields(self.rounds) | {"sets": self.sets, "has_missing": self.has_missing}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_rounds: int, n_categories: Integers
    ) -> "StumpSum":
        """Take what `arrays` gave; refuse any other with ArtifactError."""
        has_missing = arrays["has_missing"]
        check_array("has_missing", has_missing, np.bool_, n_categories.shape)
        rounds = join_fields(arrays, ROUND, n_rounds)
        check_rounds(rounds, arrays["sets"], n_categories)
        return cls(rounds, has_missing, n_categories, arrays["sets"])


def check_rounds(rounds: npt.NDArray[np.void], sets: Words, n_categories: Integers) -> None:
    """Refuse rounds that no fit can leave with ArtifactError."""
    feature, alpha, n_features = rounds["feature"], rounds["alpha"], len(n_categories)
    if not ((feature >= -1) & (feature < n_features)).all():
        raise ArtifactError(f"feature must be from -1 to {n_features - 1}")
    if not (np.isfinite(alpha).all() and (abs(rounds["sign"]) == 1).all()):
        raise ArtifactError("alpha must be finite and sign 1 or -1")
    check_sets(feature, rounds["set"], sets, n_categories)
    is_threshold = rounds["set"] == NO_SET
    if not (rounds["threshold"][is_threshold] < np.inf).all():
        raise ArtifactError("threshold must be a number below infinity")
    if not np.isnan(rounds["threshold"][~is_threshold]).all():
        raise ArtifactError("threshold must be NaN where a feature is categorical")
    if not ((rounds["low"] >= -1) & (rounds["high"] <= 1)).all():
        raise ArtifactError("low and high must be from -1 to 1")
    if not (rounds["low"] <= rounds["high"]).all():
        raise ArtifactError("low must be at most high")
    if not (rounds["low"] == rounds["high"])[feature < 0].all():
        raise ArtifactError("low must be equal to high where feature is -1")
    for name in ("d_plus", "d_minus", "coverage"):
        if not ((rounds[name] >= 0) & (rounds[name] <= 1 + 1e-9)).all():
            raise ArtifactError(f"{name} must be from 0 to 1")
