"""Categorical features in what callers send: text, its encodings, and what counts as missing."""

from __future__ import annotations

import contextlib
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.platform.errors import Invalid
from app.scoring.fastpath import PlainQuery
from app.scoring.features import FeatureIndex

COLOURS = tuple(sorted(["3", "a&b=c", "dark red", "green", "grün", "red", "re\nd\n", "true", "ü"]))
NAN = float("nan")


def index(missing: bool = False, boolean: bool = False) -> FeatureIndex:
    """An index of a number, a colour and, if wanted, a flag."""
    features = [
        {"name": "age", "type": "numeric", "missing": False},
        {"name": "colour", "type": "categorical", "missing": missing},
    ]
    categories: list[Any] = [None, COLOURS]
    if boolean:
        features.append({"name": "new", "type": "boolean", "missing": True})
        categories.append(None)
    found = FeatureIndex(features, categories)
    found.load_compiled_readers()
    return found


MIXED = index()


def place(text: str) -> float:
    """The position of a category, NaN for any other text."""
    return float(COLOURS.index(text)) if text in COLOURS else NAN


def same(X: np.ndarray, *rows: list[float]) -> bool:
    """Whether the matrix is just these rows."""
    return np.array_equal(X, np.array(rows), equal_nan=True)


@pytest.mark.parametrize(
    ("query", "colour"),
    [
        ("age=41&colour=red", "red"),
        ("colour=red&age=41", "red"),
        ("age=41&colour=dark+red", "dark red"),
        ("age=41&colour=dark%20red", "dark red"),
        ("age=41&colour=+dark+red%09", "dark red"),
        ("age=41&colour=gr%C3%BCn", "grün"),
        ("age=41&colour=a%26b%3Dc", "a&b=c"),
        ("age=41&colour=a%26b=c", "a&b=c"),
        ("age=41&colour=%72ed", "red"),
        ("age=41&colour=re%0Ad%0A", "re\nd\n"),
        ("age=41&colour=3", "3"),
        ("age=41&colour=true", "true"),
        ("age=41&colour=3.0", "unseen"),
        ("age=41&colour=Red", "unseen"),
        ("age=41&colour=?", "unseen"),
        ("age=41&colour=NA", "unseen"),
        ("age=41&colour=", "unseen"),
        ("age=41&colour", "unseen"),
        ("age=41&colour=re", "unseen"),
        ("age=41&colour=redd", "unseen"),
        ("age=41&colour=%00", "unseen"),
        ("age=41&colour=" + "x" * 5000, "unseen"),
    ],
)
def test_a_text_is_its_category_however_it_is_sent(query: str, colour: str) -> None:
    assert same(MIXED.row_of_query(query.encode()), [41.0, place(colour)])


def test_raw_utf_8_in_a_query() -> None:
    assert same(MIXED.row_of_query("age=1&colour=grün".encode()), [1.0, place("grün")])


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("quoted", [quote, quote_plus])
def test_every_category_is_found_in_every_encoding(colour: str, quoted: Any) -> None:
    query = f"age=1&colour={quoted(colour)}".encode()
    assert same(MIXED.row_of_query(query), [1.0, place(colour)])
    assert same(index(boolean=True).row_of_query(query + b"&new=true"), [1.0, place(colour), 1.0])
    for X in (
        MIXED.matrix_of_rows([{"age": 1, "colour": colour}, {"colour": f" {colour}\t", "age": 2}]),
        MIXED.matrix_of_table(["colour", "age"], [[colour, 1], [f"\t{colour}", 2]]),
    ):
        assert same(X, [1.0, place(colour)], [2.0, place(colour)])


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        (b"age=1&colour=%ff", "invalid_feature_value", "'colour' must be text in UTF-8"),
        (b"age=1&colour=\xff", "invalid_feature_value", "'colour' must be text in UTF-8"),
        (b"age=1", "absent_feature", "feature 'colour' is absent"),
    ],
)
def test_bad_queries(query: bytes, code: str, detail: str) -> None:
    with pytest.raises(Invalid) as caught:
        MIXED.row_of_query(query)
    assert caught.value.code == code
    assert detail in caught.value.errors[0]["detail"]


