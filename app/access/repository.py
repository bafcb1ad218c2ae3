"""Queries for API keys and browser sessions, and for an owner's jobs and bytes, which quotas limit. A usable key is
neither revoked nor expired.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from sqlalchemy import (
    JSON,
    ColumnElement,
    ForeignKey,
    FromClause,
    LargeBinary,
    Select,
    Table,
    Text,
    bindparam,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from app.platform.callers import Caller, Credential
from app.platform.ids import is_id
from app.platform.sql import Base, Page, db_now, fetch_page, stored_size, upsert_into
from app.platform.tables import (
    FINAL_STATES,
    Alarm,
    AliasFeedback,
    AliasRequest,
    ApiKey,
    AuditEntry,
    BreakGlass,
    BrowserSession,
    Dataset,
    Delivery,
    DeliveryAttempt,
    Erasure,
    Idempotency,
    Job,
    JobEvent,
    JobState,
    LegalHold,
    Model,
    ModelAlias,
    ModelAliasHistory,
    MonitorTest,
    OutboxEvent,
    Owned,
    OwnerQuota,
    Principal,
    RetentionRule,
    Upload,
    UploadPart,
    file_bytes,
)


def _usable() -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return (
        ApiKey.revoked_at.is_(None),
        or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > db_now()),
    )


def count_usable(session: Session) -> int:
    """Count the usable keys of all owners."""
    return session.execute(select(func.count()).select_from(ApiKey).where(*_usable())).scalar_one()


def find_caller(session: Session, credential: Credential) -> Caller | None:
    """Return None if it is unknown, revoked, expired by the database's clock, or a person's session.

    A session or a link also ends with the key that started it.
    """
    if credential.kind == "key":
        found = session.execute(
            select(ApiKey, ApiKey.expires_at).where(ApiKey.sha256 == credential.sha256, *_usable())
        ).one_or_none()
    else:
        found = session.execute(
            select(ApiKey, BrowserSession.expires_at)
            .join(BrowserSession, BrowserSession.key_id == ApiKey.id)
            .where(*valid_session(credential), *_usable())
        ).one_or_none()
    if found is None:
        return None
    key, expires_at = found
    return Caller(
        owner=key.owner,
        scopes=frozenset(key.scopes),
        principal_id=key.principal_id,
        name=key.name,
        key_id=key.id,
        expires_at=expires_at,
    )


def usable_keys_of(session: Session, owner: str, principal_id: str) -> Sequence[ApiKey]:
    """There are several after a rotation."""
    statement = select(ApiKey).where(
        ApiKey.readable_by(owner), ApiKey.principal_id == principal_id, *_usable()
    )
    return session.scalars(statement.order_by(ApiKey.created_at.desc(), ApiKey.id)).all()


def find_principal(session: Session, principal_id: str) -> Principal | None:
    return session.get(Principal, principal_id)


def same_person(session: Session, principal_id: str) -> set[str]:
    """Return all principals that may be the same person: those that created it or that it is for, directly or not.

    Each of them may know the secret.
    """
    found: set[str] = set()
    waiting = {principal_id}
    while waiting:
        found |= waiting
        rows = session.execute(
            select(Principal.created_by, ApiKey.holder_id)
            .outerjoin(ApiKey, ApiKey.principal_id == Principal.id)
            .where(Principal.id.in_(waiting))
        )
        waiting = {each for row in rows for each in row if each is not None} - found
    return found


def is_known_at(session: Session, owner: str, principal_id: str) -> bool:
    """Return True for a person or a service account, or a key of the owner."""
    of_owner = exists().where(ApiKey.principal_id == Principal.id, ApiKey.belongs_to(owner))
    statement = select(Principal.id).where(
        Principal.id == principal_id, or_(Principal.kind != "key", of_owner)
    )
    return session.scalar(statement) is not None


def usable_among(session: Session, hashes: Collection[str]) -> set[str]:
    """Return the hashes of usable keys, and of sessions and links that have not expired."""
    keys = select(ApiKey.sha256).where(ApiKey.sha256.in_(hashes), *_usable())
    of_browsers = select(BrowserSession.sha256).where(
        BrowserSession.sha256.in_(hashes), BrowserSession.expires_at > db_now()
    )
    return set(session.scalars(keys.union_all(of_browsers)))


def get(session: Session, owner: str, key_id: str, *, lock: bool = False) -> ApiKey | None:
    """Revoked keys, too. With `lock`, locked until the transaction ends."""
    statement = select(ApiKey).where(ApiKey.readable_by(owner), ApiKey.id == key_id)
    return session.scalar(statement.with_for_update() if lock else statement)


def has_others(session: Session, owner: str) -> bool:
    """Return True if another owner has or had a key: its resources may still exist."""
    return bool(session.scalar(select(exists().where(~ApiKey.readable_by(owner)))))


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[ApiKey]:
    statement = select(ApiKey).where(ApiKey.readable_by(owner))
    return fetch_page(session, statement, ApiKey.created_at, ApiKey.id, limit=limit, after=after)


def revoke(session: Session, owner: str, key_id: str) -> bool:
    """Return False if there is no such key."""
    revoked = session.scalar(
        update(ApiKey)
        .where(ApiKey.readable_by(owner), ApiKey.id == key_id)
        .values(revoked_at=func.coalesce(ApiKey.revoked_at, db_now()))
        .returning(ApiKey.id),
        execution_options={"synchronize_session": False},
    )
    return revoked is not None


def touch(session: Session, key_id: str) -> None:
    """Record that the key was used now."""
    session.execute(
        update(ApiKey).where(ApiKey.id == key_id).values(last_used_at=db_now()),
        execution_options={"synchronize_session": False},
    )


def valid_session(credential: Credential) -> tuple[ColumnElement[bool], ...]:
    """The session or link must not have expired."""
    return (
        BrowserSession.sha256 == credential.sha256,
        BrowserSession.is_link.is_(credential.kind == "link"),
        BrowserSession.expires_at > db_now(),
    )


def end_session(session: Session, credential: Credential) -> bool:
    """Return False if it was not valid."""
    ended = session.scalar(
        delete(BrowserSession).where(*valid_session(credential)).returning(BrowserSession.sha256),
        execution_options={"synchronize_session": False},
    )
    return ended is not None


def keep_newest_sessions(session: Session, caller: Caller, most: int, *, links: bool) -> None:
    """Keep the `most` newest sessions of the principal, or its links."""
    own = select(BrowserSession.sha256).where(
        BrowserSession.principal_id == caller.principal_id, BrowserSession.is_link == links
    )
    newest = own.order_by(BrowserSession.created_at.desc(), BrowserSession.sha256).limit(most)
    session.execute(
        delete(BrowserSession).where(
            BrowserSession.sha256.in_(own), BrowserSession.sha256.not_in(newest)
        ),
        execution_options={"synchronize_session": False},
    )


def prune_sessions(session: Session, age: float, limit: int) -> int:
    """Delete up to `limit` sessions that ended at least `age` seconds ago."""
    old = (
        select(BrowserSession.sha256).where(BrowserSession.expires_at < db_now() - age).limit(limit)
    )
    gone = session.scalars(
        delete(BrowserSession)
        .where(BrowserSession.sha256.in_(old))
        .returning(BrowserSession.sha256),
        execution_options={"synchronize_session": False},
    )
    return len(gone.all())


# The statements are built once: SQLAlchemy takes longer to build one than SQLite to run it.
_QUEUED = (Job.state == JobState.QUEUED, Job.parent_id.is_(None))
_QUEUED_OF_OWNER = (
    select(func.count()).select_from(Job).where(*_QUEUED, Job.readable_by(bindparam("of_owner")))
)
_QUEUED_IN_ALL = select(func.count()).select_from(
    select(Job.state).where(*_QUEUED).limit(bindparam("most")).subquery()
)
ROW_BYTES = 100
"""What a row counts beside its texts, JSON and arrays: numbers, and its places in indexes."""


_NOT_DELETABLE = frozenset(
    table.__tablename__
    for table in (
        Alarm,
        AliasFeedback,
        AliasRequest,
        ApiKey,
        AuditEntry,
        BreakGlass,
        BrowserSession,
        Delivery,
        DeliveryAttempt,
        Erasure,
        Idempotency,
        Job,
        JobEvent,
        LegalHold,
        ModelAliasHistory,
        MonitorTest,
        OutboxEvent,
        OwnerQuota,
        RetentionRule,
    )
)
"""Tables whose rows an owner cannot delete: they do not count, or an owner over the quota could not get below it."""


@functools.cache
def _owned() -> dict[str, type[Owned]]:
    classes = (mapper.class_ for mapper in Base.registry.mappers)
    return {each.__tablename__: each for each in classes if issubclass(each, Owned)}


def _belongs_to(table: Table) -> ColumnElement[bool] | None:
    """Return the condition that a row is of `of_owner`, by its own column or a reference; None without owners."""
    if (owned := _owned().get(table.name)) is not None:
        return owned.belongs_to(bindparam("of_owner"))
    by_key = [
        key.parent.in_(select(key.column).where(of_whole))
        for key in _references(table)
        if (of_whole := _belongs_to(key.column.table)) is not None
    ]
    return or_(*by_key) if by_key else None


def _references(table: Table) -> list[ForeignKey]:
    """Return a foreign key that is never null or, if there is none, all foreign keys, in a fixed order."""
    keys = sorted(table.foreign_keys, key=lambda key: str(key.parent.name))
    keys = [key for key in keys if key.column.table is not table]
    return next(([key] for key in keys if not key.parent.nullable), keys)


_OF_OPEN_UPLOAD = UploadPart.upload_id.in_(
    # The parts of a closed upload count with its dataset.
    select(Upload.id).where(Upload.dataset_id.is_(None))
)


def _tables_with_files() -> Iterator[tuple[Table, ColumnElement[bool]]]:
    """Yield tables with a column `…_key`, and the condition that a row's files count. The trash counts."""
    for table in Base.metadata.sorted_tables:
        names_blobs = any(column.name.endswith("_key") for column in table.c)
        if names_blobs and table is not Job.__table__:  # checkpoints do not count
            yield table, _OF_OPEN_UPLOAD if table is UploadPart.__table__ else true()


