"""Texts of others in a terminal or a log, with the characters escaped that would control the terminal."""

from __future__ import annotations

# Control characters (C0, DEL, C1), those that end a line in Unicode, and those that change the direction of text.
_BASELINES = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x2028,
    0x2029,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPES = {code: f"\\u{code:04x}" for code in _BASELINES}
_ESCAPES_BUT_LINES = {code: text for code, text in _ESCAPES.items() if chr(code) not in "\n\t"}


def one_line(text: str) -> str:
    """Return a text on one line, with its control characters as escapes of JSON.

    Examples
    --------
    >>> print(one_line("a\\x1b[2Jb\\n"))
    a\\u001b[2Jb\\u000a
    """
    return text if text.isprintable() else text.translate(_ESCAPES)


def lines(text: str) -> str:
    """Return the same for a text of several lines: it keeps its ends of lines and its tabs."""
    return text if text.isprintable() else text.translate(_ESCAPES_BUT_LINES)
