"""Every split of rows: parts held out, folds, and what is drawn by the rows' values or by their places.

Rows of a group, or without groups equal rows, are never parted. By value, whatever the order of rows and columns:
`hold_out`, `split_rows`. By place, what belongs together shuffled and dealt out: `draw_part`, `draw_folds`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.errors import InvalidData, InvalidParameter

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_Words = npt.NDArray[np.uint64]

MIN_DISTINCT_ROWS, ROWS_OF_A_KIND = 30, 10
"""With fewer distinct rows, and so many of each on average, equal ones are no copies but of the same kind: held out
together, they would take all that is known of their kind with them. They are parted."""

MAX_DRAWS = 10
"""Of a part, where units of several rows leave it, or the rest, without a class."""


def hold_out(
    X: Any,
    positive: npt.NDArray[np.bool_],
    weight: Floats,
    fraction: float,
    seed: int,
    group: _Words | None = None,
) -> npt.NDArray[np.bool_] | None:
    """Hold out a share of each class's weight, equal rows together, of whichever class they are; or rows of a group.

    A row's place in the draw follows from its values, with rows and columns in any order, and the
    seed; in a sparse matrix from its stored values and their columns.

    O(n_rows · n_features + n_rows log n_rows). Returns ndarray of shape (n_rows,), bool, or None: which rows are held
    out; None where a class has less than two distinct rows.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    fraction : float
        Of each class's weight as much is held out, or a little less; at least one distinct row.
    group : ndarray of shape (n_rows,), uint64, optional
        Rows with equal values are never parted, in place of equal rows.
    """
    drawn = scramble_keys(row_keys(X, positive, weight) if group is None else group, seed)
    held = np.zeros(len(drawn), dtype=np.bool_)
    classes = np.flatnonzero(positive), np.flatnonzero(~positive)
    for rows in classes:
        values, place = np.unique(drawn[rows], return_inverse=True)
        if len(values) < 2:
            return None
        mass = np.cumsum(np.bincount(place, weights=weight[rows]))
        n_held = np.searchsorted(mass, fraction * mass[-1] * (1.0 + 1e-9), side="right")
        held[rows] = place < min(max(int(n_held), 1), len(values) - 1)
    # The two draws end at two places: rows between them, of both classes, stay with what is learnt from.
    held &= ~np.isin(drawn, np.intersect1d(drawn[held], drawn[~held]))
    for rows in classes:
        if held[rows].any():
            continue
        for value in np.unique(
            drawn[rows]
        ):  # the second does if the first is all that a class has left
            more = held | (drawn == value)
            if not any(more[own].all() for own in classes):
                held = more
                break
    return held


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
    """Part the rows into folds, or hold one part out; stratified, with what belongs together on one side.

    InvalidData: a split would leave a side without one of the classes. InvalidParameter: n_splits is below 1, or
    fraction is not between 0 and 1. Returns list of ndarray of shape (n_rows,), bool: which rows each split holds out.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    n_splits : int
        1 holds a part out; more are so many folds, each held out once.
    fraction : float in (0, 1), default=0.25
        Share of the rows that is held out where n_splits is 1.
    group : ndarray of shape (n_rows,), uint64, optional
        Rows with equal values are never parted. Without groups equal rows are not, unless they are of a few kinds:
        see `MIN_DISTINCT_ROWS`.

    Notes
    -----
    Groups with a positive row and groups without one are put in random order, and cut where the running share
    of their rows (of their positive ones) passes a fold's. The draw depends on the rows' values and the
    seed alone, not on their order. O(n_rows · n_features + n_rows log n_rows).
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
    place = np.empty(len(units))
    for stratum, mass in ((positives > 0, positives), (positives == 0, sizes)):
        own = mass[stratum]
        place[stratum] = (np.cumsum(own) - 0.5 * own) / max(own.sum(), 1.0)
    if n_splits == 1:
        folds = [place < fraction]
    else:
        number = np.minimum((place * n_splits).astype(np.int64), n_splits - 1)
        folds = [number == k for k in range(n_splits)]
    splits = [fold[unit] for fold in folds]
    for held in splits:
        for side, rows in (("held out", held), ("learnt from", ~held)):
            if not (positive[rows].any() and (~positive[rows]).any()):
                raise InvalidData(
                    f"of {n_splits} inner splits one has no rows of a class that are {side}: "
                    "give more rows of it, in more groups where there are groups, or ask for fewer splits"
                )
    return splits


