"""How many rows a model was trained and validated on, for each method of validation and kind of dataset."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from app.measures import rows_used
from tests.app.live_service import Service
from tests.app.preference_data import items_csv, pairs_csv
from tests.long_form import long_form, rest

ROWS = 300


def dated(*, groups: bool = False) -> str:
    """Rows with a day each; with groups, each has rows of many days."""
    rng = np.random.default_rng(3)
    lines = ["day,who,a,y"]
    for row in range(ROWS):
        a = rng.normal()
        day = np.datetime64("2026-01-01") + np.timedelta64(row // 3, "D")
        who = row % 7 if groups and row % 3 else row
        lines.append(f"{day},w{who},{a:.4f},{'yes' if a + rng.normal() > 0 else 'no'}")
    return "\n".join([*lines, ""])


def read(service: Service, client: httpx.Client, dataset: str, **job: Any) -> dict[str, Any]:
    job = {"algorithm": {"name": "rankboost", "n_rounds": 3}} | job
    done = service.train(client, dataset, name="counted", **job)
    assert done["state"] == "succeeded", done
    model: dict[str, Any] = client.get(f"/v1/models/{done['output']['id']}").json()
    report = client.get(f"/v1/models/{model['id']}/report", headers={"Accept": "application/json"})
    assert report.json()["model"]["rows"] == model["rows"]
    return model


@pytest.mark.parametrize(
    ("validation", "trained", "validated"),
    [
        ({"method": "holdout", "fraction": 0.25, "time_column": None}, 0.75, 0.25),
        ({"method": "cross_validation", "folds": 4}, 1.0, 0.8),
        *rest(
            ({"method": "holdout", "fraction": 0.25}, 0.75, 0.25),
            (
                {"method": "cross_validation", "folds": 4, "repeats": 2, "time_column": None},
                1.0,
                1.0,
            ),
            ({"method": "none"}, 1.0, None),
        ),
    ],
)
def test_rows_of_each_method_of_validation(
    small: Service, validation: dict[str, Any], trained: float, validated: float | None
) -> None:
    client = small.client(small.key())
    dataset = small.upload(client, dated(), label="y", positive="yes", drop="who")
    found = read(small, client, dataset, validation=validation)["rows"]
    assert (found["unit"], found["dataset"]) == ("rows", ROWS)
    assert found["training"] == pytest.approx(trained * ROWS, abs=6)
    if validated is None:
        assert found["validation"] is None
    else:
        assert found["validation"] == pytest.approx(validated * ROWS, abs=6)
    if validation["method"] == "holdout":
        assert found["training"] + found["validation"] == ROWS
    # They remain when the dataset is deleted; only its own number does not.
    assert client.delete(f"/v1/datasets/{dataset}").status_code == 204
    after = client.get("/v1/models/counted").json()["rows"]
    assert after == found | {"dataset": None}


@long_form
def test_rows_of_groups_that_are_in_neither_part(small: Service) -> None:
    client = small.client(small.key())
    dataset = small.upload(client, dated(groups=True), label="y", positive="yes", group="who")
    asked = {"method": "holdout", "fraction": 0.25, "time_column": "day"}
    found = read(small, client, dataset, validation=asked)["rows"]
    assert found["validation"] < found["training"]
    assert found["training"] + found["validation"] < found["dataset"] == ROWS
    assert f"{ROWS - found['training'] - found['validation']} in neither" in rows_used(
        found, "holdout"
    )


def test_rows_of_lists_and_grades(small: Service) -> None:
    client = small.client(small.key())
    rng = np.random.default_rng(4)
    lines = ["q,a,grade"]
    for row in range(ROWS):
        a = rng.normal()
        lines.append(f"q{row % 30},{a:.4f},{int(np.clip(round(a + 1), 0, 2))}")
    text = "\n".join([*lines, ""])
    answer = client.post(
        "/v1/datasets",
        params={"name": "graded", "kind": "graded", "label": "grade", "query": "q"},
        content=text,
        headers={"Content-Type": "text/csv"},
    )
    small.work()
    job = {
        "algorithm": {"name": "lambdamart", "n_rounds": 3},
        "objective": {"metric": "ndcg", "count": 5},
    }
    found = read(small, client, answer.json()["id"], **job)["rows"]
    assert found["dataset"] == ROWS == found["training"] + found["validation"]


def test_pairs_are_counted_and_not_items(small: Service) -> None:
    client = small.client(small.key())
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    pairs = [tuple(rng.choice(60, 2, replace=False).tolist()) for _ in range(800)]
    pairs = [(i, k) if X[i, 0] > X[k, 0] else (k, i) for i, k in pairs]
    answer = client.post(
        "/v1/datasets",
        params={"name": "items", "kind": "preferences", "item": "item"},
        content=items_csv(X),
        headers={"Content-Type": "text/csv"},
    )
    dataset = answer.json()["id"]
    small.work()
    client.put(
        f"/v1/datasets/{dataset}/pairs",
        content=pairs_csv(pairs),
        headers={"Content-Type": "text/csv"},
    )
    small.work()
    found = read(small, client, dataset)["rows"]
    assert (found["unit"], found["dataset"]) == ("pairs", 800)
    assert 0 < found["validation"] < found["training"] < 800
