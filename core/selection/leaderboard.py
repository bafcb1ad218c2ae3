"""The leaderboard of `Auto`, its members, and the mean rank beside the best alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from core.metrics import partial_auc
from core.ranker import Floats
from core.registry import ALGORITHMS

from .judging import Field, Judge, mean_rank
from .path import path_parameter
from .planning import Chosen, HeldOut, Member, NothingFitted, Standing, Tried
from .portfolio import BOOSTED, Contender
from .race import FULL, Race, best_rounds, is_cut, place_on_path

MOST_BEHIND = 2.0
"""Standard errors by which a member may be behind the best."""
AHEAD = 1.0
"""Standard errors by which the best alone must be ahead of the mean rank, to be taken in its place."""
MOST_MEMBERS = 20
MOST_COPIES = 2
_STEP = 1_000_003  # between the seeds of copies
SLOW_RATE, OF_WORK = 0.04, 0.85
"""Learning rate to which the last fits go down where there is time; and the share of the time that they may take."""
MORE_ROUNDS = 1.1
"""All rows are more than the inner training rows, and carry so many more rounds."""
LEAST_OF_FIT = 0.5
"""Of the seconds of a last fit, what there must be for one that keeps what it has when it is stopped."""
ROUNDS = "n_rounds"


@dataclass(frozen=True)
class Ending:
    """What the end of the race needs to know beside the race.

    Attributes
    ----------
    judge : Judge
    objective : callable (held, scores) -> float, or None
        None: the area over the judge's window.
    left : float
        Seconds for the last fits.
    at_once : int
        Fits that run at once.
    n_repeats : int
        How often the rows were parted into folds.
    seconds : callable (entry) -> float
        What the last fit of one is foreseen to take.
    waiting : frozenset of str
        Contenders that were to go on to all rows.
    now : bool
        The search was asked to end: the best alone is chosen, as it was tried, whatever time is left.
    """

    judge: Judge
    objective: Callable[[HeldOut, Floats], float] | None
    left: float
    at_once: int
    n_repeats: int
    seconds: "Callable[[Entry], float]"
    waiting: frozenset[str]
    now: bool = False

    @property
    def work(self) -> float:
        """Seconds of fits that can be done in the time left."""
        return self.left * self.at_once

    def value(self, held: Sequence[HeldOut], scores: Sequence[Floats]) -> float:
        """Give the mean of the objective over the splits."""
        objective = self.objective or self._area
        return float(
            np.mean([objective(split, own) for split, own in zip(held, scores, strict=True)])
        )

    def _area(self, split: HeldOut, scores: Floats) -> float:
        return partial_auc(split.y, scores, *self.judge.window, sample_weight=split.weight)


class Entry(NamedTuple):
    """A contender with what its last stage gave, at the best of its path."""

    contender: Contender
    tried: Sequence[Tried]
    place: int

    @property
    def scores(self) -> list[Floats]:
        """The held-out rows' scores, split by split."""
        return [one.scores[self.place] for one in self.tried]

    @property
    def may_gain(self) -> bool:
        """Whether boosted trees are foreseen to gain by more rounds than were tried, or by more rows."""
        if self.contender.kind != BOOSTED:
            return False
        return is_cut(self.tried) or self.tried[0].tryout.rows < 1.0

    @property
    def parameters(self) -> Mapping[str, Any]:
        """As the ranker is fitted on all rows."""
        tryout = self.tried[0].tryout
        if self.contender.kind == BOOSTED:
            n_rounds = max(round(MORE_ROUNDS * best_rounds(self.tried)), 1)
            return {**tryout.parameters, ROUNDS: n_rounds}
        along = path_parameter(ALGORITHMS[tryout.algorithm])
        if not tryout.path or along is None:
            return tryout.parameters
        value = tryout.path[self.place]
        return {
            **tryout.parameters,
            along: round(MORE_ROUNDS * value) if along == ROUNDS else value,
        }


