"""Every route × every key that must not open it, made from the application's own routes.

A new route is in the matrix by itself. It needs a line below only if its address has a parameter of a new name, or if a
sound request of it has a query or a body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update
from starlette.routing import Route

from app.access import service as keys
from app.access.authentication import ANY, scope_of
from app.jobs import endpoints as jobs
from app.platform.callers import Credential
from app.platform.tables import ApiKey, DecisionSegment
from tests.app.feedback.recording import raise_alarm
from tests.app.live_service import OWNER, STRANGER, Service
from tests.app.refusals import everything, refused
from tests.app.sources import make_refreshable
from tests.long_form import rest
from tests.waiting import eventually

DOCS = Path(__file__).parents[3] / "docs"
OPEN = {
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    ("GET", "/health/staffed"),
    ("GET", "/version"),
    ("GET", "/oip/v2"),
    ("GET", "/oip/v2/health/live"),
    ("GET", "/oip/v2/health/ready"),
}
AT_THE_ROOT = {("GET", "/ping"), ("GET", "/health"), ("POST", "/invocations")}
"""For the model that a setting names; none does here."""
PAGES = ("/console", "/docs/static")
"""For browsers: their sessions and scopes are tested in tests/app/console."""
NAMED_IN_QUERY = {("GET", "/v1/fits")}
# Routes that name nothing of anyone's, or make something of the caller's own
IMPERSONAL = {
    ("GET", "/v1/algorithms"),
    ("GET", "/v1/algorithms/{name}"),
    ("POST", "/oip/v2/repository/index"),
    ("GET", "/metrics"),
    ("GET", "/v1/quotas/{owner}"),
    ("GET", "/v1/quotas/{owner}/usage"),
    ("PUT", "/v1/quotas/{owner}"),
    ("GET", "/v1/retention/{owner}"),
    ("PUT", "/v1/retention/{owner}"),
    ("POST", "/v1/retention/{owner}/preview"),
    ("POST", "/v1/datasets"),
    ("POST", "/v1/datasets/validate"),
    ("POST", "/v1/uploads"),
    ("POST", "/v1/outcomes"),
    ("POST", "/v1/outcomes/validate"),
    ("POST", "/v1/erasures"),
    ("POST", "/v1/erasures/validate"),
    ("POST", "/v1/keys"),
    ("POST", "/v1/keys/validate"),
    ("POST", "/v1/webhooks"),
    ("POST", "/v1/webhooks/validate"),
}
ROW = {"age": 1.0, "income": 2.0, "score 1": 3.0}
ROWS = {"json": {"rows": [ROW]}}
TENSOR = {
    "json": {"inputs": [{"name": "x", "datatype": "FP64", "shape": [1, 3], "data": [1, 2, 3]}]}
}
CSV = {"Content-Type": "text/csv"}
Entry = tuple[str, str]


def requests_of(
    ids: dict[str, str], evaluation: dict[str, Any], comparison: dict[str, Any]
) -> dict[Entry, dict[str, Any]]:
    """Queries and bodies of the requests that need them."""
    job = {"dataset_id": ids["dataset_id"], "algorithm": {"name": "rankboost"}}
    pairs = {"content": b"better,worse\na,b\n", "headers": CSV}
    requests: dict[Entry, dict[str, Any]] = {
        ("GET", "/v1/models/{ref}/score"): {"params": ROW},
        ("GET", "/v1/models/{ref}/operating-point"): {"params": {"fpr": 0.1}},
        ("GET", "/v1/evaluations/{evaluation_id}/metric-estimates"): {"params": {"metric": "auc"}},
        ("GET", "/v1/models/{ref}/metric-estimates"): {"params": {"metric": "auc"}},
        ("GET", "/v1/evaluations/{evaluation_id}/operating-point"): {"params": {"fpr": 0.1}},
        ("GET", "/v1/models/{ref}/partial-dependence"): {"params": {"feature": "age"}},
        ("GET", "/v1/models/{ref}/variable-dependence"): {"params": {"feature": "age"}},
        ("GET", "/v1/fits"): {
            "params": {"model": ids["ref"], "dataset_id": evaluation["json"]["dataset_id"]}
        },
        ("POST", "/v1/datasets"): {"content": b"a,b\n1,0\n", "headers": CSV},
        ("POST", "/v1/uploads"): {"json": {"label": "b"}},
        ("PUT", "/v1/uploads/{upload_id}/parts/{number}"): {
            "content": b"a,b\n1,0\n",
            "headers": CSV,
        },
        ("POST", "/v1/uploads/{upload_id}/close"): {"json": {"parts": 1}},
        ("POST", "/v1/uploads/{upload_id}/files"): {"json": {"path": "rows.csv"}},
        ("PUT", "/v1/datasets/{dataset_id}/pairs"): pairs,
        ("POST", "/v1/datasets/{dataset_id}/read"): {"json": {"positive": "no"}},
        ("POST", "/v1/datasets/{dataset_id}/versions"): {"content": b"a,b\n1,0\n", "headers": CSV},
        ("POST", "/v1/jobs"): {"json": job},
        ("PUT", "/v1/models/{name}/aliases/{alias}"): {"json": {"model_id": ids["ref"]}},
        ("POST", "/v1/models/{name}/aliases/{alias}/preview"): {"json": {"model_id": ids["ref"]}},
        ("POST", "/v1/models/{name}/aliases/{alias}/restore"): {"json": {"revision": 1}},
        ("PUT", "/v1/models/{name}/aliases/{alias}/feedback"): {"json": {}},
        ("PUT", "/v1/models/{name}/aliases/{alias}/protection"): {"json": {"protected": True}},
        ("POST", "/v1/models/{name}/aliases/{alias}/break-glass"): {"json": {"reason": "urgent"}},
        ("POST", "/v1/alias-requests"): {
            "json": {"kind": "delete", "name": "churn", "alias": "champion", "reason": "unused"}
        },
        ("POST", "/v1/alias-requests/{alias_request_id}/approve"): {"json": {}},
        ("POST", "/v1/alias-requests/{alias_request_id}/reject"): {"json": {"reason": "no"}},
        ("POST", "/v1/models/{ref}/comments"): {"json": {"text": "a comment"}},
        ("POST", "/v1/models/{ref}/calibration/restore"): {"json": {"version": 1}},
        ("PUT", "/v1/evaluations/{evaluation_id}/acknowledgement"): {"json": {"reason": "seen"}},
        ("PUT", "/v1/models/{name}/reason-codes"): {"json": {"entries": []}},
        ("PUT", "/v1/quotas/{owner}"): {"json": {"models": 1000}},
        ("PUT", "/v1/retention/{owner}"): {"json": {"models": 1000}},
        ("POST", "/v1/retention/{owner}/preview"): {"json": {"models": 1000}},
        ("POST", "/v1/holds"): {
            "json": {"kind": "model", "resource_id": ids["ref"], "reason": "a case"}
        },
        ("POST", "/v1/holds/{hold_id}/release"): {"json": {"reason": "closed"}},
        ("POST", "/v1/evaluations"): evaluation,
        ("POST", "/v1/comparisons"): comparison,
        ("PUT", "/v1/models/{ref}/calibration"): {
            "json": {"dataset_id": evaluation["json"]["dataset_id"]}
        },
        ("POST", "/v1/models"): {
            "params": {"name": "given", "dataset_id": evaluation["json"]["dataset_id"]},
            "content": b"tree",
        },
        ("POST", "/v1/batch-scores"): evaluation,
        ("POST", "/v1/models/{ref}/score"): ROWS,
        ("POST", "/v1/models/{ref}/rank"): ROWS,
        ("POST", "/v1/models/{ref}/explain"): ROWS,
        ("POST", "/v1/models/{ref}/points"): ROWS,
        ("POST", "/v1/models/{ref}/letters"): ROWS,
        ("POST", "/v1/models/{ref}/letters/preview"): {"json": {"rows": [ROW], "entries": []}},
        ("POST", "/v1/models/{ref}/invocations"): {"json": {"instances": [ROW]}},
        ("POST", "/v1/models/{ref}:predict"): {"json": {"instances": [ROW]}},
        ("POST", "/oip/v2/models/{ref}/infer"): TENSOR,
        ("POST", "/oip/v2/models/{ref}/versions/{version}/infer"): TENSOR,
        ("POST", "/v1/outcomes"): {
            "json": {"rows": [{"id": "c1", "label": True, "event_at": "2026-01-02"}]}
        },
        ("POST", "/v1/decisions"): {
            "params": {"model": "churn@champion"},
            "content": b"id,at,score,age,income,score 1\nc1,2026-11-01,0.5,1,2,3\n",
            "headers": CSV,
        },
        ("POST", "/v1/erasures"): {"json": {"id": "c1"}},
        ("POST", "/v1/alarms/{alarm_id}/acknowledge"): {
            "json": {"reason": "seen", "reference": "keep"}
        },
        ("POST", "/v1/schedules"): {"json": {"dataset_id": ids["sourced_id"], "cron": "0 5 * * *"}},
        ("PATCH", "/v1/schedules/{schedule_id}"): {"json": {"cron": "0 6 * * *"}},
        ("POST", "/v1/webhooks"): {"json": {"url": "https://example.com/"}},
        ("PATCH", "/v1/webhooks/{webhook_id}"): {"json": {"description": "pages us"}},
        ("POST", "/v1/keys"): {"json": {"name": "new", "scopes": ["read"]}},
        ("POST", "/v1/keys/{key_id}/rotate"): {"json": {"grace_seconds": 3600}},
    }
    checks = {("POST", f"{path}/validate"): asked for (_, path), asked in requests.items()}
    table = {
        "params": {"model": ids["ref"]},
        "content": b"age,income,score 1\n1,0,2\n",
        "headers": CSV,
    }
    upload = {"params": {"label": "b"}, "content": b"a,b\n1,0\n2,1\n", "headers": CSV}
    return (
        requests
        | checks
        | {
            ("POST", "/v1/batch-scores/validate"): table,
            ("POST", "/v1/datasets/validate"): upload,
        }
    )


def stated_scopes(document: dict[str, Any]) -> dict[Entry, str | None]:
    """Return the scope of each route as openapi.json states it, and docs/clients.md for the protocols of other servers.
    None: the route is open.
    """
    scopes: dict[Entry, str | None] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            (scope,) = re.findall(r"Scope: (none|any|`\w+`)\.", operation["description"])
            scopes[method.upper(), path] = None if scope == "none" else scope.strip("`")
    page = (DOCS / "clients.md").read_text()
    for method, path, scope in re.findall(
        r"^\| `([A-Z]+) ([^`]+)` \| (\w+) \|", page, re.MULTILINE
    ):
        assert (method, path) not in scopes
        scopes[method, path] = None if scope == "none" else scope
    return scopes


def file_of(service: Service) -> str:
    """Return the id of the only file of decisions."""
    with service.context.db.read() as session:
        return session.scalars(select(DecisionSegment.id)).one()


class World:
    """A service in which OWNER has one of everything."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = service.client()
        self.secret = service.key()
        owner = service.client(self.secret)
        key, _ = service.context.db.writing(keys.create, OWNER, "another", ["read"])
        service.context.db.writing(keys.create, STRANGER, "another owner", ["read"])
        dataset_id = service.upload(owner)
        job = service.train(owner, dataset_id)
        model_id = job["output"]["id"]
        owner.put("/v1/models/churn/aliases/champion", json={"model_id": model_id})
        owner.put("/v1/models/churn/reason-codes", json={"entries": []})
        owner.put("/v1/models/churn/aliases/champion/feedback", json={})
        decided = owner.get("/v1/models/churn@champion/score", params=ROW).json()
        service.app.state.decisions.flush()
        models = [model_id, service.train(owner, dataset_id, name="other")["output"]["id"]]
        evaluated = service.train(
            owner,
            dataset_id,
            name="evaluated",
            algorithm={"name": "auto", "budget_seconds": 0.2},
            validation={"method": "cross_validation", "folds": 2},
            baselines=None,
        )
        evaluation: dict[str, Any] = {"json": {"model": model_id, "dataset_id": dataset_id}}
        comparison: dict[str, Any] = {"json": {"models": models, "dataset_id": dataset_id}}
        # What stands for each parameter of an address
        self.ids = {
            "dataset_id": dataset_id,
            "job_id": job["id"],
            "ref": model_id,
            "kind": "gains",
            "name": "churn",
            "alias": "champion",
            "revision": "1",
            "comment_id": owner.post(f"/v1/models/{model_id}/comments", json={"text": "a"}).json()[
                "id"
            ],
            "version": "1",
            "key_id": key.id,
            "evaluation_id": owner.post("/v1/evaluations", **evaluation).json()["id"],
            "comparison_id": owner.post("/v1/comparisons", **comparison).json()["id"],
        }
        self.ids["upload_id"] = owner.post("/v1/uploads", json={"label": "b"}).json()["id"]
        self.ids["erasure_id"] = owner.post("/v1/erasures", json={"id": "c1"}).json()["id"]
        hold = {"kind": "model", "resource_id": model_id, "reason": "a case"}
        self.ids["hold_id"] = owner.post("/v1/holds", json=hold).json()["id"]
        sourced_id = service.upload(owner, name="sourced")
        assert service.settings.files_dir is not None
        make_refreshable(service, sourced_id, service.settings.files_dir)
        schedule = {"dataset_id": sourced_id, "cron": "0 5 * * *"}
        self.ids["schedule_id"] = owner.post("/v1/schedules", json=schedule).json()["id"]
        self.ids["sourced_id"] = sourced_id
        hook = owner.post("/v1/webhooks", json={"url": "https://example.com/"}).json()["id"]
        ping = owner.post(f"/v1/webhooks/{hook}/ping").json()
        self.ids |= {"webhook_id": hook, "event_id": ping["event_id"]}
        self.ids["number"] = "1"
        self.ids["decision_id"] = decided["decision_id"]
        self.ids["file_id"] = file_of(service)
        self.ids["alarm_id"] = raise_alarm(service, "champion")
        live = "/v1/models/churn/aliases/guarded"
        owner.put(live, json={"model_id": model_id})
        match = {"If-Match": '"1"'}
        assert owner.put(f"{live}/protection", json={"protected": True}, headers=match).is_success
        asked = {"kind": "delete", "name": "churn", "alias": "guarded", "reason": "unused"}
        requester = service.client(service.key(name="requester"))
        self.ids["alias_request_id"] = requester.post("/v1/alias-requests", json=asked).json()["id"]
        self.ids["owner"] = OWNER
        scored = owner.post("/v1/batch-scores", **evaluation).json()["id"]
        self.ids["batch_score_id"] = scored
        service.work()
        trashed = [service.upload(owner) for _ in range(2)]
        for each in trashed:
            owner.delete(f"/v1/datasets/{each}")
        self.ids["item_id"] = trashed[0]
        # Where it stands for another thing
        self.exceptions = {
            "/v1/trash/{item_id}/restore": {"item_id": trashed[1]},
            "/v1/algorithms/{name}": {"name": "rankboost"},
            **{
                f"/oip/v2/models/{{ref}}/versions/{{version}}{part}": {"ref": "churn"}
                for part in ("", "/config", "/ready", "/infer")
            },
            **{
                f"/v1/models/{{ref}}/{part}": {"ref": evaluated["output"]["id"]}
                for part in ("out-of-fold", "baselines", "leaderboard")
            },
        }
        self.requests = requests_of(self.ids, evaluation, comparison)
        self.endpoints: dict[Entry, Callable[..., Any]] = {
            (method, route.path_format): route.endpoint
            for route in service.app.routes
            if isinstance(route, Route) and not route.path.startswith(PAGES)
            for method in (route.methods or set()) - {"HEAD"}
        }
        self.stated = stated_scopes(self.client.get("/openapi.json").json())
        self.guarded = sorted(entry for entry, scope in self.stated.items() if scope is not None)

    def request(self, entry: Entry, authorization: bytes | None) -> httpx.Response:
        """Send a request that would succeed with the owner's key."""
        method, path = entry
        asked = dict(self.requests.get(entry, {}))
        headers = dict(asked.pop("headers", {}))
        if authorization is not None:
            headers["Authorization"] = authorization
        address = path.format(**self.ids | self.exceptions.get(path, {}))
        return self.client.request(method, address, headers=headers, **asked)

    def asked_with(self, authorization: bytes | str | None) -> Iterator[tuple[Entry, Any]]:
        """Each guarded route's answer to a key, or to a whole header."""
        if isinstance(authorization, str):
            authorization = f"Bearer {authorization}".encode()
        for entry in self.guarded:
            yield entry, self.request(entry, authorization)


