"""Probabilities over HTTP: beside every score, the same by every route, from a calibration fitted on held-out rows."""

from __future__ import annotations

import io
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import inspect

from app.models import repository
from app.platform.tables import Model, ModelCalibration
from core.probability import at_prevalence, choose_calibration, fit_venn_abers
from tests.app.live_service import NAMES, OWNER, Service, table
from tests.app.refusals import refused
from tests.sentences import Sentences

CSV, ARROW, NDJSON = "text/csv", "application/vnd.apache.arrow.stream", "application/x-ndjson"
ROWS = [{"age": age, "income": age / 2, "score 1": 0.5} for age in np.linspace(-2, 2, 9).tolist()]
BODY = {"rows": ROWS}
IN_CSV = ",".join(NAMES) + "\n" + "".join(f"{r['age']},{r['income']},0.5\n" for r in ROWS)


@pytest.fixture(scope="module")
def client(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def model_id(shared: Service, client: httpx.Client) -> str:
    found: str = shared.train(client, shared.upload(client, table(600)))["output"]["id"]
    return found


@pytest.fixture(scope="module")
def expected(client: httpx.Client, model_id: str) -> dict[str, list[float]]:
    """The answer of POST score for the rows, with the pair."""
    answer = client.post(f"/v1/models/{model_id}/score?interval=true", json=BODY)
    assert answer.status_code == 200, answer.text
    found: dict[str, list[float]] = answer.json()
    return found


def post(client: httpx.Client, model_id: str, query: str, accept: str, kind: str) -> httpx.Response:
    bodies: dict[str, Any] = {
        "rows": {"json": BODY},
        "columns": {
            "json": {"columns": NAMES, "data": [[row[name] for name in NAMES] for row in ROWS]}
        },
        "csv": {"content": IN_CSV, "headers": {"Content-Type": CSV}},
    }
    sent = bodies[kind]
    headers = {"Accept": accept, **sent.pop("headers", {})}
    return client.post(f"/v1/models/{model_id}/score{query}", headers=headers, **sent)


def test_probabilities_rise_with_scores_and_lie_in_their_pair(
    expected: dict[str, list[float]],
) -> None:
    order = np.argsort(expected["scores"], kind="stable")
    p, low, high = (
        np.array(expected[name])[order]
        for name in ("probabilities", "probabilities_low", "probabilities_high")
    )
    assert np.all(np.diff(p) >= 0)
    assert p[0] < 0.2 < 0.8 < p[-1]
    assert np.all((low <= high) & (low >= 0) & (high <= 1))


def test_every_format_has_the_same_probability(
    client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    for kind in ("rows", "columns", "csv"):
        query = "?interval=true"
        names = {
            "probability": expected["probabilities"],
            "probability_low": expected["probabilities_low"],
            "probability_high": expected["probabilities_high"],
        }
        answer = post(client, model_id, query, "application/json", kind).json()
        assert answer["probabilities"] == expected["probabilities"]
        with pa.ipc.open_stream(post(client, model_id, query, ARROW, kind).content) as stream:
            arrow = stream.read_all()
        assert arrow.column_names == ["score", "fpr", "tpr", *names]
        assert {name: arrow[name].to_pylist() for name in names} == names
        lines = post(client, model_id, query, CSV, kind).text.splitlines()
        assert lines[0] == "score,fpr,tpr,probability,probability_low,probability_high"
        cells = np.array([line.split(",") for line in lines[1:]], dtype=float)
        assert cells[:, 3].tolist() == expected["probabilities"]
        first = post(client, model_id, query, NDJSON, kind).text.splitlines()[0]
        assert f'"probability":{expected["probabilities"][0]!r}' in first
        without = post(client, model_id, "?probability=false", CSV, kind).text
        assert without.splitlines()[0] == "score,fpr,tpr"


def test_one_row_has_the_same_probability_as_many(
    client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    path = f"/v1/models/{model_id}/score"
    for i, row in enumerate(ROWS):
        values = {name: repr(value) for name, value in row.items()}
        plain = client.get(path, params=values).json()
        assert plain["probability"] == expected["probabilities"][i]
        assert "probability_low" not in plain
        full = client.get(path, params=values | {"interval": "true"}).json()
        assert full["probability"] == expected["probabilities"][i]
        assert full["probability_low"] == expected["probabilities_low"][i]
        assert full["probability_high"] == expected["probabilities_high"][i]
        without = client.get(path, params={"probability": "false"} | values).json()
        assert without.keys() == {"model_id", "score", "fpr", "tpr"}


def test_a_ranking_and_an_explanation_have_the_same_probabilities(
    client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    path = f"/v1/models/{model_id}"
    ranked = client.post(f"{path}/rank?interval=true&top=4", json=BODY).json()
    order = ranked["indices"]
    for name in ("scores", "probabilities", "probabilities_low", "probabilities_high"):
        assert ranked[name] == [expected[name][index] for index in order]
    headers = {"Content-Type": CSV, "Accept": CSV}
    lines = client.post(f"{path}/rank", content=IN_CSV, headers=headers).text.splitlines()
    assert lines[0] == "index,score,probability"
    best = [float(cell) for cell in lines[1].split(",")]
    assert best == [order[0], ranked["scores"][0], ranked["probabilities"][0]]
    bare = client.post(f"{path}/rank?probability=false", content=IN_CSV, headers=headers).text
    assert bare.splitlines()[0] == "index,score"
    moved = client.post(f"{path}/rank?prevalence=0.02", json=BODY).json()
    assert moved["indices"][:4] == order
    scored = client.post(f"{path}/score?prevalence=0.02", json=BODY).json()["probabilities"]
    assert moved["probabilities"] == [scored[index] for index in moved["indices"]]

    explained = client.post(f"{path}/explain?interval=true", json=BODY).json()["explanations"]
    names = ("probability", "probability_low", "probability_high")
    plurals = ("probabilities", "probabilities_low", "probabilities_high")
    for name, plural in zip(names, plurals, strict=True):
        assert [each[name] for each in explained] == expected[plural]
    plain = client.post(f"{path}/explain?probability=false", json=BODY).json()["explanations"][0]
    assert not any("probability" in name for name in plain)
    assert plain["contributions"]


def test_another_prevalence_moves_the_odds(
    client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    learnt = client.get(f"/v1/models/{model_id}/calibration").json()["prevalence"]
    moved = at_prevalence(expected["probabilities"], learnt, 0.02)
    answer = client.post(f"/v1/models/{model_id}/score?prevalence=0.02", json=BODY).json()
    assert answer["probabilities"] == pytest.approx(moved.tolist(), abs=1e-12)
    values = {name: repr(value) for name, value in ROWS[4].items()}
    one = client.get(f"/v1/models/{model_id}/score", params=values | {"prevalence": "0.02"}).json()
    assert one["probability"] == answer["probabilities"][4]
    assert one["score"] == expected["scores"][4]


def test_the_etag_says_what_was_asked(client: httpx.Client, model_id: str) -> None:
    path = f"/v1/models/{model_id}/score"
    values = dict.fromkeys(NAMES, "0.5")
    asked: list[dict[str, str]] = [
        {},
        {"interval": "1"},
        {"prevalence": ".1"},
        {"prevalence": ".2"},
    ]
    answers = [client.get(path, params=values | more) for more in asked]
    tags = [answer.headers["ETag"] for answer in answers]
    assert len(set(tags)) == len(asked)
    same = client.get(path, params=values | asked[1], headers={"If-None-Match": tags[1]})
    assert same.status_code == 304
    assert client.get(path, params=values, headers={"If-None-Match": tags[1]}).status_code == 200


def test_bad_options_are_refused(client: httpx.Client, model_id: str, sentences: Sentences) -> None:
    row = "&".join(f"{name.replace(' ', '+')}=0.5" for name in NAMES)
    path, batch = f"/v1/models/{model_id}", f"/v1/batch-scores?model={model_id}"
    for query in (
        "prevalence=0",
        "prevalence=0,06",
        "prevalence=1.5",
        "prevalence=nan",
        "prevalence=1_0e-2",
        "prevalence=few",
        "probability=maybe",
        "interval=2",
        "probability=false&interval=true",
    ):
        answers = [client.get(f"{path}/score?{row}&{query}")]
        answers += [
            client.post(f"{path}/{action}?{query}", json=BODY)
            for action in ("score", "rank", "explain")
        ]
        in_csv = {"Content-Type": CSV}
        answers.append(client.post(f"{batch}&{query}", content=IN_CSV, headers=in_csv))
        (detail,) = {refused(answer, 422, "invalid")["detail"] for answer in answers}
        sentences(detail)
    twice = client.get(f"{path}/score?{row}&interval=1&interval=0")
    refused(twice, 422, "invalid", "interval")


def test_a_calibration_is_fitted_on_the_validation_rows(
    shared: Service, client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    found = client.get(f"/v1/models/{model_id}/calibration").json()
    metrics = client.get(f"/v1/models/{model_id}/metrics").json()
    assert (found["model_id"], found["version"], found["trained_on"]) == (model_id, 1, "validation")
    assert found["rows"] == metrics["positives"] + metrics["negatives"]
    assert found["positives"] == metrics["positives"]
    assert found["method"] == min(found["log_losses"], key=found["log_losses"].__getitem__)
    evaluated = found["reliability"]
    for score in (evaluated["brier"], evaluated["log"]):
        parts = score["miscalibration"] - score["discrimination"] + score["uncertainty"]
        assert parts == pytest.approx(score["score"], abs=1e-12)
    assert evaluated["log"]["score"] == pytest.approx(found["log_losses"][found["method"]])
    for point in evaluated["points"]:
        assert point["low"] <= point["observed"] <= point["high"]
    assert [each["version"] for each in found["history"]] == [1]


def test_a_cross_validated_model_learns_it_from_out_of_fold_scores(
    shared: Service, client: httpx.Client
) -> None:
    validation = {"method": "cross_validation", "folds": 3, "repeats": 2}
    dataset = shared.upload(client, table(200))
    model_id = shared.train(client, dataset, validation=validation, name="folds")["output"]["id"]
    found = client.get(f"/v1/models/{model_id}/calibration").json()
    assert (found["trained_on"], found["rows"]) == ("out_of_fold", 200)
    assert found["dataset"]["id"] == dataset
    file = client.get(f"/v1/models/{model_id}/out-of-fold?format=parquet", follow_redirects=True)
    rows = pq.read_table(io.BytesIO(file.content))
    y, aligned, row = (rows[name].to_numpy() for name in ("y", "aligned_score", "row"))
    chosen = choose_calibration(y, aligned, group=row, random_state=0)
    assert found["log_losses"].keys() == chosen.log_loss.keys()
    answer = client.post(f"/v1/models/{model_id}/score?interval=1", json=BODY).json()
    assert answer["approximate"] is True
    with shared.context.db.read() as session:
        stored = session.get_one(ModelCalibration, (model_id, 1))
        assert found["method"] == stored.method
    pair = fit_venn_abers(y, aligned)  # counted once, not twice, the rows say less: a wider pair
    low, high = pair(answer["scores"])
    assert np.all(np.array(answer["probabilities_low"]) <= low + 1e-9)
    assert np.all(np.array(answer["probabilities_high"]) >= high - 1e-9)


def test_without_a_calibration_the_probability_is_null_and_the_reason_is_told(
    shared: Service, client: httpx.Client, sentences: Sentences
) -> None:
    dataset = shared.upload(client, table(60))
    job = shared.train(client, dataset, validation={"method": "none"}, name="bare")
    model_id = job["output"]["id"]
    path = f"/v1/models/{model_id}"
    values = dict.fromkeys(NAMES, "0.5")
    assert client.get(f"{path}/score", params=values).json()["probability"] is None
    asked = client.get(f"{path}/score", params=values | {"prevalence": "0.1"}).json()
    assert asked["probability"] is None
    sentences(asked["no_probability"])
    for action, name in (("score", "probabilities"), ("rank", "probabilities"), ("explain", "")):
        bare = client.post(f"{path}/{action}", json=BODY).json()
        assert "no_probability" not in bare
        assert (bare[name] if name else bare["explanations"][0]["probability"]) is None
        asked = client.post(f"{path}/{action}?interval=true", json=BODY).json()
        sentences(asked["no_probability"])
    in_csv = post(client, model_id, "", CSV, "csv").text.splitlines()
    assert in_csv[0] == "score,fpr,tpr,probability"
    assert in_csv[1].endswith(",,,")
    assert client.get(f"{path}/report?format=json").json()["calibration"] is None
    refused(client.get(f"{path}/calibration"), 404, "no_calibration", model_id)


def test_a_model_of_an_earlier_version_has_none(
    shared: Service, client: httpx.Client, sentences: Sentences
) -> None:
    model_id = shared.train(client, shared.upload(client, table(80)), name="old")["output"]["id"]

    def forget(session: Any) -> None:
        session.get_one(Model, model_id).calibration_version = None
        session.delete(session.get_one(ModelCalibration, (model_id, 1)))

    shared.context.db.writing(forget)
    answer = client.post(f"/v1/models/{model_id}/score?interval=true", json=BODY).json()
    assert answer["probabilities"] is None
    sentences(answer["no_probability"])


def test_a_feature_of_an_options_name_goes_first(shared: Service, client: httpx.Client) -> None:
    text = table(80).replace("age,income", "prevalence,income", 1)
    model_id = shared.train(client, shared.upload(client, text), name="named")["output"]["id"]
    path = f"/v1/models/{model_id}/score"
    values = {"prevalence": "2", "income": "1", "score 1": "0.5"}
    one = client.get(path, params=values)
    assert one.status_code == 200, one.text
    row = {name: float(value) for name, value in values.items()}
    many = client.post(path, json={"rows": [row]}).json()
    assert one.json()["score"] == many["scores"][0]
    assert one.json()["probability"] == many["probabilities"][0]


def test_a_batch_has_probabilities(
    shared: Service, client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    def batch(query: str, text: str = IN_CSV) -> pa.Table:
        answer = client.post(
            f"/v1/batch-scores?model={model_id}{query}",
            content=text,
            headers={"Content-Type": CSV},
        )
        assert answer.status_code == 202, answer.text
        shared.work()
        result = client.get(f"/v1/batch-scores/{answer.json()['id']}/result")
        assert result.status_code == 200, result.text
        return pq.read_table(io.BytesIO(result.content))

    found = batch("&interval=true")
    assert found.column_names == [
        *("row_number", "score", "fpr", "tpr"),
        *("probability", "probability_low", "probability_high"),
    ]
    assert found["probability"].to_pylist() == expected["probabilities"]
    assert found["probability_low"].to_pylist() == expected["probabilities_low"]
    scores = ["row_number", "score", "fpr", "tpr"]
    assert batch("&probability=false").column_names == scores
    lines = IN_CSV.splitlines()
    kept = "\n".join([f"{lines[0]},probability", *(f"{line},x" for line in lines[1:])])
    own = batch("&keep=probability", kept)
    assert own.column_names == ["probability", *scores]
    assert own["probability"].to_pylist() == ["x"] * len(ROWS)


def test_a_batch_of_a_dataset_takes_the_options_in_its_body(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    dataset = shared.upload(client, table(50))
    body = {"model": model_id, "dataset_id": dataset, "prevalence": 0.02, "interval": True}
    answer = client.post("/v1/batch-scores", json=body)
    assert answer.status_code == 202, answer.text
    shared.work()
    columns = client.get(f"/v1/batch-scores/{answer.json()['id']}").json()["columns"]
    assert [column["name"] for column in columns][4:] == [
        *("probability", "probability_low", "probability_high")
    ]
    bad = client.post("/v1/batch-scores", json=body | {"prevalence": 1})
    refused(bad, 422, "invalid", "prevalence")
    both = client.post("/v1/batch-scores", json=body | {"probability": False})
    refused(both, 422, "invalid", "probability=false")


def test_the_inference_protocol_answers_probabilities_if_it_is_asked(
    client: httpx.Client, model_id: str, expected: dict[str, list[float]]
) -> None:
    inputs = [
        {
            "name": name,
            "datatype": "FP64",
            "shape": [len(ROWS)],
            "data": [row[name] for row in ROWS],
        }
        for name in NAMES
    ]
    path = f"/oip/v2/models/{model_id}/infer"
    described = client.get(f"/oip/v2/models/{model_id}").json()["outputs"]
    assert [each["name"] for each in described] == ["score", "fpr", "tpr", "probability"]
    assert described[-1] == {"name": "probability", "datatype": "FP64", "shape": [-1]}
    plain = client.post(path, json={"inputs": inputs}).json()["outputs"]
    assert [each["name"] for each in plain] == ["score", "fpr", "tpr"]
    asked = {"inputs": inputs, "outputs": [{"name": "probability"}]}
    (found,) = client.post(path, json=asked).json()["outputs"]
    assert found["data"] == expected["probabilities"]


def test_a_newer_dataset_recalibrates_and_the_history_stays(
    shared: Service, client: httpx.Client, sentences: Sentences
) -> None:
    model_id = shared.train(client, shared.upload(client, table(300)), name="renewed")["output"][
        "id"
    ]
    path = f"/v1/models/{model_id}"
    before = client.post(f"{path}/score", json=BODY).json()
    values = dict.fromkeys(NAMES, "0.5")
    tag = client.get(f"{path}/score", params=values).headers["ETag"]
    first = shared.app.state.models.find(OWNER, model_id)
    # later, most of the positives have become negatives
    header, *lines = table(400, seed=5).splitlines()
    later = [line.replace(",yes", ",no") if i % 4 else line for i, line in enumerate(lines)]
    newer = shared.upload(client, "\n".join([header, *later]), name="newer")

    evaluated = client.post("/v1/evaluations", json={"model": model_id, "dataset_id": newer})
    shared.work()
    address = f"/v1/evaluations/{evaluated.json()['id']}"
    drift = client.get(address).json()["metrics"]["calibration"]
    assert drift["version"] == 1
    assert drift["in_the_large"]["high"] < 0  # fewer positives than predicted
    assert drift["predicted"] > drift["observed"]

    checked = client.post(f"{path}/calibration/validate", json={"dataset_id": newer})
    assert (checked.status_code, checked.json()["valid"]) == (200, True)
    asked = client.put(f"{path}/calibration", json={"dataset_id": newer})
    assert asked.status_code == 202, asked.text
    assert client.get(f"{path}/calibration").json()["version"] == 1
    refused(client.delete(path), 409, "model_in_use", asked.json()["id"])
    shared.work()
    job = client.get(asked.headers["Location"]).json()
    assert (job["state"], job["kind"]) == ("succeeded", "calibrate"), job["error"]
    assert job["output"] == {"kind": "model", "id": model_id}

    found = client.get(f"{path}/calibration").json()
    assert (found["version"], found["trained_on"], found["rows"]) == (2, "dataset", 400)
    assert found["dataset"]["id"] == newer
    assert [(each["version"], each["trained_on"]) for each in found["history"]] == [
        (2, "dataset"),
        (1, "validation"),
    ]
    with shared.context.db.read() as session:  # a history may have a hundred versions
        listed = repository.list_calibrations(session, model_id, 100)
        assert [each.version for each in listed] == [2, 1]
        large = {"parameters", "low", "high", "reliability"}
        assert all(large <= inspect(each).unloaded for each in listed)
    by_name = client.post("/v1/models/renewed/score", json=BODY).json()
    renewed = shared.app.state.models.find(OWNER, model_id)
    more = renewed.calibration.n_bytes - first.calibration.n_bytes
    assert renewed.n_bytes - first.n_bytes == more != 0
    assert by_name["scores"] == before["scores"]
    assert max(by_name["probabilities"]) < 0.6 < max(before["probabilities"])
    assert client.get(f"{path}/score", params=values).headers["ETag"] != tag
    again = client.post("/v1/evaluations", json={"model": model_id, "dataset_id": newer})
    shared.work()
    answer = client.get(f"/v1/evaluations/{again.json()['id']}").json()
    (of_calibration,) = {*answer["warnings"]} - {*client.get(address).json()["warnings"]}
    sentences(of_calibration)
    drift = answer["metrics"]["calibration"]
    assert drift["version"] == 2
    assert drift["in_the_large"]["low"] < 0 < drift["in_the_large"]["high"]


def test_a_recalibration_that_cannot_be_is_refused(
    shared: Service, client: httpx.Client, model_id: str
) -> None:
    path = f"/v1/models/{model_id}/calibration"
    own = client.get(path).json()["dataset"]["id"]
    refused(client.put(path, json={"dataset_id": own}), 409, "rows_seen")
    refused(client.put(path, json={"dataset_id": "ds_none"}), 404, "not_found", "ds_none")
    refused(client.put(path, json={}), 422, "invalid", "dataset_id")
    other = shared.upload(client, "age,left\n1,yes\n2,no\n", name="narrow")
    refused(client.put(path, json={"dataset_id": other}), 422, "unknown_column", "income")
    none = client.put("/v1/models/nobody/calibration", json={"dataset_id": own})
    refused(none, 404, "not_found", "nobody")
