"""The progress of a running job, and its end when its owner asks for the best so far."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from app.jobs import child_jobs as parts
from app.jobs import execution, queue
from app.jobs import queue_repository as part_rows
from app.jobs import service as jobs
from app.jobs.kinds import Claim
from app.jobs.progress import MAX_IMPROVEMENTS, Report, as_event, clocked, concluded
from app.platform.errors import Conflict
from app.platform.tables import Job, JobState
from app.training.progress import MAX_CHARACTERS, MAX_PARAMETERS, MAX_ROWS, Leaderboard, Reporter
from tests.app.training_jobs import AUTO, HOLDOUT, noisy, of_the_fit, payload, run, sharing, table
from tests.app.workbench import OWNER, Workbench, on_both, quiet
from tests.long_form import long_form
from tests.sentences import Sentences

GRID = {"method": "grid", "space": {"max_bins": [2, 4, 8, 16]}, "fraction": 0.25}
HALVING = {
    "method": "halving",
    "space": {"max_bins": [2, 4, 8, 16], "smoothing": [0.1]},
    "n_candidates": 4,
    "fraction": 0.25,
}
SPEC: Any = {
    "algorithm": {"name": "rankboost", "parameters": {}},
    "objective": {"metric": "auc"},
    "validation": HOLDOUT,
    "search": {"method": "grid", "space": {"max_bins": [4, 8], "n_rounds": [5, 10]}},
}
ENDED = "the search was stopped early on request"


def tryout(split: int = 0, n_splits: int = 1, **given: Any) -> Any:
    parameters = {"max_bins": 4, "smoothing": 0.0} | given
    path = parameters.pop("path", [])
    tried = {"algorithm": "rankboost", "parameters": parameters, "path": path, "split": split}
    tried |= {"rows": 1.0, "key": {"phase": "families", "candidate": "rankboost"}}
    return {
        "what": "tryout",
        "scope": None,
        "tryout": tried,
        "inner": {"n_splits": n_splits},
    }


def result(*values: float, **given: Any) -> Any:
    found = {
        "values": list(values),
        "aucs": list(values),
        "seconds": 1.0,
        "failed": None,
        "rows": 60,
        "along": None,
    }
    return found | given


class TestLeaderboard:
    def test_a_candidate_is_there_once_every_split_has_judged_it(self) -> None:
        board = Leaderboard(SPEC)
        for split, values in enumerate([(0.5, 0.7), (0.6, 0.9)]):
            assert board.state()["leaderboard"] == []
            assert board.state()["best"] is None
            assert not board.state()["keepable"]
            # The progress in a job's row continues in another process.
            board = Leaderboard(SPEC, json.loads(json.dumps(board.state())))
            board.add(tryout(split, 2, path=[5, 10]), result(*values, along="n_rounds"))
        state = board.state()
        row = {
            "trial": 2,
            "algorithm": "rankboost",
            "parameters": {"max_bins": 4, "n_rounds": 10},  # smoothing is not searched
            "rows": 60,
            "splits": 2,
            "value": pytest.approx(0.8),
            "seconds": 2.0,
        }
        assert state["leaderboard"] == [row]
        assert state["best"] == row | {"metric": "auc"}
        assert state["keepable"]

    def test_it_is_short_and_the_best_come_first(self) -> None:
        spec = SPEC | {"algorithm": AUTO, "search": None}
        board = Leaderboard(spec)
        many: dict[str, Any] = {f"p{k:02d}": "long" * 50 for k in range(30)}
        for number in range(100):
            shape: dict[str, Any] = {"learning_rate": 0.1, "leaf": "newton", "max_leaves": 31}
            board.add(tryout(max_bins=number, **many, **shape), result((number * 37 % 100) / 100))
        state = board.state()
        values = [row["value"] for row in state["leaderboard"]]
        assert values == [k / 100 for k in range(99, 99 - MAX_ROWS, -1)]
        parameters = state["best"]["parameters"]
        assert len(parameters) == MAX_PARAMETERS
        # The most important ones come first, and are not cut off.
        assert list(parameters)[:4] == ["max_leaves", "leaf", "learning_rate", "max_bins"]
        assert max(len(str(value)) for value in parameters.values()) == MAX_CHARACTERS
        assert len(json.dumps(state)) < 10_000
        assert "leaderboard" not in as_event(state)
        assert as_event(state)["best"] == state["best"]

    def test_a_candidate_of_one_fold_does_not_stand_above_one_of_all_folds(self) -> None:
        """`auto` tries a family on one fold first, then on the others."""
        board = Leaderboard(SPEC | {"algorithm": AUTO, "search": None})
        for split in range(6):
            board.add(tryout(split, 6, max_bins=8), result(0.7))
        board.add(tryout(0, 6, max_bins=4), result(0.94))
        (row,) = board.state()["leaderboard"]
        assert row["value"] == pytest.approx(0.7)
        for split in range(1, 6):
            board.add(tryout(split, 6, max_bins=4), result(0.64))
        rows = board.state()["leaderboard"]
        assert [row["value"] for row in rows] == [pytest.approx(0.7), pytest.approx(0.69)]
        assert [row["splits"] for row in rows] == [6, 6]

    def test_a_later_stage_of_a_search_stands_before_the_stages_of_fewer_rows(self) -> None:
        board = Leaderboard(SPEC)
        for rows, value in ((20, 0.9), (61, 0.6), (60, 0.8)):
            board.add(tryout(smoothing=value), result(value, rows=rows))
        assert [row["value"] for row in board.state()["leaderboard"]] == [0.8, 0.6, 0.9]

    def test_what_failed_or_was_left_out_has_no_row(self) -> None:
        board = Leaderboard(SPEC)
        board.add(tryout(0, 2), result(0.5))
        board.add(tryout(1, 2), result(failed="singular"))
        board.add(tryout(0, 2, max_bins=8), result(failed="left out", skipped=True))
        state = board.state()
        assert (state["leaderboard"], state["partial"], state["trials_done"]) == ([], [], 2)

    def test_auto_may_not_choose_the_measurement(self) -> None:
        board = Leaderboard(SPEC | {"algorithm": AUTO, "search": None})
        for phase, keepable in (("measure", False), ("portfolio", True)):
            part = tryout()
            part["tryout"]["key"]["phase"] = phase
            board.add(part, result(0.5))
            assert board.state()["keepable"] == keepable
            assert bool(board.state()["leaderboard"]) == keepable

    def test_folds_are_ready_one_by_one_and_have_no_rows(self) -> None:
        folds = {"method": "cross_validation", "folds": 2}
        board = Leaderboard(SPEC | {"validation": folds})
        for scope in (None, [0, 0], [0, 1]):
            assert not board.state()["keepable"]
            board.add(tryout() | {"scope": scope}, result(0.5))
        assert board.state()["keepable"]
        assert len(board.state()["leaderboard"]) == 1


def test_a_report_that_waited_for_another_does_not_tell_less() -> None:
    fractions: list[float] = []

    def callback(step: int, of: int, info: Mapping[str, float]) -> None:
        fractions.append(cast(Report, info).fraction)

    reporter = Reporter(SPEC | {"search": GRID, "seed": 0}, callback)

    def overtaken(step: int, of: int, info: Mapping[str, float]) -> None:
        other.step(1, 2, {})
        reporter.send(step, of, info)

    first = reporter.begin(tryout(), 0.5, overtaken)
    other = reporter.begin(tryout(max_bins=8), 0.5)
    other.enter("fitting")
    first.enter("fitting")
    assert fractions == [0.0, 0.25, 0.25]


def test_the_phase_of_auto_is_told() -> None:
    told: list[Report] = []
    callback: Any = lambda step, of, info: told.append(info)  # noqa: E731 - a callback in one line
    reporter = Reporter(SPEC | {"algorithm": AUTO, "seed": 0, "search": None}, callback)
    for phase in ("portfolio", "families"):
        part = tryout()
        part["tryout"]["key"]["phase"] = phase
        reporter.begin(part, 0.5).enter("preparing")
    members = [{"algorithm": "logistic", "parameters": {}, "weight": 1.0}]
    reporter.begin(cast(Any, {"what": "fit", "scope": None, "members": members}), 0.5).enter("x")
    assert [each.job["auto_phase"] for each in told] == ["portfolio", "families", "last fits"]


def test_a_budget_is_told_by_the_clock() -> None:
    auto = SPEC | {"algorithm": AUTO | {"parameters": {"budget_seconds": 30.0}}}
    told = clocked({"fraction": 0.1, "phase": "fitting"}, auto, 4.0)
    assert told["fraction"] == pytest.approx(4 / 30)
    assert (told["elapsed_seconds"], told["seconds_left"]) == (4.0, 26.0)
    waited = clocked({"fraction": 0.1}, auto, 9.0, compiling=5.0)  # which the budget does not count
    assert (waited["elapsed_seconds"], waited["seconds_left"]) == (9.0, 26.0)
    assert waited["fraction"] == told["fraction"]
    late = clocked({"fraction": 0.1}, auto, 34.0)
    assert (late["fraction"], late["seconds_left"]) == (0.99, 0.0)
    assert clocked({"fraction": 0.1}, SPEC, 4.0) == {"fraction": 0.1, "elapsed_seconds": 4.0}


def test_the_best_over_time_is_kept_as_it_comes() -> None:
    progress: dict[str, Any] = {"fraction": 0.1}
    values = [None, 0.5, 0.5, 0.7, 0.7, *(0.7 + k / 1000 for k in range(1, 301))]
    for second, value in enumerate(values):
        best = None if value is None else {"value": value}
        progress = clocked({**progress, "best": best}, SPEC, float(second))
        if second == 4:
            assert progress["improvements"] == [
                {"seconds": 1.0, "value": 0.5},
                {"seconds": 3.0, "value": 0.7},
            ]
        assert "improvements" not in as_event(progress)
    found = progress["improvements"]
    assert 50 <= len(found) <= MAX_IMPROVEMENTS
    assert [found[0]["value"], found[-1]["value"]] == [0.5, values[-1]]
    assert [values[int(each["seconds"])] for each in found] == [each["value"] for each in found]
    assert [each["seconds"] for each in found] == sorted(each["seconds"] for each in found)


def test_the_best_over_time_rises_to_the_best() -> None:
    progress: dict[str, Any] = {}
    for second, value in enumerate([0.5, 0.9, 0.8]):  # 0.9 was of fewer rows
        progress = clocked({**progress, "best": {"value": value}}, SPEC, float(second))
    at_end = concluded({"best": {"value": 0.85}}, progress)
    for told, last in ((progress, 0.8), (at_end, 0.85)):
        assert told["improvements"][-1] == {"seconds": 2.0, "value": last}
        values = [each["value"] for each in told["improvements"]]
        assert values == sorted(values)
    # A mean rank that is served may have a value below that of its best member.
    for value in (0.8, 0.79):
        kept = concluded({"best": {"value": value}}, progress)["improvements"]
        assert kept == progress["improvements"]


class Owner:
    """Reads a job's progress, and asks for the best so far after a number of trials, or steps of its fit."""

    def __init__(self, trials: float = float("inf"), steps: float = float("inf")) -> None:
        self._trials, self._steps = trials, steps
        self.told: list[Report] = []
        self.asked = 0

    def __call__(self, step: int, of: int, info: Mapping[str, float]) -> None:
        assert isinstance(info, Report)
        self.told.append(info)
        enough = info.job.get("trials_done", 0) >= self._trials or step >= self._steps
        if enough and info.end is not None:
            self.asked += 1
            raise info.end

    def phases(self) -> list[str]:
        """In order, each once."""
        return list(dict.fromkeys(report.job["phase"] for report in self.told))


