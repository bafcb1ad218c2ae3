"""Datasets: taken in as bytes, read by a worker, looked at, deleted."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy.orm import Session

from app.db import datasets as rows
from app.db.page import Page
from app.db.profile_tables import DatasetProfile
from app.db.session import Database
from app.db.tables import Dataset, DatasetKind, DatasetStatus
from app.errors import Conflict, Invalid, NotFound, TooLarge, UnsupportedMedia
from app.infra.blobs import BlobStore
from app.infra.ids import is_id, new_id
from app.infra.settings import Settings
from app.services import jobs
from app.services.ingest import CONTENT_TYPES, ingest
from app.services.ingest import job as ingest_job
from app.services.ingest.dialect import CHOICES, encoding_of
from app.services.ingest.sources import CSV

CONTENT_ENCODINGS = ("gzip", "zstd")
KINDS = tuple(DatasetKind)
FIELDS = (
    *("name", "label", "positive", "labels", "weight", "group", "item", "kind"),
    *("categorical", "drop", "missing"),
    *CHOICES,
)
LISTS = frozenset({"labels", "categorical", "drop", "missing"})
LONGEST_TEXT = 255
LONGEST_LIST = 4096
MOST_LABELS = 100
_ROLES = ("label", "item", "weight", "group")
_NO_ITEM = "rows have labels; items belong to kind=preferences"
_ONE_LABEL = "several labels belong to kind=multilabel"
_NO_LABEL = "items have no label: pairs say which one is better"
# Fields that mean nothing for a kind, and why.
_FOREIGN: Mapping[str, Mapping[str, str]] = {
    DatasetKind.BIPARTITE: {"item": _NO_ITEM, "labels": _ONE_LABEL},
    DatasetKind.PREFERENCES: {
        **dict.fromkeys(("label", "positive", "labels"), _NO_LABEL),
        "weight": "items have no weight: the pairs have",
    },
    DatasetKind.MULTILABEL: {
        "item": _NO_ITEM,
        **dict.fromkeys(("label", "positive"), "the labels are named by labels"),
    },
}


@dataclass(frozen=True)
class Description:
    """What the caller says about a table."""

    name: str
    label: str | None
    positive: str | None
    weight: str | None
    group: str | None
    item: str | None
    labels: list[str] | None
    kind: str
    categorical: list[str] | None = None
    drop: list[str] | None = None
    missing: list[str] | None = None
    dialect: dict[str, str] | None = None


@dataclass(frozen=True)
class Format:
    """What the bytes of an upload are; `charset` is what the Content-Type says of a text."""

    content_type: str
    content_encoding: str | None
    charset: str | None = None


@dataclass(frozen=True)
class Upload:
    """Bytes that are durable in the blob store, and what they are."""

    key: str
    size: int
    sha256: str
    format: Format


def describe(given: Mapping[str, str]) -> Description:
    """Check what the caller says about a table; every fault is named."""
    errors = []
    for field, value in given.items():
        if field not in FIELDS:
            detail = f"{field} is not known here; known are {', '.join(FIELDS)}"
        elif not 0 < len(value) <= longest(field) or "\0" in value:
            detail = f"{field} must have 1 to {longest(field)} characters and no NUL"
        else:
            continue
        errors.append({"parameter": field[:LONGEST_TEXT], "detail": detail})
    kind = given.get("kind", "bipartite")
    if kind not in KINDS:
        detail = f"kind must be {' or '.join(KINDS)}, got {kind[:100]!r}"
        errors.append({"parameter": "kind", "detail": detail})
    errors += [
        {"parameter": field, "detail": f"{field} cannot be given with kind={kind}: {why}"}
        for field, why in _FOREIGN.get(kind, {}).items()
        if field in given
    ]
    lists, faults = _read_lists(given, kind)
    errors += faults
    for field, known in CHOICES.items():
        if field in given and given[field] not in known:
            detail = f"{field} must be one of {', '.join(known)}, got {given[field][:100]!r}"
            errors.append({"parameter": field, "detail": detail})
    roles = [(role, given[role]) for role in _ROLES if role in given]
    for field in ("drop", "labels", "categorical"):
        roles += [(field, name) for name in lists.get(field) or ()]
    if len({name for _, name in roles}) < len(roles):
        named = ", ".join(f"{role}={column!r}" for role, column in roles[:20])
        errors.append(
            {
                "parameter": "label",
                "detail": f"each role needs a column of its own, got {named[:1000]}",
            }
        )
    if errors:
        raise Invalid(errors[0]["detail"], errors=errors)
    return Description(
        name=given.get("name", "table"),
        label=given.get("label"),
        positive=given.get("positive"),
        weight=given.get("weight"),
        group=given.get("group"),
        item=given.get("item"),
        labels=lists.get("labels"),
        kind=kind,
        categorical=lists.get("categorical"),
        drop=lists.get("drop"),
        missing=lists.get("missing"),
        dialect={field: given[field] for field in CHOICES if field in given} or None,
    )


def longest(field: str) -> int:
    """Most characters of a field."""
    return LONGEST_LIST if field in LISTS else LONGEST_TEXT


def _read_lists(
    given: Mapping[str, str], kind: str
) -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """The fields that hold several names or values, and what is wrong with them."""
    lists = {field: _split(given[field]) for field in LISTS if field in given}
    if kind == DatasetKind.MULTILABEL:
        lists.setdefault("labels", [""])
    else:
        lists.pop("labels", None)  # refused by the kind already
    if "missing" in lists:  # the empty value is missing anyway
        lists["missing"] = [token for token in lists["missing"] if token]
    faults = []
    for field, names in sorted(lists.items()):
        what = "the label columns of a multilabel table" if field == "labels" else "columns"
        if not all(names):
            faults.append((field, f"{field} must name {what}, as in {field}=a,b,c"))
        elif field == "labels" and len(names) > MOST_LABELS:
            detail = f"labels must be at most {MOST_LABELS} columns, got {len(names)}"
            faults.append((field, detail))
        elif len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            faults.append((field, f"{field} must name each once, {twice!r} comes again"))
    return lists, [{"parameter": field, "detail": detail} for field, detail in faults]


def _split(text: str) -> list[str]:
    """Divide at the commas; a name that holds one stands in quotes, as in CSV."""
    line = " ".join(text.splitlines())
    return [name.strip() for name in next(csv.reader([line], skipinitialspace=True)) or [""]]


def check_format(content_type: str, content_encoding: str | None) -> Format:
    """The media type without parameters and the encoding, if both can be read."""
    media_type = content_type.partition(";")[0].strip().lower()
    charset = None
    if media_type == CSV:
        try:
            charset = encoding_of(content_type)
        except ValueError as error:
            raise UnsupportedMedia(f"the {error} in the Content-Type") from error
    if media_type not in CONTENT_TYPES:
        known = ", ".join(CONTENT_TYPES)
        got = repr(media_type[:100]) if media_type else "none"
        raise UnsupportedMedia(f"Content-Type must be one of {known}, or a form; got {got}")
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return Format(media_type, None, charset)
    if encoding not in CONTENT_ENCODINGS:
        known = ", ".join(CONTENT_ENCODINGS)
        raise UnsupportedMedia(f"Content-Encoding must be one of {known}, got {encoding[:100]!r}")
    return Format(media_type, encoding, charset)


def find_dialect(description: Description, table: Format) -> dict[str, str] | None:
    """How the text of a CSV is written, by the fields and the Content-Type; raises Invalid for other formats."""
    said = description.dialect
    if said is not None and table.content_type != CSV:
        detail = f"{', '.join(said)} can be said of {CSV} only, got {table.content_type}"
        raise Invalid(detail, errors=[{"parameter": field, "detail": detail} for field in said])
    if table.charset is not None:
        return {"encoding": table.charset, **(said or {})}
    return said


def accept(
    session: Session, settings: Settings, owner: str, description: Description, upload: Upload
) -> Dataset:
    """Write the dataset and the job that will read it into the caller's transaction."""
    dataset_id = new_id("ds")
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=jobs.INGEST,
        name=description.name,
        spec={"dataset_id": dataset_id},
        dataset_id=dataset_id,
        adds_bytes=upload.size,
    )
    return rows.insert(
        session,
        id=dataset_id,
        owner=owner,
        name=description.name,
        kind=description.kind,
        job_id=job.id,
        content_type=upload.format.content_type,
        content_encoding=upload.format.content_encoding,
        label=description.label,
        positive=description.positive,
        weight=description.weight,
        group=description.group,
        item=description.item,
        labels=description.labels and [{"name": name} for name in description.labels],
        categorical=description.categorical,
        drop=description.drop,
        missing=description.missing,
        dialect=find_dialect(description, upload.format),
        upload_key=upload.key,
        bytes=upload.size,
        sha256=upload.sha256,
    )


