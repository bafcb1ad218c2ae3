"""Queries on requests to erase an entity, and on what they erase."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    ColumnElement,
    String,
    Table,
    Text,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import selectinload

from app.erasure.mentions import document_names, without_id
from app.erasure.places import SEARCHED, TABLES
from app.jobs.service import IMPORT
from app.platform import events
from app.platform.ids import is_id
from app.platform.sql import Base, Json, Page, Session, db_now, fetch_page
from app.platform.tables import (
    FINAL_STATES,
    AliasRequest,
    BatchScore,
    Comparison,
    Dataset,
    DatasetPairs,
    DatasetStatus,
    Erasure,
    Evaluation,
    Idempotency,
    Job,
    JobEvent,
    Measurement,
    Model,
    ModelAliasHistory,
    ModelCalibration,
    ModelGroups,
    ModelLeaderboard,
    ModelReferenceRows,
    Trashable,
    Upload,
    UploadPart,
)


def add(session: Session, erasure: Erasure) -> None:
    session.add(erasure)
    session.flush()


def find(session: Session, owner: str, erasure_id: str, *, lock: bool = False) -> Erasure | None:
    """With `lock`, locked until the transaction ends."""
    if not is_id(erasure_id, "era"):
        return None
    statement = select(Erasure).where(Erasure.readable_by(owner), Erasure.id == erasure_id)
    return session.scalar(statement.with_for_update() if lock else statement)


def list_page(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Erasure]:
    statement = select(Erasure).where(Erasure.readable_by(owner))
    return fetch_page(
        session, statement, Erasure.requested_at, Erasure.id, limit=limit, after=after
    )


def jobs_of(session: Session, owner: str, ids: Iterable[str]) -> dict[str, Job]:
    found = session.scalars(select(Job).where(Job.readable_by(owner), Job.id.in_(ids)))
    return {job.id: job for job in found}


def to_search_again(session: Session, settle_seconds: float, limit: int) -> Sequence[Erasure]:
    """Return open requests of all owners, older than `settle_seconds`, not searched since. Their jobs have ended."""
    verified = Erasure.report["verified_at"].as_float()
    unfinished = exists().where(Job.id == Erasure.job_id, Job.state.not_in(FINAL_STATES))
    return session.scalars(
        select(Erasure)
        .where(
            Erasure.entity_id.is_not(None),
            Erasure.done_at.is_(None),
            Erasure.requested_at < db_now() - settle_seconds,
            verified <= Erasure.requested_at + settle_seconds,
            ~unfinished,
        )
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()


def datasets(session: Session, owner: str) -> Sequence[Dataset]:
    """The trash counts; order by series and version."""
    statement = select(Dataset).where(Dataset.belongs_to(owner))
    statement = statement.options(selectinload(Dataset.pairs))
    series = func.coalesce(Dataset.first_id, Dataset.id)
    return session.scalars(statement.order_by(series, Dataset.version, Dataset.id)).all()


def parts_of_datasets(
    session: Session, owner: str, only: str | None = None
) -> dict[str, list[UploadPart]]:
    """Return parts in order, by dataset, or by open upload; of `only` one."""
    statement = (
        select(Upload.id, Upload.dataset_id, UploadPart)
        .join(UploadPart, UploadPart.upload_id == Upload.id)
        .where(Upload.belongs_to(owner))
        .order_by(UploadPart.upload_id, UploadPart.number)
    )
    if only is not None:
        statement = statement.where(or_(Upload.id == only, Upload.dataset_id == only))
    found: dict[str, list[UploadPart]] = {}
    for upload_id, dataset_id, part in session.execute(statement):
        found.setdefault(dataset_id or upload_id, []).append(part)
    return found


def open_uploads(session: Session, owner: str) -> Sequence[Upload]:
    return session.scalars(
        select(Upload).where(Upload.belongs_to(owner), Upload.dataset_id.is_(None))
    ).all()


def batch_scores(session: Session, owner: str) -> Sequence[BatchScore]:
    """Return those with a result."""
    return session.scalars(
        select(BatchScore).where(BatchScore.belongs_to(owner), BatchScore.result_key.is_not(None))
    ).all()


def evidence_of(session: Session, owner: str) -> Sequence[str]:
    """Return archives of alias requests, and of revisions."""
    statements = (
        select(table.evidence_key).where(table.belongs_to(owner), table.evidence_key.is_not(None))
        for table in (AliasRequest, ModelAliasHistory)
    )
    return sorted({key for each in statements for key in session.scalars(each) if key is not None})


def with_evidence(session: Session, owner: str, key: str) -> list[tuple[str, str]]:
    """Return whose evidence an archive is, and the model: a request's id, or `name@alias, revision n`."""
    requests = select(AliasRequest.id, AliasRequest.model_id).where(
        AliasRequest.belongs_to(owner), AliasRequest.evidence_key == key
    )
    history = select(ModelAliasHistory).where(
        ModelAliasHistory.belongs_to(owner), ModelAliasHistory.evidence_key == key
    )
    found = [(id_, model_id) for id_, model_id in session.execute(requests)]
    return found + [
        (f"{row.name}@{row.alias}, revision {row.revision}", row.model_id)
        for row in session.scalars(history)
    ]


