"""The leaderboard: comparison of candidates on validation rows, and the choice of one ranker or an ensemble.

The choice is between the best candidate alone and the mean rank of those that are not significantly worse. Half of a
member's weight says how near to the best it is, the other half how often greedy selection takes it.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from core.base.ranker import Floats
from core.metrics import auc
from core.metrics.estimates import Estimates, difference_error
from core.metrics.functionals.base import Metric
from core.metrics.groups import check_rows
from core.metrics.intervals import estimate_areas
from core.metrics.measuring import estimate_metrics
from core.metrics.window import WHOLE
from core.registry import ALGORITHMS

from .candidates import Candidate, TrialHistory, best_on_path, best_rounds, is_cut, key_of
from .planner import Chosen, LeaderboardRow, Member, Note, NoteKind, NothingFitted, RowState
from .trial import HeldOut, TrialResult, draw_rows, path_parameter, value_of

Scores = Sequence[Floats]
"""The validation rows' scores of one candidate, split by split."""

MAX_MEMBER_GAP = 3.0
"""Largest gap to the best, in standard errors, of a member."""
MIN_GAP_TOLD = 0.05
"""Standard errors below which two candidates are called equally good."""
MIN_SINGLE_LEAD = 1.0
"""Standard errors by which the best alone must be ahead of the mean rank to replace it."""
SELECTIONS = 8
"""Greedy selections of a member: half of its weight is how often it was selected."""
SELECTION_ROWS = 10_000
"""Validation rows of these selections, of all splits together: more take time and change little."""
MAX_MEMBERS = 20
"""Members of a mean rank, copies included: each is fitted, stored and scored."""
MEMBERS_TIME_FRACTION = 0.5
"""Fraction of the remaining time that the members may take as they were tried: the rest is for smaller steps."""
MAX_COPIES = 2
"""Copies of a member with other seeds: a third one hardly reduces the variance further."""

RANK_MICROSECONDS = 0.17
"""µs in which a member's score becomes a rank."""
COPY_SEED_STEP = 1_000_003
"""Difference between the seeds of two copies."""
SLOW_RATE = 0.04
"""Learning rate down to which the last fits slow down if there is time."""
SLOW_TIME_FRACTION = 0.85
"""Fraction of the remaining time that slower last fits may take."""
MIN_SETUP_ROUNDS = 5
"""Rounds of a fit from which on its setup is known: of a single round, setup and steps cannot be told apart."""
ROUNDS_FACTOR = 1.1
"""All rows are more than the inner training rows, and are given this multiple of the best number of rounds."""
MIN_STOPPED_FRACTION = 0.5
"""A last fit that can be stopped is started if there is at least this fraction of its predicted time."""
ROUNDS = "n_rounds"
BEST_SINGLE = "the best single candidate"
"""The parameter that boosters have a path along."""


@dataclass(frozen=True)
class CandidateMetrics:
    """Estimates of the AUC, and of the partial AUC or a metric, of candidates on the same validation rows."""

    areas: Sequence[Estimates]
    """Of each candidate, mean over the splits: 0 is the AUC, 1 the area over the window, or the figure."""

    def relative_area(self) -> Floats:
        """Return the ranking criterion, shape (n_candidates,): the sum of both metrics, each divided by its maximum."""
        values = np.concatenate([each.values for each in self.areas])
        relative: Floats = (values / np.maximum(values.max(axis=0), 1e-12)).sum(axis=1)
        return relative

    def gap_in_se(self, candidate: int, other: int) -> float:
        """Return how far a candidate is below another, in standard errors: the larger of the gaps in both metrics.

        Of the gaps in the AUC and in the area over the window, or the figure, it is the larger one.
        """
        return max(self._gap_in_se(candidate, other, j) for j in (0, 1))

    def _gap_in_se(self, candidate: int, other: int, j: int) -> float:
        own, others = self.areas[candidate], self.areas[other]
        gap = float(others.values[0, j] - own.values[0, j])
        if own.influence is None or others.influence is None:
            return gap  # a class of one unit: the error is taken as 1, its maximum
        return gap / max(difference_error(others.influence[0, j], own.influence[0, j]), 1e-9)


