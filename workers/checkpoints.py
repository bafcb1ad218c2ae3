"""Checkpoints of the fit under way: made in the fit process, as files of the job's work folder.

The parent puts each into the blob store and its key into the job's row; the next attempt, in whatever worker, is given
it. A file begins with the id of its job, so that no two jobs share one, and each can be removed with its job.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

KIND = "checkpoints"

# A checkpoint is made so seldom that all of them together take at most a hundredth of the fit's time.
LEAST_PAUSE = 100.0

# The parent puts it on disk while the job's heartbeat, and a cancel, wait.
MOST_BYTES = 512 * 1024**2

Asked = Mapping[str, Any]
"""What the parent says of them in the payload: `job_id`, `resume` (a path or None) and `every` (seconds, 0: never)."""


class Keeper:
    """Makes the checkpoints of one job's fits."""

    def __init__(self, payload: Mapping[str, Any]) -> None:
        from core.checkpoint import Checkpoints

        asked: Asked = payload.get("checkpoint") or {"job_id": "", "resume": None, "every": 0.0}
        self._folder = payload.get("workdir", "")
        self.job_id: str = asked["job_id"]
        self._every: float = asked["every"]
        self._number = 0
        self._next = time.monotonic() + self._every
        self.checkpoints = Checkpoints(_read(asked["resume"], self.job_id))

    def due(self, now: float) -> bool:
        """Whether it is time for one."""
        return self._every > 0.0 and now >= self._next

    def make(self) -> dict[str, Any] | None:
        """Write a checkpoint of the fit that calls back; its file and hash, None where there is none to make.

        Nothing that goes wrong here may harm the fit.
        """
        started = time.monotonic()
        made = None
        try:
            data = self.checkpoints.take(MOST_BYTES)
            if data is not None:
                made = self._write(data)
        except (MemoryError, OSError) as error:
            log.warning("%s: no checkpoint: %r", self.job_id, error)
        now = time.monotonic()
        self._next = now + max(self._every, LEAST_PAUSE * (now - started))
        return made

    def _write(self, data: bytes) -> dict[str, Any]:
        self._number += 1
        path = Path(self._folder, f"checkpoint-{self._number}")
        label = f"{self.job_id}\n".encode()
        with path.open("wb") as file:
            file.write(label)
            file.write(data)
        return {"path": str(path), "sha256": hashlib.sha256(label + data).hexdigest()}


def _read(path: str | None, job_id: str) -> bytes | None:
    """What an earlier attempt has left; nothing where the file is gone or another job's."""
    if path is None:
        return None
    try:
        label, _, data = Path(path).read_bytes().partition(b"\n")
    except OSError as error:
        log.warning("%s begins anew, its checkpoint cannot be read: %s", job_id, error)
        return None
    return data if label.decode(errors="replace") == job_id else None
