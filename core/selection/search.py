"""Search over one algorithm's parameters: a grid, random candidates, or successive halving."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from core.base.parameters import check_seed, check_value, check_values
from core.errors import InvalidParameter
from core.metrics.window import MIN_RISE
from core.registry import ALGORITHMS

from .planner import CHOOSE_NOW, Chosen, LeaderboardRow, Member, NothingFitted, RowState
from .trial import HeldOut, Trial, TrialResult, choose, path_parameter

MAX_VALUES = 100
"""Values of one parameter in a search space."""

MAX_CANDIDATES = 1000
"""Candidates of one search."""

MAX_SPLITS = 20
"""Inner splits of one search."""

MAX_DRAWS_PER_CANDIDATE = 20
"""Random draws for each candidate wanted; if these repeat too often, the missing candidates are taken in order."""

RANGE_PATH_LENGTH = 10
"""Values tried of a path parameter that is given as a range."""

HOLDOUT_FRACTION = 0.25
"""Fraction of the rows held out if there is one split."""

ROUNDS = "n_rounds"
DEFAULT_ROUNDS = 100
"""The full number of rounds of an algorithm whose default is to choose it."""

_RANGE_KEYS = ("low", "high", "log", "integer")


class InvalidSpace(InvalidParameter):
    """An entry of a search space is invalid.

    Parameters
    ----------
    pointer : str
        The entry, as a JSON pointer within the search.
    message : str
        What is wrong with the entry.

    Examples
    --------
    >>> from core.selection import InvalidSpace, read_space
    >>> try:
    ...     read_space("rankboost", {}, {"n_rounds": [10, 0]})
    ... except InvalidSpace as error:
    ...     print(error.pointer)
    /space/n_rounds/1
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


@dataclass(frozen=True)
class Range:
    """A range of numbers to search, both ends included.

    Examples
    --------
    >>> from core.selection import Range
    >>> Range(1, 4, integer=True).whole()
    range(1, 5)
    """

    low: float
    """Lowest number."""
    high: float
    """Highest number, greater than low."""
    log: bool = False
    """Whether the logarithm is uniform instead of the number; low is then above 0."""
    integer: bool = False
    """Whether only whole numbers are searched."""

    def at(self, fraction: float) -> float | int:
        """Return the number at a fraction of the range.

        Parameters
        ----------
        fraction : float in [0, 1]
            The fraction.

        Returns
        -------
        float or int

        Examples
        --------
        >>> round(Range(1, 100, log=True).at(0.5), 9), Range(1, 4, integer=True).at(0.5)
        (10.0, 3)
        """
        if self.integer:  # each whole number has an equal part of [low, high + 1)
            low, high = (float(self.low), float(self.high) + 1.0)
            return min(math.floor(self._between(low, high, fraction)), int(self.high))
        return min(max(self._between(self.low, self.high, fraction), self.low), self.high)

    def _between(self, low: float, high: float, fraction: float) -> float:
        if self.log:
            return math.exp(math.log(low) + fraction * (math.log(high) - math.log(low)))
        return low + fraction * (high - low)

    def whole(self) -> Sequence[float | int]:
        """Return all whole numbers of an integer range; () for any other.

        Returns
        -------
        sequence of int
            Ascending.
        """
        return range(int(self.low), int(self.high) + 1) if self.integer else ()

    def points(self) -> tuple[float | int, ...]:
        """Return `RANGE_PATH_LENGTH` evenly spaced numbers from low to high.

        Returns
        -------
        tuple of float or int
            Ascending.
        """
        between = np.linspace(0.0, 1.0, RANGE_PATH_LENGTH)[1:-1].tolist()
        return tuple(sorted({self.low, self.high, *(self.at(fraction) for fraction in between)}))


Dimension = tuple[Any, ...] | Range


