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
from tests.app.refusals import refused
from tests.core.artifact_bytes import put_together, take_apart
from tests.core.importing.test_import_model import MODELS, lists_of, stored
from tests.long_form import one_in
from tests.raising import mentions
from tests.sentences import Sentences

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
        "unknown_categories": [],
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
    (LIGHTGBM, None, {"features": "age,left,town"}, "invalid_parameter", "'left'"),
    (LIGHTGBM, None, {"features": "town,age,amount paid"}, "invalid_parameter", "'town'"),
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


def with_words(*words: object) -> bytes:
    """Return the model of the first three towns, under these categories in place of Bonn, Celle and Ulm."""
    return BY_TOWN.replace(b'["Bonn","Celle","Ulm"]', json.dumps(words).encode())


BY_TOWN = lists_of("[0.5:2] [0:9] 0:2", '[["Bonn","Celle","Ulm"]]')
TREE = [
    (amount, grade, place, (8.0 if amount > 1.5 else 4.0 if grade else (1.0, 2.0, 1.0)[place]))
    for amount in (1, 2)
    for grade in (0, 1)
    for place in (0, 1, 2)
]
"""The rows of that model: amount, grade, the number of the town, and the score."""
TOWNS = ["Bonn", "Celle", "Ulm"]


def rows_of(towns: list[str], grades: list[str] | None = None) -> str:
    """Return a table of these rows with other words for the towns and the grades."""
    written = [
        (amount, grade if grades is None else grades[grade], towns[place], label)
        for label in ("yes", "no")
        for amount, grade, place, _ in TREE
    ]
    frame = pd.DataFrame(written, columns=["amount", "grade", "town", "left"])
    text: str = frame.to_csv(index=False)
    return text


EXPECTED = lines(np.array([score for *_, score in TREE] * 2))


def imported(
    service: Service,
    client: httpx.Client,
    data: bytes,
    table: str,
    reading: dict[str, str] | None = None,
    **fields: str,
) -> dict[str, Any]:
    """Upload the table, import the model with it, and return the job."""
    dataset_id = service.upload(client, table, **(reading or {}))
    given = {"name": "churn", "dataset_id": dataset_id, **fields}
    return ended(
        service, client, client.post("/v1/models", data=given, files={"file": ("m", data)})
    )


@pytest.mark.parametrize(
    ("words", "written"),
    [
        ([" Bonn", "Celle ", "Ulm"], TOWNS),
        ([" Bonn", "Celle ", "Ulm"], [" Bonn", "Celle ", "Ulm"]),
        (["True", "False", "other"], ["True", "FALSE", "other"]),
        ([True, False, "other"], ["True", "FALSE", "other"]),
        ([1, 2.0, 2.5], ["1", "2.0", "2.5"]),
        ([2**53 + 1, 2**53 + 3, "x"], [f"{2**53 + 1}", f"{2**53 + 3}", "x"]),
        (["007", "7", "12"], ["007", "7", "12"]),
    ],
)
def test_categories_are_read_as_those_of_the_dataset(
    service: Service, words: list[object], written: list[str]
) -> None:
    client = service.client(service.key())
    job = imported(
        service,
        client,
        with_words(*words),
        rows_of(written),
        {"categorical": "town"},
        expected=EXPECTED,
    )
    assert job["state"] == "succeeded", job["error"]
    assert client.get("/v1/models/churn").json()["imported"]["unknown_categories"] == []


IMPOSSIBLE: list[tuple[list[str], list[object], dict[str, str], dict[str, str]]] = [
    (["?", "Celle", "Ulm"], ["'?'"], {"missing": "NA,N/A,#N/A,<NA>,null,\\N,NaN"}, {}),
    (["NULL", "Celle", "Ulm"], ["'NULL'"], {"missing": "NA,N/A,#N/A,<NA>,\\N,NaN,?"}, {}),
    (["", "Celle", "Ulm"], ["''"], {}, {"categories": json.dumps({"town": ["none", *TOWNS[1:]]})}),
    (
        ["1.0", "1", "Ulm"],
        ["'1.0'", "'1'"],
        {},
        {"categories": json.dumps({"town": ["x", "1", "Ulm"]})},
    ),
    (
        [" Ulm", "1", "Ulm"],
        ["' Ulm'", "'Ulm'"],
        {},
        {"categories": json.dumps({"town": ["x", "1", "Ulm"]})},
    ),
]
"""Words of a model, what its refusal names, and what helps: how the dataset is read, or what is declared."""


@pytest.mark.parametrize(("words", "says", "reading", "fields"), IMPOSSIBLE)
def test_a_category_that_no_row_can_have_is_refused(
    service: Service,
    sentences: Sentences,
    words: list[str],
    says: list[object],
    reading: dict[str, str],
    fields: dict[str, str],
) -> None:
    client = service.client(service.key())
    job = imported(service, client, with_words(*words), rows_of(TOWNS), {"categorical": "town"})
    assert (job["state"], job["error"]["code"]) == ("failed", "impossible_category")
    detail = job["error"]["detail"]
    assert [each for each in ["'town'", *says] if not mentions(detail, each)] == [], detail
    sentences(job["error"])
    if reading:  # as the refusal says
        assert f"missing={reading['missing']}" in detail
    named = json.loads(fields["categories"])["town"] if fields else words
    job = imported(
        service,
        client,
        with_words(*words),
        rows_of(named),
        {"categorical": "town", **reading},
        expected=EXPECTED,
        **fields,
    )
    assert job["state"] == "succeeded", job["error"]


