"""The candidates of `Auto`, boosted trees in many forms and every family of the papers, and what their trials gave."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from core.registry import ALGORITHMS
from core.trees.options import MAX_CATEGORIES

from .trial import GIVEN_UP, TrialResult

COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
STUMP_ROUNDS = (10, 25, 50, 100, 200)

BOOSTED = "boosted trees"
LINEAR, STUMPS = "linear", "boosted stumps"

DRAWN = "draw "
"""How the names of drawn changes begin."""

LEAF_COUNTS = (4, 8, 16, 31, 63, 127, 255, 511, 1023)
"""Numbers of leaves that are tried."""


PROBE, FULL = "probe", "full"


RUN_PARAMETERS = ("n_rounds", "learning_rate", "random_state")
"""What a trial adds to the parameters of boosted trees."""


@dataclass(frozen=True)
class Candidate:
    """An algorithm with parameters, under a name of its own."""

    name: str
    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """Of boosted trees without n_rounds and learning_rate: these follow from the time there is."""
    path: tuple[Any, ...] = ()
    """Values of its path parameter."""
    kind: str = BOOSTED
    """What it resembles: of one kind, few go on to more rows."""

    @property
    def leaves(self) -> int:
        """Of boosted trees, the most leaves of a tree."""
        return int(self.parameters["max_leaves"])

    @property
    def loss(self) -> str:
        """Of boosted trees, the loss and how leaves are set."""
        return next(
            loss
            for loss, (algorithm, own) in LOSSES.items()
            if algorithm == self.algorithm
            and own.get("leaf") == (self.parameters.get("leaf") if "leaf" in own else None)
        )

    @property
    def encoded(self) -> bool:
        """Of boosted trees, whether features of many categories are asked by numbers."""
        return "target_encoding" not in self.parameters


LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic loss": ("logitboost", {}),
    "ranking loss, Newton leaves": ("rankboost", {"weak_ranker": "tree", "leaf": "newton"}),
    "ranking loss, closed leaves": (
        "rankboost",
        {"weak_ranker": "tree", "leaf": "closed", "smoothing": 0.2},
    ),
}
_SAMPLED: dict[str, Any] = {"max_depth": 64, "subsample": 0.85, "max_features": 0.7}

# The quick ones first: where time is short the last are not tried.
_OTHERS: tuple[tuple[str, str, dict[str, Any], tuple[Any, ...]], ...] = (
    (LINEAR, "logistic", {}, COSTS),
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
    (LINEAR, "pauc_svm_dc", {}, COSTS[1:-1]),
    (LINEAR, "greedy_pairs", {}, ()),
    ("splines", "komori_eguchi_boost", {}, (5, 10, 20, 40)),
)


class FitCost(NamedTuple):
    """Seconds of a fit of boosted trees: before its second round, and for each round."""

    setup: float
    a_round: float


class TrialHistory:
    """The trials so far, by stage and candidate.

    Their labels are "stage/candidate": the probe, the rungs, and all rows. `others` are the candidates that are not
    boosted trees.
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
        """All of them, tried or not, but for the probe's."""
        tried = {name for stage, names in self._stages.items() if stage != PROBE for name in names}
        return [c for c in self._candidates.values() if c.kind != BOOSTED or c.name in tried]

    @property
    def stages(self) -> list[str]:
        """The stages so far whose candidates are evaluated, the one with the most rows last."""
        rungs = [stage for stage in self._stages if stage not in {PROBE, FULL}]
        return [*rungs, *([FULL] if FULL in self._stages else [])]

    def of(self, stage: str, name: str) -> list[TrialResult]:
        """Return the trials of a candidate in a stage, split by split."""
        return self._stages.get(stage, {}).get(name, [])

    def has(self, stage: str, name: str) -> bool:
        """Whether the candidate was tried in the stage."""
        return bool(self.of(stage, name))

    def names(self, stage: str) -> list[str]:
        """Name those that were tried in a stage."""
        return list(self._stages.get(stage, ()))

    @property
    def share(self) -> float | None:
        """The share of the rows that boosted trees were compared on; None before the first."""
        shares = [
            own[0].trial.rows
            for name, own in self._stages.get(FULL, {}).items()
            if self._candidates[name].kind == BOOSTED
        ]
        return shares[0] if shares else None

    def ran_out(self, stage: str) -> bool:
        """Whether fits of a stage had nothing to keep when their limit came."""
        tried = [one for own in self._stages.get(stage, {}).values() for one in own]
        return any((one.failed or "").startswith(GIVEN_UP) for one in tried)

    def trees_failed(self) -> str | None:
        """Say why there are no boosted trees, where all that were tried failed, some not for want of time."""
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
        """Say how many drawn changes were tried."""
        return sum(name.startswith(DRAWN) for name in self.names(FULL))

    def last_stage(self, name: str) -> str | None:
        """Name the last stage that the candidate was in."""
        return next((stage for stage in reversed(self.stages) if self.has(stage, name)), None)

    def last(self, name: str) -> list[TrialResult]:
        """Return the trials of the last stage that the candidate was in."""
        stage = self.last_stage(name)
        return [] if stage is None else self.of(stage, name)

    def seconds(self, name: str) -> float:
        """Add up the seconds of all its trials."""
        return sum(one.seconds for stage in self.stages for one in self.of(stage, name))

    def finished(self, stage: str) -> list[Candidate]:
        """Return those that a stage has figures of."""
        found = self._stages.get(stage, {})
        return [
            self._candidates[name]
            for name, tried in found.items()
            if not any(one.failed for one in tried)
        ]

    def fit_cost(self, leaves: int) -> FitCost | None:
        """Return what trees of a size cost on all rows of a split; None where nothing is known.

        By the trees nearest in size; a tree of twice the leaves is taken to cost half as much again.
        """
        known = list(self._boosted())
        if not known:
            return None
        nearest = min(known, key=lambda one: abs(math.log(one[0] / leaves)))
        size, tried = nearest
        a_round = (tried.seconds - tried.setup) / max(tried.fitted - 1, 1) / tried.trial.rows
        scale = ((leaves + 8.0) / (size + 8.0)) ** 0.6
        # what comes first in a process takes time to load, which no other fit will take
        setups = [one.setup for _, one in known if one.trial.label.startswith(FULL)]
        return FitCost(min(setups, default=0.0), max(a_round * scale, 1e-7))

    def learning(self, leaves: int, further: float, unknown: float) -> float:
        """Say how much learning, rounds times rate, trees of a size are foreseen to want.

        Where a fit was ended while it still gained, `further` times what it had; `unknown` where none were tried.
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
        return steps * rate * (further if is_cut(tried) else 1.0)

    def _boosted(self) -> Iterator[tuple[int, TrialResult]]:
        """Return the trials of boosted trees that tell of a cost, those on all rows first."""
        for stage in (FULL, PROBE):
            for name, tried in self._stages.get(stage, {}).items():
                candidate = self._candidates[name]
                if candidate.kind != BOOSTED:
                    continue
                for one in tried:
                    if not one.failed and one.fitted > 1:
                        yield candidate.leaves, one


def boosted(loss: str, leaves: int, n_rows: float, *, encoded: bool = True) -> Candidate:
    """Return boosted trees by a loss of `LOSSES`, of a number of leaves; where rows are few, a leaf has fewer.

    With `encoded` features of many categories are asked by numbers (`target_encoding`), not by sets.
    """
    algorithm, own = LOSSES[loss]
    least = 5.0 if leaves <= 8 or n_rows < 3_000 else 20.0
    parameters = {**own, **_SAMPLED, "max_leaves": leaves, "min_samples_leaf": least}
    if encoded:
        return Candidate(f"{loss}, {leaves}", algorithm, parameters)
    return Candidate(f"{loss}, {leaves}, sets", algorithm, {**parameters, "target_encoding": None})


def neighbours(of: Candidate, *, most_categories: int) -> Iterator[Candidate]:
    """Return boosted trees that differ in one parameter, the changes that tell most first.

    A feature has `most_categories` at most; 0 where there are only numbers.
    """
    least = of.parameters["min_samples_leaf"]
    steps: list[tuple[str, float]] = []
    if most_categories > MAX_CATEGORIES and not of.encoded:
        steps.append(("max_categories", 5000))
    steps.append(("min_samples_leaf", max(least / 4.0, 1.0)))
    if most_categories:
        steps.append(("category_penalty", 0.0))
    steps += [("max_features", 0.4), ("min_samples_leaf", min(least * 4.0, 200.0))]
    if most_categories:
        steps.append(("category_penalty", 1.0))
    steps.append(("max_features", 1.0))
    for name, value in steps:
        if of.parameters.get(name) != value:
            title = f"{of.name}, {name} {value:g}"
            yield Candidate(title, of.algorithm, {**of.parameters, name: value})


def mutate(of: Candidate, draw: np.random.Generator, name: str) -> Candidate:
    """Draw a change of some of the parameters of boosted trees, under a new name."""
    parameters = dict(of.parameters)
    algorithm = of.algorithm
    if draw.random() < 0.3:
        loss = list(LOSSES)[int(draw.integers(len(LOSSES)))]
        algorithm, own = LOSSES[loss]
        for each in ("weak_ranker", "leaf", "smoothing"):
            parameters.pop(each, None)
        parameters |= own
    if draw.random() < 0.5:
        place = LEAF_COUNTS.index(of.leaves) + int(draw.choice([-1, 1]))
        parameters["max_leaves"] = LEAF_COUNTS[min(max(place, 0), len(LEAF_COUNTS) - 1)]
    if draw.random() < 0.5:
        least = parameters["min_samples_leaf"] * float(draw.choice([0.25, 0.5, 2.0, 4.0]))
        parameters["min_samples_leaf"] = min(max(least, 1.0), 200.0)
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
    """Return the other families, with the window of false positive rates where an algorithm has one."""
    found = []
    for kind, algorithm, parameters, path in _OTHERS:
        own = ALGORITHMS[algorithm]().get_params(deep=False)
        limits = dict(zip(("fpr_min", "fpr_max"), window, strict=True)) if "fpr_max" in own else {}
        found.append(Candidate(algorithm, algorithm, {**parameters, **limits}, path, kind))
    return found


def seeded(candidate: Candidate, seed: int) -> dict[str, Any]:
    """Return the parameters, with the seed where the algorithm draws at random."""
    draws = "random_state" in ALGORITHMS[candidate.algorithm]().get_params(deep=False)
    return {**candidate.parameters, **({"random_state": seed} if draws else {})}


def best_rounds(tried: Sequence[TrialResult]) -> float:
    """Return the rounds of boosted trees that were best, the mean over the splits where each has its own."""
    if tried[0].trial.path:
        return float(tried[0].trial.path[place_on_path(tried)])
    return float(np.mean([one.steps for one in tried]))


def is_cut(tried: Sequence[TrialResult]) -> bool:
    """Whether most fits of boosted trees ended while they still gained: not for want of patience."""
    if path := tried[0].trial.path:
        return place_on_path(tried) >= len(path) - 2
    cut = sum(one.fitted - one.steps < 0.7 * (one.trial.patience or 0) for one in tried)
    return 2 * cut > len(tried)


def place_on_path(tried: Sequence[TrialResult]) -> int:
    """Choose the value of the path: the first of the best by value and AUC together, smoothed over its neighbours.

    Of trials one per split, none failed. Value and AUC are shares of the greatest of each on the path: the window alone
    is too noisy to stop by.
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
