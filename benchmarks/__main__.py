"""All benchmarks, or some: `python -m benchmarks [NAME …] [--smallest]`; `--list` names them.

Without a name those of `make bench` run, each in a process of its own, one after the other. `--smallest` runs each in
its smallest form, of tiny tables, in a few seconds: to see that it runs and measures something, for its figures mean
nothing. It ends with 1 if one of them failed, and goes on to the next.

Peers that are not installed are left out of the tables, and named.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Benchmark:
    """How a benchmark is run: by `make bench` or not, its arguments, and those of its smallest form."""

    smallest: Sequence[str]
    usual: Sequence[str] = ()
    in_bench: bool = True
    within: bool = False
    """Whether its smallest form runs within one process: without a service or a child."""


def _of(
    smallest: str, usual: str = "", *, in_bench: bool = True, within: bool = False
) -> Benchmark:
    return Benchmark(shlex.split(smallest), usual.split(), in_bench, within)


BENCHMARKS: Mapping[str, Benchmark] = {
    "http_score": _of("--pairs 1 --seconds .3 --rows 300 --rounds 3"),
    "http_bulk": _of("--rows 60 --seconds .02 --rounds 3 --trained-on 300"),
    "latency": _of("--submits 1 --tours 1 --against HEAD --databases SQLite"),
    "metrics": _of("--rows 140"),
    "ingest": _of("--rows 500 --repeats 1"),
    "stumps": _of("--rows 1000 --repeats 1"),
    "trees": _of(
        "--data plain --rows 1000 --repeats 1 --threads 1",
        "--data plain wide missing mixed rare rarer",
    ),
    "treerank": _of("--rows 1000 --repeats 1"),
    "svm": _of("--rows 1000 --small 1000 --plain-seconds 0", "--plain-seconds 10", within=True),
    "overhead": _of("--rows 2500 --rounds 10 --repeats 2 --pairs 0"),
    "decision_log": _of("--decisions 1500", in_bench=False),
    "join_outcomes": _of("--decisions 3000 --outcomes 300", in_bench=False),
    "many_jobs": _of("--jobs 2 --clients 1 --workers 1"),
    "coverage": _of(
        "--trials 8 --bootstrapped 1 --draws 2 --population 20000", in_bench=False, within=True
    ),
    "console_pages": _of("--rounds 1 --requests 1 --models 5 --rows 150", in_bench=False),
    "cpu_level": _of("--child", in_bench=False),
    "few_rows": _of(
        "--rows 150 --splits 1 --systems additive logistic", in_bench=False, within=True
    ),
    "tree_schedule": _of("--rows 1000 --rounds 3 --threads 2", in_bench=False, within=True),
    "lists": _of("--queries 30 --repeats 1 --rounds 3", in_bench=False, within=True),
    "pooled_folds": _of("--trials 1 --rows 600 --learners logistic", in_bench=False, within=True),
    "portfolio": _of(
        "--drawn 150 --settings 2 --seconds .05 --library 2", in_bench=False, within=True
    ),
    "label_noise": _of("--drawn premise --rows 400 --repeats 2", in_bench=False, within=False),
    "monotone": _of("--drawn-rows 300 --repeats 1 --grid-rows 5", in_bench=False, within=True),
    "reasons": _of(
        "--drawn-rows 300 --explained 2 --rounds 1 --trees 3", in_bench=False, within=True
    ),
    "scale": _of("--rows 1500 --features 11 --rounds 2 --one-process", in_bench=False, within=True),
    "paper3": _of("breast_cancer --repeats 2", in_bench=False),
    "sizing": _of("--copies 1 --models 1", in_bench=False),
    "soak": _of("--minutes .05 --clients 1", in_bench=False),
    "upload": _of("--megabytes 2 --repeats 1 --files 2 --rows 300", in_bench=False),
    "monitoring": _of("--trials 1 --designs usual 26,000 steady", in_bench=False, within=True),
    "recurring": _of('--trials 1 --false-only --worlds "26 weeks"', in_bench=False, within=True),
    "findings": _of("--trials 1 --worlds 60", in_bench=False, within=True),
    "very_top": _of("--drawn-rows 400 --repeats 1 --rounds 5", in_bench=False, within=True),
    "waterfall": _of("--tours 1", in_bench=False),
}
LEFT_OUT: Mapping[str, str] = {
    "auto": "takes tables of one's own; tests/test_benchmark_auto.py runs it",
    "auto_peers": "its peers stand in an environment of their own (`make peers`)",
    "calibration_monitor": "is a table of monitoring",
    "checks": "is a table of coverage",
    "first_minute": "sets a clone up anew, which takes minutes",
    "forests": "takes tables of one's own",
    "paper4_tables": "takes tables of one's own",
    "rounds": "is what overhead measures by",
    "unseen_tables": "makes tables for auto, in the peers' environment",
}
"""Modules of this folder that are not run from here, and why."""


def main() -> None:
    """Run them, and print which failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: those of `make bench`")
    parser.add_argument("--smallest", action="store_true", help="tiny tables, for a few seconds")
    parser.add_argument("--list", action="store_true", help="name them")
    given = parser.parse_args()
    if given.list:
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:14s}", *benchmark.usual)
        for name, why in LEFT_OUT.items():
            print(f"{name:14s} {why}")
        return
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; known are {', '.join(BENCHMARKS)}")
    everything = BENCHMARKS if given.smallest else [n for n, b in BENCHMARKS.items() if b.in_bench]
    failed = []
    for name in given.names or everything:
        benchmark = BENCHMARKS[name]
        arguments = benchmark.smallest if given.smallest else benchmark.usual
        print(f"\n# {name} {' '.join(arguments)}", flush=True)
        begun = time.perf_counter()
        command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
        if subprocess.run(command, check=False).returncode != 0:
            failed.append(name)
        print(f"# {time.perf_counter() - begun:.1f} s", flush=True)
    if failed:
        sys.exit(f"{len(failed)} failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