def test_a_colour_that_was_missing_in_training_may_be_absent() -> None:
    assert same(index(missing=True).row_of_query(b"age=1"), [1.0, NAN])
    assert same(MIXED.row_of_query(b"age=1", lenient=True), [1.0, NAN])
    assert same(index(missing=True).matrix_of_rows([{"age": 1}]), [1.0, NAN])
    spelled = FeatureIndex([{"name": "a", "type": "categorical", "missing": True}], [["nan"]])
    assert same(spelled.matrix_of_rows([{}, {"a": "nan"}]), [NAN], [0.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("red", "red"),
        (3, "3"),
        (3.0, "3"),
        (3.5, "3.5"),
        (True, "true"),
        (False, "false"),
        (None, "unseen"),
        ("", "unseen"),
        ("3.0", "unseen"),
        ("unseen", "unseen"),
        (1e300, "1e+300"),
        (-(2**63), "-9223372036854775808"),
    ],
)
def test_numbers_stand_for_their_text(value: Any, text: str) -> None:
    X = MIXED.matrix_of_rows([{"age": 1, "colour": value}])
    assert same(X, [1.0, place(text)])
    assert same(MIXED.matrix_of_table(["age", "colour"], [[1, value]]), *X.tolist())


@pytest.mark.parametrize(
    ("row", "pointer", "detail"),
    [
        ({"age": 1, "colour": ["red"]}, "/rows/1/colour", "must be text in UTF-8, got ['red']"),
        ({"age": 1, "colour": {"r": 1}}, "/rows/1/colour", "must be text in UTF-8"),
        ({"age": True, "colour": "red"}, "/rows/1/age", "must be a finite number"),
    ],
)
def test_bad_rows(row: dict[str, Any], pointer: str, detail: str) -> None:
    with pytest.raises(Invalid) as caught:
        MIXED.matrix_of_rows([{"age": 1, "colour": "red"}, row])
    assert caught.value.errors[0]["pointer"] == pointer
    assert detail in caught.value.errors[0]["detail"]


def test_booleans_beside_categories() -> None:
    flags = index(boolean=True)
    X = flags.matrix_of_rows(
        [{"age": 1, "colour": "red", "new": True}, {"age": 2, "colour": None, "new": 0}]
    )
    assert same(X, [1.0, place("red"), 1.0], [2.0, NAN, 0.0])
    with pytest.raises(Invalid, match="feature 'new' must be true or false, got 2"):
        flags.matrix_of_rows([{"age": 1, "colour": "red", "new": 2}])


# --- the compiled way ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("colour", "meant"),
    [
        ("red", "red"),
        ("3", "3"),
        ("true", "true"),
        ("dark+red", "dark red"),
        ("dark%20red", "dark red"),
        ("+dark%20red%09", "dark red"),
        ("gr%C3%BCn", "grün"),
        ("gr%c3%bCn", "grün"),
        ("grün", "grün"),
        ("a%26b=c", "a&b=c"),
        ("", "unseen"),
        ("unseen", "unseen"),
        ("re", "unseen"),
        ("redd", "unseen"),
        ("~", "unseen"),
        ("?", "unseen"),
        ("+", "unseen"),
    ],
)
def test_plain_words_take_the_compiled_way(colour: str, meant: str) -> None:
    query = f"age=2.5&colour={colour}".encode()
    row = PlainQuery(["age", "colour"], [None, COLOURS]).read(query)
    assert row is not None
    assert same(row, [2.5, place(meant)])
    assert same(row, *MIXED._decode(query, False).tolist())


@pytest.mark.parametrize("colour", ["é", "%C3", "%ff", "%zz", "%2", "%", "r%e"])
def test_other_words_are_left_to_the_rules(colour: str) -> None:
    reader = PlainQuery(["age", "colour"], [None, COLOURS])
    assert reader.read(f"age=2.5&colour={colour}".encode()) is None


def test_a_feature_without_any_category_never_takes_a_number() -> None:
    features = [{"name": "colour", "type": "categorical", "missing": True}]
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
    features.load_compiled_readers()
    for word in (text, *known):
        tidy = word.strip(" \t")
        expected = float(known.index(tidy)) if tidy in known else NAN
        for query in (urlencode({"c": word}).encode(), b"c=" + quote(word, safe="").encode()):
            assert same(features.row_of_query(query), [expected])
            assert same(features._decode(query, False), [expected])


@given(st.binary(max_size=40))
def test_no_bytes_break_the_reader(query: bytes) -> None:
    with contextlib.suppress(Invalid):
        row = index(missing=True).row_of_query(b"age=1&colour=" + query)
        assert row.shape == (1, 2)
        assert np.isnan(row[0, 1]) or row[0, 1] in range(len(COLOURS))