def check_table(
    blobs: BlobStore, settings: Settings, description: Description, upload: Path, kind: Format
) -> dict[str, Any]:
    """Read a table as the worker would, and keep nothing; raises BadTable with every fault.

    It runs in the caller's process, and so takes no more than the largest ordinary body.
    """
    size = upload.stat().st_size
    if size > settings.max_body_bytes:
        raise TooLarge(
            f"a table is checked without being kept up to {settings.max_body_bytes} bytes, got {size}"
        )
    workdir = blobs.staging_dir()
    try:
        payload = {
            "path": str(upload),
            "content_type": kind.content_type,
            "content_encoding": kind.content_encoding,
            "dataset_kind": description.kind,
            "label": description.label,
            "positive": description.positive,
            "labels": description.labels,
            "item": description.item,
            "weight": description.weight,
            "group": description.group,
            "categorical": description.categorical,
            "drop": description.drop,
            "missing": description.missing,
            "dialect": find_dialect(description, kind),
            "limits": ingest_job.limits(settings),
            "workdir": str(workdir),
        }
        result = ingest(payload, lambda step, of, info: None)
    finally:
        shutil.rmtree(workdir)
    found = ("rows", "positives", "negatives", "columns")
    return {"valid": True, **{name: result[name] for name in found}}


