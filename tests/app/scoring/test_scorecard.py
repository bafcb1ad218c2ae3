"""A scorecard adds up: the points of a row's values are the row's score on another scale."""

from __future__ import annotations

import math
from typing import Any

import httpx
import numpy as np
import pytest

from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.long_form import long_form, rest

ROWS = 300


def people(rows: int = ROWS) -> str:
    """A table with a number that is missing for some, a category and a label."""
    rng = np.random.default_rng(3)
    lines = ["amount,purpose,bad"]
    for _ in range(rows):
        amount, purpose = rng.normal(10, 3), ("car", "house", "")[int(rng.integers(3))]
        bad = 0.4 * (amount - 10) + (purpose == "car") + rng.logistic() > 0.5
        shown = "" if rng.random() < 0.1 else f"{amount:.2f}"
        lines.append(f"{shown},{purpose},{'yes' if bad else 'no'}")
    return "\n".join([*lines, ""])


@pytest.fixture(scope="module")
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.fixture(scope="module")
def dataset(small: Service, client: httpx.Client) -> str:
    return small.upload(client, people(), label="bad", positive="yes")


def train(small: Service, client: httpx.Client, dataset: str, **algorithm: Any) -> str:
    job = small.train(client, dataset, name="card", baselines=None, algorithm=algorithm)
    assert job["state"] == "succeeded", job
    return f"/v1/models/{job['output']['id']}"


def points_of(card: dict[str, Any], row: dict[str, Any]) -> float:
    """Return the points of a row by the table alone."""
    total: float = card["base_points"]
    for each in card["characteristics"]:
        value, special = row[each["name"]], None
        specials = [one["low"] for one in each["attributes"] if one["of"] == "special"]
        for one in each["attributes"]:
            low = -math.inf if one["low"] is None else one["low"]
            high = math.inf if one["high"] is None else one["high"]
            if one["of"] == "special" and value == one["low"]:
                special = one["points"]
            if one["of"] == "unit" and value is not None:
                total += one["points"] * value
            elif (
                (one["of"] == "missing" and value is None)
                or (one["of"] == "category" and one["category"] == value)
                or (
                    one["of"] == "values"
                    and value is not None
                    and value not in specials
                    and low < value <= high
                )
            ):
                total += one["points"]
        total += special or 0.0
    return total


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "logistic"},
        *rest(
            {"name": "additive", "n_pairs": 0, "n_bags": 2, "max_rounds": 200},
            {"name": "scorecard"},
        ),
        {"name": "scorecard", "special_values": {"amount": [9.7]}, "bins": {"amount": [8.0, 12.0]}},
    ],
)
def test_the_points_of_a_row_add_up_to_its_score(
    small: Service, client: httpx.Client, dataset: str, algorithm: dict[str, Any]
) -> None:
    model = train(small, client, dataset, **algorithm)
    scale = {"pdo": 40.0, "base_score": 500.0, "base_odds": 20.0}
    card = client.get(f"{model}/scorecard", params=scale).json()
    assert card["complete"]
    assert {name: card[name] for name in scale} == scale
    rows = [
        {"amount": amount, "purpose": purpose}
        for amount in (4.0, 9.7, 10.0, 17.5, None)
        for purpose in ("car", "house", None)
    ]
    scores = client.post(f"{model}/score", json={"rows": rows}).json()["scores"]
    has_range = algorithm["name"] != "logistic"  # its numbers have points per unit
    assert (card["lowest"] is not None, card["highest"] is not None) == (has_range, has_range)
    for row, score in zip(rows, scores, strict=True):
        expected = 500.0 - 40.0 / math.log(2) * (math.log(20.0) + score)
        assert points_of(card, row) == pytest.approx(expected)
        assert not has_range or card["lowest"] - 1e-6 <= expected <= card["highest"] + 1e-6
    for each in card["characteristics"]:
        for one in each["attributes"]:
            assert one["odds_ratio"] == pytest.approx(math.exp(one["weight"]))
            assert one["points"] == pytest.approx(-40.0 / math.log(2) * one["weight"])
    usual = client.get(f"{model}/scorecard").json()
    assert (usual["pdo"], usual["base_score"], usual["base_odds"]) == (20, 600, 50)


@long_form
def test_the_odds_of_the_scale_are_compared_with_the_calibration(
    small: Service, client: httpx.Client, dataset: str
) -> None:
    model = train(small, client, dataset, name="scorecard")
    rows = [{"amount": amount, "purpose": "car"} for amount in (4.0, 10.0, 17.5)]
    found = client.post(f"{model}/score", json={"rows": rows}).json()
    for score, p in zip(found["scores"], found["probabilities"], strict=True):
        scale = {"base_odds": math.exp(-score)}  # the base score is the points of this row
        card = client.get(f"{model}/scorecard", params=scale).json()
        assert card["calibrated_odds"] == pytest.approx((1.0 - p) / p)
    body = {"method": "none"}
    job = small.train(
        client,
        dataset,
        name="card",
        baselines=None,
        algorithm={"name": "scorecard"},
        validation=body,
    )
    card = client.get(f"/v1/models/{job['output']['id']}/scorecard").json()
    assert card["calibrated_odds"] is None


def test_pairs_are_named_and_make_it_incomplete(
    small: Service, client: httpx.Client, dataset: str
) -> None:
    model = train(small, client, dataset, name="additive", n_pairs=1, n_bags=2, max_rounds=200)
    card = client.get(f"{model}/scorecard").json()
    pairs = client.get(f"{model}/structure").json()["pairs"]
    assert card["complete"] is not bool(pairs)
    empty = [each["name"] for each in card["characteristics"] if not each["attributes"]]
    assert empty == [" × ".join(each["features"]) for each in pairs]


def test_what_has_no_scorecard(small: Service, client: httpx.Client, dataset: str) -> None:
    model = train(small, client, dataset, name="rankboost", n_rounds=3)
    refused(client.get(f"{model}/scorecard"), 404, "no_scorecard", "rankboost", "logistic")
    refused(client.get("/v1/models/nobody/scorecard"), 404, "not_found")


def test_a_wrong_scale_is_refused(small: Service, client: httpx.Client, dataset: str) -> None:
    for name, value in (
        *(("pdo", "0"), ("pdo", "-1"), ("pdo", "nan"), ("pdo", "1e9"), ("pdo", "x")),
        *(("base_score", "inf"), ("base_odds", "0"), ("base_odds", "1e10")),
    ):
        refused(client.get(f"/v1/models/card/scorecard?{name}={value}"), 422, "invalid", name)
