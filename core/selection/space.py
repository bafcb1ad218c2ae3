"""The parameters that a search tries: lists of values, and ranges to draw from."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from core.errors import InvalidParameter
from core.parameters import check_values
from core.registry import ALGORITHMS

from .path import path_parameter

MOST_VALUES = 100
"""Of one parameter."""

MOST_CANDIDATES = 1000
"""Of one search."""

PATH_POINTS = 10
"""So many values of a range are judged where it is that of a path parameter."""

_RANGE_KEYS = ("low", "high", "log", "integer")


class InvalidSpace(InvalidParameter):
    """A search space breaks a rule.

    Attributes
    ----------
    pointer : str
        The entry at fault, as a JSON pointer within the search: "/space/n_rounds/1".
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included.

    Attributes
    ----------
    low, high : float
        low < high.
    log : bool
        Whether the logarithm is uniform instead of the number; low is above 0 then.
    integer : bool
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    def at(self, share: float) -> float | int:
        """Give the number so far along the range."""
        if self.integer:  # each whole number has an equal part of [low, high + 1)
            low, high = (float(self.low), float(self.high) + 1.0)
            return min(math.floor(self._between(low, high, share)), int(self.high))
        return min(max(self._between(self.low, self.high, share), self.low), self.high)

    def _between(self, low: float, high: float, share: float) -> float:
        if self.log:
            return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        return low + share * (high - low)

    def points(self) -> tuple[float | int, ...]:
        """Give evenly spaced numbers, from low to high."""
        between = np.linspace(0.0, 1.0, PATH_POINTS)[1:-1].tolist()
        return tuple(sorted({self.low, self.high, *(self.at(share) for share in between)}))


Dimension = tuple[Any, ...] | Range


@dataclass(frozen=True)
class Space:
    """What is tried of one algorithm.

    Attributes
    ----------
    algorithm : str
    parameters : mapping of str to Any
        The same in all candidates.
    dimensions : mapping of str to tuple or Range
        What is searched, less the path, by name ascending.
    path : tuple
        Values of the path parameter, ascending; empty where it is not searched.
    """

    algorithm: str
    parameters: Mapping[str, Any]
    dimensions: Mapping[str, Dimension]
    path: tuple[Any, ...]

    def n_combinations(self) -> int:
        """Count the combinations of the lists."""
        return math.prod(len(d) for d in self.dimensions.values() if not isinstance(d, Range))

    def grid(self) -> list[dict[str, Any]]:
        """Give every combination, the last name varying fastest; only lists have one."""
        lists = [values for values in self.dimensions.values() if not isinstance(values, Range)]
        return [
            {**self.parameters, **dict(zip(self.dimensions, values, strict=True))}
            for values in product(*lists)
        ]

    def draw(self, n_candidates: int, seed: int) -> list[dict[str, Any]]:
        """Draw candidates at random; of lists alone each combination comes once, in the grid's order if all come."""
        rng = np.random.Generator(np.random.Philox(seed))
        whole = self.n_combinations()
        has_range = any(isinstance(d, Range) for d in self.dimensions.values())
        if not has_range and whole <= MOST_CANDIDATES:
            grid = self.grid()
            taken = rng.permutation(whole)[:n_candidates] if whole > n_candidates else range(whole)
            return [grid[place] for place in sorted(int(place) for place in taken)]
        return [
            {**self.parameters, **{name: _draw(d, rng) for name, d in self.dimensions.items()}}
            for _ in range(n_candidates)
        ]


