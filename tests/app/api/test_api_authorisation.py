"""Every route × every wrong key. A route that is new to the application must be entered here, or the test fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from live_service import OWNER, STRANGER, Service, running
from pydantic import SecretStr
from sqlalchemy import update
from starlette.routing import Route

from app.db.tables import ApiKey
from app.infra.settings import Settings
from app.services import keys

OPEN = {
    ("GET", "/"),
    ("GET", "/docs"),
    ("GET", "/openapi.json"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
}
# (method, path) -> the scope it takes
GUARDED = {
    ("GET", "/v1/algorithms"): "read",
    ("GET", "/v1/algorithms/{name}"): "read",
    ("POST", "/v1/datasets"): "train",
    ("GET", "/v1/datasets"): "read",
    ("GET", "/v1/datasets/{dataset_id}"): "read",
    ("GET", "/v1/datasets/{dataset_id}/preview"): "read",
    ("GET", "/v1/datasets/{dataset_id}/profile"): "read",
    ("DELETE", "/v1/datasets/{dataset_id}"): "train",
    ("PUT", "/v1/datasets/{dataset_id}/pairs"): "train",
    ("POST", "/v1/jobs"): "train",
    ("GET", "/v1/jobs"): "read",
    ("GET", "/v1/jobs/{job_id}"): "read",
    ("POST", "/v1/jobs/{job_id}/cancel"): "train",
    ("POST", "/v1/jobs/{job_id}/retry"): "train",
    ("GET", "/v1/jobs/{job_id}/events"): "read",
    ("GET", "/v1/models"): "read",
    ("GET", "/v1/models/{ref}"): "read",
    ("DELETE", "/v1/models/{ref}"): "train",
    ("GET", "/v1/models/{ref}/metrics"): "read",
    ("GET", "/v1/models/{ref}/roc"): "read",
    ("GET", "/v1/models/{ref}/operating-point"): "read",
    ("GET", "/v1/models/{ref}/plot"): "read",
    ("GET", "/v1/models/{ref}/report"): "read",
    ("GET", "/v1/models/{ref}/margins"): "read",
    ("GET", "/v1/models/{ref}/bounds"): "read",
    ("GET", "/v1/models/{ref}/importance"): "read",
    ("GET", "/v1/models/{ref}/partial-dependence"): "read",
    ("GET", "/v1/models/{ref}/structure"): "read",
    ("GET", "/v1/models/{ref}/out-of-fold"): "read",
    ("GET", "/v1/models/{ref}/controls"): "read",
    ("GET", "/v1/models/{ref}/leaderboard"): "read",
    ("GET", "/v1/models/{ref}/artifact"): "read",
    ("GET", "/v1/models/{name}/aliases/{alias}"): "read",
    ("PUT", "/v1/models/{name}/aliases/{alias}"): "train",
    ("POST", "/v1/evaluations"): "train",
    ("GET", "/v1/evaluations"): "read",
    ("GET", "/v1/evaluations/{evaluation_id}"): "read",
    ("GET", "/v1/evaluations/{evaluation_id}/roc"): "read",
    ("DELETE", "/v1/evaluations/{evaluation_id}"): "train",
    ("POST", "/v1/comparisons"): "train",
    ("GET", "/v1/comparisons"): "read",
    ("GET", "/v1/comparisons/{comparison_id}"): "read",
    ("DELETE", "/v1/comparisons/{comparison_id}"): "train",
    ("GET", "/v1/models/{ref}/score"): "score",
    ("POST", "/v1/models/{ref}/score"): "score",
    ("POST", "/v1/models/{ref}/rank"): "score",
    ("POST", "/v1/models/{ref}/explain"): "score",
    ("GET", "/v1/audit"): "admin",
    ("POST", "/v1/keys"): "admin",
    ("GET", "/v1/keys"): "admin",
    ("GET", "/v1/keys/{key_id}"): "admin",
    ("DELETE", "/v1/keys/{key_id}"): "admin",
    ("GET", "/metrics"): "admin",
}
# Routes that name nothing of anyone's
IMPERSONAL = {"/v1/algorithms", "/v1/algorithms/{name}", "/metrics"}
ROW = {"age": 1.0, "income": 2.0, "score 1": 3.0}


class World:
    """A service in which OWNER has one of everything."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.client = service.client()
        owner = service.client(service.key())
        self.dataset_id = service.upload(owner)
        job = service.train(owner, self.dataset_id)
        self.job_id, self.model_id = job["id"], job["model_id"]
        owner.put("/v1/models/churn/aliases/champion", json={"model_id": self.model_id})
        other = service.train(owner, self.dataset_id, name="other")["model_id"]
        self.models = [self.model_id, other]
        auto, folds = (
            {"name": "auto", "budget_seconds": 0.2},
            {"method": "cross_validation", "folds": 2},
        )
        judged = service.train(
            owner, self.dataset_id, name="judged", algorithm=auto, validation=folds
        )
        self.judged_id = judged["model_id"]
        self.evaluation_id, self.comparison_id = (
            owner.post(f"/v1/{kind}", json=asked | {"dataset_id": self.dataset_id}).json()["id"]
            for kind, asked in (
                ("evaluations", {"model": self.model_id}),
                ("comparisons", {"models": self.models}),
            )
        )
        service.work()
        self.key_id = owner.get("/v1/keys").json()["data"][0]["id"]

    def request(self, method: str, path: str, secret: str | None) -> httpx.Response:
        """Send a request that would succeed with the owner's key."""
        of_judged = path.endswith(("/out-of-fold", "/controls", "/leaderboard"))
        filled = path.format(
            dataset_id=self.dataset_id,
            job_id=self.job_id,
            ref=self.judged_id if of_judged else self.model_id,
            name="rankboost" if "algorithms" in path else "churn",
            alias="champion",
            key_id=self.key_id,
            evaluation_id=self.evaluation_id,
            comparison_id=self.comparison_id,
        )
        body: dict[str, Any] = {}
        match method, path:
            case "GET", "/v1/models/{ref}/score":
                body = {"params": ROW}
            case "GET", "/v1/models/{ref}/operating-point":
                body = {"params": {"fpr": 0.1}}
            case "GET", "/v1/models/{ref}/partial-dependence":
                body = {"params": {"feature": "age"}}
            case "POST", "/v1/datasets":
                body = {"content": b"a,b\n1,0\n", "headers": {"Content-Type": "text/csv"}}
            case "POST", "/v1/jobs":
                algorithm = {"name": "rankboost"}
                body = {"json": {"dataset_id": self.dataset_id, "algorithm": algorithm}}
            case "POST", "/v1/evaluations":
                body = {"json": {"model": self.model_id, "dataset_id": self.dataset_id}}
            case "POST", "/v1/comparisons":
                body = {"json": {"models": self.models, "dataset_id": self.dataset_id}}
            case "POST", "/v1/keys":
                body = {"json": {"name": "new", "scopes": ["read"]}}
            case "PUT", "/v1/datasets/{dataset_id}/pairs":
                pairs = b"better,worse\na,b\n"
                body = {"content": pairs, "headers": {"Content-Type": "text/csv"}}
            case "PUT", _:
                body = {"json": {"model_id": self.model_id}}
            case "POST", _ if "/models/" in path:
                body = {"json": {"rows": [ROW]}}
        headers = body.pop("headers", {})
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        return self.client.request(method, filled, headers=headers, **body)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, sqlite_file: SecretStr) -> Iterator[World]:
    with running(
        Settings(state_dir=tmp_path_factory.mktemp("state"), database_url=sqlite_file)
    ) as service:
        yield World(service)


