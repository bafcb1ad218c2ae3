"""NDJSON is parsed in blocks: each line must have the values and the number that it has alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.ingest import json_text, ndjson
from app.ingest.errors import BadTable, Errors
from app.ingest.ndjson import NdjsonTable
from app.ingest.stream import TableBytes

KEYS = ["a", "b", 'c"', "d:{", "ü"]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**25), 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.sampled_from('a"\\{}[]:,\n'), max_size=4),
)
RECORDS = st.dictionaries(st.sampled_from(KEYS), VALUES, min_size=1)
WRONG = ["5", "{", '{"a":1},{"a":2}', '{"a":1}{"a":2}', "[1]", '{"a":NaN}', "null"]
NESTED = ['{"a":[1]}', '{"b":{"c":1}}']


def table_of(text: str) -> NdjsonTable:
    return NdjsonTable(TableBytes(text.encode(), None, 1 << 20), 100, 1000)


def rows_of(table: NdjsonTable, errors: Errors, numeric: set[str]) -> list[list[Any]]:
    return [
        list(row.values())
        for each in table.batches(errors, numeric=numeric)
        for row in each.batch.to_pylist()
    ]


def alone(record: dict[str, Any], numeric: set[str]) -> dict[str, Any]:
    """Return the values of a line that is a table of its own."""
    errors = Errors()
    table = table_of(json.dumps(record))
    (values,) = rows_of(table, errors, numeric)
    assert not errors.total
    return dict(zip(table.names, values, strict=True))


pytestmark = pytest.mark.usefixtures("_block_bytes")
blocks = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=[1, 1 << 20])
def _block_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "BLOCK_BYTES", request.param)
    monkeypatch.setattr(json_text, "MIN_OBJECTS", 1)


@blocks
@given(
    lines=st.lists(RECORDS.map(json.dumps) | st.sampled_from(["", " \t"])),
    numeric=st.sets(st.sampled_from(KEYS)),
)
def test_a_line_has_the_values_that_it_has_alone(lines: list[str], numeric: set[str]) -> None:
    records = [json.loads(line) for line in lines if line.strip()]
    assume(records)
    table, errors = table_of("\n".join(lines)), Errors()
    assert table.names == list(dict.fromkeys(key for record in records for key in record))
    rows = rows_of(table, errors, set())
    assert not errors.total
    texts = [alone(record, set()) for record in records]
    assert rows == [[record.get(name) for name in table.names] for record in texts]
    # Numbers are numbers only in a block of numbers, and have the same values there.
    for row, record in zip(rows_of(table, errors, numeric), texts, strict=True):
        for name, value in zip(table.names, row, strict=True):
            expected = record.get(name)
            if isinstance(value, float):
                assert value == float(expected or "nan"), name
            else:
                assert value == expected, name


@blocks
@given(lines=st.lists(st.sampled_from([*WRONG, *NESTED, '{"a":1}', '{"b":"x"}', ""]), max_size=12))
def test_each_wrong_line_is_reported(lines: list[str]) -> None:
    lines.append('{"a":1,"b":2}')
    table, errors = table_of("\n".join(lines)), Errors()
    right = sum(1 for _ in rows_of(table, errors, {"a", "b"}))
    wrong = [number for number, line in enumerate(lines, 1) if line in (*WRONG, *NESTED)]
    assert right == sum(line != "" for line in lines) - len(wrong)
    assert errors.total == len(wrong)
    if wrong:
        assert [each["line"] for each in errors.summarise().errors] == wrong


TOKENS = ["0", "-0", "-0.0", "5", "1.5e-3", "0.1", "null", "1e17", "-9223372036854775808"]
TOKENS += ["18446744073709551615", "123456789012345678901234567890", "1e400", "1" * 301, "true"]
LINES = st.builds('{{"a":{},"b":{}}}'.format, st.sampled_from(TOKENS), st.sampled_from(TOKENS))
ODD_LINES = [
    '{"a":1,',
    '"b":2}',
    '{"a":1,"b":2}{"a":3,"b":4}',
    '{"a":1,"b":2} {"a":3,"b":4}',
    '{"a":1,"b":2},',
    '{"b":1,"a":2}',
    '{"a":1}',
    '{"a":1,"b":2,"c":3}',
    ' {"a" : 1, "b":2 }\r',
    '{"a":NaN,"b":1}',
    '{"\\u0061":1,"b":2}',
    '{"a":1,"b":"x"}',
    '{"a":{"b":1},"b":2}',
    "",
]


@blocks
@given(st.lists(LINES, max_size=6), st.lists(st.sampled_from(ODD_LINES), max_size=3), st.randoms())
def test_lines_of_numbers_have_the_values_that_they_have_alone(
    lines: list[str], odd: list[str], order: Any
) -> None:
    """They are parsed together, if all are plain."""
    lines = [*lines, *odd]
    order.shuffle(lines)
    expected, wrong = [], []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        alone, errors = table_of('{"a":null,"b":null,"c":null}\n{"d":"text"}\n' + line), Errors()
        *_, last = rows_of(alone, errors, set())
        if errors.total:
            wrong.append(number)
        else:
            expected.append(dict(zip(alone.names, last, strict=True)))
    table, errors = table_of('{"a":7,"b":null}\n' + "\n".join(lines)), Errors()
    found = rows_of(table, errors, {"a", "b"})[1:]
    assert errors.total == len(wrong)
    if wrong:
        assert [each["line"] - 1 for each in errors.summarise().errors] == wrong
    for values, record in zip(found, expected, strict=True):
        for name, value in zip(table.names, values, strict=True):
            if isinstance(value, float):
                assert value == float(record[name])
            else:
                assert value == record[name]


@pytest.mark.parametrize("line", ['{"a":1,"a":2,"b":3}', '{"a":1,"\\u0061":1,"b":2}'])
def test_a_key_that_is_repeated_among_numbers_is_refused(line: str) -> None:
    with pytest.raises(BadTable) as refused:
        table_of('{"a":1,"b":2}\n' + line)
    assert refused.value.code == "duplicate_column"


def test_a_key_that_occurs_twice_is_refused() -> None:
    for line in ('{"a":1,"a":2}', '{"a":"x","b":1,"a":"x"}'):
        with pytest.raises(BadTable) as refused:
            table_of('{"a":1}\n' + line)
        assert refused.value.code == "duplicate_column"
        assert refused.value.errors[0]["line"] == 2


def test_short_lines_keep_their_numbers_across_blocks() -> None:
    """A block of bytes has more lines than are parsed together."""
    lines = ['{"a":1}'] * 20_000
    lines[17_999] = '{"a":[2]}'
    upload, errors = TableBytes("\n".join(lines).encode(), None, 1 << 20), Errors()
    table = NdjsonTable(upload, 100, 20_000)
    assert sum(each.batch.num_rows for each in table.batches(errors, numeric={"a"})) == 19_999
    assert [error["line"] for error in errors.summarise().errors] == [18_000]
