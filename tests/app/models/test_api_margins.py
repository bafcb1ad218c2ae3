"""Margins over HTTP: the distribution, bounds at a theta and delta, and what is refused."""

from __future__ import annotations

import httpx
import pytest

from tests.app.live_service import Service, table
from tests.app.refusals import refused

BOUNDS = ["theorem_2", "corollary_4", "equation_2", "corollary_5", "held_out"]


@pytest.fixture(scope="module")
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.fixture(scope="module")
def address(small: Service, client: httpx.Client) -> str:
    """Where a trained model's margins are."""
    job = small.train(client, small.upload(client, table(400)))
    return f"/v1/models/{job['model_id']}/margins"


def test_the_report(client: httpx.Client, address: str) -> None:
    report = client.get(address).json()
    assert (report["on"], report["theta"], report["delta"]) == ("train", 0.1, 0.05)
    thetas = [share["theta"] for share in report["distribution"]]
    fractions = [share["fraction"] for share in report["distribution"]]
    assert thetas == sorted(set(thetas))
    assert fractions == sorted(fractions)
    assert (thetas[0], fractions[-1]) == (report["margin"], 1.0)
    assert report["smooth_margin"] < report["margin"]
    assert [bound["name"] for bound in report["bounds"]] == BOUNDS
    for bound in report["bounds"]:
        assert bound["applies"] == (not bound["reasons"])
        if bound["value"] is not None:
            assert bound["value"] == pytest.approx(bound["margin_fraction"] + bound["epsilon"])
            assert bound["vacuous"] == (bound["value"] >= 1)
    losses = report["losses"]
    assert losses["total"] == len(losses["data"]) == report["rounds"]["total"]
    for loss in losses["data"]:
        squares = loss["f"] ** 2 - loss["f_skew"] ** 2
        assert squares == pytest.approx(4 * loss["f_tilde"], rel=1e-6)
    assert losses["data"][-1]["smooth_margin"] == pytest.approx(report["smooth_margin"])
    rounds = report["rounds"]
    assert rounds["total"] == len(rounds["data"])
    assert rounds["holds"] == sum(shown["holds"] for shown in rounds["data"])
    first = rounds["data"][0]
    limit = 2 / 3 * (1 - first["edge"]) * (1 - first["edge"] ** 2)
    assert first["most_tied"] == pytest.approx(limit)
    assert first["holds"] == (first["tied"] < limit)


def test_theta_and_delta_are_the_callers(client: httpx.Client, address: str) -> None:
    plain = client.get(address).json()
    asked = client.get(f"{address}?theta=1&delta=0.5&max_rounds=2").json()
    assert (asked["theta"], asked["delta"]) == (1.0, 0.5)
    assert [shown["round"] for shown in asked["rounds"]["data"]] == [1, 2]
    assert asked["rounds"]["total"] == plain["rounds"]["total"]
    for before, after in zip(plain["bounds"], asked["bounds"], strict=True):
        if before["epsilon"] is not None and after["epsilon"] is not None:
            assert after["epsilon"] < before["epsilon"]


def test_where_eq_2_has_no_value_it_is_null(client: httpx.Client, address: str) -> None:
    bound = client.get(f"{address}?theta=0.0001").json()["bounds"][2]
    assert (bound["name"], bound["value"], bound["epsilon"]) == ("equation_2", None, None)
    assert bound["vacuous"]
    assert not bound["applies"]


WRONG = {
    **dict.fromkeys(("theta=0", "theta=1e-7", "theta=1.01", "theta=nan", "theta=inf"), "theta"),
    **dict.fromkeys(("delta=0", "delta=1", "delta=-inf", "delta=x"), "delta"),
    **dict.fromkeys(("max_rounds=-1", "max_rounds=100001"), "max_rounds"),
}


def test_bad_queries_are_refused_by_name(client: httpx.Client, address: str) -> None:
    for query, parameter in WRONG.items():
        problem = refused(client.get(f"{address}?{query}"), 422, "invalid")
        assert [error["parameter"] for error in problem["errors"]] == [parameter], query


def test_extremes_have_an_answer(client: httpx.Client, address: str) -> None:
    for query in ("theta=1e-6", "delta=1e-308", "theta=1e-6&delta=5e-324"):
        answer = client.get(f"{address}?{query}")
        assert answer.status_code == 200
        assert all(bound["vacuous"] for bound in answer.json()["bounds"][:4])


def test_a_model_without_margins_says_why(small: Service, client: httpx.Client) -> None:
    dataset_id = small.upload(client, "a,left\n" + "1,no\n1,yes\n" * 20)
    job = small.train(client, dataset_id, validation={"method": "none"})
    answer = client.get(f"/v1/models/{job['model_id']}/margins")
    refused(answer, 404, "no_margins", "combine weak rankers with values 0 and 1")
