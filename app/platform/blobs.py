"""Blobs: uploads, tables and artifacts as files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from app.platform import failpoints


class Writeback:
    """Write a growing file to disk piece by piece.

    The first `most_cached` bytes stay in the page cache for a reader who comes soon. Later bytes are dropped from the
    cache once they are on disk: a long file would displace the data of other processes.
    """

    PART = 8 << 20

    def __init__(self, descriptor: int, most_cached: int = sys.maxsize) -> None:
        self._descriptor = descriptor
        self._most_cached = most_cached
        self._sent = 0

    def grown_to(self, size: int) -> None:
        """Record the size so far. Never waits; fsync writes the rest."""
        if size - self._sent < self.PART:
            return
        if hasattr(os, "posix_fadvise"):
            # Linux starts to write the dirty pages of this range, keeps them, and drops the clean ones: the new part
            # stays in memory until the next call, which names it again.
            start = min(self._sent, self._most_cached)
            os.posix_fadvise(self._descriptor, start, size - start, os.POSIX_FADV_DONTNEED)
        self._sent = size


_STAGING = "staging"
_HOLD = "hold-"
_DOOMED = "doomed-"
MIN_THREADED_BYTES = 1 << 16  # a smaller chunk is hashed faster here than in another thread
MAX_CACHED = 1 << 28  # bytes of a new blob that a worker will find in memory


class BlobStore:
    """A folder of immutable files named `kind/ab/abcdef…`.

    A blob is on disk before its key is used. Writers work in `staging/` of the same file system, so that a rename
    publishes in one step.
    """

    def __init__(self, root: Path) -> None:
        """Create the folder if it does not exist. Raises PermissionError if this user may not."""
        self.root = root
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            (root / _STAGING).mkdir(exist_ok=True)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            self._refuse(root)

    def check_writable(self) -> None:
        """Raise PermissionError if this process may not write: at its start, not at the first upload. Raises OSError if
        a folder is missing. A full disk is no error: stored blobs can be read.
        """
        for folder in (self.root, *self.root.iterdir()):
            if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                self._refuse(folder)
        try:
            self.staging_dir().rmdir()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    @staticmethod
    def _refuse(folder: Path) -> NoReturn:
        raise PermissionError(f"the blob folder {folder} is not writable by this user")

    def path(self, key: str) -> Path:
        """Return the path of a blob. Raises ValueError for a key that leads out of the folder, which is a bug: keys
        come from our own rows.
        """
        path = self.root / key
        if ".." in path.parts or Path(key).is_absolute():
            raise ValueError(f"blob key must stay inside the store, got {key!r}")
        return path

    def writer(self, kind: str) -> BlobWriter:
        """Open a new blob of this kind for writing in chunks; see `BlobWriter`."""
        return BlobWriter(self, kind)

    def staging_dir(self) -> Path:
        """Create a private folder on the same file system, for files that may be adopted later."""
        path = self.root / _STAGING / uuid.uuid4().hex
        path.mkdir()
        return path

    def job_dir(self, kind: str, job_id: str) -> Path:
        """Return the path of a staging folder that all attempts of a job share; it may not exist."""
        return self.root / _STAGING / f"{kind}-{job_id}"

    def publish(self, file: Path, kind: str, sha256: str, *, is_synced: bool = False) -> str:
        """Move a finished file into the store and return its key. It may be called again.

        The transaction that names the blob may be repeated if the database was away.
        """
        key = _key(kind, sha256)
        if not file.exists() and self.path(key).exists():
            # its grace period begins again, as if it had been published now
            os.utime(self.path(key))
            return key
        return self.adopt(file, kind, sha256, is_synced=is_synced)

    def adopt(self, file: Path, kind: str, sha256: str, *, is_synced: bool = False) -> str:
        """Publish a finished file of a staging folder under its hash. It is durable when this returns the key.

        With `is_synced` its bytes are on disk already, and only the folder's entry is written.
        """
        if not is_synced:
            _fsync(file)
        key = _key(kind, sha256)
        target = self.path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        failpoints.reach("adopt")
        os.utime(file)  # the grace period of an unnamed blob counts from its last publication
        os.replace(file, target)
        _fsync(target.parent)
        failpoints.reach("adopted")
        return key

    def size(self, key: str) -> int:
        """Return the size of a blob in bytes."""
        return self.path(key).stat().st_size

    def is_sound(self, key: str) -> bool:
        """Return True if a blob's bytes have the hash in its name. Reads the whole blob."""
        with self.path(key).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == Path(key).name

    def remove_old(self, key: str, age_seconds: float) -> bool:
        """Delete a blob, or an entry of staging, that was last written at least `age_seconds` ago; returns whether it
        did.

        A blob that is published again at this moment stays. It is moved aside first, and its age is checked there: so
        even a process that pauses in between never deletes a blob that others have published since.
        """
        path = self.path(key)
        if not 0 < _newest(path) < time.time() - age_seconds:
            return False
        if path.parent.name == _STAGING:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            return True
        kind, _, sha256 = key.split("/")
        aside = self.root / _STAGING / f"{_DOOMED}{kind}-{sha256}"
        try:
            os.replace(path, aside)
            failpoints.reach("sweep")
            if aside.stat().st_mtime >= time.time() - age_seconds:
                self._put_back(aside)
                return False
            aside.unlink()
        except FileNotFoundError:
            return False  # another sweeper was here
        return True

    def put_back_set_aside(self) -> None:
        """Put back the blobs that a sweeper moved aside before it died."""
        for aside in (self.root / _STAGING).glob(f"{_DOOMED}*"):
            with contextlib.suppress(FileNotFoundError):
                self._put_back(aside)

    def _put_back(self, aside: Path) -> None:
        kind, _, sha256 = aside.name.removeprefix(_DOOMED).rpartition("-")
        with contextlib.suppress(FileExistsError):  # published again meanwhile
            os.link(aside, self.path(_key(kind, sha256)))
        aside.unlink()

    def older_than(self, age_seconds: float) -> Iterator[str]:
        """Yield the keys of blobs, and of staging as `staging/…`, last written at least `age_seconds` ago."""
        horizon = time.time() - age_seconds
        for kind in self.root.iterdir():
            entries = kind.iterdir() if kind.name == _STAGING else _files(kind)
            for path in entries:
                if 0 < _newest(path) < horizon:
                    yield str(path.relative_to(self.root))

    @contextlib.contextmanager
    def hold_sweeper(self) -> Iterator[None]:
        """Keep sweepers from deleting blobs for the duration of a block, which may take as long as one grace period."""
        path = self.root / _STAGING / f"{_HOLD}{uuid.uuid4().hex}"
        path.touch()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)

    def sweeper_is_held(self, longest_seconds: float) -> bool:
        """Return True if a process holds the sweeper. A hold older than `longest_seconds` belongs to a dead process."""
        holds = (self.root / _STAGING).glob(f"{_HOLD}*")
        return any(_newest(path) > time.time() - longest_seconds for path in holds)


