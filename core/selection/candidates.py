"""The candidates and phases of `Auto`, and the history of its trials."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from core.base.ranker import Floats
from core.registry import ALGORITHMS
from core.trees.options import TARGET_ENCODING

from .trial import TrialKey, TrialResult


class Phase(NamedTuple):
    """A phase of `Auto`: its name, and the fraction of the time that it may use."""

    name: str
    share: float
    """Largest fraction of the budget that its trials take together."""
    tried: str
    """What is tried, in words."""
    ends: str
    """When it ends, in words."""


MEASURE = Phase(
    "measure", 0.2, "ten rounds on a sample, to measure the cost of a round", "after one fit"
)
PORTFOLIO = Phase("portfolio", 0.5, "the settings of `portfolio.json`, in order", "after the last")
FAMILIES = Phase("families", 0.1, "the other families, fast ones first", "after the last")
LONGER = Phase(
    "longer",
    0.35,
    "the best trees, if they were stopped while improving",
    "when they stop improving",
)
SEARCH = Phase(
    "search", 0.6, "random changes to the best trees", "after twelve without improvement"
)
LAST_FITS = Phase(
    "last fits", 1.0, "the members on all rows, with several seeds", "with the budget"
)
PHASES = (MEASURE, PORTFOLIO, FAMILIES, LONGER, SEARCH, LAST_FITS)
"""How `Auto` spends its budget, in order. Time is reserved for the last fits: what these are predicted to take, and at
least `RESERVED_FRACTION` or `RESERVED_FRACTION_FOLDS` of the budget. Of the others only `LONGER` takes of it."""


PLAINEST = "logistic"
"""The algorithm where nothing can be compared."""

LEAF_COUNTS = (2, 4, 8, 16, 31, 63, 127, 255, 511, 1023)
"""Maximum numbers of leaves that are tried."""
MAX_LEAVES_PER_ROW = 0.1
"""Leaves of a tree per row: a leaf then has ten rows on average."""

CROSSES = 30
"""Crosses of a candidate that has some, at most: the number that was measured (docs/benchmarks.md)."""

COMMON_PARAMETERS = ("random_state", "monotone")
"""Parameters that every trial sets besides its candidate's own."""
RUN_PARAMETERS = ("n_rounds", "learning_rate", *COMMON_PARAMETERS)
"""The same for boosted trees, whose rounds and learning rate follow from the time left."""


@dataclass(frozen=True)
class Candidate:
    """An algorithm with parameters, to be tried by `Auto`."""

    name: str
    """Unique in a search."""
    algorithm: str
    """Name in `core.registry`."""
    parameters: Mapping[str, Any]
    """For boosted trees without n_rounds and learning_rate, which follow from the time left."""
    path: tuple[Any, ...] = ()
    """Values of its path parameter."""
    change: int = 0
    """Number of the random change that made it (`mutate`); 0 for others."""

    @property
    def is_boosted(self) -> bool:
        """Whether the algorithm is boosted trees, whose rounds and learning rate are set by the time available."""
        return "max_leaves" in self.parameters

    @property
    def leaves(self) -> int:
        """Maximum number of leaves of boosted trees."""
        return int(self.parameters["max_leaves"])

    @property
    def key(self) -> str:
        """A text that identifies algorithm and parameters, whatever the candidate's name."""
        return repr((self.algorithm, sorted(self.parameters.items()), self.path))


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

_TABLE: dict[str, Any] = json.loads(files(__package__).joinpath("portfolio.json").read_text())
"""Settings of trees in the order in which they are tried, and the other families, fast ones first."""


class FitCost(NamedTuple):
    """The seconds of a fit of boosted trees: setup, and per round."""

    setup: float
    """Before the second round."""
    per_round: float


