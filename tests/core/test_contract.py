"""The contract that every registered ranker keeps."""

import json
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

from core.base.ranker import StopFit
from core.errors import ArtifactError, InvalidData
from core.metrics import auc
from core.registry import ALGORITHMS, name_of
from tests.core.threads import on_one_thread_and_on_all
from tests.long_form import LONG_FORM, long_form
from tests.raising import raises, warns

BINARY = {name: ranker for name, ranker in ALGORITHMS.items() if ranker.target == "binary"}

every = pytest.mark.parametrize("algorithm", BINARY.values(), ids=BINARY)

# What the base class keeps is tried with one algorithm of each family; with all in the long form.
FAMILIES = {
    "rankboost",
    "lambdamart",
    "logistic",
    "greedy_pairs",
    "martirank",
    "treerank",
    "scorecard",
}
of_the_base = pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(own, id=name, marks=() if name in FAMILIES else long_form)
        for name, own in BINARY.items()
    ],
)


def make_table(
    n: int = 400, d: int = 5, seed: int = 0, missing: float = 0.05
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] - 0.5 * X[:, 1] + 0.3 * X[:, 2] ** 2 + rng.normal(size=n) > 0.8).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


# Whatever repeats a fit does it seldom, where the rows are many.
FEW = {"coarseness": 5, "C": 1.0, "n_bags": 1, "noise_rate": 0.0, "n_trees": 3, "max_rounds": 150}

# Rounds and trees alone: what is chosen is still chosen.
FEW_ROUNDS = {"n_rounds": 10, "n_trees": 3, "max_rounds": 100}

# What draws rows and features by their places keeps no promise about other places.
DRAWS_BY_PLACE = {"random_forest", "treerank_forest"}


def skip_where_places_count(algorithm: type[Any] | Callable[..., Any]) -> None:
    if name_of(algorithm()) in DRAWS_BY_PLACE:
        pytest.skip("draws rows and features by their places")


def make(algorithm: type[Any] | Callable[..., Any], **parameters: Any) -> Any:
    """The algorithm with those of the parameters that it has."""
    return algorithm(**{k: v for k, v in parameters.items() if k in algorithm().get_params()})


def assert_same_state(one: Any, other: Any) -> None:
    (arrays, meta), (other_arrays, other_meta) = one.get_state(), other.get_state()
    assert meta == other_meta
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        assert array.dtype == other_arrays[name].dtype
        assert array.tobytes() == other_arrays[name].tobytes(), name


# Their steps are of a solver: none of their parameters asks for as many.
KEEP_A_STEP = {"asymmetric_svm", "logistic", "p_norm_push", "scorecard"}


@every
def test_a_fit_that_its_callback_stops_keeps_what_it_has(algorithm: type[Any]) -> None:
    X, y = make_table()
    ranker = make(algorithm, **FEW | {"n_rounds": 10, "n_trees": 10, "n_bags": 3})
    seen = []

    def stop_at_two(step: Any, of: Any, info: Any) -> None:
        seen.append((step, of))
        if step >= 2:
            raise StopFit

    if not ranker.keeps_when_stopped:
        with pytest.raises(StopFit):
            ranker.fit(X, y, callback=stop_at_two)
        return
    with warns(UserWarning, 2):
        ranker.fit(X, y, callback=stop_at_two)
    assert [step for step, _ in seen] == [1, 2]
    arrays, meta = ranker.get_state()
    again = algorithm.from_state(ranker.get_parameters(), arrays, meta)
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    ranker.structure()
    if name_of(ranker) in KEEP_A_STEP:
        assert auc(y, ranker.decision_function(X)) > 0.6
        return
    shorter = {
        "random_forest": "n_trees",
        "treerank_forest": "n_trees",
        "treerank": "max_depth",
        "additive": "max_rounds",
    }.get(name_of(ranker), "n_rounds")
    fewer = clone(ranker).set_params(**{shorter: 2}).fit(X, y)
    assert (ranker.decision_function(X) == fewer.decision_function(X)).all()


@every
def test_ranks(algorithm: type[Any]) -> None:
    X, y = make_table(1000)
    X_new, y_new = make_table(1000, seed=1)
    scores = (
        make(algorithm, n_rounds=30, n_trees=20, C=1.0, noise_rate=0.0)
        .fit(X, y)
        .decision_function(X_new)
    )
    above = scores[y_new == 1][:, None] > scores[y_new == 0]
    assert scores.dtype == np.float64
    assert above.mean() > 0.8


