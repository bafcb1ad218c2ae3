"""What a reference to a model means is remembered until a process of the host changes it."""

from __future__ import annotations

import ast
import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from sqlalchemy import delete, insert, select, update

import app
from app.models import service as models
from app.platform.database import Database
from app.platform.host_tokens import HostToken, HostTokens
from app.platform.sql import Reading
from app.platform.tables import AliasFeedback, Dataset, Model, ModelAlias
from app.scoring import turns
from app.scoring.service import ModelCache
from tests.app.live_service import NAMES, Service, table
from tests.app.live_service import running as serving
from tests.app.workbench import OWNER, Workbench

ROW = dict.fromkeys(NAMES, 0.25)
ALIAS = "/v1/models/churn/aliases/live"


@pytest.fixture
def processes(service_on_both: Service) -> Iterator[list[Service]]:
    """Two API processes' worth of one host."""
    with serving(service_on_both.settings) as other:
        yield [service_on_both, other]


class Host:
    """Two versions of a model, an alias of the first, and a client for each process."""

    def __init__(self, processes: list[Service]) -> None:
        first = processes[0]
        secret = first.key()
        self.clients = [process.client(secret) for process in processes]
        dataset_id = first.upload(self.clients[0])
        self.ids = [first.train(self.clients[0], dataset_id)["output"]["id"] for _ in range(2)]
        self.change("PUT", ALIAS, json={"model_id": self.ids[0]})

    def change(self, method: str, path: str, **given: Any) -> None:
        """Change something through the first process."""
        old = self.clients[0].get(path).headers
        headers = {"If-Match": old["ETag"]} if "ETag" in old else {}
        answer = self.clients[0].request(method, path, headers=headers, **given)
        assert answer.is_success, answer.text

    def ask(self, ref: str) -> list[httpx.Response]:
        """Ask each process for a score."""
        return [client.get(f"/v1/models/{ref}/score", params=ROW) for client in self.clients]

    def answers(self, ref: str) -> list[dict[str, Any]]:
        return [answer.raise_for_status().json() for answer in self.ask(ref)]


@pytest.fixture
def host(processes: list[Service]) -> Host:
    return Host(processes)


def test_after_a_change_no_process_of_the_host_uses_the_old_state(host: Host) -> None:
    first, second = host.ids
    for turn in range(3):  # each reference is remembered when it changes
        expected = host.ids[turn % 2]
        host.change("PUT", ALIAS, json={"model_id": expected})
        assert [each["model_id"] for each in host.answers("churn@live")] == [expected] * 2
    assert not any("flag" in each for each in host.answers("churn@live"))
    host.change("PUT", ALIAS, json={"model_id": second, "guarantee": {"flagged": 0.2}})
    assert all("flag" in each for each in host.answers("churn@live"))
    assert not any("decision_id" in each for each in host.answers("churn@live"))
    host.change("PUT", f"{ALIAS}/feedback", json={})
    assert all("decision_id" in each for each in host.answers("churn@live"))
    host.change("DELETE", f"{ALIAS}/feedback")
    assert not any("decision_id" in each for each in host.answers("churn@live"))
    host.change("DELETE", ALIAS)
    assert [each.status_code for each in host.ask("churn@live")] == [404, 404]
    # A deleted model is gone under each reference.
    for ref in ("churn", "churn:2", second):
        assert [each["model_id"] for each in host.answers(ref)] == [second] * 2
    host.change("DELETE", f"/v1/models/{second}")
    for ref in ("churn:2", second):
        assert [each.status_code for each in host.ask(ref)] == [404, 404]
    assert [each["model_id"] for each in host.answers("churn")] == [first] * 2
    host.change("POST", f"/v1/trash/{second}/restore")
    for ref in ("churn", "churn:2", second):
        assert [each["model_id"] for each in host.answers(ref)] == [second] * 2


# --- the cache -----------------------------------------------------------------------------------


class Looks:
    """A cache of models that counts its transactions."""

    def __init__(self, bench: Workbench, token: HostToken) -> None:
        self.count = 0
        self.reading = bench.db.reading
        self.cache = ModelCache(
            cast(Reading, self.look), bench.blobs, 10, lambda task: None, token=token.read
        )
        self.cache.recent.seconds = 3600.0

    def look(self, *given: Any) -> Any:
        self.count += 1
        return self.reading(*given)

    def find(self, ref: str) -> str:
        async def find() -> str:
            return (await turns.find_model(self.cache, OWNER, ref)).model_id

        return asyncio.run(find())


@pytest.fixture
def db(sqlite_url: str, tmp_path: Path) -> Iterator[Database]:
    tokens = HostTokens.of(tmp_path)
    tokens.models.create()
    found = Database(sqlite_url, tokens=tokens)
    yield found
    found.close()


@pytest.fixture
def bench(db: Database, tmp_path: Path) -> Workbench:
    bench = Workbench(db, tmp_path)
    dataset = bench.upload(table(80), label="left", positive="yes")
    bench.work()
    bench.submit(dataset)
    bench.work()
    return bench


def test_a_reference_is_looked_up_once(bench: Workbench) -> None:
    looks = Looks(bench, bench.db.tokens.models)
    for ref in ("rankboost", "rankboost:1"):
        looks.count = 0
        found = [looks.find(ref) for _ in range(3)]
        assert len(set(found)) == 1
        assert looks.count <= 2  # once to see whether the model is loaded, and once to load it


