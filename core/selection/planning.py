"""Plans: which fits a search asks for, round by round, and what it chooses in the end.

A `Planner` decides and never fits. It is asked for its next tryouts with all that were tried before, so that
whoever runs them may do so in one process or in many, and ask again after a crash.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from core.ensemble import fit_together
from core.errors import CoreError
from core.ranker import Callback, Floats, ignore

GIVEN_UP = "given up"
"""How the reason begins of a tryout that had nothing to keep when its limit came."""

CHOOSE_NOW = 1e12
"""More seconds than any budget has."""


class NothingFitted(CoreError):
    """Not one candidate of a search could be fitted and judged."""

    code = "no_candidate"


@dataclass(frozen=True)
class Tryout:
    """One fit on one inner split, and what is to be judged of it.

    Attributes
    ----------
    algorithm : str
        Name in `core.registry`.
    parameters : mapping of str to Any
        All that differ from the defaults, less the one along a path.
    path : tuple
        Values of the algorithm's path parameter, ascending, that this one fit judges; empty without a path.
    rows : float in (0, 1]
        Share of the inner training rows that it learns from; see `draw_rows`.
    split : int
        Number of the inner split.
    keep_scores : bool
        Whether the scores of the held-out rows are wanted.
    limit : float or None
        Seconds after which the fit ends with what it has, or is given up where it has nothing yet.
    label : str
        What the planner knows it by; of no meaning to others, who hand it back as it is.
    patience : int or None
        Boosted trees are judged as they grow, and end after so many rounds without a gain. None: they take all rounds.
    """

    algorithm: str
    parameters: Mapping[str, Any]
    path: tuple[Any, ...] = ()
    rows: float = 1.0
    split: int = 0
    keep_scores: bool = False
    limit: float | None = None
    label: str = ""
    patience: int | None = None


@dataclass(frozen=True)
class Tried:
    """What a tryout gave.

    Attributes
    ----------
    tryout : Tryout
    values : tuple of float
        By the objective on the held-out rows, higher is better: one per value of the path, or one. Empty if it failed.
    aucs : tuple of float
        The areas under the whole curves, likewise.
    seconds : float
        From the start of the fit to the end of the judging.
    scores : tuple of ndarray of shape (n_held_out,), float64
        Likewise, if they were to be kept.
    failed : str or None
        Why there is nothing to judge: such a candidate is out of the race, the race goes on.
    setup : float
        Of the seconds those before the fit's first step and after its last: what does not grow with the steps.
    steps : int
        Rounds with the best value, where they were judged as they were added; 0 elsewhere.
    fitted : int
        Steps that the fit has taken; 0: not known.
    skipped : bool
        Not made, or broken off, since the search was to end early; `failed` says so in words.
    """

    tryout: Tryout
    values: tuple[float, ...]
    aucs: tuple[float, ...]
    seconds: float
    scores: tuple[Floats, ...] = ()
    failed: str | None = None
    setup: float = 0.0
    steps: int = 0
    fitted: int = 0
    skipped: bool = False


@dataclass(frozen=True)
class HeldOut:
    """The held-out rows of an inner split, in the order in which they are scored.

    Attributes
    ----------
    y : ndarray of shape (n_held_out,)
        1 for positive, 0 for negative.
    weight : ndarray of shape (n_held_out,), float64, or None
    group : ndarray of shape (n_held_out,), or None
        Rows with the same value belong together.
    """

    y: npt.NDArray[Any]
    weight: Floats | None = None
    group: npt.NDArray[Any] | None = None


@dataclass(frozen=True)
class Member:
    """A ranker that was chosen, to be fitted on all training rows.

    Attributes
    ----------
    algorithm : str
    parameters : mapping of str to Any
    weight : float
        What it counts for in a `RankAverage`.
    """

    algorithm: str
    parameters: Mapping[str, Any]
    weight: float = 1.0


@dataclass(frozen=True)
class Standing:
    """A candidate's row on the leaderboard.

    Attributes
    ----------
    algorithm : str
    parameters : mapping of str to Any
    value, auc : float or None
        Mean over the splits, of the last tryout; None where it failed or was not tried.
    low, high : float or None
        Confidence interval of the value, where held-out scores were kept.
    p_value : float or None
        Two-sided, of no difference from the best single candidate on the same held-out rows.
    rows : float
        Share of the inner training rows that it learnt from last; 0 where it was not tried.
    seconds : float
        All its tryouts together.
    state : str
        "chosen", "left" (others were better), "failed", or "untried".
    reason : str
        Why it is where it is, in words.
    """

    algorithm: str
    parameters: Mapping[str, Any]
    value: float | None = None
    auc: float | None = None
    rows: float = 0.0
    seconds: float = 0.0
    state: str = "left"
    reason: str = ""
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Chosen:
    """How a search ended.

    Attributes
    ----------
    members : tuple of Member
        One ranker, or those of a `RankAverage`; to be fitted on all training rows.
    candidates : tuple of Standing
        The leaderboard; a search along one algorithm lists its candidates in the order in which they were given.
    notes : tuple of str
        What else a reader should know.
    rows : float in (0, 1]
        Share of the training rows that the members are fitted on; see `draw_rows`.
    """

    members: tuple[Member, ...]
    candidates: tuple[Standing, ...]
    notes: tuple[str, ...] = field(default=())
    rows: float = 1.0


class Planner(Protocol):
    """Decides which fits a search makes.

    Attributes
    ----------
    n_splits : int
        Inner splits that it wants: 1 is a holdout, k are k folds.
    n_repeats : int
        How often the rows are parted anew into these folds. Splits are numbered repeat by repeat.
    fraction : float
        Of the rows, what a holdout keeps back.
    """

    @property
    def n_splits(self) -> int: ...

    @property
    def n_repeats(self) -> int: ...

    @property
    def fraction(self) -> float: ...

    def next(
        self, tried: Sequence[Tried], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Tryout] | Chosen:
        """Ask for more tryouts, at least one, or end the search.

        Parameters
        ----------
        tried : sequence of Tried
            All that were asked for so far, in the order in which they were.
        held : sequence of HeldOut
            One per split.
        elapsed : float
            Seconds since the search began. Nothing else comes from a clock. `CHOOSE_NOW`: the search ends, with one of
            those that were tried; at least one was, and did not fail.

        Returns
        -------
        sequence of Tryout, or Chosen
            The same for the same arguments.

        Raises
        ------
        NothingFitted
            All candidates failed.
        """


def run_plan(
    planner: Planner,
    held: Sequence[HeldOut],
    fit: Callable[[Tryout, Callback], Tried],
    *,
    at_once: int = 1,
    callback: Callback = ignore,
    clock: Callable[[], float] = perf_counter,
) -> tuple[Chosen, list[Tried]]:
    """Carry out a plan in this process.

    Parameters
    ----------
    planner : Planner
    held : sequence of HeldOut
        One per split.
    fit : callable (tryout, callback) -> Tried
        Such as one that calls `try_out`.
    at_once : int, default=1
        Of the tryouts that are asked for together so many run at once, each in a thread.
    callback : callable (step, of, info) -> None, optional
        Told of the steps of each fit. What it raises ends the search.
    clock : callable () -> float
        Seconds.

    Returns
    -------
    chosen : Chosen
    tried : list of Tried
    """
    start = clock()
    tried: list[Tried] = []

    def tell(number: int, step: int, of: int, info: Mapping[str, float]) -> None:
        callback(step, of, info)

    def carry_out(tryout: Tryout) -> Callable[[Callback], Tried]:
        return lambda told: fit(tryout, told)

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # of the fit that is served its owner will hear
        while True:
            step = planner.next(tried, held, clock() - start)
            if isinstance(step, Chosen):
                return step, tried
            tried += fit_together([carry_out(tryout) for tryout in step], tell, at_once)


def draw_rows(strata: npt.NDArray[Any], share: float, seed: int) -> npt.NDArray[np.intp]:
    """Draw a share of the rows of each stratum; a greater share holds all rows of a lesser one.

    Parameters
    ----------
    strata : ndarray of shape (n_rows,)
        What each row counts as, such as its label.
    share : float in (0, 1]
        Of each stratum as much is drawn, rounded up; two rows at least where it has so many.
    seed : int

    Returns
    -------
    ndarray of shape (n_drawn,), intp
        Ascending.

    Notes
    -----
    O(n_rows log n_rows).
    """
    if share >= 1.0:
        return np.arange(len(strata))
    drawn = []
    for place, value in enumerate(np.unique(strata)):
        rows = np.flatnonzero(strata == value)
        order = np.random.Generator(np.random.Philox(key=[seed % 2**64, place])).permutation(rows)
        drawn.append(order[: max(int(np.ceil(share * len(rows))), 2)])
    return np.sort(np.concatenate(drawn))
