"""Queries on datasets. With `lock`, a row is locked until the transaction ends.

For functions without `owner` the caller has checked the owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased, defer, selectinload, with_expression

from app.platform import events
from app.platform.sql import (
    ALL_ROWS,
    Json,
    Page,
    RowFilter,
    ascii_lower,
    db_now,
    fetch_page,
    next_number,
)
from app.platform.tables import (
    FINAL_STATES,
    Dataset,
    DatasetName,
    DatasetPairs,
    DatasetProfile,
    DatasetStatus,
    Job,
    Upload,
    UploadPart,
    UploadRow,
)


def insert_dataset(session: Session, **values: Any) -> Dataset:
    """Insert a dataset that a job will read, created by the database's clock. Its bytes must be durable already."""
    statement = (
        insert(Dataset)
        .values(
            status=DatasetStatus.PROCESSING,
            columns=[],
            errors=[],
            created_at=db_now(),
            **values,
        )
        .returning(Dataset)
    )
    return session.scalars(statement).one()


def find(session: Session, owner: str, dataset_id: str, *, lock: bool = False) -> Dataset | None:
    """Return the dataset with its pairs; None if it does not exist."""
    statement = select(Dataset).where(Dataset.id == dataset_id, Dataset.readable_by(owner))
    statement = statement.options(selectinload(Dataset.pairs))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def lock_shared(
    session: Session, owner: str, ids: Iterable[str], *, to_change: bool = False
) -> None:
    """Lock datasets that a job reads against change and deletion; others may, too, unless they are `to_change`.

    The order of ids prevents deadlocks.
    """
    statement = select(Dataset.id).where(Dataset.id.in_(ids), Dataset.readable_by(owner))
    session.execute(statement.order_by(Dataset.id).with_for_update(read=not to_change))


def find_alone(session: Session, owner: str, dataset_id: str) -> Dataset | None:
    return session.scalar(
        select(Dataset).where(Dataset.id == dataset_id, Dataset.readable_by(owner))
    )


def mark_invalid(session: Session, table: type[UploadRow], job_id: str, errors: list[Json]) -> None:
    """Store the errors, and set the status to invalid."""
    statement = (
        update(table)
        .where(table.job_id == job_id, table.status == DatasetStatus.PROCESSING)
        .values(status=DatasetStatus.INVALID, errors=errors)
    )
    if table is not Dataset:
        session.execute(statement)
        return
    ended = statement.returning(Dataset.id, Dataset.owner, Dataset.name, Dataset.version)
    for id_, owner, name, version in session.execute(ended).all():
        events.record(
            session, owner, "dataset.failed", id_, name=name, version=version, job_id=job_id
        )


def mark_ready(
    session: Session,
    table: type[UploadRow],
    owner: str,
    dataset_id: str,
    job_id: str,
    columns: Mapping[str, Any],
) -> bool:
    """Store the results, and set the status to ready; returns False if no upload waits for the job."""
    statement = (
        update(table)
        .where(
            table.id == dataset_id,
            table.readable_by(owner),
            table.job_id == job_id,
            table.status == DatasetStatus.PROCESSING,
        )
        .values({"status": DatasetStatus.READY, "errors": [], **columns})
    )
    if table is not Dataset:
        return session.scalars(statement.returning(table.id)).one_or_none() is not None
    made = (Dataset.name, Dataset.version, Dataset.status)
    found = session.execute(statement.returning(*made)).one_or_none()
    if found is not None and found.status == DatasetStatus.READY:
        name, version, _ = found
        events.record(
            session, owner, "dataset.ready", dataset_id, name=name, version=version, job_id=job_id
        )
    return found is not None


_LARGE = (
    Dataset.columns,
    Dataset.errors,
    Dataset.warnings,
    Dataset.labels,
    Dataset.reading,
    Dataset.queries,
    Dataset.grades,
)
"""Members of a dataset that grow with its table: no list reads them."""


