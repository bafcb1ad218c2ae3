"""The audit log: every change by a caller has its entry, a refusal has none, owners see their own; and a key's pace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from app.access import authentication
from app.access import service as audit
from app.access import service as keys
from app.http.limits import RateLimiter
from app.platform.callers import Credential
from app.platform.errors import TooMany
from app.platform.settings import Settings
from tests.app.live_service import STRANGER, Service, running
from tests.app.refusals import refused
from tests.raising import raises
from tests.waiting import eventually


def entries(client: httpx.Client) -> list[dict[str, Any]]:
    answer = client.get("/v1/audit")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def test_each_change_is_written_down(service: Service, client: httpx.Client) -> None:
    client.headers.update({"X-Request-ID": "mine-1", "X-Forwarded-For": "203.0.113.9"})
    dataset_id = service.upload(client)
    job = service.train(client, dataset_id, name="m")
    alias = {"model_id": job["output"]["id"]}
    assert client.put("/v1/models/m/aliases/champion", json=alias).status_code == 201
    key = client.post("/v1/keys", json={"name": "n", "scopes": ["read"]}).json()
    assert client.delete(f"/v1/keys/{key['id']}").status_code == 204
    found = [(entry["action"], entry["path"], entry["made"]) for entry in reversed(entries(client))]
    assert found[:2] == [
        ("POST /v1/datasets", "/v1/datasets", found[0][2]),
        ("POST /v1/jobs", "/v1/jobs", [job["id"]]),
    ]
    assert dataset_id in found[0][2]
    assert found[2:] == [
        ("PUT /v1/models/{name}/aliases/{alias}", "/v1/models/m/aliases/champion", []),
        ("POST /v1/keys", "/v1/keys", [key["id"]]),
        ("DELETE /v1/keys/{key_id}", f"/v1/keys/{key['id']}", []),
    ]
    own = client.get("/v1/keys").json()["data"][-1]["id"]
    known = ("request_id", "key_id", "client")
    assert {tuple(entry[name] for name in known) for entry in entries(client)} == {
        ("mine-1", own, "203.0.113.9")
    }


def test_what_changes_nothing_is_not_written_down(service: Service, client: httpx.Client) -> None:
    dataset_id = service.upload(client)
    before = len(entries(client))
    body = {"dataset_id": dataset_id, "algorithm": {"name": "rankboost"}}
    assert client.post("/v1/jobs/validate", json=body).status_code == 200
    assert client.post("/v1/jobs", json=body | {"seed": -1}).status_code == 422
    assert client.post("/v1/jobs", json=body | {"dataset_id": "ds_" + "0" * 32}).status_code == 404
    assert client.get("/v1/jobs").status_code == 200
    assert len(entries(client)) == before
    headers = {"Idempotency-Key": "once"}
    for replayed in (None, "true"):
        answer = client.post("/v1/jobs", json=body, headers=headers)
        assert answer.headers.get("Idempotent-Replayed") == replayed
    assert len(entries(client)) == before + 1


def test_owners_see_their_own(service: Service, client: httpx.Client) -> None:
    service.upload(client)
    stranger = service.client(service.key(STRANGER))
    assert entries(stranger) == []
    reader = service.client(service.key(scopes=["read", "train"]))
    refused(reader.get("/v1/audit"), 403, "forbidden", "'admin'")


def test_pages_and_the_command_line(service: Service, client: httpx.Client) -> None:
    for number in range(3):
        with audit.by_command("ours", f"rankwright keys create {number}"):
            service.context.db.writing(keys.create, "ours", "n", ["read"])
    page = client.get("/v1/audit?limit=2").json()
    assert [entry["action"][-1] for entry in page["data"]] == ["2", "1"]
    assert {entry["key_id"] for entry in page["data"]} == {None}
    last = client.get("/v1/audit", params={"after": page["next"]}).json()
    assert [entry["action"][-1] for entry in last["data"]] == ["0"]
    refused(client.get("/v1/audit?after=x"), 422, "invalid_cursor", "after")
    export = {"Accept": "application/x-ndjson"}
    for digits in ("0" * 5_000, "9" * 5_000, "9" * 19):
        answer = client.get(f"/v1/audit?after={digits}", headers=export)
        refused(answer, 422, "invalid_cursor", "after")
    assert client.get(f"/v1/audit?after={2**63 - 1}", headers=export).content == b""


def test_a_change_that_fails_leaves_no_entry(service: Service, client: httpx.Client) -> None:
    """Entry and change are one transaction."""

    def fail() -> None:
        with audit.by_command("ours", "a command"), service.context.db.write() as session:
            keys.create(session, "ours", "n", ["read"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert entries(client) == []


def test_a_key_that_asks_too_fast() -> None:
    now = 0.0
    pace = RateLimiter(2.0, 3, "a rule", "rate_limited", lambda: now)
    for _ in range(3):
        pace.take("one")
    with pytest.raises(TooMany) as caught:
        pace.take("one")
    assert (caught.value.code, caught.value.headers["Retry-After"]) == ("rate_limited", "1")
    pace.take("other")
    now = 0.5
    pace.take("one")
    with pytest.raises(TooMany):
        pace.take("one")
    now = 100.0
    for _ in range(3):
        pace.take("one")
    with pytest.raises(TooMany):
        pace.take("one")


def test_what_cost_nothing_is_given_back_and_buckets_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pace = RateLimiter(0.001, 1, "limit-1", "rate_limited", lambda: 0.0)
    pace.give_back("one")  # it has no bucket, and gets none
    for _ in range(3):
        pace.take("one")
        pace.give_back("one")
    pace.take("one")
    with raises(TooMany, "limit-1"):
        pace.take("one")
    monkeypatch.setattr("app.http.limits.MAX_BUCKETS", 5)
    for i in range(3):
        pace.take(str(i))
    with pytest.raises(TooMany):
        pace.take("0")
    # Names that are made up do not make it forget one that has used up its tokens.
    pace = RateLimiter(0.001, 2, "one at once", "rate_limited", lambda: 0.0)
    for name in ("one", "one", *map(str, range(50))):
        pace.take(name)
    with pytest.raises(TooMany):
        pace.take("one")


def test_unknown_keys_cost_little_and_their_address_alone(settings: Settings) -> None:
    """The limit is per address: valid keys, met or not, ended keys and other addresses are not limited."""
    with running(settings.model_copy(update={"max_unknown_keys": 3})) as service:
        known, new = (service.client(service.key()) for _ in range(2))
        assert known.get("/v1/jobs").status_code == 200
        lookups: list[object] = []
        together: list[object] = []

        def note(*asked: object) -> None:
            if "api_keys.sha256 = " in str(asked[2]):
                lookups.append(asked)
            elif "api_keys.sha256 IN " in str(asked[2]):
                together.append(asked)

        event.listen(service.context.db.engine, "before_cursor_execute", note)
        guess = service.client("rw_guess")
        for _ in range(10):
            refused(guess.get("/v1/jobs"), 401, "unauthenticated")
        assert len(lookups) == 1
        for i in range(2):
            assert service.client(f"rw_{i}").get("/v1/models/m/score").status_code == 401
        for path in ("/v1/jobs", "/v1/models/m/score"):
            answer = service.client(f"rw_another{path}").get(path)
            refused(answer, 429, "too_many_unknown_keys")
            assert 1 <= int(answer.headers["Retry-After"]) <= 20
        assert guess.get("/v1/jobs").status_code == 401
        assert (len(lookups), len(together)) == (3, 2)
        service.app.state.authenticator.known.recent.clear()  # as after a second
        assert known.get("/v1/jobs").status_code == 200
        assert new.get("/v1/jobs").status_code == 200  # callers behind a proxy share an address
        elsewhere = {"X-Forwarded-For": "2001:db8::1"}  # as a proxy on this machine says
        assert new.get("/v1/jobs", headers=elsewhere).status_code == 200
        neighbour = {"X-Forwarded-For": "2001:db8::2"}  # of the same network
        answers = [
            service.client(f"rw_six{i}", **neighbour).get("/v1/jobs").status_code for i in range(4)
        ]
        assert answers == [401, 401, 401, 429]
        last = service.client(service.key(), **elsewhere)
        assert last.get("/v1/jobs").status_code == 200
        assert (
            service.client(service.key(), **{"X-Forwarded-For": "10.0.0.1"})
            .get("/v1/jobs")
            .status_code
            == 200
        )


def test_an_upload_under_way_does_not_feel_unknown_keys_of_its_address(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even after so many other keys that its own was forgotten."""
    with running(settings.model_copy(update={"max_unknown_keys": 1})) as service:
        context = service.context
        known = service.app.state.authenticator.known

        def slow() -> Iterator[bytes]:
            yield b"age,left\n"
            eventually(lambda: context.uploads.taken)
            known.recent.clear()
            with monkeypatch.context() as patch:
                patch.setattr(authentication, "MAX_NOTED", 1)
                assert service.client(other).get("/v1/jobs").status_code == 200
            assert not known.was_good(Credential.of("key", secret))
            assert service.client("rw_guess").get("/v1/jobs").status_code == 401
            assert service.client("rw_other").get("/v1/jobs").status_code == 429
            yield b"1,yes\n2,no\n"

        secret, other = service.key(), service.key()
        client = service.client(secret)
        answer = client.post(
            "/v1/datasets?label=left", content=slow(), headers={"Content-Type": "text/csv"}
        )
        assert answer.status_code == 202, answer.text


