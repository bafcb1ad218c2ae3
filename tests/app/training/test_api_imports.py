"""Models of other libraries and own artifacts imported over HTTP: equal scores, and refusals that store nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from app.models.imported import IMPORTED
from core import AdaBoostMH, Logistic, save
from core.importing.ranker import NAME
from core.version import VERSION
from tests.app.live_service import STRANGER, Service
from tests.core.artifact_bytes import put_together, take_apart
from tests.core.importing.test_import_model import MODELS, stored
from tests.long_form import one_in

LIGHTGBM, XGBOOST = "lightgbm-4.7.0-binary.txt", "xgboost-3.2.0-logistic.json"
"""Of the same three columns, of which one is a category."""
OLD = "xgboost-2.1.4-logistic.ubj"


def dataset(service: Service, client: httpx.Client, name: str, **fields: str) -> str:
    """Upload the rows of a fixture with a label that depends on the scores; return the dataset's id."""
    _, rows, scores = stored(name)
    rng = np.random.default_rng(0)
    rows = rows.assign(left=np.where(scores + rng.normal(size=len(rows)) > 0, "yes", "no"))
    return service.upload(client, rows.to_csv(index=False), **fields)


def declared(name: str) -> dict[str, str]:
    """The fields that a fixture must declare."""
    options, _, _ = stored(name)
    return {
        field: json.dumps(value) if field == "categories" else str(value)
        for field, value in options.items()
    }


def send(
    client: httpx.Client,
    fixture: str,
    dataset_id: str,
    content: bytes | None = None,
    /,
    **fields: str,
) -> httpx.Response:
    given = {"name": "churn", "dataset_id": dataset_id, **declared(fixture), **fields}
    file = MODELS[fixture].read_bytes() if content is None else content
    return client.post("/v1/models", data=given, files={"file": (fixture, file)})


def ended(service: Service, client: httpx.Client, answer: httpx.Response) -> dict[str, Any]:
    """Do the job, and return it."""
    assert answer.status_code == 202, answer.text
    service.work()
    job: dict[str, Any] = client.get(f"/v1/jobs/{answer.json()['id']}").json()
    return job


def lines(scores: np.ndarray) -> str:
    return "\n".join(map(repr, scores.tolist()))


def scores_of(client: httpx.Client, model: str, rows: pd.DataFrame) -> list[float]:
    plain = rows.astype(object).where(rows.notna(), None).to_dict("records")
    answer = client.post(f"/v1/models/{model}/score", json={"rows": plain})
    assert answer.status_code == 200, answer.text
    scores: list[float] = answer.json()["scores"]
    return scores


def test_name_of_the_algorithm() -> None:
    assert IMPORTED == NAME


@pytest.mark.parametrize("name", [LIGHTGBM, XGBOOST, OLD])
def test_imported_model_scores_as_its_library(service: Service, name: str) -> None:
    client = service.client(service.key())
    _, rows, expected = stored(name)
    dataset_id = dataset(service, client, name)
    job = ended(service, client, send(client, name, dataset_id, expected=lines(expected)))
    assert job["state"] == "succeeded", job["error"]
    assert (job["kind"], job["output"]["kind"]) == ("import", "model")
    model = client.get("/v1/models/churn").json()
    origin = model["imported"]
    assert origin["source"].split()[0].lower() == name.partition("-")[0]
    assert origin["sha256"] == hashlib.sha256(MODELS[name].read_bytes()).hexdigest()
    assert (origin["dataset_sha256"], origin["model"], origin["imported_by"]) == (
        None,
        None,
        "test",
    )
    assert (model["objective"], model["optimised_for"], job["objective"]) == (None, None, None)
    assert model["rows"] == {
        "unit": "rows",
        "dataset": len(rows),
        "training": None,
        "validation": len(rows),
    }
    assert model["dataset"] is None
    assert model["validation_dataset"]["id"] == dataset_id
    assert [each["name"] for each in model["features"]] == list(rows)
    np.testing.assert_array_equal(scores_of(client, "churn", rows), expected)


FORMS: dict[str, dict[str, Any]] = {
    "rankboost": {"n_rounds": 10},
    "scorecard": {},
    "auc_svm": {"feature_map": "bins"},
    "lambdamart": {"n_rounds": 10, "monotone": {"age": "increasing"}},
    "random_forest": {"n_trees": 5},
}


