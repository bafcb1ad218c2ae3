"""Every transaction of the API may run again after a deadlock: what a route does then is as if it had run once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate

import httpx
import pytest
from sqlalchemy import func, select

from app.operations.housekeeping import named_blobs
from app.platform import database
from app.platform.database import Database
from app.platform.errors import Deadlock
from app.platform.sql import Base, Session
from app.platform.tables import AuditEntry
from tests.app.feedback.recording import raise_alarm
from tests.app.live_service import OWNER, Service, table
from tests.app.sources import make_refreshable

CSV = {"Content-Type": "text/csv"}
PAIRS = b"better,worse\na,b\nb,c\n"
# They write nothing.
READING = {
    f"POST /v1/models/{{ref}}/{verb}" for verb in ("score", "rank", "explain", "points", "letters")
} | {
    "POST /v1/models/{name}/aliases/{alias}/preview",
    "POST /v1/models/{ref}/letters/preview",
}


@pytest.fixture
def deadlocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every transaction that writes falls victim to a deadlock at its end, and runs again; returns which did."""
    writing: Callable[..., Any] = Database.writing
    victims: list[str] = []

    def run_twice(
        db: Database, work: Callable[Concatenate[Session, ...], Any], *args: Any, **kwargs: Any
    ) -> Any:
        runs = 0

        def give_the_first_up(session: Session) -> Any:
            nonlocal runs
            runs += 1
            found = work(session, *args, **kwargs)
            session.flush()
            if runs == 1:
                victims.append(getattr(work, "__qualname__", "it"))
                raise Deadlock("another transaction changed the same rows")
            return found

        return writing(db, give_the_first_up)

    monkeypatch.setattr(database, "DEADLOCK_PAUSES", (0.0, 0.0))
    monkeypatch.setattr(Database, "writing", run_twice)
    return victims


STUMP = """tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx=0
objective=binary sigmoid:1
feature_names=age
feature_infos=[-4:4]
Tree=0
num_leaves=2
num_cat=0
split_feature=0
threshold=0.5
decision_type=2
left_child=-1
right_child=-2
leaf_value=-0.5 0.25
leaf_count=30 10
end of trees"""
"""A model file of LightGBM."""


def count_rows(service: Service) -> dict[str, int]:
    """Return the number of rows of each table, and of the audit log's of each action."""
    with service.context.db.read() as session:
        counts = {
            name: session.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in Base.metadata.tables.items()
        }
        return counts | Counter(session.scalars(select(AuditEntry.action)))


