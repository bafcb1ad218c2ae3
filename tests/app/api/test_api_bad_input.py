"""Bad input: each a problem with code, rule and value, and nothing half-made is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from live_service import Service, running, table
from pydantic import SecretStr
from sqlalchemy import func, select

from app.db.tables import Base
from app.infra.settings import Settings

CSV = {"Content-Type": "text/csv"}
MAX_BODY, MAX_UPLOAD = 10_000, 50_000


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, sqlite_file: SecretStr) -> Iterator[Service]:
    """A service with small limits, a dataset and a model."""
    settings = Settings(
        state_dir=tmp_path_factory.mktemp("state"),
        database_url=sqlite_file,
        max_body_bytes=MAX_BODY,
        max_upload_bytes=MAX_UPLOAD,
        max_columns=10,
    )
    with running(settings) as service:
        yield service


@pytest.fixture(scope="module")
def dataset_id(small: Service) -> str:
    return small.upload(small.client(small.key()))


@pytest.fixture(scope="module")
def model_id(small: Service, dataset_id: str) -> str:
    model_id: str = small.train(small.client(small.key()), dataset_id)["model_id"]
    return model_id


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


def everything(service: Service) -> tuple[dict[str, int], set[str]]:
    """How many rows each table has, but for the keys, and the names of all blobs."""
    with service.context.db.read() as session:
        rows = {
            name: session.scalar(select(func.count()).select_from(table)) or 0
            for name, table in Base.metadata.tables.items()
            if name != "api_keys"
        }
    root = Path(service.context.blobs.root)
    return rows, {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.fixture(autouse=True)
def _nothing_is_left(small: Service, dataset_id: str, model_id: str) -> Iterator[None]:
    before = everything(small)
    yield
    assert everything(small) == before


def refused(answer: httpx.Response, status: int, code: str, *words: str) -> dict[str, Any]:
    """Check the problem, and give it back."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["type"] == f"urn:rankwright:problem:{code}"
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert "?" not in problem["instance"]
    for word in words:
        assert word in answer.text.replace('\\"', '"')
    return problem


def job(dataset: str, **changes: Any) -> dict[str, Any]:
    return {"dataset_id": dataset, "algorithm": {"name": "rankboost"}} | changes


