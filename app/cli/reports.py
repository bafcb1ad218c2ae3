"""`rankwright report | plot | profile`: what a model is worth or a dataset holds, as a file for somebody else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.api_client import ClientError
from app.cli.client import out, service
from app.cli.interpret import Model
from app.cli.options import Key, Url
from app.cli.report_text import curve_of, has_curve, judged_on, terminal_plot

REPORTS = {"md": "markdown", "html": "html", "json": "json"}
PICTURES = {"svg": "svg", "png": "png", "json": "vega"}

Output = Annotated[
    Path | None, typer.Option(help="Write to this file; its ending says the format.")
]


def report(
    model: Model,
    *,
    format: Annotated[str | None, typer.Option(help="md, the default, html or json.")] = None,
    output: Output = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Write the report on a model: its figures, curves, cuts, data, parameters and lineage."""
    chosen = _format(format, output, REPORTS, "md")
    with service(url, key) as client:
        _write(output, client.model_bytes(model, "report", format=chosen))


def plot(
    model: Model,
    *,
    kind: Annotated[
        str, typer.Option(help="roc, or pauc: the window of the partial AUC enlarged.")
    ] = "roc",
    on: Annotated[str, typer.Option(help="validation or train.")] = "validation",
    band: Annotated[
        str, typer.Option(help="Confidence band: pointwise, simultaneous or none.")
    ] = "pointwise",
    width: Annotated[int, typer.Option(help="Of a PNG, in pixels.")] = 1280,
    format: Annotated[
        str | None, typer.Option(help="svg, png, or json: a Vega-Lite specification.")
    ] = None,
    output: Output = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Draw a model's ROC curve: into a file, or without one in the terminal."""
    with service(url, key) as client:
        if output is None and format is None:
            found = client.model(model)
            if not has_curve(found):
                raise ClientError(f"{found['name']} has no ROC curve")
            metrics = client.model(found["id"], "metrics", on=judged_on(found))
            out.print(terminal_plot(curve_of(client, found, metrics)), markup=False)
            return
        asked = {"kind": kind, "on": on, "band": band, "width": width}
        chosen = _format(format, output, PICTURES, "svg")
        _write(output, client.model_bytes(model, "plot", format=chosen, **asked))


def profile(
    dataset: Annotated[str, typer.Argument(help="Id of a dataset.")],
    *,
    format: Annotated[str | None, typer.Option(help="md, the default, html or json.")] = None,
    output: Output = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Write what a dataset's columns hold: distributions, gaps, how each ranks alone, likely leaks, repeated rows."""
    chosen = _format(format, output, REPORTS, "md")
    with service(url, key) as client:
        _write(output, client.profile(dataset, chosen))


def _format(given: str | None, output: Path | None, known: dict[str, str], default: str) -> str:
    """What the service calls the format that was asked for, or that the file's ending says."""
    ending = default if output is None else output.suffix.removeprefix(".").lower()
    name = ending if given is None else given
    if name not in known:
        raise typer.BadParameter(f"the format must be one of {', '.join(known)}, got {name!r}")
    return known[name]


def _write(output: Path | None, content: bytes) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
    else:
        output.write_bytes(content)


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (report, plot, profile):
        app.command(rich_help_panel="Use the service")(command)
