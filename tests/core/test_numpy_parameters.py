"""Parameters that are numpy scalars, as grids over arrays have them, for every registered algorithm."""

import json
from collections import OrderedDict
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, ParameterGrid

from core import RankAverage, RankBoost, load, save
from core.base.parameters import Parameter, list_parameters
from core.errors import InvalidData, InvalidParameter
from core.registry import ALGORITHMS

# Values in place of defaults that are None, or slow, or that these rows do not allow.
VALUES: dict[str, Any] = {
    "C": 1.0,
    "anchor": 1.0,
    "asymmetry": 2.0,
    "bandwidth": 2.0,
    "class_prior": 0.5,
    "coarseness": 5,
    "early_stopping_rounds": 3,
    "feature_map": "bins",
    "learning_rate": 0.25,
    "leafrank_max_leaves": 4,
    "leafrank_pruning": "cv",
    "max_features": 0.75,
    "max_leaves": 4,
    "max_rounds": 5,
    "min_samples_leaf": 2.0,
    "n_bags": 2,
    "n_components": 4,
    "n_folds": 2,
    "n_rounds": 4,
    "n_trees": 2,
    "noise_rate": 0.0625,
    "pruning": "cv",
    "smoothing": 0.5,
    "target_encoding": 9,
}


def value_of(parameter: Parameter) -> Any:
    """Return a value that is not None; None for a parameter that takes no scalar."""
    value = VALUES.get(parameter.name, parameter.default)
    return value if isinstance(value, bool | int | float | str) else None


def numpys(value: Any) -> Any:
    """Return an array of one such value, of a small type where numbers allow it."""
    if isinstance(value, bool | str):
        return np.array([value])
    dtype = np.int64 if isinstance(value, int) else np.float32
    return np.array([value], dtype=dtype)


def make_rows(labels: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3)).round(1)
    y = np.column_stack([X[:, 0] > 0.2, X[:, 1] + rng.normal(size=120) > 0]).astype(int)
    return X, y if labels else y[:, 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_values_of_arrays_give_what_python_values_give(name: str) -> None:
    algorithm = ALGORITHMS[name]
    values = {each.name: value_of(each) for each in list_parameters(algorithm)}
    values = {each: value for each, value in values.items() if value is not None}
    assert len(values) >= 3
    (given,) = ParameterGrid({each: numpys(value) for each, value in values.items()})
    assert all(isinstance(value, np.generic) for value in given.values())
    X, y = make_rows(algorithm.target == "multilabel")
    values = {each: value.item() for each, value in given.items()}
    found, plain = algorithm(**given).fit(X, y), algorithm(**values).fit(X, y)
    assert all(found.get_params()[each] is value for each, value in given.items())
    json.dumps(found.get_parameters())
    assert save(found) == save(plain)
    clone(found)


def test_a_grid_search_takes_arrays() -> None:
    X, y = make_rows(labels=False)
    grid = {"n_rounds": np.array([2, 3]), "smoothing": np.array([0.5], dtype=np.float32)}
    found = GridSearchCV(RankBoost(), grid, scoring="roc_auc", cv=2, error_score="raise").fit(X, y)
    assert load(save(found.best_estimator_)).n_rounds in (2, 3)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_choice_of_each_parameter_may_be_text_of_numpy(name: str) -> None:
    for parameter in list_parameters(ALGORITHMS[name]):
        for kind in get_args(parameter.annotation):
            for member in (kind, *get_args(kind)):
                if get_origin(member) is not Literal:
                    continue
                for choice in get_args(member):
                    ranker = ALGORITHMS[name]().set_params(**{parameter.name: np.array(choice)[()]})
                    assert ranker.get_parameters().get(parameter.name, choice) == choice


def test_scalars_of_the_wrong_kind_are_refused() -> None:
    X, y = make_rows(labels=False)
    for parameters in (
        {"n_rounds": np.float64(3.0)},
        {"n_rounds": np.bool_(True)},
        {"n_rounds": np.int64(0)},
        {"weak_ranker": np.str_("forest")},
        {"learning_rate": np.float32("nan")},
        {"monotone": {np.int64(0): np.str_("sideways")}},
    ):
        with pytest.raises(InvalidParameter):
            RankBoost(**parameters).fit(X, y)


def test_scalars_within_dicts_and_lists_count_too() -> None:
    X, y = make_rows(labels=False)
    monotone = {np.int64(0): np.str_("increasing")}
    ranker = RankBoost(n_rounds=3, monotone=monotone).fit(X, y)
    assert ranker.find_directions().tolist() == [1, 0, 0]
    assert ranker.get_parameters()["monotone"] == {0: "increasing"}
    ordered = clone(ranker).set_params(monotone=OrderedDict(monotone)).fit(X, y)
    assert ordered.get_parameters()["monotone"] == {0: "increasing"}
    members = [RankBoost(n_rounds=np.int64(2)), RankBoost(n_rounds=3)]
    average = RankAverage(members=members, weights=[np.float32(0.5), np.int64(2)]).fit(X, y)
    again = load(save(average))
    assert (again.decision_function(X) == average.decision_function(X)).all()


def test_what_a_fit_takes_beside_parameters_may_be_of_numpy() -> None:
    X, y = make_rows(labels=False)
    ranker = RankBoost(n_rounds=5)
    values = ranker.fit_watched(
        X,
        y,
        X_valid=X,
        metric=np.ptp,
        patience=np.int64(2),
        every=np.int32(1),
        graded=np.bool_(False),
    )
    assert len(values) <= 5
    assert hasattr(ranker.fit(X, y, graded=np.bool_(True)), "grades_")


GROUPS = np.arange(120) % 9


@pytest.mark.parametrize(
    "groups",
    [
        GROUPS.astype(object),
        np.array([np.int64(g) for g in GROUPS], dtype=object),
        np.array([np.int8(g) if g % 2 else int(g) for g in GROUPS], dtype=object),
        np.array([float(g) if g % 2 else int(g) for g in GROUPS], dtype=object),
        np.array([np.float64(g) for g in GROUPS], dtype=object),
        np.array([str(g) for g in GROUPS], dtype=object),
        np.array([np.str_(g) for g in GROUPS], dtype=object),
    ],
)
def test_groups_may_be_objects_of_one_type(groups: Any) -> None:
    X, y = make_rows(labels=False)
    ranker = RankBoost(n_rounds=9, early_stopping_rounds=2)
    expected = clone(ranker).fit(X, y, groups=GROUPS).decision_function(X)
    assert (ranker.fit(X, y, groups=groups).decision_function(X) == expected).all()


@pytest.mark.parametrize("odd", ["a", True, np.bool_(True), np.str_("a"), None, (1,), float("nan")])
def test_groups_of_several_types_are_refused(odd: Any) -> None:
    X, y = make_rows(labels=False)
    groups = GROUPS.astype(object)
    groups[7] = odd
    with pytest.raises(InvalidData):
        RankBoost(n_rounds=2).fit(X, y, groups=groups)
