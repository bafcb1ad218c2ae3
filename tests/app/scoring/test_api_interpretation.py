"""Importance and partial dependence over HTTP: what they answer, and what they refuse."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest

from tests.app import refusals
from tests.app.live_service import NAMES, Service, table


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def model(shared: Service, client: httpx.Client) -> str:
    """The address of a trained model."""
    job = shared.train(client, shared.upload(client, table(400)), name="churn")
    return f"/v1/models/{job['model_id']}"


def refused(answer: httpx.Response, status: int, code: str, parameter: str = "feature") -> str:
    """Check a problem's status, code and parameter; returns its detail."""
    problem = refusals.refused(answer, status, code)
    if status == 422:
        assert {error["parameter"] for error in problem["errors"]} == {parameter}
    return str(problem["detail"])


def test_importance(client: httpx.Client, model: str) -> None:
    found = client.get(f"{model}/importance").json()
    assert found["method"] == "mean_absolute_contribution"
    assert "mean size" in found["description"].lower()
    assert found["on"] == "train"
    assert found["label"] is None
    assert sorted(feature["name"] for feature in found["features"]) == sorted(NAMES)
    sizes = [feature["importance"] for feature in found["features"]]
    assert sizes == sorted(sizes, reverse=True)
    assert found["features"][-1]["name"] == "score 1"  # noise
    assert client.get("/v1/models/churn:1/importance").json() == found


def test_dependence_on_one_feature(client: httpx.Client, model: str) -> None:
    address = f"{model}/partial-dependence"
    found = client.get(address, params={"feature": "age", "points": 10}).json()
    assert f"/v1/models/{found['model_id']}" == model
    assert (found["on"], found["label"], found["rows"]) == ("train", None, 300)
    (age,) = found["features"]
    assert (age["name"], age["type"]) == ("age", "numeric")
    assert len(age["values"]) == len(found["scores"]) == 10
    assert age["values"] == sorted(age["values"])
    assert found["scores"][-1] > found["scores"][0]
    held = client.get(address, params={"feature": "age", "on": "validation"}).json()
    assert (held["on"], held["rows"]) == ("validation", 100)
    assert len(held["scores"]) == 20


def test_dependence_on_two_features_one_of_which_may_be_missing(
    client: httpx.Client, model: str
) -> None:
    asked: dict[str, Any] = {"feature": ["score 1", "age"], "points": 5}
    found = client.get(f"{model}/partial-dependence", params=asked).json()
    assert [axis["name"] for axis in found["features"]] == ["score 1", "age"]
    assert [len(axis["values"]) for axis in found["features"]] == [6, 5]
    assert found["features"][0]["values"][-1] is None
    assert None not in found["features"][1]["values"]
    assert [len(row) for row in found["scores"]] == [5] * 6


def test_categories_and_booleans_are_shown_as_they_came(
    shared: Service, client: httpx.Client
) -> None:
    lines = ["colour,member,left"]
    for i in range(120):
        colour, member = ["red", "green", ""][i % 3], ["true", "false"][i % 2]
        lines.append(f"{colour},{member},{'yes' if i % 3 == 0 or i % 7 == 0 else 'no'}")
    dataset_id = shared.upload(client, "\n".join(lines) + "\n")
    job = shared.train(client, dataset_id, algorithm={"name": "treerank"})
    asked = {"feature": ["colour", "member"]}
    found = client.get(f"/v1/models/{job['model_id']}/partial-dependence", params=asked).json()
    colour, member = found["features"]
    assert (colour["type"], colour["values"]) == ("categorical", ["green", "red", None])
    assert (member["type"], member["values"]) == ("boolean", [False, True])
    assert found["scores"][1][0] > found["scores"][0][0]


def test_a_tree_as_json_text_and_picture(shared: Service, client: httpx.Client) -> None:
    job = shared.train(client, shared.upload(client), algorithm={"name": "treerank"}, name="oak")
    address = f"/v1/models/{job['model_id']}/structure"
    nodes = client.get(address).json()["nodes"]
    leaves = sum("score" in node for node in nodes)
    text = client.get(address, params={"format": "text"})
    assert text.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert text.text.startswith(f"ranking tree of {leaves} leaves, training AUC 0.")
    assert all(node["to_top"]["words"] in text.text for node in nodes if "to_top" in node)
    drawn = client.get(address, params={"format": "svg"})
    assert drawn.headers["Content-Type"].startswith("image/svg+xml")
    assert drawn.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert ET.fromstring(drawn.content).find("{*}title").text == "oak:1"
    found = client.get(f"/v1/models/{job['model_id']}/importance").json()
    assert found["method"] == "squared_auc_gain"
    for feature in found["features"]:
        assert feature["root"] == pytest.approx(feature["importance"] ** 0.5)
        assert feature["auc_gain"] >= feature["root"] - 1e-12


