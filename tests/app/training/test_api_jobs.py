"""Training jobs over HTTP: searches, folds, baselines and `auto`; several labels; items and pairs."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy import update

from app.platform.tables import Dataset, Model
from core.metrics import auc
from tests.app.live_service import NAMES, Service, table
from tests.app.refusals import CSV, everything, job, refused
from tests.long_form import long_form, rest
from tests.sentences import Sentences

# --- searches -------------------------------------------------------------------------------------

GRID = {"method": "grid", "space": {"n_rounds": [40, 3, 12]}}


def test_a_search_is_shown_with_its_model(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, table(300))
    job = service.train(client, dataset_id, algorithm={"name": "rankboost"}, search=GRID)
    assert job["state"] == "succeeded", job
    assert job["search"] == GRID | {"fraction": 0.25}
    assert job["algorithm"]["n_rounds"] == 40
    model = client.get("/v1/models/churn").json()
    found = model["search"]
    assert found["chosen"]["n_rounds"] in (3, 12, 40)
    assert model["algorithm"]["n_rounds"] == found["chosen"]["n_rounds"]
    assert [c["parameters"]["n_rounds"] for c in found["candidates"]] == [3, 12, 40]
    best = max(candidate["value"] for candidate in found["candidates"])
    (winner,) = (c for c in found["candidates"] if c["state"] == "chosen")
    assert (winner["parameters"], winner["value"]) == (found["chosen"], best)
    assert (found["method"], found["fraction"], found["folds"]) == ("grid", 0.25, None)
    assert (found["space"], found["folds_chosen"]) == (GRID["space"], [])
    assert model["selected_by"] == {"metric": "auc"}
    structure = client.get("/v1/models/churn/structure").json()
    assert structure["rounds"] == found["chosen"]["n_rounds"]
    assert client.get("/v1/models").json()["data"][0]["selected_by"] == {"metric": "auc"}


def test_without_a_search_there_is_none(service: Service, client: httpx.Client) -> None:
    job = service.train(client, service.upload(client), search=None)
    assert job["search"] is None
    model = client.get("/v1/models/churn").json()
    assert (model["search"], model["selected_by"]) == (None, None)


def test_a_check_tells_what_a_search_would_cost(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, table(300))
    found = []
    body: dict[str, Any]
    for algorithm, search in (
        ({"name": "rankboost", "n_rounds": 100_000}, None),
        ({"name": "rankboost"}, {"method": "grid", "space": {"n_rounds": [10, 100_000]}}),
    ):
        body = {"dataset_id": dataset_id, "algorithm": algorithm, "search": search}
        body["validation"] = {"method": "holdout"}
        found.append(checked(client, **body))
    assert found[1]["search"]["fraction"] == 0.25
    assert found[1]["algorithm"]["n_rounds"] == 100_000
    one, both = (each["estimate"]["seconds"] for each in found)
    assert one < both < 2 * one
    assert client.get("/v1/jobs").json()["data"] == []


def test_an_estimate_is_of_the_algorithm(service: Service, client: httpx.Client) -> None:
    """Of the size of a table of 70,000 rows and 49 features; measured were 68 s of `additive`."""
    dataset_id = service.upload(client, table(300))
    with service.context.db.write() as session:
        session.get_one(Dataset, dataset_id).rows = 70_000 * 49 // 2
    for name, parameters, least in (
        ("additive", {}, 60),
        ("additive", {"n_bags": 80}, 600),
        ("greedy_pairs", {}, 30),
        ("komori_eguchi_boost", {"n_rounds": 1_000}, 60),
        ("auc_svm", {"feature_map": "fourier"}, 200),
        ("rankboost", {}, 1),
    ):
        algorithm: dict[str, Any] = {"name": name, **parameters}
        found = checked(client, dataset_id, algorithm=algorithm, baselines=False)
        assert least < found["estimate"]["seconds"] < 5 * least + 10


# --- rows with dates, and rows that belong together -----------------------------------------------

DAYS = [f"2026-{1 + n // 28:02}-{1 + n % 28:02}" for n in range(120)]
FORTY = [n % 40 for n in range(120)]


def dated(**more: list[Any]) -> str:
    """A CSV of a day, a feature, the label `left`, and more columns."""
    x = [n % 7 for n in range(120)]
    columns = {"day": DAYS, "x": x, "left": ["yes" if n % 3 else "no" for n in range(120)]} | more
    rows = zip(*columns.values(), strict=True)
    return "\n".join(",".join(map(str, row)) for row in [columns, *rows]) + "\n"


def checked(client: httpx.Client, dataset_id: str, **job: Any) -> dict[str, Any]:
    body = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}} | job
    answer = client.post("/v1/jobs/validate", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_random_split_of_dates_is_told(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, dated())
    assert checked(client, dataset_id)["validation"]["time_column"] == "day"
    folds = checked(client, dataset_id, validation={"method": "cross_validation"})
    assert folds["validation"]["time_column"] == "day"
    assert (folds["warnings"], folds["duplicates"]["in_splits"]) == ([], "time")
    at_random = {"method": "holdout", "time_column": None}
    for validation in (at_random, {"method": "cross_validation", "repeats": 2}):
        said = checked(client, dataset_id, validation=validation)
        assert said["validation"].get("time_column") is None
        (warning,) = said["warnings"]
        assert "'day'" in warning
    job = service.train(client, dataset_id, validation=at_random)
    model = client.get("/v1/models/churn").json()
    assert model["validation"] == job["validation"] == at_random | {"fraction": 0.25}
    assert [feature["name"] for feature in model["features"]] == ["day", "x"]
    told = checked(client, dataset_id, validation=at_random)["warnings"]
    assert set(told) <= set(model["warnings"])
    assert checked(client, dataset_id, validation={"method": "none"})["warnings"] == []


def test_a_constraint_on_the_column_of_times_is_refused(
    service: Service, client: httpx.Client
) -> None:
    dataset_id = service.upload(client, dated())
    algorithm = {"name": "rankboost", "monotone": {"day": "increasing"}}
    body = {"dataset_id": dataset_id, "algorithm": algorithm}
    answer = client.post("/v1/jobs/validate", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (
        422,
        "/algorithm/monotone",
    )
    at_random = {"method": "holdout", "time_column": None}
    assert checked(client, dataset_id, algorithm=algorithm, validation=at_random)["valid"]


def test_where_dates_do_not_split_by_default(service: Service, client: httpx.Client) -> None:
    """With groups and queries, gaps, one value, dates in another role; of two dates the latest splits."""
    for more, fields, expected, is_told in (
        ({"g": FORTY}, {"group": "g"}, None, True),
        ({"g": FORTY}, {"query": "g"}, None, True),
        ({"day": ["", *DAYS[1:]]}, {}, None, True),
        ({"born": [f"{n + 1950}-01-01" for n in FORTY]}, {}, "day", False),
        ({"day": ["2026-01-01"] * 120}, {}, None, False),
        ({}, {"drop": "day"}, None, False),
        ({}, {"categorical": "day"}, None, False),
    ):
        said = checked(client, service.upload(client, dated(**more), **fields))
        assert said["validation"].get("time_column") == expected
        assert any("'day'" in each and "random" in each for each in said["warnings"]) is is_told


def test_kinds_that_cannot_be_split_by_time_are_told(
    service: Service, client: httpx.Client
) -> None:
    text = dated(up=[n % 2 for n in range(120)])
    for query, algorithm in (
        ("kind=multilabel&labels=left,up", "adaboost_mh"),
        ("kind=graded&label=x", "rankboost"),
    ):
        answer = client.post(
            f"/v1/datasets?{query}", content=text.encode(), headers={"Content-Type": "text/csv"}
        )
        service.work()
        said = checked(client, answer.json()["id"], algorithm={"name": algorithm})
        assert said["validation"].get("time_column") is None
        (warning,) = said["warnings"]
        assert "'day'" in warning


def test_rows_that_seem_to_belong_together_are_told(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, dated(day=FORTY, customer_id=FORTY))
    (warning,) = client.get(f"/v1/datasets/{dataset_id}").json()["warnings"]
    assert (warning["code"], warning["column"]) == ("rows_of_groups", "customer_id")
    assert warning["suggestion"] == {"group": "customer_id"}
    (told,) = checked(client, dataset_id)["warnings"]
    assert "group=customer_id" in told
    answer = client.post(f"/v1/datasets/{dataset_id}/read", json=warning["suggestion"])
    service.work()
    again = answer.json()["id"]
    assert client.get(f"/v1/datasets/{again}").json()["warnings"] == []
    assert checked(client, again)["warnings"] == []


# --- cross-validation, baselines and `auto` --------------------------------------------------------

FOLDS = {"method": "cross_validation", "folds": 3, "repeats": 2}


def cross_validated(service: Service, client: httpx.Client) -> dict[str, Any]:
    """Train a model `churn` by folds."""
    dataset_id = service.upload(client, table(150))
    job = service.train(client, dataset_id, validation=FOLDS, baselines=None)
    assert job["state"] == "succeeded", job
    assert job["validation"] == FOLDS
    assert job["baselines"] == {
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
    assert client.get(address).status_code == 200  # in the trash it is still there
    client.delete(f"/v1/trash/{model['dataset_id']}")
    refused(client.get(address), 409, "dataset_deleted", model["dataset_id"])
    assert client.get(f"/v1/models/{model['id']}/baselines").status_code == 200


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
    found = client.get("/v1/models/churn/baselines").json()
    assert found["beats"] is model["beats_baselines"]
    assert found["decided_on"] == {"fpr_min": 0.0, "fpr_max": 1.0}
    assert [baseline["failed"] for baseline in found["baselines"]] == [None, None]
    assert all(0 < baseline["rows"] == baseline["of_rows"] for baseline in found["baselines"])
    assert [w["fpr_max"] for w in found["windows"]] == [1.0, 0.05]
    for baseline in found["windows"][0]["baselines"]:
        difference = baseline["difference"]
        assert difference["low"] < difference["value"] < difference["high"]
        assert 0 <= difference["p_value"] <= difference["adjusted_p_value"] <= 1


def test_auto_has_a_leaderboard(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, table(150))
    algorithm = {"name": "auto", "budget_seconds": 0.5}
    job = service.train(client, dataset_id, algorithm=algorithm)
    assert job["state"] == "succeeded", job
    assert job["algorithm"] == algorithm
    assert job["baselines"] == {"algorithms": [], "skipped": None, "share": 0.1}
    model = client.get("/v1/models/churn").json()
    board = client.get("/v1/models/churn/leaderboard").json()
    cost = model["algorithm"]["score_microseconds"]
    assert cost > 0.0
    assert model["algorithm"] == algorithm | {
        "members": board["members"],
        "score_microseconds": cost,
    }
    assert model["beats_baselines"] is None
    assert {"chosen", "untried"} & {candidate["state"] for candidate in board["candidates"]}
    assert client.get("/v1/models/churn/structure").status_code == 200
    assert client.get("/v1/models/churn/importance").status_code == 200
    for path, code in (("baselines", "no_baselines"), ("out-of-fold", "not_cross_validated")):
        refused(client.get(f"/v1/models/churn/{path}"), 404, code)
    service.train(client, dataset_id, name="plain")
    refused(client.get("/v1/models/plain/leaderboard"), 404, "no_leaderboard", "rankboost")

    # Another job repeats its fits.
    service.train(client, dataset_id, name="again", algorithm={"name": "auto", "plan": "churn"})
    again = client.get("/v1/models/again").json()
    assert again["algorithm"]["plan"] == model["id"]
    artifacts = [client.get(f"/v1/models/{name}/artifact").content for name in ("again", "churn")]
    assert artifacts[0] == artifacts[1]
    repeated = client.get("/v1/models/again/leaderboard").json()
    assert (repeated["budget_seconds"], repeated["candidates"]) == (None, [])
    assert repeated["members"] == board["members"]
    assert client.get("/v1/models/again/report?format=markdown").status_code == 200
    for given, status, code in (
        ({"plan": "plain"}, 422, "no_leaderboard"),
        ({"plan": "mdl_unknown"}, 404, "not_found"),
        ({"plan": ["churn"]}, 422, "invalid_parameter"),
    ):
        asked = {"dataset_id": dataset_id, "algorithm": {"name": "auto"} | given}
        problem = refused(client.post("/v1/jobs", json=asked), status, code)
        assert problem["errors"][0]["pointer"] == "/algorithm/plan"
    other = service.client(service.key("theirs"))
    asked = {
        "dataset_id": service.upload(other),
        "algorithm": {"name": "auto", "plan": model["id"]},
    }
    refused(other.post("/v1/jobs", json=asked), 404, "not_found")


def test_a_plan_on_another_table(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client, table(150))
    algorithm = {"name": "auto", "budget_seconds": 0.5, "monotone": {"age": "increasing"}}
    service.train(client, dataset_id, algorithm=algorithm)
    asked = {"algorithm": {"name": "auto", "plan": "churn"}}
    next_month = service.upload(client, table(400, seed=1))
    assert 0.0 < checked(client, next_month, **asked)["estimate"]["seconds"] < 60.0
    job = service.train(client, next_month, name="next", **asked)
    assert job["state"] == "succeeded", job
    assert client.get("/v1/models/next").json()["monotone"]["verdict"] == "proven"

    # The job of a plan that took longer than the default timeout has time for it.
    with service.context.db.write() as session:
        session.execute(update(Model).values(fit_seconds=10_000.0))
    cv = {"method": "cross_validation", "folds": 2}
    job = client.post("/v1/jobs", json={"dataset_id": dataset_id, "validation": cv, **asked}).json()
    assert job["timeout_seconds"] == 60_000.0
    client.post(f"/v1/jobs/{job['id']}/cancel")

    # A constraint of the plan is on a column that this table does not have.
    lacking = service.upload(client, table(150).replace("age", "years", 1))
    answer = client.post("/v1/jobs", json={"dataset_id": lacking, **asked})
    problem = refused(answer, 422, "invalid_parameter", "age")
    assert problem["errors"][0]["pointer"] == "/algorithm/plan"


def test_kinds_that_have_no_folds(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    body = "x,u,v\n" + "".join(f"{k},{k % 2},{k % 3 > 0}\n" for k in range(60))
    answer = client.post("/v1/datasets?kind=multilabel&labels=u,v", content=body, headers=CSV)
    dataset_id = answer.json()["id"]
    service.work()
    asked = {"dataset_id": dataset_id, "algorithm": {"name": "adaboost_mh"}}
    for changes, code, pointer in (
        ({"validation": FOLDS}, "unsupported", "/validation/method"),
        ({"validation": SPLIT | {"time_column": "x"}}, "unsupported", "/validation/time_column"),
        ({"search": GRID | {"folds": 3}}, "unsupported", "/search/folds"),
        ({"algorithm": {"name": "auto"}}, "wrong_kind", "/algorithm/name"),
    ):
        problem = refused(client.post("/v1/jobs", json=asked | changes), 422, code, "bipartite")
        assert problem["errors"][0]["pointer"] == pointer
    job = client.post("/v1/jobs", json=asked | {"baselines": True}).json()
    sentences(job["baselines"]["skipped"])


def csv_of(**columns: Any) -> str:
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n"


RNG = np.random.default_rng(0)
NUMBERS, HALF = RNG.normal(size=80).round(3), np.arange(80) % 2
YES_NO = np.array(["no", "yes"])
BIT = RNG.integers(0, 2, 80)
MAY_BE = YES_NO[(RNG.random(80) < 0.2 + 0.6 * BIT).astype(int)]
NONE, SPLIT = {"method": "none"}, {"method": "holdout", "fraction": 0.25}
TABLES: list[tuple[dict[str, Any], Any, dict[str, str], str]] = [
    ({"a": BIT, "left": MAY_BE}, SPLIT, {}, "fewer than 30 distinct rows"),
    (
        {"a": NUMBERS, "left": YES_NO[(np.arange(80) % 20 == 3).astype(int)]},
        NONE,
        {},
        "the rarer class has only 4 rows, fewer than 5",
    ),
    (
        {"a": np.ones(80), "b": np.zeros(80), "left": YES_NO[HALF]},
        SPLIT,
        {},
        "all rows are equal",
    ),
    (
        {"a": NUMBERS, "g": ["x"] * 80, "left": YES_NO[HALF]},
        NONE,
        {"group": "g"},
        "no group is divided",
    ),
]


@long_form
def test_auto_ends_in_a_model_that_says_what_it_is(service: Service, client: httpx.Client) -> None:
    for columns, validation, roles, said in TABLES:
        dataset_id = service.upload(client, csv_of(**columns), **roles)
        algorithm = {"name": "auto", "budget_seconds": 0.3}
        job = service.train(client, dataset_id, algorithm=algorithm, validation=validation)
        assert job["state"] == "succeeded", job
        model = client.get("/v1/models/churn").json()
        assert any(said in warning for warning in model["warnings"]), model["warnings"]


def test_a_table_that_cannot_be_split_is_refused_in_words_that_help(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    rare = (np.arange(80) % 20 == 3).astype(int)
    for classes, roles in ((rare, {}), (HALF, {"group": "g"})):
        columns = {"a": NUMBERS, "g": ["x"] * 80, "left": YES_NO[classes]}
        dataset_id = service.upload(client, csv_of(**columns), **roles)
        job = service.train(client, dataset_id, validation=SPLIT)
        assert (job["state"], job["error"]["code"]) == ("failed", "too_few_rows")
        sentences(job["error"])


# --- several labels -------------------------------------------------------------------------------


def labelled_table() -> str:
    rng = np.random.default_rng(0)
    lines = ["a,b,hot,big"]
    for a, b in rng.normal(size=(160, 2)).round(3).tolist():
        lines.append(f"{a},{b},{'yes' if a > 0.1 else 'no'},{int(b - a > 0)}")
    return "\n".join([*lines, ""])


def upload_labels(service: Service, client: httpx.Client) -> str:
    answer = client.post(
        "/v1/datasets",
        params={"kind": "multilabel", "labels": "hot, big"},
        content=labelled_table(),
        headers=CSV,
    )
    assert answer.status_code == 202, answer.text
    assert [label["name"] for label in answer.json()["labels"]] == ["hot", "big"]
    service.work()
    dataset_id: str = answer.json()["id"]
    return dataset_id


def test_from_a_table_to_a_score_for_each_label(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    dataset_id = upload_labels(service, client)
    ready = client.get(f"/v1/datasets/{dataset_id}").json()
    assert ready["status"] == "ready"
    assert ready["labels"][0]["positive"] == "yes"
    assert sum(ready["labels"][0][side] for side in ("positives", "negatives")) == 160
    job = service.train(
        client, dataset_id, name="both", algorithm={"name": "adaboost_mr", "n_rounds": 10}
    )
    assert job["state"] == "succeeded", job
    model = client.get("/v1/models/both").json()
    assert (model["kind"], model["label"]) == ("multilabel", None)
    assert model["labels"][1] == {"name": "big", "positive": "1", "negative": "0"}
    metrics = client.get("/v1/models/both/metrics").json()
    assert [label["label"] for label in metrics["labels"]] == ["hot", "big"]
    assert metrics["labels"][0]["auc"]["value"] > 0.9
    values = [label["auc"]["value"] for label in metrics["labels"]]
    assert metrics["mean_auc"] == pytest.approx(np.mean(values))
    assert metrics["mean_pauc"][0]["fpr_max"] == 0.05

    one = client.get("/v1/models/both/score?a=2&b=3").json()
    assert set(one["scores"]) == {"hot", "big"}
    assert one["scores"]["hot"] > 0
    by_id = client.get(f"/v1/models/{model['id']}/score?a=2&b=3")
    assert by_id.json()["scores"] == one["scores"]
    assert "ETag" in by_id.headers
    rows = {"rows": [{"a": -2, "b": 0}, {"a": 2, "b": 3}]}
    many = client.post("/v1/models/both/score", json=rows).json()
    assert many["labels"] == ["hot", "big"]
    assert many["scores"][1] == [one["scores"]["hot"], one["scores"]["big"]]
    sent: dict[str, Any] = {"content": "b,a\n0,-2\n3,2\n", "headers": CSV | {"Accept": "text/csv"}}
    text = client.post("/v1/models/both/score", **sent).text.splitlines()
    assert text[0] == "hot,big"
    assert list(map(float, text[2].split(","))) == many["scores"][1]
    sent["headers"] = CSV
    batch = client.post("/v1/batch-scores?model=both", **sent).json()["id"]
    service.work()
    assert client.get(f"/v1/batch-scores/{batch}/result?format=csv").text.splitlines() == [
        f"{'row_number' if number == 0 else number},{line}" for number, line in enumerate(text)
    ]
    refused = client.post("/v1/batch-scores?model=both&top=1", **sent)
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "top")
    ranked = client.post("/v1/models/both/rank?label=hot", json=rows).json()
    assert ranked["indices"] == [1, 0]
    assert ranked["scores"][0] == one["scores"]["hot"]
    explained = client.post("/v1/models/both/explain?label=big", json=rows).json()
    parts = explained["explanations"][1]
    assert parts["score"] == one["scores"]["big"]
    assert parts["offset"] + sum(parts["contributions"].values()) == pytest.approx(parts["score"])
    structure = client.get("/v1/models/both/structure").json()
    assert [label["label"] for label in structure["labels"]] == ["hot", "big"]
    assert client.get("/v1/models/both/artifact").status_code == 200
    written = client.get("/v1/models/both/report?format=markdown").text
    told = dict(re.findall(r"^\| (AUC of big|Mean AUC) \| ([\d.]+)", written, re.MULTILINE))
    areas = {"AUC of big": metrics["labels"][1]["auc"]["value"], "Mean AUC": metrics["mean_auc"]}
    assert told == {name: f"{value:.4f}" for name, value in areas.items()}
    assert client.get("/v1/models/both/report").json()["metrics"][0] == metrics
    refused = client.get("/v1/models/both/roc")
    assert (refused.status_code, refused.json()["code"]) == (404, "no_curve")

    # A label is named where one is looked at alone, and only there.
    service.train(client, service.upload(client), name="one")
    one_row = {"rows": [{"age": 1, "income": 2, "score 1": 3}]}
    for action in ("rank", "explain"):
        for query, word in (("", "it is missing"), ("?label=cold", "got 'cold'")):
            answer = client.post(f"/v1/models/both/{action}{query}", json=rows)
            assert answer.status_code == 422, answer.text
            assert word in answer.json()["detail"]
            assert "'hot', 'big'" in answer.json()["detail"]
            assert answer.json()["errors"][0]["parameter"] == "label"
        answer = client.post(f"/v1/models/one/{action}?label=hot", json=one_row)
        assert answer.status_code == 422
        sentences(answer.json())


# --- items and pairs ------------------------------------------------------------------------------

N_ITEMS = 60


def items() -> str:
    X = np.random.default_rng(0).normal(size=(N_ITEMS, 2)).round(3).tolist()
    return "\n".join(["film,length,age", *(f"m{i},{a},{b}" for i, (a, b) in enumerate(X)), ""])


def compare(better: int, worse: int) -> str:
    return f"m{better},m{worse}\n"


def pairs() -> str:
    """Longer is better."""
    lengths = [float(line.split(",")[1]) for line in items().splitlines()[1:]]
    rng = np.random.default_rng(1)
    lines = ["better,worse\n"]
    for _ in range(800):
        i, k = rng.choice(N_ITEMS, 2, replace=False).tolist()
        lines.append(compare(i, k) if lengths[i] > lengths[k] else compare(k, i))
    return "".join(lines)


def upload_items(service: Service, client: httpx.Client) -> str:
    answer = client.post(
        "/v1/datasets",
        params={"name": "films", "kind": "preferences", "item": "film"},
        content=items(),
        headers=CSV,
    )
    assert answer.status_code == 202, answer.text
    service.work()
    dataset_id: str = answer.json()["id"]
    return dataset_id


def put(client: httpx.Client, dataset_id: str, body: str | bytes, **headers: str) -> httpx.Response:
    return client.put(f"/v1/datasets/{dataset_id}/pairs", content=body, headers=CSV | headers)


def rows_have_no_places(service: Service, client: httpx.Client, scores: dict[str, Any]) -> None:
    assert (scores["fprs"], scores["tprs"]) == (None, None)
    table: dict[str, Any] = {
        "content": "age,length\n0,2\n",
        "headers": CSV | {"Accept": "text/csv"},
    }
    text = client.post("/v1/models/films/score", **table).text.splitlines()
    assert text == ["score,fpr,tpr,probability", f"{text[1].split(',')[0]},,,"]
    table["headers"] = CSV
    batch = client.post("/v1/batch-scores?model=films", **table).json()["id"]
    service.work()
    assert client.get(f"/v1/batch-scores/{batch}/result?format=csv").text.splitlines() == [
        f"{'row_number' if number == 0 else number},{line}" for number, line in enumerate(text)
    ]


def test_from_items_and_pairs_to_scores(service: Service, client: httpx.Client) -> None:
    dataset_id = upload_items(service, client)
    ready = client.get(f"/v1/datasets/{dataset_id}").json()
    assert (ready["status"], ready["item"], ready["label"], ready["pairs"]) == (
        "ready",
        "film",
        None,
        None,
    )
    refused(client.post("/v1/jobs", json=job(dataset_id)), 409, "pairs_not_ready")
    answer = put(client, dataset_id, pairs())
    assert answer.status_code == 202
    refused(put(client, dataset_id, pairs()), 409, "dataset_in_use")
    refused(put(client, "ds_x", pairs()), 404, "not_found")
    assert answer.headers["Location"] == f"/v1/datasets/{dataset_id}"
    assert answer.json()["pairs"]["status"] == "processing"
    job_id = answer.json()["pairs"]["job_id"]
    assert client.get(f"/v1/jobs/{job_id}").json()["kind"] == "ingest_pairs"
    assert [job["id"] for job in client.get("/v1/jobs?kind=ingest_pairs").json()["data"]] == [
        job_id
    ]
    service.work()
    found = client.get(f"/v1/datasets/{dataset_id}").json()["pairs"]
    assert (found["status"], found["pairs"], found["weighted"], found["errors"]) == (
        "ready",
        800,
        False,
        [],
    )
    assert client.get("/v1/datasets").json()["data"][0]["pairs"] == found

    trained = service.train(client, dataset_id, name="films")
    assert trained["state"] == "succeeded", trained
    assert trained["objective"] == {"metric": "pair_order"}
    model = client.get("/v1/models/films").json()
    assert (model["kind"], model["label"], model["positive"]) == ("preferences", None, None)
    metrics = client.get("/v1/models/films/metrics").json()
    assert metrics["pair_order"]["value"] > 0.9
    assert metrics["pair_order"]["low"] <= metrics["pair_order"]["value"]
    assert metrics["pairs"] >= 30
    assert client.get("/v1/models/films/metrics?on=train").json()["pairs"] > metrics["pairs"]
    score = client.get("/v1/models/films/score?length=2&age=0").json()
    assert (score["fpr"], score["tpr"]) == (None, None)
    rows = [{"length": length, "age": 0.0} for length in (-1.0, 2.0)]
    scores = client.post("/v1/models/films/score", json={"rows": rows}).json()
    assert scores["scores"][1] == score["score"] > scores["scores"][0]
    rows_have_no_places(service, client, scores)
    ranked = client.post("/v1/models/films/rank", json={"rows": rows}).json()
    assert ranked["indices"] == [1, 0]
    explained = client.post("/v1/models/films/explain", json={"rows": rows})
    assert explained.status_code == 200
    assert client.get("/v1/models/films/structure").json()["rules"]
    assert client.get("/v1/models/films/artifact").status_code == 200
    written = client.get("/v1/models/films/report?format=markdown").text
    shown = re.findall(r"^\| Pairs in order \| ([\d.]+)", written, re.MULTILINE)
    assert set(shown) == {f"{metrics['pair_order']['value']:.4f}"}
    assert "## Curves" not in written
    for path in ("roc", "operating-point?fpr=0.1", "plot"):
        refused(client.get(f"/v1/models/films/{path}"), 404, "no_curve", "preferences")


def test_requests_that_are_wrong(service: Service, client: httpx.Client) -> None:
    dataset_id = upload_items(service, client)
    before = everything(service)
    for query, headers, body, status, code in (
        ("", {}, b"", 422, "empty_body"),
        ("", {"Content-Type": "application/pdf"}, b"[]", 415, "unsupported_media_type"),
        ("", {"Content-Type": ""}, b"x", 415, "unsupported_media_type"),
        ("", {"Content-Encoding": "br"}, b"x", 415, "unsupported_media_type"),
        ("?weight=w", {}, b"better,worse\n", 422, "unknown_parameter"),
        ("", {"Content-Type": "multipart/form-data"}, b"x", 400, "malformed"),
    ):
        path = f"/v1/datasets/{dataset_id}/pairs{query}"
        refused(client.put(path, content=body, headers=CSV | headers), status, code)
    assert everything(service) == before


def test_a_check_knows_of_the_pairs(service: Service, client: httpx.Client) -> None:
    dataset_id = upload_items(service, client)
    files = {"file": ("pairs.csv", pairs().encode(), "text/csv")}  # of a form
    assert client.put(f"/v1/datasets/{dataset_id}/pairs", files=files).status_code == 202
    service.work()
    found = checked(client, dataset_id, algorithm={"name": "coordinate_rankboost"})
    assert found["objective"] == {"metric": "pair_order"}
    assert found["estimate"]["memory_bytes"] > 800 * 16
    trees = {"name": "rankboost", "weak_ranker": "tree", "n_rounds": 10_000}
    found = checked(client, dataset_id, algorithm=trees)
    assert found["estimate"]["seconds"] > 10_000 * 800 * 1e-9
    refused(put(client, service.upload(client), pairs()), 409, "wrong_kind")


def drifting(rows: int, *, drifts: bool, dates: bool = True) -> str:
    """A table whose label follows `a`, in the last quarter of the days the other way round if it drifts."""
    rng = np.random.default_rng(5)
    lines = ["day,a,y" if dates else "a,y"]
    for row in range(rows):
        a = float(rng.normal())
        sign = -1.0 if drifts and row >= 0.75 * rows else 1.0
        label = "yes" if sign * a + rng.normal() > 0 else "no"
        day = [str(np.datetime64("2026-01-01") + row // 4)] if dates else []
        lines.append(",".join([*day, f"{a:.3f}", label]))
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(("drifts", "dates"), [(True, True), (True, False), *rest((False, True))])
def test_what_a_random_split_would_have_said_stands_beside_the_newest_rows(
    small: Service, drifts: bool, dates: bool
) -> None:
    client = small.client(small.key())
    rows = drifting(600, drifts=drifts, dates=dates)
    dataset = small.upload(client, rows, label="y", positive="yes")
    job = small.train(
        client,
        dataset,
        name="dated",
        algorithm={"name": "rankboost", "n_rounds": 5},
        baselines=True,
    )
    found = client.get(f"/v1/models/{job['output']['id']}/baselines").json()
    first = found["baselines"][0]
    (whole,) = (each for each in found["windows"] if each["fpr_max"] == 1.0)
    newest = whole["baselines"][0]["area"]["value"]
    assert found["baselines"][-1].get("random_split") is None
    if not dates:
        assert first["random_split"] is None
        return
    checks = client.get(f"/v1/models/{job['output']['id']}/checks").json()["findings"]
    assert ("random_splits" in checks[0]["used"]) is drifts
    assert ("effect of time" in checks[0]["words"]) is drifts
    seems = first["random_split"]
    assert seems["low"] < seems["value"] < seems["high"]
    assert (seems["splits"], seems["rows"]) == (39, 600)
    assert seems["newest"]["value"] == pytest.approx(newest)
    if drifts:
        assert newest < 0.4  # the other way round
        assert seems["low"] > newest
        assert seems["p_value"] <= 0.05
    else:
        assert seems["low"] < newest < seems["high"]
        assert seems["p_value"] > 0.05
