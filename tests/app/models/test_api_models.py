"""Models over HTTP: references, curves, operating points, artifacts, deletion."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting

import httpx
import pytest
from sqlalchemy.orm import Session

from app.evaluation import evaluations
from app.evaluation.requests import EvaluationRequest
from app.models import service as models
from app.platform.errors import Conflict, Unavailable
from app.scoring import batch as batch_scores
from tests.app.live_service import OWNER, Service, table
from tests.long_form import rest
from tests.sentences import Sentences
from tests.waiting import patience


@pytest.fixture
def trained(service: Service, client: httpx.Client) -> list[str]:
    """Ids of two versions of `churn`."""
    dataset_id = service.upload(client, table(400))
    return [service.train(client, dataset_id, seed=seed)["output"]["id"] for seed in (0, 1)]


@pytest.fixture(scope="module")
def world(shared: Service) -> tuple[httpx.Client, str]:
    """A client, and the id of a model, for tests that only read."""
    client = shared.client(shared.key())
    model_id: str = shared.train(client, shared.upload(client, table(400)))["output"]["id"]
    return client, model_id


def test_references(client: httpx.Client, trained: list[str]) -> None:
    first, second = trained
    client.put("/v1/models/churn/aliases/champion", json={"model_id": first})
    found = {
        ref: client.get(f"/v1/models/{ref}").json()["id"]
        for ref in (first, second, "churn", "churn:1", "churn:2", "churn@champion")
    }
    of_first = dict.fromkeys((first, "churn:1", "churn@champion"), first)
    assert found == of_first | dict.fromkeys((second, "churn:2", "churn"), second)
    assert client.get(f"/v1/models/{first}").json()["aliases"] == ["champion"]
    named = client.get("/v1/models?name=churn").json()["data"]
    assert [model["id"] for model in named] == [second, first]
    assert client.get("/v1/models?name=other").json()["data"] == []
    dataset_id = client.get(f"/v1/models/{first}").json()["dataset"]["id"]
    of_dataset = client.get("/v1/models", params={"dataset_id": dataset_id}).json()["data"]
    assert [model["id"] for model in of_dataset] == [second, first]
    nobodys = {"dataset_id": "ds_" + "0" * 32}
    assert client.get("/v1/models", params=nobodys).json()["data"] == []
    assert client.get("/v1/models", params={"dataset_id": "ds_1"}).status_code == 422
    # What an alias points at is not deleted.
    answer = client.delete(f"/v1/models/{first}")
    assert (answer.status_code, answer.json()["code"]) == (409, "model_in_use")
    assert "churn@champion" in answer.json()["detail"]
    row = {"age": 1, "income": 2}
    assert client.get(f"/v1/models/{second}/score", params=row).status_code == 200
    assert client.delete(f"/v1/models/{second}").status_code == 204
    for path in ("", "/metrics", "/roc", "/artifact"):
        assert client.get(f"/v1/models/{second}{path}").status_code == 404
    assert client.get(f"/v1/models/{second}/score", params=row).status_code == 404
    assert client.get("/v1/models/churn").json()["id"] == first


def test_the_curve_thinned_and_whole(world: tuple[httpx.Client, str]) -> None:
    client, model_id = world
    address = f"/v1/models/{model_id}/roc"
    whole = client.get(address).json()
    assert whole["exact"]
    assert whole["total_points"] == len(whole["points"])
    thin = client.get(f"{address}?max_points=10").json()
    assert not thin["exact"]
    assert len(thin["points"]) <= 10
    assert all(point in whole["points"] for point in thin["points"])
    answer = client.get(f"{address}?format=csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(float(row["fpr"]), float(row["tpr"])) for row in rows] == [
        (point["fpr"], point["tpr"]) for point in whole["points"]
    ]
    assert rows[0]["threshold"] == ""
    for kind in ("pointwise", "simultaneous"):
        band = client.get(f"{address}?band={kind}").json()
        assert band["band"] == {"kind": kind, "level": 0.95}
        text = client.get(f"{address}?band={kind}&format=csv").text
        lows = [float(row["low"]) for row in csv.DictReader(io.StringIO(text))]
        assert lows == [point["low"] for point in band["points"]]
    train = client.get(f"{address}?on=train").json()
    assert train["on"] == "train"
    assert train["total_points"] > whole["total_points"]


def test_the_metrics_are_those_of_the_curve(world: tuple[httpx.Client, str]) -> None:
    client, model_id = world
    metrics = client.get(f"/v1/models/{model_id}/metrics").json()
    points = client.get(f"/v1/models/{model_id}/roc").json()["points"]
    area = sum(
        (right["fpr"] - left["fpr"]) * (right["tpr"] + left["tpr"]) / 2
        for left, right in itertools.pairwise(points)
    )
    assert metrics["auc"]["value"] == pytest.approx(area)
    for end, value in metrics["auc"].items():
        assert metrics["gini"][end] == pytest.approx(2 * value - 1)
    assert metrics["ks"] == pytest.approx(max(abs(p["tpr"] - p["fpr"]) for p in points))
    assert metrics["positives"] + metrics["negatives"] == 100
    (window,) = metrics["pauc"]  # of the first ⌈.05 n⌉ negatives; each takes the TPR above it
    most = math.ceil(0.05 * metrics["negatives"])
    ranks = [round(point["fpr"] * metrics["negatives"]) for point in points]
    strict = sum(
        (min(right, most) - min(left, most)) * point["tpr"]
        for (left, right), point in zip(itertools.pairwise(ranks), points, strict=False)
    )
    assert window["empirical"] == pytest.approx(strict / most)
    assert [height["fpr"] for height in metrics["tpr_at_fpr"]] == [0.001, 0.01, 0.05, 0.1, 0.2]


def test_operating_points(world: tuple[httpx.Client, str]) -> None:
    client, model_id = world
    address = f"/v1/models/{model_id}/operating-point"
    metrics = client.get(f"/v1/models/{model_id}/metrics").json()
    at_fpr = client.get(f"{address}?fpr=0.1").json()
    assert at_fpr["fpr"]["value"] <= 0.1
    assert at_fpr["fpr"]["low"] < at_fpr["fpr"]["value"] < at_fpr["fpr"]["high"]
    same = client.get(address, params={"threshold": at_fpr["threshold"]}).json()
    assert same["tpr"] == at_fpr["tpr"]
    at_tpr = client.get(address, params={"tpr": at_fpr["tpr"]["value"]}).json()
    assert at_tpr["threshold"] == at_fpr["threshold"]
    flagged = (
        at_fpr["tpr"]["value"] * metrics["positives"],
        at_fpr["fpr"]["value"] * metrics["negatives"],
    )
    precision = flagged[0] / sum(flagged)
    prevalence = metrics["positives"] / (metrics["positives"] + metrics["negatives"])
    assert at_fpr["precision"]["value"] == pytest.approx(precision)
    assert at_fpr["lift"]["value"] == pytest.approx(precision / prevalence)
    (height,) = (each for each in metrics["tpr_at_fpr"] if each["fpr"] == 0.1)
    ends = {"value": height["tpr"], "low": height["low"], "high": height["high"]}
    assert at_fpr["tpr_at_fpr"] == ends
    assert at_fpr["threshold_low"] < at_fpr["threshold"] <= at_fpr["threshold_high"]
    assert at_fpr["prevalence"] == pytest.approx(prevalence)
    assert at_fpr["cost"] is None
    nothing = client.get(f"{address}?threshold=1e9").json()
    assert nothing["precision"]["value"] is None
    assert nothing["tpr"]["value"] == 0


def test_structure(world: tuple[httpx.Client, str]) -> None:
    client, model_id = world
    structure = client.get(f"/v1/models/{model_id}/structure").json()
    assert structure["model_id"] == model_id
    assert structure["type"] == "stumps"
    assert {rule["feature"] for rule in structure["rules"]} <= {"age", "income", "score 1"}


def test_the_artifact_is_sent_once(world: tuple[httpx.Client, str]) -> None:
    client, model_id = world
    address = f"/v1/models/{model_id}/artifact"
    answer = client.get(address)
    model = client.get(f"/v1/models/{model_id}").json()
    assert len(answer.content) == model["artifact"]["bytes"]
    assert answer.headers["ETag"] == f'"{model["artifact"]["sha256"]}"'
    again = client.get(address, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_changed_artifact_is_not_loaded(
    service: Service, client: httpx.Client, trained: list[str]
) -> None:
    for path in (service.blobs.root / "artifacts").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # still an artifact
    service.app.state.models.forget(OWNER, trained[0])
    answer = client.get(f"/v1/models/{trained[0]}/score?age=1&income=2")
    assert (answer.status_code, answer.json()["code"]) == (503, "blob_damaged")
    body = {"model": trained[0], "dataset_id": service.upload(client)}
    batch = client.post("/v1/batch-scores", json=body).json()
    with pytest.raises(Unavailable):  # no fault of the owner's: a worker would try again
        service.work()
    failed = client.get(f"/v1/batch-scores/{batch['id']}").json()
    assert (failed["status"], failed["error"]["code"]) == ("failed", "blob_damaged")
    # One that is lost is not, either.
    for path in (service.blobs.root / "artifacts").rglob("*"):
        if path.is_file():
            path.unlink()
    for part in ("artifact", "score?age=1&income=2"):
        answer = client.get(f"/v1/models/{trained[0]}/{part}")
        assert (answer.status_code, answer.json()["code"]) == (503, "blob_missing")


def test_nothing_is_nan(world: tuple[httpx.Client, str]) -> None:
    client, _ = world

    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    for path in ("", "/metrics", "/roc", "/operating-point?threshold=1e9", "/structure"):
        json.loads(client.get(f"/v1/models/churn{path}").text, parse_constant=refuse)
    assert math.isfinite(client.get("/v1/models/churn/score?age=&income=").json()["score"])


# --- deleted while a job is written ----------------------------------------------------------------


def score(session: Session, service: Service, model_id: str, dataset_id: str) -> object:
    return batch_scores.submit(session, service.settings, OWNER, model_id, dataset_id)


def judge(session: Session, service: Service, model_id: str, dataset_id: str) -> object:
    asked = EvaluationRequest(model=model_id, dataset_id=dataset_id)
    return evaluations.submit(session, service.settings, OWNER, asked)


@pytest.mark.parametrize("write", [score, *rest(judge)])
def test_who_deletes_it_waits_and_is_told(
    service_on_both: Service, write: Callable[..., object], sentences: Sentences
) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client)
    model_id = service.train(client, dataset_id)["output"]["id"]
    db = service.context.db
    with ThreadPoolExecutor() as threads:
        with db.write() as session:
            write(session, service, model_id, dataset_id)
            deleting = threads.submit(db.writing, models.delete, OWNER, model_id)
            with pytest.raises(StillWaiting):  # whoever does not wait is done by now
                deleting.result(0.2)
        with sentences.raises(Conflict):
            deleting.result(patience())
