"""The search of a training job: which candidates it tries, and the number of fits that this takes.

The methods are those of `core.selection`: a grid, candidates drawn at random, successive halving, and `auto` over
several algorithms. Values along a path (a number of rounds, or C of an SVM) share one fit. Candidates are evaluated on
inner splits of the training rows, never on the validation rows of the model. The served ranker is then fitted on all
training rows, with the chosen values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from app.models.objectives import metric_of, value_of, window_of, without_count
from app.platform import documents
from app.platform.documents import (
    Parameters,
    Search,
    SearchSpec,
    SearchTrial,
)
from app.platform.errors import escape, invalid, shown
from app.training.records import (
    AlgorithmSpec,
    AutoPlan,
    FinishedFit,
    LeaderboardRecord,
    TrainSpec,
)
from core import selection
from core.base.parameters import check_values
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

if TYPE_CHECKING:
    from core.selection import Chosen, LeaderboardRow, Planner
    from core.selection.search import CandidateSearch


GRID, RANDOM, HALVING = METHODS = ("grid", "random", "halving")
FRACTION = 0.25
"""Fraction of the training rows that an inner holdout keeps for validation."""

MAX_FOLDS = 20
MAX_FITS = 10_000
"""Fits of one job, over all folds."""

AUTO = "auto"
PLAN = "plan"
AUTO_PARAMETERS = ("budget_seconds", "max_score_microseconds", "monotone", PLAN)
DEFAULT_BUDGET_SECONDS, MAX_BUDGET_SECONDS = 60.0, 30 * 86_400.0
MAX_SCORE_MICROSECONDS = 1e6
"""Greatest bound on the cost of a row: a second."""


def check(search: SearchSpec, name: str, parameters: Parameters, seed: int) -> Parameters:
    """Return the parameters of the first valid candidate, with the largest value of a path. Raises Invalid.

    `parameters` are those of the algorithm without a search.
    """
    try:
        planner = _planner(search, name, parameters, seed)
    except selection.InvalidSpace as error:
        raise invalid(f"/search{error.pointer}", str(error), code="invalid_parameter") from error
    except InvalidParameter as error:
        raise invalid("/search", str(error), code="invalid_parameter") from error
    wrong: InvalidParameter | None = None
    for candidate in planner.candidates:
        tried = {**parameters, **candidate}
        along = selection.path_parameter(ALGORITHMS[name])
        if planner.space.path and along:
            tried[along] = max(planner.space.path)
        try:
            ALGORITHMS[name](**tried).check_parameters()
        except InvalidParameter as error:
            wrong = wrong or error
        else:
            return tried
    raise invalid(
        "/search/space",
        f"no candidate is valid; the first error: {wrong}",
        code="invalid_parameter",
    ) from wrong


def check_auto(given: Mapping[str, Any], timeout_seconds: float | None) -> Parameters:
    """Validate the parameters of `auto`. Raises Invalid.

    A plan excludes all others.
    """
    for parameter in given:
        if parameter not in AUTO_PARAMETERS:
            raise invalid(
                f"/algorithm/{escape(parameter)}",
                f"{AUTO} has no parameter {shown(parameter)}; it has {', '.join(AUTO_PARAMETERS)}",
                code="invalid_parameter",
            )
    if (plan := given.get(PLAN)) is not None:
        if not isinstance(plan, str):
            raise invalid(
                f"/algorithm/{PLAN}",
                f"{PLAN} must be the id or the name of a model, got {shown(plan)}",
                code="invalid_parameter",
            )
        if others := [each for each in given if each != PLAN and given[each] is not None]:
            raise invalid(
                f"/algorithm/{others[0]}",
                f"{others[0]} cannot be set with a {PLAN}, which repeats fits of another job: omit one of them",
                code="invalid_parameter",
            )
        return {PLAN: plan}
    constraints = {name: value for name, value in given.items() if name == "monotone" and value}
    try:
        check_values(ALGORITHMS["rankboost"], constraints)
    except InvalidParameter as error:
        raise invalid("/algorithm/monotone", str(error), code="invalid_parameter") from error
    most = MAX_BUDGET_SECONDS if timeout_seconds is None else timeout_seconds
    budget = _positive(given, "budget_seconds", DEFAULT_BUDGET_SECONDS, most)
    cost: Parameters = {}
    if given.get("max_score_microseconds") is not None:
        cost["max_score_microseconds"] = _positive(
            given, "max_score_microseconds", None, MAX_SCORE_MICROSECONDS
        )
    return {"budget_seconds": budget, **cost, **constraints}


def _positive(given: Mapping[str, Any], name: str, default: float | None, limit: float) -> float:
    """Read a parameter above 0 and at most `limit`. Raises Invalid."""
    value = given.get(name, default)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= limit:
        raise invalid(
            f"/algorithm/{name}",
            f"{name} must be a number above 0 and at most {limit:,.10g}, got {shown(value)}",
            code="invalid_parameter",
        )
    return float(value)


def searches(spec: TrainSpec) -> bool:
    return spec["search"] is not None or spec["algorithm"]["name"] == AUTO


def planner_of(
    spec: TrainSpec,
    n_scopes: int,
    counts: Callable[[], tuple[int, int, int, int]],
    can_split: Callable[[int, float], bool],
) -> Planner | None:
    """Return the planner of one scope; None if there is nothing to choose.

    Each of the `n_scopes` scopes has an equal part of `auto`'s budget. `counts` returns the numbers of training rows,
    of rows of the rarer class and of features, and the largest number of categories; `can_split` returns whether the
    inner splits (n_splits, fraction) are possible.
    """
    if (budget := budget_of(spec, n_scopes)) is not None:
        from core.ensemble import count_at_once

        objective = without_count(spec["objective"], spec.get("evaluated_rows"))
        n_rows, n_rare, n_features, most_categories = counts()
        return selection.Auto(
            n_rows=n_rows,
            n_rare=n_rare,
            n_features=n_features,
            most_categories=most_categories,
            budget_seconds=budget,
            at_once=count_at_once(n_rows, n_features),
            can_split=can_split,
            window=window_of(objective),
            metric=metric_of(objective),
            objective=lambda held, scores: value_of(held.y, scores, held.weight, objective),
            max_score_microseconds=spec["algorithm"]["parameters"].get("max_score_microseconds"),
            monotone=spec["algorithm"]["parameters"].get("monotone"),
            random_state=spec["seed"],
        )
    return None if spec["search"] is None else _planner_of(spec)


def budget_of(spec: TrainSpec, n_scopes: int) -> float | None:
    """Return the seconds of `auto` for each scope; None for other algorithms, and with a plan."""
    algorithm = spec["algorithm"]
    if algorithm["name"] != AUTO or PLAN in algorithm["parameters"]:
        return None
    budget: float = algorithm["parameters"]["budget_seconds"]
    return budget / n_scopes


def planned(plan: AutoPlan, scope: tuple[int, int] | None) -> Chosen:
    """Return what a plan has for a fold, or for what is served (None)."""
    members, rows = plan["members"], plan["rows"]
    for fold in plan["folds"]:
        if scope is not None and (fold["repeat"], fold["fold"]) == (scope[0] + 1, scope[1] + 1):
            members, rows = fold["members"], fold["rows"]
    chosen = tuple(selection.Member(**each) for each in members)
    return selection.Chosen(chosen, (), rows=rows, score_microseconds=plan["score_microseconds"])


def check_size(spec: TrainSpec, n_scopes: int) -> None:
    """Raise Invalid for a search of more than `MAX_FITS` fits in all scopes."""
    n_fits = _count(spec) * n_scopes
    if n_fits > MAX_FITS:
        raise invalid(
            "/search",
            f"a job can have at most {MAX_FITS:,} fits; this one has {n_fits:,}: candidates × search.folds "
            "× folds and repeats of the validation, plus one for the served ranker",
        )


def count_fits(spec: TrainSpec) -> float:
    """Count fits of a search in one scope approximately, in units of a fit on all training rows."""
    if (search := spec["search"]) is None:
        return 0.0
    n_splits = search.get("folds") or 1
    return _count(spec) * (1.0 - fraction_of(spec) if n_splits == 1 else 1.0 - 1.0 / n_splits)


def is_affordable(search: SearchSpec, algorithm: AlgorithmSpec, n_scopes: int) -> bool:
    """Return True if a search in so many scopes needs at most `MAX_FITS` fits."""
    planner = _planner(search, algorithm["name"], algorithm["parameters"], 0)
    return len(planner.candidates) * planner.n_splits * n_scopes <= MAX_FITS


def _count(spec: TrainSpec) -> int:
    if spec["search"] is None:
        return 0
    planner = _planner_of(spec)
    return len(planner.candidates) * planner.n_splits


def trials_of(spec: TrainSpec, n_scopes: int) -> int | None:
    """Count the trials in all scopes; None if it is not known in advance, as for `auto`."""
    if spec["search"] is None:
        return None
    planner = _planner_of(spec)
    n_candidates = len(planner.candidates)
    if isinstance(planner, selection.SuccessiveHalving):
        n_candidates = sum(rung.n_candidates for rung in planner.rungs)
    return n_candidates * planner.n_splits * n_scopes


def fraction_of(spec: TrainSpec) -> float:
    search = spec["search"]
    return FRACTION if search is None else search.get("fraction", FRACTION)


def describe(
    spec: TrainSpec, chosen: Chosen, seconds: float, folds_chosen: list[documents.FoldChosen]
) -> Search:
    search = _search_of(spec)
    return {
        **search,
        "fraction": fraction_of(spec),
        "chosen": searched(search, chosen),
        "candidates": [_candidate(search, row) for row in chosen.candidates],
        "seconds": seconds,
        "folds_chosen": folds_chosen,
    }


def leaderboard(
    spec: TrainSpec, chosen: Chosen, seconds: float, fits: Sequence[FinishedFit]
) -> LeaderboardRecord:
    """Return the leaderboard of `auto` that is stored with the model, with the fits that were made in the end."""
    served = next(each for each in fits if each["spec"]["scope"] is None)
    folds: list[documents.FoldMembers] = [
        {
            "repeat": scope[0] + 1,
            "fold": scope[1] + 1,
            "rows": each["spec"].get("rows", 1.0),
            "members": fitted_members(each),
        }
        for each in fits
        if (scope := each["spec"]["scope"]) is not None
    ]
    return {
        "budget_seconds": budget_of(spec, 1),
        "seconds": seconds,
        "candidates": [cast(documents.LeaderboardRow, asdict(row)) for row in chosen.candidates],
        "members": fitted_members(served),
        "rows": served["spec"].get("rows", 1.0),
        "folds": folds,
        "repeatable": all(each["result"].get("repeatable", True) for each in fits),
        "notes": [note.text for note in chosen.notes],
    }


def fitted_members(fit: FinishedFit) -> list[documents.Member]:
    """Return the members of a fit; those joined from shards are the planned ones."""
    return fit["result"].get("members", fit["spec"]["members"])


def searched(search: SearchSpec, chosen: Chosen) -> Parameters:
    """Return the chosen values of the searched parameters."""
    (member,) = chosen.members
    return _searched(search, member.parameters)


def _candidate(search: SearchSpec, row: LeaderboardRow) -> SearchTrial:
    return {
        "parameters": _searched(search, row.parameters),
        "value": row.value,
        "auc": row.auc,
        "rows": row.rows,
        "seconds": row.seconds,
        "state": row.state,
        "reason": row.reason,
    }


def _searched(search: SearchSpec, parameters: Mapping[str, Any]) -> Parameters:
    return {name: parameters[name] for name in parameters if name in search["space"]}


def _planner_of(spec: TrainSpec) -> CandidateSearch:
    algorithm = spec["algorithm"]
    return _planner(_search_of(spec), algorithm["name"], algorithm["parameters"], spec["seed"])


def _search_of(spec: TrainSpec) -> SearchSpec:
    search = spec["search"]
    assert search is not None  # else there is nothing to plan or describe
    return search


def _planner(search: SearchSpec, name: str, parameters: Parameters, seed: int) -> CandidateSearch:
    shared = {key: value for key, value in parameters.items() if key not in search["space"]}
    options: dict[str, Any] = {"n_splits": search.get("folds") or 1}
    if search["method"] == GRID:
        return selection.GridSearch(name, search["space"], shared, **options)
    options["random_state"] = seed
    if search.get("n_candidates") is not None:
        options["n_candidates"] = search["n_candidates"]
    if search["method"] == RANDOM:
        return selection.RandomSearch(name, search["space"], shared, **options)
    return selection.SuccessiveHalving(name, search["space"], shared, **options)
