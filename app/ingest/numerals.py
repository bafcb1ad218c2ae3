"""What is a number: ASCII digits with a decimal point, a sign and an exponent where need be, and nothing else.

Python's own `float` takes more: `1_000`, `nan`, digits of other scripts.
"""

from __future__ import annotations

import re

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"

_matches = re.compile(NUMBER.strip("^$")).fullmatch


def read_number(text: str) -> float | None:
    """Return the number that a text without spaces around is, infinite beyond a double's range; else None."""
    return float(text) if _matches(text) else None
