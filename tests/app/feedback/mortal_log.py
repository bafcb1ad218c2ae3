"""A process that logs decisions until it is killed, and what it logs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np

from app.feedback.log import DecisionLog
from app.platform import failpoints
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.ids import new_id
from app.scoring.decisions import DecisionBlock, DecisionStream, Piece, SegmentFeature

STREAM = DecisionStream(
    "ours",
    "churn",
    "live",
    (SegmentFeature("age", "numeric"), SegmentFeature("town", "categorical")),
)
ROWS = 3
"""Decisions of a piece."""


def piece(
    number: int,
    rows: int = ROWS,
    decision_ids: list[str] | None = None,
    start: float = 1_780_000_000.0,
) -> Piece:
    """Return decisions with the scores `number`, `number` + 1, …, of a time that many seconds after `start`."""
    ones = np.ones(rows, "<f4").tobytes()
    scores = np.arange(number, number + rows, dtype="<f8").tobytes()
    block = DecisionBlock(
        at=start + number,
        revision=1,
        alias_revision=2,
        model_id="mdl_1",
        threshold=None,
        caller=None,
        origin="score",
        request_id=f"req_{number}",
        decision_ids=decision_ids or [new_id("dec") for _ in range(rows)],
        ids=[f"c{number}", *[None] * (rows - 1)],
        scores=scores,
        probabilities=None,
        explored=bytes(rows),
        propensities=ones,
        keeps=ones,
        numbers=scores,
        words=[[f"town {number}"] * rows],
    )
    return Piece(rows, msgspec.msgpack.encode(block))


KEEPER = """
import sys, threading
from app.operations.housekeeping import Housekeeper
from app.platform.blobs import FolderStore
from app.platform.database import Database
from app.platform.settings import Settings
settings = Settings()
Housekeeper(Database(sys.argv[1]), FolderStore(settings.blob_dir), settings, threading.Event()).round()
"""


def keep_house(state: Path, url: str, failure: str) -> int:
    """Do the housekeeping in a process of its own until it dies; return its exit code."""
    environment = {"RANKWRIGHT_STATE_DIR": str(state), failpoints.VARIABLE: failure}
    command = [sys.executable, "-c", KEEPER, url]
    root = Path(__file__).parents[3]
    return subprocess.run(command, cwd=root, env=os.environ | environment, check=False).returncode


def main(url: str, folder: str, count: int) -> None:
    """Log some pieces, say so, and seal them."""
    db, state = Database(url), Path(folder)
    log = DecisionLog(state / "decisions", FolderStore(state / "blobs"), db.writing)
    for number in range(count):
        log.append(STREAM, piece(number * ROWS))
    sys.stdout.write("logged\n")
    sys.stdout.flush()
    log.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
