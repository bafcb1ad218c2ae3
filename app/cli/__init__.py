"""The `rankwright` command. Each module of commands has a `register(app)` that adds its own."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    import typer

    from app.cli import client, evaluate, operations, processes, reports, score, train

    app = typer.Typer(
        name="rankwright",
        help="Train, judge and serve rankers: models that put the likely positives at the top of a list.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    processes.register(app)
    processes.register_health(app)
    operations.register_doctor(app)
    operations.register(app)
    client.register(app)
    train.register(app)
    score.register(app)
    reports.register_interpretation(app)
    evaluate.register(app)
    reports.register(app)
    app()