class Evaluator:
    """Evaluates candidates by the AUC, and by the partial AUC or another metric; caches their estimates."""

    def __init__(self, window: tuple[float, float], metric: Metric | None = None) -> None:
        self.window = window
        self.metric = metric
        self._known_sizes: dict[Hashable, Estimates] = {}

    def value(self, held: HeldOut, scores: Floats) -> float:
        """Return the objective (the metric, or the partial AUC over the window) of scores on validation rows."""
        return value_of(held, scores, self.window, self.metric)

    def values(self, held: Sequence[HeldOut], scores: Scores) -> tuple[float, float]:
        pairs = list(zip(held, scores, strict=True))
        areas = [auc(split.y, own, split.weight) for split, own in pairs]
        return float(np.mean(areas)), float(np.mean([self.value(*pair) for pair in pairs]))

    def evaluate(
        self,
        held: Sequence[HeldOut],
        candidates: Sequence[tuple[Hashable, Scores]],
    ) -> CandidateMetrics:
        """Return the estimates of candidates, given as (key, scores), on the same splits.

        The areas of a key that was seen before are reused; the key None is never reused.

        Areas are means over the splits, and the variance is that of a mean of independent estimates: it ignores that
        the training rows of the splits overlap. O(n log n) for each new candidate.
        """
        evaluated = []
        for key, scores in candidates:
            found = self._known_sizes.get(key)
            if found is None:
                found = _estimate(held, scores, self.window, self.metric)
                if key is not None:
                    self._known_sizes[key] = found
            evaluated.append(found)
        return CandidateMetrics(evaluated)


class CandidateResult(NamedTuple):
    """A candidate with the results of its trials."""

    candidate: Candidate
    tried: Sequence[TrialResult]
    """One per split."""
    path_index: int
    """Index of the best value of its path; 0 without a path."""

    @property
    def scores(self) -> list[Floats]:
        return [one.scores[self.path_index] for one in self.tried]

    @property
    def may_improve(self) -> bool:
        return self.candidate.is_boosted and (is_cut(self.tried) or self.tried[0].trial.rows < 1.0)

    def setup(self, to_all: float) -> float:
        """Return the predicted seconds of a fit on `to_all` times the rows, without those spent per round."""
        setups = [
            one.setup / one.trial.rows for one in self.tried if one.fitted >= MIN_SETUP_ROUNDS
        ]
        return to_all * min(setups, default=0.0)

    def member(self, weight: float = 1.0) -> Member:
        """Return the ranker to fit on all rows, as a member of the final choice with this weight."""
        return Member(self.candidate.algorithm, self.parameters, weight)

    @property
    def parameters(self) -> Mapping[str, Any]:
        trial = self.tried[0].trial
        if self.candidate.is_boosted:
            n_rounds = max(round(ROUNDS_FACTOR * best_rounds(self.tried)), 1)
            return {**trial.parameters, ROUNDS: n_rounds}
        along = path_parameter(ALGORITHMS[trial.algorithm])
        if not trial.path or along is None:
            return trial.parameters
        value = trial.path[self.path_index]
        return {
            **trial.parameters,
            along: round(ROUNDS_FACTOR * value) if along == ROUNDS else value,
        }


