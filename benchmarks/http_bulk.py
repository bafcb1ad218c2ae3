"""POST score of many rows in every format, and infer with binary tensors: rows a second of the server's CPU, and of the
clock.

    python -m benchmarks.http_bulk [--rows 40000] [--seconds 1] [--rounds 100]

One uvicorn process with default settings serves a warm model of stumps on 20 features. One keep-alive connection from
another process sends the same body again and again, and takes the answer in the format named second. CPU is user and
system time of the server process, by Linux's clock ticks; formats take turns, and the best turn counts.

The limit is an ASGI function that reads the same body, discards it and answers nothing, on uvicorn as it comes, in a
process of its own; its turns alternate with those of the service. Below, the same work in this process without HTTP,
stage by stage.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv
import uvicorn
from starlette.types import Receive, Scope, Send

from app.access import service as keys
from app.datasets import service as datasets
from app.datasets.description import Format, describe
from app.ingest.formats import ARROW, CSV, NDJSON
from app.main import open_context
from app.platform import catalogue, migrate
from app.platform.settings import Settings
from app.scoring import json_rows
from app.scoring.service import Served
from app.scoring.table_rows import Bounds, TableOptions, read_body
from app.training import service
from benchmarks import at_least_one
from benchmarks.http_score import HOST, cpu_seconds, free_port, models_of, run_jobs

FEATURES, TRAINED_ON, TURNS = 20, 20_000, 3
MISSING = 0.02
JSON = "application/json"
TENSORS = "application/octet-stream"
TENSOR_DOOR = "binary tensors, the same back"
OWNER = "bench"


def as_csv(table: pa.Table) -> bytes:
    """The table as text."""
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def as_arrow(table: pa.Table) -> bytes:
    """The table as a stream of one batch."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_tensors(table: pa.Table) -> bytes:
    """The table as one binary tensor of the Open Inference Protocol: its JSON has `TENSOR_HEAD` bytes."""
    X = np.column_stack([column.to_numpy() for column in table.columns])
    size = {"binary_data_size": X.nbytes}
    tensor = {"name": "x", "shape": X.shape, "datatype": "FP64", "parameters": size}
    asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    return orjson.dumps(asked).ljust(TENSOR_HEAD) + X.tobytes()


TENSOR_HEAD = 256


