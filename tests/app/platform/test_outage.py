"""Last answers that stand in for a database that is away."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from app.platform import outage
from app.platform.database import SETTLED_SECONDS, OutageLog
from app.platform.errors import NotFound, Unavailable
from app.platform.outage import OutageMemory
from tests.waiting import patience


def away() -> NoReturn:
    raise Unavailable("the database is unavailable")


def gone() -> NoReturn:
    raise NotFound("it is gone")


def test_the_last_answer_stands_in_and_the_next_ends_the_outage() -> None:
    memory = OutageMemory(60.0)
    assert memory.ask("a", lambda: 1) == 1
    assert memory.away_seconds is None
    assert memory.ask("a", away) == 1
    assert memory.away_seconds is not None
    assert memory.ask("b", lambda: 2) == 2  # nothing is known of it, so it is asked for
    assert memory.away_seconds is None
    assert memory.ask("a", lambda: 3) == 3


def test_what_is_not_known_or_too_old_or_gone_has_no_stand_in() -> None:
    memory = OutageMemory(60.0)
    with pytest.raises(Unavailable):
        memory.ask("a", away)
    memory.ask("a", lambda: 1)
    with pytest.raises(NotFound):
        memory.ask("a", gone)
    with pytest.raises(Unavailable):
        memory.ask("a", away)
    memory.ask("a", lambda: 1)
    assert memory.ask("a", lambda: None) is None
    with pytest.raises(Unavailable):
        memory.ask("a", away)
    none = OutageMemory(0.0)
    none.ask("a", lambda: 1)
    with pytest.raises(Unavailable):
        none.ask("a", away)


def test_nobody_waits_long_for_a_database_that_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outage, "PATIENCE_SECONDS", 0.01)
    memory, release = OutageMemory(60.0), threading.Event()
    memory.ask("a", lambda: 1)

    def stand_still() -> int:
        release.wait(patience())
        return 2

    # All come at the same time: the first ones cannot know that the database stands still.
    with ThreadPoolExecutor(12) as callers:
        try:
            asked = [callers.submit(memory.ask, "a", stand_still) for _ in range(12)]
            assert [each.result(patience()) for each in asked] == [1] * 12
            assert memory.away_seconds is not None
            assert memory.ask("a", lambda: pytest.fail("asked")) == 1
        finally:
            release.set()


def test_an_outage_is_logged_once_although_some_transactions_succeed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    outages = OutageLog()

    def levels() -> list[str]:
        return [each.levelname for each in caplog.records]

    for _ in range(3):  # as while connections are exhausted
        outages.note(Unavailable("away"), OSError("too many clients"), of_reads=False)
        outages.end(of_reads=False)
    assert levels() == ["WARNING"]
    later = time.monotonic() + SETTLED_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    outages.end(of_reads=True)  # a reader does not end an outage of writers
    assert levels() == ["WARNING"]
    outages.end(of_reads=False)
    outages.end(of_reads=False)
    assert levels() == ["WARNING", "INFO"]
