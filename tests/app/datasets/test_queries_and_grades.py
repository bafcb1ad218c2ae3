"""Datasets with a column of queries, and with grades as labels: read, refused, profiled, versioned and split."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets import service as datasets
from app.datasets.description import describe
from app.datasets.matrices import Columns, read_table
from app.ingest.errors import BadTable
from app.platform.documents import Validation
from app.platform.errors import Invalid
from app.training.splits import split_rows
from tests.app.uploads import PARQUET, Ready, read
from tests.app.version_steps import fault, made
from tests.app.workbench import OWNER, Workbench, on_both
from tests.sentences import Sentences

GRADED = "q,a,grade\n1,0.5,0\n1,0.7,2\nx,2,1\nx,3,4\nx,3,\n"


def refuse(folder: Path, body: str | bytes, **given: Any) -> BadTable:
    with pytest.raises(BadTable) as caught:
        read(folder, body, **given)
    return caught.value


def read_graded(folder: Path, body: str | bytes, **given: Any) -> Ready:
    return read(folder, body, **({"kind": "graded", "query": "q", "label": "grade"} | given))


def test_queries_are_texts_and_are_counted(tmp_path: Path) -> None:
    table = read(tmp_path, "q,a,y\n7,1,no\n07,2,yes\n7,3,yes\nx y,4,no\nx y,5,no\n", query="q")
    assert table.columns["q"] == ["7", "07", "7", "x y", "x y"]
    assert table.columns["y"] == [0, 1, 1, 0, 0]
    assert table.result["queries"] == {
        "queries": 3,
        "with_pairs": 1,
        "min_rows": 1,
        "median_rows": 2.0,
        "max_rows": 2,
    }
    assert table.result["grades"] is None
    assert [column["role"] for column in table.result["columns"]] == ["query", "feature", "label"]
    assert table.column("q")["top"][0] == {"value": "7", "count": 2}


def test_grades_are_whole_numbers_and_are_counted(tmp_path: Path) -> None:
    table = read_graded(tmp_path, GRADED)
    assert table.columns["grade"] == [0, 2, 1, 4]
    assert table.result["grades"] == [{"grade": g, "rows": 1} for g in (0, 1, 2, 4)]
    assert table.result["queries"]["with_pairs"] == 2
    found = [table.result[name] for name in ("label", "positive", "negative", "positives")]
    assert found == ["grade", None, None, None]
    (warning,) = table.result["warnings"]
    assert (warning["code"], warning["count"], warning["line"]) == ("rows_without_label", 1, 6)
    assert read_graded(tmp_path, GRADED.replace("0.7,2", "0.7,2.0")).columns == table.columns


def test_every_format_has_the_same_grades(tmp_path: Path) -> None:
    expected = read_graded(tmp_path, GRADED).columns
    for kind in (pa.int64(), pa.float32(), pa.decimal128(22, 2)):
        sink = io.BytesIO()
        columns = {"q": ["1", "1", "x", "x"], "a": [0.5, 0.7, 2.0, 3.0]}
        grade = pa.array([0, 2, 1, 4]).cast(kind)
        pq.write_table(pa.table({**columns, "grade": grade}), sink)
        assert read_graded(tmp_path, sink.getvalue(), content_type=PARQUET).columns == expected
    lines = b'{"q": 1, "a": 0.5, "grade": 0}\n{"q": 1, "a": 0.7, "grade": "2"}\n'
    table = read_graded(tmp_path, lines, content_type="application/x-ndjson")
    assert (table.columns["q"], table.columns["grade"]) == (["1", "1"], [0, 2])


def test_other_grades_are_refused_with_their_line(tmp_path: Path, sentences: Sentences) -> None:
    for value in ("2.5", "-1", "32", "inf", "nope", "true", "1e99", "-0.1"):
        error = refuse(
            tmp_path, f"a,y\n1,0\n2,1\n3,{value}\n", kind="graded", label="y", missing=["?"]
        )
        sentences(error.errors[0].pop("detail"))
        assert error.errors == [{"line": 4, "column": "y"}]


def test_tables_that_are_no_lists(tmp_path: Path, sentences: Sentences) -> None:
    for body, given, code in (
        ("q,a,y\n1,1,0\n,2,1\n", {}, "invalid_table"),
        ("q,a,y\n1,1,0\n?,2,1\n", {}, "no_pairs_in_queries"),
        (f"q,a,y\n1,1,0\n{'x' * 256},2,1\n", {}, "invalid_table"),
        ("q,a,y\n1,1,0\n2,2,1\n", {}, "no_pairs_in_queries"),
        ("q,a,y\n1,1,0\n", {"query": "z"}, "unknown_column"),
        ("q,a,y\n1,1,0\n", {"label": "q"}, "column_in_two_roles"),
        (
            "q,a,y\n1,1,3\n1,2,3\n",
            {"kind": "graded"},
            "one_class",
        ),
        ("q,a,y\n1,1,\n1,2,\n", {"kind": "graded"}, "one_class"),
        ("q,a,y\n1,1,0\n1,2,\n", {"kind": "graded", "strict": True}, "invalid_table"),
    ):
        error = refuse(tmp_path, body, **({"query": "q", "label": "y"} | given))
        assert error.code == code
        sentences(error)


def test_grades_of_another_type_are_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    dates = pa.array([0, 1], pa.timestamp("s"))
    pq.write_table(pa.table({"a": [1.0, 2.0], "grade": dates}), sink)
    error = refuse(tmp_path, sink.getvalue(), content_type=PARQUET, kind="graded")
    assert error.code == "unsupported_type"


def test_fields_that_make_no_sense(sentences: Sentences) -> None:
    for given in (
        {"query": "q", "group": "g"},
        {"query": "q", "weight": "q"},
        {"query": ""},
        {"query": "q\0"},
        {"query": "q", "kind": "preferences"},
        {"query": "q", "kind": "multilabel", "labels": "a,b"},
        {"kind": "graded", "positive": "1"},
        {"kind": "graded", "labels": "a"},
        {"kind": "graded", "item": "a"},
        {"kind": "grades"},
    ):
        with pytest.raises(Invalid) as caught:
            describe(given)
        for error in caught.value.errors:
            sentences(error)


@on_both
def test_a_dataset_keeps_its_queries_and_grades_in_later_versions(bench: Workbench) -> None:
    first = bench.ready(GRADED, kind="graded", query="q", label="grade")
    assert (first.query, first.positives) == ("q", None)
    assert first.queries is not None
    assert first.queries["queries"] == 2
    added = made(bench, first.id, "grade,a,q\n3,1,x\n1,2,new\n")
    assert (added.kind, added.query, added.label) == ("graded", "q", "grade")
    assert added.rows == 6
    assert added.queries == {
        "queries": 3,
        "with_pairs": 2,
        "min_rows": 1,
        "median_rows": 2.0,
        "max_rows": 3,
    }
    assert added.grades == [
        {"grade": grade, "rows": rows} for grade, rows in enumerate((1, 2, 1, 1, 1))
    ]
    seen = datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, added.id), 9)
    assert [row[seen["columns"].index("grade")] for row in seen["data"]] == [0, 2, 1, 4, 3, 1]
    _, profile = bench.db.reading(datasets.profile, OWNER, added.id)
    assert all(column["auc"] is None for column in profile.columns)
    replaced = made(bench, added.id, GRADED, mode="replace")
    assert (replaced.query, replaced.grades) == ("q", first.grades)
    assert "got '2.5'" in fault(bench, added.id, "grade,a,q\n2.5,1,x\n", mode="replace")


def test_no_split_parts_a_query(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    query, label = rng.integers(80, size=900), rng.integers(2, size=900)
    rows = "".join(f"q{q},{a},{y}\n" for q, a, y in zip(query, range(900), label, strict=True))
    read(tmp_path, f"q,a,y\n{rows}", query="q", label="y")
    columns = Columns(["a"], "y", None, None, query="q")
    table = read_table(tmp_path / "work" / "table.parquet", columns)
    assert table.query is not None
    assert len(np.unique(table.query)) == len(np.unique(query))
    divisions: list[Validation] = [
        {"method": "holdout", "fraction": 0.3},
        {"method": "cross_validation", "folds": 4, "repeats": 2},
    ]
    for validation in divisions:
        for part in split_rows(table, validation, 5):
            assert not np.intersect1d(query[part.train], query[part.test]).size
            assert len(part.train) + len(part.test) == 900
            held_out = table.take(part.test)
            assert np.array_equal(held_out.query, table.query[part.test])


def test_an_algorithm_that_learns_no_lists_is_refused(bench: Workbench) -> None:
    dataset = bench.ready(GRADED, kind="graded", query="q", label="grade")
    for name in ("adaboost", "adaboost_mh", "auto"):
        with pytest.raises(Invalid) as caught:
            bench.submit(dataset, algorithm={"name": name})
        assert caught.value.code == "wrong_kind"
