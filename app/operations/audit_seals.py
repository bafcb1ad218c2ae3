"""Seals of the audit log: proofs that sealed entries were not changed, removed, moved or added to.

The dispatcher seals all committed entries once a second. Each entry gets a position, in the order of sealing, and a
MAC; a seal is a MAC over the MACs of its entries and over the seal before it. The key is not in the database, so
whoever can write to the database cannot repair a seal. Writers of entries take no part, so they never wait for each
other: an entry that is committed late is sealed late.

The number and the MAC of the last seal are also recorded outside the database (`record_head`): otherwise the newest
seals could be removed with their entries. Without a key, entries only get positions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.operations.seal_repository import (
    SHOWN,
    Flaw,
    Head,
    begins_late,
    check_seal,
    has_unsealed,
    head_of,
    late,
    mac_of_start,
    next_seals,
    removed_that_exist,
    seal_some,
    some,
    start_of,
    unrecorded,
)
from app.platform import failpoints
from app.platform.audit_keys import AuditKeys
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.sql import Session
from app.platform.tables import AuditSeal, AuditStart

log = logging.getLogger(__name__)

SEAL_EVERY = 1.0
"""Seconds between two looks for entries without a seal."""
HEAD_RETRY = 60.0
"""Seconds until the last seal is recorded outside the database again, after that has failed."""
HEAD_NOTE = "audit/head"
"""Name of that record beside the blobs."""
LATE_SECONDS = 60.0
"""Age at which an entry without a seal is a finding."""
_HEAD = b"head"


class Sealer:
    """Seals the log once a second, in a thread of each dispatcher. Only one seals at a time."""

    def __init__(self, db: Database, blobs: BlobStore, keys: AuditKeys) -> None:
        self._db = db
        self._blobs = blobs
        self._keys = keys
        self._recorded: Head | None = None

    def run(self, stop: threading.Event) -> None:
        """Seal a last time at the end. After an error the next round starts as usual."""
        if self._keys.newest is None:
            log.warning("the audit log is not sealed: RANKWRIGHT_AUDIT_KEY_FILE is not set")
        record_at, is_new = 0.0, True
        stopped = False
        while not stopped:
            stopped = stop.wait(SEAL_EVERY)
            try:
                is_new |= self.seal() > 0
                if is_new and (stopped or time.monotonic() >= record_at):
                    record_at = time.monotonic() + HEAD_RETRY
                    self.record_head()
                    record_at, is_new = 0.0, False
            except Unavailable:
                pass  # `Database` and the blob store log it
            except Exception:
                log.exception("sealing the audit log failed; the next round tries again")

    def seal(self) -> int:
        """Take no lock if there are no new entries."""
        if not self._db.reading(has_unsealed, self._keys):
            return 0
        total = 0
        while count := self._db.writing(seal_some, self._keys):
            total += count
            failpoints.reach("audit_sealed")
        return total

    def record_head(self) -> None:
        """Write the last seal to this process's log and to a note beside the blobs, if it has changed.

        A note that does not agree with the database is evidence: it stays as it is, and an error is logged each time.
        """
        key, head = self._keys.newest, self._db.reading(head_of)
        if key is None or head is None or head == self._recorded:
            return
        places = [
            ("the note beside the blobs", read_head(self._blobs, self._keys)),
            ("this process", self._recorded),
        ]
        findings = self._db.reading(
            lambda session: [
                flaw
                for place, at in places
                if at is not None
                for flaw in _against(session, at, place)
            ]
        )
        if findings:
            log.error("audit: %s", findings[0].detail)
            return
        self._blobs.write_note(
            HEAD_NOTE, f"{head} {key.id} {key.mac(_HEAD, str(head).encode())}\n".encode()
        )
        log.info("audit: sealed up to %s", head)
        self._recorded = head
        failpoints.reach("audit_head")


def read_head(blobs: BlobStore, keys: AuditKeys) -> Head | BadHead | None:
    """Return None if there is no record, BadHead if it is not one."""
    content = blobs.read_note(HEAD_NOTE)
    if content is None:
        return None
    try:
        text, key_id, mac = content[:300].decode("ascii").split()
        key = keys.get(key_id)
        if key is None or key.mac(_HEAD, text.encode()) != mac:
            return BadHead(text)
        return Head.parse(text)
    except ValueError:
        return BadHead("")


@dataclass(frozen=True, slots=True)
class BadHead:
    """A record that is damaged, or signed with no known key."""

    text: str


@dataclass(slots=True)
class Verified:
    """What a verification has read: seals and entries, the last seal, and when retention removed what was before."""

    seals: int = 0
    entries: int = 0
    removed_entries: int = 0
    head: Head | None = None


def verify(
    db: Database,
    keys: AuditKeys,
    found: Verified,
    *,
    recorded: Sequence[tuple[str, Head | BadHead | None]] = (),
    newest_seals: int | None = None,
    late_seconds: float = LATE_SECONDS,
) -> Iterator[Flaw]:
    """Recompute all seals, or the newest `newest_seals`; yield each flaw, and count in `found`.

    `recorded` are heads that were recorded elsewhere, with the name of the place; None if it has none. Each page is
    read in its own transaction. Needs memory for one page of seals and the entries of one seal.
    """
    with db.read() as session:
        start = start_of(session)
        top = head_of(session)
    if start is None:
        if top is not None:
            yield Flaw("changed_start", "the row with the start of the log is missing")
            return
        start = AuditStart(seal_number=0, position=0, entries=0, seal_mac="")
    yield from _check_start(keys, start, is_sealed=top is not None)
    if added := db.reading(removed_that_exist):
        detail = f"{len(added)} entries are at positions whose entries retention has removed: {some(added)}"
        yield Flaw("added_entries", detail, None, tuple(added[:SHOWN]))
    before, position = Head(start.seal_number, start.seal_mac), start.position
    found.removed_entries = start.entries
    if newest_seals is not None and top is not None and top.number - newest_seals > before.number:
        with db.read() as session:
            earlier = session.get(AuditSeal, top.number - newest_seals)
        if earlier is not None:
            before, position = Head(earlier.number, earlier.mac), earlier.last_position
    while True:
        with db.read() as session:  # one snapshot: retention removes seals with their entries
            pruned = start_of(session)
            if pruned is not None and pruned.seal_number > before.number:
                before, position = Head(pruned.seal_number, pruned.seal_mac), pruned.position
            page = next_seals(session, before.number)
        for seal, entries in page:
            if seal.number != before.number + 1:
                missing = f"{before.number + 1}" + (
                    f" to {seal.number - 1}" if seal.number > before.number + 2 else ""
                )
                yield Flaw("missing_seals", f"the seals {missing} are missing", before.number + 1)
                before, position = Head(seal.number - 1, seal.previous_mac), seal.first_position - 1
            yield from check_seal(keys, seal, entries, before, position)
            before, position = Head(seal.number, seal.mac), seal.last_position
            found.seals += 1
            found.entries += len(entries)
        if not page:
            break
    found.head = before if before.number else None
    for place, head in recorded:
        with db.read() as session:
            if head is None:
                yield from unrecorded(session, place, late_seconds)
            else:
                yield from _against(session, head, place)
    with db.read() as session:
        yield from late(session, position, late_seconds)
        yield from begins_late(session, late_seconds)


def _check_start(keys: AuditKeys, start: AuditStart, *, is_sealed: bool) -> Iterator[Flaw]:
    """Check the row that says what retention has removed."""
    if not is_sealed and start.mac is None:
        return
    key = keys.get(start.key_id)
    if start.mac is None:
        yield Flaw("changed_start", "the record of what retention has removed is not signed")
    elif key is None:
        yield Flaw(
            "unknown_key",
            f"the start of the log has the key {start.key_id}, which is not in the key file",
        )
    elif mac_of_start(key, start) != start.mac:
        yield Flaw("changed_start", "the record of what retention has removed was changed")


def _against(session: Session, head: Head | BadHead, place: str) -> Iterator[Flaw]:
    """Yield a flaw if the recorded seal is missing without retention having removed it."""
    if isinstance(head, BadHead):
        yield Flaw(
            "bad_head", f"{place} is damaged, or signed with an unknown key: {head.text[:100]!r}"
        )
        return
    start = start_of(session)
    if start is not None and head.number <= start.seal_number:
        return
    seal = session.get(AuditSeal, head.number)
    if seal is None:
        top = head_of(session)
        detail = (
            f"{place} has the seal {head.number}, but the last one is {top.number if top else 0}"
        )
        yield Flaw("truncated", detail, head.number)
    elif seal.mac != head.mac:
        yield Flaw("changed_seal", f"seal {head.number} is not the one of {place}", head.number)