def draw(rows: int, *, label: bool, seed: int) -> pa.Table:
    """Rows of numbers with six digits, as tables have them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, FEATURES)).round(5)
    columns = {f"feature_{j}": X[:, j] for j in range(FEATURES)}
    if label:
        columns["label"] = (X[:, :8].sum(axis=1) + rng.normal(size=rows) > 2).astype(np.int8)
    return pa.table(columns)


def bodies(rows: int) -> dict[str, tuple[str, str, bytes]]:
    """What is sent, by its name: its type, the type of the answer, the bytes."""
    table = draw(rows, label=False, seed=1)
    narrow = table.cast(pa.schema([(name, pa.float32()) for name in table.column_names]))
    names, lists = table.column_names, [list(row.values()) for row in table.to_pylist()]
    rng = np.random.default_rng(2)
    exact = rng.normal(size=(rows // 2, FEATURES)).tolist()
    gaps = [
        [None if gone else x for x, gone in zip(row, rng.random(FEATURES) < MISSING, strict=True)]
        for row in lists
    ]
    lines = b"".join(map(orjson.dumps, table.slice(0, rows // 3).to_pylist())).replace(
        b"}{", b"}\n{"
    )
    return {
        "Arrow, Arrow back": (ARROW, ARROW, as_arrow(table)),
        "Arrow of float32, Arrow back": (ARROW, ARROW, as_arrow(narrow)),
        "Arrow, JSON back": (ARROW, JSON, as_arrow(table)),
        "CSV, JSON back": (CSV, JSON, as_csv(table)),
        "CSV, CSV back": (CSV, CSV, as_csv(table)),
        "JSON columns": (JSON, JSON, orjson.dumps({"columns": names, "data": lists})),
        "JSON columns, 17 digits": (JSON, JSON, orjson.dumps({"columns": names, "data": exact})),
        "JSON columns, 2 % null": (JSON, JSON, orjson.dumps({"columns": names, "data": gaps})),
        "JSON rows": (JSON, JSON, orjson.dumps({"rows": table.slice(0, rows // 3).to_pylist()})),
        "NDJSON": (NDJSON, NDJSON, lines),
        TENSOR_DOOR: (TENSORS, TENSORS, as_tensors(table)),
    }


def train(settings: Settings, rounds: int, n_rows: int) -> tuple[str, str, Served]:
    """Train the model in this process; returns its id, a key, and the model as it is served."""
    context = open_context(settings)
    _, secret = context.db.writing(keys.create, OWNER, "bench", ["score"])
    text = as_csv(draw(n_rows, label=True, seed=0))
    with context.blobs.writer("uploads") as upload, context.db.write() as session:
        upload.write(text)
        stored = datasets.StoredUpload.of(catalogue.commit(session, upload), Format(CSV, None))
        said = describe({"name": "bench", "label": "label"})
        dataset = datasets.accept(session, settings, OWNER, said, stored)
    run_jobs(context)
    request = service.TrainRequest(
        dataset.id,
        {"name": "rankboost", "n_rounds": rounds},
        {"metric": "auc"},
        {"method": "holdout", "fraction": 0.25},
    )
    with context.db.write() as session:
        job = service.submit(session, settings, OWNER, request)
    run_jobs(context)
    served = models_of(context).find(OWNER, job.spec["model_name"])
    context.db.close()
    return served.model_id, secret, served


class Cost(NamedTuple):
    """Seconds of a request: the server's CPU time, and elapsed time."""

    cpu: float
    wall: float


class Server(NamedTuple):
    """A server process, and a client of it."""

    pid: int
    client: httpx.Client

    def measure(self, address: str, body: bytes, headers: dict[str, str], seconds: float) -> Cost:
        """Return the cost of a request, repeated until the server has used so much CPU time."""
        for _ in range(2):
            self.client.post(address, content=body, headers=headers).raise_for_status()
        begun, before, requests, spent = time.perf_counter(), cpu_seconds([self.pid]), 0, 0.0
        while spent < seconds:  # of many ticks of the clock
            self.client.post(address, content=body, headers=headers).raise_for_status()
            requests, spent = requests + 1, cpu_seconds([self.pid]) - before
        return Cost(spent / requests, (time.perf_counter() - begun) / requests)


async def discard(scope: Scope, receive: Receive, send: Send) -> None:
    """Read the body, and answer nothing."""
    while (await receive()).get("more_body", False):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def over_http(
    service: Server,
    limit: Server,
    model_id: str,
    secret: str,
    sent: dict[str, tuple[str, str, bytes]],
    seconds: float,
) -> None:
    """Print rows a second of each format, beside those of the limit."""
    headers = {"Authorization": f"Bearer {secret}"}
    costs: dict[str, list[tuple[Cost, Cost]]] = {name: [] for name in sent}
    for _ in range(TURNS):
        for name, (kind, answer, body) in sent.items():
            address, asked = f"/v1/models/{model_id}/score", dict(headers)
            if name == TENSOR_DOOR:
                address = f"/oip/v2/models/{model_id}/infer"
                asked["Inference-Header-Content-Length"] = str(TENSOR_HEAD)
            asked |= {"Content-Type": kind, "Accept": answer}
            terms = (address, body, asked, seconds)
            costs[name].append((service.measure(*terms), limit.measure(*terms)))
    print("| sent, and answered | MB | M rows/s of CPU | the limit | share | M rows/s |")
    print("|---|---|---|---|---|---|")
    for name, pairs in costs.items():
        ours, least = (min(turns) for turns in zip(*pairs, strict=True))
        rows, share = ROWS_OF[name] / 1e6, least.cpu / ours.cpu
        print(
            f"| {name} | {len(sent[name][2]) / 1e6:.1f} | {rows / ours.cpu:.2f} | "
            f"{rows / least.cpu:.2f} | {share:.0%} | {rows / ours.wall:.2f} |"
        )


