"""Rows of the audit log's seals: sealing, retention, and the checks of a seal. `audit_seals` has the rest."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from sqlalchemy import delete, exists, func, select, update

from app.platform import failpoints
from app.platform.audit_keys import AuditKey, AuditKeys
from app.platform.sql import Session, db_now, read_clock, upsert_into
from app.platform.tables import ApiKey, AuditEntry, AuditSeal, AuditStart, LegalHold

log = logging.getLogger(__name__)

ENTRIES_PER_SEAL = 1_000
PRUNED_SEALS = 10
"""Seals that one transaction of `prune` removes with their entries."""
SEALS_PER_PAGE = 200
SHOWN = 5
_ENTRY, _SEAL, _START = b"entry", b"seal", b"start"
_SIGNED = (
    *("id", "position", "owner", "principal_id", "author", "key_id", "action", "path", "made"),
    *("summary", "outcome", "request_id", "client", "created_at"),
)
"""The columns of an entry that its MAC covers: all but the MAC."""
_COLUMNS = [getattr(AuditEntry, name) for name in _SIGNED]


def mac_of_entry(key: AuditKey, values: Sequence[Any]) -> str:
    """`values` are those of `_SIGNED`."""
    return key.mac(_ENTRY, orjson.dumps(values))


def mac_of_seal(key: AuditKey, seal: AuditSeal, macs: Sequence[str]) -> str:
    head = [seal.number, seal.previous_mac, seal.key_id, seal.first_position, seal.last_position]
    return key.mac(
        _SEAL, orjson.dumps([*head, seal.entries, seal.sealed_at]), "".join(macs).encode()
    )


def mac_of_start(key: AuditKey, start: AuditStart) -> str:
    """The row says what retention has removed."""
    values = [start.seal_number, start.position, start.entries, start.seal_mac, start.pruned_at]
    return key.mac(_START, orjson.dumps([*values, key.id]))


class Head(NamedTuple):
    """The last seal: its number and its MAC."""

    number: int
    mac: str

    def __str__(self) -> str:
        return f"{self.number}:{self.mac}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Inverse of `str`. Raises ValueError."""
        number, _, mac = text.strip().partition(":")
        if not number.isdecimal() or len(number) > 18 or len(mac) != 64:
            raise ValueError(f"must have the form NUMBER:MAC, got {text[:100]!r}")
        return cls(int(number), mac)


def seal_some(session: Session, keys: AuditKeys) -> int:
    """Number and seal up to `ENTRIES_PER_SEAL` entries; returns 0 without any, or if another process is sealing."""
    start = _lock(session)
    if start is None:
        return 0
    key, last = (
        keys.newest,
        session.scalars(_seals().order_by(AuditSeal.number.desc()).limit(1)).first(),
    )
    sealed = start.position if last is None else last.last_position
    top = max(sealed, session.scalar(_top()) or 0)
    entry = AuditEntry
    if key is not None and top > sealed:  # entries of the time before there was a key
        found = session.execute(
            select(*_COLUMNS)
            .where(entry.position > sealed)
            .order_by(entry.position)
            .limit(ENTRIES_PER_SEAL)
        ).all()
    else:
        found = session.execute(
            select(*_COLUMNS)
            .where(entry.position.is_(None))
            .order_by(entry.created_at, entry.id)
            .limit(ENTRIES_PER_SEAL)
        ).all()
    if not found:
        return 0
    rows = [dict(zip(_SIGNED, row, strict=True)) for row in found]
    for position, row in enumerate(rows, top + 1):
        row["position"] = row["position"] or position
    macs = ["" if key is None else mac_of_entry(key, list(row.values())) for row in rows]
    session.execute(
        update(entry),
        [
            {"id": row["id"], "position": row["position"], "mac": mac or None}
            for row, mac in zip(rows, macs, strict=True)
        ],
    )
    if key is not None:
        seal = AuditSeal(
            number=(start.seal_number if last is None else last.number) + 1,
            first_position=sealed + 1,
            last_position=rows[-1]["position"],
            entries=len(rows),
            key_id=key.id,
            previous_mac=start.seal_mac if last is None else last.mac,
            sealed_at=read_clock(session),
        )
        seal.mac = mac_of_seal(key, seal, macs)
        session.add(seal)
        if last is None and start.seal_number == 0:
            start.key_id, start.mac = key.id, mac_of_start(key, start)
        session.flush()
    failpoints.reach("audit_seal")
    return len(rows)


def _lock(session: Session, *, wait: bool = False) -> AuditStart | None:
    """Admit one sealer by a lock on the log's start; None if another has it."""
    statement = select(AuditStart).with_for_update(skip_locked=not wait)
    if session.scalar(select(AuditStart.id)) is None:
        first = {"id": 1, "seal_number": 0, "position": 0, "entries": 0, "seal_mac": ""}
        session.execute(upsert_into(session, AuditStart).values(first).on_conflict_do_nothing())
    return session.scalars(statement, execution_options={"populate_existing": True}).first()


