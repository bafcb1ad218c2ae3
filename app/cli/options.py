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
Positive = Annotated[str | None, typer.Option(help="Value of the label that counts as positive.")]
DatasetName = Annotated[str | None, typer.Option(help="Name of the dataset. Default: `table`.")]
Weight = Annotated[str | None, typer.Option(help="Column of the row weights.")]
Group = Annotated[
    str | None,
    typer.Option(help="Column of groups: rows with the same value stay on one side of a split."),
]
Kind = Annotated[
    str | None,
    typer.Option(
        help="bipartite (default): rows with a label of two values. preferences: items to compare. multilabel: rows "
        "with several labels."
    ),
]
Item = Annotated[str | None, typer.Option(help="For preferences: column of the items' names.")]
Labels = Annotated[
    str | None, typer.Option(help="For multilabel: columns of the labels, separated by commas.")
]
Categorical = Annotated[
    str | None,
    typer.Option(
        help="Columns to read as categories although they hold numbers, separated by commas."
    ),
]
Numeric = Annotated[
    str | None,
    typer.Option(
        help="Columns to read as numbers, separated by commas. Any other text in them counts as missing."
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse a table with values that do not fit their column, or with rows without a label. Default: only "
        "warn.",
    ),
]
Drop = Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")]
Missing = Annotated[
    str | None,
    typer.Option(
        help="Texts that mean a missing value, separated by commas. Default: NA,N/A,null,NaN,?"
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="For a CSV: utf-8, utf-16, latin-1 or windows-1252.")
]
Delimiter = Annotated[str | None, typer.Option(help="For a CSV: comma, semicolon, tab or pipe.")]
Decimal = Annotated[str | None, typer.Option(help="For a CSV: the decimal sign, point or comma.")]
AppendTo = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Append the rows to this dataset. Creates a new version with the same name and roles of columns.",
    ),
]
InPlaceOf = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET",
        help="Replace the rows of this dataset. Creates a new version with the same name and roles of columns.",
    ),
]
PairsFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="For preferences: file of the pairs, with the columns better and worse, and optionally weight.",
    ),
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}
