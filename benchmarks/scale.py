"""A table that is read column by column beside the same table in memory: `python -m benchmarks.scale`.

    python -m benchmarks.scale [--rows 1000000] [--features 30] [--rounds 20] [--folder DIR] [--only-stored]
        [--peers-python PYTHON]
    python -m benchmarks.scale --workers 1 2 [--rows 4194304] [--rounds 40] [--systems stumps] [--peers-python PYTHON]
    python -m benchmarks.scale --job stumps [--rows 10000000] [--memory-bytes 4000000000] [--table FILE]

The systems are RankBoost's stumps and trees, and LogitBoost. Their peers read from disk, too, grow trees of 31 leaves
with 255 bins, and take the words as categories: XGBoost by ExtMemQuantileDMatrix, which reads the Parquet file a row
group at a time (of a few row groups together), and LightGBM from a file of text with two_round, which reads it twice;
to write the text is not counted. They run by another interpreter if one is named.

The table is a typed Parquet file with one row in ten positive: numbers of single precision (two columns of five have
as many values as rows, the others 20 to 350), some missing, and words in one column of ten. Each fit runs in a process
of its own, on as many threads as numba is set to use. Memory is anonymous memory (Linux: RssAnon), looked up 100 times
a second: pages of files, which the system takes back when it needs them, are apart. CPU seconds are split at the end
of the first round: before it the table is read and coded. The last column compares the rankers, byte by byte.

With `--workers` they are fitted on Dask clusters of that many workers on this machine: a scheduler, and workers with
one thread each, bound to a core as far as there are cores. Peers are `lightgbm.dask` and `xgboost.dask`, whose
workers hold the rows by 2^20: trees of two leaves beside our stumps, of 31 leaves else. A round takes the CPU seconds
of the busiest worker and those of the driving process, which wait for each other: their sum is what a round takes on
machines of their own, without the network. It is the mean of all rounds but the first. KB are those that cross the
loopback device in that time, whoever sends them: run it where nobody else does (`unshare -n`, `ip link set lo up`).

With `--job` the worker's code runs a whole job, with a holdout of a quarter and baselines, in this process: it reads,
splits, fits and measures. Memory is all of the process, by phase.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import at_least_one, with_peers

ROW_GROUP = 1 << 17
SYSTEMS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "stumps": ("rankboost", {}),
    "trees": ("rankboost", {"weak_ranker": "tree"}),
    "logitboost": ("logitboost", {}),
}
LEAVES = {"stumps": 2, "trees": 31, "logitboost": 31}
"""Of the trees of the peers beside a system."""
DISTINCT = {2: 3, 3: 40, 4: 9}
"""Values per standard deviation, by the column's number modulo 5; those of other columns are not rounded."""
MISSING_FRACTION = 0.05
PEERS = {"xgboost": "external memory", "lightgbm": "two_round"}
THREADS = int(os.environ.get("NUMBA_NUM_THREADS", os.cpu_count() or 1))
"""Threads of a peer: as many as numba uses."""
GROUPS_AT_ONCE = 8
"""Row groups of a batch that a peer reads: a million rows."""
WORDS = tuple(f"word {k:02}" for k in range(40))


def write_table(path: Path, n_rows: int, n_features: int) -> None:
    """Write a table, a row group at a time, so that it may be larger than memory."""
    fields = [
        pa.field(f"x{j}", pa.dictionary(pa.int32(), pa.string()) if j % 10 == 8 else pa.float32())
        for j in range(n_features)
    ]
    schema = pa.schema([*fields, pa.field("label", pa.int8())])
    few = [field.name for j, field in enumerate(schema) if j % 5 > 1]
    with pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=1, use_dictionary=few
    ) as writer:
        for start in range(0, n_rows, ROW_GROUP):
            n = min(ROW_GROUP, n_rows - start)
            rng = np.random.default_rng([1, start])
            columns: list[Any] = []
            signal = 1.5 * rng.standard_normal(n, np.float32)
            for j in range(n_features):
                x = rng.standard_normal(n, np.float32)
                if j < 12:
                    signal += x * np.float32(0.5)
                if j % 5 > 1:
                    x = np.round(x * np.float32(DISTINCT[j % 5]))
                if j % 5 == 4:
                    x[rng.random(n, np.float32) < MISSING_FRACTION] = np.nan
                if j % 10 == 8:
                    codes = pa.array(np.clip(x // 4 + 20, 0, 39).astype(np.int32))
                    columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(WORDS)))
                else:
                    columns.append(x)
            label = (signal > 1.2816 * np.sqrt(2.25 + 0.25 * min(n_features, 12))).astype(np.int8)
            arrays = [pa.array(column) for column in columns]
            writer.write_table(pa.table([*arrays, pa.array(label)], schema=schema))


