"""Search over one algorithm's parameters: all of a grid, candidates drawn at random, or successive halving."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from core.base.parameters import check_seed, check_values
from core.errors import InvalidParameter
from core.registry import ALGORITHMS

from .planner import CHOOSE_NOW, Chosen, LeaderboardRow, Member, NothingFitted
from .trial import MIN_RISE, HeldOut, Trial, TrialResult, choose, path_parameter

MAX_VALUES = 100
"""Of one parameter."""

MAX_CANDIDATES = 1000
"""Of one search."""

MAX_SPLITS = 20

DRAWS_FOR_ONE = 20
"""So many draws for each candidate that is wanted; then those not drawn yet are taken as they come."""

PATH_POINTS = 10
"""So many values of a range are tried where it is that of a path parameter."""

FRACTION = 0.25
"""Of the rows, held out where one split is enough."""

ROUNDS = "n_rounds"
USUAL_ROUNDS = 100
"""The whole of the rounds where an algorithm chooses them itself."""

_RANGE_KEYS = ("low", "high", "log", "integer")


class InvalidSpace(InvalidParameter):
    """A search space breaks a rule.

    Attributes
    ----------
    pointer : str
        The entry in error, as a JSON pointer within the search: "/space/n_rounds/1".
    """

    def __init__(self, pointer: str, message: str) -> None:
        super().__init__(message)
        self.pointer = pointer


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included."""

    low: float
    high: float
    """low < high."""
    log: bool = False
    """Whether the logarithm is uniform instead of the number; low is above 0 then."""
    integer: bool = False

    def at(self, share: float) -> float | int:
        """Return the number so far along the range."""
        if self.integer:  # each whole number has an equal part of [low, high + 1)
            low, high = (float(self.low), float(self.high) + 1.0)
            return min(math.floor(self._between(low, high, share)), int(self.high))
        return min(max(self._between(self.low, self.high, share), self.low), self.high)

    def _between(self, low: float, high: float, share: float) -> float:
        if self.log:
            return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        return low + share * (high - low)

    def whole(self) -> Sequence[float | int]:
        """Return its whole numbers, of which there may be many; of other ranges, which have no end, none."""
        return range(int(self.low), int(self.high) + 1) if self.integer else ()

    def points(self) -> tuple[float | int, ...]:
        """Return evenly spaced numbers, from low to high."""
        between = np.linspace(0.0, 1.0, PATH_POINTS)[1:-1].tolist()
        return tuple(sorted({self.low, self.high, *(self.at(share) for share in between)}))


Dimension = tuple[Any, ...] | Range


@dataclass(frozen=True)
class Space:
    """What is tried of one algorithm."""

    algorithm: str
    parameters: Mapping[str, Any]
    """The same in all candidates."""
    dimensions: Mapping[str, Dimension]
    """What is searched, less the path, by name ascending."""
    path: tuple[Any, ...]
    """Values of the path parameter, ascending; empty where it is not searched."""

    def n_combinations(self) -> int:
        """Count the combinations of the lists."""
        return math.prod(len(d) for d in self.dimensions.values() if not isinstance(d, Range))

    def grid(self) -> list[dict[str, Any]]:
        """Return every combination, the last name varying fastest; only lists have one."""
        lists = [values for values in self.dimensions.values() if not isinstance(values, Range)]
        return [
            {**self.parameters, **dict(zip(self.dimensions, values, strict=True))}
            for values in product(*lists)
        ]

    def draw(self, n_candidates: int, seed: int) -> list[dict[str, Any]]:
        """Draw candidates at random, each combination once; fewer where there are no more.

        Of lists alone they come in the grid's order.
        """
        rng = np.random.Generator(np.random.Philox(check_seed(seed)))
        whole = self.n_combinations()
        has_range = any(isinstance(d, Range) for d in self.dimensions.values())
        if not has_range and whole <= MAX_CANDIDATES:
            grid = self.grid()
            taken = rng.permutation(whole)[:n_candidates] if whole > n_candidates else range(whole)
            return [grid[place] for place in sorted(int(place) for place in taken)]
        found: dict[str, dict[str, Any]] = {}
        for _ in range(DRAWS_FOR_ONE * n_candidates):
            drawn = {name: _draw(d, rng) for name, d in self.dimensions.items()}
            found.setdefault(repr(drawn), {**self.parameters, **drawn})
            if len(found) == n_candidates:
                return list(found.values())
        # what is drawn seldom, or everything there is
        values = [d.whole() if isinstance(d, Range) else d for d in self.dimensions.values()]
        for each in product(*values):
            left = dict(zip(self.dimensions, each, strict=True))
            found.setdefault(repr(left), {**self.parameters, **left})
            if len(found) == n_candidates:
                break
        return list(found.values())


