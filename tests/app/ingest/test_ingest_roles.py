"""Label, positive value, weight and group: what is suggested, counted and profiled; each by itself is in corpus/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.ingest import csv
from app.ingest.errors import BadTable
from tests.app.uploads import read
from tests.sentences import Sentences


def refuse(folder: Path, body: str | bytes, **roles: Any) -> BadTable:
    """Read a table that must be refused."""
    with pytest.raises(BadTable) as caught:
        read(folder, body, **roles)
    return caught.value


def test_weight_and_group_are_never_the_label(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b,label,y\n1,0,1,g\n2,1,2,h\n", weight="label", group="y")
    assert table.result["label"] == "b"
    assert [column["role"] for column in table.result["columns"]] == [
        "feature",
        "label",
        "weight",
        "group",
    ]


def test_one_class_only(tmp_path: Path, sentences: Sentences) -> None:
    error = refuse(tmp_path, "a,y\n1,yes\n2,yes\n")
    assert error.code == "one_class"
    sentences(error.errors[0].pop("detail"))
    assert error.errors == [{"column": "y"}]


def test_a_running_number_at_the_end_is_no_label(tmp_path: Path) -> None:
    def label_of(head: str, *columns: Sequence[object], **roles: Any) -> str:
        lines = [",".join(map(str, row)) for row in zip(*columns, strict=True)]
        found: str = read(tmp_path, "\n".join([head, *lines, ""]), **roles).result["label"]
        return found

    rows = range(7, 47, 2)
    odd, bad = [n % 4 for n in rows], ["yes" if n % 3 else "no" for n in rows]
    assert label_of("a,odd,bad,no", rows, odd, bad, rows) == "bad"
    assert label_of("a,bad,odd,no", rows, bad, odd, rows, label="bad") == "bad"
    assert label_of("label,bad,no", odd, bad, rows) == "label"
    assert label_of("a,bad,odd,g", rows, bad, odd, rows, group="g") == "odd"
    with pytest.raises(BadTable):  # nothing else has two values
        label_of("a,no", rows, rows)


def test_what_a_refused_label_may_mean(tmp_path: Path, sentences: Sentences) -> None:
    """One that is misspelt is told; others by what has two values, the likeliest first."""
    body = "Outcome,a,target,b\n" + "".join(f"{i % 2},{i},{i % 3},{i // 3}\n" for i in range(9))
    error = refuse(tmp_path, body, label="outcom")
    assert error.errors[0]["suggestion"] == {"label": "Outcome"}
    sentences(error)
    error = refuse(tmp_path, body)  # which takes target
    assert error.errors[0]["suggestion"] == {"positive": "0"}
    wide = "a,b,c\n" + "".join(f"{i % 2},{i % 2},{30 - i}\n" for i in range(30))
    error = refuse(tmp_path, wide)
    assert error.errors[0]["suggestion"] == {"label": "b"}
    sentences(error)


def test_one_value_against_all_others(tmp_path: Path) -> None:
    body = "a,y\n1,low\n2,mid\n3,low\n4,high\n5,mid\n"
    table = read(tmp_path, body, positive="high")
    assert table.columns["y"] == [0, 0, 0, 1, 0]
    assert (table.result["positive"], table.result["negative"]) == ("high", "not high")
    assert (table.result["positives"], table.result["negatives"]) == (1, 4)
    (warning,) = table.result["warnings"]
    assert warning["code"] == "label_of_many_values"
    assert warning["count"] == 2
    both = read(tmp_path, "a,y\n1,2\n2,1.0\n3,2\n", positive="1")  # numbers are compared as such
    assert (both.result["positive"], both.result["negative"]) == ("1", "2")
    assert both.result["warnings"] == []
    error = refuse(tmp_path, body, positive="none")
    assert error.code == "unknown_positive"
    assert "third value" in refuse(tmp_path, body, positive="low", strict=True).detail


def test_several_values_are_positive(tmp_path: Path, sentences: Sentences) -> None:
    body = "a,y\n1,low\n2,mid\n3,\n4,high\n5,mid\n6,none\n"
    table = read(tmp_path, body, positive="high, mid")
    assert table.columns["y"] == [0, 1, 1, 1, 0]
    assert (table.result["positive"], table.result["negative"]) == ("high,mid", "not high,mid")
    assert (table.result["positives"], table.result["negatives"]) == (3, 2)
    assert table.column("y")["values"] == [
        {"value": "mid", "count": 2, "positive": True},
        {"value": "high", "count": 1, "positive": True},
        {"value": "low", "count": 1, "positive": False},
        {"value": "none", "count": 1, "positive": False},
    ]
    assert [each["count"] for each in table.result["warnings"]] == [1, 2]  # no label; negatives
    # One value is left: it is the negative one. Strict callers may have no other.
    for strict in (False, True):
        rest = read(tmp_path, "a,y\n1,x\n2,y\n3,z\n4,y\n", positive="z,x", strict=strict)
        assert (rest.columns["y"], rest.result["negative"]) == ([1, 0, 1, 0], "y")
        assert rest.result["warnings"] == []
    error = refuse(tmp_path, "a,y\n1,x\n2,y\n3,z\n4,w\n", positive="z,x", strict=True)
    sentences(error)
    # The class has one name, in whatever order its values are listed.
    grades = "a,y\n1,2\n2,10\n3,3\n4,1\n5,0\n"
    for positive in ("2,3,10", "10, 3,2", "3.0, 2,10,2"):
        assert read(tmp_path, grades, positive=positive).result["positive"] == "2,3,10"
    # A value is compared as text, else as a number; one with a comma stands in quotes, or is meant as it is.
    numbers = read(tmp_path, "a,y\n1,1.0\n2,2\n3,3\n", positive="1,3")
    assert numbers.columns["y"] == [1, 0, 1]
    commas = 'a,y\n1,"p,q"\n2,p\n3,r\n4,q\n'
    assert read(tmp_path, commas, positive='"p,q",r').columns["y"] == [1, 0, 1, 0]
    assert read(tmp_path, commas, positive="p,q").columns["y"] == [1, 0, 0, 0]
    for positive, code, words in (
        ("high,odd", "unknown_positive", "values 'low', 'mid', 'high', 'none', or several of them"),
        ("low,mid,high,none", "one_class", "positive must not include every value of the label"),
        (",", "unknown_positive", "got ','"),
    ):
        error = refuse(tmp_path, body, positive=positive)
        assert (error.code, words in error.detail) == (code, True), error.detail


def test_whether_the_positive_value_was_guessed(tmp_path: Path) -> None:
    for values, guessed in (
        ("0 1", False), ("no yes", False), ("-1 1", False), ("false true", False),
        ("ja nein", True), ("1 2", True), ("0 2", True), ("yes true", True),
    ):  # fmt: skip
        one, other = values.split()
        table = read(tmp_path, f"a,y\n1,{one}\n2,{other}\n")
        assert table.column("y")["guessed"] is guessed, values
        table = read(tmp_path, f"a,y\n1,{one}\n2,{other}\n", positive=one)
        assert table.column("y")["guessed"] is False


def test_values_of_a_label_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{n},w{n % 150:03d}\n" for n in range(200)) + f"1,{'x' * 300}\n"
    table = read(tmp_path, "a,y\n" + rows, positive="w149")
    values = table.column("y")["values"]
    assert len(values) == 100
    assert {"value": "w149", "count": 1, "positive": True} in values
    assert [each["count"] for each in values] == [2] * 50 + [1] * 50
    (fault,) = [e for e in refuse(tmp_path, "a,y\n" + rows).errors if "values" in e]
    assert fault["values"][0] == {"value": "w000", "count": 2, "positive": False}
    assert "x" * 300 not in str(fault["values"])


def test_label_with_three_values(tmp_path: Path, sentences: Sentences) -> None:
    error = refuse(tmp_path, "a,y\n1,no\n2,yes\n3,no\n4,maybe\n5,maybe\n")
    first, second = error.errors
    sentences(first)
    sentences(second.pop("detail"))
    assert (first["line"], first["suggestion"]) == (5, {"positive": "yes"})
    assert second == {"line": 6, "column": "y"}


def test_what_is_suggested_is_no_slip_of_the_label(tmp_path: Path) -> None:
    """A total below the table, say, is in hardly any row."""
    body = "a,y\n" + "1,0\n2,1\n2,1\n" * 50 + "250,150\n"
    assert refuse(tmp_path, body).errors[0]["suggestion"] == {"positive": "1"}
    numbers = "a,y\n" + "".join(f"{n % 3},{n}.5\n" for n in range(200))
    assert "suggestion" not in refuse(tmp_path, numbers, label="y").errors[0]


@pytest.mark.parametrize(
    ("body", "suggestion"),
    [
        (b"a;y\n1,5;0\n2,5;1\n2,7;1\n", {"decimal": "comma"}),
        (b"a,y\ngr\xfcn,0\nrot,1\n", {"encoding": "windows-1252"}),
        (b"a,y\ngr\xfcn\x81,0\nrot,1\n", {"encoding": "latin-1"}),
        (b"a,y\n5 \x80,0\nrot,1\n", {"encoding": "windows-1252"}),
        (b"Betrag (\x80),y\n5,0\n6,1\n", {"encoding": "windows-1252"}),
        (b"gr\xf6\xdfe,y\n5,0\n6,1\n", {"encoding": "windows-1252"}),
        (b'a,y\n"1,000",0\n"2,500",1\n', None),  # a thousand, or one
        (
            b"a;y\n1.000,5;0\n" + b"2,5;1\n" * 20,
            {"decimal": "comma", "thousands": "point"},
        ),
        (
            b"a;y\n" + b"".join(b"%d.%d,5;%d\n" % (i, i + 300, i % 2) for i in range(1, 30)),
            {"decimal": "comma", "thousands": "point"},
        ),
    ],
)
def test_how_it_is_written_is_suggested(
    tmp_path: Path, body: bytes, suggestion: dict[str, str] | None
) -> None:
    error = refuse(tmp_path, body)
    assert error.errors[0].get("suggestion") == suggestion
    if suggestion is None:
        assert "thousands=comma" in error.detail
        assert "decimal=comma" in error.detail
    else:
        read(tmp_path, body, dialect=suggestion)


def test_words_among_german_numbers_are_not_about_separators(tmp_path: Path) -> None:
    dialect = {"decimal": "comma", "thousands": "point"}
    numbers = b"1.000,5;0\n2,5;1\n" * 20
    (warning,) = read(tmp_path, b"a;y\n" + numbers + b"k. A.;1\n", dialect=dialect).result[
        "warnings"
    ]
    assert "k. A." in warning["detail"]
    assert "thousands" not in warning["detail"]
    (warning,) = read(tmp_path, b"a;y\n" + numbers + b"1.00;1\n", dialect=dialect).result[
        "warnings"
    ]
    assert "thousands=point" in warning["detail"]


def test_missing_label(tmp_path: Path, sentences: Sentences) -> None:
    table = read(tmp_path, "a,y\n1,0\n2,\n3,1\n4,NA\n")
    assert table.columns == {"a": [1.0, 3.0], "y": [0, 1]}
    assert table.result["rows"] == 2
    sentences(table.result["warnings"][0].pop("detail"))
    assert table.result["warnings"] == [
        {
            "code": "rows_without_label",
            "column": "y",
            "count": 2,
            "parameter": "strict",
            "line": 3,
        }
    ]
    assert refuse(tmp_path, "a,y\n1,\n2,\n").code == "one_class"
    error = refuse(tmp_path, "a,y\n1,0\n2,\n3,1\n4,NA\n", strict=True)
    assert [(each["line"], each["column"]) for each in error.errors] == [(3, "y"), (5, "y")]
    sentences(error.errors[0])
    assert refuse(tmp_path, "a,y\n1,\n2,\n", strict=True).total == 2


def test_errors_of_all_kinds_come_together_in_the_order_of_lines(tmp_path: Path) -> None:
    error = refuse(
        tmp_path,
        "a,w,g,y\n1,1,g,0\ninf,1,g,1\n1,-1,g,1\n1,1,,1\n1,1\n1,1,g,2\n",
        weight="w",
        group="g",
        strict=True,
    )
    assert [(f["line"], f.get("column")) for f in error.errors] == [
        (3, "a"),
        (4, "w"),
        (5, "g"),
        (6, None),
        (7, "y"),
    ]
    assert error.total == 5


def test_label_sorted_by_class_over_several_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second value comes late, and makes the first one the positive one."""
    monkeypatch.setattr(csv, "BLOCK_BYTES", 1 << 14)
    rows = 20_000
    body = "a,y\n" + f"{12345678},yes\n" * rows + "1,no\n"
    table = read(tmp_path, body)
    assert (table.result["positives"], table.result["negatives"]) == (rows, 1)
    assert table.columns["y"][-2:] == [1, 0]


