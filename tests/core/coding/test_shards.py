"""Fits over shards on several hosts: the bits of the fit in memory, files that were lost or changed, checkpoints."""

import pickle
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import (
    AdaBoost,
    AUCBoost,
    CoordinateRankBoost,
    LogitBoost,
    MartiRank,
    RankBoost,
    TreeRank,
    save,
)
from core.base.checkpoint import Checkpoints
from core.base.columns import ColumnTable
from core.base.ranker import Ranker
from core.base.shards import CodeFile, ShardHost
from core.base.table import CodedTable
from core.boosting import stumps
from core.boosting.stumps import MIN_SURE_MASS
from core.coding import stored
from core.errors import InvalidData, ShardsLost
from tests.core.coding.test_stored import copy_of, make_rows
from tests.core.column_sources import ArrayColumns, LocalHosts
from tests.long_form import LONG_FORM, long_form, one_in
from tests.raising import raises
from tests.sentences import Sentences

RANKERS: list[Ranker] = [
    RankBoost(n_rounds=20),
    RankBoost(n_rounds=8, max_bins=1000, push=3.0),
    CoordinateRankBoost(n_rounds=5),
    AdaBoost(n_rounds=8),
    AUCBoost(n_rounds=5),
    RankBoost(n_rounds=9, early_stopping_rounds=2, max_bins=5),
    RankBoost(weak_ranker="tree", n_rounds=4, min_samples_leaf=2),
    RankBoost(weak_ranker="tree", n_rounds=4, max_leaves=None, max_depth=3, leaf="newton", push=2),
    LogitBoost(n_rounds=4, min_samples_leaf=1, max_bins=1000, max_leaves=5),
    LogitBoost(n_rounds=5, subsample=0.6, max_features=0.5, early_stopping_rounds=2),
    MartiRank(n_rounds=6),
]


class Elsewhere(LocalHosts):
    """Hosts that see no file of this process, and get all that they are told as bytes."""

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        told = pickle.loads(pickle.dumps(list(arguments)))
        if method == "begin":
            hidden = [[CodeFile(f.digest, None, f.types, f.n_rows) for f in own[3]] for own in told]
            told = [(*own[:3], files) for own, files in zip(told, hidden, strict=True)]
        return pickle.loads(pickle.dumps(super().call(method, told)))


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "SHARD_ROWS", 16)
    monkeypatch.setattr("core.boosting.stumps.MIN_LISTED_CELLS", 0)


@settings(
    max_examples=250 if LONG_FORM else 10,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    ranker=st.sampled_from(RANKERS),
    n=st.sampled_from([15, 16, 17, 100]),
    weight=st.sampled_from([None, "whole", "any"]),
    identity=st.sampled_from([None, b"rows"]),
)
def test_the_bits_do_not_depend_on_the_hosts(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    ranker: Ranker,
    n: int,
    weight: str | None,
    identity: bytes | None,
) -> None:
    X, y, names, categories = make_rows(seed, n)
    rng = np.random.default_rng(seed)
    weights = {
        None: None,
        "whole": rng.integers(0, 4, n) + 0.0,  # rows of weight 0 are no rows of the table
        "any": rng.random(n),
    }[weight]
    if weights is not None:
        weights[:3] = 1.0
    try:
        in_memory = save(copy_of(ranker).fit(CodedTable(X, names, categories), y, weights))
    except InvalidData:
        return  # no row of a class for the validation part
    folder = tmp_path_factory.mktemp("codes")
    source = ArrayColumns(X, names, categories, identity)
    for make in (LocalHosts, Elsewhere):
        for n_hosts in (1, 2, 8):
            table = ColumnTable(source, folder, placement=make(n_hosts, folder))
            assert save(copy_of(ranker).fit(table, y, weights)) == in_memory


