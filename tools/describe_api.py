"""`make openapi`: write the service's own description, docs/openapi.json, and the codes of its errors, and make the
modules of the client again. A test makes the description anew and compares.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.http.openapi import ERROR_CODES
from app.main import create_app
from app.platform.settings import Settings
from tools.error_codes import codes_of_all

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "openapi.json"


def describe() -> dict[str, Any]:
    """Return the service's description of itself, without the name of its build."""
    with tempfile.TemporaryDirectory() as folder:
        document: dict[str, Any] = create_app(Settings(state_dir=Path(folder))).openapi()
    del document["info"]["x-build"]
    return document


def codes_text() -> str:
    """Return the codes of the errors of each operation as error_codes.json has them."""
    with tempfile.TemporaryDirectory() as folder:
        codes = codes_of_all(create_app(Settings(state_dir=Path(folder))))
    lines = (f" {json.dumps(name)}: {json.dumps(found)}" for name, found in codes.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def as_text(document: Mapping[str, Any]) -> str:
    """Return the description as openapi.json has it."""
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    ERROR_CODES.write_text(codes_text(), encoding="utf-8")
    DOCUMENT.write_text(as_text(describe()), encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "client" / "make_modules.py"], check=True)
