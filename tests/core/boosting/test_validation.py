"""Progress, early stopping and staged scores, for every booster of two classes."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import RankBoost
from core.base.checkpoint import Checkpoints
from core.base.parameters import list_parameters
from core.base.ranker import StopFit
from core.base.training import TrainingData
from core.boosting import loop
from core.errors import InvalidData, InvalidParameter
from core.metrics import auc
from core.registry import ALGORITHMS
from tests.raising import raises
from tests.sentences import Sentences

BOOSTERS = {
    name: algorithm
    for name, algorithm in ALGORITHMS.items()
    if algorithm.target == "binary"
    and name != "lambdamart"  # it judges by NDCG
    and "early_stopping_rounds" in {parameter.name for parameter in list_parameters(algorithm)}
}
EACH = pytest.mark.parametrize("algorithm", BOOSTERS.values(), ids=BOOSTERS)


def rows_of(X: np.ndarray, y: np.ndarray) -> TrainingData:
    return TrainingData(X, y == 1, np.ones(len(y)), np.zeros(X.shape[1], dtype=np.int64))


def noisy_table(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + X[:, 1] + 2 * rng.normal(size=n) > 1).astype(int)
    return X, y


@EACH
def test_the_best_rounds_are_kept(algorithm: type[Any]) -> None:
    X, y = noisy_table()
    seen = []
    ranker = algorithm(n_rounds=200, early_stopping_rounds=8, random_state=3).fit(
        X, y, callback=lambda *report: seen.append(report)
    )
    assert ranker.stop_reason_ == "validation"
    areas = ranker.validation_auc_
    n_kept = len(ranker.rounds_)
    assert [info["validation_auc"] for *_, info in seen] == areas.tolist()
    assert len(areas) == n_kept + 8
    assert n_kept == int(np.argmax(areas > areas.max() - 1e-9)) + 1
    _, held = rows_of(X, y).split_off(0.2, 3)
    assert auc(held.positive, ranker.decision_function(held.X)) == pytest.approx(
        areas[n_kept - 1], abs=1e-9
    )


@EACH
def test_what_is_kept_is_a_fit_of_so_many_rounds(algorithm: type[Any]) -> None:
    X, y = noisy_table()
    stopped = algorithm(n_rounds=200, early_stopping_rounds=5).fit(X, y)
    training, _ = rows_of(X, y).split_off(0.2, 0)
    plain = algorithm(n_rounds=len(stopped.rounds_)).fit(training.X, training.positive)
    assert (stopped.decision_function(X) == plain.decision_function(X)).all()
    assert stopped.loss_.tolist() == plain.loss_.tolist()


@EACH
@pytest.mark.parametrize("when", ["at once", "later", "backwards"])
def test_progress_tells_the_training_auc_whenever_it_is_read(
    algorithm: type[Any], when: str
) -> None:
    X, y = noisy_table()
    told = []

    def callback(step: Any, of: Any, info: Any) -> None:
        told.append(dict(info) if when == "at once" else info)

    ranker = algorithm(n_rounds=40).fit(X, y, callback=callback)
    expected = [auc(y, scores) for scores in ranker.staged_decision_function(X)]
    for info, area in list(zip(told, expected, strict=True))[:: -1 if when == "backwards" else 1]:
        assert info["training_auc"] == pytest.approx(area, abs=1e-3)
        assert info.keys() == {"loss", "training_auc"}
    assert [info["loss"] for info in told] == ranker.loss_.tolist()


def test_the_rounds_before_a_checkpoint_count() -> None:
    X, y = noisy_table()
    first = Checkpoints()
    told: dict[Any, Any] = {}

    def stop(step: Any, of: Any, info: Any) -> None:
        if step == 12:
            told["kept"] = first.take()
            raise InterruptedError

    with first, pytest.raises(InterruptedError):
        RankBoost(n_rounds=20).fit(X, y, callback=stop)
    with Checkpoints(told["kept"]) as second:
        ranker = RankBoost(n_rounds=20).fit(
            X, y, callback=lambda step, of, i: told.update({step: i})
        )
    assert second.resumed
    stages = list(ranker.staged_decision_function(X))
    for step in (13, 20):
        assert told[step]["training_auc"] == pytest.approx(auc(y, stages[step - 1]), abs=1e-3)


@EACH
def test_a_stopped_fit_keeps_its_best_rounds_and_goes_on_from_a_checkpoint(
    algorithm: type[Any],
    sentences: Sentences,
) -> None:
    X, y = noisy_table()
    booster = algorithm(n_rounds=30, early_stopping_rounds=30)
    whole, checkpoints, kept = algorithm(**booster.get_params()).fit(X, y), Checkpoints(), []

    def stop(step: Any, of: Any, info: Any) -> None:
        if step == 12:
            kept.append(checkpoints.take())
            raise StopFit

    with checkpoints, sentences.warns(UserWarning):
        booster.fit(X, y, callback=stop)
    assert (booster.stop_reason_, len(booster.validation_auc_)) == ("stopped", 12)
    assert booster.validation_auc_.tolist() == whole.validation_auc_[:12].tolist()
    assert len(booster.rounds_) == int(np.argmax(booster.validation_auc_)) + 1
    with Checkpoints(kept[0]) as second:
        again = algorithm(**booster.get_params()).fit(X, y)
    assert second.resumed
    assert again.get_state()[1] == whole.get_state()[1]
    assert (again.decision_function(X) == whole.decision_function(X)).all()


def test_what_is_told_is_a_mapping_that_becomes_plain_figures() -> None:
    X, y = noisy_table()
    told = []
    RankBoost(n_rounds=3, weak_ranker="tree").fit(
        X, y, callback=lambda step, of, info: told.append(info)
    )
    for info in told:
        assert "training_auc" in info
        assert "validation_auc" not in info
        assert len(info) == len(list(info)) == 2
        plain = pickle.loads(pickle.dumps(info))
        assert type(plain) is dict
        assert plain == info == dict(info) == json.loads(json.dumps(dict(info)))
        assert repr(info) == repr(plain)
        with raises(KeyError, "gain"):
            info["gain"]


def test_a_large_validation_part_is_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "VALIDATED_EVERY_ROUND", 30)
    X, y = noisy_table()
    ranker = BOOSTERS["rankboost"](n_rounds=100, early_stopping_rounds=6).fit(X, y)
    computed = np.flatnonzero(~np.isnan(ranker.validation_auc_)) + 1
    assert (computed % 3 == 0).all()
    assert len(ranker.rounds_) % 3 == 0


def noise(seed: int = 0, n: int = 600) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 10)), rng.integers(0, 2, n)


@EACH
@pytest.mark.parametrize("told_by", ["copies", "groups"])
def test_what_was_learnt_from_does_not_judge(algorithm: Any, told_by: str) -> None:
    """Noise, four times over: with copies on both sides, every round would seem to gain."""
    X, y = noise()
    row = np.tile(np.arange(len(X)), 4)
    rows = X[row]
    groups = None
    if told_by == "groups":
        rows, groups = rows + 1e-3 * np.random.default_rng(1).normal(size=rows.shape), row
    booster = algorithm(n_rounds=60, early_stopping_rounds=15, random_state=3)
    booster.fit(rows, y[row], groups=groups)
    assert booster.validation_auc_.max() < 0.62
    assert len(booster.rounds_) < 40
    if told_by == "groups":
        booster.fit(rows, y[row])
        assert booster.validation_auc_.max() > 0.62


def test_groups_are_checked_and_say_nothing_where_nothing_is_held_out(sentences: Sentences) -> None:
    X, y = noisy_table()
    plain = RankBoost(n_rounds=5).fit(X, y)
    grouped = RankBoost(n_rounds=5).fit(X, y, groups=np.arange(len(y)) // 3)
    assert (plain.decision_function(X) == grouped.decision_function(X)).all()
    for wrong in (
        np.zeros(3),
        np.full(len(y), np.nan),
        np.zeros((len(y), 1)),
        [None] * len(y),
    ):
        with raises(InvalidData, "groups"):
            RankBoost(n_rounds=5).fit(X, y, groups=wrong)
    booster = RankBoost(n_rounds=5, early_stopping_rounds=2)
    with sentences.raises(InvalidData):
        booster.fit(X, y, groups=["one"] * len(y))
    weight = (np.arange(len(y)) % 2).astype(float)  # rows of weight 0 are in no group
    groups = np.where(weight > 0, np.arange(len(y)) // 4, 0)
    booster.fit(X, y, weight, groups=groups)
    present = weight > 0
    again = RankBoost(n_rounds=5, early_stopping_rounds=2)
    again.fit(X[present], y[present], groups=groups[present])
    assert (booster.decision_function(X) == again.decision_function(X)).all()


def test_copies_that_are_all_of_a_class_are_parted_with_a_warning(sentences: Sentences) -> None:
    X, y = noisy_table()
    X[y == 1] = X[y == 1][0]
    with sentences.warns(UserWarning):
        RankBoost(n_rounds=5, early_stopping_rounds=2).fit(X, y)


def test_a_class_too_small_to_hold_out_is_refused(sentences: Sentences) -> None:
    X, y = noisy_table()
    one = np.concatenate([[0], np.ones(len(y) - 1, int)])
    with sentences.raises(InvalidData):
        BOOSTERS["rankboost"](early_stopping_rounds=5).fit(X, one)


@pytest.mark.parametrize("scale", [1e-96, 1e99])
def test_the_scale_of_weights_does_not_matter(scale: float) -> None:
    X, y = noisy_table()
    weight = np.random.default_rng(1).random(len(y))
    one, other = (
        RankBoost(n_rounds=20, early_stopping_rounds=5).fit(X, y, sample_weight=weight * factor)
        for factor in (1.0, scale)
    )
    assert other.validation_auc_ == pytest.approx(one.validation_auc_, abs=1e-9)
    assert other.decision_function(X) == pytest.approx(one.decision_function(X))


def auc_of(y: np.ndarray) -> Callable[..., Any]:
    return lambda scores: auc(y, scores)


@EACH
def test_a_watched_fit_keeps_the_best_rounds_on_the_rows_given(algorithm: type[Any]) -> None:
    X, y = noisy_table()
    X_valid, y_valid = noisy_table(seed=1)
    told = []
    ranker = algorithm(n_rounds=25)
    figures = ranker.fit_watched(
        X, y, X_valid=X_valid, metric=auc_of(y_valid), callback=lambda *step: told.append(step)
    )
    plain = algorithm(n_rounds=25).fit(X, y)
    stages = [auc(y_valid, scores) for scores in plain.staged_decision_function(X_valid)]
    assert figures == pytest.approx(stages, abs=1e-9)
    assert [info["metric"] for *_, info in told] == figures.tolist()
    best = int(np.argmax(figures > figures.max() - 1e-9)) + 1
    assert len(ranker.rounds_) == best
    fewer = algorithm(n_rounds=best).fit(X, y)
    assert (ranker.decision_function(X) == fewer.decision_function(X)).all()
    assert ranker.validation_auc_.size == 0
    again = algorithm.from_state(ranker.get_parameters(), *ranker.get_state())
    assert (again.decision_function(X) == ranker.decision_function(X)).all()


def test_a_watched_fit_ends_when_its_patience_does_and_is_evaluated_now_and_then() -> None:
    X, y = noisy_table()
    X_valid, y_valid = noisy_table(seed=1)
    fit = {"X_valid": X_valid, "metric": auc_of(y_valid)}
    each = RankBoost(n_rounds=200).fit_watched(X, y, **fit, patience=8)
    ranker = RankBoost(n_rounds=200)
    some = ranker.fit_watched(X, y, **fit, patience=8, every=5)
    known = np.flatnonzero(~np.isnan(some))
    assert known.tolist() == list(range(4, len(some), 5))
    assert ranker.stop_reason_ == "validation"
    n = min(len(each), len(some))
    kept = known[known < n]
    assert some[kept].tolist() == each[kept].tolist()
    assert (len(some) - 8) // 5 * 5 <= len(ranker.rounds_) <= len(some) - 8
    last = RankBoost(n_rounds=7).fit_watched(X, y, **fit, every=5)
    assert np.isnan(last).tolist() == [True] * 4 + [False, True, False]


def test_a_metric_cannot_change_the_scores_and_a_stop_keeps_the_best_so_far(
    sentences: Sentences,
) -> None:
    X, y = noisy_table()

    def metric(scores: Any) -> Any:
        figure = auc(y, scores)
        scores[:] = 0.0
        return figure

    def stop(step: Any, of: Any, info: Any) -> None:
        if step == 6:
            raise StopFit

    ranker = RankBoost(n_rounds=50)
    with sentences.warns(UserWarning):
        figures = ranker.fit_watched(X, y, X_valid=X, metric=metric, callback=stop)
    expected = [auc(y, s) for s in RankBoost(n_rounds=6).fit(X, y).staged_decision_function(X)]
    assert figures == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "3"])
@pytest.mark.parametrize("name", ["patience", "every"])
def test_bad_steps_of_a_watched_fit_are_refused(name: str, bad: Any, sentences: Sentences) -> None:
    X, y = noisy_table()
    with sentences.raises(InvalidParameter):
        RankBoost().fit_watched(X, y, X_valid=X, metric=auc_of(y), **{name: bad})


def test_rows_to_be_watched_that_do_not_fit_are_refused() -> None:
    X, y = noisy_table()
    with raises(InvalidData, 4, 5):
        RankBoost().fit_watched(X, y, X_valid=X[:, 1:], metric=auc_of(y))
