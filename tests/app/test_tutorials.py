"""The tutorials run as they are written, and print what they say.

`python -m tests.app.test_tutorials` writes into them what they print, at the service that RANKWRIGHT_URL names.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.live_service import Service

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


def outputs(text: str) -> list[tuple[str, str | None]]:
    """Run the blocks of a tutorial one after the other; return what each printed, and what the page says."""
    names: dict[str, object] = {"__name__": "__main__"}
    found = []
    for block in BLOCK.finditer(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(block[1], "tutorial", "exec"), names)
        found.append((printed.getvalue(), block[2]))
    return found


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_prints_what_it_says(
    path: Path,
    start: Callable[..., Service],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = start()
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with service.at_work():
        found = outputs(path.read_text(encoding="utf-8"))
    assert len(found) > 1
    assert [printed for printed, _ in found] == [said or "" for _, said in found]


def write() -> None:
    """Write into the tutorials what they print at the service of the environment."""
    for path in TUTORIALS:
        text = path.read_text(encoding="utf-8")
        printed = iter([each for each, _ in outputs(text)])

        def fill(block: re.Match[str]) -> str:
            shown = next(printed)  # noqa: B023  # it is called here
            told = f"\n```text\n{shown}```\n" if shown else ""
            return f"```python\n{block[1]}```\n{told}"

        path.write_text(BLOCK.sub(fill, text), encoding="utf-8")


if __name__ == "__main__":
    os.chdir(ROOT)
    write()
