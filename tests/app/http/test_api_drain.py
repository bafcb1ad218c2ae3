"""A process that is told to end: it says so, releases waiting callers, and answers until its time is up."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from app.platform.settings import Settings
from tests.app.live_service import Service, running, table
from tests.app.refusals import job
from tests.sentences import Sentences
from tests.waiting import eventually, patience


@pytest.fixture
def lingering(settings: Settings) -> Iterator[Service]:
    """A service that answers until it is told a second time to end."""
    with running(settings.model_copy(update={"drain_seconds": 1000.0})) as service:
        yield service


def accept_job(service: Service, client: httpx.Client) -> str:
    """Hand in a job that nobody works on; returns its address."""
    dataset_id = service.upload(client)
    answer = client.post("/v1/jobs", json=job(dataset_id))
    assert answer.status_code == 202
    return answer.headers["Location"]


def test_it_says_so_lets_go_who_waits_and_answers_on(
    lingering: Service, sentences: Sentences
) -> None:
    client = lingering.client(lingering.key())
    address = accept_job(lingering, client)
    waiters = lingering.context.waiters
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(
            client.post,
            "/v1/datasets",
            params={"name": "people", "label": "left"},
            content=table().encode(),
            headers={"Content-Type": "text/csv", "Prefer": "wait=60"},
        )
        following = threads.submit(
            lambda: client.get(f"{address}/events", headers={"Accept": "text/event-stream"}).text
        )
        eventually(lambda: waiters.taken == 2)
        lingering.server.end()
        assert waiting.result(20).status_code == 202  # it would have waited a minute
        assert following.result(20).endswith(": ping\n\n")

    ready = client.get("/health/ready")
    assert ready.status_code == 503
    assert ready.json()["parts"]["api"]["ok"] is False
    sentences(ready.json()["parts"]["api"])
    shown = client.get(address, headers={"Prefer": "wait=60"})
    assert (shown.status_code, shown.json()["state"]) == (200, "queued")
    assert shown.headers["Connection"] == "close"
    again = client.post(
        "/v1/datasets",
        params={"name": "more", "label": "left"},
        content=table().encode(),
        headers={"Content-Type": "text/csv", "Prefer": "wait=60"},
    )
    assert again.status_code == 202

    lingering.server.end()
    eventually(lambda: lingering.server.should_exit)


@pytest.fixture
def service(settings: Settings) -> Iterator[Service]:
    """A service that the test ends."""
    with running(settings) as service:
        yield service


def test_what_is_not_done_in_time_may_come_again(service: Service) -> None:
    """A slow upload while the process ends: 503 and Retry-After, not a broken connection or a 500."""
    secret = service.key()
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=patience()) as connection:
        head = (
            "POST /v1/datasets?name=people&label=left HTTP/1.1\r\nHost: here\r\n"
            f"Authorization: Bearer {secret}\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\n"
        )
        connection.sendall(head.encode() + b"a,left\n")
        eventually(lambda: service.server.server_state.tasks)
        eventually(lambda: list(service.settings.blob_dir.glob("staging/*")))
        service.server.end()
        answer = b""
        while data := connection.recv(4096):
            answer += data
    told, _, body = answer.partition(b"\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in told.lower()
    assert json.loads(body)["code"] == "draining"
    with service.context.db.read() as session:
        assert not session.connection().exec_driver_sql("SELECT count(*) FROM datasets").scalar()
