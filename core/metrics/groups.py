"""Tie groups: rows sorted once by score, the common starting point of all metrics of this package.

A ranking is summarised by its distinct scores, highest first, and the weight of the positives and of the negatives at
each of them. The prefix sums of the two are the ROC curve.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.base.target import as_numbers, as_vector, check_range, number_units, two_classes
from core.errors import InvalidData
from core.kernels import kernel

FloatArray = NDArray[np.float64]

AT_ONCE = 1 << 18
"""Tie groups, or rows, of which a metric takes a sum at once: two megabytes a column."""

MIN_CLASS_ROWS = 10
"""Effective rows of a class, for a group's metrics and tests against chance: variances of fewer say next to nothing."""


class EvaluatedRows(NamedTuple):
    """The checked input of a metric: the rows of weight above 0, in the order given."""

    positive: NDArray[np.bool_]
    """Shape (n_rows,)."""
    scores: tuple[FloatArray, ...]
    """One vector per scorer. Shape (n_rows,)."""
    weight: FloatArray | None
    """None when every row counts once. Shape (n_rows,)."""
    unit: NDArray[np.intp] | None
    """Number of the unit (such as a patient) that a row belongs to; None if each row is a unit. Shape (n_rows,)."""

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> EvaluatedRows:
        return EvaluatedRows(
            self.positive[chosen],
            tuple(column[chosen] for column in self.scores),
            None if self.weight is None else self.weight[chosen],
            None if self.unit is None else take_units(self.unit, chosen),
        )


