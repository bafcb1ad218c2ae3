"""The `rankwright` command."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer


def main() -> None:
    """Run the command line."""
    commands()(prog_name="rankwright")  # also if started by `python -m app.cli`


def commands() -> typer.Typer:
    """Put all commands together, in the order in which `rankwright --help` lists them."""
    import typer

    from app.cli import client, evaluate, operations, processes, reports, score, train

    app = typer.Typer(
        name="rankwright",
        help="Train, judge and serve rankers: models that put the likely positives at the top of a list.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
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
        ),
        "Use the service": (
            client.upload,
            client.versions,
            client.show,
            client.algorithms,
            train.train,
            train.follow,
            score.score,
            reports.importance,
            reports.dependence,
            reports.tree,
            evaluate.evaluate,
            evaluate.compare,
            reports.report,
            reports.plot,
            reports.profile,
        ),
    }
    for panel, members in panels.items():
        for member in members:
            app.command(rich_help_panel=panel)(member)
    app.add_typer(processes.key_commands, name="keys", rich_help_panel=manage)
    return app
