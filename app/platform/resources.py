"""Resources of the machine: free space on the disks with the state, and memory."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from app.platform.errors import OutOfSpace
from app.platform.settings import MIB, Settings

RETRY_SECONDS = 60
_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: BaseException) -> bool:
    """A quota on the disk counts, too."""
    return isinstance(error, OSError) and error.errno in _FULL


def refusal() -> OutOfSpace:
    """The disk is full."""
    return OutOfSpace("a disk of the service is full", retry_after=RETRY_SECONDS)


def folders(settings: Settings) -> list[Path]:
    """Return the folders of the blob store and of an SQLite database."""
    database = settings.database_file
    return [settings.blob_dir] if database is None else [settings.blob_dir, database.parent]


def free_bytes(folder: Path) -> int:
    """For a missing folder, that of its parent counts."""
    while not os.path.exists(folder):  # also if this user may not read it
        folder = folder.parent
    return shutil.disk_usage(folder).free


def check(settings: Settings, adds_bytes: int = 0) -> None:
    """Raise OutOfSpace if `adds_bytes` would leave less than `min_free_bytes`, which running work needs."""
    for folder in folders(settings):
        free = free_bytes(folder)
        adds = adds_bytes if folder == settings.blob_dir else 0
        if free - adds < settings.min_free_bytes:
            asked = f", and this request needs {adds} more" if adds else ""
            raise OutOfSpace(
                f"the service must keep {settings.min_free_bytes} bytes free on each disk, but one has only "
                f"{free}{asked}: no new data is accepted until space is freed",
                retry_after=RETRY_SECONDS,
            )


RESERVE = "reserve"
RESERVE_BYTES = 8 * MIB


def keep_reserve(folder: Path, spare: int = 0) -> None:
    """Reserve disk space for the next start, until `release_reserve`. At least `spare` bytes stay free.

    SQLite cannot open its file on a full disk, because it needs another file for shared memory.
    """
    path = folder / RESERVE
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        missing = min(RESERVE_BYTES - file.tell(), free_bytes(folder) - spare)
        while missing > 0:  # not zeros: some file systems store them without space
            missing -= file.write(os.urandom(min(missing, MIB)))


def release_reserve(folder: Path) -> None:
    """Only if the disk has no other free space."""
    if free_bytes(folder) < RESERVE_BYTES:
        (folder / RESERVE).unlink(missing_ok=True)


_CGROUPS = "sys/fs/cgroup"


def total_bytes(root: Path = Path("/")) -> int | None:
    """Return the machine's memory, or the smallest limit of this process's cgroups; None if neither is known."""
    found = list(_limits(root))
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((n_bytes for n_bytes in found if n_bytes > 0), default=None)


def _limits(root: Path) -> Iterator[int]:
    """Yield memory limits of the cgroups, version 1 and 2, from the process's own to the root.

    In a container the path may be the host's, which does not exist there. Then the root has the container's limit.
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
