"""Cross-validation, controls and `auto` over HTTP: asked for, shown, and what is not there."""

from __future__ import annotations

import csv
import io
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from core.metrics import auc
from tests.app.live_service import NAMES, Service, table
from tests.app.refusals import refused

FOLDS = {"method": "cross_validation", "folds": 3, "repeats": 2}


def cross_validated(service: Service, client: httpx.Client) -> dict[str, Any]:
    """Train a model `churn` by folds."""
    dataset_id = service.upload(client, table(150))
    job = service.train(client, dataset_id, validation=FOLDS, controls=None)
    assert job["state"] == "succeeded", job
    assert job["validation"] == FOLDS
    assert job["controls"] == {
        "algorithms": ["logistic", "auc_svm"],
        "skipped": None,
        "share": 0.1,
    }
    model: dict[str, Any] = client.get("/v1/models/churn").json()
    return model


def test_out_of_fold_scores_are_a_resource(service_on_both: Service) -> None:
    client = service_on_both.client(service_on_both.key())
    model = cross_validated(service_on_both, client)
    address = f"/v1/models/{model['id']}/out-of-fold"
    found = client.get(address).json()
    assert (found["repeats"], found["folds"], len(found["data"])) == (2, 3, 300)
    columns = dict(zip(found["columns"], np.array(found["data"]).T, strict=True))
    assert sorted(columns["row"]) == sorted([*range(150), *range(150)])
    for fold in found["fold_aucs"]:
        own = (columns["repeat"] == fold["repeat"]) & (columns["fold"] == fold["fold"])
        assert fold["auc"] == pytest.approx(auc(columns["y"][own], columns["score"][own]))
    text = client.get(address, params={"format": "csv"}).text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [list(map(float, row.values())) for row in rows] == found["data"]
    parquet = client.get(address, params={"format": "parquet"})
    read = pq.read_table(io.BytesIO(parquet.content))
    assert read.column_names == found["columns"]
    assert read.column("score").to_pylist() == columns["score"].tolist()
    metrics = client.get(f"/v1/models/{model['id']}/metrics").json()
    mean = np.mean([fold["auc"] for fold in found["fold_aucs"]])
    assert metrics["auc"]["value"] == pytest.approx(mean)
    assert metrics["auc"]["low"] < mean < metrics["auc"]["high"]
    refused(client.get(address, params={"format": "xml"}), 422, "invalid")
    client.delete(f"/v1/datasets/{model['dataset_id']}")
    refused(client.get(address), 409, "dataset_deleted", model["dataset_id"])
    assert client.get(f"/v1/models/{model['id']}/controls").status_code == 200


def test_what_comes_of_folds_is_approximate_and_compared_with_controls(
    service: Service, client: httpx.Client
) -> None:
    model = cross_validated(service, client)
    address = f"/v1/models/{model['id']}"
    for path, approximate in (
        ("roc", True),
        ("roc?on=train", False),
        ("metrics", True),
        ("metrics?on=train", False),
        ("operating-point?fpr=0.1", True),
    ):
        assert client.get(f"{address}/{path}").json()["approximate"] is approximate, path
    row = dict.fromkeys(NAMES, 0.5)
    one = client.get(f"{address}/score", params=row).json()
    assert one["approximate"] is True
    assert 0 <= one["fpr"] <= 1
    assert client.post(f"{address}/score", json={"rows": [row]}).json()["approximate"] is True
    found = client.get("/v1/models/churn/controls").json()
    assert found["beats"] is model["beats_controls"]
    assert found["decided_on"] == {"fpr_min": 0.0, "fpr_max": 1.0}
    assert [control["failed"] for control in found["controls"]] == [None, None]
    assert all(0 < control["rows"] == control["of_rows"] for control in found["controls"])
    assert [w["fpr_max"] for w in found["windows"]] == [1.0, 0.05]
    for control in found["windows"][0]["controls"]:
        difference = control["difference"]
        assert difference["low"] < difference["value"] < difference["high"]
        assert 0 <= difference["p_value"] <= difference["adjusted_p_value"] <= 1


def test_auto_has_a_leaderboard(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, table(150))
    algorithm = {"name": "auto", "budget_seconds": 0.5}
    job = service.train(client, dataset_id, algorithm=algorithm)
    assert job["state"] == "succeeded", job
    assert job["algorithm"] == algorithm
    assert job["controls"] == {"algorithms": [], "skipped": None, "share": 0.1}
    model = client.get("/v1/models/churn").json()
    board = client.get("/v1/models/churn/leaderboard").json()
    assert model["algorithm"] == algorithm | {"members": board["members"]}
    assert model["beats_controls"] is None
    assert {"chosen", "untried"} & {candidate["state"] for candidate in board["candidates"]}
    assert client.get("/v1/models/churn/structure").status_code == 200
    assert client.get("/v1/models/churn/importance").status_code == 200
    for path, code in (("controls", "no_controls"), ("out-of-fold", "not_cross_validated")):
        refused(client.get(f"/v1/models/churn/{path}"), 404, code)
    service.train(client, dataset_id, name="plain")
    refused(client.get("/v1/models/plain/leaderboard"), 404, "no_leaderboard", "rankboost")


