"""The log of decisions: memory-mapped files of one process, which become segments in the blob store.

Each alias has a stream of numbered decisions, written into a file of the state folder. The page cache has a decision
before its request is answered, so a killed process loses nothing of what it answered; a power failure may lose what the
system has not yet written to disk. A file is sealed when it is full or old: its rows become a Parquet file, whose row
is inserted once (`DecisionSegment` is unique by log and first number). Only then is the file deleted. A process holds a
lock on its files, so that another process can seal the files of a killed process.

The header of a file has the number of the next decision. It is written before the decision, and also if the decision is
dropped because the log is full. So every loss is counted when the file is sealed.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import mmap
import os
import struct
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from app.feedback import repository
from app.feedback.segments import segment_of
from app.platform import failpoints
from app.platform.blobs import Blob, BlobStore
from app.platform.errors import Unavailable
from app.platform.ids import new_id
from app.platform.sql import Session
from app.scoring.decisions import DecisionStream, Piece, SegmentFeature

log = logging.getLogger(__name__)

FOLDER = "decisions"
"""Folder of the logs in the state folder."""
MIN_FILE_BYTES, MAX_FILE_BYTES = 1 << 18, 1 << 22
"""Sizes of a file. The next file of an alias is larger if the one before was full before it was old."""
MAX_BYTES = 1 << 28
"""Maximum size of the files of one process, in bytes. Beyond it, decisions are dropped and counted."""
SEAL_BYTES = 1 << 20
SEAL_SECONDS, SEAL_ANYWAY_SECONDS = 10.0, 60.0
"""Age at which a file is sealed. A file with fewer than `SEAL_BYTES` is sealed later, so that segments are not tiny."""
TICK_SECONDS = 1.0
RECOVER_SECONDS = 30.0
WAIT_SECONDS = 10.0
"""How long the decisions of a large table wait for space, at most."""
CLOSE_SECONDS = 5.0
_RETRY_SECONDS = 5.0
_OLD_SECONDS = 3600.0

_MAGIC = b"RWDECL01"
_HEADER = struct.Struct("<8sQQQI")
"""Magic, number of the next decision, end of the last whole record, number of the first decision, length of the
description (JSON), which follows.
"""
_NEXT, _END = 8, 16
_RECORD = struct.Struct("<IIQI")
"""Length and CRC-32 of the content, number of its first decision, number of its decisions."""
_U64 = struct.Struct("<Q")


Writing = Callable[..., Any]
"""Runs work in a transaction."""


class _Damaged(Exception):
    """The file is not a log."""


class _LogFile:
    """A file to which decisions are appended, and its lock."""

    def __init__(
        self, folder: Path, log_id: str, first: int, stream: DecisionStream, size: int
    ) -> None:
        """Allocate all bytes: a write to a map of a full disk would kill the process. Raises OSError."""
        owner, name, alias, features = stream
        self.stream, self.log_id, self.created_at = stream, log_id, time.monotonic()
        described = orjson.dumps(
            {
                "log_id": log_id,
                "owner": owner,
                "name": name,
                "alias": alias,
                "features": [list(each) for each in features],
            }
        )
        self.first = self.next = first
        self.end = _HEADER.size + len(described)
        self.size = max(size, 2 * self.end)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / f"{log_id}-{first}.log"
        made = self.path.with_suffix(".new")
        self._descriptor = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            _allocate(self._descriptor, self.size)
            self._map = mmap.mmap(self._descriptor, self.size)
            head = _HEADER.pack(_MAGIC, first, self.end, first, len(described))
            self._map[: self.end] = head + described
            made.rename(self.path)
        except BaseException:
            os.close(self._descriptor)
            made.unlink(missing_ok=True)
            raise

    def fits(self, piece: Piece) -> bool:
        return self.end + _RECORD.size + len(piece.content) <= self.size

    def skip(self, count: int) -> None:
        self.next += count
        _U64.pack_into(self._map, _NEXT, self.next)

    def append(self, piece: Piece) -> None:
        """Write their numbers first, so that they are counted as lost if the process is killed now."""
        first, content = self.next, piece.content
        self.skip(piece.rows)
        start = self.end + _RECORD.size
        _RECORD.pack_into(self._map, self.end, len(content), zlib.crc32(content), first, piece.rows)
        end = start + len(content)
        self._map[start:end] = content
        self.end = end
        _U64.pack_into(self._map, _END, end)

    def release(self) -> None:
        """Close the file, and give up the lock."""
        self._map.close()
        os.close(self._descriptor)


def _allocate(descriptor: int, size: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.pwrite(descriptor, bytes(size), 0)


@dataclass
class _Stream:
    """The stream of an alias in this process: the number of its next decision, and its open file."""

    log_id: str
    next: int = 1
    covered: int = 1
    """Numbers below this are in a file."""
    size: int = MIN_FILE_BYTES
    file: _LogFile | None = None


@dataclass
class LogContent:
    """The content of a file: the rows of its whole records, and how many of its decisions there are."""

    log_id: str
    stream: DecisionStream
    first: int
    next: int
    count: int = 0
    contents: list[bytes] = field(default_factory=list)


def read_log(path: Path) -> LogContent:
    """Everything after a damaged record is lost. Raises _Damaged if the file is not a log."""
    data = path.read_bytes()
    try:
        magic, following, end, first, length = _HEADER.unpack_from(data)
        described = orjson.loads(data[_HEADER.size : _HEADER.size + length])
        features = tuple(SegmentFeature(*each) for each in described["features"])
        stream = DecisionStream(described["owner"], described["name"], described["alias"], features)
        found = LogContent(described["log_id"], stream, first, following)
    except (struct.error, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise _Damaged(str(error)) from error
    if magic != _MAGIC:
        raise _Damaged(f"it begins with {magic!r}")
    at = _HEADER.size + length
    while at < end:
        try:
            size, crc, _, count = _RECORD.unpack_from(data, at)
        except struct.error:
            break
        content = data[at + _RECORD.size : at + _RECORD.size + size]
        if len(content) < size or zlib.crc32(content) != crc:
            log.warning("the log %s is damaged at byte %d; the rest of it is lost", path, at)
            break
        found.contents.append(content)
        found.count += count
        at += _RECORD.size + size
    return found


def seal(blobs: BlobStore, writing: Writing, path: Path) -> None:
    """Store a file as a segment and delete it, also if the segment exists already. Raises Unavailable and OSError."""
    try:
        found = read_log(path)
    except _Damaged as error:
        log.error("%s is not a log of decisions (%s); it is kept as .damaged", path, error)
        path.rename(path.with_suffix(".damaged"))
        return
    if found.next > found.first:
        failpoints.reach("seal")
        written = segment_of(blobs, found.stream, found.contents, default_at=path.stat().st_mtime)
        row = {
            "id": new_id("seg"),
            "owner": found.stream.owner,
            "name": found.stream.name,
            "alias": found.stream.alias,
            "log_id": found.log_id,
            "first_sequence": found.first,
            "last_sequence": found.next - 1,
            "origin": "score",
            "first_at": written.first_at,
            "last_at": written.last_at,
            "rows": written.rows,
            "lost": found.next - found.first - found.count,
            "segment_key": written.blob.key,
            "segment_bytes": written.blob.bytes,
        }
        writing(_insert, row, written.blob)
        failpoints.reach("sealed")
    path.unlink(missing_ok=True)


def _insert(session: Session, row: dict[str, Any], blob: Blob) -> bool:
    added = repository.add_segment(session, row, blob)
    failpoints.reach("segment")
    return added


class DecisionLog:
    """Takes the decisions of this process, and seals them in a thread. `append` never waits for disk, database or
    store.

    It may create a file. `on_lost` is called with the number of dropped decisions, `on_bytes` with the bytes of all
    files when they change, and `preload` imports what sealing needs.
    """

    def __init__(
        self,
        folder: Path,
        blobs: BlobStore,
        writing: Writing,
        *,
        max_bytes: int = MAX_BYTES,
        on_lost: Callable[[int], object] = lambda count: None,
        on_bytes: Callable[[int], object] = lambda count: None,
        preload: Callable[[], object] = lambda: None,
    ) -> None:
        self._preload = preload
        self._folder, self._blobs, self._writing = folder, blobs, writing
        self._max_bytes, self._on_lost, self._on_bytes = max_bytes, on_lost, on_bytes
        self._lock = threading.Lock()
        self._space = threading.Condition(self._lock)
        self._sealing = threading.Lock()
        self._streams: dict[tuple[str, str, str], _Stream] = {}
        self._waiting: list[_LogFile] = []
        self._bytes = 0
        self._failed_at = -_RETRY_SECONDS
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start sealing files, also those of killed processes."""
        self._thread = threading.Thread(target=self._run, name="decisions", daemon=True)
        self._thread.start()

    def append(self, stream: DecisionStream, piece: Piece, *, wait: bool = False) -> None:
        """Write decisions. If the log is full, they are dropped and counted; `wait` waits for space first."""
        deadline = time.monotonic() + WAIT_SECONDS
        with self._lock:
            found = self._streams.get(stream[:3])
            if found is None:
                found = self._streams[stream[:3]] = _Stream(uuid.uuid4().hex)
            file = self._file_for(found, stream, piece)
            while file is None and wait and not self._stop.is_set():
                left = deadline - time.monotonic()
                if left <= 0 or not self._space.wait(left):
                    break
                file = self._file_for(found, stream, piece)
            found.next += piece.rows
            if file is not None:
                file.append(piece)
            elif found.file is not None:
                found.file.skip(piece.rows)
            found.covered = found.next if found.file is not None else found.covered
        if file is None:
            self._on_lost(piece.rows)

    def _file_for(self, found: _Stream, stream: DecisionStream, piece: Piece) -> _LogFile | None:
        """Return None if no file can be created."""
        file = found.file
        if file is not None and file.fits(piece) and file.stream.features == stream.features:
            return file
        size = found.size
        if file is not None and time.monotonic() - file.created_at < SEAL_SECONDS:
            size = min(4 * size, MAX_FILE_BYTES)
        needed = 2 * (len(piece.content) + _RECORD.size) + 64 * (len(stream.features) + 16)
        size = max(size, needed)
        if (
            self._bytes + size > self._max_bytes
            or time.monotonic() < self._failed_at + TICK_SECONDS
        ):
            return None
        first = found.covered if file is None else file.next
        try:
            made = _LogFile(self._folder, found.log_id, first, stream, size)
        except OSError as error:
            self._failed_at = time.monotonic()
            log.warning("decisions are lost, because %s cannot be written: %s", self._folder, error)
            return None
        made.skip(found.next - first)  # dropped when there was no file
        self._bytes += made.size
        self._on_bytes(self._bytes)
        if file is not None:
            self._waiting.append(file)
        found.file, found.size = made, size
        return made if made.fits(piece) else None

    def flush(self) -> None:
        """Seal all decisions so far. Raises Unavailable and OSError."""
        with self._sealing:
            self._seal_waiting()
            self._detach(lambda file: True)
            self._seal_waiting()

    def recover(self) -> int:
        """Seal files of killed processes. Raises Unavailable and OSError."""
        with self._lock:
            own = {file.path for file in self.files()}
        count = 0
        with contextlib.suppress(FileNotFoundError):
            for path in sorted(self._folder.iterdir()):
                if path not in own and path.suffix in (".log", ".new"):
                    count += self._recover(path)
        return count

    def files(self) -> Iterator[_LogFile]:
        """Yield the files of this process that are not sealed yet. The caller holds the lock, or is alone."""
        yield from self._waiting
        yield from (found.file for found in self._streams.values() if found.file is not None)

    def _recover(self, path: Path) -> bool:
        """Seal a file if its process has ended."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            found = os.fstat(descriptor)
            if path.stat().st_ino != found.st_ino:
                return False
            if path.suffix == ".new":  # its process ended before it wrote anything
                if time.time() - found.st_mtime > _OLD_SECONDS:
                    path.unlink()
                return False
            self._preload()  # else this thread and the one that preloads may see each other's modules half loaded
            seal(self._blobs, self._writing, path)
            return True
        except (BlockingIOError, FileNotFoundError):  # in use, or just sealed by another process
            return False
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Seal files for some seconds. The next process seals the rest."""
        self._stop.set()
        with self._lock:
            self._space.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        recovered_at = -RECOVER_SECONDS
        retry_at = 0.0
        while True:
            stopped = self._stop.wait(TICK_SECONDS)
            now = time.monotonic()
            if now < retry_at and not stopped:
                continue
            try:
                if stopped:
                    self.flush()
                else:
                    self.seal_due()
                    if now - recovered_at > RECOVER_SECONDS:
                        recovered_at = now
                        self.recover()
            except (Unavailable, OSError) as error:
                log.warning("decisions wait to be stored: %s", error)
                retry_at = now + _RETRY_SECONDS
            except Exception:
                log.exception("decisions could not be stored; they are tried again")
                retry_at = now + _RETRY_SECONDS
            if stopped:
                return

    def seal_due(self) -> None:
        """Seal the files that are full or old. Raises Unavailable and OSError."""
        with self._sealing:
            # While these cannot be sealed, an open file stays, because its header counts what is dropped.
            self._seal_waiting()
            self._detach(_is_due)
            self._seal_waiting()

    def _detach(self, wanted: Callable[[_LogFile], bool]) -> None:
        """Close the `wanted` open files, so that no more decisions are added."""
        with self._lock:
            for found in self._streams.values():
                file = found.file
                if file is not None and wanted(file):
                    found.covered, found.file = file.next, None
                    self._waiting.append(file)

    def _seal_waiting(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    return
                file = self._waiting[0]
            self._preload()
            seal(self._blobs, self._writing, file.path)
            file.release()
            with self._lock:
                self._waiting.pop(0)
                self._bytes -= file.size
                self._on_bytes(self._bytes)
                self._space.notify_all()


def _is_due(file: _LogFile) -> bool:
    """Return True if a file is old, or full for the next decision."""
    age = time.monotonic() - file.created_at
    if file.end >= SEAL_BYTES or file.end > file.size // 2:
        return age >= SEAL_SECONDS
    return age >= SEAL_ANYWAY_SECONDS
