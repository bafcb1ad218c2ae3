"""Check that the program is complete: modules, templates, fonts and migrations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "core", "workers")
# Of each folder of files that are no modules, what its readers cannot do without. Looked for also where nothing lists
# what was installed: in a checkout and an image.
FILES = (
    "app/console/static/console.css",
    "app/console/static/console.js",
    "app/console/templates/base.html",
    "app/console/templates/sign_in.html",
    "app/http/docs.html",
    "app/http/examples.json",
    "app/http/static/docs.css",
    "app/http/static/docs.js",
    "app/platform/migrations/env.py",
    "app/reports/fonts/Roboto-Medium.ttf",
    "app/reports/fonts/Roboto-Regular.ttf",
)
_MAX_NAMED = 5


class Incomplete(Exception):
    """Files of the program are missing; the message names them."""


@cache
def check_files() -> None:
    """Check every file of the program once. Raises `Incomplete`, which names the missing ones."""
    missing = sorted({name for name in (*FILES, *_installed()) if not (ROOT / name).is_file()})
    if missing:
        more = f" and {len(missing) - _MAX_NAMED} more" if len(missing) > _MAX_NAMED else ""
        named = ", ".join(missing[:_MAX_NAMED]) + more
        raise Incomplete(f"the installation in {ROOT} is not complete: {named} missing")


def _installed() -> Iterator[str]:
    """Return the files that the installer has listed for this code; none for a checkout."""
    for distribution in metadata.distributions(name="rankwright-server"):
        if Path(str(distribution.locate_file(""))).resolve() == ROOT.resolve():
            names = (path.as_posix() for path in distribution.files or ())
            yield from (
                name
                for name in names
                if name.partition("/")[0] in PACKAGES and "__pycache__" not in name
            )
