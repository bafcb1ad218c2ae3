"""Net benefit, Brier and log scores, and the Kolmogorov-Smirnov distance: values by definition, and their intervals."""

import math

import numpy as np
import pytest

from core.errors import InvalidData, InvalidParameter
from core.metrics import NetBenefit, decision_curve, ks_interval, roc_curve, wilson_interval
from core.probability import brier_score, log_score
from tests.long_form import LONG_FORM


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 4.0, n).round(2)
    return rng.random(n) < p, p


def test_net_benefit_by_its_definition() -> None:
    y, p = rows(400)
    thresholds = (0.5, 0.02, 0.1, 0.95)
    for found, t in zip(decision_curve(y, p, thresholds), thresholds, strict=True):
        flagged, odds = p >= t, t / (1 - t)
        benefit = (y & flagged).mean() - (~y & flagged).mean() * odds
        flag_all = y.mean() - (~y).mean() * odds
        assert found.threshold == t
        assert found.flagged == pytest.approx(flagged.mean())
        assert found.benefit.value == pytest.approx(benefit)
        assert found.flag_all.value == pytest.approx(flag_all)
        assert found.over_all.value == pytest.approx(benefit - flag_all)
        for low, value, high in ((each.low, each.value, each.high) for each in found[2:]):
            assert low <= value <= high
        assert -odds <= found.benefit.low
        assert found.benefit.high <= 1.0


def test_a_weight_is_a_number_of_rows_and_only_ratios_matter_for_the_interval() -> None:
    y, p = rows(200)
    weight = np.random.default_rng(1).integers(1, 4, 200)
    weighted = decision_curve(y, p, sample_weight=weight)
    for one, other, scaled in zip(
        weighted,
        decision_curve(np.repeat(y, weight), np.repeat(p, weight)),
        decision_curve(y, p, sample_weight=7.0 * weight),
        strict=True,
    ):
        for name in ("benefit", "flag_all", "over_all"):
            assert getattr(one, name).value == pytest.approx(getattr(other, name).value)
            assert getattr(one, name) == pytest.approx(getattr(scaled, name))
            width = getattr(one, name).high - getattr(one, name).low
            repeated = getattr(other, name).high - getattr(other, name).low
            assert width >= repeated - 1e-9


def test_rows_that_are_repeated_within_groups_say_no_more() -> None:
    y, p = rows(150)
    each = decision_curve(y, p, [0.1, 0.3])
    group = np.repeat(np.arange(150), 4)
    repeated = decision_curve(np.repeat(y, 4), np.repeat(p, 4), [0.1, 0.3], group=group)
    blind = decision_curve(np.repeat(y, 4), np.repeat(p, 4), [0.1, 0.3])
    for one, four, many in zip(each, repeated, blind, strict=True):
        assert four.benefit == pytest.approx(one.benefit, abs=0.004)
        assert many.benefit.high - many.benefit.low < 0.6 * (one.benefit.high - one.benefit.low)


def test_intervals_where_no_row_and_where_every_row_is_acted_on() -> None:
    y, p = np.arange(100) < 20, np.full(100, 0.3)
    none, every = decision_curve(y, p, [0.5, 0.2])
    assert none.benefit.value == none.flagged == 0.0
    assert -0.1 < none.benefit.low < 0.0 < none.benefit.high < 0.1
    assert every.flagged == 1.0
    assert every.benefit.value == pytest.approx(every.flag_all.value)
    assert every.over_all.value == 0.0
    assert every.over_all.low < 0.0 < every.over_all.high
    odds = 0.25
    expected = [(1 + odds) * end - odds for end in wilson_interval(0.2, 99)]
    assert list(every.flag_all) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("thresholds", "level"),
    [((), 0.95), ((0.0,), 0.95), ((1.0,), 0.95), ((0.2, 1.5), 0.95), ((0.2,), 1.0)],
)
def test_thresholds_and_levels_out_of_range(thresholds: tuple[float, ...], level: float) -> None:
    with pytest.raises(InvalidParameter):
        decision_curve([0, 1], [0.1, 0.9], thresholds, level=level)


@pytest.mark.parametrize("probability", [[0.1, 1.2], [-0.1, 0.5], [0.5, math.nan], [0.5]])
def test_what_is_no_probability(probability: list[float]) -> None:
    with pytest.raises(InvalidData):
        decision_curve([0, 1], probability)
    with pytest.raises(InvalidData):
        decision_curve([1, 1], [0.1, 0.2])