@pytest.mark.parametrize(
    ("changes", "code", "pointer", "words"),
    [
        (
            {"algorithm": {"name": "boostrank"}},
            "unknown_algorithm",
            "/algorithm/name",
            ["rankboost", "'boostrank'"],
        ),
        ({"algorithm": {}}, "unknown_algorithm", "/algorithm/name", ["must be one of"]),
        ({"algorithm": {"name": 3}}, "unknown_algorithm", "/algorithm/name", ["got 3"]),
        ({"algorithm": "rankboost"}, "invalid", "/algorithm", ["'rankboost'"]),
        (
            {"algorithm": {"name": "rankboost", "rounds": 3}},
            "invalid_parameter",
            "/algorithm/rounds",
            ["no parameter 'rounds'", "n_rounds", "max_bins"],
        ),
        (
            {"algorithm": {"name": "rankboost", "n_rounds": 0}},
            "invalid_parameter",
            "/algorithm/n_rounds",
            ["n_rounds must be at least 1, got 0"],
        ),
        (
            {"algorithm": {"name": "rankboost", "n_rounds": "many"}},
            "invalid_parameter",
            "/algorithm/n_rounds",
            ["n_rounds must be an integer, got 'many'"],
        ),
        (
            {"algorithm": {"name": "rankboost", "learning_rate": {"a": []}}},
            "invalid_parameter",
            "/algorithm/learning_rate",
            ["must be a finite number"],
        ),
        (
            {"algorithm": {"name": "rankboost", "fpr_max": 0.1}},
            "invalid_parameter",
            "/algorithm/fpr_max",
            ["comes from the job's 'objective'"],
        ),
        (
            {"algorithm": {"name": "rankboost", "random_state": 1}},
            "invalid_parameter",
            "/algorithm/random_state",
            ["comes from the job's 'seed'"],
        ),
        (
            {"objective": {"metric": "pauc", "fpr_min": 0.1, "fpr_max": 0.05}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max must be greater than fpr_min (0.1), got 0.05"],
        ),
        (
            {"objective": {"metric": "pauc"}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max is required"],
        ),
        ({"objective": {"metric": "f1"}}, "invalid", "/objective", ["'f1'", "'auc'"]),
        (
            {"objective": {"metric": "pauc", "fpr_max": 2}},
            "invalid",
            "/objective/fpr_max",
            ["fpr_max must be less than or equal to 1, got 2"],
        ),
        (
            {"validation": {"method": "cross_validation", "folds": 5}},
            "unsupported",
            "/validation/method",
            ["holdout, dataset, none", "'cross_validation'", "not offered yet"],
        ),
        (
            {"validation": {"method": "luck"}},
            "unsupported",
            "/validation/method",
            ["holdout, dataset, none", "'luck'"],
        ),
        (
            {"validation": {"method": "holdout", "fraction": 1.0}},
            "invalid",
            "/validation/fraction",
            ["fraction must be less than 1, got 1.0"],
        ),
        (
            {"validation": {"method": "dataset"}},
            "invalid",
            "/validation/dataset_id",
            ["dataset_id is required"],
        ),
        ({"search": {"method": "grid"}}, "unsupported", "/search", ["search is not offered yet"]),
        ({"seed": -1}, "invalid", "/seed", ["seed must be greater than or equal to 0, got -1"]),
        ({"seed": 1.5}, "invalid", "/seed", ["seed", "1.5"]),
        ({"seed": 2**64}, "invalid", "/seed", ["seed must be less than or equal to"]),
        ({"name": "Churn!"}, "invalid", "/name", ["name", "'Churn!'"]),
        ({"name": "mdl_" + "0" * 32}, "invalid", "/name", ["not look like an id"]),
        ({"timeout_seconds": 0}, "invalid", "/timeout_seconds", ["must be greater than 0, got 0"]),
        ({"tags": {"a": 1}}, "invalid", "/tags/a", ["a must be a valid string, got 1"]),
        ({"tags": {"a": "\0"}}, "invalid", "/tags/a", ["a"]),
        ({"tags": {"a": "\ud800"}}, "invalid", "/tags/a", ["a must be valid Unicode text"]),
        ({"\ud800": 1}, "invalid", "", ["must be valid Unicode text"]),
        (
            {"algorithm": {"name": "rankboost", "\ud800": 1}},
            "invalid_parameter",
            "/algorithm/\ud800",
            ["no parameter"],
        ),
        ({"surprise": 1}, "invalid", "/surprise", ["surprise is not known here"]),
        ({"dataset_id": 7}, "invalid", "/dataset_id", ["dataset_id must be a valid string, got 7"]),
        ({"priority": 1000}, "invalid", "/priority", ["priority", "1000"]),
    ],
)
def test_jobs(
    client: httpx.Client,
    dataset_id: str,
    changes: dict[str, Any],
    code: str,
    pointer: str,
    words: list[str],
) -> None:
    for address in ("/v1/jobs", "/v1/jobs?validate=true"):
        body = json.dumps(job(dataset_id, **changes))  # escapes the lone surrogate
        answer = client.post(address, content=body, headers={"Content-Type": "application/json"})
        problem = refused(answer, 422, code, *words)
        assert problem["errors"][0]["pointer"] == pointer


def test_every_fault_of_a_job_is_listed(client: httpx.Client, dataset_id: str) -> None:
    body = job(
        dataset_id, algorithm={"name": "rankboost", "n_rounds": 0, "rounds": 1, "max_bins": 1}
    )
    problem = refused(client.post("/v1/jobs", json=body), 422, "invalid_parameter")
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/algorithm/n_rounds", "/algorithm/rounds", "/algorithm/max_bins"]


@pytest.mark.parametrize("bad", ["ds_" + "0" * 32, "ds_x", "x" * 255, "model"])
def test_a_dataset_that_is_not_there(client: httpx.Client, dataset_id: str, bad: str) -> None:
    problem = refused(
        client.post("/v1/jobs", json=job(bad)), 404, "not_found", "there is no dataset"
    )
    assert problem["errors"][0]["pointer"] == "/dataset_id"
    body = job(dataset_id, validation={"method": "dataset", "dataset_id": bad})
    problem = refused(client.post("/v1/jobs", json=body), 404, "not_found")
    assert problem["errors"][0]["pointer"] == "/validation/dataset_id"


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b'{"a": nope}',
        b"\xff\xfe",
        b'{"a": 1} x',
        b"[" * 100_000,
        b'{"dataset_id": "\xff"}',
    ],
)
def test_malformed_json(client: httpx.Client, body: bytes) -> None:
    answer = client.post(
        "/v1/jobs", content=body[:9000], headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in {400, 422}
    refused(answer, answer.status_code, answer.json()["code"])
    assert answer.status_code == 422 or answer.json()["code"] in {"malformed_json", "malformed"}


@pytest.mark.parametrize("body", ["[]", "3", "null", '"job"'])
def test_json_of_another_shape(client: httpx.Client, body: str) -> None:
    answer = client.post("/v1/jobs", content=body, headers={"Content-Type": "application/json"})
    refused(answer, 422, "invalid")


@pytest.mark.parametrize("media_type", ["text/plain", "application/xml", ""])
def test_unsupported_media(client: httpx.Client, model_id: str, media_type: str) -> None:
    headers = {"Content-Type": media_type} if media_type else {}
    for address in ("/v1/jobs", f"/v1/models/{model_id}/score", "/v1/keys"):
        answer = client.post(address, content=b"{}", headers=headers)
        refused(answer, 415, "unsupported_media_type", "must be application/json")
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
            refused(answer, 413, "too_large", f"at most {MAX_BODY} bytes")
    for content in (b"x" * (MAX_UPLOAD + 1), chunks(MAX_UPLOAD)):
        answer = client.post("/v1/datasets", content=content, headers=CSV)
        refused(answer, 413, "too_large", f"at most {MAX_UPLOAD} bytes")


@pytest.mark.parametrize(
    ("query", "parameter", "word"),
    [
        ("colour=red", "colour", "colour is not known here"),
        ("kind=preferences", "kind", "not offered yet"),
        ("kind=table", "kind", "kind must be bipartite, got 'table'"),
        ("name=", "name", "name must have 1 to 255 characters"),
        ("label=" + "x" * 256, "label", "label must have 1 to 255 characters"),
        ("label=a&weight=a", "label", "each role needs a column of its own"),
    ],
)
def test_what_is_said_about_a_table(
    client: httpx.Client, query: str, parameter: str, word: str
) -> None:
    answer = client.post(f"/v1/datasets?{query}", content=table(), headers=CSV)
    assert refused(answer, 422, "invalid", word)["errors"][0]["parameter"] == parameter


def test_an_empty_upload_and_one_said_twice(client: httpx.Client) -> None:
    refused(client.post("/v1/datasets", content=b"", headers=CSV), 422, "empty_body")
    answer = client.post("/v1/datasets?name=a&name=b", content=table(), headers=CSV)
    refused(answer, 422, "invalid", "name must be given once")


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"x", "multipart/form-data"),
        (b"x", "multipart/form-data; boundary=b"),
        (
            b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\na,b\n",
            "multipart/form-data; boundary=b",
        ),
        (b"--b\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b"),
        (b"--b--\r\n", "multipart/form-data; boundary=b"),
    ],
)
def test_broken_forms(client: httpx.Client, content: bytes, content_type: str) -> None:
    answer = client.post("/v1/datasets", content=content, headers={"Content-Type": content_type})
    refused(answer, 400, "malformed")


