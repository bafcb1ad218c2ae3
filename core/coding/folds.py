"""Folds for out-of-fold target encoding: a row's encoded value is computed without the row itself."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.base.ranker import Floats
from core.base.splits import draw_folds
from core.base.state import Integers
from core.base.training import TrainingData

N_FOLDS = 5

# Rows that are added to those of a category, with the fraction of positives of all rows.
PRIOR_ROWS = 10.0

# Equal rows are taken for copies of one, and stay in one fold, in two cases: a category has at least this many distinct
# rows on average,
MIN_DISTINCT_ROWS = 2
# or of two equal rows, one of them positive, both are positive in at least this fraction of cases. Otherwise rows
# consist of their category alone, and equal rows tell of each other.
MIN_AGREEMENT = 0.9


class Folds(NamedTuple):
    """Folds of the training rows, in which a row's encoded value is computed from the rows of the other folds."""

    apart: Integers
    """Folds that separate copies of a row. Shape (n_rows,)."""
    together: Integers | None
    """Folds that separate no group or, without groups, no equal rows; None if every row stands for itself. Shape
    (n_rows,), or None."""
    unit: Integers | None
    """What `together` does not separate, numbered. Shape (n_rows,), or None."""
    is_group: bool
    """Whether units are groups."""
    are_copies: bool
    """Whether the labels of equal rows agree; see `MIN_AGREEMENT`."""

    @classmethod
    def of(cls, data: TrainingData, seed: int) -> "Folds":
        """Return random folds of the training rows. Rows of a group share a fold.

        Without groups equal rows do, if they are taken for copies: see `MIN_DISTINCT_ROWS` and `MIN_AGREEMENT`.
        """
        apart = draw_folds(data.positive, N_FOLDS, seed)
        unit = data.number_inseparable()
        together = None if unit is None else draw_folds(data.positive, N_FOLDS, seed, unit)
        are_copies = unit is not None and _agree(unit, data.positive) >= MIN_AGREEMENT
        return cls(apart, together, unit, data.group is not None, are_copies)

    def choose(self, known: npt.NDArray[np.bool_], category: Integers) -> Integers:
        """Return each row's fold for one feature: equal rows kept together or not, depending on its categories."""
        if self.together is None or self.unit is None:
            return self.apart
        if self.is_group:
            return (
                self.together if self.together.any() else self.apart
            )  # one group says nothing about others
        n_distinct = np.count_nonzero(np.bincount(self.unit[known]))
        n_present = np.count_nonzero(np.bincount(category))
        is_apart = not self.are_copies and n_distinct < MIN_DISTINCT_ROWS * n_present
        return self.apart if is_apart else self.together

    def take(self, rows: Integers) -> "Folds":
        together = None if self.together is None else self.together[rows]
        unit = None if self.unit is None else self.unit[rows]
        return self._replace(apart=self.apart[rows], together=together, unit=unit)


def _agree(unit: Integers, positive: npt.NDArray[np.bool_]) -> float:
    """Return the fraction of row pairs within a group of equal rows, with a positive, that are both positive."""
    rows = np.bincount(unit).astype(np.float64)
    positives = np.bincount(unit, positive)
    negatives = rows - positives
    both = (positives * (positives - 1)).sum()
    either = (rows * (rows - 1) - negatives * (negatives - 1)).sum()
    return float(both / either) if either else 0.0


def scale_to_all(mass: Floats) -> Floats:
    """Return each category's weight outside each fold, (n_folds, n_categories), scaled up to all folds."""
    of_fold = mass.sum(axis=1)
    others = of_fold.sum() - of_fold
    scale = of_fold.sum() / np.where(others > 0.0, others, 1.0)
    scaled: Floats = np.maximum(mass.sum(axis=0) - mass, 0.0) * scale[:, None]
    return scaled
