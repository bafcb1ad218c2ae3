"""`Auto`: boosted trees searched against the clock, the other families beside them, and the mean rank of the best."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from core.base.parameters import check_seed
from core.base.ranker import Callback, Floats, ignore
from core.base.splits import count_distinct, row_keys
from core.base.target import check_labels
from core.ensemble import count_at_once
from core.errors import InvalidData, InvalidParameter
from core.metrics.window import check_window
from core.trees.options import TARGET_ENCODING

from .candidates import (
    BOOSTED,
    DRAWN,
    FULL,
    LEAF_COUNTS,
    LINEAR,
    LOSSES,
    PROBE,
    Candidate,
    TrialHistory,
    best_rounds,
    boosted,
    is_cut,
    mutate,
    neighbours,
    others,
    seeded,
)
from .leaderboard import (
    MAX_BEHIND,
    MORE_ROUNDS,
    NO_TREES,
    SLOW_RATE,
    CandidateResult,
    Evaluator,
    SelectionContext,
    advance,
    evaluate_stage,
    finish,
)
from .planner import (
    CHOOSE_NOW,
    CheckedRows,
    Chosen,
    LeaderboardRow,
    Member,
    Searched,
    fit_chosen,
    read_rows,
    run_search,
    split_inner,
)
from .trial import HeldOut, Trial, TrialResult, draw_rows

FEW_ROWS, FEW_RARE = 5_000, 400
"""Fewer rows, or rows of the rarer class, and there are folds in place of one split."""
FOLDS = 5
MIN_RARE = 5
"""With fewer rows of the rarer class nothing is compared: chance alone would choose."""
REPEATS = ((60, 4), (150, 3), (300, 2))
"""(rows of the rarer class, repeats of the folds) up to so many."""
MAX_FOLDED_CELLS, REPEATED_CELLS = 5_000_000, 300_000
TIME_FOR_REPEAT = 8.0
"""Seconds of the budget for each repeat, of so many cells; of more cells more."""
FRACTION, MAX_HELD = 0.2, 50_000
"""Of the rows, held out where one split is enough; and at most so many."""

FIRST_ROWS, FIRST_RARE = 700, 50
RUNG_FACTOR = 4.0
OTHERS_SHARE, OTHERS_SHARE_FEW = 0.12, 0.3
"""Of the time so far, what families other than boosted trees may have taken; and where rows are few."""
OTHERS_AHEAD = 0.3
"""Of the budget, the least that counts as the time so far."""
LONGEST_SHARE = 0.03
"""Of the budget, what a fit of the screening may take in any case."""

PROBE_ROUNDS, PROBE_CELLS, PROBE_SHARE = 10, 400_000, 0.2
MANY_ROWS, VERY_MANY_ROWS = 8_000, 20_000
"""From here on trees of 31 leaves are the first, below those of 8; and from there on, greater ones are the next."""
MAX_LEAVES_PER_ROW = 0.1
RATE, RATES = 0.1, (0.03, 0.4)
LEARNING = 15.0
"""Rounds times learning rate that trees are taken to need before anything is known."""
MORE_LEARNING = 1.4
"""So many times the learning that was best for one like it, a fit is given."""
FURTHER, FURTHER_FOLDS = 4.0, 1.5
"""A fit that its limit ended while it still gained is foreseen to want so many times as much; and with folds."""
PATH_SHARES = (0.03, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
PATIENT_LEARNING, PATIENCE = 4.0, (20, 120)
"""Learning, and least and most rounds, without a gain before a fit ends."""
MIN_ROUNDS, MAX_UNTRIED, MAX_ROUNDS = 6, 400, 5_000
ROUNDS_FORESEEN = 3
"""A fit may have so many times the rounds that are foreseen to fit in; its limit ends it."""
FIRST_SHARE, FIRST_SHARE_FOLDS = 0.12, 0.2
"""Of the time left, what the first fits of boosted trees on all rows may take; and where there are folds."""
EXPLORING_SHARE, MIN_SHARE = 0.08, 0.01
"""Of the budget, fits that run at once while the number of leaves is searched; and the least that is worth a fit."""
PROMOTED_SHARE = 0.35
"""Of the time left, the best when they are tried again for longer."""
MAX_TRIALS = 60
SPENT = 0.93
"""Of the budget, what is planned for: the rest is for what cannot be foreseen."""
OF_FORESEEN, UNFORESEEN = 0.9, 1.5
MIN_OF_WANTED = 0.35
"""Of the rounds that were best, what there must be time for in a last fit on all rows."""
MAX_SLOWER, SLOW_RESERVED = 4.0, 0.35
"""So many times the seconds of its trial the last fit of the best is given for a lower learning rate, and at most so
much of the budget."""
ROUNDS_WANTED, MIN_COMPARED = 25, 20_000
"""While the number of leaves is searched, a fit has so many rounds: where all rows take too long, on fewer of them; and
rows of them at least."""
RESERVED, RESERVED_CUT, MAX_RESERVED = 4, 2.0, 0.5
"""Members whose last fits the search leaves time for; so many times that of one that still gained, but of the budget so
much at most."""


class Auto:
    """Find a ranker for a table within a time.

    InvalidParameter: the budget is not above 0, n_rare is not from 1 to n_rows, or at_once is below 1.

    Parameters
    ----------
    n_rows : int
        Training rows.
    n_rare : int
        Those of the rarer class.
    most_categories : int, default=0
        Of a feature; 0 where there are only numbers.
    budget_seconds : float, default=60
        By the clock, from the start of the search to the end of the fits on all training rows.
    window : (float, float), default=(0, 1)
        Least and greatest false positive rate: where partial areas are compared, and what the algorithms
        that have a window are told.
    objective : callable (held, scores) -> float, optional
        By which the mean rank is reported; None: the area over the window.
    at_once : int, default=1
        Trials that run at once, and members in the last fit: so many are asked for together.
    can_repeat : bool, default=True
        Whether the rows can be split into folds in more than one way.
    can_split : callable (n_splits, n_repeats, fraction) -> bool, optional
        Whether the rows can be split so, with both classes on both sides each time; 1 split holds the fraction out.
        There are fewer folds, or a part held out, where they cannot.

    Attributes
    ----------
    n_splits : int
        1, which holds a part out, or 5 folds where rows or positives are few, fewer where no 5 can be made; 0 where
        nothing can be held out.
    n_repeats : int
        How often the rows are split anew into these folds.
    fraction : float
        Of the rows, what one split holds out.

    Notes
    -----
    Where nothing can be held out, all rows are alike, or the rarer class has fewer than 5 rows, logistic regression is
    chosen untried.

    A few rounds on a sample tell what a round costs. Where the time is too short to try anything, boosted trees are
    fitted on all rows, with as many rounds as fit in. Otherwise boosted trees by the logistic and by the ranking loss
    come first, on all rows. Then the number of leaves is searched up and down by the better loss, each fit within a
    small share of the budget; what the limit has ended while it still gained is tried for longer; then come random
    changes of the best: leaves, least mass of a leaf, rows and features drawn, regularisation and loss. Rounds
    follow from early stopping, the learning rate from the time.

    The families of the papers are screened beside it by successive halving on rows, within a share of the time; who is
    clearly behind leaves.

    In the end whatever is not behind the best by more than two standard errors of the paired difference, in AUC
    and in the window, is a *member*; the mean rank of the members is the result, unless the best alone is better
    by more than one standard error. All are fitted anew on all rows, with a tenth more rounds than
    were best on fewer rows; what still gained when it was ended has more, as far as there is time.

    What is decided hangs on times only through which trials there are and how many rounds they have. Given the
    trials that took place, everything follows bit for bit from rows and seed.

    References
    ----------
    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
    AISTATS 2016. C. Wang, Q. Wu, M. Weimer and E. Zhu, "FLAML: a fast and lightweight AutoML library", MLSys 2021.
    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from libraries of models", ICML 2004.
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
        objective: Callable[[HeldOut, Floats], float] | None = None,
        at_once: int = 1,
        can_repeat: bool = True,
        can_split: Callable[[int, int, float], bool] | None = None,
        random_state: int = 0,
    ) -> None:
        if not 0.0 < budget_seconds < math.inf:
            raise InvalidParameter(f"budget_seconds must be greater than 0, got {budget_seconds}")
        if not 1 <= n_rare <= n_rows:
            raise InvalidParameter(f"n_rare must be from 1 to n_rows ({n_rows}), got {n_rare}")
        if at_once < 1:
            raise InvalidParameter(f"at_once must be at least 1, got {at_once}")
        check_seed(random_state)
        self._budget = float(budget_seconds)
        cells = n_rows * n_features
        few = n_rows < FEW_ROWS or (n_rare < FEW_RARE and cells <= MAX_FOLDED_CELLS)
        self.n_splits = FOLDS if few else 1
        self.n_repeats = 1
        in_time = int(self._budget / (TIME_FOR_REPEAT * max(cells / REPEATED_CELLS, 1.0)))
        if few and can_repeat and in_time > 1:
            self.n_repeats = min(
                next((times for most, times in REPEATS if n_rare <= most), 1), in_time
            )
        self.fraction = min(FRACTION, MAX_HELD / n_rows)
        self._n_rare = n_rare
        if n_rare < MIN_RARE:
            self.n_splits = self.n_repeats = 0
        elif can_split is not None:
            self.n_splits, self.n_repeats = next(
                (
                    wanted
                    for wanted in _fewer(self.n_splits, self.n_repeats)
                    if can_split(*wanted, self.fraction)
                ),
                (0, 0),
            )
        self._splits = range(self.n_splits * self.n_repeats)
        self._evaluator = Evaluator(window)
        self._objective = objective
        self._at_once = at_once
        self._seed = random_state
        learnt = 1.0 - (self.fraction if self.n_splits <= 1 else 1.0 / self.n_splits)
        self._to_all = 1.0 / learnt
        self._n_rows = n_rows * learnt
        self._n_features = n_features
        self._most_categories = most_categories
        self._many_categories = most_categories > TARGET_ENCODING
        self._others = others(window)
        self.rungs = screening_shares(n_rows * learnt, n_rare * learnt)
        self._others_share = OTHERS_SHARE_FEW if self.rungs == [1.0] else OTHERS_SHARE

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """See `Planner.next`. With `elapsed` beyond the budget the search ends with what it has time for; with
        `CHOOSE_NOW` with the best of what it has.
        """
        if not self._splits:
            return self._plain()
        history = TrialHistory(tried, self._others)
        left = SPENT * self._budget - elapsed
        if not tried and left > 0.0:
            return [self._probe(left)]
        trees, last_fits = self._rank(history, held)
        search_left = left - last_fits
        return (
            self._first(history, left)
            or self._screen(history, held, search_left, elapsed)
            or self._explore(history, trees, left, search_left)
            or self._end(history, held, left, now=elapsed >= CHOOSE_NOW)
        )

    def _rank(
        self, history: TrialHistory, held: Sequence[HeldOut]
    ) -> tuple[list[CandidateResult], float]:
        """Return the boosted trees that have figures on all rows, the best first, and the seconds of the last fits."""
        if not history.finished(FULL):
            return [], 0.0
        results, evaluation = evaluate_stage(history, FULL, held, self._evaluator, self.n_repeats)
        order = np.argsort(-evaluation.relative_area(), kind="stable").tolist()
        as_good = [k for k in order if evaluation.behind(k, order[0]) <= MAX_BEHIND]
        seconds = [self._final_seconds(results[k]) for k in as_good[:RESERVED]]
        if results[order[0]].may_gain and len(self._splits) == 1:
            last_fits = RESERVED_CUT * max(seconds[: self._at_once])
            last_fits = min(last_fits, MAX_RESERVED * self._budget)
        else:
            last_fits = max(seconds[0], sum(seconds) / self._at_once)
            slower = _rate(results[order[0]]) / SLOW_RATE
            wanted = min(seconds[0] * min(slower, MAX_SLOWER), SLOW_RESERVED * self._budget)
            last_fits = max(last_fits, wanted)
        trees = [results[k] for k in order if results[k].candidate.kind == BOOSTED]
        return trees, last_fits

    def _probe(self, left: float) -> Trial:
        """Ask for a few rounds on a sample, which tell what a round costs."""
        share = min(PROBE_CELLS / (self._n_rows * self._n_features), 1.0)
        limit = PROBE_SHARE * left
        return self._trial(
            self._default(), PROBE, share, limit, 0, n_rounds=PROBE_ROUNDS, learning_rate=RATE
        )

    def _first(self, history: TrialHistory, left: float) -> Sequence[Trial] | Chosen | None:
        """Ask for two fits on all rows; or say that there is no time to try, and which fit there is time for.

        Two losses; where a feature has many categories, two ways with them, which differ by more.
        """
        ways = [(loss, True) for loss in LOSSES]
        if self._many_categories:
            ways.insert(1, (ways[0][0], False))
        first = [
            boosted(loss, self._base_leaves, self._n_rows, encoded=encoded)
            for loss, encoded in ways[: min(self._at_once, 2)]
        ]
        todo = [c for c in first if not history.has(FULL, c.name)]
        if not todo:
            return self._first_of_few(history, left)
        limit = (FIRST_SHARE if len(self._splits) == 1 else FIRST_SHARE_FOLDS) * left
        if self._affordable(history, self._base_leaves, limit, len(todo)) < MIN_ROUNDS:
            return self._untried(history, left) if not history.finished(FULL) else None
        return self._ask(history, todo, limit)

    def _first_of_few(self, history: TrialHistory, left: float) -> list[Trial] | None:
        """Ask for logistic regression on all splits where rows are few: on one of them chance would choose."""
        linear = self._others[0]
        if self.rungs != [1.0] or history.has(FULL, linear.name):
            return None
        share = FIRST_SHARE if len(self._splits) == 1 else FIRST_SHARE_FOLDS
        limit = share * left * self._at_once / len(self._splits)
        return [self._trial(linear, FULL, self._share(history), limit, k) for k in self._splits]

    def _untried(self, history: TrialHistory, left: float) -> Chosen:
        """Choose boosted trees untried, with as many rounds as there is time for."""
        candidate = self._default()
        cost = history.fit_cost(self._base_leaves)
        n_rounds = round(LEARNING / RATE)
        if cost is not None:
            in_time = OF_FORESEEN * (left / self._to_all - cost.setup) / cost.a_round
            n_rounds = round(min(max(in_time, MIN_ROUNDS), MAX_UNTRIED))
        parameters = {
            **seeded(candidate, self._seed),
            "n_rounds": n_rounds,
            "learning_rate": min(max(LEARNING / n_rounds, RATES[0]), RATES[1]),
        }
        row = LeaderboardRow(
            candidate.algorithm,
            parameters,
            state="chosen",
            reason="there was no time to try any: fitted on all rows, with as many rounds as there is time for",
        )
        note = f"the budget of {self._budget:g} s was too short to compare rankers: boosted trees are fitted at once"
        return Chosen((Member(candidate.algorithm, parameters),), (row,), (note,))

    def _plain(self) -> Chosen:
        """Choose the plainest ranker, where no rows can judge others."""
        algorithm = self._others[0].algorithm
        if self._n_rare < MIN_RARE:
            rows = "1 row" if self._n_rare == 1 else f"{self._n_rare} rows"
            why = f"the rarer class has {rows} to learn from, fewer than {MIN_RARE}"
        else:
            why = (
                "all rows are alike, or no part of them can be held out with both classes, and with whole groups, on "
                "both sides"
            )
        row = LeaderboardRow(algorithm, {}, state="chosen", reason="the plainest one, not tried")
        note = (
            f"{why}: no rankers were compared, {algorithm} was fitted as the plainest one. "
            "Take what it says for a guess until there are more rows"
        )
        return Chosen((Member(algorithm, {}),), (row,), (note,))

    def _screen(
        self, history: TrialHistory, held: Sequence[HeldOut], left: float, elapsed: float
    ) -> list[Trial] | None:
        """Ask for the next of the families that are not boosted trees, while they have taken little of the time."""
        alive, stage, share = self._screened(history, held)
        todo = [c for c in alive if not history.has(stage, c.name)]
        splits = self._splits if stage == FULL else range(1)
        spent = sum(history.seconds(c.name) for c in self._others) / self._at_once
        room = min(self._others_share * max(elapsed, OTHERS_AHEAD * self._budget) - spent, left)
        asked: list[Trial] = []
        for candidate in todo:
            last = history.last(candidate.name)
            one = max((each.seconds / each.trial.rows for each in last), default=0.0) * share
            seconds = one * len(splits) / self._at_once
            if seconds > room or room <= 0.0:
                continue
            limit = max(LONGEST_SHARE * self._budget, 3.0 * one)
            asked += [self._trial(candidate, stage, share, limit, split) for split in splits]
            room -= seconds
            if len(asked) >= self._at_once:
                break
        return asked or None

    def _screened(
        self, history: TrialHistory, held: Sequence[HeldOut]
    ) -> tuple[Sequence[Candidate], str, float]:
        """Return the families that are still in, the stage they are in, and its share of the rows."""
        alive: Sequence[Candidate] = self._others
        for number, share in enumerate(self.rungs):
            stage = f"rung {number + 1}"
            if any(not history.has(stage, c.name) for c in alive):
                return alive, stage, share
            alive = advance(history, stage, held, self._evaluator)
        return alive, FULL, self._share(history)

    def _explore(
        self,
        history: TrialHistory,
        trees: Sequence[CandidateResult],
        left: float,
        search_left: float,
    ) -> list[Trial] | None:
        """Ask for more boosted trees, if they and the last fit of the best are foreseen to end in time."""
        if not trees or len(trees) >= MAX_TRIALS:
            return None
        best = trees[0]
        still_gains = is_cut(best.tried)
        limit = EXPLORING_SHARE * self._budget
        if not still_gains:
            limit = max(limit, 1.5 * self._seconds(best))
        limit = min(limit, search_left)
        beside = (
            candidate
            for candidate in self._beside(best.candidate, history)
            if self._affordable(history, candidate.leaves, limit, self._at_once) >= MIN_ROUNDS
        )
        proposals = list(islice(beside, self._at_once))
        if not proposals and still_gains:
            # what is tried for longer needs a last fit as much longer
            limit = min(PROMOTED_SHARE * left, left / (1.0 + MORE_ROUNDS * self._to_all))
            if limit < 2.0 * max(self._seconds(result) for result in trees[: self._at_once]):
                return None
            proposals = [_again(result.candidate, history) for result in trees[: self._at_once]]
        elif not proposals:
            proposals = self._changes(trees, history)
        wanted = min(self._seconds(best) * len(proposals), EXPLORING_SHARE * self._budget)
        if limit < max(0.6 * wanted, MIN_SHARE * self._budget):
            return None
        return self._ask(history, proposals, limit) or None

    def _beside(self, best: Candidate, history: TrialHistory) -> Iterator[Candidate]:
        """Return what to try beside the best.

        The other way with many categories, trees of more and of fewer leaves, the other losses, one parameter changed.
        """
        place = LEAF_COUNTS.index(best.leaves)
        steps = (2, 4, -2, 1, -1) if self._n_rows >= VERY_MANY_ROWS else (2, -2, 1, -1)
        most = max(MAX_LEAVES_PER_ROW * self._n_rows, LEAF_COUNTS[1])
        others = []
        if self._many_categories:
            loss = next(iter(LOSSES))
            others.append(boosted(loss, self._base_leaves, self._n_rows, encoded=False))
        for step in steps:
            if 0 <= place + step < len(LEAF_COUNTS) and LEAF_COUNTS[place + step] <= most:
                leaves = LEAF_COUNTS[place + step]
                others.append(boosted(best.loss, leaves, self._n_rows, encoded=best.encoded))
        ways = [(loss, best.encoded) for loss in LOSSES]
        if self._many_categories:
            ways.append((best.loss, not best.encoded))
        others += [boosted(loss, best.leaves, self._n_rows, encoded=way) for loss, way in ways]
        yield from (candidate for candidate in others if not history.has(FULL, candidate.name))
        known = {_key(c) for c in history.candidates if c.kind == BOOSTED}
        for candidate in neighbours(best, most_categories=self._most_categories):
            if _key(candidate) not in known:
                yield candidate

    def _changes(self, trees: Sequence[CandidateResult], history: TrialHistory) -> list[Candidate]:
        """Draw changes of the best three."""
        number = history.count_drawn()
        known = {_key(result.candidate) for result in trees}
        found: list[Candidate] = []
        for k in range(50):
            draw = np.random.Generator(np.random.Philox(key=[self._seed % 2**64, 64 * number + k]))
            of = trees[min(int(draw.geometric(0.5)), 3, len(trees)) - 1].candidate
            candidate = mutate(of, draw, f"{DRAWN}{number + len(found) + 1}")
            if _key(candidate) not in known:
                known.add(_key(candidate))
                found.append(candidate)
            if len(found) == self._at_once:
                break
        return found

    def _ask(
        self, history: TrialHistory, candidates: Sequence[Candidate], limit: float
    ) -> list[Trial]:
        """Ask for trials of boosted trees on all rows and splits, that end together within so many seconds."""
        found = []
        share = self._share(history)
        waves = math.ceil(len(candidates) * len(self._splits) / self._at_once)
        for candidate in candidates:
            # what is tried for longer, or drawn, may cost more than there is time for: its limit ends it
            rounds = max(self._affordable(history, candidate.leaves, limit, len(candidates)), 1)
            needed = MORE_LEARNING * history.learning(candidate.leaves, FURTHER, LEARNING)
            run: dict[str, Any] = {"learning_rate": min(max(needed / rounds, RATES[0]), RATES[1])}
            rate, patience, along = run["learning_rate"], None, candidate
            if len(self._splits) == 1:
                patience = round(min(max(PATIENT_LEARNING / rate, PATIENCE[0]), PATIENCE[1]))
                run["n_rounds"] = min(ROUNDS_FORESEEN * rounds, MAX_ROUNDS)
            else:
                # all folds are evaluated after the same rounds: each by itself is too noisy to stop by
                last = min(rounds, math.ceil(needed / rate), MAX_ROUNDS)
                path = sorted({max(round(share * last), 1) for share in PATH_SHARES})
                along = replace(candidate, path=tuple(path))
            found += [
                self._trial(along, FULL, share, limit / waves, split, patience, **run)
                for split in self._splits
            ]
        return found

    def _affordable(
        self, history: TrialHistory, leaves: int, limit: float, n_candidates: int
    ) -> int:
        """Say how many rounds a fit has within a limit in which all splits of all candidates are fitted."""
        if limit <= 0.0:
            return 0
        cost = history.fit_cost(leaves)
        if cost is None:  # the probe has failed: for want of time, or for another reason
            return 0 if history.ran_out(PROBE) else round(LEARNING / RATE)
        waves = math.ceil(n_candidates * len(self._splits) / self._at_once)
        seconds = limit / waves - cost.setup
        return max(int(seconds / (cost.a_round * self._share(history))), 0)

    def _share(self, history: TrialHistory) -> float:
        """Say on which share of the rows rankers are compared: all, unless the time is too short for that."""
        if (share := history.share) is not None:
            return share
        cost = history.fit_cost(self._base_leaves)
        if cost is None or len(self._splits) > 1:
            return 1.0
        rounds = EXPLORING_SHARE * self._budget / cost.a_round
        return min(max(rounds / ROUNDS_WANTED, MIN_COMPARED / self._n_rows), 1.0)

    @property
    def _base_leaves(self) -> int:
        return 8 if self._n_rows < MANY_ROWS else 31

    def _default(self) -> Candidate:
        return boosted(next(iter(LOSSES)), self._base_leaves, self._n_rows)

    def _seconds(self, result: CandidateResult) -> float:
        """Return the time that the trials of one have taken, run beside others."""
        return sum(one.seconds for one in result.tried) / self._at_once

    def _final_seconds(self, result: CandidateResult) -> float:
        """Foresee the seconds of a fit on all training rows, run beside others."""
        setup = max(one.setup for one in result.tried) / result.tried[0].trial.rows
        seconds = float(np.mean([one.seconds / one.trial.rows for one in result.tried])) - setup
        if result.candidate.kind == BOOSTED:
            fitted = float(np.mean([one.fitted for one in result.tried]))
            seconds *= MORE_ROUNDS * best_rounds(result.tried) / max(fitted, 1.0)
        elif result.candidate.kind == LINEAR and result.candidate.path:
            # each cost was a fit; the one that is left may be the longest
            return self._to_all * (setup + seconds) * min(2.0 / len(result.candidate.path), 1.0)
        return self._to_all * (setup + seconds)

    def _end(
        self, history: TrialHistory, held: Sequence[HeldOut], left: float, *, now: bool
    ) -> Chosen:
        """Choose the members."""
        untried = not history.names(FULL) or history.ran_out(FULL)
        if untried and not history.finished(FULL):
            return self._untried(history, left)
        alive, _, _ = self._screened(history, held)

        def foreseen(result: CandidateResult) -> float:
            """Seconds of the last fit at least: boosted trees may have fewer rows, or rounds, than wanted."""
            seconds = self._final_seconds(result)
            return (
                seconds * result.tried[0].trial.rows / self._to_all if result.may_gain else seconds
            )

        waiting = frozenset(c.name for c in alive if not history.has(FULL, c.name))
        context = SelectionContext(
            self._evaluator,
            self._objective,
            left,
            self._at_once,
            self.n_repeats,
            foreseen,
            waiting,
            now,
        )
        chosen, results = finish(history, held, context)
        return chosen if now else self._go_further(chosen, results, left)

    def _go_further(
        self, chosen: Chosen, results: Sequence[CandidateResult], left: float
    ) -> Chosen:
        """Fit the last fits to the time where rounds, or rows, were too few for what was tried."""
        if len(chosen.members) > self._at_once or not all(e.may_gain for e in results):
            return chosen
        ratio = OF_FORESEEN * left / max(self._final_seconds(result) for result in results)
        rows = 1.0
        if ratio < MIN_OF_WANTED:  # many rounds on a part of the rows are better than few on all
            tried = results[0].tried[0].trial.rows
            rows = min(max(ratio, tried), 1.0)
            ratio = min(max(ratio, MIN_OF_WANTED * tried) / rows, 1.0)
        further = FURTHER if len(self._splits) == 1 else FURTHER_FOLDS
        more = min(ratio, further)
        members = []
        for member, result in zip(chosen.members, results, strict=True):
            # if there is more time than foreseen it is used: what there is not is cut off
            wanted = MORE_ROUNDS * min(more * UNFORESEEN, further) * best_rounds(result.tried)
            n_rounds = max(round(wanted), MIN_ROUNDS)
            rate = min(member.parameters["learning_rate"] * max(1.0 / more, 1.0), RATES[1])
            if more > 1.0:  # one half of it goes into more learning, the other into smaller steps
                slower = max(ratio / more, 1.0) * math.sqrt(more)
                n_rounds = round(n_rounds * max(ratio / more, 1.0))
                rate = max(rate / slower, min(rate, SLOW_RATE))
            run = {"n_rounds": n_rounds, "learning_rate": rate}
            members.append(replace(member, parameters={**member.parameters, **run}))
        note = "the best still gained when its time was up: it is fitted with as many rounds as there is time for"
        if rows < 1.0:
            note = (
                f"the time was too short to learn from all rows: {rows:.2g} of them are learnt from"
            )
        return replace(chosen, members=tuple(members), rows=rows, notes=(*chosen.notes, note))

    def _trial(
        self,
        candidate: Candidate,
        stage: str,
        share: float,
        limit: float,
        split: int,
        patience: int | None = None,
        **run: Any,
    ) -> Trial:
        parameters = {**seeded(candidate, self._seed), **run}
        label = f"{stage}/{candidate.name}"
        path = candidate.path
        return Trial(
            candidate.algorithm, parameters, path, share, split, True, limit, label, patience
        )


