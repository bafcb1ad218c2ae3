"""Items and pairs over HTTP: upload, compare, train, judge, score; and every way of getting it wrong."""

from __future__ import annotations

import io
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.app.live_service import Service
from tests.app.refusals import CSV, everything, job, refused

N_ITEMS = 60


def items() -> str:
    X = np.random.default_rng(0).normal(size=(N_ITEMS, 2)).round(3).tolist()
    return "\n".join(["film,length,age", *(f"m{i},{a},{b}" for i, (a, b) in enumerate(X)), ""])


def compare(better: int, worse: int) -> str:
    return f"m{better},m{worse}\n"


def pairs() -> str:
    """Longer is better."""
    lengths = [float(line.split(",")[1]) for line in items().splitlines()[1:]]
    rng = np.random.default_rng(1)
    lines = ["better,worse\n"]
    for _ in range(800):
        i, k = rng.choice(N_ITEMS, 2, replace=False).tolist()
        lines.append(compare(i, k) if lengths[i] > lengths[k] else compare(k, i))
    return "".join(lines)


def upload(service: Service, client: httpx.Client) -> str:
    answer = client.post(
        "/v1/datasets",
        params={"name": "films", "kind": "preferences", "item": "film"},
        content=items(),
        headers=CSV,
    )
    assert answer.status_code == 202, answer.text
    service.work()
    dataset_id: str = answer.json()["id"]
    return dataset_id


def put(client: httpx.Client, dataset_id: str, body: str | bytes, **headers: str) -> httpx.Response:
    return client.put(f"/v1/datasets/{dataset_id}/pairs", content=body, headers=CSV | headers)


def rows_have_no_places(service: Service, client: httpx.Client, scores: dict[str, Any]) -> None:
    assert (scores["fprs"], scores["tprs"]) == (None, None)
    table: dict[str, Any] = {
        "content": "age,length\n0,2\n",
        "headers": CSV | {"Accept": "text/csv"},
    }
    text = client.post("/v1/models/films/score", **table).text.splitlines()
    assert text == ["score,fpr,tpr", f"{text[1].split(',')[0]},,"]
    table["headers"] = CSV
    batch = client.post("/v1/batch-scores?model=films", **table).json()["id"]
    service.work()
    assert client.get(f"/v1/batch-scores/{batch}/result?format=csv").text.splitlines() == text


