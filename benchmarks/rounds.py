"""Writes down when each round of a boosting fit is over, and what telling of it took.

In the fit processes of a service, too, which know nothing of this: `benchmarks/site` stands on their PYTHONPATH.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

VARIABLE = "BENCHMARK_ROUNDS"


def environment(path: Path) -> Mapping[str, str]:
    """Return the variables that make the fit processes of a service record into this file."""
    root = Path(__file__).parents[1]
    return {
        "PYTHONPATH": os.pathsep.join([str(root / "benchmarks" / "site"), str(root)]),
        VARIABLE: str(path),
    }


def record_in_fit_process() -> None:
    """Record, if this is a fit process and recording is asked for."""
    if VARIABLE in os.environ and "workers.child" in sys.orig_argv:
        record(Path(os.environ[VARIABLE]))


def record(path: Path) -> None:
    """From now on append two times to the file after every round of this process: before it is told of, and after."""
    from core.boosting.loop import Monitor  # late: every process of a service imports this file

    tell = Monitor.__call__
    file = path.open("ab", buffering=0)

    def timed(watch: Monitor, *arguments: Any) -> Any:
        started = time.monotonic()
        ended = tell(watch, *arguments)
        file.write(struct.pack("dd", started, time.monotonic()))
        return ended

    setattr(Monitor, "__call__", timed)  # noqa: B010 - mypy knows no method that is set


def read(path: Path, since: float) -> np.ndarray:
    """What was recorded since that time: of each round the time before and after the telling, shape (n_rounds, 2)."""
    import numpy as np  # late, as above

    found = np.fromfile(path).reshape(-1, 2)
    return found[found[:, 0] >= since]
