"""States with a value that no fit leaves, of each form that keeps values of its own: refused, by the name of the array.

What shapes, types and names must be is declared (`test_state.py`) and held for every algorithm by `test_contract.py`;
whatever bytes there are, `test_artifact_fuzz.py` tries. Here are the rules that a declaration must not lose.
"""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from core.errors import ArtifactError
from tests.core.forms import FORMS, draw_rows
from tests.raising import raises

ROWS = draw_rows()


def nan(a: Any) -> Any:
    return a * np.nan


def infinite(a: Any) -> Any:
    return np.full_like(a, np.inf)


def none(a: Any) -> Any:
    return a * 0


def more(a: Any) -> Any:
    return a + 1


def far(a: Any) -> Any:
    return np.full_like(a, 10_000)


def negative(a: Any) -> Any:
    return -1 - abs(a)


def reverse(a: Any) -> Any:
    return a[::-1].copy()


def at(place: Any, value: Any) -> Any:
    """Put a value at one place."""

    def change(a: Any) -> Any:
        a = a.copy()
        a.flat[place] = value
        return a

    return change


# Of sets and thresholds: the rows of a state that cut words, and those that cut numbers.
def words_to(value: Any) -> Any:
    return lambda a: np.where(a >= 0, value, a)


def numbers_to(value: Any) -> Any:
    return lambda a: np.where(a < 0, value, a)


# The message names the array; or the third element, an array that no longer fits to it.
STUMPS = [
    ("set", numbers_to(0)),  # a set for a number
    ("set", words_to(-1)),  # none for words
    ("set", words_to(99)),
    ("set", words_to(2**63 - 1)),
    ("set", words_to(-2)),
    ("sets", lambda a: a[:0], "set"),
    ("sets", lambda a: a.astype(np.int64)),
    ("sets", lambda a: a | np.uint64(1 << 63)),
    ("threshold", lambda a: np.where(np.isnan(a), 0.0, a)),  # beside a set
    ("threshold", nan),
    ("feature", more, "set"),
    ("feature", negative),
    ("alpha", nan),
    ("d_plus", more),
]
LINES = [
    ("linear_coef", nan),
    ("linear_coef", lambda a: a[:, :2]),
    ("linear_center", lambda a: a.astype(np.float32)),
    ("linear_scale", none),
    ("linear_scale", infinite),
    ("linear_intercept", lambda a: a[:, None]),
]
DESIGN = [
    ("w", at(0, np.nan)),
    ("w", at(0, 1e100)),
    ("unit", at(0, -1.0)),
    ("unit", at(0, np.inf)),
    ("center", at(0, np.inf)),
    ("means", at(0, np.nan)),
]