def forget_evidence(session: Session, owner: str, key: str) -> None:
    for table in (AliasRequest, ModelAliasHistory):
        session.execute(
            update(table)
            .where(table.belongs_to(owner), table.evidence_key == key)
            .values(evidence_key=None, evidence_bytes=None),
            execution_options={"synchronize_session": False},
        )


def lock_dataset(session: Session, owner: str, dataset_id: str) -> Dataset | None:
    """The trash counts. Locked until the transaction ends."""
    return session.scalar(
        select(Dataset)
        .where(Dataset.belongs_to(owner), Dataset.id == dataset_id)
        .options(selectinload(Dataset.pairs))
        .with_for_update()
        .execution_options(populate_existing=True)
    )


def waiting_to_be_read(session: Session, owner: str, before: float) -> bool:
    """Return True if an upload from before this time is being read."""
    datasets = select(Dataset.id).where(
        Dataset.belongs_to(owner),
        Dataset.status == DatasetStatus.PROCESSING,
        Dataset.created_at <= before,
    )
    pairs = select(DatasetPairs.id).where(
        DatasetPairs.belongs_to(owner),
        DatasetPairs.status == DatasetStatus.PROCESSING,
        DatasetPairs.created_at <= before,
    )
    return any(session.scalar(each.limit(1)) is not None for each in (datasets, pairs))


def insert_dataset(session: Session, values: Json) -> None:
    session.execute(insert(Dataset).values(values))
    fields = {name: values[name] for name in ("name", "version", "job_id")}
    events.record(session, values["owner"], "dataset.ready", values["id"], **fields)


def insert_pairs(session: Session, values: Json) -> None:
    session.execute(insert(DatasetPairs).values(values))


def delete_dataset(session: Session, owner: str, dataset_id: str) -> None:
    """Delete also from the trash, with the rows that belong to it."""
    session.execute(
        delete(Dataset).where(Dataset.belongs_to(owner), Dataset.id == dataset_id),
        execution_options={"synchronize_session": False},
    )
    session.expire_all()


def delete_upload(session: Session, owner: str, upload_id: str) -> bool:
    """Return False if it was closed or deleted meanwhile."""
    statement = delete(Upload).where(
        Upload.belongs_to(owner), Upload.id == upload_id, Upload.dataset_id.is_(None)
    )
    return session.scalar(statement.returning(Upload.id)) is not None


def unfinished_jobs(session: Session, owner: str, dataset_id: str) -> Sequence[Job]:
    """Lock them until the transaction ends, parents first."""
    return session.scalars(
        select(Job)
        .where(
            Job.belongs_to(owner),
            Job.parent_id.is_(None),
            Job.state.not_in(FINAL_STATES),
            or_(
                Job.dataset_id == dataset_id,
                Job.spec["append_to"].as_string() == dataset_id,
                Job.validation_dataset_id == dataset_id,
            ),
        )
        .order_by(Job.id)
        .with_for_update()
    ).all()


def forget_errors(session: Session, owner: str, dataset_id: str, error: Json) -> None:
    """Remove what jobs have told about rows: events but the last, and details of errors."""
    _forget_errors(session, owner, Job.dataset_id == dataset_id, error)


def forget_errors_of_uploads(
    session: Session, owner: str, kinds: Collection[str], error: Json
) -> None:
    """Remove what ended jobs have told about deleted uploads: events but the last, and details of errors."""
    ended = and_(
        # The table of an import is a dataset, but not its model.
        or_(Job.kind == IMPORT, and_(Job.kind.in_(kinds), Job.dataset_id.is_(None))),
        Job.state.in_(FINAL_STATES),
    )
    _forget_errors(session, owner, ended, error)