def _top() -> Any:
    return select(func.max(AuditEntry.position)).where(AuditEntry.position.is_not(None))


def _seals() -> Any:
    return select(AuditSeal)


def has_unsealed(session: Session, keys: AuditKeys) -> bool:
    unsealed = AuditEntry.position.is_(None)
    if session.scalar(select(AuditEntry.id).where(unsealed).limit(1)) is not None:
        return True
    if keys.newest is None:
        return False
    sealed = session.scalar(select(func.max(AuditSeal.last_position)))
    top = session.scalar(_top())
    if sealed is None:
        sealed = session.scalar(select(AuditStart.position))
    return (top or 0) > (sealed or 0)


def start_of(session: Session) -> AuditStart | None:
    return session.scalars(select(AuditStart)).first()


def head_of(session: Session) -> Head | None:
    """Return None without seals."""
    newest = select(AuditSeal.number, AuditSeal.mac).order_by(AuditSeal.number.desc()).limit(1)
    found = session.execute(newest).first()
    return None if found is None else Head(*found)


def prune(session: Session, keys: AuditKeys, age_seconds: float) -> int:
    """Remove the oldest entries by seals, a few at once; signed in `AuditStart`.

    A seal that does not verify is kept, with all after it. So is a seal with an entry of an owner on legal hold.
    """
    start = _lock(session, wait=True)
    if start is None:
        return 0
    before = read_clock(session) - age_seconds
    first = session.scalars(_seals().order_by(AuditSeal.number).limit(1)).first()
    if first is None:
        return _prune_unsealed(session, start, before)
    if keys.newest is None:
        log.error(
            "old audit entries are kept: RANKWRIGHT_AUDIT_KEY_FILE is not set, and they are sealed"
        )
        return 0
    removed, expected = 0, Head(start.seal_number, start.seal_mac)
    page = _seals().where(AuditSeal.sealed_at < before).order_by(AuditSeal.number)
    for seal in session.scalars(page.limit(PRUNED_SEALS)).all():
        entries = _entries(session, seal)
        if any(check_seal(keys, seal, entries, expected, start.position)):
            log.error("old audit entries are kept: seal %d does not verify", seal.number)
            break
        of_seal = AuditEntry.position.between(seal.first_position, seal.last_position)
        if session.scalar(select(exists().where(of_seal, LegalHold.covers(AuditEntry.owner)))):
            break  # on hold, and with it all that comes later
        session.execute(delete(AuditEntry).where(of_seal))
        session.delete(seal)
        removed, expected = removed + len(entries), Head(seal.number, seal.mac)
        start.seal_number, start.seal_mac = expected
        start.position = seal.last_position
    if removed:
        start.entries += removed
        start.pruned_at = read_clock(session)
        start.key_id, start.mac = keys.newest.id, mac_of_start(keys.newest, start)
        session.flush()
        failpoints.reach("audit_prune")
    return removed


def _prune_unsealed(session: Session, start: AuditStart, before: float) -> int:
    """Remove the oldest entries of a log that was never sealed."""
    entry = AuditEntry
    found = session.execute(
        select(entry.id, entry.position, entry.created_at, LegalHold.covers(entry.owner))
        .where(entry.position.is_not(None))
        .order_by(entry.position)
        .limit(ENTRIES_PER_SEAL)
    ).all()
    old = []
    for row in found:
        if row.created_at >= before or row[3]:
            break
        old.append(row)
    if not old:
        return 0
    session.execute(delete(entry).where(entry.id.in_([row.id for row in old])))
    start.position, start.entries = old[-1].position, start.entries + len(old)
    start.pruned_at = read_clock(session)
    return len(old)


@dataclass(frozen=True, slots=True)
class Flaw:
    """What no caller of the service can bring about: `seal` is a number, `ids` are up to `SHOWN` entries."""

    kind: str
    detail: str
    seal: int | None = None
    ids: tuple[str, ...] = ()


class _Entry(NamedTuple):
    """An entry as the database has it: the values that its MAC covers, and the MAC."""

    values: list[Any]
    mac: str | None

    @property
    def id(self) -> str:
        return str(self.values[0])

    @property
    def position(self) -> int:
        return int(self.values[1])


def _entries(session: Session, seal: AuditSeal) -> list[_Entry]:
    """Return at most one entry more than a seal has."""
    found = session.execute(
        select(*_COLUMNS, AuditEntry.mac)
        .where(AuditEntry.position.between(seal.first_position, seal.last_position))
        .order_by(AuditEntry.position)
        .limit(ENTRIES_PER_SEAL + 1)
    )
    return [_Entry(list(row[:-1]), row[-1]) for row in found]


