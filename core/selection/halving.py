"""Successive halving: many candidates on little, the best of them on more, the best of those on all."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from core.errors import InvalidParameter
from core.registry import ALGORITHMS

from .choice import LEAST_RISE
from .path import path_parameter
from .planning import CHOOSE_NOW, Chosen, HeldOut, Tried, Tryout
from .search import CandidateSearch, check_n_candidates, conclude, in_splits
from .space import InvalidSpace, read_space

ROUNDS = "n_rounds"
USUAL_ROUNDS = 100
"""The whole of the rounds where an algorithm chooses them itself."""


class Rung(NamedTuple):
    """A share of the resource, and how many candidates get it."""

    share: float
    n_candidates: int


class SuccessiveHalving(CandidateSearch):
    """Spend on candidates in rungs: the best 1/eta of each rung get eta times as much on the next.

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
    eta : int, default=3
    least_share : float, default=1/27
        Of the resource, on the first rung at least.
    n_splits : int, default=1
    random_state : int, default=0

    Raises
    ------
    InvalidSpace
        See `read_space`.
    InvalidParameter
        Another parameter breaks its rule, or the algorithm has no rounds to give a share of.

    Notes
    -----
    There are as many rungs as leave a candidate for the last, on which the resource is whole; so all of them
    cost n_rungs times as much as one candidate does in full, or a little more. Equals stay in the
    order of the draw, less the first where it was worse. With rounds, n_rounds searched as a path
    is so on the last rung; on the others a candidate is worth what its rounds so far give.

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
        self._rounds = (
            None if resource == "rows" else _most_rounds(algorithm, read.path, read.parameters)
        )
        if resource == "rounds" and not read.dimensions:
            raise InvalidSpace(
                "/space", f"space must hold more than {ROUNDS}, whose values one fit gives"
            )
        super().__init__(read, read.draw(n_candidates, random_state), n_splits)
        self.rungs = plan_rungs(len(self.candidates), eta, least_share)

    def next(
        self, tried: Sequence[Tried], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Tryout] | Chosen:
        """See `Planner.next`: a rung at a time, then the choice; if it is to end now, each by the last rung that it
        was judged on.
        """
        places: list[int] = list(range(len(self.candidates)))
        latest: dict[int, Sequence[Tried]] = {}
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
                return self._rung_tryouts(places, rung, last=number == len(self.rungs) - 1)
            for place, splits in zip(places, in_splits(tried[:n_fits], self.n_splits), strict=True):
                if place not in latest or not any(one.skipped for one in splits):
                    latest[place] = splits
                seconds[place] += sum(one.seconds for one in splits)
            tried = tried[n_fits:]
        everything = [latest[place] for place in range(len(self.candidates))]
        return conclude(self.space, self.candidates, everything, seconds, left)

    def _rung_tryouts(self, places: Sequence[int], rung: Rung, *, last: bool) -> list[Tryout]:
        if self._rounds is None:
            return self.tryouts(places, self.space.path, rung.share)
        if last and self.space.path:
            return self.tryouts(places, self.space.path)
        n_rounds = max(round(self._rounds * rung.share), 1)
        return self.tryouts(places, (), **{ROUNDS: n_rounds})


def plan_rungs(n_candidates: int, eta: int, least_share: float) -> list[Rung]:
    """Plan as many rungs as leave one candidate, or more where the first would have too little.

    Parameters
    ----------
    n_candidates, eta : int
    least_share : float

    Returns
    -------
    list of Rung
        Shares rise to 1 by factors of eta.
    """
    most = math.floor(math.log(n_candidates, eta) + 1e-9)
    steps = min(most, math.floor(math.log(1.0 / least_share, eta) + 1e-9))
    return [
        Rung(float(eta) ** (k - steps), max(n_candidates // eta**k, 1)) for k in range(steps + 1)
    ]


def _most_rounds(algorithm: str, path: Sequence[Any], parameters: Mapping[str, Any]) -> int:
    estimator = ALGORITHMS[algorithm]
    if path_parameter(estimator) != ROUNDS:
        raise InvalidParameter(
            f"resource must be 'rows' for {algorithm}, which has no path of {ROUNDS}, got 'rounds'"
        )
    default = estimator().get_params(deep=False)[ROUNDS] or USUAL_ROUNDS
    return int(max(path, default=parameters.get(ROUNDS) or default))


def _best(
    places: Sequence[int], latest: Mapping[int, Sequence[Tried]], n_best: int
) -> tuple[list[int], list[int]]:
    """Part the candidates of a rung that did not fail into the best, in their order, and the others."""
    worth = {
        place: float(np.mean([one.values for one in latest[place]], axis=0).max())
        for place in places
        if not any(one.failed for one in latest[place])
    }
    ranked = sorted(worth, key=lambda place: -round(worth[place] / LEAST_RISE))
    return sorted(ranked[:n_best]), sorted(ranked[n_best:])


def _reason(number: int, rungs: Sequence[Rung]) -> str:
    before, after = rungs[number - 1 : number + 1]
    return (
        f"left after rung {number} of {len(rungs)}, with {before.share:.3g} of the whole: "
        f"{after.n_candidates} of {before.n_candidates} went on"
    )
