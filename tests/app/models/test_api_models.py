"""Models over HTTP: references, curves, operating points, aliases, artifacts, deletion."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from functools import partial

import httpx
import pytest
from sqlalchemy.orm import Session

from app.evaluation import evaluations
from app.evaluation.service import EvaluationInputs
from app.models import service as models
from app.platform.errors import Conflict, Unavailable
from app.scoring import batch as batch_scores
from tests.app.live_service import OWNER, STRANGER, Service, table
from tests.app.queue_steps import at_once
from tests.sentences import Sentences


@pytest.fixture
def trained(service: Service, client: httpx.Client) -> list[str]:
    """Ids of two versions of `churn`."""
    dataset_id = service.upload(client, table(400))
    return [service.train(client, dataset_id, seed=seed)["output"]["id"] for seed in (0, 1)]


def test_references(client: httpx.Client, trained: list[str]) -> None:
    first, second = trained
    client.put("/v1/models/churn/aliases/champion", json={"model_id": first})
    found = {
        ref: client.get(f"/v1/models/{ref}").json()["id"]
        for ref in (first, second, "churn", "churn:1", "churn:2", "churn@champion")
    }
    assert found == {
        first: first,
        second: second,
        "churn": second,
        "churn:1": first,
        "churn:2": second,
        "churn@champion": first,
    }
    assert client.get(f"/v1/models/{first}").json()["aliases"] == ["champion"]
    assert [model["id"] for model in client.get("/v1/models?name=churn").json()["data"]] == [
        second,
        first,
    ]
    assert client.get("/v1/models?name=other").json()["data"] == []
    dataset_id = client.get(f"/v1/models/{first}").json()["dataset"]["id"]
    of_dataset = client.get("/v1/models", params={"dataset_id": dataset_id}).json()["data"]
    assert [model["id"] for model in of_dataset] == [second, first]
    nobodys = {"dataset_id": "ds_" + "0" * 32}
    assert client.get("/v1/models", params=nobodys).json()["data"] == []
    assert client.get("/v1/models", params={"dataset_id": "ds_1"}).status_code == 422


def test_gini_and_ks_stand_beside_the_auc(client: httpx.Client, trained: list[str]) -> None:
    metrics = client.get(f"/v1/models/{trained[0]}/metrics").json()
    for end, value in metrics["auc"].items():
        assert metrics["gini"][end] == pytest.approx(2 * value - 1)
    points = client.get(f"/v1/models/{trained[0]}/roc").json()["points"]
    assert metrics["ks"] == pytest.approx(max(abs(p["tpr"] - p["fpr"]) for p in points))


def test_the_curve_thinned_and_whole(client: httpx.Client, trained: list[str]) -> None:
    address = f"/v1/models/{trained[0]}/roc"
    whole = client.get(address).json()
    assert whole["exact"]
    assert whole["total_points"] == len(whole["points"])
    thin = client.get(f"{address}?max_points=10").json()
    assert not thin["exact"]
    assert len(thin["points"]) <= 10
    assert all(point in whole["points"] for point in thin["points"])
    text = client.get(f"{address}?format=csv")
    assert text.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert [(float(row["fpr"]), float(row["tpr"])) for row in rows] == [
        (point["fpr"], point["tpr"]) for point in whole["points"]
    ]
    assert rows[0]["threshold"] == ""
    train = client.get(f"{address}?on=train").json()
    assert train["on"] == "train"
    assert train["total_points"] > whole["total_points"]


def test_the_metrics_are_those_of_the_curve(client: httpx.Client, trained: list[str]) -> None:
    metrics = client.get(f"/v1/models/{trained[0]}/metrics").json()
    points = client.get(f"/v1/models/{trained[0]}/roc").json()["points"]
    area = sum(
        (right["fpr"] - left["fpr"]) * (right["tpr"] + left["tpr"]) / 2
        for left, right in itertools.pairwise(points)
    )
    assert metrics["auc"]["value"] == pytest.approx(area)
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


def test_operating_points(client: httpx.Client, trained: list[str]) -> None:
    address = f"/v1/models/{trained[0]}/operating-point"
    metrics = client.get(f"/v1/models/{trained[0]}/metrics").json()
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
    assert at_fpr["tpr_at_fpr"] in [
        {
            name: height[bound]
            for name, bound in (("value", "tpr"), ("low", "low"), ("high", "high"))
        }
        for height in metrics["tpr_at_fpr"]
    ]
    assert at_fpr["threshold_low"] < at_fpr["threshold"] <= at_fpr["threshold_high"]
    assert at_fpr["prevalence"] == pytest.approx(prevalence)
    assert at_fpr["cost"] is None
    nothing = client.get(f"{address}?threshold=1e9").json()
    assert nothing["precision"]["value"] is None
    assert nothing["tpr"]["value"] == 0


def test_structure(client: httpx.Client, trained: list[str]) -> None:
    structure = client.get(f"/v1/models/{trained[0]}/structure").json()
    assert structure["model_id"] == trained[0]
    assert structure["type"] == "stumps"
    assert {rule["feature"] for rule in structure["rules"]} <= {"age", "income", "score 1"}


def test_the_artifact_is_sent_once(client: httpx.Client, trained: list[str]) -> None:
    address = f"/v1/models/{trained[0]}/artifact"
    answer = client.get(address)
    model = client.get(f"/v1/models/{trained[0]}").json()
    assert len(answer.content) == model["artifact"]["bytes"]
    assert answer.headers["ETag"] == f'"{model["artifact"]["sha256"]}"'
    again = client.get(address, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_aliases(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client)
    first, second = (service.train(client, dataset_id)["output"]["id"] for _ in range(2))
    other = service.train(client, dataset_id, name="other")["output"]["id"]
    address = "/v1/models/churn/aliases/champion"

    def put(model_id: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.put(address, json={"model_id": model_id}, headers=named)

    assert put(first, If_Match='"1"').status_code == 412  # there is nothing to match yet
    made = put(first, If_None_Match="*")
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    assert put(second, If_None_Match="*").status_code == 412
    missing = put(second)
    assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")
    moved = put(second, If_Match='"1"')
    assert (moved.status_code, moved.headers["ETag"]) == (200, '"2"')
    stale = put(first, If_Match='"1"')
    assert (stale.status_code, stale.json()["code"]) == (412, "precondition_failed")
    assert "revision 2, not 1" in stale.json()["detail"]
    assert put(other, If_Match='"2"').status_code == 422
    for unknown in ("mdl_" + "0" * 32, "churn:99", "churn@nix", "nix", "a:b:c", "", "x" * 9000):
        assert put(unknown, If_Match='"2"').status_code in (404, 422)
    assert put(first, If_Match="x").status_code == 422
    alias = client.get(address)
    assert alias.headers["ETag"] == '"2"'
    assert [(step["revision"], step["model_id"]) for step in alias.json()["history"]] == [
        (2, second),
        (1, first),
    ]
    back = put(alias.json()["history"][1]["model_id"], If_Match='"2"')
    assert back.json()["model_id"] == first
    again = put("churn:2", If_Match='"3"')
    assert (again.status_code, again.json()["model_id"]) == (200, second)
    assert put("churn:1", If_Match='"4"').json()["model_id"] == first
    assert (
        client.put("/v1/models/churn/aliases/canary", json={"model_id": second}).status_code == 201
    )
    pages = [client.get("/v1/models/churn/aliases?limit=1").json()]
    pages.append(client.get(f"/v1/models/churn/aliases?after={pages[0]['next']}").json())
    assert [(each["alias"], each["model_id"]) for page in pages for each in page["data"]] == [
        ("canary", second),
        ("champion", first),
    ]
    assert [page["has_more"] for page in pages] == [True, False]
    assert pages[1]["data"][0] == {
        name: value for name, value in client.get(address).json().items() if name != "history"
    }
    assert client.get("/v1/models/other/aliases").json()["data"] == []
    listed = client.get("/v1/models").json()["data"]
    assert {each["id"]: each["aliases"] for each in listed} == {
        first: ["champion"],
        second: ["canary"],
        other: [],
    }
    for each in listed:
        metrics = client.get(f"/v1/models/{each['id']}/metrics").json()
        assert each["auc"] == metrics["auc"]
    stranger = service.client(service.key(STRANGER))
    for caller, name in ((stranger, "churn"), (client, "nothing"), (client, "A!")):
        assert caller.get(f"/v1/models/{name}/aliases").status_code == 404
    assert client.put("/v1/models/churn/aliases/A!", json={"model_id": first}).status_code == 422


def test_an_alias_is_removed_and_comes_again(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client))["output"]["id"]
    address = "/v1/models/churn/aliases/champion"
    target, row = {"model_id": model_id}, {"age": 1, "income": 2}
    client.put(address, json=target)
    reader = service.client(service.key(scopes=["read"]))
    stranger = service.client(service.key(STRANGER))
    seen = {"If-Match": '"1"'}
    assert reader.delete(address, headers=seen).status_code == 403
    assert stranger.delete(address, headers=seen).status_code == 404
    for headers, status, code in (
        ({}, 428, "precondition_required"),
        ({"If-Match": '"2"'}, 412, "precondition_failed"),
        ({"If-Match": "x"}, 422, "invalid"),
    ):
        answer = client.delete(address, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    for path in (
        "churn/aliases/canary",
        "other/aliases/champion",
        "A!/aliases/B!",
        "a/aliases/%F0",
    ):
        assert client.delete(f"/v1/models/{path}", headers=seen).status_code == 404
    assert client.get("/v1/models/churn@champion/score", params=row).status_code == 200
    gone = client.delete(address, headers=seen)
    assert (gone.status_code, gone.content) == (204, b"")
    entry = client.get("/v1/audit").json()["data"][0]
    assert (entry["action"], entry["path"]) == (
        "DELETE /v1/models/{name}/aliases/{alias}",
        address,
    )
    assert client.get(address).status_code == 404
    assert client.get("/v1/models/churn@champion").status_code == 404
    assert client.get("/v1/models/churn/aliases").json()["data"] == []
    assert client.delete(address, headers=seen).status_code == 404
    # What was seen of it before it went is no match for it now.
    again = client.put(address, json=target)
    assert (again.status_code, again.headers["ETag"]) == (201, '"2"')
    assert [step["revision"] for step in again.json()["history"]] == [2, 1]
    assert client.delete(address, headers=seen).status_code == 412
    assert client.delete(f"/v1/models/{model_id}").status_code == 409
    assert client.delete(address, headers={"If-Match": '"2"'}).status_code == 204
    assert client.delete(f"/v1/models/{model_id}").status_code == 204  # the name's only version


def test_an_alias_is_moved_and_removed_at_once(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client))["output"]["id"]
    address, target = "/v1/models/churn/aliases/champion", {"model_id": model_id}
    for _ in range(5):
        tag = {"If-Match": client.put(address, json=target).headers["ETag"]}
        found = at_once(
            partial(client.delete, address, headers=tag),
            partial(client.put, address, json=target, headers=tag),
            partial(client.put, address, json=target),
        )
        statuses = tuple(answer.status_code for answer in found)
        # Who removes it, or moves it, or makes it anew: one after the other, and nobody by what went before.
        assert statuses in {(204, 412, 428), (204, 412, 201), (412, 200, 428)}, statuses
        left = client.get(address)
        if left.status_code == 200:
            answer = client.delete(address, headers={"If-Match": left.headers["ETag"]})
            assert answer.status_code == 204


def test_deleting(client: httpx.Client, trained: list[str]) -> None:
    first, second = trained
    client.put("/v1/models/churn/aliases/champion", json={"model_id": first})
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


def test_a_lost_artifact_is_unavailable(
    service: Service, client: httpx.Client, trained: list[str]
) -> None:
    for path in (service.context.blobs.root / "artifacts").rglob("*"):
        if path.is_file():
            path.unlink()
    for part in ("artifact", "score?age=1&income=2"):
        answer = client.get(f"/v1/models/{trained[0]}/{part}")
        assert (answer.status_code, answer.json()["code"]) == (503, "blob_missing")


def test_a_changed_artifact_is_not_loaded(
    service: Service, client: httpx.Client, trained: list[str]
) -> None:
    for path in (service.context.blobs.root / "artifacts").rglob("*"):
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


def test_nothing_is_nan(client: httpx.Client, trained: list[str]) -> None:
    def refuse(constant: str) -> float:
        raise AssertionError(constant)

    for path in ("", "/metrics", "/roc", "/operating-point?threshold=1e9", "/structure"):
        json.loads(client.get(f"/v1/models/churn{path}").text, parse_constant=refuse)
    assert math.isfinite(client.get("/v1/models/churn/score?age=&income=").json()["score"])


# --- deleted while a job is written ----------------------------------------------------------------


def score(session: Session, service: Service, model_id: str, dataset_id: str) -> object:
    return batch_scores.submit(session, service.settings, OWNER, model_id, dataset_id)


def judge(session: Session, service: Service, model_id: str, dataset_id: str) -> object:
    asked = EvaluationInputs(model_id, dataset_id)
    return evaluations.submit(session, service.settings, OWNER, asked)


@pytest.mark.parametrize("write", [score, judge])
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
                deleting.result(0.5)
        with sentences.raises(Conflict):
            deleting.result(20)
