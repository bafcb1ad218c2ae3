"""Bins of a scorecard, refitting with edited bins, points of rows, cutoffs in points, and rounding."""

from __future__ import annotations

import csv
import io
import json
import math

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.app.live_service import Service
from tests.app.refusals import refused
from tests.app.scoring.test_scorecard import people, train

SCALES = [{}, {"pdo": 40.0, "base_score": 500.0, "base_odds": 20.0}, {"pdo": 0.5}]
ROWS = [
    {"amount": amount, "purpose": purpose}
    for amount in (4.0, 9.7, 10.0, 17.5, None)
    for purpose in ("car", "house", None)
]


@pytest.fixture(scope="module")
def client(small: Service) -> httpx.Client:
    return small.client(small.key())


@pytest.fixture(scope="module")
def dataset(small: Service, client: httpx.Client) -> str:
    return small.upload(client, people(600), label="bad", positive="yes")


@pytest.fixture(scope="module")
def model(small: Service, client: httpx.Client, dataset: str) -> str:
    return train(small, client, dataset, name="scorecard", special_values={"amount": [9.7]})


@pytest.fixture(scope="module")
def others(small: Service, client: httpx.Client, dataset: str) -> dict[str, str]:
    return {
        "additive": train(
            small, client, dataset, name="additive", n_pairs=0, n_bags=2, max_rounds=100
        ),
        "logistic": train(small, client, dataset, name="logistic"),
        "pairs": train(
            small, client, dataset, name="additive", n_pairs=1, n_bags=2, max_rounds=100
        ),
        "rankboost": train(small, client, dataset, name="rankboost", n_rounds=3),
    }


def test_bins_add_up(client: httpx.Client, model: str) -> None:
    found = client.get(f"{model}/bins").json()
    assert found["train_rows"] + found["held_out_rows"] == 600
    for feature in found["features"]:
        for part, rows in (("train", "train_rows"), ("held_out", "held_out_rows")):
            counts = [each[part] for each in feature["bins"]]
            assert sum(each["rows"] for each in counts) == found[rows]
            assert sum(each["share"] for each in counts) == pytest.approx(1)
            events = sum(each["events"] for each in counts)
            others = found[rows] - events
            iv = 0.0
            for each in counts:
                negatives = each["rows"] - each["events"]
                if each["events"] and negatives:
                    p, q = each["events"] / events, negatives / others
                    assert each["woe"] == pytest.approx(math.log(p / q))
                    assert each["event_rate"] == pytest.approx(each["events"] / each["rows"])
                    assert each["woe_low"] < each["woe"] < each["woe_high"]
                elif each["rows"] == 0:
                    assert (each["woe"], each["event_rate"]) == (0, None)
                iv += (each["events"] / events - negatives / others) * each["woe"]
            of = feature["iv" if part == "train" else "held_out_iv"]
            assert of["value"] == pytest.approx(iv)
            assert of["low"] <= of["adjusted"] <= of["high"]
        for each in feature["bins"]:
            assert each["weight"] == pytest.approx(feature["coefficient"] * each["train"]["woe"])
            assert each["points"] == pytest.approx(-20 / math.log(2) * each["weight"])
    special = [each for each in found["features"][0]["bins"] if each["of"] == "special"] or [
        each for each in found["features"][1]["bins"] if each["of"] == "special"
    ]
    assert [(each["low"], each["high"]) for each in special] == [(9.7, 9.7)]


def test_a_higher_level_widens_the_intervals(client: httpx.Client, model: str) -> None:
    usual, wide = (client.get(f"{model}/bins?level={level}").json() for level in (0.9, 0.99))
    for one, other in zip(usual["features"], wide["features"], strict=True):
        assert other["iv"]["high"] > one["iv"]["high"]


def test_refitting_with_the_same_bins_gives_the_same_scores(
    small: Service, client: httpx.Client, dataset: str, model: str
) -> None:
    refit = client.get(f"{model}/bins").json()["refit"]
    again = train(small, client, dataset, **refit)
    scores = [
        client.post(f"{each}/score", json={"rows": ROWS}).json()["scores"]
        for each in (model, again)
    ]
    assert scores[0] == scores[1]
    assert client.get(f"{again}/bins").json()["refit"] == refit


