"""`Auto`: the families in a race against the clock, and the mean rank of those that none beats."""

import math
from collections.abc import Callable, Sequence

from core.errors import InvalidParameter
from core.ranker import Floats

from .finish import MORE_ROUNDS, Ending, finish, stay
from .planning import Chosen, HeldOut, Tried, Tryout
from .portfolio import Contender, mainstay, others, seeded
from .race import FULL, PROBE, Race, advance, place_on_path, rank

FEW_ROWS, FEW_RARE = 2_000, 200
FOLDS, FOLDS_IN_TIME, TIME_FOR_FOLDS = 3, 5, 15.0
"""Folds where rows are few, and more of them from a budget of so many seconds on."""
FRACTION = 0.25
"""Of the rows, held out where one split is enough."""

FIRST_ROWS, FIRST_RARE = 700, 50
RUNG_FACTOR = 4.0
SCREEN_SHARE = 0.15
"""Of the budget, by when the last of the screening begins."""
LONGEST_SHARE = 0.1
"""Of the budget, what a fit of the screening may take in any case."""

PROBE_ROUNDS = 12
LEAST_ROUNDS, MOST_ROUNDS = 40, 400
PATH_SHARES = (0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
RATES = (0.04, 0.15)
LEARNING = 20.0
"""Rounds of the first of the mainstay times its learning rate, where neither meets its bounds."""
MORE_THAN_BEST = 1.6
LEAST_OF_WANTED = 0.6
"""The others want so many times the learning, rounds times rate, that was best for the first; and so much of that at
the highest rate is the least."""
FIRST, FIRST_SHARE = 2, 0.5
"""The first two of the mainstay may each take half of the time that is left."""
PRIMARY = 4
"""So many of the mainstay come before the other families."""
SECOND_CHANCES = 3
"""So many that the last rung left behind are tried on all rows after all, if there is time."""
OF_HANDS = 0.8
"""What fits that run at once get done, as a share of what they would if each were alone."""
SPENT = 0.95
"""Of the budget, what is planned for: the rest is for what cannot be foreseen."""


class Auto:
    """Find a ranker for a table within a time.

    Parameters
    ----------
    n_rows : int
        Training rows.
    n_rare : int
        Those of the rarer class.
    budget_seconds : float, default=60
        By the clock, from the start of the search to the end of the fits on all training rows.
    window : (float, float), default=(0, 1)
        Least and greatest false positive rate: where partial areas are compared, and what the algorithms
        that have a window are told.
    judge : callable (held, scores) -> float, optional
        The objective, by which the mean rank is reported; None: the area over the window.
    at_once : int, default=1
        Tryouts that run at once, and members in the last fit: so many are asked for together.
    random_state : int, default=0

    Attributes
    ----------
    n_splits : int
        1, which holds a quarter out, or 3 folds where rows or positives are few.

    Raises
    ------
    InvalidParameter
        The budget is not above 0, n_rare is not from 1 to n_rows, or at_once is below 1.

    Notes
    -----
    *Screening* is successive halving on rows: families other than boosted trees are fitted on a few hundred rows, the
    best of them, two of a kind at most, on four times as many, and so on; it may take a fifth of the budget. *The
    mainstay*, boosted trees by three losses and in two sizes, goes straight to all rows: after a dozen rounds of each
    size it is known what a round costs, and the number of rounds and the learning rate follow from the time.
    Then come the families that were left. A tryout is started only if it and the last fits, of all that may be
    chosen, are foreseen to end in time, from what tryouts before it have taken.

    In the end whatever is not behind the best by more than two standard errors of the paired difference, in AUC
    and in the window, is a *member*; the mean rank of the members is the result, unless the best alone is better
    by more than one standard error. All are fitted anew on all rows, with a tenth more rounds than
    were best on fewer rows.

    What is decided hangs on times only through which tryouts there are and how many rounds they have. Given the
    tryouts that took place, everything follows bit for bit from rows and seed.

    References
    ----------
    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
    AISTATS 2016. R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from
    libraries of models", ICML 2004.
    """

    def __init__(
        self,
        *,
        n_rows: int,
        n_rare: int,
        budget_seconds: float = 60.0,
        window: tuple[float, float] = (0.0, 1.0),
        judge: Callable[[HeldOut, Floats], float] | None = None,
        at_once: int = 1,
        random_state: int = 0,
    ) -> None:
        if not 0.0 < budget_seconds < math.inf:
            raise InvalidParameter(f"budget_seconds must be greater than 0, got {budget_seconds}")
        if not 1 <= n_rare <= n_rows:
            raise InvalidParameter(f"n_rare must be from 1 to n_rows ({n_rows}), got {n_rare}")
        if at_once < 1:
            raise InvalidParameter(f"at_once must be at least 1, got {at_once}")
        self._budget = float(budget_seconds)
        folds = FOLDS if self._budget < TIME_FOR_FOLDS else FOLDS_IN_TIME
        self.n_splits = folds if n_rows < FEW_ROWS or n_rare < FEW_RARE else 1
        self._window = window
        self._judge = judge
        self._at_once = at_once
        self._hands = 1.0 if at_once == 1 else OF_HANDS * at_once
        self._seed = random_state
        learnt = 1.0 - (FRACTION if self.n_splits == 1 else 1.0 / self.n_splits)
        self._to_all = 1.0 / learnt
        self._others = others(window)
        self._mainstay = mainstay(round(n_rows * learnt))
        self.rungs = plan_rungs(n_rows * learnt, n_rare * learnt)

    def next(
        self, tried: Sequence[Tried], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Tryout] | Chosen:
        """See `Planner.next`."""
        stages = [f"rung {number + 1}" for number in range(len(self.rungs))]
        race = Race(tried, stages)
        alive, behind = self._others, list[Contender]()
        for number, (stage, share) in enumerate(zip(stages, self.rungs, strict=True)):
            todo = [c for c in alive if not race.has(stage, c)]
            until = SCREEN_SHARE * self._budget * (number + 1) / len(self.rungs)
            if todo and elapsed < until and not race.is_past(stage):
                limit = max(until - elapsed, LONGEST_SHARE * self._budget)
                return [self._tryout(c, stage, share, limit) for c in todo[: self._at_once]]
            alive, behind = advance([c for c in alive if race.has(stage, c)], race, stage)
        probes = self._probes(race, elapsed)
        if probes:
            return probes
        primary, secondary = self._order(race)
        queue = [*primary, *alive, *secondary, *behind[:SECOND_CHANCES]]
        step = self._full(race, held, queue, elapsed)
        if step:
            return step
        waiting = [c for c in alive if not race.has(FULL, c)]
        seconds = {c.name: self._final_seconds(c, race) for c in [*self._mainstay, *self._others]}
        left = self._hands * (SPENT * self._budget - elapsed)
        return finish(
            race,
            [*self._mainstay, *self._others],
            held,
            Ending(self._window, self._judge, left, seconds, frozenset(c.name for c in waiting)),
        )

    def _probes(self, race: Race, elapsed: float) -> list[Tryout]:
        """Give the probes of the mainstay, one of each size, that are still to be made."""
        if race.seen(FULL) or elapsed > SPENT * self._budget:
            return []
        samples = {c.leaves: c for c in reversed(self._mainstay)}
        todo = [c for c in samples.values() if not race.has(PROBE, c)]
        limit = 0.5 * (self._budget - elapsed)
        return [
            self._mainstay_tryout(c, PROBE, PROBE_ROUNDS, RATES[1], limit)
            for c in todo[: self._at_once]
        ]

    def _full(
        self, race: Race, held: Sequence[HeldOut], queue: Sequence[Contender], elapsed: float
    ) -> list[Tryout]:
        """Give the tryouts on all rows of the next contenders that fit in, if there are any."""
        in_play = stay(race, FULL, queue, held, self._window)
        reserved = sum(self._final_seconds(c, race) for c in in_play)
        time = SPENT * self._budget - elapsed
        left = self._hands * time - reserved
        limit = (self._budget - elapsed) / math.ceil(self.n_splits / self._at_once)
        found: list[Tryout] = []
        for contender in queue:
            if race.has(FULL, contender) or len(found) >= self._at_once:
                continue
            asked, seconds = self._ask(contender, race, min(left, time), limit)
            if asked:
                found += asked
                left -= seconds
        return found

    def _ask(
        self, contender: Contender, race: Race, left: float, limit: float
    ) -> tuple[list[Tryout], float]:
        """Give the tryouts of a contender and the seconds that they and its last fit take; none if too many."""
        splits = range(self.n_splits)
        if contender.leaves:
            settled = self._settle(contender, race, left)
            if settled is None:
                return [], 0.0
            n_rounds, rate, seconds = settled
            return [
                self._mainstay_tryout(contender, FULL, n_rounds, rate, limit, k) for k in splits
            ], seconds
        one = self._foresee(contender, race)
        seconds = math.inf if one is None else one * (self.n_splits + self._to_all)
        if seconds > left:
            return [], 0.0
        return [self._tryout(contender, FULL, 1.0, limit, k) for k in splits], seconds

    def _order(self, race: Race) -> tuple[list[Contender], list[Contender]]:
        """Part the mainstay into those before and after the other families: both sizes, then the better one."""
        first, rest = self._mainstay[:FIRST], self._mainstay[FIRST:]
        finished = rank(race.finished(FULL, first), race, FULL)
        if len(finished) == FIRST:
            rest = sorted(rest, key=lambda c: c.leaves != finished[0].leaves)
        ordered = [*first, *rest]
        return ordered[:PRIMARY], ordered[PRIMARY:]

    def _settle(
        self, contender: Contender, race: Race, left: float
    ) -> tuple[int, float, float] | None:
        """Give the rounds, the learning rate and the seconds that one can have; None: too few rounds."""
        price = race.price(contender.leaves)
        if price is None:
            return None
        fits, more_fits = self.n_splits + self._to_all, self.n_splits + MORE_ROUNDS * self._to_all
        share = FIRST_SHARE if contender in self._mainstay[:FIRST] else 1.0
        in_rounds = share * left - price.setup * fits
        affordable = int(min(in_rounds / (price.a_round * more_fits), 10.0 * MOST_ROUNDS))
        alike = [c for c in self._mainstay if c.leaves == contender.leaves]
        first = race.first(alike) or race.first(self._mainstay)
        learning, slowest = LEARNING, MOST_ROUNDS
        if first:
            best = first[0].tryout.path[place_on_path(first)]
            learning = MORE_THAN_BEST * best * first[0].tryout.parameters["learning_rate"]
            slowest = max(math.ceil(learning / RATES[0]), LEAST_ROUNDS)
        n_rounds = min(affordable, slowest, MOST_ROUNDS)
        least = LEAST_OF_WANTED * learning / RATES[1] if first else 0.0
        if n_rounds < max(least, LEAST_ROUNDS):
            return None
        rate = min(max(learning / n_rounds, RATES[0]), RATES[1])
        seconds = price.setup * fits + price.a_round * more_fits * n_rounds
        return n_rounds, rate, seconds

    def _foresee(self, contender: Contender, race: Race) -> float | None:
        """Foresee the seconds of one fit on the inner training rows; None where nothing is known."""
        last = race.last(contender)
        if not last or any(one.failed for one in last):
            return None
        return max(one.seconds / one.tryout.rows for one in last)

    def _final_seconds(self, contender: Contender, race: Race) -> float:
        """Foresee the seconds of the fit on all training rows."""
        seconds = self._foresee(contender, race)
        if seconds is None:
            return 0.0
        if contender.leaves:
            last = race.last(contender)
            setup, path = max(one.setup for one in last), last[0].tryout.path
            best = MORE_ROUNDS * path[place_on_path(last)] / path[-1]
            seconds = setup + (seconds - setup) * best
        return self._to_all * seconds

    def _tryout(
        self, contender: Contender, stage: str, share: float, limit: float, split: int = 0
    ) -> Tryout:
        parameters = seeded(contender, self._seed)
        label = f"{stage}/{contender.name}"
        return Tryout(
            contender.algorithm, parameters, contender.path, share, split, True, limit, label
        )

    def _mainstay_tryout(
        self,
        contender: Contender,
        stage: str,
        n_rounds: int,
        rate: float,
        limit: float,
        split: int = 0,
    ) -> Tryout:
        parameters = {**seeded(contender, self._seed), "learning_rate": rate}
        path = tuple(sorted({max(round(share * n_rounds), 1) for share in PATH_SHARES}))
        label = f"{stage}/{contender.name}"
        return Tryout(contender.algorithm, parameters, path, 1.0, split, True, limit, label)


def plan_rungs(n_rows: float, n_rare: float) -> list[float]:
    """Plan the shares of rows that the screening has.

    Parameters
    ----------
    n_rows, n_rare : float
        Inner training rows, and those of the rarer class.

    Returns
    -------
    list of float
        From a few hundred rows with 50 of the rarer class on, times 4, up to less than half; 1 alone where
        there are no more.
    """
    share = max(FIRST_ROWS / n_rows, FIRST_RARE / n_rare)
    rungs = []
    while share < 0.5:
        rungs.append(share)
        share *= RUNG_FACTOR
    return rungs or [1.0]
