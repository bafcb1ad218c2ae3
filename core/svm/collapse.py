"""Collapse: where w = 0 is the optimum whatever C, and the way away from 0 where it is not.

R(0) = 1, and close to 0 every pair is inside its margin: R(tw) = 1 + t · slope(w) for small t, where the slope is that
of the means of the positives and of the highest negatives. If no w has a falling slope, 0 is the optimum for every C.
That is so exactly if 0 lies in the hull of the gradients at 0, and the shortest vector in the hull decides it: it is
0, or its reverse is the direction of steepest descent. The hull's corners come from the same oracle as the planes.

The paper does not say what its solver returns there: the noise of the stopping rule.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from core.ranker import Floats

from .cutting_planes import CuttingPlanes, Planes
from .line import Point, Trial
from .problem import Plane, Scores
from .simplex_qp import solve_simplex_qp

# Of the longest gradient at 0, a shortest vector in their hull that counts as 0. With gradients of length 1, 0 is then
# within tol · C of the optimum for all C up to 2 tol / LEAST², a million at tol = 1e-4.
LEAST = 1e-5

MOST_DIRECTIONS = 1000

# Of the mean of the corners, a share from which a corner is in use.
IN_USE = 1e-12

# Of the steepest descent, what is enough of a descent.
FALLING = 0.1


class WayOut(NamedTuple):
    """A direction along which R falls at w = 0.

    Attributes
    ----------
    direction : ndarray of shape (size,), float64
    scores : Scores
        The rows' scores along it.
    risk, gradient
        R at w = 0, and the gradient of a plane that touches it there.
    """

    direction: Floats
    scores: Scores
    risk: float
    gradient: Floats


def leave_origin(planes: CuttingPlanes, most: int = MOST_DIRECTIONS) -> WayOut | None:
    """Find a direction along which R falls at w = 0.

    Parameters
    ----------
    planes : CuttingPlanes
        Receives the planes at 0 that matter.
    most : int
        Directions to try.

    Returns
    -------
    WayOut or None
        None where there is none: the collapse.

    Notes
    -----
    A product with the table for each direction tried. The first, from the mean of the negatives to that of the
    positives, is mostly enough; to be sure that there is none takes about as many as there are coordinates.

    References
    ----------
    P. Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 11, 1976: corners that the nearest
    point does without are dropped.
    """
    problem = planes.problem
    corners = Planes(problem.size)
    violations = problem.at(problem.nothing())
    corners.add(problem.plane(violations))
    risk, gradient = violations.value, corners.gradients[0]
    longest = corners.gram[0, 0]
    found = None
    for _ in range(most):
        u = solve_simplex_qp(corners.gram, np.zeros(len(corners.gram)))
        corners.keep(u > IN_USE)
        shortest = ((u[u > IN_USE] / u[u > IN_USE].sum())[:, None] * corners.gradients).sum(axis=0)
        square = float((shortest * shortest).sum())
        if square <= LEAST**2 * longest:
            break
        scores = problem.scores(-shortest)
        violations = problem.at(scores.scaled(_least_step(planes, scores)))
        if violations.slope(*scores) < -FALLING * square:
            found = WayOut(-shortest, scores, risk, gradient)
            break
        corners.add(problem.plane(violations))
        longest = max(longest, corners.gram[-1, -1])
    for loss, gradient in zip(corners.losses, corners.gradients, strict=True):
        planes.add(Plane(loss, gradient))
    return found


def _least_step(planes: CuttingPlanes, scores: Scores) -> float:
    """A step so short that every pair stays inside its margin, and each positive's best run the same."""
    low, high, total = planes.problem.surrogate.window
    spread = scores.spread()
    return 0.25 * (high - low) / total / spread if spread > 0.0 else 1.0


def depart(planes: CuttingPlanes, C: float, way: WayOut) -> Point:
    """Go from w = 0 along a direction of descent, as far as the objective with this C falls.

    Parameters
    ----------
    planes : CuttingPlanes
        Receives the planes at the end of the way, and at the farthest that was looked at.
    C : float
    way : WayOut

    Returns
    -------
    Point
    """
    problem = planes.problem
    start = Point(np.zeros(problem.size), problem.nothing(), way.risk, way.gradient)
    slope = -float((way.gradient * way.direction).sum())
    length = min(C * slope / float((way.direction * way.direction).sum()), 1.0 / slope)
    far = way.scores.scaled(length)
    end = planes.settle(Trial(length * way.direction, far, problem.at(far)))
    return planes.descend(start, end, C, start.w)[0]


def critical_mass(collapses: Callable[[float], bool], low: float, high: float) -> float:
    """Find the least mass at which there is no collapse, within 2 %, between one with and one without."""
    while high > 1.02 * low:
        middle = float(np.sqrt(low * high))
        if collapses(middle):
            low = middle
        else:
            high = middle
    return high