def test_every_route_is_in_the_tables(world: World) -> None:
    routes = {
        (method, route.path)
        for route in world.service.app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert routes == OPEN | GUARDED.keys()


@pytest.mark.parametrize(("method", "path"), sorted(OPEN))
def test_open_routes_take_no_key(world: World, method: str, path: str) -> None:
    assert world.client.request(method, path).status_code in {200, 307, 503}


@pytest.mark.parametrize(("method", "path"), sorted(GUARDED))
class TestGuardedRoute:
    """One guarded route against every key that must not open it."""

    def test_without_a_key(self, world: World, method: str, path: str) -> None:
        answer = world.request(method, path, None)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert answer.json()["code"] == "unauthenticated"

    def test_with_a_bad_key(self, world: World, method: str, path: str) -> None:
        assert world.request(method, path, "rw_wrong").status_code == 401

    def test_with_the_wrong_scheme(self, world: World, method: str, path: str) -> None:
        secret = world.service.key()
        answer = world.client.request(method, path, headers={"Authorization": f"Basic {secret}"})
        assert answer.status_code == 401

    def test_with_every_other_scope(self, world: World, method: str, path: str) -> None:
        needed = GUARDED[method, path]
        others = [scope for scope in keys.SCOPES if scope != needed]
        answer = world.request(method, path, world.service.key(scopes=others))
        assert answer.status_code == 403
        assert repr(needed) in answer.json()["detail"]

    def test_with_a_revoked_key(self, world: World, method: str, path: str) -> None:
        db = world.service.context.db
        key, secret = keys.create(db, OWNER, "revoked", keys.SCOPES)
        keys.revoke(db, OWNER, key.id)
        assert world.request(method, path, secret).status_code == 401

    def test_with_an_expired_key(self, world: World, method: str, path: str) -> None:
        db = world.service.context.db
        key, secret = keys.create(db, OWNER, "old", keys.SCOPES, expires_in_seconds=1)
        with db.write() as session:
            session.execute(update(ApiKey).where(ApiKey.id == key.id).values(expires_at=1.0))
        assert world.request(method, path, secret).status_code == 401

    def test_with_a_stranger_s_key(self, world: World, method: str, path: str) -> None:
        answer = world.request(method, path, world.service.key(owner=STRANGER))
        if path in IMPERSONAL or (method, path) in {("POST", "/v1/datasets"), ("POST", "/v1/keys")}:
            assert answer.is_success  # something of the stranger's own
        elif "{" in path or method == "POST":
            assert answer.status_code == 404
            assert answer.json()["code"] == "not_found"
        else:
            ours = {world.dataset_id, world.job_id, world.model_id, world.key_id}
            ours |= {world.evaluation_id, world.comparison_id}
            assert not ours & {entry["id"] for entry in answer.json()["data"]}


@pytest.mark.parametrize(
    "header", [b"Bearer", b"Bearer rw_\xe9\xff", b"bearer " + b"x" * 5000, b"rw_x"]
)
def test_odd_authorization_headers(world: World, header: bytes) -> None:
    answer = world.client.get("/v1/jobs", headers=[(b"Authorization", header)])
    assert answer.status_code == 401


def test_the_owner_gets_in(world: World) -> None:
    """The requests above are sound: with the right key each succeeds, or is refused for another reason."""
    secret = world.service.key()
    deletes = [entry for entry in GUARDED if entry[0] == "DELETE"]
    for method, path in [*(GUARDED.keys() - set(deletes)), *deletes]:
        answer = world.request(method, path, secret)
        assert answer.is_success or answer.status_code in {409, 428}, (method, path, answer.text)


def test_a_key_revoked_by_another_process_is_refused_once_the_cache_is_over(
    service: Service,
) -> None:
    secret = service.key()
    client = service.client(secret)
    assert client.get("/v1/jobs").status_code == 200
    ring = service.context.keys
    assert ring.cached(secret.encode()) is not None
    with service.context.db.write() as session:  # not through this process's service
        session.execute(update(ApiKey).values(revoked_at=1.0))
    assert ring.memory.seconds < 1.0
    ring.memory.clear()  # what the passing of that time does
    assert client.get("/v1/jobs").status_code == 401
