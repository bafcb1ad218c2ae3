"""Background tasks are done soon, in order, and never hold anyone up."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from app.platform import background
from app.platform.background import BackgroundTasks
from tests.raising import mentions
from tests.waiting import patience


def test_in_order_and_to_the_end() -> None:
    tasks = BackgroundTasks("test")
    done: list[int] = []
    for i in range(100):
        tasks.add(partial(done.append, i))
    tasks.close()
    assert done == list(range(100))


def test_an_error_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    tasks, done = BackgroundTasks("publish"), threading.Event()
    tasks.add(lambda: 1 / 0)
    tasks.add(done.set)
    assert done.wait(patience())
    assert mentions(caplog.text, "publish")
    tasks.close()


def test_asking_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MAX_WAITING_TASKS", 2)
    tasks, hang, begun = BackgroundTasks("test"), threading.Event(), threading.Event()
    done: list[int] = []

    def stuck() -> None:
        begun.set()
        hang.wait(patience())

    tasks.add(stuck)
    assert begun.wait(patience())
    for i in range(10):
        tasks.add(partial(done.append, i))
    tasks.close(timeout=0)  # full: it returns at once
    hang.set()
    last = threading.Event()
    while not last.is_set():
        tasks.add(last.set)
        last.wait(0.01)
    assert done == [0, 1]  # the rest was dropped
    tasks.close()
