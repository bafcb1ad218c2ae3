"""Requests for rows, things and parameters that do not exist. Each gets a problem, and nothing is left behind."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.long_form import LONG_FORM
from tests.raising import mentions

pytestmark = pytest.mark.usefixtures("nothing_is_left")


@pytest.fixture
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


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
        refused(answer, 422, "invalid")


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


def test_parameters_that_a_route_does_not_know(
    small: Service, client: httpx.Client, dataset_id: str
) -> None:
    """On every route: a parameter that is misspelt would count as absent."""
    uploads = {
        f"post /v1/{of}{at}"
        for of in (
            "datasets",
            "datasets/{dataset_id}/versions",
            "uploads",
            "batch-scores",
            "decisions",
            "models",
        )
        for at in ("", "/validate")
    }
    paths = client.get("/openapi.json").json()["paths"]
    asked = 0
    for path, methods in paths.items():
        address = re.sub(r"\{\w+\}", "x", path.replace("{dataset_id}", dataset_id))
        for method, operation in methods.items():
            if path.startswith("/health/"):
                assert client.request(method, f"{address}?probe=7").status_code in (200, 503)
                continue
            asked += 1
            if (method, path) == ("get", "/v1/models/{ref}/score"):
                continue  # its parameters are features
            known = [
                each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"
            ]
            near = [(f"{name}s", name) for name in (known if LONG_FORM else known[:1])]
            for given, meant in [*near, ("nonsense_of_mine", None)]:
                if given in known:
                    continue
                answer = client.request(method, address, params={given: "1"})
                if f"{method} {path}" in uploads:  # which have the same fields in a form
                    refused(answer, 422, "invalid", given)
                else:
                    refused(
                        answer,
                        422,
                        "unknown_parameter",
                        repr(given),
                    )
                (error,) = answer.json()["errors"]
                assert error["parameter"] == given
                if meant is not None:
                    assert "did you mean " in error["detail"]
                elif known:
                    assert all(name in error["detail"] for name in known)
            if LONG_FORM:
                assert small.client().request(method, f"{address}?x=1").status_code == 401
    assert asked > 60
    answer = client.get("/v1/jobs?limt=3&" + "&".join(f"k{i}=1" for i in range(5000)))
    assert mentions(answer.json()["errors"][0]["detail"], "limit")
    assert len(answer.json()["errors"]) == 20
    answer = client.post("/v1/batch-scores/validate?keep=a", json={})
    refused(
        answer,
        422,
        "unknown_parameter",
        "'keep'",
    )


def test_a_parameter_that_is_no_list_is_given_once(client: httpx.Client) -> None:
    for address in ("/v1/models/any/artifact?format=sql&format=onnx", "/v1/jobs?limit=1&limit=2"):
        answer = client.get(address)
        refused(answer, 422, "invalid")
        assert answer.json()["errors"][0]["parameter"] in address
    assert client.get("/v1/jobs?tag=a&tag=b").status_code == 200


@pytest.mark.parametrize("parameter", ["kind", "state"])
def test_filters_that_nothing_can_meet(client: httpx.Client, parameter: str) -> None:
    offered = next(
        each["schema"]["enum"]
        for each in client.get("/openapi.json").json()["paths"]["/v1/jobs"]["get"]["parameters"]
        if each["name"] == parameter
    )
    for value in offered:
        assert client.get("/v1/jobs", params={parameter: value}).status_code == 200
    for value in ("nonsense", "train_part", "TRAIN", "", "é", "waiting"):
        answer = client.get("/v1/jobs", params={parameter: value})
        refused(answer, 422, "invalid", parameter, *offered)
        assert answer.json()["errors"][0]["parameter"] == parameter


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
    for path in (
        "/v1/datasets",
        "/v1/jobs",
        "/v1/models",
        "/v1/models/churn/aliases",
        "/v1/keys",
    ):
        refused(client.get(f"{path}?{query}"), 422, code)
    if query.startswith("limit"):
        refused(client.get(f"/v1/overview?{query}"), 422, code)


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
        ("operating-point?fpr=0.1&prevalence=0", "invalid"),
        ("operating-point?fpr=0.1&prevalence=nan", "invalid"),
        ("operating-point?prevalence=0.1", "invalid_parameter"),
        ("operating-point?cost_false_positive=1", "invalid"),
        ("operating-point?cost_false_positive=1&cost_false_negative=-1", "invalid"),
        ("operating-point?cost_false_positive=1&cost_false_negative=1e300", "invalid_parameter"),
        ("operating-point?cost_false_positive=0&cost_false_negative=0", "invalid_parameter"),
        ("operating-points?points=9", "invalid"),
        ("operating-points?points=1001", "invalid"),
        ("operating-points?points=x", "invalid"),
        ("operating-points?on=moon", "invalid"),
        ("operating-points?prevalence=1", "invalid"),
        ("operating-points?cost_false_negative=1", "invalid"),
        ("operating-points?cost_false_positive=1&cost_false_negative=nan", "invalid"),
        ("operating-points?cost_false_positive=0&cost_false_negative=0", "invalid_parameter"),
        ("roc?band=both", "invalid"),
        ("plot?kind=pr", "invalid"),
        ("plot?format=pdf", "invalid"),
        ("plot?band=both", "invalid"),
        ("plot?format=png&width=199", "invalid"),
        ("plot?format=png&width=4001", "invalid"),
        ("plot?on=test", "invalid"),
        ("report?format=pdf", "invalid"),
    ],
)
def test_questions_to_a_model(client: httpx.Client, model_id: str, path: str, code: str) -> None:
    refused(client.get(f"/v1/models/{model_id}/{path}"), 422, code)


def test_methods(client: httpx.Client) -> None:
    answer = client.put("/v1/jobs")
    refused(
        answer,
        405,
        "method_not_allowed",
        "PUT",
        "GET, POST",
    )
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
    refused(
        client.delete("/v1/models/churn"),
        422,
        "invalid",
        "'churn'",
    )


def test_events(client: httpx.Client) -> None:
    job_id = client.get("/v1/jobs").json()["data"][0]["id"]
    refused(client.get(f"/v1/jobs/{job_id}/events?after=-1"), 422, "invalid")
    stream = {"Accept": "text/event-stream", "Last-Event-ID": "x"}
    refused(
        client.get(f"/v1/jobs/{job_id}/events", headers=stream), 422, "invalid", "Last-Event-ID"
    )
