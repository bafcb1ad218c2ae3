"""The seals of the audit log: whatever is done to the tables by SQL is found and named, and no sealer's death, late
transaction or second service leaves an entry out.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text, update

from app.access.service import create
from app.operations import audit_seals, seal_repository
from app.operations.audit_seals import BadHead, Sealer, Verified, read_head, verify
from app.operations.seal_repository import Flaw, Head
from app.platform import audit
from app.platform.audit_keys import FILE, AuditKey, AuditKeys, BadAuditKeys, make_key, read_keys
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.ids import new_id
from app.platform.sql import db_now
from app.platform.tables import AuditEntry, AuditSeal, AuditStart
from tests.app.operations import mortal
from tests.long_form import DATABASES, long_form, rest
from tests.raising import raises
from tests.waiting import eventually

OLD, NEW = AuditKey(b"o" * 32), AuditKey(b"n" * 32)
KEYS = AuditKeys([OLD])
LONG_AGO = 1_000.0


def add(db: Database, count: int, owner: str = "ours", *, at: float | None = None) -> list[str]:
    """Add entries; returns their ids."""
    ids = [new_id("aud") for _ in range(count)]
    rows = [
        {"id": id_, "owner": owner, "action": f"POST /v1/é{number}", "made": ["x_1"]}
        for number, id_ in enumerate(ids)
    ]
    with db.write() as session:
        for number, row in enumerate(rows):
            created_at = time.time() - 5.0 + number * 1e-3 if at is None else at
            session.execute(insert(AuditEntry).values(created_at=created_at, **row))
    return ids


@pytest.fixture
def blobs(tmp_path: Path) -> FolderStore:
    return FolderStore(tmp_path / "blobs")


@pytest.fixture
def seal(db: Database, blobs: FolderStore, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Seals all, by few entries at a time, and records the head."""
    monkeypatch.setattr(seal_repository, "ENTRIES_PER_SEAL", 3)
    sealer = Sealer(db, blobs, KEYS)

    def seal() -> int:
        count = sealer.seal()
        sealer.record_head()
        return count

    return seal


def flaws(
    db: Database, blobs: FolderStore | None = None, keys: AuditKeys = KEYS, late: float = 60.0
) -> list[Flaw]:
    recorded = [] if blobs is None else [("the note", read_head(blobs, keys))]
    return list(verify(db, keys, Verified(), recorded=recorded, late_seconds=late))


def kinds(found: Sequence[Flaw]) -> set[str]:
    return {each.kind for each in found}


def positions(db: Database) -> dict[str, int | None]:
    with db.read() as session:
        rows = session.execute(select(AuditEntry.id, AuditEntry.position)).all()
    return {row[0]: row[1] for row in rows}


def test_every_entry_is_sealed_once_in_order(
    db: Database, blobs: FolderStore, seal: Callable[[], int]
) -> None:
    ids = add(db, 7)
    assert seal() == 7
    assert seal() == 0
    ids += add(db, 1)
    assert seal() == 1
    assert positions(db) == {id_: position for position, id_ in enumerate(ids, 1)}
    found = Verified()
    assert list(verify(db, KEYS, found, recorded=[("note", read_head(blobs, KEYS))])) == []
    assert (found.seals, found.entries) == (4, 8)
    assert found.head == read_head(blobs, KEYS)
    newest = Verified()
    assert list(verify(db, KEYS, newest, newest_seals=2)) == []
    assert (newest.seals, newest.entries, newest.head) == (2, 2, found.head)


def test_an_empty_log_verifies(db: Database, blobs: FolderStore, seal: Callable[[], int]) -> None:
    assert seal() == 0
    assert flaws(db, blobs) == []


TAMPER: dict[str, tuple[str, int | None, int | None]] = {
    # by SQL: the kind of the flaw, its seal, and the number of the entry that it names
    "UPDATE audit_entries SET author = 'eve' WHERE position = 5": ("changed_entries", 2, 5),
    "UPDATE audit_entries SET owner = 'theirs' WHERE position = 1": ("changed_entries", 1, 1),
    "UPDATE audit_entries SET created_at = created_at + 1 WHERE position = 8": (
        *("changed_entries", 3),
        8,
    ),
    "UPDATE audit_entries SET outcome = 'read' WHERE position = 2": ("changed_entries", 1, 2),
    "UPDATE audit_entries SET mac = NULL WHERE position = 4": ("changed_entries", 2, 4),
    "DELETE FROM audit_entries WHERE position = 5": ("missing_entries", 2, None),
    "DELETE FROM audit_entries WHERE position = 9": ("missing_entries", 3, None),
    "UPDATE audit_seals SET entries = 2 WHERE number = 2": ("changed_seal", 2, None),
    "UPDATE audit_seals SET sealed_at = 1 WHERE number = 2": ("changed_seal", 2, None),
    "UPDATE audit_seals SET key_id = 'unknown' WHERE number = 2": ("unknown_key", 2, None),
    "UPDATE audit_seals SET previous_mac = mac WHERE number = 3": ("broken_chain", 3, None),
    "DELETE FROM audit_seals WHERE number = 2": ("missing_seals", 2, None),
    "DELETE FROM audit_seals WHERE number = 1": ("missing_seals", 1, None),
    "UPDATE audit_start SET entries = 7": ("changed_start", None, None),
    "UPDATE audit_start SET mac = NULL": ("changed_start", None, None),
    "UPDATE audit_start SET key_id = 'unknown'": ("unknown_key", None, None),
    "DELETE FROM audit_start": ("changed_start", None, None),
}


