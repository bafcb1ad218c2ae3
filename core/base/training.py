"""The training data of a ranker: checked rows with their labels, weights and groups."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from core.errors import InvalidData

from .columns import ColumnTable
from .splits import draw_part, hold_out, join_units, number_inseparable
from .warning import warn

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
Groups = npt.NDArray[np.uint64]
"""A value per row: rows with equal values belong together."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked training rows (labels, weights, groups, queries), all of weight above 0."""

    X: Any
    """Shape (n_rows, n_features), float64: NaN is missing, a category is its position. CSR, or a ColumnTable, for the
    rankers that accept them."""
    positive: Booleans
    """Shape (n_rows,), or (n_rows, n_labels). With grades, which rows have a grade above the least one."""
    weight: Floats
    """Shape (n_rows,)."""
    n_categories: Integers
    """Shape (n_features,); 0 for a numeric feature."""
    group: Groups | None = None
    """Shape (n_rows,): rows of a group are never separated; None: equal rows are not."""
    query: Integers | None = None
    """Shape (n_rows,): only pairs of rows of one query count; None: all pairs of rows do."""
    grade: Integers | None = None
    """Shape (n_rows,); None for two classes, or labels."""

    def arrays(self) -> tuple[Any, ...]:
        """Return the fields that are not None, X first, for hashing."""
        values = (getattr(self, field.name) for field in fields(TrainingData))
        return tuple(value for value in values if value is not None)

    @property
    def target(self) -> Integers:
        """The grade of each row: 0 and 1 for two classes."""
        return self.positive.astype(np.int64) if self.grade is None else self.grade

    def take(self, rows: npt.NDArray[Any]) -> Self:
        """The rows are a mask, or ascending indices."""
        X, weight = self.X, self.weight
        if isinstance(X, ColumnTable):
            mask = np.zeros(len(weight), dtype=np.bool_)
            mask[rows] = True
            X = X.take(mask)
        else:
            X = X[rows]
        positive = self.positive[rows]
        is_one_number = weight.strides == (0,)  # that takes no memory
        return replace(
            self,
            X=X,
            positive=positive,
            weight=np.broadcast_to(weight[0], len(positive)) if is_one_number else weight[rows],
            group=None if self.group is None else self.group[rows],
            query=None if self.query is None else self.query[rows],
            grade=None if self.grade is None else self.grade[rows],
        )

    def present(self) -> Self:
        """Return the rows of weight above 0, their groups and queries numbered from 0 as if there were no others."""
        if (self.weight > 0).all():
            return self
        data = self.take(self.weight > 0)
        if data.group is not None:
            number = np.unique(data.group, return_inverse=True)[1]
            data = replace(data, group=number.astype(np.uint64))
        if data.query is not None:
            number = np.unique(data.query, return_inverse=True)[1]
            data = replace(data, query=number.astype(np.int64))
        return data

    def number_inseparable(self) -> Integers | None:
        return number_inseparable(self.X, self.positive, self.weight, self.group)

    def hold_out(self, fraction: float, seed: int) -> Booleans | None:
        """Return the mask of a validation part, drawn by row values; see `core.base.splits.hold_out`."""
        return hold_out(self.X, self.positive, self.weight, fraction, seed, self.group)

    def within_queries(self) -> Self:
        """Return the rows of queries with at least two grades; without queries all rows form one query.

        A group of the result is one of whole queries, so that neither is separated. Queries are numbered from 0.

        InvalidData: no query has rows of two classes, or grades.
        """
        group = self.group
        if self.query is not None:
            group = join_units(group, self.query.astype(np.uint64))
        query = np.zeros(len(self.weight), dtype=np.int64) if self.query is None else self.query
        return replace(self, group=group, query=query).with_pairs()

    def with_pairs(self) -> Self:
        """Return the rows of queries with at least two grades; raise InvalidData if there are none."""
        assert self.query is not None
        used = has_pairs(self.target, self.query)
        if not used.any():
            raise InvalidData(
                f"at least one query must have rows of two {'classes' if self.grade is None else 'grades'} with "
                "weight above 0"
            )
        data = self.take(used)
        number = np.unique(self.query[used], return_inverse=True)[1].astype(np.int64)
        return replace(data, query=number, positive=data.target > data.target.min())

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Self]:
        """Return random training and validation parts, stratified by class, or of whole queries.

        Rows of a group stay on one side, or without groups equal rows: see `core.base.splits.number_inseparable`. If
        equal rows leave a part without a class, they are parted, and a UserWarning says so.

        InvalidData: a class has only one row, or group, or a part would have no row of a class; with queries, no pairs.
        """
        unit = self.number_inseparable()
        validation_mask = draw_part(self.positive, fraction, seed, unit)
        if self.query is not None:
            return self._part_queries(validation_mask)
        if validation_mask is None and self.group is not None:
            raise InvalidData(
                "early stopping requires rows of each class in at least 2 groups: some are held out, and the "
                "rows of a group stay together"
            )
        if validation_mask is None and unit is not None:
            validation_mask = draw_part(self.positive, fraction, seed)
            if validation_mask is not None:
                warn(
                    "early stopping holds out duplicates of training rows, because all rows of a class are equal: the "
                    "number of rounds may be too high. Set n_rounds, or add features that distinguish the rows"
                )
        if validation_mask is None:
            raise InvalidData(
                "early stopping requires at least 2 rows of positive weight in each class, got 1"
            )
        parts = self.take(~validation_mask), self.take(validation_mask)
        if any(part.positive.all() or not part.positive.any() for part in parts):
            raise InvalidData(
                "early stopping requires labels of 0 and 1 in the training and in the validation part: use "
                "more rows, or another validation_fraction or random_state"
            )
        return parts

    def _part_queries(self, validation_mask: Booleans | None) -> tuple[Self, Self]:
        """Return training and validation rows of queries with two grades or more; InvalidData if a side is empty."""
        if validation_mask is not None:
            parts = self.take(~validation_mask), self.take(validation_mask)
            if all(has_pairs(part.target, part.query).any() for part in parts):
                return parts[0].with_pairs(), parts[1].with_pairs()
        raise InvalidData(
            "early stopping requires pairs on both sides: at least 2 queries (or groups) with rows of two "
            "grades, because some are held out and rows of a query stay together"
        )


def has_pairs(grade: Integers, query: npt.NDArray[Any] | None) -> Booleans:
    """Return the mask of the rows in a query with at least two grades, shape (n_rows,)."""
    if query is None or not len(grade):
        return np.zeros(len(grade), dtype=np.bool_)
    order = np.lexsort((grade, query))
    grades, queries = grade[order], query[order]
    starts = np.flatnonzero(np.append(True, queries[1:] != queries[:-1]))
    ends = np.append(starts[1:], len(order))
    found = np.empty(len(order), dtype=np.bool_)
    found[order] = np.repeat(grades[starts] < grades[ends - 1], ends - starts)
    return found
