"""`auto`: a leaderboard, one model, and figures from rows that chose nothing."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from app.datasets.matrices import Table
from app.platform.errors import Invalid
from app.training import fitting, search
from app.training.bipartite import BipartiteTable
from app.training.plan import FINISHING_MICROSECONDS, FINISHING_SECONDS, Plan
from app.training.splits import split
from core import RankBoost, artifact
from core.base.ranker import Ranker
from core.metrics import auc
from core.selection import HeldOut
from tests.app.training_jobs import (
    AUTO,
    BASELINES,
    HOLDOUT,
    Enough,
    kept,
    noisy,
    payload,
    run,
    table_of,
)
from tests.app.workbench import quiet
from tests.long_form import long_form
from tests.sentences import Sentences

BUDGET = {"name": "auto", "parameters": {"budget_seconds": 4.0}}
WINDOW = {"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.3}


def served(found: dict[str, Any]) -> Ranker:
    return artifact.load((Path(found["workdir"]) / found["artifact"]["file"]).read_bytes())


def rows_of(table: Table, rows: np.ndarray) -> Any:
    return table.take(rows).coded


@long_form
def test_one_model_whose_figure_comes_from_rows_that_chose_nothing(tmp_path: Path) -> None:
    enough = Enough(30)
    job = payload(
        tmp_path,
        noisy(240),
        algorithm=AUTO,
        objective=WINDOW,
        validation=HOLDOUT,
        baselines=BASELINES,
    )
    found = run(job, enough)
    board = found["leaderboard"]
    assert board["budget_seconds"] == 600.0
    assert board["members"]
    cost = found["parameters"]["score_microseconds"]
    assert 0.0 < cost < 1000.0
    told_of = {"budget_seconds": 600.0, "score_microseconds": cost, "members": board["members"]}
    assert found["parameters"] == told_of
    states = {candidate["state"] for candidate in board["candidates"]}
    assert "chosen" in states
    assert states <= {"chosen", "left", "failed", "untried"}
    best = board["candidates"][0]
    assert not {"low", "high", "p_value"} & best.keys()  # its rows have chosen it
    assert len({candidate["algorithm"] for candidate in board["candidates"]}) > 10
    table = table_of(job)
    _, held = split(table, 0.25, 3)
    scores = served(found).decision_function(rows_of(table, held))
    expected = auc(table.y[held], scores, None if table.weight is None else table.weight[held])
    assert found["parts"]["validation"]["auc"]["value"] == pytest.approx(expected)
    compared = [each["algorithm"] for each in found["baselines"]["baselines"]]
    assert compared == BASELINES["algorithms"]
    assert enough.fractions == sorted(enough.fractions)
    assert 0.0 < enough.fractions[-1] <= 1.0


@pytest.mark.parametrize(
    ("validation", "budget"),
    [(HOLDOUT, 600.0), ({"method": "cross_validation", "folds": 2}, 600.0), (HOLDOUT, 1.0)],
)
def test_a_plan_gives_the_same_bits(
    tmp_path: Path, validation: dict[str, Any], budget: float
) -> None:
    """Whatever ended the search, and the fits after it: the clock, or the owner."""
    by_clock = {"name": "auto", "parameters": {"budget_seconds": budget}}
    job = payload(tmp_path, noisy(600), algorithm=by_clock, validation=validation)
    found = run(job, quiet if budget < 2.0 else Enough(12))
    board = found["leaderboard"]
    assert len(board["folds"]) == validation.get("folds", 0)
    assert board["repeatable"]
    plan = {key: board[key] for key in ("members", "rows", "folds")}
    plan["score_microseconds"] = found["parameters"]["score_microseconds"]
    plan["fit_seconds"] = found["fit_seconds"]
    repeated = {"name": "auto", "parameters": {"plan": "mdl_1"}}
    again = payload(tmp_path, noisy(600), algorithm=repeated, validation=validation, plan=plan)
    second = run(again)
    assert second["artifact"]["sha256"] == found["artifact"]["sha256"]
    if validation is not HOLDOUT:
        assert kept(again)["score"].tolist() == kept(job)["score"].tolist()
    assert second["leaderboard"] == board | {
        "budget_seconds": None,
        "seconds": 0.0,
        "candidates": [],
        "notes": [],
    }
    assert second["parameters"].keys() == {"plan", "score_microseconds", "members"}


def test_what_auto_finds_in_noise_is_worth_half(tmp_path: Path) -> None:
    """Labels that have nothing to do with the rows, and a category of which each row has a value of its own: of all
    that is tried something looks good, and is not."""
    rng = np.random.default_rng(8)
    rows = 300
    ids = pa.array([f"id{k:03d}" for k in rng.permutation(rows)]).dictionary_encode()
    a, b = rng.normal(size=(2, rows))
    y = (rng.permutation(rows) < 150).astype(np.int8)
    validation = {"method": "cross_validation", "folds": 2}
    columns = {"id": ids, "a": a, "b": b, "y": y}
    job = payload(tmp_path, columns, algorithm=AUTO, validation=validation)
    found = run(job, Enough(20))
    area = found["parts"]["validation"]["auc"]
    assert abs(area["value"] - 0.5) < 0.11  # three standard errors


@long_form
def test_the_same_tryouts_come_to_the_same_end(tmp_path: Path) -> None:
    """A plan that another process asks again, as after a crash, depends only on the results so far."""
    job = payload(tmp_path, noisy(200), algorithm=BUDGET, validation=HOLDOUT)
    table = table_of(job)
    train, _ = split(table, 0.25, 3)

    class Rows:
        """Stands for the table: a number of rows, and labels of the held-out ones."""

        def can_split(self, scope: Any, inner: Any) -> bool:
            return True

        def counts(self, scope: Any) -> tuple[int, int, int, int]:
            return len(train), int(table.y[train].sum()), 4, 0

        def n_rows(self) -> int:
            return len(table.y)

        def held_out(self, scope: Any, inner: Any, split: int) -> HeldOut:
            return HeldOut(np.array([1, 0] * 20))

    rng = np.random.default_rng(0)
    finished: list[Any] = []
    plan = Plan(job["spec"], Rows())
    while parts := plan.next(finished):
        assert parts == Plan(job["spec"], Rows()).next(finished)
        stage = finished[-1]["stage"] + 1 if finished else 0
        for number, part in enumerate(parts):
            result: dict[str, Any] = {"elapsed": 0.02, "seconds": 0.02, "setup": 0.01, "notes": []}
            result |= {"files": {}, "steps": 0, "fitted": 20}
            if part["what"] == "tryout":
                n_values = max(len(part["tryout"]["path"]), 1)
                scores = np.array([1, 0] * 20) + rng.normal(size=(n_values, 40))
                file = tmp_path / f"{stage}-{number}.npy"
                np.save(file, scores)
                values = [auc(np.array([1, 0] * 20), each) for each in scores]
                result |= {"values": values, "aucs": values, "failed": None}
                result["files"] = {"scores.npy": str(file)}
            spec = {"stage": stage, "part": number, "spec": part}
            finished.append(spec | {"result": result})
    assert finished[-1]["spec"]["what"] == "fit"
    assert len(finished) > 10


def test_the_budget_begins_with_the_attempt_and_reserves_what_comes_last(tmp_path: Path) -> None:
    """Imports and reading count, and so does all that comes after the last fit."""
    job = payload(tmp_path, noisy(300), algorithm=BUDGET, validation=HOLDOUT)
    job["started"] = time.monotonic() - 3.6  # of 4
    assert run(job)["leaderboard"]["seconds"] > 3.6
    rows = type("Rows", (), {"n_rows": lambda self: 1_000_000, "counts": lambda *_: (9, 4, 1, 0)})
    spec = cast(Any, {**job["spec"], "algorithm": BUDGET | {"parameters": {"budget_seconds": 60}}})
    plan = Plan(spec, rows())
    assert plan.finishing(60.0) == pytest.approx(FINISHING_SECONDS + FINISHING_MICROSECONDS)
    assert plan.finishing(0.4) == pytest.approx(0.1)


def test_training_rows_that_there_is_no_time_to_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "MIN_MEASURED_ROWS", 60)
    algorithm = {"name": "auto", "parameters": {"budget_seconds": 1e-6}}
    job = payload(tmp_path, noisy(240), algorithm=algorithm, validation=HOLDOUT)
    found = run(job, quiet)
    counted = [found["parts"][part][name] for part in found["parts"] for name in _COUNTS]
    assert sum(counted[:2]) in (60, 61, 62)
    assert sum(counted[2:]) == 60  # rows that judge are all scored
    note = f"({sum(counted[:2])} of 180 training rows): no time left in the budget for all rows"
    assert any(note in each for each in found["warnings"])


_COUNTS = ("positives", "negatives")


@long_form
def test_a_budget_is_whole_whatever_time_compiling_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first training on a machine has as much time for its search as the next one, by a clock that goes on with
    each look at it, however busy the machine is.
    """
    skipped, looks, fit_all = [0.0], itertools.count(), fitting.FitContext.run

    def compile_first(context: Any, *part: Any) -> Any:
        if not skipped[0]:
            context.clock.compiling, skipped[0] = 30.0, 30.0
        return fit_all(context, *part)

    monkeypatch.setattr(time, "monotonic", lambda: skipped[0] + 0.01 * next(looks))
    monkeypatch.setattr(fitting.FitContext, "run", compile_first)
    algorithm = {"name": "auto", "parameters": {"budget_seconds": 2.0}}
    found = run(payload(tmp_path, noisy(200), algorithm=algorithm, validation=HOLDOUT), quiet)
    (note,) = [each for each in found["warnings"] if "compiling" in each]
    assert "30 s" in note
    assert found["leaderboard"]["seconds"] < 2.0
    assert len(found["leaderboard"]["candidates"]) > 10


