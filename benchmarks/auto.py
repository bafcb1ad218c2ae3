"""`auto` beside AutoML and tuned boosters, on real tables: `python -m benchmarks.auto --data DIR --out FILE`.

    make peers                                                            # once: the peers' environment
    python -m benchmarks.auto --data DIR --out FILE --dry-run             # what is left to run, and how long it takes
    python -m benchmarks.auto --data DIR --out FILE                       # run it; may be stopped and called again
    python -m benchmarks.auto --report FILE                               # the tables in Markdown
    python -m benchmarks.auto --data DIR --out FILE --only ours --rows 1000000 --tables NAME   # the budget alone
    python -m benchmarks.auto --out FILE                                  # few positives in many rows, drawn

DIR holds tables as NAME.parquet, taken as they are, with words and gaps. NAME.json may say what to do with one: `label`
(the column, "label" by default), `positive` (its value; else the greater of two), `drop` (columns that would give the
label away). Of a table of more than 300,000 rows so many are drawn, by class.

Without DIR the tables are drawn: 50 to 500 positives in 20,000 to 500,000 training rows (`RARE`), of 20 numbers, of
which six matter, two of them by their product. Each split is a new draw. Its test rows are 2,000 positives and 50,000
negatives: an area needs no true share of positives. NAME~200 (`--tables`) is a table of DIR with 200 of the positives
to learn from.

Splits are the folds of stratified cross-validation: with three, two thirds of the rows are learnt from and the others
judge, and no row judges twice; more splits begin another division. Every system gets the same files, the same cores,
and is to care for AUC. Ours goes the way of a user: `rankwright serve` (every kernel compiled before), the training
rows uploaded as Parquet, a job of `auto` without validation, so that all rows are learnt from as by the peers, and the
test rows scored by the service. Its seconds are those from the POST of the job to `succeeded`. A peer is a process of
its own, see `auto_peers`; its seconds are those from a table in memory to a fitted model. What takes longer than
4 B + 120 s is ended and counts as constant scores.

AUC and partial AUC of the test rows are by `core.metrics` for all, the partial one over [0, .05], divided by .05, not
standardised. Tests on one table compare cross-validated areas (LeDell et al. 2015) of the same rows. Over the
tables: ranks, the Friedman test with Nemenyi's critical difference, and Wilcoxon's signed ranks (Demšar 2006).
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import rankwright
from rankwright.resources import FINAL_STATES
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon

from core.metrics import auc, compare, partial_auc

ROOT = Path(__file__).parents[1]
WINDOW = (0.0, 0.05)
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "rankwright": ("auto", {"metric": "auc"}),
    "rankwright-window": ("auto", {"metric": "pauc", "fpr_min": WINDOW[0], "fpr_max": WINDOW[1]}),
    "rankboost": ("rankboost", {"metric": "auc"}),
    "logitboost": ("logitboost", {"metric": "auc"}),
}
"""Systems that are jobs of the service, by algorithm and objective; `auto` must not fall below those without a budget.
`rankwright-window` asks for the area over the window, so compare its partial AUC only."""
PEERS = ("flaml", "autogluon", "lightgbm-tuned", "xgboost-tuned", "lightgbm", "logistic")
MORE_PEERS = ("autogluon-best",)
UNBUDGETED = ("lightgbm", "logistic", "rankboost", "logitboost")
"""Systems that know no budget: run once a split, and beside the others at every budget."""
DEFAULT = ("rankwright", *PEERS)
MAX_ROWS = 300_000
RARE = {
    f"rare_{positives}_{rows}": (positives, rows)
    for rows in (20_000, 100_000, 500_000)
    for positives in (50, 200, 500)
}
"""Drawn tables: positives and rows to learn from."""
RARE_TEST = 2_000, 50_000
"""Positives and negatives to test on."""
RARE_AT_ONCE = 200_000
"""Rows that are drawn at once, of which positives and some negatives are kept."""
LEVEL = 0.05
SECONDS_AROUND = 15.0  # seconds of reading, imports and scoring, for a forecast
Record = dict[str, Any]
Ints = npt.NDArray[np.intp]


class Refused(Exception):
    """A table or an option that cannot be used, in one sentence."""


@dataclass(frozen=True)
class Run:
    """One system on one split with one budget."""

    table: str
    split: int
    budget: float | None
    system: str
    rows: int | None  # to which the training rows are repeated

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what identifies the run."""
        return self.table, self.split, self.budget, self.system, self.rows

    @property
    def file(self) -> str:
        """Name of the file of its scores."""
        budget = "any" if self.budget is None else f"{self.budget:g}"
        return f"{self.table}-{self.split}-{budget}-{self.system}-{self.rows or 'all'}.npz"

    @property
    def longest(self) -> float:
        """Seconds after which it is ended."""
        return 4.0 * (self.budget or 30.0) + 120.0


