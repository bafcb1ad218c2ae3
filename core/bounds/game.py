"""The best margin ρ of any combination of weak rankers, by linear programming.

Two players: one mixes weak rankers (λ), the other mixes pairs (d). Rows of M are pairs, columns weak
rankers, and M_pj = h_j(x_i) - h_j(x_k):

    ρ = max_λ min_p (Mλ)_p = min_d max_j (dᵀM)_j

Any λ gives a margin at most ρ, and any d an edge at least ρ: the two together are a certificate that
needs no trust in the solver. For two classes the pairs need no list: the least margin is the least
score of a positive less the greatest of a negative, one inequality per row, and its dual weighs
rows, u on positives and v on negatives, with d_ik = u_i v_k.

`makes_progress` returns the rounds in which smooth margin ranking is proven to come closer to ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Ge

from core.base.parameters import check_items, check_value
from core.base.target import as_numbers, as_table
from core.coding import fit_bins, missing_code
from core.errors import InvalidData
from core.metrics.groups import check_weights
from core.metrics.margins import max_tied_mass

Floats = npt.NDArray[np.float64]

MAX_CELLS = 1_000_000
"""Rows × weak rankers of the largest linear program that is solved: it takes seconds."""


class Unsolved(ArithmeticError):
    """The solver gave up on the linear program for numerical reasons.

    Examples
    --------
    >>> from core.bounds import Unsolved
    >>> issubclass(Unsolved, ArithmeticError)
    True
    """


@dataclass(frozen=True, eq=False)
class BestMargin:
    """The best margin ρ, with lower and upper bounds that you can recompute from the weights.

    Examples
    --------
    >>> from core.bounds import best_margin
    >>> found = best_margin([[1, 0], [0, 1]])
    >>> found.weights, round(found.rho, 6)
    (array([0.5, 0.5]), 0.5)
    """

    weights: Floats
    """λ, not negative, with the sum 1. Shape (n_weak_rankers,)."""
    pair_weights: tuple[Floats, ...]
    """The adversary's d. One array over pairs; or, for two classes, (u, v) over positives and over negatives, each with
    the sum 1, where the pair (i, k) has the weight u_i v_k."""
    margin: float
    """Minimum margin under `weights`: at most ρ."""
    edge: float
    """Maximum edge d+ - d- of a weak ranker under `pair_weights`: at least ρ."""

    @property
    def rho(self) -> float:
        """Mean of both bounds."""
        return (self.margin + self.edge) / 2

    @property
    def gap(self) -> float:
        """Upper minus lower bound; rounding error if the solver converged."""
        return self.edge - self.margin


def best_margin(M: npt.ArrayLike) -> BestMargin:
    """Compute ρ, the best margin of any combination of weak rankers, for a matrix of pairs.

    Parameters
    ----------
    M : array_like of float, shape (n_pairs, n_weak_rankers)
        h_j(better) - h_j(worse).

    Returns
    -------
    BestMargin

    Raises
    ------
    InvalidData
        M is not a finite matrix, or has more than `MAX_CELLS` numbers.
    Unsolved
        The solver gave up.

    Examples
    --------
    >>> from core.bounds import best_margin
    >>> round(best_margin([[1.0, -1.0], [0.0, 1.0]]).rho, 3)
    0.333
    """
    matrix = _checked("M", M)
    _check_size(matrix.size)
    # A row of M minus a row of zeros is itself: the pairs are positives, the zeros are a single negative.
    best = _solve(matrix, np.zeros((1, matrix.shape[1])))
    return BestMargin(best.weights, best.pair_weights[:1], best.margin, best.edge)


def best_bipartite_margin(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> BestMargin:
    """Compute ρ over all pairs of a positive and a negative, without listing them.

    Parameters
    ----------
    positives : array_like of float, shape (n_positives, n_weak_rankers)
        h_j(x_i) of the positives.
    negatives : array_like of float, shape (n_negatives, n_weak_rankers)
        h_j(x_k) of the negatives.

    Returns
    -------
    BestMargin

    Raises
    ------
    InvalidData
        The two are not finite matrices of the same width, or have more than `MAX_CELLS` numbers.
    Unsolved
        The solver gave up.

    Examples
    --------
    >>> from core.bounds import best_bipartite_margin
    >>> round(best_bipartite_margin([[1, 0], [1, 1]], [[0, 1], [0, 0]]).rho, 3)
    1.0
    """
    H_p, H_n = _checked("positives", positives), _checked("negatives", negatives)
    if H_p.shape[1] != H_n.shape[1]:
        raise InvalidData(
            f"positives and negatives must have one column per weak ranker, got {H_p.shape[1]} and "
            f"{H_n.shape[1]}"
        )
    _check_size(H_p.size + H_n.size)
    return _solve(H_p, H_n)


def stump_outputs(
    X: Floats,
    weight: Floats,
    max_bins: int,
    most_cells: int = MAX_CELLS,
    n_categories: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.bool_] | None:
    """Return the outputs of every stump that a booster can choose from; None if there are too many.

    Equal columns occur once. A categorical feature has a stump per set of its bins, the missing one included, because
    any set may be the best.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        Finite or NaN.
    weight : ndarray of shape (n_rows,), float64
        Above 0; bins are weighted quantiles.
    max_bins : int
        Maximum number of bins of a feature.
    most_cells : int
        Return None if there are more outputs than this.
    n_categories : ndarray of shape (n_features,), int64, optional
        0 for a numeric feature. Default: all are numeric.

    Returns
    -------
    ndarray of shape (n_rows, n_stumps), bool, or None

    Examples
    --------
    >>> import numpy as np
    >>> from core.bounds import stump_outputs
    >>> stump_outputs(np.array([[1.0], [2.0]]), np.ones(2), max_bins=8)
    array([[False,  True],
           [ True, False]])
    """
    check_value("max_bins", Annotated[int, Ge(2)], max_bins)
    check_value("most_cells", int, most_cells)
    X = as_table("X", X)
    weight = check_weights(weight, len(X), "weight")
    if n_categories is not None:
        n_categories = np.array(check_items("n_categories", n_categories, Annotated[int, Ge(0)]))
        if n_categories.shape != X.shape[1:]:
            raise InvalidData(
                f"n_categories must have one number for each of {X.shape[1]} columns, got {n_categories.size}"
            )
    bins, codes = fit_bins(X, np.arange(len(X)), weight, max_bins, n_categories)
    n_edges = np.where(bins.is_categorical, 0, bins.n_bins - 1)
    has_missing_edge = bins.has_missing & ~bins.is_categorical
    n_stumps = 2 * int((n_edges * (1 + bins.has_missing) + has_missing_edge).sum())
    n_parts = (bins.n_bins + bins.has_missing)[bins.is_categorical].tolist()
    n_stumps += sum(2**n for n in n_parts)
    if n_stumps * len(X) > most_cells:
        return None
    columns = [np.zeros((0, len(X)), dtype=np.bool_)]
    for column, edges, has_missing, own in zip(
        codes, bins.edges, bins.has_missing, bins.category_bins, strict=True
    ):
        known = column != missing_code(codes.dtype)
        if own is not None:
            parts, part = np.unique(column, return_inverse=True)
            sets = np.arange(2 ** len(parts))[:, None] >> np.arange(len(parts)) & 1
            columns.append(sets.astype(np.bool_)[:, part])
            continue
        above = (column > np.arange(len(edges), dtype=codes.dtype)[:, None]) & known
        columns.append(above)
        if has_missing:
            columns += [above | ~known, known[None]]
    stumps = np.concatenate(columns)
    stumps = stumps[stumps.any(axis=1) & ~stumps.all(axis=1)]
    return np.unique(np.concatenate([stumps, ~stumps]), axis=0).T


def column_outputs(X: Floats) -> npt.NDArray[np.bool_] | None:
    """Return 0/1 columns, and their reverses, as outputs of weak rankers; None if some column is not 0/1.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features), float64
        NaN, a missing value, counts as 0.

    Returns
    -------
    ndarray of shape (n_rows, 2 · n_features), bool, or None

    Examples
    --------
    >>> import numpy as np
    >>> from core.bounds import column_outputs
    >>> column_outputs(np.array([[0.0], [1.0]]))
    array([[False,  True],
           [ True, False]])
    """
    X = as_table("X", X)
    values = np.where(np.isnan(X), 0.0, X)
    if not np.isin(values, (0.0, 1.0)).all():
        return None
    columns = values == 1.0
    return np.hstack([columns, ~columns])


def makes_progress(d_plus: npt.ArrayLike, d_minus: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return for each round whether the condition of Theorem 7 on d0 holds.

    If it holds and 0 <= g < r < 1, a step of smooth margin ranking increases the smooth margin by at least ½ α(r -
    g)/s. Here g is the smooth margin before the step and s = ‖λ‖₁ after it. Otherwise the theorem does not apply; the
    smooth margin still never decreases (Lemma 22). Stumps tie most pairs, so the condition fails in most rounds.

    Parameters
    ----------
    d_plus, d_minus : array_like of float, shape (n_rounds,), in [0, 1]
        Weight of the pairs that the round's weak ranker orders correctly, and of the discordant ones.

    Returns
    -------
    ndarray of shape (n_rounds,), bool

    References
    ----------
    Rudin & Schapire (2009), Theorem 7.

    Examples
    --------
    >>> from core.bounds import makes_progress
    >>> makes_progress([0.9, 0.1], [0.1, 0.0])
    array([ True, False])
    """
    right, wrong = as_numbers("d_plus", d_plus), as_numbers("d_minus", d_minus)
    if right.shape != wrong.shape:
        raise InvalidData(
            f"d_plus and d_minus must have the same shape, got {right.shape} and {wrong.shape}"
        )
    tied = 1 - right - wrong
    return np.asarray(tied < max_tied_mass(right - wrong))