@dataclass(frozen=True)
class SelectionContext:
    """Inputs of the final choice other than the trials: objective, time left, scoring cost limit."""

    evaluator: Evaluator
    objective: Callable[[HeldOut, Floats], float] | None
    """Metric of the mean rank; None: that of the evaluator."""
    left: float
    """Seconds left for the last fits."""
    at_once: int
    """Number of fits that run at the same time."""
    seconds: Callable[[CandidateResult], float]
    """Predicts the seconds of a candidate's last fit."""
    to_all: float
    """Training rows, divided by those of a trial."""
    cost: Callable[[Member], float]
    """Predicts the µs in which a member scores a row."""
    max_cost: float
    """Largest predicted µs in which what is chosen may score a row."""
    planned: Sequence[Candidate]
    """All candidates that were tried, and those that would have been with more time."""
    now: bool = False
    """Whether the search was asked to end: the best alone is then chosen, as it was tried, whatever time is left."""

    @property
    def work(self) -> float:
        """Seconds of computation left, summed over all fits that run in parallel."""
        return self.left * self.at_once

    def total(self, members: Sequence[Member]) -> float:
        return total_cost(members, self.cost)

    def value(self, held: Sequence[HeldOut], scores: Sequence[Floats]) -> float:
        objective = self.objective or self.evaluator.value
        return float(
            np.mean([objective(split, own) for split, own in zip(held, scores, strict=True)])
        )


def total_cost(members: Sequence[Member], cost: Callable[[Member], float]) -> float:
    """Return the predicted microseconds in which all members score one row, given a function for one member."""
    ranks = RANK_MICROSECONDS * len(members) if len(members) > 1 else 0.0
    return sum(map(cost, members)) + ranks


def goes_further(results: Sequence[CandidateResult], at_once: int) -> bool:
    """Return True if extra time should go to more rounds or rows, not to smaller steps and copies."""
    return len(results) <= at_once and all(result.may_improve for result in results)


def _is_drawn(member: Member) -> bool:
    """Return True if the member's algorithm is randomised: another seed gives another ranker."""
    return (
        "random_state" in member.parameters and float(member.parameters.get("subsample", 1.0)) < 1.0
    )


def finish(
    history: TrialHistory, held: Sequence[HeldOut], context: SelectionContext
) -> tuple[Chosen, list[CandidateResult], bool]:
    """Return the final choice, its members' results, and whether more time would not change it.

    NothingFitted: no trial succeeded.
    """
    if not history.finished():
        tried = [
            one.failed for name in history.candidates for one in history.of(name) if one.failed
        ]
        first = tried[0] if tried else "no time was left for any"
        raise NothingFitted(
            f"none of the {len(context.planned)} candidates could be fitted and evaluated; the first: {first}"
        )
    results, evaluation = evaluate_all(history, held, context.evaluator)
    timeless = replace(context, left=math.inf)
    members = _choose(results, evaluation, context)
    is_complete = members == _choose(results, evaluation, timeless)
    decision = _decide(results, members, evaluation, held, context)
    rows = _fill_board(history, results, evaluation, context.planned)
    weights, average = decision.weights, list[LeaderboardRow]()
    if len(weights) > 1:
        average = [_average(results, decision, held, context)]
        if average[0].state == "left":
            weights = {decision.best: 1.0}
    for k, result in enumerate(results):
        name = result.candidate.name
        state: RowState = "chosen" if k in weights else "left"
        rows[name] = replace(rows[name], state=state, reason=_explain(results, decision, k))
    own = [results[k] for k in weights]
    single = [results[k].member(weight) for k, weight in weights.items()]
    chosen = single
    if not (context.now or goes_further(own, context.at_once)):
        chosen = _reseed(*_slow_down(single, own, context), context)
        is_complete &= chosen == _reseed(*_slow_down(single, own, timeless), timeless)
    ranked = sorted(rows.values(), key=lambda row: (row.value is None, -(row.value or 0.0)))
    board = (*average, *ranked)
    notes: tuple[Note, ...] = ()
    if (copies := len(chosen) - len(single)) > 0:
        text = (
            f"{copies} of the {len(chosen)} rankers in the mean rank {'is' if copies == 1 else 'are'} another ranker "
            "refitted with a different random seed. This makes the mean more stable, and you need to do nothing"
        )
        notes = (Note(NoteKind.COPIES, text),)
    if (why := history.trees_failed()) is not None:
        text = f"all boosted trees failed, so only the other algorithms were compared: {why}"
        notes = (Note(NoteKind.NO_TREES, text), *notes)
    return Chosen(tuple(chosen), board, notes), own, is_complete


