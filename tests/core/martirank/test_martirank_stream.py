"""SampledMartiRank from batches: the paper's distribution oracle."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from core import SampledMartiRank
from core.errors import InvalidData
from core.martirank.sampled import Demand, Stream, draws_needed, guess_and_halve
from core.metrics import auc
from tests.raising import raises, warns
from tests.sentences import Sentences


def batch(seed: int, n: int = 3_000) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n, 4))
    return X, (X[:, 0] + X[:, 1] > 0.5 * draw.normal(size=n)).astype(int)


def stream(n_batches: int, **parameters: Any) -> SampledMartiRank:
    ranker = SampledMartiRank(**{"n_rounds": 4, "noise_rate": 0.0, "n_bags": 2} | parameters)
    demand = Demand(layer_rows=3_000)
    for seed in range(n_batches):
        ranker.partial_fit(*batch(seed), demand=demand)
    return ranker


def test_it_learns_until_all_layers_are_finished() -> None:
    X, y = batch(99)
    areas = []
    for n_batches in (2, 8):
        ranker = stream(n_batches)
        areas.append(auc(y, ranker.decision_function(X)))
        assert ranker.is_complete_ == (n_batches == 8)
    assert 0.8 < areas[0] < areas[1]


def test_rows_beyond_the_last_layer_change_no_node() -> None:
    assert stream(8).nodes_.tobytes() == stream(9).nodes_.tobytes()


def test_nodes_wait_for_rows_of_both_classes() -> None:
    X, y = batch(0, n=2_000)
    demand = Demand(least_examples=600, layer_rows=math.inf)
    ranker = SampledMartiRank(n_rounds=2, noise_rate=0.0, n_bags=1)
    assert len(ranker.partial_fit(X, y, demand=demand).nodes_) == 1  # the root has seen them
    assert len(ranker.partial_fit(X, y).nodes_) == 1  # its children have not
    for _ in range(10):
        ranker.partial_fit(X, y)
    assert len(ranker.nodes_) == 3


def test_noise_is_taken_out_of_a_stream() -> None:
    ranker = SampledMartiRank(n_rounds=6, noise_rate=0.3, n_bags=2)
    for seed in range(20):
        X, y = batch(seed)
        flipped = np.random.default_rng(seed).random(len(y)) < 0.3
        ranker.partial_fit(X, np.where(flipped, 1 - y, y), demand=Demand(layer_rows=4_000))
    X, y = batch(99)
    assert ranker.class_prior_ == pytest.approx(0.5, abs=0.05)
    assert auc(y, ranker.decision_function(X)) > 0.85


def test_a_later_batch_may_hold_one_class_and_new_categories() -> None:
    X, y = batch(0)
    table = pd.DataFrame({"x": X[:, 0], "sign": np.where(X[:, 1] > 0, "plus", "minus")})
    ranker = SampledMartiRank(n_rounds=3, noise_rate=0.0, n_bags=1).partial_fit(table, y)
    later = pd.DataFrame({"x": [1.0, np.nan], "sign": ["plus", "both"]})
    cut = ranker.intercept_
    ranker.partial_fit(later, [1, 1], sample_weight=[1.0, 2.0])
    assert ranker.intercept_ == cut


def test_a_weight_of_k_in_a_batch_is_k_rows_of_a_category_too() -> None:
    colour = np.arange(60) % 12  # five rows each, two or three of them positive:
    y = (np.arange(60) // 12 < 2 + colour % 2).astype(int)  # chance in 60 rows, not in 1,800
    table = pd.DataFrame({"colour": [f"c{c:02}" for c in colour]})
    weight = np.full(60, 30.0)
    rows = np.repeat(np.arange(60), 30)
    demand = Demand(layer_rows=1.0)
    one, other = (
        SampledMartiRank(n_rounds=1, noise_rate=0.0, n_bags=1).partial_fit(*batch, demand=demand)
        for batch in (
            (table, y, None, weight),
            (table.iloc[rows].reset_index(drop=True), y[rows]),
        )
    )
    assert (one.nodes_["feature"] == 0).all()
    assert one.expected_position(table) == pytest.approx(other.expected_position(table), abs=1e-9)


@pytest.mark.parametrize(
    ("later", "named"),
    [
        (lambda X, y: (X[:, :3], y), (3, 4)),
        (lambda X, y: (X, y + 1), ("y",)),
        (lambda X, y: (X, y[:-1]), ("y", 3002, 3001)),
        (lambda X, y: (X, np.where(y == 1, np.nan, 0.0)), ("y", "NaN")),
        (lambda X, y: (X, y, None, -np.ones(len(y))), ("sample_weight", -1)),
        (lambda X, y: (X, y, None, np.ones(3)), ("sample_weight", 3002)),
    ],
)
def test_wrong_batches_are_refused_and_change_nothing(
    later: Callable[..., Any], named: tuple[object, ...]
) -> None:
    ranker = stream(2)
    before = ranker.nodes_.tobytes()
    with raises(InvalidData, *named):
        ranker.partial_fit(*later(*batch(7)))
    assert ranker.nodes_.tobytes() == before


def test_a_rate_to_be_guessed_is_taken_for_none_and_said() -> None:
    with warns(UserWarning, "noise_rate"):
        ranker = SampledMartiRank().partial_fit(*batch(0))
    assert ranker.noise_rate_ == 0.0


def test_classes_may_be_told_before_both_are_seen(sentences: Sentences) -> None:
    X, y = batch(0)
    ranker = SampledMartiRank(noise_rate=0.0)
    ranker.partial_fit(X[y == 1], y[y == 1], classes=[0, 1]).partial_fit(X, y)
    assert ranker.classes_.tolist() == [0, 1]
    with sentences.raises(InvalidData):
        SampledMartiRank(noise_rate=0.0).partial_fit(X, y, classes=[1])
    with raises(InvalidData, "y", "'a'"):
        SampledMartiRank(noise_rate=0.0).partial_fit(X, y, classes=["a", "b"])


def test_theorem_10_counts() -> None:
    assert guess_and_halve(0.5) == 0.5
    assert guess_and_halve(0.3) == 0.25
    demand = Demand(least_examples=100.0, confidence=0.95)
    q = 0.25 * 0.1 / (4 * 110)
    expected = 2 / q * (100 + math.log(110 / 0.05))
    assert draws_needed(10, 0.1, 0.3, 0.0, demand) == pytest.approx(expected)
    assert draws_needed(10, 0.1, 0.3, 0.25, demand) == pytest.approx(4 * expected)


@pytest.mark.parametrize("seen", [1, 2])
def test_a_batch_that_is_interrupted_is_not_in_the_stream(
    seen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranker, expected = stream(seen), stream(seen + 1)
    take = Stream.feed

    def interrupted(self: Stream, *rows: Any) -> None:
        take(self, *rows)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "feed", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ranker.partial_fit(*batch(seen), demand=Demand(layer_rows=3_000))
    ranker.partial_fit(*batch(seen), demand=Demand(layer_rows=3_000))
    X, _ = batch(99)
    assert (ranker.decision_function(X) == expected.decision_function(X)).all()
