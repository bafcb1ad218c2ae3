"""Sentences on metrics name only what was measured."""

from __future__ import annotations

from app.measures import BASELINES, no_improvement


def test_only_the_baselines_that_were_fitted_are_named() -> None:
    both = no_improvement(list(BASELINES))
    assert all(words in both for words in BASELINES.values())
    assert "at least one" in both
    for name, words in BASELINES.items():
        alone = no_improvement([name])
        assert [each for each in BASELINES.values() if each in alone] == [words]
        assert "at least one" not in alone
