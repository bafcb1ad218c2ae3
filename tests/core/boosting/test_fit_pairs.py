"""Learning from listed pairs: against the definition, and against the way of two classes."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import CoordinateRankBoost, RankBoost, SmoothMarginRank
from core.base.ranker import StopFit
from core.errors import InvalidData, InvalidParameter
from core.metrics import pair_order
from tests.core.boosting.test_pairs import follow
from tests.core.oracles import PairBoosting, Stump, pairs_of_classes
from tests.long_form import LONG_FORM
from tests.raising import raises
from tests.sentences import Sentences

ALGORITHMS = [(RankBoost, "loss"), (CoordinateRankBoost, "slope")]


def random_pairs(
    seed: int, n: int = 30, d: int = 4, n_pairs: int = 120, missing: float = 0.0, ties: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs by a noisy worth: with cycles, contradictions and repetitions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    ends = rng.integers(0, n, (n_pairs, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    worth = (X[:, 0] + X[:, 1] ** 2)[ends] + rng.normal(size=ends.shape)
    pairs = np.where((worth[:, 0] > worth[:, 1])[:, None], ends, ends[:, ::-1])
    weight = rng.integers(0, 4, len(pairs)).astype(float)
    if ties:
        X = np.round(X)
    X[rng.random(X.shape) < missing] = np.nan
    return X, pairs, weight


@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.01])
def test_every_round_is_the_one_that_the_pairs_ask_for(
    algorithm: type[Any], criterion: str, missing: float, ties: bool, smoothing: float
) -> None:
    for seed in range(3):
        X, pairs, weight = random_pairs(seed, missing=missing, ties=ties)
        ranker = algorithm(n_rounds=8, smoothing=smoothing).fit_pairs(X, pairs, weight)
        if smoothing == 0.0 and (ranker.rounds_["d_minus"] == 0).any():
            continue  # after a step that is cut off the oracle's arithmetic is too coarse
        oracle = PairBoosting(X, pairs, weight, criterion, smoothing or 2.0**-52)
        assert len(ranker.rounds_) == 8
        follow(ranker, oracle)
        scores = ranker.decision_function(X)
        terms = weight * np.exp(scores[pairs[:, 1]] - scores[pairs[:, 0]])
        assert ranker.loss_[-1] == pytest.approx(terms.sum())


@st.composite
def small_lists(draw: Any) -> Any:
    """Few items of few values: ties, constant columns, missing values, items that nobody names."""
    n, d = draw(st.integers(2, 7)), draw(st.integers(1, 3))
    value = st.sampled_from([0.0, 1.0, 2.0, np.nan, -0.0])
    X = np.array(draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n)))
    item = st.integers(0, n - 1)
    pair = st.tuples(item, item).filter(lambda pair: pair[0] != pair[1])
    pairs = np.array(draw(st.lists(pair, min_size=1, max_size=9)))
    weight = draw(st.lists(st.integers(0, 3).map(float), min_size=len(pairs), max_size=len(pairs)))
    weight[0] += 1.0
    return X, pairs, np.array(weight)


@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
@given(listed=small_lists())
@settings(max_examples=1000 if LONG_FORM else 20)
def test_small_lists_full_of_ties_and_cycles(
    algorithm: type[Any], criterion: str, listed: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    X, pairs, weight = listed
    ranker = algorithm(n_rounds=5, smoothing=0.01).fit_pairs(X, pairs, weight)
    oracle = PairBoosting(X, pairs, weight, criterion, 0.01)
    follow(ranker, oracle)
    if ranker.stop_reason_ == "no_edge":
        assert oracle.round() is None
    if ranker.stop_reason_ == "perfect_ranker":
        last = ranker.rounds_[-1][["feature", "threshold", "sign", "missing_above"]].item()
        assert oracle.masses(Stump(*last), oracle.d()) == (pytest.approx(1.0), 0.0, 0.0)


@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_pairs_of_two_classes_are_the_bipartite_way(
    algorithm: type[Any], criterion: str, missing: float, weighted: bool
) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    X[:, 3] = np.round(X[:, 3])
    y = (X[:, 0] - X[:, 1] + rng.normal(size=90) > 0.5).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    weight = rng.integers(1, 5, 90).astype(float) if weighted else np.ones(90)
    pairs = pairs_of_classes(y)
    pair_weight = weight[pairs[:, 0]] * weight[pairs[:, 1]]
    listed = algorithm(n_rounds=40).fit_pairs(X, pairs, pair_weight)
    bipartite = algorithm(n_rounds=40).fit(X, y, weight)
    for field in ("feature", "threshold", "sign", "missing_above"):
        assert (listed.rounds_[field] == bipartite.rounds_[field]).all(), field
    for field in ("alpha", "d_plus", "d_minus"):
        assert listed.rounds_[field] == pytest.approx(bipartite.rounds_[field], rel=1e-9)
    assert listed.loss_ == pytest.approx(bipartite.loss_)
    difference = bipartite.decision_function(X) - listed.decision_function(X)
    assert difference == pytest.approx(np.full(90, bipartite.intercept_))
    assert listed.intercept_ == 0.0


@given(seed=st.integers(0, 2**32))
@settings(max_examples=250 if LONG_FORM else 10)
def test_the_smooth_margin_of_listed_pairs_never_falls_nor_passes_the_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3))
    worth = X[:, 0] + X[:, 1]
    ends = rng.integers(0, 25, (60, 2))
    ends = ends[worth[ends[:, 0]] > worth[ends[:, 1]]]
    weight = rng.integers(1, 4, len(ends)).astype(float)
    ranker = SmoothMarginRank(n_rounds=200).fit_pairs(X, ends, weight)
    g, margin = ranker.smooth_margin_, ranker.margin_
    assert (g <= margin + 1e-9).all()
    above = np.flatnonzero(g > 0)
    if len(above):
        assert (np.diff(g[above[0] :]) >= -1e-12).all()
    gaps = np.diff(ranker.decision_function(X)[ends[:, ::-1]], axis=1)[:, 0]
    norm = ranker.rounds_["alpha"].sum()
    assert margin[-1] == pytest.approx(gaps.min() / norm, abs=1e-9)
    merged = np.unique(ends, axis=0, return_inverse=True)[1].ravel()
    least = np.bincount(merged, weight).min()
    log_sum = np.log((weight / least * np.exp(gaps.min() - gaps)).sum()) - gaps.min()
    assert g[-1] == pytest.approx(-log_sum / norm, abs=1e-9)


def test_potentials_are_not_enough() -> None:
    """Two lists of equal potentials, whose one stump costs .600 and .917 by eq. 5."""
    X = np.array([[1.0], [1.0], [0.0], [0.0], [1.0], [0.0]])  # a, b, c, d, e, f
    weight = np.array([0.3, 0.3, 0.4])
    potential, cost = [], []
    for pairs in ([(0, 1), (2, 3), (4, 5)], [(0, 3), (2, 1), (4, 5)]):
        better, worse = np.array(pairs).T
        potential.append(np.bincount(better, weight, 6) - np.bincount(worse, weight, 6))
        ranker = RankBoost(n_rounds=1, smoothing=0.0, weak_ranker="stump")
        row = ranker.fit_pairs(X, pairs, weight).rounds_[0]
        tied = 1 - row["d_plus"] - row["d_minus"]
        cost.append(2 * np.sqrt(row["d_plus"] * row["d_minus"]) + tied)
        assert (row["threshold"], row["sign"]) == (0.0, 1)
    assert (potential[0] == potential[1]).all()
    assert cost == pytest.approx([0.6, 0.9165151389911681])


@pytest.mark.parametrize(("algorithm", "criterion"), ALGORITHMS)
def test_a_weight_is_a_number_of_pairs_and_order_does_not_matter(
    algorithm: type[Any], criterion: str
) -> None:
    X, pairs, weight = random_pairs(5, missing=0.1)
    repeated = np.repeat(pairs, weight.astype(int), axis=0)
    one = algorithm(n_rounds=30).fit_pairs(X, pairs, weight)
    other = algorithm(n_rounds=30).fit_pairs(X, repeated)
    turned = algorithm(n_rounds=30).fit_pairs(X, pairs[::-1], weight[::-1])
    assert one.rounds_.tobytes() == other.rounds_.tobytes() == turned.rounds_.tobytes()


def test_a_pure_cycle_has_no_edge_and_a_part_of_it_has() -> None:
    X = np.arange(3.0)[:, None]
    cycle = [(0, 1), (1, 2), (2, 0)]
    assert RankBoost().fit_pairs(X, cycle).stop_reason_ == "no_edge"
    ranker = RankBoost().fit_pairs(X, cycle, [1.0, 1.0, 3.0])
    assert ranker.decision_function(X).argmax() == 2


def test_rows_that_no_pair_names_count_as_absent() -> None:
    X, pairs, weight = random_pairs(6)
    spare = np.full((5, X.shape[1]), 1e9)
    one = RankBoost(n_rounds=20).fit_pairs(X, pairs, weight)
    other = RankBoost(n_rounds=20).fit_pairs(np.vstack([X, spare]), pairs, weight)
    assert one.rounds_.tobytes() == other.rounds_.tobytes()


def test_many_pairs_in_memory_linear_in_them() -> None:
    rng = np.random.default_rng(0)
    n, n_pairs = 20_000, 120_000
    X = rng.normal(size=(n, 3))
    worth = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    ends = rng.integers(0, n, (n_pairs, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    pairs = np.where((worth[ends[:, 0]] > worth[ends[:, 1]])[:, None], ends, ends[:, ::-1])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        ranker = RankBoost(n_rounds=20).fit_pairs(X, pairs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 200 * n_pairs  # bytes; all pairs of these items would be two billion
    scores = ranker.decision_function(X)
    assert pair_order(scores, pairs) > 0.85
    # Rounds over a sample of the pairs, by definition, agree on what matters.
    some = rng.choice(len(pairs), 400, replace=False)
    first = ranker.rounds_[0]
    h = X[:, first["feature"]] > first["threshold"]
    above, below = h[pairs[:, 0]] & ~h[pairs[:, 1]], ~h[pairs[:, 0]] & h[pairs[:, 1]]
    assert first["d_plus"] == pytest.approx(above.mean(), rel=1e-9)
    assert first["d_minus"] == pytest.approx(below.mean(), rel=1e-9)
    assert first["d_plus"] == pytest.approx(above[some].mean(), abs=0.1)
    sampled = RankBoost(n_rounds=30).fit_pairs(X, pairs[some])
    assert pair_order(sampled.decision_function(X), pairs) > 0.8


def test_progress_is_the_share_of_pairs_in_order_and_no_label_is_predicted(
    sentences: Sentences,
) -> None:
    X, pairs, weight = random_pairs(8, missing=0.2)
    told = []
    ranker = RankBoost(n_rounds=12).fit_pairs(
        X, pairs, weight, callback=lambda *news: told.append(news)
    )
    assert [step for step, _, _ in told] == list(range(1, 13))
    in_order = pair_order(ranker.decision_function(X), pairs, weight)
    assert told[-1][2] == {"loss": ranker.loss_[-1], "training_auc": pytest.approx(in_order)}
    assert not hasattr(ranker, "classes_")
    with sentences.raises(InvalidData):
        ranker.predict(X)


def test_bad_input_is_named(sentences: Sentences) -> None:
    X = np.arange(6.0).reshape(3, 2)
    for pairs, weight, *named in [
        ([], None, "pairs", (0,)),
        ([(0, 1, 2)], None, "pairs", (1, 3)),
        ([(0, 3)], None, "pairs", 3),
        ([(0, -1)], None, "pairs", -1),
        ([(1, 1)], None, (1, 1)),
        ([(0.5, 1.0)], None, "pairs", "float64"),
        ([(0, 1)], [-1.0], "pair_weight", -1),
        ([(0, 1)], [np.nan], "pair_weight", "nan"),
        ([(0, 1)], [0.0], "pair_weight"),
        ([(0, 1)], [1.0, 1.0], "pair_weight", (2,)),
    ]:
        with raises(InvalidData, *named):
            RankBoost().fit_pairs(X, pairs, weight)
    with raises(InvalidData, "X"):
        RankBoost().fit_pairs([[np.inf], [0.0]], [(0, 1)])
    with raises(InvalidParameter, "n_rounds"):
        RankBoost(n_rounds=0).fit_pairs(X, [(0, 1)])
    with sentences.raises(InvalidParameter):
        CoordinateRankBoost(weak_ranker="tree").fit_pairs(X, [(0, 1)])
    with sentences.raises(InvalidParameter):
        RankBoost(weak_ranker="tree", push=2.0).fit_pairs(X, [(0, 1)])


def test_a_fit_that_its_callback_stops_keeps_its_rounds(sentences: Sentences) -> None:
    X, pairs, weight = random_pairs(0)

    def stop(step: Any, of: Any, info: Any) -> None:
        if step == 3:
            raise StopFit

    with sentences.warns(UserWarning):
        ranker = RankBoost(n_rounds=9).fit_pairs(X, pairs, weight, callback=stop)
    assert ranker.stop_reason_ == "stopped"
    fewer = RankBoost(n_rounds=3).fit_pairs(X, pairs, weight)
    assert (ranker.decision_function(X) == fewer.decision_function(X)).all()
