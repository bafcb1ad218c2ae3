"""Room on the disks that hold the state."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from app.platform.errors import OutOfSpace
from app.platform.settings import Settings

RETRY_SECONDS = 60
_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException) -> bool:
    """Whether a disk, or a quota on it, had no room left."""
    return isinstance(error, OSError) and error.errno in _FULL


def refusal() -> OutOfSpace:
    """What to answer where `is_full`."""
    return OutOfSpace("a disk of the service is full", retry_after=RETRY_SECONDS)


def folders(settings: Settings) -> list[Path]:
    """Where this process writes: the blob store, and the folder of an SQLite database."""
    database = settings.database_file
    return [settings.blob_dir] if database is None else [settings.blob_dir, database.parent]


def free_bytes(folder: Path) -> int:
    """Bytes that are free for this process on the folder's disk; of a folder yet to be made, on its parent's."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check(settings: Settings, adds_bytes: int = 0) -> None:
    """Raise OutOfSpace where less than `min_free_bytes` would be free beside a blob of so many bytes: what is under
    way needs the rest.
    """
    for folder in folders(settings):
        free = free_bytes(folder)
        adds = adds_bytes if folder == settings.blob_dir else 0
        if free - adds < settings.min_free_bytes:
            asked = f", and {adds} more are asked for" if adds else ""
            raise OutOfSpace(
                f"a disk of the service must keep {settings.min_free_bytes} bytes free, it has {free}{asked}: "
                "nothing new is accepted until there is room",
                retry_after=RETRY_SECONDS,
            )
