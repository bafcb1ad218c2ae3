"""Every operation of openapi.json × every role, and what a role for some model names cannot change."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.access.authentication import ANY
from app.platform.callers import Caller, Credential
from app.platform.roles import ROLES, Identity, Rule, caller_of
from tests.app.access.test_api_authorisation import Entry, World
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import everything, refused
from tests.long_form import long_form, rest

ISSUER = "https://idp.example"


@pytest.fixture(scope="module")
def world(start: Callable[..., Service], tmp_path_factory: pytest.TempPathFactory) -> World:
    files = tmp_path_factory.mktemp("files")
    for owner in (OWNER, STRANGER):
        (files / owner).mkdir()
        (files / owner / "rows.csv").write_bytes(b"a,b\n1,0\n")
    return World(start(files_dir=files))


def token_of(service: Service, *rules: Rule, owner: str = OWNER) -> bytes:
    """Return the header of a person with these roles, whom the service has just looked up."""
    groups = frozenset(rule.group for rule in rules)
    ann = Identity(ISSUER, "u1", "person", "Ann", groups, None)
    return header_of(service, caller_of(ann, "prn_ann", rules, owner))


def header_of(service: Service, caller: Caller) -> bytes:
    recent = service.app.state.authenticator.known.recent
    recent.seconds = 3600.0
    secret = f"rw_{'-'.join(caller.roles)}-{sorted(caller.models.items())}"
    recent.put(Credential.of("key", secret), caller, time.monotonic())
    return f"Bearer {secret}".encode()


def rule(role: str, *models: str) -> Rule:
    return Rule(ISSUER, f"{role}s", OWNER, role, models or None)


def changes_last(entry: Entry) -> tuple[bool, int]:
    return entry[0] == "DELETE", -entry[1].count("/")


def of_model(world: World, entry: Entry) -> bool:
    found: bool = getattr(world.endpoints[entry], "of_model", False)
    return found


def restricted(world: World) -> list[Entry]:
    """Operations that change something of a model, with a scope of a role that can be restricted to model names."""
    return [
        entry
        for entry in sorted(world.guarded, key=changes_last)
        if entry[0] != "GET" and of_model(world, entry)
    ]


def test_a_role_for_other_models_changes_none_of_these(world: World) -> None:
    trainer = token_of(world.service, rule("trainer", "other-*"), rule("approver", "other-*"))
    before = everything(world.service)
    for entry in restricted(world):
        answer = world.request(entry, trainer)
        assert answer.status_code == 403, (entry, answer.text)
        assert answer.json()["code"] == "model_not_allowed", entry
    assert everything(world.service) == before


@long_form
def test_what_belongs_to_no_model_is_not_restricted(world: World) -> None:
    trainer = token_of(world.service, rule("trainer", "other-*"))
    for entry in world.guarded:
        may = world.stated[entry] in ROLES["trainer"]
        if may and not of_model(world, entry) and entry[0] != "DELETE":
            assert world.request(entry, trainer).status_code != 403, entry


def test_a_role_for_a_model_changes_it(world: World) -> None:
    trainer = token_of(world.service, rule("trainer", "churn"))
    for entry in restricted(world):
        if entry[0] == "PUT" and world.stated[entry] == "train":
            assert world.request(entry, trainer).status_code != 403, entry
    job = {"dataset_id": world.ids["dataset_id"], "algorithm": {"name": "rankboost"}}
    headers = {"Authorization": trainer.decode()}
    made = world.client.post("/v1/jobs", json=job | {"name": "churn"}, headers=headers)
    assert made.status_code == 202
    for other in (job, job | {"name": "churn2"}):  # the first has the name of its algorithm
        refused(
            world.client.post("/v1/jobs", json=other, headers=headers), 403, "model_not_allowed"
        )
    stranger_job = world.client.post(
        "/v1/jobs", json=job, headers={"Authorization": f"Bearer {world.secret}"}
    ).json()["id"]
    for action in ("cancel", "retry"):
        answer = world.client.post(f"/v1/jobs/{stranger_job}/{action}", headers=headers)
        assert answer.status_code in (403, 409), action
    assert world.client.post(f"/v1/jobs/{made.json()['id']}/cancel", headers=headers).is_success


def test_a_role_for_some_models_neither_cancels_nor_retries_an_erasure(world: World) -> None:
    restricted_to_some = {"Authorization": token_of(world.service, rule("trainer", "*")).decode()}
    unrestricted = {"Authorization": token_of(world.service, rule("trainer")).decode()}
    asked = {"id": "nobody", "key_columns": ["no_such_column"]}
    erasure = world.client.post("/v1/erasures", json=asked, headers=unrestricted)
    assert erasure.status_code == 202, erasure.text
    address = f"/v1/jobs/{erasure.json()['job_id']}"
    cancel, retry = f"{address}/cancel", f"{address}/retry"
    refused(world.client.post(cancel, headers=restricted_to_some), 403, "model_not_allowed")
    assert world.client.post(cancel, headers=unrestricted).is_success
    refused(world.client.post(retry, headers=restricted_to_some), 403, "model_not_allowed")
    assert world.client.post(retry, headers=unrestricted).is_success


@pytest.mark.parametrize("role", ["viewer", *rest(*sorted(ROLES.keys() - {"viewer"}))])
def test_each_operation_by_each_role(world: World, role: str) -> None:
    person = token_of(world.service, rule(role))
    for entry in sorted(world.guarded, key=changes_last):
        needed = world.stated[entry]
        answer = world.request(entry, person)
        if needed == ANY or needed in ROLES[role]:
            somebody_else_wrote_it = entry[1].endswith(("/comments/{comment_id}", "/withdraw"))
            assert answer.status_code != 403 or somebody_else_wrote_it, (entry, answer.text)
            assert answer.status_code < 500, entry
        elif needed == "operator" and role == "admin":
            continue  # allowed only while there is one owner
        else:
            assert answer.status_code == 403, entry
            assert repr(needed) in answer.json()["detail"]
            assert role in answer.json()["detail"]


def me(service: Service, header: bytes | str, **headers: str) -> httpx.Response:
    return service.client().get(
        "/v1/me",
        headers={"Authorization": header if isinstance(header, str) else header.decode()} | headers,
    )


def test_who_the_caller_is(world: World) -> None:
    service = world.service
    found = me(service, f"Bearer {service.key(scopes=['score'], name='nightly')}").json()
    assert (found["kind"], found["name"], found["owner"]) == ("key", "nightly", OWNER)
    assert (found["roles"], found["scopes"], found["models"]) == ([], ["score"], {})
    assert found["key_id"].startswith("key_")
    found = me(service, token_of(service, rule("trainer", "a-*"))).json()
    assert (found["kind"], found["name"], found["key_id"]) == ("person", "Ann", None)
    assert (found["roles"], found["models"]) == (
        ["trainer"],
        {"score": ["a-*"], "train": ["a-*"]},
    )
    assert found["scopes"] == ["read", "train", "score"]


@pytest.mark.parametrize("path", ["/v1/me", "/v1/models/churn/score?age=1"])
def test_a_key_is_not_used_for_another_owner(world: World, path: str) -> None:
    client = world.service.client(world.service.key())
    for name in (STRANGER, "", "none\xe9"):
        headers = {"Rankwright-Owner": name.encode("latin-1")}
        refused(client.get(path, headers=headers), 403, "forbidden")  # type: ignore[arg-type]
    assert client.get(path, headers={"rankwright-owner": OWNER}).status_code != 403
    twice = [("Rankwright-Owner", OWNER), ("Rankwright-Owner", OWNER)]
    refused(client.get(path, headers=twice), 400, "malformed")


def test_nobody_but_an_owner_of_all_models_makes_keys(world: World) -> None:
    """A key has no restriction to models, so that whoever is restricted must not create one."""
    person = token_of(world.service, rule("trainer", "other-*"), rule("approver"))
    answer = world.request(("POST", "/v1/keys"), person)
    assert answer.status_code == 403


def test_the_documented_table_is_the_rule_table() -> None:
    page = (
        (Path(__file__).parents[3] / "docs" / "roles.md").read_text().partition("## Model names")[0]
    )
    for role, scopes in ROLES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{role}` |")]
        assert {each.strip(" `") for each in row.split("|")[2].split(",")} == scopes
