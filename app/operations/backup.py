"""Backup of database and blobs while the service runs, and restore into an empty state folder or database.

A backup has the database as it was at one moment, every blob to which that database refers, and a manifest with their
hashes. SQLite is copied as a file, PostgreSQL table by table (`postgres_copy`). A blob never changes after its
publication, so it suffices to copy blobs after the database, and to prevent the sweeper from deleting any meanwhile.
The broker needs no backup: the queue is in the database, and interrupted jobs are requeued when their leases end.
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
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from app import __version__
from app.operations import housekeeping, postgres_copy, repository
from app.platform import audit, audit_keys, catalogue, encryption, migrate
from app.platform.audit import Outcome
from app.platform.audit_keys import BadAuditKeys
from app.platform.blobs import Blob, BlobDamaged, BlobMissing, BlobStore, compare
from app.platform.database import Database
from app.platform.encryption import BadKeys, Cipher, Undecryptable, key_id
from app.platform.errors import Unavailable
from app.platform.schema import REVISION, describe, describe_unknown
from app.platform.settings import Settings
from app.platform.stores import open_store
from app.platform.tables import Upkeep

FORMAT = 1
MANIFEST, DATABASE, BLOBS = "manifest.json", "rankwright.db", "blobs/"
SECRETS, AUDIT = "RANKWRIGHT_SECRETS_KEYS_FILE", "RANKWRIGHT_AUDIT_KEY_FILE"
OWN_FILES = {SECRETS: encryption.FILE, AUDIT: audit_keys.FILE}
"""The files with keys that `rankwright serve` creates in the state folder, by the setting that names another file."""
KEYS = ("api-key", *OWN_FILES.values())
"""Files of a state folder that are in its backup: the first key, and the keys of secrets and of the audit log."""
UNKNOWN = "unknown"
"""The id of a key that the process that made the backup did not have."""
CHUNK = 1 << 20
_BLOB = re.compile(r"blobs/([a-z-]+)/([0-9a-f]{2})/(\2[0-9a-f]{30})")
_TABLE = re.compile(r"database/[a-z_]+\.copy")
_PARTIAL, _COPIES = ".partial", ".database"


Add = Callable[[str, IO[bytes], int], None]
"""Adds a file of a known size to an archive, under a name."""

Open = Callable[[str], IO[bytes]]
"""Opens a file of an archive by its name; raises FileNotFoundError."""


@contextmanager
def write(path: Path) -> Iterator[Add]:
    """Open an archive for writing: a tar file or a folder, by its name. It appears if the block ends without error."""
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
    """Open an archive; yields a function that opens its files. Raises OSError or tarfile.TarError."""
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
    """Return the SHA-256 and the size."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
        target.write(chunk)
    return digest.hexdigest(), size


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Create a file that no other user may read, and fsync it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(descriptor)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class BackupError(Exception):
    """A backup or a restore is not possible; the message says why."""


@dataclass(frozen=True)
class Backup:
    """Size and SHA-256 of each file, missing or damaged blobs, and ids of `keys` that a restored service needs."""

    made_at: str
    made_by: str
    revision: str
    files: dict[str, dict[str, Any]]
    missing: list[str]
    keys: dict[str, list[str]] = field(default_factory=dict)

    @property
    def keys_beside(self) -> str:
        """The needed keys that the backup lacks, for people."""
        return _in_words({s: ids for s, ids in self.keys.items() if OWN_FILES[s] not in self.files})

    @property
    def bytes(self) -> int:
        return sum(int(file["bytes"]) for file in self.files.values())

    @property
    def blobs(self) -> int:
        return sum(name.startswith(BLOBS) for name in self.files)


def back_up(settings: Settings, target: Path) -> Backup:
    """Write a backup and read it back. Raises BackupError, OSError and Unavailable."""
    source = settings.database_file
    is_missing = source is not None and not source.is_file()
    if is_missing or (settings.bucket_url is None and not settings.blob_dir.is_dir()):
        raise BackupError(f"there is no state at {settings.state_dir.absolute()}")
    target = target.absolute()
    if not target.parent.is_dir():
        raise BackupError(f"there is no folder {target.parent} to write {target.name} to")
    revision = migrate.current(settings.sqlalchemy_url)
    if revision is None and source is None:
        raise BackupError("the database is empty: `rankwright migrate` creates its tables")
    if revision is not None and revision != REVISION:
        raise BackupError(f"{describe(revision)}, or back up with the version that ran last")
    _record(settings)
    copies = target.with_name(target.name + _COPIES)
    remove(copies)  # of an interrupted backup
    copies.mkdir(mode=0o700)
    try:
        with _hold(settings), write(target) as add:
            copied = _copy_database(settings, copies)
            made = _write(add, settings, copied, open_store(settings))
    finally:
        remove(copies)
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


