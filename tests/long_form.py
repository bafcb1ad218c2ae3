"""Tests that repeat one thing have a long form, which takes minutes: `make long`."""

import os

LONG_FORM = "RANKWRIGHT_LONG" in os.environ
