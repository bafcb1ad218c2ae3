"""Costs by an amount of each row, and savings compared with another rule, on a real table, beside plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from tests.app.live_service import STRANGER, Service
from tests.app.refusals import refused
from tests.sentences import Sentences

GERMAN_CREDIT = Path(__file__).parents[3] / "examples" / "data" / "german-credit.csv"
FALSE_POSITIVE, LOSS, ROWS = 300.0, 0.6, 250
COSTS: dict[str, Any] = {
    "cost_false_positive": FALSE_POSITIVE,
    "cost_false_negative": LOSS,
    "amount": "amount",
}


class World:
    """A service with a model of German credit, trained on 700 rows and validated on the 300 others."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = service.client(service.key())
        table = pd.read_csv(GERMAN_CREDIT)
        table["one"] = 1
        table["now"] = np.where(table.checking == "below 0", "decline", "accept")
        table["rating"] = 100 - table.months + table.age / 10
        table["declined"] = (table.months > 30).map({True: "true", False: "false"})
        self.table = table.sample(frac=1.0, random_state=0, ignore_index=True)
        roles = {"label": "outcome", "positive": "bad"}
        upload = self.client
        train, self.held_out = self.table[:700], self.table[700:].reset_index(drop=True)
        first = service.upload(upload, train.to_csv(index=False), **roles)
        self.other = service.upload(upload, self.held_out.to_csv(index=False), **roles)
        validation = {"method": "dataset", "dataset_id": self.other}
        service.train(upload, first, name="credit", validation=validation)
        whole = service.upload(upload, self.table.to_csv(index=False), **roles)
        service.train(upload, whole, name="split", validation={"method": "holdout"})
        folds = {"method": "cross_validation", "folds": 3, "repeats": 2}
        service.train(upload, whole, name="folds", validation=folds)

    def point(self, model: str = "credit", **query: Any) -> dict[str, Any]:
        answer = self.client.get(f"/v1/models/{model}/operating-point", params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def scores(self) -> np.ndarray:
        features = self.client.get("/v1/models/credit").json()["features"]
        names = [each["name"] for each in features]
        rows = self.held_out[names].astype(object).where(self.held_out[names].notna(), None)
        rows["declined"] = self.held_out["declined"] == "true"
        body = {"columns": names, "data": rows.to_numpy().tolist()}
        answer = self.client.post("/v1/models/credit/score", json=body)
        assert answer.status_code == 200, answer.text
        return np.array(answer.json()["scores"])


@pytest.fixture(scope="module")
def world(start: Callable[..., Service]) -> World:
    return World(start())


def losses(world: World, flagged: np.ndarray) -> np.ndarray:
    """The cost of each row, by its definition."""
    bad, amount = (world.held_out.outcome == "bad").to_numpy(), world.held_out.amount.to_numpy()
    missed = np.where(bad & ~flagged, LOSS * amount, 0.0)
    return np.where(~bad & flagged, FALSE_POSITIVE, missed)


def test_costs_and_savings_are_those_of_the_rows(world: World) -> None:
    scores = world.scores()
    threshold = float(np.sort(scores)[::-1][80])
    flagged = scores >= threshold
    declined = (world.held_out.now == "decline").to_numpy()
    found = world.point(
        threshold=threshold, **COSTS, rule="now", rule_flags="decline", total_rows=ROWS
    )
    cost = found["cost"]
    own, rule = losses(world, flagged).mean(), losses(world, declined).mean()
    none, every = (losses(world, np.full(300, each)).mean() for each in (False, True))
    share = flagged.mean()
    assert found["flagged"]["value"] == pytest.approx(share)
    assert cost["value"] == pytest.approx(own)
    assert (cost["flag_none"], cost["flag_all"]) == pytest.approx((none, every))
    assert cost["of_rule"]["value"] == pytest.approx(rule)
    assert cost["rule_flagged"] == pytest.approx(declined.mean())
    assert cost["saved_to_rule"]["value"] == pytest.approx(rule - own)
    at_random = share * every + (1 - share) * none
    assert cost["saved_to_random"]["value"] == pytest.approx(at_random - own)
    assert (cost["amount"], cost["rule"]) == ("amount", "now")
    totals = cost["totals"]
    assert totals["rows"] == ROWS
    assert totals["cost"]["value"] == pytest.approx(ROWS * own)
    assert totals["flag_none"] == pytest.approx(ROWS * none)
    for name in ("saved_to_random", "saved_to_rule"):
        for end in ("value", "low", "high"):
            assert totals[name][end] == pytest.approx(ROWS * cost[name][end])
        assert cost[name]["low"] < cost[name]["value"] < cost[name]["high"]


@pytest.mark.parametrize(
    ("rule", "flags", "decides"),
    [
        ("declined", None, lambda rows: rows.declined == "true"),
        ("declined", "false", lambda rows: rows.declined == "false"),
        ("rating", "low", None),
        ("months", "high", None),
        ("months", None, None),
    ],
)
def test_a_rule_is_a_decision_or_a_score(
    world: World, rule: str, flags: str | None, decides: Any
) -> None:
    scores = world.scores()
    threshold = float(np.sort(scores)[::-1][60])
    own = losses(world, scores >= threshold).mean()
    asked = {"rule": rule} | ({} if flags is None else {"rule_flags": flags})
    cost = world.point(threshold=threshold, **COSTS, **asked)["cost"]
    if decides is not None:
        other = losses(world, decides(world.held_out).to_numpy()).mean()
        assert cost["of_rule"]["value"] == pytest.approx(other)
    else:
        n = int((scores >= threshold).sum())
        by = world.held_out[rule].to_numpy() * (-1.0 if flags == "low" else 1.0)
        last = np.sort(by)[::-1][n - 1]
        above, tied = by > last, by == last
        part = (n - above.sum()) / tied.sum()  # of a tie a part is flagged
        with_tie, without = (losses(world, each).mean() for each in (above | tied, above))
        other = part * with_tie + (1 - part) * without
        assert cost["of_rule"] is None
    assert cost["saved_to_rule"]["value"] == pytest.approx(other - own)


def test_the_lowest_cost_is_that_of_all_thresholds(world: World) -> None:
    scores = world.scores()
    found = world.point(**COSTS)
    costs = {each: losses(world, scores >= each).mean() for each in [np.inf, *np.unique(scores)]}
    assert found["cost"]["value"] == pytest.approx(min(costs.values()))
    assert found["threshold"] == pytest.approx(min(costs, key=lambda each: costs[each]))
    query = {"flagged": 0.1, **COSTS}
    # The cheapest of all, if it flags fewer; else as many as may be flagged.
    most = min(at for at in costs if (scores >= at).mean() <= 0.1)
    within = costs[max(most, min(costs, key=lambda each: costs[each]))]
    assert world.point(**query)["cost"]["value"] == pytest.approx(within)
    path = "/v1/models/credit/operating-points"
    along = world.client.get(path, params={**query, "points": 50}).json()
    points = along["points"]
    assert points[along["least_cost"]]["cost"]["value"] == pytest.approx(min(costs.values()))
    assert points[along["of_flagged"]]["cost"]["value"] == pytest.approx(within)
    for each in points:
        at = np.inf if each["threshold"] is None else each["threshold"]
        assert each["cost"]["value"] == pytest.approx(losses(world, scores >= at).mean())
    included = world.client.get(
        "/v1/models/credit",
        params={"include": "operating_points,operating_point", "points": 50, **query},
    ).json()["included"]
    assert included["operating_points"]["points"] == points
    assert included["operating_point"]["cost"]["value"] == pytest.approx(within)


@pytest.mark.parametrize("model", ["credit", "split", "folds"])
@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_an_amount_of_one_changes_nothing(
    world: World, model: str, prevalence: float | None
) -> None:
    """The rows and the curve say the same, whatever the validation was."""
    costs = {"cost_false_positive": 1, "cost_false_negative": 5}
    asked = costs | ({} if prevalence is None else {"prevalence": prevalence})
    path = f"/v1/models/{model}/operating-points"
    plain, by_row = (
        world.client.get(path, params={**asked, **more}).json() for more in ({}, {"amount": "one"})
    )
    assert plain["least_cost"] == by_row["least_cost"]
    for one, other in zip(plain["points"], by_row["points"], strict=True):
        for name in ("flag_none", "flag_all"):
            assert other["cost"][name] == pytest.approx(one["cost"][name])
        assert other["cost"]["value"] == pytest.approx(one["cost"]["value"])
        saved = (each["cost"]["saved_to_random"]["value"] for each in (one, other))
        assert next(saved) == pytest.approx(next(saved))


def test_what_cannot_be_asked(world: World, sentences: Sentences) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"amount": "amount", "cost_false_negative": None}, "cost_false_negative"),
        ({"amount": "loan"}, "amount"),
        ({"amount": "purpose"}, "amount"),
        ({"amount": "outcome"}, "amount"),
        ({"amount": ""}, "amount"),
        ({"amount": "savings"}, "amount"),
        ({"rule": "loan"}, "rule"),
        ({"rule": "now"}, "rule_flags"),
        ({"rule": "now", "rule_flags": "x"}, "rule_flags"),
        ({"rule": "declined", "rule_flags": "x"}, "rule_flags"),
        ({"rule": "months", "rule_flags": "1"}, "rule_flags"),
        ({"rule_flags": "1", "amount": "amount"}, "rule_flags"),
        ({"amount": "amount", "on": "train"}, "on"),
        ({"amount": "amount", "total_rows": 0}, "total_rows"),
        ({"amount": "amount", "total_rows": "x"}, "total_rows"),
    ]
    for query, parameter in cases:
        asked = {"cost_false_positive": 1, "cost_false_negative": 5, "threshold": 0} | query
        params = {name: value for name, value in asked.items() if value is not None}
        for path in ("operating-point", "operating-points"):
            left = {
                n: v for n, v in params.items() if path == "operating-point" or n != "threshold"
            }
            answer = world.client.get(f"/v1/models/credit/{path}", params=left)
            assert answer.status_code == 422, answer.text
            (error,) = answer.json()["errors"]
            assert error["parameter"] == parameter
        sentences(error["detail"].replace(world.other, "ds_…"))


