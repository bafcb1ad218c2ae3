"""A blob that is missing or truncated: each reader raises an error that names it, and the doctor reports it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.operations.doctor import Level, check_store
from app.platform.errors import Unavailable
from tests.app.live_service import Service, table
from tests.long_form import long_form

Harm = Callable[[Path], Any]


def truncate(path: Path) -> None:
    """Take away the last byte."""
    path.write_bytes(path.read_bytes()[:-1])


@pytest.fixture(
    params=[
        pytest.param((truncate, "blob_damaged"), id="truncated"),
        pytest.param((Path.unlink, "blob_missing"), id="missing", marks=long_form),
    ]
)
def harmed(request: pytest.FixtureRequest, service: Service) -> Callable[[str], str]:
    """Harm every blob of a kind; returns the code that its readers respond with, and that the doctor agrees."""
    harm, code = request.param

    def of_kind(kind: str) -> str:
        store = service.blobs
        keys = [found.key for found in store.list(kind)]
        assert keys
        for key in keys:
            harm(store.path(key))
        findings = list(check_store(service.context.db, service.settings, deep=False))
        assert [each.part for each in findings if each.level == Level.FAIL] == ["blobs"]
        return str(code)

    return of_kind


def fails_with(service: Service, client: httpx.Client, submitted: httpx.Response) -> str:
    """Run a job that has been submitted; return the code of its error. It is no fault of its owner."""
    assert submitted.status_code == 202, submitted.text
    with pytest.raises(Unavailable) as error:
        service.work()
    body = submitted.json()
    job = client.get(f"/v1/jobs/{body.get('job_id', body['id'])}").json()
    assert job["error"]["detail"] == error.value.detail
    code: str = job["error"]["code"]
    return code


def refused(response: httpx.Response) -> str:
    """Return the code of a problem of the service."""
    assert response.status_code == 503, response.text
    assert "retry-after" in response.headers
    code: str = response.json()["code"]
    return code


@pytest.fixture
def model_id(service: Service, client: httpx.Client) -> str:
    """A cross-validated model of a ready dataset."""
    cross_validation = {"method": "cross_validation", "folds": 2}
    job = service.train(client, service.upload(client, table(80)), validation=cross_validation)
    id_: str = job["output"]["id"]
    return id_


def test_a_table(
    service: Service, client: httpx.Client, model_id: str, harmed: Callable[[str], str]
) -> None:
    dataset_id = client.get(f"/v1/models/{model_id}").json()["dataset"]["id"]
    code = harmed("tables")
    assert refused(client.get(f"/v1/datasets/{dataset_id}/preview")) == code
    training = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}, "baselines": False}
    assert fails_with(service, client, client.post("/v1/jobs", json=training)) == code
    for path in ("evaluations", "batch-scores"):
        body = {"model": model_id, "dataset_id": dataset_id}
        assert fails_with(service, client, client.post(f"/v1/{path}", json=body)) == code


def test_an_upload(service: Service, client: httpx.Client, harmed: Callable[[str], str]) -> None:
    dataset_id = service.upload(client)
    code = harmed("uploads")
    assert refused(client.post(f"/v1/datasets/{dataset_id}/read/validate", json={})) == code
    again = client.post(f"/v1/datasets/{dataset_id}/read", json={"name": "again"})
    assert fails_with(service, client, again) == code


def test_a_result_out_of_fold_scores_and_an_artifact(
    service: Service, client: httpx.Client, model_id: str, harmed: Callable[[str], str]
) -> None:
    dataset_id = client.get(f"/v1/models/{model_id}").json()["dataset"]["id"]
    batch = client.post("/v1/batch-scores", json={"model": model_id, "dataset_id": dataset_id})
    service.work()
    code = harmed("scores")
    for format_ in ("parquet", "csv"):
        url = f"/v1/batch-scores/{batch.json()['id']}/result?format={format_}"
        assert refused(client.get(url)) == code
    assert harmed("out-of-fold") == code
    for format_ in ("json", "parquet"):
        url = f"/v1/models/{model_id}/out-of-fold?format={format_}"
        assert refused(client.get(url)) == code
    assert harmed("artifacts") == code
    assert refused(client.get(f"/v1/models/{model_id}/artifact")) == code
    assert refused(client.get(f"/v1/models/{model_id}/score?age=1&income=2")) == code
    for path in ("evaluations", "batch-scores"):
        body = {"model": model_id, "dataset_id": dataset_id}
        assert fails_with(service, client, client.post(f"/v1/{path}", json=body)) == code
