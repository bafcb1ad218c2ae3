"""Queries over all owners: metrics, old rows, and the blobs to which rows refer."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    String,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
    union,
    update,
)
from sqlalchemy.orm import Session, aliased

from app.feedback.monitor_repository import MonitoredAlias
from app.jobs import queue_repository as parts
from app.platform.sql import Base, Page, db_now, delete_some, fetch_page, upsert_into
from app.platform.tables import (
    FINAL_STATES,
    AliasFeedback,
    AliasRequest,
    AliasRequestState,
    AuditSeal,
    BatchScore,
    BreakGlass,
    BrowserSession,
    Comparison,
    Dataset,
    DatasetName,
    DatasetStatus,
    DecisionSegment,
    Erasure,
    Evaluation,
    Job,
    JobEvent,
    JobState,
    LastSuccess,
    LegalHold,
    Model,
    ModelAlias,
    ModelAliasHistory,
    OutcomeSegment,
    Owned,
    PrunedJobs,
    RetentionRule,
    Upkeep,
    Upload,
    UploadRow,
    Webhook,
    output_tables,
)


def ping(session: Session) -> None:
    """Test the connection."""
    session.execute(select(1))


def encrypted_texts(session: Session) -> set[str]:
    """Return all texts encrypted with the keys of stored secrets."""
    columns = (Webhook.secret, Webhook.previous_secret, BrowserSession.refresh_token)
    return {
        text
        for column in columns
        for text in session.scalars(select(column).where(column.is_not(None)))
        if text is not None
    }


def sealing_keys(session: Session) -> set[str]:
    return set(session.scalars(select(AuditSeal.key_id).distinct()))


def sqlite_errors(session: Session) -> list[str]:
    found = session.scalars(text("PRAGMA integrity_check")).all()
    return [error for error in found if error != "ok"]


def open_jobs(session: Session) -> dict[str, int]:
    """Child jobs count, too."""
    statement = select(Job.state, func.count()).where(Job.state.not_in(FINAL_STATES))
    return dict(session.execute(statement.group_by(Job.state)).all())


def oldest_due(session: Session) -> float | None:
    """Return how long the oldest due job has waited."""
    since = func.min(case((Job.not_before > Job.created_at, Job.not_before), else_=Job.created_at))
    due = select(since).where(Job.state == JobState.QUEUED, Job.not_before <= db_now())
    waited: float | None = session.scalar(select(db_now() - due.scalar_subquery()))
    return None if waited is None else max(0.0, waited)


class Lane(NamedTuple):
    """A kind of job, and whether its priority is `high` (above 0), `normal` (0) or `low`."""

    kind: str
    priority: str


def queue_ages(session: Session) -> dict[Lane, float]:
    """Return how long each lane's oldest job has been due, without child jobs, which are as old as their parent."""
    priority = case((Job.priority > 0, "high"), (Job.priority < 0, "low"), else_="normal")
    since = func.min(case((Job.not_before > Job.created_at, Job.not_before), else_=Job.created_at))
    statement = select(Job.kind, priority, db_now() - since).where(
        Job.state == JobState.QUEUED, Job.not_before <= db_now(), Job.parent_id.is_(None)
    )
    found = session.execute(statement.group_by(Job.kind, priority))
    return {Lane(kind, of): max(0.0, age) for kind, of, age in found}


def note_success(session: Session, what: Upkeep) -> None:
    """Record success now."""
    statement = upsert_into(session, LastSuccess).values(what=what, at=db_now())
    session.execute(
        statement.on_conflict_do_update(index_elements=["what"], set_={"at": statement.excluded.at})
    )


def last_successes(session: Session) -> dict[str, float]:
    """Return Unix times, without kinds that never succeeded."""
    return dict(session.execute(select(LastSuccess.what, LastSuccess.at)).all())


