"""What `Auto` tries: boosted trees in many forms, and every family of the papers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import InvalidParameter
from core.parameters import check_values
from core.registry import ALGORITHMS
from core.trees.options import MAX_CATEGORIES

COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
STUMP_ROUNDS = (10, 25, 50, 100, 200)

BOOSTED = "boosted trees"
LINEAR, STUMPS = "linear", "boosted stumps"

DRAWN = "draw "
"""How the names of drawn changes begin."""

LADDER = (4, 8, 16, 31, 63, 127, 255, 511, 1023)
"""Numbers of leaves that are tried."""


@dataclass(frozen=True)
class Contender:
    """An algorithm with parameters, as it runs in the race.

    Attributes
    ----------
    name : str
        Within the race.
    algorithm : str
        Name in `core.registry`.
    parameters : mapping of str to Any
        Of boosted trees without n_rounds and learning_rate: these follow from the time there is.
    path : tuple
        Values of its path parameter.
    kind : str
        What it resembles: of one kind, few go on to more rows.
    """

    name: str
    algorithm: str
    parameters: Mapping[str, Any]
    path: tuple[Any, ...] = ()
    kind: str = BOOSTED

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


def boosted(loss: str, leaves: int, n_rows: float, *, encoded: bool = True) -> Contender:
    """Give boosted trees of a size.

    Parameters
    ----------
    loss : str
        Of `LOSSES`.
    leaves : int
    n_rows : float
        That it learns from; where they are few, a leaf may have fewer.
    encoded : bool, default=True
        Whether features of many categories are asked by numbers (`target_encoding`), not by sets.
    """
    algorithm, own = LOSSES[loss]
    least = 5.0 if leaves <= 8 or n_rows < 3_000 else 20.0
    parameters = {**own, **_SAMPLED, "max_leaves": leaves, "min_samples_leaf": least}
    if encoded:
        return Contender(f"{loss}, {leaves}", algorithm, parameters)
    return Contender(f"{loss}, {leaves}, sets", algorithm, {**parameters, "target_encoding": None})


def steps_beside(of: Contender, *, most_categories: int) -> Iterator[Contender]:
    """Give boosted trees that differ in one parameter, the changes that tell most first.

    Parameters
    ----------
    of : Contender
    most_categories : int
        Of a feature; 0 where there are only numbers.
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
            yield Contender(title, of.algorithm, {**of.parameters, name: value})


def change(of: Contender, draw: np.random.Generator, name: str) -> Contender:
    """Draw a change of some of the parameters of boosted trees.

    Parameters
    ----------
    of : Contender
    draw : Generator
    name : str
        Of the new one.
    """
    parameters = dict(of.parameters)
    algorithm = of.algorithm
    if draw.random() < 0.3:
        loss = list(LOSSES)[int(draw.integers(len(LOSSES)))]
        algorithm, own = LOSSES[loss]
        for each in ("weak_ranker", "leaf", "smoothing"):
            parameters.pop(each, None)
        parameters |= own
    if draw.random() < 0.5:
        place = LADDER.index(of.leaves) + int(draw.choice([-1, 1]))
        parameters["max_leaves"] = LADDER[min(max(place, 0), len(LADDER) - 1)]
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
    return Contender(name, algorithm, parameters)


def others(window: tuple[float, float]) -> list[Contender]:
    """Give the other families, with the window where an algorithm has one.

    Parameters
    ----------
    window : (float, float)
        Least and greatest false positive rate.
    """
    found = []
    for kind, algorithm, parameters, path in _OTHERS:
        own = ALGORITHMS[algorithm]().get_params(deep=False)
        limits = dict(zip(("fpr_min", "fpr_max"), window, strict=True)) if "fpr_max" in own else {}
        found.append(Contender(algorithm, algorithm, {**parameters, **limits}, path, kind))
    return found


def seeded(contender: Contender, seed: int) -> dict[str, Any]:
    """Give the parameters, with the seed where the algorithm draws at random."""
    algorithm = ALGORITHMS[contender.algorithm]
    parameters = dict(contender.parameters)
    try:
        check_values(algorithm, {"random_state": seed})
    except InvalidParameter:
        return parameters
    return {**parameters, "random_state": seed}
