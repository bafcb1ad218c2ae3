"""The one rule for shifts: what is tested together, what a verdict needs, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from app.findings.shift import ENOUGH, INSUFFICIENT, SHIFTED, STABLE, TIED_FOLDS, decide, listed
from tests.raising import mentions


def column(name: str, psi: float | None, importance: float | None, p_value: float = 1e-9) -> Any:
    known = psi is not None
    return {
        "name": name,
        "importance": importance,
        "psi": {"value": psi, "low": psi / 2.0, "high": psi * 1.2} if known else None,
        "distance": 0.3,
        "p_value": p_value if known else None,
        "reason": None if known else "tied",
        "bins": [],
    }


def scores(psi: float | None, p_value: float = 1e-9, reason: str = "short") -> Any:
    found = column("", psi, None, p_value)
    del found["name"], found["importance"]
    return found | {"of": "all", "higher": 0.6, "reason": None if psi is not None else reason}


@pytest.mark.parametrize(
    ("of_scores", "columns", "verdict"),
    [
        (scores(0.01, 0.5), [column("a", 0.02, 1.0, 0.4)], STABLE),
        (scores(0.3), [column("a", 0.02, 1.0, 0.4)], SHIFTED),
        (scores(0.01, 0.5), [column("a", 0.3, 0.5), column("b", 0.0, 0.5, 1.0)], SHIFTED),
        (scores(0.01, 0.5), [column("a", 0.3, 0.001), column("b", 0.0, 0.999, 1.0)], STABLE),
        (scores(0.01, 0.5), [column("a", 0.05, 1.0)], STABLE),  # significant, and small
        (scores(0.01, 0.5), [column("a", 0.3, 1.0, 0.02)], INSUFFICIENT),  # large, and by chance
        (scores(0.23, 0.02), [column("a", 0.02, 1.0, 0.4)], INSUFFICIENT),  # up to .28
        (scores(None), [column("a", 0.02, 1.0, 0.4)], INSUFFICIENT),
        (scores(None, reason=TIED_FOLDS), [column("a", 0.02, 1.0, 0.4)], STABLE),
        (None, [column("a", 0.02, 1.0, 0.4)], STABLE),
        (None, [column("a", 0.02, ENOUGH, 0.4), column("b", None, 1.0 - ENOUGH)], STABLE),
        (None, [column("a", 0.02, 0.85, 0.4), column("b", None, 0.15)], INSUFFICIENT),
        (None, [column("a", 0.02, None, 0.4), column("b", None, None)], INSUFFICIENT),
    ],
)
def test_the_verdict(of_scores: Any, columns: list[Any], verdict: str) -> None:
    assert decide(of_scores, columns, 500).verdict == verdict


def test_nothing_to_compare_is_no_verdict() -> None:
    assert decide(None, [], 500) == (None, "")


def test_all_tests_have_one_level_together() -> None:
    """.004 alone is significant at 1 %, but not among three."""
    alone, others = column("a", 0.3, 1.0, 0.004), [column(name, 0.0, 0.0, 1.0) for name in "bc"]
    assert decide(None, [alone], 500).verdict == SHIFTED
    assert decide(None, [alone, *others], 500).verdict != SHIFTED
    assert alone["adjusted_p_value"] == pytest.approx(0.012)


def test_what_was_not_tested_is_named_with_its_own_reason() -> None:
    columns = [column("a", None, 0.5), column("b", 0.02, 0.5, 0.4), column("c", None, 0.001)]
    found = decide(scores(None), columns, 500)
    said = found.words.split("Not tested: ")[1:]
    assert [(mentions(each, "a"), mentions(each, "short")) for each in said] == [
        (True, False),
        (False, True),
    ]
    assert not mentions(found.words, "b")
    assert not mentions(found.words, "c")  # it does not matter
    assert not mentions(found.words, "500")  # rows are not what is missing


def test_the_columns_that_are_listed() -> None:
    columns = [column(f"c{i}", 0.0, 0.0, 1.0) for i in range(120)]
    columns += [column("moved", 0.3, 0.1), column("heavy", 0.05, 0.9, 0.3)]
    decide(None, columns, 500)
    found = listed(columns)
    assert len(found) == 100
    assert [each["name"] for each in found[:2]] == ["moved", "heavy"]
    assert [each["bins"] is None for each in found] == [False] * 20 + [True] * 80
