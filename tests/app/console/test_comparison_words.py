"""Which model finds the most positives within a review capacity, in words."""

from __future__ import annotations

from typing import Any

import pytest
from rankwright.types import ComparedAtCapacity

from app.console.comparisons import say_first_rows

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
        (36.0, 36.0, 1.0, ["equally many", "36 each"], ["most", " 0 more"]),
        (36.4, 35.6, 0.9, ["equally many", "36 each"], ["most", " 1 more"]),
        (36.6, 36.4, 0.9, ["about equally many", "36 to 37"], ["most", " 0 more"]),
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
