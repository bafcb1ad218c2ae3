"""`Auto`: a search within a time budget over boosted trees and other families; it ends in one ranker or an ensemble."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from core.base.monotone import Direction, find_directions
from core.base.parameters import check_seed
from core.base.ranker import Callback, Floats, ignore
from core.base.splits import count_distinct, row_keys
from core.base.target import check_labels
from core.base.warning import warn
from core.ensemble import count_at_once
from core.errors import InvalidData, InvalidParameter
from core.kernels import WorkClock, when_compiling
from core.metrics.functionals.base import Metric, check_scale_free, metric_of
from core.metrics.window import check_window
from core.registry import ALGORITHMS

from .candidates import (
    FAMILIES,
    LAST_FITS,
    LONGER,
    MEASURE,
    PHASES,
    PLAINEST,
    PORTFOLIO,
    SEARCH,
    Candidate,
    Phase,
    TrialHistory,
    best_rounds,
    crossed,
    is_cut,
    keeps_order,
    mutate,
    others,
    portfolio,
    score_microseconds,
    seeded,
)
from .leaderboard import (
    MAX_MEMBER_GAP,
    ROUNDS_FACTOR,
    SLOW_RATE,
    CandidateResult,
    Evaluator,
    SelectionContext,
    evaluate_all,
    finish,
    goes_further,
    total_cost,
)
from .planner import (
    CHOOSE_NOW,
    Chosen,
    LeaderboardRow,
    Member,
    Note,
    NoteKind,
    Searched,
    SearchedRows,
    fit_chosen,
    read_rows,
    run_search,
    split_inner,
)
from .trial import HeldOut, Trial, TrialKey, TrialResult, draw_rows, path_parameter

# How the rows are split
FOLDED_BELOW_ROWS = 5_000
"""With fewer rows there are folds instead of a holdout: one holdout would be too noisy."""
FOLDED_BELOW_RARE = 400
"""With fewer rows of the rarer class there are folds, too, unless the table has more than `MAX_FOLDED_CELLS`."""
MAX_FOLDED_CELLS = 5_000_000
"""Table cells (rows × columns) up to which few rows of the rarer class alone lead to folds."""
FOLDED_CELLS_PER_SECOND = 3_000
"""Table cells per second of the budget up to which there are folds, too: on two cores the portfolio then takes about
half of the budget, and all rows compare the candidates, not a fifth of them. The number of cores does not count,
because a retry on another machine must have the same splits."""
N_FOLDS = 5
"""Folds, if the rows can be split so."""
MIN_RARE = 5
"""With fewer rows of the rarer class nothing is compared: the choice would be chance."""
HOLDOUT_FRACTION = 0.2
"""Fraction of the rows in a holdout, ..."""
MAX_HELD_OUT_ROWS = 50_000
"""... but at most this number: more rows hardly reduce the error of an area."""

# The time of a fit
FIT_FRACTION = 0.1
"""Limit of the fits of one setting on all splits, as a fraction of the budget."""
FAMILY_FRACTION = 0.25
"""Limit of the fits of one of the other families, as a fraction of their phase."""
FIRST_FACTOR = 2.0
"""Limit of the fits of a family on the other folds, at least, as a multiple of the time of the first one."""
LATE_FRACTION = 0.5
"""Limit of the fits of a setting that comes after its turn, as a fraction of the time that is free then."""
LATE_FACTOR = 2.0
"""A candidate that was given up comes again if it can have at least this multiple of the time that it had."""
PROBE_CELLS, PROBE_ROUNDS = 400_000, 10
"""Table cells (rows × columns) and rounds of the fit that measures the time of a round: well below a second."""
MIN_PROBE_ROWS = 2_000
"""Rows of this fit, at least: with fewer, many columns cost more than rows, and the time of a round is overrated."""
MIN_ROUNDS = 6
"""Rounds for which there must be time: trees of fewer say little."""
MIN_EXPLORING_ROUNDS = 25
"""Rounds that fits must have time for: if all rows take too long, candidates are compared on fewer rows, ..."""
MIN_EXPLORING_ROWS = 20_000
"""... but at least on this number."""

# Rounds and learning rate
RATES = (0.1, 0.2, 0.4)
"""Learning rates of trials: the first, with which the portfolio was learnt, unless the time is too short for it."""
RATES_FEW = (0.1, 0.2)
"""The same with few rows of the rarer class: large steps follow the noise of these rows."""
DEFAULT_LEARNING = 15.0
"""Learning (rounds × learning rate) that trees are assumed to need before any were tried."""
LEARNING_FACTOR = 1.4
"""A trial has this multiple of the learning that was best for similar trees, to see whether more is better."""
CUT_FACTOR, CUT_FACTOR_FOLDS = 4.0, 1.5
"""Longest last fit of trees that still gained at their limit, as a multiple of their rounds, without and with folds."""
PATH_FRACTIONS = (0.03, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
"""Fractions of the rounds after which all folds are evaluated together."""
PATIENCE_LEARNING = 4.0
"""Learning without an improvement after which a fit ends, ..."""
MIN_PATIENCE = 20
"""... which is at least this number of rounds."""
MAX_ROUNDS = 5_000
"""Rounds of a trial."""
MAX_LONGER = 3
"""Times that the best may be tried for longer: each has up to four times the rounds of the one before."""

# The search
MAX_CHANGES = 40
"""Random changes that are tried, ..."""
MAX_CHANGES_WITHOUT_GAIN = 12
"""... and this many in a row at most that have not become the best."""

# The last fits
PLANNED_FRACTION = 0.93
"""Fraction of the budget that is planned; the rest is for what cannot be predicted."""
RESERVED_FRACTION, RESERVED_FRACTION_FOLDS = 0.35, 0.2
"""Fraction of the budget that only the last fits may take, without and with folds (where a trial of a setting takes
several times as long as its last fit); more if the best is predicted to need more."""
RESERVED_MEMBERS = 4
"""Members whose last fits time is reserved for."""
SAFETY_FACTOR = 0.9
"""Last fits are planned with this fraction of the time left."""
SPARE_FACTOR = 1.5
"""Last fits have this multiple of the rounds that are predicted to fit in, so that no time is wasted."""
MIN_ROUNDS_FRACTION = 0.35
"""Fraction of the best number of rounds for which all rows must leave time; else the last fits have fewer rows."""


class Auto:
    """Planner of an automatic search: find a good ranker for a table within a time budget.

    `auto_ranker` runs it. Use `Auto` itself to run the trials elsewhere.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    n_rare : int
        Number of training rows of the rarer class.
    n_features : int, default=1
        Number of columns.
    most_categories : int, default=0
        Largest number of categories of a feature; 0 if all are numeric.
    budget_seconds : float, default=60
        Seconds by the clock, from the start of the search to the end of the fits on all training rows.
    window : (float, float), default=(0, 1)
        Window of false positive rates in which candidates are compared. Algorithms that have a window get it, too.
    metric : Metric, optional
        Metric by which candidates are compared instead of the area over the window. Its size must be a share.
    objective : callable (held, scores) -> float, optional
        Metric by which the mean rank is reported. Default: `metric`, or the area over the window.
    at_once : int, default=1
        Number of trials, and of final fits, that run at the same time.
    can_split : callable (n_splits, fraction) -> bool, optional
        Whether the rows can be split so that both sides have both classes. If not, fewer folds or a holdout are tried.
    monotone : mapping of str or int to {"increasing", "decreasing"}, optional
        Monotone constraints that every candidate keeps.
    max_score_microseconds : float, optional
        Greatest predicted time in µs in which the result may score a row in bulk, in one thread. If no candidate is
        predicted to be that fast, the fastest is chosen, and a note says so.
    random_state : int, default=0
        Seed of the candidates and of the randomised fits.

    Attributes
    ----------
    n_splits : int
        1 for a holdout; 5 folds if there are few rows or positives, or fewer; 0 if no rows can be held out.
    fraction : float
        Fraction of the rows that a holdout sets apart.

    Notes
    -----
    If no rows can be held out, all rows are equal, or the rarer class has fewer than 5 rows, logistic regression is
    chosen without trials.

    The budget is spent in `PHASES`; docs/auto.md says what each does. If it is too short for any trial, the first
    setting of the portfolio is fitted on all rows with as many rounds as there is time for.

    Times influence only which trials are made, their number of rounds and their learning rate. Given the trials, the
    result follows bit for bit from rows and seed. A note names the phases that the clock ended. Without such a note,
    the same seed and the same `at_once` give the same model.

    References
    ----------
    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from libraries of models", ICML 2004.

    Examples
    --------
    >>> from core.selection import Auto
    >>> planner = Auto(n_rows=2000, n_rare=300, n_features=10, budget_seconds=30)
    >>> planner.n_splits  # few rows: folds instead of a holdout
    5
    """

    def __init__(
        self,
        *,
        n_rows: int,
        n_rare: int,
        n_features: int = 1,
        most_categories: int = 0,
        budget_seconds: float = 60.0,
        window: tuple[float, float] = (0.0, 1.0),
        metric: Metric | None = None,
        objective: Callable[[HeldOut, Floats], float] | None = None,
        at_once: int = 1,
        can_split: Callable[[int, float], bool] | None = None,
        monotone: Mapping[str | int, Direction] | None = None,
        max_score_microseconds: float | None = None,
        random_state: int = 0,
    ) -> None:
        _check_positive("budget_seconds", budget_seconds)
        if max_score_microseconds is not None:
            _check_positive("max_score_microseconds", max_score_microseconds)
        if not 1 <= n_rare <= n_rows:
            raise InvalidParameter(f"n_rare must be from 1 to n_rows ({n_rows}), got {n_rare}")
        if at_once < 1:
            raise InvalidParameter(f"at_once must be at least 1, got {at_once}")
        check_seed(random_state)
        if metric is not None:
            check_scale_free(metric)
        self._budget = float(budget_seconds)
        cells = n_rows * n_features
        self._few = n_rows < FOLDED_BELOW_ROWS or (
            n_rare < FOLDED_BELOW_RARE and cells <= MAX_FOLDED_CELLS
        )
        has_time = cells <= FOLDED_CELLS_PER_SECOND * budget_seconds
        self.n_splits = N_FOLDS if self._few or has_time else 1
        self.fraction = min(HOLDOUT_FRACTION, MAX_HELD_OUT_ROWS / n_rows)
        self._n_rare = n_rare
        if n_rare < MIN_RARE:
            self.n_splits = 0
        elif can_split is not None:
            fewer = (n for n in (N_FOLDS, 3, 2, 1) if n <= self.n_splits)
            self.n_splits = next((n for n in fewer if can_split(n, self.fraction)), 0)
        self._splits = range(self.n_splits)
        self._evaluator = Evaluator(window, metric)
        self._objective = objective
        self._at_once = at_once
        self._seed = random_state
        learnt = 1.0 - (self.fraction if self.n_splits <= 1 else 1.0 / self.n_splits)
        self._to_all = 1.0 / learnt
        self._n_rows = n_rows * learnt
        self._n_features = n_features
        self._most_categories = most_categories
        self._rates = RATES if n_rare >= FOLDED_BELOW_RARE else RATES_FEW
        self._fit_seconds = FIT_FRACTION * self._budget
        self._family_seconds = FAMILY_FRACTION * FAMILIES.share * self._budget
        self._max_cost = math.inf if max_score_microseconds is None else max_score_microseconds
        families = others(window, n_rows)
        self._constraints: dict[str, Any] = {"monotone": dict(monotone)} if monotone else {}
        left_out = [c.name for c in families if monotone and not keeps_order(c)]
        families = [c for c in families if c.name not in left_out]
        self._note = Note(
            NoteKind.LEFT_OUT,
            "these algorithms were not tried, because they do not support monotone constraints: "
            + ", ".join(left_out),
        )
        self._portfolio = portfolio(families, n_rows * learnt, most_categories, few=self._few)
        self._default = next(c for c in self._portfolio if c.is_boosted)
        self._families = [c for c in families if c not in self._portfolio]

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """Return the next trials or the choice; see `Planner.next`.

        If `elapsed` exceeds the budget, the search ends with what there is time for. With `CHOOSE_NOW` it ends with the
        best candidate tried.

        Parameters
        ----------
        tried, held, elapsed
            As for `Planner.next`.

        Returns
        -------
        sequence of Trial, or Chosen
            The next trials, or the end of the search.
        """
        found = self._next(tried, held, elapsed)
        if not isinstance(found, Chosen):
            return found
        notes = (*found.notes, self._note) if self._constraints else found.notes
        cost = total_cost(found.members, self._cost)
        if cost > self._max_cost:
            text = (
                f"no candidate is expected to score a row within {self._max_cost:g} µs. The fastest one was chosen; it "
                f"takes about {cost:.2g} µs"
            )
            notes += (Note(NoteKind.NO_BOUND, text),)
        return replace(found, notes=notes, score_microseconds=cost)

    def _next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        if not self._splits:
            return self._plain()
        history = TrialHistory(tried, len(self._splits))
        left = PLANNED_FRACTION * self._budget - elapsed
        if not history.measured and not history.candidates and left > 0.0:
            return [self._measure(left)]
        trees, reserved = self._rank(history, held)
        free = left - reserved
        settings = self._settings(trees)
        return (
            self._try_in_turn(PORTFOLIO, settings, history, self._fit_seconds, free)
            or self._try_in_turn(FAMILIES, self._families, history, self._family_seconds, free)
            or self._try_longer(history, trees, left)
            or self._try_late(PORTFOLIO, settings, history, LATE_FRACTION * free)
            or self._try_changes(history, trees, free)
            or self._try_late(FAMILIES, self._families, history, free)
            or self._end(history, held, trees, settings, left, now=elapsed >= CHOOSE_NOW)
        )

    def _rank(
        self, history: TrialHistory, held: Sequence[HeldOut]
    ) -> tuple[list[CandidateResult], float]:
        """Return the results of boosted trees, best first, and the seconds to reserve for the last fits."""
        folded = len(self._splits) > 1
        reserved = (RESERVED_FRACTION_FOLDS if folded else RESERVED_FRACTION) * self._budget
        if not history.finished():
            return [], reserved
        results, evaluation = evaluate_all(history, held, self._evaluator)
        order = np.argsort(-evaluation.relative_area(), kind="stable").tolist()
        as_good = [k for k in order if evaluation.gap_in_se(k, order[0]) <= MAX_MEMBER_GAP]
        seconds = [self._final_seconds(results[k]) for k in as_good[:RESERVED_MEMBERS]]
        needed = max(seconds[0], sum(seconds) / self._at_once)
        if results[order[0]].may_improve and not folded:
            needed = 2.0 * max(seconds[: self._at_once])  # it will have more rounds, or more rows
        trees = [results[k] for k in order if results[k].candidate.is_boosted]
        return trees, max(reserved, min(needed, 0.5 * self._budget))

    def _settings(self, trees: Sequence[CandidateResult]) -> Sequence[Candidate]:
        """Return the parameter settings to try; with crosses of features if they helped the first trees."""
        plain, second, *rest = self._portfolio
        names = [result.candidate.name for result in trees]
        if "crosses" not in second.parameters or not {plain.name, second.name} <= set(names):
            return self._portfolio
        is_better = names.index(second.name) < names.index(plain.name)
        return [plain, second, *map(crossed, rest)] if is_better else self._portfolio

    def _room(self, phase: Phase, history: TrialHistory, free: float) -> float:
        return min(phase.share * self._budget - history.spent(phase) / self._at_once, free)

    def _measure(self, left: float) -> Trial:
        """Return a trial of a few rounds on a sample of rows, to measure the time per round."""
        rows = max(PROBE_CELLS / self._n_features, MIN_PROBE_ROWS)
        run: dict[str, Any] = {"n_rounds": PROBE_ROUNDS, "learning_rate": RATES[0]}
        fraction, limit = min(rows / self._n_rows, 1.0), MEASURE.share * left
        key = TrialKey(MEASURE.name, self._default.name)
        return self._trial(self._default, key, fraction, limit, 0, **run)

    def _try_in_turn(
        self,
        phase: Phase,
        candidates: Sequence[Candidate],
        history: TrialHistory,
        limit: float,
        free: float,
    ) -> list[Trial] | None:
        """Return trials of the next untried candidates of a phase; None if none is left or time is short."""
        room = self._room(phase, history, free)
        is_first = len(self._splits) > 1 and not history.finished()
        limit = room if is_first else min(limit, room)  # without a first one nothing is compared
        todo = (
            c for c in candidates if history.n_attempts(c.name) <= 1 and self._is_open(history, c)
        )
        in_time = (c for c in todo if self._is_worth(history, c, limit))
        return self._ask(phase, history, list(islice(in_time, self._at_once)), limit) or None

    def _try_late(
        self, phase: Phase, candidates: Sequence[Candidate], history: TrialHistory, limit: float
    ) -> list[Trial] | None:
        """Return trials of candidates skipped or stopped early for lack of time; None if time is still short."""
        waves = len(self._splits)  # of as many candidates as fits that run at once

        def may_end(candidate: Candidate) -> bool:
            """Return True for a candidate stopped by its time limit that could now get much more (unless trees kept
            their rounds).
            """
            return any(
                one.stopped
                and (one.failed or not candidate.is_boosted)
                and limit / waves >= LATE_FACTOR * (one.trial.limit or 0.0)
                for one in history.newest(candidate.name)
            )

        late = (
            c
            for c in candidates
            if may_end(c)
            or (self._is_open(history, c) and self._is_worth(history, c, limit, is_late=True))
        )
        chosen = list(islice(late, self._at_once))
        return self._ask(phase, history, chosen, limit, is_late=True) or None

    def _is_open(self, history: TrialHistory, candidate: Candidate) -> bool:
        tried = history.newest(candidate.name)
        return len(tried) < len(self._splits) and not any(one.failed for one in tried)

    def _is_worth(
        self, history: TrialHistory, candidate: Candidate, limit: float, *, is_late: bool = False
    ) -> bool:
        if limit <= 0.0:
            return False
        if candidate.is_boosted:
            rounds = self._affordable(history, candidate.leaves, limit, self._at_once)
            needed = history.learning(candidate.leaves, 1.0, DEFAULT_LEARNING) / self._rates[-1]
            # With folds a later turn may have more time: few rounds say less there than none.
            hurries = not history.finished() or (len(self._splits) == 1 and not is_late)
            enough = hurries and limit > 0.5 * self._fit_seconds
            return rounds >= (MIN_ROUNDS if enough else max(needed, MIN_ROUNDS))
        waves = len(self._splits) / self._at_once
        if tried := history.newest(candidate.name):  # on the first split
            return tried[0].seconds * waves < 2.0 * limit or not history.finished()
        cost = history.fit_cost(self._default.leaves)
        return cost is None or 2.0 * cost.setup * waves < limit

    def _untried(self, history: TrialHistory, left: float) -> Chosen:
        candidate = self._default
        cost = history.fit_cost(candidate.leaves)
        n_rounds = round(DEFAULT_LEARNING / RATES[0])
        if cost is not None:
            in_time = SAFETY_FACTOR * (left / self._to_all - cost.setup) / cost.per_round
            n_rounds = round(min(max(in_time, MIN_ROUNDS), DEFAULT_LEARNING / SLOW_RATE))
        parameters = self._parameters(candidate)
        least, more = (
            score_microseconds(candidate.algorithm, {**parameters, "n_rounds": n}, self._n_features)
            for n in (0, 1)
        )
        n_rounds = int(max(min(n_rounds, (self._max_cost - least) / (more - least)), MIN_ROUNDS))
        parameters |= {
            "n_rounds": n_rounds,
            "learning_rate": min(DEFAULT_LEARNING / n_rounds, RATES[-1]),
        }
        reason = "no time to compare candidates: fitted on all rows with as many rounds as the budget allows"
        note = (
            f"the budget of {self._budget:g} s was too short to compare candidates, so boosted trees were fitted "
            "without a comparison. Set a longer budget"
        )
        return _uncompared(candidate.algorithm, parameters, reason, note)

    def _plain(self) -> Chosen:
        if self._n_rare < MIN_RARE:
            rows = "1 row" if self._n_rare == 1 else f"{self._n_rare} rows"
            why = f"the rarer class has only {rows}, fewer than {MIN_RARE}"
        else:
            why = (
                "all rows are equal, or the rows cannot be split so that both sides have both classes and no group is "
                "divided"
            )
        note = (
            f"{why}. Candidates were therefore not compared, and {PLAINEST} was fitted as the simplest algorithm. Do "
            "not rely on its scores until you have more rows"
        )
        return _uncompared(
            PLAINEST, self._constraints, "the simplest algorithm, fitted without a comparison", note
        )

    def _try_longer(
        self, history: TrialHistory, trees: Sequence[CandidateResult], left: float
    ) -> list[Trial] | None:
        """Return trials with more rounds of the best boosted trees, if they were still improving; None without time."""
        if not trees or not self._gains_on(history, trees[0]):
            return None
        best = [each for each in trees[: self._at_once] if self._gains_on(history, each)]
        # the last fit will be longer by the same factor
        limit = self._room(LONGER, history, LONGER.share * left)
        limit = min(limit, left / (1.0 + ROUNDS_FACTOR * self._to_all))
        if limit < 2.0 * max(self._seconds(result) for result in best):
            return None
        return self._ask(LONGER, history, [each.candidate for each in best], limit)

    def _try_changes(
        self, history: TrialHistory, trees: Sequence[CandidateResult], free: float
    ) -> list[Trial] | None:
        """Return trials of random changes to the best trees' parameters; None if enough were tried or time is short."""
        if not trees or self._gains_on(history, trees[0]) or self._has_searched(history, trees[0]):
            return None
        seconds = self._seconds(trees[0])
        limit = max(self._fit_seconds, 1.5 * seconds)
        limit = min(limit, self._room(SEARCH, history, free))
        if limit < seconds * self._at_once:
            return None
        return self._ask(SEARCH, history, self._changes(trees, history), limit) or None

    def _gains_on(self, history: TrialHistory, trees: CandidateResult) -> bool:
        may_grow = max(one.fitted for one in trees.tried) < MAX_ROUNDS
        is_new = history.n_attempts(trees.candidate.name) <= MAX_LONGER
        return may_grow and is_new and is_cut(trees.tried)

    def _has_searched(self, history: TrialHistory, best: CandidateResult) -> bool:
        """Always with few rows: more choices would follow the noise of few rows of the rarer class (docs/auto.md)."""
        if self._few:
            return True
        without_gain = history.n_changes - best.candidate.change
        return history.n_changes >= MAX_CHANGES or without_gain >= MAX_CHANGES_WITHOUT_GAIN

    def _changes(self, trees: Sequence[CandidateResult], history: TrialHistory) -> list[Candidate]:
        number = history.n_changes
        known = {candidate.key for candidate in history.candidates.values()}
        variants: list[Candidate] = []
        for k in range(50):
            draw = np.random.Generator(np.random.Philox(key=[self._seed % 2**64, 64 * number + k]))
            parent = trees[min(int(draw.geometric(0.5)), 3, len(trees)) - 1].candidate
            variant = mutate(parent, draw, number + len(variants) + 1, self._most_categories)
            if variant.key not in known:
                known.add(variant.key)
                variants.append(variant)
            if len(variants) == self._at_once:
                break
        return variants

    def _ask(
        self,
        phase: Phase,
        history: TrialHistory,
        candidates: Sequence[Candidate],
        limit: float,
        *,
        is_late: bool = False,
    ) -> list[Trial]:
        """Return trials of the candidates on all rows and splits, planned to end within `limit` seconds in total."""
        trials = []
        fraction = self._fraction(history)
        waves = math.ceil(len(candidates) * len(self._splits) / self._at_once)
        for candidate in candidates:
            run: dict[str, Any] = {}
            patience, along, splits, longest = None, candidate, self._splits, limit / waves
            attempt, hurried = history.n_attempts(candidate.name) + 1, fraction < 1.0
            if not candidate.is_boosted:  # what it costs is seen on the first split
                splits = self._splits[:1]
                if self._is_open(history, candidate) and attempt > 1:
                    splits, attempt = self._splits[1:], attempt - 1
                    first = history.newest(candidate.name)[0]
                    longest = max(limit / waves, FIRST_FACTOR * first.seconds)
                # one that was tried in its turn is then what it would have been with time enough
                hurried |= is_late and attempt == 1
            else:
                hurried |= is_late
                # a longer trial or a random change may need more time than there is: its limit ends it
                leaves = candidate.leaves
                rounds = max(self._affordable(history, leaves, limit, len(candidates)), 1)
                needed = LEARNING_FACTOR * history.learning(leaves, CUT_FACTOR, DEFAULT_LEARNING)
                rate = next((r for r in self._rates if r >= needed / rounds), self._rates[-1])
                if tried := history.of(candidate.name):  # more of the same
                    rate = tried[0].trial.parameters["learning_rate"]
                run = {"learning_rate": rate}
                hurried |= rate > RATES[0]
                if len(self._splits) == 1:
                    patience = max(round(PATIENCE_LEARNING / rate), MIN_PATIENCE)
                    run["n_rounds"] = MAX_ROUNDS
                else:
                    # all folds are evaluated after the same rounds: one fold alone is too noisy to stop by
                    wanted = min(math.ceil(needed / rate), MAX_ROUNDS)
                    last = min(rounds, wanted)
                    hurried |= last < wanted
                    path = sorted({max(round(part * last), 1) for part in PATH_FRACTIONS})
                    along = replace(candidate, path=tuple(path))
            key = TrialKey(phase.name, candidate.name, candidate.change, attempt)
            trials += [
                replace(
                    self._trial(along, key, fraction, longest, split, **run),
                    hurried=hurried,
                    patience=patience,
                )
                for split in splits
            ]
        return trials

    def _affordable(
        self, history: TrialHistory, leaves: int, limit: float, n_candidates: int
    ) -> int:
        """Return the number of boosting rounds per fit such that all candidates and splits fit into `limit` seconds."""
        if limit <= 0.0:
            return 0
        cost = history.fit_cost(leaves)
        if cost is None:  # the probe failed, by its time limit or for another reason
            given_up = any(one.failed and one.stopped for one in history.measured)
            return 0 if given_up else round(DEFAULT_LEARNING / RATES[0])
        waves = math.ceil(n_candidates * len(self._splits) / self._at_once)
        seconds = limit / waves - cost.setup
        return max(int(seconds / (cost.per_round * self._fraction(history))), 0)

    def _fraction(self, history: TrialHistory) -> float:
        """Return the fraction of the rows used to compare candidates: 1, unless time is too short."""
        if (fraction := history.fraction) is not None:
            return fraction
        cost = history.fit_cost(self._default.leaves)
        if cost is None or len(self._splits) > 1:
            return 1.0
        rounds = self._fit_seconds / cost.per_round
        return min(max(rounds / MIN_EXPLORING_ROUNDS, MIN_EXPLORING_ROWS / self._n_rows), 1.0)

    def _seconds(self, result: CandidateResult) -> float:
        """Return the seconds of a candidate's trials, divided by the number of fits run in parallel."""
        return sum(one.seconds for one in result.tried) / self._at_once

    def _final_seconds(self, result: CandidateResult) -> float:
        setup = result.setup(1.0)
        seconds = float(np.mean([one.seconds / one.trial.rows for one in result.tried])) - setup
        if result.candidate.is_boosted:
            fitted = float(np.mean([one.fitted for one in result.tried]))
            seconds *= ROUNDS_FACTOR * best_rounds(result.tried) / max(fitted, 1.0)
        elif path_parameter(ALGORITHMS[result.candidate.algorithm]) == "C":
            # each C was a fit of its own; the chosen one may be the longest
            seconds *= 2.0 / max(len(result.tried[0].trial.path), 2)
        elif n_trees := result.parameters.get(
            "n_trees"
        ):  # a limit may have ended the trials with fewer
            fitted = float(np.mean([one.fitted for one in result.tried]))
            seconds *= n_trees / max(fitted, 1.0)
        return self._to_all * (setup + seconds)

    def _end(
        self,
        history: TrialHistory,
        held: Sequence[HeldOut],
        trees: Sequence[CandidateResult],
        settings: Sequence[Candidate],
        left: float,
        *,
        now: bool,
    ) -> Chosen:
        if not history.finished() and (not history.candidates or history.trees_failed() is None):
            return self._untried(history, left)

        def predicted(result: CandidateResult) -> float:
            """Return the predicted minimum seconds of the last fit; boosted trees may use fewer rows or rounds."""
            less = result.tried[0].trial.rows / self._to_all if result.may_improve else 1.0
            return less * self._final_seconds(result)

        planned = {c.name: c for c in (*settings, *self._families)} | history.candidates
        context = SelectionContext(
            self._evaluator,
            self._objective,
            left,
            self._at_once,
            predicted,
            self._to_all,
            self._cost,
            self._max_cost,
            list(planned.values()),
            now,
        )
        chosen, results, is_complete = finish(history, held, context)
        if now:
            return chosen
        if goes_further(results, self._at_once):
            timeless = self._go_further(chosen, results, math.inf)
            chosen = self._go_further(chosen, results, left)
            is_complete &= chosen == timeless
        ended = self._ended_by_clock(history, trees, settings)
        hurried = [phase.name for phase in PHASES if phase.name in history.hurried]
        if ended := ended + ([] if is_complete else [LAST_FITS.name]):
            text = (
                f"the budget ended before these phases of the search were complete: {', '.join(ended)}. A longer "
                "budget tries more candidates. The same seed may give another model"
            )
            note = Note(NoteKind.ENDED, text, tuple(ended))
        elif hurried:
            text = (
                f"the time left influenced the trials of these phases: {', '.join(hurried)}. The same seed may give "
                "another model. With a longer budget this is less likely"
            )
            note = Note(NoteKind.HURRIED, text, tuple(hurried))
        else:
            return chosen
        return replace(chosen, notes=(*chosen.notes, note))

    def _ended_by_clock(
        self,
        history: TrialHistory,
        trees: Sequence[CandidateResult],
        settings: Sequence[Candidate],
    ) -> list[str]:
        ended = set()
        for phase, planned in ((PORTFOLIO, settings), (FAMILIES, self._families)):
            own = [history.of(each.name) for each in planned]
            if any(one.failed and one.stopped for o in own for one in o) or any(
                len(o) < len(self._splits) and not any(one.failed for one in o) for o in own
            ):
                ended.add(phase.name)
        if trees and self._gains_on(history, trees[0]):
            ended.add(LONGER.name)
        elif trees and not self._has_searched(history, trees[0]):
            ended.add(SEARCH.name)
        return [phase.name for phase in PHASES if phase.name in ended]

    def _cost(self, member: Member) -> float:
        return score_microseconds(member.algorithm, member.parameters, self._n_features)

    def _go_further(
        self, chosen: Chosen, results: Sequence[CandidateResult], left: float
    ) -> Chosen:
        """Use the time left for more rounds or rows, within the scoring cost limit. Learning grows by
        `CUT_FACTOR(_FOLDS)`.
        """
        setup = max(result.setup(self._to_all) for result in results)
        steps = max(self._final_seconds(result) for result in results) - setup
        ratio = (SAFETY_FACTOR * left - setup) / max(steps, 1e-9)
        rows = 1.0
        if ratio < MIN_ROUNDS_FRACTION:  # many rounds on some rows are better than few on all
            tried = results[0].tried[0].trial.rows
            rows = min(max(ratio, tried), 1.0)
            ratio = min(max(ratio, MIN_ROUNDS_FRACTION * tried) / rows, 1.0)
        room = max(self._max_cost / total_cost(chosen.members, self._cost), 1.0)
        ratio = min(ratio, room)
        cut_factor = min(CUT_FACTOR if len(self._splits) == 1 else CUT_FACTOR_FOLDS, room)
        more = min(ratio, cut_factor)
        members = []
        for member in chosen.members:
            tried_rounds, tried_rate = (member.parameters[n] for n in ("n_rounds", "learning_rate"))
            # more rounds than predicted are planned, to use all the time: the limit ends them
            n_rounds = min(more * SPARE_FACTOR, cut_factor) * tried_rounds
            rate = min(tried_rate * max(1.0 / more, 1.0), RATES[-1])
            if more > 1.0:  # one half goes into more learning, the other into smaller steps
                slower = max(ratio / more, 1.0) * math.sqrt(more)
                rate = max(rate / slower, min(rate, SLOW_RATE))
                most = cut_factor * tried_rounds * tried_rate / rate
                n_rounds = min(n_rounds * max(ratio / more, 1.0), most)
            run = {"n_rounds": max(int(n_rounds), 1), "learning_rate": rate}
            members.append(replace(member, parameters={**member.parameters, **run}))
        note = Note(
            NoteKind.LONGER,
            "the best candidate was still improving at its time limit, so it is fitted with as many rounds as the "
            "budget allows. A longer budget may give a better model",
        )
        if rows < 1.0:
            text = (
                f"the budget was too short for all rows: the model is trained on {100 * rows:.2g} % of them. Set a "
                "longer budget to train it on all"
            )
            note = Note(NoteKind.FEWER_ROWS, text)
        return replace(chosen, members=tuple(members), rows=rows, notes=(*chosen.notes, note))

    def _parameters(self, candidate: Candidate) -> dict[str, Any]:
        return {**seeded(candidate, self._seed), **self._constraints}

    def _trial(
        self,
        candidate: Candidate,
        key: TrialKey,
        fraction: float,
        limit: float,
        split: int,
        **run: Any,
    ) -> Trial:
        parameters = {**self._parameters(candidate), **run}
        path = candidate.path
        return Trial(candidate.algorithm, parameters, path, fraction, split, True, limit, key)


