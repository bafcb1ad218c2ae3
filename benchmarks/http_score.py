"""GET score against a FastAPI endpoint that does the same, and against an app that does nothing: requests a second.

    python -m benchmarks.http_score [--pairs 60] [--seconds 0.25] [--rows 20000] [--rounds 500]
        [--commits 20] [--doors | --probabilities | --feedback | --processes 2]

One uvicorn process with default settings serves a warm model of 500 stumps on 30 features. The plain endpoint is what
every other route is: FastAPI calls it with the usual dependencies, behind the same middleware and authentication. It
reads and scores the same 30 query parameters and answers the same. The model is named by its id, its name, its name and
version, an alias, and an alias whose decisions are recorded. 16 keep-alive connections from another process
send 1,000 distinct queries. The bare endpoint is an ASGI function that answers a fixed body on uvicorn as it comes, in
a process of its own. Short runs of all alternate, so that whatever else the machine does hits all; each ratio is
the median over the turns.

With `--commits N`, N changes a second to a table that no score depends on are committed meanwhile.

With `--doors` the turns are POSTs of one row instead: our own, as JSON, and infer of the Open Inference Protocol with
the bytes that tritonclient sends, as one binary tensor per feature and as one of all features.

With `--probabilities` the turns are GETs of a score: of a model without a calibration, and of the same ranker with one,
whose answer has the probability; with the options of probabilities, too.

With `--feedback` the turns are GETs by an alias: whose decisions are not recorded, and are recorded with all features
or with two. What seals the decisions runs in the same process, so its cost is part of the difference.

With `--processes N`, `rankwright api` with one process and with N are asked in turns for scores instead. The load takes
CPU, too, and is shown: where it shares the cores with the service, requests a second cannot show how the service
scales, but its CPU a request can: what N processes need more for a request than one does is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import orjson
import uvicorn
import uvloop
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.access import service as keys
from app.access.authentication import GuardedRoute, needs
from app.datasets import service as datasets
from app.datasets.description import Format, describe
from app.feedback import service as feedback
from app.feedback.schemas import FeedbackRequest
from app.http.dependencies import CallerDep, Context
from app.http.server import server_config
from app.jobs import execution, queue
from app.main import app_factory, open_context
from app.models import aliases
from app.models import service as model_service
from app.models.alias_schemas import AliasGuarantee
from app.operations import repository
from app.platform import catalogue, migrate
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import Model, Upkeep
from app.scoring import turns
from app.scoring.dependencies import ModelsDep
from app.scoring.service import ModelCache
from app.training import service
from benchmarks import at_least_one

FEATURES, ROUNDS, QUERIES, CONNECTIONS = 30, 500, 1_000, 16
FEW = ["feature_0", "feature_1"]
PLAIN_PATH = "/v1/plain/{ref}/score"
HOST = "127.0.0.1"


BODY = b'{"model_id":"mdl_%s","score":1.3721234567890123,"fpr":0.0123,"tpr":0.41}' % (b"0" * 32)
HEADERS = [
    (b"cache-control", b"private"),
    (b"content-type", b"application/json"),
    (b"content-length", b"%d" % len(BODY)),
]


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a fixed body, and do nothing else."""
    await send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
    await send({"type": "http.response.body", "body": BODY})


plain_router = APIRouter(route_class=GuardedRoute)
ANY_QUERY = {"parameters": [{"name": "features", "in": "query", "schema": {"type": "object"}}]}


@plain_router.get(PLAIN_PATH, openapi_extra=ANY_QUERY)
@needs("score")
async def score_plainly(
    ref: str, request: Request, models: ModelsDep, caller: CallerDep
) -> Response:
    """Score one row."""
    served = await turns.find_model(models, caller.owner, ref)
    row = served.features.row_of_query(request.scope["query_string"])
    score, fpr, tpr = served.score_one(row)
    found = {"model_id": served.model_id, "score": score, "fpr": fpr, "tpr": tpr}
    if served.calibration is not None:
        found["probability"] = served.calibration.calibration.probability_of(score)
    headers = {"Cache-Control": "private", "ETag": served.entity_tag(row)}
    return Response(orjson.dumps(found), media_type="application/json", headers=headers)


