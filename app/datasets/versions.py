"""Versions of a dataset: another table of the same roles, or rows added to one. No version ever changes.

The versions of a table are its *series*, named by the first one. A number is given out under a lock of the series,
and never again. Rows are added to the newest version alone: of two who add at once the second is told so, and no row
that was accepted is missing from what comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.datasets import repository as pair_rows
from app.datasets import repository as rows
from app.datasets import series
from app.datasets import service as datasets
from app.datasets import tasks as ingest_job
from app.datasets.service import Descent, Description, Format, Upload
from app.ingest.formats import CHOICES, CSV
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.errors import Conflict, Invalid
from app.platform.settings import Settings
from app.platform.sql import Page
from app.platform.tables import Dataset, DatasetStatus, VersionMode

MODES = tuple(VersionMode)
FIELDS = ("mode", *CHOICES)


@dataclass(frozen=True)
class NewVersion:
    """What the caller says about another version; all else is its parent's."""

    mode: str
    dialect: dict[str, str] | None


def describe(given: Mapping[str, str]) -> NewVersion:
    """Check what the caller says about a version; every fault is named."""
    errors = []
    known = {"mode": MODES, **CHOICES}
    for field, value in given.items():
        if field not in known:
            detail = (
                f"{field[:100]} is not known here: a version has its parent's roles; "
                f"known are {', '.join(FIELDS)}"
            )
        elif value not in known[field]:
            detail = f"{field} must be one of {', '.join(known[field])}, got {value[:100]!r}"
        else:
            continue
        errors.append({"parameter": field[:100], "detail": detail})
    if errors:
        raise Invalid(errors[0]["detail"], errors=errors)
    dialect = {field: given[field] for field in CHOICES if field in given}
    return NewVersion(given.get("mode", VersionMode.APPEND), dialect or None)


def check_open(db: Database, owner: str, parent_id: str, mode: str) -> None:
    """Raise NotFound or Conflict unless a version could be made now: asked before any bytes are sent."""
    with db.read() as session:
        _check_open(session, datasets.find(session, owner, parent_id), mode)


def accept(
    session: Session,
    settings: Settings,
    owner: str,
    parent_id: str,
    new: NewVersion,
    upload: Upload,
) -> Dataset:
    """Write the version and the job that will read it into the caller's transaction."""
    parent = datasets.find(session, owner, parent_id, lock=True)
    number = rows.next_version(session, owner, parent.series_id)  # from here on alone in the series
    _check_open(session, parent, new.mode)
    descent = Descent(parent, number, appends=new.mode == VersionMode.APPEND)
    described = _describe_as(parent, new, upload.format)
    version = datasets.accept(session, settings, owner, described, upload, descent)
    if descent.appends and parent.pairs is not None:
        # Pairs name items by their rows, and these stay where they are.
        pair_rows.copy(session, parent.pairs, version.id)
        session.expire(version, ["pairs"])
    return version


def check_table(
    db: Database,
    blobs: BlobStore,
    settings: Settings,
    owner: str,
    parent_id: str,
    new: NewVersion,
    upload: Path,
    kind: Format,
) -> dict[str, Any]:
    """Read the version as the worker would, and keep nothing."""
    with db.read() as session:
        parent = datasets.find(session, owner, parent_id)
        _check_open(session, parent, new.mode)
    described = _describe_as(parent, new, kind)
    append_to = parent if new.mode == VersionMode.APPEND else None
    return datasets.check_table(blobs, settings, described, upload, kind, append_to)


def list_page(
    db: Database, owner: str, dataset_id: str, *, limit: int, after: str | None
) -> Page[Dataset]:
    """The versions of the dataset's series, newest first."""
    with db.read() as session:
        series_id = datasets.find(session, owner, dataset_id).series_id
        return rows.list_page(session, owner, series_id=series_id, limit=limit, after=after)


def _check_open(session: Session, parent: Dataset, mode: str) -> None:
    if parent.status != DatasetStatus.READY:
        raise Conflict(
            f"dataset {parent.id} must be ready to have another version, it is {parent.status}",
            code="dataset_not_ready",
        )
    if mode == VersionMode.APPEND:
        series.check_newest(session, parent)


def _describe_as(parent: Dataset, new: NewVersion, kind: Format) -> Description:
    """The parent's roles and declarations; how a CSV is written may be said anew."""
    dialect = new.dialect
    if kind.content_type == CSV:
        said_of_it = {} if kind.charset is None else {"encoding": kind.charset}
        dialect = {**(parent.dialect or {}), **said_of_it, **(new.dialect or {})} or None
    return Description(
        name=parent.name,
        kind=parent.kind,
        labels=None if parent.labels is None else [label["name"] for label in parent.labels],
        dialect=dialect,
        **ingest_job.declared(parent),
    )
