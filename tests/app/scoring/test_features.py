"""Rows from query strings and JSON: accepted values, refusals and their words.

What each spelling comes to: tests/app/ingest/test_values.py.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.platform.errors import Invalid, Malformed
from app.scoring.features import FeatureIndex
from app.scoring.json_rows import IdAndIgnored, read
from app.scoring.table_rows import Bounds
from tests.sentences import Sentences


def index(**types: str) -> FeatureIndex:
    """An index; a type followed by `?` had missing values in training."""
    return FeatureIndex(
        [
            {"name": name, "type": kind.rstrip("?"), "missing": kind.endswith("?")}
            for name, kind in types.items()
        ]
    )


TWO = index(age="numeric", income="numeric")


def refused(call: Any, *args: Any, **kwargs: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        call(*args, **kwargs)
    return caught.value


def test_a_query_may_be_written_in_many_ways() -> None:
    for query in (
        b"age=41&income=52000",
        b"income=52000&age=41",
        b"income=52e3&age=41.0",
        b"income=5.2e+4&age=4.1E1",
        b"age=%34%31&income=52000",
        b"%61ge=41&income=52000",
        b"&age=41&&income=+52000&",
        b"age=41+&income=++52000+",
    ):
        assert TWO.row_of_query(query).tolist() == [[41.0, 52000.0]]


def test_a_query_is_refused_by_name_and_rule(sentences: Sentences) -> None:
    for query, code in (
        (b"age=41", "absent_feature"),
        (b"", "absent_feature"),
        (
            b"age=41&income=1&x=2",
            "unknown_feature",
        ),
        (b"age=41&age=42&income=1", "duplicate_feature"),
        (b"age=41&%61ge=42&income=1", "duplicate_feature"),
        (
            b"age=old&income=1",
            "invalid_feature_value",
        ),
        (
            b"age=41&income=1.234,56",
            "invalid_feature_value",
        ),
        (b"\\u0061ge=1&income=1", "unknown_feature"),
        (b"age=\xff&income=1", "invalid_feature_value"),
        (b'age=1,"income":2', "invalid_feature_value"),
        (b"\xff=1&age=1&income=1", "unknown_feature"),
    ):
        error = refused(TWO.row_of_query, query)
        assert error.code == code
        sentences(error.errors[0])


def test_every_error_is_listed(sentences: Sentences) -> None:
    error = refused(TWO.row_of_query, b"age=x&y=1")
    assert [error["parameter"] for error in error.errors] == ["age", "y", "income"]
    sentences(error)


def test_missing_values() -> None:
    mixed = index(age="numeric", income="numeric?")
    assert np.isnan(TWO.row_of_query(b"age=&income=1")).tolist() == [[True, False]]
    assert np.isnan(TWO.row_of_query(b"age&income=1")).tolist() == [[True, False]]
    assert np.isnan(mixed.row_of_query(b"age=1")).tolist() == [[False, True]]
    assert refused(mixed.row_of_query, b"income=1").code == "absent_feature"
    assert np.isnan(mixed.row_of_query(b"", lenient=True)).all()
    assert refused(mixed.row_of_query, b"x=1", lenient=True).code == "unknown_feature"


def test_booleans_are_refused_by_their_rule(sentences: Sentences) -> None:
    flags = index(new="boolean", age="numeric")
    error = refused(flags.row_of_query, b"new=yes&age=3")
    sentences(error)
    for name, row in (("new", {"new": 2, "age": 1}), ("age", {"new": 1, "age": True})):
        assert refused(flags.matrix_of_rows, [row]).errors[0]["pointer"] == f"/rows/0/{name}"
    absent = index(new="boolean", age="numeric?", old="boolean?").matrix_of_rows([{"new": 1}])
    assert same(absent, [1.0, np.nan, np.nan])


def same(X: np.ndarray, *rows: list[float]) -> bool:
    return np.array_equal(X, np.array(rows), equal_nan=True)


STRANGE = [
    "a b",
    "a+b",
    "50%",
    "a&b",
    "a=b",
    "ü",
    'say "x"',
    "a\\b",
    "a/b~c",
    "true",
    "#",
    "x,y",
    "{z}",
]


def test_strange_names_in_every_encoding() -> None:
    strange = index(**dict.fromkeys(STRANGE, "numeric"))
    values = {name: float(i) for i, name in enumerate(STRANGE)}
    expected = [list(values.values())]
    for encode in (urlencode, lambda pairs: urlencode(pairs, quote_via=quote)):
        assert strange.row_of_query(encode(values).encode()).tolist() == expected
    assert strange.matrix_of_rows([values]).tolist() == expected
    assert strange.matrix_of_table(STRANGE, [list(values.values())]).tolist() == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_the_float_that_was_sent_is_the_float_that_arrives(values: list[float]) -> None:
    for quote_via in (quote, quote_plus):
        query = urlencode(
            dict(zip(["age", "income"], map(repr, values), strict=True)), quote_via=quote_via
        )
        assert TWO.row_of_query(query.encode()).tolist() == [values]


_DECIMALS = st.from_regex(
    r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?", fullmatch=True, alphabet="-.0123456789e"
)


@given(st.lists(_DECIMALS | st.just(""), min_size=2, max_size=2))
def test_decimals_are_read_as_python_reads_them(texts: list[str]) -> None:
    query = "&".join(f"{name}={text}" for name, text in zip(TWO.names, texts, strict=True))
    expected = [float(text) if text else math.nan for text in texts]
    if any(math.isinf(value) for value in expected):
        assert refused(TWO.row_of_query, query.encode()).code == "invalid_feature_value"
    else:
        np.testing.assert_array_equal(TWO.row_of_query(query.encode()), [expected])


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(query: bytes) -> None:
    try:
        row = TWO.row_of_query(query)
    except Invalid as error:
        orjson.dumps(error.errors)
    else:
        assert row.shape == (1, 2)
        assert not np.isinf(row).any()


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(_JSON | st.fixed_dictionaries({"age": _JSON, "income": _JSON}), max_size=4))
def test_no_rows_break_the_reader(rows: list[Any]) -> None:
    with contextlib.suppress(Invalid):
        X = TWO.matrix_of_rows(rows)
        assert X.shape == (len(rows), 2)
        assert not np.isinf(X).any()


@given(
    st.lists(_JSON | st.sampled_from(["age", "income"]), max_size=3), st.lists(_JSON, max_size=3)
)
def test_no_table_breaks_the_reader(columns: list[Any], data: list[Any]) -> None:
    with contextlib.suppress(Invalid):
        X = TWO.matrix_of_table(columns, data)
        assert X.shape == (len(data), 2)


def test_rows_are_refused_where_they_are_wrong(sentences: Sentences) -> None:
    for rows, pointer in (
        ([3], "/rows/0"),
        ([{"age": 1, "income": 2}, {"age": "41 years", "income": 2}], "/rows/1/age"),
        ([{"age": [1], "income": 2}], "/rows/0/age"),
        ([{"age": 1e308 * 10, "income": 2}], "/rows/0/age"),
        ([{"age": 10**400, "income": 2}], "/rows/0/age"),
        ([{"age": 1, "income": 2, "x/y": 3}], "/rows/0/x~1y"),
        ([{"age": 1}], "/rows/0"),
    ):
        error = refused(TWO.matrix_of_rows, rows).errors[0]
        assert error["pointer"] == pointer
        sentences(error)


def test_tables_are_refused_where_they_are_wrong(sentences: Sentences) -> None:
    for columns, data, pointer in (
        (["age"], [[1]], "/columns"),
        (["age", "age"], [[1, 2]], "/columns/1"),
        (["age", 3], [[1, 2]], "/columns/1"),
        (["age", "income"], [[1, 2], [1]], "/data/1"),
        (["age", "income"], [[1, "x"]], "/data/0/1"),
    ):
        error = refused(TWO.matrix_of_table, columns, data).errors[0]
        assert error["pointer"] == pointer
        sentences(error)


def test_columns_come_in_any_order_and_null_is_missing() -> None:
    X = TWO.matrix_of_table(["income", "age"], [[1, 2], [None, 3.5]])
    assert X[0].tolist() == [2.0, 1.0]
    assert X[1, 0] == 3.5
    assert math.isnan(X[1, 1])
    assert TWO.matrix_of_rows([]).shape == (0, 2)
    assert np.isnan(TWO.matrix_of_table([], [[]], lenient=True)).all()


def test_errors_are_bounded() -> None:
    assert len(refused(TWO.matrix_of_rows, [1] * 5000).errors) == 100


BOUNDS = Bounds(10, 8 * 200, 1 << 20)
"""100 rows of two features."""


def test_doubles_of_every_size_are_read_from_json_to_the_last_bit() -> None:
    bits = np.random.default_rng(0).integers(0, 2**64, 30_000, dtype=np.uint64).view(np.float64)
    values = np.append(bits[np.isfinite(bits)], [-0.0, 0.0, 5e-324, 1e22, 2.0**53 + 2])
    rows = values[: len(values) // 2 * 2].reshape(-1, 2)
    bounds = Bounds(10, 1 << 20, 1 << 30)
    lists = {"columns": ["income", "age"], "data": rows.tolist()}
    objects = {"rows": [{"income": income, "age": age} for income, age in rows.tolist()]}
    for body in (lists, objects):
        X = read(TWO, orjson.dumps(body), IdAndIgnored(), bounds).X
        assert np.array_equal(X.view(np.int64), rows[:, ::-1].copy().view(np.int64))


def test_hostile_bodies_are_refused(sentences: Sentences) -> None:
    head = b'{"columns":["age","income"],"data":['
    tails = (b'["' * 100_000, b"[" * 100_000, b'["\xf4\x90\x80\x80",1]]}', b"[1,2]]} x", b"[1 2]]}")
    for tail in tails:
        with pytest.raises((Malformed, Invalid)):  # brackets are counted before they are parsed
            read(TWO, head + tail, IdAndIgnored(), BOUNDS)
    full = head + b",".join([b"[1,2]"] * 100)
    assert len(read(TWO, full + b"]}", IdAndIgnored(), BOUNDS).X) == 100
    with sentences.raises(Invalid):
        read(TWO, full + b",[1,2]]}", IdAndIgnored(), BOUNDS)
