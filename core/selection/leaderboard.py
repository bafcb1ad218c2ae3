"""Candidates beside each other on the rows that were held out: which are as good as the best, and who is chosen.

The mean rank of those that none beats stands beside the best alone.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from core.base.ranker import Floats
from core.metrics import partial_auc
from core.metrics.comparison import difference_error, two_sided
from core.metrics.groups import check_rows
from core.metrics.intervals import Areas, Interval, area_interval, estimate_areas
from core.registry import ALGORITHMS

from .candidates import BOOSTED, FULL, Candidate, TrialHistory, best_rounds, is_cut, place_on_path
from .planner import Chosen, LeaderboardRow, Member, NothingFitted
from .trial import HeldOut, TrialResult, path_parameter

WHOLE = (0.0, 1.0)
Scores = Sequence[Floats]
"""Of one candidate: the held-out rows' scores, split by split."""

MAX_KEPT, KEPT_OF_KIND = 6, 2
"""Of a rung so many go on, and so many of a kind, at most."""
FAR_BEHIND = 2.0
"""Standard errors behind the best of a rung, beyond which none goes on."""

MAX_BEHIND = 2.0
"""Standard errors by which a member may be behind the best."""
AHEAD = 1.0
"""Standard errors by which the best alone must be ahead of the mean rank, to be taken in its place."""
MAX_MEMBERS = 20
MAX_COPIES = 2
NO_TREES = "all boosted trees failed, the choice is among the others"
"""How the note begins that says so."""

_STEP = 1_000_003  # between the seeds of copies
SLOW_RATE, OF_WORK = 0.04, 0.85
"""Learning rate to which the last fits go down where there is time; and the share of the time that they may take."""
MORE_ROUNDS = 1.1
"""All rows are more than the inner training rows, and carry so many more rounds."""
MIN_OF_FIT = 0.5
"""Of the seconds of a last fit, what there must be for one that keeps what it has when it is stopped."""
ROUNDS = "n_rounds"


@dataclass(frozen=True)
class Evaluation:
    """Candidates evaluated on the same held-out rows, over the whole curve and over a window."""

    window: tuple[float, float]
    areas: Sequence[Areas]
    """Of each candidate: over window 0, the whole curve, and window 1, the given one; means over the splits."""

    def relative_area(self) -> Floats:
        """Return what candidates are ordered by: both areas, each as a share of the greatest, added up."""
        values = np.concatenate([each.values for each in self.areas])
        shares: Floats = (values / np.maximum(values.max(axis=0), 1e-12)).sum(axis=1)
        return shares

    def interval(self, candidate: int) -> Interval:
        """Return the 95 % interval of a candidate's area over the window."""
        return area_interval(self.areas[candidate], 0, 1, self.window, 0.95)

    def behind(self, candidate: int, other: int) -> float:
        """Say by how many standard errors a candidate is behind another: in the area where it is more so."""
        return max(self._behind(candidate, other, j) for j in (0, 1))

    def p_value(self, candidate: int, other: int) -> float:
        """Return the two-sided p-value of no difference over the window."""
        return two_sided(self._behind(candidate, other, 1))

    def _behind(self, candidate: int, other: int, j: int) -> float:
        own, others = self.areas[candidate], self.areas[other]
        gap = float(others.values[0, j] - own.values[0, j])
        if own.influence is None or others.influence is None:
            return gap  # a class of one unit: as if the error were 1, as much as it can be
        return gap / max(difference_error(others.influence[0, j], own.influence[0, j]), 1e-9)