def next_seals(session: Session, number: int) -> list[tuple[AuditSeal, list[_Entry]]]:
    """Return up to `SEALS_PER_PAGE` seals with entries, of about `ENTRIES_PER_SEAL` entries together."""
    statement = _seals().where(AuditSeal.number > number).order_by(AuditSeal.number)
    seals: list[AuditSeal] = []
    total = 0
    for seal in session.scalars(statement.limit(SEALS_PER_PAGE)):
        total += max(0, seal.last_position - seal.first_position + 1)
        if seals and total > ENTRIES_PER_SEAL:
            break
        seals.append(seal)
    if not seals:
        return []
    found = session.execute(
        select(*_COLUMNS, AuditEntry.mac)
        .where(AuditEntry.position.between(seals[0].first_position, seals[-1].last_position))
        .order_by(AuditEntry.position)
        .limit(2 * ENTRIES_PER_SEAL)
    )
    entries = [_Entry(list(row[:-1]), row[-1]) for row in found]
    positions = [each.position for each in entries]
    return [
        (
            seal,
            entries[
                bisect_left(positions, seal.first_position) : bisect_right(
                    positions, seal.last_position
                )
            ],
        )
        for seal in seals
    ]


def check_seal(
    keys: AuditKeys, seal: AuditSeal, entries: Sequence[_Entry], before: Head, position: int
) -> Iterator[Flaw]:
    """`before` is the seal before, `position` its last position."""
    number = seal.number
    key = keys.get(seal.key_id)
    if key is None:
        yield Flaw(
            "unknown_key",
            f"seal {number} has the key {seal.key_id[:32]}, which is not in the key file",
            number,
        )
        return
    if seal.first_position != position + 1 or seal.previous_mac != before.mac:
        yield Flaw("broken_chain", f"seal {number} does not continue seal {before.number}", number)
    macs = [mac_of_entry(key, each.values) for each in entries]
    changed = [each.id for each, mac in zip(entries, macs, strict=True) if each.mac != mac]
    if changed:
        yield Flaw(
            "changed_entries",
            f"seal {number}: {len(changed)} entries were changed, moved or added: {some(changed)}",
            number,
            tuple(changed[:SHOWN]),
        )
    if len(entries) != seal.entries or mac_of_seal(key, seal, macs) != seal.mac:
        at = {each.position for each in entries}
        n_all = seal.last_position - seal.first_position + 1
        if len(at) < min(n_all, seal.entries) and n_all <= ENTRIES_PER_SEAL:
            every = range(seal.first_position, seal.last_position + 1)
            missing = [str(each) for each in every if each not in at]
            ends = [each.id for each in (*entries[:1], *entries[-1:])]
            yield Flaw(
                "missing_entries",
                f"seal {number}: {seal.entries - len(at)} of {seal.entries} entries are missing, at the positions "
                f"{some(missing)}",
                number,
                tuple(dict.fromkeys(ends)),
            )
        elif not changed:
            yield Flaw(
                "changed_seal",
                f"seal {number} was changed, or does not belong to its entries",
                number,
            )


def some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def removed_that_exist(session: Session) -> Sequence[str]:
    """Return entries at positions before the start of the log."""
    of_removed = AuditEntry.position <= select(AuditStart.position).scalar_subquery()
    statement = select(AuditEntry.id).where(of_removed).limit(ENTRIES_PER_SEAL)
    return session.scalars(statement).all()


def unrecorded(session: Session, place: str, late_seconds: float) -> Iterator[Flaw]:
    """Yield a flaw if no record of the last seal appears in time."""
    old = select(AuditSeal.number).where(AuditSeal.sealed_at < db_now() - late_seconds)
    if session.scalar(old.limit(1)) is not None:
        detail = (
            f"{place} is missing: the newest seals may have been removed with it. After a restore it is missing until "
            "a dispatcher runs"
        )
        yield Flaw("missing_head", detail)


def begins_late(session: Session, late_seconds: float) -> Iterator[Flaw]:
    """Yield a flaw if the oldest entry is younger than the oldest key, without retention."""
    start = start_of(session)
    if start is not None and start.entries:
        return
    oldest_key = session.scalar(select(func.min(ApiKey.created_at)))
    oldest = session.scalar(select(func.min(AuditEntry.created_at)))
    began = read_clock(session) if oldest is None else oldest
    if oldest_key is not None and oldest_key < began - late_seconds:
        age = f"{(began - oldest_key) / 3600:.1f} hours"
        detail = (
            f"the log is empty, and the oldest key was created {age} ago"
            if oldest is None
            else f"the log begins {age} after the oldest key was created"
        )
        yield Flaw("missing_beginning", f"{detail}: entries were removed")


def late(session: Session, position: int, late_seconds: float) -> Iterator[Flaw]:
    """Yield a flaw for entries that were not sealed in time."""
    old = AuditEntry.created_at < db_now() - late_seconds
    unsealed = (AuditEntry.position.is_(None) | (AuditEntry.position > position)) & old
    count = session.scalar(select(func.count()).where(unsealed)) or 0
    if count:
        ids = session.scalars(
            select(AuditEntry.id).where(unsealed).order_by(AuditEntry.created_at).limit(SHOWN)
        ).all()
        more = f" and {count - len(ids)} more" if count > len(ids) else ""
        detail = (
            f"{count} entries older than {late_seconds:g} s are not sealed: {', '.join(ids)}{more}"
        )
        yield Flaw("not_sealed", detail, None, tuple(ids))
