"""`rankwright audit list | export`: who did what, was denied what, and read what."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from rankwright import api, types
from rankwright.cli.common import Service, asks, err, print_lines, takes

audit = typer.Typer(
    name="audit",
    help="List or export the audit log.",
    no_args_is_help=True,
)


def _by(entry: types.AuditEntry) -> str:
    of_server = "command line" if entry.action.startswith("rankwright ") else "the service"
    return entry.author or entry.key_id or of_server


@audit.command("list")
@asks()
@takes(api.ListAuditEntries, but=["after"])
def list_(
    client: Service,
    *,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries to list.")] = 20,
    **fields: Any,
) -> None:
    """List the entries of the audit log, newest first."""
    found = list(client.audit(**{**fields, "limit": limit + 1}))
    shown = found[:limit]
    if client.prints_json([each.to_json() for each in shown]):
        return
    if not shown:
        err.print("there are no such entries", markup=False)
        return
    print_lines(
        (
            each.created_at[:19],
            each.outcome,
            _by(each),
            each.action,
            each.summary or each.path or "",
        )
        for each in shown
    )
    if len(found) > limit:
        err.print(f"… and more: --limit is {limit}")


@audit.command("export")
@asks(json=None)
@takes(api.ListAuditEntries, but=["after", "limit"])
def export(
    client: Service,
    *,
    after: Annotated[
        int, typer.Option(min=0, help="Position of the last entry that you have.")
    ] = 0,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with new entries until you interrupt it.")
    ] = False,
    every: Annotated[
        float, typer.Option(min=1.0, help="With --follow: seconds between two requests.")
    ] = 10.0,
    **fields: Any,
) -> None:
    """Write the sealed entries, one line of JSON each, oldest first. To continue later, pass the `position` of the last
    line as --after.
    """
    while True:
        for entry in client.export_audit(after, **fields):
            typer.echo(json.dumps(entry.to_json()))
            after = entry.position or after
        if not follow:
            return
        time.sleep(every)
