"""A boosted tree by the book: every cut of every leaf is tried over explicit rows and pairs."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

TIE = 1e-9


def worth(objective: str, p: float, q: float, push: float, smoothing: float) -> float:
    """What a side of a cut is worth; see core.trees.splitting."""
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
        self.has_missing = np.isnan(X).any(axis=0)

    def of(self, rows: Any) -> Any:
        p, q = self.mass[rows].sum(axis=0)
        return worth(self.objective, p, q, self.push, self.smoothing)

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
        """Give gain and both sides of the best cut; (0, None) without a gain."""
        best, sides = TIE, None
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
        """Give the leaves, as lists of rows."""
        leaves = [(np.arange(len(self.X)), 0)]
        while max_leaves is None or len(leaves) < max_leaves:
            found = [
                self.best(rows) if depth < max_depth else (0.0, None) for rows, depth in leaves
            ]
            k = max(range(len(leaves)), key=lambda i: found[i][0])
            if found[k][1] is None:
                break
            (above, below), depth = found[k][1], leaves[k][1] + 1
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
