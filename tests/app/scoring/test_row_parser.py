"""Rows in JSON: what the quick parser accepts, the general one accepts with the same values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.description import Format
from app.ingest import json_text
from app.ingest.values import BOOLEAN, CATEGORICAL, DATETIME, NUMERIC
from app.platform.errors import Invalid, Malformed
from app.scoring import json_rows
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import IdAndIgnored
from app.scoring.row_parser import RowParser
from app.scoring.table_rows import Bounds, TableOptions, read_body

BOUNDS = Bounds(100, 1 << 20, 1 << 10)
NAMES = ["age", "ü 😀", "class", "f0"]
MAY_MISS = [False, True, False, False]


def index(names: list[str], may_miss: list[bool], kind: str = NUMERIC) -> FeatureIndex:
    return FeatureIndex([
        {"name": name, "type": kind, "missing": missing}
        for name, missing in zip(names, may_miss, strict=True)
    ])  # fmt: skip


FEATURES = index(NAMES, MAY_MISS)
ROW = {"age": 1.5, "ü 😀": None, "class": -3, "f0": 2}


MIXED = FeatureIndex(
    [
        {"name": name, "type": kind, "missing": missing}
        for name, kind, missing in zip(
            NAMES, (NUMERIC, CATEGORICAL, BOOLEAN, DATETIME), MAY_MISS, strict=True
        )
    ],
    [None, ["a", "3", "true", "\u2028", str(10**30), str(2**64)], None, None],
)
MIXED_ROW = {"age": 1, "ü 😀": "a", "class": True, "f0": "2024-02-29"}


@pytest.mark.parametrize("kind", [NUMERIC, CATEGORICAL])
@pytest.mark.parametrize("optional", [False, True])
def test_a_key_that_occurs_twice_is_for_the_general_parser(kind: str, optional: bool) -> None:
    features = index(["a", "b"], [optional, optional], kind)
    for row in ('{"a":1,"b":2,"a":3}', '{"a":1,"a":2}', '{"a":null,"a":2,"b":1}'):
        for body in (f'{{"rows":[{row}]}}', f'{{"rows":[{{"a":1}},{row},{{"b":1}}]}}'):
            assert features.parse_rows(body.encode()) is None, body
            with pytest.raises(Invalid) as refused:
                json_rows.read(features, body.encode(), IdAndIgnored(), BOUNDS)
            assert refused.value.code == "duplicate_column"
    for value in ("2", "null"):
        assert features.parse_rows(b'{"rows":[{"a":1,"b":%s}]}' % value.encode()) is not None


def test_a_feature_may_be_called_as_all_others() -> None:
    """`ignore=*` names the fields that are no feature, also if a feature is called `*`."""
    features = index(["*", "b"], [False, False])
    body = b'{"rows": [{"*": 1, "b": 2, "c": 3}]}'
    assert json_rows.read(features, body, IdAndIgnored(None, ("*",)), BOUNDS).X.tolist() == [[1, 2]]
    table, options = Format("text/csv", None), TableOptions(ignore=("*",))
    reader, source = read_body(b"*,b,c\n1,2,3\n", table, features, options, None, BOUNDS)
    (batch,) = reader.batches(source)
    assert [values.tolist() for values in batch.features.values()] == [[1.0], [2.0]]
    reader, source = read_body(
        b"b,c\n2,3\n", table, index(["b"], [False]), TableOptions(("c",), keep=("*",)), None, BOUNDS
    )
    with pytest.raises(Invalid):
        list(reader.batches(source))


def quickly(features: FeatureIndex, body: bytes, *, lenient: bool) -> Any:
    """Return the matrix of the quick parser, the errors of its values, or None."""
    rows = features.parse_rows(body, lenient=lenient)
    try:
        return None if rows is None else features.matrix_of_parsed(rows)
    except Invalid as error:
        return error.errors


def generally(features: FeatureIndex, body: bytes, *, lenient: bool) -> Any:
    """Return the matrix of the general parser, or its errors."""
    try:
        parsed = json_text.parse(body)
        if not isinstance(parsed, dict) or parsed.keys() != {"rows"}:
            return []
        if not isinstance(parsed["rows"], list):
            return []
        return json_rows.of_objects(
            features, parsed["rows"], IdAndIgnored(), 1 << 10, lenient=lenient
        ).X
    except orjson.JSONDecodeError:
        return []
    except Invalid as error:
        return error.errors


def check(body: bytes, features: FeatureIndex = FEATURES, *, accepted: bool | None = None) -> None:
    """Check that all ways to read a body agree, and whether the quick parser accepts it."""
    for lenient in (False, True):
        quick = quickly(features, body, lenient=lenient)
        expected = generally(features, body, lenient=lenient)
        if isinstance(quick, list):
            assert quick == expected
        elif quick is not None:
            assert not isinstance(expected, list), expected
            np.testing.assert_array_equal(quick, expected)
            assert quick.dtype == np.float64
        if accepted is not None:
            assert (quick is not None) == accepted, body
            assert isinstance(expected, list) != accepted
        if not isinstance(expected, list):
            rows = json_rows.read(features, body, IdAndIgnored(), BOUNDS, lenient=lenient)
            np.testing.assert_array_equal(rows.X, expected)
            assert rows.ids is None


def row(**changed: Any) -> bytes:
    return json.dumps({"rows": [ROW, ROW | changed]}).encode()


def test_numbers_and_nulls_are_read() -> None:
    for value in (0, -0.0, 1e-320, 2**53 + 1, -(2**63), 2**64 - 1, 10**30, 1.7e308, None):
        check(row(age=value), accepted=True)
    for text in ("-0", "1E5", "1.0e-400", "123456789012345678901234567890e-10", "5e-324"):
        check(row(age=0).replace(b'"age": 0', f'"age": {text}'.encode()), accepted=True)
    check(b'{"rows": []}', accepted=True)
    check(b' {"rows":[\n' + orjson.dumps(ROW) + b"\t] }\r\n", accepted=True)
    check(json.dumps({"rows": [ROW]}, ensure_ascii=False).encode(), accepted=True)
    without = {name: value for name, value in ROW.items() if value is not None}
    check(orjson.dumps({"rows": [ROW, without]}), accepted=True)  # it may be missing
    twice = b'{"age": 7, "class": 1, "f0": 2, "age": 8}'
    check(b'{"rows": [%s]}' % twice, accepted=False)


def test_other_values_are_left_to_the_general_parser() -> None:
    for value in (True, False, "x", [], [1], {}, {"a": 1}):
        check(row(age=value), accepted=False)
        with pytest.raises(Invalid) as caught:
            json_rows.read(FEATURES, row(age=value), IdAndIgnored(), BOUNDS)
        (error,) = caught.value.errors
        assert (error["pointer"], error["code"]) == ("/rows/1/age", "invalid_feature_value")


def test_bodies_with_errors_are_left_to_the_general_parser() -> None:
    for body in (
        row(other=1),
        row(age=float("nan")),
        row(age=float("inf")),
        row(age=0).replace(b'"age": 0', b'"age": 1e999'),
        row(age=0).replace(b'"age": 0', b'"age": ' + b"9" * 400),
        row(age=0).replace(b'"age": 0', b'"age": 01'),
        row(age=0) + b"x",
        row(age=0)[:-1],
        b"\xef\xbb\xbf" + row(age=0),
        row(age=0).decode().encode("utf-16"),
        b'{"rows": [1]}',
        b'{"rows": [null]}',
        b'{"rows": {}}',
        b'{"rows": null}',
        b'{"rows": [], "more": 1}',
        b"[]",
        b"{}",
        b"",
        b'{"rows": [{"\xff": 1}]}',
    ):
        check(body, accepted=False)


def test_absent_features_count_as_missing_only_if_that_is_allowed() -> None:
    body = b'{"rows": [{"age": 1}]}'
    assert FEATURES.parse_rows(body) is None
    X = quickly(FEATURES, body, lenient=True)
    np.testing.assert_array_equal(X, [[1.0, np.nan, np.nan, np.nan]])


def test_rows_with_ids_or_ignored_fields_keep_them() -> None:
    body = row(id="a", more="x").replace(b"[{", b'[{"id": 1, ')
    found = json_rows.read(FEATURES, body, IdAndIgnored("id", ("more",)), BOUNDS)
    assert found.ids is not None
    assert found.ids.to_pylist() == ["1", "a"]
    inside = orjson.dumps({**orjson.loads(body), "id": "id", "ignore": ["more"]})
    assert json_rows.read(FEATURES, inside, IdAndIgnored(), BOUNDS).ids == found.ids


def test_too_many_rows_are_refused_before_they_are_parsed() -> None:
    body = b'{"rows": [' + b"{}," * 5000 + b"{}]}"
    with pytest.raises(Invalid) as caught:
        json_rows.read(FEATURES, body, IdAndIgnored(), BOUNDS, lenient=True)
    assert caught.value.code == "too_many_rows"


def test_names_that_json_escapes_are_read_as_well() -> None:
    for name in ('a"b', "a\\b", "a\tb"):
        features = index([name, "b"], [False, False])
        body = orjson.dumps({"rows": [{name: 1, "b": 2}]})
        X = json_rows.read(features, body, IdAndIgnored(), BOUNDS).X
        np.testing.assert_array_equal(X, [[1.0, 2.0]])


def test_features_of_every_type() -> None:
    for name, value, accepted in (
        ("ü 😀", "new", True),
        ("ü 😀", " a ", True),
        ("ü 😀", 3, True),
        ("ü 😀", 3.0, True),
        ("ü 😀", True, True),
        ("ü 😀", None, True),
        ("ü 😀", "\u2028", True),
        ("ü 😀", 10**30, None),
        ("ü 😀", 2**64, None),
        ("ü 😀", 2**63 - 1, True),
        ("ü 😀", ["a"], False),
        ("ü 😀", {}, False),
        ("class", 1, True),
        ("class", 0.0, True),
        ("class", None, True),
        ("class", 2, None),
        ("class", "true", None),
        ("f0", "2024-02-29T23:59:59Z", True),
        ("f0", None, True),
        ("f0", "2023-02-29", None),
        ("f0", 5, None),
        ("age", "1", None),
        ("age", "x", False),
    ):
        body = json.dumps({"rows": [MIXED_ROW, MIXED_ROW | {name: value}]}).encode()
        check(body, MIXED, accepted=accepted)
        many = json.dumps({"rows": [MIXED_ROW | {name: value}] * 200}).encode()
        check(many, MIXED, accepted=accepted)


def test_texts_that_are_not_unicode_are_refused() -> None:
    for text in (b"\\ud800", b"\\udc00x", b"a\nb", b"\xff", b"\xed\xa0\x80", b"\\x41"):
        body = json.dumps({"rows": [MIXED_ROW]}).encode().replace(b'"a"', b'"%s"' % text)
        check(body, MIXED, accepted=False)
        with pytest.raises(Malformed):
            json_rows.read(MIXED, body, IdAndIgnored(), BOUNDS)


def table(*rows: Any, columns: Any = ("f0", "age", "class", "ü 😀"), **more: Any) -> bytes:
    return json.dumps({"columns": columns, "data": rows, **more}).encode()


NUMBERS = [2, 1.5, -3, None]


def test_a_table_of_numbers_has_the_values_of_the_general_parser() -> None:
    columns = ["f0", "age", "class", "ü 😀"]
    for value in (0, -0.0, 5e-324, 2**53 + 1, -(2**63), 2**64 - 1, 10**30, 1.7e308, None):
        body = table(NUMBERS, [value, *NUMBERS[1:]])
        found = FEATURES.matrix_of_number_table(body, 100)
        expected = FEATURES.matrix_of_table(columns, json_text.parse(body)["data"])
        assert found is not None
        np.testing.assert_array_equal(found, expected)
        assert np.signbit(found[1, 3]) == np.signbit(expected[1, 3])
    # Names may contain a colon, and columns that may be missing be absent.
    features = index(["a:b", "c"], [False, True])
    for body in (table([1], columns=["a:b"]), table([None, 1], columns=["c", "a:b"])):
        found = features.matrix_of_number_table(body, 100)
        np.testing.assert_array_equal(found, [[1.0, np.nan]])
    assert FEATURES.matrix_of_number_table(table(), 100).shape == (0, 4)


@pytest.mark.parametrize(
    "body",
    [
        table(NUMBERS, [True, 1, 1, 1]),
        table(["2", 1, 1, 1]),
        table([[2], 1, 1, 1]),
        table([1, 2, 3]),
        table({"age": 1}),
        table(NUMBERS, more=1),
        table(NUMBERS, id="f0"),
        table(NUMBERS)[:-1] + b', "data": []}',
        table(NUMBERS).replace(b"1.5", b"1e999"),
        table(NUMBERS).replace(b"1.5", b"NaN"),
        table(NUMBERS).replace(b"1.5", b"01"),
        table(NUMBERS).replace(b"1.5", b"9" * 400),
        table(NUMBERS) + b"x",
        table(NUMBERS, columns=[1, 2, 3, 4]),
        table(*[NUMBERS] * 101),
        b"[]",
    ],
)
def test_other_tables_are_left_to_the_general_parser(body: bytes) -> None:
    assert FEATURES.matrix_of_number_table(body, 100) is None


def test_wrong_columns_of_a_table_of_numbers_have_the_errors_of_the_general_parser() -> None:
    for columns in (["f0", "age", "class", "new"], ["f0", "age", "age", "class"]):
        body = table(NUMBERS, columns=columns)
        with pytest.raises(Invalid) as quick:
            FEATURES.matrix_of_number_table(body, 100)
        with pytest.raises(Invalid) as general:
            FEATURES.matrix_of_table(columns, json_text.parse(body)["data"])
        assert quick.value.errors == general.value.errors


def test_many_features_in_any_order() -> None:
    names = [f"column {i}" for i in range(2000)]
    may_miss = [i % 3 == 0 for i in range(len(names))]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, len(names)))
    rows = [{names[i]: row[i] for i in rng.permutation(len(names)).tolist()} for row in X.tolist()]
    numbers = [True] * len(names)
    found = RowParser(names, numbers, may_miss).parse(orjson.dumps({"rows": rows}))
    assert found is not None
    np.testing.assert_array_equal(np.array(found), X)


CELLS = st.one_of(
    st.none(),
    st.floats(),
    st.integers(),
    st.booleans(),
    st.text(max_size=3),
    st.sampled_from(["a", "2024-01-01", [], {}]),
)


@given(st.lists(st.dictionaries(st.sampled_from([*NAMES, "x"]), CELLS, max_size=5), max_size=4))
def test_all_parsers_agree(rows: list[dict[str, Any]]) -> None:
    for features in (FEATURES, MIXED):
        check(json.dumps({"rows": rows}).encode(), features)