def serve(state_dir: Path, port: int) -> None:
    """Run the server process."""
    os.environ["RANKWRIGHT_STATE_DIR"] = str(state_dir)
    app = app_factory()
    app.router.routes[:0] = plain_router.routes
    settings = app.state.context.settings
    uvicorn.Server(server_config(app, settings, host=HOST, port=port, log_config=None)).run()


def train(settings: Settings, n_rows: int, rounds: int) -> tuple[str, str, list[dict[str, str]]]:
    """Train the model in this process; returns its id, a key and rows to score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, FEATURES))
    y = X[:, :8].sum(axis=1) + rng.normal(size=len(X)) > 2
    names = [f"feature_{j}" for j in range(FEATURES)]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*names, "label"])
    writer.writerows(
        [*map(repr, row), int(label)] for row, label in zip(X.tolist(), y, strict=True)
    )
    model_id, secret = train_on(settings, text.getvalue(), rounds)
    rows = [
        {name: f"{value:.6g}" for name, value in zip(names, row, strict=True)}
        for row in rng.normal(size=(QUERIES, FEATURES)).tolist()
    ]
    return model_id, secret, rows


def train_on(settings: Settings, table: str, rounds: int = ROUNDS) -> tuple[str, str]:
    """Upload a CSV with a column `label` and train on it in this process; returns the model's id and a key."""
    context = open_context(settings)
    _, secret = context.db.writing(keys.create, "bench", "bench", ["score"])
    with context.blobs.writer("uploads") as upload, context.db.write() as session:
        upload.write(table.encode())
        stored = datasets.StoredUpload.of(
            catalogue.commit(session, upload), Format("text/csv", None)
        )
        description = describe({"name": "bench", "label": "label"})
        dataset = datasets.accept(session, settings, "bench", description, stored)
    run_jobs(context)
    request = service.TrainRequest(
        dataset.id,
        {"name": "rankboost", "n_rounds": rounds},
        {"metric": "auc"},
        {"method": "holdout", "fraction": 0.25},
    )
    with context.db.write() as session:
        job = service.submit(session, settings, "bench", request)
    run_jobs(context)
    model_id = models_of(context).find("bench", job.spec["model_name"]).model_id
    context.db.close()
    return model_id, secret


def forget_calibration(settings: Settings, model_id: str) -> None:
    """Leave a model without its calibration, as one of an earlier version."""
    context = open_context(settings)

    def forget(session: Session) -> None:
        session.get_one(Model, model_id).calibration_version = None

    context.db.writing(forget)
    context.db.close()


def point_aliases(settings: Settings, model_id: str) -> dict[str, str]:
    """Point aliases with the same guarantee at a model, one for each extent of recording; returns their references."""
    context = open_context(settings)
    named = {}
    for alias, recorded in {"off": None, "all": {}, "two": {"features": FEW}}.items():
        with context.db.write() as session:
            name = model_service.find(session, "bench", model_id).name
            guarantee = AliasGuarantee(flagged=0.05).as_stored()
            aliases.set_alias(
                session, "bench", name, alias, model_id, guarantee=guarantee, if_revision=None
            )
            if recorded is not None:
                stored = FeedbackRequest.model_validate(recorded).as_stored()
                feedback.replace(
                    session, "bench", name, alias, stored, author=None, if_revision=None
                )
        named[alias] = f"{name}@{alias}"
    context.db.close()
    return named


@contextmanager
def committing(settings: Settings, per_second: int) -> Iterator[None]:
    """Meanwhile, commit so many changes a second to a table that no score depends on."""
    if per_second == 0:
        yield
        return
    context = open_context(settings)
    ended = threading.Event()

    def commit() -> None:
        while not ended.wait(1 / per_second):
            context.db.writing(repository.note_success, Upkeep.BACKUP)

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        context.db.close()


def models_of(context: Context) -> ModelCache:
    """The models as the server keeps them."""
    return ModelCache(context.db.reading, context.blobs, 10, context.background.add)


