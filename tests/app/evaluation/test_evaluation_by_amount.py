"""Evaluations and comparisons by a column of amounts and costs: the stored figures are those of core on these rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.evaluation.comparisons import COMPARISONS
from app.evaluation.schemas import comparison_of, evaluation_of
from app.models import calibrations, curves, operating_points
from app.platform.tables import JobState
from core import metrics
from tests.app.evaluated_people import People, ask_comparison, evaluate, interval, train
from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.workbench import OWNER, Workbench
from tests.sentences import Sentences

COSTS = {
    "false_positive": {"fixed": 0.25, "rate": 0.0},
    "false_negative": {"fixed": 0.0, "rate": 1.0},
    "benefit": {"fixed": 0.0, "rate": 0.0},
    "review": 0.5,
}
CORE_COSTS = metrics.AmountCosts(0.25, metrics.Price(rate=1.0), review=0.5)


class PeopleOfWorth(People):
    """People with a balance that no model knows; some have 0."""

    def __init__(self, n: int, seed: int) -> None:
        super().__init__(n, seed)
        self.balance = np.where(
            np.arange(n) % 7, np.random.default_rng(seed).lognormal(size=n).round(2), 0.0
        )

    def csv(self) -> str:
        """The table as it is uploaded."""
        head, *lines = super().csv().splitlines()
        rows = [f"{line},{worth}" for line, worth in zip(lines, self.balance, strict=True)]
        return "\n".join([f"{head},balance", *rows, ""])


def test_value_and_costs_of_a_column(bench: Workbench, sentences: Sentences) -> None:
    model = train(bench, People(300, 0).upload(bench), "churn")
    people = PeopleOfWorth(420, 1)
    new = people.upload(bench, weight="w", group="g")
    found = evaluate(
        bench,
        "churn",
        new,
        level=0.9,
        at={"fpr": 0.2},
        amount="balance",
        costs=COSTS,
    )
    shown = json.loads(evaluation_of(found).model_dump_json())
    assert shown["amounts"]["curve"]
    assert (shown["amount"], shown["costs"]) == ("balance", COSTS)
    amounts = shown["amounts"]
    scores = people.scores(bench, model)
    rows: Any = {"level": 0.9, "sample_weight": people.weight, "group": people.group}
    assert [each["over"] for each in amounts["values"]] == list(metrics.amounts.OVERS)
    for each in amounts["values"]:
        value = metrics.value_caught(people.y, scores, people.balance, over=each["over"], **rows)
        assert interval(each["area"]) == pytest.approx(value.area)
        assert each["reason"] is None
        for recall, same in zip(each["recalls"], value.recalls, strict=True):
            assert (recall["share"], recall["threshold"]) == (same.share, same.threshold)
            assert interval(recall) == pytest.approx(same.recall)
        assert amounts["amount_of_positives"] == pytest.approx(value.amount)
        assert amounts["effective"] == pytest.approx(value.effective)
    assert len(amounts["curve"]) <= 100
    for axis in ("rows", "negatives", "amount_of_negatives", "value"):
        ends = [amounts["curve"][index][axis] for index in (0, -1)]
        assert ends == pytest.approx([0.0, 1.0])
    w, y = people.weight, people.y
    point = amounts["curve"][len(amounts["curve"]) // 2]
    over = scores >= point["threshold"]
    assert point["rows"] == pytest.approx(w[over].sum() / w.sum())
    assert point["negatives"] == pytest.approx(w[over & ~y].sum() / w[~y].sum())
    worth = w * people.balance
    assert point["value"] == pytest.approx(worth[over & y].sum() / worth[y].sum())
    cutoff = operating_points.point_on(
        bench.db.reading(curves.roc, OWNER, model.id, "validation"), fpr=0.2
    )
    calibration = bench.db.reading(calibrations.find_served, model)
    assert calibration is not None
    served = calibrations.served_of(calibration)
    expected = metrics.cost_report(
        people.y,
        scores,
        CORE_COSTS,
        people.balance,
        threshold=cutoff.threshold,
        probability=served.calibration.probability(scores),
        **rows,
    )
    costs = amounts["costs"]
    assert interval(costs["flag_none"]) == pytest.approx(expected.flag_none)
    assert interval(costs["flag_all"]) == pytest.approx(expected.flag_all)
    assert (costs["rows"], costs["threshold"]) == (w.sum(), cutoff.threshold)
    least = costs["least"]
    assert least["threshold"] == expected.least.threshold
    assert least["in_sample"] == pytest.approx(expected.least.in_sample)
    assert least["parts"] == 10
    for part, decision in (
        (least["held_out"], expected.least.held_out),
        (costs["at"], expected.at),
        (costs["by_probability"], expected.by_probability),
    ):
        assert decision is not None
        assert part["flagged"] == pytest.approx(decision.flagged)
        for name in ("cost", "saved_to_none", "saved_to_all"):
            assert interval(part[name]) == pytest.approx(getattr(decision, name))
    saves = expected.probability_saves
    assert saves is not None
    assert interval(costs["probability_saves"]) == pytest.approx(
        (saves.value, saves.low, saves.high)
    )
    assert costs["probability_saves"]["p_value"] == pytest.approx(saves.p_value)
    sentences(costs["note"])


def test_amounts_without_costs_and_costs_without_amounts(
    bench: Workbench, sentences: Sentences
) -> None:
    old = People(300, 0).upload(bench)
    train(bench, old, "churn")
    people = PeopleOfWorth(300, 1)
    new = people.upload(bench)
    found = evaluate(bench, "churn", new, amount="balance")
    assert found.metrics is not None
    assert found.metrics["by_amount"]["costs"] is None
    assert len(found.metrics["by_amount"]["values"]) == 3
    fixed = {"false_positive": {"fixed": 1.0}, "false_negative": {"fixed": 5.0}}
    found = evaluate(bench, "churn", new, costs=fixed)
    assert found.metrics is not None
    amounts = found.metrics["by_amount"]
    assert (amounts["column"], amounts["values"], amounts["curve"]) == (None, [], [])
    costs = amounts["costs"]
    assert (costs["at"], costs["threshold"]) == (None, None)
    assert costs["least"]["held_out"]["cost"]["value"] > 0.0
    # what was stored before, and evaluations without amounts, have none
    plain = evaluation_of(evaluate(bench, "churn", new))
    assert (plain.amount, plain.costs, plain.amounts) == (None, None, None)
    # positives that are worth nothing
    people.balance = np.where(people.y, 0.0, 1.0)
    found = evaluate(bench, "churn", people.upload(bench), amount="balance", costs=COSTS)
    shown = json.loads(evaluation_of(found).model_dump_json())["amounts"]
    (reason,) = {each["reason"] for each in shown["values"]}
    sentences(reason)
    assert shown["costs"]["least"]["threshold"] is None  # nothing is worth a review
    assert shown["costs"]["flag_none"] == {
        "value": 0.0,
        "low": 0.0,
        "high": pytest.approx(0.0127, abs=1e-3),
    }
    people.balance = np.where(people.y, 1.0, 0.0)
    found = evaluate(bench, "churn", people.upload(bench), amount="balance")
    shown = json.loads(evaluation_of(found).model_dump_json())["amounts"]
    assert [each["reason"] is None for each in shown["values"]] == [True, True, False]
    assert shown["curve"][1]["amount_of_negatives"] is None


def test_models_are_compared_by_costs(bench: Workbench) -> None:
    old = People(300, 0).upload(bench)
    first, second = train(bench, old, "a"), train(bench, old, "b", seed=5)
    people = PeopleOfWorth(400, 1)
    new = people.upload(bench, weight="w")
    asked = ask_comparison(bench, ["a", "b"], new, amount="balance", costs=COSTS)
    job = bench.work()
    assert job.state == JobState.SUCCEEDED, job.error
    row = bench.db.reading(COMPARISONS.find, OWNER, asked.id)
    shown = json.loads(comparison_of(row).model_dump_json())
    assert (shown["amount"], shown["costs"]) == ("balance", COSTS)
    expected = metrics.compare_costs(
        people.y,
        [people.scores(bench, model) for model in (first, second)],
        CORE_COSTS,
        people.balance,
        sample_weight=people.weight,
        names=[first.id, second.id],
    )
    costs = shown["result"]["costs"]
    (pair,) = costs["differences"]
    assert (pair["first"], pair["second"]) == (first.id, second.id)
    (same,) = expected.differences
    assert interval(pair) == pytest.approx((same.value, same.low, same.high))
    assert pair["adjusted_p_value"] == pytest.approx(same.adjusted_p_value)
    for one, report in zip(costs["models"], expected.reports, strict=True):
        assert one["threshold"] == report.threshold
        assert report.held_out is not None
        assert interval(one["held_out"]["cost"]) == pytest.approx(report.held_out.cost)
    plain = ask_comparison(bench, ["a", "b"], new)
    bench.work()
    row = bench.db.reading(COMPARISONS.find, OWNER, plain.id)
    without = comparison_of(row)
    assert without.result is not None
    assert (without.costs, without.result.costs) == (None, None)


@pytest.fixture(scope="module")
def ask(start: Callable[..., Service]) -> Callable[..., Any]:
    """POST an evaluation of a model, or a comparison of two, on people with odd columns, by a key of these scopes."""
    service = start()
    client = service.client(service.key())
    old = service.upload(client, People(120, 0).csv(), label="left", drop="w,g")
    service.train(client, old, name="churn")
    service.train(client, old, name="other", seed=3)
    lines = PeopleOfWorth(120, 1).csv().splitlines()
    more = ",day,code,empty,gaps,huge"
    rows = [
        f"{line},2026-01-{1 + i % 9:02d},c{i % 40},,{'' if i == 3 else i},{'1e101' if i == 3 else i}"
        for i, line in enumerate(lines[1:])
    ]
    new = service.upload(client, "\n".join([lines[0] + more, *rows, ""]), label="left", drop="w")

    def post(body: dict[str, Any], scopes: list[str] | None = None, at: str = "") -> Any:
        by = client if scopes is None else service.client(service.key(scopes=scopes))
        several = body.pop("several", False)
        models: dict[str, Any] = {"models": ["churn", "other"]} if several else {"model": "churn"}
        path = "/v1/comparisons" if several else "/v1/evaluations"
        return by.post(path + at, json={**models, "dataset_id": new, **body})

    return post


FREE = {"false_negative": {"fixed": 1}}


def test_bad_amounts_and_costs(ask: Callable[..., Any], sentences: Sentences) -> None:
    for body, code, pointer in (
        ({"amount": "planet"}, "unknown_column", "/amount"),
        ({"amount": "left"}, "invalid", "/amount"),
        ({"amount": "w"}, "invalid", "/amount"),
        ({"amount": "day"}, "invalid", "/amount"),
        ({"amount": "code"}, "invalid", "/amount"),
        ({"amount": "empty"}, "invalid", "/amount"),
        ({"amount": "gaps"}, "invalid", "/amount"),
        ({"amount": "huge"}, "invalid", "/amount"),
        ({"amount": "a"}, "invalid", "/amount"),
        ({"amount": ""}, "invalid", "/amount"),
        ({"amount": "x" * 300}, "invalid", "/amount"),
        ({"amount": "\x00"}, "invalid", "/amount"),
        ({"amount": 5}, "invalid", "/amount"),
        ({"costs": {}}, "invalid", "/costs"),
        ({"costs": FREE}, "invalid", "/costs"),
        (
            {"costs": {"review": 1}},
            "invalid",
            "/costs",
        ),
        ({"costs": {"review": -1}}, "invalid", "/costs/review"),
        ({"costs": {"review": 1e101} | FREE}, "invalid", "/costs/review"),
        ({"costs": {"review": 1e-101} | FREE}, "invalid", "/costs"),
        ({"costs": {"review": "1"} | FREE}, "invalid", "/costs/review"),
        ({"costs": {"review": True} | FREE}, "invalid", "/costs/review"),
        ({"costs": {"benefit": 1}}, "invalid", "/costs/benefit"),
        ({"costs": {"benefit": {"each": 1}}}, "invalid", "/costs/benefit/each"),
        ({"costs": {"tax": {"fixed": 1}}}, "invalid", "/costs/tax"),
        ({"costs": COSTS}, "invalid", "/amount"),
        ({"amount": "balance", "several": True}, "invalid", "/costs"),
        ({"amount": "planet", "costs": COSTS, "several": True}, "unknown_column", "/amount"),
        ({"costs": {}, "several": True}, "invalid", "/costs"),
    ):
        problem = refused(ask(dict(body)), 422, code)
        sentences(problem["errors"][0])
        assert problem["errors"][0]["pointer"] == pointer


def test_amounts_are_for_keys_that_may_read(ask: Callable[..., Any]) -> None:
    body = {"amount": "balance", "costs": COSTS}
    for several in (False, True):
        for at in ("", "/validate"):
            answer = ask(body | {"several": several}, ["train"], at)
            refused(answer, 403, "forbidden", "amount", "'read'")
        known = body | {"several": several}
        assert ask(known, ["train", "read"], "/validate").status_code == 200
    fixed = {"costs": {"review": 1, "benefit": {"fixed": 3}}}
    assert ask(fixed, ["train"], "/validate").status_code == 200
