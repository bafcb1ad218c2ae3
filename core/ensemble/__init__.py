"""Rankers made of others, of any family."""

from .rank_average import NAME, RankAverage
from .together import count_at_once, fit_together

__all__ = ["NAME", "RankAverage", "count_at_once", "fit_together"]
