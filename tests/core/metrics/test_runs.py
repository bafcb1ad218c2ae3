"""Figures from sorted runs are those of all rows in memory, however the rows are cut, sorted and merged."""

import pickle
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import core.metrics.groups
from core.errors import InvalidData, InvalidParameter
from core.metrics import Summary, compare, summarise
from core.metrics.curve import roc_curve
from core.metrics.groups import group_by_score
from core.metrics.intervals import summarise_groups
from core.metrics.margins import (
    log_pair_loss,
    margin_distribution,
    margin_distribution_of,
)
from core.metrics.runs import (
    ScoreRuns,
    StoredGroups,
    compare_stored,
    sorted_run,
)
from tests.core.metrics.naive import pair_auc, rankings
from tests.raising import raises
from tests.sentences import Sentences

WINDOWS = [(0.0, 0.05), (0.1, 0.4), (0.25, 1.0)]


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Sums are taken over so many tie groups, or rows, at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core.metrics.groups, "AT_ONCE", size)
        yield


def merged(
    folder: Path,
    y: np.ndarray,
    scores: np.ndarray,
    weight: np.ndarray | None = None,
    rows_at_once: int = 3,
    merged_at_once: int = 4,
) -> StoredGroups:
    runs = ScoreRuns(folder, rows_at_once=rows_at_once, merged_at_once=merged_at_once)
    runs.add(y == 1, scores, weight)
    return runs.merge()


def check_equal(stored: Summary, known: Summary, exact: bool) -> None:
    """All figures, and the curve, are equal; without `exact` but for the rounding of sums of weights."""
    near = (lambda value: value) if exact else (lambda value: pytest.approx(value, abs=1e-12))
    assert tuple(stored.auc) == near(tuple(known.auc))
    for own, other in zip(stored.partial_aucs, known.partial_aucs, strict=True):
        assert own[:2] == other[:2]
        assert tuple(own.interval) == near(tuple(other.interval))
    assert stored.misrank_fraction == near(known.misrank_fraction)
    assert stored.ties == near(known.ties)
    assert (stored.positives, stored.negatives) == (known.positives, known.negatives)
    assert tuple(vars(stored.totals).values()) == near(tuple(vars(known.totals).values()))
    for name in ("fpr", "tpr", "thresholds"):
        own, other = getattr(stored.curve, name), getattr(known.curve, name)
        np.testing.assert_allclose(own, other, rtol=0.0, atol=0.0 if exact else 1e-12)


@given(rankings(max_rows=30), st.integers(1, 7), st.integers(1, 7), st.integers(1, 5))
def test_figures_without_weights_are_those_of_memory_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory,
    ranking: tuple[np.ndarray, np.ndarray, None],
    rows_at_once: int,
    merged_at_once: int,
    block: int,
) -> None:
    y, scores, _ = ranking
    folder = tmp_path_factory.getbasetemp()
    groups = merged(folder, y, scores, None, rows_at_once, merged_at_once)
    with blocks_of(block):
        stored = summarise_groups(groups, WINDOWS, 0.9, max_points=100)
        check_equal(stored, summarise(y, scores, windows=WINDOWS, level=0.9), exact=True)
    assert stored.auc.value == pytest.approx(pair_auc(y, scores), abs=1e-14)


@given(rankings(weighted=True, max_rows=30), st.integers(1, 7), st.integers(1, 5))
def test_figures_with_weights(
    tmp_path_factory: pytest.TempPathFactory,
    ranking: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows_at_once: int,
    block: int,
) -> None:
    y, scores, weights = ranking
    weights = weights / 7.0
    # Where the curve rises at an end of a window, its interval depends on the last digit of the FPR.
    ends = [end for window in WINDOWS for end in window if 0.0 < end < 1.0]
    fpr = summarise(y, scores, weights).curve.fpr
    assume(not np.isclose(fpr[:, None], ends, rtol=0.0, atol=1e-9).any())
    folder = tmp_path_factory.getbasetemp()
    groups = merged(folder, y, scores, weights, rows_at_once)
    with blocks_of(block):
        stored = summarise_groups(groups, WINDOWS, max_points=100)
    check_equal(stored, summarise(y, scores, weights, WINDOWS), exact=False)
    assert stored.auc.value == pytest.approx(pair_auc(y, scores, weights), abs=1e-14)


