"""The table of routes in docs/api.md and the application's own description name the same routes."""

from __future__ import annotations

import re
from pathlib import Path

from app.main import create_app
from app.platform.settings import Settings

PAGE = (Path(__file__).parents[1] / "docs" / "api.md").read_text()


def test_every_route_is_documented_and_no_other(tmp_path: Path) -> None:
    described = {
        f"{method.upper()} {path}"
        for path, methods in create_app(Settings(state_dir=tmp_path)).openapi()["paths"].items()
        for method in methods
    }
    documented = re.findall(r"^\| `((?:GET|POST|PUT|DELETE) [^`]+)` \|", PAGE, re.MULTILINE)
    assert len(documented) == len(set(documented))
    assert set(documented) == described
