"""Linear rankers over a feature map: not linear in the columns, or linear where there is no map."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.arrays import check_array
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.ranker import Arrays, Floats

from .design import Rows, lay_out
from .fitting import Sample
from .linear import MOST_TERMS, LinearRanker, check_intercept, find_intercept
from .maps import MAPS, BinnedMap, Columns, FeatureMap, MapName, MappedRows, MapSettings, fit_map


class MappedRanker(LinearRanker):
    """A linear ranker over the columns, or over what a feature map makes of them.

    Attributes
    ----------
    bandwidth_ : float or None
        h of the Gaussian kernel; None where there is none.
    """

    feature_map: MapName | None
    n_components: int
    bandwidth: float | Literal["auto"]
    max_bins: int
    standardize: bool
    random_state: int

    bandwidth_: float | None
    _map: FeatureMap

    def score_rows(self, X: Any) -> Floats:
        """Score rows without any check; see `Ranker.score_rows`."""
        if self.feature_map is None:
            return super().score_rows(X)
        return self._map.place(X).scores(self._w) + self.intercept_

    def contributions(self, X: Any) -> Floats:
        """Say how each row differs from the average training row, feature by feature.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
            decision_function(X) is offset_, the mean training score, plus the sum of each row.

        Raises
        ------
        InvalidParameter
            The features of the map are of rows as a whole.
        """
        if self.feature_map is None:
            return super().contributions(X)
        rows = self._checked_rows(X)
        if not isinstance(self._map, BinnedMap):
            raise InvalidParameter(
                f"contributions need feature_map None or 'bins', got {self.feature_map!r}: "
                "scores are not sums of parts per feature"
            )
        return np.asarray(self._map.split(rows, self._w) - self._means)

    def structure(self) -> dict[str, Any]:
        """Describe the sum: the features of the map and what each is worth, the weightiest first."""
        if self.feature_map is None:
            return super().structure()
        names = tuple(self._feature_name(j) for j in range(self.n_features_in_))
        terms = self._map.terms(self._shown_weights(), Columns(names, self.categories_), MOST_TERMS)
        return {
            "type": "linear",
            **self._map.describe(),
            "intercept": self.intercept_,
            "offset": self.offset_,
            "n_terms": self._map.size,
            "terms": terms,
            **self._figures(),
        }

    def _shown_weights(self) -> Floats:
        """Give what features add; of bins beside the column's mean, as contributions do."""
        if not isinstance(self._map, BinnedMap):
            return self._w
        return np.asarray(self._w - np.repeat(self._means, self._map.n_bins + 1))

    def _lay_out(self, X: Any, positive: npt.NDArray[np.bool_], weight: Floats) -> Rows:
        """Learn what the coordinates of rows are, and give the training rows."""
        n_categories = self._n_categories()
        if self.feature_map is None:
            self.bandwidth_ = None
            return lay_out(X, weight, n_categories, standardize=self.standardize)
        settings = MapSettings(
            self.feature_map,
            self.n_components,
            self.bandwidth,
            self.max_bins,
            self.standardize,
            self.random_state,
        )
        self._map, rows = fit_map(settings, X, positive, weight, n_categories)
        return rows

    def _take_fit(self, sample: Sample, w: Floats) -> None:
        rows = sample.rows
        if not isinstance(rows, MappedRows):
            super()._take_fit(sample, w)
            return
        mean = sample.mean()
        parts = mean * w
        own = self._map
        means = own.by_column(parts) if isinstance(own, BinnedMap) else parts.sum(keepdims=True)
        self._take_mapped(rows.finish(w, mean), find_intercept(sample, w), means)

    def _take_mapped(self, w: Floats, intercept: float, means: Floats) -> None:
        self._w, self._means, self.intercept_ = w, means, intercept
        self.offset_ = intercept + float(means.sum())
        self.bandwidth_ = getattr(self._map, "bandwidth", None)

    def _get_state(self) -> tuple[Arrays, dict[str, Any]]:
        if self.feature_map is None:
            return super()._get_state()
        arrays = self._map.arrays() | {"w": self._w, "means": self._means}
        return arrays, {"intercept": self.intercept_}

    def _set_state(self, arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Any]) -> None:
        if self.feature_map is None:
            self.bandwidth_ = None
            super()._set_state(arrays, meta)
            return
        self._map = MAPS[self.feature_map].from_arrays(arrays, self._n_categories())
        n_means = self.n_features_in_ if isinstance(self._map, BinnedMap) else 1
        for name, length in {"w": self._map.size, "means": n_means}.items():
            check_array(name, arrays[name], np.float64, (length,))
            if not (abs(arrays[name]) <= 1e80).all():
                raise ArtifactError(f"{name} must be finite, at most 1e80 in size")
        check_intercept(meta["intercept"])
        self._take_mapped(arrays["w"], meta["intercept"], arrays["means"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.feature_map != "bins"
        return tags

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        """Check X; a sparse matrix stays one, and is refused where columns are read whole."""
        if self.feature_map == "bins" and sparse.issparse(X):
            raise InvalidData("feature_map 'bins' takes dense tables only, got a sparse matrix")
        return super()._matrix(X, reset=reset)
