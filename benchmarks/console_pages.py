"""CPU for a page of the console: `python -m benchmarks.console_pages [--against FOLDER] [--rounds 40] [--requests 2]`.

`--fill 10000` adds so many rows of models to the state, copies of the last one. "First byte" is the least time from a
request to the first byte of its answer, by the clock: what a quiet machine needs.

A process of its own serves the console from a stored state of some datasets, jobs, models and evaluations; the CPU of
that process is counted, and not of the caller. `--against` is another checkout of this repository, as of an earlier
commit: both serve copies of the same state, which the other checkout made, and take turns. A figure is the mean of the
quieter third of its rounds: what else the machine does adds to a round, and takes nothing away.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import urlencode, urlsplit

from benchmarks import at_least_one

HERE = Path(__file__).resolve().parents[1]
MODELS, ROWS = 20, 2_000


def settings_of(state: Path) -> Any:
    """Return the settings of a service on that state, which is brought to the code's version."""
    from app.platform import migrate
    from app.platform.settings import Settings

    migrate.upgrade(f"sqlite:///{state}/rankwright.db")
    return Settings(state_dir=state)


def fill(service: Any, model_id: str, number: int) -> None:
    """Write `number` copies of a model's row, ten versions of a name, of which one has an alias."""
    from sqlalchemy import insert

    from app.platform.ids import new_id
    from app.platform.tables import Model, ModelAlias

    with service.context.db.write() as session:
        first = session.get_one(Model, model_id)
        row = {each.key: getattr(first, each.key) for each in Model.__mapper__.column_attrs}
        copies = [
            row
            | {"id": new_id("mdl"), "job_id": new_id("job")}
            | {"name": f"copy{n // 10}", "version": 1 + n % 10}
            for n in range(number)
        ]
        aliases = [
            {"owner": row["owner"], "name": each["name"], "alias": "live"}
            | {"model_id": each["id"], "revision": 1, "updated_at": row["created_at"]}
            for each in copies[::10]
        ]
        session.execute(insert(Model), copies)
        session.execute(insert(ModelAlias), aliases)


def make_state(state: Path, models: int, rows: int, copies: int) -> dict[str, Any]:
    """Fill a state; return a key and the addresses of the pages."""
    from tests.app.live_service import OWNER, running, table

    with running(settings_of(state)) as service:
        secret = service.key(OWNER)
        client = service.client(secret)
        large = service.upload(client, table(rows, 1), name="large")
        small = service.upload(client, table(120, 2), name="small")
        jobs = [service.train(client, large, objective={"metric": "pauc", "fpr_max": 0.1})]
        algorithm = {"name": "rankboost", "n_rounds": 5}
        jobs += [service.train(client, small, algorithm=algorithm) for _ in range(models - 1)]
        assert all(job["state"] == "succeeded" for job in jobs), jobs
        model = jobs[0]["model_id"]
        for other in jobs[1:]:
            body = {"model": other["model_id"], "dataset_id": large}
            evaluation = client.post("/v1/evaluations", json=body).raise_for_status().json()
        service.work()
        if copies:
            fill(service, jobs[-1]["model_id"], copies)
    return {
        "key": secret,
        "pages": {
            "first page": "/console",
            "datasets": "/console/datasets",
            "a dataset": f"/console/datasets/{large}",
            "jobs": "/console/jobs",
            "a job": f"/console/jobs/{jobs[0]['id']}",
            "models": "/console/models",
            "models, searched": "/console/models?search=copy9",
            "choosing a model": "/console/pick/models?find_models=copy9",
            "comparing": "/console/comparisons",
            "a model": f"/console/models/{model}",
            "a model, with a cut": f"/console/models/{model}?on=train&by=fpr&at=.1",
            "evaluations": "/console/evaluations",
            "an evaluation": f"/console/evaluations/{evaluation['id']}",
            "the training form": f"/console/train?dataset_id={small}",
        },
    }


def serve(state: Path) -> None:
    """Serve until the standard input ends."""
    from tests.app.live_service import running

    with running(settings_of(state)) as service:
        print(service.url, flush=True)
        sys.stdin.read()


