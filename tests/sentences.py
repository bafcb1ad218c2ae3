"""The sentences of refusals, warnings and notes, in one snapshot by error code: tests/sentences.txt.

Tests hold codes, values and pointers. A test hands an error, a problem document or a text to the fixture `sentences`,
which looks for its sentence in the snapshot. To change a sentence, change it, run `make sentences`, and read the
difference. A run of all tests leaves out the sentences that no test has met; a run of some tests only adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
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


WITHOUT_CODE = "text"
"""The code of a sentence that comes with none: a line of a command, a note on a page."""


def read() -> dict[str, set[str]]:
    """Read the snapshot: the sentences of each error code."""
    found: dict[str, set[str]] = {}
    code = ""
    lines = SNAPSHOT.read_text(encoding="utf-8").splitlines() if SNAPSHOT.exists() else []
    for line in lines:
        if line.startswith("    "):
            found[code].add(line[4:])
        else:
            code = line
            found[code] = set()
    return found


def write(sentences: Mapping[str, Set[str]]) -> None:
    """Write the snapshot: a line for each code, and an indented line for each of its sentences."""
    lines = []
    for code, said in sorted(sentences.items()):
        lines += [code, *("    " + sentence for sentence in sorted(said))]
    SNAPSHOT.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def code_and_text(said: object) -> tuple[str, str]:
    """Return the code and the sentence of an error, of a problem document or of one of its errors; or of a text."""
    if isinstance(said, Mapping):
        return str(said.get("code", WITHOUT_CODE)), str(said["detail"])
    if isinstance(said, BaseException):
        name = type(said).__name__  # the code of SystemExit is its message
        code = name if isinstance(said, SystemExit) else getattr(said, "code", name)
        return str(code), str(getattr(said, "detail", said))
    return WITHOUT_CODE, str(said)


class Sentences:
    """Compares the sentences of one test with the snapshot."""

    def __init__(self, kept: Mapping[str, Set[str]], folder: Path, *, compare: bool) -> None:
        self.said: dict[str, set[str]] = {}
        self._kept, self._compare, self._folder = kept, compare, str(folder)

    def __call__(self, said: object) -> None:
        """Look for an error, a problem document or a text in the snapshot."""
        code, text = code_and_text(said)
        text = text.replace(self._folder, "FOLDER")
        for drawn, name in DRAWN:
            text = drawn.sub(name, text)
        text = "\\n".join(text.splitlines())
        self.said.setdefault(code, set()).add(text)
        known = text in self._kept.get(code, ())
        assert known or not self._compare, "run `make sentences` and read the difference"

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
            self(warning(message))


@pytest.fixture
def sentences(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sentences]:
    """Compare sentences with the snapshot."""
    config = request.config
    kept = config.stash[KEPT]
    found = Sentences(kept, tmp_path, compare=not config.getoption("sentences"))
    yield found
    said = {code: sorted(texts) for code, texts in found.said.items()}
    request.node.user_properties.append((PROPERTY, said))


KEPT = pytest.StashKey[dict[str, set[str]]]()


class Snapshot:
    """The part of pytest's run that reads the snapshot, and writes it where `--sentences` says so."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.said: dict[str, set[str]] = {}
        config.stash[KEPT] = read()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the sentences of a test; from the processes of xdist, too."""
        for name, said in report.user_properties:
            if name == PROPERTY and report.when == "teardown":
                for code, texts in said.items():  # type: ignore[attr-defined]
                    self.said.setdefault(code, set()).update(texts)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the snapshot."""
        if not self.config.getoption("sentences") or hasattr(self.config, "workerinput"):
            return
        if self.config.args != self.config.getini("testpaths") or exitstatus:
            for code, kept in self.config.stash[KEPT].items():
                self.said.setdefault(code, set()).update(kept)
        write(self.said)
