"""The registry of algorithms, used by the API, workers, command line, artifacts and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.base.ranker import Ranker

# The module and the class of each algorithm, which are imported when they are needed.
_HOMES = {
    "rankboost": ("boosting.rankboost", "RankBoost"),
    "coordinate_rankboost": ("boosting.rankboost", "CoordinateRankBoost"),
    "smooth_margin_rank": ("boosting.smooth_margin_rank", "SmoothMarginRank"),
    "adaboost": ("boosting.adaboost", "AdaBoost"),
    "aucboost": ("boosting.aucboost", "AUCBoost"),
    "logitboost": ("boosting.logitboost", "LogitBoost"),
    "additive": ("boosting.additive", "Additive"),
    "lambdamart": ("boosting.lambdamart", "LambdaMART"),
    "komori_eguchi_boost": ("boosting.komori_eguchi", "KomoriEguchiBoost"),
    "greedy_pairs": ("linear.greedy_pairs", "GreedyPairs"),
    "martirank": ("martirank.martirank", "MartiRank"),
    "sampled_martirank": ("martirank.sampled", "SampledMartiRank"),
    "auc_svm": ("linear.svm", "AUCSVM"),
    "pauc_svm": ("linear.svm", "PAUCSVM"),
    "pauc_svm_dc": ("linear.svm", "PAUCSVMDC"),
    "top_push": ("linear.svm", "TopPush"),
    "p_norm_push": ("linear.smooth", "PNormPush"),
    "asymmetric_svm": ("linear.smooth", "AsymmetricSVM"),
    "logistic": ("linear.smooth", "Logistic"),
    "scorecard": ("linear.scorecard", "Scorecard"),
    "treerank": ("treerank.treerank", "TreeRank"),
    "treerank_forest": ("treerank.forest", "TreeRankForest"),
    "random_forest": ("forest.random_forest", "RandomForest"),
    "adaboost_mh": ("boosting.multilabel", "AdaBoostMH"),
    "adaboost_mr": ("boosting.multilabel", "AdaBoostMR"),
}


class Algorithms(Mapping[str, type["Ranker"]]):
    """Mapping from each algorithm's name to its class, imported on access."""

    def __getitem__(self, name: str) -> type[Ranker]:
        module, attribute = _HOMES[name]
        algorithm: type[Ranker] = getattr(import_module(f"core.{module}"), attribute)
        return algorithm

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)

    def __contains__(self, name: object) -> bool:
        return name in _HOMES


ALGORITHMS = Algorithms()


def unknown_algorithm(name: object) -> str:
    return f"algorithm must be one of {', '.join(ALGORITHMS)}, got {name!r}"


def name_of(ranker: Ranker) -> str | None:
    """Return the name of a ranker's exact class; None if it is not registered."""
    for name, (module, attribute) in _HOMES.items():
        if (type(ranker).__module__, type(ranker).__qualname__) == (f"core.{module}", attribute):
            return name
    return None