@pytest.mark.parametrize(
    ("files", "data", "status"),
    [
        ([("file", ("t.csv", "a,b\n1,0\n")), ("file", ("u.csv", "x"))], {}, 400),
        ([("table", ("t.csv", "a,b\n1,0\n"))], {}, 400),
        ([("file", ("t.csv", "a,b\n1,0\n"))], {"colour": "red"}, 422),
        ([("file", ("t.csv", "a,b\n1,0\n"))], {"name": "x" * 5000}, 413),
        ([("file", ("t.xlsx", "PK", "application/zip"))], {}, 415),
    ],
)
def test_forms_that_say_too_much_or_too_little(
    client: httpx.Client, files: Any, data: dict[str, str], status: int
) -> None:
    assert client.post("/v1/datasets", files=files, data=data).status_code == status


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("age=1&income=2", None, []),
        ("income=2", "absent_feature", ["feature 'age' is absent"]),
        ("age=1&income=2&x=1", "unknown_feature", ["feature 'x' is unknown", "age, income"]),
        (
            "age=old&income=2",
            "invalid_feature_value",
            ["feature 'age' must be a finite number, got 'old'"],
        ),
        ("age=1&age=1&income=2", "duplicate_feature", ["feature 'age' must be given once"]),
        ("age=NaN&income=2", "invalid_feature_value", ["'NaN'"]),
    ],
)
def test_scores(
    client: httpx.Client, model_id: str, query: str, code: str | None, words: list[str]
) -> None:
    answer = client.get(f"/v1/models/{model_id}/score?{query}")
    if code is None:
        assert answer.status_code == 200  # `score 1` had missing values in training
    else:
        problem = refused(answer, 422, code, *words)
        assert "old" not in problem["instance"]


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "{}",
        '{"rows": 3}',
        '{"rows": [], "x": 1}',
        '{"columns": []}',
        '{"columns": [], "data": 1}',
        "null",
    ],
)
def test_scores_of_another_shape(client: httpx.Client, model_id: str, body: str) -> None:
    for verb in ("score", "rank", "explain"):
        answer = client.post(
            f"/v1/models/{model_id}/{verb}",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        refused(answer, 422, "invalid", "the body must be")


@pytest.mark.parametrize(
    "body", [b"{", b'{"rows": [{"age": NaN}]}', b'{"rows": [{"age": 1e999}]}', b"\xff"]
)
def test_scores_of_no_json(client: httpx.Client, model_id: str, body: bytes) -> None:
    answer = client.post(
        f"/v1/models/{model_id}/score", content=body, headers={"Content-Type": "application/json"}
    )
    refused(answer, 400, "malformed_json")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/nobody",
        "/v1/models/churn:2",
        "/v1/models/churn:0",
        "/v1/models/churn@champion",
        "/v1/models/CHURN",
        "/v1/models/mdl_" + "0" * 32,
        "/v1/models/%F0%9F%98%80",
        "/v1/models/churn%20/metrics",
        "/v1/models/nobody/score?age=1",
        "/v1/datasets/x",
        "/v1/datasets/ds_" + "g" * 32,
        "/v1/jobs/job_1",
        "/v1/jobs/job_" + "0" * 32 + "/events",
        "/v1/keys/key_1",
        "/v1/algorithms/boostrank",
        "/v1/models/churn/aliases/nobody",
        "/v1/nothing",
        "/v2/models",
        "/v1/models/",
    ],
)
def test_what_is_not_there(client: httpx.Client, path: str) -> None:
    refused(client.get(path), 404, "not_found")


