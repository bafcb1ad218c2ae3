"""Published flaws of services like this one, each tried here by its name."""

from __future__ import annotations

import io
import logging
import os
import pickle
import re
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from app.platform.logging import TextFormatter
from tests.app.live_service import STRANGER, Service
from tests.app.refusals import CSV, job, refused
from tests.long_form import LONG_FORM

JSON = {"Content-Type": "application/json"}
SQL = ("' OR '1'='1", "x'; DROP TABLE jobs; --", "%' UNION SELECT sha256 FROM api_keys --")


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


def operations(client: httpx.Client) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Each operation's method and path, with the names of its query and of its JSON body's top."""
    document: dict[str, Any] = client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            query = [
                parameter["name"]
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "query"
            ]
            content = operation.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            if "$ref" in schema:
                schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            yield method.upper(), path, query, list(schema.get("properties", ()))


def say_everywhere(client: httpx.Client, text: str) -> Iterator[tuple[str, httpx.Response]]:
    """Put a text wherever an operation takes one: into the address, the query, the body and some headers."""
    headers = {"X-Forwarded-Host": "evil.example", "Referer": "http://evil.example/"}
    for method, path, query, body in operations(client):
        if path.startswith("/health/"):
            continue  # they take nothing, and tell of parts that are away
        address = re.sub(r"\{\w+\}", lambda _: quote(text, safe=""), path)
        sent: dict[str, Any] = {"params": dict.fromkeys(query, text), "headers": headers}
        if body:
            sent["json"] = dict.fromkeys(body, text)
        yield f"{method} {path}", client.request(method, address, **sent)


@pytest.mark.parametrize(
    "name",
    [
        *("../../etc/passwd", "..%2f..%2fetc%2fpasswd", "..\\..\\windows\\win.ini", "/etc/passwd"),
        *(
            "file:///etc/passwd",
            "models:/churn/1",
            "runs:/a/../../b",
            "a\0.pkl",
            ".",
            "..",
            "con|id",
        ),
        *("сhurn", "churn\u202egpj", "CHURN", "a" * 64, ""),
    ],
)
def test_path_traversal_by_names(client: httpx.Client, dataset_id: str, name: str) -> None:
    """MLflow's and others': a name, an alias or a reference becomes a path. Here it is a word, or refused."""
    refused(client.post("/v1/jobs", json=job(dataset_id, name=name)), 422, "invalid", "name")
    quoted = quote(name, safe="") or "%20"
    for address in (f"/v1/models/{quoted}/artifact", f"/v1/models/no-such-model/aliases/{quoted}"):
        answer = client.get(address)
        assert answer.status_code in {400, 404, 422}, answer.text
        assert "root:" not in answer.text
    evaluation = {"model": name, "dataset_id": dataset_id}
    assert client.post("/v1/evaluations", json=evaluation).status_code in {404, 422}


def test_requests_forged_by_the_server(small: Service, client: httpx.Client) -> None:
    """No field is fetched, whatever it is called: nobody comes to an address that stands in each of them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/latest/meta-data"
        for operation, answer in say_everywhere(client, url):
            assert answer.status_code < 500, (operation, answer.text)
        small.work()
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_sql_in_every_parameter(small: Service, client: httpx.Client, dataset_id: str) -> None:
    stranger = small.client(small.key(STRANGER))
    for text in SQL if LONG_FORM else SQL[:1]:
        for operation, answer in say_everywhere(stranger, text):
            assert answer.status_code < 500, (operation, answer.text)
            assert dataset_id not in answer.text, operation
    assert client.get(f"/v1/datasets/{dataset_id}").status_code == 200


