"""Sentences on tests: they name what was measured, and claim nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from app.feedback.wording import say_comparison, say_detectable, say_test
from tests.sentences import Sentences


def compared(low: float, high: float, further: int | None, **more: Any) -> str:
    found = {"difference": (low + high) / 2.0, "low": low, "high": high, "further_rows": further}
    found |= {"rows": 1_000}
    return say_comparison({**found, "winner": None, "equivalent": False, **more})


def test_a_comparison_that_is_precise_but_undecided_asks_for_no_rows() -> None:
    said = compared(-0.006, 0.012, 0)
    assert "-0.0060 to +0.0120" in said
    assert "± 0.0090" in said
    assert "needs" not in said
    assert "about 1,200 more" in compared(-0.03, 0.05, 1_200)
    assert "needs" not in compared(-0.3, 0.5, None)
    assert "110,000" not in compared(-0.3, 0.5, 110_000)  # beyond ten times the rows that there are
    assert "challenger is better" in compared(0.01, 0.05, 0, winner="challenger")
    assert "±" not in compared(-0.004, 0.004, 0, equivalent=True)


DETECTABLE = {
    "drop": 0.038,
    "floor": 0.019,
    "odds": 1.25,
    "power": 0.8,
    "rows": 2_000.0,
    "periods_per_test": 3,
    "validation_positives": 1_000.0,
    "validation_negatives": 9_000.0,
}


def test_a_detectable_drop_has_its_probability(sentences: Sentences) -> None:
    said = say_detectable("week", DETECTABLE)
    for number in ("0.038", "0.019", "1.25", "2,000", "1,000 independent positives", "3 periods"):
        assert number in said
    assert said.count("80 %") == 3
    assert "2 periods" in say_detectable("week", {**DETECTABLE, "periods_per_test": 2})
    # Nothing is claimed beyond what was measured.
    alone = say_detectable("week", {**DETECTABLE, "periods_per_test": 1, "odds": None})
    assert "together" not in alone
    assert "odds" not in alone
    assert alone.count("80 %") == 2
    unknown = {**DETECTABLE, "rows": None, "drop": None, "periods_per_test": None}
    first = say_detectable("month", unknown | {"floor": None, "odds": None})
    assert "%" not in first
    assert "0.019" in say_detectable("month", unknown)
    # Found with less than the probability is not "never found".
    none = say_detectable("week", {**DETECTABLE, "drop": None, "floor": None, "odds": None})
    sentences(none)


def calibration(
    tested: str,
    status: str,
    reference: float = 0.0,
    newest: float = -0.1,
    since: int = 3,
    ambiguous: int = 0,
    population: str = "all",
) -> str:
    window = {
        "first": since,
        "last": 6,
        "value": 0.8,
        "drop": 0.09,
        "drop_low": 0.02,
        "drop_high": 0.16,
    }
    details: dict[str, Any] = {
        "tested": tested,
        "window": {**window, "inflation": 1.0},
        "missing": None,
    }
    details |= {"ambiguous": ambiguous}
    own = {"first": 6, "last": 6, "value": reference + newest, "variance": 0.0025}
    level = {"value": reference, "variance": 0.0}
    state = {"level": own, "reference": {"level": level, "slope": None}}
    found: dict[str, Any] = {"status": status, "reason": None, "details": details, "state": state}
    found |= {"term_start": 1735516800.0, "planned": 52, "known": 20_000, "population": population}
    return say_test("calibration", found)


@pytest.mark.parametrize(("share", "said"), [(0.25, "25.0 %"), (None, None)])
def test_what_missing_outcomes_could_change(share: float | None, said: str | None) -> None:
    """The share of positives among the known ones is stated if there are any."""
    missing = {"outcomes": 1_200, "known_share": share, "unchanged": {"flagged": (0.1, 0.6)}}
    window = {"first": 3, "last": 6, "value": 0.8, "drop": 0.0, "drop_low": -0.1, "drop_high": 0.1}
    window["inflation"] = 1.0
    own = {"first": 6, "last": 6, "value": 0.8, "variance": 0.0025}
    found: dict[str, Any] = {"status": "passed", "reason": None, "metric": "auc", "value": 0.8}
    found |= {"details": {"missing": missing, "window": window, "ambiguous": 0}, "expected": 0.8}
    found |= {"state": {"measurement": own, "reference": own}, "known": 20_000}
    words = say_test("ranking", {**found, "term_start": 1735516800.0, "planned": 52})
    assert "from 10 % to 60 % of the 1,200 missing outcomes of flagged decisions" in words
    assert words.count("%") == (2 if said is None else 3)
    assert said is None or said in words


@pytest.mark.parametrize("status", ["alarm", "passed"])
def test_a_calibration_names_what_has_moved(status: str) -> None:
    level, slope = calibration("level", status), calibration("slope", status)
    assert "0.91 times" in level
    assert "(0.85 to 0.98)" in level
    assert "slope" not in level
    assert "slope" in slope
    assert "-0.16 to -0.02" in slope
    for each in (level, slope):
        assert "from 2025-01-13 to 2025-02-09" in each
        assert ("no significant difference" in each) is (status == "passed")


@pytest.mark.parametrize("reference", [0.0, 0.5])
@pytest.mark.parametrize("side", ["flagged", "unflagged", "all"])
def test_a_calibration_of_one_side_of_the_cutoff_says_which(side: str, reference: float) -> None:
    said = calibration("level", "alarm", reference=reference, population=side)
    assert ("unflagged" in said) is (side == "unflagged")
    assert ("flagged" in said) is (side != "all")


def test_a_reference_that_is_off_is_not_called_the_prediction(sentences: Sentences) -> None:
    said = calibration("level", "alarm", reference=0.5, since=6)
    sentences(said)


def test_an_alarm_that_may_have_ended_says_so() -> None:
    lasting, ended = (calibration("level", "alarm", newest=each) for each in (-0.2, 0.01))
    assert "0.82 times (0.74 to 0.90)" in lasting
    assert "1.01 times (0.92 to 1.11)" in ended
    for said in (lasting, ended):
        assert "from 2025-02-03 to 2025-02-09 alone" in said.replace("From", "from")
        assert ("ended" in said) is (said == ended)
    # The newest periods are the whole window, or there is no alarm: there is nothing more to say.
    for said in (calibration("level", "passed"), calibration("level", "alarm", since=6)):
        assert "alone" not in said


def test_an_alarm_names_the_outcomes_that_depend_on_their_rule() -> None:
    assert "3,672 of the 20,000 outcomes" in calibration("level", "alarm", ambiguous=3_672)
    for status, count in (("alarm", 900), ("passed", 3_672)):
        assert "outcomes" not in calibration("level", status, ambiguous=count)