NAME = "rankwright-%Y-%m-%dT%H%M%SZ.tar"
_NAMED = re.compile(r"rankwright-\d{4}-\d\d-\d\dT\d{6}Z\.tar")
_LEFT_SECONDS = 2 * 86_400.0
"""Age at which the parts of an unfinished backup belong to a process that was killed."""


def back_up_and_prune(settings: Settings, folder: Path, keep: int) -> tuple[Path, Backup]:
    """Write a backup named after the time, and delete all but the `keep` newest, and what killed processes have left.

    None is deleted if the new backup lacks a blob. Raises as `back_up` does.
    """
    target = folder / datetime.now(UTC).strftime(NAME)
    made = back_up(settings, target)
    if not made.missing:
        named = sorted(path for path in folder.iterdir() if _NAMED.fullmatch(path.name))
        for path in named[:-keep]:
            remove(path)
    for path in folder.iterdir():
        is_part = path.suffix in (_PARTIAL, _COPIES) and _NAMED.fullmatch(path.stem)
        if is_part and time.time() - path.stat().st_mtime > _LEFT_SECONDS:
            remove(path)
    return target, made


def restore(source: Path, settings: Settings, *, without_keys: bool = False) -> Backup:
    """Restore a backup into an empty or new state folder, or into the settings' empty PostgreSQL database and bucket.

    Raises BackupError, also if the settings lack a key that the backup needs, unless `without_keys`; OSError and
    Unavailable.
    """
    into_server = settings.database_file is None
    with _opened(source) as open_file:
        made = _manifest(open_file, source)
        if not migrate.is_known(made.revision):
            raise BackupError(
                f"{source} was created by {made.made_by}: {describe_unknown(made.revision)}"
            )
        lacking = _lacking_keys(made, settings)
        if lacking and not without_keys:
            raise BackupError(
                f"{source} needs the keys {_in_words(lacking)}. Put them into the file that the setting names, or "
                "restore with --without-keys: then people sign in again, webhooks need new secrets, and the audit log "
                "cannot be verified"
            )
        if into_server == (DATABASE in made.files):
            kinds = ("SQLite", "PostgreSQL")[:: 1 if into_server else -1]
            raise BackupError(f"{source} is a backup of {kinds[0]}, but the database is {kinds[1]}")
        if into_server:
            _restore_server(open_file, made, settings)
        else:
            _restore_folder(open_file, made, settings)
    os.sync()
    return made


def _needed_keys(settings: Settings, db: Database) -> dict[str, list[str]]:
    """Return the ids of the keys that are needed to read all of a database, by setting."""
    encrypted = db.reading(repository.encrypted_texts)
    needed: set[str] = set()
    for key in settings.read_secrets_keys():
        others = {text for text in encrypted if not _decrypts(Cipher([key]), text)}
        if others != encrypted:
            needed.add(key_id(key))
        encrypted = others
    if encrypted:
        needed.add(UNKNOWN)
    found = {SECRETS: needed, AUDIT: db.reading(repository.sealing_keys)}
    return {setting: sorted(ids) for setting, ids in found.items() if ids}


def _decrypts(cipher: Cipher, text: str) -> bool:
    try:
        cipher.decrypt(text)
    except Undecryptable:
        return False
    return True


def _lacking_keys(made: Backup, settings: Settings) -> dict[str, list[str]]:
    """Return the needed keys that a restored service would lack, by setting. Raises BackupError for unusable files."""
    try:
        known: dict[str, tuple[Path | None, Collection[str]]] = {
            SECRETS: (settings.secrets_keys_file, set(map(key_id, settings.read_secrets_keys()))),
            AUDIT: (settings.audit_key_file, settings.read_audit_keys().ids),
        }
    except (BadKeys, BadAuditKeys) as error:
        raise BackupError(str(error)) from error
    lacking = {}
    for setting, ids in made.keys.items():
        file, there = known[setting]
        if file is not None or OWN_FILES[setting] not in made.files:
            lacking[setting] = [each for each in ids if each not in there]
    return {setting: ids for setting, ids in lacking.items() if ids}


