"""A plugin that prints the 25 slowest files at the end of a run, and starts those that were recorded as slow first.

CPU seconds are those of the process that runs the tests and of the children that have ended: a file may pay for what
another has started. `pytest --record-durations` of all tests writes tests/slowest.txt anew.
"""

from __future__ import annotations

import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

SLOWEST = Path(__file__).with_name("slowest.txt")
SHORTEST = 3.0
"""Seconds of the shortest file that is recorded."""
SHOWN = 25


def _spent() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def recorded() -> dict[str, float]:
    """Return the recorded seconds of the slow files."""
    lines = SLOWEST.read_text().splitlines() if SLOWEST.exists() else []
    return {file: float(seconds) for seconds, file in (line.split() for line in lines)}


class Durations:
    """Measures the files of a run; registered by tests/conftest.py."""

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._before = config, 0.0
        self._cpu: defaultdict[str, float] = defaultdict(float)
        self._wall: defaultdict[str, float] = defaultdict(float)
        self._tests: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the slowest files first, so that no process of the run ends alone; in the same order in each process."""
        slow = recorded()

        def place(item: pytest.Item) -> tuple[float, str]:
            file = item.nodeid.partition("::")[0]
            return -slow.get(file, 0.0), file

        items.sort(key=place)

    def pytest_collection_finish(self) -> None:
        """Leave out what it took to find the tests."""
        self._before = _spent()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note after each phase of a test what it took."""
        report = yield
        now = _spent()
        report.user_properties.append(("cpu", round(now - self._before, 3)))
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up, also what the processes of xdist report."""
        file = report.nodeid.partition("::")[0]
        self._wall[file] += report.duration
        cpu = [value for name, value in report.user_properties if name == "cpu"]
        self._cpu[file] += float(str(cpu[-1])) if cpu else 0.0
        self._tests[file] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slowest files, and record them if asked to."""
        cpu, wall = sum(self._cpu.values()), sum(self._wall.values())
        terminalreporter.section(f"slowest files: of {wall:.0f} s, {cpu:.0f} s of CPU")
        slowest = sorted(self._wall.items(), key=lambda one: -one[1])
        for file, seconds in slowest[:SHOWN]:
            count = self._tests[file]
            terminalreporter.write_line(
                f"{seconds:6.1f} s {self._cpu[file]:6.1f} s of CPU {count:4} tests  {file}"
            )
        if self._config.getoption("record_durations"):
            lines = [f"{seconds:.0f} {file}\n" for file, seconds in slowest if seconds >= SHORTEST]
            SLOWEST.write_text("".join(lines))
