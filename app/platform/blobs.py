"""The blob store: uploads, tables and artifacts as immutable files, each of which becomes visible atomically.

`BlobStore` is the interface. `FolderStore` stores the files in a folder, `app.platform.object_store` in a bucket. The
catalogue (`app.platform.catalogue`) has the list of blobs, with their sizes and hashes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import sys
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, NoReturn, Self

from app.platform import failpoints
from app.platform.errors import Unavailable


class Writeback:
    """Writes a growing file to disk piece by piece.

    The first `most_cached` bytes stay in the page cache for a reader who comes soon. Later bytes are dropped from the
    cache once they are on disk: a long file would displace the data of other processes.
    """

    PART = 8 << 20

    def __init__(self, descriptor: int, most_cached: int = sys.maxsize) -> None:
        self._descriptor = descriptor
        self._most_cached = most_cached
        self._sent = 0

    def grown_to(self, size: int) -> None:
        """Never waits; fsync writes the rest."""
        if size - self._sent < self.PART:
            return
        if hasattr(os, "posix_fadvise"):
            # Linux starts to write the dirty pages of this range, keeps them, and drops the clean ones: the new part
            # stays in memory until the next call, which names it again.
            start = min(self._sent, self._most_cached)
            os.posix_fadvise(self._descriptor, start, size - start, os.POSIX_FADV_DONTNEED)
        self._sent = size


_STAGING = "staging"
_CHUNK = 1 << 20
KEY_PATTERN = re.compile(r"[a-z-]+/([0-9a-f]{2})/\1[0-9a-f]*")
MIN_THREADED_BYTES = 1 << 16  # a smaller chunk is hashed faster here than in another thread
MAX_CACHED = 1 << 28  # bytes of a new blob that a worker will find in memory


class BlobKey(str):
    """The key of a blob in a job's payload, where the fit process needs a path, with which the worker replaces it."""

    __slots__ = ()


class Blob(NamedTuple):
    """An entry of the catalogue: a blob's key, and the SHA-256 (in hexadecimal) and size of its bytes."""

    key: str
    sha256: str
    bytes: int

    @property
    def kind(self) -> str:
        """The first part of the key: `uploads`, `tables`, …"""
        return self.key.partition("/")[0]


class ListedBlob(NamedTuple):
    """A blob as the store lists it. `age` is in seconds since it was published."""

    key: str
    bytes: int
    age: float


class BlobMissing(Unavailable):
    """A blob to which a row refers is not in the store, or not in the catalogue."""

    code, title = "blob_missing", "A stored file is missing"

    def __init__(self, key: str) -> None:
        kind = key.partition("/")[0]
        super().__init__(
            f"the file {key!r} (kind {kind!r}) is not in the blob store. Restore it from a backup, or delete what "
            "needs it"
        )


class BlobDamaged(Unavailable):
    """The bytes of a blob are not those that were stored."""

    code, title = "blob_damaged", "A stored file is damaged"

    def __init__(self, name: str, kind: str, expected: str, found: str) -> None:
        super().__init__(
            f"the file {name!r} (kind {kind!r}) in the blob store is damaged: it must have {expected}, but has "
            f"{found}. Restore it from a backup, or delete what needs it"
        )


class BlobStoreAway(Unavailable):
    """The bucket with the blobs does not respond, or rejects the service. Stored blobs are not lost."""

    code, title = "blob_store_unavailable", "The blob store is unavailable"

    def __init__(self, reason: str) -> None:
        super().__init__("the blob store of this service does not respond", retry_after=5)
        self.args = (f"{self.detail}: {reason}",)  # for the log; callers learn no host


