"""The job that creates a dataset from the files of an upload: it plans how they are read, and joins their rows.

Each file is read by a child job, see `part_tasks`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce
from pathlib import Path
from typing import cast

import orjson
from typing_extensions import TypedDict

from app.datasets import repository
from app.datasets.tasks import (
    DATASETS,
    Bytes,
    Described,
    IngestResult,
    ParentTable,
    describe_columns,
    find_parent_table,
    hash_appended,
    lock_tables,
    publish,
)
from app.jobs import child_jobs
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, FanOutResult, JobKind
from app.jobs.progress import Callback
from app.platform.blobs import BlobKey
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Json, Session
from app.platform.tables import UploadPart

LAST_STAGE = 1
"""The parts are read at most twice: to the types that the first rows show, and to those that all rows show."""
_SHARE_OF_PARTS = 0.7  # fraction of the work: measured on 100 files of a million rows


class PartFile(Bytes):
    """One file of several that make a table. A file outside the store has a `stamp`."""

    number: int
    name: str | None
    sha256: str | None
    stamp: Json | None


class ReadPart(TypedDict):
    """The files that a finished child job made from a part. Number 0 is the table that the parts are appended to."""

    number: int
    rows: int
    sha256: str
    state: str
    piece: str | None


class PartsPayload(Described):
    """The payload of the job that plans how several files are read, and joins their rows."""

    parts: list[PartFile]
    parent: ParentTable | None
    read: list[ReadPart]
    stage: int
    guess: Json | None
    last: bool


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> PartsPayload:
    """Return the parts, and the results of those that have been read."""
    parent = find_parent_table(session, claim)
    dataset = DATASETS.find_to_make(session, claim)
    parts = files_of(session, settings, claim)
    if not parts:
        raise DATASETS.deleted(dataset.id)
    finished = child_jobs.finished(session, claim.job_id)
    stage = max((each["stage"] for each in finished), default=-1)
    latest = [each for each in finished if each["stage"] == stage]
    return {
        **describe_columns(dataset, settings, workdir),
        "parts": parts,
        "parent": parent,
        "read": [_read_part(each) for each in latest],
        "stage": stage,
        "guess": latest[0]["spec"]["guess"] if latest else None,
        "last": stage >= LAST_STAGE,
    }


def _read_part(finished: Json) -> ReadPart:
    result = finished["result"]
    return {
        "number": finished["spec"]["number"] or 0,
        "rows": result["rows"],
        "sha256": result["sha256"],
        "state": result["files"]["state"],
        "piece": result["files"].get("piece"),
    }


def files_of(
    session: Session,
    settings: Settings,
    claim: Claim,
    number: int | None = None,
) -> list[PartFile]:
    """Return the parts in order; with `number`, only that one."""
    return [
        {
            "number": part.number,
            "name": part.path,
            "path": path_of(settings, claim.owner, part),
            "sha256": part.sha256,
            "content_type": part.content_type,
            "content_encoding": part.content_encoding,
            "stamp": part.stamp,
        }
        for part in repository.parts_of(session, claim.spec["upload_id"], number)
    ]


def path_of(settings: Settings, owner: str, part: UploadPart) -> str:
    """Raises Conflict for a file on the server if the service no longer reads such files."""
    if part.upload_key is not None:
        return BlobKey(part.upload_key)
    if settings.files_dir is None or part.path is None:
        raise Conflict(
            f"part {part.number} is the file {part.path!r}, but RANKWRIGHT_FILES_DIR is no longer set",
            code="unsupported",
        )
    return str(folder_of(settings.files_dir, owner).resolve() / part.path)


def folder_of(files_dir: Path, owner: str) -> Path:
    """No owner can name another owner's files."""
    return files_dir / owner


def manifest_of(parts: Collection[UploadPart]) -> bytes:
    """Return the parts (number, size, hash, path) as JSON."""
    return orjson.dumps(
        [
            {"number": part.number, "bytes": part.bytes, "sha256": part.sha256, "path": part.path}
            for part in parts
        ]
    )


def hash_of(parts: Sequence[str | None]) -> str | None:
    """Hash a table of parts as if each had been appended to the ones before. None if a part's hash is unknown."""
    known = [sha256 for sha256 in parts if sha256 is not None]
    return reduce(hash_appended, known) if len(known) == len(parts) else None


def run(payload: PartsPayload, callback: Callback) -> IngestResult | FanOutResult:
    """Request child jobs that read all parts with the types of the first rows. Afterwards, join the parts.

    If the types were wrong, the parts are read again.
    """
    from app.ingest.parts import assemble, plan

    found = assemble(payload, callback) if payload["read"] else plan(payload, callback)
    if "file" in found:
        content = hash_of([each["sha256"] for each in payload["read"]])
        made = {**found, "workdir": payload["workdir"], "content_sha256": content}
        return cast(IngestResult, made)
    numbers: list[int | None] = [part["number"] for part in payload["parts"]]
    if payload["parent"] is not None:
        numbers.insert(0, None)  # an error here concerns no single part
    return {
        "fan_out": {
            "stage": payload["stage"] + 1,
            "parts": [{"number": number, "guess": found} for number in numbers],
            "share": _SHARE_OF_PARTS,
        }
    }


KIND = JobKind(
    name="ingest_files",
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=DATASETS,
    before_retry=lock_tables,
    on_end=DATASETS.on_end,
)
