"""Linear rankers: the fitted state, scores, contributions and descriptions that all linear machines share."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge, Le
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from core.base.monotone import Directions, Verification
from core.base.ranker import Callback, ContributionRanker, FitCost, Floats, PathEstimator
from core.base.state import FINITE, Array, Nested, Value, declared_fields
from core.base.training import TrainingData
from core.coding import youden_threshold
from core.errors import ArtifactError, InvalidData, InvalidParameter

from .blas import one_blas_thread
from .design import Columns, Coordinates, FeatureMap, LinearRows, LinearSample, fit_design

# Terms that `structure` lists; the others are only counted.
MAX_TERMS = 1000

NonNegative = Annotated[float, Value(), Ge(0.0), FINITE]
"""A number that a fit finds and an artifact stores."""


class LinearRanker(ContributionRanker, PathEstimator):
    """Base class of linear rankers: the score is linear in the columns or in a feature map of them.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one. Only without a feature map.
    intercept_ : float
        Chosen so that `predict` has the threshold with the greatest TPR - FPR on the training rows (Youden's index).
    offset_ : float
        Weighted mean score of the training rows; contributions are differences from it. With `crosses` it is the mean
        of the out-of-fold scores: each training row's cross features come from the other folds.
    map_ : FeatureMap
        Maps a row to its coordinates.
    """

    intercept_: Annotated[float, Value(), Ge(-1e290), Le(1e290)]
    coef_: Floats
    offset_: float
    standardize: bool
    map_: Annotated[FeatureMap, Nested()]
    _w: Annotated[Floats, Array("n_weights"), Ge(-1e80), Le(1e80)]
    _means: Annotated[Floats, Array("n_means"), Ge(-1e290), Le(1e290)]

    fit_cost = FitCost(0.5e-6)

    path_parameter: ClassVar[str | None] = "C"  # each fit on the path starts from the one before

    @classmethod
    def vc_dimension(
        cls, parameters: Mapping[str, Any], n_features: int, *, missing: bool
    ) -> int | None:
        """Return the VC dimension of the sets {score > t} over all fits on numeric columns.

        It is the number of coordinates plus 1. A column whose values may be missing has two coordinates.

        Parameters
        ----------
        parameters : mapping of str to Any
            Constructor parameters.
        n_features : int
            Number of numeric columns.
        missing : bool
            Whether values may be missing.

        Returns
        -------
        int or None
            None with a feature map, which depends on the rows.
        """
        if parameters.get("feature_map") is not None:
            return None
        return (2 if missing else 1) * n_features + 1

    def check_path_parameters(self) -> None:
        """Accept all parameters: every fit can follow a path of C."""

    def takes_categories(self) -> bool:
        return True

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of an array, a table or a scipy.sparse matrix; higher is more likely positive.

        Parameters
        ----------
        X : array, table or scipy.sparse matrix of shape (n_samples, n_features)
            Rows with the columns of `fit`.
        """
        if not sparse.issparse(X):
            return super().decision_function(X)
        check_is_fitted(self)
        return self.score_rows(self._matrix(X, reset=False))

    def score_rows(self, X: Any) -> Floats:
        return self.map_.transform(X).scores(self._w) + self.intercept_

    def _contributions(self, X: Floats) -> Floats:
        """Return each feature's contribution to the scores of checked rows; needs a map of single columns."""
        parts = self.map_.split(X, self._w)
        if parts is None:
            raise InvalidParameter(
                "contributions require feature_map None or 'bins', got "
                f"{self.map_.describe(self._columns())['map']!r}: scores are not sums over features"
            )
        return np.asarray(parts - self._means)

    def structure(self) -> dict[str, Any]:
        """Describe the score as JSON: its terms, largest first, and the metrics of the fit."""
        columns = self._columns()
        n_terms, terms = self.map_.terms(self._w, self._means, columns, MAX_TERMS)
        return {
            "type": "linear",
            **self.map_.describe(columns),
            "intercept": self.intercept_,
            "offset": self.offset_,
            "n_terms": n_terms,
            "terms": terms,
            **self._metrics(),
        }

    def walk_monotone(self, directions: Directions) -> Verification:
        walk = self.map_.walk_monotone(self._w, directions, self.score_rows)
        return super().walk_monotone(directions) if walk is None else walk

    def _columns(self) -> Columns:
        names = tuple(self._feature_name(j) for j in range(self.n_features_in_))
        return Columns(names, self.categories_)

    def _signs(self, rows: LinearRows) -> Directions | None:
        directions = self.find_directions()
        if directions is None:
            return None
        signs = np.zeros(rows.size, dtype=np.int8)
        signs[: len(directions)] = directions  # a number's coordinate rises with it
        return signs

    def _metrics(self) -> dict[str, Any]:
        return {
            declared.name: getattr(self, declared.attribute)
            for declared in declared_fields(type(self))
            if isinstance(declared.field, Value) and declared.name != "intercept"
        }

    def _fit(self, data: TrainingData, callback: Callback) -> None:
        with one_blas_thread():
            classes = np.flatnonzero(data.positive), np.flatnonzero(~data.positive)
            sample = LinearSample(self._fit_design(data, callback), *classes, data.weight)
            self._fit_sample(data, sample, callback)

    @abstractmethod
    def _fit_sample(self, data: TrainingData, sample: LinearSample, callback: Callback) -> None:
        """Fit the coefficients on all rows, given in coordinates by `sample`."""

    def _fit_design(self, data: TrainingData, callback: Callback) -> LinearRows:
        rows = fit_design(data.X, data.weight, data.n_categories, standardize=self.standardize)
        self.map_ = rows.coordinates
        return rows

    def _take_fit(self, sample: LinearSample, w: Floats, intercept: float | None = None) -> None:
        """The intercept is computed if None."""
        mean = sample.mean()
        self.intercept_ = find_intercept(sample, w) if intercept is None else intercept
        self._means = self.map_.sums(mean * w)
        self._w = sample.rows.finish(w, mean)
        self._restore()

    def _known_sizes(self) -> dict[str, Any]:
        return super()._known_sizes() | {"map_": Coordinates}

    def _restore(self) -> None:
        n_means = len(self.map_.sums(np.zeros(self.map_.size)))
        for name, array, length in (
            ("w", self._w, self.map_.size),
            ("means", self._means, n_means),
        ):
            if len(array) != length:
                raise ArtifactError(f"{name} must have {length} values, got {len(array)}")
        self.offset_ = self.intercept_ + float(self._means.sum())
        slopes = self.map_.slopes(self._w)
        if slopes is not None:
            self.coef_ = slopes

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        if not sparse.issparse(X):
            return super()._matrix(X, reset=reset)
        try:
            matrix = validate_data(
                self,
                X,
                reset=reset,
                dtype=np.float64,
                accept_sparse="csr",
                ensure_all_finite="allow-nan",
            )
        except ValueError as error:
            raise InvalidData(str(error)) from error
        if reset:
            self.categories_ = (None,) * matrix.shape[1]
        elif self._n_categories().any():
            raise InvalidData(
                f"X must be a table, as in fit, for its categorical columns: {self._categorical_names()}"
            )
        return matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def find_intercept(sample: LinearSample, w: Floats) -> float:
    """Return the intercept that moves the Youden point (greatest TPR - FPR) of the rows' scores to 0."""
    rows, positives, _, weight = sample
    positive = np.zeros(len(weight), dtype=np.bool_)
    positive[positives] = True
    scores = rows.scores(w)
    cut = youden_threshold(scores, positive, weight)
    if cut is None:
        return -0.0
    # halfway to the next score: no row stands on the cut, where rounding would decide
    return -float(0.5 * (cut.value + scores[scores > cut.value].min()))
