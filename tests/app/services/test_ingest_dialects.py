"""CSV as the world writes it: encodings, delimiters and decimal marks, read off the file or said."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from uploads import Ready

from app.ingest import stream
from app.ingest.errors import BadTable

Read = Callable[..., Ready]
Refuse = Callable[..., BadTable]

TOWNS = "town,a,y\nKöln,1,nein\nMünchen,2.5,jä\nKöln,3,jä\nMünchen,4,nein\n"


@pytest.mark.parametrize(
    ("codec", "said"),
    [
        ("utf-8-sig", None),
        ("utf-8", "utf-8"),
        ("utf-16", None),  # by its byte order mark
        ("utf-16-le", None),  # by its zero bytes
        ("utf-16-be", None),
        ("utf-16", "utf-16"),
        ("latin-1", "latin-1"),
        ("cp1252", "windows-1252"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_encodings(
    ready: Read, codec: str, said: str | None, pack: Callable[[bytes], bytes]
) -> None:
    table = ready(pack(TOWNS.encode(codec)), dialect={"encoding": said})
    assert table.columns["town"] == ["Köln", "München", "Köln", "München"]
    assert table.columns["a"] == [1.0, 2.5, 3.0, 4.0]
    assert (table.result["negative"], table.result["positive"]) == ("jä", "nein")


def test_characters_that_lie_across_pieces(ready: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """UTF-16 read a few bytes at a time: pairs of surrogates come apart, and grow together again."""
    monkeypatch.setattr(stream, "_LEAST_RECODED", 1)
    monkeypatch.setattr(stream, "_PIECE", 3)
    table = ready("t,y\n😀,0\n🎉,1\n😀,1\n".encode("utf-16-le"), dialect={"encoding": "utf-16"})
    assert table.columns["t"] == ["😀", "🎉", "😀"]


def test_bytes_that_are_not_of_the_encoding_are_told_with_their_line(refused: Refuse) -> None:
    error = refused(b"a,y\n1,0\n\x81,1\n", dialect={"encoding": "windows-1252"})
    assert error.errors[0]["line"] == 3
    assert error.detail.startswith("byte 0x81 is not cp1252")
    half = refused("a,y\n1,0\n2,1\n".encode("utf-16-le")[:-1])
    assert half.errors[0]["line"] == 3
    assert "is not utf-16-le" in half.detail


def test_what_is_recoded_counts_against_the_limit(refused: Refuse) -> None:
    """Each byte of Latin-1 may become two."""
    body = ("a,y\n" + "é,0\nè,1\n" * 500).encode("latin-1")
    error = refused(body, dialect={"encoding": "latin-1"}, bytes=len(body) + 100)
    assert error.code == "too_large"


def test_decimal_commas(ready: Read) -> None:
    body = "a;b;y\n1,5;x;no\n-2,25e1;z;yes\nN.A.;x;yes\n 7 ;z;no\n"
    table = ready(body, dialect={"decimal": "comma"}, missing=["N.A."])
    assert table.columns["a"] == [1.5, -22.5, None, 7.0]
    assert table.columns["b"] == ["x", "z", "x", "z"]


def test_decimal_commas_late_in_a_long_table(ready: Read) -> None:
    rows = 400_000
    body = "a;y\n" + "".join(f"{i};{i % 2}\n" for i in range(rows)) + "1,5;1\n"
    assert ready(body, dialect={"decimal": "comma"}).columns["a"][-2:] == [rows - 1.0, 1.5]


def test_a_point_among_decimal_commas_is_a_fault(refused: Refuse) -> None:
    body = "a;y\n" + "1,5;0\n2,5;1\n" * 10 + "1.500;1\n"
    error = refused(body, dialect={"decimal": "comma"})
    assert error.errors == [
        {
            "line": 22,
            "column": "a",
            "detail": "'1.500' is not a number; write the decimal comma: '1,500'",
        }
    ]


def test_a_comma_among_decimal_points_says_what_to_say(refused: Refuse) -> None:
    error = refused("a;y\n" + "1.5;0\n2.5;1\n" * 10 + "1,5;1\n")
    assert error.errors[0]["detail"] == (
        "'1,5' is not a number; write the decimal point: '1.5', or say decimal=comma"
    )
