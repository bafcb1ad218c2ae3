"""The recipes of CONTRIBUTING.md for a table and for a kind of blob: a declaration is all that the service needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.long_form import long_form
from tests.waiting import patience


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the service makes of a table `pictures` with a column `image_key`."""
    folder: Path = tmp_path_factory.mktemp("state")
    command = [sys.executable, "-m", "tests.app.operations.new_table", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=patience())
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


@long_form
def test_a_table_is_missed_by_the_migrations_counted_and_deleted_with_its_owner_s_data(
    found: dict[str, Any],
) -> None:
    assert found["drift"] == ["add_table"]
    assert found["rows"]
    assert found["rows_left"] == 0


@long_form
def test_a_kind_of_blob_is_swept_backed_up_counted_and_examined(found: dict[str, Any]) -> None:
    assert found["swept"] == 1  # the one that no row names
    assert found["in_backup"]
    assert found["files"] == 7
    assert found["damaged"]
    assert found["swept_later"] == 2  # the upload and the image of the deleted dataset