@pytest.mark.parametrize("sql", TAMPER)
def test_what_sql_does_to_the_tables_is_named(
    db: Database, blobs: FolderStore, seal: Callable[[], int], sql: str
) -> None:
    ids = add(db, 9)
    assert seal() == 9
    assert flaws(db, blobs) == []
    with db.write() as session:
        session.execute(text(sql))
    kind, number, entry = TAMPER[sql]
    found = [each for each in flaws(db, blobs) if each.kind == kind]
    assert [each.seal for each in found] == [number], flaws(db, blobs)
    if entry is not None:
        assert found[0].ids == (ids[entry - 1],)
        assert ids[entry - 1] in found[0].detail


def test_entries_that_are_added_or_swapped_are_named(
    db: Database, blobs: FolderStore, seal: Callable[[], int]
) -> None:
    ids = add(db, 6)
    seal()
    with db.write() as session:
        session.execute(update(AuditEntry).where(AuditEntry.id == ids[1]).values(position=100))
        session.execute(update(AuditEntry).where(AuditEntry.id == ids[2]).values(position=2))
        session.execute(update(AuditEntry).where(AuditEntry.id == ids[1]).values(position=3))
    (swapped,) = flaws(db, blobs)
    assert (swapped.kind, swapped.seal, set(swapped.ids)) == ("changed_entries", 1, {*ids[1:3]})
    with db.write() as session:
        session.execute(update(AuditEntry).where(AuditEntry.id == ids[1]).values(position=100))
        session.execute(update(AuditEntry).where(AuditEntry.id == ids[2]).values(position=3))
        session.execute(update(AuditEntry).where(AuditEntry.id == ids[1]).values(position=2))
    assert flaws(db, blobs) == []
    with db.write() as session:  # an entry takes the place of another one
        session.execute(text("DELETE FROM audit_entries WHERE position = 5"))
        values = {"id": "aud_forged", "owner": "ours", "action": "x", "made": [], "position": 5}
        session.execute(insert(AuditEntry).values(created_at=1.0, mac="0" * 64, **values))
    (forged,) = flaws(db, blobs)
    assert (forged.kind, forged.seal, forged.ids) == ("changed_entries", 2, ("aud_forged",))


def test_a_truncated_end_is_found_by_what_was_recorded_elsewhere(
    db: Database, blobs: FolderStore, seal: Callable[[], int], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, 9)
    seal()
    head = read_head(blobs, KEYS)
    assert isinstance(head, Head)
    with db.write() as session:
        session.execute(text("DELETE FROM audit_entries WHERE position > 6"))
        session.execute(text("DELETE FROM audit_seals WHERE number = 3"))
    assert kinds(flaws(db)) == set()  # the tables alone do not show it
    (found,) = flaws(db, blobs)
    assert (found.kind, found.seal) == ("truncated", 3)
    # What the sealer does next does not repair it, and does not overwrite the record.
    add(db, 4)
    Sealer(db, blobs, KEYS).seal()
    Sealer(db, blobs, KEYS).record_head()
    assert read_head(blobs, KEYS) == head
    assert kinds(flaws(db, blobs)) == {"changed_seal"}
    assert "audit" in caplog.text
    # A head from a log counts as well.
    recorded = [("--head", Head.parse(str(head)))]
    assert kinds(list(verify(db, KEYS, Verified(), recorded=recorded))) == {"changed_seal"}
    for damaged in (b"", b"3", b"\xff\xfe 1 2", f"{head} {OLD.id} {'0' * 64}".encode()):
        blobs.write_note(audit_seals.HEAD_NOTE, damaged)
        assert isinstance(read_head(blobs, KEYS), BadHead)
        assert "bad_head" in kinds(flaws(db, blobs))