def run_jobs(context: Context) -> None:
    """Do what a worker does, until nothing is queued."""
    db, blobs, settings = context.db, context.blobs, context.settings
    while (claim := db.writing(queue.claim, settings, "bench")) is not None:
        workdir = blobs.staging_dir()
        payload = execution.fetch(blobs, db.reading(execution.prepare, settings, claim, workdir))
        result = execution.run(payload, lambda step, of, info: None)
        published = execution.publish(blobs, claim, result)
        db.writing(execution.complete, claim, result, published)


class Client(asyncio.Protocol):
    """One keep-alive connection that sends the next request as soon as an answer is whole, unless it rests."""

    def __init__(self, requests: Sequence[bytes], start: int) -> None:
        self.requests = requests
        self._next = start
        self._pending = b""
        self._transport: Any = None
        self.answered = 0
        self._resting = False
        self.refusal: str | None = None

    def connection_made(self, transport: Any) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Count a whole answer and send on."""
        self._pending += data
        end = self._pending.find(b"\r\n\r\n")
        if end < 0:
            return
        if not self._pending.startswith(b"HTTP/1.1 200"):
            # An exception here would only be logged: whoever counts the answers raises it.
            self.refusal = self._pending.decode("utf-8", "replace")
            return
        at = self._pending.find(b"\r\ncontent-length: ") + 18
        length = int(self._pending[at : self._pending.find(b"\r", at)])
        if len(self._pending) == end + 4 + length:
            self._pending = b""
            self.answered += 1
            if self.requests:
                self._send()
            else:
                self._resting = True

    def send(self, requests: Sequence[bytes]) -> None:
        """Send these from now on; none of them lets the connection rest."""
        self.requests = requests
        if self._resting and requests:
            self._resting = False
            self._send()

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def _send(self) -> None:
        self._transport.write(self.requests[self._next % len(self.requests)])
        self._next += 1


class Load:
    """All connections, sending one kind of request at a time."""

    def __init__(self, clients: list[Client], server: Sequence[int]) -> None:
        self._clients = clients
        self._server = server

    @classmethod
    async def open(cls, port: int, requests: Sequence[bytes], *server: int) -> Load:
        """Connect."""
        loop = asyncio.get_running_loop()
        step = len(requests) // CONNECTIONS
        clients = []
        for i in range(CONNECTIONS):
            _, client = await loop.create_connection(
                partial(Client, requests, i * step), HOST, port
            )
            clients.append(client)
        return cls(clients, server)

    async def run(self, requests: Sequence[bytes], seconds: float) -> tuple[int, float, float]:
        """Send these for a while; returns how many were answered, in what time, and the server's CPU time.

        Raises RuntimeError for an answer other than 200, or where none came.
        """
        for client in self._clients:
            client.send(requests)
        await asyncio.sleep(0.02)  # till the last of the other kind are answered
        begun = time.perf_counter(), cpu_seconds(self._server), self._answered()
        await asyncio.sleep(seconds)
        ended = time.perf_counter(), cpu_seconds(self._server), self._answered()
        for client in self._clients:
            if client.refusal is not None:
                raise RuntimeError(client.refusal)
        if ended[2] == begun[2]:
            raise RuntimeError(f"no answer within {seconds:g} s")
        return ended[2] - begun[2], ended[0] - begun[0], ended[1] - begun[1]

    async def warm(self, requests: Sequence[bytes], seconds: float) -> None:
        """Send these for a while, which is longer where the first answer is slow to come."""
        answered = [client.answered for client in self._clients]
        for client in self._clients:
            client.send(requests)
        for _ in range(100):
            await asyncio.sleep(seconds)
            # The first answer of each may be of the other kind.
            pairs = zip(self._clients, answered, strict=True)
            if all(client.answered > before + 1 for client, before in pairs):
                return

    def rest(self) -> None:
        """Send nothing more."""
        for client in self._clients:
            client.send(())

    def close(self) -> None:
        """Hang up."""
        for client in self._clients:
            client.close()

    def _answered(self) -> int:
        return sum(client.answered for client in self._clients)


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time of processes so far, by Linux's clock ticks."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server listens."""
    while process.poll() is None:
        try:
            _, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.05)
    raise RuntimeError("the server did not start")


def free_port() -> int:
    """A port that is free now."""
    import socket

    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port


