"""The mean rank of several rankers: each on its own scale, one row at a time, kept as one artifact."""

import json
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.base import clone

from core import (
    AdaBoostMH,
    Logistic,
    LogitBoost,
    MartiRank,
    RankAverage,
    RankBoost,
    TreeRank,
    load,
    save,
)
from core.base.ranker import StopFit
from core.ensemble import MAX_KNOTS, Ranks, fit_ranks, fit_together
from core.errors import ArtifactError, InvalidData, InvalidParameter
from core.explain import partial_dependence, permutation_importance
from tests.core import test_contract
from tests.core.artifact_bytes import put_together, take_apart, training_table, with_categories
from tests.raising import raises
from tests.sentences import Sentences
from tests.waiting import patience

KEPT = (
    "ranks",
    "tables_and_arrays_alike",
    "columns_in_any_order",
    "rows_in_any_order",
    "a_class_without_weight_is_refused",
    "other_columns_than_at_fit_are_refused",
)  # of what every ranker keeps, what an ensemble could break


def members() -> list[Any]:
    return [
        RankBoost(n_rounds=4, weak_ranker="tree", max_leaves=4),
        Logistic(),
        TreeRank(max_depth=3),
    ]


@pytest.fixture(scope="module")
def fitted() -> RankAverage:
    X, y = training_table()
    return RankAverage(members=members(), weights=[2, 1, 1]).fit(with_categories(X), y)


def make_small() -> RankAverage:
    """The ensemble of the contract's tests, which make a ranker from nothing."""
    return RankAverage(members=[Logistic(), RankBoost(n_rounds=10)])


@pytest.mark.parametrize("rule", KEPT)
def test_contract_of_every_ranker(rule: str) -> None:
    getattr(test_contract, f"test_{rule}")(make_small)


def test_scores_are_weighted_mean_ranks_among_the_training_rows() -> None:
    X, y = training_table(200)
    ranker = RankAverage(members=[Logistic(), RankBoost(n_rounds=7)], weights=[3, 1]).fit(X, y)
    assert ranker.weights_.tolist() == [0.75, 0.25]
    ranks = [(rankdata(m.decision_function(X)) - 0.5) / 200 for m in ranker.members_]
    expected = 0.75 * ranks[0] + 0.25 * ranks[1]
    scores = ranker.decision_function(X)
    assert scores - ranker.intercept_ == pytest.approx(expected, abs=1e-12)
    alone = Logistic().fit(X, y).decision_function(X)
    assert ranker.members_[0].decision_function(X) == pytest.approx(alone, abs=1e-9)
    # a row's score does not hang on the rows that are scored with it
    assert [ranker.decision_function(row[None])[0] for row in X[:9]] == scores[:9].tolist()
    above = ranker.predict(X) == 1
    assert (above == (scores > 0)).all()
    rise = (above & (y == 1)).sum() / (y == 1).sum() - (above & (y == 0)).sum() / (y == 0).sum()
    cuts = [
        (scores[y == 1] > c).mean() - (scores[y == 0] > c).mean()
        for c in [*scores, scores.min() - 1]
    ]
    assert rise == pytest.approx(max(cuts))


def test_ranks_rise_everywhere_with_many_knots_and_beyond_them() -> None:
    rng = np.random.default_rng(0)
    scores, positive = rng.normal(size=20_000), rng.random(20_000) < 0.002
    weight = rng.uniform(0.5, 2.0, 20_000)
    scores[positive] += 6
    ranks = fit_ranks(scores, positive, weight)
    assert len(ranks.scores) <= MAX_KNOTS + 2
    order = np.argsort(scores)
    exact = np.cumsum(weight[order]) - 0.5 * weight[order]
    assert ranks.of(scores[order]) == pytest.approx(exact / weight.sum(), abs=2e-3)
    assert set(scores[positive]) & set(ranks.scores) == set(scores[positive])  # all the rare ones
    wide = np.sort(np.concatenate([rng.normal(0, 20, 3000), [-1e300, 1e300, -1e6, 1e6]]))
    got = ranks.of(wide)
    assert (np.diff(got[np.abs(wide) < 1e5]) > 0).all()
    assert (np.diff(got) >= 0).all()
    assert got[0] >= 0
    assert got[-1] <= 1


def test_no_rank_between_two_knots_is_above_that_of_the_upper_one() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        # A step below the upper knot is lost in the distance from the lower one.
        knots, ranks = np.array([-rng.random(), 1e-3]), np.sort(rng.uniform(0.01, 0.99, 2))
        below = np.nextafter(knots[1:], -np.inf)
        assert (Ranks(knots, ranks).of(below) <= ranks[1:]).all()


def test_where_all_scores_are_one() -> None:
    X, y = np.zeros((10, 2)), np.arange(10) % 2
    ranker = RankAverage(members=[RankBoost(n_rounds=3), Logistic()]).fit(X, y)
    assert (ranker.decision_function([[0.0, 0.0], [5.0, 1.0]]) == 0).all()
    assert (load(save(ranker)).decision_function(X) == 0).all()