def take_units(
    unit: NDArray[np.intp], chosen: NDArray[np.intp] | NDArray[np.bool_]
) -> NDArray[np.intp]:
    """Return the units (groups) of the rows selected by indices or a mask, renumbered."""
    return np.unique(unit[chosen], return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class ClassRows:
    """The rows of one class, sorted by score: the tie group and weight of each."""

    group: NDArray[np.intp]
    """Index into the distinct scores, highest first; non-decreasing. Shape (n_rows,), intp."""
    weight: FloatArray | None
    """None when every row counts once. Shape (n_rows,)."""

    def __len__(self) -> int:
        return int(self.group.size)

    def mass_by_group(self, n_groups: int, *, squared: bool = False) -> FloatArray:
        weight = self.weight if self.weight is None or not squared else self.weight**2
        return np.bincount(self.group, weight, n_groups).astype(np.float64, copy=False)

    @cached_property
    def whole(self) -> bool:
        """Whether all weights are whole numbers, which can be read as repetitions of rows."""
        return self.weight is None or bool(np.all(self.weight == np.floor(self.weight)))


class GroupBlock(NamedTuple):
    """A block of consecutive tie groups, small enough that arrays of its size need little memory."""

    scores: FloatArray
    positive: FloatArray
    negative: FloatArray
    """Weight of each class at each score. Shape (n,), float64, as all but the last two."""
    positive_squares: FloatArray
    negative_squares: FloatArray
    """Sums of the squared weights."""
    flagged_positive: FloatArray
    flagged_negative: FloatArray
    """Weight of each class above the first of these scores, then at or above each. Shape (n + 1,), float64."""


class ScoreGroups(ABC):
    """Base class of tie groups: the distinct scores, highest first, and the weight of each class at each of them.

    Metrics are sums over `blocks`, in their order: the same bits whether the groups are in memory or in files.
    """

    flagged_positive: FloatArray
    flagged_negative: FloatArray
    """Weight of each class at or above each score, after a leading 0. Shape (n_groups + 1,), float64."""

    def __len__(self) -> int:
        return self.flagged_positive.size - 1

    @property
    @abstractmethod
    def counts(self) -> tuple[int, int]:
        """Numbers of positive and of negative rows (of weight above 0)."""

    @property
    @abstractmethod
    def min_weights(self) -> tuple[float, float]:
        """Minimum weight of a positive row and of a negative row; 1 without weights."""

    @abstractmethod
    def scores_at(self, groups: slice | NDArray[np.intp]) -> FloatArray:
        """Return the scores of the tie groups with these indices, float64."""

    @abstractmethod
    def block(self, groups: slice) -> GroupBlock:
        """Return the data of a slice of consecutive tie groups."""

    @abstractmethod
    def empty(self) -> FloatArray:
        """Return an uninitialised array with a value per tie group, (n_groups,); in a file if the groups are."""

    @property
    def is_one_block(self) -> bool:
        return len(self) <= AT_ONCE

    def blocks(self) -> Iterator[GroupBlock]:
        """Yield all tie groups in blocks, highest scores first, at most `AT_ONCE` per block."""
        for start, stop in spans(0, len(self)):
            yield self.block(slice(start, stop))


@dataclass(frozen=True, eq=False)
class RowGroups(ScoreGroups):
    """Tie groups in memory, with the rows of each class in each of them."""

    scores: FloatArray
    """Strictly decreasing. Shape (n_groups,)."""
    positives: ClassRows
    negatives: ClassRows
    flagged_positive: FloatArray
    flagged_negative: FloatArray

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.positives), len(self.negatives)

    @property
    def min_weights(self) -> tuple[float, float]:
        weights = (each.weight for each in (self.positives, self.negatives))
        positive, negative = (1.0 if each is None else float(each.min()) for each in weights)
        return positive, negative

    def scores_at(self, groups: slice | NDArray[np.intp]) -> FloatArray:
        return self.scores[groups]

    def block(self, groups: slice) -> GroupBlock:
        flagged = slice(groups.start, groups.stop + 1)
        return GroupBlock(
            self.scores[groups],
            self.positive[groups],
            self.negative[groups],
            self.positive_squares[groups],
            self.negative_squares[groups],
            self.flagged_positive[flagged],
            self.flagged_negative[flagged],
        )

    def empty(self) -> FloatArray:
        return np.empty(len(self))

    @cached_property
    def positive(self) -> FloatArray:
        """Weight of the positives at each score, shape (n_groups,)."""
        return self._mass(self.positives, self.flagged_positive)

    @cached_property
    def negative(self) -> FloatArray:
        """Weight of the negatives at each score, shape (n_groups,)."""
        return self._mass(self.negatives, self.flagged_negative)

    def _mass(self, rows: ClassRows, flagged: FloatArray) -> FloatArray:
        # Differences of counts are exact, those of sums of weights are not.
        return np.diff(flagged) if rows.weight is None else rows.mass_by_group(self.scores.size)

    @cached_property
    def positive_squares(self) -> FloatArray:
        """Sum of the squared weights of the positives at each score, shape (n_groups,)."""
        return self._squares(self.positives, self.positive)

    @cached_property
    def negative_squares(self) -> FloatArray:
        """Sum of the squared weights of the negatives at each score, shape (n_groups,)."""
        return self._squares(self.negatives, self.negative)

    def _squares(self, rows: ClassRows, mass: FloatArray) -> FloatArray:
        return mass if rows.weight is None else rows.mass_by_group(self.scores.size, squared=True)


