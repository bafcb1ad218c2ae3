"""Scores over HTTP, the same by every route; and what a model has learnt: importance and dependence."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import httpx
import pytest
from sqlalchemy import event, select

from app.platform.tables import ApiKey
from tests.app import refusals
from tests.app.live_service import NAMES, OWNER, Service, table
from tests.sentences import Sentences
from tests.waiting import eventually, patience

ROW = {"age": "0.25", "income": "-1.5", "score 1": "0.5"}


@pytest.fixture(scope="module")
def model_id(shared: Service) -> str:
    client = shared.client(shared.key())
    model_id: str = shared.train(client, shared.upload(client, table(400)))["output"]["id"]
    return model_id


@pytest.fixture
def scorer(shared: Service) -> httpx.Client:
    return shared.client(shared.key(scopes=["score"]))


def test_every_way_in_gives_the_same_score(scorer: httpx.Client, model_id: str) -> None:
    one = scorer.get(f"/v1/models/{model_id}/score", params=ROW).json()
    values = {name: float(value) for name, value in ROW.items()}
    by_rows = scorer.post(f"/v1/models/{model_id}/score", json={"rows": [values]}).json()
    columns = NAMES[::-1]
    body = {"columns": columns, "data": [[values[name] for name in columns]]}
    by_columns = scorer.post(f"/v1/models/{model_id}/score", json=body).json()
    parts = scorer.post(f"/v1/models/{model_id}/explain", json={"rows": [values]}).json()[
        "explanations"
    ][0]
    for scores in (by_rows, by_columns):
        assert scores["scores"] == [one["score"]]
        assert (scores["fprs"], scores["tprs"]) == ([one["fpr"]], [one["tpr"]])
    assert (parts["score"], parts["fpr"], parts["tpr"]) == (one["score"], one["fpr"], one["tpr"])
    assert list(parts["contributions"]) == NAMES


def test_a_score_s_place_is_the_operating_point_at_it(
    shared: Service, scorer: httpx.Client, model_id: str
) -> None:
    reader = shared.client(shared.key())
    for age in (-2, -0.3, 0.1, 2):
        one = scorer.get(f"/v1/models/{model_id}/score", params=ROW | {"age": str(age)}).json()
        point = reader.get(
            f"/v1/models/{model_id}/operating-point", params={"threshold": one["score"]}
        ).json()
        assert (point["fpr"]["value"], point["tpr"]["value"]) == (one["fpr"], one["tpr"])


def test_an_answer_by_id_can_be_kept(scorer: httpx.Client, model_id: str) -> None:
    address = f"/v1/models/{model_id}/score"
    first = scorer.get(address, params=ROW)
    assert first.headers["Cache-Control"] == "private"
    tag = first.headers["ETag"]
    respelled = {"score 1": "5e-1", "income": "-1.50", "age": ".25"}  # the same inputs
    assert scorer.get(address, params=respelled).headers["ETag"] == tag
    assert scorer.get(address, params=ROW | {"age": "0.26"}).headers["ETag"] != tag
    for header in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        again = scorer.get(address, params=ROW, headers={"If-None-Match": header})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    other = scorer.get(address, params=ROW, headers={"If-None-Match": '"x"'})
    assert other.json() == first.json()


def test_an_answer_by_name_is_asked_again(
    shared: Service, scorer: httpx.Client, model_id: str
) -> None:
    shared.client(shared.key()).put("/v1/models/churn/aliases/kept", json={"model_id": model_id})
    for ref in ("churn@kept", "churn:1"):
        answer = scorer.get(f"/v1/models/{ref}/score", params=ROW)
        assert answer.json()["model_id"] == model_id
        assert answer.headers["Cache-Control"] == "no-cache"
        assert "ETag" not in answer.headers


def test_a_new_version_is_served_by_name_at_once(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    for _ in range(2):
        model_id = service.train(client, dataset_id)["output"]["id"]
        assert client.get("/v1/models/churn/score", params=ROW).json()["model_id"] == model_id


def test_missing_values(scorer: httpx.Client, model_id: str) -> None:
    address = f"/v1/models/{model_id}/score"
    empty = scorer.get(address, params=ROW | {"score 1": ""}).json()
    absent = scorer.get(address, params={"age": ROW["age"], "income": ROW["income"]}).json()
    null = scorer.post(
        address, json={"rows": [{"age": 0.25, "income": -1.5, "score 1": None}]}
    ).json()
    assert empty == absent
    assert null["scores"] == [empty["score"]]
    assert scorer.get(address, params={"age": "1"}).status_code == 422
    lenient = scorer.get(address, params={"age": "1"}, headers={"Prefer": "handling=lenient"})
    assert lenient.status_code == 200
    assert lenient.headers["Preference-Applied"] == "handling=lenient"
    empty_income = scorer.get(address, params={"age": "1", "income": ""})
    assert empty_income.json() == lenient.json()
    rows = scorer.post(address, json={"rows": [{"age": 1}]}, headers={"Prefer": "handling=lenient"})
    assert rows.json()["scores"] == [lenient.json()["score"]]


def test_ranking(scorer: httpx.Client, model_id: str) -> None:
    rows = [{"age": age, "income": 0.0} for age in (-1.0, 1.0, -1.0, 0.5)]
    scores = scorer.post(f"/v1/models/{model_id}/score", json={"rows": rows}).json()["scores"]
    ranking = scorer.post(f"/v1/models/{model_id}/rank", json={"rows": rows}).json()
    assert ranking["indices"] == sorted(range(4), key=lambda i: (-scores[i], i))
    assert ranking["scores"] == sorted(scores, reverse=True)
    top = scorer.post(f"/v1/models/{model_id}/rank?top=2", json={"rows": rows}).json()
    assert top["indices"] == ranking["indices"][:2]
    assert scorer.post(f"/v1/models/{model_id}/rank?top=0", json={"rows": rows}).status_code == 422


def test_no_rows_and_many(scorer: httpx.Client, model_id: str) -> None:
    assert scorer.post(f"/v1/models/{model_id}/score", json={"rows": []}).json()["scores"] == []
    data = [[i / 1000, 0.0] for i in range(5000)]  # too much to be parsed in the loop
    body = {"columns": ["age", "income"], "data": data}
    assert len(scorer.post(f"/v1/models/{model_id}/score", json=body).json()["scores"]) == 5000
    answer = scorer.post(f"/v1/models/{model_id}/explain", json=body)
    assert answer.status_code == 422
    assert "at most 1000 rows" in answer.json()["detail"]


def test_a_warm_score_asks_nobody(shared: Service, scorer: httpx.Client, model_id: str) -> None:
    """Once key and model were seen, the answer comes from memory: no query is sent."""
    address = f"/v1/models/{model_id}/score"
    secret = scorer.headers["Authorization"].removeprefix("Bearer ")
    ring, models = shared.app.state.authenticator.known, shared.app.state.models
    ring.recent.seconds = models.recent.seconds = 600.0  # the machine may be slow
    ring.recent.clear()  # entries of an earlier test would be refreshed too soon
    models.forget(OWNER, model_id)
    scorer.get(address, params=ROW)
    eventually(lambda: key_use_is_noted(shared, secret))  # in the background, once a minute
    queries: list[str] = []

    def note(*args: object) -> None:
        queries.append(str(args[2]))

    event.listen(shared.context.db.engine, "before_cursor_execute", note)
    try:
        for i in range(20):
            assert scorer.get(address, params=ROW | {"age": str(i)}).status_code == 200
    finally:
        event.remove(shared.context.db.engine, "before_cursor_execute", note)
        ring.recent.seconds = models.recent.seconds = 0.9
        ring.recent.clear()
        models.forget(OWNER, model_id)
    assert queries == []


def key_use_is_noted(service: Service, secret: str) -> bool:
    with service.context.db.read() as session:
        used = select(ApiKey.last_used_at).where(ApiKey.prefix == secret[:9])
        return session.scalar(used) is not None


def test_pipelined_scores_come_in_order_and_are_counted(
    shared: Service,
    scorer: httpx.Client,
    model_id: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted: list[tuple[str, str, int]] = []
    metrics = shared.context.metrics
    observe = metrics.observe_request

    def note(method: str, route: str, status: int, seconds: float) -> None:
        noted.append((method, route, status))
        observe(method, route, status, seconds)

    monkeypatch.setattr(metrics, "observe_request", note)
    path = f"/v1/models/{model_id}/score?income=0&score+1=0&age="
    want = [scorer.get(f"{path}{age}").json()["score"] for age in range(6)]
    assert len(set(want)) > 1
    noted.clear()
    head = f"Host: x\r\nAuthorization: {scorer.headers['Authorization']}\r\n"
    sent = "".join(
        f"GET {path}{age} HTTP/1.1\r\n{head}"
        f"{'Connection: close' + chr(13) + chr(10) if age == 5 else ''}\r\n"
        for age in range(6)
    )
    at = urlsplit(shared.url)
    with socket.create_connection((at.hostname, at.port), timeout=patience()) as connection:
        connection.sendall(sent.encode())
        heard = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    answers = heard.split(b"HTTP/1.1 200 OK\r\n")[1:]
    found = [json.loads(answer.partition(b"\r\n\r\n")[2])["score"] for answer in answers]
    assert found == want
    eventually(lambda: len(noted) == 6)
    assert set(noted) == {("GET", "/v1/models/{ref}/score", 200)}


def test_query_strings_are_not_logged(
    scorer: httpx.Client, model_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    scorer.get(f"/v1/models/{model_id}/score", params=ROW | {"age": "77.125"})
    scorer.get(f"/v1/models/{model_id}/score", params=ROW | {"age": "77x125"})
    ours = [
        record for record in caplog.records if not record.name.startswith("http")
    ]  # not the client's
    assert [record.getMessage().split()[:3] for record in ours] == [
        ["GET", f"/v1/models/{model_id}/score", status] for status in ("200", "422")
    ]
    assert not any(value in str(vars(record)) for record in ours for value in ("77.125", "77x125"))


def test_head_and_long_addresses(scorer: httpx.Client, model_id: str) -> None:
    address = f"/v1/models/{model_id}/score"
    head = scorer.head(address, params=ROW)
    assert (head.status_code, head.content) == (200, b"")
    long = scorer.get(address, params=ROW | {"age": "1" * 60_000})
    assert (long.status_code, long.json()["code"]) == (414, "uri_too_long")


CSV_BOTH = {"Content-Type": "text/csv", "Accept": "text/csv"}


@pytest.fixture(scope="module")
def reader(shared: Service) -> httpx.Client:
    return shared.client(shared.key())


@pytest.fixture(scope="module")
def model(model_id: str) -> str:
    """The address of the trained model."""
    return f"/v1/models/{model_id}"


def refused(answer: httpx.Response, status: int, code: str, parameter: str = "feature") -> str:
    """Check a problem's status, code and parameter; returns its detail."""
    problem = refusals.refused(answer, status, code)
    if status == 422:
        assert {error["parameter"] for error in problem["errors"]} == {parameter}
    return str(problem["detail"])


