"""The candidates of `Auto`: boosted trees in many forms, and one of every other family; and the history of trials."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from core.registry import ALGORITHMS
from core.trees.options import MAX_CATEGORIES

from .trial import GIVEN_UP, TrialResult

COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Values of C on the path of a linear candidate."""
STUMP_ROUNDS = (10, 25, 50, 100, 200)
"""Numbers of rounds on the path of boosted stumps."""

BOOSTED = "boosted trees"
LINEAR, STUMPS = "linear", "boosted stumps"

DRAWN = "draw "
"""Start of the name of a random variant (`mutate`)."""

LEAF_COUNTS = (4, 8, 16, 31, 63, 127, 255, 511, 1023)
"""Maximum numbers of leaves that are tried."""

PROBE, FULL = "probe", "full"
"""Stages: a few rounds that measure the time of a round, and trials on all rows. Between them are the rungs."""

CROSSES = 30
"""Crosses of a candidate that has some, at most: the number that was measured (docs/benchmarks.md)."""

RUN_PARAMETERS = ("n_rounds", "learning_rate", "random_state", "monotone")
"""Parameters that a trial adds to those of boosted trees."""


@dataclass(frozen=True)
class Candidate:
    """An algorithm with parameters."""

    name: str
    """Unique in a search."""
    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """For boosted trees without n_rounds and learning_rate, which follow from the time left."""
    path: tuple[Any, ...] = ()
    """Values of its path parameter."""
    kind: str = BOOSTED
    """Family; few candidates of one kind go on to the next rung."""

    @property
    def leaves(self) -> int:
        """Maximum number of leaves of boosted trees."""
        return int(self.parameters["max_leaves"])

    @property
    def loss(self) -> str:
        """Name in `LOSSES` of the loss of boosted trees."""
        return next(
            loss
            for loss, (algorithm, own) in LOSSES.items()
            if algorithm == self.algorithm
            and own.get("leaf") == (self.parameters.get("leaf") if "leaf" in own else None)
        )

    @property
    def encoded(self) -> bool:
        """Whether boosted trees encode features of many categories as numbers (`target_encoding`)."""
        return "target_encoding" not in self.parameters

    @property
    def crosses(self) -> int:
        """Maximum number of crosses of categorical features that boosted trees read."""
        return int(self.parameters.get("crosses", 0))


LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic loss": ("logitboost", {}),
    "ranking loss, Newton leaves": ("rankboost", {"weak_ranker": "tree", "leaf": "newton"}),
    "ranking loss, closed leaves": (
        "rankboost",
        {"weak_ranker": "tree", "leaf": "closed", "smoothing": 0.2},
    ),
}
_SAMPLED: dict[str, Any] = {"max_depth": 64, "subsample": 0.85, "max_features": 0.7}

# Quick ones first: if time is short the last are not tried. Each is (kind, algorithm, parameters, path).
_OTHERS: tuple[tuple[str, str, dict[str, Any], tuple[Any, ...]], ...] = (
    (LINEAR, "logistic", {}, COSTS),
    ("additive models", "additive", {}, ()),
    (LINEAR, "auc_svm", {}, COSTS),
    (STUMPS, "rankboost", {}, STUMP_ROUNDS),
    ("branching programs", "martirank", {}, ()),
    ("ranking trees", "treerank", {}, ()),
    (STUMPS, "adaboost", {}, STUMP_ROUNDS),
    (STUMPS, "smooth_margin_rank", {}, STUMP_ROUNDS),
    (STUMPS, "coordinate_rankboost", {}, STUMP_ROUNDS),
    (STUMPS, "aucboost", {}, STUMP_ROUNDS),
    (LINEAR, "pauc_svm", {}, COSTS[1:-1]),
    ("branching programs", "sampled_martirank", {}, ()),
    ("ranking trees", "treerank_forest", {"n_trees": 30}, ()),
    (LINEAR, "asymmetric_svm", {}, ()),
    (LINEAR, "top_push", {}, COSTS[1:-1]),
    (LINEAR, "p_norm_push", {}, COSTS[1:]),
    (LINEAR, "pauc_svm_dc", {}, COSTS[1:-1]),
    (LINEAR, "greedy_pairs", {}, ()),
    ("splines", "komori_eguchi_boost", {}, (5, 10, 20, 40)),
)