class Payload:
    """Return an object that runs code when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def test_a_pickle_as_a_table(small: Service, client: httpx.Client, tmp_path: Path) -> None:
    """Bytes are read as the declared type, and never as code."""
    ran = tmp_path / "ran"
    arrays = io.BytesIO()
    np.savez(arrays, x=np.array([Payload(ran)], dtype=object))
    for content in (pickle.dumps(Payload(ran)), pickle.dumps(Payload(ran), 0), arrays.getvalue()):
        for media_type in (
            "text/csv",
            "application/x-ndjson",
            "application/vnd.apache.parquet",
            "application/vnd.apache.arrow.file",
            "application/vnd.apache.arrow.stream",
        ):
            answer = client.post(
                "/v1/datasets", content=content, headers={"Content-Type": media_type}
            )
            assert answer.status_code == 202
            small.work()
            dataset = client.get(answer.headers["Location"]).json()
            assert dataset["status"] == "invalid"
            assert dataset["errors"][0]["detail"]
        for media_type in ("application/octet-stream", "application/x-pickle", "application/zip"):
            headers = {"Content-Type": media_type}
            answer = client.post("/v1/datasets", content=content, headers=headers)
            refused(answer, 415, "unsupported_media_type")
    assert not ran.exists()


def test_names_within_archives(small: Service, client: httpx.Client) -> None:
    """An archive's only file is read without its name, and the name of a form's file is never a path."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("../../evil.csv", "a,b\n1,0\n")
    state = small.settings.state_dir
    before = {path for path in state.parent.rglob("*") if "blobs" not in path.parts}
    for name, status in (("evil.zip", 202), ("../../evil.zip", 202), ("evil.tar.gz", 415)):
        answer = client.post("/v1/datasets", files={"file": (name, archive.getvalue())})
        assert answer.status_code == status
    for name in ("../../../evil.csv", "/etc/cron.d/evil.csv", "C:\\evil.csv", "evil\0.csv"):
        answer = client.post("/v1/datasets", files={"file": (name, "a,b\n1,0\n")})
        assert answer.status_code in {202, 400, 415}, answer.text
    for encoding in ("zip", "br", "compress", "gzip, gzip"):
        headers = CSV | {"Content-Encoding": encoding}
        answer = client.post("/v1/datasets", content=archive.getvalue(), headers=headers)
        refused(answer, 415, "unsupported_media_type")
    small.work()
    assert {path for path in state.parent.rglob("*") if "blobs" not in path.parts} == before


def test_a_host_of_the_caller_s_choice(client: httpx.Client) -> None:
    """No answer repeats it, where it would lead others astray."""
    headers = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil"}
    made = client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}, headers=headers)
    assert made.headers["Location"] == f"/v1/keys/{made.json()['id']}"
    for path in ("/", "/docs", "/openapi.json", "/nothing"):
        answer = client.get(path, headers=headers)
        assert "evil" not in answer.text + answer.headers.get("Location", "")
    odd = {"Host": "x/v1/other?", "X-Request-ID": "odd-host"}
    client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}, headers=odd)
    entry = client.get("/v1/audit").json()["data"][0]
    assert (entry["request_id"], entry["path"]) == ("odd-host", "/v1/keys")


def test_another_site_s_page_in_a_browser(small: Service, client: httpx.Client) -> None:
    """No preflight is granted, no answer may be read, and requests that need no preflight are refused."""
    origin = {"Origin": "https://evil.example"}
    asked = origin | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    preflight = client.options("/v1/jobs", headers=asked)
    refused(preflight, 405, "method_not_allowed")
    read = client.get("/v1/jobs", headers=origin)
    for answer in (preflight, read):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = origin | {"Content-Type": media_type}
        answer = client.post("/v1/keys", content='{"name": "k"}', headers=headers)
        refused(answer, 415, "unsupported_media_type")
    nobody = small.client()
    nobody.cookies.set("Authorization", client.headers["Authorization"])
    assert nobody.get("/v1/jobs").status_code == 401