def test_compiling_adds_no_more_to_a_budget_than_the_timeout_leaves(tmp_path: Path) -> None:
    algorithm = {"name": "auto", "parameters": {"budget_seconds": 60.0}}
    job = payload(tmp_path, noisy(60), algorithm=algorithm, validation=HOLDOUT)
    for seconds_left, added in ((60.0, 0.0), (70.0, 10.0), (600.0, 45.0), (50.0, 0.0)):
        context = fitting.FitContext(job | {"seconds_left": seconds_left}, cast(Any, None))
        context.clock.compiling = 45.0
        assert context.uncounted == added
        told = "does not count" if added == 45.0 else f"{45.0 - added:.0f} s of this counted"
        assert told in context.notes()[0]


def test_a_budget_too_short_for_anything_still_ends_in_a_model(
    tmp_path: Path, sentences: Sentences
) -> None:
    algorithm = {"name": "auto", "parameters": {"budget_seconds": 1e-6}}
    found = run(payload(tmp_path, noisy(200), algorithm=algorithm, validation=HOLDOUT), quiet)
    (member,) = found["leaderboard"]["members"]
    assert member["algorithm"] == "logitboost"
    assert [row["state"] for row in found["leaderboard"]["candidates"]] == ["chosen"]
    sentences(found["warnings"][0])
    assert found["parts"]["validation"]["auc"]["value"] > 0.6


