"""The science of Rankwright: rankers, their metrics and their artifacts. Knows no HTTP, SQL or Celery."""

from .artifact import load, save
from .boosting import CoordinateRankBoost, RankBoost

__all__ = ["CoordinateRankBoost", "RankBoost", "load", "save"]
