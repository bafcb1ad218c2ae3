"""What the machine has: room on the disks that hold the state, and memory."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

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
    """Raise OutOfSpace where a blob of so many bytes would leave less than `min_free_bytes`.

    What is under way needs the rest.
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


_CGROUPS = "sys/fs/cgroup"


def total_bytes(root: Path = Path("/")) -> int | None:
    """The machine's memory, or the least limit of the cgroups that this process is in; None where no one tells."""
    found = list(_limits(root))
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((n_bytes for n_bytes in found if n_bytes > 0), default=None)


def _limits(root: Path) -> Iterator[int]:
    """What the cgroups allow: of version 2 and of version 1, each from its own up to the first.

    In a container the path may be the host's, which is not there: then its own limit is that of the first.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, name = root / _CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / _CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = PurePosixPath(path.lstrip("/"))
        for folder in (own, *own.parents):
            with contextlib.suppress(OSError, ValueError):  # absent, or "max"
                yield int((base / folder / name).read_text())