@pytest.fixture(scope="module")
def world(start: Callable[..., Service], tmp_path_factory: pytest.TempPathFactory) -> World:
    files = tmp_path_factory.mktemp("files")
    for owner in (OWNER, STRANGER):
        (files / owner).mkdir()
        (files / owner / "rows.csv").write_bytes(b"a,b\n1,0\n")
    return World(start(files_dir=files))


def test_each_route_states_the_scope_that_it_needs(world: World) -> None:
    """That the application enforces what is stated, the matrix below shows by requests."""
    needed = {entry: scope_of(endpoint) for entry, endpoint in world.endpoints.items()}
    stated = world.stated
    assert stated.keys() <= needed.keys()
    assert stated == {entry: needed[entry] for entry in stated}
    assert needed.keys() - stated.keys() <= OPEN
    assert {entry for entry, scope in needed.items() if scope is None} == OPEN
    assert set(needed.values()) - {None, ANY} <= set(keys.SCOPES)


def test_open_routes_take_no_key(world: World) -> None:
    for method, path in OPEN:
        assert world.client.request(method, path).status_code in {200, 307, 503}


def revoked(world: World) -> str:
    db = world.service.context.db
    key, secret = db.writing(keys.create, OWNER, "revoked", keys.SCOPES)
    db.writing(keys.revoke, OWNER, key.id)
    return secret


