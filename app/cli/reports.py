"""`rankwright report | plot | profile | importance | dependence | tree`: what a model has learnt or a dataset holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.api_client import ClientError
from app.cli.client import new_table, out, service
from app.cli.options import AsJson, Key, Url, given
from app.cli.report_text import curve_of, evaluated_on, has_curve
from app.roc_plot import to_terminal

if TYPE_CHECKING:
    from rich.table import Table

BAR_WIDTH = 40

Model = Annotated[str, typer.Argument(help="The model: id, name, name:version or name@alias.")]
Label = Annotated[
    str | None,
    typer.Option(help="Label whose scores are used. Only for a model with several labels."),
]
Json = dict[str, Any]


def importance(
    model: Model,
    *,
    label: Label = None,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show how much each feature matters to a model."""
    with service(url, key) as client:
        found = client.model(model, "importance", **given(label=label))
    if as_json:
        out.print_json(data=found)
        return
    features = found["features"]
    bars = _bars([feature["importance"] for feature in features])
    out.print(f"{found['method']} ({found['on']} rows). {found['description']}", markup=False)
    table = new_table()
    for feature, bar in zip(features, bars, strict=True):
        table.add_row(feature["name"], f"{feature['importance']:.5g}", bar)
    out.print(table, markup=False)


def dependence(
    model: Model,
    features: Annotated[list[str], typer.Argument(help="One or two features.")],
    *,
    label: Label = None,
    points: Annotated[int, typer.Option(help="Maximum values of a numeric feature.")] = 12,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show partial dependence: mean scores when one or two features are set to different values."""
    with service(url, key) as client:
        asked = given(label=label) | {"feature": features, "points": points}
        found = client.model(model, "partial-dependence", **asked)
    if as_json:
        out.print_json(data=found)
        return
    out.print(f"mean score over {found['rows']:,} {found['on']} rows", markup=False)
    out.print(_one(found) if len(found["features"]) == 1 else _two(found), markup=False)


def tree(
    model: Model,
    *,
    svg: Annotated[
        Path | None, typer.Option(help="Write a picture of the tree to this file.")
    ] = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Print a ranking tree as text, or draw it."""
    with service(url, key) as client:
        if svg is None:
            text = client.model_text(model, "structure", format="text")
            out.print(text, markup=False, end="")
        else:
            svg.write_text(client.model_text(model, "structure", format="svg"), encoding="utf-8")


def _one(found: Json) -> Table:
    """Return a table for one feature: a line for each value, with a bar for the score above the lowest."""
    (feature,) = found["features"]
    table = new_table(feature["name"], "score", "")
    least = min(found["scores"])
    bars = _bars([score - least for score in found["scores"]])
    for value, score, bar in zip(feature["values"], found["scores"], bars, strict=True):
        table.add_row(_shown(value), f"{score:.4g}", bar)
    return table


def _two(found: Json) -> Table:
    """Return a table for two features: values of the first in rows, of the second in columns."""
    down, across = found["features"]
    table = new_table(f"{down['name']} \\ {across['name']}", *map(_shown, across["values"]))
    for value, scores in zip(down["values"], found["scores"], strict=True):
        table.add_row(_shown(value), *(f"{score:.4g}" for score in scores))
    return table


def _shown(value: float | bool | str | None) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bars(values: list[float]) -> list[str]:
    greatest = max(values, default=0.0)
    scale = BAR_WIDTH / greatest if greatest > 0 else 0.0
    return ["█" * round(max(value, 0.0) * scale) for value in values]


REPORTS = {"md": "markdown", "html": "html", "json": "json"}
PICTURES = {"svg": "svg", "png": "png", "json": "vega"}

Output = Annotated[
    Path | None, typer.Option(help="Write to this file. Its ending decides the format.")
]


def report(
    model: Model,
    *,
    format: Annotated[str | None, typer.Option(help="md (default), html or json.")] = None,
    output: Output = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Write the report on a model: metrics, curves, thresholds, data, parameters and lineage."""
    chosen = _format(format, output, REPORTS, "md")
    with service(url, key) as client:
        _write(output, client.model_bytes(model, "report", format=chosen))


def plot(
    model: Model,
    *,
    kind: Annotated[
        str,
        typer.Option(help="roc: the whole curve. pauc: the window of the partial AUC, enlarged."),
    ] = "roc",
    on: Annotated[str, typer.Option(help="validation or train.")] = "validation",
    band: Annotated[
        str, typer.Option(help="Confidence band: pointwise, simultaneous or none.")
    ] = "pointwise",
    width: Annotated[int, typer.Option(help="Width of a PNG in pixels.")] = 1280,
    format: Annotated[
        str | None,
        typer.Option(help="svg, png or json. json is a Vega-Lite specification (deprecated)."),
    ] = None,
    output: Output = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Draw the ROC curve of a model into a file, or in the terminal if no file is given."""
    with service(url, key) as client:
        if output is None and format is None:
            found = client.model(model)
            if not has_curve(found):
                raise ClientError(f"{found['name']} has no ROC curve")
            metrics = client.model(found["id"], "metrics", on=evaluated_on(found))
            out.print(to_terminal(curve_of(client, found, metrics)), markup=False)
            return
        asked = {"kind": kind, "on": on, "band": band, "width": width}
        chosen = _format(format, output, PICTURES, "svg")
        _write(output, client.model_bytes(model, "plot", format=chosen, **asked))


def profile(
    dataset: Annotated[str, typer.Argument(help="Id of a dataset.")],
    *,
    format: Annotated[str | None, typer.Option(help="md (default), html or json.")] = None,
    output: Output = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Write the profile of a dataset: distributions, missing values, AUC of each feature alone, likely leaks, repeated
    rows.
    """
    chosen = _format(format, output, REPORTS, "md")
    with service(url, key) as client:
        _write(output, client.profile(dataset, chosen))


def _format(given: str | None, output: Path | None, known: dict[str, str], default: str) -> str:
    """Return the service's name for the format: the given one, else by the file's ending."""
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
