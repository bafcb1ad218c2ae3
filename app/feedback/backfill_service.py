"""Requests to store decisions of another system: their checks, and their job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.datasets.description import Format, find_dialect
from app.datasets.service import StoredUpload
from app.datasets.tasks import limits
from app.feedback import repository as settings_repository
from app.feedback.backfill import KIND_NAME, TABLE, BackfillPayload, BackfillSpec, reading_of
from app.ingest.formats import Dialect
from app.ingest.values import CATEGORICAL
from app.jobs import service as jobs
from app.jobs import uploads
from app.models import aliases
from app.models import service as models
from app.models.reading import codes_of
from app.platform.callers import check_model
from app.platform.documents import StoredFeedback
from app.platform.errors import NAME, Conflict, Invalid, shown
from app.platform.settings import Settings
from app.platform.sql import Json, Session, read_clock
from app.platform.tables import Job

IN_QUERY = {"parameter": "model"}
_ALIAS = re.compile(rf"({NAME})@({NAME})")


@dataclass(frozen=True)
class BackfillRequest:
    """The description of a table in its request: the alias, and how the table is read."""

    model: str
    dialect: Json
    missing: list[str] | None
    ignore: list[str]
    lenient: bool


def find_alias(
    session: Session, owner: str, ref: str, position: Mapping[str, str] = IN_QUERY
) -> BackfillSpec:
    """Return what an alias's decisions share; `position` is where the request names the alias.

    Raises NotFound, Invalid for another kind of reference, and Conflict if decisions are not recorded.
    """
    match = _ALIAS.fullmatch(ref)
    if match is None:
        detail = f"{_what(position)} must name an alias, such as churn@live, got {shown(ref)}"
        raise Invalid(detail, errors=[{**position, "detail": detail}])
    name, alias = match.groups()
    found = aliases.get_alias(session, owner, name, alias).alias
    row = settings_repository.newest(session, owner, name, alias)
    if row is None or row.settings is None:
        detail = f"{ref} does not record decisions: store feedback settings for it first"
        raise Conflict(detail, code="no_feedback", errors=[{**position, "detail": detail}])
    settings: StoredFeedback = row.settings
    model = models.find(session, owner, found.model_id)
    wanted = settings["features"]
    features: list[list[Any]] = [
        [each["name"], each["type"]]
        for each in model.features
        if wanted is None or each["name"] in wanted
    ]
    if (groups := settings["protected"]) is not None:
        features += [[each, CATEGORICAL, True] for each in sorted(groups["columns"])]
    return {
        "name": name,
        "alias": alias,
        "revision": row.revision,
        "alias_revision": found.revision,
        "model_id": model.id,
        "features": features,
        "days": settings["days"],
        "dialect": None,
        "missing": list(codes_of(model.table_dialect).tokens),
        "ignore": [],
        "lenient": False,
    }


def check_alias(
    session: Session, owner: str, ref: str, position: Mapping[str, str] = IN_QUERY
) -> BackfillSpec:
    """As `find_alias`. Raises Forbidden if the caller may not record decisions of the model."""
    found = find_alias(session, owner, ref, position)
    check_model(found["name"])
    return found


def _what(position: Mapping[str, str]) -> str:
    return next(iter(position.values()), "the source").strip("/").replace("/", ".")


def _specification(
    session: Session, owner: str, request: BackfillRequest, table: Format
) -> BackfillSpec:
    found = check_alias(session, owner, request.model)
    return {
        **found,
        "dialect": find_dialect(Dialect(**request.dialect), table),
        "missing": found["missing"] if request.missing is None else request.missing,
        "ignore": request.ignore,
        "lenient": request.lenient,
    }


def accept(
    session: Session,
    settings: Settings,
    owner: str,
    request: BackfillRequest,
    upload: StoredUpload,
) -> Job:
    """Create the job in the caller's transaction."""
    spec = _specification(session, owner, request, upload.format)
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=KIND_NAME,
        name=spec["name"],
        spec=spec,
        adds_bytes=upload.size,
    )
    table = upload.format
    uploads.add(session, job, TABLE, upload.blob, table.content_type, table.content_encoding)
    return job


def check(
    session: Session, settings: Settings, owner: str, request: BackfillRequest, table: Format
) -> BackfillPayload:
    """Return what `count_rows` needs without a job; the caller adds the file. Stored decisions are not looked for."""
    spec = _specification(session, owner, request, table)
    return {
        **reading_of(spec, owner, read_clock(session)),
        "workdir": "",
        "path": "",
        "content_type": table.content_type,
        "content_encoding": table.content_encoding,
        "limits": limits(settings),
        "stored": [],
        "compared": [],
    }
