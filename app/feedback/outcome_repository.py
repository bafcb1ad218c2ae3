"""Queries for outcomes, their segments, and requests to erase an entity."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, NamedTuple

from sqlalchemy import CursorResult, Select, and_, delete, func, select, update

from app.platform.blobs import Blob
from app.platform.sql import Json, Session, db_now, delete_some
from app.platform.tables import (
    AliasFeedback,
    DecisionSegment,
    Erasure,
    Model,
    OutcomeSegment,
)

_IDS_AT_ONCE = 500


class Segment(NamedTuple):
    """A segment: a blob by its key, or the content of a small request."""

    id: str
    at: float
    rows: int
    key: str | None
    content: bytes | None = None


def add(session: Session, row: OutcomeSegment) -> None:
    session.add(row)
    session.flush()


def outcome_segments(session: Session, owner: str) -> list[Segment]:
    """Oldest first."""
    return [Segment(*row) for row in session.execute(_outcomes_of(owner))]


def new_outcome_segments(
    session: Session, owner: str, since: float, known: Container[str]
) -> list[Segment]:
    """Return segments received at this time or later that are not `known` by id."""
    columns = OutcomeSegment.__table__.c
    statement = select(columns.id).where(
        OutcomeSegment.readable_by(owner), OutcomeSegment.received_at >= since
    )
    ids = [id_ for id_ in session.scalars(statement) if id_ not in known]
    found: list[Segment] = []
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = _outcomes_of(owner).where(columns.id.in_(ids[start : start + _IDS_AT_ONCE]))
        found += [Segment(*row) for row in session.execute(some)]
    return sorted(found, key=lambda each: (each.at, each.id))


def _outcomes_of(owner: str) -> Select[Any]:
    columns = OutcomeSegment.__table__.c
    return (
        select(columns.id, columns.received_at, columns.rows, columns.segment_key, columns.content)
        .where(OutcomeSegment.readable_by(owner))
        .order_by(OutcomeSegment.received_at, OutcomeSegment.id)
    )


def decision_segments(session: Session, owner: str, since: float) -> list[Segment]:
    """Return segments sealed at this time or later, oldest first."""
    columns = DecisionSegment.__table__.c
    statement = (
        select(columns.id, columns.sealed_at, columns.rows, columns.segment_key)
        .where(DecisionSegment.readable_by(owner), DecisionSegment.sealed_at >= since)
        .order_by(DecisionSegment.sealed_at, DecisionSegment.id)
    )
    return [Segment(*row) for row in session.execute(statement)]


def label_values(session: Session, owner: str) -> set[str]:
    """Return the label values of models whose name has, or had, an alias with recorded decisions."""
    recorded = select(AliasFeedback.name).where(
        AliasFeedback.readable_by(owner), AliasFeedback.settings.is_not(None)
    )
    statement = (
        select(Model.positive, Model.negative)
        .where(Model.belongs_to(owner), Model.name.in_(recorded))
        .distinct()
    )
    return {value for row in session.execute(statement) for value in row if value is not None}


class SmallSegments(NamedTuple):
    inline: int
    files: int


def count_small(session: Session, owner: str, most_rows: int) -> SmallSegments:
    statement = select(func.count(), func.count(OutcomeSegment.segment_key)).where(
        OutcomeSegment.readable_by(owner), OutcomeSegment.rows < most_rows
    )
    count, files = session.execute(statement).one()
    return SmallSegments(count - files, files)


def small_segments(session: Session, owner: str, most_rows: int, limit: int) -> list[Segment]:
    """Return the oldest segments with fewer than `most_rows` rows."""
    statement = _outcomes_of(owner).where(OutcomeSegment.rows < most_rows).limit(limit)
    return [Segment(*row) for row in session.execute(statement)]


def replace_outcomes(
    session: Session, owner: str, old: Sequence[Segment], new: OutcomeSegment | None
) -> bool:
    """Replace segments by one, or none. Returns False, and changes nothing, if one of them has changed or is gone."""
    ids = [segment.id for segment in old]
    columns = OutcomeSegment.__table__.c
    statement = select(columns.id, columns.rows).where(
        OutcomeSegment.readable_by(owner), OutcomeSegment.id.in_(ids)
    )
    there = {row.id: row.rows for row in session.execute(statement.with_for_update())}
    if there != {segment.id: segment.rows for segment in old}:
        return False
    session.execute(
        delete(OutcomeSegment).where(OutcomeSegment.readable_by(owner), columns.id.in_(ids)),
        execution_options={"synchronize_session": False},
    )
    if new is not None:
        session.add(new)
    session.flush()
    return True


def find_decisions(session: Session, owner: str) -> list[Segment]:
    """Return all segments of decisions of an owner, oldest first."""
    return decision_segments(session, owner, 0.0)


def replace_decisions(session: Session, owner: str, old: Segment, new: Blob, rows: int) -> bool:
    """Replace a segment's file. Returns False if the segment has changed or is gone."""
    statement = (
        update(DecisionSegment)
        .where(
            DecisionSegment.readable_by(owner),
            DecisionSegment.id == old.id,
            DecisionSegment.segment_key == old.key,
        )
        .values(segment_key=new.key, segment_bytes=new.bytes, rows=rows)
    )
    done: CursorResult[Any] = session.execute(statement)  # type: ignore[assignment]  # an UPDATE's result counts
    return done.rowcount == 1


