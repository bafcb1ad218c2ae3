"""Record which lines of the program each test reaches, and how long it takes: a plugin of pytest for tools/mutate.py.

The record is a file of JSON lines, one for each test that has passed. The lines of a module are the bits of a number.
What a fixture that tests share has reached counts for each of them. What other processes reach is not seen.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = tuple(f"{ROOT / folder}/" for folder in ("app", "core", "workers", "client/rankwright"))
IMPORT = "import"
"""The name of what runs before the first test."""

Lines = dict[str, int]


@dataclass(frozen=True)
class Reach:
    """A test (or a fixture) with the lines that it reaches, by file."""

    name: str
    seconds: float
    shared_seconds: float = 0.0
    """What the fixtures took that it shares with others."""
    lines: Lines = field(default_factory=dict)

    @property
    def cost(self) -> float:
        """Seconds that it takes alone."""
        return self.seconds + self.shared_seconds


class Recorder:
    """Adds to a file as each test ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: defaultdict[str, int] = defaultdict(int)
        self._shared: dict[Any, Reach] = {}
        self._used: list[Any] = []
        self._passed = True
        self._seconds = self._seconds_shared = 0.0
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "reached")
        monitoring.register_callback(
            monitoring.COVERAGE_ID, monitoring.events.LINE, self._line_reached
        )
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)

    def _line_reached(self, code: CodeType, line: int) -> object:
        if code.co_filename.startswith(PROGRAM):
            self._lines[code.co_filename] |= 1 << line
        return sys.monitoring.DISABLE

    def _start(self) -> None:
        self._lines = defaultdict(int)
        sys.monitoring.restart_events()

    def _write(self, reach: Reach) -> None:
        reached = list(reach.lines.items())  # threads of a service may go on
        lines = {str(Path(name).relative_to(ROOT)): hex(n) for name, n in reached}
        with self._file.open("a") as file:
            print(json.dumps({**vars(reach), "lines": lines}), file=file)

    def pytest_collection_finish(self) -> None:
        """Write what importing the program reaches."""
        self._write(Reach(IMPORT, 0.0, lines=self._lines))

    def pytest_unconfigure(self) -> None:
        """Watch no longer."""
        sys.monitoring.free_tool_id(sys.monitoring.COVERAGE_ID)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Note what a fixture reaches that later tests share."""
        if fixturedef.scope == "function":
            return (yield)
        around, began = self._lines, time.perf_counter()
        self._start()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            self._seconds_shared += seconds
            self._shared[fixturedef] = Reach(fixturedef.argname, seconds, lines=self._lines)
            self._lines = around

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write what a test reaches."""
        self._passed, self._seconds, self._seconds_shared, self._used = True, 0.0, 0.0, []
        self._start()
        done = yield
        if self._passed:
            shared = [self._shared[each] for each in self._used if each in self._shared]
            for lines in [each.lines for each in shared]:
                for name, bits in list(lines.items()):
                    self._lines[name] |= bits
            own = max(self._seconds - self._seconds_shared, 0.0)
            taken = sum(each.seconds for each in shared)
            self._write(Reach(item.nodeid, round(own, 4), round(taken, 4), self._lines))
        return done

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Note which fixtures a test has used, also those that it has asked for by name."""
        self._used = [*item._request._fixture_defs.values()]  # type: ignore[attr-defined]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what the parts of a test take."""
        self._passed &= report.passed
        self._seconds += report.duration


def read(files: list[Path]) -> dict[str, Reach]:
    """Return the tests of files by name; of several records of one, the last."""
    found: dict[str, Reach] = {}
    for line in (line for file in files for line in file.read_text().splitlines()):
        words = json.loads(line)
        lines = {name: int(n, 16) for name, n in words.pop("lines").items()}
        if words["name"] == IMPORT and IMPORT in found:
            earlier = found[IMPORT].lines
            lines = {name: lines.get(name, 0) | earlier.get(name, 0) for name in lines | earlier}
        found[words["name"]] = Reach(**words, lines=lines)
    return found
