"""Baselines: after the fits, on a sample of large tables that no clock chooses."""

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
from app.training.baselines import MAX_CELLS, MAX_SECONDS, MIN_ROWS, TIME_FRACTION
from app.training.plan import Plan, Scope
from app.training.records import BASELINE, FIT
from tests.app.training_jobs import BASELINES, HOLDOUT, noisy, payload, run
from tests.raising import mentions
from tests.sentences import Sentences

FOLDS: Validation = {"method": "cross_validation", "folds": 3}
COLUMNS = 20
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
        return self._n, self._n // 10, COLUMNS, 0

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
                taken = part["seconds"] if seconds is None else seconds
                result = {"elapsed": taken, "seconds": taken}
                result["failed"] = "it took too long" if seconds is None else None
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


@pytest.mark.parametrize("validation", [HOLDOUT, FOLDS])
@given(
    n=st.integers(200, 2_000_000), fit_seconds=st.floats(0.0, 1000.0), power=st.floats(-7.0, -4.0)
)
def test_the_sample_depends_on_rows_and_columns_alone(
    validation: Json, n: int, fit_seconds: float, power: float
) -> None:
    """Neither the time of the fits nor that of the baselines changes on which rows the model is compared."""
    n_scopes = 1 if validation is HOLDOUT else 3
    finished, _ = act(spec_of(validation), n, fit_seconds, linear(10.0**power))
    again, _ = act(spec_of(validation), n, 1.0, linear(1e-6))
    assert of_baselines(finished) == of_baselines(again)
    most = max(MAX_CELLS // (COLUMNS * n_scopes), MIN_ROWS)
    expected = None if n <= most else most
    for name in BASELINES["algorithms"]:
        parts = [each for each in finished if each["spec"].get("algorithm") == name]
        compared = baselines.find_compared(parts, n_scopes)
        assert [each["spec"]["rows"] for each in compared] == n_scopes * [expected]


def test_a_table_of_22490_rows_is_compared_on_all_of_them() -> None:
    finished, _ = act(spec_of(), 22_490, 1.0, linear(1e-5))
    assert of_baselines(finished) == [(name, None, None) for name in BASELINES["algorithms"]]


def test_a_budget_of_auto_limits_the_sample() -> None:
    spec = spec_of(**auto(30.0), objective={"metric": "auc"})
    rows = [baselines.sample_rows(spec_of(**auto(b)), 10**6, COLUMNS, 1) for b in (4.0, 30.0, 3e5)]
    assert rows == [4_000, 30_000, MAX_CELLS // COLUMNS]
    assert baselines.sample_rows(spec | {"baselines": BASELINES}, 10**6, COLUMNS, 1) is None


@pytest.mark.parametrize(
    ("sizes", "enough"),
    [
        ([(2_001, 22_490), (2_001, 22_490)], False),
        ([(22_490, 22_490), (2_001, 22_490)], False),
        ([(11_245, 22_490), (22_490, 22_490)], True),
        ([(None, None), (22_490, 22_490)], True),  # one could not be trained
    ],
)
def test_a_small_sample_allows_no_verdict(sizes: list[Any], enough: bool) -> None:
    described: Any = [
        {"rows": rows, "of_rows": of, "failed": None if rows else "no"} for rows, of in sizes
    ]
    assert baselines.is_enough(described) is enough


def test_all_rows_whatever_it_takes_where_they_are_asked_for() -> None:
    finished, _ = act(spec_of(share=None), 100_000, 1.0, linear(1.0))
    assert of_baselines(finished) == [(name, None, None) for name in BASELINES["algorithms"]]
    assert all(
        each["spec"]["seconds"] is None for each in finished if each["spec"]["what"] == BASELINE
    )


def test_a_baseline_that_takes_too_long_is_given_up() -> None:
    finished, _ = act(spec_of(), 1_000_000, 60.0, lambda *_: None)
    assert len(of_baselines(finished)) == len(BASELINES["algorithms"])
    parts = [each["spec"] for each in finished if each["spec"]["what"] == BASELINE]
    assert {each["seconds"] for each in parts} == {MAX_SECONDS}
    assert baselines.find_compared([finished[-1]], 1) == []


def test_a_control_that_is_late_in_one_fold_is_none() -> None:
    late = (0, 2)
    parts: list[Any] = [
        {
            "spec": {"scope": fold, "rows": None},
            "result": {"failed": "it took too long" if fold == late else None},
        }
        for fold in [(0, 0), (0, 1), late]
    ]
    assert baselines.find_compared(parts, 3) == []


def auto(budget: float) -> Json:
    return {"algorithm": {"name": "auto", "parameters": {"budget_seconds": budget}}}


def test_a_plain_job_has_no_limit() -> None:
    assert baselines.seconds_for(spec_of(), 200.0) == math.inf


def test_auto_leaves_controls_what_is_left_a_tenth_at_most() -> None:
    for spent, seconds in ((1.0, 3.0), (29.0, 1.0), (29.9, 0.1), (31.0, -1.0)):
        for share in (TIME_FRACTION, None):
            found = baselines.seconds_for(spec_of(share=share, **auto(30.0)), spent)
            assert found == pytest.approx(seconds)


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
    parts: list[Any] = [*plan.next(finished)]
    first, *others = parts
    assert len(others) == 2
    assert all(each["seconds"] <= 1.0 / 3 for each in (first, *others))
    tried = result | {"rows": 1000, "of": 1000}
    finished.append({"spec": first, "result": tried})
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
        without = Plan(
            spec | {"baselines": {"algorithms": [], "skipped": None, "share": None}}, Rows(2_000)
        )
        assert plan.finishing(budget) - without.finishing(budget) == pytest.approx(seconds)
        finished: Json = [{"spec": {"what": FIT, "scope": None}, "result": {"elapsed": spent}}]
        assert [each["what"] for each in plan.next(finished)] == [BASELINE]
        assert baselines.seconds_for(spec, spent) >= seconds


def test_a_sample_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted by the job itself, on rows that are drawn by its seed."""
    monkeypatch.setattr("app.training.baselines.MAX_CELLS", 1)
    monkeypatch.setattr("app.training.baselines.MIN_ROWS", 60)
    drawn = []
    whole = fitting.fit_members

    def fit(members: Any, trial: Any, *more: Any) -> Any:
        drawn.append((members[0]["algorithm"], len(trial.train.y)))
        return whole(members, trial, *more)

    monkeypatch.setattr(fitting, "fit_members", fit)
    sampled = BASELINES | {"share": TIME_FRACTION}
    job = payload(tmp_path, noisy(), baselines=sampled, validation=HOLDOUT)
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
    again = payload(tmp_path, noisy(), baselines=sampled, validation=HOLDOUT)
    windows = run(again, lambda step, of, info: None)["baselines"]["windows"]
    assert windows == found["baselines"]["windows"]
    # A third of the rows is too little for a verdict; the differences are there.
    assert windows
    assert found["baselines"]["beats"] is None
    assert "less than half" in found["baselines"]["skipped"]


def test_a_control_that_takes_too_long_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.training.plan.MAX_SECONDS", 1e-12)
    monkeypatch.setattr("app.training.baselines.MAX_CELLS", 1)
    monkeypatch.setattr("app.training.baselines.MIN_ROWS", 100)
    job = payload(tmp_path, noisy(), baselines=BASELINES | {"share": 0.1}, validation=HOLDOUT)
    found = run(job, lambda step, of, info: None)
    for each in found["baselines"]["baselines"]:
        assert mentions(each["failed"], "1e-12")
    assert found["baselines"]["windows"] == []


def test_a_budget_that_is_spent_leaves_none(tmp_path: Path, sentences: Sentences) -> None:
    job = payload(tmp_path, noisy(120), baselines=BASELINES, validation=HOLDOUT, **auto(0.01))
    found = run(job, lambda step, of, info: None)
    assert found["baselines"]["baselines"] == []
    sentences(found["baselines"]["skipped"])
    assert np.isfinite(found["parts"]["validation"]["auc"]["value"])
