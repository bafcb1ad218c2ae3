"""Keys over HTTP: made, shown once, revoked."""

from __future__ import annotations

import httpx

from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import refused
from tests.waiting import eventually


def test_a_key_s_life(service_on_both: Service) -> None:
    service = service_on_both
    admin = service.client(service.key(scopes=["admin"]))
    made = admin.post("/v1/keys", json={"name": "dashboard", "scopes": ["score", "read", "read"]})
    assert made.status_code == 201
    key = made.json()
    secret = key.pop("secret")
    assert secret.startswith(key["prefix"])
    assert len(secret) > 40
    assert (key["owner"], key["scopes"]) == (OWNER, ["read", "score"])
    assert made.headers["Location"] == f"/v1/keys/{key['id']}"
    listed = admin.get("/v1/keys").json()
    assert secret not in admin.get("/v1/keys").text
    assert next(entry for entry in listed["data"] if entry["id"] == key["id"]) == key

    user = service.client(secret)
    assert user.get("/v1/jobs").status_code == 200
    assert user.get("/v1/keys").status_code == 403
    eventually(lambda: admin.get(f"/v1/keys/{key['id']}").json()["last_used_at"])
    assert admin.delete(f"/v1/keys/{key['id']}").status_code == 204
    assert user.get("/v1/jobs").status_code == 401
    assert admin.get(f"/v1/keys/{key['id']}").json()["revoked_at"]
    assert admin.delete(f"/v1/keys/{key['id']}").status_code == 204


def test_the_secret_is_not_kept_for_a_replay(client: httpx.Client) -> None:
    body = {"name": "k", "scopes": ["read"], "expires_in_seconds": 3600}
    first = client.post("/v1/keys", json=body, headers={"Idempotency-Key": "a"}).json()
    again = client.post("/v1/keys", json=body, headers={"Idempotency-Key": "a"})
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first | {"secret": None}
    assert len(client.get("/v1/keys").json()["data"]) == 2
    assert first["expires_at"] > first["created_at"]


def test_checking_only(client: httpx.Client) -> None:
    body = {"name": "k", "scopes": ["read"]}
    assert client.post("/v1/keys/validate", json=body).json() == {"valid": True}
    assert client.post("/v1/keys/validate", json=body | {"scopes": ["x"]}).status_code == 422
    assert len(client.get("/v1/keys").json()["data"]) == 1


def test_figures_of_all_owners_are_the_operator_s(service_on_both: Service) -> None:
    service = service_on_both
    admin = service.client(service.key(scopes=["admin"]))
    operator = service.client(service.key(owner="ops", scopes=["operator"]))
    refused(admin.get("/metrics"), 403, "forbidden", "'operator'", "admin", "owners")
    assert operator.get("/metrics").status_code == 200
    refused(operator.get("/v1/keys"), 403, "forbidden", "'admin'")
    refused(operator.get("/v1/jobs"), 403, "forbidden", "'read'")


def test_of_an_only_owner_an_admin_sees_the_figures(service: Service, client: httpx.Client) -> None:
    admin = service.client(service.key(scopes=["admin"]))
    assert admin.get("/metrics").status_code == 200
    for scope in ("read", "train", "score"):
        refused(service.client(service.key(scopes=[scope])).get("/metrics"), 403, "forbidden")
    key = service.key(owner=STRANGER, scopes=["read"])
    refused(admin.get("/metrics"), 403, "forbidden", "'operator'")
    stranger = service.client(service.key(owner=STRANGER, scopes=["admin"]))
    found = stranger.get("/v1/keys").json()["data"]
    revoked = next(entry["id"] for entry in found if key.startswith(entry["prefix"]))
    assert stranger.delete(f"/v1/keys/{revoked}").status_code == 204
    # What theirs were is still there.
    refused(admin.get("/metrics"), 403, "forbidden", "'operator'")
    assert client.get("/metrics").status_code == 200  # made on the server, with every scope


def test_an_admin_gives_nobody_the_operator_s_scope(service: Service, client: httpx.Client) -> None:
    admin = service.client(service.key(scopes=["admin", "read"]))
    body = {"name": "prometheus", "scopes": ["operator"]}
    for address in ("/v1/keys", "/v1/keys/validate"):
        refused(
            admin.post(address, json=body),
            403,
            "forbidden",
            "'operator'",
        )
    made = client.post("/v1/keys", json=body)
    assert (made.status_code, made.json()["scopes"]) == (201, ["operator"])
    address = f"/v1/keys/{made.json()['id']}"
    refused(admin.post(f"{address}/rotate", json={}), 403, "forbidden", "'operator'")
    rotated = client.post(f"{address}/rotate", json={})
    assert service.client(rotated.json()["secret"]).get("/metrics").status_code == 200
    assert admin.delete(address).status_code == 204  # to end one is an admin's right


def test_rotating_a_key(service_on_both: Service) -> None:
    service = service_on_both
    admin = service.client(service.key(scopes=["admin"]))
    body = {"name": "dashboard", "scopes": ["read", "score"], "expires_in_seconds": 7200}
    first = admin.post("/v1/keys", json=body).json()
    user = service.client(first["secret"])
    assert user.get("/v1/jobs").status_code == 200
    address = f"/v1/keys/{first['id']}/rotate"
    assert admin.post(f"{address}/validate", json={}).json() == {"valid": True}

    headers = {"Idempotency-Key": "monday"}
    answer = admin.post(address, json={"grace_seconds": 600}, headers=headers)
    assert answer.status_code == 201
    second = answer.json()
    same = ("owner", "name", "scopes")
    assert [second[field] for field in same] == [first[field] for field in same]
    assert second["id"] != first["id"]
    assert answer.headers["Location"] == f"/v1/keys/{second['id']}"
    assert second["expires_at"] >= first["expires_at"]  # it has the same time before it
    old = admin.get(f"/v1/keys/{first['id']}").json()
    assert old["expires_at"] < first["expires_at"]
    assert (old["revoked_at"], old["successor_id"]) == (None, second["id"])
    for secret in (first["secret"], second["secret"]):  # the grace
        assert service.client(secret).get("/v1/jobs").status_code == 200
    again = admin.post(address, json={"grace_seconds": 600}, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == second | {"secret": None}
    entry = admin.get("/v1/audit").json()["data"][0]
    assert (entry["action"], entry["path"]) == ("POST /v1/keys/{key_id}/rotate", address)
    assert entry["made"] == [second["id"]]

    refused(admin.post(address, json={}), 409, "key_rotated", second["id"])  # and not a third

    third = admin.post(f"/v1/keys/{second['id']}/rotate", json={}).json()  # no grace
    assert service.client(second["secret"]).get("/v1/jobs").status_code == 401
    assert service.client(third["secret"]).get("/v1/jobs").status_code == 200


def test_rotations_that_are_refused(service: Service, client: httpx.Client) -> None:
    made = client.post("/v1/keys", json={"name": "k", "scopes": ["read"]}).json()
    address = f"/v1/keys/{made['id']}/rotate"
    for grace in (-1, 1e9, "soon", None):
        refused(
            client.post(address, json={"grace_seconds": grace}), 422, "invalid", "grace_seconds"
        )
    refused(client.post("/v1/keys/key_x/rotate", json={}), 404, "not_found")
    stranger = service.client(service.key(owner=STRANGER))
    refused(stranger.post(address, json={}), 404, "not_found")
    client.delete(f"/v1/keys/{made['id']}")
    refused(client.post(address, json={}), 409, "key_not_usable", "revoked")
    assert len(client.get("/v1/keys").json()["data"]) == 2
