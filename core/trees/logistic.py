"""The logistic loss of many rows, its gradient and Hessian, in arithmetic that the compiler vectorises.

The exponential of the C library takes one number at a time, and would take longer than the histograms of a tree.
"""

import math

import llvmlite.ir  # type: ignore[import-untyped]  # it carries no types
import numba
import numpy as np
from numba.extending import intrinsic

from .derivatives import derivatives

_LOG2_E = 1.4426950408889634
# ln 2 in two parts: a small whole number times the first has no rounding.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_MIN_EXPONENT = -708.0  # of e: the result is still a normal number
_ROUND = 6755399441055744.0  # 1.5 · 2^52: adding it leaves no place for a fraction


@intrinsic
def _from_bits(typing_context, bits):  # type: ignore[no-untyped-def]
    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], llvmlite.ir.DoubleType())

    return numba.float64(numba.int64), generate


@numba.njit(inline="always")
def exp_of_negative(x):  # type: ignore[no-untyped-def]
    """Return e^x for a float64 x <= 0, to a few units in the last place.

    x = k ln 2 + r with |r| <= ½ ln 2, and e^r by its series up to r^13, whose rest is below 2^-57.
    """
    x = x if x > _MIN_EXPONENT else _MIN_EXPONENT
    k = (x * _LOG2_E + _ROUND) - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    series = 1.0 / 6227020800.0
    series = series * r + 1.0 / 479001600.0
    series = series * r + 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    return series * _from_bits((np.int64(k) + np.int64(1023)) << np.int64(52))


@numba.njit(inline="always")
def log_of_one_and(x):  # type: ignore[no-untyped-def]
    """Return ln(1 + x) for a float64 x from 0 to 1, to a few units in the last place.

    It is 2 artanh z with z = x / (2 + x) <= 1/3, by its series up to z^35, whose rest is below 2^-57.
    """
    z = x / (2.0 + x)
    square = z * z
    series = 1.0 / 35.0
    series = series * square + 1.0 / 33.0
    series = series * square + 1.0 / 31.0
    series = series * square + 1.0 / 29.0
    series = series * square + 1.0 / 27.0
    series = series * square + 1.0 / 25.0
    series = series * square + 1.0 / 23.0
    series = series * square + 1.0 / 21.0
    series = series * square + 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    series = series * square + 1.0
    return 2.0 * z * series


@numba.njit(inline="always")
def _log_of_product(numbers):  # type: ignore[no-untyped-def]
    """Return Σ ln(1 + x) over at least one number x, and overwrite them.

    It is the logarithm of the product of all 1 + x. Of two factors, (1 + x)(1 + y) = 1 + (x + y + xy), so that small
    numbers keep their digits. Halves are multiplied with one another, which the compiler vectorises.
    """
    n = len(numbers)
    while n > 1:
        half = n // 2
        rest = n - half
        for i in range(half):
            x, y = numbers[i], numbers[rest + i]
            numbers[i] = x + y + x * y
        n = rest
    return math.log1p(numbers[0])


@derivatives
def write_derivatives(margins, sign, sample_weight, weights, losses):  # type: ignore[no-untyped-def]
    """Write the logistic loss of rows of one class, its gradient and its Hessian; see `derivatives`.

    Without sample weights one logarithm is taken for all rows: the product, below 2^n, needs n <= `ROWS_AT_ONCE`.
    """
    for i in range(len(margins)):
        margin = margins[i]
        small = exp_of_negative(-abs(margin))
        larger = 1.0 / (1.0 + small)
        weights[2 * i] = sign * larger * (1.0 if margin < 0.0 else small)
        weights[2 * i + 1] = small * larger * larger
        losses[i] = max(-margin, 0.0)
        margins[i] = small
    if len(sample_weight) == 0:
        losses[0] += _log_of_product(margins)
        return
    for i in range(len(sample_weight)):
        weights[2 * i] *= sample_weight[i]
        weights[2 * i + 1] *= sample_weight[i]
        losses[i] = (losses[i] + log_of_one_and(margins[i])) * sample_weight[i]
