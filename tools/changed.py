"""Name the tests of what has changed: `make check` runs them.

Changed are the files that differ from the commit that is shared with BASE (`origin/main`, or HEAD where there is none),
and files that git does not know yet. Of a module, the tests are those of its room (tests/core/metrics of
core/metrics/area.py) and of each room with a module that imports it by name. A changed test file is run itself; a
changed file of what tests share (tests/harness.py) is run by `make test` only.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "core": "core",
    "app": "app",
    "migrations": "migrations",
    "workers": "workers",
    "client/rankwright": "rankwright",
}
"""The folder of each package, and its name."""


def git(*words: str) -> list[str]:
    """Return the lines of a command of git; none where it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files() -> list[PurePath]:
    """List the files that differ from the shared commit, and those that are new."""
    base = git("merge-base", "HEAD", os.environ.get("BASE", "origin/main"))[:1] or ["HEAD"]
    names = git("diff", "--name-only", *base) + git("ls-files", "--others", "--exclude-standard")
    return [PurePath(name) for name in dict.fromkeys(names)]


def module_of(path: PurePath) -> str | None:
    """Return the module that a file is, or that owns it: app.console of app/console/templates/job.html."""
    for folder, package in PACKAGES.items():
        if path.is_relative_to(folder):
            rest = path.relative_to(folder)
            parts = rest.with_suffix("").parts if rest.suffix == ".py" else rest.parts[:1]
            return ".".join((package, *(part for part in parts if part != "__init__")))
    return None


def rooms_of(module: str) -> Iterator[Path]:
    """Name the folders of the tests of a module, or files where its room has no folder."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    if package == "rankwright":
        yield ROOT / "tests/app" / ("cli" if room == "cli" else "client")
    elif package == "workers":
        yield ROOT / "tests/workers"
    elif package == "migrations":
        yield ROOT / "tests/app/platform/test_migrations.py"
    elif (folder := ROOT / "tests" / package / room).is_dir() and room:
        yield folder
    else:
        yield from sorted((ROOT / "tests" / package).glob(f"test_*{room.removesuffix('s')}*.py"))


def tests_of(paths: Iterable[PurePath]) -> list[Path]:
    """Return the folders and files of the tests of changed files."""
    import grimp

    found: dict[Path, None] = {}
    graph = grimp.build_graph(*PACKAGES.values())
    for path in paths:
        if path.parts[0] == "tests":
            if path.name.startswith("test_") and (ROOT / path).is_file():
                found[ROOT / path] = None
            continue
        module = module_of(path)
        if module is None:
            continue
        importers = set[str]()
        if module in graph.modules:
            importers = graph.find_modules_that_directly_import(module)
        for each in (module, *sorted(importers)):
            found |= dict.fromkeys(rooms_of(each))
    return [path for path in found if not any(parent in found for parent in path.parents)]


if __name__ == "__main__":
    print(*(path.relative_to(ROOT) for path in tests_of(changed_files())))
