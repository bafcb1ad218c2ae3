"""Needed rows are stated within reach only."""

from __future__ import annotations

from app.measures import is_within_reach, optimism


def test_needed_rows_are_stated_up_to_ten_times_those_there_are() -> None:
    assert is_within_reach(0, 0)
    assert is_within_reach(900, 100)
    assert not is_within_reach(901, 100)
    assert not is_within_reach(110_000, 2_000)


def test_rates_are_optimistic_where_the_cutoff_was_chosen_by_labels() -> None:
    assert optimism(["ks"]) == optimism(["threshold", "fpr"]) is not None
    assert optimism(["fpr"], 0.95) is None
    assert optimism(["flagged"]) is optimism([]) is None
