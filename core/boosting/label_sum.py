"""Stumps with a vote per label: the weak rankers of the multilabel boosters, and their sum."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.checkpoint import Resumable
from core.coding import Peak, count_rows, find_label_peak, fit_bins
from core.coding.category_sets import Words, categories_above
from core.errors import ArtifactError
from core.ranker import Arrays, Floats
from core.table import Categories
from core.trees.cuts import Integers, Sets, is_above, members_of

from . import stump_sum
from .ensemble import Ensemble, join_fields, split_fields
from .kernels import divide
from .kinds import Kind
from .label_kernels import sum_edges
from .label_weights import LabelWeights, Sides
from .loop import LEAST_EDGE, Path
from .rules import Rule

if TYPE_CHECKING:
    from .booster import Booster

Bools = npt.NDArray[np.bool_]

MAX_LABELS = 10_000

ROUND = np.dtype(
    [
        ("feature", np.int64),
        ("threshold", np.float64),
        ("missing_above", np.bool_),
        ("alpha", np.float64),
        ("d_plus", np.float64),
        ("d_minus", np.float64),
        ("high", np.float64),
        ("low", np.float64),
        ("above", np.float64),
        ("set", np.int64),
    ]
)
"""One round: label l's h(x) is `high` on the side that its vote says, `low` on the other.

