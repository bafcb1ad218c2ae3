"""Versions of a dataset: rows added as the table is read, and tables that take another's place."""

from __future__ import annotations

import hashlib
import io

import pyarrow as pa
import pyarrow.parquet as pq

from app.datasets import service as datasets
from app.platform.errors import Invalid
from tests.app.version_steps import (
    FIRST,
    GIVEN,
    HEAD,
    MORE,
    PARQUET,
    as_parquet,
    data,
    fault,
    made,
    make,
)
from tests.app.workbench import OWNER, Workbench, on_both
from tests.raising import raises
from tests.sentences import Sentences


@on_both
def test_rows_are_added_as_if_the_table_had_been_uploaded_whole(bench: Workbench) -> None:
    first = bench.ready(FIRST, **GIVEN)
    second = made(bench, first.id, MORE)
    whole = bench.ready(
        FIRST + "22,false,2026-02-01,Köln,12,,yes,c\n,true,?,Ulm,007,,no,b\n", **GIVEN
    )
    assert data(bench, second) == data(bench, whole)
    assert second.columns == whole.columns
    assert (second.rows, second.positives, second.negatives) == (5, 2, 3)
    profiles = [bench.db.reading(datasets.profile, OWNER, each.id)[1] for each in (second, whole)]
    assert profiles[0].columns == profiles[1].columns
    assert profiles[0].duplicates == profiles[1].duplicates

    assert (second.series_id, second.version, second.parent_id) == (first.id, 2, first.id)
    assert (first.series_id, first.version, first.parent_id) == (first.id, 1, None)
    assert [each.mode for each in (first, second)] == [None, "append"]
    upload = hashlib.sha256(MORE.encode()).hexdigest()
    assert second.upload_sha256 == upload
    assert second.sha256 == hashlib.sha256((first.sha256 + upload).encode()).hexdigest()
    for name in ("name", "label", "positive", "negative", "group", "reading"):
        assert getattr(second, name) == getattr(first, name), name
    assert data(bench, first) == data(bench, second)[:3]  # it is as it was


def test_every_format_adds_the_same_rows(bench: Workbench) -> None:
    parent = bench.ready("a,b,y\n1,u,p\n2,v,n\n", label="y")
    typed = as_parquet(y=["p", "n"], b=["w", None], a=pa.array([3, None], pa.int32()))
    arrow = io.BytesIO()
    table = pq.read_table(io.BytesIO(typed))
    with pa.ipc.new_stream(arrow, table.schema) as stream:
        stream.write_table(table)
    ways = {
        "text/csv": b"\xef\xbb\xbfy;b;a\np;w;3\nn;?;\n",
        "application/x-ndjson": b'{"y":"p","b":"w","a":3}\n{"y":"n","b":null}\n',
        PARQUET: typed,
        "application/vnd.apache.arrow.stream": arrow.getvalue(),
    }
    expected = [{"a": 3.0, "b": "w", "y": "p"}, {"a": None, "b": None, "y": "n"}]
    for number, (content_type, body) in enumerate(ways.items(), start=2):
        parent = made(bench, parent.id, body, content_type=content_type)
        assert (parent.version, data(bench, parent)[-2:]) == (number, expected), content_type
    assert parent.rows == 10


def test_rows_that_do_not_fit(bench: Workbench, sentences: Sentences) -> None:
    for body in (
        "age,left\n1,yes\n",
        f"{HEAD},extra\n1,true,,,,,yes,a,1\n",
        f"{HEAD}\n1,true,,,,,yes,a\nold,true,,,,,no,a\n",
        f"{HEAD}\n1,2,,,,,yes,a\n",
        f"{HEAD}\n1,,1/2/2026,,,,yes,a\n",
        f"{HEAD}\n1,,,,,,maybe,a\n",
        f"{HEAD}\n1,,,,,,yes,\n",
        f"{HEAD}\n",
        f"{HEAD}\n1,2\n",
    ):
        first = bench.ready(FIRST, **GIVEN)
        said = fault(bench, first.id, body)
        sentences(said)
        assert "categorical" not in said  # which could not be said here
        # An invalid version stands in nobody's way.
        assert made(bench, first.id, MORE).version == first.version + 2