def start(tree: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run this file with the code of a checkout."""
    environment = os.environ | {
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'client'}",
        "RANKWRIGHT_WARM_UP": "false",
    }
    command = [sys.executable, "-P", __file__, *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=tree, env=environment, stdin=pipe, stdout=pipe, text=True)


class Console:
    """A signed-in browser without scripts, and the CPU of the process that answers."""

    def __init__(self, process: subprocess.Popen[str], key: str) -> None:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().strip())
        assert address.hostname is not None, "the service did not start"
        # The clock of all threads of another process; see clock_getcpuclockid(3).
        self.quickest = float("inf")
        """The least time to the first byte of an answer, in milliseconds, since it was last set."""
        self._clock = (~process.pid << 3) | 2
        self._connection = http.client.HTTPConnection(address.hostname, address.port)
        form = {"content-type": "application/x-www-form-urlencoded"}
        answer = self._ask("POST", "/console/sign-in", urlencode({"key": key}), form)
        cookie = answer.getheader("set-cookie") or ""
        self._headers = {"cookie": cookie.partition(";")[0]}

    def _ask(self, method: str, path: str, *more: Any) -> http.client.HTTPResponse:
        try:
            sent = time.perf_counter()
            self._connection.request(method, path, *more)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError):  # it was idle for too long
            self._connection.close()
            sent = time.perf_counter()
            self._connection.request(method, path, *more)
            answer = self._connection.getresponse()
        self.first_byte = time.perf_counter() - sent
        answer.read()
        return answer

    def milliseconds(self, path: str, requests: int) -> float:
        """Return the CPU of one request for a page, as mean of several."""
        before = time.clock_gettime_ns(self._clock)
        for _ in range(requests):
            answer = self._ask("GET", path, None, self._headers)
            self.quickest = min(self.quickest, 1e3 * self.first_byte)
            assert answer.status == 200, f"{path} answered {answer.status}"
        return (time.clock_gettime_ns(self._clock) - before) / requests / 1e6


@contextmanager
def console(tree: Path, made: Path, state: Path, key: str) -> Iterator[Console]:
    """Serve a copy of a state by the code of a checkout."""
    shutil.copytree(made, state)
    process = start(tree, "--serve", str(state))
    try:
        yield Console(process, key)
    finally:
        process.communicate()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="another checkout of this repository")
    parser.add_argument("--rounds", type=at_least_one, default=40)
    parser.add_argument("--requests", type=at_least_one, default=2)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--rows", type=at_least_one, default=ROWS)
    parser.add_argument("--fill", type=int, default=0, help="rows of models to add")
    parser.add_argument("--pages", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        print(
            json.dumps(make_state(options.make, options.models, options.rows, options.fill)),
            flush=True,
        )
        return
    if options.serve:
        serve(options.serve)
        return
    trees = [HERE, *([options.against.resolve()] if options.against else [])]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        made = Path(folder) / "made"
        made.mkdir()
        numbers = (
            "--models",
            str(options.models),
            "--rows",
            str(options.rows),
            "--fill",
            str(options.fill),
        )
        said, _ = start(trees[-1], "--make", str(made), *numbers).communicate()
        state = json.loads(said.splitlines()[-1])
        consoles = [
            stack.enter_context(console(tree, made, Path(folder) / str(i), state["key"]))
            for i, tree in enumerate(trees)
        ]
        print(
            "| page | first byte, ms | CPU, ms |" + (" before | ratio |" if len(trees) > 1 else "")
        )
        print("|---|---:|---:|" + ("---:|---:|" if len(trees) > 1 else ""))
        for name, path in state["pages"].items():
            if options.pages and name not in options.pages:
                continue
            for each in consoles:  # fills the caches
                each.milliseconds(path, 2)
                each.quickest = float("inf")
            rounds: list[list[float]] = [[] for _ in consoles]
            turns = list(zip(consoles, rounds, strict=True))
            for _ in range(options.rounds):
                turns.reverse()
                for each, found in turns:
                    found.append(each.milliseconds(path, options.requests))
            figures = [fmean(sorted(found)[: -(-options.rounds // 3)]) for found in rounds]
            more = f" {figures[1]:.2f} | {figures[0] / figures[1]:.2f} |" if figures[1:] else ""
            print(f"| {name} | {consoles[0].quickest:.1f} | {figures[0]:.2f} |{more}", flush=True)


if __name__ == "__main__":
    main()