class FitCost(NamedTuple):
    """Seconds of a fit of boosted trees."""

    setup: float
    """Before the second round."""
    per_round: float


class TrialHistory:
    """The trials so far, by stage and candidate; their labels are "stage/candidate".

    `others` are the candidates that are not boosted trees.
    """

    def __init__(self, tried: Sequence[TrialResult], others: Sequence[Candidate]) -> None:
        self._stages: dict[str, dict[str, list[TrialResult]]] = {}
        self._candidates = {candidate.name: candidate for candidate in others}
        for one in tried:
            stage, name = one.trial.label.split("/", 1)
            self._stages.setdefault(stage, {}).setdefault(name, []).append(one)
            if name not in self._candidates:
                parameters = {
                    key: value
                    for key, value in one.trial.parameters.items()
                    if key not in RUN_PARAMETERS
                }
                self._candidates[name] = Candidate(name, one.trial.algorithm, parameters)

    @property
    def candidates(self) -> list[Candidate]:
        """All candidates, tried or not, except that of the probe."""
        tried = {name for stage, names in self._stages.items() if stage != PROBE for name in names}
        return [c for c in self._candidates.values() if c.kind != BOOSTED or c.name in tried]

    @property
    def stages(self) -> list[str]:
        """The stages so far, without the probe; the one with the most rows last."""
        rungs = [stage for stage in self._stages if stage not in {PROBE, FULL}]
        return [*rungs, *([FULL] if FULL in self._stages else [])]

    def of(self, stage: str, name: str) -> list[TrialResult]:
        """Return the trials of a candidate in a stage, split by split."""
        return self._stages.get(stage, {}).get(name, [])

    def has(self, stage: str, name: str) -> bool:
        """Return True if the candidate was tried in the stage."""
        return bool(self.of(stage, name))

    def names(self, stage: str) -> list[str]:
        """Return the names of the candidates tried in a stage."""
        return list(self._stages.get(stage, ()))

    @property
    def fraction(self) -> float | None:
        """The fraction of the rows that boosted trees are compared on; None before the first of them."""
        fractions = [
            own[0].trial.rows
            for name, own in self._stages.get(FULL, {}).items()
            if self._candidates[name].kind == BOOSTED
        ]
        return fractions[0] if fractions else None

    def ran_out(self, stage: str) -> bool:
        """Return True if a fit of the stage had nothing to keep at its limit."""
        tried = [one for own in self._stages.get(stage, {}).values() for one in own]
        return any((one.failed or "").startswith(GIVEN_UP) for one in tried)

    def trees_failed(self) -> str | None:
        """Return why there are no boosted trees, if all that were tried failed, at least one not at its limit."""
        tried = [
            one.failed
            for names in self._stages.values()
            for name, own in names.items()
            if self._candidates[name].kind == BOOSTED
            for one in own
        ]
        if not all(tried):
            return None
        return next((why for why in tried if why and not why.startswith(GIVEN_UP)), None)

    def count_drawn(self) -> int:
        """Return the number of random variants that were tried."""
        return sum(name.startswith(DRAWN) for name in self.names(FULL))

    def last_stage(self, name: str) -> str | None:
        """Return the name of the candidate's last stage; None if it was not tried."""
        return next((stage for stage in reversed(self.stages) if self.has(stage, name)), None)

    def last(self, name: str) -> list[TrialResult]:
        """Return the trials of the candidate's last stage."""
        stage = self.last_stage(name)
        return [] if stage is None else self.of(stage, name)

    def seconds(self, name: str) -> float:
        """Return the seconds of all trials of a candidate together."""
        return sum(one.seconds for stage in self.stages for one in self.of(stage, name))

    def finished(self, stage: str) -> list[Candidate]:
        """Return the candidates of a stage that did not fail."""
        return [
            self._candidates[name]
            for name, tried in self._stages.get(stage, {}).items()
            if not any(one.failed for one in tried)
        ]

    def fit_cost(self, leaves: int) -> FitCost | None:
        """Return the predicted cost of trees of a size on all rows of a split; None if none were tried.

        It is predicted from the trees nearest in size; twice the leaves are taken to cost about 1.5 times as much.
        """
        known = list(self._boosted())
        if not known:
            return None
        nearest = min(known, key=lambda one: abs(math.log(one[0] / leaves)))
        size, tried = nearest
        per_round = (tried.seconds - tried.setup) / max(tried.fitted - 1, 1) / tried.trial.rows
        scale = ((leaves + 8.0) / (size + 8.0)) ** 0.6
        # only the first fit of a process loads code
        setups = [one.setup for _, one in known if one.trial.label.startswith(FULL)]
        return FitCost(min(setups, default=0.0), max(per_round * scale, 1e-7))

    def learning(self, leaves: int, cut_factor: float, unknown: float) -> float:
        """Return the learning, rounds × learning rate, that trees of a size are predicted to need.

        It is that of the trees nearest in size, times `cut_factor` if they were still improving at their limit;
        `unknown` if none were tried.
        """
        known = [
            (abs(math.log(candidate.leaves / leaves)), candidate)
            for candidate in self.finished(FULL)
            if candidate.kind == BOOSTED
        ]
        if not known:
            return unknown
        _, nearest = min(known, key=lambda pair: pair[0])
        tried = self.of(FULL, nearest.name)
        steps = best_rounds(tried)
        rate: float = tried[0].trial.parameters["learning_rate"]
        return steps * rate * (cut_factor if is_cut(tried) else 1.0)

    def _boosted(self) -> Iterator[tuple[int, TrialResult]]:
        """Yield the leaves and the trial of boosted trees of two rounds or more, those on all rows first."""
        for stage in (FULL, PROBE):
            for name, tried in self._stages.get(stage, {}).items():
                candidate = self._candidates[name]
                if candidate.kind != BOOSTED:
                    continue
                for one in tried:
                    if not one.failed and one.fitted > 1:
                        yield candidate.leaves, one