def test_intervals_cover_with_few_positives() -> None:
    """Ten positives in 500 rows; `python -m benchmarks.coverage --tables decisions` has more kinds."""
    rng = np.random.default_rng(2)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        p = 1.0 / (1.0 + np.exp(5.0 - 1.5 * rng.normal(size=n)))
        return rng.random(n) < p, p

    y, p = draw(1_000_000 if LONG_FORM else 200_000)
    large = decision_curve(y, p, [0.02, 0.1])
    truth = [each.benefit.value for each in large] + [each.over_all.value for each in large]
    truth += [brier_score(y, p).score, ks_interval(y, p).value]
    covered = []
    for _ in range(200 if LONG_FORM else 60):
        y, p = draw(500)
        if y.sum() < 2:
            continue
        found = decision_curve(y, p, [0.02, 0.1])
        intervals = [each.benefit for each in found] + [each.over_all for each in found]
        brier = brier_score(y, p).interval
        assert brier is not None
        intervals += [brier, ks_interval(y, p)]
        covered.append([i.low <= t <= i.high for i, t in zip(intervals, truth, strict=True)])
    assert (np.mean(covered, axis=0) >= (0.88 if LONG_FORM else 0.83)).all()


def test_intervals_are_as_wide_as_estimates_vary_if_classes_are_sampled_differently() -> None:
    """Of the negatives, one in ten is sampled, with weight 10; Kish's number of rows is that of the negatives."""
    rng = np.random.default_rng(0)
    n_trials, found = LONG_FORM * 700 + 300, list[NetBenefit]()
    for _ in range(n_trials):
        p = rng.beta(1.0, 6.0, 8000)
        y = rng.random(p.size) < p
        kept = y | (rng.random(p.size) < 0.1)
        weight = np.where(y, 1.0, 10.0)[kept]
        found += decision_curve(y[kept], p[kept], [0.3], sample_weight=weight)
    for name in ("benefit", "flag_all", "over_all"):
        intervals = np.array([getattr(each, name) for each in found])
        half = np.median(intervals[:, 2] - intervals[:, 1]) / 2.0
        assert half / (1.96 * intervals[:, 0].std()) == pytest.approx(1.0, abs=0.12)


def test_scores_have_intervals() -> None:
    y, p = rows(300)
    p = np.clip(p, 0.01, 0.99)
    for score in (brier_score, log_score):
        found = score(y, p)
        assert found.interval is not None
        assert found.interval.value == pytest.approx(found.score)
        assert 0.0 <= found.interval.low < found.score < found.interval.high
        group = np.arange(300) // 10
        grouped = score(
            np.repeat(y, 2), np.repeat(p, 2), group=np.repeat(np.arange(300), 2)
        ).interval
        assert grouped == pytest.approx(found.interval, rel=1e-3)
        assert score(y, p, group=group).score == pytest.approx(found.score)
    sure = np.where(np.arange(300) == 0, 1.0 - y[0], p)
    assert log_score(y, sure).score == math.inf
    assert log_score(y, sure).interval is None
    right = brier_score(y, y.astype(float)).interval
    assert right is not None
    assert right.low == right.value == 0.0


def test_the_distance_has_the_curve_s_value_and_an_interval_that_knows_of_the_choice() -> None:
    rng = np.random.default_rng(3)
    y = np.repeat([1, 0], [60, 300])
    scores = (rng.normal(size=360) + y).round(1)
    found = ks_interval(y, scores)
    assert found.value == pytest.approx(roc_curve(y, scores).ks)
    assert 0.0 < found.low < found.value < found.high < 1.0
    assert ks_interval(y, scores, random_state=1).value == found.value
    assert ks_interval(y, -scores).value == pytest.approx(found.value)
    assert ks_interval(y, scores, group=np.arange(360) // 6).high > found.high
    nothing = ks_interval(y, np.zeros(360))
    assert nothing[:2] == (0.0, 0.0)
    assert nothing.high == pytest.approx(0.09, abs=0.09)
    above = 0
    for _ in range(50):  # scores that say nothing: a distance of 0
        above += ks_interval(y, rng.normal(size=360)).low > 0.0
    assert above <= 8
