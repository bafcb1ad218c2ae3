"""The long form of the tests, which `make long` runs: all of them, each as often or as large as it can be."""

import os
import zlib
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

LONG_FORM = "RANKWRIGHT_LONG" in os.environ

long_form = pytest.mark.skipif(not LONG_FORM, reason="`make long` runs it")
"""For a test that takes long and whose kind of fault a quicker test finds, too."""


def one_in(step: int, *values: Iterable[Any]) -> list[Any]:
    """Return the values of a parameter, or the products of several, of which each `step`-th is in the short form, too.

    With a step that has no divisor in common with their numbers, each value of each parameter is.
    """
    return [
        pytest.param(*case, marks=() if k % step == 0 else long_form)
        for k, case in enumerate(product(*values))
    ]


def rest(*cases: Any) -> list[Any]:
    """Return cases of `parametrize` that only the long form has; the cases beside them are of each kind."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=long_form)
        for case in cases
    ]


DATABASES = "sqlite", "postgres"
ON_BOTH = "tests/app/jobs/", "tests/app/platform/", "tests/workers/"
"""Folders with the queue, the sessions and the migrations: their tests run on both databases in the short form, too."""


def leave_one_database(items: Iterable[pytest.Item]) -> None:
    """Skip half of the tests that run on each of `DATABASES`: which one a test keeps, its name decides."""
    if LONG_FORM:
        return
    runs: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        if item.nodeid.startswith(ON_BOTH) or item.get_closest_marker("skipif") is not None:
            continue
        call = getattr(item, "callspec", None)
        for value in call.params.values() if call else ():
            if isinstance(value, str) and value in DATABASES:
                name = item.nodeid.partition("[")[0]
                runs.setdefault(name, {}).setdefault(value, []).append(item)
    for name, of_databases in runs.items():
        if len(of_databases) == len(DATABASES):
            kept = DATABASES[zlib.crc32(name.encode()) % len(DATABASES)]
            for item in (item for each in set(DATABASES) - {kept} for item in of_databases[each]):
                item.add_marker(long_form)