class Evaluator:
    """Evaluates candidates beside each other over the whole curve and a window, each of them once."""

    def __init__(self, window: tuple[float, float]) -> None:
        self.window = window
        self._known: dict[Hashable, Areas] = {}

    def evaluate(
        self,
        held: Sequence[HeldOut],
        candidates: Sequence[tuple[Hashable, Scores]],
        n_repeats: int = 1,
    ) -> Evaluation:
        """Evaluate candidates, given as (key, scores), on the same splits.

        A key that was seen is not evaluated again; None is no key. `n_repeats` says how often each row is among those
        held out: as many figures of the same rows are no surer than one.

        Areas are means over the splits, each on its own rows, and their variance that of a mean of independent
        figures: splits learn from rows in common, which it leaves out. O(n log n) for each new candidate.
        """
        found = []
        for key, scores in candidates:
            areas = self._known.get(key)
            if areas is None:
                areas = _estimate(held, scores, self.window, n_repeats)
                if key is not None:
                    self._known[key] = areas
            found.append(areas)
        return Evaluation(self.window, found)


class CandidateResult(NamedTuple):
    """A candidate with what its last stage gave, at the best of its path."""

    candidate: Candidate
    tried: Sequence[TrialResult]
    place: int

    @property
    def scores(self) -> list[Floats]:
        """The held-out rows' scores, split by split."""
        return [one.scores[self.place] for one in self.tried]

    @property
    def may_gain(self) -> bool:
        """Whether boosted trees are foreseen to gain by more rounds than were tried, or by more rows."""
        if self.candidate.kind != BOOSTED:
            return False
        return is_cut(self.tried) or self.tried[0].trial.rows < 1.0

    @property
    def parameters(self) -> Mapping[str, Any]:
        """As the ranker is fitted on all rows."""
        trial = self.tried[0].trial
        if self.candidate.kind == BOOSTED:
            n_rounds = max(round(MORE_ROUNDS * best_rounds(self.tried)), 1)
            return {**trial.parameters, ROUNDS: n_rounds}
        along = path_parameter(ALGORITHMS[trial.algorithm])
        if not trial.path or along is None:
            return trial.parameters
        value = trial.path[self.place]
        return {
            **trial.parameters,
            along: round(MORE_ROUNDS * value) if along == ROUNDS else value,
        }


@dataclass(frozen=True)
class SelectionContext:
    """What the choice needs to know beside the trials."""

    evaluator: Evaluator
    objective: Callable[[HeldOut, Floats], float] | None
    """None: the area over the evaluator's window."""
    left: float
    """Seconds for the last fits."""
    at_once: int
    """Fits that run at once."""
    n_repeats: int
    """How often the rows were split into folds."""
    seconds: Callable[[CandidateResult], float]
    """What the last fit of one is foreseen to take."""
    waiting: frozenset[str]
    """Candidates that were to go on to all rows."""
    now: bool = False
    """The search was asked to end: the best alone is chosen, as it was tried, whatever time is left."""

    @property
    def work(self) -> float:
        """Seconds of fits that can be done in the time left."""
        return self.left * self.at_once

    def value(self, held: Sequence[HeldOut], scores: Sequence[Floats]) -> float:
        """Return the mean of the objective over the splits."""
        objective = self.objective or self._area
        return float(
            np.mean([objective(split, own) for split, own in zip(held, scores, strict=True)])
        )

    def _area(self, split: HeldOut, scores: Floats) -> float:
        return partial_auc(split.y, scores, *self.evaluator.window, sample_weight=split.weight)


def advance(
    history: TrialHistory, stage: str, held: Sequence[HeldOut], evaluator: Evaluator
) -> list[Candidate]:
    """Return those of a rung that go on, the best first.

    Six at most, two of a kind, and none that is behind the best by more than two standard errors.
    """
    if not history.finished(stage):
        return []
    results, evaluation = evaluate_stage(history, stage, held, evaluator)
    order = np.argsort(-evaluation.relative_area(), kind="stable").tolist()
    kept: list[Candidate] = []
    for k in order:
        candidate = results[k].candidate
        alike = sum(c.kind == candidate.kind for c in kept)
        is_near = evaluation.behind(k, order[0]) <= FAR_BEHIND
        if is_near and alike < KEPT_OF_KIND and len(kept) < MAX_KEPT:
            kept.append(candidate)
    return kept


