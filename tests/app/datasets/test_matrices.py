"""Splits: by content or group, stratified, and the same however rows and columns are ordered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.datasets.matrices import Columns, Table, check_classes, read_table
from app.ingest import rows as row_hashes
from app.ingest import writer
from app.ingest.profile import add_column
from app.platform.errors import Invalid
from app.training.splits import divide, hash_units, split
from tests.app.uploads import read
from tests.long_form import LONG_FORM
from tests.sentences import Sentences

SEED = 7


def make(
    rows: int = 2000, features: int = 3, rate: float = 0.1, groups: int | None = None
) -> Table:
    """Return a random table with missing values."""
    rng = np.random.default_rng(rows + features)
    X = np.asfortranarray(rng.normal(size=(rows, features)).round(3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (rng.random(rows) < rate).astype(np.int8)
    group = None if groups is None else rng.integers(0, groups, rows).astype(np.uint64)
    return numeric(X, y, group)


def numeric(
    X: np.ndarray, y: np.ndarray, group: np.ndarray | None = None, names: list[str] | None = None
) -> Table:
    """Return a table of numbers; the features are called x0, x1, …"""
    features = X.shape[1]
    names = [f"x{j}" for j in range(features)] if names is None else names
    return Table(X, y, None, group, tuple(names), (None,) * features)


def test_parts_are_whole_and_stratified() -> None:
    table = make()
    train, validation = split(table, 0.25, SEED)
    assert sorted([*train, *validation]) == list(range(2000))
    assert list(train) == sorted(train)
    assert list(validation) == sorted(validation)
    for label in (0, 1):
        share = np.sum(table.y[validation] == label) / np.sum(table.y == label)
        assert share == pytest.approx(0.25, abs=0.01)


def test_order_of_rows_and_columns_does_not_matter() -> None:
    table = make()
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(2000), rng.permutation(3)
    _, expected = split(table, 0.25, SEED)
    X = np.asfortranarray(table.X[np.ix_(rows, columns)])
    shuffled = numeric(X, table.y[rows], names=[f"x{j}" for j in columns])
    _, validation = split(shuffled, 0.25, SEED)
    assert sorted(rows[validation]) == list(expected)


def test_seed_matters_and_only_the_seed() -> None:
    table = make()
    one, two = (split(table, 0.25, seed)[1] for seed in (1, 1))
    assert list(one) == list(two)
    other = split(table, 0.25, 2)[1]
    # Of 500 rows, 125 are expected in both parts by chance.
    assert 60 < len(np.intersect1d(one, other)) < 200


def test_another_seed_is_another_draw_not_a_shift() -> None:
    """Rows that are neighbours under one seed are strangers under the next."""
    table = make(rows=4000, rate=0.5)
    parts = [np.isin(np.arange(4000), split(table, 0.5, seed)[1]) for seed in range(4)]
    correlation = np.corrcoef(np.array(parts, dtype=float)) - np.eye(4)
    assert np.abs(correlation).max() < 0.08


def test_duplicates_land_on_one_side_whatever_their_label() -> None:
    table = make(rows=300)
    X = np.asfortranarray(np.repeat(table.X, 4, axis=0))
    X[::4][X[::4] == 0] = -0.0
    y = np.tile(np.array([0, 0, 1, 0], dtype=np.int8), 300)
    _, validation = split(numeric(X, y), 0.25, SEED)
    assert len(validation) == 300
    assert np.array_equal(np.unique(validation // 4, return_counts=True)[1], np.full(75, 4))


def test_kinds_of_nothing_are_one() -> None:
    """-0.0 equals 0.0, and one NaN another whatever its bits."""
    payload = np.frombuffer(np.uint64(0x7FF8000000000001).tobytes(), dtype=np.float64)[0]
    table = make(rows=200)
    X = np.concatenate([table.X, table.X])
    X[:200, 0], X[200:, 0] = 0.0, -0.0
    X[:200, 1], X[200:, 1] = np.nan, payload
    y = np.concatenate([table.y, table.y])
    _, validation = split(numeric(np.asfortranarray(X), y), 0.25, SEED)
    assert np.array_equal(validation[validation < 200] + 200, validation[validation >= 200])


def test_groups_stay_together_though_their_classes_mix() -> None:
    table = make(rows=3000, groups=150)
    train, validation = split(table, 0.25, SEED)
    assert not np.intersect1d(table.group[train], table.group[validation]).size
    assert len(validation) / 3000 == pytest.approx(0.25, abs=0.03)
    assert np.mean(table.y[validation]) == pytest.approx(np.mean(table.y), abs=0.02)


def test_values_under_another_name_are_another_row() -> None:
    """Swapping two columns' values is not a duplicate, though the sum over columns has no order."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 1000))
    X = np.asfortranarray(np.concatenate([np.c_[a, b], np.c_[b, a]]))
    y = np.arange(2000) % 2
    _, validation = split(numeric(X, y.astype(np.int8)), 0.25, SEED)
    both = np.intersect1d(validation[validation < 1000], validation[validation >= 1000] - 1000)
    assert len(both) < 120


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40),
    st.floats(0.05, 0.95),
    st.integers(0, 2**64 - 1),
)
@settings(max_examples=1500 if LONG_FORM else 40)
def test_small_tables(rows: list[tuple[int, bool]], fraction: float, seed: int) -> None:
    """Either both parts have both classes, or the refusal counts them."""
    X = np.array([[float(value)] for value, _ in rows], order="F")
    y = np.array([label for _, label in rows], dtype=np.int8)
    try:
        train, validation = split(numeric(X, y), fraction, seed)
    except Invalid as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert refusal.code == "too_few_rows"
        return
    if len(rows) < 10 * len(np.unique(X)):  # else equal rows are of a kind
        assert not set(X[train, 0]) & set(X[validation, 0])
    for part in (train, validation):
        check_classes(y[part], "a part")


