"""A sum of stumps in words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .stumps import StepFunctions


def describe(
    rounds: npt.NDArray[np.void],
    steps: StepFunctions,
    has_missing: npt.NDArray[np.bool_],
    name: Callable[[int], str],
) -> dict[str, Any]:
    """Describe a sum of stumps for a reader, ready for JSON.

    Parameters
    ----------
    rounds : structured ndarray of shape (n_rounds,)
    steps : StepFunctions
        Folded from the rounds.
    has_missing : ndarray of shape (n_features,), bool
        Rules speak of the missing only where there were some at fit.
    name : callable feature -> str

    Returns
    -------
    dict
        features: name, thresholds, values (one more than thresholds) and the value of a missing x,
        which with the offset of all rows make the score; rules: one sentence per distinct stump
        with what it adds in all, greatest first.
    """
    features = []
    for feature, thresholds, values, missing in steps.per_feature():
        first = int(np.isneginf(thresholds[0]))  # no value lies below it: JSON knows no -inf
        features.append(
            {
                "feature": name(feature),
                "thresholds": thresholds[first:].tolist(),
                "values": values[first:].tolist(),
                "missing": missing,
            }
        )
    rounds = rounds[rounds["feature"] >= 0]
    keys = ["feature", "threshold", "sign", "missing_above"]
    stumps, which = np.unique(rounds[keys], return_inverse=True)
    steps_taken = rounds["alpha"] * (rounds["high"] - rounds["low"])
    adds = np.bincount(which, weights=steps_taken, minlength=len(stumps))
    rules = [
        {
            "feature": name(int(stumps[k]["feature"])),
            "rule": _sentence(stumps[k], bool(has_missing[stumps[k]["feature"]]), name, adds[k]),
            "adds": float(adds[k]),
        }
        for k in np.argsort(-adds, kind="stable")
    ]
    return {"features": features, "rules": rules}


def _sentence(stump: np.void, has_missing: bool, name: Callable[[int], str], adds: float) -> str:
    feature, threshold, sign, missing_above = stump.item()
    if np.isneginf(threshold):
        # missing_above is False: the stump sets the missing apart
        condition = "is known" if sign > 0 else "is missing"
    else:
        condition = f"{'>' if sign > 0 else '<='} {threshold:.10g}"
        if has_missing and missing_above == (sign > 0):
            condition += " or missing"
    return f"{name(feature)} {condition} adds {adds:.3g}"