def database_bytes(session: Session) -> int:
    """PostgreSQL's tables and indexes, or SQLite's file without its log."""
    size = (
        "SELECT pg_database_size(current_database())"
        if session.get_bind().dialect.name == "postgresql"
        else "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    )
    return int(session.execute(text(size)).scalar_one())


def server_connections(session: Session) -> tuple[int, int] | None:
    """Return clients, and how many the server allows; None for SQLite."""
    if session.get_bind().dialect.name != "postgresql":
        return None
    in_use, most = session.execute(
        text(
            "SELECT count(*), current_setting('max_connections')::int FROM pg_stat_activity "
            "WHERE backend_type = 'client backend'"
        )
    ).one()
    return in_use, most


def job_counts(session: Session) -> dict[tuple[str, str], int]:
    """By kind and state."""
    statement = select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    return {(kind, state): count for kind, state, count in session.execute(statement)}


class EndedJob(NamedTuple):
    """A job and when it ended: its position in the order."""

    finished_at: float
    id: str


FIRST = EndedJob(0.0, "")
DAY_SECONDS = 86400.0

Conditions = tuple[ColumnElement[bool], ...]


class OwnedDataset(NamedTuple):
    """A dataset's id and its owner."""

    id: str
    owner: str


def prune_alias_history(session: Session, age_seconds: float, limit: int) -> int:
    """Delete old entries of the history of aliases that do not exist."""
    history = ModelAliasHistory
    alive = exists().where(
        ModelAlias.owner == history.owner,
        ModelAlias.name == history.name,
        ModelAlias.alias == history.alias,
    )
    held = LegalHold.covers(history.owner)
    return delete_some(
        session, history, history.at < db_now() - age_seconds, ~alive, ~held, limit=limit
    )


def prune_alias_requests(session: Session, age_seconds: float, limit: int) -> int:
    """Delete requests that ended long ago; approved ones remain as long as the alias, whose history names them."""
    request = AliasRequest
    alive = exists().where(
        ModelAlias.owner == request.owner,
        ModelAlias.name == request.name,
        ModelAlias.alias == request.alias,
    )
    ended = func.coalesce(request.decided_at, request.expires_at) < db_now() - age_seconds
    unnamed = (request.state != AliasRequestState.APPROVED) | ~alive
    held = LegalHold.covers(request.owner)
    return delete_some(session, request, ended, unnamed, ~held, limit=limit)


def prune_break_glass(session: Session, age_seconds: float, limit: int) -> int:
    """Delete suspensions that ended long ago."""
    held = LegalHold.covers(BreakGlass.owner)
    ended = BreakGlass.until < db_now() - age_seconds
    return delete_some(session, BreakGlass, ended, ~held, limit=limit)


def count_break_glass(session: Session, age_seconds: float) -> int:
    """Count suspensions that are active, or were in the last seconds."""
    recent = BreakGlass.until > db_now() - age_seconds
    statement = select(func.count()).select_from(BreakGlass).where(recent)
    return session.scalar(statement) or 0


def prune_batch_scores(session: Session, age_seconds: float, limit: int) -> int:
    """Delete old batch scores with ended jobs, of owners without their own days."""
    going_on = exists().where(Job.id == BatchScore.job_id, Job.state.not_in(FINAL_STATES))
    old = BatchScore.created_at < db_now() - age_seconds
    held = LegalHold.covers(BatchScore.owner)
    own = _has_own(RetentionRule.batch_scores, BatchScore.owner)
    return delete_some(session, BatchScore, old, ~going_on, ~held, ~own, limit=limit)


def prune_uploads(session: Session, age_seconds: float, limit: int) -> int:
    """Delete open uploads without a new part for `age_seconds`, except one that another transaction is changing."""
    old = Upload.touched_at < db_now() - age_seconds
    held = LegalHold.covers(Upload.owner)
    forgotten = select(Upload.id).where(old, Upload.dataset_id.is_(None), ~held).limit(limit)
    ids = list(session.scalars(forgotten.with_for_update(skip_locked=True)))
    return delete_some(session, Upload, Upload.id.in_(ids), limit=limit)


def prune_dataset_names(session: Session, limit: int) -> int:
    """Delete version counters of names without a dataset."""
    used = exists().where(Dataset.owner == DatasetName.owner, Dataset.name == DatasetName.name)
    return delete_some(session, DatasetName, ~used, limit=limit)


def ended_jobs(
    session: Session, age_seconds: float, after: EndedJob, limit: int, *, unneeded: bool
) -> Sequence[EndedJob]:
    """Order by end. `unneeded`: only jobs to which nothing refers, of owners without their own days for jobs."""
    conditions = [
        Job.parent_id.is_(None),
        Job.finished_at < db_now() - age_seconds,
        tuple_(Job.finished_at, Job.id) > tuple_(after.finished_at, after.id),
        ~LegalHold.covers(Job.owner),
    ]
    if unneeded:
        conditions += [_unneeded(), ~_has_own(RetentionRule.jobs, Job.owner)]
    statement = select(Job.finished_at, Job.id).where(*conditions)
    statement = statement.order_by(Job.finished_at, Job.id).limit(limit)
    return [EndedJob(at, id_) for at, id_ in session.execute(statement) if at is not None]


def prune_events(session: Session, job_ids: Sequence[str], limit: int, *, spare_last: bool) -> int:
    """With `spare_last`, keep each job's last event."""
    of_these: ColumnElement[bool] = JobEvent.job_id.in_(job_ids)
    if spare_last:
        last = select(Job.event_seq).where(Job.id == JobEvent.job_id).scalar_subquery()
        of_these = and_(of_these, JobEvent.seq < last)
    return delete_some(session, JobEvent, of_these, limit=limit)


def prune_jobs(session: Session, job_ids: Sequence[str]) -> int:
    """Delete those to which nothing refers, with their rows. `ended_counts` still includes them."""
    removed = Counter(
        (kind, state)
        for kind, state in session.execute(
            delete(Job).where(Job.id.in_(job_ids), _unneeded()).returning(Job.kind, Job.state),
            execution_options={"synchronize_session": False},
        )
    )
    # always in the same order, to avoid deadlocks
    for (kind, state), jobs in sorted(removed.items()):
        statement = upsert_into(session, PrunedJobs).values(kind=kind, state=state, jobs=jobs)
        session.execute(
            statement.on_conflict_do_update(
                index_elements=["kind", "state"],
                set_={"jobs": PrunedJobs.jobs + statement.excluded.jobs},
            )
        )
    return removed.total()


def ended_counts(
    session: Session, counts: Mapping[tuple[str, str], int] | None = None
) -> dict[tuple[str, str], int]:
    """Count jobs that ever ended, by kind and state: deleted ones, too, but no child jobs.

    `counts` is the result of `job_counts` in the same transaction.
    """
    # An index has kind and state of all jobs, but not their parents. Child jobs are few: housekeeping deletes them.
    # A comparison, because SQLite does not look for IS NOT NULL in an index.
    of_parts = select(Job.kind, Job.state, func.count()).where(Job.parent_id > "")
    found: Counter[tuple[str, str]] = Counter()
    for (kind, state), jobs in (job_counts(session) if counts is None else counts).items():
        if state in FINAL_STATES:
            found[kind, state] += jobs
    for kind, state, jobs in session.execute(of_parts.group_by(Job.kind, Job.state)):
        if state in FINAL_STATES:
            found[kind, state] -= jobs
    for kind, state, jobs in session.execute(
        select(PrunedJobs.kind, PrunedJobs.state, PrunedJobs.jobs)
    ):
        found[kind, state] += jobs
    return dict(+found)


def _unneeded() -> ColumnElement[bool]:
    """The job has ended, and neither a model nor an output refers to it."""
    part = aliased(Job)
    return and_(
        Job.state.in_(FINAL_STATES),
        ~exists().where(Model.job_id == Job.id),
        *(~exists().where(table.job_id == Job.id) for table in output_tables()),
        # its child jobs are deleted first, by their own rule
        ~exists().where(part.parent_id == Job.id),
    )


def is_without_table(age_seconds: float) -> Conditions:
    """The dataset has been invalid or unchanged for at least `age_seconds`."""
    without = (DatasetStatus.INVALID, DatasetStatus.UNCHANGED)
    return (Dataset.status.in_(without), *_at_rest(age_seconds))


def is_unused(age_seconds: float) -> Conditions:
    """Nothing was derived from the dataset, and no job has used it for `age_seconds`."""
    outputs = (table.__table__.c for table in output_tables() if not issubclass(table, UploadRow))
    child = aliased(Dataset)
    users = (
        *(columns.dataset_id for columns in outputs if "dataset_id" in columns),
        Model.dataset_id,
        Model.validation_dataset_id,
        child.parent_id,
        child.base_id,
    )
    # One indexed search for each column: OR and NOT IN can make the database read whole tables.
    return (
        Dataset.status == DatasetStatus.READY,
        *_at_rest(age_seconds),
        *(~exists().where(user == Dataset.id) for user in users),
    )


def _at_rest(age_seconds: float) -> Conditions:
    """The dataset is older than `age_seconds`, and no job has used it within this time."""
    recent = or_(Job.finished_at.is_(None), Job.finished_at > db_now() - age_seconds)
    return (
        Dataset.created_at < db_now() - age_seconds,
        *(
            ~exists().where(user == Dataset.id, recent)
            for user in (Job.dataset_id, Job.validation_dataset_id)
        ),
    )


def find_datasets(
    session: Session, conditions: Conditions, after: str, limit: int
) -> Sequence[OwnedDataset]:
    """Return up to `limit` datasets that satisfy the conditions, ordered by id."""
    statement = select(Dataset.id, Dataset.owner).where(Dataset.id > after, *conditions)
    return [
        OwnedDataset(*row) for row in session.execute(statement.order_by(Dataset.id).limit(limit))
    ]


def is_still_so(session: Session, conditions: Conditions, dataset_id: str) -> bool:
    """Return True if the dataset satisfies the conditions now."""
    return session.scalar(select(exists().where(Dataset.id == dataset_id, *conditions))) or False


def aliases_with_decisions(session: Session) -> list[MonitoredAlias]:
    """Deleted aliases count, too."""
    columns = (DecisionSegment.owner, DecisionSegment.name, DecisionSegment.alias)
    return [MonitoredAlias(*row) for row in session.execute(select(*columns).distinct())]


def owners_of_outcomes(session: Session) -> Sequence[str]:
    """Owners under a legal hold on everything are left out."""
    held = LegalHold.covers(OutcomeSegment.owner)
    return session.scalars(select(OutcomeSegment.owner).where(~held).distinct()).all()


def owners_of_pending_decisions(session: Session) -> Sequence[str]:
    statement = select(DecisionSegment.owner).where(DecisionSegment.final_at.is_(None))
    return session.scalars(statement.distinct()).all()


def lost_decisions(session: Session, age: float) -> int:
    """Count decisions that recently sealed segments lack."""
    statement = select(func.sum(DecisionSegment.lost)).where(
        DecisionSegment.sealed_at > db_now() - age
    )
    return session.scalar(statement) or 0


def oldest_pending_decisions(session: Session) -> float | None:
    """Return the age of the oldest sealed segment that is not final."""
    oldest = func.min(DecisionSegment.sealed_at)
    return session.scalar(select(db_now() - oldest).where(DecisionSegment.final_at.is_(None)))


def owners_to_erase(session: Session) -> Sequence[str]:
    """Owners under a legal hold on everything are left out."""
    held = LegalHold.covers(Erasure.owner)
    open_ = select(Erasure.owner).where(Erasure.done_at.is_(None), ~held)
    return session.scalars(open_.distinct()).all()


class OldFiles(NamedTuple):
    """The blobs that an erasure has replaced."""

    erasure_id: str
    keys: list[str]


def old_files_of_erasures(session: Session) -> list[OldFiles]:
    """Return replaced blobs that are not known to be deleted."""
    statement = select(Erasure.id, Erasure.old_keys).where(Erasure.old_keys.is_not(None))
    return [OldFiles(id_, keys or []) for id_, keys in session.execute(statement)]


def forget_old_files(session: Session, old: OldFiles) -> None:
    """Record that the blobs are deleted, unless the erasure has replaced more."""
    erasure = session.get(Erasure, old.erasure_id, with_for_update=True)
    if erasure is not None and erasure.old_keys == old.keys:
        erasure.old_keys = None


def expire_erasures(session: Session, limit: int) -> int:
    """Delete the entity's id from failed requests whose time has passed. After an outage, others continue."""
    continues = exists().where(
        Job.id == Erasure.job_id,
        or_(Job.state == JobState.SUCCEEDED, Job.state.not_in(FINAL_STATES)),
    )
    late = select(Erasure.id).where(
        Erasure.entity_id.is_not(None), Erasure.due_at < db_now(), ~continues
    )
    ids = session.scalars(late.limit(limit)).all()
    session.execute(update(Erasure).where(Erasure.id.in_(ids)).values(entity_id=None))
    return len(ids)


class BlobColumn(NamedTuple):
    """A column with blob keys: its table (for messages), the primary key, and the column."""

    what: str
    ids: Sequence[Column[Any]]
    key: Column[Any]


@functools.cache
def blob_columns() -> Sequence[BlobColumn]:
    """Return every column with blob keys, found by the ending `_key`: blobs in no such column are deleted, and not
    backed up.

    Checkpoints are not included: a job can run without its checkpoint.
    """
    found = []
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if column.name.endswith("_key") and column.name != Job.checkpoint_key.name:
                what = f"{column.name.removesuffix('_key')} of {table.name}"
                found.append(BlobColumn(what, list(table.primary_key), column))
    return found


def named(session: Session, keys: Sequence[str]) -> set[str]:
    """Return the keys in `blob_columns`, or in unfinished jobs."""
    statement: CompoundSelect[Any] = union(
        *(select(column.key).where(column.key.in_(keys)) for column in blob_columns())
    )
    found = {key for key in session.scalars(statement) if key is not None}
    if any(key.startswith("parts/") for key in keys):
        found |= {key for _, key in of_parts(session)}.intersection(keys)
    if any(key.startswith("checkpoints/") for key in keys):
        checkpoints = select(Job.checkpoint_key).where(Job.checkpoint_key.in_(keys))
        found |= {key for key in session.scalars(checkpoints) if key is not None}
    return found


def page(
    session: Session, column: BlobColumn, after: Sequence[str | int], limit: int
) -> Sequence[tuple[list[str | int], str]]:
    """Return (primary key, blob key) pairs after `after` (empty: from the first)."""
    statement = select(column.key, *column.ids).where(column.key.is_not(None))
    if after:
        statement = statement.where(tuple_(*column.ids) > tuple_(*map(literal, after)))
    found = session.execute(statement.order_by(*column.ids).limit(limit))
    return [(ids, key) for key, *ids in found]


def of_parts(session: Session) -> Sequence[tuple[str, str]]:
    """Return (child job, blob key) pairs of child jobs whose parents have not ended."""
    return [
        (part_id, key)
        for part_id, result in parts.results_in_use(session)
        for key in result["files"].values()
    ]


def runs_since(session: Session, age_seconds: float) -> bool:
    """Return True if a job of this age is still running: its staging folder may be as old."""
    started = select(func.min(Job.started_at)).where(Job.state == JobState.RUNNING)
    return bool(session.scalar(select(started.scalar_subquery() < db_now() - age_seconds)))


_RECORDED = (AliasFeedback.owner, AliasFeedback.name, AliasFeedback.alias)


def _is_recorded() -> ColumnElement[bool]:
    """Return the condition that settings are the newest of an alias that exists, and not null."""
    newest = select(*_RECORDED, func.max(AliasFeedback.revision)).group_by(*_RECORDED)
    exist = select(ModelAlias.owner, ModelAlias.name, ModelAlias.alias)
    return and_(
        AliasFeedback.settings.is_not(None),
        tuple_(*_RECORDED, AliasFeedback.revision).in_(newest),
        tuple_(*_RECORDED).in_(exist),
    )


def recorded_aliases(session: Session, after: MonitoredAlias, limit: int) -> list[MonitoredAlias]:
    """Return aliases whose newest feedback settings are not null, in alphabetical order, after one."""
    statement = (
        select(*_RECORDED)
        .where(_is_recorded(), tuple_(*_RECORDED) > tuple_(*after))
        .order_by(*_RECORDED)
        .limit(limit)
    )
    return [MonitoredAlias(*row) for row in session.execute(statement)]


def _is_challenger(owner: str) -> ColumnElement[bool]:
    """Return the condition that a model is the shadow model of an alias, by id, `name:version` or name."""
    newer = aliased(Model)
    is_newest = ~exists().where(
        newer.readable_by(owner), newer.name == Model.name, newer.version > Model.version
    )
    shadow = AliasFeedback.settings["shadow"].as_string()
    version = Model.name + ":" + cast(Model.version, String)
    is_named = shadow.in_((Model.id, version)) | ((shadow == Model.name) & is_newest)
    return exists().where(AliasFeedback.readable_by(owner), _is_recorded(), is_named)


def find_retention(session: Session, owner: str) -> RetentionRule | None:
    return session.scalar(select(RetentionRule).where(RetentionRule.readable_by(owner)))


def list_retention(session: Session, *, limit: int, after: str | None) -> Page[RetentionRule]:
    """The last changed first."""
    times, owners = RetentionRule.updated_at, RetentionRule.owner
    return fetch_page(session, select(RetentionRule), times, owners, limit=limit, after=after)


def all_retention(session: Session) -> Sequence[RetentionRule]:
    return session.scalars(select(RetentionRule).order_by(RetentionRule.owner)).all()


def put_retention(session: Session, owner: str, days: Mapping[str, float | None] | None) -> None:
    """None deletes the days."""
    if days is None:
        session.execute(delete(RetentionRule).where(RetentionRule.readable_by(owner)))
        return
    values: dict[str, Any] = {**days, "updated_at": db_now()}
    statement = upsert_into(session, RetentionRule).values(owner=owner, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["owner"], set_=values))