def test_too_few_rows_are_counted(sentences: Sentences) -> None:
    X = np.arange(6.0)[:, None]
    y = np.array([0, 0, 0, 0, 1, 1], dtype=np.int8)
    with pytest.raises(Invalid) as caught:
        split(numeric(X, y), 0.25, SEED)
    sentences(caught.value)
    for fraction in (0.0, 1.0, -1.0, 2.0):
        with sentences.raises(Invalid):
            split(numeric(X, y), fraction, SEED)


def test_table_is_read_in_the_models_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 5_000
    monkeypatch.setattr(writer, "ROW_GROUP", 2_000)
    body = "b,w,a,g,y\n" + "".join(
        f"{i},{i % 3},{'' if i % 7 == 0 else i / 8},g{i % 5},{'no' if i % 4 else 'yes'}\n"
        for i in range(rows)
    )
    read(tmp_path, body, weight="w", group="g")
    file = tmp_path / "work" / "table.parquet"
    assert pq.ParquetFile(file).num_row_groups > 1
    table = read_table(file, Columns(["a", "b"], "y", "w", "g"))
    index = np.arange(rows)
    assert table.X.flags.f_contiguous
    assert np.array_equal(table.X[:, 0], np.where(index % 7, index / 8, np.nan), equal_nan=True)
    assert np.array_equal(table.X[:, 1], index.astype(float))
    assert np.array_equal(table.y, (index % 4 == 0).astype(np.int8))
    assert table.weight is not None
    assert np.array_equal(table.weight, index % 3)
    assert [len(np.unique(table.group[index % 5 == k])) for k in range(5)] == [1] * 5
    assert len(np.unique(table.group)) == 5


def test_take() -> None:
    table = make(rows=50, groups=5)
    taken = table.take(np.array([3, 1, 40]))
    assert np.array_equal(taken.X, table.X[[3, 1, 40]], equal_nan=True)
    assert taken.X.flags.f_contiguous
    assert list(taken.y) == list(table.y[[3, 1, 40]])
    assert taken.group is not None
    assert taken.weight is None