WRONG_ARRAYS = {
    "rankboost": [*STUMPS, ("sign", none)],
    "smooth margin": STUMPS,
    "rankboost of columns": [
        ("feature", far),
        ("sign", none),
        ("column_binary", lambda a: a.astype(float)),
        ("column_mean", infinite),
    ],
    "rankboost of trees": [
        ("split_leaf", at(0, 200)),
        ("split_feature", at(0, 5)),
        ("split_threshold", infinite),
        ("split_set", words_to(-1), "set"),
        ("split_set", words_to(6), "set"),
        ("split_set", numbers_to(0), "set"),
        ("split_threshold", lambda a: np.where(np.isnan(a), 1.0, a)),
        ("split_threshold", nan),
        ("sets", lambda a: a | np.uint64(2**63)),
        ("leaf_value", at(0, np.nan)),
        ("leaf_weight", at(0, -1.0)),
        ("n_leaves", at(0, 1)),
    ],
    "several labels": [
        *STUMPS[:-1],
        ("votes", lambda a: np.empty((0, 10_001), np.int8)),
        ("votes", lambda a: a[:, :0]),
        ("votes", lambda a: a * 2),
        ("votes", lambda a: a[0]),
        ("above", more),
        ("above", nan),
        ("low", lambda a: a + 2),
        ("high", more),
    ],
    "aucboost of lines": [*LINES, ("alpha", nan)],
    "splines": [
        ("starts", reverse),
        ("breaks", reverse),
        ("breaks", at(0, np.nan)),
        ("pieces", infinite),
        ("missing", nan),
        ("loss", nan),
        ("feature", far),
    ],
    "greedy pairs": [
        ("coef", nan),
        (
            "coef",
            at(0, 1e200),
        ),
        ("scale", none),
        ("mean", infinite),
        ("pauc", more),
    ],
    "martirank of lines": [
        *LINES,
        ("number", at(1, 0)),
        ("number", at(2, 9)),
        ("number", at(0, -1), "linear_coef"),
        ("number", at(2, -2)),
    ],
    "svm of a window": DESIGN,
    "svm on waves": [
        ("frequencies", at(1, np.nan)),
        ("frequencies", at(1, 1e200)),
        *(("bandwidth", at(0, value)) for value in (0.0, -1.0, np.nan, np.inf)),
        ("center", at(1, np.inf)),
        ("unit", at(1, -1.0)),
    ],
    "svm on landmarks": [
        ("landmarks", at(0, np.inf)),
        *(("landmarks", at(3, code)) for code in (5.0, -1.0, 0.5)),
        ("bandwidth", at(0, 0.0)),
        ("w", at(1, 1e100)),
    ],
    "scorecard": [
        ("coef", at(0, -1.0)),
        ("coef", nan),
        ("edges", nan),
        ("edges", reverse),
        ("n_edges", more, "edges"),
        ("n_special", more, "special"),
        ("groups", far),
        ("groups", lambda a: a[:-1]),
        ("mass", none),
        ("mass", negative),
        ("mass", infinite),
        ("mass", lambda a: a[:, :-1]),
        ("squares", none),
        ("rows", negative),
    ],
    "svm on bins": [
        *(("edges", at(1, value)) for value in (np.nan, np.inf, -1e9, 1e9)),
        *(("n_edges", at(1, value)) for value in (-1, 255)),
        *(("category_bins", at(1, value)) for value in (-1, 255)),
        ("means", at(1, np.inf)),
    ],
    "treerank": [
        ("is_leaf", lambda a: a.astype(int)),
        ("leaf_positive", nan),
        ("leaf_negative", none),
        ("cut_feature", far),
        ("cut_threshold", infinite),
        ("cut_n_words", at(0, -1)),
        ("cut_n_words", none, "cut_words"),
        ("cut_n_leaves", none),
        ("cut_leaf_positive", negative),
        ("cut_merged_rule", far),
        ("cut_merged_feature", negative),
        ("cut_merged_gain", nan),
        ("pruning_penalty", negative),
        ("pruning_n_leaves", none),
        ("pruning_auc", lambda a: a + 5.0),
    ],
    "treerank by cubes": [
        ("grid_resolution", none),
        ("grid_resolution", lambda a: np.array([17])),
        ("grid_low", at(0, np.nan)),
        ("grid_low", lambda a: a + 1e9),
        ("grid_cubes", reverse),
        ("grid_cubes", lambda a: np.repeat(a, 2, axis=0)),
        ("grid_cubes", lambda a: a[:0], "grid_top"),
        ("grid_cubes", lambda a: a + np.uint32(100)),
        ("grid_start", none),
        ("grid_start", at(0, -1)),
        ("grid_top", reverse),
        ("grid_top", negative),
        ("grid_top", far),
    ],
    "treerank by lines": LINES,
    "treerank by forests": [
        ("forest_n_trees", none),
        ("forest_n_trees", more, "forest_n_nodes"),
        ("forest_n_trees", lambda a: a * 2**40),
        ("forest_n_nodes", more, "forest_column"),
        ("forest_n_nodes", negative),
        ("forest_column", far),
        ("forest_column", lambda a: a - 1),
        ("forest_column", lambda a: np.where(a < 0, 0, a), "forest_second"),
        ("forest_second", none),
        ("forest_second", far),
        ("forest_second", lambda a: a * 2**55),
        ("forest_threshold", nan),
        ("forest_value", more),
    ],
    "treerank forest": [
        ("n_nodes", lambda a: a + np.array([1, -1, 0, 0]), "is_leaf"),
        ("n_nodes", none),
        ("is_leaf", np.logical_not, "leaf_positive"),
    ],
}