class CandidateSearch:
    """Try each of some candidates on every split, and choose the one of the greatest mean value.

    Attributes
    ----------
    candidates : list of dict
        The parameters of each fit, but for the one along the path.
    """

    def __init__(self, space: Space, candidates: list[dict[str, Any]], n_splits: int) -> None:
        if not 1 <= n_splits <= MAX_SPLITS:
            raise InvalidParameter(f"n_splits must be from 1 to {MAX_SPLITS}, got {n_splits}")
        self.space = space
        self.candidates = candidates
        self.n_splits = n_splits
        self.n_repeats = 1
        self.fraction = FRACTION

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """See `Planner.next`: all trials at once, then the choice."""
        if not tried:
            return self.trials(range(len(self.candidates)), self.space.path)
        last = in_splits(tried, self.n_splits)
        seconds = [sum(one.seconds for one in splits) for splits in last]
        return conclude(self.space, last, seconds)

    def trials(
        self, places: Sequence[int], path: tuple[Any, ...], rows: float = 1.0, **changed: Any
    ) -> list[Trial]:
        """Return the trials of some candidates, one per split."""
        return [
            Trial(self.space.algorithm, {**self.candidates[k], **changed}, path, rows, split)
            for k in places
            for split in range(self.n_splits)
        ]


class GridSearch(CandidateSearch):
    """Try every combination of lists of values.

    InvalidSpace: see `read_space`; or there are more than 1000 combinations. The values of a path parameter, n_rounds
    or C, share one fit. Of equal values the first in the order of the lists is chosen, and of a path the least.

    Parameters
    ----------
    algorithm : str
        Name in `core.registry`.
    space : mapping of str to list
        The values of each parameter that is searched.
    parameters : mapping of str to Any, optional
        The same in all candidates.
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
    """Try candidates drawn at random.

    Of a path parameter, n_rounds or C, every candidate's fit is evaluated at all values of its list, or at ten of its
    range: they cost one fit. No combination comes twice; where there are fewer than candidates, all of them come.

    InvalidSpace: see `read_space`. InvalidParameter: n_candidates is not from 1 to 1000.

    Parameters
    ----------
    algorithm, parameters
        As `GridSearch`.
    space : mapping of str to list or mapping
        By parameter a list of values, or a range; see `read_space`.

    References
    ----------
    J. Bergstra and Y. Bengio, "Random search for hyper-parameter optimization", JMLR 13, 2012.
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
        check_n_candidates(n_candidates)
        read = read_space(algorithm, parameters or {}, space)
        super().__init__(read, read.draw(n_candidates, random_state), n_splits)


class Rung(NamedTuple):
    """A share of the resource, and how many candidates get it."""

    share: float
    n_candidates: int


