"""Needed rows are stated within reach only."""

from __future__ import annotations

from app.measures import is_within_reach


def test_needed_rows_are_stated_up_to_ten_times_those_there_are() -> None:
    assert is_within_reach(0, 0)
    assert is_within_reach(900, 100)
    assert not is_within_reach(901, 100)
    assert not is_within_reach(110_000, 2_000)