@dataclass(frozen=True)
class Space:
    """A validated search space of one algorithm: lists and ranges of parameter values."""

    algorithm: str
    parameters: Mapping[str, Any]
    """Fixed parameters."""
    dimensions: Mapping[str, Dimension]
    """Values of each searched parameter but that of the path, by name ascending."""
    path: tuple[Any, ...]
    """Values of the path parameter, ascending; empty if it is not searched."""

    def n_combinations(self) -> int:
        return math.prod(len(d) for d in self.dimensions.values() if not isinstance(d, Range))

    def grid(self) -> list[dict[str, Any]]:
        """Return the parameters of every combination of the lists, the last name varying fastest."""
        lists = [values for values in self.dimensions.values() if not isinstance(values, Range)]
        return [
            {**self.parameters, **dict(zip(self.dimensions, values, strict=True))}
            for values in product(*lists)
        ]

    def draw(self, n_candidates: int, seed: int) -> list[dict[str, Any]]:
        """Return the parameters of random candidates, no combination twice; fewer if there are no more.

        If there are only lists, the candidates are in the order of the grid.
        """
        rng = np.random.Generator(np.random.Philox(check_seed(seed)))
        whole = self.n_combinations()
        has_range = any(isinstance(d, Range) for d in self.dimensions.values())
        if not has_range and whole <= MAX_CANDIDATES:
            grid = self.grid()
            taken = rng.permutation(whole)[:n_candidates] if whole > n_candidates else range(whole)
            return [grid[index] for index in sorted(int(index) for index in taken)]
        candidates: dict[str, dict[str, Any]] = {}
        for _ in range(MAX_DRAWS_PER_CANDIDATE * n_candidates):
            drawn = {name: _draw(d, rng) for name, d in self.dimensions.items()}
            candidates.setdefault(repr(drawn), {**self.parameters, **drawn})
            if len(candidates) == n_candidates:
                return list(candidates.values())
        # add combinations in order, until there are enough or no more
        values = [d.whole() if isinstance(d, Range) else d for d in self.dimensions.values()]
        for each in product(*values):
            combination = dict(zip(self.dimensions, each, strict=True))
            candidates.setdefault(repr(combination), {**self.parameters, **combination})
            if len(candidates) == n_candidates:
                break
        return list(candidates.values())


class CandidateSearch:
    """Planner that tries given candidates on every split, and chooses the one with the greatest mean value.

    Attributes
    ----------
    candidates : list of dict
        The parameters of each fit, without the path parameter.
    """

    def __init__(self, space: Space, candidates: list[dict[str, Any]], n_splits: int) -> None:
        n_splits = check_value("n_splits", int, n_splits)
        if not 1 <= n_splits <= MAX_SPLITS:
            raise InvalidParameter(f"n_splits must be from 1 to {MAX_SPLITS}, got {n_splits}")
        self.space = space
        self.candidates = candidates
        self.n_splits = n_splits
        self.fraction = HOLDOUT_FRACTION

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """Return all trials, then the choice; see `Planner.next`.

        Parameters
        ----------
        tried, held, elapsed
            As for `Planner.next`.

        Returns
        -------
        sequence of Trial, or Chosen
            The next trials, or the end of the search.
        """
        if not tried:
            return self.trials(range(len(self.candidates)), self.space.path)
        last = in_splits(tried, self.n_splits)
        seconds = [sum(one.seconds for one in splits) for splits in last]
        return conclude(self.space, last, seconds)

    def trials(
        self, chosen: Sequence[int], path: tuple[Any, ...], rows: float = 1.0, **changed: Any
    ) -> list[Trial]:
        """Return the trials of the candidates with the given indices, one per split.

        Parameters
        ----------
        chosen : sequence of int
            Indices of the candidates.
        path : tuple
            Values of the path parameter.
        rows : float
            Fraction of the inner training rows.
        **changed
            Parameters that differ from those of the candidate.

        Returns
        -------
        list of Trial
            Candidate by candidate, split by split.
        """
        return [
            Trial(self.space.algorithm, {**self.candidates[k], **changed}, path, rows, split)
            for k in chosen
            for split in range(self.n_splits)
        ]


