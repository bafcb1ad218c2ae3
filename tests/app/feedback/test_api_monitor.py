"""The monitor and its alarms over HTTP: content, access, bad input."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from sqlalchemy import delete

from app.feedback import monitoring
from app.feedback.monitor_repository import MonitoredAlias
from app.operations.housekeeping import Housekeeper
from app.platform.tables import MonitorTest
from tests.app.feedback.simulator import (
    MONDAY,
    WEEK,
    Simulator,
    draw,
    feedback,
    table,
)
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import refused
from tests.long_form import long_form
from tests.sentences import Sentences

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


def run_monitor(service: Service) -> None:
    """Make the tests that are due, at most 60 periods."""
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
    run_monitor(service)
    return simulator


@pytest.fixture(scope="module")
def watched(start: Callable[..., Service]) -> tuple[Service, httpx.Client]:
    """A service with an alarm, for tests that only read."""
    service = start()
    client = service.client(service.key())
    fallen(service, client)
    return service, client


def test_the_monitor_shows_tests_alarms_and_budget(
    watched: tuple[Service, httpx.Client],
) -> None:
    _, client = watched
    found = client.get(PATH).json()
    assert found["settings"] == {
        "period": "week",
        "alpha": 0.05,
        "tolerance": {},
    }
    first = found["periods"][-1]
    assert first["start"] == "2024-12-30T00:00:00.000Z"
    assert (first["decisions"], first["lost"], first["corrections"]) == (1000, 0, 0)
    by_family = {each["family"]: each for each in first["tests"]}
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


@long_form
def test_what_can_be_found_is_shown_when_the_monitor_is_switched_on(
    service: Service, client: httpx.Client
) -> None:
    train(service, client)
    path = "/v1/models/m/aliases/live/feedback"
    off = client.put(path, json={})
    assert (off.status_code, off.json()["detectable"]) == (201, None)
    tag = {"If-Match": off.headers["ETag"]}
    found = client.put(path, json={"monitor": {}}, headers=tag)
    assert found.status_code == 200, found.text
    detectable = found.json()["detectable"]
    assert (detectable["drop"], detectable["rows"]) == (None, None)
    assert 0.0 < detectable["floor"] < 0.2
    assert client.get(path).json()["detectable"] == detectable
    assert client.get(PATH).json()["detectable"] == detectable
    tag = {"If-Match": found.headers["ETag"]}
    daily = client.put(path, json={"monitor": {"period": "day"}}, headers=tag).json()
    assert 0.0 < daily["detectable"]["floor"] < 0.2


def test_an_imported_model_is_approved_and_monitored(
    service: Service, client: httpx.Client
) -> None:
    train(service, client)
    artifact = client.get("/v1/models/m/artifact").content
    held_out = service.upload(
        client, table(draw(np.random.default_rng(2), 4000)), label="y", positive="1"
    )
    client.post("/v1/models", params={"name": "m", "dataset_id": held_out}, content=artifact)
    service.work()
    imported = client.get("/v1/models/m").json()
    assert (imported["version"], imported["imported"]["model"]["version"]) == (2, 1)
    alias, bob = "/v1/models/m/aliases/live", service.client(service.key(name="Bob"))
    first = {"If-Match": '"1"'}
    client.put(f"{alias}/protection", json={"protected": True}, headers=first)
    asked = {"kind": "set", "name": "m", "alias": "live", "model_id": imported["id"]}
    made = client.post("/v1/alias-requests", json={**asked, "reason": "moved here"})
    assert made.status_code == 201, made.text
    approved = bob.post(f"/v1/alias-requests/{made.json()['id']}/approve", json={})
    assert approved.status_code == 200, approved.text
    assert client.get(alias).json()["model_id"] == imported["id"]
    simulator = simulate(service)
    simulator.put_settings(feedback())
    for number in range(1, 5):
        simulator.week(number, slope=2.0 if number < 3 else 0.5)
    run_monitor(service)
    found = client.get(PATH).json()
    assert {each["family"] for each in found["alarms"]} >= {"ranking"}
    assert (found["recorded"], found["lost"]) == (4000, 0)
    (ranking,) = (each for each in found["periods"][-1]["tests"] if each["family"] == "ranking")
    assert (ranking["status"], ranking["known"]) == ("passed", 1000)


def test_access_to_monitor_and_alarms(watched: tuple[Service, httpx.Client]) -> None:
    service, client = watched
    alarm = client.get("/v1/alarms").json()["data"][0]
    address = f"/v1/alarms/{alarm['id']}"
    stranger = service.client(service.key(STRANGER))
    refused(stranger.get(PATH), 404, "not_found")
    refused(stranger.get(address), 404, "not_found")
    refused(stranger.post(f"{address}/acknowledge", json=ACKNOWLEDGED), 404, "not_found")
    assert stranger.get("/v1/alarms").json()["data"] == []
    pages, after = [], None
    while after is None or after:  # alarms come in pages
        params = {"limit": "1"} | ({} if after is None else {"after": after})
        page = client.get("/v1/alarms", params=params).json()
        pages += page["data"]
        after = page["next"] if page["has_more"] else ""
    assert pages == client.get("/v1/alarms").json()["data"]
    reader = service.client(service.key(scopes=["read"]))
    assert reader.get(PATH).status_code == 200
    refused(reader.post(f"{address}/acknowledge", json=ACKNOWLEDGED), 403, "forbidden")
    scorer = service.client(service.key(scopes=["score"]))
    for path in (PATH, address, "/v1/alarms"):
        refused(scorer.get(path), 403, "forbidden")


def test_wrong_parameters_are_refused(
    service: Service, client: httpx.Client, sentences: Sentences
) -> None:
    refused(client.get(PATH), 404, "not_found")
    train(service, client, 200)
    assert client.get(PATH).json()["settings"] is None
    for address in (
        f"{PATH}?as_of=yesterday",
        f"{PATH}?as_of=5",
        f"{PATH}?period=week",
        "/v1/models/m/aliases/live/shadow?as_of=x",
        "/v1/alarms?acknowledged=perhaps",
        "/v1/alarms?name=No name!",
        "/v1/alarms?alias=-",
        "/v1/alarms?limit=0",
        "/v1/alarms?after=nothing",
    ):
        answer = client.get(address)
        assert answer.status_code == 422, answer.text
        sentences(answer.json())
    for id_ in ("nothing", "alm_1", "alm_" + "0" * 32):
        sentences(refused(client.get(f"/v1/alarms/{id_}"), 404, "not_found")["detail"])
    for body, pointer in (
        ({}, "/reason"),
        ({"reason": " ", "reference": "keep"}, "/reason"),
        ({"reason": "a", "reference": "forget"}, "/reference"),
        ({"reason": "a"}, "/reference"),
        ({"reason": 3, "reference": "keep"}, "/reason"),
        ({"reason": "a" * 2001, "reference": "keep"}, "/reason"),
        ({"reason": "a\0", "reference": "keep"}, "/reason"),
        ({"reason": "a", "reference": "keep", "more": 1}, "/more"),
    ):
        answer = client.post("/v1/alarms/alm_" + "0" * 32 + "/acknowledge", json=body)
        problem = refused(answer, 422, "invalid")
        assert pointer in [each["pointer"].removeprefix("#") for each in problem["errors"]]
    for monitor in (
        {"alpha": 0.5},
        {"alpha": 0.0},
        {"tolerance": {"pauc": 0.1}},
        {"tolerance": {"auc": -0.1}},
        {"tolerance": {"auc": "small"}},
        {"period": "year"},
    ):
        answer = client.put("/v1/models/m/aliases/live/feedback", json={"monitor": monitor})
        sentences(refused(answer, 422, "invalid")["errors"][0]["detail"])


@pytest.mark.parametrize("reference", ["keep", "renew"])
def test_after_an_acknowledgement_the_test_begins_again(
    service: Service, client: httpx.Client, reference: str, sentences: Sentences
) -> None:
    simulator = fallen(service, client)
    alarms = client.get("/v1/alarms", params={"acknowledged": False}).json()["data"]
    (alarm,) = [each for each in alarms if each["family"] == "ranking"]
    address = f"/v1/alarms/{alarm['id']}"
    assert client.get(address).json() == alarm
    assert (alarm["acknowledged_at"], alarm["reason"]) == (None, None)
    body = {**ACKNOWLEDGED, "reference": reference}
    done = client.post(f"{address}/acknowledge", json=body).json()
    assert (done["reason"], done["author"]) == ("Known: <b>new</b> tariff.", "test")
    assert done["reference"] == reference
    again = client.post(f"{address}/acknowledge", json=body)
    detail = refused(again, 409, "already_acknowledged")["detail"]
    sentences(detail.replace(alarm["id"], "alm_…"))
    only = client.get("/v1/alarms", params={"acknowledged": True}).json()["data"]
    assert [each["id"] for each in only] == [alarm["id"]]
    entries = client.get("/v1/audit").json()["data"]
    summaries = [each["summary"] or "" for each in entries]
    assert any("ranking" in each and "acknowledged" in each for each in summaries)
    before = client.get(PATH).json()
    numbers = [one["number"] for each in before["periods"] for one in each["tests"]]
    # As if the later weeks had not ended yet when the tests were made.
    with simulator.db.write() as session:
        session.execute(delete(MonitorTest).where(MonitorTest.period_start >= MONDAY + 4 * WEEK))
    for number in range(5, 8):
        simulator.week(number, slope=0.5)
    run_monitor(service)
    after = client.get(PATH).json()
    ranking = {
        each["start"]: one
        for each in after["periods"]
        for one in each["tests"]
        if one["family"] == "ranking"
    }
    fifth, *later = [ranking[start] for start in sorted(ranking)][4:7]
    assert max(numbers) > 5
    if reference == "renew":  # the fall is the new normal
        assert (fifth["number"], fifth["since"]) == (1, 0)
        assert fifth["expected"] == pytest.approx(alarm_value(before), abs=0.02)
        assert [each["status"] for each in (fifth, *later)] == ["passed"] * 3
    else:  # the fall goes on
        assert (fifth["number"], fifth["since"]) == (5, 4)
        assert "alarm" in [each["status"] for each in (fifth, *later)]
        assert len([each for each in after["alarms"] if each["family"] == "ranking"]) == 2


def alarm_value(monitor: Any) -> float:
    """Return the AUC of the window that raised the alarm."""
    tests = [
        one
        for each in monitor["periods"]
        for one in each["tests"]
        if one["family"] == "ranking" and one["status"] == "alarm"
    ]
    value: float = tests[-1]["window"]["value"]
    return value


def test_the_dispatcher_queues_the_jobs_of_due_tests(
    service: Service, client: httpx.Client
) -> None:
    train(service, client, 200)
    simulator = simulate(service)
    simulator.put_settings(feedback())
    simulator.week(1, 50)
    keeper = Housekeeper(simulator.db, simulator.blobs, service.settings, threading.Event())
    assert (keeper.schedule_tests(), keeper.schedule_tests()) == (1, 0)
    (job,) = client.get("/v1/jobs", params={"kind": "monitor"}).json()["data"]
    assert (job["name"], job["state"]) == ("m@live", "queued")
    assert service.work() == 1
    assert client.get(f"/v1/jobs/{job['id']}").json()["state"] == "succeeded"
