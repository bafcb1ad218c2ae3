"""Checkpoints of the fit process: for one job alone, seldom enough, and never harmful to the fit."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import RankBoost, save
from core.base.checkpoint import Checkpoints
from workers.child import MIN_PAUSE, CheckpointWriter, Orders, Progress, Stopped, run_job

X = np.random.default_rng(0).normal(size=(80, 2))
Y = X.sum(axis=1) > np.sin(9 * X[:, 0])
ROUNDS = 30


def payload(folder: Path, **checkpoint: Any) -> dict[str, Any]:
    asked = {"job_id": "job_a", "resume": None, "every": 0.0} | checkpoint
    return {"workdir": str(folder), "checkpoint": asked}


def fit(
    keeper: CheckpointWriter, sent: list[Any], orders: Orders, stop_at: int | None = None
) -> bytes:
    """Fit under the callback of the fit process, which sends messages; the artifact."""
    progress = Progress(sent.append, orders, keeper)

    def callback(step: int, of: int, info: Mapping[str, float]) -> None:
        if step == stop_at:
            orders.stop.set()
        progress(step, of, info)

    with keeper.checkpoints:
        return save(RankBoost(n_rounds=ROUNDS).fit(X, Y, callback=callback))


WHOLE = save(RankBoost(n_rounds=ROUNDS).fit(X, Y))


def stopped(folder: Path) -> str:
    """The checkpoint of a fit that was stopped after its tenth round."""
    orders = Orders()
    sent: list[Any] = []
    orders.keep = True
    with pytest.raises(Stopped):
        fit(CheckpointWriter(payload(folder)), sent, orders, stop_at=10)
    (made,) = [message for message in sent if message["type"] == "checkpoint"]
    assert hashlib.sha256(Path(made["path"]).read_bytes()).hexdigest() == made["sha256"]
    path: str = made["path"]
    return path


def test_the_next_attempt_goes_on(tmp_path: Path) -> None:
    keeper = CheckpointWriter(payload(tmp_path, resume=stopped(tmp_path)))
    assert fit(keeper, [], Orders()) == WHOLE
    assert keeper.checkpoints.resumed


def test_a_stop_that_asks_for_none_makes_none(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        fit(CheckpointWriter(payload(tmp_path)), [], Orders(), stop_at=5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("harm", ["another job's", "gone", "cut", "empty"])
def test_what_cannot_be_used_is_left_alone(tmp_path: Path, harm: str) -> None:
    path = Path(stopped(tmp_path))
    job_id = "job_a"
    match harm:
        case "another job's":
            job_id = "job_b"
        case "gone":
            path.unlink()
        case "cut":
            path.write_bytes(path.read_bytes()[:-7])
        case "empty":
            path.write_bytes(b"")
    keeper = CheckpointWriter(payload(tmp_path, resume=str(path), job_id=job_id))
    assert fit(keeper, [], Orders()) == WHOLE
    assert not keeper.checkpoints.resumed


@pytest.mark.parametrize("what", ["memory", "disk"])
def test_one_that_cannot_be_made_does_the_fit_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    if what == "memory":
        monkeypatch.setattr(Checkpoints, "take", fail)
    else:
        for number in range(100):
            (tmp_path / f"checkpoint-{number}").symlink_to("/dev/full")
    sent: list[Any] = []
    assert fit(CheckpointWriter(payload(tmp_path, every=1e-9)), sent, Orders()) == WHOLE
    assert {message["type"] for message in sent} == {"progress"}


def test_they_take_a_hundredth_of_the_time_at_most(tmp_path: Path) -> None:
    keeper = CheckpointWriter(payload(tmp_path, every=1e-9))
    assert keeper.due(time.monotonic())

    def make(*_: object) -> None:
        keeper.make()

    started = time.monotonic()
    with keeper.checkpoints:
        RankBoost(n_rounds=2).fit(X, Y, callback=make)
    taken = time.monotonic() - started
    assert not keeper.due(started)
    assert keeper.due(time.monotonic() + MIN_PAUSE * taken)
    assert not CheckpointWriter(payload(tmp_path)).due(time.monotonic() + 1e9)  # 0: never


def test_a_job_without_a_word_of_checkpoints_runs() -> None:
    answer = run_job(
        {"payload": {"kind": "none"}, "memory_bytes": None}, lambda message: None, Orders()
    )
    assert answer["type"] == "error"
    assert "kind" in answer["problem"]["detail"]


def test_a_fit_gives_way_with_a_checkpoint_and_goes_on_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, sent = Orders(), list[Any]()
    orders.give_way = True
    with pytest.raises(Stopped):
        fit(CheckpointWriter(payload(tmp_path)), sent, orders)
    (made,) = [message for message in sent if message["type"] == "checkpoint"]
    again = CheckpointWriter(payload(tmp_path, resume=made["path"]))
    assert fit(again, [], Orders()) == WHOLE
    assert again.checkpoints.resumed
    monkeypatch.setattr(Checkpoints, "take", lambda self, most: None)  # the fit supports none
    assert fit(CheckpointWriter(payload(tmp_path)), [], orders) == WHOLE