def test_a_plain_fit_tells_its_phases_and_steps(tmp_path: Path) -> None:
    owner = Owner()
    run(payload(tmp_path, noisy(), validation=HOLDOUT), owner)
    assert owner.phases() == ["reading the table", "preparing", "fitting", "measuring"]
    fitting = [each.job for each in owner.told if each.job["phase"] == "fitting"]
    assert {job["algorithm"] for job in fitting} == {"rankboost"}
    assert {job["rows"] for job in fitting} == {180}
    assert all("trial" not in job and job["keepable"] for job in fitting)


def test_a_search_tells_its_trials_and_the_best(tmp_path: Path) -> None:
    owner = Owner()
    job = payload(tmp_path, noisy(), validation=HOLDOUT, search=GRID)
    found = run(job, owner)
    trying = [each.job for each in owner.told if each.job.get("trial")]
    assert {told["trial"] for told in trying} == {1, 2, 3, 4}
    assert {told["trials"] for told in trying} == {4}
    assert {told["rows"] for told in trying} == {136}
    assert {told["parameters"]["max_bins"] for told in trying} == {2, 4, 8, 16}
    last = owner.told[-1].job
    values = sorted((each["value"] for each in found["search"]["candidates"]), reverse=True)
    assert [row["value"] for row in last["leaderboard"]] == values
    assert last["best"]["parameters"] == found["search"]["chosen"]
    assert of_the_fit(found["warnings"]) == []


