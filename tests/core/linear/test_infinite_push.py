"""The Infinite Push is the partial AUC of a window that holds one negative, the highest."""

from typing import Any

import numpy as np
import pytest

from core import PAUCSVM
from core.metrics.window import window_counts


def infinite_push(s: np.ndarray, z: np.ndarray) -> float:
    """Agarwal (2011), with the hinge loss: the mean over positives, at the negative where it is greatest."""
    return max(np.maximum(1.0 - (s - score), 0.0).mean() for score in z)


def test_a_window_of_one_negative_holds_one() -> None:
    """1/13 is stored as a little more than 1/13, and 13 times that as more than 1."""
    assert {window_counts(n, 0.0, 1 / n) for n in range(2, 2000)} == {(0, 1)}


@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
def test_the_machine_minimises_the_infinite_push(C: float) -> None:
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(1.5, 1, (15, 2)), rng.normal(0, 1, (25, 2))])
    y = np.repeat([1, 0], [15, 25])

    def objective(w: Any) -> Any:
        scores = X @ w
        return 0.5 * w @ w + C * infinite_push(scores[y == 1], scores[y == 0])

    machine = PAUCSVM(fpr_max=1 / 25, C=C, tol=1e-9, standardize=False, anchor=None).fit(X, y)
    assert not machine.collapsed_
    assert objective(machine.coef_) == pytest.approx(machine.objective_, abs=1e-9)
    for size in (1e-4, 1e-2, 1.0):
        for step in rng.normal(size=(200, 2)):
            assert objective(machine.coef_ + size * step) >= machine.objective_ - 1e-7 * C
