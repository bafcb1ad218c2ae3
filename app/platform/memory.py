"""How much memory this machine has, or this container."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

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
