"""All splits of rows into training and validation parts or folds.

Rows of a group or, without groups, equal rows are never separated. `hold_out` and `split_rows` draw by the values of
the rows, so that the order of rows and columns does not matter. `draw_part` and `draw_folds` draw by the indices of the
rows.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.errors import InvalidData, InvalidParameter

from .columns import MIN_DISTINCT_ROWS, ROWS_AT_ONCE, ColumnTable, are_kinds

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

# Distance of successive states of splitmix64: 2^64 over the golden ratio.
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)

MAX_DRAWS = 10
"""Attempts to draw a part, as with units of several rows the part, or the rest, may lack a class."""


def hold_out(
    X: Any,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    fraction: float,
    seed: int,
    group: _Words | None = None,
) -> npt.NDArray[np.bool_] | None:
    """Return the mask of a validation part: a fraction of each class's weight, with equal rows (or groups) together.

    Whether a row is drawn depends on its values and the seed, not on the order of rows and columns; in a sparse matrix
    on its stored values and their columns.

    O(n_rows · n_features + n_rows log n_rows). Returns ndarray of shape (n_rows,), bool, or None if a class has fewer
    than two distinct rows.

    fraction: this fraction of each class's weight is held out, or a little less; at least one distinct row.
    group: (n_rows,), uint64; rows with equal values are never separated, in place of equal rows.
    """
    drawn = scramble_keys(row_keys(X, positive, weight) if group is None else group, seed)
    validation_mask = np.zeros(len(drawn), dtype=np.bool_)
    classes = np.flatnonzero(positive), np.flatnonzero(~positive)
    for rows in classes:
        values, index = np.unique(drawn[rows], return_inverse=True)
        if len(values) < 2:
            return None
        mass = np.cumsum(np.bincount(index, weights=weight[rows]))
        n_held = np.searchsorted(mass, fraction * mass[-1] * (1.0 + 1e-9), side="right")
        validation_mask[rows] = index < min(max(int(n_held), 1), len(values) - 1)
    # Equal rows of both classes, or rows of a group, may be on both sides now: they all go to the training part.
    on_both = np.intersect1d(drawn[validation_mask], drawn[~validation_mask])
    validation_mask &= ~np.isin(drawn, on_both)
    for rows in classes:
        if validation_mask[rows].any():
            continue
        for value in np.unique(
            drawn[rows]
        ):  # the second part does, if the first has all remaining rows of a class
            more = validation_mask | (drawn == value)
            if not any(more[own].all() for own in classes):
                validation_mask = more
                break
    return validation_mask


def split_rows(
    X: Floats,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    n_splits: int,
    *,
    fraction: float = 0.25,
    group: npt.NDArray[np.uint64] | None = None,
    seed: int = 0,
) -> list[npt.NDArray[np.bool_]]:
    """Return the mask of held-out rows of each split: folds, or one validation part; stratified by class.

    InvalidData: a split would leave a side without one of the classes. InvalidParameter: n_splits is below 1, or
    fraction is not between 0 and 1. Returns list of ndarray of shape (n_rows,), bool, one per split.

    n_splits: 1: one validation part. From 2 on: the number of folds, each held out once.
    fraction: float in (0, 1), default=0.25; fraction of the rows that is held out if n_splits is 1.
    group: (n_rows,), uint64; rows with equal values are never separated. Without groups equal rows are not, unless
        there are few kinds of rows: see `MIN_DISTINCT_ROWS`.

    Groups with a positive row are put in random order and cut into folds of about equal numbers of positive rows;
    groups without one into folds of about equal numbers of rows. The draw depends on the rows' values and the seed, not
    on the order of the rows. O(n_rows · n_features + n_rows log n_rows).
    """
    if n_splits < 1:
        raise InvalidParameter(f"n_splits must be at least 1, got {n_splits}")
    if not 0.0 < fraction < 1.0:
        raise InvalidParameter(f"fraction must be between 0 and 1, got {fraction}")
    keys = group
    if keys is None:
        keys = row_keys(X, positive, weight)
        keys = part_kinds(keys, positive, weight) if has_few_kinds(keys) else keys
    keys = scramble_keys(keys, seed)
    units, unit = np.unique(keys, return_inverse=True)  # ascending keys are a random order
    positives = np.bincount(unit, weights=positive, minlength=len(units))
    sizes = np.bincount(unit, minlength=len(units)).astype(np.float64)
    number = np.empty(len(units), dtype=np.int64)
    for stratum, mass in ((positives > 0, positives), (positives == 0, sizes)):
        own = mass[stratum].astype(np.int64)
        if n_splits == 1:
            position = (np.cumsum(own) - 0.5 * own) / max(
                own.sum(), 1
            )  # in (0, 1): the unit's middle
            number[stratum] = position >= fraction
        else:
            number[stratum] = even_parts(own, n_splits)
    splits = [(number == k)[unit] for k in range(n_splits)]
    for validation_mask in splits:
        for side, rows in (("held out", validation_mask), ("learnt from", ~validation_mask)):
            if not (positive[rows].any() and (~positive[rows]).any()):
                raise InvalidData(
                    f"one of the {n_splits} inner splits has no rows of a class that are {side}: use more rows of "
                    "that class (in more groups, if there are groups) or fewer splits"
                )
    return splits


def even_parts(mass: npt.NDArray[np.integer[Any]], n_parts: int) -> Integers:
    """Divide a sequence of units (row sets) into consecutive parts of about equal weight; return each unit's part.

    Returns the part of each unit, ascending from 0, ndarray of shape (n_units,), int64. If there are as many units as
    parts no part is empty, however large one unit is.

    mass: (n_units,), int; above 0.
    n_parts: at least 1.
    """
    n_units = len(mass)
    if not n_units:
        return np.empty(0, dtype=np.int64)
    ends = np.cumsum(mass, dtype=np.int64)
    parts: Integers = (2 * ends - mass) * n_parts // (2 * ends[-1])
    n_filled = 1 + np.count_nonzero(parts[1:] != parts[:-1])
    if n_filled == n_parts or n_units < n_parts:
        return parts
    # A unit goes at most one part beyond the unit before it, and leaves a unit for each part that comes after.
    order = np.arange(n_units)
    parts[0] = 0
    parts = np.minimum.accumulate(parts - order) + order
    return np.maximum(parts, order + n_parts - n_units)


def number_inseparable(
    X: Any, positive: npt.NDArray[np.bool_], weight: Floats, group: _Words | None = None
) -> Integers | None:
    """Return the unit of each row: rows of a group, or equal rows, form a unit that no split separates.

    O(n_rows · n_features + n_rows log n_rows). Returns ndarray of shape (n_rows,), int64, numbered by first occurrence;
    or None if every row is a unit of its own, or if there are few kinds of rows and no groups: see `MIN_DISTINCT_ROWS`.

    group: (n_rows,), uint64.
    """
    keys = group
    if keys is None:
        keys = row_keys(X, positive if positive.ndim == 1 else np.zeros(len(weight), bool), weight)
    n_units = count_distinct(keys)
    if n_units == len(keys) or (group is None and are_kinds(n_units, len(keys))):
        return None
    order, starts = sort_keys(keys)
    is_first = np.zeros(len(keys), dtype=np.bool_)
    first = order[starts]
    is_first[first] = True
    number = (np.cumsum(is_first, dtype=np.int64) - 1)[first]
    unit: Integers = np.empty(len(keys), dtype=np.int64)
    unit[order] = np.repeat(number, np.diff(starts, append=len(keys)))
    return unit


def join_units(group: _Words | None, query: _Words | None) -> _Words | None:
    """Return groups that merge the given groups and queries where they share rows; None if both are None.

    Rows are in one group if a chain of rows leads from one to the other, each with the group or the query of the one
    before. O(n_rows).
    """
    if group is None or query is None:
        return query if group is None else group
    from scipy.sparse.csgraph import connected_components

    units = [np.unique(each, return_inverse=True)[1] for each in (group, query)]
    n_groups, n_queries = (int(unit.max()) + 1 for unit in units)
    links = sparse.coo_array(
        (np.ones(len(group), dtype=np.bool_), (units[0], n_groups + units[1])),
        shape=(n_groups + n_queries,) * 2,
    )
    _, component = connected_components(links, directed=False)
    return np.asarray(component[units[0]], dtype=np.uint64)


def has_few_kinds(keys: _Words) -> bool:
    """Return True if distinct rows are so few that equal rows need not stay together; see `MIN_DISTINCT_ROWS`."""
    first = keys[: 100 * MIN_DISTINCT_ROWS]  # in most tables these rows are enough to know
    if count_distinct(first) >= MIN_DISTINCT_ROWS:
        return False
    return are_kinds(count_distinct(keys), len(keys))


def part_kinds(keys: _Words, positive: npt.NDArray[np.bool_], weight: Floats | None) -> _Words:
    """Return keys that differ even for equal rows, independent of the order of distinct rows."""
    same = (positive, keys) if weight is None else (weight, positive, keys)
    order = np.lexsort(same)
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    number = np.empty(len(keys), dtype=np.uint64)
    number[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    return keys ^ splitmix64(number)


def sort_keys(keys: _Words) -> tuple[npt.NDArray[np.uint32], Integers]:
    """Sort keys stably, by first bytes, then within each: 4 bytes a row; returns also each distinct key's start."""
    order = np.empty(len(keys), dtype=np.uint32)
    is_start = np.empty(len(keys), dtype=np.bool_)
    first_byte = np.empty(len(keys), dtype=np.uint8)
    place = np.zeros(256, dtype=np.int64)
    runs = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(keys), ROWS_AT_ONCE)]
    for run in runs:
        first_byte[run] = keys[run] >> np.uint64(56)
        place += np.bincount(first_byte[run], minlength=256)
    ends = np.cumsum(place)
    place = ends - place
    for run in runs:
        n_rows = np.bincount(first_byte[run], minlength=256)
        before = np.cumsum(n_rows) - n_rows
        rows = np.argsort(first_byte[run], kind="stable")
        order[np.repeat(place - before, n_rows) + np.arange(len(rows))] = run.start + rows
        place += n_rows
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        part = order[start:end]
        part = part[np.argsort(keys[part], kind="stable")]
        order[start:end], ascending = part, keys[part]
        is_start[start:end] = np.append(True, ascending[1:] != ascending[:-1])[: end - start]
    return order, np.flatnonzero(is_start)