def expired(world: World) -> str:
    db = world.service.context.db
    key, secret = db.writing(keys.create, OWNER, "old", keys.SCOPES, expires_in_seconds=1)
    with db.write() as session:
        session.execute(update(ApiKey).where(ApiKey.id == key.id).values(expires_at=1.0))
    return secret


def rotated_away(world: World) -> str:
    db = world.service.context.db
    key, secret = db.writing(keys.create, OWNER, "rotated", keys.SCOPES)
    db.writing(keys.rotate, OWNER, key.id)
    return secret


UNKNOWN = {
    "no key": lambda world: None,
    "a bad key": lambda world: "rw_wrong",
    "no secret": lambda world: b"Bearer",
    "two secrets": lambda world: f"Bearer {world.secret} {world.secret}".encode(),
    "the wrong scheme": lambda world: f"Basic {world.secret}".encode(),
    "no scheme": lambda world: world.secret.encode(),
    "bytes that are no text": lambda world: b"Bearer rw_\xe9\xff",
    "a long key": lambda world: b"bearer " + b"x" * 5000,
    "a revoked key": revoked,
    "an expired key": expired,
    "a key that was rotated": rotated_away,
}
ON_EACH_ROUTE = {"no key", "a revoked key"}


def assert_unknown(answer: httpx.Response) -> None:
    assert answer.status_code == 401, answer.request.url
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"