def finish(
    history: TrialHistory, held: Sequence[HeldOut], context: SelectionContext
) -> tuple[Chosen, list[CandidateResult]]:
    """End the search: give what is chosen, and the results of its members in their order, copies left out.

    NothingFitted, if no trial succeeded.
    """
    stage = next((s for s in reversed(history.stages) if history.finished(s)), None)
    if stage is None:
        candidates = history.candidates
        failures = [one.failed for c in candidates for one in history.last(c.name) if one.failed]
        raise NothingFitted(
            f"none of the {len(candidates)} candidates could be fitted and evaluated; "
            f"the first: {failures[0] if failures else 'no time was left for any'}"
        )
    results, evaluation = evaluate_stage(history, stage, held, context.evaluator, context.n_repeats)
    decision = _decide(results, evaluation, context)
    rows = _fill_board(history, held, context)
    members, average = decision.members, list[LeaderboardRow]()
    if len(members) > 1:
        average = [_average(results, decision, held, context)]
        if average[0].state == "left":
            members = members[:1]
    for k, result in enumerate(results):
        name = result.candidate.name
        state = "chosen" if k in members else "left"
        rows[name] = replace(rows[name], state=state, reason=_explain(results, decision, k))
    seconds = [context.seconds(results[k]) for k in members]
    single = [
        Member(results[k].candidate.algorithm, results[k].parameters, decision.weight(k))
        for k in members
    ]
    chosen = single
    if not (context.now or all(results[k].may_gain for k in members)):
        kinds = [results[k].candidate.kind for k in members]
        slower, seconds = _slow_down(single, kinds, seconds, context)
        chosen = _reseed(slower, seconds, context.work)
    last = {result.candidate.name for result in results}
    ranked = sorted(
        rows.items(), key=lambda row: (row[0] not in last, -row[1].rows, -(row[1].value or 0.0))
    )
    board = (*average, *(row for _, row in ranked))
    notes = _note(stage, len(chosen), len(single))
    if (why := history.trees_failed()) is not None:
        notes = (f"{NO_TREES}: {why}", *notes)
    found = Chosen(tuple(chosen), board, notes)
    return found, [results[k] for k in members]


def _note(stage: str, n_members: int, n_evaluated: int) -> tuple[str, ...]:
    notes = []
    if stage != FULL:
        notes.append(f"no candidate was tried on all rows: chosen by {stage}")
    if n_members > n_evaluated:
        copies = n_members - n_evaluated
        notes.append(f"of {n_members} members {copies} differ from another in the seed alone")
    return tuple(notes)


class Decision(NamedTuple):
    """Who stays."""

    best: int
    behind: list[float]
    """Of each result, standard errors behind the best."""
    as_good: list[int]
    """Results that are not behind by more than two, the best first."""
    members: list[int]
    """Those of them for whose last fits there is time, the best first."""

    def weight(self, k: int) -> float:
        """Return what a member counts for: less, the surer it is that the best is better."""
        return math.exp(-0.25 * max(self.behind[k], 0.0) ** 2)


def _decide(
    results: Sequence[CandidateResult], evaluation: Evaluation, context: SelectionContext
) -> Decision:
    seconds = [context.seconds(result) for result in results]
    order = np.argsort(-evaluation.relative_area(), kind="stable").tolist()
    # what keeps what it has when it is stopped may be short of time
    needed = [
        s * (MIN_OF_FIT if ALGORITHMS[e.candidate.algorithm].keeps_when_stopped else 1.0)
        for e, s in zip(results, seconds, strict=True)
    ]
    in_time = [k for k in order if context.now or needed[k] <= context.left]
    # boosted trees keep what they have when the time is up
    trees = [k for k in order if results[k].candidate.kind == BOOSTED]
    best = in_time[0] if in_time else min(trees or order, key=lambda k: seconds[k])
    behind = [evaluation.behind(k, best) for k in range(len(results))]
    as_good = [best, *(k for k in order if k != best and behind[k] <= MAX_BEHIND)]
    members: list[int] = []
    left = context.work
    # where the best still gained, the time is better spent on more rounds; with folds rows are few and
    # several members are steadier
    alone = results[best].may_gain and len(results[best].tried) == 1
    most = context.at_once if alone else MAX_MEMBERS
    for k in as_good[:1] if context.now else as_good:
        fits = seconds[k] <= min(left, context.left)
        if not members or (fits and len(members) < most):
            members.append(k)
            left -= seconds[k]
    return Decision(best, behind, as_good, members)


