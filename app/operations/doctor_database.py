"""The database: there, of this version, sound, on time, and with a key that opens the service."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator

from sqlalchemy.exc import DBAPIError

from app.access import repository as key_rows
from app.operations import repository as rows
from app.operations.doctor_finding import Finding, fail, ok, warn
from app.platform import migrate
from app.platform.database import Database
from app.platform.settings import Settings

MOST_SKEW = 5.0


def tables(settings: Settings) -> Finding:
    """Whether the database answers, and has the tables that this code works with."""
    file = settings.database_file
    if file is not None and not file.exists():
        return fail(
            "database", f"there is no file {file}", "`rankwright serve` or `migrate` makes it"
        )
    try:
        revision = migrate.current(settings.sqlalchemy_url)
    except DBAPIError as error:
        why = str(error.orig).strip().splitlines()[0]
        return fail(
            "database", f"it does not answer: {why}", "start it, and see RANKWRIGHT_DATABASE_URL"
        )
    head = migrate.head()
    if revision is None:
        return fail("database", "it has no tables", "run `rankwright migrate`")
    if revision == head:
        return ok(
            "database", f"answers; its tables are at revision {revision}, as this version has them"
        )
    if migrate.is_known(revision):
        return fail(
            "database",
            f"its tables are at revision {revision}, this version works with {head}",
            "run `rankwright migrate`",
        )
    return fail(
        "database",
        migrate.unknown(revision),
        "run the version that made them, or a later one",
    )


def pages(db: Database) -> Iterator[Finding]:
    """Whether SQLite finds its file sound; PostgreSQL has tools of its own."""
    if db.dialect != "sqlite":
        return
    with db.read() as session:
        faults = rows.sqlite_faults(session)
    if faults:
        advice = "stop the service and restore a backup; keep the damaged folder"
        yield fail("database", f"its file is damaged: {'; '.join(faults[:3])}", advice)
    else:
        yield ok("database", "every page of its file is sound")


def clock(db: Database) -> Finding:
    """Whether database and process agree on the time. Leases go by the database's alone, but people read both."""
    before = time.time()
    with db.read() as session:
        there = rows.now(session)
    skew = there - (before + time.time()) / 2
    if abs(skew) > MOST_SKEW:
        where = "ahead of" if skew > 0 else "behind"
        detail = f"the database's is {abs(skew):.0f} s {where} this machine's"
        return warn("clock", detail, "have both machines follow a time server")
    return ok("clock", "database and machine agree")


def keys(db: Database, settings: Settings) -> Finding:
    """Whether a key opens the service, and the one in the state folder does."""
    with db.read() as session:
        usable = key_rows.count_usable(session)
    if not usable:
        return warn("keys", "no key opens the service", "make one: `rankwright keys create`")
    file = settings.state_dir.absolute() / "api-key"
    if not file.exists():
        return ok("keys", f"{usable} can be used")
    digest = hashlib.sha256(file.read_bytes().strip()).hexdigest()
    with db.read() as session:
        found = key_rows.find_usable(session, digest)
    if found is None:
        detail = f"{usable} can be used, and not the one in {file}"
        return warn("keys", detail, "remove the file, or put another key there")
    return ok("keys", f"{usable} can be used, the one in the state folder among them")
