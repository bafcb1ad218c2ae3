"""Options that several commands take, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="RANKWRIGHT_URL", help="Address of the service."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", envvar="RANKWRIGHT_API_KEY", help="API key.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the service's answer as JSON.")]
Svg = Annotated[Path | None, typer.Option(help="Write the ROC curve to this SVG file.")]

# Of `upload`; the service's own fields have the same names.
TableFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="CSV or Parquet file.")
]
Label = Annotated[str | None, typer.Option(help="Column of the label.")]
Positive = Annotated[str | None, typer.Option(help="The positive label's value.")]
DatasetName = Annotated[str | None, typer.Option(help="Name of the dataset. Default: `table`.")]
Weight = Annotated[str | None, typer.Option(help="Column of the row weights.")]
Group = Annotated[str | None, typer.Option(help="Column whose equal values stay together.")]
Kind = Annotated[
    str | None,
    typer.Option(
        help="bipartite, the default: rows with a label of two values; preferences: items to compare; "
        "multilabel: rows with several labels."
    ),
]
Item = Annotated[str | None, typer.Option(help="Of preferences: the column of the items' names.")]
Labels = Annotated[
    str | None, typer.Option(help="Of multilabel: the labels' columns, with commas between.")
]
Categorical = Annotated[
    str | None, typer.Option(help="Columns of numbers that are codes, with commas between.")
]
Numeric = Annotated[
    str | None,
    typer.Option(
        help="Columns of numbers, with commas between; whatever else is in them counts as missing."
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a table with values that do not fit their column, or rows without a label, instead of a warning.",
    ),
]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")]
Missing = Annotated[
    str | None,
    typer.Option(
        help="What stands for a missing value, with commas between; NA,N/A,null,NaN,? by default."
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Of a CSV: utf-8, utf-16, latin-1 or windows-1252.")
]
Delimiter = Annotated[str | None, typer.Option(help="Of a CSV: comma, semicolon, tab or pipe.")]
Decimal = Annotated[
    str | None, typer.Option(help="Of a CSV: point or comma, what stands before decimals.")
]
AppendTo = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Add the rows to this dataset: a new version, with its name and its columns' roles.",
    ),
]
InPlaceOf = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Take the place of this dataset: a new version, with its name and its columns' roles.",
    ),
]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Of preferences: file of the pairs, with columns better, worse and, if you like, weight.",
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
