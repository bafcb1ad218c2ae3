"""Bodies of outcomes that nobody would send: each is read, or refused with a reason."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.description import Format
from app.feedback.outcome_bodies import Body
from app.feedback.outcomes import COLUMNS, MAX_ROWS, Outcomes, Report
from app.ingest.errors import BadTable
from app.ingest.formats import ARROW, ARROW_FILE, CSV, NDJSON
from app.platform.errors import ServiceError
from app.scoring.table_rows import Bounds

NOW = 1.8e9
BOUNDS = Bounds(100, 1 << 20, MAX_ROWS)
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**400), 10**400),
    st.integers(0, 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=300),
    st.sampled_from(
        [
            "true",
            "1",
            "2026-01-01",
            "2026-01-01T24:00:00Z",
            "0001-01-01",
            "9999-12-31",
            "1e999",
            "-0",
            "\ud800",
        ]
    ),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none(), max_size=2),
)
ROWS = st.dictionaries(st.one_of(st.sampled_from(COLUMNS), st.text(max_size=5)), CELLS, max_size=9)


def any_label(labels: Sequence[str | None], report: Report) -> None:
    """Accept every label."""


def read(body: bytes, kind: str | None = None, encoding: str | None = None) -> Outcomes | None:
    """Read a body; None if it was refused."""
    table = None if kind is None else Format(kind, encoding)
    try:
        found = Body(table, {}, encoding, NOW, BOUNDS).read(body, any_label)
    except ServiceError:
        return None
    assert len(found) > 0
    for row in found.rows():
        decision_id, id_, label, event_at, known_at, source, weight, amount, is_given = row
        assert decision_id or (id_ and event_at is not None)
        assert is_given or known_at == NOW
        assert event_at is None or event_at <= (known_at if is_given else NOW + 300)
        assert label is None or 0 < len(label) <= 255
        assert source is None or 0 < len(source) <= 64
        assert weight is None or 0 < weight < float("inf")
        assert amount is None or abs(amount) < float("inf")
        json.dumps(row).encode()
    assert Outcomes.from_json(found.as_json()) == found
    return found


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


@given(st.one_of(CELLS, st.lists(ROWS, max_size=3), ROWS))
def test_any_json(value: Any) -> None:
    for body in (value, {"rows": value}, {"rows": [value]}, {"columns": value, "data": value}):
        read(dumped(body))


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_any_objects(rows: list[dict[str, Any]]) -> None:
    read(dumped({"rows": rows}))
    read("\n".join(json.dumps(row) for row in rows).encode(), NDJSON)


@given(
    st.lists(st.one_of(st.sampled_from(COLUMNS), CELLS), max_size=4),
    st.lists(st.lists(CELLS, max_size=4)),
)
def test_any_lists(columns: list[Any], data: list[list[Any]]) -> None:
    read(dumped({"columns": columns, "data": data}))


@given(st.binary(max_size=200), st.sampled_from([None, CSV, NDJSON, ARROW, ARROW_FILE]))
def test_any_bytes(body: bytes, kind: str | None) -> None:
    read(body, kind)
    read(gzip.compress(body), kind, "gzip")
    read(body, kind, "gzip")


@given(
    st.lists(
        st.lists(st.text(st.sampled_from('ab1,;"\n\0é -:T'), max_size=8), max_size=4), max_size=4
    ),
    st.sampled_from(["id,label,event_at", "decision_id,label", "id;label;event_at;amount"]),
)
def test_any_csv(rows: list[list[str]], head: str) -> None:
    body = head + "\n" + "\n".join(",".join(row) for row in rows)
    read(body.encode(), CSV)


def as_arrow(kind: str) -> bytes:
    table = pa.table(
        {
            "id": pa.array(["c1", "c2"]).dictionary_encode(),
            "label": [True, None],
            "event_at": pa.array([0, 1], pa.timestamp("us", "UTC")),
            "known_at": pa.array([1, 2], pa.date32()),
            "weight": pa.array([1, 2], pa.int8()),
        }
    )
    sink = io.BytesIO()
    make = pa.ipc.new_file if kind == ARROW_FILE else pa.ipc.new_stream
    with make(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_a_key_that_occurs_twice_is_refused() -> None:
    row = '{"id": "c1", "label": "1", "event_at": "2026-01-01"%s}'
    assert read(f'{{"rows": [{row % ""}]}}'.encode()) is not None
    assert (
        read(f'{{"rows": [{row % (", " + chr(34) + "label" + chr(34) + ": 0")}]}}'.encode()) is None
    )


@pytest.mark.parametrize("kind", [None, NDJSON])
def test_ids_that_are_whole_numbers_keep_their_digits(kind: str | None) -> None:
    ids = [2**64, 2**64 + 1]
    rows = [{"id": id_, "label": "1", "event_at": "2026-01-01"} for id_ in ids]
    body = json.dumps({"rows": rows}) if kind is None else "\n".join(map(json.dumps, rows))
    found = read(body.encode(), kind)
    assert found is None or list(found.id) == list(map(str, ids))


def test_the_arrow_table_is_read() -> None:
    for kind in (ARROW, ARROW_FILE):
        found = read(as_arrow(kind), kind)
        assert found is not None
        assert (found.id, found.label, found.weight) == (["c1", "c2"], ["true", None], [1.0, 2.0])
        assert (found.event_at, found.known_at) == ([0.0, 1e-6], [86400.0, 172800.0])


def test_a_label_that_is_no_number_is_missing() -> None:
    """As pandas writes a column of numbers with a missing one."""
    table = pa.table({"decision_id": ["d1", "d2"], "label": pa.array([1.0, float("nan")])})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found = read(sink.getvalue(), ARROW)
    assert found is not None
    assert found.label == ["1", None]


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_damaged_arrow_table(at: int, byte: int) -> None:
    for kind in (ARROW, ARROW_FILE):
        body = bytearray(as_arrow(kind))
        body[at % len(body)] = byte
        read(bytes(body), kind)


def test_types_that_no_column_has() -> None:
    for column in ("id", "label", "event_at", "weight"):
        for kind in (pa.binary(), pa.list_(pa.int64()), pa.duration("s"), pa.time64("us")):
            columns = {"id": ["c"], "label": [1], "event_at": ["2026-01-01"], "weight": [1]}
            table = pa.table(columns | {column: pa.nulls(1, kind)})
            sink = io.BytesIO()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            with pytest.raises(BadTable):
                Body(Format(ARROW, None), {}, None, NOW, BOUNDS).read(sink.getvalue(), any_label)


def test_a_bomb_is_refused() -> None:
    body = gzip.compress(b'{"rows":[' + b" " * (8 << 20) + b"]}")
    assert read(body, None, "gzip") is None
    assert (
        read(gzip.compress(b"id,label,event_at\n" + b"c,1,2026-01-01\n" * 100_000), CSV, "gzip")
        is None
    )


def test_a_body_of_commas_is_refused_before_it_is_parsed() -> None:
    members = b",".join([b'"a":1'] * (MAX_ROWS * 9 + 2))
    assert read(b'{"rows":[{' + members + b"}]}") is None
