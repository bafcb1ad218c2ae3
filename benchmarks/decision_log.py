"""The log of decisions: what recording costs, and what a day of decisions costs to compact, store and read.

`python -m benchmarks.decision_log` records decisions one by one, and stores a million as a process does in a day: one
small segment a minute. A process of its own reads them, compacts them, and reads them again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sqlalchemy import select, update

from app.feedback import compaction, repository
from app.feedback.attribution import JOIN_COLUMNS
from app.feedback.log import DecisionLog
from app.feedback.schemas import FeedbackRequest
from app.feedback.segments import read_segments
from app.feedback.upkeep import Files
from app.models.service import AliasFeedback
from app.platform import catalogue, migrate
from app.platform.blobs import Blob, FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
from app.platform.tables import DecisionSegment
from app.scoring.decisions import Common, Recorder, Recording

OWNER = "bench"
MINUTES = 1_440
ONE_BY_ONE = 20_000


class Cost:
    """Seconds and CPU seconds of a block."""

    def __enter__(self) -> Cost:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._wall
        self.cpu = time.process_time() - self._cpu


def served_of(n_features: int) -> Any:
    """Return what a recording needs of a model of numeric features, whose alias flags rows."""
    names = [f"feature_{k}" for k in range(n_features)]
    return SimpleNamespace(
        model_id="mdl_0198f0c2a6d37c1e8a4b5c6d7e8f9012",
        ranker=SimpleNamespace(categories_=None),
        features=SimpleNamespace(names=names, types=["numeric"] * n_features),
        calibration=None,
        flag_threshold=1.0,
    )


def record(recorder: Recorder, served: Any, X: Any, request: int) -> None:
    """Record the decisions of one request."""
    common = Common(time.time(), "key_0198f0c2", "score", f"req_{request:032x}")
    recording = Recording(recorder, common)
    ids = [f"customer {request}-{k}" for k in range(len(X))]
    recording.add(served, X, X[:, 0], ids)
    recording.commit()


def store_a_day(
    log: DecisionLog, recorder: Recorder, served: Any, count: int, n_features: int
) -> None:
    """Store decisions as one segment a minute."""
    rng = np.random.default_rng(0)
    per_minute = max(1, count // MINUTES)
    for minute in range(count // per_minute):
        record(recorder, served, rng.normal(size=(per_minute, n_features)), minute)
        log.flush()


def stored(db: Database) -> list[Blob]:
    """Return the files of all decisions."""
    with db.read() as session:
        keys = session.scalars(select(DecisionSegment.segment_key)).all()
        return list(catalogue.find_all(session, keys).values())


def compact(folder: Path) -> dict[str, dict[str, float]]:
    """Read all decisions, compact them, and read them again; returns what it cost."""
    settings = Settings(state_dir=folder)
    db, blobs = Database(settings.sqlalchemy_url), FolderStore(settings.blob_dir)

    def read() -> dict[str, float]:
        found = stored(db)
        with Cost() as cost:
            rows = sum(
                batch.num_rows for batch in read_segments(blobs, found, [*JOIN_COLUMNS, "score"])
            )
        size = sum(blob.bytes or 0 for blob in found)
        return {"files": len(found), "bytes": size / rows, "read_seconds": cost.wall}

    before = read()
    files = Files(db.reading, db.writing, blobs, lambda keys: 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with Cost() as cost:
        compaction.compact(files, OWNER)
    found = {
        "cpu_seconds": cost.cpu,
        "seconds": cost.wall,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "peak_before_mb": peak,
    }
    after = read()
    db.close()
    return {"before": before, "compaction": found, "after": after}


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--child", type=Path)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(compact(given.child)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        settings = Settings(state_dir=Path(temporary))
        migrate.upgrade(settings.sqlalchemy_url)
        db, blobs = Database(settings.sqlalchemy_url), FolderStore(settings.blob_dir)
        log = DecisionLog(settings.state_dir / "decisions", blobs, db.writing)
        served = served_of(given.features)
        settled = FeedbackRequest.model_validate({}).as_stored()
        recorder = Recorder(OWNER, AliasFeedback("churn", "live", 1, 1, settled), served, log)
        X = np.random.default_rng(1).normal(
            size=(min(ONE_BY_ONE, given.decisions), 1, given.features)
        )
        record(recorder, served, X[0], 0)
        log.flush()  # which imports what sealing needs
        with Cost() as recording:
            for request, row in enumerate(X):
                record(recorder, served, row, request)
        in_log = sum(file.end for file in log.files())
        with Cost() as sealing:
            log.flush()
        count = len(X)
        print(
            "| One decision per request | CPU per decision, µs | Decisions per second | Bytes per decision |"
        )
        print("|---|---:|---:|---:|")
        rate, size = count / recording.wall, in_log / count
        print(f"| recorded | {recording.cpu / count * 1e6:.1f} | {rate:,.0f} | {size:.0f} |")
        rate = count / sealing.wall
        print(f"| stored in segments | {sealing.cpu / count * 1e6:.1f} | {rate:,.0f} | |")
        with Cost() as day:
            store_a_day(log, recorder, served, given.decisions, given.features)
        with db.write() as session:
            yesterday = DecisionSegment.sealed_at - repository.DAY
            session.execute(update(DecisionSegment).values(sealed_at=yesterday))
        db.close()
        own = [sys.executable, "-m", "benchmarks.decision_log", "--child", temporary]
        found = json.loads(subprocess.run(own, check=True, stdout=subprocess.PIPE).stdout)
    print(f"\n{given.decisions:,} decisions stored in {day.wall:.1f} s, one segment a minute\n")
    print("| A day | Files | Bytes per decision | Read what a join needs, s |")
    print("|---|---:|---:|---:|")
    for name in ("before", "after"):
        row = found[name]
        words = f"{name} compaction"
        print(f"| {words} | {row['files']} | {row['bytes']:.0f} | {row['read_seconds']:.2f} |")
    cost = found["compaction"]
    print(
        f"\ncompaction: {cost['cpu_seconds']:.2f} s of CPU, {cost['seconds']:.2f} s, peak memory"
        f" {cost['peak_mb']:.0f} MB ({cost['peak_before_mb']:.0f} MB before it)"
    )


if __name__ == "__main__":
    main()