@pytest.mark.parametrize("algorithm", one_in(5, FORMS))
def test_own_artifact_scores_as_its_original(service: Service, algorithm: str) -> None:
    """Imported by another owner, as in another installation, and by its own."""
    client, stranger = service.client(service.key()), service.client(service.key(STRANGER))
    _, rows, _ = stored(LIGHTGBM)
    trained_on = dataset(service, client, LIGHTGBM, positive="yes")
    asked = {"name": algorithm, **FORMS[algorithm]}
    client.post("/v1/jobs", json={"dataset_id": trained_on, "name": "one", "algorithm": asked})
    service.work()
    original = client.get("/v1/models/one").json()
    artifact = client.get("/v1/models/one/artifact").content
    expected = scores_of(client, "one", rows)
    other = rows.assign(left=np.where(np.arange(len(rows)) % 3 > 0, "yes", "no"))
    held_out = service.upload(stranger, other.to_csv(index=False), positive="yes")
    told = {"expected": lines(np.array(expected)), "tags": "team=risk"}
    given = {"name": "two", "dataset_id": held_out, **told}
    sent = stranger.post("/v1/models", data=given, files={"file": ("m", artifact)})
    assert ended(service, stranger, sent)["state"] == "succeeded", sent.text
    copy = stranger.get("/v1/models/two").json()
    assert scores_of(stranger, "two", rows) == expected
    assert copy["artifact"]["sha256"] == original["artifact"]["sha256"]
    assert copy["algorithm"]["name"] == algorithm
    assert copy["algorithm"].items() <= original["algorithm"].items()
    assert (copy["tags"], copy["objective"], copy["dataset"]) == ({"team": "risk"}, None, None)
    assert copy["imported"] == {
        "source": f"Rankwright {VERSION}",
        "sha256": original["artifact"]["sha256"],
        "dataset_sha256": original["dataset"]["sha256"],
        "model": None,
        "imported_by": "test",
    }
    assert copy["artifact"]["not_exportable"] == original["artifact"]["not_exportable"]
    structures = [
        {**of.json(), "model_id": ""}
        for of in (
            client.get("/v1/models/one/structure"),
            stranger.get("/v1/models/two/structure"),
        )
    ]
    assert structures[0] == structures[1]
    # on its own training rows
    sent = client.post(
        "/v1/models", params={"name": "two", "dataset_id": trained_on}, content=artifact
    )
    assert ended(service, client, sent)["state"] == "succeeded"
    again = client.get("/v1/models/two").json()
    assert again["imported"]["model"] == {"id": original["id"], "name": "one", "version": 1}
    assert any("trained on this dataset" in each for each in again["warnings"])
    assert not any("trained on this dataset" in each for each in copy["warnings"])


def test_imported_model_is_used_like_a_trained_one(service: Service) -> None:
    client = service.client(service.key())
    dataset_id = dataset(service, client, XGBOOST, positive="yes")
    ended(service, client, send(client, XGBOOST, dataset_id))
    model = client.get("/v1/models/churn").json()
    for part in ("metrics", "roc", "operating-points", "importance", "structure", "calibration"):
        assert client.get(f"/v1/models/churn/{part}").status_code == 200, part
    assert client.get("/v1/models/churn/importance").json()["on"] == "validation"
    assert client.get("/v1/models/churn/metrics?on=train").status_code == 404
    for path in ("partial-dependence?feature=age", "variable-dependence?feature=age"):
        found = client.get(f"/v1/models/churn/{path}")
        assert (found.status_code, found.json().get("on")) == (200, "validation"), found.text
    # a guarantee on an alias, reasons and monitoring
    set_to = {"model_id": model["id"], "guarantee": {"fpr": 0.3, "confidence": 0.9}}
    assert client.put("/v1/models/churn/aliases/live", json=set_to).status_code in (200, 201)
    row = {"age": 1.0, "amount paid": 0.5, "town": "Ulm"}
    answer = client.post("/v1/models/churn@live/score?reasons=2", json={"rows": [row]})
    assert len(answer.json()["reasons"][0]) == 2, answer.text
    # the rows are validation rows, not training rows
    asked = {"model": "churn", "dataset_id": dataset_id}
    made = client.post("/v1/evaluations", json=asked).json()
    service.work()
    evaluation = client.get(f"/v1/evaluations/{made['id']}").json()
    assert evaluation["status"] == "ready"
    assert evaluation["seen"] == "validated"
    other = dataset(service, client, LIGHTGBM, positive="yes")
    assert client.post("/v1/evaluations", json={**asked, "dataset_id": other}).status_code == 202
    service.work()
    assert client.get("/v1/models/churn/report").status_code == 200
    batch = client.post("/v1/batch-scores", json={"model": "churn@live", "dataset_id": other})
    feedback = client.put("/v1/models/churn/aliases/live/feedback", json={"monitor": {}})
    assert (batch.status_code, feedback.status_code) == (202, 201), feedback.text
    service.work()
    done = client.get(f"/v1/batch-scores/{batch.json()['id']}").json()
    assert done["status"] == "ready", done
    protection = {"protected": True}
    answer = client.put(
        "/v1/models/churn/aliases/live/protection", json=protection, headers={"If-Match": '"1"'}
    )
    assert answer.status_code == 200, answer.text
    asked = {
        "kind": "set",
        "name": "churn",
        "alias": "live",
        "model_id": model["id"],
        "reason": "same",
    }
    assert client.post("/v1/alias-requests", json=asked).status_code == 201


