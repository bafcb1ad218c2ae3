"""The README's example runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    found = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (example,) = [each for each in found if "from core" in each]  # the other needs a service
    exec(example, {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith("Interval(value=0.99")


def test_every_page_that_it_names_is_there() -> None:
    pages = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", README)
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []
