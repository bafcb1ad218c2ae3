"""`auto`: the trials that it asks for over time, and its result.

Most of this runs on a simulated clock with simulated rankers, whose worth, cost and failures are the test's.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from zlib import crc32

import numba
import numpy as np
import pytest

from core import Logistic, RankAverage, load, save
from core.base.ranker import StopFit
from core.base.splits import split_rows
from core.errors import InvalidData, InvalidParameter
from core.explain import permutation_importance, variable_dependence
from core.kernels import kernel, when_compiling
from core.metrics import (
    AveragePrecision,
    Lift,
    Ndcg,
    PrecisionAt,
    PrecisionAtRecall,
    auc,
    partial_auc,
    value_of_metric,
)
from core.registry import ALGORITHMS
from core.selection import (
    Auto,
    Chosen,
    GridSearch,
    HeldOut,
    Member,
    NothingFitted,
    RandomSearch,
    SuccessiveHalving,
    TrialResult,
    auto_ranker,
    fit_chosen,
    make_ranker,
    run_plan,
    search_ranker,
)
from core.selection.candidates import (
    LEAF_COUNTS,
    LONGER,
    MEASURE,
    PHASES,
    others,
    portfolio,
)
from core.selection.leaderboard import BEST_SINGLE
from core.selection.planner import NoteKind, Searched
from core.selection.trial import Trial
from tests.long_form import long_form, one_in
from tests.raising import raises, warns
from tests.sentences import Sentences

OF_THE_CLOCK = {NoteKind.ENDED, NoteKind.HURRIED}


def kinds_of(chosen: Chosen) -> list[NoteKind]:
    """What the notes of a choice are about."""
    return [note.kind for note in chosen.notes]


FAMILIES = {name for name, it in ALGORITHMS.items() if it.target == "binary"}
FAMILIES -= {"lambdamart", "scorecard"}
"""All but the one that learns from lists, and the one whose bins are for an analyst to edit."""
RNG = np.random.default_rng(0)
N_HELD = 1500
Y = (np.arange(N_HELD) % 10 == 0).astype(np.int8)
SHARED = RNG.normal(size=N_HELD)


def is_grown(parameters: Any) -> bool:
    """Whether the rounds follow from the time left."""
    return "learning_rate" in parameters


class World:
    """Rankers with a given signal each, at a given price per row and round, on a clock of their own."""

    def __init__(
        self,
        signal: Any = lambda trial: 2.0,
        n_rows: Any = 10_000,
        price: Any = 1e-7,
        fails: Any = (),
        learning: Any = 10.0,
        n_held: Any = N_HELD,
        setup: float = 0.0,
    ) -> None:
        self.setup = setup  # seconds of each fit before its first round
        self.signal, self.n_rows, self.price, self.fails = signal, n_rows, price, fails
        self.y, self.shared = Y[:n_held], SHARED[:n_held]
        self.learning = learning  # rounds times rate after which trees have learnt all they can
        self.now = 0.0

    def clock(self) -> Any:
        return self.now

    def a_round(self, algorithm: Any, parameters: Any, share: Any) -> Any:
        slow = {"komori_eguchi_boost": 20, "treerank_forest": 50}
        size = (parameters.get("max_leaves", 8) + 20) / 50
        return self.price * share * self.n_rows * slow.get(algorithm, 1) * size

    def fit(self, trial: Any, callback: Any) -> Any:
        of = trial.parameters
        price = self.a_round(trial.algorithm, of, trial.rows)
        grown = is_grown(of)
        wanted = of.get("n_rounds", max(trial.path, default=10)) if grown else 10
        limit = np.inf if trial.limit is None else trial.limit
        enough = round(self.learning / of["learning_rate"]) if grown else 1
        if trial.patience is not None:
            wanted = min(wanted, enough + trial.patience)
        rounds = max(min(wanted, int((limit - self.setup) / price)), 0)
        stopped = rounds < wanted
        seconds = self.setup + rounds * price
        self.now += seconds
        if trial.algorithm in self.fails or "all" in self.fails:
            return TrialResult(trial, (), (), seconds, failed="it breaks")
        if rounds < (min(trial.path, default=1) if grown else wanted):
            why = "given up after a while"
            return TrialResult(trial, (), (), seconds, failed=why, stopped=True)
        if trial.patience is not None:
            rounds_evaluated = [min(rounds, enough)]
        else:
            rounds_evaluated = [k for k in trial.path if k <= rounds or not grown] or [enough]
        scores = [self.scores(trial, k / enough) for k in rounds_evaluated]
        return TrialResult(
            trial,
            tuple(partial_auc(self.y, each, 0.0, 0.05) for each in scores),
            tuple(auc(self.y, each) for each in scores),
            seconds,
            tuple(scores),
            setup=self.setup + price,
            steps=rounds_evaluated[0] if trial.patience is not None else 0,
            fitted=rounds,
            stopped=stopped,
        )

    def scores(self, trial: Any, learned: float) -> Any:
        """Scores of the validation rows after this part of what the ranker can learn."""
        own = np.random.default_rng(crc32(trial.key.candidate.encode()))
        noise = own.normal(size=len(self.y)) + self.shared
        return self.signal(trial) * (1 - 0.5 ** (6 * learned)) * self.y + noise

    def run(self, planner: Any) -> Any:
        held = [HeldOut(self.y)] * planner.n_splits
        return run_plan(planner, held, self.fit, clock=self.clock)

    def fit_all(self, chosen: Any) -> None:
        """Pass the time of the fits on all rows."""
        for member in chosen.members:
            rounds = member.parameters.get("n_rounds", 10) if is_grown(member.parameters) else 10
            share = 1.25 * chosen.rows
            self.now += self.setup + rounds * self.a_round(
                member.algorithm, member.parameters, share
            )


def trees_alone(trial: Trial) -> float:
    """Boosted trees are far better than all others."""
    return 3.0 if is_grown(trial.parameters) else 0.3


def planner(budget: float = 10.0, n_rows: int = 12_500, n_rare: int = 1250, **more: Any) -> Auto:
    """Return a planner; by default of so many columns that there is a holdout even with the longest budget here."""
    more = {"n_features": 100, **more}
    return Auto(n_rows=n_rows, n_rare=n_rare, budget_seconds=budget, window=(0.0, 0.05), **more)


def phase_of(trial: Trial) -> str:
    assert trial.key is not None
    return trial.key.phase


def name_of(trial: Trial) -> str:
    assert trial.key is not None
    return trial.key.candidate


def full(
    tried: list[TrialResult], algorithms: tuple[str, str] = ("logitboost", "rankboost")
) -> list[TrialResult] | list[Any]:
    """The trials of boosted trees that are compared."""
    return [
        one
        for one in tried
        if phase_of(one.trial) != MEASURE.name and is_grown(one.trial.parameters)
    ]


def test_what_can_be_tried_holds_every_family_with_its_window() -> None:
    families = others((0.1, 0.2))
    orders = [portfolio(families, 1e6, 10_000, few=few) for few in (True, False)]
    assert {c.algorithm for c in (*families, *orders[1])} == FAMILIES
    for order in orders:
        assert 8 <= len(order) <= 19
        assert len({c.name for c in order}) == len(order) == len({c.key for c in order})
    for candidate in (*families, *orders[0], *orders[1]):
        ranker = ALGORITHMS[candidate.algorithm](**candidate.parameters)
        if "fpr_max" in ranker.get_params():
            assert (ranker.fpr_min, ranker.fpr_max) == (0.1, 0.2)


def test_if_crosses_rank_better_all_that_follows_has_them() -> None:
    def chosen(gain: float) -> set[bool]:
        world = World(lambda t: 2.0 + gain * ("crosses" in t.parameters))
        _, tried = world.run(planner(60.0, most_categories=5))
        return {"crosses" in one.trial.parameters for one in full(tried)[2:]}

    assert chosen(1.0) == {True}
    assert chosen(-1.0) == {False}
    assert not any("crosses" in c.parameters for c in portfolio([], 1e4, 0, few=False))


def test_the_documentation_has_the_table_of_phases() -> None:
    lines = ["| Phase | Share of the budget | What is tried | Ends |", "|---|---:|---|---|"]
    lines += [f"| {each.name} | {each.share:g} | {each.tried} | {each.ends} |" for each in PHASES]
    table = "\n".join(lines)
    text = (Path(__file__).parents[3] / "docs" / "auto.md").read_text(encoding="utf-8")
    assert table in text, f"docs/auto.md must have this table:\n{table}"


def test_the_portfolio_comes_first_then_the_other_families_then_changes() -> None:
    world = World()
    auto = planner(budget=60.0)
    chosen, tried = world.run(auto)
    phases = [phase_of(one.trial) for one in tried]
    assert list(dict.fromkeys(phases))[:4] == ["measure", "portfolio", "families", "search"]
    order = portfolio(others((0.0, 0.05)), 10_000, 0, few=False)
    names = [name_of(one.trial) for one in tried]
    assert names[1:8] == [candidate.name for candidate in order[:7]]
    assert {row.algorithm for row in chosen.candidates} == FAMILIES | {"rank_average"}
    assert len(chosen.members) > 1


def test_without_a_note_of_the_clock_the_model_is_the_same_however_fast_the_machine_is() -> None:
    """With time enough every phase ends by its own rule; with little a note names those that did not."""

    def choose(price: float, budget: float = 600.0) -> Chosen:
        auto = planner(budget, at_once=2)
        return World(lambda t: 2.0 + 0.01 * len(name_of(t)), price=price).run(auto)[0]

    fast, slow = choose(1e-9), choose(5e-9)
    assert NoteKind.ENDED not in kinds_of(fast) + kinds_of(slow)
    assert fast.members == slow.members
    hurried = choose(1e-6, 20.0)
    (note,) = [note for note in hurried.notes if note.kind is NoteKind.ENDED]
    assert set(note.phases) <= {phase.name for phase in PHASES}


RARE = {"n_rows": 80_000, "n_held": 500, "price": 2e-8, "setup": 0.14}
"""A world of 200 positives in 100,000 rows, where coding takes as long as dozens of rounds."""


def rare(budget: float, **more: Any) -> Auto:
    return planner(budget, n_rows=100_000, n_rare=200, n_features=20, **more)


@pytest.mark.parametrize("budget", one_in(2, [15.0, 30.0, 60.0]))
def test_with_few_positives_in_many_rows_the_budget_is_used(budget: float) -> None:
    """Coding takes as long as many rounds; so a limit by the number of cells alone would leave time for no round."""
    world = World(**RARE)
    auto = rare(budget)
    assert auto.n_splits == 5
    chosen, tried = world.run(auto)
    searched = world.now
    world.fit_all(chosen)
    assert 0.75 * budget < world.now < 1.15 * budget
    assert searched > 0.4 * budget
    fits = [one for one in full(tried) if not one.failed]
    assert max(one.trial.parameters["learning_rate"] for one in fits) <= 0.2
    assert all(max(one.trial.path) <= one.fitted for one in fits if not one.stopped)
    assert len({name_of(one.trial) for one in fits}) > 3 * (budget > 20)


def test_a_budget_ends_before_its_time_only_if_every_phase_has_ended() -> None:
    """Otherwise a note names the phases; a quick table of few rows needs none, and its model is the seed's."""

    def run(price: float, budget: float = 600.0) -> tuple[Chosen, float]:
        world = World(n_rows=128, n_held=200, price=price, setup=1e-3)
        chosen, _ = world.run(planner(budget, n_rows=160, n_rare=60))
        world.fit_all(chosen)
        return chosen, world.now

    (quick, seconds), (slow, _) = run(1e-6), run(3e-6)
    assert seconds < 300.0
    assert not OF_THE_CLOCK & set(kinds_of(quick))
    assert quick.members == slow.members
    assert "untried" not in {row.state for row in quick.candidates}
    hurried, seconds = run(1e-5, 20.0)
    assert OF_THE_CLOCK & set(kinds_of(hurried))


@long_form
@pytest.mark.parametrize("keeps", [False, True])
def test_what_its_limit_ended_comes_again_if_there_is_time(*, keeps: bool) -> None:
    """It is then as if it had had the time in its turn; also a fit that could keep what it had."""

    class Slow(World):
        def __init__(self, factor: float) -> None:
            super().__init__(trees_alone, n_rows=800, n_held=200, price=1e-6)
            self.factor = factor

        def a_round(self, algorithm: Any, parameters: Any, share: Any) -> Any:
            factor = self.factor if algorithm == "treerank_forest" else 1.0
            return factor * super().a_round(algorithm, parameters, share)

        def fit(self, trial: Any, callback: Any) -> Any:
            found = super().fit(trial, callback)
            if keeps and found.stopped and found.failed:
                whole = super().fit(replace(trial, limit=1e9), callback)
                return replace(whole, trial=trial, seconds=found.seconds, stopped=True)
            return found

    def run(factor: float) -> tuple[Chosen, list[TrialResult]]:
        chosen, tried = Slow(factor).run(planner(600.0, n_rows=1000, n_rare=100))
        assert not OF_THE_CLOCK & set(kinds_of(chosen))
        return chosen, [one for one in tried if name_of(one.trial) == "treerank_forest"]

    (quick, in_turn), (slow, attempts) = run(1.0), run(20.0)
    assert [one.trial.key.attempt for one in in_turn] == 5 * [1]
    more = 4 if keeps else 0  # the other folds, which have more time than the first
    assert [one.trial.key.attempt for one in attempts] == [1] + more * [1] + 5 * [2]
    assert [one.stopped for one in attempts] == [True] + more * [False] + 5 * [False]
    assert slow.members == quick.members


def test_a_candidate_that_is_tried_for_longer_stays_one_candidate() -> None:
    first = portfolio([], 10_000, 0, few=False)[0].name

    class FirstIsSlow(World):
        """The first trees are the best, and learn for long; all others are quick, so that there is time for them."""

        def fit(self, trial: Any, callback: Any) -> Any:
            self.learning = 3000.0 if name_of(trial) == first else 5.0
            return super().fit(trial, callback)

    world = FirstIsSlow(lambda t: 30.0 if name_of(t) == first else 0.3, price=1e-7)
    chosen, tried = world.run(planner(6.0))
    again = {name_of(one.trial) for one in tried if one.trial.key.attempt > 1}
    assert again
    rows = [row for row in chosen.candidates if row.algorithm != "rank_average"]
    families = others((0.0, 0.05))
    planned = {c.name for c in (*portfolio(families, 10_000, 0, few=False), *families)}
    assert len(rows) == len(planned | {name_of(one.trial) for one in tried})


def test_what_is_chosen_scores_a_row_within_its_bound(sentences: Sentences) -> None:
    def choose(bound: float | None) -> Chosen:
        return World(lambda t: 2.0, price=1e-9).run(planner(max_score_microseconds=bound))[0]

    free = choose(None)
    assert len(free.members) > 3
    for share in (0.5, 0.1):
        bound = share * free.score_microseconds
        assert choose(bound).score_microseconds <= bound
    assert NoteKind.ENDED not in kinds_of(choose(0.5 * free.score_microseconds))
    learning = 60.0  # the best still gains: its last fit has more rounds than were tried
    for bound in (0.97, 0.54, 0.5, 0.3, 1e-6):
        chosen, _ = World(trees_alone, price=1e-6, learning=learning).run(
            planner(6.0, max_score_microseconds=bound)
        )
        assert (NoteKind.NO_BOUND in kinds_of(chosen)) == (chosen.score_microseconds > bound)
    for n_rare, n_features, bound in ((1250, 1, 0.2), (1250, 3000, 0.2), (3, 3000, 0.2)):
        auto = planner(1e-9, n_rare=n_rare, n_features=n_features, max_score_microseconds=bound)
        untried = auto.next([], [HeldOut(Y)], 1.0)
        assert isinstance(untried, Chosen)
        told = NoteKind.NO_BOUND in kinds_of(untried)
        assert told == (untried.score_microseconds > bound) == (n_features == 3000)
    for bad in (0.0, -1.0, float("nan"), float("inf"), "5", True, 10**400):
        with sentences.raises(InvalidParameter):
            choose(bad)


@pytest.mark.parametrize(
    ("budget", "price", "n_rare", "at_once"),
    one_in(5, [0.5, 3.0, 20.0, 60.0], [1e-7, 1e-6, 1e-5], [1250, 100], [1, 2]),
)
def test_whatever_the_budget_it_holds_and_trees_on_all_rows_are_fitted(
    budget: float, price: float, n_rare: int, at_once: int
) -> None:
    """The minimum: with time to compare, the default trees are compared; without, they are fitted."""
    auto = planner(budget, n_rare=n_rare, at_once=at_once)
    n_held = N_HELD // auto.n_splits
    world = World(price=price, signal=lambda t: 2.0 + t.rows, n_held=n_held)
    lanes = [0.0]

    def fit(
        trial: Any, callback: Any
    ) -> Any:  # of those that are asked for together some run at once
        before = world.now
        one = world.fit(trial, callback)
        lanes.append(lanes[-1] + (world.now - before) / at_once)
        return one

    held = [HeldOut(world.y)] * auto.n_splits
    chosen, tried = run_plan(auto, held, fit, clock=lambda: lanes[-1])
    assert lanes[-1] <= budget
    default = portfolio([], 10_000, 0, few=auto.n_splits > 1)[0]
    first = {one.trial.algorithm for one in full(tried)[:1]}
    if not any(not one.failed for one in full(tried)):
        (member,) = chosen.members
        assert member.algorithm == default.algorithm
        assert "too short" in chosen.notes[0].text
        return
    assert first == {"logitboost"}
    world.now = 0.0
    world.fit_all(chosen)
    assert lanes[-1] + world.now / at_once <= 1.15 * budget


def test_a_search_that_is_ended_ends_with_the_best_it_has() -> None:
    """The result is not simply the fastest fit, even if no time is left."""

    def signal(trial: Any) -> Any:
        leaves = trial.parameters.get("max_leaves", 2)
        return 0.3 * np.log2(leaves) if is_grown(trial.parameters) else 0.3

    world = World(signal)
    _, tried = world.run(planner(60.0))
    for n in (2, 10, 30, len(tried)):
        chosen = planner(60.0).next(tried[:n], [HeldOut(Y)], float("inf"))
        assert isinstance(chosen, Chosen)
        assert len(chosen.members) == 1
        evaluated = [row for row in chosen.candidates if row.rows == 1.0]
        (best,) = [row.value for row in evaluated if row.state == "chosen"]
        assert best == max(row.value for row in evaluated)
    assert isinstance(planner(60.0).next([], [HeldOut(Y)], float("inf")), Chosen)


@pytest.mark.parametrize("best", one_in(2, [4, 63, 255]))
def test_the_search_finds_the_number_of_leaves(best: int) -> None:
    def signal(trial: Any) -> Any:
        leaves = trial.parameters.get("max_leaves", 8)
        grown = is_grown(trial.parameters)
        return 3.0 - 0.4 * abs(np.log2(leaves / best)) if grown else 0.5

    chosen, _ = World(signal, n_rows=30_000).run(planner(200.0, n_rows=37_500))
    heaviest = max(chosen.members, key=lambda member: member.weight)
    found = LEAF_COUNTS.index(heaviest.parameters["max_leaves"])
    assert abs(found - LEAF_COUNTS.index(best)) <= 1


def test_more_time_gives_a_lower_rate_and_what_still_gains_goes_on() -> None:
    def trees(trial: Any) -> Any:
        return 2.0 if is_grown(trial.parameters) else 0.5

    def rate(budget: Any) -> Any:
        chosen, _ = World(trees, price=1e-6).run(planner(budget))
        return chosen.members[0].parameters["learning_rate"]

    assert rate(4.0) > rate(100.0)
    chosen, tried = World(trees, price=1e-6, learning=60.0).run(planner(6.0))
    longest = max(one.steps for one in full(tried))
    assert chosen.members[0].parameters["n_rounds"] > 1.5 * longest
    assert NoteKind.LONGER in kinds_of(chosen)


@pytest.mark.parametrize("budget", one_in(3, [10.0, 600.0, 1e5]))
def test_what_never_stops_to_gain_learns_up_to_four_times_what_was_tried(budget: float) -> None:
    def learning(each: Any) -> float:
        return float(each["n_rounds"] * each["learning_rate"])

    world = World(trees_alone, price=1e-8, learning=3000.0)
    chosen, tried = world.run(planner(budget))
    most = max(one.fitted * one.trial.parameters["learning_rate"] for one in full(tried))
    assert most < learning(chosen.members[0].parameters) <= 4.4 * most
    longer = [one for one in tried if phase_of(one.trial) == LONGER.name]
    assert sum(one.seconds for one in longer) <= LONGER.share * budget
    assert (NoteKind.ENDED in kinds_of(chosen)) == (budget == 10.0)


def test_with_folds_the_time_left_goes_into_smaller_steps_and_copies_if_all_still_gain() -> None:

    def trees_as_given(trial: Any) -> float:
        return 0.3 if trial.key.change else trees_alone(trial)

    world = World(trees_as_given, price=1e-8, learning=3000.0, n_rows=800, n_held=500)
    chosen, _ = world.run(planner(600.0, n_rows=1000, n_rare=100))
    assert max(member.parameters["learning_rate"] for member in chosen.members) < 0.041
    assert len({member.parameters["random_state"] for member in chosen.members}) == 3
    assert NoteKind.ENDED not in kinds_of(chosen)


def test_what_none_beats_is_averaged_and_what_is_beaten_is_not() -> None:
    good = {"rankboost", "logitboost", "martirank"}

    def signal(trial: Any) -> Any:
        return 2.0 if trial.algorithm in good else 0.5

    chosen, _ = World(signal).run(planner(60.0))
    rows = {row.reason: row for row in chosen.candidates if row.state == "chosen"}
    assert {member.algorithm for member in chosen.members} <= good
    assert len(chosen.members) >= 2
    assert all(0.0 < member.weight <= 1.0 for member in chosen.members)
    average = chosen.candidates[0]
    assert (average.algorithm, average.state) == ("rank_average", "chosen")
    singles = [row.value for row in chosen.candidates[1:] if row.rows == 1.0]
    assert average.value > max(singles)  # their noise is their own
    assert BEST_SINGLE in rows
    beaten = [row for row in chosen.candidates if row.algorithm == "auc_svm"]
    assert beaten[0].state == "left"
    assert isinstance(make_ranker(chosen), RankAverage)


@pytest.mark.parametrize(
    "metric",
    one_in(
        2,
        [
            AveragePrecision(),
            PrecisionAt(share=0.02),
            Lift(share=0.15),
            PrecisionAtRecall(0.8),
            Ndcg(),
        ],
    ),
    ids=lambda metric: metric.name,
)
def test_a_figure_decides_in_the_place_of_the_window(metric: Any) -> None:
    chosen, _ = World(lambda t: 2.0 if t.algorithm == "martirank" else 1.0).run(
        planner(60.0, metric=metric)
    )
    assert [member.algorithm for member in chosen.members] == ["martirank"]
    (beaten, *_) = [row for row in chosen.candidates if row.algorithm == "auc_svm"]
    assert beaten.state == "left"


