"""The audit log: a transaction that changes something on behalf of a caller also writes an audit entry.

Services need no code for it. The code that admits a caller sets `acting`. Each writing session records its changes, and
writes the entry before it commits: both are stored, or neither. Entries for what changes nothing, reads and denials,
are written by `record`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, cast

from sqlalchemy import Insert, Select, Text, event, select
from sqlalchemy import cast as cast_to
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker

from app.platform.callers import Actor, acting
from app.platform.errors import Invalid, shown
from app.platform.ids import new_id
from app.platform.sql import Page, contains, db_now, fetch_page
from app.platform.tables import AuditEntry, Idempotency, OutboxEvent, Principal
from core.errors import shorten

_MADE = (
    "made"  # key in a session's notes: the ids of new rows; present as soon as anything has changed
)


_QUOTA_CHECK = "quota_check"  # key in a session's notes
_SUMMARY = "summary"  # key in a session's notes: the change in words


def watch(sessions: sessionmaker[Session]) -> None:
    """Let these sessions write an audit entry for an actor's changes."""
    event.listen(sessions, "do_orm_execute", _note_statement)
    event.listen(sessions, "after_flush", _note_flush)
    event.listen(sessions, "before_commit", before_commit)


def prepare_quota_check() -> Callable[[], None] | None:
    """Return the check for a transaction that begins; None if nothing is limited."""
    actor = acting.get()
    return None if actor is None or actor.quota_check is None else actor.quota_check()


def require_quota_check(session: Session, check: Callable[[], None] | None) -> None:
    """Call `check` before the commit of changes."""
    session.info[_QUOTA_CHECK] = check


def allow_over_quota(session: Session) -> None:
    """Let this transaction exceed quota and disk limits: for small changes that must work, as rotating leaked keys."""
    session.info.pop(_QUOTA_CHECK, None)


def describe(session: Session, words: str, *, unless_described: bool = False) -> None:
    """Describe the change, where route and path do not say enough, such as how an alias moved. The last one counts."""
    if not (unless_described and _SUMMARY in session.info):
        session.info[_SUMMARY] = shorten(words, MAX_SUMMARY)


class Outcome(StrEnum):
    """What became of a request; READ is of decisive or personal data."""

    DONE = "done"
    DENIED = "denied"
    READ = "read"


MAX_VALUE = 200
"""Characters of a value in a summary."""
MAX_SUMMARY = 2_000


