"""Models as files for other runtimes, over HTTP: the scores of the service, and refusals."""

from __future__ import annotations

import sqlite3
from typing import Any

import httpx
import numpy as np
import pytest

from app.models.simple import exported_as
from app.platform.tables import Model
from core.version import VERSION
from tests.app.live_service import NAMES, STRANGER, Service, table
from tests.raising import mentions
from tests.sentences import Sentences

ROWS: list[list[float | None]] = [
    [0.3, -1.2, 0.4],
    [-0.5, 0.9, None],
    [2.0, None, -0.1],
    [None, None, None],
]


@pytest.fixture(scope="module")
def world(shared: Service) -> tuple[httpx.Client, dict[str, Any]]:
    """A client, and a model of stumps with an alias; further models are `forest` and `program`."""
    client = shared.client(shared.key())
    dataset_id = shared.upload(client, table(400))
    model: dict[str, Any] = shared.train(client, dataset_id)["output"]
    client.put("/v1/models/churn/aliases/live", json={"model_id": model["id"]})
    for name, algorithm in (
        ("forest", {"name": "random_forest", "n_trees": 150}),
        ("program", {"name": "martirank"}),
    ):
        shared.train(client, dataset_id, name=name, algorithm=algorithm)
    return client, model


def scores_of(client: httpx.Client) -> tuple[list[float], list[float]]:
    rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    answer = client.post(
        "/v1/models/churn@live/score", params={"probability": "true"}, json={"rows": rows}
    )
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return found["scores"], found["probabilities"]


def download(client: httpx.Client, format: str, ref: str = "churn@live") -> httpx.Response:
    answer = client.get(f"/v1/models/{ref}/artifact", params={"format": format})
    assert answer.status_code == 200, answer.text
    return answer


def test_the_python_file_scores_as_the_service(world: tuple[httpx.Client, Any]) -> None:
    client, _ = world
    answer = download(client, "python")
    assert 'filename="churn-1.py"' in answer.headers["Content-Disposition"]
    file: dict[str, Any] = {}
    exec(answer.text, file)
    rows = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
    scores, probabilities = scores_of(client)
    assert [file["score"](row) for row in rows] == scores
    assert [file["probability"](row) for row in rows] == pytest.approx(probabilities, rel=1e-9)


def test_the_query_scores_as_the_service(world: tuple[httpx.Client, Any]) -> None:
    client, _ = world
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE rows (age REAL, income REAL, "score 1" REAL)')
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", ROWS)
    found = connection.execute(download(client, "sql").text).fetchall()
    assert [row[-1] for row in found] == pytest.approx(scores_of(client)[0], rel=1e-9)


def test_the_onnx_model_scores_as_the_service(world: tuple[httpx.Client, Any]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    client, _ = world
    session = runtime.InferenceSession(download(client, "onnx").content)
    columns = np.array(ROWS, dtype=np.float64).T[:, :, None]
    score, probability = session.run(None, dict(zip(NAMES, columns, strict=True)))
    scores, probabilities = scores_of(client)
    assert score[:, 0] == pytest.approx(scores, rel=1e-9)
    assert probability[:, 0] == pytest.approx(probabilities, rel=1e-9)


def test_a_copy_is_not_sent_again(world: tuple[httpx.Client, Any]) -> None:
    client, model = world
    address = f"/v1/models/{model['id']}/artifact"
    answer = client.get(address, params={"format": "sql"})
    assert answer.headers["ETag"].endswith(f'-sql-1-{VERSION}"')
    copy = {"If-None-Match": answer.headers["ETag"]}
    assert client.get(address, params={"format": "sql"}, headers=copy).status_code == 304
    for other in ("python", "safetensors"):
        assert client.get(address, params={"format": other}, headers=copy).status_code == 200


def test_what_a_format_cannot_hold_is_refused(
    world: tuple[httpx.Client, Any], sentences: Sentences
) -> None:
    client, _ = world
    for ref, format in ("program", "python"), ("program", "sql"), ("forest", "sql"):
        answer = client.get(f"/v1/models/{ref}/artifact", params={"format": format})
        assert (answer.status_code, answer.json()["code"]) == (422, "not_exportable")
        algorithm = client.get(f"/v1/models/{ref}").json()["algorithm"]["name"]
        assert all(mentions(answer.json()["detail"], value) for value in (algorithm, format))
    sentences(client.get("/v1/models/program/artifact?format=sql").json())
    assert download(client, "python", "forest").text


def test_the_only_member_of_auto_is_exported() -> None:
    member = {"algorithm": "logistic", "parameters": {"C": 1.0}, "weight": 1.0}
    one, two = (Model(algorithm="auto", parameters={"members": [member] * n}) for n in (1, 2))
    assert exported_as(one) == ("logistic", {"C": 1.0})
    assert exported_as(two)[0] == "auto"


def test_an_unknown_format_is_refused(world: tuple[httpx.Client, Any]) -> None:
    client, model = world
    answer = client.get(f"/v1/models/{model['id']}/artifact", params={"format": "pmml"})
    assert answer.status_code == 422
    assert [each["parameter"] for each in answer.json()["errors"]] == ["format"]


def test_who_may_not_read_the_model_may_not_export_it(
    shared: Service, world: tuple[httpx.Client, Any]
) -> None:
    client, model = world
    address = f"/v1/models/{model['id']}/artifact?format=python"
    assert shared.client(shared.key(STRANGER)).get(address).status_code == 404
    assert shared.client(shared.key(scopes=["score"])).get(address).status_code == 403
    assert shared.client().get(address).status_code == 401
    client.get(address)
    reads = client.get("/v1/audit", params={"outcome": "read"}).json()["data"]
    assert reads[0]["action"] == "GET /v1/models/{ref}/artifact"
