"""Complete the site that Zensical has built: copy buttons, edit links and the search. `make docs` runs it."""

from __future__ import annotations

import json
from pathlib import Path

from docs.builder.finish import (
    better_index,
    less_fuzzy,
    with_copies,
    with_edit_link,
    with_large_pictures,
    without_requests,
)

SITE = Path(__file__).parents[1] / "site"


def main() -> None:
    """Rewrite the files of the site."""
    for page in SITE.rglob("*.html"):
        address = str(page.relative_to(SITE)).removesuffix("index.html")
        text = page.read_text(encoding="utf-8")
        text = with_large_pictures(with_edit_link(with_copies(text), address))
        page.write_text(without_requests(text), encoding="utf-8")
    index = SITE / "search.json"
    found = better_index(json.loads(index.read_text(encoding="utf-8")))
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    index.write_text(text, encoding="utf-8")
    for script in (SITE / "assets" / "javascripts" / "workers").glob("search*.js"):
        script.write_text(less_fuzzy(script.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
