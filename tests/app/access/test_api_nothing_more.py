"""At the reserve of the disk, or over the quota of bytes: no route stores anything more, whatever a request makes; what
frees space, signs in, scores, rotates a key or moves an alias goes on.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from sqlalchemy import event, func, select

from app.access import quotas, repository, usage
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.sql import Base, Session
from tests.app.feedback.recording import raise_alarm
from tests.app.live_service import NAMES, OWNER, STRANGER, Service, table
from tests.app.refusals import refused
from tests.app.sources import make_refreshable
from tests.long_form import long_form, rest

ROW = dict.fromkeys(NAMES, 0.25)
CSV = {"Content-Type": "text/csv"}
ROLES = {"label": "left", "positive": "yes"}
MEMO = {"reason": "x" * 1000}
# They read, whatever their method: rows in, scores out.
SCORING = ("/score", "/rank", "/explain", "/points", "/letters", "/preview")
ALLOWED = (
    "/cancel",
    "/rotate",
    "/aliases/{alias}/restore",
    "/calibration/restore",
    "/erasures",
    "/feedback",
    "/quotas/{owner}",
    "/v1/alias-requests",
    "/approve",
    "/reject",
    "/withdraw",
    "/break-glass",
    "/retention/{owner}",
    "/holds",
    "/holds/{hold_id}/release",
)
NOTHING_MORE = {
    "507": ({"min_free_bytes": 1 << 62}, 507, "out_of_space"),
    "429": ({"quota_bytes": 1}, 429, "quota_exceeded"),
}


class World:
    """A service with one of everything, and for each route that stores something a request that is accepted."""

    def __init__(self, service: Service, folder: Path) -> None:
        self.service = service
        self.client = client = service.client(service.key())
        dataset_id, later = service.upload(client), service.upload(client, table(seed=1))
        model_id, other_id = (
            service.train(client, dataset_id, seed=seed)["output"]["id"] for seed in (1, 2)
        )
        cancelled = client.post("/v1/jobs", json=self.job(dataset_id)).json()["id"]
        assert client.post(f"/v1/jobs/{cancelled}/cancel").is_success
        upload_id, closing_id = (
            client.post("/v1/uploads", params=ROLES).json()["id"] for _ in range(2)
        )
        part = f"/v1/uploads/{closing_id}/parts/1"
        assert client.put(part, content=table().encode(), headers=CSV).is_success
        items = client.post(
            "/v1/datasets",
            params={"kind": "preferences", "item": "who"},
            content=b"who,age\na,1\nb,2\n",
            headers=CSV,
        )
        service.work()
        trashed_id = service.upload(client, name="trashed")
        assert client.delete(f"/v1/datasets/{trashed_id}").is_success
        kept = client.put("/v1/models/churn/aliases/kept", json={"model_id": other_id})
        assert client.put("/v1/models/churn/aliases/kept/feedback", json={}).is_success
        evaluated = client.post("/v1/evaluations", json={"model": model_id, "dataset_id": later})
        service.work()
        key_id = client.post("/v1/keys", json={"name": "other", "scopes": ["read"]}).json()["id"]
        sourced_id = service.upload(client, name="sourced")
        make_refreshable(service, sourced_id, folder)
        self.ids = {
            "dataset_id": dataset_id,
            "sourced_id": sourced_id,
            "items_id": items.json()["id"],
            "upload_id": upload_id,
            "closing_id": closing_id,
            "trashed_id": trashed_id,
            "job_id": cancelled,
            "ref": model_id,
            "other": other_id,
            "name": "churn",
            "key_id": key_id,
            "number": "2",
            "alias": "live",
            "kept": "kept",
            "evaluation_id": evaluated.json()["id"],
            "alarm_id": raise_alarm(service, "kept"),
            "list": "models",
        }
        schedule = {"dataset_id": sourced_id, "cron": "0 5 * * *"}
        self.ids["schedule_id"] = client.post("/v1/schedules", json=schedule).json()["id"]
        hook = client.post("/v1/webhooks", json={"url": "https://example.com/"}).json()
        self.ids["webhook_id"] = hook["id"]
        ping = client.post(f"/v1/webhooks/{hook['id']}/ping").json()
        self.ids["event_id"] = ping["event_id"]
        on = {"dataset_id": later}
        of_table = {"params": ROLES, "content": table().encode(), "headers": CSV}
        self.bodies: dict[str, dict[str, Any]] = {
            "POST /v1/datasets": of_table,
            "POST /v1/datasets/{dataset_id}/versions": of_table | {"params": {}},
            "POST /v1/datasets/{dataset_id}/read": {"json": {}},
            "POST /v1/datasets/{sourced_id}/refresh": {},
            "PUT /v1/datasets/{items_id}/pairs": {
                "content": b"better,worse\na,b\n",
                "headers": CSV,
            },
            "POST /v1/uploads": {"params": ROLES},
            "PUT /v1/uploads/{upload_id}/parts/{number}": of_table | {"params": {}},
            "POST /v1/uploads/{upload_id}/files": {"json": {"path": "more.csv"}},
            "POST /v1/uploads/{closing_id}/close": {"json": {"parts": 1}},
            "POST /v1/jobs": {"json": self.job(dataset_id)},
            "POST /v1/jobs/{job_id}/retry": {},
            "PUT /v1/models/{name}/aliases/{alias}": {"json": {"model_id": model_id, "memo": MEMO}},
            "PUT /v1/models/{name}/aliases/{kept}/protection": {
                "json": {"protected": True},
                "headers": {"If-Match": kept.headers["ETag"]},
            },
            "POST /v1/decisions": {
                "params": {"model": "churn@kept"},
                "content": f"id,at,score,{','.join(NAMES)}\nc1,2026-11-01,0.5,1,2,3\n".encode(),
                "headers": CSV,
            },
            "POST /v1/outcomes": {
                "json": {"rows": [{"id": "c1", "label": True, "event_at": "2026-11-02"}]}
            },
            "PUT /v1/models/{name}/reason-codes": {
                "json": {"entries": [{"code": "R1", "text": "age", "columns": [NAMES[0]]}]}
            },
            "PUT /v1/models/{ref}/calibration": {"json": on},
            "POST /v1/models/{ref}/comments": {"json": {"text": "a comment"}},
            "PUT /v1/evaluations/{evaluation_id}/acknowledgement": {"json": {"reason": "seen"}},
            "POST /v1/alarms/{alarm_id}/acknowledge": {
                "json": {"reason": "seen", "reference": "keep"}
            },
            "POST /v1/evaluations": {"json": {"model": model_id} | on},
            "POST /v1/comparisons": {"json": {"models": [model_id, other_id]} | on},
            "POST /v1/models": {"params": {"name": "given"} | on, "content": b"tree"},
            "POST /v1/batch-scores": {"json": {"model": model_id} | on},
            "POST /v1/trash/{trashed_id}/restore": {},
            "POST /v1/keys": {"json": {"name": "more", "scopes": ["read"]}},
            "POST /v1/schedules": {"json": schedule},
            "PATCH /v1/schedules/{schedule_id}": {"json": {"cron": "0 6 * * *"}},
            "POST /v1/webhooks": {"json": {"url": "https://example.com/"}},
            "PATCH /v1/webhooks/{webhook_id}": {"json": {"description": "pages us"}},
            "POST /v1/webhooks/{webhook_id}/ping": {},
            "POST /v1/webhooks/{webhook_id}/deliveries/{event_id}/replay": {},
        }

    @staticmethod
    def job(dataset_id: str) -> dict[str, Any]:
        return {"dataset_id": dataset_id, "algorithm": {"name": "rankboost", "n_rounds": 2}}

    def ask(self, operation: str) -> httpx.Response:
        method, path = operation.split()
        return self.client.request(method, path.format_map(self.ids), **self.bodies[operation])


def storing(client: httpx.Client) -> Iterator[str]:
    """Every operation of the API that stores something and is refused over the quota."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in methods.keys() & {"post", "put", "patch"}:
            if not path.endswith((*SCORING, *ALLOWED, "/validate")):
                yield f"{method.upper()} {path}"


