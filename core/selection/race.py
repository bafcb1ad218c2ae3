"""The race of `Auto` so far: tryouts by stage and contender, what a round costs, and who goes on."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .judging import Judge
from .planning import GIVEN_UP, HeldOut, Tried
from .portfolio import BOOSTED, DRAWN, Contender

PROBE, FULL = "probe", "full"

MOST_KEPT, KEPT_OF_KIND = 6, 2
"""Of a rung so many go on, and so many of a kind, at most."""
FAR_BEHIND = 2.0
"""Standard errors behind the best of a rung, beyond which none goes on."""
RUN_PARAMETERS = ("n_rounds", "learning_rate", "random_state")
"""What a tryout adds to the parameters of boosted trees."""


class Price(NamedTuple):
    """Seconds of a fit of boosted trees: before its second round, and for each round."""

    setup: float
    a_round: float


class Race:
    """The tryouts so far, by stage and contender.

    Parameters
    ----------
    tried : sequence of Tried
        Whose labels are "stage/contender": the probe, the rungs, and all rows.
    others : sequence of Contender
        Those that are not boosted trees.
    """

    def __init__(self, tried: Sequence[Tried], others: Sequence[Contender]) -> None:
        self._stages: dict[str, dict[str, list[Tried]]] = {}
        self._contenders = {contender.name: contender for contender in others}
        for one in tried:
            stage, name = one.tryout.label.split("/", 1)
            self._stages.setdefault(stage, {}).setdefault(name, []).append(one)
            if name not in self._contenders:
                parameters = {
                    key: value
                    for key, value in one.tryout.parameters.items()
                    if key not in RUN_PARAMETERS
                }
                self._contenders[name] = Contender(name, one.tryout.algorithm, parameters)

    @property
    def contenders(self) -> list[Contender]:
        """All of them, tried or not, but for the probe's."""
        tried = {name for stage, names in self._stages.items() if stage != PROBE for name in names}
        return [c for c in self._contenders.values() if c.kind != BOOSTED or c.name in tried]

    @property
    def stages(self) -> list[str]:
        """The stages so far whose contenders are judged, the one with the most rows last."""
        rungs = [stage for stage in self._stages if stage not in {PROBE, FULL}]
        return [*rungs, *([FULL] if FULL in self._stages else [])]

    def of(self, stage: str, name: str) -> list[Tried]:
        """Give the tryouts of a contender in a stage, split by split."""
        return self._stages.get(stage, {}).get(name, [])

    def has(self, stage: str, name: str) -> bool:
        """Whether the contender was tried in the stage."""
        return bool(self.of(stage, name))

    def names(self, stage: str) -> list[str]:
        """Name those that were tried in a stage."""
        return list(self._stages.get(stage, ()))

    @property
    def share(self) -> float | None:
        """The share of the rows that boosted trees were compared on; None before the first."""
        shares = [
            own[0].tryout.rows
            for name, own in self._stages.get(FULL, {}).items()
            if self._contenders[name].kind == BOOSTED
        ]
        return shares[0] if shares else None

    def ran_out(self, stage: str) -> bool:
        """Whether fits of a stage had nothing to keep when their limit came."""
        tried = [one for own in self._stages.get(stage, {}).values() for one in own]
        return any((one.failed or "").startswith(GIVEN_UP) for one in tried)

    def count_drawn(self) -> int:
        """Say how many drawn changes were tried."""
        return sum(name.startswith(DRAWN) for name in self.names(FULL))

    def last_stage(self, name: str) -> str | None:
        """Name the last stage that the contender was in."""
        return next((stage for stage in reversed(self.stages) if self.has(stage, name)), None)

    def last(self, name: str) -> list[Tried]:
        """Give the tryouts of the last stage that the contender was in."""
        stage = self.last_stage(name)
        return [] if stage is None else self.of(stage, name)

    def seconds(self, name: str) -> float:
        """Add up the seconds of all its tryouts."""
        return sum(one.seconds for stage in self.stages for one in self.of(stage, name))

    def finished(self, stage: str) -> list[Contender]:
        """Give those that a stage has figures of."""
        found = self._stages.get(stage, {})
        return [
            self._contenders[name]
            for name, tried in found.items()
            if not any(one.failed for one in tried)
        ]

    def price(self, leaves: int) -> Price | None:
        """Give what trees of a size cost on all rows of a split; None where nothing is known.

        By the trees nearest in size; a tree of twice the leaves is taken to cost half as much again.
        """
        known = list(self._boosted())
        if not known:
            return None
        nearest = min(known, key=lambda one: abs(math.log(one[0] / leaves)))
        size, tried = nearest
        a_round = (tried.seconds - tried.setup) / max(tried.fitted - 1, 1) / tried.tryout.rows
        scale = ((leaves + 8.0) / (size + 8.0)) ** 0.6
        # what comes first in a process takes time to load, which no other fit will take
        setups = [one.setup for _, one in known if one.tryout.label.startswith(FULL)]
        return Price(min(setups, default=0.0), max(a_round * scale, 1e-7))

    def learning(self, leaves: int, further: float, unknown: float) -> float:
        """Say how much learning, rounds times rate, trees of a size are foreseen to want.

        Parameters
        ----------
        leaves : int
        further : float
            So many times what it had, where a fit was ended while it still gained.
        unknown : float
            Where nothing is known.
        """
        known = [
            (abs(math.log(contender.leaves / leaves)), contender)
            for contender in self.finished(FULL)
            if contender.kind == BOOSTED
        ]
        if not known:
            return unknown
        _, nearest = min(known, key=lambda pair: pair[0])
        tried = self.of(FULL, nearest.name)
        steps = best_rounds(tried)
        rate: float = tried[0].tryout.parameters["learning_rate"]
        return steps * rate * (further if is_cut(tried) else 1.0)

    def _boosted(self) -> Iterator[tuple[int, Tried]]:
        """Give the tryouts of boosted trees that tell of a price, those on all rows first."""
        for stage in (FULL, PROBE):
            for name, tried in self._stages.get(stage, {}).items():
                contender = self._contenders[name]
                if contender.kind != BOOSTED:
                    continue
                for one in tried:
                    if not one.failed and one.fitted > 1:
                        yield contender.leaves, one


