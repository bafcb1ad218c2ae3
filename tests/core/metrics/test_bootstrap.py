"""The bootstrap: Philox's published words, samples against sorting them anew, units, and threads."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chisquare

from core.errors import InvalidParameter
from core.metrics import compare, partial_auc_interval
from core.metrics.bootstrap import draw_areas, philox
from core.metrics.groups import check_rows
from core.metrics.intervals import bootstrap_areas, estimate_areas
from tests.core.metrics.naive import bootstrap_draws, interpolated_pauc, rankings, windows
from tests.core.threads import on_one_thread_and_on_all
from tests.long_form import LONG_FORM

WINDOWS = [(0.0, 1.0), (0.0, 0.2), (0.1, 0.5)]


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((2**32 - 1,) * 2, (2**32 - 1,) * 4, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_its_published_words(
    key: tuple[int, int], counter: tuple[int, int, int, int], words: str
) -> None:
    # Random123's known answers for philox4x32-10.
    found = np.empty(4, dtype=np.uint64)
    low, high = counter[0] + (counter[1] << 32), counter[2] + (counter[3] << 32)
    philox(np.array(key, dtype=np.uint64), np.uint64(high), np.uint64(low), found)
    assert " ".join(f"{word:08x}" for word in found) == words


@settings(max_examples=400 if LONG_FORM else 13)
@given(rankings(weighted=True), windows)
def test_a_sample_is_its_rows_sorted_anew(
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray], window: tuple[float, float]
) -> None:
    y, scores, weights = ranking
    rows = check_rows(y, {"scores": scores, "other": scores[::-1]}, weights)
    found = draw_areas(rows, [window, (0.0, 1.0)], 3, 7)
    first = np.argsort(scores)[::-1]
    strata = [first[y[first] == 1], first[y[first] == 0]]
    for replicate in range(3):
        taken = bootstrap_draws(7, replicate, [len(stratum) for stratum in strata])
        sample = np.concatenate([s[i] for s, i in zip(strata, taken, strict=True)])
        for k, column in enumerate((scores, scores[::-1])):
            for j, bounds in enumerate((window, (0.0, 1.0))):
                expected = interpolated_pauc(y[sample], column[sample], *bounds, weights[sample])
                assert found[replicate, k, j] == pytest.approx(expected)


def test_every_unit_is_as_likely_as_any_other() -> None:
    # Scorer k puts negative k alone above the positive: the area says how often it was drawn.
    y = np.array([1, 0, 0, 0, 0, 0])
    rows = check_rows(y, {f"s{k}": np.where(np.arange(6) == k + 1, 9.0, y) for k in range(5)})
    shares = 1.0 - draw_areas(rows, [(0.0, 1.0)], 4000, 0)[:, :, 0]
    counts = np.rint(5.0 * shares).astype(int)
    assert np.all(counts.sum(axis=1) == 5)
    assert chisquare(counts.sum(axis=0)).pvalue > 1e-3
    of_one = np.bincount(counts[:, 0], minlength=6)
    binomial = np.array([math.comb(5, c) * 0.2**c * 0.8 ** (5 - c) for c in range(6)]) * 4000
    assert (
        chisquare([*of_one[:4], of_one[4:].sum()], [*binomial[:4], binomial[4:].sum()]).pvalue
        > 1e-3
    )


def two_scorers(
    n: int = 600, size: int = 1, seed: int = 0
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(n // size), size)
    y = (rng.random(n) < 0.3).astype(int)
    shared = y + rng.normal(size=n // size)[unit]
    return y, [np.round(shared + rng.normal(size=n), 1) for _ in range(2)], unit


def test_the_same_bits_whatever_the_threads_and_however_many_samples() -> None:
    y, scores, _ = two_scorers()
    rows = check_rows(y, {"a": scores[0], "b": scores[1]})
    found = on_one_thread_and_on_all(lambda: draw_areas(rows, WINDOWS, 500, 3))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0][:10], draw_areas(rows, WINDOWS, 10, 3))
    assert not np.array_equal(found[0][:10], draw_areas(rows, WINDOWS, 10, 4))


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_covariance_is_the_analytic_one(size: int, weighted: bool) -> None:
    y, scores, unit = two_scorers(size=size)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, y.size) if weighted else None
    rows = check_rows(y, {"a": scores[0], "b": scores[1]}, weight, unit if size > 1 else None)
    drawn, analytic = bootstrap_areas(rows, WINDOWS, 3000, 0), estimate_areas(rows, WINDOWS)
    np.testing.assert_array_equal(drawn.values, analytic.values)
    assert drawn.degrees == analytic.degrees
    flat = [each.influence.reshape(6, -1) for each in (drawn, analytic)]
    found, expected = (parts @ parts.T for parts in flat)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.08)


@pytest.mark.parametrize("size", [1, 4])
def test_comparisons_agree_with_the_analytic_ones(size: int) -> None:
    y, scores, unit = two_scorers(size=size)
    options = {"group": unit if size > 1 else None}
    drawn = compare(y, scores, WINDOWS, method="bootstrap", n_bootstrap=2000, **options)
    analytic = compare(y, scores, WINDOWS, **options)
    for one, other in zip(drawn.windows, analytic.windows, strict=True):
        here, there = one.differences[0], other.differences[0]
        assert here.value == there.value
        width = there.high - there.low
        assert (here.low, here.high) == pytest.approx((there.low, there.high), abs=0.06 * width)
        assert here.p_value == pytest.approx(there.p_value, abs=0.05)
        interval = partial_auc_interval(
            y, scores[0], one.fpr_min, one.fpr_max, method="bootstrap", n_bootstrap=2000, **options
        )
        width = other.values[0].high - other.values[0].low
        assert interval == pytest.approx(other.values[0], abs=0.08 * width)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "jackknife"}, "method must be one of .*, got 'jackknife'"),
        ({"n_bootstrap": 1}, "n_bootstrap must be at least 2, got 1"),
        ({"random_state": -1}, "random_state must be at least 0, got -1"),
        ({"random_state": 2**32}, "random_state must be at most 4294967295, got 4294967296"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        compare([0, 1], [[0, 1], [1, 0]], **options)
