"""`python -m chaos`: attack both deployments, and end with 1 if anything was found."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from app.infra.faults import POINTS
from chaos.deployments import DEPLOYMENTS, SHORT_LEASES
from chaos.mutants import MUTANTS
from chaos.run import GIVEN_UP, Plan, Report, Run
from chaos.table import print_reports

QUIET_SECONDS = 240.0
SECONDS_A_KILL = 15.0
START_SECONDS = 300.0
NEVER = 86400.0


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=60, help="kills in all, shared among the deployments"
    )
    parser.add_argument(
        "--each", type=int, default=1, help="faults at every seam, in each deployment"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deployment", choices=[*DEPLOYMENTS, "both"], default="both")
    parser.add_argument("--leases", choices=["short", "production"], default="short")
    parser.add_argument(
        "--every", type=float, default=3.0, help="mean seconds between two assaults"
    )
    parser.add_argument("--minutes", type=float, help="after which a run is given up, and fails")
    parser.add_argument(
        "--looks", type=float, default=1.0, help="seconds between looks at the queue"
    )
    parser.add_argument("--mutant", choices=[n for n in MUTANTS if n.startswith("no-")])
    parser.add_argument("--keep", action="store_true", help="leave state and logs behind")
    return parser.parse_args()


def attack(name: str, kills: int, given: argparse.Namespace) -> Report:
    """One run against one deployment."""
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{name}-"))
    leases = SHORT_LEASES if given.leases == "short" else {}
    # As long as idle workers look for themselves, nobody misses the outbox.
    looks = {"look_seconds": NEVER if given.mutant == "no-outbox" else given.looks}
    most = max(kills, len(POINTS) * given.each)
    plan = Plan(
        kills=kills,
        each=given.each,
        seconds=60 * given.minutes if given.minutes else START_SECONDS + SECONDS_A_KILL * most,
        quiet_seconds=QUIET_SECONDS,
        every_seconds=given.every,
        seed=given.seed,
    )
    deployment = DEPLOYMENTS[name](folder, {**leases, **looks}, given.mutant)
    try:
        report = Run(deployment, plan, lambda line: print(line, flush=True))()
    finally:
        deployment.close()
        if given.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return report


def main() -> int:
    """Print the tables; 1 when a run found something, and the other way round for a mutant."""
    given = arguments()
    names = list(DEPLOYMENTS) if given.deployment == "both" else [given.deployment]
    reports = [attack(name, given.kills // len(names), given) for name in names]
    print_reports(reports)
    found = any(report.findings for report in reports)
    if given.mutant:  # a run that ran out of time has caught nothing
        found = any(not f.startswith(GIVEN_UP) for report in reports for f in report.findings)
        print(f"\nthe mutant {given.mutant} was {'caught' if found else 'NOT caught'}")
        return int(not found)
    print(f"\n{'something was found' if found else 'nothing was found'}")
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