def test_typed_columns_that_do_not_fit(bench: Workbench) -> None:
    first = bench.ready("a,d,y\n1,2026-01-01,p\n2,2026-01-02,n\n", label="y")
    dates = pa.array([0], pa.date32())
    for columns, detail in (
        ({"a": dates, "d": dates}, "'a': the column has the type date32[day], but is numeric"),
        ({"a": [1.0], "d": [1.0]}, "'d': the column has the type double, but is datetime in the"),
        ({"a": ["x"], "d": dates}, "row 1: 'x' is not a number"),
        ({"a": pa.array([[1]]), "d": dates}, "has the type list"),
    ):
        body = as_parquet(y=["p"], **columns)
        assert detail in fault(bench, first.id, body, content_type=PARQUET)
    second = made(bench, first.id, as_parquet(y=["p"], a=[None], d=dates), content_type=PARQUET)
    assert data(bench, second)[2] == {"a": None, "d": "1970-01-01", "y": "p"}


def test_limits_are_those_of_all_rows(bench: Workbench) -> None:
    first = bench.ready("t,y\na,p\nb,n\n", label="y")
    bench.settings = bench.settings.model_copy(update={"max_rows": 3})
    assert "at most 3 rows" in fault(bench, first.id, "t,y\na,p\nb,n\n")
    bench.settings = bench.settings.model_copy(update={"max_rows": 100, "max_categories": 2})
    second = made(bench, first.id, "t,y\na,n\nc,p\n")
    assert data(bench, second)[3:] == [{"t": None, "y": "p"}]
    assert [warning["code"] for warning in second.warnings] == ["words_pooled"]


def test_identifiers_stay_identifiers_and_features_features(bench: Workbench) -> None:
    rows = "".join(f"{n},name {n},t{n % 2},{'pn'[n % 2]}\n" for n in range(30))
    first = bench.ready(f"x,who,t,y\n{rows}", label="y")
    more = "".join(f"{n},name 0,new {n},p\n" for n in range(400))
    second = made(bench, first.id, f"x,who,t,y\n{more}")
    roles = {column["name"]: column["role"] for column in second.columns}
    assert roles == {"x": "feature", "who": "identifier", "t": "feature", "y": "label"}


def test_a_column_without_a_name_is_what_it_was(bench: Workbench) -> None:
    for said in ({}, {"numeric": "column 1"}):
        first = bench.ready(",x,y\n0,5,n\n1,6,p\n", label="y", **said)
        second = made(bench, first.id, ",x,y\n0,7,p\n")
        roles = {column["name"]: column["role"] for column in second.columns}
        kept = "feature" if said else "dropped"
        assert roles == {"column 1": kept, "x": "feature", "y": "label"}
        assert second.rows == 3
        assert made(bench, bench.ready("x,y\n5,n\n6,p\n", label="y").id, ",x,y\n0,7,p\n").rows == 3


def test_several_labels_and_weights(bench: Workbench, sentences: Sentences) -> None:
    given = {"kind": "multilabel", "labels": "hot,big", "weight": "w"}
    first = bench.ready("x,w,hot,big\n1,2,yes,0\n2,1,no,1\n", **given)
    sentences(fault(bench, first.id, "x,w,hot,big\n1,1,yes,2\n"))
    second = made(bench, first.id, "x,w,hot,big\n3,0,yes,1\n")
    assert second.labels is not None
    assert [entry["positives"] for entry in second.labels] == [2, 2]
    assert data(bench, second)[2] == {"x": 3.0, "hot": "yes", "big": "1", "w": 0.0}


