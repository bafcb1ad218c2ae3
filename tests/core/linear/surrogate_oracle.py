"""The surrogates by their definitions: every subset of negatives, every ordering. For tiny inputs only."""

from itertools import combinations, permutations

import numpy as np


def orderings(m: int, k: int) -> list[np.ndarray]:
    """Every matrix π of an ordering of m positives and k negatives: π_ij = 1 if i is ranked below j."""
    found = set()
    for order in permutations(range(m + k)):
        place = np.argsort(order)
        found.add(tuple(map(tuple, place[:m, None] > place[None, m:])))
    return [np.array(matrix, dtype=float).reshape(m, k) for matrix in found]


def rank_order(matrix: np.ndarray) -> np.ndarray:
    """Columns of an ordering, the highest negative first: the one above the most positives."""
    return np.argsort(-matrix.sum(axis=0), kind="stable")


def structural(
    s: np.ndarray, z: np.ndarray, low: int, high: int, matrices: list[np.ndarray]
) -> float:
    """Eq. 18's inner maximum on a set of negatives: max over π of Δ(π*, π) - w(φ(π*) - φ(π))."""
    unit = len(s) * (high - low)
    best = -np.inf
    for matrix in matrices:
        loss = matrix[:, rank_order(matrix)[low:high]].sum()
        lost = (matrix * (s[:, None] - z[None, :])).sum()
        best = max(best, (loss - lost) / unit)
    return best


def tight(s: np.ndarray, z: np.ndarray, low: int, high: int) -> float:
    matrices = orderings(len(s), high)
    return max(
        structural(s, z[list(subset)], low, high, matrices)
        for subset in combinations(range(len(z)), high)
    )


def naive(s: np.ndarray, z: np.ndarray, low: int, high: int) -> float:
    return structural(s, z, low, high, orderings(len(s), len(z)))


def hinge(s: np.ndarray, z: np.ndarray, low: int, high: int) -> float:
    """Eq. 9."""
    inside = np.sort(z)[::-1][low:high]
    return np.maximum(1 - (s[:, None] - inside[None, :]), 0).mean()


def by_runs(s: np.ndarray, z: np.ndarray, low: int, high: int, top: int) -> float:
    """Eq. 20: the best r_i of each positive by trying every one."""
    z = np.sort(z)[::-1]
    total = 0.0
    for score in s:
        gains = [(z[:r] - score).sum() + min(max(r - low, 0), high - low) for r in range(top + 1)]
        total += max(gains)
    return total / (len(s) * (high - low))