def _explain(results: Sequence[CandidateResult], decision: Decision, k: int) -> str:
    if k == decision.best:
        return "the best alone"
    if k in decision.as_good and k not in decision.members:
        return "as good as others, but there is no time or room for it"
    return (
        f"{decision.behind[k]:.1f} standard errors behind {results[decision.best].candidate.name}"
    )


def evaluate_stage(
    history: TrialHistory,
    stage: str,
    held: Sequence[HeldOut],
    evaluator: Evaluator,
    n_repeats: int = 1,
) -> tuple[list[CandidateResult], Evaluation]:
    """Return those with figures of a stage, at least one, and evaluate them beside each other, in the same order.

    `n_repeats` says how often the rows are split into folds, where the stage is that on all rows.
    """
    results = []
    for candidate in history.finished(stage):
        tried = history.of(stage, candidate.name)
        results.append(CandidateResult(candidate, tried, place_on_path(tried)))
    splits = [held[one.trial.split] for one in results[0].tried]
    scores = [((stage, result.candidate.name), result.scores) for result in results]
    return results, evaluator.evaluate(splits, scores, n_repeats if stage == FULL else 1)


def _slow_down(
    members: Sequence[Member],
    kinds: Sequence[str],
    seconds: Sequence[float],
    context: SelectionContext,
) -> tuple[list[Member], list[float]]:
    """Return boosted trees that were tried at a high learning rate a lower one and as many times the rounds.

    What was compared had to be quick; the same learning in smaller steps ranks no worse, and mostly better (J.
    Friedman, "Greedy function approximation", Annals of Statistics 29(5), 2001: §5).
    """
    work = sum(seconds)
    times = OF_WORK * min(
        context.work / max(work, 1e-9), context.left / max(max(seconds, default=0.0), 1e-9)
    )
    found, taken = [], []
    for member, kind, own in zip(members, kinds, seconds, strict=True):
        parameters, slower = dict(member.parameters), 1.0
        if kind == BOOSTED and times > 1.0:
            slower = max(min(times, parameters["learning_rate"] / SLOW_RATE), 1.0)
            parameters["learning_rate"] /= slower
            parameters[ROUNDS] = round(slower * parameters[ROUNDS])
        found.append(replace(member, parameters=parameters))
        taken.append(slower * own)
    return found, taken


def _reseed(members: Sequence[Member], seconds: Sequence[float], left: float) -> list[Member]:
    """Add copies of the members that draw at random, with other seeds, as many as are foreseen to be fitted in time.

    The mean over draws varies less than one draw, and no copy needs to be evaluated. Copies share a member's weight.
    """
    left -= sum(seconds)
    seeds: list[list[int]] = [[member.parameters.get("random_state", 0)] for member in members]
    for _ in range(MAX_COPIES):
        for member, own, cost in zip(members, seeds, seconds, strict=True):
            draws = (
                "random_state" in member.parameters
                and member.parameters.get("subsample", 1.0) < 1.0
            )
            if draws and cost <= left and sum(map(len, seeds)) < MAX_MEMBERS:
                own.append((own[-1] + _STEP) % 2**32)
                left -= cost
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
    """Evaluate the mean rank of the members beside the best of them."""
    best, weights = results[decision.best], [decision.weight(k) for k in decision.members]
    splits = [held[one.trial.split] for one in best.tried]
    scores = mean_rank([results[k].scores for k in decision.members], weights)
    repeats = context.n_repeats if len(splits) > 1 else 1
    evaluation = context.evaluator.evaluate(splits, [(None, scores), (None, best.scores)], repeats)
    together, alone = evaluation.relative_area()
    ahead = evaluation.behind(0, 1)
    interval = evaluation.interval(0)
    names = [results[k].candidate.name for k in decision.members]
    return LeaderboardRow(
        "rank_average",
        {"members": names, "weights": weights},
        value=context.value(splits, scores),
        auc=float(evaluation.areas[0].values[0, 0]),
        low=interval.low,
        high=interval.high,
        p_value=evaluation.p_value(0, 1),
        rows=best.tried[0].trial.rows,
        state="left" if alone > together and ahead > AHEAD else "chosen",
        reason=f"{ahead:.1f} standard errors behind {best.candidate.name}",
    )


