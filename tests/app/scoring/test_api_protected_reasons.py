"""Reasons of models with protected columns as features: marked, and left out on request."""

from __future__ import annotations

import io
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from tests.app.live_service import Service
from tests.app.models.test_api_groups import people
from tests.long_form import rest

ROW = {"income": 0.4, "sex": "male", "age": 33, "job": "j3"}
ALGORITHMS = [
    {"name": "rankboost", "n_rounds": 10},
    *rest({"name": "treerank_forest", "n_trees": 3}),
]


@pytest.fixture(scope="module", params=ALGORITHMS, ids=lambda each: each["name"])
def model(request: pytest.FixtureRequest, shared: Service) -> tuple[httpx.Client, str]:
    client = shared.client(shared.key())
    text, name = people(300, 0)[0], f"p-{request.param['name']}"
    dataset = shared.upload(client, text, name=name, protected="sex")
    job = shared.train(
        client, dataset, name=name, algorithm=request.param, protected_features=["sex"]
    )
    assert job["state"] == "succeeded", job
    return client, f"/v1/models/{name}"


def ask(model: tuple[httpx.Client, str], **asked: Any) -> httpx.Response:
    client, address = model
    terms: dict[str, Any] = {"reasons": 20, "direction": "both", **asked}
    return client.post(f"{address}/score", params=terms, json={"rows": [ROW]})


def test_protected_columns_are_marked_and_left_out(model: tuple[httpx.Client, str]) -> None:
    whole, without = ask(model).json(), ask(model, exclude_protected="true").json()
    by_column = {reason["columns"][0]: reason for reason in whole["reasons"][0]}
    assert by_column["sex"]["protected"] is True
    assert by_column["income"]["protected"] is False
    assert whole["reference"]["protected_features"] == ["sex", "age"]  # the age by its name
    assert whole["reference"]["protected_excluded"] is False
    assert without["reference"]["protected_excluded"] is True
    assert whole["reference"]["warning"] != without["reference"]["warning"]
    left = {reason["columns"][0]: reason for reason in without["reasons"][0]}
    assert not {"sex", "age"} & set(left)
    assert left["income"] == by_column["income"]
    hidden = sum(by_column[name]["contribution"] for name in ("sex", "age") if name in by_column)
    assert without["reasons_rest"][0] == pytest.approx(whole["reasons_rest"][0] + hidden)
    assert without["scores"] == whole["scores"]


def test_a_code_of_several_columns_leaves_out_the_protected_one(
    model: tuple[httpx.Client, str],
) -> None:
    client, address = model
    before = {each["columns"][0]: each for each in ask(model).json()["reasons"][0]}
    entries = [{"code": "R1", "text": "Person", "columns": ["income", "sex"]}]
    found = client.put(f"{address}/reason-codes", json={"entries": entries})
    assert found.is_success, found.text
    try:
        for exclude in ("false", "true"):
            reasons = ask(model, exclude_protected=exclude).json()["reasons"][0]
            own = next(each for each in reasons if each["code"] == "R1")
            names = ["income"] if exclude == "true" else ["income", "sex"]
            assert own["columns"] == names
            assert own["protected"] is (exclude == "false")
            parts = sum(before[name]["contribution"] for name in names)
            assert own["contribution"] == pytest.approx(parts)
    finally:
        answer = client.put(
            f"{address}/reason-codes", json={"entries": []}, headers={"If-Match": '"1"'}
        )
        assert answer.is_success, answer.text


def test_a_batch_leaves_them_out_too(shared: Service, model: tuple[httpx.Client, str]) -> None:
    client, address = model
    terms: dict[str, Any] = {"reasons": 4, "direction": "both", "exclude_protected": "true"}
    answer = client.post(
        "/v1/batch-scores",
        params=terms | {"model": address.rpartition("/")[2]},
        content=people(50, 1)[0].encode(),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 202, answer.text
    shared.work()
    found = client.get(answer.headers["Location"]).json()
    assert found["reasons"]["exclude_protected"] is True
    table = pq.read_table(io.BytesIO(client.get(f"/v1/batch-scores/{found['id']}/result").content))
    texts = {text for k in range(1, 5) for text in table[f"reason_{k}_text"].to_pylist()}
    assert any(text and text.startswith("income") for text in texts)
    assert not any(text and text.startswith(("sex", "age")) for text in texts)
    dataset = client.get(f"{address}").json()["dataset"]["id"]
    body = {"model": address.rpartition("/")[2], "dataset_id": dataset, "reasons": 2}
    other = client.post("/v1/batch-scores", json=body | {"exclude_protected": True})
    assert other.status_code == 202, other.text
    shared.work()
    shown = client.get(other.headers["Location"]).json()
    assert (shown["status"], shown["reasons"]["exclude_protected"]) == ("ready", True)
    bad = client.post("/v1/batch-scores", json=body | {"exclude_protected": "perhaps"})
    assert bad.status_code == 422


def test_bad_values(model: tuple[httpx.Client, str]) -> None:
    for asked, parameter in (
        ({"exclude_protected": "maybe"}, "exclude_protected"),
        ({"exclude_protected": "1"}, "exclude_protected"),
        ({"exclude_protected": "true", "reasons": None}, "exclude_protected"),
    ):
        client, address = model
        terms = {"reasons": 3} | asked
        answer = client.post(
            f"{address}/score",
            params={name: value for name, value in terms.items() if value is not None},
            json={"rows": [ROW]},
        )
        assert answer.status_code == 422
        assert parameter in [error["parameter"] for error in answer.json()["errors"]]