class Decision(NamedTuple):
    """The chosen candidates, as indices of results, with their weights and gaps to the best."""

    best: int
    gap_in_se: list[float]
    """Gap of each result to the best, in standard errors."""
    weights: dict[int, float]
    """Weights of the members in the mean rank, the greatest first."""


def _choose(
    results: Sequence[CandidateResult], evaluation: CandidateMetrics, context: SelectionContext
) -> list[int]:
    seconds = [context.seconds(result) for result in results]
    order = np.argsort(-evaluation.relative_area(), kind="stable").tolist()
    # a fit that can be stopped may have less time than it needs
    needed = [
        s * (MIN_STOPPED_FRACTION if ALGORITHMS[e.candidate.algorithm].keeps_when_stopped else 1.0)
        for e, s in zip(results, seconds, strict=True)
    ]
    single = [result.member() for result in results]
    cheap = [k for k in order if context.total([single[k]]) <= context.max_cost]
    if not cheap:  # the cheapest; `finish` says so
        cheap = [min(order, key=lambda k: context.total([single[k]]))]
    in_time = [k for k in cheap if context.now or needed[k] <= context.left]
    # boosted trees can be stopped when the time is up
    trees = [k for k in cheap if results[k].candidate.is_boosted]
    best = in_time[0] if in_time else min(trees or cheap, key=lambda k: seconds[k])
    if context.now:
        return [best]
    # If the best was still improving, the time is better spent on more rounds. With folds there are few rows, and
    # several members are more stable.
    alone = results[best].may_improve and len(results[best].tried) == 1
    max_members = context.at_once if alone else MAX_MEMBERS
    members = [best]
    for k in cheap:
        more = [*members, k]
        if (
            k != best
            and evaluation.gap_in_se(k, best) <= MAX_MEMBER_GAP
            and len(more) <= max_members
            and seconds[k] <= context.left
            and sum(seconds[m] for m in more) <= MEMBERS_TIME_FRACTION * context.work
            and context.total([single[m] for m in more]) <= context.max_cost
        ):
            members = more
    return members


def _decide(
    results: Sequence[CandidateResult],
    members: Sequence[int],
    evaluation: CandidateMetrics,
    held: Sequence[HeldOut],
    context: SelectionContext,
) -> Decision:
    """Return the decision: the best candidate, and the weights of an ensemble with those near it."""
    best = members[0]
    gaps = [evaluation.gap_in_se(k, best) for k in range(len(results))]
    splits = [held[one.trial.split] for one in results[best].tried]
    near = np.array([math.exp(-0.25 * max(gaps[k], 0.0) ** 2) for k in members])
    taken = select_members([results[k].scores for k in members], splits, context)
    weights = 0.5 * near / near.sum() + 0.5 * taken
    order = np.argsort(-weights, kind="stable").tolist()
    return Decision(best, gaps, {members[m]: float(weights[m]) for m in order})


def select_members(
    members: Sequence[Scores], held: Sequence[HeldOut], context: SelectionContext
) -> Floats:
    """Return each member's fraction of the picks of greedy ensemble selection with replacement.

    Each selection takes the member with which the mean rank of those taken is best on the validation rows, the first
    among equals.

    R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes, "Ensemble selection from libraries of models", ICML 2004.
    """
    if len(members) == 1:
        return np.ones(1)
    share = min(SELECTION_ROWS / sum(len(split.y) for split in held), 1.0)
    rows = [draw_rows(split.y, share, seed=0) for split in held]
    drawn = [split.take(own) for split, own in zip(held, rows, strict=True)]
    ranks = [
        mean_rank([[each[own] for each, own in zip(scores, rows, strict=True)]], [1.0])
        for scores in members
    ]
    alone = [context.evaluator.values(drawn, own) for own in ranks]
    scale = np.maximum(np.max(alone, axis=0), 1e-12)
    counts, total = np.zeros(len(members)), [np.zeros(len(own)) for own in rows]
    for _ in range(SELECTIONS):
        merits = []
        for own in ranks:
            together = [one + each for one, each in zip(total, own, strict=True)]
            merits.append(float((context.evaluator.values(drawn, together) / scale).sum()))
        best = int(np.argmax(merits))
        counts[best] += 1.0
        total = [one + each for one, each in zip(total, ranks[best], strict=True)]
    return counts / SELECTIONS