def test_an_artifact_holds_all_members(fitted: RankAverage) -> None:
    X = with_categories(training_table(seed=1)[0])
    data = save(fitted)
    again = load(data)
    assert save(again) == data
    assert (again.decision_function(X) == fitted.decision_function(X)).all()
    assert again.structure() == fitted.structure()
    assert again.get_parameters() == fitted.get_parameters()
    assert save(clone(again).fit(X, training_table()[1])) != data
    header, _ = take_apart(data)
    assert [m["algorithm"] for m in header["parameters"]["members"]] == [
        "rankboost", "logistic", "treerank",
    ]  # fmt: skip
    assert data.count(b"step 12") <= 2  # the categories are there once, not once per member


def test_an_artifact_with_anything_wrong_is_refused(fitted: RankAverage) -> None:
    header, arrays = take_apart(save(fitted))
    parameters, state = header["parameters"], header["state"]
    (first, *others), weights = parameters["members"], parameters["weights"]
    changed: dict[str, Any]
    for changed in (
        {"members": None, "weights": weights},
        {"members": [], "weights": None},
        {"members": others, "weights": None},
        {"members": [first] * 33, "weights": None},
        {"members": [first | {"algorithm": "rank_average"}, *others], "weights": weights},
        {"members": [first | {"more": 1}, *others], "weights": weights},
        {"members": [first | {"parameters": {"n_rounds": 0}}, *others], "weights": weights},
        {"members": [first | {"parameters": 5}, *others], "weights": weights},
        {"members": ["rankboost", *others], "weights": weights},
        {"members": [first, *others], "weights": [1.0]},
        {"members": [first, *others], "weights": [1.0, 0.0, 1.0]},
    ):
        with pytest.raises(ArtifactError):
            load(put_together(header | {"parameters": changed}, arrays))
    for changed in (
        {"members": state["members"][:2]},
        {"members": [{}, *state["members"][1:]]},
        {"members": 3},
        {"intercept": 0.5},
        {"intercept": None},
    ):
        with pytest.raises(ArtifactError):
            load(put_together(header | {"state": state | changed}, arrays))
    for name, array in arrays.items():
        with pytest.raises(ArtifactError):
            load(put_together(header, {k: v for k, v in arrays.items() if k != name}))
        if name.startswith("rank."):
            for broken in (array[::-1].copy(), array * np.nan, array[:0], array.astype(np.float32)):
                with pytest.raises(ArtifactError):
                    load(put_together(header, arrays | {name: broken}))
    with raises(ArtifactError, "['member.7.w']"):
        load(put_together(header, arrays | {"member.7.w": np.zeros(3)}))


def test_members_are_described_and_can_be_questioned(fitted: RankAverage) -> None:
    X, y = training_table()
    told = json.loads(json.dumps(fitted.structure()))
    assert [m["algorithm"] for m in told["members"]] == ["rankboost", "logistic", "treerank"]
    assert [m["weight"] for m in told["members"]] == [0.5, 0.25, 0.25]
    assert len(told["members"][1]["structure"]["terms"]) <= told["most_listed"]
    curve = partial_dependence(fitted, with_categories(X), ["c"], n_points=5)
    assert curve.scores.shape == curve.axes[0].values.shape
    ranker = RankAverage(members=members()).fit(X, y)
    losses = permutation_importance(ranker.score_rows, X, y)
    assert losses.argmax() == 0
    assert losses[0] > 0.05
    assert not hasattr(fitted, "contributions")


