"""Scores while the database is away: from memory, for keys and models that it answered for before."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from app.platform.migrate import upgrade
from app.platform.settings import Settings
from tests.app.live_service import Service, running
from tests.long_form import long_form
from tests.servers import PostgresServer
from tests.waiting import eventually, patience

ROW = {"age": "40", "income": "1", "score 1": "2"}
ROWS = {"rows": [{"age": 40, "income": 1, "score 1": 2}]}
REFERENCES = ("churn", "churn:1", "churn@live")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A database that can be stopped."""
    server = PostgresServer()
    yield server
    server.close()


def answers(client: httpx.Client, ref: str) -> list[httpx.Response]:
    """One row by GET, and rows by POST."""
    return [
        client.get(f"/v1/models/{ref}/score", params=ROW),
        client.post(f"/v1/models/{ref}/score", json=ROWS),
    ]


def test_scores_go_on_and_changes_wait(server: PostgresServer, tmp_path: Path) -> None:
    url = server.create("outage")
    upgrade(url)
    with running(Settings(state_dir=tmp_path, database_url=SecretStr(url))) as service:
        secret = service.key()
        client, stranger = service.client(secret), service.client(service.key("bob"))
        model_id = service.train(client, service.upload(client))["output"]["id"]
        client.put("/v1/models/churn/aliases/live", json={"model_id": model_id}).raise_for_status()
        before = {ref: answers(client, ref) for ref in (model_id, *REFERENCES)}
        assert {answer.status_code for given in before.values() for answer in given} == {200}
        server.stop()
        try:
            check_outage(service, client, stranger, before)
        finally:
            server.start()
        eventually(lambda: "X-Database-Away" not in answers(client, "churn")[0].headers)
        alias = "/v1/models/churn/aliases/live"
        client.delete(alias, headers={"If-Match": '"1"'}).raise_for_status()
        client.delete(f"/v1/models/{model_id}").raise_for_status()
        assert {answer.status_code for answer in answers(client, "churn:1")} == {404}


def test_the_first_scores_do_not_wait_for_a_frozen_server(
    server: PostgresServer, tmp_path: Path
) -> None:
    url = server.create("frozen")
    upgrade(url)
    settings = Settings(state_dir=tmp_path, database_url=SecretStr(url))
    with running(settings) as service, ThreadPoolExecutor(12) as callers:
        secret = service.key()
        client = service.client(secret)
        service.train(client, service.upload(client))
        clients = [service.client(secret) for _ in range(12)]

        def score(caller: httpx.Client) -> int:
            return caller.get("/v1/models/churn/score", params=ROW).status_code

        assert {*callers.map(score, clients)} == {200}
        forget_recent(service)
        with server.frozen():
            # They come at the same time, and get their answers while the server is frozen: it ends no statement.
            # Without a limit of their own, look-ups wait for it for 20 s or more.
            asked = [callers.submit(score, caller) for caller in clients]
            assert {each.result(patience() / 12.0) for each in asked} == {200}


def check_outage(
    service: Service,
    client: httpx.Client,
    stranger: httpx.Client,
    before: dict[str, list[httpx.Response]],
) -> None:
    """Known keys score known models as before; nothing else is answered."""
    forget_recent(service)
    for ref, given in before.items():
        for answer, first in zip(answers(client, ref), given, strict=True):
            assert (answer.status_code, answer.content) == (200, first.content)
            assert float(answer.headers["X-Database-Away"]) >= 0
    refused = [
        client.get("/v1/models/churn@unmet/score", params=ROW),
        client.get("/v1/models/churn"),
        client.post("/v1/jobs", json={"dataset_id": "x", "algorithm": {"name": "auto"}}),
        client.delete(f"/v1/models/{next(iter(before))}"),
        *answers(stranger, "churn"),  # its key was never used
    ]
    assert {answer.status_code for answer in refused} == {503}
    assert {answer.json()["code"] for answer in refused} == {"database_unavailable"}
    metrics = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines())
    assert metrics['rankwright_dependency_up{dependency="database"}'] == "0.0"
    assert float(metrics["rankwright_answers_without_database_total"]) >= 2 * len(before)


def forget_recent(service: Service) -> None:
    """Let what was seen within the last second be older."""
    service.app.state.authenticator.known.recent.clear()
    service.app.state.models.recent.clear()


@long_form
def test_an_operator_may_want_none(server: PostgresServer, tmp_path: Path) -> None:
    url = server.create("strict")
    upgrade(url)
    settings = Settings(state_dir=tmp_path, database_url=SecretStr(url), outage_seconds=0)
    with running(settings) as service:
        client = service.client(service.key())
        service.train(client, service.upload(client))
        assert {answer.status_code for answer in answers(client, "churn")} == {200}
        server.stop()
        try:
            forget_recent(service)
            assert {answer.status_code for answer in answers(client, "churn")} == {503}
        finally:
            server.start()
