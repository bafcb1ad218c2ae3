"""Kernels for a level of processors compared with those for this very machine: `python -m benchmarks.cpu_level`.

The image is compiled for a level (`RANKWRIGHT_KERNEL_CPU`), so that it starts on every processor of it without a
compiler. Fits and scoring in processes of either kind, in turns; medians and their ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks import at_least_one

LEVEL = "x86-64-v3,aarch64"


def measure() -> dict[str, float]:
    """Seconds of each piece of work, the kernels loaded before."""
    from core import AUCSVM, LogitBoost, RankBoost, TreeRank

    random = np.random.default_rng(0)
    X = random.normal(size=(67_000, 30))
    y = X[:, :5].sum(axis=1) + random.normal(scale=2.0, size=len(X)) > 1.0
    trees = LogitBoost(n_rounds=50, max_leaves=31, max_depth=60)
    model = trees.fit(X, y)
    work: dict[str, Callable[[], object]] = {
        "LogitBoost, trees of 31 leaves": lambda: trees.fit(X, y),
        "RankBoost, stumps": lambda: RankBoost(n_rounds=100).fit(X, y),
        "TreeRank": lambda: TreeRank().fit(X, y),
        "AUCSVM": lambda: AUCSVM(C=1.0).fit(X, y),
        "scoring 67,000 rows": lambda: [model.decision_function(X) for _ in range(10)],
    }
    found = {}
    for name, call in work.items():
        call()
        started = time.perf_counter()
        call()
        found[name] = time.perf_counter() - started
    return found


def main() -> None:
    """Measure in turns and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=at_least_one, default=5)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure()))
        return
    found: dict[str, dict[str, list[float]]] = {"own": {}, "level": {}}
    for _ in range(given.repeats + 1):  # the first compiles
        for kind, times in found.items():
            environment = os.environ | ({"RANKWRIGHT_KERNEL_CPU": LEVEL} if kind == "level" else {})
            command = [sys.executable, "-m", "benchmarks.cpu_level", "--child"]
            done = subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            )
            for name, seconds in json.loads(done.stdout).items():
                times.setdefault(name, []).append(seconds)
    print("| work | own, s | level, s | level / own |\n|---|---|---|---|")
    for name, own in found["own"].items():
        level = found["level"][name]
        ratios = [b / a for a, b in zip(own[1:], level[1:], strict=True)]
        print(
            f"| {name} | {statistics.median(own[1:]):.3f} | {statistics.median(level[1:]):.3f} "
            f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) |"
        )


if __name__ == "__main__":
    main()
