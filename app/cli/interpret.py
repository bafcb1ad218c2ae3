"""`rankwright importance | dependence | tree`: what a model has learnt, from a shell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.api_client import ApiClient
from app.cli.client import out, service
from app.cli.options import AsJson, Key, Url

if TYPE_CHECKING:
    from rich.table import Table


BAR_WIDTH = 40

Model = Annotated[str, typer.Argument(help="Id, name, name:version or name@alias.")]
Label = Annotated[str | None, typer.Option(help="Which label's scores, of a model with several.")]
Json = dict[str, Any]


def importance(
    model: Model,
    *,
    label: Label = None,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Say which features matter to a model, and in what sense."""
    from rich.table import Table

    with service(url, key) as client:
        found = client.model(model, "importance", **_given(label=label))
    if as_json:
        out.print_json(data=found)
        return
    features = found["features"]
    bars = _bars([feature["importance"] for feature in features])
    out.print(f"{found['method']} ({found['on']} rows). {found['description']}", markup=False)
    table = Table(box=None, pad_edge=False, show_header=False)
    for feature, bar in zip(features, bars, strict=True):
        table.add_row(feature["name"], f"{feature['importance']:.5g}", bar)
    out.print(table, markup=False)


def dependence(
    model: Model,
    features: Annotated[list[str], typer.Argument(help="One feature, or two.")],
    *,
    label: Label = None,
    points: Annotated[int, typer.Option(help="Most values of a numeric feature.")] = 12,
    url: Url = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show mean scores with a feature, or two, set to one value after another."""
    with service(url, key) as client:
        asked = _given(label=label) | {"feature": features, "points": points}
        found = client.model(model, "partial-dependence", **asked)
    if as_json:
        out.print_json(data=found)
        return
    out.print(f"mean score over {found['rows']:,} {found['on']} rows", markup=False)
    out.print(_one(found) if len(found["features"]) == 1 else _two(found), markup=False)


def tree(
    model: Model,
    *,
    svg: Annotated[Path | None, typer.Option(help="Write a picture of it to this file.")] = None,
    url: Url = None,
    key: Key = None,
) -> None:
    """Write a ranking tree as text, or draw it."""
    with service(url, key) as client:
        if svg is None:
            out.print(_written(client, model, "text"), markup=False, end="")
        else:
            svg.write_text(_written(client, model, "svg"), encoding="utf-8")


def _written(client: ApiClient, model: str, format: str) -> str:
    return client.model_text(model, "structure", format=format)


def _one(found: Json) -> Table:
    """A value a line, the score as a bar from the least one."""
    from rich.table import Table

    (feature,) = found["features"]
    table = Table(box=None, pad_edge=False)
    for heading in (feature["name"], "score", ""):
        table.add_column(heading)
    least = min(found["scores"])
    bars = _bars([score - least for score in found["scores"]])
    for value, score, bar in zip(feature["values"], found["scores"], bars, strict=True):
        table.add_row(_shown(value), f"{score:.4g}", bar)
    return table


def _two(found: Json) -> Table:
    """The first feature's values down, the second one's across."""
    from rich.table import Table

    down, across = found["features"]
    table = Table(box=None, pad_edge=False)
    for heading in (f"{down['name']} \\ {across['name']}", *map(_shown, across["values"])):
        table.add_column(heading)
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


def _given(**options: Any) -> Json:
    return {name: value for name, value in options.items() if value is not None}


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    for command in (importance, dependence, tree):
        app.command(rich_help_panel="Use the service")(command)
