"""Σ α_t h_t: what a booster has learnt, whatever its weak rankers are."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import check_array
from core.ranker import Arrays, Floats
from core.table import Categories


class Ensemble(ABC):
    """A weighted sum of weak rankers of one kind.

    Attributes
    ----------
    type : str
        How `structure` calls it.
    rounds : structured ndarray of shape (n_rounds,)
        What each round has added, for the reader; it has the fields alpha, d_plus and d_minus.
    constant : float
        What the sum gives to every row alike.
    mean : float
        The sum's weighted mean over the rows that it was fitted on.
    """

    type: ClassVar[str]
    rounds: npt.NDArray[np.void]
    constant: Any  # a float, or one per label
    mean: Any

    @abstractmethod
    def score(self, X: Floats, intercept: float) -> Floats:
        """Give intercept + Σ α_t h_t(x) of each row, unchecked; X is C-contiguous."""

    @abstractmethod
    def staged(self, X: Floats) -> Iterator[Floats]:
        """Yield the sum of the first 1, 2, ... weak rankers on each row; each array is new."""

    @abstractmethod
    def contributions(self, X: Floats) -> Floats:
        """Give a part per row and feature; `mean` and a row's parts add up to its sum."""

    @abstractmethod
    def describe(self, name: Callable[[int], str], categories: Categories) -> dict[str, Any]:
        """Describe the sum, ready for JSON and readable by a person.

        Parameters
        ----------
        name : callable feature -> str
        categories : tuple, one entry per feature
            None for a numeric one.
        """

    @abstractmethod
    def weak_rankers(self) -> list[Any]:
        """Give h_t of each round, all that summing up and scoring ask of it, each with the step alpha_t = 1.

        Only where the rounds' alpha is 1 is their sum this one.
        """

    def binary_weights(self) -> Floats | None:
        """Give what each round's weak ranker adds where it says 1 over where it says 0.

        None where weak rankers take more than two values.
        """
        return None

    @abstractmethod
    def arrays(self) -> Arrays:
        """Give the state as arrays; the reader of its kind (`kinds`) takes them."""


def split_fields(rounds: npt.NDArray[np.void]) -> Arrays:
    """Give the fields of a structured array as arrays of their own."""
    return {name: rounds[name].copy() for name in rounds.dtype.names or ()}


def join_fields(
    arrays: Mapping[str, npt.NDArray[Any]], dtype: np.dtype[Any], n_rounds: int
) -> npt.NDArray[np.void]:
    """Put a structured array together again from its fields, checking each one."""
    rounds = np.empty(n_rounds, dtype=dtype)
    for name in dtype.names or ():
        check_array(name, arrays[name], dtype[name], (n_rounds,))
        rounds[name] = arrays[name]
    return rounds
