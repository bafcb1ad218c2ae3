"""The long form of the tests, which `make long` runs: all of them, each as often or as large as it can be."""

import os

import pytest

LONG_FORM = "RANKWRIGHT_LONG" in os.environ

long_form = pytest.mark.skipif(not LONG_FORM, reason="`make long` runs it")
"""For a test that takes long and whose kind of fault a quicker test finds, too."""
