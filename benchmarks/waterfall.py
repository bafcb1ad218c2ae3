"""Where the time of a small job and of a score goes: `python -m benchmarks.waterfall [--tours 20]`.

In this process, without HTTP connections and waits between processes: the breast cancer table (569 × 30) is stored and
read, a model of 100 stumps trained with `holdout`, one row scored by the application, and 25,000 rows of Arrow. Two
callbacks of `sys.monitoring` time each function below; the time of a function does not include that of the functions
below it. The result is the median over the tours.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from types import CodeType
from typing import Any

import numpy as np
import pyarrow as pa
from sqlalchemy.engine.default import DefaultDialect
from starlette.types import Message, Scope

from app.access import service as keys
from app.access.authentication import Authenticator
from app.datasets import service as datasets
from app.datasets.description import Format, describe
from app.http import bodies
from app.ingest import build
from app.ingest.formats import ARROW, CSV
from app.jobs import execution, queue
from app.main import create_app
from app.models import calibrations, column_drift
from app.platform import catalogue, migrate
from app.platform.settings import Settings
from app.scoring import answers, endpoints, features, table_rows, turns
from app.scoring.service import Served
from app.training import bipartite, fitting, result, service, tasks
from benchmarks import at_least_one, http_bulk
from benchmarks.http_score import run_jobs
from core.boosting import stumps
from core.metrics import curve
from core.probability import proper_scores
from examples.tumours import write_table

OWNER, ROWS, PIECE = "bench", 25_000, 1 << 18
PATHS: dict[str, dict[str, Callable[..., Any]]] = {
    "upload": {
        "accept": datasets.accept,
        "claim": queue.claim,
        "prepare": execution.prepare,
        "read the table": build.ingest,
        "publish the files": execution.publish,
        "complete": execution.complete,
        "commits": DefaultDialect.do_commit,
    },
    "job": {
        "submit": service.submit,
        "claim": queue.claim,
        "prepare": execution.prepare,
        "read the table": bipartite.BipartiteTable.__init__,
        "fit": fitting.fit_members,
        "evaluate": bipartite.BipartiteSplitData.evaluate,
        "baselines": fitting.fit_baseline,
        "calibrate": calibrations.learn,
        "reliability": proper_scores.reliability,
        "bins for drift": column_drift.profile_table,
        "compare with the baselines": result.compare_baselines,
        "describe the model": result.put_together,
        "rows for reasons": tasks._rows_to_interpret,
        "publish the files": execution.publish,
        "complete": execution.complete,
        "commits": DefaultDialect.do_commit,
    },
    "GET of a score": {
        "key": Authenticator.authenticate,
        "model": turns.find_model,
        "row": features.FeatureIndex.row_of_query,
        "score and place": Served.score_one,
        "response": endpoints.ScoreRow._answer,
    },
    "POST of 25,000 rows of Arrow": {
        "key": Authenticator.authenticate,
        "receive the body": bodies.receive_whole,
        "read": table_rows.RowReader.batches,
        "matrix": table_rows.Batch.blocks,
        "score": stumps.StepFunctions.score,
        "place": curve.RocCurve.locate,
        "response": answers.ScoresResponse.write,
    },
}


class Stages:
    """Seconds of each function of a path, without those of the functions that it calls."""

    def __init__(self, path: str) -> None:
        self._names: dict[CodeType, str] = {
            function.__code__: name for name, function in PATHS[path].items()
        }
        self._running: defaultdict[int, list[float]] = defaultdict(list)  # by thread
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time the functions during the block."""
        monitoring, tool = sys.monitoring, sys.monitoring.PROFILER_ID
        events = monitoring.events
        monitoring.use_tool_id(tool, "waterfall")
        for event in (events.PY_START, events.PY_RESUME):
            monitoring.register_callback(tool, event, self._begin)
        for event in (events.PY_RETURN, events.PY_YIELD):
            monitoring.register_callback(tool, event, self._end)
        every = events.PY_START | events.PY_RESUME | events.PY_RETURN | events.PY_YIELD
        for code in self._names:
            monitoring.set_local_events(tool, code, every)
        begun = time.perf_counter()
        try:
            yield
        finally:
            whole = time.perf_counter() - begun
            for code in self._names:
                monitoring.set_local_events(tool, code, events.NO_EVENTS)
            monitoring.free_tool_id(tool)
        self.seconds["all else"] = whole - sum(self.seconds.values())
        self.seconds["together"] = whole

    def _begin(self, code: CodeType, at: int) -> None:
        self._running[threading.get_ident()].append(time.perf_counter())

    def _end(self, code: CodeType, at: int, value: object) -> None:
        running = self._running[threading.get_ident()]
        spent = time.perf_counter() - running.pop()
        self.seconds[self._names[code]] += spent
        # What this call took is not that of its caller, whose clock begins later by as much.
        running[:] = [begun + spent for begun in running]


