"""Blobs: uploads, tables and artifacts as files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_STAGING = "staging"


class BlobStore:
    """A folder of immutable files named `kind/ab/abcdef…`. A blob is durable before its key is known to anyone.

    Writers work in `staging/` of the same file system, so that a rename publishes in one step.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / _STAGING).mkdir(parents=True, exist_ok=True)

    def path(self, key: str) -> Path:
        """Where the blob lies. Keys come from our own rows; one that climbs out of the folder is a bug, and refused."""
        path = self.root / key
        if ".." in path.parts or Path(key).is_absolute():
            raise ValueError(f"blob key must stay inside the store, got {key!r}")
        return path

    def writer(self, kind: str) -> BlobWriter:
        """Open a new blob of this kind for writing in chunks; see `BlobWriter`."""
        return BlobWriter(self, kind)

    def staging_dir(self) -> Path:
        """Make a private folder on the store's file system, for work whose files may be adopted later."""
        path = self.root / _STAGING / uuid.uuid4().hex
        path.mkdir()
        return path

    def adopt(self, file: Path, kind: str, sha256: str) -> str:
        """Publish a finished file of a staging folder under its hash; durable on return. Returns the key."""
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        key = f"{kind}/{sha256[:2]}/{sha256}"
        target = self.path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, target)
        os.utime(target)  # the grace of an unnamed blob counts from its last publication
        _fsync_dir(target.parent)
        return key

    def delete(self, key: str) -> None:
        """Remove the blob; a blob that is gone already is no error."""
        self.path(key).unlink(missing_ok=True)

    def older_than(self, age_seconds: float) -> Iterator[str]:
        """Yield the keys of all blobs, and the staging entries as `staging/…`, last written longer ago than that."""
        horizon = time.time() - age_seconds
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = Path(folder) / name
                try:
                    if path.stat().st_mtime < horizon:
                        yield str(path.relative_to(self.root))
                except FileNotFoundError:
                    continue


class BlobWriter:
    """Writes one blob in chunks, hashing as it goes. Leaving the block without `commit` leaves nothing behind."""

    def __init__(self, store: BlobStore, kind: str) -> None:
        self._store = store
        self._kind = kind
        self._path = store.root / _STAGING / uuid.uuid4().hex
        self._file = self._path.open("xb")
        self._hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._file.write(chunk)
        self._hash.update(chunk)
        self.size += len(chunk)

    def commit(self) -> tuple[str, str]:
        """Make the blob durable and public; returns its key and its SHA-256 in hexadecimal."""
        self._file.flush()
        sha256 = self._hash.hexdigest()
        return self._store.adopt(self._path, self._kind, sha256), sha256


def _fsync_dir(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