# Tables and splits


def read_table(
    folder: Path, name: str, most_rows: int | None = MAX_ROWS
) -> tuple[pa.Table, npt.NDArray[np.int8]]:
    """The features as they are, and the label as 0 and 1; at most so many rows."""
    path, notes = folder / f"{name}.parquet", folder / f"{name}.json"
    about = json.loads(notes.read_text()) if notes.is_file() else {}
    table = pq.read_table(path)
    label = about.get("label", "label")
    if label not in table.column_names:
        raise Refused(f"{name}: the label must be a column of the table, got {label!r}")
    table = table.filter(table[label].is_valid())
    values = np.array(table[label].to_pylist(), dtype=object)
    kinds = sorted(set(values.tolist()))
    positive = about.get("positive", kinds[-1])
    if positive not in kinds or len(kinds) < 2 or ("positive" not in about and len(kinds) > 2):
        raise Refused(
            f"{name}: the label must have two values, or more and `positive`, one of them, in {notes.name}, "
            f"got {len(kinds)} values and positive = {positive!r}"
        )
    y = (values == positive).astype(np.int8)
    dropped = [label, *about.get("drop", [])]
    if missing := sorted(set(dropped) - set(table.column_names)):
        raise Refused(f"{name}: `drop` must name columns of the table, got {missing}")
    features = table.drop_columns(dropped)
    if most_rows is not None and len(y) > most_rows:
        rng = np.random.Generator(np.random.Philox(0))
        kept = []
        for value in (0, 1):
            rows = np.flatnonzero(y == value)
            kept.append(rng.permutation(rows)[: round(len(rows) * most_rows / len(y))])
        rows = np.sort(np.concatenate(kept))
        features, y = features.take(rows), y[rows]
    return features, y


def split_rows(y: npt.NDArray[np.int8], split: int, n_folds: int) -> tuple[Ints, Ints]:
    """Training and test rows: a fold of a division by classes, and after its last the first of another."""
    repeat, fold = divmod(split, n_folds)
    rng = np.random.Generator(np.random.Philox(1 + repeat))
    of_row = np.empty(len(y), dtype=np.intp)
    start = 0
    for value in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == value))
        of_row[rows] = (start + np.arange(len(rows))) % n_folds
        start += len(rows)  # so that no fold gets the odd rows of both classes
    # Shuffled: tables come in orders of classes or of time, which no system should have to know.
    return rng.permutation(np.flatnonzero(of_row != fold)), np.flatnonzero(of_row == fold)


def draw_rare(
    positives: int, rows: int, seed: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8], int]:
    """Features and labels of a drawn table, in random order, and the number of training rows, which come first."""
    rng = np.random.Generator(np.random.Philox(seed))
    wanted = positives + RARE_TEST[0], rows - positives + RARE_TEST[1]
    kept: tuple[list[Any], list[Any]] = ([], [])
    limit = None
    while any(sum(map(len, own)) < n for own, n in zip(kept, wanted, strict=True)):
        X = rng.normal(size=(RARE_AT_ONCE, 20))
        merit = 1.2 * X[:, 0] + 0.9 * X[:, 1] * X[:, 2] + 0.8 * np.abs(X[:, 3])
        merit += 0.6 * X[:, 4] - 0.5 * X[:, 5] + 0.8 * rng.logistic(size=len(X))
        limit = np.quantile(merit, 1.0 - positives / rows) if limit is None else limit
        for own, of_class, n in zip(kept, (merit > limit, merit <= limit), wanted, strict=True):
            own.append(X[of_class][: max(n - sum(map(len, own)), 0)])
    parts = []
    drawn = [np.concatenate(own) for own in kept]
    for first, last in (
        ((0, 0), (positives, rows - positives)),
        ((positives, rows - positives), wanted),
    ):
        X = np.concatenate([own[a:b] for own, a, b in zip(drawn, first, last, strict=True)])
        y = np.repeat(np.array([1, 0], dtype=np.int8), [last[0] - first[0], last[1] - first[1]])
        order = rng.permutation(len(y))
        parts.append((X[order], y[order]))
    (X, y), (X_test, y_test) = parts
    return np.concatenate([X, X_test]), np.concatenate([y, y_test]), rows


