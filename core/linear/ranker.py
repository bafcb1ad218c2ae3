"""Linear rankers: the fitted state, scores, contributions and words that all SVMs share."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from core.arrays import check_array
from core.coding import youden_threshold
from core.errors import ArtifactError, InvalidData
from core.ranker import Arrays, Floats, FollowingFit

from .design import (
    Coefficients,
    Coordinates,
    Sample,
    TableRows,
    check_coordinates,
    place,
    split_scores,
)

MOST_TERMS = 1000


class LinearRanker(FollowingFit):
    """Scores as a sum over features: a slope per number, a worth per category and per missing value.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features_in_,), float64
        Change of the score per unit of a numeric feature; 0 for a categorical one.
    intercept_ : float
        `predict` cuts at 0: at the Youden point of the training rows.
    offset_ : float
        The mean score of the training rows, weighted: what contributions are counted from.
    """

    intercept_: float
    coef_: Floats
    offset_: float
    _coordinates: Coordinates
    _w: Floats
    _means: Floats
    _effects: Coefficients

    path_parameter: ClassVar[str | None] = "C"  # what one solver knows of the rows serves the next

    @classmethod
    def vc_dimension(
        cls, parameters: Mapping[str, Any], n_features: int, *, missing: bool
    ) -> int | None:
        """Give the VC dimension of the cuts of all scores that it may learn; None where the rows shape them.

        Parameters
        ----------
        parameters : mapping of str to value
        n_features : int
            All numeric: the categories of others come from the rows.
        missing : bool
            Whether values may be missing.

        Returns
        -------
        int or None
            One more than the coordinates. Standardised or not, linear scores are the same set; a missing value may be
            worth anything, which is a coordinate more for each column. A feature map is learnt from the rows.
        """
        if parameters.get("feature_map") is not None:
            return None
        return (2 if missing else 1) * n_features + 1

    def check_path_parameters(self) -> None:
        """Raise nothing: a fit follows a path of C under any parameters."""

    def takes_categories(self) -> bool:
        """Whether it can be fitted on categorical columns: each category is a coordinate."""
        return True

    def decision_function(self, X: Any) -> Floats:
        """Score rows: the higher, the more likely positive; above 0, `predict` says positive.

        Parameters
        ----------
        X : array, table or scipy.sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        if not sparse.issparse(X):
            return super().decision_function(X)
        check_is_fitted(self)
        return self.score_rows(self._matrix(X, reset=False))

    def score_rows(self, X: Floats) -> Floats:
        """Score rows without any check; see `Ranker.score_rows`."""
        return place(X, self._coordinates).scores(self._w) + self.intercept_

    def contributions(self, X: Any) -> Floats:
        """Say how each row differs from the average training row, feature by feature.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            decision_function(X) is offset_, the mean training score, plus the sum of each row.
        """
        parts = split_scores(self._checked_rows(X), self._coordinates, self._effects)
        return np.asarray(parts - self._means)

    def structure(self) -> dict[str, Any]:
        """Describe the sum: what a unit, a category and a missing value are worth, the weightiest first."""
        terms = sorted(self._terms(), key=lambda term: -abs(term["standardized"]))
        return {
            "type": "linear",
            "intercept": self.intercept_,
            "offset": self.offset_,
            "n_terms": len(terms),
            "terms": terms[:MOST_TERMS],
            **self._figures(),
        }

    def _terms(self) -> list[dict[str, Any]]:
        """List what is added: per unit of a feature, and `standardized`: per standard deviation, or for being there."""
        terms: list[dict[str, Any]] = []
        slope, missing, table = self._effects
        for j, names in enumerate(self.categories_):
            feature = self._feature_name(j)
            if names is None and self._w[j] != 0.0:
                terms.append(
                    {
                        "feature": feature,
                        "weight": float(slope[j]),
                        "standardized": float(self._w[j]),
                    }
                )
            for k, category in enumerate(names or ()):
                worth = float(table[self._coordinates.first[j] + k])
                terms.append(
                    {"feature": feature, "is": category, "weight": worth, "standardized": worth}
                )
            if self._coordinates.has_missing[j]:
                worth = float(missing[j])
                terms.append(
                    {"feature": feature, "is": None, "weight": worth, "standardized": worth}
                )
        return terms

    @abstractmethod
    def _figures(self) -> dict[str, Any]:
        """Give what else there is to tell of the fit, ready for JSON."""

    def _take(self, coordinates: Coordinates, w: Floats, intercept: float, means: Floats) -> None:
        self._coordinates, self._w, self._means = coordinates, w, means
        self._effects = coordinates.unfold(w)
        self.coef_ = self._effects.slope
        self.intercept_ = intercept
        self.offset_ = intercept + float(means.sum())

    def _take_fit(self, sample: Sample, w: Floats) -> None:
        """Take the coefficients; find the intercept and the mean part of each feature."""
        self._take_line(sample, w, find_intercept(sample, w))

    def _take_line(self, sample: Sample, w: Floats, intercept: float) -> None:
        """Take coefficients and intercept; find the mean part of each feature."""
        rows = sample.rows
        assert isinstance(rows, TableRows)
        means = rows.coordinates.by_column(sample.mean() * w)
        self._take(rows.coordinates, w, intercept, means)

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """Check X; a sparse matrix stays one."""
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
                f"X must be a table, as at fit: {self._categorical_names()} are categorical"
            )
        return matrix

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        c = self._coordinates
        arrays = {
            "center": c.center,
            "unit": c.unit,
            "has_missing": c.has_missing,
            "w": self._w,
            "means": self._means,
        }
        return arrays, {"intercept": self.intercept_}

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        p = self.n_features_in_
        for name in ("center", "unit", "means"):
            check_array(name, arrays[name], np.float64, (p,))
        check_array("has_missing", arrays["has_missing"], np.bool_, (p,))
        center, unit, has_missing, w, means = (
            arrays[name] for name in ("center", "unit", "has_missing", "w", "means")
        )
        n_categories = self._n_categories()
        coordinates = Coordinates(center, unit, has_missing, n_categories)
        check_array("w", w, np.float64, (coordinates.size,))
        check_state(arrays, n_categories, meta["intercept"])
        self._take(coordinates, w, meta["intercept"], means)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def find_intercept(sample: Sample, w: Floats) -> float:
    """Find what puts the Youden point of the rows at 0."""
    rows, positives, _, weight = sample
    positive = np.zeros(len(weight), dtype=np.bool_)
    positive[positives] = True
    scores = rows.scores(w)
    cut = youden_threshold(scores, positive, weight)
    if cut is None:
        return -0.0
    # halfway to the next score: no row stands on the cut, where rounding would decide
    return -float(0.5 * (cut.value + scores[scores > cut.value].min()))


