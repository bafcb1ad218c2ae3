"""The science of Rankwright: rankers, their metrics and their artifacts. Knows no HTTP, SQL or Celery."""

from .artifact import load, save
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
from .ensemble import RankAverage
from .linear import GreedyPairs
from .martirank import MartiRank, SampledMartiRank
from .svm import AUCSVM, PAUCSVM, PAUCSVMDC, AsymmetricSVM, Logistic
from .treerank import TreeRank, TreeRankForest

__all__ = [
    "AUCSVM",
    "PAUCSVM",
    "PAUCSVMDC",
    "AUCBoost",
    "AdaBoost",
    "AdaBoostMH",
    "AdaBoostMR",
    "AsymmetricSVM",
    "CoordinateRankBoost",
    "GreedyPairs",
    "KomoriEguchiBoost",
    "Logistic",
    "LogitBoost",
    "MartiRank",
    "PAUCBoost",
    "RankAverage",
    "RankBoost",
    "SampledMartiRank",
    "SmoothMarginRank",
    "TreeRank",
    "TreeRankForest",
    "load",
    "save",
]
