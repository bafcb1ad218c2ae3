"""The snapshot of sentences is in ordinary words."""

from __future__ import annotations

import re

from tests.sentences import read
from tests.wording import private_words


def test_sentences_are_in_ordinary_words() -> None:
    """Options, names of models, and what a test itself raises are no prose."""
    ours = re.compile(r"--\S+|\b\w+:\d+\b|\w+Error: .*")
    private = {
        sentence: words
        for sentences in read().values()
        for sentence in sentences
        if (words := private_words(ours.sub("", sentence)))
    }
    assert private == {}
