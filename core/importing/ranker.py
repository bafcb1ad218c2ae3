"""The ranker that scores with imported trees."""

from dataclasses import replace
from typing import Annotated, Any, NoReturn

import numpy as np

from core.base.mixed import MixedRows
from core.base.monotone import Directions, Verification, Violation
from core.base.ranker import Callback, ContributionRanker, Floats
from core.base.state import NOT_INFINITE, Array, Constraint, Nested, Value
from core.base.training import TrainingData
from core.boosting.tree_sum import TreeSum
from core.errors import InvalidParameter

NAME = "imported_trees"
"""The name of the algorithm in artifacts."""


_SHORT = Constraint(
    "at most 120 characters", lambda values: np.asarray(np.char.str_len(values) <= 120)
)


class ImportedTrees(ContributionRanker):
    """Trees that LightGBM or XGBoost trained, as `import_model` returns them.

    `fit` raises InvalidParameter. The score is the raw score of the library (its margin), equal bit for bit; that of
    LightGBM's random forests is the sum of the trees. `predict` flags the rows above 0. Contributions and Shapley
    values use the training weights in the file, and add up in double precision.

    Attributes
    ----------
    ensemble_ : TreeSum
        The trees.
    source_ : str
        The library and the version of the file, such as "XGBoost 3.2.0".
    is_float32_ : bool
        Whether the sum is rounded to float32 after each tree, as XGBoost computes it.
    missing_low_, missing_high_ : ndarray of shape (n_features_in_,), float64
        The values of a feature between these, both included, count as missing. NaN: none does.

    Examples
    --------
    >>> from core import ImportedTrees
    >>> ImportedTrees().get_params()
    {}
    """

    ensemble_: Annotated[TreeSum, Nested()]
    source_: Annotated[str, Value(), _SHORT]
    is_float32_: Annotated[bool, Value()]
    missing_low_: Annotated[Floats, Array("n_features"), NOT_INFINITE]
    missing_high_: Annotated[Floats, Array("n_features"), NOT_INFINITE]

    def __init__(self) -> None:
        """Take no parameters."""

    @property
    def intercept_(self) -> float:
        """The constant of the sum: XGBoost's base margin."""
        return self.ensemble_.constant

    @property
    def offset_(self) -> float:
        """Mean score of the training rows, by the leaf weights; contributions are differences from it."""
        return self.ensemble_.mean

    def score_rows(self, X: Floats) -> Floats:
        return self.ensemble_.score(self._replace_missing(X), 0.0, is_float32=self.is_float32_)

    def score_mixed(self, mixed: MixedRows) -> Floats:
        rows, references = map(self._replace_missing, (mixed.rows, mixed.references))
        return self.ensemble_.score_mixed(replace(mixed, rows=rows, references=references), 0.0)

    def _contributions(self, X: Floats) -> Floats:
        return self.ensemble_.contributions(self._replace_missing(X))

    def shapley_values(self, X: Any) -> Floats:
        return self.ensemble_.shapley_values(self._replace_missing(self.checked_rows(X)))

    def count_shapley_steps(self) -> int:
        return self.ensemble_.count_shapley_steps()

    def walk_monotone(self, directions: Directions) -> Verification:
        found = self.ensemble_.walk_monotone(directions)
        return replace(found, violations=[*map(self._of_known_values, found.violations)])

    def _of_known_values(self, found: Violation) -> Violation:
        """Return a violation; without an example if one of its values counts as missing, which has no order."""
        assert found.rows is not None
        values = found.rows[:, found.column].copy()
        low, high = self.missing_low_[found.column], self.missing_high_[found.column]
        if not ((low <= values) & (values <= high)).any():
            return found
        return replace(found, rows=np.tile(found.rows[0], (2, 1)))

    def takes_categories(self) -> bool:
        return True

    def structure(self) -> dict[str, Any]:
        """Describe the model: where it is from, and the size of each tree."""
        return {
            "type": "imported trees",
            "source": self.source_,
            "intercept": self.intercept_,
            "offset": self.offset_,
            "trees": [{"leaves": n} for n in self.ensemble_.rounds["n_leaves"].tolist()],
        }

    def _replace_missing(self, X: Floats) -> Floats:
        if np.isnan(self.missing_low_).all():
            return X
        return np.where((self.missing_low_ <= X) & (self.missing_high_ >= X), np.nan, X)

    def _fit(self, data: TrainingData, callback: Callback) -> NoReturn:
        raise InvalidParameter(
            "imported trees cannot be fitted: import_model makes them from a file"
        )
