"""The algorithms of the API, derived from the estimators' signatures, and the validation of a job's algorithm."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, create_model

from app.http.schemas import Kind, Resource
from app.platform.documents import Parameters, SearchSpec
from app.platform.errors import MAX_ERRORS, escape, invalid, refuse_all, shown
from app.platform.tables import DatasetKind
from app.training import search
from app.training.records import AlgorithmSpec
from app.training.search import (
    AUTO,
    DEFAULT_BUDGET_SECONDS,
    MAX_BUDGET_SECONDS,
    MAX_SCORE_MICROSECONDS,
)
from core import selection
from core.base.parameters import check_values, leave_out_newer, list_parameters
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.base.ranker import Ranker

JsonSchema = dict[str, Any]
JOB_LEVEL_PARAMETERS = {
    "random_state": "seed",
    "fpr_min": "objective",
    "fpr_max": "objective",
    "noise_rate": "label_noise",
}
"""Parameters of algorithms that a job sets by a field of its own: parameter -> field."""


class Algorithm(Resource):
    """An algorithm that can be trained."""

    name: str = Field(examples=["rankboost"])
    """Name of the algorithm."""
    summary: str
    """What the algorithm does, in one sentence."""
    paper: str
    """Publication that describes the algorithm."""
    kinds: list[Kind] = Field(examples=[["bipartite", "preferences"]])
    """Kinds of datasets that the algorithm can train on."""
    parameters: dict[str, Any]
    """JSON Schema of the algorithm's parameters: types, bounds and defaults. In a job they go next to `name` in
    `algorithm`."""


def describe_all() -> list[Algorithm]:
    return [
        _described(AUTO, selection.Auto, _auto_schema()),
        *(
            _described(name, estimator, parameter_schema(name, estimator))
            for name, estimator in ALGORITHMS.items()
        ),
    ]


def _described(name: str, of: type, parameters: JsonSchema) -> Algorithm:
    return Algorithm(
        name=name,
        summary=_summary(of),
        paper=_paper(of),
        kinds=kinds_of(name),
        parameters=parameters,
    )


def kinds_of(name: str) -> list[str]:
    """For some kinds, only certain parameters work."""
    if name == AUTO:
        return [DatasetKind.BIPARTITE]
    estimator = ALGORITHMS[name]
    if estimator.target == "multilabel":
        return [DatasetKind.MULTILABEL]
    pairs = [DatasetKind.PREFERENCES] if hasattr(estimator, "fit_pairs") else []
    grades = [DatasetKind.GRADED] if estimator.takes_grades else []
    return [DatasetKind.BIPARTITE, *pairs, *grades]


def parameter_schema(name: str, estimator: type[Ranker]) -> JsonSchema:
    own = own_parameters(estimator)
    fields: dict[str, Any] = {
        parameter.name: (
            parameter.json_annotation,
            Field(default=parameter.default, description=parameter.doc),
        )
        for parameter in list_parameters(estimator)
        if parameter.name in own
    }
    return _schema(name, fields)


def _auto_schema() -> JsonSchema:
    """`search.check_auto` validates the parameters."""
    budget = Field(
        default=DEFAULT_BUDGET_SECONDS,
        gt=0,
        le=MAX_BUDGET_SECONDS,
        description="Time budget in seconds for the whole job, from the start of its attempt to `succeeded`.",
    )
    constraints = next(
        it for it in list_parameters(ALGORITHMS["rankboost"]) if it.name == "monotone"
    )
    keeps = Field(default=None, description=constraints.doc)
    cost = Field(
        default=None,
        gt=0,
        le=MAX_SCORE_MICROSECONDS,
        description="Largest predicted time in microseconds to score a row in bulk, in one thread. Null: no "
        "limit.",
    )
    plan = Field(
        default=None,
        description="Model of `auto` whose fits are repeated, without a search and without a budget. "
        "No other parameter can be set with it.",
    )
    fields = {
        "budget_seconds": (float, budget),
        "plan": (str | None, plan),
        "max_score_microseconds": (float | None, cost),
        "monotone": (constraints.json_annotation, keeps),
    }
    return _schema(AUTO, fields)


def _schema(name: str, fields: dict[str, Any]) -> JsonSchema:
    model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    schema: JsonSchema = model.model_json_schema()
    return schema


def _summary(of: type) -> str:
    return (inspect.getdoc(of) or "").partition("\n\n")[0].replace("\n", " ")


def _paper(of: type) -> str:
    """Return the first entry under References in the docstring."""
    _, _, references = (inspect.getdoc(of) or "").partition("References\n----------\n")
    first = references.partition("\n\n")[0]
    return re.sub(r"\s+", " ", first).strip()


def own_parameters(estimator: type[Ranker]) -> Parameters:
    """Return the parameters that a job sets as members of `algorithm`, with their defaults."""
    return {
        parameter.name: parameter.default
        for parameter in list_parameters(estimator)
        if parameter.name not in JOB_LEVEL_PARAMETERS
    }


def resolve_algorithm(
    algorithm: Mapping[str, Any],
    searched: SearchSpec | None,
    of_job: Parameters,
    timeout_seconds: float | None,
) -> AlgorithmSpec:
    """Complete the algorithm of a request. Raises Invalid. `of_job` has a value for each of `JOB_LEVEL_PARAMETERS`."""
    given = dict(algorithm)
    name = given.pop("name", None)
    if name == AUTO:
        if searched is not None:
            raise invalid("/search", f"{AUTO} has a built-in search: omit search")
        return {"name": name, "parameters": search.check_auto(given, timeout_seconds)}
    if not isinstance(name, str) or name not in ALGORITHMS:
        known = ", ".join([*ALGORITHMS, AUTO])
        got = "it is missing" if name is None else f"got {shown(name)}"
        raise invalid(
            "/algorithm/name",
            f"algorithm.name must be one of {known}; {got}",
            code="unknown_algorithm",
        )
    estimator = ALGORITHMS[name]
    own = own_parameters(estimator)
    _check_given(name, estimator, own, given)
    if searched is not None:
        _check_searched(searched, given)
    known_parameters = {parameter.name for parameter in list_parameters(estimator)}
    parameters = {**own, **given, **{k: v for k, v in of_job.items() if k in known_parameters}}
    if searched is not None:
        parameters = search.check(searched, name, parameters, of_job["random_state"])
    else:
        try:
            estimator(**parameters).check_parameters()
        except InvalidParameter as error:
            raise invalid("/algorithm", str(error), code="invalid_parameter") from error
    space: Parameters = {} if searched is None else dict.fromkeys(searched["space"], ...)
    kept = leave_out_newer(estimator, parameters | space)  # what is searched is at no default
    return {
        "name": name,
        "parameters": {it: value for it, value in parameters.items() if it in kept},
        "defaults": {it: value for it, value in parameters.items() if it not in kept},
    }


def _check_given(
    name: str, estimator: type[Ranker], own: Parameters, given: Mapping[str, Any]
) -> None:
    """Check each parameter separately; raise Invalid with all invalid ones."""
    wrong = (
        {"pointer": f"/algorithm/{escape(parameter)}", "detail": detail}
        for parameter, value in given.items()
        if (detail := _parameter_error(name, estimator, own, parameter, value)) is not None
    )
    refuse_all(list(islice(wrong, MAX_ERRORS)), "invalid_parameter")


def _check_searched(searched: SearchSpec, given: Mapping[str, Any]) -> None:
    for parameter in searched["space"]:
        if parameter == "monotone":
            raise invalid(
                "/search/space/monotone",
                "monotone constraints are not searched: write them in the algorithm",
                code="invalid_parameter",
            )
        if parameter in JOB_LEVEL_PARAMETERS:
            raise invalid(
                f"/search/space/{parameter}",
                f"{parameter} is set by the job's {JOB_LEVEL_PARAMETERS[parameter]!r}; omit it from the search",
                code="invalid_parameter",
            )
        if parameter in given:
            raise invalid(
                f"/algorithm/{parameter}",
                f"{parameter} is set by the search; omit it from the algorithm",
                code="invalid_parameter",
            )


def _parameter_error(
    name: str, estimator: type[Ranker], own: Parameters, parameter: str, value: object
) -> str | None:
    """Return the error message for one parameter; None for a valid one."""
    if parameter in JOB_LEVEL_PARAMETERS:
        return (
            f"{parameter} is set by the job's {JOB_LEVEL_PARAMETERS[parameter]!r}; omit it from the "
            "algorithm"
        )
    if parameter == "monotone" and parameter not in own:
        able = [other for other, it in ALGORITHMS.items() if parameter in own_parameters(it)]
        return (
            f"{name} does not support monotone constraints; algorithms that do are {', '.join(able)}, "
            f"{AUTO}"
        )
    if parameter not in own:
        return f"{name} has no parameter {shown(parameter)}; it has {', '.join(own)}"
    try:
        check_values(estimator, {parameter: value})
    except InvalidParameter as error:
        return str(error)
    return None