class BlobStore(ABC):
    """Immutable files by key. A blob is durable before its key is used, and no key is used twice.

    Writers, and the attempts of jobs, have folders of this machine in `staging`. A subclass keeps the published files.
    """

    def __init__(self, staging: Path) -> None:
        self.staging = staging

    @abstractmethod
    def check_writable(self) -> None:
        """Raise OSError if this process may not write: at its start, not at the first upload.

        A full disk is not an error, because stored blobs can be read.
        """

    @abstractmethod
    def probe(self) -> str:
        """Describe the store for health checks. Raises OSError if blobs cannot be used, and BlobStoreAway."""

    def writer(self, kind: str) -> BlobWriter:
        """Open a new blob of this kind for writing in chunks; see `BlobWriter`."""
        return BlobWriter(self, kind, self.staging / uuid.uuid4().hex)

    def put(self, kind: str, stream: IO[bytes]) -> Blob:
        with self.writer(kind) as writer:
            while chunk := stream.read(_CHUNK):
                writer.write(chunk)
            return writer.commit()

    def publish(self, file: Path, kind: str, sha256: str) -> Blob:
        """Move a finished file of a staging folder into the store. It is durable when this returns."""
        blob = Blob(new_key(kind), sha256, file.stat().st_size)
        self.store_file(file, blob.key)
        return blob

    def store_file(self, file: Path, key: str) -> None:
        """Move a finished file to a new key. It is durable and visible when this returns."""
        _fsync(file)
        self.send(file, key)
        self.move_in(file, key)

    @abstractmethod
    def send(self, file: Path, key: str) -> None:
        """Do the slow part of storing a staged file, before `move_in`'s transaction. Repeat it if the file changes."""

    def move_in(self, file: Path, key: str) -> None:
        """Move a staged file, which is on disk and sent, to a new key. It is visible when this returns."""
        failpoints.reach("adopt")
        self._move_in(file, key)
        failpoints.reach("adopted")

    @abstractmethod
    def _move_in(self, file: Path, key: str) -> None:
        """Do what `move_in` says."""

    @abstractmethod
    def fetch(self, blob: Blob) -> Path:
        """Return a local file with the bytes of a blob; it must not be changed.

        Raises BlobMissing, and BlobDamaged if the size is not the one in the catalogue. The hash is checked by
        `verify`, or by the reader of an artifact.
        """

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[ListedBlob]:
        """Yield the blobs whose keys begin with a prefix of whole segments (`uploads`, `uploads/ab`), in any order."""

    @abstractmethod
    def delete(self, key: str) -> bool:
        """Delete a blob; return False if there is none."""

    @abstractmethod
    def write_note(self, name: str, content: bytes) -> None:
        """Replace a small file beside the blobs, never listed or swept. `name` is `folder/file`, unlike a key."""

    @abstractmethod
    def read_note(self, name: str) -> bytes | None:
        """Return the content of a note; None if there is none."""

    def check(self, blob: Blob) -> None:
        """Raise BlobMissing, or BlobDamaged if the size is not the one in the catalogue. Reads no bytes."""
        self.fetch(blob)

    def pin(self, blob: Blob, folder: Path) -> Path:
        """Return a local file that stays as long as a staging folder. Raises as `fetch` does."""
        return self.fetch(blob)

    def verify(self, blob: Blob) -> None:
        """Read a whole blob. Raises BlobMissing, and BlobDamaged for another size or SHA-256."""
        with self.fetch(blob).open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            compare(blob, file.tell(), sha256)

    def staging_dir(self) -> Path:
        """Create a private folder for files that may be published later."""
        path = self.staging / uuid.uuid4().hex
        path.mkdir()
        return path

    def job_dir(self, kind: str, job_id: str) -> Path:
        """All attempts of a job share this folder, which may not exist."""
        return self.staging / f"{kind}-{job_id}"

    def clear_staging(self, age_seconds: float) -> int:
        """Delete what was last written at least `age_seconds` ago."""
        horizon, count = time.time() - age_seconds, 0
        for path in self.staging.iterdir():
            if not 0 < _newest(path) < horizon:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            count += 1
        return count


class FolderStore(BlobStore):
    """A folder of files `kind/ab/abcdef…`. Staging is a folder of the same file system, so that a rename publishes."""

    def __init__(self, root: Path) -> None:
        """Raises PermissionError if this user may not create the folder."""
        super().__init__(root / _STAGING)
        self.root = root
        try:
            # `parents` does not pass the mode on, and the first one may be the state folder.
            for folder in (root.parent, root, self.staging):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self._refuse(root)

    def check_writable(self) -> None:
        """Raises PermissionError, and OSError if a folder is missing. A full disk is no error."""
        for folder in (self.root, *self.root.iterdir()):
            if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                self._refuse(folder)
        try:
            self.staging_dir().rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def probe(self) -> str:
        """Check the folder as at the start."""
        self.check_writable()
        return "can be read and written"

    @staticmethod
    def _refuse(folder: Path) -> NoReturn:
        raise PermissionError(f"the blob folder {folder} is not writable by this user")

    def path(self, key: str) -> Path:
        """Raises ValueError for a key that leads out of the folder: a bug, because keys come from rows."""
        path = self.root / key
        if ".." in path.parts or Path(key).is_absolute():
            raise ValueError(f"blob key must stay inside the store, got {key!r}")
        return path

    def send(self, file: Path, key: str) -> None:
        """Do nothing: a rename is fast."""

    def _move_in(self, file: Path, key: str) -> None:
        target = self.path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The grace period of a blob that is not in the catalogue counts from its publication.
        os.utime(file)
        os.replace(file, target)
        _fsync(target.parent)

    def fetch(self, blob: Blob) -> Path:
        """Return the file itself. Raises BlobMissing, and BlobDamaged for a wrong size."""
        path = self.path(blob.key)
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise BlobMissing(blob.key) from None
        if size != blob.bytes:
            raise BlobDamaged(blob.key, blob.kind, f"{blob.bytes} bytes", f"{size} bytes")
        return path

    def list(self, prefix: str = "") -> Iterator[ListedBlob]:
        """Ignore files whose names are not keys."""
        now = time.time()
        for path in _files(self.path(prefix)):
            key = path.relative_to(self.root).as_posix()
            if KEY_PATTERN.fullmatch(key) is None:
                continue
            with contextlib.suppress(FileNotFoundError):
                found = path.stat()
                yield ListedBlob(key, found.st_size, now - found.st_mtime)

    def delete(self, key: str) -> bool:
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            return False
        return True

    def write_note(self, name: str, content: bytes) -> None:
        """Replace the file in one step, durably."""
        target = self.path(name)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        folder = self.staging_dir()
        try:
            (folder / "note").write_bytes(content)
            _fsync(folder / "note")
            os.replace(folder / "note", target)
            _fsync(target.parent)
        finally:
            shutil.rmtree(folder)

    def read_note(self, name: str) -> bytes | None:
        try:
            return self.path(name).read_bytes()
        except FileNotFoundError:
            return None