def test_kinds_that_have_no_folds(service: Service, client: httpx.Client) -> None:
    body = "x,u,v\n" + "".join(f"{k},{k % 2},{k % 3 > 0}\n" for k in range(60))
    query = "?kind=multilabel&labels=u,v"
    answer = client.post(
        f"/v1/datasets{query}", content=body.encode(), headers={"Content-Type": "text/csv"}
    )
    dataset_id = answer.json()["id"]
    service.work()
    asked = {"dataset_id": dataset_id, "algorithm": {"name": "adaboost_mh"}}
    for changes, code, pointer in (
        ({"validation": FOLDS}, "unsupported", "/validation/method"),
        (
            {"validation": {"method": "holdout", "time_column": "x"}},
            "unsupported",
            "/validation/time_column",
        ),
        (
            {"search": {"method": "grid", "space": {"n_rounds": [1, 2]}, "folds": 3}},
            "unsupported",
            "/search/folds",
        ),
        ({"algorithm": {"name": "auto"}}, "wrong_kind", "/algorithm/name"),
    ):
        problem = refused(client.post("/v1/jobs", json=asked | changes), 422, code, "bipartite")
        assert problem["errors"][0]["pointer"] == pointer
    job = client.post("/v1/jobs", json=asked | {"controls": True}).json()
    assert "the dataset is of kind multilabel" in job["controls"]["skipped"]


def csv_of(**columns: Any) -> str:
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


RNG = np.random.default_rng(0)
NUMBERS, HALF = RNG.normal(size=80).round(3), np.arange(80) % 2
YES_NO = np.array(["no", "yes"])
BIT = RNG.integers(0, 2, 80)
MAY_BE = YES_NO[(RNG.random(80) < 0.2 + 0.6 * BIT).astype(int)]
NONE, SPLIT = {"method": "none"}, {"method": "holdout", "fraction": 0.25}
TABLES: dict[str, tuple[dict[str, Any], Any, dict[str, str], str]] = {
    "one binary column": ({"a": BIT, "left": MAY_BE}, SPLIT, {}, "fewer than 30 distinct rows"),
    "4 positives": (
        {"a": NUMBERS, "left": YES_NO[(np.arange(80) % 20 == 3).astype(int)]},
        NONE,
        {},
        "4 rows to learn from, fewer than 5: no rankers were compared, logistic was fitted",
    ),
    "constant columns": (
        {"a": np.ones(80), "b": np.zeros(80), "left": YES_NO[HALF]},
        SPLIT,
        {},
        "all rows are alike",
    ),
    "one group": (
        {"a": NUMBERS, "g": ["x"] * 80, "left": YES_NO[HALF]},
        NONE,
        {"group": "g"},
        "with whole groups",
    ),
}


@pytest.mark.parametrize(("columns", "validation", "roles", "said"), TABLES.values(), ids=TABLES)
def test_auto_ends_in_a_model_that_says_what_it_is(
    service: Service, columns: Any, validation: Any, roles: dict[str, str], said: str
) -> None:
    client = service.client(service.key())
    dataset_id = service.upload(client, csv_of(**columns), **roles)
    algorithm = {"name": "auto", "budget_seconds": 0.3}
    job = service.train(client, dataset_id, algorithm=algorithm, validation=validation)
    assert job["state"] == "succeeded", job
    model = client.get("/v1/models/churn").json()
    assert any(said in warning for warning in model["warnings"]), model["warnings"]


@pytest.mark.parametrize("group", [None, "g"])
def test_a_table_that_cannot_be_split_is_refused_in_words_that_help(
    service: Service, group: str | None
) -> None:
    client = service.client(service.key())
    rare = (np.arange(80) % 20 == 3).astype(int)
    columns = {"a": NUMBERS, "g": ["x"] * 80, "left": YES_NO[HALF if group else rare]}
    roles = {} if group is None else {"group": group}
    dataset_id = service.upload(client, csv_of(**columns), **roles)
    algorithm = {"name": "auto", "budget_seconds": 0.3}
    job = service.train(client, dataset_id, algorithm=algorithm, validation=SPLIT)
    assert job["state"] == "failed"
    assert job["error"]["code"] == "too_few_rows"
    assert "in more groups where there are groups, or fewer folds" in job["error"]["detail"]
    assert "validation.method 'none'" in job["error"]["detail"]