class BlobWriter:
    """Write one blob in chunks, and compute its hash. Leaving the block without `commit` leaves nothing behind."""

    def __init__(self, store: BlobStore, kind: str) -> None:
        self._store = store
        self._kind = kind
        self._path = store.root / _STAGING / uuid.uuid4().hex
        self._file = self._path.open("xb")
        self._hash = hashlib.sha256()
        self._hashing = ThreadPoolExecutor(max_workers=1)
        self.size = 0
        self._synced_size = -1
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
        """Append a chunk. A large one is hashed in another thread while it is written."""
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
        """Path of the bytes until `commit`."""
        return self._path

    @property
    def sha256(self) -> str:
        """SHA-256 of the bytes written so far, in hexadecimal."""
        return self._hash.hexdigest()

    @property
    def key(self) -> str:
        """The key under which `commit` would publish the bytes written so far."""
        return _key(self._kind, self.sha256)

    def flush(self) -> None:
        """Flush the bytes written so far, so that others can read them."""
        self._file.flush()

    def sync(self) -> None:
        """Write the bytes added so far to disk, before a transaction in which `commit` then need not wait for them."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced_size = self.size

    def commit(self) -> tuple[str, str]:
        """Make the blob durable and public; returns its key and its SHA-256 in hexadecimal.

        It may be called again: a transaction that names the blob runs again after a deadlock.
        """
        if self._synced_size != self.size:
            self.sync()
        sha256 = self.sha256
        return self._store.publish(self._path, self._kind, sha256, is_synced=True), sha256


def stamp_of(found: os.stat_result) -> dict[str, int]:
    """Return a stamp that distinguishes a file outside the store from a later file at the same path."""
    return {"bytes": found.st_size, "changed_ns": found.st_mtime_ns, "inode": found.st_ino}


def _key(kind: str, sha256: str) -> str:
    return f"{kind}/{sha256[:2]}/{sha256}"


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
    """Return the time of the last write to the file, or to anything in the folder; 0 if it does not exist."""
    newest = 0.0
    for each in (path, *_files(path)):
        with contextlib.suppress(FileNotFoundError):
            newest = max(newest, each.stat().st_mtime)
    return newest
