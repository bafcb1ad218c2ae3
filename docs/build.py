"""Put the site together for Zensical, which `make docs` then builds: the pages of docs/, and the reference.

The reference of HTTP comes from openapi.json, that of the command line from the commands themselves, and that of Python
from signatures, annotations and docstrings, and that of the settings from their declaration. The notebook becomes a
page with its outputs. `docs/finish.py` completes
what Zensical writes, and `docs/check.py` checks it. `docs/builder` does the work.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from core.version import VERSION
from docs.builder.commands import command_pages
from docs.builder.http import http_pages
from docs.builder.markdown import relative
from docs.builder.navigation import configuration
from docs.builder.openapi import Api
from docs.builder.pages import Folders
from docs.builder.python_pages import python_pages
from docs.builder.settings import with_settings

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "build" / "site"
_TO_SCHEMA = re.compile(r"\[([^\]]*)\]\(SCHEMA:(\w+)\)")


def main() -> None:
    """Write all pages."""
    for name in [name for name in os.environ if name.startswith("RANKWRIGHT_")]:
        del os.environ[name]  # the application below is of no deployment
    shutil.rmtree(TARGET, ignore_errors=True)
    shutil.copytree(
        ROOT / "docs",
        TARGET,
        ignore=shutil.ignore_patterns("*.py", "*.json", "*.toml", "__pycache__", "builder"),
    )
    folders = Folders(ROOT, TARGET)
    for name, lines in reference().items():
        path = TARGET / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
    written = {
        "index.md": (ROOT / "README.md").read_text(encoding="utf-8"),
        "settings.md": with_settings((ROOT / "docs" / "settings.md").read_text(encoding="utf-8")),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
        "contributing.md": (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        "tutorials/notebook.md": "\n\n".join(folders.notebook()),
    }
    for name, text in written.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    for path in TARGET.rglob("*.md"):
        if not path.is_relative_to(TARGET / "reference"):
            path.write_text(
                folders.with_links(path, path.read_text(encoding="utf-8")), encoding="utf-8"
            )
    settings = (ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8")
    (ROOT / ".zensical.toml").write_text(configuration(settings, TARGET, VERSION), encoding="utf-8")


def reference() -> dict[str, list[str]]:
    """Return the lines of every page of the reference, by its path."""
    api = Api.read(ROOT / "docs" / "openapi.json")
    errors = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    pages, _ = python_pages()
    pages |= command_pages()
    pages |= http_pages(api, errors)
    return {
        page: [_with_schemas(line, page, api) for line in lines] for page, lines in pages.items()
    }


def _with_schemas(line: str, page: str, api: Api) -> str:
    """Return a line whose links to objects of the API lead to their entries."""

    def turn(found: re.Match[str]) -> str:
        if found[2] not in api.schemas:
            return found[1]
        path, _, anchor = api.address(found[2]).partition("#")
        return f"[{found[1]}]({relative(path, page)}#{anchor})"

    return _TO_SCHEMA.sub(turn, line)


if __name__ == "__main__":
    main()