def _forget_errors(session: Session, owner: str, of_jobs: ColumnElement[bool], error: Json) -> None:
    jobs = select(Job.id).where(Job.belongs_to(owner), of_jobs)
    last = select(Job.event_seq).where(Job.id == JobEvent.job_id).scalar_subquery()
    session.execute(
        delete(JobEvent).where(JobEvent.job_id.in_(jobs), JobEvent.seq < last),
        execution_options={"synchronize_session": False},
    )
    session.execute(
        update(Job)
        .where(Job.belongs_to(owner), of_jobs, Job.error.is_not(None))
        .values(error=error),
        execution_options={"synchronize_session": False},
    )


def forget_responses(session: Session, owner: str, resource_ids: Collection[str]) -> int:
    """Delete remembered responses that name a resource."""
    count = 0
    for id_ in resource_ids:
        named = cast(Idempotency.response, String).contains(id_)
        statement = delete(Idempotency).where(Idempotency.belongs_to(owner), named)
        count += len(session.scalars(statement.returning(Idempotency.key)).all())
    return count


def forget_responses_with_id(session: Session, owner: str, entity: str) -> None:
    """Delete remembered responses whose body or Idempotency-Key names the entity."""
    columns = Idempotency.__table__.c
    is_near = [
        cast(column, String).contains(_spelt(column.type, entity), autoescape=True)
        for column in (columns.key, columns.response)
    ]
    statement = select(Idempotency).where(Idempotency.belongs_to(owner), or_(*is_near))
    for row in session.scalars(statement):
        key = row.key.partition(" ")[2]  # after the principal
        if document_names([key, row.response], entity):
            session.delete(row)


def calibrated_on(session: Session, owner: str) -> dict[str, list[str]]:
    """Return calibrated models by dataset."""
    statement = (
        select(ModelCalibration.dataset["id"].as_string(), ModelCalibration.model_id)
        .join(Model, Model.id == ModelCalibration.model_id)
        .where(Model.belongs_to(owner))
    )
    found: dict[str, list[str]] = {}
    for dataset_id, model_id in session.execute(statement):
        found.setdefault(dataset_id, []).append(model_id)
    return found


def models_trained_on(session: Session, owner: str, dataset: Dataset) -> set[str]:
    """Return the ids of models that were trained on a version, also before an earlier erasure replaced it, and of
    imported copies of their artifacts. The trash counts.

    The number of a version is never used again, so the name and the number stand for it and those that replaced it.
    """
    own = (
        Model.dataset["name"].as_string() == dataset.name,
        Model.dataset["version"].as_integer() == dataset.version,
    )
    is_own = and_(Model.imported.is_(None), or_(Model.dataset_id == dataset.id, and_(*own)))
    artifacts = select(Model.artifact_sha256).where(Model.belongs_to(owner), is_own)
    is_copy = or_(
        Model.imported["sha256"].as_string().in_(artifacts),
        Model.imported["dataset_sha256"].as_string() == dataset.sha256,
    )
    statement = select(Model.id).where(Model.belongs_to(owner), or_(is_own, is_copy))
    return {*session.scalars(statement)}


def models_of_purged_datasets(session: Session, owner: str) -> Sequence[Model]:
    """Return models whose training dataset is gone, which cannot be searched."""
    there = exists().where(
        Dataset.belongs_to(owner),
        or_(
            Dataset.id == Model.dataset_id,
            and_(
                Dataset.name == Model.dataset["name"].as_string(),
                Dataset.version == Model.dataset["version"].as_integer(),
            ),
        ),
    )
    statement = select(Model).where(Model.belongs_to(owner), Model.imported.is_(None), ~there)
    return session.scalars(statement.order_by(Model.name, Model.version)).all()


def models_of(
    session: Session, owner: str, dataset_id: str, more: Collection[str]
) -> Sequence[Model]:
    """Return models trained or validated on a dataset, and those with the ids `more`. The trash counts."""
    return session.scalars(
        select(Model)
        .where(
            Model.belongs_to(owner),
            or_(
                Model.dataset_id == dataset_id,
                Model.validation_dataset_id == dataset_id,
                Model.id.in_(more),
            ),
        )
        .order_by(Model.name, Model.version)
    ).all()


def members_of(session: Session, model_id: str) -> list[Json]:
    """Return what `auto` has combined."""
    found = session.get(ModelLeaderboard, model_id)
    return [] if found is None else [dict(each) for each in found.members]


def delete_model(session: Session, owner: str, model_id: str) -> None:
    session.execute(
        delete(Model).where(Model.belongs_to(owner), Model.id == model_id),
        execution_options={"synchronize_session": False},
    )
    session.expire_all()


