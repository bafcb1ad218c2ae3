"""Jobs over HTTP: accepted whatever the broker does, followed, cancelled, retried."""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import orjson
import pytest
from pydantic import SecretStr

from app.jobs import queue
from app.jobs import service as jobs
from app.jobs.watcher import Snapshot, Watcher
from app.platform.settings import Settings
from tests.app.live_service import OWNER, STRANGER, Service, running
from tests.app.queue_steps import at_once
from tests.servers import ValkeyServer
from tests.waiting import eventually, patience


def body(dataset_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "dataset_id": dataset_id,
        "algorithm": {"name": "rankboost", "n_rounds": 5},
        "name": "churn",
    } | changes


def test_a_wake_up_is_sent_once_the_job_is_committed(
    settings: Settings, valkey: ValkeyServer
) -> None:
    broker = {"broker_url": SecretStr(valkey.broker_url)}
    with running(settings.model_copy(update=broker)) as service:
        client = service.client(service.key())
        dataset_id = service.upload(client)
        eventually(lambda: valkey.client.llen("rankwright") == 1)
        client.post("/v1/jobs", json=body(dataset_id))
        eventually(lambda: valkey.client.llen("rankwright") == 2)


def test_idempotency(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    dataset_id = service.upload(client)
    key = {"Idempotency-Key": "nightly"}
    submit = functools.partial(client.post, "/v1/jobs", json=body(dataset_id), headers=key)
    answers = at_once(*[submit] * 8)
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.text for answer in answers}) == 1
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == 7
    service.work()
    replay = submit()
    assert replay.status_code == 202  # as the first was accepted
    assert replay.json()["state"] == "queued"
    waited = submit(headers=key | {"Prefer": "wait=5"})
    assert waited.json()["state"] == "succeeded"
    assert waited.headers["Preference-Applied"] == "wait=5"
    assert waited.headers["Idempotent-Replayed"] == "true"
    other = client.post("/v1/jobs", json=body(dataset_id, seed=1), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_key_reused")
    assert len(client.get("/v1/jobs").json()["data"]) == 1
    stranger = service.client(service.key(owner="theirs"))
    assert stranger.post("/v1/jobs", json=body(dataset_id), headers=key).status_code == 404


def test_lists_show_training_unless_asked(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    job = service.train(client, dataset_id)
    assert [j["id"] for j in client.get("/v1/jobs").json()["data"]] == [job["id"]]
    assert [j["kind"] for j in client.get("/v1/jobs?kind=ingest").json()["data"]] == ["ingest"]
    assert client.get("/v1/jobs?state=queued").json()["data"] == []
    assert len(client.get(f"/v1/jobs?dataset_id={dataset_id}&state=succeeded").json()["data"]) == 1
    assert client.get("/v1/jobs?state=resting").status_code == 422


def test_ending_early_and_cancelling(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    job_id = client.post("/v1/jobs", json=body(dataset_id)).json()["id"]
    keep = f"/v1/jobs/{job_id}/cancel?keep=true"
    answer = client.post(keep)
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_to_keep")
    claim = service.context.db.writing(queue.claim, service.settings, "w")
    assert claim is not None
    told = {"fraction": 0.5, "phase": "fitting", "keepable": True}
    service.context.db.writing(queue.heartbeat, service.settings, claim, told)
    answer = client.post(keep.replace("true", "some"))
    assert (answer.status_code, answer.json()["errors"][0]["parameter"]) == (422, "keep")
    assert client.get(f"/v1/jobs/{job_id}").json()["keep_requested_at"] is None
    answer = client.post(keep)
    assert (answer.status_code, answer.json()["state"]) == (202, "running")
    assert answer.json()["keep_requested_at"] is not None
    assert client.post(keep).status_code == 200
    # Who wants nothing of it after all may still cancel.
    cancel = f"/v1/jobs/{job_id}/cancel"
    answer = client.post(cancel)
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelling")
    assert client.post(cancel).status_code == 200
    assert [j["id"] for j in client.get("/v1/jobs?state=cancelling").json()["data"]] == [job_id]
    answer = client.post(keep)
    assert (answer.status_code, answer.json()["code"]) == (409, "job_cancelling")
    queued = client.post("/v1/jobs", json=body(dataset_id)).json()["id"]
    answer = client.post(f"/v1/jobs/{queued}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    assert client.post(f"/v1/jobs/{queued}/cancel").status_code == 200
    done = service.train(client, dataset_id)["id"]
    for query in ("", "?keep=true"):
        answer = client.post(f"/v1/jobs/{done}/cancel{query}")
        assert (answer.status_code, answer.json()["code"]) == (409, "job_finished")


def test_retrying(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    first = client.post("/v1/jobs", json=body(dataset_id, tags={"a": "b"})).json()["id"]
    for query in ("", "/validate"):
        assert client.post(f"/v1/jobs/{first}/retry{query}").status_code == 409
    client.post(f"/v1/jobs/{first}/cancel")
    assert client.post(f"/v1/jobs/{first}/retry/validate").json() == {"valid": True}
    assert len(client.get("/v1/jobs").json()["data"]) == 1
    key = {"Idempotency-Key": "again"}
    again = client.post(f"/v1/jobs/{first}/retry", headers=key)
    assert again.status_code == 202
    assert again.json()["retry_of"] == first
    assert again.json()["tags"] == {"a": "b"}
    assert client.post(f"/v1/jobs/{first}/retry", headers=key).json()["id"] == again.json()["id"]


def test_a_read_waits_for_the_end(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    address = client.post("/v1/jobs", json=body(dataset_id)).headers["Location"]
    waiters = service.context.waiters

    def wait(by: httpx.Client, *seconds: int) -> httpx.Response:
        return by.get(address, headers={"Prefer": f"wait={seconds[0]}"} if seconds else {})

    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(wait, client, 1000)
        eventually(lambda: waiters.taken == 1)
        secret = service.key()
        ending = threads.submit(wait, service.client(secret), 1000)
        eventually(lambda: waiters.taken == 2)
        shown = wait(client)  # who has no preference never waits
        assert (shown.json()["state"], "Retry-After" in shown.headers) == ("queued", False)
        key_id = next(k for k in client.get("/v1/keys").json()["data"] if secret[:8] in k["prefix"])
        assert client.delete(f"/v1/keys/{key_id['id']}").status_code == 204
        service.work()
        ended = waiting.result(patience())
        assert (
            ending.result(patience()).status_code == 401
        )  # a key that ends meanwhile opens nothing
    assert (ended.status_code, ended.json()["state"]) == (200, "succeeded")
    assert ended.json() == client.get(address).json()
    assert ended.headers["Preference-Applied"] == "wait=60"
    assert wait(client, 5).headers["Preference-Applied"] == "wait=5"  # it had ended before
    assert wait(service.client(service.key(STRANGER)), 5).status_code == 404


def test_odd_preferences_are_ignored(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    for prefer in ("wait=0", "wait=x", "wait", "respond-async", "wait=-1", "wait=1e3"):
        headers = {"Prefer": prefer}
        answer = client.post("/v1/jobs", json=body(dataset_id), headers=headers)
        shown = client.get(answer.headers["Location"], headers=headers)
        assert (answer.status_code, shown.status_code) == (202, 200)
        assert shown.json()["state"] == "queued"
        assert "Preference-Applied" not in answer.headers
        assert not shown.headers.keys() & {"preference-applied", "retry-after"}


def test_event_pages(service: Service, client: httpx.Client) -> None:
    job = service.train(client, service.upload(client))
    page = client.get(f"/v1/jobs/{job['id']}/events?limit=2").json()
    assert [event["seq"] for event in page["data"]] == [1, 2]
    assert page["has_more"]
    rest = client.get(f"/v1/jobs/{job['id']}/events", params={"after": page["next"]}).json()
    assert rest["data"][0]["seq"] == 3
    assert rest["data"][-1]["data"]["state"] == "succeeded"
    assert rest["data"][-1]["seq"] == job["last_event"]
    assert not rest["has_more"]


def read_stream(response: httpx.Response, into: list[dict[str, Any]]) -> None:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif fields:
            into.append(
                {"id": int(fields["id"]), "event": fields["event"], **orjson.loads(fields["data"])}
            )
            fields = {}


def test_an_event_stream_follows_a_job_to_its_end(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    job_id = client.post("/v1/jobs", json=body(dataset_id)).json()["id"]
    events: list[dict[str, Any]] = []
    first_seen = threading.Event()

    def follow() -> None:
        reader = service.client(service.key())
        with reader.stream(
            "GET", f"/v1/jobs/{job_id}/events", headers={"Accept": "text/event-stream"}
        ) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            assert response.headers["Cache-Control"] == "no-cache"
            first_seen.set()
            read_stream(response, events)

    thread = threading.Thread(target=follow)
    thread.start()
    assert first_seen.wait(patience())
    service.work()
    thread.join(patience())
    assert not thread.is_alive()  # it closed by itself
    assert [event["id"] for event in events] == list(range(1, len(events) + 1))
    assert [event["data"]["state"] for event in events if event["event"] == "state"] == [
        "queued",
        "running",
        "succeeded",
    ]
    resumed: list[dict[str, Any]] = []
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(events[0]["id"])}
    with client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as response:
        read_stream(response, resumed)
    assert resumed == events[1:]


def test_a_stream_polls_ever_less_whatever_happens(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its waits continues the first."""
    begun: list[float | None] = []
    wait = Watcher.wait

    async def noting(watcher: Watcher, *given: Any) -> Snapshot | None:
        begun.append(given[3])
        return await wait(watcher, *given)

    monkeypatch.setattr(Watcher, "wait", noting)
    dataset_id = service.upload(client)
    job_id = client.post("/v1/jobs", json=body(dataset_id)).json()["id"]
    with client.stream(
        "GET", f"/v1/jobs/{job_id}/events", headers={"Accept": "text/event-stream"}
    ) as response:
        lines = response.iter_lines()
        while not next(lines).startswith("data:"):
            pass
        client.post(f"/v1/jobs/{job_id}/cancel")
        assert any("cancelled" in line for line in lines)
    assert len(begun) >= 2
    assert begun[0] is not None
    assert len(set(begun)) == 1


def test_progress_is_shown(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    job_id = client.post("/v1/jobs", json=body(dataset_id)).json()["id"]
    claim = service.context.db.writing(queue.claim, service.settings, "w")
    assert claim is not None
    row = {"trial": 1, "algorithm": "logistic", "parameters": {"C": 1.0}, "rows": 40}
    row |= {"splits": 1, "value": 0.75, "seconds": 0.5}
    progress = {"fraction": 0.5, "step": 1, "of": 2, "detail": "half", "phase": "fitting"}
    progress |= {"best": row | {"metric": "auc"}, "keepable": True}
    over_time = [{"seconds": 1.5, "value": 0.75}]
    shown = progress | {"leaderboard": [row], "improvements": over_time}
    private = {"partial": [], "ready": [None], "trials_done": 1}
    service.context.db.writing(queue.heartbeat, service.settings, claim, shown | private)
    told = client.get(f"/v1/jobs/{job_id}").json()["progress"]
    assert {name: value for name, value in told.items() if value is not None} == shown
    # There is an event for each that was told: they leave the leaderboard to the job.
    last = client.get(f"/v1/jobs/{job_id}/events").json()["data"][-1]
    assert (last["type"], last["data"]) == ("progress", progress)
    assert service.context.db.reading(jobs.find, OWNER, job_id).progress == shown | private
