"""Columns of zero mean and unit variance, with the missing at their mean."""

from typing import NamedTuple

import numpy as np

from core.ranker import Floats

# Standard deviations: no training value lies further out, and sums of parts stay finite.
FARTHEST = 1e9


class Standardised(NamedTuple):
    """Means and standard deviations of columns.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float64
    scale : ndarray of shape (n_features,), float64
        1 for a constant or wholly missing column.
    """

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Floats, weight: Floats) -> "Standardised":
        """Take the weighted means and deviations of the values that are not missing.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64
        weight : ndarray of shape (n_rows,), float64
            Above 0.

        Returns
        -------
        Standardised
        """
        mean, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
        share = weight / weight.max()
        for j, column in enumerate(X.T):
            known = ~np.isnan(column)
            greatest = np.abs(column[known]).max(initial=0.0)
            if greatest == 0.0:
                continue
            x, w = column[known] / greatest, share[known]
            middle = np.average(x, weights=w)
            deviation = np.sqrt(np.average((x - middle) ** 2, weights=w))
            mean[j] = middle * greatest
            # a constant column deviates by the rounding of its mean only
            if deviation > 1e-12 and deviation * greatest > 0.0:
                scale[j] = deviation * greatest
        return cls(mean, scale)

    def apply(self, X: Floats) -> Floats:
        """Standardise rows; a missing value is at its column's mean, 0.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
            From -1e9 to 1e9.
        """
        with np.errstate(over="ignore"):
            z = X / self.scale - self.mean / self.scale
        return np.nan_to_num(np.clip(z, -FARTHEST, FARTHEST), copy=False, nan=0.0)
