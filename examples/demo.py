"""The demo: start the service, upload a real table, train a ranker, choose a cutoff, score, explain, report.

`make demo` runs it. Everything is in a temporary folder and is removed at the end, except `demo-output/`. The table is
described in examples/data/README.md.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

import rankwright
from rankwright import types
from rankwright.cli.metrics import curve_of
from rankwright.cli.training import wait_for_job
from rankwright.resources import Dataset, Model
from rankwright.terminal_plot import to_terminal
from rich.console import Console

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "examples" / "data" / "bank-marketing.parquet"
OUTPUT = Path("demo-output")
CALLS, CUSTOMERS = 1_000, 10_000
WAIT_SECONDS = 5.0  # between two messages while waiting
console = Console(highlight=False, soft_wrap=True)


@contextmanager
def running_service(
    state: Path,
    environment: Mapping[str, str] = MappingProxyType({}),
    *,
    code: Path | None = None,
    log_file: Path | None = None,
) -> Iterator[rankwright.Client]:
    """Start `rankwright serve` on a free port, wait until it is ready, and end it as Ctrl-C would.

    With `code`, that checkout's code is served, if the environment has it first in PYTHONPATH.
    """
    OUTPUT.mkdir(exist_ok=True)
    log_file = log_file or OUTPUT / "serve.log"
    log = log_file.open("w")
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--state-dir", str(state)]
    process = subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT, cwd=code, env={**os.environ, **environment}
    )
    try:
        address = wait_until_ready(process, state, log_file)
        with rankwright.Client(address, state_dir=state) as client:
            yield client
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        log.close()


def wait_until_ready(process: subprocess.Popen[bytes], state: Path, log_file: Path) -> str:
    """Return the service's address once it is ready. There is no time limit, as long as the process runs."""
    next_word = time.monotonic() + WAIT_SECONDS
    while process.poll() is None:
        with contextlib.suppress(OSError):  # written once the service is ready
            return (state / "address").read_text().strip()
        if time.monotonic() > next_word:
            console.print(f"  still starting; see {log_file}")
            next_word = time.monotonic() + WAIT_SECONDS
        time.sleep(0.05)
    sys.exit(f"the service did not start; see {log_file}")


def step(text: str) -> None:
    """Print the title of a step."""
    console.print(f"\n[bold blue]▸[/] [bold]{text}[/]")


def upload(client: rankwright.Client) -> Dataset:
    """Upload the table and print what the service has read."""
    step("Upload 45,211 calls of a bank. Which customers will open a deposit?")
    found = client.upload(
        TABLE, name="bank-marketing", label="subscribed", positive="yes", progress=False
    )
    read = found.data
    gaps = sum((column.missing or 0) > 0 for column in read.columns or [])
    console.print(
        f"  {read.rows:,} rows, {read.positives:,} subscribed; {len(read.columns or [])} columns, "
        f"{gaps} with missing values"
    )
    return found


def train(client: rankwright.Client, dataset: Dataset) -> tuple[Model, Model]:
    """Train boosted trees, draw their ROC curve, and train logistic regression; return both models."""
    step("Train RankBoost with trees, and validate it on a held-out quarter of the rows")
    started = time.monotonic()
    job = client.train(dataset, "rankboost", weak_ranker="tree", name="deposits", baselines=False)
    wait_for_job(job)
    model = job.wait()
    console.print(f"  {model.name}:{model.version} after {time.monotonic() - started:.1f} s")
    console.print(to_terminal(curve_of(model)), markup=False)
    plain = client.train(dataset, "logistic", name="deposits-logistic", baselines=False).wait()
    return model, plain


