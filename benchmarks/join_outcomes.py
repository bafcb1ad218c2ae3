"""Decisions joined with outcomes: seconds and peak memory of one join, of decisions that are read from their files.

`python -m benchmarks.join_outcomes` writes 30 million decisions of 3 million entities, and a million outcomes, of which
a fifth name a decision. A process of its own joins them by each rule. `--folder` keeps the files for another run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.feedback.attribution import LabelValues, Rule
from app.feedback.joining import join_files
from app.feedback.outcomes import COLUMNS, Outcomes, as_table
from app.feedback.segments import hash_ids, read_segments, schema_of, write_segment
from app.platform.blobs import Blob, FolderStore
from app.platform.documents import OutcomeRule

OWNER = "bench"
FILE_ROWS = 1_000_000
ENTITIES_PER_DECISION = 0.1
YEAR = 365 * 86_400.0
RULES: tuple[Rule, ...] = get_args(Rule)


def decision_ids(rng: np.random.Generator, count: int) -> pa.Array:
    """Return random ids of decisions."""
    text = np.empty((count, 36), np.uint8)
    text[:, :4] = np.frombuffer(b"dec_", np.uint8)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text[:, 4:] = digits[rng.integers(0, 16, (count, 32), np.uint8)]
    offsets = np.arange(count + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def write(folder: Path, n_decisions: int, n_outcomes: int) -> None:
    """Write decisions and outcomes into a folder."""
    rng = np.random.default_rng(0)
    blobs = FolderStore(folder / "blobs")
    n_entities = max(1, int(n_decisions * ENTITIES_PER_DECISION))
    names = np.array([f"c{i}" for i in range(n_entities)])
    hashes = hash_ids(OWNER, names.tolist())
    schema = schema_of()
    made, some = [], []
    for start in range(0, n_decisions, FILE_ROWS):
        count = min(FILE_ROWS, n_decisions - start)
        who = rng.integers(0, n_entities, count)
        ids = decision_ids(rng, count)
        at = (start + np.arange(count)) / n_decisions * YEAR
        columns = {
            "decision_id": ids,
            "id": pa.array(names[who]),
            "id_hash": pa.array(hashes[who]),
            "at": pa.array(at),
            "model_id": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["mdl_1"]),
            "score": pa.array(rng.normal(size=count)),
            "origin": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["score"]),
        }
        constants = {"revision": 1, "alias_revision": 1, "explored": 0, "propensity": 1, "keep": 1}
        arrays = [
            columns[each.name]
            if each.name in columns
            else pa.array(np.full(count, constants[each.name])).cast(each.type)
            if each.name in constants
            else pa.nulls(count, each.type)
            for each in schema
        ]
        batches = [pa.RecordBatch.from_arrays(arrays, schema=schema)]
        made.append(write_segment(blobs, batches, schema))
        some.append(ids.take(rng.integers(0, count, n_outcomes // 5 * count // n_decisions + 1)))
    explicit = pa.concat_arrays(some).to_pylist()[: n_outcomes // 5]
    rest = n_outcomes - len(explicit)
    event = [*[None] * len(explicit), *rng.uniform(0, YEAR, rest).tolist()]
    known = [YEAR if at is None else at + float(rng.exponential(20 * 86_400)) for at in event]
    outcomes: dict[str, list[Any]] = {name: [None] * n_outcomes for name in COLUMNS} | {
        "decision_id": [*explicit, *[None] * rest],
        "id": [*[None] * len(explicit), *names[rng.integers(0, n_entities, rest)].tolist()],
        "label": rng.choice(["true", "false"], n_outcomes).tolist(),
        "event_at": event,
        "known_at": known,
        "has_known_at": [True] * n_outcomes,
    }
    pq.write_table(as_table(OWNER, [(Outcomes(**outcomes), YEAR)]), folder / "outcomes.parquet")
    (folder / "blobs.json").write_text(json.dumps(made))


def join(folder: Path, rule: Rule) -> dict[str, float]:
    """Join everything once; returns the seconds, the peak memory in MB, and the labelled decisions."""
    blobs = FolderStore(folder / "blobs")
    made = [Blob(*each) for each in json.loads((folder / "blobs.json").read_text())]
    names = [field.name for field in pq.read_schema(folder / "outcomes.parquet")]
    coded = [name for name in names if name in ("label", "source")]
    began, cpu = time.perf_counter(), time.process_time()
    outcomes = pq.read_table(folder / "outcomes.parquet", read_dictionary=coded)
    labels = {"mdl_1": LabelValues("true", "false")}
    declared: OutcomeRule = {"attribute": rule, "horizon_days": 90, "silence": None}

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return read_segments(blobs, made, columns)

    labelled = 0
    for joined in join_files(outcomes, read, labels, 0.0, 2 * YEAR, declared, folder, ["score"]):
        labelled += int((joined.labelled.label >= 0).sum())
    return {
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "labelled": labelled,
    }


def main() -> None:
    """Write the files, unless the folder has them, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=30_000_000)
    parser.add_argument("--outcomes", type=int, default=1_000_000)
    parser.add_argument("--rules", nargs="+", default=RULES, choices=RULES)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only-write", action="store_true")
    parser.add_argument("--child", choices=RULES)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(join(given.folder, given.child)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        if not (folder / "blobs.json").exists():
            write(folder, given.decisions, given.outcomes)
        if given.only_write:
            return
        print("| Rule | Seconds | CPU seconds | Peak memory, MB | Labelled decisions |")
        print("|---|---:|---:|---:|---:|")
        for rule in given.rules:
            own = ["--child", rule, "--folder", str(folder)]
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.join_outcomes", *own],
                check=True,
                capture_output=True,
                text=True,
            )
            found = json.loads(done.stdout)
            print(
                f"| {rule} | {found['seconds']:.1f} | {found['cpu_seconds']:.1f} | {found['peak_mb']:.0f} "
                f"| {found['labelled']:,} |"
            )


if __name__ == "__main__":
    main()