def table(n: int, seed: int, decimals: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(np.int8)
    return y, (y + rng.normal(size=n)).round(decimals)


@pytest.mark.parametrize("decimals", [1, 6])
@pytest.mark.parametrize(("rows_at_once", "merged_at_once"), [(700, 512), (4000, 1), (9999, 10**6)])
def test_many_rows_in_blocks(
    tmp_path: Path, decimals: int, rows_at_once: int, merged_at_once: int
) -> None:
    y, scores = table(20_000, 1, decimals)
    groups = merged(tmp_path, y, scores, None, rows_at_once, merged_at_once)
    with blocks_of(1000):
        known = summarise(y, scores, windows=WINDOWS)
        stored = summarise_groups(groups, WINDOWS, max_points=100_000)
        check_equal(stored, known, exact=True)
    for max_points, n_first in ((50, 0), (500, 0), (500, 100), (3000, 1000)):
        expected = known.curve.thin(max_points, n_first=n_first)
        with blocks_of(1000):
            thin = summarise_groups(groups, max_points=max_points, n_first=n_first).curve
        np.testing.assert_array_equal(thin.thresholds, expected.thresholds)
        np.testing.assert_array_equal(thin.fpr, expected.fpr)
        np.testing.assert_array_equal(thin.tpr, expected.tpr)
        first = min(n_first, len(known.curve))
        np.testing.assert_array_equal(thin.fpr[:first], known.curve.fpr[:first])
    # blocks of any size: the same figures but for rounding
    check_equal(summarise(y, scores, windows=WINDOWS), known, exact=False)


def test_the_hull_of_stretches_is_that_of_the_whole_curve() -> None:
    curve = roc_curve(*table(20_000, 2))
    whole = curve.hull()
    with blocks_of(777):
        parts = curve.hull()
    np.testing.assert_array_equal(parts.thresholds, whole.thresholds)


@pytest.mark.parametrize("weighted", [False, True])
def test_margins(tmp_path: Path, weighted: bool) -> None:
    y, scores = table(3000, 3, 2)
    weight = np.random.default_rng(4).random(3000) + 0.5 if weighted else None
    groups = merged(tmp_path, y, scores, weight, 700, 512)
    with blocks_of(50):
        stored = margin_distribution_of(groups, 2.5)
        loss = log_pair_loss(groups)
        known = margin_distribution(roc_curve(y, scores, weight), 2.5)
        assert loss == pytest.approx(log_pair_loss(group_by_score(y, scores, weight)), rel=1e-14)
        if not weighted:
            assert loss == log_pair_loss(group_by_score(y, scores))
    np.testing.assert_array_equal(stored.thetas, known.thetas)
    np.testing.assert_allclose(stored.fractions, known.fractions, atol=1e-12 if weighted else 0.0)
    p, n = scores[y == 1], scores[y == 0]
    w = np.ones(3000) if weight is None else weight
    pairs = (np.outer(w[y == 1], w[y == 0]) * np.exp(n[None] - p[:, None])).sum()
    least = w[y == 1].min() * w[y == 0].min()
    assert loss == pytest.approx(np.log(pairs / least))


@pytest.mark.parametrize("weighted", [False, True])
def test_scorers_are_compared_as_in_memory(tmp_path: Path, weighted: bool) -> None:
    y, first = table(2000, 5, 1)
    rng = np.random.default_rng(6)
    scores = [first, first + rng.normal(size=2000).round(1), rng.normal(size=2000)]
    weight = rng.integers(0, 3, 2000) / 3.0 if weighted else None
    with blocks_of(300):
        known = compare(y, scores, WINDOWS, sample_weight=weight, names=["a", "b", "c"])
        stored = compare_stored(
            y == 1, scores, WINDOWS, folder=tmp_path, sample_weight=weight, names=["a", "b", "c"]
        )
    if not weighted:
        assert stored == known
        return
    assert stored.joint_p_value == pytest.approx(known.joint_p_value, abs=1e-9)
    for own, other in zip(stored.windows, known.windows, strict=True):
        for interval, expected in zip(own.values, other.values, strict=True):
            assert tuple(interval) == pytest.approx(tuple(expected), abs=1e-12)
        for difference, expected in zip(own.differences, other.differences, strict=True):
            metrics = (difference.value, difference.low, difference.high, difference.p_value)
            assert metrics == pytest.approx(
                (expected.value, expected.low, expected.high, expected.p_value), abs=1e-9
            )


def test_runs_come_from_other_processes_in_any_order(tmp_path: Path) -> None:
    y, scores = table(1000, 7, 2)
    made = [sorted_run(y[k::8] == 1, scores[k::8]) for k in range(8)]
    runs = ScoreRuns(tmp_path, merged_at_once=100)
    for k in (3, 1, 0, 7, 5, 2, 6, 4):
        runs.take(pickle.loads(pickle.dumps(made[k])))
    stored = summarise_groups(runs.merge(), WINDOWS, max_points=2000)
    check_equal(stored, summarise(y, scores, windows=WINDOWS), exact=True)


def test_many_runs_take_few_files_of_the_system(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    runs = ScoreRuns(tmp_path, rows_at_once=5)
    y, scores = table(1000, 14, 2)
    runs.add(y == 1, scores)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1
    check_equal(summarise_groups(runs.merge(), max_points=2000), summarise(y, scores), exact=True)


def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"rows_at_once": 1024, "merged_at_once": 1024}
    monkeypatch.setattr(ScoreRuns.__init__, "__kwdefaults__", small)

    def most_bytes(n: int) -> int:
        y, scores = table(n, 9, 12)
        positive, other = y == 1, scores[::-1].copy()
        tracemalloc.start()  # sees arrays in memory, and not those in files
        groups = merged(tmp_path, y, scores, None, 1024, 1024)
        summary = summarise_groups(groups, WINDOWS, max_points=1000)
        margin_distribution_of(groups, 1.0)
        compare_stored(positive, [scores, other], WINDOWS, folder=tmp_path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(summary.curve) <= 1000
        return most

    with blocks_of(1024):
        few = most_bytes(1 << 13)
        # what is left is the runs of a ranking and the hull of a curve
        assert most_bytes(1 << 16) < 2 * few


@pytest.mark.parametrize("value", [0, 1])
def test_one_class_has_no_curve(tmp_path: Path, value: int, sentences: Sentences) -> None:
    runs = ScoreRuns(tmp_path)
    runs.add(np.full(3, value == 1), np.arange(3.0))
    before = len(list(Path("/proc/self/fd").iterdir()))
    with sentences.raises(InvalidData):
        runs.merge()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1


def test_bad_rows_are_refused(tmp_path: Path, sentences: Sentences) -> None:
    with sentences.raises(InvalidData):
        sorted_run([True, False], [1.0, np.nan])
    with sentences.raises(InvalidData):
        sorted_run([True, False], [1.0])
    with raises(InvalidData, "sample_weight"):
        sorted_run([True, False], [1.0, 2.0], [1.0, -1.0])
    runs = ScoreRuns(tmp_path, rows_at_once=2)
    with sentences.raises(InvalidData):
        runs.add([True, False], [1.0, 2.0, 3.0])
    with sentences.raises(InvalidData):
        runs.add([True, False], [1.0, 2.0], [1.0])
    runs.add([True], [1.0])
    with sentences.raises(InvalidData):
        runs.add([False], [1.0], [2.0])
    with sentences.raises(InvalidData):
        runs.merge()


@pytest.mark.parametrize(("max_points", "n_first"), [(10, 9), (10, -1), (1, 0), (10, True)])
def test_a_curve_is_not_thinned_to_less_than_its_ends(max_points: int, n_first: int) -> None:
    curve = roc_curve(*table(100, 11))
    with raises(InvalidParameter, max_points if max_points < 2 else n_first):
        curve.thin(max_points, n_first=n_first)
