"""Datasets over HTTP: every way in, what is shown, what is refused, what is deleted."""

from __future__ import annotations

import gzip
import io
import socket
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from tests.app.live_service import Service, table
from tests.waiting import eventually

CSV = {"Content-Type": "text/csv"}


def as_table() -> pa.Table:
    return pyarrow.csv.read_csv(io.BytesIO(table().encode()))


def as_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(as_table(), sink)
    return sink.getvalue()


def as_arrow() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, as_table().schema) as stream:
        stream.write_table(as_table())
    return sink.getvalue()


def test_a_form(service: Service, client: httpx.Client) -> None:
    for name, content, media_type in (
        ("people.csv", table().encode(), "text/csv; charset=utf-8"),
        ("people.arrows", as_arrow(), "application/vnd.apache.arrow.stream"),
        ("people.csv.gz", gzip.compress(table().encode()), "application/octet-stream"),
        ("people.parquet", as_parquet(), "application/octet-stream"),
    ):
        answer = client.post(
            "/v1/datasets?label=left",
            files={"file": (name, content, media_type)},
            data={"positive": "yes", "name": "Menschen über 18"},
        )
        assert answer.status_code == 202, answer.text
        assert answer.headers["Location"] == f"/v1/datasets/{answer.json()['id']}"
        assert "Retry-After" in answer.headers
        assert answer.json()["status"] == "processing"
        assert service.work() == 1
        dataset = client.get(answer.headers["Location"]).json()
        assert (dataset["status"], dataset["name"]) == ("ready", "Menschen über 18")
        assert (dataset["rows"], dataset["positive"], dataset["negative"]) == (120, "yes", "no")
        assert dataset["columns"][2]["missing"] > 0
        assert dataset["bytes"] == len(content)


def test_a_bad_table_is_invalid_and_says_why(service: Service, client: httpx.Client) -> None:
    for text, fields, words in (
        ("age,left\n1,yes\n2,no\n", {"label": "gone"}, ["label column", "gone", "age"]),
        ("age,left\n1,yes\n2\n", {}, ["header has 2", "3"]),
    ):
        dataset_id = service.upload(client, text, **fields)
        dataset = client.get(f"/v1/datasets/{dataset_id}").json()
        assert dataset["status"] == "invalid"
        said = " ".join(str(error) for error in dataset["errors"])
        for word in words:
            assert word in said
        job = client.get(f"/v1/jobs/{dataset['job_id']}").json()
        assert (job["kind"], job["state"]) == ("ingest", "failed")
        body = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}}
        answer = client.post("/v1/jobs", json=body)
        assert (answer.status_code, answer.json()["code"]) == (409, "dataset_not_ready")
        assert client.get(f"/v1/datasets/{dataset_id}/preview").status_code == 409


def test_what_is_taken_for_missing_is_told(service: Service, client: httpx.Client) -> None:
    text = "age,left\n" + "".join(f"{i},{'yes' if i % 2 else 'no'}\n" for i in range(40))
    dataset_id = service.upload(client, text + "n/k,yes\n41,\n")
    dataset = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (dataset["status"], dataset["rows"], dataset["strict"]) == ("ready", 41, False)
    warnings = [(w["code"], w["column"], w["line"], w["count"]) for w in dataset["warnings"]]
    assert warnings == [
        ("values_taken_for_missing", "age", 42, 1),
        ("rows_without_label", "left", 43, 1),
    ]
    assert (
        client.get(f"/v1/datasets/{dataset_id}/profile").json()["warnings"] == dataset["warnings"]
    )
    strict = service.upload(client, text + "n/k,yes\n", strict="true")
    assert client.get(f"/v1/datasets/{strict}").json()["errors"][0]["line"] == 42
    numeric = service.upload(client, "age,left\nx,yes\ny,no\n3,no\n", numeric="age")
    (error,) = client.get(f"/v1/datasets/{numeric}").json()["errors"]
    assert (error["column"], "2 of 3" in error["detail"]) == ("age", True)


def test_checking_only(service: Service, client: httpx.Client) -> None:
    address = "/v1/datasets/validate?label=left"
    answer = client.post(address, content=table(), headers=CSV)
    assert answer.status_code == 200
    assert answer.json()["valid"]
    assert answer.json()["rows"] == 120
    answer = client.post(address, content="age,left\n1,yes\n2,x\n3,no\n", headers=CSV)
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.get("/v1/datasets").json()["data"] == []
    assert blobs(service) == set()


def blobs(service: Service) -> set[Path]:
    return {path for path in service.blobs.root.rglob("*") if path.is_file()}


def test_a_caller_who_hangs_up_leaves_nothing(service: Service, client: httpx.Client) -> None:
    address = httpx.URL(service.url)
    with socket.create_connection((address.host, address.port)) as connection:
        head = (
            "POST /v1/datasets?label=left HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\n"
            f"Content-Length: 10000000\r\nAuthorization: {client.headers['Authorization']}\r\n\r\n"
        )
        connection.sendall(head.encode() + b"age,left\n" * 1000)
        eventually(lambda: len(blobs(service)) == 1)  # under way
    eventually(lambda: not blobs(service))
    assert client.get("/v1/datasets").json()["data"] == []


def test_the_same_upload_twice_under_one_key(service: Service, client: httpx.Client) -> None:
    def upload(text: str, **params: str) -> httpx.Response:
        headers = CSV | {"Idempotency-Key": "once"}
        return client.post("/v1/datasets", params=params, content=text, headers=headers)

    first = upload(table(), label="left")
    again = upload(table(), label="left")
    assert again.json() == first.json()
    assert again.status_code == 202
    assert again.headers["Idempotent-Replayed"] == "true"
    before = blobs(service)
    for other in (upload(table(seed=1), label="left"), upload(table(), label="age")):
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert blobs(service) == before
    assert len(client.get("/v1/datasets").json()["data"]) == 1


def test_a_second_upload_under_a_key_still_uploading(
    service: Service, client: httpx.Client
) -> None:
    address = httpx.URL(service.url)
    head = (
        "POST /v1/datasets?label=left HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\n"
        f"Idempotency-Key: k\r\nContent-Length: 1000\r\nAuthorization: {client.headers['Authorization']}\r\n\r\n"
    )
    with socket.create_connection((address.host, address.port)) as connection:
        connection.sendall(head.encode() + b"age,left\n")
        eventually(lambda: service.context.uploading)
        headers = CSV | {"Idempotency-Key": "k"}
        answer = client.post("/v1/datasets?label=left", content=table(), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "upload_under_way")
    eventually(lambda: not service.context.uploading)
    answer = client.post("/v1/datasets?label=left", content=table(), headers=headers)
    assert answer.status_code == 202


def test_a_list_has_nothing_that_grows_with_a_table(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    invalid = service.upload(client, "age,left\n1,yes\n")
    whole = client.get(f"/v1/datasets/{dataset_id}").json()
    newest, listed = client.get("/v1/datasets").json()["data"]
    assert (newest["id"], newest["status"], newest["n_columns"]) == (invalid, "invalid", 0)
    assert listed.pop("n_columns") == len(whole["columns"]) == 4
    assert listed.items() <= whole.items()
    large = {"columns", "errors", "warnings", "labels", "label_values", "categorical", "numeric"}
    assert whole.keys() - listed.keys() >= large
    (version,) = client.get(f"/v1/datasets/{dataset_id}/versions").json()["data"]
    assert version == {**listed, "n_columns": 4}
    assert client.get("/v1/overview").json()["datasets"] == [newest, version]
