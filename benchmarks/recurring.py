"""Monitors where customers recur: false alarms and power in a simulated year, `python -m benchmarks.recurring`.

Each customer has a part of the log-odds that the score shows and a part that it does not, and keeps both. Every week
all present customers are scored, `--each` times (or a lognormal number of times), and a part of them is replaced
(turnover). The validation has independent customers, or the customers of the first week (`--same`).

`ranking`, `calibration` and `challenger` name the test. `changed` is the share of years with an alarm if from week 20
on the score loses a part of what it shows (ranking), the odds of a positive are multiplied by 1.4 (calibration), or the
challenger shows more (challenger): power. `false` is that without a change. By chance alone a rate of n trials is
within ±2 √(p (1 − p) / n).
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import at_least_one
from core.monitoring import window
from tests.core.monitoring.recurring import World, alarms

WORLDS = {
    "0 % turnover": World(turnover=0.0),
    "10 % turnover": World(),
    "100 % turnover": World(turnover=1.0),
    "one row each": World(customers=2000, each=1),
    "lognormal sizes": World(customers=400, lognormal=True),
    "the validation's customers": World(same=True),
    "validation 1,000": World(validation=1000),
    "validation 2,500": World(validation=2500),
    "validation 50,000": World(validation=50_000),
    "500 a week": World(customers=125),
    "20,000 a week": World(customers=5000),
    "1 % positives": World(prevalence=0.01, customers=2500),
    "50 % positives": World(prevalence=0.5),
    "AUC .6": World(shown=0.35),
    "AUC .99": World(shown=8.0, hidden=0.5),
    "100 customers": World(customers=100, each=20, turnover=0.0),
    "26 weeks": World(weeks=26),
    "104 weeks": World(weeks=104),
    "20 % missing": World(missing=0.2, missing_positives=0.2),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["ranking", "calibration", "challenger"])
    parser.add_argument("--trials", type=at_least_one, default=100)
    parser.add_argument("--worlds", nargs="*", default=[*WORLDS])
    parser.add_argument("--false-only", action="store_true", help="no power")
    parser.add_argument("--ignored", action="store_true", help="without the ids of customers")
    given = parser.parse_args()
    window.N_PATHS = 1 << 13
    print("| world | test | false | changed |\n|---|---|---:|---:|")
    for name in given.worlds:
        for test in given.tests:
            rates = [
                100.0
                * np.mean(
                    [
                        alarms(
                            WORLDS[name],
                            np.random.default_rng([trial, len(what)]),
                            what,
                            test,
                            not given.ignored,
                        )
                        for trial in range(given.trials)
                    ]
                )
                for what in (("",) if given.false_only else ("", test))
            ]
            shown = " | ".join(f"{each:.1f}" for each in rates)
            print(f"| {name} | {test} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
