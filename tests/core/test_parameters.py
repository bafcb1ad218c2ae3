"""The schema in the signatures, and the checks drawn from it."""

from typing import Annotated, Literal

import numpy as np
import pytest
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from pydantic import TypeAdapter, ValidationError

from core.errors import InvalidParameter
from core.parameters import check_values, list_parameters
from core.registry import ALGORITHMS


class Sample:
    def __init__(
        self,
        *,
        count: Annotated[int, Ge(1), Le(9), Doc("How many.")] = 3,
        rate: Annotated[float, Gt(0), Lt(1), Doc("How fast.")] = 0.5,
        mode: Annotated[Literal["a", "b"] | None, Doc("How.")] = None,
        limit: Annotated[int | None, Ge(0), Doc("How far.")] = None,
        eager: Annotated[bool, Doc("Whether.")] = False,
    ) -> None:
        pass


def test_parameters_are_read_from_the_signature():
    parameters = list_parameters(Sample)
    assert [p.name for p in parameters] == ["count", "rate", "mode", "limit", "eager"]
    assert [p.default for p in parameters] == [3, 0.5, None, None, False]
    assert parameters[0].doc == "How many."


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"count": 1},
        {"count": np.int64(9)},
        {"rate": np.float32(0.25)},
        {"mode": "b"},
        {"mode": None, "limit": None},
        {"limit": 0},
        {"eager": True},
    ],
)
def test_good_values_pass(values):
    check_values(Sample, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"count": 10}, "count must be at most 9, got 10"),
        ({"count": 2.0}, "count must be an integer, got 2.0"),
        ({"count": True}, "count must be an integer, got True"),
        ({"count": "3"}, "count must be an integer, got '3'"),
        ({"count": None}, "count must be an integer, got None"),
        ({"rate": 0}, "rate must be greater than 0, got 0"),
        ({"rate": 1.0}, "rate must be less than 1, got 1.0"),
        ({"rate": float("nan")}, "rate must be a finite number, got nan"),
        ({"rate": float("inf")}, "rate must be a finite number, got inf"),
        ({"rate": 10**400}, f"rate must be a finite number, got {10**400}"),
        ({"rate": False}, "rate must be a finite number, got False"),
        ({"mode": "c"}, "mode must be one of 'a', 'b' or None, got 'c'"),
        ({"limit": -1}, "limit must be at least 0, got -1"),
        ({"limit": 0.5}, "limit must be an integer or None, got 0.5"),
        ({"eager": 1}, "eager must be true or false, got 1"),
        ({"speed": 1}, "Sample has no parameter 'speed'; it has count, rate, mode, limit, eager"),
    ],
)
def test_bad_values_are_refused_by_name_rule_and_value(values, message):
    with pytest.raises(InvalidParameter) as caught:
        check_values(Sample, values)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "initialiser",
    [
        lambda self, *, count=3: None,
        lambda self, count: None,
    ],
)
def test_a_parameter_without_annotation_or_default_is_a_mistake(initialiser):
    broken = type("Broken", (), {"__init__": initialiser})
    with pytest.raises(TypeError, match=r"Broken\.count needs"):
        list_parameters(broken)


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_defaults_obey_the_schema_and_pydantic_reads_it(algorithm):
    ranker = algorithm()
    parameters = list_parameters(algorithm)
    assert {p.name for p in parameters} == set(ranker.get_params())
    check_values(algorithm, {p.name: p.default for p in parameters})
    for parameter in parameters:
        assert parameter.doc.endswith(".")
        adapter = TypeAdapter(parameter.json_annotation)
        assert adapter.validate_python(parameter.default) == parameter.default
        with pytest.raises(ValidationError):
            adapter.validate_python("not a value")


BAD_PARAMETERS = [
    {"n_rounds": 0},
    {"n_rounds": 1.5},
    {"n_rounds": True},
    {"max_bins": 1},
    {"max_bins": 65_536},
    {"learning_rate": 0.0},
    {"learning_rate": float("nan")},
    {"smoothing": -0.1},
    {"max_bins": None},
    {"weak_ranker": "forest"},
]


@pytest.mark.parametrize(
    ("algorithm", "values"),
    [
        pytest.param(algorithm, values, id=f"{values}-{algorithm_name}")
        for values in BAD_PARAMETERS
        for algorithm_name, algorithm in ALGORITHMS.items()
        if next(iter(values)) in algorithm().get_params()
    ],
)
def test_fit_and_from_state_refuse_bad_parameters(algorithm, values):
    X, y = [[0.0], [1.0]], [0, 1]
    name = next(iter(values))
    if algorithm.target == "multilabel":
        y = [[0, 1], [1, 0]]
    with pytest.raises(InvalidParameter, match=rf"^{name} must be .*, got "):
        algorithm(**values).fit(X, y)
    arrays, meta = algorithm().fit(X, y).get_state()
    with pytest.raises(InvalidParameter, match=rf"^{name} must be "):
        algorithm.from_state(values, arrays, meta)
    with pytest.raises(InvalidParameter, match="no parameter 'depth'"):
        algorithm.from_state({"depth": 3}, arrays, meta)
