"""docs/settings.md has a heading for each setting, below which the site has its type, default and description."""

from __future__ import annotations

import re
from pathlib import Path

from app.platform.settings import Settings
from docs.builder.settings import PREFIX, with_settings

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "settings.md"


def test_every_variable_that_the_code_reads_is_on_the_page_and_the_other_way_round() -> None:
    named = re.compile(PREFIX + r"[A-Z_]*[A-Z]")
    read_by_the_code = {PREFIX + name.upper() for name in Settings.model_fields}
    for folder in ("app", "core", "workers"):
        for module in (ROOT / folder).rglob("*.py"):
            read_by_the_code |= set(named.findall(module.read_text()))
    headings = re.findall(rf"^#+ `({PREFIX}\w+)`$", PAGE.read_text(), flags=re.MULTILINE)
    assert sorted(headings) == sorted(read_by_the_code)


def test_the_site_shows_type_default_and_description_above_the_advice() -> None:
    page = with_settings(PAGE.read_text())
    _, _, entry = page.partition("### `RANKWRIGHT_STATE_DIR`\n")
    lines = [line for line in entry.partition("\n###")[0].splitlines() if line]
    assert lines[:2] == [
        "Type: path. Default: `.rankwright`.",
        Settings.model_fields["state_dir"].description,
    ]
    assert len(lines) > 2
    for expected in (
        "Type: `text`, `json`",
        "Type: number > 0. Default: `1.0`.",
        "Default: `4294967296` (4 GiB).",
    ):
        assert expected in page
