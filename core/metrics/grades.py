"""Metrics of rows with several grades, such as 0 to 4: C-index, mean AUC of grade pairs, volume under the surface.

Let A_gh be the area between two grades: the fraction of the pairs of a row of grade h and one of a lower grade g in
which the higher grade has the higher score, ties counted half.

* **C-index** (ordinal): the fraction of all pairs of different grades in order, Σ M_g M_h A_gh / Σ M_g M_h with M the
  weights of the grades. It depends on how many rows each grade has;
* **mean area** of k-partite ranking: the plain mean of A_gh over all pairs of grades (Fürnkranz, Hüllermeier &
  Vanderlooy 2009), whatever the grades' numbers of rows;
* **volume** under the ROC surface: the probability that rows drawn from each grade are in order all at once
  (Nakas & Yiannoutsos 2004); of m grades that tie, one of the m! orders is right. It is 1/K! for scores that say
  nothing. From 3 to `MAX_VOLUME_GRADES` grades.

For two grades all three are the AUC.

**Intervals.** To first order each metric is a sum over rows, as an area is (see `intervals`): a row counts with the
difference of its own fraction from the mean of its grade. For the C-index also the number of rows of a grade varies:
a row counts with how far the areas of its grade's pairs are from the C-index, too. Variances of grades are multiplied
by e / (e − 1), e being the effective number of rows of a grade. A few rows of a rare grade may have most of the
variance of a metric, which is then estimated too low: with three grades or more each u is divided by 1 − u² / Σ u² for
an interval. Groups, degrees of freedom and the logit scale are as for areas.

The volume is a count of chains of rows, one of each grade and ascending, by dynamic programming over the sorted rows.

References
----------
Fürnkranz, Hüllermeier & Vanderlooy, "Binary decomposition methods for multipartite ranking", ECML PKDD (2009).
Harrell, Califf, Pryor, Lee & Rosati, "Evaluating the yield of medical tests", JAMA 247 (1982): the C-index.
Nakas & Yiannoutsos, "Ordered multiple-class ROC analysis with continuous measurements", Statistics in Medicine 23
(2004): the volume.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import as_vector, check_grades, number_units
from core.errors import InvalidData
from core.kernels import kernel
from core.metrics.estimates import (
    EPSILON,
    Estimates,
    Interval,
    logit_interval,
    weigh_by_others,
)
from core.metrics.groups import (
    FloatArray,
    check_weights,
    effective_number,
    finite_vector,
    inner,
    sum_by_unit,
    take_units,
)
from core.metrics.window import check_level

MAX_VOLUME_GRADES = 8
"""Grades up to which the volume is computed: of 9 grades in random order it is 1 in 362,880, of a good one not much."""


@dataclass(frozen=True)
class GradedSummary:
    """The metrics of scores on rows with grades.

    Examples
    --------
    >>> from core.metrics import measure_graded
    >>> found = measure_graded([0, 0, 1, 1, 2, 2], [1, 2, 3, 2, 5, 6])
    >>> found.grades, round(found.c_index.value, 3), round(found.mean_auc.value, 3)
    ((0, 1, 2), 0.958, 0.958)
    """

    c_index: Interval
    """Fraction of the pairs of different grades that are in order."""
    mean_auc: Interval
    """Mean of the AUCs between all pairs of grades."""
    volume: Interval | None
    """Volume under the ROC surface; None with more than `MAX_VOLUME_GRADES` grades."""
    grades: tuple[int, ...]
    """Distinct grades, ascending."""
    counts: tuple[int, ...]
    """Rows of positive weight of each grade."""
    pairwise: tuple[tuple[float | None, ...], ...]
    """AUC between the lower grade (row) and the higher grade (column); None elsewhere."""
    level: float
    """Confidence level of the intervals. In (0, 1)."""


class _GradedRows(NamedTuple):
    grade: NDArray[np.int64]
    grades: NDArray[np.int64]
    scores: FloatArray
    weight: FloatArray
    unit: NDArray[np.intp] | None


def measure_graded(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> GradedSummary:
    """Compute C-index, mean AUC and volume under the ROC surface for graded rows, with intervals.

    Parameters
    ----------
    y : array_like, shape (n_samples,)
        Grades: whole numbers from 0 to 31.
    scores : array_like of float, shape (n_samples,)
        Finite scores; higher means a higher grade.
    level : float in (0, 1)
        Probability that an interval covers the value of the population.
    sample_weight : array_like of float, shape (n_samples,), optional
        Non-negative weights. A pair has the product of the weights of its rows.
    group : array_like, shape (n_samples,), optional
        Rows with equal values were drawn together, such as several rows of one patient. Intervals then count groups.

    Returns
    -------
    GradedSummary
        The metrics. O(n log n + n · n_grades).

    Raises
    ------
    InvalidData
        Lengths differ, a label is not a grade, all are equal, or a score or weight is not finite.

    Examples
    --------
    >>> from core.metrics import measure_graded
    >>> found = measure_graded([0, 1, 2, 1], [0.1, 0.4, 0.8, 0.9])
    >>> found.c_index.value, round(found.mean_auc.value, 4), found.volume.value
    (0.8, 0.8333, 0.5)
    """
    level = check_level(level)
    rows = _check(y, scores, sample_weight, group)
    intervals, pairwise = _estimate(rows, level)
    return GradedSummary(
        intervals["c_index"],
        intervals["mean_auc"],
        intervals.get("volume"),
        tuple(rows.grades.tolist()),
        tuple(np.bincount(rows.grade).tolist()),
        tuple(
            tuple(float(area) if g < h else None for h, area in enumerate(areas))
            for g, areas in enumerate(pairwise.tolist())
        ),
        level,
    )


def _check(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None, group: ArrayLike | None
) -> _GradedRows:
    labels = as_vector("y", y)
    grade = check_grades(labels, labels.size)
    column = finite_vector("scores", scores, grade.size)
    weight = check_weights(sample_weight, grade.size)
    unit = None if group is None else number_units("group", group, grade.size)
    present = weight > 0
    if not present.all():
        grade, column, weight = grade[present], column[present], weight[present]
        unit = None if unit is None else take_units(unit, present)
    grades, number = np.unique(grade, return_inverse=True)
    if len(grades) < 2:
        raise InvalidData(
            f"sample_weight must be above 0 for rows of two grades, got only rows of grade {grades[0]}"
        )
    return _GradedRows(number.astype(np.int64), grades, column, weight, unit)


def _estimate(rows: _GradedRows, level: float) -> tuple[dict[str, Interval], FloatArray]:
    """Return the interval of every metric by name, and the AUCs A_gh of pairs of grades, (n_grades, n_grades)."""
    grade, grades, scores, weight, unit = rows
    n_grades = len(grades)
    mass = np.bincount(grade, weight, n_grades)
    pairs = np.triu(np.outer(mass, mass), 1)
    total = float(pairs.sum())
    # The weight of the pairs in which a row is the better, and the worse one, as a share of all.
    below, above = np.tril(np.outer(mass, mass), -1).sum(axis=1), pairs.sum(axis=1)
    better, worse = (
        effective_number(sum_by_unit(weight / mass[grade] * (each / total)[grade], unit))
        for each in (below, above)
    )
    of_grade = [
        effective_number(sum_by_unit(np.where(grade == g, weight, 0.0), unit))
        for g in range(n_grades)
    ]
    factor = np.array([_small_sample(e) for e in of_grade])
    order = np.argsort(scores, kind="stable")
    sorted_rows = scores[order], grade[order], weight[order]
    areas = np.empty((n_grades, n_grades))
    _find_areas(*sorted_rows, mass, areas)
    estimated: dict[str, tuple[float, FloatArray]] = {}
    for name, of_pairs in (("c_index", pairs), ("mean_auc", np.triu(np.ones_like(pairs), 1))):
        phi = np.empty(len(grade))
        value = float((of_pairs * areas).sum()) / float(of_pairs.sum())
        share = of_pairs / of_pairs.sum()
        _find_influences(*sorted_rows, mass, areas, share + share.T, phi)
        estimated[name] = value, phi
    if n_grades <= MAX_VOLUME_GRADES:
        phi = np.empty(len(grade))
        estimated["volume"] = _count_chains(*sorted_rows, mass, phi), phi
    found = {}
    smallest, shown = min(of_grade), min(better, worse) > 1.0 + EPSILON
    for name, (value, phi) in estimated.items():
        influence = np.empty(len(grade))
        influence[order] = phi * (weight * factor[grade] / mass[grade])[order]
        varies = name == "c_index" and n_grades > 2
        if varies:
            off = (areas + areas.T - value) * (1.0 - np.eye(n_grades))
            of_all = _small_sample(effective_number(sum_by_unit(weight, unit)))
            influence += weight * (off @ mass)[grade] / total * of_all
        parts = None
        # a grade of one row shows no variance of its areas; of the C-index it is one part among many
        if shown and (varies or smallest > 1.0 + EPSILON):
            parts = sum_by_unit(influence, unit)
        trials = min(better, worse) if name == "c_index" else smallest
        estimates = Estimates(
            np.array([[value]]),
            None if parts is None else parts[None, None],
            (better, worse),
            math.inf if unit is None else min(better, worse) - 1.0,
            grouped=unit is not None,
        )
        if parts is None or n_grades == 2:  # of two grades: the AUC
            found[name] = estimates.interval(0, 0, trials, level, (better, worse))
            continue
        parts = weigh_by_others(parts)
        # What few rows hide is allowed for already; n of the rarest grade would allow for it twice.
        found[name] = logit_interval(value, inner(parts, parts), trials, level, estimates.degrees)
    return found, areas


def _small_sample(effective: float) -> float:
    """Return √(e / (e − 1)), the small-sample correction of an influence, e effective rows; 1 for a single row."""
    return math.sqrt(effective / (effective - 1.0)) if effective > 1.0 + EPSILON else 1.0


_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INTEGERS = numba.types.Array(numba.int64, 1, "C", readonly=True)
_ROWS = (_FLOATS, _INTEGERS, _FLOATS, _FLOATS)


@kernel(numba.void(*_ROWS, numba.float64[:, ::1]))
def _find_areas(scores, grade, weight, mass, areas):  # type: ignore[no-untyped-def]
    """Write the AUC of each pair of grades, grade h over a lower grade g, to areas[g, h]. Scores ascend; mass: by
    grade.
    """
    n_rows, n_grades = len(scores), len(mass)
    below, tied = np.zeros(n_grades), np.zeros(n_grades)
    areas[:] = 0.0
    i = 0
    while i < n_rows:
        j = i
        while j < n_rows and scores[j] == scores[i]:
            tied[grade[j]] += weight[j]
            j += 1
        for h in range(n_grades):
            if tied[h] > 0.0:
                for g in range(h):
                    areas[g, h] += tied[h] * (below[g] + 0.5 * tied[g])
        for g in range(n_grades):
            below[g] += tied[g]
            tied[g] = 0.0
        i = j
    for h in range(n_grades):
        for g in range(h):
            areas[g, h] = min(1.0, areas[g, h] / mass[g] / mass[h])


@kernel(numba.void(*_ROWS, numba.float64[:, ::1], numba.float64[:, ::1], numba.float64[::1]))
def _find_influences(scores, grade, weight, mass, areas, shares, phi):  # type: ignore[no-untyped-def]
    """Write each row's influence on Σ shares · A_gh to phi. shares: symmetric; arrays as `_find_areas`, which wrote the
    areas.
    """
    n_rows, n_grades = len(scores), len(mass)
    below, tied = np.zeros(n_grades), np.zeros(n_grades)
    i = 0
    while i < n_rows:
        j = i
        while j < n_rows and scores[j] == scores[i]:
            tied[grade[j]] += weight[j]
            j += 1
        for r in range(i, j):
            g = grade[r]
            total = 0.0
            for h in range(n_grades):
                if h != g:
                    under = (below[h] + 0.5 * tied[h]) / mass[h]
                    right = under - areas[h, g] if h < g else 1.0 - under - areas[g, h]
                    total += shares[g, h] * right
            phi[r] = total
        for g in range(n_grades):
            below[g] += tied[g]
            tied[g] = 0.0
        i = j


@kernel(numba.float64(*_ROWS, numba.float64[::1]))
def _count_chains(scores, grade, weight, mass, phi):  # type: ignore[no-untyped-def]
    """Return the volume under the ROC surface, and write each row's influence on it to phi.

    A chain has a row of each grade; it is counted as the product of their shares of their grades, over m! for each m of
    them that tie.
    """
    n_rows, n_grades = len(scores), len(mass)
    first = np.empty(n_rows + 1, dtype=np.int64)  # of each tie
    n_ties = 0
    for i in range(n_rows):
        if i == 0 or scores[i] != scores[i - 1]:
            first[n_ties] = i
            n_ties += 1
    first[n_ties] = n_rows
    # before[t, g]: the chains of the grades below g, all below the t-th tie.
    before = np.zeros((n_ties + 1, n_grades + 1))
    before[0, 0] = 1.0
    tied = np.zeros(n_grades)
    for t in range(n_ties):
        for i in range(first[t], first[t + 1]):
            tied[grade[i]] += weight[i] / mass[grade[i]]
        for g in range(n_grades + 1):
            before[t + 1, g] = before[t, g]
        for g in range(n_grades):
            part, m = 1.0, 0
            while g + m < n_grades and tied[g + m] > 0.0:
                part *= tied[g + m] / (m + 1)
                m += 1
                before[t + 1, g + m] += before[t, g] * part
        tied[:] = 0.0
    volume = min(1.0, before[n_ties, n_grades])
    # after[g]: the chains of the grades from g on, all above the tie.
    after = np.zeros(n_grades + 1)
    after[n_grades] = 1.0
    own = np.zeros(n_grades)
    for t in range(n_ties - 1, -1, -1):
        for i in range(first[t], first[t + 1]):
            tied[grade[i]] += weight[i] / mass[grade[i]]
        own[:] = 0.0
        for g in range(n_grades):  # a run of tied grades from g on
            part, m = 1.0, 0
            while g + m < n_grades and tied[g + m] > 0.0:
                part *= tied[g + m] / (m + 1)
                m += 1
                chains = before[t, g] * part * after[g + m]
                for member in range(g, g + m):
                    own[member] += chains / tied[member]
        for i in range(first[t], first[t + 1]):
            phi[i] = own[grade[i]] - volume
        for g in range(n_grades):
            part, m = 1.0, 0
            added = 0.0
            while g + m < n_grades and tied[g + m] > 0.0:
                part *= tied[g + m] / (m + 1)
                m += 1
                added += part * after[g + m]
            after[g] += added  # those of greater grades are not yet changed
        tied[:] = 0.0
    return volume
