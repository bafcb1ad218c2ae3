"""How a CSV is written: the encoding of its text, what stands between values, and what before decimals.

What the caller says holds. What is left open is read off the file, as far as it can be told without a guess: UTF-16 by
its byte order mark or its zero bytes, the delimiter by the header. Latin-1 and a decimal comma have to be said, for a
wrong guess would change values without anybody's notice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


ENCODINGS: Mapping[str, str] = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "latin-1": "latin-1",
    "windows-1252": "cp1252",
}
"""Name over HTTP -> Python's codec."""

DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
DECIMALS: Mapping[str, str] = {"point": ".", "comma": ","}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "encoding": ENCODINGS,
    "delimiter": DELIMITERS,
    "decimal": DECIMALS,
}
"""What a caller may say of a CSV, in these words."""

_CHARSETS = {"us-ascii": "utf-8", "iso-8859-1": "latin-1", "cp1252": "windows-1252"}

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


@dataclass(frozen=True)
class Dialect:
    """What is said of a CSV, in the words of `CHOICES`; None where nothing is."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None

    @property
    def decimal_mark(self) -> str:
        """What stands before decimals."""
        return DECIMALS[self.decimal or "point"]

    def codec(self, head: bytes) -> str | None:
        """Return Python's codec for a file that begins so; None for UTF-8, which needs none.

        The zero bytes of commas and line ends tell which of UTF-16's two orders it is.
        """
        codec = ENCODINGS[self.encoding] if self.encoding else _sniff_codec(head)
        if codec == "utf-16" and not head.startswith(_UTF16_MARKS):
            return "utf-16-be" if head[::2].count(0) > head[1::2].count(0) else "utf-16-le"
        return None if codec == "utf-8" else codec


def encoding_of(content_type: str) -> str | None:
    """Return the encoding that a Content-Type names by its charset; None without one. Raises ValueError for others."""
    message = Message()
    message["Content-Type"] = content_type
    charset = message.get_param("charset")
    if charset is None:
        return None
    encoding = _CHARSETS.get(str(charset).lower(), str(charset).lower())
    if encoding not in ENCODINGS:
        raise ValueError(
            f"charset must be one of {', '.join(ENCODINGS)}, got {str(charset)[:50]!r}"
        )
    return encoding


def _sniff_codec(head: bytes) -> str:
    """UTF-16 where the file says so, or where one of its first two bytes is zero, as in Latin letters; else UTF-8."""
    if head.startswith(_UTF32_MARKS):
        return "utf-8"  # which it is not; the header's names will say so
    in_turn = len(head) >= 2 and (head[0] == 0) != (head[1] == 0)
    return "utf-16" if head.startswith(_UTF16_MARKS) or in_turn else "utf-8"


def with_point(text: pa.Array, mark: str) -> pa.Array:
    """Return texts with a point where the decimal mark stands; a number with any other point is none any more."""
    import pyarrow.compute as pc

    if mark == ".":
        return text
    return pc.replace_substring(pc.replace_substring(text, ".", "'"), mark, ".")
