"""Tables of several kinds become one matrix, or are refused with the names of their columns."""

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.base.table import (
    MAX_CATEGORIES,
    MAX_CATEGORY_TEXT,
    CodedTable,
    is_table,
    keep_present,
    to_matrix,
)
from core.errors import InvalidData
from tests.raising import raises
from tests.sentences import Sentences

nan = math.nan


def test_arrays_are_no_tables() -> None:
    assert not is_table(np.zeros((2, 2)))
    assert not is_table([[1, 2]])
    assert not is_table(pd.Series([1]))
    assert is_table(pd.DataFrame({"a": [1]}))
    assert is_table(pa.table({"a": [1]}))
    assert is_table(CodedTable(np.zeros((1, 1)), ("a",), (None,)))


def test_numbers_booleans_and_nulls() -> None:
    table = pa.table(
        {
            "int": pa.array([1, None, 3], pa.int64()),
            "float": [0.1, math.nan, None],
            "bool": [True, None, False],
            "single": pa.array([0.1, 0.2, None], pa.float32()),
            "decimal": [Decimal("1.5"), None, Decimal(2)],
            "empty": pa.nulls(3),
            "no text": pa.array([None, None, None], pa.string()),
        }
    )
    expected = [
        [1, 0.1, 1, np.float32(0.1), 1.5, nan, nan],
        [nan, nan, nan, np.float32(0.2), nan, nan, nan],
        [3, nan, 0, nan, 2, nan, nan],
    ]
    matrix, categories = to_matrix(table)
    np.testing.assert_array_equal(matrix, expected)
    assert categories == (None,) * 6 + ((),)


def test_pandas_types() -> None:
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None], dtype="Int64"),
            "bool": [True, False],
            "int": np.array([1, 2], dtype=np.int8),
            "7": [0.5, np.nan],
        }
    )
    matrix, categories = to_matrix(frame)
    np.testing.assert_array_equal(matrix, [[1, 1, 1, 0.5], [nan, 0, 2, nan]])
    assert categories == (None,) * 4


TEXT = ["b", None, "a", "b"]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"t": TEXT}),
        pa.table({"t": pa.array(TEXT, pa.large_string())}),
        pa.table({"t": pa.array(TEXT).dictionary_encode()}),
        pa.table({"t": pa.array(["c", *TEXT]).dictionary_encode()[1:]}),  # c is in no row
        pa.concat_tables([pa.table({"t": pa.array(part).dictionary_encode()}) for part in ("b", [None, "a"], "b")]),
        pa.table({"t": pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1]), ["a", "b"]).take([0, 2, 1, 3])}),
        pa.table({"t": pa.DictionaryArray.from_arrays(pa.array([1, 2, 0, 1], pa.uint8()), pa.array(["a", "b", None]))}),
        pd.DataFrame({"t": TEXT}),
        pd.DataFrame({"t": pd.array(TEXT, dtype="string")}),
        pd.DataFrame({"t": pd.Categorical(TEXT, categories=["z", "b", "a"])}),
        CodedTable(np.array([[1.0], [nan], [0.0], [1.0]]), ("t",), (("a", "b"),)),
    ],
)  # fmt: skip
def test_categories_of_every_kind_of_column(table: Any) -> None:
    matrix, categories = to_matrix(table)
    assert categories == (("a", "b"),)
    np.testing.assert_array_equal(matrix, [[1], [nan], [0], [1]])
    known, given = to_matrix(table, (("b", "c"),))  # a was not there at fit
    assert given == (("b", "c"),)
    np.testing.assert_array_equal(known, [[0], [nan], [nan], [0]])


def test_a_polars_table() -> None:
    polars = pytest.importorskip("polars")
    matrix, categories = to_matrix(polars.DataFrame({"t": TEXT, "n": [1, 2, None, 4]}))
    assert categories == (("a", "b"), None)
    np.testing.assert_array_equal(matrix, [[1, 1], [nan, 2], [0, nan], [1, 4]])


def test_categories_are_text_whatever_their_type() -> None:
    frame = pd.DataFrame(
        {"c": pd.Categorical([10, 9, None, 10]), "d": pd.Categorical([0.5, 1, 1, 1])}
    )
    matrix, categories = to_matrix(frame)
    assert categories == (("10", "9"), ("0.5", "1.0"))  # sorted as text
    np.testing.assert_array_equal(matrix, [[0, 0], [1, 1], [nan, 1], [0, 1]])


def test_a_column_without_values_fits_a_numeric_and_a_categorical_one() -> None:
    learnt = (("a",), None)
    for nulls in (
        pa.table({"t": pa.nulls(2), "n": pa.nulls(2)}),
        pa.table({"t": pa.nulls(2, pa.float64()), "n": pa.nulls(2, pa.string())}),
        pd.DataFrame({"t": [None, None], "n": [None, None]}),
        pd.DataFrame({"t": [nan, nan], "n": pd.Categorical([None, None])}),
        CodedTable(np.full((2, 2), nan), ("t", "n"), (None, ())),
    ):
        matrix, _ = to_matrix(nulls, learnt)
        assert np.isnan(matrix).all()
    assert to_matrix(pd.DataFrame({"t": [None, None]}))[1] == (None,)
    assert to_matrix(pa.table({"t": pa.nulls(2, pa.string())}))[1] == ((),)


