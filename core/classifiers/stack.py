"""What all formats share: several classifiers of one kind, one after the other in flat arrays."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from core.ranker import Arrays, Floats

Integers = npt.NDArray[np.int64]


class Stack(ABC):
    """Classifiers of one kind, each asked for by its number.

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

    @abstractmethod
    def arrays(self) -> Arrays:
        """Give the state as arrays, named after the format."""

    @classmethod
    @abstractmethod
    def from_arrays(
        cls, arrays: Mapping[str, npt.NDArray[Any]], n_classifiers: int, n_categories: Integers
    ) -> "Stack":
        """Rebuild classifiers from `arrays()`.

        Raises
        ------
        ArtifactError
            An array is of another type or length, or its values describe no classifiers.
        """
