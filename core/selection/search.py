"""Search over one algorithm's parameters: all of a grid, or candidates drawn at random."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.errors import InvalidParameter
from core.registry import ALGORITHMS

from .choice import Candidate, choose
from .path import path_parameter
from .planning import Chosen, HeldOut, Member, NothingFitted, Standing, Tried, Tryout
from .space import MOST_CANDIDATES, Space, read_space

MOST_SPLITS = 20


FRACTION = 0.25
"""Of the rows, held out where one split is enough."""


class CandidateSearch:
    """Try each of some candidates on every split, and choose the one of the greatest mean value.

    Attributes
    ----------
    space : Space
    candidates : list of dict
        The parameters of each fit, but for the one along the path.
    n_splits : int
    """

    def __init__(self, space: Space, candidates: list[dict[str, Any]], n_splits: int) -> None:
        if not 1 <= n_splits <= MOST_SPLITS:
            raise InvalidParameter(f"n_splits must be from 1 to {MOST_SPLITS}, got {n_splits}")
        self.space = space
        self.candidates = candidates
        self.n_splits = n_splits
        self.n_repeats = 1
        self.fraction = FRACTION

    def next(
        self, tried: Sequence[Tried], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Tryout] | Chosen:
        """See `Planner.next`: all tryouts at once, then the choice."""
        if not tried:
            return self.tryouts(range(len(self.candidates)), self.space.path)
        last = in_splits(tried, self.n_splits)
        seconds = [sum(one.seconds for one in splits) for splits in last]
        return conclude(self.space, self.candidates, last, seconds)

    def tryouts(
        self, places: Sequence[int], path: tuple[Any, ...], rows: float = 1.0, **changed: Any
    ) -> list[Tryout]:
        """Give the tryouts of some candidates, one per split."""
        return [
            Tryout(self.space.algorithm, {**self.candidates[k], **changed}, path, rows, split)
            for k in places
            for split in range(self.n_splits)
        ]


class GridSearch(CandidateSearch):
    """Try every combination of lists of values.

    Parameters
    ----------
    algorithm : str
        Name in `core.registry`.
    space : mapping of str to list
        The values of each parameter that is searched.
    parameters : mapping of str to Any, optional
        The same in all candidates.
    n_splits : int, default=1

    Raises
    ------
    InvalidSpace
        See `read_space`; or there are more than 1000 combinations.

    Notes
    -----
    The values of a path parameter, n_rounds or C, share one fit. Of equal values the first in the order
    of the lists is chosen, and of a path the least.
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
        if n_fits > MOST_CANDIDATES:
            raise InvalidParameter(
                f"a grid must have at most {MOST_CANDIDATES} combinations, got {n_fits}"
            )
        super().__init__(read, read.grid(), n_splits)


class RandomSearch(CandidateSearch):
    """Try candidates drawn at random.

    Parameters
    ----------
    algorithm : str
        Name in `core.registry`.
    space : mapping of str to list or mapping
        By parameter a list of values, or a range; see `read_space`.
    parameters : mapping of str to Any, optional
        The same in all candidates.
    n_candidates : int, default=20
    n_splits : int, default=1
    random_state : int, default=0

    Raises
    ------
    InvalidSpace
        See `read_space`.
    InvalidParameter
        n_candidates is not from 1 to 1000.

    Notes
    -----
    Of a path parameter, n_rounds or C, every candidate's fit is judged at all values of its list, or at ten of
    its range: they cost one fit. Of lists alone no combination comes twice.

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


def in_splits(tried: Sequence[Tried], n_splits: int) -> list[Sequence[Tried]]:
    """Part tryouts into those of each candidate, one per split."""
    return [tried[k : k + n_splits] for k in range(0, len(tried), n_splits)]


def check_n_candidates(n_candidates: int) -> None:
    """Refuse a number of candidates that no search has with InvalidParameter."""
    if not 1 <= n_candidates <= MOST_CANDIDATES:
        raise InvalidParameter(
            f"n_candidates must be from 1 to {MOST_CANDIDATES}, got {n_candidates}"
        )


def conclude(
    space: Space,
    candidates: Sequence[Mapping[str, Any]],
    last: Sequence[Sequence[Tried]],
    seconds: Sequence[float],
    left: Mapping[int, str] | None = None,
) -> Chosen:
    """Choose the best candidate, and list all.

    Parameters
    ----------
    space : Space
    candidates : sequence of mapping
    last : sequence of sequence of Tried
        Of each candidate the last tryouts, one per split.
    seconds : sequence of float
        Of each candidate, all its tryouts together.
    left : mapping of int to str, optional
        Candidates that left before the end, and why.

    Returns
    -------
    Chosen

    Raises
    ------
    NothingFitted
        All candidates failed.
    """
    left = left or {}
    along = path_parameter(ALGORITHMS[space.algorithm]) or ""
    rows: list[Standing] = []
    open_places: list[int] = []
    for place, (parameters, tried) in enumerate(zip(candidates, last, strict=True)):
        failure = next((one for one in tried if one.failed), None)
        for step, value in enumerate(tried[0].tryout.path or (None,)):
            full = dict(parameters) if value is None else {**parameters, along: value}
            row = Standing(space.algorithm, full, rows=tried[0].tryout.rows, seconds=seconds[place])
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
            f"none of the {len(candidates)} candidates could be fitted and judged; "
            f"the first: {rows[0].reason}"
        )
    best = choose([Candidate({"place": k}, rows[k].value or 0.0) for k in open_places])
    winner = best.parameters["place"]
    rows[winner] = replace(
        rows[winner], state="chosen", reason="the greatest value, the simplest of its equals"
    )
    return Chosen((Member(space.algorithm, rows[winner].parameters),), tuple(rows))
