"""TreeRank and LeafRank by brute force: slow, and plainly what the paper says."""

from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from core.coding.categories import unpack
from core.treerank.cuts import CutRules
from core.trees.category_sets import is_above


class Rows(NamedTuple):
    X: np.ndarray
    positive: np.ndarray
    weight: np.ndarray
    n_categories: np.ndarray


def is_above_cut(rules: CutRules, node: int, X: np.ndarray) -> np.ndarray:
    """Which rows of X are above a cut."""
    feature = rules.feature[node]
    members = None
    if rules.word[node] >= 0:
        members = unpack(rules.words, rules.word[node], int(rules.threshold[node]))
    return is_above(X, feature, rules.threshold[node], rules.missing_above[node], members)


def goes_top(rules: CutRules, rule: int, X: np.ndarray) -> np.ndarray:
    """Which rows of X a rule sends to the top child, row by row."""

    def to_top(node: Any, row: Any) -> Any:
        while rules.feature[node] >= 0:
            above = is_above_cut(rules, node, row[None])[0]
            node = node + 1 if above else rules.below[node]
        return rules.to_top[node]

    return np.array([to_top(rules.start[rule], row) for row in X], dtype=bool)


def masses(rows: Rows, taken: np.ndarray) -> tuple[float, float]:
    weight = rows.weight * taken
    return (weight * rows.positive).sum(), (weight * ~rows.positive).sum()


def cuts_of(
    column: np.ndarray, n_categories: int, mass: np.ndarray, least: float
) -> list[np.ndarray]:
    """Every way to cut a column: each a mask of the rows above.

    A category with less than the mass of a leaf goes with the missing.
    """
    missing = np.isnan(column)
    if n_categories:
        values = [v for v in np.unique(column[~missing]) if mass[column == v].sum() >= least]
        missing = ~np.isin(column, values)
        sets = chain.from_iterable(combinations(values, r) for r in range(1, len(values) + 1))
        above = [np.isin(column, chosen) for chosen in sets]
    else:
        above = [column > value for value in np.unique(column[~missing])]
        above += [~missing]
    return above + [mask | missing for mask in above]


def best_cut(
    rows: Rows, cell: np.ndarray, least: float
) -> tuple[float, np.ndarray] | tuple[float, None]:
    """The greatest |p N - n P| of all cuts with enough mass on both sides, and its mask."""
    total_p, total_n = masses(rows, cell)
    best, mask = -1.0, None
    for j in range(rows.X.shape[1]):
        mass = rows.weight * cell
        for above in cuts_of(rows.X[:, j], rows.n_categories[j], mass, least):
            p, n = masses(rows, cell & above)
            if min(p + n, total_p + total_n - p - n) >= least:
                gain = abs(p * total_n - n * total_p)
                if gain > best + 1e-12 * total_p * total_n:
                    best, mask = gain, above
    return best, mask


def leafrank(
    rows: Rows, cell: np.ndarray, max_depth: int, max_leaves: int, least: float
) -> tuple[float, np.ndarray] | tuple[float, None]:
    """Fig. 5: the mask of the rows that go to the top, and its Λ in masses; None where none gains."""
    leaves = [(cell, 0)]
    while len(leaves) < max_leaves:
        found = []
        for k, (leaf, depth) in enumerate(leaves):
            p, n = masses(rows, leaf)
            if depth < max_depth and min(p, n) > 0 and p + n >= 2 * least:
                gain, above = best_cut(rows, leaf, least)
                if above is not None:
                    found.append((gain, k, above))
        if not found:
            break
        _, k, above = max(found, key=lambda one: one[0])
        leaf, depth = leaves[k]
        leaves[k] = (leaf & above, depth + 1)
        leaves.append((leaf & ~above, depth + 1))
    return partition_rule(rows, cell, [leaf for leaf, _ in leaves])


def partition_rule(
    rows: Rows, cell: np.ndarray, leaves: list[np.ndarray]
) -> tuple[float, np.ndarray] | tuple[float, None]:
    """Fig. 4."""
    total_p, total_n = masses(rows, cell)

    def ratio(leaf: Any) -> Any:
        p, n = masses(rows, leaf)
        return p / n if n > 0 else np.inf

    leaves = sorted(leaves, key=ratio, reverse=True)
    best, top = 1e-12 * total_p * total_n, None
    for k in range(1, len(leaves)):
        union = np.logical_or.reduce(leaves[:k])
        p, n = masses(rows, union)
        if p * total_n - n * total_p > best:
            best, top = p * total_n - n * total_p, union
    return best, top


def treerank(
    rows: Rows, depth: int, max_depth: int, max_leaves: int, least: float
) -> tuple[list[np.ndarray], float]:
    """Fig. 2: the leaves from the top of the tree to its bottom, as masks, and Σ Λ."""

    def grow(cell: Any, left: Any) -> Any:
        p, n = masses(rows, cell)
        if left == 0 or min(p, n) == 0 or p + n < 2 * least:
            return [cell], 0.0
        gain, top = leafrank(rows, cell, max_depth, max_leaves, least)
        if top is None:
            return [cell], 0.0
        upper, gain_upper = grow(cell & top, left - 1)
        lower, gain_lower = grow(cell & ~top, left - 1)
        return upper + lower, gain + gain_upper + gain_lower

    everything = np.ones(len(rows.positive), dtype=bool)
    p, n = masses(rows, everything)
    leaves, gain = grow(everything, depth)
    return leaves, gain / (p * n)


def make_rows(
    n: int, d: int = 3, seed: int = 0, missing: float = 0.15, n_categories: int = 0, values: int = 6
) -> Rows:
    """Few values, so that ties within a column are many; odd weights, so that ties of gains are none."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (n, d)).astype(float)
    if n_categories:
        X[:, 0] = rng.integers(0, n_categories, n)
    positive = X[:, 0] + X[:, 1] * (X[:, 0] > 2) + rng.normal(0, 2, n) > values / 2
    positive[:2] = True, False
    X[rng.random(X.shape) < missing] = np.nan
    categories = np.zeros(d, dtype=np.int64)
    categories[0] = n_categories
    return Rows(X, positive, rng.uniform(0.5, 1.5, n), categories)
