"""The log of decisions: nothing is doubled, and what is lost is counted, wherever a process is killed."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import select

from app.feedback import log as logs
from app.feedback.log import DecisionLog
from app.feedback.segments import read_segments
from app.platform import catalogue, failpoints
from app.platform.blobs import Blob, FolderStore
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.tables import DecisionSegment
from tests.app.feedback.mortal_log import ROWS, STREAM, piece
from tests.app.workbench import on_both
from tests.long_form import long_form, rest
from tests.raising import raises

COUNT = 40


class Bench:
    """A database, a blob store, and the logs of some processes in one folder."""

    def __init__(self, db: Database, folder: Path) -> None:
        self.db, self.folder = db, folder
        self.blobs = FolderStore(folder / "blobs")
        self.logs: list[DecisionLog] = []

    def log(self, **given: Any) -> DecisionLog:
        """The log of another process."""
        self.logs.append(DecisionLog(self.files, self.blobs, self.db.writing, **given))
        return self.logs[-1]

    @property
    def files(self) -> Path:
        return self.folder / "decisions"

    def segments(self) -> list[DecisionSegment]:
        with self.db.read() as session:
            statement = select(DecisionSegment).order_by(
                DecisionSegment.log_id, DecisionSegment.first_sequence
            )
            rows = list(session.scalars(statement))
            session.expunge_all()
        return rows

    def table(self) -> pa.Table:
        """All recorded decisions."""
        found: list[Blob] = []
        with self.db.read() as session:
            for row in self.segments():
                found.append(catalogue.find(session, row.segment_key))
        columns = ["decision_id", "score", "id", "feature.age", "feature.town"]
        batches = list(read_segments(self.blobs, found, columns))
        return pa.Table.from_batches(batches) if batches else pa.table({"decision_id": []})

    def check(self, appended: int) -> int:
        """Assert that no decision is doubled, and that each of so many is there or counted; return the lost ones."""
        table, segments = self.table(), self.segments()
        ids = table.column("decision_id").to_pylist()
        assert len(set(ids)) == len(ids) == sum(row.rows for row in segments)
        lost = sum(row.lost for row in segments)
        assert len(ids) + lost == appended
        for before, after in itertools.pairwise(segments):
            if before.log_id == after.log_id:
                assert after.first_sequence == before.last_sequence + 1
        return lost


@pytest.fixture
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    db = Database(request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url"))
    yield Bench(db, tmp_path)
    db.close()


@on_both
def test_decisions_are_sealed_with_all_their_columns(bench: Bench) -> None:
    log = bench.log()
    for number in range(COUNT):
        log.append(STREAM, piece(number * ROWS))
    log.flush()
    assert bench.check(COUNT * ROWS) == 0
    table = bench.table()
    np.testing.assert_array_equal(table.column("score"), np.arange(COUNT * ROWS))
    assert table.column("feature.age").to_pylist() == table.column("score").to_pylist()
    assert table.column("feature.town")[-1].as_py() == f"town {(COUNT - 1) * ROWS}"
    assert table.column("id").to_pylist()[:4] == ["c0", None, None, "c3"]
    (segment,) = bench.segments()
    assert (segment.first_sequence, segment.last_sequence) == (1, COUNT * ROWS)
    assert segment.last_at - segment.first_at == (COUNT - 1) * ROWS
    assert list(bench.files.iterdir()) == []
    log.append(STREAM, piece(0))
    log.flush()
    assert [row.first_sequence for row in bench.segments()] == [1, COUNT * ROWS + 1]


@long_form
@pytest.mark.parametrize("point", ["adopted", *rest("seal", "adopt", "segment", "sealed", None)])
def test_a_killed_process_loses_nothing_that_it_answered(bench: Bench, point: str | None) -> None:
    url = bench.db.url.render_as_string(hide_password=False)
    process = subprocess.run(
        [sys.executable, "-m", "tests.app.feedback.mortal_log", url, bench.folder, str(COUNT)],
        env=os.environ | ({} if point is None else {failpoints.VARIABLE: f"{point}=kill"}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert process.stdout == "logged\n"
    assert process.returncode == (0 if point is None else -signal.SIGKILL)
    there = point in ("sealed", None)
    assert len(bench.segments()) == there
    log = bench.log()
    assert log.recover() == (point is not None)
    assert log.recover() == 0
    assert bench.check(COUNT * ROWS) == 0
    assert list(bench.files.iterdir()) == []


def test_a_living_process_keeps_its_files(bench: Bench) -> None:
    log = bench.log()
    log.append(STREAM, piece(0))
    assert bench.log().recover() == 0
    log.append(STREAM, piece(3))
    log.flush()
    assert bench.check(6) == 0


def killed(log: DecisionLog) -> Path:
    """End a log as a kill would; return its only file."""
    (file,) = log.files()
    file.release()
    return file.path


def test_a_record_that_was_being_written_is_lost_and_counted(bench: Bench) -> None:
    log = bench.log()
    log.append(STREAM, piece(0))
    (file,) = log.files()
    file.skip(5)  # the number is written first
    killed(log)
    assert bench.log().recover() == 1
    assert bench.check(ROWS + 5) == 5


def test_what_follows_a_damaged_record_is_lost_and_counted(bench: Bench) -> None:
    log = bench.log()
    for number in range(COUNT):
        log.append(STREAM, piece(number * ROWS))
    path = killed(log)
    content = bytearray(path.read_bytes())
    place = content.index(b"req_60")
    content[place] ^= 1
    path.write_bytes(content)
    assert bench.log().recover() == 1
    assert bench.check(COUNT * ROWS) == (COUNT - 20) * ROWS


def test_a_file_that_is_no_log_is_set_aside(bench: Bench) -> None:
    bench.files.mkdir()
    for name, content in {"a.log": b"", "b.log": b"what is this" * 100}.items():
        (bench.files / name).write_bytes(content)
    bench.log().recover()
    assert bench.segments() == []
    assert {path.suffix for path in bench.files.iterdir()} == {".damaged"}
    assert bench.log().recover() == 0


def test_a_full_log_drops_and_counts(bench: Bench) -> None:
    lost: list[int] = []
    log = bench.log(max_bytes=1 << 19, on_lost=lost.append)
    n = 0
    while sum(lost) < 300:
        log.append(STREAM, piece(n))
        n += ROWS
    assert sum(path.stat().st_size for path in bench.files.iterdir()) <= 1 << 19
    log.flush()
    log.append(STREAM, piece(n))
    log.flush()
    assert bench.check(n + ROWS) == sum(lost)


def test_it_waits_while_the_store_is_away(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    log, is_away = bench.log(max_bytes=1 << 19), True
    move_in = FolderStore.move_in

    def refuse(store: FolderStore, file: Path, key: str) -> None:
        if is_away:
            raise Unavailable("the blob store is away")
        move_in(store, file, key)

    monkeypatch.setattr(FolderStore, "move_in", refuse)
    for n in range(0, 30_000, ROWS):
        log.append(STREAM, piece(n))
        if n % 10_000 == 0:
            with pytest.raises(Unavailable):
                log.flush()
    is_away = False
    log.flush()
    assert 0 < bench.check(30_000) < 30_000


def test_an_unwritable_folder_loses_and_counts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = bench.log()
    bench.files.write_text("in the way")
    log.append(STREAM, piece(0))
    bench.files.unlink()
    monkeypatch.setattr(logs, "TICK_SECONDS", 0.0)
    log.append(STREAM, piece(3))
    log.flush()
    assert bench.check(6) == 3


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_no_more_loses_and_counts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    log, is_full = bench.log(), True
    allocate, staging_dir = os.posix_fallocate, FolderStore.staging_dir

    def refuse_space(descriptor: int, offset: int, size: int) -> None:
        if is_full:
            raise OSError(code, os.strerror(code))
        allocate(descriptor, offset, size)

    def refuse_folder(store: FolderStore) -> Path:
        if is_full:
            raise OSError(code, os.strerror(code))
        return staging_dir(store)

    monkeypatch.setattr(os, "posix_fallocate", refuse_space)
    monkeypatch.setattr(FolderStore, "staging_dir", refuse_folder)
    monkeypatch.setattr(logs, "TICK_SECONDS", 0.0)
    log.append(STREAM, piece(0))
    assert list(bench.files.iterdir()) == []
    is_full = False
    log.append(STREAM, piece(3))
    is_full = True  # what is in the log waits
    with raises(OSError, code):
        log.flush()
    log.append(STREAM, piece(6))
    is_full = False
    log.append(STREAM, piece(9))
    log.flush()
    assert bench.check(12) == 6


def test_two_processes_that_find_the_files_of_a_third_store_them_once(bench: Bench) -> None:
    log = bench.log()
    log.append(STREAM, piece(0))
    log.append(STREAM._replace(alias="other"), piece(3))
    for file in list(log.files()):
        file.release()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: bench.log().recover(), range(4)))
    assert sum(found) == 2
    assert bench.check(6) == 0


def test_a_clock_may_be_set_back(bench: Bench) -> None:
    log = bench.log()
    log.append(STREAM, piece(600))
    log.append(STREAM, piece(0))
    log.append(STREAM, piece(300))
    log.flush()
    (segment,) = bench.segments()
    assert segment.last_at - segment.first_at == 600
    assert bench.check(9) == 0


def test_the_decisions_of_two_owners_are_apart(bench: Bench) -> None:
    log, theirs = bench.log(), STREAM._replace(owner="theirs")
    for number in range(0, 12, 2 * ROWS):
        log.append(STREAM, piece(number))
        log.append(theirs, piece(number + ROWS))
    log.flush()
    assert sorted((row.owner, row.rows, row.first_sequence) for row in bench.segments()) == [
        ("ours", 6, 1),
        ("theirs", 6, 1),
    ]
    assert len({row.log_id for row in bench.segments()}) == 2


def test_the_bytes_of_files_that_wait_are_known(bench: Bench) -> None:
    known: list[int] = []
    log = bench.log(on_bytes=known.append)
    log.append(STREAM, piece(0))
    assert known[-1] == sum(path.stat().st_size for path in bench.files.iterdir())
    log.flush()
    assert known[-1] == 0


def test_other_features_begin_another_file(bench: Bench) -> None:
    log = bench.log()
    log.append(STREAM, piece(0))
    log.append(STREAM._replace(features=STREAM.features[::-1]), piece(3))
    log.append(STREAM, piece(6))
    log.flush()
    assert bench.check(9) == 0
    assert len(bench.segments()) == 3
    table = bench.table().to_pylist()
    assert [row["feature.age"] for row in table] == [row["score"] for row in table]


def test_a_repeated_decision_is_stored_once(bench: Bench) -> None:
    log, once = bench.log(), piece(0)
    log.append(STREAM, once)
    log.append(STREAM, once)
    log.append(STREAM, piece(3))
    log.flush()
    (segment,) = bench.segments()
    assert (segment.rows, segment.lost, segment.last_sequence) == (6, 0, 9)


def test_a_large_table_waits_for_space(bench: Bench) -> None:
    lost: list[int] = []
    log = bench.log(max_bytes=1 << 19, on_lost=lost.append)
    stop = threading.Event()

    def seal() -> None:
        while not stop.is_set():
            log.flush()

    sealing = threading.Thread(target=seal)
    sealing.start()
    try:
        for n in range(0, 15_000, ROWS):
            log.append(STREAM, piece(n), wait=True)
    finally:
        stop.set()
        sealing.join()
    log.flush()
    assert lost == []
    assert bench.check(15_000) == 0


def test_threads_share_a_log(bench: Bench) -> None:
    log = bench.log()

    def work(start: int) -> Callable[[], None]:
        def run() -> None:
            for n in range(start, start + 3000, ROWS):
                log.append(STREAM, piece(n))
                if n % 999 == 0:
                    log.flush()

        return run

    threads = [threading.Thread(target=work(k * 3000)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.flush()
    assert bench.check(12_000) == 0
    assert sorted(bench.table().column("score").to_pylist()) == list(range(12_000))


def test_closing_seals(bench: Bench) -> None:
    log = bench.log()
    log.start()
    log.append(STREAM, piece(0))
    log.close()
    assert bench.check(ROWS) == 0