class BlobWriter:
    """Writes one blob in chunks, and computes its hash. Without `commit`, nothing remains after the block."""

    def __init__(self, store: BlobStore, kind: str, path: Path) -> None:
        self._store = store
        self.key = new_key(kind)
        self._path = path
        self._file = self._path.open("xb")
        self._hash = hashlib.sha256()
        self._hashing = ThreadPoolExecutor(max_workers=1)
        self.size = 0
        self._synced_size = -1
        self._is_committed = False
        self._writeback = Writeback(self._file.fileno(), MAX_CACHED)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hashing.shutdown()
        self._file.close()
        self._path.unlink(missing_ok=True)

    def write(self, chunk: bytes) -> None:
        """A large chunk is hashed in another thread while it is written."""
        if len(chunk) < MIN_THREADED_BYTES:
            self._file.write(chunk)
            self._hash.update(chunk)
        else:
            hashed = self._hashing.submit(self._hash.update, chunk)
            self._file.write(chunk)
            hashed.result()
        self.size += len(chunk)
        self._writeback.grown_to(self.size)

    @property
    def path(self) -> Path:
        """Where the bytes are until `commit`."""
        return self._path

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    @property
    def blob(self) -> Blob:
        """What `commit` would publish now."""
        return Blob(self.key, self.sha256, self.size)

    def flush(self) -> None:
        """Let other processes read the bytes so far."""
        self._file.flush()

    def sync(self) -> None:
        """Write to disk and bucket before a transaction, so that its `commit` waits for neither."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._store.send(self._path, self.key)
        self._synced_size = self.size

    def commit(self) -> Blob:
        """Make the blob durable and public. It may be repeated, as transactions are after a deadlock."""
        if not self._is_committed:
            if self._synced_size != self.size:
                self.sync()
            self._store.move_in(self._path, self.key)
            self._is_committed = True
        return self.blob


class Publisher:
    """Stores the files of a job as blobs, and collects the blobs for the catalogue."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.stored: list[Blob] = []

    def publish(self, file: Path, kind: str, sha256: str) -> Blob:
        """Move a finished file of the work folder into the store."""
        self.stored.append(self._blobs.publish(file, kind, sha256))
        return self.stored[-1]


def compare(blob: Blob, size: int, sha256: str) -> None:
    """Raise BlobDamaged for another size or SHA-256."""
    if (size, sha256) != (blob.bytes, blob.sha256):
        expected = f"{blob.bytes} bytes with SHA-256 {blob.sha256}"
        raise BlobDamaged(blob.key, blob.kind, expected, f"{size} bytes with SHA-256 {sha256}")


def new_key(kind: str) -> str:
    """Return a random key. Each of its folders has a 256th of the kind's blobs."""
    name = uuid.uuid4().hex
    return f"{kind}/{name[:2]}/{name}"


def stamp_of(found: os.stat_result) -> dict[str, int]:
    """Return size and time, which differ if a file outside the store is replaced or changed."""
    return {"bytes": found.st_size, "changed_ns": found.st_mtime_ns, "inode": found.st_ino}


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent) / name


def _newest(path: Path) -> float:
    """Return the last write to the file, or in the folder; 0 without it."""
    newest = 0.0
    for each in (path, *_files(path)):
        with contextlib.suppress(FileNotFoundError):
            newest = max(newest, each.stat().st_mtime)
    return newest
