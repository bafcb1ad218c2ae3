"""The job that stores decisions of another system, so that outcomes can be attributed to them.

All rows are checked before any is stored. The same table may be sent again: decisions that are stored already are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from app.access.repository import take_turn
from app.datasets.tasks import BoundedBytes, limits
from app.feedback import file_repository as repository
from app.feedback.segments import write_file
from app.ingest.values import spell_date
from app.jobs import queue, uploads
from app.jobs.kinds import Claim, JobKind, Work
from app.jobs.progress import Callback
from app.platform.blobs import BlobKey, Publisher
from app.platform.errors import Invalid, Overtaken, counted
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Json, Session, read_clock
from app.platform.tables import DecisionSegment

if TYPE_CHECKING:
    import pyarrow as pa

    from app.feedback.backfill_rows import DecisionReader
    from app.ingest.rows import Source

KIND_NAME = repository.BACKFILL
"""The kind of the job; it is also the origin of its decisions."""
TABLE = "table"
"""The part that the job reads."""
DAY_SECONDS = 86_400.0
SEGMENT_ROWS = 1 << 18
"""Maximum number of rows in a segment: they are sorted by time in memory."""


class BackfillSpec(TypedDict):
    """The job's specification: what its decisions share, and how the table is read. They are kept for `days`."""

    name: str
    alias: str
    revision: int
    alias_revision: int
    model_id: str
    features: list[list[Any]]
    days: int
    dialect: Json | None
    missing: list[str] | None
    ignore: list[str]
    lenient: bool


class StoredFile(TypedDict):
    """A file of earlier decisions."""

    path: str
    alias: str
    first_at: float
    last_at: float


class Reading(TypedDict):
    """How a table is read, and what its decisions have in common."""

    dialect: Json | None
    recorded: Json
    missing: list[str] | None
    ignore: list[str]
    lenient: bool


class BackfillPayload(Work, BoundedBytes, Reading):
    """The payload of the reader. `compared` are the ids of the stored files."""

    stored: list[StoredFile]
    compared: list[str]


class WrittenSegment(TypedDict):
    file: str
    sha256: str
    rows: int
    first_at: float
    last_at: float


class BackfillResult(Work):
    """The files that were written, and the number of decisions that were stored already.

    `compared` are the files of earlier decisions that the ids were compared with, and `gives_ids` is that of the
    reader.
    """

    segments: list[WrittenSegment]
    skipped: int
    compared: list[str]
    gives_ids: bool


def reading_of(spec: BackfillSpec, owner: str, now: float) -> Reading:
    return {
        "recorded": {
            "owner": owner,
            "name": spec["name"],
            "alias": spec["alias"],
            "revision": spec["revision"],
            "alias_revision": spec["alias_revision"],
            "model_id": spec["model_id"],
            "features": spec["features"],
            "earliest": now - spec["days"] * DAY_SECONDS,
            "now": now,
        },
        "dialect": spec["dialect"],
        "missing": spec["missing"],
        "ignore": spec["ignore"],
        "lenient": spec["lenient"],
    }


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> BackfillPayload:
    """Return the upload, and the files of the owner's earlier backfills."""
    spec: Any = claim.spec
    upload = uploads.find(session, claim.owner, claim.job_id, TABLE)
    earlier = repository.segments_of_origin(session, claim.owner, repository.BACKFILL)
    return {
        **reading_of(spec, claim.owner, read_clock(session)),
        "workdir": str(workdir),
        "path": BlobKey(upload.upload_key),
        "content_type": upload.content_type,
        "content_encoding": upload.content_encoding,
        "limits": limits(settings),
        "stored": [
            {
                "path": BlobKey(row.segment_key),
                "alias": f"{row.name}@{row.alias}",
                "first_at": row.first_at,
                "last_at": row.last_at,
            }
            for row in earlier
        ],
        "compared": [row.id for row in earlier],
    }


def run(payload: BackfillPayload, callback: Callback) -> BackfillResult:
    """Check the rows, and write files of decisions. Only computes, on the files that the payload names."""
    from app.ingest.build import system_memory

    workdir = Path(payload["workdir"])
    segments: list[WrittenSegment] = []
    with system_memory(), ExitStack() as stack:
        reader, source = open_reader(payload, stack)
        for batches in _in_segments(reader, source, callback):
            segments.append(_write(workdir, len(segments), batches))
        _, total = source.progress()
        callback(total, total, {"rows": reader.rows})
    if not reader.rows:
        raise Invalid("the table must have at least one row", code="empty_body")
    return {
        "workdir": str(workdir),
        "segments": segments,
        "skipped": reader.skipped,
        "compared": payload["compared"],
        "gives_ids": reader.gives_ids,
    }


