"""`make fuzz`: a service of its own, 10,000 requests or more, at least 50 things made by each route that makes any.
Then 40 hostile requests of each route of the console.

Fails on a 5xx (but a 503 that says when to come back), on an answer that the description does not have or that is no
page, on what is another owner's, on an error in the log, and on a process of the service that had to be started again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from random import Random

import httpx

from app.access import service as keys
from app.platform.database import Database
from app.platform.settings import Settings
from examples import demo
from tests.fuzz.console import ConsoleFuzzer, Known
from tests.fuzz.machine import Fuzzer, Tally
from tests.waiting import patience

CASES, CREATES, ROUNDS = 10_000, 50, 40
MARK = "theirs_alone"  # stands in all that is another owner's, and in no request
TABLE = f"age,{MARK},left\n" + "1,2,yes\n2,1,no\n3,4,yes\n4,2,no\n" * 9
MAX_ROUNDS, ROUND = 20, 100  # more requests of the routes that have made too little
SIGNS = (" ERROR ", " CRITICAL ", "Traceback", "will be restarted")


OWNERS = ("default", "theirs")
COLLECTIONS = {
    "dataset_id": "/v1/datasets",
    "job_id": "/v1/jobs?state=succeeded",
    "ref": "/v1/models",
    "evaluation_id": "/v1/evaluations",
    "comparison_id": "/v1/comparisons",
    "batch_id": "/v1/batch-scores",
}


def main() -> None:
    """Run, and print a table of what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help="least number of requests")
    parser.add_argument("--creates", type=int, default=CREATES, help="least number made by a route")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests of a console's route")
    given = parser.parse_args()
    os.environ["RANKWRIGHT_MAX_UNKNOWN_KEYS"] = "1000000"  # what is made up counts as a guess
    with tempfile.TemporaryDirectory() as name:
        demo.OUTPUT = Path(name)
        state = demo.OUTPUT / "state"
        with demo.running_service(state) as client:
            before = processes()
            document = httpx.get(f"{client.url}/openapi.json", timeout=patience()).json()
            key_id = next(client.keys.list()).id
            secret = (state / "api-key").read_text().strip()
            fuzzer = Fuzzer((state / "address").read_text().strip(), secret, key_id, document)
            fuzzer.begin()
            fuzzer.ask(given.cases)
            for _ in range(MAX_ROUNDS):
                if short := too_few(fuzzer, given.creates):
                    fuzzer.ask(ROUND, short)
            console = ask_console(fuzzer.url, state, given.rounds)
            restarted = before != processes()
        log = (demo.OUTPUT / "serve.log").read_text()
    sys.stdout.write(f"{table(fuzzer)}\n{console.table()}\n")
    faults = [f"{label} {status}: {text}" for (label, status), text in fuzzer.tally.faults.items()]
    faults += [f"{label} {status}: {text}" for (label, status), text in console.faults.items()]
    faults += [f"log: {line}" for line in log.splitlines() if any(sign in line for sign in SIGNS)]
    if restarted:
        faults.append("a process of the service is another one than at the start")
    if fuzzer.tally.cases < given.cases:
        faults.append(f"{fuzzer.tally.cases} requests of {given.cases}")
    faults += [
        f"{label}: made {fuzzer.tally.created[label]} of {given.creates}"
        for label in too_few(fuzzer, given.creates)
    ]
    sys.exit("\n".join(faults) or None)


def ask_console(url: str, state: Path, rounds: int) -> ConsoleFuzzer:
    """Ask every route of the console, as the owner of what was made so far; another owner's things must stay hidden."""
    db = Database(Settings(state_dir=state).sqlalchemy_url)
    secrets = [db.writing(keys.create, owner, "fuzz", keys.SCOPES)[1] for owner in OWNERS]
    db.close()
    ours, theirs = (
        httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=patience()
        )
        for secret in secrets
    )
    with ours, theirs:
        fields = {"name": MARK, "label": "left", "positive": "yes"}
        made = theirs.post(
            "/v1/datasets",
            params=fields,
            content=TABLE.encode(),
            headers={"Content-Type": "text/csv", "Prefer": "wait=30"},
        ).json()
        ids = {
            parameter: [each["id"] for each in ours.get(path).json()["data"]]
            for parameter, path in COLLECTIONS.items()
        }
    ids |= {"model": ids["ref"], "model_id": ids["ref"], "models": ids["ref"]}
    spare = {name: found[-5:] for name, found in ids.items()}
    known = Known(ids, spare, [made["id"], made["job_id"]], [MARK])
    fuzzer = ConsoleFuzzer(url, secrets[0], known, Random(0))
    fuzzer.ask(rounds)
    fuzzer.close()
    return fuzzer


def too_few(fuzzer: Fuzzer, creates: int) -> list[str]:
    """Return the operations that have made less."""
    return [label for label in fuzzer.creating if fuzzer.tally.created[label] < creates]


def processes() -> set[int]:
    """Return the pids of broker, worker, dispatcher and API: the children of our only child."""
    (supervisor,) = _children(os.getpid())
    return _children(supervisor)


def _children(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def table(fuzzer: Fuzzer) -> str:
    """Return a table: the requests to each operation, their statuses, and how much was made."""
    tally: Tally = fuzzer.tally
    lines = [f"{'operation':58} {'asked':>6} {'made':>5}  answers"]
    for label, counts in sorted(tally.statuses.items()):
        made = str(tally.created[label]) if label in fuzzer.creating else ""
        answers = "  ".join(f"{status}: {count}" for status, count in sorted(counts.items()))
        lines.append(f"{label:58} {counts.total():6} {made:>5}  {answers}")
    lines.append(f"{'all':58} {tally.cases:6} {tally.created.total():5}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
