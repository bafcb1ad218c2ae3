"""`rankwright doctor`: looks at the state, says what is wrong and what to do; exits with 1 where something fails."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from app.cli.processes import MANAGE, SettingsError, read_settings

if TYPE_CHECKING:  # it brings the science along, which takes its time to import
    from app.operations.doctor import Finding
    from app.platform.settings import Settings

_COLOURS = {"ok": "green", "warn": "yellow", "FAIL": "red"}
_PART_WIDTH = 13

out = Console(highlight=False, soft_wrap=True)


def doctor(
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every byte: SQLite's file, and each blob's hash.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    state_dir: Annotated[
        Path | None,
        typer.Option(help="Folder of all state.", envvar="RANKWRIGHT_STATE_DIR"),
    ] = None,
) -> None:
    """Examine the state, whether the service runs or not: settings, disk, database, queue, workers, broker, blobs."""
    from app.operations.doctor import Level

    findings = []
    for finding in _findings(state_dir, deep=deep):
        findings.append(finding)
        if not as_json:
            _print(finding.level, finding.part, finding.detail, finding.advice)
    failed = sum(finding.level == Level.FAIL for finding in findings)
    if as_json:
        body = {"ok": not failed, "findings": [asdict(finding) for finding in findings]}
        typer.echo(json.dumps(body, indent=2))
    elif failed:
        out.print(f"\n[red]{failed} of {len(findings)} findings are trouble[/]")
    raise typer.Exit(1 if failed else 0)


def _findings(state_dir: Path | None, *, deep: bool) -> Iterator[Finding]:
    from app.operations.doctor import Finding, Level, examine

    try:
        settings = read_settings(state_dir)
    except SettingsError as error:  # nothing else can be looked at
        yield Finding("settings", Level.FAIL, str(error), "see docs/settings.md for its rule")
        return
    runs = None if settings.broker_url is not None else _holder(settings) is not None
    yield from examine(settings, os.environ, broker_url=_broker_url(settings), runs=runs, deep=deep)


def _print(level: str, part: str, detail: str, advice: str | None) -> None:
    from rich.text import Text

    line = Text(f"{level:<5}", style=_COLOURS[level])
    line.append(f"{part:<{_PART_WIDTH}} {detail}", style="default")
    out.print(line)
    if advice is not None:
        out.print(Text(f"{'':<{5 + _PART_WIDTH}} → {advice}", style="bold"))


def _broker_url(settings: Settings) -> str:
    from app.serve import broker

    if settings.broker_url is not None:
        return settings.celery_broker_url
    return broker.url(broker.socket_path(settings.state_dir.absolute()))


def _holder(settings: Settings) -> int | None:
    """The `serve` that runs on this state: it left its pid with its lock."""
    pid = None
    try:
        with (settings.state_dir / "lock").open() as file:
            pid = int(file.read())
            os.kill(pid, 0)  # first, so that the lock is hardly ever tried while somebody starts
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (PermissionError, BlockingIOError):
        return pid
    except (OSError, ValueError):
        pass
    return None


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(rich_help_panel=MANAGE)(doctor)
