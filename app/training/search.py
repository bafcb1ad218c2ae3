"""Search: which candidates a training job tries, and how it spends its fits on them.

What is offered is what `core.selection` has: all of a grid, candidates drawn at random, successive halving, and `auto`
over several algorithms. The values of a parameter along a path, a number of rounds or C of an SVM, share one fit.
Selection has inner splits of its own within the rows to learn from; neither touches the rows by which the model is
judged in the end. What is served is fitted anew on all rows to learn from, with the values chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.models.objectives import value_of, window_of
from app.platform.errors import escape, invalid, shown
from app.platform.sql import Json
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.selection import Chosen, LeaderboardRow, Planner
    from core.selection.search import CandidateSearch


GRID, RANDOM, HALVING = METHODS = ("grid", "random", "halving")
FRACTION = 0.25
MAX_FOLDS = 20
MAX_FITS = 10_000

AUTO = "auto"
BUDGET_SECONDS = 60.0
MAX_SECONDS = 30 * 86_400.0


def check(search: Mapping[str, Any], name: str, parameters: Mapping[str, Any], seed: int) -> Json:
    """Return the parameters of the first sound candidate, a path's at its greatest value; raises Invalid.

    `parameters` are those of the algorithm without a search.
    """
    from core.selection import InvalidSpace, path_parameter

    try:
        planner = _planner(search, name, parameters, seed)
    except InvalidSpace as error:
        raise invalid(f"/search{error.pointer}", str(error), code="invalid_parameter") from error
    except InvalidParameter as error:
        raise invalid("/search", str(error), code="invalid_parameter") from error
    wrong: InvalidParameter | None = None
    for candidate in planner.candidates:
        tried = {**parameters, **candidate}
        along = path_parameter(ALGORITHMS[name])
        if planner.space.path and along:
            tried[along] = max(planner.space.path)
        try:
            ALGORITHMS[name](**tried)._check_parameters()
        except InvalidParameter as error:
            wrong = wrong or error
        else:
            return tried
    raise invalid(
        "/search/space", f"no candidate is sound, the first: {wrong}", code="invalid_parameter"
    ) from wrong


def check_auto(given: Mapping[str, Any], timeout_seconds: float | None) -> Json:
    """Return the parameters of `auto`; raises Invalid."""
    for parameter in given:
        if parameter != "budget_seconds":
            raise invalid(
                f"/algorithm/{escape(parameter)}",
                f"{AUTO} has no parameter {shown(parameter)}; it has budget_seconds",
                code="invalid_parameter",
            )
    budget = given.get("budget_seconds", BUDGET_SECONDS)
    most = MAX_SECONDS if timeout_seconds is None else timeout_seconds
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not is_number or not 0 < budget <= most:
        raise invalid(
            "/algorithm/budget_seconds",
            f"budget_seconds must be a number above 0 and at most {most:g}, got {shown(budget)}",
            code="invalid_parameter",
        )
    return {"budget_seconds": float(budget)}


def searches(spec: Mapping[str, Any]) -> bool:
    """Whether a job chooses among candidates; those of earlier versions have no entry of a search."""
    return spec.get("search") is not None or spec["algorithm"]["name"] == AUTO


def planner_of(
    spec: Mapping[str, Any],
    n_scopes: int,
    counts: Callable[[], tuple[int, int, int, int]],
    can_split: Callable[[int, int, float], bool],
) -> Planner | None:
    """Who decides in a scope of a job; None where there is nothing to decide.

    `auto` has its share of the budget for each of the scopes, and is told how many rows the scope has to learn from,
    and of its rarer class, how many features, how many categories one has at most, and which inner splits can be made.
    """
    if (budget := budget_of(spec, n_scopes)) is not None:
        from core.ensemble import count_at_once
        from core.selection import Auto

        objective = spec["objective"]
        n_rows, n_rare, n_features, most_categories = counts()
        return Auto(
            n_rows=n_rows,
            n_rare=n_rare,
            n_features=n_features,
            most_categories=most_categories,
            budget_seconds=budget,
            at_once=count_at_once(n_rows, n_features),
            can_repeat=spec["validation"].get("time_column") is None,
            can_split=can_split,
            window=window_of(objective),
            objective=lambda held, scores: value_of(held.y, scores, held.weight, objective),
            random_state=spec["seed"],
        )
    return None if spec.get("search") is None else _planner_of(spec)


def budget_of(spec: Mapping[str, Any], n_scopes: int) -> float | None:
    """The seconds that `auto` has in each scope of a job; None for other algorithms."""
    algorithm = spec["algorithm"]
    if algorithm["name"] != AUTO:
        return None
    budget: float = algorithm["parameters"]["budget_seconds"]
    return budget / n_scopes


def check_size(spec: Mapping[str, Any], n_scopes: int) -> None:
    """Raise Invalid for a search of more fits in all than a job may have."""
    n_fits = _count(spec) * n_scopes
    if n_fits > MAX_FITS:
        raise invalid(
            "/search",
            f"a job may try at most {MAX_FITS:,} fits, these are {n_fits:,}: candidates × search.folds × folds and "
            "repeats of the validation, and one for what is served",
        )


def count_fits(spec: Mapping[str, Any]) -> float:
    """About how many fits a search makes in one scope, in fits of as many rows as it has to learn from."""
    if spec["search"] is None:
        return 0.0
    n_splits = spec["search"].get("folds") or 1
    return _count(spec) * (1.0 - fraction_of(spec) if n_splits == 1 else 1.0 - 1.0 / n_splits)


def _count(spec: Mapping[str, Any]) -> int:
    """The trials of one scope, each taken for a whole one; 0 without a search."""
    if spec["search"] is None:
        return 0
    planner = _planner_of(spec)
    return len(planner.candidates) * planner.n_splits


def trials_of(spec: Mapping[str, Any], n_scopes: int) -> int | None:
    """The trials of a search in all scopes together; None where that is not known before, as of `auto`."""
    from core.selection import SuccessiveHalving

    if spec.get("search") is None:
        return None
    planner = _planner_of(spec)
    n_candidates = len(planner.candidates)
    if isinstance(planner, SuccessiveHalving):
        n_candidates = sum(rung.n_candidates for rung in planner.rungs)
    return n_candidates * planner.n_splits * n_scopes


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
        "candidates": [_candidate(search, row) for row in chosen.candidates],
        "seconds": seconds,
    }


def leaderboard(spec: Mapping[str, Any], chosen: Chosen, seconds: float) -> Json:
    """What `auto` has tried, as it is kept with the model."""
    return {
        "budget_seconds": spec["algorithm"]["parameters"]["budget_seconds"],
        "seconds": seconds,
        "candidates": [asdict(row) for row in chosen.candidates],
        "members": [asdict(member) for member in chosen.members],
        "notes": list(chosen.notes),
    }


def searched(search: Mapping[str, Any], chosen: Chosen) -> Json:
    """The values that a search has chosen."""
    (member,) = chosen.members
    return _searched(search, member.parameters)


def _candidate(search: Mapping[str, Any], row: LeaderboardRow) -> Json:
    return {
        "parameters": _searched(search, row.parameters),
        "value": row.value,
        "auc": row.auc,
        "rows": row.rows,
        "seconds": row.seconds,
        "state": row.state,
        "reason": row.reason,
    }


def _searched(search: Mapping[str, Any], parameters: Mapping[str, Any]) -> Json:
    return {name: parameters[name] for name in parameters if name in search["space"]}


def _planner_of(spec: Mapping[str, Any]) -> CandidateSearch:
    algorithm = spec["algorithm"]
    return _planner(spec["search"], algorithm["name"], algorithm["parameters"], spec["seed"])


def _planner(
    search: Mapping[str, Any], name: str, parameters: Mapping[str, Any], seed: int
) -> CandidateSearch:
    from core.selection import GridSearch, RandomSearch, SuccessiveHalving

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