@pytest.fixture
def world(service: Service, tmp_path: Path) -> Iterator[World]:
    (tmp_path / OWNER).mkdir()
    (tmp_path / OWNER / "more.csv").write_text(table())
    with service.setting(files_dir=tmp_path):
        yield World(service, tmp_path)


def count_every_row(patch: pytest.MonkeyPatch) -> None:
    """Count also the first rows of an owner, and measure for every request."""
    patch.setattr(quotas, "FREE_ROW_BYTES", 0)
    patch.setattr(usage, "ROWS_KNOWN_SECONDS", 0.0)
    patch.setattr(usage, "ROWS_KNOWN_FACTOR", 0.0)


def rows(service: Service) -> dict[str, int]:
    tables = Base.metadata.sorted_tables
    with service.context.db.read() as session:
        return {
            each.name: session.scalar(select(func.count()).select_from(each)) or 0
            for each in tables
        }


def test_every_route_that_stores_is_refused(world: World) -> None:
    same = {
        "items_id": "dataset_id",
        "sourced_id": "dataset_id",
        "closing_id": "upload_id",
        "trashed_id": "item_id",
        "kept": "alias",
    }
    named = {re.sub("|".join(same), lambda id_: same[id_[0]], each) for each in world.bodies}
    assert set(storing(world.client)) == named
    before = rows(world.service)
    for limits, status, code in NOTHING_MORE.values():
        with (
            world.service.setting(**limits),
            pytest.MonkeyPatch.context() as patch,
        ):
            count_every_row(patch)
            for operation in world.bodies:
                refused(world.ask(operation), status, code)
            key = {"name": "more", "scopes": ["read"]}
            refused(world.client.post("/v1/keys/validate", json=key), status, code)
            rotation = f"/v1/keys/{world.ids['key_id']}/rotate/validate"
            assert world.client.post(rotation, json={}).json() == {"valid": True}
    assert rows(world.service) == before
    for operation in world.bodies:
        accepted = world.ask(operation)
        assert accepted.is_success, (operation, accepted.text)