# Cells of a table from which threads share the work, or the work is another.
THRESHOLDS = [
    "core.coding.bins.PARALLEL_CELLS",
    "core.coding.threads.PARALLEL_CELLS",
    "core.coding.threads.TEAM_CELLS",
    "core.treerank.forest.PARALLEL_CELLS",
    "core.boosting.stumps.MIN_LISTED_CELLS",
]


@every
def test_one_thread_or_two_same_bits(algorithm: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way that threads are used, on a part of the rows from which it pays: more than a block of most loops."""
    part = 4 if LONG_FORM else 30
    X, y = make_table(n=360_000 // part, d=3)
    for name in THRESHOLDS:
        module, _, constant = name.rpartition(".")
        monkeypatch.setattr(name, getattr(import_module(module), constant) // part)
    ranker = make(algorithm, **FEW | {"n_rounds": 2, "max_rounds": 20})
    assert_same_state(*on_one_thread_and_on_all(lambda: clone(ranker).fit(X, y)))


@of_the_base
def test_labels_of_any_two_values(algorithm: type[Any]) -> None:
    X, y = make_table(200)
    objects = np.array(["a", "b"], object)
    for labels in ([0, 1], [-1, 1], [False, True], ["no", "yes"], [0.5, 2.0], objects):
        labels = np.asarray(labels)  # noqa: PLW2901 - the same two values
        ranker = make(algorithm, n_rounds=5, **FEW).fit(X, labels[y])
        assert ranker.classes_.tolist() == labels.tolist()
        assert set(ranker.predict(X)) == set(labels.tolist())
        assert (ranker.predict(X) == labels[y]).mean() > 0.7
        arrays, meta = ranker.get_state()
        again = algorithm.from_state(ranker.get_params(), arrays, json.loads(json.dumps(meta)))
        assert again.classes_.tolist() == labels.tolist()
        assert again.classes_.dtype.kind == labels.dtype.kind


CONTAINERS = {
    "list": list,
    "Series": pd.Series,
    "arrow": pa.array,
    "nullable": lambda y: pd.Series(y, dtype="Int64"),
    "category": lambda y: pd.Series(y, dtype="category"),
    "chunked": lambda y: pa.chunked_array([y[:100], y[100:]]),
}


@of_the_base
def test_labels_in_any_container(algorithm: type[Any]) -> None:
    X, y = make_table(120)
    expected = make(algorithm, n_rounds=5, **FEW).fit(X, y).decision_function(X)
    for name, wrap in CONTAINERS.items():
        ranker = make(algorithm, n_rounds=5, **FEW).fit(X, wrap(y))
        assert ranker.classes_.tolist() == [0, 1], name
        assert (ranker.decision_function(X) == expected).all(), name


@of_the_base
def test_tables_and_arrays_alike(algorithm: type[Any]) -> None:
    X, y = make_table(120)
    names = list("abcde")
    frame = pd.DataFrame(X, columns=names)
    table = pa.table({name: pa.array(X[:, j], from_pandas=True) for j, name in enumerate(names)})
    expected = make(algorithm, n_rounds=5, **FEW).fit(X, y).decision_function(X)
    for columns in (frame, table):
        ranker = make(algorithm, n_rounds=5, **FEW).fit(columns, y)
        assert ranker.feature_names_in_.tolist() == names
        assert (ranker.decision_function(columns) == expected).all()
    single = X.astype(np.float32)
    ranker = make(algorithm, n_rounds=5, **FEW).fit(single, y)
    assert (
        ranker.decision_function(single) == ranker.decision_function(single.astype(float))
    ).all()


@every
def test_columns_in_any_order(algorithm: type[Any]) -> None:
    skip_where_places_count(algorithm)
    if name_of(algorithm()) == "lambdamart":
        pytest.skip("in one list weights count for nothing, so that many cuts are equal")
    X, y = make_table()
    order = [3, 0, 4, 2, 1]
    # with weights of their own, hardly two cuts are equal: the lowest column would win
    weight = np.random.default_rng(0).uniform(0.5, 1.5, len(X))
    ranker = make(algorithm, **FEW_ROUNDS).fit(X, y, weight)
    moved = make(algorithm, **FEW_ROUNDS).fit(X[:, order], y, weight)
    assert moved.decision_function(X[:, order]) == pytest.approx(
        ranker.decision_function(X), abs=1e-9
    )


@every
def test_rows_in_any_order(algorithm: type[Any]) -> None:
    skip_where_places_count(algorithm)
    X, y = make_table(200)
    order = np.random.default_rng(0).permutation(len(X))
    ranker = make(algorithm, **FEW_ROUNDS).fit(X, y)
    moved = make(algorithm, **FEW_ROUNDS).fit(X[order], y[order])
    assert moved.decision_function(X) == pytest.approx(ranker.decision_function(X), abs=1e-9)


@every
def test_callback_reports_each_round_and_may_stop(algorithm: type[Any]) -> None:
    X, y = make_table(200)
    seen = []
    ranker = make(algorithm, n_rounds=7, n_trees=4).fit(
        X, y, callback=lambda *report: seen.append(report)
    )
    seen = [report for report in seen if len(report[2])]  # without figures it looks for a step
    steps = seen[0][1]
    if hasattr(ranker, "rounds_"):
        assert steps == ranker.n_rounds
    if hasattr(ranker, "loss_"):
        assert [(step, of) for step, of, _ in seen] == [(t, steps) for t in range(1, steps + 1)]
        assert [info["loss"] for *_, info in seen] == ranker.loss_.tolist()
    else:  # a solver, whose steps are how far its gap has closed; a tree, which may end early
        told = [step for step, *_ in seen]
        assert told == sorted(told)
        assert told[0] >= 1
        assert told[-1] == steps or ranker.stop_reason_ == "validation"
        assert {of for _, of, _ in seen} == {steps}
        if hasattr(ranker, "objective_"):
            assert seen[-1][2]["loss"] == ranker.objective_

    class Cancelled(Exception):
        pass

    def cancel(step: Any, of: Any, info: Any) -> None:
        if step >= 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        algorithm().fit(X, y, callback=cancel)


def refusal(algorithm: type[Any], *data: Any) -> str:
    """Return the message of a fit that must refuse its data."""
    with pytest.raises(InvalidData) as caught:
        algorithm().fit(*data)
    return str(caught.value)


BAD_DATA = {
    "NaN label": (lambda X, y: (X, np.where(y == 1, np.nan, 0.0)), "y must not contain missing values"),
    "None label": (lambda X, y: (X, np.where(y == 1, None, "a")), "y must not contain missing values"),
    "pandas.NA label": (
        lambda X, y: (X, pd.array(np.where(y == 1, 1, 0), dtype="Int64").insert(0, pd.NA)[:-1]),
        "y must not contain missing values, got NaN at row 0",
    ),
    "one class": (lambda X, y: (X, np.ones(len(y))), r"two classes, got 1 class: \[1.0\]"),
    "three classes": (lambda X, y: (X, y + 2 * (np.arange(len(y)) == 5)), "two values, got [34]"),
    "labels of mixed type": (
        lambda X, y: (X, np.array([1 if v else "a" for v in y], object)), "can be ordered",
    ),
    "dates as labels": (lambda X, y: (X, y.astype("datetime64[D]")), "y must contain numbers"),
    "two columns of labels": (lambda X, y: (X, np.c_[y, y]), "1d"),
    "too few labels": (lambda X, y: (X, y[:-1]), r"one label per row of X \(400\), got 399"),
    "no labels": (lambda X, y: (X, None), "y is None"),
    "infinity": (lambda X, y: (np.where(X > 2, np.inf, X), y), "X contains infinity"),
    "text": (lambda X, y: (np.full(X.shape, "high"), y), "could not convert string to float: .*high"),
    "one dimension": (lambda X, y: (X[:, 0], y), "2D"),
    "no rows": (lambda X, y: (X[:0], y[:0]), "0 sample"),
    "no columns": (lambda X, y: (X[:, :0], y), "0 feature"),
    "dates as columns": (
        lambda X, y: (pd.DataFrame(X, columns=list("abcde")).assign(b=pd.Timestamp(0)), y),
        r"columns must be numeric, boolean or text, got 'b' \(Datetime",
    ),
    "infinity in a table": (
        lambda X, y: (pd.DataFrame(np.where(X > 2, np.inf, X)), y), "X contains infinity",
    ),
}  # fmt: skip


@of_the_base
def test_bad_data_is_refused_by_name(algorithm: type[Any]) -> None:
    X, y = make_table()
    for case, (make_bad, message) in BAD_DATA.items():
        assert re.search(message, refusal(algorithm, *make_bad(X, y))), case


BAD_WEIGHTS = {
    "negative": (lambda w: np.where(np.arange(len(w)) == 3, -1.0, w), "0 or between 1e-100 and 1e.100, got -1 at"),
    "NaN": (lambda w: np.where(np.arange(len(w)) == 3, np.nan, w), "0 or between .* got nan at row 3"),
    "infinite": (lambda w: np.where(np.arange(len(w)) == 3, np.inf, w), "0 or between .* got inf at row 3"),
    "too few": (lambda w: w[:-1], r"one weight per row of X \(400\), got shape \(399,\)"),
    "text": (lambda w: ["a"] * len(w), "sample_weight must contain numbers"),
    "all zero": (lambda w: w * 0, "zero for every row of class 0"),
    "too great": (lambda w: w * 1e101, r"0 or between .* got 1e\+101 at row 0"),
    "too small": (lambda w: w * 1e-101, "0 or between .* got 1e-101 at row 0"),
}  # fmt: skip


@of_the_base
def test_bad_weights_are_refused_by_name(algorithm: type[Any]) -> None:
    X, y = make_table()
    for case, (make_bad, message) in BAD_WEIGHTS.items():
        assert re.search(message, refusal(algorithm, X, y, make_bad(np.ones(len(y))))), case


@every
def test_weights_at_both_ends_of_their_range_are_fitted(algorithm: type[Any]) -> None:
    X, y = make_table(200)
    weight = np.where(np.arange(len(y)) % 3 == 0, 1e-100, 1e100)
    ranker = make(algorithm, n_rounds=5, **FEW | {"noise_rate": None}).fit(X, y, weight)
    assert np.isfinite(ranker.decision_function(X)).all()


@of_the_base
def test_a_class_without_weight_is_refused(algorithm: type[Any]) -> None:
    X, y = make_table()
    with pytest.raises(InvalidData):
        algorithm().fit(X, y, sample_weight=1 - y)


@of_the_base
def test_other_columns_than_at_fit_are_refused(algorithm: type[Any]) -> None:
    X, y = make_table(120)
    ranker = make(algorithm, n_rounds=5, **FEW).fit(X, y)
    with pytest.raises(InvalidData):
        ranker.decision_function(X[:, :3])
    if hasattr(ranker, "contributions"):
        with raises(InvalidData, 3, 5):
            ranker.contributions(X[:, :3])
    with raises(InvalidData, "X"):
        ranker.predict(np.full((1, 5), np.inf))
    named = make(algorithm, n_rounds=5, **FEW).fit(pd.DataFrame(X, columns=list("abcde")), y)
    with raises(InvalidData, "f", "e"):
        named.decision_function(pd.DataFrame(X, columns=list("abcdf")))


@every
def test_foreign_state_is_refused(algorithm: type[Any]) -> None:
    X, y = make_table()
    ranker = make(algorithm, n_rounds=10, n_trees=3, C=1.0, noise_rate=0.0).fit(X, y)
    arrays, meta = ranker.get_state()
    params = ranker.get_params()
    for name in arrays:
        for broken in (arrays[name][:-1], arrays[name].astype(np.complex128), arrays[name][None]):
            if broken.dtype == arrays[name].dtype and broken.shape == arrays[name].shape:
                continue  # an empty array has no last value to lose
            with pytest.raises(ArtifactError):
                algorithm.from_state(params, arrays | {name: broken}, meta)
        with pytest.raises(ArtifactError):
            algorithm.from_state(params, {k: v for k, v in arrays.items() if k != name}, meta)
    for name in meta:
        with pytest.raises(ArtifactError):
            algorithm.from_state(params, arrays, {k: v for k, v in meta.items() if k != name})
    for name, values in {
        "classes": [
            {"dtype": "V8", "values": [0, 1]},
            {"dtype": "int64", "values": [1]},
            {"dtype": "int8", "values": [0, 999]},
            {"dtype": [], "values": [0, 1]},
            {"values": [0, 1]},
            *([] if hasattr(algorithm, "fit_pairs") else [None]),  # as after a fit on pairs
            3,
        ],
        "n_features_in": [0, -1, 5.0, "5", None, 4, 10**6 + 1, 10**11, 10**30],
        "feature_names_in": [["a"], [1, 2, 3, 4, 5], 5, "abc"],
        "stop_reason": ["tired", None, []],
        "categories": [[None] * 5, [["a"]], "abcde", [["b", "a"], *[None] * 4], [[1], *[None] * 4]],
    }.items():
        for value in values if name in meta else []:
            with pytest.raises(ArtifactError):
                algorithm.from_state(params, arrays, meta | {name: value})