def test_cross_validated_models_have_no_held_out_rows(
    small: Service, client: httpx.Client, dataset: str
) -> None:
    job = small.train(
        client,
        dataset,
        name="cv",
        baselines=None,
        algorithm={"name": "scorecard"},
        validation={"method": "cross_validation", "folds": 3},
    )
    found = client.get(f"/v1/models/{job['output']['id']}/bins").json()
    assert found["held_out_rows"] is None
    assert all(each["held_out_iv"] is None for each in found["features"])
    rounding = client.get(f"/v1/models/{job['output']['id']}/scorecard/rounding").json()
    assert (rounding["auc"], rounding["rounded_auc"], rounding["rounded_pdo"]) == (None,) * 3


def test_weights_and_dates(small: Service, client: httpx.Client) -> None:
    rng = np.random.default_rng(1)
    lines = ["since,flag,w,bad"]
    for _ in range(400):
        day, flag = int(rng.integers(1, 28)), bool(rng.random() < 0.5)
        bad = rng.random() < 0.15 + 0.02 * day
        lines.append(f"2024-01-{day:02},{str(flag).lower()},{rng.choice([0.5, 3])},{int(bad)}")
    dataset = small.upload(client, "\n".join([*lines, ""]), label="bad", positive="1", weight="w")
    job = small.train(
        client,
        dataset,
        baselines=None,
        algorithm={"name": "scorecard"},
        validation={"method": "holdout", "time_column": None},
    )
    model = f"/v1/models/{job['output']['id']}"
    found = client.get(f"{model}/bins").json()
    since = next(each for each in found["features"] if each["name"] == "since")
    assert since["type"] == "datetime"
    assert all(isinstance(each["high"], str | None) for each in since["bins"])
    edges = found["refit"]["bins"]["since"]
    assert edges
    assert all(isinstance(each, float) for each in edges)
    rows = [{"since": f"2024-01-{day:02}", "flag": True} for day in (1, 9, 18, 27)]
    answer = client.post(f"{model}/points", json={"rows": rows}).json()
    for row in answer["rows"]:
        expected = 600 - 20 / math.log(2) * (math.log(50) + row["score"])
        assert row["points"] == pytest.approx(expected)


def test_the_points_of_rows_are_their_scores(
    client: httpx.Client, model: str, others: dict[str, str]
) -> None:
    for name in ("scorecard", "additive", "logistic"):
        for scale in SCALES:
            path = others.get(name, model)
            answer = client.post(f"{path}/points", params=scale, json={"rows": ROWS}).json()
            scores = client.post(f"{path}/score", json={"rows": ROWS}).json()["scores"]
            used = {"pdo": 20.0, "base_score": 600.0, "base_odds": 50.0} | scale
            factor = used["pdo"] / math.log(2)
            for row, score in zip(answer["rows"], scores, strict=True):
                assert row["score"] == score
                parts = [each["points"] for each in row["features"]]
                assert row["points"] == pytest.approx(answer["base_points"] + sum(parts), abs=1e-9)
                # back to the score, to twelve digits
                back = (used["base_score"] - row["points"]) / factor - math.log(used["base_odds"])
                assert back == pytest.approx(score, rel=1e-12, abs=1e-12)
                whole = sum(each["rounded"] for each in row["features"])
                assert row["rounded"] == round(answer["base_points"]) + whole


