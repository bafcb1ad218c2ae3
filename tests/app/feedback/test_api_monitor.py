"""The monitor and its alarms over HTTP: content, access, bad input."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import pytest

from app.feedback import monitoring
from app.feedback.monitor_repository import MonitoredAlias
from tests.app.feedback.simulator import DAY, MONDAY, WEEK, Simulator, draw, feedback, table
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import refused

PATH = "/v1/models/m/aliases/live/monitor"
ACKNOWLEDGED = {"reason": " Known: <b>new</b> tariff. ", "reference": "keep"}
LIVE = MonitoredAlias(OWNER, "m", "live")


def train(service: Service, client: httpx.Client, rows: int = 4000) -> str:
    dataset = service.upload(
        client, table(draw(np.random.default_rng(1), rows)), name="m", label="y", positive="1"
    )
    job = service.train(
        client,
        dataset,
        name="m",
        algorithm={"name": "rankboost", "n_rounds": 5},
        validation={"method": "holdout", "fraction": 0.5},
    )
    model_id: str = job["output"]["id"]
    client.put("/v1/models/m/aliases/live", json={"model_id": model_id})
    return model_id


def simulate(service: Service, **given: Any) -> Simulator:
    return Simulator(service.context.db, service.context.blobs, OWNER, "m", **given)


def look(service: Service) -> None:
    """Make the looks that are due, at most 60 periods."""
    db = service.context.db
    assert db.writing(monitoring.schedule, service.settings, LIVE) is not None
    assert service.work() == 1


def fallen(service: Service, client: httpx.Client) -> Simulator:
    """Return an alias whose ranking has become worse, with its alarm."""
    train(service, client)
    simulator = simulate(service)
    simulator.put_settings(feedback())
    for number in range(1, 5):
        simulator.week(number, slope=2.0 if number < 3 else 0.5)
    look(service)
    return simulator


def test_the_monitor_shows_looks_alarms_and_budget(service: Service, client: httpx.Client) -> None:
    fallen(service, client)
    found = client.get(PATH).json()
    assert found["settings"] == {"period": "week", "alpha": 0.05, "tolerance": {}}
    first = found["periods"][-1]
    assert first["start"] == "2024-12-30T00:00:00.000Z"
    assert (first["decisions"], first["lost"], first["corrections"]) == (1000, 0, 0)
    by_family = {each["family"]: each for each in first["looks"]}
    ranking = by_family["ranking"]
    assert (ranking["status"], ranking["population"], ranking["known"]) == ("passed", "all", 1000)
    assert (ranking["number"], ranking["planned"], ranking["since"]) == (1, 52, 0)
    assert ranking["metrics"]["decisions"] == 1000
    assert ranking["critical_value"] > 3.0
    assert by_family["guarantee"]["status"] == "not_tested"
    assert by_family["unlabelled"]["shifted"] == []
    budget = {each["family"]: each for each in found["budget"]}
    assert sum(each["alpha"] for each in found["budget"]) == pytest.approx(0.05)
    assert budget["ranking"]["left"] <= budget["ranking"]["alpha"]
    assert 0.0 < found["detectable"]["floor"] < found["detectable"]["drop"] < 0.2
    alarms = [each for each in found["alarms"] if each["family"] == "ranking"]
    assert len(alarms) == 1
    assert (found["recorded"], found["lost"]) == (4000, 0)
    assert client.get("/v1/alarms", params={"name": "m"}).json()["data"][0] in found["alarms"]
    early = client.get(PATH, params={"as_of": "2025-01-01T00:00:00Z"}).json()
    assert (early["periods"], early["alarms"]) == ([], [])


def test_an_alarm_is_acknowledged_once(
    service: Service, client: httpx.Client, sentences: Any
) -> None:
    fallen(service, client)
    (alarm,) = [
        each
        for each in client.get("/v1/alarms", params={"acknowledged": False}).json()["data"]
        if each["family"] == "ranking"
    ]
    address = f"/v1/alarms/{alarm['id']}"
    assert client.get(address).json() == alarm
    assert (alarm["acknowledged_at"], alarm["reason"]) == (None, None)
    done = client.post(f"{address}/acknowledge", json=ACKNOWLEDGED)
    assert done.status_code == 200, done.text
    assert (done.json()["reason"], done.json()["reference"], done.json()["author"]) == (
        "Known: <b>new</b> tariff.",
        "keep",
        "test",
    )
    problem = refused(
        client.post(f"{address}/acknowledge", json=ACKNOWLEDGED), 409, "already_acknowledged"
    )
    assert problem["code"] == "already_acknowledged"
    sentences(problem["detail"].replace(alarm["id"], "alm_…"))
    only = client.get("/v1/alarms", params={"acknowledged": True}).json()["data"]
    assert [each["id"] for each in only] == [alarm["id"]]
    entries = client.get("/v1/audit").json()["data"]
    assert any("alarm of ranking acknowledged" in (each["summary"] or "") for each in entries)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/reason"),
        ({"reason": " ", "reference": "keep"}, "/reason"),
        ({"reason": "a", "reference": "forget"}, "/reference"),
        ({"reason": "a"}, "/reference"),
        ({"reason": 3, "reference": "keep"}, "/reason"),
        ({"reason": "a" * 2001, "reference": "keep"}, "/reason"),
        ({"reason": "a\0", "reference": "keep"}, "/reason"),
        ({"reason": "a", "reference": "keep", "more": 1}, "/more"),
    ],
)
def test_a_wrong_acknowledgement_is_refused(
    service: Service, client: httpx.Client, body: Any, pointer: str
) -> None:
    problem = refused(
        client.post("/v1/alarms/alm_" + "0" * 32 + "/acknowledge", json=body), 422, "invalid"
    )
    assert pointer in [each["pointer"].removeprefix("#") for each in problem["errors"]]


def test_access_to_monitor_and_alarms(service: Service, client: httpx.Client) -> None:
    fallen(service, client)
    alarm = client.get("/v1/alarms").json()["data"][0]
    address = f"/v1/alarms/{alarm['id']}"
    stranger = service.client(service.key(STRANGER))
    refused(stranger.get(PATH), 404, "not_found")
    refused(stranger.get(address), 404, "not_found")
    refused(stranger.post(f"{address}/acknowledge", json=ACKNOWLEDGED), 404, "not_found")
    assert stranger.get("/v1/alarms").json()["data"] == []
    reader = service.client(service.key(scopes=["read"]))
    assert reader.get(PATH).status_code == 200
    refused(reader.post(f"{address}/acknowledge", json=ACKNOWLEDGED), 403, "forbidden")
    scorer = service.client(service.key(scopes=["score"]))
    for path in (PATH, address, "/v1/alarms"):
        refused(scorer.get(path), 403, "forbidden")


def test_wrong_parameters_are_refused(
    service: Service, client: httpx.Client, sentences: Any
) -> None:
    refused(client.get(PATH), 404, "not_found")
    train(service, client, 200)
    assert client.get(PATH).json()["settings"] is None
    for path, params in (
        (PATH, {"as_of": "yesterday"}),
        (PATH, {"as_of": "5"}),
        (PATH, {"period": "week"}),
        ("/v1/alarms", {"acknowledged": "perhaps"}),
        ("/v1/alarms", {"name": "No name!"}),
        ("/v1/alarms", {"alias": "-"}),
        ("/v1/alarms", {"limit": "0"}),
        ("/v1/alarms", {"after": "nothing"}),
    ):
        answer = client.get(path, params=params)
        assert answer.status_code == 422, (path, params, answer.text)
        sentences(answer.json()["detail"])
    for id_ in ("nothing", "alm_1", "alm_" + "0" * 32):
        sentences(refused(client.get(f"/v1/alarms/{id_}"), 404, "not_found")["detail"])


def test_alarms_come_in_pages(service: Service, client: httpx.Client) -> None:
    fallen(service, client)
    every = client.get("/v1/alarms").json()["data"]
    seen, after = [], None
    while True:
        params = {"limit": "1"} | ({} if after is None else {"after": after})
        page = client.get("/v1/alarms", params=params).json()
        seen += page["data"]
        if not page["has_more"]:
            break
        after = page["next"]
    assert seen == every
    assert len(seen) >= 1


def test_after_an_acknowledgement_the_test_begins_again(
    service: Service, client: httpx.Client
) -> None:
    simulator = fallen(service, client)
    now = simulator.db.reading(__import__("app.feedback.monitor_repository", fromlist=["now"]).now)
    assert now > MONDAY + WEEK + DAY
    alarm = next(
        each for each in client.get("/v1/alarms").json()["data"] if each["family"] == "ranking"
    )
    client.post(
        f"/v1/alarms/{alarm['id']}/acknowledge", json={**ACKNOWLEDGED, "reference": "renew"}
    )
    assert client.get(PATH).json()["alarms"][-1]["reference"] in ("renew", None)
