"""Which model finds the most positives within a review capacity, in words."""

from __future__ import annotations

from typing import Any

import pytest
from rankwright.types import ComparedAtCapacity, ComparedWindow

from app.console.comparisons import fpr_of_flagged, say_first_rows, say_window

NAMES = {"a": "m:1", "b": "m:2"}


def said(first: float, second: float, p_value: float | None) -> str:
    value = {"level": 0.95, "low": 0.0, "high": 100.0}
    found: dict[str, Any] = {
        "review": 100,
        "rows": 1_000,
        "metric": "precision@10%",
        "p_value": p_value,
        "winner": None,
        "values": [
            {"model_id": id_, "value": each, **value} for id_, each in (("a", first), ("b", second))
        ],
        "differences": [
            {
                "first": "a",
                "second": "b",
                "value": first - second,
                "low": first - second - 4.0,
                "high": first - second + 4.0,
                "p_value": p_value,
                "adjusted_p_value": p_value,
            }
        ],
    }
    return say_first_rows(ComparedAtCapacity.from_json(found), NAMES, 0.95)


@pytest.mark.parametrize(
    ("first", "second", "p_value", "there", "absent"),
    [
        (36.0, 36.0, 1.0, ["about equally many", "36 each", "at most 4"], ["the most", " 0 more"]),
        (36.4, 35.6, 0.9, ["about equally many", "36 each", "at most 5"], ["the most", " 1 more"]),
        (36.6, 36.4, 0.9, ["about equally many", "36 to 37"], ["the most", " 0 more"]),
        (48.0, 36.0, 0.001, ["m:1 finds the most", "48, 12 more than m:2"], ["not stat"]),
        (36.0, 48.0, 0.001, ["m:2 finds the most", "48, 12 more than m:1"], ["not stat"]),
        (38.0, 36.0, 0.4, ["m:1 finds the most", "2 more", "not statistically"], ["equally"]),
        # Too few rows for a test: the difference may not be called significant.
        (38.0, 36.0, None, ["m:1 finds the most", "not statistically"], ["equally"]),
    ],
)
def test_the_most_positives(
    first: float, second: float, p_value: float | None, there: list[str], absent: list[str]
) -> None:
    words = said(first, second, p_value)
    assert "100 of 1,000 rows" in words
    assert all(each in words for each in there), words
    assert not any(each in words for each in absent), words


def test_the_chart_near_the_cutoff_ends_at_an_fpr_that_the_cutoff_has() -> None:
    """A cutoff that flags 15 % of the rows has an FPR of less than 15 %, because it flags more of the positives."""
    points = [(0.0, 0.0), (0.0, 0.4), (0.1, 0.6), (1.0, 1.0)]
    # 0.2 × 0.5 + 0.8 × 0.05 = 0.14: halfway along the second piece.
    assert fpr_of_flagged(points, 0.14, 0.2) == pytest.approx(0.05)
    assert fpr_of_flagged(points, 0.05, 0.2) == 0.0
    assert fpr_of_flagged(points, 1.0, 0.2) == 1.0


@pytest.mark.parametrize(
    ("p_values", "winner", "there", "absent"),
    [
        # c is worse than both others, which are equal.
        (
            (0.9, 0.001, 0.001),
            None,
            ["c is significantly worse than a and b"],
            ["is significantly better."],
        ),
        ((0.9, 0.9, 0.9), None, ["No model"], ["worse"]),
        ((0.9, 0.001, 0.2), None, ["c is significantly worse than a."], ["b is", "and b"]),
        ((0.9, None, 0.2), None, ["No model"], ["worse"]),
        ((0.01, 0.001, 0.2), "a", ["a is significantly better."], ["worse"]),
        (
            (0.01, 0.001, 0.02),
            "a",
            ["a is significantly better.", "c is significantly worse than b."],
            [],
        ),
    ],
)
def test_a_model_that_is_worse_than_others_is_named(
    p_values: tuple[float | None, ...], winner: str | None, there: list[str], absent: list[str]
) -> None:
    pairs = [("a", "b", 0.01), ("a", "c", 0.1), ("b", "c", 0.09)]
    found = {
        "fpr_min": 0.0,
        "fpr_max": 1.0,
        "winner": winner,
        "values": [],
        "differences": [
            {
                "first": first,
                "second": second,
                "value": value,
                "low": value - 0.01,
                "high": value + 0.01,
                "p_value": p_value,
                "adjusted_p_value": p_value,
            }
            for (first, second, value), p_value in zip(pairs, p_values, strict=True)
        ],
    }
    words = say_window(ComparedWindow.from_json(found), {each: each for each in "abc"}, 0.95)
    assert all(each in words for each in there), words
    assert not any(each in words for each in absent), words