@dataclass(frozen=True)
class Split:
    """The files of a split, and the labels of its test rows."""

    train: Path
    test: Path
    label: str
    y_test: npt.NDArray[np.int8]
    row: Ints  # numbers of the test rows in the table
    n_train: int
    n_features: int


def write_split(
    folder: Path,
    features: pa.Table,
    y: npt.NDArray[np.int8],
    split: int,
    n_folds: int,
    rows: int | None,
    positives: int | None = None,
) -> Split:
    """Write training rows, with the label and at most so many positives, and test rows, without."""
    learnt, judges = split_rows(y, split, n_folds)
    if positives is not None:
        learnt = learnt[(y[learnt] == 0) | (np.cumsum(y[learnt]) <= positives)]
    if rows is not None:
        learnt = np.resize(learnt, rows)
    label = "label"
    while label in features.column_names:
        label += "_"
    return _write(folder, features, y, learnt, judges, label)


def write_rare(folder: Path, name: str, split: int) -> Split:
    """Write the training and test rows of a split of a drawn table."""
    X, y, n_train = draw_rare(*RARE[name], split)
    features = pa.table({f"x{k}": X[:, k] for k in range(X.shape[1])})
    learnt, judges = np.arange(n_train), np.arange(n_train, len(y))
    written = _write(folder, features, y, learnt, judges, "label")
    return dataclasses.replace(written, row=judges + split * len(y))  # other rows in each split


def _write(
    folder: Path,
    features: pa.Table,
    y: npt.NDArray[np.int8],
    learnt: Ints,
    judges: Ints,
    label: str,
) -> Split:
    train = features.take(learnt).append_column(label, pa.array(y[learnt]))
    paths = folder / "train.parquet", folder / "test.parquet"
    pq.write_table(train, paths[0])
    pq.write_table(features.take(judges), paths[1])
    return Split(*paths, label, y[judges], judges, len(learnt), features.num_columns)


# Systems


@contextmanager
def service(folder: Path, threads: int) -> Iterator[rankwright.Client]:
    """`rankwright serve` in a folder of its own, with all kernels compiled."""
    subprocess.run([sys.executable, "-m", "workers.compile"], cwd=ROOT, check=True, stdout=2)
    state, log = folder / "state", (folder / "serve.log").open("w")
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve", "--port", "0", "--state-dir", str(state)],
        cwd=ROOT,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, "RANKWRIGHT_JOB_THREADS": str(threads)},
    )
    try:
        while not (state / "address").is_file():
            if process.poll() is not None:
                raise Refused(
                    f"the service did not start: {(folder / 'serve.log').read_text()[-2000:]}"
                )
            time.sleep(0.05)
        with rankwright.Client(state_dir=state) as client:
            yield client
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        log.close()


