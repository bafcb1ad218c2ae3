"""The tests of a change are found by who uses what has changed."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from tools import changed


def found(path: str) -> set[str]:
    return {str(each.relative_to(changed.ROOT)) for each in changed.tests_of([PurePath(path)])}


@pytest.mark.parametrize(
    ("path", "within"),
    [
        ("core/metrics/ks.py", {"tests/core/metrics/test_ks.py"}),
        ("core/metrics/__init__.py", {"tests/test_public_api.py"}),
        ("core/boosting/loop.py", {"tests/core/boosting/test_aucboost.py"}),  # used by AUCBoost
        ("core/metrics/drift.py", {"tests/app/evaluation/test_evaluation.py"}),
        ("app/console/templates/job.html", {"tests/app/console"}),
        ("app/scoring/letters.py", {"tests/app/scoring"}),
        ("client/rankwright/cli/common.py", {"tests/app/cli"}),
        ("tests/core/metrics/test_curve.py", set()),  # there is none of this name
        ("tests/test_changed.py", {"tests/test_changed.py"}),
        ("README.md", set()),
    ],
)
def test_a_changed_file_has_its_tests_and_those_of_its_users(path: str, within: set[str]) -> None:
    tests = found(path)
    assert within <= tests
    assert within or not tests


@pytest.mark.parametrize(
    ("path", "without"),
    [
        ("core/metrics/ks.py", {"tests/core/metrics/test_fairness.py", "tests/app/console"}),
        ("app/console/pages.py", {"tests/core/metrics", "tests/app/scoring"}),
    ],
)
def test_what_does_not_use_it_is_not_run(path: str, without: set[str]) -> None:
    assert not without & found(path)


def test_an_exported_name_is_a_use_of_the_module_that_defines_it() -> None:
    assert changed.definition("core.metrics", "ks_interval") == "core.metrics.ks"
    assert changed.definition("core.metrics", "ks") == "core.metrics.ks"
    assert changed.definition("core", "RankBoost") == "core.boosting.rankboost"
    assert changed.definition("numpy", "array") is None