@functools.cache
def _stored() -> Select[Any]:
    """Sum the files of an owner's rows."""
    return select(
        *(
            select(func.coalesce(func.sum(file_bytes(table)), 0))
            .where(of_owner, counts)
            .scalar_subquery()
            for table, counts in _tables_with_files()
            if (of_owner := _belongs_to(table)) is not None
        )
    )


def _with_owner(table: Table) -> tuple[FromClause, ColumnElement[str]] | None:
    """Join a table with the one that has its owners; None without owners."""
    if "owner" in table.c:
        return table, table.c.owner
    for key in _references(table):
        if (found := _with_owner(key.column.table)) is not None:
            of_whole, owner = found
            return table.join(of_whole, key.parent == key.column), owner
    return None


@functools.cache
def _stored_by_owner() -> Select[Any]:
    """Select the owners with the most bytes in files, and the bytes of all."""
    sums = [
        select(owner.label("owner"), func.sum(file_bytes(table)).label("bytes"))
        .select_from(source)
        .where(counts)
        .group_by(owner)
        for table, counts in _tables_with_files()
        if (found := _with_owner(table)) is not None
        for source, owner in [found]
    ]
    each = union_all(*sums).subquery()
    total = func.sum(each.c.bytes)
    whole = select(each.c.owner, total.label("bytes"), func.sum(total).over().label("of_all"))
    ordered = whole.group_by(each.c.owner).order_by(total.desc(), each.c.owner)
    return ordered.limit(bindparam("most"))


