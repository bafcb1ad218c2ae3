"""Scoring rows of 14 mixed columns beside rows of 14 numbers: `python -m benchmarks.mixed_score [--pairs 20]`.

Two models of 500 stumps, one on 14 numbers and one on 6 numbers and 8 columns of words, as the table adult has them,
are served by one uvicorn process. Both are asked by GET for a row, and by POST for one row and for 1,000, as objects
and as lists under names. 16 keep-alive connections from another process; short runs of the two alternate, so that
whatever else the machine does hits both. The ratio is that of the times a request takes, the median over the pairs;
beside it that of the server's CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import orjson
import uvloop

from app.platform import migrate
from app.platform.settings import Settings
from benchmarks import at_least_one
from benchmarks.http_score import HOST, ROUNDS, Load, free_port, train_on, wait_for

COLUMNS, TRAINED_ON, MANY = 14, 20_000, 1_000
CATEGORIES = (9, 16, 7, 15, 6, 5, 2, 42)
"""Of the columns of words, as in adult."""
Row = dict[str, Any]


def make_rows(rng: np.random.Generator, n: int, words: Sequence[int]) -> list[Row]:
    """Draw rows of numbers with two decimals, and last as many columns of words, each of so many."""
    numbers = [f"number_{j}" for j in range(COLUMNS - len(words))]
    values = rng.normal(40, 15, size=(n, len(numbers))).round(2).tolist()
    rows = [dict(zip(numbers, row, strict=True)) for row in values]
    for j, count in enumerate(words):
        for row, code in zip(rows, rng.integers(0, count, n).tolist(), strict=True):
            row[f"word_{j}"] = f"Category-{j}-{code}"
    return rows


def make_table(rng: np.random.Generator, words: Sequence[int], n_rows: int) -> str:
    """Write such rows as CSV with a label that the first columns know of."""
    text = io.StringIO()
    rows = make_rows(rng, n_rows, words)
    writer = csv.DictWriter(text, [*rows[0], "label"])
    writer.writeheader()
    for row in rows:
        row["label"] = int(row["number_0"] + row["number_1"] + rng.normal(0, 20) > 100)
    writer.writerows(rows)
    return text.getvalue()


def requests_of(rows: list[Row], model_id: str, secret: str) -> dict[str, list[bytes]]:
    """The requests of every kind that ask this model."""
    path = f"/v1/models/{model_id}/score"
    head = f"HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {secret}\r\n"

    def post(body: Row) -> bytes:
        text = orjson.dumps(body)
        said = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        return f"POST {path} {head}{said}".encode() + text

    lists: Row = {"columns": list(rows[0]), "data": [list(row.values()) for row in rows]}
    return {
        "GET": [f"GET {path}?{urlencode(row)} {head}\r\n".encode() for row in rows],
        "POST, 1 row": [post({"rows": [row]}) for row in rows],
        f"POST, {len(rows):,} rows": [post({"rows": rows})] * COLUMNS,
        f"POST, {len(rows):,} lists": [post(lists)] * COLUMNS,
    }


async def measure(
    server: subprocess.Popen[bytes],
    port: int,
    kinds: dict[str, list[list[bytes]]],
    pairs: int,
    seconds_a_run: float,
) -> None:
    """Alternate the two models, kind by kind, and print."""
    await wait_for(port, server)
    print("| | numbers, requests/s | mixed, requests/s | times the time | times the CPU |")
    print("|---|---:|---:|---:|---:|")
    for kind, both in kinds.items():
        load = await Load.open(port, both[0], server.pid)
        for requests in both:
            await load.warm(requests, 2 * seconds_a_run)
        runs = np.array(
            [[await load.run(requests, seconds_a_run) for requests in both] for _ in range(pairs)]
        )
        seconds = runs[:, :, 1] / runs[:, :, 0]
        answered, spent, cpu = runs.sum(axis=0).T
        load.close()
        rates = answered / spent
        times = np.median(seconds[:, 1] / seconds[:, 0])
        of_cpu = (cpu[1] / answered[1]) / (cpu[0] / answered[0])
        print(f"| {kind} | {rates[0]:,.0f} | {rates[1]:,.0f} | {times:.2f} | {of_cpu:.2f} |")


def main() -> None:
    """Train, serve, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=at_least_one, default=20)
    parser.add_argument("--seconds", type=float, default=0.25)
    parser.add_argument("--rows", type=at_least_one, default=TRAINED_ON, help="that are trained on")
    parser.add_argument("--rounds", type=at_least_one, default=ROUNDS)
    args = parser.parse_args()
    rng = np.random.Generator(np.random.Philox(14))
    with tempfile.TemporaryDirectory(prefix="rankwright-bench-") as folder:
        settings = Settings(state_dir=Path(folder))
        migrate.upgrade(settings.sqlalchemy_url)
        kinds: dict[str, list[list[bytes]]] = {}
        for words in ((), CATEGORIES):
            model = train_on(settings, make_table(rng, words, args.rows), args.rounds)
            for kind, requests in requests_of(make_rows(rng, MANY, words), *model).items():
                kinds.setdefault(kind, []).append(requests)
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.http_score", "--serve", folder, str(port)]
        log = (Path(folder) / "server.log").open("wb")
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(measure(process, port, kinds, args.pairs, args.seconds))
        finally:
            process.terminate()
            process.wait()
            log.close()


if __name__ == "__main__":
    main()