def _explain(results: Sequence[CandidateResult], decision: Decision, k: int) -> str:
    if k == decision.best:
        return BEST_SINGLE
    gap = _gap_in_words(decision.gap_in_se[k])
    near = decision.gap_in_se[k] <= MAX_MEMBER_GAP and k not in decision.weights
    return (
        f"{gap}; not included, because the budget has no time for it or it scores too slowly"
        if near
        else gap
    )


def _gap_in_words(gap: float) -> str:
    if abs(gap) < MIN_GAP_TOLD:
        return f"as good as {BEST_SINGLE}"
    than = "worse" if gap > 0.0 else "better"
    return f"{than} than {BEST_SINGLE} by {abs(gap):.1f} standard errors"


def evaluate_all(
    history: TrialHistory, held: Sequence[HeldOut], evaluator: Evaluator
) -> tuple[list[CandidateResult], CandidateMetrics]:
    """Return the results of all candidates that did not fail (at least one), and their estimates."""
    results = []
    for candidate in history.finished():
        tried = history.of(candidate.name)
        results.append(CandidateResult(candidate, tried, best_on_path(tried)))
    splits = [held[one.trial.split] for one in results[0].tried]
    scores = [(key_of(result.tried[0]), result.scores) for result in results]
    return results, evaluator.evaluate(splits, scores)


def _slow_down(
    members: Sequence[Member], results: Sequence[CandidateResult], context: SelectionContext
) -> tuple[list[Member], list[float]]:
    """Return members and predicted seconds, with slower learning and more rounds if there is time.

    Trials had to be quick. The same learning in smaller steps ranks no worse, and usually better (J. Friedman, "Greedy
    function approximation", Annals of Statistics 29(5), 2001: §5).
    """
    pairs = [(context.seconds(result), result.setup(context.to_all)) for result in results]
    work = SLOW_TIME_FRACTION * context.work - sum(setup for _, setup in pairs)
    times = min(
        work / max(sum(own - setup for own, setup in pairs), 1e-9),
        *(
            (SLOW_TIME_FRACTION * context.left - setup) / max(own - setup, 1e-9)
            for own, setup in pairs
        ),
        context.max_cost / max(context.total(members), 1e-9),
    )
    slow_members, slow_seconds = [], []
    for member, (own, setup) in zip(members, pairs, strict=True):
        parameters, slower = dict(member.parameters), 1.0
        if "max_leaves" in parameters and times > 1.0:
            slower = max(min(times, parameters["learning_rate"] / SLOW_RATE), 1.0)
            parameters["learning_rate"] /= slower
            parameters[ROUNDS] = int(slower * parameters[ROUNDS])
        slow_members.append(replace(member, parameters=parameters))
        slow_seconds.append(setup + slower * (own - setup))
    return slow_members, slow_seconds


def _reseed(
    members: Sequence[Member], seconds: Sequence[float], context: SelectionContext
) -> list[Member]:
    """Add copies of the randomised members with other seeds, as time and scoring cost allow.

    The mean over seeds has less variance than one seed, so that no copy needs to be evaluated. Copies share the weight
    of their member.
    """
    left = context.work - sum(seconds)
    room = context.max_cost - context.total(members)
    seeds: list[list[int]] = [[member.parameters.get("random_state", 0)] for member in members]
    for _ in range(MAX_COPIES):
        for member, own, cost in zip(members, seeds, seconds, strict=True):
            to_score = context.cost(member) + 2.0 * RANK_MICROSECONDS
            fits = cost <= left and to_score <= room and sum(map(len, seeds)) < MAX_MEMBERS
            if _is_drawn(member) and fits:
                own.append((own[-1] + COPY_SEED_STEP) % 2**32)
                left -= cost
                room -= to_score
    copies: list[Member] = []
    for member, own in zip(members, seeds, strict=True):
        for seed in own:
            more = {"random_state": seed} if "random_state" in member.parameters else {}
            parameters = {**member.parameters, **more}
            copies.append(replace(member, parameters=parameters, weight=member.weight / len(own)))
    return copies


