"""What the callback of a fit is told of a round, at next to no cost for the rounds whose figures nobody reads."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, Self

import numpy as np

from core.ranker import Floats

from .ensemble import Ensemble
from .loop import Path

Figures = dict[str, float | Callable[[], float]]


class Judged(Protocol):
    """Rows, and what tells how good a ranking of them is."""

    @property
    def X(self) -> Floats: ...  # noqa: N802 - a table's name, here as everywhere

    @property
    def size(self) -> int:
        """What one AUC costs: the number of rows, or of pairs."""

    @property
    def figure(self) -> str:
        """What the callback hears the AUC called."""

    def zeros(self) -> Floats:
        """Give the scores before the first round."""

    def auc(self, scores: Floats) -> float:
        """Give the AUC of scores, or another figure that is higher for a better ranking."""


class Sampled(Judged, Protocol):
    """Rows that are too many for a figure after each round."""

    def sample(self) -> Self:
        """Take evenly spaced ones, few enough for an AUC after a round to be cheap."""


class Remembered:
    """The rounds so far, and the AUC of the rows of a sample after any number of them.

    The rounds since the last answer are summed up and scored at once, which takes about a quarter of the time that
    following the scores of 5,000 rows from tree to tree does. Any number of threads may ask, while the fit goes on.

    Parameters
    ----------
    sample : Judged
    collect : callable Path -> Ensemble
        Sums rounds up.
    """

    def __init__(self, sample: Judged, collect: Callable[[Path], Ensemble]) -> None:
        self._sample = sample
        self._X = np.ascontiguousarray(sample.X)
        self._collect = collect
        self._rounds: list[tuple[Any, float]] = []
        self._taken = 0
        self._scores = sample.zeros()
        self._lock = threading.Lock()  # an answer changes what the next one starts from

    def note(self, rounds: Iterable[tuple[Any, float]]) -> None:
        """Remember weak rankers and their steps."""
        with self._lock:
            self._rounds.extend(rounds)

    def auc(self, taken: int) -> float:
        """Give the AUC after so many rounds."""
        with self._lock:
            if taken < self._taken:
                self._taken, self._scores = 0, self._sample.zeros()
            if new := self._rounds[self._taken : taken]:
                found, alpha = zip(*new, strict=True)
                path = Path([*found], [*alpha], np.empty((0, 2)), "n_rounds")
                self._scores += self._collect(path).score(self._X, 0.0)
                self._taken = taken
            return self._sample.auc(self._scores)


class Told(Mapping[str, float]):
    """The figures of a round. Those that are given as functions are found when they are first read, then or later.

    Until a figure is read, what it asks is kept with it; `dict` makes plain figures of all, and so does pickle.
    """

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def __getitem__(self, name: str) -> float:
        figure = self._figures[name]
        if callable(figure):
            figure = self._figures[name] = figure()
        return figure

    def __contains__(self, name: object) -> bool:
        return name in self._figures

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, float]], tuple[dict[str, float]]]:
        return dict, (dict(self),)