# JSON values: those that no fit leaves.
WRONG_VALUES: dict[str, dict[str, Any]] = {
    "smooth margin": {"log_least_weight": [np.nan, np.inf, "x", None]},
    "splines": {"offset": [np.inf, None, 1, "0"]},
    "greedy pairs": {"offset": [np.inf, None, 1, "0"]},
    "sampled martirank": {"class_prior": [2.0], "noise_rate": ["a"], "noise_rate_range": [[0.0]]},
    "svm of a window": {
        "intercept": [None],
        "gap": [-1.0, None],
        "objective": [3],
        "C": ["auto"],
        "anchor_cost": [True],
        "critical_fpr": [-0.1],
        "iterations": [10**9],
        "collapsed": [0],
    },
    "sigmoid svm": {"gap": [0.0]},  # none is known
    "logistic": {"objective": [np.nan], "iterations": [-1]},
    "scorecard": {"intercept": [None], "objective": [np.nan], "iterations": [-1]},
    "asymmetric svm": {"C": ["auto"], "asymmetry": [-1.0], "iterations": [True]},
    "treerank": {"order": ["sideways", None, 3]},
    "treerank forest": {"oob_auc": [2.0, "x"], "intercept": [1.0, None]},
    "rankboost of pairs": {"classes": [{}, {"dtype": "int64", "values": [0]}, [0, 1], "both"]},
    "rankboost": {
        "categories": [
            None,
            [None, None, None, ["blue", "blue"], None],
            [None, None, None, ["\ud800"], None],
            [["a"], None, None, None, None],
        ]
    },
}


@cache
def fitted(name: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FORMS[name].fit(ROWS)


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_an_array_that_no_fit_leaves_is_refused(name: str) -> None:
    ranker = fitted(name)
    arrays, meta = ranker.get_state()
    parameters = ranker.get_parameters()
    for array, change, *named in WRONG_ARRAYS[name]:
        changed = change(arrays[array])
        assert changed.dtype != arrays[array].dtype or not np.array_equal(changed, arrays[array])
        with raises(ArtifactError, *(named or [array])):
            type(ranker).from_state(parameters, arrays | {array: changed}, meta)


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_value_that_no_fit_leaves_is_refused(name: str) -> None:
    ranker = fitted(name)
    arrays, meta = ranker.get_state()
    for value, wrong in WRONG_VALUES[name].items():
        for one in wrong:
            with raises(ArtifactError, *([] if value in ("categories", "classes") else [value])):
                type(ranker).from_state(ranker.get_parameters(), arrays, meta | {value: one})


@pytest.mark.parametrize("name", ["svm on waves", "svm on landmarks", "svm on bins"])
def test_the_state_of_another_map_is_refused(name: str) -> None:
    ranker = fitted(name)
    arrays, meta = ranker.get_state()
    own = ranker.get_parameters()
    for other in {None, "fourier", "nystroem", "bins"} - {own["feature_map"]}:
        with pytest.raises(ArtifactError):
            type(ranker).from_state(own | {"feature_map": other}, arrays, meta)


@pytest.mark.parametrize("parameter", ["n_rounds", "n_trees"])
def test_more_rounds_or_trees_than_were_asked_for_are_refused(parameter: str) -> None:
    ranker = fitted("rankboost" if parameter == "n_rounds" else "treerank forest")
    arrays, meta = ranker.get_state()
    fewer = {parameter: getattr(ranker, parameter) - 1}
    with raises(ArtifactError, "log_f_plus" if parameter == "n_rounds" else "n_nodes"):
        type(ranker).from_state(ranker.get_parameters() | fewer, arrays, meta)


def test_sets_must_not_overlap() -> None:
    ranker = fitted("rankboost")
    arrays, meta = ranker.get_state()
    n = len(arrays["feature"])
    arrays["sets"] = np.zeros(2 * n + 1, dtype=np.uint64)  # two words to a set of 70 towns
    arrays["feature"][:], arrays["threshold"][:], arrays["sign"][:] = 4, np.nan, 1
    arrays["set"][:] = np.arange(0, 2 * n, 2)
    type(ranker).from_state(ranker.get_parameters(), arrays, meta)
    arrays["set"][1] = 1
    with raises(ArtifactError, "sets"):
        type(ranker).from_state(ranker.get_parameters(), arrays, meta)
