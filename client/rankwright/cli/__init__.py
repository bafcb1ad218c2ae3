"""The `rankwright` command: what speaks to a service is here, and other distributions add commands.

A distribution adds commands by an entry point of the group `rankwright.commands`: a function that takes the
`typer.Typer` of the command line. The server's adds `serve`, `doctor`, `keys` and others.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from rankwright import __version__

GROUP = "rankwright.commands"
OF_THE_SERVER = (
    *("serve", "api", "worker", "dispatcher", "migrate", "health", "doctor", "backup", "restore"),
    *("copy-blobs", "keys", "quotas"),
)
"""Commands of the server: whoever types one without the server is told what to install."""

Add = Callable[[typer.Typer], None]


def main() -> None:
    """Run the command line with the commands of all installed distributions."""
    command_line([_added_by(point) for point in metadata.entry_points(group=GROUP)])(
        prog_name="rankwright"
    )


def command_line(additions: Iterable[Add] = ()) -> typer.Typer:
    """Put all commands together, in the order in which `rankwright --help` lists them: those that are added first. If
    the process runs a command of the server, those that call a service are left out.
    """
    app = typer.Typer(
        name="rankwright",
        cls=_Commands,
        help=_options.__doc__,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for add in additions:
        add(app)
    # A process of the server does not load the commands of the client, which take 8 MB.
    if not set(OF_THE_SERVER).intersection(sys.argv[1:2]):
        _add_client_commands(app)
    return app


def _add_client_commands(app: typer.Typer) -> None:
    """Add the commands that call a service."""
    from rankwright.cli import (
        alias_requests,
        datasets,
        evaluating,
        feedback,
        lists,
        models,
        scoring,
        sources,
        training,
    )
    from rankwright.cli.audit import audit
    from rankwright.cli.schedules import schedules
    from rankwright.cli.trash import trash
    from rankwright.cli.webhooks import webhooks

    for command in (
        datasets.upload,
        datasets.read_again,
        sources.sources,
        sources.fetch,
        sources.refresh,
        lists.list_,
        datasets.versions,
        models.show,
        models.algorithms,
        training.train,
        training.follow,
        scoring.score,
        models.importance,
        models.dependence,
        models.tree,
        evaluating.evaluate,
        evaluating.compare,
        evaluating.calibration,
        evaluating.recalibrate,
        models.report,
        models.plot,
        models.cutoff,
        models.checks,
        models.scorecard,
        models.bins,
        models.gains,
        models.metrics,
        models.profile,
        lists.cancel,
        lists.alias,
        lists.overview,
        lists.codes,
        feedback.feedback,
        feedback.outcomes,
        feedback.monitor,
        feedback.shadow,
        alias_requests.break_glass,
    ):
        name = command.__name__.rstrip("_").replace("_", "-")
        app.command(name, rich_help_panel="Use the service", help=help_of(command))(command)
    app.add_typer(models.models, name="models", rich_help_panel="Use the service")
    app.add_typer(alias_requests.requests, name="alias-requests", rich_help_panel="Use the service")
    app.add_typer(feedback.alarms, name="alarms", rich_help_panel="Use the service")
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    if (of_server := groups.get("audit")) is not None:  # one group, with the server's `verify`
        of_server.registered_commands[:0] = audit.registered_commands
    else:
        app.add_typer(audit, name="audit", rich_help_panel="Use the service")
    app.add_typer(trash, name="trash", rich_help_panel="Use the service")
    app.add_typer(schedules, name="schedules", rich_help_panel="Use the service")
    app.add_typer(webhooks, name="webhooks", rich_help_panel="Use the service")


def help_of(command: Callable[..., Any]) -> str:
    """Return a command's help with each paragraph in one line, so that only the terminal's width breaks lines."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _added_by(point: metadata.EntryPoint) -> Add:
    """Return what adds the commands of an entry point. If it fails, a sentence says so and the others still work."""

    def add(app: typer.Typer) -> None:
        before = [*app.registered_commands], [*app.registered_groups]
        try:
            point.load()(app)
        except Exception as error:
            app.registered_commands, app.registered_groups = before
            name = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
            typer.secho(
                f"the commands of {name} cannot be loaded: {type(error).__name__}: {error}",
                fg=typer.colors.RED,
                err=True,
            )

    return add


class _Commands(TyperGroup):
    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> Any:
        """Run the command line. With `--json` among its words, what is wrong with them is told as JSON, too."""
        words = sys.argv[1:] if args is None else args
        if "--json" not in words:
            return super().main(args, *more, **options)
        try:
            code = super().main(args, *more, **{**options, "standalone_mode": False})
        except TyperException as error:
            told = {"detail": error.format_message(), "exit_code": error.exit_code}
            typer.echo(json.dumps({"error": told}), err=True)
            code = error.exit_code
        sys.exit(code)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in OF_THE_SERVER and self.get_command(ctx, args[0]) is None:
            typer.secho(
                f"`rankwright {args[0]}` is a command of the server, which is not installed here or cannot be "
                f"loaded. Install its wheel, rankwright_server-{__version__}-py3-none-any.whl, together with "
                "that of the client. Neither is on a package index.",
                fg=typer.colors.RED,
                err=True,
            )
            raise typer.Exit(1)
        return super().resolve_command(ctx, args)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"rankwright {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_tell_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Train, evaluate and serve rankers: models that put the likely positives at the top of a list."""
