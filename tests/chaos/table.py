"""The report as tables: faults fired, attacks made, times until work continued, and findings of the audit."""

from __future__ import annotations

from collections.abc import Sequence

from app.platform.failpoints import POINTS
from tests.chaos.orders import KILL, SEAMS
from tests.chaos.recovery import summary
from tests.chaos.run import Report

SHOWN = 20


def print_reports(reports: Sequence[Report]) -> None:
    """Print what the runs did and found, in Markdown."""
    names = [report.deployment for report in reports]
    print(f"\n| failpoint | {' | '.join(f'{name}: killed, other' for name in names)} |")
    print(f"|---|{'---|' * len(names)}")
    for point in SEAMS:
        cells = []
        for report in reports:
            killed = report.fired[point, KILL]
            other = sum(n for (p, _), n in report.fired.items() if p == point) - killed
            cells.append(f"{killed}, {other}")
        print(f"| `{point}`: {POINTS[point]} | {' | '.join(cells)} |")
    print(f"\n| done at random moments | {' | '.join(names)} |")
    print(f"|---|{'---|' * len(names)}")
    for what in sorted({what for report in reports for what in report.done}):
        print(f"| {what} | {' | '.join(str(report.done[what]) for report in reports)} |")
    print(
        "\n| deployment | minutes | kills | accepted | lost | doubled | other findings"
        " | seconds to the next claim | after the first loss |"
    )
    print(f"|{'---|' * 9}")
    for report in reports:
        counts = f"{report.minutes:.0f} | {report.kills} | {report.accepted}"
        print(f"| {report.deployment} | {counts} | {_outcome(report)} |")
    for report in reports:
        answers = ", ".join(f"{answer} {n}" for answer, n in sorted(report.answers.items()))
        print(f"\n{report.deployment}, answers that callers got: {answers}")
        for error, n in report.errors.most_common(SHOWN):
            print(f"  logged {n} times: {error}")
        for finding in report.findings[:SHOWN]:
            print(f"  FOUND {finding}")
        if len(report.findings) > SHOWN:
            print(f"  … and {len(report.findings) - SHOWN} more")


def _outcome(report: Report) -> str:
    lost = sum(finding.startswith("lost") for finding in report.findings)
    doubled = sum(finding.startswith("doubled") for finding in report.findings)
    seconds = [recovery.seconds for recovery in report.recovered]
    first = [recovery.seconds for recovery in report.recovered if recovery.first]
    other = len(report.findings) - lost - doubled
    return f"{lost} | {doubled} | {other} | {summary(seconds)} | {summary(first)}"
