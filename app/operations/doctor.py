"""Diagnosis of a state folder or database, whether the service runs or not: what is wrong, and what to do.

Each part is examined even if the check of another one fails.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, cast

from alembic.util import CommandError
from rich.filesize import decimal as size

from app import __version__
from app.access import repository as key_rows
from app.datasets import object_source, query_source
from app.feedback.log import FOLDER
from app.identity.provider import Provider, ProviderAway
from app.jobs import queue_repository as queue_rows
from app.jobs import repository as worker_rows
from app.jobs.fetching import SourceError
from app.operations import housekeeping, repository, seal_repository
from app.operations.audit_seals import Verified, read_head
from app.operations.audit_seals import verify as verify_audit
from app.operations.self_check import MISSED_ROUNDS
from app.platform import failpoints, migrate, resources, tracing
from app.platform.audit_keys import BadAuditKeys
from app.platform.blobs import BlobDamaged, BlobMissing, BlobStore, BlobStoreAway, ListedBlob
from app.platform.broker import BrokerAway, Producer
from app.platform.callers import Credential
from app.platform.connections import STORES, Connection, read_connections
from app.platform.database import Database, change_nothing
from app.platform.encryption import BadKeys
from app.platform.errors import ServiceError, Unavailable, counted
from app.platform.installation import Incomplete, check_files
from app.platform.issuers import read_issuers
from app.platform.roles import read_rules
from app.platform.schema import REVISION, describe_unknown, is_older, way_back
from app.platform.settings import Settings
from app.platform.sql import DBAPIError, read_clock
from app.platform.stores import REQUEST_PATIENCE, open_store
from app.platform.tables import JobState
from app.webhooks.delivery_repository import count_webhooks
from core.kernels import folders as kernel_folders

if TYPE_CHECKING:
    from app.platform.object_store import ObjectStore


class Level(StrEnum):
    """The severity of a finding. `FAIL` is an error; `WARN` may become one, or may be intended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    """A result of one check, and what to do if there is a problem."""

    part: str
    level: Level
    detail: str
    advice: str | None = None


def ok(part: str, detail: str) -> Finding:
    """No action is needed."""
    return Finding(part, Level.OK, detail)


def warn(part: str, detail: str, advice: str) -> Finding:
    """It may need attention."""
    return Finding(part, Level.WARN, detail, advice)


def fail(part: str, detail: str, advice: str) -> Finding:
    """It must be fixed."""
    return Finding(part, Level.FAIL, detail, advice)


def age(seconds: float) -> str:
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


_HEARTBEATS_PER_LEASE = 3
_ROOM = 4  # a warning is due below this multiple of the minimum free space
_PREFIX = "RANKWRIGHT_"
_OTHERS = {"RANKWRIGHT_URL", "RANKWRIGHT_API_KEY", failpoints.VARIABLE}


