"""Scoring over HTTP: the same row scores alike by every way in, and its answer can be kept."""

from __future__ import annotations

import httpx
import pytest
from sqlalchemy import event, select

from app.platform.tables import ApiKey
from tests.app.live_service import NAMES, OWNER, Service, table
from tests.servers import eventually

ROW = {"age": "0.25", "income": "-1.5", "score 1": "0.5"}


@pytest.fixture(scope="module")
def model_id(shared: Service) -> str:
    client = shared.client(shared.key())
    model_id: str = shared.train(client, shared.upload(client, table(400)))["model_id"]
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
    for ref in ("churn", "churn:1"):
        answer = scorer.get(f"/v1/models/{ref}/score", params=ROW)
        assert answer.json()["model_id"] == model_id
        assert answer.headers["Cache-Control"] == "no-cache"
        assert "ETag" not in answer.headers


def test_a_new_version_is_served_by_name_at_once(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    for _ in range(2):
        model_id = service.train(client, dataset_id)["model_id"]
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
    ring, models = shared.app.state.authenticator.keys, shared.app.state.models
    ring.recent.seconds = models.recent.seconds = 600.0  # the machine may be slow
    ring.recent.clear()  # what an earlier test left is asked for again too soon
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
