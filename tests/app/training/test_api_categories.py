"""A raw table over HTTP: upload, train, score with words, and a plain message for every bad word."""

from __future__ import annotations

import httpx
import pytest

from tests.app.live_service import Service
from tests.raw_table import raw_table


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


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