@long_form
def test_auto_tells_the_best_and_is_kept(tmp_path: Path) -> None:
    owner = Owner(trials=30)
    job = payload(tmp_path, noisy(200), algorithm=AUTO, validation=HOLDOUT)
    found = run(job, owner)
    assert owner.asked
    last = owner.told[-1].job
    assert last["best"]["metric"] == "auc"
    assert found["leaderboard"]["members"]
    candidates = found["leaderboard"]["candidates"]
    assert any(each["rows"] == 1.0 for each in candidates)
    # One set of figures: what was shown while it ran, what the job keeps, and what the model keeps.
    kept = sorted(each["value"] for each in candidates if each["value"] is not None)
    assert len(kept) >= 2
    shown = {row["value"] for each in owner.told for row in each.job.get("leaderboard", ())}
    assert np.abs(np.subtract.outer(list(shown), kept)).min(axis=1).max() < 1e-9
    (chosen,) = (each for each in candidates if each["state"] == "chosen")
    board = found["progress"]["leaderboard"]
    assert board[0]["value"] == found["progress"]["best"]["value"] == chosen["value"]
    n_members = len(found["leaderboard"]["members"])
    for row in board:
        if row["algorithm"] == "rank_average":
            assert 2 <= row["parameters"]["members"] <= n_members
    assert sorted(row["value"] for row in board) == kept[-len(board) :]
    assert len(board) == min(len(kept), MAX_ROWS)
    told = re.search(r" (\d+) trials", found["warnings"][0])
    assert told is not None
    n_trials = int(told[1])  # parts that ran beside the last one came to their end, too
    assert n_trials >= 30
    numbers = {row["trial"] for row in board if row["algorithm"] != "rank_average"}
    assert numbers <= set(range(1, n_trials + 1))
    assert {row["splits"] for row in board} == {5}
    assert ENDED in found["warnings"][0]
    assert found["parts"]["validation"]["auc"]["value"] > 0.6


