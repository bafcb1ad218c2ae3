"""Tables of several kinds become one matrix, or are refused by the names of their columns."""

import math
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from core.errors import InvalidData
from core.table import is_table, to_matrix


def test_arrays_are_no_tables():
    assert not is_table(np.zeros((2, 2)))
    assert not is_table([[1, 2]])
    assert not is_table(pd.Series([1]))
    assert is_table(pd.DataFrame({"a": [1]}))
    assert is_table(pa.table({"a": [1]}))


def test_numbers_booleans_and_nulls():
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
    nan = math.nan
    expected = [
        [1, 0.1, 1, np.float32(0.1), 1.5, nan, nan],
        [nan, nan, nan, np.float32(0.2), nan, nan, nan],
        [3, nan, 0, nan, 2, nan, nan],
    ]
    np.testing.assert_array_equal(to_matrix(table), expected)


def test_pandas_types():
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None], dtype="Int64"),
            "bool": [True, False],
            "int": np.array([1, 2], dtype=np.int8),
            "7": [0.5, np.nan],
        }
    )
    np.testing.assert_array_equal(to_matrix(frame), [[1, 1, 1, 0.5], [np.nan, 0, 2, np.nan]])


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1", "2"], "String"),
        ([date(2020, 1, 1), None], "Date"),
        (pa.array(["u", "v"]).dictionary_encode(), "Categorical"),
        ([[1], [2]], "List"),
    ],
)
def test_other_columns_are_refused_by_name(column, kind):
    table = pa.table({"good": [1, 2], "bad one": column, "worse": ["x", "y"]})
    with pytest.raises(
        InvalidData, match=rf"numeric, got 'bad one' \({kind}.*\), 'worse' \(String\)"
    ):
        to_matrix(table)


@pytest.mark.parametrize(
    "table",
    [
        pa.table([[1], [2]], names=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
    ],
)
def test_repeated_names_are_refused(table):
    with pytest.raises(InvalidData, match="'a'"):
        to_matrix(table)


def test_objects_are_refused():
    with pytest.raises(InvalidData, match=r"'a' \(Object\)"):
        to_matrix(pd.DataFrame({"a": [1, "x"]}, dtype=object))


def test_names_of_mixed_types_are_refused():
    with pytest.raises(InvalidData, match=r"all text or none, got \['a', 7\]"):
        to_matrix(pd.DataFrame([[1, 2]], columns=["a", 7]))
    assert to_matrix(pd.DataFrame([[1, 2]])).tolist() == [[1, 2]]
