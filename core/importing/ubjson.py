"""A reader of UBJSON as XGBoost writes it, for untrusted bytes."""

import struct
from typing import Any

import numpy as np

from core.errors import InvalidModelFile

MAX_DEPTH = 64
BYTES_PER_VALUE, MIN_VALUES = 8, 1 << 16
"""Bytes of a value on average, and how many values may be shorter: XGBoost writes numbers as typed arrays, which are
one value, and keys of 9 bytes and more.
"""

# Markers of numbers: how `struct` and numpy read them, big-endian.
_NUMBERS = {
    b"i": ">i1",
    b"U": ">u1",
    b"I": ">i2",
    b"l": ">i4",
    b"L": ">i8",
    b"d": ">f4",
    b"D": ">f8",
}
_FORMATS = {b"i": ">b", b"U": ">B", b"I": ">h", b"l": ">i", b"L": ">q", b"d": ">f", b"D": ">d"}
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}


def read_ubjson(data: bytes) -> Any:
    """Return the value; arrays of one type of number are ndarrays.

    Time and memory are proportional to the bytes: a count is refused unless the bytes of its values follow, and so are
    many values of few bytes, of which each takes as long as a longer one.
    InvalidModelFile: the bytes are not one complete value.
    """
    reader = _Reader(data)
    value = reader.value(reader.take(1), 0)
    if reader.at != len(data):
        raise reader.error(
            "the file must end after its value", f"{len(data) - reader.at} more bytes"
        )
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.left = MIN_VALUES + len(data) // BYTES_PER_VALUE

    def error(self, rule: str, got: object) -> InvalidModelFile:
        return InvalidModelFile(f"UBJSON, byte {self.at}: {rule}, got {got}")

    def take(self, n: int) -> bytes:
        left = len(self.data) - self.at
        if not 0 <= n <= left:
            raise self.error(f"a length must be from 0 to the {left} bytes that follow", n)
        self.at += n
        return self.data[self.at - n : self.at]

    def number(self, marker: bytes) -> Any:
        form = _FORMATS.get(marker)
        if form is None:
            raise self.error(
                f"a marker must be one of {', '.join(map(bytes.decode, _FORMATS))}", marker
            )
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self) -> int:
        marker = self.take(1)
        if marker in (b"d", b"D"):
            raise self.error("a count must be an integer", marker)
        return int(self.number(marker))

    def text(self) -> str:
        try:
            return self.take(self.count()).decode()
        except UnicodeDecodeError as error:
            raise self.error("text must be UTF-8", error.reason) from error

    def value(self, marker: bytes, depth: int) -> Any:
        self.left -= 1
        if self.left < 0:
            raise self.error(f"values must take {BYTES_PER_VALUE} bytes or more on average", "less")
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self.text()
        if marker not in (b"[", b"{"):
            return self.number(marker)
        if depth == MAX_DEPTH:
            raise self.error(f"values must be nested at most {MAX_DEPTH} deep", "more")
        return self.array(depth + 1) if marker == b"[" else self.object(depth + 1)

    def object(self, depth: int) -> dict[str, Any]:
        result = {}
        while self.data[self.at : self.at + 1] != b"}":
            key = self.text()
            result[key] = self.value(self.take(1), depth)
        self.at += 1
        return result

    def array(self, depth: int) -> Any:
        marker = self.take(1)
        if marker == b"$":
            dtype = np.dtype(self.known(self.take(1)))
            if self.take(1) != b"#":
                raise self.error("a typed array must have a count", "none")
            return np.frombuffer(self.take(self.count() * dtype.itemsize), dtype)
        values: list[Any] = []
        if marker == b"#":
            n = self.count()
            if not 0 <= n <= len(self.data) - self.at:  # each takes a byte or more
                raise self.error("a count must be at most the bytes that follow", n)
            for _ in range(n):
                values.append(self.value(self.take(1), depth))
            return values
        while marker != b"]":
            values.append(self.value(marker, depth))
            marker = self.take(1)
        return values

    def known(self, marker: bytes) -> str:
        if marker not in _NUMBERS:
            raise self.error(
                f"typed arrays must be of {', '.join(map(bytes.decode, _NUMBERS))}", marker
            )
        return _NUMBERS[marker]