def coloured(colours: list[str | None], categories: tuple[str, ...]) -> Table:
    """Return a table of one categorical column, coded by these categories."""
    place = {colour: float(k) for k, colour in enumerate(categories)}
    X = np.array([[np.nan if c is None else place[c]] for c in colours], order="F")
    y = np.arange(len(colours), dtype=np.int8) % 2
    return Table(X, y, None, None, ("colour",), (categories,))


def test_a_split_goes_by_the_words_not_by_their_codes() -> None:
    colours = [None if i % 50 == 0 else f"colour {i % 40}" for i in range(400)]
    known = tuple(sorted({c for c in colours if c is not None}))
    one = hash_units(coloured(colours, known), SEED)
    assert len(set(one.tolist())) == len(known) + 1
    more = hash_units(coloured(colours, ("a colour", *known)), SEED)
    assert np.array_equal(one, more)
    both = coloured(colours, known)
    part = both.known_to(np.flatnonzero(np.arange(400) % 40 < 20))
    taught = np.isin(np.arange(400) % 40, np.arange(20)) & (np.arange(400) % 50 > 0)
    assert np.array_equal(hash_units(part, SEED)[taught], one[taught])


def test_parts_share_the_categories_of_the_first() -> None:
    table = coloured(["red", "blue", None, "green", "blue"], ("blue", "green", "red"))
    train, validation = divide(table, np.array([0, 2, 3]), np.array([1, 3, 4]))
    assert train.categories == validation.categories == (("green", "red"),)
    assert np.array_equal(train.X[:, 0], [1.0, np.nan, 0.0], equal_nan=True)
    assert np.array_equal(validation.X[:, 0], [np.nan, 0.0, np.nan], equal_nan=True)


def test_rows_without_weight_teach_no_category() -> None:
    table = coloured(["red", "blue", "green"], ("blue", "green", "red"))
    weighted = replace(table, weight=np.array([1.0, 0.0, 2.0])).known_to()
    assert weighted.categories == (("green", "red"),)
    assert np.array_equal(weighted.X[:, 0], [1.0, np.nan, 0.0], equal_nan=True)


def test_words_are_read_over_row_groups(tmp_path: Path) -> None:
    """Each row group has a dictionary of its own, in an order of its own."""
    rng = np.random.default_rng(1)
    colours = [None if i % 13 == 0 else f"c{rng.integers(i // 100 + 1)}" for i in range(1000)]
    schema = pa.schema([("colour", pa.dictionary(pa.int32(), pa.string())), ("y", pa.int8())])
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, 1000, 90):
            part = colours[start : start + 90]
            coded = pa.array(part).dictionary_encode()
            y = pa.array([i % 2 for i in range(len(part))], pa.int8())
            writer.write_table(pa.Table.from_arrays([coded, y], schema=schema))
    table = read_table(path, Columns(["colour"], "y", None, None))
    (known,) = table.categories
    assert known == tuple(sorted({c for c in colours if c is not None}))
    found = [None if np.isnan(code) else known[int(code)] for code in table.X[:, 0]]
    assert found == colours


def test_a_number_is_hashed_by_its_bits_and_the_name_of_its_column() -> None:
    """Splits are made of these hashes: they are the same in every version."""
    values = np.array([1.5, 0.0, -0.0, np.nan, -np.nan, 1e300])
    found = np.zeros((2, 6), dtype=np.uint64)
    add_column(found[0], "x", values)
    add_column(found[1], "x", np.repeat(values, 2)[::2])
    plain = np.array([1.5, 0.0, 0.0, np.nan, np.nan, 1e300]).view(np.uint64)
    expected = row_hashes.mix(plain ^ np.uint64(row_hashes.hash_word("x")))
    assert expected[0] == 3136410574964281733
    assert found.tolist() == [expected.tolist()] * 2
