"""Items and pairs on their way in, on SQLite and on PostgreSQL."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets import service as datasets
from app.datasets.description import check_format, describe
from app.ingest.errors import BadTable
from app.ingest.formats import ARROW, PARQUET
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.operations import repository as blob_rows
from app.platform.errors import Conflict, LeaseLost
from app.platform.tables import JobState
from tests.app.preference_data import draw_pairs, pairs_csv, upload_items
from tests.app.workbench import OWNER, Workbench, on_both, quiet
from tests.long_form import LONG_FORM
from tests.sentences import Sentences


def test_items_are_a_table_without_a_label(bench: Workbench) -> None:
    dataset, X, _ = upload_items(bench)
    assert (dataset.kind, dataset.item) == ("preferences", "item")
    assert (dataset.label, dataset.positive) == (None, None)
    assert (dataset.rows, dataset.positives, dataset.negatives) == (80, None, None)
    roles = {column["name"]: column["role"] for column in dataset.columns}
    assert roles == {"item": "item", "a": "feature", "b": "feature", "c": "feature"}
    assert (
        dataset.columns[0] | {"name": "item", "type": "categorical", "distinct": 80}
        == (dataset.columns[0])
    )
    seen = datasets.preview(bench.fetch, bench.db.reading(datasets.find, OWNER, dataset.id), 2)
    assert seen["columns"] == ["a", "b", "c", "item"]
    assert seen["data"][1] == [*X[1].tolist(), "item1"]


def test_repeated_items_of_a_parquet_table_are_told_by_row(
    bench: Workbench, sentences: Sentences
) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"item": [5, 6, 5], "x": [1.0, 2.0, 3.0]}), sink)
    bench.upload(sink.getvalue(), kind="preferences", content_type=PARQUET)
    job = bench.work()
    sentences(job.error)


def test_bad_pairs_are_told_by_line(bench: Workbench, sentences: Sentences) -> None:
    dataset, _, _ = upload_items(bench, 10)
    for body, detail, line, column in (
        ("better,worse\nitem0,item1\nitem0,item99\n", "no item 'item99'", 3, "worse"),
        ("better,worse\nitem0\n", "1 value, but the header has 2", 2, None),
        ('better,worse\n"item0,item1\n', "not closed", 2, "better"),
        ("better,worse,better\nitem0,item1,item2\n", "column names must differ", 1, "better"),
        ("\n\n", "only blank lines", 1, None),
    ):
        job = bench.compare(dataset, body)
        assert job.state == JobState.FAILED
        assert detail in job.error["detail"]
        found = bench.db.reading(datasets.find, OWNER, dataset.id)
        assert found.status == "ready"
        assert found.pairs.status == "invalid"
        assert found.pairs.errors[0].get("line") == line
        assert found.pairs.errors[0].get("column") == column
        with sentences.raises(Conflict):
            bench.submit(found)
        assert bench.left_over() == []


def test_pairs_as_parquet_and_items_as_numbers(bench: Workbench, sentences: Sentences) -> None:
    dataset = bench.ready("id,x\n" + "".join(f"{i},{i}\n" for i in range(9)), kind="preferences")
    sink = io.BytesIO()
    pairs = pa.table({"worse": [0, 1, 2], "better": [3, 4, 5], "weight": [1, 2, 3]})
    pq.write_table(pairs, sink)
    job = bench.compare(dataset, sink.getvalue(), PARQUET)
    assert job.state == JobState.SUCCEEDED, job.error
    found = bench.db.reading(datasets.find, OWNER, dataset.id)
    assert (found.pairs.pairs, found.pairs.items) == (3, 6)
    rows = pq.read_table(bench.blobs.path(found.pairs.table_key or "")).to_pydict()
    assert rows == {"better": [3, 4, 5], "worse": [0, 1, 2], "weight": [1.0, 2.0, 3.0]}
    bad = io.BytesIO()
    pq.write_table(pa.table({"better": [3, 77], "worse": [0, 1]}), bad)
    job = bench.compare(dataset, bad.getvalue(), PARQUET)
    sentences(job.error)


def test_odd_parquet_pairs_are_refused_and_no_accident(bench: Workbench) -> None:
    dataset, _, _ = upload_items(bench, 10)
    for columns in (
        {"better": [["item0"]], "worse": [["item1"]]},
        {"better": [b"\xff"], "worse": [b"item1"]},
        {"better": [None], "worse": [None]},
        {"better": [True], "worse": [False]},
        {"better": ["item0"], "worse": ["item1"], "weight": ["2"]},
        {"better": ["item0"], "worse": ["item1"], "weight": [None]},
        {"better": [], "worse": []},
    ):
        sink = io.BytesIO()
        pq.write_table(pa.table(columns), sink)
        job = bench.compare(dataset, sink.getvalue(), PARQUET)
        assert job.state == JobState.FAILED
        found = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
        assert (found.status, bool(found.errors)) == ("invalid", True)


def test_bytes_that_are_no_pairs(bench: Workbench) -> None:
    dataset, _, _ = upload_items(bench, 10)
    bodies = (b'"', b"\x00\xff\x00", b"PAR1", b"\x1f\x8b\x08\x00junk")
    for content_type, some in (
        ("text/csv", bodies),
        (PARQUET, bodies if LONG_FORM else bodies[2:3]),
        (ARROW, bodies if LONG_FORM else bodies[1:2]),
        ("application/x-ndjson", bodies if LONG_FORM else bodies[1:2]),
    ):
        for body in some:
            assert bench.compare(dataset, body, content_type).state == JobState.FAILED


def test_more_pairs_than_the_limit(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench, 10)
    bench.settings = bench.settings.model_copy(update={"max_rows": 5})
    job = bench.compare(dataset, pairs_csv(draw_pairs(worth, 6)))
    assert job.error["code"] == "too_many_rows"
    assert "at most 5 pairs" in job.error["detail"]


@on_both
def test_pairs_replace_those_before(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench)
    bench.compare(dataset, "better,worse\nitem0,nobody\n")
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 50)))
    first = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
    bench.compare(dataset, pairs_csv(draw_pairs(worth, 60, seed=1)))
    second = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
    assert (first.pairs, second.pairs) == (50, 60)
    keys = [first.upload_key, first.table_key, second.upload_key, second.table_key]
    with bench.db.read() as session:
        named = blob_rows.named(session, [key for key in keys if key])
    assert named == {second.upload_key, second.table_key}


@on_both
def test_who_may_take_pairs_and_when(bench: Workbench, sentences: Sentences) -> None:
    bipartite = bench.ready("a,y\n1,0\n2,1\n")
    with sentences.raises(Conflict):
        bench.put_pairs(bipartite, "better,worse\n")
    waiting = bench.upload("item,x\na,1\nb,2\n", kind="preferences")
    with sentences.raises(Conflict):
        bench.put_pairs(waiting, "better,worse\n")
    bench.work()
    bench.put_pairs(waiting, "better,worse\na,b\n")
    for busy in (bench.put_pairs, lambda *_: bench.db.writing(datasets.delete, OWNER, waiting.id)):
        with sentences.raises(Conflict):
            busy(waiting, "better,worse\n")
    with sentences.raises(Conflict):
        bench.submit(waiting)
    bench.work()
    bench.db.writing(datasets.delete, OWNER, waiting.id)


@on_both
def test_reading_pairs_again(bench: Workbench, sentences: Sentences) -> None:
    """A cancelled job leaves the pairs invalid; its retry reads them, another's does not."""
    dataset, _, worth = upload_items(bench)
    bench.put_pairs(dataset, pairs_csv(draw_pairs(worth, 50)))
    waiting = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
    bench.db.writing(jobs.cancel, OWNER, waiting.job_id)
    cancelled = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
    assert (cancelled.status, [[*error] for error in cancelled.errors]) == ("invalid", [["detail"]])
    sentences(cancelled.errors[0])
    with bench.db.write() as session:
        jobs.retry(session, bench.settings, OWNER, waiting.job_id)
    assert bench.work().state == JobState.SUCCEEDED
    again = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
    assert again.status == "ready"
    with (
        bench.db.write() as session,
        sentences.raises(Conflict),
    ):
        jobs.retry(session, bench.settings, OWNER, waiting.job_id)


@on_both
def test_stale_attempt_writes_nothing(bench: Workbench) -> None:
    dataset, _, worth = upload_items(bench)
    bench.put_pairs(dataset, pairs_csv(draw_pairs(worth, 50)))
    stale = bench.claim()
    payload = bench.prepare(stale)
    result = execution.run(payload, quiet)
    bench.db.writing(queue.give_back, stale)
    with pytest.raises(LeaseLost):
        bench.complete(stale, result)
    found = bench.db.reading(datasets.find, OWNER, dataset.id).pairs
    assert found.status == "processing"
    assert bench.work().state == JobState.SUCCEEDED


def test_a_table_of_items_is_checked_without_being_kept(
    bench: Workbench, tmp_path: Path, sentences: Sentences
) -> None:
    body = tmp_path / "items.csv"
    body.write_text("item,x\na,1\nb,2\n")
    described = describe({"kind": "preferences"})
    kind = check_format("text/csv", None)
    found = datasets.check_table(bench.blobs, bench.settings, described, body, kind)
    assert (found["valid"], found["rows"], found["positives"]) == (True, 2, None)
    body.write_text("item,x\na,1\na,2\n")
    with sentences.raises(BadTable):
        datasets.check_table(bench.blobs, bench.settings, described, body, kind)