def test_a_removed_log_is_found_without_the_note(
    db: Database, blobs: FolderStore, seal: Callable[[], int]
) -> None:
    def removed(sql: str) -> set[str]:
        with db.write() as session:
            session.execute(text(sql))
        return kinds(flaws(db, blobs))

    with db.write() as session:
        create(session, "ours", "first", ["read"])
    add(db, 3)
    seal()
    assert kinds(flaws(db, blobs)) == set()
    (Path(blobs.root) / audit_seals.HEAD_NOTE).unlink()
    assert removed("UPDATE audit_seals SET sealed_at = 1") >= {"missing_head"}
    for table in ("audit_entries", "audit_seals", "audit_start"):
        removed(f"DELETE FROM {table}")
    assert kinds(flaws(db, blobs)) == set()  # a key of this minute may have no entry yet
    assert removed("UPDATE api_keys SET created_at = 1") == {"missing_beginning"}
    add(db, 3)
    assert kinds(flaws(db, blobs)) == {"missing_beginning"}


def test_each_seal_is_recorded_at_once(
    db: Database, blobs: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_seals, "SEAL_EVERY", 0.01)
    stop = threading.Event()
    thread = threading.Thread(target=Sealer(db, blobs, KEYS).run, args=(stop,))
    thread.start()
    try:
        for count in (1, 2):
            add(db, 1)
            eventually(lambda: str(read_head(blobs, KEYS)).startswith(f"{count}:"))  # noqa: B023
    finally:
        stop.set()
        thread.join()


def test_a_head_must_be_one() -> None:
    for wrong in ("", "3", "3:", "x:" + "0" * 64, "3:" + "0" * 63, "9" * 19 + ":" + "0" * 64):
        with raises(ValueError, repr(wrong)):
            Head.parse(wrong)


def test_entries_that_nobody_seals_are_found(db: Database, seal: Callable[[], int]) -> None:
    add(db, 2)
    seal()
    late = add(db, 2, at=LONG_AGO)
    (found,) = flaws(db)
    assert (found.kind, set(found.ids)) == ("not_sealed", set(late))
    seal()
    add(db, 1)
    assert flaws(db) == []  # it is young


def test_keys_rotate(db: Database, blobs: FolderStore, seal: Callable[[], int]) -> None:
    add(db, 3)
    seal()
    both = AuditKeys([NEW, OLD])
    add(db, 3)
    sealer = Sealer(db, blobs, both)
    sealer.seal()
    sealer.record_head()
    assert flaws(db, blobs, both) == []
    with db.read() as session:
        used = session.scalars(select(AuditSeal.key_id).order_by(AuditSeal.number)).all()
    assert used == [OLD.id, NEW.id]
    assert kinds(flaws(db, blobs, AuditKeys([NEW]))) == {"unknown_key"}
    assert kinds(flaws(db, None, AuditKeys([OLD]))) == {"unknown_key"}


def test_a_log_that_gets_its_key_later(db: Database, blobs: FolderStore) -> None:
    ids = add(db, 5)
    assert Sealer(db, blobs, AuditKeys()).seal() == 5
    assert positions(db) == {id_: position for position, id_ in enumerate(ids, 1)}
    assert db.writing(seal_repository.prune, AuditKeys(), 1e9) == 0
    add(db, 1)
    assert Sealer(db, blobs, KEYS).seal() == 6
    found = Verified()
    assert list(verify(db, KEYS, found)) == []
    assert found.entries == 6
    assert db.writing(seal_repository.prune, AuditKeys(), -1.0) == 0  # sealed, and nobody can sign


def test_a_prefix_is_removed_and_signed(
    db: Database, blobs: FolderStore, seal: Callable[[], int]
) -> None:
    ids = add(db, 6)
    seal()
    assert db.writing(seal_repository.prune, KEYS, 1e6) == 0
    before = positions(db)
    assert db.writing(seal_repository.prune, KEYS, -1.0) == 6
    assert positions(db) == {}
    add(db, 4)
    seal()
    assert min(position or 0 for position in positions(db).values()) == 7
    found = Verified()
    recorded = [("note", read_head(blobs, KEYS))]
    assert list(verify(db, KEYS, found, recorded=recorded)) == []
    assert (found.removed_entries, found.entries) == (6, 4)
    with db.write() as session:  # nobody can put an entry back
        values = {"id": ids[0], "owner": "ours", "action": "x", "made": []}
        row = insert(AuditEntry).values(created_at=1.0, position=before[ids[0]], **values)
        session.execute(row)
    (added,) = flaws(db, blobs)
    assert (added.kind, added.ids) == ("added_entries", (ids[0],))


def test_what_does_not_verify_is_not_removed(db: Database, seal: Callable[[], int]) -> None:
    """Or retention would remove the traces, such as of a seal that somebody dated back."""
    add(db, 6)
    seal()
    with db.write() as session:
        session.execute(text("UPDATE audit_seals SET sealed_at = 1 WHERE number = 1"))
    assert db.writing(seal_repository.prune, KEYS, 1e6) == 0
    assert len(positions(db)) == 6