def test_bad_parameters_of_auto(sentences: Sentences) -> None:
    for given in (
        {"budget_seconds": 0},
        {"budget_seconds": 101},
        {"budget_seconds": True},
        {"budget_seconds": float("nan")},
        {"budget_seconds": 10**400},
        {"n_rounds": 5},
        {"max_score_microseconds": 0},
        {"max_score_microseconds": 1e7},
        {"max_score_microseconds": float("nan")},
        {"max_score_microseconds": True},
        {"max_score_microseconds": "5"},
        {"plan": 5},
        {"budget_seconds": 5, "plan": "mdl_1"},
        {"monotone": {"a": "increasing"}, "plan": "mdl_1"},
    ):
        with sentences.raises(Invalid) as caught:
            search.check_auto(given, 100.0)
        assert caught.value.errors[0]["pointer"] == f"/algorithm/{next(iter(given))}"


@pytest.mark.parametrize(
    "validation", [{"method": "none"}, HOLDOUT, HOLDOUT | {"time_column": "t"}]
)
def test_groups_reach_what_the_fit_itself_holds_out(
    tmp_path: Path, validation: dict[str, Any]
) -> None:
    columns = noisy(240) | {"t": np.arange(240.0), "g": [f"g{k}" for k in np.arange(240) // 4]}
    parameters: dict[str, Any] = {"n_rounds": 30, "early_stopping_rounds": 4}
    algorithm = {"name": "rankboost", "parameters": parameters}
    job = payload(tmp_path, columns, algorithm=algorithm, validation=validation)
    job["table"]["group"] = "g"
    named = [f for f in job["table"]["features"] if f["name"] not in {"g", "t"}]
    job["table"]["features"] = named
    learnt = BipartiteTable(job, [feature["name"] for feature in named]).served.train
    assert learnt.group is not None
    fitted = [
        RankBoost(**parameters).fit(learnt.coded, learnt.y, learnt.weight, groups=given)
        for given in (None, learnt.group)
    ]
    found = served(run(job, quiet))
    alone, grouped = (each.decision_function(learnt.coded) for each in fitted)
    assert np.array_equal(found.decision_function(learnt.coded), grouped)
    assert not np.array_equal(alone, grouped)
