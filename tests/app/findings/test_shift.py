"""The one rule for shifts: what is tested together, what a verdict needs, and what is said of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from app.findings.shift import ENOUGH, TIED_FOLDS, listed, positives_kept, rates_kept, stable
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
    ("of_scores", "columns", "answer"),
    [
        (scores(0.01, 0.5), [column("a", 0.02, 1.0, 0.4)], "yes"),
        (scores(0.3), [column("a", 0.02, 1.0, 0.4)], "no"),
        (scores(0.01, 0.5), [column("a", 0.3, 0.5), column("b", 0.0, 0.5, 1.0)], "no"),
        (scores(0.01, 0.5), [column("a", 0.3, 0.001), column("b", 0.0, 0.999, 1.0)], "yes"),
        (scores(0.01, 0.5), [column("a", 0.05, 1.0)], "yes"),  # significant, and small
        (scores(0.01, 0.5), [column("a", 0.3, 1.0, 0.02)], "unknown"),  # large, and by chance
        (scores(0.23, 0.02), [column("a", 0.02, 1.0, 0.4)], "unknown"),  # up to .28
        (scores(None), [column("a", 0.02, 1.0, 0.4)], "unknown"),
        (scores(None, reason=TIED_FOLDS), [column("a", 0.02, 1.0, 0.4)], "yes"),
        (None, [column("a", 0.02, 1.0, 0.4)], "yes"),
        (None, [column("a", 0.02, ENOUGH, 0.4), column("b", None, 1.0 - ENOUGH)], "yes"),
        (None, [column("a", 0.02, 0.85, 0.4), column("b", None, 0.15)], "unknown"),
        (None, [column("a", 0.02, None, 0.4), column("b", None, None)], "unknown"),
    ],
)
def test_the_answer(of_scores: Any, columns: list[Any], answer: str) -> None:
    assert stable(of_scores, columns, 500).answer == answer


def test_nothing_to_compare_is_unknown() -> None:
    found = stable(None, [], 500)
    assert (found.answer, found.reason) == ("unknown", "not_measured")


def test_all_tests_have_one_level_together() -> None:
    """.004 alone is significant at 1 %, but not among three."""
    alone, others = column("a", 0.3, 1.0, 0.004), [column(name, 0.0, 0.0, 1.0) for name in "bc"]
    assert stable(None, [alone], 500).answer == "no"
    assert stable(None, [alone, *others], 500).answer != "no"
    assert alone["adjusted_p_value"] == pytest.approx(0.012)


def test_what_was_not_tested_is_named_with_its_own_reason() -> None:
    columns = [column("a", None, 0.5), column("b", 0.02, 0.5, 0.4), column("c", None, 0.001)]
    found = stable(scores(None), columns, 500)
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
    stable(None, columns, 500)
    found = listed(columns)
    assert len(found) == 100
    assert [each["name"] for each in found[:2]] == ["moved", "heavy"]
    assert [each["bins"] is None for each in found] == [False] * 20 + [True] * 80


def of_class(name: str, psi: float | None, p_value: float = 0.4) -> Any:
    return scores(psi, p_value) | {"of": name, "changed": psi is not None and p_value < 0.01}


@pytest.mark.parametrize(
    ("positives", "negatives", "answer", "reason"),
    [
        (of_class("positives", 0.02), of_class("negatives", 0.03), "yes", None),
        (of_class("positives", 0.4, 1e-6), of_class("negatives", 0.03), "no", None),
        (of_class("positives", 0.22), of_class("negatives", 0.03), "unknown", "too_few_rows"),
        (of_class("positives", None), of_class("negatives", 0.03), "unknown", "untested"),
    ],
)
def test_the_rates_at_a_cutoff(positives: Any, negatives: Any, answer: str, reason: str) -> None:
    found = rates_kept([positives, negatives])
    assert (found.answer, found.reason) == (answer, reason)
    if answer == "no":
        assert mentions(found.words, "positives")
        assert not mentions(found.words, "negatives")


@pytest.mark.parametrize(
    ("half", "changed", "answer"),
    [(0.005, False, "yes"), (0.08, False, "unknown"), (0.005, True, "no")],
)
def test_the_fraction_of_positives(half: float, changed: bool, answer: str) -> None:
    value = 0.1 if changed else 0.001
    change = {"value": value, "low": value - half, "high": value + half}
    before = {"value": 0.2, "low": 0.2 - half / 2.0, "high": 0.2 + half / 2.0}
    after = {name: each + value for name, each in before.items()}
    found = positives_kept(
        {"of": "prevalence", "before": before, "after": after, "change": change, "changed": changed}
    )
    assert found.answer == answer
    assert mentions(found.words, "More") is changed
