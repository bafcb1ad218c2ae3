"""Formats of tables: content types, file endings, and the dialect of texts (encoding, delimiter, numbers, dates)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from app.ingest.fields import ChoiceField, TextField, TextFields
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

MAX_CONTENT_TYPE_LENGTH = 1000
_CHARSETS = {"us-ascii": "utf-8", "iso-8859-1": "latin-1", "cp1252": "windows-1252"}

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_UTF32_MARKS = (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
NDJSON = "application/x-ndjson"
JSON_ARRAY = "application/json"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CONTENT_TYPES = (CSV, PARQUET, ARROW, ARROW_FILE, NDJSON, JSON_ARRAY, XLSX)


@dataclass(frozen=True)
class DialectField(TextField):
    """A field of a dialect. `formats` are those that have it (None: all). `unset` describes the behaviour without it.

    A model `passes_on` the field of its training table to the tables that it scores; one that `fits` only to the tables
    that it fits.
    """

    formats: Collection[str] | None = (CSV,)
    unset: str = "nothing"
    passes_on: bool = False
    fits: bool = False

    def means_something(self, content_type: str) -> bool:
        return self.formats is None or content_type in self.formats


@dataclass(frozen=True)
class DialectChoice(DialectField, ChoiceField):
    """A field of the dialect with one of a few words."""


class TextDialect(TextFields):
    """How the text of a table is written; None means the usual form, or the one that the reader detects."""

    encoding: Annotated[
        str | None,
        DialectChoice(words=ENCODINGS, unset="UTF-8 or UTF-16", passes_on=True, fits=True),
    ] = Field(
        default=None,
        description="Encoding of a CSV file: `utf-8`, `utf-16`, `latin-1` or `windows-1252`.",
    )
    delimiter: Annotated[
        str | None,
        DialectChoice(words=DELIMITERS, unset="detected in the header", passes_on=True, fits=True),
    ] = Field(
        default=None, description="Delimiter of a CSV file: `comma`, `semicolon`, `tab` or `pipe`."
    )
    decimal: Annotated[
        str | None,
        DialectChoice(words=DECIMALS, formats=(CSV, XLSX), unset="`point`", passes_on=True),
    ] = Field(default=None, description="Decimal separator of a CSV file: `point` or `comma`.")
    thousands: Annotated[
        str | None,
        DialectChoice(words=THOUSANDS, formats=(CSV, XLSX), passes_on=True),
    ] = Field(
        default=None,
        description="Thousands separator of a CSV file: `point`, `comma`, `space` or `apostrophe`.",
    )
    dates: Annotated[
        str | None,
        DialectChoice(
            words=DATES,
            formats=None,
            unset="detected from the values, if they are unambiguous",
            passes_on=True,
        ),
    ] = Field(
        default=None,
        description="How to read a date such as 03/04/2026: `day_first` or `month_first`. Not needed for "
        "2026-04-03 and 03.04.2026.",
    )

    @classmethod
    @cache
    def choices(cls) -> dict[str, DialectField]:
        return {name: each for name, each in cls.types().items() if isinstance(each, DialectField)}

    @classmethod
    def schemas(cls) -> dict[str, dict[str, Any]]:
        """The description has the default."""
        found = super().schemas()
        for name, each in cls.choices().items():
            found[name]["description"] += f" Default: {cls.unset(each)}."
        return found

    @classmethod
    def unset(cls, choice: DialectField) -> str:
        """Describe the behaviour without the field."""
        return choice.unset

    @property
    def dialect(self) -> dict[str, str] | None:
        """The fields that are set; None if none is."""
        given = {name: getattr(self, name) for name in self.choices()}
        return {name: word for name, word in given.items() if word is not None} or None

    @property
    def notation(self) -> Notation:
        thousands = "" if self.thousands is None else THOUSANDS[self.thousands]
        return Notation(DECIMALS[self.decimal or "point"], thousands, self.dates)

    def codec(self, head: bytes) -> str | None:
        """Return Python's codec for a file with this beginning; None for UTF-8. The zero bytes in commas and line ends
        show the byte order of UTF-16.
        """
        codec = ENCODINGS[self.encoding] if self.encoding else _sniff_codec(head)
        if codec == "utf-16" and not head.startswith(_UTF16_MARKS):
            return "utf-16-be" if head[::2].count(0) > head[1::2].count(0) else "utf-16-le"
        return None if codec == "utf-8" else codec


class Dialect(TextDialect):
    """How a table in a file is written: its text, and its place in a workbook."""

    sheet: Annotated[
        str | None,
        DialectField(formats=(XLSX,), unset="the first visible sheet", passes_on=True, fits=True),
    ] = Field(
        default=None,
        description="Name of the sheet of an Excel workbook.",
        examples=["Loans"],
    )


def fields_of(notation: Notation) -> dict[str, str]:
    marks = (("decimal", DECIMALS, notation.decimal), ("thousands", THOUSANDS, notation.thousands))
    return {
        field: word for field, words, own in marks for word, mark in words.items() if mark == own
    }


def changes(notation: Notation, own: Notation) -> dict[str, str]:
    """Return the CSV fields that change `own` to `notation`."""
    before = fields_of(own)
    return {name: word for name, word in fields_of(notation).items() if before.get(name) != word}


def notation_fields(dialect: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the fields of a stored dialect that define its notation."""
    choices = Dialect.choices()
    return {name: word for name, word in passed_on(dialect).items() if not choices[name].fits}