def fitted(ranker: Any, names: tuple[str, ...] | None = ("age", "height")) -> bytes:
    """The artifact of a ranker that was fitted outside the service."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X > 0 if ranker.target == "multilabel" else X[:, 0] > 0
    return save(ranker.fit(X if names is None else pd.DataFrame(X, columns=list(names)), y))


OWN = fitted(Logistic())
NAMELESS = fitted(Logistic(), None)
TWO_LABELS = fitted(AdaBoostMH(n_rounds=2))
HEADER, ARRAYS = take_apart(OWN)
INFINITE = put_together(HEADER, {**ARRAYS, "w": np.full(2, np.inf)})
REPEATED = OWN.replace(rb"\"parameters\":", rb"\"algorithm\" :", 1)


def replaced(name: str, old: str, new: str) -> bytes:
    """Return the bytes of a fixture with a change."""
    content = MODELS[name].read_bytes().replace(old.encode(), new.encode(), 1)
    assert content != MODELS[name].read_bytes()
    return content


def changed(name: str, row: int) -> str:
    """Return the expected scores of a fixture, with another one in a row (from 1)."""
    _, _, scores = stored(name)
    scores[row - 1] += 0.25
    return lines(scores)


FAILED: list[tuple[str, bytes | None, dict[str, str], str, str]] = [
    (LIGHTGBM, b"a pickle", {}, "invalid_model_file", "LightGBM's text"),
    (LIGHTGBM, OWN, {"features": "age"}, "invalid_parameter", "features"),
    (LIGHTGBM, OWN[:-1], {}, "invalid_artifact", "incomplete"),
    (LIGHTGBM, OWN[:80], {}, "invalid_artifact", "truncated"),
    (LIGHTGBM, OWN, {}, "unknown_column", "'height'"),
    (LIGHTGBM, NAMELESS, {}, "invalid_artifact", "names"),
    (LIGHTGBM, TWO_LABELS, {}, "invalid_artifact", "AdaBoostMH"),
    (LIGHTGBM, INFINITE, {}, "invalid_artifact", "w must be"),
    (LIGHTGBM, REPEATED, {}, "invalid_artifact", "'algorithm' occurs twice"),
    (
        LIGHTGBM,
        replaced(LIGHTGBM, "num_class=1", "num_class=3"),
        {},
        "invalid_model_file",
        "num_class",
    ),
    (
        LIGHTGBM,
        replaced(LIGHTGBM, "left_child=", "left_child=99 "),
        {},
        "invalid_model_file",
        "tree 0",
    ),
    (LIGHTGBM, None, {"features": "age,town"}, "invalid_parameter", "3 distinct names"),
    (LIGHTGBM, None, {"features": "age,left,town"}, "unknown_column", "'left'"),
    (LIGHTGBM, None, {"features": "town,age,amount paid"}, "unknown_column", "'town'"),
    (LIGHTGBM, None, {"missing": "nan"}, "invalid_parameter", "missing"),
    (LIGHTGBM, None, {"n_trees": "9999"}, "invalid_parameter", "n_trees"),
    (OLD, None, {"categories": '{"street": ["a"]}'}, "invalid_parameter", "'street'"),
    (XGBOOST, None, {"expected": changed(XGBOOST, 3)}, "expected_scores", "row 3 has"),
    (LIGHTGBM, None, {"expected": changed(LIGHTGBM, 1)}, "expected_scores", "row 1 has"),
    (LIGHTGBM, None, {"expected": "0.5\n0.5"}, "expected_scores", "got 2"),
    (LIGHTGBM, None, {"expected": "score\n0.5"}, "expected_scores", "'score' for row 1"),
]


def test_failed_import_stores_nothing(service: Service) -> None:
    client = service.client(service.key())
    datasets = {name: dataset(service, client, name) for name in (LIGHTGBM, XGBOOST, OLD)}
    for name, content, fields, code, says in FAILED:
        job = ended(service, client, send(client, name, datasets[name], content, **fields))
        assert (job["state"], job["error"]["code"]) == ("failed", code), job["error"]
        assert says in job["error"]["detail"]
        assert client.get("/v1/models").json()["data"] == []
        assert client.post(f"/v1/jobs/{job['id']}/retry").json()["code"] == "upload_deleted"


def test_wrong_fields_are_refused(service: Service) -> None:
    client = service.client(service.key())
    dataset_id = dataset(service, client, LIGHTGBM)
    for fields, wrong in (
        ({"name": "Churn!"}, "name"),
        ({"name": ""}, "name"),
        ({"dataset_id": ""}, "dataset_id"),
        ({"missing": "no"}, "missing"),
        ({"n_trees": "0"}, "n_trees"),
        ({"categories": "{town"}, "categories"),
        ({"categories": '{"town": [1]}'}, "categories"),
        ({"features": "age,age"}, "features"),
        ({"protected_features": "town"}, "protected_features"),
        ({"tree": "1"}, "tree"),
        ({"tags": "team"}, "tags"),
        ({"tags": "team=a,team=b"}, "tags"),
        ({"tags": "=a"}, "tags"),
    ):
        answer = send(client, LIGHTGBM, dataset_id, **fields)
        assert answer.status_code == 422, answer.text
        assert [wrong in str(each) for each in answer.json()["errors"]] == [True], answer.text


def test_wrong_datasets_are_refused(service: Service) -> None:
    client = service.client(service.key())
    of_another = dataset(service, service.client(service.key(STRANGER)), LIGHTGBM)
    assert send(client, LIGHTGBM, of_another).status_code == 404
    lines = [f"{k % 9},{k // 9},{'yes' if k % 2 else 'no'}" for k in range(90)]
    of_lists = service.upload(client, "\n".join(["age,list,left", *lines]), query="list")
    assert send(client, LIGHTGBM, of_lists).json()["code"] == "wrong_kind"
    assert client.get("/v1/jobs?kind=import").json()["data"] == []


def test_import_needs_a_file(service: Service) -> None:
    client = service.client(service.key())
    given = {"name": "churn", "dataset_id": dataset(service, client, LIGHTGBM)}
    assert (
        client.post("/v1/models", data=given, files={"file": ("m", b"")}).json()["code"]
        == "empty_body"
    )
    assert client.post("/v1/models", files={"name": (None, "churn")}).status_code == 400


def test_large_files_and_fields_are_refused(start: Callable[..., Service]) -> None:
    service = start(max_upload_bytes=20_000, max_body_bytes=9_000)
    client = service.client(service.key())
    dataset_id = dataset(service, client, LIGHTGBM)
    assert send(client, LIGHTGBM, dataset_id, b"tree" + bytes(30_000)).status_code == 413
    assert send(client, LIGHTGBM, dataset_id, expected="0.5\n" * 2_500).status_code == 413
    many = {f"field_{k}": "0" * 4_000 for k in range(33)}
    assert send(client, LIGHTGBM, dataset_id, **many).status_code == 413
    assert client.get("/v1/jobs?kind=import").json()["data"] == []


def test_raw_body_with_fields_in_the_query(service: Service) -> None:
    client = service.client(service.key())
    params = {"name": "churn", "dataset_id": dataset(service, client, LIGHTGBM)}
    content = MODELS[LIGHTGBM].read_bytes()
    assert (
        ended(service, client, client.post("/v1/models", params=params, content=content))["state"]
        == "succeeded"
    )


def test_same_key_imports_once(service: Service) -> None:
    client = service.client(service.key(), **{"Idempotency-Key": "once"})
    dataset_id = service.upload(
        service.client(service.key()),
        stored(LIGHTGBM)[1].assign(left=["yes", "no"] * 88).to_csv(index=False),
    )
    first, again = (send(client, LIGHTGBM, dataset_id) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (
        send(client, LIGHTGBM, dataset_id, n_trees="2").json()["code"] == "idempotency_key_reused"
    )


def test_import_is_checked_without_creating_anything(service: Service) -> None:
    client = service.client(service.key())
    dataset_id = dataset(service, client, LIGHTGBM)
    files = {"file": ("m.txt", MODELS[LIGHTGBM].read_bytes())}
    asked = {"name": "churn", "dataset_id": dataset_id}
    assert client.post("/v1/models/validate", data=asked, files=files).json() == {"valid": True}
    asked["dataset_id"] = "ds_none"
    assert client.post("/v1/models/validate", data=asked, files=files).status_code == 404
    assert client.get("/v1/jobs?kind=import").json()["data"] == []