def read_space(
    algorithm: str, parameters: Mapping[str, Any], space: Mapping[str, Any], *, ranges: bool = True
) -> Space:
    """Check what a caller wants searched, against the signature of the estimator.

    Parameters
    ----------
    algorithm : str
        Name in `core.registry`.
    parameters : mapping of str to Any
        The same in all candidates.
    space : mapping of str to list or mapping
        By parameter: a list of values, or a range as {"low": 0.01, "high": 1, "log": true, "integer": false}.
    ranges : bool, default=True
        Whether ranges are allowed.

    Returns
    -------
    Space

    Raises
    ------
    InvalidSpace
        An entry breaks a rule; its pointer says which.
    InvalidParameter
        So does one of `parameters`.
    """
    if algorithm not in ALGORITHMS:
        raise InvalidParameter(
            f"algorithm must be one of {', '.join(ALGORITHMS)}, got {algorithm!r}"
        )
    estimator = ALGORITHMS[algorithm]
    check_values(estimator, parameters)
    if not isinstance(space, Mapping) or not space:
        raise InvalidSpace("/space", "space must hold a list or a range for at least one parameter")
    along = path_parameter(estimator)
    dimensions: dict[str, Dimension] = {}
    for name in sorted(space):
        if name in parameters:
            raise InvalidSpace(
                f"/space/{name}", f"{name} is searched and given, got {parameters[name]!r} too"
            )
        dimension = _read_dimension(algorithm, name, space[name])
        if isinstance(dimension, Range) and not ranges:
            raise InvalidSpace(f"/space/{name}", f"{name} must be a list of values in a grid")
        dimensions[name] = dimension
    path = dimensions.pop(along, ()) if along else ()
    if isinstance(path, Range):
        path = path.points()
    if path:
        _check_path(algorithm, along or "", parameters, path)
    return Space(algorithm, dict(parameters), dimensions, tuple(sorted(path)))


def _read_dimension(algorithm: str, name: str, entry: Any) -> Dimension:
    pointer = f"/space/{name}"
    if isinstance(entry, Mapping):
        return _read_range(algorithm, name, entry, pointer)
    if not isinstance(entry, Sequence) or isinstance(entry, str):
        raise InvalidSpace(pointer, f"{name} must be a list of values or a range, got {entry!r}")
    if not 1 <= len(entry) <= MOST_VALUES:
        raise InvalidSpace(pointer, f"{name} must hold 1 to {MOST_VALUES} values, got {len(entry)}")
    for place, value in enumerate(entry):
        _check(algorithm, name, value, f"{pointer}/{place}")
        if any(type(value) is type(other) and value == other for other in entry[:place]):
            raise InvalidSpace(
                f"{pointer}/{place}", f"{name} must hold each value once, {value!r} comes again"
            )
    return tuple(entry)


def _read_range(algorithm: str, name: str, entry: Mapping[str, Any], pointer: str) -> Range:
    for key in entry:
        if key not in _RANGE_KEYS:
            raise InvalidSpace(
                f"{pointer}/{key}", f"a range has {', '.join(_RANGE_KEYS)}, got {key!r}"
            )
    for key in ("low", "high"):
        value = entry.get(key)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max
        ):
            raise InvalidSpace(f"{pointer}/{key}", f"{key} must be a finite number, got {value!r}")
        _check(algorithm, name, value, f"{pointer}/{key}")
    for key in ("log", "integer"):
        if not isinstance(entry.get(key, False), bool):
            raise InvalidSpace(
                f"{pointer}/{key}", f"{key} must be true or false, got {entry[key]!r}"
            )
    low, high = entry["low"], entry["high"]
    if not low < high:
        raise InvalidSpace(pointer, f"high must be greater than low ({low}), got {high}")
    found = Range(low, high, entry.get("log", False), entry.get("integer", False))
    if found.log and low <= 0:
        raise InvalidSpace(
            f"{pointer}/low", f"low must be greater than 0 where log is true, got {low}"
        )
    if found.integer and not all(isinstance(value, int) for value in (low, high)):
        raise InvalidSpace(
            pointer, f"low and high must be integers where integer is true, got {low} and {high}"
        )
    _check(algorithm, name, found.at(1 / math.pi), pointer)
    return found


def _check(algorithm: str, name: str, value: Any, pointer: str) -> None:
    try:
        check_values(ALGORITHMS[algorithm], {name: value})
    except InvalidParameter as error:
        raise InvalidSpace(pointer, str(error)) from error


def _check_path(
    algorithm: str, along: str, parameters: Mapping[str, Any], path: Sequence[Any]
) -> None:
    pointer = f"/space/{along}"
    for place, value in enumerate(path):
        if isinstance(value, bool) or not isinstance(value, int | float):  # "auto"
            raise InvalidSpace(
                f"{pointer}/{place}", f"{along} must be a number in a search, got {value!r}"
            )
    ranker: Any = ALGORITHMS[algorithm](**parameters)
    try:
        ranker.check_path_parameters()
    except InvalidParameter as error:
        raise InvalidSpace(pointer, str(error)) from error


def _draw(dimension: Dimension, rng: np.random.Generator) -> Any:
    if isinstance(dimension, Range):
        return dimension.at(float(rng.random()))
    return dimension[int(rng.integers(len(dimension)))]
