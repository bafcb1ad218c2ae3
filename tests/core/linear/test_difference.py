"""CCCP: the objective by its definition, and a descent from its start."""

from typing import Any

import numpy as np
import pytest

from core import AUCSVM, PAUCSVM, PAUCSVMDC
from tests.core.linear.surrogate_oracle import hinge


def test_from_zero_on_it_is_the_convex_machine() -> None:
    rng = np.random.default_rng(0)
    y = rng.random(150) < 0.3
    X = rng.normal(size=(150, 3))
    X[y, 0] += 1.5
    convex = PAUCSVM(fpr_max=0.3, C=1.0, tol=1e-7, max_iter=5000).fit(X, y)
    same = PAUCSVMDC(fpr_max=0.3, C=1.0, tol=1e-7, max_iter=5000).fit(X, y)
    assert same.objective_ == pytest.approx(convex.objective_, rel=1e-6)


def test_it_is_lower_in_the_hinge_than_its_start() -> None:
    rng = np.random.default_rng(1)
    y = rng.random(1000) < 0.2
    X = rng.normal(size=(1000, 4))
    X[y, 0] += 2.0
    X[y, 1] *= 2.0
    ranker = PAUCSVMDC(fpr_min=0.1, fpr_max=0.3, C=10.0).fit(X, y)
    start = AUCSVM(C=10.0).fit(X, y)
    n = (~y).sum()
    low, high = int(n * 0.1), int(np.ceil(n * 0.3))

    def objective(fitted: Any) -> Any:
        scores, w = fitted.decision_function(X), fitted.coef_ * X.std(axis=0)
        return 0.5 * (w**2).sum() + 10.0 * hinge(scores[y], scores[~y], low, high)

    assert not ranker.collapsed_
    assert objective(ranker) == pytest.approx(ranker.objective_, rel=1e-6)
    assert objective(ranker) < objective(start)
