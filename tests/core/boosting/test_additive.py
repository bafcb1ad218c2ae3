"""Bagged additive models: against a plain computation, and what is stored, told and refused."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from core import Additive, load, save
from core.base.checkpoint import Checkpoints
from core.base.monotone import check_monotone
from core.base.training import TrainingData
from core.boosting.additive_rounds import LEVEL_SMOOTHING, Bags
from core.boosting.additive_shapes import CELLS
from core.errors import ArtifactError
from core.metrics import auc
from tests.raising import raises


def make_table(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with ties and gaps, words with gaps, and a constant; the first two columns matter together, too."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 4)).round(1), columns=list("abcd"))
    odds = table["a"] + 4.0 * (table["a"] > 0) * (table["b"] > 0) + rng.normal(size=n)
    table.loc[rng.random(n) < 0.1, "a"] = np.nan
    table["word"] = rng.choice(["x", "y", "z"], n)
    table.loc[rng.random(n) < 0.1, "word"] = None
    table["same"] = 1.0
    return table, (odds > 0.5).to_numpy()


def newton(g: float, h: float, smoothing: float) -> float:
    return g / (h + smoothing)


def test_a_round_is_a_short_newton_step_along_each_column_in_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By brute force over all thresholds: with a step for the missing, and one for each word."""
    monkeypatch.setattr(
        "core.boosting.additive_rounds.leave_out", lambda data, _: np.zeros(len(data.X), bool)
    )
    table, y = make_table(60)
    weight = np.random.default_rng(1).uniform(1.0, 3.0, 60)
    columns = table[["word", "same", "a"]].assign(two=(table["b"] > 0) * 1.0)
    rate, smoothing, least = 0.1, 0.7, 3.0
    ranker = Additive(
        n_bags=1, max_rounds=1, learning_rate=rate, smoothing=smoothing, min_samples_leaf=least
    )
    bags = []
    collect = Bags.collect
    monkeypatch.setattr(Bags, "collect", lambda own: (bags.append(own), collect(own))[1])
    ranker.fit(columns, y, weight)

    p0 = weight[y].sum() / weight.sum()
    f = np.full(60, math.log(p0 / (1.0 - p0)))
    smoothing *= p0 * (1.0 - p0)
    own = bags[0]
    for j in own.columns.order.tolist():
        name = columns.columns[j]
        p = 1.0 / (1.0 + np.exp(-f))
        g, h = weight * (y - p), weight * p * (1.0 - p)
        step, codes = np.zeros(60), own.codes[j]
        if name == "word":
            for word in ("x", "y", "z", None):
                rows = (columns[name] == word) if word else columns[name].isna()
                step[rows] = newton(g[rows].sum(), h[rows].sum(), LEVEL_SMOOTHING * smoothing)
        elif name != "same":
            known = columns[name].notna().to_numpy()
            if (~known).any():
                step[~known] = newton(g[~known].sum(), h[~known].sum(), smoothing)
            taken = own.columns.shapes[0, j] / rate
            cut = int(np.flatnonzero(np.diff(taken[: int(own.bins.n_bins[j])]))[0])
            gains = {}
            for c in range(int(own.bins.n_bins[j]) - 1):
                sides = known & (codes <= c), known & (codes > c)
                if min(weight[side].sum() for side in sides) >= least:
                    gains[c] = sum(g[s].sum() ** 2 / (h[s].sum() + smoothing) for s in sides)
            better = sum(gain > gains[cut] for gain in gains.values())
            assert better < 0.8 * len(gains)  # one of some that were drawn
            assert name != "two" or cut == max(gains, key=gains.__getitem__)
            for side in (known & (codes <= cut), known & (codes > cut)):
                step[side] = newton(g[side].sum(), h[side].sum(), smoothing)
        assert rate * step == pytest.approx(own.columns.shapes[0, j][codes], abs=1e-12), name
        f += rate * step
    assert ranker.decision_function(columns) == pytest.approx(f, abs=1e-12)


