"""The corpus of crafted files: each comes to what is expected of it, whatever pieces it is read in.

`make long` reads every file whole and in small pieces, and spoils it many times. Here, of the files that test one rule,
come to the same kind of outcome and have one format, the first and every twelfth of the others are read; of all, every
twelfth is read in pieces, and every twenty-fourth is spoilt.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from app.ingest import arrow as columnar
from app.ingest import csv as delimited
from app.ingest import ndjson, stream
from app.ingest.errors import BadTable
from tests.app.ingest.corpus.all_cases import CASES, FAMILIES
from tests.app.ingest.corpus.case import Case
from tests.long_form import LONG_FORM

EVERY, EVERY_SPOILT = (1, 1) if LONG_FORM else (12, 24)
TIMES = 8 if LONG_FORM else 1
PIECES = [
    *((delimited, name, size) for name, size in (("BLOCK_BYTES", 16), ("COLUMN_BYTES", 1))),
    *((delimited, "_EXACT_CELLS", 4), (ndjson, "_CELLS", 4), (columnar, "_BATCH_CELLS", 4)),
    *((stream, "PIECE", 7), (stream, "MIN_RECODED", 3)),
]

# One test for all cases of a family: a test of its own costs each more than the reading of its file.
families = pytest.mark.parametrize("family", FAMILIES)


def chosen(cases: list[Case]) -> list[Case]:
    """The first file of each kind, and every twelfth of the others; all in the long form."""
    kinds: set[object] = set()
    first: list[Case] = []
    others: list[Case] = []
    for case in cases:
        kind = (case.rule, type(case.expected), case.content_type)
        (others if kind in kinds else first).append(case)
        kinds.add(kind)
    return first + others[::EVERY]


@families
def test_a_file_comes_to_what_is_expected(family: str, tmp_path: Path) -> None:
    wrong = {}
    for case in chosen(FAMILIES[family]):
        try:
            case.check(tmp_path)
        except Exception as error:
            wrong[f"{case.rule}: {case.name} ({case.content_type})"] = repr(error)
    assert wrong == {}


@families
def test_the_pieces_it_is_read_in_do_not_matter(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is small, but so are the blocks, batches and pieces here: what comes late comes in another."""
    for module, name, size in PIECES:
        monkeypatch.setattr(module, name, size)
    for case in FAMILIES[family][::EVERY]:
        case.check(tmp_path)


def test_the_file_beside_is_read(tmp_path: Path) -> None:
    """It is refused for the one thing that tells it from a file that is read."""
    for case in CASES:
        if case.beside is not None:
            case.read(tmp_path, case.beside)


def spoilt(body: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Yield the body cut, with a byte that is another, and with a piece of it that comes again."""
    if not body:
        return
    at, other = rng.integers(0, len(body), 2).tolist()
    yield body[:at]
    yield body[:at] + bytes([body[at] ^ (1 << other % 8)]) + body[at + 1 :]
    yield body[:at] + body[other : other + 64] + body[at:]


@families
def test_a_spoilt_file_is_read_or_refused(family: str, tmp_path: Path) -> None:
    """Any bytes become a table or are refused with a reason; there is no other error."""
    wrong = {}
    for case in FAMILIES[family][::EVERY_SPOILT]:
        rng = np.random.default_rng(sum(case.name.encode()))
        for body in (body for _ in range(TIMES) for body in spoilt(case.body, rng)):
            try:
                with suppress(BadTable):
                    case.read(tmp_path, body)
            except Exception as error:
                wrong[f"{case.name} ({case.content_type}): {body!r}"] = repr(error)
    assert wrong == {}