class Watched:
    """The most anonymous memory of this process, above what it had at first, in bytes; and in all, phase by phase."""

    def __init__(self) -> None:
        self._first = self.most = self._now()
        self.phase, self.by_phase = "", dict[str, int]()
        self._done = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self._done.wait(0.01):
            now = self._now()
            self.most = max(self.most, now)
            self.by_phase[self.phase] = max(self.by_phase.get(self.phase, 0), now)

    @staticmethod
    def _now() -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("/proc/self/status has no RssAnon")

    def end(self) -> int:
        """Stop looking, and return the most."""
        self._done.set()
        return self.most - self._first


def fit(path: Path, system: str, mode: str, n_rounds: int, folder: Path) -> dict[str, Any]:
    """Fit once in this process, and return the figures."""
    from app.datasets.matrices import Columns, ParquetColumns, read_table
    from core.artifact import save
    from core.base.columns import ColumnTable
    from core.registry import ALGORITHMS

    name, parameters = SYSTEMS[system]
    names = [field for field in pq.read_schema(path).names if field != "label"]

    def run(path: Path) -> dict[str, Any]:
        ranker = ALGORITHMS[name](n_rounds=n_rounds, **parameters)
        started, first = time.process_time(), 0.0
        clock_started, clock_first = time.perf_counter(), 0.0

        def step(done: int, of: int, info: object) -> None:
            nonlocal first, clock_first
            if done == 1:
                first, clock_first = time.process_time(), time.perf_counter()

        y: Any
        X: Any
        if mode == "in memory":
            table = read_table(path, Columns(names, "label", None, None))
            X, y = table.coded, table.y
        else:
            X = ColumnTable(ParquetColumns(path, names, None), folder)
            y = pq.read_table(path, columns=["label"])[0].to_numpy()
        ranker.fit(X, y, callback=step)
        ended, clock_ended = time.process_time(), time.perf_counter()
        return {
            "coding": first - started,
            "rounds": ended - first,
            "clock coding": clock_first - clock_started,
            "clock rounds": clock_ended - clock_first,
            "sha256": hashlib.sha256(save(ranker)).hexdigest(),
        }

    run(folder / "small.parquet")  # loads libraries and kernels
    watched = Watched()
    metrics = run(path)
    return metrics | {"memory": watched.end()}


def fit_peer(path: Path, system: str, n_rounds: int, folder: Path) -> dict[str, Any]:
    """Fit a peer from disk in this process, and return the figures."""
    times: list[float] = []

    def clock() -> None:
        times.append(time.process_time())

    tables = [folder / "small.parquet", path]  # the first loads libraries
    if system == "lightgbm":
        tables = [_write_text(table, folder) for table in tables]
    run = {"xgboost": _fit_xgboost, "lightgbm": _fit_lightgbm}[system]
    run(tables[0], n_rounds, folder, clock)
    times.clear()
    watched = Watched()
    clock()
    run(tables[1], n_rounds, folder, clock)
    return {"coding": times[1] - times[0], "rounds": times[-1] - times[1], "memory": watched.end()}


def _write_text(path: Path, folder: Path) -> Path:
    """Write a table as text, the label first."""
    from pyarrow import csv

    text = folder / f"{path.stem}.tsv"
    with text.open("wb") as file:
        for part in _numbers(path, 1):
            csv.write_csv(part, file, csv.WriteOptions(include_header=False, delimiter="\t"))
    return text


def _numbers(path: Path, groups: int, start: int = 0) -> Iterator[pa.Table]:
    """Yield row groups from one on, so many at once, the label first and words as their numbers."""
    with pq.ParquetFile(path) as file:
        names = ["label", *(name for name in file.schema_arrow.names if name != "label")]
        for first in range(start, file.num_row_groups, groups):
            last = min(first + groups, file.num_row_groups)
            part = file.read_row_groups(list(range(first, last)), columns=names).select(names)
            for j, column in enumerate(part.columns):
                if pa.types.is_dictionary(column.type):
                    codes = pa.chunked_array([chunk.indices for chunk in column.chunks])
                    part = part.set_column(j, names[j], codes)
            yield part


