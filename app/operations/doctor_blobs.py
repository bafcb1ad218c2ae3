"""The blob store: can be written, has what the rows name, and little else."""

from __future__ import annotations

from collections.abc import Iterator

from app.operations import blobs_repository as rows
from app.operations import stored
from app.operations.doctor_finding import Finding, age, fail, ok, size, warn
from app.platform.blobs import BlobStore
from app.platform.database import Database
from app.platform.settings import Settings

_SHOWN = 5
_KEYS_A_QUERY = 500
_OVERDUE = 1.25  # graces after which the sweeper, who comes 24 times a grace, must have been there


def store(db: Database, settings: Settings, *, deep: bool) -> Iterator[Finding]:
    """Look at the folder, at what rows name, and at what none does; `deep` reads every byte."""
    root = settings.blob_dir
    if not root.is_dir():
        detail = f"there is no folder {root}"
        yield fail(
            "blobs", detail, "mount it, or restore it from a backup: models cannot be loaded"
        )
        return
    blobs = BlobStore(root)
    try:
        blobs.staging_dir().rmdir()
    except OSError as error:
        yield fail(
            "blobs", f"{root} cannot be written: {error.strerror}", "see whose it is, and its disk"
        )
    yield _named(db, blobs, deep=deep)
    yield _unnamed(db, blobs, settings)


def _named(db: Database, blobs: BlobStore, *, deep: bool) -> Finding:
    """Whether what the rows name is there, and is what it was."""
    count, missing, broken = 0, [], []
    good: set[str] = set()
    for key, row in stored.each(db):
        count += 1
        if key in good:
            continue
        if not blobs.path(key).is_file():
            if stored.is_named(db, key):  # else it was deleted while we looked
                missing.append(row)
        elif deep and not blobs.is_sound(key):
            broken.append(row)
        elif deep:
            good.add(key)
    advice = "restore the files from a backup, or delete what names them"
    if missing:
        return fail("blobs", f"{len(missing)} of {count} are missing: {_some(missing)}", advice)
    if broken:
        return fail("blobs", f"{len(broken)} of {count} are damaged: {_some(broken)}", advice)
    how = "there, and hold what their names say" if deep else "there (--deep reads them)"
    return ok("blobs", f"all {count} that rows name are {how}")


def _unnamed(db: Database, blobs: BlobStore, settings: Settings) -> Finding:
    """What the sweeper has left for longer than it should."""
    late = _OVERDUE * settings.blob_grace_seconds
    old = [key for key in blobs.older_than(late) if not key.startswith("staging/")]
    orphans = []
    for start in range(0, len(old), _KEYS_A_QUERY):
        keys = old[start : start + _KEYS_A_QUERY]
        with db.read() as session:
            named = rows.named(session, keys)
        orphans += [key for key in keys if key not in named]
    if not orphans:
        return ok("orphans", f"no blob without a row is older than {age(late)}")
    total = sum(blobs.size(key) for key in orphans if blobs.path(key).is_file())
    detail = f"{len(orphans)} blobs ({size(total)}) that no row names are older than {age(late)}"
    return warn("orphans", detail, "the dispatcher removes them: see whether it runs")


def _some(rows_: list[str]) -> str:
    more = f" and {len(rows_) - _SHOWN} more" if len(rows_) > _SHOWN else ""
    return ", ".join(rows_[:_SHOWN]) + more