class GridSearch(CandidateSearch):
    """Search every combination of lists of values.

    Use it for few parameters with few values. All values of a path parameter (n_rounds or C) share one fit. Among
    candidates with equal values, the first in the order of the lists is chosen, and the lowest value of a path.

    Parameters
    ----------
    algorithm : str
        Name in `core.registry`.
    space : mapping of str to list
        Values of each searched parameter.
    parameters : mapping of str to Any, optional
        Fixed parameters.
    n_splits : int, default=1
        1 holds out a part of the rows; k > 1 are k folds.

    Raises
    ------
    InvalidSpace
        An entry of `space` breaks a rule; see `read_space`.
    InvalidParameter
        There are more than 1000 combinations.

    Examples
    --------
    >>> from core.selection import GridSearch
    >>> planner = GridSearch("logistic", {"C": [0.1, 1.0], "standardize": [True, False]})
    >>> planner.candidates, planner.space.path
    ([{'standardize': True}, {'standardize': False}], (0.1, 1.0))
    """

    def __init__(
        self,
        algorithm: str,
        space: Mapping[str, Any],
        parameters: Mapping[str, Any] | None = None,
        *,
        n_splits: int = 1,
    ) -> None:
        read = read_space(algorithm, parameters or {}, space, ranges=False)
        n_fits = read.n_combinations()
        if n_fits > MAX_CANDIDATES:
            raise InvalidParameter(
                f"a grid must have at most {MAX_CANDIDATES} combinations, got {n_fits}"
            )
        super().__init__(read, read.grid(), n_splits)


class RandomSearch(CandidateSearch):
    """Search random candidates from lists or ranges.

    Use it for more than two parameters. For a path parameter (n_rounds or C), each fit is evaluated at all values of
    its list, or at ten values of its range, at the cost of one fit. No combination occurs twice. If there are fewer
    than `n_candidates`, all are tried.

    Parameters
    ----------
    algorithm, parameters, n_splits
        As for `GridSearch`.
    space : mapping of str to list or mapping
        A list of values or a range for each searched parameter; see `read_space`.
    n_candidates : int, default=20
        Number of candidates, 1 to 1000.
    random_state : int, default=0
        Seed of the draw.

    References
    ----------
    J. Bergstra and Y. Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012.

    Examples
    --------
    >>> from core.selection import RandomSearch
    >>> space = {"max_bins": {"low": 8, "high": 64, "integer": True}, "n_rounds": [10, 20]}
    >>> planner = RandomSearch("rankboost", space, n_candidates=3)
    >>> len(planner.candidates), planner.space.path
    (3, (10, 20))
    """

    def __init__(
        self,
        algorithm: str,
        space: Mapping[str, Any],
        parameters: Mapping[str, Any] | None = None,
        *,
        n_candidates: int = 20,
        n_splits: int = 1,
        random_state: int = 0,
    ) -> None:
        n_candidates = check_n_candidates(n_candidates)
        read = read_space(algorithm, parameters or {}, space)
        super().__init__(read, read.draw(n_candidates, random_state), n_splits)


class Rung(NamedTuple):
    """One stage of successive halving: the number of candidates, and the fraction of the resource each gets."""

    fraction: float
    """Fraction of the resource that each candidate has. In (0, 1]."""
    n_candidates: int


