"""Fits of a table that is read column by column: the bits of the fit in memory, and files that were changed."""

import errno
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import (
    AdaBoost,
    AUCBoost,
    LogitBoost,
    MartiRank,
    RankBoost,
    TreeRank,
    TreeRankForest,
    load,
    save,
)
from core.base.checkpoint import Checkpoints
from core.base.columns import ColumnTable
from core.base.ranker import Ranker, StopFit
from core.base.table import Categories, CodedTable
from core.coding import stored
from core.errors import InvalidData
from core.registry import ALGORITHMS
from tests.core.column_sources import ArrayColumns
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

RANKERS: list[Ranker] = [
    RankBoost(n_rounds=4),
    RankBoost(n_rounds=3, max_bins=1000),
    AdaBoost(n_rounds=3),
    RankBoost(weak_ranker="tree", n_rounds=3, min_samples_leaf=2),
    LogitBoost(n_rounds=3, min_samples_leaf=2, max_bins=4, max_categories=300),
    LogitBoost(n_rounds=5, min_samples_leaf=1, subsample=0.7, early_stopping_rounds=2),
    RankBoost(n_rounds=5, early_stopping_rounds=2, max_bins=5),
    MartiRank(n_rounds=3),
    TreeRank(splitter="axis", min_samples_leaf=2, pruning="cv", n_folds=2),
    TreeRank(min_samples_leaf=3, pruning="holdout"),
]


class CountedColumns(ArrayColumns):
    """Columns of an array that count how often they are read."""

    n_reads = 0

    def read(self, column: int, values: np.ndarray) -> None:
        self.n_reads += 1
        super().read(column, values)