def test_requests_at_the_same_time_share_a_look_up(bench: Workbench) -> None:
    looks = Looks(bench, bench.db.tokens.models)
    looks.find("rankboost")
    bench.db.tokens.models.replace()
    looks.count = 0
    entered, leave = threading.Event(), threading.Event()

    def slowly(*given: Any) -> Any:
        entered.set()
        leave.wait()
        return Looks.look(looks, *given)

    looks.cache._reading = slowly  # type: ignore[assignment]

    async def ask() -> list[str]:
        asked = [asyncio.create_task(turns.find_model(looks.cache, OWNER, "rankboost"))]
        while not entered.is_set():
            await asyncio.sleep(0.001)
        asked += [
            asyncio.create_task(turns.find_model(looks.cache, OWNER, "rankboost")) for _ in range(5)
        ]
        await asyncio.sleep(0.01)
        asked[0].cancel()  # its connection is gone; the others still get their answer
        leave.set()
        return [(await each).model_id for each in asked[1:]]

    assert len(set(asyncio.run(ask()))) == 1
    assert looks.count == 1


def test_a_change_during_a_look_up_is_seen_by_the_next_request(bench: Workbench) -> None:
    db = bench.db
    with db.read() as session:
        bench.submit(session.scalars(select(Dataset.id)).one())
    bench.work()
    looks = Looks(bench, db.tokens.models)
    first, second = (looks.find(f"rankboost:{version}") for version in (1, 2))
    key = {"owner": OWNER, "name": "rankboost", "alias": "live"}
    alias = ModelAlias(**key, model_id=first, revision=1, updated_at=0.0)
    db.writing(lambda session: session.add(alias))

    def change_when_read(*given: Any) -> Any:
        found = db.reading(*given)
        db.writing(lambda session: session.execute(update(ModelAlias).values(model_id=second)))
        return found

    looks.reading = change_when_read  # type: ignore[assignment]  # it takes what it is given
    assert looks.find("rankboost@live") == first
    assert looks.find("rankboost@live") == second


def test_without_the_file_each_request_looks_up(bench: Workbench, tmp_path: Path) -> None:
    token = HostTokens.of(tmp_path / "missing").models
    token.create()
    assert token.read() is None
    looks = Looks(bench, token)
    looks.find("rankboost")
    looks.count = 0
    assert looks.find("rankboost") == looks.find("rankboost")
    assert looks.count == 2


def test_a_process_that_cannot_write_the_file_commits_all_the_same(
    bench: Workbench, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "folder"
    (folder / "models.token").mkdir(parents=True)
    other = Database(
        bench.db.url.render_as_string(hide_password=False), tokens=HostTokens.of(folder)
    )

    def commit() -> list[str]:
        caplog.clear()
        with other.write() as session:
            session.execute(update(Model).values(fit_seconds=7.0))
        return [each.levelname for each in caplog.records]

    assert (commit(), commit()) == (["WARNING"], [])  # a fault is logged once
    (folder / "models.token").rmdir()
    (folder / "models.token").touch()
    assert commit() == []
    (folder / "models.token").unlink()
    (folder / "models.token").mkdir()
    assert commit() == ["WARNING"]
    other.close()
    with bench.db.read() as session:
        assert session.scalars(select(Model.fit_seconds)).one() == 7.0


# --- what replaces the token ---------------------------------------------------------------------

TABLES: list[type[Model | ModelAlias | AliasFeedback]] = [Model, ModelAlias, AliasFeedback]


@pytest.mark.parametrize("rows", TABLES)
@pytest.mark.parametrize("change", [update, delete, "insert from select"])
def test_each_statement_replaces_the_token(db: Database, rows: Any, change: Any) -> None:
    of = rows.__table__
    if change == "insert from select":
        statement: Any = insert(rows).from_select(
            ["owner"], select(of.c.owner).where(of.c.owner == "")
        )
    else:
        statement = change(rows)
        statement = statement.values(owner="x") if change is update else statement
    before = db.tokens.models.read()
    with db.write() as session:
        session.execute(statement)
    assert db.tokens.models.read() != before


def test_a_flush_replaces_the_token_and_nothing_else_does(bench: Workbench) -> None:
    db = bench.db

    def changes(work: Callable[[Any], object]) -> bool:
        before = db.tokens.models.read()
        db.writing(work)
        return db.tokens.models.read() != before

    with db.read() as session:
        model_id = models.find(session, OWNER, "rankboost").id
    key = {"owner": OWNER, "name": "rankboost", "alias": "live"}
    alias = partial(ModelAlias, model_id=model_id, revision=1, updated_at=0.0)
    assert changes(lambda session: session.add(alias(**key)))
    assert changes(lambda session: setattr(session.get_one(Model, model_id), "fit_seconds", 7.0))
    assert changes(lambda session: session.delete(session.get_one(ModelAlias, tuple(key.values()))))
    assert not changes(lambda session: session.scalars(select(Model)).all())
    assert not changes(lambda session: session.execute(update(Dataset).values(name="x")))


def test_no_statement_passes_the_session_by() -> None:
    """Statements in words, and those of connections, are not noticed."""
    names = "|".join(rows.__tablename__ for rows in TABLES)
    written = re.compile(rf"(?:UPDATE|INTO|DELETE FROM)\W+(?:{names})\b", re.IGNORECASE)
    folder = Path(app.__file__).parent
    texts = {path: path.read_text() for path in folder.rglob("*.py")}
    found = [
        f"{path.name}:{node.lineno}"
        for path, text in texts.items()
        if written.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if written.search(node.value)
    ]
    assert found == []
