"""`rankwright show | algorithms | report | plot | …`: what is known of a model, a dataset or the algorithms."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankwright import api, types
from rankwright.cli.common import (
    CommandFailed,
    Model,
    Service,
    Svg,
    asks,
    err,
    new_table,
    out,
    standard_output,
    takes,
)
from rankwright.cli.datasets import find_dataset
from rankwright.cli.metrics import (
    KINDS,
    curve_of,
    has_curve,
    list_plot,
    show_model,
    shown_interval,
)
from rankwright.cli.training import wait_for_job
from rankwright.printable import one_line
from rankwright.terminal_plot import to_terminal

if TYPE_CHECKING:
    from rich.table import Table

BAR_WIDTH = 40

models = typer.Typer(no_args_is_help=True, help="Import and export models.")


@models.command("import")
@asks()
@takes(api.ImportModel, but=["dataset_id"])
def import_(
    client: Service,
    name: Annotated[str, typer.Argument(help="Name of the model.")],
    file: Annotated[
        Path,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Model file: LightGBM's text, XGBoost's JSON or UBJSON, or an artifact.",
        ),
    ],
    *,
    dataset: Annotated[
        str, typer.Option(help="Id or name of the dataset to evaluate the model on.")
    ],
    categories: Annotated[
        str | None,
        typer.Option(
            help="JSON: for each categorical feature its categories in the order of their codes, such as "
            '{"town": ["Bonn", "Ulm"]}; or, for LightGBM, a list of the features that the lists of '
            "pandas_categorical belong to. @FILE reads it from a file."
        ),
    ] = None,
    expected: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="File with the library's raw scores of all rows of the dataset, one per line. A model with other "
            "scores is refused.",
        ),
    ] = None,
    svg: Svg = None,
    **fields: Any,
) -> None:
    """Import a model and evaluate it on a dataset. Its scores equal the original's."""
    scores = None
    if expected is not None:
        scores = [_number(expected, line) for line in expected.read_text().split()]
    job = client.import_model(
        name,
        file,
        find_dataset(client, dataset),
        categories=_json(categories),
        expected=scores,
        **fields,
    )
    done = wait_for_job(job)
    show_model(client, client.models.get(cast(types.JobOutput, done.output).id), svg)


