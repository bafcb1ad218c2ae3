"""Parts of a dataset whose readers are killed, or whose disk is full: with the leases of production."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select, update

from app.datasets import parts
from app.datasets import service as datasets
from app.jobs import service as jobs
from app.jobs.dispatcher import Reaper
from app.operations.sweeping import sweep
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.tables import Dataset, Job
from tests.app.live_service import table
from tests.app.mortal_worker import work
from tests.app.queue_steps import hear_nothing
from tests.app.training_jobs import sharing
from tests.app.version_steps import made
from tests.app.workbench import OWNER, Workbench
from tests.chaos.disk import Disk
from tests.long_form import long_form

N_PARTS = 3
FIELDS = {"name": "people", "label": "left", "positive": "yes"}
SEAMS = [
    "claimed=kill",  # the job is somebody's, and nothing planned
    "fan_out=kill",
    "fit=kill@2",  # in the middle of the second part; the first one is read
    "adopted=kill",  # a file of the second part is there, and no row names it
    "finish=kill@2",  # the second part is read, and the end of the third not committed
    "join=kill",
    "fit=kill",  # while the parts are put together
    "adopted=kill",  # the table is there, and no row names it
    "finish=kill",
    "finished=kill",  # all is done but for what is left to clear away
]
"""What kills one worker after the other, on the way of one upload from its close to the dataset."""


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Workbench:
    return Workbench(db, tmp_path / "state")


def bodies(rows: int = 120) -> list[str]:
    head, *lines = table(rows).splitlines()
    cuts = [lines[i::N_PARTS] for i in range(N_PARTS)]
    return ["\n".join([head, *cut, ""]) for cut in cuts]


def closed(bench: Workbench, texts: list[str], **fields: str) -> Dataset:
    """Accept parts as the API does, and close the upload; its job is queued."""
    with bench.db.write() as session:
        upload = parts.open_upload(session, bench.settings, OWNER, fields or FIELDS)
    for number, text in enumerate(texts, start=1):
        received = bench.received(text)
        with bench.db.write() as session:
            parts.add_part(session, bench.settings, OWNER, upload.id, number, received)
    with bench.blobs.writer("uploads") as writer, bench.db.write() as session:
        writer.write(parts.manifest(session, OWNER, upload.id))
        dataset, _ = parts.close(session, bench.settings, OWNER, upload.id, len(texts), writer)
    return dataset


def found(bench: Workbench, dataset: Dataset) -> Dataset:
    return bench.db.reading(datasets.find, OWNER, dataset.id)


def attempts_of(bench: Workbench, dataset: Dataset) -> list[tuple[str, int]]:
    """State and number of attempts of each part, in their order."""
    with bench.db.read() as session:
        statement = select(Job.state, Job.attempt).where(Job.parent_id == dataset.job_id)
        return [(state, n) for state, n in session.execute(statement.order_by(Job.part))]


def worked(bench: Workbench, seam: str = "") -> int:
    """Work until there is nothing to do, or until the worker dies at the seam; returns its exit code."""
    return work(sharing(bench), seam)


def let_leases_run_out(bench: Workbench) -> None:
    """Have the reaper notice that a worker is gone, and skip the delay of its job."""
    hear_nothing(bench.db)
    Reaper(bench.db, bench.settings).reap()
    forget_delays(bench)


def forget_delays(bench: Workbench) -> None:
    with bench.db.write() as session:
        session.execute(update(Job).values(not_before=0.0))


def left_of_parts(blobs: FolderStore) -> list[Path]:
    """The files that only the job needs."""
    return [path for path in (blobs.root / "parts").rglob("*") if path.is_file()]


def table_of(bench: Workbench, dataset: Dataset) -> bytes:
    return bench.blobs.path(dataset.table_key or "").read_bytes()


def check_same(bench: Workbench, made: Dataset, wanted: Dataset) -> None:
    """Check that two datasets have the same rows, bit by bit, and the same description."""
    assert (made.status, made.errors) == ("ready", [])
    same = ("rows", "positives", "columns", "warnings", "sha256", "table_bytes")
    assert table_of(bench, made) == table_of(bench, wanted)
    assert {name: getattr(made, name) for name in same} == {
        name: getattr(wanted, name) for name in same
    }


@long_form
def test_killed_at_every_seam_nothing_is_lost_or_doubled(bench: Workbench) -> None:
    texts = bodies()
    wanted = closed(bench, texts)
    assert worked(bench) == 0
    bench.settings = bench.settings.model_copy(update={"job_max_attempts": 99})
    dataset = closed(bench, texts)
    for seam in SEAMS:
        assert worked(bench, seam) == -9, seam
        let_leases_run_out(bench)
    assert worked(bench) == 0
    check_same(bench, found(bench, dataset), found(bench, wanted))
    assert [state for state, _ in attempts_of(bench, dataset)] == ["succeeded"] * N_PARTS


@long_form
def test_parts_that_are_added_to_a_table_outlive_their_readers(bench: Workbench) -> None:
    texts = bodies()
    first, second = (bench.ready(table(seed=1), **FIELDS) for _ in range(2))
    rows = [line for text in texts for line in text.splitlines()[1:]]
    one_file = made(bench, first.id, "\n".join([texts[0].splitlines()[0], *rows, ""]))
    dataset = closed(bench, texts, version_of=second.id)
    for seam in ("fit=kill", "fit=kill@2"):  # the table itself, and the first part after it
        assert worked(bench, seam) == -9
        let_leases_run_out(bench)
    assert worked(bench) == 0
    wanted = [("succeeded", 2), ("succeeded", 2), ("succeeded", 1), ("succeeded", 1)]
    assert attempts_of(bench, dataset) == wanted
    several = found(bench, dataset)
    assert several.rows == one_file.rows
    assert table_of(bench, several) == table_of(bench, one_file)


def test_files_of_parts_go_when_the_dataset_is_ready(bench: Workbench) -> None:
    """Those of another dataset with the very same parts stay until they are put together."""
    texts = bodies()
    later = closed(bench, texts)
    assert worked(bench, f"finished=kill@{1 + N_PARTS}") == -9  # all parts are read
    with bench.db.write() as session:
        session.execute(update(Job).where(Job.id == later.job_id).values(not_before=1e12))
    assert [state for state, _ in attempts_of(bench, later)] == ["succeeded"] * N_PARTS
    kept = sorted(left_of_parts(bench.blobs))
    assert kept
    first = closed(bench, texts)
    assert worked(bench) == 0
    assert found(bench, first).status == "ready"
    assert sorted(left_of_parts(bench.blobs)) == kept
    forget_delays(bench)
    assert worked(bench) == 0
    assert left_of_parts(bench.blobs) == []
    check_same(bench, found(bench, later), found(bench, first))


@pytest.mark.parametrize("how", ["a bad part", "cancelled"])
def test_files_of_parts_go_when_nothing_comes_of_them(bench: Workbench, how: str) -> None:
    """A retry would write them once more: they count for no quota."""
    texts = bodies()
    if how == "cancelled":
        dataset = closed(bench, texts)
        assert (
            worked(bench, "finished=kill@2") == -9
        )  # one part is read, and the job waits for the others
        assert left_of_parts(bench.blobs)
        job_id = str(dataset.job_id)
        bench.db.writing(jobs.cancel, OWNER, job_id)
        sweep(bench.db, bench.blobs, bench.settings)
    else:
        texts[2] = texts[2].replace("yes", "maybe")
        dataset = closed(bench, texts, **FIELDS, strict="true")
        assert worked(bench) == 0
    assert found(bench, dataset).status == "invalid"
    assert left_of_parts(bench.blobs) == []


@long_form
def test_a_full_disk_ends_the_attempt_of_a_part_and_the_next_goes_on(
    sqlite_url: str, tmp_path: Path
) -> None:
    try:
        disk = Disk(tmp_path / "state")
    except OSError as error:
        pytest.skip(str(error))
    db = Database(sqlite_url)
    try:
        bench = Workbench(db, tmp_path / "state")
        texts = bodies(60_000)
        wanted = closed(bench, texts)
        assert worked(bench) == 0
        dataset = closed(bench, texts)
        assert worked(bench, "claimed=kill@2") == -9  # it is planned
        let_leases_run_out(bench)
        assert disk.fill()
        assert worked(bench) == 0
        attempts = attempts_of(bench, dataset)
        assert attempts == [("queued", 2), ("queued", 1), ("queued", 1)]
        assert found(bench, dataset).status == "processing"
        assert (left_of_parts(bench.blobs), bench.left_over()) == ([], [])
        assert disk.make_room()
        forget_delays(bench)
        assert worked(bench) == 0
        check_same(bench, found(bench, dataset), found(bench, wanted))
    finally:
        db.close()
        disk.close()
