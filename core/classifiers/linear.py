"""Linear classifiers as arrays: coefficients, an intercept, and what stands for a missing value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from annotated_types import Ge

from core.ranker import Floats
from core.state import FINITE, Array

from .design import LEAST_SCALE, Integers, count_columns, expand, standardise
from .stack import Stack

TERMS_SHOWN = 20


def _by_column(name: str) -> Array:
    return Array("n_classifiers", "n_columns", name=f"linear_{name}")


@dataclass(frozen=True)
class LinearStack(Stack):
    """intercept + Σ coef · (x - center) / scale; a missing x is at its center.

    Attributes
    ----------
    n_categories : ndarray of shape (n_features,), int64
    coef, center, scale : ndarray of shape (n_classifiers, n_columns), float64
        By column of `design.expand`; scale is at least `design.LEAST_SCALE`.
    intercept : ndarray of shape (n_classifiers,), float64
    """

    format: ClassVar[str] = "linear"

    n_categories: Integers
    coef: Annotated[Floats, _by_column("coef"), FINITE]
    center: Annotated[Floats, _by_column("center"), FINITE]
    scale: Annotated[Floats, _by_column("scale"), FINITE, Ge(LEAST_SCALE)]
    intercept: Annotated[Floats, Array("n_classifiers", name="linear_intercept"), FINITE]

    def __len__(self) -> int:
        """Number of classifiers."""
        return len(self.intercept)

    def score(self, number: int, X: Floats) -> Floats:
        """Score rows; see `Stack.score`."""
        columns = expand(X, self.n_categories)
        scores = np.full(len(X), self.intercept[number])
        coef, center, scale = self.coef[number], self.center[number], self.scale[number]
        # Column by column: BLAS adds in an order that depends on its threads and the number of rows.
        with np.errstate(over="ignore", invalid="ignore"):
            for j in np.flatnonzero(coef):
                deviation = standardise(columns[:, j], center[j], scale[j])
                deviation[np.isnan(deviation)] = 0.0
                scores += coef[j] * deviation
        return scores

    def take(self, numbers: Integers) -> Self:
        """Give some of the classifiers."""
        parts = (self.coef, self.center, self.scale, self.intercept)
        return type(self)(self.n_categories, *(part[numbers] for part in parts))

    @classmethod
    def join(cls, stacks: Sequence[Stack], n_categories: Integers) -> "LinearStack":
        """Put several stacks one after the other."""
        none = np.empty((0, count_columns(n_categories)))
        own = [stack for stack in stacks if isinstance(stack, cls)]
        return cls(
            n_categories,
            np.concatenate([none, *(stack.coef for stack in own)]),
            np.concatenate([none, *(stack.center for stack in own)]),
            np.concatenate([none, *(stack.scale for stack in own)]),
            np.concatenate([none[:, 0], *(stack.intercept for stack in own)]),
        )

    def describe(self, number: int, name: Callable[[int], str]) -> dict[str, Any]:
        """Name the greatest terms, by coefficient on the standardised column."""
        coef = self.coef[number]
        greatest = np.argsort(-np.abs(coef), kind="stable")[:TERMS_SHOWN].tolist()
        terms = [(name(j), float(coef[j])) for j in greatest if coef[j]]
        words = "".join(f" {value:+.4g}·{term}" for term, value in terms)
        more = " + …" if np.count_nonzero(coef) > TERMS_SHOWN else ""
        return {
            "words": f"{self.intercept[number]:.4g}{words}{more} > 0 (columns standardised)",
            "intercept": float(self.intercept[number]),
            "coefficients": dict(terms),
        }
