"""The race of `Auto` so far: tryouts by stage and contender, and who goes on."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .planning import Tried
from .portfolio import Contender

PROBE, FULL = "probe", "full"

KEPT_SHARE, KEPT_LEAST, KEPT_OF_KIND = 1 / 3, 5, 2
"""Of a rung so many go on, and so many of a kind at most."""


class Price(NamedTuple):
    """Seconds of a fit: before its second round, and for each round."""

    setup: float
    a_round: float


class Race:
    """The tryouts so far, by stage and contender.

    Parameters
    ----------
    tried : sequence of Tried
        Whose labels are "stage/contender".
    rungs : sequence of str
        The stages of the screening; the probe and the full rows follow.
    """

    def __init__(self, tried: Sequence[Tried], rungs: Sequence[str]) -> None:
        self.order = [*rungs, PROBE, FULL]
        self._stages: dict[str, dict[str, list[Tried]]] = {}
        for one in tried:
            stage, name = one.tryout.label.split("/", 1)
            self._stages.setdefault(stage, {}).setdefault(name, []).append(one)

    def seen(self, stage: str) -> bool:
        """Whether the stage has begun."""
        return stage in self._stages

    def is_past(self, stage: str) -> bool:
        """Whether a stage after this one has begun."""
        return any(map(self.seen, self.order[self.order.index(stage) + 1 :]))

    def of(self, stage: str, contender: Contender) -> list[Tried]:
        """Give the tryouts of a contender in a stage, split by split."""
        return self._stages.get(stage, {}).get(contender.name, [])

    def has(self, stage: str, contender: Contender) -> bool:
        """Whether the contender was tried in the stage."""
        return bool(self.of(stage, contender))

    def last(self, contender: Contender) -> list[Tried]:
        """Give the tryouts of the last stage that the contender was in."""
        stage = self.last_stage(contender)
        return [] if stage is None else self.of(stage, contender)

    def last_stage(self, contender: Contender) -> str | None:
        """Name the last stage that the contender was in."""
        return next((s for s in reversed(self.order) if self.has(s, contender)), None)

    def seconds(self, contender: Contender) -> float:
        """Add up the seconds of all its tryouts."""
        return sum(one.seconds for stage in self.order for one in self.of(stage, contender))

    def finished(self, stage: str, contenders: Sequence[Contender]) -> list[Contender]:
        """Give those that a stage has figures of."""
        return [
            c
            for c in contenders
            if self.has(stage, c) and not any(one.failed for one in self.of(stage, c))
        ]

    def price(self, leaves: int) -> Price | None:
        """Give what trees of a size cost on all rows, by the one with the most rounds so far; None before the first."""
        known = [
            one
            for stage in (PROBE, FULL)
            for tried in self._stages.get(stage, {}).values()
            for one in tried
            if one.tryout.parameters.get("max_leaves") == leaves
            and "learning_rate" in one.tryout.parameters
            and not one.failed
        ]
        if not known:
            return None
        longest = max(known, key=lambda one: one.tryout.path[-1])
        n_rounds = longest.tryout.path[-1]
        a_round = (longest.seconds - longest.setup) / max(n_rounds - 1, 1)
        return Price(longest.setup, max(a_round, 1e-9))

    def first(self, contenders: Sequence[Contender]) -> list[Tried]:
        """Give the tryouts of the first of some contenders that has figures on all rows."""
        finished = self.finished(FULL, contenders)
        return self.of(FULL, finished[0]) if finished else []


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
    contenders: Sequence[Contender], race: Race, stage: str
) -> tuple[list[Contender], list[Contender]]:
    """Part those in a rung into those that go on and those that do not, each the best first.

    Parameters
    ----------
    contenders : sequence of Contender
        In the rung.
    race : Race
    stage : str

    Returns
    -------
    kept, left : list of Contender
        A third goes on, or 5, two of a kind at most. What failed is in neither.
    """
    most = max(math.ceil(KEPT_SHARE * len(contenders)), KEPT_LEAST)
    kept: list[Contender] = []
    left: list[Contender] = []
    for contender in rank(race.finished(stage, contenders), race, stage):
        alike = sum(c.kind == contender.kind for c in kept)
        goes_on = len(kept) < most and alike < KEPT_OF_KIND
        (kept if goes_on else left).append(contender)
    return kept, left


def rank(contenders: Sequence[Contender], race: Race, stage: str) -> list[Contender]:
    """Order contenders with figures of a stage, the best first: by value and AUC, each as a share of the greatest."""
    figures = np.array([_figures(race.of(stage, c)) for c in contenders]).reshape(-1, 2)
    worth = (figures / np.maximum(figures.max(axis=0, initial=0.0), 1e-12)).sum(axis=1)
    return [contenders[place] for place in np.argsort(-worth, kind="stable").tolist()]


def _figures(tried: Sequence[Tried]) -> tuple[float, float]:
    """Value and AUC, means over the splits."""
    place = place_on_path(tried)
    return (
        float(np.mean([one.values[place] for one in tried])),
        float(np.mean([one.aucs[place] for one in tried])),
    )