def auto_ranker(
    X: Any,
    y: Any,
    *,
    budget_seconds: float = 60.0,
    sample_weight: Any = None,
    group: Any = None,
    fpr_min: float = 0.0,
    fpr_max: float = 1.0,
    random_state: int = 0,
    callback: Callback = ignore,
) -> Searched:
    """Find a ranker within a time; see `Auto`.

    Parameters
    ----------
    X, y, sample_weight, group, fpr_min, fpr_max, random_state, callback
        As `search_ranker`.
    budget_seconds : float, default=60
        By the clock, the fits on all rows included.
    """
    check_seed(random_state)
    rows = read_rows(X, y, sample_weight, group)
    window = check_window(fpr_min, fpr_max)
    n_rows, n_positive = len(rows.positive), int(np.count_nonzero(rows.positive))
    planner = Auto(
        n_rows=n_rows,
        n_rare=min(n_positive, n_rows - n_positive),
        n_features=rows.matrix.shape[1],
        most_categories=max((len(known or ()) for known in rows.categories), default=0),
        budget_seconds=budget_seconds,
        window=window,
        at_once=count_at_once(*rows.matrix.shape),
        can_split=partial(_can_split, rows, random_state),
        random_state=random_state,
    )
    start = perf_counter()
    chosen, tried = run_search(rows, planner, window, random_state, callback)
    for note in chosen.notes:
        if not planner.n_splits or note.startswith(NO_TREES):
            warnings.warn(note, UserWarning, stacklevel=2)
    if chosen.rows < 1.0:
        _, positive = check_labels(y, len(y))
        drawn = np.zeros(len(positive))
        drawn[draw_rows(positive, chosen.rows, random_state)] = 1.0
        sample_weight = drawn if sample_weight is None else drawn * np.asarray(sample_weight)
    ranker = fit_chosen(
        chosen,
        lambda ranker, step: ranker.fit(X, y, sample_weight, groups=group, callback=step),
        callback,
        start + budget_seconds,
        perf_counter,
    )
    return Searched(ranker, chosen, tried)


