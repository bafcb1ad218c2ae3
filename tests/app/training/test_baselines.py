"""Controls: after the fits, in a tenth of their time, on a sample where all rows would take longer."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.platform.documents import Validation
from app.training import baselines, fitting
from app.training import result as results
from app.training.baselines import (
    FIRST_ROWS,
    MAX_GROWTH,
    MIN_SECONDS,
    TIME_FRACTION,
    BaselineTry,
    next_rows,
)
from app.training.plan import Plan, Scope
from app.training.records import BASELINE, FIT
from tests.app.training_jobs import BASELINES, HOLDOUT, noisy, payload, run
from tests.raising import mentions
from tests.sentences import Sentences

FOLDS: Validation = {"method": "cross_validation", "folds": 3}
Json = Any


def spec_of(validation: Json = HOLDOUT, share: float | None = TIME_FRACTION, **given: Any) -> Json:
    asked: Json = {
        "algorithm": {"name": "rankboost", "parameters": {}},
        "validation": validation,
        "search": None,
        "baselines": BASELINES | {"share": share},
        "seed": 3,
    }
    return asked | given


class Rows:
    """Scopes with a given number of rows, and nothing else."""

    def __init__(self, n: int) -> None:
        self._n = n

    def counts(self, scope: Scope) -> tuple[int, int, int, int]:
        return self._n, self._n // 10, 2, 0

    def n_rows(self) -> int:
        return 0  # no time is reserved for what comes in the end

    def can_split(self, *asked: Any) -> bool:
        raise AssertionError(asked)

    def held_out(self, *asked: Any) -> Any:
        raise AssertionError(asked)


def act(
    spec: Json, n: int, fit_seconds: float, cost: Callable[[str, int], float | None]
) -> tuple[list[Json], Plan]:
    """Run a plan with fits that take `fit_seconds`, and baselines that take `cost`, which is None if too long."""
    finished: list[Json] = []
    while parts := Plan(spec, Rows(n)).next(finished):  # anew each time: it is pure
        stage = finished[-1]["stage"] + 1 if finished else 0
        for number, part in enumerate(parts):
            result: Json = {"elapsed": fit_seconds, "seconds": fit_seconds, "failed": None}
            if part["what"] == BASELINE:
                seconds = cost(part["algorithm"], part["rows"] or n)
                late = seconds is None
                taken = part["seconds"] if seconds is None else seconds
                result = {"elapsed": taken, "seconds": taken, "late": late}
                result["failed"] = "it took too long" if late else None
            finished.append({"stage": stage, "part": number, "spec": part, "result": result})
        assert len(finished) < 200
    return finished, Plan(spec, Rows(n))


def of_baselines(finished: list[Json]) -> list[tuple[str, list[int] | None, int | None]]:
    return [
        (each["spec"]["algorithm"], each["spec"]["scope"], each["spec"]["rows"])
        for each in finished
        if each["spec"]["what"] == BASELINE
    ]


def taken_by_controls(finished: list[Json]) -> float:
    of_baselines = (each for each in finished if each["spec"]["what"] == BASELINE)
    return sum(float(each["result"]["elapsed"]) for each in of_baselines)


def linear(per_row: float) -> Callable[[str, int], float]:
    return lambda name, rows: per_row * rows


def test_controls_come_after_every_fit() -> None:
    for validation in (HOLDOUT, FOLDS):
        finished, _ = act(spec_of(validation), 1000, 1.0, linear(1e-5))
        whats = [each["spec"]["what"] for each in finished]
        n_fits = 1 if validation is HOLDOUT else 4
        assert whats[:n_fits] == [FIT] * n_fits
        evaluated = [None] if validation is HOLDOUT else [[0, 0], [0, 1], [0, 2]]
        assert of_baselines(finished) == [
            (name, scope, None) for name in BASELINES["algorithms"] for scope in evaluated
        ]


def test_a_large_table_is_tried_on_few_rows_then_on_all() -> None:
    finished, _ = act(spec_of(), 100_000, 60.0, linear(1e-5))
    tries = [FIRST_ROWS, MAX_GROWTH * FIRST_ROWS, None]
    assert of_baselines(finished) == [
        (name, None, rows) for name in BASELINES["algorithms"] for rows in tries
    ]


def test_all_rows_whatever_it_takes_where_they_are_asked_for() -> None:
    finished, _ = act(spec_of(share=None), 100_000, 1.0, linear(1.0))
    assert of_baselines(finished) == [(name, None, None) for name in BASELINES["algorithms"]]
    assert all(
        each["spec"]["seconds"] is None for each in finished if each["spec"]["what"] == BASELINE
    )


@given(
    st.sampled_from([HOLDOUT, FOLDS]),
    st.integers(200, 2_000_000),
    st.floats(0.0, 1000.0),
    st.floats(-7.0, -4.0),
    st.floats(0.0, 0.02),
)
def test_they_take_a_tenth_of_the_fits_time_or_two_seconds(
    validation: Json, n: int, fit_seconds: float, power: float, fixed: float
) -> None:
    per_row = 10.0**power
    finished, _ = act(spec_of(validation), n, fit_seconds, lambda _, k: fixed + per_row * k)
    n_fits, n_evaluated = (1, 1) if validation is HOLDOUT else (4, 3)
    allowed = max(TIME_FRACTION * fit_seconds * n_fits, MIN_SECONDS)
    first = 2 * n_evaluated * (fixed + per_row * min(n, FIRST_ROWS))  # however short the time
    assert taken_by_controls(finished) <= max(1.4 * allowed, allowed + first)
    for name in BASELINES["algorithms"]:
        parts = [each for each in finished if each["spec"].get("algorithm") == name]
        evaluated = baselines.find_compared(parts, n_evaluated)
        assert len(evaluated) == n_evaluated
        rows = {each["spec"]["rows"] for each in evaluated}
        assert len(rows) == 1
        if 6 * n_evaluated * (fixed + per_row * n) + 3 * first < allowed:  # there is time for all
            assert rows == {None}


def test_a_try_that_takes_too_long_leaves_the_one_before() -> None:
    finished, _ = act(
        spec_of(), 100_000, 60.0, lambda _, rows: 0.01 if rows <= FIRST_ROWS else None
    )
    for name in BASELINES["algorithms"]:
        parts = [each for each in finished if each["spec"].get("algorithm") == name]
        assert [each["spec"]["rows"] for each in parts] == [FIRST_ROWS, MAX_GROWTH * FIRST_ROWS]
        (evaluated,) = baselines.find_compared(parts, 1)
        assert evaluated["spec"]["rows"] == FIRST_ROWS
    finished, _ = act(spec_of(), 100_000, 60.0, lambda *_: None)
    assert of_baselines(finished) == [(name, None, FIRST_ROWS) for name in BASELINES["algorithms"]]


def test_a_control_that_is_late_in_one_fold_is_none() -> None:
    late = (0, 2)
    parts: list[Any] = [
        {
            "spec": {"scope": fold, "rows": FIRST_ROWS},
            "result": {"failed": "it took too long" if fold == late else None},
        }
        for fold in [(0, 0), (0, 1), late]
    ]
    assert baselines.find_compared(parts, 3) == []


def auto(budget: float) -> Json:
    return {"algorithm": {"name": "auto", "parameters": {"budget_seconds": budget}}}


def test_a_small_table_is_not_sampled_on_a_busy_machine() -> None:
    """0.3 s for 2,000 rows is ten times what logistic regression needs; 4,500 rows are those of a small portfolio."""
    finished, _ = act(spec_of(HOLDOUT), 4_500, 0.05, lambda _, rows: 0.3 * rows / 2_000)
    for name in BASELINES["algorithms"]:
        parts = [each for each in finished if each["spec"].get("algorithm") == name]
        (compared,) = baselines.find_compared(parts, 1)
        assert compared["spec"]["rows"] is None  # all


def test_seconds_of_a_plain_job() -> None:
    for spent, share, seconds in (
        (0.0, TIME_FRACTION, MIN_SECONDS),
        (200.0, TIME_FRACTION, 20.0),
        (7.0, None, math.inf),
    ):
        assert baselines.seconds_for(spec_of(share=share), spent) == pytest.approx(seconds)


def test_auto_leaves_controls_what_is_left_a_tenth_at_most() -> None:
    for spent, seconds in ((1.0, 3.0), (29.0, 1.0), (29.9, 0.1), (31.0, -1.0)):
        for share in (TIME_FRACTION, None):
            found = baselines.seconds_for(spec_of(share=share, **auto(30.0)), spent)
            least = MIN_SECONDS if share and spent == 1.0 else seconds
            assert found == pytest.approx(least)


@pytest.mark.parametrize(("taken", "n_next"), [(0.5, 2), (1.0, 0), (3.0, 0)])
def test_auto_starts_no_control_when_its_time_is_over(
    taken: float, n_next: int, sentences: Sentences
) -> None:
    """The other folds of a control that has no time are not fitted, and the answer says why."""
    spec = spec_of(FOLDS, objective={"metric": "auc"}, **auto(30.0))
    plan = Plan(spec, Rows(100_000))
    name = BASELINES["algorithms"][0]
    result: Json = {"elapsed": taken, "seconds": 0.1, "failed": None}
    finished: Json = [
        {"spec": {"what": FIT, "scope": scope}, "result": {"elapsed": 29.0 / 4}}
        for scope in (None, [0, 0], [0, 1], [0, 2])
    ]
    (part,) = plan.next(finished)
    tried = result | {"rows": FIRST_ROWS, "of": FIRST_ROWS, "late": False}
    finished.append({"spec": part | {"rows": FIRST_ROWS}, "result": tried})
    found: list[Any] = plan.next(finished)
    assert [each["algorithm"] for each in found] == n_next * [name]
    compared, _ = results.compare_baselines(spec, plan, None, finished, np.zeros(0))
    assert compared is not None
    assert compared["skipped"] is None
    assert [each["algorithm"] for each in compared["baselines"]] == BASELINES["algorithms"]
    (reason,) = {each["failed"] for each in compared["baselines"]}
    sentences(reason)


def test_auto_reserves_time_for_its_controls() -> None:
    for budget, seconds in ((4.0, 0.12), (30.0, 0.9), (600.0, 18.0)):
        spec = spec_of(**auto(budget), objective={"metric": "auc"})
        plan = Plan(spec, Rows(2_000))
        spent = budget - plan.finishing(budget)  # the last fit has taken all that it was given
        without = Plan(spec | {"baselines": None}, Rows(2_000))
        assert plan.finishing(budget) - without.finishing(budget) == pytest.approx(seconds)
        finished: Json = [{"spec": {"what": FIT, "scope": None}, "result": {"elapsed": spent}}]
        assert [each["what"] for each in plan.next(finished)] == [BASELINE]
        assert baselines.seconds_for(spec, spent) >= seconds


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.0, 100.0), st.floats(-5.0, 50.0))
def test_tries_grow_and_end(rows: int, of: int, seconds: float, left: float) -> None:
    rows = min(rows, of)
    more = next_rows([BaselineTry(rows, of, seconds, False)], of, 2, left)
    if more is not None:
        assert rows < more <= min(of, MAX_GROWTH * rows)
        assert 2 * more * seconds / rows <= left * (1 + 1e-9) + 1e-9
    assert next_rows([BaselineTry(rows, of, seconds, True)], of, 2, left) is None
    assert next_rows([BaselineTry(of, of, 0.0, False)], of, 1, math.inf) is None


def test_a_sample_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted by the job itself, on rows that are drawn by its seed."""
    monkeypatch.setattr("app.training.baselines.FIRST_ROWS", 60)
    monkeypatch.setattr("app.training.plan.FIRST_ROWS", 60)
    monkeypatch.setattr("app.training.baselines.MIN_SECONDS", 1e-9)
    drawn = []
    whole = fitting.fit_members

    def fit(members: Any, trial: Any, *more: Any) -> Any:
        drawn.append((members[0]["algorithm"], len(trial.train.y)))
        return whole(members, trial, *more)

    monkeypatch.setattr(fitting, "fit_members", fit)
    monkeypatch.setattr("app.training.plan.MIN_SECONDS", 100.0)  # none is given up
    no_time = BASELINES | {"share": 1e-9}  # however long the fit takes
    job = payload(tmp_path, noisy(), baselines=no_time, validation=HOLDOUT)
    found = run(job, lambda step, of, info: None)
    described = found["baselines"]["baselines"]
    assert [each["algorithm"] for each in described] == BASELINES["algorithms"]
    for each in described:
        assert each["failed"] is None
        assert 60 <= each["rows"] <= 62 < each["of_rows"] == 180
        note = (
            f"the baseline {each['algorithm']} was trained on a sample ({each['rows']} of 180 rows)"
        )
        assert any(note in warning for warning in found["warnings"])
    assert next(name for name, _ in drawn) == "rankboost"
    assert {rows for name, rows in drawn if name != "rankboost"} <= {60, 61, 62, 100, 101, 102}
    again = payload(tmp_path, noisy(), baselines=no_time, validation=HOLDOUT)
    windows = run(again, lambda step, of, info: None)["baselines"]["windows"]
    assert windows == found["baselines"]["windows"]


def test_a_control_that_takes_too_long_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.training.plan.TIMEOUT_FACTOR", 1e-12)
    job = payload(tmp_path, noisy(), baselines=BASELINES | {"share": 0.1}, validation=HOLDOUT)
    found = run(job, lambda step, of, info: None)
    for each in found["baselines"]["baselines"]:
        assert mentions(each["failed"], "180 rows")
    assert found["baselines"]["windows"] == []


def test_a_budget_that_is_spent_leaves_none(tmp_path: Path, sentences: Sentences) -> None:
    job = payload(tmp_path, noisy(120), baselines=BASELINES, validation=HOLDOUT, **auto(0.01))
    found = run(job, lambda step, of, info: None)
    assert found["baselines"]["baselines"] == []
    sentences(found["baselines"]["skipped"])
    assert np.isfinite(found["parts"]["validation"]["auc"]["value"])
