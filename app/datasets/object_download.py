"""Download of objects from a store to files, without a mixture of versions.

Every range is read with the ETag of the first look (If-Match), so a file never has parts of two versions of an object.
Only `object_source` imports this module, when a worker reads such a source: no other process loads obstore for it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import obstore
import pyarrow as pa
from obstore import exceptions

from app.datasets.sources import MAX_OBJECTS, MAX_URL_LENGTH, FetchedFile, FetchedRows
from app.datasets.table_folders import (
    ICEBERG_DATA,
    METADATA,
    Partition,
    add_columns,
    is_partition,
    lake_format,
    lake_rule,
    partition_of,
    partition_types,
)
from app.ingest.formats import PARQUET, SUFFIXES, type_of_file
from app.jobs.fetching import Fetching, FetchStopped, SourceError
from app.platform.bucket_credentials import BadCredentials
from app.platform.connections import Connection
from app.platform.documents import SourceFile
from app.platform.errors import shown
from app.platform.object_store import open_bucket, stamp

if TYPE_CHECKING:
    from obstore import ObjectMeta

log = logging.getLogger(__name__)
Result = TypeVar("Result")

RANGE_BYTES = 8 << 20
"""Bytes of one request, so that a lost connection costs no more than these."""
RANGES_AT_ONCE = 4
PATIENCE_SECONDS = 300.0
"""How long a request is repeated while the store is away."""
FIRST_DELAY, LONGEST_DELAY = 0.2, 5.0
"""Seconds between two attempts: from, and up to."""
MAX_STATE_LENGTH = 2_000
"""Characters of an ETag and a version, which the dataset keeps."""
_STATUS = re.compile(r"returned non-2xx status code: (\d{3})\b")
_AGAIN = (408, 409, 425, 429)
"""Client errors of HTTP that may be gone when the request is repeated."""
_FORBIDDEN = (401, 403)
_UNSUPPORTED = (
    NotImplementedError,
    exceptions.NotModifiedError,
    exceptions.NotSupportedError,
    exceptions.InvalidPathError,
)
_NO_S3 = (
    "redirect without LOCATION",
    "non-partial response",
    "Content-Range header",
    "Got invalid list response",
)
"""Texts in errors of obstore for responses that no store of its API gives, in which it has no status."""
_IGNORED = ("_", ".")
"""First characters of names of objects that are no tables, such as Spark's `_SUCCESS`."""


async def fetch(connection: Connection, url: str, folder: Path, fetching: Fetching) -> FetchedRows:
    """Download until the worker stops the step or its time is up. Raises SourceError, and FetchStopped."""
    store = _Store(connection, fetching)
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    read_at = time.time()
    try:
        with fetching.on_stop(lambda: loop.call_soon_threadsafe(task.cancel)):
            async with asyncio.timeout(fetching.seconds_left):
                found = await _download_all(store, url, folder, fetching)
    except asyncio.CancelledError:
        fetching.check()
        raise FetchStopped from None
    except TimeoutError:
        fetching.check()  # raises the named error: the time is up
        raise
    found["found"]["read_at"] = read_at
    return found


def probe(connection: Connection) -> str | None:
    """Return why the objects cannot be listed, without the query of a URL; None if they can."""
    try:
        client = open_bucket(connection.bucket, follows=False)
        next(iter(obstore.list(client, chunk_size=1)), None)
    except (exceptions.BaseError, OSError, BadCredentials) as error:
        return _reason(error)
    return None


def _reason(error: BaseException) -> str:
    """Return the first line without the query of a URL, which may have a signature."""
    return re.sub(r"\?\S*", "?…", str(error).strip().partition("\n")[0][:500])


def _status_of(error: BaseException) -> int | None:
    """Return the status, which obstore has only in messages; None if there was no complete response."""
    found = _STATUS.search(str(error)[:4_000])
    return None if found is None else int(found[1])


def _is_lasting(error: BaseException) -> bool:
    """Return True if repeating the request does not help: a refusal, another region, or a missing part of the API."""
    status = _status_of(error)
    if status is not None:
        return (status < 500 and status not in _AGAIN) or status == 501
    return isinstance(error, _UNSUPPORTED) or any(text in str(error)[:4_000] for text in _NO_S3)


async def _download_all(store: _Store, url: str, folder: Path, fetching: Fetching) -> FetchedRows:
    is_prefix = url.endswith("/")
    listed = await store.list(url) if is_prefix else [await store.head(url)]
    total = sum(meta["size"] for meta in listed)
    fetching.check_size(total, total)
    files: list[FetchedFile] = []
    objects: list[SourceFile] = []
    done = 0
    for number, each in enumerate(listed, start=1):
        # A listing has no version, and in Azure another notation of the ETag.
        meta = await store.head(store.url_of(each["path"]), is_known=True) if is_prefix else each
        name = meta["path"].rpartition("/")[2]
        content_type, encoding = type_of_file(name)
        file = folder / f"source-{number}"
        with file.open("xb") as opened:
            sha256 = await store.download(
                meta, opened, lambda size: fetching.report(size, total), done
            )
        done += meta["size"]
        files.append(
            {
                "file": file.name,
                "name": meta["path"],
                "content_type": content_type,
                "content_encoding": encoding,
                "bytes": meta["size"],
                "sha256": sha256,
            }
        )
        objects.append(
            {
                "url": store.url_of(meta["path"]),
                "etag": meta["e_tag"],
                "version": meta["version"],
                "bytes": meta["size"],
                "sha256": sha256,
            }
        )
    if is_prefix:
        top = store.path_of(url)
        _add_partitions(
            files, [partition_of(each["name"].removeprefix(top)) for each in files], folder
        )
    return {"files": files, "found": {"files": len(files), "bytes": done, "objects": objects}}