@pytest.mark.parametrize(
    ("values", "kind"),
    [(("0", "1"), "numeric"), (("true", "false"), "boolean"), (("a", "b"), "categorical")],
)
def test_profile_of_the_label(tmp_path: Path, values: tuple[str, str], kind: str) -> None:
    first, second = values
    table = read(tmp_path, f"a,y\n1,{first}\n2,{second}\n3,{second}\n")
    profile = table.column("y")
    assert profile["type"] == kind
    assert profile["top"] == [{"value": second, "count": 2}, {"value": first, "count": 1}]


def test_profile_of_a_feature(tmp_path: Path) -> None:
    table = read(tmp_path, "a,y\n3,0\n1,1\n,1\n3,0\n-2,1\n")
    assert table.column("a") == {
        "name": "a", "type": "numeric", "role": "feature", "missing": 1, "distinct": 3,
        "min": -2.0, "max": 3.0, "mean": 1.25,
        "top": [{"value": 3.0, "count": 2}, {"value": -2.0, "count": 1}, {"value": 1.0, "count": 1}],
    }  # fmt: skip


def test_profile_of_a_feature_with_many_values(tmp_path: Path) -> None:
    rows = 20_000
    profile = read(tmp_path, "a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(rows))).column("a")
    assert (profile["distinct"], profile["distinct_is_bound"]) == (10_000, True)
    assert "top" not in profile
    assert (profile["min"], profile["max"]) == (0.0, rows - 1.0)
    assert profile["mean"] == pytest.approx((rows - 1) / 2, rel=1e-12)


def test_mean_of_the_largest_doubles_is_finite(tmp_path: Path) -> None:
    body = "a,y\n" + "1.7e308,0\n1.7e308,1\n" * 3
    assert read(tmp_path, body).column("a")["mean"] == pytest.approx(1.7e308)
