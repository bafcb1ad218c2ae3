"""The tests of a change are found by who imports what has changed."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from tools import changed


@pytest.mark.parametrize(
    ("path", "within"),
    [
        ("core/metrics/curve.py", {"tests/core/metrics", "tests/app/models"}),
        ("app/console/templates/job.html", {"tests/app/console"}),
        ("client/rankwright/cli/common.py", {"tests/app/cli"}),
        ("tests/core/metrics/test_curve.py", set()),  # there is none of this name
        ("tests/test_changed.py", {"tests/test_changed.py"}),
        ("README.md", set()),
    ],
)
def test_a_changed_file_has_the_tests_of_its_room_and_of_its_importers(
    path: str, within: set[str]
) -> None:
    found = {str(each.relative_to(changed.ROOT)) for each in changed.tests_of([PurePath(path)])}
    assert within <= found
    assert within or not found


def test_what_no_room_imports_runs_no_other_room() -> None:
    found = {
        str(each.relative_to(changed.ROOT))
        for each in changed.tests_of([PurePath("app/console/pages.py")])
    }
    assert "tests/core/metrics" not in found