def check_settings(given: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check that environment variables are known and consistent."""
    known = {_PREFIX + name.upper() for name in Settings.model_fields}
    set_here = {name for name in environment if name.startswith(_PREFIX)}
    yield ok("settings", f"read; {len(set_here & known)} are set in the environment")
    for name in sorted(set_here - known - _OTHERS):
        yield warn(
            "settings",
            f"{name} is set, but no such setting exists",
            "see docs/settings.md for its name",
        )
    if environment.get(failpoints.VARIABLE):
        yield warn(
            "settings",
            f"{failpoints.VARIABLE} makes processes fail on purpose",
            "unset it; it is intended for tests",
        )
    if given.lease_seconds < _HEARTBEATS_PER_LEASE * given.heartbeat_seconds:
        yield warn(
            "settings",
            f"a lease of {given.lease_seconds:g} s expires after fewer than {_HEARTBEATS_PER_LEASE} "
            f"heartbeats of {given.heartbeat_seconds:g} s",
            "raise RANKWRIGHT_LEASE_SECONDS",
        )


def check_tracing(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Only if the environment asks for spans."""
    try:
        endpoint = tracing.read_endpoint(environment)
    except ValueError as error:
        yield fail("tracing", str(error), "see docs/tracing.md")
        return
    if endpoint is None:
        return
    if (fault := tracing.find_fault(endpoint)) is not None:
        yield warn(
            "tracing",
            f"no spans can be sent to {endpoint}: {fault}",
            "check the collector and the variables that begin with OTEL_EXPORTER_OTLP_",
        )
        return
    yield ok("tracing", f"{endpoint} accepts spans")


def check_installation() -> Finding:
    """Check that every file of the program is there."""
    try:
        check_files()
    except Incomplete as error:
        return fail("installation", str(error), "install it again")
    return ok("installation", f"version {__version__}, all files exist")


def check_folder(given: Settings) -> Iterator[Finding]:
    """The state folder must exist and be closed to other users. Yields nothing if database and blobs are elsewhere."""
    if given.database_url is not None and given.blob_url is not None:
        return
    path = given.state_dir.absolute()
    if not os.path.isdir(path):
        yield warn(
            "state folder",
            f"there is no folder {path}: the service was never started here",
            "if it was, set --state-dir or RANKWRIGHT_STATE_DIR; else `rankwright serve` creates it",
        )
        return
    found = path.stat()
    if found.st_uid != os.geteuid():
        yield warn(
            "state folder",
            f"{path} belongs to user {found.st_uid}; this is user {os.geteuid()}",
            "run the service and this command as the user who owns it",
        )
    elif stat.S_IMODE(found.st_mode) & 0o077:
        yield warn("state folder", f"other users can read the folder {path}", f"chmod 700 {path}")
    else:
        yield ok("state folder", str(path))
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield fail(
            "state folder",
            f"user {os.geteuid()} cannot read and write {path}",
            "run the service as the user who owns it, or give the folder to this user",
        )
    key = path / "api-key"
    if os.path.exists(key) and stat.S_IMODE(key.stat().st_mode) & 0o077:
        yield warn("key file", f"other users can read {key}", f"chmod 600 {key}")


def check_kernels(settings: Settings) -> Finding:
    """Without compiled kernels in the cache, each start compiles them again."""
    found = kernel_folders.n_compiled(state_dir=settings.state_dir)
    count = (
        f"{found[0]} of {found[1]} are compiled for the version that ran last, " if found else ""
    )
    if (folder := kernel_folders.writable_folder(settings.state_dir)) is not None:
        return ok("kernels", f"{count}kept in {folder}")
    if found is not None and found[0] == found[1]:
        return ok("kernels", count.removesuffix(", "))
    tried = ", ".join(map(str, kernel_folders.folders(settings.state_dir)))
    return warn(
        "kernels",
        "compiled at each start, which takes a minute on one core, because they cannot be stored in "
        f"{tried}",
        "let this user write to one of them, or set RANKWRIGHT_KERNEL_CACHE",
    )


def check_disk(given: Settings) -> Iterator[Finding]:
    """Check the free space of the disks that the service writes to."""
    seen = set()
    for path in resources.folders(given):
        free = resources.free_bytes(path)
        if free in seen:
            continue  # the same disk
        seen.add(free)
        detail = f"{size(free)} free for {path}"
        advice = "free some space, or reduce retention: see docs/settings.md"
        if free < given.min_free_bytes:
            least = f"new data is rejected below {size(given.min_free_bytes)}"
            yield fail("disk", f"{detail}; {least}", advice)
        elif free < _ROOM * given.min_free_bytes:
            yield warn("disk", detail, advice)
        else:
            yield ok("disk", detail)


MAX_CLOCK_SKEW_SECONDS = 5.0


def check_tables(settings: Settings) -> Finding:
    file = settings.database_file
    if file is not None and not os.path.exists(file) and os.access(file.parent, os.X_OK):
        return warn(
            "database", f"there is no file {file}", "`rankwright serve` or `migrate` creates it"
        )
    try:
        revision = migrate.current(settings.sqlalchemy_url)
        other = migrate.other_build(settings.sqlalchemy_url) if revision == REVISION else None
        migrate.head()  # reads them all
    except ServiceError as error:
        advice = "correct the login, the file's owner and mode, or the encoding; see RANKWRIGHT_DATABASE_URL"
        return fail("database", str(error), advice)
    except DBAPIError as error:
        why = str(error.orig).strip().splitlines()[0]
        return fail(
            "database", f"it does not respond: {why}", "start it, and see RANKWRIGHT_DATABASE_URL"
        )
    except CommandError as error:
        return fail("database", f"its migrations cannot be read: {error}", "install them again")
    if revision is None:
        return warn("database", "it has no tables", "run `rankwright migrate`")
    if other is not None:
        return fail("database", f"its {other}", way_back(REVISION))
    if revision == REVISION:
        return ok(
            "database",
            f"responds; its tables are at revision {revision}, which this version uses",
        )
    if is_older(revision):
        return fail(
            "database",
            f"its tables are at revision {revision}, but rankwright {__version__} needs {REVISION}",
            "run `rankwright migrate`",
        )
    return fail("database", f"its {describe_unknown(revision)}", way_back(revision))


def check_changes(db: Database) -> Finding:
    """Check that the database accepts changes."""
    try:
        db.writing(change_nothing)
    except ServiceError as error:
        advice = (
            "check who owns the file, and which process locks it"
            if db.dialect == "sqlite"
            else "name the primary server in RANKWRIGHT_DATABASE_URL"
        )
        return fail("database", str(error), advice)
    return ok("database", "takes changes")


def check_pages(db: Database) -> Iterator[Finding]:
    """PostgreSQL has its own tools for that."""
    if db.dialect != "sqlite":
        return
    with db.read() as session:
        errors = repository.sqlite_errors(session)
    if errors:
        advice = "stop the service and restore a backup; keep the damaged folder"
        yield fail("database", f"its file is damaged: {'; '.join(errors[:3])}", advice)
    else:
        yield ok("database", "all pages of its file are intact")


def check_clock(db: Database) -> Finding:
    """Leases use only the database's clock, but people read both."""
    before = time.time()
    with db.read() as session:
        there = read_clock(session)
    skew = there - (before + time.time()) / 2
    if abs(skew) > MAX_CLOCK_SKEW_SECONDS:
        where = "ahead of" if skew > 0 else "behind"
        detail = f"the database clock is {abs(skew):.0f} s {where} this machine's"
        return warn("clock", detail, "synchronise both machines with a time server")
    return ok("clock", "database and machine agree")


def check_keys(db: Database, settings: Settings) -> Finding:
    """Check that there is a key, and that the key in the state folder works."""
    with db.read() as session:
        usable = key_rows.count_usable(session)
    if not usable:
        return warn("keys", "there is no valid key", "create one: `rankwright keys create`")
    valid = counted(usable, "is valid", "are valid")
    file = settings.state_dir.absolute() / "api-key"
    try:
        secret = file.read_bytes().strip()
    except FileNotFoundError:
        return ok("keys", valid)
    except OSError as error:
        return warn("keys", f"{file} cannot be read: {error.strerror}", "check its owner")
    with db.read() as session:
        found = key_rows.find_caller(session, Credential.of("key", secret))
    if found is None:
        detail = f"{valid}, but the key in {file} is not"
        return warn("keys", detail, "remove the file, or put another key there")
    return ok("keys", f"{valid}, including the one in the state folder")


_SHOWN = 5
_SEALS = 1_000
_KEYS_PER_QUERY = 500
# grace periods; the sweeper runs 24 times in one, so a file this old should be gone
_OVERDUE = 1.25


def check_audit(
    db: Database, settings: Settings, *, runs: bool | None, deep: bool
) -> Iterator[Finding]:
    """Check all seals with `deep`, else the newest."""
    try:
        keys = settings.read_audit_keys()
    except BadAuditKeys as error:
        yield fail("audit log", str(error), "correct the file of RANKWRIGHT_AUDIT_KEY_FILE")
        return
    if keys.newest is None:
        with db.read() as session:
            is_sealed = seal_repository.head_of(session) is not None
        if is_sealed:
            detail = "sealed, but not verified: RANKWRIGHT_AUDIT_KEY_FILE is not set here"
            yield warn("audit log", detail, "run `rankwright audit verify` where it is set")
            return
        detail = "not sealed, so changes of it in the database cannot be detected"
        yield warn("audit log", detail, "set RANKWRIGHT_AUDIT_KEY_FILE: see docs/siem.md")
        return
    try:
        noted = read_head(open_store(settings, REQUEST_PATIENCE), keys)
    except (OSError, ServiceError):  # reported by the check of the blobs
        noted = None
    found, flawless = Verified(), True
    for flaw in verify_audit(
        db,
        keys,
        found,
        recorded=[("the note beside the blobs", noted)],
        newest_seals=None if deep else _SEALS,
    ):
        if flaw.kind == "not_sealed":
            if runs is not False:
                advice = "check that the dispatcher runs, and read its log"
                yield fail("audit log", flaw.detail, advice)
                flawless = False
            continue
        flawless = False
        yield fail("audit log", flaw.detail, "see docs/siem.md, Seals")
    if flawless:
        how = "all" if deep else "the newest (--deep checks all)"
        yield ok(
            "audit log",
            f"{counted(found.entries, 'entry', 'entries')} in {counted(found.seals, 'seal', 'seals')} verified: {how}",
        )


def check_store(db: Database, settings: Settings, *, deep: bool) -> Iterator[Finding]:
    """`deep` reads every byte."""
    advice = "check its owner and its disk"
    root = settings.blob_dir
    if settings.bucket_url is None and not os.path.isdir(root):
        detail = f"there is no folder {root}"
        yield fail(
            "blobs", detail, "mount it, or restore it from a backup: models cannot be loaded"
        )
        return
    try:
        blobs = open_store(settings, REQUEST_PATIENCE)
    except OSError as error:
        yield fail("blobs", error.strerror or str(error), advice)
        return
    try:
        blobs.staging_dir().rmdir()
    except OSError as error:
        yield fail("blobs", f"{root} cannot be written: {error.strerror}", advice)
    try:
        yield _named(db, blobs, deep=deep)
        yield _unnamed(db, blobs, settings)
    except BlobStoreAway as error:
        yield fail("blobs", str(error), _BUCKET_ADVICE)
    except OSError as error:
        yield fail("blobs", f"{error.filename or error} cannot be read: {error.strerror}", advice)


_BUCKET_ADVICE = (
    "check RANKWRIGHT_BLOB_URL, _BLOB_ENDPOINT and _BLOB_CREDENTIALS_FILE, and the network"
)


def check_bucket(settings: Settings) -> Iterator[Finding]:
    """Check writing, and what the bucket keeps of deleted objects. Needs no tables."""
    if settings.bucket_url is None:
        return
    try:
        blobs = cast("ObjectStore", open_store(settings, REQUEST_PATIENCE))
        blobs.check_writable()
        keeps_versions = blobs.keeps_versions()
    except (OSError, BlobStoreAway) as error:
        yield fail("bucket", str(error), _BUCKET_ADVICE)
        return
    yield ok(
        "bucket",
        f"{settings.bucket_url} can be read and written. Set a lifecycle rule that deletes incomplete multipart "
        "uploads: an interrupted upload leaves one, and this command cannot see it",
    )
    if keeps_versions:
        yield warn(
            "bucket",
            f"{settings.bucket_url} keeps versions of deleted objects, so deleted data remains readable there",
            "set a lifecycle rule that deletes noncurrent versions after the time that your retention allows",
        )
    used, limit = blobs.cached_bytes, settings.blob_cache_bytes
    free = resources.free_bytes(settings.blob_dir)
    detail = f"{size(used)} of {size(limit)} in {settings.blob_dir}"
    if used + free - settings.min_free_bytes < limit:
        yield warn(
            "blob cache",
            f"{detail}, whose disk has only {size(free)} free",
            "reduce RANKWRIGHT_BLOB_CACHE_BYTES, or give the cache a larger disk",
        )
    else:
        yield ok("blob cache", detail)


def _named(db: Database, blobs: BlobStore, *, deep: bool) -> Finding:
    """With `deep`, check that no blob is damaged."""
    count, missing, broken = 0, [], []
    good: set[str] = set()
    # One listing is faster than a request for each blob of a bucket.
    listed = {} if deep else {found.key: found.bytes for found in blobs.list()}
    for key, row, blob in housekeeping.named_blobs(db):
        count += 1
        if key in good:
            continue
        try:
            if blob is None:
                raise BlobMissing(key)
            if deep:
                blobs.verify(blob)
            elif key not in listed or blob.bytes not in (None, listed[key]):
                blobs.check(blob)
            good.add(key)
        except BlobMissing:
            if housekeeping.is_named(db, key):  # otherwise it was deleted meanwhile
                missing.append(row)
        except BlobDamaged:
            broken.append(row)
    advice = "restore the files from a backup, or delete the resources that need them"
    found = [
        f"{len(rows)} of {count} {what}: {_some(rows)}"
        for what, rows in (("missing", missing), ("damaged", broken))
        if rows
    ]
    if found:
        return fail("blobs", "; ".join(found), advice)
    how = "present, with correct hashes" if deep else "present (--deep checks their content)"
    return ok("blobs", f"all {count} in the database are {how}")


def _unnamed(db: Database, blobs: BlobStore, settings: Settings) -> Finding:
    """Check for blobs that the sweeper should have removed."""
    late = _OVERDUE * settings.blob_grace_seconds
    old = (found for found in blobs.list() if found.age > late)
    orphans: list[ListedBlob] = []
    # Python 3.11 has no `itertools.batched`.
    for batch in iter(lambda: tuple(islice(old, _KEYS_PER_QUERY)), ()):
        with db.read() as session:
            named = repository.named(session, [found.key for found in batch])
        orphans += [found for found in batch if found.key not in named]
    if not orphans:
        return ok("orphans", f"no blob without a row is older than {age(late)}")
    total = sum(found.bytes for found in orphans)
    many = counted(len(orphans), "blob", "blobs")
    detail = f"{many} ({size(total)}) not in the database and older than {age(late)}"
    return warn("orphans", detail, "the dispatcher removes them: check that it runs")


def _some(rows_: list[str]) -> str:
    more = f" and {len(rows_) - _SHOWN} more" if len(rows_) > _SHOWN else ""
    return ", ".join(rows_[:_SHOWN]) + more


LONG_WAIT = 3600.0
DAY = 86_400.0
LATE_DELIVERIES = 300.0
"""Seconds for which a delivery of a webhook has been due that count as late."""
_CONNECT_SECONDS = 5.0
LATE_LOG = 600.0
"""Age of a file of decisions from which on it should be in the blob store. They are stored each minute."""
LATE_COMPACTION = 2 * DAY
_OPEN = (JobState.QUEUED, JobState.RUNNING, JobState.WAITING)
_START = "start it: `rankwright serve`"


def check_broker(url: str, *, runs: bool | None) -> Finding:
    """Without the broker jobs begin a second later, but nothing is lost."""
    producer = Producer(url)
    try:
        producer.ping()
    except BrokerAway as error:
        if runs is False:
            return ok("broker", "not running, because the service is not running")
        advice = "start it: until then workers poll the database for jobs, once a second"
        return fail("broker", str(error), advice)
    finally:
        producer.close()
    return ok("broker", "answers")


def check_jobs(db: Database, settings: Settings, *, runs: bool | None) -> Iterator[Finding]:
    """Check that the queue moves, and that the dispatcher does its work."""
    late = MISSED_ROUNDS * settings.reap_seconds
    with db.read() as session:
        counts = repository.open_jobs(session)
        oldest = repository.oldest_due(session)
        leases = queue_rows.leases(session, settings.lease_seconds, late)
        stuck = len(queue_rows.stuck(session))
        alive = worker_rows.alive(session, worker_rows.MISSED_BEATS * settings.heartbeat_seconds)
        dispatchers = worker_rows.dispatchers(session)
    detail = ", ".join(f"{counts.get(state, 0)} {state}" for state in _OPEN)
    detail += "" if oldest is None else f"; the oldest has been due for {age(oldest)}"
    if oldest is not None and not alive:
        advice = _START if runs is False else "start a worker: `rankwright worker`"
        yield fail("queue", detail, advice)
    elif oldest is not None and oldest > LONG_WAIT:
        advice = "check that the running jobs make progress, or add workers"
        yield warn("queue", detail, advice)
    else:
        yield ok("queue", detail)
    advice = _START if runs is False else "check that the dispatcher runs: `rankwright dispatcher`"
    if leases:
        jobs = counted(leases, "job has had", "jobs have had")
        yield fail("leases", f"{jobs} no lease for more than {age(late)}", advice)
    if stuck:
        jobs = counted(stuck, "job waits", "jobs wait")
        yield fail("parts", f"{jobs} for parts that do not exist", advice)
    if dispatchers:
        names = ", ".join(f"{each.host} (version {each.version})" for each in dispatchers)
        yield ok("dispatcher", names)
    elif runs is False:
        yield ok("dispatcher", "none, because the service is not running")
    else:
        silence = age(worker_rows.DISPATCHER_SILENCE_SECONDS)
        yield fail("dispatcher", f"none has sent a heartbeat within {silence}", advice)


def check_decisions(db: Database, settings: Settings) -> Iterator[Finding]:
    """Check that recorded decisions reach the blob store, and are compacted."""
    now, waiting, damaged = time.time(), [], 0
    with suppress(FileNotFoundError):
        for path in (settings.state_dir / FOLDER).iterdir():
            damaged += path.suffix == ".damaged"
            if path.suffix == ".log":
                with suppress(FileNotFoundError):  # it was just stored
                    waiting.append(now - path.stat().st_mtime)
    late = [each for each in waiting if each > LATE_LOG]
    if late:
        detail = f"{counted(len(late), 'file waits', 'files wait')} to be stored, one for {age(max(late))}"
        advice = "check that `rankwright api` runs with this state folder, and read its log"
        yield warn("decisions", detail, advice)
    if damaged:
        detail = f"{counted(damaged, 'file is', 'files are')} damaged, so their decisions are lost"
        advice = f"check the disk, and delete the files .damaged in {settings.state_dir / FOLDER}"
        yield warn("decisions", detail, advice)
    with db.read() as session:
        lost = repository.lost_decisions(session, DAY)
        pending = repository.oldest_pending_decisions(session)
    if lost:
        detail = f"{counted(lost, 'decision', 'decisions')} of the last 24 hours were not recorded"
        advice = "check the space of the state folder, and whether processes were killed"
        yield warn("decisions", detail, advice)
    if pending is not None and pending > LATE_COMPACTION:
        detail = f"files of {age(pending)} ago are not compacted, so they are not listed"
        advice = "read the log of the dispatcher: housekeeping compacts them"
        yield warn("decisions", detail, advice)


def check_issuers(settings: Settings) -> Iterator[Finding]:
    """Check that identity providers answer, with usable metadata and keys."""
    if settings.oidc_file is None:
        return
    for issuer in read_issuers(settings.oidc_file):
        part = "identity"
        try:
            known = asyncio.run(Provider(issuer, settings.oidc_stale_seconds).fetch())
        except ProviderAway as error:
            advice = "check issuer in RANKWRIGHT_OIDC_FILE, the network, and the certificates of this machine"
            yield fail(part, f"{issuer.issuer}: {error.detail}", advice)
            continue
        keys = counted(len(known.keys), "key", "keys")
        use = "people sign in" if issuer.client_id else "only bearer tokens"
        yield ok(part, f"{issuer.issuer} answers with {keys}; {use}")
    if settings.roles_file is None:
        yield warn(
            "identity",
            "no group of an identity provider has a role, so nobody can use the service with a token",
            "set RANKWRIGHT_ROLES_FILE",
        )
        return
    trusted = {each.issuer for each in read_issuers(settings.oidc_file)}
    for unknown in sorted({each.issuer for each in read_rules(settings.roles_file)} - trusted):
        yield warn(
            "identity",
            f"{settings.roles_file} names the issuer {unknown}, which RANKWRIGHT_OIDC_FILE lacks",
            "correct one of them: issuers must be equal, with or without a slash at the end",
        )


def check_connections(settings: Settings) -> Iterator[Finding]:
    """Check that object stores can be listed below their prefixes, and that queries can be run."""
    if settings.connections_file is None:
        return
    for connection in read_connections(settings.connections_file).values():
        if connection.driver not in STORES:
            yield from _check_database(settings, connection)
            continue
        part = f"connection {connection.name}"
        problem = object_source.SOURCE.probe(connection)
        if problem is None:
            yield ok(part, f"objects below {connection.prefix} can be listed")
        else:
            advice = "check endpoint, credentials_file and ca_file in RANKWRIGHT_CONNECTIONS_FILE, and the network"
            yield fail(part, f"{connection.prefix}: {problem}", advice)


def _check_database(settings: Settings, connection: Connection) -> Iterator[Finding]:
    """Check each query without reading rows."""
    part = f"connection {connection.name}"
    if query_source.lacks_tls(connection):
        yield warn(
            part,
            "the URL of the database does not require TLS, so the password and the rows may be sent unencrypted",
            "add sslmode=verify-full (and sslrootcert) to the URL",
        )
    writable = None
    for name in connection.queries:
        try:
            writable = query_source.probe(settings, connection, name)
        except SourceError as error:
            yield fail(part, error.detail, f"see {error.code} in docs/errors.md")
        except Unavailable as error:
            advice = "check the URL of the database, the network, and the database"
            yield fail(part, error.detail, advice)
            return
        else:
            yield ok(part, f"the query {name} can be run")
    if writable is not None:
        yield warn(
            part,
            f"its role can change tables, such as {writable}",
            "use a role that has only SELECT on the tables of the queries",
        )


def check_webhooks(db: Database, settings: Settings) -> Iterator[Finding]:
    """Yield nothing without webhooks."""
    part = "webhooks"
    if (proxy := settings.proxy_of_webhooks) is not None:
        try:
            socket.create_connection((proxy.host, proxy.port), _CONNECT_SECONDS).close()
        except OSError as error:
            detail = f"the proxy {proxy.authority} does not accept connections: {error}"
            yield fail(part, detail, "start it, or correct RANKWRIGHT_WEBHOOK_PROXY")
    with db.read() as session:
        counts = count_webhooks(session)
    if not counts.working + counts.failing + counts.disabled:
        return
    try:
        if not settings.read_secrets_keys():
            detail = "their secrets cannot be read, so nothing is sent"
            yield fail(part, detail, "set RANKWRIGHT_SECRETS_KEYS_FILE for the dispatcher")
    except BadKeys as error:
        yield fail(part, str(error), "correct the file of RANKWRIGHT_SECRETS_KEYS_FILE")
    detail = f"{counts.working} working, {counts.failing} failing, {counts.disabled} disabled"
    if counts.late_seconds > LATE_DELIVERIES:
        late = f"{detail}; the oldest delivery has been due for {age(counts.late_seconds)}"
        yield warn(part, late, "check that the dispatcher runs, and read its log")
    elif counts.failing:
        advice = "if many fail, check DNS, the firewall and the proxy of the dispatcher"
        yield warn(part, detail, advice)
    else:
        yield ok(part, detail)


def check_workers(db: Database, settings: Settings, *, runs: bool | None) -> Finding:
    """Workers must be of this version."""
    within = worker_rows.MISSED_BEATS * settings.heartbeat_seconds
    with db.read() as session:
        alive = worker_rows.alive(session, within)
    if not alive:
        if runs is False:
            return ok("workers", "none, because the service is not running")
        detail = f"no worker has sent a heartbeat within {age(within)}"
        return fail("workers", detail, "start one: `rankwright worker`")
    names = ", ".join(
        f"{worker.host} ({worker.slots} slot{'s' * (worker.slots > 1)}, version {worker.version})"
        for worker in alive
    )
    notes = [f"{worker.host}: {worker.note}" for worker in alive if worker.note]
    if any(worker.version != __version__ for worker in alive):
        return warn(
            "workers", f"{names}; this is {__version__}", "restart the workers of another version"
        )
    if notes:
        return warn("workers", "; ".join(notes), "check that the broker and the dispatcher run")
    return ok("workers", names)


def examine(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    broker_url: str,
    runs: bool | None,
    deep: bool,
) -> Iterator[Finding]:
    """Examine everything; yield each finding as soon as it is known.

    `runs` is True if `rankwright serve` runs on this state, and None if the service was started in another way. With
    `deep` every byte is read: SQLite checks its file, and each blob's hash is computed.
    """
    yield check_installation()
    yield from check_settings(settings, environment)
    yield from check_folder(settings)
    yield check_kernels(settings)
    yield from check_disk(settings)
    yield check_broker(broker_url, runs=runs)
    yield from check_issuers(settings)
    yield from check_tracing(environment)
    yield from check_connections(settings)
    yield from check_bucket(settings)
    found = check_tables(settings)
    yield found
    if found.level != Level.OK:
        return
    db = Database(settings.sqlalchemy_url, pool_size=1)
    try:
        yield check_changes(db)
        if deep:
            yield from check_pages(db)
        yield check_clock(db)
        yield check_keys(db, settings)
        yield from check_jobs(db, settings, runs=runs)
        yield check_workers(db, settings, runs=runs)
        yield from check_decisions(db, settings)
        yield from check_webhooks(db, settings)
        yield from check_audit(db, settings, runs=runs, deep=deep)
        yield from check_store(db, settings, deep=deep)
    except (ServiceError, DBAPIError) as error:
        why = (
            str(error) if isinstance(error, ServiceError) else f"it returned an error: {error.orig}"
        )
        yield fail("database", why, "read the log of the database")
    finally:
        db.close()


__all__ = ["Finding", "Level", "examine", "size"]