@pytest.mark.parametrize(
    "kind", [*sorted(ON_EACH_ROUTE), *rest(*sorted(UNKNOWN.keys() - ON_EACH_ROUTE))]
)
def test_who_is_unknown(world: World, kind: str) -> None:
    for _, answer in world.asked_with(UNKNOWN[kind](world)):
        assert_unknown(answer)


def test_every_fault_of_a_key(world: World) -> None:
    for fault in UNKNOWN.values():
        given = fault(world)
        header = f"Bearer {given}".encode() if isinstance(given, str) else given
        assert_unknown(world.request(("GET", "/v1/jobs"), header))


@pytest.mark.parametrize("scope", keys.SCOPES)
def test_a_key_of_one_scope_opens_no_other_s_routes(world: World, scope: str) -> None:
    authorization = f"Bearer {world.service.key(scopes=[scope])}".encode()
    for entry in world.guarded:
        if world.stated[entry] in (scope, ANY):
            continue
        answer = world.request(entry, authorization)
        assert answer.status_code == 403, entry
        assert repr(world.stated[entry]) in answer.json()["detail"]


def test_a_stranger_sees_nothing(world: World) -> None:
    ours = [id_ for id_ in world.ids.values() if "_" in id_]
    for entry, answer in world.asked_with(world.service.key(owner=STRANGER)):
        if entry in IMPERSONAL:
            assert answer.is_success, entry
        elif entry in AT_THE_ROOT | NAMED_IN_QUERY or "{" in entry[1] or entry[0] == "POST":
            assert answer.status_code == 404, (entry, answer.text)
            assert answer.json()["code"] == "not_found"
        else:
            assert answer.is_success, entry
            assert not [id_ for id_ in ours if id_ in answer.text], entry


