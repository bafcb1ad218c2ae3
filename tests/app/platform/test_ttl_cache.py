"""Entries of the cache are used, refreshed before they expire, and forgotten in time."""

from __future__ import annotations

import pytest

from app.platform import background as remember
from app.platform.background import TtlCache


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(remember, "time", clock)
    return clock


def test_an_answer_is_good_for_its_time_from_before_the_look(clock: Clock) -> None:
    cache: TtlCache[str, int] = TtlCache(lambda key: None, seconds=1.0)
    assert cache.get("a") is None
    cache.put("a", 1, looked_at=clock.now - 0.3)
    assert cache.get("a") == 1
    clock.now += 0.6
    assert cache.get("a") == 1
    clock.now += 0.2
    assert cache.get("a") is None


def test_an_answer_in_use_is_refreshed_once_and_early(clock: Clock) -> None:
    asked: list[str] = []
    cache: TtlCache[str, int] = TtlCache(asked.append, seconds=1.0)
    cache.put("a", 1, clock.now)
    clock.now += 0.4
    assert cache.get("a") == 1
    assert asked == []
    clock.now += 0.2
    assert [cache.get("a") for _ in range(5)] == [1] * 5  # nobody waits
    assert asked == ["a"]
    cache.put("a", 2, clock.now)
    clock.now += 0.9
    assert cache.get("a") == 2


def test_a_refresh_that_finds_nothing_is_believed(clock: Clock) -> None:
    cache: TtlCache[str, int] = TtlCache(lambda key: cache.drop(key), seconds=1.0)  # noqa: PLW0108 - not yet defined
    cache.put("a", 1, clock.now)
    clock.now += 0.6
    assert cache.get("a") == 1
    assert cache.get("a") is None


def test_a_refresh_that_fails_leaves_the_answer_its_time(clock: Clock) -> None:
    cache: TtlCache[str, int] = TtlCache(lambda key: None, seconds=1.0)
    cache.put("a", 1, clock.now)
    clock.now += 0.9
    assert cache.get("a") == 1
    clock.now += 0.2
    assert cache.get("a") is None


def test_it_does_not_grow_without_bound(clock: Clock) -> None:
    cache: TtlCache[int, int] = TtlCache(lambda key: None, size=3)
    for key in range(10):
        cache.put(key, key, clock.now)
    assert [cache.get(key) for key in range(10)] == [None] * 7 + [7, 8, 9]
    cache.put(7, 70, clock.now)  # is the newest now
    cache.put(10, 10, clock.now)
    assert [cache.get(key) for key in (7, 8, 9, 10)] == [70, None, 9, 10]
    cache.clear()
    assert cache.get(9) is None
