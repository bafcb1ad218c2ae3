"""Decimals and dates beside those of Python and pandas; each spelling by itself is in corpus/."""

from __future__ import annotations

import datetime
import decimal
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ingest.value_columns import as_doubles, read_dates
from tests.long_form import LONG_FORM


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
@settings(max_examples=60 if LONG_FORM else 15)
def test_dates_are_those_of_pandas(times: list[datetime.datetime]) -> None:
    texts = [
        at.isoformat() for at in times if not (at.utcoffset() or datetime.timedelta()).seconds % 60
    ]
    ours, wrong = read_dates(pa.array(texts, pa.string()))
    theirs = pd.to_datetime(pd.Series(texts, dtype=object), format="ISO8601", utc=True)
    ticks = theirs.astype("datetime64[us, UTC]").astype("int64").to_numpy()
    assert not wrong.any()
    np.testing.assert_array_equal(ours, ticks // 10**6 + ticks % 10**6 / 1e6)
