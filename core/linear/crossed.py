"""Coordinates of a linear score for a table with crosses (pairs) of categorical features.

A linear score adds what a town and a month tell, each alone. A cross of them (`core.coding.crosses`) is two columns of
numbers more: the log odds of both together beyond those of each, and the logarithm of 1 plus their number of rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.base.monotone import Directions, Verification
from core.base.ranker import Floats
from core.base.state import Known, Nested
from core.coding.crosses import COLUMNS, Crossed, Crosses

from .design import Columns, Coordinates, FeatureMap, LinearRows, TableRows, fit_design


@dataclass(frozen=True, eq=False)
class CrossedCoordinates(FeatureMap):
    """The map from a table to coordinates of a linear score: its columns', then those of its crosses."""

    crosses: Annotated[Crosses, Nested()]
    coordinates: Annotated[Coordinates, Nested()]
    """Of the table's columns, then of those of the crosses."""

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], known: Known, meta: Known | None = None
    ) -> Self:
        crosses = Crosses.from_arrays(arrays, known, meta)
        return cls(crosses, Coordinates.from_arrays(arrays, crosses.extend_known(known), meta))

    @property
    def size(self) -> int:
        return self.coordinates.size

    def transform(self, X: Any) -> LinearRows:
        return self.coordinates.transform(self.extend(X))

    def slopes(self, w: Floats) -> Floats:
        """Return the coefficient of each numeric column in the score, without the contribution of its crosses."""
        slopes: Floats = self.coordinates.slopes(w)[: len(self.crosses.n_categories)]
        return slopes

    def sums(self, parts: Floats) -> Floats:
        """Return the sums of `parts`, (size,), per feature; a cross's part goes to its two features equally."""
        sums: Floats = self.crosses.fold(self.coordinates.sums(parts)[None, :])[0]
        return sums

    def split(self, X: Floats, w: Floats) -> Floats:
        return self.crosses.fold(self.coordinates.split(self.extend(X), w))

    def walk_monotone(
        self, w: Floats, directions: Directions, score: Callable[[Floats], Floats]
    ) -> Verification:
        """Verify monotone constraints by coefficient signs; a constrained feature in a cross counts as violated."""
        n_features = len(directions)
        further = np.zeros(self.crosses.n_columns, dtype=directions.dtype)
        walk = self.coordinates.walk_monotone(w, np.append(directions, further), score)
        found = [
            replace(each, rows=None if each.rows is None else each.rows[:, :n_features])
            for each in walk.violations
        ]
        slope = self.coordinates.slopes(w)[n_features:].reshape(-1, COLUMNS)
        tried = self.crosses.try_constraints(
            np.flatnonzero(slope.any(axis=1)).tolist(), directions, score
        )
        return replace(walk, violations=[*found, *tried], is_sum=True)

    def terms(
        self, w: Floats, means: Floats, columns: Columns, limit: int
    ) -> tuple[int, list[dict[str, Any]]]:
        names = tuple(
            self.crosses.name(j, columns.names.__getitem__, logs=True)
            for j in range(len(self.crosses.extended_categories))
        )
        extended = Columns(names, columns.categories + (None,) * self.crosses.n_columns)
        return self.coordinates.terms(w, means, extended, limit)

    def describe(self, columns: Columns) -> dict[str, Any]:
        return {"crosses": self.crosses.describe(columns.names.__getitem__)}

    def extend(self, X: Any) -> Any:
        """Return the table with the crosses' columns appended; a sparse matrix is returned as it is."""
        if sparse.issparse(X) or not self.crosses.n_columns:
            return X
        return self.crosses.extend(X, logs=True)


def fit_crossed(
    X: Any, weight: Floats, crossed: Crossed, *, standardize: bool
) -> tuple[CrossedCoordinates, TableRows]:
    """Fit the coordinates of a table's columns and crosses; return them and the training rows in them.

    crossed: of the same rows; with logarithms.
    standardize: see `fit_design`.
    """
    crosses = crossed.crosses
    if crosses.n_columns:
        X = np.concatenate([X, crossed.X], axis=1)
    rows = fit_design(X, weight, crosses.extended_categories, standardize=standardize)
    return CrossedCoordinates(crosses, rows.coordinates), rows
