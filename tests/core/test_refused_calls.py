"""Public functions called with wrong values: an error that names the parameter, or the documented result."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from core import RankBoost
from core.base.shards import Placement
from core.errors import CoreError
from core.explain import permutation_importance
from core.metrics import guarantees_on_scores, list_curve, roc_curve
from core.monitoring import monitor_rate
from core.selection import GridSearch, auto_ranker, choose, search_ranker, walk_path

NAN = float("nan")
X = np.random.default_rng(0).normal(size=(120, 2))
Y = X[:, 0] > 0


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: list_curve("recall", roc_curve([1, 0], [1, 0]), 0.5), "kind"),
        (lambda: monitor_rate([], [], 0.1, planned=5, alpha=5), "alpha"),
        (lambda: choose([]), "values"),
        (lambda: walk_path(RankBoost(), X, [], len), "values"),
        (lambda: permutation_importance(len, X, Y, n_repeats=0), "n_repeats"),
        (lambda: GridSearch("logistic", {"C": [1, 1.0]}), "C"),
        (lambda: guarantees_on_scores({"a": [NAN] * 50}, fpr=0.1), "'a'"),
        (lambda: guarantees_on_scores({"a": ["x"] * 50}, fpr=0.1), "'a'"),
        (lambda: search_ranker(X, Y, GridSearch("logistic", {"C": [1.0]}), metric="x"), "'x'"),
        (lambda: auto_ranker(X, Y, budget_seconds=1, metric="x"), "'x'"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(call: Callable[[], object], name: str) -> None:
    with pytest.raises(CoreError) as caught:
        call()
    assert name in str(caught.value)


def test_guarantees_take_scores_in_any_order() -> None:
    ascending = guarantees_on_scores({"a": np.arange(200.0)}, fpr=0.1)
    assert guarantees_on_scores({"a": list(range(199, -1, -1))}, fpr=0.1) == ascending
    assert guarantees_on_scores({"a": [], "b": range(200)}, fpr=0.1).groups[0].rows == 0


def test_a_value_that_is_not_known_is_never_the_greatest() -> None:
    assert choose([NAN, 0.9, NAN]) == 1
    assert choose([NAN, NAN]) == 0


def test_a_search_takes_the_name_of_a_metric() -> None:
    planner = GridSearch("logistic", {"C": [0.1, 1.0]}, n_splits=2)
    found = search_ranker(X, Y, planner, metric="average_precision")
    values = [row.value for row in found.chosen.candidates]
    assert max(values) == pytest.approx(1.0, abs=0.05)


def test_fits_in_several_threads_have_different_numbers() -> None:
    numbers: list[int] = []
    draw = lambda: numbers.extend(next(Placement._fits) for _ in range(2000))  # noqa: E731
    threads = [threading.Thread(target=draw) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(set(numbers)) == 8000
