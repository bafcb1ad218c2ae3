"""Decision ids as numbers, and which copy of a repeated decision counts.

A repeated request has the same decision ids, in another row or file. Its decisions count once: the earliest copy does.
Ids are compared as a whole, 128 bits, whatever their hashes.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.platform.errors import is_plain
from app.platform.ids import is_id

if TYPE_CHECKING:
    import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

MAX_LENGTH = 255
ID_RULE = f"must have 1 to {MAX_LENGTH} characters and no control characters"
"""Of the ids of callers: of their decisions, and of the entities that these are about."""
DECISION_ID_RULE = f"{ID_RULE}, and not be . or .., which no address can contain"
"""Clients and proxies remove these parts of a path, even if they are escaped."""
_PREFIX = b"dec_"
_LENGTH = len(_PREFIX) + 32
_LOWER = np.uint64(0x2020202020202020)
"""A bit that digits and lower-case letters have, and upper-case letters do not."""
_MAX_PARTS = 32


def is_valid_id(text: str) -> bool:
    """Return whether a text follows `ID_RULE`."""
    return 0 < len(text) <= MAX_LENGTH and is_plain(text)


def is_valid_decision_id(text: str) -> bool:
    """Return whether a text follows `DECISION_ID_RULE`."""
    return is_valid_id(text) and text not in {".", ".."}


class DecisionKeys(NamedTuple):
    """Decision ids as pairs of numbers, which recover an id of 32 hexadecimal digits; other ids are 128-bit BLAKE2b
    hashes.

    `hashes` alone serve for lookup.
    """

    hashes: Hashes
    rest: Hashes

    def take(self, rows: npt.NDArray[Any]) -> DecisionKeys:
        """Return some of the ids, given by positions or as a mask."""
        return DecisionKeys(self.hashes[rows], self.rest[rows])


def keys_of(ids: pa.Array) -> DecisionKeys:
    """No id is an empty id."""
    plain = _hexadecimal(ids)
    if plain is None:
        bits = b"".join(_bits(text or "") for text in ids.to_pylist())
        plain = np.frombuffer(bits, np.uint64).reshape(-1, 2)
    first, rest = plain[:, 0], np.ascontiguousarray(plain[:, 1])
    # One-to-one for each `rest`, so that no two ids have the same pair.
    return DecisionKeys(_mixed(first ^ _mixed(rest)), rest)


def hash_decision_ids(ids: pa.Array) -> Hashes:
    """All digits contribute to the 64 bits."""
    return keys_of(ids).hashes


def _hexadecimal(ids: pa.Array) -> npt.NDArray[np.uint64] | None:
    """Return ids of our form as 128 bits each; None if one has another form."""
    count = len(ids)
    if ids.null_count or not count:
        return None
    offsets = np.frombuffer(ids.buffers()[1], np.int32, count + 1, ids.offset * 4)
    if not np.all(np.diff(offsets) == _LENGTH):
        return None
    joined = np.frombuffer(ids.buffers()[2], np.uint8, count * _LENGTH, int(offsets[0]))
    text = joined.reshape(count, _LENGTH)
    digits = np.ascontiguousarray(text[:, len(_PREFIX) :])
    is_lower = np.bitwise_and.reduce(digits.view(np.uint64), axis=None) & _LOWER == _LOWER
    if not is_lower or not np.all(text[:, : len(_PREFIX)] == np.frombuffer(_PREFIX, np.uint8)):
        return None
    try:
        return np.frombuffer(binascii.unhexlify(digits.data), np.uint64).reshape(count, 2)
    except binascii.Error:
        return None


def _bits(text: str) -> bytes:
    if is_id(text, "dec"):
        return bytes.fromhex(text[len(_PREFIX) :])
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _mixed(values: Hashes) -> Hashes:
    """Return the values with their bits mixed, one-to-one (the finalizer of SplitMix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def join_keys(parts: Sequence[DecisionKeys]) -> DecisionKeys:
    none = np.empty(0, np.uint64)
    return DecisionKeys(
        np.concatenate([none, *(each.hashes for each in parts)]),
        np.concatenate([none, *(each.rest for each in parts)]),
    )


def first_copies(keys: DecisionKeys, at: Floats | None = None) -> Mask:
    """Return for each id the earliest row, of equal times the first. Without `at`, the first."""
    by = (keys.rest, keys.hashes) if at is None else (at, keys.rest, keys.hashes)
    order = np.lexsort(by)
    ordered = keys.take(order)
    repeated = (ordered.hashes[1:] == ordered.hashes[:-1]) & (ordered.rest[1:] == ordered.rest[:-1])
    first = np.ones(len(order), np.bool_)
    first[order[1:][repeated]] = False
    return first


def find_sorted(values: Hashes, wanted: Hashes) -> tuple[Positions, Positions]:
    """Return first positions in sorted `values` of the wanted ones that are there, and their positions in `wanted`."""
    at = np.searchsorted(values, wanted)
    rows = np.flatnonzero(at < len(values))
    rows = rows[values[at[rows]] == wanted[rows]]
    return at[rows], rows


def lower_bounds(
    values: npt.NDArray[Any],
    low: Positions,
    high: Positions,
    wanted: npt.NDArray[Any],
) -> Positions:
    """Return the first position not less than each wanted value, in sorted ranges from `low` to before `high`."""
    low, high = low.astype(np.int64), high.astype(np.int64)
    while True:
        going = np.flatnonzero(low < high)
        if not len(going):
            return low
        middle = (low[going] + high[going]) // 2
        less = values[middle] < wanted[going]
        low[going[less]] = middle[less] + 1
        high[going[~less]] = middle[~less]


class DecisionKeySet:
    """A growing set of decision ids, as sorted arrays."""

    def __init__(self) -> None:
        self._parts: list[DecisionKeys] = []

    def add(self, keys: DecisionKeys) -> None:
        self._parts.append(_sorted(keys))
        if len(self._parts) > _MAX_PARTS:
            self._parts = [_sorted(join_keys(self._parts))]

    def has(self, keys: DecisionKeys) -> Mask:
        """Return which of the ids are in the set."""
        found = np.zeros(len(keys.hashes), np.bool_)
        for part in self._parts:
            low, rows = find_sorted(part.hashes, keys.hashes)
            some = keys.take(rows)
            high = np.searchsorted(part.hashes, some.hashes, "right")
            at = lower_bounds(part.rest, low, high, some.rest)
            at = np.minimum(at, high - 1)
            found[rows] |= part.rest[at] == some.rest
        return found


def _sorted(keys: DecisionKeys) -> DecisionKeys:
    return keys.take(np.lexsort((keys.rest, keys.hashes)))
