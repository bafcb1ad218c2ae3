"""The `rankwright` command. Each module of commands has a `register(app)` that adds its own."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    import typer

    from app.cli import client, doctor, health, interpret, processes, score, train
    from app.cli import evaluate as judge
    from app.cli import operations as backup
    from app.cli import reports as documents

    app = typer.Typer(
        name="rankwright",
        help="Train, judge and serve rankers: models that put the likely positives at the top of a list.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    processes.register(app)
    health.register(app)
    doctor.register(app)
    backup.register(app)
    client.register(app)
    train.register(app)
    score.register(app)
    interpret.register(app)
    judge.register(app)
    documents.register(app)
    app()
