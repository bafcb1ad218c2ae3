"""Check the site that `make docs` has built: what is missing, too large, hard to find, or leads nowhere.

It prints how many faults there are of each kind, writes all into build/site-faults.txt, and fails if there are any of a
kind that is not in `NOT_YET`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections import Counter
from itertools import chain
from pathlib import Path

from app.platform.settings import Settings
from docs.builder import checks
from docs.builder.commands import EXAMPLES, find_commands
from docs.builder.names import find_names
from docs.builder.navigation import pages_of
from docs.builder.openapi import Api
from docs.builder.pages import REPOSITORY
from docs.builder.site import broken_links, read_site

ROOT = Path(__file__).parents[1]
SITE = ROOT / "site"
FAULTS = ROOT / "build" / "site-faults.txt"

NOT_YET: frozenset[str] = frozenset()
"""Kinds of faults that do not fail yet, because people write their texts. Remove a kind once it has no faults."""


def main() -> None:
    """Print the faults; fail if there are any."""
    for name in [name for name in os.environ if name.startswith("RANKWRIGHT_")]:
        del os.environ[name]  # the commands below are of no deployment
    found = sorted(set(faults()))
    FAULTS.write_text(
        "".join(f"{kind}: {sentence}\n" for kind, sentence in found), encoding="utf-8"
    )
    for kind, number in sorted(Counter(kind for kind, _ in found).items()):
        sys.stdout.write(f"{number:6} {kind}{' (not yet)' if kind in NOT_YET else ''}\n")
    failed = [f"{kind}: {sentence}" for kind, sentence in found if kind not in NOT_YET]
    if failed:
        sys.exit(
            "\n".join(
                [
                    *failed[:40],
                    f"{len(failed)} faults of the site; all are in {FAULTS.relative_to(ROOT)}",
                ]
            )
        )
    if shutil.which("node") is None:
        sys.stdout.write("There is no node here: the search was not checked.\n")
    sys.stdout.write("The site is complete.\n")


def faults() -> chain[checks.Fault]:
    """Return all faults of the site."""
    pages, api, names, commands = (
        read_site(SITE),
        Api.read(ROOT / "docs" / "openapi.json"),
        find_names(),
        find_commands(),
    )
    public = [*names.entries.values()]
    allowed = {
        *names.entries,
        "core",
        "core.metrics",
        "core.explain",
        "core.probability",
        "core.selection",
    }
    allowed |= {"core.bounds", "core.monitoring", "rankwright", "rankwright.errors"}
    settings = [f"RANKWRIGHT_{name.upper()}" for name in Settings.model_fields]
    given = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))["project"][
        "nav"
    ]
    queries = checks.queries(pages, api, public, commands, settings)
    return chain(
        checks.sizes(pages),
        checks.marks(pages),
        checks.public_names(pages, public),
        checks.headings(pages, allowed),
        checks.routes(pages, api),
        checks.objects(pages, api),
        checks.commands(pages, commands),
        checks.examples_of_commands(commands, EXAMPLES),
        checks.search(SITE, queries),
        (("link", each) for each in broken_links(pages, SITE, ROOT, REPOSITORY)),
        checks.navigation(pages, [*pages_of(given)]),
    )


if __name__ == "__main__":
    main()
