"""What `Auto` tries: every family of the papers, boosted trees in several forms, and a logistic regression.

Trees in three losses and two sizes are the *mainstay*: whatever the table, they are tried on all rows. The other
families have to earn it on few rows first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import InvalidParameter
from core.parameters import check_values
from core.registry import ALGORITHMS

COSTS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
STUMP_ROUNDS = (10, 25, 50, 100, 200)


@dataclass(frozen=True)
class Contender:
    """An algorithm with parameters, as it runs in the race.

    Attributes
    ----------
    name : str
        Within the portfolio.
    algorithm : str
        Name in `core.registry`.
    parameters : mapping of str to Any
        Without n_rounds and learning_rate where it is of the mainstay: these follow from the time there is.
    path : tuple
        Values of its path parameter.
    leaves : int
        Of the mainstay, the most leaves of a tree: trees of one size cost alike. 0 for the others.
    kind : str
        What it resembles: of one kind, few go on to more rows.
    """

    name: str
    algorithm: str
    parameters: Mapping[str, Any]
    path: tuple[Any, ...] = ()
    leaves: int = 0
    kind: str = "boosted trees"


_SAMPLED: dict[str, Any] = {"max_depth": 12, "subsample": 0.85, "max_features": 0.7}
_SIZES: dict[int, dict[str, Any]] = {
    8: {"max_leaves": 8, "min_samples_leaf": 5.0},
    31: {"max_leaves": 31, "min_samples_leaf": 20.0},
}
_LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "logistic loss": ("logitboost", {}),
    "closed leaves": ("rankboost", {"weak_ranker": "tree", "smoothing": 0.2}),
    "Newton leaves": ("rankboost", {"weak_ranker": "tree", "leaf": "newton"}),
}

LINEAR, STUMPS = "linear", "boosted stumps"

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
    (
        "trees for a window",
        "paucboost",
        {"n_rounds": 80, "max_leaves": 8, "min_samples_leaf": 5.0},
        (),
    ),
)

MANY_ROWS = 8_000
"""From here on trees of 31 leaves come before those of 8."""


def mainstay(n_rows: int) -> list[Contender]:
    """Give the boosted trees, those that suit so many rows first.

    Parameters
    ----------
    n_rows : int
        That each of them learns from.
    """
    small, great = (8, 31) if n_rows < MANY_ROWS else (31, 8)
    logistic, *exponential = _LOSSES
    order = [(logistic, small), (logistic, great)]
    order += [(loss, leaves) for leaves in (small, great) for loss in exponential]
    found = []
    for loss, leaves in order:
        algorithm, own = _LOSSES[loss]
        parameters = {**own, **_SAMPLED, **_SIZES[leaves]}
        found.append(Contender(f"{loss}, {leaves}", algorithm, parameters, (), leaves))
    return found


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
        found.append(Contender(algorithm, algorithm, {**parameters, **limits}, path, 0, kind))
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