def test_a_count_is_no_objective_where_rows_are_held_out(sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        planner(metric=PrecisionAt(count=20))
    X, y = np.arange(40.0)[:, None], np.arange(40) % 3 == 0
    search = GridSearch("logistic", {"C": [0.1, 1.0]})
    with raises(InvalidParameter, "ndcg@5"):
        search_ranker(X, y, search, metric=Ndcg(5))
    for metric in (AveragePrecision(), Ndcg(share=0.2)):
        searched = search_ranker(X, y, search, metric=metric)
        again = search_ranker(X, y, search, metric=metric)
        assert [row.value for row in searched.chosen.candidates] == [
            row.value for row in again.chosen.candidates
        ]
        held = split_rows(X, y, np.ones(40), 1, fraction=0.25, seed=0)[0]
        ranker = Logistic(C=0.1).fit(X[~held], y[~held])
        assert searched.chosen.candidates[0].value == value_of_metric(
            metric, y[held], ranker.decision_function(X[held])
        )


def test_one_that_is_far_ahead_is_alone() -> None:
    chosen, _ = World(lambda t: 4.0 if t.algorithm == "martirank" else 1.0).run(planner(60.0))
    assert [member.algorithm for member in chosen.members] == ["martirank"]
    assert type(make_ranker(chosen)) is ALGORITHMS["martirank"]
    assert {row.algorithm for row in chosen.candidates} == FAMILIES


def test_few_rows_are_parted_into_folds() -> None:
    few = planner(60.0, n_rows=300, n_rare=120)
    assert (few.n_splits, planner(60.0).n_splits) == (5, 1)
    _, tried = World(n_rows=240, n_held=60).run(few)
    assert {one.trial.rows for one in tried} == {1.0}
    first = [one.trial for one in tried if one.trial.key == tried[1].trial.key]
    assert [trial.split for trial in first] == list(range(5))
    assert len({trial.path for trial in first}) == 1  # all folds are judged after the same rounds


def test_failures_are_on_the_leaderboard_and_all_failing_is_an_error(sentences: Sentences) -> None:
    chosen, _ = World(fails={"logitboost", "komori_eguchi_boost"}).run(planner(60.0))
    failed = {row.algorithm: row.reason for row in chosen.candidates if row.state == "failed"}
    assert failed == {"logitboost": "it breaks", "komori_eguchi_boost": "it breaks"}
    with sentences.raises(NothingFitted):
        World(fails={"all"}).run(planner(5.0))


def test_it_is_said_that_all_boosted_trees_failed(sentences: Sentences) -> None:
    """The choice among the others looks like any other choice."""
    chosen, _ = World(fails={"logitboost", "rankboost"}).run(planner(60.0))
    sentences(chosen.notes[0].text)
    for some in ({"rankboost"}, set(FAMILIES) - {"logitboost", "rankboost"}):
        chosen, _ = World(fails=some).run(planner(60.0))
        assert NoteKind.NO_TREES not in kinds_of(chosen)


def test_who_asks_for_a_ranker_is_warned_that_all_boosted_trees_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise InvalidData("trees are not for these rows")

    for name in ("logitboost", "rankboost"):
        monkeypatch.setattr(ALGORITHMS[name], "fit", refuse)
    X = RNG.normal(size=(60, 1))
    ticks = count()
    with warns(UserWarning) as warned:
        searched = auto_ranker(
            X,
            (X[:, 0] > 0).astype(int),
            budget_seconds=0.5,
            clock=lambda: 0.001 * next(ticks),
        )
    assert kinds_of(searched.chosen)[0] is NoteKind.NO_TREES
    assert searched.chosen.notes[0].text in [str(one.message) for one in warned]


@pytest.mark.parametrize("seed", [-1, 2**32, 2**33, 1.0, True, "0", None])
def test_a_seed_is_one_thing_everywhere(seed: Any, sentences: Sentences) -> None:
    """A bad seed is refused at once; otherwise each trial's estimator would refuse it later."""
    X, y = RNG.normal(size=(30, 1)), np.arange(30) % 2
    calls: list[Callable[[], Any]] = [
        lambda: planner(random_state=seed),
        lambda: auto_ranker(X, y, random_state=seed),
        lambda: search_ranker(X, y, GridSearch("logistic", {"C": [1.0]}), random_state=seed),
        lambda: RandomSearch("logistic", {"C": [1.0]}, random_state=seed),
        lambda: SuccessiveHalving("logistic", {"C": [1.0]}, random_state=seed),
        lambda: variable_dependence(Logistic().fit(X, y), X, random_state=seed),
        lambda: permutation_importance(lambda rows: rows[:, 0], X, y, random_state=seed),
    ]
    for algorithm in ALGORITHMS.values():
        if "random_state" in algorithm().get_params(deep=False):
            calls.append(lambda kind=algorithm: kind(random_state=seed).fit(X, y))  # type: ignore[misc]
    refusals = set()
    for call in calls:
        with pytest.raises(InvalidParameter) as refused:
            call()
        refusals.add(str(refused.value))
    (refusal,) = refusals
    sentences(refusal)


def test_the_same_record_gives_the_same_end_whatever_the_clock_says_after_it() -> None:
    auto = planner(20.0)
    world = World()
    chosen, tried = world.run(auto)
    held = [HeldOut(Y)]
    assert auto.next(tried, held, world.now) == chosen
    again = planner(20.0)
    step = again.next(tried[:1], held, 0.0)
    assert not isinstance(step, Chosen)
    assert [t.key for t in step] == [tried[1].trial.key]
    slower = [replace(one, seconds=one.seconds * 1.01) for one in tried]
    again_chosen = auto.next(slower, held, world.now)
    assert isinstance(again_chosen, Chosen)
    members = again_chosen.members
    assert [m.algorithm for m in members] == [m.algorithm for m in chosen.members]


@pytest.mark.parametrize(
    "budget",
    [0, -1.0, float("nan"), float("inf"), "60", None, True, pytest.param(10**400, id="huge")],
)
def test_a_budget_must_be_a_time(budget: Any, sentences: Sentences) -> None:
    with sentences.raises(InvalidParameter):
        planner(budget)


@pytest.fixture(scope="module")
def found() -> tuple[np.ndarray, np.ndarray, Searched]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4))
    y = np.where(X[:, 0] - X[:, 1] ** 2 + rng.normal(size=3000) > 0, "yes", "no")
    readings = count()

    def clock() -> float:
        """Go on by a millisecond at each reading, and stand still once no time is left to search.

        So no last fit is cut short, what was chosen can be fitted again, and the machine's speed changes nothing.
        """
        return min(next(readings) / 1000, 1.9)

    searched = auto_ranker(
        X[:300], y[:300], budget_seconds=2.0, fpr_max=0.2, random_state=3, clock=clock
    )
    return X, y, searched