def longest_days(session: Session, owner: str) -> float | None:
    """Return the largest `days` of all feedback settings, past ones included."""
    statement = select(AliasFeedback.settings).where(
        AliasFeedback.readable_by(owner), AliasFeedback.settings.is_not(None)
    )
    found = [settings["days"] for settings in session.scalars(statement) if settings is not None]
    return max(found, default=None)


def delete_known_before(session: Session, owner: str, age_seconds: float, limit: int) -> int:
    """Delete up to `limit` segments whose outcomes all became known before this time."""
    old = OutcomeSegment.last_known_at < db_now() - age_seconds
    return delete_some(session, OutcomeSegment, OutcomeSegment.readable_by(owner), old, limit=limit)


class OpenErasure(NamedTuple):
    """An open request. `is_last`: no earlier decision can arrive, a search of all tables since then found nothing, and
    their files are deleted.
    """

    id: str
    entity_id: str
    erased: Json | None
    is_last: bool


def open_erasures(
    session: Session, owner: str, settle_seconds: float, limit: int
) -> list[OpenErasure]:
    """Return requests that need a pass: those without any, and those older than `settle_seconds`."""
    settled = Erasure.requested_at < db_now() - settle_seconds
    is_last = and_(
        settled,
        Erasure.report["verified_at"].as_float() > Erasure.requested_at + settle_seconds,
        Erasure.old_keys.is_(None),
    )
    statement = (
        select(Erasure.id, Erasure.entity_id, Erasure.erased, is_last)
        .where(
            Erasure.readable_by(owner),
            Erasure.done_at.is_(None),
            Erasure.entity_id.is_not(None),
            settled | Erasure.erased.is_(None),
        )
        .order_by(Erasure.requested_at, Erasure.id)
        .limit(limit)
    )
    return [
        OpenErasure(row.id, row.entity_id, row.erased, row[3])
        for row in session.execute(statement)
        if row.entity_id is not None
    ]


def count_erased(session: Session, owner: str) -> int:
    """Return a number that grows whenever rows are erased."""
    statement = select(func.count(Erasure.erased) + func.count(Erasure.done_at)).where(
        Erasure.readable_by(owner)
    )
    return session.scalars(statement).one()


def end_erasure(session: Session, owner: str, each: OpenErasure, erased: Json) -> None:
    """Store what was erased. After the last pass, forget the entity's id."""
    values: dict[str, Any] = {"erased": erased}
    if each.is_last:
        values |= {"done_at": db_now(), "entity_id": None}
    session.execute(
        update(Erasure).where(Erasure.readable_by(owner), Erasure.id == each.id).values(**values)
    )


class AliasSegment(NamedTuple):
    """A segment: when its first decision was made, its rows, and the decisions it lacks."""

    key: str
    first_at: float
    rows: int
    lost: int


def alias_segments(
    session: Session, owner: str, name: str, alias: str, *, since: float, until: float
) -> list[AliasSegment]:
    """Oldest first."""
    columns = DecisionSegment.__table__.c
    statement = (
        select(columns.segment_key, columns.first_at, columns.rows, columns.lost)
        .where(
            DecisionSegment.readable_by(owner),
            DecisionSegment.name == name,
            DecisionSegment.alias == alias,
            DecisionSegment.last_at >= since,
            DecisionSegment.first_at <= until,
        )
        .order_by(DecisionSegment.first_at, DecisionSegment.id)
    )
    return [AliasSegment(*row) for row in session.execute(statement)]


def values_of_models(
    session: Session, owner: str, name: str
) -> dict[str, tuple[str | None, str | None]]:
    """Return (positive, negative) label values of each model of a name, also those in the trash."""
    statement = select(Model.id, Model.positive, Model.negative).where(
        Model.belongs_to(owner), Model.name == name
    )
    return {row.id: (row.positive, row.negative) for row in session.execute(statement)}