The vote 1 says above the threshold, -1 below it; a missing x counts as above where missing_above.
A categorical feature has a set instead of a threshold, as in `stump_sum.ROUND`.
Feature -1 stands for votes that are the same everywhere: all rows are above. The field `above` is
the share of the training weight above the threshold.
"""


@dataclass(frozen=True, slots=True)
class LabelStump:
    """A stump with a vote per label, and its values on the training rows."""

    peak: Peak
    threshold: float
    above: float
    votes: npt.NDArray[np.int8]
    high: float
    low: float
    d_plus: float
    d_minus: float
    members: Bools | None  # of a categorical feature the categories above

    def values(self, X: Floats) -> Floats:
        """Give h(x, l) of each row and label."""
        peak = self.peak
        above = is_above(X, peak.feature, self.threshold, peak.missing_above, self.members)
        return np.where(above[:, None] == (self.votes > 0), self.high, self.low)


class LabelRule(Rule):
    """What tells one multilabel booster from another.

    Attributes
    ----------
    high, low : float
        The two values of a weak ranker.
    """

    high: float
    low: float

    def start(self, has: Bools, weight: Floats) -> LabelWeights:
        """Give the weights at f = 0."""
        return LabelWeights(has, weight)

    @abstractmethod
    def signed(self, weights: LabelWeights) -> Floats:
        """Give the signed mass of each (row, label), in all 1: what the scan for a cut sums."""

    @abstractmethod
    def weigh(self, weights: LabelWeights, sides: Sides) -> tuple[float, float]:
        """Give d+ and d- of the weak ranker that is high there."""


class LabelLearner(Resumable):
    """The training rows, the weights of their labels, and the scan for the best cut and its votes.

    Notes
    -----
    A round is O(n_features · n_rows · n_labels).
    """

    changing = ("_weights",)

    def __init__(
        self,
        rule: LabelRule,
        X: Floats,
        has: Bools,
        weight: Floats,
        max_bins: int,
        n_categories: Integers,
    ) -> None:
        rows = np.arange(len(X))
        self._bins, self._codes = fit_bins(X, rows, weight, max_bins, n_categories)
        self._n_bins, self._n_categories = self._bins.n_bins, n_categories
        self._is_categorical = self._bins.is_categorical
        self._counts = count_rows(weight) if self._is_categorical.any() else None
        self._rule = rule
        self._share = weight / weight.sum()
        self._weights = rule.start(has, weight)
        self._n_labels = has.shape[1]
        self._sides = Sides(np.empty(0, dtype=np.bool_), np.empty(0, dtype=np.int8))

    @property
    def log_f_plus(self) -> float:
        """Logarithm of F₊."""
        return self._weights.log_f_plus

    @property
    def log_f_minus(self) -> float:
        """Logarithm of F₋."""
        return self._weights.log_f_minus

    def scan(self) -> LabelStump | None:
        """Find the cut with the greatest edge, and its votes."""
        bins, rule = self._bins, self._rule
        signed = rule.signed(self._weights)
        peak = find_label_peak(
            self._codes, signed, self._n_bins, bins.has_missing, self._is_categorical, self._counts
        )
        if peak.gain < LEAST_EDGE:
            return None
        rows_above, threshold = self._above(peak)
        votes = np.where(sum_edges(signed, rows_above) >= 0, 1, -1).astype(np.int8)
        self._sides = Sides(rows_above, votes)
        d_plus, d_minus = rule.weigh(self._weights, self._sides)
        if d_plus - d_minus < LEAST_EDGE:
            return None
        above = float(self._share[rows_above].sum())
        members = categories_above(bins, peak) if peak.feature >= 0 else None
        return LabelStump(
            peak, threshold, above, votes, rule.high, rule.low, d_plus, d_minus, members
        )

    def update(self, found: LabelStump, alpha: float) -> None:
        """Let f grow by alpha h; `found` is what `scan` gave last."""
        self._weights.grow(self._sides, alpha * found.high, alpha * found.low)

    def collect(self, path: Path) -> "LabelSum":
        """Sum up the stumps of a run of the loop."""
        rounds = np.empty(len(path.found), dtype=ROUND)
        votes = np.empty((len(path.found), self._n_labels), dtype=np.int8)
        sets = Sets()
        for t, (stump, alpha) in enumerate(zip(path.found, path.alpha, strict=True)):
            rounds[t] = (
                stump.peak.feature,
                stump.threshold,
                stump.peak.missing_above,
                alpha,
                stump.d_plus,
                stump.d_minus,
                stump.high,
                stump.low,
                stump.above,
                sets.add(stump.peak.feature, stump.members),
            )
            votes[t] = stump.votes
        return LabelSum(rounds, votes, self._bins.has_missing, self._n_categories, sets.words)

    def _above(self, peak: Peak) -> tuple[Bools, float]:
        if peak.feature < 0:
            return np.ones(len(self._share), dtype=np.bool_), -math.inf
        column, (first, width), _ = divide(self._codes[peak.feature], peak)
        rows_above = column - column.dtype.type(first) <= width  # unsigned: it wraps around
        if peak.bins_above is not None:
            return rows_above, math.nan
        edges = self._bins.edges[peak.feature]
        return rows_above, float(edges[peak.cut]) if peak.cut >= 0 else -math.inf


class LabelSum(Ensemble):
    """A sum of stumps with votes, folded into step functions per label.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,), `ROUND`
    votes : ndarray of shape (n_rounds, n_labels), int8
        1 or -1.
    has_missing : ndarray of shape (n_features,), bool
    n_categories : ndarray of shape (n_features,), int64
        0 for a numeric feature.
    sets : ndarray of shape (n_words,), uint64
    """

    type = "label_stumps"

    def __init__(
        self,
        rounds: npt.NDArray[np.void],
        votes: npt.NDArray[np.int8],
        has_missing: Bools,
        n_categories: Integers,
        sets: Words,
    ) -> None:
        self.rounds = rounds
        self.votes = votes
        self.has_missing = has_missing
        self.n_categories = n_categories
        self.sets = sets
        self._steps = []  # of the sums of each label these alone are kept: the rounds are shared
        self.constant = np.empty(votes.shape[1])
        self.mean = np.empty(votes.shape[1])
        for k in range(votes.shape[1]):
            label = self._of_label(k)
            self._steps.append(label.steps)
            self.constant[k], self.mean[k] = label.constant, label.mean

    def score(self, X: Floats, intercept: float) -> Floats:
        """Give a score per row and label."""
        offsets = intercept + self.constant
        return np.column_stack(
            [steps.score(X, offset) for steps, offset in zip(self._steps, offsets, strict=True)]
        )

    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sums of the first 1, 2, ... stumps, per row and label."""
        scores = np.zeros((len(X), self.votes.shape[1]))
        for row, votes in zip(self.rounds, self.votes, strict=True):
            members = members_of(self.sets, row, self.n_categories)
            above = is_above(X, row["feature"], row["threshold"], row["missing_above"], members)
            h = np.where(above[:, None] == (votes > 0), row["high"], row["low"])
            scores = scores + row["alpha"] * h
            yield scores

    def contributions(self, X: Floats) -> Floats:
        """Give a part per row, feature and label."""
        labels = range(self.votes.shape[1])
        return np.stack([self._of_label(k).contributions(X) for k in labels], axis=2)

    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe each label's step functions and rules."""
        return {
            "labels": [
                {
                    "constant": float(self.constant[k]),
                    **self._of_label(k).describe(name, categories),
                }
                for k in range(self.votes.shape[1])
            ]
        }

    def weak_rankers(self) -> list[LabelStump]:
        """Give the stumps, without the cuts of bins that they were made of."""
        return [self._stump(row, votes) for row, votes in zip(self.rounds, self.votes, strict=True)]

    def _stump(self, row: np.void, votes: npt.NDArray[np.int8]) -> LabelStump:
        peak = Peak(int(row["feature"]), -1, bool(row["missing_above"]), 0.0)
        members = members_of(self.sets, row, self.n_categories)
        names = ("threshold", "above", "high", "low", "d_plus", "d_minus")
        figures = {name: row[name].item() for name in names}
        return LabelStump(peak=peak, votes=votes, members=members, **figures)

    def arrays(self) -> Arrays:
        """Give the fields of the rounds, the votes, the sets, and which columns held missing values."""
        return split_fields(self.rounds) | {
            "votes": self.votes,
            "sets": self.sets,
            "has_missing": self.has_missing,
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_rounds: int, n_categories: Integers
    ) -> "LabelSum":
        """Take what `arrays` gave; refuse any other with ArtifactError."""
        votes, has_missing = arrays["votes"], arrays["has_missing"]
        if votes.ndim != 2 or not 1 <= votes.shape[1] <= MAX_LABELS:
            raise ArtifactError(
                f"votes must hold a column per label, at most {MAX_LABELS}, got shape {votes.shape}"
            )
        check_array("votes", votes, np.int8, (n_rounds, votes.shape[1]))
        check_array("has_missing", has_missing, np.bool_, n_categories.shape)
        if not (abs(votes) == 1).all():
            raise ArtifactError("votes must be 1 or -1")
        rounds = join_fields(arrays, ROUND, n_rounds)
        if not ((rounds["above"] >= 0) & (rounds["above"] <= 1 + 1e-9)).all():
            raise ArtifactError("above must be from 0 to 1")
        if not (rounds["low"] < rounds["high"]).all():
            raise ArtifactError("low must be less than high")
        plain = _stump_rounds(rounds, np.ones(n_rounds, dtype=np.int8))
        stump_sum.check_rounds(plain, arrays["sets"], n_categories)
        return cls(rounds, votes, has_missing, n_categories, arrays["sets"])

    def _of_label(self, k: int) -> stump_sum.StumpSum:
        rounds = _stump_rounds(self.rounds, self.votes[:, k])
        return stump_sum.StumpSum(rounds, self.has_missing, self.n_categories, self.sets)


def _stump_rounds(
    rounds: npt.NDArray[np.void], votes: npt.NDArray[np.int8]
) -> npt.NDArray[np.void]:
    """Give one label's rounds as those of a sum of plain stumps."""
    plain = np.empty(len(rounds), dtype=stump_sum.ROUND)
    for name in plain.dtype.names or ():
        if name in (rounds.dtype.names or ()):
            plain[name] = rounds[name]
    plain["sign"] = votes
    plain["coverage"] = np.where(votes > 0, rounds["above"], 1.0 - rounds["above"])
    everywhere = rounds["feature"] < 0
    value = np.where(votes > 0, rounds["high"], rounds["low"])
    plain["high"][everywhere] = plain["low"][everywhere] = value[everywhere]
    plain["sign"][everywhere] = 1
    return plain


def _start(
    booster: "Booster", rule: LabelRule, X: Floats, positive: Bools, weight: Floats
) -> LabelLearner:
    n_categories = booster._n_categories()
    return LabelLearner(rule, X, positive, weight, booster.max_bins, n_categories)


LABEL_STUMPS = Kind(_start, LabelSum.from_arrays, takes_categories=True)
