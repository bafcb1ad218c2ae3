"""The child job that reads one part of a dataset of several files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

from typing_extensions import TypedDict

from app.datasets.files_tasks import PartFile, files_of
from app.datasets.tasks import (
    DATASETS,
    Described,
    ParentTable,
    describe_columns,
    find_parent_table,
)
from app.ingest.formats import PARQUET
from app.jobs import child_jobs, queue_repository
from app.jobs.kinds import Claim, JobKind
from app.jobs.progress import Callback
from app.platform.blobs import Publisher
from app.platform.errors import Conflict, Invalid
from app.platform.settings import Settings
from app.platform.sql import Json, Session

PIECES = "parts"
"""The kind of blob that only a job needs that has not ended."""


class PartPayload(Described):
    part: PartFile
    parent: ParentTable | None
    guess: Json
    parent_id: str


class PieceFile(TypedDict):
    path: str
    sha256: str


class PartResult(TypedDict):
    """The result of the reader of a part."""

    rows: int
    sha256: str
    files: dict[str, PieceFile]


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> PartPayload:
    assert claim.parent_id is not None
    spec, part = claim.spec["parent"], claim.spec["part"]
    whole = replace(claim, spec=spec, job_id=claim.parent_id)
    parent = find_parent_table(session, whole)
    dataset = DATASETS.find_to_make(session, whole)
    rows = queue_repository.sum_of_results(session, claim.parent_id, "rows")
    if rows > settings.max_rows:
        raise Invalid(
            f"a table can have at most {settings.max_rows} rows (RANKWRIGHT_MAX_ROWS); the parts that were "
            f"read have {rows}",
            code="too_many_rows",
        )
    if part["number"] is None:
        assert parent is not None
        files = [_file_of(parent)]
    else:
        files = files_of(session, settings, whole, part["number"])
    if not files:
        raise Conflict(f"part {part['number']} of {dataset.id} was deleted", code="dataset_deleted")
    described = describe_columns(dataset, settings, workdir)
    return {
        **described,
        "part": files[0],
        "parent": parent,
        "guess": part["guess"],
        "parent_id": claim.parent_id,
    }


def _file_of(parent: ParentTable) -> PartFile:
    """Return the table that the parts are appended to, as part number 0."""
    return {
        "number": 0,
        "name": None,
        "path": parent["path"],
        "sha256": parent["sha256"],
        "content_type": PARQUET,
        "content_encoding": None,
        "stamp": None,
    }


def run(payload: PartPayload, callback: Callback) -> PartResult:
    """Write the part's rows and their statistics to files."""
    from app.ingest.parts import read_part

    return cast(PartResult, read_part(payload, callback))


def publish(blobs: Publisher, claim: Claim, result: PartResult) -> dict[str, str]:
    """Return the key of each file by its name."""
    return {
        name: blobs.publish(Path(file["path"]), PIECES, file["sha256"]).key
        for name, file in result["files"].items()
    }


def complete(session: Session, claim: Claim, result: PartResult, published: dict[str, str]) -> None:
    """The parent joins the parts after the last one."""
    found = {"rows": result["rows"], "sha256": result["sha256"], child_jobs.OWNED: True}
    child_jobs.finish(session, claim, found, published)


KIND = JobKind(
    name="ingest_files_part",
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
)
