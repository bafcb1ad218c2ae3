"""The upper convex hull of a rising chain of points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.metrics.groups import FloatArray

# A coordinate is a quotient rounded to half a unit in the last place of 1; a turn smaller than this is straight.
_ROUNDING = np.finfo(np.float64).eps


def upper_hull(x: FloatArray, y: FloatArray) -> NDArray[np.intp]:
    """Indices of the vertices of the least concave chain over rising points.

    Parameters
    ----------
    x, y : ndarray of float64, shape (n_points,)
        Both non-decreasing, in [0, 1]; at least two points.

    Returns
    -------
    ndarray of intp, shape (n_vertices,)
        Increasing; the first and the last point are vertices; points inside a straight stretch are not.

    Notes
    -----
    A point on or under the line between any two others is no vertex. So whole passes over the array drop the
    points that are so between their neighbours, while that pays, and one walk with a stack ends the work. Only the walk
    forgives rounding: two neighbours that a pass dropped for being almost straight could be a corner together.
    O(n_points).

    References
    ----------
    Andrew, "Another efficient algorithm for convex hulls in two dimensions", Information Processing Letters 9 (1979).
    """
    points = np.arange(x.size)
    while points.size > 2:
        px, py = x[points], y[points]
        dx, dy = np.diff(px), np.diff(py)
        turn = dx[:-1] * dy[1:] - dx[1:] * dy[:-1]  # negative: to the right
        kept = np.concatenate(([True], turn < 0.0, [True]))
        n_before, points = points.size, points[kept]
        if points.size > 0.9 * n_before:
            break
    return _walk(points, x[points].tolist(), y[points].tolist())


def _walk(points: NDArray[np.intp], x: list[float], y: list[float]) -> NDArray[np.intp]:
    stack: list[int] = []
    for new in range(len(x)):
        while len(stack) > 1:
            before, top = stack[-2], stack[-1]
            dx1, dy1 = x[top] - x[before], y[top] - y[before]
            dx2, dy2 = x[new] - x[top], y[new] - y[top]
            if dx1 * dy2 - dx2 * dy1 < -_ROUNDING * (dx1 + dx2 + dy1 + dy2):
                break
            stack.pop()
        stack.append(new)
    return points[stack]