@long_form
def test_requests_that_store_nothing_do_not_measure_the_owners_usage(world: World) -> None:
    def away(*_: object) -> NoReturn:
        raise Unavailable("the database is unavailable")

    client, ids = world.client, world.ids
    model = f"/v1/models/{ids['ref']}"
    infer = {
        "inputs": [
            {"name": name, "shape": [1], "datatype": "FP64", "data": [0.25]} for name in NAMES
        ]
    }
    with world.service.setting(quota_bytes=1 << 40), pytest.MonkeyPatch.context() as patch:
        count_every_row(patch)
        patch.setattr(repository, "row_bytes", away)
        patch.setattr(repository, "stored_bytes", away)
        for path, body in {
            f"{model}/score": {"rows": [ROW]},
            f"{model}/rank": {"rows": [ROW, ROW]},
            f"{model}/explain": {"rows": [ROW]},
            f"/oip/v2/models/{ids['ref']}/infer": infer,
        }.items():
            answer = client.post(path, json=body)
            assert answer.status_code == 200, (path, answer.text)
        refused(client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}), 503, "unavailable")


@long_form
def test_the_sum_of_files_is_not_taken_again_for_each_change(world: World) -> None:
    """Only what adds files sums them in its transaction, once: SQLite has a single writer."""
    sums: list[str] = []
    stored_bytes = repository.stored_bytes

    def count(session: Session, owner: str) -> int:
        sums.append(owner)
        return stored_bytes(session, owner)

    with world.service.setting(quota_bytes=1 << 40), pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage, "ROWS_KNOWN_SECONDS", 3600.0)
        cache = usage.UsageCache(world.service.context.db.reading, world.service.settings)
        patch.setattr(world.service.app.state.authenticator, "usage", cache)
        patch.setattr(repository, "stored_bytes", count)
        for operation, most in {
            "POST /v1/keys": 1,  # the measurement of the owner's usage
            "PUT /v1/models/{name}/aliases/{alias}": 0,
            "POST /v1/jobs": 1,
        }.items():
            sums.clear()
            assert world.ask(operation).is_success
            assert len(sums) <= most, operation