def test_importance(reader: httpx.Client, model: str) -> None:
    found = reader.get(f"{model}/importance").json()
    assert found["method"] == "mean_absolute_contribution"
    assert "mean absolute contribution" in found["description"].lower()
    assert found["on"] == "train"
    assert found["label"] is None
    assert sorted(feature["name"] for feature in found["features"]) == sorted(NAMES)
    sizes = [feature["importance"] for feature in found["features"]]
    assert sizes == sorted(sizes, reverse=True)
    assert found["features"][-1]["name"] == "score 1"  # noise
    assert reader.get("/v1/models/churn:1/importance").json() == found


def test_dependence_on_one_feature(reader: httpx.Client, model: str) -> None:
    address = f"{model}/partial-dependence"
    found = reader.get(address, params={"feature": "age", "points": 10}).json()
    assert f"/v1/models/{found['model_id']}" == model
    assert (found["on"], found["label"], found["rows"]) == ("train", None, 300)
    (age,) = found["features"]
    assert (age["name"], age["type"]) == ("age", "numeric")
    assert len(age["values"]) == len(found["scores"]) == 10
    assert age["values"] == sorted(age["values"])
    assert found["scores"][-1] > found["scores"][0]
    held = reader.get(address, params={"feature": "age", "on": "validation"}).json()
    assert (held["on"], held["rows"]) == ("validation", 100)
    assert len(held["scores"]) == 20


