"""Columns that an upload declares as protected: stored and compared, and no feature unless a training job says so."""

from __future__ import annotations

import io
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.protected import (
    columns_to_compare,
    protected_columns,
    protected_columns_of,
    protected_features_of,
)
from app.platform.tables import Dataset, Model
from tests.app.live_service import Service
from tests.app.refusals import CSV
from tests.long_form import long_form
from tests.sentences import Sentences


def loans(rows: int = 240, *, header: str = "income,term,sex,age,defaulted") -> str:
    """Return a table of loans, whose income depends on sex."""
    random = np.random.default_rng(7)
    sex = random.integers(0, 2, rows)
    income = (30 + 10 * sex + random.normal(0, 5, rows)).round(1)
    age = random.integers(18, 70, rows)
    bad = random.random(rows) < 1 / (1 + np.exp((income - 35) / 5))
    lines = [
        f"{income[i]},{12 * (i % 5 + 1)},{'fm'[sex[i]]},{age[i]},{'yes' if bad[i] else 'no'}"
        for i in range(rows)
    ]
    return "\n".join([header, *lines]) + "\n"


FIELDS = {"name": "loans", "label": "defaulted", "positive": "yes", "protected": "sex,age"}


def upload(service: Service, client: httpx.Client, body: str | bytes, **fields: str) -> Any:
    """Upload a table, and return the dataset once it was read."""
    answer = client.post("/v1/datasets", params=fields, content=body, headers=CSV)
    assert answer.status_code == 202, answer.text
    service.work()
    return client.get(f"/v1/datasets/{answer.json()['id']}").json()


def roles(dataset: Any) -> dict[str, str]:
    """Return the role of each column."""
    return {column["name"]: column["role"] for column in dataset["columns"]}


def train(service: Service, client: httpx.Client, dataset_id: str, **more: Any) -> Any:
    """Train a model, and return it."""
    job = service.train(client, dataset_id, algorithm={"name": "logistic"}, baselines=False, **more)
    assert job["state"] == "succeeded", job
    return client.get(f"/v1/models/{job['output']['id']}").json()


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def dataset(shared: Service, client: httpx.Client) -> Any:
    return upload(shared, client, loans(), **FIELDS)


def test_stored_with_their_role(shared: Service, client: httpx.Client, dataset: Any) -> None:
    assert dataset["status"] == "ready"
    assert dataset["protected"] == ["sex", "age"]
    assert roles(dataset) == {
        "income": "feature",
        "term": "feature",
        "sex": "protected",
        "age": "protected",
        "defaulted": "label",
    }
    marks = {c["name"]: (c["protected"], c["seems_protected"]) for c in dataset["columns"]}
    assert marks["sex"] == marks["age"] == (True, False)
    assert marks["income"] == (False, False)
    profile = client.get(f"/v1/datasets/{dataset['id']}/profile").json()
    assert [each["name"] for each in profile["columns"]] == ["income", "term", "sex", "age"]
    with shared.context.db.read() as session:
        row = session.get(Dataset, dataset["id"])
        assert row is not None
        assert protected_columns(row) == columns_to_compare(row) == ["sex", "age"]


def test_a_name_alone_only_suggests(shared: Service, client: httpx.Client) -> None:
    fields = FIELDS | {"protected": "age"}
    found = upload(shared, client, loans(), **fields)
    assert roles(found)["sex"] == "feature"
    marks = {c["name"]: (c["protected"], c["seems_protected"]) for c in found["columns"]}
    assert (marks["sex"], marks["age"]) == ((False, True), (True, False))
    with shared.context.db.read() as session:
        row = session.get(Dataset, found["id"])
        assert row is not None
        assert (protected_columns(row), columns_to_compare(row)) == (["age"], ["sex", "age"])


def test_no_feature_by_default(shared: Service, client: httpx.Client, dataset: Any) -> None:
    model = train(shared, client, dataset["id"])
    assert [feature["name"] for feature in model["features"]] == ["income", "term"]
    assert [(it["name"], it["feature"], it["decided_by"]) for it in model["protected"]] == [
        ("sex", False, None),
        ("age", False, None),
    ]
    with shared.context.db.read() as session:
        row = session.get(Model, model["id"])
        assert row is not None
        assert protected_columns_of(row) == ["sex", "age"]
        assert protected_features_of(row) == []


