"""What all formats share: several classifiers of one kind, one after the other in flat arrays."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy.typing as npt

from core.ranker import Floats
from core.state import State

from .design import Integers, count_columns


class Stack(State, ABC):
    """Classifiers of one kind, each asked for by its number; its arrays are named after its format.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
        0 where a feature is numeric.
    """

    format: ClassVar[str]
    """How the arrays' names begin: "linear", "forest"."""

    n_categories: Integers

    @abstractmethod
    def __len__(self) -> int:
        """Number of classifiers."""

    @abstractmethod
    def score(self, number: int, X: Floats) -> Floats:
        """Score rows by one classifier: above 0 is its positive class.

        Parameters
        ----------
        number : int
        X : ndarray of shape (n_rows, n_features), float64
            NaN is missing; a category is its position.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            A row's score does not depend on the rows beside it.
        """

    @abstractmethod
    def take(self, numbers: Integers) -> Self:
        """Give some of the classifiers, in the order asked for."""

    @classmethod
    @abstractmethod
    def join(cls, stacks: Sequence["Stack"], n_categories: Integers) -> "Stack":
        """Put the classifiers of several stacks of this kind one after the other."""

    @abstractmethod
    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        """Describe a classifier for JSON; `name` gives a column's name, as `design.expand` orders them."""

    @classmethod
    def read(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_classifiers: int, n_categories: Integers
    ) -> Self:
        """Read so many classifiers; see `State.from_arrays`."""
        known = {
            "n_classifiers": n_classifiers,
            "n_categories": n_categories,
            "n_columns": count_columns(n_categories),
        }
        return cls.from_arrays(arrays, known)