class TrialHistory:
    """The results of all trials of `Auto` so far, by candidate and attempt."""

    def __init__(self, tried: Sequence[TrialResult], n_splits: int) -> None:
        self._n_splits = n_splits
        self.measured: list[TrialResult] = []
        """The trial of the first phase, which is compared with no other."""
        self.candidates: dict[str, Candidate] = {}
        """The candidates tried, by name."""
        self._attempts: dict[str, list[list[TrialResult]]] = {}
        self._spent: dict[str, float] = {}
        for one in tried:
            key = key_of(one)
            if key.phase == MEASURE.name:
                self.measured.append(one)
                continue
            self._spent[key.phase] = self._spent.get(key.phase, 0.0) + one.seconds
            attempts = self._attempts.setdefault(key.candidate, [])
            if key.attempt > len(attempts):
                attempts.append([])
            attempts[-1].append(one)
            follows = one.trial.patience is not None or one.trial.path  # its rounds were not given
            added = RUN_PARAMETERS if follows else COMMON_PARAMETERS
            own = {k: v for k, v in one.trial.parameters.items() if k not in added}
            self.candidates[key.candidate] = Candidate(
                key.candidate, one.trial.algorithm, own, change=key.change
            )

    @property
    def hurried(self) -> set[str]:
        """The names of the phases with a trial whose settings were limited by time.

        All trials of trees count, for later trials depend on them; of others those that count for their candidate.
        """
        counted = (
            one
            for name, candidate in self.candidates.items()
            for one in (
                chain.from_iterable(self._attempts[name]) if candidate.is_boosted else self.of(name)
            )
        )
        return {key_of(one).phase for one in counted if one.trial.hurried or one.stopped}

    def spent(self, phase: Phase) -> float:
        return self._spent.get(phase.name, 0.0)

    def n_attempts(self, name: str) -> int:
        return len(self._attempts.get(name, ()))

    @property
    def n_changes(self) -> int:
        return max((candidate.change for candidate in self.candidates.values()), default=0)

    def newest(self, name: str) -> list[TrialResult]:
        """Return the trials of a candidate's latest attempt; an empty list if it was not tried."""
        return self._attempts[name][-1] if name in self._attempts else []

    def of(self, name: str) -> list[TrialResult]:
        """Return a candidate's trials, one per split: its latest complete attempt, else its latest attempt.

        If none is complete, they are those of the newest attempt.
        """
        complete = (own for own in reversed(self._attempts.get(name, ())) if self._is_complete(own))
        return next(complete, self.newest(name))

    def _is_complete(self, tried: Sequence[TrialResult]) -> bool:
        return len(tried) == self._n_splits and not any(one.failed for one in tried)

    def seconds(self, name: str) -> float:
        return sum(one.seconds for own in self._attempts.get(name, ()) for one in own)

    @property
    def fraction(self) -> float | None:
        """The fraction of the rows used to compare candidates; None before the first comparison."""
        return next((own[0][0].trial.rows for own in self._attempts.values()), None)

    def trees_failed(self) -> str | None:
        """Return why no boosted trees succeeded, if all trials of them failed (not only by time limits); else None."""
        tried = [
            one
            for name, candidate in self.candidates.items()
            if candidate.is_boosted
            for one in self.of(name)
        ]
        tried += self.measured
        if not all(one.failed for one in tried):
            return None
        return next((one.failed for one in tried if one.failed and not one.stopped), None)

    def finished(self) -> list[Candidate]:
        return [
            candidate
            for name, candidate in self.candidates.items()
            if self._is_complete(self.of(name))
        ]

    def fit_cost(self, leaves: int) -> FitCost | None:
        """Return the predicted cost of fitting trees of this size on all rows of a split; None if none were tried.

        It is predicted from the trees nearest in size; twice the leaves are taken to cost about 1.5 times as much.
        """
        known = [
            (candidate.leaves, one)
            for candidate in self.finished()
            if candidate.is_boosted
            for one in self.of(candidate.name)
            if one.fitted > 1
        ]
        setups = [one.setup for _, one in known]  # only the first fit of a process loads code
        if not known:
            known = [
                (int(one.trial.parameters["max_leaves"]), one)
                for one in self.measured
                if one.fitted > 1
            ]
        if not known:
            return None
        nearest = min(known, key=lambda one: abs(math.log(one[0] / leaves)))
        size, tried = nearest
        per_round = (tried.seconds - tried.setup) / max(tried.fitted - 1, 1) / tried.trial.rows
        scale = ((leaves + 8.0) / (size + 8.0)) ** 0.6
        return FitCost(min(setups, default=0.0), max(per_round * scale, 1e-7))

    def learning(self, leaves: int, cut_factor: float, unknown: float) -> float:
        """Return the predicted learning (rounds × learning rate) that trees of this size need.

        It is that of the trees nearest in size, times `cut_factor` if they were still improving at their limit;
        `unknown` if none were tried.
        """
        known = [
            (abs(math.log(candidate.leaves / leaves)), candidate)
            for candidate in self.finished()
            if candidate.is_boosted
        ]
        if not known:
            return unknown
        _, nearest = min(known, key=lambda pair: pair[0])
        tried = self.of(nearest.name)
        steps = best_rounds(tried)
        rate: float = tried[0].trial.parameters["learning_rate"]
        return steps * rate * (cut_factor if is_cut(tried) else 1.0)


