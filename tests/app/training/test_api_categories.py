"""A raw table over HTTP: upload, train, score with words, and a plain message for every bad word."""

from __future__ import annotations

import httpx
import pytest

from tests.app.live_service import Service
from tests.long_form import long_form
from tests.raw_table import raw_table

ROW = {
    "age": "41",
    "workclass": "Private",
    "education": "Masters & more",
    "hours-per-week": "40",
    "native-country": "Country-3",
}


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def model_id(shared: Service, client: httpx.Client) -> str:
    """A model of the raw table."""
    dataset_id = shared.upload(client, raw_table(), label="income", positive=">50K")
    job = shared.train(client, dataset_id, algorithm={"name": "rankboost", "n_rounds": 20})
    assert job["state"] == "succeeded", job
    return str(job["output"]["id"])


def score(client: httpx.Client, **row: str) -> httpx.Response:
    """Score a row by GET."""
    return client.get("/v1/models/churn/score", params=row)


@long_form
def test_a_raw_table_from_upload_to_score(client: httpx.Client, model_id: str) -> None:
    model = client.get("/v1/models/churn").json()
    education = model["features"][2]
    assert education == {
        "name": "education",
        "type": "categorical",
        "missing": False,
        "categories": ["11th", "Bachelors", "Doctorat (é)", "HS-grad", "Masters & more"],
        "n_categories": 5,
    }
    assert model["features"][0]["categories"] is None
    assert client.get("/v1/models/churn/metrics").json()["auc"]["value"] > 0.75

    rich, poor = score(client, **ROW), score(client, **ROW | {"education": "11th"})
    assert rich.status_code == 200, rich.text
    assert rich.json()["score"] > poor.json()["score"]

    typed = ROW | {"age": 41, "hours-per-week": 40}
    answer = client.post("/v1/models/churn/score", json={"rows": [typed]}).json()
    assert answer["scores"] == [rich.json()["score"]]
    table = {"columns": list(typed), "data": [list(typed.values())]}
    assert client.post("/v1/models/churn/score", json=table).json() == answer
    ranked = client.post(
        "/v1/models/churn/rank", json={"rows": [typed | {"education": "11th"}, typed]}
    ).json()
    assert ranked["scores"] == sorted([rich.json()["score"], poor.json()["score"]], reverse=True)
    explained = client.post("/v1/models/churn/explain", json={"rows": [typed]}).json()
    (parts,) = explained["explanations"]
    assert list(parts["contributions"]) == list(ROW)
    total = parts["offset"] + sum(parts["contributions"].values())
    assert total == pytest.approx(rich.json()["score"])
    assert "education in {" in client.get("/v1/models/churn/structure").text


def test_codes_columns_and_tokens_by_query_and_by_form(
    shared: Service, client: httpx.Client
) -> None:
    fields = {
        "label": "income",
        "categorical": "age",
        "drop": '"name"',
        "missing": "?,Country-1",
    }
    answer = client.post(
        "/v1/datasets",
        data=fields,
        files={"file": ("raw.csv", raw_table(80).encode(), "text/csv")},
    )
    assert answer.status_code == 202, answer.text
    shared.work()
    dataset = client.get(answer.headers["Location"]).json()
    assert dataset["status"] == "ready", dataset
    assert (dataset["categorical"], dataset["drop"]) == (["age"], ["name"])
    assert dataset["missing"] == ["?", "Country-1"]
    columns = {column["name"]: column for column in dataset["columns"]}
    assert columns["age"]["type"] == "categorical"
    assert (columns["name"]["role"], columns["name"]["type"]) == ("dropped", None)
    assert "Country-1" not in [top["value"] for top in columns["native-country"]["top"]]
    checked = client.post(
        "/v1/datasets/validate",
        params=fields,
        content=raw_table(80).encode(),
        headers={"Content-Type": "text/csv"},
    )
    assert checked.status_code == 200
    found = {column["name"]: column["role"] for column in checked.json()["columns"]}
    assert found == {name: column["role"] for name, column in columns.items()}
    (shown,) = client.get(f"/v1/datasets/{dataset['id']}/preview?limit=1").json()["data"]
    assert shown[0] == raw_table(80).splitlines()[1].split(",")[0]
