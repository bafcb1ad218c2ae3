"""`python -m tests.chaos`: attack all deployments; exit with 1 if anything was found, for a mutant if nothing was."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.aims import AIMS
from tests.chaos.deployments import DEPLOYMENTS, SHORT_LEASES, Split
from tests.chaos.disk import leave_mounts_behind
from tests.chaos.orders import SEAMS
from tests.chaos.run import GIVEN_UP, Plan, Report, Run
from tests.chaos.table import print_reports

QUIET_SECONDS = 240.0
SECONDS_PER_KILL = 15.0
START_SECONDS = 600.0
LONG = 100
"""So many kills make a run long enough for outages of minutes."""
ORPHAN_SECONDS = 90.0
"""The leases of production promise that an orphan runs again within this time, unless a server is away for minutes."""


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=60, help="kills in all, shared among the deployments"
    )
    parser.add_argument(
        "--each", type=int, default=1, help="faults at every failpoint, in each deployment"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--deployment",
        choices=[*DEPLOYMENTS, "all"],
        help=f"by default all; {Split.name} for a mutant, where more than one worker may have a job",
    )
    parser.add_argument("--leases", choices=["short", "production"], default="short")
    parser.add_argument(
        "--every", type=float, default=1.0, help="mean seconds between two assaults, if jobs end"
    )
    parser.add_argument("--minutes", type=float, help="after which a run is given up, and fails")
    parser.add_argument(
        "--mutant", choices=list(AIMS), help="attack round by round until it is caught"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave state and logs behind; fill no disk"
    )
    return parser.parse_args()


def attack(name: str, kills: int, given: argparse.Namespace, *, may_mount: bool) -> Report:
    """Run against one deployment."""
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{name}-"))
    leases = SHORT_LEASES if given.leases == "short" else {}
    aim = AIMS.get(given.mutant)
    seams = SEAMS if aim is None else ()
    most = max(kills, len(seams) * given.each)
    outages = aim is None and kills >= LONG
    plan = Plan(
        kills=kills,
        each=given.each,
        seconds=60 * given.minutes if given.minutes else START_SECONDS + SECONDS_PER_KILL * most,
        quiet_seconds=QUIET_SECONDS,
        every_seconds=given.every,
        seams=seams,
        outages=outages,
        within_seconds=ORPHAN_SECONDS if given.leases == "production" and not outages else None,
        aim=aim,
        seed=given.seed,
    )
    own_disk = may_mount and aim is None and not given.keep
    deployment = DEPLOYMENTS[name](folder, leases, given.mutant, own_disk=own_disk)
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
    """Print the tables; return 1 if a run found something, or for a mutant if it found nothing."""
    given = arguments()
    may_mount = leave_mounts_behind()
    chosen = given.deployment or (Split.name if given.mutant else "all")
    names = list(DEPLOYMENTS) if chosen == "all" else [chosen]
    reports = [
        attack(name, given.kills // len(names), given, may_mount=may_mount) for name in names
    ]
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
