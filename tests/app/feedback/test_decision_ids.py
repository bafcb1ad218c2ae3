"""Ids of decisions are compared as a whole, however similar they are and whatever their hashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from app.feedback.decision_ids import (
    DecisionKeys,
    DecisionKeySet,
    first_copies,
    hash_decision_ids,
    join_keys,
    keys_of,
)

DIGITS = f"{0x0198F0C2A4D37C1E8A4B5C6D7E8F9012:032x}"
SIMILAR = [
    f"dec_{DIGITS}",
    *(f"dec_{DIGITS[:k]}{'0' if DIGITS[k] != '0' else '1'}{DIGITS[k + 1 :]}" for k in range(32)),
    f"dec_{DIGITS.upper()}",
    f"dec-{DIGITS}",
    f"dec_{DIGITS[:-1]}g",
    "other-1",
    "",
]
"""An id, those that differ from it in one digit, and others that are no ids of ours."""


def keys_as_pairs(keys: DecisionKeys) -> list[tuple[int, int]]:
    return [*zip(keys.hashes.tolist(), keys.rest.tolist(), strict=True)]


def test_every_digit_counts() -> None:
    keys = keys_of(pa.array(SIMILAR))
    assert len({*keys_as_pairs(keys)}) == len({*keys.hashes.tolist()}) == len(SIMILAR)


def test_an_id_has_the_same_key_in_every_batch() -> None:
    """A batch of our ids is read at once, any other one by one; a slice begins within the buffers."""
    alone = [keys_as_pairs(keys_of(pa.array([text])))[0] for text in SIMILAR]
    assert keys_as_pairs(keys_of(pa.array(SIMILAR))) == alone
    assert keys_as_pairs(keys_of(pa.array(SIMILAR[:33]).slice(7, 5))) == alone[7:12]
    assert keys_as_pairs(keys_of(pa.array([None, ""], pa.string()))) == [alone[-1]] * 2
    assert keys_of(pa.array([], pa.string())).hashes.size == 0
    assert hash_decision_ids(pa.array(SIMILAR)).tolist() == [first for first, _ in alone]


PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)), max_size=12)


def as_keys(pairs: list[tuple[int, int, int]]) -> DecisionKeys:
    return DecisionKeys(*(np.array([row[k] for row in pairs], np.uint64) for k in (0, 1)))


@given(PAIRS, st.lists(PAIRS, max_size=40))
def test_equal_hashes_never_join_different_decisions(
    rows: list[tuple[int, int, int]], parts: list[list[tuple[int, int, int]]]
) -> None:
    """With a hash of one bit, nearly everything collides."""
    counts = first_copies(as_keys(rows), np.array([row[2] for row in rows], float))
    earliest: dict[tuple[int, ...], tuple[int, int]] = {}
    for number, (*id_, at) in enumerate(rows):
        key = tuple(id_)
        if key not in earliest or at < earliest[key][0]:
            earliest[key] = (at, number)
    assert np.flatnonzero(counts).tolist() == sorted(row for _, row in earliest.values())
    known = DecisionKeySet()
    for part in parts:
        known.add(as_keys(part))
    there = {row[:2] for part in parts for row in part}
    assert known.has(as_keys(rows)).tolist() == [row[:2] in there for row in rows]
    assert keys_as_pairs(join_keys([as_keys(part) for part in parts])) == [
        row[:2] for part in parts for row in part
    ]