def find(session: Session, owner: str, dataset_id: str, *, lock: bool = False) -> Dataset:
    """The owner's dataset, in the caller's transaction; `lock` holds the row until that ends."""
    dataset = None
    if is_id(dataset_id, "ds"):
        dataset = rows.find(session, owner, dataset_id, lock=lock)
    if dataset is None:
        raise NotFound(f"there is no dataset {dataset_id[:100]!r}")
    return dataset


def get(db: Database, owner: str, dataset_id: str) -> Dataset:
    """The owner's dataset; another owner's is as absent as one that never was."""
    with db.read() as session:
        return find(session, owner, dataset_id)


def list_page(db: Database, owner: str, *, limit: int, after: str | None) -> Page[Dataset]:
    """The owner's datasets, newest first."""
    with db.read() as session:
        return rows.list_page(session, owner, limit=limit, after=after)


def preview(
    db: Database, blobs: BlobStore, owner: str, dataset_id: str, limit: int
) -> dict[str, Any]:
    """The first rows of a ready dataset, in the order of its columns."""
    dataset = get(db, owner, dataset_id)
    if dataset.status != DatasetStatus.READY or dataset.table_key is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, it is {dataset.status}", code="dataset_not_ready"
        )
    with pq.ParquetFile(blobs.path(dataset.table_key)) as file:
        batch = next(file.iter_batches(batch_size=limit), None)
        names = file.schema_arrow.names
    columns = [] if batch is None else [_plain(column) for column in batch.columns]
    labels = dataset.labels or [
        {"name": dataset.label, "negative": dataset.negative, "positive": dataset.positive}
    ]
    for label in labels:  # kept as 0 and 1; shown in the caller's words
        if label["name"] in names and columns:
            words = (label["negative"], label["positive"])
            at = names.index(label["name"])
            columns[at] = [words[int(value)] for value in columns[at]]
    return {"columns": names, "data": [list(row) for row in zip(*columns, strict=True)]}


def profile(db: Database, owner: str, dataset_id: str) -> tuple[Dataset, DatasetProfile]:
    """What the columns of a ready dataset hold, and the rows that come twice."""
    with db.read() as session:
        dataset = find(session, owner, dataset_id)
        found = rows.find_profile(session, dataset.id)
    if found is None:
        raise Conflict(
            f"dataset {dataset.id} must be ready, and read by this version or a later one, to have a profile; "
            f"it is {dataset.status}",
            code="dataset_not_ready",
        )
    return dataset, found


def delete(db: Database, owner: str, dataset_id: str) -> None:
    """Forget the dataset, unless a job that is queued or running uses it. Its models stay.

    The bytes go when the dispatcher next sweeps what no row names.
    """
    with db.write() as session:
        dataset = find(session, owner, dataset_id, lock=True)
        busy = rows.unfinished_jobs(session, owner, dataset.id)
        if busy:
            raise Conflict(
                f"dataset {dataset.id} is in use by {len(busy)} unfinished jobs: {', '.join(busy[:5])}",
                code="dataset_in_use",
            )
        rows.delete(session, owner, dataset.id)


def _plain(column: pa.Array) -> list[Any]:
    """Values as JSON has them: NaN and infinity as null."""
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [
            value if value is not None and abs(value) < float("inf") else None for value in values
        ]
    return [
        value if isinstance(value, bool | int | float | None) else _cut(str(value))
        for value in values
    ]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"