def test_a_feature_by_decision(shared: Service, client: httpx.Client, dataset: Any) -> None:
    model = train(shared, client, dataset["id"], protected_features=["age"])
    assert [feature["name"] for feature in model["features"]] == ["income", "term", "age"]
    sex, age = model["protected"]
    assert (sex["feature"], age["feature"], age["type"]) == (False, True, "numeric")
    assert age["decided_by"] == "test"  # the name of the key
    job = client.get(f"/v1/jobs/{model['job_id']}").json()
    assert job["protected_features"] == ["age"]
    assert age["decided_at"] == job["created_at"]


def test_what_cannot_be_a_protected_feature(
    client: httpx.Client, dataset: Any, sentences: Sentences
) -> None:
    for named, pointer in (
        (["income"], "/protected_features/0"),
        (["age", "nowhere"], "/protected_features/1"),
        (["age", "age"], "/protected_features/1"),
        (["defaulted"], "/protected_features/0"),
        ("age", "/protected_features"),
        ([1], "/protected_features/0"),
        (["x" * 300], "/protected_features/0"),
        (["age"] * 101, "/protected_features"),
    ):
        body = {"dataset_id": dataset["id"], "algorithm": {"name": "logistic"}}
        for path in ("/v1/jobs", "/v1/jobs/validate"):
            answer = client.post(path, json=body | {"protected_features": named})
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["pointer"] == pointer
            if named in (["age", "nowhere"], ["age", "age"], ["income"]):
                sentences(answer.json()["detail"].replace(dataset["id"], "ds_…"))


def test_what_cannot_be_protected(client: httpx.Client, sentences: Sentences) -> None:
    for fields in (
        {"protected": "nowhere"},
        {"protected": "sex,sex"},
        {"protected": ","},
        {"protected": "defaulted"},
        {"protected": "sex", "drop": "sex"},
        {"protected": "sex", "group": "sex"},
        {"protected": "age", "weight": "age"},
        {"protected": "income,term,sex,age"},
    ):
        asked = {"label": "defaulted", "positive": "yes"} | fields
        answer = client.post("/v1/datasets/validate", params=asked, content=loans(), headers=CSV)
        assert answer.status_code == 422, answer.text
        sentences(answer.json()["errors"][0])


def test_a_type_may_be_declared_too(shared: Service, client: httpx.Client) -> None:
    found = upload(shared, client, loans(), **FIELDS, categorical="age")
    assert roles(found)["age"] == "protected"
    types = {column["name"]: column["type"] for column in found["columns"]}
    assert types["age"] == "categorical"


def test_reading_again_keeps_them(shared: Service, client: httpx.Client, dataset: Any) -> None:
    def reread(**changes: str | None) -> Any:
        answer = client.post(f"/v1/datasets/{dataset['id']}/read", json=changes)
        assert answer.status_code == 202, answer.text
        shared.work()
        return client.get(answer.headers["Location"]).json()

    assert reread(name="again")["protected"] == ["sex", "age"]
    coded = reread(categorical="age")
    assert (coded["protected"], coded["categorical"]) == (["sex", "age"], ["age"])
    dropped = reread(drop="sex")
    assert (dropped["protected"], dropped["drop"]) == (["age"], ["sex"])
    plain = reread(protected=None)
    assert plain["protected"] is None
    assert roles(plain)["sex"] == "feature"


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_another_version_has_them(shared: Service, client: httpx.Client, mode: str) -> None:
    dataset = upload(shared, client, loans(), **FIELDS)  # the shared one has newer versions
    path = f"/v1/datasets/{dataset['id']}/versions"
    answer = client.post(path, params={"mode": mode}, content=loans(60), headers=CSV)
    assert answer.status_code == 202, answer.text
    shared.work()
    found = client.get(f"/v1/datasets/{answer.json()['id']}").json()
    assert found["status"] == "ready", found
    assert found["protected"] == ["sex", "age"]
    assert roles(found) == roles(dataset)


