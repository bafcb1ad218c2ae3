"""Conditions on one feature as text, for stumps, trees, ranking trees and branching programs.

A condition is a `ValueRange` of numbers or a `CategorySet`. A split divides it into the part above and the part below.
`in_words` describes what is left after the splits of a path:

>>> above, below = ANY_NUMBER.divide(3.0, missing_above=True)
>>> in_words("age", above, None, mentions_missing=True)
'age > 3 or missing'
>>> in_words("age", below, None, mentions_missing=True)
'age <= 3'
>>> above, below = any_category(3).divide(np.array([True, False, True]), missing_above=False)
>>> in_words("colour", above, ("blue", "green", "red"), mentions_missing=False)
'colour in {blue, red}'

Conditions of several features are joined by " and ". Missing values are mentioned only if the feature had some at fit.

To a ranker a date is a number. A caller may set how the numbers of a feature are written:

>>> with spelling_numbers({"since": lambda days: f"day {days:.0f}"}):
...     in_words("since", ANY_NUMBER.divide(31.0, missing_above=False)[0], None, mentions_missing=False)
'since > day 31'
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# Categories that a sentence names; the others are counted.
MAX_NAMED = 10

Spelling = Callable[[float], str]
_NO_SPELLINGS: Mapping[str, Spelling] = MappingProxyType({})
_SPELLINGS: ContextVar[Mapping[str, Spelling]] = ContextVar("spellings", default=_NO_SPELLINGS)


@contextmanager
def spelling_numbers(spellings: Mapping[str, Spelling]) -> Iterator[None]:
    """Within the block, write the numbers of some features, by name, with functions of their own."""
    token = _SPELLINGS.set(spellings)
    try:
        yield
    finally:
        _SPELLINGS.reset(token)


def spell_number(name: str, value: float, digits: int = 10) -> str:
    """Return a number of a feature as text, with `digits` significant digits or as `spelling_numbers` sets."""
    spelling = _SPELLINGS.get().get(name)
    return f"{value:.{digits}g}" if spelling is None else spelling(value)


class ValueRange(NamedTuple):
    """The condition low < x <= high on a numeric feature, with or without missing values; only these if low is inf."""

    low: float
    high: float
    missing: bool
    """Whether a missing value satisfies the condition."""

    def divide(self, threshold: float, *, missing_above: bool) -> tuple["ValueRange", "ValueRange"]:
        """Return the parts above and below a threshold; -inf separates missing values from all others."""
        if threshold == -math.inf:
            return self._replace(missing=False), ValueRange(math.inf, math.inf, self.missing)
        return (
            ValueRange(max(self.low, threshold), self.high, self.missing and missing_above),
            ValueRange(self.low, min(self.high, threshold), self.missing and not missing_above),
        )


class CategorySet(NamedTuple):
    """The condition that a categorical feature is in a set of categories."""

    category_mask: npt.NDArray[np.bool_]
    """Which categories are in the set. Shape (n_categories,), bool."""
    missing: bool
    """Whether a missing or unknown category satisfies the condition."""

    def divide(
        self, above: npt.NDArray[np.bool_], *, missing_above: bool
    ) -> tuple["CategorySet", "CategorySet"]:
        """Return the parts inside and outside `above`, a mask of shape (n_categories,)."""
        return (
            CategorySet(self.category_mask & above, self.missing and missing_above),
            CategorySet(self.category_mask & ~above, self.missing and not missing_above),
        )


Condition = ValueRange | CategorySet

ANY_NUMBER = ValueRange(-math.inf, math.inf, True)


def any_category(n_categories: int) -> CategorySet:
    """Return the condition that every category satisfies, missing values included."""
    return CategorySet(np.ones(n_categories, dtype=np.bool_), True)


def in_words(
    name: str, condition: Condition, categories: Sequence[str] | None, *, mentions_missing: bool
) -> str:
    """Return a condition on a feature as text.

    name: name of the feature.
    categories: names of the categories; None for a numeric feature.
    mentions_missing: whether to add "or missing" if missing values satisfy the condition beside others.
    """
    if isinstance(condition, CategorySet):
        words = f"{name} {name_set(condition.category_mask, categories or ())}"
        nothing_else = not condition.category_mask.any()
    else:
        words, nothing_else = _interval(name, condition), condition.low == math.inf
    return words + " or missing" * (condition.missing and mentions_missing and not nothing_else)


def _interval(name: str, interval: ValueRange) -> str:
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


def name_set(category_mask: npt.NDArray[np.bool_], names: Sequence[str]) -> str:
    """Return a set of categories as text: its members, or "not in" the others if these are far fewer."""
    if category_mask.all():
        return "is known"
    if not category_mask.any():
        return "is missing"
    n_inside = category_mask.sum()
    few = category_mask
    if n_inside > len(names) / 2 and n_inside > MAX_NAMED:
        few = ~category_mask
    listed = [names[k] for k in np.flatnonzero(few)[:MAX_NAMED]]
    more = int(few.sum()) - len(listed)
    inside = ", ".join(listed) + (f" and {more} more" if more else "")
    return f"{'in' if few is category_mask else 'not in'} {{{inside}}}"
