"""Compaction of decisions: what a warehouse copies, and what is left if the process ends at any step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import select, update

from app.feedback import compaction, repository, service, upkeep
from app.feedback import log as logs
from app.feedback.segments import read_segments
from app.operations.housekeeping import Housekeeper
from app.platform import catalogue, failpoints
from app.platform.blobs import Blob
from app.platform.database import Database
from app.platform.failpoints import FailpointError
from app.platform.settings import Settings
from app.platform.tables import BlobEntry, DecisionSegment, Erasure
from tests.app.feedback.mortal_log import ROWS, STREAM, piece
from tests.app.feedback.test_log import Bench
from tests.app.workbench import on_both
from tests.long_form import LONG_FORM, one_in

OWNER = STREAM.owner
DAY = 86_400.0


def midnight() -> float:
    """Return the beginning of the day, at each call: a run may last past it."""
    return time.time() // DAY * DAY


class Kept(Bench):
    """Logs in one folder, and the housekeeping of their segments."""

    def __init__(self, db: Database, folder: Path) -> None:
        super().__init__(db, folder)
        self.settings = Settings(state_dir=folder)

    def keeper(self) -> Housekeeper:
        return Housekeeper(self.db, self.blobs, self.settings, threading.Event())

    def compact(self) -> int:
        """Compact; returns the number of segments that became final."""
        keep = upkeep.Files(self.db.reading, self.db.writing, self.blobs, lambda keys: 0)
        return compaction.compact(keep, OWNER)

    def sealed(self, log: logs.DecisionLog, *numbers: int, **given: Any) -> list[int]:
        """Seal each of some pieces into a segment of its own; return the scores of all."""
        for number in numbers:
            log.append(STREAM, piece(number, start=midnight(), **given))
            log.flush()
        return [number + row for number in numbers for row in range(ROWS)]

    def age(self) -> None:
        """Let all segments that are not final be of the day before."""
        columns = (DecisionSegment.sealed_at, DecisionSegment.first_at, DecisionSegment.last_at)
        with self.db.write() as session:
            session.execute(
                update(DecisionSegment)
                .where(DecisionSegment.final_at.is_(None))
                .values({column: column - DAY for column in columns})
            )

    def scores(self) -> list[float]:
        """The scores of all decisions, in their order."""
        scores: list[float] = self.table().column("score").to_pylist()
        return sorted(scores)

    def copied(self, after: str | None = None, most: int = 1000) -> tuple[list[float], str | None]:
        """What a warehouse copies that continues from a cursor, and where it stands then."""
        copied: list[float] = []
        for _ in range(most):
            page, blobs = self.db.reading(
                service.list_files, OWNER, None, None, limit=1, after=after
            )
            for row in page.data:
                for batch in read_segments(self.blobs, [blobs[row.segment_key]], ["score"]):
                    copied += batch.column(0).to_pylist()
            after = page.next
            if not page.has_more:
                break
        return copied, after

    def finals(self) -> list[DecisionSegment]:
        return [row for row in self.segments() if row.final_at is not None]


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kept]:
    monkeypatch.setattr(repository, "SETTLED_SECONDS", -1.0)
    db = Database(request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url"))
    yield Kept(db, tmp_path)
    db.close()


@on_both
def test_past_days_of_a_process_become_one_segment(bench: Kept) -> None:
    one, two = bench.log(), bench.log()
    wanted = bench.sealed(one, 0, 30, 60) + bench.sealed(two, 100, 130)
    bench.age()
    wanted += bench.sealed(one, 200)
    before = bench.segments()
    assert bench.compact() == 5
    assert bench.compact() == 0
    after = bench.segments()
    assert len(after) == 3
    assert bench.scores() == wanted
    assert bench.check(len(wanted)) == 0
    for attribute, total in (("rows", sum), ("lost", sum), ("first_at", min), ("last_at", max)):
        assert total(getattr(row, attribute) for row in before) == total(
            getattr(row, attribute) for row in after
        )
    assert max(row.sealed_at for row in bench.finals()) < min(
        row.sealed_at for row in after if row.final_at is None
    )
    assert sorted(bench.copied()[0]) == wanted[:-3]


@on_both
def test_a_warehouse_copies_each_decision_once(bench: Kept) -> None:
    """At every step, one continues that copies one file a time, one that copies all, and one begins."""
    log, other = bench.log(), bench.log()
    slow: list[float] = []
    fast: list[float] = []
    slow_at = fast_at = None
    wanted: list[float] = []
    for day in range(3 if LONG_FORM else 2):
        wanted += bench.sealed(log, *range(100 * day, 100 * day + 30, ROWS))
        wanted += bench.sealed(other, 100 * day + 50)
        for work in (bench.compact, bench.age, bench.compact):
            work()
            some, slow_at = bench.copied(slow_at, most=1)
            slow += some
            some, fast_at = bench.copied(fast_at)
            fast += some
            assert sorted(bench.copied()[0]) == sorted(fast)
            assert bench.scores() == sorted(wanted)
    slow += bench.copied(slow_at)[0]
    assert sorted(slow) == sorted(fast) == wanted


def test_the_segments_of_another_owner_stay_as_they_are(bench: Kept) -> None:
    log = bench.log()
    bench.sealed(log, 0, 3)
    for number in (50, 53):
        log.append(STREAM._replace(owner="theirs"), piece(number, start=midnight()))
        log.flush()
    bench.age()
    assert bench.compact() == 2
    assert sorted((row.owner, row.rows) for row in bench.segments()) == [
        ("ours", 6),
        ("theirs", 3),
        ("theirs", 3),
    ]
    assert bench.copied()[0] == [0, 1, 2, 3, 4, 5]


def test_many_decisions_do_not_wait_for_the_next_day(
    bench: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "COMPACTED_ROWS", 10)
    log = bench.log()
    bench.sealed(log, *range(0, 30, ROWS))
    assert bench.compact() == 9
    assert [row.rows for row in bench.finals()] == [9, 9, 9]
    bench.age()
    assert bench.compact() == 1
    assert bench.check(30) == 0


def test_each_segment_begins_on_one_day(bench: Kept) -> None:
    """Also a file that was sealed just after midnight: its decisions, and its losses, are of the day before.
    Midnight is of the new day.
    """
    log = bench.log()
    for number in (-172_803, -90_000, -30, 0, 20):
        log.append(STREAM, piece(number, start=midnight()))
        log.flush()
    assert bench.compact() == 3
    assert [row.first_at - midnight() for row in bench.finals()] == [-172_803, -90_000, -30]
    assert bench.check(5 * ROWS) == 0
    bench.age()
    assert bench.compact() == 2
    assert [row.rows for row in bench.finals()] == [3, 3, 3, 6]


def test_a_repeated_decision_is_stored_once(bench: Kept) -> None:
    one, two = bench.log(), bench.log()
    ids = ["dec_" + f"{n:032x}" for n in range(ROWS)]
    bench.sealed(one, 0, 0, decision_ids=ids)  # a repeated request
    bench.sealed(one, 0)  # the same rows asked for again
    bench.sealed(two, 0, decision_ids=ids)  # a repetition that another process answered
    bench.sealed(two, 50)
    bench.age()
    assert bench.compact() == 5
    assert sorted(bench.copied()[0]) == [0, 0, 1, 1, 2, 2, 50, 51, 52]
    bench.sealed(two, 0, decision_ids=ids)
    bench.age()
    assert bench.compact() == 1
    assert [row.rows for row in bench.finals() if row.log_id == bench.segments()[-1].log_id]
    assert len(bench.copied()[0]) == 9


def test_other_columns_and_gaps_begin_another_segment(bench: Kept) -> None:
    log = bench.log()
    wanted = bench.sealed(log, 0, 3)
    log.append(STREAM._replace(features=STREAM.features[::-1]), piece(6, start=midnight()))
    log.flush()
    wanted += [6, 7, 8, *bench.sealed(log, 9, 12, 15)]
    with bench.db.write() as session:  # this file of the log is sealed later
        (gap,) = session.scalars(
            select(DecisionSegment).where(DecisionSegment.first_at % 100 == 12)
        )
        session.delete(gap)
    bench.age()
    while bench.compact():
        pass
    assert [row.first_sequence for row in bench.finals()] == [1, 7, 10, 16]
    assert bench.scores() == [each for each in wanted if each not in (12, 13, 14)]
    row = {name: getattr(gap, name) for name in DecisionSegment.__table__.columns.keys()}  # noqa: SIM118
    del row["sealed_at"]
    blob = catalogue_of(bench, gap.segment_key)
    with bench.db.write() as session:
        session.delete(session.get_one(BlobEntry, gap.segment_key))
    assert bench.db.writing(repository.add_segment, row, blob)
    assert bench.scores() == wanted


def catalogue_of(bench: Kept, key: str) -> Blob:
    with bench.db.read() as session:
        return catalogue.find(session, key)


def test_a_log_that_is_sealed_again_is_recognised(bench: Kept) -> None:
    log = bench.log()
    log.append(STREAM, piece(0, start=midnight()))
    bench.sealed(log, 3)  # both in one segment
    log.append(STREAM, piece(6, start=midnight()))
    (file,) = log.files()
    content, name = file.path.read_bytes(), file.path
    bench.sealed(log, 9)
    bench.age()
    assert bench.compact() == 2
    name.write_bytes(content)  # its process was killed before it deleted the file
    assert bench.log().recover() == 1
    assert bench.scores() == list(range(12))
    assert len(bench.segments()) == 1


def test_a_damaged_file_does_not_stop_the_others(bench: Kept) -> None:
    log, other = bench.log(), bench.log()
    bench.sealed(log, 0, 3, 6)
    bench.sealed(other, 50, 53)
    damaged = next(row for row in bench.segments() if row.first_at % 100 == 3)
    path = bench.blobs.path(damaged.segment_key)
    path.write_bytes(b"x" * path.stat().st_size)
    bench.age()
    assert bench.compact() == 5
    assert sorted(row.rows for row in bench.finals()) == [3, 3, 3, 6]
    path.unlink()
    assert bench.compact() == 0


@pytest.mark.parametrize(("point", "nth"), one_in(5, ["adopted", "rewrite", "rewritten"], [1, 2]))
def test_a_process_that_ends_at_a_step_loses_nothing(
    bench: Kept, monkeypatch: pytest.MonkeyPatch, point: str, nth: int
) -> None:
    wanted = bench.sealed(bench.log(), 0, 3, 6) + bench.sealed(bench.log(), 50, 53)
    bench.age()
    copied, after = bench.copied()
    monkeypatch.setattr(failpoints, "armed", failpoints.parse(f"{point}=raise@{nth}"))
    with pytest.raises(FailpointError):
        bench.compact()
    assert bench.scores() == wanted
    some, after = bench.copied(after)
    copied += some
    bench.compact()
    assert bench.scores() == wanted
    assert sorted(copied + bench.copied(after)[0]) == wanted
    assert len(bench.segments()) == 2


def test_the_old_files_stay_for_readers_and_are_then_deleted(bench: Kept) -> None:
    bench.sealed(bench.log(), 0, 3, 6)
    bench.age()
    with bench.db.write() as session:
        session.execute(update(BlobEntry).values(published_at=1.0))
    old = {row.segment_key for row in bench.segments()}
    bench.keeper().round()
    there = {each.key for each in bench.blobs.list("decisions")}
    (final,) = bench.segments()
    assert there == old | {final.segment_key}
    with bench.db.write() as session:
        session.execute(update(BlobEntry).values(published_at=1.0))
    bench.keeper().round()
    assert {each.key for each in bench.blobs.list("decisions")} == {final.segment_key}


def test_an_erasure_in_the_middle_of_a_compaction_wins(
    bench: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.sealed(bench.log(), 0, 3)
    bench.age()
    keep = upkeep.Files(bench.db.reading, bench.db.writing, bench.blobs, lambda keys: 0)
    with bench.db.write() as session:
        session.add(Erasure(id="era_1", owner=OWNER, entity_id="c0", requested_at=0.0, due_at=1.0))
    done: list[int] = []

    def erase() -> None:
        if not done:
            done.append(1)
            upkeep.erase(keep, OWNER)

    monkeypatch.setattr(failpoints, "armed", {"rewrite": erase})
    assert bench.compact() == 0
    assert bench.compact() == 2
    assert bench.scores() == [1, 2, 3, 4, 5]


def test_two_dispatchers_store_a_repeated_decision_once(
    bench: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = bench.log(), bench.log()
    ids = ["dec_" + f"{n:032x}" for n in range(ROWS)]
    for log in (one, two):
        bench.sealed(log, 0, decision_ids=ids)
        bench.sealed(log, 50)
    bench.age()
    done: list[int] = []

    def other() -> None:
        if not done:
            done.append(0)
            done.append(bench.compact())

    monkeypatch.setattr(failpoints, "armed", {"rewrite": other})
    assert bench.compact() + done[1] == 4
    assert sorted(bench.copied()[0]) == [0, 1, 2, 50, 50, 51, 51, 52, 52]


def test_one_segment_has_large_row_groups(bench: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MAX_ROWS_AT_ONCE", 7)
    bench.sealed(bench.log(), *range(0, 30, ROWS))
    bench.age()
    bench.compact()
    (final,) = bench.segments()
    path = bench.blobs.path(final.segment_key)
    groups = pq.ParquetFile(path).metadata
    assert [groups.row_group(i).num_rows for i in range(groups.num_row_groups)] == [7] * 4 + [2]
    assert pq.read_table(path).column("feature.town").to_pylist() == [
        f"town {n}" for n in range(0, 30, ROWS) for _ in range(ROWS)
    ]
