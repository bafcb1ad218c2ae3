"""A tree in words: what holds on the way to each of its leaves."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Range(NamedTuple):
    """What a path lets through of one feature.

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


EVERYTHING = Range(-math.inf, math.inf, True)

Path = dict[int, Range]


def describe_leaves(splits: npt.NDArray[np.void], name: Callable[[int], str]) -> list[str]:
    """Say for each leaf of a tree which rows it holds.

    Parameters
    ----------
    splits : ndarray of shape (n_leaves - 1,), `tree_sum.SPLITS`
    name : callable feature -> str

    Returns
    -------
    list of str
        In the order of the leaves, each such as "1 < age <= 3 or missing and income > 2".
    """
    paths: list[Path] = [{}]
    with_missing: dict[int, bool] = {}
    for leaf, feature, threshold, missing_above, speaks_of_missing in splits.tolist():
        with_missing[feature] = speaks_of_missing
        so_far = paths[leaf].get(feature, EVERYTHING)
        if threshold == -math.inf:  # sets the missing apart from all values
            above = so_far._replace(missing=False)
            below = Range(math.inf, math.inf, True)
        else:
            above = Range(max(so_far.low, threshold), so_far.high, so_far.missing and missing_above)
            below = Range(
                so_far.low, min(so_far.high, threshold), so_far.missing and not missing_above
            )
        paths.append({**paths[leaf], feature: below})
        paths[leaf] = {**paths[leaf], feature: above}
    return [
        " and ".join(
            _condition(name(feature), held, with_missing[feature]) for feature, held in path.items()
        )
        for path in paths
    ]


def _condition(name: str, held: Range, speaks_of_missing: bool) -> str:
    low, high = f"{held.low:.10g}", f"{held.high:.10g}"
    if held.low == math.inf:
        return f"{name} is missing"
    if held.low > -math.inf and held.high < math.inf:
        condition = f"{low} < {name} <= {high}"
    elif held.low > -math.inf:
        condition = f"{name} > {low}"
    elif held.high < math.inf:
        condition = f"{name} <= {high}"
    else:
        return f"{name} is known"
    return condition + " or missing" * (held.missing and speaks_of_missing)