def run_ours(
    client: rankwright.Client, run: Run, split: Split, seed: int
) -> tuple[npt.NDArray[np.float64], Record]:
    """Upload, train and score by the service, then delete everything."""
    started = time.perf_counter()
    name = f"{run.table}-{run.split}"
    dataset = client.upload(split.train, name=name, label=split.label, positive="1", progress=False)
    upload_seconds = time.perf_counter() - started
    chosen_algorithm, objective = OURS[run.system]
    algorithm: Record = {"name": chosen_algorithm}
    if run.budget is not None:
        algorithm["budget_seconds"] = run.budget
    started = time.perf_counter()
    job = client.train(
        dataset,
        algorithm,
        name=name,
        objective=objective,
        validation={"method": "none"},
        seed=seed,
    )
    cancelled = False
    while job.refresh().state not in FINAL_STATES:
        if not cancelled and time.perf_counter() - started > run.longest:
            job.cancel()
            cancelled = True
        time.sleep(0.1)
    seconds = time.perf_counter() - started
    if job.state != "succeeded":
        dataset.delete()
        raise RuntimeError(f"the job is {job.state} after {seconds:.0f} s: {job.data.error}")
    model = job.wait()
    batch = client.score_batch(model, split.test, ignore="*", progress=False)
    with tempfile.TemporaryFile() as file:
        batch.result(file, format="parquet")
        file.seek(0)
        scores = pq.read_table(file)["score"].to_numpy()
    chosen = model.data.algorithm
    for each in (batch, model, dataset):
        each.delete()
    return scores, {"seconds": seconds, "upload_seconds": upload_seconds, "chosen": chosen}


def run_peer(
    python: Path, run: Run, split: Split, seed: int, threads: int, folder: Path
) -> tuple[npt.NDArray[np.float64], Record]:
    """Run a peer in its environment, in a session of its own, which is ended when it takes too long."""
    out = folder / "scores.npy"
    command = [
        *(str(python), "-P", str(ROOT / "benchmarks" / "auto_peers.py"), run.system),
        *("--train", str(split.train), "--test", str(split.test), "--label", split.label),
        *("--out", str(out), "--budget", f"{run.budget or 0:g}"),
        *("--threads", str(threads), "--seed", str(seed)),
    ]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that its own children end with it
        env={**os.environ, "OMP_NUM_THREADS": str(threads)},
    )
    try:
        told, errors = process.communicate(timeout=run.longest)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"ended after {run.longest:.0f} s") from None
        raise
    if process.returncode:
        raise RuntimeError(f"ended with status {process.returncode}: {errors[-1500:]}")
    return np.load(out), json.loads(told.strip().splitlines()[-1])


def measure(run: Run, split: Split, scores: npt.NDArray[np.float64]) -> Record:
    """The figures of the test rows."""
    if len(scores) != len(split.y_test) or not np.isfinite(scores).all():
        raise RuntimeError(
            f"{len(split.y_test)} finite scores were due, got {len(scores)}, "
            f"of which {int(np.isfinite(scores).sum())} are finite"
        )
    return {
        "auc": auc(split.y_test, scores),
        "pauc": partial_auc(split.y_test, scores, *WINDOW),
    }


# Finished runs


def read_records(out: Path) -> list[Record]:
    """The results so far; a last line that was not written to its end is cut off."""
    if not out.exists():
        return []
    data = out.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        out.write_bytes(whole)
    return [json.loads(line) for line in whole.splitlines()]


def scores_folder(out: Path) -> Path:
    """Where the scores of the test rows are kept."""
    return out.with_name(out.name + ".scores")


def keep(
    out: Path, run: Run, split: Split, scores: npt.NDArray[np.float64] | None, found: Record
) -> Record:
    """Append a result, after its scores, which are kept as their ranks: that is all an area needs."""
    if scores is not None:
        scores_folder(out).mkdir(parents=True, exist_ok=True)
        ranks = np.unique(scores, return_inverse=True)[1].astype(np.int32)
        np.savez_compressed(
            scores_folder(out) / run.file, y=split.y_test, rank=ranks, row=split.row
        )
    record = {
        **dataclasses.asdict(run),
        "n_train": split.n_train,
        "n_test": len(split.y_test),
        "n_features": split.n_features,
        **found,
    }
    with out.open("a") as file:
        file.write(json.dumps(record, default=str) + "\n")
    return record


def key_of(record: Record) -> tuple[Any, ...]:
    """The key of the run that a record is of."""
    return tuple(record[name] for name in ("table", "split", "budget", "system", "rows"))


def plan_runs(given: argparse.Namespace, tables: list[str]) -> list[Run]:
    """All runs that are asked for, table by table, and the systems of a split one after the other."""
    runs: dict[tuple[Any, ...], Run] = {}
    for split in range(given.splits):
        for budget in given.budgets:
            for table in tables:
                for system in given.systems:
                    own = None if system in UNBUDGETED else budget
                    run = Run(table, split, own, system, given.rows)
                    runs.setdefault(run.key, run)
    return list(runs.values())