@pytest.mark.parametrize(
    ("is_drawn", "ranker"),
    one_in(
        2,
        [False, True],
        [
            RankBoost(weak_ranker="tree", n_rounds=4, max_leaves=255, min_samples_leaf=3),
            RankBoost(weak_ranker="tree", n_rounds=6, early_stopping_rounds=3, max_leaves=300),
            LogitBoost(n_rounds=6, subsample=0.3, max_leaves=12, max_categories=300),
            LogitBoost(n_rounds=4, max_leaves=None, max_depth=6, max_bins=700),
            LogitBoost(early_stopping_rounds=2),  # it chooses the number of rounds
        ],
    ),
)
def test_large_trees_do_not_depend_on_the_hosts(
    tmp_path: Path, ranker: Ranker, is_drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows in several passes and shards; weights are rounded to the nearest unit, or at random."""
    n = 30_000 if LONG_FORM else 20_000
    monkeypatch.setattr(stored, "SHARD_ROWS", 9000)
    if is_drawn:
        monkeypatch.setattr("core.trees.grower.MAX_NEAREST_ROWS", 0)
    X, y, names, categories = make_rows(0, n, n_words=280 if is_drawn else 20)
    rng = np.random.default_rng(0)
    y[:2000] = False  # a pass of a shard has one class only
    ranker = copy_of(ranker).set_params(target_encoding=None)
    if is_drawn:
        ranker.set_params(monotone={"f0": "increasing", "f3": "decreasing"})
    weight = rng.random(len(y)) if is_drawn else None
    given = y, weight
    groups = {"groups": rng.integers(0, 500, len(y))}
    in_memory = save(ranker.fit(CodedTable(X, names, categories), *given, **groups))
    for n_hosts in (1, 2, 8) if LONG_FORM else (2,):
        hosts = LocalHosts(n_hosts, tmp_path)
        table = ColumnTable(ArrayColumns(X, names, categories, b"rows"), tmp_path, placement=hosts)
        assert save(copy_of(ranker).fit(table, *given, **groups)) == in_memory


BOOSTED = [
    RankBoost(n_rounds=30),
    RankBoost(weak_ranker="tree", n_rounds=30, max_leaves=5, min_samples_leaf=2),
    LogitBoost(n_rounds=30, max_leaves=5, min_samples_leaf=1, subsample=0.7),
    LogitBoost(n_rounds=30, max_leaves=5, min_samples_leaf=1, learning_rate=0.5),
]


def fit_on(
    folder: Path, hosts: LocalHosts | None, ranker: Ranker = BOOSTED[0]
) -> Callable[..., bytes]:
    X, y, names, categories = make_rows(1)
    table = ColumnTable(ArrayColumns(X, names, categories, b"rows"), folder, placement=hosts)
    return lambda callback=None: save(copy_of(ranker).fit(table, y, callback=callback))


@pytest.mark.parametrize(
    ("ranker", "sure_mass"),
    [
        *((ranker, MIN_SURE_MASS) for ranker in BOOSTED[:3]),
        pytest.param(BOOSTED[3], MIN_SURE_MASS, marks=long_form),
        (BOOSTED[0], 0.4),
    ],
)
def test_a_checkpoint_of_steps_goes_on_to_the_same_bits_on_other_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ranker: Ranker, sure_mass: float
) -> None:
    """It has nothing of the rows: some hundred bytes a round, and some forty for each split of a tree.

    In the last case the sums are made anew in most of the rounds.
    """
    monkeypatch.setattr(stumps, "MIN_SURE_MASS", sure_mass)
    asked = Asked(2, tmp_path)
    assert fit_on(tmp_path, asked, ranker)() == fit_on(tmp_path, None, ranker)()
    if sure_mass > MIN_SURE_MASS:
        assert asked.questions["take"] > 45
    whole = fit_on(tmp_path, LocalHosts(3, tmp_path), ranker)()
    for at in (1, 9, 25) if LONG_FORM else (1, 25):
        checkpoints = Checkpoints()
        taken: list[bytes | None] = []

        def lose(
            step: int,
            of: int,
            info: Mapping[str, float],
            at: int = at,
            checkpoints: Checkpoints = checkpoints,
            taken: list[bytes | None] = taken,
        ) -> None:
            if step == at:
                taken.append(checkpoints.take())
                raise ShardsLost("a worker is lost")

        with checkpoints, pytest.raises(ShardsLost):
            fit_on(tmp_path, LocalHosts(2, tmp_path), ranker)(lose)
        for hosts in (Elsewhere(5, tmp_path), None):  # None: without a cluster
            with Checkpoints(taken[0]) as resumed:
                assert fit_on(tmp_path, hosts, ranker)() == whole
            assert resumed.resumed


class Asked(LocalHosts):
    """Counts the questions to shards, and the bytes of the answers."""

    def __init__(self, n_hosts: int, folder: Path) -> None:
        super().__init__(n_hosts, folder)
        self.questions: Counter[str] = Counter()
        self.n_bytes = 0

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = super().call(method, arguments)
        if method == "add_up":
            self.questions[arguments[0][1]] += 1
            self.n_bytes += len(pickle.dumps(answers))
        return answers


def test_a_round_is_one_question_and_empty_bins_do_not_travel(tmp_path: Path) -> None:
    """With categories, too, whose order needs the squared weights."""
    hosts = Asked(2, tmp_path)
    fit_on(tmp_path, hosts)()
    assert hosts.questions == {"totals": 1, "start": 1, "take": 30}
    n_sums, n_bins = 4, 100  # of 7 shards on 2 hosts; of 100 rows, where histograms have 256 slots
    X, *_ = make_rows(1)
    assert hosts.n_bytes / 30 < n_sums * X.shape[1] * (2 * n_bins * 8 + 100)


class Changing(LocalHosts):
    """Someone changes a file between the check of the driving process and that of a host."""

    def __init__(self, folder: Path, change: Callable[[Path], object]) -> None:
        super().__init__(2, folder)
        self._change = lambda: change(next(folder.glob("codes-*/000002.codes")))

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        if method == "begin":
            self._change()
        return super().call(method, arguments)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)


def test_a_shard_that_was_changed_is_refused_on_arrival(
    tmp_path: Path, sentences: Sentences
) -> None:
    with raises(ShardsLost, "000002.codes"):
        fit_on(tmp_path, Changing(tmp_path, flip_a_bit))()
    with sentences.raises(ShardsLost):
        fit_on(tmp_path, Changing(tmp_path, lambda path: path.write_bytes(b"")))()
    assert fit_on(tmp_path, Changing(tmp_path, Path.unlink))()  # one that is gone is sent


class OtherFiles(LocalHosts):
    """Hosts of a machine that has something else at the paths of the shards."""

    def __init__(self, folder: Path, path: str) -> None:
        super().__init__(2, folder)
        self.path, self.sent = path, 0

    def call(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        if method == "begin":
            other = [[replace(file, path=self.path) for file in own[3]] for own in arguments]
            arguments = [(*own[:3], files) for own, files in zip(arguments, other, strict=True)]
        if method == "receive":
            assert sum(map(bool, arguments)) == 1  # one file is in memory
            self.sent += 1
        return super().call(method, arguments)


def test_a_shard_that_a_host_cannot_open_or_finds_to_be_another_is_sent(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"other")
    (tmp_path / "loop").symlink_to("loop")
    whole = fit_on(tmp_path, LocalHosts(2, tmp_path))()
    for name in ("other", "other/below", ".", "loop"):
        hosts = OtherFiles(tmp_path, str(tmp_path / name))
        assert fit_on(tmp_path, hosts)() == whole
        assert hosts.sent > 2


def test_bytes_that_were_changed_on_the_way_are_refused(
    tmp_path: Path, sentences: Sentences
) -> None:
    file = CodeFile(b"0" * 32, None, ("|u1",), 3)
    with sentences.raises(ShardsLost):
        ShardHost(str(tmp_path)).receive(file, b"abc")


@pytest.mark.parametrize(
    ("ranker", "named"),
    [
        (TreeRank(), ()),
        (MartiRank(weak_ranker="logistic"), ("weak_ranker", "'logistic'")),
        (LogitBoost(crosses=2), ("crosses",)),
        (RankBoost(weak_ranker="column"), ("weak_ranker", "'column'")),
        (LogitBoost(target_encoding=3), ("target_encoding", 3)),
    ],
)
def test_a_fit_that_needs_more_than_sums_is_refused_by_name(
    tmp_path: Path, ranker: Ranker, named: tuple[object, ...]
) -> None:
    X, y, names, categories = make_rows(0)
    source = ArrayColumns(X, names, categories)
    table = ColumnTable(source, tmp_path, placement=LocalHosts(2, tmp_path))
    with raises(InvalidData, type(ranker).__name__, *named):
        ranker.fit(table, y)