def test_more_fields_than_there_are(client: httpx.Client, dataset_id: str, model_id: str) -> None:
    """Mass assignment: a caller cannot set members that the service decides."""
    sound = {
        "/v1/jobs": job(dataset_id),
        "/v1/evaluations": {"model": model_id, "dataset_id": dataset_id},
        "/v1/keys": {"name": "k", "scopes": ["read"]},
    }
    for path, body in sound.items():
        for field in ("owner", "id", "state", "created_at", "__proto__", "__class__"):
            answer = client.post(f"{path}/validate", json=body | {field: STRANGER})
            refused(answer, 422, "invalid", field)


def test_what_others_were_given(small: Service, client: httpx.Client, dataset_id: str) -> None:
    """A cursor, and an Idempotency-Key, of another owner open nothing."""
    client.post("/v1/keys", json={"name": "a", "scopes": ["read"]})
    cursor = client.get("/v1/keys?limit=1").json()["next"]
    stranger = small.client(small.key(STRANGER))
    answer = stranger.get("/v1/keys", params={"after": cursor})
    assert answer.status_code == 422 or not answer.json()["data"] or "ours" not in answer.text
    body, headers = {"name": "b", "scopes": ["read"]}, {"Idempotency-Key": "same"}
    first = client.post("/v1/keys", json=body, headers=headers).json()
    second = stranger.post("/v1/keys", json=body, headers=headers)
    assert "Idempotent-Replayed" not in second.headers
    assert (first["owner"], second.json()["owner"]) == ("ours", STRANGER)


def test_another_method_by_a_header(client: httpx.Client, dataset_id: str) -> None:
    headers = {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"}
    address = f"/v1/datasets/{dataset_id}"
    assert client.get(address, headers=headers).status_code == 200
    assert client.get(address, headers=headers, params={"_method": "DELETE"}).status_code == 422
    assert client.get(address).status_code == 200


def test_ranges_without_end(client: httpx.Client, model_id: str) -> None:
    """Starlette's: joining thousands of ranges took a time that grew with their square."""
    address = f"/v1/models/{model_id}/artifact"
    ranges = ",".join(f"{2 * i}-{2 * i}" for i in range(5000))
    answer = client.get(address, headers={"Range": f"bytes={ranges}"})
    assert answer.status_code in {200, 206, 400, 416}
    assert len(answer.content) < 2_000_000
    assert client.get(address, headers={"Range": "bytes=0-7"}).status_code == 206


def test_lines_forged_in_the_log(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    """Callers' text cannot break a line of the log: paths, ids and everything else that is logged."""
    caplog.set_level(logging.INFO)
    forged = "x%0d%0a2026-01-31T12:00:00.000Z%20INFO%20rankwright.access%20forged%1b[31m%e2%80%a8"
    client.get(f"/v1/jobs/{forged}", headers={"User-Agent": "a\tb", "X-Request-ID": "r\tb"})
    (line,) = [
        TextFormatter().format(record)
        for record in caplog.records
        if record.name == "rankwright.access" and "forged" in record.getMessage()
    ]
    assert len(line.splitlines()) == 1
    assert "\\u000d\\u000a" in line
    assert "\x1b" not in line


def test_formulas_in_a_spreadsheet(small: Service, client: httpx.Client) -> None:
    """No text in a CSV answer is a formula; curves and out-of-fold scores hold only numbers."""
    formula = "=HYPERLINK(0)"
    table = f"age,{formula}\n" + "".join(
        f"{i}.5,{formula if (i * 7) % 11 > i % 5 + 3 else '@x'}\n" for i in range(60)
    )
    said = {"label": formula, "positive": formula}
    folds = {"method": "cross_validation", "folds": 2}
    done = small.train(client, small.upload(client, table, **said), name="sums", validation=folds)
    assert done["state"] == "succeeded", done["error"]
    for part in ("roc", "out-of-fold"):
        answer = client.get(f"/v1/models/sums/{part}", params={"format": "csv"})
        head, *rows = answer.text.splitlines()
        assert all(word.isidentifier() for word in head.split(","))
        assert rows
        for row in rows:
            [float(cell) for cell in row.split(",") if cell]
