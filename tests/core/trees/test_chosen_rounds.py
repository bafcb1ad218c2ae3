"""Trees without a number of rounds: the table says how many."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import LogitBoost, RankBoost, load, save
from core.base.checkpoint import Checkpoints
from core.base.ranker import StopFit
from core.boosting import booster
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.trees import grower
from tests.long_form import long_form
from tests.raising import raises
from tests.sentences import Sentences

BOOSTERS = {
    "pairs": lambda **options: RankBoost(weak_ranker="tree", **options),
    "logistic": LogitBoost,
}
boosters = pytest.mark.parametrize("make", BOOSTERS.values(), ids=BOOSTERS)


def make_table(n: int = 1200, d: int = 9, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) > 0.5


@boosters
@pytest.mark.parametrize("d", [3, 9])
def test_early_stopping_finds_the_rounds_and_a_fit_on_all_rows_takes_more(
    make: Callable[..., Any] | type[Any], d: int
) -> None:
    X, y = make_table(d=d)
    ranker = make(early_stopping_rounds=10).fit(X, y)
    chosen = {"learning_rate": 0.05, "max_features": 0.5 if d >= 8 else 1.0}
    first = make(n_rounds=2000, early_stopping_rounds=10, **chosen).fit(X, y)
    n_rounds = round(1.15 * len(first.rounds_))
    whole = make(n_rounds=n_rounds, **chosen).fit(X, y)
    assert len(ranker.rounds_) == n_rounds
    assert (ranker.decision_function(X) == whole.decision_function(X)).all()
    assert (ranker.stop_reason_, ranker.n_rounds) == ("validation", None)
    assert ranker.validation_auc_.tolist() == first.validation_auc_.tolist()
    again = load(save(ranker))
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    assert again.validation_auc_.tolist() == ranker.validation_auc_.tolist()


@boosters
@pytest.mark.parametrize(
    ("given", "larger"),
    [
        ({}, {"max_leaves": 124, "max_depth": 24}),
        ({"max_leaves": 7}, {"max_leaves": 7, "max_depth": 24}),
        ({"max_depth": 3}, {"max_leaves": 124, "max_depth": 3}),
        ({"max_leaves": 31, "max_depth": 12}, {"max_leaves": 31, "max_depth": 12}),
        ({"max_leaves": None, "max_depth": 3}, {"max_leaves": None, "max_depth": 3}),
    ],
)
def test_a_table_that_asks_for_many_rounds_gets_larger_trees_within_the_bounds_given(
    make: Callable[..., Any] | type[Any],
    given: dict[str, Any],
    larger: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(booster, "MAX_ROUNDS", 20)
    monkeypatch.setattr(booster, "FIRST_ROUNDS", 5)
    X, y = make_table()
    told = []
    ranker = make(**given).fit(X, y, callback=lambda *step: told.append(step[:2]))
    chosen = {"learning_rate": 0.05, "max_features": 0.5, **larger}
    first = make(n_rounds=20, early_stopping_rounds=50, **chosen).fit(X, y)
    n_rounds = min(round(1.15 * len(first.rounds_)), 20)
    whole = make(n_rounds=n_rounds, **chosen).fit(X, y)
    assert (ranker.decision_function(X) == whole.decision_function(X)).all()
    assert ranker.get_params() == make(**given).get_params()
    assert told == sorted(told)
    assert told[-1] == (40, 40)
    again = load(save(ranker))
    for one in (ranker, again, whole):
        found = {name: getattr(one, f"{name}_") for name in chosen}
        assert found == chosen
        assert one.n_rounds_ == n_rounds
        assert one.structure().items() >= chosen.items()


@pytest.mark.parametrize("given", [{}, {"n_rounds": 4}, {"weak_ranker": "stump"}])
def test_values_of_a_fit_that_chooses_nothing_are_the_defaults(given: dict[str, Any]) -> None:
    X, y = make_table(300)
    ranker = RankBoost(**{"weak_ranker": "tree", **given}).fit(X, y)
    assert ranker.n_rounds_ == len(ranker.rounds_)
    trees = ranker.weak_ranker == "tree"
    assert ranker.learning_rate_ == (0.1 if trees else 1.0)
    assert ranker.max_depth_ == (12 if trees else None)
    assert ranker.max_leaves_ == (31 if trees else None)
    assert ranker.max_features_ == (1.0 if trees else None)


def test_stored_values_that_no_fit_has_are_refused() -> None:
    X, y = make_table(300)
    ranker = LogitBoost().fit(X, y)
    arrays, meta = ranker.get_state()
    assert meta["chosen"]["max_leaves"] == 31
    bad: list[Any] = [
        {**meta["chosen"], **odd}
        for odd in (
            {"max_leaves": 1},
            {"max_leaves": "auto"},
            {"max_depth": 65},
            {"max_depth": None},
            {"learning_rate": 0.0},
            {"learning_rate": "0.1"},
            {"max_features": 1.5},
            {"more": 1},
        )
    ]
    for chosen in (*bad, {"max_leaves": 31}, {}, [], None):
        with pytest.raises(ArtifactError):
            LogitBoost.from_state(ranker.get_parameters(), arrays, {**meta, "chosen": chosen})


def test_values_that_an_artifact_of_version_0_3_0_lacks_are_not_known() -> None:
    X, y = make_table(300)
    ranker = LogitBoost().fit(X, y)
    arrays, meta = ranker.get_state()
    del meta["chosen"]
    old = LogitBoost.from_state(ranker.get_parameters(), arrays, meta)
    assert (old.decision_function(X) == ranker.decision_function(X)).all()
    assert (old.learning_rate_, old.max_depth_, old.max_leaves_) == (None, None, None)
    assert old.get_state()[1] == meta
    given = LogitBoost(n_rounds=3, max_leaves=5).fit(X, y)
    assert "chosen" not in given.get_state()[1]
    assert load(save(given)).max_leaves_ == 5


def test_few_rows_of_a_class_and_stumps_take_a_hundred_rounds() -> None:
    X, y = make_table()
    rare = np.zeros(len(y), dtype=bool)
    rare[np.flatnonzero(y)[:249]] = True
    for make in BOOSTERS.values():
        usual = make(n_rounds=100).fit(X, rare)
        assert (make().fit(X, rare).decision_function(X) == usual.decision_function(X)).all()
    assert len(RankBoost().fit(X, y).rounds_) == 100
    pairs = np.stack([np.flatnonzero(y)[:300], np.flatnonzero(~y)[:300]], axis=1)
    assert len(RankBoost().fit_pairs(X, pairs).rounds_) == 100


@boosters
@pytest.mark.parametrize("when", ["first", "second"])
def test_a_fit_that_is_stopped_keeps_what_was_validated(
    make: Callable[..., Any] | type[Any],
    when: str,
    monkeypatch: pytest.MonkeyPatch,
    sentences: Sentences,
) -> None:
    monkeypatch.setattr(booster, "MAX_ROUNDS", 40)
    monkeypatch.setattr(booster, "FIRST_ROUNDS", 40)
    X, y = make_table()
    n_rounds = 12

    def stop(step: Any, of: Any, info: Any) -> None:
        if step >= (n_rounds if when == "first" else 60):
            raise StopFit

    with sentences.warns(UserWarning):
        ranker = make(learning_rate=0.1).fit(X, y, callback=stop)
    assert ranker.stop_reason_ == "stopped"
    tried = ranker.validation_auc_
    assert len(tried) == (n_rounds if when == "first" else 40)
    kept = int(np.argmax(tried > tried.max() - 1e-9)) + 1
    first = make(n_rounds=len(tried), early_stopping_rounds=50, learning_rate=0.1, max_features=0.5)
    assert len(ranker.rounds_) == kept
    assert (ranker.decision_function(X) == first.fit(X, y).decision_function(X)).all()


@boosters
@pytest.mark.parametrize(
    ("at", "first_rounds"),
    [
        (15, 30),
        pytest.param(50, 30, marks=long_form),
        pytest.param(3, 5, marks=long_form),
        (15, 5),
        pytest.param(50, 5, marks=long_form),
    ],
)
def test_a_fit_goes_on_from_a_checkpoint_of_any_part(
    make: Callable[..., Any] | type[Any],
    at: int,
    first_rounds: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(booster, "MAX_ROUNDS", 30)
    monkeypatch.setattr(booster, "FIRST_ROUNDS", first_rounds)
    X, y = make_table()
    whole = make().fit(X, y)
    first, kept = Checkpoints(), []

    def stop(step: Any, of: Any, info: Any) -> None:
        if step >= at:
            kept.append(first.take())
            raise InterruptedError

    with first, pytest.raises(InterruptedError):
        make().fit(X, y, callback=stop)
    with Checkpoints(kept[0]) as second:
        ranker = make().fit(X, y)
    assert second.resumed
    assert (ranker.decision_function(X) == whole.decision_function(X)).all()


def test_rows_that_are_given_to_be_watched_take_the_place_of_those_held_out() -> None:
    X, y = make_table()
    X_valid, y_valid = make_table(seed=3)

    def metric(scores: Any) -> Any:
        return float(scores[y_valid].mean() - scores[~y_valid].mean() > 0.0)

    ranker = LogitBoost()
    metrics = ranker.fit_watched(X, y, X_valid=X_valid, metric=metric)
    assert metrics.tolist() == [1.0] * 51  # nothing is better than the first round
    assert (len(ranker.rounds_), ranker.n_rounds) == (1, None)
    one = LogitBoost(n_rounds=1, learning_rate=0.05, max_features=0.5).fit(X, y)
    assert (ranker.decision_function(X) == one.decision_function(X)).all()


@boosters
def test_trees_have_as_many_leaves_as_histograms_have_room_for(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """500 rounds are not to be lost because four times the leaves would not fit into memory."""
    monkeypatch.setattr(booster, "MAX_ROUNDS", 20)
    monkeypatch.setattr(booster, "FIRST_ROUNDS", 5)
    X, y = make_table()
    n_bytes = 8 * 256 * 16  # of a leaf: columns stand in groups of eight
    monkeypatch.setattr(grower, "MAX_BYTES", 12 * n_bytes)
    monkeypatch.setattr(booster, "DEFAULT_LEAVES", 8)
    ranker = make().fit(X, y)
    assert ranker.rounds_["n_leaves"].max() > 8
    assert ranker.rounds_["n_leaves"].max() <= ranker.max_leaves_ <= 13
    assert ranker.get_params() == make().get_params()
    with raises(InvalidParameter, 32):  # as it was asked for
        make(n_rounds=5, max_leaves=32).fit(X, y)
    monkeypatch.setattr(grower, "MAX_BYTES", n_bytes)
    with raises(InvalidParameter, 2):
        make().fit(X, y)


@boosters
def test_groups_that_cannot_be_parted_leave_the_usual_rounds(
    make: Any, sentences: Sentences
) -> None:
    X, y = make_table()
    with sentences.warns(UserWarning):
        ranker = make().fit(X, y, groups=np.zeros(len(y)))
    usual = make(n_rounds=100).fit(X, y)
    assert (ranker.decision_function(X) == usual.decision_function(X)).all()
    with sentences.raises(InvalidData):
        make(early_stopping_rounds=5).fit(X, y, groups=np.zeros(len(y)))