@on_both
def test_items_keep_their_pairs_when_others_come(bench: Workbench, sentences: Sentences) -> None:
    items = bench.ready("item,x\na,1\nb,2\n", kind="preferences")
    bench.compare(items, "better,worse\nb,a\n")
    said = fault(bench, items.id, "item,x\nc,3\na,4\n")
    sentences(said)
    typed = as_parquet(item=["c", "a", "c"], x=[3.0, 4.0, 5.0])
    said = fault(bench, items.id, typed, content_type=PARQUET)
    sentences(said)
    more = made(bench, items.id, "item,x\nc,3\n")
    assert (more.pairs.status, more.pairs.pairs) == ("ready", 1)
    assert made(bench, more.id, "item,x\nq,1\nr,2\n", mode="replace").pairs is None


def test_a_table_in_place_of_another(bench: Workbench, sentences: Sentences) -> None:
    first = bench.ready(FIRST, **GIVEN)
    said = "zip,left,age,who,note\n1,no,old,a,\n2,yes,young,b,\n"
    second = made(bench, first.id, said, mode="replace")
    types = {column["name"]: column["type"] for column in second.columns}
    # Types are settled anew, declarations stay.
    assert types == dict.fromkeys(("zip", "left", "age", "who"), "categorical") | {"note": None}
    assert (second.version, second.mode, second.positive) == (2, "replace", "yes")
    assert second.sha256 == hashlib.sha256(said.encode()).hexdigest()
    sentences(fault(bench, first.id, "a,who\n1,2\n", mode="replace"))


def test_how_a_csv_is_written_is_inherited_and_may_be_said_anew(bench: Workbench) -> None:
    given = {"label": "y", "decimal": "comma", "delimiter": "semicolon"}
    latin = "text/csv; charset=latin-1"
    first = bench.ready("x;t;y\n1,5;é;p\n2,5;b;n\n".encode("latin-1"), content_type=latin, **given)
    second = made(bench, first.id, "x;t;y\n3,5;é;p\n".encode("latin-1"))
    third = made(
        bench, second.id, "x,t,y\n4.5,é,p\n", delimiter="comma", decimal="point", encoding="utf-8"
    )
    assert [row["x"] for row in data(bench, third)] == [1.5, 2.5, 3.5, 4.5]
    assert [row["t"] for row in data(bench, third)] == ["é", "b", "é", "é"]
    fourth = made(bench, third.id, as_parquet(x=[5.5], t=["é"], y=["n"]), content_type=PARQUET)
    assert (fourth.rows, fourth.dialect) == (5, None)
    with raises(Invalid, "decimal", PARQUET):
        make(bench, fourth.id, b"PAR1", content_type=PARQUET, decimal="comma")


def test_how_numbers_and_dates_are_written_is_inherited(bench: Workbench) -> None:
    """An order of dates that the values have shown holds for later versions, whose values may not show it."""
    given = {"label": "y", "decimal": "comma", "thousands": "point", "delimiter": "semicolon"}
    first = bench.ready("x;t;y\n1.000,5;31/01/2026;p\n2,5;1/2/2026;n\n", **given)
    said = {key: given[key] for key in ("decimal", "thousands", "delimiter")}
    assert first.dialect == said | {"dates": "day_first"}
    second = made(bench, first.id, "x;t;y\n3.000;3/2/2026;p\n")
    third = made(bench, second.id, "x;t;y\n4000.5;4/2/2026;p\n", decimal="point")
    typed = as_parquet(x=[5000.5], t=["5/2/2026"], y=["n"])
    fourth = made(bench, third.id, typed, content_type=PARQUET)
    rows = data(bench, fourth)
    assert [row["x"] for row in rows] == [1000.5, 2.5, 3000.0, 4000.5, 5000.5]
    assert [row["t"] for row in rows] == [
        "2026-01-31",
        *(f"2026-02-0{day}" for day in (1, 3, 4, 5)),
    ]
    assert (third.dialect["decimal"], "thousands" in third.dialect) == ("point", False)
    assert fourth.dialect == {"dates": "day_first"}
    with raises(Invalid, "thousands=comma", "decimal=point"):
        make(bench, second.id, "x;t;y\n", mode="replace", thousands="comma")
