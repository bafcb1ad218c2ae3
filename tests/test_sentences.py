"""The snapshot of sentences has no sentence of a test that is gone."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sentences import read
from tests.wording import private_words

ROOT = Path(__file__).parents[1]


def test_each_test_of_the_snapshot_is_there() -> None:
    functions: dict[str, set[str]] = {}
    for test in read():
        file, _, name = test.partition("::")
        if file not in functions:
            source = (ROOT / file).read_text(encoding="utf-8")
            functions[file] = set(re.findall(r"^ *def (\w+)\(", source, re.MULTILINE))
        assert name.rpartition("::")[2] in functions[file], test


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
