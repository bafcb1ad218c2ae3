"""The compiled reader of plain JSON rows: its values equal JSON's to the last bit; other bodies it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import orjson
import pytest

from app.datasets.description import Format
from app.ingest.formats import NDJSON
from app.platform.errors import ServiceError
from app.scoring.fastpath import NUMBER, PlainRows, lay_out
from app.scoring.features import FeatureIndex
from app.scoring.table_rows import Bounds, TableOptions, read_body, read_plain_lines

NAMES = ["a", "b c", "d"]


def read_plain(text: bytes, names: list[str]) -> np.ndarray | None:
    """Return the reading of a body for a model of numbers."""
    return PlainRows(names, [NUMBER] * len(names), lay_out([None] * len(names))).read(text)


def body(rows: list[list[float | None]], names: list[str] = NAMES) -> bytes:
    return orjson.dumps({"columns": names, "data": rows})


def number(text: str) -> float | None:
    """Return the reading of one number."""
    found = read_plain(b'{"columns":["a"],"data":[[' + text.encode() + b"]]}", ["a"])
    return None if found is None else float(found[0, 0])


def same(found: np.ndarray | None, expected: list[list[float | None]]) -> bool:
    wanted = np.array(expected, dtype=np.float64).reshape(len(expected), -1)
    return found is not None and np.array_equal(found.view(np.int64), wanted.view(np.int64))


def test_doubles_of_every_size_are_read_to_the_last_bit() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 30_000, dtype=np.uint64).view(np.float64)
    usual = np.abs(bits) > 1e-307  # the others are subnormal, or may be
    values = bits[np.isfinite(bits) & usual]
    values = np.concatenate([values, rng.normal(size=6_000), rng.normal(size=6_000).round(4)])
    values = np.concatenate([values, rng.integers(-(10**15), 10**15, 3_000).astype(float)])
    rows = values[: len(values) // 3 * 3].reshape(-1, 3).tolist()
    assert same(read_plain(body(rows), NAMES), rows)


def test_numbers_of_up_to_19_digits_are_the_nearest_doubles() -> None:
    rng = np.random.default_rng(1)
    undecided = 0
    for digits in rng.integers(1, 20, 4_000).tolist():
        w, q = int(rng.integers(0, 10**digits, dtype=np.uint64)), int(rng.integers(-340, 300))
        value = number(f"{w}e{q}")
        undecided += value is None
        assert value is None or value == float(f"{w}e{q}"), (w, q)
    assert undecided < 400
    for odd in rng.integers(2**52, 2**53, 1_000).tolist():  # halfway between two doubles
        for tie in (2 * odd + 1, (2 * odd + 1) * 8):
            assert number(str(tie)) == float(tie)
        tenths = (2 * (odd >> 1) + 1) * 5
        assert number(f"{tenths}e-1") == float(f"{tenths}e-1")


def test_columns_may_come_in_any_order_and_values_be_missing() -> None:
    rows = [[1.5, None, -3e-7], [0.0, 12345.678, 1e22]]
    text = orjson.dumps({"columns": NAMES[::-1], "data": [row[::-1] for row in rows]})
    assert same(read_plain(text, NAMES), rows)
    spaced = b'\n{ "columns" :["a","b c","d"] , "data":[ [1.5 , null,\t-3E-7],\r\n [0 ,12345.678,1.0e+22 ] ] }\n'
    assert same(read_plain(spaced, NAMES), rows)
    assert read_plain(body([]), NAMES).shape == (0, 3)
    assert np.signbit(read_plain(body([[-0.0, 0.0, 1.0]]), NAMES)[0, 0])


def objects(rows: list[list[float | None]], names: list[str] = NAMES) -> bytes:
    return orjson.dumps({"rows": [dict(zip(names, row, strict=True)) for row in rows]})


def test_rows_may_be_objects_in_one_order() -> None:
    rows = [[1.5, None, -3e-7], [0.0, 12345.678, 1e22]]
    assert same(read_plain(objects(rows), NAMES), rows)
    assert same(read_plain(objects([row[::-1] for row in rows], NAMES[::-1]), NAMES), rows)
    spaced = (
        b'{ "rows" : [ {"a" :1.5,"b c": null , "d":-3E-7},\n{ "a":0,"b c":12345.678,"d":1e22}\t]}'
    )
    assert same(read_plain(spaced, NAMES), rows)
    accented = ["é", "日本", "z"]
    assert same(read_plain(objects(rows, accented), accented), rows)


@pytest.mark.parametrize(
    "rows",
    [
        *('[{"a":1,"b c":2,"d":3}', '[{"a":1,"b c":2}]', '[{"a":1,"b c":2,"d":3,"e":4}]', "[{}]"),
        *('[{"a":1,"b c":2,"d":3},{"d":3,"a":1,"b c":2}]', '[{"a":1,"b c":2,"d":3},[1,2,3]]'),
        *('[{"a":1,"b c":2,"d":3},{"a":1,"b c":2}]', '[{"a":1,"b c":2,"d":3,"d":3}]', "[{"),
        *('[{"a":1,"a":1,"b c":2,"d":3}]', '[{"a":1,"b\\u0020c":2,"d":3}]', '[{"a" 1}]'),
        *('[{"a":1,"b c":"}","d":3}]', '[{"a":1,"b c":2,"d":3}],"x":1', '[{"\\ud800":1}]'),
        *('[{"a":1,"b c":2,"d":3},]', '[{"a":1,"b c":2,"d":3}{"a":1,"b c":2,"d":3}]', '[{"a":'),
    ],
)
def test_objects_that_are_not_plain_are_left_undone(rows: str) -> None:
    assert read_plain(b'{"rows":' + rows.encode() + b"}", NAMES) is None


@pytest.mark.parametrize(
    "data",
    [
        *("[[1,2,3]", "[[1,2,3]]]", "[[1,2]]", "[[1,2,3,4]]", "[[1,2,3],]", "[1,2,3]", "[[]]"),
        *("[[1,2,3]}", "[[1,2,3]] x"),
        *("[[true,2,3]]", '[["1",2,3]]', "[[nul,2,3]]", "[[null1,2,3]]", "[[1,,3]]", "[[1 2,3]]"),
        *("[[1e99999999999,2,3]]", "[[-0e1,2,3]]", "[[1,2,3] [1,2,3]]", "[[-"),
    ],
)
def test_what_is_not_plain_is_left_undone(data: str) -> None:
    assert read_plain(b'{"columns":["a","b c","d"],"data":' + data.encode() + b"}", NAMES) is None


def test_a_body_gets_room_for_as_many_rows_as_it_can_hold() -> None:
    names = [f"f{i}" for i in range(2_000)]
    brackets = b'{"columns":' + orjson.dumps(names) + b',"data":[' + b"[" * 4_000_000
    assert read_plain(brackets, names) is None  # as rows they would take 64 GB
    assert same(read_plain(b'{"columns":["a"],"data":[[1],[2]]}', ["a"]), [[1.0], [2.0]])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b'{"columns":["a","b c"],"data":[[1,2]]}',
        b'{"columns":["a","a","d"],"data":[[1,2,3]]}',
        b'{"columns":["a","b c",3],"data":[[1,2,3]]}',
        b'{"columns":["a","b]","d"],"data":[[1,2,3]]}',
        b'{"columns":["a","b c","d"],"data":[[1,2,3]],"x":1}',
        b'{"data":[[1,2,3]],"columns":["a","b c","d"]}',
        b'{"columns":["a","b c","d"],"data":[[1,2,3]]',
        b'\f{"columns":["a","b c","d"],"data":[[1,2,3]]}',
        b'{"columns":["a","b c","d"]\v,"data":[[1,2,3]]}',
    ],
)
def test_other_bodies_are_left_undone(text: bytes) -> None:
    assert read_plain(text, NAMES) is None


@pytest.mark.parametrize("write", [body, objects])
def test_damaged_bodies_are_never_read_as_what_they_are_not(write: Callable[..., bytes]) -> None:
    """If the compiled reader reads a body, the general reader of JSON reads the same."""
    rng = np.random.default_rng(2)
    whole = write(rng.normal(size=(4, 3)).round(3).tolist())
    read = 0
    for _ in range(3_000):
        text = bytearray(whole)
        for place in rng.integers(0, len(text), 2):
            text[place] = b'0123456789.,[]{}eE+-" nul'[rng.integers(25)]
        found = read_plain(bytes(text), NAMES)
        if found is not None:
            said = orjson.loads(bytes(text))
            if write is body:
                assert said["columns"] == NAMES
                assert same(found, said["data"])
            else:
                assert all(row.keys() == set(NAMES) for row in said["rows"])
                assert same(found, [[row[name] for name in NAMES] for row in said["rows"]])
            read += 1
    assert 100 < read < 2_500


# --- NDJSON: what the compiled reader reads, the reader of tables reads alike ------------------------

FEATURES = FeatureIndex([{"name": n, "type": "numeric", "missing": n == "a"} for n in NAMES])
FEATURES.load_compiled_readers()
LINES = Format(NDJSON, None)
BOUNDS = Bounds(100, 1 << 20, 1 << 20)


def read_lines(text: bytes, options: TableOptions) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the rows by the compiled reader, and by that of tables; None for what is left unread or refused."""
    plain = read_plain_lines(text, LINES, FEATURES, options, None, BOUNDS)
    try:
        reader, source = read_body(text, LINES, FEATURES, options, None, BOUNDS)
        blocks = [X for batch in reader.batches(source) for X in batch.blocks(len(NAMES))]
    except ServiceError:
        return plain, None
    return plain, np.concatenate(blocks) if blocks else np.empty((0, len(NAMES)))