def test_from_rows_to_a_ranker(found: tuple[np.ndarray, np.ndarray, Searched]) -> None:
    X, y, searched = found
    assert searched.ranker.classes_.tolist() == ["no", "yes"]
    scores = searched.ranker.decision_function(X[300:])
    assert auc(y[300:], scores) > 0.75, auc(y[300:], scores)
    again = load(save(searched.ranker))
    assert (again.decision_function(X[300:]) == scores).all()
    for row in searched.chosen.candidates:
        assert row.state in ("chosen", "left", "failed", "untried")
        assert row.reason
        assert (row.value is None) == (row.state in ("failed", "untried"))
        json.dumps(row.parameters)
    assert {row.algorithm for row in searched.chosen.candidates} >= FAMILIES


def test_what_was_chosen_is_what_anybody_may_fit(
    found: tuple[np.ndarray, np.ndarray, Searched],
) -> None:
    X, y, searched = found
    anew = make_ranker(searched.chosen).fit(X[:300], y[:300])
    assert save(anew) == save(searched.ranker)


def test_the_last_fit_keeps_its_rounds_when_the_time_is_up(sentences: Sentences) -> None:
    X, y = RNG.normal(size=(200, 2)), np.arange(200) % 2
    ticks = count()
    with sentences.warns(UserWarning):  # no time to try any
        searched = auto_ranker(
            X, y, budget_seconds=1e-6, max_score_microseconds=0.01, clock=lambda: 1e-6 * next(ticks)
        )
    assert len(searched.ranker.rounds_) == 1


@long_form
def test_compiling_takes_nothing_of_the_budget() -> None:
    now, steps = [0.0], count()
    factor = float(time.time_ns() % 10**9)  # nothing of it is in the cache
    fresh = kernel(numba.float64(numba.float64))(lambda x: factor * x)

    def clock() -> float:
        now[0] += 1e-3
        return now[0]

    def take_long(name: str | None) -> None:
        now[0] += 1000.0 if name is None else 0.0

    def step(done: int, of: int, info: Any) -> None:
        if next(steps) == 20:
            assert fresh(2.0) == 2.0 * factor

    X = RNG.normal(size=(200, 2))
    y = X[:, 0] + RNG.normal(size=200) > 0
    with when_compiling(take_long):
        searched = auto_ranker(X, y, budget_seconds=4.0, callback=step, clock=clock)
    assert now[0] > 1000.0
    assert len(searched.chosen.candidates) > 10
    assert sum(one.seconds for one in searched.tried) > 1.0
    assert max(one.seconds for one in searched.tried) < 4.0


def test_bad_rows_are_refused_before_anything_is_fitted(sentences: Sentences) -> None:
    X, y = np.zeros((40, 2)), np.arange(40) % 2
    with raises(InvalidData, "y", [0.0]):
        auto_ranker(X, np.zeros(40))
    with raises(InvalidData, "y", 40, 39):
        auto_ranker(X, y[:-1])
    with raises(InvalidData, "X", 1):
        auto_ranker(X[:, 0], y)
    for words in ([["a"], ["b"]], [[1.0], [2.0, 3.0]], [[{}], [1.0]]):
        with sentences.raises(InvalidData):
            auto_ranker(words, [0, 1])
    with sentences.raises(InvalidData):
        auto_ranker(X, y, group=np.zeros(3))
    with sentences.raises(InvalidParameter):
        auto_ranker(X, y, fpr_min=0.5, fpr_max=0.1)


DEGENERATE = np.random.default_rng(5)
ROWS = DEGENERATE.normal(size=(120, 3))
HALF = np.arange(120) % 2
PLAIN = {
    "1 positive": (ROWS, np.arange(120) == 7, None),
    "4 positives": (ROWS, np.arange(120) % 30 == 7, None),
    "two rows": (ROWS[:2], [0, 1], None),
    "constant columns": (np.ones((120, 3)), HALF, None),
    "nothing but missing values": (np.full((120, 2), np.nan), HALF, None),
    "one group": (ROWS, HALF, np.zeros(120)),
    "a group for each class": (ROWS, HALF, HALF),
}


@pytest.mark.parametrize(("X", "y", "group"), PLAIN.values(), ids=PLAIN)
def test_where_no_rows_can_judge_the_plainest_ranker_is_fitted_with_a_warning(
    X: Any, y: Any, group: Any, sentences: Sentences
) -> None:
    with warns(UserWarning) as warned:  # a busy machine adds another
        searched = auto_ranker(X, y, group=group, budget_seconds=2.0)
    assert [member.algorithm for member in searched.chosen.members] == ["logistic"]
    said = searched.chosen.notes[0].text
    assert said in [str(one.message) for one in warned]
    sentences(said)
    assert not searched.tried
    assert np.isfinite(searched.ranker.decision_function(X)).all()