def walk(service: Service, client: httpx.Client, files: Path) -> set[str]:
    """Ask every route that changes something for it; returns which they were."""
    asked: set[str] = set()

    def ask(route: str, status: int, *, json: Any = None, content: Any = None, **ids: Any) -> Any:
        method, path = route.split()
        by: httpx.Client = ids.pop("by", client)
        query = ids.pop("query", "")
        headers: dict[str, str] = ids.pop("headers", {})
        if method == "POST":
            headers["Idempotency-Key"] = f"{len(asked)}{query}"
        if content is not None:
            headers |= CSV
        address = path.format(**ids) + query
        answer = by.request(method, address, json=json, content=content, headers=headers)
        assert answer.status_code == status, (route, answer.text)
        asked.add(route)
        return answer.json() if answer.content else None

    def upload(body: str, query: str) -> str:
        made: str = ask("POST /v1/datasets", 202, content=body, query=query)["id"]
        service.work()
        return made

    people = upload(table(), "?label=left&positive=yes")
    ask("POST /v1/datasets/{id}/read", 202, json={"positive": "no"}, id=people)
    sourced = upload(table(), "?label=left&positive=yes&name=sourced")
    make_refreshable(service, sourced, files)
    ask("POST /v1/datasets/{id}/refresh", 202, id=sourced)
    schedule = {"dataset_id": sourced, "cron": "0 5 * * *"}
    planned = ask("POST /v1/schedules", 201, json=schedule)["id"]
    ask("PATCH /v1/schedules/{id}", 200, json={"paused": True}, id=planned)
    ask("DELETE /v1/schedules/{id}", 204, id=planned)
    versions = "POST /v1/datasets/{id}/versions"
    ask(versions, 202, content=table(10, 1), id=people, query="?mode=replace")
    items = upload("item,x\na,1\nb,2\nc,3\n", "?kind=preferences")
    ask("PUT /v1/datasets/{id}/pairs", 202, content=PAIRS, id=items)
    service.work()
    part = "PUT /v1/uploads/{id}/parts/{number}"
    (files / OWNER).mkdir(exist_ok=True)
    (files / OWNER / "more.csv").write_text(table(10, 1))
    for ends in (True, False):
        sent = ask("POST /v1/uploads", 201, query=f"?label=left&name={ends}")["id"]
        ask(part, 201, content=table(), id=sent, number=1)
        ask("POST /v1/uploads/{id}/files", 201, json={"path": "more.csv"}, id=sent)
        if ends:
            ask("POST /v1/uploads/{id}/close", 202, json={"parts": 2}, id=sent)
        else:
            ask("DELETE /v1/uploads/{id}", 204, id=sent)
    service.work()
    job = {
        "dataset_id": people,
        "name": "churn",
        "algorithm": {"name": "rankboost", "n_rounds": 2},
        "baselines": False,
    }
    first = ask("POST /v1/jobs", 202, json=job)["id"]
    ask("POST /v1/jobs/{id}/cancel", 202, id=first)
    again = ask("POST /v1/jobs/{id}/retry", 202, id=first)["id"]
    service.work()
    model = client.get(f"/v1/jobs/{again}").json()["output"]["id"]
    service.train(client, people)
    ask("POST /v1/models", 202, content=STUMP, query=f"?name=stump&dataset_id={people}")
    service.work()
    alias = "PUT /v1/models/{name}/aliases/{alias}"
    ask(alias, 201, json={"model_id": model}, name="churn", alias="champion")
    live = "/v1/models/{name}/aliases/{alias}"
    undone = {"revision": 1, "reason": "as it was"}
    for revision, (step, body) in enumerate(
        [(f"POST {live}/restore", undone), (f"PUT {live}/protection", {"protected": True})], 1
    ):
        tag = {"If-Match": f'"{revision}"'}
        ask(step, 200, json=body, headers=tag, name="churn", alias="champion")
    ask(f"POST {live}/break-glass", 201, json={"reason": "now"}, name="churn", alias="champion")
    ask(f"DELETE {live}/break-glass", 204, name="churn", alias="champion")
    requests, other = "POST /v1/alias-requests", service.client(service.key(name="approver"))
    lifted = {"kind": "unprotect", "name": "churn", "alias": "champion", "reason": "a trial"}
    for step, decided, by in (
        ("withdraw", None, client),
        ("reject", {"reason": "no"}, other),
        ("approve", {"reason": "yes"}, other),
    ):
        made = ask(requests, 201, json=lifted | {"reason": step})["id"]
        ask(f"{requests}/{{id}}/{step}", 200, json=decided, id=made, by=by)
    recorded = f"{live}/feedback"
    ask(f"PUT {recorded}", 201, json={}, name="churn", alias="champion")
    rows = "id,at,score,age,income,score 1\nc1,2026-11-01,0.5,1,2,3\n"
    ask("POST /v1/decisions", 202, content=rows, query="?model=churn@champion")
    service.work()
    outcome = {"rows": [{"id": "c1", "label": True, "event_at": "2026-11-02"}]}
    ask("POST /v1/outcomes", 200, json=outcome)
    ask("POST /v1/erasures", 202, json={"id": "c1"})
    tag = {"If-Match": '"1"'}
    ask(f"DELETE {recorded}", 204, headers=tag, name="churn", alias="champion")
    alarm = raise_alarm(service, "champion")
    answered = {"reason": "seen", "reference": "keep"}
    ask("POST /v1/alarms/{id}/acknowledge", 200, json=answered, id=alarm)
    said = ask("POST /v1/models/{ref}/comments", 201, json={"text": "good"}, ref=model)["id"]
    ask("DELETE /v1/models/{ref}/comments/{id}", 204, ref=model, id=said)
    ask("PUT /v1/quotas/{owner}", 200, json={"models": 1000}, owner="acme")
    ask("PUT /v1/retention/{owner}", 200, json={"models": 1000}, owner="acme")
    ask("POST /v1/retention/{owner}/preview", 200, json={"models": 1000}, owner="acme")
    case = {"kind": "model", "resource_id": model, "reason": "a case"}
    hold = ask("POST /v1/holds", 201, json=case)["id"]
    ask("POST /v1/holds/{id}/release", 200, json={"reason": "closed"}, id=hold)
    hook = ask("POST /v1/webhooks", 201, json={"url": "https://example.com/"})["id"]
    hooks = "/v1/webhooks/{id}"
    ask(f"PATCH {hooks}", 200, json={"description": "pages us"}, id=hook)
    ask(f"POST {hooks}/rotate", 201, id=hook)
    sent = ask(f"POST {hooks}/ping", 202, id=hook)["event_id"]
    ask(f"POST {hooks}/deliveries/{{event}}/replay", 202, id=hook, event=sent)
    ask(f"DELETE {hooks}", 204, id=hook)
    codes = {"entries": [{"code": "A", "text": "Too old", "columns": ["age"]}]}
    ask("PUT /v1/models/{name}/reason-codes", 201, json=codes, name="churn")

    newer = upload(table(80, 9), "?label=left&positive=yes")
    ask("PUT /v1/models/{ref}/calibration", 202, json={"dataset_id": newer}, ref=model)
    service.work()
    tag = {"If-Match": '"2"'}
    restored = {"version": 1, "reason": "as it was"}
    ask("POST /v1/models/{ref}/calibration/restore", 200, json=restored, headers=tag, ref=model)
    for kind, question in {
        "evaluations": {"model": model, "dataset_id": people},
        "comparisons": {"models": [model, "churn:2"], "dataset_id": people},
        "batch-scores": {"model": model, "dataset_id": people},
    }.items():
        made = ask(f"POST /v1/{kind}", 202, json=question)["id"]
        service.work()
        assert client.get(f"/v1/{kind}/{made}").json()["status"] == "ready"
        if kind == "evaluations":
            seen = "/v1/evaluations/{id}/acknowledgement"
            ask(f"PUT {seen}", 200, json={"reason": "seen"}, id=made)
            ask(f"DELETE {seen}", 204, id=made)
        ask(f"DELETE /v1/{kind}/{{id}}", 204, id=made)
    rows = "age,income,score 1\n1,2,3\n"
    ask("POST /v1/batch-scores", 202, content=rows, query=f"?model={model}")
    service.work()

    key = ask("POST /v1/keys", 201, json={"name": "new", "scopes": ["read"]})
    assert service.client(key["secret"]).get("/v1/models").status_code == 200
    key = ask("POST /v1/keys/{id}/rotate", 201, json={}, id=key["id"])
    assert service.client(key["secret"]).get("/v1/models").status_code == 200
    ask("DELETE /v1/keys/{id}", 204, id=key["id"])
    ask(
        "DELETE /v1/models/{name}/aliases/{alias}",
        204,
        headers={"If-Match": '"4"'},
        name="churn",
        alias="champion",
    )
    ask("DELETE /v1/models/{ref}", 204, ref=client.get("/v1/models/churn").json()["id"])
    ask("DELETE /v1/datasets/{id}", 204, id=items)
    ask("POST /v1/trash/{id}/restore", 200, id=items)
    client.delete(f"/v1/datasets/{items}")
    ask("DELETE /v1/trash/{id}", 204, id=items)
    return asked


def test_what_runs_again_leaves_what_one_run_leaves(
    service: Service, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    client = service.client(service.key())
    with service.setting(files_dir=tmp_path):
        walk(service, client, tmp_path)
    once = count_rows(service)
    # One of everything: each file that a row names is in the catalogue.
    assert all(each.blob is not None for each in named_blobs(service.context.db))
    service.empty()

    victims: list[str] = request.getfixturevalue("deadlocks")
    client = service.client(service.key())
    with service.setting(files_dir=tmp_path):
        asked = walk(service, client, tmp_path)
    assert len(victims) > len(asked)
    assert count_rows(service) == once
    named = {
        f"{method.upper()} {path}"
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method in methods
        if method != "get" and not path.endswith("/validate")
    }

    def shape(routes: set[str]) -> set[str]:
        return {re.sub(r"\{\w+\}", "{}", route) for route in routes}

    assert shape(asked) == shape(named - READING)
