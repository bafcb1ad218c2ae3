"""A plugin that ends a run with the CPU seconds of each file's tests: `make test PYTEST_ARGS="-p tools.cpu_by_file"`.

Processes that a test started count where they ended; what is shared by all, where the run ended.
"""

from __future__ import annotations

import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator

import pytest

MOST = 25


def spent() -> float:
    """CPU seconds of this process, and of those of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Meter:
    """Return the CPU time since the last reading."""

    def __init__(self) -> None:
        self._before = spent()

    def read(self) -> float:
        """CPU seconds since the last reading."""
        now = spent()
        self._before, before = now, self._before
        return now - before


METER = Meter()


def pytest_collection_finish() -> None:
    """Leave out what it took to find the tests."""
    METER.read()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell, after each phase of a test, what it took."""
    report = yield
    report.user_properties.append(("cpu", METER.read()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files that took most."""
    seconds: defaultdict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            file = report.nodeid.partition("::")[0]
            seconds[file] += sum(
                float(str(took)) for name, took in report.user_properties if name == "cpu"
            )
            tests[file] += int(report.when == "setup")
    terminalreporter.section(f"{sum(seconds.values()):.0f} CPU seconds, {tests.total()} tests")
    for file, took in sorted(seconds.items(), key=lambda one: -one[1])[:MOST]:
        terminalreporter.write_line(f"| `{file}` | {took:.0f} | {tests[file]} |")
