"""Settings, folders and disks."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from app.operations.doctor_finding import Finding, fail, ok, size, warn
from app.platform import failpoints as faults
from app.platform import resources as space
from app.platform.settings import Settings

_BEATS_A_LEASE = 3
_ROOM = 4  # times the least free space, below which a warning is due
_PREFIX = "RANKWRIGHT_"
_OTHERS = {"RANKWRIGHT_URL", "RANKWRIGHT_API_KEY", faults.VARIABLE}


def settings(given: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the variables that are set mean something, and go together."""
    known = {_PREFIX + name.upper() for name in Settings.model_fields}
    set_here = {name for name in environment if name.startswith(_PREFIX)}
    yield ok("settings", f"read; {len(set_here & known)} are set in the environment")
    for name in sorted(set_here - known - _OTHERS):
        yield warn(
            "settings", f"{name} is set, and means nothing", "see docs/settings.md for its name"
        )
    if environment.get(faults.VARIABLE):
        yield warn(
            "settings",
            f"{faults.VARIABLE} has processes fail on purpose",
            "unset it: it is for tests",
        )
    if given.lease_seconds < _BEATS_A_LEASE * given.heartbeat_seconds:
        yield warn(
            "settings",
            f"a lease of {given.lease_seconds:g} s is lost after fewer than {_BEATS_A_LEASE} heartbeats "
            f"of {given.heartbeat_seconds:g} s",
            "raise RANKWRIGHT_LEASE_SECONDS",
        )


def folder(given: Settings) -> Iterator[Finding]:
    """Whether the state folder is there, and ours alone; nothing where database and blobs lie elsewhere."""
    if given.database_url is not None and given.blob_url is not None:
        return
    path = given.state_dir.absolute()
    if not path.is_dir():
        yield fail(
            "state folder",
            f"there is none at {path}",
            "name it (--state-dir or RANKWRIGHT_STATE_DIR), or have `rankwright serve` make it",
        )
        return
    found = path.stat()
    if found.st_uid != os.geteuid():
        yield warn(
            "state folder",
            f"{path} belongs to user {found.st_uid}, this is user {os.geteuid()}",
            "run the service, and this command, as the user to whom it belongs",
        )
    elif stat.S_IMODE(found.st_mode) & 0o077:
        yield warn("state folder", f"others may look into {path}", f"chmod 700 {path}")
    else:
        yield ok("state folder", str(path))
    key = path / "api-key"
    if key.exists() and stat.S_IMODE(key.stat().st_mode) & 0o077:
        yield warn("key file", f"others may read {key}", f"chmod 600 {key}")


def disk(given: Settings) -> Iterator[Finding]:
    """Whether there is room where the service writes."""
    seen = set()
    for path in space.folders(given):
        free = space.free_bytes(path)
        if free in seen:
            continue  # the same disk
        seen.add(free)
        said = f"{size(free)} free for {path}"
        advice = "make room, or have less kept: docs/settings.md says how"
        if free < given.min_free_bytes:
            least = f"nothing is accepted below {size(given.min_free_bytes)}"
            yield fail("disk", f"{said}; {least}", advice)
        elif free < _ROOM * given.min_free_bytes:
            yield warn("disk", said, advice)
        else:
            yield ok("disk", said)
