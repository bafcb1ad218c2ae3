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
from .linear import GreedyPairs

__all__ = [
    "AUCBoost",
    "AdaBoost",
    "AdaBoostMH",
    "AdaBoostMR",
    "CoordinateRankBoost",
    "GreedyPairs",
    "KomoriEguchiBoost",
    "LogitBoost",
    "PAUCBoost",
    "RankBoost",
    "SmoothMarginRank",
    "load",
    "save",
]
