"""Refusals and warnings, by their class and by the values that their message must name; never by its wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def mentions(message: str, value: object) -> bool:
    """Return True if a message names a value: a parameter, a column, an id, a number. Raises ValueError for a text of
    several words: sentences go to the fixture `sentences`.
    """
    text = str(value)
    if isinstance(value, str) and re.search(r"[^\W\d_]\s+[^\W\d_]", text):
        raise ValueError(f"a value must not be a text of several words, got {text!r}")
    return re.search(rf"(?<!\w)(?<!\d\.){re.escape(text)}(?!\w)(?!\.\d)", message) is not None


@contextmanager
def raises(
    error: type[E] | tuple[type[E], ...], *values: object
) -> Iterator[pytest.ExceptionInfo[E]]:
    """As `pytest.raises`; the message must name each value."""
    with pytest.raises(error) as raised:
        yield raised
    message = str(raised.value)
    assert [value for value in values if not mentions(message, value)] == [], message


@contextmanager
def warns(warning: type[Warning], *values: object) -> Iterator[pytest.WarningsRecorder]:
    """As `pytest.warns`; one of the messages must name each value."""
    with pytest.warns(warning) as warned:
        yield warned
    messages = [str(one.message) for one in warned if issubclass(one.category, warning)]
    assert any(all(mentions(message, value) for value in values) for message in messages), messages
