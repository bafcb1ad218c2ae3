"""The job that reads a dataset's pairs: its steps before and after the reader."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from typing_extensions import TypedDict

from app.datasets import repository
from app.datasets.tasks import (
    BoundedBytes,
    UploadOutput,
    WrittenTable,
    limits,
    lock_inputs,
    publish_table,
)
from app.jobs.execution import complete_output
from app.jobs.kinds import Claim, JobKind, PublishedOutput, Work
from app.jobs.progress import Callback
from app.platform.blobs import BlobKey, Publisher
from app.platform.errors import Conflict
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import DatasetPairs, Job


class PairsOutput(UploadOutput[DatasetPairs]):
    """The job output `pairs`: the pairs of a dataset."""

    def deleted(self, id_: str) -> Conflict:
        return Conflict(
            f"dataset {id_} has no pairs that are waiting to be read", code="dataset_deleted"
        )


PAIRS = PairsOutput(DatasetPairs, "ds", "pairs")


class Items(TypedDict):
    """The table of the items, and the column of their names."""

    path: str
    column: str | None


class PairsPayload(Work, BoundedBytes):
    """The payload of the reader of pairs."""

    items: Items


class PairsResult(WrittenTable):
    pairs: int
    items: int
    weighted: bool


def prepare(session: Session, settings: Settings, claim: Claim, workdir: Path) -> PairsPayload:
    pairs = PAIRS.find_to_make(session, claim)
    dataset = repository.find(session, claim.owner, pairs.id)
    if dataset is None or dataset.table_key is None:
        raise PAIRS.deleted(pairs.id)
    return {
        "workdir": str(workdir),
        "path": BlobKey(pairs.upload_key),
        "content_type": pairs.content_type,
        "content_encoding": pairs.content_encoding,
        "items": {"path": BlobKey(dataset.table_key), "column": dataset.item},
        "limits": limits(settings),
    }


def run(payload: PairsPayload, callback: Callback) -> PairsResult:
    """Write the pairs as row numbers of the items."""
    from app.ingest.pairs import ingest_pairs

    found = ingest_pairs(payload, callback) | {"workdir": payload["workdir"]}
    return cast(PairsResult, found)


def publish(blobs: Publisher, claim: Claim, result: PairsResult) -> PublishedOutput:
    """Return the values of the row of the pairs."""
    columns = publish_table(blobs, result)
    columns |= {
        "pairs": result["pairs"],
        "items": result["items"],
        "weighted": result["weighted"],
    }
    return PublishedOutput(columns)


def _lock_inputs(session: Session, old: Job) -> None:
    lock_inputs(session, old, to_change=True)


KIND = JobKind(
    name="ingest_pairs",
    prepare=prepare,
    run=run,
    publish=publish,
    complete=complete_output,
    output=PAIRS,
    before_retry=_lock_inputs,
    on_end=PAIRS.on_end,
)