def test_a_log_without_a_key_is_pruned(db: Database, blobs: FolderStore) -> None:
    add(db, 3, at=LONG_AGO)
    new = add(db, 2)
    Sealer(db, blobs, AuditKeys()).seal()
    assert db.writing(seal_repository.prune, AuditKeys(), 1e6) == 3
    assert set(positions(db)) == set(new)
    Sealer(db, blobs, KEYS).seal()
    assert flaws(db) == []


def test_late_transactions_are_sealed_later_and_no_cursor_passes_them(
    db: Database, blobs: FolderStore
) -> None:
    """Their entries are older than those that are sealed before them."""
    if db.dialect == "sqlite":
        pytest.skip("writers take turns")
    sealer = Sealer(db, blobs, KEYS)
    with db.engine.connect() as late:
        values = {"id": "aud_late", "owner": "ours", "action": "late", "made": []}
        late.execute(insert(AuditEntry).values(created_at=db_now(), **values))
        add(db, 2)
        assert sealer.seal() == 2
        with db.read() as session:
            seen = audit.list_after(session, "ours", audit.ALL_ENTRIES, 0, 10)
        cursor = seen[-1].position
        assert (len(seen), cursor) == (2, 2)
        late.commit()
    assert sealer.seal() == 1
    with db.read() as session:
        rest = audit.list_after(session, "ours", audit.ALL_ENTRIES, cursor or 0, 10)
    assert [each.id for each in rest] == ["aud_late"]
    assert flaws(db) == []


def test_two_services_seal_while_others_write(
    db: Database, blobs: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seal_repository, "ENTRIES_PER_SEAL", 5)
    done = threading.Event()
    errors: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    def keep_sealing() -> None:
        sealer = Sealer(db, blobs, KEYS)
        while not done.is_set():
            sealer.seal()

    def write() -> None:
        for _ in range(20):
            add(db, 3)

    sealers = [threading.Thread(target=run, args=(keep_sealing,)) for _ in range(2)]
    writers = [threading.Thread(target=run, args=(write,)) for _ in range(3)]
    for thread in (*sealers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in sealers:
        thread.join()
    assert not errors
    Sealer(db, blobs, KEYS).seal()
    assert sorted(position or 0 for position in positions(db).values()) == list(range(1, 181))
    found = Verified()
    assert list(verify(db, KEYS, found)) == []
    assert found.entries == 180


on_both = pytest.mark.parametrize("database_url", DATABASES, indirect=True)


@long_form
@on_both
@pytest.mark.parametrize(
    "point", ["audit_sealed", *rest("audit_seal", "audit_head", "audit_prune")]
)
def test_a_sealer_dies_anywhere(
    db: Database, database_url: str, tmp_path: Path, blobs: FolderStore, point: str
) -> None:
    make_key(tmp_path / FILE)
    keys = read_keys(tmp_path / FILE)
    add(db, 2_500)

    def run(seconds: float, fault: str = "") -> int:
        return mortal.work(fault, mortal.seal, database_url, tmp_path, seconds)

    seconds = -1.0 if point == "audit_prune" else 1e6
    assert run(seconds, f"{point}=kill") == -signal.SIGKILL
    assert kinds(flaws(db, blobs, keys)) <= set()
    add(db, 10)
    assert run(1e6) == 0
    found = Verified()
    recorded = [("note", read_head(blobs, keys))]
    assert list(verify(db, keys, found, recorded=recorded)) == []
    assert found.entries == 2_510
    assert run(-1.0) == 0
    assert flaws(db, blobs, keys) == []
    with db.read() as session:
        start = session.scalars(select(AuditStart)).one()
        assert (start.position, start.entries) == (2_510, 2_510)
        assert session.scalars(select(AuditEntry.id)).first() is None


def test_a_file_of_keys_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "keys"

    def refusal() -> str:
        with pytest.raises(BadAuditKeys) as caught:
            read_keys(file)
        assert str(file) in str(caught.value)
        return str(caught.value)

    refusal()
    for content, said in (
        ("", "first line"),
        ("\n\n", "first line"),
        ("short", "32"),
        ("a" * 40 + "\nsecret-but-short", "key 2"),
        ("a" * (1 << 17), "65,536"),
    ):
        file.write_text(content)
        assert said in refusal()
        assert "secret-but-short" not in refusal()
    file.write_text("a" * 40 + "\n" + "b" * 40 + "\n")
    keys = read_keys(file)
    assert keys.newest == AuditKey(b"a" * 40)
    assert keys.get(AuditKey(b"b" * 40).id) == AuditKey(b"b" * 40)
    assert keys.get("unknown") is keys.get(None) is None
    assert "a" * 40 not in repr(keys.newest)
