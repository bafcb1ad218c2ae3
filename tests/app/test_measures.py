"""Sentences on metrics name only what was measured."""

from __future__ import annotations

from typing import Any

from app.measures import (
    BASELINES,
    beaten_baselines,
    better_baselines,
    is_within_reach,
    no_improvement,
)


def test_only_the_baselines_that_were_fitted_are_named() -> None:
    both = no_improvement(list(BASELINES))
    assert all(words in both for words in BASELINES.values())
    for name, words in BASELINES.items():
        alone = no_improvement([name])
        assert [each for each in BASELINES.values() if each in alone] == [words]
        # What the model beats is not among what it does not beat.
        (other,) = (each for each in BASELINES if each != name)
        first, beaten = no_improvement(list(BASELINES), beaten=[other]).split(" The model is ")
        assert (words in first, words in beaten) == (True, False)
        assert BASELINES[other] in beaten


def test_baselines_are_beaten_or_better_by_the_objective_alone() -> None:
    def pair(algorithm: str, value: float, p_value: float | None) -> dict[str, Any]:
        return {"algorithm": algorithm, "difference": {"value": value, "adjusted_p_value": p_value}}

    whole = {"fpr_min": 0.0, "fpr_max": 1.0}
    part = {"fpr_min": 0.0, "fpr_max": 0.1}
    windows = [
        {**whole, "baselines": [pair("logistic", 0.1, 0.001), pair("auc_svm", -0.1, 0.001)]},
        {**part, "baselines": [pair("logistic", 0.1, 0.2), pair("auc_svm", 0.1, 0.001)]},
    ]
    assert (beaten_baselines(windows, whole, 0.95), better_baselines(windows, whole, 0.95)) == (
        ["logistic"],
        ["auc_svm"],
    )
    assert (beaten_baselines(windows, part, 0.95), better_baselines(windows, part, 0.95)) == (
        ["auc_svm"],
        [],
    )


def test_needed_rows_are_stated_up_to_ten_times_those_there_are() -> None:
    assert is_within_reach(0, 0)
    assert is_within_reach(900, 100)
    assert not is_within_reach(901, 100)
    assert not is_within_reach(110_000, 2_000)