async def measure(
    servers: Sequence[tuple[subprocess.Popen[bytes], int]],
    refs: dict[str, str],
    secret: str,
    rows: list[dict[str, str]],
    args: argparse.Namespace,
) -> None:
    """Alternate all, and print. `servers` are the service and the bare one, each with its port; `refs` are the
    references to the model by kind, the id first.
    """
    head = f"HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\nAccept: */*\r\n\r\n"
    queries = [urlencode(row) for row in rows]
    asked = {"plain": f"plain/{refs['id']}"} | {kind: f"models/{refs[kind]}" for kind in refs}
    requests = {
        kind: [f"GET /v1/{path}/score?{query} {head}".encode() for query in queries]
        for kind, path in asked.items()
    }
    loads = []
    for process, port in servers:
        await wait_for(port, process)
        loads.append(await Load.open(port, requests["plain"], process.pid))
    turns = [(kind, loads[0], sent) for kind, sent in requests.items()]
    turns.append(("bare", loads[1], requests["id"]))
    for _, load, sent in turns:
        await load.warm(sent, min(1.0, 4 * args.seconds))
    totals = np.zeros((len(turns), 3))
    rates = []
    for _ in range(args.pairs):
        found = []
        for _, load, sent in turns:
            found.append(await load.run(sent, args.seconds))
            load.rest()
        totals += np.array(found)
        rates.append([answered / seconds for answered, seconds, _ in found])
    cpu = totals[:, 2] / totals[:, 0]
    by_turn = np.array(rates)
    print(
        f"| GET, {args.pairs} turns | Requests per second | Server CPU per request | CPU beside id "
        "| Requests beside plain, median (quartiles) |"
    )
    print("|---|---:|---:|---:|---:|")
    for row, (kind, _, _) in enumerate(turns):
        low, median, high = np.quantile(by_turn[:, row] / by_turn[:, 0], [0.25, 0.5, 0.75])
        print(
            f"| {kind} | {totals[row, 0] / totals[row, 1]:,.0f} | {cpu[row] * 1e6:.0f} µs "
            f"| {cpu[row] / cpu[1]:.2f} | {median:.2f} ({low:.2f} to {high:.2f}) |"
        )


def post(path: str, secret: str, body: bytes, *headers: str) -> bytes:
    """Return a POST as it travels."""
    head = "\r\n".join(
        [
            f"POST {path} HTTP/1.1",
            f"Host: {HOST}",
            f"Authorization: Bearer {secret}",
            f"Content-Length: {len(body)}",
            *headers,
        ]
    )
    return f"{head}\r\n\r\n".encode() + body


def infer_of(model_id: str, secret: str, tensors: dict[str, np.ndarray[Any, Any]]) -> bytes:
    """Return a request to infer as tritonclient sends it: JSON, then the tensors' bytes."""
    inputs = [
        {
            "name": name,
            "shape": tensor.shape,
            "datatype": "FP64",
            "parameters": {"binary_data_size": tensor.nbytes},
        }
        for name, tensor in tensors.items()
    ]
    told = orjson.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}})
    body = told + b"".join(tensor.tobytes() for tensor in tensors.values())
    length = f"Inference-Header-Content-Length: {len(told)}"
    return post(f"/oip/v2/models/{model_id}/infer", secret, body, length)


async def measure_doors(
    process: subprocess.Popen[bytes],
    port: int,
    model_id: str,
    secret: str,
    rows: list[dict[str, str]],
    args: argparse.Namespace,
) -> None:
    """Alternate POSTs of one row, and print the server's CPU of each."""
    await wait_for(port, process)
    exact = [{name: float(value) for name, value in row.items()} for row in rows]
    columns = [{name: np.array([[value]]) for name, value in row.items()} for row in exact]
    turns = {
        "our own, JSON": [
            post(
                f"/v1/models/{model_id}/score",
                secret,
                orjson.dumps({"rows": [row]}),
                "Content-Type: application/json",
            )
            for row in exact
        ],
        "infer, a tensor per feature": [infer_of(model_id, secret, row) for row in columns],
        "infer, one tensor": [
            infer_of(model_id, secret, {"x": np.array([list(row.values())])}) for row in exact
        ],
    }
    await print_turns(port, process.pid, turns, args)