ROWS_OF: dict[str, int] = {}


def within(served: Served, sent: dict[str, tuple[str, str, bytes]]) -> None:
    """Print the CPU time of each stage, a row."""
    bounds = Bounds(2_000, 64 << 20, 64 << 20)

    def read(name: str) -> Callable[[], object]:
        kind, _, body = sent[name]
        if kind == JSON:
            return lambda: json_rows.read(served.features, body, json_rows.IdAndIgnored(), bounds)

        def work() -> int:
            table = Format(kind, None)
            reader, found = read_body(body, table, served.features, TableOptions(), None, bounds)
            batches = reader.batches(found)
            return sum(X.size for batch in batches for X in batch.blocks(FEATURES))

        return work

    X = np.random.default_rng(1).normal(size=(ROWS_OF["CSV, JSON back"], FEATURES))
    scores = served.ranker.score_rows(X)
    assert served.curve is not None
    stages: dict[str, tuple[int, Callable[[], object]]] = {
        f"read {name.partition(', ')[0] if name.endswith(' back') else name}": (
            ROWS_OF[name],
            read(name),
        )
        for name in sent
        if name != TENSOR_DOOR
    }
    stages["score"] = len(X), lambda: served.ranker.score_rows(X)
    stages["place on the curve"] = len(X), lambda: served.curve.locate(scores)  # type: ignore[union-attr]
    print("\n| stage | ns a row |")
    print("|---|---|")
    for name, (rows, work) in stages.items():
        work()
        times = []
        for _ in range(5):
            begun = time.process_time()
            work()
            times.append(time.process_time() - begun)
        print(f"| {name} | {min(times) / rows * 1e9:.0f} |")


def main() -> None:
    """Train, serve, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=at_least_one, default=40_000)
    parser.add_argument("--trained-on", type=at_least_one, default=TRAINED_ON, help="rows")
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of a turn")
    parser.add_argument("--rounds", type=at_least_one, default=100)
    parser.add_argument("--discard", type=int, metavar="PORT", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.discard:
        uvicorn.run(discard, host=HOST, port=args.discard, log_level="error", access_log=False)
        return
    sent = bodies(args.rows)
    parts = {"JSON rows": 3, "NDJSON": 3, "JSON columns, 17 digits": 2}
    ROWS_OF.update({name: args.rows // parts.get(name, 1) for name in sent})
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-") as folder:
        settings = Settings(state_dir=Path(folder))
        migrate.upgrade(settings.sqlalchemy_url)
        model_id, secret, served = train(settings, args.rounds, args.trained_on)
        with ExitStack() as stack:
            log = stack.enter_context((Path(folder) / "server.log").open("wb"))

            def start(module: str, *options: str) -> Server:
                port = free_port()
                command = [sys.executable, "-m", module, *options, str(port)]
                process = subprocess.Popen(command, stdout=log, stderr=log)
                stack.callback(process.wait)
                stack.callback(process.terminate)
                wait_for(port, process)
                client = httpx.Client(base_url=f"http://{HOST}:{port}", timeout=60)
                return Server(process.pid, stack.enter_context(client))

            service = start("benchmarks.http_score", "--serve", folder)
            limit = start("benchmarks.http_bulk", "--discard")
            over_http(service, limit, model_id, secret, sent, args.seconds)
        within(served, sent)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    while process.poll() is None:
        try:
            httpx.get(f"http://{HOST}:{port}/health/live")
            return
        except httpx.HTTPError:
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


if __name__ == "__main__":
    main()