def test_progress_is_that_of_all_members_and_can_be_stopped() -> None:
    X, y = training_table()
    seen = []
    RankAverage(members=members()).fit(X, y, callback=lambda *told: seen.append(told[:2]))
    steps = [step for step, _ in seen]
    assert steps == sorted(steps)
    assert steps[0] >= 1
    assert seen[-1] == (3000, 3000)
    assert {of for _, of in seen} == {3000}

    def stop(step: Any, of: Any, info: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RankAverage(members=members()).fit(X, y, callback=stop)


BAD_PARAMETERS = {
    "no members": ({"members": []}, ("members", 0)),
    "too many": ({"members": [Logistic()] * 33}, ("members", 33)),
    "names": ({"members": ["logistic"]}, ("members", "'logistic'", 0)),
    "several labels": ({"members": [Logistic(), AdaBoostMH()]}, ("members", "AdaBoostMH()", 1)),
    "one": ({"members": Logistic()}, ("members", "Logistic()")),
    "too few weights": ({"weights": [1.0]}, ("weights", 3, 1)),
    "zero": ({"weights": [1, 0, 1]}, ("weights", 0, 1)),
    "bool": ({"weights": [1, True, 1]}, ("weights", True, 1)),
    "NaN": ({"weights": [1, float("nan"), 1]}, ("weights", "nan", 1)),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_are_refused_by_name(case: str) -> None:
    parameters, named = BAD_PARAMETERS[case]
    with raises(InvalidParameter, *named):
        RankAverage(**parameters).fit(*training_table())


def test_what_a_member_refuses_the_ensemble_refuses(sentences: Sentences) -> None:
    X, y = training_table()
    from core import GreedyPairs

    numbers_only = RankAverage(members=[Logistic(), GreedyPairs()])
    assert not numbers_only.takes_categories()
    with sentences.raises(InvalidData):
        numbers_only.fit(with_categories(X), y)
    with sentences.raises(InvalidParameter):
        RankAverage(members=[RankBoost(smoothing=2.0)]).fit(X, y)


def test_only_what_is_registered_is_saved(sentences: Sentences) -> None:
    class Own(LogitBoost):
        pass

    X, y = training_table()
    with sentences.raises(ArtifactError):
        save(RankAverage(members=[Own(n_rounds=2)]).fit(pd.DataFrame(X), y))
    with raises(ArtifactError, "RankAverage"):
        save(RankAverage())


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0]])
@pytest.mark.parametrize(("first_refused", "kept"), [(1500, [0]), (400, [0]), (2001, [0, 1])])
def test_a_fit_that_its_callback_stops_keeps_the_members_so_far(
    weights: list[float] | None, first_refused: int, kept: list[int], sentences: Sentences
) -> None:
    X, y = training_table(100)
    given_members = [RankBoost(n_rounds=10), RankBoost(n_rounds=5), LogitBoost(n_rounds=10)]
    ranker = RankAverage(members=given_members, weights=weights)

    def stop(step: Any, of: Any, info: Any) -> None:
        if step >= first_refused:
            raise StopFit

    n_whole = min(first_refused // 1000, 2)
    with sentences.warns(UserWarning):  # on one thread: one member after the other
        ranker.fit(X, y, callback=stop)
    assert ranker.kept_ == kept
    if n_whole:
        alone = RankAverage(
            members=[given_members[k] for k in kept],
            weights=weights and [weights[k] for k in kept],
        ).fit(X, y)
        assert (ranker.decision_function(X) == alone.decision_function(X)).all()
    else:
        assert len(ranker.members_[0].rounds_) == 4
    again = load(save(ranker))
    assert again.kept_ == kept
    assert (again.decision_function(X) == ranker.decision_function(X)).all()
    arrays, meta = ranker.get_state()
    for wrong in ([], [3], [0, 0, 1], ["0"], [True], 0, None, [0, 1, 2]):
        with sentences.raises(ArtifactError):
            RankAverage.from_state(ranker.get_parameters(), arrays, meta | {"kept": wrong})


def test_a_stop_before_any_member_can_keep_a_thing_goes_through() -> None:
    X, y = training_table(100)

    def stop(step: Any, of: Any, info: Any) -> None:
        raise StopFit

    with pytest.raises(StopFit):
        RankAverage(members=[MartiRank()]).fit(X, y, callback=stop)


# --- fits at once ---------------------------------------------------------------------------------


def make_fit(k: int, steps: int = 5) -> Callable[..., Any]:
    def fit(callback: Any) -> Any:
        for step in range(1, steps + 1):
            callback(step, steps, {"loss": float(k)})
        return k, numba.get_num_threads()

    return fit


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("at_once", [1, 2])
def test_results_come_in_order_and_each_step_is_told(at_once: int) -> None:
    seen = []
    results = fit_together(
        [make_fit(k) for k in range(5)], lambda *told: seen.append(told), at_once
    )
    assert [k for k, _ in results] == [0, 1, 2, 3, 4]
    for k in range(5):
        assert [told[1:3] for told in seen if told[0] == k] == [(s, 5) for s in range(1, 6)]
    assert {threads for _, threads in results} == {max(numba.get_num_threads() // at_once, 1)}


class Halt(Exception):
    pass


@pytest.mark.parametrize("at_once", [1, 2])
def test_what_the_callback_raises_stops_all(at_once: int) -> None:
    both = threading.Barrier(at_once)

    def fit(callback: Any) -> None:
        both.wait(timeout=patience())
        for step in range(1, 100_000):
            callback(step, 100_000, {})
        raise AssertionError("nobody stopped it")

    def tell(number: Any, step: Any, of: Any, info: Any) -> None:
        if step >= 3:
            raise Halt

    with pytest.raises(Halt):
        fit_together([fit] * at_once, tell, at_once)


def test_a_fit_that_fails_ends_the_others_at_their_next_step_and_begins_no_more() -> None:
    both, ended = threading.Barrier(2), threading.Event()
    begun: list[Any] = []

    def fail(callback: Any) -> None:
        both.wait(timeout=patience())
        raise ValueError("fit-2")

    def go_on(callback: Any) -> None:
        both.wait(timeout=patience())
        for step in range(1, 10_000_000):
            try:
                callback(step, 10_000_000, {})
            except ValueError:
                ended.set()
                raise
        raise AssertionError("nobody stopped it")

    with raises(ValueError, "fit-2"):
        fit_together([go_on, fail, begun.append], lambda *told: None, 2)
    assert ended.is_set()
    assert begun == []
