"""The long form of the tests, which `make long` runs: all of them, each as often or as large as it can be."""

import os
from typing import Any

import pytest

LONG_FORM = "RANKWRIGHT_LONG" in os.environ

long_form = pytest.mark.skipif(not LONG_FORM, reason="`make long` runs it")
"""For a test that takes long and whose kind of fault a quicker test finds, too."""


def rest(*cases: Any) -> list[Any]:
    """Cases of `parametrize` for the long form alone: those beside them are of each kind."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=long_form)
        for case in cases
    ]
