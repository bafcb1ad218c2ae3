"""The server's commands of `rankwright`. The commands that call a service over HTTP are in the client's package."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line. It works where the server's entry points are not installed, too, such as in an image."""
    commands()(prog_name="rankwright")


def commands() -> typer.Typer:
    """Return the command line with the commands of the client and of the server."""
    try:
        from rankwright.cli import command_line
    except ModuleNotFoundError:
        from app.platform.installation import Incomplete, check_client

        try:
            check_client()
        except Incomplete as problem:
            sys.exit(str(problem))
        raise

    return command_line([add_commands])


def add_commands(app: typer.Typer) -> None:
    """Add the server's commands to the command line: an entry point of the group `rankwright.commands`."""
    import typer
    from rankwright.cli import help_of

    from app.cli import audit, operations, processes

    app.callback()(processes.options)
    manage = "Manage the service"
    panels = {
        "Run the service": (
            processes.serve,
            processes.api,
            processes.worker,
            processes.dispatcher,
        ),
        manage: (
            processes.migrate,
            processes.health,
            operations.doctor,
            operations.backup,
            operations.restore,
            operations.copy_blobs,
        ),
    }
    for panel, members in panels.items():
        for member in members:
            app.command(rich_help_panel=panel, help=help_of(member))(member)
    # The client adds the commands that call a service.
    of_audit = typer.Typer(help="List, export or verify the audit log.", no_args_is_help=True)
    of_audit.command("verify", help=help_of(audit.verify))(audit.verify)
    app.add_typer(of_audit, name="audit", rich_help_panel=manage)
    app.add_typer(processes.key_commands, name="keys", rich_help_panel=manage)
    app.add_typer(operations.quota_commands, name="quotas", rich_help_panel=manage)
