"""The processes of a deployment, as the system shows them: found by the folder's path in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

from tests.chaos import inside

GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


class Found(NamedTuple):
    """A running process and its role."""

    pid: int
    role: str
    parent: int


def running(folder: Path) -> list[Found]:
    """Return the processes of the deployment in this folder, with its private broker."""
    mark = f"{inside.FOLDER}={folder}".encode()
    found, brokers = [], {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(*GONE):
            command = (entry / "cmdline").read_bytes()
            if b"valkey-server" in command:  # it writes its title over its environment
                brokers[int(entry.name)] = _parent(entry)
            elif b"-m" in command and mark in (entry / "environ").read_bytes().split(b"\0"):
                words = command.decode(errors="replace").split("\0")
                if (role := inside.role_of(words)) is not None and not _is_dead(entry):
                    found.append(Found(int(entry.name), role, _parent(entry)))
    serving = {process.pid for process in found if process.role == "serve"}
    found += [Found(pid, "broker", parent) for pid, parent in brokers.items() if parent in serving]
    return found


def send(pid: int, number: signal.Signals) -> bool:
    """Send a signal; return True if the process existed."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _parent(entry: Path) -> int:
    return int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1])


def _is_dead(entry: Path) -> bool:
    return (entry / "stat").read_text().rsplit(") ", 1)[1][0] in "ZX"
