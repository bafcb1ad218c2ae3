"""The tests of a change are those that use what has changed, by name, path, file or kind of job."""

from __future__ import annotations

from pathlib import PurePath

import pytest

from tests.long_form import rest
from tools import changed
from tools.changed import Definition


def found(path: str, name: str | None = None) -> set[str]:
    """The files of the tests that see a change of a file, or of what it defines by a name."""
    module = changed.module_of(PurePath(path))
    if module is None:
        reached = set(changed.changed_definitions(PurePath(path)))
    else:
        names = [name] if name else changed.known().get(module, {"definitions": {}})["definitions"]
        reached = {Definition(module, each) for each in names}
    tests = changed.tests_that_see(reached)
    return {test.partition("::")[0].removeprefix("tests/") for test in tests}


@pytest.mark.parametrize(
    ("path", "name", "within"),
    [
        # A test of monitoring: the monitor's task uses it three calls away.
        (
            "core/monitoring/betting.py",
            "monitor_rate",
            {"core/monitoring/test_betting.py", "app/feedback/test_monitor.py"},
        ),
        ("tests/core/metrics/test_curve.py", None, set()),  # there is none of this name
        ("tests/test_changed.py", None, {"test_changed.py"}),
        ("README.md", None, set()),
        *rest(
            # A template: the tests of the page.
            ("app/console/templates/job.html", None, {"app/console/test_jobs_pages.py"}),
            # A metric: its own tests, and those of the evaluations that show it.
            (
                "core/metrics/ks.py",
                "ks_interval",
                {"core/metrics/test_decision_curve.py", "app/evaluation/test_evaluation.py"},
            ),
            # An endpoint: the tests that call its path, in the console, too.
            (
                "app/webhooks/endpoints.py",
                "ping_webhook",
                {"app/webhooks/test_api_webhooks.py", "app/console/test_webhook_pages.py"},
            ),
            # A fixture.
            ("tests/app/conftest.py", "refused", {"app/ingest/test_ingest_csv.py"}),
        ),
    ],
)
def test_a_change_has_the_tests_that_can_see_it(
    path: str, name: str | None, within: set[str]
) -> None:
    tests = found(path, name)
    assert within <= tests
    assert within or not tests


@pytest.mark.parametrize(
    ("path", "name", "without"),
    [
        ("core/metrics/ks.py", "ks_interval", {"core/metrics/test_fairness.py"}),
        ("core/monitoring/betting.py", "monitor_rate", {"app/console/test_jobs_pages.py"}),
        ("app/console/pages.py", "ROUTERS", {"app/console/test_jobs_pages.py"}),
    ],
)
def test_what_does_not_use_it_is_not_run(path: str, name: str, without: set[str]) -> None:
    assert not without & found(path, name)


def test_only_the_tests_that_use_it_are_run() -> None:
    tests = changed.tests_that_see({Definition("core.monitoring.betting", "monitor_rate")})
    files = {test.partition("::")[0] for test in tests}
    assert "tests/core/monitoring/test_betting.py" in files
    assert not files & set(tests)  # no whole file


def test_a_comment_changes_nothing_and_a_docstring_only_what_is_documented() -> None:
    source = 'def f(x: int) -> int:\n    """Doc."""\n    return x\n'
    ((docs, trees),) = changed.contents_of(source, exports=False).values()
    with_comment = source.replace("    return", "    # why\n    return").replace(
        "int:", "int:  # so"
    )
    assert changed.contents_of(with_comment, exports=False) == {"f": (docs, trees)}
    assert changed.contents_of(source.replace("Doc", "Docs"), exports=False) == {
        "f": (["Docs."], trees)
    }


def test_an_exported_name_is_that_of_the_module_that_defines_it() -> None:
    ks = Definition("core.metrics.ks", "ks_interval")
    assert changed.definition("core.metrics", "ks_interval") == ks
    assert changed.definition("core.metrics", "ks") == Definition("core.metrics.ks", "")
    assert changed.definition("core", "RankBoost") == Definition(
        "core.boosting.rankboost", "RankBoost"
    )
    assert changed.definition("numpy", "array") is None