def _row_bytes(table: Table) -> ColumnElement[int]:
    """Estimate a row's size: text, JSON and binary columns plus a constant."""
    sizes = [
        func.coalesce(stored_size(column), 0)
        for column in table.c
        if isinstance(column.type, Text | JSON | LargeBinary)
    ]
    return functools.reduce(operator.add, sizes, literal(ROW_BYTES))


@functools.cache
def _rows() -> Select[Any]:
    """Sum the estimated sizes of rows that an owner can delete."""
    whose = (
        (table, _belongs_to(table))
        for table in Base.metadata.sorted_tables
        if table.name not in _NOT_DELETABLE
    )
    return select(
        *(
            select(func.coalesce(func.sum(_row_bytes(table)), 0)).where(of_owner).scalar_subquery()
            for table, of_owner in whose
            if of_owner is not None
        )
    )


_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:whose, 7236512903))")


def take_turn(session: Session, owner: str) -> None:
    """Lock the owner's quota, so that simultaneous transactions count each other's jobs. SQLite has one writer."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_TURN, {"whose": owner})


def queued_jobs(session: Session, owner: str) -> int:
    """Count without child jobs."""
    return session.execute(_QUEUED_OF_OWNER, {"of_owner": owner}).scalar_one()


def queued_in_all(session: Session, most: int) -> int:
    """Count jobs of all owners, without child jobs, up to `most`."""
    return session.execute(_QUEUED_IN_ALL, {"most": most}).scalar_one()


def running_jobs(session: Session, owner: str) -> int:
    """Count with child jobs."""
    statement = select(func.count()).where(Job.belongs_to(owner), Job.state == JobState.RUNNING)
    return session.scalar(statement) or 0


_MAKES_A_MODEL = ("train", "import")
"""The kinds of the jobs that make a model."""


def models(session: Session, owner: str) -> int:
    """Count the trash, and unfinished jobs that make a model, too."""
    made = select(func.count()).select_from(Model).where(Model.belongs_to(owner))
    to_make = select(func.count()).where(
        Job.belongs_to(owner), Job.kind.in_(_MAKES_A_MODEL), Job.state.not_in(FINAL_STATES)
    )
    return session.scalar(select(made.scalar_subquery() + to_make.scalar_subquery())) or 0


def dataset_rows(session: Session, owner: str) -> int:
    """Count datasets that have been read, and the trash."""
    total = select(func.coalesce(func.sum(Dataset.rows), 0)).where(Dataset.belongs_to(owner))
    return int(session.scalar(total) or 0)


def aliases(session: Session, owner: str) -> int:
    statement = select(func.count()).select_from(ModelAlias).where(ModelAlias.belongs_to(owner))
    return session.scalar(statement) or 0


def usable_keys(session: Session, owner: str) -> int:
    """Return the number of the owner's keys that are neither revoked nor expired."""
    statement = select(func.count()).select_from(ApiKey).where(ApiKey.belongs_to(owner), *_usable())
    return session.scalar(statement) or 0


