"""POST /v1/datasets with a source: datasets from decisions and their outcomes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx
import numpy as np
import pyarrow.parquet as pq
import pytest

from app.platform.tables import Dataset
from tests.app.feedback.recording import point, record
from tests.app.feedback.test_upkeep import keeper, settle
from tests.app.live_service import STRANGER, Service
from tests.long_form import long_form
from tests.sentences import Sentences

URL = "/v1/datasets"
DAY = 86_400
START = 1_767_225_600  # 2026-01-01
NAMES = ("age", "income", "score 1")


def iso(seconds: float) -> str:
    text: str = np.datetime_as_string(np.datetime64(int(seconds), "s"))
    return f"{text}Z"


@pytest.fixture
def live(service: Service) -> Service:
    client = service.client(service.key())
    point(client, service.train(client, service.upload(client))["output"]["id"])
    record(client, days=3650, outcome={"horizon_days": 30})
    return service


def backfill(service: Service, client: httpx.Client, rows: list[dict[str, Any]]) -> None:
    """Store decisions; each needs an id and a day."""
    names = ("id", "at", "score", *NAMES, "flag", "explored", "propensity", "keep")
    lines = [",".join(names)]
    for row in rows:
        values = {"score": 0.5, "age": 1.0, "income": 2.0, "score 1": 3.0} | row
        values["at"] = iso(START + DAY * row["day"])
        lines.append(",".join(str(values.get(name, "")) for name in names))
    answer = client.post(
        "/v1/decisions",
        params={"model": "churn@live"},
        content="\n".join(lines),
        headers={"Content-Type": "text/csv"},
    )
    assert answer.status_code == 202, answer.text
    service.work()
    job = client.get(answer.headers["Location"]).json()
    assert job["state"] == "succeeded", job["error"]


def outcomes(client: httpx.Client, *rows: dict[str, Any]) -> None:
    made = [
        {
            "id": row["id"],
            "label": row["label"],
            "event_at": iso(START + DAY * row["day"]),
            **{name: row[name] for name in ("weight",) if name in row},
        }
        for row in rows
    ]
    assert client.post("/v1/outcomes", json={"rows": made}).status_code == 200


def make(
    service: Service, client: httpx.Client, name: str = "feedback", **source: Any
) -> dict[str, Any]:
    """Make a dataset from decisions; returns it."""
    body = {"name": name, "source": {"decisions": "churn@live", **source}}
    answer = client.post(URL, json=body)
    assert answer.status_code == 202, answer.text
    service.work()
    found: dict[str, Any] = client.get(answer.headers["Location"]).json()
    return found


def test_a_shadow_model_is_compared_on_decisions_that_it_was_not_trained_on(
    live: Service,
) -> None:
    client = live.client(live.key())
    rows = people()
    backfill(live, client, rows)
    outcomes(client, *labels(rows))
    until = iso(START + DAY * 60)
    made = make(live, client, until=until)
    job = live.train(client, made["id"], name="challenger")
    assert job["validation"]["time_column"] == "decision_at"
    challenger = job["output"]["id"]
    features = client.get(f"/v1/models/{challenger}").json()["features"]
    assert [each["name"] for each in features] == list(NAMES)
    record(client, days=3650, shadow=challenger)
    shadow = client.get("/v1/models/churn/aliases/live/shadow").json()
    assert shadow["unseen_from"] == until.replace("Z", ".000Z")
    other = live.train(client, live.upload(client), name="other")["output"]["id"]
    record(client, days=3650, shadow=other)
    shadow = client.get("/v1/models/churn/aliases/live/shadow").json()
    assert shadow["unseen_from"] > "2026-11"


def test_an_erasure_replaces_the_datasets_that_have_the_entity(live: Service) -> None:
    client = live.client(live.key())
    rows = people(40)
    backfill(live, client, rows)
    outcomes(client, *labels(rows))
    made = make(live, client)
    later = make(live, client, name="later", since=iso(START + DAY * 10))
    asked = client.post("/v1/erasures", json={"id": "c3"})
    assert asked.status_code == 202
    live.work()
    keeper(live).round()
    request = client.get(asked.headers["Location"]).json()
    assert request["erased"] == {"decisions": 1, "outcomes": 1}
    (replaced,) = request["report"]["datasets"]
    assert (replaced["dataset_id"], replaced["rows"]) == (made["id"], 1)
    without = client.get(f"/v1/datasets/{replaced['replaced_by']}").json()
    assert without["rows"] == made["rows"] - 1
    assert without["source"] == made["source"]
    assert "c3" not in {row["entity"] for row in table_of(live, without["id"])}
    assert later["source"]["since"] == "2026-01-11T00:00:00.000Z"
    assert client.get(f"/v1/datasets/{later['id']}").status_code == 200
    again = make(live, client)
    assert again["rows"] == made["rows"] - 1


def test_a_dataset_made_before_the_decisions_were_erased_is_found_later(live: Service) -> None:
    client = live.client(live.key())
    rows = people(40)
    backfill(live, client, rows)
    outcomes(client, *labels(rows))
    asked = client.post("/v1/erasures", json={"id": "c3"})
    live.work()
    made = make(live, client)
    keeper(live).round()
    settle(live)
    request = client.get(asked.headers["Location"]).json()
    assert request["state"] == "done"
    assert [each["dataset_id"] for each in request["report"]["datasets"]] == [made["id"]]


def people(n: int = 200, first: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    ages = rng.normal(size=n)
    return [
        {"id": f"c{first + i}", "day": i // 2, "age": round(age, 3), "income": i % 7}
        for i, age in enumerate(ages.tolist())
    ]


def labels(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"id": row["id"], "day": row["day"] + 3, "label": "yes" if row["age"] > 0.5 else "no"}
        for row in rows
    ]


def table_of(service: Service, dataset_id: str) -> list[dict[str, Any]]:
    with service.context.db.read() as session:
        key = session.get(Dataset, dataset_id).upload_key
    rows: list[dict[str, Any]] = pq.read_table(service.context.fetch(key)).to_pylist()
    return rows


def test_a_dataset_has_the_features_and_labels_of_mature_decisions(live: Service) -> None:
    client = live.client(live.key())
    rows = people()
    backfill(live, client, rows)
    outcomes(client, *labels(rows[:150]))
    made = make(live, client)
    assert made["status"] == "ready", made["errors"]
    assert (made["rows"], made["label"], made["positive"]) == (150, "left", "yes")
    assert made["positives"] == sum(row["age"] > 0.5 for row in rows[:150])
    assert (made["group"], made["weight"]) == ("entity", None)
    roles = {column["name"]: (column["role"], column["type"]) for column in made["columns"]}
    assert roles["age"] == ("feature", "numeric")
    assert roles["decision_at"] == ("feature", "datetime")
    assert roles["decision_weight"][0] == "dropped"
    source = made["source"]
    assert (source["kind"], source["decisions"], source["revision"]) == (
        "decisions",
        "churn@live",
        1,
    )
    assert source["rows"] == [
        {
            "origin": "backfill",
            "positives": made["positives"],
            "negatives": made["negatives"],
        }
    ]
    assert source["excluded"] == {
        "pending": 0,
        "missing": 50,
        "withdrawn": 0,
        "unrecognised": 0,
        "not_explored": 0,
    }
    assert (source["files"], source["time_column"]) == (1, "decision_at")
    kept = {row["entity"]: row for row in table_of(live, made["id"])}
    assert kept["c7"]["age"] == rows[7]["age"]
    assert kept["c7"]["decision_at"].timestamp() == START + DAY * rows[7]["day"]
    answer = client.post(f"{URL}/{made['id']}/read", json={"protected": "age"})
    assert answer.status_code == 202, answer.text
    live.work()
    again = client.get(answer.headers["Location"]).json()
    assert (again["status"], again["rows"], again["source"]) == ("ready", made["rows"], source)


def test_silence_is_negative_only_where_somebody_looked(live: Service) -> None:
    client = live.client(live.key())
    rule = {"horizon_days": 30, "silence": "negative"}
    point(client, client.get("/v1/models/churn@live").json()["id"], guarantee={"flagged": 0.3})
    record(client, days=3650, outcome=rule, explore={"of": "unflagged", "rate": 0.25})
    rows = people(100)
    for i, row in enumerate(rows):
        row["flag"] = i < 40
        row["explored"] = i >= 40 and i % 4 == 0
        row["propensity"] = 1 if row["flag"] else 0.25
    backfill(live, client, rows)
    outcomes(
        client, *({"id": f"c{i}", "day": rows[i]["day"], "label": True} for i in (1, 2, 41, 44))
    )
    made = make(live, client)
    assert made["weight"] == "decision_weight"
    assert made["source"]["excluded"]["not_explored"] == 45
    assert (made["positives"], made["rows"]) == (3, 55)
    weights = Counter(row["decision_weight"] for row in table_of(live, made["id"]))
    assert weights == {1.0: 40, 4.0: 15}


def test_weights_of_outcomes_and_of_recording_multiply(live: Service) -> None:
    client = live.client(live.key())
    rows = [row | {"keep": 0.5} for row in people(20)]
    backfill(live, client, rows)
    outcomes(client, *(row | {"weight": 3} for row in labels(rows[:19])), labels(rows)[19])
    made = make(live, client)
    assert made["rows"] == 20, made["warnings"]
    weights = Counter(row["decision_weight"] for row in table_of(live, made["id"]))
    assert sorted(weights.items()) == [(2.0, 1), (6.0, 19)]


BAD: dict[str, tuple[Any, int, str | None]] = {
    "no alias": ({"name": "x", "source": {"decisions": "churn"}}, 422, "/source/decisions"),
    "unknown alias": ({"name": "x", "source": {"decisions": "churn@other"}}, 404, None),
    "no source": ({"name": "x"}, 422, "/source"),
    "no name": ({"source": {"decisions": "churn@live"}}, 422, "/name"),
    "an empty source": ({"name": "x", "source": {}}, 422, "/source"),
    "an empty name": ({"name": "", "source": {"decisions": "churn@live"}}, 422, "/name"),
    "unknown member": (
        {"name": "x", "source": {"decisions": "churn@live", "rows": 3}},
        422,
        "/source/rows",
    ),
    "no date": (
        {"name": "x", "source": {"decisions": "churn@live", "since": "soon"}},
        422,
        "/source/since",
    ),
    "a number": (
        {"name": "x", "source": {"decisions": "churn@live", "until": 3}},
        422,
        "/source/until",
    ),
    "turned dates": (
        {
            "name": "x",
            "source": {"decisions": "churn@live", "since": "2026-02-01", "until": "2026-01-01"},
        },
        422,
        "/source/until",
    ),
}


def test_a_bad_request_is_refused(live: Service, sentences: Sentences) -> None:
    for path in (URL, f"{URL}/validate"):
        for body, status, pointer in BAD.values():
            answer = live.client(live.key()).post(path, json=body)
            assert answer.status_code == status, answer.text
            if pointer is not None:
                assert [each["pointer"] for each in answer.json()["errors"]] == [pointer]
            sentences(answer.json())
            assert live.work() == 0


def test_an_alias_without_settings_and_a_malformed_body(live: Service) -> None:
    client = live.client(live.key())
    client.put(
        "/v1/models/churn/aliases/silent",
        json={"model_id": client.get("/v1/models/churn@live").json()["id"]},
    )
    answer = client.post(URL, json={"name": "x", "source": {"decisions": "churn@silent"}})
    assert (answer.status_code, answer.json()["code"]) == (409, "no_feedback")
    headers = {"Content-Type": "application/json"}
    answer = client.post(URL, content=b'{"name": ', headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed_json")
    valid = {"name": "x", "source": {"decisions": "churn@live"}}
    assert client.post(f"{URL}/validate", json=valid).json() == {"valid": True}
    assert client.post(URL, params={"label": "x"}, json=valid).status_code == 422
    assert live.work() == 0
    key = {"Idempotency-Key": "k"}
    first, again = (client.post(URL, json=valid, headers=key) for _ in range(2))
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Idempotent-Replayed"] == "true"
    table = client.post(URL, params={"name": "t"}, json=[{"a": i, "b": i % 2} for i in range(40)])
    live.work()
    made = client.get(table.headers["Location"]).json()
    assert (made["status"], made["rows"], made["source"]) == ("ready", 40, None)


def test_only_its_owner_and_a_key_that_trains_can_make_one(live: Service) -> None:
    body = {"name": "x", "source": {"decisions": "churn@live"}}
    assert live.client(live.key(owner=STRANGER)).post(URL, json=body).status_code == 404
    for scope in ("read", "score", "outcomes"):
        assert live.client(live.key(scopes=[scope])).post(URL, json=body).status_code == 403
    assert live.client(live.key(scopes=["train"])).post(URL, json=body).status_code == 202


def test_without_decisions_the_dataset_is_invalid_and_can_be_retried(
    live: Service, sentences: Sentences
) -> None:
    client = live.client(live.key())
    made = make(live, client)
    assert made["status"] == "invalid"
    sentences(made["errors"][0])
    again = client.post(f"{URL}/{made['id']}/read", json={"label": "left"})
    assert (again.status_code, again.json()["code"]) == (409, "dataset_not_ready")
    rows = people()
    backfill(live, client, rows)
    outcomes(client, *labels(rows))
    retried = client.post(f"/v1/jobs/{made['job_id']}/retry")
    assert retried.status_code == 202, retried.text
    live.work()
    # Outcomes count as of the first request.
    assert client.get(f"{URL}/{made['id']}").json()["status"] == "invalid"
    record(client, days=3650, outcome={"horizon_days": 3000})
    pending = make(live, client)  # though they have outcomes
    assert pending["status"] == "invalid"
    assert "200 pending" in pending["errors"][0]["detail"]


@long_form
def test_dates_choose_the_decisions_but_not_which_one_an_outcome_belongs_to(
    live: Service,
) -> None:
    client = live.client(live.key())
    rows = people(40)
    twice = [{**row, "day": row["day"] + 25, "age": 9.0} for row in rows[:10]]
    backfill(live, client, [*rows, *twice])
    outcomes(client, *({"id": r["id"], "day": 30, "label": i % 2} for i, r in enumerate(rows)))
    made = make(live, client, since="2026-01-01", until="2026-01-21T00:00:00Z")
    # Each of the first ten has a later decision, to which its outcome belongs.
    assert made["rows"] == 30
    assert made["source"]["since"] == "2026-01-01T00:00:00.000Z"
    assert made["source"]["excluded"]["missing"] == 10


@long_form
def test_the_first_decision_of_an_entity_may_be_older_than_the_dates(live: Service) -> None:
    client = live.client(live.key())
    rule = {"horizon_days": 30, "attribute": "first_before_event"}
    record(client, days=3650, outcome=rule)
    rows = [{**row, "day": 100 + row["day"]} for row in people(20)]
    backfill(live, client, [{"id": "c0", "day": 0}, *rows])
    outcomes(client, *labels(rows))
    made = make(live, client, since=iso(START + DAY * 90))
    assert made["rows"] == 19
    assert "c0" not in {row["entity"] for row in table_of(live, made["id"])}