async def measure_probabilities(
    process: subprocess.Popen[bytes],
    port: int,
    models: tuple[str, str],
    secret: str,
    rows: list[dict[str, str]],
    args: argparse.Namespace,
) -> None:
    """Alternate GETs of a score; `models` are one without a calibration, and the same with one."""
    await wait_for(port, process)
    head = f"HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\nAccept: */*\r\n\r\n"
    queries = [urlencode(row) for row in rows]
    bare, calibrated = models
    turns = {
        name: [f"GET /v1/models/{model}/score?{query}{more} {head}".encode() for query in queries]
        for name, model, more in (
            ("no calibration", bare, ""),
            ("probability", calibrated, ""),
            ("probability=false", calibrated, "&probability=false"),
            ("prevalence=0.02", calibrated, "&prevalence=0.02"),
            ("interval=true", calibrated, "&interval=true"),
        )
    }
    await print_turns(port, process.pid, turns, args)


async def measure_feedback(
    process: subprocess.Popen[bytes],
    port: int,
    named: dict[str, str],
    secret: str,
    rows: list[dict[str, str]],
    args: argparse.Namespace,
) -> None:
    """Alternate GETs of a score by the aliases."""
    await wait_for(port, process)
    head = f"HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\nAccept: */*\r\n\r\n"
    queries = [f"{urlencode(row)}&id=cid&cid=c{k}" for k, row in enumerate(rows)]
    words = {"off": "no feedback", "all": "feedback, all features", "two": "feedback, 2 features"}
    turns = {
        words[alias]: [f"GET /v1/models/{ref}/score?{query} {head}".encode() for query in queries]
        for alias, ref in named.items()
    }
    await print_turns(port, process.pid, turns, args)


async def print_turns(
    port: int, pid: int, turns: dict[str, list[bytes]], args: argparse.Namespace
) -> None:
    """Alternate the turns, and print the server's CPU and the requests a second of each beside those of the first."""
    first = next(iter(turns))
    load = await Load.open(port, turns[first], pid)
    totals = dict.fromkeys(turns, np.zeros(3))
    rates: dict[str, list[float]] = {name: [] for name in turns}
    for requests in turns.values():
        await load.warm(requests, min(1.0, 4 * args.seconds))
    for _ in range(args.pairs):
        for name, requests in turns.items():
            found = await load.run(requests, args.seconds)
            totals[name] = totals[name] + found
            rates[name].append(found[0] / found[1])
    cpu = {name: spent / answered for name, (answered, _, spent) in totals.items()}
    print(
        f"| one row | requests/s | server CPU a request | beside {first} | requests beside it, median (quartiles) |"
    )
    print("|---|---|---|---|---|")
    for name, (answered, seconds, _) in totals.items():
        ratio = cpu[name] / cpu[first]
        ratios = np.array(rates[name]) / np.array(rates[first])
        low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(
            f"| {name} | {answered / seconds:,.0f} | {cpu[name] * 1e6:.0f} µs | {ratio:.2f} |"
            f" {median:.1%} ({low:.1%} to {high:.1%}) |"
        )


