"""Rankers whose one fit makes those of several values of a parameter."""

from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

from core.ranker import Ranker


class FollowingFit(Ranker):
    """A ranker of which a fit keeps a copy at every value that it was told to follow.

    `_fit` asks `_followed` for the values, and calls `_keep_on_path` when it is the ranker of one.
    """

    path_parameter: ClassVar[str | None]
    """The parameter along which one fit makes the ranker of every value; see `core.selection`."""

    _path: list[Any]

    def follow(self, values: Sequence[float]) -> None:
        """Have the next fit make the ranker of every one of these values; it ends as the last.

        Parameters
        ----------
        values : sequence of float
            Of `path_parameter`, rising.
        """
        self._values_to_follow = tuple(float(value) for value in values)

    def path_rankers(self) -> list[Self]:
        """Give the rankers of the values that the last fit followed, in their order."""
        return list(self._path)

    def _followed(self) -> tuple[float, ...]:
        """Take the values that are to be followed; none, unless `follow` was called since the last fit."""
        self._path = []
        values: tuple[float, ...] = self.__dict__.pop("_values_to_follow", ())
        return values

    def _keep_on_path(self) -> None:
        ranker = copy(self)
        ranker._path = []
        self._path.append(ranker)