def make_rows(
    seed: int, n: int = 90, n_one_hot: int = 3, n_words: int = 4
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], Categories]:
    """Numbers, ties, missing values, words, of which one is never used, and a one-hot encoding."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n), rng.normal(size=n).round(), rng.integers(0, n_words, n) + 0.0]
    columns[1][rng.random(n) < 0.2] = np.nan
    columns[2][rng.random(n) < 0.1] = np.nan
    columns += list((rng.integers(0, n_one_hot + 1, n) == np.arange(n_one_hot)[:, None]) + 0.0)
    X = np.column_stack(columns)
    y = np.nan_to_num(X[:, 0] + X[:, 1] * 0.3 + (X[:, 2] % 2)) + rng.normal(size=n) > 0.5
    y[:3] = True, False, True
    words = tuple(f"w{k:04}" for k in range(n_words + 1))
    categories = (None, None, words, *[None] * n_one_hot)
    return X, y, tuple(f"f{j}" for j in range(X.shape[1])), categories


def copy_of(ranker: Ranker) -> Any:
    return type(ranker)(**ranker.get_params(deep=False))


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 40)
    monkeypatch.setattr(stored, "BLOCK_ROWS", 16)


@settings(
    max_examples=250 if LONG_FORM else 10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    ranker=st.sampled_from(RANKERS),
    n=st.sampled_from([39, 40, 41, 100]),
    n_words=st.sampled_from([1, 5, 70, 400]),
    weight=st.sampled_from([None, "equal", "whole", "any"]),
    identity=st.sampled_from([None, b"rows"]),
    is_hollow=st.booleans(),
)
def test_the_bits_are_those_of_the_fit_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    ranker: Ranker,
    n: int,
    n_words: int,
    weight: str | None,
    identity: bytes | None,
    is_hollow: bool,
) -> None:
    X, y, names, categories = make_rows(seed, n, n_words=n_words)
    if is_hollow:
        X[:, [0, 2]] = np.nan
    rng = np.random.default_rng(seed)
    sample_weight = None
    if weight is not None:
        drawn = {
            "equal": np.full(n, 0.5),
            "whole": rng.integers(0, 4, n) + 0.0,
            "any": rng.exponential(size=n),
        }
        sample_weight = drawn[weight]
        sample_weight[:3] = sample_weight[:3].max() or 1.0
    if n_words > 255 and getattr(ranker, "target_encoding", None) is not None:
        ranker = copy_of(ranker).set_params(target_encoding=None)
    X[rng.random(n) < 0.05] = X[-1]  # equal rows, which are never separated
    whole = copy_of(ranker)
    heard: list[dict[str, float]] = []
    whole.fit(
        CodedTable(X, names, categories),
        y,
        sample_weight,
        callback=lambda step, of, info: heard.append(dict(info)),
    )
    folder = tmp_path_factory.mktemp("codes")
    said: list[dict[str, float]] = []
    for _ in range(2):  # the second time codes with an identity are there
        said.clear()
        table = ColumnTable(ArrayColumns(X, names, categories, identity), folder)
        read = copy_of(ranker)
        read.fit(
            table,
            y,
            sample_weight,
            callback=lambda step, of, info: said.append(dict(info)) if step else None,
        )
        assert save(read) == save(whole)
        assert said == heard
    kept = sorted(file.name for file in folder.iterdir())
    assert all(name.startswith("codes-") and not name.endswith(".part") for name in kept)
    assert bool(kept) == (identity is not None)


def test_a_fit_that_is_watched_reads_columns(tmp_path: Path) -> None:
    X, y, names, categories = make_rows(4, 120)
    learnt = np.arange(120) % 3 != 0
    held_out = CodedTable(X[~learnt], names, categories)
    values = []
    for table in (
        CodedTable(X[learnt], names, categories),
        ColumnTable(ArrayColumns(X, names, categories), tmp_path).take(learnt),
    ):
        ranker = LogitBoost(n_rounds=5, min_samples_leaf=1)
        values.append(
            ranker.fit_watched(
                table, y[learnt], X_valid=held_out, metric=lambda scores: float(scores[0])
            )
        )
    assert (values[0] == values[1]).all()


def spoil(folder: Path, how: str) -> None:
    (codes,) = folder.iterdir()
    first, second = codes / "000000.codes", codes / "000001.codes"
    match how:
        case "truncated":
            first.write_bytes(first.read_bytes()[:-1])
        case "empty":
            first.write_bytes(b"")
        case "changed":
            data = bytearray(second.read_bytes())
            data[7] ^= 1
            second.write_bytes(data)
        case "swapped":
            data, other = first.read_bytes(), second.read_bytes()
            first.write_bytes(other)
            second.write_bytes(data)
        case "lost":
            second.unlink()
        case "a folder":
            second.unlink()
            second.mkdir()
        case "without cuts":
            (codes / stored.CUTS_FILE).unlink()
        case "cuts changed":
            (codes / stored.CUTS_FILE).write_bytes(b"\0" * 200)


def test_shards_are_found_again_and_made_anew_if_they_were_changed(tmp_path: Path) -> None:
    X, y, names, categories = make_rows(2)

    def fit() -> tuple[bytes, int]:
        source = CountedColumns(X, names, categories, b"2")
        ranker = RankBoost(n_rounds=3).fit(ColumnTable(source, tmp_path), y)
        return save(ranker), source.n_reads

    n_words = 1  # the column of words is read to see which of them occur
    expected, n_reads = fit()
    assert n_reads == len(names) + n_words
    assert fit() == (expected, n_words)
    ways = (
        "truncated",
        "empty",
        "changed",
        "swapped",
        "lost",
        "a folder",
        "without cuts",
        "cuts changed",
    )
    for how in ways:
        spoil(tmp_path, how)
        assert fit() == (expected, n_reads), how
        assert fit() == (expected, n_words), how


def test_codes_of_another_fit_are_not_used(tmp_path: Path) -> None:
    X, y, names, categories = make_rows(3)

    def folders(identity: bytes, y: np.ndarray = y, **given: Any) -> set[str]:
        source = ArrayColumns(X, names, categories, identity)
        weight = given.pop("weight", None)
        RankBoost(n_rounds=2, **given).fit(ColumnTable(source, tmp_path), y, weight)
        return {folder.name for folder in tmp_path.iterdir()}

    assert len(folders(b"a")) == 1
    assert len(folders(b"a", ~y)) == 1  # codes are in the order of the table
    assert len(folders(b"b")) == 2
    assert len(folders(b"a", max_bins=7)) == 3
    weight = np.ones(len(y))
    assert len(folders(b"a", weight=weight)) == 3
    weight[5] = 0.0
    assert len(folders(b"a", weight=weight)) == 4
    # A folder that holds another fit's files is not read, but written anew.
    names_of = sorted(folders(b"a"))
    shutil.rmtree(tmp_path / names_of[0])
    shutil.copytree(tmp_path / names_of[1], tmp_path / names_of[0])
    expected = save(RankBoost(n_rounds=2).fit(CodedTable(X, names, categories), y))
    for identity in (b"a", b"b"):
        table = ColumnTable(ArrayColumns(X, names, categories, identity), tmp_path)
        assert save(RankBoost(n_rounds=2).fit(table, y)) == expected


@contextmanager
def small_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("identity", [None, b"5"])
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, identity: bytes | None) -> None:
    X, y, names, categories = make_rows(5)
    table = ColumnTable(ArrayColumns(X, names, categories, identity), tmp_path)
    with raises(OSError, errno.EFBIG), small_files():
        RankBoost(n_rounds=2).fit(table, y)
    assert not list(tmp_path.iterdir())
    with raises(OSError, errno.EFBIG), small_files():
        stored.mapped(tmp_path, (201,), np.uint8)  # the room is taken before it is used


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    X, y, names, categories = make_rows(6)
    (tmp_path / "codes-left.part").mkdir()
    (tmp_path / "codes-left.part" / "000000.codes").write_bytes(b"half")
    (tmp_path / "other.part").mkdir()
    RankBoost(n_rounds=1).fit(ColumnTable(ArrayColumns(X, names, categories), tmp_path), y)
    assert [file.name for file in tmp_path.iterdir()] == ["other.part"]


@pytest.mark.parametrize("what", ["lost", "whole"])
def test_another_process_may_write_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    X, y, names, categories = make_rows(6)
    expected = save(RankBoost(n_rounds=2).fit(CodedTable(X, names, categories), y))

    def fit() -> bytes:
        table = ColumnTable(ArrayColumns(X, names, categories, b"6"), tmp_path)
        return save(RankBoost(n_rounds=2).fit(table, y))

    write, rename = stored.write_codes, Path.rename
    inodes: list[int] = []

    def be_slower(*given: Any) -> Any:
        if not inodes:
            inodes.append(0)
            fit()
            inodes.append(next(tmp_path.glob("codes-*[!t]")).stat().st_ino)
        return write(*given)

    def rename_and_lose(path: Path, target: Path) -> None:
        rename(path, target)
        shutil.rmtree(target)

    if what == "lost":
        monkeypatch.setattr(Path, "rename", rename_and_lose)
    else:
        monkeypatch.setattr(stored, "write_codes", be_slower)
    assert fit() == expected
    kept = [folder.stat().st_ino for folder in tmp_path.iterdir()]
    assert kept == inodes[1:]


def test_bad_tables_are_refused_by_name(tmp_path: Path, sentences: Sentences) -> None:
    X, y, names, categories = make_rows(7)

    def fit(ranker: Ranker, X: np.ndarray, categories: Categories = categories) -> None:
        ranker.fit(ColumnTable(ArrayColumns(X, names, categories), tmp_path), y)

    for value in (np.inf, -np.inf):
        infinite = X.copy()
        infinite[77, 4] = value
        with sentences.raises(InvalidData):
            fit(RankBoost(n_rounds=1), infinite)
    for value in (-1.0, 5.0, 0.5):
        unknown = X.copy()
        unknown[7, 2] = value
        with sentences.raises(InvalidData):
            fit(RankBoost(n_rounds=1), unknown)
    with sentences.raises(InvalidData):
        ColumnTable(ArrayColumns(X[:0]), tmp_path)
    with raises(InvalidData, ["a", "a"]):
        ColumnTable(ArrayColumns(X[:, :2], ("a", "a")), tmp_path)
    table = ColumnTable(ArrayColumns(X, names, categories), tmp_path)
    with raises(InvalidData, "y", 90, 89):
        RankBoost().fit(table, y[1:])
    fitted = RankBoost(n_rounds=1).fit(table, y)
    for refused in (fitted.decision_function, lambda X: RankBoost().fit_pairs(X, [[0, 1]])):
        with sentences.raises(InvalidData):
            refused(table)
    for extra in ({"query": y}, {"graded": True}):
        with sentences.raises(InvalidData):
            RankBoost(n_rounds=1).fit(table, y, **extra)
    many = (tuple(f"w{k:04}" for k in range(300)),)
    words = np.arange(90.0)[:, None] * 3
    words = ArrayColumns(np.repeat(words, 2, axis=1), None, (*many, None))
    with sentences.raises(InvalidData):
        LogitBoost(target_encoding=10).fit(ColumnTable(words, tmp_path), y)
    with raises(InvalidData, "LogitBoost", "crosses"):
        LogitBoost(crosses=3).fit(table, y)
    with sentences.raises(InvalidData):
        RankBoost(weak_ranker="column").fit(table, y)
    with raises(InvalidData, "TreeRankForest"):
        TreeRankForest().fit(table, y)
    with sentences.raises(InvalidData):
        TreeRank(splitter="grid").fit(table, y)


def test_an_algorithm_reads_columns_or_says_why_not(tmp_path: Path) -> None:
    X, y, *_ = make_rows(8)
    X = X[:, :2]
    read = set()
    for name, algorithm in ALGORITHMS.items():
        if algorithm.target != "binary":
            continue
        ranker = algorithm()
        table = ColumnTable(ArrayColumns(X), tmp_path)
        if (reason := ranker.reads_columns()) is not None:
            with pytest.raises(InvalidData) as refused:
                ranker.fit(table, y)
            assert reason in str(refused.value)
            continue
        read.add(name)
        whole = algorithm().fit(CodedTable(X, table.names, table.categories), y)
        assert save(ranker.fit(table, y)) == save(whole), name
    boosters = {"rankboost", "coordinate_rankboost", "adaboost", "aucboost", "logitboost"}
    assert read == boosters | {"martirank", "treerank"}
    assert save(AUCBoost(weak_ranker="stump").fit(ColumnTable(ArrayColumns(X), tmp_path), y))


def test_a_stopped_fit_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    X, y, names, categories = make_rows(9)
    kept: list[bytes | None] = []

    def fit(identity: bytes | None, resume: bytes | None = None) -> tuple[bytes, bool]:
        checkpoints = Checkpoints(resume)

        def keep(step: int, of: int, info: object) -> None:
            if step == 4:
                kept.append(checkpoints.take())

        table = ColumnTable(ArrayColumns(X, names, categories, identity), tmp_path)
        ranker = LogitBoost(n_rounds=9, early_stopping_rounds=9, min_samples_leaf=1)
        with checkpoints:
            ranker.fit(table, y, callback=keep)
        return save(ranker), checkpoints.resumed

    whole, _ = fit(b"9")
    assert fit(b"9", kept[0]) == (whole, True)
    assert fit(b"8", kept[0]) == (whole, False)  # other rows, as far as one knows
    names = tuple(f"g{j}" for j in range(len(names)))
    assert fit(b"9", kept[0])[1] is False  # other columns of the same file
    fit(None)
    assert kept[-1] is None  # nothing says which rows they are
    assert load(whole).n_rounds == 9


def test_a_fit_ends_between_columns(tmp_path: Path, sentences: Sentences) -> None:
    class Cancelled(Exception):
        pass

    X, y, names, categories = make_rows(3)
    steps: list[int] = []

    def cancel(step: int, of: int, info: object) -> None:
        steps.append(step)
        if len(steps) == 4:
            raise Cancelled

    table = ColumnTable(ArrayColumns(X, names, categories, b"3"), tmp_path)
    with pytest.raises(Cancelled):
        RankBoost().fit(table, y, callback=cancel)
    assert steps == [0, 0, 0, 0]
    assert not list(tmp_path.iterdir())

    def stop(step: int, of: int, info: object) -> None:
        raise StopFit

    with sentences.warns(UserWarning):
        stopped = RankBoost(n_rounds=50).fit(table, y, callback=stop)
    assert len(stopped.rounds_) == 1
