"""Rows of numbers in JSON: what the quick parser accepts, the general one accepts with the same values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.values import BOOLEAN, NUMERIC
from app.platform.errors import Invalid, Malformed
from app.scoring import json_rows
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import IdAndIgnored
from app.scoring.number_rows import NumberRows
from app.scoring.table_rows import Bounds

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


def generally(body: bytes, *, lenient: bool) -> Any:
    """Return the matrix of the general parser, or the code of its error."""
    try:
        parsed = orjson.loads(body)
        if not isinstance(parsed, dict) or parsed.keys() != {"rows"}:
            return Invalid.code
        if not isinstance(parsed["rows"], list):
            return Invalid.code
        return json_rows.of_objects(
            FEATURES, parsed["rows"], IdAndIgnored(), 1 << 10, lenient=lenient
        ).X
    except orjson.JSONDecodeError:
        return Malformed.code
    except Invalid as error:
        return error.code


def check(body: bytes, *, accepted: bool | None = None) -> None:
    """Check that all ways to read a body agree, and whether it is accepted."""
    for lenient in (False, True):
        quick = FEATURES.matrix_of_number_rows(body, lenient=lenient)
        expected = generally(body, lenient=lenient)
        if quick is not None:
            assert not isinstance(expected, str), expected
            np.testing.assert_array_equal(quick, expected)
            assert quick.dtype == np.float64
        if accepted is not None:
            assert (quick is not None) == accepted, body
            assert isinstance(expected, str) != accepted
        if not isinstance(expected, str):
            rows = json_rows.read(FEATURES, body, IdAndIgnored(), BOUNDS, lenient=lenient)
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
    check(b'{"rows": [%s]}' % twice, accepted=True)
    assert FEATURES.matrix_of_number_rows(b'{"rows": [%s]}' % twice)[0, 0] == 8


@pytest.mark.parametrize("value", [True, False, "1", "", "x", [], [1], {}, {"a": 1}])
def test_other_values_are_left_to_the_general_parser(value: Any) -> None:
    check(row(age=value), accepted=False)
    with pytest.raises(Invalid) as caught:
        json_rows.read(FEATURES, row(age=value), IdAndIgnored(), BOUNDS)
    (error,) = caught.value.errors
    assert (error["pointer"], error["code"]) == ("/rows/1/age", "invalid_feature_value")


@pytest.mark.parametrize(
    "body",
    [
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
    ],
)
def test_bodies_with_errors_are_left_to_the_general_parser(body: bytes) -> None:
    check(body, accepted=False)


def test_absent_features_count_as_missing_only_if_that_is_allowed() -> None:
    body = b'{"rows": [{"age": 1}]}'
    assert FEATURES.matrix_of_number_rows(body) is None
    X = FEATURES.matrix_of_number_rows(body, lenient=True)
    assert X is not None
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


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\tb"])
def test_names_that_json_escapes_are_read_as_well(name: str) -> None:
    features = index([name, "b"], [False, False])
    body = orjson.dumps({"rows": [{name: 1, "b": 2}]})
    X = json_rows.read(features, body, IdAndIgnored(), BOUNDS).X
    np.testing.assert_array_equal(X, [[1.0, 2.0]])


def test_models_with_other_features_use_the_general_parser() -> None:
    features = index(["a"], [False], BOOLEAN)
    assert features.matrix_of_number_rows(b'{"rows": [{"a": 1}]}') is None
    rows = json_rows.read(features, b'{"rows": [{"a": true}]}', IdAndIgnored(), BOUNDS)
    assert rows.X.tolist() == [[1.0]]


def test_many_features_in_any_order() -> None:
    names = [f"column {i}" for i in range(2000)]
    may_miss = [i % 3 == 0 for i in range(len(names))]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3, len(names)))
    rows = [{names[i]: row[i] for i in rng.permutation(len(names)).tolist()} for row in X.tolist()]
    found = NumberRows(names, may_miss).read(orjson.dumps({"rows": rows}))
    np.testing.assert_array_equal(found, X)


CELLS = st.one_of(
    st.none(), st.floats(), st.integers(), st.booleans(), st.text(max_size=3), st.just([])
)


@given(st.lists(st.dictionaries(st.sampled_from([*NAMES, "x"]), CELLS, max_size=5), max_size=4))
def test_all_parsers_agree(rows: list[dict[str, Any]]) -> None:
    check(json.dumps({"rows": rows}).encode())
