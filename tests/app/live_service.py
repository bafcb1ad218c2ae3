"""The real application on a real socket, over a migrated database of the test's own; jobs run inside the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import httpx
import numpy as np
from sqlalchemy import delete, insert

from app.access import service as keys
from app.feedback.known import KnownRows
from app.http.dependencies import Context
from app.http.server import DrainingServer, server_config
from app.jobs import execution, queue
from app.jobs.fetching import Fetching
from app.main import create_app
from app.platform.blobs import FolderStore
from app.platform.encryption import make_keys
from app.platform.errors import Overtaken
from app.platform.ids import new_id
from app.platform.settings import Settings
from app.platform.sql import Base
from app.platform.tables import Measurement, Model, ModelAlias
from tests.waiting import patience

OWNER, STRANGER = "ours", "theirs"
NAMES = ["age", "income", "score 1"]


def table(rows: int = 120, seed: int = 0) -> str:
    """A CSV of three features, one of them with missing values, and a label of two words."""
    rng = np.random.default_rng(seed)
    lines = [",".join([*NAMES, "left"])]
    for age, income, score in rng.normal(size=(rows, 3)).tolist():
        left = "yes" if age + income + rng.normal() * 0.5 > 0 else "no"
        lines.append(f"{age:.4f},{income:.4f},{'' if score > 1 else f'{score:.4f}'},{left}")
    return "\n".join(lines) + "\n"


@dataclass
class Service:
    """A running service and what a test does to it."""

    url: str
    settings: Settings
    context: Context
    app: Any
    server: DrainingServer
    _clients: list[httpx.Client] = field(default_factory=list)

    @property
    def blobs(self) -> FolderStore:
        """The blob store, whose files a test can see."""
        return cast(FolderStore, self.context.blobs)

    def key(
        self, owner: str = OWNER, scopes: Iterable[str] = keys.SCOPES, name: str = "test"
    ) -> str:
        """Make a key; returns its secret."""
        return self.context.db.writing(keys.create, owner, name, scopes)[1]

    def client(self, secret: str | None = None, **headers: str) -> httpx.Client:
        """A client that sends this key, or none."""
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        # Without TLS's certificates: to read them takes longer than most tests.
        client = httpx.Client(base_url=self.url, headers=headers, timeout=patience(), verify=False)
        self._clients.append(client)
        return client

    def work(self) -> int:
        """Do what a worker does, until nothing is queued; returns how many jobs were run."""
        self.context.preload()  # as a worker: the service's own thread may be importing the same modules
        db, blobs, settings = self.context.db, self.context.blobs, self.settings
        count = 0
        while (claim := db.writing(queue.claim, settings, "test-worker")) is not None:
            count += 1
            try:
                workdir = blobs.staging_dir()
                payload = execution.fetch(
                    blobs, db.reading(execution.prepare, settings, claim, workdir)
                )
                payload = execution.fetch_source(settings, claim, payload, Fetching(settings))
                result = execution.run(payload, lambda step, of, info: None)
                published = execution.publish(blobs, claim, result)
                db.writing(execution.complete, claim, result, published)
            except Overtaken as error:
                db.writing(queue.give_back, claim, str(error))
            except Exception as error:
                problem, at_fault = execution.problem_of(error)
                db.writing(queue.fail, claim, problem)  # or who follows the job would wait for good
                if not at_fault:
                    raise
        return count

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Do the work as it comes, in a thread, for the length of a block."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.05):
                self.work()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def upload(self, client: httpx.Client, text: str | None = None, **fields: str) -> str:
        """Upload a table and have it read; returns the dataset's id."""
        params = {"name": "people", "label": "left", "positive": "yes"} | fields
        answer = client.post(
            "/v1/datasets",
            params=params,
            content=(table() if text is None else text).encode(),
            headers={"Content-Type": "text/csv"},
        )
        assert answer.status_code == 202, answer.text
        self.work()
        dataset_id: str = answer.json()["id"]
        return dataset_id

    def train(self, client: httpx.Client, dataset_id: str, **job: Any) -> dict[str, Any]:
        """Train on a dataset, without baselines unless they are requested; returns the finished job.

        The default of a small table is 21 fits, so a quarter of its rows is held out instead.
        """
        body = {
            "dataset_id": dataset_id,
            "name": "churn",
            "algorithm": {"name": "rankboost", "n_rounds": 10},
            "baselines": False,
            "validation": {"method": "holdout"},
        } | job
        answer = client.post("/v1/jobs", json=body)
        assert answer.status_code == 202, answer.text
        self.work()
        finished: dict[str, Any] = client.get(answer.headers["Location"]).json()
        return finished

    def lengthen_curve(self, model_id: str, points: int) -> None:
        """Write a ROC curve of so many points for a model, as if so many rows of different scores had judged it."""
        rng = np.random.default_rng(0)
        positive = np.sort(rng.random(points - 1)) + rng.normal(0, 0.3, points - 1) < 0.5
        tpr, fpr = (np.cumsum(each) / each.sum() for each in (positive, ~positive))
        columns = {
            "fpr": np.concatenate(([0.0], fpr)),
            "tpr": np.concatenate(([0.0], tpr)),
            "thresholds": np.concatenate(([np.inf], np.linspace(3, -3, points - 1))),
        }
        with self.context.db.write() as session:
            row = session.get_one(Measurement, Measurement.id_of(model_id, "validation"))
            row.points = points
            for name, values in columns.items():
                setattr(row, name, values.astype("<f8").tobytes())
            counts = {"positive": positive.sum().item(), "negative": (~positive).sum().item()}
            for name, count in counts.items():
                rows = {f"{name}s": count, f"{name}_weight": float(count)}
                row.metrics = row.metrics | rows | {f"{name}_effective": float(count)}

    def copy_model(self, model_id: str, numbers: Iterable[int]) -> None:
        """Write copies of a model's row: ten versions of `m0`, of `m1` and so on; the fifth has the alias `live`."""
        with self.context.db.write() as session:
            first = session.get_one(Model, model_id)
            row = {each.key: getattr(first, each.key) for each in Model.__mapper__.column_attrs}
            copies = [
                row
                | {"id": new_id("mdl"), "job_id": new_id("job")}
                | {"name": f"m{n // 10}", "version": 1 + n % 10}
                for n in numbers
            ]
            aliases = [
                {"owner": row["owner"], "name": each["name"], "alias": "live"}
                | {"model_id": each["id"], "revision": 1, "updated_at": row["created_at"]}
                for each in copies
                if each["version"] == 5
            ]
            session.execute(insert(Model), copies)
            if aliases:
                session.execute(insert(ModelAlias), aliases)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Have others hold every place for long computations, for the length of a block."""
        turns = self.context.computations
        with ExitStack() as stack:
            for n in count():
                if turns.refusal(f"other{n}") is not None:
                    break
                stack.enter_context(turns.hold(f"other{n}"))
            yield

    @contextmanager
    def setting(self, **values: Any) -> Iterator[None]:
        """Change settings that are read with each request, for the length of a block."""
        before = {name: getattr(self.settings, name) for name in values}
        vars(self.settings).update(values)
        try:
            yield
        finally:
            vars(self.settings).update(before)

    def empty(self) -> None:
        """Remove all rows and all blobs, and what is remembered of keys, outcomes and denied requests."""
        self.close()
        self.app.state.denials.count()
        self.app.state.denials.write()
        with self.context.db.write() as session:
            for table in reversed(Base.metadata.sorted_tables):
                session.execute(delete(table))
        for path in self.blobs.root.rglob("*"):
            if path.is_file():
                path.unlink()
        self.app.state.authenticator.known.recent.clear()
        self.app.state.known_rows = KnownRows()

    def close(self) -> None:
        """Close the clients."""
        while self._clients:
            self._clients.pop().close()


@contextmanager
def running(settings: Settings, port: int = 0) -> Iterator[Service]:
    """Serve the application from a thread of this process, at a port of the system's choice unless one is given."""
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    make_keys(settings.own_secrets_keys)  # as `rankwright serve` does
    listener = socket.create_server(("127.0.0.1", port))  # connections queue from now on
    app = create_app(settings)
    config = server_config(app, settings, log_level="critical", timeout_graceful_shutdown=1)
    server = DrainingServer(config, app.state.context.drain, settings.drain_seconds)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    service = Service(
        f"http://127.0.0.1:{listener.getsockname()[1]}", settings, app.state.context, app, server
    )
    try:
        yield service
    finally:
        service.close()
        server.should_exit = True
        thread.join()
        listener.close()
