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


STUMPS = [
    ("set", numbers_to(0), "set must"),  # a set for a number
    ("set", words_to(-1), "set|threshold"),  # none for words
    ("set", words_to(99), "set must name words"),
    ("set", words_to(2**63 - 1), "set must name words"),
    ("set", words_to(-2), "set"),
    ("sets", lambda a: a[:0], "set"),
    ("sets", lambda a: a.astype(np.int64), "sets"),
    ("sets", lambda a: a | np.uint64(1 << 63), "no bit beyond the last category"),
    ("threshold", lambda a: np.where(np.isnan(a), 0.0, a), "threshold"),  # beside a set
    ("threshold", nan, "threshold"),
    ("feature", more, None),
    ("feature", negative, "feature"),
    ("alpha", nan, "alpha"),
    ("d_plus", more, "d_plus"),
]
LINES = [
    ("linear_coef", nan, "linear_coef"),
    ("linear_coef", lambda a: a[:, :2], "linear_coef"),
    ("linear_center", lambda a: a.astype(np.float32), "linear_center"),
    ("linear_scale", none, "linear_scale"),
    ("linear_scale", infinite, "linear_scale"),
    ("linear_intercept", lambda a: a[:, None], "linear_intercept"),
]
DESIGN = [
    ("w", at(0, np.nan), "w must"),
    ("w", at(0, 1e100), "w must"),
    ("unit", at(0, -1.0), "unit"),
    ("unit", at(0, np.inf), "unit"),
    ("center", at(0, np.inf), "center"),
    ("means", at(0, np.nan), "means"),
]