LEARNT_ON_ROWS = 20_000
"""Training rows above which the order of the portfolio is not taken as it is: it was learnt on at most half of them."""


def portfolio(
    families: Sequence[Candidate], n_rows: float, most_categories: int, *, few: bool
) -> list[Candidate]:
    """Return the parameter settings to try first, in order, with forests; more other families if there are few rows.

    Other families come after the first trees: they are quick, and often members. On many more rows than the order was
    learnt on, small trees come last. If a feature has categories, the first trees come again with crosses. Left out are
    parameters without effect on this table, settings that are then repeated, and trees of too many leaves.

    families: the other families; the portfolio names some of them.
    most_categories: largest number of categories of a feature; 0 if all are numbers.
    few: whether there are few rows or few of the rarer class, so that candidates are compared on folds.
    """
    of_family = {candidate.name: candidate for candidate in families}
    found: dict[str, Candidate] = {}
    for each in _TABLE["settings"]:
        if "parameters" not in each:
            candidate = of_family.get(each["name"]) if few or "with_many_rows" in each else None
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
    if few:
        order = sorted(found.values(), key=lambda c: c.is_boosted)
    else:
        order = sorted(
            found.values(), key=lambda c: n_rows > LEARNT_ON_ROWS and c.is_boosted and c.leaves < 31
        )
    first = next(c for c in order if c.is_boosted)
    order.remove(first)
    return [first, *([crossed(first)] if most_categories > 1 else []), *order]


def crossed(candidate: Candidate) -> Candidate:
    """Return a boosted-trees candidate with crosses of categorical features; other candidates unchanged."""
    if not candidate.is_boosted:
        return candidate
    parameters = {**candidate.parameters, "crosses": CROSSES}
    return replace(candidate, name=f"{candidate.name}, crosses", parameters=parameters)


def _changes_something(name: str, value: Any, most_categories: int) -> bool:
    """Return True if a tree parameter has an effect on this table; `most_categories` as in `portfolio`."""
    if name == "category_penalty":
        return most_categories > 0
    return name != "target_encoding" or most_categories > min(
        value or TARGET_ENCODING, TARGET_ENCODING
    )


_CHANGES: tuple[tuple[str, float, tuple[float, ...]], ...] = (
    ("subsample", 0.4, (0.5, 0.7, 0.85, 1.0)),
    ("max_features", 0.5, (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)),
    ("category_penalty", 0.3, (0.0, 0.2, 1.0, 2.0)),
    ("smoothing", 0.4, (0.1, 1.0, 5.0, 25.0)),
)
"""Parameters of trees, the probability with which a random change draws them, and from what."""


def key_of(tried: TrialResult) -> TrialKey:
    assert tried.trial.key is not None  # `Auto` names all its trials
    return tried.trial.key


def mutate(
    candidate: Candidate, draw: np.random.Generator, change: int, most_categories: int
) -> Candidate:
    """Return boosted trees with randomly changed parameters, named as random change number `change`.

    `most_categories` is the largest number of categories of a feature.
    """
    parameters, algorithm = dict(candidate.parameters), candidate.algorithm
    if draw.random() < 0.3:
        algorithm, own = list(LOSSES.values())[int(draw.integers(len(LOSSES)))]
        for each in ("weak_ranker", "leaf", "smoothing"):
            parameters.pop(each, None)
        parameters |= own
    if draw.random() < 0.5:
        index = LEAF_COUNTS.index(candidate.leaves) + int(draw.choice([-2, -1, 1, 2]))
        parameters["max_leaves"] = LEAF_COUNTS[min(max(index, 0), len(LEAF_COUNTS) - 1)]
    if draw.random() < 0.5:
        min_leaf = parameters["min_samples_leaf"] * float(draw.choice([0.25, 0.5, 2.0, 4.0]))
        parameters["min_samples_leaf"] = min(max(min_leaf, 1.0), 200.0)
    for each, probability, values in _CHANGES:
        if draw.random() < probability and _changes_something(each, None, most_categories):
            parameters[each] = float(draw.choice(values))
            if each == "smoothing" and algorithm == "rankboost":
                parameters[each] *= 0.2
    if draw.random() < 0.3 and most_categories > TARGET_ENCODING:
        parameters.pop("target_encoding", None)
        parameters |= CODINGS[int(draw.integers(len(CODINGS)))]
    return Candidate(f"change {change}", algorithm, parameters, change=change)


