"""Checks that the installation is complete: modules, templates, fonts, migrations, and the client."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import cache
from importlib import import_module, metadata, util
from pathlib import Path

from app import __version__

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "core", "migrations", "workers")
# The necessary files of each folder without modules. They are also checked in a checkout and in an image, where no list
# of installed files exists.
FILES = (
    "app/console/static/console.css",
    "app/console/static/console.js",
    "app/console/templates/base.html",
    "app/console/templates/sign_in.html",
    "app/http/docs.html",
    "app/http/examples.json",
    "app/http/static/docs.css",
    "app/http/static/docs.js",
    "app/reports/fonts/Roboto-Medium.ttf",
    "app/reports/fonts/Roboto-Regular.ttf",
    "app/reports/templates/blocks.html",
    "app/reports/templates/report.css",
    "app/reports/templates/report.html",
    "migrations/env.py",
)
_MAX_NAMED = 5


class Incomplete(Exception):
    """A part of the program is missing, or of another version; the message names it."""


@cache
def check_files() -> None:
    """Check once. Raises Incomplete."""
    check_client()
    missing = sorted({name for name in (*FILES, *_installed()) if not (ROOT / name).is_file()})
    if missing:
        more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
        named = ", ".join(missing[:_MAX_NAMED]) + more
        raise Incomplete(f"the installation in {ROOT} is incomplete: {named} missing")


def check_client() -> None:
    """The client must have the server's version. Raises Incomplete with what to install."""
    version = None
    if util.find_spec("rankwright") is not None:
        version = getattr(import_module("rankwright"), "__version__", None)
    if version == __version__:
        return
    wheels = (
        f"install rankwright-{__version__}-py3-none-any.whl and "
        f"rankwright_server-{__version__}-py3-none-any.whl together"
    )
    if version is not None:
        raise Incomplete(
            f"the client `rankwright` has version {version}, the server {__version__}: {wheels}"
        )
    raise Incomplete(f"the client `rankwright` is not installed: {wheels}")


def _installed() -> Iterator[str]:
    """Yield the recorded files; none for a checkout. From Python 3.12 on, `Distribution.files` omits missing ones."""
    for distribution in metadata.distributions(name="rankwright-server"):
        if Path(str(distribution.locate_file(""))).resolve() == ROOT.resolve():
            listed = (distribution.read_text("RECORD") or "").splitlines()
            for name, *_ in csv.reader(listed):
                if name.partition("/")[0] in PACKAGES and "__pycache__" not in name:
                    yield name
