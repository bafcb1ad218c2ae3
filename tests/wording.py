"""Words of our private vocabulary, which no text for readers may have: descriptions, messages, pages.

The table in the writing guide says what to write instead. Text between backticks is code and is not searched.
"""

from __future__ import annotations

import re

INSTEAD = {
    r"metric-estimates?": "metric, value",
    r"judg(?:e|es|ed|ing|ement|ment)": "evaluate, validate",
    r"beyond chance": "statistically significant",
    r"surely": "significantly",
    r"learnt": "trained on, fitted on",
    r"to be had": "available",
    r"each for itself|by itself alone": "separately",
    r"as a whole": "entirely",
    r"of its own|of their own": "separate",
    r"of which": "a relative clause with “that”",
    r"is known of": "is recorded for",
    r"tells?|told": "says, shows, returns",
    r"stands?|lies": "is",
    r"mend(?:s|ed|ing)?": "repair, correct",
    r"refus(?:e|es|ed|al|als)": "reject, return an error",
    r"promis(?:e|es|ed|ing)": "guarantee",
    r"doors?": "endpoint, API",
    r"rooms?": "package, module",
    r"tours?": "end-to-end example",
    r"for good(?! \w)": "permanently",
}
"""Each pattern of whole words, and what to write instead."""

_PRIVATE = re.compile(rf"\b(?:{'|'.join(INSTEAD)})\b", re.IGNORECASE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def private_words(text: str) -> list[str]:
    """Return the words of the private vocabulary in a text, in their order."""
    return [found.group(0) for found in _PRIVATE.finditer(_CODE.sub("``", text))]
