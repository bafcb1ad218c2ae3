"""Promises of a rate: the order statistic against binomial tails, and how often they are broken."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from core.errors import InvalidParameter
from core.metrics import (
    ClassTotals,
    NoGuarantee,
    TooFewRows,
    guaranteed_point,
    guaranteed_point_on_curve,
    guarantees_on_scores,
    operating_point,
    roc_curve,
    rows_to_guarantee,
)
from tests.core.metrics.naive import rankings
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

DRAWS = 2_000 if LONG_FORM else 200


def most_broken(risk: float, draws: int = DRAWS) -> int:
    """Breaks among the draws that chance exceeds in less than one of 10,000 runs, if each has this risk."""
    return int(binom.ppf(0.9999, draws, risk))


def test_fifty_nine_rows_are_needed_for_five_percent_at_ninety_five() -> None:
    assert rows_to_guarantee(fpr=0.05) == rows_to_guarantee(tpr=0.95) == 59
    assert rows_to_guarantee(fpr=0.01) == 299
    assert rows_to_guarantee(fpr=0.5, confidence=0.5) == 1
    for limit, confidence in ((0.03, 0.9), (0.2, 0.99), (1e-6, 0.5)):
        n = rows_to_guarantee(fpr=limit, confidence=confidence)
        assert (1 - limit) ** n <= 1 - confidence < (1 - limit) ** (n - 1)


@given(
    rankings(max_rows=24), st.sampled_from([0.15, 0.3, 0.6, 0.9]), st.sampled_from([0.2, 0.5, 0.8])
)
def test_no_other_cut_that_keeps_the_promise_is_better(
    ranking: tuple[np.ndarray, np.ndarray, None], limit: float, confidence: float
) -> None:
    y, scores, _ = ranking
    for rate, label, share in (("fpr", 0, limit), ("tpr", 1, 1 - limit)):
        n = int((y == label).sum())
        kept = [m for m in range(n) if binom.cdf(m, n, share) <= 1 - confidence + 1e-12]
        asked: dict[str, Any] = {rate: limit, "confidence": confidence}
        if not kept:
            with raises(TooFewRows, rate, limit, confidence, n) as refused:
                guaranteed_point(y, scores, **asked)
            assert refused.value.needed > n
            continue
        found = guaranteed_point(y, scores, **asked)
        guarantee = found.guarantee
        assert (guarantee.errors, guarantee.rows) == (kept[-1], n)
        assert guarantee.broken == pytest.approx(binom.cdf(kept[-1], n, share))
        assert guarantee.needed <= n
        cutoffs = [math.inf, *sorted(set(scores.tolist()), reverse=True)]
        tpr = [(scores[y == 1] >= cutoff).mean() for cutoff in cutoffs]
        fpr = [(scores[y == 0] >= cutoff).mean() for cutoff in cutoffs]
        points = list(zip(fpr, tpr, strict=True))
        if rate == "fpr":
            best = max((t, -f) for f, t in points if f * n <= guarantee.errors + 1e-9)
            assert (found.point.tpr.value, -found.point.fpr.value) == pytest.approx(best)
        else:
            best = min((f, -t) for f, t in points if (1 - t) * n <= guarantee.errors + 1e-9)
            assert (found.point.fpr.value, -found.point.tpr.value) == pytest.approx(best)


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("rate", ["fpr", "tpr"])
def test_a_promise_is_broken_in_at_most_its_share_of_the_draws(
    rate: str, digits: int | None
) -> None:
    rng = np.random.default_rng(7)
    broken = known_risk = 0.0
    y = np.repeat([1, 0], [150, 150])
    limit = 0.1 if rate == "fpr" else 0.9
    asked: dict[str, Any] = {rate: limit, "confidence": 0.9}
    for _ in range(DRAWS):
        scores = rng.normal(size=y.size) + 1.5 * y
        scores = scores if digits is None else np.round(scores, digits)
        found = guaranteed_point(y, scores, **asked)
        # a rounded score reaches a cut from half a step below it
        cutoff = found.point.threshold - (0.0 if digits is None else 0.5 * 10.0**-digits)
        true = norm.sf(cutoff - (1.5 if rate == "tpr" else 0.0))
        broken += true > limit if rate == "fpr" else true < limit
        known_risk = found.guarantee.broken
    assert known_risk <= 0.1
    assert broken <= most_broken(known_risk)
    # the cut is no more careful than it has to be: among the negatives it flags about as many as are allowed
    if digits is None:
        assert broken >= 0.3 * known_risk * DRAWS


def test_groups_keep_the_promise_together() -> None:
    rng, broken = np.random.default_rng(3), 0
    by = np.tile(["east", "north", "south"], 160)
    shift = np.select([by == "east", by == "north"], [0.0, 1.0], 0.4)
    y = np.repeat([1, 0], 240)
    for _ in range(DRAWS):
        scores = rng.normal(size=480) + shift + y
        negatives = {name: scores[(by == name) & (y == 0)] for name in np.unique(by).tolist()}
        found = guarantees_on_scores(negatives, fpr=0.1, confidence=0.9)
        cutoffs = {each.group: each.threshold for each in found.groups}
        assert found.threshold == max(cutoffs.values())
        means = {"east": 0.0, "north": 1.0, "south": 0.4}
        broken += any(norm.sf(cutoffs[name] - mean) > 0.1 for name, mean in means.items())
    assert broken <= most_broken(0.1)


def test_a_group_with_too_few_rows_has_no_cut_and_says_how_many_it_needs() -> None:
    positives = {1: np.arange(0.0, 60.0, 2.0), 2: np.arange(60.0, 70.0, 2.0)}
    found = guarantees_on_scores(positives, tpr=0.8, together=False)
    big, small = found.groups
    assert (big.rows, big.needed, big.threshold) == (30, 14, 4.0)
    assert (small.group, small.rows, small.threshold, found.threshold) == (2, 5, None, None)


def test_the_curve_and_the_counts_are_enough() -> None:
    rng = np.random.default_rng(1)
    y = np.repeat([1, 0], [80, 200])
    scores = rng.normal(size=280).round(1) + y
    direct = guaranteed_point(y, scores, fpr=0.05, prevalence=0.01)
    totals = ClassTotals.of_counts(80, 200)
    curve = roc_curve(y, scores)
    stored = guaranteed_point_on_curve(curve, totals, (80, 200), fpr=0.05, prevalence=0.01)
    assert repr(stored) == repr(direct)
    fraction = direct.guarantee.errors / 200
    assert direct.point == operating_point(y, scores, fpr=fraction, prevalence=0.01)


def test_unequal_weights_of_the_class_are_refused(sentences: Sentences) -> None:
    rng = np.random.default_rng(2)
    y = np.repeat([1, 0], [40, 100])
    scores, weights = rng.normal(size=140), np.where(y == 1, rng.random(140) + 0.1, 3.7)
    assert guaranteed_point(y, scores, fpr=0.1, sample_weight=weights).guarantee.rows == 100
    with raises(NoGuarantee, "tpr", 40):
        guaranteed_point(y, scores, tpr=0.5, sample_weight=weights)
    with sentences.raises(NoGuarantee):
        guaranteed_point_on_curve(
            roc_curve(y, scores), ClassTotals(40, 100, 40, 20), (40, 100), fpr=0.1
        )


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({}, ("fpr", "tpr")),
        ({"fpr": 0.1, "tpr": 0.9}, ("fpr", "tpr")),
        ({"fpr": 0.0}, ("fpr", 0.0)),
        ({"tpr": 1.0}, ("tpr", 1.0)),
        ({"tpr": math.nan}, ("tpr", "nan")),
        ({"fpr": True}, ("fpr", True)),
        ({"fpr": "x"}, ("fpr", "'x'")),
        ({"fpr": 0.1, "confidence": 1.0}, ("confidence", 1.0)),
        ({"fpr": 0.1, "confidence": math.nan}, ("confidence", "nan")),
        ({"fpr": 0.1, "confidence": None}, ("confidence", None)),
    ],
)
def test_bad_input_is_refused(asked: dict[str, Any], named: tuple[object, ...]) -> None:
    y, scores = np.repeat([1, 0], 50), np.arange(100.0)
    for ask in (
        lambda: guaranteed_point(y, scores, **asked),
        lambda: guarantees_on_scores({0: scores}, **asked),
        lambda: rows_to_guarantee(**asked),
    ):
        with raises(InvalidParameter, *named):
            ask()
