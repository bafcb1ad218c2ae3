"""The difference of two partial AUCs on the same rows, and its standard error."""

import numpy as np
import pytest
from pair_reference import structural_components

from core.metrics import partial_auc
from core.metrics.paired import partial_auc_rise

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


def make_rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    shared = rng.normal(size=n) + y
    before = np.round(shared + 0.5 * rng.normal(size=n), 1)
    after = np.round(shared + 0.4 * rng.normal(size=n), 2)
    return y, before, after, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("window", WINDOWS)
def test_areas_are_those_of_either(window):
    y, before, after, weight = make_rows()
    rise = partial_auc_rise(y, before, after, *window, sample_weight=weight, unit=np.arange(len(y)))
    for found, scores in ((rise.before, before), (rise.after, after)):
        assert found == pytest.approx(partial_auc(y, scores, *window, sample_weight=weight))


def test_of_all_rates_the_error_is_delongs():
    y, before, after, _ = make_rows()
    ones, units = np.ones(len(y)), np.arange(len(y))
    rise = partial_auc_rise(y, before, after, sample_weight=ones, unit=units)
    parts = zip(structural_components(y, before), structural_components(y, after), strict=True)
    variance = sum((b - a).var(ddof=1) / len(a) for a, b in parts)
    assert rise.error == pytest.approx(np.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize("window", WINDOWS)
def test_the_error_is_that_of_many_samples(window):
    rises = []
    for seed in range(300):
        y, before, after, _ = make_rows(n=500, seed=seed)
        ones, units = np.ones(len(y)), np.arange(len(y))
        rises.append(partial_auc_rise(y, before, after, *window, sample_weight=ones, unit=units))
    differences = [rise.after - rise.before for rise in rises]
    errors = [rise.error for rise in rises]
    assert np.mean(errors) == pytest.approx(np.std(differences), rel=0.15)


def test_equal_rows_are_one_observation():
    y, before, after, _ = make_rows(120)
    counts = np.random.default_rng(1).integers(1, 4, 120)
    units = np.arange(120)
    one = partial_auc_rise(y, before, after, 0.0, 0.3, sample_weight=7.0 * counts, unit=units)
    many = [np.repeat(values, counts) for values in (y, before, after, units)]
    other = partial_auc_rise(*many[:3], 0.0, 0.3, sample_weight=np.ones(counts.sum()), unit=many[3])
    assert one == pytest.approx(other, abs=1e-12)


def test_the_same_scores_differ_by_nothing():
    y, before, _, weight = make_rows()
    rise = partial_auc_rise(y, before, before, sample_weight=weight, unit=np.arange(len(y)))
    assert (rise.after - rise.before, rise.error) == (0.0, 0.0)


def test_of_one_row_of_a_class_nothing_is_known():
    scores = np.array([3.0, 2.0, 1.0])
    rise = partial_auc_rise(
        [1, 0, 0], scores, scores[::-1], sample_weight=np.ones(3), unit=np.arange(3)
    )
    assert rise == (1.0, 0.0, 1.0)
