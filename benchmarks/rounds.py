"""Writes down when each round of a boosting fit is over, and what telling of it took.

In the fit processes of a service, too, which know nothing of this: `benchmarks/site` stands on their PYTHONPATH.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
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


def record_if_asked() -> None:
    """Record in each process that fits, if recording is asked for; some are forks of one without kernels."""
    if VARIABLE in os.environ:
        sys.meta_path.insert(0, _Recorder())


class _Recorder(MetaPathFinder):
    """Records once a process has imported the loop of the boosting algorithms."""

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Return None for any other module, which the next finder then finds."""
        if fullname != "core.boosting.loop":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        assert spec is not None
        loader = spec.loader
        assert loader is not None
        load = loader.exec_module

        def load_and_record(module: ModuleType) -> None:
            load(module)
            record(Path(os.environ[VARIABLE]))

        setattr(loader, "exec_module", load_and_record)  # noqa: B010 - mypy knows no method that is set
        return spec


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
