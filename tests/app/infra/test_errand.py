"""Errands are done soon, in order, and never hold anyone up."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from app.platform import background as errand
from app.platform.background import Errands


def test_in_order_and_to_the_end() -> None:
    errands = Errands("test")
    done: list[int] = []
    for i in range(100):
        errands.ask(partial(done.append, i))
    errands.close()
    assert done == list(range(100))


def test_an_error_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    errands, done = Errands("publish"), threading.Event()
    errands.ask(lambda: 1 / 0)
    errands.ask(done.set)
    assert done.wait(20)
    assert "publish: division by zero" in caplog.text
    errands.close()


def test_asking_never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errand, "MOST_WAITING", 2)
    errands, hang, begun = Errands("test"), threading.Event(), threading.Event()
    done: list[int] = []

    def stuck() -> None:
        begun.set()
        hang.wait(20)

    errands.ask(stuck)
    assert begun.wait(20)
    for i in range(10):
        errands.ask(partial(done.append, i))
    errands.close(timeout=0)  # full: it returns at once
    hang.set()
    last = threading.Event()
    while not last.is_set():
        errands.ask(last.set)
        last.wait(0.01)
    assert done == [0, 1]  # the rest was dropped
    errands.close()
