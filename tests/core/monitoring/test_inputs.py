"""Values that a measurement, a plan or a search cannot have are refused by name, also numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.errors import InvalidParameter
from core.monitoring import (
    Measurement,
    PairedMeasurement,
    allot,
    compare_measurements,
    measure_pair,
    recurrence_of,
)
from core.probability import choose_calibration
from core.probability.isotonic import ScoreMasses
from core.selection import GridSearch, RandomSearch, SuccessiveHalving
from tests.raising import mentions

PAIRED: dict[str, Any] = {
    "last": 1,
    "difference": 0.01,
    "variance": 1e-4,
    "trials": 100.0,
    "rows": 200,
    "positives": 50,
}
SPACE = {"n_rounds": [5, 10]}


def refused(name: str, call: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        call()
    assert mentions(str(refusal.value), name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trials", 0),
        ("trials", float("inf")),
        ("variance", -1.0),
        ("variance", float("nan")),
        ("difference", "a"),
        ("last", 0),
        ("last", 1.5),
        ("rows", True),
        ("positives", -1),
        ("by_entity", b"abc"),
    ],
)
def test_a_paired_measurement(name: str, value: Any) -> None:
    refused(name, lambda: PairedMeasurement(**{**PAIRED, name: value}))


def test_paired_measurements_are_in_the_order_of_time() -> None:
    one, other = PairedMeasurement(**PAIRED), PairedMeasurement(**{**PAIRED, "last": 2})
    assert len(compare_measurements([one, other])) == 2
    for tests in ([other, one], [one, one]):
        refused("tests", lambda tests=tests: compare_measurements(tests))


def test_sketches_have_their_size() -> None:
    refused("sketches", lambda: recurrence_of([b"abc", b"abc"]))
    refused("by_entity", lambda: Measurement(0.8, 0.01, 10.0, 10.0, by_entity=b"abc"))
    made = measure_pair([1, 0, 1, 0], [4, 3, 2, 1], [4, 2, 3, 1], last=1, entity=[7, 7, 8, 9])
    assert recurrence_of([b"", made.by_entity]) == 0.0


def test_numbers_of_tests() -> None:
    plan = allot(0.05, {"ranking": np.int64(1)})  # type: ignore[dict-item]
    assert plan == {"ranking": pytest.approx(0.05)}
    for number in (True, -1, 1.0, "1"):
        refused("ranking", lambda number=number: allot(0.05, {"ranking": number}))


@pytest.mark.parametrize(
    ("search", "name", "value"),
    [
        (SuccessiveHalving, "resource", "row"),
        (SuccessiveHalving, "eta", 2.5),
        (SuccessiveHalving, "least_share", "all"),
        (SuccessiveHalving, "n_candidates", 2.5),
        (RandomSearch, "n_candidates", 1.5),
        (RandomSearch, "n_candidates", 0),
        (RandomSearch, "n_splits", True),
        (GridSearch, "n_splits", True),
    ],
)
def test_numbers_of_a_search(search: Any, name: str, value: Any) -> None:
    refused(name, lambda: search("rankboost", SPACE, **{name: value}))


def test_masses_have_no_periods() -> None:
    y, scores = np.arange(40) % 2 == 1, np.arange(40.0)
    masses = ScoreMasses(np.arange(2.0), np.ones(2), np.ones(2))
    refused("masses", lambda: choose_calibration(y, scores, period=np.arange(40), masses=masses))
