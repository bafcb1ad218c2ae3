"""The papers' definitions over explicit cuts, rows and pairs: slow, and plain enough to be believed.

- Cuts: `cuts_of` a table, `cuts_of_codes`, and what a cut gains (`gain_of`).
- Pairs: `pairs_of_classes`, and `PairBoosting`, RankBoost over a list of pairs.
- Trees: `TreeOracle`, which tries every cut of every leaf, and `pair_loss`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from core.coding import Criterion

MIN_GAIN = 1e-9  # below it 1 - Z of eq. 5 is mostly rounding


def cuts_of(X: np.ndarray) -> Iterator[tuple[int, float, bool, np.ndarray]]:
    """Feature, threshold, missing above?, and the rows above, for each cut of each column in the agreed order."""
    for feature, column in enumerate(X.T):
        missing = np.isnan(column)
        known = np.unique(column[~missing])
        for threshold in [-math.inf, *known[:-1]] if missing.any() else list(known[:-1]):
            for missing_above in [False, True] if missing.any() else [False]:
                if threshold > -math.inf or not missing_above:  # else all rows are above: no cut
                    above = np.where(missing, missing_above, column > threshold)
                    yield feature, threshold, missing_above, above


PUSH = 3.0
"""Power of `Criterion.PUSH` in `gain_of`."""


def gain_of(
    criterion: Criterion, above: tuple[float, float], below: tuple[float, float], share_p: float
) -> float:
    """The gain of a cut with these masses (p, n) above and below, each class summing to 1, by definition."""
    (above_p, above_n), (below_p, below_n) = above, below
    if criterion is Criterion.YOUDEN:
        return abs(above_p - above_n)
    if criterion is Criterion.EDGE:
        return abs(share_p * (above_p - below_p) - (1 - share_p) * (above_n - below_n))
    if criterion is Criterion.PUSH:
        s = PUSH / (1 + PUSH)
        return 1 - above_p**s * above_n ** (1 - s) - below_p**s * below_n ** (1 - s)
    return 1 - (math.sqrt(above_p * above_n) + math.sqrt(below_p * below_n)) ** 2


def pairs_of_classes(y: np.ndarray) -> np.ndarray:
    """Every pair of a positive and a negative row."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    return np.stack([np.repeat(positive, len(negative)), np.tile(negative, len(positive))], axis=1)


@dataclass(frozen=True)
class Stump:
    feature: int
    threshold: float
    sign: int
    missing_above: bool

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """1 for the rows that it puts on top, 0 for the others."""
        x = X[:, self.feature]
        above = np.where(np.isnan(x), self.missing_above, x > self.threshold)
        return (above == (self.sign > 0)).astype(float)


