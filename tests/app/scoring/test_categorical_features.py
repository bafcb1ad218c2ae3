"""Categorical features in requests: any words, absent features, refusals and their words.

What each spelling comes to: tests/app/ingest/test_values.py.
"""

from __future__ import annotations

import contextlib
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.datasets.description import Format
from app.ingest.formats import CSV
from app.platform.documents import ModelFeature
from app.platform.errors import Invalid
from app.scoring.features import FeatureIndex
from app.scoring.table_rows import Bounds, TableOptions, read_body
from tests.sentences import Sentences

COLOURS = ("dark red", "green", "grün", "red")
NAN = float("nan")


def index(missing: bool = False) -> FeatureIndex:
    """An index of a number and a colour."""
    features: list[ModelFeature] = [
        {"name": "age", "type": "numeric", "missing": False},
        {"name": "colour", "type": "categorical", "missing": missing},
    ]
    return FeatureIndex(features, [None, COLOURS])


MIXED = index()


def same(X: np.ndarray, *rows: list[float]) -> bool:
    """Return True if the matrix has exactly these rows."""
    return np.array_equal(X, np.array(rows), equal_nan=True)


def test_bad_queries(sentences: Sentences) -> None:
    for query, code in (
        (b"age=1&colour=%ff", "invalid_feature_value"),
        (b"age=1&colour=\xff", "invalid_feature_value"),
        (b"age=1", "absent_feature"),
    ):
        with pytest.raises(Invalid) as caught:
            MIXED.row_of_query(query)
        assert caught.value.code == code
        sentences(caught.value.errors[0])


def test_a_colour_that_was_missing_in_training_may_be_absent() -> None:
    assert same(index(missing=True).row_of_query(b"age=1"), [1.0, NAN])
    assert same(MIXED.row_of_query(b"age=1", lenient=True), [1.0, NAN])
    assert same(index(missing=True).matrix_of_rows([{"age": 1}]), [1.0, NAN])
    spelled = FeatureIndex([{"name": "a", "type": "categorical", "missing": True}], [["nan"]])
    assert same(spelled.matrix_of_rows([{}, {"a": "nan"}]), [NAN], [0.0])


@pytest.mark.parametrize(
    ("colours", "warned"),
    [
        (["blue"], True),
        (["blue", None, "pink", ""], True),
        (["blue", "red"], False),
        ([None, ""], False),
        (["red"], False),
    ],
)
def test_a_column_of_unknown_categories_is_told(colours: list[str | None], warned: bool) -> None:
    rows = [{"age": 1, "colour": colour} for colour in colours]
    features = index(missing=True).noting()
    features.matrix_of_rows(rows)
    listed = index(missing=True).noting()
    listed.matrix_of_table(["colour", "age"], [[row["colour"], 1] for row in rows])
    table = index(missing=True).noting()
    body = "age,colour\n" + "".join(f"1,{colour or ''}\n" for colour in colours)
    bounds = Bounds(columns=10, bytes=1 << 16, rows=100)
    reader, source = read_body(
        body.encode(), Format(CSV, None), table, TableOptions(), None, bounds
    )
    assert len(list(reader.batches(source))) == 1
    for each in (features, listed, table):
        assert [warning["feature"] for warning in each.warnings()] == ["colour"] * warned


def test_a_query_tells_of_an_unknown_category() -> None:
    for query, warned in (
        (b"age=1&colour=blue", 1),
        (b"age=1&colour=red", 0),
        (b"age=1&colour=", 0),
    ):
        features = MIXED.noting()
        features.row_of_query(query)
        assert len(features.warnings()) == warned
    assert MIXED.warnings() == []


def test_bad_rows(sentences: Sentences) -> None:
    for row, pointer in (
        ({"age": 1, "colour": ["red"]}, "/rows/1/colour"),
        ({"age": 1, "colour": {"r": 1}}, "/rows/1/colour"),
        ({"age": True, "colour": "red"}, "/rows/1/age"),
    ):
        with pytest.raises(Invalid) as caught:
            MIXED.matrix_of_rows([{"age": 1, "colour": "red"}, row])
        assert caught.value.errors[0]["pointer"] == pointer
        sentences(caught.value.errors[0])


def test_a_feature_without_any_category_never_takes_a_number() -> None:
    features: list[ModelFeature] = [{"name": "colour", "type": "categorical", "missing": True}]
    for query in (b"colour=3", b"colour=red", b"colour="):
        assert same(FeatureIndex(features, [()]).row_of_query(query), [NAN])


words = st.text(st.characters(codec="utf-8"), max_size=4)


@given(
    categories=st.sets(words.filter(lambda w: w and w == w.strip(" \t")), min_size=1, max_size=8),
    text=words,
)
@example(categories={"a", "aa", "b"}, text="a")
@example(categories={"\U00010000", "\uffff", "é"}, text="\uffff")
def test_any_words(categories: set[str], text: str) -> None:
    """Both ways of reading a query find what a dictionary would."""
    known = tuple(sorted(categories))
    features = FeatureIndex([{"name": "c", "type": "categorical", "missing": False}], [known])
    for word in (text, *known):
        tidy = word.strip(" \t")
        expected = float(known.index(tidy)) if tidy in known else NAN
        for query in (urlencode({"c": word}).encode(), b"c=" + quote(word, safe="").encode()):
            assert same(features.row_of_query(query), [expected])
            assert same(features.decode(query, lenient=False), [expected])


@given(st.binary(max_size=40))
def test_no_bytes_break_the_reader(query: bytes) -> None:
    with contextlib.suppress(Invalid):
        row = index(missing=True).row_of_query(b"age=1&colour=" + query)
        assert row.shape == (1, 2)
        assert np.isnan(row[0, 1]) or row[0, 1] in range(len(COLOURS))