def _fill_board(
    history: TrialHistory, held: Sequence[HeldOut], context: SelectionContext
) -> dict[str, LeaderboardRow]:
    """Return every candidate's row, by what its last stage gave beside all that were in it."""
    rows: dict[str, LeaderboardRow] = {}
    for candidate in history.candidates:
        tried = history.last(candidate.name)
        seconds = history.seconds(candidate.name)
        parameters: Mapping[str, Any] = candidate.parameters
        row = LeaderboardRow(candidate.algorithm, parameters, seconds=seconds)
        failure = next((one.failed for one in tried if one.failed), None)
        if not tried:
            row = replace(row, state="untried", reason="no time was left")
        elif failure:
            row = replace(row, state="failed", reason=failure, rows=tried[0].trial.rows)
        rows[candidate.name] = row
    for stage in history.stages:
        if not history.finished(stage):
            continue
        results, evaluation = evaluate_stage(
            history, stage, held, context.evaluator, context.n_repeats
        )
        best = int(np.argmax(evaluation.relative_area()))
        for k, result in enumerate(results):
            name = result.candidate.name
            if history.last_stage(name) == stage:
                rows[name] = _fill(rows[name], result, evaluation, k, best)
                rows[name] = replace(
                    rows[name], reason=_why(stage, result, name in context.waiting)
                )
    return rows


def _fill(
    row: LeaderboardRow, result: CandidateResult, evaluation: Evaluation, k: int, best: int
) -> LeaderboardRow:
    interval = evaluation.interval(k)
    return replace(
        row,
        parameters=result.parameters,
        value=float(np.mean([one.values[result.place] for one in result.tried])),
        auc=float(np.mean([one.aucs[result.place] for one in result.tried])),
        rows=result.tried[0].trial.rows,
        low=interval.low,
        high=interval.high,
        p_value=None if k == best else evaluation.p_value(k, best),
    )


def _why(stage: str, result: CandidateResult, waiting: bool) -> str:
    share = result.tried[0].trial.rows
    if waiting:
        return f"there was no time to try it beyond {stage}, with {share:.3g} of the rows"
    if result.candidate.kind == BOOSTED:
        return "others were better"
    return (
        f"left after {stage}, with {share:.3g} of the rows: others, or two of its kind, were better"
    )


def _estimate(
    held: Sequence[HeldOut], scores: Scores, window: tuple[float, float], n_repeats: int
) -> Areas:
    """Evaluate one candidate on all splits."""
    parts = [
        estimate_areas(
            check_rows(split.y, {"scores": scores[place]}, split.weight, split.group),
            (WHOLE, window),
        )
        for place, split in enumerate(held)
    ]
    influence = None
    pieces = [part.influence for part in parts if part.influence is not None]
    if len(pieces) == len(parts):
        influence = np.concatenate(pieces, axis=-1) * (math.sqrt(n_repeats) / len(parts))
    values = np.mean([part.values for part in parts], axis=0)
    positives, negatives = np.sum([part.effective for part in parts], axis=0).tolist()
    return Areas(values, influence, (positives, negatives))


def mean_rank(members: Sequence[Scores], weights: Sequence[float]) -> list[Floats]:
    """Return the weighted mean rank of several candidates' scores, as a share of the rows, split by split."""
    from scipy.stats import rankdata

    means = []
    for scores in zip(*members, strict=True):
        ranks = (rankdata(scores, axis=1) - 0.5) / len(scores[0])  # ties share their middle rank
        means.append(np.average(ranks, axis=0, weights=weights))
    return means
