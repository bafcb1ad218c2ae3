"""Types and values beside those of pandas: the same where the rules agree, and every place where they do not."""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ingest.errors import BadTable
from app.ingest.value_columns import as_doubles, read_dates
from tests.app.uploads import Ready
from tests.sentences import Sentences

Read = Callable[..., Ready]

TOKENS = ["", "NA", "N/A", "#N/A", "<NA>", "null", r"\N", "NaN", "?"]
"""Ours, of which pandas is told; it compares them exactly."""


def by_pandas(cells: list[str]) -> pd.Series:
    """Read one column as pandas does when it is told what is missing."""
    body = "a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells))
    frame = pd.read_csv(io.StringIO(body), na_values=TOKENS, keep_default_na=False)
    return frame["a"]


def by_us(ready: Read, cells: list[str]) -> tuple[str, list[object]]:
    """Read the same column here; returns its type and its values."""
    body = "a,y\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells))
    table = ready(body)
    return table.column("a")["type"], table.columns["a"]


SAME = {
    "integers": ["1", "-7", "+3", "0"],
    "zeros before": ["007", "08", "000"],
    "decimals": ["1.5", ".5", "2.", "-0.0"],
    "exponents": ["1e3", "1E-3", "1.5e+7", "5e-324"],
    "the last bit": ["0.1", "0.30000000000000004", "8.41", "2.2250738585072014e-308", "1.7976931348623157e308"],
    "missing": ["1", "NA", "", "?", "2.5"],
    "spaces": [" 1", "2 ", " 3 "],
    "quotes": ['"1"', '"2.5"'],
    "an int, then 1.5": ["1", "2", "3", "1.5"],
    "integers beyond doubles, as doubles": ["9007199254740993", "0.5"],
    "booleans": ["true", "false", "True", "FALSE", "tRuE"],
    "words": ["u", "w", "u"],
    "words and numbers": ["u", "1", "2"],
    "quoted words": ['"a,b"', '"say ""x"""', '"x\nz"'],
    "units": ["5kg", "6kg"],
    "hexadecimal": ["0x10", "0x11"],
    "underscores": ["1_000", "2_000"],
    "percent": ["5%", "6%"],
    "dates without a century": ["31.01.26", "01.02.26"],
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_the_same(ready: Read, name: str) -> None:
    column = by_pandas(SAME[name])
    kind, values = by_us(ready, SAME[name])
    if pd.api.types.is_bool_dtype(column):
        assert kind == "boolean"
        assert values == column.astype(float).tolist()
    elif pd.api.types.is_numeric_dtype(column):
        assert kind == "numeric"
        theirs = [None if np.isnan(value) else value for value in column.astype(float)]
        assert list(map(repr, values)) == list(map(repr, theirs))
    else:
        assert kind == "categorical"
        assert values == column.tolist()


class Told(str):
    """Return the words of a refusal."""

    __slots__ = ()


# Cells, what pandas makes of the first of them, what comes of them here, and why.
DIFFERENT: dict[str, tuple[list[str], object, object, str]] = {
    "large integers": (
        ["9007199254740993", "1"], 9007199254740993, 2.0**53,
        "rankers compute in doubles, and say so",
    ),
    "tokens in another case": (["na", "1"], "na", None, "people write them in any case"),
    "spaced tokens": ([" NA ", "1"], " NA ", None, "spaces around are dropped everywhere"),
    "spaced words": ([" u", "u"], " u", "u", "' u' and 'u' are one category"),
    "booleans and missing ones": (["true", "", "false"], True, 1.0, "a column of objects is no type"),
    "ISO dates": (["1970-01-02", "1970-01-03"], "1970-01-02", 86400.0, "dates rank, their texts do not"),
    "dates with dots": (["02.01.1970", "03.01.1970"], "02.01.1970", 86400.0, "dates rank, their texts do not"),
    "inf": (["inf", "1"], np.inf, Told("'inf' is not a finite number"), "no ranker can learn from it"),
    "1e400": (["1e400", "1"], np.inf, Told("outside the range of a float64"), "a slip, or another number"),
    "text late among numbers": (
        [*map(str, range(20)), "x"], "0", 0.0,
        "one slip would make categories of numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_not_the_same(ready: Read, name: str) -> None:
    cells, theirs, ours, reason = DIFFERENT[name]
    assert reason
    assert by_pandas(cells).iloc[0] == theirs
    if not isinstance(ours, Told):
        assert by_us(ready, cells)[1][0] == ours
        return
    with pytest.raises(BadTable, match=ours):
        by_us(ready, cells)


@pytest.mark.parametrize(
    "body",
    [
        "a,a,y\n1,2,0\n3,4,1\n",  # pandas calls the second a.1
        "a,b,y\n1,2,0\n3,4\n5,6,1\n",  # pads with missing values
        "a,y\n1,5,0\n2,5,1\n",  # takes the first for an index
    ],
)
def test_what_pandas_mends(ready: Read, body: str, sentences: Sentences) -> None:
    """A table that says two things at once is refused, not read in one way or the other."""
    assert len(pd.read_csv(io.StringIO(body))) >= 2
    with sentences.raises(BadTable):
        ready(body)


@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=3), min_size=1, max_size=8)
)
@settings(max_examples=60)
def test_decimals_are_the_nearest_doubles(values: list[Decimal]) -> None:
    with decimal.localcontext(prec=76):
        kept = [value for value in values if abs(value) < 10**30]
    for kind in (pa.decimal128(38, 3), pa.decimal256(76, 3)):
        doubles = as_doubles(pa.array(kept, kind))
        assert doubles.to_pylist() == list(map(float, kept))
    small = [value for value in kept if abs(value) < 10**11]
    assert as_doubles(pa.array(small, pa.decimal128(15, 3))).to_pylist() == list(map(float, small))


@given(
    st.lists(
        st.datetimes(
            datetime.datetime(1, 1, 2),
            datetime.datetime(9999, 12, 30),
            timezones=st.none() | st.timezones(),
        ),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=60)
def test_dates_are_those_of_pandas(times: list[datetime.datetime]) -> None:
    texts = [
        at.isoformat() for at in times if not (at.utcoffset() or datetime.timedelta()).seconds % 60
    ]
    ours, wrong = read_dates(pa.array(texts, pa.string()))
    theirs = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601", utc=True)
    ticks = theirs.astype("datetime64[us, UTC]").astype("int64").to_numpy()
    assert not wrong.any()
    np.testing.assert_array_equal(ours, ticks // 10**6 + ticks % 10**6 / 1e6)