def describe_changes(
    session: Session,
    what: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    absent: str = "none",
) -> None:
    """Describe changed values: `Quotas of risk: models 10 → 20, keys 5 → none`. Values within others have names with
    dots.
    """
    before, after = dict(_flat(before)), dict(_flat(after))
    changed = [
        f"{name} {_in_words(before.get(name), absent)} → {_in_words(after.get(name), absent)}"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
    describe(session, f"{what}: {', '.join(changed) or 'unchanged'}")


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _in_words(value: object, absent: str) -> str:
    return absent if value is None else shorten(_spell(value), MAX_VALUE)


def _spell(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
        case list():
            return "; ".join(map(_spell, value)) or "empty"
        case dict():
            return ", ".join(f"{name} {_spell(each)}" for name, each in value.items())
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Filters of entries: by key ("" for the command line), principal (id or a part of its name), a text in the action,
    a text in the path or in a new id, outcome, and time (from the start to before the end).
    """

    key_id: str | None = None
    action: str | None = None
    resource: str | None = None
    created_after: float | None = None
    created_before: float | None = None
    principal: str | None = None
    outcome: Outcome | None = None

    def apply(self, statement: Select[Any]) -> Select[Any]:
        entry = AuditEntry
        if self.key_id is not None:
            statement = statement.where(entry.key_id == (self.key_id or None))
        if self.principal is not None:
            statement = statement.where(
                (entry.principal_id == self.principal) | contains(entry.author, self.principal)
            )
        if self.action is not None:
            statement = statement.where(contains(entry.action, self.action))
        if self.resource is not None:
            made = cast_to(entry.made, Text)
            statement = statement.where(
                contains(entry.path, self.resource) | contains(made, self.resource)
            )
        if self.outcome is not None:
            statement = statement.where(entry.outcome == self.outcome)
        if self.created_after is not None:
            statement = statement.where(entry.created_at >= self.created_after)
        if self.created_before is not None:
            statement = statement.where(entry.created_at < self.created_before)
        return statement


ALL_ENTRIES = AuditFilter()
MAX_POSITION = 2**63 - 1


def list_page(
    session: Session,
    owner: str,
    only: AuditFilter = ALL_ENTRIES,
    *,
    limit: int,
    after: str | None,
) -> Page[AuditEntry]:
    statement = only.apply(select(AuditEntry).where(AuditEntry.readable_by(owner)))
    return fetch_page(
        session, statement, AuditEntry.created_at, AuditEntry.id, limit=limit, after=after
    )


def position_of(after: str | None) -> int:
    """Return the position in an export's cursor: 0 for the start. Raises Invalid."""
    if after is None:
        return 0
    is_short = after.isascii() and after.isdecimal() and len(after) < 20
    if not is_short or int(after) > MAX_POSITION:
        raise Invalid(
            f"after must be the position of an entry, such as 1042, got {shown(after)}",
            code="invalid_cursor",
        )
    return int(after)


def list_after(
    session: Session, owner: str, only: AuditFilter, position: int, limit: int
) -> Sequence[AuditEntry]:
    """Return entries after a position, in order. An entry's position comes after its transaction: none appears late."""
    statement = only.apply(select(AuditEntry).where(AuditEntry.readable_by(owner)))
    statement = statement.where(AuditEntry.position > position)
    return session.scalars(statement.order_by(AuditEntry.position).limit(limit)).all()


def record(session: Session, actor: Actor, outcome: Outcome, summary: str | None = None) -> None:
    session.add(_entry(actor, outcome, [], summary))


def record_of_service(
    session: Session,
    action: str,
    outcome: Outcome,
    summary: str | None,
    *,
    client: str | None = None,
    owner: str = AuditEntry.SERVICE,
) -> None:
    """Write an entry on what the service did by itself."""
    make_id = partial(new_id, "aud")
    actor = Actor(owner, None, None, action, make_id, client=client)
    session.add(_entry(actor, outcome, [], summary))


def _entry(actor: Actor, outcome: Outcome, made: list[str], summary: str | None) -> AuditEntry:
    return AuditEntry(
        id=actor.make_id(),
        owner=actor.owner,
        principal_id=actor.principal_id,
        author=None if actor.caller is None else actor.caller.name,
        key_id=actor.key_id,
        action=actor.action,
        path=actor.path,
        made=made,
        summary=summary,
        outcome=outcome,
        request_id=actor.request_id,
        client=actor.client,
        created_at=db_now(),
    )


def _note_statement(state: ORMExecuteState) -> None:
    """Record a statement's changes, with ids of inserted rows."""
    if acting.get() is None or not (state.is_insert or state.is_update or state.is_delete):
        return
    if state.bind_mapper is not None and state.bind_mapper.class_ is Idempotency:
        return  # a replayed response is not a change
    made = state.session.info.setdefault(_MADE, [])
    if state.is_insert:
        # A prepared statement gets its values separately; another contains them.
        statement = cast(Insert, state.statement)
        given = state.parameters or statement.compile(state.session.get_bind()).params
        made += _ids(given if isinstance(given, Mapping) else {})


def _note_flush(session: Session, _context: object) -> None:
    """Record a flush's changes, with ids of new rows."""
    if acting.get() is None or not (session.new or session.dirty or session.deleted):
        return
    made = session.info.setdefault(_MADE, [])
    for row in session.new:
        # a principal is made with the key that it is known by, and an event with its cause
        if not isinstance(row, OutboxEvent | Principal):
            made += _ids({"id": getattr(row, "id", None)})


def _ids(values: Mapping[str, Any]) -> list[str]:
    """Return the id of a new resource, such as ds_…, in a list; nothing for other rows."""
    found = values.get("id")
    return [found] if isinstance(found, str) else []


def before_commit(session: Session) -> None:
    """Write the entry and check that the changes may be stored, as a commit would do first.

    For a transaction that is rolled back in any case, to find out whether it would be committed.
    """
    words = session.info.pop(_SUMMARY, None)
    actor = acting.get()
    if actor is None:
        return
    session.flush()  # a row that is not flushed yet is a change, too
    made = session.info.pop(_MADE, None)
    if made is None:
        return
    session.add(_entry(actor, Outcome.DONE, made, words))
    check: Callable[[], None] | None = session.info.pop(_QUOTA_CHECK, None)
    if check is not None:
        check()