def decide(client: rankwright.Client, model: Model, plain: Model) -> None:
    """Print what so many calls reach, by either model and at random, and save the cutoff under an alias."""
    step(f"Choose a cutoff: {CALLS:,} calls for {CUSTOMERS:,} customers")
    point = model.operating_point(flagged=CALLS / CUSTOMERS)
    other = plain.operating_point(flagged=CALLS / CUSTOMERS)
    share = point.prevalence * CUSTOMERS
    for name, reached in (
        ("RankBoost", share * (point.tpr.value or 0.0)),
        ("logistic regression", share * (other.tpr.value or 0.0)),
        ("random calls", share * CALLS / CUSTOMERS),
    ):
        bar = "█" * round(40 * reached / share)
        console.print(f"  {name:<20} {reached:5.0f} of {share:,.0f} who subscribe  {bar}")
    memo = {"reason": "Four callers.", "review": CALLS, "rows": CUSTOMERS}
    client.models.set_alias(
        "deposits", "live", model, guarantee={"flagged": CALLS / CUSTOMERS}, memo=memo
    )
    console.print("  the alias deposits@live keeps this rate in later versions")


def score_and_explain(client: rankwright.Client) -> dict[str, Any]:
    """Score a customer by the alias, with reasons; return the row."""
    step("Score a customer and explain the score")
    row: dict[str, Any] = {
        "age": 61,
        "job": "retired",
        "marital": "married",
        "education": "tertiary",
        "credit_default": "no",
        "balance_eur": 4200,
        "housing_loan": "no",
        "personal_loan": "no",
        "contact": "cellular",
        "day": 12,
        "month": "oct",
        "calls_now": 1,
        "days_since_last": 92,
        "calls_before": 2,
        "outcome_before": "success",
    }
    found = client.models["deposits@live"].score_row(row, reasons=3)
    assert isinstance(found, types.Score)
    console.print(
        f"  score {found.score:.3f}, probability {found.probability:.0%}: "
        f"{'call' if found.flag else 'do not call'}"
    )
    for each in found.reasons or []:
        console.print(f"    {each.contribution:+.3f}  {each.text}", markup=False)
    return row


def print_curl_lines(row: dict[str, Any]) -> None:
    """Print the requests above as a shell would send them to `make serve`."""
    step("The same with curl, after `make serve`")
    job = '{"dataset_id": "ds_…", "name": "deposits", "algorithm": {"name": "rankboost", "weak_ranker": "tree"}}'
    url, auth = "$RANKWRIGHT_URL", '-H "Authorization: Bearer $RANKWRIGHT_API_KEY"'
    query = urlencode({"name": "bank-marketing", "label": "subscribed", "positive": "yes"})
    rows = json.dumps({"rows": [row]})
    for line in (
        "export RANKWRIGHT_URL=http://127.0.0.1:8000 RANKWRIGHT_API_KEY=$(cat .rankwright/api-key)",
        f"curl {auth} -H 'Content-Type: application/vnd.apache.parquet' -H 'Prefer: wait=10' \\\n"
        f'     --data-binary @{TABLE.relative_to(ROOT)} "{url}/v1/datasets?{query}"',
        f"curl {auth} --json '{job}' -H 'Prefer: wait=60' {url}/v1/jobs",
        f"curl {auth} --json {shlex.quote(rows)} {url}/v1/models/deposits/score",
    ):
        console.print(line, markup=False)


def main() -> None:
    """Run the demo once."""
    with tempfile.TemporaryDirectory(prefix="rankwright-") as state:
        step("Start API, worker, dispatcher and a private Valkey on a free port")
        with running_service(Path(state)) as client:
            console.print(f"  ready at {client.url}, documentation at {client.url}/docs")
            model, plain = train(client, upload(client))
            decide(client, model, plain)
            row = score_and_explain(client)
            step("Write a report: two pages for the decision, and an appendix with the evidence")
            report = OUTPUT / "report.html"
            model.download("report", report, format="html")
            console.print(f"  open {report} in a browser")
            print_curl_lines(row)
            step("Stop the service")
    console.print(
        "  Nothing is left running. `make serve` starts a service that keeps running, and prints a link to its console."
    )


if __name__ == "__main__":
    try:
        main()
    except rankwright.RankwrightError as error:
        sys.exit(f"The demo has stopped: {error}")
    except KeyboardInterrupt:
        sys.exit("\nThe demo was stopped. Nothing is left running.")