def finish(race: Race, held: Sequence[HeldOut], ending: Ending) -> tuple[Chosen, list["Entry"]]:
    """End the race.

    Parameters
    ----------
    race : Race
    held : sequence of HeldOut
    ending : Ending

    Returns
    -------
    chosen : Chosen
    entries : list of Entry
        Of the members, the copies left out, in the same order.

    Raises
    ------
    NothingFitted
        No tryout succeeded.
    """
    stage = next((s for s in reversed(race.stages) if race.finished(s)), None)
    if stage is None:
        contenders = race.contenders
        failures = [one.failed for c in contenders for one in race.last(c.name) if one.failed]
        raise NothingFitted(
            f"none of the {len(contenders)} contenders could be fitted and judged; "
            f"the first: {failures[0] if failures else 'no time was left for any'}"
        )
    entries, field = enter(race, stage, held, ending.judge, ending.n_repeats)
    verdict = _judge(entries, field, ending)
    rows = _stand(race, held, ending)
    members, average = verdict.members, list[Standing]()
    if len(members) > 1:
        average = [_average(entries, verdict, held, ending)]
        if average[0].state == "left":
            members = members[:1]
    for k, entry in enumerate(entries):
        name = entry.contender.name
        state = "chosen" if k in members else "left"
        rows[name] = replace(rows[name], state=state, reason=_explain(entries, verdict, k))
    seconds = [ending.seconds(entries[k]) for k in members]
    single = [
        Member(entries[k].contender.algorithm, entries[k].parameters, verdict.weight(k))
        for k in members
    ]
    chosen = single
    if not (ending.now or all(entries[k].may_gain for k in members)):
        kinds = [entries[k].contender.kind for k in members]
        slower, seconds = _slow_down(single, kinds, seconds, ending)
        chosen = _reseed(slower, seconds, ending.work)
    last = {entry.contender.name for entry in entries}
    ranked = sorted(
        rows.items(), key=lambda row: (row[0] not in last, -row[1].rows, -(row[1].value or 0.0))
    )
    board = (*average, *(row for _, row in ranked))
    found = Chosen(tuple(chosen), board, _note(stage, len(chosen), len(single)))
    return found, [entries[k] for k in members]


def _note(stage: str, n_members: int, n_judged: int) -> tuple[str, ...]:
    notes = []
    if stage != FULL:
        notes.append(f"no contender was tried on all rows: chosen by {stage}")
    if n_members > n_judged:
        copies = n_members - n_judged
        notes.append(f"of {n_members} members {copies} differ from another in the seed alone")
    return tuple(notes)


class Verdict(NamedTuple):
    """Who stays.

    Attributes
    ----------
    best : int
    behind : list of float
        Of each entry, standard errors behind the best.
    as_good : list of int
        Entries that are not behind by more than two, the best first.
    members : list of int
        Those of them for whose last fits there is time, the best first.
    """

    best: int
    behind: list[float]
    as_good: list[int]
    members: list[int]

    def weight(self, k: int) -> float:
        """Give what a member counts for: less, the surer it is that the best is better."""
        return math.exp(-0.25 * max(self.behind[k], 0.0) ** 2)


def _judge(entries: Sequence[Entry], field: Field, ending: Ending) -> Verdict:
    seconds = [ending.seconds(entry) for entry in entries]
    order = np.argsort(-field.worth(), kind="stable").tolist()
    # what keeps what it has when it is stopped may be short of time
    needed = [
        s * (LEAST_OF_FIT if ALGORITHMS[e.contender.algorithm].keeps_when_stopped else 1.0)
        for e, s in zip(entries, seconds, strict=True)
    ]
    in_time = [k for k in order if ending.now or needed[k] <= ending.left]
    # boosted trees keep what they have when the time is up
    trees = [k for k in order if entries[k].contender.kind == BOOSTED]
    best = in_time[0] if in_time else min(trees or order, key=lambda k: seconds[k])
    behind = [field.behind(k, best) for k in range(len(entries))]
    as_good = [best, *(k for k in order if k != best and behind[k] <= MOST_BEHIND)]
    members: list[int] = []
    left = ending.work
    # where the best still gained, the time is better spent on more rounds; where folds judge, rows are few and
    # several members are steadier
    alone = entries[best].may_gain and len(entries[best].tried) == 1
    most = ending.at_once if alone else MOST_MEMBERS
    for k in as_good[:1] if ending.now else as_good:
        fits = seconds[k] <= min(left, ending.left)
        if not members or (fits and len(members) < most):
            members.append(k)
            left -= seconds[k]
    return Verdict(best, behind, as_good, members)


def _explain(entries: Sequence[Entry], verdict: Verdict, k: int) -> str:
    if k == verdict.best:
        return "the best alone"
    if k in verdict.as_good and k not in verdict.members:
        return "as good as others, but there is no time or room for it"
    return f"{verdict.behind[k]:.1f} standard errors behind {entries[verdict.best].contender.name}"


def enter(
    race: Race,
    stage: str,
    held: Sequence[HeldOut],
    judge: Judge,
    n_repeats: int,
) -> tuple[list[Entry], Field]:
    """Give those with figures of a stage, and judge them beside each other.

    Parameters
    ----------
    race : Race
    stage : str
        Of which at least one has figures.
    held : sequence of HeldOut
    judge : Judge
    n_repeats : int
        How often rows are parted into folds, on all rows.

    Returns
    -------
    entries : list of Entry
    field : Field
        In the same order.
    """
    entries = []
    for contender in race.finished(stage):
        tried = race.of(stage, contender.name)
        entries.append(Entry(contender, tried, place_on_path(tried)))
    splits = [held[one.tryout.split] for one in entries[0].tried]
    scores = [((stage, entry.contender.name), entry.scores) for entry in entries]
    return entries, judge.field(splits, scores, n_repeats if stage == FULL else 1)


