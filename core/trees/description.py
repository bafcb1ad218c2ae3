"""A tree in words: the conditions on the path to each leaf."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from core.base.table import Categories
from core.coding.categories import Words, unpack
from core.explain.conditions import (
    ANY_NUMBER,
    CategorySet,
    Condition,
    ValueRange,
    any_category,
    in_words,
)
from core.trees.category_sets import NO_SET


def describe_leaves(
    splits: npt.NDArray[np.void], sets: Words, name: Callable[[int], str], categories: Categories
) -> list[str]:
    """Return for each leaf of a tree, in words, which rows it holds.

    Parameters
    ----------
    splits : ndarray of shape (n_leaves - 1,), `boosting.tree_sum.SPLITS`
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
    paths: list[dict[int, Condition]] = [{}]
    mentions_missing: dict[int, bool] = {}
    for split in splits:
        leaf, feature = int(split["leaf"]), int(split["feature"])
        mentions_missing[feature] = bool(split["speaks_of_missing"])
        missing_above = bool(split["missing_above"])
        above: Condition
        below: Condition
        if split["set"] == NO_SET:
            numbers = paths[leaf].get(feature, ANY_NUMBER)
            assert isinstance(numbers, ValueRange)  # a feature has either sets or thresholds
            above, below = numbers.divide(float(split["threshold"]), missing_above=missing_above)
        else:
            n = len(categories[feature] or ())
            condition = paths[leaf].get(feature, any_category(n))
            assert isinstance(condition, CategorySet)
            above, below = condition.divide(
                unpack(sets, split["set"], n), missing_above=missing_above
            )
        paths.append({**paths[leaf], feature: below})
        paths[leaf] = {**paths[leaf], feature: above}
    return [
        " and ".join(
            in_words(
                name(feature),
                condition,
                categories[feature],
                mentions_missing=mentions_missing[feature],
            )
            for feature, condition in path.items()
        )
        for path in paths
    ]