def number_inseparable(
    X: Any, positive: npt.NDArray[np.bool_], weight: Floats, group: _Words | None = None
) -> Integers | None:
    """Number what is never parted: the rows of a group, or without groups equal rows, in the order in which they come.

    O(n_rows · n_features + n_rows log n_rows). Returns ndarray of shape (n_rows,), int64, or None where each row may go
    its own way: no two belong together, or there are no groups and rows are of a few kinds: see `MIN_DISTINCT_ROWS`.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,) or (n_rows, n_labels), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    group : ndarray of shape (n_rows,), uint64, optional
    """
    keys = group
    if keys is None:
        keys = row_keys(X, positive if positive.ndim == 1 else np.zeros(len(weight), bool), weight)
    n_units = count_distinct(keys)
    if n_units == len(keys) or (group is None and _are_kinds(n_units, len(keys))):
        return None
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    number = np.empty(n_units, dtype=np.int64)
    number[np.argsort(first)] = np.arange(n_units)
    return np.asarray(number[place])


def has_few_kinds(keys: _Words) -> bool:
    """Whether there are so few distinct rows, of these keys, that equal ones are of a kind: see `MIN_DISTINCT_ROWS`."""
    first = keys[: 100 * MIN_DISTINCT_ROWS]  # mostly they tell
    if count_distinct(first) >= MIN_DISTINCT_ROWS:
        return False
    return _are_kinds(count_distinct(keys), len(keys))


def _are_kinds(n_distinct: int, n_rows: int) -> bool:
    return n_distinct < MIN_DISTINCT_ROWS and n_rows >= ROWS_OF_A_KIND * n_distinct


