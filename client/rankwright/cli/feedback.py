"""Commands for the feedback loop: record decisions, send outcomes, read the monitor, answer alarms."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from rankwright import api, types
from rankwright.cli.common import (
    CommandFailed,
    Exit,
    Service,
    asks,
    err,
    existing,
    new_table,
    out,
    print_lines,
    sending,
    split_alias,
    table_file,
    takes,
)

Alias = Annotated[str, typer.Argument(metavar="NAME@ALIAS", help="The alias, as name@alias.")]

_FAMILIES = {
    "unlabelled": "drift",
    "ranking": "AUC",
    "calibration": "calibration",
    "guarantee": "guaranteed rate",
}
_OF_GROUPS = {"selection": "selection rates", "group_calibration": "calibration of groups"}
_SETTINGS = ("keep", "features", "days", "explore", "outcome", "shadow", "monitor")
"""Members of the feedback settings that can be set."""


@asks(json=None)
def feedback(
    client: Service,
    alias: Alias,
    file: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help='JSON file of the new settings, for example {"monitor": {"period": "week"}}.',
        ),
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="Record no more decisions.")] = False,
) -> None:
    """Print the feedback settings of an alias, or replace them with those of a file.

    Settings make an alias record its decisions. You can edit the printed settings and send them back.
    """
    name, at = split_alias(alias)
    if stop and file is not None:
        raise CommandFailed("--stop cannot be combined with a file")
    if stop:
        client.models.delete_feedback(name, at)
        err.print_line(f"{alias} records no more decisions")
        return
    if file is None:
        found = client.models.read_feedback(name, at).to_json()
        out.print_json(data={each: found[each] for each in _SETTINGS})
        return
    made = client.models.set_feedback(name, at, **_settings_of(file))
    err.print_line(f"{alias} has revision {made.revision} of its feedback settings")
    if made.detectable is not None:
        err.print_line(_say_detectable(made.detectable))


def _settings_of(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except ValueError as error:
        raise CommandFailed(f"{file} must contain JSON: {error}") from error
    if not isinstance(found, dict):
        raise CommandFailed(f"{file} must contain a JSON object")
    if unknown := sorted(found.keys() - {*_SETTINGS}):
        raise CommandFailed(f"{file} can set {', '.join(_SETTINGS)}, got {', '.join(unknown)}")
    return found


def _say_detectable(found: types.DetectableDrop) -> str:
    """Return the smallest fall of the AUC that the monitor can find, in words."""
    if found.drop is not None:
        return f"finds a fall of the AUC of {found.drop:.3f} with probability {found.power:g}"
    if found.floor is None:
        return "the validation has too few rows to find a fall of the AUC"
    return (
        f"finds a fall of the AUC with probability {found.power:g} only if it is larger than {found.floor:.3f}, "
        "however many decisions there are, because the validation has few rows"
    )


@asks()
@takes(api.CreateOutcomes)
def outcomes(
    client: Service,
    file: Annotated[
        Path,
        typer.Argument(
            callback=existing,
            help="CSV, NDJSON, JSON or Arrow file of outcomes. -: standard input.",
        ),
    ],
    **fields: Any,
) -> None:
    """Send what happened to the entities that were scored.

    Columns: decision_id or id, label, event_at; optionally known_at, source, weight and amount. Rows that were sent
    before are not stored again.
    """
    with table_file(file) as table, sending(table) as sent:
        found = client.send_outcomes(table, progress=sent, **fields)
    if client.prints_json(found.to_json()):
        return
    names = ("matched", "unmatched", "corrected", "duplicates", "replayed")
    counts = {name: getattr(found, name) for name in names}
    shown = ", ".join(f"{n:,} {name}" for name, n in counts.items() if n is not None)
    out.print_line(f"{found.rows:,} outcomes{': ' + shown if shown else ''}")


@asks()
def monitor(client: Service, alias: Alias) -> None:
    """Show whether the model behind an alias is still right: its periods, and its open alarms.

    The exit code is 7 if an alarm is open.
    """
    name, at = split_alias(alias)
    found = client.models.monitor(name, at)
    waiting = [each for each in found.alarms if each.acknowledged_at is None]
    if not client.prints_json(found.to_json()):
        _print_monitor(found, waiting)
    if waiting:
        raise typer.Exit(Exit.ALARM)


def _print_monitor(found: types.AliasMonitor, waiting: list[types.Alarm]) -> None:
    if found.settings is None:
        err.print_line("no monitor is set: `rankwright feedback NAME@ALIAS FILE` sets one")
    elif found.detectable is not None:
        out.print_line(_say_detectable(found.detectable))
    if found.periods:
        made = {test.family for period in found.periods for test in period.tests}
        families = _FAMILIES | {each: _OF_GROUPS[each] for each in _OF_GROUPS if each in made}
        table = new_table("period", "decisions", "AUC", *families.values())
        for period in found.periods:
            tests: dict[str, types.ScheduledTest] = {each.family: each for each in period.tests}
            states = (_state(tests.get(family)) for family in families)
            table.add_row(
                period.start[:10], f"{period.decisions:,}", _auc(tests.get("ranking")), *states
            )
        out.print(table, markup=False, soft_wrap=False)
    elif found.settings is not None:
        err.print_line("no period has been tested yet")
    if found.lost:
        err.print_line(f"{found.lost:,} decisions were lost")
    for each in waiting:
        out.print_line(f"{each.id}  {each.words}", style="red")
    if waiting:
        err.print_line("answer an alarm with `rankwright alarms acknowledge`")


def _state(test: types.ScheduledTest | None) -> str:
    return "–" if test is None else test.status.replace("_", " ")


def _auc(test: types.ScheduledTest | None) -> str:
    if test is None or test.value is None:
        return "–"
    if test.low is None or test.high is None:
        return f"{test.value:.3f}"
    return f"{test.value:.3f} ({test.low:.3f} to {test.high:.3f})"


@asks()
def shadow(client: Service, alias: Alias) -> None:
    """Compare the model behind an alias with its shadow model, on the same decisions."""
    name, at = split_alias(alias)
    found = client.models.shadow(name, at)
    if client.prints_json(found.to_json()):
        return
    if found.shadow is None and found.comparison is None:
        err.print_line("no shadow model is set: `rankwright feedback NAME@ALIAS FILE` sets one")
        return
    if found.comparison is None:
        reason = found.tests[0].words if found.tests else "no period has been compared yet"
        out.print_line(reason)
        return
    made = found.comparison
    out.print_line(made.words)
    if found.swap is not None:
        cells = {
            "flagged by both": found.swap.both,
            "by the champion only": found.swap.champion_only,
            "by the challenger only": found.swap.challenger_only,
            "by neither": found.swap.neither,
        }
        print_lines(
            (title, f"{cell.rows:,} decisions", f"{cell.positives:,} of {cell.known:,} positive")
            for title, cell in cells.items()
        )


alarms = typer.Typer(no_args_is_help=True, help="List and acknowledge alarms.")


@alarms.command("list")
@asks()
def list_alarms(
    client: Service,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those that were acknowledged.")
    ] = False,
    limit: Annotated[int, typer.Option(help="Most alarms to show.", min=1)] = 20,
) -> None:
    """List the alarms of the monitors, newest first."""
    only: dict[str, Any] = {} if everything else {"acknowledged": False}
    listed = client.alarms.list(limit=limit + 1, **only)
    found = [each for each, _ in zip(listed, range(limit + 1), strict=False)]
    shown = found[:limit]
    if client.prints_json([each.to_json() for each in shown]):
        return
    if not shown:
        err.print_line("there is no alarm" if everything else "no alarm is open")
        return
    print_lines(
        (
            each.id,
            each.raised_at[:10],
            f"{each.name}@{each.alias}",
            "open" if each.acknowledged_at is None else f"acknowledged ({each.reference})",
            each.words,
        )
        for each in shown
    )
    if len(found) > limit:
        err.print_line(f"… and more: --limit is {limit}")


class Reference(str, Enum):
    """What later tests are compared with."""

    KEEP = "keep"
    RENEW = "renew"


@alarms.command()
@asks(json=None)
def acknowledge(
    client: Service,
    alarm: Annotated[str, typer.Argument(metavar="ALARM", help="Id of the alarm, alm_….")],
    reason: Annotated[str, typer.Option(help="What you found, and what will be done.")],
    reference: Annotated[
        Reference,
        typer.Option(
            help="keep: compare later periods with the validation, as before. renew: the change is the new normal."
        ),
    ],
) -> None:
    """Answer an alarm. Until then, the same test of the alias raises no further alarm."""
    found = client.alarms.acknowledge(alarm, reason=reason, reference=reference.value)
    out.print_line(f"{found.id}  acknowledged by {found.author}: {found.reference}")