WRONG_ARRAYS = {
    "rankboost": [*STUMPS, ("sign", none, "sign must be 1 or -1, got 0")],
    "smooth margin": STUMPS,
    "rankboost of columns": [
        ("feature", far, "feature"),
        ("sign", none, "sign"),
        ("column_binary", lambda a: a.astype(float), "column_binary"),
        ("column_mean", infinite, "column_mean"),
    ],
    "rankboost of trees": [
        ("split_leaf", at(0, 200), "split_leaf"),
        ("split_feature", at(0, 5), "split_feature"),
        ("split_threshold", infinite, "split_threshold"),
        ("split_set", words_to(-1), "set must name words"),
        ("split_set", words_to(6), "set must name words"),
        ("split_set", numbers_to(0), "set must be -1"),
        ("split_threshold", lambda a: np.where(np.isnan(a), 1.0, a), "split_threshold"),
        ("split_threshold", nan, "split_threshold"),
        ("sets", lambda a: a | np.uint64(2**63), "no bit beyond the last category"),
        ("leaf_value", at(0, np.nan), "leaf_value"),
        ("leaf_weight", at(0, -1.0), "leaf_weight"),
        ("n_leaves", at(0, 1), "n_leaves"),
    ],
    "several labels": [
        *STUMPS[:-1],
        ("votes", lambda a: np.empty((0, 10_001), np.int8), None),
        ("votes", lambda a: a[:, :0], "votes"),
        ("votes", lambda a: a * 2, "votes"),
        ("votes", lambda a: a[0], "votes"),
        ("above", more, "above"),
        ("above", nan, "above"),
        ("low", lambda a: a + 2, "low"),
        ("high", more, "high"),
    ],
    "aucboost of lines": [*LINES, ("alpha", nan, "alpha")],
    "splines": [
        ("starts", reverse, "starts must ascend"),
        ("breaks", reverse, "breaks must ascend"),
        ("breaks", at(0, np.nan), "breaks must be finite"),
        ("pieces", infinite, "pieces must be at least"),
        ("missing", nan, "missing must be at least"),
        ("loss", nan, "loss must be finite"),
        ("feature", far, "feature must be from 0 to 2"),
    ],
    "greedy pairs": [
        ("coef", nan, "coef must be at least"),
        (
            "coef",
            at(0, 1e200),
            "coef must be at least -1e[+]100 and at most 1e[+]100, got 1e[+]200",
        ),
        ("scale", none, "scale must be above 0 and finite"),
        ("mean", infinite, "mean must be finite"),
        ("pauc", more, "pauc must be at least 0 and at most 1"),
    ],
    "martirank of lines": [
        *LINES,
        ("number", at(1, 0), "number"),
        ("number", at(2, 9), "number"),
        ("number", at(0, -1), None),
        ("number", at(2, -2), "number"),
    ],
    "svm of a window": DESIGN,
    "svm on waves": [
        ("frequencies", at(1, np.nan), "frequencies"),
        ("frequencies", at(1, 1e200), "frequencies"),
        *(("bandwidth", at(0, value), "bandwidth") for value in (0.0, -1.0, np.nan, np.inf)),
        ("center", at(1, np.inf), "center"),
        ("unit", at(1, -1.0), "unit"),
    ],
    "svm on landmarks": [
        ("landmarks", at(0, np.inf), "landmarks"),
        *(("landmarks", at(3, code), "positions of categories") for code in (5.0, -1.0, 0.5)),
        ("bandwidth", at(0, 0.0), "bandwidth"),
        ("w", at(1, 1e100), "w must"),
    ],
    "scorecard": [
        ("coef", at(0, -1.0), "coef"),
        ("coef", nan, "coef"),
        ("edges", nan, "edges"),
        ("edges", reverse, "edges must ascend"),
        ("n_edges", more, None),
        ("n_special", more, "n_special|special"),
        ("groups", far, "groups must be below"),
        ("groups", lambda a: a[:-1], "groups"),
        ("mass", none, "mass must have a sum above 0"),
        ("mass", negative, "mass"),
        ("mass", infinite, "mass"),
        ("mass", lambda a: a[:, :-1], None),
        ("squares", none, "squares"),
        ("rows", negative, "rows"),
    ],
    "svm on bins": [
        *(("edges", at(1, value), "edges") for value in (np.nan, np.inf, -1e9, 1e9)),
        *(("n_edges", at(1, value), None) for value in (-1, 255)),
        *(("category_bins", at(1, value), "category_bins") for value in (-1, 255)),
        ("means", at(1, np.inf), "means"),
    ],
    "treerank": [
        ("is_leaf", lambda a: a.astype(int), "is_leaf must be bool"),
        ("leaf_positive", nan, "leaf_positive must be at least 0"),
        ("leaf_negative", none, "leaf_negative must not be all 0"),
        ("cut_feature", far, "cut_feature must be from -1 to 4"),
        ("cut_threshold", infinite, "cut_threshold must be below inf"),
        ("cut_n_words", at(0, -1), "cut_n_words must be a count"),
        ("cut_n_words", none, "cut_words|cut_n_words"),
        ("cut_n_leaves", none, "cut_n_leaves must be at least 2"),
        ("cut_leaf_positive", negative, "cut_leaf_positive must be at least 0"),
        ("cut_merged_rule", far, "cut_merged_rule must be from 0 to"),
        ("cut_merged_feature", negative, "cut_merged_feature must be from 0 to"),
        ("cut_merged_gain", nan, "cut_merged_gain must be at least 0"),
        ("pruning_penalty", negative, "pruning_penalty"),
        ("pruning_n_leaves", none, "pruning_n_leaves"),
        ("pruning_auc", lambda a: a + 5.0, "pruning_auc"),
    ],
    "treerank by cubes": [
        ("grid_resolution", none, "at least 1 and at most 16, got 0"),
        ("grid_resolution", lambda a: np.array([17]), "at least 1 and at most 16, got 17"),
        ("grid_low", at(0, np.nan), "must be finite"),
        ("grid_low", lambda a: a + 1e9, "must not exceed"),
        ("grid_cubes", reverse, "in order"),
        ("grid_cubes", lambda a: np.repeat(a, 2, axis=0), "without repeats"),
        ("grid_cubes", lambda a: a[:0], "grid_top must be from 0 to -1"),
        ("grid_cubes", lambda a: a + np.uint32(100), "slices of the grid"),
        ("grid_start", none, "must rise"),
        ("grid_start", at(0, -1), "must rise"),
        ("grid_top", reverse, "must rise within"),
        ("grid_top", negative, "grid_top must be from 0 to"),
        ("grid_top", far, "grid_top must be from 0 to"),
    ],
    "treerank by lines": LINES,
    "treerank by forests": [
        ("forest_n_trees", none, "forest_"),
        ("forest_n_trees", more, "forest_"),
        ("forest_n_trees", lambda a: a * 2**40, "forest_"),
        ("forest_n_nodes", more, "forest_"),
        ("forest_n_nodes", negative, "forest_"),
        ("forest_column", far, "forest_"),
        ("forest_column", lambda a: a - 1, "forest_"),
        ("forest_column", lambda a: np.where(a < 0, 0, a), "forest_"),
        ("forest_second", none, "forest_"),
        ("forest_second", far, "forest_"),
        ("forest_second", lambda a: a * 2**55, "forest_"),
        ("forest_threshold", nan, "forest_"),
        ("forest_value", more, "forest_"),
    ],
    "treerank forest": [
        ("n_nodes", lambda a: a + np.array([1, -1, 0, 0]), "one tree in preorder"),
        ("n_nodes", none, "n_nodes must be at least 1"),
        ("is_leaf", np.logical_not, "leaf_positive must be"),
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
    for array, change, message in WRONG_ARRAYS[name]:
        changed = change(arrays[array])
        assert changed.dtype != arrays[array].dtype or not np.array_equal(changed, arrays[array])
        with pytest.raises(ArtifactError, match=message):
            type(ranker).from_state(parameters, arrays | {array: changed}, meta)


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_a_value_that_no_fit_leaves_is_refused(name: str) -> None:
    ranker = fitted(name)
    arrays, meta = ranker.get_state()
    for value, wrong in WRONG_VALUES[name].items():
        for one in wrong:
            with pytest.raises(ArtifactError, match=None if value == "categories" else value):
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
    with pytest.raises(ArtifactError, match="must contain 1 to"):
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
    with pytest.raises(ArtifactError, match="must not overlap"):
        type(ranker).from_state(ranker.get_parameters(), arrays, meta)
