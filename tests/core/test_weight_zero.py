"""A row of weight 0 is no row: every metric, interval, test and fit has the same bits without it.

`test_forms.py` fits every form of every ranker without groups.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core import Logistic, explain, metrics, monitoring, probability, save
from core.errors import InvalidParameter
from core.metrics import AmountCosts, Costs, Price, list_metric_named, metric_named
from core.registry import ALGORITHMS
from core.selection import GridSearch, search_ranker

METRICS = [
    metric_named(name)
    for name in (
        *("auc", "gini", "average_precision", "ndcg", "ndcg@10", "ndcg@5%", "pauc:0,0.1"),
        *("empirical:0,0.1", "two_way:0.6,0.2", "precision@20", "precision@5%", "lift@10%"),
        *("lift@20", "precision_at_recall:0.6"),
    )
]
SHARES = [metric for metric in METRICS if getattr(metric, "count", None) is None]
LIST_METRICS = [list_metric_named(name) for name in ("auc", "ndcg@5", "map", "mrr", "precision@3")]
COSTS = AmountCosts(1.0, Price(rate=1.0), review=0.1)


def draw(seed: int) -> SimpleNamespace:
    """Draw rows, a third of them of weight 0, with all that the functions take beside them."""
    rng, n = np.random.default_rng(seed), 301
    y = (rng.random(n) < 0.4).astype(np.int64)
    one, two = np.round(y + 1.3 * rng.normal(size=(2, n)), 1 + seed % 2)
    found = SimpleNamespace(
        y=y,
        one=one,
        two=two,
        weight=rng.integers(0, 3, n).astype(np.float64),
        p=1.0 / (1.0 + np.exp(1.0 - one)),
        group=rng.integers(0, 60, n),
        by=rng.integers(0, 2, n),
        fold=rng.integers(0, 3, n),
        period=np.sort(rng.integers(1, 4, n)),
        query=rng.integers(0, 25, n),
        grade=y + rng.integers(0, 3, n) * y,
        amount=rng.lognormal(size=n),
        repeat=np.zeros(n, dtype=np.int64),
        row=np.arange(n),
        X=np.column_stack([one, two, rng.integers(0, 3, n)]),
    )
    for each in (found.group, found.query):  # some have no weight at all, the last one too
        found.weight[(each % 5 == 0) | (each == each.max())] = 0.0
    return found


def take(rows: SimpleNamespace, chosen: Any) -> SimpleNamespace:
    return SimpleNamespace(**{name: values[chosen] for name, values in vars(rows).items()})


def in_repeats(rows: SimpleNamespace) -> SimpleNamespace:
    """Return the rows in two repeats of folds, and in a third one in which no row has weight."""
    every = take(rows, np.tile(np.arange(rows.y.size), 3))
    every.repeat = np.repeat([0, 1, 2], rows.y.size)
    every.fold = np.where(every.repeat == 1, (every.fold + every.by) % 3, every.fold)
    every.weight = np.where(every.repeat == 2, 0.0, every.weight)
    return every


def pair(r: SimpleNamespace) -> list[Any]:
    return [r.one, r.two]


def folds(r: SimpleNamespace) -> dict[str, Any]:
    return {"fold": r.fold, "repeat": r.repeat, "row": r.row, "sample_weight": r.weight}


def of_entities(options: dict[str, Any]) -> dict[str, Any]:
    return {"entity" if name == "group" else name: value for name, value in options.items()}


def grouped(r: SimpleNamespace) -> dict[str, Any]:
    return {"sample_weight": r.weight, "group": r.group}


# What takes groups is called with them and without.
CALLS: dict[str, Callable[[SimpleNamespace, dict[str, Any]], Any]] = {
    "auc": lambda r, o: metrics.auc(r.y, r.one, r.weight),
    "auc_interval": lambda r, o: metrics.auc_interval(r.y, r.one, **o),
    "brier_score": lambda r, o: probability.brier_score(r.y, r.p, **o),
    "choose_calibration": lambda r, o: probability.choose_calibration(
        r.y, r.one, period=r.period, **o
    ),
    "compare": lambda r, o: metrics.compare(r.y, pair(r), [(0.0, 1.0), (0.0, 0.2)], **o),
    "compare_by_period": lambda r, o: monitoring.compare_by_period(
        r.y, r.one, r.two, r.period, **o
    ),
    "compare_costs": lambda r, o: metrics.compare_costs(r.y, pair(r), COSTS, r.amount, **o),
    "compare_groups": lambda r, o: metrics.compare_groups(
        r.y, r.one, r.by, windows=[(0.0, 0.3)], threshold=0.5, probability=r.p, **o
    ),
    "compare_lists": lambda r, o: metrics.compare_lists(
        r.grade, pair(r), r.query, LIST_METRICS, graded=True, sample_weight=r.weight
    ),
    "compare_metrics": lambda r, o: metrics.compare_metrics(r.y, pair(r), METRICS, **o),
    "cost_report": lambda r, o: metrics.cost_report(
        r.y, r.one, COSTS, r.amount, threshold=0.4, probability=r.p, **o
    ),
    "costs_at_thresholds": lambda r, o: metrics.costs_at_thresholds(
        r.y, r.one, COSTS, r.amount, thresholds=[0.2, 0.9], **o
    ),
    "cross_validated_areas": lambda r, o: metrics.cross_validated_areas(
        r.y, r.one, r.fold, [(0.0, 1.0), (0.0, 0.5)], **o
    ),
    "decision_curve": lambda r, o: metrics.decision_curve(r.y, r.p, [0.2, 0.5], **o),
    "fit_calibration": lambda r, o: probability.fit_calibration(r.y, r.one, "isotonic", **o),
    "fit_venn_abers": lambda r, o: probability.fit_venn_abers(r.y, r.one, r.weight),
    "group_steps": lambda r, o: metrics.group_steps(r.y, r.one, r.by, **o),
    "guaranteed_point": lambda r, o: metrics.guaranteed_point(
        r.y, r.one, fpr=0.3, sample_weight=(r.weight > 0).astype(float), costs=Costs(1.0, 2.0)
    ),
    "ks_interval": lambda r, o: metrics.ks_interval(r.y, r.one, **o),
    "list_values": lambda r, o: metrics.list_values(
        r.grade, r.one, r.query, LIST_METRICS, graded=True, sample_weight=r.weight
    ),
    "log_score": lambda r, o: probability.log_score(r.y, r.p, **o),
    "mean_reference": lambda r, o: explain.mean_reference(linear(), r.X, r.weight),
    "measure": lambda r, o: metrics.measure(r.y, r.one, METRICS, **o),
    "measure_graded": lambda r, o: metrics.measure_graded(r.grade, r.one, **o),
    "measure_lists": lambda r, o: metrics.measure_lists(
        r.grade, r.one, r.query, LIST_METRICS, graded=True, sample_weight=r.weight
    ),
    "measure_calibration": lambda r, o: monitoring.measure_calibration(
        r.p, r.y, first=1, last=1, **of_entities(o)
    ),
    "measure_calibration_difference": lambda r, o: monitoring.measure_calibration_difference(
        r.p, r.y, r.by, first=1, last=1, **of_entities(o)
    ),
    "log_odds_gap": lambda r, o: monitoring.log_odds_gap(
        r.p, r.by, sample_weight=o["sample_weight"]
    ),
    "measure_selection_ratio": lambda r, o: monitoring.measure_selection_ratio(
        r.y, r.by, first=1, last=1, **of_entities(o)
    ),
    "measure_auc": lambda r, o: monitoring.measure_auc(
        r.y, r.one, first=1, last=1, **of_entities(o)
    ),
    "measure_pair": lambda r, o: monitoring.measure_pair(
        r.y, r.one, r.two, last=1, **of_entities(o)
    ),
    "swap_set": lambda r, o: monitoring.swap_set(
        r.y, r.by, r.y, r.by, sample_weight=o["sample_weight"]
    ),
    "measure_periods": lambda r, o: monitoring.measure_periods(r.y, r.one, r.period, **o),
    "measure_validation": lambda r, o: monitoring.measure_validation(r.y, r.one, **o),
    "misrank_fraction": lambda r, o: metrics.misrank_fraction(r.y, r.one, r.weight),
    "operating_point": lambda r, o: metrics.operating_point(r.y, r.one, fpr=0.2, **o),
    "partial_auc": lambda r, o: metrics.partial_auc(r.y, r.one, 0.1, 0.3, sample_weight=r.weight),
    "partial_auc_interval": lambda r, o: metrics.partial_auc_interval(r.y, r.one, 0.0, 0.2, **o),
    "partial_dependence": lambda r, o: explain.partial_dependence(
        linear(), r.X, [0], sample_weight=r.weight
    ),
    "permutation_importance": lambda r, o: explain.permutation_importance(
        linear().score_rows, r.X, r.y, r.weight
    ),
    "reliability": lambda r, o: probability.reliability(r.y, r.p, n_bootstrap=20, **o),
    "roc_curve": lambda r, o: metrics.roc_curve(r.y, r.one, r.weight),
    "summarise": lambda r, o: metrics.summarise(r.y, r.one, r.weight, group=o.get("group")),
    "tpr_at_fpr": lambda r, o: metrics.tpr_at_fpr(r.y, r.one, 0.1, r.weight),
    "value_caught": lambda r, o: metrics.value_caught(r.y, r.one, r.amount, **o),
    "value_of_metric": lambda r, o: [
        metrics.value_of_metric(each, r.y, r.one, r.weight) for each in METRICS
    ],
    "variable_dependence": lambda r, o: explain.variable_dependence(
        linear(), r.X, sample_weight=r.weight, n_rows=20
    ),
    # the same with folds
    "compare in folds": lambda r, o: metrics.compare(r.y, pair(r), **folds(r)),
    "compare_metrics in folds": lambda r, o: metrics.compare_metrics(
        r.y, pair(r), SHARES, **folds(r)
    ),
    "cross_validated_areas in folds": lambda r, o: metrics.cross_validated_areas(
        r.y, r.one, **folds(r)
    ),
}


def linear() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return Logistic().fit(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))


def bits(found: Any) -> Any:
    """Return a result as nested tuples with the bytes of its numbers, which == compares bit by bit."""
    if is_dataclass(found):
        names = [field.name for field in fields(found)]
        return (type(found).__name__, *(bits(getattr(found, name)) for name in names))
    if isinstance(found, np.ndarray):
        return found.shape, found.dtype.str, found.tobytes()
    if isinstance(found, float):
        return np.float64(found).tobytes()
    if isinstance(found, dict):
        return tuple((bits(key), bits(value)) for key, value in found.items())
    if isinstance(found, list | tuple):
        return tuple(bits(each) for each in found)
    assert found is None or isinstance(found, str | bytes | int | np.integer | np.bool_), type(
        found
    )
    return found


def test_every_function_with_weights_is_here() -> None:
    def weighted(module: ModuleType) -> set[str]:
        return {
            name
            for name in module.__all__
            if inspect.isfunction(function := getattr(module, name))
            and "sample_weight" in inspect.signature(function).parameters
        }

    every = set().union(*map(weighted, (metrics, probability, monitoring, explain)))
    assert every == {name for name in CALLS if " " not in name}


@pytest.mark.parametrize("name", CALLS)
def test_rows_of_weight_0_change_no_bit(name: str) -> None:
    call = CALLS[name]
    for seed in range(2):
        rows = in_repeats(draw(seed)) if name.endswith("in folds") else draw(seed)
        kept = take(rows, rows.weight > 0)
        for options in (grouped, lambda r: {"sample_weight": r.weight}):
            assert bits(call(rows, options(rows))) == bits(call(kept, options(kept)))


FEW = {
    "n_rounds": 6,
    "max_rounds": 60,
    "n_trees": 3,
    "n_bags": 1,
    "coarseness": 6,
    "early_stopping_rounds": 3,
    "validation_fraction": 0.3,
    "pruning": "cv",
}
BINARY = [name for name, algorithm in ALGORITHMS.items() if algorithm.target == "binary"]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", BINARY)
def test_rows_of_weight_0_change_no_bit_of_a_fit(name: str) -> None:
    algorithm, rows = ALGORITHMS[name], draw(0)
    known = algorithm().get_params(deep=False)
    ranker = algorithm(**{key: value for key, value in FEW.items() if key in known})
    kept = take(rows, rows.weight > 0)
    for units in ("groups", "query"):
        try:
            found = save(ranker.fit(rows.X, rows.y, rows.weight, **{units: rows.query}))
        except InvalidParameter:  # it takes none
            continue
        with_none = ranker.fit(kept.X, kept.y, kept.weight, **{units: kept.query})
        assert save(with_none) == found


def test_rows_of_weight_0_change_no_bit_of_a_search() -> None:
    rows, found = draw(0), []
    for r in (rows, take(rows, rows.weight > 0)):
        planner = GridSearch("logistic", {"C": [0.1, 1.0]})
        found.append(
            save(search_ranker(r.X, r.y, planner, sample_weight=r.weight, group=r.group).ranker)
        )
    assert found[0] == found[1]