def others(window: tuple[float, float], n_rows: float = 0.0) -> list[Candidate]:
    """Return the candidates of the other families, with this window where an algorithm has one.

    Candidates that need too much memory for `n_rows` rows are omitted.
    """
    candidates = []
    for each in _TABLE["families"]:
        if n_rows > each.get("most_rows", math.inf):
            continue
        algorithm, parameters = each["algorithm"], each.get("parameters", {})
        own = ALGORITHMS[algorithm]().get_params(deep=False)
        limits = dict(zip(("fpr_min", "fpr_max"), window, strict=True)) if "fpr_max" in own else {}
        path = tuple(each.get("path", ()))
        name = each.get("name", algorithm)
        candidates.append(Candidate(name, algorithm, {**parameters, **limits}, path))
    return candidates


def score_microseconds(algorithm: str, parameters: Mapping[str, Any], n_features: int) -> float:
    """Return the predicted microseconds to score one numeric row in bulk, in one thread.

    It is counted, not timed, so that the choice does not depend on the clock: rounds × log₂(leaves) of trees, columns,
    crosses, and a constant for the other families (`portfolio.json`; 0.1 if it has none). Within about a factor of two
    of what 20 columns took on one machine.
    """
    columns = 0.002 * n_features + 0.03 * int(parameters.get("crosses") or 0)
    if (leaves := parameters.get("max_leaves")) is not None:
        return columns + 0.1 + 0.0008 * float(math.log2(leaves)) * int(parameters["n_rounds"])
    slow = {
        (e["algorithm"], e.get("parameters", {}).get("feature_map")): float(
            e.get("score_microseconds", 0.1)
        )
        for e in _TABLE["families"]
    }
    return columns + slow[algorithm, parameters.get("feature_map")]


def keeps_order(candidate: Candidate) -> bool:
    """Return True if the candidate supports monotone constraints; a ranker with a feature map does not."""
    own = ALGORITHMS[candidate.algorithm]().get_params(deep=False)
    return "monotone" in own and candidate.parameters.get("feature_map") is None


def seeded(candidate: Candidate, seed: int) -> dict[str, Any]:
    draws = "random_state" in ALGORITHMS[candidate.algorithm]().get_params(deep=False)
    return {**candidate.parameters, **({"random_state": seed} if draws else {})}


def best_rounds(tried: Sequence[TrialResult]) -> float:
    """Return the best number of boosting rounds: the mean over the splits if it was chosen in each."""
    if tried[0].trial.path:
        return float(tried[0].trial.path[best_on_path(tried)])
    return float(np.mean([one.steps for one in tried]))


def is_cut(tried: Sequence[TrialResult]) -> bool:
    """Return True if most fits of boosted trees were still improving when their limit stopped them."""
    if tried[0].trial.path:
        # A path is planned to end beyond the best rounds: the last but one may be the best without a gain at the end.
        return best_on_path(tried) == min(len(one.values) for one in tried) - 1
    cut = sum(one.fitted - one.steps < 0.7 * (one.trial.patience or 0) for one in tried)
    return 2 * cut > len(tried)


def best_on_path(tried: Sequence[TrialResult]) -> int:
    """Return the index of the best path value, the first among equals, among those that all fits reached.

    `tried` has a trial per split, none of which failed. The criterion is the sum of their `path_merit`.
    """
    merits = [path_merit(one.values, one.aucs) for one in tried]
    n_reached = min(map(len, merits))
    return best_of_merits(np.sum([merit[:n_reached] for merit in merits], axis=0))


def path_merit(values: Sequence[float], aucs: Sequence[float]) -> Floats:
    """Return the criterion of each path value on one split: objective and AUC, each divided by its maximum.

    The objective over a window alone is too noisy. Shape (n_values,).
    """
    return np.array(values) / max(*values, 1e-12) + np.array(aucs) / max(*aucs, 1e-12)


def best_of_merits(merit: Floats) -> int:
    """Return the index of the greatest criterion after smoothing over neighbours, the first among equals.

    `merit` is the sum of `path_merit` over the splits, shape (n_values,).
    """
    if len(merit) > 2:
        merit = np.convolve(np.r_[merit[0], merit, merit[-1]], [0.25, 0.5, 0.25], "valid")
    return int(np.argmax(merit > merit.max() - 1e-9))