def open_reader(payload: BackfillPayload, stack: ExitStack) -> tuple[DecisionReader, Source]:
    """The source stays open until `stack` closes."""
    from app.feedback.backfill_rows import DecisionReader, Recorded, StoredDecisions, WrittenFile
    from app.ingest.readers import open_source
    from app.ingest.value_columns import MissingTokens

    missing = MissingTokens(payload["missing"])
    reader = DecisionReader(
        Recorded.from_json(payload["recorded"]),
        missing,
        StoredDecisions([WrittenFile(**each) for each in payload["stored"]]),
        payload["limits"]["rows"],
        ignore=payload["ignore"],
        lenient=payload["lenient"],
    )
    return reader, open_source(payload, stack, missing)


def count_rows(payload: BackfillPayload) -> int:
    """Check a table as the job would. Raises as `run` does."""
    with ExitStack() as stack:
        reader, source = open_reader(payload, stack)
        for _ in reader.batches(source):
            pass
    if not reader.rows:
        raise Invalid("the table must have at least one row", code="empty_body")
    return reader.rows


def _in_segments(
    reader: DecisionReader, source: Source, callback: Callback
) -> Iterator[list[pa.RecordBatch]]:
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in reader.batches(source):
        held.append(batch)
        n_held += batch.num_rows
        if n_held >= SEGMENT_ROWS:
            yield held
            held, n_held = [], 0
        callback(*source.progress(), {"rows": reader.rows})
    if held:
        yield held


def _write(workdir: Path, number: int, batches: Sequence[pa.RecordBatch]) -> WrittenSegment:
    """Write decisions in the order of their times."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    table = table.take(pc.sort_indices(table["at"]))
    file = f"segment-{number}.parquet"
    sha256 = write_file(workdir / file, table.to_batches(), table.schema)
    return {
        "file": file,
        "sha256": sha256,
        "rows": table.num_rows,
        "first_at": table["at"][0].as_py(),
        "last_at": table["at"][-1].as_py(),
    }


def publish(blobs: Publisher, claim: Claim, result: BackfillResult) -> list[DecisionSegment]:
    """Return the rows of the segments."""
    workdir, rows = Path(result["workdir"]), []
    first = 0
    for each in result["segments"]:
        blob = blobs.publish(workdir / each["file"], repository.KIND, each["sha256"])
        rows.append(
            DecisionSegment(
                id=new_id("seg"),
                owner=claim.owner,
                name=claim.spec["name"],
                alias=claim.spec["alias"],
                log_id=claim.job_id,
                first_sequence=first,
                last_sequence=first + each["rows"] - 1,
                origin=repository.BACKFILL,
                first_at=each["first_at"],
                last_at=each["last_at"],
                rows=each["rows"],
                lost=0,
                segment_key=blob.key,
                segment_bytes=blob.bytes,
            )
        )
        first += each["rows"]
    return rows


def complete(
    session: Session, claim: Claim, result: BackfillResult, rows: list[DecisionSegment]
) -> None:
    """End the job. Raises Overtaken if decisions were stored meanwhile that may have ids of these."""
    stored = sum(each["rows"] for each in result["segments"])
    words = counted(stored, "decision", "decisions")
    if stored:
        first = min(each["first_at"] for each in result["segments"])
        last = max(each["last_at"] for each in result["segments"])
        words += f" from {spell_date(first)} to {spell_date(last)}"
    words += " stored"
    if result["skipped"]:
        words += f"; {result['skipped']} were stored already"
    queue.finish(session, claim, messages=[words])
    take_turn(session, claim.owner)  # else two jobs at once would not see each other's files
    _check_not_overtaken(session, claim, result)
    repository.add_segments(session, rows)
    uploads.delete(session, claim.owner, claim.job_id)


def _check_not_overtaken(session: Session, claim: Claim, result: BackfillResult) -> None:
    """Only ids of other systems can be those of another alias or time; see `StoredDecisions`."""
    compared = {*result["compared"]}
    for row in repository.segments_of_origin(session, claim.owner, repository.BACKFILL):
        is_same_alias = (row.name, row.alias) == (claim.spec["name"], claim.spec["alias"])
        may_share_ids = result["gives_ids"] or (
            is_same_alias
            and any(
                row.first_at <= each["last_at"] and row.last_at >= each["first_at"]
                for each in result["segments"]
            )
        )
        if row.id not in compared and may_share_ids:
            raise Overtaken("another table of decisions was stored while this one was read")


KIND = JobKind(
    name=KIND_NAME,
    changes_model=True,
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete,
    before_retry=uploads.refuse_retry,
    on_end=uploads.delete_at_end,
)
