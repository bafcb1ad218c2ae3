"""The five-minute tour: start the service, upload a real table, train a ranker, read its ROC curve, score, explain.

`make demo` runs it. Everything is in a temporary folder and is removed at the end, except `demo-output/`.
"""

from __future__ import annotations

import contextlib
import csv
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlencode

import rankwright
from rankwright import types
from rankwright.cli.figures import curve_of
from rankwright.cli.training import wait_for_job
from rankwright.resources import Model
from rankwright.terminal_plot import to_terminal
from rich.console import Console

OUTPUT = Path("demo-output")
WAIT_SECONDS = 5.0  # between two messages while waiting
console = Console(highlight=False, soft_wrap=True)


def write_table(path: Path) -> None:
    """Write the Wisconsin diagnostic breast cancer table (569 × 30, Street et al. 1993) as CSV."""
    from sklearn.datasets import load_breast_cancer  # slow to import: the service starts meanwhile

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "diagnosis"])
        for row, target in zip(data.data, data.target, strict=True):
            writer.writerow([*row, data.target_names[target]])


@contextmanager
def running_service(
    state: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[rankwright.Client]:
    """Start `rankwright serve` on a free port, wait until it is ready, and end it as Ctrl-C would."""
    OUTPUT.mkdir(exist_ok=True)
    log = (OUTPUT / "serve.log").open("w")
    command = [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--state-dir", str(state)]
    process = subprocess.Popen(
        command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **environment}
    )
    try:
        address = wait_until_ready(process, state)
        with rankwright.Client(address, state_dir=state) as client:
            yield client
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        log.close()


def wait_until_ready(process: subprocess.Popen[bytes], state: Path) -> str:
    """Return the service's address once it is ready. There is no time limit, as long as the process runs."""
    next_word = time.monotonic() + WAIT_SECONDS
    while process.poll() is None:
        with contextlib.suppress(OSError):  # written once the service is ready
            return (state / "address").read_text().strip()
        if time.monotonic() > next_word:
            console.print(f"  still starting; {OUTPUT / 'serve.log'} says what it waits for")
            next_word = time.monotonic() + WAIT_SECONDS
        time.sleep(0.05)
    sys.exit(f"the service did not start; see {OUTPUT / 'serve.log'}")


def step(text: str) -> None:
    """Print the title of a step."""
    console.print(f"\n[bold blue]▸[/] [bold]{text}[/]")


def upload_and_train(client: rankwright.Client, table: Path) -> Model:
    """Upload the table, train RankBoost for the top of the list, draw its curve; return the model."""
    step("Upload the breast cancer table: 569 rows, malignant = positive")
    dataset = client.upload(
        table, name="breast-cancer", label="diagnosis", positive="malignant", progress=False
    )
    read = dataset.data
    console.print(
        f"  {read.id} is {read.status}: {read.rows} rows, "
        f"{read.positives} positive, {read.negatives} negative"
    )

    step("Train RankBoost, 200 rounds, judged on a quarter of the rows that it never sees")
    job = client.train(
        dataset,
        "rankboost",
        n_rounds=200,
        name="breast-cancer",
        objective={"metric": "pauc", "fpr_min": 0.0, "fpr_max": 0.05},
    )
    console.print(f"  {job.id} was accepted, and is {job.state}")
    started = time.monotonic()
    wait_for_job(job)
    model = job.wait()
    waited = time.monotonic() - started
    console.print(f"  {model.id} = {model.name}:{model.version}, after {waited:.2f} s")

    step("The ROC curve on the held-out rows")
    console.print(to_terminal(curve_of(model)), markup=False)
    svg = OUTPUT / "roc.svg"
    model.download("plot", svg)
    console.print(f"  also drawn as {svg}")
    return model


def score_and_explain(model: Model, table: Path) -> dict[str, str]:
    """Score the table's first row, and print the reasons for its score; return the row's features."""
    with table.open(newline="") as file:
        row = next(csv.DictReader(file))
    diagnosis = row.pop("diagnosis")
    step(f"Score one row (it is {diagnosis}), and explain the score")
    score = model.score_row(row)
    assert isinstance(score, types.Score)
    console.print(
        f"  score {score.score:.2f}: cutting here would flag {score.fpr:.1%} of the benign "
        f"and catch {score.tpr:.1%} of the malignant"
    )
    features = {name: float(value) for name, value in row.items()}
    parts = model.explain([features]).explanations[0]
    contributions = parts.contributions
    for name in sorted(contributions, key=lambda n: -abs(contributions[n]))[:5]:
        console.print(f"  {contributions[name]:+8.2f}  {name} = {features[name]:g}")
    rest = len(contributions) - 5
    console.print(
        f"  … {rest} more, and {parts.offset:+.2f} for the average row, add up to the score"
    )
    return row


def print_curl_lines(row: dict[str, str]) -> None:
    """Print the requests above as a shell would send them to `make serve`."""
    step("The same by curl, once `make serve` runs")
    table = OUTPUT / "breast-cancer.csv"
    job = '{"dataset_id": "ds_…", "name": "breast-cancer", "algorithm": {"name": "rankboost", "n_rounds": 200}}'
    url, auth = "http://127.0.0.1:8000", '-H "Authorization: Bearer $KEY"'
    query = urlencode({"name": "breast-cancer", "label": "diagnosis", "positive": "malignant"})
    few = urlencode(dict(list(row.items())[:2]))
    for line in (
        "KEY=$(cat .rankwright/api-key)",
        f"curl {auth} -H 'Content-Type: text/csv' -H 'Prefer: wait=10' \\\n"
        f"     --data-binary @{table} {shlex.quote(f'{url}/v1/datasets?{query}')}",
        f"curl {auth} --json '{job}' -H 'Prefer: wait=60' {url}/v1/jobs",
        f"curl {auth} {url}/v1/models/breast-cancer/metrics",
        f"curl {auth} {shlex.quote(f'{url}/v1/models/breast-cancer/score?{few}&…')}",
    ):
        console.print(line, markup=False)


def main() -> None:
    """Run the whole tour once."""
    OUTPUT.mkdir(exist_ok=True)
    table = OUTPUT / "breast-cancer.csv"
    writing = threading.Thread(target=write_table, args=(table,))
    with tempfile.TemporaryDirectory(prefix="rankwright-") as state:
        step("Start API, worker, dispatcher and a private Valkey on a free port")
        writing.start()
        with running_service(Path(state)) as client:
            writing.join()
            console.print(f"  ready at {client.url}, its documentation at {client.url}/docs")
            model = upload_and_train(client, table)
            row = score_and_explain(model, table)
            print_curl_lines(row)
            step("Shut everything down")
    console.print("  nothing is left running; `make serve` starts a service that stays")


if __name__ == "__main__":
    main()