def list_page(
    session: Session,
    owner: str,
    *,
    name: str | None = None,
    only: RowFilter = ALL_ROWS,
    series_id: str | None = None,
    latest: bool = False,
    limit: int,
    after: str | None,
) -> Page[Dataset]:
    """Newest first, with pairs and without large members. `latest`: only the newest ready version of each series."""
    statement = only.apply(select(Dataset).where(Dataset.readable_by(owner)), Dataset)
    if name is not None:
        statement = statement.where(Dataset.name == name)
    if series_id is not None:
        statement = statement.where(_in_series(series_id))
    if latest:
        newer = aliased(Dataset)
        superseded = exists().where(
            newer.first_id == func.coalesce(Dataset.first_id, Dataset.id),
            newer.version > Dataset.version,
            newer.status == DatasetStatus.READY,
            newer.deleted_at.is_(None),
        )
        statement = statement.where(Dataset.status == DatasetStatus.READY, ~superseded)
    return fetch_page(
        session,
        statement,
        Dataset.created_at,
        Dataset.id,
        limit=limit,
        after=after,
        sort=only.sort,
        keys={"name": (ascii_lower(Dataset.name),)},
        options=[
            selectinload(Dataset.pairs),
            with_expression(Dataset.n_columns, func.json_array_length(Dataset.columns)),
            *(defer(column, raiseload=True) for column in _LARGE),
        ],
    )


def next_version(session: Session, owner: str, name: str) -> int:
    """Increment the last version of a name. Other callers wait until the transaction ends."""
    return next_number(session, DatasetName.last_version, owner=owner, name=name)


def newest_version(session: Session, owner: str, series_id: str) -> Dataset | None:
    """Return the newest version of a series that is ready or may become so."""
    return session.scalars(
        select(Dataset)
        .where(
            Dataset.readable_by(owner),
            _in_series(series_id),
            Dataset.status.in_((DatasetStatus.PROCESSING, DatasetStatus.READY)),
        )
        .order_by(Dataset.version.desc())
        .limit(1)
    ).one_or_none()


def _in_series(series_id: str) -> ColumnElement[bool]:
    return or_(Dataset.id == series_id, Dataset.first_id == series_id)


def unfinished_jobs(session: Session, owner: str, dataset_id: str) -> list[str]:
    """Return unfinished jobs that train or evaluate on the dataset, or add rows to it."""
    statement = select(Job.id).where(
        Job.readable_by(owner),
        Job.parent_id.is_(None),
        Job.state.not_in(FINAL_STATES),
        or_(
            Job.dataset_id == dataset_id,
            Job.spec["append_to"].as_string() == dataset_id,
            Job.validation_dataset_id == dataset_id,
        ),
    )
    return list(session.scalars(statement))


def profile_of(dataset_id: str, profile: Json) -> DatasetProfile:
    """Return a new row; `columns`, an object by name, becomes a list in the same order."""
    return DatasetProfile(
        dataset_id=dataset_id,
        rows=profile["rows"],
        columns=[{"name": name, **found} for name, found in profile["columns"].items()],
        duplicates=profile["duplicates"],
        over_time=profile["over_time"],
    )


def find_profile(session: Session, dataset_id: str) -> DatasetProfile | None:
    return session.get(DatasetProfile, dataset_id)


def find_duplicates(session: Session, owner: str, dataset_id: str) -> Json | None:
    """Return the counts of duplicate rows; None without a profile."""
    query = select(DatasetProfile.duplicates).join(Dataset)
    return session.scalar(query.where(Dataset.readable_by(owner), Dataset.id == dataset_id))


def trash_dataset(session: Session, owner: str, dataset_id: str) -> None:
    session.execute(
        update(Dataset)
        .where(Dataset.readable_by(owner), Dataset.id == dataset_id)
        .values(deleted_at=db_now())
    )


def delete_dataset(session: Session, owner: str, dataset_id: str) -> None:
    session.execute(delete(Dataset).where(Dataset.readable_by(owner), Dataset.id == dataset_id))


def replace(session: Session, owner: str, dataset_id: str, **values: Any) -> None:
    """Replace the pairs by new ones, which a job will read. Their bytes must be durable already."""
    session.execute(
        delete(DatasetPairs).where(DatasetPairs.id == dataset_id, DatasetPairs.readable_by(owner))
    )
    session.execute(
        insert(DatasetPairs).values(
            id=dataset_id,
            status=DatasetStatus.PROCESSING,
            errors=[],
            created_at=db_now(),
            **values,
        )
    )


