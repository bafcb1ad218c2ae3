"""Grid, random search and successive halving: the trials that they ask for, and their choice."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from core import RankBoost
from core.base.splits import split_rows
from core.errors import InvalidParameter
from core.metrics import auc
from core.registry import ALGORITHMS
from core.selection import (
    CHOOSE_NOW,
    GridSearch,
    HeldOut,
    InvalidSpace,
    Metrics,
    NothingFitted,
    RandomSearch,
    SuccessiveHalving,
    Trial,
    TrialResult,
    draw_rows,
    run_plan,
    run_trial,
    search_ranker,
)
from core.selection.planner import Chosen
from tests.raising import raises
from tests.sentences import Sentences

TREES = {"weak_ranker": "tree"}


def noisy_table(n: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] - X[:, 1] ** 2 + rng.normal(size=n) > 0).astype(int)
    return X, y


def worth(trial: Trial, value_of: Callable[..., Any], along: str = "n_rounds") -> TrialResult:
    """Return the result of a trial whose value is `value_of` its parameters."""
    steps = trial.path or (None,)
    full = [{**trial.parameters, **({} if k is None else {along: k})} for k in steps]
    values = tuple(float(value_of(parameters, trial)) for parameters in full)
    return TrialResult(trial, values, values, seconds=1.0)


def run(planner: Any, value_of: Callable[..., Any]) -> tuple[Chosen, list[Trial]]:
    held = [HeldOut(np.array([0, 1]))] * planner.n_splits
    chosen, tried = run_plan(planner, held, lambda trial, _: worth(trial, value_of))
    return chosen, [one.trial for one in tried]


def test_a_grid_tries_each_combination_once_and_a_path_for_nothing() -> None:
    space = {"n_rounds": [30, 10, 20], "learning_rate": [0.3, 0.1], "leaf": ["newton", "closed"]}
    planner = GridSearch("rankboost", space, TREES, n_splits=2)
    chosen, trials = run(
        planner,
        lambda p, t: (p["n_rounds"] == 20) + (p["learning_rate"] == 0.1) + 0.1 * t.split,
    )
    assert len(trials) == 2 * 2 * 2
    assert {t.path for t in trials} == {(10, 20, 30)}
    assert all("n_rounds" not in t.parameters and t.rows == 1.0 for t in trials)
    assert [t.split for t in trials] == [0, 1] * 4
    (member,) = chosen.members
    # both leaves are worth the same: the first in the order of the list
    assert member.parameters == TREES | {"leaf": "newton", "learning_rate": 0.1, "n_rounds": 20}
    assert len(chosen.candidates) == 12
    assert [row.parameters for row in chosen.candidates if row.state == "chosen"] == [
        member.parameters
    ]
    best = next(row for row in chosen.candidates if row.state == "chosen")
    assert best.value == pytest.approx(2.05)
    assert best.seconds == 2.0


def test_draws_are_the_seed_s_and_lie_in_their_ranges() -> None:
    space = {
        "learning_rate": {"low": 0.001, "high": 1, "log": True},
        "max_leaves": {"low": 3, "high": 5, "integer": True},
        "subsample": {"low": 0.5, "high": 1.0},
        "leaf": ["closed", "newton"],
        "n_rounds": {"low": 10, "high": 100, "log": True, "integer": True},
    }
    planner = RandomSearch("rankboost", space, TREES, n_candidates=200, random_state=5)
    _, trials = run(planner, lambda p, t: p["subsample"])
    again = RandomSearch(
        "rankboost", dict(reversed(space.items())), TREES, n_candidates=200, random_state=5
    )
    assert run(again, lambda p, t: 0.0)[1] == trials
    assert (
        RandomSearch("rankboost", space, TREES, random_state=6).candidates[0]
        != (planner.candidates[0])
    )
    drawn = {name: [t.parameters[name] for t in trials] for name in planner.space.dimensions}
    rates = np.array(drawn["learning_rate"])
    assert (rates >= 0.001).all()
    assert (rates <= 1).all()
    assert 50 < (rates < 10**-1.5).sum() < 150  # as many in either half of the decades
    counts = np.bincount(drawn["max_leaves"])[3:]
    assert len(counts) == 3
    assert counts.min() > 40
    assert all(type(v) is int for v in drawn["max_leaves"])
    assert set(drawn["leaf"]) == {"closed", "newton"}
    path = trials[0].path
    assert (path[0], path[-1], len(path)) == (10, 100, 10)
    assert all(type(v) is int for v in path)


def test_halving_on_rows_gives_the_best_third_three_times_as_much() -> None:
    space = {"learning_rate": {"low": 0.01, "high": 1.0}}
    planner = SuccessiveHalving("logitboost", space, n_candidates=27, n_splits=2)
    rates = [p["learning_rate"] for p in planner.candidates]
    chosen, trials = run(planner, lambda p, t: p["learning_rate"])
    shares = [round(27 * t.rows) for t in trials]
    assert shares == [1] * 54 + [3] * 18 + [9] * 6 + [27] * 2
    third = {t.parameters["learning_rate"] for t in trials[54:72]}
    assert third == set(sorted(rates)[-9:])
    assert chosen.members[0].parameters == {"learning_rate": max(rates)}
    left = [row for row in chosen.candidates if row.state == "left"]
    assert len(left) == 26
    assert sum("stage 1 of 4" in row.reason for row in left) == 18
    assert sum(row.seconds for row in chosen.candidates) == 80


def test_halving_on_rounds_gives_fewer_rounds_first_and_the_path_at_last() -> None:
    space = {"learning_rate": [0.1, 0.2, 0.3, 0.4], "n_rounds": [20, 80, 40]}
    planner = SuccessiveHalving(
        "rankboost", space, TREES, n_candidates=4, eta=2, resource="rounds", least_share=0.2
    )
    chosen, trials = run(planner, lambda p, t: p["n_rounds"] - p["learning_rate"])
    assert [(t.parameters.get("n_rounds"), t.path) for t in trials] == (
        [(20, ())] * 4 + [(40, ())] * 2 + [(None, (20, 40, 80))]
    )
    assert all(t.rows == 1.0 for t in trials)
    assert chosen.members[0].parameters == TREES | {"learning_rate": 0.1, "n_rounds": 80}


def test_halving_on_rounds_chooses_what_it_has_evaluated() -> None:
    space = {"learning_rate": [0.1, 0.2, 0.3, 0.4]}
    for given, whole in (
        ({}, 100),
        ({"n_rounds": 40}, 40),
    ):  # RankBoost's trees would choose theirs
        planner = SuccessiveHalving(
            "rankboost", space, TREES | given, n_candidates=4, eta=2, resource="rounds"
        )
        chosen, trials = run(planner, lambda p, t: -p["learning_rate"])
        last = trials[-1].parameters
        assert chosen.members[0].parameters == last
        assert last["n_rounds"] == whole
        rounds = {
            row.parameters["learning_rate"]: row.parameters["n_rounds"] for row in chosen.candidates
        }
        assert rounds == {0.1: whole, 0.2: whole // 2, 0.3: whole // 4, 0.4: whole // 4}
        # ended after the first rung: the best of it, as it was tried
        first = [worth(t, lambda p, t: -p["learning_rate"]) for t in trials[:4]]
        early = planner.next(first, [], CHOOSE_NOW)
        assert isinstance(early, Chosen)
        assert early.members[0].parameters == trials[0].parameters


@pytest.mark.parametrize("resource", ["rows", "rounds"])
def test_what_fails_is_out_of_the_race(resource: str) -> None:
    space = {"learning_rate": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]}
    planner = SuccessiveHalving("rankboost", space, TREES, n_candidates=9, resource=resource)

    def fit(trial: Any, callback: Any) -> Any:
        if trial.parameters["learning_rate"] > 0.25:
            return TrialResult(trial, (), (), 0.5, failed="too fast")
        return worth(trial, lambda p, t: p["learning_rate"])

    chosen, tried = run_plan(planner, [HeldOut(np.array([0, 1]))], fit)
    assert len(tried) == 9 + 2 + 1
    assert chosen.members[0].parameters["learning_rate"] == 0.2
    failed = [row for row in chosen.candidates if row.state == "failed"]
    assert [(row.reason, row.value, row.seconds) for row in failed] == [("too fast", None, 0.5)] * 7


@pytest.mark.parametrize(
    "planner",
    [
        GridSearch("logistic", {"C": [1.0, 2.0]}, n_splits=3),
        RandomSearch("logitboost", {"subsample": {"low": 0.5, "high": 1}}, n_candidates=3),
        SuccessiveHalving("logitboost", {"subsample": {"low": 0.5, "high": 1}}, n_candidates=9),
    ],
    ids=["grid", "random", "halving"],
)
def test_all_failing_is_an_error_that_says_why(planner: Any, sentences: Sentences) -> None:
    held = [HeldOut(np.array([0, 1]))] * planner.n_splits
    with sentences.raises(NothingFitted):
        run_plan(planner, held, lambda t, _: TrialResult(t, (), (), 0.1, failed="no rows"))


BAD_SPACES = {
    "nothing": ({}, "/space", ()),
    "unknown": ({"depth": [1]}, "/space/depth/0", ("'depth'",)),
    "no list": ({"subsample": 0.5}, "/space/subsample", (0.5,)),
    "text": ({"leaf": "closed"}, "/space/leaf", ("'closed'",)),
    "empty list": ({"subsample": []}, "/space/subsample", (0,)),
    "out of bounds": ({"subsample": [0.5, 1.5]}, "/space/subsample/1", (1.5,)),
    "of the wrong type": ({"max_leaves": [8, 2.5]}, "/space/max_leaves/1", (2.5,)),
    "twice": ({"subsample": [0.5, 0.5]}, "/space/subsample/1", (0.5,)),
    "fixed too": ({"weak_ranker": ["tree"]}, "/space/weak_ranker", ("'tree'",)),
    "range key": ({"subsample": {"lo": 0.1, "high": 1}}, "/space/subsample/lo", ("'lo'",)),
    "no high": ({"subsample": {"low": 0.1}}, "/space/subsample/high", (None,)),
    "bool": ({"subsample": {"low": True, "high": 1}}, "/space/subsample/low", (True,)),
    "reversed": ({"subsample": {"low": 0.9, "high": 0.1}}, "/space/subsample", (0.9, 0.1)),
    "log of 0": ({"smoothing": {"low": 0, "high": 1, "log": True}}, "/space/smoothing/low", (0,)),
    "log of text": ({"subsample": {"low": 0.1, "high": 1, "log": 1}}, "/space/subsample/log", (1,)),
    "not whole": ({"max_leaves": {"low": 3, "high": 30}}, "/space/max_leaves", ()),
    "half": (
        {"max_leaves": {"low": 3, "high": 30, "integer": "yes"}},
        "/space/max_leaves/integer",
        ("'yes'",),
    ),
    "broken whole": (
        {"subsample": {"low": 0.5, "high": 1, "integer": True}},
        "/space/subsample",
        (0.5, 1),
    ),
    "beyond": ({"subsample": {"low": 0.5, "high": 2}}, "/space/subsample/high", (2,)),
    "no rounds": ({"n_rounds": [0, 5]}, "/space/n_rounds/0", (0,)),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SPACES)
def test_a_bad_space_is_refused_where_it_is_bad(case: str) -> None:
    space, pointer, named = BAD_SPACES[case]
    with raises(InvalidSpace, *named) as refused:
        RandomSearch("rankboost", space, TREES)
    assert refused.value.pointer == pointer


def test_other_bad_searches_are_refused(sentences: Sentences) -> None:
    with sentences.raises(InvalidSpace):
        GridSearch("logistic", {"C": {"low": 0.1, "high": 1}})
    with raises(InvalidSpace, "early_stopping_rounds", 3) as refused:
        GridSearch("rankboost", {"n_rounds": [1, 2]}, {"early_stopping_rounds": 3})
    assert refused.value.pointer == "/space/n_rounds"
    with sentences.raises(InvalidSpace):
        GridSearch("pauc_svm", {"C": ["auto", 1.0]})
    values = {name: [k / 40 for k in range(1, 41)] for name in ("subsample", "max_features")}
    with sentences.raises(InvalidParameter):
        GridSearch("rankboost", values, TREES)
    with sentences.raises(InvalidParameter):
        GridSearch("xgboost", values)
    with sentences.raises(InvalidParameter):
        GridSearch("rankboost", {"n_rounds": [1, 2]}, TREES | {"subsample": 2.0})
    with sentences.raises(InvalidParameter):
        RandomSearch("logistic", {"C": [1.0]}, n_candidates=0)
    with sentences.raises(InvalidParameter):
        RandomSearch("logistic", {"C": [1.0]}, n_splits=21)
    for bad, got in {"eta": 1.0, "least_share": 1.5}.items():
        with raises(InvalidParameter, bad, got):
            SuccessiveHalving("logistic", {"C": [1.0]}, **{bad: got})
    with sentences.raises(InvalidParameter):
        SuccessiveHalving("logistic", {"C": [1.0, 2.0]}, resource="rounds")
    with raises(InvalidSpace, "n_rounds"):
        SuccessiveHalving("rankboost", {"n_rounds": [1, 2]}, resource="rounds")


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, y = noisy_table()
    (held,) = split_rows(X, y == 1, np.ones(len(y)), 1, seed=3)
    return X[~held], y[~held], X[held], y[held]


def carry_out(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], trial: Trial, **options: Any
) -> TrialResult:
    X, y, X_held, y_held = rows

    def fit(ranker: Any, callback: Any) -> None:
        taken = draw_rows(y, trial.rows, seed=0)
        ranker.fit(X[taken], y[taken], callback=callback)

    def judge(scores: Any) -> Any:
        area = auc(y_held, scores)
        return Metrics(area / 2, area)

    return run_trial(trial, fit, X_held, judge, **options)


@pytest.mark.parametrize(
    ("name", "along", "path"),
    [("rankboost", "n_rounds", (2, 5, 9)), ("auc_svm", "C", (0.01, 1.0))],
)
def test_a_tryout_judges_what_each_value_fits(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    name: str,
    along: str,
    path: tuple[int, int, int] | tuple[float, float],
) -> None:
    X, y, X_held, y_held = rows
    tried = carry_out(rows, Trial(name, {}, path, rows=0.5, keep_scores=True))
    taken = draw_rows(y, 0.5, seed=0)
    for k, value, area, scores in zip(path, tried.values, tried.aucs, tried.scores, strict=True):
        alone = ALGORITHMS[name](**{along: k}).fit(X[taken], y[taken]).decision_function(X_held)
        assert scores == pytest.approx(alone, abs=0.02 * np.ptp(alone))
        assert area == auc(y_held, scores)
        assert value == area / 2
    assert carry_out(rows, Trial(name, {}, path)).scores == ()


def test_a_fit_that_is_stopped_has_the_values_that_it_reached(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, X_held, _ = rows

    def run(limit: float) -> TrialResult:
        ticks = iter(range(1000))
        return run_trial(
            Trial("rankboost", {"weak_ranker": "tree"}, (2, 4, 50), keep_scores=True, limit=limit),
            lambda ranker, callback: ranker.fit(X, y, callback=callback),
            X_held,
            lambda scores: Metrics(1.0, 1.0),
            clock=lambda: float(next(ticks)),
        )

    tried = run(5.0)
    assert 4 < tried.fitted < 50
    assert tried.stopped
    assert len(tried.values) == len(tried.aucs) == len(tried.scores) == 2
    nothing = run(0.5)
    assert nothing.stopped
    assert "given up after" in (nothing.failed or "")
    assert not run(900.0).stopped


def test_steps_before_the_first_round_are_setup_and_have_the_limit_too(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """A search for crosses reports as step 0."""
    X, y, X_held, _ = rows

    def fit(ranker: Any, callback: Any) -> None:
        for _ in range(4):
            callback(0, 3, {})
        ranker.fit(X, y, callback=callback)

    def run(limit: float) -> TrialResult:
        ticks = iter(range(1000))
        trial = Trial("rankboost", {"n_rounds": 3}, limit=limit)
        return run_trial(
            trial, fit, X_held, lambda scores: Metrics(1.0, 1.0), clock=lambda: float(next(ticks))
        )

    tried = run(100.0)
    assert (tried.seconds - tried.setup, tried.fitted) == (2.0, 3)
    assert "given up after" in (run(2.5).failed or "")


def test_a_refusal_is_a_failure_that_says_why_and_a_limit_ends_the_fit(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], sentences: Sentences
) -> None:
    X, y, X_held, y_held = rows
    tried = carry_out((X[y == 1], y[y == 1], X_held, y_held), Trial("greedy_pairs", {}))
    assert tried.values == ()
    assert "two classes" in (tried.failed or "")
    tried = carry_out(rows, Trial("rankboost", {"smoothing": 2.0}))
    sentences(tried.failed)
    ticks = iter(range(1000))
    tried = carry_out(rows, Trial("rankboost", {}, limit=5.5), clock=lambda: float(next(ticks)))
    assert (tried.failed, tried.fitted) == (None, 6)  # a booster keeps the rounds so far
    ticks = iter(range(1000))
    tried = carry_out(rows, Trial("martirank", {}, limit=0.5), clock=lambda: float(next(ticks)))
    assert "given up after" in (tried.failed or "")
    whole = carry_out(rows, Trial("rankboost", {"n_rounds": 3}, limit=100.0))
    assert whole.failed is None


def test_a_greater_share_holds_the_rows_of_a_lesser_one() -> None:
    y = np.arange(100) % 10 == 0
    few, more = draw_rows(y, 0.3, seed=1), draw_rows(y, 0.5, seed=1)
    assert set(few) < set(more)
    assert (len(few), y[few].sum(), len(more), y[more].sum()) == (30, 3, 50, 5)
    assert (draw_rows(y, 1.0, seed=1) == np.arange(100)).all()
    assert y[draw_rows(y, 0.01, seed=1)].sum() == 2
    assert set(few) != set(draw_rows(y, 0.3, seed=2))


def test_splits_that_lack_a_class_are_refused(sentences: Sentences) -> None:
    y = np.arange(50) == 0
    with sentences.raises(ValueError):
        split_rows(np.arange(50.0)[:, None], y, np.ones(50), 3)
    for options, named in (
        ({"n_splits": 0}, ("n_splits", 0)),
        ({"n_splits": 1, "fraction": 1.0}, ("fraction", 1.0)),
    ):
        with raises(InvalidParameter, *named):
            split_rows(np.zeros((4, 1)), y[:4], np.ones(4), **options)


def test_a_search_keeps_no_more_of_the_table_than_is_fitted() -> None:
    """Twenty splits of a table are not twenty tables."""
    X = np.random.default_rng(0).normal(size=(1500, 60))
    y = np.random.default_rng(1).integers(0, 2, 1500)
    planner = GridSearch("coordinate_rankboost", {"smoothing": [0.1]}, {"n_rounds": 1}, n_splits=20)
    search_ranker(X[:200], y[:200], planner)  # what it loads is not meant
    tracemalloc.start()
    try:
        search_ranker(X, y, planner)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 9 * X.nbytes  # each of two fits has its rows, and what a booster makes of them


def test_groups_reach_the_fits_of_a_search() -> None:
    X, y = noisy_table()
    group = np.arange(len(y)) // 4
    space = {"early_stopping_rounds": [3]}
    fits = [
        search_ranker(X, y, GridSearch("rankboost", space), group=given, random_state=2).ranker
        for given in (None, group)
    ]
    direct = RankBoost(early_stopping_rounds=3).fit(X, y, groups=group)
    assert (fits[1].decision_function(X) == direct.decision_function(X)).all()
    assert (fits[0].decision_function(X) != direct.decision_function(X)).any()


def test_a_search_maximises_the_partial_area_of_its_window_and_reports_its_steps() -> None:
    X, y = noisy_table()
    planner = GridSearch("rankboost", {"n_rounds": [1, 30]}, n_splits=3)
    steps: list[tuple[int, int]] = []
    whole = search_ranker(X, y, planner)
    top = search_ranker(
        X, y, planner, fpr_max=0.1, callback=lambda step, of, _info: steps.append((step, of))
    )
    end = search_ranker(X, y, planner, fpr_min=0.9)
    values = [[row.value for row in searched.chosen.candidates] for searched in (whole, top, end)]
    assert (
        values[1][0] < values[0][0] < values[2][0]
    )  # a partial area grows with its window's place
    assert steps
    assert all(0 < step <= of for step, of in steps)

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search_ranker(X, y, planner, callback=stop)
