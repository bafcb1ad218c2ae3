"""Outcomes and erasure on SQLite and on PostgreSQL, with the quota of bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from app.feedback import upkeep
from tests.app.feedback.test_api_outcomes import record, send, stored
from tests.app.feedback.test_upkeep import decisions, keeper, settle
from tests.app.live_service import Service
from tests.long_form import long_form

EVENT = "2026-01-02"


@long_form
def test_the_life_of_outcomes(service_on_both: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service = service_on_both
    client = service.client(service.key())
    (first, _) = record(service, ["c1", "c2"])
    for label in (1, 0):
        found = send(client, {"id": "c1", "label": label, "event_at": EVENT}).json()
    assert (found["matched"], found["corrected"]) == (1, 1)
    send(client, {"decision_id": first, "label": 1}, {"id": "c2", "label": 1, "event_at": EVENT})
    monkeypatch.setattr(upkeep, "MAX_INLINE", 3)
    keeper(service).round()
    assert len(stored(service)) == 4
    made = client.post("/v1/erasures", json={"id": "c1"}).json()
    settle(service)
    assert decisions(service) == ["c2"]
    assert [row["id"] for row in stored(service)] == ["c2"]
    found = client.get(f"/v1/erasures/{made['id']}").json()
    assert found["erased"] == {"decisions": 1, "outcomes": 3}
    assert found["done_at"] is not None


def test_requests_at_once_lose_nothing(service_on_both: Service) -> None:
    service = service_on_both
    clients = [service.client(service.key()) for _ in range(4)]
    answers: list[int] = []

    def go(number: int) -> None:
        for i in range(10):
            row = {"id": f"c{number}-{i}", "label": 1, "event_at": EVENT}
            answers.append(send(clients[number], row).status_code)

    threads = [threading.Thread(target=go, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 40
    assert len({row["id"] for row in stored(service)}) == 40


def test_outcomes_count_towards_the_quota(start: Callable[..., Service]) -> None:
    service = start(quota_bytes=20_000)
    client = service.client(service.key(owner="bounded"))
    lines = [f"entity-{i * 7919 % 100_003},1,2026-01-02" for i in range(5_000)]
    body = "\n".join(["id,label,event_at", *lines]).encode()
    answer = client.post("/v1/outcomes", content=body, headers={"Content-Type": "text/csv"})
    assert (answer.status_code, answer.json()["code"]) == (429, "quota_exceeded")
    assert stored(service, "bounded") == []
    assert client.post("/v1/erasures", json={"id": "c1"}).status_code == 202
