"""scikit-learn's own checks of an estimator, for every registered algorithm for two classes, and for some forms."""

from collections.abc import Callable

import pytest
from sklearn.utils.estimator_checks import check_estimator

from core import AUCSVM, PAUCSVM, Logistic, RankAverage, RankBoost
from core.base.ranker import Ranker
from core.registry import ALGORITHMS
from tests.long_form import long_form

# Checks that are known to fail, by algorithm and name, each with its reason.
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": "draws rows, so that a row drawn twice is "
            "not two rows of which each may be drawn"
        }
        for name in ("random_forest", "treerank_forest")
    },
    "lambdamart": {
        "check_sample_weight_equivalence_on_dense_data": "a weight is that of a list: two rows take two places"
    },
}

CHECKED: dict[str, Callable[[], Ranker]] = {
    **{name: own for name, own in ALGORITHMS.items() if own.target == "binary"},
    "average of ranks": lambda: RankAverage(members=[Logistic(), RankBoost(n_rounds=5)]),
    "svm on landmarks": lambda: AUCSVM(feature_map="nystroem", n_components=30),
    "svm on bins": lambda: AUCSVM(feature_map="bins", C=1.0),
    "sigmoid svm on waves": lambda: PAUCSVM(
        feature_map="fourier", n_components=30, surrogate="sigmoid", fpr_max=0.5, C=1.0
    ),
}

# What learns enough for scikit-learn. Most choose no C and no rate of noise here, for which they would fit several
# times, and the slow ones have fewer rounds.
FEW = {"n_rounds": 20, "max_rounds": 100, "n_trees": 5, "n_bags": 2, "coarseness": 10}
FEWER: dict[str, dict[str, float]] = {
    "sampled_martirank": {"n_rounds": 5, "noise_rate": 0.0},
    "komori_eguchi_boost": {"n_rounds": 5},
    **{
        name: {"C": 1.0}
        for name in ("asymmetric_svm", "pauc_svm", "pauc_svm_dc", "top_push", "p_norm_push")
    },
}


# One of each family: what scikit-learn asks is the base's to keep, and test_contract.py holds each algorithm to it.
ONE_OF_A_FAMILY = (
    "rankboost",
    "logistic",
    "average of ranks",
)


# One test for all checks of an algorithm: most take less than what a test of its own costs.
@pytest.mark.parametrize(
    "name",
    [
        *ONE_OF_A_FAMILY,
        *(pytest.param(name, marks=long_form) for name in CHECKED if name not in ONE_OF_A_FAMILY),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_check_estimator(name: str) -> None:
    ranker = CHECKED[name]()
    few = FEW | FEWER.get(name, {})
    ranker.set_params(**{k: v for k, v in few.items() if k in ranker.get_params()})
    done = check_estimator(ranker, expected_failed_checks=EXPECTED_FAILURES.get(name, {}))
    states = [check["status"] for check in done]
    assert states.count("passed") > 50
    assert states.count("xfail") == len(EXPECTED_FAILURES.get(name, {}))