def _number(file: Path, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandFailed(f"{file} must have a number on each line, got {text!r}") from None


def _json(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(Path(text[1:]).read_text() if text.startswith("@") else text)
    except (OSError, ValueError) as error:
        raise CommandFailed(
            f"--categories must be JSON, or @ and a file with it: {error}"
        ) from error


EXPORTS = {"onnx": "onnx", "python": "python", "py": "python", "sql": "sql"}


@models.command("export")
@asks(json=None)
def export(
    client: Service,
    model: Model,
    *,
    format: Annotated[
        str | None,
        typer.Option(help="onnx, python or sql. Default: by the extension of the file."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
) -> None:
    """Write a model as a file that scores without the service."""
    _write(output, client.models[model].export(_format(format, output, EXPORTS, "")))


@asks()
def show(client: Service, model: Model, *, svg: Svg = None) -> None:
    """Show the metrics of a model on held-out rows or pairs, and its ROC curve."""
    show_model(client, client.models.get(model), svg)


@asks(json=None)
def algorithms(
    client: Service,
    name: Annotated[
        str | None, typer.Argument(help="Name of an algorithm whose parameters to show.")
    ] = None,
) -> None:
    """List the algorithms, or the parameters of one algorithm."""
    known = {entry.name: entry for entry in client.algorithms()}
    if name is not None and name not in known:
        raise CommandFailed(f"algorithm must be one of {', '.join(known)}, got {name!r}")
    if name is None:
        table = new_table("algorithm", "source")
        for entry in known.values():
            table.add_row(entry.name, entry.paper)
    else:
        table = new_table("parameter", "default", "meaning")
        for parameter, schema in known[name].parameters["properties"].items():
            default = json.dumps(schema.get("default"))
            table.add_row(parameter, default, schema.get("description", ""))
    out.print(table, soft_wrap=False)


@asks()
@takes(api.ReadImportance)
def importance(client: Service, model: Model, **fields: Any) -> None:
    """Show the importance of each feature of a model."""
    found = client.models[model].importance(**fields)
    if client.prints_json(found.to_json()):
        return
    features = found.features
    bars = _bars([feature.importance for feature in features])
    out.print_line(f"{found.method} ({found.on} rows). {found.description}")
    table = new_table()
    for feature, bar in zip(features, bars, strict=True):
        table.add_row(feature.name, f"{feature.importance:.5g}", bar)
    out.print(table, markup=False)


@asks()
@takes(api.ReadPartialDependence)
def dependence(
    client: Service,
    model: Model,
    features: Annotated[list[str], typer.Argument(help="One or two features.")],
    *,
    points: Annotated[
        int, typer.Option(help="Maximum number of grid values of a numeric feature.")
    ] = 12,
    **fields: Any,
) -> None:
    """Show partial dependence: mean scores when one or two features are set to different values."""
    found = client.models[model].partial_dependence(features, points=points, **fields)
    if client.prints_json(found.to_json()):
        return
    out.print_line(f"mean score over {found.rows:,} {found.on} rows")
    out.print(_one(found) if len(found.features) == 1 else _two(found), markup=False)


@asks(json=None)
def tree(
    client: Service,
    model: Model,
    *,
    svg: Annotated[
        Path | None, typer.Option(help="Write a picture of the tree to this file.")
    ] = None,
) -> None:
    """Print a ranking tree as text, or draw it."""
    if svg is None:
        text = client.models[model].download("structure", format="text").decode()
        out.print(text, markup=False, end="")
    else:
        client.models[model].download("structure", svg, format="svg")


def _one(found: types.PartialDependence) -> Table:
    """Return a table for one feature: a line for each value, with a bar for the score above the lowest."""
    (feature,) = found.features
    table = new_table(feature.name, "score", "")
    scores = cast("list[float]", found.scores)
    least = min(scores)
    bars = _bars([score - least for score in scores])
    for value, score, bar in zip(feature.values, scores, bars, strict=True):
        table.add_row(_shown(value), f"{score:.4g}", bar)
    return table


def _two(found: types.PartialDependence) -> Table:
    """Return a table for two features: values of the first in rows, of the second in columns."""
    down, across = found.features
    table = new_table(f"{down.name} \\ {across.name}", *map(_shown, across.values))
    for value, scores in zip(down.values, cast("list[list[float]]", found.scores), strict=True):
        table.add_row(_shown(value), *(f"{score:.4g}" for score in scores))
    return table


def _shown(value: float | bool | str | None) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _bars(values: Sequence[float]) -> list[str]:
    greatest = max(values, default=0.0)
    scale = BAR_WIDTH / greatest if greatest > 0 else 0.0
    return ["█" * round(max(value, 0.0) * scale) for value in values]


REPORTS = {"md": "markdown", "html": "html", "json": "json"}
PICTURES = {"svg": "svg", "png": "png"}

Output = Annotated[
    Path | None, typer.Option(help="Write to this file. Its extension selects the format.")
]


@asks(json=None)
def report(
    client: Service,
    model: Model,
    *,
    format: Annotated[str | None, typer.Option(help="md (default), html or json.")] = None,
    output: Output = None,
) -> None:
    """Write the report of a model: metrics, curves, thresholds, data, parameters and lineage."""
    chosen = _format(format, output, REPORTS, "md")
    _write(output, client.models[model].download("report", format=chosen))


@asks(json=None)
def plot(
    client: Service,
    model: Model,
    *,
    kind: Annotated[
        str,
        typer.Option(
            help="roc: the whole curve. pauc: the window of the partial AUC, enlarged. gains: recall by the "
            "fraction of the list. precision_recall: precision at every recall. cost: lowest expected "
            "cost. histogram: scores of each class. reliability: fraction of positives by probability."
        ),
    ] = "roc",
    on: Annotated[str, typer.Option(help="validation or train.")] = "validation",
    band: Annotated[
        str, typer.Option(help="Confidence band: pointwise, simultaneous or none.")
    ] = "pointwise",
    width: Annotated[int, typer.Option(help="Width of a PNG in pixels.")] = 1280,
    format: Annotated[
        str | None,
        typer.Option(help="svg (default) or png."),
    ] = None,
    output: Output = None,
) -> None:
    """Draw a curve of a model to a file, or in the terminal if no file is given."""
    if output is None and format is None:
        if kind not in ("roc", "reliability", *KINDS):
            known = ", ".join(("roc", *KINDS, "reliability"))
            detail = f"the terminal can show only {known}, got {kind}: set --output or --format"
            raise typer.BadParameter(detail)
        found = client.models.get(model)
        if not has_curve(found.data):
            raise CommandFailed(f"{found.name} has no ROC curve")
        drawn = curve_of(found) if kind == "roc" else list_plot(found, kind, on)
        out.print(to_terminal(drawn), markup=False)
        return
    chosen = _format(format, output, PICTURES, "svg")
    picture = client.models[model].download(
        "plot", format=chosen, kind=kind, on=on, band=band, width=width
    )
    _write(output, picture)


@asks()
@takes(api.ReadOperatingPoint)
def cutoff(client: Service, model: Model, **fields: Any) -> None:
    """Show the threshold for a rate or a fraction of the rows, or the rates of a threshold, with intervals. With
    --confidence, the rate is guaranteed.
    """
    found = client.models[model].operating_point(**fields)
    if client.prints_json(found.to_json()):
        return
    least = "none" if found.threshold is None else f"{found.threshold:.9g}"
    rows = {"threshold": least}
    for name in ("fpr", "tpr", "precision", "lift", "flagged"):
        metric = getattr(found, name)
        rows[name] = "no row is flagged" if metric.value is None else shown_interval(metric)
    if (guarantee := found.guarantee) is not None:
        side = "at most" if guarantee.rate == "fpr" else "at least"
        rows["guaranteed"] = (
            f"{guarantee.rate} {side} {guarantee.limit:g} with confidence {guarantee.confidence:g}, "
            f"by {guarantee.rows:,} rows ({guarantee.needed:,} are needed)"
        )
    width = max(map(len, rows))
    out.print("\n".join(f"{name:<{width}}  {text}" for name, text in rows.items()), markup=False)


@asks()
def checks(client: Service, model: Model) -> None:
    """Show whether a model is ready for use: six questions about its stored results."""
    found = client.models[model].checks()
    if client.prints_json(found.to_json()):
        return
    for each in found.findings:
        where = "" if each.rows is None else f", on {one_line(each.rows.name)}"
        answer = each.answer.replace("_", " ")
        out.print(f"{each.question}: {answer}{where}. {one_line(each.words)}", markup=False)
        for one in each.details or []:
            out.print(f"  {one_line(one)}", markup=False)


@asks()
@takes(api.ReadScorecard)
def scorecard(client: Service, model: Model, **fields: Any) -> None:
    """Show a scorecard, logistic or additive model as a scorecard: weight, odds ratio and points of each value."""
    found = client.models[model].scorecard(**fields)
    if client.prints_json(found.to_json()):
        return
    lines: list[Sequence[str]] = [("feature", "value", "log odds", "odds ratio", "points")]
    lines.append(("", "every row", "", "", f"{found.base_points:.1f}"))
    for each in found.characteristics:
        for one in each.attributes:
            ratio = "–" if one.odds_ratio is None else f"{one.odds_ratio:.3g}"
            value = _attribute_in_words(one)
            lines.append((each.name, value, f"{one.weight:+.4f}", ratio, f"{one.points:+.1f}"))
    out.print(_columns(lines), markup=False)
    if not found.complete:
        err.print("the score has other parts, too: pairs of features, or more terms", markup=False)


def _attribute_in_words(one: types.ScorecardAttribute) -> str:
    if one.of == "category":
        return str(one.category)
    if one.of == "special":
        return f"equal to {one.low}"
    if one.of != "values":
        return {"unit": "each unit", "missing": "no value"}[one.of]
    if one.low is None:
        return "any" if one.high is None else f"up to {one.high}"
    return f"above {one.low}" if one.high is None else f"above {one.low} to {one.high}"


@asks()
@takes(api.ReadBins)
def bins(client: Service, model: Model, **fields: Any) -> None:
    """Show the bins of a scorecard: rows, event rate, weight of evidence (WOE) and points, and the information value
    (IV) of each feature, on held-out rows if there are any.
    """
    found = client.models[model].bins(**fields)
    if client.prints_json(found.to_json()):
        return
    lines: list[Sequence[str]] = [("feature", "IV", "bin", "rows", "events", "WOE", "points")]
    for each in found.features:
        iv = each.held_out_iv or each.iv
        first = each.name, f"{iv.adjusted:.3f} ({iv.low:.3f} to {iv.high:.3f})"
        for one in each.bins:
            counts = one.held_out or one.train
            events = "–" if counts.event_rate is None else f"{100.0 * counts.event_rate:.1f} %"
            numbers = f"{counts.rows:,}", events, f"{counts.woe:+.3f}", f"{one.points:+.1f}"
            lines.append((*first, _bin_in_words(one), *numbers))
            first = "", ""
    out.print(_columns(lines), markup=False)


def _bin_in_words(one: types.ScorecardBin) -> str:
    if one.of == "categories":
        return ", ".join(one.categories or [])
    if one.of in ("missing", "special"):
        return "no value" if one.of == "missing" else f"equal to {one.low}"
    if one.low is None:
        return "any" if one.high is None else f"up to {one.high}"
    return f"above {one.low}" if one.high is None else f"above {one.low} to {one.high}"


@asks()
@takes(api.ReadGains)
def gains(client: Service, model: Model, **fields: Any) -> None:
    """Show precision, recall and lift at the top of the list, for several list sizes."""
    found = client.models[model].gains(**fields)
    if client.prints_json(found.to_json()):
        return
    lines: list[Sequence[str]] = [("share", "rows", "positives", "precision", "recall", "lift")]
    for row in found.rows:
        metrics = (shown_interval(each) for each in (row.precision, row.recall, row.lift))
        sizes = f"{row.share:.4g}", f"{row.count:.6g}", f"{row.positives:.6g}"
        lines.append((*sizes, *metrics))
    out.print(_columns(lines), markup=False)


@asks()
@takes(api.ReadMetricEstimates)
def metrics(
    client: Service,
    model: Model,
    metric: Annotated[
        list[str],
        typer.Argument(
            help="average_precision, precision@100, precision@1%, ndcg@10, auc, pauc:0,0.05, two_way:0.1,0.8 …"
        ),
    ],
    **fields: Any,
) -> None:
    """Estimate metrics of a model, with confidence intervals and tests against random scores."""
    found = client.models[model].metric_estimates(metric, **fields)
    if client.prints_json(found.to_json()):
        return
    lines = [("metric", "value", "chance", "adjusted p-value against random scores")]
    for each in found.metrics:
        chance = "0" if each.chance is None else f"{each.chance:.4f}"
        p_value = "-" if each.adjusted_p_value is None else f"{each.adjusted_p_value:.4g}"
        lines.append((each.metric, shown_interval(each), chance, p_value))
    out.print(_columns(lines), markup=False)


def _columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of aligned words; unlike a table they are never broken."""
    lines = [[one_line(word) for word in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


@asks(json=None)
def profile(
    client: Service,
    dataset: Annotated[str, typer.Argument(help="Id or name of a dataset.")],
    *,
    format: Annotated[str | None, typer.Option(help="md (default), html or json.")] = None,
    output: Output = None,
) -> None:
    """Write the profile of a dataset: distributions, missing values, AUC of each feature, likely leaks and repeated
    rows.
    """
    chosen = _format(format, output, REPORTS, "md")
    _write(output, client.datasets[find_dataset(client, dataset)].profile_page(chosen))


def _format(given: str | None, output: Path | None, known: dict[str, str], default: str) -> str:
    """Return the service's name for the format: the given one, else by the file's ending."""
    ending = default if output is None else output.suffix.removeprefix(".").lower()
    name = ending if given is None else given
    if name not in known:
        raise typer.BadParameter(f"the format must be one of {', '.join(known)}, got {name!r}")
    return known[name]


def _write(output: Path | None, content: bytes) -> None:
    if output is None:
        standard_output().write(content)
    else:
        output.write_bytes(content)
