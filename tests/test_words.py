"""The sentences of refusals and warnings, in one snapshot: tests/words.txt. `make words` writes it anew.

Other tests hold codes, values and pointers, and no sentence. To change a sentence, change it, run `make words`,
and read the difference. Each module of `PARTS` has a function `say()`, which yields pairs: the name of a case, and
its sentence.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SNAPSHOT = Path(__file__).with_name("words.txt")
PARTS = ("tests.core.words",)


def said(part: str) -> Iterator[str]:
    """Yield the lines of one part of the snapshot: `part › case: sentence`, in the order of its cases."""
    for case, sentence in importlib.import_module(part).say():
        lines = sentence.strip().replace("\n", "\n    ")
        yield f"{part} › {case}: {lines}\n"


def kept(part: str) -> list[str]:
    """Read the lines of one part from the snapshot."""
    lines = SNAPSHOT.read_text(encoding="utf-8").splitlines(keepends=True)
    found, inside = [], False
    for line in lines:
        if not line.startswith(" "):
            inside = line.startswith(f"{part} › ")
        if inside:
            found.append(line)
    return found


@pytest.mark.parametrize("part", PARTS)
def test_sentences_are_as_in_the_snapshot(part: str) -> None:
    now = "".join(said(part)).splitlines(keepends=True)
    changed = "".join(difflib.unified_diff(kept(part), now, "words.txt", "now", n=0))
    assert not changed, f"run `make words` and read the difference:\n{changed}"


def main() -> None:
    """Write the snapshot, or only the parts that are named: the others stay."""
    parts = sys.argv[1:] or PARTS
    text = "".join("".join(said(part) if part in parts else kept(part)) for part in PARTS)
    SNAPSHOT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
