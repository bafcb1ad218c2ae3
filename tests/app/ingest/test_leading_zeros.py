"""Whole numbers with leading zeros: codes such as postcodes stay text, and what is lost of numbers is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.ingest import csv
from tests.app.uploads import Ready, read
from tests.long_form import one_in
from tests.sentences import Sentences

POSTCODES = [("04109", "10115", "80331", "01067")[n % 4] for n in range(200)]


def as_csv(codes: list[str], quote: str = "") -> str:
    rows = "".join(f"{n / 7:.3f},{quote}{code}{quote},{n % 2}\n" for n, code in enumerate(codes))
    return "x,code,y\n" + rows


def warned(ready: Ready) -> list[dict[str, Any]]:
    return [each for each in ready.result["warnings"] if each["code"] == "leading_zeros"]


def test_a_postcode_stays_text(tmp_path: Path, sentences: Sentences) -> None:
    ready = read(tmp_path, as_csv(POSTCODES))
    assert ready.column("code")["type"] == "categorical"
    assert ready.columns["code"] == POSTCODES
    (warning,) = warned(ready)
    assert (warning["column"], warning["count"], warning["parameter"]) == ("code", 100, "numeric")
    sentences(warning)
    assert warning["suggestion"] == {"numeric": "code"}
    as_numbers = read(tmp_path, as_csv(POSTCODES), numeric=["code"])
    assert as_numbers.columns["code"] == list(map(float, POSTCODES))
    assert warned(as_numbers) == []
    declared = read(tmp_path, as_csv(POSTCODES), categorical=["code"])
    assert declared.columns["code"] == POSTCODES
    assert warned(declared) == []


@pytest.mark.parametrize(
    ("codes", "rows"),
    [
        ([*POSTCODES, "7"], 100),  # not all have five digits
        ([*POSTCODES, "12.5"], 100),  # not all are whole
        ([*POSTCODES, "-1234"], 100),
        ([f"{n % 12 + 1:02}" for n in range(240)], 180),  # months
        (["0", "10", "007"], 1),
    ],
)
def test_of_other_numbers_it_is_said(
    tmp_path: Path, codes: list[str], rows: int, sentences: Sentences
) -> None:
    ready = read(tmp_path, as_csv(codes), drop=["x"] if len(codes) < 9 else None)
    assert ready.column("code")["type"] == "numeric"
    assert ready.columns["code"] == list(map(float, codes))
    (warning,) = warned(ready)
    assert (warning["column"], warning["count"], warning["parameter"]) == (
        "code",
        rows,
        "categorical",
    )
    sentences(warning)
    assert warning["suggestion"] == {"categorical": "code"}
    again = read(tmp_path, as_csv(codes), categorical=["code"])
    assert (again.columns["code"], warned(again)) == (codes, [])


@pytest.mark.parametrize("codes", [["10115", "80331"] * 9, ["0", "10", "7"] * 9, ["0.5", "1"] * 9])
def test_numbers_without_leading_zeros_are_numbers(tmp_path: Path, codes: list[str]) -> None:
    ready = read(tmp_path, as_csv(codes))
    assert (ready.column("code")["type"], warned(ready)) == ("numeric", [])


def test_two_columns_are_mended_at_once(tmp_path: Path) -> None:
    body = "a,b,c,y\n" + "".join(f"0{n},00{n % 7},w{n % 3},{n % 2}\n" for n in range(50))
    ready = read(tmp_path, body, categorical=["c"])
    suggested = {each["column"]: each["suggestion"] for each in warned(ready)}
    assert suggested == {"a": {"categorical": "c,a"}, "b": {"numeric": "b"}}


@pytest.mark.parametrize(
    ("block", "quote", "end"),
    one_in(
        5,
        [64, 1000, csv.BLOCK_BYTES],
        ["", '"'],
        [([], "numeric"), (["04109"], "categorical"), (["04109", "7"], "numeric")],
    ),
)
def test_it_does_not_matter_where_they_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    block: int,
    quote: str,
    end: tuple[list[str], str],
) -> None:
    monkeypatch.setattr(csv, "BLOCK_BYTES", block)
    monkeypatch.setattr(csv, "COLUMN_BYTES", 1)
    late, kind = end
    codes = [*("10115", "80331") * 50, *late]
    ready = read(tmp_path, as_csv(codes, quote))
    assert ready.column("code")["type"] == kind
    assert ready.columns["code"] == (codes if kind == "categorical" else list(map(float, codes)))
    assert [each["count"] for each in warned(ready)] == [1] * bool(late)


@pytest.mark.parametrize("text", ["01.02.2024", "08:30", "00", "0", "00,5", "x05", "1,05", "005"])
def test_dates_and_words_are_as_before(tmp_path: Path, text: str) -> None:
    body = f"x;text;y\n1;{text};0\n" + "".join(f"{n};{text};{n % 2}\n" for n in range(40))
    ready = read(tmp_path, body, dialect={"decimal": "comma"})
    padded = text in ("00", "005")
    assert len(warned(ready)) == padded


def test_strings_of_json_are_read_alike(tmp_path: Path) -> None:
    body = "".join(
        json.dumps({"x": n, "code": code, "y": n % 2}) + "\n" for n, code in enumerate(POSTCODES)
    )
    ready = read(tmp_path, body, "application/x-ndjson")
    assert ready.columns["code"] == POSTCODES
    assert len(warned(ready)) == 1