def test_a_column_of_another_kind_than_at_fit_is_refused(sentences: Sentences) -> None:
    text, number = pa.table({"a column": ["1", "2"]}), pa.table({"a column": [1, 2]})
    with sentences.raises(InvalidData):
        to_matrix(text, (None,))
    with sentences.raises(InvalidData):
        to_matrix(number, (("1", "2"),))
    coded = CodedTable(np.array([[0.0]]), ("a column",), (("1",),))
    with sentences.raises(InvalidData):
        to_matrix(coded, (None,))
    with sentences.raises(InvalidData):
        to_matrix(CodedTable(np.array([[0.5]]), ("a column",), (None,)), (("1", "2"),))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([date(2020, 1, 1), None], "Date"),
        ([[1], [2]], "List"),
        ([b"x", b"y"], "Binary"),
    ],
)
def test_other_columns_are_refused_by_name(column: Any, kind: str, sentences: Sentences) -> None:
    table = pa.table({"good": [1, 2], "bad one": column, "worse": [[1], [2]]})
    with sentences.raises(InvalidData):
        to_matrix(table)


def test_text_that_is_none_is_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        to_matrix(pd.DataFrame({"c": pd.Categorical([1, "a"])}))
    with sentences.raises(InvalidData):
        to_matrix(pd.DataFrame({"s": pd.Series(["\ud800", "a"], dtype=object)}))


def test_too_many_categories_are_refused(sentences: Sentences) -> None:
    names = [f"{k:06}" for k in range(MAX_CATEGORIES + 1)]
    with sentences.raises(InvalidData):
        to_matrix(pa.table({"id": names}))
    assert len(to_matrix(pa.table({"id": names[1:]}))[1][0]) == MAX_CATEGORIES
    long = pa.table({"text": ["x" * MAX_CATEGORY_TEXT]})
    with sentences.raises(InvalidData):
        to_matrix(long)


def test_absent_categories_are_forgotten() -> None:
    matrix = np.array([[0.0, 7.0], [2.0, 8.0], [nan, 9.0], [3.0, 1.0]])
    categories = (("a", "b", "c", "d"), None)
    kept, names = keep_present(matrix, categories)
    assert names == (("a", "c", "d"), None)
    np.testing.assert_array_equal(kept, [[0, 7], [1, 8], [nan, 9], [2, 1]])
    kept, names = keep_present(matrix, categories, np.array([1, 2]))
    assert names == (("c",), None)
    np.testing.assert_array_equal(kept, [[nan, 7], [0, 8], [nan, 9], [nan, 1]])
    assert matrix[1, 0] == 2.0
    same, _ = keep_present(kept, names)
    assert same is kept


@pytest.mark.parametrize(
    ("matrix", "names", "categories"),
    [
        (np.zeros(2), ("a",), (None,)),
        (np.zeros((1, 1), dtype=int), ("a",), (None,)),
        (np.zeros((1, 2)), ("a",), (None, None)),
        (np.zeros((1, 2)), ("a", "a"), (None, None)),
        (np.zeros((1, 1)), (1,), (None,)),
        (np.zeros((1, 1)), ("a",), (("y", "x"),)),
        (np.zeros((1, 1)), ("a",), (("x", "x"),)),
        (np.zeros((1, 1)), ("a",), ((1, 2),)),
        (np.zeros((1, 1)), ("a",), ("xy",)),
        (np.zeros((1, 1)), ("a",), (("\ud800",),)),
        (np.full((1, 1), 2.0), ("a",), (("x", "y"),)),
        (np.full((1, 1), -1.0), ("a",), (("x", "y"),)),
        (np.full((1, 1), 0.5), ("a",), (("x", "y"),)),
        (np.full((1, 1), np.inf), ("a",), (("x", "y"),)),
    ],
)
def test_coded_tables_that_do_not_fit_are_refused(
    matrix: np.ndarray, names: Any, categories: Any, sentences: Sentences
) -> None:
    with sentences.raises(InvalidData):
        CodedTable(matrix, names, categories)


@pytest.mark.parametrize(
    "table",
    [
        pa.table([[1], [2]], names=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
    ],
)
def test_repeated_names_are_refused(table: Any) -> None:
    with raises(InvalidData, "'a'"):
        to_matrix(table)


def test_objects_are_refused() -> None:
    with raises(InvalidData, "'a'", "Object"):
        to_matrix(pd.DataFrame({"a": [1, "x"]}, dtype=object))


def test_names_of_mixed_types_are_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        to_matrix(pd.DataFrame([[1, 2]], columns=["a", 7]))
    assert to_matrix(pd.DataFrame([[1, 2]]))[0].tolist() == [[1, 2]]