def count_distinct(keys: _Words) -> int:
    ascending = np.sort(keys)
    return 1 + int(np.count_nonzero(ascending[1:] != ascending[:-1]))


def draw_folds(
    positive: npt.NDArray[np.bool_], n_folds: int, seed: int, unit: Integers | None = None
) -> Integers:
    """Return a random fold of each row; units (`number_inseparable`) with and without a positive are spread evenly."""
    rng = np.random.Generator(np.random.Philox(seed))
    strata = _strata(positive, unit)
    fold = np.empty(sum(len(members) for members, _ in strata), dtype=np.int64)
    for members, _ in strata:
        fold[rng.permutation(members)] = np.arange(len(members)) % n_folds
    return fold if unit is None else fold[unit]


def draw_part(
    positive: npt.NDArray[np.bool_], fraction: float, seed: int, unit: Integers | None = None
) -> npt.NDArray[np.bool_] | None:
    """Return a random mask with a fraction of each class's rows; of all rows together for several labels.

    Returns ndarray of shape (n_rows,), bool: which rows are drawn. None if the drawn rows, or the others, would have no
    row of a class.

    fraction: at least one row is drawn, and not all.
    unit: (n_rows,), int64; from `number_inseparable`. Whole units are drawn: of those with a positive row as many as
        come nearest to the fraction of the positive rows, of the others as many as come nearest to the fraction of
        their rows.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    classes = [positive, ~positive] if positive.ndim == 1 else [np.ones(len(positive), np.bool_)]
    if unit is None:
        return _draw_rows(classes, fraction, rng)
    strata = _strata(positive, unit)
    for _ in range(MAX_DRAWS):
        drawn = np.zeros(sum(len(members) for members, _ in strata), dtype=np.bool_)
        for members, mass in strata:
            if len(members) < 2:
                continue
            order = rng.permutation(len(members))
            wanted = min(max(round(fraction * int(mass.sum())), 1), int(mass.sum()) - 1)
            n_drawn = 1 + int(np.argmin(np.abs(np.cumsum(mass[order][:-1]) - wanted)))
            drawn[members[order[:n_drawn]]] = True
        rows = drawn[unit]
        if all(rows[own].any() and not rows[own].all() for own in classes):
            return rows
    return None


def _draw_rows(
    classes: list[npt.NDArray[np.bool_]], fraction: float, rng: np.random.Generator
) -> npt.NDArray[np.bool_] | None:
    drawn = np.zeros(len(classes[0]), dtype=np.bool_)
    for own in classes:
        n_rows = int(np.count_nonzero(own))
        if n_rows < 2:
            return None
        order = np.arange(n_rows, dtype=np.uint32)
        rng.shuffle(order)
        flags = np.zeros(n_rows, dtype=np.bool_)
        flags[order[: min(max(round(fraction * n_rows), 1), n_rows - 1)]] = True
        drawn[own] = flags
    return drawn


def _strata(
    positive: npt.NDArray[np.bool_], unit: Integers | None
) -> list[tuple[Integers, Integers]]:
    """Divide the units into those with a positive row and the others; the parts and folds of both are drawn separately.

    Each stratum is (units, sizes). The size of a unit is its number of positive rows in the first stratum and of all
    rows in the second. Without `unit` each row is a unit. With several labels, one stratum has all units.
    """
    if positive.ndim > 1:
        sizes = np.ones(len(positive), dtype=np.int64) if unit is None else np.bincount(unit)
        return [(np.arange(len(sizes)), sizes)]
    if unit is None:
        rows = np.flatnonzero(positive), np.flatnonzero(~positive)
        return [(own, np.ones(len(own), dtype=np.int64)) for own in rows]
    sizes = np.bincount(unit)
    positives = np.bincount(unit[positive], minlength=len(sizes))
    has, has_not = np.flatnonzero(positives), np.flatnonzero(positives == 0)
    return [(has, positives[has]), (has_not, sizes[has_not])]


def draw_fraction(rows: Integers, fraction: float, rng: np.random.Generator) -> Integers:
    """Return a random fraction of two or more rows: at least one of them, and not all."""
    n_drawn = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
    return rng.permutation(rows)[:n_drawn]


def row_keys(X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Hash each row's values to 64 bits: equal rows have equal keys, whatever the order of rows and columns."""
    return _add_sparse(X) if sparse.issparse(X) else _add_columns(X, positive, weight)


