"""Schedules in the console: created from a dataset's page, paused, resumed and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.console.plain_browser import PlainBrowser
from tests.app.live_service import Service
from tests.app.sources import make_refreshable

PAGE = "/console/schedules"


@pytest.fixture
def dataset_id(service: Service, tmp_path: Path) -> str:
    made = service.upload(service.client(service.key()))
    make_refreshable(service, made, tmp_path)
    return made


def test_a_schedule_is_created_paused_resumed_and_deleted(
    service: Service, dataset_id: str
) -> None:
    ours = PlainBrowser(service)
    form = f"{PAGE}?dataset={dataset_id}"
    assert form in ours.read(f"/console/datasets/{dataset_id}")
    assert f'value="{dataset_id}"' in ours.read(form)
    wrong = ours.post(PAGE, dataset_id=dataset_id, cron="* * * * *")
    assert wrong.status_code == 422
    assert 'id="e-cron"' in wrong.text
    assert 'value="* * * * *"' in wrong.text
    made = ours.post(PAGE, dataset_id=dataset_id, cron="0 5 * * 1-5")
    assert (made.status_code, made.headers["location"]) == (303, PAGE)
    client = service.client(service.key())
    [schedule] = client.get("/v1/schedules").json()["data"]
    assert "0 5 * * 1-5" in ours.read(PAGE)
    path = f"{PAGE}/{schedule['id']}"
    for paused in ("yes", "no"):
        assert ours.post(path, paused=paused).status_code == 303
        found = client.get(f"/v1/schedules/{schedule['id']}").json()
        assert (found["paused_at"] is not None) == (paused == "yes")
    assert ours.post(f"{path}/delete").status_code == 303
    assert client.get("/v1/schedules").json()["data"] == []
    assert ours.post(path, paused="yes").status_code == 404
