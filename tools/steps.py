"""Run targets of the Makefile at the same time, and print what each took: `python -m tools.steps lint tests`.

With `--stop`, the first target that fails ends the others. CPU seconds are those of all processes that a target has
started and waited for. The reference loop is the same work on every machine: divide by its seconds to compare two.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import NamedTuple

LOOPS = 5_000_000


class Step(NamedTuple):
    """A target that has ended, its exit code and what it took."""

    target: str
    code: int
    wall: float
    cpu: float


def run(targets: list[str], *, stop: bool) -> list[Step]:
    """Run the targets, each in a process group of its own, and return them as they ended."""
    begun = time.monotonic()
    command = ["make", "--no-print-directory"]
    running = {
        subprocess.Popen([*command, target], process_group=0).pid: target for target in targets
    }
    ended = []
    try:
        while running:
            pid, status, used = os.wait4(-1, 0)
            target = running.pop(pid)
            code = os.waitstatus_to_exitcode(status)
            ended.append(
                Step(target, code, time.monotonic() - begun, used.ru_utime + used.ru_stime)
            )
            if code and stop:
                break
    finally:  # also after Ctrl-C
        for pid in running:
            os.killpg(pid, signal.SIGTERM)
        for pid in running:
            os.waitpid(pid, 0)
    return ended


def reference_seconds() -> float:
    """Return the CPU seconds of the reference loop; the shortest of three, since other programs disturb it."""

    def once() -> float:
        begun, total = time.process_time(), 0
        for i in range(LOOPS):
            total += i * i
        return time.process_time() - begun

    return min(once() for _ in range(3))


def main(words: list[str]) -> int:
    """Run the targets and return the exit code: 1 if one failed."""
    stop = "--stop" in words
    ended = run([word for word in words if word != "--stop"], stop=stop)
    wall, cpu = max(step.wall for step in ended), sum(step.cpu for step in ended)
    print(f"\n{'':12}{'seconds':>8}{'CPU':>8}")
    for step in ended:
        result = "" if step.code == 0 else f"  FAILED ({step.code})"
        print(f"{step.target:12}{step.wall:8.0f}{step.cpu:8.0f}{result}")
    cores = f"{cpu / wall:.2f} of {os.cpu_count()} cores busy" if wall else ""
    print(f"{'all':12}{wall:8.0f}{cpu:8.0f}  {cores}; reference loop: {reference_seconds():.2f} s")
    return int(any(step.code for step in ended))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
