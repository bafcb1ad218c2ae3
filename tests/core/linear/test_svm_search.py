"""Searches over the parameters of the SVMs: any of them may be a list, C shares one fit, numbers may be ranges."""

from typing import Any

import numpy as np
import pytest

from core.metrics import auc
from core.selection import GridSearch, HeldOut, Metrics, run_plan, run_trial
from core.selection.trial import Trial


def ring(seed: int, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Positives around the negatives: no line ranks them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (np.hypot(*X.T) > 1.3).astype(int)


def search(planner: GridSearch) -> tuple[dict[str, Any], list[Trial]]:
    (X, y), (X_held, y_held) = ring(0), ring(1)

    def judge(scores: Any) -> Any:
        area = auc(y_held, scores)
        return Metrics(area, area)

    def carry_out(trial: Any, _: Any) -> Any:
        return run_trial(trial, lambda ranker, call: ranker.fit(X, y, callback=call), X_held, judge)

    chosen, tried = run_plan(planner, [HeldOut(y_held)], carry_out)
    assert all(one.failed is None for one in tried)
    return dict(chosen.members[0].parameters), [one.trial for one in tried]


@pytest.mark.filterwarnings("ignore::core.linear.SupportWarning")
def test_a_grid_over_map_bandwidth_and_cost() -> None:
    space = {"feature_map": [None, "fourier"], "bandwidth": [0.05, 1.0], "C": [0.1, 10.0]}
    fixed = {"fpr_max": 0.5, "n_components": 60}
    parameters, trials = search(GridSearch("pauc_svm", space, fixed))
    assert len(trials) == 4
    assert {trial.path for trial in trials} == {(0.1, 10.0)}
    assert parameters["feature_map"] == "fourier"
    assert parameters["bandwidth"] == 1.0
