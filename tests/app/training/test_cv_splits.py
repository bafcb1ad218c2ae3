"""Splits: no row on both sides, every class in every part, and the same for any order of rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.datasets import service
from app.datasets.matrices import Table, read_times
from app.ingest.profile import DuplicateCounter
from app.platform.documents import Validation
from app.platform.errors import Invalid
from app.platform.tables import Dataset
from app.training.bipartite import BipartiteSplitData
from app.training.splits import InnerSplits, cut, hash_rows, split, split_rows
from tests.raising import mentions, raises
from tests.sentences import Sentences

FOLDS: Validation = {"method": "cross_validation", "folds": 4, "repeats": 2}
LATEST: Validation = {"method": "holdout", "fraction": 0.25}


def make(rows: int, seed: int, groups: int | None = None, times: int | None = None) -> Table:
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.integers(0, 50, (rows, 3)).astype(float))
    group = None if groups is None else rng.integers(0, groups, rows).astype(np.uint64)
    time = None if times is None else rng.integers(0, times, rows).astype(float)
    y = (rng.random(rows) < 0.3).astype(np.int8)
    return Table(X, y, None, group, ("a", "b", "c"), (None,) * 3, time)


def shuffled(table: Table, order: np.ndarray) -> Table:
    taken = table.take(order)
    return replace(taken, X=np.asfortranarray(taken.X))


def test_a_holdout_is_the_split_that_it_was() -> None:
    table = make(400, 1)
    (row_split,) = split_rows(table, LATEST, 9)
    for rows, expected in zip(row_split, split(table, 0.25, 9), strict=True):
        assert np.array_equal(rows, expected)


@settings(max_examples=200)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=40),
    st.sampled_from([0.01, 0.25, 0.5, 0.75, 0.99]),
    st.integers(1, 50),
)
def test_units_are_cut_where_the_fraction_comes_nearest(
    mass: list[int], fraction: float, at_once: int
) -> None:
    """Of two cuts that are as near the one with fewer units is taken, however many units are looked at together."""
    sums = np.cumsum(mass)[:-1]
    expected = 1 + int(np.argmin(np.abs(sums - fraction * sum(mass))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.training.splits.ROWS_AT_ONCE", at_once)
        assert cut(np.array(mass, dtype=np.uint32), fraction) == expected


@pytest.mark.parametrize("groups", [None, 60])
def test_a_split_does_not_depend_on_the_rows_looked_at_together(
    monkeypatch: pytest.MonkeyPatch, groups: int | None
) -> None:
    table = make(400, 3, groups)
    whole = split(table, 0.3, 1)
    monkeypatch.setattr("app.training.splits.ROWS_AT_ONCE", 37)
    for rows, expected in zip(split(table, 0.3, 1), whole, strict=True):
        assert np.array_equal(rows, expected)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 60]), st.integers(2, 6))
def test_folds_cover_all_rows_once_a_repeat(seed: int, groups: int | None, folds: int) -> None:
    table = make(600, seed % 7, groups)
    found = split_rows(table, FOLDS | {"folds": folds}, seed)
    assert len(found) == 2 * folds
    order = np.random.default_rng(seed % 11).permutation(600)
    again = split_rows(shuffled(table, order), FOLDS | {"folds": folds}, seed)
    units = table.group if groups else np.unique(table.X, axis=0, return_inverse=True)[1].ravel()
    for repeat in (found[:folds], found[folds:]):
        assert np.array_equal(np.sort(np.concatenate([d.test for d in repeat])), np.arange(600))
    for row_split, other in zip(found, again, strict=True):
        assert np.array_equal(np.sort(np.r_[row_split.train, row_split.test]), np.arange(600))
        assert not np.isin(units[row_split.train], units[row_split.test]).any()
        assert np.array_equal(np.sort(order[other.test]), row_split.test)
        assert abs(table.y[row_split.test].sum() * folds - table.y.sum()) <= 25 * folds
    if not groups:
        sizes = [len(row_split.test) for row_split in found]
        assert max(sizes) - min(sizes) < 12
    assert not np.array_equal(found[0].test, found[folds].test)


@pytest.mark.parametrize("where", service.COPIES)
@pytest.mark.parametrize("method", [LATEST, FOLDS])
def test_copies_stand_where_it_is_said(where: str, method: Validation) -> None:
    """Rows equal in every feature: on one side of every split or, by what `describe_copies` says, on both."""
    table, rng = make(900, 7, groups=60 if where == "groups" else None), np.random.default_rng(8)
    kinds = rng.integers(0, 20 if where == "few_kinds" else 200, 900)
    table = replace(table, X=np.asfortranarray(table.X[kinds]), names=("a", "b", "c"))
    if where == "time":
        table = replace(table, time=rng.integers(0, 30, 900).astype(float))
    rows = hash_rows(table)
    both = [
        bool(np.isin(rows[part.test], rows[part.train]).any())
        for part in split_rows(table, method, 5)
    ]
    duplicates = DuplicateCounter()
    for start in range(0, 900, 300):  # as parts do
        part = DuplicateCounter()
        part.add(rows[start : start + 300], None)
        duplicates.absorb(part.state())
    counts = duplicates.count(with_classes=False)
    n_kinds = len(np.unique(rows))
    assert (counts["repeated"], counts["kinds"]) == (
        900 - n_kinds,
        n_kinds if n_kinds < 30 else None,
    )
    dataset = Dataset(rows=900, kind="bipartite", group="g" if where == "groups" else None)
    said = service.describe_copies(dataset, counts, by_time=where == "time")
    assert said["in_splits"] == where
    estimated = {"repeated": 1200, "estimated": True}  # of an earlier version: no number of kinds
    assert service.describe_copies(dataset, estimated)["in_splits"] in ("together", "groups")
    for kind, expected in (
        ("graded", "together"),
        ("multilabel", "together"),
        ("preferences", None),
    ):
        other = service.describe_copies(Dataset(rows=900, kind=kind), counts)
        assert other["in_splits"] == expected
    assert both == [where != "together"] * len(both)


def test_folds_are_stratified() -> None:
    table = make(5000, 3)
    for row_split in split_rows(table, FOLDS, 1):
        share = table.y[row_split.test].mean() / table.y.mean()
        assert share == pytest.approx(1, abs=0.03)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_unequal_groups_leave_no_fold_empty(seed: int, folds: int) -> None:
    """Five groups whose shares of positives run from 2 to 98 %, as many as there are folds or more."""
    group = np.repeat(np.arange(5, dtype=np.uint64), 100)
    y = (np.tile(np.arange(100), 5) < np.repeat([2, 26, 50, 74, 98], 100)).astype(np.int8)
    table = replace(make(500, 1), y=y, group=group)
    found = split_rows(table, {"method": "cross_validation", "folds": folds}, seed)
    assert np.array_equal(np.sort(np.concatenate([each.test for each in found])), np.arange(500))
    for row_split in found:
        assert len(set(group[row_split.test])) >= 1
        assert not np.isin(group[row_split.test], group[row_split.train]).any()


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 300]), st.sampled_from([25, 10_000]))
def test_windows_expand_and_judge_what_comes_later(
    seed: int, groups: int | None, times: int
) -> None:
    table = make(600, seed % 5, groups, times)
    assert table.time is not None
    found = split_rows(table, FOLDS | {"repeats": 1}, seed)
    assert len(found) == 4
    sizes = []
    for row_split in [*found, *split_rows(table, LATEST, seed)]:
        assert table.time[row_split.train].max() < table.time[row_split.test].min()
        if table.group is not None:
            assert not np.isin(table.group[row_split.train], table.group[row_split.test]).any()
        sizes.append(len(row_split.train))
    assert sizes[:4] == sorted(sizes[:4])
    assert sizes[0] == pytest.approx(120, abs=40)
    assert sizes[4] == pytest.approx(450, abs=40)
    order = np.random.default_rng(seed % 11).permutation(600)
    for row_split, other in zip(
        found, split_rows(shuffled(table, order), FOLDS, seed), strict=True
    ):
        assert np.array_equal(np.sort(order[other.test]), row_split.test)


def test_parts_that_lack_a_class_are_refused() -> None:
    for times, validation, *named in (
        (None, FOLDS, "fold 1", 4, 2),
        (1, FOLDS, "window 1", 4),
        (1, LATEST, 2),
        (2, LATEST | {"fraction": 1.5}, "validation.fraction", 1.5),
    ):
        table = make(200, 1, times=times)
        few = replace(table, y=(np.arange(200) < 4).astype(np.int8))
        with raises(Invalid, *named) as caught:
            split_rows(few, validation, 0)
        is_refused = "validation.fraction" not in named
        by_time = "time_column to null" in caught.value.detail
        assert by_time is (is_refused and times is not None)


def test_a_refusal_counts_the_later_rows_of_groups_that_have_earlier_rows() -> None:
    table = make(200, 1, times=40)
    assert table.time is not None
    recurring = replace(
        table,
        group=np.tile(np.arange(20, dtype=np.uint64), 10),
        time=np.repeat(np.arange(10.0), 20),
    )
    apart = replace(table, group=np.arange(200, dtype=np.uint64), y=np.zeros(200, dtype=np.int8))
    for each, left_out in ((recurring, 60), (apart, None)):
        with pytest.raises(Invalid) as caught:
            split_rows(each, LATEST | {"fraction": 0.3}, 0)
        assert mentions(caught.value.detail, 60) is (left_out is not None)


def test_a_search_is_judged_by_later_rows_too() -> None:
    table = make(400, 2, times=400)
    split_data = BipartiteSplitData(table, None, [], {})
    for inner, n_splits in ((InnerSplits(1, 0.25), 1), (InnerSplits(3, 0.25), 3)):
        for split_number in range(n_splits):
            found = split_data.inner(inner, split_number, 5)
            assert found.train.time.max() < found.validation.time.min()


def times_of(tmp_path: Path, values: pa.Array) -> list[float]:
    pq.write_table(pa.table({"at": values}), tmp_path / "table.parquet")
    times: list[float] = read_times(tmp_path / "table.parquet", "at").tolist()
    return times


def test_numbers_and_dates_are_times(tmp_path: Path) -> None:
    assert times_of(tmp_path, pa.array([3.0, 1.5])) == [3.0, 1.5]
    texts = ["2026-01-31", "1969-12-31T23:00:00", "2026-01-31T01:00:00+01:00", "2026-01-31"]
    for array in (pa.array(texts), pa.array(texts).dictionary_encode()):
        first, second, third, last = times_of(tmp_path, array)
        assert second == -3600.0
        assert first == third == last == 1769817600.0


def test_what_cannot_order_rows_is_refused(tmp_path: Path, sentences: Sentences) -> None:
    for values in (
        pa.array([1.0, np.nan, np.nan]),
        pa.array(["2026-01-31", None]),
        pa.array(["2026-01-31", "31. Januar 2026"]),
    ):
        with sentences.raises(Invalid) as caught:
            times_of(tmp_path, values)
        assert caught.value.code == "bad_time_column"
        assert caught.value.errors[0]["pointer"] == "/validation/time_column"