def _in_words(keys: Mapping[str, Sequence[str]]) -> str:
    return " and ".join(f"{', '.join(ids)} of {setting}" for setting, ids in keys.items())


def _restore_folder(open_file: Open, made: Backup, settings: Settings) -> None:
    """The folder appears when it is complete."""
    state_dir = settings.state_dir.absolute()
    if state_dir.exists() and (not state_dir.is_dir() or any(state_dir.iterdir())):
        raise BackupError(
            f"a backup can be restored only into an empty folder; {state_dir} is not empty"
        )
    state_dir.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{state_dir.name}-", dir=state_dir.parent))
    try:
        names = list(made.files)
        if settings.bucket_url is not None:
            moved = settings.model_copy(update={"blob_cache_dir": fresh / ".moving"})
            _restore_blobs(open_file, made, open_store(moved))
            shutil.rmtree(fresh / ".moving")
            names = [name for name in names if not name.startswith(BLOBS)]
        for name in names:
            _restore_file(open_file, name, made.files[name], fresh / name)
        (fresh / BLOBS).mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            state_dir.rmdir()
        fresh.rename(state_dir)
    except BaseException:
        shutil.rmtree(fresh)
        raise


def _restore_server(open_file: Open, made: Backup, settings: Settings) -> None:
    """Store the blobs, and then fill the database: no row refers to a missing blob."""
    if migrate.current(settings.sqlalchemy_url) is not None:
        raise BackupError(
            "a backup can be restored only into an empty database, but this one has tables"
        )
    blobs = open_store(settings)
    blobs.check_writable()
    _restore_blobs(open_file, made, blobs)
    folder = blobs.staging_dir()
    try:
        files = {}
        for name in made.files:
            if name.startswith(postgres_copy.PREFIX):
                table = name.removeprefix(postgres_copy.PREFIX).removesuffix(postgres_copy.SUFFIX)
                files[table] = folder / table
                _restore_file(open_file, name, made.files[name], files[table])
        postgres_copy.load(settings.sqlalchemy_url, made.revision, files)
    except ValueError as error:
        raise BackupError(str(error)) from error
    finally:
        shutil.rmtree(folder)


def _restore_blobs(open_file: Open, made: Backup, blobs: BlobStore) -> None:
    """Store all blobs of a backup under their keys."""
    folder = blobs.staging_dir()
    try:
        for name, expected in made.files.items():
            if name.startswith(BLOBS):
                _restore_file(open_file, name, expected, folder / "blob")
                blobs.store_file(folder / "blob", name.removeprefix(BLOBS))
    finally:
        shutil.rmtree(folder)


@contextmanager
def _hold(settings: Settings) -> Iterator[None]:
    """Prevent the dispatcher from deleting blobs."""
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        with catalogue.hold(db):
            yield
    finally:
        db.close()


def _record(settings: Settings) -> None:
    """Record in the audit log that all data is being read."""
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        db.writing(
            audit.record_of_service,
            "rankwright backup",
            Outcome.READ,
            "Backed up all data of all owners",
        )
    finally:
        db.close()


def _note_success(settings: Settings, target: Path) -> None:
    """Record for the metric that a complete backup exists."""
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        db.writing(repository.note_success, Upkeep.BACKUP)
    except Unavailable as error:
        raise BackupError(
            f"{target} is complete and verified, but its time could not be recorded: {error.detail}"
        ) from error
    finally:
        db.close()


@dataclass(frozen=True)
class _Copied:
    """A copied database: its files by name, the blobs with a row that refers to each, and the ids of needed keys."""

    revision: str
    files: dict[str, Path]
    blobs: list[tuple[str, str, Blob | None]]
    keys: dict[str, list[str]]


def _copy_database(settings: Settings, folder: Path) -> _Copied:
    """Copy the database without blocking its writers."""
    source = settings.database_file
    if source is None:
        found = postgres_copy.dump(settings.sqlalchemy_url, folder)
        files = {postgres_copy.PREFIX + each.path.name: each.path for each in found.tables}
        with closing(Database(settings.sqlalchemy_url, pool_size=1)) as db:
            keys = _needed_keys(settings, db)
        return _Copied(found.revision, files, [(b.key, "blob", b) for b in found.blobs], keys)
    target = folder / DATABASE
    with closing(sqlite3.connect(source)) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)
    with closing(Database(f"sqlite:///{target}", pool_size=1)) as db:
        db.writing(catalogue.release_all)
        blobs = [(key, row, blob) for key, row, blob in housekeeping.named_blobs(db)]
        keys = _needed_keys(settings, db)
    revision = migrate.current(f"sqlite:///{target}")
    _finish(target)
    return _Copied(revision or "", {DATABASE: target}, blobs, keys)