def best_rounds(tried: Sequence[Tried]) -> float:
    """Give the rounds of boosted trees that were best, the mean over the splits where each has its own."""
    if tried[0].tryout.path:
        return float(tried[0].tryout.path[place_on_path(tried)])
    return float(np.mean([one.steps for one in tried]))


def is_cut(tried: Sequence[Tried]) -> bool:
    """Whether most fits of boosted trees ended while they still gained: not for want of patience."""
    if path := tried[0].tryout.path:
        return place_on_path(tried) >= len(path) - 2
    cut = sum(one.fitted - one.steps < 0.7 * (one.tryout.patience or 0) for one in tried)
    return 2 * cut > len(tried)


def place_on_path(tried: Sequence[Tried]) -> int:
    """Choose the value of the path: the best by value and AUC together, smoothed over its neighbours.

    Parameters
    ----------
    tried : sequence of Tried
        One per split, none failed.

    Returns
    -------
    int
        The first of the best. Value and AUC are shares of the greatest of each on the path: the window alone
        is too noisy to stop by.
    """
    worth = sum(
        np.array(one.values) / max(*one.values, 1e-12, 0.0)
        + np.array(one.aucs) / max(*one.aucs, 1e-12)
        for one in tried
    )
    assert isinstance(worth, np.ndarray)
    if len(worth) > 2:
        worth = np.convolve(np.r_[worth[0], worth, worth[-1]], [0.25, 0.5, 0.25], "valid")
    return int(np.argmax(worth > worth.max() - 1e-9))


def advance(
    contenders: Sequence[Contender],
    race: Race,
    stage: str,
    held: Sequence[HeldOut],
    judge: Judge,
) -> list[Contender]:
    """Give those of a rung that go on, the best first.

    Parameters
    ----------
    contenders : sequence of Contender
        In the rung.
    race : Race
    stage : str
    held : sequence of HeldOut
    judge : Judge

    Returns
    -------
    list of Contender
        Six at most, two of a kind, and none that is behind the best by more than two standard errors.
    """
    names = {contender.name for contender in contenders}
    finished = [c for c in race.finished(stage) if c.name in names]
    if not finished:
        return []
    tried = [race.of(stage, c.name) for c in finished]
    scores = [
        ((stage, c.name), [one.scores[place_on_path(own)] for one in own])
        for c, own in zip(finished, tried, strict=True)
    ]
    field = judge.field([held[one.tryout.split] for one in tried[0]], scores)
    order = np.argsort(-field.worth(), kind="stable").tolist()
    kept: list[Contender] = []
    for k in order:
        alike = sum(c.kind == finished[k].kind for c in kept)
        is_near = field.behind(k, order[0]) <= FAR_BEHIND
        if is_near and alike < KEPT_OF_KIND and len(kept) < MOST_KEPT:
            kept.append(finished[k])
    return kept
