"""Monotone trees: the order of leaves that constraints require, and the best leaf values in that order.

A leaf is a box: an interval of each numeric feature, perhaps with the missing, and a set of categories of each
categorical one. Two rows that differ in one constrained feature alone lie in the same leaf, or in two leaves whose
regions overlap in all other features; the interval of one is then below that of the other. A tree keeps the constraints
if, and only if, for all such pairs of leaves the value of the upper one is not less: `order_leaves` returns the pairs.

Given the leaves, the best values in that order minimise the same loss as without it. In a leaf of masses a and b the
loss falls as the value grows as long as the value is below g(a/b), for some rising g. So the best values are g of the
isotonic regression of a/b with weights b (Robertson, Wright & Dykstra 1988, section 1.5). The order is partial; the
regression is found by dividing the leaves where the gain is greatest, each time by a maximum flow (Luss, Rosset &
Shahar 2012). No other values of these leaves that keep the constraints have a lower loss, and none are bounded by
leaves that they do not touch: this is what makes the constraints cheap.

References
----------
R. Luss, S. Rosset and M. Shahar, "Efficient regularized isotonic regression with application to gene-gene interaction
search", Annals of Applied Statistics 6(1), 2012.
T. Robertson, F. T. Wright and R. L. Dykstra, "Order restricted statistical inference", 1988.
R. van de Kamp, A. Feelders and N. Barile, "Isotonic classification trees", IDA 2009: monotone trees by new values for
their leaves.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.base.monotone import Directions, Violation
from core.base.ranker import Floats
from core.kernels import kernel

from .category_sets import Integers

Relation = npt.NDArray[np.bool_]
"""[a, b] is True if leaf b may not have less than leaf a. Shape (n_leaves, n_leaves), bool."""


class LeafRegions(NamedTuple):
    """The region (box) of feature space of each leaf of a tree, by the features that it splits on.

    categories: list of shape (n_leaves, n_categories), bool, or None; of a categorical feature the categories inside.
    """

    features: Integers
    """Shape (n_used,)."""
    low: Floats
    high: Floats
    """Of a numeric feature: low < x <= high. Shape (n_used, n_leaves)."""
    missing: npt.NDArray[np.bool_]
    """Whether a missing value lies inside. Shape (n_used, n_leaves)."""
    categories: list[npt.NDArray[np.bool_] | None]


def find_regions(
    splits: npt.NDArray[np.void], members: list[npt.NDArray[np.bool_] | None]
) -> LeafRegions:
    n_leaves = len(splits) + 1
    features, used = np.unique(splits["feature"], return_inverse=True)
    shape = len(features), n_leaves
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    missing = np.ones(shape, dtype=np.bool_)
    categories: list[npt.NDArray[np.bool_] | None] = [None] * len(features)
    for u, above in zip(used.tolist(), members, strict=True):
        if above is not None and categories[u] is None:
            categories[u] = np.ones((n_leaves, len(above)), dtype=np.bool_)
    rows = zip(
        used.tolist(),
        splits["leaf"].tolist(),
        splits["threshold"].tolist(),
        splits["missing_above"].tolist(),
        members,
        strict=True,
    )
    for s, (u, leaf, threshold, missing_above, above) in enumerate(rows):
        new = s + 1
        for bounds in (low, high, missing):
            bounds[:, new] = bounds[:, leaf]
        for of_feature in categories:
            if of_feature is not None:
                of_feature[new] = of_feature[leaf]
        missing[u, leaf] &= missing_above
        missing[u, new] &= not missing_above
        inside = categories[u]
        if above is None or inside is None:
            low[u, leaf] = max(low[u, leaf], threshold)
            high[u, new] = min(high[u, new], threshold)
        else:
            inside[leaf] &= above
            inside[new] &= ~above
    return LeafRegions(features, low, high, missing, categories)


def order_leaves(regions: LeafRegions, directions: Directions) -> Relation | None:
    """Return which leaves' values must be at least which others'; None if no constrained feature is split.

    O(n_leaves² · n_used).

    directions: (n_features,), int8.
    """
    signs = directions[regions.features]
    if not signs.any():
        return None
    n_leaves = regions.low.shape[1]
    n_apart = np.zeros(
        (n_leaves, n_leaves), dtype=np.int64
    )  # features in which two regions do not overlap
    overlaps: dict[int, npt.NDArray[np.bool_]] = {}
    for u, inside in enumerate(regions.categories):
        low, high, missing = regions.low[u], regions.high[u], regions.missing[u]
        if inside is None:
            overlap = np.maximum.outer(low, low) < np.minimum.outer(high, high)
        else:
            overlap = (inside.astype(np.float64) @ inside.T.astype(np.float64)) > 0.0
        overlap |= np.logical_and.outer(missing, missing)
        n_apart += ~overlap
        if signs[u]:
            overlaps[u] = overlap
    relation = np.zeros((n_leaves, n_leaves), dtype=np.bool_)
    for u, overlap in overlaps.items():
        low, high = regions.low[u], regions.high[u]
        known = low < high
        below = (n_apart == 1) & ~overlap & np.less_equal.outer(high, low)
        below &= np.logical_and.outer(known, known)
        relation |= below if signs[u] > 0 else below.T
    return relation


def find_falls(
    regions: LeafRegions,
    directions: Directions,
    values: Floats,
    n_features: int,
    limit: int,
) -> tuple[int, list[Violation]]:
    """Return the number of leaf pairs that constraints compare, and up to `limit` pairs that violate one.

    values: (n_leaves,); of the leaves.
    """
    n_compared = 0
    violations: list[Violation] = []
    for u in np.flatnonzero(directions[regions.features]).tolist():
        column = int(regions.features[u])
        alone = np.zeros_like(directions)
        alone[column] = directions[column]
        relation = order_leaves(regions, alone)
        assert relation is not None
        n_compared += int(relation.sum())
        broken = relation & (values[:, None] > values[None])
        for a, b in np.argwhere(broken)[: limit - len(violations)].tolist():
            first, second = (a, b) if directions[column] > 0 else (b, a)
            rows = _rows_of(regions, first, second, u, n_features)
            violations.append(
                Violation(column, float(rows[0, column]), float(rows[1, column]), rows)
            )
    return n_compared, violations


def _rows_of(regions: LeafRegions, first: int, second: int, along: int, n_features: int) -> Floats:
    """Return two rows, one per leaf, that differ in the feature `along` only; the first has the lower value."""
    rows = np.zeros((2, n_features))
    pair = [first, second]
    for u, feature in enumerate(regions.features.tolist()):
        low, high = regions.low[u, pair], regions.high[u, pair]
        inside = regions.categories[u]
        if u == along:
            rows[:, feature] = high[0], np.nextafter(low[1], np.inf)
        elif regions.missing[u, pair].all():
            rows[:, feature] = np.nan
        elif inside is not None:
            rows[:, feature] = np.flatnonzero(inside[first] & inside[second])[0]
        else:
            rows[:, feature] = _between(float(low.max()), float(high.min()))
    return rows


def _between(low: float, high: float) -> float:
    if np.isfinite(high):
        return high
    return float(np.nextafter(low, np.inf)) if np.isfinite(low) else 0.0


def pool_ratios(a: Floats, b: Floats, relation: Relation | None) -> Floats:
    """Return the best leaf value a / b of each leaf, or its isotonic regression with weights b if leaves are ordered.

    a, b: (n_leaves,); b is above 0.
    """
    ratios = a / b
    if relation is None or not (relation & (ratios[:, None] > ratios[None])).any():
        return ratios
    return np.asarray(_pool_ratios(a, b, _close(relation)))


def raise_values(values: Floats, relation: Relation) -> Floats:
    """Return the leaf values raised so that they obey the order exactly, undoing rounding errors.

    Of values that keep it but for rounding nothing else changes.
    """
    closed = _close(relation)
    order = np.argsort(closed.sum(axis=0), kind="stable")  # by the number of leaves below
    raised = values.copy()
    for leaf in order.tolist():
        below = closed[:, leaf]
        if below.any():
            raised[leaf] = max(raised[leaf], raised[below].max())
    return raised


@kernel(numba.void(numba.boolean[:, ::1]))
def _close_in_place(relation):  # type: ignore[no-untyped-def]
    """Replace a relation between leaves, (n, n) bool, by its transitive closure, in place."""
    n = len(relation)
    for k in range(n):
        for i in range(n):
            if relation[i, k]:
                for j in range(n):
                    relation[i, j] |= relation[k, j]


def _close(relation: Relation) -> Relation:
    closed = np.ascontiguousarray(relation).copy()
    _close_in_place(closed)
    np.fill_diagonal(closed, val=False)
    return closed


@kernel(
    numba.int64(
        numba.int64[::1],
        numba.float64[::1],
        numba.boolean[:, ::1],
        numba.float64,
        numba.boolean[::1],
    ),
    inner=True,
)
def _find_upper(leaves, net, closed, least, upper):  # type: ignore[no-untyped-def]
    """Mark the upper set of leaves with the greatest net sum, and return its size.

    closed: transitive; least: a flow below it counts as none. An upper set holds with a leaf all leaves above it.
    Leaves of positive net may be taken with those above them of negative net, which cost: a maximum flow from the
    former to the latter finds what pays.
    """
    k = len(leaves)
    left = np.empty(k)  # of the positive: what may still flow out; of the negative: into it
    flow = np.zeros((k, k))
    for i in range(k):
        left[i] = abs(net[i])
    parent = np.empty(k, dtype=np.int64)
    queue = np.empty(k, dtype=np.int64)
    while True:
        n = 0
        for i in range(k):
            parent[i] = -1
            if net[i] > 0.0 and left[i] > least:
                parent[i] = i
                queue[n] = i
                n += 1
        end, head = -1, 0
        while head < n and end < 0:
            i = queue[head]
            head += 1
            for j in range(k):
                if parent[j] >= 0:
                    continue
                if net[i] > 0.0:
                    reaches = net[j] <= 0.0 and closed[leaves[i], leaves[j]]
                else:
                    reaches = net[j] > 0.0 and flow[j, i] > least
                if reaches:
                    parent[j] = i
                    queue[n] = j
                    n += 1
                    if net[j] <= 0.0 and left[j] > least:
                        end = j
                        break
        if end < 0:
            break
        amount = left[end]
        j = end
        while parent[j] != j:
            i = parent[j]
            if net[i] <= 0.0:
                amount = min(amount, flow[j, i])
            j = i
        amount = min(amount, left[j])
        left[j] -= amount
        left[end] -= amount
        j = end
        while parent[j] != j:
            i = parent[j]
            if net[i] > 0.0:
                flow[i, j] += amount
            else:
                flow[j, i] -= amount
            j = i
    size = 0
    for i in range(k):
        upper[i] = parent[i] >= 0
    # A leaf of net 0 is taken if it has to be: above a leaf that is taken.
    for i in range(k):
        if upper[i]:
            for j in range(k):
                if closed[leaves[i], leaves[j]]:
                    upper[j] = True
    for i in range(k):
        size += upper[i]
    return size


@kernel(numba.float64[::1](numba.float64[::1], numba.float64[::1], numba.boolean[:, ::1]))
def _pool_ratios(a, b, closed):  # type: ignore[no-untyped-def]
    """Return the isotonic regression of a / b with weights b, (n,) float64, under the partial order `closed`."""
    n = len(a)
    pooled = np.empty(n)
    leaves = np.arange(n)
    upper = np.empty(n, dtype=np.bool_)
    net = np.empty(n)
    starts, stops = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    starts[0], stops[0] = 0, n
    n_waiting = 1
    divided = np.empty(n, dtype=np.int64)
    while n_waiting > 0:
        n_waiting -= 1
        start, stop = starts[n_waiting], stops[n_waiting]
        sum_a = sum_b = 0.0
        for i in range(start, stop):
            sum_a += a[leaves[i]]
            sum_b += b[leaves[i]]
        mean = sum_a / sum_b
        size = 0.0
        for i in range(start, stop):
            leaf = leaves[i]
            net[i] = a[leaf] - mean * b[leaf]
            size += abs(a[leaf]) + abs(mean * b[leaf])
        n_upper = _find_upper(
            leaves[start:stop], net[start:stop], closed, 1e-14 * size, upper[start:stop]
        )
        gain = 0.0
        for i in range(start, stop):
            if upper[i]:
                gain += net[i]
        if n_upper == 0 or n_upper == stop - start or gain <= 1e-12 * size:
            for i in range(start, stop):
                pooled[leaves[i]] = mean
            continue
        low, high = start, stop - n_upper
        for i in range(start, stop):
            if upper[i]:
                divided[high] = leaves[i]
                high += 1
            else:
                divided[low] = leaves[i]
                low += 1
        for i in range(start, stop):
            leaves[i] = divided[i]
        middle = stop - n_upper
        starts[n_waiting], stops[n_waiting] = start, middle
        starts[n_waiting + 1], stops[n_waiting + 1] = middle, stop
        n_waiting += 2
    return pooled
