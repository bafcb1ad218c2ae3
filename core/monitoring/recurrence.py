"""Entities that come back: the correlation of estimates from different periods whose rows share entities.

An estimate is, to first order, a mean of influences φ(e) of entities e (customers, patients) plus the value of the
population. Estimates of two periods s and t then have the covariance

    C_st = Σ_e φ_s(e) φ_t(e).

With other entities in each period it is 0; with the same ones it is about the variance, and further periods say almost
nothing new. Nothing is assumed about how many entities come back.

To compute C_st later without any id, a period keeps its influences summed into `N_CELLS` cells, each with the sign of a
hash of its entity: a count sketch (Charikar, Chen & Farach-Colton 2004). Its products are C_st on average, with an
error of about √(C_ss C_tt / N_CELLS), 2.2 % of the variance. Variances are kept exactly; the sketch gives correlations.

References
----------
Charikar, Chen & Farach-Colton, "Finding frequent items in data streams", Theoretical Computer Science 312 (2004).
Obuchowski, "Nonparametric analysis of clustered ROC curve data", Biometrics 53 (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from core.base.parameters import check_items
from core.errors import InvalidParameter
from core.metrics.groups import FloatArray

N_CELLS = 2048
"""Cells of a sketch, a power of two: two bytes each."""

_EVIDENT = 4.0  # standard errors
_LEAST = 1e-3
"""The part of a variance that other periods never explain: with the error of the sketches there might be none."""


def sketch_of(influence: FloatArray, entity: NDArray[np.uint64]) -> bytes:
    """Return the direction of influences by entity, as `N_CELLS` float16 numbers; empty if all are 0.

    influence: (n_entities,).
    entity: (n_entities,), uint64; number of each entity, equal in all periods.
    """
    mixed = _mix(entity)
    cells = np.bincount(
        (mixed % np.uint64(N_CELLS)).astype(np.intp),
        np.where(mixed >> np.uint64(63), influence, -influence),
        N_CELLS,
    )
    length = float(np.sqrt(cells @ cells))
    return (cells / length).astype("<f2").tobytes() if length > 0.0 else b""


def _mix(entity: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble each number (the finaliser of SplitMix64)."""
    found = entity.astype(np.uint64, copy=True)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found ^= found >> np.uint64(shift)
        found *= np.uint64(factor)
    found ^= found >> np.uint64(31)
    return found


def presence_of(entity: NDArray[np.uint64]) -> bytes:
    """Return the sketch of which entities a period has. The product of two such sketches is the number of entities of
    both over the geometric mean of their numbers.

    entity: (n_rows,), uint64.
    """
    distinct = np.unique(entity)
    return sketch_of(np.ones(distinct.size), distinct)


def entities_recur(entity: NDArray[np.uint64], earlier: Sequence[bytes]) -> bool:
    """Return whether an entity has several rows, or entities come back, beyond four standard errors of the sketches.

    entity: (n_rows,), uint64; of one period.
    earlier: `presence_of` the periods before.
    """
    if np.unique(entity).size < entity.size:
        return True
    own, *others = (
        np.frombuffer(each, "<f2").astype(np.float64) for each in (presence_of(entity), *earlier)
    )
    common = sum(float(own @ each) for each in others)
    return common > _EVIDENT * float(np.sqrt(len(others) / N_CELLS))


def recurrence_of(sketches: Sequence[bytes]) -> float:
    """Compute the mean correlation of the values of consecutive interim tests.

    Parameters
    ----------
    sketches : sequence of bytes
        `by_entity` of each interim test, in the order of time.

    Returns
    -------
    float in [0, 1)
        0 without sketches.

    Examples
    --------
    >>> from core.monitoring import measure_auc, recurrence_of
    >>> test = measure_auc([1, 0, 1, 0], [4, 3, 2, 1], first=1, last=1, entity=[7, 7, 8, 9])
    >>> round(recurrence_of([test.by_entity, test.by_entity]), 2)
    1.0
    """
    given: list[bytes] = check_items("sketches", sketches, bytes)
    for each in given:
        check_sketch("an item of sketches", each)
    known = [np.frombuffer(each, "<f2").astype(np.float64) for each in given if each]
    pairs = [float(a @ b) for a, b in pairwise(known)]
    return min(max(float(np.mean(pairs)), 0.0), 1.0 - _LEAST) if pairs else 0.0


def check_sketch(name: str, sketch: bytes) -> None:
    """Raise InvalidParameter unless the bytes are a sketch, or empty."""
    size = 2 * N_CELLS  # float16
    if len(sketch) not in (0, size):
        raise InvalidParameter(f"{name} must be empty or have {size} bytes, got {len(sketch)}")


def covariance_factor(sketches: Sequence[bytes], variances: FloatArray) -> FloatArray:
    """Return the lower triangular factor L of the covariance matrix L Lᵀ of estimates, (n, n) float64.

    A row depends on the periods up to its own only, in every bit. The variances are kept exactly; correlations that
    contradict each other by the error of the sketches are reduced.

    sketches: from `sketch_of`; an empty one is correlated with no other.
    variances: (n,).
    """
    n = len(sketches)
    directions = np.zeros((n, N_CELLS))
    for row, sketch in zip(directions, sketches, strict=True):
        if sketch:
            row[:] = np.frombuffer(sketch, "<f2")
    factor = np.zeros((n, n))
    for t in range(n):
        # Not a product of matrices, whose order of summation depends on their size.
        correlation = np.einsum("ij,j->i", directions[:t], directions[t])
        own = solve_triangular(factor[:t, :t], correlation, lower=True) if t else np.zeros(0)
        explained = float(own @ own)
        if explained > 1.0 - _LEAST:
            own *= np.sqrt((1.0 - _LEAST) / explained)
            explained = 1.0 - _LEAST
        factor[t, :t], factor[t, t] = own, np.sqrt(1.0 - explained)
    found: FloatArray = np.sqrt(variances)[:, np.newaxis] * factor
    return found