def forecast(runs: list[Run], records: list[Record]) -> float:
    """Predict the seconds of runs: those of others of their system and budget, else the budget and some more."""
    known: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for record in records:
        if "elapsed" in record:
            known[record["system"], record["budget"]].append(record["elapsed"])
    return sum(
        float(np.mean(known[run.system, run.budget]))
        if (run.system, run.budget) in known
        else (run.budget or 5.0) + SECONDS_AROUND
        for run in runs
    )


def execute(given: argparse.Namespace, runs: list[Run], records: list[Record]) -> None:
    """Run what is left, appending each result."""
    cores = sorted(os.sched_getaffinity(0))[: given.threads]
    os.sched_setaffinity(0, cores)  # children inherit it: all systems have the same cores
    loaded: tuple[str, pa.Table, npt.NDArray[np.int8]] | None = None
    refused: set[str] = set()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="auto-")))
        client: rankwright.Client | None = None
        written: tuple[str, int] | None = None
        for number, run in enumerate(runs):
            if run.table in refused:
                continue
            name, _, positives = run.table.partition("~")
            if name not in RARE and (loaded is None or loaded[0] != name):
                try:
                    loaded = (name, *read_table(given.data, name))
                except Refused as error:
                    print(f"left out: {error}", file=sys.stderr, flush=True)
                    refused.add(run.table)
                    continue
            if written != (run.table, run.split):
                if name in RARE:
                    split = write_rare(folder, name, run.split)
                else:
                    assert loaded is not None  # else it was refused
                    most = int(positives) if positives else None
                    split = write_split(folder, *loaded[1:], run.split, given.folds, run.rows, most)
                written = (run.table, run.split)
            if run.system in OURS and client is None:
                client = stack.enter_context(service(folder, given.threads))
            began, scores = time.perf_counter(), None
            found: dict[str, Any] = {}
            try:
                if run.system in OURS:
                    assert client is not None
                    scores, found = run_ours(client, run, split, run.split)
                else:
                    python = given.peers_python
                    scores, found = run_peer(python, run, split, run.split, given.threads, folder)
                found |= measure(run, split, scores)
            except Exception as error:  # an error of one system must not stop the others
                scores, found = None, {"error": f"{type(error).__name__}: {error}"}
            found["elapsed"] = time.perf_counter() - began
            records.append(keep(given.out, run, split, scores, found))
            left = forecast(runs[number + 1 :], records)
            print(f"{told(records[-1])}; {left / 3600:.1f} h left", flush=True)


def told(record: Record) -> str:
    """A line on a result."""
    of = f"{record['table']} {record['split']} {record['system']}"
    of += "" if record["budget"] is None else f", {record['budget']:g} s"
    if "error" in record:
        return f"{of}: {record['error'].strip().splitlines()[-1][:300]}"
    line = f"{of}: AUC {record['auc']:.4f}, pAUC {record['pauc']:.4f}, {record['seconds']:.1f} s"
    if record["system"] == "rankwright":
        limit = 1.15 * record["budget"] + 5.0
        line += f" of {limit:.1f} s" + (", OVER" if record["seconds"] > limit else "")
    return line


# The report


class Scores:
    """Test rows' scores of the runs of a table, joined over its splits."""

    def __init__(self, out: Path, n_folds: int, rows: int | None) -> None:
        self.folder, self.n_folds, self.rows = scores_folder(out), n_folds, rows

    def load(self, table: str, budget: float, systems: list[str], splits: list[int]) -> Record:
        """Labels, folds, repeats, rows, and a column of scores for each system; constant where a run failed."""
        joined: dict[str, list[Any]] = defaultdict(list)
        for split in splits:
            found = {}
            for system in systems:
                own = None if system in UNBUDGETED else budget
                path = self.folder / Run(table, split, own, system, self.rows).file
                if path.is_file():
                    with np.load(path) as file:
                        found[system] = dict(file)
            if not found:
                continue
            first = next(iter(found.values()))
            repeat, fold = divmod(split, self.n_folds)
            size = len(first["y"])
            joined["y"].append(first["y"])
            joined["row"].append(first["row"])
            joined["fold"].append(np.full(size, fold))
            joined["repeat"].append(np.full(size, repeat))
            for system in systems:
                nothing = np.zeros(size)
                joined[system].append(found[system]["rank"] if system in found else nothing)
        return {name: np.concatenate(parts) for name, parts in joined.items()}


