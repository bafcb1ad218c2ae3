"""The tutorials and the notebook run as they are written, and show what they say.

`python -m tests.app.test_tutorials` writes into them what they show, at the service that RANKWRIGHT_URL names.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from app.operations.housekeeping import Housekeeper
from tests.app.live_service import Service
from tests.long_form import rest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
TUTORIALS = [*sorted((ROOT / "docs" / "tutorials").glob("*.md")), NOTEBOOK]
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
PASSING = re.compile(r"(?<=_)[0-9a-f]{32}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT[\d:.]+Z|(?<=\.\d{4})\d+")
"""What differs from run to run: ids, hashes, times, and the last digits of numbers."""


def run(sources: list[str]) -> Iterator[tuple[str, object]]:
    """Run pieces of a program one after the other; yield what each printed, and the value of its last expression."""
    names: dict[str, object] = {"__name__": "__main__"}
    for source in sources:
        body = ast.parse(source).body
        last = body[-1]
        value, printed = None, io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            if not isinstance(last, ast.Expr):
                exec(compile(ast.Module(body, []), "tutorial", "exec"), names)
            else:
                exec(compile(ast.Module(body[:-1], []), "tutorial", "exec"), names)
                value = eval(compile(ast.Expression(last.value), "tutorial", "eval"), names)
        yield printed.getvalue(), value


def as_output(number: int, printed: str, value: object) -> list[dict[str, Any]]:
    """Return the outputs of a cell as a notebook stores them."""
    found: list[dict[str, Any]] = []
    if printed:
        found.append({"name": "stdout", "output_type": "stream", "text": lines(printed)})
    if value is not None:
        with pd.option_context("display.max_columns", 20, "display.width", 80):  # as in a notebook
            text, html = repr(value), getattr(value, "_repr_html_", lambda: None)()
        data: dict[str, Any] = {"text/plain": lines(text)}
        if html is not None:
            data["text/html"] = lines(html)
        if (png := getattr(value, "_repr_png_", lambda: None)()) is not None:
            data["image/png"] = base64.b64encode(png).decode()
        output = {"data": data, "execution_count": number, "metadata": {}}
        found.append(output | {"output_type": "execute_result"})
    return found


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def told(outputs: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the text of each output without what differs from run to run, and the kinds of its display."""
    texts = [
        "".join(each.get("text", [])) + "".join(each.get("data", {}).get(kind, []))
        for each in outputs
        for kind in ("text/plain", "text/html")
    ]
    kinds = [sorted(each.get("data", {})) for each in outputs]
    return [PASSING.sub("…", text) for text in texts], kinds


def as_it_says(path: Path) -> list[tuple[object, object]]:
    """Run a tutorial; return what each of its pieces shows, and what the page says."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        blocks = [*BLOCK.finditer(text)]
        shown = run([block[1] for block in blocks])
        return [
            (printed, block[2] or "") for block, (printed, _) in zip(blocks, shown, strict=True)
        ]
    code = cells(json.loads(text))
    shown = run(["".join(cell["source"]) for cell in code])
    return [
        (told(as_output(0, *each)), told(cell["outputs"]))
        for cell, each in zip(code, shown, strict=True)
    ]


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work in a folder that has the tables where a tutorial, and a notebook in examples/, look for them."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "data").symlink_to(ROOT / "examples" / "data")
    with contextlib.chdir(folder):
        yield


@contextlib.contextmanager
def scheduling(service: Service) -> Iterator[None]:
    """Queue the scheduled tests that are due, as a dispatcher does once a minute."""
    stop = threading.Event()
    context = service.context
    keeper = Housekeeper(context.db, context.blobs, service.settings, stop)

    def schedule() -> None:
        while not stop.wait(0.5):
            keeper.schedule_tests()

    thread = threading.Thread(target=schedule)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    "path", [TUTORIALS[0], *rest(*TUTORIALS[1:-1]), TUTORIALS[-1]], ids=lambda path: path.stem
)
def test_a_tutorial_runs_and_shows_what_it_says(
    path: Path,
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RANKWRIGHT_URL", service.url)
    monkeypatch.setenv("RANKWRIGHT_API_KEY", service.key())
    with service.at_work(), scheduling(service), in_folder(tmp_path):
        found = as_it_says(path)
    assert len(found) > 1
    assert [shown for shown, _ in found] == [said for _, said in found]


def write(path: Path) -> None:
    """Write into a tutorial what it shows at the service of the environment."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        shown = run([block[1] for block in BLOCK.finditer(text)])

        def fill(block: re.Match[str]) -> str:
            printed, _ = next(shown)
            told = f"\n```text\n{printed}```\n" if printed else ""
            return f"```python\n{block[1]}```\n{told}"

        path.write_text(BLOCK.sub(fill, text), encoding="utf-8")
        return
    notebook = json.loads(text)
    code = cells(notebook)
    results = run(["".join(cell["source"]) for cell in code])
    for number, (cell, each) in enumerate(zip(code, results, strict=True), start=1):
        cell["execution_count"], cell["outputs"] = number, as_output(number, *each)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("RANKWRIGHT_STATE_DIR", str(ROOT / ".rankwright"))
    for tutorial in TUTORIALS:
        with tempfile.TemporaryDirectory() as folder, in_folder(Path(folder)):
            write(tutorial)
            for report in Path().glob(
                "*.html"
            ):  # the report that the page ends with is shown beside it
                shutil.copy(report, tutorial.with_name(f"{report.stem}-report.html"))
