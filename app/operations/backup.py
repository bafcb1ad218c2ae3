"""Backup of the embedded state while the service runs, and restore into an empty folder.

A backup has the database as it was at one moment, every blob to which that database refers, and a manifest with their
hashes. A blob never changes after its publication, so it suffices to copy blobs after the database, and to prevent the
sweeper from deleting any meanwhile. The broker needs no backup: the queue is in the database, and interrupted jobs are
requeued when their leases end.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from app import __version__
from app.operations import housekeeping, repository
from app.platform import catalogue, migrate
from app.platform.blobs import BlobDamaged, BlobMissing, BlobStore
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.schema import REVISION, describe, describe_unknown
from app.platform.settings import Settings
from app.platform.stores import open_store
from app.platform.tables import Upkeep

FORMAT = 1
MANIFEST, DATABASE, KEY, BLOBS = "manifest.json", "rankwright.db", "api-key", "blobs/"
CHUNK = 1 << 20
# Keys of release 0.3.0 end in a SHA-256, later ones in 32 random digits.
_BLOB = re.compile(r"blobs/([a-z-]+)/([0-9a-f]{2})/(\2(?:[0-9a-f]{30}|[0-9a-f]{62}))")
_PARTIAL = ".partial"


Add = Callable[[str, IO[bytes], int], None]
"""Adds a file of a known size to an archive, under a name."""

Open = Callable[[str], IO[bytes]]
"""Opens a file of an archive by its name; raises FileNotFoundError."""


@contextmanager
def write(path: Path) -> Iterator[Add]:
    """Open an archive for writing: a tar file if the name ends in .tar, else a folder. It appears when the block ends
    without an error.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists already")
    partial = path.with_name(path.name + _PARTIAL)
    remove(partial)  # of an interrupted backup
    try:
        if path.suffix == ".tar":
            with _new_file(partial) as file, tarfile.open(fileobj=file, mode="w") as tar:

                def add_to_tar(name: str, file: IO[bytes], size: int) -> None:
                    entry = tarfile.TarInfo(name)
                    entry.size, entry.mode = size, 0o600
                    tar.addfile(entry, file)

                yield add_to_tar
        else:
            partial.mkdir(mode=0o700)

            def add_to_folder(name: str, file: IO[bytes], size: int) -> None:
                target = partial / name
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with _new_file(target) as out:
                    shutil.copyfileobj(file, out, CHUNK)

            yield add_to_folder
        partial.rename(path)
    except BaseException:
        remove(partial)
        raise


@contextmanager
def read(path: Path) -> Iterator[Open]:
    """Open an archive that `write` has written; yields a function that opens its files. Raises OSError or
    tarfile.TarError for anything else.
    """
    if path.is_dir():
        yield lambda name: (path / name).open("rb")
        return
    with tarfile.open(path, "r:") as tar:

        def open_member(name: str) -> IO[bytes]:
            with suppress(KeyError):
                if (found := tar.extractfile(name)) is not None:
                    return found
            raise FileNotFoundError(f"{name} is not in the archive")

        yield open_member


def copy(source: IO[bytes], target: IO[bytes]) -> tuple[str, int]:
    """Copy the rest of a file; returns its SHA-256 in hexadecimal, and its size in bytes."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return digest.hexdigest(), size


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Create a file that no other user may read, and fsync it when the block ends."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(descriptor)


def remove(path: Path) -> None:
    """Delete an archive, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class BackupError(Exception):
    """A backup or a restore is not possible; the message says why."""


@dataclass(frozen=True)
class Backup:
    """Contents of a backup: size and SHA-256 of each file by name, and the blobs that were missing or damaged."""

    made_at: str
    made_by: str
    revision: str
    files: dict[str, dict[str, Any]]
    missing: list[str]

    @property
    def bytes(self) -> int:
        """Size of all files in bytes."""
        return sum(int(file["bytes"]) for file in self.files.values())

    @property
    def blobs(self) -> int:
        """Number of blobs."""
        return sum(name.startswith(BLOBS) for name in self.files)


def back_up(settings: Settings, target: Path) -> Backup:
    """Write a backup to a new folder or tar file, and read it back. Raises BackupError or OSError."""
    source = settings.database_file
    if source is None:
        raise BackupError("a backup copies an SQLite database; for PostgreSQL see docs/deploy.md")
    if not source.is_file() or not settings.blob_dir.is_dir():
        raise BackupError(f"there is no state at {settings.state_dir.absolute()}")
    target = target.absolute()
    if not target.parent.is_dir():
        raise BackupError(f"there is no folder {target.parent} to write {target.name} to")
    revision = migrate.current(settings.sqlalchemy_url)
    if revision is not None and revision != REVISION:
        raise BackupError(f"{describe(revision)}, or back up with the version that ran last")
    blobs = open_store(settings)
    with (
        tempfile.TemporaryDirectory(prefix=".rankwright-", dir=target.parent) as folder,
        _hold(settings),  # before the copy
        write(target) as add,
    ):
        database = Path(folder) / DATABASE
        _copy_database(source, database)
        made = _write(add, settings, database, blobs)
    try:
        with _opened(target) as open_file:
            _check(open_file, made)
    except BaseException:
        remove(target)
        raise
    os.sync()  # names as well as bytes: the backup outlives a power cut
    if not made.missing:
        _note_success(settings, target)
    return made