def test_nul_in_an_address(client: httpx.Client) -> None:
    for path in (
        "/v1/models/a%00",
        "/v1/datasets?name=%00",
        "/v1/models?name=%00",
        "/v1/jobs?state=%00",
    ):
        refused(client.get(path), 400, "malformed", "NUL")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "invalid"),
        ("limit=201", "invalid"),
        ("limit=x", "invalid"),
        ("after=nonsense", "invalid_cursor"),
        ("after=WzEsMl0", "invalid_cursor"),
        ("after=%F0%9F", "invalid_cursor"),
    ],
)
def test_pages(client: httpx.Client, query: str, code: str) -> None:
    for path in ("/v1/datasets", "/v1/jobs", "/v1/models", "/v1/keys"):
        refused(client.get(f"{path}?{query}"), 422, code)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("metrics?on=moon", "invalid"),
        ("roc?max_points=1", "invalid"),
        ("roc?format=xml", "invalid"),
        ("operating-point", "invalid_parameter"),
        ("operating-point?fpr=0.1&tpr=0.1", "invalid_parameter"),
        ("operating-point?fpr=2", "invalid"),
        ("operating-point?tpr=nan", "invalid"),
        ("operating-point?threshold=inf", "invalid"),
    ],
)
def test_questions_to_a_model(client: httpx.Client, model_id: str, path: str, code: str) -> None:
    refused(client.get(f"/v1/models/{model_id}/{path}"), 422, code)


def test_methods(client: httpx.Client) -> None:
    answer = client.put("/v1/jobs")
    refused(answer, 405, "method_not_allowed", "PUT is not offered here; offered are GET, POST")
    assert answer.headers["Allow"] == "GET, POST"
    refused(client.patch("/v1/models/churn/score"), 405, "method_not_allowed")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "", "scopes": ["read"]},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "x", "scopes": ["read"], "expires_in_seconds": -1},
        {"name": "x", "scopes": ["read"], "owner": "other"},
        {"name": "a\0b", "scopes": ["read"]},
    ],
)
def test_keys(client: httpx.Client, body: dict[str, Any]) -> None:
    refused(client.post("/v1/keys", json=body), 422, "invalid")


def test_a_model_is_deleted_by_id_only(client: httpx.Client) -> None:
    refused(client.delete("/v1/models/churn"), 422, "invalid", "deleted by its id", "'churn'")


def test_events(client: httpx.Client) -> None:
    job_id = client.get("/v1/jobs").json()["data"][0]["id"]
    refused(client.get(f"/v1/jobs/{job_id}/events?after=-1"), 422, "invalid")
    stream = {"Accept": "text/event-stream", "Last-Event-ID": "x"}
    refused(
        client.get(f"/v1/jobs/{job_id}/events", headers=stream), 422, "invalid", "Last-Event-ID"
    )


def test_long_and_odd_idempotency_keys(client: httpx.Client, dataset_id: str) -> None:
    for key in ("", "x" * 256, "tab\there"):
        answer = client.post("/v1/jobs", json=job(dataset_id), headers={"Idempotency-Key": key})
        assert answer.status_code == 422