@pytest.mark.parametrize("method", ["grid", "halving"])
def test_a_search_that_is_ended_early_serves_the_best_so_far(tmp_path: Path, method: str) -> None:
    search = GRID if method == "grid" else HALVING
    owner = Owner(trials=4 if method == "halving" else 2)
    found = run(payload(tmp_path, noisy(), validation=HOLDOUT, search=search), owner)
    assert owner.asked
    candidates = found["search"]["candidates"]
    evaluated = [each for each in candidates if each["value"] is not None]
    (chosen,) = [each for each in candidates if each["state"] == "chosen"]
    assert found["search"]["chosen"] == chosen["parameters"]
    if method == "grid":
        assert 1 <= [each["state"] for each in candidates].count("untried") <= 2  # two run at once
        assert chosen["value"] == max(each["value"] for each in evaluated)
    else:
        assert len(evaluated) == len(candidates)
    assert ENDED in found["warnings"][0]


def test_every_fold_has_something_before_the_search_ends(tmp_path: Path) -> None:
    """A request that came in a lost attempt: the next one tries one candidate per scope, or two at once."""
    folds = {"method": "cross_validation", "folds": 2}
    baselines = {"algorithms": ["logistic"], "skipped": None, "share": None}
    job = payload(tmp_path, noisy(), validation=folds, search=GRID, baselines=baselines)
    owner = Owner()
    found = run(job | {"ended": True}, owner)
    trials = {each.job["trial"] for each in owner.told if each.job.get("trial")}
    assert 3 <= len(trials) <= 6
    states = [each["state"] for each in found["search"]["candidates"]]
    assert states.count("chosen") == 1
    assert states.count("untried") >= 2
    assert all(each["chosen"]["max_bins"] in (2, 4) for each in found["search"]["folds_chosen"])
    assert found["parts"]["validation"]["auc"]["value"] > 0.6