def worse_than_best(data: Record, systems: list[str], window: tuple[float, float]) -> Record:
    """For each system the p-value of no difference from the best of the others, and whether that is ahead."""
    compared = compare(
        data["y"],
        [data[system] for system in systems],
        [window],
        fold=data["fold"],
        repeat=data["repeat"],
        row=data["row"],
        names=systems,
        adjust="none",
    ).windows[0]
    areas = {s: area.value for s, area in zip(systems, compared.values, strict=True)}
    found = {}
    for system in systems:
        best = max((s for s in systems if s != system), key=lambda s: areas[s])
        (p_value,) = (
            d.p_value for d in compared.differences if {d.first, d.second} == {system, best}
        )
        found[system] = (areas[system], p_value, areas[best] > areas[system])
    return found


def report(out: Path, n_folds: int, reference: str) -> Iterator[str]:
    """Lines of Markdown: areas with tests, ranks, tests over the tables, and times beside budgets."""
    records = read_records(out)
    if not records:
        raise Refused(f"--report must name a file with results, got {str(out)!r}")
    latest = {key_of(record): record for record in records}  # of repeated runs the last counts
    for rows in sorted({record["rows"] for record in latest.values()}, key=str):
        of_rows = [record for record in latest.values() if record["rows"] == rows]
        frame = pd.DataFrame(of_rows)
        if rows is not None:
            yield f"\nTraining rows repeated to {rows:,}."
        budgets = sorted(frame["budget"].dropna().unique())
        for budget in budgets or [0.0]:
            part = frame[(frame["budget"] == budget) | frame["budget"].isna()]
            yield from report_budget(part, budget, Scores(out, n_folds, rows), reference)
        yield from report_longer(frame)
        yield from report_times(of_rows)


def report_budget(
    frame: pd.DataFrame, budget: float, scores: Scores, reference: str
) -> Iterator[str]:
    """The areas at one budget: of tables and splits that all systems have run."""
    systems = [s for s in (*OURS, *PEERS, *MORE_PEERS) if s in set(frame["system"])]
    counts = frame.groupby(["table", "split"])["system"].nunique()
    common = counts[counts == len(systems)].index
    tables = sorted({str(table) for table, _ in common})
    yield f"\n## {budget:g} s: {len(tables)} tables, {len(common)} splits that all systems ran"
    if left := len(counts) - len(common):
        yield f"\n{left} splits are left out, since some system has not run them yet."
    if not tables or len(systems) < 2:
        return
    splits = {t: sorted(int(s) for name, s in common if name == t) for t in tables}
    joined = {t: scores.load(t, budget, systems, splits[t]) for t in tables}
    tables = [t for t in tables if joined[t]]  # tables on which at least one system did not fail
    for title, window in (("AUC", (0.0, 1.0)), ("Partial AUC on [0, .05]", WINDOW)):
        yield f"\n### {title}, {budget:g} s: mean over the splits"
        yield "\nBold: the best. ▼: worse than the best, p < .05, not adjusted for the many tests.\n"
        yield "| table | " + " | ".join(systems) + " |"
        yield "|---|" + "---:|" * len(systems)
        areas, worse = [], dict.fromkeys(systems, 0)
        for table in tables:
            found = worse_than_best(joined[table], systems, window)
            values = [found[s][0] for s in systems]
            cells = []
            for system in systems:
                value, p_value, behind = found[system]
                mark = " ▼" if behind and p_value is not None and p_value < LEVEL else ""
                worse[system] += bool(mark)
                cells.append(
                    (f"**{value:.4f}**" if value == max(values) else f"{value:.4f}") + mark
                )
            yield f"| {table} | " + " | ".join(cells) + " |"
            areas.append(values)
        matrix = np.array(areas)
        ranks = np.array([rankdata(-row) for row in matrix])
        yield "| mean rank | " + " | ".join(f"{r:.2f}" for r in ranks.mean(axis=0)) + " |"
        yield "| tables on which ▼ | " + " | ".join(str(worse[s]) for s in systems) + " |"
        yield from report_tests(matrix, ranks, systems, reference)


