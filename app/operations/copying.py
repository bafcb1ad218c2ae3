"""Copies the blobs of a folder into a bucket, so that a service can move there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from app.operations import housekeeping
from app.platform import catalogue
from app.platform.blobs import Blob, BlobDamaged, BlobMissing, FolderStore, compare
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.stores import open_store

if TYPE_CHECKING:
    from app.platform.object_store import ObjectStore

_AT_ONCE = 8


class CannotCopy(Exception):
    """The copy is not possible; the message says why."""


@dataclass
class Copied:
    """What a copy has done. `missing` names the rows whose blobs are missing or damaged in the folder."""

    blobs: int = 0
    bytes: int = 0
    present: int = 0
    missing: list[str] = field(default_factory=list)


def copy_blobs(settings: Settings, folder: Path, report: Callable[[Copied], None]) -> Copied:
    """Copy every blob of the database from a folder into the bucket of the settings, after a check of its hash.

    Blobs that the bucket has already are not sent again, so the copy can be repeated; the service may run meanwhile.
    `report` is called after each blob. Raises CannotCopy, OSError, Unavailable.
    """
    if settings.bucket_url is None:
        raise CannotCopy("RANKWRIGHT_BLOB_URL must be the URL of the bucket to copy to")
    if not folder.is_dir():
        raise CannotCopy(f"there is no folder {folder}")
    source, target = FolderStore(folder), cast("ObjectStore", open_store(settings))
    target.check_writable()
    with (
        closing(Database(settings.sqlalchemy_url, pool_size=2)) as db,
        catalogue.hold(db),  # nothing is deleted meanwhile
        ThreadPoolExecutor(_AT_ONCE) as pool,
    ):
        done = Copied()
        present = {found.key: found.bytes for found in target.list()}
        work: dict[Future[None], tuple[Blob, str]] = {}
        for blob, row in _distinct(db):
            if present.get(blob.key) == blob.bytes:
                done.present += 1
                continue
            work[pool.submit(_copy, source, target, blob)] = (blob, row)
            if len(work) >= 2 * _AT_ONCE:
                _collect(work, done, report)
        while work:
            _collect(work, done, report)
        return done


def _distinct(db: Database) -> Iterator[tuple[Blob, str]]:
    """Yield each blob once, with a row that refers to it."""
    seen: set[str] = set()
    for key, row, blob in housekeeping.named_blobs(db):
        if key not in seen:
            seen.add(key)
            yield blob or Blob(key, "", 0), row


def _collect(
    work: dict[Future[None], tuple[Blob, str]], done: Copied, report: Callable[[Copied], None]
) -> None:
    """Wait for a copy, and count what has ended. Raises what a copy raised."""
    for ended in wait(work, return_when=FIRST_COMPLETED).done:
        blob, row = work.pop(ended)
        try:
            ended.result()
        except (BlobMissing, BlobDamaged):
            done.missing.append(f"{row} ({blob.key})")
        else:
            done.blobs += 1
            done.bytes += blob.bytes
        report(done)


def _copy(source: FolderStore, target: ObjectStore, blob: Blob) -> None:
    """Raises BlobMissing, BlobDamaged and BlobStoreAway."""
    path = source.fetch(blob)
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        compare(blob, file.tell(), sha256)
    target.send(path, blob.key)
    target.check(blob)
