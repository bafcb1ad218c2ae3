"""Σ_j f_j(x_j), each f_j piecewise cubic: what a fitted ranker of this folder scores with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from core.errors import ArtifactError
from core.ranker import Arrays, Floats
from core.state import check_array

from .kernels import contribute
from .shapes import Pieces, local_scale

# Beyond it sums of parts would no longer be finite numbers.
GREATEST_VALUE = 1e300


class AdditiveFunction(NamedTuple):
    """A sum of functions of one feature each.

    Attributes
    ----------
    starts : ndarray of shape (n_features + 1,), int64
        Feature j has the breaks from starts[j] to starts[j + 1].
    breaks : ndarray of shape (n_breaks,), float64
        Ascending within a feature.
    pieces : ndarray of shape (n_breaks + n_features, 4), float64
        Of each feature one more than breaks: coefficients of the powers of u; see `shapes.Pieces`.
    missing : ndarray of shape (n_features,), float64
        Value of a missing x.
    """

    starts: npt.NDArray[np.int64]
    breaks: Floats
    pieces: Floats
    missing: Floats

    @classmethod
    def combine(cls, columns: Sequence[Pieces], theta: Sequence[Floats]) -> "AdditiveFunction":
        """Add up the shapes of each column, weighted by its theta."""
        sizes = [len(column.breaks) for column in columns]
        return cls(
            np.cumsum([0, *sizes], dtype=np.int64),
            np.concatenate([column.breaks for column in columns]),
            np.concatenate(
                [
                    np.tensordot(t, c.coefficients, axes=1)
                    for c, t in zip(columns, theta, strict=True)
                ]
            ),
            np.array([t @ c.missing for c, t in zip(columns, theta, strict=True)]),
        )

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_features: int
    ) -> "AdditiveFunction":
        """Take what `_asdict` gave; refuse any other with ArtifactError."""
        starts = arrays["starts"]
        check_array("starts", starts, np.int64, (n_features + 1,))
        n_breaks = arrays["breaks"].size
        if starts[0] != 0 or starts[-1] != n_breaks or (np.diff(starts) < 0).any():
            raise ArtifactError(f"starts must ascend from 0 to {n_breaks}, the number of breaks")
        shapes = {
            "breaks": (n_breaks,),
            "pieces": (n_breaks + n_features, 4),
            "missing": (n_features,),
        }
        for name, shape in shapes.items():
            check_array(name, arrays[name], np.float64, shape)
            greatest = np.finfo(np.float64).max if name == "breaks" else GREATEST_VALUE
            if not (np.abs(arrays[name]) <= greatest).all():
                raise ArtifactError(f"{name} must be finite")
        within = np.ones(n_breaks, dtype=np.bool_)
        within[starts[:-1][starts[:-1] < n_breaks]] = False
        rises = np.diff(arrays["breaks"], prepend=-np.inf) > 0.0
        if not rises[within].all():
            raise ArtifactError("breaks must ascend within a feature")
        return cls(starts, *(arrays[name] for name in shapes))

    def arrays(self) -> Arrays:
        """Give the state as arrays; `from_arrays` takes them."""
        return dict(self._asdict())

    def contributions(self, X: Floats) -> Floats:
        """Give f_j(x_j) of each row and feature, unchecked.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features), float64, C-contiguous

        Returns
        -------
        ndarray of shape (n_rows, n_features), float64
        """
        parts = np.empty(X.shape)
        contribute(X, self.starts, self.breaks, *self._scale(), self.pieces, self.missing, parts)
        return parts

    def shifted(self, by: Floats) -> "AdditiveFunction":
        """Add to each feature's function a constant."""
        pieces = self.pieces.copy()
        pieces[:, 0] += np.repeat(by, np.diff(self.starts) + 1)
        return self._replace(pieces=pieces, missing=self.missing + by)

    def describe(self, name: Callable[[int], str]) -> Iterator[dict[str, Any]]:
        """Give each feature that matters: its breaks, and its values there and right of there."""
        for j, (start, stop) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            pieces = self.pieces[start + j : stop + j + 1]
            if not pieces.any() and self.missing[j] == 0.0:
                continue
            yield {
                "feature": name(j),
                "breaks": self.breaks[start:stop].tolist(),
                "at_breaks": pieces[:-1].sum(axis=1).tolist(),
                "after_breaks": pieces[1:, 0].tolist(),
                "missing": float(self.missing[j]),
            }

    def _scale(self) -> tuple[Floats, Floats]:
        """Left end and slope of every piece; see `shapes.local_scale`."""
        scales = [
            local_scale(self.breaks[start:stop])
            for start, stop in zip(self.starts[:-1], self.starts[1:], strict=True)
        ]
        left, slope = (np.concatenate(side) for side in zip(*scales, strict=True))
        return left, slope
