"""scikit-learn's own checks of an estimator, for every registered algorithm for two classes."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from core.registry import ALGORITHMS

# Checks that are known to fail, by algorithm and name, each with its reason.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "treerank_forest": {
        "check_sample_weight_equivalence_on_dense_data": "draws rows, so that a row drawn twice is "
        "not two rows of which each may be drawn"
    }
}

CHECKS = [
    pytest.param(estimator, check, id=f"{name}-{getattr(check, 'func', check).__name__}-{i}")
    for name, algorithm in ALGORITHMS.items()
    if algorithm.target == "binary"
    for i, (estimator, check) in enumerate(
        estimator_checks_generator(
            algorithm(), expected_failed_checks=EXPECTED_FAILURES.get(name, {}), mark="skip"
        )
    )
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(estimator, check):
    check(estimator)
