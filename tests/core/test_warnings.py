"""Every warning names the line of the caller, from whatever depth of the library it comes."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import AUCSVM, PAUCSVM, Logistic, RankAverage, RankBoost, SampledMartiRank
from core.base.ranker import StopFit
from core.linear.svm import SupportConvergenceWarning, SupportWarning


def rows(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n) > 0


def stop(step: int, of: int, info: Any) -> None:
    if step > 1:
        raise StopFit


def not_converged() -> None:
    AUCSVM(C=1000.0, tol=1e-9, max_iter=1).fit(*rows())


def collapsed() -> None:
    PAUCSVM(C=1.0).fit(np.ones((4, 1)), [0, 1, 0, 1])


def copies_held_out() -> None:
    X, y = rows(40)
    X[y] = 1.0
    RankBoost(n_rounds=5, early_stopping_rounds=2).fit(X, y)


def rounds_not_chosen() -> None:
    X, y = rows()
    RankBoost(weak_ranker="tree").fit(X, y, groups=y)


def rounds_not_chosen_in_one_list() -> None:
    X, y = rows()
    RankBoost(weak_ranker="tree").fit(X, y, query=np.zeros(len(y)))


def pairs_held_out() -> None:
    X, _ = rows(4)
    RankBoost(n_rounds=3, early_stopping_rounds=2).fit_pairs(X, [[0, 1], [1, 2], [2, 3], [0, 3]])


def stopped() -> None:
    RankBoost(n_rounds=9).fit(*rows(), callback=stop)


def stopped_while_watched() -> None:
    X, y = rows()
    RankBoost(n_rounds=9).fit_watched(X, y, X_valid=X, metric=np.ptp, callback=stop)


def stopped_in_a_thread() -> None:
    RankAverage(members=[RankBoost(n_rounds=9), Logistic()]).fit(*rows(), callback=stop)


def not_converged_in_a_thread() -> None:
    slow = AUCSVM(C=1000.0, tol=1e-9, max_iter=1)
    RankAverage(members=[slow, slow]).fit(*rows())


def noise_not_known() -> None:
    SampledMartiRank(n_rounds=2, n_bags=1).partial_fit(*rows())


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize(
    ("act", "category"),
    [
        (not_converged, SupportConvergenceWarning),
        (collapsed, SupportWarning),
        (copies_held_out, UserWarning),
        (rounds_not_chosen, UserWarning),
        (rounds_not_chosen_in_one_list, UserWarning),
        (pairs_held_out, UserWarning),
        (stopped, UserWarning),
        (stopped_while_watched, UserWarning),
        (stopped_in_a_thread, UserWarning),
        (not_converged_in_a_thread, SupportConvergenceWarning),
        (noise_not_known, UserWarning),
    ],
)
def test_a_warning_names_this_file_and_the_line_of_the_call(
    act: Callable[[], None], category: type[Warning]
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    own = [warning for warning in caught if issubclass(warning.category, category)]
    assert own
    first = act.__code__.co_firstlineno
    last = max(line for _, _, line in act.__code__.co_lines() if line is not None)
    for warning in caught:
        assert warning.filename == __file__
        assert first < warning.lineno <= last