def test_dependence_on_two_features_one_of_which_may_be_missing(
    reader: httpx.Client, model: str
) -> None:
    asked: dict[str, Any] = {"feature": ["score 1", "age"], "points": 5}
    found = reader.get(f"{model}/partial-dependence", params=asked).json()
    assert [axis["name"] for axis in found["features"]] == ["score 1", "age"]
    assert [len(axis["values"]) for axis in found["features"]] == [6, 5]
    assert found["features"][0]["values"][-1] is None
    assert None not in found["features"][1]["values"]
    assert [len(row) for row in found["scores"]] == [5] * 6


def test_categories_and_booleans_are_shown_as_they_came(
    shared: Service, reader: httpx.Client
) -> None:
    lines = ["colour,member,left"]
    for i in range(120):
        colour, member = ["red", "green", ""][i % 3], ["true", "false"][i % 2]
        lines.append(f"{colour},{member},{'yes' if i % 3 == 0 or i % 7 == 0 else 'no'}")
    dataset_id = shared.upload(reader, "\n".join(lines) + "\n")
    job = shared.train(reader, dataset_id, algorithm={"name": "treerank"})
    address = f"/v1/models/{job['output']['id']}/score"
    rows = {"rows": [{"colour": "blue", "member": True}, {"colour": "pink", "member": False}]}
    (warning,) = reader.post(address, json=rows).json()["warnings"]
    assert (warning["code"], warning["feature"]) == ("unknown_categories", "colour")
    table = reader.post(address, content="colour,member\nblue,true\n", headers=CSV_BOTH)
    assert json.loads(table.headers["X-Warnings"])[0]["feature"] == "colour"
    asked = {"feature": ["colour", "member"]}
    found = reader.get(f"/v1/models/{job['output']['id']}/partial-dependence", params=asked).json()
    colour, member = found["features"]
    assert (colour["type"], colour["values"]) == ("categorical", ["green", "red", None])
    assert (member["type"], member["values"]) == ("boolean", [False, True])
    assert found["scores"][1][0] > found["scores"][0][0]