LACKING = ("no_scorecard", "no_break_glass")
"""Codes of requests about a part that this model or alias does not have."""


def _parts_first(entry: Entry) -> tuple[bool, int]:
    """Put deletions last, of a thing after that of its parts."""
    return (True, -entry[1].count("/")) if entry[0] == "DELETE" else (False, 0)


def test_the_owner_gets_in(world: World) -> None:
    """The requests above are sound: with the right key each succeeds, or is refused for another reason."""
    authorization = f"Bearer {world.secret}".encode()
    for entry in sorted(world.guarded, key=_parts_first):
        answer = world.request(entry, authorization)
        refused_otherwise = {404} if entry in AT_THE_ROOT else {409, 428}
        lacks = answer.status_code == 404 and answer.json()["code"] in LACKING
        is_refused = answer.status_code in refused_otherwise or lacks
        assert answer.is_success or is_refused, (entry, answer.text)


def test_a_key_revoked_by_another_process_is_refused_once_the_cache_is_over(
    service: Service,
) -> None:
    secret = service.key()
    client = service.client(secret)
    assert client.get("/v1/jobs").status_code == 200
    known = service.app.state.authenticator.known
    assert known.cached(Credential.of("key", secret)) is not None
    revoke_elsewhere(service)
    assert client.get("/v1/jobs").status_code == 401