async def scale(
    folder: Path, model_id: str, secret: str, rows: list[dict[str, str]], args: argparse.Namespace
) -> None:
    """Ask services of one process and of several in turns for scores, and print."""
    end = f"HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\nAccept: */*\r\n\r\n"
    path = f"/v1/models/{model_id}/score"
    requests = [f"GET {path}?{urlencode(row)} {end}".encode() for row in rows]
    counts = (1, args.processes)
    services, addresses, loads = [], [], []
    try:
        for count in counts:
            port = free_port()
            words = ["api", "--port", str(port), "--processes", str(count)]
            with (folder / f"{count}.log").open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "app.cli", *words],
                    env=os.environ
                    | {"RANKWRIGHT_STATE_DIR": str(folder), "PYTHONPATH": str(Path.cwd())},
                    stdout=log,
                    stderr=log,
                )
            services.append(process)
            await wait_for(port, process)
            first = await Load.open(port, requests)
            await first.warm(requests, 1.0)
            first.close()
            own = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            addresses.append((port, [process.pid, *map(int, own.read_text().split())]))
        for port, pids in addresses:  # at once: the service closes connections that rest
            loads.append(await Load.open(port, requests, *pids))
        totals = np.zeros((2, 4))
        rates = []
        for _ in range(args.pairs):
            found = []
            for load in loads:
                begun = time.process_time()
                found.append([*await load.run(requests, args.seconds), time.process_time() - begun])
                load.rest()
            totals += np.array(found)
            rates.append([answered / seconds for answered, seconds, *_ in found])
    finally:
        for process in services:
            process.terminate()
        for process in services:
            process.wait()
    print("| processes | requests/s | service CPU a request | CPU of the load a request |")
    print("|---|---|---|---|")
    for count, (answered, seconds, cpu, load_cpu) in zip(counts, totals, strict=True):
        print(
            f"| {count} | {answered / seconds:,.0f} | {cpu / answered * 1e6:.1f} µs |"
            f" {load_cpu / answered * 1e6:.1f} µs |"
        )
    by_turn = np.array(rates)
    low, median, high = np.quantile(by_turn[:, 1] / by_turn[:, 0], [0.25, 0.5, 0.75])
    single, several = totals[:, 2] / totals[:, 0]
    print(
        f"requests/s, median (quartiles) of {args.pairs} turns: {median:.2f} ({low:.2f} to {high:.2f}) times"
    )
    print(
        f"by CPU a request, with a core for each process: {args.processes * single / several:.2f} times"
    )


def main() -> None:
    """Train, serve, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=at_least_one, default=60)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--rows", type=at_least_one, default=20_000, help="that are trained on")
    parser.add_argument("--rounds", type=at_least_one, default=ROUNDS)
    parser.add_argument(
        "--commits", type=at_least_one, default=0, metavar="N", help="a second, beside"
    )
    parser.add_argument("--doors", action="store_true", help="POSTs of one row, by two doors")
    parser.add_argument(
        "--probabilities", action="store_true", help="GETs with a probability, and without"
    )
    parser.add_argument(
        "--feedback", action="store_true", help="GETs by an alias whose decisions are recorded"
    )
    parser.add_argument("--processes", type=at_least_one, metavar="N", help="compare 1 and N")
    parser.add_argument("--bare", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, metavar=("STATE_DIR", "PORT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(Path(args.serve[0]), int(args.serve[1]))
        return
    if args.bare:
        uvicorn.run(bare, host=HOST, port=args.bare, log_level="error", access_log=False)
        return
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-") as folder:
        settings = Settings(state_dir=Path(folder))
        migrate.upgrade(settings.sqlalchemy_url)
        model_id, secret, rows = train(settings, args.rows, args.rounds)
        if args.probabilities:
            bare_id, _, _ = train(settings, args.rows, args.rounds)
            forget_calibration(settings, bare_id)
        named = point_aliases(settings, model_id)
        if args.processes is not None:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(scale(Path(folder), model_id, secret, rows, args))
            return
        ports = free_port(), free_port()
        log = (Path(folder) / "server.log").open("wb")  # every request is logged, as by default
        command = [sys.executable, "-m", "benchmarks.http_score"]
        processes = [
            subprocess.Popen([*command, *rest], stdout=log, stderr=log)
            for rest in (["--serve", folder, str(ports[0])], ["--bare", str(ports[1])])
        ]
        servers = list(zip(processes, ports, strict=True))
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                if args.doors:
                    runner.run(measure_doors(*servers[0], model_id, secret, rows, args))
                elif args.feedback:
                    runner.run(measure_feedback(*servers[0], named, secret, rows, args))
                elif args.probabilities:
                    models = (bare_id, model_id)
                    runner.run(measure_probabilities(*servers[0], models, secret, rows, args))
                else:
                    name = named["off"].partition("@")[0]
                    refs = {"id": model_id, "name": name, "name:version": f"{name}:1"}
                    refs |= {"alias": named["off"], "recorded alias": named["all"]}
                    with committing(settings, args.commits):
                        runner.run(measure(servers, refs, secret, rows, args))
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()
            log.close()


if __name__ == "__main__":
    main()
