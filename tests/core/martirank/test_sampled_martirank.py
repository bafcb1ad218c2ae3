"""SampledMartiRank: noise taken out of masses and coins, freezing, guesses, and Theorem 8's setting."""

from typing import Any

import numpy as np
import pytest

from core import load, save
from core.errors import ArtifactError, InvalidData
from core.martirank import SampledMartiRank
from core.martirank.program import Mass, split
from core.metrics import auc
from tests.sentences import Sentences


def flip(y: np.ndarray, rate: float, seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(len(y)) < rate, 1 - y, y)


def test_the_coin_needs_correcting_under_noise() -> None:
    """A node with 10 % positives, η = .3, true p₊ = .4 and p₋ = 0: the plain coin is .459."""
    above, below = Mass(0.06, 0.0), Mass(0.04, 0.9)
    noise = 0.3
    noisy = [
        Mass(
            (1 - noise) * side.positive + noise * side.negative,
            (1 - noise) * side.negative + noise * side.positive,
        )
        for side in (above, below)
    ]
    plain = split(*noisy)
    assert plain.rise_below == pytest.approx(0.459, abs=5e-4)

    def advantage(sides: Any) -> Any:
        falls = 0.6 * (1 - sides.rise_above) + 0.4 * (1 - sides.rise_below)
        rises = sides.rise_below  # all negatives are below
        return 0.5 - max(falls, rises)

    assert advantage(plain) == pytest.approx(0.041, abs=5e-4)
    corrected = split(*(mass.without_noise(noise) for mass in noisy))
    assert corrected.error == pytest.approx(split(above, below).error, abs=1e-12)
    assert advantage(corrected) == pytest.approx(0.5 - 0.4 / 1.4, abs=1e-12)


def vote_with_coins(
    nodes: np.ndarray, n_layers: int, X: np.ndarray, draw: np.random.Generator
) -> np.ndarray:
    """Toss the coins; give each row's vote: the label where it froze, else of its last position."""
    position = np.zeros(len(X), dtype=int)
    label = np.full(len(X), np.nan)
    for t in range(n_layers):
        node = nodes[t * (t + 1) // 2 + position]
        label = np.where(np.isnan(label) & node["frozen"], node["rise_below"], label)
        x = X[np.arange(len(X)), np.maximum(node["feature"], 0)]
        above = (x > node["threshold"]) & (node["feature"] >= 0)
        rises = np.where(above, node["rise_above"], node["rise_below"])
        position = position + (draw.random(len(X)) < rises)
    return np.where(np.isnan(label), 2 * position >= n_layers, label)


def test_theorem_8_with_its_coins_drawn() -> None:
    """Each layer has a fresh feature, independent given the class: AUC ½ + γ at every node."""
    gamma, epsilon, noise = 0.35, 0.3, 0.4
    n_layers = int(np.ceil(8 * np.log(1 / epsilon) / gamma**2))
    draw = np.random.default_rng(0)

    def sample(n: Any) -> Any:
        y = (draw.random(n) < 0.5).astype(int)
        agrees = draw.random((n, n_layers)) < 0.5 + gamma
        return np.where(agrees, y[:, None], 1 - y[:, None]).astype(float), y

    X, y = sample(3_000)
    X_new, y_new = sample(2_000)
    ranker = SampledMartiRank(
        n_rounds=n_layers, noise_rate=noise, n_bags=1, subsample=1.0, output="vote", epsilon=1e-9
    ).fit(X, flip(y, noise, 1))
    votes = vote_with_coins(ranker.nodes_, n_layers, X_new, draw)
    assert auc(y_new, votes) >= 1 - epsilon
    assert (ranker.nodes_["feature"] >= 0).sum() > 20


def test_nodes_freeze_by_the_share_that_reaches_them() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(2_000, 4))
    y = (X[:, 0] + X[:, 1] + 0.3 * draw.normal(size=2_000) > 0).astype(int)
    ranker = SampledMartiRank(n_rounds=8, epsilon=0.9, noise_rate=0.0, n_bags=1).fit(X, y)
    nodes = ranker.nodes_
    least = 0.9 / (4 * 8 * 9)
    rare = np.minimum(nodes["positive"], nodes["negative"]) <= least
    assert (nodes["frozen"] == rare).all()
    assert 0 < nodes["frozen"].sum() < len(nodes)
    frozen = nodes[nodes["frozen"]]
    assert ((frozen["rise_below"] == 1.0) == (frozen["positive"] > frozen["negative"])).all()
    assert ((nodes["rise_below"] == 0.0) | (nodes["rise_below"] == 1.0))[nodes["frozen"]].all()


def test_scores_of_frozen_rows_count_the_steps_that_are_left() -> None:
    X = np.array([[0.0], [0.0], [1.0], [1.0]] * 5)
    y = np.array([0, 0, 1, 1] * 5)
    ranker = SampledMartiRank(n_rounds=5, noise_rate=0.0, n_bags=2).fit(X, y)
    assert ranker.expected_position(X[:4]).tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_the_noise_rate_is_guessed_within_its_range(noise: float) -> None:
    draw = np.random.default_rng(3)
    X = draw.normal(size=(4_000, 5))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)  # no overlap: what looks like noise is noise
    ranker = SampledMartiRank(n_rounds=10, n_bags=2).fit(X, flip(y, noise, 4))
    low, high = ranker.noise_rate_range_
    assert low == 0.0
    assert noise < high < noise + 0.12
    assert low <= ranker.noise_rate_ <= high
    guesses, areas = ranker.noise_rate_auc_.T
    assert ranker.noise_rate_ == guesses[areas.argmax()]
    assert ranker.class_prior_ == pytest.approx(0.5, abs=0.1)


def test_a_noise_rate_that_explains_all_of_a_label_is_refused(sentences: Sentences) -> None:
    X, y = np.arange(20.0)[:, None], (np.arange(20) < 3).astype(int)
    with sentences.raises(InvalidData):
        SampledMartiRank(noise_rate=0.4).fit(X, y)


def test_a_draw_without_a_class_but_for_noise_makes_no_nan() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 2))
    y = (draw.random(300) < 0.25).astype(int)
    ranker = SampledMartiRank(n_rounds=4, noise_rate=0.2, n_bags=5, subsample=0.05).fit(X, y)
    assert np.isfinite(ranker.decision_function(X)).all()


def test_what_was_guessed_stays_with_the_artifact() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(300, 3))
    ranker = SampledMartiRank(n_rounds=4, n_bags=2).fit(X, flip((X[:, 0] > 0).astype(int), 0.1, 1))
    again = load(save(ranker))
    assert again.noise_rate_ == ranker.noise_rate_
    assert again.noise_rate_range_ == ranker.noise_rate_range_
    assert again.class_prior_ == ranker.class_prior_
    assert again.noise_rate_auc_.tolist() == ranker.noise_rate_auc_.tolist()
    noise = again.structure()["label_noise"]
    assert noise["guessed"]
    assert (noise["low"], noise["high"]) == ranker.noise_rate_range_
    arrays, meta = ranker.get_state()
    for broken in ({"class_prior": 2.0}, {"noise_rate": "a"}, {"noise_rate_range": [0.0]}):
        with pytest.raises(ArtifactError):
            SampledMartiRank.from_state(ranker.get_params(), arrays, meta | broken)