def part_kinds(keys: _Words, positive: npt.NDArray[np.bool_], weight: Floats | None) -> _Words:
    """Give equal rows keys of their own, the same with rows in any order: of those that are equal in all, by number."""
    same = (positive, keys) if weight is None else (weight, positive, keys)
    order = np.lexsort(same)
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    number = np.empty(len(keys), dtype=np.uint64)
    number[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    return keys ^ _scramble(number)


def count_distinct(keys: _Words) -> int:
    """Count the distinct keys; O(n_rows log n_rows)."""
    ascending = np.sort(keys)
    return 1 + int(np.count_nonzero(ascending[1:] != ascending[:-1]))


def draw_folds(
    positive: npt.NDArray[np.bool_], n_folds: int, seed: int, unit: Integers | None = None
) -> Integers:
    """Deal the rows of each class out to folds of equal size, at random; rows of a unit to the same.

    Returns ndarray of shape (n_rows,), int64: the fold of each row.

    Parameters
    ----------
    positive : ndarray of shape (n_rows,), bool
    unit : ndarray of shape (n_rows,), int64, optional
        From `number_inseparable`: those with a positive row, and those without, are dealt out in turn.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    strata = _strata(positive, unit)
    fold = np.empty(sum(len(members) for members, _ in strata), dtype=np.int64)
    for members, _ in strata:
        fold[rng.permutation(members)] = np.arange(len(members)) % n_folds
    return fold if unit is None else fold[unit]


def draw_part(
    positive: npt.NDArray[np.bool_], fraction: float, seed: int, unit: Integers | None = None
) -> npt.NDArray[np.bool_] | None:
    """Draw a share of the rows of each class; of all rows together where they have several labels.

    Returns ndarray of shape (n_rows,), bool, or None: which rows are drawn; None where rows of a class, those drawn or
    the others, would be lacking.

    Parameters
    ----------
    positive : ndarray of shape (n_rows,) or (n_rows, n_labels), bool
    fraction : float
        At least one row is drawn, and not all.
    unit : ndarray of shape (n_rows,), int64, optional
        From `number_inseparable`: whole units are drawn, of those with a positive row as many as come nearest to the
        share of the positive rows, of the others to that of theirs.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    strata = _strata(positive, unit)
    classes = [positive, ~positive] if positive.ndim == 1 else [np.ones(len(positive), np.bool_)]
    for _ in range(1 if unit is None else MAX_DRAWS):
        drawn = np.zeros(sum(len(members) for members, _ in strata), dtype=np.bool_)
        for members, mass in strata:
            if len(members) < 2:
                continue
            order = rng.permutation(len(members))
            wanted = min(max(round(fraction * int(mass.sum())), 1), int(mass.sum()) - 1)
            n_drawn = 1 + int(np.argmin(np.abs(np.cumsum(mass[order][:-1]) - wanted)))
            drawn[members[order[:n_drawn]]] = True
        rows = drawn if unit is None else drawn[unit]
        if all(rows[own].any() and not rows[own].all() for own in classes):
            return rows
    return None


def _strata(
    positive: npt.NDArray[np.bool_], unit: Integers | None
) -> list[tuple[Integers, Integers]]:
    """Part units, or rows, into those with a positive row and those without; with the rows of each that count."""
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


def draw_share(rows: Integers, fraction: float, rng: np.random.Generator) -> Integers:
    """Draw a share of two rows or more: at least one, and not all."""
    n_drawn = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
    return rng.permutation(rows)[:n_drawn]


def row_keys(X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Give each row a key that follows from its values: equal rows have equal keys.

    Returns ndarray of shape (n_rows,), uint64: the same with rows and columns in any order.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    """
    return _add_sparse(X) if sparse.issparse(X) else _add_columns(X, positive, weight)


def scramble_keys(keys: _Words, seed: int) -> _Words:
    """Draw a number below 2^64 for each key: uniform, equal for equal keys, and new with each seed."""
    return _scramble(keys + _scramble(np.full(1, seed, dtype=np.uint64)))


def column_keys(X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Give each column a key that follows from its values: equal columns have equal keys.

    Returns ndarray of shape (n_features,), uint64: the same with rows and columns in any order; for a sparse matrix a
    column's key is its place.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    """
    if sparse.issparse(X):
        return _scramble(np.arange(X.shape[1], dtype=np.uint64))
    mass = _masses(positive, weight)
    sums = [(mass * _scramble(_words(column))).sum(dtype=np.uint64) for column in X.T]
    return _scramble(np.array(sums, dtype=np.uint64))


def _add_columns(X: Floats, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Sum the scrambled values of each row; a column is told from others by what it holds, not by where it stands."""
    mass = _masses(positive, weight)
    sums = np.zeros(len(mass), dtype=np.uint64)
    for column in X.T:
        words = _scramble(_words(column))
        sums += _scramble(words + (mass * words).sum(dtype=np.uint64))
    return sums


def _masses(positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Give rows' weights as whole numbers, so that a row of weight k adds as k rows; times 3 in one class."""
    mass = np.floor(weight * 2.0**16)
    if not 2.0**16 <= mass.max() < 2.0**63:
        mass = np.floor(weight / weight.max() * 2.0**52)
    return mass.astype(np.uint64) * np.where(positive, np.uint64(3), np.uint64(1))


def _add_sparse(X: Any) -> _Words:
    """Sum the scrambled stored values of each row, each with its column."""
    words = _scramble(_words(X.data) + _scramble(X.indices.astype(np.uint64)))
    words[X.data == 0.0] = 0  # a stored zero is a zero
    ends = np.append(np.zeros(1, dtype=np.uint64), np.cumsum(words, dtype=np.uint64))
    return np.asarray(ends[X.indptr[1:]] - ends[X.indptr[:-1]])


def _words(values: Floats) -> _Words:
    plain = np.where(np.isnan(values), np.nan, values + 0.0)  # one NaN, and no -0
    return np.asarray(plain.view(np.uint64))


def _scramble(words: _Words) -> _Words:
    """Scramble by splitmix64 (Steele, Lea & Flood 2014)."""
    z = words + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
