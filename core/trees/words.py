"""A tree in words: what holds on the way to each of its leaves."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from core.coding.category_sets import Words, unpack
from core.table import Categories
from core.trees.cuts import NO_SET
from core.words import name_set


class Range(NamedTuple):
    """What a path lets through of one numeric feature.

    Attributes
    ----------
    low, high : float
        low < x <= high; none at all where low is infinite.
    missing : bool
        Whether a missing x goes this way.
    """

    low: float
    high: float
    missing: bool


class Members(NamedTuple):
    """What a path lets through of one categorical feature.

    Attributes
    ----------
    held : ndarray of shape (n_categories,), bool
    missing : bool
    """

    held: npt.NDArray[np.bool_]
    missing: bool


EVERYTHING = Range(-math.inf, math.inf, True)

Path = dict[int, Range | Members]


def describe_leaves(
    splits: npt.NDArray[np.void], sets: Words, name: Callable[[int], str], categories: Categories
) -> list[str]:
    """Say for each leaf of a tree which rows it holds.

    Parameters
    ----------
    splits : ndarray of shape (n_leaves - 1,), `tree_sum.SPLITS`
    sets : ndarray of shape (n_words,), uint64
    name : callable feature -> str
    categories : tuple, one entry per feature
        None for a numeric one.

    Returns
    -------
    list of str
        In the order of the leaves, each such as
        "1 < age <= 3 or missing and colour in {green, red}".
    """
    paths: list[Path] = [{}]
    with_missing: dict[int, bool] = {}
    for split in splits:
        leaf, feature = int(split["leaf"]), int(split["feature"])
        with_missing[feature] = bool(split["speaks_of_missing"])
        so_far = paths[leaf].get(feature)
        above: Range | Members
        below: Range | Members
        if split["set"] == NO_SET:
            assert not isinstance(so_far, Members)  # a feature has either sets or thresholds
            above, below = _divide_range(split, so_far or EVERYTHING)
        else:
            assert not isinstance(so_far, Range)
            above, below = _divide_members(split, sets, len(categories[feature] or ()), so_far)
        paths.append({**paths[leaf], feature: below})
        paths[leaf] = {**paths[leaf], feature: above}
    return [
        " and ".join(
            f"{_condition(name(feature), held, categories[feature])}"
            f"{_or_missing(held, with_missing[feature])}"
            for feature, held in path.items()
        )
        for path in paths
    ]


def _divide_range(split: np.void, so_far: Range) -> tuple[Range, Range]:
    threshold, missing_above = float(split["threshold"]), bool(split["missing_above"])
    if threshold == -math.inf:  # sets the missing apart from all values
        return so_far._replace(missing=False), Range(math.inf, math.inf, True)
    return (
        Range(max(so_far.low, threshold), so_far.high, so_far.missing and missing_above),
        Range(so_far.low, min(so_far.high, threshold), so_far.missing and not missing_above),
    )


def _divide_members(
    split: np.void, sets: Words, n_categories: int, so_far: Members | None
) -> tuple[Members, Members]:
    stay, missing_above = unpack(sets, split["set"], n_categories), bool(split["missing_above"])
    if so_far is None:
        so_far = Members(np.ones(n_categories, dtype=np.bool_), True)
    return (
        Members(so_far.held & stay, so_far.missing and missing_above),
        Members(so_far.held & ~stay, so_far.missing and not missing_above),
    )


def _condition(name: str, held: Range | Members, names: tuple[str, ...] | None) -> str:
    if isinstance(held, Members):
        return f"{name} {name_set(held.held, names or ())}"
    low, high = f"{held.low:.10g}", f"{held.high:.10g}"
    if held.low == math.inf:
        return f"{name} is missing"
    if held.low > -math.inf and held.high < math.inf:
        return f"{low} < {name} <= {high}"
    if held.low > -math.inf:
        return f"{name} > {low}"
    if held.high < math.inf:
        return f"{name} <= {high}"
    return f"{name} is known"


def _or_missing(held: Range | Members, speaks_of_missing: bool) -> str:
    nothing_else = held.low == math.inf if isinstance(held, Range) else not held.held.any()
    return " or missing" * (held.missing and speaks_of_missing and not nothing_else)