def report_tests(
    matrix: npt.NDArray[np.float64],
    ranks: npt.NDArray[np.float64],
    systems: list[str],
    reference: str,
) -> Iterator[str]:
    """Tests over the tables."""
    n, k = matrix.shape
    if n < 3 or k < 3:
        yield "\nFewer than three tables or systems: no test over the tables."
        return
    friedman = friedmanchisquare(*matrix.T).pvalue
    critical = studentized_range.ppf(1 - LEVEL, k, np.inf) / math.sqrt(2)
    critical *= math.sqrt(k * (k + 1) / (6 * n))
    yield f"\nFriedman: p = {friedman:.2g}. Nemenyi: mean ranks differ from {critical:.2f} on."
    if reference not in systems:
        return
    yield f"\n| {reference} against | won | lost | mean difference | Wilcoxon p |"
    yield "|---|---:|---:|---:|---:|"
    own = systems.index(reference)
    for other, system in enumerate(systems):
        if other == own:
            continue
        d = matrix[:, own] - matrix[:, other]
        p_value = wilcoxon(d).pvalue if d.any() else 1.0
        yield f"| {system} | {(d > 0).sum()} | {(d < 0).sum()} | {d.mean():+.4f} | {p_value:.3g} |"


def report_longer(frame: pd.DataFrame) -> Iterator[str]:
    """What more time changes: means over the splits that ran with every budget, and paired differences.

    The standard errors take the splits of a table as independent, although they share rows.
    """
    for (table, system), runs in frame.dropna(subset=["budget"]).groupby(["table", "system"]):
        for figure, name in (("auc", "AUC"), ("pauc", "pAUC")):
            by_budget = runs.pivot(index="split", columns="budget", values=figure).dropna()
            gains = by_budget.diff(axis=1).iloc[:, 1:]
            if len(by_budget) < 2 or gains.empty:
                continue
            if figure == "auc":
                shown = " | ".join(f"{budget:g} s" for budget in by_budget)
                yield f"\n{table}, {system}, {len(by_budget)} splits\n\n| | {shown} |"
                yield "|---|" + "---:|" * by_budget.shape[1]
            yield f"| {name} | " + " | ".join(f"{mean:.4f}" for mean in by_budget.mean()) + " |"
            changes = zip(gains.mean(), gains.sem(), strict=True)
            cells = " | ".join(f"{mean:+.4f} ± {error:.4f}" for mean, error in changes)
            yield f"| {name}, change | | {cells} |"


def report_times(records: list[Record]) -> Iterator[str]:
    """Seconds beside budgets, and what failed."""
    yield "\n### Seconds beside budgets\n"
    yield "| system | budget | runs | failed | mean s | most s | mean share | most | over 1.15 B + 5 s |"
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    groups: dict[tuple[str, float], list[Record]] = defaultdict(list)
    for record in records:
        groups[record["system"], record["budget"] or 0.0].append(record)
    for (system, budget), runs in sorted(groups.items(), key=lambda item: (item[0][1], item[0][0])):
        seconds = np.array([r["seconds"] for r in runs if "error" not in r])
        failed = len(runs) - len(seconds)
        shown = [f"{seconds.mean():.1f}", f"{seconds.max():.1f}"] if len(seconds) else ["", ""]
        shares = ["", "", ""]
        if budget:
            over = failed + int((seconds > 1.15 * budget + 5.0).sum())
            shares[2] = str(over)
            if len(seconds):
                shares[:2] = [f"{seconds.mean() / budget:.0%}", f"{seconds.max() / budget:.0%}"]
        cells = [system, f"{budget:g}" if budget else "none", str(len(runs)), str(failed)]
        yield "| " + " | ".join([*cells, *shown, *shares]) + " |"
    for record in records:
        if "error" in record:
            yield f"\n- {told(record)}"


# The command