def test_from_items_and_pairs_to_scores(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = upload(service, client)
    ready = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (ready["status"], ready["item"], ready["label"], ready["pairs"]) == (
        "ready",
        "film",
        None,
        None,
    )
    answer = put(client, dataset_id, pairs())
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/v1/datasets/{dataset_id}"
    assert answer.json()["pairs"]["status"] == "processing"
    job_id = answer.json()["pairs"]["job_id"]
    assert client.get(f"/v1/jobs/{job_id}").json()["kind"] == "ingest_pairs"
    assert [job["id"] for job in client.get("/v1/jobs?kind=ingest_pairs").json()["data"]] == [
        job_id
    ]
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()["pairs"]
    assert (found["status"], found["pairs"], found["weighted"], found["errors"]) == (
        "ready",
        800,
        False,
        [],
    )
    assert client.get("/v1/datasets").json()["data"][0]["pairs"] == found

    trained = service.train(client, dataset_id, name="films")
    assert trained["state"] == "succeeded", trained
    assert trained["objective"] == {"metric": "pair_order"}
    model = client.get("/v1/models/films").json()
    assert (model["kind"], model["label"], model["positive"]) == ("preferences", None, None)
    metrics = client.get("/v1/models/films/metrics").json()
    assert metrics["pair_order"]["value"] > 0.9
    assert metrics["pair_order"]["low"] <= metrics["pair_order"]["value"]
    assert metrics["pairs"] >= 30
    assert client.get("/v1/models/films/metrics?on=train").json()["pairs"] > metrics["pairs"]
    score = client.get("/v1/models/films/score?length=2&age=0").json()
    assert (score["fpr"], score["tpr"]) == (None, None)
    rows = [{"length": length, "age": 0.0} for length in (-1.0, 2.0)]
    scores = client.post("/v1/models/films/score", json={"rows": rows}).json()
    assert scores["scores"][1] == score["score"] > scores["scores"][0]
    rows_have_no_places(service, client, scores)
    ranked = client.post("/v1/models/films/rank", json={"rows": rows}).json()
    assert ranked["indices"] == [1, 0]
    explained = client.post("/v1/models/films/explain", json={"rows": rows})
    assert explained.status_code == 200
    assert client.get("/v1/models/films/structure").json()["rules"]
    assert client.get("/v1/models/films/artifact").status_code == 200
    written = client.get("/v1/models/films/report?format=markdown").text
    assert f"| pairs in order | {metrics['pair_order']['value']:.4f} (" in written
    assert "## Curves" not in written
    for path in ("roc", "operating-point?fpr=0.1", "plot"):
        refused(client.get(f"/v1/models/films/{path}"), 404, "no_curve", "kind preferences")


def test_parquet_and_a_form(service: Service, client: httpx.Client) -> None:
    dataset_id = upload(service, client)
    sink = io.BytesIO()
    pq.write_table(pa.table({"better": ["m1"], "worse": ["m2"], "weight": [0.5]}), sink)
    parquet = {"Content-Type": "application/vnd.apache.parquet"}
    assert put(client, dataset_id, sink.getvalue(), **parquet).status_code == 202
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()["pairs"]
    assert (found["pairs"], found["items"], found["weighted"]) == (1, 2, True)
    files = {"file": ("pairs.csv", b"better,worse\nm1,m2\nm1,m3\n", "text/csv")}
    assert client.put(f"/v1/datasets/{dataset_id}/pairs", files=files).status_code == 202
    service.work()
    assert client.get(f"/v1/datasets/{dataset_id}").json()["pairs"]["pairs"] == 2


def test_waiting_for_the_pairs(service: Service, client: httpx.Client) -> None:
    dataset_id = upload(service, client)
    with service.at_work():
        answer = put(client, dataset_id, pairs(), Prefer="wait=30")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Preference-Applied"].startswith("wait")
    assert answer.json()["pairs"]["status"] == "ready"


REFUSED: list[tuple[dict[str, str], dict[str, str], bytes, int, str]] = [
    ({}, {}, b"", 422, "empty_body"),
    ({}, {"Content-Type": "application/json"}, b"[]", 415, "unsupported_media_type"),
    ({}, {"Content-Type": ""}, b"x", 415, "unsupported_media_type"),
    ({}, {"Content-Encoding": "br"}, b"x", 415, "unsupported_media_type"),
    ({"weight": "w"}, {}, b"better,worse\n", 422, "unknown_parameter"),
    ({"validate": "true"}, {}, b"better,worse\n", 422, "unknown_parameter"),
    ({}, {"Content-Type": "multipart/form-data"}, b"x", 400, "malformed"),
]


def test_requests_that_are_wrong(service: Service, client: httpx.Client) -> None:
    dataset_id = upload(service, client)
    before = everything(service)
    path = f"/v1/datasets/{dataset_id}/pairs"
    for params, headers, body, status, code in REFUSED:
        answer = client.put(path, params=params, content=body, headers=CSV | headers)
        refused(answer, status, code)
    assert everything(service) == before


def test_pairs_that_cannot_be_taken_now_or_not_be_used(
    service: Service, client: httpx.Client
) -> None:
    refused(put(client, "ds_x", pairs()), 404, "not_found")
    refused(put(client, service.upload(client), pairs()), 409, "wrong_kind")
    dataset_id = upload(service, client)
    put(client, dataset_id, "better,worse,weight\nm0,m1,1\nm0,zz,1\nm2,m2,1\nm1,m3,-2\n")
    refused(put(client, dataset_id, pairs()), 409, "dataset_in_use")
    refused(client.delete(f"/v1/datasets/{dataset_id}"), 409, "dataset_in_use")
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (found["status"], found["pairs"]["status"]) == ("ready", "invalid")
    lines = [(error["line"], error["column"]) for error in found["pairs"]["errors"]]
    assert lines == [(3, "worse"), (4, "worse"), (5, "weight")]
    refused(client.post("/v1/jobs", json=job(dataset_id)), 409, "pairs_not_ready")


def test_a_check_knows_of_the_pairs(service: Service, client: httpx.Client) -> None:
    dataset_id = upload(service, client)
    put(client, dataset_id, pairs())
    service.work()

    def check(**algorithm: Any) -> dict[str, Any]:
        body = {"dataset_id": dataset_id, "algorithm": algorithm}
        answer = client.post("/v1/jobs?validate=true", json=body)
        assert answer.status_code == 200, answer.text
        checked: dict[str, Any] = answer.json()
        return checked

    checked = check(name="coordinate_rankboost")
    assert checked["objective"] == {"metric": "pair_order"}
    assert checked["estimate"]["memory_bytes"] > 800 * 16
    trees = check(name="rankboost", weak_ranker="tree", n_rounds=10_000)
    assert trees["estimate"]["seconds"] > 10_000 * 800 * 1e-9
