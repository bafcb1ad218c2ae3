"""Conditions on one feature in words: the one writer for stumps, trees, ranking trees and programs.

What a model lets through of a feature is an `Interval` or a `CategorySet`. A cut divides it into the part above and the
part below; the parts of a path's cuts are divided on. `in_words` says what is left::

    above, below = ANY_NUMBER.divide(3.0, missing_above=True)
    in_words("age", above, None, mentions_missing=True)     # "age > 3 or missing"
    in_words("age", below, None, mentions_missing=True)     # "age <= 3"

    held, others = any_category(3).divide(np.array([True, False, True]), missing_above=False)
    in_words("colour", held, ("blue", "green", "red"), mentions_missing=False)     # "colour in {blue, red}"

Conditions are joined by " and ". A reader hears of the missing only where the feature had some at fit.

To a ranker a date is a number. Who knows better says how the numbers of a feature are written::

    with spelling_numbers({"since": lambda seconds: date.fromtimestamp(seconds).isoformat()}):
        ranker.structure()     # "since > 2026-01-31"
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_NAMED = 10  # categories in a sentence

Spelling = Callable[[float], str]
_NO_SPELLINGS: Mapping[str, Spelling] = MappingProxyType({})
_SPELLINGS: ContextVar[Mapping[str, Spelling]] = ContextVar("spellings", default=_NO_SPELLINGS)


@contextmanager
def spelling_numbers(spellings: Mapping[str, Spelling]) -> Iterator[None]:
    """Within the block write the numbers of these features, by their names, in a way of their own."""
    token = _SPELLINGS.set(spellings)
    try:
        yield
    finally:
        _SPELLINGS.reset(token)


def spell_number(name: str, value: float, digits: int = 10) -> str:
    """Write a number of the feature of this name: to so many digits, or as `spelling_numbers` has it."""
    spelling = _SPELLINGS.get().get(name)
    return f"{value:.{digits}g}" if spelling is None else spelling(value)


class Interval(NamedTuple):
    """What is let through of a numeric feature."""

    low: float
    high: float
    """low < x <= high; no number at all where low is infinite."""
    missing: bool
    """Whether a missing x is let through."""

    def divide(self, threshold: float, *, missing_above: bool) -> tuple["Interval", "Interval"]:
        """Return the part above a threshold and the part below; -inf sets the missing apart from all values."""
        if threshold == -math.inf:
            return self._replace(missing=False), Interval(math.inf, math.inf, self.missing)
        return (
            Interval(max(self.low, threshold), self.high, self.missing and missing_above),
            Interval(self.low, min(self.high, threshold), self.missing and not missing_above),
        )


class CategorySet(NamedTuple):
    """What is let through of a categorical feature."""

    held: npt.NDArray[np.bool_]
    """Shape (n_categories,), bool."""
    missing: bool
    """Whether a missing or unknown category is let through."""

    def divide(
        self, above: npt.NDArray[np.bool_], *, missing_above: bool
    ) -> tuple["CategorySet", "CategorySet"]:
        """Return the part in a set, which counts as above the cut, and the part outside of it."""
        return (
            CategorySet(self.held & above, self.missing and missing_above),
            CategorySet(self.held & ~above, self.missing and not missing_above),
        )


Condition = Interval | CategorySet

ANY_NUMBER = Interval(-math.inf, math.inf, True)


def any_category(n_categories: int) -> CategorySet:
    """Let everything through."""
    return CategorySet(np.ones(n_categories, dtype=np.bool_), True)


def in_words(
    name: str, condition: Condition, categories: Sequence[str] | None, *, mentions_missing: bool
) -> str:
    """Say which values of a feature a condition lets through.

    Parameters
    ----------
    name : str
        The feature's.
    categories : sequence of str, or None
        The categories' names; None for a numeric feature.
    mentions_missing : bool
        Whether to add "or missing" where missing values are let through beside others.
    """
    if isinstance(condition, CategorySet):
        words = f"{name} {name_set(condition.held, categories or ())}"
        nothing_else = not condition.held.any()
    else:
        words, nothing_else = _interval(name, condition), condition.low == math.inf
    return words + " or missing" * (condition.missing and mentions_missing and not nothing_else)


def _interval(name: str, interval: Interval) -> str:
    low, high = interval.low, interval.high
    if low == math.inf:
        return f"{name} is missing"
    if low > -math.inf and high < math.inf:
        return f"{spell_number(name, low)} < {name} <= {spell_number(name, high)}"
    if low > -math.inf:
        return f"{name} > {spell_number(name, low)}"
    if high < math.inf:
        return f"{name} <= {spell_number(name, high)}"
    return f"{name} is known"


def name_set(held: npt.NDArray[np.bool_], names: Sequence[str]) -> str:
    """Name the categories of a set, or those that are not in it where these are far fewer."""
    if held.all():
        return "is known"
    if not held.any():
        return "is missing"
    few = held if held.sum() <= len(names) / 2 or held.sum() <= MAX_NAMED else ~held
    listed = [names[k] for k in np.flatnonzero(few)[:MAX_NAMED]]
    more = int(few.sum()) - len(listed)
    inside = ", ".join(listed) + (f" and {more} more" if more else "")
    return f"{'in' if few is held else 'not in'} {{{inside}}}"