@pytest.mark.parametrize("limit", ["429", *rest("507")])
def test_what_must_work_then_is_allowed(world: World, limit: str) -> None:
    service, client, ids = world.service, world.client, world.ids
    queued = client.post("/v1/jobs", json=world.job(ids["dataset_id"])).json()["id"]
    alias = f"/v1/models/churn/aliases/{ids['alias']}"
    first = client.put(alias, json={"model_id": ids["ref"]})
    moved = client.put(
        alias, json={"model_id": ids["other"]}, headers={"If-Match": first.headers["ETag"]}
    )
    limits, status, code = NOTHING_MORE[limit]
    with service.setting(**limits), pytest.MonkeyPatch.context() as patch:
        count_every_row(patch)
        assert client.post(f"/v1/models/{ids['ref']}/score", json={"rows": [ROW]}).is_success
        assert client.get(f"/v1/models/{ids['ref']}/score", params=ROW).is_success
        browser = service.client()
        answer = browser.post("/console/sign-in", data={"key": service.key(STRANGER)})
        assert answer.status_code == 303
        page = browser.get("/console", headers={"Cookie": answer.headers["Set-Cookie"]})
        assert page.is_success
        rotated = client.post(f"/v1/keys/{ids['key_id']}/rotate", json={})
        assert rotated.status_code == 201
        tag = {"If-Match": moved.headers["ETag"]}
        # It would store evidence.
        refused(client.put(alias, json={"model_id": ids["ref"]}, headers=tag), status, code)
        back = client.post(f"{alias}/restore", json={"revision": 1, "reason": "bad"}, headers=tag)
        assert (back.status_code, back.json()["model_id"]) == (200, ids["ref"])
        etag = back.headers["ETag"]
        refused(client.put(f"{alias}2", json={"model_id": ids["ref"]}), status, code)
        for answer in (
            client.post(f"/v1/jobs/{queued}/cancel"),
            client.delete(alias, headers={"If-Match": etag}),
            client.delete(f"/v1/uploads/{ids['upload_id']}"),
            client.delete(f"/v1/models/{ids['ref']}"),
            client.delete(f"/v1/trash/{ids['ref']}"),
            client.delete(f"/v1/keys/{rotated.json()['id']}"),
        ):
            assert answer.is_success, (answer.request.url, answer.text)


@long_form
def test_rows_count_against_the_quota(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    model_id = service.train(client, service.upload(client))["output"]["id"]
    db = service.context.db

    def used() -> int:
        rows = db.reading(repository.row_bytes, OWNER)
        return rows + db.reading(repository.stored_bytes, OWNER)

    # Text that compression does not make smaller.
    texts = [random.Random(n).randbytes(450).hex() for n in range(40)]
    room = 20_000
    limit = used() + room
    with service.setting(quota_bytes=limit), pytest.MonkeyPatch.context() as patch:
        count_every_row(patch)
        made = 0
        comments = f"/v1/models/{model_id}/comments"
        for text in texts:
            answer = client.post(comments, json={"text": text})
            if not answer.is_success:
                break
            made += 1
        refused(answer, 429, "quota_exceeded")
        assert abs(limit - used()) < 4000
        assert made >= 5
        other = service.client(service.key(STRANGER))
        key = {"name": "k", "scopes": ["read"]}
        assert other.post("/v1/keys", json=key).is_success
        first = client.get(comments).json()["data"][0]["id"]
        assert client.delete(f"{comments}/{first}").is_success


def test_what_an_owner_cannot_delete_is_not_counted(service: Service) -> None:
    """A job with its events, its Idempotency-Key and entries of the audit log."""
    client = service.client(service.key())
    dataset_id = service.upload(client)

    def used() -> int:
        return service.context.db.reading(repository.row_bytes, OWNER)

    before = used()
    assert before > 0
    for n in range(3):
        key = {"Idempotency-Key": f"key-{n}"}
        job = client.post("/v1/jobs", json=World.job(dataset_id), headers=key).json()
        assert client.post(f"/v1/jobs/{job['id']}/cancel").is_success
        made = client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}, headers=key)
        assert made.is_success
    assert used() == before


def test_every_table_of_which_owners_delete_rows_is_counted(db: Database) -> None:
    asked: list[str] = []
    event.listen(db.engine, "after_cursor_execute", lambda *given: asked.append(given[2]))
    assert db.reading(repository.row_bytes, OWNER) == 0
    of_service = {"blob_holds", "blobs", "last_successes", "principals", "pruned_jobs", "workers"}
    of_service |= {"audit_seals", "audit_start"}
    not_deletable = {
        "alarms",
        "alias_feedback",
        "alias_requests",
        "api_keys",
        "audit_entries",
        "break_glass",
        "browser_sessions",
        "deliveries",
        "delivery_attempts",
        "erasures",
        "events",
        "idempotency",
        "job_events",
        "jobs",
        "legal_holds",
        "model_alias_history",
        "monitor_tests",
        "quotas",
        "retention_rules",
    }
    counted = set(re.findall(r"FROM (\w+)", " ".join(asked)))
    assert {
        each.name for each in Base.metadata.sorted_tables
    } - counted == of_service | not_deletable
