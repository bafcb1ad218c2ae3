"""A plugin that prints the 25 slowest files of a run, and divides the files among the processes of xdist.

Each process collects and runs its own files only (`--dist each`): to collect all of them takes twenty seconds and
845 MB in each. The files of a whole run are divided in the order of their paths, so that a process imports few of the
large libraries, by the seconds of tests/durations.txt, which `pytest --record-durations` of all tests writes anew.
Tests that are named are dealt out in their order.

CPU seconds are those of the process that runs the tests and of the children that have ended: a file may pay for what
another has started.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

DURATIONS = Path(__file__).with_name("durations.txt")
SHOWN = 25
UNKNOWN = 0.5
"""Seconds that a file takes which is not recorded, or some tests of a file that are named."""


class Duration(NamedTuple):
    """Seconds and number of the tests of a file."""

    seconds: float
    tests: int


def _spent() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def recorded() -> dict[str, Duration]:
    """Return what was recorded of each file."""
    lines = DURATIONS.read_text().splitlines() if DURATIONS.exists() else []
    words = (line.split() for line in lines)
    return {file: Duration(float(seconds), int(tests)) for seconds, tests, file in words}


def quickest(n_tests: int) -> list[str]:
    """Return the files with the quickest tests, as many as have `n_tests` together."""
    files, found = [], 0
    for file, each in sorted(recorded().items(), key=lambda one: one[1].seconds / one[1].tests):
        if found < n_tests:
            files.append(file)
            found += each.tests
    return files


def share(args: list[str], root: Path, process: int, n_processes: int) -> list[str]:
    """Return those of the arguments of pytest, files or tests of files, that one of some processes runs."""
    parts: defaultdict[str, list[str]] = defaultdict(list)
    for arg in args:
        path = (root / arg.partition("::")[0]).resolve()
        for each in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            parts[os.path.relpath(each, root)].append(str(each) if path.is_dir() else arg)
    known, loads = recorded(), [0.0] * n_processes
    seconds = {
        file: known[file].seconds if file in known and "::" not in names[0] else UNKNOWN
        for file, names in parts.items()
    }
    whole, mine = not any("::" in arg or arg.endswith(".py") for arg in args), []
    for file, names in parts.items():
        if whole:
            middle = (sum(loads) + seconds[file] / 2) / sum(seconds.values())
            chosen = int(middle * n_processes)
        else:
            chosen = loads.index(min(loads))
        loads[chosen] += seconds[file]
        mine += names if chosen == process else []
    return mine


class Durations:
    """Measures the files of a run; registered by tests/conftest.py."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._before = config, 0.0
        self._cpu: defaultdict[str, float] = defaultdict(float)
        self._wall: defaultdict[str, float] = defaultdict(float)
        self._tests: Counter[str] = Counter()
        self._memory: dict[str, int] = {}
        self._collected = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Count the tests of all processes, of which xdist shows the progress."""
        self._collected += len(ids)

    def pytest_collection_finish(self) -> None:
        """Leave out what it took to find the tests."""
        self._before = _spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note after each phase of a test what it took, and the largest memory of its process."""
        report = yield
        now = _spent()
        report.user_properties.append(("cpu", round(now - self._before, 3)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        report.user_properties.append(("peak", f"{os.getpid()} {peak}"))
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up, also what the processes of xdist report."""
        if self._collected:
            self._config.pluginmanager.get_plugin("session").testscollected = self._collected
        file = report.nodeid.partition("::")[0]
        found = dict(report.user_properties)
        self._wall[file] += report.duration
        self._cpu[file] += float(str(found.get("cpu", 0.0)))
        self._tests[file] += report.when == "setup"
        if "peak" in found:
            process, peak = str(found["peak"]).split()
            self._memory[process] = int(peak)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slowest files, and record all if asked to."""
        cpu, wall = sum(self._cpu.values()), sum(self._wall.values())
        memory = ", ".join(f"{peak >> 10}" for peak in self._memory.values())
        terminalreporter.section(
            f"slowest files: of {wall:.0f} s, {cpu:.0f} s of CPU; MiB of the processes: {memory}"
        )
        slowest = sorted(self._wall.items(), key=lambda one: -one[1])
        for file, seconds in slowest[:SHOWN]:
            count = self._tests[file]
            terminalreporter.write_line(
                f"{seconds:6.1f} s {self._cpu[file]:6.1f} s of CPU {count:4} tests  {file}"
            )
        if self._config.getoption("record_durations"):
            DURATIONS.write_text(
                "".join(
                    f"{self._wall[file]:.1f} {self._tests[file]} {file}\n"
                    for file in sorted(self._wall)
                )
            )
