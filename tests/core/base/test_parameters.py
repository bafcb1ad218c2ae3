"""The schema in the signatures, and the checks derived from it."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import numpy as np
import pytest
from annotated_doc import Doc
from annotated_types import Ge, Gt, Le, Lt
from pydantic import TypeAdapter, ValidationError

from core.base.parameters import check_values, list_parameters
from core.errors import MAX_VALUE, InvalidParameter, shorten
from core.registry import ALGORITHMS
from tests.raising import raises


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


def test_parameters_are_read_from_the_signature() -> None:
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
def test_good_values_pass(values: Any) -> None:
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
        (
            {"rate": 10**400},
            f"rate must be a finite number, got {shorten(str(10**400), MAX_VALUE)}",
        ),
        ({"rate": False}, "rate must be a finite number, got False"),
        ({"mode": "c"}, "mode must be one of 'a', 'b' or None, got 'c'"),
        ({"limit": -1}, "limit must be at least 0, got -1"),
        ({"limit": 0.5}, "limit must be an integer or None, got 0.5"),
        ({"eager": 1}, "eager must be true or false, got 1"),
        ({"speed": 1}, "Sample has no parameter 'speed'; it has count, rate, mode, limit, eager"),
    ],
)
def test_bad_values_are_refused_by_name_rule_and_value(values: Any, message: str) -> None:
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
def test_a_parameter_without_annotation_or_default_is_a_mistake(
    initialiser: Callable[..., Any],
) -> None:
    broken = type("Broken", (), {"__init__": initialiser})
    with raises(TypeError, "Broken.count"):
        list_parameters(broken)


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_defaults_obey_the_schema_and_pydantic_reads_it(algorithm: type[Any]) -> None:
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


def beyond(annotation: Any) -> Iterator[float]:
    """Values just outside each bound that an annotation has, and some of a wrong type."""
    kinds = [kind for kind in get_args(annotation) if get_origin(kind) is Annotated]
    yield from (value for kind in kinds for value in beyond(kind))
    if get_origin(annotation) is not Annotated:
        return
    whole = int in {get_args(annotation)[0], *get_args(get_args(annotation)[0])}
    step = 1 if whole else 1e-7
    for bound in get_args(annotation)[1:]:
        limit: Any = getattr(
            bound, "ge", getattr(bound, "gt", getattr(bound, "le", getattr(bound, "lt", None)))
        )
        match bound:
            case Ge():
                yield limit - step
            case Gt() | Lt():
                yield limit
            case Le():
                yield limit + step * max(1, abs(limit)) if not whole else limit + 1
    yield from beyond(get_args(annotation)[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
def test_what_the_schema_forbids_is_refused_by_name_at_fit_and_in_an_artifact(
    algorithm: type[Any],
) -> None:
    X: list[Any] = [[0.0], [1.0]]
    y: list[Any] = [0, 1]
    if algorithm.target == "multilabel":
        y = [[0, 1], [1, 0]]
    arrays, meta = algorithm().fit(X, y).get_state()
    n_refused = 0
    for parameter in list_parameters(algorithm):
        for wrong in (*beyond(parameter.annotation), "nonsense", float("nan"), ()):
            with raises(InvalidParameter, parameter.name, repr(wrong)):
                algorithm(**{parameter.name: wrong}).fit(X, y)
            with raises(InvalidParameter, parameter.name):
                algorithm.from_state({parameter.name: wrong}, arrays, meta)
            n_refused += 1
    assert n_refused > 3 * len(algorithm().get_params(deep=False))
    with raises(InvalidParameter, "'depth'"):
        algorithm.from_state({"depth": 3}, arrays, meta)


# Rules across parameters.
EMPTY_WINDOW = ("fpr_max", "fpr_min", 0.2, 0.1)
WINDOWED = (
    *("komori_eguchi_boost", "greedy_pairs", "asymmetric_svm"),
    *("pauc_svm", "pauc_svm_dc", "top_push", "p_norm_push"),
)
LEVELS = {"weak_ranker": "tree", "max_depth": 11, "max_leaves": None}
NEEDS_CV = ("leafrank_pruning='cv'", "splitter='leafrank'")
HOLDS_OUT = ("order", "'validation'")
TOGETHER = [
    *((name, {"fpr_min": 0.2, "fpr_max": 0.1}, EMPTY_WINDOW) for name in WINDOWED),
    ("rankboost", LEVELS, ("max_depth", "max_leaves", 10)),
    ("rankboost", {"smoothing": 2.0}, ("smoothing", 2.0)),
    ("coordinate_rankboost", {"weak_ranker": "tree"}, ("weak_ranker", "'tree'")),
    ("treerank", {"order": "validation"}, HOLDS_OUT),
    ("treerank", {"pruning": "structural", "order": "validation"}, HOLDS_OUT),
    (
        "treerank",
        {"pruning": "structural", "splitter": "random_forest"},
        ("'structural'", "'random_forest'"),
    ),
    ("treerank", {"leafrank_pruning": "cv"}, NEEDS_CV),
    ("treerank", {"leafrank_pruning": "cv", "pruning": "cv", "splitter": "axis"}, NEEDS_CV),
    ("treerank", {"pruning": "cv", "leaf_penalty": 0.1}, ("leaf_penalty", 0.1)),
]


@pytest.mark.parametrize(("name", "values", "named"), TOGETHER)
def test_parameters_that_do_not_go_together_are_refused(
    name: str, values: Any, named: tuple[object, ...]
) -> None:
    with raises(InvalidParameter, *named):
        ALGORITHMS[name](**values).fit(np.eye(4), [0, 1, 0, 1])