def test_without_costs_and_for_others_there_is_nothing(world: World) -> None:
    path = "/v1/models/credit/operating-point"
    answer = world.client.get(path, params={"threshold": 0, "amount": "amount"})
    refused(answer, 422, "invalid_parameter", "amount", "cost_false_positive")
    stranger = world.service.client(world.service.key(STRANGER))
    model = world.client.get("/v1/models/credit").json()["id"]
    answer = stranger.get(f"/v1/models/{model}/operating-point", params=COSTS)
    refused(answer, 404, "not_found")
    evaluated = world.client.post(
        "/v1/evaluations", json={"model": "credit", "dataset_id": world.other}
    ).json()
    world.service.work()
    path = f"/v1/evaluations/{evaluated['id']}/operating-point"
    answer = world.client.get(path, params={"threshold": 0, **COSTS})
    refused(answer, 422, "invalid", "amount")


def test_scores_go_with_their_dataset(world: World) -> None:
    client: httpx.Client = world.client
    roles = {"label": "outcome", "positive": "bad"}
    dataset = world.service.upload(client, world.table.to_csv(index=False), **roles)
    world.service.train(client, dataset, name="gone")
    assert world.point("gone", **COSTS)["cost"]["amount"] == "amount"
    assert client.delete(f"/v1/datasets/{dataset}").status_code == 204
    answer = client.get("/v1/models/gone/operating-point", params=COSTS)
    refused(answer, 409, "no_held_out_scores")
    assert client.delete(f"/v1/trash/{dataset}").status_code == 204
    refused(client.get("/v1/models/gone/operating-point", params=COSTS), 409, "no_held_out_scores")
    assert world.point("gone", threshold=0)["cost"] is None