def draw_spread(n: int, n_drawn: int, seed: int) -> Integers:
    """Return ascending indices below n, drawn at random: one of each of `n_drawn` runs of equal length.

    Every k-th index would do for rows in a random order, but tables may alternate: a buyer, a seller, a buyer.
    """
    ends = np.arange(n_drawn + 1, dtype=np.int64) * n // max(n_drawn, 1)
    sizes = np.diff(ends)
    bits = scramble_keys(np.arange(n_drawn, dtype=np.uint64), seed) >> np.uint64(11)
    return ends[:-1] + (bits * 2.0**-53 * sizes).astype(np.int64)


def scramble_keys(keys: _Words, seed: int) -> _Words:
    """Return a pseudo-random 64-bit number for each key, determined by key and seed."""
    return splitmix64(keys + splitmix64(np.full(1, seed, dtype=np.uint64)))


def column_keys(X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Hash each column's values to 64 bits, whatever the order of rows and columns; of a sparse matrix its index."""
    if sparse.issparse(X):
        return splitmix64(np.arange(X.shape[1], dtype=np.uint64))
    mass = _masses(positive, weight, float(weight.max()))
    sums = [(mass * splitmix64(_words(column))).sum(dtype=np.uint64) for column in X.T]
    return splitmix64(np.array(sums, dtype=np.uint64))


def _add_columns(
    X: Floats | ColumnTable, positive: npt.NDArray[np.bool_], weight: Floats
) -> _Words:
    """Sum each row's hashed values; a column is identified by its values, not by its index."""
    is_stored, heaviest = isinstance(X, ColumnTable), float(weight.max())
    mass = None if is_stored else _masses(positive, weight, heaviest)
    sums = np.zeros(len(positive), dtype=np.uint64)
    runs = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(sums), ROWS_AT_ONCE)]
    for column in X.columns() if isinstance(X, ColumnTable) else X.T:
        of_column = np.zeros(1, dtype=np.uint64)
        for (
            run
        ) in runs:  # neither masses nor scrambled words are kept: each would take eight bytes a row
            own = _masses(positive[run], weight[run], heaviest) if mass is None else mass[run]
            of_column += (own * splitmix64(_words(column[run]))).sum(dtype=np.uint64)
        for run in runs:
            sums[run] += splitmix64(splitmix64(_words(column[run])) + of_column)
    return sums


def _masses(positive: npt.NDArray[np.bool_], weight: Floats, heaviest: float) -> _Words:
    """Convert weights to integers, times 3 for one class, so that a row of weight k hashes as k rows.

    heaviest: the greatest weight of all rows, of which these may be some.
    """
    if 2.0**16 <= np.floor(heaviest * 2.0**16) < 2.0**63:
        mass = np.floor(weight * 2.0**16)
    else:
        mass = np.floor(weight / heaviest * 2.0**52)
    return mass.astype(np.uint64) * np.where(positive, np.uint64(3), np.uint64(1))


def _add_sparse(X: Any) -> _Words:
    words = splitmix64(_words(X.data) + splitmix64(X.indices.astype(np.uint64)))
    words[X.data == 0.0] = 0  # a stored zero is a zero
    ends = np.append(np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64))
    return np.asarray(ends[X.indptr[1:]] - ends[X.indptr[:-1]])


def _words(values: Floats) -> _Words:
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, and no -0
    return np.asarray(plain.view(np.uint64))


def splitmix64(words: _Words) -> _Words:
    """Return the splitmix64 hash of each word (Steele, Lea & Flood 2014); also used inside kernels."""
    z = words + GOLDEN_GAMMA
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