def _add_partitions(
    files: Sequence[FetchedFile], partitions: Sequence[Partition], folder: Path
) -> None:
    """Write the columns of Hive partitions into the files. Raises SourceError for a format without types."""
    types = partition_types(partitions)
    if not types:
        return
    for file, partition in zip(files, partitions, strict=True):
        what = f"the folder of {shown(file['name'])} has the columns {', '.join(map(shown, types))}"
        if file["content_type"] != PARQUET or file["content_encoding"] is not None:
            raise SourceError(
                "source_not_a_table",
                f"{what} (Hive partitions), which are read only from Parquet files: write the columns into the files",
            )
        path = folder / file["file"]
        try:
            add_columns(path, partition, types)
        except (ValueError, pa.ArrowException) as error:
            raise SourceError("source_not_a_table", f"{shown(file['name'])}: {error}") from error
        file["bytes"] = path.stat().st_size
        with path.open("rb") as opened:
            file["sha256"] = hashlib.file_digest(opened, "sha256").hexdigest()


class _Store:
    """The store of a connection, with its errors by name."""

    def __init__(self, connection: Connection, fetching: Fetching) -> None:
        self._connection = connection
        self._fetching = fetching
        self._client: Any = None
        self._stamp: object = None

    def url_of(self, path: str) -> str:
        return f"{self._connection.prefix}{path}"

    def path_of(self, url: str) -> str:
        """Return the path of a URL below the prefix."""
        return url.removeprefix(self._connection.prefix).rstrip("/")

    async def head(self, url: str, *, is_known: bool = False) -> ObjectMeta:
        path = self.path_of(url)

        async def look(client: Any) -> ObjectMeta:
            return await obstore.head_async(client, path)

        meta = await self._attempt(look, url, is_known=is_known)
        if len(meta["e_tag"] or "") + len(meta["version"] or "") > MAX_STATE_LENGTH:
            raise self._error(
                "source_misconfigured",
                f"{shown(url)} has an ETag and a version of more than {MAX_STATE_LENGTH} characters",
            )
        if not meta["size"]:
            raise self._error("source_empty", f"{shown(url)} has no bytes")
        return meta

    async def list(self, url: str) -> list[ObjectMeta]:
        """Return the tables below a URL by key. Raises SourceError if there are none, too many, or other objects."""
        path = self.path_of(url)

        async def pages(client: Any) -> list[ObjectMeta]:
            found: list[ObjectMeta] = []
            above, _, last = path.rpartition("/")
            if last == ICEBERG_DATA:
                async for page in obstore.list(
                    client, prefix=f"{above}/{METADATA}" if above else METADATA
                ):
                    if (known := lake_format(each["path"] for each in page)) is not None:
                        raise self._error("source_not_a_table", f"{shown(url)} {lake_rule(known)}")
                    break
            async for page in obstore.list(client, prefix=path or None):
                if (known := lake_format(each["path"] for each in page)) is not None:
                    raise self._error("source_not_a_table", f"{shown(url)} {lake_rule(known)}")
                found += [each for each in page if self._is_table(each, path)]
                if len(found) > MAX_OBJECTS:
                    raise self._error(
                        "source_too_large",
                        f"a source can have at most {MAX_OBJECTS:,} objects; there are more below {shown(url)}",
                    )
            return found

        found = await self._attempt(pages, url)
        if not found:
            raise self._error("source_empty", f"there is no table below {shown(url)}")
        for each in found:
            if len(found_url := self.url_of(each["path"])) > MAX_URL_LENGTH:
                raise self._error(
                    "source_not_a_table",
                    f"URLs of objects can have at most {MAX_URL_LENGTH} characters, got {shown(found_url)}",
                )
            if type_of_file(each["path"])[0] is None:
                raise self._error(
                    "source_not_a_table",
                    f"all objects below {shown(url)} must be tables, with names that end in one of "
                    f"{', '.join(SUFFIXES)}, got {shown(each['path'])}",
                )
        return sorted(found, key=lambda each: each["path"])

    @staticmethod
    def _is_table(meta: ObjectMeta, prefix: str) -> bool:
        """Return False for an empty object, and for names with another use, also of a folder."""
        steps = meta["path"].removeprefix(prefix).split("/")
        return meta["size"] > 0 and not any(
            step.startswith(_IGNORED) and not is_partition(step) for step in steps
        )

    async def download(
        self, meta: ObjectMeta, file: BinaryIO, report: Callable[[int], object], before: int
    ) -> str:
        """Write an object to a file; returns its SHA-256. Raises SourceError if it has changed.

        `report` gets the bytes so far, from `before` on.
        """
        digest, size = hashlib.sha256(), meta["size"]
        pending: list[asyncio.Task[bytes]] = []
        starts = iter(range(0, size, RANGE_BYTES))
        done = before
        try:
            while True:
                while len(pending) < RANGES_AT_ONCE and (start := next(starts, None)) is not None:
                    end = min(start + RANGE_BYTES, size)
                    pending.append(asyncio.create_task(self._range(meta, start, end)))
                if not pending:
                    return digest.hexdigest()
                chunk = await pending.pop(0)
                digest.update(chunk)
                file.write(chunk)
                done += len(chunk)
                self._fetching.check_size(done)
                report(done)
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _range(self, meta: ObjectMeta, start: int, end: int) -> bytes:
        """Raises SourceError if the object has changed since `meta`."""
        path, etag = meta["path"], meta["e_tag"]

        async def get(client: Any) -> bytes:
            options: Any = {"range": (start, end)}
            if etag is not None:
                options["if_match"] = etag
            found = await obstore.get_async(client, path, options=options)
            same = ("e_tag", "size") if etag is not None else ("size", "last_modified")
            if any(found.meta[name] != meta[name] for name in same):  # type: ignore[literal-required]  # of the tuples
                raise self._changed(path)
            read = bytearray()
            async for chunk in found.stream():
                read += chunk
                if len(read) > end - start:  # a response may be endless
                    break
            if len(read) != end - start:
                raise OSError(f"{len(read)} bytes of {end - start}")
            return bytes(read)

        return await self._attempt(get, self.url_of(path), is_known=True)

    async def _attempt(
        self,
        work: Callable[[Any], Awaitable[Result]],
        url: str,
        *,
        is_known: bool = False,
    ) -> Result:
        """Repeat a request while the store is away. `is_known`: the object was there. Raises SourceError."""
        until = time.monotonic() + min(PATIENCE_SECONDS, self._fetching.seconds_left)
        delay = FIRST_DELAY
        while True:
            self._fetching.check()
            try:
                return await work(self._connect())
            except (FileNotFoundError, exceptions.NotFoundError):
                if is_known:
                    raise self._changed(url) from None
                raise self._error("source_not_found", f"there is no object {shown(url)}") from None
            except exceptions.PreconditionError:
                raise self._changed(url) from None
            except (
                PermissionError,
                exceptions.PermissionDeniedError,
                exceptions.UnauthenticatedError,
                BadCredentials,
            ) as error:
                if self._has_new_credentials():
                    continue
                self._log(error)
                raise self._error(
                    "source_forbidden", f"the store rejects this service for {shown(url)}"
                ) from None
            except (exceptions.BaseError, OSError, NotImplementedError) as error:
                if _is_lasting(error):
                    if self._has_new_credentials():
                        continue
                    self._log(error)
                    raise self._refusal(error, url) from None
                if time.monotonic() + delay > until:
                    self._log(error)
                    raise self._error("source_unreachable", "the store does not respond") from None
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            delay = min(2 * delay, LONGEST_DELAY)

    def _connect(self) -> Any:
        """Return the client. Raises BadCredentials."""
        if self._client is None:
            self._stamp = self._look()
            self._client = open_bucket(self._connection.bucket, follows=False)
        return self._client

    def _has_new_credentials(self) -> bool:
        """Read the file again if it has changed."""
        if self._look() == self._stamp:
            return False
        self._client = None
        return True

    def _look(self) -> object:
        return stamp(self._connection.credentials_file)

    def _log(self, error: BaseException) -> None:
        name = self._connection.name
        log.warning("connection %s: %s: %s", name, type(error).__name__, _reason(error))

    def _refusal(self, error: BaseException, url: str) -> SourceError:
        """Return the error for a response that the store will give again."""
        if isinstance(error, exceptions.InvalidPathError):
            return self._error(
                "source_not_a_table",
                f"all keys below {shown(url)} must be without empty steps, the steps . and .., and control characters",
            )
        status = _status_of(error)
        if status in _FORBIDDEN:  # of a listing, for which obstore has no error of its own
            return self._error(
                "source_forbidden", f"the store rejects this service for {shown(url)}"
            )
        if status == 404:
            return self._error("source_not_found", f"the store has no bucket for {shown(url)}")
        said = "in a form that is not known" if status is None else f"with the status {status}"
        return self._error(
            "source_misconfigured",
            f"the store answers {said} for {shown(url)}; check the region, the endpoint and the bucket",
        )

    def _changed(self, what: str) -> SourceError:
        return self._error(
            "source_changed",
            f"{shown(what)} was changed or deleted while it was read: no mixture of versions is stored",
        )

    def _error(self, code: str, detail: str) -> SourceError:
        return SourceError(code, f"connection {self._connection.name}: {detail}")
