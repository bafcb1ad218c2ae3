"""What tests of a shift have in common: their level, the sizes that matter, their adjustment and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Test = dict[str, Any]
"""A test of the scores or of a column, as `models.column_drift` and `models.score_drift` make them."""

ALPHA = 0.01
"""The probability that rows without a shift are called shifted."""
MODERATE, LARGE = 0.1, 0.25
"""The population stability indices of a moderate and of a large shift: conventions (Siddiqi)."""


def adjust(tests: Sequence[Test], alpha: float) -> None:
    """Add the p-value adjusted for all tests (Holm), and whether the change is significant and large enough to matter;
    both are None without a test.
    """
    from core.metrics.estimates import holm

    made = [test for test in tests if test["p_value"] is not None]
    for test in tests:
        test["adjusted_p_value"] = test["changed"] = None
    adjusted = holm(np.array([test["p_value"] for test in made])).tolist()
    for test, p_value in zip(made, adjusted, strict=True):
        test["adjusted_p_value"] = p_value
        test["changed"] = bool(
            p_value < alpha and ("psi" not in test or test["psi"]["value"] >= MODERATE)
        )


def say_chance(test: Test, alpha: float) -> str:
    """Say whether an adjusted test is significant at the level `alpha`, and large enough to matter."""
    p_value = test["adjusted_p_value"]
    found = "" if p_value < alpha else "not "
    but = " but small" if p_value < alpha and not test["changed"] else ""
    shown = f"adjusted p {shown_p(p_value)}"
    return f"{found}statistically significant at {100.0 * alpha:.3g} %{but} ({shown})"


def shown_p(p_value: float) -> str:
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def with_ends(interval: Mapping[str, float]) -> str:
    return f"{interval['value']:.3f} ({interval['low']:.3f} to {interval['high']:.3f})"