def test_a_plain_fit_keeps_its_rounds(tmp_path: Path, sentences: Sentences) -> None:
    algorithm = {"name": "rankboost", "parameters": {"n_rounds": 40}}
    owner = Owner(steps=7)
    job = payload(tmp_path, noisy(), validation=HOLDOUT, algorithm=algorithm)
    found = run(job, owner)
    assert owner.asked == 1
    early, stopped = of_the_fit(found["warnings"])
    sentences(early)
    sentences(stopped)


def test_half_a_fit_that_is_no_ranker_is_not_kept(tmp_path: Path) -> None:
    algorithm = {"name": "auc_svm", "parameters": {}}
    owner = Owner(steps=1)
    found = run(payload(tmp_path, noisy(), validation=HOLDOUT, algorithm=algorithm), owner)
    assert owner.asked == 0
    assert not any(each.job["keepable"] for each in owner.told if each.job["phase"] == "fitting")
    assert of_the_fit(found["warnings"]) == []


class TestKeep:
    """The request itself, in SQL."""

    def keepable(self, bench: Workbench) -> Job:
        job = bench.submit(bench.ready(table()), search=GRID)
        told = {"fraction": 0.5, "keepable": True}
        bench.db.writing(queue.heartbeat, bench.settings, bench.claim(), told)
        return job

    @on_both
    def test_it_is_noted_once_and_reaches_the_worker(
        self, bench: Workbench, sentences: Sentences
    ) -> None:
        job = self.keepable(bench)
        asked, changed = bench.db.writing(parts.end_early, OWNER, job.id)
        assert changed
        assert (asked.state, asked.cancel_requested_at) == ("running", None)
        again, changed = bench.db.writing(parts.end_early, OWNER, job.id)
        assert not changed
        assert again.keep_requested_at == asked.keep_requested_at
        last = bench.db.reading(jobs.events, OWNER, job.id)[-1]
        assert [*last.data] == ["text"]
        sentences(last.data["text"])

    def test_the_next_attempt_knows_of_it(self, bench: Workbench) -> None:
        job = bench.submit(bench.ready(table()), search=GRID)
        claim = bench.claim()
        bench.db.writing(
            queue.heartbeat, bench.settings, claim, {"fraction": 0.5, "keepable": True}
        )
        assert not bench.db.reading(queue.poll_requests, claim).keep
        bench.db.writing(parts.end_early, OWNER, job.id)
        assert bench.db.reading(queue.poll_requests, claim).keep
        assert not bench.db.reading(queue.poll_requests, claim).cancel
        bench.db.writing(queue.give_back, claim)
        done = bench.work()
        assert done.state == "succeeded"
        assert ENDED in bench.model(done).warnings[0]

    def test_a_plain_cancel_comes_first(self, bench: Workbench, sentences: Sentences) -> None:
        job = self.keepable(bench)
        bench.db.writing(jobs.cancel, OWNER, job.id)
        with sentences.raises(Conflict) as caught:
            bench.db.writing(parts.end_early, OWNER, job.id)
        assert caught.value.code == "job_cancelling"

    def test_nothing_fitted_nothing_kept(self, bench: Workbench, sentences: Sentences) -> None:
        upload = bench.upload(table())
        assert upload.job_id is not None
        with sentences.raises(Conflict):
            bench.db.writing(parts.end_early, OWNER, upload.job_id)
        bench.work()
        job = bench.submit(upload, search=GRID)
        for _ in range(2):  # queued, then running
            with sentences.raises(Conflict) as caught:
                bench.db.writing(parts.end_early, OWNER, job.id)
            assert caught.value.code == "nothing_to_keep"
            if bench.db.reading(jobs.find, OWNER, job.id).state == "queued":
                claim = bench.claim()
        assert bench.db.reading(jobs.find, OWNER, job.id).keep_requested_at is None
        bench.db.writing(queue.fail, claim, None, state=JobState.CANCELLED)
        with pytest.raises(Conflict) as caught:
            bench.db.writing(parts.end_early, OWNER, job.id)
        assert caught.value.code == "job_finished"


