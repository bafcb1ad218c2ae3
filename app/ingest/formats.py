"""The formats of tables: content types, file endings, and how text is written: encoding, delimiter, numbers, dates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from app.ingest.values import DAY_FIRST, MONTH_FIRST, Notation
from app.platform.errors import UnsupportedMedia

ENCODINGS: Mapping[str, str] = {
    "utf-8": "utf-8",
    "utf-16": "utf-16",
    "latin-1": "latin-1",
    "windows-1252": "cp1252",
}
"""Name over HTTP -> Python's codec."""

DELIMITERS: Mapping[str, str] = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
DECIMALS: Mapping[str, str] = {"point": ".", "comma": ","}
THOUSANDS: Mapping[str, str] = {"point": ".", "comma": ",", "space": " ", "apostrophe": "'"}
DATES: Mapping[str, str] = {DAY_FIRST: DAY_FIRST, MONTH_FIRST: MONTH_FIRST}
CHOICES: Mapping[str, Mapping[str, str]] = {
    "encoding": ENCODINGS,
    "delimiter": DELIMITERS,
    "decimal": DECIMALS,
    "thousands": THOUSANDS,
    "dates": DATES,
}
"""What a caller may say of a CSV, in these words; `dates` of any format, for all may hold dates as text."""
ANY_FORMAT = "dates"
NOTATION_FIELDS = ("decimal", "thousands", "dates")
"""Those that say how numbers and dates are written."""

MAX_CONTENT_TYPE_LENGTH = 1000
_CHARSETS = {"us-ascii": "utf-8", "iso-8859-1": "latin-1", "cp1252": "windows-1252"}

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")


@dataclass(frozen=True)
class Dialect:
    """What is said of a table's text, in the words of `CHOICES`; None where nothing is."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    dates: str | None = None

    @property
    def notation(self) -> Notation:
        """How numbers and dates are written."""
        thousands = "" if self.thousands is None else THOUSANDS[self.thousands]
        return Notation(DECIMALS[self.decimal or "point"], thousands, self.dates)

    def codec(self, head: bytes) -> str | None:
        """Return Python's codec for a file that begins so; None for UTF-8, which needs none.

        The zero bytes of commas and line ends tell which of UTF-16's two orders it is.
        """
        codec = ENCODINGS[self.encoding] if self.encoding else _sniff_codec(head)
        if codec == "utf-16" and not head.startswith(_UTF16_MARKS):
            return "utf-16-be" if head[::2].count(0) > head[1::2].count(0) else "utf-16-le"
        return None if codec == "utf-8" else codec


def fields_of(notation: Notation) -> dict[str, str]:
    """Return the fields of a CSV that say a notation of numbers."""
    marks = (("decimal", DECIMALS, notation.decimal), ("thousands", THOUSANDS, notation.thousands))
    return {
        field: word for field, words, own in marks for word, mark in words.items() if mark == own
    }


def changes(notation: Notation, own: Notation) -> dict[str, str]:
    """Return the fields of a CSV that say a notation of numbers where another one is said."""
    before = fields_of(own)
    return {name: word for name, word in fields_of(notation).items() if before.get(name) != word}


def notation_fields(dialect: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the fields of a stored dialect that say how numbers and dates are written."""
    own = dialect or {}
    return {name: own[name] for name in NOTATION_FIELDS if own.get(name) is not None}


def merge(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return what is said of a table, with what is said anew. A decimal mark that is given ends its use between
    thousands.
    """
    merged = {**own, **given}
    if "thousands" not in given and find_clash(merged):
        del merged["thousands"]
    return merged


def find_clash(given: Mapping[str, str]) -> str | None:
    """Return what is wrong with a mark that is to stand between thousands and before decimals; None if nothing is."""
    mark = given.get("thousands")
    if mark is None or mark != (given.get("decimal") or "point"):
        return None
    other = "comma" if mark == "point" else "point"
    return f"thousands={mark} needs decimal={other}: a {mark} cannot stand between thousands and before decimals"


def foreign_fields(dialect: Mapping[str, str], content_type: str) -> list[str]:
    """Return the fields that mean nothing for a format: those of a CSV for any other.

    A sheet may have numbers as text.
    """
    if content_type == CSV:
        return []
    known = (ANY_FORMAT, "decimal", "thousands") if content_type == XLSX else (ANY_FORMAT,)
    return [field for field in dialect if field not in known]


def check_length(content_type: str) -> None:
    """Raise UnsupportedMedia for a Content-Type that is overlong: libraries take quadratic time for its parameters."""
    if len(content_type) > MAX_CONTENT_TYPE_LENGTH:
        raise UnsupportedMedia(
            f"Content-Type may have at most {MAX_CONTENT_TYPE_LENGTH} characters, got {len(content_type)}"
        )


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
        return "utf-8"  # it is not; the header's names will show it
    in_turn = len(head) >= 2 and (head[0] == 0) != (head[1] == 0)
    return "utf-16" if head.startswith(_UTF16_MARKS) or in_turn else "utf-8"


CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
NDJSON = "application/x-ndjson"
JSON_ARRAY = "application/json"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CONTENT_TYPES = (CSV, PARQUET, ARROW, ARROW_FILE, NDJSON, JSON_ARRAY, XLSX)
ZIP_ARCHIVE = "application/zip"
"""What may be said of an archive with one table; its bytes say which format the table has."""
SUFFIXES: Mapping[str, str] = {
    ".csv": CSV,
    ".tsv": CSV,
    ".txt": CSV,
    ".parquet": PARQUET,
    ".ndjson": NDJSON,
    ".jsonl": NDJSON,
    ".json": JSON_ARRAY,
    ".xlsx": XLSX,
    ".zip": ZIP_ARCHIVE,
    ".arrows": ARROW,
    ".arrow": ARROW_FILE,
    ".feather": ARROW_FILE,
}
"""How the name of a file ends -> its content type."""
COMPRESSED: Mapping[str, str] = {".gz": "gzip", ".zst": "zstd"}
"""What may stand behind that -> its content encoding."""


def type_of_file(name: str) -> tuple[str | None, str | None]:
    """Return the content type and the encoding that the name of a file tells; None for what it does not."""
    name = name.lower()
    suffix = Path(name).suffix
    encoding = COMPRESSED.get(suffix)
    if encoding is not None:
        suffix = Path(name.removesuffix(suffix)).suffix
    return SUFFIXES.get(suffix), encoding
