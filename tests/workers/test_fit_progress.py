"""A fit's progress: at most once a second, and expensive figures seldom."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import AdaBoostMH, RankBoost
from workers import child
from workers.child import CheckpointWriter, Orders, Progress


class Clock:
    """Time that goes by when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Slow(dict[str, float]):
    """Figures of which one takes a while to read."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__(loss=0.25, area=0.75)
        self._clock, self._seconds = clock, seconds

    def __getitem__(self, name: str) -> float:
        if name == "area":
            self._clock.now += self._seconds
        return super().__getitem__(name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(child, "time", clock)
    return clock


@pytest.fixture
def sent() -> list[Any]:
    return []


@pytest.fixture
def progress(sent: list[Any], tmp_path: Path, clock: Clock) -> Progress:
    return Progress(sent.append, Orders(), CheckpointWriter({"workdir": str(tmp_path)}))


@pytest.mark.parametrize(("takes", "readings"), [(0.0, 14), (0.004, 14), (0.02, 2)])
def test_a_figure_that_is_dear_is_not_read_again(
    progress: Progress, sent: list[Any], clock: Clock, takes: float, readings: int
) -> None:
    for step in range(1, 101):
        progress(step, 100, Slow(clock, takes))
        clock.now += 0.13
    told = [message["progress"] for message in sent]
    assert len(told) == 14  # once a second, whatever it is that is told
    assert sum(news["detail"] == "loss 0.25, area 0.75" for news in told) == readings
    assert sum(news["detail"] == "loss 0.25" for news in told) == 14 - readings
    assert told[-1] | {"detail": ""} == {"fraction": 1.0, "step": 100, "of": 100, "detail": ""}


@pytest.mark.parametrize("algorithm", [RankBoost, AdaBoostMH])
def test_a_boosters_training_auc_is_told(
    progress: Progress, sent: list[Any], clock: Clock, algorithm: type[Any]
) -> None:
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = (X.sum(axis=1) > np.sin(9 * X[:, 0])).astype(int)

    def callback(step: int, of: int, info: Mapping[str, float]) -> None:
        clock.now += 0.3
        progress(step, of, info)

    labels = np.c_[y, 1 - y] if algorithm is AdaBoostMH else y
    algorithm(n_rounds=10).fit(X, labels, callback=callback)
    assert [message["progress"]["step"] for message in sent] == [1, 5, 9, 10]
    assert all("training_auc 0." in message["progress"]["detail"] for message in sent)
