"""Conditions on one feature, and their words."""

import math

import numpy as np
import pytest

from core.explain.conditions import (
    CategorySet,
    ValueRange,
    in_words,
    name_set,
)

NAMES = ("blue", "green", "red")


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        (ValueRange(1.0, math.inf, False), "age > 1"),
        (ValueRange(1.0, math.inf, True), "age > 1 or missing"),
        (ValueRange(-math.inf, 0.1 + 0.2, False), "age <= 0.3"),
        (ValueRange(1.0, 3.0, True), "1 < age <= 3 or missing"),
        (ValueRange(math.inf, math.inf, True), "age is missing"),
        (ValueRange(-math.inf, math.inf, False), "age is known"),
    ],
)
def test_an_interval_in_words(interval: ValueRange, words: str) -> None:
    assert in_words("age", interval, None, mentions_missing=True) == words
    short = in_words("age", interval, None, mentions_missing=False)
    assert short == words.removesuffix(" or missing")


@pytest.mark.parametrize(
    ("held", "missing", "words"),
    [
        ([True, False, True], True, "c in {blue, red} or missing"),
        ([True, False, True], False, "c in {blue, red}"),
        ([False, False, False], True, "c is missing"),
        ([True, True, True], False, "c is known"),
    ],
)
def test_a_set_in_words(held: list[bool], missing: bool, words: str) -> None:
    condition = CategorySet(np.array(held), missing)
    assert in_words("c", condition, NAMES, mentions_missing=True) == words


def test_of_many_categories_the_fewer_are_named_ten_at_most() -> None:
    names = [f"w{k}" for k in range(40)]
    held = np.arange(40) < 15
    assert name_set(held, names).endswith("w9 and 5 more}")
    assert name_set(~held, names).startswith("not in {w0, ")
    assert name_set(np.arange(40) >= 38, names) == "in {w38, w39}"
