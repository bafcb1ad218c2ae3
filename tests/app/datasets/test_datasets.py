"""The fields of an upload, and what a caller may do with a dataset."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import select

from app.datasets import service as datasets
from app.datasets.description import Format, check_format, describe
from app.datasets.fields import TableFields
from app.ingest.formats import ARROW, ARROW_FILE, PARQUET
from app.platform.errors import Conflict, Invalid, NotFound, UnsupportedMedia
from app.platform.tables import Dataset, Job
from tests.app.workbench import OWNER, Workbench, on_both
from tests.raising import raises
from tests.sentences import Sentences

SMALL = "age,left\n" + "1,yes\n2,no\n,no\n" * 5


@on_both
def test_an_accepted_upload_is_row_and_job_at_once(bench: Workbench) -> None:
    dataset = bench.upload(SMALL, label="left")
    with bench.db.read() as session:
        assert session.scalars(select(Dataset.id)).all() == [dataset.id]
        job = session.scalars(select(Job)).one()
    assert (job.kind, job.spec) == ("ingest", {"dataset_id": dataset.id})
    assert (job.id, job.dataset_id) == (dataset.job_id, dataset.id)
    assert bench.blobs.path(dataset.upload_key).read_text() == SMALL


def test_descriptions(sentences: Sentences) -> None:
    assert describe({}) == TableFields()
    given: dict[str, Any] = {
        "name": "n",
        "label": "l",
        "positive": "p",
        "weight": "w",
        "group": "g",
        "kind": "bipartite",
    }
    assert describe(given) == TableFields(**given)
    with pytest.raises(Invalid) as caught:
        describe({"x": "1", "name": "", "kind": "ordinal"})
    assert [error["parameter"] for error in caught.value.errors] == ["x", "name", "kind"]
    sentences(caught.value.errors[2])


LABELS = {"kind": "multilabel"}
ITEMS = {"kind": "preferences"}


def test_fields_that_make_no_sense(sentences: Sentences) -> None:
    for given in (
        {"categorical": "a,,b"},
        {"categorical": "a\0"},
        {"drop": ","},
        {"drop": "a,a"},
        {"drop": ""},
        {"missing": ""},
        {"missing": "x" * 4097},
        {"missing": "x,x"},
        {"drop": "a", "label": "a"},
        {"numeric": "a", "drop": "a"},
        {"numeric": "a", "categorical": "a"},
        {"drop": "a", "categorical": "a"},
        {"categorical": "a", "weight": "a"},
        {"labels": "a,b"},
        LABELS,
        LABELS | {"labels": "a,,b"},
        LABELS | {"labels": "a,b,a"},
        LABELS | {"labels": ",".join(map(str, range(101)))},
        LABELS | {"labels": "x" * 5000},
        LABELS | {"labels": "a,b", "label": "a"},
        LABELS | {"labels": "a,b", "positive": "1"},
        LABELS | {"labels": "a,b", "item": "c"},
        {"item": "id"},
        ITEMS | {"label": "y"},
        ITEMS | {"positive": "1"},
        ITEMS | {"weight": "w"},
        ITEMS | {"item": "id", "group": "id"},
    ):
        with pytest.raises(Invalid) as caught:
            describe(given)
        for error in caught.value.errors:
            sentences(error)
        assert all(error["parameter"] for error in caught.value.errors)


def test_formats() -> None:
    assert check_format("Text/CSV; charset=utf-8", None) == Format("text/csv", None, "utf-8")
    assert check_format("text/csv", "GZIP") == Format("text/csv", "gzip")
    assert check_format("text/csv", "identity") == Format("text/csv", None)
    for media_type, encoding in (
        ("", None),
        ("text/html", None),
        ("text/csv", "br"),
        ("x" * 500, None),
    ):
        with pytest.raises(UnsupportedMedia):
            check_format(media_type, encoding)


@on_both
def test_the_preview_speaks_the_caller_s_words(bench: Workbench, sentences: Sentences) -> None:
    dataset = bench.ready(SMALL, label="left", positive="yes")
    shown = datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, dataset.id), 3)
    assert shown == {"columns": ["age", "left"], "data": [[1.0, "yes"], [2.0, "no"], [None, "no"]]}
    waiting = bench.upload(SMALL)
    with sentences.raises(Conflict):
        datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, waiting.id), 3)


@on_both
def test_a_dataset_goes_when_nothing_needs_it(bench: Workbench) -> None:
    dataset, judge = (bench.ready(SMALL, label="left", positive="yes") for _ in range(2))
    job = bench.submit(dataset, validation={"method": "dataset", "dataset_id": judge.id})
    for used in (dataset, judge):
        with raises(Conflict, job.id):
            bench.db.writing(datasets.delete, OWNER, used.id)
    bench.work()
    for owner, dataset_id in (("bob", dataset.id), (OWNER, "ds_x")):
        with pytest.raises(NotFound):
            bench.db.writing(datasets.delete, owner, dataset_id)
    bench.db.writing(datasets.delete, OWNER, dataset.id)
    with pytest.raises(NotFound):
        bench.db.reading(datasets.find, OWNER, dataset.id)


def test_checking_takes_no_more_memory_than_a_small_table_may(
    bench: Workbench, tmp_path: Path
) -> None:
    """Each of these is a few kilobytes."""
    settings = bench.settings.model_copy(update={"max_score_bytes": 1 << 20})
    zeros = pa.table({"age": np.zeros(1 << 17), "left": np.zeros(1 << 17)})
    nulls = pa.Array.from_buffers(pa.null(), 1 << 30, [None])
    odd = pa.table({"age": nulls, "left": nulls})
    small = pa.table({"age": [1.0, 2.0, 3.0] * 20, "left": ["yes", "no", "no"] * 20})
    upload, description = tmp_path / "upload", describe({"label": "left"})

    def check(kind: Format) -> dict[str, Any]:
        return datasets.check_table(bench.blobs, settings, description, upload, kind)

    for content_type, new in ((ARROW, pa.ipc.new_stream), (ARROW_FILE, pa.ipc.new_file)):
        for table, is_small in ((zeros, False), (odd, False), (small, True)):
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with new(upload, table.schema, options=options) as writer:
                writer.write_table(table)
            if is_small:
                assert check(Format(content_type, None))["rows"] == 60
                continue
            with pytest.raises(Invalid):
                check(Format(content_type, None))
    upload.write_bytes(gzip.compress(b"age,left\n" + b"1,yes\n" * (1 << 18)))
    with raises(Invalid, "RANKWRIGHT_MAX_SCORE_BYTES"):
        check(Format("text/csv", "gzip"))
    with raises(UnsupportedMedia, PARQUET):
        check(Format(PARQUET, None))
    assert list((bench.blobs.root / "staging").iterdir()) == []
