"""Refusals and warnings, by their class and by the values that their message must name; never by its wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def names(message: str, value: object) -> bool:
    """Say whether a message names a value: a parameter, a column, an id, a number. A sentence is no value: see
    tests/sentences.py.
    """
    text = str(value)
    if isinstance(value, str) and re.search(r"[^\W\d_]\s+[^\W\d_]", text):
        raise ValueError(
            f"a test must not assert wording, got {text!r}; use the fixture `sentences`"
        )
    return re.search(rf"(?<!\w)(?<!\d\.){re.escape(text)}(?!\w)(?!\.\d)", message) is not None


@contextmanager
def raises(
    error: type[E] | tuple[type[E], ...], *values: object
) -> Iterator[pytest.ExceptionInfo[E]]:
    """As `pytest.raises`; the message must name each value."""
    with pytest.raises(error) as raised:
        yield raised
    message = str(raised.value)
    assert [value for value in values if not names(message, value)] == [], message


@contextmanager
def warns(warning: type[Warning], *values: object) -> Iterator[pytest.WarningsRecorder]:
    """As `pytest.warns`; one of the messages must name each value."""
    with pytest.warns(warning) as warned:
        yield warned
    messages = [str(one.message) for one in warned if issubclass(one.category, warning)]
    assert any(all(names(message, value) for value in values) for message in messages), messages
