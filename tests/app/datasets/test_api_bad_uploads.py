"""Bad uploads, and bodies of the wrong size or kind: each a problem, and nothing half-made is left."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.app.live_service import Service, table
from tests.app.refusals import CSV, MAX_BODY, MAX_UPLOAD, refused
from tests.sentences import Sentences

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


def test_unsupported_media(client: httpx.Client, model_id: str) -> None:
    for media_type in ("text/plain", "application/xml", ""):
        headers = {"Content-Type": media_type} if media_type else {}
        for address in ("/v1/jobs", "/v1/keys"):
            answer = client.post(address, content=b"{}", headers=headers)
            refused(answer, 415, "unsupported_media_type", "application/json")
        answer = client.post(f"/v1/models/{model_id}/score", content=b"{}", headers=headers)
        refused(answer, 415, "unsupported_media_type", "text/csv", "application/json")
        answer = client.post("/v1/datasets", content=b"a,b\n", headers=headers)
        refused(answer, 415, "unsupported_media_type", "text/csv")
        compressed = {"Content-Type": "text/csv", "Content-Encoding": "br"}
        answer = client.post("/v1/datasets", content=b"a,b\n", headers=compressed)
        refused(answer, 415, "unsupported_media_type", "gzip, zstd", "'br'")


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // 1000 + 1):
        yield b"x" * 1000


def test_too_large_a_body(client: httpx.Client, model_id: str) -> None:
    as_json = {"Content-Type": "application/json"}
    for address in ("/v1/jobs", f"/v1/models/{model_id}/score"):
        for content in (b"x" * (MAX_BODY + 1), chunks(MAX_BODY)):  # with its length, and chunked
            answer = client.post(address, content=content, headers=as_json)
            refused(answer, 413, "too_large", MAX_BODY)
    for content in (b"x" * (MAX_UPLOAD + 1), chunks(MAX_UPLOAD)):
        answer = client.post("/v1/datasets", content=content, headers=CSV)
        refused(answer, 413, "too_large", MAX_UPLOAD)


def test_what_is_said_about_a_table(client: httpx.Client, sentences: Sentences) -> None:
    for query, parameter in (
        ("colour=red", "colour"),
        (
            "kind=table",
            "kind",
        ),
        ("label=" + "x" * 256, "label"),
        ("label=a&weight=a", "label"),
        ("numeric=,", "numeric"),
        ("strict=yes", "strict"),
    ):
        answer = client.post(f"/v1/datasets?{query}", content=table(), headers=CSV)
        error = refused(answer, 422, "invalid")["errors"][0]
        assert error["parameter"] == parameter
        sentences(error)


def test_an_empty_upload_and_one_said_twice(client: httpx.Client) -> None:
    refused(client.post("/v1/datasets", content=b"", headers=CSV), 422, "empty_body")
    answer = client.post("/v1/datasets?name=a&name=b", content=table(), headers=CSV)
    refused(answer, 422, "invalid", "name")


def test_forms_that_say_too_much_or_too_little(client: httpx.Client) -> None:
    for files, data, status in (
        ([("file", ("t.csv", "a,b\n1,0\n")), ("file", ("u.csv", "x"))], {}, 400),
        ([("table", ("t.csv", "a,b\n1,0\n"))], {}, 400),
        ([("file", ("t.csv", "a,b\n1,0\n"))], {"colour": "red"}, 422),
        ([("file", ("t.csv", "a,b\n1,0\n"))], {"name": "x" * 5000}, 413),
        ([("file", ("t.doc", "PK", "application/zip"))], {}, 415),
    ):
        assert client.post("/v1/datasets", files=files, data=data).status_code == status