def _words(path: Path) -> list[int]:
    """Return the columns of words."""
    fields = [field for field in pq.read_schema(path) if field.name != "label"]
    return [j for j, field in enumerate(fields) if pa.types.is_dictionary(field.type)]


def _fit_xgboost(path: Path, n_rounds: int, folder: Path, clock: Callable[[], None]) -> None:
    import xgboost

    class Batches(xgboost.DataIter):  # type: ignore[misc, name-defined, unused-ignore]
        """Reads the file from its beginning as often as XGBoost asks."""

        def __init__(self) -> None:
            super().__init__(cache_prefix=str(folder / path.stem))
            self.reset()

        def reset(self) -> None:
            self._parts = _numbers(path, GROUPS_AT_ONCE)

        def next(self, input_data: Callable[..., None]) -> bool:
            part = next(self._parts, None)
            if part is None:
                return False
            columns = [column.to_numpy().astype(np.float32) for column in part.columns]
            input_data(data=np.column_stack(columns[1:]), label=columns[0], feature_types=types)
            return True

    class Clock(xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined, unused-ignore]
        """Notes when a round ends."""

        def after_iteration(self, model: object, epoch: int, evals_log: object) -> bool:
            clock()
            return False

    words = _words(path)
    n_features = len(pq.read_schema(path).names) - 1
    types = ["c" if j in words else "q" for j in range(n_features)]
    parameters = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": 31,
        "max_depth": 0,
        "max_bin": 255,
        "eta": 0.1,
        "objective": "binary:logistic",
        "nthread": THREADS,
    }
    data = xgboost.ExtMemQuantileDMatrix(
        Batches(), max_bin=255, nthread=THREADS, enable_categorical=True
    )
    xgboost.train(parameters, data, num_boost_round=n_rounds, callbacks=[Clock()])


def _fit_lightgbm(text: Path, n_rounds: int, folder: Path, clock: Callable[[], None]) -> None:
    import lightgbm

    parameters = {
        "objective": "binary",
        "num_leaves": 31,
        "max_bin": 255,
        "learning_rate": 0.1,
        "num_threads": THREADS,
        "two_round": True,
        "verbosity": -1,
    }
    words = _words(folder / "small.parquet")
    data = lightgbm.Dataset(str(text), params=parameters, categorical_feature=words)
    lightgbm.train(parameters, data, n_rounds, callbacks=[lambda environment: clock()])


class Meter:
    """The CPU seconds of this process and the bytes over the loopback device, noted 50 times a second."""

    def __init__(self) -> None:
        self._notes = [self._now()]
        self._done = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while not self._done.wait(0.02):
            self._notes.append(self._now())

    @staticmethod
    def _now() -> tuple[float, float, float]:
        devices = Path("/proc/self/net/dev").read_text().split("lo:")
        received = float(devices[1].split()[0]) if len(devices) > 1 else 0.0
        return time.time(), time.process_time(), received

    def between(self, first: float, last: float) -> tuple[float, float]:
        """Stop, and return the CPU seconds and the bytes between two times of the clock."""
        self._done.set()
        notes = np.array([*self._notes, self._now()])
        ends = [np.interp([first, last], notes[:, 0], column) for column in notes.T[1:]]
        return float(np.diff(ends[0])[0]), float(np.diff(ends[1])[0])


def by_name() -> Any:
    """Return this module as workers import it: what is of `__main__` would be sent to them, and not be the same."""
    return import_module("benchmarks.scale")


TICKS: list[tuple[float, float]] = []
"""Of a worker of a peer: the clock and the CPU seconds at the end of each round."""


def tick(*_: object) -> None:
    """Note that a round has ended in this process."""
    TICKS.append((time.time(), time.process_time()))


def take_ticks() -> list[tuple[float, float]]:
    """Return what this process has noted."""
    return TICKS


def secret_in(folder: Path) -> Path:
    """Return the file of the cluster's key and certificate, which is made once."""
    from app.serve.prepare import make_cluster_secret

    path = folder / "dask.pem"
    make_cluster_secret(path)
    return path


