"""The blob store in a bucket: S3 and servers with its API, Google Cloud Storage, Azure Blob Storage (through obstore).

A folder of this machine has what is being written, and a bounded cache of blobs that were read or written here. Readers
get files of that cache, because a fit process has no network and libraries map files into memory. Every download is
compared with the SHA-256 in the catalogue before it enters the cache.

Only `app.platform.stores` imports this module, and only for a bucket: a service with a folder never loads obstore.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

import obstore
from obstore import exceptions
from obstore.store import from_url

from app.platform.blobs import (
    KEY_PATTERN,
    Blob,
    BlobDamaged,
    BlobMissing,
    BlobStore,
    BlobStoreAway,
    ListedBlob,
    compare,
)
from app.platform.bucket_credentials import BadCredentials, options_of
from app.platform.buckets import Bucket

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

log = logging.getLogger(__name__)
Result = TypeVar("Result")

PART_BYTES = 5 << 20
"""Size of the parts of an upload: the smallest that S3 allows."""
MAX_PARTS = 1_000
"""The largest number of parts that servers with the API of S3 allow by default (Swift; S3 itself 10,000). Above 4.9 GiB
the parts become larger.
"""
PARTS_AT_ONCE = 4
RANGE_BYTES = 8 << 20
"""Bytes that one request of a download asks for, so that a lost connection costs no more than these."""
REQUEST_SECONDS = 60
"""Time for one request, in which one part of an upload or one range of a download is sent."""
PROBE_SECONDS = 0.5
"""Time for the response to a health check: less than health checks have in all."""
PROBED_SECONDS = 30.0
"""How long the processes of a host do not repeat a successful check."""
_PROBE = b"rankwright"
IN_USE_SECONDS = 60.0
"""A cached file that was handed out less than this time ago is not evicted: its reader may not have opened it yet."""
TOUCH_SECONDS = 15.0
"""A cached file's time of use is written at most this often."""
FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0
"""Seconds between two attempts while the bucket is away: from, and up to."""
CREDENTIALS_SECONDS = 5.0
"""The file with the credentials is looked at this often: a changed one is used without a restart."""


class _Connection(NamedTuple):
    """A client of obstore, and the stamp of the credentials that it was opened with."""

    store: Any
    stamp: tuple[int, int, int] | None


@dataclass
class _Looked:
    """When the credentials' file was last looked at, by the monotonic clock."""

    at: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Budget:
    """Bytes of memory that the threads of a process share."""

    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, wanted: int) -> Iterator[None]:
        """Wait for bytes, or for all if more are wanted than there are."""
        wanted = min(wanted, self._total)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted
        try:
            yield
        finally:
            with self._changed:
                self._free += wanted
                self._changed.notify_all()


