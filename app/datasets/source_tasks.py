"""The job that creates a dataset from a source: it writes the rows to a file, and reads that like an upload."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from app.datasets import tasks
from app.datasets.sources import SourceTable, source_of
from app.datasets.tasks import DATASETS, IngestPayload, IngestResult, describe_columns
from app.ingest.formats import PARQUET
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, JobKind, PublishedOutput
from app.jobs.progress import Callback
from app.platform.blobs import Publisher
from app.platform.settings import Settings
from app.platform.sql import Json, Session

UPLOADS = "uploads"
_ROLES = ("label", "positive", "weight", "group")


class SourcePayload(IngestPayload):
    """The payload of the job: what the source needs, and how the file is read."""

    described: Json
    reading: Json
    prepared: Json


class SourceResult(IngestResult):
    """The result of the reader, the file that the source has written, and the dataset's columns about its source."""

    table: SourceTable
    source: Json
    reading: Json


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> SourcePayload:
    dataset = DATASETS.find_to_make(session, claim)
    source = dataset.source
    assert source is not None
    return {
        **describe_columns(dataset, settings, workdir),
        "path": "",
        "content_type": PARQUET,
        "content_encoding": None,
        "parent": None,
        "described": source,
        "reading": dataset.reading,
        "prepared": source_of(source["kind"]).prepare(
            session, settings, claim.owner, source, workdir
        ),
    }


def run(payload: SourcePayload, callback: Callback) -> SourceResult:
    workdir = Path(payload["workdir"])

    def first_half(done: int, total: int, info: Any) -> None:
        callback(done, 2 * total, info)

    def second_half(done: int, total: int, info: Any) -> None:
        callback(total + done, 2 * total, info)

    described = payload["described"]
    table = source_of(described["kind"]).write(payload["prepared"], workdir, first_half)
    roles = {name: table[name] for name in _ROLES}  # type: ignore[literal-required]  # of the tuple
    read: Any = {**payload, **roles, "path": str(workdir / table["file"]), "drop": table["drop"]}
    found: Any = tasks.read_file(read, second_half)
    about = {
        "source": {**described, **table["found"]},
        "reading": {**payload["reading"], "drop": table["drop"] or None},
    }
    return cast(SourceResult, {**found, **about, "table": table})


def publish(blobs: Publisher, claim: Claim, result: SourceResult) -> PublishedOutput:
    """Store the table, and its file as an upload, so that it can be read again."""
    table = result["table"]
    made = tasks.publish(blobs, claim, result)
    upload = blobs.publish(Path(result["workdir"]) / table["file"], UPLOADS, table["sha256"])
    columns = {
        **made.columns,
        "weight": table["weight"],
        "group": table["group"],
        "upload_key": upload.key,
        "upload_sha256": upload.sha256,
        "bytes": upload.bytes,
        "sha256": upload.sha256,
        "source": result["source"],
        "reading": result["reading"],
    }
    return PublishedOutput(columns, made.rows)


KIND = JobKind(
    name="ingest_source",
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=DATASETS,
    before_retry=tasks.lock_inputs,
    on_end=DATASETS.on_end,
)