def test_typed_files(shared: Service, client: httpx.Client) -> None:
    table = pa.table(
        {
            "income": np.arange(60.0) % 17,
            "term": np.arange(60) % 5,
            "sex": pa.array(["f", "m"] * 30).dictionary_encode(),
            "age": np.arange(60) % 40,
            "defaulted": ["yes", "no", "no"] * 20,
        }
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    headers = {"Content-Type": "application/vnd.apache.parquet"}
    answer = client.post("/v1/datasets", params=FIELDS, content=file.getvalue(), headers=headers)
    assert answer.status_code == 202, answer.text
    shared.work()
    found = client.get(f"/v1/datasets/{answer.json()['id']}").json()
    assert (roles(found)["sex"], roles(found)["age"]) == ("protected", "protected")


def test_how_well_features_predict_it(shared: Service, client: httpx.Client, dataset: Any) -> None:
    model = train(shared, client, dataset["id"])
    found = {(it["column"], it["value"]): it for it in model["proxies"]}
    assert [column for column, _ in found] == ["sex", "age"]
    (sex,) = [it for (column, _), it in found.items() if column == "sex"]
    assert sex["rows"] == 240
    assert [each["feature"] for each in sex["features"]] == ["income", "term"]
    assert sex["together"]["low"] > 0.6  # income depends on sex
    assert sex["features"][0]["low"] > 0.6
    one = train(shared, client, dataset["id"], protected_features=["sex"])
    assert {it["column"] for it in one["proxies"]} == {"age"}
    both = train(shared, client, dataset["id"], protected_features=["sex", "age"])
    assert both["proxies"] is None


@pytest.mark.parametrize(
    "more",
    [
        {"validation": {"method": "cross_validation", "folds": 2}},
        {"validation": {"method": "none"}},
        {"algorithm": {"name": "auto", "budget_seconds": 3}},
    ],
)
def test_every_validation_measures_it(
    shared: Service, client: httpx.Client, dataset: Any, more: dict[str, Any]
) -> None:
    job = shared.train(client, dataset["id"], **({"algorithm": {"name": "logistic"}} | more))
    assert job["state"] == "succeeded", job
    model = client.get(f"/v1/models/{job['output']['id']}").json()
    assert {it["column"] for it in model["proxies"]} == {"sex", "age"}


def test_with_weights_and_groups_and_grades(shared: Service, client: httpx.Client) -> None:
    lines = loans(200).splitlines()
    body = "\n".join(
        [
            lines[0] + ",w,customer",
            *(f"{line},{1 + i % 3},c{i // 2}" for i, line in enumerate(lines[1:])),
        ]
    )
    found = upload(shared, client, body, **FIELDS, weight="w", group="customer")
    model = train(shared, client, found["id"])
    assert {it["column"] for it in model["proxies"]} == {"sex", "age"}
    grades = body.replace("yes", "2").replace(",no", ",0")
    fields = {"label": "defaulted", "kind": "graded", "protected": "sex"}
    graded = upload(shared, client, grades, **fields, drop="w,customer")
    job = shared.train(
        client,
        graded["id"],
        algorithm={"name": "lambdamart", "n_rounds": 3},
        objective={"metric": "ndcg"},
    )
    assert job["state"] == "succeeded", job
    model = client.get(f"/v1/models/{job['output']['id']}").json()
    assert {it["column"] for it in model["proxies"]} == {"sex"}


def test_evaluations_compare_and_monitor_them(
    shared: Service, client: httpx.Client, dataset: Any
) -> None:
    model = train(shared, client, dataset["id"])
    newer = loans(300).replace(",m,", ",f,")  # everyone is a woman now
    other = upload(shared, client, newer, **FIELDS)
    body = {"model": model["id"], "dataset_id": other["id"]}
    answer = client.post("/v1/evaluations", json=body)
    assert answer.status_code == 202, answer.text
    shared.work()
    found = client.get(answer.headers["Location"]).json()
    assert found["status"] == "ready", found
    assert {each["column"] for each in found["protected"]} >= {"age"}
    moved = {each["name"]: each for each in found["drift"]["features"]}
    assert set(moved) == {"income", "term", "sex", "age"}
    assert moved["sex"]["changed"]
    assert moved["sex"]["importance"] == 0.0


@long_form
def test_a_dataset_without_the_columns_evaluates_a_model(
    shared: Service, client: httpx.Client, dataset: Any
) -> None:
    model = train(shared, client, dataset["id"])
    lines = [line.split(",") for line in loans(100).splitlines()]
    body = "\n".join(",".join([*line[:2], line[4]]) for line in lines)
    other = upload(shared, client, body, label="defaulted", positive="yes")
    request = {"model": model["id"], "dataset_id": other["id"]}
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == 202, answer.text
    shared.work()
    found = client.get(answer.headers["Location"]).json()
    assert found["status"] == "ready", found
    assert {each["name"] for each in found["drift"]["features"]} == {"income", "term"}