def test_a_scorecard_has_its_own_scale_and_points_beside_every_score(
    small: Service, client: httpx.Client, dataset: str, model: str, others: dict[str, str]
) -> None:
    own = {"pdo": 40.0, "base_score": 500.0, "base_odds": 20.0}
    refit = client.get(f"{model}/bins", params=own).json()["refit"]
    path = train(small, client, dataset, **refit)
    wanted = client.post(f"{path}/points", json={"rows": ROWS}).json()
    assert {name: wanted[name] for name in own} == own
    for kind in ("bins", "scorecard", "scorecard/cutoff?points=500", "scorecard/rounding"):
        found = client.get(f"{path}/{kind}").json()
        assert {name: found[name] for name in own} == own
    # A query changes what it names, and leaves the rest.
    assert client.get(f"{path}/scorecard?pdo=7").json()["base_score"] == own["base_score"]
    points = [each["points"] for each in wanted["rows"]]

    body = {"rows": ROWS}
    scored = client.post(f"{path}/score", json=body).json()
    assert scored["points"] == pytest.approx(points, abs=1e-9)
    without = client.post(f"{path}/score?probability=false", json=body).json()
    assert "probabilities" not in without
    assert without["points"] == scored["points"]
    ranked = client.post(f"{path}/rank", json=body).json()
    assert ranked["points"] == [scored["points"][k] for k in ranked["indices"]]
    explained = client.post(f"{path}/explain", json=body).json()["explanations"]
    assert [each["points"] for each in explained] == scored["points"]
    for query in ("", "&probability=false", "&interval=true", "&reasons=1"):
        one = client.get(f"{path}/score?amount=9.7&purpose=car{query}").json()
        assert one["points"] == scored["points"][ROWS.index({"amount": 9.7, "purpose": "car"})]
    lines = "".join(f"{json.dumps(row)}\n" for row in ROWS)
    kinds = {"content-type": "application/x-ndjson", "accept": "text/csv"}
    table = client.post(f"{path}/score", content=lines, headers=kinds).text
    read = list(csv.DictReader(io.StringIO(table)))
    assert [float(each["points"]) for each in read] == scored["points"]

    # The result of a batch, too; a column that is kept takes precedence.
    text = "amount,purpose,points\n9.7,car,kept\n"
    batch = f"/v1/batch-scores?model={path.rpartition('/')[2]}"
    for query, expected in (
        ("ignore=points", one["points"]),
        ("ignore=points&top=1&reasons=1", one["points"]),
        ("keep=points", "kept"),
    ):
        answer = client.post(f"{batch}&{query}", content=text, headers={"content-type": "text/csv"})
        assert answer.status_code == 202, answer.text
        small.work()
        result = client.get(f"/v1/batch-scores/{answer.json()['id']}/result")
        (row,) = pq.read_table(io.BytesIO(result.content)).to_pylist()
        assert row["points"] == expected

    # Other models have no points beside their scores.
    for other in others.values():
        answer = client.post(f"{other}/score", json=body).json()
        assert "points" not in answer


def test_ids_come_back(client: httpx.Client, model: str) -> None:
    rows = [{"amount": 3.0, "purpose": "car", "no": "a7"}]
    answer = client.post(f"{model}/points", json={"rows": rows, "id": "no"}).json()
    assert answer["rows"][0]["id"] == "a7"
    for kind in ("points", "letters"):
        for value in (7, 2**53 + 1, -1.5, True, None, ""):
            rows[0]["no"] = value
            answer = client.post(f"{model}/{kind}", json={"rows": rows, "id": "no"})
            assert answer.status_code == 200
            (found,) = answer.json()["rows" if kind == "points" else "letters"]
            assert (type(found["id"]), found["id"]) == (type(value), value)


def test_a_cutoff_in_points_flags_the_same_rows(client: httpx.Client, model: str) -> None:
    for scale in SCALES:
        rows = client.post(f"{model}/points", params=scale, json={"rows": ROWS}).json()["rows"]
        for cutoff in (rows[0]["points"], 500.0, 555.5, -1e6, 1e6):
            found = client.get(
                f"{model}/scorecard/cutoff", params={**scale, "points": cutoff}
            ).json()
            used = {name: found[name] for name in ("pdo", "base_score", "base_odds")}
            factor = used["pdo"] / math.log(2)
            for row in rows:
                total = used["base_score"] - factor * (math.log(used["base_odds"]) + row["score"])
                assert (row["score"] >= found["threshold"]) == (total <= cutoff)
            back = client.get(
                f"{model}/scorecard/cutoff", params={**scale, "threshold": found["threshold"]}
            ).json()
            assert back["points"] == pytest.approx(cutoff)
            assert back["probability"] == found["probability"]
        half = client.get(f"{model}/scorecard/cutoff", params={**scale, "probability": 0.5}).json()
        assert (half["threshold"], half["odds"]) == (0.0, 1.0)
        assert 0 <= half["fpr"] <= half["tpr"] <= 1


def test_rounding_costs_more_the_coarser_the_points(client: httpx.Client, model: str) -> None:
    found = {
        pdo: client.get(f"{model}/scorecard/rounding", params={"pdo": pdo, "on": on}).json()
        for pdo, on in ((0.2, "validation"), (20, "validation"), (60, "train"))
    }
    assert found[0.2]["tied"] + found[0.2]["inverted"] > found[60]["tied"] + found[60]["inverted"]
    assert [each["rounded_pdo"] for each in found.values()] == [5.0, 20.0, 50.0]
    assert all(each["max_difference"] <= 0.5 * 3 for each in found.values())
    assert abs(found[60]["rounded_auc"] - found[60]["auc"]) < 0.01


