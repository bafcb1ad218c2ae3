"""Decimal fractions to the nearest double, compiled: w · 10^q of a whole number w of at most 19 digits.

Where w and the power of ten are doubles themselves, one multiplication or division rounds once (Clinger, "How to read
floating point numbers accurately", 1990). All else is the product of w with the first 128 bits of the power of five,
whose own first bits are those of the result (Lemire, "Number parsing at a gigabyte per second", Software: Practice and
Experience 51, 2021; Mushtak & Lemire, "Fast number parsing without fallback", 2023). What is left is subnormal or
infinite, and is for a reader that knows all the rules.
"""

from __future__ import annotations

import math

import numba
import numpy as np

MOST_DIGITS = 19  # as many always fit an unsigned integer of 64 bits
LEAST_POWER, GREATEST_POWER = -342, 308

_EXACT = np.uint64(1 << 53)
_EXACT_POWER = 22
_TENS = 10.0 ** np.arange(_EXACT_POWER + 1)
_BITS = 128
_HALF = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_UNSURE = np.uint64(
    (1 << 9) - 1
)  # of the product's upper half, the bits below those that the result needs
_ZERO, _ONE, _THREE, _TOP = (np.uint64(value) for value in (0, 1, 3, 63))
_SHIFT = np.uint64(9)  # 64 bits less the 52 of a fraction and three more
_LAST_TIE = -27  # 5^27 is the last that fits 64 bits: no product with a greater one is a tie
_LEAST_EXPONENT, _INFINITE = 1023, 2047
_CARRIED = np.uint64(1 << 53)


def _first_bits(power: int) -> int:
    """The first 128 bits of 5^power, rounded down; of a reciprocal that can have a tie, one more in the last place."""
    five: int = 5 ** abs(power)
    if power >= 0:
        excess = five.bit_length() - _BITS
        return five >> excess if excess >= 0 else five << -excess
    bits = (five - 1).bit_length()
    if power >= _LAST_TIE:
        return (1 << (bits + _BITS - 1)) // five + 1
    reciprocal = (1 << (2 * bits + _BITS)) // five + 1
    return reciprocal >> (reciprocal.bit_length() - _BITS)


_FIVES = [_first_bits(power) for power in range(LEAST_POWER, GREATEST_POWER + 1)]
_UPPER = np.array([bits >> 64 for bits in _FIVES], dtype=np.uint64)
_LOWER = np.array([bits & (2**64 - 1) for bits in _FIVES], dtype=np.uint64)


@numba.njit(nogil=True)
def _multiply(a, b):  # type: ignore[no-untyped-def]
    """Return the upper and the lower half of a product of 128 bits."""
    a_low, a_high = a & _LOW_HALF, a >> _HALF
    b_low, b_high = b & _LOW_HALF, b >> _HALF
    low = a_low * b_low
    middle = a_high * b_low + (low >> _HALF)
    other = a_low * b_high + (middle & _LOW_HALF)
    return a_high * b_high + (middle >> _HALF) + (other >> _HALF), a * b


@numba.njit(nogil=True)
def nearest(w, q):  # type: ignore[no-untyped-def]
    """Return the double nearest to w · 10^q, or NaN where it may be subnormal or infinite; w is uint64, q int64."""
    if w <= _EXACT and -_EXACT_POWER <= q <= _EXACT_POWER:
        return float(w) / _TENS[-q] if q < 0 else float(w) * _TENS[q]
    if w == _ZERO:
        return 0.0
    if q < LEAST_POWER or q > GREATEST_POWER:
        return np.nan
    zeros = 0
    while (w >> _TOP) == _ZERO:
        w <<= _ONE
        zeros += 1
    high, low = _multiply(w, _UPPER[q - LEAST_POWER])
    if (high & _UNSURE) == _UNSURE:
        carried, _ = _multiply(w, _LOWER[q - LEAST_POWER])
        low += carried
        if carried > low:
            high += _ONE
        if low == _ONES and (q < _LAST_TIE or q > 55):
            return np.nan
    top = high >> _TOP
    mantissa = high >> (top + _SHIFT)
    exponent = (((152170 + 65536) * q) >> 16) + 63 + np.int64(top) - zeros + _LEAST_EXPONENT
    # Halfway between two doubles the even one is meant.
    may_tie = low <= _ONE and -4 <= q <= 23
    if may_tie and (mantissa & _THREE) == _ONE and (mantissa << (top + _SHIFT)) == high:
        mantissa &= ~_ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >= _CARRIED:
        mantissa = mantissa >> _ONE
        exponent += 1
    if exponent <= 0 or exponent >= _INFINITE:
        return np.nan
    return math.ldexp(float(mantissa), exponent - _LEAST_EXPONENT - 52)