def at_least(low: float, kind: type) -> Any:
    """A number of an option, not less than `low`."""

    def check(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not low <= value < math.inf:
            raise argparse.ArgumentTypeError(f"must be a number from {low:g} on, got {text!r}")
        return value

    return check


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = (*OURS, *PEERS, *MORE_PEERS)
    parser.add_argument(
        "--data", type=Path, help="folder with NAME.parquet and NAME.json; without it drawn tables"
    )
    parser.add_argument("--out", type=Path, help="results are appended here as JSON lines")
    parser.add_argument("--report", type=Path, metavar="FILE", help="print the tables of results")
    parser.add_argument(
        "--tables", nargs="+", metavar="NAME", help="default: all of DIR, or all drawn ones"
    )
    parser.add_argument("--systems", nargs="+", choices=known, help=f"default: {' '.join(DEFAULT)}")
    parser.add_argument("--only", choices=("ours", "peers"), help="short for --systems")
    parser.add_argument(
        "--budgets", nargs="+", type=at_least(0.1, float), default=[10.0, 30.0, 120.0]
    )
    parser.add_argument("--splits", type=at_least(1, int), default=3, help="default: 3")
    parser.add_argument(
        "--folds",
        type=at_least(2, int),
        default=3,
        help="3: two thirds of the rows are learnt from",
    )
    parser.add_argument("--rows", type=at_least(1, int), help="repeat the training rows to so many")
    parser.add_argument("--threads", type=at_least(1, int), default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--peers-python", type=Path, default=ROOT / ".venv-peers" / "bin" / "python"
    )
    parser.add_argument("--retry", action="store_true", help="run again what has failed")
    parser.add_argument("--dry-run", action="store_true", help="only say what is left to run")
    given = parser.parse_args(arguments)
    if given.report is None and given.out is None:
        parser.error("give --out, or --report")
    if given.data is not None and not given.data.is_dir():
        parser.error(f"--data must be a folder, got {str(given.data)!r}")
    if given.systems and given.only:
        parser.error("give --systems or --only, not both")
    only = {"ours": ("rankwright",), "peers": PEERS, None: DEFAULT}[given.only]
    given.systems = given.systems or list(only)
    cores = len(os.sched_getaffinity(0))
    if given.threads > cores:
        parser.error(
            f"--threads must be at most {cores}, the cores of this process, got {given.threads}"
        )
    return given


def is_table(name: str, known: set[str]) -> bool:
    """Return True for the name of a table, or of one of DIR with a number of positives to learn from."""
    table, mark, positives = name.partition("~")
    if not mark:
        return name in known
    return table in known - RARE.keys() and positives.isdecimal() and int(positives) > 0


def main(arguments: list[str] | None = None) -> None:
    """Run what is left, or print the report."""
    given = parse(arguments)
    try:
        if given.report is not None:
            for line in report(given.report, given.folds, "rankwright"):
                print(line)
            return
        found = list(RARE)
        if given.data is not None:
            found = sorted(path.stem for path in given.data.glob("*.parquet"))
        if not found:
            raise Refused(f"--data must hold files NAME.parquet, got none in {given.data}")
        tables = given.tables or found
        known = {*found, *RARE}
        if unknown := [name for name in tables if not is_table(name, known)]:
            raise Refused(
                f"--tables must name files NAME.parquet of {given.data}, NAME~POSITIVES, or of {', '.join(RARE)}, "
                f"got {unknown}"
            )
        records = read_records(given.out)
        done = {key_of(r) for r in records if not (given.retry and "error" in r)}
        runs = [run for run in plan_runs(given, tables) if run.key not in done]
        if {run.system for run in runs} - set(OURS) and not given.peers_python.is_file():
            raise Refused(f"`make peers` must come first: there is no {given.peers_python}")
        hours = forecast(runs, records) / 3600
        print(f"{len(runs)} runs left, {hours:.1f} h by forecast", flush=True)
        if given.dry_run:
            for run in runs:
                print(*run.key)
            return
        execute(given, runs, records)
    except Refused as error:
        sys.exit(f"benchmarks.auto: {error}")


if __name__ == "__main__":
    # After a signal, the service or the running peer is ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("benchmarks.auto: ended by a signal"))
    main()
