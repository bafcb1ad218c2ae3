"""A field of a model that is declared as CONTRIBUTING.md says is stored, returned, described and in the client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a service answers that knows the field. It is a process of its own: classes are made at import."""
    program = "tests.app.models.more_model_fields"
    done = subprocess.run(
        [sys.executable, "-m", program, str(tmp_path_factory.mktemp("s"))],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_training_stores_it_and_the_model_shows_it(answers: dict[str, Any]) -> None:
    assert answers["model"]["trained_by"] == "a test"
    assert answers["report"]["model"]["trained_by"] == "a test"


def test_the_description_has_it(answers: dict[str, Any]) -> None:
    schemas = answers["openapi"]["components"]["schemas"]
    assert schemas["Model"]["properties"]["trained_by"]["description"] == "Who trained the model."
    assert "trained_by" in schemas["Model"]["required"]


def test_the_client_has_it(answers: dict[str, Any]) -> None:
    (model,) = re.findall(r"^class Model\(Record\):\n(.*?)^class ", answers["types"], re.S | re.M)
    assert '    trained_by: str | None\n    """Who trained the model."""\n' in model