def boosted(
    loss: str, leaves: int, n_rows: float, *, encoded: bool = True, crosses: int = 0
) -> Candidate:
    """Return boosted trees with a loss of `LOSSES` and a number of leaves, which are smaller if there are few rows.

    If `encoded`, features of many categories are encoded as numbers (`target_encoding`), else split by sets.
    """
    algorithm, own = LOSSES[loss]
    min_leaf = 5.0 if leaves <= 8 or n_rows < 3_000 else 20.0
    parameters = {**own, **_SAMPLED, "max_leaves": leaves, "min_samples_leaf": min_leaf}
    name = f"{loss}, {leaves}"
    if not encoded:
        name, parameters = f"{name}, sets", {**parameters, "target_encoding": None}
    if crosses:
        name, parameters = f"{name}, crosses", {**parameters, "crosses": crosses}
    return Candidate(name, algorithm, parameters)


def neighbours(best: Candidate, *, most_categories: int) -> Iterator[Candidate]:
    """Yield candidates that differ from `best` in one parameter, most influential parameter first.

    `best` are boosted trees. `most_categories` is the largest number of categories of a feature; 0 if all are numbers.
    """
    min_leaf = best.parameters["min_samples_leaf"]
    changes: list[tuple[str, float]] = []
    if most_categories > MAX_CATEGORIES and not best.encoded:
        changes.append(("max_categories", 5000))
    changes.append(("min_samples_leaf", max(min_leaf / 4.0, 1.0)))
    if most_categories:
        changes.append(("category_penalty", 0.0))
    changes += [("max_features", 0.4), ("min_samples_leaf", min(min_leaf * 4.0, 200.0))]
    if most_categories:
        changes.append(("category_penalty", 1.0))
    changes.append(("max_features", 1.0))
    for name, value in changes:
        if best.parameters.get(name) != value:
            title = f"{best.name}, {name} {value:g}"
            yield Candidate(title, best.algorithm, {**best.parameters, name: value})