def test_the_mean_of_the_bags_is_the_sum_of_the_parts() -> None:
    table, y = make_table(400)
    ranker = Additive(n_bags=3, n_pairs=2, max_rounds=400, learning_rate=0.1)
    X = None
    bags: list[Any] = []
    collect = Bags.collect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Bags, "collect", lambda own: (bags.append(own), collect(own))[1])
        ranker.fit(table, y)
    own, X = bags[0], ranker.checked_rows(table)
    assert own.pairs is not None
    assert len(own.chosen) == 1  # chance explains all others
    mean = own.log_odds.mean() + np.zeros(len(y))
    for j, codes in enumerate(own.codes):
        mean += own.columns.best[:, j].mean(axis=0)[codes]
    for k, (one, other) in enumerate(own.chosen):
        cells = [axis.cells[own.codes[axis.column]] for axis in (one, other)]
        mean += own.pairs.best[:, k].mean(axis=0)[cells[0] * CELLS + cells[1]]
    scores = ranker.decision_function(table)
    assert scores == pytest.approx(mean, abs=1e-9)
    parts = ranker.contributions(table)
    assert ranker.offset_ + parts.sum(axis=1) == pytest.approx(scores, abs=1e-12)
    assert parts.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-9)
    assert (parts[:, 5] == 0.0).all()
    told = ranker.structure()
    assert {"features", "pairs", "offset"} <= told.keys()
    by_name = {shape["feature"]: shape for shape in told["features"]}
    assert len(by_name["a"]["deviations"]) == len(by_name["a"]["values"])
    assert max(by_name["a"]["deviations"]) > 0.0
    assert ["a", "b"] in [pair["features"] for pair in told["pairs"]]
    for pair in told["pairs"]:
        sizes = [len(axis.get("thresholds", axis.get("categories"))) for axis in pair["axes"]]
        assert np.shape(pair["values"]) == tuple(
            size + 2 if "thresholds" in axis else size + 1
            for size, axis in zip(sizes, pair["axes"], strict=True)
        )
    again = load(save(ranker))
    assert (again.score_rows(X) == ranker.score_rows(X)).all()


def test_a_fit_that_was_stopped_at_its_pairs_goes_on_to_the_same_bits() -> None:
    table, y = make_table(400)
    ranker = Additive(n_bags=2, max_rounds=300, learning_rate=0.3)
    whole = save(ranker.fit(table, y))
    assert ranker.structure()["pairs"]
    checkpoints, taken = Checkpoints(), []

    def stop(step: int, of: int, info: Any) -> None:
        if step == ranker.n_rounds_ - 3:
            taken.append(checkpoints.take())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), checkpoints:
        clone(ranker).fit(table, y, callback=stop)
    steps: list[int] = []
    with Checkpoints(taken[0]) as resumed:
        again = clone(ranker).fit(table, y, callback=lambda step, *_: steps.append(step))
    assert resumed.resumed
    assert len(steps) == 3
    assert save(again) == whole


def test_what_columns_cannot_say_a_pair_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = (X[:, 1] * X[:, 3] + 0.5 * rng.normal(size=1500)) > 0
    few = {"n_bags": 2, "max_rounds": 300, "learning_rate": 0.1}
    alone, together = (
        Additive(n_pairs=n, **few).fit(X[:1000], y[:1000]).decision_function(X[1000:])
        for n in (0, 1)
    )
    assert auc(y[1000:], alone) < 0.6 < 0.85 < auc(y[1000:], together)


