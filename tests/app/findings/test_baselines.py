"""The finding on baselines names those that were fitted, each by what the objective shows."""

from __future__ import annotations

from typing import Any

import pytest

from app.findings.baselines import beats_baselines
from app.findings.finding import Finding
from app.measures import BASELINES, baseline
from tests.raising import mentions

LOGISTIC, SVM = BASELINES
WHOLE, PART = {"fpr_min": 0.0, "fpr_max": 1.0}, {"fpr_min": 0.0, "fpr_max": 0.1}


def pair(algorithm: str, value: float, p_value: float | None) -> dict[str, Any]:
    return {"algorithm": algorithm, "difference": {"value": value, "adjusted_p_value": p_value}}


WINDOWS = [
    {
        **WHOLE,
        "chosen": {"value": 0.8},
        "baselines": [pair(LOGISTIC, 0.1, 0.001), pair(SVM, -0.1, 0.001)],
    },
    {
        **PART,
        "chosen": {"value": 0.7},
        "baselines": [pair(LOGISTIC, 0.1, 0.2), pair(SVM, 0.1, 0.001)],
    },
]


def found(
    beats: bool | None, decided_on: dict[str, float], *, failed: str = "", is_easy: bool = False
) -> Finding:
    fitted = [{"algorithm": name, "failed": name == failed} for name in BASELINES]
    windows = [] if beats is None else WINDOWS
    return beats_baselines(beats, windows, decided_on, fitted, 0.95, None, is_easy=is_easy)


def test_the_objective_decides() -> None:
    whole, part = found(False, WHOLE), found(False, PART)
    first, second, *_ = whole.words.split(". ")
    assert (baseline(SVM) in first, baseline(LOGISTIC) in first) == (True, False)
    assert baseline(LOGISTIC) in second  # the model beats it
    first, second, *_ = part.words.split(". ")
    assert (baseline(SVM) in first, baseline(LOGISTIC) in first) == (False, True)
    assert baseline(SVM) in second
    assert (whole.answer, part.answer) == ("no", "no")


@pytest.mark.parametrize("beats", [True, False])
def test_only_the_baselines_that_were_fitted_are_compared(beats: bool) -> None:
    told = found(beats, WHOLE, failed=SVM)
    assert (told.answer, told.used, told.missing) == ("yes" if beats else "no", [LOGISTIC], [SVM])
    compared, _, failed = told.words.partition(" Not trained: ")
    assert (baseline(SVM) in compared, baseline(SVM) in failed) == (False, True)


def test_a_model_as_easy_as_a_baseline_is_not_said_to_be_harder_to_explain() -> None:
    assert mentions(found(False, PART).words, "easier")
    assert not mentions(found(False, PART, is_easy=True).words, "easier")
    assert not mentions(found(True, PART).words, "easier")


def test_without_a_comparison_there_is_no_answer() -> None:
    told = found(None, WHOLE)
    assert (told.answer, told.reason) == ("unknown", "not_measured")


def test_a_model_that_separates_the_classes_is_not_tested() -> None:
    windows = [{**each, "chosen": {"value": 1.0}} for each in WINDOWS]
    fitted = [{"algorithm": LOGISTIC, "failed": None}]
    told = beats_baselines(True, windows, WHOLE, fitted, 0.95, None, is_easy=False)
    assert (told.answer, told.reason) == ("unknown", "no_interval")