def restore(source: Path, state_dir: Path) -> Backup:
    """Restore a backup into an empty or new folder. Raises BackupError or OSError."""
    state_dir = state_dir.absolute()
    if state_dir.exists() and (not state_dir.is_dir() or any(state_dir.iterdir())):
        raise BackupError(
            f"a backup can be restored only into an empty folder; {state_dir} is not empty"
        )
    with _opened(source) as open_file:
        made = _manifest(open_file, source)
        if not migrate.is_known(made.revision):
            raise BackupError(
                f"{source} was created by {made.made_by}: {describe_unknown(made.revision)}"
            )
        state_dir.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{state_dir.name}-", dir=state_dir.parent))
        try:
            for name, expected in made.files.items():
                _restore_file(open_file, name, expected, fresh / name)
            (fresh / BLOBS).mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                state_dir.rmdir()
            fresh.rename(state_dir)
        except BaseException:
            shutil.rmtree(fresh)
            raise
    os.sync()
    return made


@contextmanager
def _hold(settings: Settings) -> Iterator[None]:
    """Prevent the dispatcher from deleting blobs during the block."""
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        with catalogue.hold(db):
            yield
    finally:
        db.close()


def _note_success(settings: Settings, target: Path) -> None:
    """Record in the database that a complete backup exists, for the metric of its age."""
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        db.writing(repository.note_success, Upkeep.BACKUP)
    except Unavailable as error:
        raise BackupError(
            f"{target} is complete and verified, but its time could not be recorded: {error.detail}"
        ) from error
    finally:
        db.close()


def _copy_database(source: Path, target: Path) -> None:
    """Copy the database as it is now into one file, without blocking its writers."""
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)


def _write(add_file: Add, settings: Settings, database: Path, blobs: BlobStore) -> Backup:
    """Add the database and the blobs that it refers to; returns the description of the backup."""
    files: dict[str, dict[str, Any]] = {}
    missing: list[str] = []

    def add(name: str, path: Path, sha256: str | None = None) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            add_file(name, file, size)
            file.seek(0)
            digest = sha256 or hashlib.file_digest(file, "sha256").hexdigest()
        files[name] = {"bytes": size, "sha256": digest}

    copy = Database(f"sqlite:///{database}", pool_size=1)
    try:
        copy.writing(catalogue.release_all)
        for key, row, blob in housekeeping.named_blobs(copy):
            if BLOBS + key in files:
                continue
            try:
                if blob is None:
                    raise BlobMissing(key)
                blobs.verify(blob)
            except (BlobMissing, BlobDamaged):
                missing.append(f"{row} ({key})")
            else:
                add(BLOBS + key, blobs.fetch(blob), blob.sha256)
    finally:
        copy.close()
    revision = migrate.current(f"sqlite:///{database}")
    _finish(database)
    add(DATABASE, database)
    if (key_file := settings.state_dir.absolute() / KEY).exists():
        add(KEY, key_file)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = Backup(now, f"rankwright {__version__}", revision or "", files, missing)
    manifest = json.dumps({"format": FORMAT, **vars(made)}, indent=1).encode()
    add_file(MANIFEST, io.BytesIO(manifest), len(manifest))  # last: it marks a whole backup
    return made


def _finish(database: Path) -> None:
    """Move SQLite's write-ahead log into the file, and let SQLite check it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise BackupError(f"the database is damaged, so it cannot be backed up: {found}")


def _check(open_file: Open, made: Backup) -> None:
    """Read every byte of the backup, and compare the hashes."""
    with open(os.devnull, "wb") as nowhere:
        for name, expected in made.files.items():
            with open_file(name) as file:
                _compare(name, expected, copy(file, nowhere))


def _restore_file(open_file: Open, name: str, expected: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_file(name) as file, _new_file(path) as out:
        _compare(name, expected, copy(file, out))


def _compare(name: str, expected: dict[str, Any], found: tuple[str, int]) -> None:
    """Raise BackupError unless size and hash are as expected."""
    sha256, size = found
    if size != expected["bytes"] or sha256 != expected["sha256"]:
        raise BackupError(
            f"{name} must have {expected['bytes']} bytes with SHA-256 {expected['sha256']}, but has {size} "
            f"with {sha256}"
        )


@contextmanager
def _opened(source: Path) -> Iterator[Open]:
    """Open an archive. Raises BackupError if it is not a backup."""
    try:
        with read(source) as open_file:
            yield open_file
    except tarfile.TarError as error:
        raise BackupError(f"{source} is not a backup: {error}") from error


def _manifest(open_file: Open, source: Path) -> Backup:
    """Return the manifest of an archive. Raises BackupError for file names that a backup cannot contain, so that none
    leads out of the folder.
    """
    try:
        with open_file(MANIFEST) as file:
            read_back = json.load(file)
        if read_back.pop("format") != FORMAT:
            raise BackupError(f"{source} does not have the format {FORMAT} that this version reads")
        made = Backup(**read_back)
        sound = all(
            (name in (DATABASE, KEY) or _BLOB.fullmatch(name))
            and isinstance(file["bytes"], int)
            and isinstance(file["sha256"], str)
            for name, file in made.files.items()
        )
    except FileNotFoundError:
        raise BackupError(f"{source} is not a backup: it has no {MANIFEST}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BackupError(f"{source} has a {MANIFEST} that cannot be read: {error!r}") from error
    if not sound or DATABASE not in made.files:
        raise BackupError(f"{source} has a {MANIFEST} with invalid file names")
    return made
