"""Datasets: taken in as bytes, read by a worker, looked at, deleted."""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.datasets import repository as rows
from app.datasets import tasks as ingest_job
from app.ingest.formats import CHOICES, CONTENT_TYPES, CSV, bounded, encoding_of
from app.jobs import service as jobs
from app.platform.blobs import BlobStore
from app.platform.database import Database, again_after_deadlock
from app.platform.errors import Conflict, Invalid, NotFound, TooLarge, UnsupportedMedia
from app.platform.ids import is_id, new_id
from app.platform.settings import Settings
from app.platform.sql import Page
from app.platform.tables import Dataset, DatasetKind, DatasetProfile

CONTENT_ENCODINGS = ("gzip", "zstd")
KINDS = tuple(DatasetKind)
FIELDS = (
    *("name", "label", "positive", "labels", "weight", "group", "item", "kind"),
    *("categorical", "numeric", "drop", "missing", "strict"),
    *CHOICES,
)
LISTS = frozenset({"labels", "categorical", "numeric", "drop", "missing"})
LONGEST_TEXT = 255
LONGEST_LIST = 4096
MOST_LABELS = 100
_ROLES = ("label", "item", "weight", "group")
_BOOLEANS = ("true", "false")
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
    numeric: list[str] | None = None
    drop: list[str] | None = None
    missing: list[str] | None = None
    strict: bool = False
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


@dataclass(frozen=True)
class Descent:
    """What a later version of a table is made from, and its number in the series."""

    parent: Dataset
    version: int
    appends: bool

    def columns(self, upload: Upload) -> dict[str, Any]:
        """What the row of such a version says of it."""
        return {
            "first_id": self.parent.series_id,
            "version": self.version,
            "parent_id": self.parent.id,
            "base_id": self.parent.rows_from if self.appends else None,
            "sha256": hash_appended(self.parent.sha256, upload.sha256)
            if self.appends
            else upload.sha256,
        }


def hash_appended(before: str, added: str) -> str:
    """The content hash of rows after rows: of their two content hashes, in hexadecimal, one after the other."""
    return hashlib.sha256(f"{before}{added}".encode()).hexdigest()


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
    if given.get("strict", "false") not in _BOOLEANS:
        detail = f"strict must be true or false, got {given['strict'][:100]!r}"
        errors.append({"parameter": "strict", "detail": detail})
    for field in ("drop", "labels", "categorical", "numeric"):
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
        numeric=lists.get("numeric"),
        drop=lists.get("drop"),
        missing=lists.get("missing"),
        strict=given.get("strict") == "true",
        dialect={field: given[field] for field in CHOICES if field in given} or None,
    )


def longest(field: str) -> int:
    """Most characters of a field."""
    return LONGEST_LIST if field in LISTS else LONGEST_TEXT


def _read_lists(
    given: Mapping[str, str], kind: str
) -> tuple[dict[str, list[str]], list[dict[str, str]]]:
    """The fields that hold several names or values, and what is wrong with them."""
    lists = {field: split_names(given[field]) for field in LISTS if field in given}
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


def split_names(text: str) -> list[str]:
    """Divide at the commas; a name that holds one stands in quotes, as in CSV."""
    line = " ".join(text.splitlines())
    return [name.strip() for name in next(csv.reader([line], skipinitialspace=True)) or [""]]


def check_format(content_type: str, content_encoding: str | None, also: str = "a form") -> Format:
    """The media type without parameters and the encoding, if both can be read. `also` is what else may be sent."""
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
        raise UnsupportedMedia(f"Content-Type must be one of {known}, or {also}; got {got}")
    return Format(media_type, check_encoding(content_encoding), charset)


