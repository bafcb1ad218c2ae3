"""Steps that the tests of requests to change protected aliases share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import update

from app.platform.sql import db_now
from app.platform.tables import AliasRequest, BreakGlass
from tests.app.live_service import Service, table

REQUESTS = "/v1/alias-requests"
ALIAS = "/v1/models/churn/aliases/live"


def tag(revision: int) -> dict[str, str]:
    return {"If-Match": f'"{revision}"'}


@dataclass
class Team:
    """Persons with a key each, who work on `churn`; `churn@live` is protected at revision 2, and serves version 1."""

    service: Service
    ann: httpx.Client
    """A trainer, who requests."""
    bob: httpx.Client
    """An approver."""
    eve: httpx.Client
    """An admin."""
    first: str
    second: str

    def ask(self, kind: str = "set", by: httpx.Client | None = None, **more: Any) -> httpx.Response:
        """Request a change of churn@live, by default to point it to the second version."""
        body = {"kind": kind, "name": "churn", "alias": "live", "reason": "Better", **more}
        if kind == "set":
            body = {"model_id": self.second} | body
        return (by or self.ann).post(REQUESTS, json=body)

    def asked(self, kind: str = "set", **more: Any) -> str:
        """Request a change that must be accepted; returns the id of the request."""
        answer = self.ask(kind, **more)
        assert answer.status_code == 201, answer.text
        id_: str = answer.json()["id"]
        return id_

    def decide(self, request_id: str, how: str = "approve", by: httpx.Client | None = None) -> Any:
        """Approve or reject a request with a reason, or withdraw it."""
        body = {"approve": {"reason": "Looks right"}, "reject": {"reason": "Not yet"}}.get(how)
        return (by or self.bob).post(f"{REQUESTS}/{request_id}/{how}", json=body)

    def read(self, request_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ann.get(f"{REQUESTS}/{request_id}").json()
        return found

    def summary(self) -> str:
        """Return in words what was changed last."""
        done = self.eve.get("/v1/audit", params={"outcome": "done"}).json()["data"]
        found: str = done[0]["summary"]
        return found

    def alias(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ann.get(ALIAS).json()
        return found

    def break_glass(self, by: httpx.Client | None = None, **more: Any) -> httpx.Response:
        body = {"reason": "All are rejected", **more}
        return (by or self.eve).post(f"{ALIAS}/break-glass", json=body)

    def lapse(self, table: type[AliasRequest] | type[BreakGlass]) -> None:
        """Let the time of all requests, or suspensions, be over by the database's clock."""
        column = "expires_at" if table is AliasRequest else "until"
        with self.service.context.db.write() as session:
            session.execute(update(table).values({column: db_now() - 0.001}))


def team(service: Service, **alias: Any) -> Team:
    """Train two versions and protect an alias of the first; `alias` are members of the request that creates it."""
    trainer = service.client(service.key(scopes=["read", "train", "score"], name="Ann"))
    approver = service.client(service.key(scopes=["read", "approve"], name="Bob"))
    admin = service.client(service.key(name="Eve"))
    dataset_id = service.upload(trainer, table(600))
    first, second = (
        service.train(trainer, dataset_id, seed=seed)["output"]["id"] for seed in (0, 1)
    )
    made = trainer.put(ALIAS, json={"model_id": first, **alias})
    assert made.status_code == 201, made.text
    done = admin.put(f"{ALIAS}/protection", json={"protected": True}, headers=tag(1))
    assert done.status_code == 200, done.text
    return Team(service, trainer, approver, admin, first, second)
