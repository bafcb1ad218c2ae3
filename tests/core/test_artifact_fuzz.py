"""Artifacts of every algorithm with something wrong in them: a ranker that scores, or `ArtifactError`.

`make long` tries 500 of each kind.
"""

import numpy as np
import pytest
from artifact_bytes import (
    json_values,
    load_or_refuse,
    put_together,
    table_for,
    take_apart,
    with_categories,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from long_form import LONG_FORM

from core import Logistic, RankAverage, RankBoost, TreeRank
from core.artifact import save
from core.registry import ALGORITHMS

VARIANTS = {
    **{name: (name, {}) for name in ALGORITHMS},
    "rankboost on columns": ("rankboost", {"weak_ranker": "column"}),
    "rankboost on trees": ("rankboost", {"weak_ranker": "tree"}),
    "adaboost_mr by example": ("adaboost_mr", {"pairs": "example"}),
    "auc_svm on waves": ("auc_svm", {"feature_map": "fourier", "n_components": 4, "C": 1.0}),
    "auc_svm on landmarks, on categories": (
        "auc_svm",
        {"feature_map": "nystroem", "n_components": 4, "C": 1.0},
    ),
    "pauc_svm on bins, on categories": (
        "pauc_svm",
        {"feature_map": "bins", "surrogate": "sigmoid", "fpr_max": 0.5, "C": 1.0},
    ),
    "rankboost on categories": ("rankboost", {"n_rounds": 4}),
    "adaboost_mh on categories": ("adaboost_mh", {"n_rounds": 4}),
    "aucboost of classifiers": ("aucboost", {"weak_ranker": "logistic"}),
    "treerank by cubes on categories": ("treerank", {"splitter": "grid", "max_depth": 3}),
    "treerank by lines on categories": ("treerank", {"splitter": "linear_svm", "max_depth": 2}),
    "treerank by forests": ("treerank", {"splitter": "random_forest", "max_depth": 1}),
    "rank_average on categories": (
        "rank_average",
        {"members": [RankBoost(n_rounds=3), Logistic(C=1.0), TreeRank(max_depth=3)]},
    ),
}

fuzz = settings(
    max_examples=500 if LONG_FORM else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module", params=VARIANTS)
def small(request):
    """The artifact of a ranker of few rounds, some of them dropped by early stopping."""
    name, parameters = VARIANTS[request.param]
    ranker = (RankAverage if name == "rank_average" else ALGORITHMS[name])(**parameters)
    if "n_rounds" in ranker.get_params():
        ranker.set_params(n_rounds=4)
    if "early_stopping_rounds" in ranker.get_params():
        ranker.set_params(early_stopping_rounds=2)
    X, y = table_for(type(ranker))
    if request.param.endswith("on categories"):
        X = with_categories(X)
    return save(ranker.fit(X, y))


@fuzz
@given(st.data())
def test_mutated_bytes(small, data):
    mutated = bytearray(small)
    for _ in range(data.draw(st.integers(1, 4))):
        mutated[data.draw(st.integers(0, len(small) - 1))] = data.draw(st.integers(0, 255))
    load_or_refuse(bytes(mutated))


@fuzz
@given(st.data())
def test_any_json_in_the_header(small, data):
    header, arrays = take_apart(small)
    state, parameters = header["state"], header["parameters"]
    members = [part for part in parameters.get("members", []) if isinstance(part, dict)]
    places = [header, parameters, state, state["classes"], *members]
    place = data.draw(st.sampled_from([place for place in places if place]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(json_values)
    load_or_refuse(put_together(header, arrays))


@fuzz
@given(st.data())
def test_any_values_in_the_arrays(small, data):
    header, arrays = take_apart(small)
    name = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].size)))
    array = arrays[name].copy()
    if array.dtype.kind == "f":
        value = data.draw(st.floats(width=64))
    elif array.dtype.kind == "b":
        value = data.draw(st.booleans())
    else:
        least, most = np.iinfo(array.dtype).min, np.iinfo(array.dtype).max
        value = data.draw(st.integers(int(least), int(most)))
    array.flat[data.draw(st.integers(0, array.size - 1))] = value
    load_or_refuse(put_together(header, arrays | {name: array}))
