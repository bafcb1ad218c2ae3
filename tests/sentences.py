"""The sentences of refusals, warnings and notes, in one snapshot: tests/sentences.txt. `make sentences` writes it anew.

Tests hold codes, values and pointers. A test hands a sentence to the fixture `sentences`, which compares it with the
snapshot. To change a sentence, change it, run `make sentences` (of whole tests, with all their cases), and read the
difference.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SNAPSHOT = Path(__file__).with_name("sentences.txt")
PROPERTY = "sentences"

# What differs from run to run.
DRAWN = (
    (re.compile(r"\b([a-z]{2,5})_[0-9a-f]{32}\b"), r"\1_ID"),
    (re.compile(r"…[0-9a-f]{4}\b"), "…ID"),  # the end of an id, as the console shows it
    (re.compile(r"\b[0-9a-f]{64}\b"), "SHA"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:PORT"),
)


def read() -> dict[str, set[str]]:
    """Read the snapshot: the sentences of each test, by its id without parameters."""
    found: dict[str, set[str]] = {}
    test = ""
    lines = SNAPSHOT.read_text(encoding="utf-8").splitlines() if SNAPSHOT.exists() else []
    for line in lines:
        if line.startswith("    "):
            found[test].add(line[4:])
        else:
            test = line
            found[test] = set()
    return found


def write(sentences: Mapping[str, Set[str]]) -> None:
    """Write the snapshot: a line for the id of each test, and an indented line for each of its sentences."""
    lines = []
    for test, said in sorted(sentences.items()):
        if said:
            lines += [test, *("    " + sentence for sentence in sorted(said))]
    SNAPSHOT.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


class Sentences:
    """Compares the sentences of one test with the snapshot."""

    def __init__(self, kept: Set[str], folder: Path, *, compare: bool) -> None:
        self.kept, self.compare, self.said = kept, compare, set[str]()
        self._folder = str(folder)

    def __call__(self, sentence: object) -> None:
        """Look for a text, or the message of an error, among the sentences of this test."""
        text = str(sentence).replace(self._folder, "FOLDER")
        for drawn, name in DRAWN:
            text = drawn.sub(name, text)
        text = "\\n".join(text.splitlines())
        self.said.add(text)
        assert not self.compare or text in self.kept, "run `make sentences` and read the difference"

    @contextmanager
    def raises(self, *errors: type[BaseException]) -> Iterator[pytest.ExceptionInfo[Any]]:
        """As `pytest.raises`; the message is compared with the snapshot."""
        with pytest.raises(errors) as raised:
            yield raised
        self(raised.value)

    @contextmanager
    def warns(self, warning: type[Warning] = UserWarning) -> Iterator[pytest.WarningsRecorder]:
        """As `pytest.warns`; the messages are compared with the snapshot, each once."""
        with pytest.warns(warning) as warned:
            yield warned
        for message in dict.fromkeys(
            str(one.message) for one in warned if issubclass(one.category, warning)
        ):
            self(message)


@pytest.fixture
def sentences(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sentences]:
    """Compare sentences with the snapshot."""
    node, config = request.node, request.config
    kept = config.stash[KEPT].get(without_parameters(node.nodeid), set())
    found = Sentences(kept, tmp_path, compare=not config.getoption("sentences"))
    yield found
    node.user_properties.append((PROPERTY, sorted(found.said)))
    parametrised = hasattr(node, "callspec")  # the snapshot has the sentences of all cases
    if found.compare and not parametrised and not failed(node):
        assert found.said == found.kept, "run `make sentences` and read the difference"


def without_parameters(test: str) -> str:
    """Return the id of a test without its parameters, so that a sentence is kept once for all cases and databases."""
    return test.partition("[")[0]


KEPT = pytest.StashKey[dict[str, set[str]]]()
FAILED = pytest.StashKey[bool]()


def failed(node: pytest.Item) -> bool:
    """Say whether the test itself has failed: then it may have said less."""
    return node.stash.get(FAILED, False)


class Snapshot:
    """The part of pytest's run that reads the snapshot, and writes it where `--sentences` says so."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.said: dict[str, set[str]] = {}
        config.stash[KEPT] = read()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note whether the test itself has failed."""
        report = yield
        if report.when == "call":
            item.stash[FAILED] = report.failed
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what a test has said; from the processes of xdist, too."""
        for name, said in report.user_properties:
            if name == PROPERTY and report.when == "teardown":
                self.said.setdefault(without_parameters(report.nodeid), set()).update(said)  # type: ignore[arg-type]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the snapshot. A run of everything leaves out the tests that are gone."""
        if not self.config.getoption("sentences") or hasattr(self.config, "workerinput"):
            return
        whole = self.config.args == self.config.getini("testpaths") and exitstatus == 0
        write(self.said if whole else self.config.stash[KEPT] | self.said)