def test_a_tree_as_json_text_and_picture(shared: Service, reader: httpx.Client) -> None:
    job = shared.train(reader, shared.upload(reader), algorithm={"name": "treerank"}, name="oak")
    address = f"/v1/models/{job['output']['id']}/structure"
    nodes = reader.get(address).json()["nodes"]
    leaves = sum("score" in node for node in nodes)
    text = reader.get(address, params={"format": "text"})
    assert text.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert f"of {leaves} leaves" in text.text.splitlines()[0]
    assert all(node["to_top"]["words"] in text.text for node in nodes if "to_top" in node)
    drawn = reader.get(address, params={"format": "svg"})
    assert drawn.headers["Content-Type"].startswith("image/svg+xml")
    assert drawn.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert ET.fromstring(drawn.content).find("{*}title").text == "oak:1"
    found = reader.get(f"/v1/models/{job['output']['id']}/importance").json()
    assert found["method"] == "squared_auc_gain"
    for feature in found["features"]:
        assert feature["root"] == pytest.approx(feature["importance"] ** 0.5)
        assert feature["auc_gain"] >= feature["root"] - 1e-12


def test_other_models_have_no_picture(reader: httpx.Client, model: str) -> None:
    for format in ("svg", "text"):
        answer = reader.get(f"{model}/structure", params={"format": format})
        assert "RankBoost" in refused(answer, 422, "not_a_tree", "format")
    refused(reader.get(f"{model}/structure?format=png"), 422, "invalid", "format")
    assert reader.get(f"{model}/structure?format=json").json()["type"] == "stumps"


