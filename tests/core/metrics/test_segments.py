"""Weak segments: against AUCs by definition, on planted faults, and where there is nothing to find."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.metrics import auc
from core.metrics.groups import check_rows
from core.metrics.intervals import estimate_areas
from core.metrics.segments import (
    SegmentColumn,
    _areas,
    _Ranked,
    category_levels,
    number_levels,
    weak_segments,
)
from core.metrics.window import WHOLE

Rng = np.random.Generator


def drawn(rng: Rng, n: int = 6_000) -> tuple[np.ndarray, np.ndarray, dict[str, SegmentColumn]]:
    """Return the log odds, the scores, and three columns, the first of which tells nothing."""
    branch, age = rng.integers(0, 8, n).astype(float), rng.normal(size=n)
    age[rng.random(n) < 0.1] = np.nan
    town = rng.integers(0, 60, n).astype(float)
    scores = 1.3 * rng.normal(size=n) + 0.5 * np.nan_to_num(age)
    columns = {
        "branch": category_levels(branch),
        "age": number_levels(age),
        "town": category_levels(town),
    }
    return branch, scores, columns


def label(rng: Rng, log_odds: np.ndarray) -> np.ndarray:
    return rng.random(log_odds.size) < 1.0 / (1.0 + np.exp(2.0 - log_odds))


@pytest.mark.parametrize(("factor", "verdict"), [(0.0, "random"), (-1.0, "wrong_way_round")])
def test_a_planted_segment(factor: float, verdict: str) -> None:
    rng = np.random.Generator(np.random.Philox(1))
    branch, scores, columns = drawn(rng, 20_000)
    inside = branch == 3
    y = label(rng, np.where(inside, factor * scores, scores))
    search = weak_segments(y, scores, columns)
    (found,) = search.found
    level = columns["branch"].levels[int(columns["branch"].codes[inside][0])]
    assert (found.columns, found.levels) == (("branch",), (level,))
    assert (level.kind, level.low) == ("category", 3.0)
    assert (found.rows, found.positives) == (inside.sum(), y[inside].sum())
    assert found.share == pytest.approx(inside.mean())
    assert found.auc == pytest.approx(auc(y[inside], scores[inside]))
    pairs, areas = [], []
    for other in set(range(8)) - {3}:
        own = branch == other
        pairs.append(float(y[own].sum()) * float((~y[own]).sum()))
        areas.append(auc(y[own], scores[own]))
    assert found.auc_of_others == pytest.approx(np.average(areas, weights=pairs))
    assert 0.0 < found.drop_low < found.auc_of_others - found.auc
    assert search.n_segments > 50
    # What rank within folds leaves of the order is enough to find it.
    fold = rng.integers(0, 5, branch.size)
    again = weak_segments(y, scores + 100.0 * fold, columns, fold=fold).found
    assert [each.columns for each in again] == [("branch",)]
    # Rows twice as one unit say no more than once.
    twice = {
        name: SegmentColumn(np.tile(each.codes, 2), each.levels) for name, each in columns.items()
    }
    unit = np.tile(np.arange(branch.size), 2)
    (doubled,) = weak_segments(np.tile(y, 2), np.tile(scores, 2), twice, group=unit).found
    assert doubled.drop_low == pytest.approx(found.drop_low, abs=0.002)
    assert verdict in (found.verdict, "random")


def test_nothing_planted() -> None:
    """Neither a segment of another prevalence nor one whose scores hardly differ is weak."""
    for seed in range(5):
        rng = np.random.Generator(np.random.Philox(seed))
        branch, scores, columns = drawn(rng)
        scores = np.where(branch == 1, 0.2 * scores, scores) + (branch == 2)
        assert weak_segments(label(rng, scores), scores, columns).found == ()


def test_too_few_rows() -> None:
    rng = np.random.Generator(np.random.Philox(1))
    branch, scores, columns = drawn(rng)
    y = np.zeros(branch.size, dtype=bool)
    y[:19] = True
    search = weak_segments(y, scores, columns)
    assert (search.found, search.n_segments) == ((), 0)


def test_rows_of_no_weight_are_no_rows() -> None:
    rng = np.random.Generator(np.random.Philox(4))
    branch, scores, columns = drawn(rng)
    y = label(rng, np.where(branch == 3, 0.0, scores))
    fold = rng.integers(0, 3, branch.size)
    weight = (rng.random(branch.size) < 0.9).astype(float)
    kept = weight > 0.0
    part = {name: SegmentColumn(each.codes[kept], each.levels) for name, each in columns.items()}
    with_zeros = weak_segments(y, scores, columns, sample_weight=weight, fold=fold)
    assert with_zeros == weak_segments(y[kept], scores[kept], part, fold=fold[kept])


rows = st.lists(
    st.tuples(
        st.booleans(),
        st.integers(0, 3),
        st.integers(0, 2),
        st.sampled_from([0.5, 1.0, 2.0]),
        st.integers(0, 6),
    ),
    min_size=8,
    max_size=30,
)


@given(rows, st.booleans())
def test_areas_and_variances_by_level(
    rows: list[tuple[bool, int, int, float, int]], grouped: bool
) -> None:
    """Equal to the AUC and the variance of each level's rows alone, with ties, weights and units."""
    y, scores, codes, weight, unit = (np.array([row[i] for row in rows]) for i in range(5))
    if y.all() or not y.any():
        return
    checked = check_rows(y, {"scores": scores}, weight, unit if grouped else None)
    ranked = _Ranked(checked, checked.scores[0])
    level = codes.astype(np.intp)[ranked.order]
    areas = _areas(ranked, level, 3)
    variances = ranked.squares(level, 3, areas.influence)
    for code in range(3):
        own = codes == code
        if not own.any() or y[own].all() or not y[own].any():
            continue
        alone = check_rows(
            y[own], {"scores": scores[own]}, weight[own], unit[own] if grouped else None
        )
        expected = estimate_areas(alone, [WHOLE])
        assert areas.area[code] == pytest.approx(expected.values[0, 0])
        assert min(e[code] for e in areas.effective) == pytest.approx(min(expected.effective))
        if (variance := expected.variance(0, 0)) is not None:
            assert variances[code] == pytest.approx(variance, abs=1e-12)


values = st.lists(
    st.one_of(st.just(float("nan")), st.integers(-3, 12).map(float)), min_size=1, max_size=60
)


@given(values)
def test_each_row_is_in_its_level(values: list[float]) -> None:
    for column in (number_levels(np.array(values)), category_levels(np.array(values))):
        for value, code in zip(values, column.codes.tolist(), strict=True):
            kind, low, high = column.levels[code]
            assert kind == (
                "missing" if np.isnan(value) else "category" if kind == "category" else "range"
            )
            assert kind == "missing" or low <= value <= high


def test_rare_categories_are_no_segments() -> None:
    column = category_levels(np.repeat(np.arange(40.0), np.arange(40, 0, -1)))
    assert [level.kind for level in column.levels].count("category") == 30
    assert column.levels[30].kind == "others"
    assert (column.codes == 30).sum() == sum(range(1, 11))


@given(rows)
def test_few_rows_raise_nothing(rows: list[tuple[bool, int, int, float, int]]) -> None:
    y, scores, codes, weight, _ = (np.array([row[i] for row in rows] * 9) for i in range(5))
    if y.all() or not y.any():
        return
    columns = {"a": category_levels(codes.astype(float)), "b": number_levels(scores.astype(float))}
    search = weak_segments(y, scores, columns, sample_weight=weight)
    assert all(0.0 <= each.auc < each.auc_of_others <= 1.0 for each in search.found)
