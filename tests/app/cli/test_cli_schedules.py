"""`rankwright schedules`: created, listed, paused, resumed and deleted from a shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import Result

from tests.app.live_service import Service
from tests.app.sources import make_refreshable

Run = Callable[..., Result]


def test_a_schedule_is_created_paused_resumed_and_deleted(
    run: Run, service: Service, tmp_path: Path
) -> None:
    dataset_id = service.upload(service.client(service.key()))
    make_refreshable(service, dataset_id, tmp_path)
    assert run("schedules", "list").stdout == ""
    made = json.loads(run("schedules", "create", "people", "0 5 * * 1-5", "--json").stdout)
    assert (made["dataset_id"], made["cron"]) == (dataset_id, "0 5 * * 1-5")
    id_ = made["id"]
    assert id_ in run("schedules", "list").stdout
    assert "requested" in run("schedules", "pause", id_).stdout
    assert json.loads(run("schedules", "resume", id_, "--json").stdout)["paused_at"] is None
    [listed] = json.loads(run("schedules", "list", "--json").stdout)
    assert listed["id"] == id_
    run("schedules", "create", dataset_id, "* * * * *", code=2)
    run("schedules", "create", dataset_id, code=2)
    assert id_ in run("schedules", "delete", id_).stdout
    run("schedules", "pause", id_, code=3)
