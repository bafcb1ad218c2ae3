"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("Interval(value=0.99")


def test_every_page_that_it_names_is_there() -> None:
    pages = re.findall(r"\]\(([^):]+)\)", README)
    assert pages
    assert [page for page in pages if not (ROOT / page).is_file()] == []
