"""Early stopping on listed pairs: the items held out, and the rounds kept."""

from typing import Any

import numpy as np
import pytest

from core import CoordinateRankBoost, RankBoost, SmoothMarginRank, load, save
from core.base.target import check_pairs
from core.boosting import loop
from core.boosting.pairs import MIN_PAIRS, ListedPairs
from core.errors import InvalidData
from core.metrics import pair_order
from tests.sentences import Sentences

ALGORITHMS = pytest.mark.parametrize(
    "algorithm", [RankBoost, CoordinateRankBoost, SmoothMarginRank]
)


def noisy_pairs(
    n: int = 120, n_pairs: int = 1500, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of items, right in two cases of three."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    ends = rng.integers(0, n, (n_pairs, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    worth = (X[:, 0] + X[:, 1])[ends] + 3 * rng.normal(size=ends.shape)
    pairs = np.where((worth[:, 0] > worth[:, 1])[:, None], ends, ends[:, ::-1])
    return X, pairs, rng.integers(1, 4, len(pairs)).astype(float)


def split(
    pairs: np.ndarray, weight: np.ndarray | None, n: int, fraction: float = 0.2, seed: int = 0
) -> list[tuple[list[Any], list[Any]]]:
    """The rows and weights of both parts."""
    listed = ListedPairs.of(np.empty((n, 0)), check_pairs(pairs, weight, n), np.empty(0, np.int64))
    parts = listed.split_off(fraction, seed)
    return [
        (np.column_stack([p.rows[p.better], p.rows[p.worse]]).tolist(), p.weight.tolist())
        for p in parts
    ]


def test_items_are_held_out_with_all_their_pairs() -> None:
    X, pairs, weight = noisy_pairs()
    (learnt, _), (held, _) = split(pairs, weight, len(X))
    judges, teaches = set(np.ravel(held)), set(np.ravel(learnt))
    assert not judges & teaches
    assert len(judges) == 24  # a fifth of the items
    listed = {tuple(pair) for pair in pairs.tolist()}
    assert {tuple(p) for p in held} == {p for p in listed if set(p) <= judges}
    assert {tuple(p) for p in learnt} == {p for p in listed if not set(p) & judges}


def test_few_items_are_split_by_pairs_both_directions_together(
    monkeypatch: pytest.MonkeyPatch,
    sentences: Sentences,
) -> None:
    X, pairs, weight = noisy_pairs(n=12, n_pairs=200)
    monkeypatch.setattr("core.boosting.pairs.MIN_PAIRS", 10**6)
    with sentences.warns(UserWarning):
        (learnt, w), (held, v) = split(pairs, weight, len(X))
    units = [{frozenset(pair) for pair in part} for part in (learnt, held)]
    assert not units[0] & units[1]
    assert len(units[1]) == round(0.2 * len(units[0] | units[1]))
    assert sum(w) + sum(v) == weight.sum()  # nothing is lost


def test_neither_order_nor_repetition_of_the_list_matters() -> None:
    X, pairs, weight = noisy_pairs()
    order = np.random.default_rng(1).permutation(len(pairs))
    assert split(pairs, weight, len(X)) == split(pairs[order], weight[order], len(X))
    twice = np.concatenate([pairs, pairs])
    halves = np.concatenate([weight, weight]) / 2
    assert split(twice, halves, len(X)) == split(pairs, weight, len(X))
    assert split(pairs, weight, len(X), seed=1) != split(pairs, weight, len(X))


@ALGORITHMS
def test_the_best_rounds_are_kept(algorithm: type[Any]) -> None:
    X, pairs, weight = noisy_pairs()
    seen = []
    ranker = algorithm(n_rounds=200, early_stopping_rounds=8, random_state=3).fit_pairs(
        X, pairs, weight, callback=lambda *report: seen.append(report)
    )
    assert ranker.stop_reason_ == "validation"
    areas = ranker.validation_auc_
    n_kept = len(ranker.rounds_)
    assert [info["validation_auc"] for *_, info in seen] == areas.tolist()
    assert len(areas) == n_kept + 8
    assert n_kept == int(np.argmax(areas > areas.max() - 1e-9)) + 1
    (learnt, w), (held, v) = split(pairs, weight, len(X), seed=3)
    value = pair_order(ranker.decision_function(X), held, v)
    assert value == pytest.approx(areas[n_kept - 1], abs=1e-9)
    plain = algorithm(n_rounds=n_kept).fit_pairs(X, learnt, w)
    assert (ranker.decision_function(X) == plain.decision_function(X)).all()
    assert ranker.loss_.tolist() == plain.loss_.tolist()
    if algorithm is SmoothMarginRank:
        assert ranker.margin_.tolist() == plain.margin_.tolist()
    assert save(load(save(ranker))) == save(ranker)


def test_trees_stop_early_too() -> None:
    X, pairs, weight = noisy_pairs()
    ranker = RankBoost(weak_ranker="tree", n_rounds=200, early_stopping_rounds=8)
    ranker.fit_pairs(X, pairs, weight)
    assert ranker.stop_reason_ == "validation"
    (learnt, w), _ = split(pairs, weight, len(X))
    plain = RankBoost(weak_ranker="tree", n_rounds=len(ranker.rounds_)).fit_pairs(X, learnt, w)
    assert (ranker.decision_function(X) == plain.decision_function(X)).all()


def test_many_held_out_pairs_are_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "VALIDATED_EVERY_ROUND", 20)
    X, pairs, weight = noisy_pairs()
    ranker = RankBoost(n_rounds=100, early_stopping_rounds=6).fit_pairs(X, pairs, weight)
    every = -(-len(split(pairs, weight, len(X))[1][1]) // 20)
    assert every > 1
    computed = np.flatnonzero(~np.isnan(ranker.validation_auc_)) + 1
    assert (computed % every == 0).all()


def test_pairs_of_two_items_cannot_be_split(sentences: Sentences) -> None:
    X = np.arange(4.0)[:, None]
    with sentences.raises(InvalidData):
        RankBoost(early_stopping_rounds=5).fit_pairs(X, [(0, 1), (1, 0)])
    with sentences.warns(UserWarning):
        RankBoost(early_stopping_rounds=5).fit_pairs(X, [(0, 1), (1, 2)])


@pytest.mark.parametrize("told_by", ["copies", "groups"])
def test_copies_of_an_item_and_items_of_a_group_are_held_out_together(
    told_by: str, sentences: Sentences
) -> None:
    X, pairs, weight = noisy_pairs(n=240)
    item = np.arange(240) % 120
    group = item.astype(np.uint64) if told_by == "groups" else None
    table = X if told_by == "groups" else X[item]
    listed = ListedPairs.of(table, check_pairs(pairs, weight, 240), np.zeros(5, np.int64), group)
    for seed in range(5):
        learnt, held = listed.split_off(0.2, seed)
        ends = [np.unique(item[part.rows]) for part in (learnt, held)]
        assert not set(ends[0]) & set(ends[1])
        assert len(held.weight) >= MIN_PAIRS
    with sentences.raises(InvalidData):
        RankBoost(early_stopping_rounds=3).fit_pairs(X, pairs, groups=np.zeros(240))
    with sentences.raises(InvalidData):
        RankBoost(n_rounds=3).fit_pairs(X, pairs, groups=np.zeros(3))