def auto_ranker(
    X: Any,
    y: Any,
    *,
    budget_seconds: float = 60.0,
    sample_weight: Any = None,
    group: Any = None,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    metric: Metric | str | None = None,
    monotone: Mapping[str | int, Direction] | None = None,
    max_score_microseconds: float | None = None,
    random_state: int = 0,
    callback: Callback = ignore,
    clock: Callable[[], float] = perf_counter,
) -> Searched:
    """Search for a good ranker automatically within a time budget.

    Use it if you do not want to choose an algorithm. Evaluate the result on other rows.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
        Features, as rankers take them.
    y : array-like of shape (n_samples,)
        Two distinct values; the greater is positive.
    budget_seconds : float, default=60
        Seconds by the clock, including the fits on all rows.
    sample_weight, group, fpr_min, fpr_max, metric, random_state, callback
        As for `search_ranker`.
    monotone : mapping of str or int to {"increasing", "decreasing"}, optional
        Monotone constraints that every candidate keeps. Algorithms that cannot keep them are left out, and a note says
        which.
    max_score_microseconds : float, optional
        As for `Auto`.
    clock : callable () -> float
        Seconds by which the budget is measured. It stops while kernels are compiled (`core.kernels.WorkClock`).

    Returns
    -------
    Searched

    Examples
    --------
    >>> import warnings
    >>> from core.selection import auto_ranker
    >>> with warnings.catch_warnings():  # four rows per class are too few to compare rankers
    ...     warnings.simplefilter("ignore")
    ...     searched = auto_ranker([[1.0], [2.0], [3.0], [4.0]] * 2, [0, 0, 1, 1] * 2)
    >>> searched.chosen.members[0].algorithm
    'logistic'
    """
    check_seed(random_state)
    rows = read_rows(X, y, sample_weight, group)
    window = check_window(fpr_min, fpr_max)
    objective = None if metric is None else metric_of(metric)
    n_rows, n_positive = len(rows.positive), int(np.count_nonzero(rows.positive))
    planner = Auto(
        n_rows=n_rows,
        n_rare=min(n_positive, n_rows - n_positive),
        n_features=rows.X.shape[1],
        most_categories=int(rows.n_categories.max(initial=0)),
        budget_seconds=budget_seconds,
        window=window,
        metric=objective,
        at_once=count_at_once(*rows.X.shape),
        can_split=partial(_can_split, rows, random_state),
        monotone=monotone,
        max_score_microseconds=max_score_microseconds,
        random_state=random_state,
    )
    find_directions(monotone, rows.names, rows.n_categories)
    working = WorkClock(clock)
    start = working()
    with when_compiling(working.listen):
        chosen, tried = run_search(
            rows, planner, window, objective, random_state, callback, working
        )
    for note in chosen.notes:
        if not planner.n_splits or note.kind in (NoteKind.NO_TREES, NoteKind.NO_BOUND):
            warn(note.text)
    if chosen.rows < 1.0:
        _, positive = check_labels(y, len(y))
        drawn = np.zeros(len(positive))
        drawn[draw_rows(positive, chosen.rows, random_state)] = 1.0
        sample_weight = drawn if sample_weight is None else drawn * np.asarray(sample_weight)
    with when_compiling(working.listen):
        ranker, chosen = fit_chosen(
            chosen,
            lambda ranker, step: ranker.fit(X, y, sample_weight, groups=group, callback=step),
            callback,
            start + budget_seconds,
            working,
        )
    return Searched(ranker, chosen, tried)


def _check_positive(name: str, value: Any) -> None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0.0 < value <= sys.float_info.max:
        raise InvalidParameter(f"{name} must be a finite number greater than 0, got {value!r}")


def _can_split(rows: SearchedRows, random_state: int, n_splits: int, fraction: float) -> bool:
    try:
        split_inner(rows, n_splits, fraction, random_state)
    except InvalidData:
        return False
    return count_distinct(row_keys(rows.X, rows.positive, rows.weight)) > 1


def _uncompared(algorithm: str, parameters: Mapping[str, Any], reason: str, note: str) -> Chosen:
    row = LeaderboardRow(algorithm, parameters, state="chosen", reason=reason)
    return Chosen((Member(algorithm, parameters),), (row,), (Note(NoteKind.UNCOMPARED, note),))