class SuccessiveHalving(CandidateSearch):
    """Spend on candidates in rungs: the best 1/eta of each rung get eta times as much on the next.

    InvalidSpace: see `read_space`. InvalidParameter: another parameter breaks its rule, or the algorithm has no rounds
    to give a share of.

    Parameters
    ----------
    algorithm : str
        Name in `core.registry`.
    space : mapping of str to list or mapping
        By parameter a list of values, or a range; see `read_space`.
    parameters : mapping of str to Any, optional
        The same in all candidates.
    n_candidates : int, default=27
        Drawn at random, on the first rung.
    resource : {"rows", "rounds"}, default="rows"
        What a rung has a share of: the rows that are learnt from, or n_rounds.
    least_share : float, default=1/27
        Of the resource, on the first rung at least.

    Notes
    -----
    There are as many rungs as leave a candidate for the last, on which the resource is whole; so all of them
    cost n_rungs times as much as one candidate does in full, or a little more. Equals stay in the
    order of the draw, less the first where it was worse. With rounds, n_rounds searched as a path
    is so on the last rung; on the others a candidate counts for what its rounds so far give. What is chosen has
    the rounds that it was evaluated with, also where an algorithm would choose them.

    References
    ----------
    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
    AISTATS 2016: Algorithm 1. L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh and A. Talwalkar,
    "Hyperband: a novel bandit-based approach to hyperparameter optimization", JMLR 18, 2018: eta = 3.
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
        check_n_candidates(n_candidates)
        if not 2 <= eta <= 10:
            raise InvalidParameter(f"eta must be from 2 to 10, got {eta}")
        if not 0.0 < least_share <= 1.0:
            raise InvalidParameter(
                f"least_share must be greater than 0 and at most 1, got {least_share}"
            )
        read = read_space(algorithm, parameters or {}, space)
        self._rounds = None
        if resource == "rounds":
            self._rounds = _most_rounds(algorithm, read.path, read.parameters)
            if not read.path:  # what the last rung is evaluated with is what is chosen
                read = replace(read, parameters={**read.parameters, ROUNDS: self._rounds})
        if resource == "rounds" and not read.dimensions:
            raise InvalidSpace(
                "/space", f"space must hold more than {ROUNDS}, whose values one fit gives"
            )
        super().__init__(read, read.draw(n_candidates, random_state), n_splits)
        self.rungs = plan_rungs(len(self.candidates), eta, least_share)

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """See `Planner.next`: a rung at a time, then the choice; if it is to end now, each by the last rung that it
        was evaluated on.
        """
        places: list[int] = list(range(len(self.candidates)))
        latest: dict[int, Sequence[TrialResult]] = {}
        seconds = [0.0] * len(self.candidates)
        left: dict[int, str] = {}
        for number, rung in enumerate(self.rungs):
            if number:
                places, worse = _best(places, latest, rung.n_candidates)
                left |= dict.fromkeys(worse, _reason(number, self.rungs))
            n_fits = len(places) * self.n_splits
            if not places or (not tried and elapsed >= CHOOSE_NOW):
                break
            if not tried:
                return self._rung_trials(places, rung, last=number == len(self.rungs) - 1)
            for place, splits in zip(places, in_splits(tried[:n_fits], self.n_splits), strict=True):
                if place not in latest or not any(one.skipped for one in splits):
                    latest[place] = splits
                seconds[place] += sum(one.seconds for one in splits)
            tried = tried[n_fits:]
        everything = [latest[place] for place in range(len(self.candidates))]
        return conclude(self.space, everything, seconds, left)

    def _rung_trials(self, places: Sequence[int], rung: Rung, *, last: bool) -> list[Trial]:
        if self._rounds is None:
            return self.trials(places, self.space.path, rung.share)
        if last and self.space.path:
            return self.trials(places, self.space.path)
        n_rounds = max(round(self._rounds * rung.share), 1)
        return self.trials(places, (), **{ROUNDS: n_rounds})


def read_space(
    algorithm: str, parameters: Mapping[str, Any], space: Mapping[str, Any], *, ranges: bool = True
) -> Space:
    """Check what a caller wants searched, against the signature of the estimator.

    InvalidSpace: an entry breaks a rule; its pointer says which. InvalidParameter: so does one of `parameters`.

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