def test_other_features_are_refused(reader: httpx.Client, model: str, sentences: Sentences) -> None:
    def ask(**params: Any) -> httpx.Response:
        return reader.get(f"{model}/partial-dependence", params=params)

    sentences(refused(ask(feature="wage"), 422, "unknown_feature"))
    sentences(refused(ask(feature=NAMES), 422, "invalid"))
    assert "'age' occurs twice" in refused(ask(feature=["age", "age"]), 422, "duplicate_feature")
    assert refused(ask(), 422, "invalid") == "feature is required"
    refused(ask(feature=""), 422, "unknown_feature")
    refused(ask(feature="age", points=1), 422, "invalid", "points")
    refused(ask(feature="age", points=101), 422, "invalid", "points")
    refused(ask(feature="age", on="test"), 422, "invalid", "on")
    refused(ask(feature="age", label="left"), 422, "invalid", "label")
    refused(reader.get(f"{model}/importance?label=left"), 422, "invalid", "label")


def test_variables_alone_and_together(
    reader: httpx.Client, model: str, sentences: Sentences
) -> None:
    address = f"{model}/variable-dependence"
    found = reader.get(address, params={"feature": ["score 1", "age", "income"]}).json()
    assert f"/v1/models/{found['model_id']}" == model
    assert (found["on"], found["rows"]) == ("train", 100)
    assert found["features"] == ["score 1", "age", "income"]
    noise, age, income = found["main"]
    assert 0 <= noise < min(age, income)
    for j, row in enumerate(found["joint"]):  # stumps only add up
        assert row == pytest.approx([0.0] * 3, abs=1e-9)
        assert row[j] == 0.0
    assert reader.get(address, params={"feature": "age", "on": "validation"}).json()["rows"] == 100

    def ask(**params: Any) -> httpx.Response:
        return reader.get(address, params=params)

    sentences(refused(ask(feature=["age"] * 11), 422, "invalid"))
    assert "'age' occurs twice" in refused(
        ask(feature=["age", "income", "age"]), 422, "duplicate_feature"
    )
    assert refused(ask(), 422, "invalid") == "feature is required"
    refused(ask(feature="wage"), 422, "unknown_feature")
    refused(ask(feature="age", on="test"), 422, "invalid", "on")
    assert reader.get("/v1/models/none/variable-dependence?feature=age").status_code == 404


def test_trees_let_variables_act_together(shared: Service, reader: httpx.Client) -> None:
    algorithm = {"name": "treerank"}
    job = shared.train(reader, shared.upload(reader, table(400)), algorithm=algorithm)
    asked = {"feature": ["age", "income"]}
    found = reader.get(f"/v1/models/{job['output']['id']}/variable-dependence", params=asked).json()
    assert found["joint"][0][1] == found["joint"][1][0] > 0.0


def test_an_average_that_would_take_too_long_is_refused(
    reader: httpx.Client, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.scoring.dependence.MAX_SECONDS", 0.0)
    for kind in ("partial", "variable"):
        answer = reader.get(f"{model}/{kind}-dependence?feature=age&feature=income")
        assert "request fewer" in refused(answer, 422, "invalid_parameter")
