"""Conditions on one feature, and their words."""

import math

import numpy as np
import pytest

from core.explain.conditions import (
    ANY_NUMBER,
    CategorySet,
    ValueRange,
    any_category,
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


def test_a_path_of_cuts_lets_through_what_each_of_them_does() -> None:
    values = np.array([np.nan, -5.0, 0.0, 0.5, 1.0, 2.0, 7.0])
    rng = np.random.default_rng(0)
    for _ in range(200):
        condition, held = ANY_NUMBER, np.ones(len(values), dtype=bool)
        for _ in range(3):
            threshold = rng.choice([-math.inf, -5.0, 0.0, 0.5, 1.0, 2.0])
            missing_above = bool(rng.integers(2)) and threshold > -math.inf
            above = np.where(np.isnan(values), missing_above, values > threshold)
            side = int(rng.integers(2))
            condition = condition.divide(threshold, missing_above=missing_above)[side]
            held &= above == (side == 0)
        low, high, missing = condition
        through = np.where(np.isnan(values), missing, (values > low) & (values <= high))
        assert through.tolist() == held.tolist()


def test_a_set_is_divided_as_its_members_are() -> None:
    above, below = any_category(3).divide(np.array([True, False, True]), missing_above=False)
    assert (above.category_mask.tolist(), above.missing) == ([True, False, True], False)
    assert (below.category_mask.tolist(), below.missing) == ([False, True, False], True)
    inner, outer = above.divide(np.array([True, True, False]), missing_above=True)
    assert (inner.category_mask.tolist(), inner.missing) == ([True, False, False], False)
    assert (outer.category_mask.tolist(), outer.missing) == ([False, False, True], False)


def test_of_many_categories_the_fewer_are_named_ten_at_most() -> None:
    names = [f"w{k}" for k in range(40)]
    held = np.arange(40) < 15
    assert name_set(held, names).endswith("w9 and 5 more}")
    assert name_set(~held, names).startswith("not in {w0, ")
    assert name_set(np.arange(40) >= 38, names) == "in {w38, w39}"
