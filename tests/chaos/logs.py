"""What the processes have logged: faults that fired, worker ids with their processes, and unexpected errors."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

_FIRED = re.compile(r"failpoint (\w+): (\w+)")
_WORKER = re.compile(r"worker (wrk_\w+) starts")
_EXPECTED = ("FailpointError", "failpoint ", "killed by SIGKILL")


class Firing(NamedTuple):
    """A fault that happened: where, what, in which process, and when."""

    point: str
    action: str
    pid: int
    at: float


class Logs:
    """Reads a folder of logs as they grow."""

    def __init__(self, folder: Path) -> None:
        self.firings: list[Firing] = []
        self.workers: dict[int, str] = {}
        self.errors: Counter[str] = Counter()
        self._folder = folder
        self._read_to: dict[Path, int] = {}

    def read(self) -> list[Firing]:
        """Read on; return the new faults."""
        before = len(self.firings)
        for path in sorted(self._folder.glob("*.log")):
            if path.stat().st_size == self._read_to.get(path, 0):
                continue  # most of a long run's processes write no more
            with path.open("rb") as file:
                file.seek(self._read_to.get(path, 0))
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read_to[path] = self._read_to.get(path, 0) + len(whole)
            for line in whole.splitlines():
                self._take(line)
        return self.firings[before:]

    def fired(self) -> Counter[str]:
        """Return how many faults each failpoint has had."""
        return Counter(firing.point for firing in self.firings)

    def _take(self, line: bytes) -> None:
        try:
            said = json.loads(line)
            message, pid = said["message"], said["pid"]
        except (ValueError, KeyError, TypeError):
            return  # what `serve` says to people, and what servers say
        if (found := _FIRED.fullmatch(message)) is not None:
            at = datetime.fromisoformat(said["time"]).timestamp()
            self.firings.append(Firing(found[1], found[2], pid, at))
        elif (found := _WORKER.match(message)) is not None:
            self.workers[pid] = found[1]
        elif said["level"] in {"ERROR", "CRITICAL"}:
            trace = str(said.get("exception", ""))
            if not any(word in message + trace for word in _EXPECTED):
                last = trace.strip().splitlines()[-1:] or [""]
                self.errors[
                    f"{said['logger']}: {re.sub(r'[0-9a-f]{16,}', '…', message)} {last[0]}"
                ] += 1