def test_a_paced_service_says_when_to_come_back(settings: Settings) -> None:
    paced = {"rate_per_second": 0.01, "rate_burst": 2}
    with running(settings.model_copy(update=paced)) as service:
        client, other = (service.client(service.key()) for _ in range(2))
        assert [client.get("/v1/jobs").status_code for _ in range(2)] == [200, 200]
        answer = client.get("/v1/jobs")
        refused(answer, 429, "rate_limited", 0.01, 2)
        assert 90 <= int(answer.headers["Retry-After"]) <= 100
        assert other.get("/v1/jobs").status_code == 200
        assert client.get("/health/live").status_code == 200


def test_the_log_is_searched(service_on_both: Service) -> None:
    service = service_on_both
    client = service.client(service.key())
    own = client.get("/v1/keys").json()["data"][0]["id"]
    dataset_id = service.upload(client)
    other = client.post("/v1/keys", json={"name": "n", "scopes": ["admin"]}).json()
    assert service.client(other["secret"]).delete(f"/v1/keys/{other['id']}").status_code == 204
    with audit.by_command("ours", "rankwright keys create"):
        service.context.db.writing(keys.create, "ours", "n", ["read"])

    def found(**query: str) -> list[str]:
        answer = client.get("/v1/audit", params=query)
        assert answer.status_code == 200, answer.text
        return [each["action"] for each in answer.json()["data"]]

    everything = found()
    assert found(key_id=own) == ["POST /v1/keys", "POST /v1/datasets"]
    assert found(key_id=other["id"]) == ["DELETE /v1/keys/{key_id}"]
    assert found(key_id="") == everything[:1] == ["rankwright keys create"]
    assert found(action="delete") == ["DELETE /v1/keys/{key_id}"]
    assert found(action="%") == []
    assert found(resource=dataset_id) == ["POST /v1/datasets"]
    assert found(resource=other["id"]) == ["DELETE /v1/keys/{key_id}", "POST /v1/keys"]
    middle = client.get("/v1/audit").json()["data"][1]["created_at"]
    assert found(created_after=middle) == everything[:2]
    assert found(created_before=middle) == everything[2:]
    assert found(key_id=own, action="keys", created_before="2020-01-01T00:00:00Z") == []
    stranger = service.client(service.key(STRANGER))
    assert stranger.get("/v1/audit", params={"resource": dataset_id}).json()["data"] == []

    for query, words in (
        ({"action": ""}, "action"),
        ({"action": "x" * 256}, "action"),
        ({"resource": ""}, "resource"),
        ({"key_id": "x" * 256}, "key_id"),
        ({"created_after": "yesterday"}, "created_after"),
        ({"actor": "x"}, "actor"),
    ):
        answer = client.get("/v1/audit", params=query)
        assert (answer.status_code, words in answer.text) == (422, True), query