def check_state(
    arrays: Mapping[str, npt.NDArray[Any]], n_categories: npt.NDArray[np.int64], intercept: Any
) -> None:
    """Refuse coefficients that no fit can leave with ArtifactError."""
    check_coordinates(arrays, n_categories)
    for name, most in {"w": 1e80, "means": 1e290}.items():
        if not (abs(arrays[name]) <= most).all():
            raise ArtifactError(f"{name} must be finite, at most {most:g} in size")
    check_intercept(intercept)


def check_intercept(intercept: Any) -> None:
    """Refuse what is no finite number with ArtifactError."""
    if type(intercept) is not float or not abs(intercept) <= 1e290:
        raise ArtifactError(f"intercept must be a finite number, got {intercept!r}")


def check_figure(name: str, value: Any) -> None:
    """Refuse what is no finite number, or negative, with ArtifactError."""
    if type(value) is not float or not 0.0 <= value < math.inf:
        raise ArtifactError(f"{name} must be a finite number, not negative, got {value!r}")


def check_count(name: str, value: Any, most: int) -> None:
    """Refuse what is no whole number from 0 to `most` with ArtifactError."""
    if type(value) is not int or not 0 <= value <= most:
        raise ArtifactError(f"{name} must be an integer from 0 to {most}, got {value!r}")