def test_a_dataset_may_have_no_codes_for_missing_values(service: Service) -> None:
    client = service.client(service.key())
    table, reading = rows_of(["none", "b", "c"]), {"categorical": "town", "missing": "none"}
    job = imported(service, client, with_words("none", "b", "c"), table, reading)
    assert job["error"]["code"] == "impossible_category"
    assert job["error"]["detail"].endswith("missing=,")
    reading["missing"] = ","
    data = with_words("none", "b", "c")
    job = imported(service, client, data, table, reading, expected=EXPECTED)
    assert job["state"] == "succeeded", job["error"]


ORDERED = lists_of("[0.5:2] [0:1] 0:2", '[["low","high"],["Bonn","Celle","Ulm"]]')


def test_an_ordered_category_is_words_or_codes(service: Service) -> None:
    client = service.client(service.key())
    for table in (rows_of(TOWNS, ["low", "high"]), rows_of(TOWNS)):
        job = imported(service, client, ORDERED, table, expected=EXPECTED)
        assert job["state"] == "succeeded", job["error"]
    numbers = ORDERED.replace(b'"low","high"', b"1,2")  # they may be the values or the codes
    job = imported(service, client, numbers, rows_of(TOWNS, ["1", "2"]))
    assert job["error"]["code"] == "unknown_column"
    assert mentions(job["error"]["detail"], "categorical=grade")
    reading = {"categorical": "grade"}
    table = rows_of(TOWNS, ["1", "2"])
    job = imported(service, client, numbers, table, reading, expected=EXPECTED)
    assert job["state"] == "succeeded", job["error"]
    # the codes were compared as numbers: either of the ways that the refusal names
    declared = json.dumps({"town": TOWNS})
    job = imported(service, client, BY_TOWN, rows_of(TOWNS, ["low", "high"]), categories=declared)
    assert job["error"]["code"] == "unknown_column"
    assert mentions(job["error"]["detail"], "numeric=grade")
    declared = json.dumps({"town": TOWNS, "grade": ["low", "high"]})
    open_list = lists_of("[0.5:2] [0:1] 0:2", "[]")
    table = rows_of(TOWNS, ["low", "high"])
    job = imported(service, client, open_list, table, categories=declared, expected=EXPECTED)
    assert job["state"] == "succeeded", job["error"]


def test_rows_with_unknown_categories_are_counted(service: Service) -> None:
    client = service.client(service.key())
    job = imported(service, client, BY_TOWN, rows_of(["Bonn", "Paris", "Ulm"]))
    assert job["state"] == "succeeded", job["error"]
    model = client.get("/v1/models/churn").json()
    assert model["imported"]["unknown_categories"] == [{"feature": "town", "rows": 8}]
    warned = [each for each in model["warnings"] if mentions(each, "'town'")]
    assert len(warned) == 1
    assert mentions(warned[0], 8)
    assert mentions(warned[0], 24)
    assert warned[0] in client.get(f"/v1/jobs/{job['id']}/events").text
    imported(service, client, BY_TOWN, rows_of(TOWNS))
    known = client.get("/v1/models/churn").json()
    assert known["imported"]["unknown_categories"] == []
    assert not any(mentions(each, "'town'") for each in known["warnings"])


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        (lambda k: f"2024-01-{k + 1:02}", lambda k: 19_723 + k),
        (lambda k: f"{10 * k} %", lambda k: 10 * k),
    ],
)
def test_numbers_in_another_unit_are_noted(
    service: Service, written: Callable[[int], object], numbers: Callable[[int], int]
) -> None:
    """The number itself in the table, as the note says, gives the scores of the library."""
    client = service.client(service.key())
    data = lists_of("[0.5:2] none 0:2", "[]").replace(
        b"=1.5 0.5 0", f"={numbers(5)} 0.5 0".encode()
    )
    fields: dict[str, Any] = {"categories": json.dumps({"town": TOWNS})}
    scores = {}
    for name, write in (("text", written), ("number", numbers)):
        table = "\n".join(
            ["amount,grade,town,left"]
            + [f"{write(k % 10)},0,{TOWNS[k % 3]},{('yes', 'no')[k // 30]}" for k in range(60)]
        )
        job = imported(service, client, data, table, **fields)
        assert job["state"] == "succeeded", job["error"]
        model = client.get("/v1/models/churn").json()
        noted = [each for each in model["warnings"] if mentions(each, "'amount'")]
        assert len(noted) == (name == "text"), model["warnings"]
        rows = {"amount": write(9), "grade": 0, "town": "Bonn"}
        answer = client.post("/v1/models/churn/score", json={"rows": [rows]})
        scores[name] = answer.json().get("scores")
    assert scores["number"] == [8.0]


def test_expected_scores_of_a_random_forest_are_raw_scores(service: Service) -> None:
    client, name = service.client(service.key()), "lightgbm-4.7.0-forest.txt"
    _, _, expected = stored(name)
    sent = send(client, name, dataset(service, client, name), expected=lines(expected))
    assert ended(service, client, sent)["state"] == "succeeded"


def test_a_refused_import_stores_nothing(service: Service) -> None:
    client = service.client(service.key())
    _, _, expected = stored(LIGHTGBM)
    refused(send(client, LIGHTGBM, "ds_0", expected=lines(expected)), 404, "not_found")
    assert list(service.blobs.root.rglob("uploads/*/*")) == []


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
