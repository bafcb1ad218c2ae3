"""Any table comes back as it was: bits of numbers, text exactly, through every format, dialect and compression."""

from __future__ import annotations

import datetime
import io
import json
import math
import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.ingest.formats import (
    ARROW,
    ARROW_FILE,
    CSV,
    DELIMITERS,
    NDJSON,
    PARQUET,
    THOUSANDS,
    fields_of,
)
from app.ingest.values import DEFAULT_TOKENS, TYPED_TOKENS, Notation, category
from tests.app.uploads import Ready, read
from tests.long_form import LONG_FORM

EPOCH = datetime.datetime(1970, 1, 1)
MISSING = {token.lower() for token in (*DEFAULT_TOKENS, *TYPED_TOKENS)}
KINDS = ("label", "group", "weight", "number", "truth", "date", "code", "text")

names = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "S"), include_characters=" "),
    min_size=1,
    max_size=12,
).filter(lambda name: name.strip() and name.isprintable())
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8
).filter(lambda text: text.strip(" \t") == text and text.lower() not in MISSING)
NASTY = [
    "007",
    "7",
    "1e5",
    "=1+1",
    "a,b;c|d",
    'say "x"',
    '"',
    "x\r\ny",
    "\n\n",
    "é",
    "e\u0301",
    "\x85",
    "true",
]
nasty = texts | st.sampled_from([*NASTY, "\ufeffx"])
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60).map(float)
weights = st.just(0.0) | st.floats(1e-100, 1e6) | st.integers(0, 9).map(float)
dates = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
PAIRS = [
    ("no", "yes"),
    ("0", "1"),
    ("é", "e\u0301"),
    ("10", "9"),
    ("a\nb", 'a"b'),
    ("<=50K", ">50K"),
]


class Drawn(NamedTuple):
    """The names of the columns, by kind, their values, and which value of the label is positive."""

    heads: dict[str, str]
    values: dict[str, list[Any]]
    positive: str

    def named(self) -> dict[str, list[Any]]:
        """Return the values by the names."""
        return {self.heads[kind]: self.values[kind] for kind in KINDS}

    def roles(self) -> dict[str, Any]:
        """Return what is said of the columns."""
        given = {role: self.heads[role].strip() for role in ("label", "group", "weight")}
        return given | {"positive": self.positive, "categorical": [self.heads["code"].strip()]}


@st.composite
def tables(draw: st.DrawFn) -> Drawn:
    """Draw a table of a column of every kind."""
    rows = draw(st.integers(2, 10))

    def column(values: st.SearchStrategy[Any], *, gaps: bool = True) -> list[Any]:
        """The first is never missing: a column of nothing is numeric in text, and in types what they say."""
        each = st.none() | values if gaps else values
        return [draw(values), *draw(st.lists(each, min_size=rows - 1, max_size=rows - 1))]

    heads = draw(
        st.lists(
            names,
            min_size=len(KINDS),
            max_size=len(KINDS),
            unique_by=lambda name: unicodedata.normalize("NFC", name.strip()),
        )
    )
    pair = draw(st.permutations(draw(st.sampled_from(PAIRS))))
    values = {
        "label": [*pair, *column(st.sampled_from(pair), gaps=False)][:rows],
        "group": column(nasty, gaps=False),
        "weight": [1.5, *column(weights, gaps=False)][:rows],
        "number": column(numbers),
        "truth": column(st.booleans()),
        "date": column(dates),
        "code": column(nasty),
        "text": column(nasty.map(lambda text: f"x{text}")),
    }
    return Drawn(dict(zip(KINDS, heads, strict=True)), values, pair[0])


DATE_FORMATS = {
    None: ["{0.year:04}-{0:%m-%dT%H:%M:%S.%f}", "{0:%d.%m.}{0.year:04} {0:%H:%M:%S.%f}"],
    "day_first": [
        "{0:%d/%m/}{0.year:04} {0:%H:%M:%S.%f}",
        "{0.day}-{0.month}-{0.year:04}, {0:%I:%M:%S.%f %p}",
    ],
    "month_first": ["{0:%m/%d/}{0.year:04} {0:%H:%M:%S.%f}"],
}
"""What is said of the order of dates -> how they may be written."""