def test_other_models_have_no_picture(client: httpx.Client, model: str) -> None:
    for format in ("svg", "text"):
        answer = client.get(f"{model}/structure", params={"format": format})
        assert "RankBoost" in refused(answer, 422, "not_a_tree", "format")
    refused(client.get(f"{model}/structure?format=png"), 422, "invalid", "format")
    assert client.get(f"{model}/structure?format=json").json()["type"] == "stumps"


def test_other_features_are_refused(client: httpx.Client, model: str) -> None:
    def ask(**params: Any) -> httpx.Response:
        return client.get(f"{model}/partial-dependence", params=params)

    detail = refused(ask(feature="wage"), 422, "unknown_feature")
    assert detail == "feature 'wage' is unknown; the model has age, income, score 1"
    assert "given once or twice, got 3" in refused(ask(feature=NAMES), 422, "invalid")
    assert "'age' twice" in refused(ask(feature=["age", "age"]), 422, "duplicate_feature")
    assert refused(ask(), 422, "invalid") == "feature is required"
    refused(ask(feature=""), 422, "unknown_feature")
    refused(ask(feature="age", points=1), 422, "invalid", "points")
    refused(ask(feature="age", points=101), 422, "invalid", "points")
    refused(ask(feature="age", on="test"), 422, "invalid", "on")
    refused(ask(feature="age", label="left"), 422, "invalid", "label")
    refused(client.get(f"{model}/importance?label=left"), 422, "invalid", "label")


def test_variables_alone_and_together(client: httpx.Client, model: str) -> None:
    address = f"{model}/variable-dependence"
    found = client.get(address, params={"feature": ["score 1", "age", "income"]}).json()
    assert f"/v1/models/{found['model_id']}" == model
    assert (found["on"], found["rows"]) == ("train", 100)
    assert found["features"] == ["score 1", "age", "income"]
    noise, age, income = found["main"]
    assert 0 <= noise < min(age, income)
    for j, row in enumerate(found["joint"]):  # stumps only add up
        assert row == pytest.approx([0.0] * 3, abs=1e-9)
        assert row[j] == 0.0
    assert client.get(address, params={"feature": "age", "on": "validation"}).json()["rows"] == 100

    def ask(**params: Any) -> httpx.Response:
        return client.get(address, params=params)

    assert "1 to 10 times, got 11" in refused(ask(feature=["age"] * 11), 422, "invalid")
    assert "'age' twice" in refused(ask(feature=["age", "income", "age"]), 422, "duplicate_feature")
    assert refused(ask(), 422, "invalid") == "feature is required"
    refused(ask(feature="wage"), 422, "unknown_feature")
    refused(ask(feature="age", on="test"), 422, "invalid", "on")
    assert client.get("/v1/models/none/variable-dependence?feature=age").status_code == 404


def test_trees_let_variables_act_together(shared: Service, client: httpx.Client) -> None:
    algorithm = {"name": "treerank"}
    job = shared.train(client, shared.upload(client, table(400)), algorithm=algorithm)
    asked = {"feature": ["age", "income"]}
    found = client.get(f"/v1/models/{job['model_id']}/variable-dependence", params=asked).json()
    assert found["joint"][0][1] == found["joint"][1][0] > 0.0


def test_only_so_many_are_averaged_at_once(
    shared: Service, client: httpx.Client, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.dependencies.COMPUTATION_WAIT_SECONDS", 0.01)
    turns = shared.context.computations
    taken = 0
    while turns.acquire(blocking=False):
        taken += 1
    answer = client.get(f"{model}/partial-dependence?feature=age")
    assert answer.headers["Retry-After"] == "1"
    refused(answer, 429, "too_many")
    turns.release()
    assert client.get(f"{model}/partial-dependence?feature=age").status_code == 200
    refused(client.get(f"{model}/partial-dependence?feature=wage"), 422, "unknown_feature")
    assert client.get(f"{model}/partial-dependence?feature=age").status_code == 200
    turns.release(taken - 1)
