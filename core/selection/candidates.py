"""What `Auto` tries, and in which phases; and the history of its trials."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from core.registry import ALGORITHMS
from core.trees.options import TARGET_ENCODING

from .trial import GIVEN_UP, TrialResult


class Phase(NamedTuple):
    """A phase of `Auto`: a trial's label begins with its name."""

    name: str
    share: float
    """Largest fraction of the budget that its trials take together."""
    tried: str
    """What is tried, in words."""
    ends: str
    """When it ends, in words."""


MEASURE = Phase(
    "measure",
    0.2,
    "ten rounds of the first setting of the portfolio on a sample: they measure what a round costs",
    "after one fit",
)
PORTFOLIO = Phase(
    "portfolio",
    0.5,
    "the settings of `portfolio.json`, in their order, on all rows, each for at most a tenth of the budget, with folds "
    "a seventh",
    "when all settings have been tried that change something on this table",
)
FAMILIES = Phase(
    "families",
    0.1,
    "the other families, one of each: on few rows first, the best of them on four times as many, at last on all",
    "when all that have not left were tried on all rows",
)
FAMILIES_OF_FEW_ROWS = FAMILIES._replace(share=0.15)
"""If there are few rows the other families are quick and often members."""
LONGER = Phase(
    "longer",
    0.35,
    "the best boosted trees once more, if the clock ended them while they still gained",
    "when the best had gained all it can",
)
SEARCH = Phase(
    "search",
    0.6,
    "random changes of the best three boosted trees",
    "when twelve changes in a row have not become the best",
)
LAST_FITS = Phase(
    "last fits",
    1.0,
    "the members on all training rows, in smaller steps and from several seeds as far as there is time",
    "with the fit, or with the budget: what was fitted by then is kept",
)
PHASES = (MEASURE, PORTFOLIO, FAMILIES, LONGER, SEARCH, LAST_FITS)
"""How `Auto` spends its budget, in order. No phase but the last takes time that is reserved for the last fits: what
these are predicted to take, and at least `RESERVED_FRACTION` or `RESERVED_FRACTION_FOLDS` of the budget."""

FULL = "all rows"
"""The stage of the trials on all rows and splits, whatever their phase: only they are compared with each other."""


def phase_of(label: str) -> Phase | None:
    """Return the phase of a trial by its label; None for labels of another kind.

    Examples
    --------
    >>> phase_of("families 2/martirank").name
    'families'
    """
    name = label.partition("/")[0].rstrip(" 0123456789")
    return next((phase for phase in PHASES if phase.name == name), None)


def stage_of(label: str) -> str | None:
    """Return the stage of a trial by its label: `FULL`, a rung of the families, or "measure"; None for other labels.

    Examples
    --------
    >>> stage_of("families 2/martirank"), stage_of("search/change 3")
    ('families 2', 'all rows')
    """
    phase, prefix = phase_of(label), label.partition("/")[0]
    if phase is None:
        return None
    return FULL if prefix == phase.name and phase is not MEASURE else prefix


COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Values of C on the path of a linear candidate."""
STUMP_ROUNDS = (10, 25, 50, 100, 200)
"""Numbers of rounds on the path of boosted stumps."""

BOOSTED = "boosted trees"
LINEAR, STUMPS = "linear", "boosted stumps"
PLAINEST = "logistic"
"""The algorithm where nothing can be compared."""

CHANGED = "change "
"""Start of the name of a random change (`mutate`)."""

AGAIN = ", try "
"""End of the name of a candidate that is tried again, before the number of the try."""

LEAF_COUNTS = (2, 4, 8, 16, 31, 63, 127, 255, 511, 1023)
"""Maximum numbers of leaves that are tried."""
MAX_LEAVES_PER_ROW = 0.1
"""Leaves of a tree per row: a leaf then has ten rows on average."""

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
    def key(self) -> str:
        """What it is, whatever its name."""
        return repr((self.algorithm, sorted(self.parameters.items()), self.path))

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
CODINGS: tuple[dict[str, Any], ...] = (
    {},
    {"target_encoding": None},
    {"target_encoding": None, "max_categories": 5000},
)
"""Ways to code features of many categories: numbers in place of them, or sets of their categories."""

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
    """The trials so far, by stage and candidate; their labels are "phase/candidate", on a rung "phase rung/candidate".

    `known` are the candidates that are tried sooner or later, if there is time.
    """

    def __init__(self, tried: Sequence[TrialResult], known: Sequence[Candidate]) -> None:
        self._stages: dict[str, dict[str, list[TrialResult]]] = {}
        self._candidates = {candidate.name: candidate for candidate in known}
        self._spent: dict[str, float] = {}
        self.late_phases: set[str] = set()
        """Names of the phases a fit of which was ended by its limit."""
        for one in tried:
            stage, phase = stage_of(one.trial.label), phase_of(one.trial.label)
            if stage is None or phase is None:  # a search begun by an earlier version
                continue
            name = one.trial.label.partition("/")[2]
            self._spent[phase.name] = self._spent.get(phase.name, 0.0) + one.seconds
            if stage == FULL and one.trial.limit is not None and one.seconds > one.trial.limit:
                self.late_phases.add(phase.name)
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
        """All candidates, tried or not, without copies that only measured the time of a round."""
        return list(self._candidates.values())

    @property
    def stages(self) -> list[str]:
        """The stages so far, without that of the first measurement; the one with the most rows last."""
        rungs = [stage for stage in self._stages if stage not in {MEASURE.name, FULL}]
        return [*rungs, *([FULL] if FULL in self._stages else [])]

    def spent(self, phase: Phase) -> float:
        """Return the seconds of all trials of a phase together."""
        return self._spent.get(phase.name, 0.0)

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

    def count(self, part: str) -> int:
        """Return the number of candidates tried on all rows with this part in their name."""
        return sum(part in name for name in self.names(FULL))

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
        setups = [one.setup for _, one in known if stage_of(one.trial.label) == FULL]
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
        for stage in (FULL, MEASURE.name):
            for name, tried in self._stages.get(stage, {}).items():
                candidate = self._candidates[name]
                if candidate.kind != BOOSTED:
                    continue
                for one in tried:
                    if not one.failed and one.fitted > 1:
                        yield candidate.leaves, one


LEARNT_ON_ROWS = 20_000
"""Twice the training rows of the largest tables that the order of the portfolio was learnt on."""


@lru_cache
def _read_portfolio() -> dict[str, Any]:
    return dict(json.loads(files(__package__).joinpath("portfolio.json").read_text()))


def portfolio(
    families: Sequence[Candidate], n_rows: float, most_categories: int, *, few: bool
) -> list[Candidate]:
    """Return the settings to try first, in order. If there are many rows, the other families are not among them.

    If there are few, they follow on the first trees: they are quick, and often members. On many more rows than the
    order was learnt on, small trees come last: larger ones learn more in the same time.

    Parameters that change nothing on this table are left out, and so are settings that are then equal to one before,
    and trees of too many leaves.

    Parameters
    ----------
    families : sequence of Candidate
        The other families; the portfolio names some of them.
    n_rows : float
        Rows to learn from.
    most_categories : int
        Largest number of categories of a feature; 0 if all are numbers.
    few : bool
        Whether there are few rows or few of the rarer class, so that candidates are compared on folds.
    """
    of_family = {candidate.name: candidate for candidate in families}
    found: dict[str, Candidate] = {}
    for each in _read_portfolio()["settings"]:
        if "parameters" not in each:
            candidate = of_family.get(each["name"]) if few else None
        else:
            changing = {
                name: value
                for name, value in each["parameters"].items()
                if _changes_something(name, value, most_categories)
            }
            candidate = Candidate(each["name"], each["algorithm"], changing)
            if candidate.leaves > max(MAX_LEAVES_PER_ROW * n_rows, LEAF_COUNTS[2]):
                continue
        if candidate is not None:
            found.setdefault(candidate.key, candidate)
    if not few:
        return sorted(found.values(), key=lambda c: n_rows > LEARNT_ON_ROWS and c.leaves < 31)
    first, *rest = found.values()
    return [first, *sorted(rest, key=lambda candidate: candidate.kind == BOOSTED)]


def _changes_something(name: str, value: Any, most_categories: int) -> bool:
    """Return True if a parameter of trees changes something on a table whose features have up to so many categories."""
    if name == "category_penalty":
        return most_categories > 0
    if name == "target_encoding":
        return most_categories > (TARGET_ENCODING if value is None else min(value, TARGET_ENCODING))
    return name != "max_categories" or most_categories > TARGET_ENCODING


def mutate(
    candidate: Candidate, draw: np.random.Generator, name: str, most_categories: int
) -> Candidate:
    """Return boosted trees with random changes of some parameters, under a new name.

    `most_categories` is the largest number of categories of a feature.
    """
    parameters = dict(candidate.parameters)
    algorithm = candidate.algorithm
    if draw.random() < 0.3:
        loss = list(LOSSES)[int(draw.integers(len(LOSSES)))]
        algorithm, own = LOSSES[loss]
        for each in ("weak_ranker", "leaf", "smoothing"):
            parameters.pop(each, None)
        parameters |= own
    if draw.random() < 0.5:
        index = LEAF_COUNTS.index(candidate.leaves) + int(draw.choice([-2, -1, 1, 2]))
        parameters["max_leaves"] = LEAF_COUNTS[min(max(index, 0), len(LEAF_COUNTS) - 1)]
    if draw.random() < 0.5:
        min_leaf = parameters["min_samples_leaf"] * float(draw.choice([0.25, 0.5, 2.0, 4.0]))
        parameters["min_samples_leaf"] = min(max(min_leaf, 1.0), 200.0)
    if draw.random() < 0.4:
        parameters["subsample"] = float(draw.choice([0.5, 0.7, 0.85, 1.0]))
    if draw.random() < 0.5:
        parameters["max_features"] = float(draw.choice([0.25, 0.4, 0.55, 0.7, 0.85, 1.0]))
    if draw.random() < 0.3 and most_categories:
        parameters["category_penalty"] = float(draw.choice([0.0, 0.2, 1.0, 2.0]))
    if draw.random() < 0.4:
        scale = 1.0 if algorithm == "logitboost" else 0.2
        parameters["smoothing"] = scale * float(draw.choice([0.1, 1.0, 5.0, 25.0]))
    if draw.random() < 0.3 and most_categories > TARGET_ENCODING:
        parameters.pop("target_encoding", None)
        parameters |= CODINGS[int(draw.integers(len(CODINGS)))]
    return Candidate(name, algorithm, parameters)


def others(window: tuple[float, float]) -> list[Candidate]:
    """Return the candidates of the other families; algorithms that have a window are given this one."""
    candidates = []
    for kind, algorithm, parameters, path in _OTHERS:
        own = ALGORITHMS[algorithm]().get_params(deep=False)
        limits = dict(zip(("fpr_min", "fpr_max"), window, strict=True)) if "fpr_max" in own else {}
        candidates.append(Candidate(algorithm, algorithm, {**parameters, **limits}, path, kind))
    return candidates


def score_microseconds(algorithm: str, parameters: Mapping[str, Any], n_features: int) -> float:
    """Return the predicted µs in which a ranker scores a row of numbers in bulk, in one thread.

    It is counted, not timed, so that the choice does not depend on the clock: rounds × log₂(leaves) of trees, columns,
    and a constant for the other families. Within about a factor of two of what 20 columns took on one machine.
    """
    columns = 0.002 * n_features
    if (leaves := parameters.get("max_leaves")) is not None:
        return columns + 0.1 + 0.0008 * float(math.log2(leaves)) * int(parameters["n_rounds"])
    return columns + SLOW_TO_SCORE.get(algorithm, 0.1)


SLOW_TO_SCORE = {
    "martirank": 0.25,
    "sampled_martirank": 0.25,
    "greedy_pairs": 0.2,
    "komori_eguchi_boost": 0.6,
    "treerank_forest": 1.0,
}
"""µs in which families score a row, measured as the trees' are, where it is more than 0.1."""


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