class Application:
    """The application in this process, and the model that it scores with."""

    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings)
        self.context = self.app.state.context
        self.model = ""
        _, self.secret = self.context.db.writing(keys.create, OWNER, "bench", ["score"])

    def upload(self, table: bytes) -> str:
        """Store and read a table; returns its id."""
        db, blobs, settings = self.context.db, self.context.blobs, self.context.settings
        with blobs.writer("uploads") as upload, db.write() as session:
            upload.write(table)
            stored = datasets.StoredUpload.of(catalogue.commit(session, upload), Format(CSV, None))
            said = describe({"name": OWNER, "label": "diagnosis", "positive": "malignant"})
            dataset_id = datasets.accept(session, settings, OWNER, said, stored).id
        run_jobs(self.context)
        return dataset_id

    def train(self, dataset_id: str) -> None:
        """Train a model of stumps."""
        request = service.TrainRequest(
            dataset_id,
            {"name": "rankboost", "n_rounds": 100},
            {"metric": "auc"},
            {"method": "holdout", "fraction": 0.25},
        )
        with self.context.db.write() as session:
            job = service.submit(session, self.context.settings, OWNER, request)
            self.model = job.spec["model_name"]
        run_jobs(self.context)

    async def ask(self, method: str, query: str = "", body: bytes = b"") -> None:
        """Score by name."""
        path = f"/v1/models/{self.model}/score"
        headers = {
            "host": "bench",
            "authorization": f"Bearer {self.secret}",
            "content-type": ARROW,
            "accept": ARROW if body else "application/json",
            "content-length": str(len(body)),
        }
        scope: Scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "root_path": "",
        }
        pieces = [body[start : start + PIECE] for start in range(0, len(body), PIECE)] or [b""]
        pieces.reverse()

        async def receive() -> Message:
            if not pieces:
                await asyncio.Event().wait()  # the client stays connected
            return {"type": "http.request", "body": pieces.pop(), "more_body": bool(pieces)}

        async def send(message: Message) -> None:
            assert message.get("status", 200) == 200, message

        await self.app(scope, receive, send)


async def measure(settings: Settings, tours: int) -> None:
    """Print a table for each path."""
    bench = Application(settings)
    table = Path(settings.state_dir) / "tumours.csv"
    write_table(table)
    text = table.read_bytes()
    names = text.partition(b"\n")[0].decode().split(",")[:-1]
    query = "&".join(f"{name}={index / 8}" for index, name in enumerate(names))
    rng = np.random.default_rng(0)
    drawn = pa.table({name: rng.normal(size=ROWS) for name in names})
    body = http_bulk.as_arrow(drawn)
    dataset_id = bench.upload(text)

    async def upload() -> None:
        bench.upload(text)

    async def job() -> None:
        bench.train(dataset_id)

    paths: dict[str, Callable[[], Awaitable[None]]] = {
        "upload": upload,
        "job": job,
        "GET of a score": lambda: bench.ask("GET", query),
        "POST of 25,000 rows of Arrow": lambda: bench.ask("POST", body=body),
    }
    async with bench.app.router.lifespan_context(bench.app):
        for path, task in paths.items():
            for _ in range(3):
                await task()
            found: dict[str, list[float]] = defaultdict(list)
            for _ in range(tours):
                stages = Stages(path)
                with stages.timed():
                    await task()
                for name in (*PATHS[path], "all else", "together"):
                    found[name].append(stages.seconds[name])
            print(f"\n| {path} | ms |\n|---|---:|")
            for name, seconds in found.items():
                print(f"| {name} | {1e3 * median(seconds):.3f} |", flush=True)


def main() -> None:
    """Measure all paths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tours", type=at_least_one, default=20)
    tours: int = parser.parse_args().tours
    if sys.version_info < (3, 12):
        parser.error("needs Python 3.12 or later, for sys.monitoring")
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-") as folder:
        settings = Settings(state_dir=Path(folder))
        migrate.upgrade(settings.sqlalchemy_url)
        asyncio.run(measure(settings, tours))


if __name__ == "__main__":
    main()
