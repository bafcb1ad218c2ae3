"""`Auto`: a search within a time budget over boosted trees and all other families; the result is a mean rank."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from core.ensemble import count_at_once
from core.errors import InvalidData, InvalidParameter
from core.metrics.figures import Figure, check_scale_free
from core.metrics.window import check_window
from core.trees.options import TARGET_ENCODING

from .candidates import (
    BOOSTED,
    CROSSES,
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
    keeps_order,
    mutate,
    neighbours,
    others,
    seeded,
)
from .leaderboard import (
    MAX_MEMBER_GAP,
    NO_TREES_NOTE,
    ROUNDS_FACTOR,
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

# How the rows are split
FOLDED_BELOW_ROWS = 5_000
"""With fewer rows there are folds instead of a holdout: one holdout would be too noisy."""
FOLDED_BELOW_RARE = 400
"""With fewer rows of the rarer class there are folds, too, unless the table has more than `MAX_FOLDED_CELLS`."""
MAX_FOLDED_CELLS = 5_000_000
"""Table cells (rows × columns) up to which few rows of the rarer class alone lead to folds."""
N_FOLDS = 5
"""Folds, if the rows can be split so."""
MIN_RARE = 5
"""With fewer rows of the rarer class nothing is compared: the choice would be chance."""
REPEATS = ((60, 4), (150, 3), (300, 2))
"""(rows of the rarer class, at most; number of repeats of the folds)."""
SECONDS_PER_REPEAT = 8.0
"""Seconds of budget that a repeat needs, for a table of up to `REPEATED_CELLS`; in proportion for larger ones."""
REPEATED_CELLS = 300_000
HOLDOUT_FRACTION = 0.2
"""Fraction of the rows in a holdout, ..."""
MAX_HELD_OUT_ROWS = 50_000
"""... but at most this number: more rows hardly reduce the error of an area."""

# Screening of the other families
MIN_RUNG_ROWS = 700
"""Rows on the first rung, ..."""
MIN_RUNG_RARE = 50
"""... and rows of the rarer class there, at least."""
RUNG_FACTOR = 4.0
"""Each rung has this multiple of the rows of the one before."""
OTHERS_FRACTION = 0.12
"""Fraction of the elapsed time that the other families may take; ..."""
OTHERS_FRACTION_FEW_ROWS = 0.3
"""... if there are few rows, for which they are often the best."""
MIN_ELAPSED_FRACTION = 0.3
"""Lower bound for the elapsed time in that rule, as a fraction of the budget."""
SCREENING_FIT_FRACTION = 0.03
"""Limit of one screening fit, as a fraction of the budget; three times its predicted time if that is more."""

# The first boosted trees
PROBE_ROUNDS = 10
"""Rounds of the fit that measures the time of a round."""
PROBE_CELLS = 400_000
"""Table cells of that fit: it takes well below a second."""
PROBE_FRACTION = 0.2
"""Limit of that fit, as a fraction of the time left."""
FIRST_FRACTION = 0.12
"""Limit of the first fits on all rows, as a fraction of the time left; ..."""
FIRST_FRACTION_FOLDS = 0.2
"""... with folds."""
ROWS_FOR_31_LEAVES = 8_000
"""The first trees have 8 leaves with fewer rows, 31 with more."""
ROWS_FOR_LARGE_STEPS = 20_000
"""From this number of rows on, the search also goes up four sizes of `LEAF_COUNTS` in one step."""
MAX_LEAVES_PER_ROW = 0.1
"""Leaves of a tree per row: a leaf then has ten rows on average."""

# Rounds and learning rate
DEFAULT_RATE = 0.1
"""Learning rate of the probe."""
MIN_RATE, MAX_RATE = 0.03, 0.4
"""Range of the learning rate of trials."""
DEFAULT_LEARNING = 15.0
"""Learning (rounds × learning rate) that trees are assumed to need before any were tried."""
LEARNING_FACTOR = 1.4
"""A trial has this multiple of the learning that was best for similar trees, to see whether more is better."""
CUT_FACTOR = 4.0
"""Predicted rounds, as a multiple of the limit, of a fit that was still improving when it hit the limit; ..."""
CUT_FACTOR_FOLDS = 1.5
"""... with folds."""
PATH_FRACTIONS = (0.03, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0)
"""Fractions of the rounds after which all folds are evaluated together."""
PATIENCE_LEARNING = 4.0
"""Learning without an improvement after which a fit ends, ..."""
MIN_PATIENCE, MAX_PATIENCE = 20, 120
"""... which is at least and at most this number of rounds."""
MIN_ROUNDS = 6
"""A fit with fewer rounds is not worth a trial."""
MAX_UNTRIED_ROUNDS = 400
"""Largest number of rounds of a fit that no trial preceded."""
MAX_ROUNDS = 5_000
"""Rounds of a trial."""
ROUNDS_LIMIT_FACTOR = 3
"""A fit may have this multiple of the rounds that are predicted to fit into its limit, which ends it."""

# Exploration
MAX_TRIALS = 60
"""Boosted trees that are tried."""
EXPLORING_FRACTION = 0.08
"""Limit of the fits that run at the same time while the number of leaves is searched, as a fraction of the budget."""
MIN_FIT_FRACTION = 0.01
"""Least time that is worth a fit, as a fraction of the budget."""
MIN_EXPLORING_ROUNDS = 25
"""Rounds that such a fit must have: if all rows take too long, candidates are compared on fewer rows, ..."""
MIN_EXPLORING_ROWS = 20_000
"""... but at least on this number."""
PROMOTED_FRACTION = 0.35
"""Limit of longer trials of the best, as a fraction of the time left."""

# The last fits
PLANNED_FRACTION = 0.93
"""Fraction of the budget that is planned; the rest is for what cannot be predicted."""
SAFETY_FACTOR = 0.9
"""Last fits are planned with this fraction of the time left."""
SPARE_FACTOR = 1.5
"""Last fits have this multiple of the rounds that are predicted to fit in, so that no time is wasted."""
MIN_ROUNDS_FRACTION = 0.35
"""Fraction of the best number of rounds for which all rows must leave time; else the last fits have fewer rows."""
RESERVED_MEMBERS = 4
"""Members whose last fits the search leaves time for."""
CUT_RESERVE_FACTOR = 2.0
"""Time reserved for the last fit of a candidate that was still improving, as a multiple of its prediction, ..."""
MAX_RESERVED_FRACTION = 0.5
"""... but at most this fraction of the budget."""
MAX_SLOW_FACTOR = 4.0
"""Time reserved for a last fit with a lower learning rate, as a multiple of its prediction, ..."""
MAX_SLOW_FRACTION = 0.35
"""... but at most this fraction of the budget."""


class Auto:
    """Find a good ranker for a table within a time budget.

    InvalidParameter: the budget is not above 0, n_rare is not from 1 to n_rows, or at_once is below 1.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    n_rare : int
        Number of training rows of the rarer class.
    n_features : int, default=1
    most_categories : int, default=0
        Largest number of categories of a feature; 0 if all are numbers.
    budget_seconds : float, default=60
        Seconds by the clock, from the start of the search to the end of the fits on all training rows.
    window : (float, float), default=(0, 1)
        Window of false positive rates in which candidates are compared; also given to the algorithms that have one.
    figure : Figure, optional
        Figure by which candidates are compared, instead of the area over the window. Its size is a share, since
        validation rows are fewer than all.
    objective : callable (held, scores) -> float, optional
        Metric by which the mean rank is reported; None: the figure, or the area over the window.
    at_once : int, default=1
        Number of trials, and of last fits, that run at the same time.
    can_repeat : bool, default=True
        Whether the rows can be split into folds in more than one way.
    can_split : callable (n_splits, n_repeats, fraction) -> bool, optional
        Whether the rows can be split in this way with both classes on both sides; one split holds out the fraction. If
        not, fewer folds or a holdout are tried.
    random_state : int, default=0
        Seed of the candidates and of the randomised fits.

    Attributes
    ----------
    n_splits : int
        1 for a holdout; 5 folds if there are few rows or positives, fewer if 5 cannot be made; 0 if no rows can be held
        out.
    n_repeats : int
        Number of times that the rows are split into these folds.
    fraction : float
        Fraction of the rows that a holdout sets apart.

    Notes
    -----
    If no rows can be held out, all rows are equal, or the rarer class has fewer than 5 rows, logistic regression is
    chosen without trials.

    A few rounds on a sample measure the time of a round. If the budget is too short for any trial, boosted trees are
    fitted on all rows with as many rounds as there is time for. Otherwise boosted trees with the logistic and with the
    ranking loss are tried first, on all rows. Then the number of leaves is searched upwards and downwards with the
    better loss, each fit within a small fraction of the budget. Fits that were still improving at their limit are tried
    for longer. Then follow random variants of the best: leaves, least weight of a leaf, fractions of rows and features,
    regularisation and loss. Early stopping sets the rounds, the time sets the learning rate.

    Within a fraction of the time the other families are screened by successive halving on rows; those that are clearly
    worse leave.

    At the end, all candidates within two standard errors of the best, by the paired difference in AUC and in the
    window or figure, are *members*. The result is the mean rank of the members, unless the best alone is better by more
    than one standard error. All are fitted again on all rows, with 10 % more rounds than were best on fewer rows; fits
    that were still improving have more rounds, as far as there is time.

    Times enter only through which trials are made and how many rounds they have. Given the trials, the result follows
    bit for bit from rows and seed.

    References
    ----------
    K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
    AISTATS 2016. C. Wang, Q. Wu, M. Weimer and E. Zhu, "FLAML: a fast and lightweight AutoML library", MLSys 2021.
    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from libraries of models", ICML 2004.

    Examples
    --------
    >>> planner = Auto(n_rows=2000, n_rare=300, n_features=10, budget_seconds=30)
    >>> planner.n_splits  # few rows: folds instead of a holdout
    5
    >>> planner.next([], [], elapsed=0.0)[0].label  # the first trial measures the time of a round
    'probe/logistic loss, 8'
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
        figure: Figure | None = None,
        objective: Callable[[HeldOut, Floats], float] | None = None,
        at_once: int = 1,
        can_repeat: bool = True,
        can_split: Callable[[int, int, float], bool] | None = None,
        monotone: Mapping[str | int, Direction] | None = None,
        random_state: int = 0,
    ) -> None:
        if not 0.0 < budget_seconds < math.inf:
            raise InvalidParameter(f"budget_seconds must be greater than 0, got {budget_seconds}")
        if not 1 <= n_rare <= n_rows:
            raise InvalidParameter(f"n_rare must be from 1 to n_rows ({n_rows}), got {n_rare}")
        if at_once < 1:
            raise InvalidParameter(f"at_once must be at least 1, got {at_once}")
        check_seed(random_state)
        if figure is not None:
            check_scale_free(figure)
        self._budget = float(budget_seconds)
        cells = n_rows * n_features
        few = n_rows < FOLDED_BELOW_ROWS or (
            n_rare < FOLDED_BELOW_RARE and cells <= MAX_FOLDED_CELLS
        )
        self.n_splits = N_FOLDS if few else 1
        self.n_repeats = 1
        in_time = int(self._budget / (SECONDS_PER_REPEAT * max(cells / REPEATED_CELLS, 1.0)))
        if few and can_repeat and in_time > 1:
            self.n_repeats = min(
                next((times for most, times in REPEATS if n_rare <= most), 1), in_time
            )
        self.fraction = min(HOLDOUT_FRACTION, MAX_HELD_OUT_ROWS / n_rows)
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
        self._evaluator = Evaluator(window, figure)
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
        self._constraints: dict[str, Any] = {"monotone": dict(monotone)} if monotone else {}
        left_out = [c.algorithm for c in self._others if monotone and not keeps_order(c)]
        self._others = [c for c in self._others if c.algorithm not in left_out]
        self._note = f"left out, for they keep no monotone constraints: {', '.join(left_out)}"
        self.rungs = screening_shares(n_rows * learnt, n_rare * learnt)
        self._others_share = OTHERS_FRACTION_FEW_ROWS if self.rungs == [1.0] else OTHERS_FRACTION

    def next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        """Return the next trials or the choice; see `Planner.next`.

        With `elapsed` beyond the budget the search ends with what there is time for, with `CHOOSE_NOW` with the best
        candidate tried.
        """
        found = self._next(tried, held, elapsed)
        if isinstance(found, Chosen) and self._constraints:
            return replace(found, notes=(*found.notes, self._note))
        return found

    def _next(
        self, tried: Sequence[TrialResult], held: Sequence[HeldOut], elapsed: float
    ) -> Sequence[Trial] | Chosen:
        if not self._splits:
            return self._plain()
        history = TrialHistory(tried, self._others)
        left = PLANNED_FRACTION * self._budget - elapsed
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
        """Return the boosted trees tried on all rows, best first, and the predicted seconds of the last fits."""
        if not history.finished(FULL):
            return [], 0.0
        results, evaluation = evaluate_stage(history, FULL, held, self._evaluator, self.n_repeats)
        order = np.argsort(-evaluation.relative_area(), kind="stable").tolist()
        as_good = [k for k in order if evaluation.gap_in_se(k, order[0]) <= MAX_MEMBER_GAP]
        seconds = [self._final_seconds(results[k]) for k in as_good[:RESERVED_MEMBERS]]
        if results[order[0]].may_improve and len(self._splits) == 1:
            last_fits = CUT_RESERVE_FACTOR * max(seconds[: self._at_once])
            last_fits = min(last_fits, MAX_RESERVED_FRACTION * self._budget)
        else:
            last_fits = max(seconds[0], sum(seconds) / self._at_once)
            slower = _rate(results[order[0]]) / SLOW_RATE
            wanted = min(
                seconds[0] * min(slower, MAX_SLOW_FACTOR), MAX_SLOW_FRACTION * self._budget
            )
            last_fits = max(last_fits, wanted)
        trees = [results[k] for k in order if results[k].candidate.kind == BOOSTED]
        return trees, last_fits

    def _probe(self, left: float) -> Trial:
        """Return a trial of a few rounds on a sample, which measures the time of a round."""
        fraction = min(PROBE_CELLS / (self._n_rows * self._n_features), 1.0)
        limit = PROBE_FRACTION * left
        return self._trial(
            self._default(),
            PROBE,
            fraction,
            limit,
            0,
            n_rounds=PROBE_ROUNDS,
            learning_rate=DEFAULT_RATE,
        )

    def _first(self, history: TrialHistory, left: float) -> Sequence[Trial] | Chosen | None:
        """Return the first trials on all rows, or the choice if there is no time for any; None once they were made.

        They are of two losses, or, if a feature has many categories, of the two ways to code it, which differ by more.
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
        limit = (FIRST_FRACTION if len(self._splits) == 1 else FIRST_FRACTION_FOLDS) * left
        if self._affordable(history, self._base_leaves, limit, len(todo)) < MIN_ROUNDS:
            return self._untried(history, left) if not history.finished(FULL) else None
        return self._ask(history, todo, limit)

    def _first_of_few(self, history: TrialHistory, left: float) -> list[Trial] | None:
        """Return trials of logistic regression on all splits if there are few rows; None if it was tried."""
        linear = self._others[0]
        if self.rungs != [1.0] or history.has(FULL, linear.name):
            return None
        of_time = FIRST_FRACTION if len(self._splits) == 1 else FIRST_FRACTION_FOLDS
        limit = of_time * left * self._at_once / len(self._splits)
        return [self._trial(linear, FULL, self._fraction(history), limit, k) for k in self._splits]

    def _untried(self, history: TrialHistory, left: float) -> Chosen:
        """Return the choice of boosted trees without a trial, with as many rounds as there is time for."""
        candidate = self._default()
        cost = history.fit_cost(self._base_leaves)
        n_rounds = round(DEFAULT_LEARNING / DEFAULT_RATE)
        if cost is not None:
            in_time = SAFETY_FACTOR * (left / self._to_all - cost.setup) / cost.per_round
            n_rounds = round(min(max(in_time, MIN_ROUNDS), MAX_UNTRIED_ROUNDS))
        parameters = {
            **self._parameters(candidate),
            "n_rounds": n_rounds,
            "learning_rate": min(max(DEFAULT_LEARNING / n_rounds, MIN_RATE), MAX_RATE),
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
        """Return the choice of the simplest ranker, for rows that cannot be split."""
        algorithm = self._others[0].algorithm
        if self._n_rare < MIN_RARE:
            rows = "1 row" if self._n_rare == 1 else f"{self._n_rare} rows"
            why = f"the rarer class has {rows} to learn from, fewer than {MIN_RARE}"
        else:
            why = (
                "all rows are alike, or no part of them can be held out with both classes, and with whole groups, on "
                "both sides"
            )
        row = LeaderboardRow(
            algorithm, self._constraints, state="chosen", reason="the plainest one, not tried"
        )
        note = (
            f"{why}: no rankers were compared, {algorithm} was fitted as the plainest one. "
            "Take what it says for a guess until there are more rows"
        )
        return Chosen((Member(algorithm, self._constraints),), (row,), (note,))

    def _screen(
        self, history: TrialHistory, held: Sequence[HeldOut], left: float, elapsed: float
    ) -> list[Trial] | None:
        """Return the next trials of the other families, as long as these have taken little of the time; else None."""
        alive, stage, fraction = self._screened(history, held)
        todo = [c for c in alive if not history.has(stage, c.name)]
        splits = self._splits if stage == FULL else range(1)
        spent = sum(history.seconds(c.name) for c in self._others) / self._at_once
        room = min(
            self._others_share * max(elapsed, MIN_ELAPSED_FRACTION * self._budget) - spent, left
        )
        trials: list[Trial] = []
        for candidate in todo:
            last = history.last(candidate.name)
            one = max((each.seconds / each.trial.rows for each in last), default=0.0) * fraction
            seconds = one * len(splits) / self._at_once
            if seconds > room or room <= 0.0:
                continue
            limit = max(SCREENING_FIT_FRACTION * self._budget, 3.0 * one)
            trials += [self._trial(candidate, stage, fraction, limit, split) for split in splits]
            room -= seconds
            if len(trials) >= self._at_once:
                break
        return trials or None

    def _screened(
        self, history: TrialHistory, held: Sequence[HeldOut]
    ) -> tuple[Sequence[Candidate], str, float]:
        """Return the other families that have not left, their stage, and its fraction of the rows."""
        alive: Sequence[Candidate] = self._others
        for number, fraction in enumerate(self.rungs):
            stage = f"rung {number + 1}"
            if any(not history.has(stage, c.name) for c in alive):
                return alive, stage, fraction
            alive = advance(history, stage, held, self._evaluator)
        return alive, FULL, self._fraction(history)

    def _explore(
        self,
        history: TrialHistory,
        trees: Sequence[CandidateResult],
        left: float,
        search_left: float,
    ) -> list[Trial] | None:
        """Return trials of more boosted trees; None if these and the last fits are not predicted to end in time."""
        if not trees or len(trees) >= MAX_TRIALS:
            return None
        best = trees[0]
        still_improving = is_cut(best.tried)
        limit = EXPLORING_FRACTION * self._budget
        if not still_improving:
            limit = max(limit, 1.5 * self._seconds(best))
        limit = min(limit, search_left)
        beside = (
            candidate
            for candidate in self._beside(best.candidate, history)
            if self._affordable(history, candidate.leaves, limit, self._at_once) >= MIN_ROUNDS
        )
        proposals = list(islice(beside, self._at_once))
        if not proposals and still_improving:
            # a longer trial needs a last fit that is longer by the same factor
            limit = min(PROMOTED_FRACTION * left, left / (1.0 + ROUNDS_FACTOR * self._to_all))
            if limit < 2.0 * max(self._seconds(result) for result in trees[: self._at_once]):
                return None
            proposals = [_again(result.candidate, history) for result in trees[: self._at_once]]
        elif not proposals:
            proposals = self._changes(trees, history)
        wanted = min(self._seconds(best) * len(proposals), EXPLORING_FRACTION * self._budget)
        if limit < max(0.6 * wanted, MIN_FIT_FRACTION * self._budget):
            return None
        return self._ask(history, proposals, limit) or None

    def _beside(self, best: Candidate, history: TrialHistory) -> Iterator[Candidate]:
        """Yield candidates near the best that were not tried.

        The other coding of many categories, crosses of categories, trees of more and of fewer leaves, the other losses,
        one changed parameter.
        """
        index = LEAF_COUNTS.index(best.leaves)
        steps = (2, 4, -2, 1, -1) if self._n_rows >= ROWS_FOR_LARGE_STEPS else (2, -2, 1, -1)
        max_leaves = max(MAX_LEAVES_PER_ROW * self._n_rows, LEAF_COUNTS[1])
        others = []
        if self._many_categories:
            loss = next(iter(LOSSES))
            others.append(boosted(loss, self._base_leaves, self._n_rows, encoded=False))

        def varied(
            loss: str, leaves: int, encoded: bool = best.encoded, crosses: int = best.crosses
        ) -> Candidate:
            return boosted(loss, leaves, self._n_rows, encoded=encoded, crosses=crosses)

        if self._most_categories > 1:
            others.append(varied(best.loss, best.leaves, crosses=CROSSES))
        for step in steps:
            if 0 <= index + step < len(LEAF_COUNTS) and LEAF_COUNTS[index + step] <= max_leaves:
                leaves = LEAF_COUNTS[index + step]
                others.append(varied(best.loss, leaves))
        others += [varied(loss, best.leaves) for loss in LOSSES]
        if self._many_categories:
            others.append(varied(best.loss, best.leaves, encoded=not best.encoded))
        yield from (candidate for candidate in others if not history.has(FULL, candidate.name))
        known = {_key(c) for c in history.candidates if c.kind == BOOSTED}
        for candidate in neighbours(best, most_categories=self._most_categories):
            if _key(candidate) not in known:
                yield candidate

    def _changes(self, trees: Sequence[CandidateResult], history: TrialHistory) -> list[Candidate]:
        """Return random variants of the best three that were not tried."""
        number = history.count_drawn()
        known = {_key(result.candidate) for result in trees}
        variants: list[Candidate] = []
        for k in range(50):
            draw = np.random.Generator(np.random.Philox(key=[self._seed % 2**64, 64 * number + k]))
            parent = trees[min(int(draw.geometric(0.5)), 3, len(trees)) - 1].candidate
            variant = mutate(parent, draw, f"{DRAWN}{number + len(variants) + 1}")
            if _key(variant) not in known:
                known.add(_key(variant))
                variants.append(variant)
            if len(variants) == self._at_once:
                break
        return variants

    def _ask(
        self, history: TrialHistory, candidates: Sequence[Candidate], limit: float
    ) -> list[Trial]:
        """Return trials of boosted trees on all rows and splits, which together end within `limit` seconds."""
        trials = []
        fraction = self._fraction(history)
        waves = math.ceil(len(candidates) * len(self._splits) / self._at_once)
        for candidate in candidates:
            # a longer trial or a random variant may need more time than there is: its limit ends it
            rounds = max(self._affordable(history, candidate.leaves, limit, len(candidates)), 1)
            needed = LEARNING_FACTOR * history.learning(
                candidate.leaves, CUT_FACTOR, DEFAULT_LEARNING
            )
            run: dict[str, Any] = {"learning_rate": min(max(needed / rounds, MIN_RATE), MAX_RATE)}
            rate, patience, along = run["learning_rate"], None, candidate
            if len(self._splits) == 1:
                patience = round(min(max(PATIENCE_LEARNING / rate, MIN_PATIENCE), MAX_PATIENCE))
                run["n_rounds"] = min(ROUNDS_LIMIT_FACTOR * rounds, MAX_ROUNDS)
            else:
                # all folds are evaluated after the same rounds: one fold alone is too noisy to stop by
                last = min(rounds, math.ceil(needed / rate), MAX_ROUNDS)
                path = sorted({max(round(part * last), 1) for part in PATH_FRACTIONS})
                along = replace(candidate, path=tuple(path))
            trials += [
                self._trial(along, FULL, fraction, limit / waves, split, patience, **run)
                for split in self._splits
            ]
        return trials

    def _affordable(
        self, history: TrialHistory, leaves: int, limit: float, n_candidates: int
    ) -> int:
        """Return the number of rounds of a fit, if all splits of all candidates are fitted within `limit` seconds."""
        if limit <= 0.0:
            return 0
        cost = history.fit_cost(leaves)
        if cost is None:  # the probe failed, by its time limit or for another reason
            return 0 if history.ran_out(PROBE) else round(DEFAULT_LEARNING / DEFAULT_RATE)
        waves = math.ceil(n_candidates * len(self._splits) / self._at_once)
        seconds = limit / waves - cost.setup
        return max(int(seconds / (cost.per_round * self._fraction(history))), 0)

    def _fraction(self, history: TrialHistory) -> float:
        """Return the fraction of the rows that rankers are compared on: all, unless the time is too short for that."""
        if (fraction := history.fraction) is not None:
            return fraction
        cost = history.fit_cost(self._base_leaves)
        if cost is None or len(self._splits) > 1:
            return 1.0
        rounds = EXPLORING_FRACTION * self._budget / cost.per_round
        return min(max(rounds / MIN_EXPLORING_ROUNDS, MIN_EXPLORING_ROWS / self._n_rows), 1.0)

    @property
    def _base_leaves(self) -> int:
        return 8 if self._n_rows < ROWS_FOR_31_LEAVES else 31

    def _default(self) -> Candidate:
        return boosted(next(iter(LOSSES)), self._base_leaves, self._n_rows)

    def _seconds(self, result: CandidateResult) -> float:
        """Return the seconds of a candidate's trials, divided by the number of fits that run at the same time."""
        return sum(one.seconds for one in result.tried) / self._at_once

    def _final_seconds(self, result: CandidateResult) -> float:
        """Return the predicted seconds of a fit on all training rows."""
        setup = max(one.setup for one in result.tried) / result.tried[0].trial.rows
        seconds = float(np.mean([one.seconds / one.trial.rows for one in result.tried])) - setup
        if result.candidate.kind == BOOSTED:
            fitted = float(np.mean([one.fitted for one in result.tried]))
            seconds *= ROUNDS_FACTOR * best_rounds(result.tried) / max(fitted, 1.0)
        elif result.candidate.kind == LINEAR and result.candidate.path:
            # each C was a fit of its own; the chosen one may be the longest
            return self._to_all * (setup + seconds) * min(2.0 / len(result.candidate.path), 1.0)
        return self._to_all * (setup + seconds)

    def _end(
        self, history: TrialHistory, held: Sequence[HeldOut], left: float, *, now: bool
    ) -> Chosen:
        """Return the choice that ends the search."""
        untried = not history.names(FULL) or history.ran_out(FULL)
        if untried and not history.finished(FULL):
            return self._untried(history, left)
        alive, _, _ = self._screened(history, held)

        def predicted(result: CandidateResult) -> float:
            """Return the least seconds of the last fit: improving boosted trees may have fewer rows or rounds."""
            seconds = self._final_seconds(result)
            return (
                seconds * result.tried[0].trial.rows / self._to_all
                if result.may_improve
                else seconds
            )

        waiting = frozenset(c.name for c in alive if not history.has(FULL, c.name))
        context = SelectionContext(
            self._evaluator,
            self._objective,
            left,
            self._at_once,
            self.n_repeats,
            predicted,
            waiting,
            now,
        )
        chosen, results = finish(history, held, context)
        return chosen if now else self._go_further(chosen, results, left)

    def _go_further(
        self, chosen: Chosen, results: Sequence[CandidateResult], left: float
    ) -> Chosen:
        """Return the choice with rounds, or rows, that fill the time left, if all members were still improving."""
        if len(chosen.members) > self._at_once or not all(e.may_improve for e in results):
            return chosen
        ratio = SAFETY_FACTOR * left / max(self._final_seconds(result) for result in results)
        rows = 1.0
        if ratio < MIN_ROUNDS_FRACTION:  # many rounds on some rows are better than few on all
            tried = results[0].tried[0].trial.rows
            rows = min(max(ratio, tried), 1.0)
            ratio = min(max(ratio, MIN_ROUNDS_FRACTION * tried) / rows, 1.0)
        cut_factor = CUT_FACTOR if len(self._splits) == 1 else CUT_FACTOR_FOLDS
        more = min(ratio, cut_factor)
        members = []
        for member, result in zip(chosen.members, results, strict=True):
            # more rounds than predicted are planned, to use all the time: the limit ends them
            wanted = (
                ROUNDS_FACTOR * min(more * SPARE_FACTOR, cut_factor) * best_rounds(result.tried)
            )
            n_rounds = max(round(wanted), MIN_ROUNDS)
            rate = min(member.parameters["learning_rate"] * max(1.0 / more, 1.0), MAX_RATE)
            if more > 1.0:  # one half goes into more learning, the other into smaller steps
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

    def _parameters(self, candidate: Candidate) -> dict[str, Any]:
        """Return the parameters of a candidate, with the seed and the constraints."""
        return {**seeded(candidate, self._seed), **self._constraints}

    def _trial(
        self,
        candidate: Candidate,
        stage: str,
        fraction: float,
        limit: float,
        split: int,
        patience: int | None = None,
        **run: Any,
    ) -> Trial:
        parameters = {**self._parameters(candidate), **run}
        label = f"{stage}/{candidate.name}"
        path = candidate.path
        return Trial(
            candidate.algorithm, parameters, path, fraction, split, True, limit, label, patience
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
    figure: Figure | None = None,
    monotone: Mapping[str | int, Direction] | None = None,
    random_state: int = 0,
    callback: Callback = ignore,
) -> Searched:
    """Return the result of an automatic search within a time budget; see `Auto`.

    Parameters
    ----------
    X, y, sample_weight, group, fpr_min, fpr_max, figure, random_state, callback
        As `search_ranker`.
    budget_seconds : float, default=60
        Seconds by the clock, including the fits on all rows.
    monotone : mapping of str or int to "increasing" or "decreasing", optional
        Monotone constraints, which every candidate keeps; algorithms that cannot are left out, and a note says which.
        See `core.base.monotone`.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():  # four rows per class are too few to compare rankers
    ...     warnings.simplefilter("ignore")
    ...     searched = auto_ranker([[1.0], [2.0], [3.0], [4.0]] * 2, [0, 0, 1, 1] * 2)
    >>> searched.chosen.members[0].algorithm
    'logistic'
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
        figure=figure,
        at_once=count_at_once(*rows.matrix.shape),
        can_split=partial(_can_split, rows, random_state),
        monotone=monotone,
        random_state=random_state,
    )
    n_categories = np.zeros(rows.matrix.shape[1], dtype=np.int64)
    n_categories[: len(rows.categories)] = [len(known or ()) for known in rows.categories]
    find_directions(monotone, rows.names, n_categories)
    start = perf_counter()
    chosen, tried = run_search(rows, planner, window, figure, random_state, callback)
    for note in chosen.notes:
        if not planner.n_splits or note.startswith(NO_TREES_NOTE):
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
    """Return the (n_splits, n_repeats) to try in turn until the rows can be split."""
    fewer = [(n_splits, n_repeats), (n_splits, 1), (3, 1), (2, 1), (1, 1)]
    return [wanted for wanted in dict.fromkeys(fewer) if wanted[0] <= n_splits]


def _rate(result: CandidateResult) -> float:
    rate: float = result.parameters.get("learning_rate", SLOW_RATE)
    return rate


def _again(candidate: Candidate, history: TrialHistory) -> Candidate:
    """Return the candidate under a name that was not tried."""
    number = 2
    while history.has(FULL, f"{candidate.name}, try {number}"):
        number += 1
    return replace(candidate, name=f"{candidate.name}, try {number}")


def _key(candidate: Candidate) -> str:
    return repr((candidate.algorithm, sorted(candidate.parameters.items())))


def screening_shares(n_rows: float, n_rare: float) -> list[float]:
    """Return the fractions of the inner training rows on the rungs of the screening, ascending; [1.0] for few rows.

    The first rung has at least `MIN_RUNG_ROWS` rows and `MIN_RUNG_RARE` of the rarer class, each next one `RUNG_FACTOR`
    times as many, up to less than half of the rows.
    """
    fraction = max(MIN_RUNG_ROWS / n_rows, MIN_RUNG_RARE / n_rare)
    rungs = []
    while fraction < 0.5:
        rungs.append(fraction)
        fraction *= RUNG_FACTOR
    return rungs or [1.0]
