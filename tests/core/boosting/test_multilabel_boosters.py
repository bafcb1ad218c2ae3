"""AdaBoost.MH and AdaBoost.MR against their definitions over (row, label) pairs."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from core import AdaBoost, AdaBoostMH, AdaBoostMR, CoordinateRankBoost, load, save
from core.errors import InvalidData
from core.metrics import auc
from tests.core.oracles import cuts_of
from tests.core.threads import on_one_thread_and_on_all
from tests.raising import raises
from tests.sentences import Sentences

BOTH = pytest.mark.parametrize("algorithm", [AdaBoostMH, AdaBoostMR])


def table(
    seed: int = 0, n: int = 120, n_labels: int = 3, missing: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    signal = X @ np.random.default_rng(9).normal(size=(4, n_labels))
    y = (signal + rng.normal(size=(n, n_labels)) > np.arange(n_labels) / 2).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def every_edge(X: np.ndarray, signed: np.ndarray) -> Iterator[float]:
    """The edge of the best votes on each cut, and of the best votes without a cut."""
    yield np.abs(signed.sum(axis=0)).sum()
    for *_, above in cuts_of(X):
        yield np.abs(signed[above].sum(axis=0) - signed[~above].sum(axis=0)).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_round_of_mh_is_adaboosts_on_row_and_label(seed: int) -> None:
    X, y = table(seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    ranker = AdaBoostMH(n_rounds=12).fit(X, y, weight)
    signs = np.where(y == 1, 1.0, -1.0)
    before = np.zeros(y.shape)
    for row, f in zip(ranker.rounds_, ranker.staged_decision_function(X), strict=True):
        d = weight[:, None] * np.exp(-signs * before)
        d /= d.sum()
        edge = row["d_plus"] - row["d_minus"]
        assert edge == pytest.approx(max(every_edge(X, d * signs)), rel=1e-9)
        assert row["alpha"] == pytest.approx(0.5 * math.log((1 + edge) / (1 - edge)))
        h = (f - before) / row["alpha"]
        assert np.abs(h) == pytest.approx(1.0, abs=1e-9)
        assert (d * signs * h).sum() == pytest.approx(edge, abs=1e-9)
        before = f
    f = ranker.decision_function(X)
    assert ranker.loss_[-1] == pytest.approx((weight[:, None] * np.exp(-signs * f)).sum())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_round_of_mr_is_coordinate_rankboosts_on_row_and_label(seed: int) -> None:
    X, y = table(seed, n=40)
    ranker = AdaBoostMR(n_rounds=10, smoothing=0.0).fit(X, y)
    has = y == 1
    before = np.zeros(y.shape)
    arrays, _ = ranker.get_state()
    intercepts = 0.5 * (arrays["log_f_plus"] - arrays["log_f_minus"])
    stages = ranker.staged_decision_function(X)
    for row, scores, intercept in zip(ranker.rounds_, stages, intercepts[1:], strict=True):
        f = scores - intercept
        h = (f - before) / row["alpha"]
        assert np.abs(h * (h - 1)).max() < 1e-9
        pairs = np.exp(before[~has][None, :] - before[has][:, None])
        d = pairs / pairs.sum()
        order = h[has][:, None] - h[~has][None, :]
        assert row["d_plus"] == pytest.approx(d[order > 0.5].sum(), abs=1e-9)
        assert row["d_minus"] == pytest.approx(d[order < -0.5].sum(), abs=1e-9)
        v = np.where(has, np.exp(-before), np.exp(before))
        v = v / np.where(has, v[has].sum(), v[~has].sum())
        best = max(every_edge(X, np.where(has, v, -v) / 2))
        assert row["d_plus"] - row["d_minus"] == pytest.approx(best, rel=1e-9)
        before = f
    scores = ranker.decision_function(X)
    explicit = np.exp(scores[~has][None, :] - scores[has][:, None]).sum()
    assert ranker.loss_[-1] == pytest.approx(explicit, rel=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_round_of_the_example_form_is_schapire_and_singers(seed: int) -> None:
    X, y = table(seed, n=30)
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    ranker = AdaBoostMR(n_rounds=10, pairs="example", smoothing=0.0).fit(X, y, weight)
    pairs = [
        (i, had, other, weight[i] / (y[i].sum() * (1 - y[i]).sum()))
        for i in range(len(y))
        for had in np.flatnonzero(y[i])
        for other in np.flatnonzero(1 - y[i])
    ]
    row, had, other = np.array([pair[:3] for pair in pairs]).T
    start = np.array([pair[3] for pair in pairs])
    start /= start.sum()
    f = before = np.zeros(y.shape)
    losses = []
    for taken, scores in zip(ranker.rounds_, ranker.staged_decision_function(X), strict=True):
        d = start * np.exp(before[row, other] - before[row, had])
        d /= d.sum()
        signed = np.zeros(y.shape)
        np.add.at(signed, (row, had), d / 2)
        np.add.at(signed, (row, other), -d / 2)
        assert taken["d_plus"] - taken["d_minus"] == pytest.approx(
            max(every_edge(X, signed)), rel=1e-9
        )
        h = (scores - before) / taken["alpha"]
        h -= h.min()  # the intercept moves between rounds
        order = h[row, had] - h[row, other]
        assert taken["d_plus"] == pytest.approx(d[order > 0.5].sum(), abs=1e-9)
        assert taken["d_minus"] == pytest.approx(d[order < -0.5].sum(), abs=1e-9)
        before = scores
        losses.append((start * np.exp(scores[row, other] - scores[row, had])).sum())
    assert ranker.loss_ == pytest.approx(losses, rel=1e-9)
    assert (np.diff(losses) < 0).all()
    f = ranker.decision_function(X)
    plus, minus = (weight[:, None] * np.exp(-f))[y == 1], (weight[:, None] * np.exp(f))[y == 0]
    assert plus.sum() == pytest.approx(minus.sum(), rel=1e-9)
    again = load(save(ranker))
    assert (again.decision_function(X) == f).all()


def test_rows_without_a_pair_count_for_nothing_in_the_example_form(sentences: Sentences) -> None:
    X, y = table(0)
    paired = (y.sum(axis=1) % 3) > 0
    assert not paired.all()
    whole = AdaBoostMR(n_rounds=5, pairs="example").fit(X, y)
    alone = AdaBoostMR(n_rounds=5, pairs="example").fit(X[paired], y[paired])
    assert whole.loss_ == pytest.approx(alone.loss_, rel=1e-9)
    with sentences.raises(InvalidData):
        AdaBoostMR(pairs="example").fit(X, np.repeat(y[:, :1], 3, axis=1))


def test_the_two_meet() -> None:
    # Section 5.1: on data without a perfect ranking both end in the same losses and AUC.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 2)).astype(float)
    y = (rng.random((300, 2)) < 0.2 + 0.15 * X).astype(int)
    mh = AdaBoostMH(n_rounds=3000).fit(X, y)
    mr = AdaBoostMR(n_rounds=3000, smoothing=0.0).fit(X, y)
    assert mh.f_tilde_[-1] == pytest.approx(mr.f_tilde_[-1], rel=1e-6)
    assert mh.f_[-1] == pytest.approx(mr.f_[-1], rel=1e-6)
    assert abs(mh.f_skew_[-1]) < 1e-3 * mh.f_[-1]
    areas = [auc(y.ravel(), np.round(r.decision_function(X), 6).ravel()) for r in (mh, mr)]
    assert areas[0] == pytest.approx(areas[1], abs=1e-12)


def test_one_label_is_the_binary_algorithm() -> None:
    X, y = table(3, n_labels=1)
    mh = AdaBoostMH(n_rounds=20).fit(X, y).decision_function(X)
    assert mh[:, 0] == pytest.approx(
        AdaBoost(n_rounds=20).fit(X, y[:, 0]).decision_function(X), abs=1e-9
    )
    mr = AdaBoostMR(n_rounds=20).fit(X, y).decision_function(X)
    assert mr[:, 0] == pytest.approx(
        CoordinateRankBoost(n_rounds=20).fit(X, y[:, 0]).decision_function(X), abs=1e-9
    )


@BOTH
def test_it_stops_early_by_the_validation_part(algorithm: type[Any]) -> None:
    X, y = table(n=400)
    seen = []
    ranker = algorithm(n_rounds=300, early_stopping_rounds=10, random_state=1).fit(
        X, y, callback=lambda *report: seen.append(report)
    )
    assert ranker.stop_reason_ == "validation"
    assert len(seen) == len(ranker.rounds_) + 10
    assert {"loss", "training_auc", "validation_auc"} <= seen[0][2].keys()


@BOTH
def test_the_training_auc_is_that_of_all_rows_and_labels(algorithm: type[Any]) -> None:
    X, y = table(n=200, missing=0.1)
    told = []
    ranker = algorithm(n_rounds=12).fit(X, y, callback=lambda step, of, info: told.append(info))
    for f, info in list(zip(ranker.staged_decision_function(X), told, strict=True))[::-3]:
        assert info["training_auc"] == pytest.approx(auc(y.ravel(), f.ravel()), abs=1e-3)


def test_no_pair_underflows() -> None:
    X = np.arange(40.0)[:, None]
    y = np.c_[X[:, 0] > 20, X[:, 0] <= 11].astype(int)
    for ranker in (AdaBoostMH(n_rounds=2000), AdaBoostMR(n_rounds=2000)):
        scores = ranker.fit(X, y).decision_function(X)
        assert np.isfinite(scores).all()
        assert scores[y == 1].min() > scores[y == 0].max()


BAD_LABELS: dict[str, tuple[Callable[..., Any], tuple[object, ...]]] = {
    "one column only": (lambda y: y[:, 0], ((120,),)),
    "no column": (lambda y: y[:, :0], ((120, 0),)),
    "too many": (lambda y: np.zeros((120, 10_001)), (10_001,)),
    "text": (lambda y: y.astype(str).astype(object) + "x", ("'1x'",)),
    "two": (lambda y: np.where(np.arange(len(y))[:, None] == 7, 2, y), (2.0, 7)),
    "missing": (lambda y: np.where(y == 1, np.nan, 0.0), ("nan",)),
    "too few rows": (lambda y: y[:-1], (120, 119)),
    "all ones": (np.ones_like, (1,)),
    "all zeros": (np.zeros_like, (0,)),
    "none": (lambda y: None, (None,)),
}


@BOTH
@pytest.mark.parametrize("case", BAD_LABELS)
def test_bad_labels_are_refused_by_name(algorithm: type[Any], case: str) -> None:
    X, y = table()
    make_bad, named = BAD_LABELS[case]
    with raises(InvalidData, "y", *named):
        algorithm().fit(X, make_bad(y))


@BOTH
def test_weights_that_leave_one_kind_are_refused(
    algorithm: type[Any], sentences: Sentences
) -> None:
    X, y = table(n_labels=1)
    with sentences.raises(InvalidData):
        algorithm().fit(X, y, 1 - y[:, 0])


@BOTH
def test_one_thread_or_two_same_bits(algorithm: type[Any]) -> None:
    X, y = table(n=40_000)  # large enough for threads to be used
    one, all_of_them = on_one_thread_and_on_all(lambda: save(algorithm(n_rounds=5).fit(X, y)))
    assert one == all_of_them