def _has_own(days: Any, owner: Any) -> ColumnElement[bool]:
    """Return the condition that an owner has own days of retention of one kind."""
    return exists().where(RetentionRule.owner == owner, days.is_not(None))


def expired(kind: str, owner: str, days: float) -> list[tuple[type[Owned], Conditions]]:
    """Return for each table of a kind the conditions that a row is old, and not held, in use or in unfinished jobs."""
    before = db_now() - days * DAY_SECONDS

    def of(table: Any, at: Any, *more: ColumnElement[bool]) -> tuple[type[Owned], Conditions]:
        held = LegalHold.covers(owner, table.__table__.c.id)
        return table, (table.readable_by(owner), at < before, ~held, *more)

    def at_rest(job: Any) -> ColumnElement[bool]:
        return ~exists().where(job, Job.state.not_in(FINAL_STATES))

    if kind == "datasets":
        users = (Job.dataset_id, Job.validation_dataset_id, Job.spec["append_to"].as_string())
        free = (at_rest(user == Dataset.id) for user in users)
        return [of(Dataset, Dataset.created_at, Dataset.status == DatasetStatus.READY, *free)]
    if kind == "models":
        named = exists().where(ModelAlias.model_id == Model.id)
        return [of(Model, Model.created_at, ~named, ~_is_challenger(owner))]
    if kind == "batch_scores":
        free = at_rest(Job.id == BatchScore.job_id)
        return [of(BatchScore, BatchScore.created_at, free)]
    if kind == "evaluations":
        outputs = (Evaluation, Comparison)
        return [of(each, each.created_at, at_rest(Job.id == each.job_id)) for each in outputs]
    if kind == "decisions":
        return [
            of(DecisionSegment, DecisionSegment.last_at),
            of(OutcomeSegment, OutcomeSegment.last_known_at),
        ]
    assert kind == "jobs"
    return [of(Job, Job.finished_at, Job.parent_id.is_(None), _unneeded())]


def count_expired(session: Session, kind: str, owner: str, days: float) -> int:
    return sum(
        session.execute(select(func.count()).select_from(table).where(*conditions)).scalar_one()
        for table, conditions in expired(kind, owner, days)
    )


def find_expired(session: Session, kind: str, owner: str, days: float, limit: int) -> list[str]:
    found: list[str] = []
    for table, conditions in expired(kind, owner, days):
        own_id = table.__table__.c.id
        found += session.scalars(
            select(own_id).where(*conditions).order_by(own_id).limit(limit - len(found))
        )
    return found


def prune_expired(session: Session, kind: str, owner: str, days: float, limit: int) -> int:
    """Delete rows that `expired` selects, of the first of its tables that has some."""
    for table, conditions in expired(kind, owner, days):
        if count := delete_some(session, table, *conditions, limit=limit):
            return count
    return 0