def _can_split(
    rows: CheckedRows, random_state: int, n_splits: int, n_repeats: int, fraction: float
) -> bool:
    try:
        split_inner(rows, n_splits, n_repeats, fraction, random_state)
    except InvalidData:
        return False
    return count_distinct(row_keys(rows.matrix, rows.positive, rows.weight)) > 1


def _fewer(n_splits: int, n_repeats: int) -> list[tuple[int, int]]:
    """Say what splits are tried if the wanted ones cannot be made, one after the other."""
    fewer = [(n_splits, n_repeats), (n_splits, 1), (3, 1), (2, 1), (1, 1)]
    return [wanted for wanted in dict.fromkeys(fewer) if wanted[0] <= n_splits]


def _rate(result: CandidateResult) -> float:
    rate: float = result.parameters.get("learning_rate", SLOW_RATE)
    return rate


def _again(candidate: Candidate, history: TrialHistory) -> Candidate:
    """Return the same under a name that was not tried."""
    number = 2
    while history.has(FULL, f"{candidate.name}, try {number}"):
        number += 1
    return replace(candidate, name=f"{candidate.name}, try {number}")


def _key(candidate: Candidate) -> str:
    return repr((candidate.algorithm, sorted(candidate.parameters.items())))


def screening_shares(n_rows: float, n_rare: float) -> list[float]:
    """Plan the shares of rows that the screening has, given the inner training rows and those of the rarer class.

    From a few hundred rows with 50 of the rarer class on, times 4, up to less than half; 1 alone where there are no
    more rows than that.
    """
    share = max(FIRST_ROWS / n_rows, FIRST_RARE / n_rare)
    rungs = []
    while share < 0.5:
        rungs.append(share)
        share *= RUNG_FACTOR
    return rungs or [1.0]