def passed_on(dialect: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the fields of a training table's dialect that apply to the tables that a model scores."""
    own = dialect or {}
    choices = Dialect.choices().items()
    return {name: own[name] for name, each in choices if each.passes_on and own.get(name)}


def merge(own: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Update a dialect. A given decimal mark removes the same mark as thousands separator."""
    merged = {**own, **given}
    if "thousands" not in given and find_clash(merged):
        del merged["thousands"]
    return merged


def find_clash(given: Mapping[str, str]) -> str | None:
    """Return the error for a mark that is both thousands separator and decimal mark."""
    mark = given.get("thousands")
    if mark is None or mark != (given.get("decimal") or "point"):
        return None
    other = "comma" if mark == "point" else "point"
    return (
        f"thousands={mark} requires decimal={other}: a {mark} cannot separate both thousands and "
        "decimals"
    )


def foreign_fields(dialect: Mapping[str, str], content_type: str) -> list[str]:
    """Return the fields that a format cannot have. In a spreadsheet, numbers may be texts."""
    choices = Dialect.choices()
    return [name for name in dialect if not choices[name].means_something(content_type)]


def check_length(content_type: str) -> None:
    """Raise UnsupportedMedia for a long Content-Type: libraries parse its parameters in quadratic time."""
    if len(content_type) > MAX_CONTENT_TYPE_LENGTH:
        raise UnsupportedMedia(
            f"Content-Type can have at most {MAX_CONTENT_TYPE_LENGTH} characters, got {len(content_type)}"
        )


def encoding_of(content_type: str) -> str | None:
    """Return the charset; None without one. Raises ValueError for an unsupported one."""
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


def header_of(content_type: str) -> bool | None:
    """Return the parameter `header` of a CSV (RFC 4180); None without it. Raises ValueError for a word other than
    present and absent.
    """
    message = Message()
    message["Content-Type"] = content_type
    said = message.get_param("header")
    if said is None:
        return None
    word = str(said).strip().lower()
    if word not in ("present", "absent"):
        raise ValueError(f"header must be present or absent, got {str(said)[:50]!r}")
    return word == "present"


def _sniff_codec(head: bytes) -> str:
    """Return UTF-16 for its byte order mark, or a zero among the first two bytes, as in Latin letters; else UTF-8."""
    if head.startswith(_UTF32_MARKS):
        return "utf-8"  # it is not; the header's names will show it
    in_turn = len(head) >= 2 and (head[0] == 0) != (head[1] == 0)
    return "utf-16" if head.startswith(_UTF16_MARKS) or in_turn else "utf-8"


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
    """Return the content type and encoding for a file name; None for unknown ones."""
    name = name.lower()
    suffix = Path(name).suffix
    encoding = COMPRESSED.get(suffix)
    if encoding is not None:
        suffix = Path(name.removesuffix(suffix)).suffix
    return SUFFIXES.get(suffix), encoding
