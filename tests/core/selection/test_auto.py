"""`auto`: what it asks for as time goes by, and what it ends in.

Most of this runs on a simulated clock with simulated rankers, whose worth, cost and failures are the test's.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from core import RankAverage, load, save
from core.errors import InvalidData, InvalidParameter
from core.metrics import auc, partial_auc
from core.registry import ALGORITHMS
from core.selection import (
    Auto,
    Chosen,
    HeldOut,
    NothingFitted,
    Tried,
    auto_ranker,
    make_ranker,
    run_plan,
)
from core.selection.portfolio import mainstay, others

FAMILIES = {name for name, it in ALGORITHMS.items() if it.target == "binary"}
RNG = np.random.default_rng(0)
N_HELD = 2500
Y = (np.arange(N_HELD) % 10 == 0).astype(np.int8)
NOISE = {name: RNG.normal(size=N_HELD) for name in sorted(FAMILIES)}
SHARED = RNG.normal(size=N_HELD)


class World:
    """Rankers with a given signal each, at a given price per row and round, on a clock of their own."""

    def __init__(self, signal=lambda tryout: 2.0, n_rows=10_000, price=1e-7, fails=(), rise=0.0):
        self.signal, self.n_rows, self.price, self.fails = signal, n_rows, price, fails
        self.rise = rise  # of the signal along a path
        self.now = 0.0

    def clock(self):
        return self.now

    def cost(self, algorithm, parameters, share, n_rounds):
        slow = {"komori_eguchi_boost": 20, "treerank_forest": 50, "paucboost": 30}
        rounds = n_rounds if "max_leaves" in parameters else 10
        return self.price * share * self.n_rows * rounds * slow.get(algorithm, 1)

    def fit(self, tryout, callback):
        steps = tryout.path or (1,)
        rounds = max(steps) if "learning_rate" in tryout.parameters else 1
        seconds = self.cost(tryout.algorithm, tryout.parameters, tryout.rows, rounds)
        if tryout.limit is not None and seconds > tryout.limit:
            self.now += tryout.limit
            return Tried(tryout, (), (), tryout.limit, failed="given up")
        self.now += seconds
        if tryout.algorithm in self.fails or "all" in self.fails:
            return Tried(tryout, (), (), seconds, failed="it breaks")
        noise = NOISE[tryout.algorithm] + SHARED
        signal = self.signal(tryout)
        scores = [(signal + self.rise * k) * Y + noise for k in range(len(steps))]
        values = tuple(partial_auc(Y, each, 0.0, 0.05) for each in scores)
        return Tried(
            tryout,
            values,
            tuple(auc(Y, each) for each in scores),
            seconds,
            tuple(scores),
            setup=seconds / rounds,
        )

    def run(self, planner):
        held = [HeldOut(Y)] * planner.n_splits
        chosen, tried = run_plan(planner, held, self.fit, clock=self.clock)
        return chosen, tried

    def fit_all(self, chosen):
        """Pass the time of the fits on all rows."""
        for member in chosen.members:
            rounds = member.parameters.get("n_rounds", 1)
            self.now += self.cost(member.algorithm, member.parameters, 4 / 3, rounds)


def planner(budget=10.0, n_rows=13_333, n_rare=1333, **more):
    return Auto(n_rows=n_rows, n_rare=n_rare, budget_seconds=budget, window=(0.0, 0.05), **more)


def test_the_portfolio_holds_every_family_with_its_window():
    contenders = [*mainstay(1000), *others((0.1, 0.2))]
    assert {c.algorithm for c in contenders} == FAMILIES
    assert len({c.name for c in contenders}) == len(contenders)
    for contender in contenders:
        ranker = ALGORITHMS[contender.algorithm](**contender.parameters)
        if "fpr_max" in ranker.get_params():
            assert (ranker.fpr_min, ranker.fpr_max) == (0.1, 0.2)
    assert mainstay(1000)[0].leaves < mainstay(100_000)[0].leaves


def test_halving_then_the_mainstay_then_what_is_left():
    world = World()
    chosen, tried = world.run(planner(budget=60.0))
    stages = [one.tryout.label.split("/")[0] for one in tried]
    assert list(dict.fromkeys(stages)) == ["rung 1", "rung 2", "probe", "full"]
    first = [one.tryout for one in tried if one.tryout.label.startswith("rung 1/")]
    second = [one.tryout for one in tried if one.tryout.label.startswith("rung 2/")]
    assert len(first) == len(others((0, 1)))
    assert len(second) == 6
    assert second[0].rows == pytest.approx(4 * first[0].rows)
    full = [one.tryout for one in tried if one.tryout.label.startswith("full/")]
    assert [t.label.split("/")[1] for t in full[:4]] == [c.name for c in mainstay(10_000)[:4]]
    assert {t.label.split("/")[1] for t in full} >= {t.label.split("/")[1] for t in second}
    assert all(t.keep_scores for t in full)
    # the best of the first came early on its path: the others have few rounds more than it needed
    best = full[0].path[0]
    wanted = 1.6 * best * full[0].parameters["learning_rate"] / 0.04
    assert [max(t.path) for t in full[1:3]] == [pytest.approx(wanted, abs=1)] * 2
    assert [t.parameters["learning_rate"] for t in full[:2]] == [
        0.05,
        pytest.approx(0.04, abs=1e-3),
    ]
    assert {row.algorithm for row in chosen.candidates} == FAMILIES | {"rank_average"}
    assert len(chosen.members) > 1


@pytest.mark.parametrize(
    ("price", "budget"), [(1e-7, 0.5), (1e-7, 3.0), (1e-7, 60.0), (3e-6, 4.0), (3e-6, 40.0)]
)
def test_the_budget_holds_with_the_last_fits(price, budget):
    """Rankers that differ in speed by fifty, where all rows matter."""
    world = World(price=price, signal=lambda t: 2.0 + t.rows)
    chosen, _ = world.run(planner(budget))
    assert world.now <= budget
    world.fit_all(chosen)
    assert world.now <= 1.1 * budget


def test_with_hardly_any_time_there_is_what_few_rows_gave():
    chosen, tried = World(price=5e-6).run(planner(0.5))
    assert {one.tryout.label.split("/")[0] for one in tried} <= {"rung 1", "rung 2", "probe"}
    assert chosen.members
    assert "no contender was tried on all rows" in chosen.notes[0]
    with pytest.raises(NothingFitted, match=r"none of the 23 contenders .* given up"):
        World(price=1.0).run(planner(0.5))


def test_more_time_gives_more_rounds_at_a_lower_rate():
    def settle(budget):
        _, tried = World(price=1e-6).run(planner(budget))
        first = next(one.tryout for one in tried if one.tryout.label.startswith("full/"))
        return max(first.path), first.parameters["learning_rate"]

    (few, fast), (many, slow) = settle(8.0), settle(30.0)
    assert 40 <= few < many <= 400
    assert fast == pytest.approx(min(20 / few, 0.15))
    assert slow < fast


def test_what_none_beats_is_averaged_and_what_is_beaten_is_not():
    good = {"rankboost", "logitboost", "martirank"}

    def signal(tryout):
        return 2.0 if tryout.algorithm in good else 0.5

    chosen, _ = World(signal).run(planner(60.0))
    rows = {row.reason: row for row in chosen.candidates if row.state == "chosen"}
    assert {member.algorithm for member in chosen.members} <= good
    assert len({member.algorithm for member in chosen.members}) >= 2
    assert all(0.1 < member.weight <= 1.0 for member in chosen.members)
    average = chosen.candidates[0]
    assert (average.algorithm, average.state) == ("rank_average", "chosen")
    singles = [row.value for row in chosen.candidates[1:] if row.rows == 1.0]
    assert average.value > max(singles)  # their noise is their own
    assert "the best alone" in rows
    beaten = [row for row in chosen.candidates if row.algorithm == "auc_svm"]
    assert beaten[0].state == "left"
    assert beaten[0].p_value < 0.01
    assert beaten[0].low < beaten[0].value < beaten[0].high
    assert isinstance(make_ranker(chosen), RankAverage)


def test_one_that_is_far_ahead_is_alone():
    chosen, _ = World(lambda t: 4.0 if t.algorithm == "martirank" else 1.0).run(planner(60.0))
    assert [member.algorithm for member in chosen.members] == ["martirank"]
    assert type(make_ranker(chosen)) is ALGORITHMS["martirank"]
    assert {row.algorithm for row in chosen.candidates} == FAMILIES


def test_an_average_that_the_best_alone_beats_is_not_taken(monkeypatch):
    monkeypatch.setattr("core.selection.finish.MOST_BEHIND", 100.0)  # whatever is worse stays
    monkeypatch.setattr("core.selection.finish.Verdict.weight", lambda verdict, k: 1.0)
    chosen, _ = World(lambda t: 3.0 if t.algorithm == "martirank" else 0.3).run(planner(60.0))
    assert [member.algorithm for member in chosen.members] == ["martirank"]
    assert (chosen.candidates[0].algorithm, chosen.candidates[0].state) == ("rank_average", "left")
    assert [row.algorithm for row in chosen.candidates if row.state == "chosen"] == ["martirank"]


def test_few_rows_are_parted_into_folds_and_screened_on_all_rows():
    few = planner(10.0, n_rows=300, n_rare=60)
    assert few.n_splits == 3
    assert planner(60.0, n_rows=300, n_rare=60).n_splits == 5
    assert planner(60.0).n_splits == 1
    _, tried = World(n_rows=200).run(few)
    assert {one.tryout.rows for one in tried} == {1.0}
    full = [one.tryout.split for one in tried if one.tryout.label.startswith("full/")]
    assert full[:6] == [0, 1, 2] * 2


def test_failures_are_on_the_leaderboard_and_all_failing_is_an_error():
    chosen, _ = World(fails={"logitboost", "komori_eguchi_boost"}).run(planner(60.0))
    failed = {row.algorithm: row.reason for row in chosen.candidates if row.state == "failed"}
    assert failed == {"logitboost": "it breaks", "komori_eguchi_boost": "it breaks"}
    with pytest.raises(NothingFitted, match=r"none of the 23 contenders .* the first: it breaks"):
        World(fails={"all"}).run(planner(5.0))


def test_the_same_record_gives_the_same_end_whatever_the_clock_says_after_it():
    auto = planner(20.0)
    world = World()
    chosen, tried = world.run(auto)
    held = [HeldOut(Y)]
    assert auto.next(tried, held, world.now) == chosen
    again = planner(20.0)
    step = again.next(tried[:7], held, 0.0)
    assert not isinstance(step, Chosen)
    assert [t.label for t in step] == [tried[7].tryout.label]
    slower = [replace(one, seconds=one.seconds * 1.01) for one in tried]
    assert auto.next(slower, held, world.now).members == chosen.members


@pytest.mark.parametrize("budget", [0, -1.0, float("nan"), float("inf")])
def test_a_budget_must_be_a_time(budget):
    with pytest.raises(InvalidParameter, match="budget_seconds must be greater than 0, got"):
        planner(budget)


def test_other_bad_parameters_are_refused():
    with pytest.raises(InvalidParameter, match=r"n_rare must be from 1 to n_rows \(13333\), got 0"):
        planner(n_rare=0)
    with pytest.raises(InvalidParameter, match="at_once must be at least 1, got 0"):
        planner(at_once=0)


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    y = np.where(X[:, 0] - X[:, 1] ** 2 + rng.normal(size=500) > 0, "yes", "no")
    return X, y, auto_ranker(X[:300], y[:300], budget_seconds=2.0, fpr_max=0.2, random_state=3)


def test_from_rows_to_a_ranker(found):
    X, y, searched = found
    assert searched.ranker.classes_.tolist() == ["no", "yes"]
    scores = searched.ranker.decision_function(X[300:])
    assert auc(y[300:], scores) > 0.8
    again = load(save(searched.ranker))
    assert (again.decision_function(X[300:]) == scores).all()
    for row in searched.chosen.candidates:
        assert row.state in ("chosen", "left", "failed", "untried")
        assert row.reason
        assert (row.value is None) == (row.state in ("failed", "untried"))
        json.dumps(row.parameters)
    assert {row.algorithm for row in searched.chosen.candidates} >= FAMILIES


def test_what_was_chosen_is_what_anybody_may_fit(found):
    X, y, searched = found
    anew = make_ranker(searched.chosen).fit(X[:300], y[:300])
    assert save(anew) == save(searched.ranker)


def test_bad_rows_are_refused_before_anything_is_fitted():
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    with pytest.raises(InvalidData, match="two classes"):
        auto_ranker(X, np.zeros(40))
    with pytest.raises(InvalidData, match="one label per row"):
        auto_ranker(X, y[:-1])
    with pytest.raises(InvalidData, match="two dimensions, got 1"):
        auto_ranker(X[:, 0], y)
    with pytest.raises(InvalidData, match="group must have one value"):
        auto_ranker(X, y, group=np.zeros(3))
    with pytest.raises(InvalidData, match="of 5 inner splits one has no rows of a class"):
        auto_ranker(X, np.arange(40) == 3)
    with pytest.raises(InvalidParameter, match="fpr_max must be greater than fpr_min"):
        auto_ranker(X, y, fpr_min=0.5, fpr_max=0.1)


def test_the_better_size_goes_on_with_rounds_by_its_own_best():
    great = World(lambda t: 2.5 if t.parameters.get("max_leaves") == 31 else 2.0)
    _, tried = great.run(planner(60.0))
    full = [one.tryout for one in tried if one.tryout.label.startswith("full/")]
    assert [t.parameters["max_leaves"] for t in full[:4]] == [31, 8, 31, 31]
    wanted = 1.6 * full[0].path[0] * full[0].parameters["learning_rate"] / 0.04
    assert max(full[2].path) == pytest.approx(wanted, abs=1)


def test_time_that_is_left_goes_into_copies_of_other_seeds():
    chosen, _ = World(lambda t: 3.0 if t.algorithm == "logitboost" else 0.5).run(planner(60.0))
    seeds = {}
    for member in chosen.members:
        assert member.algorithm == "logitboost"
        own = seeds.setdefault(member.parameters["max_leaves"], [])
        own.append((member.parameters["random_state"], member.weight))
    for of_size in seeds.values():
        assert len({seed for seed, _ in of_size}) == len(of_size) == 3
        assert sum(weight for _, weight in of_size) <= 1.0 + 1e-9  # they share one member's weight
    hurried, _ = World(
        lambda t: 3.0 if t.algorithm == "logitboost" else 0.5, price=1e-6, rise=0.05
    ).run(planner(10.0))
    assert 1 <= len(hurried.members) < len(chosen.members)


def test_several_at_once_are_asked_for_together_and_the_budget_holds():
    world = World(price=1e-6, rise=0.05)

    def fit(tryout, callback):  # of a pair the second costs nothing: they run at once
        before = world.now
        one = world.fit(tryout, callback)
        if len(seen) % 2:
            world.now = before
        seen.append(tryout.label)
        return one

    seen = []
    auto = planner(20.0, at_once=2)
    first = auto.next([], [HeldOut(Y)], 0.0)
    assert [t.label for t in first] == ["rung 1/logistic", "rung 1/auc_svm"]
    chosen, by_two = run_plan(auto, [HeldOut(Y)], fit, clock=world.clock)
    assert len(chosen.members) > 1
    assert world.now < 20.0
    _, by_one = World(price=1e-6, rise=0.05).run(planner(20.0))

    def count_steps(tried):
        full = [one.tryout for one in tried if one.tryout.label.startswith("full/")]
        return sum(max(tryout.path, default=1) for tryout in full)

    assert count_steps(by_two) > 1.2 * count_steps(by_one)
