"""Rankers made of others, of any family."""

from .rank_average import NAME, RankAverage

__all__ = ["NAME", "RankAverage"]
