"""The violations reader: which pairs of a positive and a negative stand inside the margin.

Negatives come sorted by falling score z, each with its mass. A positive of score s is held against a run of them
from the top, of mass r, and pays

    H(r) = ∫ (z(u) - s) du over 0 < u < r, plus the part of r between `low` and `high`:

margin 0 against what stands above the window, 1 inside it, and 0 again below, where `top` reaches so far. H bends
downward between the two ends of the window and on either side of them, so the best run of each of the three
stretches ends where z falls below s, s - 1 and s again, or at the stretch's own end. Prefix sums give H there: a binary
search or two for each positive, and no matrix of pairs.
"""

import numba
import numpy as np

from core.kernel import kernel

# Bounds that all lie closer together are told apart by halves alone.
LEAST_SPAN = 1e-200

_F = numba.float64
_FLOATS = numba.float64[::1]


@kernel(numba.int64(_FLOATS, _F), inner=True)
def _count_at_least(z, bound):  # type: ignore[no-untyped-def]
    """Count the leading values of a falling array that are not below a bound."""
    first, last = 0, len(z)
    while first < last:
        middle = (first + last) >> 1
        if z[middle] >= bound:
            first = middle + 1
        else:
            last = middle
    return first


@kernel(
    numba.types.Tuple((_F, _F))(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _F, _F, _F, _FLOATS, _FLOATS)
)
def find_violations(s, p, z, q, low, high, top, runs, crossed):  # type: ignore[no-untyped-def]
    """Find the run of negatives that each positive pays most for.

    Parameters
    ----------
    s, p : ndarray of shape (m,), float64
        Scores and weights of the positives, in any order.
    z, q : ndarray of shape (k,), float64
        Scores, falling, and weights of the highest negatives: of mass `top` or more, the last ones tied.
    low, high, top : float
        Masses of negatives, 0 <= low < high <= top.
    runs : ndarray of shape (m,), float64
        Receives the mass of each positive's run.
    crossed : ndarray of shape (k,), float64
        Receives Σ p over the positives whose run holds the negative, times its mass; shared out evenly among
        negatives of equal score, so that their order does not matter.

    Returns
    -------
    value, loss : float
        Σ p H, and the part of it that does not depend on the scores.

    Notes
    -----
    O(m log k + k).
    """
    k = len(z)
    above, sums = np.empty(k + 1), np.empty(k + 1)
    above[0] = sums[0] = 0.0
    for j in range(k):
        above[j + 1] = min(above[j] + q[j], top)
        sums[j + 1] = sums[j] + (above[j + 1] - above[j]) * z[j]
    sum_low = sum_high = 0.0  # of the scores of so much mass from the top
    row = 0
    for end in range(2):
        mass = low if end == 0 else high
        while row < k - 1 and above[row + 1] <= mass:
            row += 1
        sum_low, sum_high = sum_high, sums[row] + (mass - above[row]) * z[row]
    for j in range(k):
        crossed[j] = 0.0  # first the positive mass by the last row of its run
    stop_low = stop_high = 0.0  # and at the ends of the window, which may lie within a row
    value = loss = 0.0
    for i in range(len(s)):
        # in the window, whose margin is 1
        end = _count_at_least(z, s[i] - 1.0)
        if above[end] <= low:
            run, gain, end = low, sum_low - low * s[i], -1
        elif above[end] >= high:
            run, gain, end = high, sum_high - high * s[i] + (high - low), -2
        else:
            run = above[end]
            gain = sums[end] - run * s[i] + (run - low)
        if low > 0.0 or top > high:
            other = _count_at_least(z, s[i])
            if above[other] < low and sums[other] - above[other] * s[i] > gain:
                run, end = above[other], other
                gain = sums[other] - run * s[i]
            elif above[other] > high and (sums[other] - above[other] * s[i] + (high - low) > gain):
                run, end = above[other], other
                gain = sums[other] - run * s[i] + (high - low)
        runs[i] = run
        value += p[i] * gain
        loss += p[i] * (min(max(run, low), high) - low)
        if end == -1:
            stop_low += p[i]
        elif end == -2:
            stop_high += p[i]
        elif end > 0:
            crossed[end - 1] += p[i]
    longer = 0.0
    for j in range(k - 1, -1, -1):
        longer += crossed[j]
        mass = above[j + 1] - above[j]
        crossed[j] = (
            longer * mass
            + stop_low * min(max(low - above[j], 0.0), mass)
            + stop_high * min(max(high - above[j], 0.0), mass)
        )
    first = 0
    while (
        first < k
    ):  # negatives of one score share what they have got, in proportion to their weights
        last = first + 1
        together, weight = crossed[first], q[first]
        while last < k and z[last] == z[first]:
            together += crossed[last]
            weight += q[last]
            last += 1
        if last - first > 1:
            for j in range(first, last):
                crossed[j] = together * (q[j] / weight)
        first = last
    return value, loss


@kernel(numba.types.Tuple((_F, _F))(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS))
def find_pair_violations(s, p, z, q, runs, crossed):  # type: ignore[no-untyped-def]
    """Do what `find_violations` does where the window is the whole curve, by the order of the positives alone.

    Where they are the fewer, sorting them takes less than sorting the negatives.

    Its parameters and what it returns are those of `find_violations`, but that the scores `s` rise and `z` are all
    negatives, in any order.

    Notes
    -----
    O(n log m + m).
    """
    m = len(s)
    bound, below = np.empty(m), np.empty(m + 1)
    below[0] = 0.0
    for i in range(m):
        bound[i] = s[i] - 1.0
        below[i + 1] = below[i] + p[i]
    mass, sums = np.zeros(m + 1), np.zeros(m + 1)
    # as many stretches of equal length as there are bounds: in its own a score has few left to be told from
    span = bound[m - 1] - bound[0]
    scale = m / span if span > LEAST_SPAN else 0.0
    first, last = np.zeros(m + 1, np.int64), 0
    for i in range(m):
        stretch = min(int((bound[i] - bound[0]) * scale), m - 1)
        while last < stretch:
            last += 1
            first[last] = i
    while last < m:
        last += 1
        first[last] = m
    for j in range(len(z)):
        x = z[j]
        place = (x - bound[0]) * scale
        stretch = 0 if place <= 0.0 else (m - 1 if place >= m - 1 else int(place))
        count, end = first[stretch], first[stretch + 1]
        while count < end:
            middle = (count + end) >> 1
            if bound[middle] <= x:
                count = middle + 1
            else:
                end = middle
        crossed[j] = below[count] * q[j]
        mass[count] += q[j]
        sums[count] += q[j] * x
    value = loss = run = total = 0.0
    for i in range(m - 1, -1, -1):
        run += mass[i + 1]
        total += sums[i + 1]
        runs[i] = run
        value += p[i] * (total - run * s[i] + run)
        loss += p[i] * run
    return value, loss