def spans(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield ranges that cover first ≤ i < stop, split at multiples of `AT_ONCE`; a single empty range if empty."""
    start = first
    while True:
        end = min((start // AT_ONCE + 1) * AT_ONCE, stop)
        yield start, end
        if end >= stop:
            return
        start = end


def prefix_sums(mass: FloatArray) -> FloatArray:
    """Return the cumulative sums of `mass` after a leading 0, shape (len(mass) + 1,)."""
    totals = np.empty(mass.size + 1)
    totals[0] = 0.0
    np.cumsum(mass, out=totals[1:])
    return totals


def inner(left: FloatArray, right: FloatArray) -> float:
    """Return the inner product Σ left · right, without BLAS, whose bits depend on its number of threads."""
    return float(np.einsum("i,i->", left, right))


def group_by_score(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> RowGroups:
    """Return the tie groups of rows, which are checked first. O(n log n) time, O(n) memory.

    Scores are compared as float64. Infinite scores are refused: the first threshold of a curve, +inf, flags no row. A
    weight is 0 or between 1e-100 and 1e100; rows of weight 0 are left out.

    InvalidData: lengths differ, a value is not finite, or a class is empty or has no weight.
    """
    return tie_groups(check_rows(y, {"scores": scores}, sample_weight))


def check_rows(
    y: ArrayLike,
    scores: Mapping[str, ArrayLike],
    sample_weight: ArrayLike | None = None,
    group: ArrayLike | None = None,
) -> EvaluatedRows:
    """Return checked rows, without those of weight 0.

    InvalidData: as `group_by_score`, or `group` is not a vector of numbers, booleans or text.

    scores: mapping of str to array_like, shape (n_samples,); scores of one or several scorers, by the names that errors
        use.
    group: (n_samples,); rows with equal values belong to one unit.
    """
    _, positive = two_classes(as_vector("y", y))
    values = [finite_vector(name, vector, positive.size) for name, vector in scores.items()]
    weight = None if sample_weight is None else check_weights(sample_weight, positive.size)
    unit = None if group is None else number_units("group", group, positive.size)
    if weight is not None and not weight.all():
        kept = weight > 0
        positive, weight = positive[kept], weight[kept]
        values = [vector[kept] for vector in values]
        unit = None if unit is None else take_units(unit, kept)
        for name, present in (("positive", positive.any()), ("negative", not positive.all())):
            if not present:
                raise InvalidData(
                    f"sample_weight must be above 0 for some row of each class, got 0 for every {name} row"
                )
    return EvaluatedRows(positive, tuple(values), weight, unit)


def tie_groups(rows: EvaluatedRows) -> RowGroups:
    if rows.weight is not None:
        return group_rows(rows, 0)[0]
    # Sorting the values of each class and merging them is quicker than an argsort of all rows.
    (values,) = rows.scores
    positives, negatives = np.sort(values[rows.positive]), np.sort(values[~rows.positive])
    of_positives = np.empty(positives.size, dtype=np.intp)
    of_negatives = np.empty(negatives.size, dtype=np.intp)
    distinct = np.empty(values.size)
    flagged = np.zeros((2, values.size + 1))
    n_groups = _merge(positives, negatives, of_positives, of_negatives, distinct, *flagged)
    return RowGroups(
        distinct[:n_groups],
        ClassRows(of_positives, None),
        ClassRows(of_negatives, None),
        flagged[0, : n_groups + 1],
        flagged[1, : n_groups + 1],
    )


def group_rows(rows: EvaluatedRows, scorer: int) -> tuple[RowGroups, NDArray[np.intp]]:
    """Return one scorer's tie groups, and the row indices from the highest score down."""
    values, positive, weight = rows.scores[scorer], rows.positive, rows.weight
    order = np.argsort(values)[::-1]
    values, positive = values[order], positive[order]
    first_of_group = np.empty(values.size, dtype=bool)
    first_of_group[0] = True
    np.not_equal(values[1:], values[:-1], out=first_of_group[1:])
    group = np.cumsum(first_of_group, dtype=np.intp) - 1
    negative = ~positive
    if weight is None:
        classes = ClassRows(group[positive], None), ClassRows(group[negative], None)
    else:
        weight = weight[order]
        classes = (
            ClassRows(group[positive], weight[positive]),
            ClassRows(group[negative], weight[negative]),
        )
    n_groups = int(group[-1]) + 1
    flagged = (prefix_sums(each.mass_by_group(n_groups)) for each in classes)
    return RowGroups(values[first_of_group], *classes, *flagged), order


def effective_units(rows: EvaluatedRows) -> tuple[float, float]:
    """Return the effective numbers of independent units (groups, or rows without groups) of each class."""
    positive, negative = rows.positive, ~rows.positive
    return _effective(rows, positive), _effective(rows, negative)


def _effective(rows: EvaluatedRows, of_class: NDArray[np.bool_]) -> float:
    if not of_class.any():
        return 0.0
    weight = None if rows.weight is None else rows.weight[of_class]
    if rows.unit is not None:
        weight = sum_by_unit(weight, rows.unit[of_class])
    return float(np.count_nonzero(of_class)) if weight is None else effective_number(weight)


def count_units(rows: EvaluatedRows) -> tuple[int, int]:
    """Return the numbers of groups (or rows) that contain positives and that contain negatives."""
    if rows.unit is None:
        n_positive = int(np.count_nonzero(rows.positive))
        return n_positive, rows.positive.size - n_positive
    units = (np.unique(rows.unit[own]).size for own in (rows.positive, ~rows.positive))
    n_positive, n_negative = units
    return n_positive, n_negative


def has_enough(effective: float, needed: int) -> bool:
    return effective >= needed * (1.0 - 1e-9)


def effective_rows(mass: FloatArray, squares: FloatArray) -> float:
    """Return Kish's effective number of rows, (Σw)² / Σw²: equally weighted rows that give the same variance."""
    return float(mass.sum()) ** 2 / float(squares.sum())


def effective_number(weight: FloatArray) -> float:
    return effective_rows(weight, weight**2)


@overload
def sum_by_unit(values: FloatArray, unit: NDArray[np.intp] | None) -> FloatArray: ...


@overload
def sum_by_unit(values: FloatArray | None, unit: NDArray[np.intp]) -> FloatArray: ...


def sum_by_unit(values: FloatArray | None, unit: NDArray[np.intp] | None) -> FloatArray | None:
    """Sum a value (None: count rows) by group; without groups return the values themselves."""
    if unit is None:
        return values
    return np.bincount(unit, values).astype(np.float64, copy=False)


def finite_vector(name: str, values: ArrayLike, length: int | None = None) -> FloatArray:
    vector = as_numbers(name, as_vector(name, values))
    if length is not None and vector.size != length:
        raise InvalidData(
            f"{name} must have one value for each of the {length} rows of y, got {vector.size}"
        )
    finite = np.isfinite(vector)
    if not finite.all():
        index = int(np.argmin(finite))
        raise InvalidData(f"{name} must be finite, got {vector[index]} at index {index}")
    return vector


def check_probabilities(values: FloatArray) -> None:
    outside = ~((values >= 0.0) & (values <= 1.0))
    if outside.any():
        index = int(np.argmax(outside))
        raise InvalidData(f"probability must be in [0, 1], got {values[index]} at index {index}")


def check_weights(
    sample_weight: ArrayLike | None, length: int, name: str = "sample_weight"
) -> FloatArray:
    if sample_weight is None:
        return np.ones(length)
    weight = finite_vector(name, sample_weight, length)
    check_range(name, weight, "at index")
    if not weight.any():
        raise InvalidData(f"{name} must be above 0 for some row, got 0 for every row")
    return weight


@kernel(
    numba.int64(
        numba.float64[::1],
        numba.float64[::1],
        numba.intp[::1],
        numba.intp[::1],
        numba.float64[::1],
        numba.float64[::1],
        numba.float64[::1],
    )
)
def _merge(  # type: ignore[no-untyped-def]
    positives, negatives, of_positives, of_negatives, distinct, above_positives, above_negatives
):
    """Merge the ascending scores of two classes into tie groups, numbered from the greatest score on; return their
    number.

    Each step takes the next row of either class without a branch: which class comes next cannot be predicted.
    of_positives, of_negatives: receive the tie group of each row, highest score first; distinct: the distinct scores,
    falling; above_positives, above_negatives: the number of rows at or above each, after a leading 0.
    """
    n_positives, n_negatives = np.uint64(len(positives)), np.uint64(len(negatives))
    p, n, n_groups = np.uint64(0), np.uint64(0), np.uint64(0)
    one, last = np.uint64(1), np.inf
    while p < n_positives and n < n_negatives:
        own, other = positives[n_positives - one - p], negatives[n_negatives - one - n]
        from_positives = np.uint64(own >= other)
        value = max(own, other)
        n_groups += np.uint64(value != last)
        # Only the row taken keeps its number; the other is numbered again when its turn comes.
        of_positives[p] = of_negatives[n] = n_groups - one
        distinct[n_groups - one] = last = value
        p += from_positives
        n += one - from_positives
        above_positives[n_groups], above_negatives[n_groups] = p, n
    while p < n_positives or n < n_negatives:
        of_left = p < n_positives
        value = positives[n_positives - one - p] if of_left else negatives[n_negatives - one - n]
        n_groups += np.uint64(value != last)
        if of_left:
            of_positives[p] = n_groups - one
            p += one
        else:
            of_negatives[n] = n_groups - one
            n += one
        distinct[n_groups - one] = last = value
        above_positives[n_groups], above_negatives[n_groups] = p, n
    return np.int64(n_groups)