class PairBoosting:
    """Boosts stumps on a list of crucial pairs, each with a weight of its own (Fig. 1).

    The criterion is "slope" (eq. 3) or "loss" (eq. 5). Rows that occur in no pair of weight above 0 offer no cuts.
    """

    def __init__(self, X: Any, pairs: Any, weight: Any, criterion: str, smoothing: float) -> None:
        present = weight > 0
        self.X = X
        self.better, self.worse = pairs[present].T
        self.pair_weight = weight[present]
        self.criterion = criterion
        self.smoothing = smoothing
        self.scores = np.zeros(len(X))
        occurring = X[np.unique(pairs[present])]
        self.has_missing = np.isnan(occurring).any(axis=0)
        candidates = [
            Stump(feature, threshold, sign, missing_above)
            for feature, threshold, missing_above, _ in cuts_of(occurring)
            for sign in (1, -1)
        ]
        self.candidates = [(stump, *self.ordered(stump)) for stump in candidates]

    @classmethod
    def of_classes(cls, X: Any, y: Any, weight: Any, criterion: str, smoothing: float) -> Self:
        """Take all pairs of a positive and a negative; a pair weighs the product of both weights."""
        pairs = pairs_of_classes(y)
        return cls(X, pairs, weight[pairs].prod(axis=1), criterion, smoothing)

    def terms(self) -> Any:
        return self.pair_weight * np.exp(self.scores[self.worse] - self.scores[self.better])

    def loss(self) -> Any:
        return self.terms().sum()

    def d(self) -> Any:
        return self.terms() / self.loss()

    def ordered(self, stump: Stump) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs that a stump orders rightly, wrongly, and not at all."""
        h = stump(self.X)
        m = h[self.better] - h[self.worse]
        return np.flatnonzero(m == 1), np.flatnonzero(m == -1), np.flatnonzero(m == 0)

    def masses(self, stump: Stump, d: Any) -> Any:
        return tuple(d[pairs].sum() for pairs in self.ordered(stump))

    def round(self) -> Any:
        """Take one round; return (stump, alpha, d_plus, d_minus), or None without an edge."""
        d = self.d()
        options = []
        for stump, *ordered in self.candidates:
            plus, minus, zero = (d[pairs].sum() for pairs in ordered)
            if plus >= minus:
                gain = (
                    plus - minus
                    if self.criterion == "slope"
                    else 1 - (2 * math.sqrt(plus * minus) + zero)  # eq. 5
                )
                options.append((gain, stump, plus, minus))
        best = max((option[0] for option in options), default=0.0)
        if best < MIN_GAIN:
            return None
        # the first of those that tie: feature, threshold and missing are in the agreed order
        _, stump, plus, minus = next(o for o in options if o[0] >= best * (1 - 1e-9) - 1e-14)
        alpha = 0.5 * math.log((plus + self.smoothing) / (minus + self.smoothing))
        self.scores += alpha * stump(self.X)
        return stump, alpha, plus, minus


def score_of_side(objective: str, p: float, q: float, push: float, smoothing: float) -> float:
    """The score of a side of a cut; see core.trees.splitting."""
    if objective == "closed":
        return -(p ** (push / (1 + push))) * q ** (1 / (1 + push))
    if objective == "newton":
        return (p - q) ** 2 / (p + push * q + smoothing)
    return p**2 / (q + smoothing)


class TreeOracle:
    """Grows one tree on a few rows.

    mass: (n_rows, 2), what each row adds to p and to q.
    """

    def __init__(
        self,
        X: Any,
        mass: Any,
        objective: Any,
        push: Any = 1.0,
        smoothing: Any = 0.0,
        least: Any = 0.0,
    ) -> None:
        self.X, self.mass = X, mass
        self.objective, self.push, self.smoothing = objective, push, smoothing
        self.least = least * (1 - 1e-9)

    def of(self, rows: Any) -> Any:
        p, q = self.mass[rows].sum(axis=0)
        return score_of_side(self.objective, p, q, self.push, self.smoothing)

    def size(self, rows: Any) -> Any:
        p, q = self.mass[rows].sum(axis=0)
        return q if self.objective == "gradient" else p + q

    def cuts(self, rows: Any) -> Iterator[Any]:
        """All cuts of a leaf, as (above, below), in the agreed order."""
        for j in range(self.X.shape[1]):
            x = self.X[rows, j]
            missing = np.isnan(x)
            values = np.unique(self.X[~np.isnan(self.X[:, j]), j])
            for missing_above in (False, True) if missing.any() else (False,):
                for threshold in [-math.inf, *values]:
                    above = np.where(missing, missing_above, x > threshold)
                    yield rows[above], rows[~above]

    def best(self, rows: Any) -> Any:
        """Return gain and both sides of the best cut; (0, None) without a gain."""
        best, sides = MIN_GAIN, None
        for above, below in self.cuts(rows):
            if not len(above) or not len(below):
                continue
            if min(self.size(above), self.size(below)) < self.least:
                continue
            gain = self.of(above) + self.of(below) - self.of(rows)
            if gain > best + 1e-12:
                best, sides = gain, (above, below)
        return (0.0, None) if sides is None else (best, sides)

    def grow(self, max_depth: Any, max_leaves: Any = None) -> Any:
        """Return the leaves, as lists of rows."""
        leaves = [(np.arange(len(self.X)), 0)]
        while max_leaves is None or len(leaves) < max_leaves:
            splits = [
                self.best(rows) if depth < max_depth else (0.0, None) for rows, depth in leaves
            ]
            k = max(range(len(leaves)), key=lambda i: splits[i][0])
            if splits[k][1] is None:
                break
            (above, below), depth = splits[k][1], leaves[k][1] + 1
            leaves[k] = (above, depth)
            leaves.append((below, depth))
        return [rows for rows, _ in leaves]


def groups(leaves: list[np.ndarray]) -> set[Any]:
    """Leaves as a set of sets of rows."""
    return {frozenset(rows.tolist()) for rows in leaves}


def pair_loss(
    scores: np.ndarray, positive: np.ndarray, weight: np.ndarray, push: float = 1.0
) -> float:
    """The push's sum over explicit pairs; F̃ for push 1."""
    better, worse = np.flatnonzero(positive), np.flatnonzero(~positive)
    terms = weight[better] * np.exp(scores[worse][:, None] - scores[better])
    return (weight[worse] * terms.sum(axis=1) ** push).sum()
