"""Compiled readers of plain queries and JSON bodies: numbers, words and nulls of all the features.

Most callers send such queries, and reading one must not take longer than answering it. Many rows are sent as
`{"columns": […], "data": [[…], …]}` or `{"rows": [{…}, …]}`, and making a Python object of each value takes longer than
scoring it. A word is plain if it has no escapes, and so are the words that JSON has: `true`, `false`, a whole number.
All other input is left to `features.FeatureIndex`, which has all the rules; here nothing is refused, only left unread.

**Numbers** are w · 10^q of a whole number w of at most 19 digits. Where w and the power of ten are doubles themselves,
one multiplication or division rounds once (Clinger, "How to read floating point numbers accurately", 1990). All else is
the product of w with the first 128 bits of the power of five, whose own first bits are those of the result (Lemire,
"Number parsing at a gigabyte per second", Software: Practice and Experience 51, 2021; Mushtak & Lemire, "Fast number
parsing without fallback", 2023). Subnormal and infinite results are left unread.

**Words** are found by their bytes, taken by eights, as integers of 64 bits with the first byte lowest. Each feature has
buckets of its own, more than four times as many as words, and a word is in the one that its hash names. So most texts
are compared with one word or none. Anybody may know the hash and choose words that share a bucket: there they are in
order, and it is bisected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import orjson

from core.kernels import kernel

Floats = npt.NDArray[np.float64]
Eights = npt.NDArray[np.uint64]
BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)
EIGHTS = numba.types.Array(numba.uint64, 1, "A", readonly=True, aligned=False)

NUMBER, BOOLEAN, WORD = range(3)
"""What a feature holds."""

_OTHER = -1  # if something is not plain
_OPEN, _SHUT, _COMMA, _BEGIN, _END, _COLON = b"[],{}:"
_MINUS, _PLUS, _POINT, _0, _9, _E, _e = b"-+.09Ee"
_SPACE, _TAB, _LINE, _RETURN, _QUOTE, _AND, _IS, _PERCENT = b' \t\n\r"&=%'
_ASCII_END = 0x80
_ONE, _HALF = np.uint64(1), np.uint64(32)

# Of functions called for each cell. Numba would have each of them count references to its arrays, and be handed every
# part of them: that costs more than all else that they do.
_inlined = numba.njit(
    nogil=True, _nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)

MAX_DIGITS = 19  # as many always fit an unsigned integer of 64 bits
MIN_POWER, MAX_POWER = -342, 308

_EXACT = np.uint64(1 << 53)
_EXACT_POWER = 22
_TENS = 10.0 ** np.arange(_EXACT_POWER + 1)
_BITS = 128
_LOW_HALF = np.uint64(0xFFFFFFFF)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
# Of the product's upper half, the bits below those that the result needs.
_UNSURE = np.uint64((1 << 9) - 1)
_ZERO, _THREE, _TOP_BIT = (np.uint64(value) for value in (0, 3, 63))
_SHIFT = np.uint64(9)  # 64 bits less the 52 of a fraction and three more
_LAST_TIE = -27  # 5^27 is the last that fits 64 bits: no product with a greater one is a tie
_MIN_EXPONENT, _INFINITE = 1023, 2047
_CARRIED = np.uint64(1 << 53)


def _first_bits(power: int) -> int:
    """Return the first 128 bits of 5^power, rounded down; plus 1 for a reciprocal that can have a tie."""
    five: int = 5 ** abs(power)
    if power >= 0:
        excess = five.bit_length() - _BITS
        return five >> excess if excess >= 0 else five << -excess
    bits = (five - 1).bit_length()
    if power >= _LAST_TIE:
        return (1 << (bits + _BITS - 1)) // five + 1
    reciprocal = (1 << (2 * bits + _BITS)) // five + 1
    return reciprocal >> (reciprocal.bit_length() - _BITS)


_FIVES = [_first_bits(power) for power in range(MIN_POWER, MAX_POWER + 1)]
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
def _nearest(w, q):  # type: ignore[no-untyped-def]
    """Return the double nearest to w · 10^q, or NaN where it may be subnormal or infinite; w is uint64, q int64."""
    if w <= _EXACT and -_EXACT_POWER <= q <= _EXACT_POWER:
        return float(w) / _TENS[-q] if q < 0 else float(w) * _TENS[q]
    if w == _ZERO:
        return 0.0
    if q < MIN_POWER or q > MAX_POWER:
        return np.nan
    zeros = 0
    while (w >> _TOP_BIT) == _ZERO:
        w <<= _ONE
        zeros += 1
    high, low = _multiply(w, _UPPER[q - MIN_POWER])
    if (high & _UNSURE) == _UNSURE:
        carried, _ = _multiply(w, _LOWER[q - MIN_POWER])
        low += carried
        if carried > low:
            high += _ONE
        if low == _ONES and (q < _LAST_TIE or q > 55):
            return np.nan
    top = high >> _TOP_BIT
    mantissa = high >> (top + _SHIFT)
    exponent = (((152170 + 65536) * q) >> 16) + 63 + np.int64(top) - zeros + _MIN_EXPONENT
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
    return math.ldexp(float(mantissa), exponent - _MIN_EXPONENT - 52)


START, FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_SEVEN, _TOP_BYTE = np.uint64(7), np.uint64(56)
_EACH, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _ESCAPES, _SPACES = (_EACH * np.uint64(byte) for byte in b'"\\ ')
# Characters that JSON escapes: a plain body cannot contain such a word.
_NOT_PLAIN = re.compile(r'[\x00-\x1f"\\]')


class Words(NamedTuple):
    """The words of all features, as kernels read them: by feature, by bucket, in order."""

    eights: Eights
    """All words, each filled up with at least one byte of 0: it has no other."""
    starts: npt.NDArray[np.int64]
    """Where each begins, and where the last one ends."""
    codes: npt.NDArray[np.float64]
    """The position of each among the categories of its feature."""
    buckets: npt.NDArray[np.int64]
    """The first word of each bucket, and how many words there are."""
    features: npt.NDArray[np.int64]
    """Of shape (2, n_features): the first bucket of a feature, and how many it has less one: a mask of bits."""


WORDS = numba.types.NamedTuple(
    (
        numba.uint64[::1],
        numba.int64[::1],
        numba.float64[::1],
        numba.int64[::1],
        numba.int64[:, ::1],
    ),
    Words,
)


def _by_eights(body: bytes) -> Eights:
    """Return the eight bytes at every position, uint64 of shape (len(body) - 7,), as a view."""
    return np.ndarray((max(len(body) - 7, 0),), np.uint64, body, strides=(1,))


@_inlined
def _eight(body, eights, at, stop):  # type: ignore[no-untyped-def]
    """Return the bytes from `at` on as an integer, eight or as many as there are before `stop`."""
    if at < len(eights):
        if stop - at >= 8:
            return eights[at]
        return eights[at] & ((_ONE << np.uint64(8 * (stop - at))) - _ONE)
    found = np.uint64(0)
    for i in range(at, min(stop, at + 8)):
        found |= np.uint64(body[i]) << np.uint64(8 * (i - at))
    return found


@_inlined
def _mix(mixed, eight):  # type: ignore[no-untyped-def]
    mixed = (mixed ^ eight) * FACTOR
    return mixed ^ (mixed >> _HALF)


@_inlined
def _hash_quoted(body, eights, at):  # type: ignore[no-untyped-def]
    """Return where the quote is that ends the text from `at` on, the text's hash and its last eight.

    The first is -1 where an escape, a control character or the end of the body comes before a quote.
    """
    mixed = START
    while True:
        eight = _eight(body, eights, at, len(body))
        # The lowest bit of each mask is right: only what was found itself borrows from the bytes above (Warren,
        # "Hacker's Delight", 6-1).
        quotes, escapes = eight ^ _QUOTES, eight ^ _ESCAPES
        ends = (quotes - _EACH) & ~quotes & _TOPS
        others = (((escapes - _EACH) & ~escapes) | ((eight - _SPACES) & ~eight)) & _TOPS
        if (ends | others) != 0:
            break
        mixed = _mix(mixed, eight)
        at += 8
    first = (ends | others) & ~((ends | others) - _ONE)
    if (ends & first) == 0:
        return _OTHER, mixed, eight
    before = (first >> _SEVEN) - _ONE  # all bits of the bytes before the quote
    eight &= before
    length = np.int64(((before & _EACH) * _EACH) >> _TOP_BYTE)
    return at + length, _mix(mixed, eight), eight


@_inlined
def _hash_text(body, eights, at, stop):  # type: ignore[no-untyped-def]
    """Return the hash of body[at:stop] and its last eight."""
    mixed = START
    while True:
        eight = _eight(body, eights, at, stop)
        mixed = _mix(mixed, eight)
        at += 8
        if at > stop:
            return mixed, eight


@_inlined
def _bucket(mixed, feature, words):  # type: ignore[no-untyped-def]
    """Return the bucket of a feature that a hash names."""
    return words.features[0, feature] + (np.int64(mixed) & words.features[1, feature])


@_inlined
def _order(eights, at, stop, last, word, words):  # type: ignore[no-untyped-def]
    """Return -1, 0 or 1: body[at:stop], whose last eight is `last`, comes before a word, is it, or comes after it.

    The shorter text comes first, then the one that is smaller as one integer.
    """
    place, end = words.starts[word], words.starts[word + 1] - 1
    longer = (stop - at) // 8 - (end - place)
    if longer != 0:
        return 1 if longer > 0 else -1
    at += 8 * (end - place)
    while last == words.eights[end]:
        if end == place:
            return 0
        end -= 1
        at -= 8
        last = eights[at]
    return 1 if last > words.eights[end] else -1


@_inlined
def _find(eights, start, stop, mixed, last, feature, words):  # type: ignore[no-untyped-def]
    """Return the index of body[start:stop] among the words of a feature, or -1."""
    bucket = _bucket(mixed, feature, words)
    low, high = words.buckets[bucket], words.buckets[bucket + 1]
    while low < high:
        middle = (low + high) // 2
        order = _order(eights, start, stop, last, middle, words)
        if order == 0:
            return middle
        if order > 0:
            low = middle + 1
        else:
            high = middle
    return _OTHER


@_inlined
def _is_utf_8(text, at, stop):  # type: ignore[no-untyped-def]
    """Return True if text[at:stop] is well-formed UTF-8 (the Unicode standard, table 3-7)."""
    while at < stop:
        lead = text[at]
        at += 1
        if lead < _ASCII_END:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        following = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
        if at + following > stop:
            return False
        low = 0xA0 if lead == 0xE0 else (0x90 if lead == 0xF0 else 0x80)
        high = 0x9F if lead == 0xED else (0x8F if lead == 0xF4 else 0xBF)
        for _ in range(following):
            if text[at] < low or text[at] > high:
                return False
            low, high = 0x80, 0xBF
            at += 1
    return True


@_inlined
def _code_of(body, eights, start, stop, mixed, last, feature, words):  # type: ignore[no-untyped-def]
    """Return the value of a plain text for a feature: its position, NaN if it is no word, or -1 if it is not UTF-8.

    As in `features.CategoryIndex` the text is looked up as it is, then without the spaces around it.
    """
    found = _find(eights, start, stop, mixed, last, feature, words)
    if found >= 0:
        return words.codes[found]
    if start < stop and (body[start] == _SPACE or body[stop - 1] == _SPACE):
        first, end = start, stop
        while first < end and body[first] == _SPACE:
            first += 1
        while end > first and body[end - 1] == _SPACE:
            end -= 1
        mixed, last = _hash_text(body, eights, first, end)
        found = _find(eights, first, end, mixed, last, feature, words)
        if found >= 0:
            return words.codes[found]
    return np.nan if _is_utf_8(body, start, stop) else float(_OTHER)


@kernel(numba.void(numba.int64[::1], WORDS, numba.int64[::1]))
def _hash_words(feature_of, words, bucket_of):  # type: ignore[no-untyped-def]
    """Write the bucket of each word into `bucket_of`, int64 of shape (words,); so is `feature_of`."""
    for word in range(len(feature_of)):
        mixed = START
        for place in range(words.starts[word], words.starts[word + 1]):
            mixed = _mix(mixed, words.eights[place])
        bucket_of[word] = _bucket(mixed, feature_of[word], words)


def lay_out(categories: Sequence[Sequence[str] | None]) -> Words:
    """Return the words of the categories of each feature, whose positions are its values; None: no categories."""
    plain = []
    for feature, texts in enumerate(categories):
        for code, word in enumerate(texts or ()):
            if not _NOT_PLAIN.search(word):
                filled = word.encode()
                filled = filled.ljust(len(filled) // 8 * 8 + 8, b"\0")
                plain.append((len(filled), int.from_bytes(filled, "little"), filled, feature, code))
    plain.sort()  # as `_order` has it
    filled_words = [word for _, _, word, _, _ in plain]
    feature_of = np.array([feature for *_, feature, _ in plain], dtype=np.int64)
    codes = np.array([code for *_, code in plain], dtype=np.float64)
    counts = [4 << len(texts).bit_length() if texts else 1 for texts in categories]
    features = np.array([np.cumsum([0, *counts])[:-1], np.array(counts) - 1], dtype=np.int64)
    bucket_of = np.empty(len(plain), dtype=np.int64)
    unsorted = Words(*_join(filled_words), codes, bucket_of, features)
    _hash_words(feature_of, unsorted, bucket_of)
    order = np.argsort(bucket_of, kind="stable")
    buckets = np.searchsorted(bucket_of[order], np.arange(sum(counts) + 1))
    joined = _join([filled_words[i] for i in order.tolist()])
    return Words(*joined, codes[order], buckets, features)


def _join(words: list[bytes]) -> tuple[Eights, npt.NDArray[np.int64]]:
    """Return the words one after the other, and where each begins and the last one ends."""
    starts = np.cumsum([0, *(len(word) // 8 for word in words)], dtype=np.int64)
    return np.frombuffer(b"".join(words), dtype=np.uint64).copy(), starts


# A regular expression's \s takes form feeds, too, which are no space to JSON.
_HEAD = re.compile(rb'~\{~"columns"~:~(\[[^\]]*\])~,~"data"~:~\['.replace(b"~", rb"[ \t\n\r]*"))
_ROWS_HEAD = re.compile(rb'~\{~"rows"~:~\[~(?=\{)'.replace(b"~", rb"[ \t\n\r]*"))
_MAX_EXPONENT = 999
_NULL, _TRUE, _FALSE = (np.frombuffer(said, np.uint8) for said in (b"null", b"true", b"false"))
_TEN = np.uint64(10)
_MAX_WHOLE = 18  # digits of a number that is an integer to every reader
_FEW_ROWS = 50  # for which space does not matter
_NO_EIGHTS = _by_eights(bytes(16))
_NO_STARTS = np.zeros(0, dtype=np.int64)


@_inlined
def _skip(body, at):  # type: ignore[no-untyped-def]
    """Return the position of the next byte that is no space."""
    while at < len(body) and (
        body[at] == _SPACE or body[at] == _LINE or body[at] == _TAB or body[at] == _RETURN
    ):
        at += 1
    return at


@_inlined
def _is_at(body, at, literal):  # type: ignore[no-untyped-def]
    """Return True if the body continues with the literal."""
    if at + len(literal) > len(body):
        return False
    i = 0
    while i < len(literal) and body[at + i] == literal[i]:
        i += 1
    return i == len(literal)


@_inlined
def _zeros(body, at):  # type: ignore[no-untyped-def]
    """Return the number of zeros before the first other digit of 0.00…; `at` is after the point."""
    zeros = 1
    while at < len(body) and body[at] == _0:
        zeros += 1
        at += 1
    return zeros


@_inlined
def _read_number(body, at, X, row, column):  # type: ignore[no-untyped-def]
    """Read a JSON number into X[row, column]; return where it ends, or -1."""
    n = len(body)
    negative = at < n and body[at] == _MINUS
    if negative:
        at += 1
    if at == n or body[at] < _0 or body[at] > _9:
        return _OTHER
    begins_with_0 = body[at] == _0
    w, power, first = np.uint64(0), 0, at
    while at < n and _0 <= body[at] <= _9:
        w = w * _TEN + np.uint64(body[at] - _0)
        at += 1
    digits = at - first
    if begins_with_0 and digits > 1:
        return _OTHER
    if begins_with_0 and negative and (at == n or body[at] != _POINT):
        return _OTHER  # -0 is an integer, which has no sign
    if at < n and body[at] == _POINT:
        first = at + 1
        at = first
        while at < n and _0 <= body[at] <= _9:
            w = w * _TEN + np.uint64(body[at] - _0)
            at += 1
        if at == first:
            return _OTHER
        power = first - at
        digits += at - first
    if at < n and (body[at] == _e or body[at] == _E):
        at += 1
        downwards = at < n and body[at] == _MINUS
        if at < n and (body[at] == _MINUS or body[at] == _PLUS):
            at += 1
        exponent, begun = 0, at
        while at < n and _0 <= body[at] <= _9 and exponent <= _MAX_EXPONENT:
            exponent = 10 * exponent + (body[at] - _0)
            at += 1
        if at == begun or exponent > _MAX_EXPONENT:
            return _OTHER
        power += -exponent if downwards else exponent
    if digits > MAX_DIGITS and not (begins_with_0 and digits - _zeros(body, first) <= MAX_DIGITS):
        return _OTHER
    value = _nearest(w, power)
    if np.isnan(value):
        return _OTHER
    X[row, column] = -value if negative else value
    return at


@_inlined
def _read_boolean(body, at, X, row, column):  # type: ignore[no-untyped-def]
    """Read true, false, or a number that is 1 or 0; return where it ends, or -1."""
    if _is_at(body, at, _TRUE):
        X[row, column] = 1.0
        return at + len(_TRUE)
    if _is_at(body, at, _FALSE):
        X[row, column] = 0.0
        return at + len(_FALSE)
    at = _read_number(body, at, X, row, column)
    if at >= 0 and X[row, column] != 0.0 and X[row, column] != 1.0:
        return _OTHER
    return at


@_inlined
def _end_of_bare_word(body, at):  # type: ignore[no-untyped-def]
    """Return where an unquoted word (true, false or a whole number) ends, or -1."""
    if _is_at(body, at, _TRUE):
        return at + len(_TRUE)
    if _is_at(body, at, _FALSE):
        return at + len(_FALSE)
    n, begun = len(body), at
    if at < n and body[at] == _MINUS:
        at += 1
    first = at
    while at < n and _0 <= body[at] <= _9:
        at += 1
    if at == first or at - first > _MAX_WHOLE or (body[first] == _0 and at - begun > 1):
        return _OTHER
    return at


@_inlined
def _read_word(body, eights, at, X, row, column, feature, words):  # type: ignore[no-untyped-def]
    """Read the text of a category as its position; return where it ends, or -1."""
    if at < len(body) and body[at] == _QUOTE:
        first = at + 1
        stop, mixed, last = _hash_quoted(body, eights, first)
        at = stop + 1
    else:
        first = at
        stop = _end_of_bare_word(body, at)
        at = stop
        if stop >= 0:
            mixed, last = _hash_text(body, eights, first, stop)
    if stop < 0:
        return _OTHER
    code = _code_of(body, eights, first, stop, mixed, last, feature, words)
    if code < 0:
        return _OTHER
    X[row, column] = code
    return at


@_inlined
def _skip_name(body, at, names, first, stop):  # type: ignore[no-untyped-def]
    """Return where the value begins if the body continues with names[first:stop] and a colon, or -1."""
    at = _skip(body, at)
    if at + stop - first > len(body):
        return _OTHER
    for i in range(first, stop):
        if body[at + i - first] != names[i]:
            return _OTHER
    at = _skip(body, at + stop - first)
    return at + 1 if at < len(body) and body[at] == _COLON else _OTHER


@kernel(
    numba.int64(
        BYTES,
        EIGHTS,
        numba.int64,
        numba.int64[:, ::1],
        WORDS,
        BYTES,
        numba.int64[::1],
        numba.float64[:, ::1],
    )
)
def _read_rows(body, eights, at, columns, words, names, starts, X):  # type: ignore[no-untyped-def]
    """Read rows until their list and the body end; return how many, or -1 if the body is not plain.

    `columns` is int64 of shape (2, columns): what each holds (NUMBER, BOOLEAN or WORD), and its feature. If rows are
    objects, `names` is the columns' quoted names, one after the other, and `starts`, int64 of shape (columns + 1), is
    where each begins; if rows are lists, `starts` is empty. `X` is float64 of shape (rows, columns).
    """
    n, width, are_objects = len(body), X.shape[1], len(starts) > 0
    begin, end = (_BEGIN, _END) if are_objects else (_OPEN, _SHUT)
    row = np.int64(0)  # with a literal 0, all functions that take it would be compiled again
    at = _skip(body, at)
    if at < n and body[at] == _SHUT:
        at += 1
    else:
        while True:
            if at == n or body[at] != begin or row == X.shape[0]:
                return _OTHER
            at += 1
            for column in range(width):
                if are_objects:
                    at = _skip_name(body, at, names, starts[column], starts[column + 1])
                    if at < 0:
                        return _OTHER
                if at < n and body[at] <= _SPACE:
                    at = _skip(body, at)
                if _is_at(body, at, _NULL):
                    X[row, column] = np.nan
                    at += len(_NULL)
                elif columns[0, column] == NUMBER:
                    at = _read_number(body, at, X, row, column)
                elif columns[0, column] == WORD:
                    at = _read_word(body, eights, at, X, row, column, columns[1, column], words)
                else:
                    at = _read_boolean(body, at, X, row, column)
                if at < 0:
                    return _OTHER
                if at < n and body[at] <= _SPACE:
                    at = _skip(body, at)
                if at == n or body[at] != (_COMMA if column < width - 1 else end):
                    return _OTHER
                at += 1
            row += 1
            at = _skip(body, at)
            if at == n:
                return _OTHER
            at += 1
            if body[at - 1] == _SHUT:
                break
            if body[at - 1] != _COMMA:
                return _OTHER
            at = _skip(body, at)
    at = _skip(body, at)
    if at == n or body[at] != _END:
        return _OTHER
    return row if _skip(body, at + 1) == n else _OTHER


class PlainRows:
    """Reads bodies for one model.

    Parameters
    ----------
    names : list of str
        The features in the model's order.
    kinds : list of int
        What each holds: NUMBER, BOOLEAN or WORD.
    words : Words
        The categories of each.
    """

    def __init__(self, names: list[str], kinds: list[int], words: Words) -> None:
        self._names = names
        self._words = words
        self._has_words = WORD in kinds
        self._features = np.array([kinds, range(len(names))], dtype=np.int64)
        self._index = {name: i for i, name in enumerate(names)}

    def read(self, body: bytes) -> Floats | None:
        """Return the rows of a body that has just these features, in any order; None if it is not plain.

        Rows are lists below `columns`, or objects that all have the order of the first.
        """
        try:
            if (head := _HEAD.match(body)) is not None:
                columns = orjson.loads(head[1])
                spelled, starts, mark = b"", _NO_STARTS, _OPEN
            elif (head := _ROWS_HEAD.match(body)) is not None:
                columns = list(orjson.loads(body[head.end() : body.find(b"}", head.end()) + 1]))
                names = [b'"%s"' % name.encode() for name in columns]
                starts = np.cumsum([0, *map(len, names)], dtype=np.int64)
                spelled, mark = b"".join(names), _BEGIN
            else:
                return None
        except orjson.JSONDecodeError:  # a bracket within a name, for one
            return None
        if columns == self._names:
            features = self._features
        elif _is_rearranged(columns, self._index):
            features = np.ascontiguousarray(
                self._features[:, [self._index[name] for name in columns]]
            )
        else:
            return None
        # A row has a character and a comma or bracket for each value: what is no more than brackets gets no room.
        row_bytes = 2 * len(columns) + 1 + len(spelled)
        max_rows = (len(body) - head.end()) // row_bytes
        text = np.frombuffer(body, dtype=np.uint8)
        if max_rows > _FEW_ROWS:  # often too many, but bytes.count would be slower
            max_rows = min(max_rows, int(np.count_nonzero(text[head.end() :] == mark)))
        X = np.empty((max_rows, len(columns)))
        eights = _by_eights(body) if self._has_words else _NO_EIGHTS
        quoted = np.frombuffer(spelled, dtype=np.uint8)
        rows = _read_rows(text, eights, head.end(), features, self._words, quoted, starts, X)
        if rows < 0:
            return None
        X = X[:rows]
        if features is self._features:
            return X
        return np.ascontiguousarray(X[:, np.argsort(features[1])])


def _is_rearranged(columns: Sequence[object], index: dict[str, int]) -> bool:
    """Return True if the columns are the features in another order, each of them once."""
    if len(columns) != len(index) or not all(isinstance(name, str) for name in columns):
        return False
    return set(columns) == index.keys()


_HEXADECIMAL = np.full(256, _OTHER, dtype=np.int64)  # the value of each hexadecimal digit
for _digit in b"0123456789abcdefABCDEF":
    _HEXADECIMAL[_digit] = int(chr(_digit), 16)

_INTS = numba.int64[::1]


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _decode_word(query, at, word):  # type: ignore[no-untyped-def]
    """Decode a percent-encoded value into `word`; return where the value ends, or -1, and the length of the word."""
    length = 0
    while at < len(query) and query[at] != _AND:
        byte = query[at]
        if byte == _PLUS:
            byte = np.uint8(_SPACE)
        elif byte == _PERCENT:
            if at + 2 >= len(query):
                return _OTHER, 0
            high, low = _HEXADECIMAL[query[at + 1]], _HEXADECIMAL[query[at + 2]]
            if high < 0 or low < 0:
                return _OTHER, 0
            byte = np.uint8(16 * high + low)
            at += 2
        word[length] = byte
        length += 1
        at += 1
    return at, length


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _find_word(word, start, stop, text, starts, low, high):  # type: ignore[no-untyped-def]
    """Return the index of word[start:stop] among the ascending words low to high - 1, by bisection, or -1."""
    while low < high:
        middle = (low + high) // 2
        at, place, end = start, starts[middle], starts[middle + 1]
        while at < stop and place < end and word[at] == text[place]:
            at += 1
            place += 1
        if at == stop and place == end:
            return middle
        if place == end or (at < stop and word[at] > text[place]):
            low = middle + 1
        else:
            high = middle
    return _OTHER


@numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _code_of_word(word, length, text, starts, low, high):  # type: ignore[no-untyped-def]
    """Return the position of a word among those of its feature, NaN for any other, or -1 if it may not be UTF-8."""
    first = np.int64(0)  # with a literal 0 the search would be compiled twice
    found = _find_word(word, first, length, text, starts, low, high)
    if found < 0:
        while first < length and (word[first] == _SPACE or word[first] == _TAB):
            first += 1
        while length > first and (word[length - 1] == _SPACE or word[length - 1] == _TAB):
            length -= 1
        found = _find_word(word, first, length, text, starts, low, high)
    if found >= 0:
        return float(found - low)
    for i in range(length):
        if word[i] >= _ASCII_END:
            return float(_OTHER)
    return np.nan


@kernel(numba.boolean(BYTES, BYTES, _INTS, numba.int64[:, ::1], numba.float64[:, ::1]))
def _read_row(query, text, starts, features, row):  # type: ignore[no-untyped-def]
    """Read name=value for each name in order, joined by &, into the row; return False if the query is not plain.

    `starts` is where each word begins in `text`: first the names, then the categories. Those of a feature are the
    words features[0] to features[1] - 1; a feature without any takes numbers. `row` is float64 of shape (1, features).
    """
    at, first_row = 0, np.int64(0)  # with a literal 0 the reader would be compiled again
    for feature in range(features.shape[1]):
        if feature > 0:
            if at == len(query) or query[at] != _AND:
                return False
            at += 1
        start = starts[feature]
        length = starts[feature + 1] - start
        if at + length >= len(query) or query[at + length] != _IS:
            return False
        for i in range(length):
            if query[at + i] != text[start + i]:
                return False
        at += length + 1
        if at == len(query) or query[at] == _AND:
            row[0, feature] = np.nan
        elif features[0, feature] == features[1, feature]:
            at = _read_number(query, at, row, first_row, feature)
            if at < 0:
                return False
        else:
            word = np.empty(len(query) - at, dtype=np.uint8)
            at, length = _decode_word(query, at, word)
            if at < 0:
                return False
            low, high = features[0, feature], features[1, feature]
            code = _code_of_word(word, length, text, starts, low, high)
            if code < 0:
                return False
            row[0, feature] = code
    return at == len(query)


class PlainQuery:
    """Reads queries of one model.

    Parameters
    ----------
    names : list of str
        The features in the model's order, each as callers spell it in a query.
    categories : list of (sequence of str or None), one per feature
        The categories of a categorical feature, ascending, whose positions are its values.
    """

    def __init__(self, names: list[str], categories: Sequence[Sequence[str] | None]) -> None:
        spelled = [word.encode() for word in chain(names, *(words or () for words in categories))]
        self._text: npt.NDArray[np.uint8] = np.frombuffer(b"".join(spelled), dtype=np.uint8)
        self._starts = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
        ends = len(names) + np.cumsum([len(words or ()) for words in categories], dtype=np.int64)
        self._features = np.stack([np.r_[len(names), ends[:-1]], ends])
        self._shape = (1, len(names))

    def read(self, query: bytes) -> npt.NDArray[np.float64] | None:
        """Return the row, float64 of shape (1, n_features); None if the query is not plain."""
        row = np.empty(self._shape)
        read = _read_row(
            np.frombuffer(query, dtype=np.uint8), self._text, self._starts, self._features, row
        )
        return row if read else None