def revoke_elsewhere(service: Service) -> None:
    """Revoke every key as another process does, and let the time go by for which this one remembers them."""
    with service.context.db.write() as session:
        session.execute(update(ApiKey).values(revoked_at=1.0))
    known = service.app.state.authenticator.known
    assert known.recent.seconds < 1.0
    known.recent.clear()


@pytest.mark.parametrize("ping_seconds", [0.01, 60.0], ids=["at a ping", "before an event"])
def test_a_stream_ends_with_its_key(
    service: Service, monkeypatch: pytest.MonkeyPatch, ping_seconds: float
) -> None:
    monkeypatch.setattr(jobs, "PING_SECONDS", ping_seconds)
    client = service.client(service.key())
    asked = {"dataset_id": service.upload(client), "algorithm": {"name": "rankboost"}}
    address = f"{client.post('/v1/jobs', json=asked).headers['Location']}/events"
    with client.stream("GET", address, headers={"Accept": "text/event-stream"}) as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line and line[0] != ":") == "id: 1"
        revoke_elsewhere(service)
        if ping_seconds > 1.0:
            service.work()
        told = [line for line in lines if line.startswith("id: ")]  # it ends, or this would not
    assert told == []
    assert client.get(address).status_code == 401


def test_an_upload_whose_key_ends_on_the_way_is_refused(service: Service) -> None:
    client = service.client(service.key())

    def body() -> Iterator[bytes]:
        yield b"a,left\n1,no\n"
        eventually(lambda: service.context.uploads.taken)
        revoke_elsewhere(service)
        yield b"2,yes\n"

    before = everything(service)
    refused(
        client.post("/v1/datasets", params={"label": "left"}, content=body(), headers=CSV),
        401,
        "unauthenticated",
    )
    assert everything(service) == before