def check_encoding(content_encoding: str | None) -> str | None:
    """The encoding, if it can be read; None for a body that is sent as it is."""
    encoding = (content_encoding or "identity").strip().lower()
    if encoding == "identity":
        return None
    if encoding not in CONTENT_ENCODINGS:
        known = ", ".join(CONTENT_ENCODINGS)
        raise UnsupportedMedia(f"Content-Encoding must be one of {known}, got {encoding[:100]!r}")
    return encoding


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
    session: Session,
    settings: Settings,
    owner: str,
    description: Description,
    upload: Upload,
    descent: Descent | None = None,
) -> Dataset:
    """Write the dataset and the job that will read it into the caller's transaction."""
    dataset_id = new_id("ds")
    spec: dict[str, Any] = {"dataset_id": dataset_id}
    if descent is not None and descent.appends:
        spec["append_to"] = descent.parent.id
    job = jobs.enqueue(
        session,
        settings,
        owner=owner,
        kind=jobs.INGEST,
        name=description.name,
        spec=spec,
        dataset_id=dataset_id,
        adds_bytes=upload.size,
    )
    columns = {"sha256": upload.sha256} if descent is None else descent.columns(upload)
    return rows.insert_dataset(
        session,
        id=dataset_id,
        owner=owner,
        name=description.name,
        kind=description.kind,
        job_id=job.id,
        content_type=upload.format.content_type,
        content_encoding=upload.format.content_encoding,
        labels=description.labels and [{"name": name} for name in description.labels],
        dialect=find_dialect(description, upload.format),
        upload_key=upload.key,
        bytes=upload.size,
        **ingest_job.declared(description),
        **columns,
    )


def check_table(
    blobs: BlobStore,
    settings: Settings,
    description: Description,
    upload: Path,
    kind: Format,
    append_to: Dataset | None = None,
) -> dict[str, Any]:
    """Read a table as the worker would, and keep nothing; raises BadTable with every fault.

    It runs in the caller's process, and so takes no more than the largest ordinary body, together with the table that
    it would be added to, and no more decompressed than a table to be scored; Parquet it does not take.
    """
    parent = None if append_to is None else ingest_job.parent_of(blobs, append_to)
    size = upload.stat().st_size
    if parent is not None:
        size += Path(parent["path"]).stat().st_size
    if size > settings.max_body_bytes:
        raise TooLarge(
            f"a table is checked without being kept up to {settings.max_body_bytes} bytes, got {size}"
        )
    workdir = blobs.staging_dir()
    try:
        table, most = (kind.content_type, kind.content_encoding), settings.max_score_bytes
        payload = {
            **bounded(upload, *table, ingest_job.limits(settings), most, workdir),
            "dataset_kind": description.kind,
            "labels": description.labels,
            **ingest_job.declared(description),
            "dialect": find_dialect(description, kind),
            "parent": parent,
            "workdir": str(workdir),
        }
        result = ingest_job.run(payload, lambda step, of, info: None)
    finally:
        shutil.rmtree(workdir)
    found = ("rows", "positives", "negatives", "columns", "warnings")
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


def list_page(
    db: Database,
    owner: str,
    *,
    name: str | None = None,
    latest: bool = False,
    limit: int,
    after: str | None,
) -> Page[Dataset]:
    """The owner's datasets, newest first, of one name if one is given; `latest` leaves out all but the newest ready
    version of each series.
    """
    if name is not None and (not 0 < len(name) <= LONGEST_TEXT or "\0" in name):
        detail = f"name must have 1 to {LONGEST_TEXT} characters and no NUL"
        raise Invalid(detail, errors=[{"parameter": "name", "detail": detail}])
    with db.read() as session:
        return rows.list_page(session, owner, name=name, latest=latest, limit=limit, after=after)


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


@again_after_deadlock
def delete(
    db: Database, owner: str, dataset_id: str, check: Callable[[Session], None] | None = None
) -> None:
    """Forget the dataset, unless a job that is queued or running uses it. Its models stay.

    The bytes go when the dispatcher next sweeps what no row names. `check` may refuse once nothing of it can change.
    """
    with db.write() as session:
        dataset = find(session, owner, dataset_id, lock=True)
        if check is not None:
            check(session)
        busy = rows.unfinished_jobs(session, owner, dataset.id)
        if busy:
            raise Conflict(
                f"dataset {dataset.id} is in use by {len(busy)} unfinished jobs: {', '.join(busy[:5])}",
                code="dataset_in_use",
            )
        rows.delete_dataset(session, owner, dataset.id)
