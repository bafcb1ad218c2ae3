"""The long form of the tests, which `make long` runs: all of them, each as often or as large as it can be."""

import os
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
