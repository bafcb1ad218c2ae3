"""Search: which candidates a training job tries, and how it spends its fits on them.

What is offered is what `core.selection` has: all of a grid, candidates drawn at random, successive halving, and `auto`
over several algorithms. The values of a parameter along a path, a number of rounds or C of an SVM, share one fit.
Selection has inner splits of its own within the rows to learn from; neither touches the rows by which the model is
judged in the end. What is served is fitted anew on all rows to learn from, with the values chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.errors import Invalid
from core.errors import InvalidParameter
from core.registry import ALGORITHMS
from core.selection import (
    Chosen,
    GridSearch,
    InvalidSpace,
    RandomSearch,
    Standing,
    SuccessiveHalving,
    path_parameter,
)
from core.selection.search import CandidateSearch

GRID, RANDOM, HALVING = METHODS = ("grid", "random", "halving")
FRACTION = 0.25
MOST_FOLDS = 20

Json = dict[str, Any]


def check(search: Mapping[str, Any], name: str, parameters: Mapping[str, Any], seed: int) -> Json:
    """Return the parameters of the first sound candidate, a path's at its greatest value; raises Invalid.

    `parameters` are those of the algorithm without a search.
    """
    try:
        planner = _planner(search, name, parameters, seed)
    except InvalidSpace as error:
        raise _invalid(f"/search{error.pointer}", str(error), code="invalid_parameter") from error
    except InvalidParameter as error:
        raise _invalid("/search", str(error), code="invalid_parameter") from error
    fault: InvalidParameter | None = None
    for candidate in planner.candidates:
        tried = {**parameters, **candidate}
        along = path_parameter(ALGORITHMS[name])
        if planner.space.path and along:
            tried[along] = max(planner.space.path)
        try:
            ALGORITHMS[name](**tried)._check_parameters()
        except InvalidParameter as error:
            fault = fault or error
        else:
            return tried
    raise _invalid(
        "/search/space", f"no candidate is sound, the first: {fault}", code="invalid_parameter"
    ) from fault


def planner_of(spec: Mapping[str, Any], n_scopes: int) -> CandidateSearch | None:
    """Who decides in each scope of a job; None where there is nothing to decide."""
    search = spec.get("search")  # jobs of earlier versions have no such entry
    if search is None:
        return None
    algorithm = spec["algorithm"]
    return _planner(search, algorithm["name"], algorithm["parameters"], spec["seed"])


def count_fits(spec: Mapping[str, Any]) -> float:
    """About how many fits a search makes in one scope, in fits of as many rows as it has to learn from."""
    planner = planner_of(spec, 1)
    if planner is None:
        return 0.0
    learnt = 1.0 - fraction_of(spec) if planner.n_splits == 1 else 1.0 - 1.0 / planner.n_splits
    return len(planner.candidates) * planner.n_splits * learnt


def fraction_of(spec: Mapping[str, Any]) -> float:
    """The share of the rows to learn from that an inner holdout keeps back."""
    fraction: float = (spec.get("search") or {}).get("fraction", FRACTION)
    return fraction


def describe(spec: Mapping[str, Any], chosen: Chosen, seconds: float) -> Json:
    """What a search has tried and chosen, as it is kept with the model."""
    search = spec["search"]
    return {
        **search,
        "chosen": searched(search, chosen),
        "candidates": [_candidate(search, standing) for standing in chosen.candidates],
        "seconds": seconds,
    }


def searched(search: Mapping[str, Any], chosen: Chosen) -> Json:
    """The values that a search has chosen."""
    (member,) = chosen.members
    return _searched(search, member.parameters)


def _candidate(search: Mapping[str, Any], standing: Standing) -> Json:
    return {
        "parameters": _searched(search, standing.parameters),
        "value": standing.value,
        "auc": standing.auc,
        "rows": standing.rows,
        "seconds": standing.seconds,
        "state": standing.state,
        "reason": standing.reason,
    }


def _searched(search: Mapping[str, Any], parameters: Mapping[str, Any]) -> Json:
    return {name: parameters[name] for name in parameters if name in search["space"]}


def _planner(
    search: Mapping[str, Any], name: str, parameters: Mapping[str, Any], seed: int
) -> CandidateSearch:
    shared = {key: value for key, value in parameters.items() if key not in search["space"]}
    given: Json = {"n_splits": search.get("folds") or 1}
    if search["method"] == GRID:
        return GridSearch(name, search["space"], shared, **given)
    given["random_state"] = seed
    if search.get("n_candidates") is not None:
        given["n_candidates"] = search["n_candidates"]
    if search["method"] == RANDOM:
        return RandomSearch(name, search["space"], shared, **given)
    return SuccessiveHalving(name, search["space"], shared, **given)


def _invalid(pointer: str, detail: str, *, code: str | None = None) -> Invalid:
    return Invalid(detail, code=code, errors=[{"pointer": pointer, "detail": detail}])