class TestKeepInParts:
    def divided(self, bench: Workbench) -> tuple[Job, list[Claim]]:
        """A job of four tryouts in parts, two of them done, a third under way; returns it and the claim of that."""
        bench.settings = sharing(bench)
        job = bench.submit(bench.ready(table()), search=GRID)
        self.step(bench)
        with pytest.raises(Conflict) as caught:
            bench.db.writing(parts.end_early, OWNER, job.id)
        assert caught.value.code == "nothing_to_keep"
        self.step(bench)
        self.step(bench)
        return job, [bench.claim()]

    def step(self, bench: Workbench) -> None:
        claim = bench.claim()
        bench.complete(claim, execution.run(bench.prepare(claim), quiet))

    @on_both
    def test_the_job_goes_on_without_those_that_only_try(self, bench: Workbench) -> None:
        job, (running,) = self.divided(bench)
        waiting = bench.db.reading(jobs.find, OWNER, job.id)
        assert waiting.state == "waiting"
        assert len(waiting.progress["leaderboard"]) == 2
        asked, changed = bench.db.writing(parts.end_early, OWNER, job.id)
        assert (asked.state, changed) == ("queued", True)
        assert bench.db.reading(queue.poll_requests, running).cancel
        with bench.db.read() as session:
            states = [part.state for part in part_rows.of_parent(session, job.id)]
        assert states == ["succeeded", "succeeded", "running", "cancelled"]
        # The running part ends when its worker reads the request, and ends no other part.
        bench.db.writing(queue.fail, running, None, state=JobState.CANCELLED)
        assert bench.db.reading(jobs.find, OWNER, job.id).state == "queued"
        done = bench.work()
        assert done.state == "succeeded", done.error
        model = bench.model(done)
        assert model.search
        states = [each["state"] for each in model.search["candidates"]]
        assert sorted(states) == ["chosen", "left", "untried", "untried"]
        assert ENDED in model.warnings[0]

    def test_a_part_that_dies_late_holds_nobody_up(self, bench: Workbench) -> None:
        job, (running,) = self.divided(bench)
        bench.db.writing(parts.end_early, OWNER, job.id)
        claim = bench.claim()
        assert (claim.job_id, claim.keep_requested) == (job.id, True)
        bench.db.writing(parts.fan_out, claim, {"stage": 1, "parts": [{"fits": []}]})
        assert bench.db.reading(jobs.find, OWNER, job.id).state == "waiting"
        problem = {"code": "x", "title": "t", "detail": "d", "errors": []}
        bench.db.writing(queue.fail, running, problem)
        assert bench.db.reading(jobs.find, OWNER, job.id).state == "waiting"

    def test_a_fan_out_that_knew_nothing_of_it_is_put_off(self, bench: Workbench) -> None:
        job = bench.submit(bench.ready(table()), search=GRID)
        claim = bench.claim()
        bench.db.writing(
            queue.heartbeat, bench.settings, claim, {"fraction": 0.5, "keepable": True}
        )
        bench.db.writing(parts.end_early, OWNER, job.id)
        bench.db.writing(parts.fan_out, claim, {"stage": 0, "parts": [{"fits": []}]})
        assert bench.db.reading(jobs.find, OWNER, job.id).state == "queued"
        assert bench.claim().keep_requested
