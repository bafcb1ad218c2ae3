"""One `serve` a state folder: an advisory lock that the kernel drops with its holder, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunning(Exception):
    """Another `rankwright serve` holds the folder."""


@contextmanager
def state_lock(state_dir: Path) -> Iterator[None]:
    """Hold the folder for this process. Raises `AlreadyRunning`, naming the holder's pid."""
    # Children never inherit the descriptor (PEP 446), so none of them can outlive us as a holder.
    descriptor = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode().strip() or "unknown"
            raise AlreadyRunning(
                f"rankwright serve (pid {holder}) is already running on {state_dir}"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)