@pytest.mark.parametrize(("n_groups", "n_splits"), [(120, 5), (4, 3), (2, 2)])
def test_few_groups_make_fewer_folds(n_groups: int, n_splits: int) -> None:
    group = np.arange(120) // 2 % n_groups
    searched = auto_ranker(ROWS, HALF, group=group, budget_seconds=0.2)
    tried = {one.trial.split for one in searched.tried}
    assert max(tried) + 1 in (n_splits, 1)  # the probe's alone, where the machine is busy
    planned = Auto(n_rows=120, n_rare=60, can_split=lambda splits, share: splits <= n_splits)
    assert planned.n_splits == n_splits


def test_what_keeps_nothing_when_it_is_stopped_has_the_time_that_it_needs(
    sentences: Sentences,
) -> None:
    X, y = DEGENERATE.normal(size=(200, 2)), np.arange(200) % 2
    ticks = count()

    def fit(names: list[str]) -> Any:
        chosen = Chosen(tuple(Member(name, {}) for name in names), ())
        ranker, _ = fit_chosen(
            chosen,
            lambda ranker, step: ranker.fit(X, y, callback=step),
            until=0.5,
            clock=lambda: float(next(ticks)),
        )
        return ranker

    assert np.isfinite(fit(["greedy_pairs"]).decision_function(X)).all()
    with sentences.warns():
        both = fit(["greedy_pairs", "martirank"])
    assert len(both.members_) == 2

    def stop(step: int, of: int, info: Any) -> None:
        raise StopFit

    with pytest.raises(StopFit):  # who asks for it hears of it
        fit_chosen(
            Chosen((Member("greedy_pairs", {}),), ()),
            lambda ranker, step: ranker.fit(X, y, callback=step),
            stop,
        )


@pytest.mark.parametrize(
    ("names", "until"),
    [
        (["rankboost"], 3.5),
        (["rankboost"], 20.5),
        (["random_forest"], 3.5),
        (["treerank_forest"], 3.5),
        (["additive"], 3.5),
        (["komori_eguchi_boost"], 3.5),
        (["logistic", "rankboost"], 20.5),  # the first is complete, and alone is left
        (["logitboost", "random_forest", "rankboost"], 3.5),
        (["logitboost", "random_forest", "rankboost"], 20.5),
    ],
)
def test_a_fit_that_is_stopped_has_the_parameters_of_one_that_is_not(
    names: list[str], until: float
) -> None:
    X = np.random.default_rng(0).normal(size=(400, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2] > 0
    short = {"rankboost": {"n_rounds": 60}, "logitboost": {"n_rounds": 50}}
    members = [Member(name, short.get(name, {}), 1.0 + k) for k, name in enumerate(names)]
    ticks = count()
    ranker, fitted = fit_chosen(
        Chosen(tuple(members), ()),
        lambda ranker, step: ranker.fit(X, y, callback=step),
        until=until,
        clock=lambda: float(next(ticks)),
    )
    assert fitted.repeatable
    assert save(make_ranker(fitted).fit(X, y)) == save(ranker)


def test_a_fit_without_a_number_of_steps_is_not_repeatable() -> None:
    ticks = count()
    _, fitted = fit_chosen(
        Chosen((Member("lambdamart", {}),), ()),
        lambda ranker, step: ranker.fit(ROWS, HALF, callback=step),
        until=3.5,
        clock=lambda: float(next(ticks)),
    )
    assert not fitted.repeatable


def test_time_that_is_left_goes_into_copies_of_other_seeds() -> None:
    chosen, _ = World(lambda t: 3.0 if is_grown(t.parameters) else 0.5, price=1e-9).run(
        planner(60.0)
    )
    groups: dict[Any, Any] = {}
    for member in chosen.members:
        assert is_grown(member.parameters)
        key = tuple(sorted((k, v) for k, v in member.parameters.items() if k != "random_state"))
        groups.setdefault((member.algorithm, key), []).append(
            (member.parameters["random_state"], member.weight)
        )
    assert len(chosen.members) == 20 or max(map(len, groups.values())) == 3
    for own in groups.values():
        assert len({seed for seed, _ in own}) == len(own)
        assert sum(weight for _, weight in own) <= 1.0 + 1e-9  # they share one member's weight


def test_what_auto_finds_keeps_weights_and_directions() -> None:
    """Rows of weight 0, whose labels are wrong, change nothing that counts; each candidate is monotone."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 2))
    y = X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + rng.normal(size=600) > 0
    weight = np.repeat([1.0, 0.0], 300)
    y[300:] = ~y[300:]
    readings = count()
    searched = auto_ranker(
        X,
        y,
        budget_seconds=1.0,
        sample_weight=weight,
        monotone={0: "increasing"},
        clock=lambda: min(next(readings) / 1000, 0.95),
    )
    lower, higher = X[:300].copy(), X[:300].copy()
    higher[:, 0] += rng.exponential(size=300)
    score = searched.ranker.decision_function
    assert (score(higher) >= score(lower)).all()
    assert auc(y[:300], score(lower)) > 0.7
    assert auc(y[300:], score(X[300:])) < 0.4