def tls_options(secret: Path) -> list[str]:
    """Return the options of Dask's own commands that name the file."""
    return ["--tls-ca-file", str(secret), "--tls-cert", str(secret)]


@contextmanager
def cluster(n_workers: int, join: Sequence[str], folder: Path) -> Iterator[Any]:
    """Start a scheduler and workers, which `join` an address that is appended to the command; yield a client."""
    from distributed import Client

    from app.training.cluster import read_security

    root = str(Path(__file__).parents[1])
    secret = secret_in(folder)
    environment = os.environ | {
        "RANKWRIGHT_DASK_SECRET_FILE": str(secret),
        "NUMBA_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "RANKWRIGHT_STATE_DIR": str(folder),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }
    quiet: Any = {"env": environment, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    found = folder / f"scheduler-{n_workers}.json"
    found.unlink(missing_ok=True)
    words = ["-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0"]
    words += ["--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(found)]
    words += ["--protocol", "tls", *tls_options(secret)]
    processes = [subprocess.Popen([sys.executable, *words], **quiet)]
    try:
        while not found.exists():
            if processes[0].poll() is not None:
                raise RuntimeError("the Dask scheduler has ended")
            time.sleep(0.05)
        address = json.loads(found.read_text())["address"]
        cores = sorted(os.sched_getaffinity(0))
        for k in range(n_workers):
            process = subprocess.Popen([sys.executable, *join, address], **quiet)
            os.sched_setaffinity(process.pid, {cores[k % len(cores)]})
            processes.append(process)
        with Client(
            address, security=read_security(secret)
        ) as client:  # XGBoost asks for the default
            client.wait_for_workers(n_workers, timeout=120)
            yield client
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()


Ticks = Sequence[tuple[float, float]]


def metric_estimates_of(meter: Meter, ticks: Mapping[Any, Ticks], model: bytes) -> dict[str, Any]:
    """Return the figures of a round; ticks: of each worker, at the end of each round."""
    ends = [(each[0], each[-1]) for each in ticks.values()]
    n = max(map(len, ticks.values())) - 1
    first = max(begun[0] for begun, _ in ends)
    last = max(ended[0] for _, ended in ends)
    driver, n_bytes = meter.between(first, last)
    spent = [(ended[1] - begun[1]) / n for begun, ended in ends]
    return {
        "busiest": max(spent),
        "all": sum(spent),
        "driver": driver / n,
        "bytes": n_bytes / n,
        "clock": (last - first) / n,
        "sha256": hashlib.sha256(model).hexdigest(),
    }


def fit_on_workers(
    path: Path, system: str, n_workers: int, n_rounds: int, folder: Path
) -> dict[str, Any]:
    """Fit on a cluster of workers of this machine, and return the figures of a round."""
    from app.datasets.matrices import ParquetColumns
    from app.training.cluster import DaskHosts
    from core.artifact import save
    from core.base.columns import ColumnTable
    from core.registry import ALGORITHMS

    names = [field for field in pq.read_schema(path).names if field != "label"]
    y = pq.read_table(path, columns=["label"])[0].to_numpy()
    identity = hashlib.sha256(str(path.stat()).encode()).digest()
    source = ParquetColumns(path, names, identity)  # coded once for all fits
    name, parameters = SYSTEMS[system]
    ranker = ALGORITHMS[name](n_rounds=n_rounds, **parameters)

    class Counted(DaskHosts):
        """Counts what is asked."""

        n_calls = 0

        def call(self, method: str, arguments: Any) -> list[Any]:
            self.n_calls += 1
            return super().call(method, arguments)

    with (
        cluster(n_workers, ["-m", "workers.join"], folder) as client,
        Counted(client.scheduler.address, secret_in(folder), 60.0) as hosts,
    ):
        calls: list[int] = []
        ticks: dict[str, list[tuple[float, float]]] = {}

        def step(done: int, of: int, info: object) -> None:
            if done == 0:
                return
            now = time.time()
            calls.append(hosts.n_calls)
            # Whoever asks a worker for its clock takes its time: not within the rounds that count.
            spent = hosts.client.run(time.process_time) if done in (1, of) else {}
            for worker in spent or ticks:
                ticks.setdefault(worker, []).append((now, spent.get(worker, 0.0)))

        meter = Meter()
        table = ColumnTable(source, folder, placement=hosts)
        ranker.fit(table, y, callback=step)
        metrics = metric_estimates_of(meter, ticks, save(ranker))
        return metrics | {"questions": (calls[-1] - calls[0]) / (len(calls) - 1)}


def fit_peer_on_workers(
    path: Path, system: str, n_leaves: int, n_workers: int, n_rounds: int, folder: Path
) -> dict[str, Any]:
    """Fit a peer on a cluster of workers of this machine, and return the figures of a round."""
    words = ["-m", "dask", "worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    words += ["--memory-limit", "0", "--local-directory", str(folder)]
    words += tls_options(secret_in(folder))
    with cluster(n_workers, words, folder) as client:
        groups = list(range(0, pq.read_metadata(path).num_row_groups, GROUPS_AT_ONCE))
        workers = list(client.scheduler_info()["workers"])
        parts = []
        for k, first in enumerate(groups):  # as ours: runs of rows, in order
            worker = workers[k * len(workers) // len(groups)]
            parts.append(client.submit(by_name().read_part, path, first, workers=[worker]))
        meter = Meter()
        run = {"lightgbm": _fit_lightgbm_parts, "xgboost": _fit_xgboost_parts}[system]
        model = run(client, path, parts, n_leaves, n_rounds)
        return metric_estimates_of(meter, client.run(by_name().take_ticks), model)


def read_part(path: Path, first: int) -> npt.NDArray[np.float32]:
    """Return some row groups, the label first, of single precision."""
    part = next(_numbers(path, GROUPS_AT_ONCE, first))
    return np.column_stack([column.to_numpy().astype(np.float32) for column in part.columns])


def _as_arrays(path: Path, parts: Sequence[Any]) -> tuple[Any, Any]:
    """Return rows and labels as arrays of Dask, of parts on its workers."""
    import dask.array
    from dask import delayed

    n_columns = len(pq.read_schema(path).names)
    rows = pq.read_metadata(path).num_rows
    size = GROUPS_AT_ONCE * ROW_GROUP
    shapes = [(min(size, rows - start), n_columns) for start in range(0, rows, size)]
    blocks = [
        dask.array.from_delayed(delayed(part), shape, np.float32)
        for part, shape in zip(parts, shapes, strict=True)
    ]
    table = dask.array.concatenate(blocks)
    return table[:, 1:], table[:, 0]


def _fit_lightgbm_parts(
    client: Any, path: Path, parts: Sequence[Any], n_leaves: int, n_rounds: int
) -> bytes:
    import lightgbm

    X, y = _as_arrays(path, parts)
    model = lightgbm.DaskLGBMClassifier(
        client=client,
        n_estimators=n_rounds,
        num_leaves=n_leaves,
        max_bin=255,
        learning_rate=0.1,
        tree_learner="data",
        n_jobs=1,
        verbosity=-1,
    )
    model.fit(X, y, categorical_feature=_words(path), callbacks=[by_name().tick])
    return str(model.booster_.model_to_string()).encode()


def _fit_xgboost_parts(
    client: Any, path: Path, parts: Sequence[Any], n_leaves: int, n_rounds: int
) -> bytes:
    import xgboost.dask

    class Clock(xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined, unused-ignore]
        """Notes in a worker when a round ends."""

        def after_iteration(self, model: object, epoch: int, evals_log: object) -> bool:
            by_name().tick()
            return False

    X, y = _as_arrays(path, parts)
    parameters = {
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": n_leaves,
        "max_depth": 0,
        "max_bin": 255,
        "eta": 0.1,
        "objective": "binary:logistic",
        "nthread": 1,
    }
    words = _words(path)
    types = ["c" if j in words else "q" for j in range(X.shape[1])]
    data = xgboost.dask.DaskQuantileDMatrix(
        client, X, y, max_bin=255, feature_types=types, enable_categorical=True
    )
    done = xgboost.dask.train(client, parameters, data, n_rounds, callbacks=[Clock()])
    return bytes(done["booster"].save_raw("json"))


def run_job(path: Path, system: str, n_rounds: int, memory_bytes: int, folder: Path) -> None:
    """Run a whole training job in this process, and print its figures."""
    from app.jobs.progress import Report
    from app.training import baselines, tasks
    from core.base.parameters import list_parameters
    from core.registry import ALGORITHMS

    name, parameters = SYSTEMS[system]
    defaults = {each.name: each.default for each in list_parameters(ALGORITHMS[name])}
    validation: Any = {"method": "holdout", "fraction": 0.25}
    schema = pq.read_schema(path)
    features = [
        {"name": field.name, "type": "categorical" if j in _words(path) else "numeric"}
        for j, field in enumerate(schema)
        if field.name != "label"
    ]
    spec = {
        "algorithm": {"name": name, "parameters": defaults | parameters | {"n_rounds": n_rounds}},
        "objective": {"metric": "auc"},
        "validation": validation,
        "baselines": baselines.resolve(None, kind="bipartite", validation=validation),
        "search": None,
        "validation_dataset": None,
        "protected_columns": [],
        "seed": 0,
        "model_name": "scale",
    }
    table = {"path": str(path), "label": "label", "weight": None, "group": None, "query": None}
    payload: Any = {
        "workdir": str(folder),
        "spec": spec,
        "table": {**table, "features": features},
        "validation_table": None,
        "dataset_kind": "bipartite",
        "pair": ["0", "1"],
        "labels": None,
        "memory_bytes": memory_bytes,
    }
    watched, started = Watched(), time.process_time()
    times: dict[str, float] = {}

    def listen(step: int, of: int, info: Any) -> None:
        phase = str(info.job.get("phase", "")) if isinstance(info, Report) else watched.phase
        if phase != watched.phase:
            times[phase] = time.process_time() - started
            print(f"{times[phase]:8.1f} s: {phase}", flush=True)
        watched.phase = phase

    result: Any = tasks.run(payload, listen)
    print(
        f"{time.process_time() - started:.1f} CPU s, {watched.end() / 1e6:,.0f} MB more than at first"
    )
    for phase, most in watched.by_phase.items():
        print(f"{most / 1e6:8,.0f} MB: {phase}")
    for part, found in result["parts"].items():
        print(part, found["auc"], found["positives"], found["negatives"])
    print("artifact", result["artifact"]["sha256"], result["warnings"])
    print("baselines", json.dumps(result["baselines"])[:2000])


def measure_workers(given: argparse.Namespace, folder: Path) -> None:
    """Print the figures of fits on clusters."""
    table = folder / "table.parquet"
    write_table(table, given.rows, given.features)
    peers = list(PEERS)
    if given.peers_python == sys.executable:
        peers = with_peers(peers, {name: name for name in peers})
    print(f"{given.rows:,} rows, {given.features} columns, {given.rounds} rounds\n")
    print(
        "| system | workers | busiest worker, CPU ms a round | all workers | driving process | times as fast "
        "| questions a round | KB a round | clock, ms a round | the same bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    leaves = {LEAVES[system] for system in given.systems}
    beside = [f"{peer}, {n} leaves" for n in sorted(leaves) for peer in peers]
    for system in [*given.systems, *beside]:
        first: dict[str, Any] = {}
        for n_workers in given.workers:
            runs = [
                _fit_on_workers(given, table, system, n_workers, folder)
                for _ in range(given.repeats)
            ]
            best = min(runs, key=lambda run: run["busiest"] + run["driver"])
            first = first or best
            faster = (first["busiest"] + first["driver"]) / (best["busiest"] + best["driver"])
            alike = {run["sha256"] for run in (first, *runs)}
            questions = f"{best['questions']:.1f}" if "questions" in best else "–"
            print(
                f"| {system} | {n_workers} | {1e3 * best['busiest']:.1f} | {1e3 * best['all']:.1f} "
                f"| {1e3 * best['driver']:.1f} | {faster:.2f} | {questions} "
                f"| {best['bytes'] / 1e3:,.0f} | {1e3 * best['clock']:.1f} "
                f"| {'yes' if len(alike) == 1 else 'NO'} |",
                flush=True,
            )


def _fit_on_workers(
    given: argparse.Namespace, table: Path, system: str, n_workers: int, folder: Path
) -> dict[str, Any]:
    """Fit, a peer by its own interpreter, and return the figures."""
    if system in SYSTEMS:
        return fit_on_workers(table, system, n_workers, given.rounds, folder)
    command = [given.peers_python, "-m", "benchmarks.scale", "--workers", str(n_workers)]
    command += ["--rounds", str(given.rounds), "--folder", str(folder)]
    command += ["--fit", str(table), system, "on workers"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    metrics: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return metrics


def main() -> None:
    """Fit each system both ways, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=at_least_one, default=1_000_000)
    parser.add_argument("--features", type=at_least_one, default=30)
    parser.add_argument("--rounds", type=at_least_one, default=20)
    parser.add_argument("--repeats", type=at_least_one, default=1)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--folder", type=Path, help="for the table and the codes")
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--table", type=Path, help="one that was written before")
    parser.add_argument("--only-stored", action="store_true", help="the table fits no memory")
    parser.add_argument("--workers", type=at_least_one, nargs="+", help="on clusters of so many")
    parser.add_argument("--one-process", action="store_true", help="for a look: memory is wrong")
    parser.add_argument("--job", choices=list(SYSTEMS), help="run a whole job")
    parser.add_argument("--memory-bytes", type=at_least_one, default=4_000_000_000)
    parser.add_argument("--fit", nargs=3, metavar=("TABLE", "SYSTEM", "MODE"))
    given = parser.parse_args()
    if given.fit is not None:
        table, system, mode = given.fit
        if given.workers:
            peer, leaves, _ = system.replace(",", "").split()
            arguments = int(leaves), *given.workers, given.rounds, given.folder
            print(json.dumps(fit_peer_on_workers(Path(table), peer, *arguments)))
        elif system in PEERS:
            print(json.dumps(fit_peer(Path(table), system, given.rounds, given.folder)))
        else:
            print(json.dumps(fit(Path(table), system, mode, given.rounds, given.folder)))
        return
    if given.workers and given.rounds < 2:  # the first one is not counted
        parser.error(f"--workers: --rounds must be at least 2, got {given.rounds}")
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        if given.job is not None:
            table = given.table or Path(name) / "table.parquet"
            if given.table is None:
                write_table(table, given.rows, given.features)
            run_job(table, given.job, given.rounds, given.memory_bytes, Path(name))
            return
        (measure_workers if given.workers else measure)(given, Path(name))


def measure(given: argparse.Namespace, folder: Path) -> None:
    """Print the figures of all fits."""
    table = given.table or folder / "table.parquet"
    if given.table is None:
        write_table(table, given.rows, given.features)
    write_table(folder / "small.parquet", 3000, given.features)
    cells = given.rows * given.features
    peers = list(PEERS)
    if given.peers_python == sys.executable:
        peers = with_peers(peers, {name: name for name in peers})
    modes = ["stored"] if given.only_stored else ["in memory", "stored"]
    print(f"{given.rows:,} rows, {given.features} columns, {given.rounds} rounds\n")
    print(
        "| fit | X | memory, MB | bytes a row | reading and coding, CPU s | ns a cell | rounds, CPU s "
        "| ns a cell and round | the same bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for system in [*given.systems, *peers]:
        known: set[str] = set()
        for mode in [PEERS[system]] if system in PEERS else modes:
            best: dict[str, Any] | None = None
            for _ in range(given.repeats):
                if given.one_process and system not in PEERS:
                    metrics = fit(table, system, mode, given.rounds, folder)
                else:
                    python = given.peers_python if system in PEERS else sys.executable
                    command = [python, "-m", "benchmarks.scale"]
                    command += ["--rounds", str(given.rounds), "--folder", str(folder)]
                    command += ["--fit", str(table), system, mode]
                    done = subprocess.run(command, check=True, capture_output=True, text=True)
                    metrics = json.loads(done.stdout)
                if best is None or metrics["rounds"] < best["rounds"]:
                    best = metrics
            assert best is not None
            known.add(best.get("sha256", ""))
            alike = "–" if system in PEERS else "yes" if len(known) == 1 else "NO"
            later = max(given.rounds - 1, 1)
            print(
                f"| {system} | {mode} | {best['memory'] / 1e6:,.0f} | {best['memory'] / given.rows:.0f} "
                f"| {best['coding']:.1f} | {1e9 * best['coding'] / cells:.1f} | {best['rounds']:.1f} "
                f"| {1e9 * best['rounds'] / cells / later:.2f} | {alike} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
