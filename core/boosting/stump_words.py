"""A sum of stumps in words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from core.coding.category_sets import Bools, Words, unpack
from core.explain.conditions import ANY_NUMBER, Condition, any_category, in_words
from core.table import Categories
from core.trees.cuts import NO_SET

from .stumps import StepFunctions


def describe_steps(
    steps: StepFunctions, name: Callable[[int], str], categories: Categories
) -> list[dict[str, Any]]:
    """Describe step functions for a reader, ready for JSON.

    Parameters
    ----------
    steps : StepFunctions
    name : callable feature -> str
    categories : tuple, one entry per feature

    Returns
    -------
    list of dict
        name; thresholds and values (one more than thresholds), or categories and their values; and
        the value of a missing x. With the offset of all rows they make the score.
    """
    features = []
    for feature, thresholds, values, missing in steps.per_feature():
        names = categories[feature]
        described: dict[str, Any] = {"feature": name(feature)}
        if names:
            described |= {"categories": list(names), "values": values.tolist()}
        else:
            first = int(np.isneginf(thresholds[0]))  # no value lies below it: JSON knows no -inf
            described |= {
                "thresholds": thresholds[first:].tolist(),
                "values": values[first:].tolist(),
            }
        features.append(described | {"missing": missing})
    return features


def describe_rules(
    rounds: npt.NDArray[np.void],
    sets: Words,
    has_missing: Bools,
    name: Callable[[int], str],
    categories: Categories,
) -> list[dict[str, Any]]:
    """Describe stumps for a reader, ready for JSON.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,)
    sets : ndarray of shape (n_words,), uint64
    has_missing : ndarray of shape (n_features,), bool
        Rules speak of the missing only where there were some at fit.
    name : callable feature -> str
    categories : tuple, one entry per feature

    Returns
    -------
    list of dict
        One sentence per distinct stump with what it adds in all, greatest first.
    """
    rounds = rounds[rounds["feature"] >= 0]
    keys = rounds[["feature", "threshold", "set", "sign", "missing_above"]].copy()
    keys["threshold"][keys["set"] != NO_SET] = 0.0  # one NaN is not another
    stumps, which = np.unique(keys, return_inverse=True)
    steps_taken = rounds["alpha"] * (rounds["high"] - rounds["low"])
    adds = np.bincount(which, weights=steps_taken, minlength=len(stumps))
    rules = []
    for k in np.argsort(-adds, kind="stable"):
        stump, feature = stumps[k], int(stumps[k]["feature"])
        own_name, names = name(feature), categories[feature]
        missing_above = bool(stump["missing_above"])
        sides: tuple[Condition, Condition]
        if names:
            above = unpack(sets, stump["set"], len(names))
            sides = any_category(len(names)).divide(above, missing_above=missing_above)
        else:
            sides = ANY_NUMBER.divide(float(stump["threshold"]), missing_above=missing_above)
        high = sides[0] if stump["sign"] > 0 else sides[1]
        rows = in_words(own_name, high, names, mentions_missing=bool(has_missing[feature]))
        rule = f"{rows} adds {adds[k]:.3g}"
        rules.append({"feature": own_name, "rule": rule, "adds": float(adds[k])})
    return rules