def _write(add_file: Add, settings: Settings, copied: _Copied, blobs: BlobStore) -> Backup:
    """Add the blobs and the database that refers to them."""
    files: dict[str, dict[str, Any]] = {}
    missing: list[str] = []

    def add(name: str, path: Path, sha256: str | None = None) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            add_file(name, file, size)
            file.seek(0)
            digest = sha256 or hashlib.file_digest(file, "sha256").hexdigest()
        files[name] = {"bytes": size, "sha256": digest}

    for key, row, blob in copied.blobs:
        if BLOBS + key in files:
            continue
        try:
            if blob is None:
                raise BlobMissing(key)
            path = blobs.fetch(blob)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                compare(blob, file.tell(), digest)
        except (BlobMissing, BlobDamaged):
            missing.append(f"{row} ({key})")
        else:
            add(BLOBS + key, path, blob.sha256)
    for name, path in copied.files.items():
        add(name, path)
    if settings.database_file is not None:
        external = {SECRETS: settings.secrets_keys_file, AUDIT: settings.audit_key_file}
        for name in {*KEYS} - {OWN_FILES[setting] for setting, file in external.items() if file}:
            if (path := settings.state_dir.absolute() / name).exists():
                add(name, path)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    made = Backup(now, f"rankwright {__version__}", copied.revision, files, missing, copied.keys)
    manifest = json.dumps({"format": FORMAT, **vars(made)}, indent=1).encode()
    add_file(MANIFEST, io.BytesIO(manifest), len(manifest))  # last: it marks a whole backup
    return made


def _finish(database: Path) -> None:
    """Move SQLite's write-ahead log into the file, and check it."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise BackupError(f"the database is damaged, so it cannot be backed up: {found}")


def _check(open_file: Open, made: Backup) -> None:
    """Compare the hashes of all files."""
    with open(os.devnull, "wb") as nowhere:
        for name, expected in made.files.items():
            with open_file(name) as file:
                _compare(name, expected, copy(file, nowhere))


def _restore_file(open_file: Open, name: str, expected: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_file(name) as file, _new_file(path) as out:
        _compare(name, expected, copy(file, out))


def _compare(name: str, expected: dict[str, Any], found: tuple[str, int]) -> None:
    sha256, size = found
    if size != expected["bytes"] or sha256 != expected["sha256"]:
        raise BackupError(
            f"{name} must have {expected['bytes']} bytes with SHA-256 {expected['sha256']}, but has {size} "
            f"with {sha256}"
        )


@contextmanager
def _opened(source: Path) -> Iterator[Open]:
    """Raises BackupError if it is not a backup."""
    try:
        with read(source) as open_file:
            yield open_file
    except tarfile.TarError as error:
        raise BackupError(f"{source} is not a backup: {error}") from error


def _manifest(open_file: Open, source: Path) -> Backup:
    """Raises BackupError for file names that a backup cannot contain, so that none leads out of the folder."""
    try:
        with open_file(MANIFEST) as file:
            read_back = json.load(file)
        if read_back.pop("format") != FORMAT:
            raise BackupError(f"{source} does not have the format {FORMAT} that this version reads")
        made = Backup(**read_back)
        sound = all(
            (name in (DATABASE, *KEYS) or _BLOB.fullmatch(name) or _TABLE.fullmatch(name))
            and isinstance(file["bytes"], int)
            and isinstance(file["sha256"], str)
            for name, file in made.files.items()
        )
    except FileNotFoundError:
        raise BackupError(f"{source} is not a backup: it has no {MANIFEST}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BackupError(f"{source} has a {MANIFEST} that cannot be read: {error!r}") from error
    n_tables = sum(_TABLE.fullmatch(name) is not None for name in made.files)
    if not sound or (DATABASE in made.files) == (n_tables > 0):
        raise BackupError(f"{source} has a {MANIFEST} with invalid file names")
    return made
