"""Dates and times, in text and in types, become seconds since 1970; scoring reads them as the table did."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest import csv as delimited
from app.ingest.errors import BadTable
from app.ingest.value_columns import read_dates
from app.ingest.values import USUAL, spell_date
from app.platform.documents import ModelFeature
from app.platform.errors import Invalid
from app.scoring.features import FeatureIndex
from tests.app.uploads import Ready

Read = Callable[..., Ready]
Refuse = Callable[..., BadTable]

NOON = 1769860800.0  # 2026-01-31T12:00:00Z
DAY = 86_400.0
zones = st.one_of(
    st.none(),
    st.integers(-1439, 1439).map(lambda m: datetime.timezone(datetime.timedelta(minutes=m))),
)
times = st.datetimes(timezones=zones)


@given(st.lists(st.one_of(times.map(lambda t: t.isoformat()), st.text(max_size=5)), max_size=8))
def test_many_are_read_as_one_by_one(texts: list[str]) -> None:
    seconds, bad = read_dates(pa.array(texts, pa.string()))
    for text, found, wrong in zip(texts, seconds, bad, strict=True):
        try:
            assert found == USUAL.read_date(text)
            assert not wrong
        except ValueError:
            assert np.isnan(found)
            assert wrong


@given(times)
def test_seconds_are_those_of_python(at: datetime.datetime) -> None:
    expected = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
    assert USUAL.read_date(at.isoformat()) == pytest.approx(expected.timestamp(), abs=1e-6)


@given(times)
def test_what_is_written_is_read_back(at: datetime.datetime) -> None:
    seconds = USUAL.read_date(at.isoformat())
    assert USUAL.read_date(spell_date(seconds)) == seconds


def test_how_dates_are_written() -> None:
    written = {
        NOON: "2026-01-31T12:00:00Z",
        NOON + DAY / 2: "2026-02-01",
        NOON + 0.25: "2026-01-31T12:00:00.250000Z",
        -62135596800.0: "0001-01-01",
        1e18: "1e+18",
        -1e300: "-1e+300",
    }
    assert {seconds: spell_date(seconds) for seconds in written} == written


def test_dates_late_in_a_long_table(ready: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 14)
    rows = 20_000
    body = "when,y\n" + "".join(f"2026-01-{i % 28 + 1:02},{i % 2}\n" for i in range(rows))
    table = ready(body + "2026-01-31T12:00:00,1\n")
    assert table.columns["when"][-1] == NOON
    assert table.column("when")["type"] == "datetime"


FEATURES: list[ModelFeature] = [
    {"name": "when", "type": "datetime", "missing": True},
    {"name": "x", "type": "numeric", "missing": False},
]


@pytest.fixture
def index() -> FeatureIndex:
    return FeatureIndex(FEATURES)


def test_many_rows_of_dates_are_read_as_one_is(index: FeatureIndex) -> None:
    texts = [f" 2026-01-31T{i % 24:02}:00:{i % 60:02}.{i}Z" for i in range(400)] + ["2026-02-01"]
    rows: list[dict[str, object]] = [{"when": text, "x": 1} for text in texts]
    alone = [index.matrix_of_rows([row])[0, 0] for row in rows]
    assert index.matrix_of_rows(rows)[:, 0].tolist() == alone
    for bad in ("2026-02-30", 7):
        rows[300]["when"] = bad
        with pytest.raises(Invalid) as caught:
            index.matrix_of_rows(rows)
        assert [error["pointer"] for error in caught.value.errors] == ["/rows/300/when"]


@pytest.mark.parametrize(
    ("written", "type_", "parameter"),
    [
        ("%Y%m%d", "numeric", "numeric"),
        ("%d%b%Y", "categorical", "categorical"),
        ("%d-%b-%Y", "categorical", "categorical"),
        ("%b %-d, %Y", "categorical", "categorical"),
        ("%Y/%m/%d", "categorical", "categorical"),
        ("%Y/%m/%d %H:%M", "categorical", "categorical"),
    ],
)
def test_dates_that_are_not_read_are_named(
    ready: Read, written: str, type_: str, parameter: str
) -> None:
    """Unless they are declared to be what they are read as, or a few are none."""
    day = datetime.datetime(2024, 1, 28)
    texts = [(day + datetime.timedelta(i % 9)).strftime(written) for i in range(90)]

    def warned(values: list[str], **fields: list[str]) -> list[tuple[str, str, int, str]]:
        rows = [f'"{value}",{i % 2}' for i, value in enumerate(values)]
        table = ready("\n".join(["at,left", *rows, ""]), **fields)
        assert table.column("at")["type"] == type_
        return [
            (each["code"], each["column"], each["count"], each["parameter"])
            for each in table.result["warnings"]
        ]

    assert warned(texts) == [("dates_not_read", "at", 90, parameter)]
    assert warned(texts, **{type_: ["at"]}) == []
    others = ["20241399" if type_ == "numeric" else "never"] * 30
    assert warned([*texts, *others]) == []
