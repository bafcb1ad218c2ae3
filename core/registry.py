"""The one list of algorithms: API, workers, command line, artifacts and tests read it."""

from types import MappingProxyType

from .boosting import (
    AdaBoost,
    AdaBoostMH,
    AdaBoostMR,
    AUCBoost,
    CoordinateRankBoost,
    KomoriEguchiBoost,
    LogitBoost,
    PAUCBoost,
    RankBoost,
    SmoothMarginRank,
)
from .linear import GreedyPairs
from .martirank import MartiRank, SampledMartiRank
from .ranker import Ranker
from .svm import AUCSVM, PAUCSVM, PAUCSVMDC, AsymmetricSVM, Logistic
from .treerank import TreeRank, TreeRankForest

ALGORITHMS: MappingProxyType[str, type[Ranker]] = MappingProxyType(
    {
        "rankboost": RankBoost,
        "coordinate_rankboost": CoordinateRankBoost,
        "smooth_margin_rank": SmoothMarginRank,
        "adaboost": AdaBoost,
        "aucboost": AUCBoost,
        "logitboost": LogitBoost,
        "paucboost": PAUCBoost,
        "komori_eguchi_boost": KomoriEguchiBoost,
        "greedy_pairs": GreedyPairs,
        "martirank": MartiRank,
        "sampled_martirank": SampledMartiRank,
        "auc_svm": AUCSVM,
        "pauc_svm": PAUCSVM,
        "pauc_svm_dc": PAUCSVMDC,
        "asymmetric_svm": AsymmetricSVM,
        "logistic": Logistic,
        "treerank": TreeRank,
        "treerank_forest": TreeRankForest,
        "adaboost_mh": AdaBoostMH,
        "adaboost_mr": AdaBoostMR,
    }
)


def name_of(ranker: Ranker) -> str | None:
    """Give the name under which a ranker's exact class is registered, if it is."""
    for name, algorithm in ALGORITHMS.items():
        if type(ranker) is algorithm:
            return name
    return None