def find_quota(session: Session, owner: str) -> OwnerQuota | None:
    statement = select(OwnerQuota).where(OwnerQuota.readable_by(owner))
    return session.scalar(statement.execution_options(populate_existing=True))


def list_quotas(session: Session, *, limit: int, after: str | None) -> Page[OwnerQuota]:
    """The last changed first."""
    times, owners = OwnerQuota.updated_at, OwnerQuota.owner
    return fetch_page(session, select(OwnerQuota), times, owners, limit=limit, after=after)


def put_quota(session: Session, owner: str, limits: dict[str, int | None] | None) -> None:
    """None deletes the limits."""
    if limits is None:
        session.execute(delete(OwnerQuota).where(OwnerQuota.readable_by(owner)))
        return
    values: dict[str, Any] = {**limits, "updated_at": db_now()}
    statement = upsert_into(session, OwnerQuota).values(owner=owner, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["owner"], set_=values))


def owners_at_limit(
    session: Session, quota: Literal["queued_jobs", "running_jobs"], default: int | None
) -> int | None:
    """Count owners at their limit (`default` without their own), running child jobs included; None without limits."""
    own = OwnerQuota.queued_jobs if quota == "queued_jobs" else OwnerQuota.running_jobs
    if default is None and not session.scalar(select(exists().where(own.is_not(None)))):
        return None
    jobs = select(Job.owner, func.count().label("jobs")).group_by(Job.owner)
    if quota == "queued_jobs":
        jobs = jobs.where(Job.state == JobState.QUEUED, Job.parent_id.is_(None))
    else:
        jobs = jobs.where(Job.state == JobState.RUNNING)
    counts = jobs.subquery()
    at_limit = (
        select(func.count())
        .select_from(counts)
        .outerjoin(OwnerQuota, OwnerQuota.owner == counts.c.owner)
        .where(counts.c.jobs >= func.coalesce(own, default))
    )
    return session.execute(at_limit).scalar_one()


