"""Reduce names to plain lower-case letters, to compare them."""

from __future__ import annotations

import re
import unicodedata

_SPELT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "o", "đ": "d"})


def plain_letters(text: str) -> str:
    """Return a text in lower case without accents, with German umlauts spelt out."""
    plain = unicodedata.normalize("NFKD", text.lower().translate(_SPELT))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def plain_words(name: str) -> list[str]:
    """Return the words of a column's name in plain letters. A capital after a small letter begins a word.

    Examples
    --------
    >>> plain_words("Marital_Status"), plain_words("customerAge"), plain_words("Staatsangehörigkeit")
    (['marital', 'status'], ['customer', 'age'], ['staatsangehoerigkeit'])
    """
    apart = re.sub(r"(?<=[a-zäöüß])(?=[A-ZÄÖÜ])", " ", name)
    return re.findall(r"[a-z0-9]+", plain_letters(apart))
