"""/v1/schedules: create, read, change, pause, resume and delete schedules; bad input."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from app.access import service as keys
from app.operations.scheduling import Scheduler
from app.platform.sql import db_now
from app.platform.tables import AuditEntry, Schedule
from app.schedules import service as schedules
from tests.app.access.test_api_roles import rule, token_of
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import everything, refused
from tests.app.sources import make_refreshable

UNKNOWN = "sch_" + "0" * 32
CRON = "0 5 * * 1-5"


@pytest.fixture
def client(service: Service) -> httpx.Client:
    return service.client(service.key())


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process is 14 hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        assert time.timezone == -14 * 3600
        yield
    time.tzset()


@pytest.fixture
def dataset_id(service: Service, client: httpx.Client, tmp_path: Path) -> str:
    made = service.upload(client)
    make_refreshable(service, made, tmp_path)
    return made


def create(client: httpx.Client, dataset_id: str, cron: str = CRON) -> dict[str, Any]:
    answer = client.post("/v1/schedules", json={"dataset_id": dataset_id, "cron": cron})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    assert answer.headers["Location"] == f"/v1/schedules/{made['id']}"
    return made


def summaries(service: Service) -> list[str]:
    with service.context.db.read() as session:
        statement = select(AuditEntry.summary).where(AuditEntry.path.like("/v1/schedules%"))
        return [each or "" for each in session.scalars(statement)]


def test_a_schedule_is_created_read_changed_and_deleted(
    service: Service, client: httpx.Client, dataset_id: str
) -> None:
    made = create(client, dataset_id, " 0  5 * * mon-fri ")
    assert (made["dataset_id"], made["cron"]) == (dataset_id, "0 5 * * MON-FRI")
    assert made["next_run_at"][11:] == "05:00:00.000Z"
    assert (made["author"], made["paused_at"], made["last_run_at"]) == ("test", None, None)
    path = f"/v1/schedules/{made['id']}"
    assert client.get(path).json() == made
    assert client.get("/v1/schedules").json()["data"] == [made]
    changed = client.patch(path, json={"cron": "30 6 1 * *"}).json()
    assert changed["cron"] == "30 6 1 * *"
    assert changed["next_run_at"][8:16] == "01T06:30"
    for cron in ("*/5 * * * *", "0 5 L * *", "2,57 * * * *", "0,59 0 * * *"):
        assert client.patch(path, json={"cron": cron}).json()["cron"] == cron
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404
    assert client.get("/v1/schedules").json()["data"] == []
    assert len(summaries(service)) == 7


@pytest.mark.usefixtures("far_east")
def test_a_schedule_is_due_in_utc_wherever_the_service_runs(
    client: httpx.Client, dataset_id: str
) -> None:
    assert create(client, dataset_id, "0 5 * * *")["next_run_at"][10:] == "T05:00:00.000Z"


def test_a_schedule_is_paused_and_resumed_and_then_acts_as_who_resumed_it(
    service: Service, client: httpx.Client, dataset_id: str
) -> None:
    path = f"/v1/schedules/{create(client, dataset_id)['id']}"
    paused = client.patch(path, json={"paused": True}).json()
    assert (paused["paused_reason"], paused["next_run_at"]) == ("requested", None)
    assert client.patch(path, json={"paused": True}).json() == paused
    assert client.patch(path, json={"cron": "0 7 * * *"}).json()["next_run_at"] is None
    other = service.client(service.key(scopes=["train"], name="other"))
    resumed = other.patch(path, json={"paused": False}).json()
    assert (resumed["paused_at"], resumed["paused_reason"]) == (None, None)
    assert (resumed["author"], resumed["next_run_at"][11:16]) == ("other", "07:00")
    kept = client.patch(path, json={"paused": False}).json()
    assert kept == resumed


def test_a_schedule_of_a_deleted_dataset_cannot_be_resumed(
    client: httpx.Client, dataset_id: str
) -> None:
    path = f"/v1/schedules/{create(client, dataset_id)['id']}"
    client.patch(path, json={"paused": True})
    assert client.delete(f"/v1/datasets/{dataset_id}").is_success
    refused(client.patch(path, json={"paused": False}), 404, "not_found", dataset_id)
    assert client.get(path).json()["paused_reason"] == "requested"


def test_a_run_is_shown_with_its_job_and_dataset(
    service: Service, client: httpx.Client, dataset_id: str, tmp_path: Path
) -> None:
    made = create(client, dataset_id)
    db = service.context.db
    with db.write() as session:
        session.execute(
            update(Schedule).where(Schedule.id == made["id"]).values(due_at=db_now() - 1)
        )
    settings = service.settings.model_copy(
        update={"connections_file": tmp_path / "connections.json"}
    )
    assert Scheduler(db, service.context.blobs, settings).run_due() == 1
    ran = client.get(f"/v1/schedules/{made['id']}").json()
    assert (ran["last_job_state"], ran["last_error"]) == ("queued", None)
    new = client.get(f"/v1/datasets/{ran['last_dataset_id']}").json()
    assert (new["refresh_of"], new["job_id"]) == (dataset_id, ran["last_job_id"])
    assert ran["dataset_id"] == dataset_id
    assert client.delete(f"/v1/schedules/{made['id']}").status_code == 204
    assert client.get(f"/v1/jobs/{ran['last_job_id']}").json()["state"] == "queued"


NO_CRON = (
    *("", " ", "x", "* * * *", "0 5 * * * *", "60 5 * * *", "0 24 * * *", "0 5 0 * *"),
    *("0 5 * 13 *", "0 5 * * 8", "0 5 30 2 *", "0 0 */31 * MON#2", "5/0 * * * *"),
    *("@daily", "0 5 * * MON#6", "1-0 * * * *", "0,,5 * * * *", "0 5 * * \x00"),
    *("9" * 95 + " * * *", "/" * 90 + " * * * *", "²  5 * * *", "0 5 * * ²L", "-1 5 * * *"),
)
OFTEN = ("* * * * *", "*/4 * * * *", "0,3 5 * * *", "58,1 * * * *", "0,59 0,23 * * *")
NEW: list[tuple[dict[str, Any], int, str, str | None]] = [
    *(({"cron": cron}, 422, "invalid", "/cron") for cron in (*NO_CRON, None, 5, CRON + " " * 100)),
    *(({"cron": cron}, 422, "schedule_too_frequent", None) for cron in OFTEN),
    *(({"dataset_id": id_}, 422, "invalid", "/dataset_id") for id_ in (None, 1)),
    *(({"dataset_id": id_}, 404, "not_found", None) for id_ in ("ds_" + "0" * 32, "x\x00")),
    ({"owner": STRANGER}, 422, "invalid", "/owner"),
]
CHANGES: list[tuple[dict[str, Any], str]] = [
    *(({"cron": cron}, "schedule_too_frequent") for cron in OFTEN),
    *((body, "invalid") for body in ({"cron": None}, {"paused": None}, {"paused": "x"})),
    ({"id": "x"}, "invalid"),
]


def test_what_is_refused(service: Service, client: httpx.Client, dataset_id: str) -> None:
    uploaded = service.upload(client, name="uploaded")
    path = f"/v1/schedules/{create(client, dataset_id)['id']}"
    before = everything(service)
    for body, status, code, pointer in [
        *NEW,
        ({"dataset_id": uploaded}, 409, "not_refreshable", None),
    ]:
        asked = {"dataset_id": dataset_id, "cron": CRON} | body
        asked = {name: value for name, value in asked.items() if value is not None}
        for route in ("/v1/schedules", "/v1/schedules/validate"):
            problem = refused(client.post(route, json=asked), status, code)
            if pointer is not None:
                assert [each["pointer"] for each in problem["errors"]] == [pointer]
    for change, code in CHANGES:
        refused(client.patch(path, json=change), 422, code)
    for unknown in (UNKNOWN, "sch_", "x", "sch_%F0", "wh_" + "0" * 32):
        for method in ("GET", "PATCH", "DELETE"):
            given = {"paused": True} if method == "PATCH" else None
            answer = client.request(method, f"/v1/schedules/{unknown}", json=given)
            refused(answer, 404, "not_found")
    assert everything(service) == before


def test_an_owner_has_a_limited_number_of_schedules(
    client: httpx.Client, dataset_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "MAX_SCHEDULES", 2)
    first = create(client, dataset_id)
    create(client, dataset_id)
    asked = {"dataset_id": dataset_id, "cron": CRON}
    refused(client.post("/v1/schedules", json=asked), 409, "too_many_schedules", "2")
    client.delete(f"/v1/schedules/{first['id']}")
    create(client, dataset_id)


def test_a_repeated_request_creates_one_schedule(client: httpx.Client, dataset_id: str) -> None:
    asked = {"dataset_id": dataset_id, "cron": CRON}
    key = {"Idempotency-Key": "once"}
    made = [client.post("/v1/schedules", json=asked, headers=key) for _ in range(2)]
    assert made[0].json() == made[1].json()
    assert made[1].headers["Idempotent-Replayed"] == "true"
    other = client.post("/v1/schedules", json=asked | {"cron": "0 6 * * *"}, headers=key)
    refused(other, 422, "idempotency_key_reused")
    assert client.post("/v1/schedules/validate", json=asked).json() == {"valid": True}
    assert len(client.get("/v1/schedules").json()["data"]) == 1


def test_schedules_are_listed_in_pages(client: httpx.Client, dataset_id: str) -> None:
    ids = [create(client, dataset_id)["id"] for _ in range(3)]
    seen: list[str] = []
    after = None
    while True:
        page = client.get(
            "/v1/schedules", params={"limit": 2} | ({"after": after} if after else {})
        ).json()
        seen += [each["id"] for each in page["data"]]
        if not page["has_more"]:
            break
        after = page["next"]
    assert sorted(seen) == sorted(ids)


def test_a_schedule_of_a_person_keeps_the_groups_that_gave_the_role(
    service: Service, client: httpx.Client, dataset_id: str
) -> None:
    header = token_of(service, rule("trainer"), rule("viewer")).decode()
    asked = {"dataset_id": dataset_id, "cron": CRON}
    made = client.post("/v1/schedules", json=asked, headers={"Authorization": header})
    assert (made.status_code, made.json()["author"]) == (201, "Ann")
    with service.context.db.read() as session:
        row = session.scalars(select(Schedule)).one()
    assert (row.principal_id, row.groups) == ("prn_ann", ["trainers", "viewers"])


def test_a_key_that_was_revoked_no_longer_runs_what_it_created(
    service: Service, client: httpx.Client, dataset_id: str, tmp_path: Path
) -> None:
    db = service.context.db
    key, secret = db.writing(keys.create, OWNER, "short", ["train"])
    made = create(service.client(secret), dataset_id)
    db.writing(keys.revoke, OWNER, key.id)
    with db.write() as session:
        session.execute(update(Schedule).values(due_at=db_now() - 1))
    assert Scheduler(db, service.context.blobs, service.settings).run_due() == 0
    found = client.get(f"/v1/schedules/{made['id']}").json()
    assert (found["paused_reason"], found["next_run_at"]) == ("key_ended", None)
    assert found["last_error"]["code"] == "key_ended"
