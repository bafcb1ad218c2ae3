"""The share of pairs in order against its definition, pair by pair, and its interval against simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidData, InvalidParameter
from core.metrics import (
    auc,
    auc_interval,
    misrank_fraction,
    pair_order,
    summarise_pairs,
    wilson_interval,
)
from tests.core.metrics.naive import area_interval
from tests.core.oracles import pairs_of_classes
from tests.long_form import LONG_FORM
from tests.raising import raises


@st.composite
def listed_pairs(draw: Any) -> Any:
    """A few items with few scores, and pairs with repetitions, cycles, contradictions and weights of 0."""
    n = draw(st.integers(2, 7))
    scores = draw(st.lists(st.integers(-2, 2).map(float), min_size=n, max_size=n))
    item = st.integers(0, n - 1)
    pair = st.tuples(item, item).filter(lambda pair: pair[0] != pair[1])
    pairs = draw(st.lists(pair, min_size=1, max_size=12))
    weight = draw(st.lists(st.integers(0, 3).map(float), min_size=len(pairs), max_size=len(pairs)))
    weight[0] += 1.0
    return np.array(scores), np.array(pairs), np.array(weight)


@given(listed=listed_pairs())
def test_every_figure_is_what_its_definition_says(
    listed: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    scores, pairs, weight = listed
    outcome = [(scores[i] > scores[k]) + 0.5 * (scores[i] == scores[k]) for i, k in pairs]
    total = weight.sum()
    value = sum(w * s for w, s in zip(weight, outcome, strict=True)) / total
    ties = sum(w for w, (i, k) in zip(weight, pairs, strict=True) if scores[i] == scores[k]) / total
    wrong = sum(w for w, s in zip(weight, outcome, strict=True) if s < 1) / total
    assert pair_order(scores, pairs, weight) == pytest.approx(value, abs=1e-12)
    assert summarise_pairs(scores, pairs, weight).misrank_fraction == pytest.approx(
        wrong, abs=1e-12
    )
    found = summarise_pairs(scores, pairs, weight)
    assert found.order.value == pytest.approx(value, abs=1e-12)
    assert found.ties == pytest.approx(ties, abs=1e-12)
    assert found.misrank_fraction == pytest.approx(wrong, abs=1e-12)
    assert found.pairs == (weight > 0).sum()
    assert found.items == len(
        {item for w, p in zip(weight, pairs.tolist(), strict=True) if w for item in p}
    )
    assert found.weight == total
    assert 0.0 <= found.order.low <= found.order.value <= found.order.high <= 1.0
    share = weight / total
    together = sum(
        share[p] * share[q]
        for p in range(len(pairs))
        for q in range(len(pairs))
        if set(pairs[p]) & set(pairs[q])
    )
    assert found.effective_pairs == pytest.approx(1 / together)


@given(listed=listed_pairs())
def test_the_interval_is_that_of_all_pairs_of_pairs_that_share_an_item(
    listed: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    scores, pairs, weight = listed
    keep = weight > 0
    pairs, weight = pairs[keep], weight[keep]
    value = pair_order(scores, pairs, weight)
    share = weight / weight.sum()
    outcome = np.array([(scores[i] > scores[k]) + 0.5 * (scores[i] == scores[k]) for i, k in pairs])
    part = share * (outcome - value)
    n = len(pairs)
    common = [[len(set(pairs[p]) & set(pairs[q])) for q in range(n)] for p in range(n)]
    dyadic = sum(part[p] * part[q] for p in range(n) for q in range(n) if common[p][q] > 0)
    same = sum(part[p] * part[q] for p in range(n) for q in range(n) if common[p][q] == 2)
    variance = max(dyadic, same)
    found = summarise_pairs(scores, pairs, weight)
    effective = found.effective_pairs
    trials = min(1 / (np.bincount(pairs[:, side], share) ** 2).sum() for side in (0, 1))
    if effective < 1 + 1e-9 or variance < 1e-20 or value in {0.0, 1.0}:
        assert found.order == pytest.approx(wilson_interval(found.order.value, trials))
        return
    expected = area_interval(value, variance * effective / (effective - 1), trials)
    assert found.order[1:] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_over_all_pairs_of_two_classes_it_is_the_auc() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    scores = np.round(rng.normal(size=300) + y, 1)
    weight = rng.integers(1, 4, 300).astype(float)
    pairs = pairs_of_classes(y)
    pair_weight = weight[pairs[:, 0]] * weight[pairs[:, 1]]
    assert pair_order(scores, pairs, pair_weight) == pytest.approx(auc(y, scores, weight))
    assert summarise_pairs(scores, pairs, pair_weight).misrank_fraction == pytest.approx(
        misrank_fraction(y, scores, weight)
    )
    ours, delong = (
        summarise_pairs(scores, pairs, pair_weight).order,
        auc_interval(y, scores, sample_weight=weight),
    )
    assert ours.low == pytest.approx(delong.low, abs=0.003)
    assert ours.high == pytest.approx(delong.high, abs=0.003)


def test_pairs_that_share_nothing_are_worth_their_number() -> None:
    pairs = np.arange(40).reshape(20, 2)
    scores = np.tile([1.0, 0.0], 20)
    assert summarise_pairs(scores, pairs).order == wilson_interval(1.0, 20)
    scores[:10] = scores[:10][::-1]
    assert summarise_pairs(scores, pairs).effective_pairs == pytest.approx(20)


def test_pairs_that_all_share_an_item_are_worth_one() -> None:
    pairs = [(0, k) for k in range(1, 50)]
    scores = np.r_[0.0, np.repeat([1.0, -1.0], [10, 39])]
    assert summarise_pairs(scores, pairs).order == pytest.approx(wilson_interval(39 / 49, 1.0))


def test_weights_are_shares() -> None:
    rng = np.random.default_rng(1)
    scores, pairs = rng.normal(size=9), [(0, 1), (1, 2), (3, 4), (5, 6), (7, 8), (8, 0)]
    weight = np.arange(1.0, 7.0)
    plain = summarise_pairs(scores, pairs, weight).order
    for factor in (1e-99, 1e99):
        assert summarise_pairs(scores, pairs, factor * weight).order == pytest.approx(plain)


@pytest.mark.parametrize("design", ["sparse", "dense", "bipartite"])
def test_the_interval_covers(design: str) -> None:
    """Items with latent worth, scores that see it dimly; the truth is the share over many items."""
    rng = np.random.default_rng(7)
    n = 60

    def draw(size: Any) -> Any:
        worth = rng.normal(size=size)
        return worth, worth + rng.normal(size=size)

    if design == "bipartite":
        worth, score = draw(100_000)
        y = worth > 0
        truth = auc(y, score)
    else:
        worth, score = draw(200_000)
        order = (worth[0::2] > worth[1::2]) == (score[0::2] > score[1::2])
        truth = order.mean()
    covered, draws = 0, 400 if LONG_FORM else 80
    for _ in range(draws):
        worth, score = draw(n)
        if design == "bipartite":
            pairs = pairs_of_classes((worth > 0).astype(int))
        else:
            ends = rng.integers(0, n, (60 if design == "sparse" else 600, 2))
            ends = ends[ends[:, 0] != ends[:, 1]]
            swap = worth[ends[:, 0]] < worth[ends[:, 1]]
            pairs = np.where(swap[:, None], ends[:, ::-1], ends)
        low, high = summarise_pairs(score, pairs).order[1:]
        covered += low <= truth <= high
    assert (0.91 if LONG_FORM else 0.86) <= covered / draws <= (0.99 if LONG_FORM else 1.0)


def test_bad_input_is_named() -> None:
    scores = [0.0, 1.0, 2.0]
    good = [(0, 1)]
    for pairs, weight, named in [
        ([], None, ("pairs", (0,))),
        (np.empty((0, 2), int), None, ("pairs", (0, 2))),
        ([0, 1], None, ("pairs", (2,))),
        ([(0, 1, 2)], None, ("pairs", (1, 3))),
        ([(0, 1), (2,)], None, ("pairs",)),
        ([(0.0, 1.0)], None, ("pairs", "float64")),
        ([("a", "b")], None, ("pairs", "<U1")),
        ([(True, False)], None, ("pairs", "bool")),
        ([(0, 1), (0, 3)], None, ("pairs", 3, 1)),
        ([(-1, 0)], None, ("pairs", -1, 0)),
        ([(0, 1), (1, 1)], None, ((1, 1), 1)),
        (good, [1.0, 2.0], ("pair_weight", (2,))),
        (good, [-1.0], ("pair_weight", -1)),
        (good, [np.nan], ("pair_weight", "nan")),
        (good, [np.inf], ("pair_weight", "inf")),
        (good, ["heavy"], ("pair_weight", "'heavy'")),
        (good, [0.0], ("pair_weight", 0)),
        (good, [1e101], ("pair_weight", "1e+101")),
    ]:
        with raises(InvalidData, *named):
            pair_order(scores, pairs, weight)
    for bad, named in [
        ([0.0, np.nan, 1.0], ("scores", "nan", 1)),
        ([[0.0, 1.0]], ("scores", (1, 2))),
        (["a", "b"], ("scores", "<U1")),
        ([[0.0], [1.0, 2.0]], ("scores",)),
    ]:
        with raises(InvalidData, *named):
            pair_order(bad, good)
    with raises(InvalidParameter, "level", 1.0):
        summarise_pairs(scores, good, level=1.0)
