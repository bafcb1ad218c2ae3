"""The job that erases an entity from tables: by format, version and kind, with everything that is derived from them."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from sqlalchemy import delete, select, update

from app.access import holds
from app.datasets import service as datasets
from app.erasure import service as erasures
from app.erasure.service import ShownErasure
from app.ingest.formats import PARQUET, XLSX
from app.jobs import execution, queue
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.operations.repository import expire_erasures
from app.platform.callers import Caller
from app.platform.errors import Conflict, LeaseLost
from app.platform.tables import (
    BlobEntry,
    BlobState,
    Dataset,
    Erasure,
    Job,
    Model,
    ModelAlias,
    ModelHeldOut,
    ModelReferenceRows,
    ModelSample,
)
from tests.app import mortal_worker
from tests.app.preference_data import upload_items
from tests.app.queue_steps import hear_nothing
from tests.app.training_jobs import sharing
from tests.app.version_steps import made
from tests.app.webhooks.event_steps import recorded, subscribe
from tests.app.workbench import OWNER, Workbench, on_both, quiet
from tests.long_form import rest

MARK = "marker-7f3a"
PIECE = 1 << 20
"""Bytes of an upload that are searched at a time."""
CALLER = Caller(owner=OWNER, scopes=frozenset({"train"}), name="dpo")


def rows_of(n: int = 200, *, marked: tuple[int, ...] = (3, 77), seed: int = 0) -> list[list[Any]]:
    """Rows of customer, two features, a word and a label; the marked ones belong to the entity."""
    rng = np.random.default_rng(seed)
    rows = []
    for number, (x, z) in enumerate(rng.normal(size=(n, 2)).round(4).tolist()):
        customer = MARK if number in marked else f"c{seed}-{number // 2}"
        label = "yes" if x + rng.normal() * 0.5 > 0 else "no"
        rows.append([customer, x, z, "abc"[number % 3], label])
    return rows


NAMES = ["customer", "x", "z", "word", "left"]


def as_csv(rows: list[list[Any]]) -> str:
    return "\n".join([",".join(NAMES), *(",".join(map(str, row)) for row in rows), ""])


def request(
    bench: Workbench, entity: str = MARK, keys: tuple[str, ...] = ("customer",), **more: Any
) -> ShownErasure:
    with bench.db.write() as session:
        more = {"retire_models": False} | more
        return erasures.create(session, bench.settings, CALLER, entity, keys, **more)


def erase(bench: Workbench, *args: Any, **more: Any) -> tuple[ShownErasure, Job]:
    """Request an erasure and run its job, round by round."""
    made = request(bench, *args, **more)
    job = bench.work()
    while job.state == "queued":
        job = bench.work()
    return bench.db.reading(erasures.find, OWNER, made.erasure.id), job


def whole(bench: Workbench, dataset: Dataset) -> pa.Table:
    assert dataset.table_key is not None
    return pq.read_table(bench.fetch(dataset.table_key))


def all_datasets(bench: Workbench) -> list[Dataset]:
    with bench.db.read() as session:
        page = datasets.list_page(session, OWNER, limit=100, after=None)
        return [datasets.find(session, OWNER, each.id) for each in page.data]


def assert_no_blob_has(bench: Workbench, text: str) -> None:
    """Check the parsed Parquet files and the bytes of all blobs that a row names."""
    for dataset in all_datasets(bench):
        for key in (dataset.upload_key, dataset.table_key):
            path = Path(bench.fetch(key or ""))
            if path.read_bytes()[:4] == b"PAR1":
                assert text not in str(pq.read_table(path).to_pydict())
            assert text.encode() not in path.read_bytes()


@on_both
def test_rows_of_a_person_leave_a_table(bench: Workbench) -> None:
    rows = rows_of()
    old = bench.ready(as_csv(rows), label="left", drop="customer", name="people")
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    assert found.state == "settling"
    (new,) = all_datasets(bench)
    assert (new.id != old.id, new.version, new.rows) == (True, 1, 198)
    report = found.erasure.report
    assert report is not None
    assert report["datasets"] == [
        {"dataset_id": old.id, "name": "people", "version": 1, "rows": 2, "replaced_by": new.id}
    ]
    assert report["verified_at"] is not None
    assert report["rounds"] == 2
    assert report["searched"] == {
        "datasets": 1,
        "rows": 198,
        "batch_scores": 0,
        "uploads": 0,
        "evidence": 0,
    }
    expected = bench.ready(
        as_csv([row for row in rows if row[0] != MARK]), label="left", drop="customer"
    )
    assert whole(bench, new).equals(whole(bench, expected))
    assert new.columns == expected.columns
    assert_no_blob_has(bench, MARK)


def as_parquet(rows: list[list[Any]], *, coded: bool = False) -> bytes:
    table = pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))
    if coded:
        at = table.schema.get_field_index("customer")
        table = table.set_column(at, "customer", table["customer"].dictionary_encode())
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def as_ndjson(rows: list[list[Any]]) -> bytes:
    lines = (json.dumps({**dict(zip(NAMES, row, strict=True)), "nested": [1]}) for row in rows)
    return "\n".join(lines).encode()


def as_workbook(rows: list[list[Any]]) -> bytes:
    made = io.BytesIO()
    with xlsxwriter.Workbook(made, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        for at, row in enumerate([NAMES, *rows]):
            sheet.write_row(at, 0, row)
    return made.getvalue()


def as_latin(rows: list[list[Any]]) -> bytes:
    """CSV with German spelling, a column without a name, and values that need quotes."""
    lines = [";".join(["", *NAMES])]
    for number, (customer, x, z, word, label) in enumerate(rows):
        numbers = (str(value).replace(".", ",") for value in (x, z))
        lines.append(";".join([str(number), customer, *numbers, f'"{word};ö"', label]))
    return "\n".join(lines).encode("latin-1")


FORMATS: dict[str, tuple[Any, str, dict[str, str]]] = {
    "parquet": (as_parquet, PARQUET, {"drop": "customer"}),
    "dictionary": (partial(as_parquet, coded=True), PARQUET, {"drop": "customer"}),
    "ndjson": (as_ndjson, "application/x-ndjson", {"drop": "customer,nested"}),
    "xlsx": (as_workbook, XLSX, {"drop": "customer"}),
    "latin": (
        as_latin,
        "text/csv; charset=iso-8859-1",
        {"drop": "customer", "decimal": "comma", "dates": "day_first"},
    ),
    "group": (as_parquet, PARQUET, {"group": "customer"}),
    "gzip": (lambda rows: gzip.compress(as_csv(rows).encode()), "text/csv", {"drop": "customer"}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_rewritten(bench: Workbench, name: str) -> None:
    write, content_type, given = FORMATS[name]
    rows = rows_of()
    bench.ready(write(rows), content_type=content_type, label="left", name="people", **given)
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    report = found.erasure.report
    assert report is not None
    assert report["searched"]["rows"] == 198
    (new,) = all_datasets(bench)
    left = [row for row in rows if row[0] != MARK]
    expected = bench.ready(write(left), content_type=content_type, label="left", **given)
    assert new.rows == 198
    assert whole(bench, new).equals(whole(bench, expected))
    drop = [column for column in new.columns if column["role"] != "dropped"]
    assert drop == [column for column in expected.columns if column["role"] != "dropped"]
    assert_no_blob_has(bench, MARK)


def test_a_table_that_is_longer_than_its_file_is_rewritten(bench: Workbench) -> None:
    rows = [[*row[:3], "word" * 50, row[4]] for row in rows_of(4_000)]
    bench.ready(as_parquet(rows), content_type=PARQUET, label="left", drop="customer")
    _, job = erase(bench)
    assert job.state == "succeeded", job.error
    assert [each.rows for each in all_datasets(bench)] == [3_998]


def test_keys_are_compared_as_text_and_whole_numbers_without_a_point(bench: Workbench) -> None:
    rows = [[str(number % 50), *row[1:]] for number, row in enumerate(rows_of())]
    bench.ready(as_csv(rows), label="left", group="customer", name="text")
    typed = pq.read_table(io.BytesIO(as_parquet(rows)))
    for kind in (pa.int64(), pa.float64()):
        numbers = typed.set_column(0, "customer", typed["customer"].cast(kind))
        sink = io.BytesIO()
        pq.write_table(numbers, sink)
        bench.ready(
            sink.getvalue(), content_type=PARQUET, label="left", drop="customer", name="number"
        )
    _, job = erase(bench, "7")
    assert job.state == "succeeded", job.error
    assert [each.rows for each in all_datasets(bench)] == [196] * 3


def test_versions_are_replaced_in_their_places(bench: Workbench) -> None:
    first = bench.ready(as_csv(rows_of()), label="left", group="customer", name="people")
    more = rows_of(50, marked=(), seed=1)
    second = made(bench, first.id, as_csv(more), mode="append")
    third = made(bench, second.id, as_csv(rows_of(30, marked=(5,), seed=2)), mode="append")
    other = made(bench, third.id, as_csv(rows_of(60, marked=(), seed=3)), mode="replace")
    with bench.db.write() as session:
        datasets.delete(session, OWNER, first.id)
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    shown = {each.version: each for each in all_datasets(bench)}
    assert {number: each.rows for number, each in shown.items()} == {2: 248, 3: 277, 4: 60}
    assert shown[4].id == other.id
    assert shown[3].parent_id == shown[2].id
    report = found.erasure.report
    assert report is not None
    assert [each["rows"] for each in report["datasets"]] == [2, 0, 1]
    by = [each["replaced_by"] for each in report["datasets"]]
    assert by[1:] == [shown[2].id, shown[3].id]
    with bench.db.read() as session:
        in_trash = session.get_one(Dataset, by[0])
        assert in_trash.deleted_at is not None
        assert in_trash.rows == 198
        assert shown[2].base_id == in_trash.id
    assert_no_blob_has(bench, MARK)
    # rows can still be appended to the newest version
    assert made(bench, other.id, as_csv(more), mode="append").version == 5


def test_a_version_is_replaced_whose_first_rows_stay(bench: Workbench) -> None:
    first = bench.ready(as_csv(rows_of(marked=())), label="left", group="customer", name="people")
    made(bench, first.id, as_csv(rows_of(30, marked=(5,), seed=1)), mode="append")
    _, job = erase(bench)
    assert job.state == "succeeded", job.error
    shown = {each.version: each for each in all_datasets(bench)}
    assert {number: each.rows for number, each in shown.items()} == {1: 200, 2: 229}
    assert shown[1].id == shown[2].parent_id == first.id


def test_pairs_of_an_item_go_with_it(bench: Workbench) -> None:
    items, _, _ = upload_items(bench)
    pairs = [(f"item{a}", f"item{a + 1}") for a in range(40)]
    bench.compare(items, "better,worse\n" + "\n".join(map(",".join, pairs)) + "\n")
    _, job = erase(bench, "item7", ("item",))
    assert job.state == "succeeded", job.error
    (new,) = all_datasets(bench)
    assert new.rows == 79
    assert new.pairs is not None
    assert new.pairs.pairs == 38
    numbers = pq.read_table(bench.fetch(new.pairs.table_key or ""))
    names = whole(bench, new)["item"].to_pylist()
    read = list(zip(*(numbers[side].to_pylist() for side in ("better", "worse")), strict=True))
    assert [(names[a], names[b]) for a, b in read] == [
        pair for pair in pairs if "item7" not in pair
    ]


def test_a_table_that_is_not_valid_without_the_rows_is_deleted(bench: Workbench) -> None:
    rows = rows_of()
    for row in rows:
        row[0] = MARK if row[4] == "yes" else row[0]
    old = bench.ready(as_csv(rows), label="left", drop="customer", name="people")
    longer = made(bench, old.id, as_csv(rows_of(30, marked=(), seed=1)), mode="append")
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    assert all_datasets(bench) == []
    report = found.erasure.report
    assert report is not None
    gone = [(each["dataset_id"], each["replaced_by"]) for each in report["datasets"]]
    assert gone == [(old.id, None), (longer.id, None)]


def test_uploads_that_are_no_tables_are_deleted(bench: Workbench) -> None:
    bad = bench.upload(as_csv(rows_of(20)), label="nowhere")
    good = bench.upload(as_csv(rows_of(20, marked=())), label="nowhere")
    torn = bench.upload(f'customer,x,left\n"{MARK},1,yes\n', label="left")
    start = 'customer,x,left\n"'
    filler = "-" * (PIECE - len(start) - len(MARK) // 2)
    across = bench.upload(f"{start}{filler}{MARK},1,yes\n", label="left")
    wide = bench.upload(f"customer,x,left\nc,1,yes\n{MARK},1,yes,2\n", label="left")
    elsewhere = bench.upload(f"customer,x,left\nc,{MARK},yes\n", label="nowhere")
    for _ in range(6):
        assert bench.work().state == "failed"
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    report = found.erasure.report
    assert report is not None
    assert sorted(report["uploads"]) == sorted([bad.id, torn.id, across.id, wide.id])
    assert {each.id for each in all_datasets(bench)} == {good.id, elsewhere.id}


@pytest.mark.parametrize("damage", [Path.unlink, partial(Path.write_bytes, data=b"PK")])
def test_a_damaged_copy_does_not_stop_an_erasure(
    bench: Workbench, damage: Callable[[Path], object]
) -> None:
    damaged = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="damaged")
    old = bench.ready(as_csv(rows_of(seed=1)), label="left", drop="customer", name="people")
    invalid = bench.upload(as_csv(rows_of(9)), label="nowhere", name="invalid")
    bench.work()
    for dataset in damaged, invalid:
        damage(bench.fetch(dataset.upload_key))
    with bench.db.write() as session:
        session.execute(
            update(BlobEntry)
            .where(BlobEntry.key == invalid.upload_key)
            .values(state=BlobState.DELETED)
        )
    found, job = erase(bench)
    assert (job.state, found.state) == ("succeeded", "settling"), job.error
    report = found.erasure.report
    assert report is not None
    assert [each["dataset_id"] for each in report["datasets"]] == [old.id]
    unreadable = [
        each["resource"] for each in report["remains"] if each["what"] == "unreadable_copy"
    ]
    assert unreadable == [damaged.id, invalid.id]


def test_models_are_listed_and_lose_their_rows(bench: Workbench) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    model = bench.model(bench.work_on(old, name="plain"))
    while bench.db.reading(queue.has_work, bench.settings):
        bench.work()
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    report = found.erasure.report
    assert report is not None
    assert report["models"] == [
        {"model_id": model.id, "name": "plain", "version": 1, "retired": False}
    ]
    with bench.db.read() as session:
        for table in (ModelReferenceRows, ModelSample, ModelHeldOut):
            assert session.scalars(select(table)).all() == []
        assert session.get(Model, model.id) is not None


def test_a_model_that_contains_rows_is_retired_if_the_request_allows_it(bench: Workbench) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    kernel = {"name": "auc_svm", "feature_map": "nystroem", "n_components": 20}
    model = bench.model(bench.work_on(old, algorithm=kernel, name="kernel"))
    found, job = erase(bench)
    assert job.error["code"] == "model_has_rows"
    assert (found.state, found.code) == ("failed", "model_has_rows")
    assert [each.id for each in all_datasets(bench)] == [old.id]
    with bench.db.write() as session:
        session.add(
            ModelAlias(
                owner=OWNER,
                name="kernel",
                alias="live",
                revision=1,
                model_id=model.id,
                updated_at=1.0,
            )
        )
    found, job = erase(bench, retire_models=True)
    assert job.error["code"] == "model_in_use"
    with bench.db.write() as session:
        session.execute(delete(ModelAlias))
    found, job = erase(bench, retire_models=True)
    assert job.state == "succeeded", job.error
    report = found.erasure.report
    assert report is not None
    assert [each["retired"] for each in report["models"]] == [True]
    with bench.db.read() as session:
        assert session.get(Model, model.id) is None


def test_a_model_of_rows_that_an_erasure_has_replaced_is_found_again(bench: Workbench) -> None:
    rows = rows_of()
    old = bench.ready(as_csv(rows), label="left", drop="customer", name="people")
    model = bench.model(bench.work_on(old, name="plain"))
    for entity in (MARK, str(rows[0][0])):
        found, job = erase(bench, entity)
        assert job.state == "succeeded", job.error
        report = found.erasure.report
        assert report is not None
        assert [each["model_id"] for each in report["models"]] == [model.id]


@on_both
@pytest.mark.parametrize("original", [True, False])
def test_an_imported_copy_of_a_model_with_rows_is_retired(bench: Workbench, original: bool) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    clean = bench.ready(as_csv(rows_of(marked=())), label="left", drop="customer", name="clean")
    kernel = {"name": "auc_svm", "feature_map": "nystroem", "n_components": 20}
    first, copy = (
        bench.model(bench.work_on(old, algorithm=kernel, name=name)) for name in ("first", "copy")
    )
    imported = {
        "source": "Rankwright",
        "sha256": first.artifact_sha256 if original else "0" * 64,
        "dataset_sha256": None if original else old.sha256,
        "model": None,
        "imported_by": None,
    }
    of_clean = {"id": clean.id, "name": "clean", "version": 1, "sha256": clean.sha256}
    with bench.db.write() as session:
        changed = {"dataset_id": clean.id, "imported": imported, "dataset": of_clean}
        session.execute(update(Model).where(Model.id == copy.id).values(changed))
    found, job = erase(bench, retire_models=True)
    assert job.state == "succeeded", job.error
    report = found.erasure.report
    assert report is not None
    retired = {each["model_id"] for each in report["models"] if each["retired"]}
    assert retired == {first.id, copy.id}


@on_both
def test_a_model_whose_dataset_is_gone_is_named(bench: Workbench) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    model = bench.model(bench.work_on(old, name="plain"))
    with bench.db.write() as session:
        session.execute(delete(Dataset).where(Dataset.id == old.id))
    found, job = erase(bench)
    assert job.state == "succeeded", job.error
    report = found.erasure.report
    assert report is not None
    remaining = [each for each in report["remains"] if each["what"] == "values_in_models"]
    assert [each["resource"] for each in remaining] == [model.id]


def test_jobs_on_the_rows_are_cancelled_and_cannot_bring_them_back(bench: Workbench) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    running = bench.submit(old)
    claim = bench.claim()
    payload = bench.prepare(claim)
    result = execution.run(payload, quiet)
    queued = bench.submit(old)
    subscribe(bench.db, OWNER)
    made = request(bench)
    with bench.db.write() as session:  # the erasure comes first
        session.execute(update(Job).where(Job.id == queued.id).values(not_before=1e12))
    job = bench.work()
    while job.state == "queued":
        job = bench.work()
    found = bench.db.reading(erasures.find, OWNER, made.erasure.id)
    assert job.state == "succeeded", job.error
    assert found.erasure.report is not None
    assert found.erasure.report["cancelled_jobs"] == sorted([running.id, queued.id])
    events = recorded(bench.db, OWNER)
    cancelled = [data["id"] for type_, data in events if type_ == "job.cancelled"]
    assert sorted(cancelled) == sorted([running.id, queued.id])
    assert [data["id"] for type_, data in events if type_ == "dataset.ready"] not in ([], [old.id])
    with pytest.raises(LeaseLost):
        bench.complete(claim, result)
    with bench.db.read() as session:
        assert session.scalars(select(Model)).all() == []


def test_a_dataset_that_is_deleted_meanwhile_ends_no_erasure(bench: Workbench) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer")
    made = request(bench)
    claim = bench.claim()
    result = execution.run(bench.prepare(claim), quiet)
    with bench.db.write() as session:
        session.execute(delete(Dataset).where(Dataset.id == old.id))
    bench.complete(claim, result)
    assert bench.work().state == "succeeded"
    found = bench.db.reading(erasures.find, OWNER, made.erasure.id)
    assert found.erasure.report is not None
    assert found.erasure.report["datasets"] == []


def test_a_hold_postpones_an_erasure(bench: Workbench) -> None:
    old = bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    admin = Caller(owner=OWNER, scopes=frozenset({"admin"}), name="legal")
    hold = bench.db.writing(holds.place, admin, "dataset", old.id, "a case")
    found, job = erase(bench)
    assert job.error["code"] == "on_hold"
    assert found.state == "on_hold"
    assert [each.id for each in all_datasets(bench)] == [old.id]
    with pytest.raises(Conflict) as refused:
        bench.db.writing(datasets.delete, OWNER, old.id)
    assert refused.value.code == "on_hold"
    bench.db.writing(holds.release, admin, hold.id, "closed")
    bench.db.writing(jobs.retry, bench.settings, OWNER, job.id)
    job = bench.work()
    while job.state == "queued":
        job = bench.work()
    assert job.state == "succeeded", job.error
    assert bench.db.reading(erasures.find, OWNER, found.erasure.id).state == "settling"
    assert all_datasets(bench)[0].rows == 198


def test_the_last_round_of_an_erasure_counts(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    monkeypatch.setattr("app.erasure.tasks.MAX_ROUNDS", 1)
    found, job = erase(bench)
    assert (job.state, job.error and job.error["code"]) == ("failed", "erasure_not_clean")
    assert [each.rows for each in all_datasets(bench)] == [198]
    assert found.state == "failed"
    bench.db.writing(jobs.retry, bench.settings, OWNER, job.id)
    assert bench.work().state == "succeeded"
    assert bench.db.reading(erasures.find, OWNER, found.erasure.id).state == "settling"


def test_an_erasure_outlives_an_outage_unless_it_has_failed(bench: Workbench) -> None:
    bench.ready(as_csv(rows_of()), label="left", drop="customer")
    job_id = request(bench).erasure.job_id or ""
    with bench.db.write() as session:
        session.execute(update(Erasure).values(due_at=1.0))
    assert bench.db.writing(expire_erasures, 10) == 0
    bench.db.writing(jobs.cancel, OWNER, job_id)
    assert bench.db.writing(expire_erasures, 10) == 1
    bench.db.writing(jobs.retry, bench.settings, OWNER, job_id)
    job = bench.work()
    assert (job.state, job.error and job.error["code"]) == ("failed", "erasure_expired")


@on_both
@pytest.mark.parametrize("seam", ["erase_version", *rest("adopt", "adopted", "erase", "finish")])
def test_killed_anywhere_it_starts_again(bench: Workbench, seam: str) -> None:
    bench.ready(as_csv(rows_of()), label="left", drop="customer", name="people")
    made = request(bench)
    assert mortal_worker.work(sharing(bench), f"{seam}=kill") != 0
    hear_nothing(bench.db)
    Reaper(bench.db, bench.settings).reap()
    with bench.db.write() as session:
        session.execute(update(Job).values(not_before=0.0))
    while bench.work().state == "queued":
        pass
    found = bench.db.reading(erasures.find, OWNER, made.erasure.id)
    assert found.state == "settling"
    (new,) = all_datasets(bench)
    assert new.rows == 198
    assert_no_blob_has(bench, MARK)