def plan_rungs(n_candidates: int, eta: int, least_share: float) -> list[Rung]:
    """Plan as many rungs as leave one candidate, or more where the first would have too little; shares rise to 1."""
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
    """Choose the best candidate by its last trials, one per split, and list all.

    `seconds` are those of all trials of each candidate; `left` says which candidates left before the end, and why.

    NothingFitted: all candidates failed.
    """
    left = left or {}
    along = path_parameter(ALGORITHMS[space.algorithm]) or ""
    rows: list[LeaderboardRow] = []
    open_places: list[int] = []
    for place, tried in enumerate(last):
        failure = next((one for one in tried if one.failed), None)
        own = tried[0].trial.parameters  # with the rounds of its rung
        for step, value in enumerate(tried[0].trial.path or (None,)):
            full = dict(own) if value is None else {**own, along: value}
            row = LeaderboardRow(
                space.algorithm, full, rows=tried[0].trial.rows, seconds=seconds[place]
            )
            if failure:
                state = "untried" if failure.skipped else "failed"
                row = replace(row, state=state, reason=failure.failed or "")
            else:
                row = replace(
                    row,
                    value=float(np.mean([one.values[step] for one in tried])),
                    auc=float(np.mean([one.aucs[step] for one in tried])),
                    reason=left.get(place, "another is better"),
                )
                if place not in left:
                    open_places.append(len(rows))
            rows.append(row)
    if not open_places:
        raise NothingFitted(
            f"none of the {len(last)} candidates could be fitted and evaluated; "
            f"the first: {rows[0].reason}"
        )
    winner = open_places[choose([rows[k].value or 0.0 for k in open_places])]
    rows[winner] = replace(
        rows[winner], state="chosen", reason="the greatest value, the simplest of its equals"
    )
    return Chosen((Member(space.algorithm, rows[winner].parameters),), tuple(rows))


def in_splits(tried: Sequence[TrialResult], n_splits: int) -> list[Sequence[TrialResult]]:
    """Part trials into those of each candidate, one per split."""
    return [tried[k : k + n_splits] for k in range(0, len(tried), n_splits)]


def check_n_candidates(n_candidates: int) -> None:
    """Refuse a number of candidates that no search has with InvalidParameter."""
    if not 1 <= n_candidates <= MAX_CANDIDATES:
        raise InvalidParameter(
            f"n_candidates must be from 1 to {MAX_CANDIDATES}, got {n_candidates}"
        )


def _most_rounds(algorithm: str, path: Sequence[Any], parameters: Mapping[str, Any]) -> int:
    estimator = ALGORITHMS[algorithm]
    if path_parameter(estimator) != ROUNDS:
        raise InvalidParameter(
            f"resource must be 'rows' for {algorithm}, which has no path of {ROUNDS}, got 'rounds'"
        )
    default = estimator().get_params(deep=False)[ROUNDS] or USUAL_ROUNDS
    return int(max(path, default=parameters.get(ROUNDS) or default))


def _best(
    places: Sequence[int], latest: Mapping[int, Sequence[TrialResult]], n_best: int
) -> tuple[list[int], list[int]]:
    """Part the candidates of a rung that did not fail into the best, in their order, and the others."""
    value = {
        place: float(np.mean([one.values for one in latest[place]], axis=0).max())
        for place in places
        if not any(one.failed for one in latest[place])
    }
    ranked = sorted(value, key=lambda place: -round(value[place] / MIN_RISE))
    return sorted(ranked[:n_best]), sorted(ranked[n_best:])


def _reason(number: int, rungs: Sequence[Rung]) -> str:
    before, after = rungs[number - 1 : number + 1]
    return (
        f"left after rung {number} of {len(rungs)}, with {before.share:.3g} of the whole: "
        f"{after.n_candidates} of {before.n_candidates} went on"
    )


def _read_dimension(algorithm: str, name: str, entry: Any) -> Dimension:
    pointer = f"/space/{name}"
    if isinstance(entry, Mapping):
        return _read_range(algorithm, name, entry, pointer)
    if not isinstance(entry, Sequence) or isinstance(entry, str):
        raise InvalidSpace(pointer, f"{name} must be a list of values or a range, got {entry!r}")
    if not 1 <= len(entry) <= MAX_VALUES:
        raise InvalidSpace(pointer, f"{name} must hold 1 to {MAX_VALUES} values, got {len(entry)}")
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
