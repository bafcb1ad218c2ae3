"""Templates of letters: the paragraph of a reason code in an adverse-action letter, with placeholders.

A placeholder is a name in braces, such as {feature}. Two braces are one brace in the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

POINTS = ("points", "points_lost", "cutoff_points")
"""The points of the row, those lost by the reason, and the most points of a flagged row."""
PLACEHOLDERS = ("feature", "value", *POINTS, "text", "code")
"""Also the features of the reason, their values, and the text and code of the reason code."""
MAX_LETTER = 2_000
"""Maximum length of a template."""
MAX_FILLED = 200
"""Maximum length of the text that replaces a placeholder."""


class Fault(NamedTuple):
    """What is wrong with a template, and the position of the character, from 1."""

    position: int
    detail: str


class Piece(NamedTuple):
    text: str
    is_placeholder: bool


def parse(template: str) -> list[Piece] | Fault:
    """Return the parts of a template, or its fault."""
    pieces: list[Piece] = []
    literal: list[str] = []
    at = 0
    while at < len(template):
        character = template[at]
        if character not in "{}":
            literal.append(character)
            at += 1
        elif template[at : at + 2] == 2 * character:
            literal.append(character)
            at += 2
        elif character == "}":
            return Fault(at + 1, "a } without a { before it: write }} for a brace")
        else:
            end = template.find("}", at)
            if end < 0:
                return Fault(at + 1, "a { without a } after it: write {{ for a brace")
            name = template[at + 1 : end]
            if name not in PLACEHOLDERS:
                known = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
                shown = name if len(name) <= 40 else f"{name[:39]}…"
                return Fault(at + 1, f"an unknown placeholder {{{shown}}}: use {known}")
            pieces += [Piece("".join(literal), False), Piece(name, True)]
            literal = []
            at = end + 1
    return [*pieces, Piece("".join(literal), False)]


def uses(template: str, *placeholders: str) -> bool:
    """Return True if the template has one of the placeholders."""
    pieces = parse(template)
    assert not isinstance(pieces, Fault)
    return any(is_placeholder and text in placeholders for text, is_placeholder in pieces)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Braces in the values stay as they are."""
    pieces = parse(template)
    assert not isinstance(pieces, Fault)
    return "".join(
        _shortened(values[text]) if is_placeholder else text for text, is_placeholder in pieces
    )


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_FILLED else f"{text[: MAX_FILLED - 1]}…"
