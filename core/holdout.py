"""Holding rows out by their values: equal rows together, whatever the order of rows and columns."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.float64]
_Words = npt.NDArray[np.uint64]


def hold_out(
    X: Any, positive: npt.NDArray[np.bool_], weight: Floats, fraction: float, seed: int
) -> npt.NDArray[np.bool_] | None:
    """Hold out a share of each class's weight, equal rows together, of whichever class they are.

    A row's place in the draw follows from its values, with rows and columns in any order, and the
    seed; in a sparse matrix from its stored values and their columns.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.
    fraction : float
        Of each class's weight as much is held out, or a little less; at least one distinct row.
    seed : int

    Returns
    -------
    ndarray of shape (n_rows,), bool, or None
        Which rows are held out; None where a class has less than two distinct rows.

    Notes
    -----
    O(n_rows · n_features + n_rows log n_rows).
    """
    drawn = scramble_keys(row_keys(X, positive, weight), seed)
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


def row_keys(X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Give each row a key that follows from its values: equal rows have equal keys.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.

    Returns
    -------
    ndarray of shape (n_rows,), uint64
        The same with rows and columns in any order.
    """
    return _add_sparse(X) if sparse.issparse(X) else _add_columns(X, positive, weight)


def scramble_keys(keys: _Words, seed: int) -> _Words:
    """Draw a number below 2^64 for each key: uniform, equal for equal keys, and new with each seed."""
    return _scramble(keys + _scramble(np.full(1, seed, dtype=np.uint64)))


def column_keys(X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> _Words:
    """Give each column a key that follows from its values: equal columns have equal keys.

    Parameters
    ----------
    X : ndarray or scipy.sparse CSR of shape (n_rows, n_features), float64
    positive : ndarray of shape (n_rows,), bool
    weight : ndarray of shape (n_rows,), float64
        Above 0.

    Returns
    -------
    ndarray of shape (n_features,), uint64
        The same with rows and columns in any order; for a sparse matrix a column's key is its place.
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