def mutate(candidate: Candidate, draw: np.random.Generator, name: str) -> Candidate:
    """Return boosted trees with random changes of some parameters, under a new name."""
    parameters = dict(candidate.parameters)
    algorithm = candidate.algorithm
    if draw.random() < 0.3:
        loss = list(LOSSES)[int(draw.integers(len(LOSSES)))]
        algorithm, own = LOSSES[loss]
        for each in ("weak_ranker", "leaf", "smoothing"):
            parameters.pop(each, None)
        parameters |= own
    if draw.random() < 0.5:
        index = LEAF_COUNTS.index(candidate.leaves) + int(draw.choice([-1, 1]))
        parameters["max_leaves"] = LEAF_COUNTS[min(max(index, 0), len(LEAF_COUNTS) - 1)]
    if draw.random() < 0.5:
        min_leaf = parameters["min_samples_leaf"] * float(draw.choice([0.25, 0.5, 2.0, 4.0]))
        parameters["min_samples_leaf"] = min(max(min_leaf, 1.0), 200.0)
    if draw.random() < 0.4:
        parameters["subsample"] = float(draw.choice([0.5, 0.7, 0.85, 1.0]))
    if draw.random() < 0.5:
        parameters["max_features"] = float(draw.choice([0.25, 0.4, 0.55, 0.7, 0.85, 1.0]))
    if draw.random() < 0.3:
        parameters["category_penalty"] = float(draw.choice([0.0, 0.2, 1.0, 2.0]))
    if draw.random() < 0.4:
        scale = 1.0 if algorithm == "logitboost" else 0.2
        parameters["smoothing"] = scale * float(draw.choice([0.1, 1.0, 5.0, 25.0]))
    return Candidate(name, algorithm, parameters)


def others(window: tuple[float, float]) -> list[Candidate]:
    """Return the candidates of the other families; algorithms that have a window are given this one."""
    candidates = []
    for kind, algorithm, parameters, path in _OTHERS:
        own = ALGORITHMS[algorithm]().get_params(deep=False)
        limits = dict(zip(("fpr_min", "fpr_max"), window, strict=True)) if "fpr_max" in own else {}
        candidates.append(Candidate(algorithm, algorithm, {**parameters, **limits}, path, kind))
    return candidates


def keeps_order(candidate: Candidate) -> bool:
    """Return True if the algorithm can keep monotone constraints."""
    return "monotone" in ALGORITHMS[candidate.algorithm]().get_params(deep=False)


def seeded(candidate: Candidate, seed: int) -> dict[str, Any]:
    """Return the parameters of a candidate, with the seed if the algorithm is randomised."""
    draws = "random_state" in ALGORITHMS[candidate.algorithm]().get_params(deep=False)
    return {**candidate.parameters, **({"random_state": seed} if draws else {})}


def best_rounds(tried: Sequence[TrialResult]) -> float:
    """Return the best number of rounds of boosted trees: the mean over the splits if each has its own."""
    if tried[0].trial.path:
        return float(tried[0].trial.path[best_on_path(tried)])
    return float(np.mean([one.steps for one in tried]))


def is_cut(tried: Sequence[TrialResult]) -> bool:
    """Return True if most fits of boosted trees were still improving when they ended at their limit."""
    if path := tried[0].trial.path:
        return best_on_path(tried) >= len(path) - 2
    cut = sum(one.fitted - one.steps < 0.7 * (one.trial.patience or 0) for one in tried)
    return 2 * cut > len(tried)


def best_on_path(tried: Sequence[TrialResult]) -> int:
    """Return the index of the best value of a path, the first among equals.

    `tried` has a trial per split, none of which failed. The criterion is the sum of the objective and the AUC, each
    divided by its maximum on the path, and smoothed over neighbours: the objective over a window alone is too noisy.
    """
    merit = sum(
        np.array(one.values) / max(*one.values, 1e-12, 0.0)
        + np.array(one.aucs) / max(*one.aucs, 1e-12)
        for one in tried
    )
    assert isinstance(merit, np.ndarray)
    if len(merit) > 2:
        merit = np.convolve(np.r_[merit[0], merit, merit[-1]], [0.25, 0.5, 0.25], "valid")
    return int(np.argmax(merit > merit.max() - 1e-9))
