"""What a small compressed body makes of itself in memory: bodies that claim far more columns, keys or values than a
table may have.
"""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from app.datasets.description import Format
from app.inference_protocols.open_inference import parse_json
from app.ingest.csv import MAX_LINES_ABOVE, CsvTable, read_layout
from app.ingest.errors import BadTable, Errors
from app.ingest.formats import ARROW, CSV, JSON_ARRAY, NDJSON, Dialect
from app.ingest.readers import bounded, open_source
from app.ingest.rows import MAX_NAME_LENGTH, most_rows
from app.ingest.stream import TableBytes
from app.ingest.value_columns import MissingTokens
from app.platform.errors import Invalid, ServiceError
from app.scoring import table_rows
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import IdAndIgnored, read
from app.scoring.table_rows import Bounds, TableOptions
from tests.long_form import one_in, rest
from tests.raising import raises

MIB = 1 << 20
PLAIN = 2 * MIB  # bytes of a body once decompressed
MAX_PEAK = 12 * PLAIN
"""Most bytes that a body may take in memory, whatever it says."""
BOUNDS = Bounds(2_000, 64 * MIB, 4096)
FEATURES = FeatureIndex([{"name": n, "type": "numeric", "missing": True} for n in ("x", "y")])


def distinct_keys() -> bytes:
    return b"{%s}" % b",".join(b'"%d":1' % i for i in range(PLAIN // 12))


def arrow_schema() -> bytes:
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(PLAIN // 200)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema):
        pass
    written: bytes = sink.getvalue().to_pybytes()
    return written


MAX_PIECE_PEAK = 48 * MIB
"""Bytes that the first 1 MiB of an array may take beside: it is parsed before it is known to be one element."""
FILLER = "a,b:c[d{e" * 30_000  # of a text: no mark in it separates values
TABLES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a header of commas": (CSV, lambda: b"," * (PLAIN - 2) + b"\n"),
    "a header of semicolons": (CSV, lambda: b";" * (PLAIN - 2) + b"\n"),
    "a header of short names": (CSV, lambda: b"a," * (PLAIN // 2 - 1) + b"\n"),
    "a header of quotes": (CSV, lambda: b'"' * (PLAIN - 2) + b"\n"),
    "a header of quoted names": (CSV, lambda: b'"",' * (PLAIN // 3 - 1) + b"\n"),
    "a header that does not end": (CSV, lambda: b"a" * PLAIN),
    "a header of quoted lines": (CSV, lambda: b'"' + b"a,\n" * (PLAIN // 3)),
    "blank lines": (CSV, lambda: b"\n" * PLAIN),
    "a row of commas": (CSV, lambda: b"x,y\n" + b"," * (PLAIN - 10) + b"\n"),
    "a row of commas behind an open quote": (
        CSV,
        lambda: b'x,y\n1,"2"3\n' + b"," * (PLAIN - 20) + b"\n",
    ),
    "one key many times": (NDJSON, lambda: b'{%s"x":1}' % (b'"x":1,' * (PLAIN // 6 - 2))),
    "distinct keys": (NDJSON, distinct_keys),
    "objects in a line": (NDJSON, lambda: b'{"x":[%s{}]}' % (b"{}," * (PLAIN // 3 - 4))),
    "lists in a line": (NDJSON, lambda: b'{"x":[%s[]]}' % (b"[]," * (PLAIN // 3 - 4))),
    "lists in a line that is no object": (NDJSON, lambda: b"[%s[]]" % (b"[]," * (PLAIN // 3 - 4))),
    "texts in a line": (NDJSON, lambda: b'{"x":[%s1]}' % (b'"ab",' * (PLAIN // 5 - 4))),
    "numbers in a line": (NDJSON, lambda: b'{"x":[%s1]}' % (b"1.5," * (PLAIN // 4 - 4))),
    "lists in an element": (JSON_ARRAY, lambda: b'[{"x":[%s[]]}]' % (b"[]," * (PLAIN // 3 - 4))),
    "one key of an element": (JSON_ARRAY, lambda: b'[{%s"x":1}]' % (b'"x":1,' * (PLAIN // 6 - 2))),
    "a schema": (ARROW, arrow_schema),
}
ROWS: dict[str, Callable[[], bytes]] = {
    "objects": lambda: b'{"rows":[%s{}]}' % (b"{}," * (PLAIN // 6 - 4)),
    "lists": lambda: b'{"columns":["x"],"data":[%s[]]}' % (b"[]," * (PLAIN // 6 - 4)),
    "names": lambda: b'{"columns":[%s1],"data":[]}' % (b"[]," * (PLAIN // 6 - 4)),
    "lists in a value": lambda: b'{"rows":[{"x":[%s[]]}]}' % (b"[]," * (PLAIN // 6 - 4)),
    "brackets of a body": lambda: b'{"id":[%s[]]}' % (b"[]," * (PLAIN // 6 - 4)),
    "texts": lambda: b'{"columns":["x"],"data":[[%s1]]}' % (b'"ab",' * (PLAIN // 10 - 4)),
    "distinct names": lambda: (
        b'{"rows":[{%s}]}' % b",".join(b'"%d":1' % i for i in range(PLAIN // 24))
    ),
}


def peak_of(work: Callable[[], object]) -> int:
    """Return the most bytes that Python's and Arrow's allocators held at once beside those of before."""
    gc.collect()
    pool = pa.default_memory_pool()
    arrow_before = pool.max_memory()
    tracemalloc.start()
    try:
        with suppress(ServiceError):
            work()
        arrow: int = pool.max_memory() - arrow_before
        return tracemalloc.get_traced_memory()[1] + max(0, arrow)
    finally:
        tracemalloc.stop()


def score_table(media_type: str, body: bytes) -> None:
    how = table_rows.check_options(TableOptions(), table := Format(media_type, "gzip"))
    reader, source = table_rows.read_body(body, table, FEATURES, how, None, BOUNDS)
    for _ in reader.batches(source):
        pass


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Import and compile what the first table needs."""
    score_table(CSV, gzip.compress(b"x,y\n1,2\n"))


@pytest.mark.parametrize("name", one_in(7, TABLES))
def test_memory_of_a_table_to_score(name: str) -> None:
    media_type, make = TABLES[name]
    if media_type == JSON_ARRAY:
        return  # rows in JSON are read by json_rows
    body = gzip.compress(make())
    peak = peak_of(lambda: score_table(media_type, body))
    assert peak <= MAX_PEAK, peak


@pytest.mark.parametrize("name", one_in(4, TABLES))
def test_memory_of_a_table_to_check(tmp_path: Path, name: str) -> None:
    """As `…/validate` reads a table of a dataset, or of a batch."""
    media_type, make = TABLES[name]
    upload = tmp_path / "upload"
    upload.write_bytes(gzip.compress(make()))
    limits = {"rows": 4096, "columns": 2000, "categories": 100, "category_length": 255}

    def check() -> None:
        payload = bounded(upload, media_type, "gzip", limits, BOUNDS.bytes, tmp_path)
        with ExitStack() as stack:
            source = open_source(payload, stack, MissingTokens())
            for _ in source.batches(Errors()):
                pass

    peak = peak_of(check)
    assert peak <= MAX_PEAK + (MAX_PIECE_PEAK if media_type == JSON_ARRAY else 0), peak


@pytest.mark.parametrize("name", one_in(3, ROWS))
def test_memory_of_rows_in_json(name: str) -> None:
    body = ROWS[name]()
    sent = gzip.compress(body)
    bounds = table_rows.Bounds(2_000, 64 * MIB, most_rows(len(sent)))
    peak = peak_of(lambda: read(FEATURES, body, IdAndIgnored(), bounds))
    assert peak <= MAX_PEAK, peak


@pytest.mark.parametrize(
    ("name", "is_sent_compressed"),
    one_in(3, ["objects", "lists", "names", "lists in a value"], [False, True]),
)
def test_memory_of_rows_of_a_protocol(name: str, is_sent_compressed: bool) -> None:
    body = ROWS[name]()
    sent = gzip.compress(body) if is_sent_compressed else body
    peak = peak_of(lambda: parse_json(body, most_rows(len(sent))))
    assert peak <= MAX_PEAK, peak


@pytest.mark.parametrize("form", ['{"columns":["x","y"],"data":[%s]}', *rest('{"rows":[%s]}')])
def test_memory_of_empty_rows_sent_plainly(form: str) -> None:
    """A model whose features are required needs more bytes for a row than its brackets take."""
    body = (form % ",".join(["[]"] * (PLAIN // 3))).encode()
    required = FeatureIndex([{"name": n, "type": "numeric", "missing": False} for n in ("x", "y")])
    bounds = table_rows.Bounds(2_000, 64 * MIB, most_rows(len(body)))
    with pytest.raises(Invalid) as caught:
        read(required, body, IdAndIgnored(), bounds)
    assert caught.value.code == "too_many_rows"
    assert peak_of(lambda: read(required, body, IdAndIgnored(), bounds)) < PLAIN


def test_as_many_rows_as_the_bytes_of_a_body_can_have() -> None:
    body = b'{"columns":["x","y"],"data":[%s]}' % b",".join([b"[1,2]"] * 100_000)
    required = FeatureIndex([{"name": n, "type": "numeric", "missing": False} for n in ("x", "y")])
    bounds = table_rows.Bounds(2_000, 64 * MIB, most_rows(len(body)))
    assert read(required, body, IdAndIgnored(), bounds).X.shape == (100_000, 2)
    empty = b'{"rows":[%s]}' % b",".join([b"{}"] * 4096)
    assert read(FEATURES, empty, IdAndIgnored(), BOUNDS).X.shape == (4096, 2)


def test_delimiters_in_texts_separate_nothing() -> None:
    """Long texts of commas, colons and brackets are values like any other."""
    ignore = TableOptions(ignore=("note",))
    for media_type, body in (
        (CSV, f'x,y,note\n1,2,"{FILLER}"\n1,2,"a"b"\n'),
        (NDJSON, json.dumps({"x": 1, "y": 2, "note": FILLER})),
        (NDJSON, json.dumps({"x": 1, "y": 2, "note": f'"{FILLER}\\'})),
    ):
        table = Format(media_type, None)
        reader, source = table_rows.read_body(body.encode(), table, FEATURES, ignore, None, BOUNDS)
        assert sum(batch.size for batch in reader.batches(source)) in (1, 2), media_type
    rows = json.dumps({"rows": [{"x": 1, "y": 2, "note": FILLER}], "ignore": ["note"]}).encode()
    assert read(FEATURES, rows, IdAndIgnored(), BOUNDS).X.shape == (1, 2)


def test_the_longest_header() -> None:
    """Names of the greatest length, each quoted and of quotes alone: doubled, they take the most bytes."""
    names = [f'{i:04d}{"a" * (MAX_NAME_LENGTH - 5)}"' for i in range(2000)]
    header = ",".join('"{}"'.format(name.replace('"', '""')) for name in names)
    layout = read_layout(TableBytes(header.encode() + b"\n", None, 64 * MIB), Dialect(), 2000)
    assert layout.names == names


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"," * 2000 + b"\n1\n", "too_many_columns"),
        (b"a," * 2000 + b"\n1\n", "too_many_columns"),
        (b"," * (2 * MIB), "too_many_columns"),
        (b'"",' * MIB, "too_many_columns"),
        (b"a" * (2 * MIB), "invalid_table"),
        (b'"' + b",\n" * MIB, "invalid_table"),
        (b"\n" * (MAX_LINES_ABOVE + 1) + b"x,y\n", "invalid_table"),
        (b"\n" * MAX_LINES_ABOVE, "invalid_table"),
    ],
)
def test_headers_that_are_too_long(text: bytes, code: str) -> None:
    with pytest.raises(BadTable) as caught:
        read_layout(TableBytes(text, None, 64 * MIB), Dialect(), 2000)
    assert caught.value.code == code


@pytest.mark.parametrize("delimiter", [",", *rest(";", "|")])
def test_names_beyond_the_limit_are_not_read(delimiter: str) -> None:
    """The bytes of a header take three times themselves, as bytes and as text; a list of its names takes more."""
    text = f'""{delimiter}'.encode() * 200_000 + b"\n"

    def read_header() -> None:
        with pytest.raises(BadTable) as caught:
            read_layout(TableBytes(text, None, 64 * MIB), Dialect(), 2000)
        assert caught.value.code == "too_many_columns"

    read_header()
    assert peak_of(read_header) < 4 * len(text)


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [
        ("a;b,c", ","),
        ('"a,b";c', ";"),
        ("a;b|c|d", "|"),
        ("a", ","),
        ('"a,b"', ","),
        ('a"b,c"d', ","),  # a quote inside a name is a character like others
        ('"a"b,c";d', ","),
    ],
)
def test_the_delimiter_of_a_header(header: str, delimiter: str) -> None:
    layout = read_layout(TableBytes(header.encode() + b"\n", None, MIB), Dialect(), 2000)
    assert layout.delimiter == delimiter
    assert layout.names == next(csv.reader([header], delimiter=delimiter))


@pytest.mark.parametrize("begin", ['x,y,"', '"a, b",2,"', '1,2,"",""' + '"', '1,2,"'])
def test_a_row_of_commas_in_a_text_of_several_lines(begin: str) -> None:
    """Commas inside quotes separate no values, also on lines that begin inside them."""
    lines = [",".join(["a"] * 60_000), ",".join(["b"] * 60_000), '""c"",' * 60_000, "d"]
    text = begin + "\n".join(lines) + '"\n'
    width = len(next(csv.reader(io.StringIO(text))))
    header, last = ",".join("pqrst"[:width]), ",".join("3" * (width - 1))
    body = f'{header}\n{text}a"b"c,{last}\n'  # a quote inside a value: not for Arrow's reader
    upload = TableBytes(body.encode(), None, 64 * MIB)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    errors = Errors()
    found = [
        [value or "" for value in row.values()]
        for rows in table.batches(errors)
        for row in rows.batch.to_pylist()
    ]
    assert found == list(csv.reader(io.StringIO(body)))[1:]
    assert errors.total == 0


def test_a_row_of_too_many_values_over_several_lines() -> None:
    body = 'x,y\na"b,"{}\n"{}\n'.format("," * 60_000, "," * 200_000)
    upload = TableBytes(body.encode(), None, 64 * MIB)
    table = CsvTable(upload, read_layout(upload, Dialect(), 10), MissingTokens())
    with raises(BadTable, 100002, 2):
        list(table.batches(Errors()))


def test_as_many_blank_lines_as_may_be_above_a_header() -> None:
    text = b"\n" * MAX_LINES_ABOVE + b"x,y\n1,2\n"
    assert (
        read_layout(TableBytes(text, None, MIB), Dialect(), 2).header_lines == MAX_LINES_ABOVE + 1
    )
