"""The tables of routes in docs/api.md and docs/architecture.md name the routes that the application has.

Run this file to print the table of docs/architecture.md anew.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Route

from app.main import create_app
from app.platform.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"


def test_every_route_is_documented_and_no_other(tmp_path: Path) -> None:
    described = {
        f"{method.upper()} {path}"
        for path, methods in create_app(Settings(state_dir=tmp_path)).openapi()["paths"].items()
        for method in methods
    }
    page = (DOCS / "api.md").read_text()
    documented = re.findall(r"^\| `((?:GET|POST|PUT|DELETE) [^`]+)` \|", page, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(documented) == described


def test_the_table_of_functions_is_that_of_the_application(tmp_path: Path) -> None:
    written = (DOCS / "architecture.md").read_text().splitlines()
    expected = table(create_app(Settings(state_dir=tmp_path))).splitlines()
    start = written.index(expected[0])
    assert written[start : written.index("", start)] == expected


def table(app: FastAPI) -> str:
    """Return the table: each path of the API, and the functions that answer there by their methods and their file."""
    found: dict[str, dict[str, list[str]]] = {}
    for route in app.routes:
        assert isinstance(route, Route)
        if not route.path.startswith(("/v1", "/health")):
            continue
        module = route.endpoint.__module__.removeprefix("app.").replace(".", "/")
        function = getattr(route.endpoint, "__name__", type(route.endpoint).__name__)
        for method in sorted(route.methods - {"HEAD"}):
            here = found.setdefault(route.path, {}).setdefault(module, [])
            here.append(f"{method} `{function}`")
    rows = [
        f"| `{path}` | {', '.join(functions)} | `{module}` |"
        for path, modules in sorted(found.items())
        for module, functions in modules.items()
    ]
    return "\n".join(["| path | method and function | file |", "|---|---|---|", *rows])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(table(create_app(Settings(state_dir=Path(folder)))) + "\n")