def copy(session: Session, pairs: DatasetPairs, dataset_id: str) -> None:
    """Copy ready pairs to a dataset whose first rows are the items of the pairs' own dataset."""
    if pairs.status != DatasetStatus.READY:
        return
    same = [column.key for column in DatasetPairs.__table__.c if not column.primary_key]
    columns = {name: getattr(pairs, name) for name in same}
    session.execute(insert(DatasetPairs).values(id=dataset_id, **columns))


def insert_upload(session: Session, **values: Any) -> Upload:
    statement = insert(Upload).values(created_at=db_now(), touched_at=db_now(), **values)
    return session.scalars(statement.returning(Upload)).one()


def find_upload(
    session: Session, owner: str, upload_id: str, *, lock: bool = False
) -> Upload | None:
    statement = select(Upload).where(Upload.id == upload_id, Upload.readable_by(owner))
    if lock:
        statement = statement.with_for_update()
    return session.scalars(statement).one_or_none()


def count_open_uploads(session: Session, owner: str) -> int:
    statement = select(func.count()).select_from(Upload)
    return session.execute(
        statement.where(Upload.readable_by(owner), Upload.dataset_id.is_(None))
    ).scalar_one()


def list_uploads(session: Session, owner: str, *, limit: int, after: str | None) -> Page[Upload]:
    statement = select(Upload).where(Upload.readable_by(owner))
    return fetch_page(session, statement, Upload.created_at, Upload.id, limit=limit, after=after)


def parts_of(session: Session, upload_id: str, number: int | None = None) -> list[UploadPart]:
    """Return the parts in order, or only one."""
    statement = select(UploadPart).where(UploadPart.upload_id == upload_id)
    if number is not None:
        statement = statement.where(UploadPart.number == number)
    return list(session.scalars(statement.order_by(UploadPart.number)))


def first_part(session: Session, upload_id: str) -> UploadPart | None:
    statement = select(UploadPart).where(UploadPart.upload_id == upload_id)
    return session.scalars(statement.order_by(UploadPart.number).limit(1)).one_or_none()


def sizes_of(session: Session, upload_ids: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the number of parts and their bytes, by upload; those without parts are absent."""
    statement = select(
        UploadPart.upload_id, func.count(), func.coalesce(func.sum(UploadPart.bytes), 0)
    ).where(UploadPart.upload_id.in_(upload_ids))
    found = session.execute(statement.group_by(UploadPart.upload_id))
    return {id_: (count, int(size)) for id_, count, size in found}


def add_parts(
    session: Session, owner: str, upload_id: str, parts: Iterable[Mapping[str, Any]]
) -> None:
    rows = [
        {**part, "id": f"{upload_id}.{part['number']:06d}", "upload_id": upload_id}
        for part in parts
    ]
    session.execute(insert(UploadPart).values(created_at=db_now()), rows)
    session.execute(
        update(Upload)
        .where(Upload.id == upload_id, Upload.readable_by(owner))
        .values(touched_at=db_now())
    )


def upload_of(session: Session, owner: str, dataset_id: str) -> Upload | None:
    """Return the upload of several files that became this dataset; None if it was sent in one request."""
    statement = select(Upload).where(Upload.readable_by(owner), Upload.dataset_id == dataset_id)
    return session.scalars(statement).one_or_none()


def copy_parts(session: Session, owner: str, upload_id: str, to_id: str) -> None:
    """Copy parts, which refer to the same bytes."""
    same = [
        column.key
        for column in UploadPart.__table__.c
        if column.key not in {"id", "upload_id", "created_at"}
    ]
    parts = parts_of(session, upload_id)
    add_parts(
        session, owner, to_id, [{name: getattr(part, name) for name in same} for part in parts]
    )


def delete_upload(session: Session, owner: str, upload_id: str) -> None:
    session.execute(
        delete(Upload).where(
            Upload.readable_by(owner), Upload.id == upload_id, Upload.dataset_id.is_(None)
        )
    )


def set_dataset(session: Session, owner: str, upload_id: str, dataset_id: str) -> None:
    """Close an upload: store its dataset."""
    session.execute(
        update(Upload)
        .where(Upload.id == upload_id, Upload.readable_by(owner))
        .values(dataset_id=dataset_id)
    )
