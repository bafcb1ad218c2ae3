"""Linear combinations of columns, found by search: the controls that papers compare with."""

from .greedy_pairs import GreedyPairs

__all__ = ["GreedyPairs"]
