"""How the race of `Auto` ends: members, the mean rank beside the best alone, and the leaderboard."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from core.metrics import partial_auc
from core.ranker import Floats
from core.registry import ALGORITHMS

from .judging import Field, judge_field, mean_rank
from .path import path_parameter
from .planning import Chosen, HeldOut, Member, NothingFitted, Standing, Tried
from .portfolio import Contender
from .race import FULL, Race, place_on_path

MOST_BEHIND = 2.0
"""Standard errors by which a member may be behind the best."""
AHEAD = 1.0
"""Standard errors by which the best alone must be ahead of the mean rank, to be taken in its place."""
MOST_MEMBERS = 20
MOST_COPIES = 2
_STEP = 1_000_003  # between the seeds of copies
MORE_ROUNDS = 1.1
"""All rows are more than the inner training rows, and carry so many more rounds."""
ROUNDS = "n_rounds"


@dataclass(frozen=True)
class Ending:
    """What the end of the race needs to know beside the race.

    Attributes
    ----------
    window : (float, float)
    judge : callable (held, scores) -> float, or None
        The objective; None: the area over the window.
    left : float
        Seconds for the last fits.
    seconds : mapping of str to float
        What each contender's last fit is foreseen to take.
    waiting : frozenset of str
        Contenders that were to go on to all rows.
    """

    window: tuple[float, float]
    judge: Callable[[HeldOut, Floats], float] | None
    left: float
    seconds: Mapping[str, float]
    waiting: frozenset[str]

    def value(self, held: Sequence[HeldOut], scores: Sequence[Floats]) -> float:
        """Give the mean of the objective over the splits."""
        judge = self.judge or self._area
        return float(np.mean([judge(split, own) for split, own in zip(held, scores, strict=True)]))

    def _area(self, split: HeldOut, scores: Floats) -> float:
        return partial_auc(split.y, scores, *self.window, sample_weight=split.weight)


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
    def parameters(self) -> Mapping[str, Any]:
        """As the ranker is fitted on all rows."""
        tryout = self.tried[0].tryout
        along = path_parameter(ALGORITHMS[tryout.algorithm])
        if not tryout.path or along is None:
            return tryout.parameters
        value = tryout.path[self.place]
        return {
            **tryout.parameters,
            along: round(MORE_ROUNDS * value) if along == ROUNDS else value,
        }


def finish(
    race: Race, contenders: Sequence[Contender], held: Sequence[HeldOut], ending: Ending
) -> Chosen:
    """End the race.

    Parameters
    ----------
    race : Race
    contenders : sequence of Contender
        All of them, tried or not.
    held : sequence of HeldOut
    ending : Ending

    Returns
    -------
    Chosen

    Raises
    ------
    NothingFitted
        No tryout succeeded.
    """
    stage = next((s for s in reversed(race.order) if race.finished(s, contenders)), None)
    if stage is None:
        failures = [one.failed for c in contenders for one in race.last(c) if one.failed]
        raise NothingFitted(
            f"none of the {len(contenders)} contenders could be fitted and judged; "
            f"the first: {failures[0] if failures else 'no time was left for any'}"
        )
    entries, field = _enter(race, stage, contenders, held, ending.window)
    worth = field.worth()
    order = np.argsort(-worth, kind="stable").tolist()
    seconds = [ending.seconds[entry.contender.name] for entry in entries]
    in_time = [k for k in order if seconds[k] <= ending.left]
    best = in_time[0] if in_time else int(np.argmin(seconds))
    behind = [field.behind(k, best) for k in range(len(entries))]
    as_good = [k for k in order if behind[k] <= MOST_BEHIND or k == best]
    members = _in_time(as_good, entries, ending)
    rows = _stand(race, contenders, held, ending)
    name = entries[best].contender.name
    for k, entry in enumerate(entries):
        if k in members:
            state, reason = "chosen", f"{behind[k]:.1f} standard errors behind {name}"
        elif k in as_good:
            state, reason = "left", "as good as others, but there is no time or room for it"
        else:
            state, reason = "left", f"{behind[k]:.1f} standard errors behind {name}"
        rows[entry.contender.name] = replace(
            rows[entry.contender.name],
            state=state,
            reason="the best alone" if k == best else reason,
        )
    together: list[Standing] = []
    if len(members) > 1:
        weights = [_weight(behind[k]) for k in members]
        whole = _average([entries[k] for k in members], weights, entries[best], held, ending)
        together = [whole]
        if whole.state == "left":
            members = [best]
            for k in as_good:
                if k != best:
                    own = rows[entries[k].contender.name]
                    rows[entries[k].contender.name] = replace(own, state="left")
    chosen = [
        Member(entries[k].contender.algorithm, entries[k].parameters, _weight(behind[k]))
        for k in members
    ]
    chosen = _reseed(chosen, [seconds[k] for k in members], ending.left)
    last = {entry.contender.name for entry in entries}
    names = sorted(
        rows, key=lambda name: (name not in last, -rows[name].rows, -(rows[name].value or 0.0))
    )
    ranked = [rows[name] for name in names]
    notes = () if stage == FULL else (f"no contender was tried on all rows: chosen by {stage}",)
    return Chosen(tuple(chosen), (*together, *ranked), notes)


def _enter(
    race: Race,
    stage: str,
    contenders: Sequence[Contender],
    held: Sequence[HeldOut],
    window: tuple[float, float],
) -> tuple[list[Entry], Field]:
    """Give those with figures of a stage, and judge them beside each other."""
    entries = []
    for contender in race.finished(stage, contenders):
        tried = race.of(stage, contender)
        entries.append(Entry(contender, tried, place_on_path(tried)))
    splits = [held[one.tryout.split] for one in entries[0].tried]
    return entries, judge_field(splits, [entry.scores for entry in entries], window)


def stay(
    race: Race,
    stage: str,
    contenders: Sequence[Contender],
    held: Sequence[HeldOut],
    window: tuple[float, float],
) -> list[Contender]:
    """Give those of a stage that are not behind its best by more than two standard errors."""
    if not race.finished(stage, contenders):
        return []
    entries, field = _enter(race, stage, contenders, held, window)
    best = int(np.argmax(field.worth()))
    return [e.contender for k, e in enumerate(entries) if field.behind(k, best) <= MOST_BEHIND]


def _in_time(as_good: Sequence[int], entries: Sequence[Entry], ending: Ending) -> list[int]:
    """Give the members whose last fits are foreseen to end in time; the best is one in any case."""
    members: list[int] = []
    left = ending.left
    for k in as_good:
        seconds = ending.seconds[entries[k].contender.name]
        if members and (seconds > left or len(members) == MOST_MEMBERS):
            continue
        members.append(k)
        left -= seconds
    return members


def _weight(behind: float) -> float:
    """Give what a member counts for: less, the surer it is that the best is better."""
    return math.exp(-0.25 * max(behind, 0.0) ** 2)


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
    members: Sequence[Entry],
    weights: Sequence[float],
    best: Entry,
    held: Sequence[HeldOut],
    ending: Ending,
) -> Standing:
    """Judge the mean rank of the members beside the best of them."""
    splits = [held[one.tryout.split] for one in best.tried]
    scores = mean_rank([entry.scores for entry in members], weights)
    field = judge_field(splits, [scores, best.scores], ending.window)
    average, alone = field.worth()
    ahead = field.behind(0, 1)
    beaten = alone > average and ahead > AHEAD
    interval = field.interval(0)
    return Standing(
        "rank_average",
        {"members": [entry.contender.name for entry in members], "weights": list(weights)},
        value=ending.value(splits, scores),
        auc=float(field.areas.values[0, 0]),
        low=interval.low,
        high=interval.high,
        p_value=field.p_value(0, 1),
        rows=best.tried[0].tryout.rows,
        state="left" if beaten else "chosen",
        reason=f"{ahead:.1f} standard errors behind {best.contender.name}",
    )


def _stand(
    race: Race, contenders: Sequence[Contender], held: Sequence[HeldOut], ending: Ending
) -> dict[str, Standing]:
    """Give every contender's row, by what its last stage gave beside all that were in it."""
    rows: dict[str, Standing] = {}
    for contender in contenders:
        tried = race.last(contender)
        seconds = race.seconds(contender)
        parameters: Mapping[str, Any] = contender.parameters
        row = Standing(contender.algorithm, parameters, seconds=seconds)
        failure = next((one.failed for one in tried if one.failed), None)
        if not tried:
            row = replace(row, state="untried", reason="no time was left")
        elif failure:
            row = replace(row, state="failed", reason=failure, rows=tried[0].tryout.rows)
        rows[contender.name] = row
    for stage in race.order:
        if not race.finished(stage, contenders):
            continue
        entries, field = _enter(race, stage, contenders, held, ending.window)
        best = int(np.argmax(field.worth()))
        for k, entry in enumerate(entries):
            name = entry.contender.name
            if race.last_stage(entry.contender) == stage:
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
        return f"was to go on from {stage}, but there was no time for it on all rows"
    if entry.contender.leaves:
        return "there was no time for more rounds"
    return (
        f"left after {stage}, with {share:.3g} of the rows: others, or two of its kind, were better"
    )