def test_few_positives_and_groups() -> None:
    table, _ = make_table(90)
    table.loc[::4, "same"] = np.nan  # one value and gaps
    for n_positives in (1, 5):
        y = np.arange(90) < n_positives
        ranker = Additive(n_bags=2, max_rounds=30).fit(table, y)
        assert np.isfinite(ranker.decision_function(table)).all()
        assert "same" in [shape["feature"] for shape in ranker.structure()["features"]]
    assert np.isnan(
        Additive(n_bags=1, max_rounds=3).fit(table, np.arange(90) < 1).validation_loss_
    ).all()
    group = np.arange(90) // 9
    bags = Bags(
        Additive(n_bags=4).fit(table, y),
        TrainingData(
            np.zeros((90, 6)),
            np.arange(90) % 2 == 0,
            np.ones(90),
            ranker._n_categories(),
            group.astype(np.uint64),
        ),
    )
    for held in bags.held:
        assert 0 < held.sum() < 45
        assert len(set(group[held]) & set(group[~held])) == 0


def test_a_constrained_column_is_in_no_pair_and_a_free_one_is_walked_with_its_pairs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y = (X[:, 0] + 2.0 * X[:, 1] * (X[:, 0] + X[:, 2] > 0) + 0.5 * rng.normal(size=800)) > 0.5
    few: dict[str, Any] = {"n_bags": 2, "n_pairs": 3, "max_rounds": 400, "learning_rate": 0.5}
    ranker = Additive(monotone={0: "increasing"}, **few).fit(X, y)
    assert [pair["features"] for pair in ranker.structure()["pairs"]] == [["x1", "x2"]]
    assert check_monotone(ranker).verdict == "proven"
    free = Additive(**few).fit(X, y)
    found = check_monotone(free, {1: "decreasing"})
    assert found.verdict == "violated"
    low, high = np.array(found.violation["rows"], dtype=float)
    assert free.decision_function([low])[0] < free.decision_function([high])[0]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("shape_values", lambda v: np.full_like(v, np.nan)),
        ("shape_deviations", lambda v: -1.0 - v),
        ("thresholds", lambda v: v[::-1].copy()),
        ("features", lambda v: v[::-1].copy()),
        ("features", lambda v: v + 99),
        ("axis_cells", lambda v: v + CELLS),
        ("pairs", lambda v: v + 99),
        ("pairs", lambda v: v[:, ::-1].copy()),
        ("tables", lambda v: v[:, 1:].copy()),
    ],
)
def test_a_hostile_artifact_is_refused(name: str, change: Any) -> None:
    table, y = make_table(400)
    ranker = Additive(n_bags=1, n_pairs=2, max_rounds=200, learning_rate=0.5).fit(table, y)
    arrays, meta = ranker.get_state()
    assert len(arrays["pairs"])
    changed = {**arrays, name: change(arrays[name])}
    with raises(ArtifactError, name):
        Additive.from_state(ranker.get_parameters(), changed, meta)
    changed = arrays | {"n_thresholds": arrays["n_thresholds"] + 1}
    with raises(ArtifactError, "thresholds", arrays["thresholds"].shape):
        Additive.from_state(ranker.get_parameters(), changed, meta)


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("shift", [40, 100])
def test_scores_stay_within_the_bounds_of_the_odds(shift: int, constrained: bool) -> None:
    """The stored functions are those that were learnt: odds are bounded by shorter steps, not beside the functions."""
    rng = np.random.default_rng(0)
    n = 200
    X = np.column_stack([np.arange(float(n)), rng.normal(size=(n, 6)).round(1)])
    y = X[:, 0] >= n // 2
    weight = np.where(y, 10.0**shift, 10.0**-shift)
    ranker = Additive(
        n_bags=2,
        smoothing=1e-3,
        learning_rate=1.0,
        min_samples_leaf=0.0,
        monotone={0: "increasing"} if constrained else None,
    ).fit(X, y, weight, groups=np.arange(n) % 2)
    scores = ranker.decision_function(X)
    assert np.abs(scores).max() <= 100 * math.log(10) * (1 + 1e-9)
    assert np.abs(scores).max() > 200.0  # they reach the bound
    if constrained:
        assert check_monotone(ranker).verdict == "proven"