class SuccessiveHalving(CandidateSearch):
    """Search random candidates in rungs: the best 1/eta of each rung get eta times the resource.

    Use it for large tables or many candidates: bad candidates cost little.

    Parameters
    ----------
    algorithm, space, parameters, n_splits, random_state
        As for `RandomSearch`.
    n_candidates : int, default=27
        Number of candidates on the first rung.
    resource : {"rows", "rounds"}, default="rows"
        What a rung limits: the training rows, or n_rounds.
    eta : int, default=3
        From 2 to 10.
    least_share : float in (0, 1], default=1/27
        Lowest fraction of the resource on the first rung.

    Notes
    -----
    The number of rungs is the largest that leaves a candidate for the last one, which has the entire resource. All
    rungs together cost about n_rungs times as much as one candidate with the entire resource. Candidates of equal value
    keep the order of the draw.

    If n_rounds is searched as a path, it is one on the last rung only; on the other rungs a candidate is evaluated with
    the rung's rounds. The chosen ranker has the rounds that it was evaluated with, even if the algorithm could choose
    them.

    References
    ----------
    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
    AISTATS 2016: Algorithm 1. L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh and A. Talwalkar,
    "Hyperband: a novel bandit-based approach to hyperparameter optimization", JMLR 18, 2018: eta = 3.

    Examples
    --------
    >>> from core.selection import SuccessiveHalving
    >>> planner = SuccessiveHalving("pauc_svm", {"fpr_max": {"low": 0.05, "high": 0.5}}, n_candidates=9)
    >>> [(round(rung.fraction, 3), rung.n_candidates) for rung in planner.rungs]
    [(0.111, 9), (0.333, 3), (1.0, 1)]
    """

    def __init__(
        self,
        algorithm: str,
        space: Mapping[str, Any],
        parameters: Mapping[str, Any] | None = None,
        *,
        n_candidates: int = 27,
        resource: Literal["rows", "rounds"] = "rows",
        eta: int = 3,
        least_share: float = 1 / 27,
        n_splits: int = 1,
        random_state: int = 0,
    ) -> None:
        n_candidates = check_n_candidates(n_candidates)
        check_value("resource", Literal["rows", "rounds"], resource)
        eta = check_value("eta", int, eta)
        if not 2 <= eta <= 10:
            raise InvalidParameter(f"eta must be from 2 to 10, got {eta}")
        if not 0.0 < check_value("least_share", float, least_share) <= 1.0:
            raise InvalidParameter(
                f"least_share must be greater than 0 and at most 1, got {least_share}"
            )
        read = read_space(algorithm, parameters or {}, space)
        self._rounds = None
        if resource == "rounds":
            self._rounds = _most_rounds(algorithm, read.path, read.parameters)
            if not read.path:  # the chosen ranker keeps the rounds of the last rung
                read = replace(read, parameters={**read.parameters, ROUNDS: self._rounds})
        if resource == "rounds" and not read.dimensions:
            raise InvalidSpace(
                "/space",
                f"space must contain more than {ROUNDS}, whose values are all covered by one fit",
            )
        super().__init__(read, read.draw(n_candidates, random_state), n_splits)
        self.rungs = plan_rungs(len(self.candidates), eta, least_share)

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """Return the trials of one rung after the other, then the choice; see `Planner.next`.

        If the search must end now, each candidate is evaluated by the last rung that it reached.

        Parameters
        ----------
        tried, held, elapsed
            As for `Planner.next`.
        """
        remaining: list[int] = list(range(len(self.candidates)))
        latest: dict[int, Sequence[TrialResult]] = {}
        seconds = [0.0] * len(self.candidates)
        left: dict[int, str] = {}
        for number, rung in enumerate(self.rungs):
            if number:
                remaining, worse = _best(remaining, latest, rung.n_candidates)
                left |= dict.fromkeys(worse, _reason(number, self.rungs))
            n_fits = len(remaining) * self.n_splits
            if not remaining or (not tried and elapsed >= CHOOSE_NOW):
                break
            if not tried:
                return self._rung_trials(remaining, rung, last=number == len(self.rungs) - 1)
            for k, splits in zip(remaining, in_splits(tried[:n_fits], self.n_splits), strict=True):
                if k not in latest or not any(one.skipped for one in splits):
                    latest[k] = splits
                seconds[k] += sum(one.seconds for one in splits)
            tried = tried[n_fits:]
        everything = [latest[k] for k in range(len(self.candidates))]
        return conclude(self.space, everything, seconds, left)

    def _rung_trials(self, chosen: Sequence[int], rung: Rung, *, last: bool) -> list[Trial]:
        if self._rounds is None:
            return self.trials(chosen, self.space.path, rung.fraction)
        if last and self.space.path:
            return self.trials(chosen, self.space.path)
        n_rounds = max(round(self._rounds * rung.fraction), 1)
        return self.trials(chosen, (), **{ROUNDS: n_rounds})