@pytest.mark.parametrize("options", [TableOptions(), TableOptions(missing=("-1", "x"))])
def test_plain_lines_are_read_as_a_table_is(options: TableOptions) -> None:
    rows: list[list[float | None]] = [
        [1.5, None, -3e-7],
        [0, 12345.678, 1e22],
        [-1, 2**53 + 1, None],
        [0.1, -1.0, -0.0],
    ]
    for names in (NAMES, NAMES[::-1]):
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        for text in ("\n".join(lines), "\r\n".join(lines) + "\r\n", "\n".join(lines) + "\n"):
            plain, found = read_lines(text.encode(), options)
            assert same(plain, found.tolist())


def test_other_lines_are_left_to_the_reader_of_tables() -> None:
    """Whatever is done to lines: what the compiled reader reads, the other one reads alike."""
    rng = np.random.default_rng(3)
    rows = [dict(zip(NAMES, row, strict=True)) for row in rng.normal(size=(3, 3)).round(3).tolist()]
    whole = "\n".join(map(json.dumps, rows)).encode()
    texts = [whole.replace(b"\n", b","), whole.replace(b"\n", b"\n\n"), b"", b"\n", whole + b"]}"]
    texts += [b'{"a":1\n"b c":2,"d":3},{"a":4,"b c":5,"d":6}', whole + b" \n"]
    texts += [whole.replace(b", ", b",\n", 1), whole.replace(b"}\n", b"},\n"), whole + b",{"]
    for _ in range(600):
        damaged = bytearray(whole)
        for place in rng.integers(0, len(damaged), 2):
            damaged[place] = b'0123456789.,[]{}eE+-" nul\n\r'[rng.integers(27)]
        texts.append(bytes(damaged))
    read = 0
    for text in texts:
        plain, found = read_lines(text, TableOptions())
        if plain is not None:
            assert found is not None, text
            assert same(plain, found.tolist()), text
            read += 1
    assert read > 20
