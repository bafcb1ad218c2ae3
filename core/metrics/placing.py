"""Where many scores lie among the thresholds of a curve: bisection that begins nearly there."""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]

_STRETCHES_A_POINT = 2
_MOST_STRETCHES = 1 << 16
_FLOATS = numba.types.Array(numba.float64, 1, "C", readonly=True)
_INDICES = numba.types.Array(numba.int64, 1, "C", readonly=True)


@dataclass(frozen=True)
class Guide:
    """The range of finite points, cut into even stretches: where the points of each begin.

    Attributes
    ----------
    points : ndarray of shape (n_points,), float64
        Ascending; the ends may be infinite.
    low, scale : float
        A value v lies in the stretch floor((v - low) · scale), up to rounding.
    starts : ndarray of shape (n_stretches + 1,), int64
        The points of a stretch are about points[starts[k]:starts[k + 1]].
    """

    points: FloatArray
    low: float
    scale: float
    starts: IndexArray

    @classmethod
    def to(cls, points: FloatArray) -> Guide:
        """Lay a guide over ascending points, in time and memory linear in their number."""
        finite = points[np.isfinite(points)]
        low, high = (finite[0], finite[-1]) if len(finite) else np.zeros(2)
        stretches = int(min(_STRETCHES_A_POINT * len(points), _MOST_STRETCHES))
        with np.errstate(over="ignore", divide="ignore"):
            scale = stretches / (high - low)
        if not 0.0 < scale < np.inf:  # one value, or values too far apart or too near
            stretches, scale = 1, 0.0
        ends = low + np.arange(stretches + 1) / scale if scale else np.array([low, high])
        starts = np.searchsorted(points, ends, side="left").astype(np.int64)
        starts[0], starts[-1] = 0, len(points)
        return cls(np.ascontiguousarray(points), float(low), float(scale), starts)

    def find(self, values: FloatArray) -> IndexArray:
        """Count the points at or below each value: `np.searchsorted(points, values, side="right")`.

        Parameters
        ----------
        values : ndarray of shape (n,), float64, C-contiguous
            Without NaN.

        Returns
        -------
        ndarray of shape (n,), int64

        Notes
        -----
        O(n) where points are spread evenly, O(n · log n_points) at worst.
        """
        found: IndexArray = _find(self.points, values, self.low, self.scale, self.starts)
        return found


@kernel(numba.int64[::1](_FLOATS, _FLOATS, numba.float64, numba.float64, _INDICES))
def _find(points, values, low, scale, starts):  # type: ignore[no-untyped-def]
    counts = np.empty(len(values), dtype=np.int64)
    last = len(starts) - 2
    for i in range(len(values)):
        value = values[i]
        at = (value - low) * scale
        stretch = 0 if not at > 0.0 else (last if at >= last else int(at))
        first, stop = starts[stretch], starts[stretch + 1]
        # Rounding may have led into a neighbour of the right stretch: then the search is for the whole.
        if first > 0 and points[first - 1] > value:
            first = 0
        if stop < len(points) and points[stop] <= value:
            stop = len(points)
        while first < stop:
            middle = (first + stop) >> 1
            if points[middle] <= value:
                first = middle + 1
            else:
                stop = middle
        counts[i] = first
    return counts
