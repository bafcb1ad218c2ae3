"""The words of a model's categorical features, to be found in the bytes of a body by a compiled reader.

Bytes are taken by eights, as integers of 64 bits with the first byte lowest. Each feature has buckets of its own, more
than four times as many as words, and a word is in the one that its hash names. So most texts are compared with one word
or none. Anybody may know the hash and choose words that share a bucket: there they are in order, and it is bisected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from core.kernel import kernel

# Of functions called for each cell. Numba would have each of them count references to its arrays, and be handed every
# part of them: that costs more than all else that they do.
flat = numba.njit(
    nogil=True, _nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True
)

Eights = npt.NDArray[np.uint64]
BYTES = numba.types.Array(numba.uint8, 1, "C", readonly=True)
EIGHTS = numba.types.Array(numba.uint64, 1, "A", readonly=True, aligned=False)

_OTHER = -1  # where something is not plain
_SPACE, _ASCII_END = 0x20, 0x80
_START, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_ONE, _SEVEN, _HALF, _TOP = (np.uint64(value) for value in (1, 7, 32, 56))
_EACH, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_QUOTES, _ESCAPES, _SPACES = (_EACH * np.uint64(byte) for byte in b'"\\ ')
_NOT_PLAIN = re.compile(
    r'[\x00-\x1f"\\]'
)  # what JSON escapes: a body has such a word in no plain form


class Words(NamedTuple):
    """The words of all features, as kernels take them: feature by feature, bucket by bucket, in order."""

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


def by_eights(body: bytes) -> Eights:
    """The eight bytes from every place on that has as many."""
    return np.ndarray((max(len(body) - 7, 0),), np.uint64, body, strides=(1,))


@flat
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


@flat
def _mix(mixed, eight):  # type: ignore[no-untyped-def]
    mixed = (mixed ^ eight) * _FACTOR
    return mixed ^ (mixed >> _HALF)


@flat
def hash_quoted(body, eights, at):  # type: ignore[no-untyped-def]
    """Return where the quote is that ends the text from `at` on, the text's hash and its last eight.

    The first is -1 where an escape, a control character or the end of the body comes before a quote.
    """
    mixed = _START
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
    length = np.int64(((before & _EACH) * _EACH) >> _TOP)
    return at + length, _mix(mixed, eight), eight


@flat
def hash_text(body, eights, at, stop):  # type: ignore[no-untyped-def]
    """Return the hash of body[at:stop] and its last eight."""
    mixed = _START
    while True:
        eight = _eight(body, eights, at, stop)
        mixed = _mix(mixed, eight)
        at += 8
        if at > stop:
            return mixed, eight


@flat
def _bucket(mixed, feature, words):  # type: ignore[no-untyped-def]
    """Return the bucket of a feature that a hash names."""
    return words.features[0, feature] + (np.int64(mixed) & words.features[1, feature])


@flat
def _order(eights, at, stop, last, word, words):  # type: ignore[no-untyped-def]
    """Tell whether body[at:stop], whose last eight is given, comes before a word, after it, or is it: -1, 1 or 0.

    The shorter comes first, then the one that is less as one integer.
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


@flat
def _find(eights, start, stop, mixed, last, feature, words):  # type: ignore[no-untyped-def]
    """Find body[start:stop] among the words of a feature, or return -1."""
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


@flat
def _is_utf_8(text, at, stop):  # type: ignore[no-untyped-def]
    """Whether text[at:stop] is well formed, as table 3-7 of the Unicode standard has it."""
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


@flat
def code_of(body, eights, start, stop, mixed, last, feature, words):  # type: ignore[no-untyped-def]
    """Return what a plain text is for a feature: its position, NaN if it is no word, or -1 if it is not UTF-8.

    As `category_index` has it: as it is, or else without spaces around.
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
        mixed, last = hash_text(body, eights, first, end)
        found = _find(eights, first, end, mixed, last, feature, words)
        if found >= 0:
            return words.codes[found]
    return np.nan if _is_utf_8(body, start, stop) else float(_OTHER)


@kernel(numba.void(numba.int64[::1], WORDS, numba.int64[::1]))
def _hash_words(feature_of, words, bucket_of):  # type: ignore[no-untyped-def]
    """Say of each word its bucket."""
    for word in range(len(feature_of)):
        mixed = _START
        for place in range(words.starts[word], words.starts[word + 1]):
            mixed = _mix(mixed, words.eights[place])
        bucket_of[word] = _bucket(mixed, feature_of[word], words)


def lay_out(categories: Sequence[Sequence[str] | None]) -> Words:
    """Lay out the categories of each feature, whose positions are its values; None for a feature that has none."""
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
    """One word behind the other, and where each begins and the last one ends."""
    starts = np.cumsum([0, *(len(word) // 8 for word in words)], dtype=np.int64)
    return np.frombuffer(b"".join(words), dtype=np.uint64).copy(), starts