def drop_reference_rows(session: Session, model_id: str) -> None:
    """Delete the rows with which reasons compare."""
    session.execute(delete(ModelReferenceRows).where(ModelReferenceRows.model_id == model_id))


def has_reference_rows(session: Session, model_id: str) -> bool:
    return bool(session.scalar(select(exists().where(ModelReferenceRows.model_id == model_id))))


def drop_groups(session: Session, model_id: str, is_of: Callable[[Any], bool]) -> None:
    """Delete metrics by group, and proxy tests and weak segments of a group; `is_of` finds it in documents."""
    found = session.get(ModelGroups, model_id)
    if found is not None and is_of(found.columns):
        session.delete(found)
    model = session.get_one(Model, model_id)
    if is_of(model.proxies):
        model.proxies = [
            each
            for each in model.proxies or ()
            if not is_of({"column": each["column"], "value": each["value"]})
        ]
    for row in session.scalars(select(Measurement).where(Measurement.model_id == model_id)):
        weak = row.metrics.get("weak_segments")
        if weak is not None and is_of(weak["found"]):
            kept = [each for each in weak["found"] if not is_of(each["conditions"])]
            row.metrics = {**row.metrics, "weak_segments": {**weak, "found": kept}}


def batch_scores_of(session: Session, owner: str, dataset_id: str) -> Sequence[str]:
    return session.scalars(
        select(BatchScore.id).where(
            BatchScore.belongs_to(owner), BatchScore.dataset_id == dataset_id
        )
    ).all()


def delete_batch_scores(
    session: Session, owner: str, ids: Collection[str]
) -> Sequence[tuple[str, str | None]]:
    """Return ids and keys of the results of those that existed."""
    statement = delete(BatchScore).where(BatchScore.belongs_to(owner), BatchScore.id.in_(ids))
    returned = statement.returning(BatchScore.id, BatchScore.result_key)
    return [(row[0], row[1]) for row in session.execute(returned)]


def outputs_of(
    session: Session, owner: str, dataset_id: str
) -> list[tuple[type[Trashable], str, list[Any]]]:
    """Return evaluations and comparisons: table, id and documents. The trash counts."""
    evaluations = session.execute(
        select(Evaluation.id, Measurement.metrics, Evaluation.drift)
        .outerjoin(Measurement, Measurement.evaluation_id == Evaluation.id)
        .where(Evaluation.belongs_to(owner), Evaluation.dataset_id == dataset_id)
    )
    comparisons = session.execute(
        select(Comparison.id, Comparison.result).where(
            Comparison.belongs_to(owner), Comparison.dataset_id == dataset_id
        )
    )
    return [
        *((Evaluation, row[0], list(row[1:])) for row in evaluations),
        *((Comparison, row[0], list(row[1:])) for row in comparisons),
    ]


def delete_output(session: Session, table: type[Trashable], owner: str, id_: str) -> None:
    own_id = table.__table__.c.id
    session.execute(delete(table).where(table.belongs_to(owner), own_id == id_))


def search_texts(session: Session, owner: str, entity: str) -> Iterator[tuple[str, str]]:
    """Yield table and primary key of each row with a text that names the entity."""
    for table in Base.metadata.sorted_tables:
        if TABLES[table.name] in SEARCHED:
            texts = [column for column in table.c if isinstance(column.type, Text | JSON)]
            is_near = [
                cast(column, String).contains(_spelt(column.type, entity), autoescape=True)
                for column in texts
            ]
            if not is_near:
                continue
            keys = list(table.primary_key)
            statement = select(*keys, *texts).where(_of_owner(table, owner), or_(*is_near))
            for row in session.execute(statement):
                if document_names(list(row[len(keys) :]), entity):
                    shown = [
                        without_id(str(key), entity) for key in row[: len(keys)] if key != owner
                    ]
                    yield table.name, " ".join(shown)


def _spelt(type_: Any, entity: str) -> str:
    """Return the id as inside a text of the database."""
    return orjson.dumps(entity).decode()[1:-1] if isinstance(type_, JSON) else entity


def _of_owner(table: Table, owner: str) -> ColumnElement[bool]:
    """The row belongs to an owner, or to something of an owner."""
    if "owner" in table.c:
        return table.c.owner == owner
    others = [key for key in table.foreign_keys if key.column.table is not table]
    if not others:
        raise TypeError(f"{table.name} has no owner")
    return or_(
        *(
            key.parent.in_(select(key.column).where(_of_owner(key.column.table, owner)))
            for key in others
        )
    )