class ObjectStore(BlobStore):
    """The objects of a bucket below a prefix, with a cache of `cache_bytes` in a folder of this machine.

    An operation is attempted again for up to `patience` seconds while the bucket is away; then it raises BlobStoreAway,
    as every method may. `upload_bytes` bounds the memory of all uploads of this process together. A process that has
    used a store must not be forked: the child would hang in its first request.
    """

    def __init__(
        self, bucket: Bucket, folder: Path, *, cache_bytes: int, upload_bytes: int, patience: float
    ) -> None:
        """Create the folder. Raises OSError; sends no request."""
        super().__init__(folder / "staging")
        self._cache, self._probed = folder / "cache", folder / "probed"
        # `parents` does not pass the mode on, and the first one may be the state folder.
        for each in (folder.parent, folder, self.staging, self._cache):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.bucket = bucket
        self._cache_bytes = cache_bytes
        self._patience = patience
        self._uploads = _Budget(upload_bytes)
        # Uploads run in threads of their own: the C library keeps a heap for each thread, so that calls from many
        # threads would keep the buffers of as many uploads.
        self._uploading = ThreadPoolExecutor(
            max(1, upload_bytes // (PART_BYTES * PARTS_AT_ONCE)), "upload"
        )
        self._connection: _Connection | None = None
        self._probing: Future[None] | None = None
        self._probing_again = 0.0
        self._is_away = False  # as far as the last request knows: an outage is logged once
        self._looked = _Looked()
        self._downloads: dict[str, threading.Lock] = {}
        self._downloads_lock = threading.Lock()
        self._unchecked = cache_bytes  # bytes written since the cache was measured: at first, all

    def check_writable(self) -> None:
        """Write and delete a small object. Raises PermissionError only: a bucket that is away may be back in time."""
        try:
            self._write_and_read()
        except BlobStoreAway as error:
            if isinstance(error.__cause__, _REFUSALS):
                raise PermissionError(
                    f"the blob store {self.bucket.url} rejects this service: {_reason(error.__cause__)}"
                ) from error
        except BlobMissing:
            raise PermissionError(f"there is no bucket {self.bucket.url}") from None

    def probe(self) -> str:
        """Write, read and delete a small object, unless a process of this host did so in the last `PROBED_SECONDS`.

        Raises BlobStoreAway if that fails, and if the last success is older than twice `PROBED_SECONDS` and there is no
        response within `PROBE_SECONDS`; the next call awaits the same response. A failure is repeated to all callers
        for a second: anybody may ask for health.
        """
        known = stamp(self._probed)
        age = math.inf if known is None else abs(time.time() - known[2] / 1e9)
        if age > PROBED_SECONDS:
            too_soon = time.monotonic() < self._probing_again
            if self._probing is None or (self._probing.done() and not too_soon):
                self._probing = Future()
                # Not in an executor: its threads would delay the end of the process while the bucket hangs.
                threading.Thread(target=self._ask, args=(self._probing,), daemon=True).start()
            try:
                self._probing.result(PROBE_SECONDS)
            except TimeoutError:
                if age > 2.0 * PROBED_SECONDS:
                    raise BlobStoreAway(f"no response within {PROBE_SECONDS:g} s") from None
        return "can be written and read"

    def _ask(self, answer: Future[None]) -> None:
        failure: Exception | None = None
        try:
            self._write_and_read()
            self._probed.touch()
        except BlobMissing:
            failure = BlobStoreAway(f"there is no bucket {self.bucket.url}")
        except Exception as error:
            failure = error
        if failure is None:
            answer.set_result(None)
            return
        self._probing_again = time.monotonic() + PROBED_SECONDS / 30.0
        answer.set_exception(failure)

    def _write_and_read(self) -> None:
        """Raises BlobMissing without a bucket, and BlobStoreAway, also if another server answers in its place."""
        probe = f"staging/{uuid.uuid4().hex}"
        self._attempt(lambda store: obstore.put(store, probe, _PROBE), patience=0.0)
        found = self._attempt(lambda store: obstore.get(store, probe).bytes(), patience=0.0)
        self._attempt(lambda store: obstore.delete(store, probe), patience=0.0)
        if bytes(found) != _PROBE:
            raise BlobStoreAway("an object has other bytes than were written: is this the bucket?")

    def send(self, file: Path, key: str) -> None:
        """Upload a file, which stays where it is. The object is durable when this returns.

        Waits while other uploads of this process use the memory for uploads. An object that no transaction names is
        swept after the grace period.
        """
        self._uploading.submit(copy_context().run, self._upload, file, key).result()

    def _move_in(self, file: Path, key: str) -> None:
        self._enter_cache(file, self._cached(key), file.stat().st_size)

    def _upload(self, file: Path, key: str) -> None:
        part = max(PART_BYTES, -(-file.stat().st_size // MAX_PARTS))
        with self._uploads.taken(part * PARTS_AT_ONCE):
            self._attempt(
                lambda store: obstore.put(
                    store, key, file, chunk_size=part, max_concurrency=PARTS_AT_ONCE
                )
            )

    def fetch(self, blob: Blob) -> Path:
        """Return the cached file, downloaded if necessary, which stays for `IN_USE_SECONDS`; `pin` keeps it longer."""
        path = self._cached(blob.key)
        if self._is_cached(path, blob):
            return path
        with self._downloading(blob.key):
            if not self._is_cached(path, blob):
                self._download(blob, path)
        return path

    def pin(self, blob: Blob, folder: Path) -> Path:
        """Return a hard link: the bytes stay as long as the folder exists."""
        link = folder / blob.key.replace("/", "-")
        for _ in range(3):
            path = self.fetch(blob)
            with contextlib.suppress(FileNotFoundError):  # another process has evicted it
                link.unlink(missing_ok=True)
                os.link(path, link)
                return link
        raise BlobStoreAway("the cache is too small for what is read at the same time")

    def check(self, blob: Blob) -> None:
        """Download nothing."""
        size = self._size(blob.key)
        if size != blob.bytes:
            raise BlobDamaged(blob.key, blob.kind, f"{blob.bytes} bytes", f"{size} bytes")

    def verify(self, blob: Blob) -> None:
        """Download without storing. Raises as `fetch` does."""
        size, sha256 = self._copy(blob, lambda chunk: None)
        compare(blob, size, sha256)

    def list(self, prefix: str = "") -> Iterator[ListedBlob]:
        """Yield one page of the bucket's listing after the other."""
        listing: Any = None
        last: str | None = None

        def page(store: Any) -> Any:
            nonlocal listing
            if listing is None:
                listing = obstore.list(store, prefix=prefix or None, offset=last)
            try:
                return next(listing, None)
            except BaseException:
                listing = None  # after an error it would seem to have ended
                raise

        while (found := self._attempt(page)) is not None:
            now = datetime.now(UTC)
            for each in found:
                last = each["path"]
                if KEY_PATTERN.fullmatch(last):
                    age = (now - each["last_modified"]).total_seconds()
                    yield ListedBlob(last, each["size"], max(0.0, age))

    def delete(self, key: str) -> bool:
        """Delete from bucket and cache."""
        self._cached(key).unlink(missing_ok=True)
        try:
            self._size(key)
        except BlobMissing:
            return False
        with contextlib.suppress(BlobMissing):
            self._attempt(lambda store: obstore.delete(store, key), key)
        return True

    def write_note(self, name: str, content: bytes) -> None:
        """Raises BlobStoreAway."""
        self._attempt(lambda store: obstore.put(store, name, content))

    def read_note(self, name: str) -> bytes | None:
        """Raises BlobStoreAway."""
        try:
            return self._attempt(lambda store: obstore.get(store, name).bytes().to_bytes())
        except BlobMissing:
            return None

    def keeps_versions(self) -> bool:
        """Return True if the bytes of deleted objects remain as versions."""
        probe = f"staging/{uuid.uuid4().hex}"
        made = self._attempt(lambda store: obstore.put(store, probe, b"probe"))
        self._attempt(lambda store: obstore.delete(store, probe))
        return made["version"] is not None

    @property
    def cached_bytes(self) -> int:
        return sum(found.size for found in _scan(self._cache))

    # --- requests ---------------------------------------------------------------------------------

    def _attempt(
        self, work: Callable[[Any], Result], key: str | None = None, patience: float | None = None
    ) -> Result:
        """Repeat a request until time is up. Raises BlobMissing, or BlobStoreAway, whose cause is the last error."""
        until = time.monotonic() + (self._patience if patience is None else patience)
        delay = FIRST_DELAY
        while True:
            try:
                done = work(self._connect())
            except FileNotFoundError as error:
                raise BlobMissing(key or self.bucket.url) from error
            except _ERRORS as error:
                if not self._is_away:
                    log.warning("the blob store does not respond: %s", _reason(error))
                self._is_away = True
                if time.monotonic() + delay > until:
                    raise BlobStoreAway(_reason(error)) from error
            else:
                if self._is_away:
                    log.warning("the blob store responds again")
                self._is_away = False
                return done
            time.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            delay = min(2 * delay, LONGEST_DELAY)

    def _connect(self) -> Any:
        """Open the client again if the credentials' file has changed. Raises BadCredentials."""
        with self._looked.lock:
            now = time.monotonic()
            if self._connection is not None and now < self._looked.at + CREDENTIALS_SECONDS:
                return self._connection.store
            now_stamp = stamp(self.bucket.credentials_file)
            if self._connection is None or self._connection.stamp != now_stamp:
                self._connection = _Connection(open_bucket(self.bucket), now_stamp)
            self._looked.at = now
            return self._connection.store

    def _size(self, key: str) -> int:
        size: int = self._attempt(lambda store: obstore.head(store, key)["size"], key)
        return size

    def _range(self, key: str, start: int, end: int) -> bytes:
        found = self._attempt(
            lambda store: obstore.get_range(store, key, start=start, end=end), key
        )
        return bytes(found)

    def _copy(self, blob: Blob, write: Callable[[bytes], object]) -> tuple[int, str]:
        """Return number and SHA-256 of the bytes."""
        self.check(blob)
        digest = hashlib.sha256()
        for start in range(0, blob.bytes, RANGE_BYTES):
            chunk = self._range(blob.key, start, min(start + RANGE_BYTES, blob.bytes))
            digest.update(chunk)
            write(chunk)
        return blob.bytes, digest.hexdigest()

    # --- cache ------------------------------------------------------------------------------------

    def _cached(self, key: str) -> Path:
        """Raises ValueError for a key that leads out of the cache: a bug, because keys come from rows."""
        path = self._cache / key
        if ".." in path.parts or Path(key).is_absolute():
            raise ValueError(f"blob key must stay inside the store, got {key!r}")
        return path

    def _is_cached(self, path: Path, blob: Blob) -> bool:
        """Record the use."""
        try:
            found = path.stat()
            if found.st_size != blob.bytes:
                return False
            now = time.time()
            if not 0 <= now - found.st_atime < TOUCH_SECONDS:
                os.utime(path, (now, found.st_mtime))
        except FileNotFoundError:
            return False
        return True

    @contextlib.contextmanager
    def _downloading(self, key: str) -> Iterator[None]:
        """Let one thread at a time download a blob."""
        with self._downloads_lock:
            lock = self._downloads.setdefault(key, threading.Lock())
        with lock:
            yield
        with self._downloads_lock:
            if not lock.locked():
                self._downloads.pop(key, None)

    def _download(self, blob: Blob, path: Path) -> None:
        """Raises BlobDamaged for other bytes than in the catalogue."""
        fresh = self.staging / uuid.uuid4().hex
        try:
            with fresh.open("xb") as file:
                size, sha256 = self._copy(blob, file.write)
                file.flush()
                os.fsync(file.fileno())  # a power cut must not leave a file of the right size
            compare(blob, size, sha256)
            self._enter_cache(fresh, path, size)
        finally:
            fresh.unlink(missing_ok=True)

    def _enter_cache(self, file: Path, path: Path, size: int) -> None:
        """Move a finished file to its place, and evict others."""
        path.parent.mkdir(parents=True, exist_ok=True)
        now = time.time()
        os.utime(file, (now, now))
        os.replace(file, path)
        self._unchecked += size
        if self._unchecked >= self._cache_bytes // 16:
            self._unchecked = 0
            self._evict()

    def _evict(self) -> None:
        """Delete the least recently used files over `cache_bytes`, except those in use."""
        files = sorted(_scan(self._cache))
        too_many = sum(found.size for found in files) - self._cache_bytes
        newest = time.time() - IN_USE_SECONDS
        for found in files:
            if too_many <= 0 or found.used_at > newest:
                break
            found.path.unlink(missing_ok=True)
            too_many -= found.size


class _CachedFile(NamedTuple):
    """Files sort by their last use."""

    used_at: float
    size: int
    path: Path


def _scan(folder: Path) -> Iterator[_CachedFile]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            with contextlib.suppress(FileNotFoundError):
                found = path.stat()
                yield _CachedFile(found.st_atime, found.st_size, path)


NO_PROXY_THERE = "http://127.0.0.1:0"
"""A proxy that nothing can connect to."""
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def open_bucket(bucket: Bucket, *, follows: bool = True) -> Any:
    """Return obstore's client of a bucket. Raises BadCredentials.

    Without `follows`, no redirection to another host than the endpoint's is followed. Obstore has no option for it: all
    hosts but the endpoint's get a proxy that does not exist. This is not possible for a bucket whose credentials come
    from another host, that of the cloud provider, and not needed where a proxy of the operator decides which hosts are
    reached.
    """
    scheme = urlsplit(bucket.url).scheme
    options = options_of(scheme, bucket.credentials_file)
    if bucket.endpoint is not None:
        options["endpoint"] = bucket.endpoint
    if scheme == "s3":
        options.setdefault("region", os.environ.get("AWS_REGION", "us-east-1"))
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=5),
        "timeout": timedelta(seconds=REQUEST_SECONDS),
        "allow_http": urlsplit(bucket.endpoint or "").scheme == "http",
    }
    is_alone = bucket.endpoint is not None and bucket.credentials_file is not None
    if (
        not follows
        and is_alone
        and not any(os.environ.get(name.upper()) or os.environ.get(name) for name in _PROXIES)
    ):
        client["proxy_url"] = NO_PROXY_THERE
        client["proxy_excludes"] = urlsplit(bucket.endpoint or "").hostname or ""
    if bucket.ca_file is not None:
        try:
            client["root_certificate"] = bucket.ca_file.read_bytes()
        except OSError as error:
            raise BadCredentials(
                f"the file {bucket.ca_file} cannot be read: {error.strerror}"
            ) from None
    retry: RetryConfig = {  # of one request; `_attempt` has the patience
        "max_retries": 2,
        "backoff": {"init_backoff": timedelta(milliseconds=100)},
        "retry_timeout": timedelta(seconds=REQUEST_SECONDS),
    }
    config = cast("S3Config", options)  # or another, as the scheme asks
    try:
        return from_url(bucket.url, config=config, client_options=client, retry_config=retry)
    except exceptions.BaseError as error:
        raise BadCredentials(f"{bucket.url} cannot be opened: {_reason(error)}") from error


_REFUSALS = (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, BadCredentials)
_ERRORS = (exceptions.BaseError, OSError, BadCredentials)


_CAUSES = re.compile(
    r'(InvalidCertificate)\(\s*(?:\w+\(\s*)*(\w+)|"(dns error)"|message: "([^"]+)"'
)


def _reason(error: BaseException) -> str:
    """Return the first line of the message, and the cause from the debug output of Rust that follows it."""
    first, _, rest = str(error).strip().partition("\n")
    found = _CAUSES.search(rest)
    cause = "" if found is None else ": " + " ".join(part for part in found.groups() if part)
    return first[:500] + cause[:200]


def stamp(file: Path | None) -> tuple[int, int, int] | None:
    """Return what differs if the file was replaced or changed."""
    if file is None:
        return None
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
