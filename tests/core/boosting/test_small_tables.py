"""Tables full of ties, gaps, constants and one-sided columns: every round of every algorithm is the best."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from core import AdaBoost, AdaBoostMH, AdaBoostMR, AUCBoost, SmoothMarginRank
from core.boosting.smooth_margin_rank import smooth_step
from core.coding import two_sided
from tests.core.boosting.test_pairs import histograms, small_tables  # noqa: F401 - a fixture, by its name
from tests.core.oracles import cuts_of
from tests.long_form import LONG_FORM


def stages(ranker: Any, X: np.ndarray) -> Iterator[np.ndarray]:
    """The scores before each round and after the last, intercepts left out."""
    yield np.zeros(len(X))
    yield from ranker.ensemble_.staged(X)


def edge_of_rows(X: Any, y: Any, weight: Any, f: Any) -> Any:
    """AdaBoost: the greatest edge of a stump or the constant on the rows' weights."""
    signs = np.where(y == 1, 1.0, -1.0)
    d = weight * np.exp(-signs * f)
    signed = d * signs / d.sum()
    edges = [abs(signed[above].sum() - signed[~above].sum()) for *_, above in cuts_of(X)]
    return max([abs(signed.sum()), *edges])


def youden(X: Any, y: Any, weight: Any, f: Any) -> Any:
    """The others: the greatest |P - N| of a stump on the classes' weights."""
    v = weight * np.exp(np.where(y == 1, -f, f))
    v /= np.where(y == 1, v[y == 1].sum(), v[y == 0].sum())
    return max(
        (abs(v[above & (y == 1)].sum() - v[above & (y == 0)].sum()) for *_, above in cuts_of(X)),
        default=0.0,
    )


RULES = {
    AdaBoost: (edge_of_rows, lambda row: row["d_plus"] - row["d_minus"]),
    SmoothMarginRank: (youden, lambda row: row["d_plus"] - row["d_minus"]),
    AUCBoost: (youden, None),  # its rounds tell the balanced error, not the cut's own two
}


@pytest.mark.parametrize("algorithm", RULES)
@pytest.mark.usefixtures("histograms")
@given(table=small_tables())
@settings(
    max_examples=1000 if LONG_FORM else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it holds for all examples
)
def test_every_round_is_the_best(
    algorithm: type[Any], table: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    X, y, weight = table
    ranker = algorithm(n_rounds=6).fit(X, y, weight)
    best_of, edge_of = RULES[algorithm]
    before = list(stages(ranker, X))
    assert np.isfinite(before[-1]).all()
    for row, f in zip(ranker.rounds_, before, strict=False):
        if np.abs(f).max() > 15:
            return  # beyond the oracle's arithmetic: d- = 0 was cut off
        best = best_of(X, y, weight, f)
        if edge_of:
            assert edge_of(row) == pytest.approx(best, abs=1e-6)
        else:
            errors = [row_error(row, X, y, weight, f, label) for label in (1, 0)]
            assert 1 - sum(errors) == pytest.approx(best, abs=1e-6)
            coin = two_sided(*errors)
            assert row["d_minus"] == pytest.approx(coin.error, abs=1e-6)
    if ranker.stop_reason_ == "no_edge":
        assert best_of(X, y, weight, before[-1]) < 1e-6


def row_error(
    row: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, f: np.ndarray, label: int
) -> float:
    """The share of a class's weight on the wrong side of a round's cut."""
    x = X[:, row["feature"]]
    above = np.where(np.isnan(x), row["missing_above"], x > row["threshold"])
    high = above == (row["sign"] > 0)
    v = weight * np.exp(np.where(y == 1, -f, f))
    wrong = (y == label) & (high != (label == 1))
    return v[wrong].sum() / v[y == label].sum()


@pytest.mark.usefixtures("histograms")
@given(table=small_tables())
@settings(
    max_examples=1000 if LONG_FORM else 20,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # it holds for all examples
)
def test_every_smooth_step_is_eq_12_once_it_applies(
    table: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, weight = table
    ranker = SmoothMarginRank(n_rounds=8).fit(X, y, weight)
    g = np.concatenate([[-1.0], ranker.smooth_margin_])
    for row, before in zip(ranker.rounds_, g, strict=False):
        if before > 0 and row["d_minus"] + (1 - row["d_plus"]) > 1e-9:
            step = smooth_step(before, row["d_plus"], row["d_minus"])
            assert row["alpha"] == pytest.approx(step, abs=1e-9)
    positive = ranker.smooth_margin_[ranker.smooth_margin_ > 0]
    assert (np.diff(positive) >= -1e-12).all()
    assert (ranker.smooth_margin_ <= ranker.margin_ + 1e-9).all()


@pytest.mark.parametrize("algorithm", [*RULES, AdaBoostMH, AdaBoostMR])
def test_weights_as_far_apart_as_may_be(algorithm: type[Any]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    weight = 10.0 ** rng.uniform(-100, 100, 60)
    target = y if algorithm.target == "binary" else np.column_stack([y, 1 - y, X[:, 1] > 0])
    ranker = algorithm(n_rounds=30).fit(X, target, weight)
    assert np.isfinite(ranker.decision_function(X)).all()
    assert not np.isnan(ranker.loss_).any()
    json.dumps(ranker.structure(), allow_nan=False)
