"""Reads and denials in the audit log, and its export: each route decides whether it is recorded, a download begins
after its entry, an attacker fills nothing, and a cursor passes no entry.
"""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import pytest
from sqlalchemy import insert
from starlette.routing import Route

from app.access import denials
from app.access import endpoints as audit_endpoints
from app.access.denials import DenialLog
from app.console.words import CHANGES
from app.operations import seal_repository
from app.platform import audit
from app.platform.audit_keys import AuditKeys
from app.platform.callers import Caller
from app.platform.database import Database
from app.platform.errors import Unavailable
from app.platform.settings import Settings
from app.platform.tables import AuditEntry
from tests.app.live_service import OWNER, STRANGER, Service, running
from tests.app.refusals import refused
from tests.waiting import eventually

NDJSON = {"Accept": "application/x-ndjson"}


def entries(client: httpx.Client, **query: str) -> list[dict[str, Any]]:
    answer = client.get("/v1/audit", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def seal(db: Database) -> None:
    while db.writing(seal_repository.seal_some, AuditKeys()):
        pass


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


# --- reads ----------------------------------------------------------------------------------------


def test_a_read_has_its_entry(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key(name="analyst"))
    dataset_id = service.upload(client)
    model_id = service.train(client, dataset_id)["output"]["id"]
    artifact = f"/v1/models/{model_id}/artifact"
    assert client.get(f"/v1/datasets/{dataset_id}/preview").status_code == 200
    assert client.get(artifact, headers={"X-Request-ID": "mine"}).status_code == 200
    assert client.get(artifact, headers={"Range": "bytes=0-9"}).status_code == 206
    assert client.get("/v1/models/mdl_unknown/artifact").status_code == 404
    assert client.get("/v1/models").status_code == 200
    found = entries(client, outcome="read")
    assert [(each["action"], each["path"]) for each in found] == [
        ("GET /v1/models/{ref}/artifact", artifact),
        ("GET /v1/models/{ref}/artifact", artifact),
        ("GET /v1/datasets/{dataset_id}/preview", f"/v1/datasets/{dataset_id}/preview"),
    ]
    assert {(each["author"], each["made"] == [], each["position"]) for each in found} == {
        ("analyst", True, None)
    }
    assert found[1]["request_id"] == "mine"


def test_a_check_that_shows_stored_rows_has_its_entry(service: Service) -> None:
    """`POST …/validate` of a stored table returns its first rows; one that stores nothing is a read all the same."""
    client = service.client(service.key(name="analyst"))
    dataset_id = service.upload(client)
    again = f"/v1/datasets/{dataset_id}/read/validate"
    shown = client.post(again, json={"drop": None})
    assert (shown.status_code, shown.json()["preview"]["data"] != []) == (200, True)
    assert client.post(again, json={"label": "nowhere"}).status_code == 422
    found = [(each["action"], each["path"]) for each in entries(client, outcome="read")]
    assert found == [("POST /v1/datasets/{dataset_id}/read/validate", again)]


def test_a_download_without_an_entry_does_not_begin(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_id = service.train(client, service.upload(client))["output"]["id"]

    def fail(*_: object) -> None:
        raise Unavailable("the database is unavailable", code="database_unavailable")

    monkeypatch.setattr(audit, "record", fail)
    answer = client.get(f"/v1/models/{model_id}/artifact")
    refused(answer, 503, "database_unavailable", "unavailable")
    assert "content-disposition" not in answer.headers


def test_a_page_of_the_console_reads_in_its_person_s_name(service: Service) -> None:
    secret = service.key()
    client = service.client(secret)
    dataset_id = service.upload(client)
    browser = service.client()
    assert browser.post("/console/sign-in", data={"key": secret}).status_code == 303
    assert browser.get(f"/console/datasets/{dataset_id}").status_code == 200
    found = entries(client, outcome="read")
    assert {each["path"] for each in found} == {f"/v1/datasets/{dataset_id}/preview"}


# --- denials --------------------------------------------------------------------------------------


def test_a_denied_request_has_its_entry(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    reader = service.client(service.key(scopes=["read"], name="reader"), **{"X-Request-ID": "no"})
    refused(reader.get("/v1/audit"), 403, "forbidden", "admin")
    refused(reader.delete("/v1/models/m"), 403, "forbidden", "train")
    refused(reader.get("/v1/me", headers={"Rankwright-Owner": STRANGER}), 403, "forbidden", "Owner")
    assert reader.get("/v1/models/m").status_code == 404
    service.app.state.denials.write()
    found = sorted(entries(client, outcome="denied"), key=lambda each: each["action"])
    assert [(each["action"], each["path"], each["author"]) for each in found] == [
        ("DELETE /v1/models/{ref}", "/v1/models/m", "reader"),
        ("GET /v1/audit", "/v1/audit", "reader"),
        ("GET /v1/me", "/v1/me", "reader"),
    ]
    assert {(each["request_id"], each["client"]) for each in found} == {("no", "127.0.0.1")}
    assert "'train'" in found[0]["summary"]
    by_name = entries(client, principal="read", outcome="denied")
    by_id = entries(client, principal=found[0]["principal_id"])
    assert by_name == by_id == entries(client, outcome="denied")
    assert entries(client, principal="nobody") == []


def test_a_form_of_another_page_has_its_entry(service: Service) -> None:
    secret = service.key()
    browser = service.client()
    assert browser.post("/console/sign-in", data={"key": secret}).status_code == 303
    assert browser.post("/console/sign-out", data={"csrf": "0" * 128}).status_code == 403
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert browser.post("/console/sign-out", headers=cross).status_code == 403
    service.app.state.denials.write()
    found = entries(service.client(secret), outcome="denied")
    assert [each["action"] for each in found] == ["POST /console/sign-out"] * 2


def test_what_an_attacker_causes_is_bounded(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(denials, "MAX_OF_PRINCIPAL", 3)
    monkeypatch.setattr(denials, "MAX_ADDRESSES", 2)
    with running(settings) as service:
        client = service.client(service.key())
        reader = service.client(service.key(scopes=["read"]))
        for _ in range(10):
            assert reader.get("/v1/audit").status_code == 403
        for number in range(4):
            headers = {"X-Forwarded-For": f"203.0.113.{number}"}
            for _ in range(2):
                assert service.client(**headers).get("/v1/jobs").status_code == 401
        assert client.get("/v1/jobs").status_code == 200  # a denial is noted after its response
        service.app.state.denials.close()  # writes what waits and what was counted
        assert len(entries(client, outcome="denied")) == 4
        (more,) = entries(client, action="denied requests")
        assert "7 more requests" in more["summary"]
        failed = entries(client, of_service="true")
        assert {each["author"] for each in failed} == {None}
        assert sorted((each["client"] or "", each["summary"][:10]) for each in failed) == [
            ("", "4 requests"),
            ("203.0.113.0", "2 requests"),
            ("203.0.113.1", "2 requests"),
        ]
        service.context.db.writing(audit.record_of_service, "x", audit.Outcome.READ, None)
        stranger = service.client(service.key(STRANGER, scopes=["read", "admin"]))
        assert entries(stranger) == []
        refused(stranger.get("/v1/audit?of_service=true"), 403, "forbidden", "operator")


def test_an_outage_loses_a_counted_number(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(denials, "MAX_WAITING", 2)
    down = True

    def writing(*given: Any, **named: Any) -> Any:
        if down:
            raise Unavailable("the database is unavailable")
        return db.writing(*given, **named)

    log = DenialLog(writing)
    caller = Caller(OWNER, frozenset({"read"}), "prn_1", name="r", key_id="key_1")
    for _ in range(5):
        scope = {"caller": caller, "path": "/v1/x\ud800", "headers": [], "client": ("10.0.0.1", 1)}
        log.note(scope, "GET", 403)
    for status in (401, 429):
        log.note({"path": "/", "client": None, "error_code": "rate_limited"}, "GET", status)
    with pytest.raises(Unavailable):
        log.write()
    down = False
    log.write()
    with db.read() as session:
        ours = audit.list_page(session, OWNER, limit=10, after=None).data
        others = audit.list_page(session, AuditEntry.SERVICE, limit=10, after=None).data
    assert len(ours) == 2
    assert [(each.action, each.summary[:1] if each.summary else None) for each in others] == [
        ("lost entries", "3")
    ]


# --- export ---------------------------------------------------------------------------------------


def test_an_export_continues_after_a_cursor(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    assert lines(client.get("/v1/audit", headers=NDJSON)) == []
    for name in ("a", "b", "c"):
        body = {"name": name, "scopes": ["read"]}
        assert client.post("/v1/keys", json=body).status_code == 201
    assert (
        service.client(service.key(STRANGER))
        .post("/v1/keys", json={"name": "theirs", "scopes": ["read"]})
        .is_success
    )
    assert lines(client.get("/v1/audit", headers=NDJSON)) == []  # nothing is sealed yet
    seal(service.context.db)
    found = lines(client.get("/v1/audit", headers=NDJSON))
    listed = entries(client, action="keys")
    assert found == listed[::-1]
    places = [each["position"] for each in found]
    assert places == sorted(places)
    rest = lines(client.get("/v1/audit", params={"after": str(places[0])}, headers=NDJSON))
    assert rest == found[1:]
    # An export is a read; one of nothing but exports is not, or a system that follows would never come to an end.
    assert len(entries(client, outcome="read")) == 2
    seal(service.context.db)
    (polled, again) = (
        lines(client.get("/v1/audit", params={"after": str(places[-1])}, headers=NDJSON))
        for _ in range(2)
    )
    assert {each["action"] for each in polled} == {"GET /v1/audit"}
    assert again == polled
    assert len(entries(client, outcome="read")) == 2
    only = {"outcome": "read", "created_after": "2020-01-01T00:00:00Z"}
    assert lines(client.get("/v1/audit", params=only, headers=NDJSON)) == polled


@pytest.mark.parametrize(
    "after", ["", "x", "-1", "1.5", "٣", "9" * 19, "9" * 4000, "1 2", "0" * 20 + "9" * 5000]
)
def test_a_cursor_must_be_a_position(client: httpx.Client, after: str) -> None:
    answer = client.get("/v1/audit", params={"after": after}, headers=NDJSON)
    refused(answer, 422, "invalid_cursor", "after")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ({"outcome": "lost"}, "outcome"),
        ({"outcome": ""}, "outcome"),
        ({"principal": ""}, "principal"),
        ({"principal": "x" * 256}, "principal"),
        ({"of_service": "perhaps"}, "of_service"),
    ],
)
def test_filters_are_checked(client: httpx.Client, query: dict[str, str], name: str) -> None:
    for headers in ({}, NDJSON):
        answer = client.get("/v1/audit", params=query, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["parameter"] == name


def test_no_transaction_is_open_while_a_caller_reads(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_endpoints, "EXPORT_PAGE", 100)
    db = service.context.db
    row = {"owner": OWNER, "action": "x" * 4_000, "made": [], "created_at": 1.0}
    with db.write() as session:
        session.execute(insert(AuditEntry), [{"id": f"aud_{n}", **row} for n in range(5_000)])
    seal(db)
    with client.stream("GET", "/v1/audit", headers=NDJSON) as answer:
        pieces = answer.iter_lines()
        first = json.loads(next(pieces))
        assert first["position"] == 1
        eventually(lambda: db.connections_in_use() == 0)
        db.writing(audit.record_of_service, "x", audit.Outcome.READ, None)
        places = [json.loads(line)["position"] for line in pieces]
    assert places == list(range(2, 5_001))


def test_an_export_ends_with_its_key(
    service: Service, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_endpoints, "EXPORT_PAGE", 1_000)
    db = service.context.db
    row = {"owner": OWNER, "action": "x" * 4_000, "made": [], "created_at": 1.0}
    with db.write() as session:
        session.execute(insert(AuditEntry), [{"id": f"aud_{n}", **row} for n in range(20_000)])
    seal(db)
    body = {"name": "siem", "scopes": ["admin"]}
    key = client.post("/v1/keys", json=body).json()
    siem = service.client(key["secret"])
    with siem.stream("GET", "/v1/audit", headers=NDJSON) as answer:
        pieces = answer.iter_lines()
        next(pieces)
        assert client.delete(f"/v1/keys/{key['id']}").status_code == 204
        with pytest.raises(httpx.HTTPError):
            for _ in pieces:
                pass


def test_the_description_names_the_other_form(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]["/v1/audit"]["get"]
    assert set(described["responses"]["200"]["content"]) == {"application/json", *NDJSON.values()}
    refused(
        client.get("/v1/audit", headers={"Accept": "text/csv"}), 406, "not_acceptable", "ndjson"
    )


def test_every_record_of_a_read_is_a_sentence_in_the_console(service: Service) -> None:
    recorded = {
        f"{method} {route.path_format}"
        for route in service.app.routes
        if isinstance(route, Route) and getattr(route.endpoint, "records_reads", False)
        for method in route.methods or ()
    }
    assert recorded | {"GET /v1/audit"} <= CHANGES.keys()
    assert all(re.match(r"[A-Z]", said) for said in CHANGES.values())