def _solve(H_p: Floats, H_n: Floats) -> BestMargin:
    """Maximise the margin a - b over mixtures λ (Σλ = 1) with Hλ >= a on positives and Hλ <= b on negatives."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    n_p, n_rankers = H_p.shape
    ends = np.repeat([[1.0, 0.0], [0.0, -1.0]], (n_p, len(H_n)), axis=0)
    solved = linprog(
        np.append(np.zeros(n_rankers), [-1.0, 1.0]),
        A_ub=csr_array(np.hstack([np.vstack([-H_p, H_n]), ends])),
        b_ub=np.zeros(len(ends)),
        A_eq=csr_array(np.append(np.ones(n_rankers), [0.0, 0.0])[None]),
        b_eq=[1.0],
        bounds=[(0, None)] * n_rankers + [(None, None)] * 2,
        method="highs-ds",  # a vertex: its weights are exact zeros where a ranker is not used
    )
    if not solved.success:  # there is always a solution: only rounding can prevent it
        raise Unsolved(f"the best margin was not found: {solved.message}")
    weights = _normalised(solved.x[:n_rankers])
    u, v = (_normalised(part) for part in np.split(-solved.ineqlin.marginals, [n_p]))
    margin = float(_mixed(H_p, weights).min() - _mixed(H_n, weights).max())
    edge = float((_mixed(H_p.T, u) - _mixed(H_n.T, v)).max())
    return BestMargin(weights, (u, v), margin, edge)


def _mixed(matrix: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of columns, without BLAS, whose rounding depends on its number of threads."""
    return np.asarray(np.einsum("ij,j->i", matrix, weights))


def _normalised(weights: Floats) -> Floats:
    weights = np.maximum(weights, 0.0)  # the solver's tolerance lets them fall a little below
    return np.asarray(weights / weights.sum())


def _checked(name: str, values: npt.ArrayLike) -> Floats:
    matrix = as_numbers(name, values)
    if matrix.ndim != 2 or not matrix.size:
        raise InvalidData(f"{name} must be a non-empty matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise InvalidData(f"{name} must contain only finite numbers")
    return matrix


def _check_size(cells: int) -> None:
    if cells > MAX_CELLS:
        raise InvalidData(f"rows × weak rankers must be at most {MAX_CELLS}, got {cells}")
