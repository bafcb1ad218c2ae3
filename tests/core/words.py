"""Sentences of the library's refusals and warnings, for tests/words.txt."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from core import RankBoost

Call = Callable[[], object]

X = np.array([[0.0], [1.0], [2.0], [3.0]])
Y = np.array([0, 1, 0, 1])

REFUSED: Mapping[str, Call] = {
    "a bound of a setting": lambda: RankBoost(n_rounds=0).fit(X, Y),
    "one class": lambda: RankBoost().fit(X, np.ones(4)),
}

WARNED: Mapping[str, Call] = {}


def say() -> Iterator[tuple[str, str]]:
    """Yield what each call of `REFUSED` raises, and what each of `WARNED` warns of."""
    for case, call in REFUSED.items():
        try:
            call()
        except (ValueError, TypeError) as error:
            yield case, str(error)
        else:
            raise AssertionError(f"{case} is not refused")
    for case, call in WARNED.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        yield case, " ".join(str(one.message) for one in caught)