def test_what_has_no_bins_or_points(client: httpx.Client, others: dict[str, str]) -> None:
    for name in ("additive", "logistic", "rankboost"):
        refused(client.get(f"{others[name]}/bins"), 404, "no_scorecard", "scorecard")
    body = {"rows": ROWS[:1]}
    refused(client.post(f"{others['rankboost']}/points", json=body), 404, "no_scorecard")
    for part in ("rounding", "cutoff?points=1"):
        refused(client.get(f"{others['rankboost']}/scorecard/{part}"), 404, "no_scorecard")
    pairs = others["pairs"]
    if client.get(f"{pairs}/scorecard").json()["complete"]:
        pytest.skip("no pair was found")
    refused(client.post(f"{pairs}/points", json=body), 422, "incomplete_scorecard")
    refused(client.get(f"{pairs}/scorecard/rounding"), 422, "incomplete_scorecard")


def test_bad_queries_are_refused(client: httpx.Client, model: str) -> None:
    for path, named in (
        ("bins?level=1", "level"),
        ("bins?level=x", "level"),
        ("bins?pdo=0", "pdo"),
        ("scorecard/cutoff", "points"),
        ("scorecard/cutoff?points=1&threshold=2", "points"),
        ("scorecard/cutoff?points=nan", "points"),
        ("scorecard/cutoff?probability=1", "probability"),
        ("scorecard/cutoff?probability=0", "probability"),
        ("scorecard/cutoff?threshold=1e10", "threshold"),
        ("scorecard/rounding?pdo=-1", "pdo"),
        ("scorecard/rounding?on=test", "on"),
    ):
        answer = client.get(f"{model}/{path}")
        assert answer.status_code == 422
        assert named in answer.text


def test_bad_rows_are_refused(client: httpx.Client, model: str) -> None:
    for body in ({}, {"rows": 3}, {"rows": [{"amount": "x", "purpose": "car"}]}):
        assert client.post(f"{model}/points", json=body).status_code in {400, 422}
    too_many = {"columns": ["amount", "purpose"], "data": [[1, None]] * 1001}
    content = json.dumps(too_many, separators=(",", ":"))
    headers = {"Content-Type": "application/json"}
    answer = client.post(f"{model}/points", content=content, headers=headers)
    refused(answer, 422, "too_many_rows", "1000", "1001")
    assert client.post(f"{model}/points", json={"rows": []}).json()["rows"] == []


def test_others_and_keys_without_the_scope(small: Service, model: str) -> None:
    stranger = small.client(small.key("stranger"))
    reader = small.client(small.key(scopes=("read",)))
    refused(reader.post(f"{model}/points", json={"rows": ROWS}), 403, "forbidden")
    for path in ("bins", "scorecard/cutoff?points=1", "scorecard/rounding"):
        refused(stranger.get(f"{model}/{path}"), 404, "not_found")
    refused(stranger.post(f"{model}/points", json={"rows": ROWS}), 404, "not_found")


def test_bad_bins_of_a_job_are_refused(client: httpx.Client, dataset: str) -> None:
    for wrong, pointer in (
        ({"bins": {"nothing": [1]}}, "/algorithm/bins"),
        ({"bins": {"amount": [["car"]]}}, "/algorithm/bins"),
        ({"bins": {"purpose": [1]}}, "/algorithm/bins"),
        ({"bins": {"amount": [2, 1]}}, "/algorithm"),
        ({"bins": 3}, "/algorithm/bins"),
        ({"special_values": {"purpose": [1]}}, "/algorithm/special_values"),
        ({"max_bins": 1}, "/algorithm/max_bins"),
        ({"pdo": 0}, "/algorithm/pdo"),
        ({"base_odds": -1}, "/algorithm/base_odds"),
        ({"base_score": 1e10}, "/algorithm/base_score"),
    ):
        body = {"dataset_id": dataset, "algorithm": {"name": "scorecard", **wrong}}
        answer = client.post("/v1/jobs", json=body)
        assert answer.status_code == 422
        assert pointer in {each["pointer"] for each in answer.json()["errors"]}