def _average(
    results: Sequence[CandidateResult],
    decision: Decision,
    held: Sequence[HeldOut],
    context: SelectionContext,
) -> LeaderboardRow:
    best, weights = results[decision.best], [*decision.weights.values()]
    splits = [held[one.trial.split] for one in best.tried]
    scores = mean_rank([results[k].scores for k in decision.weights], weights)
    evaluation = context.evaluator.evaluate(splits, [(None, scores), (None, best.scores)])
    together, alone = evaluation.relative_area()
    lead = evaluation.gap_in_se(0, 1)
    names = [results[k].candidate.name for k in decision.weights]
    return LeaderboardRow(
        "rank_average",
        {"members": names, "weights": weights},
        value=context.value(splits, scores),
        auc=float(evaluation.areas[0].values[0, 0]),
        rows=best.tried[0].trial.rows,
        state="left" if alone > together and lead > MIN_SINGLE_LEAD else "chosen",
        reason=_gap_in_words(lead),
    )


def _fill_board(
    history: TrialHistory,
    results: Sequence[CandidateResult],
    evaluation: CandidateMetrics,
    planned: Sequence[Candidate],
) -> dict[str, LeaderboardRow]:
    rows: dict[str, LeaderboardRow] = {}
    for candidate in planned:
        tried = history.of(candidate.name)
        row = LeaderboardRow(candidate.algorithm, candidate.parameters)
        row = replace(row, seconds=history.seconds(candidate.name))
        if not tried:
            row = replace(row, state="untried", reason="no time left in the budget")
        elif failure := next((one.failed for one in tried if one.failed), None):
            row = replace(row, state="failed", reason=failure, rows=tried[0].trial.rows)
        else:  # overwritten below, unless it was too slow to be tried on all folds
            row = replace(row, state="untried", reason="no time left in the budget for all folds")
        rows[candidate.name] = row
    for result in results:
        rows[result.candidate.name] = replace(
            rows[result.candidate.name],
            parameters=result.parameters,
            value=float(np.mean([one.values[result.path_index] for one in result.tried])),
            auc=float(np.mean([one.aucs[result.path_index] for one in result.tried])),
            rows=result.tried[0].trial.rows,
        )
    return rows


def _estimate(
    held: Sequence[HeldOut],
    scores: Scores,
    window: tuple[float, float],
    metric: Metric | None,
) -> Estimates:
    parts = []
    for split, own in zip(held, scores, strict=False):
        rows = check_rows(split.y, {"scores": own}, split.weight, split.group)
        if metric is None:
            parts.append(estimate_areas(rows, (WHOLE, window)))
        else:
            area = estimate_areas(rows, (WHOLE,))
            parts.append(_beside(area, estimate_metrics(rows, [metric])[0]))
    influence = None
    pieces = [part.influence for part in parts if part.influence is not None]
    if len(pieces) == len(parts):
        influence = np.concatenate(pieces, axis=-1) / len(parts)
    values = np.mean([part.values for part in parts], axis=0)
    positives, negatives = np.sum([part.effective for part in parts], axis=0).tolist()
    return Estimates(values, influence, (positives, negatives))


def _beside(area: Estimates, other: Estimates) -> Estimates:
    influence = None
    if area.influence is not None and other.influence is not None:
        influence = np.concatenate([area.influence, other.influence], axis=1)
    values = np.concatenate([area.values, other.values], axis=1)
    return replace(area, values=values, influence=influence)


def mean_rank(members: Sequence[Scores], weights: Sequence[float]) -> list[Floats]:
    from scipy.stats import rankdata

    means = []
    for scores in zip(*members, strict=True):
        ranks = (rankdata(scores, axis=1) - 0.5) / len(scores[0])  # ties share their middle rank
        means.append(np.average(ranks, axis=0, weights=weights))
    return means
