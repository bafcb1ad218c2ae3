"""The job that creates a dataset from a source outside of the service.

The worker fetches files into the work folder. The fit process, which has no network, reads them like an upload. They
are then stored with the dataset in the place of an upload, so that the table can be read again. A worker that dies
leaves only what the sweeper removes: a work folder, or blobs that the catalogue does not have.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any, cast

from typing_extensions import TypedDict

from app.access import quotas
from app.datasets import tasks
from app.datasets.description import Format, refuse_foreign, told_by_bytes
from app.datasets.files_tasks import LAST_STAGE, PartFile, manifest_of
from app.datasets.sources import FetchedFile, remote_source_of
from app.datasets.tasks import DATASETS, Described, IngestResult, describe_columns, hash_appended
from app.jobs import repository as jobs
from app.jobs.execution import complete_output
from app.jobs.fetching import Fetching, SourceError
from app.jobs.kinds import Claim, JobKind, PublishedOutput
from app.jobs.progress import Callback
from app.platform import catalogue
from app.platform.blobs import Blob, Publisher
from app.platform.connections import read_connections
from app.platform.errors import Invalid, Unavailable, counted, shown
from app.platform.ids import new_id
from app.platform.json_files import BadFile
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import DatasetStatus, Upload, UploadPart

log = logging.getLogger(__name__)

UPLOADS = "uploads"
_MANIFEST = "manifest.json"
_MAX_NAMED = 10
_STEPS = 1_000
"""Steps of the progress of one file."""


class ColumnType(TypedDict):
    """The name of a column, and its type; None if it has no values."""

    name: str
    type: str | None


class Refreshed(TypedDict):
    """A dataset that is refreshed: the columns that its source must have, and the SHA-256 of its table."""

    id: str
    columns: list[ColumnType]
    sha256: str


class FetchPayload(Described):
    """The payload of the job: the source, the dataset that is refreshed (None: none), and the fetched files."""

    source: Json
    before: Refreshed | None
    quota_bytes: int | None
    files: list[FetchedFile]


class FetchResult(IngestResult):
    """`same_as` is the refreshed dataset if it has the same table, else None."""

    same_as: str | None
    files: list[FetchedFile]
    source: Json


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> FetchPayload:
    """Return the payload without files. Raises Conflict if the refreshed dataset was deleted."""
    dataset = DATASETS.find_to_make(session, claim)
    assert dataset.source is not None
    before: Refreshed | None = None
    if dataset.refresh_of is not None:
        refreshed = tasks.find_to_read(session, claim.owner, dataset.refresh_of)
        table = catalogue.find(session, refreshed.table_key or "")
        before = Refreshed(
            id=refreshed.id, columns=_types_of(refreshed.columns), sha256=table.sha256
        )
    return {
        **describe_columns(dataset, settings, workdir),
        "source": dataset.source,
        "before": before,
        "quota_bytes": quotas.bytes_left(session, settings, claim.owner),
        "files": [],
    }


def fetch(
    settings: Settings, claim: Claim, payload: FetchPayload, fetching: Fetching
) -> FetchPayload:
    """Fetch the files that the source has now. Raises SourceError, and FetchStopped."""
    source = payload["source"]
    name = source["connection"]
    try:
        file = settings.connections_file
        known = {} if file is None else read_connections(file)
    except BadFile as error:
        log.error("connections: %s", error)
        raise Unavailable("the connections of this worker cannot be read") from None
    connection = known.get(name)
    if connection is None or claim.owner not in connection.owners:
        raise SourceError("source_not_allowed", f"there is no connection {name} any more")
    fetching.quota_bytes = payload["quota_bytes"]
    remote = remote_source_of(source["kind"])
    # The file may have changed since the request: the source must still be allowed.
    described = remote.describe({name: connection}, source)
    fetched = remote.fetch(connection, described, Path(payload["workdir"]), fetching)
    hashes = [each["sha256"] for each in fetched["files"]]
    found = {**fetched["found"], "sha256": reduce(hash_appended, hashes)}
    return {
        **payload,
        "files": fetched["files"],
        "source": {**described, **found},
    }


def run(payload: FetchPayload, callback: Callback) -> FetchResult:
    """Raises BadTable, Invalid, and SourceError for other columns than before."""
    files = [_with_format(payload, file) for file in payload["files"]]
    parts: list[PartFile] = [
        {
            "number": number,
            "name": file["name"],
            "path": str(Path(payload["workdir"]) / file["file"]),
            "sha256": file["sha256"],
            "content_type": file["content_type"] or "",
            "content_encoding": file["content_encoding"],
            "stamp": None,
        }
        for number, file in enumerate(files, start=1)
    ]
    if len(parts) == 1:
        read: Any = {**payload, **parts[0], "parent": None}
        found: Any = tasks.read_file(read, _second_half(callback, 0, 1))
    else:
        found = _read_parts({**payload, "parts": parts, "parent": None}, callback)
    same_as = None
    if (before := payload["before"]) is not None:
        check_columns(payload["source"]["connection"], before["columns"], found["columns"])
        same_as = before["id"] if found["sha256"] == before["sha256"] else None
    return cast(
        FetchResult, {**found, "files": files, "source": payload["source"], "same_as": same_as}
    )


def _with_format(payload: FetchPayload, file: FetchedFile) -> FetchedFile:
    """Detect the actual format. Raises UnsupportedMedia, and Invalid for several formats or unfit fields."""
    path = Path(payload["workdir"]) / file["file"]
    stated = Format(file["content_type"] or "", file["content_encoding"])
    format_ = told_by_bytes(path, stated)
    first = payload["files"][0]
    if file is not first and file["content_type"] != first["content_type"]:
        raise Invalid(
            f"all files must have the same format; {shown(file['name'])} is {file['content_type']}, and "
            f"{shown(first['name'])} is {first['content_type']}",
            code="parts_differ",
        )
    refuse_foreign(payload["dialect"], format_)
    return {
        **file,
        "content_type": format_.content_type,
        "content_encoding": format_.content_encoding,
    }


def _read_parts(payload: Json, callback: Callback) -> Json:
    """Read files one after the other, as the child jobs of an upload of several files do."""
    from app.ingest.parts import assemble, plan, read_part

    parts, workdir = payload["parts"], Path(payload["workdir"])
    n = len(parts) + 1
    found: Json = {**plan(payload, _quiet(callback))}
    for stage in range(LAST_STAGE + 1):
        guess, read = found, []
        for number, part in enumerate(parts):
            folder = workdir / f"part-{stage}-{number}"
            folder.mkdir()
            given = {
                **payload,
                "part": part,
                "guess": guess,
                "parent_id": "",
                "workdir": str(folder),
            }
            made = read_part(given, _second_half(callback, number, n))
            files = {name: each["path"] for name, each in made["files"].items()}
            read.append({"number": part["number"], "rows": made["rows"], "piece": None, **files})
        whole = {**payload, "read": read, "guess": guess, "last": stage == LAST_STAGE}
        found = assemble(whole, _second_half(callback, n - 1, n))
        if "types" not in found:
            break
    content = reduce(hash_appended, [part["sha256"] for part in parts])
    return {**found, "workdir": payload["workdir"], "content_sha256": content}


def _second_half(callback: Callback, number: int, of: int) -> Callback:
    """Map one of several steps to its share of the second half of the job."""

    def report(done: int, total: int, info: Any) -> None:
        share = min(done / total, 1.0) if total else 0.0
        callback(round(_STEPS * (of + number + share)), _STEPS * 2 * of, info)

    return report


def _quiet(callback: Callback) -> Callback:
    return lambda done, total, info: callback(0, 0, info)


def _types_of(columns: Sequence[Json]) -> list[ColumnType]:
    """A column without values fits any type."""
    return [
        {"name": each["name"], "type": each["type"] if each["distinct"] else None}
        for each in columns
        if each["role"] != "dropped"
    ]


def check_columns(connection: str, before: Sequence[ColumnType], columns: Sequence[Json]) -> None:
    """Raise SourceError for columns, or types, other than when the source was last read."""
    old = {each["name"]: each["type"] for each in before}
    new = {each["name"]: each["type"] for each in _types_of(columns)}
    wrong = [f"{name!r} is missing" for name in old if name not in new]
    wrong += [f"{name!r} is new" for name in new if name not in old]
    wrong += [
        f"{name!r} is {new[name]} and was {type_}"
        for name, type_ in old.items()
        if type_ is not None and new.get(name) is not None and new[name] != type_
    ]
    if wrong:
        named = "; ".join(wrong[:_MAX_NAMED]) + ("; …" if len(wrong) > _MAX_NAMED else "")
        raise SourceError(
            "source_columns_changed",
            f"connection {connection}: {counted(len(wrong), 'column differs', 'columns differ')} from the dataset "
            f"that is refreshed: {named}",
            errors=[{"detail": each} for each in wrong],
        )


def publish(blobs: Publisher, claim: Claim, result: FetchResult) -> PublishedOutput:
    """Store the table, and the fetched files as an upload, to be read again; nothing if the table is unchanged."""
    read = {"source": result["source"], "sha256": result["source"]["sha256"]}
    if result["same_as"] is not None:
        return PublishedOutput({**read, "status": DatasetStatus.UNCHANGED})
    workdir, files = Path(result["workdir"]), result["files"]
    made = tasks.publish(blobs, claim, result)
    stored = [blobs.publish(workdir / each["file"], UPLOADS, each["sha256"]) for each in files]
    upload, rows = stored[0], list(made.rows)
    if len(files) > 1:
        whole = _upload_of(claim, files, stored)
        content = manifest_of(whole[1:])
        (workdir / _MANIFEST).write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        upload = blobs.publish(workdir / _MANIFEST, UPLOADS, sha256)
        rows += whole
    columns = {
        **made.columns,
        "upload_key": upload.key,
        "upload_sha256": upload.sha256,
        "bytes": sum(each["bytes"] for each in files),
        "content_type": files[0]["content_type"],
        "content_encoding": files[0]["content_encoding"],
        **read,
    }
    return PublishedOutput(columns, rows)


def _upload_of(claim: Claim, files: Sequence[FetchedFile], stored: Sequence[Blob]) -> list[Any]:
    """Return the rows of the upload that has become the dataset, and of its parts."""
    upload_id, now = new_id("up"), time.time()
    upload = Upload(
        id=upload_id,
        owner=claim.owner,
        fields={"name": claim.name},
        created_at=now,
        touched_at=now,
        dataset_id=claim.spec[DATASETS.key],
    )
    parts = [
        UploadPart(
            id=f"{upload_id}.{number:06d}",
            upload_id=upload_id,
            number=number,
            content_type=file["content_type"],
            content_encoding=file["content_encoding"],
            bytes=file["bytes"],
            sha256=file["sha256"],
            upload_key=blob.key,
            created_at=now,
        )
        for number, (file, blob) in enumerate(zip(files, stored, strict=True), start=1)
    ]
    return [upload, *parts]


def complete(session: Session, claim: Claim, result: FetchResult, made: PublishedOutput) -> None:
    """End the job. After the same rows, the job has the dataset that it was to refresh."""
    complete_output(session, claim, result, made)
    if result["same_as"] is not None:
        jobs.set_dataset(session, claim.owner, claim.job_id, result["same_as"])


KIND = JobKind(
    name="ingest_fetched",
    prepare=prepare,
    fetch=fetch,
    run=run,
    publish=publish,
    complete=complete,
    output=DATASETS,
    before_retry=tasks.lock_inputs,
    on_end=DATASETS.on_end,
)