def written(value: Any, decimal: str, thousands: str, date_format: str) -> str:
    """Write a value into a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        whole, point, rest = repr(value).partition(".")
        if whole.lstrip("-").isdecimal():
            whole = f"{int(whole):,}".replace(",", thousands) if whole != "-0" else whole
        return whole + point.replace(".", decimal) + rest
    return date_format.format(value) if isinstance(value, datetime.datetime) else str(value)


def as_csv(draw: st.DrawFn, table: Drawn) -> tuple[bytes, dict[str, Any]]:
    """Write as CSV in a dialect that is drawn, and return what has to be said of it."""
    delimiter = draw(st.sampled_from(sorted(DELIMITERS)))
    decimal = draw(st.sampled_from([".", ","]))
    thousands = draw(st.sampled_from(["", *sorted({*THOUSANDS.values()} - {decimal})]))
    order = draw(st.sampled_from(list(DATE_FORMATS)))
    date_format = draw(st.sampled_from(DATE_FORMATS[order]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    always = draw(st.booleans())
    mark = DELIMITERS[delimiter]

    def cell(text: str) -> str:
        quoted = always or any(c in text for c in (mark, '"', "\r", "\n"))
        return '"' + text.replace('"', '""') + '"' if quoted else text

    rows = zip(*table.named().values(), strict=True)
    lines = [mark.join(map(cell, table.named()))]
    lines += [
        mark.join(cell(written(value, decimal, thousands, date_format)) for value in row)
        for row in rows
    ]
    text = end.join(lines) + draw(st.sampled_from(["", end, end * 3]))
    said = {"delimiter": delimiter}
    said |= fields_of(Notation(decimal, thousands)) | ({"dates": order} if order else {})
    codec = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1", "windows-1252"]))
    try:
        body = text.encode(codec)
    except UnicodeEncodeError:
        body, codec = text.encode(), "utf-8"
    if codec in ("latin-1", "windows-1252"):
        said["encoding"] = codec
    return body, {"dialect": said}


def as_ndjson(draw: st.DrawFn, table: Drawn) -> bytes:
    """Write one object a line, keys in any order, those of missing values absent or null."""
    ascii_only, absent = draw(st.booleans()), draw(st.booleans())
    lines: list[str] = []
    for row in zip(*table.named().values(), strict=True):
        record = {
            name: value.isoformat() if isinstance(value, datetime.datetime) else value
            for name, value in zip(table.named(), row, strict=True)
        }
        if absent and lines:  # the first line has all keys, so that every column is there
            record = {name: value for name, value in record.items() if value is not None}
        lines.append(json.dumps(record, ensure_ascii=ascii_only))
    return "\n".join(lines).encode()


def as_typed(draw: st.DrawFn, table: Drawn, content_type: str) -> bytes:
    """Write as Parquet or Arrow, text in any of its types and dates as such or as text."""
    text = draw(
        st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    )
    moment = draw(st.sampled_from([pa.timestamp("us"), pa.timestamp("us", "UTC"), None]))
    kinds = {"weight": pa.float64(), "number": pa.float64(), "truth": pa.bool_()}
    arrays = []
    for kind in KINDS:
        values = table.values[kind]
        if kind == "date" and moment is None:
            iso = [None if value is None else value.isoformat() for value in values]
            arrays.append(pa.array(iso, pa.string()))
        else:
            arrays.append(pa.array(values, moment if kind == "date" else kinds.get(kind, text)))
    whole = pa.Table.from_arrays(arrays, names=list(table.heads.values()))
    sink = io.BytesIO()
    if content_type == PARQUET:
        codec = draw(st.sampled_from(["none", "snappy", "zstd", "gzip", "lz4"]))
        size = draw(st.integers(1, 5))
        page = draw(st.sampled_from(["1.0", "2.0"]))
        pq.write_table(whole, sink, compression=codec, row_group_size=size, data_page_version=page)
    else:
        options = pa.ipc.IpcWriteOptions(compression=draw(st.sampled_from([None, "lz4", "zstd"])))
        new = pa.ipc.new_file if content_type == ARROW_FILE else pa.ipc.new_stream
        with new(sink, whole.schema, options=options) as writer:
            writer.write_table(whole.unify_dictionaries())
    return sink.getvalue()


@st.composite
def uploads(draw: st.DrawFn) -> tuple[Drawn, list[tuple[str, bytes, dict[str, Any]]]]:
    """Draw a table, and write it in every format."""
    table = draw(tables())
    bodies = []
    for content_type in (CSV, NDJSON, PARQUET, ARROW, ARROW_FILE):
        said: dict[str, Any] = {}
        if content_type == CSV:
            body, said = as_csv(draw, table)
        elif content_type == NDJSON:
            body = as_ndjson(draw, table)
        else:
            body = as_typed(draw, table, content_type)
        if codec := draw(st.sampled_from([None, "gzip", "zstd"])):
            body = pa.compress(body, codec=codec, asbytes=True)
            if draw(st.booleans()):
                said["encoding"] = codec
        bodies.append((content_type, body, said))
    return table, bodies


def seconds(at: datetime.datetime | None) -> float | None:
    """Return the seconds since 1970, as docs/formats.md has them."""
    if at is None:
        return None
    since = at - EPOCH
    return since.days * 86_400 + since.seconds + since.microseconds / 1e6


def exactly(values: Sequence[Any]) -> list[str]:
    """Return values in writing, that −0.0 may differ from 0.0."""
    return [repr(value) for value in values]


@given(drawn=uploads())
@settings(max_examples=200 if LONG_FORM else 3, suppress_health_check=list(HealthCheck))
def test_any_table_comes_back_as_it_was(
    drawn: tuple[Drawn, list[tuple[str, bytes, dict[str, Any]]]],
) -> None:
    table, bodies = drawn
    profiles = []
    for content_type, body, said in bodies:
        with tempfile.TemporaryDirectory() as folder:
            ready = read(Path(folder), body, content_type, **table.roles(), **said)
        compare(table, ready)
        # Of a mean the last bits depend on how the rows come in batches.
        columns = ready.result["columns"]
        profiles.append({column["name"]: column | {"mean": None} for column in columns})
    for profile in profiles[1:]:
        assert profile == profiles[0]


def compare(table: Drawn, ready: Ready) -> None:
    """Compare what was read with what was drawn."""
    values, heads = table.values, {kind: name.strip() for kind, name in table.heads.items()}
    truths = [None if value is None else float(value) for value in values["truth"]]
    expected: dict[str, list[Any]] = {
        "label": [int(value == table.positive) for value in values["label"]],
        "date": list(map(seconds, values["date"])),
        "truth": truths,
        "code": [None if value is None else category(value) for value in values["code"]],
    }
    for kind in KINDS:
        wanted = expected.get(kind, values[kind])
        assert exactly(ready.columns[heads[kind]]) == exactly(wanted), kind
    types = {"truth": "boolean", "date": "datetime", "text": "categorical", "number": "numeric"}
    for kind, named in types.items():
        if any(value is not None for value in values[kind]):
            assert ready.column(heads[kind])["type"] == named
    for kind in ("number", "weight"):
        profile = ready.column(heads[kind])
        known = [value for value in values[kind] if value is not None]
        assert profile["missing"] == len(values[kind]) - len(known)
        assert profile["distinct"] == len(set(known))
        extremes = (min(known, default=None), max(known, default=None))
        assert (profile["min"], profile["max"]) == extremes
        if known:
            mean = math.fsum(value / len(known) for value in known)
            margin = 1e-12 * max(map(abs, known))
            assert profile["mean"] == pytest.approx(mean, rel=1e-9, abs=margin)