def _slow_down(
    members: Sequence[Member], kinds: Sequence[str], seconds: Sequence[float], ending: Ending
) -> tuple[list[Member], list[float]]:
    """Give boosted trees that were tried at a high learning rate a lower one and as many times the rounds.

    What was compared had to be quick; the same learning in smaller steps ranks no worse, and mostly better (J.
    Friedman, "Greedy function approximation", Annals of Statistics 29(5), 2001: §5).
    """
    work = sum(seconds)
    times = OF_WORK * min(
        ending.work / max(work, 1e-9), ending.left / max(max(seconds, default=0.0), 1e-9)
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

    The mean over draws varies less than one draw, and no copy needs to be judged. Copies share a member's weight.
    """
    left -= sum(seconds)
    seeds: list[list[int]] = [[member.parameters.get("random_state", 0)] for member in members]
    for _ in range(MOST_COPIES):
        for member, own, cost in zip(members, seeds, seconds, strict=True):
            draws = (
                "random_state" in member.parameters
                and member.parameters.get("subsample", 1.0) < 1.0
            )
            if draws and cost <= left and sum(map(len, seeds)) < MOST_MEMBERS:
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
    entries: Sequence[Entry], verdict: Verdict, held: Sequence[HeldOut], ending: Ending
) -> Standing:
    """Judge the mean rank of the members beside the best of them."""
    best, weights = entries[verdict.best], [verdict.weight(k) for k in verdict.members]
    splits = [held[one.tryout.split] for one in best.tried]
    scores = mean_rank([entries[k].scores for k in verdict.members], weights)
    repeats = ending.n_repeats if len(splits) > 1 else 1
    field = ending.judge.field(splits, [(None, scores), (None, best.scores)], repeats)
    together, alone = field.worth()
    ahead = field.behind(0, 1)
    interval = field.interval(0)
    names = [entries[k].contender.name for k in verdict.members]
    return Standing(
        "rank_average",
        {"members": names, "weights": weights},
        value=ending.value(splits, scores),
        auc=float(field.areas.values[0, 0]),
        low=interval.low,
        high=interval.high,
        p_value=field.p_value(0, 1),
        rows=best.tried[0].tryout.rows,
        state="left" if alone > together and ahead > AHEAD else "chosen",
        reason=f"{ahead:.1f} standard errors behind {best.contender.name}",
    )


def _stand(race: Race, held: Sequence[HeldOut], ending: Ending) -> dict[str, Standing]:
    """Give every contender's row, by what its last stage gave beside all that were in it."""
    rows: dict[str, Standing] = {}
    for contender in race.contenders:
        tried = race.last(contender.name)
        seconds = race.seconds(contender.name)
        parameters: Mapping[str, Any] = contender.parameters
        row = Standing(contender.algorithm, parameters, seconds=seconds)
        failure = next((one.failed for one in tried if one.failed), None)
        if not tried:
            row = replace(row, state="untried", reason="no time was left")
        elif failure:
            row = replace(row, state="failed", reason=failure, rows=tried[0].tryout.rows)
        rows[contender.name] = row
    for stage in race.stages:
        if not race.finished(stage):
            continue
        entries, field = enter(race, stage, held, ending.judge, ending.n_repeats)
        best = int(np.argmax(field.worth()))
        for k, entry in enumerate(entries):
            name = entry.contender.name
            if race.last_stage(name) == stage:
                rows[name] = _fill(rows[name], entry, field, k, best)
                rows[name] = replace(rows[name], reason=_why(stage, entry, name in ending.waiting))
    return rows


def _fill(row: Standing, entry: Entry, field: Field, k: int, best: int) -> Standing:
    interval = field.interval(k)
    return replace(
        row,
        parameters=entry.parameters,
        value=float(np.mean([one.values[entry.place] for one in entry.tried])),
        auc=float(np.mean([one.aucs[entry.place] for one in entry.tried])),
        rows=entry.tried[0].tryout.rows,
        low=interval.low,
        high=interval.high,
        p_value=None if k == best else field.p_value(k, best),
    )


def _why(stage: str, entry: Entry, waiting: bool) -> str:
    share = entry.tried[0].tryout.rows
    if waiting:
        return f"there was no time to try it beyond {stage}, with {share:.3g} of the rows"
    if entry.contender.kind == BOOSTED:
        return "others were better"
    return (
        f"left after {stage}, with {share:.3g} of the rows: others, or two of its kind, were better"
    )