def stored_bytes(session: Session, owner: str) -> int:
    """A blob that two rows share counts twice."""
    return sum(map(int, session.execute(_stored(), {"of_owner": owner}).one()))


def stored_bytes_by_owner(session: Session, most: int) -> tuple[dict[str, int], int]:
    """Return the bytes in files of the `most` largest owners, and of all others together. O(rows)."""
    rows = session.execute(_stored_by_owner(), {"most": most}).all()
    found = {owner: int(size) for owner, size, _ in rows}
    return found, int(rows[0].of_all) - sum(found.values()) if rows else 0


def row_bytes(session: Session, owner: str) -> int:
    """Estimate only rows that the owner can delete."""
    return sum(map(int, session.execute(_rows(), {"of_owner": owner}).one()))


_HOLDS_TURN = text("SELECT pg_advisory_xact_lock(hashtextextended(:whose, 7236512905))")
_TO_HOLD: dict[str, type[Dataset | Model]] = {"dataset": Dataset, "model": Model}


def lock_holds(session: Session, owner: str) -> None:
    """Until the transaction ends. SQLite has only one writer, and needs no lock."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_HOLDS_TURN, {"whose": owner})


def active_hold(session: Session, owner: str, resource_ids: Collection[str]) -> LegalHold | None:
    """Return an active hold on everything, or on one of the resources."""
    of_these = or_(LegalHold.kind == "owner", LegalHold.resource_id.in_(resource_ids))
    return session.scalars(
        select(LegalHold)
        .where(LegalHold.readable_by(owner), LegalHold.released_at.is_(None), of_these)
        .order_by(LegalHold.id)
        .limit(1)
    ).one_or_none()


def exists_to_hold(session: Session, owner: str, kind: str, resource_id: str) -> bool:
    """The trash counts, too."""
    table = _TO_HOLD[kind]
    if not is_id(resource_id, {"dataset": "ds", "model": "mdl"}[kind]):
        return False
    found = exists().where(table.belongs_to(owner), table.id == resource_id)
    return session.scalar(select(found)) or False


def count_active_holds(session: Session, owner: str) -> int:
    """Count holds that are not released."""
    statement = select(func.count()).where(
        LegalHold.belongs_to(owner), LegalHold.released_at.is_(None)
    )
    return session.scalar(statement) or 0


def add_hold(session: Session, hold: LegalHold) -> None:
    session.add(hold)
    session.flush()


def find_hold(session: Session, owner: str, hold_id: str) -> LegalHold | None:
    if not is_id(hold_id, "hld"):
        return None
    return session.scalar(
        select(LegalHold).where(LegalHold.readable_by(owner), LegalHold.id == hold_id)
    )


def list_holds(
    session: Session, owner: str, *, active: bool, limit: int, after: str | None
) -> Page[LegalHold]:
    """Newest first; with `active`, without released ones."""
    statement = select(LegalHold).where(LegalHold.readable_by(owner))
    if active:
        statement = statement.where(LegalHold.released_at.is_(None))
    return fetch_page(
        session, statement, LegalHold.placed_at, LegalHold.id, limit=limit, after=after
    )
