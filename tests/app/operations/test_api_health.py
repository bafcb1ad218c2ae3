"""Health and figures: each part named, down when it is down."""

from __future__ import annotations

import shutil
from pathlib import Path

from live_service import Service, running
from pydantic import SecretStr
from servers import ValkeyServer

from app.jobs import repository as workers
from app.platform.settings import Settings


def test_ready_names_what_is_away(tmp_path: Path, database_url: str, valkey: ValkeyServer) -> None:
    settings = Settings(
        state_dir=tmp_path,
        database_url=SecretStr(database_url),
        broker_url=SecretStr(valkey.broker_url),
    )
    with running(settings) as service:
        client = service.client()

        def away() -> set[str]:
            answer = client.get("/health/ready")
            parts = answer.json()["parts"]
            assert set(parts) == {"database", "blob_store", "broker", "worker"}
            away = {name for name, part in parts.items() if not part["ok"]}
            assert answer.status_code == (503 if away else 200)
            return away

        assert away() == {"worker"}
        with service.context.db.write() as session:
            workers.hello(session, "w1", host="here", version="0", slots=1)
        assert away() == set()
        with service.context.db.write() as session:
            workers.seen(session, "w1", by_message=0, by_look=9, note="finds its jobs by looking")
        assert "here: finds its jobs by looking" in client.get("/health/ready").text
        shutil.rmtree(service.context.blobs.root)
        assert away() == {"blob_store"}


def test_ready_without_a_broker(service: Service) -> None:
    parts = service.client().get("/health/ready").json()["parts"]
    assert (parts["broker"]["ok"], parts["database"]["ok"]) == (False, True)
    assert "away" in parts["broker"]["detail"]


def test_figures(settings: Settings) -> None:
    with running(settings) as service:
        client = service.client(service.key())
        service.train(client, service.upload(client))
        client.get("/v1/models/churn/score?age=1&income=1")
        client.get("/v1/nothing")
        answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'rankwright_jobs{kind="train",state="succeeded"} 1.0' in lines
    assert 'rankwright_jobs{kind="ingest",state="succeeded"} 1.0' in lines
    assert "rankwright_workers 0.0" in lines
    assert "rankwright_queue_oldest_seconds 0.0" in lines
    assert "rankwright_uploads 0.0" in lines
    assert any(line.startswith("rankwright_disk_free_bytes{disk=") for line in lines)
    labels = '{method="GET",route="/v1/models/{ref}/score",status="200"}'
    assert f"rankwright_http_request_seconds_count{labels} 1.0" in lines
    within = f'{{le="60.0",{labels[1:]}'
    assert f"rankwright_http_request_seconds_bucket{within} 1.0" in lines
    labels = '{method="GET",route="unrouted",status="404"}'
    assert f"rankwright_http_request_seconds_count{labels} 1.0" in lines
