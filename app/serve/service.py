"""One process of the service: started under the parent-death rule, restarted when it dies, ended in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from app.platform import processes as lifeline

FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 10.0
STEADY_SECONDS = 30.0


class Service:
    """A child in a process group of its own. Start it from the main thread: the kernel binds the two."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        guardian_fd: int,
    ) -> None:
        self.name = name
        self.deaths = 0
        self._command = list(command)
        self._environment = dict(environment)
        self._pass_fds = [*pass_fds, guardian_fd]
        self._guardian_fd = guardian_fd
        self._process: subprocess.Popen[bytes] | None = None
        self._backoff = FIRST_BACKOFF
        self._started_at = 0.0
        self._start_at = 0.0

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process."""
        shim = [sys.executable, "-I", "-S", str(lifeline.__file__)]
        self._process = subprocess.Popen(
            [*shim, str(os.getpid()), str(self._guardian_fd), *self._command],
            pass_fds=self._pass_fds,
            stdin=subprocess.DEVNULL,
            env=self._environment,
            process_group=0,
        )
        self._started_at = time.monotonic()

    def tend(self) -> str | None:
        """Restart the process if it died and its pause is over. Returns how it died, once."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._start_at:
                self.start()
            return None
        if (code := self._process.poll()) is None:
            return None
        self._sweep()
        self._process = None
        self.deaths += 1
        if now - self._started_at > STEADY_SECONDS:
            self._backoff = FIRST_BACKOFF
        self._start_at = now + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)
        return _how(code)

    def seconds_to_restart(self) -> float | None:
        """How long until `tend` would restart a dead process; None while it runs."""
        return None if self._process else max(0.0, self._start_at - time.monotonic())

    def ask_to_end(self) -> None:
        """Send SIGTERM."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait_for_end(self, grace: float) -> bool:
        """Wait, then kill the whole group. True if the process ended by itself."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, grace))
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        self._sweep()
        self._process.wait()
        self._process = None
        return ended

    def _sweep(self) -> None:
        """Kill what is left of the group, the process included."""
        assert self._process is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError:
            pass  # macOS says so of a group of zombies


def _how(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