def read_space(
    algorithm: str, parameters: Mapping[str, Any], space: Mapping[str, Any], *, ranges: bool = True
) -> Space:
    """Return a search space, validated against the parameters of an algorithm.

    Parameters
    ----------
    algorithm, parameters
        As for `GridSearch`.
    space : mapping of str to list or mapping
        For each searched parameter a list of values, or a range such as
        {"low": 0.01, "high": 1, "log": True, "integer": False}.
    ranges : bool, default=True
        Whether ranges are allowed.

    Returns
    -------
    Space

    Raises
    ------
    InvalidSpace
        An entry of `space` breaks a rule; its `pointer` says which.
    InvalidParameter
        One of `parameters` breaks a rule.

    Examples
    --------
    >>> from core.selection import read_space
    >>> space = read_space("logistic", {}, {"C": [10.0, 1.0], "standardize": [True, False]})
    >>> space.path, space.n_combinations()
    ((1.0, 10.0), 2)
    """
    check_value("algorithm", str, algorithm)
    check_value("parameters", Mapping, parameters)
    if algorithm not in ALGORITHMS:
        raise InvalidParameter(
            f"algorithm must be one of {', '.join(ALGORITHMS)}, got {algorithm!r}"
        )
    estimator = ALGORITHMS[algorithm]
    check_values(estimator, parameters)
    if not isinstance(space, Mapping) or not space:
        raise InvalidSpace(
            "/space", "space must contain a list or a range for at least one parameter"
        )
    along = path_parameter(estimator)
    dimensions: dict[str, Dimension] = {}
    for name in sorted(space):
        if name in parameters:
            raise InvalidSpace(
                f"/space/{name}",
                f"{name} cannot be both searched and given, got {parameters[name]!r}",
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


def plan_rungs(n_candidates: int, eta: int, least_share: float) -> list[Rung]:
    """Return the stages, with fractions rising to 1: until one candidate is left, or fewer due to `least_share`."""
    most = math.floor(math.log(n_candidates, eta) + 1e-9)
    steps = min(most, math.floor(math.log(1.0 / least_share, eta) + 1e-9))
    return [
        Rung(float(eta) ** (k - steps), max(n_candidates // eta**k, 1)) for k in range(steps + 1)
    ]


def conclude(
    space: Space,
    last: Sequence[Sequence[TrialResult]],
    seconds: Sequence[float],
    left: Mapping[int, str] | None = None,
) -> Chosen:
    """Return the best candidate by its last trials as final choice, with the leaderboard of all.

    NothingFitted: all candidates failed.

    last: the last trials of each candidate, one per split.
    seconds: of all trials of each candidate.
    left: why a candidate left the search before its end.
    """
    left = left or {}
    along = path_parameter(ALGORITHMS[space.algorithm]) or ""
    rows: list[LeaderboardRow] = []
    open_rows: list[int] = []
    for k, tried in enumerate(last):
        failure = next((one for one in tried if one.failed), None)
        own = tried[0].trial.parameters  # with the rounds of its rung
        for step, value in enumerate(tried[0].trial.path or (None,)):
            full = dict(own) if value is None else {**own, along: value}
            row = LeaderboardRow(
                space.algorithm, full, rows=tried[0].trial.rows, seconds=seconds[k]
            )
            if failure:
                state: RowState = "untried" if failure.skipped else "failed"
                row = replace(row, state=state, reason=failure.failed or "")
            else:
                row = replace(
                    row,
                    value=float(np.mean([one.values[step] for one in tried])),
                    auc=float(np.mean([one.aucs[step] for one in tried])),
                    reason=left.get(k, "lower value than the chosen candidate"),
                )
                if k not in left:
                    open_rows.append(len(rows))
            rows.append(row)
    if not open_rows:
        raise NothingFitted(
            f"none of the {len(last)} candidates could be fitted and evaluated; "
            f"the first: {rows[0].reason}"
        )
    winner = open_rows[choose([rows[k].value or 0.0 for k in open_rows])]
    rows[winner] = replace(
        rows[winner], state="chosen", reason="highest value; the simplest candidate wins ties"
    )
    return Chosen((Member(space.algorithm, rows[winner].parameters),), tuple(rows))


def in_splits(tried: Sequence[TrialResult], n_splits: int) -> list[Sequence[TrialResult]]:
    """Return the trial results grouped by candidate, one per split."""
    return [tried[k : k + n_splits] for k in range(0, len(tried), n_splits)]


def check_n_candidates(n_candidates: int) -> int:
    n_candidates = check_value("n_candidates", int, n_candidates)
    if not 1 <= n_candidates <= MAX_CANDIDATES:
        raise InvalidParameter(
            f"n_candidates must be from 1 to {MAX_CANDIDATES}, got {n_candidates}"
        )
    return n_candidates


def _most_rounds(algorithm: str, path: Sequence[Any], parameters: Mapping[str, Any]) -> int:
    estimator = ALGORITHMS[algorithm]
    if path_parameter(estimator) != ROUNDS:
        raise InvalidParameter(
            f"resource must be 'rows' for {algorithm}, which has no {ROUNDS}, got 'rounds'"
        )
    default = estimator().get_params(deep=False)[ROUNDS] or DEFAULT_ROUNDS
    return int(max(path, default=parameters.get(ROUNDS) or default))


def _best(
    candidates: Sequence[int], latest: Mapping[int, Sequence[TrialResult]], n_best: int
) -> tuple[list[int], list[int]]:
    """Return the indices of the `n_best` best candidates of a stage, and of the others that did not fail; ascending."""
    value = {
        k: float(np.mean([one.values for one in latest[k]], axis=0).max())
        for k in candidates
        if not any(one.failed for one in latest[k])
    }
    ranked = sorted(value, key=lambda k: -round(value[k] / MIN_RISE))
    return sorted(ranked[:n_best]), sorted(ranked[n_best:])


def _reason(number: int, rungs: Sequence[Rung]) -> str:
    before, after = rungs[number - 1 : number + 1]
    return (
        f"stopped after stage {number} of {len(rungs)}, at {100 * before.fraction:.3g} % of the full size: "
        f"the best {after.n_candidates} of {before.n_candidates} candidates went on"
    )


def _read_dimension(algorithm: str, name: str, entry: Any) -> Dimension:
    pointer = f"/space/{name}"
    if isinstance(entry, Mapping):
        return _read_range(algorithm, name, entry, pointer)
    if not isinstance(entry, Sequence) or isinstance(entry, str):
        raise InvalidSpace(pointer, f"{name} must be a list of values or a range, got {entry!r}")
    if not 1 <= len(entry) <= MAX_VALUES:
        raise InvalidSpace(pointer, f"{name} must have 1 to {MAX_VALUES} values, got {len(entry)}")
    for index, value in enumerate(entry):
        _check(algorithm, name, value, f"{pointer}/{index}")
        if any(_is_same(value, other) for other in entry[:index]):
            raise InvalidSpace(
                f"{pointer}/{index}", f"{name} must have unique values; {value!r} occurs twice"
            )
    return tuple(entry)


def _is_same(value: object, other: object) -> bool:
    """Return True if two values are the same to a parameter: 1 and 1.0 are, 1 and True are not."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


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
    dimension = Range(low, high, entry.get("log", False), entry.get("integer", False))
    if dimension.log and low <= 0:
        raise InvalidSpace(
            f"{pointer}/low", f"low must be greater than 0 if log is true, got {low}"
        )
    if dimension.integer and not all(isinstance(value, int) for value in (low, high)):
        raise InvalidSpace(
            pointer, f"low and high must be integers if integer is true, got {low} and {high}"
        )
    _check(algorithm, name, dimension.at(1 / math.pi), pointer)
    return dimension


def _check(algorithm: str, name: str, value: Any, pointer: str) -> None:
    try:
        check_values(ALGORITHMS[algorithm], {name: value})
    except InvalidParameter as error:
        raise InvalidSpace(pointer, str(error)) from error


def _check_path(
    algorithm: str, along: str, parameters: Mapping[str, Any], path: Sequence[Any]
) -> None:
    pointer = f"/space/{along}"
    for index, value in enumerate(path):
        if isinstance(value, bool) or not isinstance(value, int | float):  # "auto"
            raise InvalidSpace(
                f"{pointer}/{index}", f"{along} must be a number in a search, got {value!r}"
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
